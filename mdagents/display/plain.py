"""The displays that need only lines of text: `--display log` and `plain`."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, NoReturn

from exaid_core.channel import clean
from infra.files.printing import print_line
from mdagents.display.display import Display, Snapshot, accuracy_so_far, left_to_summarise
from mdagents.records.manifest import RunTotals
from mdagents.records.sample import SampleRecord
from mdagents.settings import Status

if TYPE_CHECKING:
    from tqdm import tqdm


_BETWEEN_LINES = 10.0  # seconds, between lines that tell what is left


class LogLines(Display):
    """`--display log`, and `full` and `plain` without a terminal: one line a finished question."""

    def __init__(self, questions: int) -> None:
        super().__init__()
        self._questions = questions
        self._last_said = ""
        self._said_left_at = float("-inf")

    def finished(self, record: SampleRecord, totals: RunTotals) -> None:
        """See `Display`."""
        verdict = record.status.value
        if record.status is Status.ANSWERED:
            verdict = f"{record.predicted} {'right' if record.correct else 'wrong'}"
        self.say(
            f"{totals.questions}/{self._questions} {record.question_id} "
            f"{record.difficulty or '-'}: {verdict}, {record.calls} calls, "
            f"{record.token_usage.total_tokens:,} tokens, {record.wall_seconds:.1f} s"
            + (f" ({record.error})" if record.error else "")
        )

    def refresh(self, snapshot: Snapshot) -> None:
        """See `Display`: reports when calls begin to wait for something, not each second of it."""
        waits = self._waits(snapshot)
        cause = waits.partition(":")[2].partition(",")[0]
        if waits and cause != self._last_said:
            self.say(waits)
        self._last_said = cause
        left = left_to_summarise(snapshot, self._questions)
        if left and snapshot.now - self._said_left_at >= _BETWEEN_LINES:
            self.say(left)
            self._said_left_at = snapshot.now

    def say(self, line: str) -> None:
        """See `Display`. A screen that is gone (a closed pipe) is not an error of the run."""
        print_line(clean(line))


class Bar(Display):
    """`--display plain` on a terminal: a progress bar with the figures so far."""

    def __init__(self, questions: int) -> None:
        super().__init__()
        self._questions = questions
        self._bar: tqdm[NoReturn] | None = None

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def refresh(self, snapshot: Snapshot) -> None:
        """See `Display`."""
        totals, spent = snapshot.totals, snapshot.spent
        if self._bar is None:  # only now, so that the banner stands above it
            from tqdm import tqdm

            self._bar = tqdm(
                total=self._questions,
                initial=totals.questions,  # those of an earlier start do not count for the pace
                unit="question",
                dynamic_ncols=True,
            )
        figures = [
            accuracy_so_far(totals),
            f"{snapshot.under_way}/{snapshot.allowed} calls",
            f"{spent.total_tokens:,} tokens",
        ]
        if spent.cost_usd:
            figures.append(f"${spent.cost_usd:.2f}")
        if spent.failed_attempts:
            figures.append(f"{spent.failed_attempts} failed attempts")
        if waits := self._waits(snapshot):
            figures.append(waits)
        if left := left_to_summarise(snapshot, self._questions):
            figures.append(left)
        self._bar.set_postfix_str(", ".join(figures), refresh=False)
        self._bar.n = totals.questions
        with contextlib.suppress(OSError):
            self._bar.refresh()

    def say(self, line: str) -> None:
        """See `Display`."""
        if self._bar is None:
            print_line(line)
            return
        with contextlib.suppress(OSError):
            self._bar.write(line, file=sys.stderr)
