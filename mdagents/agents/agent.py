"""An agent: a role, a persona, an opinion, an inbox, and a model to think with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeVar

from exaid_core.trace.bus import TraceBus
from mdagents.agents.events import DebateMessage, Observer, TurnBegan, TurnEnded, unobserved
from mdagents.agents.prompts import render
from mdagents.agents.replies import Opinion, Reply
from mdagents.agents.streaming import ANSWER, StreamedTurn
from mdagents_llm.chat import CallLabels, ChatMessage, ChatModel, ChatRequest
from mdagents_llm.json_schema import token_limit
from mdagents_llm.pictures import Picture

R = TypeVar("R", bound=Reply)

_BREAK = "\n\n"


@dataclass(eq=False, slots=True)
class Agent:
    """One member of a team while it works on one case.

    An agent has no chat history: each prompt holds everything that its turn needs, so that the
    tokens of a case grow with the number of its calls and not with their square.
    """

    id: str
    """Id, unique within the case, for example `expert-2-cardiologist`."""
    role: str
    """Name for readers, for example `Cardiologist`."""
    model: ChatModel
    model_role: str
    """Role that chose the model, used as a label of its calls."""
    case_id: str
    question_block: str
    """Question and options, with which every prompt of the case begins."""
    options: Mapping[str, str]
    """Letter in the question block -> text of the option."""
    temperature: float
    seed: int
    bus: TraceBus
    """Bus on which the agent's text is published."""
    tell: Observer = unobserved
    """Observer to notify when the agent's turns begin and end."""
    repeat: int = 0
    """Index of the repetition (epoch) of the case, from 0."""
    system: str = "system"
    """Name of the prompt that states the purpose of all calls of the case."""
    exemplars: str = ""
    """Solved questions, shown before the question; empty except for few-shot."""
    letters: Mapping[str, str] = field(default_factory=dict)
    """Letter in the question block -> letter of the case; empty when they are the same. Events and
    replies of the agent use the letters of the case."""
    persona: str = ""
    """Text that states who the agent is; empty when the task does so itself."""
    pictures: tuple[Picture, ...] = ()
    """Pictures of the question that the agent sees; they stand before the question."""
    opinion: Opinion | None = None
    inbox: list[DebateMessage] = field(default_factory=list)
    """Messages that the agent has not read yet."""

    async def ask(self, task: str, reply: type[R], *, phase: str, shared: str = "") -> R:
        """Take one turn: one model call, and one re-ask if the reply does not validate.

        The turn is published on the bus and to observers, which has no effect on the reply.

        Args:
            task: Part of the prompt for this agent only, including the form of the reply.
            reply: Form of the reply.
            phase: Step of the protocol, used as a label of the call.
            shared: Part of the prompt for all agents at this point; it precedes persona and task,
                so that prompt caches hit across the agents of a case.

        Raises:
            ProviderError: The endpoint gave no usable reply.
            StructuredOutputError: The reply does not validate.
        """
        self.tell(TurnBegan(self.id, self.role, phase))
        turn = StreamedTurn(self.bus, self.id, reply, self.letters)
        try:
            answer = self._in_letters_of_case(
                await self._generate(task, reply, phase, shared, turn)
            )
        except BaseException:
            turn.end()
            self.tell(TurnEnded(self.id, phase, failed=True))
            raise
        turn.end(answer)
        letter, confidence = getattr(answer, ANSWER, None), getattr(answer, "confidence", None)
        self.tell(TurnEnded(self.id, phase, answer=letter, confidence=confidence))
        return answer

    async def _generate(
        self, task: str, reply: type[R], phase: str, shared: str, turn: StreamedTurn
    ) -> R:
        question = f"Question:\n{self.question_block}"
        parts = [part for part in (self.exemplars, question, shared) if part]
        beginnings = accumulate(len(part) + len(_BREAK) for part in parts)
        prompt = _BREAK.join(part for part in (*parts, self.persona, task) if part)
        user = ChatMessage(
            "user",
            prompt,
            shared=tuple(beginnings),
            pictures=self.pictures,
            pictures_at=len(self.exemplars) + len(_BREAK) if self.exemplars else 0,
        )
        answer = await self.model.generate(
            ChatRequest(
                messages=(ChatMessage("system", render(self.system)), user),
                max_tokens=token_limit(reply),
                temperature=self.temperature,
                seed=self.seed,
                repeat=self.repeat,
                schema=reply,
                options=self.options,
                labels=CallLabels(self.case_id, phase, self.id, self.model_role),
            ),
            turn.take if self.bus.wants_text else None,
        )
        assert isinstance(answer.parsed, reply), "Structured returns what the schema says"
        return answer.parsed

    def _in_letters_of_case(self, answer: R) -> R:
        letter = self.letters.get(getattr(answer, ANSWER, ""))
        return answer if letter is None else answer.model_copy(update={ANSWER: letter})

    def read_inbox(self) -> list[DebateMessage]:
        """Return the unread messages and mark them as read."""
        unread, self.inbox = self.inbox, []
        return unread
