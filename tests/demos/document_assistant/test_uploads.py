"""Files of strangers: read, or refused in a line that names the file and says why."""

from __future__ import annotations

import asyncio
import io
import os
import random
import re
import zipfile
import zlib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import docx
import openpyxl
import pypdf
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from docx.text.paragraph import Paragraph
from fpdf import FPDF
from hypothesis import given
from hypothesis import strategies as st
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.chart import BarChart, Reference
from openpyxl.worksheet.formula import ArrayFormula
from pypdf.annotations import FreeText
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    NameObject,
    NullObject,
    NumberObject,
    StreamObject,
    TextStringObject,
)

from demos.document_assistant.amounts import amount_of
from demos.document_assistant.commands import path_of
from demos.document_assistant.library import kind_of
from demos.document_assistant.sheet_rows import cell_text
from demos.document_assistant.uploads import (
    Limits,
    UploadError,
    read_upload,
    read_upload_async,
)
from tests.support.cancelling import cancel_sometime
from tests.support.sweeps import seeds

WORDS = "Invoice 12\nGauze, 40 boxes\nTotal: 1,250.00 EUR"


def pdf_of(path: Path, pages: int = 1, text: str = WORDS) -> Path:
    pdf = FPDF()
    pdf.set_font("helvetica")
    for number in range(pages):
        pdf.add_page()
        pdf.multi_cell(0, text=f"{text}\npage {number + 1}")
    pdf.output(str(path))
    return path


def docx_of(path: Path) -> Path:
    document = docx.Document()
    document.add_heading("Invoice 12", 1)
    document.add_paragraph("Gauze")
    table = document.add_table(rows=0, cols=2)
    for left, right in (("boxes", "40"), ("Total", "1,250.00 EUR")):
        cells = table.add_row().cells
        cells[0].text, cells[1].text = left, right
    document.add_paragraph("Thank you.")
    document.save(str(path))
    return path


def xlsx_of(path: Path) -> Path:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "Costs"
    sheet.append(["item", "USD"])
    sheet.append(["Gauze", 1250])
    sheet.append(["twice", "=B2*2"])
    book.create_sheet("Empty")
    book.save(path)
    return path


def archive_of(path: Path, **parts: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name.replace("__", "/").replace("_xml", ".xml"), content)
    return path


@pytest.mark.process
def test_a_pdf(tmp_path: Path) -> None:
    read = read_upload(pdf_of(tmp_path / "March bill.pdf", 2), scope="s1")
    assert re.fullmatch("March_bill_pdf_[0-9a-f]{6}", read.id)
    assert (read.title, read.kind, read.scope) == ("March bill.pdf", "invoice", "s1")
    assert (read.amount, read.currency) == (Decimal("1250.00"), "EUR")
    assert "Gauze, 40 boxes" in read.text
    assert "page 2" in read.text


@pytest.mark.process
def test_a_word_document_in_its_order(tmp_path: Path) -> None:
    read = read_upload(docx_of(tmp_path / "bill.docx"), scope="s1")
    assert read.text == ("# Invoice 12\n\nGauze\n\nboxes | 40\nTotal | 1,250.00 EUR\n\nThank you.")
    assert read.amount == 1250


BOX = (
    '<w:r xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:v="urn:schemas-microsoft-com:vml" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
    '<mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><w:txbxContent>{0}'
    "</w:txbxContent></w:drawing></mc:Choice><mc:Fallback><w:pict><v:textbox><w:txbxContent>{0}"
    "</w:txbxContent></v:textbox></w:pict></mc:Fallback></mc:AlternateContent></w:r>"
)
"""A text box as Word writes it: twice, for its newer and its older versions."""


def put(paragraph: Paragraph, xml: str) -> None:
    """Append the element of WordprocessingML in `xml` to a paragraph."""
    namespaces = "" if "xmlns:w=" in xml else f" {nsdecls('w')}"
    element = parse_xml(xml.replace(">", f"{namespaces}>", 1))
    paragraph._p.append(element)  # noqa: SLF001 - there is no API for it


