"""Writes the HTML report: figures and charts at the top, then every question with its transcript.

Transcripts are compressed, and the browser decompresses each when it is opened: a run of 5,000
questions has more text than a browser can lay out at once.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from tqdm import tqdm

from mdagents.pages.layout import make_frame, packed, templates
from mdagents.pages.listing import (
    FILTERS,
    filter_counts,
    headings,
    make_entries,
    start_of,
)
from mdagents.pages.report_pictures import ReportPictures
from mdagents.pages.report_summary import Head
from mdagents.pages.transcript import make_transcript
from mdagents.scoring.case_calls import CallFile, attempt_of, starts_of
from mdagents.scoring.csv_file import write_csv, write_csv_of_runs
from mdagents.scoring.fields import plain, text_of
from mdagents.scoring.formatting import json_text
from mdagents.scoring.rows import RunOutput
from mdagents.scoring.scored_row import ScoredRow
from mdagents_llm.files.whole_file import whole_file
from mdagents_llm.ledger import CallRow
from mdagents_llm.processes import cores, in_processes

_WORTH_A_PROCESS = 40  # questions that take as long as starting a process
_SCRIPTS = (
    *("saving.js", "list.js", "list_of_page.js", "question.js", "pictures.js", "case.js"),
    "keys.js",
)


def write_page(path: Path, head: Head, runs: Sequence[RunOutput]) -> None:
    """Write the report of one run, or of several side by side; show progress on a terminal.

    Args:
        path: HTML file; it is replaced as a whole, so a reader never sees a partial file.
        head: Head of the report.
        runs: At least one run; several must hold the same questions in the same order.

    Raises:
        RecordError, ConfigError: A trace or a summary cannot be read.
        BenchError: A worker process was killed.
        OSError: The file cannot be written.
    """
    entries = make_entries([run.rows for run in runs])
    rows = {name: run.rows for name, run in zip(head.run_names, runs, strict=True)}
    progress = tqdm(
        total=sum(len(run.rows) for run in runs),
        desc="HTML",
        unit="q",
        disable=None if sys.stderr else True,
        leave=False,
    )
    pictures = ReportPictures()
    # Worker processes start and make the first transcripts while the head is made.
    transcripts = [_transcripts(run, pictures) for run in runs]
    parts = (
        templates()
        .get_template("report.html")
        .generate(
            head=head,
            frame=make_frame(*_SCRIPTS),
            runs=head.run_names,
            headings=headings(head.run_names),
            stem=path.stem,
            csv=packed(_csv(rows)),
            json=packed(json_text(head.values)),
            questions=len(entries),
            # Texts are read while the page is written, so that memory does not grow with them.
            entries=(
                (entry, text, start_of(text))
                for entry, text in zip(entries, _texts(runs[-1]), strict=True)
            ),
            levels=sorted({level for entry in entries for level in entry.levels}),
            filters=[(name, FILTERS[name], n) for name, n in filter_counts(entries).items()],
            packed=zip(*(_counted(each, progress) for each in transcripts), strict=True),
            pictures=pictures,
        )
    )
    with progress, whole_file(path) as file:
        for part in parts:
            pictures.written += file.write(plain(part).encode())


def _texts(run: RunOutput) -> Iterator[str]:
    """Yield the question text of each row."""
    for _, record in run.records():
        yield text_of(record, "question")


def _counted(transcripts: Iterator[str], progress: tqdm[NoReturn]) -> Iterator[str]:
    """Yield the transcripts, and count each on the progress bar."""
    for transcript in transcripts:
        progress.update()
        yield transcript


def _transcripts(run: RunOutput, pictures: ReportPictures) -> Iterator[str]:
    """Return the compressed transcript of each row; its pictures are collected on the way."""
    calls, starts = CallFile(run.folder / "calls.jsonl"), starts_of(run.manifest)

    def each() -> Iterator[tuple[Path, Mapping[str, Any], ScoredRow, Sequence[CallRow]]]:
        for row, record in run.records():
            pictures.add(record, run.folder)
            attempts = calls.attempts(text_of(record, "case_id"), starts)
            yield run.folder, record, row, attempt_of(record, attempts)

    processes = min(cores(), len(run.rows) // _WORTH_A_PROCESS + 1)
    return in_processes(make_transcript, each(), processes=processes)


def _csv(rows: Mapping[str, Sequence[ScoredRow]]) -> str:
    file = io.StringIO()
    if len(rows) == 1:
        write_csv(file, *rows.values())
    else:
        write_csv_of_runs(file, rows)
    return file.getvalue()
