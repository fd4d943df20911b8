"""The adapter as users of LangChain and LangGraph meet it."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from itertools import pairwise
from typing import Annotated, Any, Literal, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    trim_messages,
)
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic import BaseModel, Field, create_model, field_validator

from mdagents_llm.chat import ChatReply, ChatRequest, OnText, StopReason, TokenUsage
from mdagents_llm.endpoints import ModelSpec
from mdagents_llm.errors import ConfigError, ErrorKind, ProviderError, StructuredOutputError
from mdagents_llm.langchain_model import ChatModelAdapter
from mdagents_llm.layers.structured import Structured
from mdagents_llm.ledger import CallRow
from mdagents_llm.llm_registry import ModelRegistry
from tests.conftest import REPOSITORY
from tests.fake_provider import FakeProvider
from tests.support.function_model import FunctionModel, text_reply
from tests.support.sweeps import seeds

Deltas = Sequence[str | None]


class Streamed:
    """Says each of its replies in pieces; None among them: the attempt failed and starts anew."""

    def __init__(self, *replies: Deltas, stop_reason: StopReason = StopReason.STOP) -> None:
        self._replies = list(replies)
        self._stop_reason = stop_reason
        self.requests: list[ChatRequest] = []
        self.under_way = 0
        self.cancelled = 0
        self.finished = 0

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        self.requests.append(request)
        self.under_way += 1
        deltas = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        text = ""
        try:
            for delta in deltas:
                await asyncio.sleep(0)
                text = "" if delta is None else text + delta
                if on_text is not None:
                    on_text(delta)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.under_way -= 1
        self.finished += 1
        return text_reply(text, self._stop_reason)


def speaking(*replies: str | dict[str, Any]) -> Streamed:
    """A model that gives these texts, or JSON, three characters at a time."""
    texts = [one if isinstance(one, str) else json.dumps(one) for one in replies]
    return Streamed(*([text[at : at + 3] for at in range(0, len(text), 3)] for text in texts))


def calling(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"reply": {"tool_calls": [{"name": name, "args": arguments}]}}


@tool
def get_weather(location: str, unit: Literal["C", "F"] = "C", days: int | None = None) -> str:
    """Return the weather."""
    return f"21 {unit} in {location}"


@tool
def store(values: dict[str, Any], tags: list[Any]) -> str:
    """Store what has no fixed form."""
    return "stored"


class Level(BaseModel):
    """How urgent a case is."""

    level: Literal["emergency", "routine"]


def told(messages: list[BaseMessage], **settings: Any) -> list[tuple[str, str]]:
    model = FunctionModel(lambda _: "Yes.")
    ChatModelAdapter(model).invoke(messages, **settings)
    return [(message.role, message.content) for message in model.requests[0].messages]


# -- messages -----------------------------------------------------------------------------------


def test_messages_are_told_by_role() -> None:
    messages: list[BaseMessage] = [
        SystemMessage("Be short."),
        HumanMessage([{"type": "text", "text": "One."}, "Two."]),
        AIMessage([{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "Three."}]),
        ChatMessage(content="Four.", role="developer"),
        HumanMessage("Five.", name="Ann"),
        AIMessage("Six.", name="agent"),
    ]
    assert told(messages) == [
        ("system", "Be short."),
        ("user", "One.\nTwo."),
        ("assistant", "Three."),
        ("system", "Four."),
        ("user", '{"name": "Ann"}\nFive.'),
        ("assistant", '{"name": "agent"}\nSix.'),  # since the first one has no name
    ]


def test_the_only_assistant_is_not_shown_its_name() -> None:
    assert told([HumanMessage("a"), AIMessage("b", name="x"), HumanMessage("c")])[1] == (
        "assistant",
        "b",
    )


@pytest.mark.sweep
@given(st.text(), st.text(min_size=1))
def test_a_result_of_a_tool_cannot_pass_for_anything_else(content: str, call_id: str) -> None:
    calls = [{"name": "get_weather", "args": {"location": "Ulm"}, "id": call_id}]
    conversation: list[BaseMessage] = [
        HumanMessage("Weather?"),
        AIMessage("Let me see.", tool_calls=calls),
        ToolMessage(content, tool_call_id=call_id, name="get_weather"),
        ToolMessage([{"type": "text", "text": content}], tool_call_id="2", status="error"),
    ]
    _, (role, call), (role_of_results, results) = told(conversation)
    assert (role, role_of_results) == ("assistant", "user")
    text, line = call.split("\n")
    assert text == "Let me see."
    assert json.loads(line) == {"reply": {"tool_calls": calls}}
    assert json.loads(results) == {
        "tool_results": [
            {"id": call_id, "name": "get_weather", "content": content},
            {"id": "2", "status": "error", "content": content},
        ]
    }


async def test_text_that_utf_8_cannot_hold_reaches_the_endpoint(
    registry: ModelRegistry, openai_spec: ModelSpec, provider: FakeProvider
) -> None:
    messages = [ToolMessage("half \ud83d", tool_call_id="1"), HumanMessage("half \ud800")]
    assert (await ChatModelAdapter(registry.model(openai_spec)).ainvoke(messages)).text
    assert len(provider.calls) == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        # Pieces with a citation each, and sentences of their own.
        ([{"type": "text", "text": "Give 0"}, {"type": "text", "text": ".5 mg"}], "Give 0.5 mg"),
        (["Do not ", {"type": "text", "text": "give heparin"}, "."], "Do not give heparin."),
        (["Potassium is 6.9.", "Give calcium."], "Potassium is 6.9.\nGive calcium."),
        # https://github.com/langchain-ai/langchain-aws/issues/1206
        (
            [
                {"type": "web_search_call", "id": "ws_1"},
                {"type": "server_tool_use", "id": "st_1", "name": "web_search", "input": {}},
                {"cachePoint": {"type": "default"}},
                {"type": "text", "text": "Give 5 mg."},
            ],
            "Give 5 mg.",
        ),
    ],
)
def test_the_reply_of_another_model_is_told_as_it_was(content: Any, said: str) -> None:
    [_, (_, reply), _] = told([HumanMessage("a"), AIMessage(content), HumanMessage("b")])
    assert reply == said


def test_results_that_are_data() -> None:
    blocks: Any = [{"type": "json", "json": {"mg": 1}}, {"mg": [2]}, {"type": "text", "text": "3"}]
    [_, (_, results)] = told([HumanMessage("a"), ToolMessage(blocks, tool_call_id="1")])
    [result] = json.loads(results)["tool_results"]
    assert result["content"] == '{"mg": 1}\n{"mg": [2]}\n3'


def test_a_conversation_can_be_cut_to_a_number_of_tokens() -> None:
    adapter = ChatModelAdapter(FunctionModel(lambda _: "Yes."))
    messages = [HumanMessage("long " * 400), AIMessage("No."), HumanMessage("Why?")]
    kept = trim_messages(messages, max_tokens=40, token_counter=adapter, strategy="last")
    assert kept == messages[1:]


def test_calls_that_were_invalid_are_told_with_their_error() -> None:
    bad = {"name": "f", "args": "{", "id": "1", "error": "no JSON", "type": "invalid_tool_call"}
    [(_, text)] = told([AIMessage("", invalid_tool_calls=[bad])])
    assert json.loads(text)["reply"]["tool_calls"][0]["error"] == "no JSON"


@pytest.mark.parametrize(
    ("message", "named"),
    [
        (HumanMessage([{"type": "image", "url": "https://a.b/c.png"}]), "'image'"),
        (HumanMessage([{"type": "image_url", "image_url": {"url": "data:"}}]), "'image_url'"),
        (ToolMessage([{"type": "file", "base64": ""}], tool_call_id="1"), "'file'"),
        (HumanMessage([{"type": "tool_use", "name": "f"}]), "'tool_use'"),
        (HumanMessage([{"text": "no type"}]), "'None'"),
        (FunctionMessage(content="x", name="f"), "'function'"),
        (ChatMessage(content="x", role="critic"), "'critic'"),
    ],
)
def test_what_is_no_text_is_an_error(message: BaseMessage, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        told([message])


def test_no_message_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no message"):
        told([])


# -- settings -----------------------------------------------------------------------------------


def test_settings_of_the_adapter_and_of_a_call() -> None:
    model = FunctionModel(lambda _: "Yes.")
    adapter = ChatModelAdapter(model, temperature=0.5, max_tokens=9, seed=1)
    adapter.invoke("a")
    adapter.invoke("a", temperature=1, max_tokens=8, seed=0)
    adapter.bind(max_tokens=7).invoke("a", temperature=None)
    seen = [(one.temperature, one.max_tokens, one.seed) for one in model.requests]
    assert seen == [(0.5, 9, 1), (1, 8, 0), (0.5, 7, 1)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperatur": 1}, "no setting temperatur; did you mean 'temperature'"),
        ({"n": 2}, "no setting n"),
        ({"model": "gpt-4o"}, "an adapter for each model"),
        ({"max_tokens": 0}, "max_tokens: .*greater than 0"),
        ({"temperature": "hot"}, "temperature: .*number"),
        ({"stop": [""]}, "stop sequence is empty"),
    ],
)
def test_mistakes_in_a_call(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ChatModelAdapter(FunctionModel(lambda _: "")).invoke("a", **settings)


def test_mistakes_in_the_adapter() -> None:
    model = FunctionModel(lambda _: "")
    with pytest.raises(ConfigError, match="no maxtokens; did you mean 'max_tokens'"):
        ChatModelAdapter(model, maxtokens=3)
    with pytest.raises(ConfigError, match="not 'gpt-4o'"):
        ChatModelAdapter("gpt-4o")  # type: ignore[arg-type]


def test_what_a_trace_shows() -> None:
    registered = Structured(speaking("x"), name="groq/openai/gpt-oss-120b")
    params = ChatModelAdapter(registered, temperature=0.2)._get_ls_params()  # noqa: SLF001
    assert params["ls_provider"] == "groq"
    assert params["ls_model_name"] == "openai/gpt-oss-120b"
    assert params["ls_temperature"] == 0.2
    dumped = ChatModelAdapter(registered).model_dump()
    assert "model" not in dumped
    assert json.dumps(dumped)


async def test_usage_and_reason() -> None:
    usage = TokenUsage(10, 5, 4, 3)
    reply = ChatReply("cut", usage, StopReason.LENGTH, "gpt-served")
    message = await ChatModelAdapter(FunctionModel(lambda _: reply)).ainvoke("a")
    assert message.usage_metadata == {
        "input_tokens": 10,
        "output_tokens": 5,
        "total_tokens": 15,
        "input_token_details": {"cache_read": 4, "cache_creation": 0},
        "output_token_details": {"reasoning": 3},
    }
    assert message.response_metadata["model_name"] == "gpt-served"
    assert message.response_metadata["finish_reason"] == "length"


async def test_a_refusal_is_no_answer() -> None:
    adapter = ChatModelAdapter(Streamed(["I ", "won't"], stop_reason=StopReason.REFUSAL))
    message = await adapter.ainvoke("a")
    assert message.content == ""
    assert message.additional_kwargs["refusal"] == "I won't"
    assert message.response_metadata["finish_reason"] == "refusal"
    with pytest.raises(ProviderError, match="7 characters had been streamed"):
        await adapter.bind().ainvoke("a", stream=True)
    tools = ChatModelAdapter(Structured(Streamed(["no"], stop_reason=StopReason.REFUSAL)))
    with pytest.raises(StructuredOutputError) as caught:
        await tools.bind_tools([get_weather]).ainvoke("a")
    assert caught.value.stop_reason is StopReason.REFUSAL
    raw = await tools.with_structured_output(Finding, include_raw=True).ainvoke("a")
    assert (raw["parsed"], raw["raw"].content) == (None, "")
    assert raw["raw"].additional_kwargs["refusal"] == "no"


async def test_a_time_limit() -> None:
    class Hanging:
        async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
            await asyncio.Event().wait()
            raise AssertionError

    adapter = ChatModelAdapter(Hanging(), timeout=0.01)
    with pytest.raises(ProviderError, match=r"within 0\.01 s") as caught:
        await adapter.ainvoke("a")
    assert caught.value.kind is ErrorKind.TIMEOUT
    with pytest.raises(ProviderError, match=r"within 0\.01 s"):
        await anext(adapter.astream("a"))


async def test_langchain_s_cache() -> None:
    model = speaking("Yes.")
    cached = ChatModelAdapter(model, cache=InMemoryCache())
    first, again = [await cached.ainvoke("a", {"metadata": {"case_id": n}}) for n in (1, 2)]
    other = await cached.ainvoke("a", max_tokens=3)
    assert first.content == again.content == other.content
    assert len(model.requests) == 2


async def test_langchain_s_cache_tells_models_apart(
    registry: ModelRegistry, openai_spec: ModelSpec, provider: FakeProvider
) -> None:
    cache = InMemoryCache()
    with FakeProvider(seed=1) as other:
        elsewhere = replace(openai_spec, base_url=other.openai_base_url)
        for spec in (openai_spec, elsewhere, replace(openai_spec, api="responses")) * 2:
            await ChatModelAdapter(registry.model(spec), cache=cache).ainvoke("a")
        assert (len(provider.calls), len(other.calls)) == (2, 1)
        dumped = ChatModelAdapter(registry.model(elsewhere)).asdict()
    assert other.openai_base_url not in str(dumped), "an address may hold a token"
    own = [FunctionModel(lambda _: "One."), FunctionModel(lambda _: "Two.")]
    assert [ChatModelAdapter(m, cache=cache).invoke("a").text for m in own] == ["One.", "Two."]
    copies = [ChatModelAdapter(own[0], cache=cache).model_copy(update={"model": m}) for m in own]
    assert [copy.invoke("b").text for copy in copies] == ["One.", "Two."]
    adapter = copies[0]
    for number in range(20):  # the ids of models that are freed are used again
        adapter = adapter.model_copy(update={"model": speaking(str(number))})
        assert adapter.invoke("c").text == str(number)
    named = [Structured(one, name="groq/x") for one in own]
    assert [ChatModelAdapter(m, cache=cache).invoke("a").text for m in named] == ["One.", "Two."]


def test_langchain_s_cache_tells_schemas_apart() -> None:
    model = FunctionModel(lambda _: '{"level": 1}')
    adapter = ChatModelAdapter(Structured(model), cache=InMemoryCache())
    for told in ("1 is low", "1 is high", "1 is high"):
        level = (int, Field(description=told))
        adapter.with_structured_output(create_model("Triage", level=level)).invoke("a")
    assert len(model.requests) == 2


# -- streams ------------------------------------------------------------------------------------


async def texts(stream: Any) -> list[str]:
    return [chunk.text async for chunk in stream]


def pieces(text: str, cuts: Sequence[int]) -> list[str]:
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    return [text[start:end] for start, end in pairwise(places)]


CUTS = st.lists(st.integers(0, 40), max_size=8)


@pytest.mark.sweep
@given(st.text(), CUTS, CUTS, st.integers(0, 8), st.lists(st.text("abc\n", min_size=1), max_size=2))
def test_text_is_streamed_once(
    text: str, cuts: list[int], again: list[int], failed: int, stop: list[str]
) -> None:
    """However the text is cut, and although an attempt failed after some of it."""
    deltas: Deltas = [*pieces(text, cuts)[:failed], None, *pieces(text, again)]
    adapter = ChatModelAdapter(Streamed(deltas), stop=stop)
    streamed = list(adapter.stream("a"))
    assert "".join(chunk.text for chunk in streamed) == adapter.invoke("a").text
    assert [chunk.chunk_position for chunk in streamed if chunk.chunk_position] == ["last"]


@pytest.mark.sweep
@given(st.text(), CUTS, CUTS, st.integers(0, 8), st.booleans())
def test_an_answer_beside_tools_is_streamed_once(
    text: str, cuts: list[int], again: list[int], failed: int, ascii_only: bool
) -> None:
    said = json.dumps({"reply": {"answer": text}}, ensure_ascii=ascii_only)
    deltas: Deltas = [*pieces(said, cuts)[:failed], None, *pieces(said, again)]
    adapter = ChatModelAdapter(Structured(Streamed(deltas))).bind_tools([get_weather])
    assert "".join(chunk.text for chunk in adapter.stream("a")) == text


async def test_an_answer_beside_tools_grows() -> None:
    adapter = ChatModelAdapter(Structured(speaking({"reply": {"answer": "It is sunny."}})))
    grown = await texts(adapter.bind_tools([get_weather]).astream("a"))
    assert len(grown) > 4
    assert "".join(grown) == "It is sunny."
    thinking = (
        '<think>{"reply": {"answer": "No"}}</think>```json\n{"reply": {"answer": "Yes"}}\n```'
    )
    adapter = ChatModelAdapter(Structured(speaking(thinking)))
    assert "".join(await texts(adapter.bind_tools([get_weather]).astream("a"))) == "Yes"


async def test_a_text_that_starts_otherwise_ends_the_stream() -> None:
    adapter = ChatModelAdapter(Streamed(["One", " two", None, "One", " three"]))
    stream = adapter.astream("a")
    assert [(await anext(stream)).text for _ in range(2)] == ["One", " two"]
    with pytest.raises(ProviderError, match="7 characters had been streamed"):
        await anext(stream)
    held = ChatModelAdapter(Streamed(["One", None, "Two"]), disable_streaming=True)
    assert await texts(held.astream("a")) == ["Two"]


async def test_attempts_that_fail_over_http(
    registry: ModelRegistry, openai_spec: ModelSpec, provider: FakeProvider
) -> None:
    adapter = ChatModelAdapter(registry.model(openai_spec))
    whole = (await adapter.ainvoke("Hello")).text
    for fault in ("429", "stream_error", "500"):
        provider.fail_next(fault)
        assert "".join(await texts(adapter.astream("Hello"))) == whole
    assert provider.outcomes["stream_error"] == 1


async def test_callbacks_see_the_tokens() -> None:
    seen: list[str] = []

    class Tokens(AsyncCallbackHandler):
        async def on_llm_new_token(self, token: Any, **kwargs: Any) -> None:
            seen.append(token)

    await ChatModelAdapter(speaking("One two"), streaming=True).ainvoke(
        "a", {"callbacks": [Tokens()]}
    )
    assert "".join(seen) == "One two"


# -- the end of a call --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(40))
async def test_a_call_that_is_cancelled_leaves_nothing_behind(seed: int) -> None:
    model = speaking({"reply": {"answer": "A long answer to a short question."}})
    adapter = ChatModelAdapter(Structured(model)).bind_tools([get_weather])
    rng = random.Random(seed)
    before = asyncio.all_tasks()
    run = adapter.ainvoke("a") if seed % 2 else texts(adapter.astream("a"))
    task = asyncio.ensure_future(run)
    for _ in range(rng.randrange(1, 30)):
        await asyncio.sleep(0)
    is_cancelled = task.cancel()
    await asyncio.wait([task])
    assert task.cancelled() == is_cancelled
    assert asyncio.all_tasks() == before
    assert model.under_way == 0
    assert model.cancelled + model.finished == len(model.requests)


@pytest.mark.parametrize("turns", range(1, 40))
async def test_a_call_whose_tokens_are_told_leaves_nothing_behind(turns: int) -> None:
    class Slow(AsyncCallbackHandler):
        async def on_llm_new_token(self, token: Any, **kwargs: Any) -> None:
            await asyncio.sleep(0)

    model = speaking("A long answer to a short question.")
    adapter = ChatModelAdapter(model, streaming=True, callbacks=[Slow()])
    before = asyncio.all_tasks()
    task = asyncio.ensure_future(adapter.ainvoke("a"))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert asyncio.all_tasks() == before
    assert model.under_way == 0


@pytest.mark.parametrize("count", range(4))
async def test_a_stream_that_is_closed_leaves_nothing_behind(count: int) -> None:
    model = speaking("A long answer to a short question.")
    before = asyncio.all_tasks()
    stream = ChatModelAdapter(model).astream("a")
    for _ in range(count):
        await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined]
    assert asyncio.all_tasks() == before
    assert model.cancelled == (count > 0)


@pytest.mark.sweep
async def test_a_stream_that_is_left_ends_its_call() -> None:
    model = speaking("A long answer to a short question.")
    async for _ in ChatModelAdapter(model).astream("a"):
        break
    gc.collect()
    for _ in range(20):
        await asyncio.sleep(0)
    assert (model.cancelled, model.under_way) == (1, 0)


@pytest.mark.sweep
def test_a_synchronous_stream_that_is_left_ends_its_call() -> None:
    ended = threading.Event()

    class Endless:
        async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
            assert on_text is not None
            try:
                while True:
                    on_text("on and ")
                    await asyncio.sleep(0)
            finally:
                ended.set()

    for chunk in ChatModelAdapter(Endless()).stream("a"):
        assert chunk.text == "on and "
        break
    gc.collect()
    assert ended.wait(60)


# -- loops and threads --------------------------------------------------------------------------


IN_ANY_LOOP = """
import asyncio
from mdagents_llm import LLMRole, get_llm
from mdagents_llm.langchain_model import ChatModelAdapter

