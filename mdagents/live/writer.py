"""Writes the live feed of a run without delaying or failing any question."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from exaid_core.trace.events import TraceEvent
from mdagents.agents.case import make_case_id
from mdagents.agents.events import Ended, Event, ExaidStep, Started
from mdagents.display.display import Snapshot
from mdagents.live.lines import Charged, FeedLine, Happening, Pictured, Words, item_of
from mdagents.live.reader import FeedReader
from mdagents.records.jsonl import MALFORMED
from mdagents.records.line_log import LineLog
from mdagents.records.pictures import picture_records
from mdagents.records.summaries import ItemKey
from mdagents.settings import EXAID_ROLES
from mdagents_llm.files.whole_file import whole_file
from mdagents_llm.ledger import CallRow

_BETWEEN_WRITES = 0.2  # seconds
_AT_ONCE = 32  # lines, so that a write needs little memory
_BETWEEN_SNAPSHOTS = 0.9  # seconds; shorter than a display's period of one second
_LARGEST = 20_000_000  # bytes above which the oldest decided questions are removed
_KEPT = 0.5  # share of that size that remains after removal


class LiveFeed:
    """Observes a run and writes `live.jsonl`, periodically in `keep_writing`.

    A write error ends the feed and nothing else.

    Args:
        path: File of the feed; a feed of an earlier start is continued.
        now_ms: Clock in ms since 1970 UTC.
        say: Callback for a line that says why the feed has ended early.
        largest: Bytes above which the oldest decided questions are removed. The file may take
            twice as much as the questions in progress, if that is more.
    """

    def __init__(
        self,
        path: Path,
        now_ms: Callable[[], int],
        say: Callable[[str], None],
        *,
        largest: int = _LARGEST,
    ) -> None:
        self.path = path
        self._now_ms = now_ms
        self._say = say
        self._largest = self._limit = largest
        self._log: LineLog | None = None
        self._size = 0
        self._n = 0
        self._noted_at = float("-inf")  # time of the last snapshot, on the run's clock
        self._lines: list[FeedLine] = []  # not yet written
        self._said: dict[tuple[ItemKey, int, str], list[TraceEvent]] = {}  # not yet a line
        self._earlier = 0  # bytes of earlier starts
        self._items: dict[str, ItemKey] = {}  # case id -> question that may still make calls
        self._open: set[ItemKey] = set()  # questions in progress

    def __enter__(self) -> LiveFeed:
        with self._harmless():
            self._n = max((line.n for line in FeedReader(self.path).read()), default=0)
            self._log = LineLog(self.path, syncs=False)
            self._size = self._earlier = self.path.stat().st_size
        return self

    def __exit__(self, *exception: object) -> None:
        self.write()
        self._close()

    def happened(self, item: ItemKey, event: Event) -> None:
        """Record an event of a question; an observer of its feed."""
        if isinstance(event, ExaidStep):
            return
        if isinstance(event, TraceEvent):
            self._said.setdefault((item, event.turn_id, event.agent_id), []).append(event)
            return
        self._end_words(item)
        if isinstance(event, Started):
            self._items[make_case_id(*item)] = item
            self._open.add(item)
            # Neither the content of pictures nor folders of this machine are written.
            self._note(item, Started(replace(event.question, pictures=())))
            if pictures := picture_records(event.question, event.pictures):
                self._note(item, Pictured(pictures))
            return
        self._note(item, event)
        if isinstance(event, Ended):
            self._open.discard(item)

    def settled(self, item: ItemKey) -> None:
        """Forget a question: neither its team nor EXAID will call a model for it again."""
        self._items.pop(make_case_id(*item), None)

    def booked(self, row: CallRow) -> None:
        """Record the token usage of a reply; a subscriber of the ledger."""
        item = self._items.get(row.case_id)
        if item is not None and row.replied:
            tokens, of_exaid = row.usage.total_tokens, row.role in EXAID_ROLES
            self._note(item, Charged(row.agent, row.phase, tokens, of_exaid, row.reasoning or ""))

    def refresh(self, snapshot: Snapshot) -> None:
        """Record the state of the run, at most about once a second."""
        if snapshot.now - self._noted_at >= _BETWEEN_SNAPSHOTS:
            self._noted_at = snapshot.now
            self._note(None, snapshot)

    async def keep_writing(self) -> None:
        """Write pending events five times a second until canceled."""
        while True:
            await asyncio.sleep(_BETWEEN_WRITES)
            self.write()

    def write(self) -> None:
        """Write the pending events."""
        for spoken in {key[0]: None for key in self._said}:
            self._end_words(spoken)
        waiting, self._lines = self._lines, []
        if self._log is None or not waiting:
            return
        with self._harmless():
            for start in range(0, len(waiting), _AT_ONCE):
                lines = b"\n".join([line.encoded() for line in waiting[start : start + _AT_ONCE]])
                self._log.append(lines)
                self._size += len(lines) + 1
            if self._size > self._limit:
                self._compact()
                self._limit = max(self._largest, 2 * self._size)

    def remove(self) -> None:
        """Remove the file of a finished run, whose records and traces hold everything."""
        self._close()
        with contextlib.suppress(OSError):
            self.path.unlink()

    def _note(self, item: ItemKey | None, what: Happening) -> None:
        self._n += 1
        self._lines.append(FeedLine(self._n, self._now_ms(), item, what))

    def _end_words(self, item: ItemKey) -> None:
        for key in [key for key in self._said if key[0] == item]:
            _, turn, agent = key
            said = self._said.pop(key)
            text = "".join(event.text for event in said)
            self._note(item, Words(agent, turn, text, (said[0].seq, said[-1].seq)))

    def _compact(self) -> None:
        """Rewrite the file without lines of earlier starts and the oldest decided questions."""
        with self.path.open("rb") as old, whole_file(self.path, parents=False) as new:
            old.seek(self._earlier)
            out: set[ItemKey | None] = {None}  # lines on the run are of little use later
            new.writelines(self._recent(old, out))
            self._size, self._earlier = new.tell(), 0
        self._items = {case: item for case, item in self._items.items() if item not in out}
        self._close()
        self._log = LineLog(self.path, syncs=False)

    def _recent(self, lines: Iterable[bytes], out: set[ItemKey | None]) -> Iterator[bytes]:
        """Yield the lines of the questions that stay, and the last one, whose number is in use.

        Args:
            lines: Lines of this start.
            out: Questions to remove; the oldest decided ones are added until enough are removed.
        """
        too_much = self._size - self._earlier - self._largest * _KEPT
        line = b""
        for line in lines:
            item = item_of(line)
            if too_much > 0 and item not in self._open:
                out.add(item)
            if item in out:
                too_much -= len(line)
            else:
                yield line
        if line and item_of(line) in out:
            yield line

    @contextlib.contextmanager
    def _harmless(self) -> Iterator[None]:
        try:
            yield
        except (OSError, *MALFORMED) as error:
            self._close()
            why = getattr(error, "strerror", None) or type(error).__name__
            self._say(f"NOTE: the live view of this run ends here, as {self.path} failed: {why}")

    def _close(self) -> None:
        log, self._log = self._log, None
        if log is not None:
            with contextlib.suppress(OSError):
                log.close()
