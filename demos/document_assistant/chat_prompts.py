"""The prompts of the nodes, whose texts are in `prompts/`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder

from demos.document_assistant.schemas import IntentType
from mdagents_llm.files.prompts import PromptFiles

PROMPTS = PromptFiles(Path(__file__).parent / "prompts")

QA_SYSTEM_PROMPT = PROMPTS.text("qa_system")
SUMMARIZATION_SYSTEM_PROMPT = PROMPTS.text("summarization_system")
CALCULATION_SYSTEM_PROMPT = PROMPTS.text("calculation_system")

_SYSTEM_PROMPTS = {
    IntentType.QA: QA_SYSTEM_PROMPT,
    IntentType.SUMMARIZATION: SUMMARIZATION_SYSTEM_PROMPT,
    IntentType.CALCULATION: CALCULATION_SYSTEM_PROMPT,
    IntentType.UNKNOWN: QA_SYSTEM_PROMPT,
}


def get_intent_classification_prompt() -> ChatPromptTemplate:
    """Return the prompt of `classify_intent`, with `user_input` and `conversation_history`.

    The history is a text with one message per line; it is empty at the start.
    """
    return ChatPromptTemplate(
        [
            ("system", PROMPTS.text("intent_system")),
            ("human", PROMPTS.text("intent_question")),
        ]
    )


def get_chat_prompt_template(
    intent_type: str, *, active_documents: Sequence[str] = ()
) -> ChatPromptTemplate:
    """Return the prompt of an agent, with `conversation_history` (messages) and `user_input`.

    Args:
        intent_type: Intent of the message, an `IntentType`; `unknown` is answered like a question.
        active_documents: Ids of documents that the conversation has used.

    Raises:
        ValueError: The intent is not known.
    """
    rules = "\n".join(
        [_SYSTEM_PROMPTS[IntentType(intent_type)], PROMPTS.text("documents_are_data")]
    )
    if active_documents:
        rules += "\n" + PROMPTS.render("active_documents", ids=", ".join(active_documents))
    return ChatPromptTemplate(
        [
            ("system", rules.replace("{", "{{").replace("}", "}}")),
            MessagesPlaceholder("conversation_history"),
            ("human", "{user_input}"),
        ]
    )
