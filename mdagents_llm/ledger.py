"""The ledger: one row for every attempt at a provider and every cache hit, and their totals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from mdagents_llm.chat import ChatMessage, ChatReply, ChatRequest, StopReason, TokenUsage
from mdagents_llm.clock import ms_of

OUTCOMES = {
    StopReason.STOP: "ok",
    StopReason.LENGTH: "truncated",
    StopReason.REFUSAL: "refused",
}
"""Stop reason of a reply -> outcome of its ledger row."""

UNUSABLE = "unusable"
"""Outcome of an attempt whose reply was broken off or malformed, but reported its tokens."""

REPLIED = frozenset({*OUTCOMES.values(), UNUSABLE})
"""Outcomes of attempts that received a reply."""

ABORTED = "aborted"
"""Outcome of an attempt that was cancelled by its caller or overtaken by its hedge."""

_STANDARD_TIERS = frozenset({"", "auto", "default", "standard"})


@dataclass(frozen=True, slots=True)
class Price:
    """The price of tokens at an endpoint, in USD per million tokens."""

    input: float
    output: float
    cached_input: float | None = None
    """Price of input tokens read from the prompt cache; None for the full input price."""
    cache_write: float | None = None
    """Price of input tokens written to the prompt cache; None for the full input price."""
    above: tuple[int, Price] | None = None
    """Next price tier as (threshold in input tokens, price of all tokens of a call above it); None
    for a single price."""
    is_listed: bool = False
    """Whether it is a list price, which a cost that the endpoint reports takes the place of."""
    tiers: tuple[tuple[str, Price], ...] = ()
    """(Service tier, its price) pairs; empty if the price holds for all tiers."""

    def in_tier(self, tier: str) -> Price | None:
        """Return the price in a service tier; None if it is unknown.

        Args:
            tier: Service tier as an endpoint reports it; empty if it reports none.
        """
        if not self.tiers or tier in _STANDARD_TIERS:
            return self
        return dict(self.tiers).get(tier)

    def in_batches(self, part: float, cached_part: float) -> Price:
        """Return the price of the same tokens in a batch.

        Args:
            part: Fraction of the price that a batch costs, such as 0.5.
            cached_part: Fraction of the price for input read from the prompt cache.
        """
        cached, write = self._of_cache()
        above = self.above and (self.above[0], self.above[1].in_batches(part, cached_part))
        halved = (self.input * part, self.output * part, cached * cached_part, write * part)
        return Price(*halved, above, self.is_listed)

    def of(self, usage: TokenUsage) -> float:
        """Return the cost of one call with this `usage`, in USD."""
        if self.above is not None and usage.input_tokens > self.above[0]:
            return self.above[1].of(usage)
        cached_price, write_price = self._of_cache()
        fresh = usage.input_tokens - usage.cached_input_tokens - usage.cache_write_tokens
        cost = (
            fresh * self.input
            + usage.cached_input_tokens * cached_price
            + usage.cache_write_tokens * write_price
            + usage.output_tokens * self.output
        )
        return cost / 1_000_000

    def _of_cache(self) -> tuple[float, float]:
        """Return the prices of input tokens read from and written to the prompt cache."""
        cached = self.input if self.cached_input is None else self.cached_input
        write = self.input if self.cache_write is None else self.cache_write
        return cached, write


PriceOf = Callable[[bool], Price | None]
"""Function of whether a call was made in a batch that returns the price; None if it is unknown."""


@dataclass(frozen=True, slots=True)
class Logged:
    """The texts that the user wants in the ledger."""

    prompts: bool = False
    """Whether rows include prompts and replies."""
    reasoning: bool = False
    """Whether rows include hidden reasoning."""


@dataclass(frozen=True, slots=True)
class CallRow:
    """One attempt at a provider, or one cache hit. Contains no text unless the user opted in."""

    started_at: str
    """Start of the attempt, ISO 8601 in UTC."""
    case_id: str
    phase: str
    agent: str
    role: str
    provider: str
    model_requested: str
    model: str
    """Name of the model that the endpoint reports it served; empty if the attempt failed."""
    attempt: int
    waited: float
    """Seconds spent in backoff and in the queue before this attempt."""
    latency: float
    """Seconds from sending the request to the last byte or the error."""
    outcome: str
    """Outcome of the attempt: `ok`, `truncated`, `refused`, `unusable` (broken off or malformed,
    but paid), an `ErrorKind`, or `aborted`."""
    usage: TokenUsage
    cost_usd: float | None
    """Cost in USD: by the price in `model_configs.yaml`, or as the endpoint reports it if that is
    not 0, or by the list price, in this order; None if none is known."""
    cached: bool = False
    """Whether the reply came from the cache: its tokens count, but nothing was sent or paid."""
    batched: bool = False
    """Whether the reply came from a batch, at the batch price."""
    usage_estimated: bool = False
    """Whether the endpoint reported no usage, so that tokens and cost are text-based estimates."""
    restart: int = 0
    """Number of earlier restarts of the question: 0 unless a crash, an error or a lost worker ended
    an earlier attempt. A record counts only the rows of its own restart."""
    prompt: tuple[str, ...] | None = None
    """Content of the messages, with descriptions of their pictures; None unless the user asked to
    log prompts."""
    reply: str | None = None
    """Text of the reply; None unless the user asked to log prompts."""
    reasoning: str | None = None
    """Hidden reasoning; None unless the user asked to log it and the endpoint exposes it."""

    @classmethod
    def of(
        cls,
        request: ChatRequest,
        reply: ChatReply | None,
        *,
        provider: str,
        model: str,
        price: PriceOf,
        started_at: str,
        attempt: int = 1,
        waited: float = 0.0,
        latency: float = 0.0,
        failure: str = "",
        logged: Logged = Logged(),
    ) -> CallRow:
        """Return the row of an attempt, or of a cache hit if the reply came from the cache.

        Args:
            request: Request as sent.
            reply: Reply; None if the attempt failed.
            provider: Name of the provider.
            model: Name of the requested model.
            price: Price of the model.
            started_at: Start of the attempt, ISO 8601 in UTC.
            attempt: Number of the attempt, counted from 1.
            waited: Seconds that the request had waited (backoff and queue).
            latency: Latency in seconds.
            failure: Outcome of an attempt without a usable reply.
            logged: Texts to include in the row.
        """
        cached = reply is not None and reply.cached
        batched = reply is not None and reply.batched
        usage = TokenUsage() if reply is None else reply.usage
        cost, tier = (None, "") if reply is None else (reply.cost_usd, reply.service_tier)
        paid = price(batched)
        paid = paid and paid.in_tier(tier)
        # A gateway that does not know its cost reports 0, and a cost limit must hold there as well.
        if paid is not None and not (cost and paid.is_listed):
            cost = paid.of(usage)
        outcome = failure
        if reply is not None:
            outcome = UNUSABLE if failure else OUTCOMES[reply.stop_reason]
        return cls(
            started_at=started_at,
            case_id=request.labels.case_id,
            phase=request.labels.phase,
            agent=request.labels.agent,
            role=request.labels.role,
            provider=provider,
            model_requested=model,
            model="" if reply is None else reply.model,
            attempt=0 if cached else attempt,
            waited=round(waited, 4),
            latency=round(latency, 4),
            outcome=outcome,
            usage=usage,
            cost_usd=cost,
            cached=cached,
            batched=batched,
            usage_estimated=reply is not None and reply.usage_estimated,
            prompt=tuple(map(_logged, request.messages)) if logged.prompts else None,
            reply=("" if reply is None else reply.text) if logged.prompts else None,
            reasoning=(reply.reasoning or None) if reply and logged.reasoning else None,
        )

    @property
    def replied(self) -> bool:
        """Whether the attempt received a reply (of any quality) that used tokens."""
        return self.outcome in REPLIED

    @property
    def is_usable(self) -> bool:
        """Whether the attempt received a reply of which something could be read."""
        return self.replied and self.outcome != UNUSABLE

    @property
    def started_ms(self) -> int:
        """Start of the attempt, in ms since 1970 UTC."""
        return ms_of(self.started_at)

    @property
    def ended_ms(self) -> int:
        """End of the attempt, in ms since 1970 UTC."""
        return self.started_ms + round(self.latency * 1000)

    def without_prompts(self) -> CallRow:
        """Return the row without the texts that `Logged.prompts` asks for."""
        return replace(self, prompt=None, reply=None)

    def as_dict(self) -> dict[str, object]:
        """Return the row as one flat JSON object for `calls.jsonl`."""
        row = {name: value for name in self.__slots__ if (value := getattr(self, name)) is not None}
        row.pop("usage")
        return {**row, **self.usage.as_dict(), "cost_usd": self.cost_usd}


def _logged(message: ChatMessage) -> str:
    """Return the content of a message, with a description in place of each picture."""
    if not message.pictures:
        return message.content
    parts = message.parts()
    return "".join(part if isinstance(part, str) else f"{part.summary}\n" for part in parts)


def add_costs(some: float | None, more: float | None) -> float | None:
    """Return the sum of two costs in USD; None if either is unknown."""
    return None if some is None or more is None else some + more


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals over ledger rows."""

    calls: int = 0
    """Number of replies of any quality."""
    failed_attempts: int = 0
    """Number of attempts without a usable reply."""
    usage: TokenUsage = TokenUsage()
    cost_usd: float | None = 0.0
    """Total cost in USD; None if any reply came from a model with an unknown price."""

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.calls + other.calls,
            self.failed_attempts + other.failed_attempts,
            self.usage + other.usage,
            add_costs(self.cost_usd, other.cost_usd),
        )

    @classmethod
    def of(cls, row: CallRow) -> Totals:
        """Return the totals of a single row."""
        if not row.replied:
            return cls(failed_attempts=1)
        failed = int(row.outcome == UNUSABLE)
        return cls(calls=1, failed_attempts=failed, usage=row.usage, cost_usd=row.cost_usd)


