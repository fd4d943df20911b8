"""Reasoning in tags is hidden, however the text is cut into pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdagents_llm.reasoning_tags import (
    EVERY_TAG,
    ThinkTags,
    split_leading_reasoning,
    split_reasoning,
    without_blocks,
    without_reasoning,
    without_reasoning_of_data,
)

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
    ("<mm:think>a</think>B", "B", "a"),  # MiniMax-M3
    ("<longcat_think>a</longcat_think>B", "B", "a"),
    ("<ifm|think>a</ifm|think>B", "B", "a"),  # K2-Horizon (stefanskiasan/k2-horizon-vllm)
    ("<ifm|think_faster>a</ifm|think_faster>B", "B", "a"),
    ("<think_fast>a</think_fast>B", "B", "a"),  # K2-Think-V2
    ("<REASONING_SCRATCHPAD>a</REASONING_SCRATCHPAD>B", "B", "a"),  # Hermes
    ("<|channel>thought\na\n<channel|>B", "B", "\na\n"),  # hermes-agent#67632
    ("<|channel>thought\n<channel|>B", "B", "\n"),  # Gemma 4 with thinking off
    ("<|channel>\na\n<channel|>\nB", "B", "a\n"),  # mlx-vlm#899
    ("<|channel>thought\nnever closed", "", "\nnever closed"),
    ("<unused94>thought\na<unused95>B", "B", "thought\na"),  # ollama#15754
    ("[unused16]a[unused17]B[unused10]", "B", "a"),  # openPangu, vllm#32579
    (
        "<|START_THINKING|>a<|END_THINKING|>\n<|START_RESPONSE|>B<|END_RESPONSE|>",
        "B",
        "a",
    ),  # smg#306
    (
        "<|START_THINKING|>a<|END_THINKING|><|START_TEXT|>B<|END_TEXT|>",
        "B",
        "a",
    ),  # maclocal-api#151
    ("<|START_THINKING|>a<|START_RESPONSE|>B", "B", "a"),
    ("<|begin_of_thought|>a<|end_of_thought|><|begin_of_solution|>B<|end_of_solution|>", "B", "a"),
    ("<|inner_prefix|>a<|inner_suffix|>B", "B", "a"),  # Apertus
    ("<|think|>a<|end|><|begin|>assistant<|content|>B<|end|>", "B", "a"),  # llama.cpp#18540
    ("<｜begin▁of▁thinking｜>a<｜end▁of▁thinking｜>B", "B", "a"),
    ('<details type="reasoning">a</details>\nB', "B", ">a"),  # open-webui#24635
    ('<details type="reasoning" done="false">a', "", ' done="false">a'),
    (
        "<details><summary>Why</summary>A</details>B",
        "<details><summary>Why</summary>A</details>B",
        "",
    ),
    ("Use <|think|> here. B", "Use <|think|> here. B", ""),
    (
        'B, see <details type="reasoning" done> and <|channel>thought.',
        'B, see <details type="reasoning" done> and <|channel>thought.',
        "",
    ),
    ("A:\n <|think|>a<|end|>B", "A:\n B", "a"),
    ("<|begin|>assistant<|think|>a<|end|>B", "B", "a"),
    ('<think>a</think><details type="reasoning">b</DETAILS>B', "B", "a>b"),
    ("the channel> of thought, <|channel>final", "the channel> of thought, <|channel>final", ""),
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
    assert split_reasoning("quick</ifm|think_fast>Done.") == ("Done.", "quick")
    assert without_reasoning("a</think><think>b</think>B") == "B"


@pytest.mark.parametrize(
    ("text", "visible", "hidden"),
    [
        # https://github.com/oobabooga/textgen/issues/7374
        (
            'analysisUser says "Hi". Greeting.assistantfinalHello!',
            "Hello!",
            'User says "Hi". Greeting.',
        ),
        ('analysisa\nassistantfinal{"answer": "B"}', '{"answer": "B"}', "a\n"),
        (
            "analysisa.assistantcommentary to=f json{}assistantfinal**B**",
            "**B**",
            "a.assistantcommentary to=f json{}",
        ),
        (
            "analysisThe word assistantfinal ends it.assistantfinalB",
            "B",
            "The word assistantfinal ends it.",
        ),
        ("analysisa.assistantcommentaryB", "B", "a."),
        # https://github.com/Blaizzy/mlx-vlm/pull/1843
        ("to=self<|message|>a\n\nb<|eom|><|start|>assistant to=user<|message|>B", "B", "a\n\nb"),
        (" to=self<|message|>a<|start|>assistant to=user<|message|>B<|eot|>", "B", "a"),
        ("to=self<|message|>never closed", "", "never closed"),
        ("<|start|>assistant to=user<|message|>B<|eom|>", "B", ""),
        ("to=self<|message|>a<|eom|>B", "B", "a"),
        ("to=self<|message|>a<|eom|><|start|>assistant<|message|>B", "B", "a"),
    ],
)
def test_messages_of_a_model_without_their_tokens_or_to_itself(
    text: str, visible: str, hidden: str
) -> None:
    assert split_reasoning(text) == (visible, hidden)
    assert without_blocks(text) == visible


def test_a_final_message_of_gpt_oss_after_a_call_is_the_text() -> None:
    call = "<|start|>assistant to=functions.f<|channel|>commentary<|message|>{}<|call|>"
    assert without_reasoning(f"{call}<|start|>assistant<|channel|>final<|message|>B") == "B"


@pytest.mark.parametrize(
    "text",
    [
        "analysis of why the word assistantfinal shows: B",
        "analysisa says 'assistantfinal'. B",
        "The analysis is: use assistantfinalB",
        "Analysis\nassistantfinalB",
        "analysis: the answer assistantfinalB",
        "analysis_result: assistantfinal_B",
        "analysis/plan: assistantfinalB",
        "analysis\nassistantfinalization",
        "B, as to=self says",
    ],
)
def test_a_text_that_mentions_such_messages_is_kept(text: str) -> None:
    assert split_reasoning(text) == (text, "")
    assert without_blocks(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "Here is my thought process: a\n\nHere is my response: B",  # Granite 3
        "Here's my thought process:\na\nHere's my response:\n\nB",
        "## Thinking\n\na\n\n## Final Response\n\nB",  # HuatuoGPT-o1
    ],
)
def test_reasoning_below_a_heading_needs_both_headings(text: str) -> None:
    visible, hidden = split_reasoning(text)
    assert (visible, hidden.strip()) == ("B", "a")
    unclosed = text.partition("a\n")[0] + "B"
    for said in (unclosed, f"First: {text}"):
        assert split_reasoning(said) == (said, "")


@pytest.mark.parametrize(
    "text",
    [
        "Here is my thought process:Here is my response:B",
        "## Thinking\n\n## Final Response\nB",
    ],
)
def test_reasoning_below_a_heading_may_be_empty(text: str) -> None:
    assert split_reasoning(text) == ("B", "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('<details type="reasoning">a</DETAILS>B', "B"),
        ('A\n<DETAILS type="reasoning">a</details>B', "A\nB"),
        ('<details type="reasoning">a <details>b</details> c</details>B', "B"),
        ('<details type="reasoning">a\n<details type="reasoning">b</details>c</details>B', "B"),
        ('<details type="reasoning">a <details> b</details>B', "B"),
        ('<details type="reasoning">a', ""),
        ('B, not <details type="reasoning">', 'B, not <details type="reasoning">'),
        ("<details>a</details>B", "<details>a</details>B"),
    ],
)
def test_blocks_of_reasoning_are_left_out(text: str, said: str) -> None:
    assert without_blocks(text) == said


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


@pytest.mark.parametrize(
    "text",
    [
        '{"why": "he writes <thinking> tags"}',
        '{"why": "no </think> here", "a": "B"}',
        '["no </think> here", "B"]',
    ],
)
def test_values_of_json_mention_tags(text: str) -> None:
    assert split_reasoning(text) == split_leading_reasoning(text) == (text, "")


@pytest.mark.parametrize(
    ("text", "visible", "hidden"),
    [
        ("Steps go into `<think>`. Answer: C", "Steps go into `<think>`. Answer: C", ""),
        ("\n<think>a</think>B", "\nB", "a"),
        ("a</think>B", "B", "a"),
        ("a</think>B, not <think>", "B, not ", "a"),
        ("</think>B", "B", ""),
        ("Answer: B. The tag </think> closes it.", "Answer: B. The tag </think> closes it.", ""),
        ("## Thinking\na\n## Final Response\nB", "## Thinking\na\n## Final Response\nB", ""),
    ],
)
def test_where_thoughts_have_a_field_a_tag_within_is_a_mention(
    text: str, visible: str, hidden: str
) -> None:
    assert split_leading_reasoning(text) == (visible, hidden)


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        (
            "K 7.2 is critical. The tag </think> ends it.",
            "K 7.2 is critical. The tag </think> ends it.",
        ),
        ("Close it with `</think>`.", "Close it with `</think>`."),
        ("a</think>B", "B"),
        ("a\n</think>\n\nB", "B"),
        ("a </think> b</think>B", "bB"),
        ("<think>a </think> B", "B"),
        ("K 7.2. <think>a</think>B", "K 7.2. B"),
    ],
)
def test_in_data_a_closing_tag_within_a_sentence_is_a_mention(text: str, visible: str) -> None:
    assert without_reasoning_of_data(text) == visible


@pytest.mark.parametrize("tag", EVERY_TAG)
def test_no_tag_is_passed_over_by_the_fast_path(tag: str) -> None:
    assert split_reasoning(f"{tag}a") != (f"{tag}a", "")
