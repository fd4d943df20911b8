"""Finds data sets, indexes the questions of their JSONL files and reads them when needed."""

from __future__ import annotations

import hashlib
import reprlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.errors import ConfigError
from infra.files.json_text import load_json
from mdagents.datasets.medmcqa import Counting, counting_of
from mdagents.datasets.question_records import parse_question
from mdagents.datasets.questions import SourceQuestion

DATA_DIR = Path("data")
"""Where data sets are, unless the user names another folder."""

KNOWN = (
    "medqa", "medqa_5options", "medmcqa", "pubmedqa", "mmlu", "mmlu-pro", "medbullets",
    "medxpertqa", "medexqa", "afrimedqa", "hle",
    *(f"medagentsbench/{name}_hard" for name in (
        "afrimedqa", "medbullets", "medexqa", "medmcqa", "medqa", "medxpertqa-r", "medxpertqa-u",
        "mmlu", "mmlu-pro", "pubmedqa",
    )),
)  # fmt: skip
"""Names for which `mdagents data download` has files or instructions."""


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """Where a question stands in its file."""

    id: str
    offset: int
    """Bytes from the start of the file."""
    line: int
    """Counted from 1."""
    digest: str
    """SHA-256 of the line, first 16 hex digits."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A data set on disk: an index in memory, the questions parsed when they are needed."""

    name: str
    """What a run is named after, for example `medqa` or `medqa-sample`."""
    path: Path
    sha256: str
    """Of the whole file."""
    index: tuple[IndexEntry, ...]
    notice: str = ""
    """What a user must know about this data set before reading a score; empty without caveats."""
    counting: Counting | None = None
    """How it counts options, if it is a file of MedMCQA."""

    def line(self, entry: IndexEntry) -> str:
        """Return the record of a question as stored in the file, including its line break.

        Raises:
            ConfigError: The file has changed since it was indexed.
        """
        with self.path.open("rb") as file:
            file.seek(entry.offset)
            line = file.readline()
        if _digest(line) != entry.digest:
            raise ConfigError(
                f"{self.path} was changed while it was in use (line {entry.line}); start again"
            )
        return line.decode("utf-8-sig").strip() + "\n"

    def load(self, entry: IndexEntry) -> SourceQuestion:
        """Parse the question that `entry` points to.

        Raises:
            ConfigError: The file has changed since it was indexed.
        """
        return read_question(self.line(entry).encode(), self.path, entry.line, self.counting)

    def items_hash(self, entries: Sequence[IndexEntry]) -> str:
        """Return the SHA-256 over the ids and contents of `entries`, independent of their order."""
        lines = sorted(f"{entry.id}\t{entry.digest}" for entry in entries)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()


_SAMPLE = "sample"
"""`meta_info` of the questions that ship with the project."""

_SHIPPED = Path(__file__).with_name("sample")
"""Where these are; `data/medqa` of a clone points there."""

SAMPLE_NOTICE = (
    "these questions were written for this project in the style of MedQA. They are not MedQA and "
    "were not reviewed by clinicians: use them to try the program, not to report a score. "
    "`mdagents data download medqa` fetches the real test set."
)


def open_dataset(name: str, data_dir: Path, split: str = "test") -> Dataset:
    """Open a data set by the name of its folder, or a `.jsonl` file by its path.

    Args:
        name: Folder under `data_dir`, such as `medqa` or `medagentsbench/medqa_hard`, or a path
            that ends in `.jsonl`.
        data_dir: Folder of the data sets.
        split: File name without `.jsonl` in the folder.

    Raises:
        ConfigError: There is no such data set, or one of its records is not valid.
    """
    return _index(*find_dataset(name, data_dir, split))


def is_shipped(dataset: Dataset) -> bool:
    """Return whether a data set is the sample inside the installed package."""
    return dataset.path.parent == _SHIPPED


