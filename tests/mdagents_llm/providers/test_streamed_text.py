"""The text of a stream, whose pieces may be texts so far."""

from __future__ import annotations

from itertools import accumulate, pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mdagents_llm.providers.streamed_text import ShownText, is_replay, joined


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (("The answer", "The answer is", "The answer is B."), "The answer is B."),  # qwen-code#3896
        (('{"ans', '{"answer": ', '{"answer": "B"}'), '{"answer": "B"}'),  # hermes-agent#35718
        (("", "The", "The answer", "The answer", "The answer is B.", ""), "The answer is B."),
        ((), ""),
        # Pieces that only look like it.
        (("ha", "ha"), "haha"),
        (("1", "11", "111"), "111111"),
        (("=" * 8, "=" * 16, "=" * 32), "=" * 56),
        (("ha ha ", "ha ha ha ha ", "ha ha ha ha ha "), "ha " * 11),
        (("\n", "\n", "Here is the answer."), "\n\nHere is the answer."),  # chatlas#435
        (('{"a": 1}\n', '{"a": 1}\n', '{"a": 1}\n'), '{"a": 1}\n' * 3),
        (("A", "A)", "A) As"), "AA)A) As"),
        (("The answer", "The answer is B."), "The answerThe answer is B."),
        (("The answer", "The answer is", " B. The answer is B."), None),
    ],
)
def test_texts_so_far_are_no_pieces(pieces: tuple[str, ...], text: str | None) -> None:
    assert joined(pieces) == ("".join(pieces) if text is None else text)


@given(st.text("ab1 \n", min_size=1, max_size=12), st.integers(1, 12), st.data())
def test_a_text_that_repeats_itself_keeps_every_piece(
    unit: str, count: int, data: st.DataObject
) -> None:
    text = unit * count
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    pieces = [text[start:end] for start, end in pairwise([0, *cuts, len(text)])]
    assume(count > 1)
    assert joined(pieces) == text


@given(st.lists(st.sampled_from(["1", "11", "ha", "haha", " the", '{"a"', ": 1}", ", ", "[", "]"])))
def test_tokens_are_all_kept(tokens: list[str]) -> None:
    assert joined(tokens) == "".join(tokens)
    assert joined([f"[{{{token}}}" for token in tokens]) == "".join(f"[{{{t}}}" for t in tokens)


@given(st.lists(st.text("abc<> \n", min_size=1, max_size=9), min_size=3))
def test_texts_so_far_are_their_last_one(tokens: list[str]) -> None:
    texts = list(accumulate(["The dose is ", *tokens]))
    assert joined(texts) == texts[-1]


@given(st.lists(st.text("ab<think>/ ", max_size=9)), st.text("ab", max_size=3))
def test_what_is_shown_last_is_the_text(pieces: list[str], text: str) -> None:
    said: list[str | None] = [None]
    shown = ShownText(said.append)
    for piece in pieces:
        shown.add(piece)
    shown.end(text)
    last = len(said) - said[::-1].index(None)
    assert "".join(piece or "" for piece in said[last:]) == text


PIECES = ("Answer: ", "B. Thiamine ", "deficiency.")


@pytest.mark.parametrize(
    ("last", "pieces", "is_one"),
    [
        ("Answer: B. Thiamine deficiency.", PIECES, True),  # Rapid-MLX#1709
        ("Answer: B. Thiamine deficiency", PIECES, False),
        ("deficiency.", PIECES, False),
        ("no", ("no",), False),
        ("ha ha ha ha ", ("ha ha ", "ha ha "), False),
        ("Answer: B", ("Answer: B",), True),
        ("Answer: B", (), False),
        ("", (), False),
    ],
)
def test_a_last_piece_may_be_the_whole_text(
    last: str, pieces: tuple[str, ...], is_one: bool
) -> None:
    assert is_replay(last, pieces) == is_one
