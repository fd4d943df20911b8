"""Parquet files with pictures, as the Hugging Face Hub publishes them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mdagents.cli.dataset_parts import extract
from mdagents.datasets import parquet_rows
from mdagents.datasets.dataset import open_dataset
from mdagents_llm.errors import ConfigError
from tests.mdagents.datasets.made_pictures import BLUE, GREEN, RED, png

A, B, C = png(RED), png(GREEN), png(BLUE)


@pytest.fixture
def mmmu(tmp_path: Path) -> Path:
    """Return a file in MMMU's form: options as Python writes them, one column a picture."""
    rows = [
        {"id": f"q{n}", "question": "See <image 1>.", "options": "['<image 2>', 'no']",
         "answer": "B", "question_type": "multiple-choice", "img_type": "['Plots']",
         "image_1": {"bytes": A if n % 2 else C, "path": f"{n}.png"},
         "image_2": {"bytes": B, "path": None}, "image_3": None, "when": n / 7}
        for n in range(40)
    ]  # fmt: skip
    path = tmp_path / "mmmu.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=13)
    return path


@pytest.mark.parametrize("kept", [2**26, 0])
def test_pictures_are_read_on_demand(
    mmmu: Path, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_rows, "_KEPT", kept)
    dataset = open_dataset(str(mmmu), mmmu.parent)
    assert [entry.pictures for entry in dataset.index] == [2] * 40
    assert sum(map(len, dataset.records)) < 40 * 400
    for number in (0, 12, 13, 39):
        question = dataset.load(dataset.index[number])
        assert question.text == "See [Picture 1]."
        assert question.options == {"A": "", "B": "no"}
        found = [(p.read(), p.option) for p in question.pictures]
        assert found == [(A if number % 2 else C, ""), (B, "A")]


def test_lists_of_pictures(tmp_path: Path) -> None:
    plain = {"question": "?", "choices": ["a", "b"], "answer_index": 1}
    rows = [
        plain
        | {"images": [{"bytes": A, "path": "a.png"}, {"bytes": B, "path": None}], "img": None},
        plain | {"images": [], "img": C},
        plain | {"images": None, "img": None},
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "x.parquet")
    dataset = open_dataset(str(tmp_path / "x.parquet"), tmp_path)
    contents = [[p.read() for p in dataset.load(entry).pictures] for entry in dataset.index]
    assert contents == [[A, B], [C], []]
    assert [entry.missing_picture for entry in dataset.index] == ["", "", ""]


def test_a_struct_may_hold_a_path_alone(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(A)
    row = {"question": "?", "choices": ["a", "b"], "answer_index": 1}
    rows = [
        row | {"image": {"bytes": None, "path": "a.png"}},
        row | {"image": {"bytes": b"", "path": "/etc/passwd"}},
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "x.parquet")
    dataset = open_dataset(str(tmp_path / "x.parquet"), tmp_path)
    assert dataset.load(dataset.index[0]).pictures[0].read() == A
    assert "outside the folder" in dataset.index[1].missing_picture


@pytest.mark.parametrize(
    ("column", "read"),
    [
        (pa.array([b"Which \xc3\xa9lement?"]), "Which élement?"),  # apache/arrow#1830
        (pa.array([b"Which?"], pa.large_binary()), "Which?"),
        (pa.array([[("A", "Salt")]], pa.map_(pa.string(), pa.string())), {"A": "Salt"}),
        (pa.array([[(b"A", b"Salt")]], pa.map_(pa.binary(), pa.binary())), {"A": "Salt"}),
        (pa.array([[b"Salt", b"Iron"]]), ["Salt", "Iron"]),  # NVIDIA/cudf#10733
        (pa.array([1234567891], pa.timestamp("ns")), "1970-01-01 00:00:01.234567891"),
        (pa.array([{"bytes": b"text"}]), {"parquet": "x.parquet/0/a%20b"}),
        (pa.array([A]), {"parquet": "x.parquet/0/a%20b"}),
        (pa.array([b""]), None),
    ],
)
def test_cells_of_every_kind(tmp_path: Path, column: pa.Array, read: object) -> None:
    pq.write_table(pa.table({"a b": column}), tmp_path / "x.parquet")
    assert [*parquet_rows.parquet_records(tmp_path / "x.parquet")] == [{"a b": read}]


@pytest.mark.parametrize(
    ("columns", "names", "message"),
    [
        ([pa.array([10**7], pa.date32())], ["when"], "a cell in column 'when' that cannot be read"),
        (
            [pa.array([[("A", "x"), ("A", "y")]], pa.map_(pa.string(), pa.string()))],
            ["options"],
            "(duplicate key was 'A').\"); leave this column out, or write it as text",
        ),
        ([pa.array(["A"]), pa.array(["B"])], ["answer"] * 2, "has two columns 'answer'"),
        ([pa.array(["A"]), pa.array(["B"])], ["question"] * 2, "has two columns 'question'"),
    ],
)
def test_what_cannot_be_read_is_named(
    tmp_path: Path, columns: list[pa.Array], names: list[str], message: str
) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.Table.from_arrays(columns, names=names), path)
    with pytest.raises(ConfigError, match=re.escape(message)):
        open_dataset(str(path), tmp_path)


