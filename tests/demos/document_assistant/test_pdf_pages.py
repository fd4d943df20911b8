"""Pages of PDF, read as they are seen."""

from __future__ import annotations

import io
from typing import Any

import pytest
from fpdf import FPDF
from PIL import Image
from pypdf import PdfWriter
from pypdf.annotations import FreeText, Text
from pypdf.generic import (
    ArrayObject,
    BooleanObject,
    DecodedStreamObject,
    DictionaryObject,
    FloatObject,
    NameObject,
    NullObject,
    NumberObject,
    PdfObject,
    RectangleObject,
    StreamObject,
    TextStringObject,
)

from demos.document_assistant.pdf_pages import pdf_pages
from demos.document_assistant.refused import RefusedError

HIDDEN = "(hidden text, which is not read)"
PAGE = (600, 800)


def pages_of(writer: PdfWriter) -> list[str]:
    content = io.BytesIO()
    writer.write(content)
    return [*pdf_pages(content, 9)]


def drawn(content: str, **resources: DictionaryObject | DecodedStreamObject) -> PdfWriter:
    """Return a PDF with one page of this content; `resources` are its pictures and forms."""
    writer = PdfWriter()
    page = writer.add_blank_page(*PAGE)
    page[NameObject("/Resources")] = resources_with(writer, **resources)
    stream = DecodedStreamObject()
    stream.set_data(content.encode())
    page[NameObject("/Contents")] = writer._add_object(stream)  # noqa: SLF001 - no other way
    return writer


def resources_with(writer: PdfWriter, **objects: DictionaryObject) -> DictionaryObject:
    font = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    fonts = DictionaryObject(
        {
            NameObject("/F1"): DictionaryObject(
                {NameObject(key): NameObject(value) for key, value in font.items()}
            )
        }
    )
    named = {
        NameObject(f"/{name}"): writer._add_object(one)  # noqa: SLF001
        for name, one in objects.items()
    }
    return DictionaryObject(
        {NameObject("/Font"): fonts, NameObject("/XObject"): DictionaryObject(named)}
    )


def named(**entries: Any) -> DictionaryObject:
    return DictionaryObject({NameObject(f"/{key}"): value for key, value in entries.items()})


def picture() -> DecodedStreamObject:
    one = DecodedStreamObject()
    one.set_data(b"\0")
    for key in ("Width", "Height"):
        one[NameObject(f"/{key}")] = NumberObject(1)
    one[NameObject("/Subtype")] = NameObject("/Image")
    return one


def text(words: str, mode: int | str = 0, y: int = 700) -> str:
    return f"BT /F1 12 Tf {mode} Tr 1 0 0 1 50 {y} Tm ({words}) Tj ET\n"


SEEN, UNSEEN = text("Dose 10 mg"), text("Dose 99 mg", 3, 600)


@pytest.mark.parametrize(
    ("content", "read"),
    [
        (SEEN + UNSEEN, f"Dose 10 mg\n{HIDDEN}"),
        (UNSEEN + SEEN, f"Dose 10 mg\n{HIDDEN}"),
        (SEEN + text("99", 7, 600) + "0 0 600 800 re f", "Dose 10 mg\n99"),  # painted through it
        (SEEN + text("99", 7, 600), f"Dose 10 mg\n{HIDDEN}"),
        (f"{SEEN} q {text('99', 7, 600)} Q 0 0 600 650 re f", f"Dose 10 mg\n{HIDDEN}"),
        (SEEN + text("99", "3.0", 600), f"Dose 10 mg\n{HIDDEN}"),
        ("BT /F1 12 Tf 50 700 Td (Total) Tj 3 Tr ( ) Tj [( )] TJ 0 Tr (due) Tj ET", "Total  due"),
        (f"q {UNSEEN} Q BT /F1 12 Tf 50 500 Td (Rent 5) Tj ET", f"Rent 5\n{HIDDEN}"),
        ("BT /F1 12 Tf 3 Tr 50 500 Td 14 TL (9) ' [(9)] TJ 0 0 (9) \" 0 Tr 0 -20 Td (5) Tj ET",
         f"5\n{HIDDEN}"),
        (UNSEEN, "Dose 99 mg"),  # the layer of a scan that text recognition made
        (SEEN + text("12", 1, 600), "Dose 10 mg\n12"),
        (f"{SEEN} /x Tr q 1 cm Q Q {text('12', 0, 600)}", "Dose 10 mg\n12"),
    ],
)  # fmt: skip
def test_text_that_is_not_drawn_is_left_out(content: str, read: str) -> None:
    assert pages_of(drawn(content)) == [read]


def at(x: float, y: float, words: str = "9", more: str = "/F1 12 Tf") -> str:
    return f"BT {more} 1 0 0 1 {x} {y} Tm ({words}) Tj ET\n"


WIDTH = 556
"""Width of a digit in Helvetica, in thousandths of the font size."""
BOX = "50 596 120 14 re"


