"""Flags of how a run is carried out and of the files that it writes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from mdagents.runs.flags.bounds import AtLeast1
from mdagents.runs.flags.flag import Flag, Flags, StartFlag
from mdagents.settings import EngineName
from mdagents_llm.layers.cache import CacheMode


class OutputFlags(Flags):
    """Where questions are answered, and what is kept of a run."""

    output_dir: Annotated[Path, StartFlag("folder for runs", "DIR")] = Path("output")
    engine: Annotated[EngineName, StartFlag("where questions are answered")] = EngineName.LOCAL
    ray_address: Annotated[
        str, StartFlag("head of a Ray cluster, or auto [a cluster on this machine]", "HOST:PORT")
    ] = ""
    ray_workers: Annotated[
        AtLeast1 | None, StartFlag("worker processes [one per CPU of the cluster; this machine 2]")
    ] = None
    cache: Annotated[
        CacheMode, StartFlag("cache replies and reuse them; only: replay without network")
    ] = CacheMode.ON
    batch: Annotated[
        bool, Flag("use the provider's batch API (half price, up to 24 h)", in_name=True)
    ] = False
    fresh: Annotated[bool, StartFlag("start over and keep the old run under a dated name")] = False
    retry_errors: Annotated[bool, StartFlag("answer questions that ended in api_error again")] = (
        False
    )
    log_prompts: Annotated[bool, StartFlag("write prompts and replies into calls.jsonl")] = False
    keep_reasoning: Annotated[
        bool,
        StartFlag("keep the hidden reasoning that endpoints return, in calls.jsonl and on pages"),
    ] = False
    """Hidden reasoning is asked for where an endpoint shows it only then."""
