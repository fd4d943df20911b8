"""Summaries written by hand as a good model would write them: every check lets them pass.

`ideal_summaries.json` has for each window of a case the summary, and why it is ideal in a sentence.
The windows of a case follow each other, so a summary may rest on the one before it. Cases whose
name begins with `own` bring their text; those of the others is in the real traces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from exaid_core.placeholders import PLACEHOLDER
from exaid_core.schema.agent_summary import LIMITS, AgentSummary, SummaryDraft
from exaid_core.trace.traces import read_trace
from mdagents_llm.json_schema import reply_schema
from mdagents_llm.providers.local import grammar
from mdagents_llm.text import clean
from tests.conftest import REAL_TRACES
from tests.exaid_core.models import SHIFT, WAIT, Said, make_exaid, model
from tests.support.virtual_time import virtual_time

CASES: dict[str, list[dict[str, Any]]] = {
    case["case_id"]: case["windows"]
    for case in json.loads(Path(__file__).with_name("ideal_summaries.json").read_text("utf-8"))
}
SUMMARIES: dict[str, dict[str, str]] = {
    f"{case_id}-{number}": window["summary"]
    for case_id, windows in CASES.items()
    for number, window in enumerate(windows, 1)
}
each_summary = pytest.mark.parametrize("fields", SUMMARIES.values(), ids=SUMMARIES)
each_case = pytest.mark.parametrize("case_id", CASES)

TRACE_OF = {path.name.removesuffix(".trace.jsonl.gz"): path for path in REAL_TRACES}
read_once = cache(read_trace)

FILLER = re.compile(
    r"\b(?:comprehensive|thorough|holistic|multifaceted|collaborat\w+|discuss(?:es|ed|ing)"
    r"|(?:un|no )change\w*|no updated|no new|ongoing|refine[sd]?|further (?:evaluation|work-?up)"
    # agreement proves nothing
    r"|confirmed)\b",
    re.IGNORECASE,
)
"""Words that would fit any case, or that say more than was said."""
ABOUT_THE_TALK = re.compile(r"(?:the )?(?:agent|doctor|supervisor|team|panel)", re.IGNORECASE)
LONGEST_QUOTATION = 7
"""Words: as long as the longest name of a disease."""


def text_of(case_id: str, window: dict[str, Any]) -> list[Said]:
    """What was said in a window, a piece for each turn."""
    if "said" in window:
        return [(piece["agent"], piece["text"]) for piece in window["said"]]
    if case_id not in TRACE_OF:
        pytest.skip("the traces are not here")
    pieces = [
        (turn.agent_id, "".join(d.text for d in turn.deltas if first <= d.seq <= last))
        for first, last in [(window["first_seq"], window["last_seq"])]
        for turn in read_once(TRACE_OF[case_id]).turns
    ]
    # Turns of one word only hand over.
    return [(agent_id, text) for agent_id, text in pieces if len(text.split()) > 1]


async def written(case_id: str, *spoiled: tuple[str, str]) -> list[AgentSummary]:
    """What EXAID makes of a case if the model writes the ideal summaries, with words replaced."""
    texts = [text_of(case_id, window) for window in CASES[case_id]]
    replies = []
    for window in CASES[case_id]:
        reply = compact(window["summary"])
        for old, new in spoiled:
            reply = reply.replace(old, new)
        replies.append(SummaryDraft.model_validate_json(reply))
    judgements = [j for said in texts for j in [*[WAIT] * (len(said) - 1), SHIFT]]
    # Together the pieces of a window fill the buffer.
    exaid = make_exaid(model(*judgements), model(*replies), max_buffer_ctu=10_000)
    for agent_id, text in [piece for said in texts for piece in said]:
        await exaid.received_trace(agent_id, text)
    assert exaid.tail_loss() == 0
    assert len(exaid.summaries) == len(texts)
    return exaid.summaries


def compact(fields: dict[str, str]) -> str:
    """The reply of a model that is held to the grammar: no white space between its parts."""
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def words(text: str) -> list[str]:
    return re.findall(r"[\w']+", text.lower())


def runs(text: str, length: int) -> Iterator[tuple[str, ...]]:
    found = words(text)
    return (tuple(found[start : start + length]) for start in range(len(found) - length + 1))


# The checks of EXAID


@each_case
@virtual_time
async def test_ideal_summaries_pass_unchanged(case_id: str) -> None:
    for summary, window in zip(await written(case_id), CASES[case_id], strict=True):
        assert {name: getattr(summary, name) for name in LIMITS} == window["summary"]
        assert summary.truncated_fields == ()
        assert summary.unsupported_terms == ()
        assert not summary.dissent_missing
        assert summary.agents == tuple(dict(text_of(case_id, window)))


@virtual_time
async def test_a_dose_that_nobody_named_is_found_in_them() -> None:
    arrest, after = await written("own-arrest", ("adrenaline 1 mg", "adrenaline 10 mg"))
    assert arrest.unsupported_terms == ("10 mg",)
    assert after.unsupported_terms == ()


@virtual_time
async def test_a_dissent_that_is_left_out_is_found_in_them() -> None:
    (summary,) = await written(
        "own-dissent",
        ("cardiologist holds B (dissection), emergency physician D (infarct).", PLACEHOLDER),
        ("Answers split between dissection and infarct, with opposite views on heparin.", "Chest"),
        (", wanted by emergency physician with", "; "),
    )
    assert summary.dissent_missing


@each_summary
def test_a_model_that_is_held_to_the_schema_can_write_them(fields: dict[str, str]) -> None:
    schema = reply_schema(SummaryDraft)
    jsonschema_rs.validate(schema, fields)
    assert list(fields) == list(schema["properties"]), "a grammar has the fields in this order"
    embedded = str(grammar(SummaryDraft)["grammar"])
    jsonschema_rs.validate(json.loads(embedded.partition("%json ")[2]), fields)
    assert all(clean(text) == text and text.splitlines() == [text] for text in fields.values())


# What a clinician wants


@each_summary
def test_each_field_says_something_within_its_limit(fields: dict[str, str]) -> None:
    for name, limit in LIMITS.items():
        assert 0 < len(fields[name]) <= limit, name
        assert not FILLER.search(fields[name]), name
    assert len(set(fields.values())) == len(fields)
    assert PLACEHOLDER not in (fields["status_action"], fields["uncertainty_confidence"])
    assert not ABOUT_THE_TALK.match(fields["status_action"]), "the patient comes first"


@each_case
def test_no_field_is_repeated_in_the_next_summary(case_id: str) -> None:
    for before, after in pairwise(window["summary"] for window in CASES[case_id]):
        assert {name for name in LIMITS if before[name] == after[name] != PLACEHOLDER} == set()


@each_case
def test_they_name_who_spoke_and_quote_nobody(case_id: str) -> None:
    for window in CASES[case_id]:
        said = text_of(case_id, window)
        contributions = window["summary"]["agent_contributions"]
        assert set(re.findall(r"(?:^|\. )([\w ]+):", contributions)) == set(dict(said))
        quotable = {run for _, text in said for run in runs(text, LONGEST_QUOTATION + 1)}
        for text in window["summary"].values():
            assert quotable.isdisjoint(runs(text, LONGEST_QUOTATION + 1))


def test_there_are_three_windows_of_each_trace_and_a_reason_for_each() -> None:
    traces = {case_id: windows for case_id, windows in CASES.items() if case_id[:3] != "own"}
    assert {case_id: len(windows) for case_id, windows in traces.items()} == dict.fromkeys(
        traces, 3
    )
    assert len(traces) == 4
    for windows in traces.values():
        bounds = [bound for w in windows for bound in (w["first_seq"], w["last_seq"])]
        assert bounds == sorted(bounds)
    assert all(window["why"].endswith(".") for windows in CASES.values() for window in windows)
