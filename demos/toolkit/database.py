"""The database of the companion systems: a SQLite file, or PostgreSQL by one setting."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from pathlib import Path

import filelock
from sqlalchemy import URL, ExceptionContext, MetaData, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import CreateIndex, CreateTable

from mdagents_llm.errors import ConfigError, StorageError
from mdagents_llm.files.private import make_private_file, make_private_folder, tighten

SETTING = "DATABASE_URL"

_BUSY = 30_000  # ms that a writer waits for another writer
_ASKED_EVERY = 0.02  # seconds between attempts to take a lock
_CONNECTIONS = 10
_SCHEMES = ("postgres", "postgresql", "postgresql+psycopg")
_GOOD_NAME = "postgresql://USER:PASSWORD@HOST:5432/NAME"


class LockTakenError(Exception):
    """The lock is held by another task, thread or process."""


class Database:
    """A SQLite file in WAL mode or a PostgreSQL database.

    Args:
        address: `postgresql://…`, or the path of a SQLite file. The file and its folder are
            created if missing, and only their owner can read the file.

    Raises:
        ConfigError: The address is not valid, or the file cannot be written.
    """

    def __init__(self, address: str | Path) -> None:
        self.url = _url_of(address)
        self.is_postgres = self.url.drivername.startswith("postgresql")
        self._engine: AsyncEngine | None = None
        self._locks: AsyncEngine | None = None

    @property
    def path(self) -> Path:
        """Path of the SQLite file."""
        return Path(self.url.database or "")

    @property
    def address(self) -> str:
        """Connection string for psycopg. It contains the password: never print it."""
        return self.url.set(drivername="postgresql").render_as_string(hide_password=False)

    @property
    def shown(self) -> str:
        """Address without the password, for messages."""
        return self.url.render_as_string() if self.is_postgres else str(self.path)

    @property
    def engine(self) -> AsyncEngine:
        """Connection pool of this process, created on first use; it belongs to one event loop."""
        if self._engine is None:
            if self.is_postgres:
                self._engine = create_async_engine(
                    self.url, pool_size=_CONNECTIONS, max_overflow=0, pool_pre_ping=True
                )
            else:
                self._engine = create_async_engine(self.url, pool_size=_CONNECTIONS)
                event.listen(self._engine.sync_engine, "connect", _set_up_sqlite)
                event.listen(self._engine.sync_engine, "handle_error", _keep_connection)
        return self._engine

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncConnection]:
        """Open a transaction that commits when the block succeeds and rolls back otherwise.

        Raises:
            ConfigError: The database cannot be reached or refuses the user.
            StorageError: The database cannot write, for example because its disk is full.
        """
        with self.told():
            async with self.engine.begin() as connection:
                if not self.is_postgres:
                    # Lock now, not at the first write: SQLite cannot wait after a read.
                    await connection.exec_driver_sql("BEGIN IMMEDIATE")
                yield connection

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """Open a connection for reading; it raises the same errors as `begin`."""
        with self.told():
            async with self.engine.connect() as connection:
                yield connection

    @contextmanager
    def told(self) -> Iterator[None]:
        """Convert driver errors into messages for the user, without the password."""
        try:
            yield
        except OperationalError as error:
            raise self._trouble(str(error.orig)) from error
        except DBAPIError as error:
            if isinstance(error.orig, sqlite3.DatabaseError) and "not a database" in str(error):
                raise ConfigError(
                    f"{self.shown} is no SQLite database; name another file"
                ) from None
            raise

    def _trouble(self, said: str) -> ConfigError | StorageError:
        line = " ".join(said.split())
        if self.url.password:
            line = line.replace(str(self.url.password), "***")
        if any(sign in line for sign in ("full", "No space", "readonly", "I/O error")):
            return StorageError(f"{self.shown} cannot be written: {line}")
        what = f"{SETTING}: " if self.is_postgres else ""
        return ConfigError(f"{what}cannot use {self.shown}: {line}")

    async def make(self, metadata: MetaData, extra: Mapping[str, str] | None = None) -> None:
        """Create missing tables and indexes; several processes may do so at the same time.

        Args:
            metadata: Tables and indexes to create.
            extra: Dialect (`sqlite` or `postgresql`) -> additional statement.
        """
        async with self.lock("schema", patience=60), self.begin() as connection:
            for table in metadata.sorted_tables:
                await connection.execute(CreateTable(table, if_not_exists=True))
                for index in table.indexes:
                    await connection.execute(CreateIndex(index, if_not_exists=True))
            statement = (extra or {}).get(connection.dialect.name)
            if statement:
                await connection.exec_driver_sql(statement)

    @asynccontextmanager
    async def lock(self, name: str, *, patience: float) -> AsyncIterator[None]:
        """Hold an exclusive lock across tasks, threads and processes; it ends with its process.

        Args:
            name: Name of the locked resource.
            patience: Seconds to wait for the lock.

        Raises:
            LockTakenError: The lock was not released in time.
        """
        held = self._locked_row(name) if self.is_postgres else self._locked_file(name)
        until = time.monotonic() + patience
        while True:
            async with held() as is_mine:
                if is_mine:
                    yield
                    return
            if time.monotonic() >= until:
                raise LockTakenError(name)
            await asyncio.sleep(_ASKED_EVERY)

    def _locked_file(self, name: str) -> Callable[[], AbstractAsyncContextManager[bool]]:
        file = self.path.parent / f"{self.path.name}.locks" / _digest(name).hex()

        @asynccontextmanager
        async def attempt() -> AsyncIterator[bool]:
            lock = filelock.FileLock(file, blocking=False, thread_local=False)
            try:
                make_private_folder(file.parent)
                lock.acquire()
            except filelock.Timeout:
                yield False
                return
            except OSError as error:
                raise ConfigError(f"cannot write {file.parent}: {error.strerror}") from error
            try:
                yield True
            finally:
                lock.release()

        return attempt

    def _locked_row(self, name: str) -> Callable[[], AbstractAsyncContextManager[bool]]:
        number = int.from_bytes(_digest(name)[:8], signed=True)

        @asynccontextmanager
        async def attempt() -> AsyncIterator[bool]:
            # The lock lives as long as its own connection. The query never blocks in the database:
            # a concurrent index build would wait for it, which would be a deadlock.
            if self._locks is None:
                self._locks = create_async_engine(
                    self.url, poolclass=NullPool, isolation_level="AUTOCOMMIT"
                )
            with self.told():
                async with self._locks.connect() as connection:
                    taken = await connection.scalar(
                        text("SELECT pg_try_advisory_lock(:number)"), {"number": number}
                    )
                    yield bool(taken)

        return attempt

    async def close(self) -> None:
        """Close all connections."""
        if self._engine is not None:
            await self._engine.dispose()
            self._engine = None


def _url_of(address: str | Path) -> URL:
    if isinstance(address, str) and "://" in address:
        try:
            url = make_url(address)
        except (ArgumentError, ValueError):
            raise ConfigError(f"{SETTING} is no address; it looks like {_GOOD_NAME}") from None
        if url.drivername not in _SCHEMES:
            raise ConfigError(
                f"{SETTING} begins with {url.drivername}://; it looks like {_GOOD_NAME}"
            )
        return url.set(drivername="postgresql+psycopg")
    path = Path(address).absolute()
    try:
        make_private_folder(path.parent)
        make_private_file(path)  # SQLite gives its -wal and -shm files the same mode
        for beside in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                tighten(path.with_name(path.name + beside))
    except OSError as error:
        raise ConfigError(f"cannot make {error.filename}: {error.strerror}") from error
    return URL.create("sqlite+aiosqlite", database=str(path))


def _set_up_sqlite(connection: sqlite3.Connection, record: object) -> None:
    """Set WAL mode and a busy timeout, and leave the start of transactions to explicit BEGINs."""
    connection.isolation_level = None
    cursor = connection.cursor()
    for setting in ("journal_mode = WAL", f"busy_timeout = {_BUSY}", "foreign_keys = ON"):
        cursor.execute(f"PRAGMA {setting}")
    cursor.close()


def _keep_connection(context: ExceptionContext) -> None:
    """Keep a connection whose use was cancelled, so that it is rolled back and not discarded.

    The connection's thread finishes the statement first. A discarded connection whose cursor is
    still referenced would keep the lock on the file until garbage collection.
    """
    if isinstance(context.original_exception, asyncio.CancelledError):
        context.is_disconnect = False


def _digest(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()[:16]
