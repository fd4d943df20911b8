"""The schema of a clinical case."""