adapter = ChatModelAdapter(get_llm(LLMRole.MAS))

async def mixed():
    print(len((await adapter.ainvoke("Hello")).text))
    print(len(adapter.invoke("Hello").text))
    print(sum(len(chunk.text) for chunk in adapter.stream("Hello")))
    print(len((await asyncio.to_thread(adapter.invoke, "Hello")).text))
    print(sum([len(chunk.text) async for chunk in adapter.astream("Hello")]))

print(len(adapter.invoke("Hello").text))
for _ in range(2):
    asyncio.run(mixed())
for message in adapter.batch(["Hello"] * 8):
    print(len(message.text))
"""


@pytest.mark.process
def test_one_adapter_in_any_loop_and_thread(provider: FakeProvider) -> None:
    said = run_program(
        IN_ANY_LOOP,
        OPENAI_BASE_URL=provider.openai_base_url,
        OPENAI_API_KEY="test-key",
        MAS_LLM_PROVIDER="openai",
    )
    assert (said.returncode, said.stderr) == (0, "")
    assert len(said.stdout.split()) == len(provider.calls) == 1 + 2 * 5 + 8
    assert len(set(said.stdout.split())) == 1


AFTER_THE_LOOP = """
import asyncio, gc, socket
from mdagents_llm import LLMRole, get_llm
from mdagents_llm.langchain_model import ChatModelAdapter

