"""Runs that are made up in memory, of any size at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mdagents.scoring.rows import RunOutput
from mdagents.scoring.scored_row import ScoredRow, make_row
from mdagents.settings import Status
from tests.mdagents.scoring.result_records import ours

_ROW = make_row(
    ours("q1", "A", "A"), Status.ANSWERED, lambda id_, _: id_,
    number=1, place=0, attempt=1, where="made up", gold="label",
)  # fmt: skip


def row(letter: str = "A", *, id_: str = "q1", epoch: int = 1, tokens: int | None = 100,
        confidence: float | None = None, opinions: str = "") -> ScoredRow:  # fmt: skip
    """The answer to a question whose right option is A; `-` for an error."""
    is_answered = letter != "-"
    return replace(
        _ROW,
        question_id=id_,
        epoch=epoch,
        response=letter if is_answered else "",
        correct=letter == "A",
        status=(Status.ANSWERED if is_answered else Status.API_ERROR).value,
        total_tokens=tokens,
        confidence=confidence,
        first_opinions=tuple(opinions),
        last_opinions=tuple(opinions),
    )


def scored(
    id_: str, options: dict[str, str], gold: str, letter: str, *, epoch: int = 1
) -> ScoredRow:
    """The row of a record that does not state the order of the data set."""
    record = ours(id_, gold, letter, options=options, epoch=epoch)
    return make_row(
        record | {"response": {"final_answer": f"{letter}) {options[letter]}"}},
        Status.ANSWERED, lambda id_, _: id_,
        number=1, place=0, attempt=1, where="", gold="label",
    )  # fmt: skip


def run_of(name: str, rows: Sequence[ScoredRow]) -> RunOutput:
    return RunOutput(Path(f"{name}.json"), tuple(rows), {}, {}, ())


def made_up(
    name: str,
    letters: str,
    *,
    tokens: int = 100,
    confidence: Sequence[float] | None = None,
    epochs: int = 1,
) -> RunOutput:
    """A run with a letter for each question; with epochs, the letters of one after another."""
    questions = len(letters) // epochs
    return run_of(
        name,
        [
            row(
                letter,
                id_=f"q{place % questions}",
                epoch=place // questions + 1,
                tokens=tokens,
                confidence=confidence[place] if confidence is not None else None,
            )
            for place, letter in enumerate(letters)
        ],
    )
