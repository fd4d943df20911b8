"""Splits a data set by the difficulty to which a run routed its questions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mdagents.data_tools.subset import data_parser, open_named, write_questions
from mdagents.datasets.dataset import is_shipped
from mdagents.scoring.rows import newest_output, read_output
from mdagents.settings import RoutedBy
from mdagents_llm.errors import ConfigError
from mdagents_llm.terminal.command_line import flags_in
from mdagents_llm.terminal.printing import fails_in_one_line


@fails_in_one_line
def main(argv: Sequence[str], *, program: str = "mdagents data split") -> int:
    """Write the questions of a run to one file for each level to which they were routed.

    Args:
        argv: Command-line arguments without the program's name.
        program: Program name as the user invoked it.

    Returns:
        The exit status.
    """
    parser = data_parser(program, "Splits a data set by the difficulty a run routed to.")
    parser.add_argument("--input", metavar="PATH", help="JSON array or folder of the run [newest]")
    parser.add_argument("--output-dir", metavar="DIR", default="output", help="where runs are")
    parser.add_argument("--to", metavar="DIR", help="where the parts go [beside the data set]")
    options = parser.parse_args(argv)
    if options.input and "--output-dir" in flags_in(argv):
        raise ConfigError(
            "--output-dir is where the newest run is looked for; with --input leave it out "
            "(--to says where the parts go)"
        )

    run = Path(options.input) if options.input else newest_output(Path(options.output_dir))
    dataset = open_named(options)
    rated = [row for row in read_output(run).rows if row.routed_by != RoutedBy.FORCED]
    if not rated:
        raise ConfigError(f"no router rated a question of {run}; give an adaptive run")
    level_of = {row.question_id: row.difficulty for row in rated if row.difficulty}
    if not level_of:
        raise ConfigError(f"no question of {run} has a level; give an adaptive run")
    known = {entry.id for entry in dataset.index}
    missing = [id_ for id_ in level_of if id_ not in known]
    if missing:
        raise ConfigError(
            f"{run} has {len(missing)} questions that are not in {dataset.path} "
            f"(the first: {missing[0]}); give the --dataset of that run"
        )
    beside = (
        Path(options.data_dir) / options.dataset if is_shipped(dataset) else dataset.path.parent
    )
    folder = Path(options.to) if options.to else beside
    for level in sorted(set(level_of.values())):
        entries = [entry for entry in dataset.index if level_of.get(entry.id) == level]
        write_questions(dataset, entries, folder / f"{dataset.path.stem}_{level}.jsonl")
    return 0
