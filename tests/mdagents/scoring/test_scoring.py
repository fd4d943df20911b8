"""Scores from files alone: ours, interrupted ones, and those of foreign programs."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdagents.cli.score import main
from mdagents.scoring.agreement import Agreement, by_first_agreement
from mdagents.scoring.breakdown import Breakdown, QuestionGroup
from mdagents.scoring.comparison import Block, ComparedRun, Comparison
from mdagents.scoring.csv_file import write_csv_of_runs
from mdagents.scoring.exaid_figures import ExaidFigures
from mdagents.scoring.formatting import as_text
from mdagents.scoring.group import Group, Proportion, make_group
from mdagents.scoring.pairs import Flip, Pair
from mdagents.scoring.policies import agreement_of
from mdagents.scoring.positions import Place, PositionBias
from mdagents.scoring.repeats import EpochAccuracy, Repeats, repeats
from mdagents.scoring.report import Report, make_report
from mdagents.scoring.report_text import report_parts
from mdagents.scoring.routing import Policy, RouterReport
from mdagents.scoring.rows import newest_output, read_output
from mdagents.scoring.statistics import Calibration, CalibrationBin
from mdagents.scoring.what_if import (
    Choice,
    Coin,
    Curve,
    Difference,
    FamilyOutcome,
    Reached,
    WhatIf,
)
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.spreadsheet import text_in
from tests.conftest import REPOSITORY
from tests.mdagents.scoring.made_up_runs import made_up, row, scored
from tests.mdagents.scoring.result_records import OPTIONS, ours, write

RUN = [
    ours("1", "A", "A"),
    ours("2", "A", "B"),
    ours("3", "C", None),
    ours("4", "D", None, status="parse_error"),
    ours("5", "B", None, status="skipped", difficulty="advanced"),
    ours(
        "6", "B", "B", difficulty="intermediate", response={"majority_vote": "Answer: B) Heparin"}
    ),
]


def test_the_csv_of_several_epochs_names_them() -> None:
    file = io.StringIO()
    runs = [made_up("one", "AB"), made_up("two", "ABBA", epochs=2)]
    write_csv_of_runs(file, {run.name: run.rows for run in runs})
    rows = list(csv.DictReader(io.StringIO(file.getvalue())))
    assert list(rows[0])[-2:] == ["picture_names", "epoch"]
    assert [(row["question_id"], row["epoch"]) for row in rows] == [
        ("q0", "1"), ("q1", "1"), ("q0", "1"), ("q1", "1"), ("q0", "2"), ("q1", "2"),
    ]  # fmt: skip


def test_the_csv_has_the_columns_of_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    write(RUN)
    assert main([], input_filename="", output_filename="") == 0
    with Path("evaluation/run.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert ",".join(rows[0]) == (
        "question_id,label,response,difficulty,input_tokens,output_tokens,total_tokens,correct,"
        "status,parse_method,exaid_tokens,cost_usd,wall_seconds,calls,"
        "reasoning_tokens,pictures,pictures_sent,picture_names"
    )
    assert [row["response"] for row in rows] == ["A", "B", "", "X", "", "B"]
    assert [row["correct"] for row in rows] == ["1", "0", "0", "0", "0", "1"]
    assert rows[0]["exaid_tokens"] == "7"
    summary = json.loads(Path("evaluation/run.summary.json").read_text())
    assert summary["status_counts"] == {
        "answered": 3,
        "api_error": 1,
        "parse_error": 1,
        "skipped": 1,
    }
    printed = capsys.readouterr().out
    assert "all" in printed
    assert "EXAID: 7 more tokens per question" in printed


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "＝", " =", "\t="])
def test_a_spreadsheet_runs_nothing_from_a_file_of_somebody_else(start: str) -> None:
    formula = f'{start}HYPERLINK("https://example.org","7")'
    write([ours(formula, "A", "A", difficulty=formula), ours("-7", "A", "A")])
    assert main([]) == 0
    with Path("evaluation/run.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert first["question_id"].startswith("'")
    assert first["question_id"].removeprefix("'").strip() == formula.strip()
    assert not [cell for cell in first.values() if re.match(r"\s*[=+\-@＝]", cell)]
    assert second["question_id"] == "-7", "a number is no formula"


def test_different_ids_have_different_cells() -> None:
    ids = ["=x", "'=x", "''=x", "'x", "x"]
    write([ours(id_, "A", "A") for id_ in ids])
    assert main([]) == 0
    with Path("evaluation/run.csv").open(newline="") as file:
        cells = [row["question_id"] for row in csv.DictReader(file)]
    assert cells == ["'=x", *(f"'{id_}" for id_ in ids[1:4]), "x"]
    assert list(map(text_in, cells)) == ids


def test_a_result_of_another_file_of_the_same_name_is_kept(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for folder, letter in (("a", "A"), ("b", "B")):
        Path(folder).mkdir()
        Path(folder, "run.json").write_text(json.dumps([ours("q", "A", letter)]))
    for _ in range(2):
        assert main(["--html", "--group-by", "level", "--input", "a/run.json"]) == 0
    assert "NOTE" not in capsys.readouterr().out, "the same file again"
    first = {path.name: path.read_bytes() for path in Path("evaluation").iterdir()}
    assert len(first) == 4
    assert main(["b/run.json"]) == 0
    (note,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("NOTE")]
    said, _, kept = note.removesuffix(".*").rpartition(" ")
    assert said.endswith("result of this name, of another input or version, was kept as")
    for name, content in first.items():
        assert Path(kept + name.removeprefix("run")).read_bytes() == content
    summary = json.loads(Path("evaluation/run.summary.json").read_text())
    assert summary["inputs"] == ["../b/run.json"]
    assert summary["overall"]["correct"] == 0
    for name in ("a/run.json", "b/run.json", "a/run.json"):
        assert main([name]) == 0
    files = list(Path("evaluation").glob("run.*.summary.json"))
    assert len(files) == 2, "each input has one kept result, however often it is scored"


@pytest.mark.parametrize("summary", ['{"input": "run.json"}', "damaged"])
def test_a_result_of_an_unknown_input_is_kept(summary: str) -> None:
    write(RUN)
    Path("evaluation").mkdir()
    Path("evaluation/run.summary.json").write_text(summary)
    Path("evaluation/run.csv").write_text("earlier")
    for _ in range(2):
        assert main([]) == 0
    (kept,) = Path("evaluation").glob("run.*.csv")
    assert kept.read_text() == "earlier"


def test_a_comparison_of_other_files_of_the_same_names_is_kept(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("a/x.json", "b/x.json", "c/y.json"):
        Path(name).parent.mkdir()
        Path(name).write_text(json.dumps([ours("q", "A", "A")]))
    for other in ("a/x.json", "a/x.json", "b/x.json"):
        assert main(["--compare", "c/y.json", other]) == 0
    assert capsys.readouterr().out.count("NOTE: an earlier result of this name") == 1
    files = Path("evaluation").iterdir()
    inputs = sorted(json.loads(path.read_text())["inputs"] for path in files)
    assert inputs == [["../c/y.json", "../a/x.json"], ["../c/y.json", "../b/x.json"]]


def test_nothing_is_written_into_a_run_that_was_to_be_scored(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(RUN)
    Path("other").mkdir()
    Path("other/run.json").write_text("{}")
    Path("other/samples.jsonl").touch()
    for flag in ("--figures", "--evaluation-dir"):
        assert main([flag, "other", "output/run.json"]) == 2
        assert f"error: {flag} is 'other', which is a run" in capsys.readouterr().err
    folder = write(RUN).with_suffix("")
    Path("other").rename(folder)
    assert main(["--evaluation-dir", str(folder), "output/run.json"]) == 0, "its own run"


@pytest.mark.parametrize("content", ["{0}{0}", "{0}\r{0}\r"], ids=["no line end", "CR"])
def test_a_file_whose_only_line_is_left_out_says_why(
    content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("odd.jsonl").write_text(content.format(json.dumps(ours("q", "A", "A"))), newline="")
    assert main(["odd.jsonl"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: odd.jsonl holds no finished question; the last line, 1, is torn")


def test_who_is_in_which_denominator() -> None:
    report = make_report(read_output(write(RUN)))
    overall = report.overall
    assert (overall.n, overall.skipped, overall.answered, overall.correct) == (5, 1, 3, 2)
    assert overall.coverage == 3 / 5
    assert overall.accuracy == 2 / 5
    assert overall.accuracy_answered == 2 / 3
    assert overall.chance == 1 / 4
    assert report.by_difficulty["advanced"].n == 0
    assert report.by_difficulty["advanced"].accuracy is None
    assert report.routing == {"basic": 4, "advanced": 1, "intermediate": 1}
    assert report.accuracy_by_gold_letter["A"].accuracy == 1 / 2
    text = as_text(report_parts(report))
    assert "0 (+1 skipped)" in text


def test_a_letter_that_the_text_does_not_hold_is_reported() -> None:
    report = make_report(read_output(write([ours("1", "A", "A") | {"predicted": "B"}])))
    assert report.disagreements == 1
    assert "WARNING: 1 record with another letter" in as_text(report_parts(report))


@pytest.mark.parametrize(
    ("predicted", "is_another"),
    [
        *((same, False) for same in ("C", "c", "(C)", "C) Warfarin", "Warfarin", "warfarin", None)),
        *((same, False) for same in ("", "none", 3)),
        *((other, True) for other in ("B", "(b)", "Heparin", "B) Heparin", "E")),
    ],
)
def test_a_letter_of_another_program_is_read_as_the_right_option_is(
    predicted: Any, is_another: bool
) -> None:
    record = {"label": "C", "options": OPTIONS, "response": "Answer: C", "predicted": predicted}
    (row,) = read_output(write([record])).rows
    assert (row.response, row.disagrees) == ("C", is_another)
    unread = record | {"response": "I cannot tell."}
    (row,) = read_output(write([unread])).rows
    assert row.disagrees == (predicted not in (None, "", "none", 3))
    without = {"label": "C", "response": "Answer: C", "predicted": "(c)"}
    assert not read_output(write([without])).rows[0].disagrees


def test_a_letter_of_an_option_with_the_same_text_is_no_other() -> None:
    record = {"label": "B", "options": SKEWNESS, "response": "Answer: D", "predicted": "B"}
    assert not read_output(write([record])).rows[0].disagrees


def test_options_of_which_nothing_is_known_are_not_alike() -> None:
    """What a program without texts showed, such as pictures, is another thing for each letter."""
    options = dict.fromkeys("ABCD", "")
    seen = [{"name": "x.png"}, {"name": "1.png", "option": "A"}, {"name": "1.png", "option": "C"}]
    for pictures, alike in (([], ()), (seen[:1], ()), (seen, (("A", "C"),))):
        record = {"label": "A", "options": options, "response": "B", "predicted": "A"}
        (row,) = read_output(write([record | {"pictures": pictures}])).rows
        assert (row.alike, row.correct, row.disagrees) == (alike, False, True)
        assert row.right_letters == (alike[0] if alike else ("A",))


def test_the_letter_of_an_own_record_is_read_and_not_parsed() -> None:
    record = ours("1", "B", "B", schema_version="1.4.0", options={"A": "C) and D)", "B": "none"})
    record["response"] = {"analysis": "So.", "final_answer": "a text that states no letter"}
    (row,) = read_output(write([record])).rows
    assert (row.response, row.correct, row.parse_method, row.disagrees) == (
        "B",
        True,
        "recorded",
        False,
    )


@pytest.mark.parametrize("letter", ["E", "", None, 1, ["A"]])
def test_an_own_record_whose_letter_is_no_option_is_refused(letter: object) -> None:
    record = ours("1", "B", "B", schema_version="1.4.0") | {"predicted": letter}
    with pytest.raises(ConfigError, match=r"record 1: 'predicted' is .* names none of its options"):
        read_output(write([record]))


@pytest.mark.parametrize(
    ("response", "letter"),
    [
        ({"0.0": "Answer: C) Warfarin"}, "C"),
        ({"majority_vote": "Answer: C) Warfarin"}, "C"),
        ({"majority_vote": {"0.0": "The final answer is (C)."}}, "C"),
        ({"final_answer": "C) Warfarin"}, "C"),
        ("Answer: C", "C"),
        (["Let me think.", "Answer: C"], "C"),
        ("Error: Failed to get a response", "X"),
        ("Answer: a patient like this needs care", "X"),
        (None, "X"),
        ({}, "X"),
    ],
)
def test_foreign_files_are_scored_by_their_text(response: Any, letter: str) -> None:
    record = {
        "question": "?",
        "label": "C",
        "answer": "Warfarin",
        "options": OPTIONS,
        "response": response,
    }
    (row,) = read_output(write([record])).rows
    assert row.response == letter
    assert row.correct == (letter == "C")
    assert row.status == ("answered" if letter == "C" else "parse_error")
    assert row.question_id == "sample_1"
    assert row.cost_usd is None


@pytest.mark.parametrize(
    "options",
    [["(A) Aspirin", "(B) Heparin"], ["A. Aspirin", "B. Heparin"], ["Aspirin", "Heparin"]],
)
def test_foreign_options_may_be_a_list(options: list[str]) -> None:
    record = {"label": "B", "options": options, "response": "Answer: B"}
    (row,) = read_output(write([record])).rows
    assert row.correct
    assert row.options == 2


@pytest.mark.parametrize("usage", [None, [1, 2], {"total_tokens": "n/a"}, {}])
def test_tokens_that_a_foreign_file_does_not_hold_are_not_zero(usage: Any) -> None:
    record = {"label": "B", "options": OPTIONS, "response": "Answer: B", "token_usage": usage}
    report = make_report(read_output(write([record])))
    assert report.overall.tokens_per_question is None
    assert main([], input_filename="", output_filename="") == 0
    assert ",,,,1," in Path("evaluation/run.csv").read_text()


def test_a_run_that_was_killed_is_scored_from_its_folder() -> None:
    folder = Path("output/killed")
    folder.mkdir(parents=True)
    first = ours("1", "A", "A", difficulty="basic\u2028basic")
    again = ours("2", "A", "B"), ours("2", "A", "A")
    lines = [json.dumps(record, ensure_ascii=False) for record in (first, *again)]
    (folder / "samples.jsonl").write_text("\n".join(lines) + '\n{"question_id": "3", "la')
    (folder / "run.json").write_text(json.dumps({"item_ids": ["1", "2", "3"]}))
    output = read_output(newest_output(Path("output")))
    assert [(row.question_id, row.response) for row in output.rows] == [("1", "A"), ("2", "A")]
    assert output.name == "killed"
    assert output.notices == [
        "unfinished: 2 of 3 questions have a record",
        "the last line, 4, is torn and was left out: it is no JSON and has no line end",
        "records that a later one of the same question replaced: 1",
    ]


def test_rows_of_a_run_are_in_the_order_of_its_selection() -> None:
    folder = Path("output/raced")
    folder.mkdir(parents=True)
    ended = [("b", 2), ("a", 1), ("c", 1), ("c", 2), ("b", 1), ("a", 2)]
    lines = [json.dumps(ours(id_, "A", "A", epoch=epoch)) + "\n" for id_, epoch in ended]
    (folder / "samples.jsonl").write_text("".join(lines))
    manifest = {"item_ids": ["c", "a", "b"], "options": {"epochs": 2}}
    (folder / "run.json").write_text(json.dumps(manifest))
    output = read_output(folder)
    items = [("c", 1), ("a", 1), ("b", 1), ("c", 2), ("a", 2), ("b", 2)]
    assert [row.item for row in output.rows] == items
    assert [(record["question_id"], record["epoch"]) for _, record in output.records()] == items


def test_later_epochs_follow_each_other_each_in_the_order_of_the_selection() -> None:
    folder = Path("output/raced")
    folder.mkdir(parents=True)
    items = [(id_, epoch) for epoch in (1, 2, 3, 4) for id_ in "cab"]
    ended = random.Random(1).sample(items, len(items))
    lines = [json.dumps(ours(id_, "A", "A", epoch=epoch)) + "\n" for id_, epoch in ended]
    (folder / "samples.jsonl").write_text("".join(lines))
    manifest = {"item_ids": list("cab"), "options": {"epochs": 4}}
    (folder / "run.json").write_text(json.dumps(manifest))
    assert [row.item for row in read_output(folder).rows] == items


@pytest.mark.parametrize("epochs", [-1, 0, 10**30, None, "2"])
def test_epochs_of_a_damaged_manifest_are_no_error(epochs: object) -> None:
    folder = Path("output/odd")
    folder.mkdir(parents=True)
    (folder / "samples.jsonl").write_text(json.dumps(ours("1", "A", "A")) + "\n")
    (folder / "run.json").write_text(
        json.dumps({"item_ids": ["1", "2"], "options": {"epochs": epochs}})
    )
    output = read_output(folder)
    assert len(output.rows) == 1
    assert not any("unfinished: 1 of -" in notice for notice in output.notices)


@pytest.mark.parametrize(
    ("spent", "said"),
    [
        ({"batched_calls": 3, "calls": 2, "cached_calls": 1}, ["all calls came in batches"]),
        ({"batched_calls": 3, "calls": 3, "cached_calls": 1}, ["some calls came in batches"]),
        ({"batched_calls": 0, "calls": 3}, []),
        ({"batched_calls": "many"}, []),
        (3, []),
    ],
)
def test_prices_of_batches_are_told(spent: object, said: list[str]) -> None:
    folder = Path("output/cheap")
    folder.mkdir(parents=True)
    (folder / "samples.jsonl").write_text(json.dumps(ours("1", "A", "A")) + "\n")
    (folder / "run.json").write_text(json.dumps({"item_ids": ["1"], "spent": spent}))
    (folder / "calls.jsonl").write_text("{}\n" * 4)
    notices = read_output(folder).notices
    assert notices == [f"{one}, which cost less than calls made at once" for one in said]


@pytest.mark.parametrize(
    ("rows", "said"), [(None, ["is missing"]), (0, ["has 0 rows"]), (2, ["has 2 rows"]), (3, [])]
)
def test_a_ledger_that_lost_rows_is_told(rows: int | None, said: list[str]) -> None:
    folder = Path("output/lost")
    folder.mkdir(parents=True)
    (folder / "samples.jsonl").write_text(json.dumps(ours("1", "A", "A")) + "\n")
    spent = {"calls": 2, "cached_calls": 1, "failed_attempts": 1}
    (folder / "run.json").write_text(json.dumps({"item_ids": ["1"], "spent": spent}))
    if rows is not None:
        (folder / "calls.jsonl").write_text("{}\n" * rows)
    notices = read_output(folder).notices
    assert [notice.partition(",")[0] for notice in notices] == [
        f"calls.jsonl {one}" for one in said
    ]


@pytest.mark.parametrize(("end", "said"), [("{}", []), ('{"case', ["calls.jsonl has 2 rows"])])
def test_the_last_row_of_a_ledger_needs_no_line_break(end: str, said: list[str]) -> None:
    folder = Path("output/copied")
    folder.mkdir(parents=True)
    (folder / "samples.jsonl").write_text(json.dumps(ours("1", "A", "A")) + "\n")
    (folder / "run.json").write_text(json.dumps({"item_ids": ["1"], "spent": {"calls": 3}}))
    (folder / "calls.jsonl").write_text("{}\n" * 2 + end)
    assert [notice.partition(",")[0] for notice in read_output(folder).notices] == said


def test_a_ledger_that_cannot_be_read_is_told() -> None:
    folder = Path("output/unread")
    (folder / "calls.jsonl").mkdir(parents=True)
    (folder / "samples.jsonl").write_text(json.dumps(ours("1", "A", "A")) + "\n")
    (folder / "run.json").write_text(json.dumps({"item_ids": ["1"], "spent": {"calls": 2}}))
    (notice,) = read_output(folder).notices
    assert notice.startswith("calls.jsonl cannot be read (a folder, not a file)")


def test_settings_that_a_model_refused_are_told() -> None:
    folder = Path("output/spared")
    folder.mkdir(parents=True)
    (folder / "samples.jsonl").write_text(json.dumps(ours("1", "A", "A")) + "\n")
    (folder / "run.json").write_text(
        json.dumps({"item_ids": ["1"], "spent": {"settings_refused": 2}})
    )
    (notice,) = read_output(folder).notices
    assert notice.startswith("a model refused a setting (temperature, seed, stream)")


def test_two_inputs_of_one_name_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    write(RUN)
    Path("other").mkdir()
    Path("other/run.json").write_text(json.dumps(RUN))
    arguments = ["--input", "output/run.json", "other/run.json"]
    assert main(arguments, input_filename="", output_filename="") == 2
    assert "would share one CSV" in capsys.readouterr().err
    assert not Path("evaluation").exists()


def test_identical_option_texts_count_as_right() -> None:
    options = {"A": "same", "B": "same", "C": "other"}
    record = {"label": "A", "options": options, "response": "Answer: B"}
    assert read_output(write([record])).rows[0].correct


def test_the_answers_of_a_server_are_not_the_newest_run() -> None:
    write([ours("1", "A", "A")])
    served = Path("output/served-20261127T000000")
    served.mkdir()
    (served / "samples.jsonl").write_text(json.dumps(ours("2", "", "A")) + "\n")
    os.utime(served / "samples.jsonl", (2**31, 2**31))
    assert newest_output(Path("output")) == Path("output/run.json")


def test_the_newest_run_is_scored_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    import os

    os.utime(write(RUN, "new.json"), (2e9, 2e9))
    os.utime(write(RUN[:1], "old.json"), (1e9, 1e9))
    assert main([], input_filename="", output_filename="") == 0
    assert capsys.readouterr().out.startswith("new:")
    begun = Path("output", "begun", "samples.jsonl")
    begun.parent.mkdir()
    begun.touch()  # has nothing to score yet
    os.utime(begun, (3e9, 3e9))
    assert main([], input_filename="", output_filename="") == 0
    assert capsys.readouterr().out.startswith("new:")
    assert main([], input_filename="output/old.json", output_filename="mine.csv") == 0
    assert Path("mine.csv").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("{}", "must hold a JSON array"),
        ("[]", "holds no finished question"),
        ("[1]", "record 1 is not a JSON object"),
        ('[{"label": "Z", "options": {"A": "x"}}]', "record 1: 'label' is 'Z'"),
        ('[{"label": "A", "options": 7, "response": "A"}]', "record 1: 'options' must be"),
        ('[{"label": "A", "options": {"1": "x"}, "response": "A"}]', "record 1: 'options' must be"),
        ('[{"label": "A", "options": {"A": "x"}}]', "record 1: 'response' is missing"),
        ('[{"options": {"A": "x"}}]', "record 1 is of no form that is read (it holds 'options')"),
    ],
)
def test_a_bad_file_is_one_line(
    content: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.json").write_text(content)
    assert main(["--input", "bad.json"], input_filename="", output_filename="") == 2
    error = capsys.readouterr().err
    assert error.startswith("error: bad.json")
    assert message in error
    assert error.count("\n") == 1


def test_an_array_and_its_folder_are_the_same_run(capsys: pytest.CaptureFixture[str]) -> None:
    array = write(RUN)
    folder = array.with_suffix("")
    folder.mkdir()
    (folder / "samples.jsonl").write_text("".join(json.dumps(r) + "\n" for r in RUN))
    arguments = ["--compare", str(array), str(folder)]
    assert main(arguments, input_filename="", output_filename="") == 2
    said = f"names the same run twice: as {array} and as {folder}\n"
    assert capsys.readouterr().err.endswith(said)


def test_without_any_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([], input_filename="", output_filename="") == 2
    assert "there is no run in output" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nonsense"], "there is no flag --nonsense (see "),
        (["--common"], "--common belongs to --compare"),
        (["--compare", "output/run.json"], "--compare needs two runs or more"),
        (["--compare", "output/run.json", "output/run"], "output/run cannot be read"),
        (["--compare", "output/run.json", "./output/run.json"], "names the same run twice"),
        (["--compare", "a", "b", "--input", "c"], "leave --input out"),
        (["--input", "output/run.json", "b.json", "--output", "c.csv"], "--output names one file"),
        (["--input", "output/run.json", "--output-dir", "x"], "--evaluation-dir says where the sc"),
        (["--output", "c.csv", "--evaluation-dir", "x"], "leave --evaluation-dir out"),
    ],
)
def test_wrong_use_is_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(RUN)
    assert main(arguments, input_filename="", output_filename="") == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert error.count("\n") == 1


def stated(*opinions: str) -> list[dict[str, Any]]:
    """Opinions as a record holds them: each text is the letters of experts 1, 2, … in a round."""
    return [
        {"agent": f"expert-{number}", "round": round_, "answer": letter, "confidence": 0.8}
        for round_, letters in enumerate(opinions)
        for number, letter in enumerate(letters, start=1)
    ]


PANEL = [
    ours("kept", "A", "A", opinions=stated("AAB"), confidence=0.9),
    ours("overturned", "A", "B", opinions=stated("AAB"), confidence=0.7),
    ours("rescued", "A", "A", opinions=stated("ABB", "ABB"), confidence=0.4),
    ours("convinced", "A", "A", opinions=stated("ABC", "AAC"), confidence=0.9),
    ours("split", "A", "A", opinions=stated("ABC"), confidence=0.5),
    ours("wrong", "A", "B", opinions=stated("BBB"), confidence=1.0),
    ours("failed", "A", None),
    ours(
        "teams",
        "A",
        "A",
        difficulty="advanced",
        teams=[{"answer": "A"}, {"answer": "A"}, {"answer": "C"}],
        confidence=None,
    ),
]


def test_what_the_decision_made_of_the_opinions() -> None:
    report = make_report(read_output(write(PANEL)))
    basic = report.agreement["basic"]
    assert basic.n == 6
    assert (basic.right_majority, basic.overturned) == (2, 1)
    assert (basic.wrong_majority, basic.rescued) == (2, 1)
    assert (basic.no_majority, basic.no_majority_right) == (2, 2)
    # Share of pairs that agree, by question: 1/3, 1/3, 1/3, 0 and at the end 1/3, 0, 1.
    assert basic.first == pytest.approx((1 + 1) / 6)
    assert basic.last == pytest.approx((4 / 3 + 1) / 6)
    advanced = report.agreement["advanced"]
    assert (advanced.n, advanced.right_majority, advanced.overturned) == (1, 1, 0)
    assert report.agreement["all"].n == 7
    copies = [record | {"question_id": f"{n}"} for n, record in enumerate(PANEL * 5)]
    text = as_text(report_parts(make_report(read_output(write(copies)))))
    assert "33.3% to 38.9%" in text
    assert "5 of 10" in text  # decided right where most experts were right at first


def test_an_opinion_after_the_debate_is_no_first_one() -> None:
    """The first answers of experts 2 and 3 cannot be read; both follow expert 1 in round 1."""
    opinions = stated("A-?", "AAA")
    (row,) = read_output(write([ours("late", "A", "A", opinions=opinions)])).rows
    assert (row.first_opinions, row.last_opinions) == (("A",), ("A", "A", "A"))
    unnumbered = [{"agent": "expert-1", "answer": "B"}, {"agent": "expert-1", "answer": "C"}]
    (row,) = read_output(write([ours("none stated", "A", "A", opinions=unnumbered)])).rows
    assert (row.first_opinions, row.last_opinions) == (("B",), ("C",))


SKEWNESS = {
    "A": "Mode - Mean/ SD",
    "B": "Mean - Mode/ SD",
    "C": "SD/Mode - mean",
    "D": "Mean - Mode/ SD",
}
"""The options of a question of MedMCQA: medmcqa/medmcqa#5 counts 713 with two of the same text."""


