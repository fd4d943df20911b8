"""A server of pages for people: where it listens, whom it answers."""
