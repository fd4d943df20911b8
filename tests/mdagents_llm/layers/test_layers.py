"""The layers around a provider: structured replies, retries, the gate, the ledger."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from mdagents_llm.chat import (
    ChatMessage,
    ChatModel,
    ChatReply,
    ChatRequest,
    OnText,
    StopReason,
    TokenUsage,
)
from mdagents_llm.clock import Clock
from mdagents_llm.errors import (
    BenchError,
    EndpointDown,
    ErrorKind,
    ProviderError,
    StorageError,
    StructuredOutputError,
)
from mdagents_llm.layers.attempt import Attempt
from mdagents_llm.layers.retry import Retry, RetryPolicy, Wait
from mdagents_llm.layers.structured import Structured
from mdagents_llm.layers.transit import in_transit
from mdagents_llm.ledger import CallRow, Ledger, Price, Totals
from tests.support.function_model import FunctionModel, text_reply
from tests.support.virtual_time import VirtualTimeLoop, virtual_time


class Choice(BaseModel):
    answer: Literal["A", "B"]


REQUEST = ChatRequest(messages=(ChatMessage("user", "A or B?"),), max_tokens=50, schema=Choice)
TIMEOUT = 0.01  # seconds of an attempt


def in_turn(*replies: str | ChatReply | ProviderError) -> FunctionModel:
    """A model that gives these replies one after the other."""
    left: Iterator[str | ChatReply | ProviderError] = iter(replies)

    def answer(request: ChatRequest) -> str | ChatReply:
        reply = next(left)
        if isinstance(reply, ProviderError):
            raise reply
        return reply

    return FunctionModel(answer)


@pytest.mark.parametrize(
    "text",
    [
        '{"answer": "B"}',
        '```json\n{"answer": "B"}\n```',
        'Here is my reply:\n{"answer": "B",}\nThank you.',
        "{'answer': 'B'}",
        '{"answer": "B"',
        '<think>maybe {"answer": "A"}</think>{"answer": "B"}',
        '```json\n{"answer": "B"\n```',
        '{"answer": "B"\nI hope that this helps.',
        # keys in another spelling (jaseci-labs/jac 7442)
        '{"Answer": "B"}',
        '{"ANSWER ": "B"}',
        # the values in place of their schemas (dotnet/extensions 5927)
        '{"$schema": "x", "type": "object", "properties": {"answer": "B"}, "required": ["answer"]}',
        '{"properties": {"Answer": "B"}}',
        # below the name of the schema
        '{"Choice": {"answer": "B"}}',
        '```json\n{"choice": {"ANSWER": "B"}}\n```',
    ],
)
async def test_what_is_almost_json_is_repaired_without_a_call(text: str) -> None:
    model = in_turn(text)
    reply = await Structured(model).generate(REQUEST)
    assert reply.parsed == Choice(answer="B")
    assert len(model.requests) == 1


class Remark(BaseModel):
    text: str


@pytest.mark.parametrize("around", ["{}", "```json\n{}\n```"])
@pytest.mark.parametrize("text", [r"\beta-blocker", r"5 \times 10 \text{ mg}"])
async def test_latex_keeps_its_backslash(text: str, around: str) -> None:
    model = in_turn(around.format(f'{{"text": "{text}"}}'))
    reply = await Structured(model).generate(replace(REQUEST, schema=Remark))
    assert reply.parsed == Remark(text=text)


class Answer(BaseModel):
    answer: Literal["A", "B"]


async def test_a_field_may_be_named_as_its_schema() -> None:
    model = in_turn('{"ANSWER": "B",}')
    reply = await Structured(model).generate(replace(REQUEST, schema=Answer))
    assert reply.parsed == Answer(answer="B")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I choose B.",
        '{"answer": "E"}',
        '{"answer": "A"} {"answer": "B"}',
        "[]",
        "null",
        '{"answer": ' + "[" * 900,
        '{"answer": ' + "[" * 30_000,
        '{"answer": "B", "Answer": "A"} {}',
        '{"Answer": "B", "ANSWER": "B"}',
        # Another answer in braces; what they hold is not read.
        'The set {A, B}: {"answer": "B"}',
        '{"answer": "B"} \\boxed{A}',
        '{"answer": "B"} Correction: {answer B is wrong, A}',
        '{"answer (final)": "B"}',
        '{"a": 1} {"answer": "B"}',
        '{"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}',
        '{"properties": {"answer": {"enum": ["A", "B"]}}}',
        '{"Choice": {"answer": "B"}, "Correction": {"answer": "A"}}',
        '{"Rejected": {"answer": "B"}}',
    ],
)
async def test_what_does_not_validate_is_asked_again_once_with_the_reason(text: str) -> None:
    model = in_turn(text, '{"answer": "A"}')
    reply = await Structured(model).generate(REQUEST)
    assert reply.parsed == Choice(answer="A")
    assert reply.usage == TokenUsage(20, 10)
    assert [message.role for message in model.requests[1].messages] == ["user", "assistant", "user"]
    assert "cannot be used" in model.requests[1].messages[-1].content


DRUGS = replace(REQUEST, options={"A": "Aspirin", "B": "Heparin"})


@pytest.mark.parametrize(
    "behind",
    [
        "Correction: the answer is A.",
        "\n```\nWait, the correct answer is A.",
        "I change my answer to A.",
        "Scratch that.",
        "The answer is not B.",
        "Answer: A or B",
    ],
)
async def test_an_answer_that_is_corrected_behind_its_object_is_asked_again(behind: str) -> None:
    model = in_turn(f'{{"answer": "B"}} {behind}', '{"answer": "A"}')
    assert (await Structured(model).generate(DRUGS)).parsed == Choice(answer="A")
    assert "changes its answer" in model.requests[1].messages[-1].content


@pytest.mark.parametrize(
    "behind",
    [
        "I hope that this helps.",
        "The answer is B.",
        "Expert 2 says the answer is A.",
        "A and B were close.",
        "Actually, heparin acts at once.",
        "The answer is A in children, but she is an adult.",
    ],
)
async def test_other_text_behind_an_object_corrects_nothing(behind: str) -> None:
    model = in_turn(f'{{"answer": "B"}} {behind}')
    assert (await Structured(model).generate(DRUGS)).parsed == Choice(answer="B")


class Choices(BaseModel):
    answer: list[str]


@pytest.mark.parametrize("options", [{}, DRUGS.options])
async def test_text_may_follow_an_answer_that_is_a_list(options: dict[str, str]) -> None:
    model = in_turn('{"answer": ["A", "B"]} I hope that this helps.')
    reply = await Structured(model).generate(replace(REQUEST, schema=Choices, options=options))
    assert reply.parsed == Choices(answer=["A", "B"])


class Advice(BaseModel):
    urgent: bool
    dose: float
    text: str


@pytest.mark.parametrize(
    "text",
    [
        '{"urgent": true, "text": "Give it.", "dose": 0.',
        '{"urgent": true, "text": "Give it.", "dose": 10',
        '{"text": "Give it.", "dose": 10, "urgent": tru',
        '{"urgent": true, "dose": 10, "text": "Do not give beta blockers unle',
        '{"urgent": true, "dose": 10, "text": "Ask for \\"him\\"',
        '{"urgent": true, "dose": 10, "text": "',
        "{'urgent': true, 'dose': 10, 'text': 'Do not",
        "{'urgent': true, 'dose': 10, 'text': 'It is not true",
        '{"urgent": true, "dose": 10, "text": ["Give it."',
        '{"urgent": true, "text": "Give it.", "dose": {"mg": 10',
    ],
)
async def test_a_reply_that_breaks_off_within_a_value_is_asked_again(text: str) -> None:
    """Its endpoint says that it is whole (juspay/neurolink 1709, mastra-ai/mastra 24442)."""
    whole = '{"urgent": true, "dose": 0.5, "text": "Give it."}'
    request = replace(REQUEST, schema=Advice)
    model = in_turn(text, whole)
    reply = await Structured(model).generate(request)
    assert reply.parsed == Advice.model_validate_json(whole)
    assert len(model.requests) == 2


@pytest.mark.parametrize("end", ["", "\n", ",", " }", "\n```"])
@pytest.mark.parametrize(
    "text",
    [
        '{"dose": 10, "text": "Give \\"it\\".", "urgent": true',
        '{"dose": 10, "urgent": true, "text": "Give \\"it\\"."',
        '{"urgent": true, "text": "Give \\"it\\".", "dose": 10 ',
    ],
)
async def test_a_reply_that_breaks_off_after_a_value_is_repaired(text: str, end: str) -> None:
    model = in_turn(text + end)
    reply = await Structured(model).generate(replace(REQUEST, schema=Advice))
    assert reply.parsed == Advice(urgent=True, dose=10, text='Give "it".')
    assert len(model.requests) == 1


async def test_there_is_no_second_re_ask() -> None:
    model = in_turn("no", "no", '{"answer": "A"}')
    with pytest.raises(StructuredOutputError) as caught:
        await Structured(model).generate(REQUEST)
    assert caught.value.text == "no"
    assert caught.value.usage == TokenUsage(20, 10)
    assert len(model.requests) == 2


async def test_a_cut_off_reply_is_not_taken_even_if_it_validates() -> None:
    cut = text_reply('{"answer": "A"}', StopReason.LENGTH)
    with pytest.raises(StructuredOutputError) as caught:
        await Structured(in_turn(cut, cut)).generate(REQUEST)
    assert caught.value.stop_reason is StopReason.LENGTH


async def test_a_reply_that_ran_away_does_not_double_the_prompt() -> None:
    model = in_turn("x" * 50_000, '{"answer": "A"}')
    await Structured(model).generate(REQUEST)
    assert sum(len(message.content) for message in model.requests[1].messages) < 3_000


def rate_limited(retry_after: float | None = None) -> ProviderError:
    return ProviderError("429", kind=ErrorKind.RATE_LIMIT, status=429, retry_after=retry_after)


def retrying(
    model: ChatModel,
    pauses: list[float],
    on_wait: Callable[[Wait], None] | None = None,
    **policy: float,
) -> Retry:
    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    settings = RetryPolicy(**policy)  # type: ignore[arg-type]
    rng = random.Random(0)
    return Retry(
        model,
        settings,
        name="openai/gpt",
        rng=rng,
        monotonic=time.monotonic,
        on_wait=on_wait,
        sleep=sleep,
    )


async def test_a_retry_waits_as_long_as_it_is_told_and_says_so() -> None:
    pauses: list[float] = []
    waits: list[Wait] = []
    model = in_turn(rate_limited(3.0), rate_limited(5.0), '{"answer": "A"}')
    reply = await retrying(model, pauses, waits.append).generate(REQUEST)
    assert reply.attempts == 3
    assert 3.0 <= pauses[0] <= 3.3
    assert 5.0 <= pauses[1] <= 5.5
    assert [wait.seconds for wait in waits] == pauses
    assert [in_transit(request).attempt for request in model.requests] == [1, 2, 3]
    assert in_transit(model.requests[2]).waited == pytest.approx(sum(pauses))


async def test_a_backoff_is_drawn_up_to_a_ceiling_that_doubles() -> None:
    pauses: list[float] = []
    model = in_turn(*[rate_limited() for _ in range(5)], '{"answer": "A"}')
    await retrying(model, pauses, base=1.0, cap=4.0).generate(REQUEST)
    assert len(pauses) == 5
    assert all(0 <= pause <= top for pause, top in zip(pauses, [1, 2, 4, 4, 4], strict=True))


async def test_retries_are_finite_and_the_last_error_is_raised() -> None:
    errors = [ProviderError("500", kind=ErrorKind.SERVER, status=500) for _ in range(4)]
    model = in_turn(*errors)
    with pytest.raises(ProviderError) as caught:
        await retrying(model, [], max_retries=3).generate(REQUEST)
    assert caught.value is errors[-1]


async def test_waits_that_the_endpoint_asks_for_are_no_failures_but_end_with_the_timeout() -> None:
    pauses: list[float] = []
    model = in_turn(*[rate_limited(3.0)] * 9, rate_limited(), '{"answer": "A"}')
    reply = await retrying(model, pauses, max_retries=1).generate(REQUEST)
    assert reply.attempts == 11
    assert all(3.0 <= pause <= 3.3 for pause in pauses[:9])


@pytest.mark.parametrize("asked", [None, 0.25, 30.0])
@pytest.mark.parametrize(
    "kind",
    [
        ErrorKind.RATE_LIMIT,  # benchmark-radar#171: of a minute, without a pause
        ErrorKind.OVERLOADED,  # llama-swap#146: "Loading model", for minutes
    ],
)
async def test_a_limit_or_an_overload_is_waited_for_until_the_timeout(
    kind: ErrorKind, asked: float | None
) -> None:
    now, pauses = [0.0], list[float]()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    def answer(request: ChatRequest) -> str:
        if now[0] >= ready:
            return '{"answer": "A"}'
        raise ProviderError("busy", kind=kind, retry_after=asked)

    retry = Retry(
        FunctionModel(answer),
        RetryPolicy(),
        name="openai/gpt",
        rng=random.Random(0),
        monotonic=lambda: now[0],
        sleep=sleep,
    )
    ready = 500.0
    assert (await retry.generate(REQUEST)).text == '{"answer": "A"}'
    assert pauses[0] <= (0.25 if asked is None else 1.1 * asked)
    assert max(pauses) <= 60.0
    assert sum(pauses) <= ready + 60.0
    background = replace(REQUEST, labels=replace(REQUEST.labels, background=True))
    is_brief = asked is None or asked < 1.0
    is_short = is_brief or kind is ErrorKind.OVERLOADED
    for request, is_counted in ((REQUEST, False), (background, is_short), (REQUEST, is_brief)):
        now[0], ready = 0.0, 10_000.0
        with pytest.raises(ProviderError):
            await retry.generate(request)
        most = 600.0 if not is_counted else 8.0 if is_brief else 5 * 33.0
        assert (0 if is_counted else 500) <= now[0] <= most
    now[0] = 10_000.0
    assert (await retry.generate(REQUEST)).attempts == 1
    now[0], ready = 0.0, 500.0
    assert (await retry.generate(REQUEST)).attempts > 6


async def test_a_setting_refused_after_an_overload_is_left_out_at_once() -> None:
    pauses: list[float] = []
    refused = ProviderError("no seed", kind=ErrorKind.SETTING_REFUSED, status=400)
    busy = ProviderError("Loading model", kind=ErrorKind.OVERLOADED, status=503)
    model = in_turn(*[busy] * 8, refused, refused, '{"answer": "A"}')
    reply = await retrying(model, pauses, max_retries=1).generate(REQUEST)
    assert reply.attempts == 11
    assert len(pauses) == 8


@pytest.mark.parametrize("asked", [0.0, 0.25, 0.9])
async def test_a_pause_below_a_second_is_lengthened_and_its_attempt_does_not_count(
    asked: float,
) -> None:
    # openai-python#957, CLIProxyAPI#5265: a named pause that short comes again and again.
    pauses: list[float] = []
    model = in_turn(*[rate_limited(asked)] * 9, '{"answer": "A"}')
    reply = await retrying(model, pauses, base=1.0, max_retries=1).generate(REQUEST)
    assert reply.attempts == 10
    assert all(pause >= asked for pause in pauses)
    assert sum(pauses) > 60.0
    background = replace(REQUEST, labels=replace(REQUEST.labels, background=True))
    model = in_turn(*[rate_limited(asked)] * 100)
    with pytest.raises(ProviderError):
        await retrying(model, [], max_retries=5).generate(background)
    assert len(model.requests) == 6


@pytest.mark.parametrize("asked", [60.0, 3600.0, float("inf")])
async def test_a_pause_beyond_the_time_of_a_call_ends_the_run_and_says_when_to_go_on(
    asked: float,
) -> None:
    pauses: list[float] = []
    with pytest.raises(EndpointDown, match=r"asks for a pause until \d{4}-\d\d-\d\d \d\d:\d\d"):
        await retrying(in_turn(rate_limited(asked)), pauses, timeout=60.0).generate(REQUEST)
    assert pauses == []


async def test_a_background_call_that_would_pause_too_long_ends_alone() -> None:
    labels = replace(REQUEST.labels, background=True)
    with pytest.raises(ProviderError):
        await retrying(in_turn(rate_limited(3600.0)), [], timeout=60.0).generate(
            replace(REQUEST, labels=labels)
        )


async def test_time_in_the_queue_does_not_count_against_the_call() -> None:
    error = rate_limited(0.0)
    error.queued = 3600.0
    model = in_turn(error, '{"answer": "A"}')
    reply = await retrying(model, [], timeout=60.0).generate(REQUEST)
    assert reply.attempts == 2
    assert in_transit(model.requests[1]).waited == pytest.approx(3600.0, abs=1)


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (ErrorKind.AUTH, EndpointDown),
        (ErrorKind.QUOTA, EndpointDown),
        (ErrorKind.PROXY, EndpointDown),
        (ErrorKind.CONTEXT_LENGTH, ProviderError),
    ],
)
async def test_what_cannot_get_better_is_not_tried_again(
    kind: ErrorKind, error: type[BenchError]
) -> None:
    model = in_turn(ProviderError("no", kind=kind))
    with pytest.raises(error):
        await retrying(model, []).generate(REQUEST)
    assert len(model.requests) == 1


class Hanging:
    """A model that never replies."""

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        await asyncio.Event().wait()
        raise AssertionError("it never replies")


def attempting(
    model: ChatModel, ledger: Ledger, price: Price | None = None, clock: Clock | None = None
) -> Attempt:
    return Attempt(
        model,
        ledger,
        provider="p",
        model="m",
        price=lambda _: price,
        clock=clock or Clock(),
        timeout=TIMEOUT,
    )


async def test_a_hanging_attempt_is_cut_and_booked() -> None:
    rows: list[CallRow] = []
    with pytest.raises(ProviderError) as caught:
        await attempting(Hanging(), Ledger(rows.append)).generate(REQUEST)
    assert caught.value.kind is ErrorKind.TIMEOUT
    assert caught.value.retryable
    assert [row.outcome for row in rows] == ["timeout"]


@virtual_time
async def test_a_reply_that_came_while_the_process_was_stopped_is_read() -> None:
    class Stopped:
        async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
            stop(3600)
            await asyncio.sleep(1)
            return text_reply("read")

    assert (await attempting(Stopped(), Ledger(lambda _: None)).generate(REQUEST)).text == "read"


@virtual_time
async def test_an_attempt_during_which_the_process_was_stopped_is_no_failure() -> None:
    loop = asyncio.get_running_loop()
    errors: list[ProviderError] = []

    class Lost:
        async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
            if len(errors) == 3:
                return text_reply("asked again")
            stop(3600)
            await asyncio.Event().wait()
            raise AssertionError("the connection is dead")

    async def sleep(seconds: float) -> None:
        stop(3600)  # also between two attempts

    def on_wait(wait: Wait) -> None:
        errors.append(wait.error)

    model = Retry(
        attempting(Lost(), Ledger(lambda _: None), clock=Clock(monotonic=loop.time)),
        RetryPolicy(max_retries=1, timeout=60.0),
        name="openai/gpt",
        rng=random.Random(0),
        monotonic=loop.time,
        on_wait=on_wait,
        sleep=sleep,
    )
    assert (await model.generate(REQUEST)).attempts == 4
    assert {error.kind for error in errors} == {ErrorKind.TIMEOUT}
    assert all(error.stopped == pytest.approx(3600, abs=10) for error in errors)


@virtual_time
async def test_a_timeout_that_a_busy_processor_held_up_is_a_failure() -> None:
    class Busy:
        async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
            stop(TIMEOUT + 4)
            await asyncio.Event().wait()
            raise AssertionError("it never replies")

    clock = Clock(monotonic=asyncio.get_running_loop().time)
    with pytest.raises(ProviderError) as caught:
        await attempting(Busy(), Ledger(lambda _: None), clock=clock).generate(REQUEST)
    assert caught.value.kind is ErrorKind.TIMEOUT
    assert caught.value.stopped == 0


@virtual_time
async def test_a_model_that_takes_long_to_stop_was_not_stopped() -> None:
    class Slow:
        async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(30)
            raise AssertionError("it never replies")

    with pytest.raises(ProviderError) as caught:
        await attempting(
            Slow(),
            Ledger(lambda _: None),
            clock=Clock(monotonic=asyncio.get_running_loop().time),
        ).generate(REQUEST)
    assert caught.value.kind is ErrorKind.TIMEOUT
    assert caught.value.stopped == 0


def stop(seconds: float) -> None:
    """Let time pass in which this process does nothing, as after Ctrl-Z."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    loop.now += seconds


