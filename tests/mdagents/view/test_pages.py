"""The live view in a browser: what a person sees while a question is answered, and afterwards."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from exaid_core.schema.agent_summary import AgentSummary
from mdagents.agents.case import make_case_id
from mdagents.agents.events import (
    DebateMessage,
    Ended,
    Member,
    Recruited,
    Routed,
    Started,
    Summarised,
    TurnBegan,
    TurnEnded,
)
from mdagents.datasets.questions import Question
from mdagents.live import LIVE_FILE
from mdagents.settings import Difficulty, RoutedBy
from tests.fake_provider import FakeProvider
from tests.mdagents.teams.debates import chatter
from tests.mdagents.view.served import ITEM, feed, serving, view
from tests.support.browser import low_contrasts, problems
from tests.support.trace_events import says
from tests.support.whole_runs import Run

pytestmark = pytest.mark.browser

HOSTILE = "</template><img src=x onerror='document.title=1'><script>document.title=1</script>\u202e"
QUESTION = Question(
    "12", f"A man with fever {HOSTILE}", {"A": "Aspirin", "B": HOSTILE}, "A", {"A": "A", "B": "B"}
)
NURSE, DENTIST = Member("nurse", "Nurse"), Member("dentist", "Dentist", reports_to="Nurse")
BEGINNING = (
    Started(QUESTION),
    Routed(Difficulty.INTERMEDIATE, RoutedBy.FORCED, ""),
    Recruited((NURSE, DENTIST)),
    TurnBegan("nurse", "Nurse", "opinion"),
    TurnBegan("dentist", "Dentist", "opinion"),
)
DEBATE = (
    says(1, "nurse", 1, "The fever points to A.", 1),
    TurnEnded("nurse", "opinion", answer="A", confidence=0.8),
    says(2, "dentist", 2, "I think of B.", 1),
    TurnEnded("dentist", "opinion", answer="B", confidence=0.6),
    TurnBegan("nurse", "Nurse", "round-1-turn-1"),
    says(3, "nurse", 3, "Aspirin lowers the fever, so option A is right.", 1),
    TurnEnded("nurse", "round-1-turn-1"),
    DebateMessage(1, 1, "nurse", "dentist", "Aspirin lowers the fever, so option A is right."),
    TurnBegan("dentist", "Dentist", "round-1-update"),
    says(4, "dentist", 4, "Aspirin is what the fever needs.\nAnswer: A", 1),
    TurnEnded("dentist", "round-1-update", answer="A", confidence=0.9),
)
SUMMARY = AgentSummary(
    status_action="Aspirin lowers the fever.",
    key_findings=f"Fever {HOSTILE[:40]}",
    agents=("nurse",),
    source_seqs=((3, 3),),
    unsupported_terms=("500 mg",),
    alerts=("cardiac arrest",),
    alert_missing=True,
    clipped=True,
)


def address_of(address: str, folder: Path) -> str:
    return f"{address}/runs/{folder.name}/questions/{make_case_id(*ITEM)}"


async def test_a_question_is_seen_as_it_is_answered(unfinished: Path, page: Page) -> None:
    with serving() as address, feed(unfinished) as tell:
        tell(*BEGINNING)
        await page.goto(address_of(address, unfinished))
        state, votes = page.locator("#state"), page.locator("li[data-letter=A] .votes")
        await expect(state).to_contain_text("Nurse, Dentist speak")
        await expect(page.locator(".asked")).to_contain_text(HOSTILE[:30])
        tell(says(1, "nurse", 1, f"The fever {HOSTILE}", 1))
        await expect(page.locator("#turn-0-said")).to_have_text(f"The fever {HOSTILE}")
        tell(says(1, "nurse", 2, " and more", 1))
        await expect(page.locator("#turn-0-said")).to_contain_text("\u202e and more")
        await expect(page.locator("#aloud")).to_contain_text("speak")
        tell(TurnEnded("nurse", "opinion", answer="A", confidence=0.8))
        await expect(votes).to_have_text("1 vote")
        await expect(page.locator("[data-agent=nurse] .holds text")).to_have_text("A")
        tell(DebateMessage(1, 1, "nurse", "dentist", HOSTILE))
        await expect(page.locator(".arrow.lit")).to_have_count(1)
        tell(Summarised(1, SUMMARY.model_copy(update={"source_seqs": ((1, 2),)})))
        card = page.locator("#summary-1")
        await expect(card).to_contain_text("Alert: cardiac arrest")
        await expect(card).to_contain_text("of a part of a long text")
        await expect(card.locator(".nothing")).to_have_count(4)
        await card.hover()
        await expect(page.locator("#turn-0")).to_have_class("turn s0 pointed")
        await expect(page.locator("#rate")).to_be_hidden()
        tell(Ended("A", None))
        await expect(state).to_contain_text("Decided: A, right")
        await expect(page.locator("#rate")).to_be_visible()
        way = f"/runs/{unfinished.name}/questions/{make_case_id(*ITEM)}/rate"
        await expect(page.locator("#rate")).to_have_attribute("href", way)
        await expect(page.locator("#decision")).to_contain_text("It is the right option")
        assert await page.title() == "12 · gpt-4o-mini · sample · basic · 6 questions"
        await page.locator("#moment").fill("0")  # it can be replayed at once
        await expect(page.locator("#end")).to_be_hidden()
        assert await problems(page) == []


async def test_a_page_goes_on_after_the_server_was_killed(unfinished: Path, page: Page) -> None:
    with feed(unfinished) as tell:
        tell(*BEGINNING)
        with view("output") as (process, address):
            await page.goto(address_of(address, unfinished))
            tell(says(1, "nurse", 1, "One,", 1))
            await expect(page.locator("#turn-0-said")).to_have_text("One,")
            process.kill()
            await expect(page.locator("#connection")).to_contain_text("connection lost")
        tell(says(1, "nurse", 2, " two,", 1))
        with view("output", "--view-port", address.rpartition(":")[2].strip("/")):
            await expect(page.locator("#turn-0-said")).to_have_text("One, two,")
            tell(says(1, "nurse", 3, " three", 1))
            await expect(page.locator("#turn-0-said")).to_have_text("One, two, three")
            await expect(page.locator("#connection")).to_be_empty()


async def test_from_the_list_to_the_sentence_that_changed_an_answer_it_is_four_clicks(
    unfinished: Path, page: Page
) -> None:
    with serving() as address, feed(unfinished) as tell:
        tell(*BEGINNING, *DEBATE)
        await page.goto(address)
        await page.click("#running a")
        await page.click("#under-way a")
        await page.click("#strip a.changed")
        await expect(page.locator("#turn-3")).to_be_in_viewport()
        await page.click("#turn-3 .why a")
        await expect(page.locator("#turn-2")).to_be_in_viewport()
        marked = "[...CSS.highlights.get('origin')].map(range => range.toString()).join()"
        assert await page.evaluate(marked) == "Aspirin lowers the fever, so option A is right."
        assert await problems(page) == []


async def test_a_change_without_an_argument_leads_to_the_messages_before_it(
    unfinished: Path, page: Page
) -> None:
    vague = "What do you think of it?"
    debate = [
        DebateMessage(1, 1, "nurse", "dentist", vague)
        if isinstance(event, DebateMessage)
        else says(3, "nurse", 3, vague, 1)
        if getattr(event, "seq", 0) == 3
        else event
        for event in DEBATE
    ]
    with serving() as address, feed(unfinished) as tell:
        tell(*BEGINNING, *debate)
        await page.goto(address_of(address, unfinished))
        await page.click("#turn-3 .why >> text=a message from Nurse")
        await expect(page.locator("#turn-2")).to_be_in_viewport()


async def test_the_summaries_of_what_is_read_are_beside_it(unfinished: Path, page: Page) -> None:
    await page.set_viewport_size({"width": 1300, "height": 500})
    with serving() as address, feed(unfinished) as tell:
        tell(*BEGINNING, *DEBATE)
        for number in range(1, 5):
            of = {"source_seqs": ((number, number),), "agents": ("nurse", "dentist")}
            tell(Summarised(number, SUMMARY.model_copy(update=of)))
        await page.goto(address_of(address, unfinished))
        await page.locator("#turn-3").scroll_into_view_if_needed()
        await page.evaluate("document.getElementById('turn-3').scrollIntoView()")
        await expect(page.locator("#summary-4")).to_have_class("summary near")
        await expect(page.locator("#summary-4")).to_be_in_viewport()


async def test_a_phrase_leads_to_its_sentence(unfinished: Path, page: Page) -> None:
    with serving() as address, feed(unfinished) as tell:
        tell(*BEGINNING, *DEBATE, Summarised(1, SUMMARY))
        await page.goto(address_of(address, unfinished))
        await page.click("#summary-1 a.phrase >> nth=0")
        await expect(page.locator("#turn-2")).to_be_in_viewport()
        marked = "[...CSS.highlights.get('origin')].map(range => range.toString()).join()"
        assert "lowers the fever" in await page.evaluate(marked)


def plan_also(folder: Path, *questions: str) -> None:
    """Add questions to those that a run is to answer: records of others are left out."""
    manifest = json.loads((folder / "run.json").read_text())
    manifest["item_ids"] += questions
    (folder / "run.json").write_text(json.dumps(manifest))


async def test_a_run_is_followed_to_its_end(unfinished: Path, page: Page) -> None:
    with serving() as address, feed(unfinished) as tell:
        plan_also(unfinished, "new one")
        tell(*BEGINNING)
        await page.goto(f"{address}/runs/{unfinished.name}")
        card = page.locator(f"#card-{make_case_id(*ITEM)}")
        await expect(card).to_contain_text("First opinions: Nurse, Dentist")
        rows = page.locator("#list tbody tr")
        decided = await rows.count()
        record = json.loads((unfinished / "samples.jsonl").read_text().splitlines()[0])
        with (unfinished / "samples.jsonl").open("a") as file:
            file.write(json.dumps({**record, "question_id": "new one"}) + "\n")
        tell(Ended("A", None))
        await expect(card).to_have_count(0)
        await expect(rows).to_have_count(decided + 1)
        await expect(page.locator("#list >> text=new one")).to_be_visible()
        manifest = json.loads((unfinished / "run.json").read_text())
        (unfinished / "run.json").write_text(json.dumps({**manifest, "finished": True}))
        (unfinished / LIVE_FILE).unlink()
        await expect(page.locator("#head")).to_contain_text("finished")
        assert await problems(page) == []


async def test_what_the_first_decisions_bring_needs_no_reload(unfinished: Path, page: Page) -> None:
    samples = unfinished / "samples.jsonl"
    record = json.loads(samples.read_text().splitlines()[0])
    samples.write_text("")
    plan_also(unfinished, "new 0", "new 1", "new 2")
    with serving() as address, feed(unfinished) as tell:
        tell(*BEGINNING)
        await page.goto(f"{address}/runs/{unfinished.name}")
        report, levels = page.locator("#report a"), page.locator("#levels")
        await expect(page.locator("#head")).to_contain_text("running")
        await expect(report).to_have_count(0)
        await expect(levels).to_be_hidden()
        for number, level in enumerate(("basic", "advanced", "intermediate")):
            with samples.open("a") as file:
                failed = {"status": "api_error", "predicted": None, "response": None}
                more = {"question_id": f"new {number}", "difficulty": level}
                file.write(json.dumps({**record, **failed, **more}) + "\n")
            tell(TurnBegan("nurse", "Nurse", f"round-{number}"))
            is_filtered = number == 2
            rows = page.locator("#list tbody tr")
            await expect(rows).to_have_count(1 if is_filtered else number + 1)
            await expect(report).to_be_visible()
            if number == 1:  # what is chosen stays so
                await levels.select_option("advanced")
                await expect(page.locator("#list tbody tr >> visible=true")).to_have_count(1)
        await expect(page.locator("#list tbody tr >> visible=true")).to_have_count(1)
        names = ["every level", "basic", "advanced", "intermediate"]
        await expect(levels.locator("option")).to_have_text(names)
        assert await levels.input_value() == "advanced"
        await expect(page.locator("label:has([value='']) .count")).to_have_text("3")
        await expect(page.locator("label:has([value=unanswered]) .count")).to_have_text("3")
        await expect(page.locator("label:has([value=unanswered])")).to_be_visible()
        assert await problems(page) == []


async def test_the_first_run_appears_in_an_empty_list(
    unfinished: Path, page: Page, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with serving(elsewhere) as address:
        await page.goto(address)
        await expect(page.locator("text=There is no run yet")).to_be_visible()
        data_set = page.locator("#of-dataset option").nth(1)
        for number in (1, 2):
            shutil.copytree(unfinished, elsewhere / f"{unfinished.name}-{number}")
            await expect(page.locator("#board tbody tr")).to_have_count(number)
            await expect(data_set).to_have_text(re.compile(rf"^\S+ \({number}\)$"))
        await expect(page.locator("text=There is no run yet")).to_be_hidden()


_SEEN = """seen => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => !seen });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


