"""Command line program that scores runs, compares them, or evaluates policies over them."""

from __future__ import annotations

import argparse
import gc
import hashlib
import io
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mdagents.records.jsonl import MALFORMED
from mdagents.records.own_files import refuse_run, refuse_to_replace
from mdagents.scoring.breakdown_text import write_breakdown_csv
from mdagents.scoring.csv_file import write_csv
from mdagents.scoring.fields import plain
from mdagents.scoring.formatting import json_chunks, json_text
from mdagents.scoring.report import make_report
from mdagents.scoring.report_text import report_parts
from mdagents.scoring.result_file import open_result
from mdagents.scoring.results import print_parts
from mdagents.scoring.rows import (
    Repeated,
    RunOutput,
    newest_output,
    nothing_finished,
    read_output,
    run_folder,
)
from mdagents.settings import output_dir
from mdagents_llm.errors import ConfigError
from mdagents_llm.extras import check_installed, needs_extra
from mdagents_llm.files.json_text import parse_json
from mdagents_llm.files.regular_file import read_regular
from mdagents_llm.terminal.command_line import Parser, flags_in
from mdagents_llm.terminal.printing import fails_in_one_line, print_result
from mdagents_llm.text import counted

if TYPE_CHECKING:
    from mdagents.pages.report_summary import Head
    from mdagents.scoring.what_if import WhatIf

_HOW_TO_GET_A_PAGE = "--html also writes a page with charts and the transcript of each question"
_LONGEST_STEM = 150  # characters; with folder and suffix, far below the limits of file systems


@fails_in_one_line
def main(
    argv: Sequence[str],
    *,
    input_filename: str = "",
    output_filename: str = "",
    program: str = "python evaluate_text_output.py",
) -> int:
    """Score runs, compare them, or evaluate policies over them.

    Args:
        argv: Command line without the program's name.
        input_filename: Input if the command line names none; empty uses the newest run.
        output_filename: CSV file if the command line names none; empty names it after the input.
        program: Name under which the user called the program.

    Returns:
        Exit status: 0, or 2 for a usage error.
    """
    # Records are not garbage: searching them often takes a tenth of the time. Pages leave some.
    gc.set_threshold(50_000, 20, 20)
    options = _parsed(argv, program)
    if options.output and Path(options.output).suffix == ".html":
        raise ConfigError(
            f"--output {options.output} names the CSV, or the JSON of --compare or --what-if; the "
            "page of --html goes beside it"
        )
    for flag in ("html", "figures", "latex"):
        if getattr(options, flag):
            with needs_extra("report", f"--{flag}"):
                check_installed("jinja2", "matplotlib")
    typed = flags_in(argv)
    if "--output-dir" in typed and _names_runs(options):
        raise ConfigError(
            "--output-dir is where the newest run is looked for, and these runs are named; leave "
            "it out (--evaluation-dir says where the scores go)"
        )
    if "--evaluation-dir" in typed and options.output:
        raise ConfigError("--output names the file itself; leave --evaluation-dir out")
    if options.group_by and (options.compare or options.what_if or options.audit):
        raise ConfigError("--group-by belongs to --input; leave --compare, --what-if, --audit out")
    if options.details and not options.compare:
        raise ConfigError("--details belongs to --compare")
    asked = [flag for flag in ("compare", "what_if", "audit") if getattr(options, flag) is not None]
    if len(asked) > 1:
        flags = " and ".join(f"--{flag.replace('_', '-')}" for flag in asked)
        raise ConfigError(f"{flags} cannot be combined; give one of them")
    if options.json and options.audit is None:
        raise ConfigError("--json belongs to --audit; other scores are written as JSON files")
    if options.compare is not None:
        _score_together("--compare", options.compare, options)
    elif options.what_if is not None:
        _score_together("--what-if", options.what_if, options)
    elif options.audit is not None:
        _audit(options)
    elif options.common:
        raise ConfigError("--common belongs to --compare, --what-if or --audit")
    else:
        _score_all(options, input_filename, output_filename)
    return 0


def _parsed(argv: Sequence[str], program: str) -> argparse.Namespace:
    """Parse a command line; runs without a flag are those of --input."""
    options = make_parser(program).parse_args(argv)
    if options.runs:
        if _names_runs(options):
            raise ConfigError(
                f"'{options.runs[0]}' is not the value of a flag; put the flag before it"
            )
        options.input = options.runs
    return options


