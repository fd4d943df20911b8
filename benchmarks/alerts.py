"""Measure precision and recall of the alerts on sentences that the rules were not made from.

    python -m benchmarks.alerts

`alert_sentences.jsonl` has a label for each sentence: does it affirm an immediate danger to the
life of its patient, now? A suspected danger counts. One that is denied, resolved, in the past, of
another person, a risk, the aim of a treatment or general knowledge does not. Dangers are the states
for which a resuscitation or emergency team is called at once, oxygen saturation below 85%, systolic
pressure of 80 mmHg or less, mean arterial pressure of 55 mmHg or less, Glasgow coma scale of 8 or
less, fewer than 8 breaths or 30 heartbeats per minute, pH below 7.0 and potassium of 6.5 mmol/L or
more. The author of the rules labeled them, and no clinician checked the labels.

The sentences were sampled by rule. From exam questions, answers of models and discussions of agents
in the shared data: all sentences of 30 to 400 characters with a word of danger, and the first 45 of
each data set without one, in the order of their SHA-256. From published case reports and teaching
cases: sentences with a word of danger in the first reports that a search for such cases found; some
are shortened. Words of danger are unconscious, unresponsive, coma, shock, arrest, SpO2,
hypotension, pulseless, intubated, hemorrhage, bleeding, seizure, pH, GCS, apnea, collapse,
cyanosis, CPR and the like.

Parts 5 to 8 were sampled like this: sentences of 30 to 400 characters with a word of danger in what
a text search found first for 8 to 17 queries (case reports, notes, exam questions, guidelines,
forums), without names of authors and references, and sentences of the shared data without a word of
danger, in the order of their SHA-256. 29 sentences that earlier parts have were left out; the label
was the same each time.

Sentences of the development part shaped the rules. Each held-out part was labeled and measured once
before it was used to improve them; docs/measurements/exaid.md has these first results. Only
sentences of open-access reports of parts 1 to 4 are in the file. Others are found by their SHA-256
in the shared data, if it is there.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import SHARED, make_parser, parse, show_machine, show_table
from exaid_core.checks import find_alert
from mdagents_llm.proportions import wilson

SENTENCES = Path(__file__).with_name("alert_sentences.jsonl")
_TEXTS = "alert_sentences.jsonl"
"""File of the shared data with sentences that may not be published."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")

Label = Mapping[str, Any]


def labeled_sentences(shared: Path) -> Iterator[tuple[Label, str]]:
    """Yield each label whose sentence is available, with the sentence.

    Args:
        shared: Folder of real data; it may be missing.
    """
    labels = [json.loads(line) for line in SENTENCES.read_text("utf-8").splitlines()]
    paths = {shared / label["source"] for label in labels} | {shared / _TEXTS}
    texts = {
        _sha256(sentence): sentence
        for path in sorted(paths)
        if path.is_file()
        for sentence in _sentences(path)
    }
    for label in labels:
        sentence = label.get("text") or texts.get(label["sha256"])
        if sentence:
            yield label, sentence


def measure(shared: Path) -> None:
    """Print precision and recall by part, with 95% Wilson intervals."""
    found = [
        (label["part"], label["danger_word"], label["alert"], find_alert(sentence) is not None)
        for label, sentence in labeled_sentences(shared)
    ]
    rows = []
    for part in sorted({part for part, *_ in found}):
        of_part = [each for each in found if each[0] == part]
        true = sum(alert and seen for _, _, alert, seen in of_part)
        rows.append(
            {
                "part": part,
                "with / without a word of danger": " / ".join(
                    str(sum(danger is word for _, danger, _, _ in of_part))
                    for word in (True, False)
                ),
                "precision": _share(true, sum(seen for *_, seen in of_part)),
                "recall": _share(true, sum(alert for _, _, alert, _ in of_part)),
            }
        )
    show_table("Alerts in real sentences, 95% intervals", rows)


def _sentences(path: Path) -> Iterator[str]:
    """Yield the sentences of all strings in a JSON or JSON Lines file and of a trace's turns."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    records = [text] if path.suffix == ".json" else text.splitlines()
    turns: dict[object, str] = {}
    strings: list[str] = []
    for record in map(json.loads, filter(None, records)):
        if isinstance(record, dict) and "delta_text" in record:
            turn = record.get("turn_id")
            turns[turn] = turns.get(turn, "") + record["delta_text"]
        strings.extend(_strings(record))
    for string in (*strings, *turns.values()):
        yield " ".join(string.split())
        yield from (" ".join(piece.split()) for piece in _SENTENCE_END.split(string))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)


def _sha256(sentence: str) -> str:
    return hashlib.sha256(sentence.encode()).hexdigest()[:16]


def _share(part: int, whole: int) -> str:
    interval = wilson(part, whole)
    if interval is None:
        return "no sentence"
    return f"{part / whole:.2f} ({interval[0]:.2f} to {interval[1]:.2f}), {part} of {whole}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its table; return the exit status."""
    parse(make_parser("alerts", __doc__), argv, quick={})
    show_machine("alerts")
    measure(SHARED)
    return 0


if __name__ == "__main__":
    sys.exit(main())
