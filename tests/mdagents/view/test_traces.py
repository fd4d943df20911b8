"""Recorded traces in a browser, by the program's own command."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect

from mdagents.view.cli import main
from tests.conftest import REPOSITORY
from tests.mdagents.view.served import view
from tests.support.browser import CHROMIUM, open_page, problems

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
]
(RUN,) = (REPOSITORY / "mdagents/examples").glob("*/run.json")


async def test_a_trace_plays_at_its_speed_pauses_and_seeks() -> None:
    traces = str(RUN.parent / "traces")
    with view(traces, "--speed", "3", "--no-open") as (_, address):
        async with open_page() as page:
            await page.goto(address)
            await expect(page.locator("tbody tr")).to_have_count(10)
            await page.get_by_role("link", name="case-kawasaki").click()
            await expect(page.locator("#speed")).to_have_value("3")
            await expect(page.locator("#play")).to_have_attribute("aria-label", "pause")
            await expect(page.locator(".turn:not(.future)")).not_to_have_count(0)
            await page.locator("#play").click()
            await expect(page.locator("#play")).to_have_attribute("aria-label", "play")
            slider = page.locator("#moment")
            await slider.fill("0")
            await expect(page.locator(".summary:not(.future)")).to_have_count(0)
            await slider.fill(str(await slider.get_attribute("max")))
            await expect(page.locator(".summary:not(.future)")).to_have_count(3)
            await expect(page.locator("#state")).to_contain_text("recorded debate")
            assert await problems(page) == []


async def test_the_examples_are_runs_of_this_program() -> None:
    with view("--examples", "--no-open") as (_, address):
        async with open_page() as page:
            await page.goto(f"{address}/runs/{RUN.parent.name}")
            await expect(page.locator("#rows tr, tbody tr").first).to_be_visible()
            assert await problems(page) == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["{}/none.trace.jsonl.gz"], "there is no file or folder"),
        (["{}", "{}"], "several folders: only for traces"),
        (["{}", "--speed", "2"], "--speed: only for traces"),
        (["{}/a.trace.jsonl.gz"], "line 1"),
        (["--examples", "{}"], "leave the FOLDER out"),
    ],
)
def test_wrong_use_is_told_in_one_line(
    arguments: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.trace.jsonl.gz").write_bytes(b"damaged")
    folder = tmp_path / "runs"
    folder.mkdir()
    at = folder if "a.trace" not in arguments[0] else tmp_path
    assert main([argument.format(at) for argument in arguments]) == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1
