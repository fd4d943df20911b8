"""One interface to any language model, independent of the medical domain."""

# No `from __future__` here: the version check below must also run on a Python that does not know
# annotations.

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

if sys.version_info < (3, 11):  # noqa: UP036 - a clone is run without pip, which would refuse
    from mdagents_llm.interpreter import refuse_old

    refuse_old()

if TYPE_CHECKING:
    from types import TracebackType

    from mdagents_llm.chat import (
        CallLabels,
        ChatMessage,
        ChatModel,
        ChatReply,
        ChatRequest,
        OnText,
        StopReason,
        TokenUsage,
    )
    from mdagents_llm.config import LLMRole
    from mdagents_llm.errors import (
        BenchError,
        ConfigError,
        EndpointDown,
        ErrorKind,
        LimitExceeded,
        ProviderError,
        StorageError,
        StructuredOutputError,
    )
    from mdagents_llm.ledger import Price
    from mdagents_llm.llm_registry import get_llm
    from mdagents_llm.model_configs import ModelInfo, PictureLimits, ProviderInfo
    from mdagents_llm.pictures import Picture
    from mdagents_llm.providers.http_errors import status_error
    from mdagents_llm.wire import Client, Endpoint

__all__ = [
    "BenchError",
    "CallLabels",
    "ChatMessage",
    "ChatModel",
    "ChatReply",
    "ChatRequest",
    "Client",
    "ConfigError",
    "Endpoint",
    "EndpointDown",
    "ErrorKind",
    "LLMRole",
    "LimitExceeded",
    "ModelInfo",
    "OnText",
    "Picture",
    "PictureLimits",
    "Price",
    "ProviderError",
    "ProviderInfo",
    "StopReason",
    "StorageError",
    "StructuredOutputError",
    "TokenUsage",
    "get_llm",
    "status_error",
]

_MODULES = {
    "BenchError": "errors",
    "Client": "wire",
    "ConfigError": "errors",
    "Endpoint": "wire",
    "EndpointDown": "errors",
    "ErrorKind": "errors",
    "LLMRole": "config",
    "LimitExceeded": "errors",
    "ModelInfo": "model_configs",
    "Picture": "pictures",
    "PictureLimits": "model_configs",
    "Price": "ledger",
    "ProviderError": "errors",
    "ProviderInfo": "model_configs",
    "StorageError": "errors",
    "StructuredOutputError": "errors",
    "get_llm": "llm_registry",
    "status_error": "providers.http_errors",
}


def _uncaught(
    kind: "type[BaseException]", error: BaseException, trace: "TracebackType | None"
) -> None:
    """Pass an uncaught exception to `mdagents_llm.interpreter`, which is imported only for this."""
    from mdagents_llm.interpreter import uncaught

    uncaught(kind, error, trace)


def _is_a_program() -> bool:
    """Return whether the running program may be one of the clone that contains this package."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    if file is None:
        return sys.argv[:1] == ["-m"]  # while the package of the module is imported
    clone, _, _ = os.path.realpath(__file__).rpartition(f"{os.sep}mdagents_llm{os.sep}")
    folder, _, _ = os.path.realpath(file).rpartition(os.sep)
    return folder in (clone, f"{clone}{os.sep}scripts")


if _is_a_program():  # a library leaves the hook alone
    sys.excepthook = _uncaught


def __getattr__(name: str) -> object:
    """Import a public name on first use, so that a program loads only the parts it needs."""
    if name not in __all__:
        raise AttributeError(f"module 'mdagents_llm' has no attribute {name!r}")
    return getattr(import_module(f"mdagents_llm.{_MODULES.get(name, 'chat')}"), name)


def __dir__() -> list[str]:
    """Return the public names, for completion."""
    return sorted({*globals(), *__all__})
