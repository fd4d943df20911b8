"""Everything that Inspect finds by the entry point `mdagents` of the group `inspect_ai`."""

from mdagents.inspect.scorers import option, team
from mdagents.inspect.solvers import TEAM_NAMES
from mdagents.inspect.tasks import DATASET_NAMES, questions

__all__ = ["DATASET_NAMES", "TEAM_NAMES", "option", "questions", "team"]
