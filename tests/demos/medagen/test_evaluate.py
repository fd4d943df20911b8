"""The evaluation: what it counts, what it prints, and what it says of a wrong file."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from demos.medagen.evaluate import Case, Rate, main, measures
from demos.medagen.schemas import Language, Level, TriageRequest, TriageResult
from demos.toolkit.database import SETTING
from mdagents_llm.errors import EndpointDown

S, R, U, E = Level.SELF_CARE, Level.ROUTINE, Level.URGENT, Level.EMERGENCY


def case(number: int, level: str, text: str = "x") -> Case:
    return Case.model_validate({"id": f"c{number}", "language": "en", "text": text, "level": level})


def test_what_is_counted() -> None:
    pairs: list[tuple[str, Level | None]] = [
        ("emergency", E), ("emergency", U), ("emergency", R), ("emergency", None),
        ("urgent", E), ("urgent", U), ("urgent", S),
        ("routine", U), ("routine", S),
        ("self_care", S), ("self_care", E),
        ("mild", S), ("mild", R), ("mild", U),
    ]  # fmt: skip
    cases = [case(number, level) for number, (level, _) in enumerate(pairs)]
    found = measures(cases, {f"c{number}": given for number, (_, given) in enumerate(pairs)})
    assert found.right == Rate(5, 14)
    assert found.over == Rate(4, 14)
    assert found.under == Rate(5, 14), "no answer is an under-triage"
    assert found.severe_under == Rate(3, 14)
    assert found.emergency_recall == Rate(1, 4)
    assert found.mild_alarms == Rate(3, 7)
    assert found.matrix["emergency", "none"] == 1
    assert str(Rate(1, 4)) == "1 of 4 = 0.250 (0.046, 0.699)"
    assert str(Rate(0, 0)) == "none"


def write(tmp_path: Path, *rows: object) -> Path:
    file = tmp_path / "cases.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


CHEST = {"id": "a", "language": "en", "text": "my chest hurts", "level": "emergency"}
COLD = {"id": "b", "language": "en", "text": "I have a runny nose", "level": "mild"}


@pytest.mark.sweep
def test_rules_beside_calling_all_an_emergency(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "new" / "levels.jsonl"
    file = write(tmp_path, CHEST, COLD)
    assert main(["--file", str(file), "--output", str(output)]) == 0
    out = capsys.readouterr().out
    assert "2 cases" in out
    assert "| emergency recall           | 1 of 1 = 1.000" in out
    rows = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
    assert rows[1]["rules only"] == "self_care"
    assert rows[1]["always emergency"] == "emergency"


class Lying:
    """Says that all is self-care, and fails for a cold."""

    async def triage(self, request: TriageRequest) -> TriageResult:
        if "nose" in request.text:
            raise EndpointDown("the endpoint is out of reach")
        return TriageResult(
            triage_level=E, symptom_summary="", red_flags=(), suspected_conditions=(),
            cv_findings=None, recommendation="", language=Language.ENGLISH, session_id="s",
            rules=(), guidelines=(), model_level=S, fallback=None,
        )  # fmt: skip


def test_the_assistant_and_its_model_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: dict[str, str] = {}

    @asynccontextmanager
    async def opens(variables: Mapping[str, str]) -> AsyncIterator[Lying]:
        seen.update(variables)
        yield Lying()

    output = tmp_path / "levels.jsonl"
    argv = ["--file", str(write(tmp_path, CHEST, COLD)), "--assistant", "--output", str(output)]
    assert main(argv, open_assistant=opens) == 1, "a case has no answer"
    captured = capsys.readouterr()
    assert "b: the endpoint is out of reach" in captured.out + captured.err
    rows = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
    assert (rows[0]["assistant"], rows[0]["model alone"]) == ("emergency", "self_care")
    assert rows[1]["assistant"] is None
    assert "evaluation.sqlite" in seen[SETTING], "no conversations of users among them"


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (["{"], "line 1"),
        ([CHEST, CHEST], "line 2: the id a is there twice"),
        ([CHEST | {"level": "soon"}], "line 1: level"),
        ([{"id": "a"}], "line 1: language"),
        (["", " "], "has no cases"),
        ([CHEST | {"text": ""}], "line 1: text"),
    ],
)
def test_a_file_that_is_wrong(
    tmp_path: Path, rows: list[object], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--file", str(write(tmp_path, *rows))]) == 2
    err = capsys.readouterr().err
    assert told in err
    assert len(err.strip().splitlines()) == 1


def test_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--file", str(tmp_path / "none.jsonl")]) == 2
    assert "give another --file" in capsys.readouterr().err
