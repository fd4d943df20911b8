"""Pictures in the HTML report: which are shown, in which size, and what stands for the others."""

from __future__ import annotations

import base64
import csv
import io
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.async_api import Page, expect

from mdagents.cli.score import main
from mdagents.pages.report_pictures import LARGEST_REPORT, make_thumbnail
from mdagents.records.pictures import PictureRecord
from tests.mdagents.pages.test_report import report, text_of, transcripts
from tests.mdagents.scoring.result_records import OPTIONS, ours, write
from tests.support.browser import low_contrasts, problems
from tests.support.run_pictures import as_sent, named, noise, record_of

pytestmark = pytest.mark.process

FOLDER = Path("output/run")
DROPPED = PictureRecord(name="unseen.png", caption="What no agent saw")
_STORED = r'<script type="application/x-picture" id="picture-(\w+)"( data-reduced)?>(.*?)</script>'


def stored(page: Path) -> dict[str, tuple[bool, str]]:
    """Key of each picture in a report -> (whether it is only a thumbnail, its data URI)."""
    found = re.findall(_STORED, page.read_text())
    assert len({key for key, _, _ in found}) == len(found)
    return {key: (bool(reduced), uri) for key, reduced, uri in found}


def opened(uri: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2])))


def test_a_picture_of_many_questions_is_in_the_report_once() -> None:
    shared = record_of(FOLDER, noise(40, 30), caption="Lateral view")
    write([ours(str(n), "A", "A", question="Which?", pictures=named(shared)) for n in range(50)])
    page = report()
    ((key, (is_reduced, uri)),) = stored(page).items()
    assert (key, is_reduced) == (shared.sha256, False)
    assert opened(uri).size == (40, 30)
    for html in transcripts(page).values():
        (image,) = re.findall("<img[^>]*>", html)
        assert f'data-picture="{key}"' in image
        assert 'width="40" height="30"' in image
        assert "src=" not in image
        assert "Lateral view" in text_of(html)
    assert "1 picture<" in page.read_text()
    assert "a folder of this machine" not in page.read_text()


def test_what_does_not_fit_in_full_size_is_a_thumbnail_and_the_page_says_so() -> None:
    large = [record_of(FOLDER, noise(1300, 1000, seed), f"{seed}.png") for seed in range(6)]
    write([ours(one.name, "A", "A", question="Which?", pictures=named(one)) for one in large])
    page = report()
    found = [stored(page)[one.sha256] for one in large]
    reduced = [is_reduced for is_reduced, _ in found]
    assert reduced == [False] * 3 + [True] * 3  # 5.2 MB each in Base64
    assert {opened(uri).size for is_reduced, uri in found if is_reduced} == {(320, 246)}
    assert page.stat().st_size < LARGEST_REPORT
    assert "3 of 6 pictures are thumbnails only, so that this report stays under 20 MB" in (
        page.read_text()
    )


def test_a_thumbnail_of_any_form_can_be_made() -> None:
    deep = Image.new("I;16", (600, 400), 40_000)
    clear = noise(600, 400).convert("RGBA")
    clear.putalpha(0)
    images = {
        "deep.png": (deep, "PNG", "L", 156),
        "clear.png": (clear, "PNG", "RGB", (255, 255, 255)),
        "palette.gif": (noise(600, 400).quantize(8), "GIF", "RGB", None),
        "print.jpg": (noise(600, 400).convert("CMYK"), "JPEG", "RGB", None),
        "photo.webp": (noise(600, 400), "WEBP", "RGB", None),
    }
    for name, (image, form, mode, color) in images.items():
        content = base64.b64decode(as_sent(image, form).base64) + b"\0" * 50_000
        Path(name).write_bytes(content)
        made = make_thumbnail(Path(name))
        shown = opened(made)
        assert (shown.format, shown.mode, shown.size) == ("JPEG", mode, (320, 213)), name
        assert color is None or shown.getpixel((9, 9)) == color, name


def test_a_picture_a_few_pixels_high_has_a_thumbnail() -> None:
    for size in ((6000, 3), (3, 6000)):
        file = FOLDER / record_of(FOLDER, noise(*size)).file
        assert sorted(opened(make_thumbnail(file)).size) == [1, 320]


def make_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (lambda file: file.unlink(), "missing from the run"),
        (lambda file: file.write_bytes(b"<script>alert(1)</script>"), "has changed"),
        (lambda file: file.write_bytes(file.read_bytes() + b"\0"), "has changed"),
        (lambda file: (file.unlink(), file.mkdir()), "missing from the run"),
        (make_pipe, "missing from the run"),
        (lambda file: (file.rename("else.png"), file.symlink_to("../../../else.png")), "changed"),
    ],
)
def test_a_copy_that_is_gone_or_changed_is_said_to_be(harm: Any, why: str) -> None:
    record = record_of(FOLDER, noise(20, 20))
    harm(FOLDER / record.file)
    write([ours("1", "A", "A", question="Which?", pictures=named(record))])
    page = report()
    assert stored(page) == {}
    (html,) = transcripts(page).values()
    assert why in text_of(html)
    assert "<img" not in html


