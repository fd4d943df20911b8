"""Measure the cost of endpoint faults and of SIGKILL.

    python -m benchmarks.faults            # a faulty endpoint
    python -m benchmarks.faults --kill     # SIGKILL at a random moment, then the same command again

1. The same questions on an endpoint without faults and on one where a third of the requests fail:
   questions lost, error texts taken for answers, calls and wall time.
2. Killed runs: calls made twice against the calls in flight at the kill, and the final records
   against those of an undisturbed run.
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Any

from benchmarks.harness import (
    BASIC,
    CALLS_OF_BASIC,
    BenchmarkError,
    Provider,
    ProviderStats,
    Result,
    Workspace,
    judged,
    lines_of,
    make_parser,
    median_ratio,
    parse,
    records,
    result_of,
    show_machine,
    show_results,
    show_table,
    workspace,
)
from tests.support.medical_prose import SENTENCES

RATES: Mapping[str, float] = {
    "429": 0.20,
    "500": 0.05,
    "truncated_body": 0.05,
    "reset": 0.03,
    "hang": 0.02,
}
"""Share of requests hit, by fault."""
RETRY_AFTER = 0.3  # seconds, in the header of a 429
HANG = 60.0  # seconds
ATTEMPT_TIMEOUT = 2.0  # seconds
CALLS_AIM = 1.05
"""Maximum calls per successful call, relative to 1 / (1 - share of requests that fail)."""
WALL_AIM = 2.0
"""Maximum wall time relative to a run without faults."""

_POLL = 0.01  # seconds


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one run on an endpoint, with or without faults."""

    records: list[dict[str, Any]]
    stats: ProviderStats
    answering: float
    """Seconds from the first request to the last reply."""
    whole: float
    """Seconds from the start of main.py to its end."""

    @property
    def lost(self) -> list[str]:
        """Status and error of each question without an answer."""
        return [f"{r['status']}: {r['error']}" for r in self.records if r["status"] != "answered"]

    @property
    def left_out(self) -> int:
        """Number of turns that failed and were left out by the team."""
        return sum(len(record["left_out"]) for record in self.records)


@cache
def _vocabulary() -> frozenset[str]:
    return frozenset(_words(" ".join(SENTENCES)))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


def error_texts(found: Sequence[Mapping[str, Any]]) -> int:
    """Count the texts in records with a word that the fake model never writes, such as `error`."""
    return sum(
        any(word not in _vocabulary() for word in _words(text))
        for record in found
        for text in _texts_of_the_model(record)
    )


def _texts_of_the_model(record: Mapping[str, Any]) -> Iterator[str]:
    if record["response"]:
        yield record["response"]["analysis"]
    for opinion in record["opinions"]:
        yield opinion["reasoning"]


