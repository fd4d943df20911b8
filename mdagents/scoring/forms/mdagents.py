"""Results of MDAgents and of programs derived from it, including this one.

Source: `main.py` and `utils.py` of mitmedialab/MDAgents and of kailliang/MDAgent, all versions.
"""

from __future__ import annotations

from collections.abc import Sequence

from mdagents.datasets.questions import LETTERS
from mdagents.scoring.fields import MISSING
from mdagents.scoring.forms.form import Form, Record

_COLUMNS = {f"op{letter.lower()}": letter for letter in LETTERS}
"""Field with the text of an option -> its letter, in results on PMC-VQA."""


def _elements(record: Record) -> Sequence[Record]:
    if "api_calls" in record and "calls" not in record:
        record = {**record, "calls": record["api_calls"]}  # by HoangHa0/mdagents
    if record.get("options") in MISSING and not _COLUMNS.keys().isdisjoint(record):
        columns = {letter: record.get(name) for name, letter in _COLUMNS.items()}
        return ({**record, "options": columns},)
    return (record,)


OURS = Form("mdagents", frozenset({"label", "predicted", "schema_version"}), "label", _elements)
MDAGENTS = Form("MDAgents", frozenset({"label"}), "label", _elements)
