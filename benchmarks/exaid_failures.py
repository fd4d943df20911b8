"""Measure errors, waits and cost for a caller of the library when EXAID's models fail.

    python -m benchmarks.exaid_failures

A real trace with an alert in its middle is fed to `EXAID()` through `received_trace`, a hundred
words at a time, once with working models and once per failure mode, on the fake provider. A table
shows the first visible failure and its time, the caller's longest and total wait, the text in all
prompts relative to working models, and the coverage. The hanging endpoint is measured with timeouts
of 1 and 3 seconds, a tenth of the defaults.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from benchmarks.harness import (
    SHARED,
    Result,
    judged,
    make_parser,
    parse,
    show_machine,
    show_results,
    show_table,
)
from exaid_core import EXAID, ExaidConfig
from exaid_core.ctu import ctu
from exaid_core.schema.agent_summary import LIMITS
from exaid_core.trace.traces import read_trace
from mdagents_llm.errors import ConfigError
from tests.fake_provider import FakeProvider, Fault, SeenRequest
from tests.support.medical_prose import prose

_WORDS = 100
_ALERT = "The patient is in cardiac arrest, and CPR has begun."
_REPLY = {name: f"Under review: {name}." for name in LIMITS}
_CUT = '{"status_action": "Cardiac until exclud'
_PROSE = "I think the patient is being reviewed and should stay where he is."


@dataclass(frozen=True, slots=True)
class Way:
    """A failure mode of the models."""

    name: str
    fault: Fault | None = None
    """Fault that hits all requests; None for no fault."""
    summary: str | dict[str, Any] = field(default_factory=lambda: dict(_REPLY))
    """Reply of the summarizer."""
    base_url: str = ""
    """Base URL of an endpoint other than the fake provider; empty uses the fake provider."""
    model: Any = None
    """Object passed to `EXAID` in place of a model."""


WAYS = (
    Way("none: all works"),
    Way("wrong key", Fault.UNAUTHORIZED),
    Way("dead port", base_url="http://127.0.0.1:9/v1"),
    Way("hanging endpoint", Fault.HANG),
    Way("500 always", Fault.SERVER_ERROR),
    Way("nulls", summary=dict.fromkeys(LIMITS)),
    Way("cut JSON", summary=_CUT),
    Way("prose", summary=_PROSE),
    Way("refusal", Fault.REFUSAL),
    Way("text too long", Fault.CONTEXT_LENGTH),
    Way("wrong type", model="gpt-4o"),
)


@dataclass(frozen=True, slots=True)
class Seen:
    """The outcome of feeding a trace to EXAID."""

    first: str
    """Health state and message at the first visible failure, or the constructor's error."""
    seconds_until_first: float
    waits: Sequence[float]
    """Seconds that each call by the caller took."""
    prompt_ctu: int
    calls: int
    summaries: int
    tail_loss: float
    missed_alerts: int


def texts(count: int) -> list[str]:
    """Return trace text in pieces of a hundred words, with the alert in the middle."""
    paths = sorted((SHARED / "traces").glob("*.trace.jsonl.gz"))
    if paths:
        turns = chain.from_iterable(read_trace(path).turns for path in paths)
        words = " ".join(turn.text for turn in turns).split()[: count * _WORDS]
    else:
        words = prose(count * _WORDS, 1).split()
    pieces = [" ".join(words[at : at + _WORDS]) for at in range(0, len(words), _WORDS)]
    pieces.insert(len(pieces) // 2, _ALERT)
    return pieces


async def watch(way: Way, pieces: Sequence[str]) -> Seen:
    """Feed the text to EXAID and check its health after each call."""
    started = time.perf_counter()
    config = ExaidConfig()
    if way.fault is Fault.HANG:
        config = ExaidConfig(attempt_timeout=1.0, call_timeout=3.0)
    try:
        exaid = EXAID(config=config, buffer_llm=way.model)
    except (TypeError, ConfigError) as error:
        refusal = f"{type(error).__name__}: {error}"
        return Seen(refusal, time.perf_counter() - started, [], 0, 0, 0, 1, 1)
    first, first_at, waits = "", 0.0, []
    async with exaid:
        for piece in pieces:
            before = time.perf_counter()
            await exaid.received_trace("doctor", piece)
            waits.append(time.perf_counter() - before)
            failure = exaid.health.last_failure
            if failure is not None and not first:
                first_at = time.perf_counter() - started
                first = f"{exaid.health.state}: {failure.source}: {failure.message}"
        before = time.perf_counter()
        await exaid.finalize()
        waits.append(time.perf_counter() - before)
    usages = [decision.llm_usage for decision in exaid.log.decisions]
    usages += [summary.llm_usage for summary in exaid.log.summaries]
    return Seen(
        first or str(exaid.health.state),
        first_at,
        waits,
        sum(usage.prompt_ctu for usage in usages),
        exaid.health.calls,
        len(exaid.summaries),
        exaid.tail_loss(),
        exaid.missed_alerts(),
    )


def asks_for_summary(request: SeenRequest) -> bool:
    """Return whether a request comes from the summarizer."""
    return "differential_rationale" in str(request.schema)


def measure(pieces: Sequence[str], ways: Sequence[Way]) -> Iterator[tuple[Way, Seen]]:
    """Yield each failure mode with its outcome."""
    for way in ways:
        with FakeProvider(seed=1, keep_calls=False) as provider:
            provider.when(asks_for_summary, way.summary)
            if way.fault is not None:
                provider.fail_next(way.fault, sys.maxsize)
            os.environ["OPENAI_BASE_URL"] = way.base_url or provider.openai_base_url
            yield way, asyncio.run(watch(way, pieces))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; return the exit status."""
    parser = make_parser("exaid_failures", __doc__)
    parser.add_argument("--pieces", type=int, default=200, help="of 100 words [%(default)s]")
    options = parse(parser, argv, {"pieces": 6})
    show_machine("exaid_failures")
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_LLM_PROVIDER"))]:
        del os.environ[name]
    os.environ["OPENAI_API_KEY"] = "key-of-nobody"
    pieces = texts(options.pieces)
    seen = list(measure(pieces, WAYS))
    (_, works), *failing = seen
    rows = [
        {
            "failure": way.name,
            "the caller sees": what.first[:70],
            "after, s": f"{what.seconds_until_first:.1f}",
            "longest call, s": f"{max(what.waits, default=0):.1f}",
            "all calls, s": f"{sum(what.waits):.1f}",
            "model calls": what.calls,
            "prompts / those that work": f"{what.prompt_ctu / works.prompt_ctu:.2f}",
            "summaries": what.summaries,
            "not covered": f"{what.tail_loss:.0%}",
            "missed alerts": what.missed_alerts,
        }
        for way, what in seen
    ]
    show_table(f"{len(pieces)} calls, {sum(map(ctu, pieces)):,} CTU of text", rows)
    dearest = max(what.prompt_ctu for _, what in failing) / works.prompt_ctu
    unseen = sum(what.first == "ok" for _, what in failing)
    results: list[Result] = [
        judged("failures that nothing tells of", unseen, 0, digits=0),
        judged("prompts of the dearest failure / those that work", dearest, 1.0),
    ]
    show_results("Failures", results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
