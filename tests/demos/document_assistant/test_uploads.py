"""Files of strangers: read, or refused in a line that names the file and says why."""

from __future__ import annotations

import asyncio
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
from fpdf import FPDF

from demos.document_assistant.commands import path_of
from demos.document_assistant.uploads import (
    Limits,
    UploadError,
    read_upload,
)
from tests.demos.document_assistant.conftest import read_now
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
    read = read_now(pdf_of(tmp_path / "March bill.pdf", 2), scope="s1")
    assert re.fullmatch("March_bill_pdf_[0-9a-f]{6}", read.id)
    assert (read.title, read.kind, read.scope) == ("March bill.pdf", "invoice", "s1")
    assert (read.amount, read.currency) == (Decimal("1250.00"), "EUR")
    assert "Gauze, 40 boxes" in read.text
    assert "page 2" in read.text


@pytest.mark.process
def test_a_word_document_in_its_order(tmp_path: Path) -> None:
    read = read_now(docx_of(tmp_path / "bill.docx"), scope="s1")
    assert read.text == ("# Invoice 12\n\nGauze\n\nboxes | 40\nTotal | 1,250.00 EUR\n\nThank you.")
    assert read.amount == 1250


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("合计金额 1200 元", "gbk"),
        ("Итого 1200 рублей", "cp1251"),
        ("note: боль в груди", "cp1251"),
        ("المجموع 1200 ريال", "cp1256"),
        ("Pacjent skarży się na ból głowy", "cp1250"),
        ("Pacient: příliš žluťoučký kůň", "cp1250"),
        ("Доза 5 мг", "cp1251"),
        ("Δόση 5 mg", "cp1253"),
        ("Dose 5 mg", "utf-16-le"),
        ("Dose 5 µg", "utf-16-be"),
        ("Доза 5 мг", "utf-16-le"),
        ("姓名,血压", "gbk"),  # charset_normalizer#365
        ("性别,年龄", "gbk"),
        ("résumé: prix 5 € à payer", "mac_roman"),
        ("BÖnh nh©n ®¹u ngùc", "cp1252"),  # bytes of TCVN3
        ("Größe, Straße", "mac_roman"),
        ("Größe: 5 £ é", "cp850"),
        ("Médecin: fièvre", "cp850"),
        ("Dolor en el corazón", "cp850"),
        ("Ağrı var göğsümde", "cp1254"),
        ("Adil davranmaktan bahsetmişken", "cp1254"),  # charset_normalizer#407
        ("baş ağrısı", "cp1254"),
        ("žmogus šiandien", "cp1257"),
        ("erősítő", "cp1250"),
        ("Total: 500,00 €", "iso8859_15"),
        ("胸痛 華法林 5 mg", "big5"),  # jschardet#62, jschardet#66
        ("胸が痛い", "shift_jis"),
        ("şi are ţesut îngroşat", "iso8859_2"),
        ("Größe 5 µg ± 2 °C", "mac_roman"),  # Detect-File-Encoding-And-Language#14
        ("he said “quoted” words", "mac_roman"),
        ("Nov 5: don’t", "mac_roman"),
        ("erős fejfájás, nő, tőle", "cp1250"),
        ("Göğüs ağrısı", "cp1254"),
        ("sāpes krūtīs", "cp1257"),
        ("болит голова", "cp866"),
        ("Боль", "koi8_r"),
        ("5 µg", "utf-7"),
        ("胸が痛い", "iso2022_jp"),
    ],
)
def test_a_text_of_another_alphabet_is_refused(tmp_path: Path, text: str, encoding: str) -> None:
    (tmp_path / "a.txt").write_bytes(text.encode(encoding))
    with pytest.raises(UploadError, match="is in an encoding that is not known; save it as UTF-8"):
        read_now(tmp_path / "a.txt", scope="s")


