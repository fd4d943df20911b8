"""The graph: which way a turn goes, what models are told, and what of their words is reported."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from demos.document_assistant.agents import MOST_ROUNDS
from demos.document_assistant.chat_prompts import (
    get_chat_prompt_template,
    get_intent_classification_prompt,
)
from demos.document_assistant.schemas import AnswerResponse, CalculationResponse, NoAnswer
from mdagents_llm.errors import EndpointDown
from tests.demos.document_assistant.conftest import Opens
from tests.fake_provider import FakeProvider, SeenRequest

SORTS = "You sort messages"
INTENT = {"confidence": 0.9, "reasoning": "so"}
ANSWER = {"name": "AnswerDraft", "args": {"answer": "Blue.", "confidence": 0.7}}
DONE = {"name": "CalculationDraft", "args": {"formula": "a + b", "confidence": 0.8}}


def calls(*made: dict[str, Any]) -> str:
    return json.dumps({"reply": {"tool_calls": list(made)}})


def calculates(expression: str) -> dict[str, Any]:
    return {"name": "calculator", "args": {"expression": expression}}


def has_results(request: SeenRequest) -> bool:
    return any(one.startswith('{"tool_results"') for one in request.messages)


def asked_again(request: SeenRequest) -> bool:
    return "Call the calculator now" in request.text


def sort_as(provider: FakeProvider, intent: str) -> None:
    provider.when(SORTS, {"intent_type": intent, **INTENT})


# -- the way --------------------------------------------------------------------------------------


@pytest.mark.parametrize("reply", ["no JSON at all", '{"intent_type": "lunch"}'])
async def test_an_unusable_intent_is_unknown_and_answered_like_a_question(
    opens: Opens, provider: FakeProvider, reply: str
) -> None:
    provider.when(SORTS, reply)
    provider.when(None, calls(ANSWER))
    async with opens() as assistant:
        answer = await assistant.process_message("Which colour?")
    assert answer.intent.intent_type == "unknown"
    assert answer.intent.confidence == 0
    assert answer.actions_taken == ["classify_intent", "qa_agent", "update_memory"]
    assert isinstance(answer.response, AnswerResponse)
    assert answer.response.sources == []
    assert answer.response.confidence == 0.3, "no document was read, whatever the model says"


async def test_a_failed_call_is_an_error_and_not_unknown(
    opens: Opens, provider: FakeProvider
) -> None:
    provider.fail_next("401")
    async with opens() as assistant:
        with pytest.raises(EndpointDown):
            await assistant.process_message("Which colour?", "s")
        assert (await assistant.get_session("s")).messages == []


@pytest.mark.sweep
async def test_the_classifier_sees_no_answer_and_no_document(
    opens: Opens, provider: FakeProvider
) -> None:
    sort_as(provider, "qa")
    provider.when(has_results, calls(ANSWER))
    provider.when(
        None, calls({"name": "document_reader", "args": {"document_id": "doc_fin_2025_march"}})
    )
    async with opens() as assistant:
        for question in ("Which colour?", "And why?"):
            await assistant.process_message(question, "s")
    sorting = [call for call in provider.calls if SORTS in call.text]
    answering = [call for call in provider.calls if has_results(call)]
    assert len(sorting) == 2
    assert "Which colour?" in sorting[1].text
    assert "Blue." not in sorting[1].text
    told = answering[0].messages[-1]
    assert "1,238,450" in told, "the document was read"
    assert "1,238,450" not in sorting[1].text
    assert any("Blue." in one and one.startswith("<document ") for one in answering[1].messages)


@pytest.mark.sweep
async def test_a_draft_that_comes_with_calls_waits_for_their_results(
    opens: Opens, provider: FakeProvider
) -> None:
    sort_as(provider, "qa")
    provider.when(has_results, calls(ANSWER))
    early = {"name": "AnswerDraft", "args": {"answer": "A guess.", "confidence": 1}}
    provider.when(None, calls({"name": "document_statistics", "args": {}}, early))
    async with opens() as assistant:
        answer = await assistant.process_message("Which colour?")
    assert answer.text == "Blue."
    assert answer.tools_used == ["document_statistics"]


@pytest.mark.sweep
async def test_the_loop_of_an_agent_is_bounded(opens: Opens, provider: FakeProvider) -> None:
    """The last reply can only be the draft, since nothing else is offered."""
    sort_as(provider, "qa")

    def never_done(request: SeenRequest) -> str:
        if "document_search" not in request.messages[0].partition("You can call these tools")[2]:
            return calls(ANSWER)
        return calls({"name": "document_search", "args": {"keyword": "colour"}})

    provider.when(None, never_done)
    async with opens() as assistant:
        answer = await assistant.process_message("Which colour?")
    assert len(provider.calls) == 1 + MOST_ROUNDS
    assert len(answer.tools_used) == MOST_ROUNDS - 1
    assert answer.text == "Blue."


@pytest.mark.sweep
async def test_an_agent_that_never_hands_in_a_draft_ends_the_turn(
    opens: Opens, provider: FakeProvider
) -> None:
    """A draft that has not the form does not count as one."""
    sort_as(provider, "qa")
    empty = {"name": "AnswerDraft", "args": {"answer": "", "confidence": 1}}
    provider.when(None, calls(empty))
    async with opens() as assistant:
        answer = await assistant.process_message("Which colour?")
    assert isinstance(answer.response, NoAnswer)
    assert len(provider.calls) <= 2 + 2 * MOST_ROUNDS


@pytest.mark.sweep
async def test_a_model_without_a_usable_answer_ends_the_turn(
    opens: Opens, provider: FakeProvider
) -> None:
    sort_as(provider, "summarization")
    provider.when(None, "I would rather talk about birds.")
    async with opens() as assistant:
        answer = await assistant.process_message("Summarize it", "s")
        assert isinstance(answer.response, NoAnswer)
        assert "no usable answer" in answer.response.reason
        assert len((await assistant.get_session("s")).messages) == 2


# -- numbers --------------------------------------------------------------------------------------


@pytest.mark.sweep
async def test_a_calculation_without_the_calculator_is_asked_for_once_more(
    opens: Opens, provider: FakeProvider
) -> None:
    sort_as(provider, "calculation")
    provider.when(has_results, calls(DONE))
    provider.when(asked_again, calls(calculates("3 + 4")))
    provider.when(None, calls(DONE))
    async with opens() as assistant:
        answer = await assistant.process_message("What is 3 + 4?")
    assert isinstance(answer.response, CalculationResponse)
    assert answer.response.result == Decimal(7)
    assert answer.response.sources == []
    assert sum(asked_again(call) for call in provider.calls) == 2


def told_to_look(request: SeenRequest) -> bool:
    return "Call document_search now" in request.text


@pytest.mark.sweep
async def test_an_answer_without_a_look_is_sent_back(opens: Opens, provider: FakeProvider) -> None:
    sort_as(provider, "qa")
    looks = {"name": "document_search", "args": {"keyword": "visiting hours"}}
    provider.when(has_results, calls(ANSWER))
    provider.when(told_to_look, calls(looks))
    provider.when(None, calls(ANSWER))
    async with opens() as assistant:
        answer = await assistant.process_message("Which colour?")
    assert isinstance(answer.response, AnswerResponse)
    assert list(answer.tools_used) == ["document_search"]
    assert "doc_policy_visitors" in answer.response.sources
    assert answer.response.confidence == 0.7


async def test_small_talk_needs_no_document(opens: Opens, provider: FakeProvider) -> None:
    sort_as(provider, "unknown")
    provider.when(None, calls(ANSWER))
    async with opens() as assistant:
        answer = await assistant.process_message("Thank you!")
    assert list(answer.tools_used) == []
    assert len(provider.calls) == 2, "its intent, and a reply"


async def test_no_calculation_no_number(opens: Opens, provider: FakeProvider) -> None:
    """The model insists on a wrong expression, and hands in a draft each time."""
    sort_as(provider, "calculation")
    provider.when(has_results, calls(DONE))
    provider.when(asked_again, calls(calculates("three plus four")))
    provider.when(None, calls(DONE))
    async with opens() as assistant:
        answer = await assistant.process_message("What is 3 + 4?")
    assert isinstance(answer.response, NoAnswer)
    assert answer.response.reason == "No calculation was made."


@pytest.mark.sweep
async def test_a_number_that_nobody_gave_is_not_calculated_with(
    opens: Opens, provider: FakeProvider
) -> None:
    sort_as(provider, "calculation")

    def stubborn(request: SeenRequest) -> str:
        must_calculate = (
            "AnswerDraft" not in request.text
            and 'CalculationDraft"'
            not in (request.messages[0].partition("You can call these tools")[2])
        )
        return calls(calculates("3 + 5871") if must_calculate else DONE)

    provider.when(has_results, stubborn)
    provider.when(None, calls(calculates("3 + 5871")))
    async with opens() as assistant:
        answer = await assistant.process_message("What is 3 + 4?")
    assert isinstance(answer.response, NoAnswer)
    assert "5871" in answer.response.reason
    assert answer.tools_used == ["calculator", "calculator"], "it was asked once more"


@pytest.mark.sweep
async def test_a_formula_with_a_number_of_its_own_is_not_reported(
    opens: Opens, provider: FakeProvider
) -> None:
    sort_as(provider, "calculation")
    boast = {"name": "CalculationDraft", "args": {"formula": "it is 999", "confidence": 1}}
    provider.when(has_results, calls(boast))
    provider.when(None, calls(calculates("3 + 4")))
    async with opens() as assistant:
        answer = await assistant.process_message("What is 3 + 4?")
    assert isinstance(answer.response, CalculationResponse)
    assert answer.response.formula == answer.response.expression == "3 + 4"


@pytest.mark.sweep
async def test_an_earlier_result_may_be_used(opens: Opens, provider: FakeProvider) -> None:
    sort_as(provider, "calculation")
    provider.when(has_results, calls(DONE))
    provider.when("take 6 from it", calls(calculates("1007 - 6")))
    provider.when(None, calls(calculates("1003 + 4")))
    async with opens() as assistant:
        await assistant.process_message("What is 1003 + 4?", "s")
        answer = await assistant.process_message("Now take 6 from it", "s")
    assert isinstance(answer.response, CalculationResponse)
    assert answer.response.result == Decimal(1001)


# -- prompts --------------------------------------------------------------------------------------


def test_prompts_take_any_text() -> None:
    odd = "{user_input} $x {0} %s {{"
    prompt = get_intent_classification_prompt().format(user_input=odd, conversation_history=odd)
    assert prompt.count(odd) == 2
    for intent in ("qa", "summarization", "calculation", "unknown"):
        template = get_chat_prompt_template(intent, active_documents=["doc_{x}"])
        system, question = template.format_messages(conversation_history=[], user_input=odd)
        assert "doc_{x}" in system.text
        assert question.text == odd


def test_the_calculation_prompt_says_what_the_seed_wants() -> None:
    system = get_chat_prompt_template("calculation").format_messages(
        conversation_history=[], user_input="?"
    )[0]
    assert "Always use the calculator" in system.text
    assert "which document" in system.text


def test_an_unknown_kind_of_prompt_is_an_error() -> None:
    with pytest.raises(ValueError, match="lunch"):
        get_chat_prompt_template("lunch")
