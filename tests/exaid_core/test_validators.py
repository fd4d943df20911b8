"""Validators of the caller's own: what they find is a remark, and what they break is told."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any

import pytest

from exaid_core import AgentSummary, ExaidConfig
from exaid_core.health import Failure
from exaid_core.history import History
from exaid_core.segments import Segment
from exaid_core.validators import (
    MAX_REMARK_CHARS,
    MAX_REMARKS,
    Validator,
    run_validators,
)
from tests.exaid_core.models import SHIFT, STABLE, make_exaid, model

SUMMARY = AgentSummary(status_action="Aspirin 300 mg given.", agents=("doctor",))


def no_next_step(summary: AgentSummary, text: str) -> Iterable[str]:
    if summary.recommendation_next_step == "None reported.":
        yield "no next step"


def allergy(summary: AgentSummary, text: str) -> list[str]:
    return ["allergy not mentioned"] if "allergy" in text else []


def broken(summary: AgentSummary, text: str) -> Iterator[str]:
    yield "found before it broke"
    raise KeyError("dose")


def run(validators: Sequence[Validator], text: str = "") -> tuple[tuple[str, ...], list[Exception]]:
    """The remarks of validators on the summary, and the errors that they raised."""
    errors: list[Exception] = []
    return run_validators(validators, SUMMARY, text, errors.append), errors


def test_findings_are_remarks_in_the_order_of_the_validators() -> None:
    remarks, errors = run([allergy, no_next_step, allergy], "allergy to aspirin")
    assert remarks == ("allergy not mentioned", "no next step")
    assert errors == []
    assert run([]) == ((), [])


def test_a_validator_that_fails_leaves_no_remark_and_stops_no_other() -> None:
    remarks, (error,) = run([broken, no_next_step])
    assert remarks == ("no next step",)
    assert isinstance(error, KeyError)


@pytest.mark.parametrize("found", ["one text", None, 3, [3], ["fine", None], [b"bytes"]])
def test_what_is_not_a_list_of_texts_is_an_error(found: Any) -> None:
    remarks, errors = run([lambda summary, text: found])
    assert remarks == ()
    assert len(errors) == 1


def test_a_remark_is_one_short_line_without_what_cannot_be_seen() -> None:
    words = "word " * 100
    validator: Validator = lambda *_: [" two\r\nlines \u202e\x07", "", " \n", words]  # noqa: E731
    (first, second), _ = run([validator])
    assert first == "two lines"
    assert len(second) <= MAX_REMARK_CHARS
    assert second.endswith("…")


def test_a_validator_that_never_ends_is_cut_off() -> None:
    remarks, _ = run([lambda *_: (f"finding {n}" for n in count())])
    assert len(remarks) == MAX_REMARKS


def segment(text: str) -> Segment:
    return Segment("doctor", text, (1,), 0, 0)


def test_they_see_the_checked_summary_and_the_text_that_it_was_made_from() -> None:
    seen: list[tuple[AgentSummary, str]] = []

    def look(summary: AgentSummary, text: str) -> list[str]:
        seen.append((summary, text))
        return ["seen"]

    history = History(ExaidConfig(validators=(look,)), lambda error: pytest.fail(str(error)))
    draft = AgentSummary(status_action="Aspirin 300 mg.")
    checked = history.checked(draft, [segment("Chest pain."), segment("ECG done.")])
    ((summary, text),) = seen
    assert text == "Chest pain.\nECG done."
    assert (summary.agents, summary.source_seqs) == (("doctor",), ((1, 1),))
    assert summary.unsupported_terms, "the results of our own checks are there"
    assert checked == summary.model_copy(update={"remarks": ("seen",)})


def test_a_validator_cannot_change_the_summary() -> None:
    def change(summary: AgentSummary, text: str) -> list[str]:
        summary.status_action = "All is well."
        return []

    errors: list[Exception] = []
    history = History(ExaidConfig(validators=(change,)), on_error=errors.append)
    checked = history.checked(SUMMARY, [segment("Aspirin 300 mg given.")])
    assert checked.status_action == SUMMARY.status_action
    assert "frozen" in str(errors)


async def test_a_failure_is_told_and_logged_without_its_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failures: list[Failure] = []
    exaid = make_exaid(model(SHIFT), model(STABLE), validators=(broken,), on_error=failures.append)
    with caplog.at_level(logging.WARNING, "exaid_core"):
        summary = await exaid.received_trace("doctor", "The fever is gone.")
    assert summary is not None
    assert summary.remarks == ()
    assert [(each.source, each.message) for each in failures] == [("validator", "KeyError: 'dose'")]
    assert caplog.messages == ["a validator of EXAID raised KeyError"]


async def test_remarks_are_in_the_summary_and_in_the_run_log() -> None:
    for validators, remarks in (((no_next_step, broken), ("no next step",)), ((), ())):
        exaid = make_exaid(model(SHIFT), model(STABLE), validators=validators)
        summary = await exaid.received_trace("doctor", "The fever is gone.")
        assert summary is not None
        assert summary.remarks == remarks
        (event,) = exaid.log.summaries
        assert event.remarks == (remarks or None)
        assert ("remarks" in event.model_dump(exclude_unset=True)) is bool(remarks)
