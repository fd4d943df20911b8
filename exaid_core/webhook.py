"""Posts summaries to a URL, for programs that run elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import Self
from urllib.parse import urlsplit

import aiohttp

from exaid_core.schema.agent_summary import AgentSummary
from infra.errors import BenchError, ConfigError
from infra.files.text import well_formed
from infra.providers.http_errors import retry_after_seconds

SIGNATURE_HEADER = "X-EXAID-Signature"
"""Holds `sha256=` and the HMAC-SHA256 of the body in hexadecimal, if there is a secret."""

_BASE = 0.5  # seconds; the n-th pause is drawn from 0 to base · 2^(n-1) (full jitter)
_CAP = 30.0  # seconds; the longest pause that the endpoint did not ask for

_LOG = logging.getLogger("exaid_core")


class WebhookError(BenchError):
    """A summary was not posted.

    The message names host and cause only: a summary is about a patient, and the path of a webhook
    is often its key.
    """


@dataclass(frozen=True, slots=True)
class _Problem:
    """Why an attempt failed."""

    cause: str
    is_final: bool = False
    """Whether further attempts would fail as well."""
    retry_after: float | None = None
    """Seconds that the endpoint asked to wait."""


def _log(error: Exception) -> None:
    _LOG.warning("%s", error if isinstance(error, WebhookError) else type(error).__name__)


class Webhook:
    """Posts each summary that it is called with as JSON: its fields, and `case_id`.

    A call only queues the summary. One at a time is posted, in order, and again after a status 429
    or 5xx and after a lost connection, so that the receiver may see one twice: `case_id` and
    `source_seqs` tell. No redirect is followed. Belongs to one event loop.

    Args:
        url: Where to; `https:` or `http:`.
        case_id: Of the summaries.
        secret: Signs the body (see `SIGNATURE_HEADER`); None: no signature.
        max_retries: Further attempts for a summary.
        attempt_timeout: Seconds for one attempt.
        timeout: Seconds for a summary, all attempts and pauses included.
        max_waiting: Most summaries that wait; a further one is refused.
        on_error: Told of each summary that was given up; None: a record of the logger `exaid_core`.
        rng: Source of the jitter.
        sleep: Awaited for each pause, in seconds.

    Raises:
        ConfigError: The URL or the secret cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        case_id: str = "",
        secret: str | None = None,
        max_retries: int = 5,
        attempt_timeout: float = 10.0,
        timeout: float = 60.0,
        max_waiting: int = 100,
        on_error: Callable[[Exception], object] | None = None,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._url, self._host = url, _host_of(url)
        if secret == "":
            raise ConfigError("the secret of a webhook must not be empty; None: no signature")
        self._case_id = case_id
        self._secret = secret
        self._max_retries = max_retries
        self._attempt_timeout = attempt_timeout
        self._timeout = timeout
        self._max_waiting = max_waiting
        self._on_error = on_error or _log
        self._rng = rng or random.Random()
        self._sleep = sleep
        self._waiting: deque[bytes] = deque()
        self._poster: asyncio.Task[None] | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    async def __call__(self, summary: AgentSummary) -> None:
        """Queue a summary and return at once.

        Raises:
            WebhookError: Too many wait, or the webhook is closed.
            RuntimeError: Another event loop is at work for it.
        """
        self._check_loop()
        if self._closed:
            raise WebhookError(f"the webhook to {self._host} is closed")
        if len(self._waiting) >= self._max_waiting:
            raise WebhookError(f"{self._host}: {self._max_waiting} summaries wait for it already")
        fields = {"case_id": self._case_id, **summary.model_dump(mode="json")}
        self._waiting.append(well_formed(json.dumps(fields, ensure_ascii=False)).encode())
        self._start()

    async def aclose(self, seconds: float | None = 10.0) -> None:
        """Post what waits within a time, and take no more.

        Args:
            seconds: After that the rest is given up. None: until each was posted or given up.

        Raises:
            RuntimeError: Another event loop is at work for it.
        """
        self._check_loop()
        self._closed = True
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._drain()
        finally:
            if self._poster is not None:
                self._poster.cancel()
                await asyncio.wait({self._poster})
            if left := len(self._waiting):
                self._waiting.clear()
                self._tell(WebhookError(f"{self._host}: closed before {left} were posted"))

    async def _drain(self) -> None:
        while self._waiting or not (self._poster is None or self._poster.done()):
            # Again if it was cancelled, as all tasks are when a program is interrupted.
            await asyncio.wait({self._start()})

    def _check_loop(self) -> None:
        if self._poster is None or self._poster.done():
            return
        if self._poster.get_loop() is not asyncio.get_running_loop():
            raise RuntimeError(f"another event loop posts to {self._host} for this webhook")

    def _start(self) -> asyncio.Task[None]:
        if self._poster is None or self._poster.done():
            self._poster = asyncio.create_task(self._post_all())
        return self._poster

    async def _post_all(self) -> None:
        try:
            while self._waiting:  # also what came while the session was closed
                async with aiohttp.ClientSession() as session:
                    while self._waiting:
                        try:
                            await self._post(session, self._waiting[0])
                        except Exception as error:  # noqa: BLE001 - the next must have its turn
                            self._tell(error)
                        # Not before: one that is cancelled under way is posted by the next start.
                        self._waiting.popleft()
        except asyncio.CancelledError:  # there may be no next start
            _LOG.warning("%s: stopped with %d summaries to post", self._host, len(self._waiting))
            raise

    async def _post(self, session: aiohttp.ClientSession, body: bytes) -> None:
        problem = _Problem("")
        try:
            async with asyncio.timeout(self._timeout) as limit:
                for failures in count(1):
                    found = await self._attempt(session, body)
                    if found is None:
                        return
                    problem, pause = found, self._pause(found, failures)
                    ends = limit.when() or 0.0
                    is_over = asyncio.get_running_loop().time() + pause >= ends
                    if problem.is_final or failures > self._max_retries or is_over:
                        break
                    await self._sleep(pause)
        except TimeoutError:
            problem = problem if problem.cause else _Problem(f"no answer in {self._timeout} s")
        raise WebhookError(f"{self._host}: a summary was not posted: {problem.cause}")

    async def _attempt(self, session: aiohttp.ClientSession, body: bytes) -> _Problem | None:
        """Post once; return None if the endpoint took it."""
        headers = {"Content-Type": "application/json"}
        if self._secret is not None:
            signature = hmac.new(self._secret.encode(), body, hashlib.sha256).hexdigest()
            headers[SIGNATURE_HEADER] = f"sha256={signature}"
        try:
            async with session.post(
                self._url,
                data=body,
                headers=headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=self._attempt_timeout),
            ) as response:
                status, asked = response.status, retry_after_seconds(response.headers)
        except TimeoutError:
            return _Problem(f"no answer in {self._attempt_timeout} s")
        except (aiohttp.ClientError, OSError) as error:
            # The words of most of these errors hold the URL.
            told = getattr(error, "os_error", None)
            return _Problem(str(told) if told else type(error).__name__)
        if status < 300:
            return None
        if status < 400:
            return _Problem(f"{status}, a redirect; give the URL that it leads to", is_final=True)
        return _Problem(f"status {status}", status != 429 and status < 500, asked)

    def _pause(self, problem: _Problem, failures: int) -> float:
        if problem.retry_after is not None:
            return problem.retry_after
        return self._rng.uniform(0, min(_CAP, _BASE * 2 ** min(failures - 1, 10)))

    def _tell(self, error: Exception) -> None:
        try:
            self._on_error(error)
        except Exception as broken:  # noqa: BLE001 - it is the caller's
            _LOG.warning("on_error of a webhook raised %s", type(broken).__name__)


def _host_of(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:  # its words may hold a part of the URL that is secret
        raise ConfigError("the URL of a webhook cannot be read: check its host and port") from None
    if parts.scheme not in ("https", "http") or not host:
        raise ConfigError("the URL of a webhook must begin with https:// or http:// and a host")
    return f"{host}:{port}" if port else host
