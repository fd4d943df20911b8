"""The orchestrator: keeps the running summary and chooses the next agent."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from demos.cdss_example.agents.briefing import FORM, UNHEARD, Briefing, messages
from demos.cdss_example.config import Limits
from mdagents_llm.langchain_model import ChatModelAdapter

Step = Literal["laboratory", "cardiology", "synthesis"]


class Decision(BaseModel):
    """What the orchestrator thinks, and what it wants next."""

    model_config = FORM

    running_summary: str
    reason: str
    next_step: Step
    question: str

    def as_text(self) -> str:
        """Return the decision in plain words."""
        asked = self.question.strip()
        what = f"Next, {self.next_step}: {asked}" if asked else f"Next: {self.next_step}."
        return "\n".join(filter(None, (self.running_summary.strip(), self.reason.strip(), what)))


class OrchestratorAgent:
    """Agent that chooses the next node and its question.

    Args:
        model: Chat model of the agent.
        limits: Length limits of its texts.
        is_local: Whether a grammar holds each text of the model to the limit of the call.
    """

    def __init__(self, model: ChatModelAdapter, limits: Limits, *, is_local: bool) -> None:
        self._limits = limits
        texts = 3
        sized = model.model_copy(update={"max_tokens": limits.max_tokens(texts, is_local=is_local)})
        self._model = sized.with_structured_output(Decision)

    async def decide(self, briefing: Briefing, specialists_left: int) -> Decision:
        """Choose the next step.

        Args:
            briefing: Current knowledge about the case.
            specialists_left: Number of times that a specialist can still be asked.

        Raises:
            BenchError: The model did not return a decision.
        """
        asked = messages(
            "orchestrator_system",
            "orchestrator_user",
            **briefing.fields(),
            running_summary=briefing.running_summary or "none",
            room=f"You may ask {specialists_left} more times."
            if specialists_left
            else "No specialist can be asked any more: next_step is synthesis.",
            words=self._limits.field_words,
        )
        decision = await self._model.ainvoke(asked, UNHEARD)
        assert isinstance(decision, Decision), "with_structured_output gives instances"
        return decision
