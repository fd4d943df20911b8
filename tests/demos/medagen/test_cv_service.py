"""The service for pictures: over real HTTP, and whatever it does wrong."""

from __future__ import annotations

import asyncio
import io
import random
from collections.abc import AsyncIterator

import pytest
from PIL import Image

from demos.medagen.cv_service import CvKind, CvService
from tests.demos.medagen.cv_server import CvServer, cv_server
from tests.support.cancelling import cancel_sometime


def square(color: tuple[int, int, int]) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (32, 32), color).save(out, "JPEG")
    return out.getvalue()


@pytest.fixture
async def server() -> AsyncIterator[CvServer]:
    async with cv_server() as there:
        yield there


async def test_a_picture_is_looked_at(server: CvServer) -> None:
    async with CvService(server.url) as service:
        red = await service.look(CvKind.DERM, square((255, 10, 10)))
        pale = await service.look(CvKind.WOUND, square((240, 235, 230)))
    assert server.seen == ["/predict/derm", "/predict/wound"]
    assert (red.error, red.predictions[0].label) == (None, "rash")
    assert red.predictions[0].probability > 0.9 > pale.predictions[1].probability
    assert pale.predictions[0].label == "clear skin", "the most probable first"


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("status", "the service answers with status 500"),
        ("hang", "the service takes longer than 0.3 s"),
        ("huge", "the answer of the service is too long"),
        ("nan", "the answer of the service is in no form"),
        ("text", "the answer of the service is in no form"),
        ("above one", "the answer of the service is in no form"),
        ("drop", "the service cannot be reached"),
    ],
)
async def test_what_fails_is_told(server: CvServer, fault: str, told: str) -> None:
    server.fault = fault
    async with CvService(server.url, seconds=0.3) as service:
        found = await service.look(CvKind.EYE, square((0, 0, 0)))
        assert found.predictions == ()
        assert told in (found.error or "")
        server.fault = ""
        assert (await service.look(CvKind.EYE, square((0, 0, 0)))).error is None


async def test_no_service() -> None:
    async with CvService(None) as service:
        found = await service.look(CvKind.DERM, b"")
    assert found.error == "no service for pictures is configured (CV_SERVICE_URL)"
    async with CvService("http://127.0.0.1:1") as service:
        assert (await service.look(CvKind.DERM, b"")).error == "the service cannot be reached"


async def test_cancelled_at_any_moment(server: CvServer) -> None:
    chance = random.Random(5)
    cut = 0
    async with CvService(server.url) as service:
        for _ in range(40):
            cut += await cancel_sometime(
                service.look(CvKind.DERM, square((9, 9, 9))), chance, steps=12
            )
        assert (await service.look(CvKind.DERM, square((9, 9, 9)))).error is None
    for _ in range(6_000):
        if not server.open:
            break
        await asyncio.sleep(0.01)
    assert server.open == 0
    assert 0 < cut < 40