async def test_every_attempt_has_a_row_and_the_sums_equal_the_rows() -> None:
    rows: list[CallRow] = []
    ledger = Ledger(rows.append)
    price = Price(input=1.0, output=2.0, cached_input=0.5)
    replies: list[ChatReply | ProviderError] = [
        rate_limited(),
        replace(text_reply("x"), usage=TokenUsage(100, 20, 40, 5)),
        text_reply("x", StopReason.REFUSAL),
    ]
    model = attempting(in_turn(*replies), ledger, price)
    ledger.open_case("c")
    labelled = replace(REQUEST, labels=replace(REQUEST.labels, case_id="c", role="expert"))
    with pytest.raises(ProviderError):
        await model.generate(labelled)
    await model.generate(labelled)
    await model.generate(labelled)
    assert [row.outcome for row in rows] == ["rate_limit", "ok", "refused"]
    assert rows[1].cost_usd == pytest.approx((60 * 1.0 + 40 * 0.5 + 20 * 2.0) / 1e6)
    total = sum((Totals.of(row) for row in rows), Totals())
    assert ledger.close_case("c").by_role == {"expert": total}
    assert (total.calls, total.failed_attempts) == (2, 1)


def test_an_unknown_price_is_not_zero() -> None:
    known, unknown = Totals(calls=1, cost_usd=0.5), Totals(calls=1, cost_usd=None)
    assert (known + unknown).cost_usd is None
    assert (unknown + known).cost_usd is None
    assert (known + Totals(failed_attempts=1)).cost_usd == 0.5


