"""Word documents, read as a reader of the printed page would."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from decimal import Decimal

import docx
import pytest
from docx.enum.style import WD_STYLE_TYPE
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from docx.text.paragraph import Paragraph

from demos.document_assistant.amounts import amount_of
from demos.document_assistant.word_equations import UNREAD
from demos.document_assistant.word_text import word_blocks

NAMESPACES = (
    f"{nsdecls('w')} xmlns:m='http://schemas.openxmlformats.org/officeDocument/2006/math' "
    "xmlns:w14='http://schemas.microsoft.com/office/word/2010/wordml' "
    "xmlns:o='urn:schemas-microsoft-com:office:office' xmlns:v='urn:schemas-microsoft-com:vml'"
)
EMBEDDED = "(an embedded document, which is not read)"
HIDDEN = "(hidden text, which is not read)"


def blocks_of(*elements: str) -> list[str]:
    """Return what is read from a document whose body holds the elements."""
    document = docx.Document()
    for element in elements:
        *_, end = document.element.body
        end.addprevious(parse_xml(element.replace(">", f" {NAMESPACES}>", 1)))
    return read(document)


def read(document: docx.document.Document) -> list[str]:
    content = io.BytesIO()
    document.save(content)
    return [*word_blocks(content)]


def paragraph(*parts: str) -> str:
    return f"<w:p>{''.join(parts)}</w:p>"


def run(text: str, looks: str = "") -> str:
    looks = f"<w:rPr>{looks}</w:rPr>" if looks else ""
    return f'<w:r>{looks}<w:t xml:space="preserve">{text}</w:t></w:r>'


def raised(text: str) -> str:
    return run(text, '<w:vertAlign w:val="superscript"/>')


def lowered(text: str) -> str:
    return run(text, '<w:vertAlign w:val="subscript"/>')


def r(text: str) -> str:
    return f'<m:r><m:t xml:space="preserve">{text}</m:t></m:r>'


def part(name: str, properties: str = "", **arguments: str) -> str:
    inner = "".join(f"<m:{key}>{text}</m:{key}>" for key, text in arguments.items())
    return f"<m:{name}><m:{name}Pr>{properties}</m:{name}Pr>{inner}</m:{name}>"


def in_brackets(inner: str, start: str = "", end: str = "") -> str:
    marks = f'<m:begChr m:val="{start}"/><m:endChr m:val="{end}"/>' if start or end else ""
    return part("d", marks, e=inner)


def over(above: str, below: str) -> str:
    return part("f", num=r(above), den=r(below))


EQUATIONS = {
    "100 − (20 − 5)": r("100 − ") + in_brackets(r("20 − 5")),
    "(a|b)": part("d", e=r("a") + "</m:e><m:e>" + r("b")),
    "|a−b|": in_brackets(r("a−b"), "|", "|"),
    "sqrt((H × W)/(3600))": part("rad", '<m:degHide m:val="1"/>', deg="", e=over("H × W", "3600")),
    "((x)^(1/(3)))": part("rad", deg=r("3"), e=r("x")),
    "(1+r)^n": part("sSup", e=in_brackets(r("1+r")), sup=r("n")),
    "10^(x+1)": part("sSup", e=r("10"), sup=r("x+1")),
    "10^-3 mol": part("sSup", e=r("10"), sup=r("-3")) + r(" mol"),
    "x^2 3": part("sSup", e=r("x"), sup=r("2")) + r("3"),
    "m c^2": r("m") + part("sSup", e=r("c"), sup=r("2")),
    "37°C": part("sSup", e=r("37"), sup=r("°")) + r("C"),
    "((a)/(b))^n": part("sSup", e=over("a", "b"), sup=r("n")),
    "c/((a)/(b))": r("c/") + over("a", "b"),
    "((a)/(b))x": over("a", "b") + r("x"),
    "y = (a)/(b) + 1": r("y = ") + over("a", "b") + r(" + 1"),
    "5 1/2 h": r("5") + over("1", "2") + r(" h"),
    "2((a)/(2))": r("2") + over("a", "2"),
    "C_max": part("sSub", e=r("C"), sub=r("max")),
    "x_1^2": part("sSubSup", e=r("x"), sub=r("1"), sup=r("2")),
    "∑_(i=1)^10 (x)": part("nary", '<m:chr m:val="∑"/>', sub=r("i=1"), sup=r("10"), e=r("x")),
    "∫ (x)": part("nary", '<m:subHide m:val="on"/><m:supHide/>', sub=r("1"), sup=r("2"), e=r("x")),
    "log_2(8)": part("func", fName=part("sSub", e=r("log"), sub=r("2")), e=in_brackets(r("8"))),
    "sin(2 x)": part("func", fName=r("sin"), e=r("2 x")),
    "lim_(x→0)(f)": part("func", fName=part("limLow", e=r("lim"), lim=r("x→0")), e=r("f")),
    "2 × (a+b)": r("2 × ") + part("groupChr", e=r("a+b")),
    "(a+b)_(n times) + 1": part("limLow", e=part("groupChr", e=r("a+b")), lim=r("n times"))
    + r(" + 1"),
    "x_n": part("limUpp", e=part("groupChr", '<m:chr m:val="⏞"/>', e=r("x")), lim=r("n")),
    "binom(n, 2)": in_brackets(part("f", '<m:type m:val="noBar"/>', num=r("n"), den=r("2"))),
    "[1, 2; 3, 4]": part(
        "m",
        mr=f"<m:e>{r('1')}</m:e><m:e>{r('2')}</m:e></m:mr><m:mr>"
        f"<m:e>{r('3')}</m:e><m:e>{r('4')}</m:e>",
    ),
    "{1, x>0; 0": in_brackets(
        part("eqArr", e=r("1, &amp;x&gt;0") + "</m:e><m:e>" + r("0")), "{", ""
    ),
    "bar(x)": part("bar", '<m:pos m:val="top"/>', e=r("x")),
    "hat(p)": part("acc", e=r("p")),
    "x + 1": part("box", e=r("x + 1")),
    "2·3": r("2\u20623"),
    "a + c": r("a ") + f"<w:del>{r('− b')}</w:del><w:ins>{r('+ c')}</w:ins>",
    "x": part("phant", '<m:show m:val="0"/>', e=r("9")) + r("x"),
}


def test_equations_keep_their_meaning_in_a_line() -> None:
    read = blocks_of(*(paragraph(f"<m:oMath>{one}</m:oMath>") for one in EQUATIONS.values()))
    assert dict(zip(EQUATIONS, read, strict=True)) == {text: text for text in EQUATIONS}


def test_an_equation_of_an_unknown_form_is_named_and_not_read() -> None:
    unknown = (
        part("sPre", sub=r("6"), sup=r("14"), e=r("C")),
        part("limUpp", e=r("="), lim=r("def")),
        part("groupChr", '<m:chr m:val="→"/>', e=r("a+b")),
        part("limUpp", e=part("groupChr", '<m:chr m:val="→"/>', e=r("a")), lim=r("b")),
        part("f", '<m:type m:val="noBar"/>', num=r("n"), den=r("2")),
        part("f", num=r("1"), den=""),
        part("borderBox", '<m:strikeH m:val="1"/>', e=r("5")),
        part("acc", '<m:chr m:val="?"/>', e=r("5")),
        part("bar", e=r("5")),
        part("sSup", "<m:ctrlPr><w:del/></m:ctrlPr>", e=r("x"), sup=r("2")),
        '<m:r><w:sym w:font="Symbol" w:char="F0A3"/></m:r>',
        "<m:future/>",
    )
    equations = (f"<m:oMath>{r('2 × ')}{one}</m:oMath>" for one in unknown)
    read = blocks_of(*(paragraph(run("Dose: "), one) for one in equations))
    assert read == [f"Dose: {UNREAD}"] * len(unknown)


@pytest.mark.parametrize(
    "element",
    [
        r"<w:r><w:instrText> EQ \f(1,2) </w:instrText></w:r>",
        '<w:r><w:object><o:OLEObject ProgID="Equation.DSMT4"/></w:object></w:r>',
    ],
)
def test_an_equation_of_an_older_word_is_named(element: str) -> None:
    assert blocks_of(paragraph(run("x = "), element)) == [f"x = {UNREAD}"]


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        ((run("every 5"), raised("1"), run("/"), lowered("2"), run(" hours")), "every 5 1/2 hours"),
        ((run("every 5 "), raised("1"), run("⁄"), lowered("2")), "every 5 1/2"),
        ((raised("1/"), lowered("2"), run(" tablet")), "1/2 tablet"),
        ((raised("1"), lowered("/2")), "1/2"),
        ((run("10"), raised("9"), run("/L")), "10^9/L"),
        ((run("10"), raised("1"), raised("2"), run("/L")), "10^12/L"),
        ((run("10"), raised("x+1")), "10^(x+1)"),
        ((run("8"), raised("1/3")), "8^(1/3)"),
        ((run("(1+r)"), raised("n")), "(1+r)^n"),
        ((run("500"), raised("1,2")), "500[1,2]"),
        ((run("died"), raised("1,3-5"), run(".")), "died[1,3-5]."),
        ((run("5 mg"), raised("(3)")), "5 mg(3)"),
        ((run("10"), raised("(3)")), "10^(3)"),
        ((run("(1+r)"), raised("(2)")), "(1+r)^(2)"),
        ((run("Ca"), raised("2+"), run(" 2.5")), "Ca2+ 2.5"),
        ((run("on the 1"), raised("st")), "on the 1st"),
        ((run("H"), lowered("2"), run("O")), "H2O"),
        ((run("101"), lowered("2")), "101_2"),
    ],
)
def test_raised_and_lowered_runs(runs: tuple[str, ...], text: str) -> None:
    assert blocks_of(paragraph(*runs)) == [text]


def form_field(data: str) -> str:
    return f'<w:r><w:fldChar w:fldCharType="begin"><w:ffData>{data}</w:ffData></w:fldChar></w:r>'


def control(checked: str) -> str:
    return (
        f"<w:sdt><w:sdtPr><w14:checkbox>{checked}</w14:checkbox></w:sdtPr>"
        '<w:sdtContent><w:r><w:sym w:font="Wingdings" w:char="F0FE"/></w:r></w:sdtContent></w:sdt>'
    )


ENTRIES = '<w:listEntry w:val="ICU"/><w:listEntry w:val="Surgery"/>'


@pytest.mark.parametrize(
    ("element", "state"),
    [
        (form_field("<w:checkBox><w:default w:val='0'/><w:checked/></w:checkBox>"), "[x]"),
        (form_field("<w:checkBox><w:checked w:val='0'/></w:checkBox>"), "[ ]"),
        (form_field("<w:checkBox><w:default w:val='1'/></w:checkBox>"), "[x]"),
        (form_field("<w:checkBox/>"), "[ ]"),
        (form_field(f"<w:ddList><w:result w:val='1'/>{ENTRIES}</w:ddList>"), "Surgery"),
        (form_field(f"<w:ddList>{ENTRIES}</w:ddList>"), "ICU"),
        (form_field(f"<w:ddList><w:result w:val='9'/>{ENTRIES}</w:ddList>"), ""),
        (control('<w14:checked w14:val="1"/>'), "[x]"),
        (control('<w14:checked w14:val="0"/>'), "[ ]"),
        (control(""), "[ ]"),
        ('<w:r><w:sym w:font="Wingdings" w:char="F0A8"/></w:r>', "☐"),
    ],
)
def test_the_choices_in_a_form(element: str, state: str) -> None:
    assert blocks_of(paragraph(run("Ward: "), element, run("."))) == [f"Ward: {state}."]


def written_in(font: str, text: str) -> str:
    return run(text, f'<w:rFonts w:ascii="{font}" w:hAnsi="{font}"/>')


def sign(font: str, code: str) -> str:
    return f'<w:r><w:sym w:font="{font}" w:char="{code}"/></w:r>'


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ((run("50 "), written_in("Symbol", "m"), run("g")), "50 μg"),  # docx4j#632
        ((run("Hb "), written_in("Symbol", "\uf0a3"), run(" 7")), "Hb ≤ 7"),
        ((written_in("symbol", "³ 50, D, "), run("P")), "≥ 50, Δ, P"),
        ((written_in("Symbol", "\uf02d"), run("5 mmol/l")), "−5 mmol/l"),
        ((written_in("Wingdings", "þ"), run(" DNR "), written_in("Wingdings", "¨")), "☑ DNR ☐"),
        ((written_in("Wingdings", "\uf0fe€"),), "☑€"),
        ((written_in("Wingdings", "!\xa0x"),), "\ufffd\xa0☒"),
        ((written_in("Another font", "a\uf0a3"),), "a\ufffd"),
        ((run("αm", '<w:rFonts w:ascii="Symbol"/>'),), "αμ"),
        ((run("m", '<w:rFonts w:hAnsi="Symbol"/>'),), "m"),
        ((run("mµ", '<w:rFonts w:ascii="Symbol" w:asciiTheme="minorHAnsi" w:hAnsi="Symbol" '
              'w:hAnsiTheme="minorHAnsi"/>'),), "mµ"),
        ((run("K 3.1 "), sign("Wingdings", "F0E0"), run(" 5.2")), "K 3.1 → 5.2"),
        ((sign("Symbol", "F02D"), sign("Symbol", "2D"), sign("Symbol", "F0AD")), "−−↑"),
        ((sign("Symbol", "2190"), sign("Wingdings", "F0DF")), "←←"),
        ((sign("Wingdings 2", "F052"), sign("Wingdings 2", "F054")), "☑☒"),
        ((sign("Wingdings 3", "F068"), sign("Webdings", "F061")), "↑✓"),
        ((sign("Wingdings", "F081"), sign("Symbol", "x")), "①\ufffd"),
    ],
)  # fmt: skip
def test_signs_of_the_fonts_that_draw_them(parts: tuple[str, ...], text: str) -> None:
    assert blocks_of(paragraph(*parts)) == [text]


def test_the_font_of_a_sign_may_come_from_a_style() -> None:
    document = docx.Document()
    style = document.styles.add_style("Greek", WD_STYLE_TYPE.CHARACTER)
    style.font.name = "Symbol"
    words = document.add_paragraph("50 ")
    words.add_run("m", "Greek")
    words.add_run("g")
    assert read(document) == ["50 μg"]


def test_the_font_of_a_theme_ends_that_of_a_style() -> None:
    document = docx.Document()
    style = document.styles.add_style("Greek", WD_STYLE_TYPE.PARAGRAPH)
    style.font.name = "Symbol"
    words = document.add_paragraph("m", style)
    put(words, run("g", '<w:rFonts w:asciiTheme="minorHAnsi"/>'))
    assert read(document) == ["μg"]


def field(code: str, result: str = "", *, is_closed: bool = True) -> str:
    begin, separate, end = (
        f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end")
    )
    return f"{begin}{code}{separate}{result}{end if is_closed else ''}"


def code(text: str) -> str:
    return f'<w:r><w:instrText xml:space="preserve">{text}</w:instrText></w:r>'


WEIGHT = field(code("REF weight"), run("80"))
TICKED = form_field("<w:checkBox><w:checked/></w:checkBox>")
END = '<w:r><w:fldChar w:fldCharType="end"/></w:r>'


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ((field(code("=") + WEIGHT + code("/ 4"), run("20")),), "20"),  # xberg#1460
        ((field(code("IF") + run("in its code") + code("1"), run("none")),), "none"),
        ((field(code("HYPERLINK"), run("see ") + WEIGHT),), "see 80"),
        ((field(code("QUOTE") + field(code("A") + WEIGHT, WEIGHT), run("x")), WEIGHT), "x80"),
        ((field(code("IF") + TICKED + END, run("y")), TICKED, END), "y[x]"),
        ((field(code("INCLUDEPICTURE") + WEIGHT), run(".")), "."),
        ((field(code("REF") + run("code"), run("result"), is_closed=False),), "coderesult"),
        ((END, field(code("REF"), run("after ")), END, run("an end")), "after an end"),
    ],
)
def test_of_a_field_its_result_is_read(parts: tuple[str, ...], text: str) -> None:
    assert blocks_of(paragraph(run("BMI "), *parts)) == [f"BMI {text}"]


def test_the_code_of_a_field_may_hold_paragraphs() -> None:
    begin, rest = field(code("IF"), "|").split("<w:r><w:instrText", 1)
    separate, end = rest.partition("</w:r>")[2].split("|")
    assert blocks_of(
        paragraph(run("a"), begin, run("not shown")),
        paragraph(run("nor this"), separate, run("b")),
        paragraph(run("c"), end, run("d")),
    ) == ["a", "b", "cd"]


def test_a_field_in_a_header() -> None:
    document = docx.Document()
    words = document.sections[0].header.paragraphs[0]
    for one in field(run("in its code"), run("Page 1")).split("</w:r>")[:-1]:
        put(words, f"{one}</w:r>")
    assert read(document) == ["Header: Page 1"]


def test_what_is_embedded_is_named() -> None:
    shape = '<w:r><w:pict><v:shape><v:textpath string="DRAFT"/></v:shape></w:pict></w:r>'
    sheet = '<w:r><w:object><o:OLEObject ProgID="Excel.Sheet.12"/></w:object></w:r>'
    assert blocks_of(
        paragraph(run("before")),
        "<w:altChunk></w:altChunk>",  # office_oxide#155
        paragraph(run("Doses: "), sheet),
        paragraph("<w:subDoc/>"),
        paragraph(shape),
    ) == ["before", EMBEDDED, f"Doses: {EMBEDDED}", EMBEDDED, "DRAFT"]


def test_a_diagram_is_named() -> None:
    """office_oxide#271, python-docx#1486."""
    namespace = "http://schemas.openxmlformats.org/drawingml/2006/diagram"
    diagram = f'<w:r><w:drawing><d:relIds xmlns:d="{namespace}"/></w:drawing></w:r>'
    assert blocks_of(paragraph(run("Steps: "), diagram)) == [
        "Steps: (a diagram, which is not read)"
    ]


