"""What happens in a run, written beside it while it works, for whoever watches from elsewhere.

The run writes (`LiveFeed`), others read (`FeedReader`); neither waits for the other.
"""

from mdagents.live.lines import FeedLine, Words
from mdagents.live.reader import FeedReader
from mdagents.live.writer import LiveFeed

__all__ = ["FeedLine", "FeedReader", "LiveFeed", "Words"]
