"""Results of a batch as JSON lines with a `custom_id`, as OpenAI and Anthropic write them."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress

from mdagents_llm.wire import Line

_DAMAGED = (ValueError, KeyError, TypeError, RecursionError)


def results_by_key(text: str, is_answered: Callable[[Line], bool]) -> dict[str, Line]:
    """Return the results of a batch by the keys of their requests.

    A damaged line is skipped: it costs its own request, not those of the whole batch. Of several
    results with one key, an error never replaces a reply.

    Args:
        text: Content of the file of results.
        is_answered: Function that returns whether a result contains a reply.

    Raises:
        ValueError: The text is not empty, but has no result.
    """
    results: dict[str, Line] = {}
    for line in text.split("\n"):
        with suppress(*_DAMAGED):
            result = json.loads(line)
            key = result["custom_id"]
            if is_answered(result) or not is_answered(results.get(key, {})):
                results[key] = result
    if text.strip() and not results:
        raise ValueError("a file of results without a result")
    return results
