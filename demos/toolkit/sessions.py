"""Sessions of an assistant: whose they are, what was said, and the state of its graph."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
)
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool
from sqlalchemy import (
    JSON,
    Column,
    ForeignKey,
    Integer,
    MetaData,
    Row,
    String,
    Table,
    Text,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from demos.toolkit.database import Database, LockTakenError
from demos.toolkit.guard import new_id, valid_id
from mdagents_llm.errors import ConfigError
from mdagents_llm.finishing import finished

_TABLES = MetaData()
_SESSIONS = Table(
    "sessions",
    _TABLES,
    Column("id", String(64), primary_key=True),
    Column("user_id", String(64), nullable=False, index=True),
    Column("started", String(32), nullable=False),
    Column("updated", String(32), nullable=False),
    Column("turns", Integer, nullable=False),
)
_MESSAGES = Table(
    "messages",
    _TABLES,
    Column("session_id", ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("role", String(16), nullable=False),
    Column("text", Text, nullable=False),
    Column("at", String(32), nullable=False),
    Column("data", JSON, nullable=False),
)
_CONNECTIONS = 10  # of the checkpointer


class Role(StrEnum):
    """Who said something."""

    USER = "user"
    ASSISTANT = "assistant"


class UnknownSessionError(ConfigError):
    """There is no such session, or it is another user's: which of both is not told."""


class SessionBusyError(ConfigError):
    """Another turn of a session is under way, in this process or another."""


@dataclass(frozen=True, slots=True)
class Session:
    """What is known of a session."""

    id: str
    user_id: str
    """Whose it is; empty where there is one user only."""
    started: datetime
    """UTC."""
    updated: datetime
    """UTC, when its last turn ended."""
    turns: int
    """Turns that ended well."""


@dataclass(frozen=True, slots=True)
class Message:
    """What a user or the assistant said."""

    number: int
    """From 1, without a gap, in each session."""
    role: Role
    text: str
    at: datetime
    """UTC."""
    data: Mapping[str, Any]
    """More of it, as JSON: the structured answer, for example."""


class Turn:
    """A turn under way: what was said before, and what is said in it."""

    def __init__(self, session: Session, messages: Sequence[Message], now: Now) -> None:
        self.session = session
        self.messages = messages
        """What was said before, oldest first."""
        self.said: list[Message] = []
        """What was said in this turn: stored when it ends well."""
        self._now = now

    def say(self, role: Role, text: str, data: Mapping[str, Any] | None = None) -> None:
        """Add a message; without NUL, which PostgreSQL does not take."""
        number = len(self.messages) + len(self.said) + 1
        text = text.replace("\0", "")
        self.said.append(Message(number, role, text, self._now(), dict(data or {})))


Now = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


