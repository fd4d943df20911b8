"""What the driver of a run and a worker of a cluster say to each other, as bytes.

The driver sends `Orders`, the worker answers with a `Report` of all that has happened since the
last one; each waits for the other, so that an order is known to be obeyed when the next report is
there.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from exaid_core.policy import TriggerPolicy
from mdagents.agents.feed import Event
from mdagents.datasets.exemplars import Exemplars
from mdagents.datasets.questions import SourceQuestion
from mdagents.records.sample import CaseSummaries, SampleRecord
from mdagents.records.summaries import ItemKey
from mdagents.runs.config import RunConfig
from mdagents.runs.engines.claims import Found
from mdagents.runs.engines.engine import Item, Outcome
from mdagents.runs.engines.shares import EndpointState, Share
from mdagents_llm.chat import ChatReply
from mdagents_llm.config import Environment
from mdagents_llm.endpoints import ModelSpec
from mdagents_llm.errors import BenchError, ProviderError
from mdagents_llm.layers.retry import Wait
from mdagents_llm.ledger import CallRow


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a worker says first, so that both are known to be of one kind."""

    code: str
    """SHA-256 of its source code."""
    version: str
    host: str
    folder: str
    """Where that is, on its machine."""


@dataclass(frozen=True, slots=True)
class Opening:
    """A run that a worker is to take part in."""

    config: RunConfig
    specs: Mapping[str, ModelSpec]
    name: str
    model: str
    revision: str | None
    policy: TriggerPolicy | None
    places: int
    """Questions that the worker answers at once."""
    endpoint: str
    """Whose places they are, which other runs share."""
    exemplars: Exemplars | None = None
    """Of `few_shot`."""
    own_source: bytes | None = None
    """Of a method of the user's own that is a file."""
    source_sha256: str = ""
    """Of a method of the user's own."""


@dataclass(slots=True)
class RunOrders:
    """What a worker is to do in one run."""

    opening: Opening | None = None
    """There when the worker does not take part yet."""
    leases: Sequence[tuple[Item, SourceQuestion]] = ()
    """Questions to answer."""
    traces: Sequence[tuple[ItemKey, bytes, bytes | None]] = ()
    """(question, its trace, EXAID's log so far) of decided questions for EXAID to finish with."""
    is_complete: bool = False
    """Whether no further question will come."""
    over: str = ""
    """The limit of the run that is reached; empty for none."""
    ends_as: Outcome | None = None
    """How the run ends before all of its questions are answered; None: it does not."""
    interrupts: int = 0
    """How often the run was interrupted."""


@dataclass(slots=True)
class Orders:
    """What a worker is to do."""

    period: float
    """Seconds between two reports, where nothing is urgent."""
    runs: dict[int, RunOrders] = field(default_factory=dict)
    shares: Mapping[str, Share] = field(default_factory=dict)
    """Endpoint -> what it may use of it."""
    found: Sequence[Found] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """Something has happened in a question."""

    item: ItemKey
    event: Event


@dataclass(frozen=True, slots=True)
class Decided:
    """A question is decided."""

    record: SampleRecord
    trace: bytes | None
    """Its trace file; None when that could not be made."""
    log: bytes | None = None
    """EXAID's log so far; None without EXAID."""


@dataclass(frozen=True, slots=True)
class Summaries:
    """EXAID has finished with a decided question, or was suspended: see `is_complete`."""

    made: CaseSummaries
    log: bytes | None
    """EXAID's log."""


@dataclass(frozen=True, slots=True)
class Postponed:
    """EXAID will not finish with a decided question here."""

    item: ItemKey


@dataclass(frozen=True, slots=True)
class Returned:
    """A question that was not begun."""

    item: ItemKey


@dataclass(frozen=True, slots=True)
class Ended:
    """A run is over at this worker."""

    outcome: Outcome = Outcome.FINISHED
    error: BenchError | None = None
    """What ended it early."""
    fault: str = ""
    """Traceback of an error of the program that ended it."""


Message = CallRow | Told | Decided | Summaries | Postponed | Returned | Wait | Ended


@dataclass(slots=True)
class Report:
    """What has happened at a worker."""

    messages: Sequence[tuple[int, Message]] = ()
    """(number of the run, what), in the order in which it happened."""
    kept: Sequence[tuple[str, ChatReply | ProviderError]] = ()
    """(key, reply or the error in which the request ended), to be kept."""
    released: Sequence[str] = ()
    """Keys that are asked no longer."""
    lookups: Sequence[tuple[int, str]] = ()
    """(number of the lookup, key)."""
    endpoints: Mapping[str, EndpointState] = field(default_factory=dict)
    """Those that are shared with other workers."""
    own_endpoints: Mapping[str, EndpointState] = field(default_factory=dict)
    """Those of this worker alone: its local models."""


def packed(message: object) -> bytes:
    """Return a message as bytes."""
    return pickle.dumps(message, protocol=5)


def unpacked(message: bytes) -> Any:
    """Return a message from bytes that this program's own workers have sent, or its driver."""
    return pickle.loads(message)


@dataclass(frozen=True, slots=True)
class Start:
    """What a worker is made with."""

    environment: Environment
    """With keys: it travels as the argument of an actor, and is in no log and no file."""
