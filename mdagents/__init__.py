"""Multi-agent medical question answering: teams of LLM agents answer, and are measured."""

from importlib import import_module
from typing import TYPE_CHECKING

import mdagents_llm  # noqa: F401 - says so if this Python is too old

if TYPE_CHECKING:
    from mdagents.agents.case import Case
    from mdagents.datasets.questions import Question
    from mdagents.records.sample import SampleRecord
    from mdagents.runs.api import answer, load, run
    from mdagents.runs.compared import RunComparison, compare
    from mdagents.runs.config import RunConfig
    from mdagents.runs.result import RunResult
    from mdagents.settings import TeamRole, TeamSettings
    from mdagents.teams.decision import Decision, Stated
    from mdagents.teams.declaration import Method

__version__ = "0.3.0"

__all__ = [
    "Case",
    "Decision",
    "Method",
    "Question",
    "RunComparison",
    "RunConfig",
    "RunResult",
    "SampleRecord",
    "Stated",
    "TeamRole",
    "TeamSettings",
    "answer",
    "compare",
    "load",
    "run",
]

_MODULES = {
    "Case": "agents.case",
    "Decision": "teams.decision",
    "Method": "teams.declaration",
    "Question": "datasets.questions",
    "RunComparison": "runs.compared",
    "RunConfig": "runs.config",
    "RunResult": "runs.result",
    "SampleRecord": "records.sample",
    "Stated": "teams.decision",
    "TeamRole": "settings",
    "TeamSettings": "settings",
    "answer": "runs.api",
    "compare": "runs.compared",
    "load": "runs.api",
    "run": "runs.api",
}


def __getattr__(name: str) -> object:
    """Import a public name on first use, so that scoring does not load what only runs need."""
    if name not in _MODULES:
        raise AttributeError(f"module 'mdagents' has no attribute {name!r}")
    return getattr(import_module(f"mdagents.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """Return the public names, for completion."""
    return sorted({*globals(), *__all__})
