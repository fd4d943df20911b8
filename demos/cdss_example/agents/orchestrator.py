"""The orchestrator: keeps the running summary, and says who is asked next."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from demos.cdss_example.agents.words import FORM, UNHEARD, Briefing, messages
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
    """Decides who is asked.

    Args:
        model: What it thinks with.
        limits: How long its texts may be.
        is_local: See `Limits.max_tokens`.
    """

    def __init__(self, model: ChatModelAdapter, limits: Limits, *, is_local: bool) -> None:
        self._limits = limits
        texts = 3
        sized = model.model_copy(update={"max_tokens": limits.max_tokens(texts, is_local=is_local)})
        self._model = sized.with_structured_output(Decision)

    async def decide(self, briefing: Briefing, specialists_left: int) -> Decision:
        """Say what is next.

        Args:
            briefing: What is known.
            specialists_left: How many more can be asked.

        Raises:
            BenchError: The model has given no decision.
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
