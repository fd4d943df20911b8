"""Finds data sets, indexes the questions in their files and reads them on demand."""

from __future__ import annotations

import hashlib
import pickle
import reprlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mdagents.datasets.empty_options import is_missing
from mdagents.datasets.kept_fields import kept_fields
from mdagents.datasets.medmcqa import Counting, counting_of
from mdagents.datasets.pictures.detection import mentioned_picture
from mdagents.datasets.question_records import id_field, parse_question
from mdagents.datasets.questions import SourceQuestion
from mdagents.datasets.record_lines import ENDINGS, ending, has_lines, place, read_lines
from mdagents.datasets.source_note import origin_of
from mdagents.datasets.sources import KNOWN, published_size
from mdagents.settings import DATA_DIR
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.json_text import load_json
from mdagents_llm.files.matching import matching
from mdagents_llm.terminal.did_you_mean import did_you_mean
from mdagents_llm.text import counted, first_names


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """The position of a question in its file."""

    id: str
    offset: int
    """Offset in bytes from the start of the file; for a list or a table, index of the record."""
    line: int
    """Line number, from 1."""
    digest: str
    """First 16 hex digits of the SHA-256 of the line."""
    pictures: int = 0
    """Number of pictures that the data set provides for the question."""
    missing_picture: str = ""
    """Evidence that the question has a picture which the data set does not provide; empty without
    one."""
    mentions_picture: bool = False
    """Whether the text refers to a figure, an image or a table, and there is no picture."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A data set on disk, with an index and the first questions in memory.

    The other questions are parsed on demand.
    """

    name: str
    """Name used in run names, for example `medqa` or `medqa-sample`."""
    path: Path
    sha256: str
    """SHA-256 of the whole file."""
    index: tuple[IndexEntry, ...]
    notice: str = ""
    """Caveats to show with a score; empty without any."""
    counting: Counting | None = None
    """Option numbering of a MedMCQA file; None for other files."""
    records: tuple[bytes, ...] = ()
    """Records as JSON lines, for a list or a table, which cannot be read line by line."""
    parsed: Mapping[int, bytes] = field(default_factory=dict, repr=False, compare=False)
    """Line number -> pickled question, for the first ones without pictures up to `_MOST_PARSED`."""

    def line(self, entry: IndexEntry) -> str:
        """Return the record of a question as stored in the file, including its line break.

        Raises:
            ConfigError: The file was modified or removed after it was indexed.
        """
        if self.records:
            return self.records[entry.offset].decode()
        try:
            with self.path.open("rb") as file:
                file.seek(entry.offset)
                line = file.readline()
        except OSError as error:
            why = error.strerror or str(error)
            what = f"{self.path} cannot be read any more ({why}); restore it and start again"
            raise ConfigError(what) from error
        if _digest(line) != entry.digest:
            raise ConfigError(
                f"{self.path} was changed while it was in use (line {entry.line}); start again"
            )
        return line.decode("utf-8-sig").strip() + "\n"

    def load(self, entry: IndexEntry) -> SourceQuestion:
        """Return the question that `entry` points to.

        Raises:
            ConfigError: The question is not in memory, and the file was modified or removed after
                it was indexed.
        """
        if pickled := self.parsed.get(entry.line):
            question: SourceQuestion = pickle.loads(pickled)
        else:
            line = self.line(entry).encode()
            question = read_question(line, self.path, entry.line, self.counting)
        return replace(question, id=entry.id)  # one string, which a run keeps in several places

    def items_hash(self, entries: Sequence[IndexEntry]) -> str:
        """Return the SHA-256 over the ids and contents of `entries`, independent of their order."""
        lines = sorted(f"{entry.id}\t{entry.digest}" for entry in entries)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def part_note(dataset: Dataset) -> str:
    """Return a notice if a file holds only part of a published data set; empty if complete.

    Args:
        dataset: Data set whose name may be that of a published one.
    """
    published = published_size(dataset.name)
    origin = origin_of(dataset.path, dataset.sha256)
    held = len(dataset.index) + (origin.left_out if origin else 0)
    if published is None or held >= published:
        return ""
    return (
        f"This file of {dataset.name} holds {len(dataset.index):,} of the {published:,} published "
        f"questions: scores apply to this subset only."
    )


