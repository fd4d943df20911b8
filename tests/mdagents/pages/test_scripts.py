"""The scripts of the pages in a browser: keyboard, theme, downloads, and a list that grows."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from mdagents.cli.score import main
from mdagents.pages.layout import script, style, templates
from mdagents.pages.listing import FILTERS, Cell, Entry
from mdagents.scoring.formatting import json_text
from tests.mdagents.scoring.result_records import ours, write
from tests.support.browser import CHROMIUM, choose_theme, low_contrasts, problems

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
]


def report(*arguments: str) -> str:
    """Writes a report in place of the one before and gives its address."""
    for old in Path("evaluation").glob("*"):
        old.unlink()
    assert main(["--html", *arguments]) == 0
    (path,) = Path("evaluation").glob("*.html")
    return path.absolute().as_uri()


def many(letters: str = "AAB" * 11) -> Path:
    return write([ours(str(n), "A", letter, question=f"Which {n}?", confidence=0.7)
                  for n, letter in enumerate(letters)])  # fmt: skip


async def focused(page: Page) -> str:
    return str(await page.evaluate("document.activeElement.textContent"))


async def test_the_list_can_be_used_without_a_mouse(page: Page) -> None:
    many()
    await page.goto(report())
    is_open = page.locator("#case[open]")
    for key, name in (("j", "0"), ("j", "1"), ("j", "2"), ("k", "1")):
        await page.keyboard.press(key)
        assert await focused(page) == name
    await page.keyboard.press("Enter")
    await expect(is_open).to_contain_text("Which 1?")
    for key, name in (("j", "2"), ("j", "3"), ("k", "2"), ("ArrowRight", "3"), ("ArrowLeft", "2")):
        await page.keyboard.press(key)
        await expect(is_open).to_contain_text(f"Which {name}?")
    await page.keyboard.press("Escape")
    await expect(is_open).to_have_count(0)
    assert await focused(page) == "2", "one goes on where one was"
    await page.keyboard.press("/")
    await page.keyboard.type("jk?/")  # letters to search for, no commands
    assert await page.locator("[type=search]").input_value() == "jk?/"
    await expect(page.locator("#keys")).to_be_hidden()
    await page.keyboard.press("Escape")
    await page.keyboard.press("?")
    await expect(page.locator("#keys")).to_be_visible()
    await page.keyboard.press("j")  # not behind the dialog
    await page.keyboard.press("Escape")
    await expect(page.locator("#keys")).to_be_hidden()
    assert await problems(page) == []


async def test_back_closes_a_transcript_and_leaves_the_list(page: Page) -> None:
    many()
    address = report()
    await page.goto(address)
    is_open = page.locator("#case[open]")
    await page.click("#list tbody tr:not([hidden]) a")
    await expect(is_open).to_be_visible()
    await page.keyboard.press("j")
    await page.go_back()
    await expect(is_open).to_be_hidden()
    assert page.url.partition("#")[0] == address
    await page.go_forward()
    await expect(is_open).to_be_visible()
    await page.click("#close")
    await expect(is_open).to_be_hidden()
    await page.click("#list tbody tr:not([hidden]) a")
    await expect(is_open).to_be_visible()


async def test_the_arrows_stay_those_of_a_choice(page: Page) -> None:
    many()
    await page.goto(report())
    await page.focus("#filters [value='']")
    await page.keyboard.press("ArrowRight")
    assert await page.locator("#filters input:checked").get_attribute("value") == "wrong"


async def test_text_from_right_to_left_keeps_its_order(page: Page) -> None:
    """The unit of a dose stood before the name: https://github.com/zai-org/feedback/issues/99."""
    dose = "وارفارين 5 mg"
    options = {"A": "Aspirin", "B": dose, "C": "Heparin", "D": "Insulin"}
    write([ours("1", "A", "A", options=options, fields={"drug": dose})])
    await page.goto(report("--group-by", "drug"))
    await page.evaluate(
        "document.querySelectorAll('.fold details').forEach((of) => of.open = true)"
    )
    group = page.locator(".figures-table th", has_text=dose)
    option = page.locator(".options li span", has_text=dose)
    assert await from_the_left(group) == ["mg", "5", "وارفارين"]
    await page.click("#list tbody tr:not([hidden]) a")
    assert await from_the_left(option) == ["mg", "5", "وارفارين"]


async def from_the_left(text: Locator) -> list[str]:
    """Words of a line in the order in which they are seen."""
    return list(await text.evaluate(_FROM_THE_LEFT))


_FROM_THE_LEFT = """(element) => {
  const node = element.firstChild;
  const words = [...node.data.matchAll(/\\S+/g)].map((word) => {
    const range = document.createRange();
    range.setStart(node, word.index);
    range.setEnd(node, word.index + word[0].length);
    return [range.getBoundingClientRect().left, word[0]];
  });
  return words.sort((one, other) => one[0] - other[0]).map(([, word]) => word);
}"""


