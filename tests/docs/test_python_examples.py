"""The examples of docs/how-to/python.md run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.docs.conftest import Run
from tests.docs.page import Page
from tests.fake_provider import FakeProvider

PAGE = Page("python.md")

# The connections of `get_llm` end with the process.
pytestmark = [
    pytest.mark.process,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:These questions were written:UserWarning"),
]


def test_one_question(run: Run) -> None:
    first, *opinions, last = run(0).splitlines()
    assert re.fullmatch(r"answered [A-D] (True|False)", first)
    assert len({line.rsplit(" ", 2)[0] for line in opinions}) == 3, "three experts"
    assert re.fullmatch(r"\d+ 0\.\d+", last)


def test_one_question_in_a_script(run: Run) -> None:
    assert run(1).startswith("question_id='sample_1' status=<Status.ANSWERED: 'answered'>")


def test_a_question_with_a_picture(run: Run) -> None:
    Path("data").symlink_to(REPOSITORY / "data")
    assert run(2) == "01.jpg True\n"


def test_a_run(run: Run) -> None:
    out = run(3)
    assert out.startswith("finished output/gpt-4o-mini_medqa-sample_basic_6samples")
    figures = re.fullmatch(r"(0\.\d+|[01]\.0) \((.+), (.+)\) 0\.\d+", out.splitlines()[1])
    assert figures, out
    assert float(figures[2]) <= float(figures[1]) <= float(figures[3])
    assert out.count("sample-00") == 6
    accuracy, tokens = out.splitlines()[-1].split()
    assert 0 <= float(accuracy) <= 1
    assert int(tokens) > 0


def test_a_model_alone(run: Run, provider: FakeProvider) -> None:
    words = run(4).split()
    assert words[-1] == "gpt-4o-mini"
    assert int(words[-2]) == provider.totals.input + provider.totals.output


def test_there_is_no_further_example() -> None:
    assert len(PAGE.examples) == 5
