"""The form of a summary."""
