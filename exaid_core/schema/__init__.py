"""The schema of a summary."""