@pytest.mark.parametrize(("gold", "is_right"), [("B", True), ("A", False)])
def test_opinions_of_options_with_the_same_text_agree(gold: str, is_right: bool) -> None:
    records = [
        ours(id_, gold, "B", options=SKEWNESS, opinions=stated(*opinions), confidence=0.5)
        | {"response": "Answer: D"}
        for id_, opinions in (("one", ["BDC", "BDB"]), ("two", ["DBD"]))
    ]
    rows = read_output(write(records)).rows
    assert [row.first_opinions for row in rows] == [("D", "D", "C"), ("D", "D", "D")]
    report = make_report(read_output(write(records))).agreement["all"]
    assert report.first == pytest.approx((1 / 3 + 1) / 2)
    assert report.last == 1
    assert (report.right_majority, report.wrong_majority) == ((2, 0) if is_right else (0, 2))
    assert (report.overturned, report.rescued, report.no_majority) == (0, 0, 0)
    assert [*by_first_agreement(rows)] == ["all agree", "majority"]
    assert agreement_of(rows) == [0.5, 0.5]


def test_votes_for_options_with_the_same_text_are_for_one() -> None:
    rows = [
        scored("q", SKEWNESS, "A", letter, epoch=epoch) for epoch, letter in enumerate("AABDB", 1)
    ]
    assert [row.choice for row in rows] == ["right", "right", "0", "0", "0"]
    figures = repeats(rows)
    assert figures is not None
    assert figures.majority == 0, "three votes of five, two of them for A"
    other = dict(zip("ABCD", [SKEWNESS[letter] for letter in "DACB"], strict=True))
    assert {scored("q", other, "B", letter).choice for letter in "AD"} == {"0"}
    assert scored("q", other, "A", "D").choice == "right"


