"""Write parts of a data set: questions by id, or those that a run routed to each level."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from mdagents.datasets.dataset import (
    Dataset,
    IndexEntry,
    folder_of,
    is_shipped,
    no_question,
    open_dataset,
)
from mdagents.datasets.picture_copies import copy_pictures, with_copies
from mdagents.datasets.question_records import id_field
from mdagents.records.own_files import refuse_to_replace
from mdagents.scoring.rows import newest_output, read_output
from mdagents.settings import Difficulty, RoutedBy, data_dir, output_dir
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.regular_file import read_regular
from mdagents_llm.files.whole_file import replace_file, writing
from mdagents_llm.terminal.command_line import Parser, flags_in
from mdagents_llm.terminal.printing import fails_in_one_line, print_line, print_result
from mdagents_llm.text import counted


@fails_in_one_line
def extract(argv: Sequence[str], *, program: str = "mdagents data extract") -> int:
    """Write the questions with the given ids to a file, or print them.

    Args:
        argv: Command-line arguments without the program's name.
        program: Program name as the user invoked it.

    Returns:
        The exit status.
    """
    parser = _parser(program, "Picks questions out of a data set by id.")
    parser.add_argument("ids", nargs="+", metavar="ID", help="question ids, as in a run's records")
    parser.add_argument("--output", metavar="FILE", help="JSONL file to write [standard output]")
    options = parser.parse_args(argv)

    dataset = _open_named(options)
    by_id = {entry.id: entry for entry in dataset.index}
    missing = [id_ for id_ in options.ids if id_ not in by_id]
    if missing:
        raise ConfigError(no_question(dataset, missing))
    entries = [by_id[id_] for id_ in dict.fromkeys(options.ids)]
    if options.output:
        refuse_to_replace(Path(options.output), dataset.path)
        _write_questions(dataset, entries, Path(options.output))
    else:
        print_result("".join(_line(dataset, entry) for entry in entries).rstrip("\n"))
        if any(entry.pictures for entry in entries):
            print_line(
                f"paths of pictures are relative to {folder_of(dataset.path)}; --output copies them"
            )
    return 0


@fails_in_one_line
def split(argv: Sequence[str], *, program: str = "mdagents data split") -> int:
    """Write the questions of a run to one file for each level to which they were routed.

    Args:
        argv: Command-line arguments without the program's name.
        program: Program name as the user invoked it.

    Returns:
        The exit status.
    """
    parser = _parser(program, "Splits a data set by the difficulty a run routed to.")
    parser.add_argument("--input", metavar="PATH", help="JSON array or folder of the run [newest]")
    parser.add_argument("--output-dir", metavar="DIR", default=output_dir(), help="where runs are")
    parser.add_argument("--to", metavar="DIR", help="where the parts go [beside the data set]")
    parser.add_argument("--force", action="store_true", help="replace files with other questions")
    options = parser.parse_args(argv)
    if options.input and "--output-dir" in flags_in(argv):
        raise ConfigError(
            "--output-dir is where the newest run is looked for; with --input leave it out "
            "(--to says where the parts go)"
        )

    run = Path(options.input) if options.input else newest_output(Path(options.output_dir))
    dataset = _open_named(options)
    levels = _levels_of(run)
    level_of = {id_: of.most_common(1)[0][0] for id_, of in levels.items()}  # the first of equals
    known = {entry.id for entry in dataset.index}
    missing = [id_ for id_ in level_of if id_ not in known]
    if missing:
        raise ConfigError(
            f"{run} has {counted(len(missing), 'question')} not in {dataset.path} "
            f"(the first: {missing[0]}); give the --dataset of that run"
        )
    beside = (
        Path(options.data_dir) / options.dataset if is_shipped(dataset) else dataset.path.parent
    )
    folder = Path(options.to) if options.to else beside
    if differing := sum(len(of) > 1 for of in levels.values()):
        print_line(
            f"the router's level differs between epochs for {differing} of "
            f"{counted(len(levels), 'question')}. Each question goes to its most frequent "
            "level; ties go to the level of the first epoch."
        )
    parts = {
        folder / f"{dataset.path.stem}_{level}.jsonl": [
            entry for entry in dataset.index if level_of.get(entry.id) == level
        ]
        for level in sorted({*level_of.values(), *Difficulty})
    }
    for path, entries in parts.items():
        if entries and not options.force:
            _refuse_other_questions(dataset, entries, path)
    for path, entries in parts.items():
        if entries:
            _write_questions(dataset, entries, path)
        elif path.exists():
            level = path.stem.removeprefix(f"{dataset.path.stem}_")
            print_result(f"{path}: left as it was; {run} routed no question to {level}")
    return 0


def _levels_of(run: Path) -> dict[str, Counter[str]]:
    """Return how often each question of a run was routed to each level, by its id.

    Raises:
        ConfigError: The run cannot be read, or no question was routed.
    """
    rated = [row for row in read_output(run).rows if row.routed_by != RoutedBy.FORCED]
    if not rated:
        raise ConfigError(f"no router rated a question of {run}; give an adaptive run")
    levels: dict[str, Counter[str]] = {}
    for row in rated:
        if row.difficulty:
            levels.setdefault(row.question_id, Counter())[row.difficulty] += 1
    if not levels:
        raise ConfigError(f"no question of {run} has a level; give an adaptive run")
    return levels


def _refuse_other_questions(dataset: Dataset, entries: Sequence[IndexEntry], path: Path) -> None:
    """Refuse to replace a file that holds anything but the given questions.

    Raises:
        ConfigError: There is such a file.
    """
    if _is_stream(path):
        return
    try:
        content = read_regular(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error
    if content != _lines(dataset, entries, path.parent, copies=False):
        raise ConfigError(
            f"{path} is there with other questions: move it away, name another folder with --to, "
            "or replace it with --force"
        )


def _parser(program: str, description: str) -> argparse.ArgumentParser:
    """Return an argument parser with the flags that select a data set."""
    parser = Parser(prog=program, description=description)
    parser.add_argument("--dataset", metavar="NAME", default="medqa", help="as for a run")
    parser.add_argument("--split", metavar="NAME", default="test", help="as for a run")
    parser.add_argument("--data-dir", metavar="DIR", default=data_dir(), help="as for a run")
    return parser


def _open_named(options: argparse.Namespace) -> Dataset:
    """Open the data set selected by the flags of `_parser`.

    Raises:
        ConfigError: The data set does not exist, or it cannot be read.
    """
    return open_dataset(options.dataset, Path(options.data_dir), options.split)


def _line(dataset: Dataset, entry: IndexEntry) -> str:
    """Return the record's line, adding its id and answer letter if these depend on the file."""
    line = dataset.line(entry)
    record = json.loads(line)
    said = {"id": entry.id} if id_field(record) is None else {}
    if dataset.counting and "cop" in record:
        said["answer_idx"] = dataset.load(entry).gold
    return json.dumps(said | record | said, ensure_ascii=False) + "\n" if said else line


