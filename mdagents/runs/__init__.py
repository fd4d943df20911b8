"""One run, from the user's request to its files."""
