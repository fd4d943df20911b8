"""Workers on a Ray cluster. The only module that imports Ray, which is an extra."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from infra.config import Environment
from infra.errors import ClusterError, ConfigError
from infra.files.text import printable
from mdagents.runs.engines.cluster import Post, WorkerLost
from mdagents.runs.engines.messages import Start, packed
from mdagents.runs.engines.worker import Worker

if TYPE_CHECKING:
    from types import ModuleType

INSTALL = "python -m pip install -r requirements-ray.txt"
_LOCAL_WORKERS = 2
_OBJECT_STORE = 80 * 1024 * 1024  # bytes; the least that Ray accepts is 75 MiB
_SECONDS_TO_CONNECT = 5.0
_SECONDS_TO_CLOSE = 2.0
_AT_ONCE = 4  # calls of a worker: an exchange, and those that end it
_AUTO = "auto"
_OF_A_MACHINE = re.compile(r"\bnode\b[^.]*\b(died|dead|removed|terminated)", re.IGNORECASE)
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # sends nothing to anybody
    "RAY_DEDUP_LOGS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # what Ray warns of otherwise
}


@asynccontextmanager
async def ray_workers(
    address: str, count: int | None, environment: Environment
) -> AsyncIterator[tuple[Callable[[], Awaitable[Post]], int]]:
    """Connect with a Ray cluster, or start one of this machine.

    Args:
        address: `HOST:PORT` of its head, `auto` for the one that this machine is part of; empty to
            start one, which ends with the context.
        count: Of the workers; None: one for each CPU of the cluster, or 2 of this machine.
        environment: Keys and endpoints.

    Yields:
        (what starts a worker, number of workers)

    Raises:
        ConfigError: Ray is not installed, or there is no such cluster.
    """
    ray = _ray()
    was_connected = ray.is_initialized()
    if not was_connected:
        await _connect(ray, address, count)
    try:
        cpus = int(ray.cluster_resources().get("CPU", 1))
        size = count or (cpus if address else _LOCAL_WORKERS)
        start = packed(Start(environment))

        async def hire() -> Post:
            actor = ray.remote(Worker).options(
                num_cpus=1,
                max_restarts=0,
                max_task_retries=0,
                max_concurrency=_AT_ONCE,
                scheduling_strategy="SPREAD",
            )
            return _RayPost(ray, actor.remote(start))

        yield hire, size
    finally:
        if not was_connected:
            await asyncio.to_thread(ray.shutdown)


def _ray() -> ModuleType:
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise ConfigError(f"--engine ray needs Ray: {INSTALL}") from None
    return ray


async def _connect(ray: ModuleType, address: str, count: int | None) -> None:
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "CRITICAL"}
    if address:
        _check_address(address)
        where: dict[str, Any] = {"address": address}
    else:
        where = {
            "address": "local",
            "num_cpus": count or _LOCAL_WORKERS,
            "include_dashboard": False,
            "object_store_memory": _OBJECT_STORE,
            "_node_ip_address": "127.0.0.1",  # nobody else is to reach it
        }
    try:
        await asyncio.to_thread(ray.init, **where, **quiet)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise ConfigError(_in_words(error, address)) from None


def _check_address(address: str) -> None:
    if address == _AUTO:
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "/" in host:
        raise ConfigError(
            f"--ray-address {address}: write HOST:PORT of the head of the cluster, or {_AUTO} on a "
            "machine that is part of it"
        )
    try:
        socket.create_connection((host, int(port)), _SECONDS_TO_CONNECT).close()
    except OSError as error:
        raise ConfigError(
            f"--ray-address {address}: nothing answers there ({error.strerror or error}); start "
            "the cluster (ray start --head), or correct the address"
        ) from None


def _in_words(error: Exception, address: str) -> str:
    text = printable(" ".join(str(error).split()))
    if "Version mismatch" in text:
        versions = re.findall(r"Ray: (\S+) Python: (\S+)", text)
        said = [f"Ray {ray.rstrip('.,')}, Python {python.rstrip('.,')}" for ray, python in versions]
        there, here = (*said, "another", "another")[:2]
        return (
            f"--ray-address {address}: the cluster has {there}, this program {here}; both must be "
            "the same"
        )
    if address == _AUTO:
        return (
            f"--ray-address {_AUTO}: this machine is part of no Ray cluster; start one (ray start "
            "--head), or leave --ray-address out"
        )
    where = f"--ray-address {address}" if address else "a Ray cluster of this machine"
    return f"{where} cannot be used: {text[:200]}"


class _RayPost:
    """A worker that is an actor; see `Post`."""

    def __init__(self, ray: ModuleType, actor: Any) -> None:
        self._ray = ray
        self._actor = actor

    async def greet(self) -> bytes:
        return await self._get(self._actor.greet.remote())

    async def exchange(self, message: bytes) -> bytes:
        return await self._get(self._actor.exchange.remote(message))

    async def close(self) -> None:
        """See `Post`."""
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_SECONDS_TO_CLOSE):
                await self._actor.close.remote()
        with contextlib.suppress(Exception):
            self._ray.kill(self._actor)

    async def _get(self, reply: Any) -> bytes:
        errors = self._ray.exceptions
        try:
            content: bytes = await reply
        except errors.RayActorError as error:
            raise _as_lost(error) from None
        except errors.RayTaskError as error:
            raise ClusterError(f"a worker failed: {_last_line(error)}") from error
        except errors.RayError as error:
            raise ClusterError(f"the Ray cluster is gone: {_last_line(error)}") from None
        return content


def _as_lost(error: Exception) -> Exception:
    text = printable(" ".join(str(error).split()))
    if missing := re.search(r"ModuleNotFoundError: No module named '?([\w.]+)", text):
        return ClusterError(
            f"a machine of the cluster has no {missing[1]}: install this program there (pip "
            "install), or let Ray send it (ray job submit --working-dir .)"
        )
    if "creation task" in text and "Error:" in text:
        return ClusterError(f"a worker cannot be started: {_last_line(error)}")
    is_machine = re.search(
        r"\bnode\b[^.]*\b(died|dead|removed|terminated|failed)", text, re.IGNORECASE
    )
    return WorkerLost(_last_line(error), by_itself=not is_machine)


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return printable(lines[-1] if lines else type(error).__name__)[:200]
