"""Why an expert changed its answer: in debates as their feed tells of them, and in a whole run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdagents.agents.events import DebateMessage, Member
from mdagents.datasets.questions import Question
from mdagents.live import LIVE_FILE, LiveFeed
from mdagents.live.case import Flip, LiveCase, Turn
from mdagents.live.run import LiveRun
from mdagents.pages.changes import Cause, causes
from mdagents.pages.sentences import Quote
from tests.fake_provider import FakeProvider
from tests.mdagents.teams.debates import SILENT, TASK_OF_A_TURN
from tests.support.whole_runs import Run

OPTIONS = {"A": "Subacute thyroiditis", "B": "Toxic adenoma", "C": "Graves disease", "D": "Gout"}
MEMBERS = ("expert-1-internist", "expert-2-surgeon", "expert-3-radiologist")
INTERNIST, SURGEON, RADIOLOGIST = MEMBERS
WHY = "The uptake is diffuse, so I change from A to C. Propranolol helps in either case."


class Debate:
    """A debate of three experts, told in the order in which it is held."""

    def __init__(self, first: str, options: dict[str, str] = OPTIONS) -> None:
        question = Question("12", "What is it?", options, "C", {key: key for key in options})
        self.case = LiveCase(("12", 1), question, members=tuple(Member(m, m) for m in MEMBERS))
        for agent, letter in zip(MEMBERS, first, strict=True):
            self.answers(agent, 0, letter, "The pain is typical.")

    def answers(self, agent: str, round_: int, letter: str, reasoning: str) -> None:
        phase = f"round-{round_}-update" if round_ else "opinion"
        self._turn(agent, phase, f"{reasoning}\nAnswer: {letter}", letter)
        before = self.case.votes.get(agent, letter)
        self.case.votes[agent] = letter
        if before != letter:
            self.case.flips.append(Flip(agent, before, letter, len(self.case.turns) - 1))

    def writes(self, sender: str, round_: int, *letters: tuple[str, str], turn: int = 1) -> None:
        """Write (to, text) to others."""
        lines = [f"To Expert {MEMBERS.index(to) + 1}: {text}" for to, text in letters]
        self._turn(sender, f"round-{round_}-turn-{turn}", "\n".join(["I must answer.", *lines]))
        for to, text in letters:
            message = DebateMessage(round_, turn, sender, to, text)
            self.case.deliver(message, 0)

    def cause(self) -> Cause:
        (cause,) = causes(self.case)
        return cause

    def quoted(self, quote: Quote | None) -> tuple[str, str] | None:
        """(agent, words)"""
        if quote is None:
            return None
        turn = self.case.turns[quote.turn]
        return turn.agent, turn.text[quote.start : quote.end]

    def _turn(self, agent: str, phase: str, text: str, answer: str | None = None) -> None:
        self.case.turns.append(Turn(agent, agent, phase, 0, text, None, 0, answer=answer))


def because(*texts: str, first: str = "ABC", why: str = WHY) -> tuple[str, str] | None:
    """Where the radiologist argued, who wrote these, for the answer C of the internist."""
    debate = Debate(first)
    for turn, text in enumerate(texts, start=1):
        debate.writes(RADIOLOGIST, 1, (INTERNIST, text), turn=turn)
    debate.answers(INTERNIST, 1, "C", why)
    return debate.quoted(debate.cause().because)


def test_a_change_leads_to_its_reason_and_to_the_sentence_that_argued_for_it() -> None:
    debate = Debate("ABC")
    debate.writes(SURGEON, 1, (INTERNIST, "Why not C? B is likelier."), (RADIOLOGIST, "Why C?"))
    debate.writes(
        RADIOLOGIST, 1, (INTERNIST, "Look at the scan. Uptake like this means C. Agreed?")
    )
    debate.answers(INTERNIST, 1, "C", WHY)
    cause = debate.cause()
    assert (cause.flip.before, cause.flip.after) == ("A", "C")
    assert debate.quoted(cause.said) == (
        INTERNIST,
        "The uptake is diffuse, so I change from A to C.",
    )
    assert [one.message.sender for one in cause.messages] == [RADIOLOGIST, SURGEON]
    assert debate.quoted(cause.because) == (RADIOLOGIST, "Uptake like this means C.")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("No nodule. It is Graves’ disease; think again.", "It is Graves’ disease;"),
        ("No nodule. (C) fits the eyes. Agreed?", "(C) fits the eyes."),
        ("He is tall. Diffuse uptake was seen. Bye.", "Diffuse uptake was seen."),
        ("Vitamin C is low. Graves disease explains it.", "Graves disease explains it."),
        ("Le goître\nest “diffus”. Donc C.\n\nMerci.", "Donc C."),
        ("My list: A. No. C. It fits the eyes. D. No.", "C. It fits the eyes."),
        ("I would wait.", None),
        ("What do you make of the uptake?", None),
        ("Subacute thyroiditis hurts. No more.", None),
    ],
)
def test_an_argument_names_the_answer_or_what_its_explanation_takes_up(
    text: str, sentence: str | None
) -> None:
    assert because(text) == (sentence and (RADIOLOGIST, sentence))


def test_a_sentence_that_names_the_answer_comes_before_one_that_has_words_in_common() -> None:
    assert because("Diffuse uptake was seen.", "So it is C.") == (RADIOLOGIST, "So it is C.")


def test_who_did_not_hold_the_new_answer_is_no_cause() -> None:
    assert because("C is wrong, since the uptake is low.", first="ABB") is None
    debate = Debate("ABB")
    debate.writes(RADIOLOGIST, 1, (INTERNIST, "C is wrong."))
    debate.answers(RADIOLOGIST, 1, "C", "I was persuaded as well.")
    debate.answers(INTERNIST, 1, "C", WHY)
    assert [(one.flip.agent, one.because) for one in causes(debate.case)] == [
        (RADIOLOGIST, None),
        (INTERNIST, None),
    ]


def test_the_answer_line_is_quoted_where_no_sentence_explains() -> None:
    debate = Debate("ABC")
    debate.answers(INTERNIST, 1, "C", "I was convinced.")
    assert debate.quoted(debate.cause().said) == (INTERNIST, "Answer: C")
    debate.case.turns[-1].text = "I was conv"  # its connection broke
    assert debate.cause().said is None
    debate.case.turns[-1].text = ""
    assert debate.cause().said is None


def test_only_messages_since_the_expert_last_answered_count() -> None:
    debate = Debate("ABC")
    debate.writes(RADIOLOGIST, 1, (INTERNIST, "It is C."))
    debate.answers(INTERNIST, 1, "A", "No.")
    debate.writes(RADIOLOGIST, 2, (INTERNIST, "C, I insist."), (SURGEON, "C."))
    debate.answers(INTERNIST, 2, "C", WHY)
    debate.writes(RADIOLOGIST, 3, (INTERNIST, "C it is."))
    cause = debate.cause()
    assert [one.message.text for one in cause.messages] == ["C, I insist."]
    assert debate.quoted(cause.because) == (RADIOLOGIST, "C, I insist.")


def test_of_two_equal_messages_it_is_the_one_to_the_expert() -> None:
    debate = Debate("BCA")
    debate.writes(SURGEON, 1, (INTERNIST, "So C."), (RADIOLOGIST, "So C."))
    debate.answers(RADIOLOGIST, 1, "C", WHY)
    quote = debate.cause().because
    text = debate.case.turns[3].text
    assert quote == Quote(3, text.rindex("So C."), len(text))


def test_what_began_before_the_first_line_and_samples_have_no_cause() -> None:
    case = LiveCase(("12", 1))
    case.turns = [Turn("s", "S", phase, 0, "Answer: B", answer="B") for phase in ("", "sample")]
    case.flips = [Flip("s", "A", "B", 0), Flip("s", "A", "B", 1)]
    assert [(one.messages, one.because) for one in causes(case)] == [((), None)] * 2


@pytest.mark.process
def test_quotes_lie_where_a_run_wrote_its_texts(
    provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LiveFeed, "remove", lambda self: None)  # so that its feed stays
    text = "Naïve “view”:\nthe rash decides. Hence it is C.\tSorry."
    letter = {"reason": "I “must”.", "participate": True, "messages": [{"to": 1, "text": text}]}
    provider.when(lambda r: "are expert 2 of" in r.text and "round 1, turn 1:" in r.text, letter)
    provider.when(TASK_OF_A_TURN, SILENT)
    provider.when("is over", {"answer": "C", "reasoning": "Hm.\nThe “rash” is new: C it is."})
    held = {"Nurse": "A", "Dentist": "C", "Surgeon": "B"}
    experts = [{"role": role, "expertise": "Much.", "reports_to": None} for role in held]
    provider.when("Your task: choose exactly", {"experts": experts})
    for role, answer in held.items():
        provider.when(f"Your role: {role}.", {"answer": answer, "reasoning": "A guess."})
    assert run("--difficulty", "intermediate", "--num-samples", "1")[0] == 0
    (feed,) = Path("output").glob(f"*/{LIVE_FILE}")
    live = LiveRun(feed)
    live.update()
    (case,) = live.cases.values()
    (cause,) = causes(case)
    assert (cause.flip.agent, cause.flip.after) == ("expert-1-nurse", "C")
    assert [one.message.text for one in cause.messages] == [text]
    assert [
        quote and case.turns[quote.turn].text[quote.start : quote.end]
        for quote in (cause.said, cause.because)
    ] == ["The “rash” is new: C it is.", "Hence it is C."]


def quotes(found: Sequence[Cause]) -> list[Quote]:
    return [quote for one in found for quote in (one.said, one.because) if quote]


TEXTS = st.one_of(
    st.text(st.characters(categories=["L", "M", "N", "P", "S", "Z", "C"]), max_size=30),
    st.sampled_from(["C.", "Graves disease.", "确诊为Graves病，选C。", "\ud83d C", "A", "\n"]),
)


@pytest.mark.sweep
@given(st.lists(TEXTS, min_size=6, max_size=6), st.sampled_from(["CCA", "BAC", "ABC"]))
def test_any_debate_has_quotes_that_lie_in_its_turns(texts: list[str], first: str) -> None:
    debate = Debate(first, {**OPTIONS, "B": texts[4], "D": texts[5]})
    debate.writes(SURGEON, 1, (INTERNIST, texts[0]), (RADIOLOGIST, texts[1]))
    debate.writes(RADIOLOGIST, 1, (INTERNIST, texts[1]), (SURGEON, texts[2]))
    for agent, letter in zip(MEMBERS, "BCD", strict=True):
        debate.answers(agent, 1, letter, texts[3])
    for quote in quotes(causes(debate.case)):
        assert debate.case.turns[quote.turn].text[quote.start : quote.end].strip()
        assert quote.end <= len(debate.case.turns[quote.turn].text)


@pytest.mark.parametrize(
    ("texts", "is_new"),
    [
        (["I hold C and so should you."], False),
        (["Think of the amiodarone: it is C."], True),
        (["It is C.", "The amiodarone was new in May."], True),
        (["The pain is typical of C."], False),
    ],
)
def test_a_change_says_whether_a_message_named_a_new_finding(
    texts: list[str], is_new: bool
) -> None:
    debate = Debate("ABC")
    assert debate.case.question is not None
    debate.case.question = replace(
        debate.case.question, text="Pain, and amiodarone since spring. What is it?"
    )
    for turn, text in enumerate(texts, start=1):
        debate.writes(RADIOLOGIST, 1, (INTERNIST, text), turn=turn)
    debate.answers(INTERNIST, 1, "C", WHY)
    assert debate.cause().has_new_finding is is_new


def test_without_messages_nothing_is_said_of_new_findings() -> None:
    debate = Debate("ABC")
    debate.answers(INTERNIST, 1, "C", WHY)
    assert debate.cause().has_new_finding is None
