"""A team whose models are those of an evaluation of Inspect."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4
from weakref import WeakKeyDictionary

from anyio import move_on_after
from inspect_ai.model import Model, get_model, model_roles
from inspect_ai.util import span

from exaid_core.exaid import RoomFor
from exaid_core.trace.files import RecordError
from mdagents.agents.case import make_case_id
from mdagents.agents.events import Event
from mdagents.datasets.dataset import Dataset
from mdagents.datasets.questions import SourceQuestion
from mdagents.inspect.events import observer
from mdagents.inspect.outcome import SampleTokens, TeamOutcome
from mdagents.inspect.turns import Background, Turns
from mdagents.records.sample import ExaidRecord
from mdagents.records.summaries import ItemKey
from mdagents.runs.config import RunConfig
from mdagents.runs.engines.observers import CaseObservers, ExaidModels, RunObservers
from mdagents.runs.models import check_sight, exaid_roles, local_embedding
from mdagents.runs.one_question import Answered, Answerer
from mdagents.runs.solver import Solver
from mdagents.settings import EXAID_ROLES, OptionOrder, TeamRole
from mdagents_llm.chat import ChatModel
from mdagents_llm.clock import Clock
from mdagents_llm.config import parse_environment, read_variables
from mdagents_llm.endpoints import ModelSpec, Runtime
from mdagents_llm.errors import ConfigError
from mdagents_llm.layers.retry import RetryPolicy
from mdagents_llm.ledger import CallRow, Ledger
from mdagents_llm.llm_registry import ModelRegistry
from mdagents_llm.model_configs import ModelConfigs, load_model_configs
from mdagents_llm.providers.inspect_client import InspectClient

if TYPE_CHECKING:
    from exaid_core.trace.traces import Trace
    from mdagents_llm.wire import Client, Endpoint

_PROVIDER = "inspect"
_LONGEST_CALL = 7 * 86_400.0
"""Seconds after which a call is given up; Inspect has its own, much shorter limits."""
_MOST_CONNECTIONS = 100
"""Concurrent calls where Inspect adapts their number, whose own maximum this is."""
_MOST_EXPERTS = 10
_TO_ABANDON = 10.0  # seconds

Decided = Callable[[Answered], None]
"""Callback for the answer of a team."""


class InspectTeam:
    """A team that answers samples by the models of the evaluation in progress.

    Each role asks `get_model(role=…)`: the model of the evaluation, unless `--model-role` names
    another one.

    Args:
        config: Configuration of the team.
        dataset: Data set whose train split the method shows; None: it shows none.
        order: Order in which the options are shown.

    Raises:
        ConfigError: The method needs a data set, or cannot be used.
    """

    def __init__(
        self, config: RunConfig, dataset: Dataset | None = None, *, order: OptionOrder
    ) -> None:
        self.config = config
        self._order = order
        self._environment = parse_environment(read_variables())
        self._solver = Solver(config, dataset, lambda: local_embedding(self._environment))
        self._opened: WeakKeyDictionary[
            asyncio.AbstractEventLoop, dict[tuple[tuple[str, str], ...], _Opened]
        ] = WeakKeyDictionary()

    async def answer(
        self, source: SourceQuestion, epoch: int, outcome: TeamOutcome, decided: Decided
    ) -> Answered:
        """Answer a question within a span of its own, and note the outcome at once.

        Args:
            source: Question.
            epoch: Number of the repetition of the sample, from 1.
            outcome: Where the outcome is noted.
            decided: Called with the answer before EXAID finishes, which may be cut off.

        Raises:
            ConfigError: A model that the method needs is missing, or takes no pictures.
            EndpointDown: The model cannot reply.
        """
        opened = self._open()
        check_sight(self.config, opened.specs, len(source.pictures))
        await opened.prepare()
        async with span(self.name, type="team"):
            return await self._answer(opened, source, epoch, outcome, decided)

    async def _answer(
        self,
        opened: _Opened,
        source: SourceQuestion,
        epoch: int,
        outcome: TeamOutcome,
        decided: Decided,
    ) -> Answered:
        item = (f"{source.id} {uuid4().hex[:8]}", epoch)
        case_id = make_case_id(*item)
        spending = opened.spending[case_id] = SampleTokens(EXAID_ROLES)
        observers = self._observers(opened, item, copy_context())
        try:
            answered = await opened.answerer.answer(
                source, tell=observers.tell, case_id=case_id, epoch=epoch, bus=observers.bus
            )
            outcome.decide(answered.record)
            outcome.tokens = dict(spending.as_dict())
            decided(answered)
            if observers.has_exaid:
                outcome.exaid = await self._summaries(observers)
            return answered
        finally:
            try:
                # Inspect cancels whatever a sample awaits at its end, so that the calls of EXAID
                # that it has stopped would not be booked.
                with move_on_after(_TO_ABANDON, shield=True):
                    await observers.abandon()
            finally:
                outcome.tokens = dict(spending.as_dict())
                del opened.spending[case_id]

    async def _summaries(self, observers: CaseObservers) -> dict[str, object]:
        """Let EXAID finish with a decided question, for `exaid_wait` seconds at most."""
        is_complete = True
        try:
            async with asyncio.timeout(self.config.exaid_wait):
                await observers.summarise_rest()
        except TimeoutError:
            is_complete = False
            await observers.abandon()
            observers.note("no time was left for it (exaid_wait)")
        record, watched, alerts = await observers.outcome(is_complete=is_complete)
        kept: ExaidRecord = record
        return {
            **kept.model_dump(mode="json", include={"summaries", "decisions"}),
            **watched.model_dump(mode="json"),
            "alerts": alerts,
        }

    def _observers(self, opened: _Opened, item: ItemKey, context: Context) -> CaseObservers:
        tell = observer(context)

        def watch(key: ItemKey, event: Event, at: int) -> None:
            tell(event)

        models = None
        if opened.exaid:
            own = [Background(opened.registry.model(opened.specs[role]), context)
                   for role in opened.exaid]  # fmt: skip
            models = ExaidModels(own[0], own[-1], opened.room)
        return RunObservers(
            files=_NoFiles(),
            run_name=item[0],
            model=opened.specs[TeamRole.EXPERT.value].name,
            revision=None,
            clock=opened.clock,
            watchers=(watch,),
            policy=self.config.exaid_policy,
            models=models,
        ).open(item)

    @property
    def name(self) -> str:
        """Name of the team."""
        return self.config.method_name if self._solver.method else "-".join(self.config.levels)

    def _open(self) -> _Opened:
        """Return the models of the evaluation in progress, which are opened once in a loop."""
        roles = [role.value for role in (*TeamRole, *exaid_roles(self.config.exaid_policy))]
        numbered = [f"{TeamRole.EXPERT}-{n}" for n in range(1, _MOST_EXPERTS + 1)]
        roles += [role for role in numbered if role in model_roles()]
        named = tuple((role, str(_model_of(role))) for role in roles)
        of_loop = self._opened.setdefault(asyncio.get_running_loop(), {})
        if named not in of_loop:
            of_loop[named] = self._opened_for(dict(named))
        return of_loop[named]

    def _opened_for(self, names: Mapping[str, str]) -> _Opened:
        config = self.config
        seated = {name for role, name in names.items() if role.startswith(f"{TeamRole.EXPERT}-")}
        if config.declared.seats and len(seated) < 2:
            raise ConfigError(
                f"{config.method_name} is a round table of different models; name them: "
                "--model-role expert-1=MODEL --model-role expert-2=MODEL"
            )
        clock = Clock()
        spending: dict[str, SampleTokens] = {}

        def booked(row: CallRow) -> None:
            if row.case_id in spending:
                spending[row.case_id].add(row)

        ledger = Ledger(booked)
        runtime = Runtime(
            environment=self._environment,
            ledger=ledger,
            clock=clock,
            configs=_configs(),
            retry=RetryPolicy(max_retries=0, timeout=_LONGEST_CALL),  # Inspect retries
            attempt_timeout=_LONGEST_CALL,
            max_connections=_connections(),
        )
        registry = ModelRegistry(runtime)
        specs = {
            role: ModelSpec(_PROVIDER, name, thinking=config.thinking(role))
            for role, name in names.items()
        }
        models: dict[str, ChatModel] = {
            role: Turns(registry.model(spec))
            for role, spec in specs.items()
            if role not in EXAID_ROLES
        }
        answerer = Answerer(config, models, ledger, clock, solver=self._solver, order=self._order)
        return _Opened(
            registry=registry,
            specs=specs,
            answerer=answerer,
            clock=clock,
            spending=spending,
            exaid=tuple(role.value for role in exaid_roles(config.exaid_policy)),
            solver=self._solver,
        )


@dataclass(slots=True)
class _Opened:
    """The models of a team in one event loop, for all samples of an evaluation."""

    registry: ModelRegistry
    specs: Mapping[str, ModelSpec]
    """Role -> model."""
    answerer: Answerer
    clock: Clock
    spending: dict[str, SampleTokens]
    """Case -> its tokens so far."""
    exaid: tuple[str, ...]
    """Roles of EXAID; empty if it is off."""
    solver: Solver
    _preparing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _is_prepared: bool = False

    async def prepare(self) -> None:
        """Prepare the method, before its first question."""
        async with self._preparing:
            if not self._is_prepared and self.solver.method is not None:
                await self.solver.method.prepare()
            self._is_prepared = True

    @property
    def room(self) -> RoomFor:
        """Waits for a connection that EXAID may use."""
        return lambda role, urgency: self.registry.room(self.specs[role.value], urgency)


def _model_of(role: str) -> Model:
    return get_model(role=role)


def _connections() -> int:
    """Return the number of concurrent calls of a model.

    EXAID's calls wait for those of teams at our gate, so it is no wider than Inspect's.
    """
    return get_model().config.max_connections or _MOST_CONNECTIONS


def _configs() -> ModelConfigs:
    """Return the providers, with that of Inspect bound to the evaluation in progress."""
    configs = load_model_configs()

    def connect(endpoint: Endpoint) -> Client:
        return InspectClient(endpoint, _model_of)

    own = replace(configs.providers[_PROVIDER], wire=connect)
    return replace(configs, providers={**configs.providers, _PROVIDER: own})


class _NoFiles:
    """Case files that are not kept: Inspect's log has what is in them."""

    @property
    def are_quick(self) -> bool:
        """Return that nothing waits for a disk."""
        return True

    def keep_trace(self, case_id: str, content: bytes) -> None:
        """Drop a trace."""

    def keep_log(self, case_id: str, content: bytes) -> None:
        """Drop a run log of EXAID."""

    def log(self, case_id: str) -> bytes | None:
        """Return that no run log of EXAID was kept."""
        return None

    def content(self, case_id: str) -> bytes:
        """Raise FileNotFoundError: no trace is kept."""
        raise FileNotFoundError(case_id)

    def trace(self, case_id: str) -> Trace:
        """Raise RecordError: no trace is kept."""
        raise RecordError(Path(case_id), 1, "no trace is kept")
