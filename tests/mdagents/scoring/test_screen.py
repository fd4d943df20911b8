"""What people are shown of scores: it fits 80 columns, and no statistics of a handful."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdagents.cli.score import main
from mdagents.scoring.comparison import compare
from mdagents.scoring.comparison_text import comparison_parts
from mdagents.scoring.formatting import as_text, usd
from mdagents.scoring.report import make_report
from mdagents.scoring.report_text import report_parts
from mdagents.scoring.rows import read_output
from tests.mdagents.scoring.result_records import ours, write

OF_MANY = (
    "kappa |",
    "calibration error |",
    "Brier",
    "letter of the right",
    "minimum detectable difference",
)


def opinions(letters: str) -> list[dict[str, Any]]:
    return [
        {"agent": f"expert-{n}", "round": 0, "answer": letter, "confidence": 0.8}
        for n, letter in enumerate(letters, start=1)
    ]


def questions(n: int, **changes: Any) -> list[dict[str, Any]]:
    return [
        ours(str(i), "A", "AAB"[i % 3], opinions=opinions(["AAB", "ABB"][i % 2]), confidence=0.7)
        | changes
        for i in range(n)
    ]


def report_of(records: list[dict[str, Any]]) -> str:
    return as_text(report_parts(make_report(read_output(write(records)))))


def comparison_of(*runs: list[dict[str, Any]]) -> str:
    paths = [write(records, f"run{number}.json") for number, records in enumerate(runs)]
    return as_text(comparison_parts(compare([read_output(path) for path in paths])))


def fits(text: str) -> bool:
    return all(len(line) <= 80 for line in text.splitlines())


@pytest.mark.parametrize("n", [1, 2, 9])
def test_of_a_handful_only_counts_are_shown(n: int) -> None:
    text = report_of(questions(n))
    right = sum("AAB"[i % 3] == "A" for i in range(n))
    assert f"{right} of {n} right" in text
    assert text.count("%") == text.count("25.0%") + text.count("95%")  # chance, and a heading
    assert not [words for words in OF_MANY if words in text]
    assert text.count("too few") == 1


def test_percentages_come_before_coefficients() -> None:
    text = report_of(questions(10))
    assert "70.0% (39.7–89.2)" in text  # Wilson's
    assert "experts agree" in text
    assert not [words for words in OF_MANY if words in text]


def test_thirty_questions_have_all_figures() -> None:
    text = report_of(questions(30))
    assert not [words for words in OF_MANY if words not in text.replace("  ", " ")]
    assert "too few" not in text


def test_levels_with_too_few_questions_are_named_once() -> None:
    text = report_of([*questions(40), ours("last", "A", "A", difficulty="advanced")])
    assert "1 of 1 right" in text
    line = "too few questions at some levels to show: percentages"
    assert " ".join(text.split()).count(line) == 1


def test_epochs_are_no_further_questions() -> None:
    records = [ours("1", "A", "AB"[epoch % 2], epoch=epoch) for epoch in range(1, 41)]
    text = report_of(records)
    assert "20 of 40 right" in text
    assert not [words for words in OF_MANY if words in text]


@pytest.mark.process
def test_epochs_of_a_question_are_too_few_for_what_its_experts_say() -> None:
    epochs = [
        record | {"question_id": "1", "label": "A", "epoch": n}
        for n, record in enumerate(questions(40), start=1)
    ]
    assert "experts agree" in report_of(questions(40)), "so many questions are enough"
    assert not [words for words in (*OF_MANY, "experts agree") if words in report_of(epochs)]
    assert main(["--input", str(write(epochs)), "--html"]) == 0
    assert "Calibration<" not in Path("evaluation/run.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("n", "tables", "majorities"), [(9, 1, 0), (10, 3, 0), (30, 4, 1)])
def test_a_handful_has_one_table_and_majorities_come_last(
    n: int, tables: int, majorities: int
) -> None:
    text = report_of(questions(n))
    assert len(re.findall(r"^\+[-+]+\+\n\| +\|.*[a-z]", text, re.MULTILINE)) == tables
    assert text.count("when the first majority of experts") == majorities


def test_a_kappa_just_below_zero_has_no_sign() -> None:
    panels = ["ABCD", "AABC", "AABB", "AAA"]  # kappa is -0.0045
    records = questions(32)
    for n, record in enumerate(records):
        record["opinions"] = opinions(panels[n % 4])
    text = report_of(records)
    assert "kappa" in text
    assert "-0.00" not in text


def test_a_comparison_of_a_handful_counts() -> None:
    text = comparison_of(questions(3), questions(3, predicted="B", response={"final_answer": "B"}))
    assert "−2 of 3" in text
    assert "points" not in text
    assert "too few questions to show: percentages (10 needed), a detectable difference" in text


@pytest.mark.sweep
def test_the_page_has_no_charts_of_a_handful() -> None:
    def page(n: int) -> str:
        path = write(questions(n))
        assert main(["--input", str(path), "--html"]) == 0
        return Path("evaluation/run.html").read_text(encoding="utf-8")

    names = ("Accuracy by level<", "Tokens and accuracy<", "Calibration<", "Answer position<")
    assert [name in page(3) for name in names] == [False] * 4
    assert [name in page(12) for name in names] == [True, False, False, False]
    assert [name in page(30) for name in names] == [True] * 4


def test_the_last_lines_say_where_the_files_are(capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(write(questions(2), f"{name}.json")) for name in "ab"]
    assert main(["--input", *paths]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("written: ")] == [
        "written: evaluation/a.csv",
        "written: evaluation/a.summary.json",
        "written: evaluation/b.csv",
        "written: evaluation/b.summary.json",
    ]
    assert [line for line in lines if "--html" in line] == lines[-1:]
    assert main(["--compare", *paths, "--html"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == [
        "written: evaluation/compare_a_vs_b.json",
        "written: evaluation/compare_a_vs_b.html",
    ]


NAMES = st.sampled_from(["", "basic", "intermediate", "advanced", "very hard, " * 12, "x" * 60])


@pytest.mark.sweep
@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(NAMES, st.sampled_from(["A", "B", None]), st.sampled_from([1, 10**7]),
                  st.sampled_from([0.0, 1e-9, 123.4]), st.sampled_from(["", "skipped"])),
        min_size=1, max_size=5,
    ),
    st.sampled_from([1, 7, 300]),
)  # fmt: skip
def test_any_report_fits_the_screen(kinds: list[Any], times: int) -> None:
    records = [
        ours(
            str(n),
            "A",
            letter,
            difficulty=level,
            opinions=opinions("AAB" if n % 2 else "CDE"),
            confidence=0.7,
            calls=tokens,
            token_usage={"total_tokens": tokens, "cost_usd": cost},
            **({"status": status} if status else {}),
        )
        for n, (level, letter, tokens, cost, status) in enumerate(kinds * times)
    ]
    assert fits(report_of(records))


@pytest.mark.sweep
@settings(max_examples=20)
@given(
    st.lists(st.text("AB-", min_size=12, max_size=12), min_size=2, max_size=11),
    st.sampled_from([1, 10**7]),
    st.booleans(),
)
def test_any_comparison_fits_the_screen(runs: list[str], tokens: int, routed: bool) -> None:
    levels = [{"routed_by": "router"}] + [
        {"routed_by": "forced", "difficulty": level}
        for level in ("basic", "intermediate", "advanced")
    ]
    assert fits(
        comparison_of(
            *(
                [
                    ours(
                        str(n),
                        "A",
                        None if letter == "-" else letter,
                        token_usage={"total_tokens": tokens * number, "cost_usd": tokens / 7},
                        **(levels[number] if routed and number < len(levels) else {}),
                    )
                    for n, letter in enumerate(letters)
                ]
                for number, letters in enumerate(runs)
            )
        )
    )


@pytest.mark.parametrize(
    ("amount", "written"),
    [
        (None, "-"), (0, "0.00"), (0.7, "0.70"), (2.912, "2.91"), (0.0345, "0.035"),
        (0.00072, "0.00072"), (1234.5, "1,234.50"), (-0.0345, "−0.035"),
    ],
)  # fmt: skip
def test_amounts_have_the_digits_that_they_need(amount: float | None, written: str) -> None:
    assert usd(amount) == written
