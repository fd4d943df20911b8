"""Flags of how a run is carried out and of the files that it writes."""

from __future__ import annotations

import reprlib
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import field_validator

from mdagents.runs.flags.flag import Flag, Flags, StartFlag
from mdagents.settings import OUTPUT_DIR
from mdagents_llm.errors import ConfigError
from mdagents_llm.layers.cache import CacheMode
from mdagents_llm.processes import cores


class OtelTraces(StrEnum):
    """What makes a trace of its own in OpenTelemetry."""

    RUN = "run"
    QUESTION = "question"
    """Each question is a trace that links to that of the run; for runs of thousands of spans."""


class OutputFlags(Flags):
    """Where questions are answered, and what is kept of a run."""

    output_dir: Annotated[Path, StartFlag("folder for runs", "DIR")] = OUTPUT_DIR
    processes: Annotated[
        int | Literal["auto"] | None,
        StartFlag("worker processes; auto: one per core [1; Ray: one per CPU]", "N|auto"),
    ] = None
    ray_address: Annotated[
        str, StartFlag("head of a Ray cluster for the workers, or auto", "HOST:PORT")
    ] = ""
    cache: Annotated[
        CacheMode, StartFlag("cache replies and reuse them; only: replay without network")
    ] = CacheMode.ON
    batch: Annotated[
        bool, Flag("use the provider's batch API (half price, up to 24 h)", in_name=True)
    ] = False
    fresh: Annotated[bool, StartFlag("start over and keep the old run under a dated name")] = False
    retry_errors: Annotated[
        bool, StartFlag("ask questions and turns that ended in api_error again")
    ] = False
    log_prompts: Annotated[bool, StartFlag("write prompts and replies into calls.jsonl")] = False
    keep_reasoning: Annotated[
        bool,
        StartFlag("keep the hidden reasoning that endpoints return, in calls.jsonl and on pages"),
    ] = False
    """Hidden reasoning is asked for where an endpoint shows it only then."""
    otel: Annotated[
        bool, StartFlag("send spans to an OpenTelemetry collector; OTEL_* variables say where")
    ] = False
    otel_text: Annotated[
        bool, StartFlag("with --otel: questions, prompts and replies in the spans as well")
    ] = False
    otel_traces: Annotated[
        OtelTraces, StartFlag("with --otel: one trace for the run, or one per question")
    ] = OtelTraces.RUN

    @field_validator("processes", mode="before")
    @classmethod
    def _number_or_auto(cls, value: object) -> object:
        if value in (None, "auto"):
            return value
        if str(value).isdecimal() and int(str(value)) > 0:
            return int(str(value))
        raise ConfigError(f"--processes is {reprlib.repr(value)} but must be at least 1, or auto")

    @property
    def local_processes(self) -> int:
        """Number of processes of this machine that answer questions where there is no cluster."""
        return cores() if self.processes == "auto" else self.processes or 1

    @property
    def is_distributed(self) -> bool:
        """Whether worker processes answer the questions, on this machine or on a Ray cluster."""
        return bool(self.ray_address) or self.local_processes > 1