@pytest.mark.parametrize(
    ("above", "text"), [("<w:rt>{}</w:rt>", "(きょう)"), ("", ""), ("<w:rt/>", "")]
)
def test_the_reading_of_a_word_follows_it(above: str, text: str) -> None:
    """python-mammoth#76."""
    base = f"<w:rubyBase>{run('胸')}</w:rubyBase>"
    ruby = f"<w:r><w:ruby><w:rubyPr/>{above.format(run('きょう'))}{base}</w:ruby></w:r>"
    assert blocks_of(paragraph(ruby, run("部"))) == [f"胸{text}部"]


@pytest.mark.parametrize(("kind", "blocks"), [
    ("drop", ["Warfarin 5 mg"]),
    ("margin", ["Warfarin 5 mg"]),
    ("none", ["W", "arfarin 5 mg"]),
])  # fmt: skip
def test_a_large_initial_belongs_to_its_word(kind: str, blocks: list[str]) -> None:
    """In PDF: docling#3883."""
    initial = paragraph(f'<w:pPr><w:framePr w:dropCap="{kind}"/></w:pPr>', run("W"))
    assert blocks_of(initial, paragraph(run("arfarin 5 mg"))) == blocks


def test_hidden_text_is_left_out_with_a_note() -> None:
    hidden = "<w:vanish/>"
    assert blocks_of(
        paragraph(run("Rent 900 EUR"), run(" SECRET", hidden), run(" 999", hidden), run(".")),
        paragraph(run("one", hidden)),
        paragraph(run("two", hidden)),
        paragraph(run("shown", '<w:vanish w:val="0"/>'), run(" ", hidden)),
    ) == [f"Rent 900 EUR{HIDDEN}.", HIDDEN, "shown"]


