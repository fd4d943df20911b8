"""Measure how well `unsupported_terms` tells planted errors from true paraphrases.

    python -m benchmarks.grounding [--half seen|held-out] [--show]

True paraphrases are the pairs of grounding_pairs.tsv: a text of a published case or exam question,
and a note that a clinician would write of it. Real summaries by gemini-2.5-flash-lite are also
taken as true. A planted error is a summary with one number, unit or drug replaced at random, one
error of each kind for each text: real summaries, sentences of exam questions, and the paraphrases.
An error is found if a term is flagged that was not flagged before. A change that leaves the text
true by accident counts as missed.

The texts with an odd number are the half that the rules were written with; the others are held out.
Parts whose texts are not in the shared data are left out.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.harness import MEDQA, SHARED, make_parser, show_table
from exaid_core.checks import unsupported_terms
from mdagents_llm.proportions import wilson

PAIRS = Path(__file__).with_name("grounding_pairs.tsv")
SEEN, HELD_OUT = "seen", "held-out"

_RUNS = SHARED / "published_exaid" / "runs"
_SEED = 42
# Numbers, also within names (IL-6), but not the number of an agent (doctor1) or a unit (mm3).
_NUMBER = re.compile(r"(?i:(?<!doctor)(?<!mm))(?<![\d.,])\d+(?:\.\d+)?(?![\d,])")
_OTHER_UNIT = {
    "mg": "g", "g": "mg", "mcg": "mg", "kg": "lb", "mL": "L", "L": "mL", "cm": "mm", "mm": "cm",
    "min": "h", "minutes": "hours", "h": "d", "hrs": "days", "hours": "days", "days": "weeks",
    "day": "week", "week": "month", "weeks": "months", "wks": "months", "month": "year",
    "months": "years", "mo": "years", "years": "months", "year": "month", "mg/dL": "g/dL",
}  # fmt: skip
_UNIT = re.compile(rf"(?<=\d)([ -]?)({'|'.join(sorted(_OTHER_UNIT, key=len, reverse=True))})\b")
_DRUGS = (
    "aspirin", "metoprolol", "lisinopril", "warfarin", "heparin", "insulin", "metformin",
    "furosemide", "methotrexate", "vancomycin", "prednisone", "clopidogrel", "morphine", "digoxin",
    "amlodipine", "atorvastatin", "ibuprofen", "naproxen", "albuterol", "atenolol", "zidovudine",
    "levothyroxine", "hydrochlorothiazide", "azithromycin", "ceftriaxone", "quinapril", "MTX",
    "ASA", "HCTZ", "tPA", "acetaminophen", "omeprazole", "simvastatin", "metronidazole",
)  # fmt: skip
_DRUG = re.compile(rf"\b(?:{'|'.join(_DRUGS)})\b", re.IGNORECASE)
_KINDS = {"number": _NUMBER, "unit": _UNIT, "drug": _DRUG}


@dataclass(frozen=True, slots=True)
class Pair:
    """A summary, and the text that supports it."""

    summary: str
    support: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether a text was flagged, with what the reader needs to judge it."""

    part: str
    flagged: bool
    told: str


def paraphrases() -> Iterator[Pair]:
    """Yield the true paraphrases, with empty support if their text is not present."""
    for line in PAIRS.read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        source, support, summary = line.split("\t")
        if source.startswith("medqa"):
            support = _questions()[int(source.split()[1])] if _questions() else ""
        yield Pair(summary, support)


def sentences() -> Iterator[Pair]:
    """Yield the longest sentence with a number and that with a drug of each exam question."""
    for question in _questions():
        parts = re.split(r"(?<=[.?])\s+", question)
        for pattern in (_NUMBER, _DRUG):
            found = [part for part in parts if pattern.search(part)]
            if found:
                yield Pair(max(found, key=len), question)


