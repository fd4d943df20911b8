"""What experts see of each other after their first opinions: all, or a control that shows less.

First opinions are the same in every control, so that their calls can come from the cache, and a
control differs from the run without it only in what is said after them.

Sources: `none` and `noise` follow Bertalanič and Fortuna (2026), arXiv 2605.00914; `blind` Choi et
al. (2025), arXiv 2510.07517; `none` as a measure of unprompted change also arXiv 2606.00820.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from itertools import cycle
from pathlib import Path

from mdagents.agents.agent import Agent
from mdagents.agents.events import DebateMessage
from mdagents.agents.prompts import render
from mdagents.datasets.questions import Question
from mdagents.settings import Peers
from mdagents.teams.clipping import clip
from mdagents.teams.decision import Stated

_DEBATES = Path(__file__).parent.parent / "examples"
"""Debates about ten questions, which come with the program."""
_SOMEONE = "An expert"


@dataclass(frozen=True, slots=True)
class PeerView:
    """How the members of a panel appear to each other and to the decision-maker.

    Args:
        peers: What is shown.
        question: The question that they work on.
        names: Agent -> name in prompts, such as `Expert 2`.
        roles: Agent -> role.
    """

    peers: Peers
    question: Question
    names: Mapping[str, str]
    roles: Mapping[str, str]

    def opinion(self, stated: Stated, reader: str = "", *, addressed: bool = False) -> str:
        """Return the line that shows an opinion to a reader.

        Args:
            stated: The opinion.
            reader: Agent who reads it; empty: the decision-maker.
            addressed: Whether the reader must know whom to write to.
        """
        of, sure = stated.agent, f", confidence {stated.confidence:g}"
        name, role = self.name(of, reader), f" ({self.roles[self._shown_as(of, reader)]})"
        text, answer = stated.reasoning, f" (answer {stated.answer}{sure})"
        if of != reader and self.peers is Peers.NOISE and reader:
            text, answer = noise(self.question.text, f"{of} {stated.round}", len(text)), ""
        elif of != reader and self.peers is Peers.BLIND:
            name, role = self.names[of] if addressed else _SOMEONE, ""
            answer = f" (answer {stated.answer})"
        return f"- {name}{role}: {text}{answer}"

    def name(self, agent: str, reader: str = "") -> str:
        """Return the name under which an agent appears to a reader; empty: the decision-maker."""
        if self.peers is Peers.BLIND and agent != reader:
            return _SOMEONE
        return self.names[self._shown_as(agent, reader)]

    def message(self, message: DebateMessage) -> DebateMessage:
        """Return a message as its recipient receives it."""
        if self.peers is not Peers.NOISE:
            return message
        key = f"{message.sender} {message.round} {message.turn} {message.recipient}"
        return replace(message, text=noise(self.question.text, key, len(message.text)))

    def _shown_as(self, agent: str, reader: str) -> str:
        if self.peers is not Peers.SHUFFLED:
            return agent
        return exchanged(list(self.names), reader)[agent]


def exchanged(agents: Sequence[str], reader: str) -> dict[str, str]:
    """Return each agent -> the one under whose name its words appear to a reader.

    The others' names are exchanged in a circle; the reader, and a single other, keep theirs.
    """
    others = [agent for agent in agents if agent != reader]
    return {agent: agent for agent in agents} | dict(
        zip(others, [*others[1:], *others[:1]], strict=True)
    )


def noise(question: str, key: str, length: int) -> str:
    """Return words about other questions, of the length of those that they replace.

    Args:
        question: Text of the question, about which none of the words are.
        key: What is replaced; each key gives other words.
        length: Length in characters.
    """
    texts = [text for about, text in _debates() if about != question]
    start = int.from_bytes(sha256(f"{question}\n{key}".encode()).digest()[:4]) % len(texts)
    words = ""
    for text in cycle([*texts[start:], *texts[:start]]):
        if len(words) > length:
            break
        words = f"{words} {text}".strip()
    return clip(words, max(length, 1))


def noise_sha256() -> str:
    """Return the SHA-256 of all words that `noise` can give; part of a run's identity."""
    return sha256(json.dumps(_debates()).encode()).hexdigest()


@cache
def _debates() -> tuple[tuple[str, str], ...]:
    """Return (question, message or opinion) of the debates that come with the program."""
    (samples,) = _DEBATES.glob("*/samples.jsonl")
    records = map(json.loads, samples.read_text(encoding="utf-8").splitlines())
    return tuple(
        (record["question"], text)
        for record in records
        for text in (
            *(message["text"] for message in record["interactions"]),
            *(stated["reasoning"] for stated in record["opinions"]),
        )
    )


def defend(agents: Sequence[Agent], question: Question, peers: Peers) -> None:
    """With `devil`, tell one of the agents to defend a wrong option from now on.

    Agent and option depend on the question alone. Without a known right option, any may be the one.

    Args:
        agents: Agents who have stated their first opinions.
        question: Question that they work on.
        peers: The control.
    """
    if peers is not Peers.DEVIL or not agents:
        return
    right: Collection[str] = question.right_letters([]) if question.gold else ()
    wrong = [letter for letter in question.options if letter not in right]
    if not wrong:
        return
    number = int.from_bytes(sha256(f"devil\n{question.text}".encode()).digest()[:4])
    letter, devil = wrong[number % len(wrong)], agents[number // 64 % len(agents)]
    told = render("peers/devil", letter=letter, text=question.options[letter].strip(" ."))
    devil.persona = f"{devil.persona}\n\n{told}".strip()
