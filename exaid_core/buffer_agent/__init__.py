"""The agent that decides when text is worth a summary."""