_usages = st.builds(TokenUsage, *[st.integers(0, 10**6)] * 4)


@pytest.mark.sweep
@given(st.lists(_usages))
def test_usage_adds_up(usages: list[TokenUsage]) -> None:
    total = sum(usages, TokenUsage())
    assert total.total_tokens == sum(usage.total_tokens for usage in usages)
    assert total.cached_input_tokens == sum(usage.cached_input_tokens for usage in usages)


class Streaming:
    """A model that says some words before it fails or replies."""

    def __init__(self, *outcomes: ProviderError | str) -> None:
        self._outcomes = list(outcomes)

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        outcome = self._outcomes.pop(0)
        assert on_text is not None
        on_text("some words")
        if isinstance(outcome, ProviderError):
            raise outcome
        return text_reply(outcome)


async def test_a_listener_is_told_when_what_it_heard_was_no_good() -> None:
    heard: list[str | None] = []
    broken = ProviderError("reset", kind=ErrorKind.CONNECTION)
    model = Structured(retrying(Streaming(broken, "no JSON", '{"answer": "A"}'), []))
    await model.generate(REQUEST, heard.append)
    assert heard == ["some words", None, "some words", None, "some words"]
    heard.clear()
    with pytest.raises(ProviderError):
        await retrying(Streaming(broken), [], max_retries=0).generate(REQUEST, heard.append)
    assert heard == ["some words"], "the error itself tells"


