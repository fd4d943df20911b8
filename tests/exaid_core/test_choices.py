"""Summaries of a model that is too small to write: it chooses among what agents said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exaid_core.placeholders import PLACEHOLDER
from exaid_core.schema.agent_summary import LIMITS, SummaryDraft
from exaid_core.segments import Said
from exaid_core.summarizer_agent.choices import form_of_choices
from exaid_core.summarizer_agent.summarizer_agent import SummarizerAgent
from mdagents_llm.chat import ChatReply, ChatRequest, StopReason, TokenUsage
from mdagents_llm.json_schema import reply_schema
from tests.support.function_model import FunctionModel


class SmallModel(FunctionModel):
    """As a model whose entry in `model_configs.yaml` says so."""

    is_small = True


SAID = [
    Said(
        "surgeon", "The appendix has a diameter of 11 mm. Acute appendicitis is likely.\nAnswer: C"
    ),
    Said("internist", "Antibiotics should be started before surgery. I agree with him.\nAnswer: B"),
]


def choices(said: list[Said]) -> dict[str, list[str]]:
    """Field -> what the grammar lets the model write."""
    properties: dict[str, Any] = reply_schema(form_of_choices(said))["properties"]
    return {name: field["enum"] for name, field in properties.items()}


def test_each_field_is_a_choice_of_sentences_of_its_kind() -> None:
    assert choices(SAID) == {
        "status_action": ["I agree with him."],
        "key_findings": ["The appendix has a diameter of 11 mm."],
        "differential_rationale": ["Acute appendicitis is likely."],
        "uncertainty_confidence": ["surgeon holds C; internist holds B"],
        "recommendation_next_step": ["Antibiotics should be started before surgery."],
        "agent_contributions": [
            "surgeon: The appendix has a diameter of 11 mm.",
            "surgeon: Acute appendicitis is likely.",
            "internist: Antibiotics should be started before surgery.",
            "internist: I agree with him.",
        ],
    }


def test_of_what_nobody_said_there_is_the_placeholder_alone() -> None:
    found = choices([Said("router", "Because of the rare disease that he has.")])
    assert found["recommendation_next_step"] == [PLACEHOLDER]
    assert found["uncertainty_confidence"] == [PLACEHOLDER]


def test_an_answer_is_told_as_held_and_not_as_a_sentence() -> None:
    found = choices([Said("surgeon", "Answer: C")])
    assert found["uncertainty_confidence"] == ["surgeon holds C"]
    assert all(found[name] == [PLACEHOLDER] for name in LIMITS if name != "uncertainty_confidence")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "He is calm. Ruled out on CT:\n- Embolism of the left lung\n"
            "- Dissection of the aorta\n\nHe has no fever.",
            {
                "Ruled out on CT: Embolism of the left lung",
                "Ruled out on CT: Dissection of the aorta",
                "He has no fever.",
            },
        ),
        (
            "Do not do this:\n\n1. Give tPA within one hour\n\n2. Start heparin before the CT",
            {
                "Do not do this: Give tPA within one hour",
                "Do not do this: Start heparin before the CT",
            },
        ),
        ("If CT is clear:\nGive tPA within one hour", {"If CT is clear: Give tPA within one hour"}),
        (
            "**Family history**\n* Father died very young",
            {"Family history: Father died very young"},
        ),
        (
            "- Ruled out:\n  - Embolism of the left lung\n- Give aspirin by mouth",
            {"Ruled out: Embolism of the left lung", "- Give aspirin by mouth"},
        ),
        (
            "1. Ruled out:\n- Embolism of the left lung\n2. Give aspirin by mouth",
            {"Ruled out: Embolism of the left lung", "Give aspirin by mouth"},
        ),
        ("Causes:\n\n- **Sepsis** - This may be it", {"- **Sepsis** - This may be it"}),
        ("Ruled out so far:\n\n### Plan\nGive aspirin by mouth", {"Give aspirin by mouth"}),
        ("Plan:\n- Give aspirin by mouth", {"- Give aspirin by mouth"}),
        # options that are only repeated, and what is struck out
        ("A) Start heparin right now\n(B) Give tPA within one hour", set()),
        ("Option C: Observe him at home\nD) Surgery was not needed", {"D) Surgery was not needed"}),
        ("a) Start heparin right now", {"a) Start heparin right now"}),
        ("~~Give heparin right now~~", set()),
        (
            "His temp was ~~38~~ 39. He is in septic shock.",
            {"His temp was 39.", "He is in septic shock."},
        ),
        ("E. coli in the urine culture", {"E. coli in the urine culture"}),
        ("**C. difficile** toxin in stool", {"**C. difficile** toxin in stool"}),
        ("A: sepsis from a pneumonia", {"A: sepsis from a pneumonia"}),  # of a SOAP note
        ("B: RR 40 on air\nC: BP 70/40, pale", {"B: RR 40 on air", "C: BP 70/40, pale"}),
        ("****\nGive heparin right now", {"Give heparin right now"}),
    ],
)
def test_a_sentence_keeps_the_heading_that_it_depends_on(text: str, expected: set[str]) -> None:
    found = choices([Said("surgeon", text)])
    told = {one for name in found if name != "agent_contributions" for one in found[name]}
    assert {one for one in told if not one.endswith(":")} - {PLACEHOLDER} == expected
    contributions = {one.removeprefix("surgeon: ") for one in found["agent_contributions"]}
    assert {one for one in contributions if not one.endswith(":")} - {PLACEHOLDER} == expected


def test_a_heading_reaches_into_the_next_chunk_of_its_agent() -> None:
    chunks = ["Ruled out:\n- Embolism of the left lung", "- Dissection of the aorta"]
    said = [Said("surgeon", chunks[0]), Said("nurse", "He is calm."), Said("surgeon", chunks[1])]
    assert "Ruled out: Dissection of the aorta" in choices(said)["status_action"]


@pytest.mark.sweep
@given(st.lists(st.builds(Said, st.text(max_size=20), st.text(max_size=2_000)), max_size=6))
def test_each_choice_keeps_to_its_limit_whatever_is_said(said: list[Said]) -> None:
    for name, allowed in choices(said).items():
        assert allowed
        assert all(0 < len(choice) <= LIMITS[name] for choice in allowed)
        assert len(set(allowed)) == len(allowed)


async def test_only_a_small_model_is_held_to_them() -> None:
    forms = []

    def answer(request: ChatRequest) -> ChatReply:
        assert request.schema is not None
        forms.append(request.schema)
        allowed = reply_schema(request.schema)["properties"]
        fields = {name: field.get("enum", ["The appendix."])[0] for name, field in allowed.items()}
        parsed = request.schema(**fields)
        text = json.dumps(fields)
        return ChatReply(text, TokenUsage(10, 5), StopReason.STOP, "function", parsed)

    summaries = [
        (await SummarizerAgent(model, monotonic=lambda: 0.0).write([], "", SAID)).summary
        for model in (FunctionModel(answer), SmallModel(answer))
    ]
    assert forms[0] is SummaryDraft
    assert forms[1] is not SummaryDraft
    assert summaries[1] is not None
    assert summaries[1].uncertainty_confidence == "surgeon holds C; internist holds B"
    assert summaries[1].emptied_fields == ()
