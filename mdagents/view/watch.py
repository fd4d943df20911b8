"""Follows a run for all pages that are open on it, and tells each what it has not shown yet."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing, contextmanager
from itertools import chain
from pathlib import Path

from watchfiles import awatch

from mdagents.agents.case import make_case_id
from mdagents.live import LIVE_FILE
from mdagents.live.case import LiveCase
from mdagents.live.run import LiveRun
from mdagents.live.runs import ListedRun, Runs, RunState, UnreadableRun
from mdagents.pages.parts import Part
from mdagents.pages.question import QuestionPage
from mdagents.pages.run import Decided, RunLine, RunPage, list_parts
from mdagents.pages.study_matrix import study_parts
from mdagents.records.study import StudyManifest, read_studies
from mdagents.scoring.rows import RunOutput, read_output
from mdagents.view.stage import Operation, Stage
from mdagents_llm.clock import epoch_ms
from mdagents_llm.errors import ConfigError

_BETWEEN = 0.25  # seconds from one update of a page to the next, four a second at most
_LONGEST_SILENCE = 1_000  # ms, after which files are looked at though nobody told of a change
_BETWEEN_LISTS = 2.0  # seconds
_SHARE = 0.04  # of the time, at most, is spent on reading results
_KEPT_PAGES = 4  # at which nobody looks

Update = tuple[int, list[Operation]]
"""(version, what changed)"""


class Watch:
    """Keeps pages up to date while somebody looks at them.

    Args:
        parts: Name of a page -> its parts as they are now; None when there is no such page.
        clock: Returns a number that grows, also over several servers.
        changes: Calls `update` and yields when something may have changed; ends when nothing will
            any more.
        between: Seconds from one update of a page to the next.
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
        self._stages: dict[str, Stage] = {}  # by name of the page, the one opened last at the end
        self._viewers = Counter[str]()
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._has_ended = False

    def update(self) -> None:
        """Note how all open pages are now.

        Whoever reads what is new calls this before anything else is made of it.
        """
        for page in self._viewers:
            self._note(page)

    async def updates(self, page: str, after: int) -> AsyncGenerator[Update]:
        """Yield what changes on a page, until nothing will any more.

        Args:
            page: Its name.
            after: The version that the browser shows.
        """
        with self._open(page) as stage:
            while True:
                changed, is_over = self._changed, self._is_over
                if operations := stage.since(after):
                    yield stage.version, operations
                after = stage.version
                if is_over:
                    if self._task is not None and self._task.done():
                        await self._task  # an error of it is one of the stream, not its end
                    return
                await changed.wait()

    def end(self) -> None:
        """Have all streams end, now and later, when they have told what there is."""
        self._has_ended = True
        self._wake()

    def version(self, page: str) -> int:
        """Return the version of a page that is made now, for `updates`.

        What was sent with the page is not sent again when its stream opens, though more may have
        happened meanwhile.
        """
        return self._note(page).version

    def _note(self, page: str) -> Stage:
        """Note how a page is now; the last few stay known while nobody looks at them."""
        # No stage has a version of an earlier one of its page, which may have shown something else.
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
        """Whether somebody looks at one of them."""
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
    """One start of a run that somebody looks at: its feed, its results, and its open pages.

    Args:
        runs: The runs of the folder.
        run: The run.
    """

    def __init__(self, runs: Runs, run: ListedRun) -> None:
        self._runs = runs
        self.run = run
        self.live = LiveRun(run.folder / LIVE_FILE)
        self.trouble = ""
        """Why its results cannot be read; empty when they can."""
        self.output: RunOutput | None = None
        """Its results; None before the first."""
        self.decided = Decided()
        self._read_from: object = None  # sizes of the files that the results were read from
        self._next_read = 0.0  # s; not before
        self._reading: asyncio.Task[None] | None = None
        self.pages = Watch(self._parts, epoch_ms, self._changes)

    async def refresh(self) -> None:
        """Read what is new. Several may ask for it at once."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
            self._reading.add_done_callback(self._end_reading)
        await asyncio.shield(self._reading)

    def _end_reading(self, reading: asyncio.Task[None]) -> None:
        self._reading = None
        if not reading.cancelled():
            reading.exception()  # all who would have been told of it may be gone

    async def end(self) -> None:
        """Have its pages show how it stands now, and their streams end."""
        try:
            if self._reading is not None:
                await asyncio.shield(self._reading)  # it may have begun before
            await self.refresh()
        finally:
            self.pages.end()

    async def _read(self) -> None:
        """Read files in a thread; what pages are made of changes only here, between two of them."""
        run = await asyncio.to_thread(self._runs.get, self.run.name)
        if isinstance(run, ListedRun):
            self.run = run
        self.live.take(await asyncio.to_thread(self.live.read))
        if (results := await asyncio.to_thread(self._results)) is not None:
            self.output, self.decided = results
        self.pages.update()

    def _results(self) -> tuple[RunOutput, Decided] | None:
        """Return the results if they are new, unless that would take too much of the time."""
        files = [self.run.folder / name for name in ("samples.jsonl", "summaries.jsonl")]
        sizes = [file.stat().st_size if file.exists() else 0 for file in files]
        started = time.monotonic()
        is_late = self.run.state is not RunState.RUNNING
        if sizes == self._read_from or not sizes[0] or (started < self._next_read and not is_late):
            return None
        try:
            output = read_output(files[0])
            decided = Decided(output, RunLine(self.run).address)
        except ConfigError as error:
            self.trouble = str(error)
            return None
        else:
            self.trouble = ""
            return output, decided
        finally:
            self._read_from = sizes
            self._next_read = started + (time.monotonic() - started) / _SHARE

    def case(self, id_: str) -> LiveCase | None:
        """Return a question that the feed tells of."""
        for case in self.live.cases.values():
            if make_case_id(*case.item) == id_:
                return case
        return None

    @property
    def page(self) -> RunPage:
        """The page of the run."""
        # The end of its feed may have been gone before it was read.
        under_way = [] if self.is_finished else self.live.under_way
        return RunPage(self.run, under_way, self.decided, self.trouble)

    def _parts(self, page: str) -> Iterable[Part] | None:
        if not page:
            return self.page.parts()
        case = self.case(page)
        return None if case is None else live_page(case, self.run).parts()

    @property
    def is_finished(self) -> bool:
        """Whether all is decided."""
        return self.run.state is RunState.FINISHED

    @property
    def is_live(self) -> bool:
        """Whether its pages may still change: also when it is interrupted, as it may go on."""
        return not self.is_finished and (self.run.folder / LIVE_FILE).exists()

    async def _changes(self) -> AsyncGenerator[None]:
        """Yield when the feed has grown, and once a second; end when it is gone or anew."""
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
                if not self.is_live:  # a run writes that it is finished, then removes its feed
                    await self.refresh()
                yield
                if not self.is_live or self.run.start != start:
                    return


def live_page(case: LiveCase, run: ListedRun) -> QuestionPage:
    """Return the page of a question that the feed of a run tells of."""
    question = case.question
    right = [one for one in question.options if question.is_right(one)] if question else []
    return QuestionPage(case, right, is_at_work=run.state is RunState.RUNNING)


class ListWatch:
    """The list of runs, for those who look at it."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self.listed: list[ListedRun | UnreadableRun] = []
        self._studies: list[StudyManifest] = []
        self.pages = Watch(self._parts, epoch_ms, self._changes)

    async def refresh(self) -> None:
        """Read the runs."""
        self.listed = await asyncio.to_thread(self._runs.list)
        self._studies = await asyncio.to_thread(read_studies, self._runs.output_dir)
        self.pages.update()

    def study_parts(self) -> Iterator[Part]:
        """Yield the parts of the page that show studies."""
        return study_parts(self._studies, [r for r in self.listed if isinstance(r, ListedRun)])

    def _parts(self, _: str) -> Iterator[Part]:
        return chain(self.study_parts(), list_parts(self.listed))

    async def end(self) -> None:
        """Have its pages show how it stands now, and their streams end."""
        try:
            await self.refresh()
        finally:
            self.pages.end()

    async def _changes(self) -> AsyncGenerator[None]:
        while True:
            await self.refresh()
            yield
            await asyncio.sleep(_BETWEEN_LISTS)


