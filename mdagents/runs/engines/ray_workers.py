"""Workers on a Ray cluster. Only this module imports Ray, which is an extra."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from mdagents.runs.engines.cluster import Hire, Post, WorkerLost
from mdagents.runs.engines.messages import Start, packed
from mdagents.runs.engines.worker import Worker
from mdagents_llm.config import Environment
from mdagents_llm.errors import ClusterError, ConfigError
from mdagents_llm.extras import needs_extra
from mdagents_llm.finishing import finished
from mdagents_llm.text import printable

if TYPE_CHECKING:
    from types import ModuleType

T = TypeVar("T")

_SECONDS_TO_CONNECT = 5.0
_SECONDS_TO_CLOSE = 2.0
_SECONDS_TO_ANSWER = 10.0
_SECONDS_TO_SHUT_DOWN = 15.0
_BETWEEN_LOOKS = 5.0  # seconds between checks of the cluster while waiting for a worker
_AT_ONCE = 4  # concurrent calls of a worker: an exchange, and those that end it
_AUTO = "auto"
_TOKEN = Path.home() / ".ray" / "auth_token"
_TOKEN_NAMES = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # sends nothing to anybody
    # Otherwise Ray ends this process without a message to the user when it loses the cluster.
    "RAY_gcs_rpc_server_reconnect_timeout_s": "3600",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # silences a warning of Ray
}


@asynccontextmanager
async def ray_workers(
    address: str, processes: int | Literal["auto"] | None, environment: Environment
) -> AsyncIterator[tuple[Hire, int]]:
    """Connect to a Ray cluster.

    Args:
        address: `HOST:PORT` of the head node, or `auto` for the cluster that this machine is part
            of.
        processes: Number of workers; None or `auto`: one for each CPU of the cluster.
        environment: API keys and endpoints.

    Yields:
        (function that starts a worker, number of workers).

    Raises:
        ConfigError: Ray is not installed, or the cluster does not exist.
    """
    ray = load_ray()
    was_connected = ray.is_initialized()
    try:
        if not was_connected:
            await _connect(ray, address)
        cpus = int(ray.cluster_resources().get("CPU", 1))
        size = processes if isinstance(processes, int) else cpus
        start = packed(Start(environment))

        actor = ray.remote(Worker).options(
            num_cpus=1,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=_AT_ONCE,
            scheduling_strategy="SPREAD",
        )

        async def hire() -> Post:
            return _RayPost(ray, await _asked(partial(actor.remote, start)))

        yield hire, size
    finally:
        if not was_connected:
            await finished(_shut_down(ray))


async def _shut_down(ray: ModuleType) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_SECONDS_TO_SHUT_DOWN):
            await _in_a_daemon(ray.shutdown)


async def _in_a_daemon(work: Callable[[], T]) -> T:
    """Return the result of `work`, called in a thread that does not keep the program from exiting.

    Without its cluster, Ray never returns from some calls.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(set_it: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop may be closed
            loop.call_soon_threadsafe(lambda: None if done.done() else set_it())

    def run() -> None:
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - it is raised where it is awaited
            tell(partial(done.set_exception, error))
        else:
            tell(partial(done.set_result, result))

    threading.Thread(target=run, daemon=True).start()
    return await done


async def _asked(work: Callable[[], T]) -> T:
    """Return the result of a call for which Ray needs its cluster.

    Raises:
        ClusterError: The cluster did not answer in time.
    """
    try:
        async with asyncio.timeout(_SECONDS_TO_ANSWER):
            return await _in_a_daemon(work)
    except Exception as error:
        raise ClusterError(f"the Ray cluster is gone: {_last_line(error)}") from error


async def _look_after_the_cluster(ray: ModuleType) -> None:
    nodes = await _asked(ray.nodes)
    if not any(node["Alive"] for node in nodes):
        raise ClusterError("the Ray cluster is gone: none of its machines is left")


def load_ray() -> ModuleType:
    """Return the module Ray, with its settings for this program.

    Raises:
        ConfigError: Ray is not installed.
    """
    settings = dict(_SETTINGS)
    if _TOKEN.is_file() or any(name in os.environ for name in _TOKEN_NAMES):
        settings["RAY_AUTH_MODE"] = "token"  # Ray sets it on its own only for `auto`
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    with needs_extra("ray", "--ray-address"):
        import ray
        import ray.exceptions
    return ray


async def _connect(ray: ModuleType, address: str) -> None:
    _check_address(address)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "CRITICAL"}
    try:
        await finished(asyncio.to_thread(ray.init, address=address, **quiet))
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
    return (
        f"--ray-address {address}: something answers there, but no Ray cluster that lets this "
        "program in; correct the address, or set RAY_AUTH_TOKEN to what `ray get-auth-token` says "
        "on its head"
    )


class _RayPost:
    """A worker that is a Ray actor; implements `Post`."""

    def __init__(self, ray: ModuleType, actor: Any) -> None:
        self._ray = ray
        self._actor = actor

    async def greet(self) -> bytes:
        """Return the worker's packed `Greeting`; wait for a free CPU while the cluster exists."""
        greeting = asyncio.ensure_future(self._get(self._actor.greet.remote()))
        try:
            while not greeting.done():
                await asyncio.wait([greeting], timeout=_BETWEEN_LOOKS)
                if not greeting.done():
                    await _look_after_the_cluster(self._ray)
            return greeting.result()
        finally:
            greeting.cancel()

    async def exchange(self, message: bytes) -> bytes:
        """Send packed `Orders` and return the packed `Report`."""
        return await self._get(self._actor.exchange.remote(message))

    async def close(self) -> None:
        """Stop the worker if it is still alive."""
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_SECONDS_TO_CLOSE):
                await self._actor.close.remote()
        with contextlib.suppress(ClusterError):
            await _asked(partial(self._ray.kill, self._actor))

    async def _get(self, reply: Any) -> bytes:
        errors = self._ray.exceptions
        try:
            content: bytes = await reply
        except errors.RayActorError as error:
            raise as_lost(error) from None
        except errors.RayTaskError as error:
            raise ClusterError(f"a worker failed: {_last_line(error)}") from error
        except errors.RayError as error:
            raise ClusterError(f"the Ray cluster is gone: {_last_line(error)}") from None
        return content


def as_lost(error: Exception) -> WorkerLost | ClusterError:
    """Classify Ray's report of a dead actor: a lost worker, or an unusable cluster."""
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
