"""Spans of model calls, from the rows of the ledger.

Names that begin with `gen_ai.` are those of the conventions for generative AI, v0.1.0:
https://github.com/open-telemetry/semantic-conventions-genai. Their constants in the Python packages
are deprecated and incomplete, so that the names are written out. Names of our own begin with
`mdagents.`.

Token usage is on the spans of calls and nowhere else, because backends add up all spans of a trace.
What a cached reply had used before has names of our own: nothing was sent or paid for it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache

from mdagents_llm.clock import epoch_ms
from mdagents_llm.extras import needs_extra
from mdagents_llm.ledger import ABORTED, UNUSABLE, CallRow
from mdagents_llm.model_configs import LOCAL
from mdagents_llm.telemetry.light_spans import LightTracer
from mdagents_llm.text import one_line, well_formed

with needs_extra("opentelemetry", "--otel"):
    from opentelemetry.context import Context
    from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer

Value = str | bool | int | float | Sequence[str]
Attributes = dict[str, Value]

_PROVIDERS = {"google": "gcp.gemini", "azure": "azure.ai.openai", "xai": "x_ai",
              "mistral": "mistral_ai"}  # fmt: skip
"""Names of providers that the conventions spell differently."""
NS = 1_000_000
"""Nanoseconds in a millisecond."""
_FINISH_REASONS = {
    "ok": "stop",
    "truncated": "length",
    "refused": "content_filter",
    UNUSABLE: "error",
}
_LONGEST_NAME = 80  # characters; recruited roles are named by a model
FAILED = Status(StatusCode.ERROR)
"""Status of a span that ended in an error, without its message, which may quote a model."""


@lru_cache(maxsize=4096)
def name_of(text: str) -> str:
    """Return a name, of an agent or a model, on one line of at most 80 characters."""
    return one_line(text)[:_LONGEST_NAME] or "unnamed"


def add_call(
    tracer: Tracer | LightTracer, row: CallRow, parent: Context | None, *, with_text: bool
) -> None:
    """Make the span of an attempt at a model, or of a reply from the cache.

    Args:
        tracer: Tracer of the span.
        row: Row of the attempt.
        parent: Context of the span above it; None for the current one.
        with_text: Whether the span holds the prompt and the reply, if the row has them.
    """
    began_at, ended_at = times_of(row)
    span = tracer.start_span(
        f"chat {name_of(row.model_requested)}",
        parent,
        SpanKind.INTERNAL if row.cached or row.provider == LOCAL else SpanKind.CLIENT,
        of_call(row, with_text=with_text),
        start_time=began_at,
    )
    if not row.is_usable and row.outcome != ABORTED:
        span.set_status(FAILED)
    span.end(ended_at)


def now_ns() -> int:
    """Return the time in ns since 1970 UTC, in full ms as in the ledger, so that spans nest."""
    return epoch_ms() * NS


def times_of(row: CallRow) -> tuple[int, int]:
    """Return start and end of an attempt in ns since 1970 UTC."""
    began_at = row.started_ms * NS
    return began_at, began_at + round(row.latency * 1e9)


def of_call(row: CallRow, *, with_text: bool) -> Attributes:
    """Return the attributes of an attempt at a model, or of a reply from the cache.

    What is usual is left out, since each attribute takes time until it is sent.
    """
    attributes: Attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _PROVIDERS.get(row.provider, row.provider),
        "gen_ai.request.model": name_of(row.model_requested),
        "mdagents.role": row.role,
    }
    if row.case_id:
        attributes["gen_ai.conversation.id"] = row.case_id
    if row.model:
        attributes["gen_ai.response.model"] = name_of(row.model)
    if row.attempt > 1:
        attributes["mdagents.attempt"] = row.attempt
    if row.waited:
        attributes["mdagents.waited"] = row.waited
    switches = {
        "mdagents.cached": row.cached,
        "mdagents.batched": row.batched,
        "mdagents.usage_estimated": row.usage_estimated,
        "mdagents.aborted": row.outcome == ABORTED,
    }
    attributes |= {name: True for name, is_on in switches.items() if is_on}
    if row.replied:
        attributes["gen_ai.response.finish_reasons"] = (_FINISH_REASONS[row.outcome],)
        attributes |= _reused(row) if row.cached else _usage(row)
    elif row.outcome != ABORTED:
        attributes["error.type"] = row.outcome
    if with_text:
        attributes |= _messages(row)
    return attributes


def _usage(row: CallRow) -> Attributes:
    usage = row.usage
    attributes: Attributes = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
    }
    parts = {
        "gen_ai.usage.cache_read.input_tokens": usage.cached_input_tokens,
        "gen_ai.usage.cache_write.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }
    attributes |= {name: tokens for name, tokens in parts.items() if tokens}
    if row.cost_usd is not None:
        attributes["mdagents.cost_usd"] = row.cost_usd
    return attributes


def _reused(row: CallRow) -> Attributes:
    attributes: Attributes = {
        "mdagents.reused.input_tokens": row.usage.input_tokens,
        "mdagents.reused.output_tokens": row.usage.output_tokens,
    }
    if row.cost_usd is not None:
        attributes["mdagents.reused.cost_usd"] = row.cost_usd
    return attributes


def _messages(row: CallRow) -> Attributes:
    attributes: Attributes = {}
    if row.prompt is not None:
        system, *others = row.prompt
        turns = [("system", system)] if others else [("user", system)]
        # After the first message of the user, a rejected reply and the request for another.
        turns += [("assistant" if n % 2 else "user", text) for n, text in enumerate(others)]
        attributes["gen_ai.input.messages"] = as_messages(turns)
    if row.reply:
        reason = _FINISH_REASONS.get(row.outcome, "error")
        attributes["gen_ai.output.messages"] = as_messages([("assistant", row.reply)], reason)
    return attributes


def as_messages(turns: Sequence[tuple[str, str]], finish_reason: str = "") -> str:
    """Return (role, text) pairs as JSON in the form of the conventions.

    Args:
        turns: The messages, in order.
        finish_reason: Reason why the model stopped, which output messages must have; empty for
            messages to a model.
    """
    end = {"finish_reason": finish_reason} if finish_reason else {}
    messages = [
        {"role": role, "parts": [{"type": "text", "content": well_formed(text)}], **end}
        for role, text in turns
    ]
    return json.dumps(messages, ensure_ascii=False)
