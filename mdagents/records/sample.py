"""The record of a question on disk, auditable without the program."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict, Field

from mdagents.agents.case import Case, LeftOut
from mdagents.agents.events import DebateMessage, Rung
from mdagents.agents.status import status_of
from mdagents.datasets.questions import Question
from mdagents.records.pictures import PictureRecord, picture_records
from mdagents.records.summaries import is_counting
from mdagents.settings import EXAID_ROLES, Difficulty, RoutedBy, Status
from mdagents.teams.decision import Decision, Panelist, ReportedTeam, Stated
from mdagents.teams.router import Route
from mdagents_llm.errors import BenchError
from mdagents_llm.ledger import CaseBook, Totals
from mdagents_llm.notebook import html_table

SCHEMA_VERSION = "1.6.0"
"""Version of the record schema; up to 1.0.0, lines of `samples.jsonl` included EXAID's part."""


class _Record(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        defer_build=True,  # a run needs them only once a question is decided
    )


class TokenCounts(_Record):
    """Tokens. Totals include their subsets."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    """Input plus output tokens."""


class TokenUsageRecord(TokenCounts):
    """Tokens and cost of the team and the router, fresh or replayed."""

    cached_input_tokens: int = 0
    """Input tokens read from the provider's prompt cache."""
    reasoning_tokens: int = 0
    """Output tokens that were hidden reasoning."""
    cache_write_tokens: int = 0
    """Input tokens written to the provider's prompt cache, where the provider counts them:
    Anthropic, and OpenAI from GPT-5.6 on."""
    cost_usd: float | None = 0.0
    """None when the price of a model that was used is not known."""


class ExaidUsage(TokenCounts):
    """Tokens and cost of EXAID, fresh or from the cache."""

    cost_usd: float | None = None
    """None when it is not known, as in records of earlier versions."""


class ExaidRecord(_Record):
    """What EXAID did for the question; zeros and empty lists when it was off."""

    summaries: list[dict[str, object]] = Field(default_factory=list)
    """Each an `AgentSummary` with its `event_id` in the run log."""
    decisions: list[dict[str, object]] = Field(default_factory=list)
    """Decisions of the buffer agent; times and tokens are in the run log."""
    token_usage: ExaidUsage = Field(default_factory=lambda: ExaidUsage(cost_usd=0.0))


class Watched(_Record):
    """How well observers followed the case."""

    tail_loss: float = 0.0
    """Share of the agents' text that no summary covers; 0 when EXAID was off."""
    missed_alerts: int = 0
    """Segments with a critical alert that no summary covers; 0 when EXAID was off."""
    error: str | None = None
    """One line, when EXAID failed, or the trace could not be saved."""


class CaseSummaries(_Record):
    """What EXAID made of a question after its decision: one line of `summaries.jsonl`."""

    question_id: str
    epoch: int
    case_id: str
    attempt: int
    """Which answer to the question: the place of its line among those of its question and epoch in
    `samples.jsonl`, from 1. A question that is answered again is summarized again."""
    exaid: ExaidRecord
    watched: Watched
    alerts: int = 0
    """Segments with a critical alert, covered by a summary or not."""
    is_complete: bool = True
    """Whether EXAID has finished with the answer; if not, the next start of the run resumes it."""
    schema_version: str = "1.1.0"

    @property
    def counting(self) -> list[dict[str, object]]:
        """Nonempty summaries that were made from text."""
        return list(filter(is_counting, self.exaid.summaries))


