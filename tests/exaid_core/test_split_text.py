"""A long text in pieces: nothing is lost, and pieces end where a reader would pause."""

from __future__ import annotations

from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exaid_core.checks.shortening import split_text
from exaid_core.tokenizer import character_ends


@pytest.mark.parametrize(
    ("text", "limit", "pieces"),
    [
        ("", 5, []),
        ("Stable.", 7, ["Stable."]),
        ("Stable. Give fluids now. Call.", 24, ["Stable. ", "Give fluids now. Call."]),
        ("Give fluids and oxygen", 12, ["Give fluids ", "and oxygen"]),
        ("Give now 500 mg of it", 12, ["Give now ", "500 mg of it"]),
        ("Well, no fever", 9, ["Well, ", "no fever"]),
        ("患者无发热。给予肝素。", 8, ["患者无发热。", "给予肝素。"]),
        ("発熱はない。投与した。", 7, ["発熱はない。", "投与した。"]),
        ("لا حمى؟ نعم ألم.", 10, ["لا حمى؟ ", "نعم ألم."]),
        ("อุณหภูมิ", 5, ["อุณห", "ภูมิ"]),
        ("AAAAAAAAAA", 4, ["AAAA", "AAAA", "AA"]),
        ("👨‍👩‍👧👨‍👩‍👧", 6, ["👨‍👩‍👧", "👨‍👩‍👧"]),
    ],
)
def test_pieces_end_with_a_sentence_else_a_word_else_a_character(
    text: str, limit: int, pieces: list[str]
) -> None:
    assert split_text(text, limit) == pieces


@pytest.mark.parametrize("limit", [0, -1])
def test_pieces_of_nothing_are_refused(limit: int) -> None:
    with pytest.raises(ValueError, match=f"pieces of {limit} characters"):
        split_text("text", limit)


_CHARACTERS = "患者无发热，。、 没有5毫克はないヘパリン👨‍👩‍👧ผู้ป่วยไม่มีไข้نمكa\u0301\n\r.!?\ud800"
_PHRASES = (" no fever", " 5 mg", ". ", "नमस्ते", "x" * 30)
MIXED = st.lists(st.sampled_from([*_CHARACTERS, *_PHRASES])).map("".join) | st.text()


@pytest.mark.sweep
@given(MIXED, st.integers(1, 60))
def test_the_pieces_are_the_text_and_cut_no_character(text: str, limit: int) -> None:
    pieces = split_text(text, limit)
    assert "".join(pieces) == text
    assert all(0 < len(piece) <= limit for piece in pieces)
    cuts = set(accumulate(map(len, pieces)))
    for start, end in pairwise([0, *character_ends(text)]):
        assert end - start > limit or not cuts & set(range(start + 1, end))


@pytest.mark.sweep
@given(MIXED, st.integers(1, 60))
def test_there_are_no_more_pieces_than_the_length_asks_for(text: str, limit: int) -> None:
    lengths = [len(piece) for piece in split_text(text, limit)]
    # So the text is read a fixed number of times, however long it is: a sentence, words that may
    # be parted, words that may not and a part of a word are more than one piece together.
    for first in range(len(lengths) - 4):
        assert sum(lengths[first : first + 4]) > limit


@pytest.mark.sweep
@pytest.mark.parametrize(
    "unit", ["no fever ", "x", "患者无发热", "ไม่มีไข้", "e" + "\u0301" * 9, "A. "]
)
def test_a_text_may_be_very_long(unit: str) -> None:
    text = (unit * 300_000)[:300_000]
    assert "".join(split_text(text, 500)) == text
