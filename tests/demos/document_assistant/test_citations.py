"""Which line of a document supports a sentence of an answer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from demos.document_assistant.citations import cited, with_places
from demos.document_assistant.library import Document, shipped

MARCH = shipped()["doc_fin_2025_march"]
LEASE = Document(
    "lease",
    "lease.pdf",
    "contract",
    "Lease of the practice\nThe rent is 1'250.00 CHF a month.\n\n\f"
    "Penalties\n料金は2,300円です。\nA late payment costs 250 CHF per missed day.",
)


def places(text: str, *documents: Document) -> list[tuple[str, int | None, int]]:
    return [(one.document_id, one.page, one.line) for one in cited(text, documents)]


def test_a_sentence_has_the_line_that_says_it() -> None:
    text = "The total operating expense of line A was $1,238,450. Bananas are yellow."
    assert places(text, LEASE, MARCH) == [("doc_fin_2025_march", None, 22)]
    assert MARCH.text.split("\n")[21].startswith("| Total operating expense | $1,238,450")


def test_pages_are_counted_and_numbers_compared_by_value() -> None:
    text = "The rent is 1,250 CHF.\n- 250 CHF are due per missed day. 料金は2300円です。"
    assert places(text, MARCH, LEASE) == [("lease", 1, 2), ("lease", 2, 3), ("lease", 2, 2)]
    assert with_places(text, cited(text, [LEASE])) == (
        "The rent is 1,250 CHF. [lease, page 1, line 2]\n"
        "- 250 CHF are due per missed day. [lease, page 2, line 3] "
        "料金は2300円です。 [lease, page 2, line 2]"
    )


def test_what_no_line_says_has_no_place() -> None:
    for text in ("", "The documents do not say it.", "Nurses must sign a form.", "…"):
        assert places(text, MARCH, LEASE) == []
    assert places("The rent is 1,250 CHF.") == []


@given(st.text(max_size=100), st.text(max_size=100))
def test_any_text_can_be_cited(answer: str, text: str) -> None:
    document = Document("x", "x.txt", "document", text)
    found = cited(answer, [document])
    with_places(answer, found)
    for one in found:
        pages = text.split("\f")
        assert pages[(one.page or 1) - 1].split("\n")[one.line - 1].strip()
