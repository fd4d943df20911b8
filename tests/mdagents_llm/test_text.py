"""Texts with other white space, and lists of names."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from mdagents_llm.text import first_names, single_spaced


@example("a  b")
@example("a\xa0b")
@given(st.text(st.sampled_from("ab  \t\n\x0b\x1c\x1f\x85\xa0\u2003\u3000")))
def test_words_have_single_spaces_between_them(text: str) -> None:
    assert single_spaced(text) == " ".join(text.split())


def test_the_first_names_end_with_an_ellipsis_only_before_more() -> None:
    assert first_names([3, 1], 2) == "3, 1"
    assert first_names(["b", "a", "c"], 2) == "b, a, …"
