"""`mdagents mcp` as a program: over stdin and stdout, and over HTTP."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import httpx2
import pytest
from mcp import Client, StdioServerParameters

from mdagents.mcp.cli import PATH
from mdagents.mcp.frames import answerable
from tests.fake_provider import FakeProvider
from tests.mdagents.mcp.test_tools import ASKED
from tests.support.environment import bare_environment

pytestmark = pytest.mark.process

COMMAND = ["-m", "mdagents", "mcp", "--model", "gpt-4o-mini", "--cache", "off"]
LOUD = """
from mdagents import Decision

async def solve(case, question, settings):
    print("This line is no message of the protocol.", flush=True)
    return Decision("C", "by habit")
"""
MODES: Sequence[Literal["auto", "legacy"]] = ("auto", "legacy")
"""Versions of the protocol: the newest, without sessions, and those with sessions."""
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def environment(provider: FakeProvider, **more: str) -> dict[str, str]:
    return bare_environment(
        OPENAI_API_KEY="test-key", OPENAI_BASE_URL=provider.openai_base_url, **more
    )


def outcomes() -> list[str]:
    """Outcomes of the calls in the ledger of the only server."""
    (file,) = Path("output").glob("*/calls.jsonl")
    return [json.loads(line)["outcome"] for line in file.read_text().splitlines()]


async def stopped(calls: int) -> list[str]:
    """Outcomes of the last four calls, once the ledger has a number of them."""
    async with asyncio.timeout(20):
        while len(outcomes()) < calls:  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.02)
    return outcomes()[-4:]


STOPPED = ["ok", "aborted", "aborted", "aborted"]
"""Outcomes of a team whose three experts were at work when its call was cancelled."""


async def test_an_assistant_starts_it_asks_and_leaves(provider: FakeProvider) -> None:
    loud = await asyncio.to_thread(Path("loud.py").write_text, LOUD)
    assert loud
    command = [*COMMAND, "--team", "basic,loud.py"]
    started = StdioServerParameters(command=sys.executable, args=command, env=environment(provider))
    async with Client(started) as client:
        nulls = {"team": None, "seed": None}
        result = await client.call_tool("answer_question", ASKED | nulls)
        printing = await client.call_tool("answer_question", ASKED | {"team": "loud.py"})
        failed = await client.call_tool("score_file", {"path": "/etc/passwd"})
        with provider.hold("Your role") as hold:
            call = asyncio.ensure_future(client.call_tool("answer_question", ASKED))
            await asyncio.to_thread(hold.wait, 3)
            await client.__aexit__(None, None, None)
            assert await stopped(9) == STOPPED
        await asyncio.gather(call, return_exceptions=True)
    assert result.structured_content is not None
    assert result.structured_content["calls"] == 5
    assert printing.structured_content is not None
    assert printing.structured_content["letter"] == "C"
    assert failed.is_error


def test_half_an_emoji_costs_no_call(provider: FakeProvider) -> None:
    """Clients in JavaScript write it for a text that they cut (technocore-chat#218)."""
    client = {"name": "c", "version": "1"}
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    call = {"name": "answer_question", "arguments": ASKED | {"question": "Which \ud83d?"}}
    messages: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": about},
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/call", "params": call},
    ]
    lines = [json.dumps({"jsonrpc": "2.0"} | message) + "\n" for message in messages]
    with subprocess.Popen(
        [sys.executable, *COMMAND], env=environment(provider), stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(lines))
        process.stdin.flush()
        replies = [json.loads(process.stdout.readline())]
        while replies[-1].get("id") != 1:
            replies.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        assert process.wait(30) == 0
    assert replies[-1]["result"]["structuredContent"]["calls"] == 5
    text = b'{"jsonrpc": "2.0", "method": "\\ud83d\\ude00"}'
    assert answerable(text).decode() == '{"jsonrpc": "2.0", "method": "\U0001f600"}'
    assert answerable(b"\\ud83d no JSON") == b"\\ud83d no JSON"


def test_an_invalid_request_with_an_id_gets_an_error(provider: FakeProvider) -> None:
    """The SDK drops it, and the client waits: modelcontextprotocol/typescript-sdk#2247."""
    client = {"name": "c", "version": "1"}
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    lines: list[Any] = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"id": 1, "method": "tools/list", "params": {}},
        {"jsonrpc": "1.0", "id": "two", "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": ["answer_question"]},
        {"jsonrpc": "2.0", "id": 4},
        [PING | {"id": 5}, PING | {"id": 6}],
        {"method": "tools/list"},
        {"id": 7, "result": 5},
        PING | {"id": 8},
    ]
    with subprocess.Popen(
        [sys.executable, *COMMAND], env=environment(provider), stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(f"{json.dumps(line)}\n" for line in lines))
        process.stdin.flush()
        replies = [json.loads(process.stdout.readline())]
        while replies[-1]["id"] != 8:
            replies.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        assert process.wait(30) == 0
        replies += map(json.loads, process.stdout)
    codes = {reply["id"]: reply.get("error", {}).get("code") for reply in replies}
    assert codes == dict.fromkeys([1, "two", 3, 4, 5, 6], -32600) | {0: None, 8: None}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it(provider: FakeProvider, number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, *COMMAND], env=environment(provider), stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        assert "teams: adaptive" in process.stderr.readline()
        process.send_signal(number)
        assert process.wait(30) == 0, "its input is still open"
        out, errors = process.communicate()
    assert out == ""
    assert "Traceback" not in errors


