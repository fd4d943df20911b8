"""A page whose server was away, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect

from mdagents.agents.case import make_case_id
from mdagents.agents.events import Started, TurnBegan
from mdagents.datasets.questions import Question
from mdagents.live import LIVE_FILE
from tests.mdagents.view.served import ITEM, feed, serving
from tests.support.browser import CHROMIUM, open_page
from tests.support.trace_events import says

pytestmark = pytest.mark.browser

QUESTION = Question("12", "Why?", {"A": "One", "B": "Two"}, "A", {"A": "B", "B": "A"})
CARD = f"#card-{make_case_id(*ITEM)}"


@pytest.mark.skipif(CHROMIUM is None, reason="no browser is installed")
async def test_what_is_over_when_the_server_comes_back_leaves_the_page(unfinished: Path) -> None:
    with feed(unfinished) as tell:
        tell(Started(QUESTION), TurnBegan("nurse", "Nurse", "opinion"))
        tell(says(2, "nurse", 5, "Fever", 1))
        async with open_page() as page, open_page() as question:
            with serving() as address:
                port = int(address.rpartition(":")[2])
                run = f"{address}/runs/{unfinished.name}"
                await page.goto(run)
                await question.goto(f"{run}/questions/{make_case_id(*ITEM)}")
                await expect(page.locator(CARD)).to_be_visible()
                await expect(question.locator("#turn-0-said")).to_have_text("Fever")
            for one in (page, question):
                await expect(one.locator("#connection")).to_contain_text("connection lost")
            (unfinished / LIVE_FILE).unlink()
            with feed(unfinished) as tell_again, serving(port=port):
                tell_again(*[Started(QUESTION)] * 9)
                await expect(question.locator("#connection")).to_be_empty()
                await expect(question.locator("#turn-0")).to_have_count(0)
                await expect(page.locator("#connection")).to_be_empty()
            (unfinished / LIVE_FILE).unlink()
            with serving(port=port):
                await expect(page.locator(CARD)).to_have_count(0)