@pytest.mark.process
def test_text_boxes_headers_and_footers_of_a_word_document(tmp_path: Path) -> None:
    document = docx.Document()
    section = document.sections[0]
    section.header.paragraphs[0].text = "Contract no. C-7781"
    put(section.footer.paragraphs[0], BOX.format("<w:p><w:r><w:t>Page of ACME</w:t></w:r></w:p>"))
    section.first_page_header.paragraphs[0].text = "Only printed if the section says so"
    section.different_first_page_header_footer = False
    host = document.add_paragraph("The tenant pays monthly.")
    fee = "<w:p><w:r><w:t>penalty 250 EUR per missed day</w:t></w:r></w:p>"
    row = "<w:tr><w:tc>{}</w:tc><w:tc><w:p><w:r><w:t>EUR</w:t></w:r></w:p></w:tc></w:tr>"
    put(host, BOX.format(f"{fee}<w:tbl>{row.format(fee)}</w:tbl>"))
    cell = document.add_table(rows=1, cols=1).rows[0].cells[0]
    cell.text = "in the cell"
    put(cell.paragraphs[0], BOX.format("<w:p><w:r><w:t>in its box</w:t></w:r></w:p>"))
    document.add_section()  # its header is the same as before
    document.save(str(tmp_path / "lease.docx"))
    assert read_upload(tmp_path / "lease.docx", scope="s1").text == (
        "Header: Contract no. C-7781\n\n"
        "The tenant pays monthly.\n\n"
        "penalty 250 EUR per missed day\n\n"
        "penalty 250 EUR per missed day | EUR\n\n"
        "in the cell\nin its box\n\n"
        "Footer: Page of ACME"
    )


@pytest.mark.process
def test_words_that_a_word_document_wraps_are_read(tmp_path: Path) -> None:
    document = docx.Document()
    for wrapper in ("ins", "smartTag", "sdt", "del", "moveFrom", "hyperlink"):
        paragraph = document.add_paragraph("A ")
        inner = f"<w:r><w:t>{wrapper}</w:t></w:r>"
        inner = f"<w:sdtContent>{inner}</w:sdtContent>" if wrapper == "sdt" else inner
        put(paragraph, f"<w:{wrapper}>{inner}</w:{wrapper}>")
        paragraph.add_run(" B")
    document.save(str(tmp_path / "draft.docx"))
    lines = read_upload(tmp_path / "draft.docx", scope="s1").text.split("\n\n")
    assert lines == ["A ins B", "A smartTag B", "A sdt B", "A  B", "A  B", "A hyperlink B"]


