"""The documents, and who sees which."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demos.document_assistant.calculator import calculated
from demos.document_assistant.library import Document, Library, shipped
from demos.document_assistant.pieces import pieces_of
from demos.toolkit.database import Database
from demos.toolkit.retrieval import HybridRetriever
from mdagents_llm.errors import ConfigError
from tests.support.cancelling import cancel_sometime
from tests.support.sweeps import seeds


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
    assert calculated("+".join(rows))[0] == 1_238_450, "the parts are the total"


def test_a_document_without_a_total_has_none() -> None:
    assert shipped()["doc_invoice_oxygen_draft"].amount is None
    assert shipped()["doc_claim_7731"].amount == 11480


@pytest.mark.process
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


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("料金はいくらですか", "お知らせ\n料金は2,300円です。"),
        ("抽血室几点开放", "通知\n抽血室上午8点到下午3点开放。费用为230元。"),
        ("しりとり", "今日は成語しりとりをした"),
        ("成语接龙", "今天玩成语接龙游戏"),
        ("悬空", "步2 重跑gen-itgc后50条悬空引用清零，修复已验证"),
        ("itgc", "步2 重跑gen-itgc后50条悬空引用清零，修复已验证"),
        ("ﾕｰｻﾞｰ", "開始ﾕｰｻﾞｰ認証完了"),
        ("生命科学", "研究生命科学"),
        ("部署方案", "今天讨论了部署方案"),
    ],
)
async def test_words_inside_a_sentence_without_spaces(
    library: Library, query: str, text: str
) -> None:
    await library.add(upload(text, "s1"))
    assert [one.text for one in await library.retrieve(query, scope="s1", k=1)] == [text]
    await library.add(upload("Another form.", "s1"))
    assert await library.retrieve(query, scope="s1") == []


async def test_an_upload_takes_the_place_of_its_earlier_form(library: Library) -> None:
    await library.add(upload("First form.\n\n" + "Long text. " * 500, "s1"))
    await library.add(upload("Second form", "s1"))
    assert [one.text for one in await library.retrieve("form bill", scope="s1")] == ["Second form"]
    await library.forget("s1")
    assert await library.document("bill", "s1") is None
    assert await library.retrieve("form bill", scope="s1") == []


async def test_files_of_one_name_are_kept_apart(library: Library, tmp_path: Path) -> None:
    """ryanhowdy/fcms#146, Infomaniak/ios-kDrive#158."""
    north, south, old = (tmp_path / name / "bill.txt" for name in ("north", "south", "old"))
    first = await library.add(upload("Rent is 1200", "s1"), path=north)
    assert first == upload("Rent is 1200", "s1")
    second = await library.add(upload("Rent is 900", "s1"), path=south)
    assert (second.id, second.title) == ("bill_2", "Bill (2)")
    assert await library.document("bill", "s1") == first
    again = await library.add(upload("Rent is 950", "s1"), path=south.parent / ".." / south)
    assert await library.document("bill_2", "s1") == again
    assert {one.text for one in await library.retrieve("rent", scope="s1")} >= {
        "Rent is 1200",
        "Rent is 950",
    }
    assert (await library.add(upload("Rent is 1", "s1"), path=old)).id == "bill_3"
    assert (await library.add(upload("Rent is 1", "s2"), path=old)).id == "bill"
    await library.forget("s1")
    assert (await library.add(upload("Rent is 1", "s1"), path=old)).id == "bill"


async def test_an_upload_of_an_earlier_version_is_replaced(
    library: Library, tmp_path: Path
) -> None:
    await library.add(upload("Rent is 1200", "s1"))  # its file is not known
    assert (await library.add(upload("Rent is 900", "s1"), path=tmp_path / "bill.txt")).id == "bill"
    assert len(await library.documents("s1")) == len(shipped()) + 1


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


@pytest.mark.sweep
async def test_many_may_open_it_at_once(address: str) -> None:
    async def found() -> str:
        database = Database(address)
        async with HybridRetriever(database, "documents") as retriever:
            library = await Library.open(database, retriever)
            (first, *_) = await library.retrieve("cleaning contract")
        await database.close()
        return first.document_id

    assert set(await asyncio.gather(*(found() for _ in range(5)))) == {"doc_contract_cleaning"}


@pytest.mark.sweep
async def test_many_uploads_at_once(library: Library) -> None:
    uploads = [upload(f"Gauze {n % 2}", "s1", f"bill{n % 4}") for n in range(12)]
    await asyncio.gather(*map(library.add, uploads))
    listed = [one for one in await library.documents("s1") if one.scope]
    assert [one.id for one in listed] == ["bill0", "bill1", "bill2", "bill3"]
    found = await library.retrieve("gauze", scope="s1", k=9)
    assert {(one.document_id, one.text) for one in found} == {(one.id, one.text) for one in listed}


@pytest.mark.sweep
@pytest.mark.parametrize("seed", seeds(6))
async def test_an_upload_is_there_as_a_whole_or_not_at_all(library: Library, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(6):
        new = upload(f"Form number{number}.", "s1")
        await cancel_sometime(library.add(new), chance, steps=40)
        listed = await library.document("bill", "s1")
        found = await library.retrieve("form number", scope="s1", k=1)
        assert [one.text for one in found] == ([listed.text] if listed else [])
    await library.add(upload("The last form.", "s1"))
    (found_last,) = await library.retrieve("form", scope="s1", k=1)
    assert found_last.text == "The last form."
    await library.forget("s1")
    assert await library.retrieve("form number", scope="s1", k=1) == []


@pytest.mark.sweep
async def test_one_long_upload_does_not_hide_the_others(library: Library) -> None:
    await library.add(upload("Cleaning contract price.\n\n" + "Cleaning. " * 20_000, "s1"))
    found = await library.retrieve("price of the cleaning contract", scope="s1", k=3)
    assert "doc_contract_cleaning" in {one.document_id for one in found}


async def test_how_much_a_session_may_upload(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("demos.document_assistant.library.MOST_CHARACTERS", 5_000)
    half = "x" * 2_500
    await library.add(upload(half, "s1", "one"))
    await library.add(upload(half, "s1", "one"))
    await library.add(upload(half, "s1", "two"))
    with pytest.raises(ConfigError, match="at most 5,000 characters together"):
        await library.add(upload("x", "s1", "three"))
    await library.add(upload("x", "s2", "one"))
    monkeypatch.setattr("demos.document_assistant.library.MOST_UPLOADS", 1)
    await library.add(upload("y", "s2", "one"))
    with pytest.raises(ConfigError, match="a session has at most 1 uploads"):
        await library.add(upload("x", "s2", "two"))


@pytest.mark.parametrize(("id_", "scope"), [("bill", ""), ("doc_claim_7731", "s1")])
async def test_what_is_no_upload(library: Library, id_: str, scope: str) -> None:
    with pytest.raises(ValueError, match="is no upload"):
        await library.add(upload("x", scope, id_))


@given(st.text("ab .\n", max_size=300), st.integers(4, 40))
def test_pieces_are_the_text(text: str, most: int) -> None:
    pieces = list(pieces_of(text, most))
    assert "".join(pieces) == text
    assert all(len(piece) <= most for piece in pieces)


def test_a_number_is_in_one_piece() -> None:
    numbers = [f"{n},{n}" for n in range(100, 999)]
    pieces = pieces_of(" ".join(numbers), 50)
    assert [number for piece in pieces for number in piece.split()] == numbers