@pytest.mark.parametrize(
    ("content", "is_seen"),
    [
        # outside the page: pypdf#1199, pdf-reader#413
        (at(-2000, 700), False),
        (at(50, 5000), False),
        (at(700, 700), False),
        (at(-20, 700), False),
        (at(-20, 700, "999999"), True),  # half of it is shown
        (at(-20, 700, "9", "/F1 12 Tf 30 Tc") + " BT (9) Tj ET", True),
        ("BT /F1 12 Tf -60 700 Td [(9) -6000 (9)] TJ ET", True),
        ("BT /F1 12 Tf -60 700 Td [(9) -3000 (9)] TJ ET", False),
        ("BT /F1 12 Tf -60 700 Td [-9000 (9) 9000] TJ ET", True),
        (f"BT /F1 12 Tf 50 700 Td [(9) {WIDTH}] TJ ET", True),
        (f"BT /F1 12 Tf 50 700 Td -{12 * WIDTH / 1000} Tc (9) Tj ET", True),
        ("BT /F1 12 Tf 50 -30 Td 50 Ts (9) Tj ET", True),
        ("BT /F1 12 Tf 50 700 Td 150 Ts (9) Tj ET", False),
        ("BT /F1 12 Tf -60 700 Td 400 Tz [(9) -3000 (9)] TJ ET", True),
        ("BT /F1 12 Tf -60 700 Td 40 Tw (99 9 9) Tj ET", True),
        ("BT /F1 12 Tf 50 810 Td 20 TL (9) ' ET", True),
        ("BT /F1 12 Tf 50 5 Td 50 TL (9) ' ET", False),
        (f"1 0 0 1 0 -5000 cm {at(50, 5700)}", True),
        ("q 0 1 -1 0 300 100 cm BT /F1 12 Tf 0 0 Td (9) Tj ET Q", True),
        # clipped away: all2md#435
        (f"q 0 0 1 1 re W n {at(50, 600)} Q", False),
        (f"q 40 590 99 30 re W* n {at(50, 600)} Q", True),
        (f"q 0 0 1 1 re W n Q {at(50, 600)}", True),
        (f"q 0 0 m 300 0 l 300 900 l h W n {at(50, 600)} Q", True),
        (f"q 0 0 m 9 0 l 9 9 l h W n {at(50, 600)} Q", False),
        (f"q W n {at(50, 600)} Q", True),
        (f"q (x) 0 0 1 re W n {at(50, 600)} Q", True),
        # without a size
        (at(50, 600, more="/F1 0 Tf"), False),
        ("BT /F1 12 Tf 0 0 0 0 50 600 Tm (9) Tj ET", False),
        # transparent: hiddentext-detect in Inist-CNRS/web-services#470
        (f"/Clear gs {at(50, 600)}", False),
        (f"/ClearFill gs {at(50, 600)}", False),
        (f"/ClearFill gs {at(50, 600, more='/F1 12 Tf 2 Tr')}", True),
        (f"/ClearFill gs /Dense gs {at(50, 600)}", True),
        (f"q /Clear gs Q {at(50, 600)}", True),
        (f"/Half gs {at(50, 600)}", True),
        # under a box: liteparse#432, pdf-inspector#456
        (at(50, 600) + f"0 g {BOX} f", False),
        (at(50, 600) + f"1 g {BOX} B*", False),
        (at(52, 600, "999999") + f"0 g {BOX} f", False),
        (at(50, 600, "9" * 30) + f"0 g {BOX} f", True),
        (at(50, 600) + "50 599 100 -2 re f", True),  # underlined: x-ray#3
        (at(50, 600) + "50 605 100 1 re f", True),
        (f"0 g {BOX} f 1 g " + at(50, 600), True),
        (at(50, 600) + f"{BOX} S", True),
        (at(50, 600) + f"/Half gs {BOX} f", True),
        (at(50, 600) + f"/Multiply gs {BOX} f", True),  # marked with a pen
        (at(50, 600) + f"/Masked gs {BOX} f", True),
        (at(50, 600) + f"/Pattern cs /P1 scn {BOX} f", True),
        (at(50, 600) + f"q 0 0 9 9 re W n {BOX} f Q", True),
        (at(50, 600) + f"q 0 0 m 600 0 l 0 800 l h W n {BOX} f Q", True),
        (at(50, 600) + f"{BOX} 10 0 580 790 re f*", True),  # with a hole
        (at(50, 600) + f"q .7 .7 -.7 .7 0 0 cm {BOX} f Q", True),
        (at(50, 600) + "q .00000001 1 -1 .00000001 0 0 cm 596 -170 14 120 re f Q", False),
    ],
)
def test_text_that_no_reader_can_see_is_left_out(content: str, *, is_seen: bool) -> None:
    writer = drawn(f"q {SEEN} Q {content}")
    settings = named(
        Clear=named(ca=NumberObject(0), CA=NumberObject(0)),
        ClearFill=named(ca=NumberObject(0)),
        Dense=named(ca=NumberObject(1)),
        Half=named(ca=FloatObject(0.5)),
        Multiply=named(BM=NameObject("/Multiply")),
        Masked=named(SMask=named()),
    )
    writer.pages[0]["/Resources"][NameObject("/ExtGState")] = settings  # type: ignore[index]
    (read,) = pages_of(writer)
    assert ("9" in read, HIDDEN in read) == (is_seen, not is_seen)
    assert "Dose 10 mg" in read


