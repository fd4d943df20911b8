"""Writes the results of a study: HTML page, CSV table, Markdown table for a paper, JSON."""

from __future__ import annotations

import io
from pathlib import Path

from mdagents.pages.layout import make_frame, packed, templates
from mdagents.pages.report_summary import head_of_comparison
from mdagents.scoring.comparison import Comparison
from mdagents.scoring.comparison_tables import write_study_csv
from mdagents.scoring.comparison_text import as_markdown
from mdagents.scoring.fields import plain
from mdagents.scoring.formatting import json_text
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.whole_file import replace_file

_SCRIPTS = ("saving.js", "keys.js")


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
    contents = {"html": page, "csv": table.getvalue(), "md": as_markdown(study), "json": figures}
    paths = []
    for ending, text in contents.items():
        path = evaluation_dir / f"{study.name}.{ending}"
        try:
            replace_file(path, plain(text).encode())
        except OSError as error:
            raise ConfigError(
                f"cannot write {path}: {error.strerror}; see --evaluation-dir"
            ) from error
        paths.append(path)
    return paths
