"""The providers: the only place where a vendor's SDK is imported."""
