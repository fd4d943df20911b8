"""Samples of an Inspect log, in `.json` or `.eval` format.

Source: `EvalSample` in https://inspect.aisi.org.uk/reference/inspect_ai.log.html,
and logs written by inspect_ai 0.3.285.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mdagents.scoring.fields import count_of, entries_of, object_of
from mdagents.scoring.forms.form import Form, Record
from mdagents.settings import Status

_REFUSED = "content_filter"
_CUT_OFF = ("max_tokens", "model_length")
"""Values of `stop_reason` for a reply that reached a limit of tokens."""
_READ_FROM_CACHE = ("input_tokens", "input_tokens_cache_read", "input_tokens_cache_write")


def _elements(record: Record) -> Sequence[Record]:
    metadata = object_of(record, "metadata")
    target = record.get("target")
    return (
        {
            "question_id": record.get("id"),
            "epoch": record.get("epoch"),
            "question": _text(record.get("input")),
            "label": target[0] if isinstance(target, list) and len(target) == 1 else target,
            "options": record.get("choices"),
            "response": _reply(object_of(record, "output")),
            "difficulty": metadata.get("difficulty"),
            "token_usage": _usage(object_of(record, "model_usage")),
            "status": _status(record, metadata),
            "is_cut_off": _stop_reason(record) in _CUT_OFF,
            "error": object_of(record, "error").get("message"),
            "wall_seconds": record.get("total_time"),
        },
    )


def _text(content: Any) -> str:
    """Return the text of one or more messages or message parts, without hidden reasoning."""
    if isinstance(content, list):
        return "\n".join(filter(None, map(_text, content)))
    if isinstance(content, dict) and content.get("type") != "reasoning":
        return _text(content.get("text", content.get("content")))
    return content if isinstance(content, str) else ""


def _reply(output: Mapping[str, Any]) -> str:
    """Return the model's last reply."""
    choices = entries_of(output, "choices")
    if choices:
        return _text(object_of(choices[0], "message").get("content"))
    return _text(output.get("completion"))


def _usage(by_model: Mapping[str, Any]) -> dict[str, int | None]:
    """Sum the tokens of all models; input includes prompt-cache reads and writes."""
    used = [usage for usage in by_model.values() if isinstance(usage, dict)]
    if not used:
        return {}
    read = sum(count_of(usage.get(name)) or 0 for usage in used for name in _READ_FROM_CACHE)
    written = sum(count_of(usage.get("output_tokens")) or 0 for usage in used)
    return {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}


def _status(record: Record, metadata: Mapping[str, Any]) -> str | None:
    """Return the stored status in a log exported by this program; else why the sample stopped."""
    if "option" in object_of(record, "scores") or metadata.get("status") == Status.SKIPPED:
        stated = metadata.get("status")
        return stated if isinstance(stated, str) else None
    if object_of(record, "error"):
        return Status.API_ERROR.value
    if object_of(record, "limit"):
        return Status.LIMIT.value
    return Status.REFUSED.value if _stop_reason(record) == _REFUSED else None


def _stop_reason(record: Record) -> Any:
    """Return why the model stopped its last reply; None if the log does not say."""
    choices = entries_of(object_of(record, "output"), "choices")
    return choices[0].get("stop_reason") if choices else None


INSPECT = Form("Inspect", frozenset({"target", "output", "epoch"}), "target", _elements)
