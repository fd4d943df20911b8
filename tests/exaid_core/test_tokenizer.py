"""Words are counted alike in all scripts, however the text is cut into tokens."""

from __future__ import annotations

import re
from itertools import pairwise
from unicodedata import name

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exaid_core.token_gate.token_gate import Flush, FlushReason, GateCore, GateProfile
from exaid_core.tokenizer import WordCount, count_words, ends_sentence, word_spans
from tests.exaid_core.languages import SAMPLES

LETTERS = "患者无发热ありませんヘパリンผู้ป่วยไม่มีไข้ຄົນເຈັບបន្ទាប់လူနာ"
MIXED = st.text(st.sampled_from(LETTERS + "aé5/٥لкм한 \n\t。，、.!؟(-")) | st.text()
UNSPACED_NAMES = re.compile(
    "BOPOMOFO|CJK|HALFWIDTH|HENTAIGANA|HIRAGANA|IDEOGRAPH|KANGXI|KATAKANA|KHMER|LAO|MYANMAR|THAI|VERTICAL"
)
SPACED = st.text(
    st.characters(exclude_categories=["Cn"]).filter(
        lambda letter: not UNSPACED_NAMES.search(name(letter, ""))
    )
) | st.text(st.sampled_from("aé٥лkм한ạ \n\t\u2003\x1c.,-"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        ("Fever, cough - 39 °C", 5),
        ("Bệnh nhân không sốt", 4),
        ("لا يوجد دليل", 3),
        ("환자는 발열이 없다", 3),
        ("患者无发热。", 3),
        ("患者 无 发热", 3),
        ("患者，无发热。", 3),
        ("患者 BP 80/40", 3),
        ("患者BP80/40mmHg稳定", 3),
        ("给予5毫克", 3),
        ("発熱がない", 3),
        ("ไม่มีไข้", 2),
        ("ยา ๕ มก.", 3),
        ("ຄົນເຈັບບໍ່ມີໄຂ້", 3),
        ("លទ្ធផល", 1),
        ("患者\U000e0100", 1),
        ("\ud800患者", 2),
    ],
)
def test_words_are_counted(text: str, words: int) -> None:
    assert count_words(text) == words


@pytest.mark.sweep
@given(SPACED)
def test_text_with_spaces_is_counted_by_its_spaces(text: str) -> None:
    assert count_words(text) == len(text.split())


@pytest.mark.sweep
@given(st.lists(MIXED, max_size=12))
def test_the_count_does_not_depend_on_the_tokens(tokens: list[str]) -> None:
    count = WordCount()
    for token in tokens:
        count.add(token)
    assert count.total == count_words("".join(tokens))


@pytest.mark.parametrize("end", ["。", "！", "？", "｡", "؟", "۔", "।", "။", "។", "。 "])
def test_sentences_of_other_scripts_end_too(end: str) -> None:
    assert ends_sentence(f"x{end}")


@pytest.mark.parametrize("end", ["ไข้ ", "ไข้\t", "ໄຂ້ "])
def test_where_no_mark_ends_a_sentence_a_space_does(end: str) -> None:
    assert ends_sentence(end)


@pytest.mark.parametrize("end", ["", " ", "ไข้", "5 ", "患者 ", "，", "、", "،", "…", "x"])
def test_nothing_else_ends_a_sentence(end: str) -> None:
    assert not ends_sentence(end)


def stream(tokens: list[str], profile: GateProfile) -> list[Flush]:
    """What is let through of tokens that come so fast that no timer expires."""
    core = GateCore(profile)
    return [
        flush
        for seq, token in enumerate(tokens)
        for flush in core.add("a", token, seq=seq, now=seq * 1e-6)
    ]


@pytest.mark.parametrize("language", sorted({sample.language for sample in SAMPLES}))
@pytest.mark.parametrize("by", ["character", "word"])
def test_a_stream_in_any_language_ends_chunks_by_its_words(language: str, by: str) -> None:
    text = "\n".join(sample.text for sample in SAMPLES if sample.language == language)
    profile = GateProfile(20, 40)
    starts = [0, *(start for start, _ in word_spans(text)[1:]), len(text)]
    by_word = [text[start:end] for start, end in pairwise(starts)]
    tokens = list(text) if by == "character" else by_word
    flushes = stream(tokens, profile)
    assert len(flushes) >= 5
    assert text.startswith("".join(flush.text for flush in flushes))
    assert {flush.reason for flush in flushes} <= {FlushReason.MAX_WORDS, FlushReason.BOUNDARY_CUE}
    for flush in flushes:
        assert flush.words == count_words(flush.text) >= 20
        assert by == "word" or flush.words <= 40


def test_chinese_lets_chunks_through_as_english_does() -> None:
    chinese = "".join(sample.text for sample in SAMPLES if sample.language == "zh")
    [flush] = stream(list(chinese), GateProfile(60, 100))[:1]
    assert flush.text.endswith("。")
    assert 60 <= flush.words <= 100