@pytest.mark.parametrize(
    ("box", "is_seen"),
    [
        ((0, 650, 600, 800), False),  # PyMuPDF#1875, PdfPig#1196
        ((0, 605, 600, 800), True),
        ((600, 800, 0, 650), False),
        ((0, 900, 600, 1000), True),  # outside the page
        ((0, 0, 0, 0), True),
        ((0, 650, 600), True),  # broken
    ],
)
@pytest.mark.parametrize("rotation", [0, 90])
def test_text_that_is_cropped_is_left_out(
    box: tuple[float, ...], rotation: int, *, is_seen: bool
) -> None:
    """The rotation of a page changes nothing: pdf-inspector#318."""
    writer = drawn(SEEN + at(50, 600))
    writer.pages[0][NameObject("/CropBox")] = ArrayObject(map(FloatObject, box))
    writer.pages[0][NameObject("/Rotate")] = NumberObject(rotation)
    (read,) = pages_of(writer)
    assert read == ("Dose 10 mg\n9" if is_seen else f"Dose 10 mg\n{HIDDEN}")


@pytest.mark.parametrize(
    ("entries", "before", "form", "is_seen"),
    [
        ({}, "", at(50, 600), True),
        ({"BBox": (0, 0, 600, 400)}, "", at(50, 600), False),
        ({"BBox": (0, 0, 600, 400)}, "1 0 0 1 0 300 cm", at(50, 300), True),
        ({"Group": named()}, "/Clear gs", f"/Dense gs {at(50, 600)}", False),
        ({}, "/Clear gs", f"/Dense gs {at(50, 600)}", True),
        ({}, at(50, 600), f"{BOX} f", False),
        ({"BBox": (0, 0, 600, 400)}, at(50, 600), f"{BOX} f", True),
        ({"Group": named()}, f"{at(50, 600)} /Half gs", f"/Dense gs {BOX} f", True),
        # letters filled with a mask, which are there as clear text too
        ({"BBox": (0, 0, 600, 800)}, f"/Masked gs q /Clear gs {at(50, 600)} Q", "", True),
    ],
)
def test_text_in_a_form_that_no_reader_can_see(
    entries: dict[str, Any], before: str, form: str, *, is_seen: bool
) -> None:
    writer = drawn(f"{SEEN} q {before} /Fm Do Q")
    drawing = DecodedStreamObject()
    drawing.set_data(form.encode())
    resources: Any = writer.pages[0]["/Resources"]
    resources[NameObject("/ExtGState")] = named(
        Clear=named(ca=NumberObject(0)),
        Dense=named(ca=NumberObject(1)),
        Half=named(ca=FloatObject(0.5)),
        Masked=named(SMask=named()),
    )
    own = named(Font=resources["/Font"], ExtGState=resources["/ExtGState"])
    drawing.update(named(Subtype=NameObject("/Form"), Resources=own))
    for key, value in entries.items():
        numbers = ArrayObject(map(FloatObject, value)) if key == "BBox" else value
        drawing[NameObject(f"/{key}")] = numbers
    resources["/XObject"][NameObject("/Fm")] = writer._add_object(drawing)  # noqa: SLF001
    (read,) = pages_of(writer)
    assert ("9" in read, HIDDEN in read) == (is_seen, not is_seen)


@pytest.mark.parametrize(("size", "is_scan"), [("600 0 0 800", True), ("60 0 0 80", False)])
def test_the_invisible_text_of_a_scan_is_read(size: str, is_scan: bool) -> None:
    """A stamp on a scanned page is visible text besides that of the text recognition."""
    content = f"q {size} 0 0 cm /Im Do Q {UNSEEN}{SEEN}"
    (read,) = pages_of(drawn(content, Im=picture()))
    assert read == ("Dose 99 mg\nDose 10 mg" if is_scan else f"Dose 10 mg\n{HIDDEN}")
    inline = f"q {size} 0 0 cm BI /W 1 /H 1 /BPC 8 /CS /G ID \0 EI Q {UNSEEN}{SEEN}"
    assert pages_of(drawn(inline)) == [read]


