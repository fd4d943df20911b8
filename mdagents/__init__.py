"""Multi-agent medical question answering: teams of LLM agents answer, and are measured.

record = await mdagents.answer(question, options, team="intermediate", model="gpt-4o-mini")
result = mdagents.run(mdagents.RunConfig(dataset="medqa", model="gpt-4o-mini", num_samples=20))
frame = mdagents.load(result)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mdagents.datasets.questions import Question
    from mdagents.records.sample import SampleRecord
    from mdagents.runs.api import answer, load, run
    from mdagents.runs.config import RunConfig
    from mdagents.teams.decision import Decision

__version__ = "0.2.0"

__all__ = ["Decision", "Question", "RunConfig", "SampleRecord", "answer", "load", "run"]

_WHERE = {
    "Decision": "mdagents.teams.decision",
    "Question": "mdagents.datasets.questions",
    "RunConfig": "mdagents.runs.config",
    "SampleRecord": "mdagents.records.sample",
    "answer": "mdagents.runs.api",
    "load": "mdagents.runs.api",
    "run": "mdagents.runs.api",
}


def __getattr__(name: str) -> Any:
    """Import what is public when it is first used: scoring need not wait for what running needs."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)
