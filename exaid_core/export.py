"""Exports summaries as JSON, CSV, Markdown or XML."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from enum import StrEnum
from xml.etree import ElementTree as ET

from pydantic import TypeAdapter

from exaid_core.agent_names import AgentNames
from exaid_core.schema.agent_summary import AgentSummary
from exaid_core.templates import LABELS, flags, texts_of
from mdagents_llm.files.spreadsheet import text_cell
from mdagents_llm.text import clean, well_formed

_SUMMARIES = TypeAdapter(list[AgentSummary])

_MARKUP = re.compile(r"[\\`*_{}\[\]()<>&|~$#^=!]")

_NOT_IN_XML = re.compile("[\ufffe\uffff]")  # besides the characters that `clean` removes


class ExportFormat(StrEnum):
    """A file format for summaries."""

    JSON = "json"
    """Complete summaries, which `read_json` reads back."""
    CSV = "csv"
    """One row per summary, for a spreadsheet."""
    MARKDOWN = "markdown"
    """One section per summary."""
    XML = "xml"
    """Complete summaries, with the display names of the agents."""


def export_summaries(
    summaries: Sequence[AgentSummary],
    format: ExportFormat | str,
    names: AgentNames | None = None,
) -> str:
    """Return summaries as text in one of the formats.

    Args:
        summaries: Summaries, in output order.
        format: `json`, `csv`, `markdown` or `xml`.
        names: Display names of agents; None uses their ids. JSON always contains ids.

    Raises:
        ValueError: The format is unknown.
    """
    if format not in set(ExportFormat):
        raise ValueError(f"there is no format {format!r}; there are {', '.join(ExportFormat)}")
    match ExportFormat(format):
        case ExportFormat.JSON:
            plain = _SUMMARIES.dump_python(list(summaries), mode="json")
            return well_formed(json.dumps(plain, ensure_ascii=False, indent=2)) + "\n"
        case ExportFormat.CSV:
            return _csv(summaries, names)
        case ExportFormat.MARKDOWN:
            return _markdown(summaries, names)
        case ExportFormat.XML:
            return _xml(summaries, names or AgentNames())


def read_json(text: str) -> list[AgentSummary]:
    """Parse summaries that `export_summaries` wrote as JSON.

    Raises:
        pydantic.ValidationError: The text is not such JSON.
    """
    return _SUMMARIES.validate_json(text)


def _csv(summaries: Sequence[AgentSummary], names: AgentNames | None) -> str:
    table = io.StringIO()
    writer = csv.writer(table, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(AgentSummary.model_fields)
    for summary in summaries:
        writer.writerow(map(text_cell, texts_of(summary, names).values()))
    return table.getvalue()


def _markdown(summaries: Sequence[AgentSummary], names: AgentNames | None) -> str:
    sections = []
    for number, summary in enumerate(summaries, 1):
        texts = texts_of(summary, names)
        said = [f"- **{label}:** {_escaped(texts[name])}" for name, label in LABELS.items()]
        said += [
            f"- **{LABELS[name]}, uncut:** {_escaped(texts[f'full_{name}'])}"
            for name in summary.full_texts
        ]
        wrong = [f"- **Flag:** {_escaped(flag)}" for flag in flags(summary)]
        heading = f"## Summary {number}"
        if summary.agents:
            heading += f", of {_escaped(texts['agents'])}"
        sections.append("\n".join([heading, "", *said, *wrong, ""]))
    return "\n".join(sections)


def _escaped(text: str) -> str:
    """Return one line of text escaped so that Markdown shows it literally."""
    return _MARKUP.sub(r"\\\g<0>", text)


def _xml(summaries: Sequence[AgentSummary], names: AgentNames) -> str:
    root = ET.Element("summaries")
    for summary in summaries:
        node = ET.SubElement(root, "summary")
        for field, value in summary:
            _add(node, field, value, names)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def _add(parent: ET.Element, field: str, value: object, names: AgentNames) -> None:
    node = ET.SubElement(parent, field)
    if not isinstance(value, tuple):
        node.text = str(value).lower() if isinstance(value, bool) else _xml_text(str(value))
        return
    for item in value:
        if field == "agents":
            agent = ET.SubElement(node, "agent", id=_xml_text(item))
            agent.text = _xml_text(names.name_of(item))
        elif field == "source_seqs":
            first, last = item
            ET.SubElement(node, "range", first=str(first), last=str(last))
        else:
            ET.SubElement(node, "item").text = _xml_text(item)


def _xml_text(text: str) -> str:
    return _NOT_IN_XML.sub("", clean(text))
