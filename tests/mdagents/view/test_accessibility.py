"""What axe-core finds on the pages, light and dark, and what one can do without a mouse."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Page, Route, expect

from mdagents.cli.score import main as score
from tests.conftest import REPOSITORY
from tests.fake_provider import FakeProvider
from tests.mdagents.teams.debates import chatter
from tests.mdagents.view.served import serving, view
from tests.support.browser import CHROMIUM, axe_findings, problems
from tests.support.whole_runs import Run

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
]


(TRACES,) = (REPOSITORY / "mdagents" / "examples").glob("*/traces")


@pytest.fixture
def names(provider: FakeProvider, run: Run) -> list[str]:
    """Two finished runs of the same questions, on which experts debate."""
    chatter(provider)
    for model in ("gpt-4o-mini", "gpt-4o"):
        status, _, err = run("--num-samples", "2", "--difficulty", "intermediate", "--model", model)
        assert status == 0, err
    return sorted(path.parent.name for path in Path("output").glob("*/run.json"))


async def test_axe_finds_nothing_on_any_page(names: list[str], page: Page) -> None:
    first, second = names
    with serving() as address:
        await page.goto(f"{address}/runs/{first}")
        link = await page.locator("#list tbody a").first.get_attribute("href")
        pages = ["/", f"/runs/{first}", link, f"{link}/rate", f"/runs/{first}/report"]
        for path in [*pages, f"/compare?run={first}&run={second}", "/runs/none"]:
            await page.goto(f"{address}{path}")
            for theme in ("light", "dark"):
                await page.emulate_media(color_scheme=theme)
                assert await axe_findings(page) == [], (path, theme)


async def test_axe_finds_nothing_on_recorded_traces(page: Page) -> None:
    with view(str(TRACES), "--no-open") as (_, address):
        for path in ("/", "/traces/1"):
            await page.goto(f"{address}{path}")
            for theme in ("light", "dark"):
                await page.emulate_media(color_scheme=theme)
                assert await axe_findings(page) == [], (path, theme)


async def test_a_question_is_found_and_opened_by_keys_alone(names: list[str], page: Page) -> None:
    with serving() as address:
        await page.goto(address)
        for key in ("j", "Enter"):
            await page.keyboard.press(key)
        await expect(page.locator("#list tbody tr")).to_have_count(2)
        await page.keyboard.press("/")
        await page.keyboard.type("sample-002")
        await expect(page.locator("#list tbody tr")).to_have_count(1)
        await page.keyboard.press("Escape")
        for key in ("j", "Enter"):
            await page.keyboard.press(key)
        await expect(page.locator("h1")).to_contain_text("Question sample-002")
        await page.keyboard.press("Escape")  # back to the list as it was
        await expect(page.locator("#list tbody tr")).to_have_count(1)
        assert await problems(page) == []


async def test_a_list_that_is_laid_out_again_keeps_the_focus(names: list[str], page: Page) -> None:
    again = """(id) => document.getElementById(id).dispatchEvent(new Event("rows-changed"))"""
    with serving() as address:
        await page.goto(address)
        await page.keyboard.press("j")
        focused = page.locator("#board a:focus")
        await expect(focused).to_have_count(1)
        await page.evaluate(again, "board")
        await expect(focused).to_have_count(1)
        await page.keyboard.press("Enter")
        await expect(page.locator("#list tbody tr")).to_have_count(2)
        held = asyncio.Event()

        async def hold(route: Route) -> None:
            await held.wait()
            await route.continue_()

        await page.route("**/questions?*", hold)
        async with page.expect_response("**/questions?*"):
            async with page.expect_request("**/questions?*"):
                await page.evaluate(again, "list")
            await page.keyboard.press("j")  # while the server is asked
            held.set()
        await expect(page.locator("#list:not([aria-busy]) a:focus")).to_have_count(1)


async def test_nothing_moves_where_motion_is_not_wanted(names: list[str], page: Page) -> None:
    await page.emulate_media(reduced_motion="reduce")
    moving = """() => [...document.querySelectorAll("*")]
      .filter((e) => getComputedStyle(e).animationName !== "none").length"""
    with serving() as address:
        await page.goto(f"{address}/runs/{names[0]}")
        await page.locator("#list tbody a").first.click()
        assert await page.evaluate(moving) == 0
        await page.emulate_media(media="print")
        await expect(page.locator("#replay")).to_be_hidden()


@pytest.fixture
def audit_page(provider: FakeProvider, run: Run) -> str:
    """The address of the page of an audit with a control."""
    chatter(provider)
    flags = ("--num-samples", "8", "--difficulty", "intermediate")
    assert run(*flags)[0] == run(*flags, "--peers", "none")[0] == 0
    runs = [str(path) for path in Path("output").glob("*.json")]
    assert score(["--audit", *runs, "--html"]) == 0
    (written,) = Path("evaluation").glob("audit_*.html")
    return written.resolve().as_uri()


async def test_axe_finds_nothing_on_an_audit_and_its_links_open_questions(
    audit_page: str, page: Page
) -> None:
    await page.goto(audit_page)
    for theme in ("light", "dark"):
        await page.emulate_media(color_scheme=theme)
        assert await axe_findings(page) == [], theme
    lesson = page.locator(".lessons a").first
    name = await lesson.inner_text()
    await lesson.click()
    await expect(page.locator("#case-title")).to_contain_text(name)
    assert await problems(page) == []
