"""Measure the audit: planted faults found, harm claimed where there is none, time and memory.

    python -m benchmarks.audit

The debates are those of `tests/support/planted.py`, spoken by the fake provider of the tests. The
null hypothesis is played by letters at random: opinions and decisions that know nothing of each
other. The run that is timed is one of adaptive questions, copied until it is large.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.harness import (
    REPOSITORY,
    BenchmarkError,
    Program,
    Result,
    judged,
    make_parser,
    parse,
    show_machine,
    show_results,
    show_table,
)
from mdagents.scoring.audit.audit import Audit, audit
from mdagents.scoring.rows import newest_output, read_output
from tests.fake_provider import FakeProvider
from tests.support.environment import bare_environment
from tests.support.planted import (
    TEAMS,
    Planted,
    plant,
    play,
    write_questions,
)

MISSED_AIM, FALSE_AIM, HARM_AIM = 1.0, 1.0, 5.0  # percent
WALL_AIM = 10.0  # seconds, for 5,000 questions
PEAK_AIM = 190.7  # MiB: 200 MB
_OPTIONS = {"A": "Aspirin", "B": "Heparin", "C": "Warfarin", "D": "Nothing"}


def run(folder: Path, provider: FakeProvider, *flags: str) -> Path:
    """Run the program on the fake provider and return its results.

    Raises:
        BenchmarkError: The program failed.
    """
    environment = bare_environment(
        OPENAI_API_KEY="test-key", OPENAI_BASE_URL=provider.openai_base_url, MDAGENTS_EXAID="off"
    )
    command = [sys.executable, str(REPOSITORY / "main.py"), "--exaid", "off", *flags]
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise BenchmarkError(f"{' '.join(command)}: {ended.stderr[-500:]}")
    return newest_output(folder / "output")


def planted_faults(folder: Path, count: int) -> list[Result]:
    """Print which planted faults are found in each team, and return the shares.

    Args:
        folder: Empty working folder.
        count: Number of debates per team.
    """
    rows, missed, false, faults, debates = [], 0, 0, 0, 0
    for team, (kinds, flags) in TEAMS.items():
        place = folder / team
        place.mkdir()
        planted = [plant(number, kinds[number % len(kinds)]) for number in range(count)]
        write_questions(place / "planted.jsonl", planted)
        with FakeProvider(seed=1) as provider:
            play(provider, planted)
            results = run(
                place, provider, "--dataset", "planted.jsonl", "--option-order", "original",
                *flags,
            )  # fmt: skip
        of_team = sum(sum(each.expected.values()) for each in planted)
        lost, extra = _differences(audit(read_output(results)), planted)
        rows.append(
            {
                "team": team,
                "debates": count,
                "faults": of_team,
                "found": of_team - lost,
                "missed": lost,
                "false": extra,
            }
        )
        missed, false, faults = missed + lost, false + extra, faults + of_team
        debates += count
    show_table("Planted faults", rows)
    return [
        judged("planted faults missed", 100 * missed / faults, MISSED_AIM, "%"),
        judged("false findings per 100 debates", 100 * false / debates, FALSE_AIM, "", 2),
    ]


def _differences(figures: Audit, planted: Sequence[Planted]) -> tuple[int, int]:
    """Return how many planted faults were missed, and how many findings were not planted."""
    observed = {one.question_id: one for one in figures.observed}
    lost = extra = 0
    for each in planted:
        instances = observed[f"planted-{each.number}"].instances
        found = Counter(instance.measure for instance in instances)
        lost += (Counter(each.expected) - found).total()
        extra += (found - Counter(each.expected)).total()
    return lost, extra


def null(folder: Path, audits: int, questions: int) -> list[Result]:
    """Return how often an audit of letters at random claims harm or benefit.

    Args:
        folder: Empty working folder.
        audits: Number of audits.
        questions: Number of questions of each.
    """
    rng = random.Random(0)
    path = folder / "null.json"
    claims = Counter[str]()
    for _ in range(audits):
        path.write_text(json.dumps([_at_random(rng, number) for number in range(questions)]))
        figures = audit(read_output(path))
        if figures.is_significant:
            claims["harm" if figures.net_effect < 0 else "benefit"] += 1
    of = f"{audits:,} audits of {questions} answers at random"
    return [
        judged(f"harm claimed in {of}", 100 * claims["harm"] / audits, HARM_AIM, "%"),
        Result("benefit claimed", f"{100 * claims['benefit'] / audits:.2f}%"),
    ]


def _at_random(rng: random.Random, number: int) -> dict[str, object]:
    """Return the record of a question whose first opinions and decision have equal chances.

    The decision is one of the first opinions, each as likely as any other, so that it is right as
    often as they are.
    """
    letters = rng.choices("ABCD", k=3)
    decision = rng.choice(letters)
    opinions = [
        {"agent": f"expert-{place}", "role": "Expert", "round": 0, "answer": letter,
         "confidence": 0.5, "reasoning": "So."}
        for place, letter in enumerate(letters)
    ]  # fmt: skip
    return {
        "question_id": f"q{number}", "question": f"Question {number}?", "label": "A",
        "options": _OPTIONS, "predicted": decision, "status": "answered",
        "response": {"analysis": "So.", "final_answer": f"{decision}) {_OPTIONS[decision]}"},
        "opinions": opinions, "schema_version": "1.6.0",
    }  # fmt: skip


def speed(folder: Path, count: int, rounds: int) -> list[Result]:
    """Return the time and memory of an audit of a run with complete records and ledger.

    Args:
        folder: Empty working folder.
        count: Number of questions.
        rounds: Number of audits; the fastest counts.
    """
    sample = REPOSITORY / "data" / "medqa" / "sample.jsonl"
    with FakeProvider(seed=1) as provider:
        source = run(folder, provider, "--dataset", str(sample)).with_suffix("")
    many = folder / "many"
    many.mkdir()
    records = [json.loads(line) for line in (source / "samples.jsonl").open(encoding="utf-8")]
    calls = [json.loads(line) for line in (source / "calls.jsonl").open(encoding="utf-8")]
    copies = -(-count // len(records))
    ids = [f"{record['question_id']}-{copy}" for copy in range(copies) for record in records]
    manifest = json.loads((source / "run.json").read_text(encoding="utf-8"))
    (many / "run.json").write_text(json.dumps(manifest | {"item_ids": ids[:count]}))
    with (many / "samples.jsonl").open("w", encoding="utf-8") as lines:
        for number, id_ in enumerate(ids[:count]):
            record = records[number % len(records)]
            copy = f"{record['case_id']}-{number // len(records)}"
            own = {"question_id": id_, "case_id": copy, "question": f"{id_}: {record['question']}"}
            lines.write(json.dumps(record | own) + "\n")
    with (many / "calls.jsonl").open("w", encoding="utf-8") as lines:
        for number in range(copies):
            for call in calls:
                own = {"case_id": f"{call['case_id']}-{number}"}
                lines.write(json.dumps(call | own) + "\n")
    environment = {"PATH": "", "HOME": str(folder), "LANG": "C.UTF-8"}
    command = [sys.executable, str(REPOSITORY / "evaluate_text_output.py"), "--audit", "many"]
    walls, peak = [], 0.0
    for _ in range(rounds):
        program = Program(command, folder, environment)
        peak = max(peak, program.peak())
        walls.append(program.finish().wall_seconds)
    what = f"audit of {count:,} adaptive questions, {copies * len(calls):,} calls"
    return [
        judged(f"{what}: wall", min(walls), WALL_AIM, " s"),
        judged("the same: peak", peak, PEAK_AIM, " MiB", 0),
    ]


def main(argv: Sequence[str] | None = None) -> None:
    """Measure what the command line asks for."""
    parser = make_parser("audit", __doc__)
    parser.add_argument("--debates", type=int, default=150, help="per team [%(default)s]")
    parser.add_argument("--audits", type=int, default=1000, help="at random [%(default)s]")
    parser.add_argument("--questions", type=int, default=5000, help="timed [%(default)s]")
    parser.add_argument("--rounds", type=int, default=3, help="timed audits [%(default)s]")
    options = parse(parser, argv, {"debates": 15, "audits": 20, "questions": 200, "rounds": 1})
    show_machine("audit")
    with TemporaryDirectory() as name:
        folder = Path(name)
        results = planted_faults(folder, options.debates)
        results += null(folder, options.audits, 200)
        results += speed(folder, options.questions, options.rounds)
    show_results("Audit", results)


if __name__ == "__main__":
    main()