class Watches:
    """All that is looked at in an output folder."""

    def __init__(self, output_dir: Path) -> None:
        self.runs = Runs(output_dir)
        self.list = ListWatch(self.runs)
        self.have_ended = False
        """Whether the server is about to end."""
        self._of_runs: dict[str, RunWatch] = {}

    async def of(self, name: str) -> RunWatch | UnreadableRun | None:
        """Return a run, up to date; None when there is none of this name."""
        run = await asyncio.to_thread(self.runs.get, name)
        if not isinstance(run, ListedRun):
            self._of_runs.pop(name, None)
            return run
        watch = self._of_runs.pop(name, None)
        if watch is None or watch.run.start != run.start:  # with a feed of its own
            watch = RunWatch(self.runs, run)
        self._of_runs[name] = watch  # the latest
        unseen = [name for name, one in self._of_runs.items() if not one.pages.are_seen]
        for left in unseen[:-_KEPT]:
            del self._of_runs[left]
        await watch.refresh()
        return watch

    async def end(self) -> None:
        """Have all pages that are looked at show how things stand now, and their streams end."""
        self.have_ended = True
        every: list[RunWatch | ListWatch] = [self.list, *self._of_runs.values()]
        seen = [one for one in every if one.pages.are_seen]
        await asyncio.gather(*(one.end() for one in seen))


_KEPT = 4  # runs at which nobody looks whose results stay in memory
