"""Sessions of an assistant: their owners, messages and graph checkpoints."""

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
_CONNECTIONS = 10  # maximum pool size of the checkpointer


class Role(StrEnum):
    """Author of a message."""

    USER = "user"
    ASSISTANT = "assistant"


class UnknownSessionError(ConfigError):
    """The session does not exist or belongs to another user; the message does not reveal which."""


class SessionBusyError(ConfigError):
    """Another turn of the session is in progress, in this process or another."""


@dataclass(frozen=True, slots=True)
class Session:
    """Metadata of a session."""

    id: str
    user_id: str
    """Owner of the session; empty in a single-user system."""
    started: datetime
    """Start of the session in UTC."""
    updated: datetime
    """End of the last successful turn in UTC."""
    turns: int
    """Number of successful turns."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message of the user or the assistant."""

    number: int
    """Number of the message in its session, consecutive from 1."""
    role: Role
    text: str
    at: datetime
    """Time of the message in UTC."""
    data: Mapping[str, Any]
    """Additional JSON data, such as the structured answer."""


class Turn:
    """A turn in progress, with the earlier messages of its session."""

    def __init__(self, session: Session, messages: Sequence[Message], now: Now) -> None:
        self.session = session
        self.messages = messages
        """Earlier messages of the session, oldest first."""
        self.said: list[Message] = []
        """New messages of this turn, stored when it succeeds, or earlier by `SessionStore.keep`."""
        self.kept = 0
        """Number of new messages that are already stored."""
        self._now = now

    def say(self, role: Role, text: str, data: Mapping[str, Any] | None = None) -> None:
        """Add a message. NUL characters are removed, because PostgreSQL does not accept them."""
        number = len(self.messages) + len(self.said) + 1
        text = text.replace("\0", "")
        self.said.append(Message(number, role, text, self._now(), dict(data or {})))

    def correct(self, text: str, data: Mapping[str, Any] | None = None) -> None:
        """Replace the last new message of this turn, also if it is already stored."""
        self.say(self.said.pop().role, text, data)


Now = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


class _SqliteCheckpoints(AsyncSqliteSaver):
    """SQLite checkpointer of LangGraph that completes its writes even when it is cancelled.

    All sessions share its single connection, so an unfinished transaction would lock the file for
    all of them.
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

    Create a store with `open`. Several processes may use one database at the same time.
    """

    def __init__(
        self, database: Database, checkpointer: BaseCheckpointSaver[str], now: Now
    ) -> None:
        self.checkpointer = checkpointer
        """Checkpointer for `graph.compile`; the `thread_id` is the session id."""
        self._database = database
        self._now = now

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        database: Database,
        *,
        now: Now = utc_now,
    ) -> AsyncIterator[SessionStore]:
        """Open the session store of a database. The caller closes the database.

        Args:
            database: Database that stores the sessions.
            now: Clock in UTC.

        Raises:
            ConfigError: The database cannot be used.
        """
        serde = JsonPlusSerializer(allowed_msgpack_modules=[])  # no class is deserialized
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
        """Return the user's session with this id, or a new session if it does not exist.

        Raises:
            ConfigError: An id is not valid.
            UnknownSessionError: The session belongs to another user.
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
            UnknownSessionError: The session does not exist or belongs to another user.
        """
        async with self._database.read() as connection:
            return _of_user(await self._find(connection, session_id), session_id, user_id)

    async def sessions(self, user_id: str = "") -> list[Session]:
        """Return all sessions of a user, most recently updated first."""
        query = select(_SESSIONS).where(_SESSIONS.c.user_id == user_id)
        async with self._database.read() as connection:
            rows = await connection.execute(query.order_by(_SESSIONS.c.updated.desc()))
            return [_session(row) for row in rows]

    async def messages(
        self, session_id: str, user_id: str = "", *, last: int | None = None
    ) -> list[Message]:
        """Return the messages of a session, oldest first.

        Args:
            session_id: Id of the session.
            user_id: Id of the session's owner.
            last: Maximum number of messages, counted from the latest; None returns all.

        Raises:
            UnknownSessionError: The session does not exist or belongs to another user.
        """
        async with self._database.read() as connection:
            _of_user(await self._find(connection, session_id), session_id, user_id)
            return await _said(connection, session_id, last)

    async def delete(self, session_id: str, user_id: str = "") -> None:
        """Delete a session with its messages and checkpoints.

        Raises:
            UnknownSessionError: The session does not exist or belongs to another user.
            SessionBusyError: A turn of the session is in progress.
        """
        await self.session(session_id, user_id)
        async with self._alone(session_id, patience=0):
            await self.checkpointer.adelete_thread(session_id)
            async with self._database.begin() as connection:
                await connection.execute(delete(_SESSIONS).where(_SESSIONS.c.id == session_id))

    async def export(self, session_id: str, user_id: str = "") -> dict[str, Any]:
        """Return a session with all its messages as JSON-compatible data.

        Raises:
            UnknownSessionError: The session does not exist or belongs to another user.
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
        """Run a turn with exclusive access to its session, across all tasks and processes.

        The new messages are stored together when the block succeeds. After an error, a cancellation
        or the end of the process, only those that `keep` has stored remain, and the session is
        free.

        Args:
            session_id: Id of the session.
            user_id: Id of the session's owner.
            patience: Seconds to wait for another turn in progress.

        Raises:
            UnknownSessionError: The session does not exist or belongs to another user.
            SessionBusyError: Another turn did not end in time.
            StorageError: The messages cannot be stored.
        """
        await self.session(session_id, user_id)  # fail before waiting: the owner never changes
        async with self._alone(session_id, patience=patience):
            async with self._database.read() as connection:
                found = await self._find(connection, session_id)
                session = _of_user(found, session_id, user_id)
                turn = Turn(session, await _said(connection, session_id, None), self._now)
            yield turn
            if turn.said:
                await self._store(turn)

    async def keep(self, turn: Turn) -> None:
        """Store the new messages of a turn already now, whatever becomes of it.

        Raises:
            SessionBusyError: Another turn of the session wrote meanwhile.
            StorageError: The messages cannot be stored.
        """
        await self._store(turn)
        turn.kept = len(turn.said)

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
                for row in rows[: turn.kept]:
                    own = (_MESSAGES.c.session_id == id_) & (_MESSAGES.c.number == row["number"])
                    await connection.execute(update(_MESSAGES).where(own).values(row))
                if rows[turn.kept :]:
                    await connection.execute(insert(_MESSAGES), rows[turn.kept :])
                await connection.execute(
                    update(_SESSIONS).where(_SESSIONS.c.id == id_).values(changed)
                )
        except IntegrityError:  # the lock's connection was lost, and another turn wrote meanwhile
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
