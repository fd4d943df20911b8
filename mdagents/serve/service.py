"""The teams that a server offers, and the questions that they work on."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from statistics import median
from types import MappingProxyType
from typing import TYPE_CHECKING

from mdagents.agents.case import make_case_id
from mdagents.agents.events import Event, Observer
from mdagents.datasets.picture_checks import check_picture
from mdagents.datasets.questions import SourceQuestion
from mdagents.records.manifest import Spent
from mdagents.records.sample import SampleRecord
from mdagents.runs.config import RunConfig
from mdagents.runs.engines.local import usual_places
from mdagents.runs.flags.team_flags import ADAPTIVE
from mdagents.runs.models import (
    check_models,
    check_sight,
    choose_models,
    make_runtime,
    models_of_teams,
)
from mdagents.runs.one_question import Answered, Answerer, config_of_team, shared_budget
from mdagents.runs.session import kept_replies
from mdagents.runs.spans import observed, spans_of_questions
from mdagents.serve.errors import OF_THE_SERVER, ApiError, error_of, invalid
from mdagents.serve.files import ServedFiles, served_files
from mdagents.serve.metrics import Metrics
from mdagents.serve.requests import Ask, no_model, team_of
from mdagents.settings import Difficulty, Router, TeamRole
from mdagents.teams.names import baseline_names, is_own
from mdagents_llm.clock import Clock
from mdagents_llm.config import Environment
from mdagents_llm.endpoints import ModelSpec
from mdagents_llm.errors import BenchError, ConfigError, UnexpectedError, is_debugging
from mdagents_llm.layers.cache import CacheMode
from mdagents_llm.ledger import CallRow, Ledger, Totals
from mdagents_llm.llm_registry import ModelRegistry
from mdagents_llm.terminal.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from mdagents.telemetry.single_spans import SingleSpans

DEFAULT = "mdagents"
"""Second name of the first team."""
_REMEMBERED = 50  # durations of questions from which a wait is estimated
_LONGEST_WAIT = 60  # seconds in `retry-after`


@dataclass(frozen=True, slots=True)
class Team:
    """A team that is offered as a model."""

    name: str
    """Name in the API, without `mdagents/`."""
    config: RunConfig
    specs: Mapping[str, ModelSpec]
    """Role -> model."""
    answerer: Answerer


class Service:
    """Answers the questions of clients: one team each, a limited number at a time.

    Args:
        teams: Teams by name; the first is the one of `--team`.
        left_out: Name of a team that is not offered -> why.
        files: Ledger and records.
        metrics: Numbers for Prometheus.
        clock: Clock for all times.
        places: Maximum number of questions in progress.
        most_queued: Maximum number of questions that wait for a place.
        say: Shows a line to the user of the server.
        spans: Spans of the questions; None: none are made.
    """

    def __init__(
        self,
        teams: Mapping[str, Team],
        left_out: Mapping[str, str],
        files: ServedFiles,
        metrics: Metrics,
        clock: Clock,
        places: int,
        most_queued: int,
        say: Callable[[str], None],
        spans: SingleSpans | None = None,
    ) -> None:
        self.teams = teams
        self.metrics = metrics
        self.files = files
        self.places = places
        self.is_draining: Callable[[], bool] = lambda: False
        """Whether no further question is accepted."""
        self._left_out = left_out
        self._clock = clock
        self._free = asyncio.Semaphore(places)
        self._most_queued = most_queued
        self._say = say
        self._spans = spans
        self._tasks: set[asyncio.Task[SampleRecord]] = set()
        self._open: dict[str, _OpenQuestion] = {}
        self._seconds: list[float] = []

    @property
    def names(self) -> list[str]:
        """Names of the teams, without the second name of the first one."""
        return [name for name in self.teams if name != DEFAULT]

    @property
    def model(self) -> ModelSpec:
        """Model of the experts of the first team."""
        return next(iter(self.teams.values())).specs[TeamRole.EXPERT.value]

    @property
    def in_progress(self) -> int:
        """Number of questions in progress, waiting ones included."""
        return len(self._tasks)

    def team(self, model: str) -> Team:
        """Return the team that a model name means: `mdagents/basic`, or `basic`.

        Raises:
            ApiError: There is no such team, or it is not offered.
        """
        name = team_of(model)
        if name not in self.teams:
            raise no_model(model, self.names, self._left_out.get(name, ""))
        return self.teams[name]

    def _check(self, ask: Ask) -> Team:
        """Return the team for a question, if it can be accepted now.

        Raises:
            ApiError: There is no such team, the server ends, or too many questions wait.
        """
        team = self.team(ask.model)
        if self.is_draining():
            raise ApiError(503, "the server is about to end", "shutting_down", retry_after=10)
        # Questions whose pictures are still checked count as well: they will wait.
        if (queued := self.in_progress - self.places) >= self._most_queued:
            usual = median(self._seconds) if self._seconds else _LONGEST_WAIT
            wait = usual * (queued + 1) / self.places
            raise ApiError(
                429,
                f"{self.places} questions are in progress and {queued} wait; try again later",
                "queue_full",
                retry_after=max(1, min(_LONGEST_WAIT, round(wait))),
            )
        return team

    def start(
        self, ask: Ask, tell: Observer, trace_headers: Mapping[str, str] = MappingProxyType({})
    ) -> asyncio.Task[SampleRecord]:
        """Start to answer a question; cancelling the task stops its calls.

        Args:
            ask: What the client asks.
            tell: Observer to notify of the events of the question.
            trace_headers: Headers in which the client may state its span.

        Returns:
            The task; it raises an ApiError if the question is not answered.

        Raises:
            ApiError: The question cannot be accepted.
        """
        team = self._check(ask)
        task = asyncio.ensure_future(self._answer(team, ask, tell, trace_headers))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def end(self) -> None:
        """Stop all questions in progress."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def booked(self, row: CallRow) -> None:
        """Write a ledger row and count it.

        Raises:
            StorageError: The row cannot be written.
        """
        of = self._open.get(row.case_id)
        if of is not None:
            of.spent += Totals.of(row)
        self.metrics.booked(of.team if of else "", row)
        self.files.booked(row)

    async def _answer(
        self, team: Team, ask: Ask, tell: Observer, trace_headers: Mapping[str, str]
    ) -> SampleRecord:
        started = self._clock.monotonic()
        question = replace(ask.question, id=uuid.uuid4().hex)
        await _check_pictures(team, question)
        seconds = team.config.sample_time_limit
        async with self._place(seconds):
            with self._opened(make_case_id(question.id), team.name) as of, self._counted():
                try:
                    answered = await self._answered(
                        team, question, ask, tell, trace_headers, self._clock.monotonic() - started
                    )
                except BenchError as raised:
                    raise self._told(raised, of.details(), of.spent) from raised
                except Exception as raised:  # whatever is raised costs this question alone
                    if is_debugging():
                        raise
                    unexpected = UnexpectedError.of(raised)
                    raise self._told(unexpected, of.details(), of.spent) from raised
        took = self._clock.monotonic() - started
        self._seconds = [*self._seconds[1 - _REMEMBERED :], took]
        self.metrics.seconds.labels(team.name).observe(took)
        record, error = answered.record, answered.error
        try:
            self.files.decided(record)
        except BenchError as unwritten:
            raise self._told(unwritten, of.details(), of.spent) from unwritten
        if error is not None:
            told = error_of(error, details_of(record, ask), of.spent)
            told.record = record
            raise told from error
        return record

    async def _answered(
        self,
        team: Team,
        question: SourceQuestion,
        ask: Ask,
        tell: Observer,
        trace_headers: Mapping[str, str],
        queued: float,
    ) -> Answered:
        """Answer a question that has a place, and make its spans."""
        with observed(
            self._spans, question.id, team.name, headers=trace_headers, queued=queued
        ) as observe:

            def tell_both(event: Event) -> None:
                tell(event)
                observe(event)

            answered = await team.answerer.answer(question, tell=tell_both, seed=ask.seed)
            if self._spans is not None:
                self._spans.decided(answered.record)
            return answered

    def _told(self, error: BenchError, details: Mapping[str, object], spent: Totals) -> ApiError:
        """Return the error for a client, and show the user of the server what it leaves out."""
        if isinstance(error, OF_THE_SERVER):
            self._say(f"error: {error}")
        return error_of(error, details, spent)

    @asynccontextmanager
    async def _place(self, seconds: float | None) -> AsyncIterator[None]:
        """Wait for a place, and hold it within the context."""
        self.metrics.queued.inc()
        try:
            async with asyncio.timeout(seconds):
                await self._free.acquire()
        except TimeoutError:
            message = f"no team was free within {seconds:g} s"
            raise ApiError(503, message, "queue_timeout", retry_after=_LONGEST_WAIT) from None
        finally:
            self.metrics.queued.dec()
        try:
            yield
        finally:
            self._free.release()

    @contextmanager
    def _opened(self, case_id: str, team: str) -> Iterator[_OpenQuestion]:
        of = self._open[case_id] = _OpenQuestion(case_id, team)
        try:
            yield of
        finally:
            del self._open[case_id]

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self.metrics.in_flight.inc()
        try:
            yield
        finally:
            self.metrics.in_flight.dec()


