"""The model that the program asks: by its name, or the first that there is a key for."""

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

_TOKENS, _TOKENS_ON_THIS_MACHINE = 2048, 160  # of a reply


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A model that can be asked."""

    chat_model: BaseChatModel
    name: str
    is_small: bool
    """Whether it is too small to be right."""


@asynccontextmanager
async def opened_model(name: str = AUTO, base_url: str = "") -> AsyncIterator[OpenedModel]:
    """Open the model of a name; its connections end with the block.

    Args:
        name: `provider/name`, a known name, or `auto`: the first provider with a key, else the
            model on this machine.
        base_url: Of an endpoint of the user's; empty for none.

    Raises:
        ConfigError: There is no such model, or no key for it.
    """
    environment, configs = parse_environment(read_variables()), load_model_configs()
    spec = ModelChooser(environment, configs, base_url).parse(name)
    check_reachable(spec, environment, configs)
    registry = ModelRegistry(Runtime(environment, Ledger()))
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
