"""Measure how EXAID shortens texts: how many are cut, how many not, and which cuts look wrong.

    python -m benchmarks.shortening [FILE …]

A file holds one text per line. The defaults are, if present, the questions and the replies in the
shared data, two sentences at a time. Each text is cut at several limits. A cut looks wrong if a
rule that is independent of the product's finds a denial, a condition, an exception or the end of a
treatment within the first words that were left out, or a number or an open bracket at the cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from benchmarks.harness import SHARED, make_parser, show_table
from exaid_core.checks import shorten
from exaid_core.tokenizer import sentence_ends

LIMITS = (60, 90, 120, 150, 180, 210)
_SHOWN = 70
_SUSPECT = re.compile(
    r"[\s,;:.(–—-]*(?:[\w'-]+\s){0,2}?(?:if|unless|only|until|when|except|but|apart from|not|none"
    r"|ruled out|excluded|unlikely|negative|denied|stopped|discontinued|four times|twice|daily)\b",
    re.IGNORECASE,
)
_PARTED_NUMBER = re.compile(r"\d…$")


def main() -> None:
    """Print the table and the cuts that look wrong."""
    parser = make_parser("shortening", __doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    files = parser.parse_args().files
    texts = [line for file in files for line in file.read_text("utf-8").splitlines()]
    texts = texts or [" ".join(text.split()) for text in _shared_texts()]
    rows, wrong = [], []
    for limit in LIMITS:
        cuts = [(text, shorten(text, limit)) for text in texts if len(text) > limit]
        kept = [(text, cut) for text, cut in cuts if cut]
        suspect = [(text, cut) for text, cut in kept if _looks_wrong(text, cut)]
        rows.append(
            {
                "limit": limit,
                "too long": len(cuts),
                "cut": len(kept),
                "nothing kept": len(cuts) - len(kept),
                "look wrong": len(suspect),
            }
        )
        wrong += suspect
    show_table("Texts cut at each limit", rows)
    for text, cut in dict.fromkeys(wrong):
        place = len(cut) - 1
        print(f"…{text[max(place - _SHOWN, 0) : place]} | {text[place : place + _SHOWN]}…")


def _looks_wrong(text: str, cut: str) -> bool:
    rest = text[len(cut) - 1 :]
    parted = _PARTED_NUMBER.search(cut) and not re.match(r"[.;]", rest)
    return bool(_SUSPECT.match(rest) or parted or cut.count("(") != cut.count(")"))


def _shared_texts() -> Iterator[str]:
    for path, field in (
        ("medqa/test.jsonl", "question"),
        ("replies/mmlu_pro_health.jsonl", "text"),
    ):
        if (file := SHARED / path).exists():
            for line in file.read_text("utf-8").splitlines():
                yield from _pairs(json.loads(line)[field])


def _pairs(text: str) -> Iterator[str]:
    """Yield the sentences of a text, two at a time."""
    ends = sentence_ends(text)
    for start, end in pairwise(dict.fromkeys([0, *ends[1::2], len(text)])):
        yield text[start:end]


if __name__ == "__main__":
    main()
