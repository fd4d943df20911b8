"""Kept replies: found again for the same request, never for another."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from mdagents_llm.chat import (
    CallLabels,
    ChatMessage,
    ChatModel,
    ChatReply,
    ChatRequest,
    OnText,
    StopReason,
    TokenUsage,
)
from mdagents_llm.clock import Clock
from mdagents_llm.errors import ErrorKind, NothingRecorded, ProviderError
from mdagents_llm.layers.cache import Cache, Hits, Replay, cache_key
from mdagents_llm.layers.reply_store import ReplyStore
from mdagents_llm.layers.structured import Structured
from mdagents_llm.layers.transit import in_transit
from mdagents_llm.ledger import CallRow, Ledger, Price
from tests.conftest import REPOSITORY
from tests.support.environment import WITHOUT_RIGHTS, bare_environment
from tests.support.function_model import FunctionModel, text_reply


class Choice(BaseModel):
    answer: Literal["A", "B"]


REQUEST = ChatRequest(
    messages=(ChatMessage("user", "A or B?"),), max_tokens=50, labels=CallLabels("case-1")
)


@pytest.fixture
def cached(tmp_path: Path) -> Iterator[Callable[..., ChatModel]]:
    """Makes a cached (or, without a model, a replaying) model on a file of this test."""
    opened = ExitStack()

    def make(
        model: ChatModel | None,
        ledger: Ledger | None = None,
        name: str = "m",
        store: ReplyStore | None = None,
    ) -> ChatModel:
        if store is None:
            store = ReplyStore(tmp_path / "deep" / "replies.sqlite")
            opened.callback(store.close)
        hits = Hits(
            ledger or Ledger(),
            provider="p",
            model=name,
            name=name,
            price=lambda _: Price(1.0, 1.0),
            clock=Clock(),
        )
        return Replay(store, hits) if model is None else Cache(model, store, hits)

    with opened:
        yield make


async def test_the_same_request_is_answered_once(cached: Callable[..., ChatModel]) -> None:
    rows: list[CallRow] = []
    ledger = Ledger(rows.append)
    inner = FunctionModel(lambda _: "hello")
    model = cached(inner, ledger)
    ledger.open_case("case-1")
    first = await model.generate(REQUEST)
    deltas: list[str | None] = []
    second = await model.generate(REQUEST, deltas.append)
    assert len(inner.requests) == 1
    assert deltas == ["hello"]
    assert (second.text, second.usage, second.model) == (first.text, first.usage, first.model)
    assert (first.cached, second.cached) == (False, True)
    (row,) = rows
    assert row.cached
    assert row.usage == first.usage
    used = ledger.close_case("case-1").by_role[""]
    assert (used.calls, used.usage) == (1, first.usage), "but its tokens were used"
    assert used.cost_usd == pytest.approx(15e-6)


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": 0.7},
        {"max_tokens": 51},
        {"seed": 1},
        {"repeat": 1},
        {"schema": Choice},
        {"messages": (ChatMessage("user", "A or B? "),)},
        {"messages": (ChatMessage("system", "A or B?"),)},
    ],
)
def test_another_request_has_another_key(change: dict[str, Any]) -> None:
    assert cache_key("m", replace(REQUEST, **change)) != cache_key("m", REQUEST)
    assert cache_key("m2", REQUEST) != cache_key("m", REQUEST)


@pytest.mark.parametrize(
    ("temperature", "key"),
    [
        (0.7, "916a69e560cd8adbd68c61187bf5ddec02cae69ae41d0cadb280d4aafb56be7b"),
        (1e-7, "35e5fc9c55587166153777e00f7cbcd67efb9ae3af5ad6f9320d1d9125a5e943"),
    ],
)
def test_a_key_stays_the_same_so_that_paid_replies_are_found(temperature: float, key: str) -> None:
    request = ChatRequest(
        (ChatMessage("user", "A or B? é"),),
        max_tokens=50,
        temperature=temperature,
        repeat=2,
        headroom=100,
    )
    assert cache_key('openai/"é" http://m/v1', request) == key


def test_who_asks_and_how_often_it_was_tried_is_not_in_the_key() -> None:
    other = in_transit(REQUEST, labels=CallLabels("case-2", "x"), attempt=3, waited=1.0)
    assert cache_key("m", other) == cache_key("m", REQUEST)


async def test_a_reported_cost_is_cached(cached: Callable[..., ChatModel]) -> None:
    priced = replace(text_reply("hello"), cost_usd=0.0021, service_tier="flex")
    await cached(FunctionModel(lambda _: priced)).generate(REQUEST)
    kept = await cached(None).generate(REQUEST)
    assert (kept.cost_usd, kept.service_tier) == (0.0021, "flex")


async def test_an_error_is_replayed_and_a_live_run_asks_again(
    cached: Callable[..., ChatModel],
) -> None:
    replies: Iterator[ProviderError | str] = iter(
        [
            ProviderError("no", kind=ErrorKind.SERVER),
            ProviderError("still no", kind=ErrorKind.TIMEOUT),
            "fine",
            "never asked for",
        ]
    )

    def answer(request: ChatRequest) -> str:
        reply = next(replies)
        if isinstance(reply, ProviderError):
            raise reply
        return reply

    model = cached(FunctionModel(answer))
    for kind, message in ((ErrorKind.SERVER, "no"), (ErrorKind.TIMEOUT, "still no")):
        with pytest.raises(ProviderError):
            await model.generate(REQUEST)
        with pytest.raises(ProviderError) as replayed:
            await cached(None).generate(REQUEST)
        assert (replayed.value.kind, str(replayed.value)) == (kind, message)
    assert (await model.generate(REQUEST)).text == "fine"
    assert (await cached(None).generate(REQUEST)).text == "fine"
    assert (await model.generate(REQUEST)).text == "fine"


@pytest.mark.parametrize("kind", [ErrorKind.AUTH, ErrorKind.QUOTA, ErrorKind.SCHEMA_UNSUPPORTED])
async def test_an_error_of_the_account_or_the_model_is_not_kept(
    cached: Callable[..., ChatModel], kind: ErrorKind
) -> None:
    def answer(request: ChatRequest) -> str:
        raise ProviderError("no", kind=kind)

    with pytest.raises(ProviderError):
        await cached(FunctionModel(answer)).generate(REQUEST)
    with pytest.raises(NothingRecorded):
        await cached(None).generate(REQUEST)


async def test_of_two_processes_that_ask_the_same_the_first_reply_stays(
    cached: Callable[..., ChatModel],
) -> None:
    second = cached(FunctionModel(lambda _: "second"))

    class Slow:
        async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
            await second.generate(request)  # the other process is done before this one
            return text_reply("first to ask, second to have a reply")

    await cached(Slow()).generate(REQUEST)
    assert (await cached(None).generate(REQUEST)).text == "second"


class _Slow:
    """Replies, or fails, when it is told to."""

    def __init__(self) -> None:
        self.asked: list[asyncio.Future[ChatReply]] = []

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        self.asked.append(asyncio.get_running_loop().create_future())
        return await self.asked[-1]


@pytest.mark.sweep
@given(ends=st.lists(st.sampled_from(["reply", "fail", "truncate", "cancel"]), max_size=4))
async def test_of_equal_requests_at_once_one_is_asked(
    tmp_path_factory: pytest.TempPathFactory, ends: list[str]
) -> None:
    """Whatever becomes of the one that is asked, all others get a reply or their own error."""
    store = ReplyStore(tmp_path_factory.mktemp("cache") / "replies.sqlite")
    inner = _Slow()

    def model() -> Cache:  # as each run has one of its own
        hits = Hits(
            Ledger(), provider="p", model="m", name="m", price=lambda _: None, clock=Clock()
        )
        return Cache(inner, store, hits)

    tasks = [asyncio.ensure_future(model().generate(REQUEST)) for _ in range(5)]
    for asked, end in enumerate([*ends, *["reply"] * 5]):
        for _ in range(20):  # turns of the loop, more than an answer takes to reach all tasks
            await asyncio.sleep(0)
        if all(task.done() for task in tasks):
            break
        assert len(inner.asked) == asked + 1, "one at a time"
        assert len(store.asking) == 1
        match end:
            case "reply":
                inner.asked[-1].set_result(text_reply("hello"))
            case "truncate":
                inner.asked[-1].set_result(
                    replace(text_reply("hel"), stop_reason=StopReason.LENGTH)
                )
            case "fail":
                error = ProviderError("it is down", kind=ErrorKind.OVERLOADED)
                inner.asked[-1].set_exception(error)
            case "cancel":
                inner.asked[-1].cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert store.asking == {}
    replied = ends.index("reply") if "reply" in ends else len(ends)
    assert len(inner.asked) == min(5, replied + 1)
    texts = [end.text for end in ended if isinstance(end, ChatReply)]
    assert texts.count("hello") == max(0, 5 - replied)
    assert [type(end).__name__ for end in ended].count("ProviderError") == ends[:replied].count(
        "fail"
    )
    store.close()


async def test_a_truncated_reply_is_replayed_but_never_used_again(
    cached: Callable[..., ChatModel],
) -> None:
    replies = iter([text_reply("cut", StopReason.LENGTH), text_reply("whole")])
    inner = FunctionModel(lambda _: next(replies))
    assert (await cached(inner).generate(REQUEST)).text == "cut"
    assert (await cached(None).generate(REQUEST)).text == "cut"
    assert (await cached(inner).generate(REQUEST)).text == "whole"
    assert (await cached(None).generate(REQUEST)).text == "whole"


async def test_that_a_request_was_too_long_is_replayed_but_asked_again_by_a_live_run(
    cached: Callable[..., ChatModel],
) -> None:
    def too_long(request: ChatRequest) -> ChatReply | str:
        raise ProviderError("4,609 tokens exceed 4,096", kind=ErrorKind.CONTEXT_LENGTH)

    for model in (cached(FunctionModel(too_long)), cached(None)):
        with pytest.raises(ProviderError, match="4,609 tokens exceed 4,096") as caught:
            await model.generate(REQUEST)
        assert caught.value.kind is ErrorKind.CONTEXT_LENGTH
    assert (await cached(FunctionModel(lambda _: "now it fits")).generate(REQUEST)).text
    assert (await cached(None).generate(REQUEST)).text == "now it fits"


async def test_a_miss_is_an_error_when_nobody_may_be_asked(
    cached: Callable[..., ChatModel],
) -> None:
    replay = cached(None)
    with pytest.raises(NothingRecorded):
        await Structured(replay).generate(replace(REQUEST, schema=Choice))
    await cached(FunctionModel(lambda _: "kept")).generate(REQUEST)
    await replay.generate(REQUEST)
    with pytest.raises(ProviderError) as caught:
        await Structured(replay).generate(replace(REQUEST, schema=Choice))
    assert caught.value.kind is ErrorKind.CACHE_MISS
    assert not caught.value.retryable


async def test_a_run_that_had_to_ask_in_the_prompt_is_replayed(
    cached: Callable[..., ChatModel],
) -> None:
    def answer(request: ChatRequest) -> ChatReply | str:
        if request.schema is not None:
            raise ProviderError("no schemas here", kind=ErrorKind.SCHEMA_UNSUPPORTED)
        return '{"answer": "B"}'

    request = replace(REQUEST, schema=Choice)
    live = await Structured(cached(FunctionModel(answer))).generate(request)
    replayed = await Structured(cached(None)).generate(request)
    assert live.parsed == replayed.parsed == Choice(answer="B")


async def test_replies_survive_a_process(cached: Callable[..., ChatModel]) -> None:
    inner = FunctionModel(lambda _: "kept")
    await cached(inner).generate(REQUEST)
    assert (await cached(inner).generate(REQUEST)).cached
    assert len(inner.requests) == 1


def key_of(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def fill(path: Path, replies: int, words: int = 100) -> None:
    with closing(ReplyStore(path)) as store:
        for number in range(replies):
            store.put(key_of(number), text_reply(f"reply {number} " + "word " * words))


def found_in(store: ReplyStore, replies: int) -> list[str]:
    kept = (store.get(key_of(number), truncated_too=False) for number in range(replies))
    return [reply.text.split(" word")[0] for reply in kept if reply]


OLDER = (
    "CREATE TABLE reply (key TEXT PRIMARY KEY, truncated INTEGER NOT NULL, content TEXT NOT NULL)"
    "WITHOUT ROWID"
)
"""Table of the files before 2026-11-27."""


def test_a_file_in_the_older_form_is_used(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute(OLDER)
    fill(path, 3)
    with closing(ReplyStore(path)) as store:
        assert found_in(store, 3) == ["reply 0", "reply 1", "reply 2"]


@pytest.mark.sweep
@pytest.mark.parametrize("words", [100, 2000])
def test_a_damaged_page_of_an_older_file_costs_few_replies(tmp_path: Path, words: int) -> None:
    path = tmp_path / "replies.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute(OLDER)
    fill(path, 100, words)
    whole = path.read_bytes()
    for start in range(3 * 4096, len(whole), 4096 * max(1, len(whole) // 4096 // 25)):
        path.write_bytes(whole[:start] + b"\xaa" * 4096 + whole[start + 4096 :])
        for _ in range(2):
            with closing(ReplyStore(path, lambda _: None)) as store:
                found = found_in(store, 100)
        assert len(found) >= 50  # one page holds the keys of many replies


@pytest.mark.sweep
def test_a_damaged_page_costs_only_the_replies_on_it(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    fill(path, 100)
    whole = path.read_bytes()
    for start in range(2 * 4096, len(whole), 4096):  # the first two: schema and root
        path.write_bytes(whole[:start] + b"\xaa" * 4096 + whole[start + 4096 :])
        for _ in range(2):  # a row may have been read before the damage was found
            with closing(ReplyStore(path, lambda _: None)) as store:
                found = found_in(store, 100)
        assert len(found) >= 95


def test_a_damaged_file_is_kept_aside_and_what_can_be_read_is_used(tmp_path: Path) -> None:
    fill(tmp_path / "replies.sqlite", 100)
    whole = (tmp_path / "replies.sqlite").read_bytes()
    pages = len(whole) // 4096
    middle = 4096 * (pages // 2)
    for name, content, at_least in (
        ("text", b"this is not a database, it is a long text" * 100, 0),
        ("no header", b"\0" * 100 + whole[100:], 0),
        ("a page", whole[:middle] + b"\xaa" * 4096 + whole[middle + 4096 :], 50),
        ("cut off", whole[: 4096 * (pages - 2)], 30),
    ):
        folder = tmp_path / name
        folder.mkdir()
        path = folder / "replies.sqlite"
        path.write_bytes(content)
        said: list[str] = []
        with closing(ReplyStore(path, said.append)) as store:
            found = found_in(store, 100)
            store.put(key_of(1000), text_reply("new"))
        assert len(found) >= at_least, name
        (note,) = said
        (kept,) = folder.glob("*.damaged-*[0-9]")
        assert note.startswith(f"NOTE: the cache {path} was damaged and is kept as {kept.name}")
        assert kept.read_bytes()[:100] == content[:100], name
        with closing(ReplyStore(path, said.append)) as store:
            assert found_in(store, 100) == found, name
            assert store.get(key_of(1000), truncated_too=False)
        assert len(said) == 1, "and no word of it the next time"


def test_a_row_that_holds_no_reply_is_a_miss_and_makes_room(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    fill(path, 1)
    right = {
        "text": "t",
        "usage": TokenUsage().as_dict(),
        "stop_reason": "stop",
        "model": "m",
        "latency": 1.0,
    }
    for content in (
        "", "{", "[]", "5", "null", '"error"', "[" * 100_000, b"\xff\xfe", b"\x00\x01",
        *(json.dumps(right | change) for change in (
            {"text": 5}, {"usage": {"tokens": 1}}, {"usage": {"input_tokens": "1"}},
            {"stop_reason": "sudden"}, {"model": ["m"]}, {"latency": "long"},
            {"error": "e", "kind": "none"},
        )),
    ):  # fmt: skip
        with closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE reply SET content = ?", (content,))
            db.commit()
        said: list[str] = []
        with closing(ReplyStore(path, said.append)) as store:
            assert store.get(key_of(0), truncated_too=False) is None, content[:50]
            store.put(key_of(0), text_reply("again"))
            assert store.get(key_of(0), truncated_too=False)
        assert said == []


def test_a_table_of_another_program_is_kept_aside(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE reply (id INTEGER, body TEXT)")
    said: list[str] = []
    with closing(ReplyStore(path, said.append)) as store:
        store.put(key_of(0), text_reply("kept"))
        assert store.get(key_of(0), truncated_too=False)
    assert len(said) == 1


def test_a_file_that_cannot_be_used_costs_only_the_keeping(tmp_path: Path) -> None:
    def folder(path: Path) -> None:
        path.mkdir()

    for number, make in enumerate((folder, os.mkfifo)):
        path = tmp_path / f"{number}.sqlite"
        make(path)
        said: list[str] = []
        with closing(ReplyStore(path, said.append)) as store:
            store.put(key_of(0), text_reply("new"))
            assert store.get(key_of(0), truncated_too=False)
        (note,) = said
        assert note.startswith(f"NOTE: the cache {path} cannot be used (")
        assert note.endswith("): this run keeps no replies")


def test_a_file_that_cannot_be_written_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Public reports: diskcache 113 and 127.
    path = tmp_path / "replies.sqlite"
    with closing(ReplyStore(path)) as store:
        store.put(key_of(0), text_reply("reply 0"))
    connect = sqlite3.connect

    def read_only(file: str, **settings: Any) -> sqlite3.Connection:
        db: sqlite3.Connection = connect(f"file:{file}?mode=ro", uri=True, **settings)
        return db

    monkeypatch.setattr(sqlite3, "connect", read_only)
    said: list[str] = []
    with closing(ReplyStore(path, said.append)) as store:
        assert not store.is_empty()
        store.put(key_of(1), text_reply("reply 1"))
        store.put(key_of(2), text_reply("reply 2"))
        assert found_in(store, 3) == ["reply 0", "reply 1", "reply 2"]
    (note,) = said
    assert note.startswith(f"NOTE: the cache {path} keeps no new replies of this run (")
    with closing(ReplyStore(path)) as store:
        assert found_in(store, 3) == ["reply 0"]


READS = """
from pathlib import Path