@dataclass(slots=True)
class CaseBook:
    """The totals of one case."""

    by_role: dict[str, Totals] = field(default_factory=dict)
    """Role -> totals of its calls."""
    served: list[tuple[str, str]] = field(default_factory=list)
    """(role, model name reported by the endpoint) pairs, in the order of their first replies."""

    def totals(self, *, without: Collection[str] = ()) -> Totals:
        """Return the totals over all roles except those in `without`."""
        return sum((t for role, t in self.by_role.items() if role not in without), Totals())

    def models(self, *, without: Collection[str] = ()) -> list[str]:
        """Return the models that replied to any role except those in `without`."""
        return list(dict.fromkeys(model for role, model in self.served if role not in without))


class Ledger:
    """Records rows and keeps the totals of each open case.

    Args:
        subscribers: Functions called with each row as it is recorded.
    """

    def __init__(self, *subscribers: Callable[[CallRow], None]) -> None:
        self._subscribers = list(subscribers)
        self._by_case: dict[str, CaseBook] = {}

    @contextmanager
    def subscribed(self, subscriber: Callable[[CallRow], None]) -> Iterator[None]:
        """Call `subscriber` with each row that is recorded within the context."""
        self._subscribers.append(subscriber)
        try:
            yield
        finally:
            self._subscribers.remove(subscriber)

    def book_of(self, case_id: str) -> CaseBook:
        """Return the totals of an open case so far."""
        return self._by_case[case_id]

    def open_case(self, case_id: str) -> None:
        """Start keeping totals for a case."""
        if case_id in self._by_case:
            raise ValueError(f"case {case_id} is open already")
        self._by_case[case_id] = CaseBook()

    def close_case(self, case_id: str) -> CaseBook:
        """Close a case and return its totals. Later rows of it go to the subscribers only."""
        return self._by_case.pop(case_id)

    def add(self, row: CallRow) -> None:
        """Record a row and pass it to the subscribers."""
        book = self._by_case.get(row.case_id)
        if book is not None:
            book.by_role[row.role] = book.by_role.get(row.role, Totals()) + Totals.of(row)
            if row.model and (row.role, row.model) not in book.served:
                book.served.append((row.role, row.model))
        for subscriber in self._subscribers:
            subscriber(row)
