"""The taskset for verifiers reads a file of questions as `--dataset` does."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from mdagents_llm.errors import ConfigError
from tests.conftest import REPOSITORY

# By its path: the package itself imports verifiers, which is in an environment of its own.
OURS = runpy.run_path(
    str(REPOSITORY / "integrations" / "verifiers" / "mdagents_team" / "questions.py")
)
OPTIONS = {"A": "Zinc", "B": "Tin", "C": "Iron", "D": "Lead"}
RECORD: dict[str, Any] = {"question": "Which metal?", "options": OPTIONS, "answer_idx": "C"}
PROMPT = (
    "Which metal?\n\nA. Zinc\nB. Tin\nC. Iron\nD. Lead\n\n"
    "Choose the best option, and give its letter in \\boxed{}."
)


def read(text: str, name: str = "questions.jsonl") -> list[Any]:
    path = Path(name)
    path.write_text(text, encoding="utf-8")
    return list(OURS["questions_in"](path))


@pytest.mark.parametrize(
    "record",
    [
        RECORD,
        RECORD | {"options": OPTIONS | {"E": None}},
        RECORD | {"options": OPTIONS | {"E": " "}},
        RECORD | {"options": OPTIONS | {"E": "n/a"}},
        RECORD | {"options": [*OPTIONS.values()]},
        RECORD | {"answer_idx": "c"},
        {"question": "Which metal?", "options": OPTIONS, "answer": "Iron"},
    ],
)
def test_forms_of_a_record(record: dict[str, Any]) -> None:
    for mark in ("", "\ufeff"):
        (question,) = read(f"{mark}{json.dumps(record)}\n\n")
        assert OURS["prompt_of"](question) == PROMPT
        assert question.right_letters() == ["C"]
        assert OURS["is_read"](PROMPT, question.options)


def test_letters_close_up_over_an_option_that_is_not_shown() -> None:
    record = RECORD | {"options": OPTIONS | {"B": ""}}
    (question,) = read(json.dumps(record))
    assert question.options == {"A": "Zinc", "B": "Iron", "C": "Lead"}
    assert question.gold == "B"


def test_a_table_and_options_of_several_lines() -> None:
    table = 'question,A,B,C,answer\nWhich?,"Zinc\nand tin",Iron,,A\n'
    (question,) = read(table, "questions.csv")
    prompt = OURS["prompt_of"](question)
    assert "\n\nA. Zinc and tin\nB. Iron\n\n" in prompt
    assert OURS["is_read"](prompt, question.options)
    assert not OURS["is_read"](prompt, {"A": "Zinc", "B": "Iron"})


def test_what_cannot_be_read_is_named() -> None:
    bad = [
        ({**RECORD, "answer_idx": "F"}, "line 1: field 'answer_idx' is 'F'"),
        ({**RECORD, "image": "scan.png"}, "line 1: the question has a picture"),
    ]
    for record, said in bad:
        with pytest.raises(ConfigError, match=said):
            read(json.dumps(record))
    with pytest.raises(ConfigError, match="save it as JSON Lines or CSV"):
        read("PAR1", "questions.parquet")
    for missing in (None, Path("none.jsonl")):
        with pytest.raises(ConfigError, match="give a file of questions"):
            list(OURS["questions_in"](missing))


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("It is iron: $\\boxed{C}$", "C"),
        ("\\boxed{\\text{C}}", "C"),
        ("\\boxed{\\mathrm{C}}", "C"),
        ("\\boxed{(C)}", "C"),
        ("\\boxed{C. Iron}", "C"),
        ("\\boxed{ c }", "C"),
        ("\\boxed{A} or \\boxed{C}", None),
        ("\\boxed{A, C}", None),
        ("\\boxed{E}", None),
        ("\\boxed{}", None),
        ("It is a metal.", None),
        ("", None),
    ],
)
def test_the_letter_of_a_reply(reply: str, letter: str | None) -> None:
    assert OURS["letter_in"](reply, OPTIONS, by_team=False) == letter


def test_the_analysis_of_a_team_does_not_hide_its_answer() -> None:
    analysis = "I think it is A.\nNext question: Which metal?\nA. Gold\nB. Silver"
    assert OURS["letter_in"](f"{analysis}\n\n\\boxed{{C}}", OPTIONS, by_team=True) == "C"
    assert OURS["letter_in"]("", OPTIONS, by_team=True) is None
