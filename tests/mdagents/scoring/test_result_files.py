"""Result files as they lie on disks: ids that are missing or shared, torn, odd, of any layout."""

from __future__ import annotations

import csv
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdagents.cli.score import main
from mdagents.scoring import result_file
from mdagents.scoring.result_file import open_result
from mdagents.scoring.rows import Repeated, RunOutput, newest_output, read_output
from mdagents_llm.errors import ConfigError
from tests.mdagents.scoring.result_records import ours

OPTIONS = {"A": "Aspirin", "B": "Heparin", "C": "Warfarin"}


def result(id_: Any, answer: str = "A", **changes: Any) -> dict[str, Any]:
    """A record of a program in the manner of MDAgents; its gold is A."""
    changes = {"question": f"Question {id_}?"} | changes
    reply = f"Answer: {answer}) {OPTIONS[answer]}"
    return {"question_id": id_, "label": "A", "options": OPTIONS, "response": reply} | changes


def read(records: Any, name: str = "results.json") -> RunOutput:
    path = Path(name)
    path.write_text(json.dumps(records), encoding="utf-8")
    return read_output(path)


def read_lines(*records: dict[str, Any] | str, ending: str = "\n") -> RunOutput:
    lines = [line if isinstance(line, str) else json.dumps(line) for line in records]
    Path("results.jsonl").write_text("\n".join(lines) + ending, encoding="utf-8", newline="")
    return read_output(Path("results.jsonl"))


