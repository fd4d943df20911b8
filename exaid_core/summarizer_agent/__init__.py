"""The agent that writes the summaries."""
