"""The nodes of the graph: each takes the state of a turn and returns its changes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.runtime import Runtime

from demos.document_assistant.agents import Drafted, ask_agent, last_calculation
from demos.document_assistant.assistant_log import Said
from demos.document_assistant.chat_prompts import (
    get_chat_prompt_template,
    get_intent_classification_prompt,
)
from demos.document_assistant.citations import cited
from demos.document_assistant.errors import NoUsableAnswerError
from demos.document_assistant.figures import only_figures_of
from demos.document_assistant.memory import remembered
from demos.document_assistant.schemas import (
    AnswerDraft,
    AnswerResponse,
    Calculation,
    CalculationDraft,
    CalculationResponse,
    IntentType,
    NoAnswer,
    Response,
    SummarizationResponse,
    SummaryDraft,
    UserIntent,
    responses,
    text_of,
)
from demos.document_assistant.state import AgentState, MessageAnnotation, Services
from demos.document_assistant.tools import ToolUse
from demos.toolkit.guard import untrusted

CLASSIFY, QA, SUMMARIZATION, CALCULATION, REMEMBER = (
    "classify_intent",
    "qa_agent",
    "summarization_agent",
    "calculation_agent",
    "update_memory",
)
AGENTS = {
    IntentType.QA: QA,
    IntentType.SUMMARIZATION: SUMMARIZATION,
    IntentType.CALCULATION: CALCULATION,
    IntentType.UNKNOWN: QA,
}
"""Intent -> node that answers."""

_TOLD = 8  # earlier messages in a prompt
_LONGEST_TOLD = 1500  # characters of an earlier message in a prompt
_WITHOUT_A_SOURCE = 0.3  # maximum confidence in an answer that uses no document
_SEARCH, _READ, _COUNT, _CALCULATE = (
    "document_search",
    "document_reader",
    "document_statistics",
    "calculator",
)
_TOOLS = {
    QA: (_SEARCH, _READ, _COUNT),
    SUMMARIZATION: (_SEARCH, _READ),
    CALCULATION: (_SEARCH, _READ, _COUNT, _CALCULATE),
}

Update = dict[str, Any]


async def classify_intent(state: AgentState, runtime: Runtime[Services]) -> Update:
    """Classify the user's intent. The prompt contains no text of a document."""
    services = runtime.context
    prompt = get_intent_classification_prompt().format_messages(
        user_input=state.user_input, conversation_history=_asked_before(state.messages)
    )
    services.log.info(CLASSIFY, state.session_id, prompt=Said(state.user_input))
    model = services.model.with_structured_output(UserIntent, include_raw=True)
    reply = await model.ainvoke(prompt)
    intent = _intent_of(reply)
    next_step = AGENTS[IntentType(intent.intent_type)]
    services.log.info(
        CLASSIFY, state.session_id, intent=intent.intent_type, confidence=intent.confidence
    )
    return {
        "intent": intent.model_dump(mode="json"),
        "next_step": next_step,
        "actions_taken": [CLASSIFY],
    }


def _intent_of(reply: Any) -> UserIntent:
    match reply:
        case {"parsed": UserIntent() as intent}:
            return intent
    return UserIntent(
        intent_type="unknown", confidence=0.0, reasoning="The model's reply had no usable form."
    )


def _asked_before(messages: Sequence[MessageAnnotation]) -> str:
    """Return the user's earlier messages and the kinds of the answers, without their text."""
    lines = [
        f"user: {one.text[:_LONGEST_TOLD]}"
        if one.role == "user"
        else f"assistant: (answered: {one.intent_type or 'qa'})"
        for one in messages[-_TOLD:]
    ]
    return "\n".join(lines) or "(none)"


def chosen_step(state: AgentState) -> str:
    """Return the name of the node that answers."""
    return state.next_step or QA


async def qa_agent(state: AgentState, runtime: Runtime[Services]) -> Update:
    """Answer a question with the help of documents."""

    def answer(drafted: Drafted, known: Mapping[str, Any]) -> Response:
        draft = AnswerDraft.model_validate(drafted.draft)
        return AnswerResponse(
            question=state.user_input,
            answer=draft.answer,
            confidence=_founded(draft.confidence, known["sources"]),
            **known,
        )

    return await _answered(state, runtime.context, QA, AnswerDraft, answer)


async def summarization_agent(state: AgentState, runtime: Runtime[Services]) -> Update:
    """Summarize documents."""

    def summary(drafted: Drafted, known: Mapping[str, Any]) -> Response:
        draft = SummaryDraft.model_validate(drafted.draft)
        return SummarizationResponse(
            summary=draft.summary,
            key_points=draft.key_points,
            confidence=_founded(draft.confidence, known["sources"]),
            **known,
        )

    return await _answered(state, runtime.context, SUMMARIZATION, SummaryDraft, summary)


