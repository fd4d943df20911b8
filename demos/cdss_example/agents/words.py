"""What an agent is told of the others, and how a call to its model is put."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from pydantic import ConfigDict

from demos.cdss_example.prompts import PROMPTS

_TAG = re.compile(r"<\s*/?\s*(case|opinions)\s*>", re.IGNORECASE)

UNHEARD: RunnableConfig = {"callbacks": []}
"""For a structured call: its JSON is not what an agent says. Its node says it in plain words."""

FORM = ConfigDict(frozen=True, json_schema_extra=lambda schema: schema.pop("description", None))
"""Of the forms of replies: the prompt says what the fields are. Sentences in the schema would be
what a small model writes into them."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a specialist has answered, or that it has not."""

    node: str
    text: str
    failure: str = ""
    """Why there is no answer; the text is empty then."""

    @property
    def told(self) -> str:
        """What the other agents read."""
        if self.failure:
            return f"{self.node}: no opinion, the call failed ({self.failure})"
        return f"{self.node}: {self.text}"


@dataclass(frozen=True, slots=True)
class Briefing:
    """What is known of a case when an agent is asked."""

    case: str
    opinions: Sequence[Opinion] = ()
    running_summary: str = ""

    def fields(self) -> dict[str, str]:
        """Return what every prompt has."""
        told = "\n".join(opinion.told for opinion in self.opinions)
        return {"case": _framed(self.case), "opinions": _framed(told) or "none so far"}


def _framed(text: str) -> str:
    """Return data that cannot end the tags which a prompt has around it."""
    return _TAG.sub(r"(\1)", text)


def messages(system: str, user: str, **fields: object) -> list[BaseMessage]:
    """Return the messages of a call.

    Args:
        system: Name of the prompt file that says who the agent is.
        user: Name of the one that says what it is asked.
        fields: Of the latter.
    """
    return [SystemMessage(PROMPTS.text(system)), HumanMessage(PROMPTS.render(user, **fields))]
