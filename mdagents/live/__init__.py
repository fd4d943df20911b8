"""Live feed of a run, a file of events for viewers in other processes.

The run writes it (`LiveFeed`) and viewers read it (`FeedReader`); neither waits for the other.
"""

from mdagents.live.lines import FeedLine, Words
from mdagents.live.reader import FeedReader
from mdagents.live.writer import LiveFeed

LIVE_FILE = "live.jsonl"
"""File name of the feed in the folder of an unfinished run."""

__all__ = ["LIVE_FILE", "FeedLine", "FeedReader", "LiveFeed", "Words"]