def test_confidence_is_calibrated_over_answers_that_state_one() -> None:
    report = make_report(read_output(write(PANEL)))
    assert report.calibration["basic"].n == report.calibration["all"].n == 6
    assert report.calibration["advanced"].expected_error is None
    squares = [0.1**2, 0.7**2, 0.6**2, 0.1**2, 0.5**2, 1]
    assert report.calibration["basic"].brier == pytest.approx(sum(squares) / 6)


@pytest.mark.parametrize("confidence", [85, -1, "high", True, float("nan"), None])
def test_a_confidence_that_is_no_probability_is_none(confidence: Any) -> None:
    record = ours("1", "A", "A", confidence=confidence)
    assert make_report(read_output(write([record]))).calibration["all"].n == 0


def test_the_accuracy_by_order_of_the_options() -> None:
    def shown(id_: int, order: str, predicted: str) -> dict[str, Any]:
        permutation = dict(zip("ABCD", order, strict=True))
        return ours(str(id_), "A", predicted, permutation=permutation)

    often = [shown(id_, "CADB", "AB"[id_ % 2]) for id_ in range(6)]
    seldom = [shown(10, "ABCD", "A"), shown(11, "DCBA", "B")]
    output = read_output(write([*often, *seldom, ours("12", "A", "A")]))
    figures = make_report(output).accuracy_by_permutation
    assert {order: (each.n, each.accuracy) for order, each in figures.items()} == {
        "CADB": (6, 0.5),
        "rarer": (2, 0.5),
    }
    assert output.rows[1].source_label == "C"
    assert output.rows[1].letter_in(output.rows[1]) == "A"


