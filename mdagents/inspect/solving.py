"""Lets a team answer a sample, and puts its answer where Inspect and its scorers look for it."""

from __future__ import annotations

from inspect_ai.model import ModelOutput, StopReason
from inspect_ai.util import LimitExceededError

from mdagents.datasets.questions import SourceQuestion
from mdagents.inspect.outcome import TeamOutcome
from mdagents.inspect.team import Decided, InspectTeam
from mdagents.records.sample import SampleRecord
from mdagents.runs.one_question import Answered
from mdagents.settings import Status
from mdagents_llm.errors import BenchError, LimitExceeded

_STOPPED: dict[Status, StopReason] = {
    Status.ANSWERED: "stop",
    Status.REFUSED: "content_filter",
    Status.TRUNCATED: "max_tokens",
}
"""Status -> stop reason of the output; of others it is not known."""


def output_of(record: SampleRecord) -> ModelOutput:
    """Return the decision of a team as a model's output; its text is empty without an answer.

    The last line is `ANSWER: X`, as scorers of Inspect read it, with the letter of the sample.
    """
    text = ""
    if record.source_predicted:
        said = "\n\n".join((record.response or {}).values())
        text = f"{said}\n\nANSWER: {record.source_predicted}"
    stopped = _STOPPED.get(record.status, "unknown")
    return ModelOutput.from_content(record.model, text, stopped, error=record.error)


async def solve(
    team: InspectTeam, source: SourceQuestion, epoch: int, decided: Decided
) -> Answered:
    """Answer a question; the outcome is in the store of the sample, however this ends.

    Args:
        team: Team that answers.
        source: Question of the sample.
        epoch: Number of the repetition of the sample, from 1.
        decided: Puts the answer into the sample, before EXAID finishes.

    Raises:
        ConfigError: A model or the question cannot be used.
        EndpointDown: The model cannot reply.
    """
    outcome = TeamOutcome()
    outcome.team, outcome.status = team.name, ""
    try:
        return await team.answer(source, epoch, outcome, decided)
    except BenchError:
        outcome.status = Status.API_ERROR.value
        raise


def raise_what_ends_the_sample(answered: Answered) -> None:
    """Raise what Inspect must see: one of its limits, or an error of an endpoint or of ours.

    Raises:
        LimitExceededError: A limit of the evaluation was reached.
        BenchError: The question ended in an error.
    """
    error = answered.error
    if isinstance(error, LimitExceeded) and isinstance(error.origin, LimitExceededError):
        raise error.origin
    if error is not None and answered.record.status is Status.API_ERROR:
        raise error