def make_parser(program: str) -> argparse.ArgumentParser:
    """Make the parser of the command line.

    Args:
        program: Name under which the user called the program.
    """
    parser = Parser(
        prog=program,
        description="Scores runs from their files alone: no network, no key.",
    )
    parser.add_argument("runs", nargs="*", metavar="RUN", help="alias for --input RUN")
    parser.add_argument(
        "--input", nargs="+", metavar="RUN", help="result files or run folders [the newest run]"
    )
    parser.add_argument(
        "--compare", nargs="+", metavar="RUN", help="compare two or more runs of the same questions"
    )
    parser.add_argument(
        "--what-if",
        nargs="+",
        metavar="RUN",
        help="estimate routing policies from two or more runs of the same questions: "
        "accuracy and tokens, thresholds by cross-validation",
    )
    parser.add_argument(
        "--audit",
        nargs="+",
        metavar="RUN",
        help="audit how answers changed between first opinions and decision, and why; "
        "runs with --peers are controls of the run without",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="with --audit: print one JSON object and nothing else",
    )
    parser.add_argument(
        "--common",
        action="store_true",
        help="with --compare, --what-if or --audit: use only the questions that all runs share",
    )
    parser.add_argument(
        "--repeated-ids",
        choices=[way.value for way in Repeated],
        help="if a file of another program has a question more than once: score the first record, "
        "or count all as epochs [refuse]",
    )
    parser.add_argument(
        "--group-by",
        nargs="+",
        metavar="FIELD",
        default=[],
        help="accuracy by fields of the data set, such as subject_name, by the router's level or "
        "by the experts' agreement: FIELD, level, agreement",
    )
    parser.add_argument(
        "--details",
        action="store_true",
        help="with --compare: also show the tables of all pairs of many runs",
    )
    parser.add_argument(
        "--html",
        action="store_true",
        help="also write the report, with the transcript of each question, as one HTML file",
    )
    parser.add_argument(
        "--figures",
        metavar="DIR",
        help="also write each figure as SVG, PDF and PNG, in the width of a column of a paper",
    )
    parser.add_argument(
        "--latex", metavar="FILE", help="also write the tables as LaTeX (package booktabs)"
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="CSV file, or JSON file of --compare, --what-if or --audit [evaluation/{run}.csv]",
    )
    parser.add_argument(
        "--output-dir", metavar="DIR", default=output_dir(), help="folder of the runs [%(default)s]"
    )
    parser.add_argument(
        "--evaluation-dir",
        metavar="DIR",
        default="evaluation",
        help="folder for the scores [%(default)s]",
    )
    return parser


def _score_all(options: argparse.Namespace, input_filename: str, output_filename: str) -> None:
    inputs = [Path(name) for name in options.input or filter(None, [input_filename])]
    inputs = inputs or [newest_output(Path(options.output_dir))]
    output = options.output or output_filename
    if output and len(inputs) > 1:
        raise ConfigError("--output names one file; leave it out to score several runs")
    if options.latex and len(inputs) > 1:
        raise ConfigError("--latex names one file; leave it out to score several runs")
    runs = [_read(path, options) for path in inputs]
    names = Counter(run.name for run in runs)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise ConfigError(
            f"two inputs are called {twice[0]} and would share one CSV; score each "
            "alone, with --output"
        )
    _spare(inputs, output, options)
    for run in runs:
        path = Path(output) if output else Path(options.evaluation_dir) / f"{run.name}.csv"
        if not output:
            _keep_other(path.with_suffix(".summary.json"), (".csv", ".groups.csv", ".html"), [run])
        _score(run, path, options)
    if not options.html:
        print_result(_HOW_TO_GET_A_PAGE)


def _spare(inputs: Sequence[Path], output: str | None, options: argparse.Namespace) -> None:
    """Refuse outputs that would replace an input or a file of a run, or go into another run."""
    for name in filter(None, (output, options.latex)):
        refuse_to_replace(Path(name), *inputs)
    folders = list(map(run_folder, inputs))
    if options.figures:
        refuse_run("--figures", Path(options.figures), *folders)
    refuse_run("--evaluation-dir", Path(options.evaluation_dir), *folders)


def _read(path: Path, options: argparse.Namespace) -> RunOutput:
    run = read_output(path, Repeated(options.repeated_ids) if options.repeated_ids else None)
    if not run.rows:
        raise nothing_finished(run, run.path)
    return run


