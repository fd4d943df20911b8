"""Conversion of one question to an Inspect sample."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from inspect_ai.dataset import Sample
from inspect_ai.event import ErrorEvent, Event, SampleInitEvent, SampleLimitEvent, ScoreEvent
from inspect_ai.log import EvalError, EvalSample, EvalSampleLimit
from inspect_ai.model import ChatMessage, ChatMessageUser, ModelOutput
from inspect_ai.scorer import Score

from mdagents.export.ledger import Spending, usages
from mdagents.export.spans import answer, around, flat, shown, stable_id
from mdagents.export.transcript import Sources, case_span
from mdagents.scoring.fields import amount_of, object_of, options_of, response_text
from mdagents.scoring.scored_row import ScoredRow
from mdagents.settings import Status

SCORER = "option"
"""Name of the score.

It is not `choice`: Inspect's scorer of that name must not be rerun on these samples, since it needs
the notes of Inspect's own solver.
"""

_METADATA = (
    "status", "case_id", "difficulty", "routed_by", "routing_reason", "rungs", "model",
    "confidence", "votes", "source_label", "source_predicted", "permutation", "order_kept", "panel",
    "dropped_messages", "repairs", "left_out", "calls", "token_usage", "watched",
)  # fmt: skip
"""Fields of a record that are copied to the metadata of a sample."""

_VALUES: dict[str, tuple[str, str]] = {
    Status.PARSE_ERROR: ("I", "invalid_response_format"),
    Status.TRUNCATED: ("I", "truncated"),
    Status.REFUSED: ("N", "refusal"),
    Status.API_ERROR: ("N", "api_error"),
    Status.LIMIT: ("N", "limit"),
}
"""Status -> (value, reason) of a question without an answer.

As in Inspect's multiple choice, a reply without an option is incorrect and a missing reply is no
answer. Both count as 0.
"""

_LIMITS: dict[str, Literal["token", "cost", "time"]] = {
    "--sample-token-limit": "token",
    "--token-limit": "token",
    "--cost-limit": "cost",
    "--sample-time-limit": "time",
}
_LIMIT_REACHED = re.compile(rf"({'|'.join(_LIMITS)}) (\d+(?:\.\d+)?(?:e[+-]?\d+)?)")


def make_sample(
    row: ScoredRow, sources: Sources, spent: Spending, *, run: str, solver: str
) -> EvalSample:
    """Return a question as an Inspect sample.

    Args:
        row: Scored row of the question.
        sources: Record, turns and calls of the question.
        spent: Tokens of the question, including EXAID.
        run: Id of the run.
        solver: Name of the solver.
    """
    record = sources.record
    sample_id = stable_id(run, row.question_id, str(row.epoch))
    question = str(record.get("question") or "")
    options = options_of(record.get("options")) or {}
    said = response_text(record.get("response"))
    served = str(record.get("model") or "")
    pictures = sources.pictures
    named = {letter: pictures.option(letter, text) for letter, text in options.items()}
    block = "\n".join([question, *(f"{letter}) {text}" for letter, text in named.items())])
    if pictures.content:
        asked = shown(block, pictures.content)
        asked.source = "input"
        given: str | list[ChatMessage] = [shown(question, pictures.content)]
    else:
        asked = ChatMessageUser(
            id=stable_id("message", "user", block), content=block, source="input"
        )
        given = question
    messages: list[ChatMessage] = [asked]
    output = ModelOutput(model=served)
    if said:
        output = answer(served, said)
        messages.append(output.message.model_copy(update={"model": None}))
    output.time = amount_of(record.get("wall_seconds"))
    solved = case_span(str(record.get("difficulty") or solver), sources)
    start, end = solved.timestamp, solved.completed
    timed = bool(sources.turns or sources.calls)
    sample = EvalSample(
        id=row.question_id,
        epoch=row.epoch,
        input=given,
        choices=list(named.values()),
        target=row.label,
        messages=messages,
        output=output,
        metadata=_metadata(record),
        uuid=sample_id,
        model_usage=usages(spent.by_model),
        role_usage=usages(spent.by_role),
        started_at=start.isoformat() if timed else None,
        completed_at=end.isoformat() if timed else None,
        total_time=output.time,
    )
    events: list[Event] = []
    reason = str(record.get("error") or "")
    if row.status == Status.API_ERROR:
        sample.error = EvalError(message=reason, traceback="", traceback_ansi="")
        events.append(ErrorEvent(timestamp=end, error=sample.error))
    elif row.status == Status.LIMIT and (reached := _LIMIT_REACHED.search(reason)):
        kind, limit = _LIMITS[reached[1]], float(reached[2])
        sample.limit = EvalSampleLimit(type=kind, limit=limit, reason=reason)
        events.append(SampleLimitEvent(timestamp=end, type=kind, limit=limit, message=reason))
    begun = Sample(id=row.question_id, input=given, choices=sample.choices, target=row.label)
    spans = [
        around("init", "init", [SampleInitEvent(timestamp=start, sample=begun)], start),
        around("solvers", "solvers", [solved, *events], start),
    ]
    if row.status != Status.SKIPPED:
        score = _score(row, said or reason)
        sample.scores = {SCORER: score}
        scored = ScoreEvent(timestamp=end, score=score, target=row.label, scorer=SCORER)
        spans.append(around("scorers", "scorers", [around(SCORER, "scorer", [scored], end)], end))
    sample.events = flat(spans, sample_id)
    sample.attachments = dict(pictures.attachments)
    return sample


def _score(row: ScoredRow, explanation: str) -> Score:
    if row.status == Status.ANSWERED:
        value, reason = "C" if row.correct else "I", None
    else:
        value, reason = _VALUES.get(row.status, ("N", row.status))
    return Score(
        value=value,
        answer=row.response if row.status == Status.ANSWERED else "",
        reason=reason,
        explanation=explanation,
        metadata={"status": row.status},
    )


def _metadata(record: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: record[name] for name in _METADATA if record.get(name) is not None}
    if exaid := object_of(record, "exaid"):
        summaries = exaid.get("summaries")
        kept["exaid"] = {
            "summaries": len(summaries) if isinstance(summaries, list) else 0,
            "token_usage": exaid.get("token_usage"),
        }
    return kept