class _SqliteCheckpoints(AsyncSqliteSaver):
    """LangGraph's, whose writes come to their end also when they are cancelled.

    All sessions share its one connection: a transaction that is left in the middle would lock the
    file for everybody.
    """

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await finished(super().aput(config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        await finished(super().aput_writes(config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        await finished(super().adelete_thread(thread_id))


class SessionStore:
    """Conversations and the checkpoints of their graphs, in one database.

    Made by `open`. Several processes may use one database at the same time.
    """

    def __init__(
        self, database: Database, checkpointer: BaseCheckpointSaver[str], now: Now
    ) -> None:
        self.checkpointer = checkpointer
        """For `graph.compile`; the `thread_id` is the id of the session."""
        self._database = database
        self._now = now

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        database: Database,
        *,
        now: Now = utc_now,
        state_types: Sequence[type] = (),
    ) -> AsyncIterator[SessionStore]:
        """Open the store of a database, which the caller closes.

        Args:
            database: Where it is.
            now: The clock.
            state_types: Classes that the state of a graph may hold: no other is made from what is
                in the database.

        Raises:
            ConfigError: The database cannot be used.
        """
        allowed = [(each.__module__, each.__qualname__) for each in state_types]
        serde = JsonPlusSerializer(allowed_msgpack_modules=allowed)
        await database.make(_TABLES)
        async with AsyncExitStack() as stack:
            checkpointer: AsyncSqliteSaver | AsyncPostgresSaver
            if database.is_postgres:
                pool = AsyncConnectionPool(
                    database.address,
                    min_size=1,
                    max_size=_CONNECTIONS,
                    open=False,
                    kwargs={"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row},
                )
                await stack.enter_async_context(pool)
                checkpointer = AsyncPostgresSaver(pool, serde=serde)  # type: ignore[arg-type]
            else:
                connection = await stack.enter_async_context(aiosqlite.connect(database.path))
                await connection.execute("PRAGMA busy_timeout = 30000")
                checkpointer = _SqliteCheckpoints(connection, serde=serde)
            async with database.lock("checkpoints", patience=60):
                await checkpointer.setup()
            yield cls(database, checkpointer, now)

    # Sessions

    async def start(self, user_id: str = "", session_id: str | None = None) -> Session:
        """Return a new session, or the one of this user that is there.

        Raises:
            ConfigError: An id is none.
            UnknownSessionError: It is another user's.
        """
        if user_id:
            valid_id(user_id, "a user")
        id_ = valid_id(session_id, "a session") if session_id is not None else new_id()
        async with self._database.begin() as connection:
            if (found := await self._find(connection, id_)) is None:
                at = self._now().isoformat()
                found = Session(id_, user_id, _time(at), _time(at), 0)
                values = {"id": id_, "user_id": user_id, "started": at, "updated": at, "turns": 0}
                await connection.execute(insert(_SESSIONS).values(values))
        return _of_user(found, id_, user_id)

    async def session(self, session_id: str, user_id: str = "") -> Session:
        """Return a session.

        Raises:
            UnknownSessionError: It is not there, or another user's.
        """
        async with self._database.read() as connection:
            return _of_user(await self._find(connection, session_id), session_id, user_id)

    async def sessions(self, user_id: str = "") -> list[Session]:
        """Return all sessions of a user, the one that was used last first."""
        query = select(_SESSIONS).where(_SESSIONS.c.user_id == user_id)
        async with self._database.read() as connection:
            rows = await connection.execute(query.order_by(_SESSIONS.c.updated.desc()))
            return [_session(row) for row in rows]

    async def messages(
        self, session_id: str, user_id: str = "", *, last: int | None = None
    ) -> list[Message]:
        """Return what was said in a session, oldest first.

        Args:
            session_id: Of the session.
            user_id: Whose it is.
            last: How many at most; None: all.

        Raises:
            UnknownSessionError: It is not there, or another user's.
        """
        async with self._database.read() as connection:
            _of_user(await self._find(connection, session_id), session_id, user_id)
            return await _said(connection, session_id, last)

    async def delete(self, session_id: str, user_id: str = "") -> None:
        """Forget a session: its messages and its checkpoints.

        Raises:
            UnknownSessionError: It is not there, or another user's.
            SessionBusyError: A turn of it is under way.
        """
        await self.session(session_id, user_id)
        async with self._alone(session_id, patience=0):
            await self.checkpointer.adelete_thread(session_id)
            async with self._database.begin() as connection:
                await connection.execute(delete(_SESSIONS).where(_SESSIONS.c.id == session_id))

    async def export(self, session_id: str, user_id: str = "") -> dict[str, Any]:
        """Return a session with all its messages as JSON.

        Raises:
            UnknownSessionError: It is not there, or another user's.
        """
        session = await self.session(session_id, user_id)
        messages = await self.messages(session_id, user_id)
        return {
            "session_id": session.id,
            "user_id": session.user_id,
            "started": session.started.isoformat(),
            "updated": session.updated.isoformat(),
            "turns": session.turns,
            "messages": [
                {
                    "number": message.number,
                    "role": message.role.value,
                    "text": message.text,
                    "at": message.at.isoformat(),
                    "data": dict(message.data),
                }
                for message in messages
            ],
        }

    # Turns

    @asynccontextmanager
    async def turn(
        self, session_id: str, user_id: str = "", *, patience: float = 60.0
    ) -> AsyncIterator[Turn]:
        """Hold a session for a turn: of all tasks and processes one at a time.

        What is said is stored together when the block ends well. An error, a cancellation or the
        end of the process leaves nothing of it, and the session free.

        Args:
            session_id: Of the session.
            user_id: Whose it is.
            patience: Seconds to wait for a turn that is under way.

        Raises:
            UnknownSessionError: It is not there, or another user's.
            SessionBusyError: Another turn is under way all the time.
            StorageError: It cannot be stored.
        """
        await self.session(session_id, user_id)  # before waiting: whose it is does not change
        async with self._alone(session_id, patience=patience):
            async with self._database.read() as connection:
                found = await self._find(connection, session_id)
                session = _of_user(found, session_id, user_id)
                turn = Turn(session, await _said(connection, session_id, None), self._now)
            yield turn
            if turn.said:
                await self._store(turn)

    @asynccontextmanager
    async def _alone(self, session_id: str, *, patience: float) -> AsyncIterator[None]:
        try:
            async with self._database.lock(f"session {session_id}", patience=patience):
                yield
        except LockTakenError:
            raise SessionBusyError(
                f"session {session_id} is in use elsewhere; wait for its answer, then try again"
            ) from None

    async def _store(self, turn: Turn) -> None:
        id_ = turn.session.id
        rows = [
            {
                "session_id": id_,
                "number": message.number,
                "role": message.role.value,
                "text": message.text,
                "at": message.at.isoformat(),
                "data": dict(message.data),
            }
            for message in turn.said
        ]
        changed = {"updated": self._now().isoformat(), "turns": turn.session.turns + 1}
        try:
            async with self._database.begin() as connection:
                await connection.execute(insert(_MESSAGES), rows)
                await connection.execute(
                    update(_SESSIONS).where(_SESSIONS.c.id == id_).values(changed)
                )
        except IntegrityError:  # the database lost the lock with the connection that held it
            raise SessionBusyError(
                f"session {id_} went on elsewhere meanwhile; ask once more"
            ) from None

    async def _find(self, connection: AsyncConnection, session_id: str) -> Session | None:
        rows = await connection.execute(select(_SESSIONS).where(_SESSIONS.c.id == session_id))
        row = rows.one_or_none()
        return _session(row) if row is not None else None


async def _said(connection: AsyncConnection, session_id: str, last: int | None) -> list[Message]:
    query = select(_MESSAGES).where(_MESSAGES.c.session_id == session_id)
    query = query.order_by(_MESSAGES.c.number.desc())
    rows = await connection.execute(query if last is None else query.limit(last))
    return [
        Message(row.number, Role(row.role), row.text, _time(row.at), row.data)
        for row in reversed(rows.all())
    ]


def _of_user(found: Session | None, session_id: str, user_id: str) -> Session:
    if found is None or found.user_id != user_id:
        raise UnknownSessionError(f"there is no session {session_id!r}; see which there are")
    return found


def _session(row: Row[Any]) -> Session:
    return Session(row.id, row.user_id, _time(row.started), _time(row.updated), row.turns)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
