"""Identifies files that are mistaken for a run, and suggests what to pass instead."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from mdagents.records.served import is_served
from mdagents_llm.files.matching import matching
from mdagents_llm.terminal.did_you_mean import did_you_mean

_QUESTIONS = "a file of questions, without the answers of a model"
_A_RUN = "the folder of a run, or the JSON array beside it"
_ITS_FOLDER = "its folder, {folder}"
_KINDS: Sequence[tuple[frozenset[str], str, str]] = (
    (frozenset({"config_hash", "item_ids"}), "the manifest of a run", _ITS_FOLDER),
    (frozenset({"provider", "outcome", "attempt"}), "the ledger of a run", _ITS_FOLDER),
    (frozenset({"question_id", "exaid", "watched"}), "what EXAID made of a run", _ITS_FOLDER),
    (frozenset({"tag", "submitted_at", "keys"}), "the batches of a run", _ITS_FOLDER),
    (frozenset({"overall", "by_difficulty"}), "the score of a run", _A_RUN),
    (frozenset({"pairs", "runs"}), "a comparison of runs", _A_RUN),
    (frozenset({"families", "best_run"}), "a table of policies over runs", _A_RUN),
    (frozenset({"runs", "baseline"}), "the list of a study's runs", _A_RUN),
    (frozenset({"question", "options", "answer_idx"}), _QUESTIONS, _A_RUN),
    (frozenset({"question", "options", "answer"}), _QUESTIONS, _A_RUN),
    (
        frozenset({"results", "configs", "versions"}),
        "the results file of lm-evaluation-harness, without its samples",
        "samples_*.jsonl, which --log_samples writes",
    ),
)
"""Entries (fields of a record, kind of file, what to give instead)."""

_REPLIES = frozenset({"response", "pred", "prediction", "output", "model_output", "model_outputs"})
"""Fields that results have and questions do not."""

_TABLES = frozenset({".csv", ".tsv", ".parquet"})
_ROWS = "save the rows of the table as a JSON array of objects"
_SHOWN = 30  # characters of a text
_OF_PATTERNS = frozenset("*?[")
_NEAREST = 3  # names shown for a pattern


def kind_of(record: Mapping[str, Any], path: Path) -> str:
    """Return the kind of a file as the end of an error message; empty if unknown.

    Args:
        record: A record of the file.
        path: Path of the file.
    """
    for fields, kind, instead in _KINDS:
        if fields <= record.keys():
            if kind == _QUESTIONS and _REPLIES & record.keys():
                return ""
            return f"{kind}; give {instead.format(folder=path.parent)}"
    return ""


def refusal_of_text(start: str, ending: str) -> str:
    """Return the end of an error message for a file that is not JSON.

    Args:
        start: First characters of the file.
        ending: Ending of its name, such as `.csv`.
    """
    if start.lstrip().startswith("<"):
        return f"is an HTML page and no run; give {_A_RUN}"
    line = next(iter(start.strip().splitlines()), "")
    instead = _ROWS if ending.lower() in _TABLES else f"give {_A_RUN}"
    return f"is not JSON (it begins with {reprlib.repr(line[:_SHOWN])}); {instead}"


def runs_below(folder: Path) -> str:
    """Return the end of an error message for a folder of runs, or a run without a record.

    Return an empty string for any other folder.

    Args:
        folder: Folder to inspect.
    """
    if (folder / "run.json").is_file() and (folder / "calls.jsonl").is_file():
        array = folder.with_name(f"{folder.name}.json")
        if array.is_file():
            return f"is a run without its samples.jsonl; {array} may still hold its records"
        return "is a run without a finished question"
    found = (file.parent for file in matching(folder, "*/samples.jsonl"))
    runs = sorted(run for run in found if not is_served(run))
    if not runs:
        return ""
    return f"holds runs and is none itself; give one of them, such as {runs[-1]}"


def missing(path: Path) -> str:
    """Return a suggestion of similarly named siblings of a missing path, for an error message.

    A shell passes a pattern on as it is if no file matches it.
    """
    try:
        there = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return ""
    if there and not _OF_PATTERNS.isdisjoint(path.name):
        nearest = get_close_matches(path.name, there, n=_NEAREST, cutoff=0)
        return f"; no file matches it (there: {', '.join(nearest)})"
    return did_you_mean(path.name, there)
