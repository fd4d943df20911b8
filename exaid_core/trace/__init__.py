"""The agent turns of a case: the bus that publishes them, and their files."""
