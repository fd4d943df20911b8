"""One agent at one question: its prompts, its replies, and how observers follow its turns."""
