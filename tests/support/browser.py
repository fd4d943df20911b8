"""A page in the installed Chromium, without a window, driven by Playwright."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import AsyncIterator

from playwright.async_api import Page, async_playwright, expect

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = next(filter(None, map(shutil.which, _NAMES)), None)
"""The browser; None where no browser is installed."""

_ANSWER_WITHIN = 60_000.0  # ms, on a busy machine


@contextlib.asynccontextmanager
async def open_page() -> AsyncIterator[Page]:
    """An empty page of a new browser, whose caches are empty."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"], timeout=_ANSWER_WITHIN
        )
        async with browser:
            page = await browser.new_page(viewport={"width": 1400, "height": 1000})
            page.set_default_timeout(_ANSWER_WITHIN)
            expect.set_options(timeout=_ANSWER_WITHIN)
            yield page


async def problems(page: Page) -> list[str]:
    """What the page's console said of errors, a script that was refused included."""
    said = await page.console_messages()
    thrown = [str(error) for error in await page.page_errors()]
    return thrown + [message.text for message in said if message.type == "error"]
