"""Sessions: whose they are, one turn at a time, and what is left of one that is cut off."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import END, START, StateGraph

from demos.toolkit.database import Database
from demos.toolkit.sessions import Role, SessionBusyError, SessionStore, Turn, UnknownSessionError
from mdagents_llm.errors import ConfigError, StorageError
from tests.conftest import REPOSITORY
from tests.support.cancelling import cancel_sometime

WRITER = """
import asyncio, sys
from demos.toolkit.database import Database
from demos.toolkit.sessions import Role, SessionStore

async def main(address, session, name, times):
    database = Database(address)
    async with SessionStore.open(database) as store:
        for number in range(int(times)):
            async with store.turn(session) as turn:
                turn.say(Role.USER, f"{name} {number}")
                if name == "killed":
                    print("in the middle", flush=True)
                    await asyncio.sleep(3600)
                turn.say(Role.ASSISTANT, f"after {len(turn.messages)}")
    await database.close()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
async def store(database: Database) -> AsyncIterator[SessionStore]:
    async with SessionStore.open(database) as store:
        yield store


def writer(address: str, session: str, name: str, times: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, address, session, name, str(times)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )


def talk(turn: Turn, question: str) -> None:
    turn.say(Role.USER, question)
    turn.say(Role.ASSISTANT, f"An answer to {question}", {"sources": ["doc_1"]})


async def test_a_conversation(store: SessionStore) -> None:
    session = await store.start("ann")
    for question in ("one", "two"):
        async with store.turn(session.id, "ann") as turn:
            talk(turn, question)
    said = await store.messages(session.id, "ann")
    assert [(message.number, message.role.value, message.text) for message in said] == [
        (1, "user", "one"),
        (2, "assistant", "An answer to one"),
        (3, "user", "two"),
        (4, "assistant", "An answer to two"),
    ]
    assert said[1].data == {"sources": ["doc_1"]}
    assert await store.messages(session.id, "ann", last=3) == said[1:]
    assert (await store.session(session.id, "ann")).turns == 2
    exported = await store.export(session.id, "ann")
    assert exported["messages"][3]["text"] == "An answer to two"
    assert datetime.fromisoformat(exported["started"]).tzinfo == UTC


async def test_it_is_there_when_the_store_is_opened_again(address: str) -> None:
    for number in (1, 2):
        database = Database(address)
        async with SessionStore.open(database) as store:
            session = await store.start("", "mine")
            async with store.turn(session.id) as turn:
                assert len(turn.messages) == 2 * (number - 1)
                talk(turn, "why?")
        await database.close()


async def test_a_session_is_its_users(store: SessionStore) -> None:
    session = await store.start("ann")
    with pytest.raises(UnknownSessionError) as of_another:
        await store.session(session.id, "bob")
    with pytest.raises(UnknownSessionError) as of_nobody:
        await store.session("nothing", "bob")
    told = str(of_another.value).replace(session.id, "nothing")
    assert told == str(of_nobody.value), "nobody learns which ids there are"
    with pytest.raises(UnknownSessionError):
        await store.start("bob", session.id)
    with pytest.raises(UnknownSessionError):
        await store.messages(session.id)
    with pytest.raises(UnknownSessionError):
        async with store.turn(session.id, "bob"):
            pass
    with pytest.raises(UnknownSessionError):
        await store.delete(session.id, "bob")
    assert [each.id for each in await store.sessions("ann")] == [session.id]
    assert await store.sessions("bob") == []


@pytest.mark.parametrize("id_", ["", "../x", ".hidden", "a b", "a/b", "x" * 65, "é", "a\n"])
async def test_an_id_that_is_none(store: SessionStore, id_: str) -> None:
    with pytest.raises(ConfigError, match="is no id of a session"):
        await store.start("", id_)


async def test_the_last_one_used_comes_first(database: Database) -> None:
    times = (datetime(2026, 1, day, tzinfo=UTC) for day in range(1, 20))
    async with SessionStore.open(database, now=lambda: next(times)) as store:
        first, second = await store.start(), await store.start()
        async with store.turn(first.id) as turn:
            talk(turn, "again")
        assert [each.id for each in await store.sessions()] == [first.id, second.id]


async def test_what_is_kept_outlives_an_error_and_may_be_corrected(store: SessionStore) -> None:
    session = await store.start()

    async def turns(reply: str, *, fails: bool) -> None:
        async with store.turn(session.id) as turn:
            talk(turn, "one")
            await store.keep(turn)
            turn.correct(reply)
            if fails:
                raise RuntimeError("the model is gone")

    with pytest.raises(RuntimeError, match="the model is gone"):
        await turns("never", fails=True)
    first = await store.messages(session.id)
    await turns("better", fails=False)
    said = await store.messages(session.id)
    assert said[:2] == first
    assert [(one.number, one.role) for one in said] == [
        (1, Role.USER), (2, Role.ASSISTANT), (3, Role.USER), (4, Role.ASSISTANT)
    ]  # fmt: skip
    assert "never" not in first[1].text
    assert said[3].text == "better"
    assert (await store.session(session.id)).turns == 2


