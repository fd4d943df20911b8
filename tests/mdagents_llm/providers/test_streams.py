"""Streams and bodies as servers and gateways send them, from public bug reports, over the pool."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import pytest

from mdagents_llm.chat import ChatMessage, ChatReply, ChatRequest, StopReason
from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.model_configs import ModelInfo
from mdagents_llm.providers import event_stream
from mdagents_llm.providers.anthropic_client import AnthropicClient
from mdagents_llm.providers.openai_client import OpenAIClient
from mdagents_llm.wire import Endpoint


def _chunk(text: str = "", finish: str | None = None) -> str:
    choice = {"index": 0, "delta": {"content": text} if text else {}, "finish_reason": finish}
    return "data: " + json.dumps({"model": "m", "choices": [choice]})


FIRST, SECOND, LAST = _chunk("Hé"), _chunk("llo"), _chunk(finish="stop")
USAGE = 'data: {"model":"m","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}'
END = (SECOND, LAST, USAGE, "data: [DONE]")
WHOLE = json.dumps(
    {
        "model": "m",
        "choices": [{"message": {"content": "Héllo"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }
).encode()


def _stream(*events: str, between: str = "\n\n") -> bytes:
    return (between.join(events) + between).encode()


def _without_space(events: bytes) -> bytes:
    return events.replace(b"data: ", b"data:")


async def _reply(
    body: bytes, *headers: str, on_text: Callable[[str | None], None] | None = None
) -> ChatReply:
    """Return the reply of a server that sends these bytes, a few at a time, and hangs up."""
    head = "\r\n".join(["HTTP/1.1 200 OK", "Connection: close", *headers, "", ""]).encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        length = int(asked.lower().partition(b"content-length:")[2].split()[0])
        await reader.readexactly(length)
        writer.write(head)
        with contextlib.suppress(ConnectionError):  # the client has seen enough
            for start in range(0, len(body), 7):
                writer.write(body[start : start + 7])
                await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        client = OpenAIClient(Endpoint(f"http://127.0.0.1:{port}/v1", "k", attempt_timeout=5))
        request = ChatRequest((ChatMessage("user", "Hello"),), max_tokens=5)
        try:
            return await client.model("m", ModelInfo()).generate(request, on_text)
        finally:
            await client.aclose()


@pytest.mark.parametrize(
    ("finishes", "reason"),
    [
        (("length", "stop"), StopReason.LENGTH),  # vllm#2266
        (("content_filter", "stop"), StopReason.REFUSAL),  # openrag#462
        (("stop", "length"), StopReason.LENGTH),
        (("tool_calls", "stop"), StopReason.STOP),
        (("length", "llo", "stop"), StopReason.STOP),  # more text followed the first
    ],
)
async def test_a_stop_after_a_reason_says_nothing(
    finishes: tuple[str, ...], reason: StopReason
) -> None:
    events = [_chunk(one) if one == "llo" else _chunk(finish=one) for one in finishes]
    assert (await _reply(_stream(FIRST, *events, USAGE, "data: [DONE]"))).stop_reason is reason


@pytest.mark.parametrize("finish", ["stop", "tool_calls"])
@pytest.mark.parametrize(
    ("native", "reason"),
    [
        ("MAX_TOKENS", StopReason.LENGTH),
        ("SAFETY", StopReason.REFUSAL),
        ("end_turn", StopReason.STOP),
        (None, StopReason.STOP),
        ({"odd": 1}, StopReason.STOP),
    ],
)
async def test_the_reason_of_the_model_itself_is_read(
    finish: str, native: object, reason: StopReason
) -> None:  # go-openrouter#43
    choice = {"finish_reason": finish, "native_finish_reason": native}
    whole = json.dumps({"choices": [{"message": {"content": "Héllo"}} | choice]}).encode()
    last = "data: " + json.dumps({"choices": [{"delta": {}} | choice]})
    for body in (whole, _stream(FIRST, SECOND, last, "data: [DONE]")):
        assert (await _reply(body)).stop_reason is reason


async def test_an_error_of_empty_fields_in_all_chunks_is_none() -> None:
    error = {"error": {"code": None, "message": ""}}
    events = [
        "data: " + json.dumps(json.loads(event.removeprefix("data: ")) | error)
        for event in (FIRST, SECOND, LAST, USAGE)
    ]
    reply = await _reply(_stream(*events, "data: [DONE]"))
    assert (reply.text, reply.usage.total_tokens) == ("Héllo", 5)
    for broken in (events[-1:], [FIRST, USAGE[:-1] + ',"error":{"message":"no"}}']):
        with pytest.raises(ProviderError):
            await _reply(_stream(*broken, "data: [DONE]"))


async def test_the_tier_that_served_a_reply_is_read() -> None:
    """Chunks before the last one may have none."""
    tier = {"service_tier": "flex"}
    last = "data: " + json.dumps({"choices": [], "usage": {}} | tier)
    for body in (json.dumps(json.loads(WHOLE) | tier).encode(), _stream(FIRST, last, *END)):
        assert (await _reply(body)).service_tier == "flex"
    assert (await _reply(WHOLE)).service_tier == ""
    malformed = json.dumps(json.loads(WHOLE) | {"service_tier": ["flex"]}).encode()
    assert (await _reply(malformed)).service_tier == ""


@pytest.mark.parametrize(
    "body",
    [
        _stream(FIRST.replace("\\u00e9", "é"), *END).replace("é".encode(), b"\xc3"),
        WHOLE.replace(b"\\u00e9", b"\xc3"),
        WHOLE.replace(b"\\u00e9", b"\xc3") + b"\ndata: [DONE]\n\n",
    ],
    ids=["stream", "whole", "whole, with the end of a stream"],
)
async def test_one_broken_byte_costs_one_character(body: bytes) -> None:  # llama.cpp#28926
    assert (await _reply(body)).text == "H\ufffdllo"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(_stream(": keep-alive", FIRST, ":", *END), id="comments"),
        # https://github.com/mnfst/llm-gateway/issues/2053
        pytest.param(
            _stream("data: : OPENROUTER PROCESSING", FIRST, "data: : x", *END), id="in data"
        ),
        pytest.param(_stream(FIRST, ": [DONE]", *END), id="a comment that looks like the end"),
        # https://github.com/dataelement/Clawith/pull/106
        pytest.param(_without_space(_stream(FIRST, *END)), id="no space"),
        pytest.param(_stream(FIRST, *END, between="\r\n\r\n"), id="crlf"),
        # https://github.com/jundot/omlx/pull/1011
        pytest.param(
            _stream('event: ping\ndata: {"type":"ping"}', _chunk(), FIRST, *END), id="no-op events"
        ),
        pytest.param(_stream("data:", FIRST, "data: ", *END), id="empty data"),
        pytest.param(_stream("retry: 3000\nid: 1\n" + FIRST, *END), id="other fields"),
        pytest.param(_stream(FIRST, *END).rstrip(), id="no line break at the end"),
        pytest.param(_stream(FIRST, *END[:-1]).rstrip(), id="no end of the last event"),
        pytest.param(_stream(FIRST, *END[:-1], 'data: {"id":"x","us').rstrip(), id="cut off"),
        pytest.param(_stream(FIRST, *END[:-1]) + b'data: {"id":"\xc3', id="cut off in a character"),
        pytest.param(
            _stream(FIRST, *END[:-1], "data: [DO", between="\n").rstrip(), id="cut off end marker"
        ),
        pytest.param(b"\xef\xbb\xbf" + _stream(FIRST, *END), id="byte order mark"),
        # https://github.com/rexxars/eventsource-parser/issues/31
        pytest.param(_stream(FIRST, *END, between="\n"), id="one line break"),
        pytest.param(_stream(FIRST, *END, between="\r\r"), id="carriage returns"),
        pytest.param(_stream(FIRST, "[INFO] queued", *END), id="a line that is no field"),
        # https://github.com/Portkey-AI/gateway/issues/55
        pytest.param(_stream(FIRST, *END[:-1], "[DONE]"), id="an end marker without a field"),
        pytest.param(
            _stream(FIRST, *END).replace(b'"choices"', b'\ndata: "choices"'), id="data of two lines"
        ),
    ],
)
async def test_a_stream_is_read(body: bytes) -> None:
    said: list[str | None] = []
    reply = await _reply(body, "Content-Type: text/event-stream", on_text=said.append)
    assert (reply.text, reply.usage.total_tokens, said) == ("Héllo", 5, ["Hé", "llo"])


async def test_a_stream_of_another_type_may_begin_with_any_field() -> None:
    body = _stream("other: 1\n" + FIRST, *END)
    reply = await _reply(body, "Content-Type: text/plain", on_text=lambda _: None)
    assert (reply.text, reply.usage.total_tokens) == ("Héllo", 5)


async def test_reasoning_before_the_end_marker_is_a_reply() -> None:
    chunk = _chunk("a").replace('"content"', '"reasoning_content"')
    body = _stream(chunk, "data: [DONE]")
    reply = await _reply(body, "Content-Type: text/event-stream", on_text=lambda _: None)
    assert (reply.text, reply.reasoning) == ("", "a")
    assert reply.note == "its text was in reasoning_content"


async def test_an_empty_body_in_place_of_a_stream_is_named() -> None:
    with pytest.raises(ProviderError, match="ended the stream before"):
        await _reply(b"", "Content-Type: application/json", on_text=lambda _: None)


@pytest.mark.parametrize(
    "body",
    [
        _stream(": a", ": b"),
        # https://github.com/ggml-org/llama.cpp/pull/16109: an error in a field of its own
        _stream('error: {"code":500,"message":"slot is gone"}'),
        _stream(FIRST),
        _stream(FIRST, 'data: {"choices":[{"del').rstrip(),
        b"",
    ],
)
async def test_a_stream_without_an_end_is_no_reply(body: bytes) -> None:
    with pytest.raises(ProviderError, match="ended the stream before") as caught:
        await _reply(body, "Content-Type: text/event-stream", on_text=lambda _: None)
    assert caught.value.kind is ErrorKind.BAD_BODY


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("", WHOLE),  # https://github.com/aio-libs/aiohttp/issues/1931
        ("identity", WHOLE),
        ("GZIP", gzip.compress(WHOLE)),
        ("deflate", zlib.compress(WHOLE)),
    ],
)
async def test_an_encoded_body_is_read(encoding: str, body: bytes) -> None:
    reply = await _reply(body, f"Content-Encoding: {encoding}")
    assert reply.text == "Héllo"


@pytest.mark.parametrize(
    ("header", "body", "kind"),
    [
        ("Content-Encoding: deflate", WHOLE, ErrorKind.CONNECTION),
        ("Content-Encoding: br", WHOLE, ErrorKind.BAD_BODY),
        ("Content-Encoding: gzip", gzip.compress(WHOLE)[:-12], ErrorKind.BAD_BODY),
        # https://github.com/UKGovernmentBEIS/inspect_ai/pull/4321
        ("Content-Length: 500", WHOLE, ErrorKind.CONNECTION),
        ("Content-Length: -5", WHOLE, ErrorKind.CONNECTION),
        ("Content-Length: 99999999999999999999", WHOLE, ErrorKind.CONNECTION),
        ("Transfer-Encoding: chunked", b"5\r\nabc", ErrorKind.CONNECTION),
    ],
)
async def test_a_broken_body_is_an_error_that_is_retried(
    header: str, body: bytes, kind: ErrorKind
) -> None:
    with pytest.raises(ProviderError) as caught:
        await _reply(body, header)
    assert caught.value.kind is kind
    assert caught.value.retryable


PING = b": keep-alive\n\n"
CUT = b"5\r\nda"  # a chunk that breaks off
OF_ANTHROPIC = [
    "data: " + json.dumps(event)
    for event in (
        {"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 0}}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Héllo"}},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 2},
        },
    )
]
OPEN: dict[str, tuple[type[Any], bytes]] = {
    # https://github.com/maximhq/bifrost/issues/6784
    "openai": (OpenAIClient, _stream(FIRST, SECOND, LAST, USAGE)),
    # https://github.com/musistudio/claude-code-router/pull/1271
    "openai, without a usage": (OpenAIClient, _stream(FIRST, SECOND, LAST)),
    "anthropic": (AnthropicClient, _stream(*OF_ANTHROPIC)),
}


@contextlib.asynccontextmanager
async def _left_open(body: bytes, end: bytes = b"") -> AsyncIterator[int]:
    """Serve a stream that stays open, or ends in `end` after a while; yield the port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(asked.lower().partition(b"content-length:")[2].split()[0]))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n")
        writer.write(b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(body), body))
        with contextlib.suppress(ConnectionError):  # the client has seen enough
            for _ in range(2 if end else 100):
                await asyncio.sleep(0.1)
                writer.write(b"%x\r\n%s\r\n" % (len(PING), PING))
                await writer.drain()
            writer.write(end)
        writer.close()
        answered.set()

    answered = asyncio.Event()
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
        await answered.wait()