@pytest.mark.parametrize(
    "odd",
    [
        None, 3, "x", {}, [3], [None], [{}], [{"name": 3}], [{"name": "a", "sha256": "../../../x"}],
        [{"name": "a", "sha256": "/etc/passwd", "media_type": "image/png"}],
        [{"name": "a", "sha256": "0" * 64, "media_type": "image/svg+xml"}],
        [{"name": "a", "sha256": "0" * 64, "media_type": "image/png", "width": -1}],
        [{"name": "a", "sha256": "\0", "media_type": "image/png"}],
    ],
)  # fmt: skip
def test_odd_pictures_of_a_record_have_a_page(odd: Any) -> None:
    write([ours("1", "A", "A", question="Which?", pictures=odd)])
    page = report()
    assert stored(page) == {}
    assert len(transcripts(page)) == 1


def test_what_a_data_set_writes_stays_text() -> None:
    attack = "\"><img src=x onerror=alert(2)></script><script>alert(1)</script>' onload='x"
    records = [
        record_of(FOLDER, noise(20, 20, n), attack, caption=attack, option=option)
        for n, option in enumerate(["", "B"])
    ]
    write([ours(attack, "A", "B", question="?", pictures=named(*records, DROPPED))])
    page = report()
    for text in (page.read_text(), *transcripts(page).values()):
        assert "<script>alert" not in text
        assert "<img src" not in text
    (html,) = transcripts(page).values()
    assert html.count("<img") == 2
    assert "Not shown to the agents" in html


def test_options_that_are_pictures_are_told_apart() -> None:
    options = dict.fromkeys(OPTIONS, "")
    records = [record_of(FOLDER, noise(20, 20, ord(one)), option=one) for one in options]
    write([ours("1", "A", "B", question="?", options=options, pictures=named(*records))])
    (html,) = transcripts(report()).values()
    assert html.count(">right option<") == 1
    assert ", wrong" in html


def test_a_run_without_its_pictures_says_so_in_its_page_and_csv() -> None:
    seen = record_of(FOLDER, noise(20, 20), "=seen.png")
    write([ours("1", "A", "A", pictures=named(DROPPED)), ours("2", "A", "A")])
    assert "2 of 2 right, asked without pictures: too few for a percentage" in report().read_text()
    write([ours("1", "A", "A", pictures=named(seen, DROPPED)), ours("2", "A", "A")])
    assert main([], input_filename="", output_filename="") == 0
    with Path("evaluation/run.csv").open() as file:
        rows = list(csv.DictReader(file))
    columns = ("pictures", "pictures_sent", "picture_names")
    assert [[row[name] for name in columns] for row in rows] == [
        ["2", "1", "'=seen.png; unseen.png"],
        ["0", "0", ""],
    ]


def test_a_picture_that_cannot_be_decoded_harms_no_other() -> None:
    good, bad = record_of(FOLDER, noise(20, 20)), record_of(FOLDER, noise(30, 30))
    file = FOLDER / bad.file
    file.write_bytes(file.read_bytes()[:60] + b"\0" * (bad.bytes - 60))
    write([ours("1", "A", "A", question="Which?", pictures=named(bad, good))])
    found = stored(report())
    assert found[bad.sha256] == (False, "")
    assert opened(found[good.sha256][1]).size == (20, 20)


def test_the_same_pictures_give_the_same_page() -> None:
    record = record_of(FOLDER, noise(500, 400))
    write([ours("1", "A", "A", question="Which?", pictures=named(record))])
    first = report().read_bytes()
    assert report().read_bytes() == first
    assert json.loads(Path("evaluation/run.summary.json").read_text())


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_pictures_are_opened_with_the_keyboard_and_printed(page: Page, theme: Any) -> None:
    words = "A caption of several words, which is longer than the picture is wide. " * 3
    records = [
        record_of(FOLDER, noise(1200, 300), caption=words),
        record_of(FOLDER, noise(30, 900)),
        record_of(FOLDER, noise(300, 300), option="B"),
    ]
    (FOLDER / records[1].file).unlink()
    write([ours("1", "A", "B", question="Which?", pictures=named(*records, DROPPED)),
           ours("2", "A", "B", question="Which?")])  # fmt: skip
    await page.emulate_media(color_scheme=theme)
    await page.set_viewport_size({"width": 400, "height": 800})
    await page.goto(report().absolute().as_uri() + "#q1")
    images = page.locator("#transcript img")
    await expect(images).to_have_count(2)
    assert await images.first.evaluate("image => image.decode().then(() => image.naturalWidth)")
    dialog, title = page.locator("#picture"), page.locator("#picture-title")
    await page.locator("#transcript .opens").first.focus()
    await page.keyboard.press("Enter")
    await expect(dialog).to_be_visible()
    await expect(title).to_have_text("Picture 1 of question 1")
    for box in ("#picture", "#case"):
        width = await page.locator(box).evaluate("e => [e.scrollWidth, e.clientWidth, innerWidth]")
        assert width[0] <= width[1] <= width[2]
    await page.keyboard.press("ArrowRight")
    await expect(title).to_have_text("Picture 3 of question 1")  # the second cannot be shown
    await page.keyboard.press("ArrowRight")  # there is no next one, nor another question
    await expect(title).to_have_text("Picture 3 of question 1")
    assert await low_contrasts(page) == []
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await expect(page.locator("#case")).to_be_visible()
    assert await page.evaluate("document.activeElement.className") == "opens"
    without = "image => !(image.alt && image.getAttribute('width') && image.getAttribute('height'))"
    assert await images.evaluate_all(f"all => all.filter({without}).length") == 0
    await page.emulate_media(media="print")
    await expect(page.locator("main")).to_be_hidden()
    printed = await page.locator("#case").bounding_box()
    assert printed is not None
    assert printed["height"] > 800  # more than the window, so nothing is cut off
    assert len(await page.pdf()) > 10_000
    assert await problems(page) == []
