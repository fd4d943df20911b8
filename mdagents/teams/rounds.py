"""Answers in rounds: all agents answer alone, then in view of all answers, until they agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mdagents.agents import replies
from mdagents.agents.agent import Agent
from mdagents.agents.case import Case
from mdagents.agents.events import Member, Recruited
from mdagents.agents.prompts import render
from mdagents.agents.replies import Opinion
from mdagents.datasets.questions import Question
from mdagents.settings import Peers, TeamSettings
from mdagents.teams.decision import Decision, Stated
from mdagents.teams.peers import defend, exchanged, noise


async def answers_in_rounds(
    case: Case,
    question: Question,
    settings: TeamSettings,
    agents: Sequence[Agent],
    *,
    again: str,
    with_confidence: bool,
) -> list[Stated]:
    """Let all agents answer in up to R rounds, all at once in each.

    The rounds end when all agree, because nobody would have anything to answer. An agent whose turn
    fails keeps its last answer; one that fails in the first round takes no further part.

    Args:
        case: Case in progress.
        question: Question to answer.
        settings: Numbers of the teams; R is `answer_rounds`.
        agents: Agents that answer.
        again: Name of the prompt from the second round on.
        with_confidence: Whether agents see how confident the others are.

    Returns:
        All answers, in the order of the rounds.

    Raises:
        ProviderError, StructuredOutputError: Nobody answered in the first round.
    """
    words, letters = settings.opinion_words, question.letters
    reply = replies.opinion(letters, words)
    case.tell(Recruited(tuple(Member(agent.id, agent.role) for agent in agents)))
    first = render("opinion", words=words, letters=letters)

    async def answer(agent: Agent) -> Opinion:
        return await agent.ask(first, reply, phase="opinion")

    answered = await case.ask_all(agents, "opinion", answer)
    taking_part = [agent for agent, _ in answered]
    stated = [Stated.by(agent, opinion) for agent, opinion in answered]
    defend(taking_part, question, settings.peers)
    for round_ in range(1, settings.answer_rounds):
        last = list({each.agent: each for each in stated}.values())
        if len({each.answer for each in last}) == 1:
            break
        phase = f"round-{round_}-update"
        show = _Answers(question, settings.peers, last, with_confidence)

        async def reconsider(agent: Agent, phase: str = phase, show: _Answers = show) -> Opinion:
            task = render(again, role=agent.role, words=words, letters=letters)
            return await agent.ask(task, reply, phase=phase, shared=show.to(agent))

        heard = await case.ask_all(taking_part, phase, reconsider, required=False)
        stated += [Stated.by(agent, opinion, round_) for agent, opinion in heard]
    return stated


def decided_by(
    vote: Callable[[Sequence[Stated]], Decision], stated: Sequence[Stated], peers: Peers
) -> Decision:
    """Return the decision of a vote on the last answers, or on the first with `fresh`.

    Args:
        vote: Makes a decision from answers.
        stated: All answers, in the order of the rounds.
        peers: What is shown.
    """
    counted = [each for each in stated if not each.round] if peers is Peers.FRESH else stated
    return replace(vote(counted), opinions=tuple(stated))


@dataclass(frozen=True, slots=True)
class _Answers:
    """The last answer of each agent, as the agents are shown them."""

    question: Question
    peers: Peers
    last: Sequence[Stated]
    with_confidence: bool

    def to(self, reader: Agent) -> str:
        """Return the answers, grouped by answer."""
        lines = [
            self._line(each, reader.id) for each in sorted(self.last, key=lambda each: each.answer)
        ]
        return "\n".join(["The answers so far:", *filter(None, lines)])

    def _line(self, each: Stated, reader: str) -> str:
        role, text, answer = each.role, each.reasoning, f" (answer {each.answer})"
        sure = f" (answer {each.answer}, confidence {each.confidence:g})"
        if self.with_confidence and (self.peers is not Peers.BLIND or each.agent == reader):
            answer = sure
        if each.agent != reader:
            match self.peers:
                case Peers.NONE:
                    return ""
                case Peers.NOISE:
                    key, answer = f"{each.agent} {each.round}", ""
                    text = noise(self.question.text, key, len(text))
                case Peers.SHUFFLED:
                    roles = {one.agent: one.role for one in self.last}
                    role = roles[exchanged(list(roles), reader)[each.agent]]
                case Peers.BLIND:
                    role = "Another"
        return f"- {role}{answer}: {text}"