async def _streamed(wire: type[Any], port: int) -> ChatReply:
    path = "/v1" if wire is OpenAIClient else ""
    client = wire(Endpoint(f"http://127.0.0.1:{port}{path}", "k", attempt_timeout=20))
    request = ChatRequest((ChatMessage("user", "Hello"),), max_tokens=5)
    try:
        return cast("ChatReply", await client.model("m", ModelInfo()).generate(request, print))
    finally:
        await client.aclose()


@pytest.mark.parametrize("name", OPEN)
async def test_a_stream_that_stays_open_after_its_end_is_a_reply(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "LONGEST_END", 0.3)
    wire, body = OPEN[name]
    async with _left_open(body) as port, asyncio.timeout(5):
        reply = await _streamed(wire, port)
    assert (reply.text, reply.stop_reason) == ("Héllo", StopReason.STOP)
    assert reply.usage_estimated == ("without" in name)
    assert reply.usage.total_tokens == 5 or reply.usage_estimated


async def test_a_stream_that_breaks_off_after_its_end_is_a_reply() -> None:
    async with _left_open(_stream(FIRST, SECOND, LAST, USAGE), CUT) as port:
        reply = await _streamed(OpenAIClient, port)
    assert (reply.text, reply.usage.total_tokens) == ("Héllo", 5)


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(_stream(_chunk("Hé", "stop")), id="with each piece"),  # as Gemini 1.5 did
        pytest.param(_stream(_chunk("H"), _chunk("é", "stop"), _chunk("", "stop")), id="early"),
    ],
)
async def test_a_finish_reason_before_the_end_cuts_no_text(
    first: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = _stream(_chunk("llo", "stop"), USAGE, "data: [DONE]")
    monkeypatch.setattr(event_stream, "LONGEST_END", 0.1 if b"stop" in first[:90] else 5)
    async with _left_open(first, b"%x\r\n%s\r\n0\r\n\r\n" % (len(late), late)) as port:
        reply = await _streamed(OpenAIClient, port)
    assert (reply.text, reply.usage.total_tokens) == ("Héllo", 5)


async def test_a_finish_reason_before_more_text_ends_no_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_stream, "LONGEST_END", 0.1)
    late = _stream(LAST, USAGE, "data: [DONE]")
    end = b"%x\r\n%s\r\n0\r\n\r\n" % (len(late), late)
    async with _left_open(_stream(_chunk("H"), _chunk("é", "stop"), _chunk("llo")), end) as port:
        reply = await _streamed(OpenAIClient, port)
    assert (reply.text, reply.usage.total_tokens) == ("Héllo", 5)