_STREAM_HAS_ENDED = """() => performance.getEntriesByType("resource").some(
  (one) => one.name.includes("/events"))"""


async def test_any_number_of_tabs_may_be_open(unfinished: Path, page: Page, tmp_path: Path) -> None:
    """A browser opens six connections to a server, and the stream of a tab takes one."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert page.context.browser is not None
    with serving(elsewhere) as address:
        context = await page.context.browser.new_context()
        for _ in range(8):
            tab = await context.new_page()
            await tab.goto(address)
            await expect(tab.locator("text=There is no run yet")).to_be_visible()
            await tab.evaluate(_SEEN, arg=False)
        await tab.wait_for_function(_STREAM_HAS_ENDED)
        shutil.copytree(unfinished, elsewhere / unfinished.name)
        await tab.evaluate(_SEEN, arg=True)
        await expect(tab.locator("#board tbody tr")).to_have_count(1)


@pytest.fixture
def two_runs(provider: FakeProvider, run: Run) -> None:
    """Two finished runs of the same two questions, on which experts debate."""
    chatter(provider)
    for model in ("gpt-4o-mini", "gpt-4o"):
        status, _, err = run("--num-samples", "2", "--difficulty", "intermediate", "--model", model)
        assert status == 0, err


@pytest.mark.usefixtures("two_runs")
async def test_a_finished_question_is_replayed_and_runs_are_compared(page: Page) -> None:
    with serving() as address:
        await page.goto(address)
        await page.click("#board tbody tr:nth-child(2) a")
        heading = page.locator("#list th").first
        for direction in ("ascending", "descending"):
            await heading.locator("button").click()
            await expect(heading).to_have_attribute("aria-sort", direction)
        await page.click("#list tbody tr:nth-child(1) a")
        await expect(page.locator("h1")).to_contain_text("Question sample-002")
        turns = page.locator(".turn:visible")
        count = await turns.count()
        assert count > 4  # more than opinions and the decision
        await page.locator("#moment").fill("0")
        assert await turns.count() < count
        await expect(page.locator("#end")).to_be_hidden()
        await page.locator("#moment").fill(await page.locator("#moment").get_attribute("max") or "")
        assert await turns.count() == count
        await page.keyboard.press("Escape")  # leaves the slider, as any field
        first = page.url
        await page.keyboard.press("j")
        await expect(page).not_to_have_url(first)
        await expect(page.locator("h1")).to_contain_text("Question sample-001")  # next of the list
        await expect(page.locator("#replay")).to_be_visible()  # its scripts have run
        await page.keyboard.press("Escape")
        await expect(heading).to_have_attribute("aria-sort", "descending")
        await expect(page.locator("#list tbody a").first).to_have_text("sample-002")
        assert await problems(page) == []
        await page.goto(address)
        for box in await page.locator("#board [type=checkbox]").all():
            await box.check()
        await page.click("#compare button")
        await expect(page.locator("h1")).to_contain_text("· 2 questions")
        assert await problems(page) == []


@pytest.mark.usefixtures("two_runs")
async def test_the_table_of_runs_is_saved_as_excel_reads_it(page: Page) -> None:
    """Without a byte order mark, Excel reads another encoding than UTF-8."""
    with serving() as address:
        await page.goto(address)
        await page.click("nav.page .menu > summary")
        async with page.expect_download() as download:
            await page.click("[data-export=csv]")
        first, *rows = lines_of(await (await download.value).path())
    assert first.startswith(b'\xef\xbb\xbf"model","rank"')
    assert sorted(row.split(b",")[0] for row in rows) == [b'"gpt-4o"', b'"gpt-4o-mini"']


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1000, 1700])
async def test_pages_fit_the_window_and_can_be_read(
    unfinished: Path, page: Page, theme: str, width: int
) -> None:
    await page.set_viewport_size({"width": width, "height": 900})
    await page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    with serving() as address, feed(unfinished) as tell:
        tell(*BEGINNING, *DEBATE, Summarised(1, SUMMARY))
        run = f"{address}/runs/{unfinished.name}"
        for url in (address, run, address_of(address, unfinished)):
            await page.goto(url)
            assert await page.evaluate("document.documentElement.scrollWidth") <= width, url
            assert await page.evaluate(UNNAMED) == [], url
            assert await low_contrasts(page) == [], url


UNNAMED = """() => [...document.querySelectorAll("a[href], button, input")]
  .filter(e => e.checkVisibility() && !(e.textContent.trim() || e.ariaLabel || e.labels?.length))
  .map(e => e.outerHTML.slice(0, 100))"""
"""What can be used and has no name."""