@pytest.mark.parametrize(("y", "is_over"), [(320, True), (680, True), (720, False), (280, False)])
@pytest.mark.parametrize("order", [1, -1])
def test_invisible_text_over_a_picture_is_its_text(y: int, is_over: bool, order: int) -> None:
    receipt, recognized = "q 400 0 0 -400 100 700 cm /Im Do Q\n", text("Total 45 EUR", 3, y)
    parts = [receipt, recognized][::order]
    stamp, elsewhere = text("Page 1 of 2", 0, 20), text("SECRET", 3, 40)
    (read,) = pages_of(drawn("".join(parts) + stamp, Im=picture()))
    assert read == ("Total 45 EUR\nPage 1 of 2" if is_over else f"Page 1 of 2\n{HIDDEN}")
    (read,) = pages_of(drawn("".join(parts) + stamp + elsewhere, Im=picture()))
    assert read.endswith(HIDDEN)
    assert ("Total" in read, "SECRET" in read) == (is_over, False)


@pytest.mark.parametrize("box", [ArrayObject(), NullObject(), NumberObject(1)])
def test_the_size_of_a_page_may_be_broken(box: PdfObject) -> None:
    writer = drawn(SEEN + UNSEEN)
    writer.pages[0][NameObject("/MediaBox")] = box
    assert pages_of(writer) == [f"Dose 10 mg\n{HIDDEN}"]


@pytest.mark.parametrize(
    ("box", "picture_size", "is_read"),
    [
        ("0 0 600 800", "600 0 0 800", True),
        ("0 0 600 800", "60 0 0 80", False),
        ("50 690 200 30", "600 0 0 800", False),
    ],
)
def test_text_under_the_paper_of_a_scan_is_read(
    box: str, picture_size: str, *, is_read: bool
) -> None:
    content = f"{SEEN} 1 g {box} re f q {picture_size} 0 0 cm /Im Do Q"
    (read,) = pages_of(drawn(content, Im=picture()))
    assert read.strip() == ("Dose 10 mg" if is_read else HIDDEN)


def test_a_font_of_type_3_is_painted_in_each_mode() -> None:
    writer = drawn(SEEN + at(50, 600, more="/F3 12 Tf 7 Tr"))
    fonts: Any = writer.pages[0]["/Resources"]["/Font"]  # type: ignore[index]
    fonts[NameObject("/F3")] = named(Subtype=NameObject("/Type3"))
    assert pages_of(writer) == ["Dose 10 mg\n9"]


def test_pages_are_read_without_the_widths_of_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("pypdf.generic._font.Font")
    assert pages_of(drawn(SEEN + UNSEEN)) == [f"Dose 10 mg\n{HIDDEN}"]


def test_the_part_of_a_page_that_is_shown_may_be_a_scan() -> None:
    content = f"q 300 0 0 400 0 0 cm /Im Do Q {text('Words', 3, 300)}{text('Stamp', 0, 20)}"
    writer = drawn(content, Im=picture())
    writer.pages[0].cropbox = RectangleObject((0, 0, 300, 400))
    assert pages_of(writer) == ["Words\nStamp"]


@pytest.mark.parametrize(("scale", "is_scan"), [(600, True), (6, False)])
def test_a_scan_may_be_in_a_form(scale: int, is_scan: bool) -> None:
    after = "BT /F1 12 Tf 50 400 Td (Rent 5) Tj ET"
    writer = drawn(f"{UNSEEN} /Fm Do {after} {SEEN}", Fm=DictionaryObject())
    form = DecodedStreamObject()
    weight = f"{1 / scale} 0 0 {1 / scale} 0 0 cm {text('Weight 7', 3, 500)}"
    form.set_data(f"q 1 0 0 1.5 0 0 cm /Im Do {weight} 0 Tr q".encode())
    form[NameObject("/Subtype")] = NameObject("/Form")
    form[NameObject("/Matrix")] = ArrayObject(
        FloatObject(one) for one in (scale, 0, 0, scale, 0, 0)
    )
    form[NameObject("/Resources")] = resources_with(writer, Im=picture())
    resources: Any = writer.pages[0]["/Resources"]
    resources["/XObject"][NameObject("/Fm")] = writer._add_object(form)  # noqa: SLF001
    (read,) = pages_of(writer)
    everything = "Dose 99 mg\nWeight 7\nRent 5\nDose 10 mg"
    assert read == (everything if is_scan else f"Dose 10 mg\n{HIDDEN}"), "the mode goes on after Fm"


def test_a_scan_of_a_program() -> None:
    pdf = FPDF(unit="pt", format=PAGE)
    pdf.set_font("helvetica")
    pdf.add_page()
    pdf.image(Image.new("RGB", (6, 8)), 0, 0, *PAGE)
    with pdf.local_context(text_mode="INVISIBLE"):
        pdf.text(50, 100, "Recognized 42 EUR")
    pdf.text(50, 700, "BATES 0001")
    assert [*pdf_pages(io.BytesIO(bytes(pdf.output())), 9)] == ["Recognized 42 EUR\nBATES 0001"]


BOTH = text("Shown") + "/OC /L BDC " + text("Dose 99 mg", y=600) + "EMC " + text("End", y=500)