def refused(path: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line with which the program ends."""
    assert main(["--input", path, "--html"], input_filename="", output_filename="") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    return line


# -- ids ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id_", [None, "", "  ", [], {}, ["x"], True])
def test_records_without_an_id_are_all_counted(id_: Any) -> None:
    output = read([result(id_, "AB"[n > 0], question=f"{n}?") for n in range(20)])
    assert [row.question_id for row in output.rows] == [f"sample_{n}" for n in range(1, 21)]
    assert sum(row.correct for row in output.rows) == 1
    assert output.notices == [
        "records without an id, called sample_N by their place in the file: 20"
    ]


def test_numbers_and_uuids_are_ids() -> None:
    uuid = "9f1c0b6e-0000-4000-8000-000000000000"
    output = read([result(id_, question=str(id_)) for id_ in (7, 8.0, 8.5, uuid, 1e300)])
    assert [row.question_id for row in output.rows][:4] == ["7", "8", "8.5", uuid]
    assert output.notices == []


def test_an_id_from_a_place_is_never_one_that_the_file_has() -> None:
    records = [result("sample_2", question="a"), result(None, question="b"),
               result("sample_3", question="c"), result(None, question="d"),
               result("sample_4", question="e")]  # fmt: skip
    ids = [row.question_id for row in read(records).rows]
    assert ids == ["sample_2", "sample_2#2", "sample_3", "sample_4", "sample_4#2"]


def test_different_questions_of_one_id_are_both_counted() -> None:
    output = read(
        [
            result("1", "A", question="first", epoch=1),
            result("1", "B", question="second", epoch=1),
            result("1", "B", question="second", epoch=2),
            result("1", "A", question="first", epoch=2),
        ]
    )
    assert [row.item for row in output.rows] == [("1", 1), ("1#2", 1), ("1#2", 2), ("1", 2)]
    assert output.notices == [
        "records with the id of another question, now with a number (ID#2): 2"
    ]


def test_another_right_option_is_another_question_without_options_as_well() -> None:
    records = [{"id": 1, "label": label, "response": "Answer: A"} for label in "AB"]
    output = read([*records, records[1] | {"epoch": 2}, {"label": "A", "response": "B"}])
    ids = [("1", 1), ("1#2", 1), ("1#2", 2), ("sample_4", 1)]
    assert [row.item for row in output.rows] == ids
    assert "records with the id of another question, now with a number (ID#2): 2" in output.notices


def test_another_right_letter_of_a_text_without_options_is_another_order() -> None:
    records = [
        {"id": 1, "question": "Which?", "label": label, "response": "Answer: A", "epoch": epoch}
        for epoch, label in enumerate("ACB", start=1)
    ]
    assert [row.item for row in read(records).rows] == [("1", 1), ("1", 2), ("1", 3)]
    for record in records:
        del record["epoch"]
    with pytest.raises(ConfigError, match="record 2 is question 1 once more"):
        read(records)


def test_the_same_question_twice_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("twice.json").write_text(json.dumps([result("1"), result("2"), result("1", "B")]))
    line = refused("twice.json", capsys)
    assert "twice.json record 3 is question 1 once more" in line
    assert "--repeated-ids first" in line


def test_a_retry_in_a_run_of_ours_replaces_the_record_and_is_counted() -> None:
    first = result("1", "B", schema_version="1.1.0", predicted="B", status="answered")
    output = read_lines(first, first | {"response": "Answer: A", "predicted": "A"})
    assert [row.response for row in output.rows] == ["A"]
    assert output.notices == ["records that a later one of the same question replaced: 1"]


# -- lines ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["", "\n", "\r\n", "\n\n"])
def test_a_last_line_is_a_line_however_it_ends(ending: str) -> None:
    output = read_lines(result("1"), result("2"), result("3", "B"), ending=ending)
    assert [row.response for row in output.rows] == ["A", "A", "B"]
    assert output.notices == []


def test_a_torn_last_line_is_named() -> None:
    output = read_lines(result("1"), '{"question_id": "2", "la', ending="")
    assert len(output.rows) == 1
    assert output.notices == [
        "the last line, 2, is torn and was left out: it is no JSON and has no line end"
    ]


def test_a_torn_last_line_may_be_no_text() -> None:
    line = json.dumps(result("1")).encode()
    Path("torn.jsonl").write_bytes(line + b"\n" + line[:30] + b"\xff\x00")
    output = read_output(Path("torn.jsonl"))
    assert len(list(output.records())) == 1
    assert "torn" in output.notices[0]
    Path("torn.jsonl").write_bytes(b"\xff" + line)
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        read_output(Path("torn.jsonl"))


def test_a_torn_line_before_others_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    text = json.dumps(result("1"))
    Path("torn.jsonl").write_text(f"{text}\n{text[:20]}\n{text}\n")
    assert "torn.jsonl line 2 is not JSON" in refused("torn.jsonl", capsys)


def test_lines_may_be_in_a_file_that_is_called_json() -> None:
    Path("lines.json").write_text("\n".join(json.dumps(result(str(n))) for n in range(3)))
    assert len(read_output(Path("lines.json")).rows) == 3


# -- statuses -------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["success", "OK", "completed", "done", 200, True])
def test_the_reply_decides_where_a_status_is_not_ours(status: Any) -> None:
    output = read([result(str(n), "AB"[n % 2], status=status) for n in range(20)])
    assert [row.status for row in output.rows] == ["answered"] * 20
    assert sum(row.correct for row in output.rows) == 10
    (notice,) = output.notices
    assert notice == f"status {status!r} is not one of ours and was not used, the reply decides: 20"


@pytest.mark.parametrize(
    "status", ["error", "FAILED", "api-error", "timed out", "Timeout", "cancelled", 500, False]
)
def test_a_failure_is_never_an_answer(status: Any) -> None:
    output = read([result("1", "A", status=status)])
    (row,) = output.rows
    assert (row.status, row.response, row.correct) == ("api_error", "", False)
    assert output.notices == [f"status {status!r} is not one of ours and counts as api_error: 1"]


@pytest.mark.parametrize("error", ["rate limit", {"code": 429}])
def test_a_record_with_an_error_is_never_an_answer(error: Any) -> None:
    output = read([result("1", "A", error=error), result("2", "A", error=None)])
    assert [row.status for row in output.rows] == ["api_error", "answered"]
    assert "counts as api_error: 1" in output.notices[0]


# -- options and gold -----------------------------------------------------------------------------


def test_an_option_that_is_null_is_none() -> None:
    (row,) = read([result("1", options=OPTIONS | {"D": None})]).rows
    assert row.options == 3


def test_without_options_any_letter_is_read_and_chance_is_unknown() -> None:
    records = [
        result("1", options=None, response="Answer: A"),
        result("2", options=None, response="Answer: J"),
        result("3", options={}, response="Error: no decision"),
    ]
    output = read(records)
    assert [(row.response, row.correct) for row in output.rows] == [
        ("A", True),
        ("J", False),
        ("X", False),
    ]
    assert output.notices == ["records without options, where any letter from A to J was read: 3"]


def test_options_in_one_text_and_a_gold_that_is_a_text() -> None:
    record = result("1", options="(A) Yes (B) No (C) Maybe", label="no", response="(B) No")
    (row,) = read([record]).rows
    assert (row.label, row.correct, row.options) == ("B", True, 3)


@pytest.mark.parametrize("label", [None, 1, "Z", "maybe", ["A"]])
def test_a_gold_that_names_no_option_is_refused(
    label: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.json").write_text(json.dumps([result("1"), result("2", label=label)]))
    assert f"bad.json record 2: 'label' is {label!r}" in refused("bad.json", capsys)


def test_a_gold_may_differ_from_another_option_only_in_case(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = {"A": "NA", "B": "Na", "C": "Potassium"}
    for label, letter in (("NA", "A"), ("Na", "B"), ("B) Na", "B"), ("potassium", "C")):
        (row,) = read([result("1", label=label, options=options)]).rows
        assert row.label == letter, label
    Path("bad.json").write_text(json.dumps([result("1", label="na", options=options)]))
    assert "'label' is 'na'" in refused("bad.json", capsys)


def test_a_gold_may_be_written_in_many_ways(capsys: pytest.CaptureFixture[str]) -> None:
    options = {"A": "Aspirin", "B": "Heparin", "C": "Vitamin C", "D": "c"}
    of_lower_case = {letter.lower(): text for letter, text in options.items()}
    ways = ("C", "(C)", "(c)", "C.", "C)", "C) Vitamin C", "C. vitamin  c", "(C) Vitamin C",
            "Option C", "option_c", "answer: C", "Vitamin C")  # fmt: skip
    for label in ways:
        for shown in (options, of_lower_case):
            (row,) = read([result("1", label=label, options=shown)]).rows
            assert row.label == "C", label
    (row,) = read([result("1", label="b.", options=None)]).rows
    assert row.label == "B"
    # `c` is a letter and the text of D; a letter with the text of another option is neither.
    for label in ("c", "A) Heparin", "K", "C D"):
        Path("bad.json").write_text(json.dumps([result("1", label=label, options=options)]))
        assert f"'label' is {label!r}" in refused("bad.json", capsys)


@pytest.mark.parametrize("many", [3, 3_000])
def test_an_id_of_many_questions_or_answers(many: int) -> None:
    asked = [result("x", question=f"Question {n}?") for n in range(many)]
    ids = [row.question_id for row in read(asked).rows]
    assert ids == ["x", *(f"x#{n}" for n in range(2, many + 1))]
    path = Path("again.json")
    path.write_text(json.dumps(asked[:1] * many + asked[1:2]))
    rows = read_output(path, Repeated.EPOCHS).rows
    assert [row.item for row in rows] == [
        *(("x", epoch) for epoch in range(1, many + 1)),
        ("x#2", 1),
    ]


@pytest.mark.parametrize("error", ["None", "null", "NaN", " ", "-", "No error", "OK.", [None], 0])
def test_an_error_that_is_none(error: object) -> None:
    """Cells of tables and the words of programs, as in deepeval#3298."""
    output = read([result("1", error=error)])
    assert [(row.status, row.correct) for row in output.rows] == [("answered", True)]
    assert output.notices == []


@pytest.mark.parametrize("error", ["None of the endpoints answered", "timeout", ["x"], True])
def test_an_error_that_is_one(error: object) -> None:
    assert [row.status for row in read([result("1", error=error)]).rows] == ["api_error"]


@pytest.mark.parametrize("status", ["no errors", "error: none", "error-free", "not_failed", "done"])
def test_a_status_that_denies_a_failure(status: str) -> None:
    assert [row.status for row in read([result("1", status=status)]).rows] == ["answered"]


@pytest.mark.parametrize(
    "status", ["error: no route to host", "error: 0 tokens", "exit 0 error", "status 0 failed"]
)
def test_a_status_that_names_a_failure_beside_a_denial(status: str) -> None:
    assert [row.status for row in read([result("1", status=status)]).rows] == ["api_error"]


def test_the_files_beside_a_result_that_macos_leaves() -> None:
    folder = Path("output")
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps([result("1")]))
    (folder / "._run.json").write_bytes(b"\x00\x05\x16\x07")
    os.utime(folder / "._run.json", (2**31, 2**31))
    assert newest_output(folder) == folder / "run.json"
    folder = Path("board")
    folder.mkdir()
    (folder / "q1.json").write_text(json.dumps(result("1")))
    (folder / "._q1.json").write_bytes(b"\x00\x05\x16\x07")
    assert len(read_output(folder).rows) == 1


