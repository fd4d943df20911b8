"""Reads records from the files in which data sets are published: tables, archives, splits.

Records stay as published and are interpreted by `published_forms`. This module opens files,
separates splits and, where a pinned file covers more than medicine, selects the medical part.
"""

from __future__ import annotations

import csv
import io
import json
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mdagents.datasets.parquet_rows import parquet_records
from mdagents.datasets.record_lines import ending, read_lines, rows_of_cells, table, table_rows
from mdagents_llm.errors import ConfigError

MMLU_SUBJECTS = (
    "anatomy",
    "clinical_knowledge",
    "college_biology",
    "college_medicine",
    "medical_genetics",
    "professional_medicine",
)
"""Medical subjects of MMLU: Singhal et al. 2023, https://doi.org/10.1038/s41586-023-06291-2."""

Records = Iterator[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A published record that is not a question for a run."""

    reason: str
    """Reason, with the same wording for all records to which it applies."""


Record = Mapping[str, Any] | bytes | LeftOut
"""A published record: an object, a line of JSON, or one that is left out."""


def parquet_rows(files: Sequence[Path]) -> Records:
    """Return the rows of one Parquet file, without the content of pictures.

    Raises:
        ConfigError: The file cannot be read as Parquet.
    """
    (path,) = files
    return parquet_records(path)


def mmlu_pro_health(files: Sequence[Path]) -> Records:
    """Return MMLU-Pro's questions in the category health."""
    return (row for row in parquet_rows(files) if row["category"] == "health")


def mmlu_test(files: Sequence[Path]) -> Records:
    """Return the test questions of MMLU's medical subjects from its tar archive."""
    return _mmlu(files, "test")


def mmlu_dev(files: Sequence[Path]) -> Records:
    """Return MMLU's five few-shot questions for each medical subject."""
    return _mmlu(files, "dev")


def _mmlu(files: Sequence[Path], split: str) -> Records:
    (path,) = files
    with tarfile.open(path) as archive:
        for subject in MMLU_SUBJECTS:
            table = archive.extractfile(f"data/{split}/{subject}_{split}.csv")
            assert table is not None, "the archive's hash was checked"
            rows = csv.reader(io.TextIOWrapper(table, encoding="utf-8", newline=""))
            for number, (question, *choices, letter) in enumerate(rows):
                yield {
                    "id": f"{subject}-{split}-{number}",
                    "question": question,
                    "subject": subject,
                    "choices": choices,
                    "answer": "ABCD".index(letter),
                }


def pubmedqa_test(files: Sequence[Path]) -> Records:
    """Return the 500 test questions of PubMedQA, as listed in its ground truth file.

    Args:
        files: Paths of `ori_pqal.json` and `test_ground_truth.json`.
    """
    return _pubmedqa(files, of_test=True)


def pubmedqa_train(files: Sequence[Path]) -> Records:
    """Return the other 500 expert-labeled questions of PubMedQA."""
    return _pubmedqa(files, of_test=False)


def _pubmedqa(files: Sequence[Path], *, of_test: bool) -> Records:
    labelled, test = (json.loads(path.read_bytes()) for path in files)
    for pubid, record in labelled.items():
        if (pubid in test) is of_test:
            yield {"pubid": pubid, **record}


def csv_rows(files: Sequence[Path]) -> Records:
    """Return the rows of one CSV file with a header.

    Raises:
        ConfigError: The file is not a CSV file with a header.
    """
    (path,) = files
    return (row for _, row in table_rows(path))


_MEDEXQA = ("question", "A", "B", "C", "D", "explanation", "another_explanation", "answer_idx")


def medexqa_rows(files: Sequence[Path]) -> Records:
    """Yield the rows of MedExQA's tables, one per specialty: tab-separated, no header.

    Source: https://github.com/knowlab/MedExQA

    Raises:
        ConfigError: A file is not such a table.
    """
    for path in files:
        with table(path) as file:
            for number, (line, row) in enumerate(rows_of_cells(path, file, "\t")):
                if len(row) != len(_MEDEXQA):
                    raise ConfigError(
                        f"{path} line {line} has {len(row)} columns, expected "
                        f"{len(_MEDEXQA)}: {', '.join(_MEDEXQA)}"
                    )
                record = dict(zip(_MEDEXQA, row, strict=True))
                options = {letter: record.pop(letter) for letter in "ABCD"}
                record["answer_idx"] = record["answer_idx"].strip()
                yield {"id": f"{path.stem}-{number}", **record, "options": options}


def rows_by_hand(files: Sequence[Path]) -> Iterator[Record]:
    """Return the records of user-supplied files, read according to their extensions.

    Raises:
        ConfigError: The extension is unknown, or the content does not match it.
    """
    kinds = {ending(file) for file in files}
    if kinds == {".tsv"}:
        return medexqa_rows(files)
    if len(files) > 1:
        raise ConfigError("--from takes several files only if all are tables of MedExQA (.tsv)")
    match kinds.pop():
        case ".csv":
            return csv_rows(files)
        case ".parquet":
            return parquet_rows(files)
        case ".jsonl" | ".json":
            return (line for _, _, line in read_lines(files[0]))
        case other:
            raise ConfigError(
                f"{files[0]} ends in {other or 'nothing'}; --from takes .jsonl, .json with a "
                "record a line, .csv, .tsv or .parquet"
            )
