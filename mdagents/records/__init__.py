"""A run on disk: what each file holds, and how it is written and read."""
