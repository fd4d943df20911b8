"""`split_test_data.py` and `extract_by_question_id.py`: parts of a data set, for a closer look."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from infra.errors import ConfigError
from mdagents.datasets.dataset import Dataset, IndexEntry, open_dataset
from mdagents.datasets.question_records import ID_FIELDS
from mdagents.scoring.rows import newest_output, read_output


def split_main(argv: Sequence[str]) -> int:
    """Write the questions of a run into one file for each level they were routed to.

    Args:
        argv: The command line without the program's name.

    Returns:
        The exit status.
    """
    parser = _parser("split_test_data.py", "Splits a data set by the difficulty a run routed to.")
    parser.add_argument("--input", metavar="PATH", help="JSON array or folder of the run [newest]")
    parser.add_argument("--output-dir", metavar="DIR", default="output", help="where runs are")
    parser.add_argument("--to", metavar="DIR", help="where the parts go [beside the data set]")
    options = parser.parse_args(argv)

    def split() -> None:
        run = Path(options.input) if options.input else newest_output(Path(options.output_dir))
        dataset = _open(options)
        level_of = {row.question_id: row.difficulty for row in read_output(run).rows}
        known = {entry.id for entry in dataset.index}
        missing = [id_ for id_ in level_of if id_ not in known]
        if missing:
            raise ConfigError(
                f"{run} has {len(missing)} questions that are not in {dataset.path} "
                f"(the first: {missing[0]}); give the --dataset of that run"
            )
        folder = Path(options.to) if options.to else dataset.path.parent
        for level in sorted(set(level_of.values()) - {""}):
            entries = [entry for entry in dataset.index if level_of.get(entry.id) == level]
            _write(dataset, entries, folder / f"{dataset.path.stem}_{level}.jsonl")

    return _exit_status(split)


def extract_main(argv: Sequence[str]) -> int:
    """Write the questions with the given ids into one file, or print them.

    Args:
        argv: The command line without the program's name.

    Returns:
        The exit status.
    """
    parser = _parser("extract_by_question_id.py", "Picks questions out of a data set by id.")
    parser.add_argument("ids", nargs="+", metavar="ID", help="question ids, as in a run's records")
    parser.add_argument("--output", metavar="FILE", help="JSONL file to write [standard output]")
    options = parser.parse_args(argv)

    def extract() -> None:
        dataset = _open(options)
        by_id = {entry.id: entry for entry in dataset.index}
        missing = [id_ for id_ in options.ids if id_ not in by_id]
        if missing:
            raise ConfigError(f"{dataset.path} has no question with id {', '.join(missing)}")
        entries = [by_id[id_] for id_ in dict.fromkeys(options.ids)]
        if options.output:
            _write(dataset, entries, Path(options.output))
        else:
            sys.stdout.write("".join(_line(dataset, entry) for entry in entries))

    return _exit_status(extract)


def _parser(program: str, description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python {program}", description=description)
    parser.add_argument("--dataset", metavar="NAME", default="medqa", help="as for main.py")
    parser.add_argument("--split", metavar="NAME", default="test", help="as for main.py")
    parser.add_argument("--data-dir", metavar="DIR", default="data", help="as for main.py")
    return parser


def _open(options: argparse.Namespace) -> Dataset:
    return open_dataset(options.dataset, Path(options.data_dir), options.split)


def _line(dataset: Dataset, entry: IndexEntry) -> str:
    """The record as it is, and what only the whole file says of it: its id, how `cop` counts."""
    line = dataset.line(entry)
    record = json.loads(line)
    said = {} if any(record.get(field) is not None for field in ID_FIELDS) else {"id": entry.id}
    if dataset.counting and "cop" in record:
        said["answer_idx"] = dataset.load(entry).gold
    return json.dumps(said | record | said, ensure_ascii=False) + "\n" if said else line


def _write(dataset: Dataset, entries: Sequence[IndexEntry], path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(_line(dataset, entry) for entry in entries), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error
    print(f"{path}: {len(entries)} questions")


def _exit_status(work: Callable[[], None]) -> int:
    try:
        work()
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0