async def calculation_agent(state: AgentState, runtime: Runtime[Services]) -> Update:
    """Calculate with numbers from the user and from documents."""

    def calculation(drafted: Drafted, known: Mapping[str, Any]) -> Response:
        draft = CalculationDraft.model_validate(drafted.draft)
        last = last_calculation(drafted.uses)
        assert last is not None, "without a calculation there is a problem"
        assert last.value is not None, "and of one without a result, too"
        steps = [
            Calculation(expression=use.expression, result=use.value)
            for use in drafted.uses
            if use.name == _CALCULATE and use.value is not None
        ]
        numbers = [last.expression, f"{last.value:f}"]
        return CalculationResponse(
            formula=draft.formula if only_figures_of(draft.formula, numbers) else last.expression,
            expression=last.expression,
            result=last.value,
            steps=steps,
            confidence=draft.confidence,
            **known,
        )

    return await _answered(state, runtime.context, CALCULATION, CalculationDraft, calculation)


def _founded(confidence: float, sources: Sequence[str]) -> float:
    """Return the model's confidence, limited if the answer uses no document."""
    return confidence if sources else min(confidence, _WITHOUT_A_SOURCE)


async def _answered(
    state: AgentState, services: Services, node: str, form: Any, make: Any
) -> Update:
    intent = state.intent.intent_type if state.intent else IntentType.UNKNOWN
    prompt = get_chat_prompt_template(intent, active_documents=state.active_documents)
    messages = prompt.format_messages(
        conversation_history=_conversation(state), user_input=state.user_input
    )
    tools = [tool for tool in services.tools if tool.name in _TOOLS[node]]
    uses: Sequence[ToolUse] = ()
    response: Response
    try:
        drafted = await ask_agent(
            services.model,
            tools,
            messages,
            form,
            name=node,
            required=_required(node, intent),
            on_step=services.on_step,
        )
        uses = drafted.uses
        if drafted.problem:
            raise NoUsableAnswerError(drafted.problem)
        response = make(drafted, {"sources": sources_of(uses), "timestamp": services.now()})
        found = [await services.library.document(id_, state.session_id) for id_ in response.sources]
        documents = [one for one in found if one]
        citations = await asyncio.to_thread(cited, text_of(response), documents)
        response = response.model_copy(update={"citations": citations})
    except NoUsableAnswerError as error:
        services.log.warning(node, state.session_id, problem=Said(error))
        response = NoAnswer(
            reason=str(error), sources=sources_of(uses), confidence=0.0, timestamp=services.now()
        )
    sources = sources_of(uses)
    services.log.info(
        node, state.session_id, retrieved_docs=sources, tools=[use.name for use in uses]
    )
    return {
        "current_response": responses.dump_python(response, mode="json"),
        "tools_used": [use.name for use in uses],
        "active_documents": [
            *(one for one in state.active_documents if one not in sources),
            *sources,
        ],
        "actions_taken": [node],
    }


def _required(node: str, intent: str) -> str:
    """Return the tool that an answer must use; empty for small talk."""
    if node == CALCULATION:
        return _CALCULATE
    return "" if intent == IntentType.UNKNOWN else _SEARCH


def _conversation(state: AgentState) -> list[BaseMessage]:
    """Return the latest messages. Answers may quote documents, so they are fenced as data."""
    earlier: list[BaseMessage] = []
    if len(state.messages) > _TOLD and state.conversation_summary:
        earlier = [HumanMessage(untrusted(state.conversation_summary, "the conversation so far"))]
    return earlier + [
        HumanMessage(one.text[:_LONGEST_TOLD])
        if one.role == "user"
        else AIMessage(untrusted(one.text, "an earlier answer", limit=_LONGEST_TOLD))
        for one in state.messages[-_TOLD:]
    ]


def sources_of(uses: Sequence[ToolUse]) -> list[str]:
    """Return the ids of the documents behind an answer: those read, or else those found.

    Only tool results count, not the model's claims about its sources.
    """
    read = [one for use in uses if use.name == _READ for one in use.documents]
    return list(dict.fromkeys(read or [one for use in uses for one in use.documents]))


async def update_memory(state: AgentState, runtime: Runtime[Services]) -> Update:
    """Add the turn to the session's memory, without calling a model."""
    response = responses.validate_python(state.current_response)
    asked = MessageAnnotation(role="user", text=state.user_input)
    intent = state.intent.intent_type if state.intent else ""
    answered = MessageAnnotation(role="assistant", text=text_of(response), intent_type=intent)
    memory = remembered(state, response)
    runtime.context.log.info(REMEMBER, state.session_id, active_documents=memory.active_documents)
    return {
        "messages": [one.model_dump() for one in [*state.messages, asked, answered]],
        "conversation_summary": memory.conversation_summary,
        "active_documents": memory.active_documents,
        "actions_taken": [REMEMBER],
    }