async def test_a_finish_reason_after_the_reasoning_cuts_no_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_stream, "LONGEST_END", 0.1)
    thoughts = 'data: {"choices":[{"index":0,"delta":{"reasoning_content":"Hm"}}]}'
    late = _stream(FIRST, *END)
    end = b"%x\r\n%s\r\n0\r\n\r\n" % (len(late), late)
    async with _left_open(_stream(thoughts, LAST), end) as port:
        reply = await _streamed(OpenAIClient, port)
    assert (reply.text, reply.reasoning, reply.usage.total_tokens) == ("Héllo", "Hm", 5)


@pytest.mark.parametrize("finish", [None, "stop"])
async def test_a_stream_that_stays_open_without_text_before_its_end_is_none(
    finish: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "LONGEST_END", 0.1)
    async with _left_open(_stream(_chunk("Hé", finish)), CUT) as port:
        with pytest.raises(ProviderError) as caught:
            await _streamed(OpenAIClient, port)
    assert caught.value.kind is ErrorKind.CONNECTION


@pytest.mark.parametrize("finish", ["stop", None])
async def test_a_whole_text_in_the_last_piece_is_shown_once(finish: str | None) -> None:
    pieces = ("Answer: ", "B. Thiamine ", "deficiency.")
    text = "".join(pieces)
    last = (_chunk(text, finish), *((LAST,) if finish is None else ()))
    said: list[str | None] = []
    body = _stream(*map(_chunk, pieces), *last, USAGE, "data: [DONE]")
    reply = await _reply(body, "Content-Type: text/event-stream", on_text=said.append)
    assert reply.text == (text if finish else text * 2)
    assert said == [*pieces, *(() if finish else (text,))]


async def test_a_finish_reason_with_each_piece_does_not_make_it_the_last() -> None:
    pieces = ["Answer: B", "Answer: B", ", twice."]
    body = _stream(*(_chunk(piece, "stop") for piece in pieces), USAGE, "data: [DONE]")
    reply = await _reply(body, "Content-Type: text/event-stream")
    assert reply.text == "".join(pieces)
