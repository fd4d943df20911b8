"""A summary as text: by the templates that are there, and by one's own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exaid_core.agent_names import AgentNames
from exaid_core.schema.agent_summary import LIMITS, AgentSummary
from exaid_core.templates import BOX, LABELS, SIX_LINES, flags, render_summary, texts_of

SUMMARY = AgentSummary(
    status_action="Initial diagnostic hypothesis generation",
    key_findings="Elevated troponin suggests acute coronary syndrome",
    differential_rationale="Multiple agents evaluating clinical presentation",
    recommendation_next_step="Order ECG, cardiac enzymes, chest X-ray",
    agents=("Orchestrator", "CardiologyAgent", "LaboratoryAgent"),
    source_seqs=((1, 3), (7, 7)),
)
FLAGGED = SUMMARY.model_copy(
    update={
        "unsupported_terms": ("7.5", "5 mg"),
        "truncated_fields": ("agent_contributions",),
        "dissent_missing": True,
        "remarks": ("no dose",),
    }
)
ALL_FLAGS = (
    "unsupported: 7.5, 5 mg · the agents disagree, and this does not say so · cut: Agents · no dose"
)


def test_six_labelled_lines_are_the_default() -> None:
    assert render_summary(SUMMARY).split("\n") == [
        "Status / action: Initial diagnostic hypothesis generation",
        "Key findings: Elevated troponin suggests acute coronary syndrome",
        "Differential: Multiple agents evaluating clinical presentation",
        "Uncertainty: None reported.",
        "Next step: Order ECG, cardiac enzymes, chest X-ray",
        "Agents: None reported.",
    ]
    assert render_summary(FLAGGED).split("\n") == [ALL_FLAGS, *render_summary(SUMMARY).split("\n")]
    assert list(LABELS) == list(LIMITS)


def test_when_every_field_is_cut_they_are_not_listed() -> None:
    assert flags(SUMMARY.model_copy(update={"truncated_fields": tuple(LABELS)})) == [
        "cut: all fields"
    ]


def test_the_box_of_the_older_form() -> None:
    assert render_summary(SUMMARY, BOX) == (
        "┌─ Agents: Orchestrator, CardiologyAgent, LaboratoryAgent\n"
        "├─ Action: Initial diagnostic hypothesis generation\n"
        "├─ Reasoning: Multiple agents evaluating clinical presentation\n"
        "├─ Findings: Elevated troponin suggests acute coronary syndrome\n"
        "└─ Next Steps: Order ECG, cardiac enzymes, chest X-ray"
    )
    assert f"├─ Flags: {ALL_FLAGS}\n└─" in render_summary(FLAGGED, BOX)


def test_agents_have_their_names() -> None:
    names = AgentNames({"CardiologyAgent": "Dr Chen"})
    names.register(" Orchestrator ", "the lead")
    assert render_summary(SUMMARY, "$agents", names) == "the lead, Dr Chen, LaboratoryAgent"


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("$source_seqs / $dissent_missing", "1–3, 7 / no"),
        ("cost: $$5 $action!", "cost: $5 Initial diagnostic hypothesis generation!"),
        ("${action}s", "Initial diagnostic hypothesis generations"),
        ("a\n\nb\n", "a\n\nb\n"),
        ("a\nflags: $flags $remarks\nb", "a\nb"),
        ("$flags", ""),
        ("$uncertainty_confidence", "None reported."),
        ("", ""),
    ],
)
def test_a_template_of_ones_own(template: str, text: str) -> None:
    assert render_summary(SUMMARY, template) == text


@pytest.mark.parametrize("template", ["$mood", "a\n$Flags", "5 $", "${action", "$ action", "$1"])
def test_a_template_that_cannot_be_filled_in_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match="template has"):
        render_summary(SUMMARY, template)


def test_text_of_an_agent_is_never_read_as_a_template() -> None:
    summary = AgentSummary(status_action="$agents ${flags} $$", agents=("$action",))
    assert render_summary(summary, "$status_action, $agents") == "$agents ${flags} $$, $action"


_TEXT: Any = st.text(st.characters())
_HAND_MADE: Any = st.builds(
    AgentSummary,
    **dict.fromkeys(LIMITS, _TEXT),
    **dict.fromkeys(
        ("agents", "truncated_fields", "unsupported_terms", "remarks"),
        st.lists(_TEXT, max_size=3).map(tuple),
    ),
)


@pytest.mark.sweep
@given(_HAND_MADE)
def test_no_text_adds_a_line(summary: AgentSummary) -> None:
    lines = 1 + len(LABELS) if any(flags(summary)) else len(LABELS)
    assert len(render_summary(summary, SIX_LINES).splitlines()) == lines
    assert all(len(text.splitlines()) <= 1 for text in texts_of(summary).values())


@pytest.mark.parametrize("name", ["", " ", "\u202e", "a\nb", "x" * 101])
def test_a_name_that_cannot_be_shown_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="agent id"):
        AgentNames({"doctor": name})
    with pytest.raises(ValueError, match="agent id"):
        AgentNames({name: "Dr Chen"})


def test_an_agent_without_a_name_goes_by_its_id() -> None:
    names = AgentNames({"doctor": "Dr Chen"})
    assert names.name_of(" doctor\u202e") == "Dr Chen"
    assert names.name_of("nurse") == "nurse"
    assert names.name_of("") == ""
    names.register("doctor", "Dr Lee")
    assert names.name_of("doctor") == "Dr Lee"
