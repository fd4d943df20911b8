"""The documentation site builds without a warning, and works from the disk."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.conftest import REPOSITORY
from tests.support.browser import CHROMIUM, open_page

pytestmark = pytest.mark.process

LIMIT = 120
"""Seconds that a build may take; it takes about 10 on two cores."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs-build` builds it."""
    folder = tmp_path_factory.mktemp("site")
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=REPOSITORY,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    assert time.monotonic() - start < LIMIT
    return folder


def test_no_page_asks_another_host(site: Path) -> None:
    asked = re.compile(
        r"<(?:script|img|iframe|source)[^>]+src=\"?(?:https?:)?//|<link[^>]+href=\"?https?://"
    )
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        found = asked.findall(page.read_text(encoding="utf-8"))
        assert found == [], page


def test_blocks_are_those_that_github_shows(site: Path) -> None:
    """Lists, tables and blocks of code are not lost between two readings of Markdown."""
    parser = MarkdownIt("commonmark").enable("table")
    differing = []
    for source in sorted(site.rglob("*.md")):
        name = source.relative_to(site).as_posix()
        if "reference/api/" in name or name.startswith("notebooks/"):
            continue
        page = (
            source.with_name("index.html")
            if source.name == "README.md"
            else source.with_suffix(".html")
        )
        article = re.search(r"<article.*?</article>", page.read_text(encoding="utf-8"), re.DOTALL)
        assert article is not None
        expected = parser.render(source.read_text(encoding="utf-8"))
        for tag in ("li", "table", "tr", "h2", "h3", "pre"):
            counts = [len(re.findall(rf"<{tag}[ >]", text)) for text in (expected, article[0])]
            if counts[0] != counts[1]:
                differing.append(f"{name}: {counts[0]} <{tag}> on GitHub, {counts[1]} in the site")
    assert differing == []


def test_pages_for_language_models(site: Path) -> None:
    index = (site / "llms.txt").read_text(encoding="utf-8")
    linked = re.findall(r"\]\(([^)]+)\)", index)
    assert {"index.md", "reference/cli.md", "explanation/scoring.md"} <= set(linked)
    assert [name for name in linked if not (site / name).is_file()] == []
    assert "# Command line" in (site / "llms-full.txt").read_text(encoding="utf-8")


def test_the_api_has_all_public_names(site: Path) -> None:
    for package in ("mdagents", "mdagents_llm", "exaid_core"):
        page = (site / "reference" / "api" / f"{package}.html").read_text(encoding="utf-8")
        module = __import__(package)
        headings = set(re.findall(r"<h2 id=\"?([\w.]+)", page))
        names = {heading.rpartition(".")[2] for heading in headings}
        assert set(module.__all__) <= names, set(module.__all__) - names


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
async def test_search_works_from_the_disk(site: Path) -> None:
    async with open_page() as page:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        await page.goto((site / "index.html").as_uri())
        await page.locator("input.md-search__input").press_sequentially("wilson")
        await page.locator('.md-search-result__link[href*="scoring.html"]').first.wait_for()
        assert [url for url in asked if url.startswith("http")] == []
