"""A run on a cluster: lends its questions to workers and records the results."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from mdagents.agents import events
from mdagents.agents.case import Case, make_case_id
from mdagents.datasets.questions import Question, SourceQuestion, present
from mdagents.records.sample import CaseSummaries, SampleRecord, Watched, make_record
from mdagents.records.summaries import ItemKey
from mdagents.runs.engines.cluster import Cluster
from mdagents.runs.engines.engine import GRACE, Item, Load, Places, Recorder, Task
from mdagents.runs.engines.leases import MOST_DEATHS, Leases
from mdagents.runs.engines.messages import (
    Decided,
    Ended,
    Lease,
    Message,
    Opening,
    Postponed,
    Returned,
    RunOrders,
    Summaries,
    Told,
)
from mdagents.settings import Outcome, TeamRole
from mdagents_llm.clock import epoch_ms
from mdagents_llm.endpoints import CONNECTIONS
from mdagents_llm.errors import (
    BenchError,
    ErrorKind,
    LimitExceeded,
    PictureError,
    ProviderError,
)
from mdagents_llm.layers.retry import OnWait, Wait
from mdagents_llm.ledger import CallRow, CaseBook
from mdagents_llm.providers.local import SLOTS

_TRACES_AT_ONCE = 4  # of decided questions, which a worker's EXAID resumes
_TO_LET_GO = 5.0  # seconds after the grace period, for workers to report how they ended
_AT_ONCE = 2.0  # seconds for the same reports when the user wants to stop at once
_MOST_PICTURES_AHEAD = 2  # questions with pictures to lend ahead: their memory is held meanwhile
_MOST_AT_ONCE = 32 * 2**20  # characters of pictures in one message, unless one question has more
_PERIODS_AHEAD = 2  # periods of a worker's pace to lend ahead, so that it need not wait for more


class DistributedEngine:
    """Answers the questions of a run on a cluster; implements `Engine`.

    Args:
        task: Task to carry out.
        cluster: Cluster of workers.
        on_wait: Called at each pause before a call is retried.
    """

    def __init__(self, task: Task, cluster: Cluster, on_wait: OnWait) -> None:
        self._task = task
        self._cluster = cluster
        self._on_wait = on_wait

    @property
    def places(self) -> int:
        """Number of questions in progress at a time.

        The default is enough to use all connections while calls wait for a retry.
        """
        config = self._task.config
        if config.max_samples:
            return config.max_samples
        if any(spec.is_local for spec in self._task.specs.values()):
            return (config.max_connections or SLOTS) * self._cluster.size  # each has its own
        return 2 * (config.max_connections or CONNECTIONS)

    @property
    def load(self) -> Load:
        """Current load of the cluster."""
        return self._cluster.load

    def answering(
        self, recorder: Recorder, unsummarised: Sequence[tuple[ItemKey, int]] = ()
    ) -> DistributedRun:
        """Return an object that answers the questions of the run on the cluster."""
        return DistributedRun(self._task, self._cluster, recorder, unsummarised, self._on_wait)


class DistributedRun:
    """Answers the items of one run on a cluster; implements `Answering`.

    Args:
        task: Task to carry out.
        cluster: Cluster of workers.
        recorder: Recorder of the results.
        unsummarised: (question, number of the answer) pairs for which EXAID had not finished.
        on_wait: Called at each pause before a call is retried.
    """

    def __init__(
        self,
        task: Task,
        cluster: Cluster,
        recorder: Recorder,
        unsummarised: Sequence[tuple[ItemKey, int]],
        on_wait: OnWait,
    ) -> None:
        self._task = task
        self._cluster = cluster
        self._recorder = recorder
        self._on_wait = on_wait
        self._watchers = list(recorder.watchers)
        self._watch_errors: dict[ItemKey, str] = {}  # of undecided questions
        self._leases = Leases((), self._length)
        self._has_pictures = False
        self._in_all = self._places = 1  # questions in progress: in total, and at one worker
        self._on_all_begun: Callable[[], None] = lambda: None
        self._preparing: dict[ItemKey, asyncio.Task[None]] = {}  # lent, with pictures to prepare
        self._prepared: defaultdict[int, deque[Lease]] = defaultdict(deque)  # lent, not yet sent
        self._parts: set[int] = set()  # workers that take part
        self._pace: defaultdict[int, int] = defaultdict(int)  # questions decided since last orders
        self._attempts = dict(unsummarised)  # of decided questions that EXAID has not finished
        self._kept = deque(item for item, _ in unsummarised)  # those that no worker has
        self._watching: defaultdict[int, set[ItemKey]] = defaultdict(set)
        self._taken_up: defaultdict[int, set[ItemKey]] = defaultdict(set)  # resumed from traces
        self._replied: set[str] = set()  # names of models
        self._outcome = Outcome.FINISHED
        self._over = ""
        self._interrupts = 0
        self._is_stopping = False
        self._undecided = 0
        self._error: BaseException | None = None
        self._done = asyncio.Event()

    @property
    def summarising(self) -> int:
        """Number of decided questions for which EXAID has not finished."""
        return len(self._attempts)

    async def run(
        self, items: Sequence[Item], places: Places, on_all_begun: Callable[[], None]
    ) -> Outcome:
        """Answer items, and let EXAID finish.

        Raises:
            ClusterError: The workers are gone.
            BenchError: A worker's part of the run ended with this error.
        """
        self._leases, self._undecided = Leases(items, self._length), len(items)
        self._has_pictures = any(item.entry.pictures for item in items)
        if self._is_stopping:
            self._leases.drop()
        self._in_all = places.count
        self._places = -(-places.count // self._cluster.size)
        self._on_all_begun = on_all_begun
        self._opening = self._make_opening()
        number = self._cluster.add(self)
        try:
            self._settle()
            await self._done.wait()
        finally:
            self._cluster.remove(number)
            for preparing in self._preparing.values():
                preparing.cancel()
            await asyncio.gather(*self._preparing.values(), return_exceptions=True)
        if self._error is not None:
            raise self._error
        if self._outcome is not Outcome.FINISHED:
            return self._outcome
        is_undone = bool(self._undecided or self._attempts)
        return Outcome.INTERRUPTED if is_undone else Outcome.FINISHED

    def interrupt(self) -> None:
        """Start no more questions; those in progress get `GRACE` seconds, at a second call 2 s."""
        self._interrupts += 1
        first = self._interrupts == 1
        self._stop(in_time=GRACE + _TO_LET_GO if first else _AT_ONCE)

    def fail(self, error: BaseException) -> None:
        """End with an error, after recording the last messages of the workers."""
        if self._error is None:
            self._error = error
            self._interrupts += 2
            self._stop(in_time=_AT_ONCE)

    def orders(self, worker: int) -> RunOrders | None:
        """Return a worker's next orders; None: it is not part of the run and is not needed."""
        self._check_spent()
        for item in self._lend(worker):
            self._prepare(worker, item)
        leases = self._to_send(worker)
        traces = [] if self._is_stopping else self._traces(worker)
        is_new = worker not in self._parts
        if is_new and not leases and not traces:
            return None
        self._parts.add(worker)
        return RunOrders(
            opening=self._opening if is_new else None,
            leases=leases,
            traces=traces,
            is_complete=self._is_all_decided and not self._kept,
            over=self._over,
            ends_as=self._outcome if self._outcome is not Outcome.FINISHED else None,
            interrupts=self._interrupts,
            replied=frozenset(self._replied),
        )

    def take(self, worker: int, message: Message) -> None:
        """Record a message of a worker."""
        match message:
            case CallRow():
                if message.replied and not message.cached:
                    self._replied.add(f"{message.provider}/{message.model_requested}")
                self._recorder.booked(message)
            case Told(item, event, at_ms):
                self._tell(item, event, at_ms)
            case Wait():
                self._on_wait(message)
            case Decided(record, trace, log):
                self._decided(worker, record, trace, log)
            case Summaries(made, log):
                self._summarised(worker, made, log)
            case Postponed(item):
                self._watching[worker].discard(item)
                self._taken_up[worker].discard(item)
                self._kept.append(item)
            case Returned(item):
                self._leases.returned(worker, item)
            case Ended():
                self._ended(worker, message)
        self._settle()

    async def synced(self) -> None:
        """Wait until the decisions of the workers survive a power failure."""
        await self._recorder.synced()

    def lost(self, worker: int, *, by_itself: bool) -> None:
        """Reclaim the questions of a worker that died; give up those on which several died."""
        self._parts.discard(worker)
        self._pace.pop(worker, None)
        self._kept.extend(self._watching.pop(worker, ()))
        self._taken_up.pop(worker, None)
        self._take_back_unsent(worker)
        for key in self._leases.of(worker):
            self._recorder.restarted(key)
        for item in self._leases.lost(worker, self._now(), by_itself=by_itself):
            self._give_up(
                item,
                ProviderError(
                    f"{MOST_DEATHS} workers died while they answered this question",
                    kind=ErrorKind.WORKER_LOST,
                ),
            )
        self._settle()

    @property
    def _is_all_decided(self) -> bool:
        return self._leases.left + self._leases.lent == 0

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _lend(self, worker: int) -> list[Item]:
        if self._is_stopping:
            return []
        room, ahead = self._places, _PERIODS_AHEAD * self._pace[worker]
        if self._in_all < self._cluster.size:  # not every worker may have a question
            others = self._leases.lent - len(self._leases.of(worker))
            room, ahead = int(others < self._in_all), 0
        self._pace[worker] = 0
        if self._has_pictures:
            ahead = min(ahead, _MOST_PICTURES_AHEAD)
        items = self._leases.lend(worker, room, ahead, self._cluster.size, self._now())
        if items and self._leases.left == 0:
            self._on_all_begun()
        return items

    def _prepare(self, worker: int, item: Item) -> None:
        """Prepare the lease of a question that is lent to a worker."""
        source = self._task.load(item)
        if not source.pictures:
            self._prepared[worker].append(Lease(item, source))
            return
        preparing = self._prepare_pictures(worker, item, source)
        self._preparing[item.key] = asyncio.get_running_loop().create_task(preparing)

    async def _prepare_pictures(self, worker: int, item: Item, source: SourceQuestion) -> None:
        """Prepare a lease with pictures; a picture that cannot be shown costs its question."""
        try:
            try:
                question = self._presented(item, source)
                pictures = await self._recorder.pictures_of(item, question)
                self._prepared[worker].append(Lease(item, _without_contents(source), pictures))
            except PictureError as error:
                self._leases.done(worker, item.key)
                self._give_up(item, error)
                await self._recorder.synced()
        except Exception as error:  # noqa: BLE001 - raised by `run`
            self.fail(error)
        finally:
            if self._preparing.get(item.key) is asyncio.current_task():
                del self._preparing[item.key]
            self._settle()

    def _presented(self, item: Item, source: SourceQuestion) -> Question:
        config = self._task.config
        return present(source, config.option_order, config.seed, item.epoch)

    def _to_send(self, worker: int) -> list[Lease]:
        """Remove and return the prepared leases of a worker, at most as many as fit a message."""
        prepared, leases, size = self._prepared[worker], list[Lease](), 0
        while prepared and not self._is_stopping:
            size += sum(len(picture.base64) for picture in prepared[0].pictures)
            if leases and size > _MOST_AT_ONCE:
                break
            leases.append(prepared.popleft())
        return leases

    def _take_back_unsent(self, worker: int) -> None:
        """Reclaim the questions that were lent to a worker and never sent to it."""
        for lease in self._prepared.pop(worker, ()):
            self._leases.returned(worker, lease.item.key)
        for key in self._leases.of(worker):
            if (preparing := self._preparing.pop(key, None)) is not None:
                preparing.cancel()
                self._leases.returned(worker, key)

    def _traces(self, worker: int) -> list[tuple[ItemKey, bytes, bytes | None]]:
        """Return decided questions for EXAID, as many as the worker has room for."""
        traces: list[tuple[ItemKey, bytes, bytes | None]] = []
        while self._kept and len(self._taken_up[worker]) < _TRACES_AT_ONCE:
            item = self._kept.popleft()
            content, log = b"", None  # for an empty trace, EXAID reports that it cannot be read
            with suppress(OSError):
                content = self._recorder.files.content(make_case_id(*item))
                log = self._recorder.files.log(make_case_id(*item))
            traces.append((item, content, log))
            self._watching[worker].add(item)
            self._taken_up[worker].add(item)
        return traces

    def _decided(
        self, worker: int, record: SampleRecord, trace: bytes | None, log: bytes | None
    ) -> None:
        key = record.question_id, record.epoch
        if not self._leases.done(worker, key):
            return
        self._pace[worker] += 1
        watched = _with_error(record.watched, self._watch_errors.pop(key, None))
        if trace is not None:
            error = _tried(lambda: self._recorder.files.keep_trace(record.case_id, trace))
            watched = _with_error(watched, error)
        if log is not None:
            error = _tried(lambda: self._recorder.files.keep_log(record.case_id, log))
            watched = _with_error(watched, error)
        record = record.model_copy(update={"watched": watched})
        attempt = self._record(record)
        if self._recorder.policy is not None:
            self._attempts[key] = attempt
            self._watching[worker].add(key)

    def _record(self, record: SampleRecord) -> int:
        recorded = self._recorder.decided(record)
        self._undecided -= 1
        if recorded.too_many_errors:
            self._end(Outcome.TOO_MANY_ERRORS)
        return recorded.attempt

    def _summarised(self, worker: int, made: CaseSummaries, log: bytes | None) -> None:
        key = made.question_id, made.epoch
        attempt = self._attempts.get(key)
        if attempt is None:
            return
        self._taken_up[worker].discard(key)
        if made.is_complete:
            del self._attempts[key]
            self._watching[worker].discard(key)
        error = None
        if log is not None:
            error = _tried(lambda: self._recorder.files.keep_log(made.case_id, log))
        watched = _with_error(made.watched, error)
        self._recorder.summarised(made.model_copy(update={"attempt": attempt, "watched": watched}))

    def _give_up(self, item: Item, error: BenchError) -> None:
        """Record that no worker can answer a question."""
        config = self._task.config
        case = Case(
            id=make_case_id(*item.key),
            question=self._presented(item, self._task.load(item)),
            models={},
            settings=config.team,
            seed=config.seed,
        )
        record = make_record(
            case,
            epoch=item.epoch,
            route=None,
            decision=None,
            error=error,
            book=CaseBook(),
            wall_seconds=0.0,
        )
        self._tell(item.key, events.Ended(None, str(error)), epoch_ms())
        attempt = self._record(record)
        if self._recorder.policy is not None:  # EXAID has nothing to follow
            self._recorder.summarised(
                CaseSummaries(
                    question_id=record.question_id,
                    epoch=record.epoch,
                    case_id=record.case_id,
                    attempt=attempt,
                    exaid=record.exaid,
                    watched=record.watched,
                    alerts=0,
                )
            )

    def _ended(self, worker: int, ended: Ended) -> None:
        self._parts.discard(worker)
        self._taken_up.pop(worker, None)
        self._take_back_unsent(worker)
        for item in self._leases.of(worker):
            self._leases.returned(worker, item)
        # Questions that EXAID has not finished wait for the next start if the run stops, else for
        # another worker.
        self._kept.extend(self._watching.pop(worker, ()))
        if ended.fault:
            self.fail(RuntimeError(f"a worker failed:\n{ended.fault}"))
        elif ended.error is not None:
            self.fail(ended.error)
        elif ended.outcome is Outcome.LIMIT:
            self._end(Outcome.LIMIT)

    def _check_spent(self) -> None:
        try:
            self._task.budget.check()
        except LimitExceeded as error:
            self._over = str(error)  # questions in progress may need no further call
            if self._leases.left or self._kept:
                self._end(Outcome.LIMIT)

    def _end(self, outcome: Outcome) -> None:
        """Lend nothing more; questions in progress finish."""
        if self._outcome is Outcome.FINISHED:
            self._outcome = outcome
            self._stop()

    def _stop(self, in_time: float | None = None) -> None:
        """Start nothing more.

        Args:
            in_time: Seconds to wait for the workers; None waits for all of them.
        """
        self._is_stopping = True
        self._leases.drop()
        if in_time is not None:
            asyncio.get_running_loop().call_later(in_time, self._done.set)
        self._settle()

    def _settle(self) -> None:
        """Signal the end of the run when there is nothing left to wait for."""
        is_over = self._is_stopping or self._outcome is not Outcome.FINISHED
        if not self._parts and (is_over or (self._is_all_decided and not self._kept)):
            self._done.set()

    def _tell(self, item: ItemKey, event: events.Event, at_ms: int) -> None:
        for watch in tuple(self._watchers):
            try:
                watch(item, event, at_ms)
            except Exception as error:  # noqa: BLE001 - an observer must not disturb the run
                self._watchers.remove(watch)
                self._watch_errors[item] = _in_a_line(error)

    def _length(self, item: Item) -> float:
        """Return the length of a question's text, the best estimate before it is answered."""
        try:
            return float(len(self._task.load(item).text))
        except BenchError:
            return 0.0  # the error is reported when the question is lent

    def _make_opening(self) -> Opening:
        task, method = self._task, self._task.solver.method
        config = task.config
        is_file = config.method.endswith(".py")
        spec = task.specs[TeamRole.EXPERT.value]
        return Opening(
            config=config,
            specs=dict(task.specs),
            name=task.name,
            model=task.model,
            revision=task.revision,
            policy=self._recorder.policy,
            places=self._places,
            endpoint=spec.base_url or str(spec),
            is_limited=task.budget.check_if_limited is not None,
            exemplars=None if method is None else method.exemplars,
            own_source=Path(config.method).read_bytes() if is_file else None,
            source_sha256="" if method is None else method.source_sha256,
            modules={} if method is None else method.modules,
        )


def _without_contents(source: SourceQuestion) -> SourceQuestion:
    """Return a question without the pictures in its record, which a lease holds anyway."""
    pictures = [replace(picture, content=b"") for picture in source.pictures]
    return replace(source, pictures=tuple(pictures))


def _tried(write: Callable[[], None]) -> str | None:
    """Call `write` for an observer; return its error on one line, or None."""
    try:
        write()
    except Exception as error:  # noqa: BLE001 - an observer must not disturb the run
        return _in_a_line(error)
    return None


def _in_a_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _with_error(watched: Watched, error: str | None) -> Watched:
    said = "; ".join(filter(None, (watched.error, error))) or None
    return watched.model_copy(update={"error": said})