@pytest.mark.parametrize("letter", ["A", "C"])
def test_a_gold_that_two_equal_options_hold_is_either(letter: str) -> None:
    """Two options with the same text occur in MedMCQA (medmcqa/medmcqa#5)."""
    options = {"A": "Mode", "B": "Mean", "C": "Mode ", "D": "SD"}
    (row,) = read([result("1", label="mode", options=options, response=f"({letter})")]).rows
    assert (row.label, row.right_letters, row.correct) == ("A", ("A", "C"), True)


def test_repeated_ids_are_refused_or_read_as_the_user_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    records = [result("1"), result("2"), result("1", "B"), result("1"), result("2", "B")]
    Path("repeated.json").write_text(json.dumps(records))
    assert refused("repeated.json", capsys) == (
        "error: repeated.json record 3 is question 1 once more; --repeated-ids first scores the "
        "first record of each question, --repeated-ids epochs all as epochs"
    )
    for way, score, notice in (
        ("first", "2 of 2 right", "that an earlier one answers, left out: 3"),
        ("epochs", "3 of 5 right", "that an earlier one answers, as epochs: 3"),
    ):
        command = ["--input", "repeated.json", "--repeated-ids", way, "--html"]
        assert main(command, input_filename="", output_filename="") == 0
        printed = " ".join(capsys.readouterr().out.split())
        assert score in printed
        assert notice in printed
    compared = ["--compare", "repeated.json", "other.json", "--repeated-ids", "epochs"]
    Path("other.json").write_text(json.dumps(records))
    assert main(compared, input_filename="", output_filename="") == 0


