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
from mdagents.mcp.server import make_server
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
    """A client of a server in this process; `flags` are those of a run."""
    config = RunConfig(**{"model": "gpt-4o-mini", "cache": "off", "max_retries": 0} | flags)
    folders = Folders.of(["output"], needed=False)
    environment = parse_environment(read_variables())
    opened = open_service(config, names, environment, Clock(), most_queued=8, say=lambda _: None)
    async with opened as service, Client(make_server(service, folders)) as client:
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
    assert (asked["minItems"], asked["maxItems"]) == (2, 16)


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
    assert answer["debate"][: len(lines)] == lines


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"team": "surgeons"}, "surgeons"),
        ({"options": ["Retinol"]}, "options"),
        ({"options": ["x"] * 17}, "options"),
        ({"question": ""}, "question"),
        ({"seed": -1}, "seed"),
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
    assert json.loads(record)["status"] == "api_error"


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


async def test_runs_are_compared_as_the_program_compares_them() -> None:
    for name, letters in (("one", "AAAAAAAAAABBBBBBBBBB"), ("two", "AAAAAAAAAAAAAAAAAAAB")):
        write([ours(str(n), "A", letter) for n, letter in enumerate(letters)], f"{name}.json")
    async with connected() as (client, _):
        result = await client.call_tool(
            "compare_runs", {"runs": ["output/one.json", "two.json"], "common": False}
        )
    content = result.structured_content
    assert content is not None, said(result)
    assert [run["accuracy"] for run in content["runs"]] == [0.5, 0.95]
    (pair,) = content["pairs"]
    assert (pair["difference"], pair["is_significant"]) == (pytest.approx(0.45), True)
    assert "two is better than one" in content["verdict"]


async def test_a_file_is_scored_and_errors_are_wrong() -> None:
    write([ours("1", "A", "A"), ours("2", "A", "B"), ours("3", "A", None)])
    async with connected() as (client, _):
        result = await client.call_tool("score_file", {"path": "run.json"})
    content = result.structured_content
    assert content is not None, said(result)
    figures = content["figures"]
    assert (figures["answers"], figures["answered"], figures["correct"]) == (3, 2, 1)
    assert content["statuses"] == {"answered": 2, "api_error": 1}


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


@pytest.fixture
def linked() -> None:
    """A run folder inside, whose records are a link to a file outside."""
    folder = Path("output/linked")
    folder.mkdir(parents=True)
    secret = Path("../secret.jsonl")
    secret.write_text(json.dumps(ours("1", "A", "A") | {"schema_version": "1.6.0"}) + "\n")
    (folder / "samples.jsonl").symlink_to(secret.resolve())
    (folder / "run.json").write_text("{}")


@pytest.mark.usefixtures("linked")
@pytest.mark.parametrize("path", ["output/linked", "linked", "output/linked/run.json"])
async def test_a_run_with_a_link_that_leads_out_is_not_read(path: str) -> None:
    async with connected() as (client, _):
        result = await client.call_tool("score_file", {"path": path})
    assert result.is_error
    assert result.structured_content is None


async def test_what_is_no_result_file_is_said_in_a_line() -> None:
    write([{"a": 1}], "odd.json")
    async with connected() as (client, _):
        result = await client.call_tool("score_file", {"path": "odd.json"})
    assert result.is_error
    assert "output/odd.json" in said(result)
    assert "Traceback" not in said(result)


def test_a_folder_that_is_named_must_exist() -> None:
    with pytest.raises(ConfigError, match="--allow names nowhere"):
        Folders.of(["nowhere"], needed=True)