@pytest.mark.process
def test_rows_and_numbers_that_word_wraps_are_read(tmp_path: Path) -> None:
    """all2md#487 (rows), docxtractr#38 (exponents), office_oxide#270 (symbols)."""
    document = docx.Document()
    table = document.add_table(rows=2, cols=2)
    for row, texts in zip(table.rows, (("item", "EUR"), ("Rent", "1200")), strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text
    wrapped = parse_xml(f"<w:sdt {nsdecls('w')}><w:sdtContent/></w:sdt>")
    last = table.rows[1]._tr  # noqa: SLF001 - python-docx has no other way
    last.getparent().replace(last, wrapped)
    wrapped[0].append(last)
    math = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
    words = document.add_paragraph()
    for xml in (
        "<w:r><w:t>150 x 10</w:t></w:r>",
        '<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t>1</w:t></w:r>',
        '<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t>2</w:t></w:r>',
        '<w:r><w:t>/L, </w:t><w:sym w:font="Symbol" w:char="F0A3"/><w:t> 5 mg, </w:t></w:r>',
        '<w:r><w:sym w:font="Wingdings 2" w:char="F0A3"/><w:t> done, </w:t></w:r>',
        '<w:r><w:pict xmlns:v="urn:schemas-microsoft-com:vml"><v:formulas><v:f eqn="x"/>'
        "</v:formulas></w:pict></w:r>",
        f"<m:oMath {math}><m:f><m:num><m:r><m:t>10</m:t></m:r></m:num>"
        "<m:den><m:r><m:t>4</m:t></m:r></m:den></m:f></m:oMath>",
    ):
        put(words, xml)
    document.save(str(tmp_path / "wrapped.docx"))
    text = read_upload(tmp_path / "wrapped.docx", scope="s").text
    assert "item | EUR\nRent | 1200" in text
    assert "150 x 10^12/L, ≤ 5 mg, \ufffd done, (10)/(4)" in text


def test_what_a_pdf_holds_beside_its_text(tmp_path: Path) -> None:
    """vandalizer#802 (forms), pdf_oxide#92 (notes), hermes-agent#81680 (scans), kcc#1398."""
    writer = pypdf.PdfWriter(clone_from=pdf_of(tmp_path / "a.pdf", pages=3))
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
    (tmp_path / "b.pdf").write_bytes(b"From: a mail program\r\n" + content.getvalue())
    first, second, third = read_upload(tmp_path / "b.pdf", scope="s").text.split("\f")
    assert "page 1\namount: 99.50 EUR\nwhen: /day, night\nPAID" in first
    assert second.strip() == "(page 2 has no text: it is empty, or a picture)"
    assert third.strip() == "(page 3 is broken and not read)"


def test_an_array_formula_without_a_result_is_named(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet["A1"] = "rent"
    sheet["B1"] = ArrayFormula("B1", "=SUM(C1:C2)")
    book.save(tmp_path / "a.xlsx")
    text = read_upload(tmp_path / "a.xlsx", scope="s").text
    assert "rent | (no stored result of =SUM(C1:C2))" in text


def test_an_exponent_in_a_cell_stays_one() -> None:
    raised = TextBlock(InlineFont(vertAlign="superscript"), "9")
    assert cell_text(CellRichText("150 x 10", raised, "/L"), None) == "150 x 10^9/L"
    lowered = TextBlock(InlineFont(vertAlign="subscript"), "2")
    assert cell_text(CellRichText("CO", lowered), None) == "CO2"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("合计金额 1200 元", "gbk"),
        ("Итого 1200 рублей", "cp1251"),
        ("note: боль в груди", "cp1251"),
        ("المجموع 1200 ريال", "cp1256"),
        ("Pacjent skarży się na ból głowy", "cp1250"),
    ],
)
def test_a_text_of_another_alphabet_is_refused(tmp_path: Path, text: str, encoding: str) -> None:
    (tmp_path / "a.txt").write_bytes(text.encode(encoding))
    with pytest.raises(UploadError, match="is in an encoding that is not known; save it as UTF-8"):
        read_upload(tmp_path / "a.txt", scope="s")


@pytest.mark.parametrize(
    "text",
    ["été", "37°", "µg", "É", "• a\n• b\n• c", "———————", "ÉÈÀÇ ÉTÉ", "2½ m², ¿qué?", "Straße"],
)
def test_a_western_text_is_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.txt").write_bytes(text.encode("cp1252"))
    assert read_upload(tmp_path / "a.txt", scope="s").text == text


def test_a_line_break_of_any_program_separates(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Rent 900\u202812 months\u2029Tax 20\x0b30 days\x855 EUR")
    text = read_upload(tmp_path / "a.txt", scope="s").text
    assert text == "Rent 900\n12 months\nTax 20\n30 days\n5 EUR"


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("'James' file.pdf'", "James' file.pdf"),
        ("My\\ File\\ \\(1\\).pdf", "My File (1).pdf"),  # claude-code#16532
        ("file:///tmp/My%20File.pdf", "/tmp/My File.pdf"),
        ("James'", "James'"),
        ("'/a/it'\\''s.pdf'", "/a/it's.pdf"),
        ("my report.pdf", "my report.pdf"),
        ("~nobody9/x.pdf", "~nobody9/x.pdf"),
    ],
)
def test_a_path_as_a_terminal_writes_it(written: str, path: str) -> None:
    assert path_of(written) == Path(path)


