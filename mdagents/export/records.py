"""Reads the records of a run one at a time, in the order of the selection."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mdagents.records.manifest import RunManifest, read_manifest
from mdagents.scoring.rows import RunOutput, nothing_finished, read_output, run_folder
from mdagents.scoring.scored_row import ScoredRow
from mdagents.settings import ImageAgents
from mdagents_llm.clock import ms_of
from mdagents_llm.errors import ConfigError
from mdagents_llm.text import well_formed

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RunFiles:
    """A run with its folder, manifest and records."""

    folder: Path
    """Folder of the traces and the ledger, if any."""
    manifest: RunManifest | None
    """Manifest of the run; None for another program's file."""
    output: RunOutput
    """Scored records of the run."""

    @property
    def name(self) -> str:
        """Name of the run, else of the file."""
        return well_formed(self.output.name)

    @property
    def models(self) -> Mapping[str, str]:
        """Role -> requested model; empty for another program's file."""
        return self.manifest.models if self.manifest else {}

    @property
    def image_agents(self) -> ImageAgents:
        """Agents that saw the pictures of questions."""
        stated = self.manifest.options.get("image_agents") if self.manifest else None
        return ImageAgents.EXPERTS if stated == ImageAgents.EXPERTS else ImageAgents.ALL

    @property
    def starts(self) -> list[int]:
        """Times of the run's starts, in ms since 1970 UTC.

        Raises:
            ConfigError: A start time in `run.json` is invalid.
        """
        invocations = self.manifest.invocations if self.manifest else []
        try:
            return [ms_of(invocation.started_at) for invocation in invocations]
        except ValueError as error:
            raise ConfigError(f"run.json: {error}") from error

    def records(self) -> Iterator[tuple[Record, ScoredRow]]:
        """Yield each scored record with its row, in the order of the selection."""
        order = {id_: n for n, id_ in enumerate(self.manifest.item_ids if self.manifest else ())}
        rows = sorted(
            self.output.rows, key=lambda row: (row.epoch, order.get(row.question_id, len(order)))
        )
        for row, record in replace(self.output, rows=tuple(rows)).records():
            yield _writable(record), row


def _writable(record: Record) -> Record:
    """Return a record as valid JSON: without lone surrogates, and null for NaN and infinity."""
    text = well_formed(json.dumps(record, ensure_ascii=False))
    whole: Record = json.loads(text, parse_constant=lambda _: None)
    return whole


def find_run(path: Path) -> RunFiles:
    """Return the files of a run.

    Args:
        path: Folder of a run, its `samples.jsonl`, or a JSON array.

    Raises:
        ConfigError: The path is not a run, is damaged, or holds no finished question.
    """
    if path.is_dir():
        path = path / "samples.jsonl"
    folder = run_folder(path)
    manifest = read_manifest(folder)
    if manifest is not None and (folder / "samples.jsonl").is_file():
        path = folder / "samples.jsonl"  # the same records as the array, one per line
    output = read_output(path)
    if not output.rows:
        raise nothing_finished(output, path)
    return RunFiles(folder, manifest, output)
