"""Records the results of a run: writes its files and notifies displays and viewers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mdagents.datasets.questions import Question
from mdagents.display import Display
from mdagents.display.interaction_table import hierarchy_tree, interaction_table
from mdagents.live import LiveFeed
from mdagents.records.folder import recorded_run
from mdagents.records.sample import CaseSummaries, SampleRecord
from mdagents.records.store import RunStore
from mdagents.records.summaries import ItemKey
from mdagents.runs.engines.engine import Item, Recorded, Watch
from mdagents.runs.plan import Plan
from mdagents.runs.run_pictures import RunPictures
from mdagents.settings import Status
from mdagents_llm.layers.cache import CacheMode
from mdagents_llm.ledger import CallRow
from mdagents_llm.pictures import Picture

if TYPE_CHECKING:
    from mdagents.telemetry.run_spans import RunSpans


class RunRecorder:
    """Writes the results of a run to its files and shows them; implements `Recorder`.

    Args:
        plan: Plan of the run.
        store: Files of the run.
        display: Display to notify of events and results.
        live: Feed of the live view to notify of events and ledger rows.
        spans: Spans of the run to notify of events, ledger rows and results; None: none are made.
        show_interaction_table: Whether the display shows who wrote to whom in a debate.
    """

    def __init__(
        self,
        plan: Plan,
        store: RunStore,
        display: Display,
        live: LiveFeed,
        spans: RunSpans | None = None,
        *,
        show_interaction_table: bool = False,
    ) -> None:
        self._store = store
        self._display = display
        self._live = live
        self._spans = spans
        self._logs_prompts = plan.config.log_prompts
        self._shows_table = show_interaction_table
        self._most_errors = plan.most_errors
        self.files = store.files
        config = plan.config
        self.policy, self.recorded = config.exaid_policy, None
        if config.cache is CacheMode.ONLY:
            self.recorded = recorded_run(config.output_dir, plan.manifest)
            self.policy = self.policy if self.recorded is not None else None
        self._pictures = RunPictures(config, plan.pictures, store.folder, private=store.is_private)
        self.watchers: Sequence[Watch] = (
            lambda item, event, _: display.happened(item, event),
            lambda item, event, _: live.happened(item, event),
            *([spans.happened] if spans is not None else []),
        )

    async def pictures_of(self, item: Item, question: Question) -> tuple[Picture, ...]:
        """Return the pictures of a question as its agents see them; a copy of each is kept."""
        return await self._pictures.of(question)

    def booked(self, row: CallRow) -> None:
        """Write a ledger row and pass it to the live view and to the spans."""
        if self._spans is not None:
            self._spans.booked(row)
            if not self._logs_prompts:  # only the spans were to have them
                row = row.without_prompts()
        self._store.book(row)
        self._live.booked(row)

    def decided(self, record: SampleRecord) -> Recorded:
        """Append a record to the run's files and show it."""
        store, display = self._store, self._display
        store.append(record)
        if self.policy is None:
            self._live.settled((record.question_id, record.epoch))
        display.finished(record, store.manifest.totals)
        if self._spans is not None:
            self._spans.decided(record)
        if self._shows_table and record.panel:
            tree = hierarchy_tree(record.panel)
            display.say(f"{record.question_id}: who reports to whom\n{tree}")
            display.say(interaction_table(record.panel, record.interactions))
        errors = store.manifest.totals.status_counts.get(Status.API_ERROR, 0)
        return Recorded(
            attempt=store.attempts((record.question_id, record.epoch)),
            too_many_errors=self._most_errors is not None and errors > self._most_errors,
        )

    async def synced(self) -> None:
        """Wait until the records appended so far survive a power failure."""
        await self._store.synced()

    def summarised(self, made: CaseSummaries) -> None:
        """Append EXAID's results and show them if they are complete."""
        made = self._store.append_summaries(made)
        if made.is_complete:
            self._display.summarised(made)
            self._live.settled((made.question_id, made.epoch))

    def restarted(self, item: ItemKey) -> None:
        """Note that an undecided question starts again."""
        self._store.restart(item)
        if self._spans is not None:
            self._spans.restarted(item)
