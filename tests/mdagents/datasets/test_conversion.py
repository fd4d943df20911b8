"""Records come out of published files: archives, tables and splits."""

from __future__ import annotations

import csv
import datetime
import io
import json
import tarfile
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mdagents.data_tools.question_files import make_questions
from mdagents.datasets import conversion
from mdagents.datasets.dataset import open_dataset
from mdagents.datasets.questions import SourceQuestion
from mdagents.datasets.sources import KNOWN, SOURCES, Host
from mdagents_llm.errors import ConfigError


def questions(records: conversion.Records, path: Path) -> list[SourceQuestion]:
    made = make_questions(records, "origin", path)
    assert made.left_out == ()
    dataset = open_dataset(str(path), path.parent)
    assert len(dataset.index) == made.records
    return [dataset.load(entry) for entry in dataset.index]


def test_mmlu_comes_out_of_its_archive(tmp_path: Path) -> None:
    path = tmp_path / "data.tar"
    with tarfile.open(path, "w") as archive:
        for subject in (*conversion.MMLU_SUBJECTS, "philosophy"):
            for split in ("test", "dev"):
                table = io.StringIO()
                row = [f'Of {subject}, "the" nerve\nis:', "0.1", "None", "nan", f"in {split}", "D"]
                csv.writer(table).writerows([row, [*row[:-1], "B"]])
                content = table.getvalue().encode()
                info = tarfile.TarInfo(f"data/{split}/{subject}_{split}.csv")
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    found = questions(conversion.mmlu_test([path]), tmp_path / "test.jsonl")
    assert len(found) == 2 * len(conversion.MMLU_SUBJECTS)
    assert found[1].id == "anatomy-test-1"
    assert found[0].text == 'Of anatomy, "the" nerve\nis:'
    assert [*found[0].options.values()] == ["0.1", "None", "nan", "in test"]
    assert [question.gold for question in found[:2]] == ["D", "B"]
    (first, *_) = questions(conversion.mmlu_dev([path]), tmp_path / "train.jsonl")
    assert first.options["D"] == "in dev"


def test_pubmedqa_is_split_as_its_authors_did(tmp_path: Path) -> None:
    labelled, truth = tmp_path / "ori_pqal.json", tmp_path / "test_ground_truth.json"
    record = {"QUESTION": "Is it?", "CONTEXTS": ["One.", "Two."], "final_decision": "no"}
    labelled.write_text(json.dumps({str(n): record for n in range(6)}))
    truth.write_text(json.dumps({"1": "no", "4": "no"}))
    files = [labelled, truth]
    test = questions(conversion.pubmedqa_test(files), tmp_path / "test.jsonl")
    train = questions(conversion.pubmedqa_train(files), tmp_path / "train.jsonl")
    assert [question.id for question in test] == ["1", "4"]
    assert [question.id for question in train] == ["0", "2", "3", "5"]
    assert (test[0].text, test[0].gold) == ("One.\nTwo.\nIs it?", "B")


def test_a_table_with_columns_too_many(tmp_path: Path) -> None:
    path = tmp_path / "op4.csv"
    header = "link,question,opa,opb,opc,opd,answer_idx,answer,explanation"
    path.write_text(f'{header}\nhttp://x,"Next, please?",Wait,Cut,See,Treat,C,See,"Long,\n",,,\n')
    (question,) = questions(conversion.csv_rows([path]), tmp_path / "test.jsonl")
    assert (question.text, question.options["C"], question.gold) == ("Next, please?", "See", "C")


def test_a_stray_quotation_mark_hides_no_rows_of_medexqa(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    rows = [f"{mark}{n}?\tSalt\tIron\tZinc\tGold\tAs.\tFor.\tD" for n, mark in enumerate('"  "')]
    path.write_text("\n".join(rows))
    with pytest.raises(ConfigError, match=r"x\.tsv lines 1 to 4 would be one row"):
        questions(conversion.medexqa_rows([path]), tmp_path / "test.jsonl")


def test_parquet(tmp_path: Path) -> None:
    import pandas as pd

    path = tmp_path / "test.parquet"
    row = {"question": "Which?", "options": ["one", "two"], "answer": "B", "src": None}
    rows = [row | {"question_id": 7, "category": "health", "src": "x"}]
    rows.append(rows[0] | {"question_id": 9, "src": None})
    pd.DataFrame([*rows, row | {"question_id": 8, "category": "law"}]).to_parquet(path)
    question, _ = questions(conversion.mmlu_pro_health([path]), tmp_path / "test.jsonl")
    assert (question.id, question.gold, question.options) == ("7", "B", {"A": "one", "B": "two"})
    assert "NaN" not in (tmp_path / "test.jsonl").read_text()


@pytest.mark.parametrize(
    ("changes", "left_out"),
    [
        ([{"question": b"Which \xc3\xa9lement?"}] * 200, 0),  # apache/spark#1855
        ([{"added": datetime.date(2024, 1, 1), "price": Decimal("1.5")}] * 200, 0),  # datatrove#325
        ([{"cop": None}, *[{}] * 199], 1),  # pandas-dev/pandas#48704
        ([{"id": None}, *[{}] * 199], 0),
    ],
    ids=["text without a type", "date and decimal", "an empty number", "an empty id"],
)
def test_a_parquet_file_becomes_the_questions_that_it_holds(
    tmp_path: Path, changes: list[dict[str, object]], left_out: int
) -> None:
    row = {"question": "Which élement?", "opa": "a", "opb": "b", "opc": "c", "opd": "d", "cop": 0}
    rows = [row | {"id": 7 * n} | change for n, change in enumerate(changes)]
    path = tmp_path / "x.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    made = make_questions(conversion.rows_by_hand([path]), "x.parquet", tmp_path / "test.jsonl")
    assert (made.records, made.not_used) == (200 - left_out, left_out)
    dataset = open_dataset(str(made.path), tmp_path)
    question = dataset.load(dataset.index[-1])
    assert (question.id, question.text, question.gold) == ("1393", "Which élement?", "A")


def test_every_known_name_has_files_or_says_where_they_are() -> None:
    assert len(set(KNOWN)) == len(KNOWN)
    for sources in SOURCES.values():
        targets = [source.target for source in sources]
        has_pictures = all(source.pictures for source in sources)
        assert targets == ["test.jsonl", "train.jsonl"] or (has_pictures and len(targets) == 1)
        for file in (file for source in sources for file in source.files):
            assert len(file.revision) == 40
            assert len(file.sha256) == 64 or (has_pictures and file.host is Host.HUGGING_FACE)
            int(file.revision + file.sha256, 16)
        assert all(
            source.convert or source.pictures or len(source.files) == 1 for source in sources
        )


@pytest.mark.parametrize("name", [name for name in KNOWN if name != "medqa"])
def test_a_known_data_set_that_is_not_there_says_how_to_get_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=f"run: python -m mdagents data download {name}$"):
        open_dataset(name, tmp_path)
