"""Writes the Inspect log of a run, one sample at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from inspect_ai.log import EvalLog, EvalSample, EvalSpec

from mdagents.export import LogFormat
from mdagents.export.archive import write_archive
from mdagents.export.header import file_name, make_header
from mdagents.export.ledger import Spending
from mdagents.export.pictures import PictureReader
from mdagents.export.records import Record, RunFiles, find_run
from mdagents.export.sample import make_sample
from mdagents.export.transcript import Sources
from mdagents.scoring.case_calls import CallFile, attempt_of
from mdagents.scoring.transcripts import OtherAttemptError, TranscriptTurn, read_transcript
from mdagents_llm.clock import ms_of
from mdagents_llm.files.whole_file import whole_file, writing


def write_log(path: Path, output: Path | None, log_format: LogFormat) -> Path:
    """Write the log of a run, as described in `export_run`."""
    run = find_run(path)
    spent = Spending()  # over all calls, including attempts that do not count
    calls = CallFile(run.folder / "calls.jsonl", spent.add_call)
    starts = run.starts
    served = ""
    for record, _ in run.records():
        served = served or str(record.get("model") or "")
        if _case_of(record) not in calls:
            spent.add_record(record, run.models)
    header = make_header(run, served or "unknown", spent)
    output = output or run.folder / file_name(header.eval, log_format)
    samples = _samples(run, calls, starts, header.eval)
    write = write_archive if log_format is LogFormat.EVAL else _write_json
    with writing(output), whole_file(output) as file:
        write(file, header, samples)
    return output


def _write_json(file: BinaryIO, header: EvalLog, samples: Iterable[EvalSample]) -> None:
    """Write a log as JSON; Inspect's own writer holds all samples in memory."""
    file.write(header.model_dump_json(exclude_none=True).removesuffix("}").encode())
    file.write(b',\n"samples":[')
    for number, sample in enumerate(samples):
        file.write(b",\n" if number else b"\n")
        file.write(sample.model_dump_json(exclude_none=True).encode())
    file.write(b"\n]}\n")


def _samples(
    run: RunFiles, calls: CallFile, starts: list[int], spec: EvalSpec
) -> Iterator[EvalSample]:
    pictures = PictureReader(run.folder)
    for record, row in run.records():
        attempts = calls.attempts(_case_of(record), starts)
        counting = attempt_of(record, attempts)
        spent = Spending()
        for call in counting:
            spent.add_call(call)
        if not counting:
            spent.add_record(record, run.models)
        sources = Sources(
            record=record,
            turns=_turns(run.folder, record),
            calls=counting,
            other_attempts=[other for other in attempts if other is not counting],
            default_ms=ms_of(spec.created),
            pictures=pictures.read(record),
            image_agents=run.image_agents,
        )
        yield make_sample(row, sources, spent, run=spec.run_id, solver=spec.solver or "")


def _turns(folder: Path, record: Record) -> list[TranscriptTurn]:
    try:
        return read_transcript(folder, record)
    except OtherAttemptError:
        return []  # without a trace, the contents of the record are shown


def _case_of(record: Record) -> str:
    return str(record.get("case_id") or "")
