"""Texts with other white space."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from mdagents_llm.text import single_spaced


@example("a  b")
@example("a\xa0b")
@given(st.text(st.sampled_from("ab  \t\n\x0b\x1c\x1f\x85\xa0\u2003\u3000")))
def test_words_have_single_spaces_between_them(text: str) -> None:
    assert single_spaced(text) == " ".join(text.split())