@dataclass(slots=True)
class _OpenQuestion:
    """A question that a team is working on."""

    case_id: str
    team: str
    spent: Totals = field(default_factory=Totals)

    def details(self) -> dict[str, object]:
        """Return what is known of the question if it has no record."""
        return {
            "case_id": self.case_id,
            "calls": self.spent.calls,
            "prompt_tokens": self.spent.usage.input_tokens,
            "completion_tokens": self.spent.usage.output_tokens,
            "cost_usd": self.spent.cost_usd,
        }


def details_of(record: SampleRecord, ask: Ask) -> dict[str, object]:
    """Return what a response says of an answer besides the fields of OpenAI."""
    usage = record.token_usage
    return {
        "case_id": record.case_id,
        "status": record.status.value,
        "team": record.difficulty,
        "votes": {ask.marks[letter]: count for letter, count in record.votes.items()},
        "confidence": record.confidence,
        "calls": record.calls,
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "cost_usd": usage.cost_usd,
        "ignored": list(ask.ignored),
    }


async def _check_pictures(team: Team, question: SourceQuestion) -> None:
    """Check that pictures can be decoded, and that the agents of a team see them.

    Raises:
        ApiError: A picture is broken, or a model takes none.
    """
    if not question.pictures:
        return
    try:
        check_sight(team.config, team.specs, len(question.pictures))
        await asyncio.to_thread(lambda: list(map(check_picture, question.pictures)))
    except ConfigError as error:
        raise invalid(str(error), "messages", "invalid_image") from None