SAMPLE_NAME = "medqa-sample"
"""Name of the sample data set that ships with the project."""

TRIAGE_NAME = "triage_vignettes"
"""Name of the data set of patient messages that ships with the project."""

VQA_SAMPLE_NAME = "vqa-sample"
"""Name of the sample of questions with pictures that ships with the project."""

_SPLITS = ("test", "train")
"""Names of the splits of a downloaded data set and of the sample."""

_SHIPPED = {
    SAMPLE_NAME: Path(__file__).with_name("sample"),
    TRIAGE_NAME: Path(__file__).with_name("triage_vignettes"),
    VQA_SAMPLE_NAME: Path(__file__).with_name("vqa_sample"),
}
"""Shipped data set -> folder, to which a folder in `data/` of a clone points."""
_TEST_ONLY = (TRIAGE_NAME, VQA_SAMPLE_NAME)
"""Shipped data sets without a train split."""

SAMPLE_NOTICE = (
    "These questions were written for this project in the style of MedQA. They are not MedQA and "
    "were not reviewed by clinicians: use them to try the program, not to report a score. "
    "`python -m mdagents data download medqa` fetches the real test set."
)

TRIAGE_NOTICE = (
    "These messages and their levels of urgency were written by this project's developers and not "
    "reviewed by clinicians: use them to compare teams and programs, not for care."
)

VQA_SAMPLE_NOTICE = (
    "These 12 questions with pictures were made by this project to try whether a model gets its "
    "pictures. They are not a benchmark: report no score on them."
)

_NOTICES = {
    "sample": SAMPLE_NOTICE,
    TRIAGE_NAME: TRIAGE_NOTICE,
    "vqa_sample": VQA_SAMPLE_NOTICE,
}
"""`meta_info` of shipped questions -> caveats about them."""


def open_dataset(name: str, data_dir: Path, split: str = "test") -> Dataset:
    """Open a data set by the name of its folder, or a file by its path.

    Args:
        name: Folder under `data_dir`, such as `medqa` or `medagentsbench/medqa_hard`,
            case-insensitive; `medqa-sample`, `triage_vignettes` or `vqa-sample`, which are always
            available; or a path with one of the extensions in `ENDINGS`.
        data_dir: Folder of the data sets.
        split: Name of the `.jsonl` or `.csv` file in the folder, without its extension.

    Raises:
        ConfigError: The data set does not exist, or one of its records is invalid.
    """
    return _index(*find_dataset(name, data_dir, split))


def no_question(dataset: Dataset, ids: Sequence[str]) -> str:
    """Return the error message for question ids that are not in a data set."""
    meant = did_you_mean(ids[0], [entry.id for entry in dataset.index])
    return f"{dataset.name} has no question with id {', '.join(ids)}{meant}"


def is_shipped(dataset: Dataset) -> bool:
    """Return whether a data set is part of the installed package."""
    return dataset.path.parent in _SHIPPED.values()


def find_dataset(name: str, data_dir: Path, split: str = "test") -> tuple[str, Path]:
    """Return (name for runs, file) of a data set; the arguments are those of `open_dataset`.

    Raises:
        ConfigError: The data set does not exist.
    """
    path = Path(name)
    if ending(path) in ENDINGS:
        if not path.is_file():
            raise ConfigError(f"there is no data set file {name}; check its path")
        label = path.stem if path.stem != "test" else path.parent.name or path.stem
        return label, path
    name = str(path) if name else name  # `medqa/` and `./medqa` are `medqa`
    there = _folders(data_dir)
    if name not in there:
        spellings = {known.lower(): known for known in (*_SHIPPED, *KNOWN, *sorted(there))}
        name = spellings.get(name.lower(), name)
    if (found := _file_of_split(data_dir / name, split)) is not None:
        return (name if split == "test" else f"{name}-{split}"), found
    if name in _TEST_ONLY and split == "test":
        return name, _SHIPPED[name] / "test.jsonl"
    file = "sample.jsonl" if split == "test" else f"sample_{split}.jsonl"
    # Fall back to the packaged sample for users who have no data yet and name no folder.
    has_data = data_dir != DATA_DIR or (data_dir / "medqa" / "test.jsonl").is_file()
    folders = [data_dir / "medqa"] if name == "medqa" else []
    if name == SAMPLE_NAME or (name == "medqa" and not has_data):
        folders.append(_SHIPPED[SAMPLE_NAME])
    for folder in folders:
        if (folder / file).is_file():
            return (SAMPLE_NAME if split == "test" else f"{SAMPLE_NAME}-{split}"), folder / file
    raise ConfigError(_not_found(name, data_dir, split, there))


