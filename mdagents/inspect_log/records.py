"""The records of a run one at a time, in the order of the selection."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from infra.errors import ConfigError
from mdagents.run_store import ItemKey, RunManifest, read_manifest
from mdagents.scoring.fields import count_of
from mdagents.scoring.group import scored
from mdagents.scoring.rows import RunOutput, ScoredRow, read_output

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RunFiles:
    """What there is of a run."""

    folder: Path
    """Where its traces and its ledger are, if it has any."""
    manifest: RunManifest | None
    """None for the file of another program."""
    output: RunOutput
    """Its records as they are scored."""

    @property
    def name(self) -> str:
        """The run's name, or the file's."""
        return self.output.name

    @property
    def scored(self) -> list[ScoredRow]:
        """All but the skipped questions."""
        return scored(self.output.rows)

    def records(self) -> Iterator[tuple[Record, ScoredRow]]:
        """Each record that counts, with how it is scored.

        Of JSON Lines one record is in memory at a time.
        """
        rows = {(row.question_id, row.epoch): row for row in self.output.rows}
        path = self.output.path
        if path.suffix != ".jsonl":
            array = json.loads(path.read_bytes())
            for key, place in self._in_order(enumerate(array)):
                yield array[place], rows[key]
            return
        with path.open("rb") as file:
            for key, offset in self._in_order(_lines(file)):
                file.seek(offset)
                yield json.loads(file.readline()), rows[key]

    def _in_order(self, entries: Iterable[tuple[int, Record]]) -> list[tuple[ItemKey, int]]:
        """(question and epoch, place) of the records that count: the last one of each question."""
        order = {id_: n for n, id_ in enumerate(self.manifest.item_ids if self.manifest else ())}
        places: dict[ItemKey, int] = {}
        for number, (place, record) in enumerate(entries, start=1):
            # As `mdagents.scoring.rows` names a question.
            id_ = str(record.get("question_id", record.get("id", f"sample_{number}")))
            places[id_, count_of(record.get("epoch")) or 1] = place
        return sorted(
            places.items(), key=lambda item: (item[0][1], order.get(item[0][0], len(order)))
        )


def _lines(file: BinaryIO) -> Iterator[tuple[int, Record]]:
    offset = 0
    for line in file:
        if line.endswith(b"\n"):  # else torn by a kill
            yield offset, json.loads(line)
        offset += len(line)


def find_run(path: Path) -> RunFiles:
    """The files of a run.

    Args:
        path: Folder of a run, its `samples.jsonl`, or a JSON array.

    Raises:
        ConfigError: It is none of these, or damaged, or holds no finished question.
    """
    if path.is_dir():
        path = path / "samples.jsonl"
    folder = path.parent if path.name == "samples.jsonl" else path.with_suffix("")
    manifest = read_manifest(folder)
    if manifest is not None and (folder / "samples.jsonl").is_file():
        path = folder / "samples.jsonl"  # the records of the array beside it, one a line
    output = read_output(path)
    if not output.rows:
        raise ConfigError(f"{path} holds no finished question")
    return RunFiles(folder, manifest, output)


def served_model(record: Record) -> str:
    """The models that answered, as the record names them."""
    return str(record.get("model") or "")