class SampleRecord(_Record):
    """One finished question. The first fields and their names are those of MDAgents' output."""

    question_id: str
    """`realidx` of the data set, else `id`, else `sample_N` for line N."""
    question: str
    """Text of the question, as presented."""
    label: str
    """Presented letter of the right option."""
    answer: str
    """Text of the right option."""
    options: dict[str, str]
    """Presented letter -> text; the letters A, B, ... are in the presented order."""
    response: dict[str, str] | None
    """The decision as text: `analysis`, and `final_answer` ("C) ...") or, of the intermediate team,
    `majority_vote` ("Answer: C) ..."); None without an answer. Up to 1.5.0, records of the
    intermediate team lack the analysis."""
    difficulty: str | None
    """The level of the team that answered or would have; None when routing itself failed, and for
    a method without levels."""
    token_usage: TokenUsageRecord
    """Tokens and cost of router and team."""

    status: Status
    """How the question ended."""
    predicted: str | None
    """Presented letter, None unless `answered`."""
    correct: bool | None
    """Whether the answer is right; an option whose text equals that of the right one counts as
    right. None unless `answered`, and where the right option is not known."""
    source_label: str
    """Letter of the right option in the data set."""
    source_predicted: str | None
    """Predicted letter in the data set."""
    permutation: dict[str, str]
    """Presented letter -> letter in the data set."""
    order_kept: bool = False
    """Whether an option refers to the places of others, "All of the above", so that all options are
    in the order of the data set."""
    confidence: float | None
    """Mean stated confidence of the experts who hold the answer at the end; None without
    any."""
    votes: dict[str, int]
    """Letter -> experts (advanced: teams) who hold it at the end."""
    opinions: list[Stated]
    """Each stated opinion, with its reasoning and confidence."""
    interactions: list[DebateMessage]
    """Debate messages that were delivered: the cells of the interaction matrix."""
    teams: list[ReportedTeam]
    """Reports of the multidisciplinary teams."""
    routed_by: RoutedBy | None
    """What chose the level; `method` for a method without levels."""
    model: str
    """The models that replied, as the endpoints name them; empty without a reply."""
    calls: int
    """Replies of models to team and router, repeated requests included."""
    wall_seconds: float
    """Seconds from the start of the question to its decision."""
    exaid: ExaidRecord
    """What EXAID did; empty and zero if it is off."""
    error: str | None
    """One line, for every status except `answered` and `skipped`."""

    schema_version: str = SCHEMA_VERSION
    """Version of this format."""
    case_id: str
    """Safe name of the case, for files."""
    epoch: int
    """Number of the epoch, from 1."""
    restart: int = 0
    """How often the question had been restarted, after a crash, an error or a lost worker: rows of
    `calls.jsonl` with this `case_id` and `restart` add up to `token_usage` and to that of EXAID."""
    routing_reason: str
    """The router's words."""
    rungs: list[Rung] = Field(default_factory=list)
    """The teams that were heard, with `--router disagreement`; the last one is where it stopped."""
    panel: list[Panelist]
    """Experts of a debate and who reports to whom."""
    dropped_messages: int
    """Debate messages to oneself or to an unknown recipient."""
    repairs: list[str]
    """Corrections made by rule, and fallbacks used."""
    left_out: list[LeftOut]
    """Turns that failed and that the team went on without."""
    watched: Watched = Field(default_factory=Watched)
    pictures: list[PictureRecord] = Field(default_factory=list)
    """Pictures of the question, in the order of its prompts; also those that were not sent."""
    fields: dict[str, str] = Field(default_factory=dict)
    """Other short fields of the data set, such as a subject: name -> text of at most 100
    characters, at most 20 fields; empty in records up to 1.4.0."""

    @property
    def is_incomplete(self) -> bool:
        """Whether the question was answered without a turn that ended in `api_error`."""
        failed = any(turn.status is Status.API_ERROR for turn in self.left_out)
        return failed and self.status is Status.ANSWERED

    def __repr_args__(self) -> Iterator[tuple[str, object]]:
        """Yield the most informative fields; all of them would fill a screen."""
        names = ("question_id", "status", "predicted", "label", "correct", "difficulty", "error")
        yield from ((name, value) for name in names if (value := getattr(self, name)) is not None)
        yield "total_tokens", self.token_usage.total_tokens
        yield "cost_usd", self.token_usage.cost_usd

    def _repr_html_(self) -> str:
        """Return the table that a notebook shows: question, options, answer and opinions."""
        predicted, usage = self.predicted or "", self.token_usage
        rows = [("question", self.question)]
        rows += [(letter, text) for letter, text in self.options.items()]
        rows += [("status", self.error or self.status.value), ("answer", predicted)]
        rows += [("right answer", self.label), ("difficulty", self.difficulty or "")]
        rows += [
            (f"{stated.role}, round {stated.round}", f"{stated.answer}: {stated.reasoning}")
            for stated in self.opinions
        ]
        cost = "price not known" if usage.cost_usd is None else f"{usage.cost_usd:.6f} USD"
        rows += [("tokens", f"{usage.total_tokens:,}, {cost}")]
        return html_table((name, text) for name, text in rows if text)