async def test_an_error_in_a_turn_leaves_nothing_of_it(store: SessionStore) -> None:
    session = await store.start()

    async def failing() -> None:
        async with store.turn(session.id) as turn:
            talk(turn, "one")
            raise RuntimeError("the model is gone")

    with pytest.raises(RuntimeError, match="the model is gone"):
        await failing()
    assert await store.messages(session.id) == []
    async with store.turn(session.id, patience=0) as turn:
        talk(turn, "two")
    assert [message.number for message in await store.messages(session.id)] == [1, 2]


@pytest.mark.sweep
async def test_turns_of_a_session_are_one_at_a_time(store: SessionStore) -> None:
    session, other = await store.start(), await store.start()
    async with store.turn(session.id):
        with pytest.raises(SessionBusyError, match="is in use elsewhere"):
            async with store.turn(session.id, patience=0.05):
                pass
        with pytest.raises(SessionBusyError):
            await store.delete(session.id)
        async with store.turn(other.id, patience=0) as turn:
            talk(turn, "another session is free")

    async def one(number: int) -> None:
        async with store.turn(session.id) as turn:
            await asyncio.sleep(0)
            talk(turn, str(number))

    await asyncio.gather(*map(one, range(12)))
    said = await store.messages(session.id)
    assert [message.number for message in said] == list(range(1, 25))
    assert {message.text for message in said[::2]} == {str(number) for number in range(12)}


async def test_a_deleted_session_is_gone_with_its_state(store: SessionStore) -> None:
    session = await store.start()
    graph = counting(store)
    config = {"configurable": {"thread_id": session.id}}
    await graph.ainvoke({"count": 1}, config)
    async with store.turn(session.id) as turn:
        talk(turn, "one")
    await store.delete(session.id)
    with pytest.raises(UnknownSessionError):
        await store.messages(session.id)
    assert (await graph.aget_state(config)).values == {}


class Count(TypedDict):
    count: Annotated[int, lambda old, new: (old or 0) + new]


def counting(store: SessionStore) -> Any:
    graph = StateGraph(Count)
    graph.add_node("add", lambda state: {"count": 1})
    graph.add_edge(START, "add")
    graph.add_edge("add", END)
    return graph.compile(checkpointer=store.checkpointer)


async def test_the_state_of_a_graph_goes_on(store: SessionStore) -> None:
    graph = counting(store)
    for expected in (2, 4):
        config = {"configurable": {"thread_id": "a-session"}}
        assert (await graph.ainvoke({"count": 1}, config))["count"] == expected


@pytest.mark.process
def test_two_processes_on_one_session(address: str) -> None:
    async def before() -> str:
        database = Database(address)
        async with SessionStore.open(database) as store:
            session = await store.start()
        await database.close()
        return session.id

    async def after() -> list[str]:
        database = Database(address)
        async with SessionStore.open(database) as store:
            said = await store.messages(session)
        await database.close()
        assert [message.number for message in said] == list(range(1, len(said) + 1))
        return [message.text for message in said]

    session = asyncio.run(before())
    both = [writer(address, session, name, 8) for name in ("a", "b")]
    assert [each.wait(120) for each in both] == [0, 0]
    texts = asyncio.run(after())
    assert texts[1::2] == [f"after {2 * number}" for number in range(16)], "each saw all before"
    for name in ("a", "b"):
        mine = [text for text in texts[::2] if text.startswith(name)]
        assert mine == [f"{name} {number}" for number in range(8)]
    for each in both:
        assert each.stdout
        each.stdout.close()


@pytest.mark.process
async def test_a_turn_that_is_killed(store: SessionStore, address: str) -> None:
    session = await store.start()
    with writer(address, session.id, "killed", 1) as child:
        assert child.stdout
        assert await asyncio.to_thread(child.stdout.readline) == "in the middle\n"
        with pytest.raises(SessionBusyError):
            async with store.turn(session.id, patience=0):
                pass
        child.send_signal(signal.SIGKILL)
        await asyncio.to_thread(child.wait)
    async with store.turn(session.id, patience=30) as turn:
        assert turn.messages == []
        talk(turn, "on it goes")
    assert len(await store.messages(session.id)) == 2


@pytest.mark.sweep
async def test_cancelled_at_any_moment(database: Database) -> None:
    chance = random.Random(19)
    cancelled = 0
    async with SessionStore.open(database) as store:
        session = await store.start()

        async def turn_of(number: int) -> None:
            async with store.turn(session.id) as turn:
                talk(turn, str(number))
                await asyncio.sleep(0)

        for number in range(60):
            cancelled += await cancel_sometime(turn_of(number), chance, 60)
        async with store.turn(session.id, patience=30) as turn:
            said = len(turn.messages)
            talk(turn, "still free")
        messages = await store.messages(session.id)
        assert [message.number for message in messages] == list(range(1, said + 3))
        assert (await store.session(session.id)).turns == len(messages) / 2, "none is half there"
    assert cancelled > 5
    assert said > 0, "some came before the cancellation"