def find_dataset(name: str, data_dir: Path, split: str = "test") -> tuple[str, Path]:
    """Return (name for runs, file) of a data set; the arguments are those of `open_dataset`.

    Raises:
        ConfigError: There is no such data set.
    """
    if name.endswith(".jsonl"):
        path = Path(name)
        if not path.is_file():
            raise ConfigError(f"there is no data set file {name}; check the path of --dataset")
        label = path.stem if path.stem != "test" else path.parent.name or path.stem
        return label, path
    path = data_dir / name / f"{split}.jsonl"
    if path.is_file():
        return (name if split == "test" else f"{name}-{split}"), path
    file = "sample.jsonl" if split == "test" else f"sample_{split}.jsonl"
    # An installed package brings its sample along, for whoever has no data yet and names none.
    has_data = data_dir != DATA_DIR or (data_dir / "medqa" / "test.jsonl").is_file()
    for folder in (data_dir / "medqa", *(() if has_data else (_SHIPPED,))):
        if name == "medqa" and (folder / file).is_file():
            return ("medqa-sample" if split == "test" else f"medqa-sample-{split}"), folder / file
    raise ConfigError(_not_found(name, data_dir, split))


def _not_found(name: str, data_dir: Path, split: str) -> str:
    folder = data_dir / name
    if folder.is_dir():
        splits = ", ".join(sorted(file.stem for file in folder.glob("*.jsonl"))) or "none"
        return (
            f"data set '{name}' has no split '{split}' in {folder} (there: {splits}); see --split"
        )
    if name in KNOWN:
        return (
            f"data set '{name}' is not in {data_dir} yet; "
            f"fetch it with mdagents data download {name}"
        )
    known = sorted(
        {str(file.parent.relative_to(data_dir)) for file in data_dir.glob("*/**/*.jsonl")}
    )
    return (
        f"there is no data set '{name}' in {data_dir} (there: {', '.join(known) or 'none'}); "
        "give one of these, a path to a .jsonl file, or another --data-dir"
    )


def _index(name: str, path: Path) -> Dataset:
    counting = file_counting(path)
    entries = []
    notices = [f"{counting}."] if counting else []
    whole = hashlib.sha256()
    for offset, number, line in read_lines(path):
        whole.update(line)
        if not line.strip():
            continue
        record = load_json(line, f"{path} line {number}")
        question = parse_question(
            record, f"{path} line {number}", number, counting.first if counting else None
        )
        if record.get("meta_info") == _SAMPLE and SAMPLE_NOTICE not in notices:
            notices.append(SAMPLE_NOTICE)
        entries.append(IndexEntry(question.id, offset, number, _digest(line)))
    if not entries:
        raise ConfigError(f"{path} has no questions in it")
    twice = [id_ for id_, count in Counter(entry.id for entry in entries).items() if count > 1]
    if twice:
        lines = [str(entry.line) for entry in entries if entry.id == twice[0]]
        raise ConfigError(
            f"{path} has the id {reprlib.repr(twice[0])} more than once (lines "
            f"{', '.join(lines[:_MOST_LINES])}{', …' if len(lines) > _MOST_LINES else ''})"
        )
    return Dataset(name, path, whole.hexdigest(), tuple(entries), " ".join(notices), counting)


_MOST_LINES = 10
"""How many lines an error names."""


def file_counting(path: Path) -> Counting | None:
    """Return how a file of MedMCQA counts options; None for any other.

    Raises:
        ConfigError: It cannot be read, or nothing shows how it counts.
    """
    return counting_of(path, ((number, line) for _, number, line in read_lines(path)))


def read_lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield (offset in bytes, line number from 1, line) of a file.

    Raises:
        ConfigError: It cannot be read.
    """
    offset = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                yield offset, number, line
                offset += len(line)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error


def read_question(
    line: bytes, path: Path, number: int, counting: Counting | None = None
) -> SourceQuestion:
    """Parse and check one line of a data set.

    Args:
        line: As it stands in the file.
        path: The file, for the error.
        number: Line number from 1.
        counting: The result of `file_counting` for the file.

    Raises:
        ConfigError: The line is not valid; names file, line and field.
    """
    where = f"{path} line {number}"
    cop_from = counting.first if counting else None
    return parse_question(load_json(line, where), where, number, cop_from)


def _digest(line: bytes) -> str:
    return hashlib.sha256(line.strip()).hexdigest()[:16]
