"""What a notebook shows of the public results: short, complete, and never markup of a model."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from pathlib import Path

import pytest

import mdagents
from exaid_core import AgentSummary
from mdagents.records.sample import SampleRecord
from mdagents_llm.errors import ConfigError
from mdagents_llm.notebook import html_line, html_table
from tests.conftest import REPOSITORY

pytestmark = [
    pytest.mark.usefixtures("fake_models"),
    pytest.mark.filterwarnings("ignore:These questions were written:UserWarning"),
]

HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(1)>&\"'\u202e"
(EXAMPLE,) = (REPOSITORY / "mdagents" / "examples").glob("*/")


def is_plain(html: str) -> bool:
    """Whether HTML has only the tags of our tables, and no color."""
    tags = set(re.findall(r"</?([a-z]+)", html))
    known = {"table", "caption", "thead", "tbody", "tr", "th", "td", "p"}
    return tags <= known and "color" not in html and "\u202e" not in html


def test_text_in_a_table_is_escaped() -> None:
    html = html_table([[HOSTILE, HOSTILE]], ["", HOSTILE], HOSTILE) + html_line(HOSTILE)
    assert is_plain(html)
    assert html.count("&lt;script&gt;") == 5


def test_an_answer() -> None:
    record = asyncio.run(
        mdagents.answer("Which vitamin is lacking in scurvy?", ["B1", "C"], team="basic", gold="B")
    )
    html = record._repr_html_()
    assert is_plain(html)
    for part in ("Which vitamin is lacking", ">B1<", ">answered<", f">{record.predicted}<", "USD"):
        assert part in html
    assert html.count(", round 0<") == len(record.opinions)
    hostile = record.model_copy(
        update={"question": HOSTILE, "options": {"A": HOSTILE}, "error": HOSTILE}
    )
    assert is_plain(hostile._repr_html_())
    assert isinstance(record, SampleRecord)


def test_a_summary() -> None:
    summary = AgentSummary(
        status_action="Give oxygen.",
        key_findings=HOSTILE.replace("\u202e", ""),
        agents=("a<b",),
        unsupported_terms=("<i>90%</i>",),
        dissent_missing=True,
    )
    html = summary._repr_html_()
    assert is_plain(html)
    for part in (
        ">status action<",
        ">Give oxygen.<",
        "a&lt;b",
        "&lt;i&gt;90%",
        ">dissent missing<",
    ):
        assert part in html
    assert html.count("<tr>") == 6 + 3
    shown = repr(AgentSummary(status_action="Give oxygen.", agents=("nurse",)))
    assert shown == "AgentSummary(status_action='Give oxygen.', agents=('nurse',))"
    cut = AgentSummary.from_five_fields(["nurse"], "Give oxygen. " * 40, "x")
    assert "full_status_action" not in repr(cut)


def other_run() -> Path:
    """The shipped run, and a copy of it under another name with two answers changed."""
    shutil.copytree(EXAMPLE, "other")
    lines = (EXAMPLE / "samples.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    for record in [record for record in records if record["correct"]][:2]:
        record["predicted"] = next(letter for letter in "AB" if letter != record["label"])
    text = "".join(json.dumps(record) + "\n" for record in records)
    (Path("other") / "samples.jsonl").write_text(text)
    return Path("other")


def test_a_comparison() -> None:
    comparison = mdagents.compare([EXAMPLE, other_run()])
    shown = repr(comparison)
    assert shown.startswith("<RunComparison 2 runs, 10 questions: ")
    assert len(shown) < 250
    html = comparison._repr_html_()
    assert is_plain(html)
    assert html.count("<table>") == 2
    assert "p (McNemar)" in html
    runs, pairs = comparison.runs(), comparison.pairs()
    assert list(runs["correct"]) == [9, 7]
    assert list(runs["accuracy"]) == [0.9, 0.7]
    assert list(runs["on_frontier"]) == [True, False]
    (pair,) = pairs.to_dict("records")
    assert pair["difference"] == pytest.approx(-0.2)
    assert pair["right_to_wrong"] == 2
    assert pair["mcnemar_p"] == pair["p"] == 0.5


@pytest.mark.process
def test_a_frontier_is_a_picture() -> None:
    comparison = mdagents.compare([EXAMPLE, other_run()])
    figure = comparison.frontier()
    assert figure.title == "Accuracy against tokens", "the price is not known"
    assert repr(figure) == "<Figure 'Accuracy against tokens'>"
    picture = figure._repr_png_()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) < 60_000
    assert figure._repr_png_() == picture
    assert "Accuracy against tokens" in comparison.figures()


def test_a_comparison_needs_two_runs() -> None:
    for runs in ([EXAMPLE], EXAMPLE, str(EXAMPLE)):
        with pytest.raises(ConfigError, match="at least two runs"):
            mdagents.compare(runs)  # type: ignore[arg-type]
