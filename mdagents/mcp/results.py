"""What the tools return, as types with a schema, and how it is made from the program's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

from pydantic import BaseModel, Field

from mdagents.records.sample import SampleRecord
from mdagents.scoring.comparison import Comparison
from mdagents.scoring.comparison_text import comparison_notices, headline
from mdagents.scoring.group import Group
from mdagents.scoring.report import Report
from mdagents.scoring.report_text import report_lines
from mdagents.settings import Status
from mdagents_llm.ledger import Totals
from mdagents_llm.text import counted

_LONGEST_DEBATE = 100  # lines
_LONGEST_ANALYSIS = 20_000  # characters
Ended = Literal["answered", "parse_error", "refused", "truncated"]
"""How a question ended that a team worked on to its end."""
_WITHOUT_LETTER = (Status.PARSE_ERROR, Status.REFUSED, Status.TRUNCATED)


class TeamAnswer(BaseModel):
    """The decision of a team about a question."""

    outcome: Ended = Field(description="answered; otherwise there is no letter")
    letter: str | None = Field(description="Letter of the option, A for the first; null: no answer")
    option: str | None = Field(description="Text of the option")
    analysis: str = Field(description="Argument of the decision, or why there is none")
    team: str = Field(description="Level of the team, or the method, that answered")
    votes: dict[str, int] = Field(description="Letter -> experts or teams who hold it at the end")
    confidence: float | None = Field(description="Mean stated confidence, 0 to 1; null if unknown")
    debate: list[str] = Field(description="The debate in brief, a line for each event")
    calls: int = Field(description="Calls of models")
    input_tokens: int
    output_tokens: int
    cost_usd: float | None = Field(description="null when a price is not known")
    case_id: str = Field(description="Id of the record in the server's ledger")


class RunFigures(BaseModel):
    """The figures of a run."""

    run: str
    questions: int
    answers: int = Field(description="Questions times epochs, without skipped ones")
    answered: int = Field(description="Answers with a letter; errors and refusals are wrong")
    correct: int
    accuracy: float | None = Field(description="Share of right answers, 0 to 1")
    accuracy_low: float | None = Field(description="Lower end of the 95% interval")
    accuracy_high: float | None
    tokens_per_question: float | None
    cost_per_question_usd: float | None


class PairFigures(BaseModel):
    """Two runs on the same questions."""

    first: str
    second: str
    difference: float = Field(description="Accuracy of the second minus that of the first")
    low: float = Field(description="Lower end of its 95% interval")
    high: float
    p: float = Field(description="McNemar's exact test, adjusted by Holm for several pairs")
    is_significant: bool


class RunsCompared(BaseModel):
    """Runs on the same questions."""

    verdict: str = Field(description="The result in a sentence")
    runs: list[RunFigures]
    pairs: list[PairFigures]
    notices: list[str]


class FileScored(BaseModel):
    """The score of a run or a file of predictions."""

    figures: RunFigures
    by_level: dict[str, RunFigures]
    statuses: dict[str, int] = Field(description="How answers ended -> number")
    read_as: dict[str, int] = Field(description="Program that wrote the records -> number")
    lines: list[str] = Field(description="What else the report says")
    notices: list[str]


def has_ended_without_letter(record: SampleRecord) -> bool:
    """Return whether the models of a team replied, but named no option."""
    return record.status in _WITHOUT_LETTER


def spent_on(spent: Totals) -> str:
    """Return what a question has cost, in a few words."""
    cost = spent.cost_usd
    of = f"{counted(spent.calls, 'call')}, {counted(spent.usage.total_tokens, 'token')}"
    return f"spent: {of}" + ("" if cost is None else f", {cost:.4f} USD")


def team_answer(record: SampleRecord, debate: Sequence[str], why: str = "") -> TeamAnswer:
    """Return a question that a team worked on to its end as a result.

    Args:
        record: Record of the question.
        debate: Lines of the debate in brief.
        why: Why there is no letter; empty if there is one.
    """
    usage, response = record.token_usage, record.response or {}
    letter = record.predicted
    return TeamAnswer(
        outcome=cast(Ended, record.status.value),
        letter=letter,
        option=None if letter is None else record.options[letter],
        analysis=(why or response.get("analysis", ""))[:_LONGEST_ANALYSIS],
        team=record.difficulty or "",
        votes=record.votes,
        confidence=record.confidence,
        debate=list(debate[:_LONGEST_DEBATE]),
        calls=record.calls,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=usage.cost_usd,
        case_id=record.case_id,
    )


def runs_compared(comparison: Comparison) -> RunsCompared:
    """Return a comparison of runs as a result."""
    block = comparison.blocks[0]
    return RunsCompared(
        verdict=headline(comparison),
        runs=[_figures(run.label, run.figures) for run in block.runs],
        pairs=[
            PairFigures(
                first=block.label(pair.first),
                second=block.label(pair.second),
                difference=pair.difference,
                low=pair.difference_low,
                high=pair.difference_high,
                p=pair.p,
                is_significant=block.shows(pair),
            )
            for pair in block.pairs
        ],
        notices=list(comparison_notices(comparison)),
    )


def file_scored(name: str, report: Report, read_as: dict[str, int]) -> FileScored:
    """Return the report of a run as a result."""
    return FileScored(
        figures=_figures(name, report.overall),
        by_level={level: _figures(level, group) for level, group in report.by_difficulty.items()},
        statuses=dict(report.status_counts),
        read_as=read_as,
        lines=report_lines(report),
        notices=list(report.notices),
    )


def _figures(name: str, group: Group) -> RunFigures:
    return RunFigures(
        run=name,
        questions=group.questions,
        answers=group.n,
        answered=group.answered,
        correct=group.correct,
        accuracy=group.accuracy,
        accuracy_low=group.accuracy_low,
        accuracy_high=group.accuracy_high,
        tokens_per_question=group.tokens_per_question,
        cost_per_question_usd=group.cost_per_question,
    )
