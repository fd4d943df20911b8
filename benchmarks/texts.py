"""Measure how the time to read a text grows with its length: alerts, grounding, terms.

    python -m benchmarks.texts

Model output can have any length and shape, so reading time must grow at most linearly. Each reader
gets a text and one 50 times as long; alerts are also searched in texts on which a careless regular
expression would take forever.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence

from benchmarks.harness import judged, make_parser, parse, show_machine, show_results, show_table
from evals.concepts import TermExtractor
from exaid_core.checks.alerts import find_alert
from exaid_core.checks.grounding import unsupported_terms
from tests.support.medical_prose import SENTENCES, prose

GROWTH_AIM = 2.0
"""Maximum time per character in a text 50 times as long, relative to the short text."""
LOAD_AIM = 2.0  # seconds
_TIMES = 50
_PIECES = (
    "a", "no ", "cardiac ", "cardiac arrest", "no cardiac arrest ", "SpO2 ", "GCS 15 ", "K+ 1 to ",
    "1", "massive ", "not rule ", "SpO2 = = = = ", " ", "without,", "if anaphylaxis and then ",
)  # fmt: skip
_SUMMARY = [prose(140, 3) + " Give 3.5 mg or 77 mg of enoxaparin."]

Read = Callable[[str], object]


def measure(length: int, rounds: int) -> None:
    """Print the time per character in texts of `length` characters and 50 times as many.

    Args:
        length: Number of characters of the shorter texts.
        rounds: Number of readings per text; the fastest counts.
    """
    begin = time.process_time()
    extractor = TermExtractor()
    extractor.extract("fever")
    load = time.process_time() - begin

    clinical = " ".join(SENTENCES)
    doses = "\n".join(f"{prose(150, start)} Give {start}.5 mg." for start in range(20))
    readers: Mapping[str, tuple[Read, str]] = {
        "terms": (extractor.extract, clinical),
        "grounding, of the support": (lambda text: unsupported_terms(_SUMMARY, text), doses),
        "alerts": (find_alert, clinical),
        **{f"alerts, in {piece!r} again and again": (find_alert, piece) for piece in _PIECES},
    }
    rows = []
    growth: dict[str, float] = {}
    for name, (read, text) in readers.items():
        short, long = (_microseconds(read, text, n, rounds) for n in (length, _TIMES * length))
        growth[name] = long / short
        rows.append(
            {
                "read for": name,
                f"of {length:,}": f"{short:.3f}",
                f"of {_TIMES * length:,}": f"{long:.3f}",
                "ratio": f"{growth[name]:.2f}",
            }
        )
    show_table("CPU of a character in texts of so many, microseconds", rows)
    worst = max(growth, key=lambda name: growth[name])
    show_results(
        "Reading texts",
        [
            judged("loading the terms, CPU", load, LOAD_AIM, " s"),
            judged(f"worst ratio ({worst})", growth[worst], GROWTH_AIM),
        ],
    )


def _microseconds(read: Read, text: str, length: int, rounds: int) -> float:
    """Return the CPU time per character in µs, with `text` repeated to `length` characters."""
    repeated = (text * (length // len(text) + 1))[:length]
    took = []
    for _ in range(rounds):
        begin = time.process_time()
        read(repeated)
        took.append(time.process_time() - begin)
    return min(took) / length * 1e6


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; return the exit status."""
    parser = make_parser("texts", __doc__)
    add = parser.add_argument
    add("--length", type=int, default=2000, help="of the shorter texts [%(default)s]")
    add("--rounds", type=int, default=5, help="readings of each text [%(default)s]")
    options = parse(parser, argv, quick={"length": 200, "rounds": 1})
    show_machine("texts")
    measure(options.length, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