from mdagents_llm.layers.reply_store import ReplyStore
from tests.mdagents_llm.layers.test_cache import found_in, key_of, text_reply

store = ReplyStore(Path("replies.sqlite"), print)
store.put(key_of(1), text_reply("reply 1"))
print(found_in(store, 2))
store.close()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="rights of Linux")
@pytest.mark.process
@pytest.mark.parametrize("is_open", [False, True])
def test_a_file_in_a_folder_that_takes_no_files_is_read(is_open: bool, tmp_path: Path) -> None:
    # A shared cache that is mounted read-only, as in tt-forge-models 10.
    folder = tmp_path / "100% shared?"
    owner = ReplyStore(folder / "replies.sqlite")
    owner.put(key_of(0), text_reply("reply 0"))
    if not is_open:
        owner.close()
    folder.chmod(0o555)
    done = subprocess.run(
        [*WITHOUT_RIGHTS, sys.executable, "-c", READS],
        cwd=folder,
        env=bare_environment(PYTHONPATH=str(REPOSITORY)),
        capture_output=True,
        text=True,
        check=False,
    )
    folder.chmod(0o755)
    owner.close()
    *said, found = done.stdout.splitlines()
    assert found == "['reply 0', 'reply 1']", done.stderr
    assert is_open or "keeps no new replies of this run" in said[0]


def test_what_is_had_while_another_program_locks_the_file_is_written_later(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    said: list[str] = []
    with closing(ReplyStore(path, said.append, patience=0.01)) as store:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            store.put(key_of(0), text_reply("reply 0"))
            assert found_in(store, 1) == []
            other.execute("ROLLBACK")
        store.put(key_of(1), text_reply("reply 1"))
        assert found_in(store, 2) == ["reply 0", "reply 1"]
    assert said == []


def test_a_cache_that_stays_locked_says_what_it_did_not_take(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    said: list[str] = []
    store = ReplyStore(path, said.append, patience=0.01)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        store.put(key_of(0), text_reply("reply 0"))
        store.put(key_of(1), text_reply("reply 1"))
        store.close()
    assert said == [f"NOTE: the cache {path} did not take 2 replies: database is locked"]