def test_a_question_that_repeats_without_an_id() -> None:
    """Data sets repeat questions (hendrycks/test#29), so that only the user knows what it means."""
    records = [
        *(result(None, letter, question="Why?") for letter in "ABA"),
        result(None, question="How?"),
        *(result(None, letter, question="") for letter in "AB"),  # of unknown texts
    ]
    Path("results.json").write_text(json.dumps(records))
    notice = "records without an id that repeat an earlier question and count as further ones "
    for repeated, names, has_notice in (
        (None, ["sample_1", "sample_2", "sample_3", "sample_4", "sample_5", "sample_6"], True),
        (Repeated.FIRST, ["sample_1", "sample_4", "sample_5", "sample_6"], False),
        (
            Repeated.EPOCHS,
            ["sample_1", "sample_1", "sample_1", "sample_4", "sample_5", "sample_6"],
            False,
        ),
    ):
        output = read_output(Path("results.json"), repeated)
        assert [row.question_id for row in output.rows] == names
        assert len({row.item for row in output.rows}) == len(names)
        assert any(one.startswith(notice) for one in output.notices) == has_notice
        assert len(list(output.records())) == len(names)


@pytest.mark.parametrize(
    ("field", "needed"), [("response", "'label', or"), ("pred", "'label' and 'response', or")]
)
def test_questions_with_replies_are_results_of_no_form(
    field: str, needed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    record = {"question": "Q?", "options": {"A": "x"}, "answer_idx": "A", "answer": "x", field: "A"}
    Path("results.json").write_text(json.dumps([record]))
    line = refused("results.json", capsys)
    assert "is of no form that is read (it holds 'question', 'options', 'answer_idx'" in line
    assert f"it needs {needed} the fields of a program" in line


@pytest.mark.parametrize(
    "stated", [(0, 1, 2), (1, 2, 3), ("0", "1", "2"), ("1", "2", "3"), (0, "1", 2.0)]
)
def test_epochs_may_be_counted_from_0_and_be_texts(stated: tuple[Any, ...]) -> None:
    records = [
        result(id_, answer, epoch=epoch)
        for epoch, answers in zip(stated, ("AB", "BB", "BA"), strict=True)
        for id_, answer in zip("12", answers, strict=True)
    ]
    expected = [
        ("1", 1, True), ("2", 1, False), ("1", 2, False),
        ("2", 2, False), ("1", 3, False), ("2", 3, True),
    ]  # fmt: skip
    Path("epochs.json").write_text(json.dumps(records))
    for repeated in (None, *Repeated):
        output = read_output(Path("epochs.json"), repeated)
        assert [(*row.item, row.correct) for row in output.rows] == expected
        assert output.notices == []
        assert [record["epoch"] for _, record in output.records()] == [
            epoch for epoch in stated for _ in "12"
        ]


def test_an_epoch_that_is_none_is_the_first() -> None:
    ids: list[Any] = [None, "", "one", -1, [], True, "9" * 5000]
    output = read([result(f"{n}", epoch=epoch) for n, epoch in enumerate(ids)])
    assert {row.epoch for row in output.rows} == {1}


def test_a_question_twice_in_epoch_0_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("twice.json").write_text(json.dumps([result("1", epoch=0), result("1", "B", epoch=0)]))
    assert "record 2 is question 1 in epoch 0 once more" in refused("twice.json", capsys)


def test_a_file_that_is_no_run_is_told_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    files = {
        "README.md": "# A project\n\nIt is.\n",
        "report.html": "<!doctype html>\n<html></html>",
        "scores.csv": "question_id,label\n1,A\n",
        "wrapped.json": json.dumps({"name": "x", "results": [result("1")]}),
        "harness/results_2026.json": json.dumps({"results": {}, "configs": {}, "versions": {}}),
        "output/run/run.json": json.dumps({"config_hash": "0", "item_ids": []}),
        "output/run/calls.jsonl": '{"provider": "openai", "outcome": "ok", "attempt": 1}\n' * 2,
        "run.summary.json": json.dumps({"overall": {}, "by_difficulty": {}}),
        "compare.json": json.dumps({"questions": 9, "runs": [], "pairs": [], "nobody_right": []}),
        "earlier.json": json.dumps({"bootstrap_seed": 42, "runs": [], "pairs": [], "router": None}),
        "questions.jsonl": '{"question": "Q?", "options": {"A": "x"}, "answer_idx": "A"}\n' * 2,
    }
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    for name, message in {
        "README.md": "is not JSON (it begins with '# A project'); give the folder of a run",
        "report.html": "is an HTML page and no run; give the folder of a run",
        "scores.csv": "is not JSON (it begins with 'question_id,label'); save the rows of",
        "wrapped.json": "holds records in its field 'results'; save that array as a file",
        "harness/results_2026.json": "without its samples; give samples_*.jsonl",
        "output/run/run.json": "is the manifest of a run; give its folder, output/run",
        "output/run/calls.jsonl": "is the ledger of a run; give its folder, output/run",
        "output/run": "is a run without a finished question",
        "run.summary.json": "is the score of a run; give the folder of a run",
        "compare.json": "is a comparison of runs; give the folder of a run",
        "earlier.json": "is a comparison of runs; give the folder of a run",
        "questions.jsonl": "is a file of questions, without the answers of a model",
        "READMEE.md": "cannot be read: No such file or directory; did you mean 'README.md'?",
    }.items():
        assert message in refused(name, capsys)
    Path("output/run/samples.jsonl").write_text(json.dumps(result("1")) + "\n")
    assert "output holds runs and is none itself; give one of them, such as output/run" in refused(
        "output", capsys
    )


# -- odd input ------------------------------------------------------------------------------------

ONE = json.dumps([result("1")])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b" \n ", "is empty"),
        (b"{}", "must hold a JSON array of records, or JSON Lines"),
        (b"question,answer\n1,A\n", "is not JSON"),
        (b"[" + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"]", "record 1 is nested too deep"),
        (ONE[:-9].encode(), "record 1 is not JSON"),
        (ONE[:-1].encode(), "is cut off behind record 1"),
        (ONE[:-1].encode() + b" 7]", "has no comma behind record 1"),
        (ONE.encode() + b"]", "continues after its array"),
        (ONE.replace("Question", "Qu\xe9stion").encode("latin-1"), "is not UTF-8 text; save it"),
        (gzip.compress(ONE.encode()), "is compressed; unpack it first (gunzip)"),
        (b"PK\x03\x04 and no more", "is not a complete ZIP archive"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "is a Git LFS pointer; fe"),
        (ONE.replace('"1"', "9" * 5000).encode(), "record 1 has a whole number of more than"),
    ],
)
def test_what_cannot_be_read_is_one_line(
    content: bytes, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("odd.json").write_bytes(content)
    line = refused("odd.json", capsys)
    assert line.startswith("error: odd.json ")
    assert message in line


def test_a_damaged_array_names_the_folder_with_the_same_records(
    capsys: pytest.CaptureFixture[str],
) -> None:
    samples = Path("run", "samples.jsonl")
    samples.parent.mkdir()
    samples.write_text(json.dumps(ours("1", "A", "A")) + "\n")
    Path("run.json").write_text(ONE[:-9])
    line = refused("run.json", capsys)
    assert "run.json record 1 is not JSON" in line
    assert line.endswith("; its records are also in run: delete it, or give that folder")
    assert len(read_output(Path("run")).rows) == 1
    samples.write_text("{}\n")
    assert "its records are also" not in refused("run/samples.jsonl", capsys)
    assert "its records are also" not in refused("run", capsys)


def test_a_response_that_is_nested_too_deeply_is_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = ONE.replace('"Answer: A) Aspirin"', "[" * 900 + '"A"' + "]" * 900)
    Path("deep.json").write_text(text)
    assert "deep.json record 1 is nested too deeply" in refused("deep.json", capsys)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_an_array_may_be_in_any_encoding_of_json(encoding: str) -> None:
    Path("e.json").write_text(json.dumps([result("é")], ensure_ascii=False), encoding=encoding)
    (row,) = read_output(Path("e.json")).rows
    assert (row.question_id, row.correct) == ("é", True)


def test_lines_may_begin_with_a_byte_order_mark() -> None:
    Path("bom.jsonl").write_text(json.dumps(result("1")) + "\n", encoding="utf-8-sig")
    assert len(read_output(Path("bom.jsonl")).rows) == 1


def test_lines_in_utf_16_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("wide.jsonl").write_text(json.dumps(result("1")) + "\n", encoding="utf-16")
    assert "wide.jsonl is UTF-16 text; save it as UTF-8" in refused("wide.jsonl", capsys)


@pytest.mark.parametrize("odd", ["\ud83d", "\x00", "\udc00x"])
def test_what_no_file_can_hold_is_replaced(odd: str) -> None:
    record = result(f"id{odd}", question=odd, options={"A": odd, "B": "y"}, difficulty=odd,
                    routed_by=odd, answer_text=odd, model=odd)  # fmt: skip
    Path("odd.json").write_text(json.dumps([record]))
    assert main(["--input", "odd.json", "--html"], input_filename="", output_filename="") == 0
    with Path("evaluation/odd.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["question_id"] == "id" + odd.replace(odd[0], "\ufffd")
    assert "\x00" not in Path("evaluation/odd.html").read_text(encoding="utf-8")


def test_numbers_that_are_none_are_unknown() -> None:
    text = json.dumps([result("1", calls=0, wall_seconds=1, token_usage={"total_tokens": 2})])
    for number in ("NaN", "Infinity", "-Infinity", "9" * 400, "true", '"7"'):
        odd = text.replace('"calls": 0', f'"calls": {number}').replace(": 2}", f": {number}}}")
        Path("odd.json").write_text(odd)
        (row,) = read_output(Path("odd.json")).rows
        assert (row.calls, row.total_tokens) == (None, None)


@pytest.mark.sweep
def test_a_field_of_ten_megabytes_is_read() -> None:
    (row,) = read([result("1", response="word and more. " * 700_000 + "\nAnswer: A")]).rows
    assert row.correct


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "folder holds no samples.jsonl and no result in a *.json"),
        ({"a.json": ONE, "b.json": ONE}, "folder/a.json is more than one record"),
        ({"a.json": "{"}, "folder/a.json is not JSON"),
        ({"a.jsonl": ONE, "b.jsonl": ONE}, "holds JSON Lines; name one, such as folder/a.jsonl"),
    ],
)
def test_a_folder_that_is_no_run_is_refused(
    files: dict[str, str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("folder").mkdir()
    for name, text in files.items():
        Path("folder", name).write_text(text)
    assert message in refused("folder", capsys)


# -- reading piece by piece -----------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.sweep
@given(
    st.lists(VALUES, max_size=6),
    st.sampled_from([1, 2, 3, 7, 64]),
    st.booleans(),
    st.sampled_from([",\n", " ,\t\r\n", "\n,\n", ",", ", \n\n"]),
)
def test_an_array_is_read_the_same_in_pieces_of_any_size_and_lines_of_any_length(
    values: list[Any], size: int, ascii_only: bool, comma: str
) -> None:
    each = [json.dumps(value, ensure_ascii=ascii_only, indent=size % 3 or None) for value in values]
    Path("values.json").write_text(f"[\n{comma.join(each)}]", encoding="utf-8", newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(result_file, "CHUNK", size)
        file = open_result(Path("values.json"))
        assert [value for _, value in file] == values
        assert list(file.fetch(range(len(values)))) == values


def test_a_folder_of_records_that_one_stands_in_is_scored_under_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "board"
    folder.mkdir()
    record = {
        "qid": "1",
        "ground_truth": "A",
        "predicted_answer": "A",
        "options": {"A": "x", "B": "y"},
    }
    (folder / "1-result.json").write_text(json.dumps(record))
    monkeypatch.chdir(folder)
    output = read_output(Path())
    assert (output.name, [row.correct for row in output.rows]) == ("board", [True])


@pytest.mark.parametrize("error", [True, 500, "timeout", {"code": 1}, ["x"]])
def test_an_error_is_never_passed_over(tmp_path: Path, error: object) -> None:
    record = {"label": "A", "options": {"A": "x", "B": "y"}, "response": "A", "error": error}
    file = tmp_path / "r.json"
    file.write_text(json.dumps([record]))
    output = read_output(file)
    assert [row.status for row in output.rows] == ["api_error"]
    assert any("error" in notice for notice in output.notices)


@pytest.mark.parametrize(
    ("lines", "values"),
    [
        ('{"a": 1},\n[2],\n"3"', [{"a": 1}, [2], "3"]),
        ('{"a": 1},\n[2,\n"3"], 4,\n5', [{"a": 1}, [2, "3"], 4, 5]),
        ('1, 2,\n"3,\\n"', [1, 2, "3,\n"]),
        ('"\\ud800",\n{"a":\n2},\n3', ["\ud800", {"a": 2}, 3]),
        ("1\n,\n2", [1, 2]),
    ],
)
def test_values_of_an_array_need_not_be_one_a_line(lines: str, values: list[Any]) -> None:
    Path("values.json").write_text(f"[{lines}\n]\n", encoding="utf-8")
    assert [value for _, value in open_result(Path("values.json"))] == values


@pytest.mark.parametrize("lines", ["1\n2", "1,\n2\n3", "{},\n,{}", '{"a": 1},\n{"a": 1\n'])
def test_an_array_of_lines_without_its_commas_is_refused(lines: str) -> None:
    Path("values.json").write_text(f"[{lines}\n]\n", encoding="utf-8")
    with pytest.raises(ConfigError):
        list(open_result(Path("values.json")))


@pytest.mark.parametrize("comma", [",", ",\n"])
@pytest.mark.parametrize("longest", [50, 70_000])
def test_lines_of_an_array_may_be_long(comma: str, longest: int) -> None:
    values = [{"number": number, "text": "x" * (number % 7 * longest)} for number in range(60)]
    Path("values.json").write_text(f"[{comma.join(map(json.dumps, values))}]", encoding="utf-8")
    file = open_result(Path("values.json"))
    assert [value for _, value in file] == values
    assert list(file.fetch([3, 59])) == [values[3], values[59]]


@pytest.mark.parametrize(
    "number",
    [
        "100000000000000000",
        "1000000000000000000",
        "1000000000000000000.0",
        "9223370000000000000",
        "1000000000000000000000",
        "0.29999999999999998",
        "1e400",
        "-0.0",
        '{"named": 1, "named": 2}',
    ],
)
def test_numbers_of_public_reports_are_those_of_json(number: str) -> None:
    """Reported of pydantic, whose parser reads a record on a line of its own."""
    Path("values.json").write_text(f"[\n{number},\n{number}\n]\n", encoding="utf-8")
    expected = json.loads(number)
    found = [value for _, value in open_result(Path("values.json"))]
    assert found == [expected, expected]
    assert {type(value) for value in found} == {type(expected)}
