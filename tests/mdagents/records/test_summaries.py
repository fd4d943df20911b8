"""The line of each answer is found among those of many, and the last of several counts."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from mdagents.records.summaries import SummariesFile
from mdagents_llm.errors import ConfigError

ANSWERS = [
    (id_, epoch, attempt)
    for id_ in ("1", "1 1", "1 1 1", "é\u2028", "", *map(str, range(2, 300)))
    for epoch in (1, 2)
    for attempt in (1, 2)
]


def test_each_answer_has_its_last_line(tmp_path: Path) -> None:
    rng, path = random.Random(1), tmp_path / "summaries.jsonl"
    written = rng.choices(ANSWERS, k=1_000)
    with path.open("w") as file:
        for number, (id_, epoch, attempt) in enumerate(written):
            made = {"question_id": id_, "epoch": epoch, "attempt": attempt, "exaid": number}
            file.write(json.dumps(made) + "\n")
    summaries = SummariesFile(path)
    last = {answer: number for number, answer in enumerate(written)}
    for id_, epoch, attempt in ANSWERS:
        expected = last.get((id_, epoch, attempt))
        assert summaries.has((id_, epoch), attempt) == (expected is not None)
        joined = summaries.put_into({"question_id": id_, "epoch": epoch}, attempt)
        assert joined.get("exaid") == expected


@pytest.mark.parametrize("content", [None, "", '{"question_id": "1'])
def test_a_file_without_a_whole_line_has_no_answer(content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "summaries.jsonl"
    if content is not None:
        path.write_text(content)
    summaries = SummariesFile(path)
    assert not summaries.has(("1", 1), 1)
    assert summaries.line_of(("1", 1), 1) is None


@pytest.mark.parametrize("line", ["[]", "null", "{}", '{"question_id": "1", "epoch": 1}', "{"])
def test_a_damaged_line_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "summaries.jsonl"
    good = '{"question_id": "1", "epoch": 1, "attempt": 1}'
    path.write_text(f"{good}\n{line}\n{good}\n")
    with pytest.raises(ConfigError, match="line 2"):
        SummariesFile(path)


@pytest.mark.parametrize("value", [-1, 10**40, 1.0, None, [], {}, "1", True])
def test_a_value_of_another_kind_is_of_no_answer(value: object, tmp_path: Path) -> None:
    path = tmp_path / "summaries.jsonl"
    made = {"question_id": "1", "epoch": 1, "attempt": 1}
    path.write_text(
        "".join(json.dumps({**made, name: value}) + "\n" for name in ("epoch", "attempt"))
    )
    assert not SummariesFile(path).has(("1", 2), 1)
    assert SummariesFile(path).has(("1", 1), 1) == (value == "1")
