"""What became of a question and who chose its team: the words that records and scores share.

Apart from `records` and `router`, so that scoring need not wait for what those import.
"""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """What became of a question."""

    ANSWERED = "answered"
    PARSE_ERROR = "parse_error"
    """The model replied, but not in a form that holds an answer."""
    REFUSED = "refused"
    TRUNCATED = "truncated"
    API_ERROR = "api_error"
    LIMIT = "limit"
    """A token, cost or time limit stopped it."""
    SKIPPED = "skipped"
    """Routed to a level that is left out; not in the denominator of accuracy."""


class RoutedBy(StrEnum):
    """Who chose the team of a question."""

    ROUTER = "router"
    FALLBACK = "fallback"
    """The router's reply could not be used."""
    FORCED = "forced"
    """`--difficulty`"""
    METHOD = "method"
    """`--method`: a baseline, which has no levels."""
