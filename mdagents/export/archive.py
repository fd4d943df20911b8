"""Writes a log as an `.eval` file: a ZIP archive with one JSON file per sample.

The members are those that Inspect's own recorder writes. They are compressed with Deflate, which
every version of Inspect and of Python reads, and have no time, so that the same run gives the same
bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from inspect_ai.log import EvalLog, EvalSample

from mdagents_llm.errors import ConfigError

_UNIX = 3  # system that made a member; by default, it is the one that writes
_LONGEST_NAME = 65_535  # bytes of a member's name, by the ZIP format


def write_archive(file: BinaryIO, header: EvalLog, samples: Iterable[EvalSample]) -> None:
    """Write a log with one sample in memory at a time.

    Args:
        file: File to write to.
        header: Log without its samples.
        samples: Samples in the order of the log.

    Raises:
        ConfigError: The id of a question is too long for the name of a member.
    """
    summaries: list[str] = []
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        start = header.model_dump_json(include={"version", "eval", "plan"}, exclude_none=True)
        _add(archive, "_journal/start.json", start)
        for sample in samples:
            name = f"samples/{sample.id}_epoch_{sample.epoch}.json"
            if len(name.encode()) > _LONGEST_NAME:
                raise ConfigError(
                    f"question {str(sample.id)[:30]}…: its id is too long for an .eval file; "
                    "use --format json"
                )
            _add(archive, name, sample.model_dump_json(exclude_none=True))
            summaries.append(sample.summary().model_dump_json(exclude_none=True))
        _add(archive, "summaries.json", f"[{','.join(summaries)}]")
        _add(archive, "header.json", header.model_dump_json(exclude_none=True))


def _add(archive: ZipFile, name: str, content: str) -> None:
    member = ZipInfo(name)
    member.compress_type = ZIP_DEFLATED
    member.create_system = _UNIX
    archive.writestr(member, content)