def make_record(
    case: Case,
    *,
    epoch: int,
    route: Route | None,
    decision: Decision | None,
    error: BenchError | None,
    book: CaseBook,
    wall_seconds: float,
    watched: Watched | None = None,
) -> SampleRecord:
    """Return the record of a decided case, with EXAID's part still empty.

    Args:
        case: The case.
        epoch: Epoch number, from 1.
        route: Route of the case; None when routing failed.
        decision: Decision of the team; None when the case was skipped or ended in `error`.
        error: Error that ended the case; None without one.
        book: Ledger totals of the case.
        wall_seconds: Seconds from the start of the case to its decision.
        watched: How well observers have followed the case so far.
    """
    question = case.question
    letter = decision.letter if decision else None
    team = book.totals(without=EXAID_ROLES)
    status = status_of(error) if error else Status.ANSWERED if decision else Status.SKIPPED
    shown = case.pictures if case.were_shown else ()
    right = question.right_letters([picture.sha256 for picture in shown])
    return SampleRecord(
        question_id=question.id,
        question=question.text,
        label=question.gold,
        answer=question.options.get(question.gold, ""),
        options=dict(question.options),
        response=_response(question, route, decision),
        difficulty=route.difficulty.value if route and route.difficulty else None,
        token_usage=_usage(team),
        status=status,
        predicted=letter,
        correct=letter in right if letter and question.gold else None,
        source_label=question.permutation.get(question.gold, ""),
        source_predicted=question.permutation[letter] if letter else None,
        permutation=dict(question.permutation),
        order_kept=question.order_kept,
        confidence=decision.confidence() if decision else None,
        votes=decision.votes() if decision else {},
        routed_by=route.routed_by if route else None,
        model=", ".join(book.models(without=EXAID_ROLES)),
        calls=team.calls,
        wall_seconds=round(wall_seconds, 3),
        exaid=ExaidRecord(),
        error=str(error) if error else None,
        case_id=case.id,
        epoch=epoch,
        routing_reason=route.reasoning if route else "",
        rungs=list(route.rungs) if route else [],
        repairs=list(case.repairs),
        left_out=sorted(case.left_out, key=lambda turn: turn.agent),
        watched=watched or Watched(),
        opinions=list(decision.opinions) if decision else [],
        interactions=list(decision.messages) if decision else [],
        teams=list(decision.teams) if decision else [],
        panel=list(decision.panel) if decision else [],
        dropped_messages=decision.dropped_messages if decision else 0,
        pictures=list(picture_records(question, shown)),
        fields=dict(question.fields),
    )


def exaid_usage(totals: Totals) -> ExaidUsage:
    """Return EXAID's totals for an answer in the form used in records."""
    return ExaidUsage(**_counts(totals), cost_usd=_cost(totals))


def _counts(totals: Totals) -> dict[str, int]:
    return {
        "input_tokens": totals.usage.input_tokens,
        "output_tokens": totals.usage.output_tokens,
        "total_tokens": totals.usage.total_tokens,
    }


def _usage(totals: Totals) -> TokenUsageRecord:
    return TokenUsageRecord(
        **_counts(totals),
        cached_input_tokens=totals.usage.cached_input_tokens,
        reasoning_tokens=totals.usage.reasoning_tokens,
        cache_write_tokens=totals.usage.cache_write_tokens,
        cost_usd=_cost(totals),
    )


def _cost(totals: Totals) -> float | None:
    return None if totals.cost_usd is None else round(totals.cost_usd, 8)


def _response(
    question: Question, route: Route | None, decision: Decision | None
) -> dict[str, str] | None:
    if decision is None or route is None:
        return None
    answer = f"{decision.letter}) {question.options[decision.letter]}"
    if route.difficulty is Difficulty.INTERMEDIATE:
        return {"majority_vote": f"Answer: {answer}", "analysis": decision.analysis}
    return {"analysis": decision.analysis, "final_answer": answer}
