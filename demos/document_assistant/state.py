"""The state that the graph passes from node to node, and the services of the nodes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from pydantic import BaseModel, Field

from demos.document_assistant.assistant_log import AssistantLog
from demos.document_assistant.library import Library
from demos.document_assistant.schemas import UserIntent

OnStep = Callable[[str], None]
"""Callback for short progress messages, such as `searching documents: march`."""


class MessageAnnotation(BaseModel):
    """One message of the conversation."""

    role: Literal["user", "assistant"]
    text: str
    intent_type: str = ""
    """For a message of the assistant: the intent of the message before it."""


class AgentState(BaseModel):
    """One turn. Each turn starts with a state of its own, made from what is stored of the session.

    So `actions_taken`, which nodes add to, holds the nodes of this turn and no other.
    """

    session_id: str
    user_id: str | None = None
    turn: int = 1
    """Number of the turn in its session, from 1."""
    user_input: str
    messages: list[MessageAnnotation] = Field(default_factory=list)
    """The last messages of the conversation; `update_memory` adds those of this turn."""
    intent: UserIntent | None = None
    next_step: str | None = None
    """The node that answers."""
    conversation_summary: str | None = None
    active_documents: list[str] = Field(default_factory=list)
    """Ids of the documents that the conversation has used, the latest last."""
    current_response: dict[str, Any] | None = None
    """The response as JSON; see `schemas.responses`."""
    tools_used: list[str] = Field(default_factory=list)
    """Names of the tools that were called in this turn, in their order."""
    actions_taken: Annotated[list[str], operator.add] = Field(default_factory=list)
    """Names of the nodes that have run in this turn."""


@dataclass(frozen=True, slots=True)
class Services:
    """Services of the nodes, which are not stored in checkpoints."""

    model: BaseChatModel
    library: Library
    tools: Sequence[BaseTool]
    """Tools of the session."""
    log: AssistantLog
    now: Callable[[], datetime]
    on_step: OnStep