def test_struck_text_is_marked() -> None:
    text = blocks_of(
        paragraph(
            run("Price "),
            run("100", "<w:strike/>"),
            run(" EUR ", "<w:dstrike/>"),
            run("80 EUR "),
            run("10", "<w:strike/>"),
            run("9", '<w:strike/><w:vertAlign w:val="superscript"/>'),
        )
    )
    assert text == ["Price [struck out: 100 EUR] 80 EUR [struck out: 10^9]"]


def test_brackets_in_struck_text_do_not_end_it() -> None:
    (text,) = blocks_of(paragraph(run("Old a] total 5 EUR", "<w:strike/>"), run(" Total 4 EUR")))
    assert text == "[struck out: Old a) total 5 EUR] Total 4 EUR"
    assert amount_of(text) == (Decimal(4), "EUR")


def test_a_paragraph_of_many_runs_takes_no_time_per_run() -> None:
    begin = time.process_time()
    assert blocks_of(paragraph(run("x") * 10_000)) == ["x" * 10_000]
    assert time.process_time() - begin < 5  # 12 s if each run looks for the style again


def test_looks_may_come_from_styles() -> None:
    document = docx.Document()
    styles = document.styles
    base = styles.add_style("Secret", WD_STYLE_TYPE.CHARACTER)
    base.font.hidden = True
    styles.add_style("More secret", WD_STYLE_TYPE.CHARACTER).base_style = base
    old = styles.add_style("Old clause", WD_STYLE_TYPE.PARAGRAPH)
    old.font.strike = True
    document.add_paragraph("Rent 900").add_run(" or 999", "More secret")
    document.add_paragraph("Deposit 50", "Old clause")
    assert read(document) == [f"Rent 900{HIDDEN}", "[struck out: Deposit 50]"]


