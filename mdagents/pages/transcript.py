"""Makes the transcript of a question; worker processes load this and not the rest of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mdagents.pages.from_records import read_question
from mdagents.pages.layout import packed, templates
from mdagents.scoring.scored_row import ScoredRow
from mdagents_llm.ledger import CallRow


def make_transcript(of: tuple[Path, Mapping[str, Any], ScoredRow, Sequence[CallRow]]) -> str:
    """Return the compressed transcript of a question.

    Args:
        of: Folder of the run, record of the question, its scored row, and its ledger rows.

    Raises:
        RecordError, ConfigError: A trace or a summary cannot be read.
    """
    shown = read_question(*of)
    page = templates().get_template("question.html").render(page=shown.page, recorded=shown)
    return packed(page)
