"""The shipped sample stays what `data/README.md` says it is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict

from tests.conftest import REPOSITORY, SHARED

MEDQA = REPOSITORY / "data" / "medqa"
REAL = SHARED / "medqa" / "test.jsonl"

LEVELS = ("basic", "intermediate", "advanced")
COPIED_RUN = 12
"""Consecutive words shared by two questions that count as copying."""

Words = tuple[str, ...]


class SampleRecord(BaseModel):
    """A line of the sample: these keys, all of them, no others."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    realidx: str
    question: str
    answer: str
    options: dict[str, str]
    meta_info: Literal["sample"]
    answer_idx: Literal["A", "B", "C", "D"]
    explanation: str
    reference: str
    topic: str
    specialty: str
    difficulty: Literal["basic", "intermediate", "advanced"]


class RealQuestion(BaseModel):
    """The part of a line of the real test set that the tests need."""

    question: str


def read(file: Path) -> list[SampleRecord]:
    lines = file.read_text(encoding="utf-8").splitlines()
    return [SampleRecord.model_validate_json(line) for line in lines]


TEST = read(MEDQA / "sample.jsonl")
TRAIN = read(MEDQA / "sample_train.jsonl")
EVERY = [pytest.param(record, id=record.realidx) for record in TEST + TRAIN]


def runs(text: str, length: int = COPIED_RUN) -> Iterator[Words]:
    words = re.findall(r"[^\W_]+", text.lower())
    return (tuple(words[start : start + length]) for start in range(len(words) - length + 1))


def shared(some: Iterable[str], others: Iterable[str], length: int = COPIED_RUN) -> set[str]:
    known = {run for text in others for run in runs(text, length)}
    return {" ".join(run) for text in some for run in runs(text, length) if run in known}


def by_id(realidx: str) -> SampleRecord:
    return next(record for record in TEST + TRAIN if record.realidx == realidx)


