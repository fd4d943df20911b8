"""Follows runs for all pages that are open on them, and streams the changes to each page."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from itertools import chain
from pathlib import Path

from watchfiles import awatch

from mdagents.agents.case import make_case_id
from mdagents.live import LIVE_FILE
from mdagents.live.case import LiveCase
from mdagents.live.run import LiveRun
from mdagents.live.runs import ListedRun, Runs, RunState, UnreadableRun
from mdagents.pages.html_parts import Part, made_by
from mdagents.pages.leaderboard import Board, Ranks, ranked
from mdagents.pages.question import QuestionPage
from mdagents.pages.run import Decided, RunLine, RunPage, question_address
from mdagents.pages.study_matrix import study_parts
from mdagents.records.study import StudyManifest, read_studies
from mdagents.scoring.ranking import Scores, scores_of
from mdagents.scoring.rows import read_output
from mdagents.view.page_diff import Operation, Stage
from mdagents.view.record_index import RecordIndex
from mdagents_llm.clock import epoch_ms
from mdagents_llm.errors import ConfigError

_BETWEEN = 0.25  # seconds between updates of a page: at most four a second
_LONGEST_SILENCE = 1_000  # ms after which files are checked without a change notification
_BETWEEN_LISTS = 2.0  # seconds
_SHARE = 0.04  # maximum share of time spent on reading results
_SOON = 4_000_000  # bytes of records for which a page waits; more are read while it is shown
_KEPT_PAGES = 4  # pages without a viewer that stay in memory

Update = tuple[int, list[Operation]]
"""(version, operations that bring the page to it)."""


class Watch:
    """Keeps pages up to date while they have viewers.

    Args:
        parts: Function from the name of a page to its current parts; None for an unknown page.
        clock: Function that returns a growing number, also across servers.
        changes: Generator that calls `update` and yields when something may have changed; it ends
            when nothing can change anymore.
        between: Seconds between updates of a page.
    """

    def __init__(
        self,
        parts: Callable[[str], Iterable[Part] | None],
        clock: Callable[[], int],
        changes: Callable[[], AsyncGenerator[None]],
        *,
        between: float = _BETWEEN,
    ) -> None:
        self._between = between
        self._parts, self._clock, self._changes = parts, clock, changes
        self._latest = 0  # version
        self._stages: dict[str, Stage] = {}  # by page name, the latest opened last
        self._viewers = Counter[str]()
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._has_ended = False

    def update(self) -> None:
        """Record the current state of all open pages.

        Call this after reading new data and before anything else uses the data.
        """
        for page in self._viewers:
            self._note(page)

    async def updates(self, page: str, after: int) -> AsyncGenerator[Update]:
        """Yield the changes of a page until nothing can change anymore.

        Args:
            page: Name of the page.
            after: Version that the browser shows.
        """
        with self._open(page) as stage:
            while True:
                changed, is_over = self._changed, self._is_over
                # More may change while this is sent.
                operations, after = stage.since(after), stage.version
                if operations:
                    yield after, operations
                if is_over:
                    if self._task is not None and self._task.done():
                        await self._task  # its error must fail the stream, not just end it
                    return
                await changed.wait()

    def end(self) -> None:
        """End all current and future streams after they have sent the pending changes."""
        self._has_ended = True
        self._wake()

    def version(self, page: str) -> int:
        """Return the current version of a page, for `updates`.

        The stream then skips what was sent with the page, even if more has happened meanwhile.
        """
        return self._note(page).version

    def _note(self, page: str) -> Stage:
        """Record the current state of a page; keep the latest few pages without viewers."""
        # A new stage never reuses a version of an earlier one of its page: the content may differ.
        version = self._latest = max(self._clock(), self._latest + 1)
        stage = self._stages.pop(page, None) or Stage(version)
        self._stages[page] = stage
        if (parts := self._parts(page)) is not None:
            stage.update(parts, version)
        for left in [name for name in self._stages if name not in self._viewers][:-_KEPT_PAGES]:
            del self._stages[left]
        return stage

    @contextmanager
    def _open(self, page: str) -> Iterator[Stage]:
        self._viewers[page] += 1
        if self._task is None:
            self._task = asyncio.create_task(self._follow())
        try:
            yield self._note(page)
        finally:
            self._viewers -= Counter([page])
            if not self._viewers and self._task is not None:
                self._task.cancel()
                self._task = None

    @property
    def are_seen(self) -> bool:
        """Whether any page has a viewer."""
        return bool(self._viewers)

    @property
    def _is_over(self) -> bool:
        return self._has_ended or self._task is None or self._task.done()

    async def _follow(self) -> None:
        try:
            async with aclosing(self._changes()) as changes:
                async for _ in changes:
                    self._wake()
                    await asyncio.sleep(self._between)
        finally:
            asyncio.get_running_loop().call_soon(self._wake)  # when the task is done

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class RunWatch:
    """The feed, the results and the open pages of one start of a run.

    Args:
        runs: Runs of the folder.
        run: The run.
    """

    def __init__(self, runs: Runs, run: ListedRun) -> None:
        self._runs = runs
        self.run = run
        self.live = LiveRun(run.folder / LIVE_FILE)
        self.trouble = ""
        """Why the results cannot be read; empty if they can."""
        self.index = RecordIndex(run.folder, run.manifest)
        """Decided questions of the run."""
        self.decided = Decided()
        self._next_read = 0.0  # earliest time of the next read, in seconds
        self._indexing: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self.pages = Watch(self._parts, epoch_ms, self._changes)

    async def refresh(self) -> None:
        """Read new data; concurrent calls share one read."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
            self._reading.add_done_callback(self._end_reading)
        await asyncio.shield(self._reading)

    def _end_reading(self, reading: asyncio.Task[None]) -> None:
        self._reading = None
        if not reading.cancelled():
            reading.exception()  # retrieves the error, since all waiters may be gone

    async def end(self) -> None:
        """Bring the pages up to date and end their streams."""
        try:
            await self._refresh_from_now()
        finally:
            self.pages.end()

    async def _refresh_from_now(self) -> None:
        """Read new data, with everything that is on the disk at this moment."""
        if self._reading is not None:
            await asyncio.shield(self._reading)  # a read that began earlier
        await self.refresh()

    async def _read(self) -> None:
        """Read files in a thread; the data of pages changes only here, between their renderings."""
        run = await asyncio.to_thread(self._runs.get, self.run.name)
        if isinstance(run, ListedRun):
            self.run = run
        self.live.take(await asyncio.to_thread(self.live.read))
        if self._indexing is None and self._is_due:
            self._indexing = asyncio.create_task(self._index())
            self._indexing.add_done_callback(self._end_indexing)
        if self._indexing is not None and self.index.unread <= _SOON:
            await asyncio.shield(self._indexing)
        self.pages.update()

    @property
    def _is_due(self) -> bool:
        """Whether there are new results, unless reading would exceed its share of time."""
        is_late = self.run.state is not RunState.RUNNING
        return bool(self.index.unread) and (time.monotonic() >= self._next_read or is_late)

    async def _index(self) -> None:
        started = time.monotonic()
        try:
            self.decided = await asyncio.to_thread(self.index.update)
            self.trouble = self.index.trouble
        except ConfigError as error:
            self.trouble = str(error)
        self._next_read = time.monotonic() + (time.monotonic() - started) / _SHARE
        self.pages.update()

    def _end_indexing(self, indexing: asyncio.Task[None]) -> None:
        self._indexing = None
        if not indexing.cancelled():
            indexing.exception()

    async def all_read(self) -> None:
        """Wait until the records that the files hold have been read."""
        if self._indexing is not None:
            await asyncio.shield(self._indexing)

    def case(self, id_: str) -> LiveCase | None:
        """Return a question of the feed by its case id; None if the feed has no such question."""
        for case in self.live.cases.values():
            if make_case_id(*case.item) == id_:
                return case
        return None

    @property
    def page(self) -> RunPage:
        """View model of the run's page."""
        # The feed may have been removed before its end was read.
        under_way = [] if self.is_finished else self.live.under_way
        is_reading = self._indexing is not None
        return RunPage(self.run, under_way, self.decided, self.trouble, is_reading)

    def _parts(self, page: str) -> Iterable[Part] | None:
        if not page:
            return self.page.parts()
        case = self.case(page)
        if case is None:
            return None
        rate = rating_address(case, self.run) if case.ended else ""
        of_rate = Part("rate", "", rate, made_by("question_parts.html", "rate", rate))
        return [*live_page(case, self.run).parts(), of_rate]

    @property
    def is_finished(self) -> bool:
        """Whether the run is finished."""
        return self.run.state is RunState.FINISHED

    @property
    def is_live(self) -> bool:
        """Whether the pages may still change; True for an interrupted run, which may be resumed."""
        return not self.is_finished and (self.run.folder / LIVE_FILE).exists()

    async def _changes(self) -> AsyncGenerator[None]:
        """Yield when the feed grows, and once a second; end when the feed is gone or replaced."""
        start = self.run.start
        told = awatch(
            self.run.folder,
            watch_filter=lambda _, changed: changed.endswith(LIVE_FILE),
            debounce=50,
            step=10,
            rust_timeout=_LONGEST_SILENCE,
            yield_on_timeout=True,
            recursive=False,
        )
        async with aclosing(told):
            async for _ in told:
                await self.refresh()
                # Asked once: a feed that vanishes later is noticed in the next round, which reads
                # how the run ended.
                if is_over := not self.is_live or self.run.start != start:
                    await self._refresh_from_now()  # a run marks itself finished, then removes it
                yield
                if is_over:
                    return


