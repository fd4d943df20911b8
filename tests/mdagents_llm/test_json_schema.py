"""Schemas as the providers want them, and the bound on a reply that follows from one."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from mdagents.agents import replies
from mdagents_llm.json_schema import longest_reply, reply_schema, without_string_lengths


class Inner(BaseModel):
    title: str = Field(json_schema_extra={"minLength": 1, "maxLength": 9})
    default: bool


class Outer(BaseModel):
    reasoning: str = Field(json_schema_extra={"minLength": 5, "maxLength": 40})
    kind: Literal["x", "longest"]
    inner: Annotated[list[Inner], Field(min_length=2, max_length=3)]
    number: int | None = Field(default=None, ge=0, le=5)


def test_references_are_resolved_and_everything_is_required() -> None:
    schema = reply_schema(Outer)
    text = json.dumps(schema)
    assert "$ref" not in text
    assert "$defs" not in text
    assert schema["required"] == ["reasoning", "kind", "inner", "number"]
    items = schema["properties"]["inner"]["items"]
    assert list(items["properties"]) == ["title", "default"], "properties of that name stay"
    assert items["additionalProperties"] is False
    assert schema["properties"]["number"]["anyOf"][0]["maximum"] == 5


def test_string_lengths_can_be_left_out_and_nothing_else_changes() -> None:
    assert "minLength" in json.dumps(reply_schema(Outer))
    stripped = json.dumps(without_string_lengths(Outer))
    assert "Length" not in stripped
    assert "maxItems" in stripped
    assert '"title"' in stripped


def longest_value(schema: dict[str, Any]) -> Any:
    """A value of the schema that is as long as it can be."""
    if "enum" in schema:
        return max(schema["enum"], key=len)
    if "anyOf" in schema:
        return max((longest_value(option) for option in schema["anyOf"]), key=lambda v: len(str(v)))
    match schema["type"]:
        case "object":
            return {name: longest_value(value) for name, value in schema["properties"].items()}
        case "array":
            return [longest_value(schema["items"])] * schema["maxItems"]
        case "string":
            return "x" * schema["maxLength"]
        case "integer":
            return schema["maximum"]
        case "number":
            return 0.12345678901234567
        case kind:
            return {"boolean": False, "null": None}[kind]


@pytest.mark.parametrize(
    "model",
    [
        Outer,
        replies.triage(40),
        replies.recruitment(10),
        replies.ranked_recruitment(3),
        replies.opinion("ABCD", 300),
        replies.participation(3, 200),
        replies.teams(3, 3),
        replies.delegation(50),
        replies.investigation(100),
        replies.team_report("ABCDEFGHIJ", 100),
        replies.verdict("AB", 300),
    ],
    ids=lambda model: model.__name__,
)
def test_no_compact_reply_is_longer_than_the_bound(model: type[BaseModel]) -> None:
    value = longest_value(reply_schema(model))
    text = json.dumps(value, separators=(",", ":"))
    model.model_validate(value)
    assert len(text) <= longest_reply(model) <= 1.3 * len(text) + 40


def test_a_schema_without_a_bound_is_refused() -> None:
    class Unbounded(BaseModel):
        text: str

    with pytest.raises(ValueError, match="maxLength"):
        longest_reply(Unbounded)


def test_a_reply_names_only_options_of_the_question() -> None:
    assert reply_schema(replies.opinion("ABC", 50))["properties"]["answer"]["enum"] == [
        "A",
        "B",
        "C",
    ]


@pytest.mark.parametrize(
    ("given", "letter"), [("b", "B"), (" B ", "B"), ("B) Heparin", "B"), ("(B)", "B")]
)
def test_a_letter_is_read_where_it_is_clear(given: str, letter: str) -> None:
    assert (
        replies.verdict("ABCD", 50).model_validate({"analysis": "x", "answer": given}).answer
        == letter
    )


@pytest.mark.parametrize("given", ["E", "", "A or B", "not B", "none", "a patient", None, 3])
def test_a_letter_is_not_guessed(given: object) -> None:
    with pytest.raises(ValueError, match="answer"):
        replies.verdict("ABCD", 50).model_validate({"analysis": "x", "answer": given})


@pytest.mark.parametrize(("given", "expected"), [(0.8, 0.8), (1, 1.0), (85, 0.85), (0, 0.0)])
def test_a_confidence_may_be_in_percent(given: float, expected: float) -> None:
    reply = {"reasoning": "x", "answer": "A", "confidence": given}
    assert replies.opinion("AB", 50).model_validate(reply).confidence == expected


@pytest.mark.parametrize("given", [-1, 1.5, 9, 101, "high"])
def test_a_confidence_is_not_guessed(given: object) -> None:
    reply = {"reasoning": "x", "answer": "A", "confidence": given}
    with pytest.raises(ValueError, match="confidence"):
        replies.opinion("AB", 50).model_validate(reply)