# -- endpoints that cannot be reached ----------------------------------------------------------


def unreachable() -> ProviderError:
    return ProviderError("x:9 cannot be reached: refused", kind=ErrorKind.UNREACHABLE)


async def test_an_endpoint_that_was_never_reached_ends_the_run_after_the_retries() -> None:
    pauses: list[float] = []
    model = in_turn(*(unreachable() for _ in range(9)))
    with pytest.raises(EndpointDown, match="openai/gpt is out of reach: x:9 cannot be reached"):
        await retrying(model, pauses).generate(REQUEST)
    assert len(model.requests) == 6


async def test_an_outage_of_an_endpoint_that_has_replied_costs_no_call() -> None:
    pauses: list[float] = []
    model = in_turn('{"answer": "A"}', *(unreachable() for _ in range(60)), '{"answer": "B"}')
    retry = retrying(model, pauses)
    await retry.generate(REQUEST)
    assert (await retry.generate(REQUEST)).text == '{"answer": "B"}'
    assert len(pauses) == 60
    assert max(pauses) <= 5.0, "it goes on soon after the endpoint is back"
    assert max(pauses) > 2.0


async def test_an_outage_is_waited_for_as_long_as_a_call_may_take() -> None:
    model = in_turn('{"answer": "A"}', *(unreachable() for _ in range(60)))
    retry = retrying(model, [], timeout=0.0)
    await retry.generate(REQUEST)
    with pytest.raises(EndpointDown):
        await retry.generate(REQUEST)


