"""Posts summaries to a URL, for programs on other machines."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import random
from collections.abc import Awaitable, Callable
from itertools import count
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass
from uuid import uuid4

import aiohttp

from exaid_core.schema.agent_summary import AgentSummary
from mdagents_llm.errors import BenchError, ConfigError
from mdagents_llm.providers.waits import retry_after_seconds
from mdagents_llm.text import utf8

ID_HEADER = "Webhook-Id"
"""Header with the id of the post, as in Standard Webhooks: the same for all attempts to post a
summary, and different for every other post (https://www.standardwebhooks.com)."""
SIGNATURE_HEADER = "X-EXAID-Signature"
"""Header with `sha256=` and the hexadecimal HMAC-SHA256 of the body, sent if there is a secret."""

_BASE = 0.5  # seconds; the n-th pause is drawn from 0 to base · 2^(n-1) (full jitter)
_CAP = 30.0  # seconds; upper bound on pauses that the endpoint did not request


class WebhookError(BenchError):
    """A summary could not be posted.

    The message names only the host and the cause: a summary is about a patient, and the path of a
    webhook is often its secret.
    """

    def __init__(
        self, message: str, *, may_pass: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.may_pass = may_pass
        """Whether a retry could succeed."""
        self.retry_after = retry_after
        """Seconds that the endpoint asked to wait; None if it did not ask."""


class Webhook:
    """A subscriber of EXAID that posts each summary as JSON: its fields plus `case_id`.

    A post is retried after a status 429 or 5xx and after a lost connection, so the receiver may see
    a summary twice, with the same id in `ID_HEADER`. Redirects are not followed.
    Proxies of the environment (`HTTPS_PROXY`, `NO_PROXY`) are used, as they are when it is created.

        async with EXAID(on_summary=Webhook("https://example.org/summaries")) as exaid:

    Args:
        url: URL to post to; `https:` or `http:`.
        case_id: Case id sent with the summaries.
        secret: Key that signs the body (see `SIGNATURE_HEADER`); None sends no signature.
        max_retries: Maximum number of retries per summary.
        attempt_timeout: Timeout of one attempt in seconds.
        timeout: Timeout of a summary in seconds, all attempts and pauses included.
        rng: Random source of the jitter; None creates one.
        sleep: Async function that waits for a pause in seconds.

    Raises:
        ConfigError: The URL, the secret or the proxy of the environment cannot be used.
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
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._url, self._host = url, _host_of(url, "the URL of a webhook")
        self._proxy = _proxy_of(url, self._host)
        _check_secret(secret)
        self._case_id = case_id
        self._secret = secret
        self._max_retries = max_retries
        self._attempt_timeout = attempt_timeout
        self._timeout = timeout
        self._rng = rng or random.Random()
        self._sleep = sleep

    async def __call__(self, summary: AgentSummary) -> None:
        """Post a summary.

        Raises:
            WebhookError: The summary could not be posted, all retries included.
        """
        fields = {"case_id": self._case_id, **summary.model_dump(mode="json")}
        body = utf8(json.dumps(fields, ensure_ascii=False))
        post_id = str(uuid4())  # not of `rng`, whose seed another process can share
        now = asyncio.get_running_loop().time
        end = now() + self._timeout
        for failures in count(1):
            try:
                await self._attempt(post_id, body, min(self._attempt_timeout, end - now()))
                return
            except WebhookError as error:
                pause = self._pause(error, failures)
                if not error.may_pass or failures > self._max_retries or now() + pause >= end:
                    raise
            await self._sleep(pause)

    async def _attempt(self, post_id: str, body: bytes, seconds: float) -> None:
        headers = {"Content-Type": "application/json", ID_HEADER: post_id}
        if self._secret is not None:
            signature = hmac.new(self._secret.encode(), body, hashlib.sha256).hexdigest()
            headers[SIGNATURE_HEADER] = f"sha256={signature}"
        no_limit = aiohttp.ClientTimeout()  # no aiohttp timeouts, which would be rounded to seconds
        request = aiohttp.request(
            "POST",
            self._url,
            data=body,
            headers=headers,
            allow_redirects=False,
            timeout=no_limit,
            proxy=self._proxy,
        )
        asked, may_pass = None, True
        try:
            async with asyncio.timeout(seconds), request as response:
                status, asked = response.status, retry_after_seconds(response.headers)
        except TimeoutError:
            cause = f"no answer in {round(seconds, 2):g} s"
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # The messages of most of these errors contain the URL.
            cause = str(getattr(error, "os_error", "") or type(error).__name__)
            may_pass = not isinstance(error, ValueError)  # invalid host name or certificate
        else:
            if status < 300:
                return
            cause, may_pass = f"status {status}", status == 429 or status >= 500
            if status < 400:
                cause = f"{status}, a redirect; give the URL that it leads to"
        # Not raised in the `except` block, or its context would be the error with the URL.
        message = f"{self._host}: a summary was not posted: {cause}"
        raise WebhookError(message, may_pass=may_pass, retry_after=asked)

    def _pause(self, error: WebhookError, failures: int) -> float:
        backoff = self._rng.uniform(0, min(_CAP, _BASE * 2 ** min(failures - 1, 10)))
        return max(error.retry_after or 0.0, backoff)


def _host_of(url: object, name: str) -> str:
    if not isinstance(url, str):
        raise ConfigError(f"{name} must be a text")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
        url.encode()
    except ValueError:  # its message may contain a secret part of the URL
        raise ConfigError(
            f"{name} cannot be read: check its host and port, and that it is UTF-8"
        ) from None
    if parts.scheme not in ("https", "http") or not host:
        raise ConfigError(f"{name} must begin with https:// or http:// and a host")
    return f"{host}:{port}" if port else host


def _proxy_of(url: str, host: str) -> str | None:
    """Return the URL of the proxy that the environment names for a URL, as calls of models do."""
    proxies = getproxies()
    proxy = proxies.get(urlsplit(url).scheme) or proxies.get("all")
    if not proxy or proxy_bypass(host):
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    _host_of(proxy, f"the proxy for the webhook at {host} (HTTP_PROXY, HTTPS_PROXY or ALL_PROXY)")
    return proxy


def _check_secret(secret: object) -> None:
    if secret is not None and not (isinstance(secret, str) and secret):
        raise ConfigError("the secret of a webhook must be a text, not empty; None: no signature")
    try:
        str(secret or "").encode()
    except UnicodeEncodeError:  # it contains the secret
        raise ConfigError(
            "the secret of a webhook has half a character (a lone surrogate): give it as UTF-8"
        ) from None
