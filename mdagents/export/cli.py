"""Command line program that exports runs: a log of Inspect, a card, or to experiment trackers."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from mdagents.export import LogFormat, export_run
from mdagents.export.card_text import write_card
from mdagents.export.tracked import track_run
from mdagents.records.own_files import refuse_run, refuse_to_replace
from mdagents_llm.config import read_variables
from mdagents_llm.errors import ConfigError
from mdagents_llm.extras import needs_extra
from mdagents_llm.terminal.command_line import Parser
from mdagents_llm.terminal.printing import fails_in_one_line, print_result

_KINDS = {
    LogFormat.JSON: "JSON (--format eval writes an archive)",
    LogFormat.EVAL: "an archive",
}


@fails_in_one_line
def main(argv: Sequence[str], *, program: str = "mdagents export") -> int:
    """Export a run.

    Args:
        argv: Command line without the program's name.
        program: Name under which the user called the program.

    Returns:
        Exit status: 0, 1 if the file cannot be written, 2 for a usage error or a damaged file.
    """
    options = _parser(program).parse_args(argv)
    paths = list(map(Path, options.run))
    if options.mlflow is not None or options.wandb is not None:
        return _track(options, paths)
    if options.experiment or options.study:
        raise ConfigError("--experiment and --study belong to --mlflow or --wandb")
    if len(paths) > 1:
        raise ConfigError(
            "a log of Inspect, or a card, is of one run; several belong to --mlflow or --wandb"
        )
    output = Path(options.output) if options.output else None
    if output is not None:
        refuse_to_replace(output, paths[0])
    if options.json and not options.card:
        raise ConfigError("--json needs --card; a log of Inspect is JSON anyway")
    if options.card and options.format:
        raise ConfigError("--format is that of a log; leave it out with --card")
    if options.card:
        ending = ".json" if options.json else ".md"
        if output is not None and output.suffix != ending:
            raise ConfigError(f"--output {output}: the name of this card must end in {ending}")
        card = write_card(paths[0], output, as_json=options.json)
        print_result(str(card))
        return 0
    log_format = LogFormat(options.format or LogFormat.JSON)
    if output is not None and output.suffix != f".{log_format}":
        raise ConfigError(
            f"--output {output}: the log is {_KINDS[log_format]}, so its name must end in "
            f".{log_format}"
        )
    print_result(str(export_run(paths[0], output, log_format)))
    return 0


def _track(options: argparse.Namespace, paths: Sequence[Path]) -> int:
    """Write runs to MLflow, or for Weights & Biases.

    Raises:
        ConfigError: A flag or a run is wrong, no server is named, or the tracker is not installed.
        StorageError: The tracker cannot be written to.
    """
    if options.mlflow is not None and options.wandb is not None:
        raise ConfigError("--mlflow and --wandb are two trackers; give one of them")
    if options.card or options.json or options.output or options.format:
        raise ConfigError(
            "--card, --json, --format and --output make a file of one run; leave them out"
        )
    if options.wandb:
        refuse_run("--wandb", Path(options.wandb))
    runs = list(map(track_run, paths))
    if options.wandb is not None:
        with needs_extra("wandb", "--wandb"):
            from mdagents.export.wandb_run import PROJECT, write_offline

            project = options.experiment or PROJECT
            places = write_offline(runs, Path(options.wandb or "."), project, options.study)
        for place in places:
            print_result(f"written: {place} (wandb sync uploads it)")
        return 0
    uri = options.mlflow or read_variables().get("MLFLOW_TRACKING_URI", "")
    if not uri:
        raise ConfigError("--mlflow needs the address of a server, or MLFLOW_TRACKING_URI")
    with needs_extra("mlflow", "--mlflow"):
        from mdagents.export.mlflow_run import EXPERIMENT, write_runs

        written = write_runs(runs, uri, options.experiment or EXPERIMENT, options.study)
    for run, id_ in zip(runs, written, strict=True):
        print_result(f"{run.name}: run {id_}")
    return 0


def _parser(program: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=program,
        description="Writes a run as a log of Inspect (inspect.aisi.org.uk) for `inspect view`, or "
        "as a card for reviewers; or writes runs to an experiment tracker.",
        epilog="Exit status: 0 written, 1 cannot be written, 2 usage error or a damaged file.",
    )
    add = parser.add_argument
    add("run", metavar="RUN", nargs="+", help="folder of a run, or its JSON array")
    add("--card", action="store_true", help="write the card of the run, as Markdown")
    add("--json", action="store_true", help="with --card: write JSON instead")
    add(
        "--mlflow",
        metavar="URI",
        nargs="?",
        const="",
        help="write runs to an MLflow tracking server [MLFLOW_TRACKING_URI]; again: update them",
    )
    add(
        "--wandb",
        metavar="DIR",
        nargs="?",
        const="",
        help="write runs in the offline form of Weights & Biases [the working directory]",
    )
    add("--experiment", metavar="NAME", default="",
        help="experiment of --mlflow, project of --wandb [mdagents]")  # fmt: skip
    add("--study", metavar="NAME", default="",
        help="run above these in MLflow, group in Weights & Biases")  # fmt: skip
    add(
        "--format",
        choices=[each.value for each in LogFormat],
        help="format of the log: JSON, or an archive as Inspect itself writes; Inspect Scout finds "
        "archives alone [json]",
    )
    add(
        "--output",
        metavar="FILE",
        help="a .json or .eval file; `inspect view` lists a .json file only if its name begins "
        "with a time; a .md file for a card [in the run's folder: TIME_DATASET_ID.json, card.md "
        "or card.json]",
    )
    return parser
