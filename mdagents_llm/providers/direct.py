"""Requests over the transport of an SDK client, without the request models of SDK and HTTP client.

These models take two thirds of the CPU time that a call costs in the SDK (docs/performance.md).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import httpx2
from pydantic_core import to_json


class DirectPosts:
    """Posts the requests of one model over the transport of its SDK client.

    The SDK decides URL and headers, once; the transport and its proxies are those of its client.

    Args:
        sdk: Package of the client, for its exceptions.
        client: SDK client of the endpoint.
        path: Path of the requests, relative to the base URL.
        model: The endpoint's name for the model, which is part of Azure's URLs.
    """

    def __init__(self, sdk: ModuleType, client: Any, path: str, model: str) -> None:
        self._sdk = sdk
        self._client = client
        self._path = path
        self._model = model
        self._prepared: httpx2.Request | None = None
        self._transport: httpx2.AsyncBaseTransport | None = None

    async def open(self, body: Mapping[str, object]) -> httpx2.Response:
        """Post a request; the caller reads the response, and closes it.

        Raises:
            APIStatusError: The status of the response is not 2xx; the response is read and closed.
            APIConnectionError: There is no response; the cause is an `httpx2` error.
            ProviderError: The response is refused, as by `sending`.
        """
        request = await self._request(body)
        with self._errors(request):
            response = await self._sending(request).handle_async_request(request)
        if response.is_success:
            return response
        content = await self.read(response)
        said = httpx2.Response(
            response.status_code, headers=response.headers, content=content, request=request
        )
        raise self._client._make_status_error_from_response(said)  # noqa: SLF001

    async def read(self, response: httpx2.Response) -> bytes:
        """Return the content of a response, and close it.

        Raises:
            APIConnectionError: The response breaks off.
            ProviderError: The response is too large, or in an unknown encoding.
        """
        try:
            return b"".join([piece async for piece in self.pieces(response)])
        finally:
            await response.aclose()

    async def pieces(self, response: httpx2.Response) -> AsyncIterator[bytes]:
        """Yield the content of a response as it arrives, with the errors of `read`."""
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        with self._errors(self._prepared):
            async for piece in response.stream:
                yield piece

    async def _request(self, body: Mapping[str, object]) -> httpx2.Request:
        if self._prepared is None:
            self._prepared = await self._make_request()
        like = self._prepared
        return httpx2.Request(
            like.method,
            like.url,
            headers=like.headers,
            content=to_json(body),
            extensions=like.extensions,
        )

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
        return request

    def _sending(self, request: httpx2.Request) -> httpx2.AsyncBaseTransport:
        if self._transport is None:
            http = self._client._client  # noqa: SLF001
            self._transport = http._transport_for_url(request.url)  # noqa: SLF001
        return self._transport

    @contextmanager
    def _errors(self, request: httpx2.Request | None) -> Iterator[None]:
        """Convert the errors of the HTTP library as the SDK does."""
        try:
            yield
        except httpx2.TimeoutException as error:
            raise self._sdk.APITimeoutError(request=request) from error
        except httpx2.RequestError as error:
            raise self._sdk.APIConnectionError(request=request) from error
