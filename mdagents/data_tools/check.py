"""Checks the questions of a data set for problems, line by line."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from mdagents.datasets.dataset import file_counting, find_dataset, read_question
from mdagents.datasets.exemplars import find_train_file
from mdagents.datasets.listed_options import lists_by_letter
from mdagents.datasets.medmcqa import Counting
from mdagents.datasets.near_duplicates import fingerprint
from mdagents.datasets.option_places import speaking_of_places
from mdagents.datasets.pictures.detection import mentioned_picture
from mdagents.datasets.questions import SourceQuestion
from mdagents.datasets.record_lines import place, read_lines
from mdagents.settings import data_dir
from mdagents_llm.errors import ConfigError
from mdagents_llm.terminal.command_line import Parser
from mdagents_llm.terminal.printing import fails_in_one_line, print_result
from mdagents_llm.text import counted

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
    PLACES = "reference to places"
    """An option is like "All of the above", or the question lists the options by letter: they are
    not shuffled."""
    PICTURE = "picture"
    """The question has a picture that is not there or cannot be sent."""
    SAME_PICTURE = "same picture twice"
    """The question shows one picture twice."""
    LEAK = "caption with the answer"
    """The caption of a picture contains the text of the right option."""
    ANNOTATION = "burnt-in annotation"
    """The DICOM header says that text, perhaps a patient's name, is part of the picture."""
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
    pictures: int = 0
    """Number of different pictures in the file."""
    shared: int = 0
    """Number of pictures that several questions show."""

    def summary(self) -> str:
        """Return a one-line count of questions, findings by kind, and findings on right options."""
        kinds = Counter(finding.kind for finding in self.findings)
        right = Counter(finding.kind for finding in self.findings if finding.about_right)
        counts = ", ".join(
            f"{count} {kind}" + (f" ({right[kind]} right)" if right[kind] else "")
            for kind, count in kinds.most_common()
        )
        counting = f"; {self.counting}" if self.counting else ""
        shared = f" ({self.shared} in several questions)" if self.shared else ""
        pictures = f" with {counted(self.pictures, 'picture')}{shared}" if self.pictures else ""
        found = counts or "nothing"
        return (
            f"{self.path}: {counted(self.questions, 'question')}{pictures}, found {found}{counting}"
        )


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
    pictures = _Pictures()
    count = 0
    for line, question in _questions(path, counting, findings):
        count += 1
        own = fingerprint(question.text)
        remarks = [*_about_options(question), *_about_text(question), *pictures.about(question)]
        if (first := line_of_id.setdefault(question.id, line)) != line:
            remarks.append((Kind.DUPLICATE, f"the id of line {first} again", False))
        first, before = seen.setdefault(own, (line, question))
        if first != line:
            remarks.append((Kind.DUPLICATE, f"{_likeness(before, question)} line {first}", False))
        if own in exemplars:
            remarks.append((Kind.OVERLAP, f"the question of {train}:{exemplars[own]}", False))
        findings += [Finding(str(path), line, question.id, *remark) for remark in remarks]
    if not count and not findings:
        raise ConfigError(f"{path} has no questions in it")
    return Checked(
        path, count, tuple(findings), counting, len(pictures.questions), pictures.shared()
    )


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
    pictured = {picture.option for picture in question.pictures}
    for letter, text in question.options.items():
        if letter not in pictured:
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
    elif lists_by_letter(question.text, question.options):
        yield Kind.PLACES, "the question lists the options by letter; their order is kept", False


def _about_text(question: SourceQuestion) -> Iterator[_Remark]:
    if question.missing_picture:
        yield Kind.PICTURE, f"{question.missing_picture}; runs refuse it", False
    elif not question.pictures and (words := mentioned_picture(question.text)):
        yield Kind.MISSING_FIGURE, f"'{_short(words)}'", False


class _Pictures:
    """Decodes every picture of a file once, and counts in how many questions it occurs."""

    def __init__(self) -> None:
        self.questions: Counter[str] = Counter()
        """SHA-256 of a picture -> number of questions that show it."""
        self._problems: dict[str, tuple[Kind, str] | None] = {}

    def shared(self) -> int:
        """Return the number of pictures that several questions show."""
        return sum(count > 1 for count in self.questions.values())

    def about(self, question: SourceQuestion) -> Iterator[_Remark]:
        """Yield the problems of the pictures of a question."""
        seen = set[str]()
        for picture in question.pictures:
            of_option = f" of option {picture.option}" if picture.option else ""
            is_right = picture.option != "" and picture.option == question.gold
            try:
                content = picture.read()
            except ConfigError as error:
                yield Kind.PICTURE, f"{error}; runs refuse it", is_right
                continue
            sha256 = hashlib.sha256(content).hexdigest()
            if sha256 not in self._problems:
                self._problems[sha256] = _problem(content, picture.place)
            if problem := self._problems[sha256]:
                yield *problem, is_right
            if sha256 in seen:
                yield Kind.SAME_PICTURE, f"{picture.place}{of_option}", is_right
            seen.add(sha256)
            if _names_only(question.gold, question.options, picture.caption):
                yield Kind.LEAK, f"'{_short(picture.caption)}'", True
        self.questions.update(seen)


def _names_only(letter: str, options: Mapping[str, str], caption: str) -> bool:
    """Return whether a caption contains the text of one option, and of no other."""
    words = f" {_words(caption)} "
    named = [one for one, text in options.items() if (w := _words(text)) and f" {w} " in words]
    return named == [letter]


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _problem(content: bytes, where: str) -> tuple[Kind, str] | None:
    """Return what is wrong with a picture, which is decoded in full; None if nothing is."""
    from mdagents.datasets.pictures.decoding import MOST_PIXELS, decode, open_picture
    from mdagents.datasets.pictures.dicom import DicomPicture

    try:
        opened = open_picture(content, where)
        decode(opened, where, MOST_PIXELS)
    except ConfigError as error:
        return Kind.PICTURE, f"{error}; runs refuse it"
    if isinstance(opened, DicomPicture) and opened.is_annotated:
        return Kind.ANNOTATION, where
    return None


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"


_NOT_AVAILABLE = re.compile(
    r"n\s*[/.]\s*a\.?|nan|null|not applicable|[-–—.?]+"
    r"|#(?:name\?|(?:ref|value|num|null|div/0|spill|calc)!)",  # errors of Excel
    re.IGNORECASE,
)


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
            | ({"pictures": f.pictures, "shared_pictures": f.shared} if f.pictures else {})
            for f in checked
        ],
        "counts": Counter(finding.kind.value for finding in findings),
        "findings": [asdict(finding) for finding in findings],
    }


def _parser(program: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=program,
        description="Checks the questions of a data set for errors: " + ", ".join(Kind) + ".",
        epilog="Exit status: 0 nothing found, 1 findings, 2 usage error.",
    )
    add = parser.add_argument
    add("names", nargs="+", metavar="FILE_OR_NAME", help="a file, or a name, as for a run")
    add("--split", metavar="NAME", default="test", help="as for a run")
    add("--data-dir", metavar="DIR", default=data_dir(), help="as for a run")
    add("--train", metavar="FILE", type=Path, help="exemplars [train.jsonl beside the file]")
    add("--json", action="store_true", help="print one JSON object and nothing else")
    add("--warn-only", action="store_true", help="exit with 0 whatever was found")
    return parser
