"""Measure the cost and delay of EXAID, and check that no answer depends on it.

    python -m benchmarks.exaid

The benchmark runs MedQA questions, routed to all three teams, on the fake provider with replies of
fixed length: an expert's opinion has 110 words, or 40 in a debate; a debate message 70; each field
of a summary has its maximum length. Whether text deserves a summary is judged at random.

1. For each policy: decisions, summaries, calls, tokens relative to the team's, text without a
   summary, and the time from the last word to its summary.
2. The answers, the team's tokens and the wall time of the questions with EXAID off, working, ten
   times slower than the team, always failing, and lying.
3. A run with all defaults on calls of 0.3 to 1.5 seconds, at 4, 16 and 64 connections: how many
   questions have a summary, how soon, and the wall time of the whole run against one without EXAID,
   including startup, shutdown and EXAID's last summaries.
4. Runs killed with SIGKILL at a random moment, then resumed by the same command: decided questions
   without a record, questions that EXAID did not finish, and wrong totals.
5. A run with all defaults in which EXAID falls behind, on 16 connections: the tokens in run.json,
   the records and the ledger.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks.harness import (
    BASIC,
    MEDQA,
    SAMPLE,
    BenchmarkError,
    Provider,
    Result,
    Workspace,
    interleaved,
    judged,
    lines_of,
    make_parser,
    p95,
    parse,
    records,
    run_folder,
    show_machine,
    show_results,
    show_table,
    workspace,
)
from exaid_core.placeholders import PLACEHOLDER
from exaid_core.policy import TriggerPolicy
from exaid_core.schema.agent_summary import LIMITS
from exaid_core.trace.files import read_records
from exaid_core.trace.traces import read_trace
from mdagents.runs.models import exaid_roles
from mdagents_llm.clock import ms_of

TOKEN_AIMS: Mapping[str, float] = {TriggerPolicy.FULL_EXAID: 0.55, TriggerPolicy.TURN_END: 0.55}
"""Maximum EXAID tokens per team token, by policy."""
DELAY_AIM = 2.0  # seconds
WALL_AIM = 1.05
"""Maximum wall time relative to a run without EXAID."""
OFF = "off"
SLOWER = 10
"""Latency of the slow model relative to the team's model."""

_MODEL = "exaid"  # distinguishes EXAID's calls from the team's at the provider
_SLOW_MODEL, _FAILING_MODEL, _LYING_MODEL = "exaid-slow", "exaid-failing", "exaid-lying"
_ROLES = ("summarizer", "buffer_agent")
_USUAL_LATENCY = ("--latency", "0.3", "--latency-spread", "1.2")  # in seconds, for part 3
_SEED = "1"  # provider seed with which the first questions go to all three teams


@dataclass(frozen=True, slots=True)
class Size:
    """The size and settings of a run."""

    questions: int
    in_flight: int
    """Maximum number of questions in progress."""
    connections: int
    """Maximum number of concurrent calls, including EXAID's."""
    latency: float
    """Seconds that the endpoint takes for a call by the team."""
    retries: int
    """Maximum number of retries of a failed call."""

    def __str__(self) -> str:
        return (
            f"{self.questions} questions, {self.in_flight} at once on {self.connections} "
            f"connections, latency {self.latency * 1000:.0f} ms"
        )

    def flags(self) -> tuple[str, ...]:
        """Return the flags of `main.py` for this size."""
        return (
            *_first(self.questions),
            *("--difficulty", "adaptive", "--max-samples", str(self.in_flight)),
            *("--max-connections", str(self.connections), "--max-retries", str(self.retries)),
        )


def _first(questions: int) -> tuple[str, ...]:
    """Return the flags of `main.py` for the first questions of MedQA, or of the sample."""
    dataset = MEDQA if MEDQA.is_file() else SAMPLE
    return ("--dataset", str(dataset), "--num-samples", str(questions))


