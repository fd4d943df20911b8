"""The words of the cue files and how they are searched."""

from __future__ import annotations

from pathlib import Path

import pytest

from exaid_core.checks.cue_files import Cue, folded, read_cues
from exaid_core.checks.cue_finder import CueFinder, needed_literals
from tests.support.medical_prose import SENTENCES


@pytest.mark.parametrize("sentence", SENTENCES)
def test_no_cue_of_another_language_is_a_word_of_ordinary_english(sentence: str) -> None:
    cues = [
        cue
        for cue in read_cues("dissent")
        if cue.language != "en" and cue.kind not in ("name before", "denied before")
    ]
    assert list(CueFinder(cues).find(sentence)) == []


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
        (r"b\.p\.? of", {"b.p"}),
        ("[骤驟][脏臟]", set()),
        ("(shock|[骤驟])", set()),
    ],
)
def test_a_match_holds_one_of_the_literals_that_are_searched_first(
    expression: str, literals: set[str]
) -> None:
    assert needed_literals(folded(expression)) == literals


def test_a_line_may_name_a_list_of_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (
        "DRUG = aspirin, sulfa drug",
        "DRUG = codeine",
        "none: ({DRUG}) given",
        r"first: (?<!DRUG)rash((?<=DRUG)|(?<=\bDRUG))",
    )
    (tmp_path / "en").mkdir()
    (tmp_path / "en" / "listed.txt").write_text("\n".join(lines))
    monkeypatch.setattr("exaid_core.checks.cue_files._FOLDER", tmp_path)
    assert [cue.expression for cue in read_cues("listed")] == [
        "(aspirin|sulfa drug|codeine) given",
        "(?<!aspirin.)(?<!sulfa.drug.)(?<!codeine.)rash("
        r"(?<=aspirin.)|(?<=sulfa.drug.)|(?<=codeine.)|"
        r"(?<=\baspirin.)|(?<=\bsulfa.drug.)|(?<=\bcodeine.))",
    ]


@pytest.mark.parametrize("line", ["none: ({DRUG}) given", "none: (?<!DRUG)rash"])
def test_a_list_must_stand_before_its_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    (tmp_path / "en").mkdir()
    (tmp_path / "en" / "unlisted.txt").write_text(f"{line}\nDRUG = aspirin")
    monkeypatch.setattr("exaid_core.checks.cue_files._FOLDER", tmp_path)
    with pytest.raises(ValueError, match=r"unlisted\.txt has no list 'DRUG' before 'none: "):
        read_cues("unlisted")


def test_of_two_cues_at_one_place_the_first_counts() -> None:
    finder = CueFinder([Cue("en", "longer", "pulseless VT"), Cue("en", "shorter", "pulseless")])
    found = [(cue.start, cue.end, cue.cue.kind) for cue in finder.find("pulseless VT, pulseless")]
    assert found == [(0, 12, "longer"), (14, 23, "shorter")]