def epochs(question_id: str, *letters: str | None, levels: str = "") -> list[dict[str, Any]]:
    names = {"b": "basic", "i": "intermediate", "a": "advanced"}
    return [
        ours(
            question_id,
            "A",
            letter,
            epoch=epoch,
            routed_by="router",
            difficulty=names[levels[epoch - 1]] if levels else "basic",
        )
        for epoch, letter in enumerate(letters, start=1)
    ]


def test_epochs_tell_how_reliable_answers_are() -> None:
    records = [
        *epochs("sure", "A", "A", "A", "A"),
        *epochs("half", "A", "A", "B", "B", levels="bbib"),
        *epochs("voted", "A", "A", "B", "C"),
        *epochs("failed", None, None, None, None),
    ]
    report = make_report(read_output(write(records)))
    assert report.overall.n == 16
    assert report.overall.accuracy == 0.5
    figures = report.repeats
    assert figures is not None
    assert (figures.questions, figures.epochs) == (4, 4)
    assert figures.pass_hat[1] == 0.5
    assert figures.pass_hat[2] == pytest.approx((1 + 1 / 6 + 1 / 6) / 4)
    assert figures.pass_hat[4] == 1 / 4
    assert figures.pass_at[1] == 0.5
    assert figures.pass_at[2] == pytest.approx((1 + 5 / 6 + 5 / 6) / 4)
    assert figures.pass_at[4] == 3 / 4
    right = {epoch: (of.correct, of.n) for epoch, of in figures.by_epoch.items()}
    assert right == {1: (3, 4), 2: (3, 4), 3: (1, 4), 4: (1, 4)}
    assert figures.position_bias is None, "all epochs have one order"
    assert figures.majority == (1 + 1 / 2 + 1 + 0) / 4
    in_any_order = random.Random(5).sample(records, len(records))
    shuffled = make_report(read_output(write(in_any_order, "shuffled.json"))).repeats
    assert shuffled is not None
    assert shuffled.by_epoch == figures.by_epoch
    assert report.routing_stability == 3 / 4
    assert "4 questions in 4 epochs: too few" in as_text(report_parts(report))
    copies = [
        record | {"question_id": f"{record['question_id']} {copy}"}
        for copy in range(3)
        for record in records
    ]
    text = " ".join(as_text(report_parts(make_report(read_output(write(copies))))).split())
    assert "12 questions in 4 epochs" in text
    assert "| 4 answers | 75.0% | 25.0% |" in text
    assert "| 1 | 9 of 12 | 75.0% (46.8–91.1) |" in text
    assert "majority vote of the epochs: 62.5%" in text
    assert "routed the same in all epochs: 75.0%" in text


