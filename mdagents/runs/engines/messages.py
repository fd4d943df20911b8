"""Messages between the driver of a run and a worker of a cluster, packed as bytes.

The driver sends `Orders`; the worker answers with a `Report` of everything since the last one.
Each waits for the other, so the arrival of the next report proves that the orders were obeyed.
"""

from __future__ import annotations

import pickle
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from exaid_core.policy import TriggerPolicy
from mdagents.agents.events import Event
from mdagents.datasets.questions import SourceQuestion
from mdagents.records.sample import CaseSummaries, SampleRecord
from mdagents.records.summaries import ItemKey
from mdagents.runs.config import RunConfig
from mdagents.runs.engines.claims import Found
from mdagents.runs.engines.engine import Item
from mdagents.runs.engines.shares import EndpointState, Share
from mdagents.settings import Outcome
from mdagents.teams.train_split import OpenExemplars
from mdagents_llm.chat import ChatReply
from mdagents_llm.config import Environment
from mdagents_llm.endpoints import ModelSpec
from mdagents_llm.errors import BenchError, ProviderError
from mdagents_llm.layers.retry import Wait
from mdagents_llm.ledger import CallRow
from mdagents_llm.pictures import Picture


@dataclass(frozen=True, slots=True)
class Greeting:
    """First message of a worker, by which the driver checks that both run the same code."""

    code: str
    """SHA-256 of the worker's source code."""
    version: str
    host: str
    folder: str
    """Folder of the source code on the worker's machine."""


@dataclass(frozen=True, slots=True)
class Opening:
    """Description of a run for a worker that is to take part in it."""

    config: RunConfig
    specs: Mapping[str, ModelSpec]
    name: str
    model: str
    revision: str | None
    policy: TriggerPolicy | None
    places: int
    """Questions that the worker answers at once."""
    endpoint: str
    """Endpoint whose places the run uses, shared with other runs."""
    is_limited: bool
    """Whether the run, or its study, has a limit of tokens or cost."""
    exemplars: OpenExemplars | None = None
    """Exemplars of the method; None if it shows none."""
    own_source: bytes | None = None
    """Source file of a user-defined method; None if the method is not a single file."""
    source_sha256: str = ""
    """SHA-256 of the source code of a user-defined method; empty for built-in methods."""
    modules: Mapping[str, str] = field(default_factory=dict)
    """Module of the user's own that a user-defined method imports -> SHA-256."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A question that a worker is to answer."""

    item: Item
    source: SourceQuestion
    pictures: Sequence[Picture] = ()
    """Pictures of the question as its agents see them; a worker may have no data folder."""


@dataclass(slots=True)
class RunOrders:
    """Orders for a worker in one run."""

    opening: Opening | None = None
    """Description of the run; None if the worker already takes part in it."""
    leases: Sequence[Lease] = ()
    """Questions to answer."""
    traces: Sequence[tuple[ItemKey, bytes, bytes | None]] = ()
    """(question, its trace, EXAID's log so far) of decided questions for EXAID to finish with."""
    is_complete: bool = False
    """Whether no further question will come."""
    over: str = ""
    """Message of the run limit that was reached; empty for none."""
    ends_as: Outcome | None = None
    """Outcome of a run that ends before all questions are answered; None: it continues."""
    interrupts: int = 0
    """How often the run was interrupted."""
    replied: Collection[str] = ()
    """Names of the models that have replied to any worker: they are waited for in an outage."""


@dataclass(slots=True)
class Orders:
    """Orders for a worker in all of its runs."""

    period: float
    """Seconds between two reports, where nothing is urgent."""
    runs: dict[int, RunOrders] = field(default_factory=dict)
    shares: Mapping[str, Share] = field(default_factory=dict)
    """Endpoint -> the worker's share of it."""
    found: Sequence[Found] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """An event in a question."""

    item: ItemKey
    event: Event
    at_ms: int
    """Time of the event at the worker, in ms since 1970 UTC."""


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision about a question."""

    record: SampleRecord
    trace: bytes | None
    """Content of the trace file; None when it could not be made."""
    log: bytes | None = None
    """EXAID's log so far; None without EXAID."""


@dataclass(frozen=True, slots=True)
class Summaries:
    """EXAID's results for a decided question; incomplete if EXAID was suspended."""

    made: CaseSummaries
    log: bytes | None
    """EXAID's log; None when it could not be made."""


@dataclass(frozen=True, slots=True)
class Postponed:
    """Notice that EXAID will not finish with a decided question at this worker."""

    item: ItemKey


@dataclass(frozen=True, slots=True)
class Returned:
    """A question that the worker returns without having started it."""

    item: ItemKey


@dataclass(frozen=True, slots=True)
class Ended:
    """Notice that a run has ended at this worker."""

    outcome: Outcome = Outcome.FINISHED
    error: BenchError | None = None
    """Error that ended the run early; None without one."""
    fault: str = ""
    """Traceback of an unexpected exception that ended the run; empty without one."""


Message = CallRow | Told | Decided | Summaries | Postponed | Returned | Wait | Ended


@dataclass(slots=True)
class Report:
    """Everything that has happened at a worker since its last report."""

    messages: Sequence[tuple[int, Message]] = ()
    """(number of the run, message) pairs, in chronological order."""
    kept: Sequence[tuple[str, ChatReply | ProviderError]] = ()
    """(key, reply or the error in which the request ended) pairs, for the cache."""
    released: Sequence[str] = ()
    """Cache keys that the worker no longer claims."""
    lookups: Sequence[tuple[int, str]] = ()
    """(number of the lookup, cache key) pairs."""
    endpoints: Mapping[str, EndpointState] = field(default_factory=dict)
    """States of the endpoints that other workers share."""
    own_endpoints: Mapping[str, EndpointState] = field(default_factory=dict)
    """States of the endpoints of this worker alone: its local models."""


def packed(message: object) -> bytes:
    """Return a message as pickled bytes."""
    return pickle.dumps(message, protocol=5)


def unpacked(message: bytes) -> Any:
    """Return a message from bytes that this program's own workers or driver have sent."""
    return pickle.loads(message)


@dataclass(frozen=True, slots=True)
class Start:
    """Arguments with which a worker is started."""

    environment: Environment
    """Environment with API keys: it travels as an actor's argument, never in a log or a file."""
