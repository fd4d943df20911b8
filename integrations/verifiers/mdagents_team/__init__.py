"""A team of mdagents-bench as a harness of verifiers, and questions for it."""

from mdagents_team.harness import MdagentsTeamHarness
from mdagents_team.taskset import MdagentsTeamTaskset

__all__ = ["MdagentsTeamHarness", "MdagentsTeamTaskset"]
