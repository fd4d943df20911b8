"""Whatever a client sends is either a question or one line about what is wrong with it."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mdagents.serve.errors import ApiError
from mdagents.serve.requests import Ask, read_chat, read_responses
from mdagents.serve.structured import plan_filling
from tests.mdagents.serve.served import MODEL, PROMPT

OPTIONS = {"A": "Retinol", "B": "Thiamine", "C": "Ascorbic acid"}
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=6,
)
_CONTENT = st.sampled_from([PROMPT, "What is scurvy?", "", "A. x\nB. y"]) | st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["text", "input_text", "image_url", "input_image", "file"])},
        optional={"text": st.just(PROMPT) | _JSON, "image_url": _JSON | st.just({"url": "data:,"})},
    ),
    max_size=2,
)
_TURN = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "system", "developer", "tool"]),
        "content": _CONTENT,
    }
)
_FORMAT = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "json_schema", "json_object"])},
    optional={"json_schema": _JSON, "schema": _JSON},
)


def _bodies(required: dict[str, st.SearchStrategy[Any]], *others: str) -> st.SearchStrategy[Any]:
    names = ("stream", "seed", "temperature", "user", "tools", "n", "stop", *others)
    return st.fixed_dictionaries(required, optional=dict.fromkeys(names, _JSON))


@pytest.mark.sweep
@settings(max_examples=40)
@given(
    _bodies(
        {"model": st.just(MODEL), "messages": st.lists(_TURN, max_size=3)},
        "stream_options", "logprobs", "modalities",
    ),
    st.none() | _FORMAT,
)  # fmt: skip
def test_a_body_of_chat_completions(body: dict[str, Any], form: object) -> None:
    _is_read_or_refused(read_chat, body | {"response_format": form})


@settings(max_examples=40)
@given(
    _bodies(
        {"model": st.just(MODEL), "input": _CONTENT | st.lists(_TURN, max_size=3) | _JSON}, "text"
    ),
    st.none() | _FORMAT,
)
def test_a_body_of_responses(body: dict[str, Any], form: object) -> None:
    _is_read_or_refused(read_responses, {"text": {"format": form}} | body)


@pytest.mark.sweep
@given(st.dictionaries(st.text(max_size=9), _JSON, max_size=4))
def test_any_object(body: dict[str, Any]) -> None:
    _is_read_or_refused(read_chat, body)
    _is_read_or_refused(read_responses, body)


def _is_read_or_refused(read: Any, body: dict[str, Any]) -> None:
    refused = None
    try:
        ask = read(body)
    except ApiError as error:
        refused = error
    if refused is None:
        assert isinstance(ask, Ask)
        assert len(ask.question.options) > 1
    else:
        assert refused.status == 400
        assert refused.message


_LETTERS = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "enum": ["A", "B", "C"]},
        {"enum": ["a", "b", "c", "none"]},
        {"$ref": "#/$defs/letter"},
        {"anyOf": [{"$ref": "#/$defs/letter"}, {"type": "null"}]},
        {"type": "string", "enum": list(OPTIONS.values())},
        {"type": "string", "minLength": 1, "maxLength": 1},
        {"type": "string", "maxLength": 0},
        {"type": "integer", "enum": ["A", "B", "C"]},
        {"enum": ["A", "B", "C"], "minLength": 2},
    ]
)
_MORE = st.dictionaries(
    st.sampled_from(["reasoning", "Explanation", "confidence", "steps", "kind", "code"]),
    st.sampled_from(
        [
            {"type": "string"},
            {"type": "string", "maxLength": 5},
            {"type": "string", "minLength": 400},
            {"type": ["string", "null"]},
            {"type": "number", "minimum": 0, "maximum": 1},
            {"anyOf": [{"type": "number"}, {"type": "null"}]},
            {"type": "array", "items": {"type": "string"}},
            {"type": "array", "items": {"type": "string"}, "minItems": 2},
            {"const": "vitamin"},
            {"type": "integer", "const": 1.0},
            {"type": "string", "const": 1},
            {"type": ["string", "null"], "const": None},
            {"type": "string", "maxLength": 0},
            {"type": "string", "minLength": 1},
            {"type": "string", "format": "date"},
        ]
    ),
)


@given(st.sampled_from(["answer", "final_answer", "choice"]), _LETTERS, _MORE, st.booleans())
def test_a_filled_schema_is_valid(
    name: str, letter: dict[str, Any], more: dict[str, Any], is_strict: bool
) -> None:
    properties = {**more, name: letter}
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties) if is_strict else [name],
        "additionalProperties": False,
        "$defs": {"letter": {"type": "string", "enum": ["A", "B", "C"]}},
    }
    try:
        filling = plan_filling(schema, OPTIONS)
    except ApiError:
        assume(False)
    filled = filling.fill("C", OPTIONS["C"], "It is an acid.", 0.8)
    jsonschema_rs.validate(schema, filled)
    assert filled[name] in ("C", "c", "Ascorbic acid")
    assert list(filled) == [one for one in properties if one in filled]


def _schema(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": list(properties)}


LETTER = {"type": "string"}
NUMBER = {"type": "number"}


@pytest.mark.parametrize(
    ("confidence", "expected"),
    [
        (NUMBER, 0.57),
        (NUMBER | {"minimum": 0, "maximum": 1}, 0.57),
        (NUMBER | {"description": "A number in [0, 1]; 0.85 is 85%."}, 0.57),
        (NUMBER | {"description": "Confidence; 1.0 means 100% certain."}, 0.57),
        (NUMBER | {"description": "A fraction, not a percentage."}, 0.57),
        (NUMBER | {"description": "Like 0.9. Must be below 100%."}, 0.57),
        (NUMBER | {"description": "Value between 0 and 0.99, with 1 - 3 decimals."}, 0.57),
        (NUMBER | {"description": "0 means 0% and 1 means 100%."}, 0.57),
        (NUMBER | {"description": "0-1 (0 to 100%)"}, 0.57),
        (NUMBER | {"description": "From 0.0 (low) to 1.0 (high), 0 to 2 decimals."}, 0.57),
        (NUMBER | {"maximum": 1, "description": "0.85 for 85% sure. Use 1 - 3 decimals."}, 0.57),
        (NUMBER | {"maximum": 1, "description": "Confidence in percent."}, 0.57),
        (NUMBER | {"minimum": 0, "maximum": 100}, 57),  # mskayyali/nodepad#52
        (NUMBER | {"maximum": 100, "description": "From 0 to 100."}, 57),
        (NUMBER | {"description": "Confidence in percent, 0-100"}, 57),
        (NUMBER | {"title": "Confidence (%)"}, 57),
        (NUMBER | {"description": "0 (a guess) to 100 (certain)"}, 57),
        (NUMBER | {"description": "From 1 to 100"}, 57),
        (NUMBER | {"description": "Your certainty as a percentage"}, 57),
        ({"type": "integer", "minimum": 0, "maximum": 100}, 57),
        ({"anyOf": [NUMBER, {"type": "null"}], "description": "0 to 100"}, 57),
        ({"allOf": [NUMBER], "maximum": 100}, 57),
        ({"anyOf": [NUMBER | {"maximum": 10}, {"type": "null"}]}, None),
        (NUMBER | {"description": "Konfidenz in Prozent"}, 57),
        (NUMBER | {"description": "Confiance en pourcentage"}, 57),
        (NUMBER | {"description": "置信度（百分比）"}, 57),
        (NUMBER | {"description": "Konfidenz, nicht in Prozent"}, 0.57),
        (NUMBER | {"description": "Zwischen 0 und 1"}, 0.57),
        (NUMBER | {"description": "A floating-point number with 1 to 3 digits"}, 0.57),
        (NUMBER | {"description": "0.85 if 85 out of 100 such answers are right"}, 0.57),
    ],
)
def test_a_confidence_has_the_scale_of_the_schema(
    confidence: dict[str, object], expected: float | None
) -> None:
    filling = plan_filling(_schema(answer=LETTER, confidence=confidence), OPTIONS)
    assert filling.fill("C", "Ascorbic acid", "", 0.57)["confidence"] == expected


@pytest.mark.parametrize(
    "confidence",
    [
        {"minimum": 0, "maximum": 10},
        {"maximum": 5},
        {"minimum": -1, "maximum": 1},
        {"minimum": 1, "maximum": 100},
        {"description": "From 0 to 10."},
        {"description": "On a scale of 1 to 5."},
        # Public schemas have "Confidence score from 1 to 10" and "1 = Low, 2 = Medium, 3 = High".
        {"description": "Confidence score from 1 to 10"},
        {"description": "1 = Low (a guess), 2 = Medium, 3 = High"},
        {"description": "1 (a guess) to 5 (certain)"},
        {"description": "Confidence out of 10"},
        {"description": "Confidence out of 100"},
        {"description": "Von 1 bis 10"},
        {"description": "Zwischen 0 und 10"},
        {"description": "Confiance de 1 à 5"},
        {"description": "1到5的置信度"},
        {"type": "integer"},
    ],
    ids=str,
)
def test_a_confidence_on_another_scale_is_refused(confidence: dict[str, object]) -> None:
    with pytest.raises(ApiError, match="property 'confidence' unless its scale is 0 to 1"):
        plan_filling(_schema(answer=LETTER, confidence=NUMBER | confidence), OPTIONS)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        # Structured outputs allow a pattern, ai-dynamo/dynamo#15153.
        (
            {"answer": LETTER | {"pattern": "^[A-C]$"}},
            "property 'answer' because of its pattern; leave that out, or give an enum of the",
        ),
        ({"answer": {"enum": ["(A)", "(B)", "(C)"]}}, "because its enum has neither the letters"),
        ({"answer": {"type": "integer"}}, "property 'answer' unless its type is string"),
        ({"answer": LETTER, "explanation": LETTER | {"minLength": 20}}, "because of its minLength"),
        ({"answer": LETTER, "confidence": NUMBER | {"exclusiveMinimum": 0}}, "exclusiveMinimum"),
        ({"answer": LETTER, "confidence": LETTER}, "unless its type is number"),
        ({"answer": {"$ref": "#/$defs/Letter"}}, "'#/$defs/Letter' leads to no schema"),
        ({"answer": {"type": ["string", "null"], "pattern": "C"}}, "because of its pattern"),
        # No value has such bounds, finos/datahelix#880.
        ({"answer": LETTER | {"maxLength": 0}}, "because of its maxLength"),
        ({"answer": LETTER, "reason": LETTER | {"minLength": 1, "maxLength": 0}}, "its maxLength"),
        ({"answer": LETTER | {"enum": list("ABC"), "maxLength": 0}}, "because its enum is not"),
        ({"answer": NUMBER | {"enum": list("ABC")}}, "because its enum is not of its type"),
        ({"answer": LETTER, "kind": LETTER | {"const": 1}}, "because its const is not of its type"),
        ({"answer": LETTER, "kind": NUMBER | {"const": True}}, "because its const is not"),
        ({"answer": LETTER, "kind": LETTER | {"const": None}}, "because its const is not"),
        ({"answer": LETTER, "kind": {"const": "ab", "maxLength": 1}}, "or in its bounds"),
        ({"answer": LETTER, "kind": NUMBER | {"const": 2, "maximum": 1}}, "or in its bounds"),
    ],
    ids=str,
)
def test_a_refusal_names_what_is_in_the_way(properties: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError) as caught:
        plan_filling(_schema(**properties), OPTIONS)
    assert message in caught.value.message
    assert "it fills" not in caught.value.message


def _described(words: str) -> dict[str, Any]:
    return LETTER | {"description": words}


@pytest.mark.parametrize(
    ("properties", "name"),
    [
        ({"answer": LETTER, "choice": _described("The second best option")}, "choice"),
        ({"answer": LETTER, "choice": LETTER}, "answer"),
        ({"answer": LETTER, "answer_letter": LETTER}, "answer"),
        ({"answer": _described("The full text of the chosen option, not the letter")}, "answer"),
        ({"answer": _described("Answer without the letter")}, "answer"),
        ({"selected": _described("The WORST option")}, "selected"),
        ({"choice": _described("1, 2, 3 or 4")}, "choice"),
        ({"answer_idx": _described("Index of the chosen option, 0-based")}, "answer_idx"),
        ({"answer": _described("yes, no or maybe")}, "answer"),
        ({"answer": _described("The name of the drug")}, "answer"),
        ({"answer": _described("All letters that apply")}, "answer"),
        ({"answer": _described("The letter and the full text of the option")}, "answer"),
        ({"answer": LETTER | {"title": "Second choice"}}, "answer"),
        ({"answer": _described("Pick with care. The second best option.")}, "answer"),
        ({"answer": {"enum": list("ABC")}, "runnerUp": {"enum": list("ABC")}}, "runnerUp"),
        ({"answer": {"enum": list("ABC")}, "grade": {"enum": list("ABC")}}, "grade"),
        ({"child_pugh_class": {"enum": list("ABC")}}, "child_pugh_class"),
        ({"answer_text": LETTER, "childPugh": {"enum": list("ABC")}}, "childPugh"),
        ({"conditionGrade": {"enum": list("ABC")}}, "conditionGrade"),
        ({"vitamin": {"enum": list("ABCDE")}}, "vitamin"),
        ({"selected_grade": {"enum": list("ABC"), "description": "One option"}}, "selected_grade"),
        ({"answer": {"enum": list("ABC"), "description": "The Child-Pugh class"}}, "answer"),
        ({"answer": _described("Der vollständige Text der Option")}, "answer"),
        ({"answer": _described("Nicht der Buchstabe, sondern der Wirkstoff")}, "answer"),
        ({"answer": _described("Die zweitbeste Option")}, "answer"),
        ({"answer": _described("Alle zutreffenden Buchstaben")}, "answer"),
        ({"answer": _described("Buchstabe und Text der Option")}, "answer"),
        ({"answer": _described("Le texte complet de l'option, sans la lettre")}, "answer"),
        ({"answer": _described("Texto completo de la opción")}, "answer"),
        ({"answer": _described("选项的完整内容，不要只写字母")}, "answer"),
        ({"answer": _described("错误的选项")}, "answer"),
        ({"answer": _described("排除的选项")}, "answer"),
        ({"answer": _described("选项的完整内容，例如 A. 铁")}, "answer"),
        ({"answer": _described("선택지의 전체 텍스트")}, "answer"),
    ],
    ids=str,
)
def test_a_property_for_something_else_gets_no_letter(
    properties: dict[str, Any], name: str
) -> None:
    with pytest.raises(ApiError, match=f"cannot fill the required property '{name}'"):
        plan_filling(_schema(**properties), OPTIONS)


@pytest.mark.parametrize(
    "words",
    [
        "The letter of the chosen option, not its text",
        "One of the letters A-D. Do not write the option number.",
        "The single best answer",
        "The most likely diagnosis, by its letter; no full text",
        "Option that is correct, never the wrong option",
        "Your final answer",
        "The answer choice index (A-D)",
        "Letter. Put the text of the option into answer_text",
        "The option letter, verbatim",
        "The option with the highest probability of being correct",
        "The next best step in management",
        "What remains after eliminating the wrong options",
        "Decide between the most and the second most likely option",
        "Der Buchstabe, nicht der Text der Option",
        "La lettre de la réponse, sans le texte de l'option",
        "La letra de la opción correcta, no el texto de la opción",
        "选项字母，不要写选项内容",
        "정답의 알파벳 (선택지 내용 제외)",
        "The most likely type of anemia",
        "选项编号，如A、B、C、D",
        "答案选项的序号，例如 A",
        "정답 번호 (A~D)",
        "排除错误选项后的答案",
    ],
)
def test_a_property_for_the_letter_may_say_what_it_is_not_for(words: str) -> None:
    filling = plan_filling(_schema(answer=_described(words)), OPTIONS)
    assert filling.fill("C", "Ascorbic acid", "", None) == {"answer": "C"}


def test_a_long_description_is_read_in_linear_time() -> None:
    for filler in ("; ", "1 (", "text der ", "字母和", "not "):
        long = LETTER | {"description": filler * (200_000 // len(filler))}
        started = time.process_time()
        with contextlib.suppress(ApiError):
            plan_filling(_schema(answer=long, confidence=long | NUMBER), OPTIONS)
        assert time.process_time() - started < 1


def test_two_properties_may_both_say_that_they_are_for_the_letter() -> None:
    schema = _schema(answer={"enum": list("ABC")}, answer_letter=LETTER, answer_text=LETTER)
    filled = plan_filling(schema, OPTIONS).fill("C", "Ascorbic acid", "", None)
    assert filled == {"answer": "C", "answer_letter": "C", "answer_text": "Ascorbic acid"}


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("best_option", {}),
        ("correct_answer_letter", {}),
        ("label", {}),
        ("verdict", {}),
        ("final_verdict", {}),
        ("solution", {}),
        ("respuesta", {}),
        ("答案", {}),
        ("diagnosis", {"description": "The letter of the diagnosis"}),
        ("x", {"title": "Answer choice"}),
    ],
)
def test_an_enum_of_letters_may_have_another_name(name: str, more: dict[str, Any]) -> None:
    filling = plan_filling(_schema(**{name: {"enum": list("ABC")} | more}), OPTIONS)
    assert filling.fill("C", "Ascorbic acid", "", None) == {name: "C"}


@pytest.mark.parametrize(
    ("root", "message"),
    [
        # Public report: imp 1567. What is required has to be there, or the request is refused.
        ({"required": ["answer", "source"]}, "cannot fill the required property 'source'"),
        ({"required": ["answer", {}]}, "cannot fill the required property {}"),
        ({"minProperties": 2}, "cannot follow minProperties of its root"),
        ({"anyOf": [{"required": ["confidence"]}]}, "cannot follow anyOf of its root"),
        ({"if": {}, "then": {"minProperties": 9}}, "cannot follow if and then of its root"),
    ],
    ids=str,
)
def test_a_condition_of_the_whole_object_is_refused(root: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError) as caught:
        plan_filling(_schema(answer=LETTER) | root, OPTIONS)
    assert message in caught.value.message


def test_a_reference_may_have_escapes() -> None:
    schema = _schema(answer={"$ref": "#/$defs/a~1b%20c"}) | {"$defs": {"a/b c": LETTER}}
    assert plan_filling(schema, OPTIONS).fill("B", "", "", None) == {"answer": "B"}  # RFC 6901


@pytest.mark.parametrize(
    "note", [{"nullable": True}, {"x-order": 1}, {"deprecated": False}, {"$comment": "one letter"}]
)
def test_a_note_in_a_schema_is_no_condition(note: dict[str, object]) -> None:
    """Annotation keywords should not fail a schema, genkit-ai/genkit#3764."""
    filling = plan_filling(_schema(answer=LETTER | note), OPTIONS)
    assert filling.fill("C", "Ascorbic acid", "", None) == {"answer": "C"}