def test_a_client_that_is_killed_ends_it_and_its_team(provider: FakeProvider) -> None:
    asked = {"name": "answer_question", "arguments": ASKED, "_meta": {"progressToken": 1}}
    client = {"name": "x", "version": "1"}
    begun: Any = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": begun},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": asked},
    ]
    lines = [json.dumps({"jsonrpc": "2.0", **each}) for each in messages]
    with (
        provider.hold("Your role") as hold,
        subprocess.Popen(
            [sys.executable, *COMMAND], env=environment(provider), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process,
    ):  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write("\n".join([*lines, ""]))
        process.stdin.flush()
        hold.wait(3)
        process.stdout.close()
        process.stdin.close()
        assert process.wait(30) == 0
        assert "Traceback" not in process.stderr.read()
    assert outcomes() == STOPPED


def test_a_client_that_leaves_ends_it(provider: FakeProvider) -> None:
    ended = subprocess.run(
        [sys.executable, *COMMAND], env=environment(provider), input="", capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (0, "")


@contextmanager
def over_http(provider: FakeProvider, *flags: str, **variables: str) -> Iterator[str]:
    """The program on any free port; gives its URL."""
    with subprocess.Popen(
        [sys.executable, *COMMAND, "--http", "--port", "0", *flags],
        env=environment(provider, **variables), stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        lines = [process.stderr.readline(), process.stderr.readline()]
        try:
            found = re.search(r"http://\S+/mcp", lines[1])
            assert found, lines
            yield found[0]
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=30) == 0
            assert "ClientDisconnect" not in process.stderr.read()


def post(url: str, padding: int = 0, **headers: str) -> httpx2.Response:
    with httpx2.Client(verify=False) as client:
        accepts = {"accept": "application/json, text/event-stream"}
        return client.post(
            url, json=PING | {"params": {"x": "x" * padding}}, headers=accepts | headers, timeout=60
        )


async def test_clients_of_http_ask_and_cancel_and_pages_are_refused(provider: FakeProvider) -> None:
    with over_http(provider) as url:
        async with Client(url) as client:
            result = await client.call_tool("answer_question", ASKED)
        for number, mode in enumerate(MODES, start=1):
            with provider.hold("Your role") as hold:
                async with Client(url, mode=mode) as client:
                    call = asyncio.ensure_future(client.call_tool("answer_question", ASKED))
                    await asyncio.to_thread(hold.wait, 3)
                    call.cancel()
                    await asyncio.gather(call, return_exceptions=True)
                    assert await stopped(5 + 4 * number) == STOPPED
        assert post(url, host="evil.example").status_code == 400
        assert post(url, origin="https://evil.example").status_code == 403
        assert post(url, padding=5 * 2**20).status_code == 413
    assert result.structured_content is not None
    assert result.structured_content["calls"] == 5


def test_a_token_is_required_where_one_is_set(provider: FakeProvider) -> None:
    token = "a-token-of-enough-characters"
    with over_http(provider, MDAGENTS_SERVE_TOKEN=token) as url:
        assert post(url).status_code == 401
        assert post(url, authorization=f"Bearer {token}").status_code != 401
        # modelcontextprotocol/typescript-sdk#2783: another status than 404 ended the discovery.
        assert post(url).headers["www-authenticate"].startswith("Bearer realm=")
        for name in ("oauth-protected-resource/mcp", "oauth-authorization-server"):
            asked = httpx2.get(f"{url.removesuffix(PATH)}/.well-known/{name}", timeout=60)
            assert asked.status_code == 404
        assert httpx2.get(f"{url.removesuffix(PATH)}/register", timeout=60).status_code == 401


def test_a_slash_at_the_end_is_no_redirect(provider: FakeProvider) -> None:
    """sparfenyuk/mcp-proxy#89: a redirect named an address that the client does not reach."""
    with over_http(provider) as url:
        answers = [post(f"{url}{slash}") for slash in ("", "/")]
        assert [answer.status_code for answer in answers] == [answers[0].status_code] * 2
        assert answers[0].text == answers[1].text
        assert httpx2.put(url, timeout=60).headers["allow"]


def test_a_client_that_leaves_within_its_request_is_no_error(provider: FakeProvider) -> None:
    """The SDK logs a traceback for it, modelcontextprotocol/python-sdk#3469; see `over_http`."""
    with over_http(provider) as url:
        port = int(url.removesuffix(PATH).rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as leaving:
            leaving.sendall(
                f"POST {PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
                "accept: application/json, text/event-stream\r\ncontent-length: 9\r\n\r\n{".encode()
            )
            post(url)  # the server has begun to read
        post(url)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--port", "0"], "--host and --port belong to --http"),
        (["--allow", "nowhere"], "--allow names nowhere"),
        (["--team", "surgeons"], "--team is 'surgeons'"),
    ],
)
def test_wrong_use_is_said_in_a_line(provider: FakeProvider, flags: list[str], said: str) -> None:
    ended = subprocess.run(
        [sys.executable, *COMMAND, *flags], env=environment(provider), capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr
