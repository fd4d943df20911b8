"""The run log of a case: the work of EXAID on it, as records of exaid.run."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from pydantic import BaseModel

from exaid_core.buffer_agent.buffer_agent import Judgment
from exaid_core.config import VARIANTS, ExaidConfig
from exaid_core.ctu import ctu
from exaid_core.placeholders import PLACEHOLDER
from exaid_core.policy import TriggerPolicy
from exaid_core.schema.agent_summary import LIMITS, AgentSummary, SummaryDraft, seq_ranges
from exaid_core.segments import Segment, size
from exaid_core.summarizer_agent.summarizer_agent import Written
from exaid_core.token_gate.token_gate import FlushReason
from exaid_core.trace.files import DETERMINISM, dump_line
from exaid_core.trace.records import hash_of, logged_case_id
from exaid_core.trace.run_records import (
    RUN_SCHEMA_NAME,
    RUN_SCHEMA_VERSION,
    BufferAction,
    BufferDecision,
    ConceptExtractorInfo,
    FilterResults,
    LlmUsage,
    RunMeta,
    StoplistsProvenance,
    SummaryContent,
    SummaryEvent,
    SummaryFailure,
    TimestampDerivation,
    TokengateFlush,
    TriggerType,
    decision_id,
    event_id,
)
from mdagents_llm.clock import ms_of, timestamp_of

_LOG = logging.getLogger("exaid_core")

_TRIGGERS = {
    TriggerPolicy.TURN_END: TriggerType.TURN_END,
    TriggerPolicy.NO_BUFFER: TriggerType.TOKENGATE_FLUSH,
}


R = TypeVar("R", BufferDecision, SummaryEvent)

Watcher = Callable[[BufferDecision | SummaryEvent, tuple[str, ...]], None]
"""Callback for a decision or a summary (or failed attempt at one) and the agents of its text."""

_SELDOM = ("full_texts", "emptied_fields", "clipped", "alerts", "alert_missing", "remarks")
"""Fields of a summary that a record includes only if they are not empty."""
_TOLD = (*_SELDOM[1:], "truncated_fields", "unsupported_terms", "dissent_missing")
"""Fields of a summary that a record includes besides its six texts."""


def text_hash(text: str) -> str:
    """Return `sha256:` and the SHA-256 checksum of the text in UTF-8."""
    return hash_of(text.encode("utf-8", "surrogatepass"))


class RunLog:
    """Collects the records of one case.

    Args:
        case_id: Id of the case.
        config: Settings of EXAID.

    Raises:
        ValueError: `case_id` is empty, too long or not printable.
    """

    def __init__(self, case_id: str, config: ExaidConfig) -> None:
        self.case_id = logged_case_id(case_id)
        """Id of the case in the form of the log: see `logged_case_id`."""
        self.variant_id = VARIANTS[config.policy]
        self._config = config
        self.flushes: list[TokengateFlush] = []
        self.decisions: list[BufferDecision] = []
        self.summaries: list[SummaryEvent] = []
        self._watchers: list[Watcher] = []
        self._summarized_at = 0  # in ms since 1970 UTC; failed text is summarized again later

    def watch(self, watcher: Watcher) -> None:
        """Call a function with each decision and summary from now on, when it is logged.

        The function must not block. Its exceptions are logged and affect nothing else.
        """
        self._watchers.append(watcher)

    def flushed(self, text: str, seqs: Sequence[int], reason: FlushReason, at_ms: int) -> int:
        """Log a chunk of text and return its index.

        Args:
            text: Text of the chunk.
            seqs: Sequence numbers of its deltas, ascending.
            reason: Why the chunk was released.
            at_ms: Time of its release, in ms since 1970 UTC.
        """
        index = len(self.flushes)
        of_size = self._config.policy is TriggerPolicy.NO_TOKENGATE
        by_size = of_size and reason is FlushReason.MAX_WORDS
        self.flushes.append(
            TokengateFlush(
                record_type="tokengate_flush",
                **self._common(seqs, at_ms),
                flush_index=index,
                accumulated_ctu=ctu(text),
                trigger_reason=None if by_size else reason,
                text_hash=text_hash(text),
            )
        )
        return index

    def decided(self, judgment: Judgment, segments: Sequence[Segment]) -> None:
        """Log a decision about segments."""
        index, asked = len(self.decisions), judgment.asked
        fields: dict[str, Any] = {}
        if asked is None:
            usage = LlmUsage(prompt_ctu=0, completion_ctu=0, model_id="")
        else:
            usage = asked.usage
            fields = {"latency_ms": asked.latency_ms, "failure_mode": asked.error or None}
        if asked is not None and asked.reply is not None:
            novelty = self._config.policy is not TriggerPolicy.NO_NOVELTY
            fields["filter_results"] = FilterResults(
                completeness_passed=asked.reply.stream_state != "SAME_TOPIC_CONTINUING",
                value_passed=asked.reply.is_relevant,
                novelty_passed=asked.reply.is_novel if novelty else None,
            )
        self._tell(
            self.decisions,
            BufferDecision(
                record_type="buffer_decision",
                **self._common(_seqs(segments), segments[-1].at_ms),
                decision_index=index,
                decision_id=decision_id(self.case_id, self.variant_id, index),
                covered=tuple(segment.flush_index for segment in segments),
                input_ctu=size(segments),
                decision=BufferAction.SUMMARIZE if judgment.triggers else BufferAction.BUFFER,
                trigger=judgment.reason.value,
                trigger_mismatch=judgment.mismatch,
                llm_usage=usage,
                **fields,
            ),
            segments,
        )

    def summarized(
        self,
        written: Written,
        summary: AgentSummary | None,
        segments: Sequence[Segment],
        history: Sequence[str],
        part: int,
        due: Sequence[Segment] | None = None,
    ) -> str:
        """Log a summary, or a failed attempt at one, and return its event id.

        Args:
            written: Outcome of the model call.
            summary: Written summary with provenance and checks; None if the attempt failed.
            segments: Segments that the summary covers.
            history: Event ids of the summaries in the prompt, oldest first.
            part: Index, from 0, of the call among those for the text that was due.
            due: Text that was due; None if this summary covers all of it, or if an earlier part
                has logged it.
        """
        index, seqs = len(self.summaries), _seqs(segments)
        id_ = event_id(self.case_id, self.variant_id, index)
        text = "\n".join(segment.text for segment in segments)
        newest = max(segment.at_ms for segment in segments)
        self._summarized_at = max(newest, self._summarized_at)
        of_parts: dict[str, Any] = {"part": part} if part else {}
        if due is not None:
            of_parts["covered"] = tuple(dict.fromkeys(each.flush_index for each in due))
        self._tell(
            self.summaries,
            SummaryEvent(
                record_type="summary_event",
                **self._common(seqs, self._summarized_at),
                event_index=index,
                event_id=id_,
                source_seqs=tuple(seqs),
                trigger_type=_TRIGGERS.get(self._config.policy, TriggerType.BUFFER_AGENT),
                summary_history_event_ids=tuple(history[:-1]),
                latest_summary_event_id=history[-1] if history else None,
                summarizer_input_hash=text_hash(written.prompt),
                limits_ok=written.failure is not SummaryFailure.LENGTH_LIMIT_VIOLATION,
                failure_mode=written.failure,
                schema_ok=summary is not None,
                schema_error=written.error or None,
                new_buffer_text_hash=text_hash(text),
                **of_parts,
                llm_usage=written.usage,
                latency_ms=written.latency_ms,
                **_shown(summary),
            ),
            segments,
        )
        return id_

    def restore(
        self, decisions: Sequence[BufferDecision], summaries: Sequence[SummaryEvent]
    ) -> None:
        """Restore the records of an earlier log of the same text without notifying watchers."""
        self.decisions += decisions
        self.summaries += summaries
        self._summarized_at = max([0, *(ms_of(event.timestamp) for event in summaries)])

    def lines(self, *, created_at: str, mas_run_id: str, eval_run_id: str) -> Iterator[bytes]:
        """Return the lines of the log's file as of now, the meta record first.

        They may be read in another thread, while further records are logged.

        Args:
            created_at: Start of the EXAID run, in ISO 8601.
            mas_run_id: Id of the team's run, `mas_…`.
            eval_run_id: Id of the EXAID run, `eval-…`.
        """
        config = self._config
        of_size = config.policy is TriggerPolicy.NO_TOKENGATE
        gate = {"chunk_ctu": config.chunk_ctu} if of_size else asdict(config.gate)
        records: list[BaseModel] = [
            RunMeta(
                record_type="run_meta",
                schema_name=RUN_SCHEMA_NAME,
                schema_version=RUN_SCHEMA_VERSION,
                created_at=created_at,
                case_id=self.case_id,
                variant_id=self.variant_id,
                mas_run_id=mas_run_id,
                eval_run_id=eval_run_id,
                history_k=self._config.history_k,
                trigger_policy=self._config.policy,
                trace_file_hash=None,
                trace_dataset_hash=None,
                tokengate_config_hash=text_hash(json.dumps(gate, sort_keys=True)),
                concept_extractor=ConceptExtractorInfo(
                    name="none", version="0", terminology_hash=None
                ),
                stoplists_provenance=StoplistsProvenance(),
                timestamp_derivation=TimestampDerivation(method="trace_t_emitted_ms"),
                determinism=DETERMINISM,
            ),
            *self.flushes,
            *self.decisions,
            *self.summaries,
        ]
        return map(dump_line, records)

    def _tell(self, records: list[R], record: R, segments: Sequence[Segment]) -> None:
        records.append(record)
        agents = tuple(dict.fromkeys(segment.agent_id for segment in segments))
        for watcher in self._watchers:
            try:
                watcher(record, agents)
            except Exception as error:  # noqa: BLE001 - it is foreign code
                _LOG.warning("a watcher of EXAID's log raised %s", type(error).__name__)

    def _common(self, seqs: Sequence[int], at_ms: int) -> dict[str, Any]:
        return {
            "case_id": self.case_id,
            "variant_id": self.variant_id,
            "timestamp": timestamp_of(at_ms),
            "start_seq": min(seqs, default=0),
            "end_seq": max(seqs, default=0),
        }


def _seqs(segments: Sequence[Segment]) -> list[int]:
    return sorted(seq for segment in segments for seq in segment.seqs)


def _shown(summary: AgentSummary | None) -> dict[str, Any]:
    if summary is None:
        return {"summary_semantics_text": "", "summary_ctu": 0}
    text = summary.semantics_text()
    return {
        "summary_semantics_text": text,
        "summary_ctu": ctu(text),
        "summary_content": SummaryContent(**{name: getattr(summary, name) for name in LIMITS}),
        "truncated_fields": summary.truncated_fields,
        "unsupported_terms": summary.unsupported_terms,
        "dissent_missing": summary.dissent_missing,
        **{name: value for name in _SELDOM if (value := getattr(summary, name))},
    }


def summary_of(
    event: SummaryEvent, segments: Sequence[Segment], rest: Sequence[Segment]
) -> AgentSummary:
    """Rebuild a summary from its record.

    Args:
        event: Record of a successful attempt.
        segments: Text of the case, in the order of the log.
        rest: Text that was due with this summary and that no summary covers so far. A clipped
            summary has no sequence numbers for a partial segment; it covers a part of the first of
            these.
    """
    seqs = set(event.source_seqs or ())
    said = [one for one in segments if one.seqs and seqs.issuperset(one.seqs)]
    if event.clipped:
        said += rest[:1]
    told = {name: value for name in _TOLD if (value := getattr(event, name)) is not None}
    content = event.summary_content or SummaryContent(**dict.fromkeys(LIMITS, PLACEHOLDER))
    full = {f"full_{name}": text for name, text in (event.full_texts or {}).items()}
    summary = AgentSummary.from_draft(SummaryDraft(**content.model_dump()))
    return AgentSummary.model_validate(
        {
            **dict(summary),
            "agents": tuple(dict.fromkeys(one.agent_id for one in said)),
            "source_seqs": seq_ranges(seqs),
            **told,
            **full,
        }
    )
