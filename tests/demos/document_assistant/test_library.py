"""The documents, and who sees which."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import date
from decimal import Decimal

import pytest

from demos.document_assistant.calculator import calculate
from demos.document_assistant.library import Document, Library, shipped
from demos.toolkit.database import Database
from demos.toolkit.retrieval import HybridRetriever


@pytest.fixture
async def library(address: str) -> AsyncIterator[Library]:
    database = Database(address)
    async with HybridRetriever(database, "documents") as retriever:
        yield await Library.open(database, retriever)
    await database.close()


def upload(text: str, scope: str, id_: str = "bill") -> Document:
    return Document(id_, "Bill", "invoice", text, date(2026, 1, 2), Decimal("9.50"), "EUR", scope)


def test_the_shipped_documents_have_the_figures_of_the_examples() -> None:
    documents = shipped()
    assert len(documents) == 12
    march = documents["doc_fin_2025_march"].text
    assert "$1,238,450" in march
    assert "12 %" in documents["doc_compliance_v2"].text
    assert {"4,200", "1,200"} <= set(
        re.findall(r"[\d,]+", documents["doc_spreadsheet_productB"].text)
    )
    rows = re.findall(r"^\| (?:Staff|Mat|Rent|Serv|Insur)[^|]*\| \$([\d,]+)", march, re.MULTILINE)
    assert calculate("+".join(rows)) == 1_238_450, "the parts are the total"


def test_a_document_without_a_total_has_none() -> None:
    assert shipped()["doc_invoice_oxygen_draft"].amount is None
    assert shipped()["doc_claim_7731"].amount == 11480


async def test_questions_find_their_documents(library: Library) -> None:
    (first, *_) = await library.retrieve("total operating expense product line A in March")
    assert first.document_id == "doc_fin_2025_march"
    assert "1,238,450" in first.text
    found = await library.retrieve("bed occupancy in the first quarter", k=2)
    assert {one.document_id for one in found} == {"doc_occupancy_q1_v1", "doc_occupancy_q1_v2"}


async def test_an_upload_is_seen_in_its_session_only(library: Library) -> None:
    one, other = upload("Gauze of session one", "s1"), upload("Tape of session two", "s2")
    await library.add(one)
    await library.add(other)
    assert await library.document("bill", "s1") == one
    assert await library.document("bill", "s2") == other
    assert await library.document("bill") is None
    assert len(await library.documents("s1")) == len(await library.documents()) + 1
    assert [found.text for found in await library.retrieve("gauze tape", scope="s1", k=1)] == [
        one.text
    ]
    assert await library.retrieve("gauze tape bill") == []


async def test_an_upload_takes_the_place_of_its_earlier_form(library: Library) -> None:
    await library.add(upload("First form.\n\n" + "Long text. " * 500, "s1"))
    await library.add(upload("Second form", "s1"))
    assert [one.text for one in await library.retrieve("form bill", scope="s1")] == ["Second form"]
    await library.forget("s1")
    assert await library.document("bill", "s1") is None
    assert await library.retrieve("form bill", scope="s1") == []


async def test_it_is_there_for_another_process(library: Library, address: str) -> None:
    await library.add(upload("Gauze", "s1"))
    database = Database(address)
    async with HybridRetriever(database, "documents") as retriever:
        again = await Library.open(database, retriever)
        assert await again.document("bill", "s1") == upload("Gauze", "s1")
        assert [one.document_id for one in await again.retrieve("gauze", scope="s1")] == ["bill"]
    await database.close()


async def test_a_long_document_is_found_in_each_part(library: Library) -> None:
    words = " ".join(f"w{number}" for number in range(3000))
    await library.add(upload(words, "s1"))
    for number in (0, 1500, 2999):
        (found,) = await library.retrieve(f"w{number}", scope="s1")
        assert len(found.text) <= 2000