def earlier_labels(label: str, split: str) -> Iterator[str]:
    """Yield the names that a data set typed as `./name` or `name/` had in runs of earlier versions.

    Args:
        label: Name for runs, by `find_dataset`.
        split: Name of the split.
    """
    name = label if split == "test" else label.removesuffix(f"-{split}")
    for spelled in (f"{name}/", f"./{name}", f"./{name}/"):
        yield spelled + label.removeprefix(name)


_IN_FOLDERS = (".jsonl", ".csv")


def _file_of_split(folder: Path, split: str) -> Path | None:
    """Return the file of a split of the data set in a folder; None without one."""
    path = folder / f"{split}.jsonl"
    files = {  # of two spellings of an extension, the one in lower case
        ending(file): file
        for file in matching(path.parent, "*")
        if file.stem == path.stem and file.is_file()
    }
    return next((files[one] for one in _IN_FOLDERS if one in files), None)


def _folders(data_dir: Path) -> dict[str, list[str]]:
    """Return the name of each data set -> its splits."""
    found: dict[str, list[str]] = {}
    for file in matching(data_dir, "*/**/*"):
        if ending(file) in _IN_FOLDERS:
            splits = found.setdefault(str(file.parent.relative_to(data_dir)), [])
            if file.stem not in splits:
                splits.append(file.stem)
    return found


def _not_found(name: str, data_dir: Path, split: str, there: Mapping[str, list[str]]) -> str:
    path = Path(name)
    if (path / "samples.jsonl").is_file():
        return f"{name} is a run, not a data set; give --dataset the questions"
    if path.is_file():
        what = f"{name} cannot be read: the name of a data set file ends in {', '.join(ENDINGS)}"
        is_sheet = ending(path) in (".xlsx", ".xls", ".ods")
        return f"{what}; save the sheet as CSV in UTF-8" if is_sheet else what
    folder = data_dir / name
    splits = there.get(name, [])
    if name == SAMPLE_NAME or (name == "medqa" and not splits and split not in _SPLITS):
        folder, splits = _SHIPPED[SAMPLE_NAME], list(_SPLITS)
    if name in _TEST_ONLY and not splits:
        folder, splits = _SHIPPED[name], ["test"]
    if folder.is_dir() or splits:
        return (
            f"data set '{name}' has no split '{split}' in {folder} "
            f"(there: {', '.join(splits) or 'none'}); see --split{did_you_mean(split, splits)}"
        )
    if name in KNOWN:
        return (
            f"data set '{name}' is not in {data_dir} yet; "
            f"run: python -m mdagents data download {name}"
        )
    known = [*there, *_SHIPPED, *KNOWN]
    endings, one_of_these = " or ".join(ENDINGS), "one of these, " if there else ""
    within = next((longer for longer in known if longer.endswith(f"/{name.lower()}")), "")
    return (
        f"there is no data set '{name}' in {data_dir} (there: {', '.join(there) or 'none'}); give "
        f"{one_of_these}{SAMPLE_NAME}, a path to a {endings} file, "
        f"or another --data-dir{did_you_mean(within or name, known)}"
    )


