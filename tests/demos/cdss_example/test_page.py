"""The page in a browser: what a person sees while a case is worked on, and afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, expect

from demos.cdss_example.cdss import CDSS
from demos.cdss_example.events import (
    CaseBegan,
    CaseEnded,
    Event,
    NodeBegan,
    NodeEnded,
    Recommended,
    Said,
    Summarised,
)
from demos.cdss_example.view.event_log import EventLog
from demos.cdss_example.view.page import PageServer, make_app
from exaid_core import AgentSummary
from mdagents_llm.endpoints import ModelSpec
from mdagents_llm.llm_registry import ModelRegistry
from mdagents_llm.web.address import listen
from mdagents_llm.web.serve import server_of
from tests.demos.cdss_example.team import CASE, RECOMMENDS, exaid_spec, script
from tests.fake_provider import FakeProvider
from tests.support.browser import axe_findings, low_contrasts, problems

pytestmark = pytest.mark.browser

HOSTILE = "</p><img src=x onerror='document.title=1'><script>document.title=1</script>\u202e"
WHOLE: tuple[Event, ...] = (
    CaseBegan("case-1", f"Patient: 58 years {HOSTILE}"),
    NodeBegan(1, "orchestrator"),
    Said(1, "orchestrator", f"Ask the laboratory {HOSTILE}" + "x" * 300),
    NodeEnded(1, "orchestrator"),
    NodeBegan(2, "laboratory"),
    NodeEnded(2, "laboratory", f"500 {HOSTILE}"),
    NodeBegan(3, "orchestrator"),
    NodeEnded(3, "orchestrator"),
    NodeBegan(4, "synthesis"),
    NodeEnded(4, "synthesis"),
    Recommended("", {"urgency": "urgent", "safety_net": HOSTILE}, "cardiology"),
    Summarised(AgentSummary(status_action=f"ECG {HOSTILE}", agents=("laboratory",), clipped=True)),
    CaseEnded(exaid="degraded: 500"),
)


@pytest.fixture
async def server() -> AsyncIterator[tuple[PageServer, str]]:
    """A server in the loop of the test, and its address."""
    place = listen("", 0)
    with place.socket:
        async with PageServer(place, model="openai/gpt-4o-mini") as server:
            yield server, place.url("/")


async def test_a_case_is_seen_while_it_is_worked_on(
    server: tuple[PageServer, str], page: Page, registry: ModelRegistry,
    openai_spec: ModelSpec, provider: FakeProvider,
) -> None:  # fmt: skip
    shown, address = server
    script(provider, ["laboratory", "synthesis"])
    model, writer = registry.model(openai_spec), registry.model(exaid_spec(openai_spec))
    cdss = CDSS(model, buffer_llm=writer, summarizer_llm=writer, on_event=shown.log.add)
    await page.goto(address)
    await expect(page.locator("#state")).to_have_text("waiting for a case")
    with provider.hold(RECOMMENDS):
        case = asyncio.create_task(cdss.process_case(CASE))
        await expect(page.locator(".runs-now")).to_have_attribute("data-node", "synthesis")
        await expect(page.locator("#state")).to_have_text("SynthesisAgent is at work")
        lit = page.locator(".edge.lit")
        await expect(lit).to_have_attribute("data-edge", "orchestrator-synthesis")
        runs = page.locator("[data-node=orchestrator] .runs")
        await expect(runs).to_have_text("2 runs")
        await expect(page.locator("[data-node=cardiology] .runs")).to_have_text("has not run")
        await expect(page.locator("[data-run='2'] p")).to_have_text(
            "Troponin T 86 ng/L is six times the limit of the norm."
        )
    await expect(page.locator(".recommendation")).to_contain_text("ECG now, troponin again.")
    result = await case
    await expect(page.locator("#state")).to_have_text("finished")
    await expect(page.locator(".card")).to_have_count(len(result["agent_summaries"]))
    await expect(page.locator(".card").first).to_contain_text("Orchestrator")
    assert await problems(page) == []


async def test_text_as_it_comes_and_a_page_that_is_late(
    server: tuple[PageServer, str], page: Page
) -> None:
    shown, address = server
    for event in WHOLE[:2]:
        shown.log.add(event)
    await page.goto(address)
    for number in range(3):
        shown.log.add(Said(1, "orchestrator", f"piece {number} "))
        await expect(page.locator("[data-run='1'] p")).to_contain_text(f"piece {number}")
    await page.reload()
    await expect(page.locator("[data-run='1'] p")).to_have_text("piece 0 piece 1 piece 2 ")
    assert await problems(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_hostile_text_is_text_and_all_fits_on_a_phone(
    server: tuple[PageServer, str], page: Page, scheme: str
) -> None:
    shown, address = server
    for event in WHOLE:
        shown.log.add(event)
    await page.set_viewport_size({"width": 400, "height": 800})
    await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    await page.goto(address)
    await expect(page.locator("#state")).to_have_text("finished")
    for place in ("[data-run='1'] p", ".turn .why", ".recommendation dl", ".card dl"):
        await expect(page.locator(place)).to_contain_text("<script>document.title=1</script>")
    await expect(page.locator(".recommendation .note")).to_contain_text("wanted cardiology once")
    await expect(page.locator(".summaries > .note")).to_have_text("EXAID: degraded: 500")
    await expect(page.locator(".node.failed")).to_have_attribute("data-node", "laboratory")
    assert await page.title() == "Clinical decision support"
    assert await page.locator("main img, main script").count() == 0
    assert await page.evaluate("document.documentElement.scrollWidth") <= 400
    assert await low_contrasts(page) == []
    assert await axe_findings(page) == []
    assert await problems(page) == []


async def test_without_exaid(server: tuple[PageServer, str], page: Page) -> None:
    shown, address = server
    for event in (*WHOLE[:4], CaseEnded(exaid="off")):
        shown.log.add(event)
    await page.goto(address)
    await expect(page.locator(".summaries")).to_have_text("EXAIDIt is off.")


async def test_a_case_that_fails_and_the_end_of_the_program(page: Page) -> None:
    place = listen("", 0)
    with place.socket:
        async with PageServer(place, model="m") as server:
            for event in (*WHOLE[:2], CaseEnded(failure="no reply")):
                server.log.add(event)
            await page.goto(place.url("/"))
            state = page.locator("#state")
            await expect(state).to_have_text("failed: no reply")
            await expect(page.locator(".node.failed")).to_have_attribute(
                "data-node", "orchestrator"
            )
    await expect(page.locator("#state")).to_have_text("failed: no reply · the program has ended")


async def test_a_program_that_is_stopped(page: Page) -> None:
    place = listen("", 0)
    with place.socket:
        async with PageServer(place, model="m") as server:
            for event in WHOLE[:2]:
                server.log.add(event)
            await page.goto(place.url("/"))
            await expect(page.locator(".runs-now")).to_have_count(1)
    await expect(page.locator("#state")).to_have_text("stopped: the program has ended")
    await expect(page.locator(".runs-now")).to_have_count(0)


async def test_a_program_that_is_killed_and_another_one_in_its_place(page: Page) -> None:
    place = listen("", 0)
    state = page.locator("#state")
    log = EventLog()
    for event in WHOLE[:2]:
        log.add(event)
    port = place.port
    with place.socket:
        app = make_app(log, model="m")
        killed = server_of(app, 0)
        serving = asyncio.create_task(killed.serve(sockets=[place.socket]))
        await page.goto(place.url("/"))
        await expect(state).to_have_text("Orchestrator is at work")
        killed.should_exit = killed.force_exit = True  # pages are told nothing
        await serving
    await expect(state).to_have_text("Orchestrator is at work · connection lost: trying again")
    await expect(state).to_have_class("failed")
    assert await low_contrasts(page) == []
    again = listen("", port)
    with again.socket:
        async with PageServer(again, model="m") as server:
            server.log.add(WHOLE[0])
            await expect(state).to_have_text("the case is taken")
            await expect(state).to_have_class("")
