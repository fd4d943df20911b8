"""Pictures of questions in the live view: served from the run's folder alone, and seen at once."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.async_api import Page, expect

from mdagents.agents.case import make_case_id
from mdagents.agents.events import Ended, Event, Started, TurnBegan, TurnEnded
from mdagents.datasets.pictures.question_picture import QuestionPicture
from mdagents.datasets.questions import Question
from mdagents.live import LIVE_FILE
from mdagents.records.pictures import PICTURES, keep_picture
from mdagents_llm.pictures import Picture
from tests.mdagents.view.served import ITEM, feed, serving
from tests.support.browser import low_contrasts, problems
from tests.support.run_pictures import FORMS, as_sent, noise

pytestmark = pytest.mark.process

CAPTION = "Lateral view\"><img src=x onerror='document.title=1'>"
FOLDER_OF_USER = Path("/home/a user/set")
PLAIN = Question("12", "What is shown?", {"A": "", "B": ""}, "B", {"A": "A", "B": "B"})
ASKED = replace(
    PLAIN,
    pictures=(
        QuestionPicture(FOLDER_OF_USER / "scan.png", caption=CAPTION),
        QuestionPicture(None, content=b"the content of a record"),
        QuestionPicture(FOLDER_OF_USER / "a.png", option="A"),
        QuestionPicture(FOLDER_OF_USER / "b.png", option="B"),
    ),
)
SENT = tuple(as_sent(noise(width, 300, width)) for width in (900, 40, 301, 302))


def started(folder: Path, question: Question = ASKED, sent: tuple[Picture, ...] = SENT) -> Event:
    """The start of a question, whose pictures the run has copied before."""
    for picture in sent:
        keep_picture(folder, picture)
    return Started(question, sent)


def page_of(address: str, folder: Path) -> str:
    return f"{address}/runs/{folder.name}/questions/{make_case_id(*ITEM)}"


def test_the_feed_names_pictures_and_neither_their_content_nor_folders(unfinished: Path) -> None:
    with serving() as address, feed(unfinished) as tell:
        tell(started(unfinished))
        told = (unfinished / LIVE_FILE).read_text()
        assert str(FOLDER_OF_USER) not in told
        assert base64.b64encode(b"the content of a record").decode() not in told
        assert "the content of a record" not in told
        assert SENT[0].base64[:50] not in told
        api = page_of(f"{address}/api", unfinished).replace("/api/api", "/api")
        case = httpx2.get(api).json()
        assert [(one["name"], one["option"], one["width"]) for one in case["pictures"]] == [
            ("scan.png", "", 900), ("picture 2 of the record", "", 40),
            ("a.png", "A", 301), ("b.png", "B", 302),
        ]  # fmt: skip
        tell(Started(PLAIN))  # asked again, as after an interruption
        assert httpx2.get(api).json()["pictures"] == []


def test_a_picture_is_served_with_its_type_and_kept_by_the_browser(unfinished: Path) -> None:
    with serving() as address:
        for form, media_type in FORMS.items():
            picture = as_sent(noise(30, 20), form)
            keep_picture(unfinished, picture)
            (file,) = (unfinished / PICTURES).glob(f"{picture.sha256}.*")
            answer = httpx2.get(f"{address}/runs/{unfinished.name}/pictures/{file.name}")
            assert answer.content == base64.b64decode(picture.base64)
            assert answer.headers["content-type"] == media_type
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cache-control"] == "private, max-age=86400, immutable"
            assert "sandbox" in answer.headers["content-security-policy"]
            assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_nothing_but_pictures_of_the_run_is_served(unfinished: Path) -> None:
    picture = as_sent(noise(30, 20))
    keep_picture(unfinished, picture)
    (file,) = (unfinished / PICTURES).iterdir()
    secret = unfinished.parent / f"{'0' * 64}.png"
    secret.write_text("secret")
    (unfinished / PICTURES / f"{'1' * 64}.png").symlink_to(secret.absolute())
    (unfinished / PICTURES / f"{'2' * 64}.png").mkdir()
    (unfinished / PICTURES / f"{'3' * 64}.svg").write_text("<svg/>")
    (unfinished / PICTURES / f"{'4' * 64}.new").write_text("half")
    names = [
        f"{'1' * 64}.png", f"{'2' * 64}.png", f"{'3' * 64}.svg", f"{'4' * 64}.new",
        f"{'5' * 64}.png",
        "../run.json", "..%2frun.json", "%2e%2e%2frun.json", "..%252frun.json", "..%5crun.json",
        f"..%2f..%2f{'0' * 64}.png", "%2fetc%2fpasswd", file.name.upper(), f"{file.name}%00",
        f"{file.name}%0a", file.stem, f"{file.stem}.jpg", f"x{file.name}", "",
    ]  # fmt: skip
    with serving() as address:
        for name in names:
            answer = httpx2.get(f"{address}/runs/{unfinished.name}/pictures/{name}")
            assert answer.status_code == 404, name
            assert "secret" not in answer.text
        assert httpx2.get(f"{address}/runs/nope/pictures/{file.name}").status_code == 404
        assert httpx2.get(f"{address}/runs/..%2f/pictures/{file.name}").status_code == 404
    elsewhere = Path("elsewhere")
    (unfinished / PICTURES).rename(elsewhere)
    (unfinished / PICTURES).symlink_to(elsewhere.absolute())
    with serving() as address:
        url = f"{address}/runs/{unfinished.name}/pictures/{file.name}"
        assert httpx2.get(url).status_code == 404


def test_a_picture_needs_the_token_and_the_host(unfinished: Path) -> None:
    picture = as_sent(noise(30, 20))
    keep_picture(unfinished, picture)
    with serving(token="s3cret") as address:
        url = f"{address}/runs/{unfinished.name}/pictures/{picture.sha256}.png"
        assert httpx2.get(url).status_code == 401
        assert httpx2.get(f"{url}?token=s3cret").status_code == 200
        assert httpx2.get(url, headers={"host": "evil.example"}).status_code == 400


WITHOUT_SIZE = """() => [...document.images]
  .filter(e => !e.alt || !e.getAttribute("width") || !e.getAttribute("height"))
  .map(e => e.outerHTML)"""
"""Pictures whose place on the page is not known before they are loaded, or that are not told of."""


@pytest.mark.browser
@pytest.mark.parametrize(("theme", "width"), [("light", 1500), ("dark", 400)])
async def test_pictures_are_seen_while_a_question_is_answered(
    unfinished: Path, page: Page, theme: Any, width: int
) -> None:
    await page.emulate_media(color_scheme=theme)
    await page.set_viewport_size({"width": width, "height": 900})
    with serving() as address, feed(unfinished) as tell:
        tell(started(unfinished), TurnBegan("nurse", "Nurse", "opinion"))
        for url in (f"{address}/runs/{unfinished.name}", page_of(address, unfinished)):
            await page.goto(url)
            await expect(page.locator(".opens img")).to_have_count(4)
            shown = "all => Promise.all(all.map(e => e.decode())).then(() => all.length)"
            assert await page.locator(".opens img").evaluate_all(shown) == 4
            assert await page.evaluate(WITHOUT_SIZE) == []
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
            assert await low_contrasts(page) == []
        first = page.locator("#pictures img").first
        assert await first.get_attribute("alt") == f"Picture 1 of question 12: {CAPTION}"
        box = await first.bounding_box()
        assert box is not None
        assert max(box["width"], box["height"]) <= 322
        await expect(page.locator(".options li").nth(1).locator("img")).to_have_count(1)
        # The dialog, by keyboard alone; the options are sent anew while it is open.
        await page.locator(".options .opens").first.focus()
        await page.keyboard.press("Enter")
        dialog, title = page.locator("#picture"), page.locator("#picture-title")
        await expect(title).to_have_text("Picture 3 of question 12")
        tell(TurnEnded("nurse", "opinion", answer="B"), Ended("B", None))
        await expect(page.locator(".options .answer")).to_have_count(1)
        await expect(page.locator(".options .gold")).to_have_count(1)  # not the one without text
        await page.keyboard.press("?")
        await page.keyboard.press("Escape")  # closes the keys alone
        await expect(dialog).to_be_visible()
        await page.keyboard.press("ArrowRight")
        await expect(title).to_have_text("Picture 4 of question 12")
        await page.keyboard.press("k")
        await expect(title).to_have_text("Picture 3 of question 12")
        await page.keyboard.press("Escape")
        await expect(dialog).to_be_hidden()
        await expect(page.locator(".options .opens").first).to_be_focused()
        assert await page.title() != "1"
        assert await problems(page) == []


@pytest.mark.browser
async def test_what_cannot_be_shown_has_a_place_and_a_reason(unfinished: Path, page: Page) -> None:
    with serving() as address, feed(unfinished) as tell:
        tell(started(unfinished))
        gone, broken, *_ = (unfinished / PICTURES / f"{one.sha256}.png" for one in SENT)
        gone.unlink()
        content = broken.read_bytes()
        broken.write_bytes(content[:40] + b"\0" * (len(content) - 40))
        await page.goto(page_of(address, unfinished))
        places = page.locator(".no-picture")
        await expect(places).to_have_text(
            ["Its copy is missing from the run's folder", "It cannot be shown"]
        )
        tell(Started(ASKED))  # with --images drop
        await page.goto(page_of(address, unfinished))
        await expect(places).to_have_text(["Not shown to the agents"] * 4)
        assert await page.locator("img").count() == 0
        assert await problems(page) == []


@pytest.mark.browser
async def test_a_picture_opens_in_a_tab_of_its_own(unfinished: Path, page: Page) -> None:
    with serving() as address, feed(unfinished) as tell:
        tell(started(unfinished))
        await page.goto(page_of(address, unfinished))
        href = await page.locator(".opens").first.get_attribute("href")
        await page.goto(f"{address}{href}")
        assert await page.evaluate("document.images[0].naturalWidth") == 900
        assert await problems(page) == []
        assert json.loads(await page.evaluate("JSON.stringify(document.scripts.length)")) == 0