@pytest.mark.parametrize("kind", [ErrorKind.AUTH, ErrorKind.QUOTA, ErrorKind.MODEL_NOT_FOUND])
async def test_a_bad_moment_of_a_key_or_a_quota_costs_no_call(kind: ErrorKind) -> None:
    fatal = ProviderError("no", kind=kind, status=401)
    model = in_turn('{"answer": "A"}', fatal, fatal, '{"answer": "B"}', fatal, fatal, fatal)
    retry = retrying(model, [])
    await retry.generate(REQUEST)
    assert (await retry.generate(REQUEST)).attempts == 3
    with pytest.raises(EndpointDown, match="openai/gpt is out of reach: no"):
        await retry.generate(REQUEST)


async def test_what_an_endpoint_forbids_is_not_asked_again() -> None:
    forbidden = ProviderError("a filter", kind=ErrorKind.AUTH, status=403)
    model = in_turn('{"answer": "A"}', forbidden, '{"answer": "B"}')
    retry = retrying(model, [])
    await retry.generate(REQUEST)
    with pytest.raises(ProviderError, match="a filter"):
        await retry.generate(REQUEST)
    assert (await retry.generate(REQUEST)).text == '{"answer": "B"}'


async def test_a_proxy_that_bars_an_endpoint_for_a_moment_costs_no_call() -> None:
    barred = ProviderError("a proxy", kind=ErrorKind.PROXY, status=403)
    retry = retrying(in_turn('{"answer": "A"}', barred, '{"answer": "B"}'), [])
    await retry.generate(REQUEST)
    assert (await retry.generate(REQUEST)).text == '{"answer": "B"}'


async def test_who_stops_a_call_does_not_meet_a_full_disk_instead() -> None:
    def full(row: CallRow) -> None:
        raise StorageError("no room")

    call = asyncio.ensure_future(attempting(Hanging(), Ledger(full)).generate(REQUEST))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
