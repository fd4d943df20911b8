"""A question as its feed tells of it: whole runs on the fake provider, and each kind of line."""

from __future__ import annotations

from itertools import count

from exaid_core.schema.agent_summary import AgentSummary, SummaryDraft
from mdagents.agents.events import (
    DebateMessage,
    Ended,
    Member,
    Recruited,
    Routed,
    Started,
    Summarised,
    TurnBegan,
    TurnEnded,
)
from mdagents.datasets.questions import Question
from mdagents.live.case import Flip, LiveCase
from mdagents.live.lines import FeedLine, Happening, Words
from mdagents.settings import Difficulty, RoutedBy

ITEM = ("12", 1)
QUESTION = Question("12", "Which?", {"A": "One", "B": "Two"}, "A", {"A": "B", "B": "A"})


def told(*happenings: Happening, case: LiveCase | None = None) -> LiveCase:
    case = case or LiveCase(ITEM)
    numbers = count(1)
    for what in happenings:
        n = next(numbers)
        case.take(FeedLine(n, 1000 * n, ITEM, what))
    return case


def turn(
    agent: str, phase: str, text: str, seqs: tuple[int, int], answer: str | None = None
) -> list[Happening]:
    return [
        TurnBegan(agent, agent.title(), phase),
        Words(agent, 1, text, seqs),
        TurnEnded(agent, phase, answer=answer, confidence=0.5 if answer else None),
    ]


OPENING: list[Happening] = [
    Started(QUESTION),
    Routed(Difficulty.INTERMEDIATE, RoutedBy.ROUTER, "two views"),
    Recruited((Member("nurse", "Nurse"), Member("dentist", "Dentist", "Nurse"))),
    *turn("nurse", "opinion", "It is one.", (1, 4), "A"),
    *turn("dentist", "opinion", "It is two.", (2, 5), "B"),
]


def test_votes_stand_as_they_are_held_and_a_change_is_a_flip() -> None:
    case = told(*OPENING)
    assert case.votes == {"nurse": "A", "dentist": "B"}
    assert case.flips == []
    told(*turn("dentist", "round-1-update", "One it is.", (9, 9), "A"), case=case)
    assert case.votes == {"nurse": "A", "dentist": "A"}
    assert case.flips == [Flip("dentist", "B", "A", 2)]
    told(*turn("moderator", "moderate", "One.", (12, 12), "A"), case=case)
    assert "moderator" not in case.votes, "who decides has no vote"


def test_words_belong_to_the_turn_of_their_agent_also_while_others_speak() -> None:
    case = told(
        Started(QUESTION),
        TurnBegan("nurse", "Nurse", "opinion"),
        TurnBegan("dentist", "Dentist", "opinion"),
        Words("nurse", 1, "It ", (1, 1)),
        Words("dentist", 2, "No.", (2, 2)),
        Words("nurse", 1, "is.", (3, 3)),
    )
    assert [(t.role, t.text, t.seqs) for t in case.turns] == [
        ("Nurse", "It is.", (1, 3)),
        ("Dentist", "No.", (2, 2)),
    ]
    assert case.speaking == case.turns


def test_a_summary_leads_to_the_turns_that_it_was_made_from() -> None:
    summary = AgentSummary.from_draft(SummaryDraft(key_findings="One.")).model_copy(
        update={"agents": ("dentist",), "source_seqs": ((2, 5),)}
    )
    case = told(*OPENING, Summarised(1, summary))
    assert [made.of_turns for made in case.summaries] == [(1,)]


def test_messages_and_the_end_are_kept_with_their_times() -> None:
    message = DebateMessage(1, 1, "nurse", "dentist", "Why?")
    case = told(Started(QUESTION), message, Ended("A", None))
    assert [(one.message, one.at, one.said_in) for one in case.messages] == [(message, 2000, None)]
    assert (case.started_at, case.ended_at) == (1000, 3000)


def test_a_question_that_is_asked_again_begins_anew() -> None:
    case = told(*OPENING, Ended(None, "500 from x"), Started(QUESTION))
    assert (case.turns, case.votes, case.ended) == ([], {}, None)


def test_what_began_before_the_first_line_is_shown_as_far_as_it_is_known() -> None:
    case = told(Words("nurse", 1, "…is.", (7, 8)), TurnEnded("nurse", "opinion", answer="A"))
    assert case.question is None
    assert [(t.role, t.text, t.answer) for t in case.turns] == [("nurse", "…is.", "A")]
    assert told(TurnEnded("nurse", "opinion", answer="A")).turns == []
