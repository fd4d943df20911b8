"""Reasoning in tags is hidden, however the text is cut into pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdagents_llm.reasoning_tags import ThinkTags, split_reasoning, without_reasoning

TEXTS = [
    ("<think>a</think>B", "B", "a"),
    ("<think>\na\n</think>\n\nB", "B", "\na\n"),
    ("\n<think>\n\n</think>\n\nB", "\nB", "\n\n"),  # Qwen3 with thinking off
    ("A <think>x</think>and B", "A and B", "x"),
    ("<THINK>a</THINK>B", "B", "a"),
    ("<thinking>a < b</thinking>B", "B", "a < b"),
    ("[THINK]a[/THINK]B", "B", "a"),
    ("◁think▷a◁/think▷B", "B", "a"),
    ("<think>never closed", "", "never closed"),
    ("<think>a</thi", "", "a</thi"),
    ("<think>a<think>b</think>C", "C", "a<think>b"),
    ("a < b, p <0.05 and [thin]", "a < b, p <0.05 and [thin]", ""),
    ("ends with <thin", "ends with <thin", ""),
    (
        "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>B<|return|>",
        "B",
        "a",
    ),
    ("<|start|>assistant<|channel|>final<|message|>B<|end|>", "B", ""),
    ("<|channel|>analysis<|message|>a<|end|>B", "B", "a"),  # sglang#31019
    ("<|channel|>commentary<|message|>B<|end|>", "B", ""),
    ("<|channel|>analysis<|message|>a<|channel|>final<|message|>B", "B", "a"),
    ("<|channel|>analysis<|message|>never closed", "", "never closed"),
    ("", "", ""),
]
"""Text, its visible part, its reasoning."""


def in_pieces(pieces: list[str]) -> tuple[str, str]:
    tags = ThinkTags()
    visible = "".join(map(tags.feed, pieces)) + tags.end()
    return visible, tags.hidden


@pytest.mark.parametrize(("text", "visible", "hidden"), TEXTS)
def test_reasoning_is_split_off_however_the_text_is_cut(
    text: str, visible: str, hidden: str
) -> None:
    assert split_reasoning(text) == (visible, hidden)
    for size in range(1, len(text) + 1):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert in_pieces(pieces) == (visible, hidden)


def test_text_before_an_unopened_closing_tag_is_reasoning() -> None:
    assert split_reasoning("First, the patient…\n</think>\n\nB") == ("B", "First, the patient…\n")
    assert without_reasoning("a</think><think>b</think>B") == "B"


@pytest.mark.parametrize("header", ["commentary?commentary?", "commentary to=assistant", "??"])
def test_a_malformed_channel_before_the_final_one_is_reasoning(header: str) -> None:
    text = (  # llama.cpp#27720
        f"<|channel|>{header}<|message|>x<|end|><|start|>assistant<|channel|>analysis<|message|>y"
        "<|end|><|start|>assistant<|channel|>final<|message|>B<|return|>"
    )
    assert split_reasoning(text) == ("B", "xy")


def test_visible_text_is_passed_on_at_once() -> None:
    tags = ThinkTags()
    assert tags.feed("p <") == "p "
    assert tags.feed("0.05") == "<0.05"


@given(st.lists(st.sampled_from(["<think>", "</think>", "<", "a", "/", "think", ">", " ", "["])))
def test_pieces_and_whole_agree(pieces: list[str]) -> None:
    assert in_pieces(pieces) == in_pieces(["".join(pieces)])
