"""An oracle behind the fake provider, which knows the right texts and no letters, is always right.

So options, their order, gold letters, parsing and scoring fit together, in every form of data.
"""

from __future__ import annotations

import json
import re
from ast import literal_eval
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mdagents.cli.score import main as evaluate
from mdagents.runs.program import main
from tests.conftest import REPOSITORY, SHARED
from tests.fake_provider import MISSING, FakeProvider, FieldPath, SeenRequest
from tests.mdagents.datasets.published_records import FORMS, MEDMCQA

Golds = dict[str, str]
"""Text that only one question has -> text of its right option."""


class Oracle:
    """Answers each question with the letter before its right text.

    Args:
        golds: Of all questions that are asked.
    """

    def __init__(self, golds: Mapping[str, str]) -> None:
        self._golds = golds

    def __call__(self, request: SeenRequest, path: FieldPath) -> Any:
        if path[-1:] != ("answer",):
            return MISSING
        (question,) = [text for text in self._golds if text in request.text]
        right = re.escape(self._golds[question].strip())
        letters = re.findall(rf"^([A-J])\) \s*{right}\s*$", request.text, re.MULTILINE)
        assert letters, f"the right option of {question!r} is not shown"
        return letters[0]


def sample() -> tuple[Path, Golds]:
    path = REPOSITORY / "data/medqa/sample.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return path, {record["question"]: record["answer"] for record in records}


def shared(name: str) -> tuple[Path, Golds]:
    path = SHARED / name / "test.jsonl"
    if not path.is_file():
        pytest.skip("the shared data is not here")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return path, {r["question"].strip(): r["options"][r["answer_idx"]] for r in records}


def marked(record: dict[str, Any], mark: str) -> dict[str, Any]:
    """A record under a text and an id of its own."""
    if "data" in record:
        data = record["data"]
        if isinstance(data, str):  # a cell of a table
            return record | {"data": str(marked(literal_eval(data), mark)), "realidx": mark}
        return record | {"data": marked(data, mark), "realidx": mark}
    names = {
        "question",
        "question_clean",
        "problem_text",
        "full_question",
        "qtext",
        "data.question",
        "sent1",
        "input",
    }
    asked = [name for name in record if name.casefold() in names]
    texts = {name: f"{mark} {record[name]}" for name in asked}
    return record | texts | {"realidx": mark}


PLACES: dict[str, Any] = {"question": "Which?", "answer_idx": "D"}
OF_PLACES: list[tuple[dict[str, Any], str]] = [
    (PLACES | {"options": dict(zip("ABCD", texts, strict=True))}, texts[3].removeprefix("D. "))
    for texts in (
        ("Iron", "Zinc", "Gold", "Both A and C"),
        ("Iron", "Zinc", "Both A and B", "All of the above"),
        ("A. Iron", "B. Zinc", "C. Gold", "D. Lead"),
        ("Iron", "n/a", "", "Lead"),
        ("Iron", "Iron", "None", "Lead"),
    )
]


def published_forms() -> tuple[Path, Golds]:
    """A file with a record of each published form, MedMCQA counted from 0."""
    known = [*((record, answer) for record, *_, answer in FORMS), *OF_PLACES]
    known.append((MEDMCQA | {"cop": 0}, "0.01"))
    return written("forms.jsonl", known)


def counted_from_1() -> tuple[Path, Golds]:
    """MedMCQA as its authors count."""
    texts = [str(MEDMCQA[f"op{letter}"]) for letter in "abcd"]
    return written("authors.jsonl", [(MEDMCQA | {"cop": n + 1}, texts[n]) for n in range(4)])


def written(name: str, known: list[tuple[dict[str, Any], str]]) -> tuple[Path, Golds]:
    marks = [f"Case {number} of {name}." for number in range(len(known))]
    records = [marked(record, mark) for mark, (record, _) in zip(marks, known, strict=True)]
    path = Path(name).absolute()
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path, dict(zip(marks, (answer for _, answer in known), strict=True))


@pytest.fixture
def ask(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    """Runs `main` with an oracle, scores it and gives the records."""
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_base_url)

    def run(path: Path, golds: Golds, *flags: str) -> list[dict[str, Any]]:
        provider.field_policy = Oracle(golds)
        flags = ("--dataset", str(path), "--exaid", "off", "--display", "none", *flags)
        assert main(flags, skip=(), show_interaction_table=False) == 0
        assert evaluate([], input_filename="", output_filename="scores.csv") == 0
        report = json.loads(Path("scores.summary.json").read_text())
        assert report["overall"]["accuracy"] == 1.0
        capsys.readouterr()
        newest = max(Path("output").glob("*.json"), key=lambda file: file.stat().st_mtime_ns)
        records: list[dict[str, Any]] = json.loads(newest.read_text())
        assert report["overall"]["n"] == len(records)
        assert all(record["correct"] for record in records)
        return records

    return run


@pytest.mark.process
@pytest.mark.parametrize("seed", ["0", "7"])
@pytest.mark.parametrize("order", ["shuffled", "same", "original"])
def test_the_oracle_is_always_right(ask: Any, order: str, seed: str) -> None:
    flags = ["--method", "zero_shot", "--epochs", "2", "--option-order", order, "--seed", seed]
    for path, golds in (sample(), published_forms(), counted_from_1()):
        records = ask(path, golds, *flags)
        assert len(records) == 2 * len(golds)
        orders: dict[str, set[str]] = {}
        for record in records:
            permutation = "".join(record["permutation"].values())
            orders.setdefault(record["question_id"], set()).add(permutation)
            if order == "original" or record["order_kept"]:
                assert permutation == "".join(sorted(permutation))
        moved = [id_ for id_, seen in orders.items() if len(seen) > 1]
        assert bool(moved) is (order == "shuffled")


@pytest.mark.process
def test_the_oracle_is_always_right_in_a_team(ask: Any) -> None:
    for path, golds in (sample(), published_forms()):
        ask(path, golds, "--difficulty", "basic", "--epochs", "2", "--num-samples", "8")


@pytest.mark.process
@pytest.mark.parametrize("name", ["medqa", "medqa_5options", "medmcqa", "pubmedqa", "mmlu"])
def test_the_oracle_is_always_right_on_the_shared_data(ask: Any, name: str) -> None:
    path, golds = shared(name)
    ask(path, golds, "--method", "zero_shot", "--epochs", "2", "--num-samples", "40")