@dataclass(frozen=True, slots=True)
class Run:
    """The output of one run."""

    records: list[dict[str, Any]]
    ledger: list[dict[str, Any]]
    folder: Path

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Ledger rows of EXAID's calls."""
        return [row for row in self.ledger if row["role"] in _ROLES]

    @property
    def team_tokens(self) -> int:
        """Number of tokens used by router and teams."""
        return sum(record["token_usage"]["total_tokens"] for record in self.records)

    @property
    def exaid_tokens(self) -> int:
        """Number of tokens used by both EXAID roles."""
        return sum(record["exaid"]["token_usage"]["total_tokens"] for record in self.records)

    def count(self, what: str) -> int:
        """Return the number of `summaries` or `decisions`."""
        return sum(len(record["exaid"][what]) for record in self.records)

    def tail_loss(self) -> float:
        """Return the mean share of a question's text that no summary covers."""
        return fmean(record["watched"]["tail_loss"] for record in self.records)

    def wall_seconds(self) -> list[float]:
        """Return the wall time of each question, in seconds."""
        return [record["wall_seconds"] for record in self.records]

    def answers(self) -> dict[str, tuple[Any, ...]]:
        """Return the fields that EXAID must not change, by question id."""
        kept = ("status", "predicted", "response", "token_usage")
        return {r["question_id"]: tuple(r[name] for name in kept) for r in self.records}


def make_provider(size: Size) -> Provider:
    """Return a provider with a model for each behavior of EXAID."""
    return Provider(
        *("--latency", str(size.latency), "--seed", _SEED, "--fixed-lengths"),
        *("--slow-model", f"{_SLOW_MODEL}={SLOWER * size.latency:g}"),
        *("--fail-model", _FAILING_MODEL, "--lying-model", _LYING_MODEL),
    )


def run(place: Workspace, provider: Provider, size: Size, policy: str, model: str = _MODEL) -> Run:
    """Answer the questions once under a policy, with `model` for each active EXAID role."""
    at_work = exaid_roles(None if policy == OFF else TriggerPolicy(policy))
    roles = [flag for role in at_work for flag in ("--model-role", f"{role}=openai/{model}")]
    state = place.new_state()
    place.run(provider, state, *size.flags(), "--exaid", policy, *roles)
    return _run_in(state)


def _run_in(state: Path) -> Run:
    folder = run_folder(state)
    assert folder is not None, "main.py ended well"
    return Run(records(state), list(_rows(folder / "calls.jsonl")), folder)


