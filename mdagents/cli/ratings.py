"""Command line program that exports the ratings of a run as CSV, or imports them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from mdagents.records.ratings import Rating, add_ratings, read_csv, read_ratings, write_csv
from mdagents.scoring.fields import entries_of, object_of, text_of
from mdagents.scoring.rows import RunOutput, read_output
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.whole_file import replace_file, writing
from mdagents_llm.terminal.command_line import Parser
from mdagents_llm.terminal.did_you_mean import did_you_mean
from mdagents_llm.terminal.printing import fails_in_one_line, print_result
from mdagents_llm.text import counted


@fails_in_one_line
def main(argv: Sequence[str], *, program: str = "python -m mdagents ratings") -> int:
    """Export or import ratings.

    Args:
        argv: Command line without the program's name.
        program: Name under which the user called the program.

    Returns:
        Exit status: 0, or 2 for a usage error.
    """
    options = make_parser(program).parse_args(argv)
    run, file = read_output(Path(options.run)), Path(options.file)
    folder = run.folder
    if not folder.is_dir():
        raise ConfigError(f"{options.run} has no folder of a run, so there are no ratings")
    if options.import_:
        ratings = read_csv(file)
        _check_items(ratings, run, file)
        known = {one.key: one for one in read_ratings(folder)}
        _refuse_other_names(ratings, known, file)
        added = [
            one for one in ratings if one.key not in known or one.is_later_than(known[one.key])
        ]
        add_ratings(folder, added)
        print_result(f"{len(added)} of {counted(len(ratings), 'rating')} added to {folder}")
        return 0
    ratings = read_ratings(folder)
    if not ratings:
        raise ConfigError(
            f"{folder} holds no ratings yet; `python -m mdagents view` has a page to rate each"
        )
    if file.exists():
        raise ConfigError(
            f"{file} exists: --import adds its ratings to the run; to write those of the run, name "
            "another file"
        )
    with writing(file, ConfigError):
        # Without a byte order mark, Excel reads another encoding, and saves other names of raters.
        replace_file(file, write_csv(ratings).encode("utf-8-sig"))
    print_result(f"written: {file} ({counted(len(ratings), 'rating')})")
    return 0


def _check_items(ratings: Sequence[Rating], run: RunOutput, file: Path) -> None:
    """Refuse ratings of what the run does not have, such as those of another run.

    Raises:
        ConfigError: A rating has an unknown case id or item; the message names it.
    """
    summaries = {
        text_of(record, "case_id"): len(entries_of(object_of(record, "exaid"), "summaries"))
        for _, record in run.records()
    }
    for rating in ratings:
        if rating.case_id not in summaries:
            raise ConfigError(
                f"{file}: case_id {rating.case_id} is no answer of {run.name}"
                f"{did_you_mean(rating.case_id, sorted(summaries))}"
            )
        made, number = summaries[rating.case_id], rating.summary
        if number > made:
            raise ConfigError(
                f"{file}: item {rating.item} of case_id {rating.case_id} is no summary of "
                f"{run.name}; this case has {counted(made, 'summary', 'summaries')}"
            )


def _refuse_other_names(
    ratings: Sequence[Rating], known: Mapping[tuple[str, str, str], Rating], file: Path
) -> None:
    """Refuse ratings that the run has from a rater of another name: both would count.

    Raises:
        ConfigError: A rating is new, and one that the run has and the file lacks differs from it in
            the name of the rater only.
    """
    in_file = {one.key for one in ratings}
    lacking = {_without_name(one): one.rater for key, one in known.items() if key not in in_file}
    for one in ratings:
        if one.key not in known and (name := lacking.get(_without_name(one))):
            raise ConfigError(
                f"{file}: {one.rater} rated {one.item} of case_id {one.case_id} at {one.at} just "
                f"as {name} did in the run; use one name for a rater, or other times for two raters"
            )


def _without_name(rating: Rating) -> Rating:
    return rating.model_copy(update={"rater": "", "at": rating.time})


def make_parser(program: str) -> argparse.ArgumentParser:
    """Make the parser of the command line.

    Args:
        program: Name under which the user called the program.
    """
    parser = Parser(
        prog=program,
        description="Writes the ratings of a run by clinicians as CSV, or adds those of a CSV.",
    )
    parser.add_argument("run", metavar="RUN", help="result file or folder of a run")
    parser.add_argument("file", metavar="FILE", help="CSV file")
    parser.add_argument(
        "--import",
        dest="import_",
        action="store_true",
        help="add the ratings in FILE to those of the run",
    )
    return parser
