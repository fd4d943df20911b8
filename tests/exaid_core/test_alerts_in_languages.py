"""Alerts in nine languages: sentences of a clinician, in `cues/`, one file for each language."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from exaid_core.checks.alerts import find_alert, find_alerts
from exaid_core.checks.cue_files import Cue, folded, read_cues
from exaid_core.checks.cue_finder import CueFinder, needed_literals
from tests.support.medical_prose import SENTENCES

_FILES = sorted(Path(__file__).with_name("cues").glob("??.txt"))


def sentences(*kinds: str) -> Iterator[tuple[str, str, list[str], str]]:
    """Yield language, sentence, its alerts, which stand in brackets, and a name for the test."""
    for file in _FILES:
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            kind, _, sentence = line.partition(": ")
            if kind in kinds:
                alerts = re.findall(r"\[(.*?)\]", sentence)
                text = re.sub(r"[\[\]]", "", sentence)
                yield file.stem, text, alerts, f"{file.stem}-{number}"


_WITHOUT_ALERT = ("denied", "feared", "conditional", "history", "other", "unremarkable")
_AFFIRMED = [pytest.param(*case, id=name) for *case, name in sentences("affirmed")]
_NONE = [pytest.param(*case, id=name) for *case, name in sentences(*_WITHOUT_ALERT)]


@pytest.mark.parametrize(("language", "text", "alerts"), _AFFIRMED)
def test_an_alert_is_found_in_its_own_words(language: str, text: str, alerts: list[str]) -> None:
    assert list(find_alerts(text)) == alerts


@pytest.mark.parametrize(("language", "text", "alerts"), _NONE)
def test_what_is_no_alert_is_not_found(language: str, text: str, alerts: list[str]) -> None:
    assert find_alert(text) is None


@pytest.mark.parametrize(("language", "text", "alerts"), _AFFIRMED)
def test_neutral_text_around_hides_no_alert(language: str, text: str, alerts: list[str]) -> None:
    neutral = [
        sentence
        for written_in, sentence, _, _ in sentences(*_WITHOUT_ALERT)
        if written_in == language and "96" in sentence
    ]
    for before in [*neutral, SENTENCES[1]]:
        assert set(alerts) <= set(find_alerts(f"{before}\n{text}\n{before}"))


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize(("language", "text", "alerts"), _AFFIRMED)
def test_the_form_of_letters_does_not_matter(
    language: str, text: str, alerts: list[str], form: Literal["NFC", "NFD"]
) -> None:
    assert list(find_alerts(unicodedata.normalize(form, text))) == alerts


@pytest.mark.parametrize(
    ("text", "alert"),
    [
        ("حدث تَوَقُّف القَلْب فجأة", "توقف القلب"),  # vowel signs
        ("حدث توقـــف القلب فجأة", "توقف القلب"),  # a stretched line
        ("المريض في غيبوبه", "غيبوبه"),  # ha for ta marbuta
        ("حدثت صدمة انتانية", "صدمة انتانية"),  # alef without hamza
    ],
)
def test_arabic_is_read_as_people_type_it(text: str, alert: str) -> None:
    assert find_alert(text) == alert


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize("subject", ["alerts", "assertion", "dissent"])
def test_no_cue_is_a_word_of_ordinary_english(subject: str, sentence: str) -> None:
    cues = [cue for cue in read_cues(subject, kinds=subject != "alerts") if cue.language != "en"]
    unlikely = [
        cue for cue in cues if cue.kind not in ("link", "and", "verb", "none", "name before")
    ]
    shared = {"no", "absent", "prophylaxis"}
    found = {
        sentence[found.start : found.end].lower() for found in CueFinder(unlikely).find(sentence)
    }
    assert found <= shared


@pytest.mark.parametrize(
    ("expression", "literals"),
    [
        ("cardiac standstill", {"standstill"}),
        ("(massive|fatal) bleed(ing)?", {"massive", "fatal"}),
        ("in(to)? (full )?arrest(?! of)", {"arrest"}),
        ("(CPR|chest compressions) (is )?ongoing", {"ongoing"}),
        ("(?<!sleep.)apno?ea", {"apn"}),
        ("(cannot|can't) (intubate|ventilate)", {"intubate", "ventilate"}),
        ("心[脏臟][骤驟]停", {"心"}),
        (r"\w+n't", {"n't"}),
        ("[骤驟][脏臟]", set()),
        ("(shock|[骤驟])", set()),
    ],
)
def test_a_match_holds_one_of_the_literals_that_are_searched_first(
    expression: str, literals: set[str]
) -> None:
    assert needed_literals(folded(expression)) == literals


def test_of_two_cues_at_one_place_the_first_counts() -> None:
    finder = CueFinder([Cue("en", "longer", "pulseless VT"), Cue("en", "shorter", "pulseless")])
    found = [(cue.start, cue.end, cue.cue.kind) for cue in finder.find("pulseless VT, pulseless")]
    assert found == [(0, 12, "longer"), (14, 23, "shorter")]
