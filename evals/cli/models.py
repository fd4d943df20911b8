"""Models for the evals command-line programs."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from evals.replay import Models, OneAtATime
from mdagents_llm.clock import Clock
from mdagents_llm.config import LLMRole, parse_environment, read_variables
from mdagents_llm.endpoints import Runtime
from mdagents_llm.layers.cache import CacheMode
from mdagents_llm.layers.reply_store import ReplyStore
from mdagents_llm.ledger import Ledger
from mdagents_llm.llm_registry import AUTO, ModelChooser, ModelRegistry
from mdagents_llm.model_configs import load_model_configs

REPLIES = Path(".cache") / "replies.sqlite"
"""Database of recorded replies, relative to the run folder."""


_LEAST_CONNECTIONS = 16


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `open_models` reads."""
    add = parser.add_argument
    add(
        "--model",
        default=AUTO,
        metavar="NAME",
        help="model of EXAID: provider/name, `local`, or auto: the role registry [%(default)s]",
    )
    add("--model-base-url", default="", metavar="URL", help="an OpenAI-compatible endpoint")
    add(
        "--cache",
        type=CacheMode,
        choices=list(CacheMode),
        default=CacheMode.ON,
        help="on: record replies and use them again; only: recorded replies without any call; "
        "off [%(default)s]",
    )
    add("--replies", type=Path, metavar="FILE", help=f"recorded replies [OUT/{REPLIES}]")


@contextlib.asynccontextmanager
async def open_models(options: argparse.Namespace, out: Path) -> AsyncIterator[Models]:
    """Open the models chosen on the command line for the duration of the block.

    The endpoint is assumed to be unshared, so `--jobs` raises the number of concurrent calls.

    Raises:
        ConfigError: A model is unknown or cannot be reached.
    """
    environment, configs = parse_environment(read_variables()), load_model_configs()
    chooser = ModelChooser(environment, configs, options.model_base_url)
    team = None if options.model == AUTO else chooser.parse(options.model)
    specs = [
        chooser.for_role(role, team, chosen=team is not None)
        for role in (LLMRole.BUFFER_AGENT, LLMRole.SUMMARIZER)
    ]
    async with contextlib.AsyncExitStack() as opened:
        replies = None
        if options.cache is not CacheMode.OFF:
            replies = ReplyStore(options.replies or out / REPLIES)
            opened.callback(replies.close)
        is_local = any(spec.is_local for spec in specs)  # a local server has few slots
        runtime = Runtime(
            environment,
            Ledger(),
            Clock(),
            configs,
            replies=replies,
            replay=replies if options.cache is CacheMode.ONLY else None,
            max_connections=None if is_local else max(options.jobs, _LEAST_CONNECTIONS),
        )
        registry = ModelRegistry(runtime)
        opened.push_async_callback(registry.aclose)
        buffer_agent, summarizer = (
            OneAtATime(registry.model(spec), f"{spec} {spec.base_url}") for spec in specs
        )
        await registry.prepare()
        yield Models(buffer_agent, summarizer, (str(specs[0]), str(specs[1])))
