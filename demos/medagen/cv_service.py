"""Client of the computer vision service, which may be any program that speaks this protocol.

    POST {CV_SERVICE_URL}/predict/derm     also …/eye and …/wound
    content-type: image/jpeg

    200 {"predictions": [{"label": "eczema", "probability": 0.62}, …]}

The operator runs the service, so its address may be local.
"""

from __future__ import annotations

import asyncio
from enum import StrEnum
from types import TracebackType
from typing import Self

import httpx2
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from demos.medagen.schemas import CvFindings, Prediction

SETTING = "CV_SERVICE_URL"

_LONGEST_ANSWER = 64_000  # bytes


class CvKind(StrEnum):
    """Kind of examination of a picture."""

    DERM = "derm"
    EYE = "eye"
    WOUND = "wound"


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore")

    predictions: tuple[Prediction, ...] = Field(max_length=100)


class CvService:
    """Client of the computer vision service. Use it with `async with`, or call `aclose`.

    Args:
        url: Address of the service; None disables it.
        seconds: Timeout of one picture in seconds.
    """

    def __init__(self, url: str | None, *, seconds: float = 10.0) -> None:
        self._url = url
        self._seconds = seconds
        self._client = httpx2.AsyncClient(trust_env=False, follow_redirects=False, timeout=seconds)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def look(self, kind: CvKind, picture: bytes) -> CvFindings:
        """Return the findings in a picture; any failure is reported in their `error`.

        Args:
            kind: Kind of examination.
            picture: JPEG file.
        """
        if self._url is None:
            return CvFindings(error=f"no service for pictures is configured ({SETTING})")
        try:
            async with asyncio.timeout(self._seconds):
                answer = _Answer.model_validate_json(await self._asked(kind, picture))
        except TimeoutError:
            return CvFindings(error=f"the service takes longer than {self._seconds:g} s")
        except ValidationError:
            return CvFindings(error="the answer of the service is in no form that can be read")
        except _RefusedError as error:
            return CvFindings(error=str(error))
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError):
            return CvFindings(error="the service cannot be reached")
        likely = sorted(answer.predictions, key=lambda one: -one.probability)
        return CvFindings(predictions=tuple(likely[:20]))

    async def _asked(self, kind: CvKind, picture: bytes) -> bytes:
        headers = {"content-type": "image/jpeg", "accept-encoding": "identity"}
        url = f"{self._url}/predict/{kind.value}"
        async with self._client.stream("POST", url, content=picture, headers=headers) as reply:
            if reply.status_code != 200:
                raise _RefusedError(f"the service answers with status {reply.status_code}")
            body = bytearray()
            async for chunk in reply.aiter_raw():
                body += chunk
                if len(body) > _LONGEST_ANSWER:
                    raise _RefusedError("the answer of the service is too long")
            return bytes(body)


class _RefusedError(Exception):
    """The service returned an error status or too long an answer."""