adapter = ChatModelAdapter(get_llm(LLMRole.MAS))
for _ in range(3):
    asyncio.run(adapter.ainvoke("Hello"))
    gc.collect()
    print(sum(isinstance(one, socket.socket) and one.fileno() >= 0 for one in gc.get_objects()))
"""


@pytest.mark.process
def test_connections_end_with_their_loop(provider: FakeProvider) -> None:
    said = run_program(
        "import warnings; warnings.simplefilter('error')" + AFTER_THE_LOOP,
        OPENAI_BASE_URL=provider.openai_base_url,
        OPENAI_API_KEY="test-key",
        MAS_LLM_PROVIDER="openai",
    )
    assert (said.stdout.split(), said.stderr) == (["0"] * 3, "")


def run_program(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_model_that_calls_itself_synchronously_is_told_so() -> None:
    class Recursive:
        async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
            return text_reply(adapter.invoke("again").text)

    adapter = ChatModelAdapter(Recursive())
    with pytest.raises(RuntimeError, match="await it"):
        adapter.invoke("a")


# -- tools --------------------------------------------------------------------------------------


def bound(*replies: str | dict[str, Any], **settings: Any) -> tuple[Any, Streamed]:
    model = speaking(*replies)
    tools = settings.pop("tools", [get_weather, store])
    return ChatModelAdapter(Structured(model)).bind_tools(tools, **settings), model


async def test_several_calls_with_ids_of_their_own() -> None:
    calls = [calling("get_weather", location=place) for place in ("Ulm", "Bonn")]
    both = {"reply": {"tool_calls": [call["reply"]["tool_calls"][0] for call in calls]}}
    adapter, _ = bound(both)
    message = await adapter.ainvoke("a")
    assert [call["args"] for call in message.tool_calls] == [
        {"location": "Ulm"},
        {"location": "Bonn"},
    ]
    assert len({call["id"] for call in message.tool_calls}) == 2
    assert message.response_metadata["finish_reason"] == "tool_calls"
    first, *more = [chunk async for chunk in adapter.astream("a")]
    streamed: AIMessageChunk = sum(more, start=first)
    assert [call["args"] for call in streamed.tool_calls] == [
        call["args"] for call in message.tool_calls
    ]
    alone, model = bound(both, calling("get_weather", location="Ulm"), parallel_tool_calls=False)
    assert len((await alone.ainvoke("a")).tool_calls) == 1
    assert "one tool is called at a time" in model.requests[1].messages[-1].content


async def test_what_is_optional_may_be_null_and_is_left_out() -> None:
    adapter, _ = bound(calling("get_weather", location="Ulm", unit=None, days=None))
    [call] = (await adapter.ainvoke("a")).tool_calls
    assert call["args"] == {"location": "Ulm", "days": None}  # `days` may really be null


@pytest.mark.parametrize("as_text", [False, True])
async def test_what_has_no_fixed_form_is_read_from_json(as_text: bool) -> None:
    values: Any = {"a": [1, {"b": None}]}
    tags: Any = ["x", {"y": 1}]
    said = [json.dumps(one) for one in tags] if as_text else tags
    adapter, model = bound(
        calling("store", values=json.dumps(values) if as_text else values, tags=said)
    )
    [call] = (await adapter.ainvoke("a")).tool_calls
    assert call["args"] == {"values": values, "tags": tags}
    assert "written as a string that holds JSON" in model.requests[0].messages[0].content


async def test_codes_and_doses_are_not_numbers() -> None:
    """Codes such as 5E0 became numbers in https://github.com/OpenRefine/OpenRefine/issues/511."""
    tags: Any = ["1E50", "2A00", "0.50", "NaN", "12345678901234567890.5", "3", "-0.5", "true"]
    adapter, _ = bound(calling("store", values={"icd": "1E50"}, tags=tags))
    [call] = (await adapter.ainvoke("a")).tool_calls
    assert call["args"] == {"values": {"icd": "1E50"}, "tags": [*tags[:5], 3, -0.5, True]}