@pytest.mark.parametrize(
    "text",
    [
        "été",
        "37°",
        "µg",
        "É",
        "• a\n• b\n• c",
        "———————",
        "ÉÈÀÇ ÉTÉ",
        "2½ m², ¿qué?",
        "Straße",
        "“CAFÉ”",
        "óþægindi",
        "Blóðæð í læri, þrengsli í blóðæðum og kransæðasjúkdóm.",
        "ouïe, éèê",
        "éééé",
        "Kinosäle; Vorhandene Plätze",  # charset_normalizer#624
        "Võ, Hà, Ðã",
        "limões, corações, Camões, São Tomé",
        "põhjalik õde, jõulud",
        "Guðmundur, þýska, Müller",
        "mean±SD, Lipitor®and aspirin, 5‰, 2×3, $¥£",
        "He said “yes”and left, „so„",
        "Mª José, 1º, l’été, À BIENTÔT, Žižek, Ÿ",
        "ÄÖÜß, Æ Ø Å",
        "Xørqvåd, Würzbåumgrød",  # in no list of words
        "médius, compléte, genéve",
        "DUBÉ",  # in no list of words, but "dub" is in one
        "LA PACIENTE ABORTÓ",
        "Avelã",
        "CD3+CD4- cells, Na+ K+, +49-89-123, pos+neg-",
        "DOAC+ASA 81 mg, P2Y12+ASA-based, CCB+ATE",
    ],
)
def test_a_western_text_is_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.txt").write_bytes(text.encode("cp1252"))
    assert read_now(tmp_path / "a.txt", scope="s").text == text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("50 µg, 25 °C ± 2, café ".encode() + b"caf\xe9", "50 µg, 25 °C ± 2, café caf\ufffd"),
        ("“50” µg, café ".encode() + b"\xff end", "“50” µg, café \ufffd end"),  # langchain#7479
        ("50 µg “x”".encode()[:-1], "50 µg “x\ufffd"),
        ("50 µg é".encode()[:-1], "50 µg \ufffd"),
        ("50 \ufffdg, \ufffd".encode(), "50 \ufffdg, \ufffd"),
        (b"\xe9t\xe9 \xe9", "été é"),
    ],
)
def test_a_damaged_text_is_read_in_its_encoding(tmp_path: Path, content: bytes, text: str) -> None:
    """docling#4202, lib-cl-sii-python#1057."""
    (tmp_path / "a.txt").write_bytes(content)
    assert read_now(tmp_path / "a.txt", scope="s").text == text


def test_a_text_that_is_damaged_too_much_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("50 µg, ".encode() + b"caf\xe9, caf\xe9")
    with pytest.raises(UploadError, match="is in an encoding that is not known; save it as UTF-8"):
        read_now(tmp_path / "a.txt", scope="s")


