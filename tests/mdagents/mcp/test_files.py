"""Files that the tools of `mdagents mcp` read, each in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from mdagents.mcp.reader import FileGate
from tests.mdagents.mcp.test_tools import connected, said
from tests.mdagents.scoring.result_records import ours, write

pytestmark = pytest.mark.process


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


async def test_what_is_no_result_file_is_said_in_a_line() -> None:
    write([{"a": 1}], "odd.json")
    async with connected() as (client, _):
        result = await client.call_tool("score_file", {"path": "odd.json"})
    assert result.is_error
    assert "output/odd.json" in said(result)
    assert "Traceback" not in said(result)


@pytest.fixture
def linked() -> None:
    """Runs with a file or a folder that is a link to one outside, and a pipe."""
    write([ours("1", "A", "A")])
    write([ours("1", "A", "A")], "beside.json")
    line = json.dumps(ours("1", "A", "A")) + "\n"
    outside = Path("../outside").resolve()
    outside.mkdir()
    for name in ("secret.json", "run.json"):
        (outside / name).write_text(line)
    for folder in ("lines", "records", "manifest"):
        Path("output", folder).mkdir()
    Path("output/lines/samples.jsonl").symlink_to(outside / "secret.json")
    Path("output/records/1.json").symlink_to(outside / "secret.json")
    Path("output/manifest/samples.jsonl").write_text(line)
    Path("output/manifest/run.json").symlink_to(outside / "run.json")
    Path("output/beside").symlink_to(outside)
    os.mkfifo("output/pipe.json")


@pytest.mark.usefixtures("linked")
async def test_a_run_with_a_link_that_leads_out_is_refused() -> None:
    async with connected() as (client, _):
        names = ["lines", "records", "manifest", "beside.json", "pipe.json", "run.json"]
        calls = [client.call_tool("score_file", {"path": name}) for name in names]
        *refused, found = await asyncio.gather(*calls)
    for result in refused:
        assert result.is_error
        assert "leads out" in said(result) or "not a regular file" in said(result)
    assert not found.is_error


@pytest.fixture
def odd_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory with a module, a link to itself, and an encoding that is not UTF-8."""
    Path("random.py").write_text("raise SystemExit('a file of the user')")
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    Path("output/run").mkdir(parents=True)
    Path("output/run/again").symlink_to("again")
    write([ours("1", "A", "A", difficulty="mittelmäßig")], "run/samples.json")


@pytest.mark.usefixtures("odd_folder")
async def test_what_is_beside_a_file_changes_nothing() -> None:
    async with connected() as (client, _):
        result = await client.call_tool("score_file", {"path": "run/samples.json"})
    content = result.structured_content
    assert content is not None, said(result)
    assert list(content["by_level"]) == ["mittelmäßig"]


async def test_reading_ends_with_its_time_and_the_call_says_so() -> None:
    write([ours("1", "A", "A")])
    async with connected(reading_seconds=0.05) as (client, _):
        result = await client.call_tool("score_file", {"path": "run.json"})
    assert result.is_error
    assert "reading took longer than 0.05 s" in said(result)


def test_files_that_are_too_large_are_refused(tmp_path: Path) -> None:
    Path(tmp_path, "a.json").write_bytes(b"x" * 600)
    Path(tmp_path, "b.json").write_bytes(b"x" * 600)
    gate = FileGate([tmp_path.resolve()], most_bytes=1000)
    gate("open", (f"{tmp_path}/a.json", "r", 0))
    gate("open", (f"{tmp_path}/a.json", "r", 0))
    with pytest.raises(OSError, match="would have to be read"):
        gate("open", (f"{tmp_path}/b.json", "r", 0))
