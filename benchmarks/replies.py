"""Measure the accuracy of the answer parser on labeled replies, by class of reply.

    python -m benchmarks.replies [FILE …]

A file holds one JSON object per line with `text`, `options`, `expected` (a letter, or null or
"several" for no answer) and a class, in `class` or `kind`. The defaults are the test corpus and, if
present, the real replies in the shared data. Replies on which the parser disagrees with the label
are listed for inspection.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import REPOSITORY, SHARED, make_parser, show_table
from mdagents_llm.answers import ParsedAnswer, parse_answer

CORPUS = REPOSITORY / "tests" / "corpus" / "answers.jsonl"
REAL = SHARED / "replies" / "mmlu_pro_health.jsonl"
_UNLABELLED = "unclear"
_SHOWN = 160


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply labeled with the letter that a human reader takes from it."""

    name: str
    kind: str
    text: str
    options: Mapping[str, str]
    expected: str | None
    """Expected letter; None if the reply has no answer."""

    def outcome(self, answer: ParsedAnswer) -> str:
        """Return `right`, `missed` (no letter parsed) or `false` (a wrong letter parsed)."""
        if answer.letter == self.expected:
            return "right"
        return "missed" if answer.letter is None else "false"


def read_replies(path: Path) -> Iterator[Reply]:
    """Yield the labeled replies of a file."""
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        if not line:
            continue
        record = json.loads(line)
        expected = record["expected"] if record["expected"] != "several" else None
        yield Reply(
            name=f"line {number}",
            kind=record.get("class") or record["kind"],
            text=record["text"],
            options=record["options"],
            expected=expected,
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for each file, and the replies on which parser and label disagree."""
    parser = make_parser("replies", __doc__)
    parser.add_argument("files", metavar="FILE", nargs="*", type=Path)
    files = parser.parse_args(arguments).files
    for path in files or [path for path in (CORPUS, REAL) if path.is_file()]:
        _report(path)


def _report(path: Path) -> None:
    counts: dict[str, Counter[str]] = {}
    otherwise = []
    for reply in read_replies(path):
        answer = parse_answer(reply.text, reply.options)
        outcome = reply.outcome(answer)
        if reply.kind == _UNLABELLED:
            outcome = "read" if answer.letter else "not read"
        counts.setdefault(reply.kind, Counter())[outcome] += 1
        if outcome in ("false", "missed"):
            end = " ".join(reply.text.split())[-_SHOWN:]
            otherwise.append(
                f"{outcome}, {reply.kind}, {reply.name}: {answer.letter}, not "
                f"{reply.expected}, of: … {end}"
            )
    outcomes = ("right", "missed", "false", "read", "not read")
    rows = [
        {"class": kind, "replies": found.total()} | {name: found[name] or "" for name in outcomes}
        for kind, found in [*sorted(counts.items()), ("all", sum(counts.values(), Counter()))]
    ]
    show_table(path.name, rows)
    print("\n".join(otherwise))


if __name__ == "__main__":
    main()