def test_accepted_changes_of_paragraphs_and_tables() -> None:
    end_deleted = "<w:pPr><w:rPr><w:del/></w:rPr></w:pPr>"
    cell = f"<w:tc><w:p>{run('{}')}</w:p></w:tc>"
    gone = f"<w:tr><w:trPr><w:del/></w:trPr>{cell.format('row 777')}</w:tr>"
    kept = cell.replace("<w:p>", "<w:tcPr><w:cellDel/></w:tcPr><w:p>").format("old")
    assert blocks_of(
        paragraph(end_deleted, run("Rent 90")),
        paragraph(run("0 EUR")),
        f"<w:tbl>{gone}<w:tr>{cell.format('10')}{kept}{cell.format('20')}</w:tr></w:tbl>",
        paragraph(end_deleted, run("the end")),
    ) == ["Rent 900 EUR", "10 | 20", "the end"]
    assert blocks_of(
        paragraph(end_deleted, run("before")),
        f"<w:tbl><w:tr>{cell.format('10')}</w:tr></w:tbl>",
        paragraph(end_deleted, run("af")),
        "<w:proofErr></w:proofErr>",
        paragraph(run("ter")),
    ) == ["before", "10", "after"]


def cell(*lines: str, **properties: str) -> str:
    stated = "".join(f'<w:{name} w:val="{value}"/>' for name, value in properties.items())
    return f"<w:tc><w:tcPr>{stated}</w:tcPr>{''.join(paragraph(run(one)) for one in lines)}</w:tc>"