def _score(run: RunOutput, csv_path: Path, options: argparse.Namespace) -> None:
    report = make_report(run, options.group_by)
    summary, page = csv_path.with_suffix(".summary.json"), csv_path.with_suffix(".html")
    groups = csv_path.with_suffix(".groups.csv")
    print_result(f"{run.name}:")
    parts = report_parts(report)
    # A run reports EXAID's use in more detail at its end.
    if tokens := report.overall.exaid_tokens_per_question:
        parts.append(
            f"EXAID: {tokens:,.0f} more tokens per question, not included in tokens/question"
        )
    print_parts(parts)
    with _writing(csv_path, "--output" if options.output else "--evaluation-dir"):
        with csv_path.open("w", encoding="utf-8", newline="") as file:
            write_csv(file, run.rows)
        _write_json(report.as_dict(), summary, [run])
    print_result(f"written: {csv_path}\nwritten: {summary}")
    if report.breakdowns:
        table = io.StringIO(newline="")
        write_breakdown_csv(table, report.breakdowns)
        # Excel reads UTF-8 only after a byte order mark; without need, it would confuse programs.
        encoding = "utf-8" if table.getvalue().isascii() else "utf-8-sig"
        with _writing(groups):
            groups.write_text(table.getvalue(), encoding, newline="")
        print_result(f"written: {groups}")
    if _wants_pages(options):
        # Imported here: figures take a second to load, and only pages need them.
        from mdagents.pages.report_summary import head_of_run

        _write_pages(page, head_of_run(report, run), [run], options)


def _wants_pages(options: argparse.Namespace) -> bool:
    return bool(options.html or options.figures or options.latex)


def _write_pages(
    page: Path, head: Head, runs: Sequence[RunOutput], options: argparse.Namespace
) -> None:
    """Write the page, the figures and the LaTeX tables that the options name."""
    from mdagents.pages.export import text_without_font, write_figures, write_latex
    from mdagents.pages.report import write_page

    if options.html:
        with _writing(page):
            write_page(page, head, runs)
        print_result(f"written: {page}")
    if options.figures:
        folder = Path(options.figures)
        with _writing(folder, "--figures"):
            count = write_figures(folder, page.stem, head)
        print_result(f"written: {counted(count, 'file')} in {folder}")
    if (options.html or options.figures) and (text := text_without_font(head)):
        print_result(f"NOTE: PDF and PNG of figures show boxes: no font of this machine has {text}")
    if options.latex:
        path = Path(options.latex)
        with _writing(path, "--latex"):
            write_latex(path, head)
        print_result(f"written: {path}")


