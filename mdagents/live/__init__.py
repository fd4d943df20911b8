"""What happens in a run, written beside it while it works, for whoever watches from elsewhere.

The run writes (`LiveFeed`), others read (`FeedReader`); neither waits for the other.
"""

from mdagents.live.lines import FeedLine, Words
from mdagents.live.reader import FeedReader
from mdagents.live.writer import LiveFeed

LIVE_FILE = "live.jsonl"
"""In the folder of a run that is not finished."""

__all__ = ["LIVE_FILE", "FeedLine", "FeedReader", "LiveFeed", "Words"]
