"""The ledger of a run, `calls.jsonl`, by case."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from infra.chat import TokenUsage
from infra.errors import ConfigError
from infra.ledger import REPLIED, Totals
from mdagents.export.usage import Spending
from mdagents.records.sample import EXAID_ROLES
from mdagents.scoring.fields import count_of, object_of


class Call(BaseModel):
    """A row of `calls.jsonl`: see `infra.ledger.CallRow`."""

    model_config = ConfigDict(frozen=True)

    started_at: AwareDatetime
    case_id: str
    phase: str
    agent: str
    role: str
    provider: str
    model_requested: str
    model: str
    attempt: int
    waited: float
    latency: float
    outcome: str
    cached: bool
    input_tokens: int
    output_tokens: int
    cached_input_tokens: int
    reasoning_tokens: int
    cost_usd: float | None
    prompt: tuple[str, ...] | None = None
    reply: str | None = None

    @property
    def started_ms(self) -> int:
        """Start, in ms since 1970 UTC."""
        return round(self.started_at.timestamp() * 1000)

    @property
    def ended_ms(self) -> int:
        """End, in ms since 1970 UTC."""
        return self.started_ms + round(self.latency * 1000)

    @property
    def asked(self) -> str:
        """The model that was asked, as Inspect names it: `provider/model`."""
        return f"{self.provider}/{self.model_requested}"

    @property
    def replied(self) -> bool:
        """Whether it brought a reply (of any quality)."""
        return self.outcome in REPLIED

    @property
    def of_exaid(self) -> bool:
        """Whether EXAID made it."""
        return self.role in EXAID_ROLES

    @property
    def usage(self) -> TokenUsage:
        """Its tokens."""
        return TokenUsage(
            self.input_tokens, self.output_tokens, self.cached_input_tokens, self.reasoning_tokens
        )

    def totals(self) -> Totals:
        """Return the row as a sum over one row."""
        if not self.replied:
            return Totals(failed_attempts=1)
        return Totals(calls=1, usage=self.usage, cost_usd=self.cost_usd)


def spending(calls: Sequence[Call]) -> Spending:
    """Return what calls have used."""
    total = Spending()
    for call in calls:
        total.add(call.asked, call.role, call.totals())
    return total


@dataclass(slots=True)
class CallFile:
    """`calls.jsonl`, read once from end to end and then case by case.

    Args:
        path: The file; a run without it has made no calls.

    Raises:
        ConfigError: It cannot be read; names the line.
    """

    path: Path
    spent: Spending = field(default_factory=Spending, init=False)
    """Over all rows."""
    _offsets: dict[str, array[int]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.path.is_file():
            for offset, call in self._read():
                self._offsets.setdefault(call.case_id, array("Q")).append(offset)
                self.spent.add(call.asked, call.role, call.totals())

    def __contains__(self, case_id: object) -> bool:
        return case_id in self._offsets

    def of(self, case_id: str) -> list[Call]:
        """Return the rows of a case, in the order in which the calls began."""
        if case_id not in self:
            return []
        with self.path.open("rb") as file:
            calls = []
            for offset in self._offsets[case_id]:
                file.seek(offset)
                calls.append(Call.model_validate_json(file.readline()))
        return sorted(calls, key=lambda call: call.started_ms)

    def _read(self) -> Iterator[tuple[int, Call]]:
        offset = 0
        try:
            with self.path.open("rb") as file:
                for number, line in enumerate(file, start=1):
                    if not line.endswith(b"\n"):
                        return  # torn by a kill
                    try:
                        yield offset, Call.model_validate_json(line)
                    except ValidationError as error:
                        raise ConfigError(
                            f"{self.path} line {number} is not a row of a ledger"
                        ) from error
                    offset += len(line)
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be read: {error.strerror}") from error


def by_attempt(calls: Sequence[Call], starts: Sequence[int]) -> list[list[Call]]:
    """Group the calls of a case by the start of the program in which they were made.

    Each start answers a question once, so that a group is one attempt at the question.

    Args:
        calls: Of one case, in order.
        starts: When the program was started, in ms since 1970 UTC, in order.
    """
    attempts: dict[int, list[Call]] = {}
    for call in calls:
        attempts.setdefault(bisect_right(starts, call.started_ms), []).append(call)
    return list(attempts.values())


def attempt_of(record: Mapping[str, Any], attempts: Sequence[Sequence[Call]]) -> int | None:
    """Return which attempt at a question its record is of: the last with the record's token count.

    The last attempt where the count fits none; None without an attempt.
    """
    used = count_of(object_of(record, "token_usage").get("total_tokens"))
    for number in reversed(range(len(attempts))):
        team = (call for call in attempts[number] if not call.of_exaid)
        if used == sum(call.usage.total_tokens for call in team):
            return number
    return len(attempts) - 1 if attempts else None
