"""The pictures of the README: made of an example, and shown as the pages are now."""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from PIL import Image, PngImagePlugin
from playwright.async_api import Page

from exaid_core.schema.agent_summary import AgentSummary
from mdagents.agents.case import make_case_id
from mdagents.agents.events import (
    DebateMessage,
    Event,
    Member,
    Recruited,
    Routed,
    Started,
    Summarised,
    TurnBegan,
    TurnEnded,
)
from mdagents.cli.score import main as score
from mdagents.datasets.questions import Question
from mdagents.live import LIVE_FILE, LiveFeed
from mdagents.records.manifest import Invocation, RunManifest
from mdagents.settings import Difficulty, RoutedBy
from mdagents_llm.clock import epoch_ms
from tests.conftest import REPOSITORY
from tests.mdagents.scoring.result_records import ours, write
from tests.mdagents.view.served import ITEM, serving
from tests.support.browser import CHROMIUM, open_page
from tests.support.trace_events import says

pytestmark = pytest.mark.browser

PICTURES = REPOSITORY / "docs" / "images"
_NAME = "example_debate"
_STARTED = 1_790_000_000_000  # ms

QUESTION = Question(
    ITEM[0],
    "A 34-year-old woman has had attacks of pounding headache, sweating and palpitations for three "
    "months. Between them she feels well. Her blood pressure is 194/112 mm Hg during an attack and "
    "128/82 mm Hg afterwards. Which test confirms the most likely diagnosis?",
    {
        "A": "Thyroid-stimulating hormone in serum",
        "B": "Plasma free metanephrines",
        "C": "Ambulatory electrocardiogram over 24 hours",
        "D": "Aldosterone to renin ratio",
    },
    "B",
    {letter: letter for letter in "ABCD"},
)
_ENDOCRINE, _HEART, _PRIMARY = (
    "expert-1-endocrinologist",
    "expert-2-cardiologist",
    "expert-3-internist",
)
_ARGUMENT = (
    "An arrhythmia would not raise the pressure to 194/112 mm Hg. Headache, sweating and "
    "palpitations that come in attacks are the triad of a catecholamine-secreting tumour: measure "
    "plasma free metanephrines (B) before any imaging."
)


def _told() -> list[tuple[int, Event]]:
    """(ms since the start, what happens)."""
    return [
        (0, Started(QUESTION)),
        (900, Routed(Difficulty.INTERMEDIATE, RoutedBy.ROUTER, "paroxysmal hypertension")),
        (1000, TurnBegan("recruiter", "Recruiter", "recruit")),
        (
            2400,
            says(1, "recruiter", 1, "An endocrinologist, a cardiologist and an internist.", 1),
        ),
        (2500, TurnEnded("recruiter", "recruit")),
        (
            2500,
            Recruited(
                (
                    Member(_ENDOCRINE, "Endocrinologist"),
                    Member(_HEART, "Cardiologist", reports_to="Internist"),
                    Member(_PRIMARY, "Internist"),
                )
            ),
        ),
        (2600, TurnBegan(_ENDOCRINE, "Endocrinologist", "opinion")),
        (2600, TurnBegan(_HEART, "Cardiologist", "opinion")),
        (2600, TurnBegan(_PRIMARY, "Internist", "opinion")),
        (5200, says(2, _ENDOCRINE, 2, "Paroxysmal hypertension with the triad.\nAnswer: B", 1)),
        (5300, TurnEnded(_ENDOCRINE, "opinion", answer="B", confidence=0.9)),
        (
            5600,
            says(3, _HEART, 3, "Palpitations in attacks suggest an arrhythmia.\nAnswer: C", 1),
        ),
        (5700, TurnEnded(_HEART, "opinion", answer="C", confidence=0.6)),
        (6100, says(4, _PRIMARY, 4, "The attacks point to the adrenal medulla.\nAnswer: B", 1)),
        (6200, TurnEnded(_PRIMARY, "opinion", answer="B", confidence=0.7)),
        (6300, TurnBegan(_ENDOCRINE, "Endocrinologist", "round-1-turn-1")),
        (8600, says(5, _ENDOCRINE, 5, _ARGUMENT, 1)),
        (8700, TurnEnded(_ENDOCRINE, "round-1-turn-1")),
        (8700, DebateMessage(1, 1, _ENDOCRINE, _HEART, _ARGUMENT)),
        (8800, TurnBegan(_HEART, "Cardiologist", "round-1-update")),
        (
            10900,
            says(
                6,
                _HEART,
                6,
                "An arrhythmia does not explain a pressure of 194/112 mm Hg. I agree on plasma "
                "free metanephrines.\nAnswer: B",
                1,
            ),
        ),
        (11000, TurnEnded(_HEART, "round-1-update", answer="B", confidence=0.85)),
        (
            12200,
            Summarised(
                1,
                AgentSummary(
                    status_action="The panel works up paroxysmal hypertension of 194/112 mm Hg.",
                    key_findings="Triad of headache, sweating and palpitations in attacks",
                    differential_rationale="Catecholamine-secreting tumour; an arrhythmia would "
                    "not raise the pressure",
                    uncertainty_confidence="Cardiologist changed from C to B",
                    recommendation_next_step="Measure plasma free metanephrines before any imaging",
                    agents=(_ENDOCRINE, _HEART),
                    source_seqs=((5, 6),),
                ),
            ),
        ),
        (12300, TurnBegan("moderator", "Moderator", "moderate")),
        (13100, says(7, "moderator", 7, "All three experts now hold B; the attacks with", 1)),
    ]