def _index(name: str, path: Path) -> Dataset:
    counting = file_counting(path)
    entries = []
    notices = [f"{counting}."] if counting else []
    whole = hashlib.sha256()
    records: list[bytes] = []
    parsed: dict[int, bytes] = {}
    left = _MOST_PARSED
    without_value: list[int] = []
    keeps = not has_lines(path)
    folder = folder_of(path)
    for offset, number, line in read_lines(path):
        whole.update(line)
        if keeps:
            records.append(line)
        if not line.strip():
            continue
        record = _record(line, path, number)
        cop_from = counting.first if counting else None
        where = place(path, number)
        question = parse_question(record, where, number, cop_from, folder=folder)
        notice = _notice(record)
        if notice and notice not in notices:
            notices.append(notice)
        if any(map(is_missing, question.hidden.values())):
            without_value.append(number)
        mentions = not question.pictures and bool(mentioned_picture(question.text))
        if left > 0 and not question.pictures:
            pickled = pickle.dumps(replace(question, fields=kept_fields(record)))
            left -= len(pickled)
            if left >= 0:
                parsed[number] = pickled
        entries.append(
            IndexEntry(
                question.id,
                offset,
                number,
                _digest(line),
                len(question.pictures),
                question.missing_picture,
                mentions,
            )
        )
    if not entries:
        raise ConfigError(f"{path} has no questions in it")
    if without_value:
        notices.append(
            f"{path.name} has {counted(len(without_value), 'question')} with an option 'nan', a "
            f"cell that pandas found empty (first in line {without_value[0]}); it is not shown."
        )
    twice = [id_ for id_, count in Counter(entry.id for entry in entries).items() if count > 1]
    if twice:
        numbers = [entry.line for entry in entries if entry.id == twice[0]]
        fields = (
            id_field(_record(line, path, number))
            for _, number, line in read_lines(path)
            if number in numbers and line.strip()
        )
        field = next(filter(None, fields), None)
        raise ConfigError(
            f"{path} has the id {reprlib.repr(twice[0])} more than once (lines "
            f"{first_names(numbers, _MOST_LINES)})"
            + (f"; rename the field '{field}' if it is not the id of a question" if field else "")
        )
    sha256 = whole.hexdigest()
    if keeps:
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    notice = " ".join(notices)
    return Dataset(name, path, sha256, tuple(entries), notice, counting, tuple(records), parsed)


def _notice(record: Mapping[str, Any]) -> str:
    about = record.get("meta_info")
    return _NOTICES.get(about, "") if isinstance(about, str) else ""


def _record(line: bytes, path: Path, number: int) -> Any:
    try:
        return load_json(line, place(path, number))
    except ConfigError as error:
        if number > 1 or line.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
            raise
        raise ConfigError(f"{error}; a table must be named .csv") from None


_MOST_PARSED = 3_500_000
"""Bytes of pickled questions to keep, enough for the test sets of MedQA (1 kB each) and MedMCQA.

The interpreter adds about 0.1 kB for each. Pickles take half the memory of objects; reading a
question from the file takes eight times as long.
"""

_MOST_LINES = 10
"""Maximum number of lines named in an error."""


def file_counting(path: Path) -> Counting | None:
    """Return the option numbering of a MedMCQA file; None for other files.

    Raises:
        ConfigError: The file cannot be read, or its numbering is ambiguous.
    """
    return counting_of(path, ((number, line) for _, number, line in read_lines(path)))


def read_question(
    line: bytes, path: Path, number: int, counting: Counting | None = None
) -> SourceQuestion:
    """Parse and check one line of a data set.

    Args:
        line: Line as stored in the file.
        path: Path of the file, for error messages.
        number: Line number, from 1.
        counting: Result of `file_counting` for the file.

    Raises:
        ConfigError: The line is invalid; the message names file, line and field.
    """
    where = place(path, number)
    cop_from = counting.first if counting else None
    record = load_json(line, where)
    question = parse_question(record, where, number, cop_from, folder=folder_of(path))
    return replace(question, fields=kept_fields(record))


def folder_of(path: Path) -> Path:
    """Return the folder in which the pictures of a question file are: that of the file itself.

    Args:
        path: Path of the file, or of a link to it.
    """
    return path.resolve().parent if path.is_symlink() else path.parent


def _digest(line: bytes) -> str:
    return hashlib.sha256(line.strip()).hexdigest()[:16]
