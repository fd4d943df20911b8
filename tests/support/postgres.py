"""A PostgreSQL server of its own for the tests, where one is installed."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg

_SERVERS = Path("/usr/lib/postgresql")
_MOST_STARTS = 5  # another program may take the port between its choice and the start
_SETTINGS = "-c fsync=off -c full_page_writes=off -c max_connections=200"


def programs() -> Path | None:
    """Return the folder of initdb and pg_ctl, of the newest version there is."""
    found = shutil.which("initdb")
    folders = sorted(_SERVERS.glob("*/bin"), key=lambda folder: int(folder.parent.name))
    return Path(found).parent if found else folders[-1] if folders else None


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """Run a server on a free port of this machine; give the address of its databases.

    Args:
        folder: An empty one for its files.
    """
    bin_dir = programs()
    assert bin_dir is not None
    as_user: list[str] = []
    if os.getuid() == 0:  # a server refuses to run as root
        pwd.getpwnam("postgres")
        for parent in (folder, *folder.parents):
            if parent.is_relative_to("/tmp") and parent != Path("/tmp"):
                parent.chmod(parent.stat().st_mode | 0o011)
        shutil.chown(folder, "postgres", "postgres")
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    data = folder / "data"

    def call(program: str, *arguments: str, check: bool = True) -> bool:
        command = [*as_user, str(bin_dir / program), *arguments]
        # Into a file: the server keeps what it was given as its output open.
        with (folder / "log").open("ab") as log:
            run = subprocess.run(command, cwd=folder, stdout=log, stderr=log, check=check)
        return run.returncode == 0

    call("initdb", "-D", str(data), "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C")
    for left in reversed(range(_MOST_STARTS)):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        options = f"{_SETTINGS} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -p {port}"
        if call("pg_ctl", "-D", str(data), "-w", "-o", options, "start", check=left == 0):
            break
    try:
        yield f"postgresql://tester@127.0.0.1:{port}"
    finally:
        call("pg_ctl", "-D", str(data), "-w", "-m", "immediate", "stop", check=False)


def new_database(address: str) -> str:
    """Make a database of its own; return its address."""
    name = f"test_{uuid4().hex}"
    with psycopg.connect(f"{address}/postgres", autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return f"{address}/{name}"
