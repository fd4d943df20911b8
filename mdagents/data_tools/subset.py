"""Extracts questions from a data set by id."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from mdagents.datasets.dataset import Dataset, IndexEntry, no_question, open_dataset
from mdagents.datasets.question_records import ID_FIELDS
from mdagents_llm.errors import ConfigError
from mdagents_llm.terminal.command_line import Parser
from mdagents_llm.terminal.printing import fails_in_one_line, print_result


@fails_in_one_line
def main(argv: Sequence[str], *, program: str = "mdagents data extract") -> int:
    """Write the questions with the given ids to a file, or print them.

    Args:
        argv: Command-line arguments without the program's name.
        program: Program name as the user invoked it.

    Returns:
        The exit status.
    """
    parser = data_parser(program, "Picks questions out of a data set by id.")
    parser.add_argument("ids", nargs="+", metavar="ID", help="question ids, as in a run's records")
    parser.add_argument("--output", metavar="FILE", help="JSONL file to write [standard output]")
    options = parser.parse_args(argv)

    dataset = open_named(options)
    by_id = {entry.id: entry for entry in dataset.index}
    missing = [id_ for id_ in options.ids if id_ not in by_id]
    if missing:
        raise ConfigError(no_question(dataset, missing))
    entries = [by_id[id_] for id_ in dict.fromkeys(options.ids)]
    if options.output:
        write_questions(dataset, entries, Path(options.output))
    else:
        print_result("".join(_line(dataset, entry) for entry in entries).rstrip("\n"))
    return 0


def data_parser(program: str, description: str) -> argparse.ArgumentParser:
    """Return an argument parser with the flags that select a data set."""
    parser = Parser(prog=program, description=description)
    parser.add_argument("--dataset", metavar="NAME", default="medqa", help="as for a run")
    parser.add_argument("--split", metavar="NAME", default="test", help="as for a run")
    parser.add_argument("--data-dir", metavar="DIR", default="data", help="as for a run")
    return parser


def open_named(options: argparse.Namespace) -> Dataset:
    """Open the data set selected by the flags of `data_parser`.

    Raises:
        ConfigError: The data set does not exist, or it cannot be read.
    """
    return open_dataset(options.dataset, Path(options.data_dir), options.split)


def _line(dataset: Dataset, entry: IndexEntry) -> str:
    """Return the record's line, adding its id and answer letter if these depend on the file."""
    line = dataset.line(entry)
    record = json.loads(line)
    said = {} if any(record.get(field) is not None for field in ID_FIELDS) else {"id": entry.id}
    if dataset.counting and "cop" in record:
        said["answer_idx"] = dataset.load(entry).gold
    return json.dumps(said | record | said, ensure_ascii=False) + "\n" if said else line


def write_questions(dataset: Dataset, entries: Sequence[IndexEntry], path: Path) -> None:
    """Write selected questions of a data set to a file of the same form, and print their number.

    Raises:
        ConfigError: The file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(_line(dataset, entry) for entry in entries), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error
    print_result(f"{path}: {len(entries)} questions")
