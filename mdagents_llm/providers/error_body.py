"""Extracts message, codes and status from an error body of any shape.

Endpoints that speak the same protocol wrap their errors differently: OpenAI
`{"error": {"message", "type", "param", "code"}}`, xAI `{"code", "error": "text"}`, FastAPI
`{"detail": text or [{"loc", "msg"}]}`, OpenRouter `{"error": {"metadata": {"raw": "{…}"}}}`, TGI
`{"error": "text", "error_type"}`, Google's compatible endpoint `[{"error": {…}}]`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from mdagents_llm.chat import ChatReply
from mdagents_llm.providers.http_errors import OTHER_SHAPES
from mdagents_llm.providers.waits import TOO_MANY_REQUESTS, retry_after_seconds, seconds_of_duration

_WORDS = frozenset(
    [
        "message",
        "msg",
        "error",
        "errors",
        "error_message",
        "errormessage",
        "error_msg",
        "detail",
        "details",
        "description",
        "title",
        "raw",
        "metadata",
        "innererror",
        "inner_error",
        "base_resp",
        "status_msg",
    ]
)
"""Names of fields that hold a message, or an object with one; in lower case."""
_WITHIN = frozenset(["value", "cause", "upstreamresponse"])
"""Names of fields that may hold an object with a message; a text may echo the prompt."""
_CODES = frozenset(
    [
        "code",
        "type",
        "error_type",
        "error_code",
        "errorcode",
        "__type",
        "reason",
        "status",
        "status_code",
        "statuscode",
    ]
)
_BASE_RESP = "base_resp"
_STATUS_OF = {"1002": 429, "1004": 401, "1008": 402, "1039": 429, "2013": 400, "2049": 401}
"""Code of MiniMax's `base_resp` -> HTTP status with that meaning; the others have none.

https://platform.minimax.io/docs/api-reference/errorcode"""
_WAITS = ("retrydelay", "retry_after", "retry_after_seconds")
"""Names of fields with the seconds to wait before a retry, Google's first; in lower case."""
_MODERATION = ("reasons", "flagged_input")  # OpenRouter
_QUOTAS = ("violations", "quota_limit")  # Google
_DEEPEST = 8  # maximum nesting depth
_MOST_WORDS = 20  # maximum messages
_LONGEST = 4_000  # maximum characters of a message
_STATUSES = range(400, 600)


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """The content of an endpoint's error body."""

    words: str
    code: str
    """Machine-readable codes and types, separated by spaces."""
    param: str = ""
    """Setting that the error is about; empty if the body does not name it separately."""
    status: int | None = None
    """HTTP status in the body; None if it has none."""
    retry_after: float | None = None
    """Seconds to wait before a retry (`_WAITS`, or headers in OpenRouter's body); None if the body
    names none."""


class ErrorInReplyError(Exception):
    """Raised when an endpoint sent an error in place of a reply.

    Args:
        body: Body of the error.
    """

    def __init__(self, body: object) -> None:
        super().__init__()
        self.body = body


class UnusableReplyError(Exception):
    """Raised from the error of a reply that reports tokens; these are paid.

    Args:
        reply: What is known of the reply.
    """

    def __init__(self, reply: ChatReply) -> None:
        super().__init__()
        self.reply = reply


def parsed(response: httpx2.Response) -> object:
    """Return the body of an error as parsed JSON, or as text; empty if it could not be read."""
    try:
        return json.loads(response.content)
    except OTHER_SHAPES:
        return response.text
    except httpx2.StreamError:
        return ""


def raise_error_in(reply: object, content: str) -> None:
    """Raise `ErrorInReplyError` if `reply` is an error in place of a reply, as by `error_in`."""
    if (error := error_in(reply, content)) is not None:
        raise ErrorInReplyError(error)


def read_error(body: object) -> ErrorBody:
    """Return the content of an error body, given as parsed JSON or as text."""
    found = _Found()
    found.look_at(body, 0)
    return ErrorBody(
        words=": ".join(found.words),
        code=" ".join(dict.fromkeys(found.codes)),
        param=found.param,
        status=found.status,
        retry_after=found.retry_after,
    )


