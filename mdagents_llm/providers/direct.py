"""Requests whose URL and headers an SDK makes, sent without the request models of the SDK.

These models take most of the CPU time that a call costs in the SDK
(docs/measurements/index.md).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Protocol

import httpx2

from mdagents_llm.providers.picture_body import Pieces, joined, pieces
from mdagents_llm.providers.pool import Pool
from mdagents_llm.providers.sending import ENCODINGS

_OF_THE_ENCODED_BODY = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""Names of headers that do not apply to a decoded body."""


class Response(Protocol):
    """A response whose body is still to be read; `httpx2.Response` is one."""

    @property
    def status_code(self) -> int:
        """HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers; their names have any case."""
        ...

    @property
    def stream(self) -> Any:
        """Decompressed body, which can be iterated over asynchronously."""
        ...

    async def aclose(self) -> None:
        """Close the response."""


class DirectPosts:
    """Posts the requests of one model.

    The SDK decides URL and headers, once. The requests go over a pool if there is one, and over the
    transport of the SDK client where there is none, the user has set a proxy, or the pool cannot
    read the first head: that transport also takes a `Content-Length` beside chunks, for example.

    Args:
        sdk: Package of the client, for its exceptions.
        client: SDK client of the endpoint.
        path: Path of the requests, relative to the base URL.
        model: The endpoint's name for the model, which is part of Azure's URLs.
        pool: Connections to the endpoint; None for those of the client.
    """

    def __init__(
        self, sdk: ModuleType, client: Any, path: str, model: str, pool: Pool | None = None
    ) -> None:
        self._sdk = sdk
        self._client = client
        self._path = path
        self._model = model
        self._pool = pool
        self._is_read = False  # a head, by the pool
        self._prepared: httpx2.Request | None = None
        self._headers: dict[str, str] = {}
        self._transport: httpx2.AsyncBaseTransport | None = None

    async def open(self, body: Mapping[str, object]) -> Response:
        """Post a request; the caller reads the response, and closes it.

        Raises:
            APIStatusError: The status of the response is not 2xx; the response is read and closed.
            APIConnectionError: There is no response; the cause is an `httpx2` error.
            ProviderError: The response is refused, as by `sending`.
        """
        if self._prepared is None:
            self._prepared = await self._make_request()
        prepared = self._prepared
        with self._errors():
            response = await self._post(prepared, pieces(body))
        if httpx2.codes.is_success(response.status_code):
            return response
        content = await self.read(response)
        headers = {
            name: value
            for name, value in response.headers.items()
            if name.lower() not in _OF_THE_ENCODED_BODY
        }
        said = httpx2.Response(
            response.status_code, headers=headers, content=content, request=prepared
        )
        raise self._client._make_status_error_from_response(said)  # noqa: SLF001

    async def read(self, response: Response) -> bytes:
        """Return the content of a response, and close it.

        Raises:
            APIConnectionError: The response breaks off.
            ProviderError: The response is too large, or in an unknown encoding.
        """
        try:
            return b"".join([piece async for piece in self.pieces(response)])
        finally:
            await response.aclose()

    async def pieces(self, response: Response) -> AsyncIterator[bytes]:
        """Yield the content of a response as it arrives, with the errors of `read`."""
        with self._errors():
            async for piece in response.stream:
                yield piece

    async def _post(self, prepared: httpx2.Request, content: Pieces) -> Response:
        if self._pool is not None:
            try:
                arrived = await self._pool.post(prepared.url, self._headers, content)
            except httpx2.RemoteProtocolError:
                if not self._is_read:
                    self._pool = None
                raise
            self._is_read = True
            return arrived
        assert self._transport is not None, "set with the prepared request"
        request = httpx2.Request(
            prepared.method,
            prepared.url,
            headers=self._headers,
            content=joined(content),
            extensions=prepared.extensions,
        )
        return await self._transport.handle_async_request(request)

    async def _make_request(self) -> httpx2.Request:
        """Return a request as the SDK makes it, without its content."""
        client = self._client
        options = self._sdk._models.FinalRequestOptions.construct(  # noqa: SLF001
            method="post", url=self._path, json_data={"model": self._model}
        )
        request: httpx2.Request = client._build_request(  # noqa: SLF001
            await client._prepare_options(options)  # noqa: SLF001
        )
        del request.headers["content-length"]
        request.headers["accept-encoding"] = ENCODINGS
        self._headers = dict(request.headers)
        http = client._client  # noqa: SLF001
        self._transport = http._transport_for_url(request.url)  # noqa: SLF001
        if self._transport is not http._transport:  # noqa: SLF001 - that of a proxy
            self._pool = None
        return request

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Convert the errors of the HTTP library as the SDK does."""
        try:
            yield
        except httpx2.TimeoutException as error:
            raise self._sdk.APITimeoutError(request=self._prepared) from error
        except httpx2.RequestError as error:
            raise self._sdk.APIConnectionError(request=self._prepared) from error
