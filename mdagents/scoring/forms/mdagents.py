"""Results of MDAgents and of programs derived from it, including this one.

Source: `main.py` and `utils.py` of mitmedialab/MDAgents and of kailliang/MDAgent, all versions.
"""

from __future__ import annotations

from collections.abc import Sequence

from mdagents.scoring.forms.form import Form, Record


def _elements(record: Record) -> Sequence[Record]:
    return (record,)


OURS = Form("mdagents", frozenset({"label", "predicted", "schema_version"}), "label", _elements)
MDAGENTS = Form("MDAgents", frozenset({"label"}), "label", _elements)