@pytest.mark.parametrize(
    "call",
    [
        {"args": {"location": "Ulm"}},
        {"arguments": {"location": "Ulm"}, "id": "1", "type": "function"},
        {"arguments": '{"location": "Ulm"}'},
    ],
)
async def test_words_beside_a_call_and_other_spellings_of_it(call: dict[str, Any]) -> None:
    """A reply with both is usual: https://github.com/langchain-ai/langchain-aws/pull/511."""
    said = {"answer": "I look it up.", "tool_calls": [{"name": "get_weather", **call}]}
    adapter, model = bound({"reply": said})
    message = await adapter.ainvoke("a")
    assert (message.text, message.tool_calls[0]["args"]) == ("I look it up.", {"location": "Ulm"})
    assert len(model.requests) == 1


async def test_arguments_that_do_not_fit_are_asked_for_again() -> None:
    bad, good = calling("get_weather", location=7), calling("get_weather", location="Ulm")
    adapter, model = bound(bad, good)
    [call] = (await adapter.ainvoke("a")).tool_calls
    assert call["args"] == {"location": "Ulm"}
    assert "arguments of get_weather['location']" in model.requests[1].messages[-1].content
    nevers: list[dict[str, Any]] = [
        bad,
        calling("get_wether"),
        {"reply": {"tool_calls": []}},
        {"reply": 1},
        {},
    ]
    for never in nevers:
        adapter, _ = bound(never)
        with pytest.raises(StructuredOutputError):
            await adapter.ainvoke("a")