def row(*cells: str, before: str = "0") -> str:
    return f'<w:tr><w:trPr><w:gridBefore w:val="{before}"/></w:trPr>{"".join(cells)}</w:tr>'


def table(*rows: str) -> str:
    return f"<w:tbl>{''.join(rows)}</w:tbl>"


TIMES = row(cell("Drug"), cell("Morning"), cell("Noon"), cell("Night"))


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        # pandoc#4672
        ((TIMES, row(cell("A"), cell("none", gridSpan="2"), cell("5 mg"))), "A | none |  | 5 mg"),
        ((row(cell("Test"), cell("2024", gridSpan="2"), cell("2025")), TIMES),
         "Drug | Morning | Noon | Night"),
        ((TIMES, row(cell("5 mg"), before="3")), " |  |  | 5 mg"),  # all2md#493
        ((TIMES, row(cell("5 mg"), before="999999")), " |  |  |  | 5 mg"),
        ((TIMES, row(cell("all", gridSpan="99999999999"), cell("x", gridSpan="0"))), "all | x"),
        ((row(cell("A", gridSpan="2"), cell("B")),) * 2, "A | B"),
        ((row(cell("A", vMerge="restart"), cell("1")),
          row(cell("old", vMerge="continue"), cell("2"))), " | 2"),
        ((row(cell("new", vMerge="continue"), cell("2")),), "new | 2"),
        ((row(cell("A", vMerge="restart")), row(cell("a")),
          row(cell("new", vMerge="continue"))), "new"),
        ((row(cell("A", hMerge="restart"), cell("old", hMerge="continue"), cell("B")),),
         "A |  | B"),
        ((row(cell("A"), cell("new", hMerge="continue")),), "A | new"),
        ((row(cell("A"), cell("5 mg", "10 mg"), cell("8:00", "", "20:00")),),
         "A | 5 mg; 10 mg | 8:00; 20:00"),  # lobehub#19635
        ((row(cell("A"), cell("5 | 6")),), r"A | 5 \| 6"),
        ((row(cell("one", "column")),), "column"),
        ((row(),), ""),
    ],
)  # fmt: skip
def test_the_cells_of_a_row_keep_their_columns(rows: tuple[str, ...], text: str) -> None:
    (read,) = blocks_of(table(*rows))
    assert read.split("\n")[-1] == text