@asynccontextmanager
async def open_service(
    config: RunConfig,
    names: Sequence[str],
    environment: Environment,
    clock: Clock,
    *,
    most_queued: int,
    say: Callable[[str], None],
) -> AsyncIterator[Service]:
    """Open models, files and teams, and close them at the end.

    Args:
        config: Settings that all teams share.
        names: Teams of `--team`; the first answers the model `mdagents`. All built-in teams that
            need nothing else are offered as well.
        environment: API keys and endpoints.
        clock: Clock for all times.
        most_queued: Maximum number of questions that wait for a place.
        say: Shows a line to the user of the server.

    Raises:
        ConfigError: A team of `names`, a model or a folder cannot be used.
        NothingRecorded: A replay has no cached replies.
    """
    ledger, spent = Ledger(), Spent()
    budget = shared_budget(config, spent)
    async with AsyncExitStack() as opened:
        replies = opened.enter_context(kept_replies(config.cache, config.output_dir))
        registry = ModelRegistry(
            make_runtime(
                config,
                environment,
                ledger,
                clock,
                replies=replies,
                replay=replies if config.cache is CacheMode.ONLY else None,
                may_send=budget.check_if_limited,
            )
        )
        opened.push_async_callback(registry.aclose)

        def opened_team(name: str) -> Team:
            own = _config_of(config, name)
            specs = choose_models(own, environment)
            check_models(own, environment, specs)
            models = models_of_teams(registry, specs)
            answerer = Answerer(own, models, ledger, clock, budget)
            shown = f"{own.method_name}.py" if name.endswith(".py") else name
            return Team(shown, own, specs, answerer)

        wanted = [opened_team(name) for name in names]
        teams = {team.name: team for team in wanted}
        if len(teams) < len(wanted):
            raise ConfigError("two files of --team have the same name; rename one of them")
        left_out = {}
        for name in (ADAPTIVE, *Difficulty, *baseline_names()):
            try:
                teams.setdefault(str(name), opened_team(str(name)))
            except ConfigError as error:
                left_out[str(name)] = str(error)
        teams[DEFAULT] = wanted[0]
        await registry.prepare()
        places = config.max_samples or usual_places(registry, has_pictures=False)
        files = opened.enter_context(
            served_files(config.output_dir, clock.now(), keeps_prompts=config.log_prompts)
        )
        spans = await opened.enter_async_context(
            spans_of_questions(config, environment.variables, ledger, say)
        )
        service = Service(teams, left_out, files, Metrics(), clock, places, most_queued, say, spans)
        opened.enter_context(ledger.subscribed(spent.add))
        opened.enter_context(ledger.subscribed(service.booked))
        opened.push_async_callback(service.end)  # first: what it stops is booked
        yield service


def _config_of(config: RunConfig, name: str) -> RunConfig:
    """Return the configuration of a team; flags of the router go to the adaptive team alone."""
    if name != ADAPTIVE and config.router is not Router.LLM:
        return config_of_team(config, name, router=Router.LLM, agreement=None)
    return config_of_team(config, name)


def check_names(names: Sequence[str]) -> None:
    """Check the names of `--team`.

    Raises:
        ConfigError: A name is of no team.
    """
    known = (ADAPTIVE, *Difficulty, *baseline_names())
    for name in names:
        if name not in known and not is_own(name):
            raise ConfigError(
                f"--team is '{name}' but must be one of {', '.join(known)}, or a file.py"
                f"{did_you_mean(name, known)}"
            )