def test_without_a_question_in_all_epochs_there_are_no_figures_over_epochs() -> None:
    # Epochs 1, 2 and 3 would hold different questions: their spread is none between epochs.
    asked = [("a", 1, "A"), ("a", 3, "A"), ("b", 1, "B"), ("b", 2, "A")]
    rows = [row(letter, id_=id_, epoch=epoch) for id_, epoch, letter in asked]
    assert repeats(rows) is None
    figures = repeats([*rows, row("A", id_="b", epoch=3)])
    assert figures is not None
    assert (figures.epochs, figures.questions, [*figures.by_epoch]) == (3, 1, [1, 2, 3])


def test_votes_of_epochs_are_for_texts_where_the_order_is_unknown() -> None:
    """Wrong answers of three epochs, in letters of their own: two of them chose the same text."""
    texts = ["aspirin", "heparin", "statin", "rest"]
    rows = []
    for epoch, (turn, chosen) in enumerate([(0, "heparin"), (1, "heparin"), (2, "aspirin")], 1):
        shown = dict(zip("ABCD", texts[turn:] + texts[:turn], strict=True))
        letter_of = {text: letter for letter, text in shown.items()}
        gold = letter_of["aspirin"]
        rows.append(scored("q", shown, gold, letter_of[chosen], epoch=epoch))
    assert [row.letter_in(row) for row in rows] == ["B", "A", "C"]
    figures = repeats(rows)
    assert figures is not None
    assert figures.majority == 0, "heparin has two votes of three"
    assert figures.position_bias is not None