@pytest.mark.sweep
async def test_checkpoints_that_are_cancelled_lock_nothing(
    store: SessionStore, address: str
) -> None:
    saver = store.checkpointer
    chance = random.Random(23)
    cancelled = 0
    other = Database(address)
    for number in range(90):
        config: RunnableConfig = {
            "configurable": {"thread_id": f"t{number}", "checkpoint_ns": "", "checkpoint_id": "c"}
        }
        writes = [("a", 1), ("b", "two")]
        writing: tuple[Coroutine[Any, Any, Any], ...] = (
            saver.aput(config, empty_checkpoint(), {}, {}),
            saver.aput_writes(config, writes, "task"),
            saver.adelete_thread(f"t{number - 1}"),
        )
        for each in writing:
            cancelled += await cancel_sometime(each, chance, 8)
        async with asyncio.timeout(60), other.begin() as connection:
            await connection.exec_driver_sql("UPDATE sessions SET turns = 0")
    await other.close()
    assert cancelled > 30


@pytest.mark.sweep
async def test_two_that_open_a_new_database_at_once(address: str) -> None:
    async def opened() -> None:
        database = Database(address)
        async with SessionStore.open(database) as store:
            await store.start()
        await database.close()

    await asyncio.gather(*(opened() for _ in range(5)))


# What cannot be opened


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("mysql://host/name", "DATABASE_URL begins with mysql://; it looks like postgresql://"),
        ("postgresql://host:port/name", "DATABASE_URL is no address; it looks like postgresql://"),
        ("postgresql://u:secret@127.0.0.1:1/x", "DATABASE_URL: cannot use postgresql"),
    ],
)
async def test_an_address_that_is_none(address: str, told: str) -> None:
    with pytest.raises(ConfigError) as failure:
        async with SessionStore.open(Database(address)):
            pass
    assert str(failure.value).startswith(told)
    assert "secret" not in str(failure.value)
    assert "\n" not in str(failure.value)


async def test_a_database_that_is_not_there(postgres_server: str) -> None:
    database = Database(f"{postgres_server}/nowhere")
    with pytest.raises(ConfigError, match='database "nowhere" does not exist'):
        async with SessionStore.open(database):
            pass
    await database.close()


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    file = tmp_path / "letters.sqlite"
    file.write_text("Dear colleague, " * 100)
    database = Database(file)
    with pytest.raises(ConfigError, match=r"letters\.sqlite is no SQLite database"):
        async with SessionStore.open(database):
            pass
    await database.close()
    assert file.read_text().startswith("Dear colleague")


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"cannot make .*file/folder: "):
        Database(tmp_path / "file" / "folder" / "sessions.sqlite")


async def test_a_full_disk(tmp_path: Path) -> None:
    database = Database(tmp_path / "sessions.sqlite")
    async with SessionStore.open(database) as store:
        session = await store.start()
        async with database.begin() as connection:
            pages = await connection.exec_driver_sql("PRAGMA page_count")
            (count,) = pages.one()
            await connection.exec_driver_sql(f"PRAGMA max_page_count = {count}")
        with pytest.raises(StorageError, match=r"sessions\.sqlite cannot be written: .*full"):
            async with store.turn(session.id) as turn:
                turn.say(Role.USER, "x" * 100_000)
        assert await store.messages(session.id) == []
    await database.close()


async def test_what_postgresql_does_not_take(store: SessionStore) -> None:
    session = await store.start()
    async with store.turn(session.id) as turn:
        turn.say(Role.USER, "a\0b")
    assert [message.text for message in await store.messages(session.id)] == ["ab"]


async def test_only_its_owner_can_read_a_database(tmp_path: Path) -> None:
    """Whatever the umask; one of an earlier version, which others could read, is closed to them."""
    before = os.umask(0o022)
    try:
        for is_there in (False, True):
            path = tmp_path / f"kept-{is_there}" / "patients.sqlite"
            if is_there:
                path.parent.mkdir()
                for suffix in ("", "-wal", "-shm"):
                    path.with_name(path.name + suffix).touch(0o644)
            database = Database(path)
            async with SessionStore.open(database) as store:
                session = await store.start()
                async with store.turn(session.id) as turn:
                    turn.say(Role.USER, "my chest hurts")
                files = [file for file in path.parent.iterdir() if file.is_file()]
                assert {file.name.removeprefix(path.name) for file in files} == {"", "-wal", "-shm"}
                assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
                locks = path.with_name(f"{path.name}.locks")
                assert locks.stat().st_mode & 0o777 == 0o700
            await database.close()
            assert path.parent.stat().st_mode & 0o777 == (0o755 if is_there else 0o700)
    finally:
        os.umask(before)
