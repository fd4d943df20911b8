"""The providers: the only package that imports the vendors' SDKs."""
