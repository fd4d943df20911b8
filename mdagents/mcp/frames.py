"""Lines of a client over stdin that the SDK would drop, so that the client waits in vain."""

from __future__ import annotations

import json
import re

from mcp.types import jsonrpc_message_adapter
from pydantic import ValidationError

from mdagents_llm.text import utf8

INVALID = "invalid request"
"""Method of the request that stands for an invalid one; the server refuses it."""
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def answerable(line: bytes) -> bytes:
    """Return a line of JSON, without its line break, that the SDK reads.

    A lone surrogate, which clients in JavaScript write for a text that they cut, is U+FFFD. Invalid
    requests with ids, also those of a batch, are requests of the method `INVALID` with these ids,
    one a line. Other lines that are not valid stay as they are.
    """
    try:
        if _SURROGATE.search(line):
            line = utf8(json.dumps(json.loads(line), ensure_ascii=False))
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        ids = _ids(line)
        refused = [{"jsonrpc": "2.0", "id": one, "method": INVALID} for one in ids]
        return utf8("\n".join(json.dumps(one, ensure_ascii=False) for one in refused)) or line
    except (ValueError, RecursionError):
        pass  # the SDK reports it
    return line


def _ids(line: bytes) -> list[str | int]:
    """Return the ids of requests in a line; a response, or an id of another type, has none."""
    try:
        read = json.loads(line)
    except (ValueError, RecursionError):
        return []
    frames = read if isinstance(read, list) else [read]
    return [
        one["id"]
        for one in frames
        if isinstance(one, dict)
        and isinstance(one.get("id"), str | int)
        and not (isinstance(one["id"], bool) or one.keys() & {"error", "result"})
    ]