@pytest.mark.parametrize("kind", ["STRING", None, [], ["str", "null"]])
def test_a_type_that_is_none_does_not_forbid_the_letters(kind: object) -> None:
    """Google's schemas spell types in capitals, and some libraries write null for no type."""
    filling = plan_filling(_schema(answer={"type": kind, "enum": list("ABC")}), OPTIONS)
    assert filling.fill("C", "Ascorbic acid", "", None) == {"answer": "C"}


def test_a_reason_that_may_not_be_empty() -> None:
    """A value must be as long as the schema asks, mlc-ai/xgrammar#131."""
    schema = _schema(answer=LETTER, reasoning=LETTER | {"minLength": 1})
    filling = plan_filling(schema, OPTIONS)
    assert filling.fill("C", "Ascorbic acid", "An acid.", None)["reasoning"] == "An acid."
    with pytest.raises(ApiError, match="the team stated no reasoning"):
        filling.fill("C", "Ascorbic acid", "", None)
    optional = plan_filling(schema | {"required": ["answer"]}, OPTIONS)
    assert optional.fill("C", "Ascorbic acid", "", None) == {"answer": "C"}


def test_a_bound_of_a_property_that_is_left_out() -> None:
    left_out = LETTER | {"minLength": "0", "pattern": "x"}
    schema = _schema(answer=LETTER, note=left_out) | {"required": ["answer"]}
    filling = plan_filling(schema, OPTIONS)
    assert filling.fill("C", "Ascorbic acid", "", None) == {"answer": "C"}


@pytest.mark.parametrize("bound", ["5", None, -1, True, [1]])
def test_a_bound_that_is_no_number(bound: object) -> None:
    properties = {"answer": {"type": "string"}, "reasoning": {"type": "string", "maxLength": bound}}
    with pytest.raises(ApiError, match="is not a number"):
        plan_filling({"type": "object", "properties": properties}, OPTIONS)