def measure_faults(
    place: Workspace, questions: int, latency: float, rounds: int, flags: Sequence[str]
) -> None:
    """Print the results on a faulty endpoint against a healthy one (part 1).

    Args:
        place: Workspace of the runs.
        questions: Number of questions per run.
        latency: Latency of the endpoint in seconds.
        rounds: Number of runs of each kind, interleaved; each round draws different faults.
        flags: Additional flags of main.py, for both kinds.
    """
    plan = [f"--rate={fault}={rate}" for fault, rate in RATES.items()]
    plan += [f"--retry-after={RETRY_AFTER}", f"--hang-seconds={HANG}"]
    size = ("--num-samples", str(questions), "--attempt-timeout", str(ATTEMPT_TIMEOUT))
    healthy: list[Outcome] = []
    faulty: list[Outcome] = []
    for seed in range(rounds):
        common = [f"--latency={latency}", f"--seed={seed}"]
        healthy.append(_run(place, common, latency, [*size, *flags]))
        faulty.append(_run(place, [*common, *plan], latency, [*size, *flags]))

    share = sum(RATES.values())
    outcomes: Counter[str] = Counter()
    for outcome in faulty:
        outcomes.update(outcome.stats.outcomes)
    arrivals = sum(outcome.stats.arrivals for outcome in faulty)
    rows = [
        {"outcome": kind, "requests": count, "share": f"{count / arrivals:.1%}"}
        for kind, count in outcomes.most_common()
    ]
    show_table(f"What became of {arrivals:,} requests", rows)

    lost = [what for outcome in faulty for what in outcome.lost]
    found = [record for outcome in faulty for record in outcome.records]
    calls_aim = CALLS_AIM / (1 - share)
    show_results(
        f"{rounds} x {questions} basic questions, {share:.0%} of the requests fail, latency "
        f"{latency * 1000:.0f} ms, Retry-After {RETRY_AFTER} s, {' '.join([*size[2:], *flags])}",
        [
            judged("questions lost", len(lost), 0, digits=0),
            judged("error texts taken for a model's", error_texts(found), 0, digits=0),
            Result("turns left out", str(sum(outcome.left_out for outcome in faulty))),
            judged(
                f"calls / good calls, against 1.05 / (1 - {share:.2f})",
                arrivals / outcomes["ok"],
                round(calls_aim, 3),
                digits=3,
            ),
            judged(
                "wall / fault-free wall, first request to last reply",
                median_ratio(faulty, healthy, lambda run: run.answering),
                WALL_AIM,
            ),
            judged(
                "wall / fault-free wall, start to end",
                median_ratio(faulty, healthy, lambda run: run.whole),
                WALL_AIM,
            ),
            Result("fault-free wall", f"{median(o.answering for o in healthy):.1f} s"),
        ],
    )
    for what in lost:
        print(f"lost: {what}")


def _run(
    place: Workspace, endpoint: Sequence[str], latency: float, flags: Sequence[str]
) -> Outcome:
    state = place.new_state()
    with Provider(*endpoint) as provider:
        ended = place.run(provider, state, *BASIC, *flags)
        stats = provider.stats()
    answering = stats.last_arrival + latency - stats.first_arrival
    return Outcome(records(state), stats, answering, ended.wall_seconds)


# -- kills ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kill:
    """A run that was killed and then resumed."""

    after: float
    """Seconds between the first request and the kill."""
    finished: int
    """Number of questions with a record at the kill."""
    calls_under_way: int
    """Number of calls that had reached the endpoint but were not in the ledger."""
    calls_of_open_questions: int
    """Number of calls that had reached the endpoint for questions without a record."""
    redone: int
    """Number of calls that were made twice."""
    same_records: bool
    """Whether the final records equal those of an undisturbed run."""

    def allowed(self, *, cached: bool) -> int:
        """Return the maximum number of calls that may be made twice."""
        return self.calls_under_way if cached else self.calls_of_open_questions


def measure_kills(
    place: Workspace, questions: int, latency: float, kills: int, cache_mode: str, seed: int
) -> None:
    """Kill and resume runs, and print repeated calls and differing records (part 2).

    Args:
        place: Workspace of the runs.
        questions: Number of questions per run.
        latency: Latency of the endpoint in seconds.
        kills: Number of runs, each killed once.
        cache_mode: `--cache` of main.py.
        seed: Random seed of the kill times.
    """
    rng = random.Random(seed)
    flags = ("--num-samples", str(questions), "--cache", cache_mode)
    with Provider(f"--latency={latency}", "--count-prompts") as provider:
        whole = place.new_state()
        place.run(provider, whole, *BASIC, *flags)
        seen = provider.stats()
        duration = seen.last_arrival + latency - seen.first_arrival
        if seen.prompts != seen.arrivals:
            raise BenchmarkError("two calls of one run have the same prompt")
        expected = _results(records(whole))
        done = [
            _kill(place, provider, flags, rng.uniform(0, duration), expected) for _ in range(kills)
        ]
    _show_kills(done, questions, duration, cache_mode)


