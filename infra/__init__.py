"""Language models: one way to call any of them. Knows nothing of medicine."""

# No `from __future__` here: the line below is for those whose Python does not know annotations.

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if sys.version_info < (3, 11):  # noqa: UP036 - a clone is run without pip, which would refuse
    needed = "error: Python 3.11 or newer is needed, this is {}.{}.{}"
    print(needed.format(*sys.version_info[:3]), file=sys.stderr)
    sys.exit(2)

if TYPE_CHECKING:
    from infra.chat import (
        CallLabels,
        ChatMessage,
        ChatModel,
        ChatReply,
        ChatRequest,
        StopReason,
        TokenUsage,
    )
    from infra.config import LLMRole
    from infra.errors import (
        BenchError,
        ConfigError,
        EndpointDown,
        LimitExceeded,
        ProviderError,
        StorageError,
        StructuredOutputError,
    )
    from infra.llm_registry import get_llm

__all__ = [
    "BenchError",
    "CallLabels",
    "ChatMessage",
    "ChatModel",
    "ChatReply",
    "ChatRequest",
    "ConfigError",
    "EndpointDown",
    "LLMRole",
    "LimitExceeded",
    "ProviderError",
    "StopReason",
    "StorageError",
    "StructuredOutputError",
    "TokenUsage",
    "get_llm",
]

_MODULES = {
    "BenchError": "errors",
    "ConfigError": "errors",
    "EndpointDown": "errors",
    "LLMRole": "config",
    "LimitExceeded": "errors",
    "ProviderError": "errors",
    "StorageError": "errors",
    "StructuredOutputError": "errors",
    "get_llm": "llm_registry",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: a program that wants one part loads no other."""
    if name not in __all__:
        raise AttributeError(f"module 'infra' has no attribute {name!r}")
    return getattr(import_module(f"infra.{_MODULES.get(name, 'chat')}"), name)


def __dir__() -> list[str]:
    """Return the public names, for completion."""
    return sorted({*globals(), *__all__})
