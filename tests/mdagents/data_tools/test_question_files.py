"""Published records become files of questions, without those that cannot be asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mdagents.data_tools.question_files import as_published, make_questions
from mdagents.datasets.dataset import open_dataset
from mdagents.datasets.medmcqa import Counting
from mdagents_llm.errors import ConfigError


def a_record(number: int, **changes: Any) -> dict[str, Any]:
    options = {"A": "yes", "B": "no"}
    return {"id": number, "question": "?", "options": options, "answer_idx": "A"} | changes


def test_a_record_that_cannot_be_used_is_left_out_and_named(tmp_path: Path) -> None:
    records = (a_record(n, question="" if n == 40 else "?") for n in range(200))
    made = make_questions(records, "someone/questions", tmp_path / "test.jsonl")
    assert (made.records, made.published) == (199, 200)
    (line,) = made.left_out
    assert line.startswith("someone/questions line 41: field 'question'")


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([a_record(1), a_record(2, answer_idx="Z")], "1 of 2 records of someone/questions cannot"),
        (
            [a_record(1), a_record(1)],
            "1 of 2 records of someone/questions cannot be used, the first: someone/questions "
            "line 2: the id '1' is that of line 1",
        ),
        ([], "someone/questions has no questions in it"),
        ([a_record(1, question="\ud83d")] * 2, "2 of 2 records"),
    ],
)
def test_a_file_that_is_broken_is_refused(
    tmp_path: Path, records: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        make_questions(iter(records), "someone/questions", tmp_path / "test.jsonl")
    assert message in str(caught.value)


def test_lines_are_kept_as_they_are(tmp_path: Path) -> None:
    lines = [b'{"id":1,  "question":"?","options":{"A":"yes","B":"no"},"answer_idx":"A"}', b"\r\n"]
    make_questions(lines, "mine.jsonl", tmp_path / "test.jsonl")
    assert (tmp_path / "test.jsonl").read_bytes() == lines[0] + b"\n"
    assert [path.name for path in tmp_path.iterdir()] == ["test.jsonl"]


def a_choice(number: int, **changes: Any) -> dict[str, Any]:
    listed = "Which?\nAnswer Choices:\nA. one\nB. two"
    kind = {"answer_type": "multipleChoice", "answer": "B"}
    return {"id": number, "question": listed} | kind | changes


def test_what_was_never_a_question_for_us_does_not_count_as_broken(tmp_path: Path) -> None:
    records = [a_choice(n, answer_type="exactMatch" if n > 5 else "multipleChoice")
               for n in range(30)]  # fmt: skip
    made = make_questions(records, "hle", tmp_path / "test.jsonl")
    assert (made.records, made.not_used, made.published) == (6, 24, 30)
    (line,) = made.left_out
    assert line.startswith("24 of hle (line 7, 8, 9, ")
    assert line.endswith(", …): field 'answer_type' is 'exactMatch', not 'multipleChoice'")
    with pytest.raises(ConfigError, match=r"^hle has no questions in it; 24 of hle \(line 1, 2"):
        make_questions(records[6:], "hle", tmp_path / "test.jsonl")


def test_only_the_wanted_part_is_kept(tmp_path: Path) -> None:
    records = [a_record(1, split="test"), a_record(2, split="train"), a_record(3)]
    made = make_questions(records, "all.csv", tmp_path / "test.jsonl", only={"split": "test"})
    assert (made.records, made.left_out) == (
        2, ("1 of all.csv (record 2): field 'split' is 'train', not 'test'",)
    )  # fmt: skip


def a_place(cop: object) -> dict[str, Any]:
    return {"question": "?", "opa": "w", "opb": "x", "opc": "y", "opd": "z", "cop": cop}


@pytest.mark.parametrize(("first", "gold"), [(0, "C"), (1, "B")])
def test_the_origin_says_how_cop_counts(tmp_path: Path, first: int, gold: str) -> None:
    counting = Counting(first, "as its source does")
    path = tmp_path / "test.jsonl"
    made = make_questions([a_place(2)], "some/table", path, counting=counting)
    assert made.counting == counting
    record = json.loads(path.read_bytes())
    with pytest.raises(ConfigError, match=r"test.jsonl: field 'cop' may count from 0 or from 1"):
        open_dataset(str(path), tmp_path)  # SOURCE.json is not beside it yet
    path.write_text(json.dumps(record | {"answer_idx": gold}))
    assert open_dataset(str(path), tmp_path).index[0].id == "sample_1"


def test_a_file_that_is_kept_says_how_it_counts(tmp_path: Path) -> None:
    path = tmp_path / "test.jsonl"
    path.write_text(json.dumps(a_place(4)))
    assert as_published(path, "some/file").counting == Counting(1, "by a 4 on line 1")
    path.write_text(json.dumps(a_place(1)))
    with pytest.raises(ConfigError, match=r"^some/file: field 'cop' may count from 0 or from 1"):
        as_published(path, "some/file")
