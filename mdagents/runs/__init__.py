"""One run from what a user asks for to its files."""