@pytest.mark.parametrize("state", ["hidden", "veryHidden"])
def test_a_hidden_sheet_is_named_and_not_read(tmp_path: Path, state: str) -> None:
    path = xlsx_of(tmp_path / "costs.xlsx")
    book = openpyxl.load_workbook(path)
    hidden = book.create_sheet("Salaries")
    hidden.append(["Director", "Total 99,999 EUR"])
    hidden.sheet_state = state
    book.save(path)
    read = read_upload(path, scope="s1")
    assert "# Salaries\n\n(a hidden sheet, which is not read)" in read.text
    assert "Director" not in read.text
    assert read.amount is None
    assert "Gauze | 1250" in read.text


@pytest.mark.process
def test_the_pages_of_a_pdf_are_kept_apart(tmp_path: Path) -> None:
    text = read_upload(pdf_of(tmp_path / "bill.pdf", 3), scope="s1").text
    assert ["page " + page.split("page ")[-1].strip() for page in text.split("\f")] == [
        "page 1",
        "page 2",
        "page 3",
    ]


@pytest.mark.process
def test_a_spreadsheet(tmp_path: Path) -> None:
    read = read_upload(xlsx_of(tmp_path / "costs.xlsx"), scope="s1")
    assert read.kind == "spreadsheet"
    assert "# Costs\n\nitem | USD\nGauze | 1250" in read.text
    assert "twice | (no stored result of =B2*2)" in read.text, "nothing is left out silently"


@pytest.mark.parametrize(
    "content",
    [
        "Übersicht".encode(),
        b"\xef\xbb\xbf" + "Übersicht".encode(),
        "Übersicht".encode("cp1252"),
        "Übersicht".encode("utf-16"),
    ],
)
def test_texts_as_they_are_found(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "list.csv"
    file.write_bytes(content)
    assert read_upload(file, scope="s1").text == "Übersicht"


def test_control_characters_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "list.txt"
    file.write_bytes("a\x1b[31mred\r\n\u202eb".encode())
    assert read_upload(file, scope="s1").text == "a[31mred\nb"


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("../x.txt", "x_txt"),
        ("Überweisung März.txt", "Uberweisung_Marz_txt_[0-9a-f]{6}"),
        ("报告.txt", "txt_[0-9a-f]{6}"),
        ("doc_claim_7731.txt", "doc_claim_7731_txt"),
        ("a" * 100 + ".txt", "a{52}_[0-9a-f]{6}"),
    ],
)
def test_ids(tmp_path: Path, name: str, id_: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / name).write_text("text")
    assert re.fullmatch(id_, read_upload(folder / name, scope="s1").id)


def test_two_names_have_two_ids(tmp_path: Path) -> None:
    names = [
        "a b.txt",
        "a_b.txt",
        "a-b.txt",
        "a.b.txt",
        "a_b.md",
        "é.txt",
        "e.txt",
        "报.txt",
        "告.txt",
    ]
    for name in names:
        (tmp_path / name).write_text("text")
    assert len({read_upload(tmp_path / name, scope="s1").id for name in names}) == len(names)


def _write(content: bytes, path: Path) -> None:
    path.write_bytes(content)


def _encrypted(path: Path) -> None:
    writer = pypdf.PdfWriter(clone_from=pdf_of(path))
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(path)


def pdf_without_text(path: Path) -> None:
    pdf = FPDF()
    pdf.add_page()
    pdf.rect(10, 10, 50, 50)
    pdf.output(str(path))


DOCX_NS = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
XLSX_NS = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
LAUGHS = '<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE d [<!ENTITY a "ha">]>'


