"""Conversion of the arguments of a LangChain call to the settings of a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, PositiveFloat, PositiveInt, ValidationError

from mdagents_llm.chat import CallLabels
from mdagents_llm.errors import ConfigError
from mdagents_llm.terminal.did_you_mean import did_you_mean
from mdagents_llm.validation import first_problem


class Settings(BaseModel):
    """What may be set for each call; None leaves it as the adapter has it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    temperature: float | None = None
    max_tokens: PositiveInt | None = None
    seed: int | None = None
    timeout: PositiveFloat | None = None
    tools: list[dict[str, Any]] = []
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    reply_schema: Any = None
    """What `with_structured_output` was given."""
    schema_key: str = ""
    """Hash of that schema for LangChain's cache, which knows a class by its name alone."""
    keeps_errors: bool = False
    """Whether a reply without the form that was asked for is a message, and no error."""
    stream: bool | None = None
    """LangChain's own: whether to stream inside of `invoke`."""


def settings_of(kwargs: Mapping[str, Any]) -> Settings:
    """Return the settings of a call.

    Raises:
        ConfigError: A setting does not exist, or has an invalid value.
    """
    for name in kwargs.keys() - Settings.model_fields.keys():
        if name == "model":
            raise ConfigError("the model of an adapter is fixed; make an adapter for each model")
        known = {"stop", *Settings.model_fields} - {"reply_schema", "schema_key", "keeps_errors"}
        raise ConfigError(f"a call has no setting {name}{did_you_mean(name, known)}")
    try:
        return Settings(**{name: value for name, value in kwargs.items() if value is not None})
    except ValidationError as error:
        raise ConfigError(first_problem(error)) from None


def checked(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return settings to bind to a model, after checking that every call will accept them.

    Raises:
        ConfigError: A setting does not exist, or has an invalid value.
    """
    of_langchain = ("stop", "ls_structured_output_format")
    settings_of({name: value for name, value in kwargs.items() if name not in of_langchain})
    return kwargs


def sequences_of(stop: Sequence[str] | str | None) -> tuple[str, ...]:
    """Return stop sequences as a tuple.

    Raises:
        ConfigError: A sequence is empty.
    """
    sequences = (stop,) if isinstance(stop, str) else tuple(stop or ())
    if "" in sequences:
        raise ConfigError("a stop sequence is empty; leave it out")
    return sequences


def labels_of(metadata: Mapping[str, Any]) -> CallLabels:
    """Return the ledger labels of a call, from our own metadata keys or else LangGraph's."""
    step = metadata.get("langgraph_step")
    return CallLabels(
        case_id=str(metadata.get("case_id", metadata.get("thread_id", ""))),
        phase=str(metadata.get("phase", "" if step is None else f"step-{step}")),
        agent=str(metadata.get("agent", metadata.get("langgraph_node", ""))),
        role=str(metadata.get("role", "")),
    )
