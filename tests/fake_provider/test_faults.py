"""Each fault of the fake provider, as the real SDKs see it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import openai
import pytest
from google.genai import errors, types
from pydantic import BaseModel, Field

from tests.fake_provider import FakeProvider, Fault, FaultPlan, Usage
from tests.fake_provider.conftest import Ask
from tests.fake_provider.faults import BILLED_FAULTS

PATIENCE = 0.5
"""Seconds until a client gives up on what hangs."""


class Opinion(BaseModel):
    answer: str
    confidence: float = Field(ge=0, le=1)


async def openai_deltas(ask: Ask, **options: Any) -> AsyncIterator[str]:
    async for chunk in await ask(schema=Opinion, stream=True, **options):
        for choice in chunk.choices:
            yield choice.delta.content or choice.delta.refusal or ""


async def gemini_deltas(ask: Ask, **config: Any) -> AsyncIterator[str]:
    async for chunk in await ask(schema=Opinion, stream=True, **config):
        yield chunk.text or ""


async def collect(stream: AsyncIterator[str], heard: list[str]) -> None:
    """Append all deltas; those that come before an error are there after it."""
    async for delta in stream:
        heard.append(delta)  # noqa: PERF401 - a comprehension would lose them


# -- errors with a status -----------------------------------------------------------------------

OPENAI_ERRORS: list[tuple[str, type[openai.APIStatusError], int, str | None]] = [
    ("429", openai.RateLimitError, 429, "rate_limit_exceeded"),
    ("quota", openai.RateLimitError, 429, "insufficient_quota"),
    ("401", openai.AuthenticationError, 401, "invalid_api_key"),
    ("api_key_invalid", openai.AuthenticationError, 401, "invalid_api_key"),
    ("404_model", openai.NotFoundError, 404, "model_not_found"),
    ("400_schema_unsupported", openai.BadRequestError, 400, None),
    ("context_length", openai.BadRequestError, 400, "context_length_exceeded"),
    ("500", openai.InternalServerError, 500, None),
    ("503", openai.InternalServerError, 503, None),
    ("529", openai.InternalServerError, 529, None),
    ("stream_error", openai.InternalServerError, 500, None),
]


@pytest.mark.parametrize(("kind", "error", "status", "code"), OPENAI_ERRORS)
async def test_openai_errors(
    provider: FakeProvider,
    ask_openai: Ask,
    kind: str,
    error: type[openai.APIStatusError],
    status: int,
    code: str | None,
) -> None:
    provider.fail_next(kind)
    with pytest.raises(error) as raised:
        await ask_openai(schema=Opinion)
    assert type(raised.value) is error
    assert (raised.value.status_code, raised.value.code) == (status, code)
    (call,) = provider.calls
    assert (call.outcome, call.status, call.usage, call.billed) == (kind, status, Usage(), False)
    assert provider.totals == Usage()
    await ask_openai(schema=Opinion)


GEMINI_ERRORS = [
    ("429", 429, "RESOURCE_EXHAUSTED", None),
    ("quota", 429, "RESOURCE_EXHAUSTED", "QuotaFailure"),
    ("401", 401, "UNAUTHENTICATED", None),
    ("api_key_invalid", 400, "INVALID_ARGUMENT", "ErrorInfo"),
    ("404_model", 404, "NOT_FOUND", None),
    ("400_schema_unsupported", 400, "INVALID_ARGUMENT", None),
    ("context_length", 400, "INVALID_ARGUMENT", None),
    ("500", 500, "INTERNAL", None),
    ("503", 503, "UNAVAILABLE", None),
    ("529", 529, "UNAVAILABLE", None),
    ("stream_error", 500, "INTERNAL", None),
]


@pytest.mark.parametrize(("kind", "code", "status", "detail"), GEMINI_ERRORS)
async def test_gemini_errors(
    provider: FakeProvider,
    ask_gemini: Ask,
    kind: str,
    code: int,
    status: str,
    detail: str | None,
) -> None:
    provider.fail_next(kind)
    with pytest.raises(errors.APIError) as raised:
        await ask_gemini(schema=Opinion)
    assert (raised.value.code, raised.value.status) == (code, status)
    details = raised.value.details["error"].get("details", [])
    kinds = [entry["@type"].rpartition(".")[2] for entry in details]
    assert kinds == ([detail] if detail else [])
    assert provider.outcomes == {kind: 1}


async def test_a_429_says_how_long_to_wait(
    provider: FakeProvider, ask_openai: Ask, ask_gemini: Ask
) -> None:
    provider.faults = FaultPlan({"429": 1}, retry_after=0.3)
    with pytest.raises(openai.RateLimitError) as raised:
        await ask_openai()
    assert raised.value.response.headers["retry-after"] == "0.3"
    with pytest.raises(errors.ClientError) as caught:
        await ask_gemini()
    assert caught.value.details["error"]["details"] == [
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.3s"}
    ]
    provider.faults = FaultPlan({"429": 1})
    with pytest.raises(openai.RateLimitError) as raised:
        await ask_openai()
    assert "retry-after" not in raised.value.response.headers


# -- broken connections and bodies --------------------------------------------------------------

Broken = tuple[str, type[Exception], type[Exception]]
BROKEN: list[Broken] = [
    ("reset", openai.APIConnectionError, httpx2.ReadError),
    ("hang", openai.APITimeoutError, httpx2.ReadTimeout),
    ("truncated_body", openai.APIConnectionError, httpx2.RemoteProtocolError),
    ("stall", openai.APITimeoutError, httpx2.ReadTimeout),
    ("malformed_json_body", json.JSONDecodeError, json.JSONDecodeError),
]


@pytest.mark.parametrize(("kind", "openai_error", "gemini_error"), BROKEN)
async def test_broken_replies(
    provider: FakeProvider,
    ask_openai: Ask,
    ask_gemini: Ask,
    kind: str,
    openai_error: type[Exception],
    gemini_error: type[Exception],
) -> None:
    # A first reply opens the connections, so that only the reply itself is waited for.
    await ask_openai(schema=Opinion)
    await ask_gemini(schema=Opinion)
    provider.fail_next(kind, times=2)
    patience = PATIENCE if kind in ("hang", "stall") else None
    with pytest.raises(openai_error):
        await ask_openai(schema=Opinion, timeout=patience)
    with pytest.raises(gemini_error):
        await ask_gemini(schema=Opinion, patience=patience)
    assert [call.outcome for call in provider.calls] == ["ok", "ok", kind, kind]
    assert provider.totals == provider.calls[0].usage + provider.calls[1].usage
    assert (await ask_openai(schema=Opinion)).choices, "later requests are served"


BROKEN_STREAMS: list[Broken] = [
    ("truncated_body", openai.APIConnectionError, httpx2.RemoteProtocolError),
    ("stall", openai.APITimeoutError, httpx2.ReadTimeout),
    ("stream_error", openai.APIError, errors.ServerError),
    ("malformed_json_body", json.JSONDecodeError, errors.UnknownApiResponseError),
]


@pytest.mark.parametrize(("kind", "openai_error", "gemini_error"), BROKEN_STREAMS)
async def test_streams_that_break_after_some_text(
    provider: FakeProvider,
    ask_openai: Ask,
    ask_gemini: Ask,
    kind: str,
    openai_error: type[Exception],
    gemini_error: type[Exception],
) -> None:
    await ask_openai(schema=Opinion)
    await ask_gemini(schema=Opinion)
    provider.fail_next(kind, times=2)
    patience = PATIENCE if kind == "stall" else None
    for stream, error in (
        (openai_deltas(ask_openai, timeout=patience), openai_error),
        (gemini_deltas(ask_gemini, patience=patience), gemini_error),
    ):
        heard: list[str] = []
        with pytest.raises(error):
            await collect(stream, heard)
        assert "".join(heard).startswith('{"answer": "')
        assert provider.calls[-1].reply == "".join(heard)
        assert provider.calls[-1].usage == Usage()


@pytest.mark.parametrize("kind", ["reset", "hang"])
async def test_streams_that_never_begin(provider: FakeProvider, ask_openai: Ask, kind: str) -> None:
    provider.fail_next(kind)
    with pytest.raises(openai.APIConnectionError):
        await anext(openai_deltas(ask_openai, timeout=PATIENCE))
    assert provider.calls[0].status == 0


async def test_a_hang_ends_with_the_connection(provider: FakeProvider, ask_openai: Ask) -> None:
    provider.faults = FaultPlan({"hang": 1}, hang_seconds=0)
    with pytest.raises(openai.APIConnectionError) as raised:
        await ask_openai()
    assert isinstance(raised.value.__cause__, httpx2.RemoteProtocolError)


# -- replies that are no answer -----------------------------------------------------------------


async def test_openai_replies_that_are_no_answer(provider: FakeProvider, ask_openai: Ask) -> None:
    provider.fail_next("empty")
    assert (await ask_openai(schema=Opinion)).choices == []

    provider.fail_next("refusal")
    (choice,) = (await ask_openai(schema=Opinion)).choices
    assert choice.message.content is None
    assert choice.message.refusal.startswith("I'm sorry")

    provider.fail_next("blocked")
    (choice,) = (await ask_openai(schema=Opinion)).choices
    assert (choice.finish_reason, choice.message.content) == ("content_filter", None)

    provider.fail_next("cut_off")
    (choice,) = (await ask_openai(schema=Opinion)).choices
    assert choice.finish_reason == "length"
    with pytest.raises(json.JSONDecodeError):
        json.loads(choice.message.content)

    provider.fail_next("invalid_schema")
    (choice,) = (await ask_openai(schema=Opinion)).choices
    assert json.loads(choice.message.content)
    with pytest.raises(ValueError, match="answer"):
        Opinion.model_validate_json(choice.message.content)

    provider.fail_next("fenced")
    (choice,) = (await ask_openai(schema=Opinion)).choices
    content = choice.message.content
    assert content.startswith("```json\n")
    assert content.endswith("\n```")
    Opinion.model_validate_json(content.removeprefix("```json\n").removesuffix("\n```"))

    assert {call.outcome for call in provider.calls} == BILLED_FAULTS
    assert all(call.billed for call in provider.calls)


async def test_gemini_replies_that_are_no_answer(provider: FakeProvider, ask_gemini: Ask) -> None:
    provider.fail_next("empty")
    assert (await ask_gemini(schema=Opinion)).candidates == []

    provider.fail_next("refusal")
    response = await ask_gemini(schema=Opinion)
    assert response.text is None
    assert response.candidates is not None
    assert response.candidates[0].finish_reason is types.FinishReason.SAFETY
    assert response.candidates[0].content is None

    provider.fail_next("blocked")
    response = await ask_gemini(schema=Opinion)
    assert response.candidates is None
    assert response.prompt_feedback is not None
    assert response.prompt_feedback.block_reason is types.BlockedReason.PROHIBITED_CONTENT

    provider.fail_next("cut_off")
    response = await ask_gemini(schema=Opinion)
    assert response.candidates is not None
    assert response.candidates[0].finish_reason is types.FinishReason.MAX_TOKENS
    assert response.text


async def test_streamed_replies_that_are_no_answer(
    provider: FakeProvider, ask_openai: Ask, ask_gemini: Ask
) -> None:
    heard: dict[str, list[str]] = {}
    for kind in ("empty", "refusal", "blocked", "cut_off"):
        provider.fail_next(kind, times=2)
        heard[kind] = [
            "".join([delta async for delta in openai_deltas(ask_openai)]),
            "".join([delta async for delta in gemini_deltas(ask_gemini)]),
        ]
    assert heard["empty"] == heard["blocked"] == ["", ""]
    assert heard["refusal"][0].startswith("I'm sorry")
    assert heard["refusal"][1] == ""
    assert all(text.startswith('{"answer": "') for text in heard["cut_off"])


# -- who is hit ---------------------------------------------------------------------------------


async def test_scripted_faults_hit_matching_requests_in_turn(
    provider: FakeProvider, ask_openai: Ask
) -> None:
    provider.fail_next("500", times=2, match="Moderator")
    provider.fail_next("429")
    outcomes = []
    for question in ("Expert", "Moderator", "Expert", "Moderator", "Moderator"):
        try:
            await ask_openai(question)
        except openai.APIStatusError as error:
            outcomes.append(error.status_code)
        else:
            outcomes.append(200)
    assert outcomes == [429, 500, 200, 500, 200]


async def test_schema_faults_spare_free_text(provider: FakeProvider, ask_openai: Ask) -> None:
    provider.faults = FaultPlan({"fenced": 0.5, "invalid_schema": 0.5})
    provider.fail_next("400_schema_unsupported")
    await ask_openai(response_format={"type": "text"})
    with pytest.raises(openai.BadRequestError):
        await ask_openai(schema=Opinion)
    assert [call.outcome for call in provider.calls] == ["ok", "400_schema_unsupported"]


def test_the_plan_deals_faults_by_seed_and_arrival() -> None:
    plan = FaultPlan({"429": 0.2, "reset": 0.1, "fenced": 0.05})
    dealt = [plan.draw(0, arrival) for arrival in range(4000)]
    assert dealt == [plan.draw(0, arrival) for arrival in range(4000)]
    assert dealt != [plan.draw(1, arrival) for arrival in range(4000)]
    assert dealt.count(Fault.RATE_LIMIT) == pytest.approx(800, rel=0.15)
    assert dealt.count(Fault.RESET) == pytest.approx(400, rel=0.15)
    assert dealt.count(Fault.FENCED) == pytest.approx(200, rel=0.25)
    assert set(dealt) == {None, Fault.RATE_LIMIT, Fault.RESET, Fault.FENCED}


@pytest.mark.parametrize("rates", [{"429": -0.1}, {"429": 0.6, "500": 0.6}])
def test_a_plan_that_does_not_add_up_is_refused(rates: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="at most 1"):
        FaultPlan(rates)


def test_an_unknown_kind_of_fault_is_refused(provider: FakeProvider) -> None:
    with pytest.raises(ValueError, match="418"):
        provider.fail_next("418")
    with pytest.raises(ValueError, match="418"):
        FaultPlan({"418": 0.1})