@pytest.mark.parametrize("status", ["parse_error", "api_error", "limit", "refused"])
def test_a_question_without_an_answer_has_no_letter(status: str) -> None:
    order = dict(zip("ABCD", "CADB", strict=True))
    shown = {letter: OPTIONS[of] for letter, of in order.items()}
    record = ours("1", "B", None, options=shown, permutation=order, status=status)
    (row,) = read_output(write([record])).rows
    assert (row.source_label, row.letter_in(row), row.choice) == ("A", "", "")


def test_a_right_text_that_stands_twice_doubles_chance() -> None:
    twice = {"A": "aspirin", "B": "rest", "C": "aspirin", "D": "statin"}
    once = twice | {"C": "heparin"}
    assert make_group([scored("1", twice, "A", "B")]).chance == 1 / 2
    assert make_group([scored("1", twice, "A", "B"), scored("2", once, "A", "B")]).chance == 3 / 8


def test_the_interval_over_epochs_is_one_over_questions() -> None:
    """Four epochs that all agree say no more about accuracy than one."""

    def width(times: int) -> float:
        records = [
            record for id_ in range(40) for record in epochs(str(id_), *["AB"[id_ % 2]] * times)
        ]
        overall = make_report(read_output(write(records))).overall
        assert overall.accuracy == 0.5
        assert overall.accuracy_low is not None
        assert overall.accuracy_high is not None
        return overall.accuracy_high - overall.accuracy_low

    assert width(4) == pytest.approx(width(1), abs=0.03)