def layered(content: str, off: str, **layers: tuple[str, ...] | str) -> PdfWriter:
    """Return a PDF with layers `A` and `B`, of which `off` names those that are not shown.

    `layers` has the members and the policy of `L`; without them, it is the layer `A`.
    """
    writer = drawn(content)
    groups = {
        name: writer._add_object(named(Type=NameObject("/OCG"), Name=TextStringObject(name)))  # noqa: SLF001
        for name in "AB"
    }
    members = ArrayObject(groups[one] for one in layers.get("members", ()))
    policy = {"P": NameObject(str(layers["policy"]))} if "policy" in layers else {}
    several = named(Type=NameObject("/OCMD"), OCGs=members, **policy)
    resources: Any = writer.pages[0]["/Resources"]
    resources[NameObject("/Properties")] = named(L=several if "members" in layers else groups["A"])
    if off == "all but B":
        state = named(BaseState=NameObject("/OFF"), ON=ArrayObject([groups["B"]]))
    else:
        state = named(OFF=ArrayObject(groups[one] for one in off))
    writer.root_object[NameObject("/OCProperties")] = named(D=state)
    return writer


@pytest.mark.parametrize(
    ("off", "layers", "is_shown"),
    [
        ("A", {}, False),  # pdf_oxide#1373, PyMuPDF#736
        ("B", {}, True),
        ("all but B", {}, False),
        ("A", {"members": "A"}, False),
        ("A", {"members": "AB"}, True),
        ("AB", {"members": "AB"}, False),
        ("A", {"members": "AB", "policy": "/AllOn"}, False),
        ("A", {"members": "AB", "policy": "/AnyOff"}, True),
        ("B", {"members": "A", "policy": "/AnyOff"}, False),
        ("A", {"members": "AB", "policy": "/AllOff"}, False),
        ("AB", {"members": "AB", "policy": "/AllOff"}, True),
        ("AB", {"members": ""}, True),
    ],
)
def test_the_text_of_a_layer_that_is_off_is_left_out(
    off: str, layers: dict[str, str], *, is_shown: bool
) -> None:
    read = "Shown\nDose 99 mg\nEnd" if is_shown else f"Shown\nEnd\n{HIDDEN}"
    assert pages_of(layered(BOTH, off, **layers)) == [read]


@pytest.mark.parametrize(
    ("expression", "is_shown"),
    [
        (("/Not", "A"), True),
        (("/Not", "B"), False),
        (("/And", "A", "B"), False),
        (("/Or", "A", ("/Not", ("/Not", "B"))), True),
        (("/Or", "A", ("/And", "A", "B")), False),
        (("/Xor", "A"), True),
        (("/Not",), True),
        (("/Or", "A", "/B"), True),
        (("/Or", *("A",) * 100), True),
    ],
)
def test_an_expression_of_layers_counts_more_than_its_members(
    expression: tuple[Any, ...], *, is_shown: bool
) -> None:
    writer = layered(BOTH, "A", members="B" if not is_shown else "A")
    properties: Any = writer.root_object["/OCProperties"]
    off = properties["/D"]["/OFF"]
    layers = {"A": off[0], "B": writer._add_object(named(Type=NameObject("/OCG")))}  # noqa: SLF001

    def written(one: Any) -> Any:
        if isinstance(one, tuple):
            return ArrayObject(map(written, one))
        return layers.get(one) or NameObject(one)

    resources: Any = writer.pages[0]["/Resources"]
    shown = written(expression)
    if not expression[1:]:  # an operand of itself, many times
        shown.extend([writer._add_object(shown)] * 50)  # noqa: SLF001
    resources["/Properties"]["/L"][NameObject("/VE")] = shown
    read = "Shown\nDose 99 mg\nEnd" if is_shown else f"Shown\nEnd\n{HIDDEN}"
    assert pages_of(writer) == [read]


@pytest.mark.parametrize(
    ("off", "usage", "is_shown"),
    [
        ("A", {"Event": "/View", "state": "/ON"}, True),
        ("B", {"Event": "/View", "state": "/OFF"}, False),
        ("A", {"Event": "/Print", "state": "/ON"}, False),
        ("A", {"Event": "/View", "state": "/Other"}, False),
    ],
)
def test_the_usage_of_a_layer_counts_more_than_its_state(
    off: str, usage: dict[str, str], *, is_shown: bool
) -> None:
    writer = layered(BOTH, off)
    resources: Any = writer.pages[0]["/Resources"]
    layer = resources["/Properties"].raw_get("/L")
    view = named(ViewState=NameObject(usage["state"]))
    layer.get_object()[NameObject("/Usage")] = named(View=view)
    automatic = named(
        Event=NameObject(usage["Event"]),
        Category=ArrayObject([NameObject("/View")]),
        OCGs=ArrayObject([layer]),
    )
    default: Any = writer.root_object["/OCProperties"]
    default["/D"][NameObject("/AS")] = ArrayObject([automatic])
    read = "Shown\nDose 99 mg\nEnd" if is_shown else f"Shown\nEnd\n{HIDDEN}"
    assert pages_of(writer) == [read]