def summaries() -> Iterator[Pair]:
    """Yield the different published summaries with a number or a drug, with their input."""
    told = set()
    for path in sorted(_RUNS.glob("*/*.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for record in map(json.loads, lines):
                content = record.get("summary_content") or {}
                text = " | ".join(content.values())
                if text not in told and (_NUMBER.search(text) or _DRUG.search(text)):
                    told.add(text)
                    yield Pair(text, record["summarizer_input_text"])


@cache
def _questions() -> Sequence[str]:
    if not MEDQA.is_file():
        return ()
    return [json.loads(line)["question"] for line in MEDQA.read_bytes().splitlines()]


def planted(pair: Pair, rng: random.Random) -> Iterator[tuple[str, str]]:
    """Yield an error of each kind that the summary has room for: its kind, and the whole text."""
    for kind, pattern in _KINDS.items():
        places = list(pattern.finditer(pair.summary))
        if not places:
            continue
        place = rng.choice(places)
        if kind == "number":
            new = _another_number(place[0], rng)
        elif kind == "unit":
            new = place[1] + _OTHER_UNIT[place[2]]
        else:
            new = rng.choice([drug for drug in _DRUGS[:24] if drug not in pair.support.lower()])
        yield kind, f"{pair.summary[: place.start()]}{new}{pair.summary[place.end() :]}"


def _another_number(number: str, rng: random.Random) -> str:
    digits = [place for place, character in enumerate(number) if character.isdigit()]
    place = rng.choice(digits)
    least = 1 if place == 0 else 0
    others = [str(n) for n in range(least, 10) if str(n) != number[place]]
    return number[:place] + rng.choice(others) + number[place + 1 :]


def false_alarms(half: str) -> list[Outcome]:
    """Check the true paraphrases and the published summaries of one half."""
    outcomes = []
    for part, pairs in {"paraphrases": paraphrases(), "summaries": summaries()}.items():
        for pair in _half(pairs, half):
            terms = unsupported_terms([pair.summary], pair.support)
            outcomes.append(Outcome(part, bool(terms), f"{pair.summary} {list(terms)}"))
    return outcomes


def found_errors(half: str) -> list[Outcome]:
    """Plant errors in each text of one half and check them."""
    rng = random.Random(_SEED)
    outcomes = []
    texts = {"summaries": summaries(), "sentences": sentences(), "paraphrases": paraphrases()}
    for part, pairs in texts.items():
        for pair in _half(pairs, half):
            before = set(unsupported_terms([pair.summary], pair.support))
            for kind, text in planted(pair, rng):
                found = not before.issuperset(unsupported_terms([text], pair.support))
                outcomes.append(Outcome(f"{kind} in {part}", found, f"{pair.summary} → {text}"))
    return outcomes


def _half(pairs: Iterable[Pair], half: str) -> list[Pair]:
    return [pair for pair in list(pairs)[0 if half == SEEN else 1 :: 2] if pair.support]


def _rows(what: str, outcomes: Sequence[Outcome]) -> Iterator[dict[str, object]]:
    parts = sorted({outcome.part for outcome in outcomes})
    for part in [*parts, "all"]:
        of_part = [o.flagged for o in outcomes if part in (o.part, "all")]
        low, high = wilson(sum(of_part), len(of_part)) or (0.0, 1.0)
        share = f"{sum(of_part) / len(of_part):.1%}" if of_part else ""
        yield {
            what: part,
            "texts": len(of_part),
            "flagged": sum(of_part),
            "share": share,
            "95% interval": f"{low:.1%} to {high:.1%}",
        }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; return the exit status."""
    parser = make_parser("grounding", __doc__)
    add = parser.add_argument
    add("--half", choices=(SEEN, HELD_OUT), help="half of the texts [both]")
    add("--show", action="store_true", help="list what was flagged wrongly or missed")
    options = parser.parse_args(argv)
    for half in [options.half] if options.half else [SEEN, HELD_OUT]:
        alarms, errors = false_alarms(half), found_errors(half)
        show_table(f"True texts, {half} half", list(_rows("text", alarms)))
        show_table(f"Planted errors, {half} half", list(_rows("error", errors)))
        if options.show:
            print("\n".join(f"flagged: {o.told}" for o in alarms if o.flagged))
            print("\n".join(f"missed ({o.part}): {o.told}" for o in errors if not o.flagged))
    return 0


if __name__ == "__main__":
    sys.exit(main())