def _rows(ledger: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a ledger, skipping an incomplete last one."""
    yield from map(json.loads, ledger.read_text("utf-8").split("\n")[:-1])


# -- cost -----------------------------------------------------------------------------------------


def measure_cost(place: Workspace, provider: Provider, size: Size) -> None:
    """Print the cost and delay of EXAID by policy (part 1).

    Args:
        place: Workspace of the runs.
        provider: Provider from `make_provider`.
        size: Size of each run.
    """
    rows = []
    results = []
    for policy in (*TriggerPolicy, OFF):
        seen = run(place, provider, size, policy)
        ratio = seen.exaid_tokens / seen.team_tokens
        newest, every = _delays(seen)
        rows.append(
            {
                "policy": policy,
                "decisions": seen.count("decisions"),
                "summaries": seen.count("summaries"),
                "EXAID calls": len(seen.calls),
                "team tokens": f"{seen.team_tokens:,}",
                "EXAID tokens": f"{seen.exaid_tokens:,}",
                "EXAID / team": f"{ratio:.2f}",
                "tail loss": f"{seen.tail_loss():.1%}",
                "newest word to summary, s": f"{newest:.2f}" if newest else "",
                "any word to summary, s": f"{every:.2f}" if every else "",
            }
        )
        if policy in TOKEN_AIMS:
            aim = TOKEN_AIMS[policy]
            results.append(judged(f"{policy}: EXAID tokens / team tokens", ratio, aim))
        if policy == TriggerPolicy.FULL_EXAID:
            results.append(judged(f"{policy}: newest word to summary", newest, DELAY_AIM, " s"))
    levels = Counter(record["difficulty"] for record in seen.records)
    routed = ", ".join(f"{count} {level}" for level, count in sorted(levels.items()))
    show_table(f"{size}; {routed}", rows)
    show_results("Cost of EXAID", results)


def _delays(seen: Run) -> tuple[float, float]:
    """Return the median seconds from the newest chunk, and from any chunk, to its summary.

    Both start at the last word of the chunk and are 0 without summaries.
    """
    newest: list[float] = []
    every: list[float] = []
    written = _written_at(seen)
    for record in seen.records:
        case_id = record["case_id"]
        for words_at, summary_at in _covered(seen.folder, case_id, written[case_id]):
            newest.append(summary_at - max(words_at))
            every += [summary_at - moment for moment in words_at]
    return (median(newest), median(every)) if newest else (0.0, 0.0)


def _written_at(seen: Run) -> Mapping[str, list[float]]:
    """Return the arrival times of the summarizer's replies, in Unix seconds, by case."""
    written: defaultdict[str, list[float]] = defaultdict(list)
    for row in seen.calls:
        if row["role"] == "summarizer" and row["outcome"] == "ok":
            started = ms_of(row["started_at"]) / 1000
            written[row["case_id"]].append(started + row["latency"])
    return written


def _covered(
    folder: Path, case_id: str, written: Sequence[float]
) -> Iterator[tuple[list[float], float]]:
    """Yield, for each summary of a case, the end times of its chunks and its own time.

    Raises:
        BenchmarkError: The numbers of summarizer replies and summaries differ.
    """
    log = folder / "exaid" / f"{case_id}.jsonl.gz"
    if not log.is_file():
        return
    trace = read_trace(folder / "traces" / f"{case_id}.trace.jsonl.gz")
    said_at = {event.seq: event.t_ms / 1000 for event in trace.events}
    entries = [entry for _, entry in read_records(log)]
    ends = [e["end_seq"] for e in entries if e["record_type"] == "tokengate_flush"]
    summaries = [e for e in entries if e["record_type"] == "summary_event" and e["schema_ok"]]
    if len(summaries) != len(written):
        raise BenchmarkError(f"{case_id}: {len(written)} replies, {len(summaries)} summaries")
    for summary, moment in zip(summaries, written, strict=True):
        sources = set(summary["source_seqs"])
        yield [said_at[end] for end in ends if end in sources], moment


# -- independence ---------------------------------------------------------------------------------


def measure_independence(place: Workspace, provider: Provider, size: Size, rounds: int) -> None:
    """Print how EXAID affects answers and wall time (part 2).

    Args:
        place: Workspace of the runs.
        provider: Provider from `make_provider`.
        size: Size of each run.
        rounds: Number of runs per variant, interleaved.
    """
    variants = {
        OFF: (OFF, _MODEL),
        "at work": (TriggerPolicy.FULL_EXAID, _MODEL),
        f"{SLOWER} times slower than the team": (TriggerPolicy.FULL_EXAID, _SLOW_MODEL),
        "failing always": (TriggerPolicy.FULL_EXAID, _FAILING_MODEL),
        "lying": (TriggerPolicy.FULL_EXAID, _LYING_MODEL),
    }
    seen = interleaved(lambda name: run(place, provider, size, *variants[name]), variants, rounds)
    rows = []
    results = []
    for name, runs in seen.items():
        walls = [run.wall_seconds() for run in runs]
        rows.append(
            {
                "EXAID": name,
                "summaries": median(run.count("summaries") for run in runs),
                "EXAID calls": median(len(run.calls) for run in runs),
                "tail loss": f"{median(run.tail_loss() for run in runs):.1%}",
                "wall of all questions, s": f"{median(map(sum, walls)):.2f}",
                "of the median question, s": f"{median(map(median, walls)):.3f}",
            }
        )
        if name != OFF:
            changed = sum(_differing(run, seen[OFF][0]) for run in runs)
            results.append(judged(f"{name}: questions answered otherwise", changed, 0, digits=0))
            ratios = [
                sum(ours) / sum(off.wall_seconds())
                for ours, off in zip(walls, seen[OFF], strict=True)
            ]
            results.append(judged(f"{name}: wall time / off", median(ratios), WALL_AIM, digits=3))
            spread = f"{min(ratios):.3f} – {max(ratios):.3f}"
            results.append(Result(f"{name}: the same, least and most", spread))
    show_table(f"{size}; medians of {rounds}", rows)
    show_results("What EXAID changes: answer, its text, status, the team's tokens; time", results)


def _differing(ours: Run, off: Run) -> int:
    """Count the questions whose answer or team tokens differ from a run without EXAID."""
    with_exaid, without = ours.answers(), off.answers()
    if with_exaid.keys() != without.keys():
        raise BenchmarkError("two runs did not answer the same questions")
    return sum(answer != without[question] for question, answer in with_exaid.items())


# -- all defaults ---------------------------------------------------------------------------------


def measure_defaults(place: Workspace, questions: int, connections: Sequence[int]) -> None:
    """Print summaries, their delay and the wall time of runs with all defaults (part 3).

    Args:
        place: Workspace of the runs.
        questions: Number of questions per run.
        connections: `--max-connections` of each run.
    """
    rows = []
    results = []
    with Provider(*_USUAL_LATENCY, "--seed", _SEED, "--fixed-lengths") as provider:
        for limit in connections:
            alone, alone_seconds = _whole_run(place, provider, questions, limit, OFF)
            seen, seconds = _whole_run(place, provider, questions, limit, TriggerPolicy.FULL_EXAID)
            questions = len(alone.records)  # the data set may be smaller
            first, newest = _waits_for_summaries(seen)
            summarized = sum(map(_has_summary, seen.records))
            rows.append(
                {
                    "connections": limit,
                    "questions with a summary": f"{summarized} of {questions}",
                    "summaries": seen.count("summaries"),
                    "first word to first summary, s (median, p95)": _middle_and_p95(first),
                    "newest word to summary, s": _middle_and_p95(newest),
                    "whole run without EXAID, s": f"{alone_seconds:.1f}",
                    "with it, s": f"{seconds:.1f}",
                    "of that after the last answer, s": f"{_last_summaries(seen):.1f}",
                    "EXAID / team tokens": f"{seen.exaid_tokens / seen.team_tokens:.2f}",
                }
            )
            at = f"{limit} connections"
            results += [
                judged(f"{at}: questions without a summary", questions - summarized, 0, digits=0),
                judged(f"{at}: first word to first summary, median", median(first), 10, " s"),
                judged(f"{at}: newest word to summary, median", median(newest), 5, " s"),
                judged(f"{at}: the same, p95", p95(newest), 15, " s"),
                judged(f"{at}: answered otherwise", _differing(seen, alone), 0, digits=0),
                judged(f"{at}: whole run / without EXAID", seconds / alone_seconds, 1.3),
            ]
    show_table(f"{questions} questions, adaptive, all defaults, calls of 0.3 to 1.5 s", rows)
    show_results("EXAID by default", results)


def _whole_run(
    place: Workspace, provider: Provider, questions: int, connections: int, policy: str
) -> tuple[Run, float]:
    state = place.new_state()
    flags = ("--max-connections", str(connections), "--exaid", policy)
    ended = place.run(provider, state, *_first(questions), *flags)
    return _run_in(state), ended.wall_seconds


def _has_summary(record: Mapping[str, Any]) -> bool:
    """Return whether any summary of a record has content and was made from text."""
    return any(
        summary["source_seqs"] and any(summary[name] != PLACEHOLDER for name in LIMITS)
        for summary in record["exaid"]["summaries"]
    )


def _waits_for_summaries(seen: Run) -> tuple[list[float], list[float]]:
    """Return seconds from first word to first summary, and from newest word to each summary."""
    first: list[float] = []
    newest: list[float] = []
    written = _written_at(seen)
    for record in seen.records:
        case_id = record["case_id"]
        covered = list(_covered(seen.folder, case_id, written[case_id]))
        if covered:
            trace = read_trace(seen.folder / "traces" / f"{case_id}.trace.jsonl.gz")
            said = next(delta.t_ms for turn in trace.turns for delta in turn.deltas)
            first.append(covered[0][1] - said / 1000)
            newest += [moment - max(words_at) for words_at, moment in covered]
    if not first:
        raise BenchmarkError("no question has a summary")
    return first, newest


def _last_summaries(seen: Run) -> float:
    """Return the seconds from the end of the last team call to the end of EXAID's last call."""
    ends: dict[bool, float] = {True: 0.0, False: 0.0}
    for row in seen.ledger:
        end = ms_of(row["started_at"]) / 1000 + row["latency"]
        of_exaid = row["role"] in _ROLES
        ends[of_exaid] = max(ends[of_exaid], end)
    return max(0.0, ends[True] - ends[False])


# -- kills ----------------------------------------------------------------------------------------


def measure_kills(place: Workspace, questions: int, kills: int) -> None:
    """Kill and resume runs, and print what was lost or differs (part 4).

    Args:
        place: Workspace of the runs.
        questions: Number of questions per run.
        kills: Number of runs, each killed once.
    """
    rng = random.Random(0)
    flags = (*_first(questions), *BASIC, "--exaid", TriggerPolicy.FULL_EXAID)
    rows = []
    unrecorded = unfinished = differing = wrong = 0
    with Provider("--latency=0.05", "--latency-spread=0.2", "--fixed-lengths") as provider:
        state = place.new_state()
        seconds = place.run(provider, state, *flags).wall_seconds
        whole = _run_in(state).answers()
        for _ in range(kills):
            state, after = place.new_state(), rng.uniform(0.8, seconds)
            program = place.start(provider, state, *flags)
            time.sleep(after)
            program.kill()
            decided, recorded = _decided(state), lines_of(state, "samples.jsonl")
            done = lines_of(state, "summaries.jsonl")
            place.run(provider, state, *flags)
            seen = _run_in(state)
            left = questions - sum(map(_has_summary, seen.records))
            rows.append(
                {
                    "killed after": f"{after:.2f} s",
                    "decisions in calls.jsonl": decided,
                    "records": recorded,
                    "questions that EXAID was done with": done,
                    "without a summary in the end": left,
                }
            )
            unrecorded += max(0, decided - recorded - 1)  # one record may be about to be written
            unfinished += left
            differing += seen.answers() != whole
            wrong += not _sums_are_right(seen)
    title = f"{questions} basic questions with EXAID, {seconds:.1f} s without a kill"
    show_table(title, rows)
    results = [
        judged("decided questions without a record, but for one", unrecorded, 0, digits=0),
        judged("questions without a summary after the next start", unfinished, 0, digits=0),
        judged("runs with other answers or team tokens in the end", differing, 0, digits=0),
        judged("runs whose totals are not the sums of their files", wrong, 0, digits=0),
    ]
    show_results(f"SIGKILL, {kills} times, EXAID on", results)


def _decided(state: Path) -> int:
    """Return the number of questions whose arbitrator has replied."""
    folder = run_folder(state)
    path = folder / "calls.jsonl" if folder else None
    if path is None or not path.is_file():
        return 0
    arbitrated = (row for row in _rows(path) if row["phase"] == "arbitrate" and row["model"])
    return len({row["case_id"] for row in arbitrated})


def _sums_are_right(seen: Run) -> bool:
    """Return whether the totals in `run.json` match the records and the ledger."""
    run_json = json.loads((seen.folder / "run.json").read_text("utf-8"))
    totals, spent = run_json["totals"], run_json["spent"]
    fresh = [row for row in seen.ledger if not row["cached"]]
    return bool(
        totals["questions"] == len(seen.records)
        and totals["total_tokens"] == seen.team_tokens
        and totals["exaid_tokens"] == seen.exaid_tokens
        and totals["exaid"]["questions"] == len(seen.records)
        and spent["input_tokens"] == sum(row["input_tokens"] for row in fresh)
        and spent["output_tokens"] == sum(row["output_tokens"] for row in fresh)
    )


# -- sums -----------------------------------------------------------------------------------------


def measure_sums(place: Workspace, questions: int) -> None:
    """Print the token sums of a run in which EXAID falls behind (part 5)."""
    with Provider("--latency=0.6", "--fixed-lengths", "--seed", _SEED) as provider:
        state = place.new_state()
        place.run(provider, state, *_first(questions), "--max-connections", "16")
    seen = _run_in(state)
    run_json = json.loads((seen.folder / "run.json").read_text("utf-8"))
    rows, different = [], 0
    for what, in_ledger, in_records, name in (
        ("teams", _tokens(seen.ledger) - _tokens(seen.calls), seen.team_tokens, "total_tokens"),
        ("EXAID", _tokens(seen.calls), seen.exaid_tokens, "exaid_tokens"),
    ):
        sums = {
            "ledger": in_ledger,
            "records": in_records,
            "run.json": run_json["totals"][name],
        }
        different += len(set(sums.values())) > 1
        rows.append({"tokens of": what, **{where: f"{tokens:,}" for where, tokens in sums.items()}})
    show_table(f"{questions} questions, all defaults, calls of 0.6 s, 16 connections", rows)
    suspended = lines_of(state, "summaries.jsonl") - questions
    results = [
        judged("figures that are not the sum of the ledger's rows", different, 0, digits=0),
        judged("questions without a summary", sum(not _has_summary(r) for r in seen.records), 0),
    ]
    show_results(f"{len(seen.calls)} calls of EXAID; suspended {suspended} times", results)


def _tokens(rows: Sequence[Mapping[str, Any]]) -> int:
    return sum(row["input_tokens"] + row["output_tokens"] for row in rows)


def _middle_and_p95(values: Sequence[float]) -> str:
    return f"{median(values):.1f}, {p95(values):.1f}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; return the exit status."""
    parser = make_parser("exaid", __doc__)
    add = parser.add_argument
    add("--questions", type=int, default=20, help="of a run [%(default)s]")
    add("--in-flight", type=int, default=2, help="questions in progress at once [%(default)s]")
    add("--connections", type=int, default=16, help="--max-connections of main.py [%(default)s]")
    add("--latency", type=float, default=0.2, help="of the team's calls, seconds [%(default)s]")
    add("--retries", type=int, default=5, help="of a call that fails [%(default)s]")
    add("--rounds", type=int, default=3, help="runs of each variant in part 2 [%(default)s]")
    add("--parts", default="1,2,3,4,5", help="[%(default)s]")
    add("--kills", type=int, default=20, help="runs of part 4 [%(default)s]")
    add("--kill-questions", type=int, default=40, help="of such a run [%(default)s]")
    add("--default-questions", type=int, default=60, help="of a run in part 3 [%(default)s]")
    add("--sum-questions", type=int, default=150, help="of the run of part 5 [%(default)s]")
    add("--default-connections", default="16,4,64", help="in part 3 [%(default)s]")
    quick = {
        "questions": 4,
        "latency": 0.05,
        "retries": 1,
        "rounds": 1,
        "default_questions": 3,
        "default_connections": "16",
        "kills": 2,
        "kill_questions": 6,
        "sum_questions": 4,
    }
    options = parse(parser, argv, quick)
    size = Size(
        options.questions,
        options.in_flight,
        options.connections,
        options.latency,
        options.retries,
    )
    show_machine("exaid")
    parts = options.parts.split(",")
    with workspace(1) as place, make_provider(size) as provider:
        if "1" in parts:
            measure_cost(place, provider, size)
        if "2" in parts:
            measure_independence(place, provider, size, options.rounds)
        if "3" in parts:
            connections = [int(limit) for limit in options.default_connections.split(",")]
            measure_defaults(place, options.default_questions, connections)
        if "4" in parts:
            measure_kills(place, options.kill_questions, options.kills)
        if "5" in parts:
            measure_sums(place, options.sum_questions)
    return 0


if __name__ == "__main__":
    sys.exit(main())
