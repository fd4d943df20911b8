"""The debate over real HTTP: who reads what, what is remembered, how long prompts are."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.provider import fix_lengths, script_debate
from mdagents.agents.case import Case
from mdagents.agents.events import DebateMessage
from mdagents.agents.replies import CHARS_PER_WORD
from mdagents.settings import DebatePolicy, Difficulty
from mdagents.teams.digest import DIGEST_WORDS, SENTENCE_WORDS, decisive_sentence
from mdagents.teams.memory import MEMORY_WORDS, memory
from tests.fake_provider import CHARACTERS_PER_TOKEN, FakeProvider
from tests.mdagents.conftest import SCURVY, Solve
from tests.mdagents.teams.debates import TASK_OF_A_TURN, chatter, silence

INTERMEDIATE = Difficulty.INTERMEDIATE


async def test_a_silent_debate_takes_eight_calls(provider: FakeProvider, solve: Solve) -> None:
    silence(provider)
    decision = await solve(INTERMEDIATE)
    assert len(provider.calls) == 8
    assert decision.messages == ()
    assert "Nobody asked for a discussion." in provider.calls[-1].text


async def test_when_everybody_always_speaks(provider: FakeProvider, solve: Solve) -> None:
    chatter(provider)
    provider.field_policy = None
    answers = iter("ABCABCABCABCABC")
    provider.when('"confidence": a number', lambda _: {"answer": next(answers)})
    decision = await solve(INTERMEDIATE)
    n, rounds, turns = 3, 3, 3
    assert len(provider.calls) == 1 + n + rounds * (turns * n + n) + 1
    assert len(decision.messages) == rounds * turns * n
    assert Counter(opinion.round for opinion in decision.opinions) == {0: 3, 1: 3, 2: 3, 3: 3}


async def test_each_message_enters_the_prompt_of_its_recipient_and_of_nobody_else(
    provider: FakeProvider, solve: Solve
) -> None:
    chatter(provider, "MESSAGE")
    decision = await solve(INTERMEDIATE, rounds=1, turns=2)
    panel = [panelist.agent for panelist in decision.panel]
    assert len(decision.messages) == 6
    for message in decision.messages:
        number = panel.index(message.sender) + 1
        said = f"From Expert {number}: MESSAGE #{number}"
        later = [
            call.text
            for call in provider.calls
            if said in call.text
            and f"You are expert {panel.index(message.recipient) + 1} " in call.text
        ]
        elsewhere = [
            call.text for call in provider.calls if said in call.text and call.text not in later
        ]
        assert later, f"{message} was never delivered"
        assert not elsewhere, f"{message} reached somebody else"


async def test_a_message_is_unread_once(provider: FakeProvider, solve: Solve) -> None:
    first = {"participate": True, "messages": [{"to": 2, "text": "READ ME ONCE"}]}
    provider.when(
        lambda r: "You are expert 1 " in r.text and "turn 1:" in r.text and "round 1" in r.text,
        first,
    )
    silence(provider)
    await solve(INTERMEDIATE)
    unread = "From Expert 1: READ ME ONCE"
    turns = [c.text for c in provider.calls if TASK_OF_A_TURN in c.text and unread in c.text]
    updates = [c.text for c in provider.calls if "is over" in c.text and unread in c.text]
    assert len(turns) == 1
    assert "turn 2" in turns[0]
    assert len(updates) == 1


async def test_only_those_who_were_written_to_update(provider: FakeProvider, solve: Solve) -> None:
    provider.when(
        lambda r: TASK_OF_A_TURN in r.text and "You are expert 1 " in r.text,
        {"participate": True, "messages": [{"to": 3, "text": "Think again."}]},
    )
    silence(provider)
    decision = await solve(INTERMEDIATE, rounds=1, turns=1)
    updated = [opinion.agent for opinion in decision.opinions if opinion.round == 1]
    assert updated == [decision.panel[2].agent]


async def test_messages_to_oneself_are_dropped_and_counted(
    provider: FakeProvider, solve: Solve
) -> None:
    provider.when(
        TASK_OF_A_TURN, {"participate": True, "messages": [{"to": 1, "text": "Dear me."}]}
    )
    decision = await solve(INTERMEDIATE, rounds=1, turns=1)
    assert len(decision.messages) == 2, "from experts 2 and 3 to 1"
    assert decision.dropped_messages == 1


async def test_the_debate_ends_when_all_agree(provider: FakeProvider, solve: Solve) -> None:
    chatter(provider)
    provider.when('"confidence": a number', {"answer": "C"})
    await solve(INTERMEDIATE)
    assert len(provider.calls) == 1 + 3 + (3 * 3 + 3) + 1, "one round of three"


async def test_a_reply_in_a_code_fence_is_not_silence(provider: FakeProvider, solve: Solve) -> None:
    reply = {"reason": "I must.", "participate": True, "messages": [{"to": 2, "text": "Hm."}]}
    speak = f"```json\n{json.dumps(reply)}\n```"
    provider.when(lambda r: TASK_OF_A_TURN in r.text and "You are expert 1 " in r.text, speak)
    silence(provider)
    decision = await solve(INTERMEDIATE, rounds=1, turns=1)
    assert [message.text for message in decision.messages] == ["Hm."]


# What an expert remembers.


def write(provider: FakeProvider, number: int, when: str, text: str, to: int) -> None:
    """Expert `number` writes to expert `to`, in a turn such as `round 1, turn 2`."""
    provider.when(
        lambda r: f"You are expert {number} of" in r.text and f"in {when}:" in r.text,
        {"participate": True, "messages": [{"to": to, "text": text}]},
    )


def asked(provider: FakeProvider, number: int, step: str) -> str:
    """The prompt of an expert in a turn such as `in round 1, turn 2`, or `round 1 is over`."""
    (text,) = [
        call.text
        for call in provider.calls
        if f"You are expert {number} of" in call.text and step in call.text
    ]
    return text


def disagree(provider: FakeProvider) -> None:
    """No two opinions in a row are the same."""
    answers = itertools.cycle("ABCD")
    provider.when('"confidence": a number', lambda _: {"answer": next(answers)})


async def test_an_expert_knows_what_it_wrote_and_what_it_was_told(
    provider: FakeProvider, solve: Solve
) -> None:
    write(provider, 1, "round 1, turn 1", "Does he eat any fruit?", to=2)
    write(provider, 2, "round 1, turn 2", "None for months.", to=1)
    write(provider, 3, "round 2, turn 1", "Which vitamin is in fruit?", to=1)
    silence(provider)
    disagree(provider)
    await solve(INTERMEDIATE, rounds=2, turns=3)

    second = asked(provider, 1, "in round 1, turn 2")
    assert "- You to Expert 2: Does he eat any fruit?" in second
    third = asked(provider, 1, "in round 1, turn 3")
    assert third.index("From Expert 2: None for months.") < third.index("You to Expert 2: Does he")
    assert "Expert 2 to you" not in third, "it is unread, and told once"
    later = asked(provider, 1, "in round 2, turn 2")
    assert "From Expert 3: Which vitamin" in later
    assert later.index("You to Expert 2: Does he") < later.index("Expert 2 to you: None for")
    update = asked(provider, 1, "round 1 is over")
    assert "From Expert 2: None for months." in update
    assert "- You to Expert 2: Does he eat any fruit?" in update
    assert "Earlier messages" not in asked(provider, 3, "in round 1, turn 3"), "nothing to tell"
    own = later[later.index("Current opinions:") :]
    assert own.index("- Expert 1 (") < own.index("You are expert 1 of 3."), "knows its own opinion"


async def test_of_several_messages_to_one_expert_the_last_is_remembered(
    provider: FakeProvider, solve: Solve
) -> None:
    write(provider, 1, "round 1, turn 1", "FIRST", to=2)
    write(provider, 1, "round 1, turn 2", "SECOND", to=2)
    silence(provider)
    await solve(INTERMEDIATE, rounds=1)
    assert "FIRST" not in asked(provider, 1, "in round 1, turn 3")
    assert "You to Expert 2: SECOND" in asked(provider, 1, "in round 1, turn 3")


texts = st.text(min_size=1, max_size=300)
experts = st.sampled_from(["a", "b", "c", "d", "e", "f", "g", "h", "i"])
letters = st.lists(st.tuples(experts, texts), max_size=20)


@pytest.mark.sweep
@given(letters, letters)
def test_a_memory_keeps_its_budget_and_forgets_no_recipient(
    wrote: list[tuple[str, str]], read: list[tuple[str, str]]
) -> None:
    told = memory(
        [DebateMessage(n, 1, "me", other, text) for n, (other, text) in enumerate(wrote)],
        [DebateMessage(n, 1, other, "me", text) for n, (other, text) in enumerate(read)],
        str,
    )
    _, *lines = told.split("\n") if told else [""]
    assert bool(told) == bool(wrote or read)
    quoted = [line.partition(": ")[2] for line in lines]
    assert all(line.startswith("- ") for line in lines), "a line each"
    assert sum(map(len, quoted)) <= MEMORY_WORDS * CHARS_PER_WORD
    recipients = {line.removeprefix("- You to ")[0] for line in lines if "You to" in line[:8]}
    assert recipients >= {other for other, _ in wrote}


@pytest.mark.sweep
async def test_the_longest_debate_has_prompts_of_bounded_length(
    provider: FakeProvider, solve: Solve
) -> None:
    chatter(provider, "word " * 60)
    disagree(provider)
    await solve(INTERMEDIATE, rounds=10, turns=10)
    length = {
        round_: max(
            call.usage.input
            for call in provider.calls
            if f"in round {round_}, turn" in call.text or f"round {round_} is over" in call.text
        )
        for round_ in (1, 10)
    }
    budget = (MEMORY_WORDS * CHARS_PER_WORD + 200) // CHARACTERS_PER_TOKEN
    assert length[10] <= length[1] + budget
    assert provider.calls[-1].usage.input <= length[10]


@pytest.mark.sweep
async def test_tokens_grow_with_calls_and_not_with_their_square(
    provider: FakeProvider, solve: Solve
) -> None:
    async def cost(who_writes: str) -> tuple[int, int]:
        provider.reset()
        provider.rules.clear()
        fix_lengths(provider)
        script_debate(provider, who_writes)
        await solve(INTERMEDIATE, debate_experts=4)
        return provider.totals.total, len(provider.calls)

    half, everybody = await cost("half"), await cost("everybody")
    growth = (everybody[0] / half[0]) / (everybody[1] / half[1])
    assert growth <= 1.2


# What the moderator is told.


async def test_the_moderator_is_told_who_convinced_whom_and_with_what(
    provider: FakeProvider, solve: Solve
) -> None:
    text = "A patient like this is rare. Bleeding gums speak for C. Do you agree?"
    write(provider, 1, "round 1, turn 1", text, to=2)
    silence(provider)
    provider.when(lambda r: "is over" in r.text, {"answer": "C", "reasoning": "Convinced by it."})
    provider.when('"confidence": a number', {"answer": "A", "reasoning": "It was a guess."})
    decision = await solve(INTERMEDIATE, rounds=1, turns=1)
    shown = provider.calls[-1].text
    first, final = shown.index("First opinions:"), shown.index("Final opinions:")
    assert shown.count("It was a guess.", first, final) == 3
    assert "Convinced by it. (answer C" in shown[final:]
    assert shown.count(": as at first", final) == 2, "nothing is said twice"
    assert (
        "- Expert 2 changed from A to C in round 1 after Expert 1 wrote: "
        "“Bleeding gums speak for C.”" in shown
    )
    assert "A patient like this" not in shown
    assert not re.search(r"\d+ messages", shown), "counts decide nothing"
    assert decision.votes() == {"A": 2, "C": 1}


async def test_the_moderator_is_told_what_experts_still_disagree_about(
    provider: FakeProvider, solve: Solve
) -> None:
    held = {"Dentist": "B", "Surgeon": "C", "Nurse": "C"}
    experts = [{"role": role, "expertise": "Much.", "reports_to": None} for role in held]
    provider.when("Your task: choose exactly", {"experts": experts})
    write(provider, 1, "round 1, turn 1", "It is thiamine. Think of beriberi.", to=2)
    write(provider, 1, "round 1, turn 2", "Beriberi it is.", to=2)
    write(provider, 2, "round 1, turn 2", "We agree.", to=3)
    silence(provider)
    for role, letter in held.items():
        provider.when(f"Your role: {role}.", {"answer": letter})
    await solve(INTERMEDIATE, rounds=1, turns=2)
    _, _, debate = provider.calls[-1].text.partition("The debate:\n")
    assert debate.partition("\n\n")[0].splitlines() == [
        "- Nobody changed the answer.",
        "- Expert 1 (B) and Expert 2 (C) still disagree; Expert 1 wrote last: “Beriberi it is.”",
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Gums bleed. So it is C. Agreed?", "So it is C."),
        ("C fits. A is wrong.", "C fits."),
        ("Nothing fits. A is wrong. Think again.", "A is wrong."),
        ("A sailor eats no fruit. I wonder.", "I wonder."),
        ("He needs ascorbic acid now. And rest.", "He needs ascorbic acid now."),
        ("Take (C)! It heals", "Take (C)!"),
        ("VITAMIN C is vital", "VITAMIN C is vital"),
        ("Look at the gums", "Look at the gums"),
        ("", ""),
    ],
)
def test_the_decisive_sentence(text: str, sentence: str) -> None:
    assert decisive_sentence(text, SCURVY.options, "C") == sentence


options = st.dictionaries(st.sampled_from("ABCDEFGHIJ"), st.text(max_size=20), min_size=1)


@pytest.mark.sweep
@given(st.text(max_size=600), options)
def test_a_decisive_sentence_is_short_and_from_the_message(
    text: str, options: dict[str, str]
) -> None:
    sentence = decisive_sentence(text, options, min(options))
    assert len(sentence) <= SENTENCE_WORDS * CHARS_PER_WORD
    assert sentence.removesuffix("…") in " ".join(text.split())


@pytest.mark.sweep
async def test_the_moderator_of_the_longest_debate_reads_within_a_budget(
    provider: FakeProvider, solve: Solve
) -> None:
    chatter(provider, "So much to say about it. " * 20)
    disagree(provider)
    await solve(INTERMEDIATE, rounds=10, turns=2)
    _, _, debate = provider.calls[-1].text.partition("The debate:")
    quotes = re.findall("“([^”]*)”", debate)
    assert quotes
    assert sum(map(len, quotes)) <= DIGEST_WORDS * CHARS_PER_WORD
    assert "in round 10" in debate
    assert "in round 1 " not in debate, "the latest changes stay"


async def test_an_expert_without_an_opinion_takes_no_part(
    provider: FakeProvider, solve: Solve, case: Case
) -> None:
    provider.fail_next("context_length", match="Your task: judge the question")
    chatter(provider)
    decision = await solve(INTERMEDIATE, rounds=1, turns=1)
    silent = case.left_out[0].agent
    assert silent in {panelist.agent for panelist in decision.panel}
    assert silent not in {m.sender for m in decision.messages} | {
        m.recipient for m in decision.messages
    }
    assert decision.dropped_messages == 1


async def test_a_turn_that_fails_counts_as_silence_and_is_named(
    provider: FakeProvider, solve: Solve, case: Case
) -> None:
    provider.fail_next("context_length", times=3, match=TASK_OF_A_TURN)
    decision = await solve(INTERMEDIATE)
    assert decision.letter in "ABCD"
    assert [turn.phase for turn in case.left_out] == ["round-1-turn-1"] * 3


async def test_the_hierarchy_reaches_persona_and_record(
    provider: FakeProvider, solve: Solve
) -> None:
    experts = [
        {"role": "Pediatrician", "expertise": "Children.", "reports_to": "Independent"},
        {
            "role": "Cardiologist",
            "expertise": "Hearts.",
            "reports_to": "Pediatrician > Cardiologist",
        },
        {"role": "Nurse", "expertise": "Care.", "reports_to": "Cardiologist"},
    ]
    provider.when("Your task: choose exactly", {"experts": experts})
    silence(provider)
    decision = await solve(INTERMEDIATE)
    above = {panelist.role: panelist.reports_to for panelist in decision.panel}
    assert above == {"Pediatrician": None, "Cardiologist": "Pediatrician", "Nurse": "Cardiologist"}
    assert any("You defer to the Pediatrician" in call.text for call in provider.calls)
    hierarchy = "Cardiologist reports to Pediatrician; Nurse reports to Cardiologist."
    assert f"Hierarchy: {hierarchy}" in provider.calls[-1].text


@pytest.mark.parametrize("experts", [1, 2, 10])
async def test_intermediate_with_other_numbers(
    provider: FakeProvider, solve: Solve, experts: int
) -> None:
    silence(provider)
    decision = await solve(INTERMEDIATE, debate_experts=experts)
    turns = 0 if experts == 1 else experts
    assert len(provider.calls) == 1 + experts + turns + 1
    assert len({panelist.emoji for panelist in decision.panel}) == experts


async def test_prompts_do_not_grow_with_the_number_of_turns(
    provider: FakeProvider, solve: Solve
) -> None:
    chatter(provider)
    answers = iter("ABC" * 10)
    provider.when('"confidence": a number', lambda _: {"answer": next(answers)})
    await solve(INTERMEDIATE, rounds=3, turns=3)
    turns = [call for call in provider.calls if TASK_OF_A_TURN in call.text]
    first_round = max(call.usage.input for call in turns if "round 1" in call.text)
    last_round = max(call.usage.input for call in turns if "round 3" in call.text)
    assert last_round <= 1.2 * first_round


async def test_where_all_agree_at_first_nobody_debates_or_decides(
    provider: FakeProvider, solve: Solve
) -> None:
    chatter(provider)
    provider.when('"confidence": a number', {"answer": "B"})
    decision = await solve(INTERMEDIATE, debate_policy=DebatePolicy.AGREED)
    assert len(provider.calls) == 1 + 3
    assert (decision.letter, decision.votes()) == ("B", {"B": 3})
    assert decision.analysis.startswith("3 of 3 votes.")


async def test_where_they_differ_the_policy_changes_nothing(
    provider: FakeProvider, solve: Solve
) -> None:
    chatter(provider)
    answers = iter("ABC" * 9)
    provider.when('"confidence": a number', lambda _: {"answer": next(answers)})
    await solve(INTERMEDIATE, rounds=1, turns=1)
    usual = len(provider.calls)
    await solve(INTERMEDIATE, rounds=1, turns=1, debate_policy=DebatePolicy.AGREED)
    assert len(provider.calls) == 2 * usual


async def test_a_debate_ends_after_a_round_without_a_change(
    provider: FakeProvider, solve: Solve
) -> None:
    chatter(provider)
    first = iter("ABC")
    provider.when("You are expert 1", {"answer": "A"})
    provider.when("You are expert 2", {"answer": "B"})
    provider.when("You are expert 3", {"answer": "C"})
    provider.when('"confidence": a number', lambda _: {"answer": next(first)}, times=3)
    decision = await solve(INTERMEDIATE, rounds=3, turns=1, debate_policy=DebatePolicy.CHANGING)
    assert {opinion.round for opinion in decision.opinions} <= {0, 1, 2}
    assert max(opinion.round for opinion in decision.opinions) < 3


async def test_a_minority_speaks_first(provider: FakeProvider, solve: Solve) -> None:
    chatter(provider)
    first = iter("ABB")
    provider.when('"confidence": a number', lambda _: {"answer": next(first, "B")})
    decision = await solve(
        INTERMEDIATE, rounds=1, turns=2, debate_policy=DebatePolicy.MINORITY_FIRST
    )
    (minority,) = [o.agent for o in decision.opinions if o.round == 0 and o.answer == "A"]
    spoke = [message.sender for message in decision.messages if message.turn == 1]
    assert spoke == [minority]
    assert len({m.sender for m in decision.messages if m.turn == 2}) == 3
