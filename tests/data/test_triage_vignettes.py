"""The triage vignettes stay what `data/triage_vignettes/README.md` says they are."""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations, pairwise
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict

from mdagents.data_tools.check import check
from mdagents.datasets.dataset import open_dataset
from mdagents.datasets.near_duplicates import fingerprint
from mdagents.datasets.option_places import speaking_of_places
from tests.conftest import REPOSITORY
from tests.data.test_sample import shared

FOLDER = REPOSITORY / "data" / "triage_vignettes"
FILE = FOLDER / "test.jsonl"

LANGUAGES = ("en", "vi")
LEVELS = ("emergency", "urgent", "routine", "self_care")
ASKED = {
    "en": "How soon does this person need care?",
    "vi": "Người này cần được khám sớm đến mức nào?",
}
OPTIONS = {
    ("en", "emergency"): "Emergency: help at once (call an ambulance or go to an emergency "
    "department)",
    ("en", "urgent"): "Urgent: to be seen by a clinician within 24 hours",
    ("en", "routine"): "Routine: to be seen by a clinician within some days, by appointment",
    ("en", "self_care"): "Self-care: can be looked after at home, with an eye on it",
    ("vi", "emergency"): "Cấp cứu: cần được giúp ngay lập tức (gọi 115 hoặc đến khoa cấp cứu)",
    ("vi", "urgent"): "Khẩn: cần được nhân viên y tế khám trong vòng 24 giờ",
    ("vi", "routine"): "Khám thường: cần được khám trong vài ngày tới, có thể đặt lịch hẹn",
    ("vi", "self_care"): "Tự chăm sóc: có thể tự chăm sóc và theo dõi tại nhà",
}
COPIED_WORDS = 7
"""Consecutive words shared by two messages that count as nearly the same."""
WRITTEN_WITH_MARKS = re.compile("[ăâđêôơưĂÂĐÊÔƠƯ\u1ea0-\u1ef9]")
"""Letters that Vietnamese has and English has not."""
WITHOUT_MARKS = {
    "binh",
    "dau",
    "duoc",
    "hom",
    "khong",
    "ko",
    "nay",
    "nguoi",
    "nhung",
    "tuoi",
    "thang",
}
"""Words of Vietnamese that is typed without its marks, none of them English."""


