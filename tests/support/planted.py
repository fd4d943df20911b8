"""Debates with one known fault each, or none, which a scripted provider plays to a run."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mdagents.scoring.audit.measures import Measure
from tests.fake_provider import FakeProvider
from tests.fake_provider.chat_api import SeenRequest

_FINDINGS = (
    "koilonychia", "splenomegaly", "nystagmus", "hematuria", "clubbing", "stridor", "petechiae",
    "xanthelasma", "ascites", "papilledema", "pericarditis", "hyperreflexia",
)  # fmt: skip
_DRUGS = (
    "Amiodarone", "Bumetanide", "Cefazolin", "Dapsone", "Enoxaparin", "Fomepizole", "Glipizide",
    "Haloperidol", "Infliximab", "Ketorolac", "Labetalol", "Meropenem",
)  # fmt: skip
_ROLES = ("Cardiologist", "Nephrologist", "Hematologist")
_TEAMS = ("Initial Team", "Heart Team", "Kidney Team", "Review Team")
_REASONS = (
    "My reading of all this leads me to {drug}.",
    "On balance {drug} is what I would give.",
    "I would go with {drug}, as the course fits best.",
    "What was told points to {drug} more than to any other.",
)
_FOR = (
    "Please think again: {drug} it must be, {finding} decides.",
    "You overlook {finding}; hence {drug}, option {letter}.",
    "Look at {finding} once more. The answer is {letter}.",
    "{finding} cannot be explained otherwise, so {letter} is right.",
)
_IDLE = (
    "I see this as you do and have nothing to add.",
    "Thank you; that is my view, too.",
    "Fine with me. Let us go on.",
)
_CLAIMS = (
    "All three experts agree on {letter}.",
    "The panel is unanimous: {drug}.",
    "There is full consensus among the experts for {letter}.",
    "Every specialist chose {letter}.",
    "No expert disagreed with {drug}.",
)
_NO_CLAIMS = (
    "Not all experts agree; {letter} has the better reasons.",
    "All experts agree that she is very ill, and differ on the drug: {drug}.",
    "Two of three experts favor {letter}.",
    "There was no full consensus, and I choose {drug}.",
    "Although one expert dissents, {letter} it is.",
)
_LONG = (
    "the renal clearance falls with age while its volume of distribution stays much the same over "
    "many decades"
)
_OTHER_LONG = (
    "a loading dose would shorten the delay but nobody has shown that outcomes improve when it is "
    "given early"
)


@dataclass(frozen=True, slots=True)
class Spoken:
    """A message of the first round, first turn; experts by number, from 1."""

    sender: int
    recipient: int
    text: str


@dataclass(frozen=True)
class Planted:
    """What the members of a team say about a question, and what an audit must find in it."""

    number: int
    kind: str
    first: tuple[str, str, str]
    decision: str
    analysis: str
    reasons: tuple[str, str, str]
    options: Mapping[str, str]
    findings: Sequence[str]
    expected: Mapping[Measure, int]
    """Measure -> how often."""
    messages: tuple[Spoken, ...] = ()
    after: Mapping[int, str] = field(default_factory=dict)
    """Expert -> letter after the first round."""
    cause: int | None = None
    """Message that caused the change, from 0."""

    @property
    def question(self) -> dict[str, Any]:
        """The question as a line of a data set, whose right option is A."""
        return {
            "id": f"planted-{self.number}",
            "question": f"Case {self.number}. Somebody has {', '.join(self.findings)}. What now?",
            "options": dict(self.options),
            "answer_idx": "A",
        }


WITHOUT_MESSAGES = (
    "clean", "shared error", "suppressed", "prevailed", "lost", "saved", "claims", "dropped",
)  # fmt: skip
"""Kinds that need no debate."""
KINDS = (
    *WITHOUT_MESSAGES, "debated", "conformity", "correction", "unprompted", "idle", "echo",
    "repetition",
)  # fmt: skip
"""All kinds; `clean` and `debated` have no fault."""
TEAMS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "basic": (WITHOUT_MESSAGES, ("--difficulty", "basic")),
    "intermediate": (KINDS, ("--difficulty", "intermediate")),
    "advanced": (WITHOUT_MESSAGES, ("--difficulty", "advanced", "--num-teams", "4")),
    "medagents": (WITHOUT_MESSAGES, ("--method", "medagents")),
    "debate": (
        ("clean", "shared error", "suppressed", "conformity", "correction", "unprompted"),
        ("--method", "debate"),
    ),
    "majority_vote": (("clean", "shared error", "suppressed"), ("--method", "majority_vote")),
}
"""Team or method -> kinds of debates that it can have, and the flags that ask for it."""
_FIRST: dict[str, tuple[str, str]] = {
    "clean": ("AAA", "A"),
    "shared error": ("BBB", "B"),
    "suppressed": ("ABB", "B"),
    "prevailed": ("ABB", "A"),
    "lost": ("AAA", "B"),
    "saved": ("BBC", "A"),
    "claims": ("AAB", "A"),
    "dropped": ("ABB", "B"),
    "debated": ("AAB", "A"),
    "conformity": ("AAB", "B"),
    "correction": ("AAB", "A"),
    "unprompted": ("AAB", "A"),
    "idle": ("AAA", "A"),
    "echo": ("AAB", "A"),
    "repetition": ("AAB", "A"),
}
"""Kind -> first opinions, decision."""
_EXPECTED: dict[str, tuple[Measure, ...]] = {
    "shared error": (Measure.SHARED_ERROR,),
    "suppressed": (Measure.MINORITY_SUPPRESSED,),
    "prevailed": (Measure.MINORITY_PREVAILED, Measure.SAVED_IN_SYNTHESIS),
    "lost": (Measure.LOST_IN_SYNTHESIS,),
    "saved": (Measure.SAVED_IN_SYNTHESIS,),
    "claims": (Measure.UNSTATED_AGREEMENT,),
    "dropped": (Measure.MINORITY_SUPPRESSED, Measure.FINDING_DROPPED),
    "conformity": (Measure.CONFORMITY,),
    "correction": (Measure.CORRECTION,),
    "unprompted": (Measure.UNPROMPTED,),
    "idle": (Measure.IDLE_ROUND,),
    "echo": (Measure.ECHO,),
    "repetition": (Measure.REPETITION,),
}


def plant(number: int, kind: str) -> Planted:
    """Return the debate of a question with a fault of one kind; its words depend on the number."""
    rng = random.Random(f"{number} {kind}")
    options = dict(zip("ABCD", rng.sample(_DRUGS, 4), strict=True))
    findings = rng.sample(_FINDINGS, 6)
    (first, decision), expected = _FIRST[kind], _EXPECTED.get(kind, ())
    reasons = [rng.choice(_REASONS).format(drug=options[letter]) for letter in first]
    messages: list[Spoken] = []
    after: dict[int, str] = {}

    def argue(letter: str, finding: str) -> str:
        told = rng.choice(_FOR).format(drug=options[letter], letter=letter, finding=finding)
        return told[0].upper() + told[1:]

    claims = _CLAIMS if kind == "claims" else _NO_CLAIMS
    analysis = rng.choice(claims).format(drug=options[decision], letter=decision)
    match kind:
        case "dropped":
            reasons[0] += f" It explains the {findings[0]}."
        case "debated":
            messages = [Spoken(1, 3, argue("A", findings[0]))]
        case "conformity":
            messages = [
                Spoken(3, 1, argue("B", findings[0])),
                Spoken(2, 1, argue("A", findings[1])),
            ]
            after = {1: "B"}
        case "correction":
            messages = [Spoken(1, 3, argue("A", findings[0]))]
            after = {3: "A"}
        case "unprompted":
            messages = [Spoken(1, 3, argue("A", findings[0]))]
            after = {3: "C"}
        case "idle":
            messages = [Spoken(1, 2, rng.choice(_IDLE))]
        case "echo":
            reasons[0] += f" After all, {_LONG}."
            messages = [Spoken(2, 3, f"Note that {_LONG}, and there is {findings[0]}.")]
        case "repetition":
            reasons[1] += f" After all, {_OTHER_LONG}."
            messages = [Spoken(2, 3, f"Note that {_OTHER_LONG}, and there is {findings[0]}.")]
    return Planted(
        number=number,
        kind=kind,
        first=(first[0], first[1], first[2]),
        decision=decision,
        analysis=f"{analysis} Thus {options[decision]}.",
        reasons=(reasons[0], reasons[1], reasons[2]),
        options=options,
        findings=findings,
        expected=Counter(expected),
        messages=tuple(messages),
        after=after,
        cause=0 if after else None,
    )


def write_questions(path: Path, planted: Iterable[Planted]) -> None:
    """Write the questions of planted debates as a data set."""
    lines = [json.dumps(each.question) for each in planted]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def play(provider: FakeProvider, planted: Iterable[Planted]) -> None:
    """Let a provider speak for the members of the teams of `TEAMS`."""
    by_number = {each.number: each for each in planted}

    def reply(request: SeenRequest) -> dict[str, Any]:
        found = re.search(r"Case (\d+)\.", request.text)
        assert found is not None, "every prompt holds the question"
        return _reply(by_number[int(found[1])], request.text, request.seed or 0)

    provider.when(None, reply)


def _reply(planted: Planted, prompt: str, seed: int) -> dict[str, Any]:
    if "organise exactly" in prompt:
        return {"teams": [_team(number, name) for number, name in enumerate(_TEAMS)]}
    if "Your task: choose exactly" in prompt:
        return {"experts": [_expert(role) for role in _ROLES]}
    if said := re.search(r"You are expert (\d) of 3\.\nYour task in round (\d), turn (\d)", prompt):
        return _participation(planted, *map(int, said.groups()))
    if said := re.search(r"You are expert (\d) of 3\.\nYour task: round", prompt):
        number = int(said[1])
        letter = planted.after.get(number, planted.first[number - 1])
        return _opinion(letter, f"So I say {planted.options[letter]}.")
    if said := re.search(r"You lead the ([^.,]+)", prompt):
        majority = max(planted.first, key=planted.first.count)
        number = [*range(3), planted.first.index(majority)][_TEAMS.index(said[1])]
        letter, reason = planted.first[number], planted.reasons[number]
        if "draw the conclusion" in prompt or "check each report" in prompt:
            return {"findings": reason, "answer": letter, "dissent": "none"}
        return {"instructions": "See what your specialty tells."}
    if said := re.search(r"You are Debater (\d)\.", prompt):
        number = int(said[1])
        letter = planted.after.get(number, planted.first[number - 1])
        return _opinion(letter, f"So I say {planted.options[letter]}.")
    if "Your role: reporter." in prompt:
        return {"findings": "The analyses differ in what they weigh most."}
    if "say whether you agree with it" in prompt:
        return {"objection": "none", "agrees": True}
    if re.search(r"Your role: (?:moderator|arbitrator|coordinator|decision maker)\.", prompt):
        return {"analysis": planted.analysis, "answer": planted.decision}
    if said := re.search(rf"Your role: ({'|'.join(_ROLES)})\.", prompt):
        if "findings" in prompt.rpartition("Reply in JSON")[2]:
            return {"findings": "Nothing in my specialty speaks against it."}
        number = _ROLES.index(said[1])
        return _opinion(planted.first[number], planted.reasons[number])
    if '"confidence": a number' in prompt:  # debaters without a role differ by their seeds
        number = seed // 10_000
        return _opinion(planted.first[number], planted.reasons[number])
    raise AssertionError(f"no reply is planted for: {prompt[-300:]}")


def _expert(role: str) -> dict[str, Any]:
    return {"role": role, "expertise": f"All that a {role} knows.", "reports_to": None}


def _team(number: int, name: str) -> dict[str, Any]:
    kinds = ("initial", "specialist", "specialist", "final_review")
    members = [
        {"role": role, "expertise": f"All that a {role} knows.", "lead": not place}
        for place, role in enumerate(_ROLES)
    ]
    return {
        "name": name,
        "purpose": "To judge the case.",
        "kind": kinds[number],
        "members": members,
    }


def _participation(planted: Planted, expert: int, round_: int, turn: int) -> dict[str, Any]:
    said = [
        {"to": message.recipient, "text": message.text}
        for message in planted.messages
        if (message.sender, round_, turn) == (expert, 1, 1)
    ]
    return {"reason": "As planned.", "participate": bool(said), "messages": said}


def _opinion(letter: str, reasoning: str) -> dict[str, Any]:
    return {"reasoning": reasoning, "answer": letter, "confidence": 0.7}
