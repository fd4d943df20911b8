"""One agent at one question: its prompts, its replies, and how others follow its turns."""