def _is_stream(path: Path) -> bool:
    """Return whether a path is a pipe or a device, such as `/dev/stdout`."""
    return path.exists() and not (path.is_file() or path.is_dir())


def _lines(
    dataset: Dataset, entries: Sequence[IndexEntry], folder: Path, *, copies: bool = True
) -> bytes:
    """Return the records of questions as they are written to a file in a folder.

    Args:
        dataset: Data set of the questions.
        entries: Questions that are written.
        folder: Folder of the file.
        copies: Whether pictures of a Parquet file are written to this folder.

    Raises:
        ConfigError: A picture cannot be read or written.
    """
    lines = (with_copies(_line(dataset, entry), dataset, folder, write=copies) for entry in entries)
    return "".join(lines).encode()


def _write_questions(dataset: Dataset, entries: Sequence[IndexEntry], path: Path) -> None:
    """Write selected questions of a data set to a file of the same form, and print their number.

    Their pictures are copied to its folder, so that paths remain valid.

    Raises:
        ConfigError: The file cannot be written.
    """
    folder = path.parent
    with writing(path, ConfigError):
        folder.mkdir(parents=True, exist_ok=True)
        copied = copy_pictures(dataset, entries, folder)
        content = _lines(dataset, entries, folder)
        if _is_stream(path):
            path.write_bytes(content)
        else:
            replace_file(path.resolve(), content)  # a link stays, and its file is replaced
    files = f", with {counted(copied, 'file')} of pictures" if copied else ""
    print_result(f"{path}: {counted(len(entries), 'question')}{files}")