def test_the_interval_of_questions_that_are_all_right_has_a_width() -> None:
    records = [record for id_ in range(20) for record in epochs(str(id_), "A", "A")]
    overall = make_report(read_output(write(records))).overall
    assert overall.accuracy_high == 1
    assert overall.accuracy_low == pytest.approx(0.8389, abs=1e-4)  # Wilson's for 20 of 20


def test_a_run_of_one_epoch_has_no_figures_of_epochs() -> None:
    report = make_report(read_output(write([ours("1", "A", "A"), ours("2", "A", "B")])))
    assert report.repeats is None
    assert report.routing_stability is None
    assert report.minimum_detectable_difference == {"basic": None, "all": None}  # n is 2


def test_a_forced_level_was_not_routed() -> None:
    records = [record | {"routed_by": "forced"} for record in epochs("1", "A", "A")]
    report = make_report(read_output(write(records)))
    assert report.routed_by == {"forced": 2}
    assert report.routing_stability is None


def test_the_summary_is_strict_json() -> None:
    records = [*PANEL, *epochs("again", "A", "B"), ours("odd", "A", "A", wall_seconds=float("nan"))]
    write(records)
    assert main([], input_filename="", output_filename="") == 0

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    text = Path("evaluation/run.summary.json").read_text()
    summary = json.loads(text, parse_constant=refuse)
    assert len(summary["calibration"]["all"]["bins"]) == 10
    assert summary["repeats"]["questions"] == 1
    assert summary["repeats"]["pass_hat"] == {"1": 0.5, "2": 0.0}