def live_page(case: LiveCase, run: ListedRun) -> QuestionPage:
    """Return the view model of the page of a question in a run's feed."""
    return QuestionPage(
        case,
        case.right_letters,
        is_at_work=run.state is RunState.RUNNING,
        folder=run.folder,
        pictures_at=RunLine(run).pictures_at,
    )


def rating_address(case: LiveCase, run: ListedRun) -> str:
    """Return the URL path of the form for ratings of a question."""
    return f"{question_address(RunLine(run).address, case.item)}/rate"


class ListWatch:
    """The run list, kept up to date for its viewers."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self.listed: list[ListedRun | UnreadableRun] = []
        self._studies: list[StudyManifest] = []
        self._scores: dict[tuple[str, str], Scores] = {}  # by name and start of a finished run
        self._ranks: Ranks = {}
        self._ranking: asyncio.Task[None] | None = None
        self.pages = Watch(self._parts, epoch_ms, self._changes)

    async def refresh(self) -> None:
        """Read the runs and the studies."""
        self.listed = await asyncio.to_thread(self._runs.list)
        self._studies = await asyncio.to_thread(read_studies, self._runs.output_dir)
        if self._is_ranking and self._ranking is None:
            self._ranking = asyncio.create_task(self._rank(self._finished))
            self._ranking.add_done_callback(self._end_ranking)
        self.pages.update()

    @property
    def _finished(self) -> dict[tuple[str, str], ListedRun]:
        """(name, start) -> finished run of the list."""
        return {
            (run.name, run.start): run
            for run in self.listed
            if isinstance(run, ListedRun) and run.state is RunState.FINISHED
        }

    @property
    def _is_ranking(self) -> bool:
        """Whether the ranks are not those of the finished runs."""
        return self._finished.keys() != self._scores.keys()

    async def _rank(self, finished: Mapping[tuple[str, str], ListedRun]) -> None:
        """Rank the finished runs; only those that are new are read."""
        scores: dict[tuple[str, str], Scores] = {}
        for key, run in finished.items():
            known = self._scores.get(key)
            scores[key] = known if known is not None else await asyncio.to_thread(_scores, run)
        by_name = {name: of_run for (name, _), of_run in scores.items()}
        self._ranks = await asyncio.to_thread(ranked, by_name)
        self._scores = scores
        self.pages.update()

    def _end_ranking(self, ranking: asyncio.Task[None]) -> None:
        self._ranking = None
        if not ranking.cancelled():
            ranking.exception()

    @property
    def board(self) -> Board:
        """View model of the run list."""
        return Board(self.listed, self._ranks, self._is_ranking)

    def study_parts(self) -> Iterator[Part]:
        """Yield the parts of the run list that show studies."""
        return study_parts(self._studies, [r for r in self.listed if isinstance(r, ListedRun)])

    def _parts(self, _: str) -> Iterator[Part]:
        return chain(self.study_parts(), self.board.parts())

    async def end(self) -> None:
        """Bring the run list up to date and end its streams."""
        try:
            await self.refresh()
        finally:
            self.pages.end()

    async def _changes(self) -> AsyncGenerator[None]:
        while True:
            await self.refresh()
            yield
            await asyncio.sleep(_BETWEEN_LISTS)


def _scores(run: ListedRun) -> Scores:
    """Return the right answers of a run; none if its records cannot be read."""
    try:
        return scores_of(read_output(run.folder / "samples.jsonl").rows)
    except ConfigError:
        return Scores(b"", (), ())


class Watches:
    """Watches of the run list and of the open runs of an output folder."""

    def __init__(self, output_dir: Path) -> None:
        self.runs = Runs(output_dir)
        self.list = ListWatch(self.runs)
        self.have_ended = False
        """Whether the server is shutting down."""
        self._of_runs: dict[str, RunWatch] = {}

    async def of(self, name: str) -> RunWatch | UnreadableRun | None:
        """Return the watch of a run, up to date; None if no run has this name."""
        run = await asyncio.to_thread(self.runs.get, name)
        if not isinstance(run, ListedRun):
            self._of_runs.pop(name, None)
            return run
        watch = self._of_runs.pop(name, None)
        if watch is None or watch.run.start != run.start:  # a new start has a new feed
            watch = RunWatch(self.runs, run)
        self._of_runs[name] = watch  # moves it to the end
        unseen = [name for name, one in self._of_runs.items() if not one.pages.are_seen]
        for left in unseen[:-_KEPT]:
            del self._of_runs[left]  # its index is freed and closed with it
        await watch.refresh()
        return watch

    async def end(self) -> None:
        """Bring all viewed pages up to date and end their streams."""
        self.have_ended = True
        every: list[RunWatch | ListWatch] = [self.list, *self._of_runs.values()]
        seen = [one for one in every if one.pages.are_seen]
        await asyncio.gather(*(one.end() for one in seen))


_KEPT = 4  # runs without viewers whose results stay in memory
