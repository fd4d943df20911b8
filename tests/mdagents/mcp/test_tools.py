"""The tools of `mdagents mcp`, as the client of the protocol's SDK sees them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from mdagents.mcp.folders import Folders
from mdagents.mcp.reader import READING_SECONDS
from mdagents.mcp.reading import ReaderPool
from mdagents.mcp.server import PING_SECONDS, make_server
from mdagents.runs.config import RunConfig
from mdagents.serve.service import Service, open_service
from mdagents_llm.clock import Clock
from mdagents_llm.config import parse_environment, read_variables
from mdagents_llm.errors import ConfigError
from tests.fake_provider import FakeProvider
from tests.mdagents.scoring.result_records import ours, write
from tests.mdagents.serve.served import QUESTION

OPTIONS = ["Retinol", "Thiamine", "Ascorbic acid", "Calciferol"]
ASKED = {"question": QUESTION, "options": OPTIONS, "team": "basic"}


@asynccontextmanager
async def connected(
    names: Sequence[str] = ("adaptive",), **flags: Any
) -> AsyncIterator[tuple[Client, Service]]:
    """A client of a server in this process; `flags` are those of a run, and times."""
    folders = Folders.of(["output"], needed=False)
    ping = flags.pop("ping", PING_SECONDS)
    reading = ReaderPool(flags.pop("reading_seconds", READING_SECONDS))
    config = RunConfig(**{"model": "gpt-4o-mini", "cache": "off", "max_retries": 0} | flags)
    environment = parse_environment(read_variables())
    opened = open_service(config, names, environment, Clock(), most_queued=8, say=lambda _: None)
    async with (
        opened as service,
        Client(make_server(service, folders, reading, ping)) as client,
    ):
        yield client, service


def ledger(service: Service) -> list[dict[str, Any]]:
    lines = (service.files.folder / "calls.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def said(result: Any) -> str:
    return " ".join(part.text for part in result.content)


async def test_tools_say_what_they_take_and_give() -> None:
    async with connected() as (client, _):
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert sorted(tools) == ["answer_question", "compare_runs", "score_file"]
    for tool in tools.values():
        assert tool.output_schema
        assert tool.annotations
    assert tools["score_file"].annotations.read_only_hint  # type: ignore[union-attr]
    asked = tools["answer_question"].input_schema["properties"]["options"]
    assert (asked["minItems"], asked["maxItems"]) == (2, 10)


async def test_a_team_answers_and_its_tokens_are_those_of_the_ledger() -> None:
    lines: list[str] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        lines.append(message or "")

    async with connected() as (client, service):
        result = await client.call_tool("answer_question", ASKED, progress_callback=note)
        rows = ledger(service)
    answer = result.structured_content
    assert not result.is_error
    assert answer is not None
    assert answer["letter"] in "ABCD"
    assert answer["option"] == OPTIONS["ABCD".index(answer["letter"])]
    assert answer["calls"] == len(rows) == 5
    assert answer["input_tokens"] == sum(row["input_tokens"] for row in rows)
    assert answer["output_tokens"] == sum(row["output_tokens"] for row in rows)
    assert sum(answer["votes"].values()) == 3
    assert lines[0].startswith("Team: basic")
    assert answer["debate"] == lines
    assert answer["outcome"] == "answered"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"team": "surgeons"}, "surgeons"),
        ({"options": ["Retinol"]}, "options"),
        ({"options": ["x"] * 17}, "options"),
        ({"question": ""}, "question"),
        ({"question": f"{QUESTION} Select TWO."}, "asks for several letters"),
        ({"options": ["B. Thiamine", "C. Retinol", "D. Biotin"]}, "leave labels out"),
        ({"seed": -1}, "seed"),
        ({"model": "gpt-4.1"}, "no argument 'model'; it has question, options, team, seed"),
    ],
)
async def test_a_question_that_makes_no_sense_is_an_error_that_says_why(
    changes: dict[str, Any], told: str
) -> None:
    async with connected() as (client, _):
        result = await client.call_tool("answer_question", ASKED | changes)
    assert result.is_error
    assert told in said(result)


async def test_a_failed_question_is_an_error_and_no_answer(provider: FakeProvider) -> None:
    provider.fail_next("500", times=99)
    async with connected() as (client, service):
        result = await client.call_tool("answer_question", ASKED)
        (record,) = (service.files.folder / "samples.jsonl").read_text().splitlines()
    assert result.is_error
    assert result.structured_content is None
    assert "spent: 0 calls, 0 tokens" in said(result)
    assert json.loads(record)["status"] == "api_error"


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [("refusal", "refused"), ("cut_off", "truncated"), ("invalid_schema", "parse_error")],
)
async def test_a_team_without_an_answer_has_an_outcome_and_no_letter(
    provider: FakeProvider, fault: str, outcome: str
) -> None:
    provider.fail_next(fault, times=99)
    async with connected() as (client, service):
        result = await client.call_tool("answer_question", ASKED)
        rows = ledger(service)
    answer = result.structured_content
    assert answer is not None, said(result)
    assert (answer["outcome"], answer["letter"], answer["option"]) == (outcome, None, None)
    assert answer["analysis"].startswith("the team gave no answer")
    assert answer["output_tokens"] == sum(row["output_tokens"] for row in rows)


@pytest.mark.parametrize("blank", [["yes", "n/a", "no"], ["yes", " ", "no"], ["n/a", "no", "yes"]])
async def test_an_option_that_would_not_be_shown_is_refused(blank: list[str]) -> None:
    async with connected() as (client, service):
        result = await client.call_tool("answer_question", ASKED | {"options": blank})
        assert not ledger(service)
    assert result.is_error
    assert "is empty or n/a; leave it out" in said(result)


@pytest.mark.parametrize("team", ["fails.py", "intermediate"])
async def test_a_failure_says_what_it_has_cost(provider: FakeProvider, team: str) -> None:
    await asyncio.to_thread(Path("fails.py").write_text, FAILS)
    if team == "intermediate":
        provider.fail_next("401", times=99, match=lambda seen: "choose exactly" not in seen.text)
    async with connected([team]) as (client, service):
        result = await client.call_tool("answer_question", ASKED | {"team": team})
        rows = ledger(service)
    replied = [row for row in rows if row["outcome"] == "ok"]
    tokens = sum(row["input_tokens"] + row["output_tokens"] for row in replied)
    assert result.is_error
    assert tokens
    assert f"(spent: {len(replied)} call" in said(result)
    assert f"{tokens:,} tokens" in said(result)


FAILS = """
from mdagents import Method, TeamRole
from mdagents.agents import replies


