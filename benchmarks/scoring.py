"""Measure the time and memory to score 100,000 records, against only reading them.

    python -m benchmarks.scoring

The records have little more than the required fields, like files of that size that are assembled
from many runs. `benchmarks.evaluate` measures a run of typical size with complete records.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.harness import (
    REPOSITORY,
    Ended,
    Program,
    Result,
    interleaved,
    judged,
    make_parser,
    median_ratio,
    parse,
    show_machine,
    show_results,
    show_table,
)
from mdagents.records.sample import SCHEMA_VERSION
from mdagents.settings import Difficulty
from tests.support.medical_prose import prose

WALL_AIM = 4.0  # seconds, for 100,000 records
PEAK_AIM = 100.0  # MiB
_DIFFERENT = 500  # distinct texts; generating more would take longer than all the rest
_SKILL = 0.7  # share of correct answers
_READ = "import json, sys\nfor line in open(sys.argv[1], 'rb'): json.loads(line)"
_READING = "json.loads of each line"


def records(count: int) -> Iterator[dict[str, object]]:
    """Yield records of about 2 KB, deterministically."""
    rng = random.Random(0)
    questions = [prose(80, n) for n in range(_DIFFERENT)]
    reasons = [prose(60, n) for n in range(_DIFFERENT)]
    options = [dict(zip("ABCD", (prose(5, 4 * n + k) for k in range(4)), strict=True))
               for n in range(_DIFFERENT)]  # fmt: skip
    for number in range(count):
        shown = options[number % _DIFFERENT]
        gold = "ABCD"[number % 4]
        letter = gold if rng.random() < _SKILL else rng.choice("ABCD")
        read, written = rng.randint(3_000, 20_000), rng.randint(300, 2_000)
        yield {
            "question_id": f"question-{number}",
            "question": f"{number}. {questions[number % _DIFFERENT]}",
            "label": gold,
            "answer": shown[gold],
            "options": shown,
            "response": {
                "analysis": reasons[number * 7 % _DIFFERENT],
                "final_answer": f"{letter}) {shown[letter]}",
            },
            "difficulty": list(Difficulty)[number % 3],
            "token_usage": {
                "input_tokens": read,
                "output_tokens": written,
                "total_tokens": read + written,
                "cost_usd": round(read * 1e-6, 6),
            },
            "status": "answered",
            "predicted": letter,
            "permutation": {a: a for a in "ABCD"},
            "confidence": round(rng.uniform(0.4, 1), 2),
            "routed_by": "router",
            "wall_seconds": round(rng.uniform(2, 60), 3),
            "calls": rng.randint(3, 18),
            "epoch": 1,
            "schema_version": SCHEMA_VERSION,
        }


def measure(folder: Path, count: int, rounds: int) -> None:
    """Print the time and memory of scoring.

    Args:
        folder: Empty working folder.
        count: Number of records.
        rounds: Number of runs of each program, interleaved.
    """
    lines, array = folder / "many.jsonl", folder / "many.json"
    with lines.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records(count))
    with array.open("w", encoding="utf-8") as file:
        file.write("[")
        for number, record in enumerate(records(count)):
            file.write((",\n" if number else "\n") + json.dumps(record))
        file.write("\n]\n")
    score = [str(REPOSITORY / "evaluate_text_output.py"), "--input"]
    programs = {
        _READING: ["-c", _READ, str(lines)],
        "scoring the lines": [*score, str(lines)],
        "scoring the array": [*score, str(array)],
    }
    environment = {"PATH": "", "HOME": str(folder), "LANG": "C.UTF-8"}
    peaks = dict.fromkeys(programs, 0.0)

    def run(name: str) -> Ended:
        program = Program([sys.executable, *programs[name]], folder, environment)
        peaks[name] = max(peaks[name], program.peak())
        return program.finish()

    ended = interleaved(run, programs, rounds)
    wall = {name: median(cost.wall_seconds for cost in costs) for name, costs in ended.items()}
    ratios = {
        name: median_ratio(costs, ended[_READING], lambda cost: cost.cpu_seconds)
        for name, costs in ended.items()
    }
    rows = [
        {
            "program, from its start to its end": name,
            "wall, s": f"{wall[name]:.2f}",
            "CPU / reading": f"{ratios[name]:.2f}",
            "peak, MiB": f"{peaks[name]:.0f}",
        }
        for name in programs
    ]
    title = f"{count:,} records, {lines.stat().st_size / 1e6:.0f} MB; medians of {rounds}"
    show_table(title, rows)
    results: list[Result] = []
    for name in list(programs)[1:]:
        results += [
            judged(f"{name}: wall", wall[name], WALL_AIM, " s"),
            judged(f"{name}: peak", peaks[name], PEAK_AIM, " MiB", 0),
        ]
    show_results("Scoring", results)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; return the exit status."""
    parser = make_parser("scoring", __doc__)
    add = parser.add_argument
    add("--records", type=int, default=100_000, help="to score [%(default)s]")
    add("--rounds", type=int, default=3, help="starts of each program [%(default)s]")
    options = parse(parser, argv, quick={"records": 1000, "rounds": 1})
    show_machine("scoring")
    with TemporaryDirectory(prefix="mdagents-benchmark-") as folder:
        measure(Path(folder), options.records, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
