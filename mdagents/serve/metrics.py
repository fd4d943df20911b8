"""Numbers of the server for Prometheus."""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from mdagents_llm.ledger import CallRow

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600)


class Metrics:
    """Counters of one server; label `team` is one of its teams."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second line for each number, which nobody asked for
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "mdagents_requests", "Requests by team and HTTP status; 499: the client left.",
            ("team", "status"), registry=self._registry,
        )  # fmt: skip
        self.tokens = Counter(
            "mdagents_tokens", "Tokens of the teams' calls, replayed ones included.",
            ("team", "kind"), registry=self._registry,
        )  # fmt: skip
        self.calls = Counter(
            "mdagents_calls", "Attempts at providers and replies from the cache, by outcome.",
            ("team", "outcome"), registry=self._registry,
        )  # fmt: skip
        self.in_flight = Gauge(
            "mdagents_requests_in_flight", "Questions that teams work on.", registry=self._registry
        )
        self.queued = Gauge(
            "mdagents_requests_queued", "Questions that wait for a place.", registry=self._registry
        )
        self.seconds = Histogram(
            "mdagents_request_seconds", "Seconds of answered questions, waiting included.",
            ("team",), registry=self._registry, buckets=_SECONDS,
        )  # fmt: skip

    def booked(self, team: str, row: CallRow) -> None:
        """Count a row of the ledger."""
        usage = row.usage
        self.calls.labels(team, "cached" if row.cached else row.outcome).inc()
        for kind, count in (
            ("prompt", usage.input_tokens),
            ("completion", usage.output_tokens),
            ("cached_prompt", usage.cached_input_tokens),
            ("reasoning", usage.reasoning_tokens),
        ):
            self.tokens.labels(team, kind).inc(count)

    def text(self) -> bytes:
        """Return all numbers in the text format of Prometheus."""
        return generate_latest(self._registry)
