"""Whether the spans of a run hold the text of questions, prompts and replies."""

from __future__ import annotations

from collections.abc import Mapping

from mdagents.runs.config import RunConfig
from mdagents_llm.config import origin_of
from mdagents_llm.errors import ConfigError

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""Standard variable that asks for text."""

_IN_SPANS = {
    "true": True, "1": True, "span_only": True, "span_and_event": True,
    "false": False, "0": False, "no_content": False, "event_only": False, "": False,
}  # fmt: skip
"""Value of the variable, in lower case -> whether it asks for text in spans."""


def wants_text(config: RunConfig, variables: Mapping[str, str]) -> bool:
    """Return whether spans hold text: by `--otel-text`, or by the standard variable.

    Raises:
        ConfigError: The variable has a value of another form.
    """
    if not config.otel:
        return False
    value = variables.get(CAPTURE, "").strip().lower()
    if value not in _IN_SPANS:
        raise ConfigError(
            f"{CAPTURE} {origin_of(CAPTURE)} must be NO_CONTENT, SPAN_ONLY, EVENT_ONLY, "
            "SPAN_AND_EVENT, true or false"
        )
    return config.otel_text or _IN_SPANS[value]
