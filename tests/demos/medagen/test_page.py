"""The chat page in a browser, mostly as its accessibility tree tells it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from playwright.async_api import Page, expect

from demos.medagen.limits import Limits
from demos.medagen.schemas import Event, TriageRequest, TriageResult
from mdagents_llm.web.address import listen
from tests.demos.medagen.scripted import ScriptedAssistant, nothing, serving
from tests.support.browser import CHROMIUM, axe_findings, low_contrasts, open_page, problems

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
]

HOSTILE = "<img src=x onerror='document.title=1'><script>document.title=1</script> \u202ecold"


class Deaf(ScriptedAssistant):
    """Whatever is asked, nothing comes back."""

    async def triage(
        self, request: TriageRequest, on_event: Callable[[Event], None] = nothing
    ) -> TriageResult:
        await self.go.wait()
        raise AssertionError


@pytest.fixture
def assistant() -> ScriptedAssistant:
    return ScriptedAssistant()


@pytest.fixture
async def address(assistant: ScriptedAssistant) -> AsyncIterator[str]:
    async with serving(assistant) as url:
        yield url


async def say(page: Page, text: str) -> None:
    await page.get_by_role("textbox").first.fill(text)
    await page.keyboard.press("Enter")


async def in_vietnamese(page: Page, address: str) -> None:
    await page.goto(address)
    await page.get_by_role("combobox").select_option("vi")


async def tree(page: Page) -> str:
    return await page.locator("body").aria_snapshot()


async def test_chest_pain_in_vietnamese_is_an_alert_before_the_answer(
    page: Page, address: str, assistant: ScriptedAssistant
) -> None:
    await in_vietnamese(page, address)
    await say(page, "Tôi bị đau ngực WAIT")
    alert = page.get_by_role("alert").filter(has_text="Có thể là cấp cứu")
    await expect(alert).to_be_in_viewport()
    assert assistant.seen["ended"] == 0
    assert await alert.get_by_role("link", name="Gọi 115 ngay").get_attribute("href") == "tel:115"
    steps = page.get_by_role("log").get_by_role("listitem")
    await expect(steps.nth(1)).to_have_text("Kết quả: quy tắc phân loại: Cấp cứu. Đau ngực.")
    assistant.go.set()
    answer = page.get_by_role("article").last
    await expect(answer).to_contain_text("Cần được cấp cứu ngay.")
    seen = await tree(page)
    advice, flags = seen.index("Gọi 115 ngay."), seen.index("Dấu hiệu cảnh báo")
    assert seen.index("Có thể là cấp cứu") < advice < flags
    for part in (
        "bạn viết: “đau ngực”",
        "Vì sao có mức độ này",
        "fever-home-01",
        "không phải thiết",
    ):
        assert part in seen, part
    await answer.get_by_text("Vì sao có mức độ này").click()
    await expect(answer).to_contain_text("Đau hoặc tức ngực có thể là dấu hiệu từ tim.")
    assert await page.locator("html").get_attribute("lang") == "vi"
    assert await answer.locator(".advice").get_attribute("lang") == "vi"
    assert await problems(page) == []


async def test_a_cold_in_english_by_the_keyboard_alone(page: Page, address: str) -> None:
    await page.goto(address)
    await expect(page.get_by_role("combobox", name="Language")).to_have_value("en")
    for _ in range(9):
        await page.keyboard.press("Tab")
        if await page.evaluate("document.activeElement.id") == "text":
            break
    await page.keyboard.type("I have a cold")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="Send")).to_be_focused()
    await page.keyboard.press("Enter")
    answer = page.get_by_role("article").last
    await expect(answer).to_contain_text("Self-care")
    await expect(answer).to_contain_text("Rest, and drink enough.")
    await expect(page.get_by_role("textbox", name="Describe the symptoms")).to_be_focused()
    await expect(page.get_by_role("alert").filter(has_text="emergency")).to_have_count(0)
    await expect(page.get_by_text("not a medical device")).to_be_in_viewport()
    async with page.context.expect_page() as opened:
        await page.get_by_role("link", name="Printable report").click()
    report = await opened.value
    await report.wait_for_load_state()
    await expect(report.get_by_role("heading", level=1)).to_have_text(
        "Summary of a Medagen conversation"
    )
    await report.emulate_media(media="print")
    await expect(report.get_by_role("table")).to_contain_text("Self-care")
    assert await low_contrasts(report) == []
    assert await problems(report) == []
    await page.get_by_role("combobox").select_option("vi")
    await expect(answer).to_contain_text("Tự chăm sóc")
    assert await problems(page) == []


async def test_a_model_that_fails_is_said(page: Page, address: str) -> None:
    await page.goto(address)
    await say(page, "my back hurts FAIL")
    answer = page.get_by_role("article").last
    await expect(answer).to_contain_text("Urgent")
    await expect(answer).to_contain_text("The language model could not answer.")
    await expect(answer).to_contain_text("the model did not answer in time")


async def test_what_the_model_says_stands_apart(page: Page, address: str) -> None:
    await page.goto(address)
    await say(page, "a cold MODEL")
    answer = page.get_by_role("article").last
    model = answer.locator(".model")
    await expect(model).to_contain_text("From the model, not checked")
    for said in ("chest pain", "a bad cough", "viral infection", "Drink warm tea."):
        await expect(model).to_contain_text(said)
    await expect(answer.locator(".advice")).to_have_text("Rest, and drink enough.")
    await expect(answer.get_by_role("heading", name="Warning signs")).to_have_count(0)
    await say(page, "my chest hurts")
    flags = page.get_by_role("article").last.get_by_role("listitem")
    await expect(flags.filter(has_text="chest pain").first).to_contain_text("you wrote: “đau ngực”")
    assert await problems(page) == []


async def test_the_headline_names_an_earlier_message(page: Page, address: str) -> None:
    await page.goto(address)
    await say(page, "a cold EARLIER")
    answer = page.get_by_role("article").last
    await expect(answer).to_contain_text("earlier message of yours: “crushing pain”")
    await answer.get_by_role("button", name="Start a new conversation").click()
    await expect(page.get_by_role("article")).to_have_count(0)


async def test_a_picture_by_its_address(page: Page, address: str) -> None:
    await page.goto(address)
    await page.get_by_text("Add a picture").click()
    field = page.get_by_role("textbox", name="Address of the picture")
    await field.fill("http://example.org/a.jpg")
    await page.get_by_role("button", name="Send").click()
    await expect(page.get_by_role("alert")).to_contain_text(["", "must begin with https://"])
    await expect(field).to_be_focused()
    await field.fill("https://example.org/a.jpg")
    await field.press("Enter")
    answer = page.get_by_role("article").last
    await expect(answer).to_contain_text("picture of the skin: eczema 62 %")
    await expect(answer).to_contain_text("could not be looked at. no service is set up")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_hostile_text_is_text_and_all_fits_on_a_small_phone(
    scheme: str, page: Page, address: str
) -> None:
    await page.set_viewport_size({"width": 360, "height": 740})
    await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    await page.goto(address)
    await say(page, f"chest pain {HOSTILE} {'x' * 400}")
    answer = page.get_by_role("article").last
    await expect(answer).to_contain_text("<script>document.title=1</script>")
    for details in await page.locator("summary").all():
        await details.click()
    assert await page.title() == "Medagen"
    assert await page.locator("img, main script").count() == 0
    assert await page.evaluate("document.documentElement.scrollWidth") <= 360
    await expect(page.get_by_role("alert").first).to_be_in_viewport()
    await expect(page.get_by_role("button", name="Send")).to_be_in_viewport()
    assert await low_contrasts(page) == []
    assert await problems(page) == []


async def test_a_conversation_goes_on_after_a_reload_until_a_new_one_is_begun(
    page: Page, address: str
) -> None:
    await page.goto(address)
    await say(page, "a cold")
    await expect(page.get_by_role("article").last).to_contain_text("Self-care")
    await page.reload()
    await expect(page.get_by_role("article")).to_have_count(2)
    await say(page, "now chest pain")
    await expect(page.get_by_role("article").last).to_contain_text("Emergency")
    await page.reload()
    await expect(page.get_by_role("article")).to_have_count(4)
    await expect(page.get_by_role("link", name="Call 115 now")).to_be_visible()
    await page.get_by_role("button", name="New conversation").click()
    await expect(page.get_by_role("article")).to_have_count(0)
    await expect(page.get_by_role("link", name="Call 115 now")).to_have_count(0)


async def test_a_reload_before_the_answer_loses_no_emergency(
    page: Page, address: str, assistant: ScriptedAssistant
) -> None:
    """As bayesimpact/bayes-platform 673 and dp-archive 160, where the first message was lost."""
    await page.goto(address)
    await say(page, "I have crushing chest pain WAIT")
    alert = page.get_by_role("alert")
    await expect(alert.get_by_role("link")).to_be_visible()
    await page.reload()
    await expect(alert.get_by_role("link")).to_be_visible()
    await expect(page.get_by_role("log")).to_contain_text("I have crushing chest pain WAIT")
    await expect(page.get_by_role("textbox").first).to_have_value("")
    assert assistant.seen["ended"] == 0


async def test_a_message_that_no_server_has_is_there_after_a_reload(page: Page) -> None:
    async with serving(Deaf()) as address:
        await page.goto(address)
        await say(page, "I have crushing chest pain")
        await expect(page.get_by_role("textbox").first).to_have_value("")
        await page.reload()
        await expect(page.get_by_role("textbox").first).to_have_value("I have crushing chest pain")
        await page.get_by_role("textbox").first.press("Enter")
        await page.locator("#anew").click()
        await expect(page.locator("#anew")).to_be_hidden()
        await expect(page.get_by_role("textbox").first).to_have_value("")


async def test_a_refusal_gives_the_message_back(page: Page, assistant: ScriptedAssistant) -> None:
    async with serving(assistant, limits=Limits(burst=1)) as address:
        await page.goto(address)
        await say(page, "a cold")
        await expect(page.get_by_role("article").last).to_contain_text("Self-care")
        await say(page, "and a cough")
        await expect(page.get_by_role("article").last).to_contain_text(
            "The message was not taken: too many requests"
        )
        await expect(page.get_by_role("textbox").first).to_have_value("and a cough")


async def test_a_server_that_goes_and_comes_back(page: Page, assistant: ScriptedAssistant) -> None:
    with listen("", 0).socket as probe:
        port = probe.getsockname()[1]
    async with serving(assistant, port=port) as address:
        await page.goto(address)
        await say(page, "a cold WAIT")
        await expect(page.get_by_role("log")).to_contain_text("triage rules")
    await expect(page.get_by_role("article").last).to_contain_text("The connection was lost")
    gone = page.get_by_text("The server does not answer; trying to connect again.")
    await expect(gone).to_be_visible()
    await say(page, "a cold")
    await expect(page.get_by_text("Not connected to the server.")).to_be_visible()
    async with serving(assistant, port=port):
        await expect(gone).to_have_count(0)
        await page.get_by_role("button", name="Send").click()
        await expect(page.get_by_role("article").last).to_contain_text("Self-care")


async def test_with_a_token_the_socket_is_opened_by_the_cookie(
    page: Page, assistant: ScriptedAssistant
) -> None:
    async with serving(assistant, token="t0ken") as address:
        await page.goto(f"{address}/?token=t0ken")
        await page.wait_for_url(f"{address}/")
        await say(page, "a cold")
        await expect(page.get_by_role("article").last).to_contain_text("Self-care")


async def test_every_browser_is_a_user_of_its_own(address: str) -> None:
    async def user() -> str:
        async with open_page() as page:
            await page.goto(address)
            await expect(page.get_by_role("textbox")).to_be_visible()
            return str(await page.evaluate("localStorage.getItem('medagen-user')"))

    one, two = await asyncio.gather(user(), user())
    assert one != two
    assert {len(one), len(two)} == {32}


async def test_an_example_fills_the_message_in_the_language_of_the_page(
    page: Page, address: str
) -> None:
    await in_vietnamese(page, address)
    await page.get_by_role("button", name="đau ngực").click()
    await expect(page.get_by_role("textbox").first).to_have_value(
        "Tôi đau ngực lan ra tay trái và vã mồ hôi"
    )
    await page.get_by_role("combobox").select_option("en")
    await expect(page.get_by_role("list", name="For example").get_by_role("button")).to_have_text(
        ["My son is 2, fever of 39.5 °C since yesterday, drinks well",
         "Chest pain into my left arm, and I am sweating",
         "Cough and a runny nose for three days"]
    )  # fmt: skip


async def test_the_banner_shrinks_once_read_and_stays_while_the_emergency_stands(
    page: Page, address: str
) -> None:
    await page.goto(address)
    await say(page, "chest pain")
    alert = page.get_by_role("alert").filter(has_text="This may be an emergency")
    advice = alert.get_by_text("Do not stay alone")
    await expect(advice).to_be_visible()
    await alert.get_by_role("button", name="Show less").click()
    await expect(advice).to_be_hidden()
    await alert.get_by_role("button", name="Show more").click()
    await expect(advice).to_be_visible()
    await say(page, "a cold")
    await expect(page.get_by_role("article").last).to_contain_text("Self-care")
    await expect(advice).to_be_hidden()
    await expect(alert).to_be_in_viewport()
    await expect(alert.get_by_role("link", name="Call 115 now")).to_be_in_viewport()
    await page.reload()
    await expect(alert).to_be_in_viewport()


async def test_axe_finds_nothing(page: Page, address: str) -> None:
    for width, scheme in ((1400, "light"), (400, "dark")):
        await page.set_viewport_size({"width": width, "height": 800})
        await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        await page.goto(address)
        await expect(page.get_by_role("list")).to_be_visible()
        assert await axe_findings(page) == []
        await say(page, "chest pain")
        await expect(page.get_by_role("article").last).to_contain_text("Emergency")
        assert await axe_findings(page) == []
        await page.evaluate("sessionStorage.clear()")
