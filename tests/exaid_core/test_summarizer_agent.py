"""Summaries within their limits, whatever the model writes."""

from __future__ import annotations

import re

import pytest

from exaid_core.placeholders import PLACEHOLDER
from exaid_core.schema.agent_summary import LIMITS, SummaryDraft
from exaid_core.segments import Segment
from exaid_core.summarizer_agent.summarizer_agent import SummarizerAgent, SummaryError, Written
from exaid_core.trace.run_records import SummaryFailure
from mdagents_llm.chat import ChatMessage, StopReason, TokenUsage
from mdagents_llm.config import LLMRole
from mdagents_llm.errors import LimitExceeded, StructuredOutputError
from tests.exaid_core.models import (
    DOWN,
    STABLE,
    TOO_LONG,
    WAIT,
    Outcome,
    data_blocks,
    model,
    newest_block,
)
from tests.support.function_model import FunctionModel

MALFORMED = StructuredOutputError(
    "none of the fields", text="{}", usage=TokenUsage(7, 3), stop_reason=StopReason.STOP
)
SEGMENTS = [Segment("doctor", "Fever.", (1,), 0, 0), Segment("nurse", "38.9 °C.", (2,), 0, 1)]


def words(characters: int, about: str = "cough") -> str:
    """A text of that length that can be cut between sentences."""
    return (f"Fever and {about}. " * 20)[: characters - 1] + "."


async def written(*outcomes: Outcome) -> tuple[Written, FunctionModel]:
    """What becomes of the model's replies, and the model."""
    write = model(*outcomes)
    return await SummarizerAgent(write, monotonic=lambda: 0.0).write([], "", SEGMENTS), write


def draft(**lengths: int) -> SummaryDraft:
    """A draft whose fields are so much longer than their limits."""
    return SummaryDraft(
        **{name: words(LIMITS[name] + over, about=name[:5]) for name, over in lengths.items()}
    )


# Limits


async def test_fields_at_their_limits_are_left_alone() -> None:
    full = draft(**dict.fromkeys(LIMITS, 0))
    result, write = await written(full)
    assert len(write.requests) == 1
    assert result.summary is not None
    assert {name: getattr(result.summary, name) for name in LIMITS} == full.model_dump()
    assert (result.summary.truncated_fields, result.failure) == ((), None)


@pytest.mark.parametrize("name", LIMITS)
async def test_one_repair_names_the_excess(name: str) -> None:
    too_long = draft(**{name: 7})
    result, write = await written(too_long, draft(**{name: 0}))
    first, repair = write.requests
    assert repair.messages[:2] == first.messages
    assert repair.messages[2] == ChatMessage("assistant", too_long.model_dump_json())
    assert f"{name} by 7 characters" in repair.messages[3].content
    assert repair.messages[3].content.count("characters") == 1
    assert repair.schema is SummaryDraft
    assert result.summary is not None
    assert getattr(result.summary, name) == words(LIMITS[name], about=name[:5])
    assert (result.summary.truncated_fields, result.failure) == ((), None)
    assert result.usage.provider_prompt_tokens == 20
    assert result.usage.provider_completion_tokens == 10


async def test_all_that_is_too_long_is_named_at_once() -> None:
    _, write = await written(draft(status_action=1, key_findings=30), STABLE)
    assert "status_action by 1 characters, key_findings by 30 characters" in (
        write.requests[1].messages[3].content
    )


@pytest.mark.parametrize("repair", [1, 5, 7])
async def test_what_is_still_too_long_is_cut(repair: int) -> None:
    result, write = await written(draft(key_findings=7), draft(key_findings=repair))
    assert len(write.requests) == 2
    assert result.summary is not None
    assert result.summary.truncated_fields == ("key_findings",)
    assert result.summary.key_findings.endswith("…")
    assert len(result.summary.key_findings) <= LIMITS["key_findings"]
    assert words(LIMITS["key_findings"], about="key_f").startswith(result.summary.key_findings[:-1])
    assert result.failure is SummaryFailure.LENGTH_LIMIT_VIOLATION


@pytest.mark.parametrize("repair", [DOWN, MALFORMED, WAIT, draft(status_action=2, key_findings=6)])
async def test_a_repair_that_is_no_better_leaves_the_first_draft(repair: Outcome) -> None:
    first = draft(key_findings=7).model_copy(update={"status_action": "Aspirin given."})
    result, write = await written(first, repair)
    assert len(write.requests) == 2
    assert result.summary is not None
    assert result.summary.status_action == "Aspirin given."
    assert result.summary.truncated_fields == ("key_findings",)


