"""One agent at one question: its prompts, its replies, and the events for its observers."""
