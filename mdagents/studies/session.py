"""Executes a study: its runs share one process, one set of clients, and the reply cache."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from enum import StrEnum

from mdagents.agents.case import first_of
from mdagents.records.manifest import RunTotals, Spent
from mdagents.records.study import StudyManifest, StudyRun
from mdagents.runs.budget import Budget
from mdagents.runs.models import make_runtime
from mdagents.runs.plan import Plan, make_plan
from mdagents.runs.session import Shared, carry_out, kept_replies, open_cluster
from mdagents.runs.signals import Stops
from mdagents.settings import Outcome
from mdagents.studies.file import Cell, StudyFile
from mdagents_llm.clock import Clock
from mdagents_llm.config import Environment
from mdagents_llm.endpoints import Endpoints, ModelSpec
from mdagents_llm.errors import BenchError, EndpointDown
from mdagents_llm.ledger import Ledger


class State(StrEnum):
    """State of a run of a study."""

    WAITING = "waiting"
    UNDER_WAY = "under way"
    FINISHED = "finished"
    STOPPED = "not finished"
    """The run could not be finished; running the same command again retries it."""


@dataclass(slots=True)
class CellRun:
    """A run of a study and its state."""

    cell: Cell
    plan: Plan
    state: State
    reason: str = ""
    """Reason why the run could not be finished; empty in any other state."""
    taken_up: bool = False
    """Whether this process has opened the run."""

    @classmethod
    def planned(cls, cell: Cell, environment: Environment, clock: Clock) -> CellRun:
        """Return the run in the state in which an earlier process left it.

        Raises:
            ConfigError: A setting or a file is invalid.
        """
        plan = make_plan(cell.config, environment, clock)
        return cls(cell, plan, State.WAITING if plan.finished is None else State.FINISHED)

    @property
    def totals(self) -> RunTotals:
        """Totals over the recorded questions."""
        earlier = self.plan.earlier
        return self.plan.manifest.totals if self.taken_up or not earlier else earlier.totals

    @property
    def spent(self) -> Spent:
        """Spending of the run, over all processes."""
        earlier = self.plan.earlier
        return self.plan.manifest.spent if self.taken_up or not earlier else earlier.spent

    @property
    def questions(self) -> int:
        """Number of questions times epochs."""
        return len(self.plan.items)

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.plan.manifest.name


class StudySession:
    """Executes the runs of a study.

    Runs on one endpoint start in sequence, each as soon as the previous one has started its last
    question, which keeps the endpoint busy; different endpoints work in parallel.

    Args:
        study: The parsed study file.
        runs: Runs of the study.
        environment: API keys and endpoints.
        clock: Clock for all times.
        stops: Signals that request a stop.
        changed: Callback for state changes of a run.
    """

    def __init__(
        self,
        study: StudyFile,
        runs: Sequence[CellRun],
        environment: Environment,
        clock: Clock,
        stops: Stops,
        changed: Callable[[CellRun], None],
    ) -> None:
        self._study = study
        self._runs = runs
        self._environment = environment
        self._clock = clock
        self._stops = stops
        self._changed = changed
        self._out_of_reach: dict[frozenset[ModelSpec], str] = {}
        self.is_at_limit = False
        """Whether a cost or token limit of the study was reached."""

    async def run(self) -> None:
        """Execute the unfinished runs of the study.

        Raises:
            BenchError: The reply cache cannot be opened, or the study cannot be written.
        """
        config = self._runs[0].cell.config
        runtime = make_runtime(config, self._environment, Ledger(), self._clock)
        with kept_replies(config.cache, config.output_dir) as replies:
            async with (
                aclosing(Endpoints(runtime)) as endpoints,
                open_cluster(
                    config, self._environment, self._clock, replies, self._stops
                ) as cluster,
            ):
                shared = Shared(endpoints, replies, cluster, self._budget(), self._stops)
                lanes: dict[str, list[CellRun]] = {}
                for run in self._runs:
                    lanes.setdefault(run.plan.endpoint, []).append(run)
                try:
                    async with asyncio.TaskGroup() as group:
                        for lane in lanes.values():
                            group.create_task(self._work_through(lane, shared))
                except BaseExceptionGroup as errors:
                    raise first_of(errors) from None

    async def _work_through(self, lane: Sequence[CellRun], shared: Shared) -> None:
        async with asyncio.TaskGroup() as group:
            for run in lane:
                if self._stops.signals or self.is_at_limit:
                    return
                if run.state is State.FINISHED:
                    continue
                if why := self._out_of_reach.get(_models(run)):
                    self._set(run, State.STOPPED, why)
                    continue
                all_begun = asyncio.Event()
                group.create_task(self._carry_out(run, shared, all_begun))
                await all_begun.wait()

    async def _carry_out(self, run: CellRun, shared: Shared, all_begun: asyncio.Event) -> None:
        self._set(run, State.UNDER_WAY)
        try:
            result = await carry_out(
                run.plan,
                self._environment,
                self._clock,
                on_ready=lambda: self._take_up(run),
                on_all_begun=all_begun.set,
                shared=shared,
            )
        except BenchError as error:  # no API key, or another process holds this run
            self._set(run, State.STOPPED, str(error))
            return
        finally:
            all_begun.set()
        if isinstance(result.error, EndpointDown):
            self._out_of_reach[_models(run)] = str(result.error)
        self.is_at_limit |= result.outcome is Outcome.LIMIT
        if result.error is None and result.outcome is Outcome.FINISHED:
            self._set(run, State.FINISHED)
        else:
            why = str(result.error) if result.error is not None else result.reason
            self._set(run, State.STOPPED, why)

    @staticmethod
    def _take_up(run: CellRun) -> None:
        run.taken_up = True

    def _set(self, run: CellRun, state: State, reason: str = "") -> None:
        run.state, run.reason = state, reason
        self._changed(run)

    def _budget(self) -> Budget:
        """Return the budget of all runs of the study."""

        def spent() -> tuple[int, float | None]:
            spent = study_spent(self._runs)
            return spent.total_tokens, spent.cost_usd

        return Budget(
            spent,
            tokens=self._study.token_limit,
            cost=self._study.cost_limit,
            reached=(
                "the study has reached limits.tokens:",
                "the study has reached limits.cost, in USD:",
            ),
        )


def study_spent(runs: Sequence[CellRun]) -> Spent:
    """Return the combined spending of runs: tokens, and USD when all prices are known."""
    return sum((run.spent for run in runs), Spent())


def manifest_of(study: StudyFile, runs: Sequence[CellRun]) -> StudyManifest:
    """Return the manifest of a study."""
    return StudyManifest(
        name=study.name,
        baseline=study.baseline,
        runs=[
            StudyRun(
                dataset=run.cell.dataset,
                model=run.cell.model,
                method=run.cell.method,
                run=run.name,
                reason=run.reason,
            )
            for run in runs
        ],
    )


def _models(run: CellRun) -> frozenset[ModelSpec]:
    return frozenset(run.plan.specs.values())