async def colors(page: Page) -> tuple[str, str]:
    """Colors of the page: text and background."""
    style = "getComputedStyle(document.body)"
    text = await page.evaluate(f"{style}.color")
    return str(text), str(await page.evaluate(f"{style}.backgroundColor"))


async def test_a_theme_is_chosen_and_kept(page: Page) -> None:
    many()
    address = report()
    await page.goto(address)
    light = await colors(page)
    await choose_theme(page, "dark")
    dark = await colors(page)
    assert dark != light
    await page.reload()
    assert await colors(page) == dark
    await expect(page.locator("[data-theme-switch]")).to_have_attribute("aria-label", "Theme: dark")
    await choose_theme(page, "system")
    assert await colors(page) == light
    await page.emulate_media(color_scheme="dark")
    assert await colors(page) == dark
    assert await problems(page) == []


async def test_a_browser_without_storage_has_themes_too(page: Page) -> None:
    denied = "{get() { throw new DOMException('denied'); }}"
    await page.add_init_script(f"Object.defineProperty(window, 'localStorage', {denied})")
    many()
    await page.goto(report())
    light = await colors(page)
    await choose_theme(page, "dark")
    assert await colors(page) != light
    assert await problems(page) == []


def contents(path: str | Path) -> bytes:
    return Path(path).read_bytes()


async def saved(page: Page, button: str) -> tuple[str, bytes]:
    async with page.expect_download() as download:
        await page.click(button)
    file = await download.value
    return file.suggested_filename, contents(await file.path())


async def handed_over(page: Page, button: str) -> tuple[str, bytes]:
    """Name and content of the file that a button hands to the browser, which may limit downloads.

    Chromium asks before a page saves several files, in a window that no test sees, unless it took
    note of a click in between.
    """
    await page.evaluate(_HANDED_OVER)
    await page.click(button)
    name, content = await page.evaluate("window.handed")
    return name, bytes(content)


_HANDED_OVER = """() => {
  const made = URL.createObjectURL;
  window.handed = new Promise((resolve) => {
    let blob;
    URL.createObjectURL = (of) => made((blob = of));
    HTMLAnchorElement.prototype.click = async function () {
      resolve([this.download, [...new Uint8Array(await blob.arrayBuffer())]]);
    };
  });
}"""


async def test_the_page_saves_the_files_that_were_written_beside_it(page: Page) -> None:
    many()
    await page.goto(report())
    summary = json.loads(contents("evaluation/run.summary.json"))
    assert summary.pop("inputs") == ["../output/run.json"]  # a page names no folder
    for button, name, expected in (
        ("csv", "run.csv", contents("evaluation/run.csv")),
        ("json", "run.summary.json", json_text(summary).encode()),
    ):
        await page.click("nav.page .menu > summary")
        called, content = await saved(page, f"[data-save={button}]")
        assert called == name
        assert content == expected
    assert await problems(page) == []


async def test_of_a_comparison_a_csv_says_whose_a_row_is(page: Page) -> None:
    write([ours("1", "A", "A"), ours("2", "A", "A")], "a.json")
    write([ours("1", "A", "B"), ours("2", "A", "A"), ours("3", "A", "A")], "=b.json")
    await page.goto(report("--common", "--compare", "output/a.json", "output/=b.json"))
    await page.click("nav.page .menu > summary")
    _, content = await saved(page, "[data-save=csv]")
    rows = [line.split(",")[:4] for line in content.decode().splitlines()]
    assert rows == [
        ["run", "question_id", "label", "response"],
        ["a", "1", "A", "A"], ["a", "2", "A", "A"], ["'=b", "1", "A", "B"], ["'=b", "2", "A", "A"],
    ]  # fmt: skip


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_each_figure_can_be_saved_for_a_paper(page: Page, theme: str) -> None:
    many()
    await page.goto(report())
    await choose_theme(page, theme)
    figures = page.locator("figure")
    assert await figures.count() == 4
    starts = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}
    for place in range(4):
        for form, start in starts.items():
            figure = f"figure >> nth={place}"
            await page.click(f"{figure} >> .menu > summary")
            name, content = await handed_over(page, f"{figure} >> text={form.upper()}")
            assert name.startswith("run-")
            assert name.endswith(f".{form}")
            assert content.startswith(start)
    width, _ = struct.unpack(">II", content[16:24])
    assert width == pytest.approx(4 * 368 * 4 / 3, abs=4)
    assert await problems(page) == []


async def test_tables_are_copied_as_latex_and_markdown(page: Page) -> None:
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    many()
    await page.goto(report())
    await page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    for what, start in (("LaTeX", r"\begin{table*}"), ("Markdown", "|  | answered |")):
        await page.click(".fold .menu > summary >> nth=0")
        await page.click(f".fold .menu[open] >> text={what}")
        assert str(await page.evaluate("window.copied")).startswith(start)
        await expect(page.locator(".menu[open]")).to_have_count(0)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