def error_in(reply: object, content: str) -> object | None:
    """Return the error body if an endpoint sent an error in place of a reply; else None.

    Args:
        reply: Parsed body, or a chunk of a stream.
        content: Field that every reply has, such as `choices`.
    """
    if isinstance(reply, list):
        return reply if any(isinstance(one, dict) and one.get("error") for one in reply) else None
    if not isinstance(reply, dict):
        return None
    if has_error(reply, content) or reply.get("type") == "error" or reply.get("object") == "error":
        return reply
    if _has_failed(reply.get(_BASE_RESP)):
        return reply
    if reply.get(content):
        return None
    names = ("detail", "message", "msg", "errors", "error_code", "error_msg")
    is_error = any(reply.get(name) for name in names) and not _has_tokens(reply.get("usage"))
    return reply if is_error else None


def has_error(reply: Mapping[str, Any], content: str) -> bool:
    """Return whether a reply has an error; one of empty fields beside a content is none.

    Args:
        reply: Reply, or a part of it.
        content: Field with the content.
    """
    error = reply.get("error")
    is_empty = isinstance(error, dict) and not any(error.values())
    return bool(error) and not (is_empty and reply.get(content))


def _has_failed(base_resp: object) -> bool:
    """Return whether MiniMax's status of a reply is that of an error."""
    return isinstance(base_resp, dict) and base_resp.get("status_code") not in (None, 0, "0")


def _has_tokens(usage: object) -> bool:
    """Return whether a usage reports any tokens."""
    counts = usage.values() if isinstance(usage, dict) else ()
    return any(isinstance(count, int | float) and count for count in counts)


class _Found:
    """Accumulates the messages and codes found in a body."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.codes: list[str] = []
        self.param = ""
        self.status: int | None = None
        self.retry_after: float | None = None

    def look_at(self, node: object, depth: int) -> None:
        if depth > _DEEPEST or len(self.words) >= _MOST_WORDS:
            return
        if isinstance(node, str):
            self._read_text(node, depth)
        elif isinstance(node, list):
            for one in node[:_MOST_WORDS]:
                self.look_at(one, depth + 1)
        elif isinstance(node, dict):
            self._read_object(node, depth)

    def _read_text(self, text: str, depth: int) -> None:
        text = text.strip()[:_LONGEST]
        if text[:1] in ("{", "["):
            try:
                self.look_at(json.loads(text), depth + 1)
                return
            except (ValueError, RecursionError):
                pass
        if text and text not in self.words:
            self.words.append(text)

    def _read_object(self, node: Mapping[str, object], depth: int) -> None:
        named = {str(name).lower(): value for name, value in node.items()}
        for name in _CODES & named.keys():
            self._read_code(named[name])
        if any(named.get(name) for name in _MODERATION):
            self.codes.append("moderation")
        if any("PerDay" in str(named.get(name)) for name in _QUOTAS):
            self.codes.append("insufficient_quota")
        if self.retry_after is None:
            waits = map(seconds_of_duration, map(named.get, _WAITS))
            self.retry_after = next((wait for wait in waits if wait is not None), None)
        if self.retry_after is None and isinstance(headers := named.get("headers"), dict):
            texts = {str(name).lower(): str(value) for name, value in headers.items()}
            self.retry_after = retry_after_seconds(texts, TOO_MANY_REQUESTS)  # OpenRouter
        if isinstance(base_resp := named.get(_BASE_RESP), dict) and self.status is None:
            self.status = _STATUS_OF.get(str(base_resp.get("status_code")))
        if isinstance(param := named.get("param"), str) and not self.param:
            self.param = param.rpartition(".")[2]
        if isinstance(place := named.get("loc"), list) and isinstance(named.get("msg"), str):
            named["msg"] = f"{_place(place)}: {named['msg']}"
        for name, value in named.items():
            if name in _WORDS or (name in _WITHIN and isinstance(value, dict)):
                self.look_at(value, depth + 1)

    def _read_code(self, value: object) -> None:
        text = str(value) if isinstance(value, str | int) else ""
        if text.isdecimal() and int(text[:9]) in _STATUSES:
            self.status = self.status or int(text)
        if text and len(text) <= _LONGEST:
            self.codes.append(text)


def _place(place: list[object]) -> str:
    """Return the location of a FastAPI validation error, without `body`."""
    return ".".join(str(part) for part in place if part != "body") or "body"
