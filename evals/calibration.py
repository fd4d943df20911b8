"""Sweep TokenGate settings over frozen traces, without a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean, median

from evals.concepts import ConceptExtractor
from evals.trace_text import content_events, content_turns
from exaid_core.ctu import ctu
from exaid_core.prompts import PROMPTS
from exaid_core.token_gate.token_gate import LEGACY, Flush, FlushReason, GateCore, GateProfile
from exaid_core.trace.events import EventKind
from exaid_core.trace.traces import Trace
from mdagents_llm.errors import ConfigError

_ENDS_ANYWAY = frozenset({FlushReason.END_OF_TRACE, FlushReason.TURN_END})


@dataclass(frozen=True, slots=True)
class Outcome:
    """The effect of a TokenGate setting on the traces."""

    profile: GateProfile
    flushes_per_case: float
    """Mean number of chunks per case: the updates if each chunk were summarized."""
    median_ctu: float | None
    """Median CTU of the regular chunks, excluding ends of turns; None without such chunks."""
    whole_terms: float | None
    """Mean share of a trace's concepts that are named within one chunk, so not split; None if no
    trace names a concept."""
    wait_ms: float | None
    """Mean time in ms from a delta until its chunk is flushed; None without chunks."""
    cost_ctu: float
    """CTU per case of the buffer agent's prompts: each chunk plus the system prompt."""


def grid(
    min_words: Iterable[int],
    max_words: Iterable[int],
    silence_timers: Iterable[float] = (LEGACY.silence_timer,),
    max_wait_timeouts: Iterable[float] = (LEGACY.max_wait_timeout,),
) -> list[GateProfile]:
    """Return all valid combinations of the given values.

    Raises:
        ConfigError: No combination is valid.
    """
    profiles = []
    for low, high, silence, wait in product(
        min_words, max_words, silence_timers, max_wait_timeouts
    ):
        try:
            profiles.append(GateProfile(low, high, silence, wait))
        except ValueError:
            continue
    if not profiles:
        raise ConfigError("no setting is possible: min words must not be above max words")
    return profiles


def sweep(
    traces: Sequence[Trace], profiles: Sequence[GateProfile], extractor: ConceptExtractor
) -> Iterable[Outcome]:
    """Yield the outcome of each setting."""
    of_traces = [
        extractor.extract("\n".join(turn.text for turn in content_turns(trace))) for trace in traces
    ]
    prompt = ctu(PROMPTS.render("buffer_system"))
    for profile in profiles:
        by_case = [list(flushes(trace, profile)) for trace in traces]
        chunks = [chunk for case in by_case for chunk in case]
        regular = _regular(chunks)
        kept = [
            len(frozenset().union(*(extractor.extract(f.text) for f, _ in case)) & of_trace)
            / len(of_trace)
            for case, of_trace in zip(by_case, of_traces, strict=True)
            if of_trace
        ]
        yield Outcome(
            profile=profile,
            flushes_per_case=len(chunks) / len(traces),
            median_ctu=median(regular) if regular else None,
            whole_terms=fmean(kept) if kept else None,
            wait_ms=fmean(wait for _, wait in chunks) if chunks else None,
            cost_ctu=sum(ctu(f.text) + prompt for f, _ in chunks) / len(traces),
        )


def chunk_of_v3(traces: Iterable[Trace], gate: GateProfile) -> int | None:
    """Return the median CTU of V0's regular flushes, in whole CTU; None without such flushes.

    With chunks of that size, V3 differs from V0 in where chunks end, not in how large they are.

    Args:
        traces: Traces that will be replayed.
        gate: TokenGate profile of V0.
    """
    regular = [size for trace in traces for size in _regular(flushes(trace, gate))]
    return max(1, round(median(regular))) if regular else None


def _regular(chunks: Iterable[tuple[Flush, float]]) -> list[int]:
    """Return the CTU of each chunk that is not the end of a turn."""
    return [ctu(flush.text) for flush, _ in chunks if flush.reason not in _ENDS_ANYWAY]


def flushes(trace: Trace, profile: GateProfile) -> Iterable[tuple[Flush, float]]:
    """Yield the chunks of a trace in virtual time, each with the mean wait of its deltas in ms.

    The mean wait is that of the first and last delta, assuming text arrives at an even pace.
    """
    gate = GateCore(profile)
    now = 0.0
    for event in content_events(trace):
        now = event.t_ms / 1000
        yield from ((flush, _wait(flush, expired)) for flush, expired in gate.advance(now))
        if event.kind is EventKind.DELTA:
            for flush in gate.add(event.agent_id, event.text, seq=event.seq, now=now):
                yield flush, _wait(flush, now)
        elif event.kind is EventKind.END and (
            rest := gate.flush(event.agent_id, FlushReason.TURN_END)
        ):
            yield rest, _wait(rest, now)
    for agent_id in gate.agents():
        if rest := gate.flush(agent_id):
            yield rest, _wait(rest, now)


def _wait(flush: Flush, now: float) -> float:
    return 1000 * (now - (flush.first_at + flush.last_at) / 2)
