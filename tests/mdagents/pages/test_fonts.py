"""Figures of runs whose names are in scripts that the font of figures does not cover."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fontTools.fontBuilder import FontBuilder  # type: ignore[import-untyped]
from fontTools.pens.ttGlyphPen import TTGlyphPen  # type: ignore[import-untyped]
from matplotlib.font_manager import fontManager
from pypdf import PdfReader

from mdagents.cli.score import main
from mdagents.pages.canvas import Canvas, width_of
from mdagents.pages.fonts import families_for, installed_fonts, without_font
from tests.mdagents.scoring.result_records import ours, write

# Letters of the Deseret alphabet, which no other test uses and few machines have a font for.
KNOWN, UNKNOWN = "\U00010400\U00010401", "\U00010402"


def make_font(path: Path, family: str, characters: str, weight: int = 400) -> None:
    names = [".notdef", *(f"u{ord(character):05X}" for character in characters)]
    builder = FontBuilder(1000)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap(dict(zip(map(ord, characters), names[1:], strict=True)))
    pen = TTGlyphPen(None)
    pen.moveTo((100, 0))
    pen.lineTo((900, 0))
    pen.lineTo((500, 800))
    pen.closePath()
    builder.setupGlyf(dict.fromkeys(names, pen.glyph()))
    builder.setupHorizontalMetrics(dict.fromkeys(names, (1000, 100)))
    builder.setupHorizontalHeader(ascent=880, descent=-120)
    builder.setupNameTable({"familyName": family, "styleName": "Regular"}, mac=False)
    builder.setupOS2(usWeightClass=weight)
    builder.setupPost()
    builder.save(path)


@pytest.fixture
def _fonts(tmp_path: Path) -> Iterator[None]:
    """A machine with a font for two more letters, and one that draws a box for any letter."""
    before = list(fontManager.ttflist)
    for family, characters in (("Test Sans", KNOWN), ("LastResort", KNOWN + UNKNOWN)):
        make_font(tmp_path / f"{family}.ttf", family, characters)
        fontManager.addfont(tmp_path / f"{family}.ttf")
    installed_fonts.cache_clear()
    width_of.cache_clear()
    yield
    fontManager.ttflist[:] = before
    installed_fonts.cache_clear()
    width_of.cache_clear()


@pytest.mark.usefixtures("_fonts")
def test_a_font_of_the_machine_draws_what_the_first_one_lacks() -> None:
    """https://github.com/matplotlib/matplotlib/issues/20251."""
    assert families_for("gpt-4o β ≥ Größe Đỗ") == ["sans-serif"]
    assert families_for(f"gpt {KNOWN}") == ["sans-serif", "Test Sans"]
    assert (without_font(f"gpt {KNOWN}"), without_font(f"{UNKNOWN}{KNOWN}")) == ("", UNKNOWN)
    assert width_of(KNOWN, 10) == pytest.approx(20, abs=1)


@pytest.mark.usefixtures("_fonts")
@pytest.mark.parametrize(
    ("family", "weight"),
    [("Droid Sans Fallback", 400), ("WenQuanYi Zen Hei", 500), ("Test Light", 300)],
)
def test_fonts_of_other_names_and_weights_are_used(
    tmp_path: Path, family: str, weight: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The first two are the Chinese fonts of many Linux machines, with their weights."""
    make_font(tmp_path / "other.ttf", family, UNKNOWN, weight)
    fontManager.addfont(tmp_path / "other.ttf")
    assert families_for(KNOWN + UNKNOWN) == ["sans-serif", "Test Sans", family]
    canvas = Canvas(100, 20)
    canvas.text(0, 0, KNOWN + UNKNOWN)
    canvas.save("png")
    assert width_of(KNOWN + UNKNOWN, 10) == pytest.approx(30, abs=1)
    assert caplog.messages == []


@pytest.mark.usefixtures("_fonts")
def test_a_font_with_a_damaged_name_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """https://github.com/matplotlib/matplotlib/issues/2501."""
    path = tmp_path / "damaged.ttf"
    make_font(path, "Damaged", UNKNOWN)
    name = "Regular".encode("utf-16-be")
    path.write_bytes(path.read_bytes().replace(name, name[:-2] + b"\xd8\0"))
    with pytest.raises(UnicodeDecodeError):
        fontManager.addfont(path)
    monkeypatch.setattr("matplotlib.font_manager.findSystemFonts", lambda: [str(path)])
    assert families_for(KNOWN + UNKNOWN) == ["sans-serif", "Test Sans"]


@pytest.mark.usefixtures("_fonts")
@pytest.mark.parametrize(("letters", "boxes"), [(KNOWN, ""), (KNOWN + UNKNOWN, UNKNOWN)])
def test_letters_without_a_font_are_named_in_one_line(
    letters: str, boxes: str, capfd: pytest.CaptureFixture[str]
) -> None:
    records = [ours(str(n), "A", "AAB"[n % 3], difficulty=letters) for n in range(30)]
    path = write([*records, ours("30", "A", "A")])
    assert main(["--input", str(path), "--figures", "paper", "--html"]) == 0
    out, err = capfd.readouterr()
    assert "Glyph" not in out + err
    notes = [line for line in out.splitlines() if "no font of this machine" in line]
    assert [note.rpartition(" has ")[2] for note in notes] == ([boxes] if boxes else [])
    page = PdfReader("paper/run-accuracy-by-level.pdf").pages[0]
    assert KNOWN in page.extract_text()
    fonts: Any = page["/Resources"]
    kinds = {font.get_object()["/Subtype"] for font in fonts["/Font"].values()}
    assert kinds == {"/Type3"}, "a font with outlines of PostScript is no TrueType"
    assert letters in Path("paper/run-accuracy-by-level.svg").read_text(encoding="utf-8")