async def test_tool_choice() -> None:
    call, answer = calling("get_weather", location="Ulm"), {"reply": {"answer": "Yes."}}
    choices: Any = ("any", "required", True, "get_weather", {"type": "tool", "name": "get_weather"})
    for choice in choices:
        adapter, model = bound(answer, call, tool_choice=choice)
        assert (await adapter.ainvoke("a")).tool_calls
        assert len(model.requests) == 2, "the answer was none of the choices"
    adapter, model = bound(calling("store", values={}, tags=[]), call, tool_choice="get_weather")
    assert (await adapter.ainvoke("a")).tool_calls[0]["name"] == "get_weather"
    assert "store" not in model.requests[0].messages[0].content
    for choice in ("auto", None):
        adapter, _ = bound(answer, tool_choice=choice)
        assert (await adapter.ainvoke("a")).text == "Yes."
    adapter, model = bound("Plain.", tool_choice="none")
    assert (await adapter.ainvoke("a")).text == "Plain."
    assert model.requests[0].schema is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tool_choice": "get_wether"}, "did you mean 'get_weather'"),
        ({"temperatur": 1}, "did you mean 'temperature'"),
        ({"tool_choice": 3}, "tool_choice=3 is not known"),
        ({"tool_choice": "any", "tools": []}, "no tool is bound"),
        ({"tools": [{"type": "web_search"}]}, "'web_search' is a vendor-specific tool"),
        (
            {"tools": [{"name": "f", "parameters": {"properties": {"a": {"$ref": "#/x"}}}}]},
            "refers to #/x, which is not in it",
        ),
        (
            {"tools": [{"name": "f", "parameters": {"type": "objekt", "properties": {}}}]},
            "is not a valid JSON schema",
        ),
        ({"tools": [get_weather, {"name": "get_weather"}]}, "two different tools"),
    ],
)
def test_mistakes_in_tools(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        bound({}, **settings)


async def test_a_schema_with_references_and_alternatives() -> None:
    class Dose(BaseModel):
        drug: str
        mg: float = Field(gt=0)

    class Order(BaseModel):
        """Order something."""

        kind: Literal["drug", "diet"]
        on: date
        what: Dose | str
        doses: list[Dose] = Field(default_factory=list, max_length=2)

    said = {"kind": "drug", "on": "2026-11-23", "what": {"drug": "x", "mg": 1}, "doses": None}
    adapter, model = bound(calling("Order", **said), tools=[Order])
    [call] = (await adapter.ainvoke("a")).tool_calls
    assert call["args"] == {name: value for name, value in said.items() if name != "doses"}
    schema = model.requests[0].schema
    assert schema is not None
    sent = json.dumps(schema.model_json_schema())
    assert "$ref" not in sent
    assert "format" not in sent
    adapter, _ = bound(calling("Order", **{**said, "what": {"drug": "x", "mg": 0}}), tools=[Order])
    with pytest.raises(StructuredOutputError):
        await adapter.ainvoke("a")


async def test_tools_over_an_endpoint_without_schemas(
    registry: ModelRegistry, openai_spec: ModelSpec, provider: FakeProvider
) -> None:
    provider.fail_next("400_schema_unsupported")
    provider.when("weather", calling("get_weather", location="Ulm"))
    adapter = ChatModelAdapter(registry.model(openai_spec)).bind_tools([get_weather])
    assert (await adapter.ainvoke("The weather?")).tool_calls[0]["args"]["location"] == "Ulm"
    assert not provider.calls[-1].native_schema


# -- structured output --------------------------------------------------------------------------


class Finding(BaseModel):
    """A finding."""

    sign: str = Field(description="what was seen")
    on: date
    grade: int = 1

    @field_validator("grade")
    @classmethod
    def _is_a_grade(cls, value: int) -> int:
        if not 0 < value < 5:
            raise ValueError("a grade is 1 to 4")
        return value


class FindingDict(TypedDict):
    sign: Annotated[str, ..., "what was seen"]
    grade: Annotated[int | None, None, "1 to 4"]


def structured(
    schema: Any, *replies: str | dict[str, Any], **settings: Any
) -> tuple[Any, Streamed]:
    model = speaking(*replies)
    adapter = ChatModelAdapter(Structured(model))
    return adapter.with_structured_output(schema, **settings), model


@pytest.mark.parametrize("schema", [Level, Level.model_json_schema()])
async def test_an_agent_with_a_response_format(
    registry: ModelRegistry, openai_spec: ModelSpec, schema: Any
) -> None:
    model = ChatModelAdapter(registry.model(openai_spec))
    agent = create_agent(model, tools=[get_weather], response_format=schema)
    said = await agent.ainvoke({"messages": [("human", "How urgent is it?")]})
    Level.model_validate(said["structured_response"])


async def test_a_pydantic_class_gives_its_instances() -> None:
    finding = {"sign": "rash", "on": "2026-11-23", "grade": None}
    runnable, model = structured(Finding, finding | {"grade": 9}, finding)
    assert await runnable.ainvoke("a") == Finding(sign="rash", on=date(2026, 11, 23))
    assert "a grade is 1 to 4" in model.requests[1].messages[-1].content, "its validators count"
    assert "what was seen" in model.requests[0].messages[0].content
    runnable, _ = structured(Finding, f"Here: ```json\n{json.dumps(finding)}\n```")
    assert [one async for one in runnable.astream("a")] == [
        Finding(sign="rash", on=date(2026, 11, 23))
    ]


@pytest.mark.parametrize(
    "schema",
    [
        FindingDict,
        {"type": "object", "properties": {"sign": {"type": "string"}}, "required": ["sign"]},
        {"name": "f", "parameters": {"properties": {"sign": {"type": "string"}}}},
    ],
)
async def test_other_schemas_give_a_dict(schema: Any) -> None:
    runnable, _ = structured(schema, {"sign": "rash"})
    assert (await runnable.ainvoke("a"))["sign"] == "rash"
    runnable, _ = structured(schema, {"sign": 1})
    with pytest.raises(StructuredOutputError):
        await runnable.ainvoke("a")


class Node(BaseModel):
    dose: int = Field(ge=0)
    children: list[Node] = []


class Calling(BaseModel):
    function: Callable[[], int]


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize("schema", [Node, Node.model_json_schema()])
async def test_a_schema_that_refers_to_itself(schema: Any, as_text: bool) -> None:
    def tree(dose: int) -> dict[str, Any]:
        child = {"dose": 2, "children": [{"dose": dose}]}
        return {"dose": 1, "children": [json.dumps(child) if as_text else child]}

    runnable, model = structured(schema, tree(-3), tree(3))
    asked = model.requests
    found = Node.model_validate(await runnable.ainvoke("a"))
    assert found.children[0].children[0].dose == 3
    assert "-3 is less than the minimum" in asked[1].messages[-1].content, "however deep it is"
    assert '"#/$defs/Node"' in asked[0].messages[0].content
    adapter, _ = bound(calling("plan", tree=tree(3)), tools=[plan])
    [call] = (await adapter.ainvoke("a")).tool_calls
    assert plan.invoke(call).text == "3"


@tool
def plan(tree: Node) -> str:
    """Plan doses."""
    return str(tree.children[0].children[0].dose)


async def test_include_raw() -> None:
    finding = {"sign": "rash", "on": "2026-11-23", "grade": 2}
    runnable, _ = structured(Finding, finding, include_raw=True)
    both = await runnable.ainvoke("a")
    assert both["parsed"] == Finding.model_validate(finding)
    assert both["parsing_error"] is None
    assert json.loads(both["raw"].content) == finding
    for reply in ("no JSON", finding | {"grade": 9}):
        runnable, _ = structured(Finding, reply, include_raw=True)
        for both in (await runnable.ainvoke("a"), runnable.invoke("a")):
            assert both["parsed"] is None
            assert isinstance(both["parsing_error"], ValueError)
            assert both["raw"].usage_metadata["output_tokens"] == 10, "of both attempts"


def test_structured_output_with_mistakes() -> None:
    with pytest.raises(ConfigError, match="method='xml' is not known"):
        structured(Finding, method="xml")
    with pytest.raises(ConfigError, match="object with named properties"):
        structured({"title": "f", "type": "array", "items": {"type": "string"}})
    with pytest.raises(ConfigError, match="is not a schema"):
        structured({"a": "b"})
    with pytest.raises(ConfigError, match="is not a schema"):
        structured(3)
    with pytest.raises(ConfigError, match="cannot be asked for this"):
        structured(Calling)
    runnable, _ = structured(Finding, "")
    with pytest.raises(ConfigError, match="leave out `stop`"):
        runnable.invoke("a", stop=["x"])
    with pytest.raises(ConfigError, match=r"replies without `parsed`"):
        ChatModelAdapter(speaking("{}")).with_structured_output(Finding).invoke("a")


# -- LangGraph ----------------------------------------------------------------------------------


async def test_a_graph_with_tools_is_filed_under_its_nodes(
    registry: ModelRegistry,
    openai_spec: ModelSpec,
    provider: FakeProvider,
    rows: list[CallRow],
) -> None:
    provider.when('"tool_results": [{', {"reply": {"answer": "21 degrees."}})
    provider.when("weather", calling("get_weather", location="Ulm"))
    model = ChatModelAdapter(registry.model(openai_spec)).bind_tools([get_weather])

    async def meteorologist(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph: Any = StateGraph(MessagesState)
    graph.add_node("meteorologist", meteorologist)
    graph.add_node("tools", ToolNode([get_weather]))
    graph.add_edge(START, "meteorologist")
    graph.add_conditional_edges("meteorologist", tools_condition, ["tools", END])
    graph.add_edge("tools", "meteorologist")
    app = graph.compile()
    asked = {"messages": [HumanMessage("The weather?")]}
    config = {"metadata": {"case_id": "case-1"}}
    answer = (await app.ainvoke(asked, config))["messages"]
    assert [type(one).__name__ for one in answer[1:]] == ["AIMessage", "ToolMessage", "AIMessage"]
    assert answer[-1].text == "21 degrees."
    streamed = [chunk async for chunk, _ in app.astream(asked, config, stream_mode="messages")]
    assert "21 degrees." in "".join(one.text for one in streamed if isinstance(one, AIMessageChunk))
    assert [(row.case_id, row.agent, row.phase) for row in rows] == [
        ("case-1", "meteorologist", "step-1"),
        ("case-1", "meteorologist", "step-3"),
    ] * 2


async def test_labels_of_a_call_without_a_graph() -> None:
    model = speaking("Yes.")
    adapter = ChatModelAdapter(model)
    config: Any = {"metadata": {"case_id": 7, "agent": "a", "phase": "p", "role": "r"}}
    await adapter.ainvoke("a", config)
    await texts(adapter.astream("a", config))
    adapter.invoke("a", config)
    list(adapter.stream("a", config))
    stream: Any = adapter.generate([[HumanMessage("a")]], metadata=config["metadata"])
    assert stream.generations
    labels = {(one.labels.case_id, one.labels.agent, one.labels.phase, one.labels.role)
              for one in model.requests}  # fmt: skip
    assert labels == {("7", "a", "p", "r")}


@pytest.mark.process
def test_without_langchain_one_sentence_says_what_is_missing() -> None:
    program = (
        "import sys; sys.modules['langchain_core'] = None\n"
        "import mdagents_llm.llm_registry\n"
        "import mdagents_llm.langchain_model"
    )
    assert run_program(program).stderr.splitlines()[-1] == (
        "ImportError: ChatModelAdapter needs langchain_core: "
        f"{sys.executable} -m pip install 'mdagents-bench[langchain]'"
    )
