"""Replay frozen traces through EXAID in virtual time and write the run logs.

Deltas arrive and timers fire at their virtual times, but nothing sleeps. Latencies are the ones
recorded with each reply, so that a replay from recorded replies gives the same bytes each time.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakValueDictionary

from evals.files import file_hash
from evals.manifest import json_hash
from evals.run_logs import read_run_log
from evals.trace_text import content_events
from evals.variants import Variant
from exaid_core.exaid import EXAID
from exaid_core.prompts import PROMPTS
from exaid_core.trace.files import RecordError, dump_line, write_gz
from exaid_core.trace.run_records import (
    ConceptExtractorInfo,
    RunMeta,
    StoplistsProvenance,
    TimestampDerivation,
)
from exaid_core.trace.traces import Trace, read_trace
from mdagents_llm.chat import ChatModel, ChatReply, ChatRequest, OnText
from mdagents_llm.clock import timestamp_of
from mdagents_llm.errors import (
    BenchError,
    ConfigError,
    ErrorKind,
    ProviderError,
    StructuredOutputError,
)
from mdagents_llm.layers.cache import cache_key

_FAULT_OF_THE_REQUEST = frozenset({ErrorKind.CONTEXT_LENGTH, ErrorKind.BAD_REQUEST})
"""Errors that would recur on retry and so count as failures of EXAID in the measurement."""


_CALLS = {"V0": 1.2, "V1": 0.1, "V2": 1.7, "V3": 0.9, "V4": 1.3}
"""Approximate relative number of model calls in a replay, by variant."""


@dataclass(frozen=True, slots=True)
class Models:
    """The models of EXAID and their names."""

    buffer_agent: ChatModel
    summarizer: ChatModel
    names: tuple[str, str]


class OneAtATime:
    """A model wrapper that never sends two identical requests concurrently.

    Variants share prompts. If a model's replies vary, two concurrent replays would continue with
    different replies, but only one is recorded, so the other replay could not be reproduced.

    Args:
        inner: Model with its recorded replies.
        name: Identifier of the model.
    """

    def __init__(self, inner: ChatModel, name: str) -> None:
        self._inner = inner
        self._name = name
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer one request, after any identical request in progress."""
        lock = self._locks.setdefault(cache_key(self._name, request), asyncio.Lock())
        async with lock:
            return await self._inner.generate(request, on_text)


@dataclass(frozen=True, slots=True)
class Setting:
    """The settings shared by the replays of a set of traces."""

    models: Models
    folder: Path
    """Folder of the run logs, which are `{folder}/{variant}/{case}.jsonl.gz`."""
    trace_dataset_hash: str | None
    extractor: ConceptExtractorInfo
    stoplists: StoplistsProvenance

    def eval_run_id(self, variant: Variant) -> str:
        """Return an id derived from the variant's settings, models, prompts and trace set."""
        identity = json_hash([variant.identity(), self.models.names, PROMPTS.hashes]).removeprefix(
            "sha256:"
        )
        dataset = (self.trace_dataset_hash or json_hash("none")).removeprefix("sha256:")
        return f"eval-{variant.variant_id}-{identity[:8]}-{dataset[:8]}"

    def path(self, variant: Variant, case_id: str) -> Path:
        """Return the path of the run log of a case under a variant."""
        return self.folder / variant.variant_id / f"{case_id}.jsonl.gz"


@dataclass(frozen=True, slots=True)
class Replayed:
    """The outcome of one trace under one variant."""

    path: Path
    """Path of the run log, or of the trace if it could not be read."""
    was_there: bool = False
    error: str = ""
    """Reason why the run log is missing, on one line; empty if it exists."""


