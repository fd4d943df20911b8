"""The engine `local`, which answers the questions of a run in this process."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager

from mdagents.records.summaries import ItemKey
from mdagents.runs.config import RunConfig
from mdagents.runs.engines.engine import Load, Recorder, Task
from mdagents.runs.engines.exaid_queue import ExaidQueue
from mdagents.runs.engines.observers import ExaidModels, RunObservers
from mdagents.runs.engines.runner import Runner
from mdagents.runs.models import exaid_roles, models_of_teams
from mdagents_llm.config import LLMRole
from mdagents_llm.endpoints import Endpoints, ModelSpec, Runtime
from mdagents_llm.layers.gate import Urgency
from mdagents_llm.llm_registry import ModelRegistry
from mdagents_llm.model_configs import LOCAL

_IN_BATCHES = 500
"""Questions in progress where requests go in batches, unless the user sets another number."""


class LocalEngine:
    """Answers with the models of this process.

    Args:
        task: Task to carry out.
        runtime: Resources that the models share; its ledger belongs to this run alone.
        registry: Registry of the models.
        postpone: Takes over decided questions whose EXAID does not fit into memory; None: they are
            summarized from their traces later.
    """

    def __init__(
        self,
        task: Task,
        runtime: Runtime,
        registry: ModelRegistry,
        postpone: Callable[[ItemKey, int], None] | None = None,
    ) -> None:
        self._task = task
        self._runtime = runtime
        self._registry = registry
        self._postpone = postpone
        self._models = models_of_teams(registry, task.specs)
        self._exaid_models = _exaid_models(task.config, registry, task.specs)

    @property
    def places(self) -> int:
        """Number of questions in progress at a time.

        The default is enough to use all connections while calls wait for a retry. An embedded model
        gets one question for each slot, so that the prompt cache of a slot is used. Questions with
        pictures get one place for each connection, since their pictures are in memory meanwhile.
        """
        if self._task.config.max_samples:
            return self._task.config.max_samples
        if self._registry.batched:
            return _IN_BATCHES
        return usual_places(self._registry, has_pictures=self._task.has_pictures)

    @property
    def load(self) -> Load:
        """Current load of the endpoints and batches."""
        endpoints = self._registry.connections.values()
        return Load(
            under_way=sum(c.in_flight for c in endpoints),
            allowed=sum(c.allowed for c in endpoints),
            queued=sum(c.waiting for c in endpoints),
            cooling=max([c.cooling() for c in endpoints], default=0.0),
            in_batches=sum(model.waiting for model in self._registry.batched),
        )

    async def leave_batches(self, *, cancel: bool) -> str:
        """Leave the batches in progress to the provider, or cancel them.

        Args:
            cancel: Whether to cancel the batches at the provider.

        Returns:
            The fate of the batches, on one line; empty without any batch.
        """
        models, told = self._registry.batched, []
        if not cancel:
            left = [batch.id for model in models for batch in model.under_way()]
        else:
            ended = [await model.cancel() for model in models]
            if cancelled := [one for ids, _ in ended for one in ids]:
                told.append(f"cancelled at the provider: {', '.join(cancelled)}")
            left = [one for _, ids in ended for one in ids]
        if left:
            told.append(f"left at the provider, for the same command to collect: {', '.join(left)}")
        return "; ".join(told)

    def answering(
        self, recorder: Recorder, unsummarised: Sequence[tuple[ItemKey, int]] = ()
    ) -> Runner:
        """Return a runner that answers the questions of the run."""
        task, runtime = self._task, self._runtime
        observers = RunObservers(
            files=recorder.files,
            run_name=task.name,
            model=task.model,
            revision=task.revision,
            clock=runtime.clock,
            watchers=recorder.watchers,
            policy=recorder.policy,
            models=self._exaid_models,
            budget=task.budget,
            recorded=recorder.recorded,
            tells_steps=task.config.otel,
        )
        ledger = runtime.ledger
        exaid = ExaidQueue(observers, recorder.summarised, unsummarised, self._postpone)
        return Runner(task, self._models, ledger, runtime.clock, observers, exaid, recorder)


def usual_places(registry: ModelRegistry, *, has_pictures: bool) -> int:
    """Return the number of questions in progress at a time where the user set none.

    Args:
        registry: Registry of the models.
        has_pictures: Whether questions have pictures, which are in memory meanwhile.
    """
    limits = registry.connections.items()
    local, remote = f"{LOCAL}/", 1 if has_pictures else 2
    questions = (c.limit * (1 if name.startswith(local) else remote) for name, c in limits)
    return max(questions, default=1)  # replays have no connections


@asynccontextmanager
async def local_engine(
    task: Task,
    runtime: Runtime,
    endpoints: Endpoints | None = None,
    postpone: Callable[[ItemKey, int], None] | None = None,
    on_open: Callable[[], None] = lambda: None,
) -> AsyncIterator[LocalEngine]:
    """Open the resources that the questions of a run need, and close them at the end.

    Args:
        task: Task to carry out.
        runtime: Resources that the models share; its ledger belongs to this run alone.
        endpoints: Endpoints shared with other runs; None: the run opens its own.
        postpone: Takes over decided questions whose EXAID does not fit into memory; None: they are
            summarized from their traces later.
        on_open: Called when the endpoints are known, before anything is sent to one.

    Raises:
        ConfigError: A model cannot be reached, or a local one cannot be loaded.
    """
    async with aclosing(ModelRegistry(runtime, endpoints)) as registry:
        engine = LocalEngine(task, runtime, registry, postpone)
        on_open()
        await registry.prepare()
        if task.solver.method is not None:
            await task.solver.method.prepare()
        yield engine


def _exaid_models(
    config: RunConfig, registry: ModelRegistry, specs: Mapping[str, ModelSpec]
) -> ExaidModels | None:
    models = [registry.model(specs[role.value]) for role in exaid_roles(config.exaid_policy)]
    # A policy without a buffer agent makes no calls for it.
    if not models:
        return None
    # Failures are in the records and the last lines of the run: without this, each would be a line
    # on standard error where nobody has set up logging.
    logging.getLogger("exaid_core").addHandler(logging.NullHandler())

    def room(role: LLMRole, urgency: Urgency) -> AbstractAsyncContextManager[None]:
        return registry.room(specs[role.value], urgency)

    return ExaidModels(summarizer=models[0], buffer_agent=models[-1], room=room)