async def test_no_number_dose_or_negation_is_cut_in_two() -> None:
    limit = LIMITS["status_action"]
    for head in range(limit - 40, limit):
        field = words(head) + " no pulse, give adrenaline 1 mg now, then 300 mg amiodarone slowly"
        result, _ = await written(SummaryDraft(status_action=field))
        assert result.summary is not None
        kept = result.summary.status_action
        assert len(kept) <= limit
        assert not kept.endswith(("no…", "no pulse, give adrenaline 1…", "300…")), kept


async def test_fields_without_content_hold_the_placeholder() -> None:
    result, write = await written(SummaryDraft(key_findings="Fever.", status_action=" \n"))
    assert len(write.requests) == 1
    assert result.summary is not None
    assert result.summary.key_findings == "Fever."
    others = {getattr(result.summary, name) for name in LIMITS if name != "key_findings"}
    assert others == {PLACEHOLDER}


# Failures


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (DOWN, SummaryFailure.UNEXPECTED_ERROR),
        (LimitExceeded("tokens"), SummaryFailure.UNEXPECTED_ERROR),
        (RuntimeError("broken\nin two"), SummaryFailure.UNEXPECTED_ERROR),
        (MALFORMED, SummaryFailure.SCHEMA_VALIDATION_ERROR),
        (WAIT, SummaryFailure.SCHEMA_VALIDATION_ERROR),
    ],
)
async def test_without_a_summary_the_reason_is_told(failure: Outcome, kind: SummaryFailure) -> None:
    result, write = await written(failure)
    assert len(write.requests) == 1
    assert (result.summary, result.failure) == (None, kind)
    assert result.error
    assert "\n" not in result.error
    with pytest.raises(SummaryError) as caught:
        await SummarizerAgent(model(failure)).summarize([], "No summaries yet.", "Fever.")
    assert str(caught.value) == result.error


async def test_a_model_that_ignores_the_form_gives_no_summary() -> None:
    with pytest.raises(SummaryError, match="no SummaryDraft"):
        await SummarizerAgent(FunctionModel(lambda request: "All is well.")).summarize([], "", "x")


# Prompts


async def test_the_seeds_method_says_what_is_new() -> None:
    write = model(STABLE)
    agent = SummarizerAgent(write, case_id="case-7")
    summary = await agent.summarize(["- One.", "- Two."], "- Three.", "| doctor | Fever.")
    assert summary.status_action == STABLE.status_action
    request = write.requests[0]
    prompt = request.messages[1].content
    places = [prompt.index(text) for text in ("- One.\n- Two.", "- Three.", "<trace")]
    assert places == sorted(places)
    assert newest_block(request) == [("", "| doctor | Fever.")]
    assert request.schema is SummaryDraft
    labels = request.labels
    assert (labels.case_id, labels.phase, labels.role) == ("case-7", "exaid", LLMRole.SUMMARIZER)


async def test_the_prompt_shows_each_length_and_has_no_number_to_copy() -> None:
    _, write = await written(STABLE)
    told, brace, example = write.requests[0].messages[0].content.rpartition("{")
    assert not re.search(r"\d", told)
    assert PLACEHOLDER in told
    assert "at most twice" in told
    shown = SummaryDraft.model_validate_json(brace + example)
    for name, limit in LIMITS.items():
        assert 0.3 * limit < len(getattr(shown, name)) <= limit / 2 + 2, name


async def test_the_prompt_says_once_what_each_field_is_for() -> None:
    _, write = await written(STABLE)
    system = write.requests[0].messages[0].content
    uses = re.findall(r"^(\w+): (.+)$", system, re.MULTILINE)
    assert [name for name, _ in uses] == list(LIMITS)
    assert all(system.count(name) == 2 for name in LIMITS), "once told, once shown"
    assert len(set(dict(uses).values())) == len(LIMITS)


async def test_segments_are_told_by_agent_and_in_order() -> None:
    result, write = await written(STABLE)
    assert data_blocks(write.requests[0]) == [[("doctor", "Fever."), ("nurse", "38.9 °C.")]]
    assert result.prompt == write.requests[0].messages[1].content


# Calls that fail


async def test_the_same_text_after_a_failed_call_is_another_request() -> None:
    full = draft(**dict.fromkeys(LIMITS, 0))
    llm = model(DOWN, TOO_LONG, full, full)
    agent = SummarizerAgent(llm, case_id="case-1")
    for segments in (SEGMENTS, SEGMENTS[:1], SEGMENTS, SEGMENTS[:1]):
        await agent.write([], "", segments)
    assert [request.repeat for request in llm.requests] == [0, 0, 1, 0]