@pytest.mark.parametrize(
    ("content", "read"),
    [
        (f"/OC /L BDC /Span <<>> BDC {SEEN} EMC {text('8')} EMC EMC {text('7')}", f"7\n{HIDDEN}"),
        (f"/OC /L BDC {SEEN} EMC", HIDDEN),
        (f"/OC /L BDC {SEEN} EMC {UNSEEN}", f"Dose 99 mg\n{HIDDEN}"),
        (f"/OC /L BDC {SEEN}", HIDDEN),
        (f"/OC /Other BDC {SEEN} EMC", "Dose 10 mg"),
        (f"/OC <</Type /OCG>> BDC {SEEN} EMC", "Dose 10 mg"),
        (f"/L /OC BDC {SEEN} EMC", "Dose 10 mg"),
    ],
)
def test_marked_content_of_a_layer_that_is_off(content: str, read: str) -> None:
    assert pages_of(layered(content, "A")) == [read]


def test_layers_that_are_no_layers_are_shown() -> None:
    writer = layered(BOTH, "A")
    resources: Any = writer.pages[0]["/Resources"]
    for broken in (NullObject(), NumberObject(1), strings("x")):
        resources[NameObject("/Properties")] = broken
        writer.root_object[NameObject("/OCProperties")] = broken
        assert pages_of(writer) == ["Shown\nDose 99 mg\nEnd"]


def test_a_form_or_a_note_of_a_layer_that_is_off() -> None:
    writer = layered(f"/Fm Do {SEEN}", "A")
    resources: Any = writer.pages[0]["/Resources"]
    form = DecodedStreamObject()
    form.set_data(text("DRAFT").encode())
    layer = resources["/Properties"].raw_get("/L")
    form.update(named(Subtype=NameObject("/Form"), OC=layer, Resources=resources_with(writer)))
    resources["/XObject"][NameObject("/Fm")] = writer._add_object(form)  # noqa: SLF001
    of_the_layer = note("/Text", "not shown")
    of_the_layer[NameObject("/OC")] = layer
    writer.pages[0][NameObject("/Annots")] = ArrayObject([of_the_layer, note("/Text", "shown")])
    assert pages_of(writer) == [f"Dose 10 mg\n{HIDDEN}\nnote: shown"]


@pytest.mark.parametrize("entries", [{}, {"NeedsRendering": BooleanObject(True)}])
def test_a_form_whose_content_is_xfa_is_refused(entries: dict[str, Any]) -> None:
    """pypdf#1224, pdf.js#13781."""
    writer = drawn(text("Please wait..."))
    fields = ArrayObject([button("smoker")] if entries else [])
    writer.root_object[NameObject("/AcroForm")] = named(XFA=ArrayObject(), Fields=fields)
    writer.root_object.update(named(**entries))
    with pytest.raises(RefusedError, match="is an XFA form"):
        pages_of(writer)


def xfa_form(content: str) -> PdfWriter:
    writer = drawn(content)
    writer.root_object[NameObject("/AcroForm")] = named(XFA=ArrayObject(), Fields=ArrayObject())
    writer.root_object[NameObject("/NeedsRendering")] = BooleanObject(True)
    return writer


@pytest.mark.parametrize("content", ["", text("Bitte warten. See www.adobe.com.")])
def test_an_xfa_form_that_shows_nothing_is_refused(content: str) -> None:
    with pytest.raises(RefusedError, match="is an XFA form"):
        pages_of(xfa_form(content))


def test_the_pages_of_an_xfa_form_are_read_if_they_say_something() -> None:
    assert pages_of(xfa_form(SEEN)) == ["Dose 10 mg"]
    filled = xfa_form(text("Please wait..."))
    filled.pages[0][NameObject("/Annots")] = ArrayObject(
        [named(Subtype=NameObject("/Widget"), T=TextStringObject("dose"), V=strings("5 mg"))]
    )
    assert pages_of(filled) == ["Please wait...\ndose: 5 mg"]


@pytest.mark.parametrize(
    "form",
    [{}, {"XFA": NullObject()}, {"XFA": ArrayObject(), "Fields": ArrayObject([NullObject()])}],
)
def test_a_form_that_is_not_only_xfa_is_read(form: dict[str, Any]) -> None:
    writer = drawn(SEEN)
    writer.root_object[NameObject("/AcroForm")] = named(**form)
    assert pages_of(writer) == ["Dose 10 mg"]


def note(kind: str, words: str, **more: str) -> DictionaryObject:
    entries = {"/Subtype": NameObject(kind), "/Contents": TextStringObject(words)}
    entries |= {f"/{key}": TextStringObject(value) for key, value in more.items()}
    return DictionaryObject({NameObject(key): value for key, value in entries.items()})


