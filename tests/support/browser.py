"""A page in the installed Chromium, without a window, driven by Playwright."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import AsyncIterator
from importlib.resources import files

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


async def choose_theme(page: Page, theme: str) -> None:
    """Press the page's theme button until it says `system`, `light` or `dark`."""
    button = page.locator("[data-theme-switch]")
    for _ in range(3):
        if await button.get_attribute("aria-label") == f"Theme: {theme}":
            return
        await button.click()
    raise AssertionError(f"there is no theme {theme}")


async def problems(page: Page) -> list[str]:
    """What the page's console said of errors, a script that was refused included."""
    said = await page.console_messages()
    thrown = [str(error) for error in await page.page_errors()]
    return thrown + [message.text for message in said if message.type == "error"]


async def axe_findings(page: Page) -> list[str]:
    """What axe-core finds on a page: rule and elements."""
    axe = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
    await page.evaluate(axe)  # past the policy of the page, which allows its own scripts only
    found: list[str] = await page.evaluate(_AXE)
    return found


async def low_contrasts(page: Page) -> list[str]:
    """Texts whose contrast is below that of WCAG 2.2, level AA (1.4.3)."""
    low: list[str] = await page.evaluate(_CONTRAST)
    return low


_AXE = """async () => (await axe.run()).violations.map(
  (found) => `${found.id}: ${found.nodes.map((node) => node.html.slice(0, 120)).join(" | ")}`)"""

_CONTRAST = """() => {
  const light = (color) => {
    const parts = color.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255);
    const [r, g, b] = parts.map((p) => (p <= 0.04045 ? p / 12.92 : ((p + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    const color = getComputedStyle(element).backgroundColor;
    return color === "rgba(0, 0, 0, 0)" ? ground(element.parentElement) : color;
  };
  const low = [];
  for (const element of document.querySelectorAll("body *")) {
    const says = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!says || !element.checkVisibility() || element.closest("svg")) continue;
    const [a, b] = [getComputedStyle(element).color, ground(element)].map(light);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.push(`${element.tagName} ${element.className} ${ratio.toFixed(2)}`);
  }
  return low;
}"""