def _write_example(output: Path) -> None:
    """Write a run that is at work on the question."""
    folder = output / _NAME
    folder.mkdir(parents=True)
    manifest = RunManifest(
        name=_NAME, config_hash="", config={}, models={"expert": "gpt-4o-mini"}, dataset="medqa",
        dataset_path="", dataset_sha256="", dataset_notice="", model_notice="",
        item_ids=[QUESTION.id], items_hash="", prompt_hashes={}, git_revision=None,
        package_versions={}, options={"difficulty": "intermediate"},
        invocations=[Invocation(started_at="2026-11-22T12:00:00+00:00")],
    )  # fmt: skip
    (folder / "run.json").write_text(manifest.model_dump_json())
    now = _STARTED
    with LiveFeed(folder / LIVE_FILE, lambda: now, print) as feed:
        for at, event in _told():
            now = _STARTED + at
            feed.happened(ITEM, event)
            feed.write()
    os.utime(folder / LIVE_FILE, (epoch_ms() / 1000 + 600,) * 2)


@asynccontextmanager
async def _live(page: Page) -> AsyncIterator[None]:
    with tempfile.TemporaryDirectory() as folder:
        _write_example(Path(folder))
        with serving(Path(folder)) as address:
            await page.goto(f"{address}/runs/{_NAME}/questions/{make_case_id(*ITEM)}")
            await page.click("#turn-5 .why a")
            yield


@asynccontextmanager
async def _report(page: Page) -> AsyncIterator[None]:
    chance, here = random.Random(7), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            write([_answered(chance, number) for number in range(1, 201)], "example.json")
            assert score(["--html", "--input", "output/example.json"]) == 0
            await page.goto((Path(folder) / "evaluation" / "example.html").as_uri())
            yield
        finally:
            os.chdir(here)


def _answered(chance: random.Random, number: int) -> dict[str, object]:
    level = chance.choice(["basic", "basic", "intermediate", "advanced"])
    tokens = {"basic": 2_300, "intermediate": 26_000, "advanced": 9_500}[level]
    gold = chance.choice("ABCD")
    predicted = gold if chance.random() < 0.72 else chance.choice("ABCD")
    held = [chance.choice([gold, predicted, predicted]) for _ in range(3)]
    return ours(
        str(number), gold, predicted,
        question=f"Question {number} of an example with made-up answers",
        difficulty=level,
        confidence=round(chance.uniform(0.5, 1), 2),
        token_usage={"total_tokens": int(tokens * chance.uniform(0.7, 1.4)), "cost_usd": 0.001},
        opinions=[{"agent": f"expert-{n}", "answer": letter} for n, letter in enumerate(held)],
    )  # fmt: skip


PAGES = {"live_view": (_live, 1_500, 860), "report": (_report, 1_300, 900)}


@pytest.mark.parametrize("name", PAGES)
async def test_the_readme_shows_pages_as_they_are(name: str) -> None:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    make, width, height = PAGES[name]
    shown = Image.open(PICTURES / f"{name}.png")
    async with open_page() as page:
        await page.set_viewport_size({"width": width, "height": height})
        async with make(page):
            text = await page.locator("main").inner_text()
    assert isinstance(shown, PngImagePlugin.PngImageFile)
    assert shown.text["Description"] == text, f"run python -m {__name__}"


async def _draw() -> None:
    for name, (make, width, height) in PAGES.items():
        async with open_page() as page:
            await page.set_viewport_size({"width": width, "height": height})
            async with make(page):
                await page.wait_for_timeout(1_500)  # what moves has come to rest
                path = PICTURES / f"{name}.png"
                await page.evaluate("scrollTo(0, 0)")
                await page.screenshot(path=path)
                text = PngImagePlugin.PngInfo()
                text.add_itxt("Description", await page.locator("main").inner_text())
        picture = Image.open(path).convert("RGB").quantize(128, dither=Image.Dither.NONE)
        picture.save(path, pnginfo=text, optimize=True)


if __name__ == "__main__":
    asyncio.run(_draw())