async def test_pages_can_be_read_in_any_window(page: Page, theme: str, width: int) -> None:
    write([ours(str(n), "A", "AAB-"[n % 4].replace("-", "") or None, question="Which? " * 30)
           for n in range(40)], "a_rather_long_name_of_a_run.json")  # fmt: skip
    write([ours(str(n), "A", "A", question="Which? " * 30, difficulty="advanced" * 4)
           for n in range(40)], "another_even_longer_name.json")  # fmt: skip
    names = ["output/a_rather_long_name_of_a_run.json", "output/another_even_longer_name.json"]
    await page.set_viewport_size({"width": width, "height": 900})
    for arguments in (["--input", names[0]], ["--compare", *names]):
        await page.goto(report(*arguments))
        await choose_theme(page, theme)
        assert await low_contrasts(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        cells = page.locator("main table:not(#list) td:visible, #list tr:not([hidden]) td")
        for cell in [*(await cells.all())[:80]]:
            box = await cell.bounding_box()
            assert box is None or box["x"] + box["width"] <= width + 1, await cell.text_content()


def live_list(path: Path) -> str:
    """Writes a page whose rows are links to other pages, as those of the live view."""
    source = """{% from "list.html" import filters as filter_form, row %}
<!doctype html><title>live</title><style>{{ style }}</style>
{{ filter_form(entries | length, filters, []) }}
<table id="list"><thead><tr><th><button>question</button></th><th></th>
<th><button>tokens</button></th></tr></thead>
<tbody>{% for entry in entries %}{{ row(loop.index, entry, "", "", entry.name ~ ".html") }}
{% endfor %}</tbody></table><button id="more" hidden>more</button><script>{{ script }}</script>"""
    entries = [Entry(name, (Cell(str(n), n),), (), ("wrong",)) for name, n in (("a", 5), ("b", 3))]
    page = templates().from_string(source).render(
        entries=entries,
        filters=[(name, meaning, 2 * (name == "wrong")) for name, meaning in FILTERS.items()],
        style=style(),
        script=script(["list.js", "list_of_page.js", "keys.js"]),
    )  # fmt: skip
    path.write_text(page, encoding="utf-8")
    return path.absolute().as_uri()


async def test_a_list_that_grows_is_read_anew(page: Page) -> None:
    await page.goto(live_list(Path("live.html")))
    names = page.locator("#list tbody tr:not([hidden]) td:first-child")
    await page.click("#list th:nth-child(3) button")
    await expect(names).to_have_text(["b", "a"])
    await expect(page.locator("label:has([value=alert])")).to_be_hidden()
    await page.evaluate("""() => {
      const row = document.querySelector("#list tbody tr").cloneNode(true);
      row.dataset.tags = "alert";
      row.dataset.text = "c";
      row.cells[0].firstChild.textContent = "c";
      row.cells[2].dataset.key = 4;
      document.querySelector("#list tbody").append(row);
      document.getElementById("list").dispatchEvent(new Event("rows-changed"));
    }""")
    await expect(names).to_have_text(["b", "c", "a"])  # sorted as before
    await expect(page.locator("#shown")).to_have_text("3 found")
    await expect(page.locator("label:has([value='']) .count")).to_have_text("3")
    await page.check("[value=alert]")
    await expect(names).to_have_text(["c"])
    await page.evaluate("""() => {
      for (const row of document.querySelectorAll("#list tbody tr")) row.dataset.tags = "wrong";
      document.getElementById("list").dispatchEvent(new Event("rows-changed"));
    }""")
    await expect(page.locator("[value=alert]")).to_be_visible()  # or nobody could leave the filter
    await expect(page.locator("#shown")).to_have_text("0 found")
    assert await problems(page) == []


@pytest.mark.parametrize("way", ["click", "Enter"])
async def test_rows_may_lead_to_pages_of_their_own(page: Page, way: str) -> None:
    live_list(Path("b.html"))
    await page.goto(live_list(Path("live.html")))
    if way == "click":
        await page.click("#list tbody tr:nth-child(2) td:nth-child(3)")
    else:
        for key in ("j", "j", "Enter"):
            await page.keyboard.press(key)
    await page.wait_for_url("**/b.html")


async def test_names_of_points_that_lie_together_can_be_read(page: Page) -> None:
    names = [f"{name}.json" for name in ("alpha", "beta", "gamma", "delta", "epsilon")]
    for tokens, name in enumerate(names):
        usage = {"total_tokens": 1000 + tokens // 2}
        write([ours(str(n), "A", "AB"[n % 2], token_usage=usage) for n in range(20)], name)
    await page.goto(report("--compare", *(f"output/{name}" for name in names)))
    chart = page.locator("figure:has-text('Accuracy against tokens') > svg.broad")
    boxes = []
    for name in names:
        box = await chart.locator("text", has_text=name.removesuffix(".json")).bounding_box()
        assert box is not None
        boxes.append((box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"] * 0.8))
    for place, (left, top, right, bottom) in enumerate(boxes):
        for other in boxes[place + 1 :]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