@pytest.mark.parametrize(
    ("records", "prefix", "size"),
    [(TEST, "sample", 30), (TRAIN, "train", 6)],
    ids=["test", "train"],
)
def test_ids_count_up_and_levels_are_equally_frequent(
    records: list[SampleRecord], prefix: str, size: int
) -> None:
    assert [record.realidx for record in records] == [
        f"{prefix}-{number:03d}" for number in range(1, size + 1)
    ]
    levels = Counter(record.difficulty for record in records)
    assert levels == dict.fromkeys(LEVELS, size // len(LEVELS))


@pytest.mark.parametrize("file", ["sample.jsonl", "sample_train.jsonl"])
def test_a_file_is_one_plain_utf8_object_a_line(file: str) -> None:
    content = (MEDQA / file).read_bytes()
    assert content.endswith(b"}\n")
    assert b"\r" not in content
    assert b"\\u" not in content, "written with ensure_ascii"
    assert not content.startswith(b"\xef\xbb\xbf"), "starts with a byte order mark"
    assert all(line.startswith(b"{") for line in content.splitlines())


@pytest.mark.parametrize("record", EVERY)
def test_options_are_four_different_texts_with_the_answer_at_its_letter(
    record: SampleRecord,
) -> None:
    assert list(record.options) == ["A", "B", "C", "D"]
    assert record.options[record.answer_idx] == record.answer
    assert len({text.strip().casefold() for text in record.options.values()}) == 4


@pytest.mark.parametrize("record", EVERY)
def test_every_text_is_one_trimmed_line(record: SampleRecord) -> None:
    texts = [
        record.question,
        record.explanation,
        record.reference,
        record.topic,
        record.specialty,
        *record.options.values(),
    ]
    for text in texts:
        assert text
        assert text == " ".join(text.split(" ")).strip()
        assert len(text.splitlines()) == 1
    assert record.question.endswith("?")
    assert record.explanation.endswith(".")


@pytest.mark.parametrize("record", EVERY)
def test_no_question_needs_a_picture(record: SampleRecord) -> None:
    assert not re.search(
        r"\b(figure|photograph|picture|image|(is|are) shown (below|in))\b", record.question.lower()
    )


def test_right_letters_are_balanced() -> None:
    letters = Counter(record.answer_idx for record in TEST)
    assert sorted(letters.values()) == [7, 7, 8, 8]
    for level in LEVELS:
        at_level = Counter(record.answer_idx for record in TEST if record.difficulty == level)
        assert set(at_level) == set("ABCD")
        assert max(at_level.values()) <= 3


def test_right_letters_follow_no_pattern() -> None:
    letters = "".join(record.answer_idx for record in TEST)
    assert not re.search(r"(.)\1\1", letters), "three times the same letter in a row"
    after = Counter(pairwise(letters))
    assert all(count <= 5 for count in after.values()), "a letter foretells the next one"
    for period in range(1, 7):
        repeats = sum(a == b for a, b in zip(letters, letters[period:], strict=False))
        assert repeats < (len(letters) - period) / 2, f"the letters repeat after {period}"


def test_length_does_not_give_the_answer_away() -> None:
    longest = shortest = 0
    for record in TEST:
        lengths = [len(text) for text in record.options.values()]
        longest += len(record.answer) == max(lengths)
        shortest += len(record.answer) == min(lengths)
    assert longest <= 10, "the right option is the longest too often"
    assert shortest <= 10, "the right option is the shortest too often"


@pytest.mark.parametrize("record", EVERY)
def test_options_of_a_question_are_of_similar_length(record: SampleRecord) -> None:
    lengths = [len(text) for text in record.options.values()]
    assert max(lengths) <= 2 * min(lengths)


def test_the_sample_covers_many_specialties_and_no_topic_twice() -> None:
    assert len({record.specialty for record in TEST}) >= 12
    topics = Counter(record.topic.casefold() for record in TEST + TRAIN)
    assert max(topics.values()) == 1


def test_the_sample_covers_both_sexes_and_every_age() -> None:
    text = [record.question for record in TEST]
    assert sum(bool(re.search(r"\b(woman|girl)\b", question)) for question in text) >= 10
    assert sum(bool(re.search(r"\b(man|boy)\b", question)) for question in text) >= 10
    assert any(re.search(r"\b\d+-day-old\b", question) for question in text)
    assert any(re.search(r"\b[2-9]-year-old\b", question) for question in text)
    assert any(re.search(r"\b9\d-year-old\b", question) for question in text)


def test_advanced_questions_are_long_cases() -> None:
    words = {
        level: [len(record.question.split()) for record in TEST if record.difficulty == level]
        for level in LEVELS
    }
    assert min(words["advanced"]) > max(words["basic"] + words["intermediate"])


def test_answers_that_can_be_computed_are_right() -> None:
    people, prevalence, sensitivity, specificity = 10_000, 0.02, 0.90, 0.95
    infected = people * prevalence
    true_positive = infected * sensitivity
    false_positive = (people - infected) * (1 - specificity)
    predictive = by_id("sample-004")
    for given in ("10,000", "Two percent", "sensitivity of 90%", "specificity of 95%"):
        assert given in predictive.question
    assert predictive.answer == f"{true_positive / (true_positive + false_positive):.0%}"

    to_treat = by_id("train-001")
    for given in ("1,200 patients", "66 patients in the drug group", "96 in the placebo group"):
        assert given in to_treat.question
    assert to_treat.answer == f"{1 / (96 / 1200 - 66 / 1200):.0f}"


def test_no_two_questions_share_a_run_of_words() -> None:
    for one, other in combinations(TEST + TRAIN, 2):
        assert not shared([one.question], [other.question]), (one.realidx, other.realidx)


def test_train_and_test_share_neither_wording_nor_references() -> None:
    def all_text(records: list[SampleRecord]) -> list[str]:
        return [
            text
            for record in records
            for text in (record.question, record.explanation, *record.options.values())
        ]

    assert not shared(all_text(TRAIN), all_text(TEST))
    assert not {record.reference for record in TRAIN} & {record.reference for record in TEST}


def test_a_copied_run_of_words_would_be_found() -> None:
    question = TEST[0].question
    start = question.split()[10:]
    assert shared([" ".join(["Once", *start[:COPIED_RUN], "again"]).upper()], [question])
    assert not shared([" ".join(start[: COPIED_RUN - 1])], [question])


@pytest.mark.skipif(not REAL.is_file(), reason=f"there is no {REAL}")
def test_no_question_repeats_a_real_one() -> None:
    lines = REAL.read_text(encoding="utf-8").splitlines()
    real = [RealQuestion.model_validate_json(line).question for line in lines]
    assert real
    assert not shared([record.question for record in TEST + TRAIN], real)
