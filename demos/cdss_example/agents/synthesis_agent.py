"""The synthesis: writes the recommendation as structured fields."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from demos.cdss_example.agents.briefing import FORM, UNHEARD, Briefing, messages
from demos.cdss_example.config import Limits
from mdagents_llm.langchain_model import ChatModelAdapter

_LABELS = {
    "urgency": "Urgency",
    "assessment": "Assessment",
    "action": "Action",
    "evidence": "Evidence",
    "uncertainty": "Uncertainty",
    "safety_net": "Safety net",
}
"""Field -> label, in reading order."""
_LIMIT = (
    "The number of steps ran out: the coordinator wanted to ask {} once more. "
    "Say under uncertainty that this is open."
)


class Recommendation(BaseModel):
    """What the physician who decides reads."""

    model_config = FORM

    assessment: str
    action: str
    urgency: Literal["emergency", "urgent", "routine"]
    evidence: str
    uncertainty: str
    safety_net: str

    def by_field(self) -> dict[str, str]:
        """Return the fields by name, each on one line, in the order in which they are read."""
        return {name: " ".join(getattr(self, name).split()) for name in _LABELS}

    def as_text(self) -> str:
        """Return all fields as one text, a line each."""
        said = self.by_field().items()
        return "\n".join(f"{_LABELS[name]}: {text}" for name, text in said if text)


class SynthesisAgent:
    """Agent that writes the recommendation.

    Args:
        model: Chat model of the agent.
        limits: Length limits of its texts.
        is_local: Whether a grammar holds each text of the model to the limit of the call.
    """

    def __init__(self, model: ChatModelAdapter, limits: Limits, *, is_local: bool) -> None:
        self._limits = limits
        texts = 5
        sized = model.model_copy(update={"max_tokens": limits.max_tokens(texts, is_local=is_local)})
        self._model = sized.with_structured_output(Recommendation)

    async def recommend(self, briefing: Briefing, asked_at_the_limit: str = "") -> Recommendation:
        """Write the recommendation.

        Args:
            briefing: Current knowledge about the case.
            asked_at_the_limit: Specialist that could no longer be asked; empty if none.

        Raises:
            BenchError: The model did not return a recommendation.
        """
        asked = messages(
            "synthesis_system",
            "synthesis_user",
            **briefing.fields(),
            running_summary=briefing.running_summary or "none",
            limit=_LIMIT.format(asked_at_the_limit) if asked_at_the_limit else "",
            words=self._limits.field_words,
        )
        recommendation = await self._model.ainvoke(asked, UNHEARD)
        assert isinstance(recommendation, Recommendation), "with_structured_output gives instances"
        return recommendation
