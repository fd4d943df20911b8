"""The form of a summary."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from exaid_core.placeholders import PLACEHOLDER, TOO_LONG
from exaid_core.schema.agent_summary import LIMITS, AgentSummary, SummaryDraft, excess, seq_ranges
from mdagents_llm.json_schema import longest_reply, reply_schema, without_string_lengths

FIELDS: dict[str, Any] = {
    "status_action": "Chest pain; aspirin given.",
    "key_findings": "ST elevation V1-V4.",
    "differential_rationale": "Infarction rather than dissection.",
    "uncertainty_confidence": "High confidence.",
    "recommendation_next_step": "Angiography.",
    "agent_contributions": "expert-1: diagnosis.",
}


def in_words(key: str) -> str:
    return key.replace("_", " ")


def in_camel_case(key: str) -> str:
    return key[0] + key.title().replace("_", "")[1:]


def with_slashes(key: str) -> str:
    return key.title().replace("_", "/", 1).replace("_", " ")


def in_bold(key: str) -> str:
    return f"**{with_slashes(key)}:**"


@pytest.mark.parametrize(
    "spell", [str.title, str.upper, in_words, in_camel_case, with_slashes, in_bold]
)
def test_a_draft_may_spell_its_fields_in_another_way(spell: Callable[[str], str]) -> None:
    """A finding must not read "None reported." for its key (jaseci-labs/jac 7442)."""
    for changed in ([*FIELDS], ["recommendation_next_step"]):
        reply = {spell(key) if key in changed else key: text for key, text in FIELDS.items()}
        assert SummaryDraft.model_validate_json(json.dumps(reply)) == SummaryDraft(**FIELDS)


def test_of_two_spellings_of_a_field_its_own_counts() -> None:
    reply = {**FIELDS, "Key Findings": "Another.", "Status Action": FIELDS["status_action"]}
    del reply["status_action"]
    assert SummaryDraft.model_validate(reply) == SummaryDraft(**FIELDS)


def test_the_six_fields_and_their_limits() -> None:
    assert dict(LIMITS) == {
        "status_action": 150,
        "key_findings": 180,
        "differential_rationale": 210,
        "uncertainty_confidence": 120,
        "recommendation_next_step": 180,
        "agent_contributions": 150,
    }
    assert list(SummaryDraft.model_fields) == list(LIMITS)
    assert list(AgentSummary.model_fields)[:6] == list(LIMITS)


@pytest.mark.parametrize("form", [SummaryDraft, AgentSummary])
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("  two\r\nlines\tand \u202ebidi\u202c\x07 ", "two lines and bidi"),
        (" \n ", PLACEHOLDER),
        ("\u200b", PLACEHOLDER),
        ("", PLACEHOLDER),
        (None, PLACEHOLDER),
        ([], PLACEHOLDER),
        (["one", " ", "two\nlines"], "one; two lines"),
        ("None reported.", PLACEHOLDER),
    ],
)
def test_a_field_is_one_line_and_never_empty(
    form: type[SummaryDraft | AgentSummary], value: object, text: str
) -> None:
    summary = form.model_validate({**FIELDS, "key_findings": value})
    assert summary.key_findings == text


@pytest.mark.parametrize("value", [3, True, {"a": "b"}, ["a", 1], [["a"]]])
def test_a_field_that_is_no_text_is_refused(value: object) -> None:
    with pytest.raises(ValidationError, match="key_findings"):
        SummaryDraft.model_validate({**FIELDS, "key_findings": value})


def test_missing_fields_have_the_placeholder() -> None:
    draft = SummaryDraft.model_validate_json('{"key_findings": "Fever."}')
    assert draft.key_findings == "Fever."
    assert {getattr(draft, name) for name in LIMITS} == {"Fever.", PLACEHOLDER}
    assert {getattr(AgentSummary(), name) for name in LIMITS} == {PLACEHOLDER}


@pytest.mark.parametrize("reply", ["{}", '{"summary": "Fever."}', "[]", '"Fever."'])
def test_a_reply_without_any_of_the_fields_is_no_summary(reply: str) -> None:
    with pytest.raises(ValidationError):
        SummaryDraft.model_validate_json(reply)


def test_a_draft_ignores_what_nobody_asked_for_and_a_summary_refuses_it() -> None:
    SummaryDraft.model_validate({**FIELDS, "mood": "good"})
    with pytest.raises(ValidationError, match="mood"):
        AgentSummary.model_validate({**FIELDS, "mood": "good"})


def test_a_summary_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        AgentSummary(**FIELDS).key_findings = "Other."


def test_excess_counts_characters_over_the_limit() -> None:
    at_limit: dict[str, Any] = {name: "x" * limit for name, limit in LIMITS.items()}
    assert excess(SummaryDraft(**at_limit)) == {}
    over = {**at_limit, "status_action": "x" * 151, "agent_contributions": "ü" * 160}
    assert excess(SummaryDraft(**over)) == {"status_action": 1, "agent_contributions": 10}


def test_a_summary_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValidationError, match="key_findings: 1 characters over the limit of 180"):
        AgentSummary(**{**FIELDS, "key_findings": "x" * 181})


def test_the_uncut_text_is_kept() -> None:
    cut = "Fever. " + "Cough and malaise. " * 20
    whole = "Give tPA only if there is no hemorrhage " * 10
    summary = AgentSummary.from_draft(SummaryDraft(key_findings=cut, status_action=whole))
    assert summary.key_findings.startswith("Fever. Cough and malaise. Cough")
    assert summary.status_action == TOO_LONG
    assert summary.full_texts == {"status_action": whole.strip(), "key_findings": cut.strip()}
    assert summary.full_key_findings == summary.full_texts["key_findings"]
    assert summary.text_of("status_action") == whole.strip()
    assert summary.text_of("key_findings") == summary.key_findings
    assert summary.full_agent_contributions == ""


def test_white_space_is_not_measured() -> None:
    draft = SummaryDraft(**{**FIELDS, "status_action": "\n" + "x  y" * 37 + "\n" * 100})
    assert excess(draft) == {}


def test_a_draft_that_is_too_long_is_read_all_the_same() -> None:
    draft = SummaryDraft(**{**FIELDS, "key_findings": "x" * 5_000})
    assert len(draft.key_findings) == 5_000


def test_the_schema_that_a_model_sees_is_small_and_bounded() -> None:
    schema = reply_schema(SummaryDraft)
    assert list(schema["properties"]) == schema["required"] == list(LIMITS)
    for name, limit in LIMITS.items():
        # Above the limit, so that a reply that runs into it is seen to be too long.
        assert limit < schema["properties"][name]["maxLength"] <= limit + 50
    assert set(without_string_lengths(SummaryDraft)["properties"]["key_findings"]) == {"type"}
    assert longest_reply(SummaryDraft) < 1_500
    described = SummaryDraft.model_json_schema()["properties"]
    for name, limit in LIMITS.items():
        assert described[name]["description"].endswith(f"<= {limit} characters")


def test_the_older_names_read_the_same_fields() -> None:
    summary = AgentSummary(**FIELDS, agents=("expert-1", "expert-10"))
    assert summary.action == FIELDS["status_action"]
    assert summary.reasoning == FIELDS["differential_rationale"]
    assert summary.findings == FIELDS["key_findings"]
    assert summary.next_steps == FIELDS["recommendation_next_step"]
    assert summary.agents == ("expert-1", "expert-10")
    with pytest.raises(ValidationError, match="frozen"):
        summary.action = "Other."  # type: ignore[misc]


def test_semantics_text_leaves_the_contributions_out() -> None:
    *clinical, _ = FIELDS.values()
    assert AgentSummary(**FIELDS).semantics_text() == "\n".join(clinical)


@pytest.mark.parametrize(
    "ranges", [((3, 1),), ((1, 3), (2, 5)), ((4, 5), (1, 2)), ((1, 2), (3, 4)), ((1, 1), (1, 1))]
)
def test_ranges_that_do_not_ascend_are_refused(ranges: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(ValidationError, match="ascend"):
        AgentSummary(source_seqs=ranges)


@given(st.lists(st.integers(0, 60)))
def test_ranges_hold_exactly_the_sequence_numbers(seqs: list[int]) -> None:
    ranges = seq_ranges(seqs)
    assert [seq for first, last in ranges for seq in range(first, last + 1)] == sorted(set(seqs))
    assert AgentSummary(source_seqs=ranges).source_seqs == ranges


_FIELDS: Any = st.fixed_dictionaries(
    {name: st.text(st.characters(), max_size=100) for name in LIMITS}
)


@pytest.mark.sweep
@given(_FIELDS, st.lists(st.text(), max_size=3), st.booleans())
def test_a_summary_survives_being_written_down(
    fields: dict[str, Any], names: list[str], missing: bool
) -> None:
    summary = AgentSummary(
        **fields,
        agents=tuple(names),
        source_seqs=((0, 3), (7, 7)),
        truncated_fields=("key_findings",),
        unsupported_terms=tuple(names),
        dissent_missing=missing,
        remarks=tuple(names),
    )
    written = summary.model_dump_json()
    assert AgentSummary.model_validate_json(written) == summary
    assert json.loads(written)["schema_version"] == "1.0.0"
    assert SummaryDraft.model_validate_json(written).key_findings == summary.key_findings
    assert all(
        getattr(summary, name) == " ".join(getattr(summary, name).split()) for name in LIMITS
    )


def test_the_older_form_with_five_fields_becomes_a_summary() -> None:
    summary = AgentSummary.from_five_fields(
        agents=[" CardiologyAgent", "LaboratoryAgent", "CardiologyAgent"],
        action="Troponin ordered.",
        reasoning="Infarction is likely.",
        findings="ST elevation.",
        next_steps="Angiography.",
    )
    assert summary.agents == ("CardiologyAgent", "LaboratoryAgent")
    assert (summary.action, summary.reasoning) == ("Troponin ordered.", "Infarction is likely.")
    assert (summary.findings, summary.next_steps) == ("ST elevation.", "Angiography.")
    assert summary.uncertainty_confidence == summary.agent_contributions == PLACEHOLDER
    assert summary.truncated_fields == ()


def test_what_the_older_form_leaves_out_has_the_placeholder() -> None:
    summary = AgentSummary.from_five_fields(("doctor",), "Waiting.", "")
    assert summary.reasoning == summary.findings == summary.next_steps == PLACEHOLDER


def test_too_long_text_of_the_older_form_is_cut_like_that_of_a_model() -> None:
    action = "aspirin 300 mg was given and " * 10
    summary = AgentSummary.from_five_fields(["doctor"], action, "fine", next_steps="go on " * 100)
    assert summary.truncated_fields == ("status_action", "recommendation_next_step")
    assert excess(summary) == {}
    assert summary.status_action == TOO_LONG
    assert summary.full_status_action == action.strip()


@pytest.mark.parametrize("agents", ["doctor", [""], ["a\nb"], [3], None])
def test_agents_of_the_older_form_that_are_none_are_refused(agents: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        AgentSummary.from_five_fields(agents, "Waiting.", "None yet.")