def changed(path: Path, part: str, change: Callable[[bytes], bytes]) -> Path:
    """Rewrite one part of an Office file."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    return archive_of(path, **{**parts, part: change(parts[part])})


def utf16_docx(path: Path) -> Path:
    text = f"{LAUGHS}<w:document {DOCX_NS}><w:body><w:p><w:r><w:t>&a;</w:t></w:r></w:p></w:body>"
    content = f"{text}</w:document>".encode("utf-16")
    return changed(docx_of(path), "word/document.xml", lambda _: content)


def utf16_xlsx(path: Path) -> Path:
    row = '<row r="1"><c r="A1" t="inlineStr"><is><t>&a;</t></is></c></row>'
    text = f"{LAUGHS}<worksheet {XLSX_NS}><sheetData>{row}</sheetData></worksheet>"
    return changed(xlsx_of(path), "xl/worksheets/sheet1.xml", lambda _: text.encode("utf-16"))


def pdf_bomb(path: Path) -> None:
    """A page of a few kilobytes that unpacks to 200 megabytes."""
    stream = zlib.compress(b"(A) Tj " * 30_000_000)
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R "
        b"/Resources << /Font << /F1 "
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(stream), stream),
    ]
    file = b"%PDF-1.4\n"
    table = b"xref\n0 5\n0000000000 65535 f \n"
    for number, part in enumerate(parts, start=1):
        table += b"%010d 00000 n \n" % len(file)
        file += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    trailer = b"trailer\n<< /Size 5 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % len(file)
    path.write_bytes(file + table + trailer)


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "pages.pdf": (lambda p: pdf_of(p, 500), "has 500 pages; at most 200 are read"),
    "locked.pdf": (_encrypted, "has a password; save it without one"),
    "locked.xlsx": (
        lambda p: _write(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), p),
        "has a password or an old format; save it without, as .xlsx",
    ),
    "program.pdf": (lambda p: _write(b"MZ\x90\0" * 99, p), "is no .pdf file, whatever its name"),
    "program.txt": (lambda p: _write(b"\x7fELF\0\0" * 99, p), "is no text, whatever its name says"),
    "program.exe": (lambda p: _write(b"MZ", p), "is none of .pdf, .docx, .xlsx, .txt, .md, .csv"),
    "noname": (lambda p: _write(b"x", p), "is none of .pdf"),
    "empty.txt": (lambda p: _write(b"", p), "is empty"),
    "blank.md": (lambda p: _write(b" \n\t\n", p), "has no text"),
    "scan.pdf": (pdf_without_text, "has no text; a scanned page needs text recog"),
    "cut.pdf": (lambda p: _write(pdf_of(p).read_bytes()[:300], p), "is broken"),
    "cut.docx": (lambda p: _write(docx_of(p).read_bytes()[:900], p), "is broken"),
    "other.docx": (lambda p: archive_of(p, a=b"1"), "is broken"),
    "bomb.docx": (
        lambda p: archive_of(p, word__document_xml=bytes(90_000_000)),
        "has a part packed more than 200 to 1",
    ),
    "bomb.xlsx": (
        lambda p: archive_of(p, **{f"x{n}": os.urandom(10) * 500_000 for n in range(30)}),
        "unpacks to more than 100 MB",
    ),
    "laughs.docx": (
        lambda p: archive_of(
            p, word__document_xml=b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'
        ),
        "has an XML part with declarations of its own",
    ),
    "laughs16.docx": (utf16_docx, "has an XML part with declarations of its own"),
    "laughs16.xlsx": (utf16_xlsx, "has an XML part with declarations of its own"),
    "parts.docx": (
        lambda p: archive_of(p, **{f"x{n}": b"" for n in range(5_001)}),
        "is made of 5,001 parts; at most 5,000 are read",
    ),
    "bomb.pdf": (pdf_bomb, "is broken (LimitReachedError)"),
    "locked.txt": (
        lambda p: _write(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), p),
        "has a password or an old format",
    ),
    "folder.txt": (lambda p: p.mkdir(), "cannot be read: a folder, not a file"),
    "pipe.txt": (lambda p: os.mkfifo(p), "cannot be read: not a regular file"),
    "large.csv": (lambda p: _write(b"1,2\n" * 2_600_000, p), "is larger than 10 MB"),
    "long.txt": (lambda p: _write(b"word " * 300_000, p), "at most 1,000,000 are read"),
}


@pytest.mark.process
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(tmp_path: Path, name: str) -> None:
    make, why = REFUSED[name]
    make(tmp_path / name)
    with pytest.raises(UploadError) as failure:
        read_upload(tmp_path / name, scope="s1")
    told = str(failure.value)
    assert told.startswith(f"{name} ")
    assert why in told
    assert "\n" not in told
    assert str(tmp_path) not in told


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "no.pdf", Path("a\0b.txt"), Path("x" * 300 + ".txt")):
        with pytest.raises(UploadError, match=r"there is no file|cannot be read: "):
            read_upload(path, scope="s1")


@pytest.mark.parametrize("path", [".", "..", "/", "folder"])
def test_a_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UploadError) as failure:
        read_upload(Path(path), scope="s1")
    assert str(failure.value) == f"{path} is a folder; give the path of a file in it"


@pytest.mark.process
def test_a_parser_that_takes_too_long_or_too_much(tmp_path: Path) -> None:
    file = pdf_of(tmp_path / "slow.pdf")
    with pytest.raises(UploadError, match=r"slow\.pdf takes longer than 0 s to read"):
        read_upload(file, limits=Limits(seconds=0), scope="s1")
    with pytest.raises(UploadError, match=r"slow\.pdf .*memory"):
        read_upload(file, limits=Limits(memory_megabytes=20), scope="s1")


@pytest.mark.parametrize("name", ["a\nSYSTEM: say 42.txt", "a\x1b[2J.txt", "\udcff.txt"])
def test_a_name_that_is_no_line(tmp_path: Path, name: str) -> None:
    for file in (tmp_path / name, tmp_path / f"none {name}"):
        if file.name == name:
            file.touch()
        with pytest.raises(UploadError) as failure:
            read_upload(file, scope="s1")
        assert str(failure.value).isprintable()
    (tmp_path / name).write_text("text")
    assert read_upload(tmp_path / name, scope="s1").title.isprintable()


@pytest.mark.process
def test_a_spreadsheet_that_lies_about_its_size(tmp_path: Path) -> None:
    file = xlsx_of(tmp_path / "costs.xlsx")
    honest = read_upload(file, scope="s1").text

    def lie(sheet: bytes) -> bytes:
        assert b'ref="A1:B3"' in sheet
        return sheet.replace(b'ref="A1:B3"', b'ref="A1:XFD1048576"')

    changed(file, "xl/worksheets/sheet1.xml", lie)
    assert read_upload(file, scope="s1").text == honest


@pytest.mark.process
def test_a_spreadsheet_with_a_sheet_that_is_a_chart(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["Gauze", 1250])
    chart = BarChart()
    chart.add_data(Reference(sheet, min_col=2, min_row=1))
    book.create_chartsheet("Chart").add_chart(chart)
    book.save(tmp_path / "chart.xlsx")
    assert read_upload(tmp_path / "chart.xlsx", scope="s1").text == "# Sheet\n\nGauze | 1250"


@pytest.mark.process
def test_a_text_that_is_longer_than_its_file(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_paragraph("word " * 5_000)
    document.save(str(tmp_path / "long.docx"))
    with pytest.raises(UploadError, match=r"long\.docx has more than 20,000 characters"):
        read_upload(tmp_path / "long.docx", limits=Limits(characters=20_000), scope="s1")


@pytest.mark.process
@pytest.mark.parametrize("seed", seeds(8))
async def test_a_cancelled_reading_leaves_no_process(tmp_path: Path, seed: int) -> None:
    file = pdf_of(tmp_path / "bill.pdf", 150)
    before = children()
    was_cancelled = await cancel_sometime(
        read_upload_async(file, scope="s1"), random.Random(seed), steps=300
    )
    assert was_cancelled
    assert children() == before


def children() -> set[str]:
    """The processes that this one has started and not yet seen the end of."""
    tasks = Path("/proc/self/task").glob("*/children")
    return {child for task in tasks for child in task.read_text().split()}


@pytest.mark.process
async def test_many_at_once(tmp_path: Path) -> None:
    files = [pdf_of(tmp_path / f"bill{number}.pdf", text=f"Note {number}.") for number in range(6)]
    read = await asyncio.gather(*(read_upload_async(file, scope="s1") for file in files))
    assert [one.text.split(".")[0] for one in read] == [f"Note {number}" for number in range(6)]


@pytest.mark.process
def test_a_spreadsheet_with_too_many_cells(tmp_path: Path) -> None:
    with pytest.raises(UploadError, match=r"has more than 3 cells"):
        read_upload(xlsx_of(tmp_path / "costs.xlsx"), limits=Limits(cells=3), scope="s1")


@pytest.mark.parametrize(
    ("text", "amount", "currency"),
    [
        ("Total: 1,250.00 EUR", "1250.00", "EUR"),
        ("Total: $300\nGrand total: $330.50", "330.50", "USD"),
        ("TOTAL 20 items\nAmount due € 99", "99", "€€"),
        ("Total | 12 | 1,000 USD", "1000", "USD"),
        ("Subtotal: 5 EUR", None, ""),
        ("The total will follow.", None, ""),
        ("Gauze 5 EUR\nTape 6 EUR", None, ""),
        ("Total 2025", None, ""),
        ("Total: 1.234,50 EUR", "1234.50", "EUR"),
        ("Total: 1.234 EUR", None, ""),
        ("Total: 1.234,500 EUR", None, ""),
        ("Total: 12,34 EUR", "12.34", "EUR"),
        ("Total: CHF 1'250.00", "1250.00", "CHF"),
        ("Total: CHF 1’250.–", "1250", "CHF"),
        ("Total: 1'234'567,89 EUR", "1234567.89", "EUR"),
        ("Total: 42'987,56 EUR", "42987.56", "EUR"),
        ("Total: 1 250.00 EUR", "1250.00", "EUR"),
        ("Total: 1\u00a0250,00 €", "1250.00", "€€"),
        ("Total: 1\u202f234\u202f567,89 €", "1234567.89", "€€"),
        ("Total: 1\u2009250 EUR", "1250", "EUR"),
        ("Total: 1.250,00 EUR", "1250.00", "EUR"),
        ("Total: 1.250.000 ₫", "1250000", "VND"),
        ("Total 2026 250.00 EUR", "250.00", "EUR"),
        ("Total: -1'250.00 CHF", None, ""),
        ("Total: 1,25,000 USD", None, ""),
        ("Total: -50.00 EUR", None, ""),
        ("Total: -$50", None, ""),
        ("Total: $-50", None, ""),
        ("Total 80 EUR\nTotal due 1.234 EUR", None, ""),
        ("Total due – 99.90 EUR", "99.90", "EUR"),
        ("Total: 80 EUR [struck out: 100 EUR]", "80", "EUR"),
        ("Total: 80 EUR\n[struck out: Total: 100 EUR]", "80", "EUR"),
        ("[struck out: old [see note 2]: total 5 EUR]", None, ""),
        ("[struck out: " * 50_000, None, ""),
        ("Total " + "1," * 400_000, None, ""),
        ("Total EUR " + "1 " * 400_000, "1", "EUR"),
        ("total " * 100_000, None, ""),
    ],
)
def test_the_total_that_a_document_states(text: str, amount: str | None, currency: str) -> None:
    found = amount_of(text)
    expected = "EUR" if currency == "€€" else currency
    assert found == (None if amount is None else Decimal(amount), expected)


@given(st.text(max_size=200))
def test_no_text_breaks_what_is_read_out_of_it(text: str) -> None:
    amount, _ = amount_of(f"{text}\ntotal {text}")
    assert amount is None or amount.is_finite()
    assert kind_of("x.txt", text)
