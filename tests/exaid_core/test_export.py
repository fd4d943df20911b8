"""Summaries in other formats: all of them, and no text that becomes more than text."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from pydantic import ValidationError

from exaid_core.agent_names import AgentNames
from exaid_core.export import ExportFormat, export_summaries, read_json
from exaid_core.schema.agent_summary import LIMITS, AgentSummary
from exaid_core.templates import LABELS, texts_of
from mdagents_llm.files.spreadsheet import text_in
from mdagents_llm.text import one_line, well_formed

FIRST = AgentSummary(
    status_action="Chest pain; aspirin given.",
    agents=("expert-1", "expert-2"),
    source_seqs=((0, 3), (7, 7)),
)
SECOND = AgentSummary(
    key_findings='BP < 90 & "pale"',
    agents=("expert-2",),
    unsupported_terms=("5 mg",),
    dissent_missing=True,
    remarks=("no next step",),
)
NAMES = AgentNames({"expert-1": "Dr Chen"})

_TEXT: Any = st.text(
    st.characters() | st.sampled_from("*_`<>&[]()!#|~$\\-+=@'\"\n\x00\ufffe"), max_size=100
)
SUMMARIES: Any = st.lists(
    st.builds(
        AgentSummary,
        **dict.fromkeys(LIMITS, _TEXT),
        **dict.fromkeys(
            ("agents", "truncated_fields", "unsupported_terms", "remarks"),
            st.lists(_TEXT, max_size=3).map(tuple),
        ),
        source_seqs=st.just(((0, 3), (7, 7))),
        dissent_missing=st.booleans(),
    ),
    max_size=3,
)


def _well_formed(value: Any) -> Any:
    """The value with U+FFFD for lone surrogates, which no file can hold."""
    match value:
        case str():
            return well_formed(value)
        case tuple():
            return tuple(map(_well_formed, value))
        case dict():
            return {key: _well_formed(each) for key, each in value.items()}
    return value


@pytest.mark.sweep
@given(SUMMARIES)
def test_json_is_read_back(summaries: list[AgentSummary]) -> None:
    text = export_summaries(summaries, "json")
    well = [AgentSummary(**_well_formed(summary.model_dump())) for summary in summaries]
    assert read_json(text) == well
    assert text.encode()
    assert [each["source_seqs"] for each in json.loads(text)] == [[[0, 3], [7, 7]]] * len(summaries)


def test_json_holds_ids() -> None:
    assert read_json(export_summaries([FIRST], ExportFormat.JSON, NAMES)) == [FIRST]


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"mood": "good"}]'])
def test_what_is_no_export_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        read_json(text)


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def test_csv_has_one_row_for_each_summary() -> None:
    first, second = rows(export_summaries([FIRST, SECOND], "csv", NAMES))
    assert list(first) == list(AgentSummary.model_fields)
    assert first["status_action"] == "Chest pain; aspirin given."
    assert (first["agents"], first["source_seqs"]) == ("Dr Chen, expert-2", "0–3, 7")
    assert (first["dissent_missing"], second["dissent_missing"]) == ("no", "yes")
    assert second["key_findings"] == 'BP < 90 & "pale"'
    assert second["remarks"] == "no next step"
    assert rows(export_summaries([], "csv")) == []


@pytest.mark.parametrize("start", "=+-@＝＋－＠")
def test_no_cell_is_a_formula(start: str) -> None:
    formula = f'{start}HYPERLINK("http://evil.example","{start}1")'
    summary = AgentSummary(status_action=f"\t {formula}", agents=(formula,), remarks=(formula,))
    (row,) = rows(export_summaries([summary], "csv", AgentNames({"x": formula})))
    assert row["status_action"] == row["agents"] == row["remarks"] == f"'{formula}"


@pytest.mark.sweep
@given(SUMMARIES)
def test_csv_holds_any_text(summaries: list[AgentSummary]) -> None:
    read = rows(export_summaries(summaries, "csv"))
    assert [list(row) for row in read] == [list(AgentSummary.model_fields)] * len(summaries)
    for row, summary in zip(read, summaries, strict=True):
        for field, text in texts_of(summary).items():
            assert text_in(row[field]) == text
            if not re.fullmatch(r"[+-]?[\d.]+", text):  # a number is no formula
                assert row[field][:1] not in tuple("=+-@＝＋－＠\t\r\n")


def test_xml_names_agents_beside_their_ids() -> None:
    root = ET.fromstring(export_summaries([FIRST, SECOND], "xml", NAMES))
    first, second = root
    assert [each.tag for each in first] == list(AgentSummary.model_fields)
    agents = [(agent.get("id"), agent.text) for agent in first.iter("agent")]
    assert agents == [("expert-1", "Dr Chen"), ("expert-2", "expert-2")]
    assert [each.attrib for each in first.iter("range")] == [
        {"first": "0", "last": "3"},
        {"first": "7", "last": "7"},
    ]
    assert second.findtext("key_findings") == 'BP < 90 & "pale"'
    assert second.findtext("dissent_missing") == "true"
    assert second.findtext("remarks/item") == "no next step"


@pytest.mark.sweep
@given(SUMMARIES)
def test_xml_is_well_formed_for_any_text(summaries: list[AgentSummary]) -> None:
    text = export_summaries(summaries, "xml")
    root = ET.fromstring(text.encode())
    for node, summary in zip(root, summaries, strict=True):
        for name in LIMITS:
            expected = getattr(summary, name).translate({0xFFFE: None, 0xFFFF: None})
            assert (node.findtext(name) or "") == expected
        assert len(list(node.iter("agent"))) == len(summary.agents)


def test_markdown_is_a_section_for_each_summary() -> None:
    text = export_summaries([FIRST, SECOND], "markdown", NAMES)
    assert text.startswith(
        "## Summary 1, of Dr Chen, expert-2\n\n- **Status / action:** Chest pain; aspirin given.\n"
    )
    assert '\n- **Key findings:** BP \\< 90 \\& "pale"\n' in text
    assert text.endswith(
        "- **Flag:** unsupported: 5 mg\n"
        "- **Flag:** the agents disagree, and this does not say so\n"
        "- **Flag:** no next step\n"
    )
    assert export_summaries([], "markdown") == ""


def structure(markdown: str) -> list[tuple[str, str]]:
    """The types and tags of all that a parser sees but the texts themselves."""
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(markdown)
    flat = [one for token in tokens for one in (token, *(token.children or ()))]
    return [(one.type, one.tag) for one in flat if one.type not in ("text", "text_special")]


@pytest.mark.sweep
@given(SUMMARIES)
def test_no_text_forges_the_structure_of_markdown(summaries: list[AgentSummary]) -> None:
    plain = [
        summary.model_copy(
            update={
                **dict.fromkeys(LIMITS, "plain"),
                "agents": ("plain",) if summary.agents else (),
                "remarks": ("plain",) * len(list(filter(one_line, summary.remarks))),
                "unsupported_terms": ("plain",) * len(summary.unsupported_terms),
                "truncated_fields": ("plain",) * len(summary.truncated_fields),
                "emptied_fields": ("plain",) * len(summary.emptied_fields),
            }
        )
        for summary in summaries
    ]
    assert structure(export_summaries(summaries, "markdown")) == structure(
        export_summaries(plain, "markdown")
    )


@pytest.mark.parametrize(
    "text",
    [
        "**bold** _it_ `code` ~~no~~",
        "<img src=x onerror=alert(1)> &lt;b&gt; <!-- hidden -->",
        "[safe](javascript:alert(1)) ![x](http://evil.example/p.png)",
        "x\n\n## Summary 9\n\n- **Status / action:** all is well",
        "| a | b |\n|---|---|\n| c | d |",
        "\\*not a star\\*",
        "# heading", "- item", "1. item", "> quote", "***", "___", "===", "```", "    code",
    ],
)  # fmt: skip
def test_known_tricks_stay_text(text: str) -> None:
    summary = AgentSummary(**dict.fromkeys(LIMITS, text), agents=(text,), remarks=(text,))  # type: ignore[arg-type]
    shown = MarkdownIt("gfm-like", {"linkify": False}).render(
        export_summaries([summary], "markdown")
    )
    bare = AgentSummary(agents=("plain",), remarks=("plain",))
    assert structure(export_summaries([summary], "markdown")) == structure(
        export_summaries([bare], "markdown")
    )
    words = ET.fromstring(f"<page>{shown}</page>")
    assert "".join(words.itertext()).count(" ".join(text.split())) == 2 + len(LABELS)


def test_there_is_no_other_format() -> None:
    with pytest.raises(ValueError, match="yaml"):
        export_summaries([], "yaml")
