"""The schema filler: whatever a reply schema asks for, the value satisfies it, always the same."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from exaid_core.buffer_agent.buffer_agent import BufferAnalysis
from exaid_core.schema.agent_summary import SummaryDraft
from mdagents.agents import replies
from mdagents_llm.json_schema import JsonSchema, reply_schema, without_string_lengths
from tests.fake_provider import MISSING, FieldPath, fill
from tests.fake_provider.schema_filler import UnsupportedSchemaError
from tests.support.medical_prose import SPECIALTIES, prose

KEYS = st.binary(max_size=64)
REPLIES: list[type[BaseModel]] = [
    replies.triage(30),
    replies.recruitment(3),
    replies.ranked_recruitment(5),
    replies.opinion("ABCDE", 50),
    replies.participation(3, 40),
    replies.teams(3, 3),
    replies.delegation(40),
    replies.investigation(60),
    replies.team_report("ABCD", 60),
    replies.choice("ABC"),
    replies.verdict("ABCD", 100),
    BufferAnalysis,
    SummaryDraft,
]


class Expert(BaseModel):
    role: str
    expertise: str = Field(min_length=10, max_length=60)
    reports_to: str | None = None


class Everything(BaseModel):
    """All that a schema of pydantic's may ask for and the filler knows."""

    experts: list[Expert] = Field(min_length=3, max_length=3)
    answer: Literal["A", "B", "C", "D"]
    only: Literal["constant"]
    confidence: float = Field(ge=0, le=1)
    strictly: float = Field(ge=2, le=2.0001)
    between: float = Field(gt=2, lt=2.0001)
    even: int = Field(ge=3, le=8)
    above: int = Field(gt=-3, lt=-1)
    agreed: bool
    denied: Literal[False]
    grade: Literal[1, 2]
    long: str = Field(min_length=3000)
    short: str = Field(max_length=3)
    tricks: list[str] = Field(max_length=3)
    none_at_all: list[str] = Field(max_length=0)
    either: Annotated[int, Field(ge=3)] | str
    nothing: None


EVERYTHING = reply_schema(Everything)


@pytest.mark.parametrize("model", [*REPLIES, Everything], ids=lambda model: model.__name__)
@settings(max_examples=40)
@given(key=KEYS)
def test_fills_every_reply_schema(model: type[BaseModel], key: bytes) -> None:
    model.model_validate_json(json.dumps(fill(reply_schema(model), key)))
    fill(without_string_lengths(model), key)


def test_another_key_gives_another_value_and_the_same_the_same() -> None:
    assert fill(EVERYTHING, b"1") == fill(EVERYTHING, b"1") != fill(EVERYTHING, b"2")


@pytest.mark.sweep
@given(key=KEYS, given_answer=st.sampled_from("ABCD"))
def test_what_is_given_stays_and_the_rest_does_not_change(key: bytes, given_answer: str) -> None:
    made = fill(EVERYTHING, key)
    assert fill(EVERYTHING, key, given={"answer": given_answer}) == {**made, "answer": given_answer}


def test_completes_dicts_inside_lists() -> None:
    experts = fill(EVERYTHING, b"", given={"experts": [{"role": "Nurse"}, {}]})["experts"]
    assert len(experts) == 2
    assert experts[0]["role"] == "Nurse"
    assert all(expert.keys() == Expert.model_fields.keys() for expert in experts)


def test_of_alternatives_takes_the_one_that_has_what_is_given() -> None:
    said = {"type": "object", "properties": {"say": {"type": "string"}}}
    kind = {"type": "string", "enum": ["b"]}
    done = {"type": "object", "properties": {"kind": kind, "do": {"type": "integer"}}}
    schema: JsonSchema = {"type": "object", "properties": {"x": {"anyOf": [said, done]}}}
    for key in (b"1", b"2", b"3", b"4"):
        assert fill(schema, key, given={"x": {"say": "a"}}) == {"x": {"say": "a"}}
        assert fill(schema, key, given={"x": {"kind": "b"}})["x"].keys() == {"kind", "do"}


def test_keeps_what_is_given_even_where_it_is_wrong() -> None:
    given_value = {"answer": "Z", "experts": "none", "unknown": 1, "either": None}
    value = fill(EVERYTHING, b"", given=given_value)
    assert {name: value[name] for name in given_value} == given_value


def test_policy_sees_every_field_once_and_may_decide() -> None:
    seen: list[FieldPath] = []

    def policy(path: FieldPath) -> Any:
        seen.append(path)
        return "C" if path == ("answer",) else MISSING

    assert fill(EVERYTHING, b"", policy=policy)["answer"] == "C"
    assert {(), ("experts", 2, "role")} <= set(seen)
    assert len(seen) == len(set(seen))


def test_free_text_has_the_words_asked_for() -> None:
    schema = without_string_lengths(Expert)
    made = [fill(schema, bytes([n]), words=17, words_by_field={"reports_to": 5}) for n in range(20)]
    assert {len(value["expertise"].split()) for value in made} == {17}
    assert {len(value["reports_to"].split()) for value in made if value["reports_to"]} == {5}
    assert None in {value["reports_to"] for value in made}


def test_recruited_roles_differ() -> None:
    for number in range(50):
        roles = {expert["role"] for expert in fill(EVERYTHING, bytes([number]))["experts"]}
        assert len(roles) == 3
        assert roles <= set(SPECIALTIES)


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"type": "string", "pattern": "^[A-E]$"}, "pattern"),
        ({"$ref": "#/$defs/Expert"}, "ref"),
        ({"type": "array", "prefixItems": [{"type": "null"}]}, "prefixItems"),
        ({"type": "integer", "multipleOf": 2}, "multipleOf"),
        ({"type": ["integer", "null"]}, "integer"),
        ({}, "None"),
    ],
)
def test_refuses_what_no_reply_asks_for(schema: JsonSchema, named: str) -> None:
    with pytest.raises(UnsupportedSchemaError, match=named):
        fill({"type": "object", "properties": {"x": schema}}, b"")


@given(words=st.integers(1, 500), start=st.integers(0, 2**64))
def test_prose_has_exactly_the_words_asked_for(words: int, start: int) -> None:
    text = prose(words, start)
    assert len(text.split()) == words
    assert text.endswith(".")
