"""Error analysis: accuracy by field, level and agreement, and the wrong questions of each group."""

from __future__ import annotations

import csv
import json
from codecs import BOM_UTF8
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from mdagents.cli.score import main as evaluate
from mdagents.scoring.breakdown import groupings, make_breakdown
from mdagents.scoring.breakdown_text import breakdown_table
from mdagents.scoring.rows import read_output
from mdagents_llm.errors import ConfigError
from tests.mdagents.scoring.result_records import ours, write


def records() -> list[dict[str, Any]]:
    """Anatomy: 4 of 16 right. Surgery: 14 of 16 right. One question without a subject is right."""
    made = [
        ours(f"{subject}-{n}", "A", "A" if n < right else None if n == 15 else "B",
             fields={"subject": subject, "year": "2019"}, difficulty=level,
             opinions=[{"agent": f"e{e}", "answer": a} for e, a in enumerate(held)])
        for subject, right, level, held in (
            ("anatomy", 4, "basic", "ABB"), ("surgery", 14, "advanced", "AAA")
        )
        for n in range(16)
    ]  # fmt: skip
    return [*made, ours("other", "A", "A")]


def test_groups_are_tested_against_all_other_questions() -> None:
    rows = read_output(write(records())).rows
    assert groupings(rows) == ["subject", "year", "level", "agreement"]
    anatomy, surgery, other = make_breakdown(rows, "subject").groups
    assert (anatomy.value, anatomy.figures.correct, anatomy.figures.n) == ("anatomy", 4, 16)
    assert anatomy.figures.answered == 15, "a failed question is in its group"
    assert anatomy.p is not None
    assert anatomy.p < 0.01
    assert anatomy.p_holm == pytest.approx(2 * min(anatomy.p, surgery.p or 1)), "two were tested"
    assert anatomy.wrong == [f"anatomy-{n}" for n in range(4, 16)]
    assert surgery.wrong == ["surgery-14", "surgery-15"]
    assert (other.value, other.p, other.p_holm) == ("not stated", None, None), "too few to test"
    by_agreement = {group.value: group for group in make_breakdown(rows, "agreement").groups}
    assert by_agreement["majority"].figures.correct == 4
    assert by_agreement["all agree"].figures.correct == 14
    assert by_agreement["fewer than two opinions"].figures.n == 1
    basic, advanced = make_breakdown(rows, "level").groups
    assert (basic.figures.n, advanced.figures.n) == (17, 16)
    assert basic.p == basic.p_holm == advanced.p, "two groups are one comparison"


def test_skipped_questions_are_in_no_group_and_epochs_are_one_question() -> None:
    epochs = [
        ours("q", "A", letter, epoch=epoch, fields={"subject": "anatomy"})
        for epoch, letter in enumerate("ABB", start=1)
    ]
    skipped = ours("s", "A", None, status="skipped", fields={"subject": "anatomy"})
    rows = read_output(write([*epochs, skipped])).rows
    (group,) = make_breakdown(rows, "subject").groups
    assert (group.figures.n, group.figures.questions) == (3, 1)
    assert group.wrong == ["q"], "most answers are wrong"


def test_each_answer_is_in_the_group_of_its_own_level() -> None:
    levels = {1: "basic", 2: "basic", 3: "advanced"}
    made = [
        ours(f"q{n}", "A", "A" if level == "basic" else "B", epoch=epoch, difficulty=level)
        for n in range(30)
        for epoch, level in levels.items()
    ]
    basic, advanced = make_breakdown(read_output(write(made)).rows, "level").groups
    assert (basic.value, basic.figures.n, basic.figures.correct, basic.wrong) == (
        "basic",
        60,
        60,
        [],
    )
    assert (advanced.figures.n, advanced.figures.correct, len(advanced.wrong)) == (30, 0, 30)
    assert basic.p is advanced.p is None, "the groups share their questions"
    assert breakdown_table(make_breakdown(read_output(write(made)).rows, "level")).headings[1] == (
        "answers"
    )


def test_what_is_printed_and_written(capsys: pytest.CaptureFixture[str]) -> None:
    path = write(records())
    assert evaluate(["--input", str(path), "--group-by", "subject", "level"]) == 0
    out = capsys.readouterr().out
    assert "accuracy by subject" in out
    assert "wrong of surgery (12.5%): surgery-14, surgery-15" in out
    assert "\x1b" not in out
    rows = list(csv.DictReader(Path("evaluation/run.groups.csv").read_text().splitlines()))
    assert [(row["group_by"], row["group"]) for row in rows] == [
        ("subject", "anatomy"), ("subject", "surgery"), ("subject", "not stated"),
        ("level", "basic"), ("level", "advanced"),
    ]  # fmt: skip
    assert rows[1]["wrong_ids"] == "surgery-14; surgery-15"
    summary = json.loads(Path("evaluation/run.summary.json").read_text())
    assert [each["by"] for each in summary["breakdowns"]] == ["subject", "level"]


def test_groups_beyond_ascii_are_written_as_excel_reads_them() -> None:
    """A mark without need would confuse others: https://github.com/imsweb/django-seeker/pull/158."""
    for name, encoding in (("Surgery", "ascii"), ("Chirurgie für Ältere", "utf-8-sig")):
        path = str(write([ours("1", "A", "A", fields={"subject": name})]))
        assert evaluate(["--input", path, "--group-by", "subject"]) == 0
        content = Path("evaluation/run.groups.csv").read_bytes()
        assert content.startswith(BOM_UTF8) == (encoding != "ascii")
        (row,) = csv.DictReader(content.decode(encoding).splitlines())
        assert (row["group_by"], row["group"]) == ("subject", name)


def test_the_page_and_the_latex_tables_have_the_groups() -> None:
    path = str(write(records()))
    asked = ["--input", path, "--group-by", "subject", "level"]
    assert evaluate([*asked, "--html", "--latex", "tables.tex"]) == 0
    page = unescape(Path("evaluation/run.html").read_text(encoding="utf-8"))
    tables = Path("tables.tex").read_text(encoding="utf-8")
    for by, group, wrong in (
        ("subject", "anatomy", "anatomy-4, anatomy-5"), ("level", "advanced", "surgery-14"),
    ):  # fmt: skip
        assert f"<b>accuracy by {by}</b>" in page
        assert f'<th scope="row">{group}</th><td data-label="questions">16</td>' in page
        assert f"<li>{by}: wrong of {group} (" in page
        assert wrong in page
        assert rf"\caption{{accuracy by {by}}}" in tables
        assert f"\n{group} & 16 & " in tables
    assert page.count("p: Fisher's exact test") == 1
    assert evaluate(["--input", path, "--html"]) == 0
    assert "Fisher's" not in Path("evaluation/run.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--group-by", "subjct"], "did you mean 'subject'?"),
        (["--compare", "a", "b", "--group-by", "subject"], "--group-by belongs to --input"),
        (["--details"], "--details belongs to --compare"),
    ],
)
def test_wrong_use(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(records())
    assert evaluate(arguments) == 2
    assert message in capsys.readouterr().err


def test_fields_of_a_damaged_record_are_ignored() -> None:
    damaged: tuple[Any, ...] = (None, [], "subject", {"subject": 7}, {"subject": None})
    for fields in damaged:
        rows = read_output(write([ours("1", "A", "A", fields=fields)])).rows
        with pytest.raises(ConfigError, match="this run has level"):
            make_breakdown(rows, "subject")