def test_notes_and_what_they_mark() -> None:
    writer = drawn(SEEN)
    writer.add_annotation(0, FreeText(text="PAID", rect=(50, 550, 200, 650)))
    writer.add_annotation(0, Text(text="Ask for 88 EUR", rect=(50, 400, 200, 420)))
    notes: Any = writer.pages[0]["/Annots"]
    for one in (
        note("/Highlight", "too much"),
        note("/Highlight", ""),
        note("/StrikeOut", "not valid"),
        note("/Link", "a link"),
        note("/Text", "Accepted set by Ann", StateModel="Review", State="Accepted"),
    ):
        notes.append(one)
    assert pages_of(writer) == [
        "Dose 10 mg\nPAID\nnote: Ask for 88 EUR\nnote: too much\nnote: not valid\n"
        "(some text of this page is struck out; it is read like the other text)"
    ]


@pytest.mark.parametrize(
    ("annotation", "read"),
    [
        (note("/Square", "too high"), "note: too high"),  # pdfannots#46
        (note("/Ink", ""), ""),
        (note("/FileAttachment", "the chart"), "note: the chart"),
        (note("/Popup", "not a note"), ""),
        (note("/FreeText", "", RC="<body><p>a&amp;b</p><p>c<br/>d<</p></body>"), "a&b\nc\nd<"),
        (note("/Circle", "", RC="<p><b>r</b>ich</p>"), "note: rich"),
        (note("/Circle", "", RC="<" * 200_000),
         "note: (a note of more than 100,000 characters, which is not read)"),
        (note("/Stamp", "", Name="/Void"), "stamp: Void"),
        (note("/Stamp", "by Ann", Name="/Approved"), "note: by Ann\nstamp: Approved"),
        (note("/Stamp", "", Name="/x81-5"), ""),
    ],
)  # fmt: skip
def test_notes_of_every_form(annotation: DictionaryObject, read: str) -> None:
    writer = drawn(SEEN)
    writer.pages[0][NameObject("/Annots")] = ArrayObject([annotation])
    assert pages_of(writer) == [f"Dose 10 mg\n{read}".strip()]


def strings(*texts: str | tuple[str, ...]) -> ArrayObject:
    return ArrayObject(
        TextStringObject(one) if isinstance(one, str) else strings(*one) for one in texts
    )


YES, OFF = NameObject("/Yes"), NameObject("/Off")
SEX = strings(("1", "Male"), ("2", "Female"))
ALLERGIES = strings(("1", "Latex"), "None", ("3", "Penicillin"))


@pytest.mark.parametrize(
    ("kind", "entries", "said"),
    [
        ("/Btn", {"AS": YES}, "Yes"),
        ("/Btn", {"V": YES, "AS": OFF}, "[ ]"),  # pypdf#3115
        ("/Btn", {"V": OFF, "AS": YES}, "Yes"),
        ("/Btn", {"V": NameObject("/0"), "AS": NameObject("/0")}, "[x]"),
        ("/Btn", {"V": NameObject("/0"), "Opt": strings("Allergic")}, "Allergic"),
        ("/Btn", {"V": NameObject("/1"), "Opt": strings("Yes", "No")}, "No"),  # pdf-lib#111
        ("/Btn", {"V": NameObject("/00000000099"), "Opt": strings("Yes")}, "Yes"),
        ("/Btn", {"V": NameObject("/9"), "Opt": strings("Yes")}, "[x]"),
        ("/Ch", {"V": TextStringObject("2"), "Opt": SEX}, "Female"),  # pdf_oxide#1359
        ("/Ch", {"V": TextStringObject("other"), "Opt": SEX}, "other"),
        ("/Ch", {"V": strings("1", "3"), "Opt": ALLERGIES}, "Latex, Penicillin"),
        ("/Ch", {"I": ArrayObject([NumberObject(1), NumberObject(9)]), "Opt": SEX}, "Female"),
        ("/Ch", {"I": ArrayObject([NumberObject(1)])}, None),
        ("/Ch", {"V": TextStringObject("2"), "Opt": ArrayObject([ArrayObject()])}, "2"),
    ],
)
def test_choices_are_read_as_the_form_shows_them(
    kind: str, entries: dict[str, Any], said: str | None
) -> None:
    writer = drawn(SEEN)
    field = named(Subtype=NameObject("/Widget"), FT=NameObject(kind), T=TextStringObject("field"))
    field.update(named(**entries))
    writer.pages[0][NameObject("/Annots")] = ArrayObject([field])
    told = "" if said is None else f"\nfield: {said}"
    assert pages_of(writer) == [f"Dose 10 mg{told}"]


