"""The published text of a reply is its prose and its answer, however the JSON is cut."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import cycle
from typing import Any, Literal, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from mdagents.agents import replies, streaming
from mdagents.agents.streaming import ReplyStream, streamed_text
from mdagents.settings import Difficulty

Value = dict[str, Any]

odd_text = st.text('"\\{}[]:, \n/ué😀', max_size=8) | st.text(max_size=8)
letters = st.sampled_from("ABCD")


class Form(NamedTuple):
    """A reply model, values of it, and the lines that are published of such a value."""

    reply: type[BaseModel]
    values: st.SearchStrategy[Value]
    lines: Callable[[Value], list[str]]


def record(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Value]:
    # In this order, as a schema asks for them; `st.fixed_dictionaries` would vary it.
    return st.tuples(*fields.values()).map(lambda values: dict(zip(fields, values, strict=True)))


def listed(item: st.SearchStrategy[Any], count: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(item, min_size=count, max_size=count)


expert = record(role=odd_text, expertise=odd_text)
ranked_expert = record(role=odd_text, expertise=odd_text, reports_to=st.none() | odd_text)
message = record(to=st.integers(1, 4), text=odd_text)
member = record(role=odd_text, expertise=odd_text, lead=st.booleans())
team = record(
    name=odd_text,
    purpose=odd_text,
    kind=st.sampled_from(["initial", "specialist", "final_review"]),
    members=listed(member, 2),
)

FORMS = {
    "triage": Form(
        replies.triage(30),
        record(reasoning=odd_text, difficulty=st.sampled_from(list(Difficulty))),
        lambda v: [v["reasoning"]],
    ),
    "recruitment": Form(
        replies.recruitment(2),
        record(experts=listed(expert, 2)),
        lambda v: [text for e in v["experts"] for text in (e["role"], e["expertise"])],
    ),
    "ranked recruitment": Form(
        replies.ranked_recruitment(2),
        record(experts=listed(ranked_expert, 2)),
        lambda v: [
            text or ""
            for e in v["experts"]
            for text in (e["role"], e["expertise"], e["reports_to"])
        ],
    ),
    "opinion": Form(
        replies.opinion("ABCD", 40),
        record(reasoning=odd_text, answer=letters, confidence=st.floats(0, 1)),
        lambda v: [v["reasoning"], f"Answer: {v['answer']}"],
    ),
    "opinion on one option": Form(
        replies.opinion("A", 40),
        record(reasoning=odd_text, answer=st.just("A"), confidence=st.integers(0, 1)),
        lambda v: [v["reasoning"], "Answer: A"],
    ),
    "participation": Form(
        replies.participation(4, 40),
        record(reason=odd_text, participate=st.booleans(), messages=st.lists(message, max_size=3)),
        lambda v: [
            v["reason"],
            *(f"To Expert {m['to']}: {m['text']}" for m in v["messages"] if m["text"]),
        ],
    ),
    "teams": Form(
        replies.teams(2, 2),
        record(teams=listed(team, 2)),
        lambda v: [
            text
            for t in v["teams"]
            for text in (
                t["name"],
                t["purpose"],
                *(text for m in t["members"] for text in (m["role"], m["expertise"])),
            )
        ],
    ),
    "delegation": Form(
        replies.delegation(40), record(instructions=odd_text), lambda v: [v["instructions"]]
    ),
    "investigation": Form(
        replies.investigation(40), record(findings=odd_text), lambda v: [v["findings"]]
    ),
    "team report": Form(
        replies.team_report("ABCD", 40),
        record(findings=odd_text, answer=letters, dissent=odd_text),
        lambda v: [v["findings"], v["dissent"], f"Answer: {v['answer']}"],
    ),
    "verdict": Form(
        replies.verdict("ABCD", 40),
        record(analysis=odd_text, answer=letters),
        lambda v: [v["analysis"], f"Answer: {v['answer']}"],
    ),
}

formed_values = st.sampled_from(list(FORMS.values())).flatmap(
    lambda form: st.tuples(st.just(form), form.values)
)
layouts = st.fixed_dictionaries(
    {"ensure_ascii": st.booleans(), "indent": st.sampled_from([None, 0, 2, "\t"])}
)
wrappers = st.sampled_from(
    [
        ("", ""),
        ("\n ", "\n\n"),
        ("Here is my reply:\n```json\n", "\n```"),
        ("<think>Is it {A}? Or {</think>\n", " So: {done}"),
    ]
)
delta_lengths = st.lists(st.integers(1, 14), min_size=1, max_size=8)


def deltas(text: str, lengths: list[int]) -> list[str]:
    cut: list[str] = []
    at = 0
    for length in cycle(lengths):
        if at >= len(text):
            return cut
        cut.append(text[at : at + length])
        at += length
    raise AssertionError("lengths must not be empty")


def said_of(reply: type[BaseModel], *parts: str, parsed: BaseModel | None = None) -> str:
    said: list[str] = []
    stream = ReplyStream(reply, said.append)
    for part in parts:
        stream.feed(part)
    if parsed is not None:
        stream.finish(parsed)
    return "".join(said)


OPINION = replies.opinion("ABC", 40)
PARTICIPATION = replies.participation(3, 40)
DELEGATION = replies.delegation(40)


@pytest.mark.sweep
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@given(data=st.data(), layout=layouts, wrapper=wrappers, lengths=delta_lengths)
def test_a_streamed_reply_says_its_lines(
    form: Form,
    data: st.DataObject,
    layout: dict[str, Any],
    wrapper: tuple[str, str],
    lengths: list[int],
) -> None:
    value = data.draw(form.values)
    parsed = form.reply.model_validate(value)
    expected = "\n".join(line for line in form.lines(value) if line)
    before, after = wrapper

    said: list[str] = []
    stream = ReplyStream(form.reply, said.append)
    for delta in deltas(before + json.dumps(value, **layout) + after, lengths):
        calls = len(said)
        stream.feed(delta)
        assert len(said) <= calls + 1
        assert expected.startswith("".join(said))
    assert "".join(said) == expected

    stream.finish(parsed)
    assert "".join(said) == expected
    assert "" not in said
    assert streamed_text(parsed) == expected


@pytest.mark.sweep
@given(formed_values, layouts, delta_lengths, st.data())
def test_a_reply_cut_off_anywhere_is_completed_without_a_double(
    formed: tuple[Form, Value], layout: dict[str, Any], lengths: list[int], data: st.DataObject
) -> None:
    form, value = formed
    parsed = form.reply.model_validate(value)
    text = json.dumps(value, **layout)
    parts = deltas(text[: data.draw(st.integers(0, len(text)))], lengths)

    assert said_of(form.reply, *parts, parsed=parsed) == streamed_text(parsed)
    assert streamed_text(parsed).startswith(said_of(form.reply, *parts))


@pytest.mark.sweep
@given(st.permutations("ABC"), st.sampled_from("ABC"), delta_lengths, st.data())
def test_an_answer_is_told_in_the_letters_of_the_case(
    order: list[str], answer: str, lengths: list[int], data: st.DataObject
) -> None:
    letters = dict(zip("ABC", order, strict=True))
    value = {"reasoning": "Option A or B.", "answer": answer, "confidence": 0.5}
    text = json.dumps(value)
    said: list[str] = []
    stream = ReplyStream(OPINION, said.append, letters)
    for part in deltas(text[: data.draw(st.integers(0, len(text)))], lengths):
        stream.feed(part)
    stream.finish(OPINION.model_validate(value | {"answer": letters[answer]}))
    assert "".join(said) == f"Option A or B.\nAnswer: {letters[answer]}"


@pytest.mark.sweep
@given(formed_values, delta_lengths, st.data())
def test_a_reply_that_validates_is_said_in_full_however_odd_its_json(
    formed: tuple[Form, Value], lengths: list[int], data: st.DataObject
) -> None:
    form, value = formed
    text = json.dumps(value)
    at = data.draw(st.integers(0, len(text) - 1))
    gone = data.draw(st.integers(0, 2))
    odd = text[:at] + data.draw(st.sampled_from('"\\{}[]:, x0\n')) + text[at + gone :]
    try:
        parsed = form.reply.model_validate_json(odd)
    except ValidationError:
        parsed = None

    said = said_of(form.reply, *deltas(odd, lengths), parsed=parsed)
    if parsed is not None:
        assert said == streamed_text(parsed)


@given(st.text(), st.text(st.sampled_from('{}[]":,\\u0dnt1 \n\ud800\udc00')), delta_lengths)
def test_no_text_makes_it_fail(anything: str, nearly_json: str, lengths: list[int]) -> None:
    for text in (anything, nearly_json, '{"reason":"' + nearly_json, '{"x":[' + nearly_json):
        said_of(PARTICIPATION, *deltas(text, lengths)).encode()


def test_what_is_certain_is_said_at_once() -> None:
    said: list[str] = []
    stream = ReplyStream(DELEGATION, said.append)
    heard = []
    for delta in r'{"instructions":"Ask \u00e9 \ud83d\ude00\n\"ok\"\/."}':
        stream.feed(delta)
        heard.append("".join(said))
        said.clear()
    assert [text for text in heard if text] == [*"Ask é 😀", "\n", *'"ok"/.']
    assert heard[len('{"instructions":"')] == "A"


def test_a_long_text_comes_in_tiny_deltas() -> None:
    text = "Vitamin C. " * 500
    assert said_of(DELEGATION, *json.dumps({"instructions": text})) == text


@pytest.mark.parametrize(
    "text",
    [
        "The answer is C. ",
        "病人有过敏性休克，",
        "\n",
        "a\\b",
        'He said "stop"\t',
        "é\u2028",
        "} ]",
        "é😀",
    ],
)
@pytest.mark.parametrize("size", [1, 4, 7])
def test_a_text_in_a_loop_is_parsed_piece_by_piece(
    text: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = 0

    def counted(raw: bytes, **more: Any) -> Any:
        nonlocal parsed
        parsed += len(raw)
        return from_json(raw, **more)

    monkeypatch.setattr(streaming, "from_json", counted)
    long = text * (20_000 // len(text))
    whole = json.dumps({"instructions": long}, ensure_ascii="😀" in text)
    deltas = [whole[start : start + size] for start in range(0, len(whole), size)]
    assert said_of(DELEGATION, *deltas) == long
    assert parsed < 20 * len(whole.encode())


@pytest.mark.parametrize(
    ("start", "space"),
    [
        # vllm-project/vllm issue 38696, jundot/omlx issue 2990, ollama/ollama issue 2577
        ('{"answer":"B","reasoning":', "   \n"),
        ('{"reasoning":"Drei „Versuche",', " "),
        ('{"reasoning":"Gums.","answer":"B"}', "\n"),
    ],
)
def test_white_space_without_end_is_not_parsed(
    start: str, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = ReplyStream(OPINION, lambda _: None)
    for delta in (start, *space * 100):
        stream.feed(delta)
    monkeypatch.setattr(streaming, "from_json", None)
    for _ in range(10_000):
        stream.feed(space)


def test_what_follows_much_white_space_is_said() -> None:
    text = (
        '{"reasoning":' + " " * 1_000 + '"Gums.",' + "\n" * 1_000 + '"answer":"B"' + " " * 99 + "}"
    )
    assert said_of(OPINION, *text) == "Gums.\nAnswer: B"


def test_a_reply_without_any_delta_is_said_as_a_whole() -> None:
    parsed = OPINION(reasoning="Gums bleed.", answer="C", confidence=0.5)
    assert said_of(OPINION, parsed=parsed) == "Gums bleed.\nAnswer: C"


def test_without_a_reply_nothing_is_added() -> None:
    assert said_of(OPINION, '{"reasoning":"Gums', parsed=None) == "Gums"


def test_the_end_of_the_object_says_the_answer_once_wherever_it_stood() -> None:
    said: list[str] = []
    stream = ReplyStream(OPINION, said.append)
    stream.feed('{"answer":"B","confidence":0.5,"reasoning":"Because."')
    assert said == ["Because."]
    stream.feed("}")
    stream.feed(' {"answer":"C","reasoning":"No."}')
    assert said == ["Because.", "\nAnswer: B"]


def test_texts_are_said_in_the_order_in_which_they_arrive() -> None:
    text = '{"dissent":"One doubts.","answer":"C","findings":"Scurvy."}'
    parsed = replies.team_report("ABC", 40).model_validate_json(text)
    said = said_of(type(parsed), text, parsed=parsed)
    assert said == "One doubts.\nScurvy.\nAnswer: C"


@pytest.mark.parametrize("spelling", ["c", "C) Ascorbic acid", " C "])
def test_an_answer_that_validation_must_read_waits_for_it(spelling: str) -> None:
    text = json.dumps({"reasoning": "Gums.", "answer": spelling, "confidence": 0.5})
    assert said_of(OPINION, text) == "Gums."
    parsed = OPINION.model_validate_json(text)
    assert said_of(OPINION, text, parsed=parsed) == "Gums.\nAnswer: C"


@pytest.mark.parametrize("answer", ["3", "null", '"D"', '["A"]', '"A","answer":"x"'])
def test_what_is_no_letter_of_the_question_is_no_answer(answer: str) -> None:
    assert said_of(OPINION, '{"reasoning":"Gums.","answer":' + answer + "}") == "Gums."


def test_an_answer_may_be_null_and_only_the_reply_itself_has_one() -> None:
    class Part(BaseModel):
        answer: Literal["A", "B"]
        note: str

    class Careful(BaseModel):
        part: Part
        notes: list[str]
        answer: Literal["A", "B"] | None

    class Brief(BaseModel):
        answer: Literal["A", "B", None]

    assert streamed_text(Brief(answer=None)) == ""
    assert streamed_text(Brief(answer="A")) == "Answer: A"
    part = Part(answer="A", note="one")
    assert streamed_text(Careful(part=part, notes=["two", "", "three"], answer=None)) == (
        "one\ntwo\nthree"
    )
    assert streamed_text(Careful(part=part, notes=[], answer="B")) == "one\nAnswer: B"


@pytest.mark.parametrize(
    "messages",
    [
        '{"text":"Second.","to":2}',
        '{"to":2.0,"text":"Second."}',
        '{"to":"2","text":"Second."}',
    ],
)
def test_a_message_whose_recipient_is_not_known_yet_waits(messages: str) -> None:
    first = '{"reason":"Yes.","participate":true,"messages":[{"to":1,"text":"First."},'
    said = "Yes.\nTo Expert 1: First."
    assert said_of(PARTICIPATION, first, messages + "]}") == said

    parsed = PARTICIPATION.model_validate_json(first + messages + "]}")
    assert said_of(PARTICIPATION, first, messages + "]}", parsed=parsed) == (
        said + "\nTo Expert 2: Second."
    )


def test_a_recipient_is_not_known_before_its_last_digit() -> None:
    parts = ('{"reason":"","participate":true,"messages":[{"to":1', '2,"text":"', 'Hi."}]}')
    assert said_of(PARTICIPATION, *parts) == "To Expert 12: Hi."


def test_of_two_values_of_one_name_the_first_is_not_said_if_it_can_be_helped() -> None:
    first, second = '{"instructions":"Listen."', ',"instructions":"Look."}'
    parsed = DELEGATION.model_validate_json(first + second)
    assert said_of(DELEGATION, first + second, parsed=parsed) == "Look."
    assert said_of(DELEGATION, first, second, parsed=parsed) == "Listen.", "and nothing after it"


def test_a_refusal_to_speak_says_its_reason() -> None:
    assert said_of(PARTICIPATION, '{"reason":"No.","participate":false,"messages":[]}') == "No."


def test_fields_that_nobody_asked_for_are_not_said() -> None:
    extra = '"notes":{"instructions":"no","x":["a","}",{"y":1.5e-3}]},"more":"no","n":null,'
    assert said_of(DELEGATION, "{" + extra + '"instructions":"Look."}') == "Look."
    for depth, said in ((100, "Look."), (50_000, "")):  # pydantic takes 200
        nested = "[" * depth + "]" * depth
        assert said_of(DELEGATION, '{"deep":' + nested + ',"instructions":"Look."}') == said


def test_a_name_may_be_escaped() -> None:
    assert said_of(DELEGATION, *r'{"\u0069nstructions":"Look."}') == "Look."


@pytest.mark.parametrize(
    ("text", "before_the_end"),
    [
        ("{'instructions': 'Look again.'}", ""),
        ('{"instructions" "Look again."}', ""),
        ('{"instructions":"Look again.",}', "Look again."),
        (r'{"instructions":"Look \x again."}', "Look "),
        ('{"instructions":"Look', "Look"),
    ],
)
def test_repaired_json_is_completed(text: str, before_the_end: str) -> None:
    assert said_of(DELEGATION, text) == before_the_end
    parsed = DELEGATION(instructions="Look again.")
    assert said_of(DELEGATION, text, parsed=parsed) == "Look again."


def test_line_breaks_that_were_not_escaped_are_let_pass() -> None:
    text = '{"instructions":"Look\n\\tagain."}'
    assert said_of(DELEGATION, text) == said_of(DELEGATION, *text) == "Look\n\tagain."


def test_a_reply_that_differs_from_what_was_said_adds_nothing() -> None:
    parsed = DELEGATION(instructions="Look again.")
    assert said_of(DELEGATION, '{"instructions":"Listen', parsed=parsed) == "Listen"


def test_half_a_surrogate_pair_is_never_said() -> None:
    parsed = DELEGATION(instructions="Look 😀 up.")
    for text in (r'{"instructions":"Look \ud83d up."}', '{"instructions":"Look \ud83d'):
        assert said_of(DELEGATION, *text) == "Look "
    halves = ('{"instructions":"Look \ud83d', '\ude00 up."}')
    assert said_of(DELEGATION, *halves, parsed=parsed) == "Look 😀 up."
    assert said_of(DELEGATION, parsed=DELEGATION(instructions="\ud83d")) == ""