def test_of_two_columns_that_are_not_part_of_a_question_the_last_one_counts(tmp_path: Path) -> None:
    columns = {"question": "Which?", "options": ["a", "b"], "answer_idx": "B"}
    names, arrays = [*columns, "z", "z"], [pa.array([value]) for value in columns.values()]
    table = pa.Table.from_arrays([*arrays, pa.array([1]), pa.array([2])], names=names)
    pq.write_table(table, tmp_path / "x.parquet")
    assert [*parquet_rows.parquet_records(tmp_path / "x.parquet")] == [columns | {"z": 2}]


def test_an_extract_has_files(mmmu: Path, tmp_path: Path) -> None:
    out = tmp_path / "part" / "some.jsonl"
    assert extract(["--dataset", str(mmmu), "q3", "q4", "--output", str(out)]) == 0
    dataset = open_dataset(str(out), tmp_path)
    pictures = [[p.read() for p in dataset.load(entry).pictures] for entry in dataset.index]
    assert pictures == [[A, B], [C, B]]
    assert len(list((tmp_path / "part" / "images").iterdir())) == 3
    beside = tmp_path / "beside.jsonl"
    assert extract(["--dataset", str(mmmu), "q3", "--output", str(beside)]) == 0
    dataset = open_dataset(str(beside), tmp_path)
    assert dataset.load(dataset.index[0]).pictures[0].read() == A


def test_damaged_files(mmmu: Path, tmp_path: Path) -> None:
    dataset = open_dataset(str(mmmu), tmp_path)
    (picture, _) = dataset.load(dataset.index[5]).pictures
    mmmu.write_bytes(mmmu.read_bytes()[:-100])
    for read in (picture.read, lambda: open_dataset(str(mmmu), tmp_path)):
        with pytest.raises(ConfigError, match="cannot be read as Parquet") as error:
            read()
        assert "\n" not in str(error.value)
    record = {"question": "?", "options": ["a", "b"], "answer_idx": "A"}
    for place in ("mmmu.parquet/9999/image_1", "mmmu.parquet/x/y", "mmmu.parquet/1/none"):
        (tmp_path / "x.jsonl").write_text(json.dumps(record | {"image": {"parquet": place}}))
        dataset = open_dataset(str(tmp_path / "x.jsonl"), tmp_path)
        with pytest.raises(ConfigError, match=r"mmmu\.parquet"):
            dataset.load(dataset.index[0]).pictures[0].read()
    (tmp_path / "x.jsonl").write_text(json.dumps(record | {"image": {"parquet": "z.parquet/1/a"}}))
    assert open_dataset(str(tmp_path / "x.jsonl"), tmp_path).index[0].missing_picture
