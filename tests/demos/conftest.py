"""Databases of both kinds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import postgres

if TYPE_CHECKING:
    from demos.toolkit.database import Database


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a PostgreSQL server, made once."""
    if postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    with postgres.server(tmp_path_factory.mktemp("postgres")) as address:
        yield address


@pytest.fixture
async def database(address: str) -> AsyncIterator[Database]:
    """A new database, of each kind."""
    from demos.toolkit.database import Database  # needs the group `demos`

    database = Database(address)
    yield database
    await database.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a new database, of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "sessions.sqlite")
    return postgres.new_database(request.getfixturevalue("postgres_server"))