@Method(roles=(TeamRole.EXPERT,), depth=1)
async def solve(case, question, settings):
    expert = case.expert("expert-1", "Internist", "Diseases of adults.")
    task = "Your task: judge the question and choose the best option. Reply in JSON."
    await expert.ask(task, replies.opinion(question.letters, 40), phase="opinion")
    raise RuntimeError("a method of the user's")
"""


async def test_a_silent_team_is_reported_to_be_at_work(provider: FakeProvider) -> None:
    lines: list[str] = []
    told = asyncio.Event()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        lines.append(message or "")
        if "at work for" in lines[-1]:
            told.set()

    with provider.hold("Your role") as hold:
        async with connected(ping=0.02) as (client, _):
            asked = client.call_tool("answer_question", ASKED, progress_callback=note)
            call = asyncio.ensure_future(asked)
            async with asyncio.timeout(20):
                await told.wait()
            hold.release()
            assert not (await call).is_error


async def test_a_client_that_fails_to_take_progress_gets_its_answer() -> None:
    async def fail(progress: float, total: float | None, message: str | None) -> None:
        raise RuntimeError("a client's own")

    async with connected() as (client, _):
        result = await client.call_tool("answer_question", ASKED, progress_callback=fail)
    assert not result.is_error


async def test_a_call_that_is_given_up_stops_the_team(provider: FakeProvider) -> None:
    with provider.hold("Your role") as hold:
        async with connected() as (client, service):
            call = asyncio.ensure_future(client.call_tool("answer_question", ASKED))
            await asyncio.to_thread(hold.wait, 3)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            async with asyncio.timeout(20):
                while service.in_progress:  # noqa: ASYNC110 - there is no event for it
                    await asyncio.sleep(0.01)
            rows = ledger(service)
    assert [row["outcome"] for row in rows] == ["ok", "aborted", "aborted", "aborted"]


@pytest.fixture
def outside() -> None:
    """A file beside the folder that may be read, and a link to it inside."""
    write([ours("1", "A", "A")])
    secret = Path("../secret.json")
    secret.write_text(json.dumps([ours("1", "A", "A")]))
    Path("output/link.json").symlink_to(secret.resolve())


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../secret.json", "link.json", "output/../../secret.json", "", "none.json",
     "x" * 5000, "a\0b", "~/.ssh/id_rsa"],
)  # fmt: skip
async def test_nothing_outside_the_folders_is_read(path: str) -> None:
    async with connected() as (client, _):
        result = await client.call_tool("score_file", {"path": path})
    assert result.is_error
    assert "may be read" in said(result) or "characters" in said(result)


def test_a_folder_that_is_named_must_exist() -> None:
    with pytest.raises(ConfigError, match="--allow names nowhere"):
        Folders.of(["nowhere"], needed=True)


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"question": "SECRET?", "options": ["a"]}, "options"),
        ({"question": "SECRET?", "options": ["a", "b"], "seed": -1}, "seed"),
        ({"question": "", "options": ["a", "b"]}, "question"),
    ],
)
async def test_a_wrong_argument_is_named_in_a_line(
    arguments: dict[str, Any], argument: str
) -> None:
    async with connected() as (client, _):
        result = await client.call_tool("answer_question", arguments)
    assert result.is_error
    assert f"argument '{argument}': " in said(result)
    assert "\n" not in said(result)
    assert "SECRET" not in said(result)
    assert "pydantic" not in said(result)
