"""Checks of the caller's own: what they find is a remark, and what they break is told."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any

import pytest

from exaid_core import AgentSummary, ExaidConfig
from exaid_core.checks import Check, Finding, alert_check, dissent_check, grounding_check
from exaid_core.checks.check import MAX_FINDINGS, MAX_REMARK_CHARS, remarks_of
from exaid_core.health import Failure
from exaid_core.history import History
from exaid_core.segments import Segment
from tests.exaid_core.models import SHIFT, STABLE, make_exaid, model


def no_next_step(text: str, support: str) -> Iterable[Finding]:
    if "Give" not in text:
        yield Finding("no next step")


def allergy(text: str, support: str) -> list[Finding]:
    return [Finding("not mentioned", "allergy")] if "allergy" in support else []


def broken(text: str, support: str) -> Iterator[Finding]:
    yield Finding("found before it broke")
    raise KeyError("dose")


def run(checks: Sequence[Check], support: str = "") -> tuple[tuple[str, ...], list[Exception]]:
    """The remarks of checks on a text, and the errors that they raised."""
    errors: list[Exception] = []
    return remarks_of(checks, "Aspirin 300 mg given.", support, errors.append), errors


def test_findings_are_remarks_in_the_order_of_the_checks() -> None:
    remarks, errors = run([allergy, no_next_step, allergy], "allergy to aspirin")
    assert remarks == ("not mentioned: allergy", "no next step")
    assert errors == []
    assert run([]) == ((), [])


def test_a_check_that_fails_leaves_no_remark_and_stops_no_other() -> None:
    remarks, (error,) = run([broken, no_next_step])
    assert remarks == ("no next step",)
    assert isinstance(error, KeyError)


@pytest.mark.parametrize("found", ["one text", None, 3, [3], ["fine", None], [b"bytes"]])
def test_what_is_not_a_list_of_findings_is_an_error(found: Any) -> None:
    remarks, errors = run([lambda text, support: found])
    assert remarks == ()
    assert len(errors) == 1


def test_a_remark_is_one_short_line_without_what_cannot_be_seen() -> None:
    words = "word " * 100
    check: Check = lambda *_: [Finding(" two\r\nlines \u202e\x07"), Finding(""), Finding(words)]  # noqa: E731
    (first, second), _ = run([check])
    assert first == "two lines"
    assert len(second) == MAX_REMARK_CHARS
    assert second.endswith("…")


def test_a_check_that_never_ends_is_cut_off() -> None:
    remarks, _ = run([lambda *_: (Finding(f"finding {n}") for n in count())])
    assert len(remarks) == MAX_FINDINGS


def test_our_own_checks_have_the_same_form_and_find_places() -> None:
    text = "Cardiac arrest at noon.\nGive metoprolol 10 mg and aspirin."
    (alert,) = alert_check(text, "")
    assert (alert.kind, text[alert.start : alert.end]) == ("alert", "Cardiac arrest")
    support = "Cardiac arrest at noon. Give metoprolol 5 mg, aspirin."
    assert [text[one.start : one.end] for one in grounding_check(text, support)] == ["10 mg"]
    split = {"doctor0": "A", "doctor1": "C"}
    assert [one.kind for one in dissent_check(split)(text, "")] == [
        "the agents disagree, and this does not say so"
    ]
    assert not list(dissent_check(split)("Opinions are mixed.", ""))


def segment(text: str) -> Segment:
    return Segment("doctor", text, (1,), 0, 0)


def test_they_see_the_fields_and_the_text_that_the_summary_was_made_from() -> None:
    seen: list[tuple[str, str]] = []

    def look(text: str, support: str) -> list[Finding]:
        seen.append((text, support))
        return [Finding("seen")]

    history = History(ExaidConfig(checks=(look,)), lambda error: pytest.fail(str(error)))
    draft = AgentSummary(status_action="Aspirin 300 mg.")
    checked = history.checked(draft, [segment("Chest pain."), segment("ECG done.")])
    ((text, support),) = seen
    assert text.splitlines() == ["Aspirin 300 mg.", *["None reported."] * 5]
    assert support == "Chest pain.\nECG done."
    assert checked.remarks == ("seen",)


async def test_a_failure_is_told_and_logged_without_its_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failures: list[Failure] = []
    exaid = make_exaid(model(SHIFT), model(STABLE), checks=(broken,), on_error=failures.append)
    with caplog.at_level(logging.WARNING, "exaid_core"):
        summary = await exaid.received_trace("doctor", "The fever is gone.")
    assert summary is not None
    assert summary.remarks == ()
    assert [(each.source, each.message) for each in failures] == [("check", "KeyError: 'dose'")]
    assert caplog.messages == ["a check of EXAID raised KeyError"]


async def test_remarks_are_in_the_summary_and_in_the_run_log() -> None:
    for checks, remarks in (((no_next_step, broken), ("no next step",)), ((), ())):
        exaid = make_exaid(model(SHIFT), model(STABLE), checks=checks)
        summary = await exaid.received_trace("doctor", "The fever is gone.")
        assert summary is not None
        assert summary.remarks == remarks
        (event,) = exaid.log.summaries
        assert event.remarks == (remarks or None)
        assert ("remarks" in event.model_dump(exclude_unset=True)) is bool(remarks)