def test_a_table_in_a_cell_is_part_of_its_row() -> None:
    inner = table(row(cell("in"), cell("side"))) + paragraph(run("after"))
    assert blocks_of(table(row(f"<w:tc>{inner}</w:tc>", cell("out")))) == [
        r"in \| side; after | out"
    ]


LEVELS = (
    ("decimal", "%1."),
    ("lowerLetter", "(%2)"),
    ("upperRoman", "%1.%3"),
    ("bullet", "•"),
    ("decimalZero", "%5"),
    ("cardinalText", "%6:"),
    ("none", "%7"),
)


def numbering(document: docx.document.Document) -> None:
    """Give a document the lists 90 and 91 of one form, and 92, which begins with 5."""
    levels = "".join(
        f'<w:lvl w:ilvl="{number}"><w:start w:val="1"/><w:numFmt w:val="{form}"/>'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
        for number, (form, text) in enumerate(LEVELS)
    )
    start = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride>'
    part = document.part.numbering_part.element
    part.insert(
        0, parse_xml(f'<w:abstractNum w:abstractNumId="90" {nsdecls("w")}>{levels}</w:abstractNum>')
    )
    for number, override in ((90, ""), (91, ""), (92, start)):
        part.append(
            parse_xml(
                f'<w:num w:numId="{number}" {nsdecls("w")}>'
                f'<w:abstractNumId w:val="90"/>{override}</w:num>'
            )
        )