class Vignette(BaseModel):
    """A line of the file: these keys, all of them, no others."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    id: str
    question: str
    answer: str
    options: dict[str, str]
    meta_info: Literal["triage_vignettes"]
    answer_idx: Literal["A", "B", "C", "D"]
    language: Literal["en", "vi"]
    level: Literal["emergency", "urgent", "routine", "self_care"]
    text: str
    why: str
    distractor: str


ALL = [Vignette.model_validate_json(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
EVERY = [pytest.param(vignette, id=vignette.id) for vignette in ALL]


def words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+", text.casefold())


def without_marks(vignette: Vignette) -> bool:
    return vignette.language == "vi" and vignette.text.isascii()


def test_fifteen_of_each_language_and_level_are_numbered_in_their_order() -> None:
    for language in LANGUAGES:
        for level in LEVELS:
            ids = [v.id for v in ALL if (v.language, v.level) == (language, level)]
            assert ids == [f"tv-{language}-{level}-{number:02d}" for number in range(1, 16)]


def test_each_four_have_all_levels_and_each_eight_all_of_both_languages() -> None:
    for start in range(0, len(ALL), 8):
        eight = ALL[start : start + 8]
        assert {v.level for v in eight[:4]} == set(LEVELS)
        assert Counter(v.language for v in eight[:4]) == {"en": 2, "vi": 2}
        assert len({(v.language, v.level) for v in eight}) == 8


def test_the_file_is_one_plain_utf8_object_a_line() -> None:
    content = FILE.read_bytes()
    assert content.endswith(b"}\n")
    assert b"\r" not in content
    assert b"\\u" not in content, "written with ensure_ascii"
    assert all(line.startswith(b"{") for line in content.splitlines())


@pytest.mark.parametrize("vignette", EVERY)
def test_question_and_options_are_those_of_language_and_level(vignette: Vignette) -> None:
    assert vignette.question == f"{vignette.text}\n\n{ASKED[vignette.language]}"
    assert list(vignette.options) == ["A", "B", "C", "D"]
    assert sorted(vignette.options.values()) == sorted(
        OPTIONS[vignette.language, level] for level in LEVELS
    )
    assert vignette.answer == OPTIONS[vignette.language, vignette.level]
    assert vignette.options[vignette.answer_idx] == vignette.answer
    assert speaking_of_places(vignette.options) == ()


@pytest.mark.parametrize("vignette", EVERY)
def test_texts_are_trimmed_lines_of_one_to_five_sentences(vignette: Vignette) -> None:
    for text in (vignette.text, vignette.why, vignette.distractor):
        assert text == " ".join(text.split())
    assert 1 <= len(re.findall(r"[.!?](?= |$)", vignette.text)) <= 5
    assert vignette.text.endswith((".", "?", "!"))
    assert vignette.why.endswith(".")
    assert vignette.distractor == "" or vignette.distractor.endswith(".")


@pytest.mark.parametrize("vignette", EVERY)
def test_the_language_is_that_of_the_text(vignette: Vignette) -> None:
    vietnamese = WRITTEN_WITH_MARKS.search(vignette.text) is not None
    if without_marks(vignette):
        vietnamese = len(WITHOUT_MARKS.intersection(words(vignette.text))) >= 2
    assert vietnamese == (vignette.language == "vi")
    assert not (vignette.language == "en" and WITHOUT_MARKS.intersection(words(vignette.text)))


def test_some_vietnamese_is_typed_without_marks_at_each_level() -> None:
    levels = Counter(v.level for v in ALL if without_marks(v))
    assert levels == dict.fromkeys(LEVELS, 3)


def test_right_letters_are_balanced() -> None:
    assert Counter(v.answer_idx for v in ALL) == dict.fromkeys("ABCD", 30)
    for level in LEVELS:
        letters = Counter(v.answer_idx for v in ALL if v.level == level)
        assert sorted(letters.values()) == [7, 7, 8, 8]
        for language in LANGUAGES:
            part = Counter(v.answer_idx for v in ALL if (v.level, v.language) == (level, language))
            assert min(part[v.answer_idx] for v in ALL) >= 3


def test_each_order_of_the_options_is_equally_frequent() -> None:
    level_of = {text: level for (_, level), text in OPTIONS.items()}
    orders = Counter(tuple(level_of[text] for text in v.options.values()) for v in ALL)
    assert (len(orders), set(orders.values())) == (24, {5})


def test_right_letters_follow_no_pattern() -> None:
    letters = "".join(v.answer_idx for v in ALL)
    assert not re.search(r"(.)\1\1", letters), "three times the same letter in a row"
    assert max(Counter(pairwise(letters)).values()) <= 10, "a letter foretells the next one"
    for period in range(1, 9):
        repeats = sum(a == b for a, b in zip(letters, letters[period:], strict=False))
        assert repeats <= (len(letters) - period) / 3, f"the letters repeat after {period}"


@pytest.mark.sweep
def test_no_two_messages_are_the_same_or_nearly_so() -> None:
    assert len({fingerprint(v.text) for v in ALL}) == len(ALL)
    for one, other in combinations(ALL, 2):
        assert not shared([one.text], [other.text], COPIED_WORDS), (one.id, other.id)
        some, others = set(words(one.text)), set(words(other.text))
        assert len(some & others) < len(some | others) / 2, (one.id, other.id)


def test_a_message_with_a_few_words_changed_would_be_found() -> None:
    text = ALL[0].text
    start = text.split()[3:]
    assert shared(
        [" ".join(["Once", *start[:COPIED_WORDS], "again"]).upper()], [text], COPIED_WORDS
    )
    assert not shared([" ".join(start[: COPIED_WORDS - 1])], [text], COPIED_WORDS)


def test_a_third_of_the_cases_mislead_in_every_language_and_level() -> None:
    for language in LANGUAGES:
        for level in LEVELS:
            some = [v for v in ALL if (v.language, v.level) == (language, level)]
            assert 5 <= sum(bool(v.distractor) for v in some) < 15


def test_the_ways_to_mislead_are_all_there() -> None:
    for kind, least in (
        ("negated", 20),
        ("harmless", 5),
        ("figurative", 8),
        ("relative's", 5),
        ("alarm", 3),
    ):
        assert sum(kind in v.distractor.casefold() for v in ALL) >= least, kind


def test_the_cases_cover_children_pregnancy_and_the_elderly() -> None:
    for language, patterns in {
        "en": (r"\b(weeks|months) old\b|, \d months", r"\bpregnant\b", r"\b[78]\d\b"),
        "vi": (r"\b\d+ (tháng|thang)\b", r"\b(mang thai|có thai)\b", r"\b[78]\d (tuổi|tuoi)\b"),
    }.items():
        texts = [v.text for v in ALL if v.language == language]
        for pattern in patterns:
            assert sum(bool(re.search(pattern, text)) for text in texts) >= 3, pattern


def test_the_check_finds_nothing_and_the_loader_reads_all() -> None:
    assert check(FILE).findings == ()
    dataset = open_dataset("triage_vignettes", REPOSITORY / "data")
    loaded = [dataset.load(entry) for entry in dataset.index]
    assert [(q.id, q.text, q.gold) for q in loaded] == [
        (v.id, v.question, v.answer_idx) for v in ALL
    ]


def test_the_page_says_how_many_there_are_of_what() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"{len(ALL)} messages" in page
    assert f"{sum(bool(v.distractor) for v in ALL)} messages contain a distractor" in page
    assert f"{sum(without_marks(v) for v in ALL)} of the Vietnamese" in page
    assert "Clinicians have not reviewed them" in " ".join(page.split())
    for field in Vignette.model_fields:
        assert f"`{field}`" in page
