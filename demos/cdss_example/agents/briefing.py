"""The briefing of an agent, and the messages of a call to its model."""

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
"""Config for structured calls: it disables callbacks, because raw JSON is not the agent's text.
The node passes the text on in plain words."""

FORM = ConfigDict(frozen=True, json_schema_extra=lambda schema: schema.pop("description", None))
"""Model config of structured replies. It drops descriptions from the schema: the prompt explains
the fields, and small models copy sentences of the schema into their reply."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """A specialist's answer, or the reason why there is no answer."""

    node: str
    text: str
    failure: str = ""
    """Why the call failed; `text` is then empty."""

    @property
    def told(self) -> str:
        """Text of the opinion for the other agents' prompts."""
        if self.failure:
            return f"{self.node}: no opinion, the call failed ({self.failure})"
        return f"{self.node}: {self.text}"


@dataclass(frozen=True, slots=True)
class Briefing:
    """Current knowledge about a case, as an agent receives it."""

    case: str
    opinions: Sequence[Opinion] = ()
    running_summary: str = ""

    def fields(self) -> dict[str, str]:
        """Return the fields that every prompt shares."""
        told = "\n".join(opinion.told for opinion in self.opinions)
        return {"case": _framed(self.case), "opinions": _framed(told) or "none so far"}


def _framed(text: str) -> str:
    """Escape the tags that prompts put around data, so that the data cannot close them."""
    return _TAG.sub(r"(\1)", text)


def messages(system: str, user: str, **fields: object) -> list[BaseMessage]:
    """Return the messages of a call.

    Args:
        system: Name of the prompt file that defines the agent's role.
        user: Name of the prompt file that states the task.
        fields: Values for the placeholders of the user prompt.
    """
    return [SystemMessage(PROMPTS.text(system)), HumanMessage(PROMPTS.render(user, **fields))]