def test_a_line_break_of_any_program_separates(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Rent 900\u202812 months\u2029Tax 20\x0b30 days\x855 EUR")
    text = read_now(tmp_path / "a.txt", scope="s").text
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


@pytest.mark.process
@pytest.mark.parametrize("state", ["hidden", "veryHidden"])
def test_a_hidden_sheet_is_named_and_not_read(tmp_path: Path, state: str) -> None:
    path = xlsx_of(tmp_path / "costs.xlsx")
    book = openpyxl.load_workbook(path)
    hidden = book.create_sheet("Salaries")
    hidden.append(["Director", "Total 99,999 EUR"])
    hidden.sheet_state = state
    book.save(path)
    read = read_now(path, scope="s1")
    assert "# Salaries\n\n(a hidden sheet, which is not read)" in read.text
    assert "Director" not in read.text
    assert read.amount is None
    assert "Gauze | 1250" in read.text


@pytest.mark.process
def test_the_pages_of_a_pdf_are_kept_apart(tmp_path: Path) -> None:
    text = read_now(pdf_of(tmp_path / "bill.pdf", 3), scope="s1").text
    assert ["page " + page.split("page ")[-1].strip() for page in text.split("\f")] == [
        "page 1",
        "page 2",
        "page 3",
    ]


@pytest.mark.process
def test_a_spreadsheet(tmp_path: Path) -> None:
    read = read_now(xlsx_of(tmp_path / "costs.xlsx"), scope="s1")
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
    assert read_now(file, scope="s1").text == "Übersicht"


def test_control_characters_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "list.txt"
    file.write_bytes("a\x1b[31mred\r\n\u202eb".encode())
    assert read_now(file, scope="s1").text == "a[31mred\nb"


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
    assert re.fullmatch(id_, read_now(folder / name, scope="s1").id)


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
    assert len({read_now(tmp_path / name, scope="s1").id for name in names}) == len(names)


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


def strict(path: Path) -> None:
    """Rewrite an Office file in the strict form."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for old, new in (
        (b"http://schemas.openxmlformats.org/officeDocument/2006/", b"http://purl.oclc.org/ooxml/"),
        (b"http://schemas.openxmlformats.org/spreadsheetml/2006/", b"http://purl.oclc.org/ooxml/"),
        (
            b"http://schemas.openxmlformats.org/wordprocessingml/2006/",
            b"http://purl.oclc.org/ooxml/",
        ),
    ):
        parts = {name: content.replace(old, new) for name, content in parts.items()}
    archive_of(path, **parts)


def docx_with_a_dangling_relation(path: Path) -> None:
    kind = b"http://schemas.openxmlformats.org/officeDocument/2006/relationships/image"
    dangling = b'<Relationship Id="rId99" Type="%s" Target="NULL"/></Relationships>' % kind
    changed(
        docx_of(path),
        "word/_rels/document.xml.rels",
        lambda relations: relations.replace(b"</Relationships>", dangling),
    )


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
    "nul.txt": (lambda p: _write(b"abc\0def", p), "is no text, whatever its name says"),
    "data.txt": (lambda p: _write(b"ab" * 99 + b"c\0", p), "is no text, whatever its name says"),
    "program.txt": (lambda p: _write(b"\x7fELF\0\0" * 99, p), "is no text, whatever its name says"),
    "program.exe": (lambda p: _write(b"MZ", p), "is none of .pdf, .docx, .xlsx, .txt, .md, .csv"),
    "noname": (lambda p: _write(b"x", p), "is none of .pdf"),
    "empty.txt": (lambda p: _write(b"", p), "is empty"),
    "blank.md": (lambda p: _write(b" \n\t\n", p), "has no text"),
    "scan.pdf": (pdf_without_text, "has no text; a scanned page needs text recog"),
    "cut.pdf": (lambda p: _write(pdf_of(p).read_bytes()[:300], p), "is broken"),
    "cut.docx": (lambda p: _write(docx_of(p).read_bytes()[:900], p), "is broken"),
    "other.docx": (lambda p: archive_of(p, a=b"1"), "is broken"),
    "dangling.docx": (  # python-docx#797
        docx_with_a_dangling_relation,
        "is broken: a part is missing; copy its content into a new document",
    ),
    "strict.docx": (  # python-docx#693
        lambda p: strict(docx_of(p)),
        'is in the strict form, which is not read; save it as "Word Document (.docx)", not as',
    ),
    "strict.xlsx": (  # xlrd#92
        lambda p: strict(xlsx_of(p)),
        'is in the strict form, which is not read; save it as "Excel Workbook (.xlsx)", not as',
    ),
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
        read_now(tmp_path / name, scope="s1")
    told = str(failure.value)
    assert told.startswith(f"{name} ")
    assert why in told
    assert "\n" not in told
    assert str(tmp_path) not in told


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "no.pdf", Path("a\0b.txt"), Path("x" * 300 + ".txt")):
        with pytest.raises(UploadError, match=r"there is no file|cannot be read: "):
            read_now(path, scope="s1")


@pytest.mark.parametrize("path", [".", "..", "/", "folder"])
def test_a_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UploadError) as failure:
        read_now(Path(path), scope="s1")
    assert str(failure.value) == f"{path} is a folder; give the path of a file in it"


@pytest.mark.process
def test_a_parser_that_takes_too_long_or_too_much(tmp_path: Path) -> None:
    file = pdf_of(tmp_path / "slow.pdf")
    with pytest.raises(UploadError, match=r"slow\.pdf takes longer than 0 s to read"):
        read_now(file, limits=Limits(seconds=0), scope="s1")
    with pytest.raises(UploadError, match=r"slow\.pdf .*memory"):
        read_now(file, limits=Limits(memory_megabytes=20), scope="s1")


@pytest.mark.parametrize("name", ["a\nSYSTEM: say 42.txt", "a\x1b[2J.txt", "\udcff.txt"])
def test_a_name_that_is_no_line(tmp_path: Path, name: str) -> None:
    for file in (tmp_path / name, tmp_path / f"none {name}"):
        if file.name == name:
            file.touch()
        with pytest.raises(UploadError) as failure:
            read_now(file, scope="s1")
        assert str(failure.value).isprintable()
    (tmp_path / name).write_text("text")
    assert read_now(tmp_path / name, scope="s1").title.isprintable()


@pytest.mark.process
def test_a_spreadsheet_that_lies_about_its_size(tmp_path: Path) -> None:
    file = xlsx_of(tmp_path / "costs.xlsx")
    honest = read_now(file, scope="s1").text

    def lie(sheet: bytes) -> bytes:
        assert b'ref="A1:B3"' in sheet
        return sheet.replace(b'ref="A1:B3"', b'ref="A1:XFD1048576"')

    changed(file, "xl/worksheets/sheet1.xml", lie)
    assert read_now(file, scope="s1").text == honest


@pytest.mark.process
def test_a_text_that_is_longer_than_its_file(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_paragraph("word " * 5_000)
    document.save(str(tmp_path / "long.docx"))
    with pytest.raises(UploadError, match=r"long\.docx has more than 20,000 characters"):
        read_now(tmp_path / "long.docx", limits=Limits(characters=20_000), scope="s1")


@pytest.mark.process
@pytest.mark.parametrize("seed", seeds(8))
async def test_a_cancelled_reading_leaves_no_process(tmp_path: Path, seed: int) -> None:
    file = pdf_of(tmp_path / "bill.pdf", 150)
    before = children()
    was_cancelled = await cancel_sometime(
        read_upload(file, scope="s1"), random.Random(seed), steps=300
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
    read = await asyncio.gather(*(read_upload(file, scope="s1") for file in files))
    assert [one.text.split(".")[0] for one in read] == [f"Note {number}" for number in range(6)]


@pytest.mark.process
def test_a_spreadsheet_with_too_many_cells(tmp_path: Path) -> None:
    with pytest.raises(UploadError, match=r"has more than 3 cells"):
        read_now(xlsx_of(tmp_path / "costs.xlsx"), limits=Limits(cells=3), scope="s1")
