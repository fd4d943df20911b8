"""One question as a sample of Inspect."""

from __future__ import annotations

import re

from infra.clock import timestamp_of
from mdagents.export.events import Event, Span, answer, around, flat, instant, message
from mdagents.export.ids import JSONObject, stable_id
from mdagents.export.records import Record, served_model
from mdagents.export.transcript import Sources, case_span
from mdagents.export.usage import Spending
from mdagents.scoring.fields import number_of, object_of, options_of, response_text
from mdagents.scoring.scored_row import ScoredRow
from mdagents.settings import Status

SCORER = "option"
"""Name of the score. Not `choice`: Inspect's own scorer of that name must not be run again on these
samples, as it needs the notes of Inspect's own solver."""

_METADATA = (
    "status", "case_id", "difficulty", "routed_by", "routing_reason", "model", "confidence",
    "votes", "source_label", "source_predicted", "permutation", "order_kept", "panel",
    "dropped_messages", "repairs", "left_out", "calls", "token_usage", "watched",
)  # fmt: skip
"""Fields of a record that a sample has under the same names."""

_VALUES: dict[str, tuple[str, str]] = {
    Status.PARSE_ERROR: ("I", "invalid_response_format"),
    Status.TRUNCATED: ("I", "truncated"),
    Status.REFUSED: ("N", "refusal"),
    Status.API_ERROR: ("N", "api_error"),
    Status.LIMIT: ("N", "limit"),
}
"""Value and reason of a question without an answer: as in Inspect's multiple choice, a reply
without an option is incorrect, a missing reply is no answer. Both count as 0."""

_LIMITS = {
    "--sample-token-limit": "token",
    "--token-limit": "token",
    "--cost-limit": "cost",
    "--sample-time-limit": "time",
}
_LIMIT_REACHED = re.compile(rf"({'|'.join(_LIMITS)}) (\d+(?:\.\d+)?(?:e[+-]?\d+)?)")


def make_sample(
    record: Record, row: ScoredRow, sources: Sources, spent: Spending, *, run: str, solver: str
) -> JSONObject:
    """Return a question as Inspect logs it.

    Args:
        record: Of the question.
        row: How it is scored.
        sources: How it was answered.
        spent: Tokens of the question, EXAID's included.
        run: Id of the run.
        solver: Name of the solver.
    """
    sample_id = stable_id(run, row.question_id, str(row.epoch))
    options = options_of(record.get("options")) or {}
    question = str(record.get("question") or "")
    said = response_text(record.get("response"))
    score = _score(row, said, record)
    failed = _failure(row, record)
    solved = case_span(str(record.get("difficulty") or solver), sources)
    shown = "\n".join([question, *(f"{letter}) {text}" for letter, text in options.items())])
    asked = message("user", shown, source="input")
    output = answer(served_model(record), said) if said else {"model": served_model(record)}
    sample: JSONObject = {
        "id": row.question_id,
        "epoch": row.epoch,
        "input": question,
        "choices": list(options.values()),
        "target": row.label,
        "messages": [asked, message("assistant", said, source="generate")] if said else [asked],
        "output": {**output, "time": number_of(record.get("wall_seconds"))},
        "metadata": _metadata(record),
        "uuid": sample_id,
        **spent.as_dict(),
        **failed,
    }
    if score is not None:
        sample["scores"] = {SCORER: score}
    if sources.turns or sources.calls:
        sample |= {
            "started_at": timestamp_of(solved.start_ms),
            "completed_at": timestamp_of(solved.end_ms),
        }
    if (seconds := number_of(record.get("wall_seconds"))) is not None:
        sample["total_time"] = seconds
    begun = {"id": row.question_id, "input": question, "choices": sample["choices"]}
    start = instant(
        solved.start_ms, {"event": "sample_init", "sample": {**begun, "target": row.label}}
    )
    spans = [
        around("init", "init", [start], solved.start_ms),
        around("solvers", "solvers", [solved, *_failed_at(failed, solved.end_ms)], solved.start_ms),
    ]
    if score is not None:
        scored: JSONObject = {"event": "score", "score": score, "target": row.label}
        scored["scorer"] = SCORER
        scorer = around(SCORER, "scorer", [instant(solved.end_ms, scored)], solved.end_ms)
        spans.append(around("scorers", "scorers", [scorer], solved.end_ms))
    sample["events"] = flat(spans, sample_id)
    return sample


def _score(row: ScoredRow, said: str, record: Record) -> JSONObject | None:
    """Return the score; None for a skipped question, which is not scored."""
    if row.status == Status.SKIPPED:
        return None
    if row.status == Status.ANSWERED:
        score: JSONObject = {"value": "C" if row.correct else "I", "answer": row.response}
    else:
        value, reason = _VALUES.get(row.status, ("N", row.status))
        score = {"value": value, "answer": "", "reason": reason}
    explanation = said or str(record.get("error") or "")
    return {**score, "explanation": explanation, "metadata": {"status": row.status}}


def _metadata(record: Record) -> JSONObject:
    kept = {name: record[name] for name in _METADATA if record.get(name) is not None}
    exaid = object_of(record, "exaid")
    if exaid:
        summaries = exaid.get("summaries")
        kept["exaid"] = {
            "summaries": len(summaries) if isinstance(summaries, list) else 0,
            "token_usage": exaid.get("token_usage"),
        }
    return kept


def _failure(row: ScoredRow, record: Record) -> JSONObject:
    """Return `error` or `limit` of a sample that was stopped by one."""
    reason = str(record.get("error") or "")
    if row.status == Status.API_ERROR:
        return {"error": {"message": reason, "traceback": "", "traceback_ansi": ""}}
    reached = _LIMIT_REACHED.search(reason) if row.status == Status.LIMIT else None
    if reached is None:
        return {}
    limit = {"type": _LIMITS[reached[1]], "limit": float(reached[2]), "reason": reason}
    return {"limit": limit}


def _failed_at(failure: JSONObject, ms: int) -> list[Span | Event]:
    if error := failure.get("error"):
        return [instant(ms, {"event": "error", "error": error})]
    if isinstance(limit := failure.get("limit"), dict):
        rest = {"type": limit["type"], "limit": limit["limit"], "message": limit["reason"]}
        return [instant(ms, {"event": "sample_limit", **rest})]
    return []