async def replay_all(
    setting: Setting, variants: Sequence[Variant], files: Sequence[Path], *, jobs: int, fresh: bool
) -> AsyncIterator[Replayed]:
    """Replay each trace under each variant concurrently and yield the outcomes.

    Existing run logs are kept unless `fresh` is set.

    Args:
        setting: Settings shared by all replays.
        variants: Variants to replay.
        files: Trace files.
        jobs: Maximum number of concurrent replays.
        fresh: Whether to overwrite existing run logs.

    Raises:
        ConfigError: An existing run log was made with different settings.
    """
    free = asyncio.Semaphore(jobs)

    async def one(path: Path, variant: Variant) -> Replayed:
        async with free:
            try:
                trace = await asyncio.to_thread(read_trace, path)
            except RecordError as error:  # the file changed after it was checked
                return Replayed(path, error=str(error))
            target = setting.path(variant, trace.meta.case_id)
            if not fresh and target.exists():
                try:
                    _check_is_same(target, setting.eval_run_id(variant))
                except RecordError as error:
                    return Replayed(target, error=f"{error}; --fresh makes it again")
                return Replayed(target, was_there=True)
            try:
                lines = await replay(trace, variant, setting, file_hash(path))
            except _UnmeasurableError as error:
                return Replayed(target, error=f"{target}: {error}")
            await asyncio.to_thread(write_gz, target, lines)
            return Replayed(target)

    # Calls within a replay are sequential, so start long replays first: one that starts last
    # would run alone at the end.
    pairs = [(variant, path) for variant in variants for path in files]
    pairs.sort(key=lambda pair: _CALLS[pair[0].variant_id] * _size(pair[1]), reverse=True)
    tasks = [asyncio.create_task(one(path, variant)) for variant, path in pairs]
    try:
        for done in asyncio.as_completed(tasks):
            yield await done
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def replay(
    trace: Trace, variant: Variant, setting: Setting, trace_file_hash: str
) -> list[bytes]:
    """Replay one trace and return the lines of its run log.

    Args:
        trace: Trace to replay.
        variant: Settings of EXAID.
        setting: Models and provenance.
        trace_file_hash: Hash of the trace file.
    """
    now_ms = trace.meta.t0_emitted_ms
    spent = _Spent()
    models = setting.models
    exaid = EXAID(
        buffer_llm=_Timed(models.buffer_agent, spent),
        summarizer_llm=_Timed(models.summarizer, spent),
        config=variant.exaid_config(),
        case_id=trace.meta.case_id,
        now_ms=lambda: now_ms,
        monotonic=lambda: spent.seconds,
    )
    for event in content_events(trace):
        now_ms = event.t_ms
        exaid.advance(now_ms)
        exaid.on_event(event)
    await exaid.close(math.inf)
    if spent.error is not None:
        raise _UnmeasurableError(" ".join(str(spent.error).split()))
    first, *rest = exaid.log.lines(
        created_at=timestamp_of(trace.meta.t0_emitted_ms),
        mas_run_id=trace.meta.mas_run_id,
        eval_run_id=setting.eval_run_id(variant),
    )
    meta = RunMeta.model_validate_json(first).model_copy(
        update={
            "trace_file_hash": trace_file_hash,
            "trace_dataset_hash": setting.trace_dataset_hash,
            "concept_extractor": setting.extractor,
            "stoplists_provenance": setting.stoplists,
            "timestamp_derivation": TimestampDerivation(
                method="trace_t_emitted_ms",
                derived_from_t_emitted=len(rest),
                derived_from_fallback=0,
                missing_t_emitted_ms_count=0,
            ),
        }
    )
    return [dump_line(meta), *rest]


class _UnmeasurableError(Exception):
    """Raised when a model could not be reached, which says nothing about EXAID."""


@dataclass(slots=True)
class _Spent:
    """Total model latency of one replay, and the error that ends it, if any."""

    seconds: float = 0.0
    error: BenchError | None = None


class _Timed:
    """A model wrapper that collects recorded latencies and errors.

    Args:
        inner: Wrapped model.
        spent: Collector of latencies and errors.
    """

    def __init__(self, inner: ChatModel, spent: _Spent) -> None:
        self._inner = inner
        self._spent = spent

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer one request and add its latency; reraise an earlier error."""
        if self._spent.error is not None:
            raise self._spent.error  # later replies cannot be used
        try:
            reply = await self._inner.generate(request, on_text)
        except StructuredOutputError:
            raise
        except BenchError as error:
            if not (isinstance(error, ProviderError) and error.kind in _FAULT_OF_THE_REQUEST):
                self._spent.error = error
            raise
        self._spent.seconds += reply.latency
        return reply


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _check_is_same(path: Path, eval_run_id: str) -> None:
    there = read_run_log(path).meta.eval_run_id
    if there != eval_run_id:
        raise ConfigError(
            f"{path} is of {there}, not of {eval_run_id}: other settings, models, prompts or "
            "traces; choose another --out, or --fresh to make it again"
        )
