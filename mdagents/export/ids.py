"""Ids that are the same at every export."""

from __future__ import annotations

from hashlib import sha256

JSONObject = dict[str, object]

_ID_LENGTH = 22  # as long as the short UUIDs that Inspect makes


def stable_id(*parts: str) -> str:
    """Return an id that depends on nothing but `parts`."""
    return sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:_ID_LENGTH]
