"""Checks the questions of a data set for problems, line by line."""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from mdagents.datasets.dataset import file_counting, find_dataset, read_question
from mdagents.datasets.exemplars import find_train_file
from mdagents.datasets.medmcqa import Counting
from mdagents.datasets.near_duplicates import fingerprint
from mdagents.datasets.option_places import speaking_of_places
from mdagents.datasets.pictures import mentioned_picture
from mdagents.datasets.questions import SourceQuestion
from mdagents.datasets.record_lines import place, read_lines
from mdagents_llm.errors import ConfigError
from mdagents_llm.terminal.command_line import Parser
from mdagents_llm.terminal.printing import fails_in_one_line, print_result

CLEAN, FINDINGS = 0, 1
"""Exit statuses: no findings, and at least one finding."""


class Kind(StrEnum):
    """Kinds of problems that a question can have."""

    UNUSABLE = "unusable"
    """The record cannot be used by any run."""
    DUPLICATE = "duplicate"
    """The text or the id occurred earlier in the file."""
    IDENTICAL_OPTIONS = "identical options"
    NOT_AVAILABLE = "n/a option"
    """An option is a placeholder such as "n/a"."""
    PLACES = "speaks of places"
    """An option is like "All of the above": the options of the question are not shuffled."""
    PICTURE = "picture"
    """The question has a picture, which prompts do not support."""
    MISSING_FIGURE = "missing figure"
    """The question refers to a figure, an image or a table that the text cannot contain."""
    OVERLAP = "overlap"
    """The question also occurs in the train split, the source of few-shot exemplars."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem of one question."""

    file: str
    line: int
    """Line number, from 1."""
    id: str
    """Id of the question; `?` when it cannot be read."""
    kind: Kind
    detail: str
    about_right: bool = False
    """Whether the problem concerns the right option, alone or among others."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.id} {self.kind}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Checked:
    """A checked file with its findings."""

    path: Path
    questions: int
    """Number of usable questions."""
    findings: tuple[Finding, ...]
    counting: Counting | None = None
    """Option numbering of a MedMCQA file; None for other files."""

    def summary(self) -> str:
        """Return a one-line count of questions, findings by kind, and findings on right options."""
        kinds = Counter(finding.kind for finding in self.findings)
        right = Counter(finding.kind for finding in self.findings if finding.about_right)
        counts = ", ".join(
            f"{count} {kind}" + (f" ({right[kind]} right)" if right[kind] else "")
            for kind, count in kinds.most_common()
        )
        counted = f"; {self.counting}" if self.counting else ""
        return f"{self.path}: {self.questions} questions, found {counts or 'nothing'}{counted}"


def check(path: Path, train: Path | None = None) -> Checked:
    """Check every question of a file.

    Args:
        path: Path of the file, with one record per line.
        train: Path of the split whose questions must not occur in the file; None uses the train
            split that belongs to the file, if any.

    Raises:
        ConfigError: A file cannot be read.
    """
    train = train or find_train_file(path)
    exemplars: Mapping[str, int] = {}
    if train is not None and train.resolve() != path.resolve():
        in_train = _questions(train, file_counting(train), [])
        exemplars = {fingerprint(q.text): line for line, q in in_train}
    counting = file_counting(path)
    findings: list[Finding] = []
    seen: dict[str, tuple[int, SourceQuestion]] = {}
    line_of_id: dict[str, int] = {}
    count = 0
    for line, question in _questions(path, counting, findings):
        count += 1
        own = fingerprint(question.text)
        remarks = [*_about_options(question), *_about_text(question)]
        if (first := line_of_id.setdefault(question.id, line)) != line:
            remarks.append((Kind.DUPLICATE, f"the id of line {first} again", False))
        first, before = seen.setdefault(own, (line, question))
        if first != line:
            remarks.append((Kind.DUPLICATE, f"{_likeness(before, question)} line {first}", False))
        if own in exemplars:
            remarks.append((Kind.OVERLAP, f"the question of {train}:{exemplars[own]}", False))
        findings += [Finding(str(path), line, question.id, *remark) for remark in remarks]
    return Checked(path, count, tuple(findings), counting)


def _questions(
    path: Path, counting: Counting | None, findings: list[Finding]
) -> Iterator[tuple[int, SourceQuestion]]:
    """Yield (line number, question) for each usable question; add the others to the findings."""
    for _, line, content in read_lines(path):
        if not content.strip():
            continue
        try:
            yield line, read_question(content, path, line, counting)
        except ConfigError as error:
            detail = str(error).removeprefix(place(path, line)).lstrip(": ")
            findings.append(Finding(str(path), line, "?", Kind.UNUSABLE, detail))


_Remark = tuple[Kind, str, bool]
"""Problem as (kind, detail, whether it concerns the right option)."""


def _likeness(before: SourceQuestion, question: SourceQuestion) -> str:
    options, others = ({fingerprint(o) for o in q.options.values()} for q in (question, before))
    if options != others:
        return "the question, with other options, of"
    right, other = (fingerprint(q.options[q.gold]) for q in (question, before))
    return "question and options of" if right == other else "question and options, not answer, of"


def _about_options(question: SourceQuestion) -> Iterator[_Remark]:
    letters_of = defaultdict(list)
    for letter, text in question.options.items():
        letters_of[" ".join(text.split())].append(letter)
        if _NOT_AVAILABLE.fullmatch(text.strip()):
            is_right = letter == question.gold
            right = ", which is the right one" if is_right else ""
            yield Kind.NOT_AVAILABLE, f"option {letter} is '{text.strip()}'{right}", is_right
    for letter, text in question.hidden.items():
        yield Kind.NOT_AVAILABLE, f"option {letter} is '{text.strip()}', which is not shown", False
    for text, letters in letters_of.items():
        if len(letters) > 1:
            is_right = question.gold in letters
            right = ", the right one among them" if is_right else ""
            detail = f"{' and '.join(letters)} are '{_short(text)}'{right}"
            yield Kind.IDENTICAL_OPTIONS, detail, is_right
    if speaking := speaking_of_places(question.options):
        is_right = question.gold in speaking
        said = " and ".join(f"{o} '{_short(question.options[o])}'" for o in speaking)
        right = ", the right one among them" if is_right else ""
        yield Kind.PLACES, f"option {said}{right}; their order is kept", is_right


def _about_text(question: SourceQuestion) -> Iterator[_Remark]:
    if question.missing_picture:
        yield Kind.PICTURE, f"{question.missing_picture}; runs refuse it", False
    elif words := mentioned_picture(question.text):
        yield Kind.MISSING_FIGURE, f"'{_short(words)}'", False


def _short(text: str, longest: int = 60) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


_NOT_AVAILABLE = re.compile(r"n\s*[/.]\s*a\.?|nan|null|not applicable|[-–—.?]+", re.IGNORECASE)


@fails_in_one_line
def main(argv: Sequence[str], *, program: str = "mdagents data check") -> int:
    """Check files or data sets and print the findings.

    Args:
        argv: Command-line arguments without the program's name.
        program: Program name as the user invoked it.

    Returns:
        The exit status: 0 without findings, 1 with findings, 2 for a usage error.
    """
    options = _parser(program).parse_args(argv)
    data_dir = Path(options.data_dir)
    paths = [find_dataset(name, data_dir, options.split)[1] for name in options.names]
    checked = [check(path, options.train) for path in paths]
    findings = [finding for file in checked for finding in file.findings]
    if options.json:
        print_result(
            json.dumps(_as_json(checked, findings), indent=2)
        )  # ASCII: safe on any terminal
    else:
        for line in [*findings, *(file.summary() for file in checked)]:
            print_result(str(line))
    return FINDINGS if findings and not options.warn_only else CLEAN


def _as_json(checked: Sequence[Checked], findings: Sequence[Finding]) -> dict[str, object]:
    return {
        "files": [
            {
                "path": str(f.path),
                "questions": f.questions,
                "cop_from": f.counting.first if f.counting else None,
            }
            for f in checked
        ],
        "counts": Counter(finding.kind.value for finding in findings),
        "findings": [asdict(finding) for finding in findings],
    }


def _parser(program: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=program,
        description="Looks for what is wrong with the questions of a data set: "
        + ", ".join(Kind)
        + ".",
        epilog="Exit status: 0 nothing found, 1 findings, 2 wrong use.",
    )
    add = parser.add_argument
    add("names", nargs="+", metavar="FILE_OR_NAME", help="a file, or a name, as for a run")
    add("--split", metavar="NAME", default="test", help="as for a run")
    add("--data-dir", metavar="DIR", default="data", help="as for a run")
    add("--train", metavar="FILE", type=Path, help="exemplars [train.jsonl beside the file]")
    add("--json", action="store_true", help="print one JSON object and nothing else")
    add("--warn-only", action="store_true", help="exit with 0 whatever was found")
    return parser