@pytest.mark.parametrize(
    ("states", "entries", "said"),
    [
        (("/Off", "/1"), {}, "1"),
        (("/Off", "/1"), {"Opt": strings("Yes", "No")}, "No"),
        (("/Off", "/2", "/Off"), {"Opt": strings("mild", "moderate", "severe")}, "moderate"),
        (("/2", "/Off", "/2"), {"Opt": strings("1", "2", "1")}, "1"),
        (("/Off", "/2"), {"Opt": strings("Yes")}, "2"),
        (("/Off", "/Off"), {"V": NameObject("/1"), "Opt": strings("Yes", "No")}, "[ ]"),
        (("/Off",) * 101, {"V": NameObject("/1"), "Opt": strings("Yes", "No")}, "No"),
    ],
)
def test_a_group_of_buttons_is_told_once(
    states: tuple[str, ...], entries: dict[str, Any], said: str
) -> None:
    writer = drawn(SEEN)
    group = named(FT=NameObject("/Btn"), T=TextStringObject("allergy"), **entries)
    parent = writer._add_object(group)  # noqa: SLF001 - no other way
    buttons = ArrayObject(
        writer._add_object(  # noqa: SLF001
            named(Subtype=NameObject("/Widget"), AS=NameObject(state), Parent=parent)
        )
        for state in states
    )
    group[NameObject("/Kids")] = writer.pages[0][NameObject("/Annots")] = buttons
    assert pages_of(writer) == [f"Dose 10 mg\nallergy: {said}"]


def button(name: str, state: str = "", flags: int = 0) -> DictionaryObject:
    entries = {
        "/Subtype": NameObject("/Widget"),
        "/FT": NameObject("/Btn"),
        "/T": TextStringObject(name),
        "/Ff": NumberObject(flags),
    }
    entries |= {"/V": NameObject(state)} if state else {}
    return DictionaryObject({NameObject(key): value for key, value in entries.items()})


def test_fields_of_one_name_in_different_groups_are_all_told() -> None:
    writer = drawn(SEEN)
    boxes = []
    for group, state in (("q1", "/Off"), ("q2", "/Off"), ("q2", "/Off"), ("q3", "/Yes")):
        parent = DictionaryObject({NameObject("/T"): TextStringObject(group)})
        boxes.append(button("yes", state))
        boxes[-1][NameObject("/Parent")] = writer._add_object(parent)  # noqa: SLF001
    writer.pages[0][NameObject("/Annots")] = ArrayObject(boxes)
    assert pages_of(writer) == ["Dose 10 mg\nyes: [ ]\nyes: [ ]\nyes: Yes"]


def test_a_box_that_is_not_ticked_says_so() -> None:
    writer = drawn(SEEN)
    writer.pages[0][NameObject("/Annots")] = ArrayObject(
        [button("smoker", "/Yes"), button("allergy", "/Off"), button("asthma"),
         button("Print", flags=1 << 16)]
    )  # fmt: skip
    assert pages_of(writer) == ["Dose 10 mg\nsmoker: Yes\nallergy: [ ]\nasthma: [ ]"]


def test_what_a_pdf_holds_beside_its_text() -> None:
    """vandalizer#802 (forms), pdf_oxide#92 (notes), hermes-agent#81680 (scans), kcc#1398."""
    pdf = FPDF()
    pdf.set_font("helvetica")
    for number in range(3):
        pdf.add_page()
        pdf.cell(text=f"page {number + 1}")
    writer = PdfWriter(clone_from=io.BytesIO(pdf.output()))
    field = DictionaryObject(
        {
            NameObject("/FT"): NameObject("/Tx"),
            NameObject("/Subtype"): NameObject("/Widget"),
            NameObject("/T"): TextStringObject("amount"),
            NameObject("/V"): TextStringObject("99.50 EUR"),
        }
    )
    secret = DictionaryObject(field | {NameObject("/Ff"): NumberObject(8192)})
    hidden = DictionaryObject(field | {NameObject("/F"): NumberObject(2)})
    values = ArrayObject([TextStringObject("/day"), TextStringObject("night")])
    parent = DictionaryObject(
        {NameObject("/T"): TextStringObject("when"), NameObject("/V"): values}
    )
    group = DictionaryObject(
        {NameObject("/Subtype"): NameObject("/Widget"), NameObject("/Parent"): parent}
    )
    writer.pages[0][NameObject("/Annots")] = ArrayObject(
        [NullObject(), field, field, secret, hidden, group]
    )
    writer.add_annotation(0, FreeText(text="PAID", rect=(50, 550, 200, 650)))
    del writer.pages[1]["/Contents"]
    broken = StreamObject()
    broken[NameObject("/Filter")] = NameObject("/LZWDecode")
    broken.set_data(b"this is no LZW")
    writer.pages[2][NameObject("/Contents")] = broken
    content = io.BytesIO()
    writer.write(content)
    as_mailed = io.BytesIO(b"From: a mail program\r\n" + content.getvalue())
    first, second, third = pdf_pages(as_mailed, 3)
    assert "page 1\namount: 99.50 EUR\nwhen: /day, night\nPAID" in first
    assert second.strip() == "(page 2 has no text: it is empty, or a picture)"
    assert third.strip() == "(page 3 is broken and not read)"
