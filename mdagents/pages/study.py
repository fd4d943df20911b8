"""Writes the results of a study: HTML page, CSV table, Markdown table for a paper, JSON."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from mdagents.pages.layout import make_frame, packed, templates
from mdagents.pages.report_summary import head_of_comparison
from mdagents.records.study import UNREADABLE, name_to_keep
from mdagents.scoring.comparison import Comparison
from mdagents.scoring.comparison_tables import write_study_csv
from mdagents.scoring.comparison_text import as_markdown
from mdagents.scoring.fields import plain
from mdagents.scoring.formatting import json_text
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.json_text import parse_json
from mdagents_llm.files.regular_file import read_regular
from mdagents_llm.files.whole_file import replace_file

_SCRIPTS = ("saving.js", "keys.js")
_ENDINGS = ("html", "csv", "md", "json")


def keep_other_results(study: Comparison, evaluation_dir: Path, now: datetime) -> str:
    """Rename earlier results of a study's name if they have runs that the study does not compare.

    Args:
        study: The study whose results are written next.
        evaluation_dir: Folder of the results.
        now: Time of this start.

    Returns:
        The name that they have now; empty if there were no such results.

    Raises:
        ConfigError: A file cannot be renamed.
    """
    path = evaluation_dir / f"{study.name}.json"
    runs = set[str]()
    try:
        runs = _runs_in(path)
        if runs <= {run["name"] for run in _runs_of(study.as_dict())}:
            return ""
    except FileNotFoundError:
        return ""
    except UNREADABLE:
        pass  # not written by this program: kept as well
    kept_as = name_to_keep(evaluation_dir, study.name, runs, now, _runs_in)
    try:
        for ending in _ENDINGS:
            with suppress(FileNotFoundError):
                path.with_suffix(f".{ending}").replace(evaluation_dir / f"{kept_as}.{ending}")
    except OSError as error:
        raise ConfigError(
            f"cannot rename {path}: {error.strerror}; see --evaluation-dir"
        ) from error
    return kept_as


def _runs_in(path: Path) -> set[str]:
    return {run["name"] for run in _runs_of(parse_json(read_regular(path)))}


def _runs_of(figures: Any) -> Iterator[Any]:
    return (run for block in figures["blocks"] for run in block["runs"])


def write_study_results(study: Comparison, evaluation_dir: Path) -> list[Path]:
    """Write `{study}.html`, `.csv`, `.md` and `.json`.

    Returns:
        Paths of the files, in that order.

    Raises:
        ConfigError: A file cannot be written.
    """
    head, table = head_of_comparison(study), io.StringIO()
    write_study_csv(table, study)
    figures = json_text(head.values)
    page = (
        templates()
        .get_template("study.html")
        .render(
            head=head,
            frame=make_frame(*_SCRIPTS),
            runs=head.run_names,
            stem=study.name,
            csv=packed(table.getvalue()),
            json=packed(figures),
        )
    )
    contents = (page, table.getvalue(), as_markdown(study), figures)
    paths = []
    for ending, text in zip(_ENDINGS, contents, strict=True):
        path = evaluation_dir / f"{study.name}.{ending}"
        try:
            replace_file(path, plain(text).encode())
        except OSError as error:
            raise ConfigError(
                f"cannot write {path}: {error.strerror}; see --evaluation-dir"
            ) from error
        paths.append(path)
    return paths