def items(*items: tuple[int, int, str]) -> Iterator[str]:
    """Yield what is read from paragraphs with (list, level, text)."""
    document = docx.Document()
    numbering(document)
    for list_id, level, text in items:
        element = document.add_paragraph(text)._p  # noqa: SLF001 - python-docx has no lists
        place = element.get_or_add_pPr().get_or_add_numPr()
        place.get_or_add_numId().val = list_id
        place.get_or_add_ilvl().val = level
    yield from read(document)


def test_the_numbers_of_lists() -> None:
    expected = ["1. a", "2. b", "(a) c", "2.I d", "2.II e", "(b) f", "2.I g", "3. h", "(a) i"]
    levels = (0, 0, 1, 2, 2, 1, 2, 0, 1)
    wanted = [(90, level, text[-1]) for level, text in zip(levels, expected, strict=True)]
    assert [*items(*wanted)] == expected
    assert [*items((90, 0, "a"), (91, 0, "b"), (92, 0, "c"), (92, 0, "d"), (0, 0, "e"))] == [
        "1. a",
        "2. b",
        "5. c",
        "6. d",
        "e",
    ]
    assert [*items((90, 3, "a"), (90, 4, "b"), (90, 5, "c"), (90, 6, "d"), (7_000, 0, "e"))] == [
        "a",
        "01 b",
        "1: c",
        "d",
        "e",
    ]
    letters = [one.partition(" ")[0] for one in items(*((90, 1, "x"),) * 28)]
    assert letters[25:] == ["(z)", "(aa)", "(bb)"]
    romans = [one.partition(" ")[0] for one in items(*((90, 2, "x"),) * 9)]
    assert romans[3:] == ["1.IV", "1.V", "1.VI", "1.VII", "1.VIII", "1.IX"]


def test_a_list_by_style() -> None:
    document = docx.Document()
    document.add_paragraph("First clause", "List Number")
    document.add_paragraph("", "List Number")
    document.add_paragraph("Third clause", "List Number")
    document.add_paragraph("No number", "List Bullet")
    assert read(document) == ["1. First clause", "3. Third clause", "No number"]


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


def test_text_boxes_headers_and_footers_of_a_word_document() -> None:
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
    assert "\n\n".join(read(document)) == (
        "Header: Contract no. C-7781\n\n"
        "The tenant pays monthly.\n\n"
        "penalty 250 EUR per missed day\n\n"
        "penalty 250 EUR per missed day | EUR\n\n"
        "in the cell\nin its box\n\n"
        "Footer: Page of ACME"
    )


def test_words_that_a_word_document_wraps_are_read() -> None:
    document = docx.Document()
    for wrapper in ("ins", "smartTag", "sdt", "del", "moveFrom", "hyperlink"):
        paragraph = document.add_paragraph("A ")
        inner = f"<w:r><w:t>{wrapper}</w:t></w:r>"
        inner = f"<w:sdtContent>{inner}</w:sdtContent>" if wrapper == "sdt" else inner
        put(paragraph, f"<w:{wrapper}>{inner}</w:{wrapper}>")
        paragraph.add_run(" B")
    assert read(document) == ["A ins B", "A smartTag B", "A sdt B", "A  B", "A  B", "A hyperlink B"]


def test_rows_and_numbers_that_word_wraps_are_read() -> None:
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
    table_text, words_text = read(document)
    assert table_text == "item | EUR\nRent | 1200"
    assert "150 x 10^12/L, ≤ 5 mg, \ufffd done, (10)/(4)" in words_text