@contextmanager
def _writing(path: Path, flag: str = "--output") -> Iterator[None]:
    """Make the folder of `path`, and turn write errors within the context into a `ConfigError`.

    Raises:
        ConfigError: A file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}; see {flag}") from error


def _score_together(flag: str, names: Sequence[str], options: argparse.Namespace) -> None:
    """Compare runs, or evaluate policies over them; write JSON and, with --html, the page.

    Args:
        flag: `--compare` or `--what-if`.
        names: Runs that the flag names.
        options: Parsed command line.

    Raises:
        ConfigError: The flag names fewer than two runs or one run twice, --input is given, the
            runs do not hold the same questions, or a file cannot be written.
    """
    if options.input:
        raise ConfigError(f"{flag} names the runs itself; leave --input out")
    if len(names) < 2:
        open_result(Path(names[0]))  # a pattern that matches no file is one name
        raise ConfigError(f"{flag} needs two runs or more")
    _spare([Path(name) for name in names], options.output, options)
    runs = [_read(Path(name), options) for name in names]
    _refuse_twice(flag, names, map(_place, runs))
    # Imported here: numpy takes a moment to load, and only several runs need it.
    from mdagents.scoring.comparison import Comparison, compare
    from mdagents.scoring.comparison_text import comparison_parts, is_shortened
    from mdagents.scoring.what_if import what_if
    from mdagents.scoring.what_if_text import what_if_parts

    figures: Comparison | WhatIf
    if flag == "--compare":
        figures = compare(runs, common=options.common)
        print_parts(comparison_parts(figures, in_detail=options.details))
        if is_shortened(figures) and not options.details:
            print_result("--details also shows the tables of all pairs")
    else:
        figures = what_if(runs, common=options.common)
        print_parts(what_if_parts(figures))
    stem = _stem(flag.strip("-").replace("-", "_"), runs)
    path = _write_result(figures.as_dict(), stem, runs, options)
    if not options.html:
        print_result(_HOW_TO_GET_A_PAGE)
    if not _wants_pages(options):
        return
    from mdagents.pages.report_summary import head_of_comparison, head_of_what_if
    from mdagents.scoring.items import shared_rows

    shared = shared_rows(runs, common=options.common)
    runs = [replace(run, rows=tuple(rows)) for run, rows in zip(runs, shared, strict=True)]
    head = (
        head_of_comparison(figures, runs)
        if isinstance(figures, Comparison)
        else head_of_what_if(figures, runs)
    )
    _write_pages(path.with_suffix(".html"), head, runs, options)


def _names_runs(options: argparse.Namespace) -> bool:
    return bool(options.input or options.compare or options.what_if or options.audit)


def _audit(options: argparse.Namespace) -> None:
    """Audit runs, with their controls; write JSON for each, and the page with --html.

    Args:
        options: Parsed command line.

    Raises:
        ConfigError: --input is given, a run is named twice, controls have no run to be compared
            with, or a file cannot be written.
    """
    if options.input:
        raise ConfigError("--audit names the runs itself; leave --input out")
    _spare([Path(name) for name in options.audit], options.output, options)
    runs = [_read(Path(name), options) for name in options.audit]
    _refuse_twice("--audit", options.audit, (run.folder.resolve() for run in runs))
    # Imported here: numpy takes a moment to load.
    from mdagents.scoring.audit.audit import audit_with_controls
    from mdagents.scoring.audit.controls import split_controls
    from mdagents.scoring.audit.text import audit_parts

    full, controls = split_controls(runs)
    if options.output and len(full) > 1:
        raise ConfigError("--output names one file; leave it out to audit several runs")
    audits = [audit_with_controls(run, controls, common=options.common) for run in full]
    if options.json:
        contents = [audit.as_dict() for audit in audits]
        print_result(json_text(contents[0] if len(contents) == 1 else {"audits": contents}))
        return
    for audit, run in zip(audits, full, strict=True):
        print_result(f"{audit.run}:")
        print_parts(audit_parts(audit))
        path = _write_result(audit.as_dict(), f"audit_{audit.run}", [run], options)
        if _wants_pages(options):
            from mdagents.pages.audit import head_of_audit

            _write_pages(path.with_suffix(".html"), head_of_audit(audit, run), [run], options)
    if not _wants_pages(options):
        print_result(_HOW_TO_GET_A_PAGE)


def _stem(what: str, runs: Sequence[RunOutput]) -> str:
    parts = [run.name for run in runs]
    if len(set(parts)) < len(parts):  # files of one name in several folders
        parts = [f"{run.path.resolve().parent.name}-{run.name}" for run in runs]
    names = "_vs_".join(parts)
    if len(names) <= _LONGEST_STEM:
        return f"{what}_{names}"
    return f"{what}_{len(runs)}runs_{hashlib.sha256(os.fsencode(names)).hexdigest()[:8]}"


def _refuse_twice(flag: str, names: Sequence[str], places: Iterable[Path]) -> None:
    """Raise a ConfigError if two names are of the same run."""
    earlier: dict[Path, str] = {}
    for name, place in zip(names, places, strict=True):
        if place in earlier:
            raise ConfigError(f"{flag} names the same run twice: as {earlier[place]} and as {name}")
        earlier[place] = name


def _place(run: RunOutput) -> Path:
    """Return the path that tells a run from others: of its folder, or of its file without one."""
    return (run.folder if run.folder.is_dir() else run.path).resolve()


def _inputs(runs: Sequence[RunOutput], folder: Path) -> list[str]:
    """Return the places of runs, relative to the folder of their scores where that is possible."""
    places = [str(_place(run)) for run in runs]
    with suppress(ValueError):  # on another drive of Windows
        places = [os.path.relpath(place, folder.resolve()) for place in places]
    return list(map(plain, places))


def _write_result(
    content: dict[str, object], stem: str, runs: Sequence[RunOutput], options: argparse.Namespace
) -> Path:
    """Write a result as JSON to --output, or under a name in --evaluation-dir; return its path."""
    path = Path(options.output or Path(options.evaluation_dir) / f"{stem}.json")
    if not options.output:
        _keep_other(path, (".html",), runs)
    with _writing(path):
        _write_json(content, path, runs)
    print_result(f"written: {path}")
    return path


def _write_json(content: dict[str, object], path: Path, runs: Sequence[RunOutput]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json_chunks({**content, "inputs": _inputs(runs, path.parent)}))
        file.write("\n")


def _keep_other(path: Path, endings: Sequence[str], runs: Sequence[RunOutput]) -> None:
    """Rename an earlier result of the same name if it is of other runs.

    Args:
        path: JSON file of the result.
        endings: Endings of its other files.
        runs: Runs whose result is written next.

    Raises:
        ConfigError: A file cannot be renamed.
    """
    try:
        content = read_regular(path)
    except OSError:  # there is none
        return
    try:
        inputs = parse_json(content)["inputs"]
    except MALFORMED:  # of a version that did not write them, or damaged
        inputs = content
    if inputs == _inputs(runs, path.parent):
        return
    stem = path.name.removesuffix(".json").removesuffix(".summary")
    digest = hashlib.sha256(repr(inputs).encode()).hexdigest()[:8]
    kept = path.with_name(f"{stem}.{digest}")
    with _writing(path, "--evaluation-dir"):
        for ending in (path.name.removeprefix(stem), *endings):
            with suppress(FileNotFoundError):
                path.with_name(stem + ending).replace(kept.with_name(kept.name + ending))
    print_result(
        f"NOTE: an earlier result of this name, of another input or version, was kept as {kept}.*"
    )