def _kill(
    place: Workspace,
    provider: Provider,
    flags: Sequence[str],
    after: float,
    expected: Mapping[str, Mapping[str, Any]],
) -> Kill:
    provider.reset()
    state = place.new_state()
    program = place.start(provider, state, *BASIC, *flags)
    first = provider.wait_for_arrival(program).first_arrival
    time.sleep(max(0.0, first + after - time.monotonic()))
    program.kill()
    while provider.stats().in_flight:  # until it notices that the client is gone
        time.sleep(_POLL)
    before = provider.stats().arrivals
    booked, finished = lines_of(state, "calls.jsonl"), lines_of(state, "samples.jsonl")

    place.run(provider, state, *BASIC, *flags)
    seen = provider.stats()
    return Kill(
        after=after,
        finished=finished,
        calls_under_way=before - booked,
        calls_of_open_questions=before - finished * CALLS_OF_BASIC,
        redone=seen.arrivals - seen.prompts,
        same_records=_results(records(state)) == expected,
    )


def _results(found: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the records by question id, without the fields that may differ between runs."""
    return {record["question_id"]: result_of(record) for record in found}


def _show_kills(done: Sequence[Kill], questions: int, duration: float, cache_mode: str) -> None:
    rows = [
        {
            "killed after": f"{kill.after:.2f} s",
            "questions finished": kill.finished,
            "calls of open questions": kill.calls_of_open_questions,
            "calls in progress": kill.calls_under_way,
            "calls redone": kill.redone,
            "same records": "yes" if kill.same_records else "NO",
        }
        for kill in done
    ]
    title = f"{questions} basic questions, --cache {cache_mode}, {duration:.1f} s without a kill"
    show_table(title, rows)

    cached = cache_mode == "on"
    what = "calls in progress" if cached else "calls of open questions"
    beyond = [max(0, kill.redone - kill.allowed(cached=cached)) for kill in done]
    different = sum(not kill.same_records for kill in done)
    redone, calls = sum(kill.redone for kill in done), len(done) * questions * CALLS_OF_BASIC
    show_results(
        f"SIGKILL, {len(done)} times, --cache {cache_mode}",
        [
            judged(f"calls redone beyond the {what}", sum(beyond), 0, digits=0),
            judged("runs whose records differ in the end", different, 0, digits=0),
            Result("calls redone, of all calls", f"{redone} = {redone / calls:.1%}"),
        ],
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; return the exit status."""
    parser = make_parser("faults", __doc__)
    add = parser.add_argument
    add("--questions", type=int, default=200, help="of a run of part 1 [%(default)s]")
    add("--latency", type=float, default=0.2, help="seconds [%(default)s]")
    add("--rounds", type=int, default=3, help="runs of each kind in part 1 [%(default)s]")
    add("--flags", default="", help="more flags of main.py in part 1, in one argument")
    add("-k", "--kill", action="store_true", help="kill runs instead (part 2)")
    add("--kills", type=int, default=20, help="how many, with each --cache [%(default)s]")
    add("--kill-questions", type=int, default=60, help="of a run of part 2 [%(default)s]")
    add("--kill-latency", type=float, default=0.05, help="seconds, in part 2 [%(default)s]")
    add("--cache", default="on,off", help="modes of main.py in part 2 [%(default)s]")
    add("--seed", type=int, default=0, help="of the moments of the kills [%(default)s]")
    quick = {"questions": 10, "rounds": 1, "kills": 2, "kill_questions": 20}
    options = parse(parser, argv, quick)
    show_machine("faults")
    with workspace(max(options.questions, options.kill_questions)) as place:
        if not options.kill:
            flags = options.flags.split()
            measure_faults(place, options.questions, options.latency, options.rounds, flags)
            return 0
        for mode in options.cache.split(","):
            measure_kills(
                place,
                options.kill_questions,
                options.kill_latency,
                options.kills,
                mode,
                options.seed,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