@pytest.mark.sweep
@given(
    st.lists(
        st.tuples(
            st.integers(0, 5),
            st.integers(1, 3),
            st.sampled_from(["A", "B", None]),
            st.sampled_from(["basic", "advanced", "", "foreign"]),
            st.sampled_from(["router", "forced", ""]),
            st.one_of(st.none(), st.floats()),
            st.lists(st.sampled_from("ABCX"), max_size=4),
        ),
        min_size=1,
        unique_by=lambda record: record[:2],  # question and epoch
    )
)
def test_any_mixture_of_records_gives_a_report_without_nan(records: list[Any]) -> None:
    output = read_output(
        write(
            [
                ours(str(id_), "A", letter, epoch=epoch, difficulty=level, routed_by=by)
                | {"confidence": confidence, "opinions": stated("".join(letters))}
                for id_, epoch, letter, level, by, confidence, letters in records
            ]
        )
    )
    report = make_report(output)
    json.dumps(report.as_dict(), allow_nan=False)
    assert as_text(report_parts(report))


@pytest.mark.process
def test_scoring_a_run_loads_neither_numpy_nor_what_only_a_run_needs() -> None:
    others = "{'numpy', 'asyncio', 'mdagents.agents.case', 'mdagents.teams.methods'}"
    program = f"import sys, mdagents.cli.score; print({others} & {{*sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, check=True, capture_output=True, text=True
    )
    assert done.stdout == "set()\n"


def test_every_figure_is_described() -> None:
    pages = [REPOSITORY / "docs" / name for name in ("explanation/scoring.md", "how-to/studies.md")]
    page = "\n".join(path.read_text(encoding="utf-8") for path in pages)
    described = set(re.findall(r"`([a-z_0-9]+)`", page))
    tables = (Report, Group, Proportion, Repeats, Calibration, CalibrationBin, Agreement,
              Comparison, Block, ComparedRun, Pair, Flip, RouterReport, Policy, ExaidFigures,
              EpochAccuracy, PositionBias, Place, WhatIf, FamilyOutcome, Reached, Curve, Choice,
              Difference, Coin, Breakdown, QuestionGroup)  # fmt: skip
    figures = {name for table in tables for name in table.__slots__}
    assert figures <= described, (
        f"explanation/scoring.md and how-to/studies.md do not name {sorted(figures - described)}"
    )
