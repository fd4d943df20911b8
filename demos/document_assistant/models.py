"""The model of the program: chosen by name, or the first provider that has a key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from langchain_core.language_models import BaseChatModel

from mdagents_llm.config import parse_environment, read_variables
from mdagents_llm.endpoints import Runtime, check_reachable
from mdagents_llm.langchain_model import ChatModelAdapter
from mdagents_llm.ledger import Ledger
from mdagents_llm.llm_registry import AUTO, ModelChooser, ModelRegistry
from mdagents_llm.model_configs import load_model_configs

_TOKENS, _TOKENS_ON_THIS_MACHINE = 2048, 160  # maximum tokens of a reply


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A model that is ready to use."""

    chat_model: BaseChatModel
    name: str
    is_small: bool
    """Whether the model is too small to give correct answers."""


@asynccontextmanager
async def opened_model(
    name: str = AUTO, base_url: str = "", ledger: Ledger | None = None
) -> AsyncIterator[OpenedModel]:
    """Open a model by name, and close its connections when the block ends.

    Args:
        name: `provider/name`, a known name, or `auto` for the first provider with a key, else the
            local model.
        base_url: URL of the user's own endpoint; empty for the provider's.
        ledger: Ledger in which the calls are booked; None: one that nobody reads.

    Raises:
        ConfigError: The model does not exist, or there is no key for it.
    """
    environment, configs = parse_environment(read_variables()), load_model_configs()
    spec = ModelChooser(environment, configs, base_url).parse(name)
    check_reachable(spec, environment, configs)
    registry = ModelRegistry(Runtime(environment, ledger or Ledger()))
    is_local = spec.is_local
    try:
        yield OpenedModel(
            ChatModelAdapter(
                registry.model(spec), max_tokens=_TOKENS_ON_THIS_MACHINE if is_local else _TOKENS
            ),
            str(spec),
            configs.info(spec.provider, spec.name).is_small,
        )
    finally:
        await registry.aclose()
