"""Nothing leads a fetch to an address that is not public, or costs more than its limits."""

from __future__ import annotations

import asyncio
import gzip
import random
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from demos.medagen.fetch import FetchLimits, ImageRefusedError, Streams, fetch_image
from mdagents_llm.web.public_address import is_public
from tests.demos.medagen.tls import PUBLIC, Network, body, certificate, network, raw
from tests.support.cancelling import cancel_sometime

PICTURE = b"\xff\xd8\xff picture"
SMALL = FetchLimits(seconds=0.5, size=10_000)


async def drips(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
    for _ in range(1000):
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.01)


async def says_nothing(_: asyncio.StreamWriter) -> None:
    await asyncio.sleep(5)


async def never_ends(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"1000\r\n" + b"x" * 4096 + b"\r\n")
        await writer.drain()


def to(place: str) -> object:
    return body(b"", f"location: {place}", status="302 Found")


ANSWERS = {
    "/ok.jpg": body(PICTURE),
    "/to-loopback": to("http://127.0.0.1/"),
    "/to-metadata": to("https://169.254.169.254/latest/meta-data/"),
    "/to-itself": to("/ok.jpg"),
    "/huge": body(b"x" * 20_000),
    "/never-ends": never_ends,
    "/drips": drips,
    "/says-nothing": says_nothing,
    "/gzip": body(gzip.compress(b"x" * 1_000_000), "content-encoding: gzip"),
    "/too-short": raw(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\nabc"),
    "/lying-length": raw(b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\nabc"),
    "/no-http": raw(b"\x00\x01\x02 hello\r\n\r\n"),
    "/long-header": raw(b"HTTP/1.1 200 OK\r\nx: " + b"a" * 500_000 + b"\r\n\r\n"),
    "/missing": body(b"no", status="404 Not Found"),
    "/partly": body(b"no", status="206 Partial Content"),
}


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
async def web(pem: Path) -> AsyncIterator[Network]:
    async with network(pem, ANSWERS) as there:  # type: ignore[arg-type]
        yield there


async def fetched(web: Network, url: str, limits: FetchLimits = SMALL) -> bytes:
    return await fetch_image(
        url, limits=limits, resolve=web.resolve, dial=web.dial, context=web.trusted
    )


async def test_a_picture_is_fetched_as_it_is(web: Network) -> None:
    assert await fetched(web, "https://pictures.example/ok.jpg?size=1&x=a%20b") == PICTURE
    assert web.dialled == [PUBLIC]
    (request,) = web.requests
    assert request.startswith("GET /ok.jpg?size=1&x=a%20b HTTP/1.1\r\n")
    assert "accept-encoding: identity" in request.lower()
    assert "host: pictures.example\r\n" in request.lower()
    assert await fetched(web, "https://pictures.example:443/ok.jpg") == PICTURE
    assert await fetched(web, "https://xn--bcher-kva.example/ok.jpg") == PICTURE


# -- where it must not go: names and addresses, as the system itself reads them -----------------

INWARD = [
    "https://127.0.0.1/a.jpg", "https://127.1/", "https://127.0.1/", "https://2130706433/",
    "https://0x7f000001/", "https://0x7f.1/", "https://0177.0.0.1/", "https://017700000001/",
    "https://0/", "https://0.0.0.0/", "https://localhost/", "https://LOCALHOST./",
    "https://localhost.localdomain/", "https://[::1]/", "https://[::]/",
    "https://[0:0:0:0:0:0:0:1]/", "https://[::ffff:127.0.0.1]/", "https://[::ffff:7f00:1]/",
    "https://[::127.0.0.1]/", "https://[64:ff9b::7f00:1]/", "https://[64:ff9b::10.0.0.1]/",
    "https://[2002:7f00:1::]/", "https://[2002:c0a8:101::1]/",
    "https://[2001:0:7f00:1::]/", "https://[2001:0:1:2:3:4:80ff:fffe]/", "https://[fe80::1]/",
    "https://[fe80::1%25eth0]/", "https://[fc00::1]/", "https://[fd12:3456::1]/",
    "https://[ff02::1]/", "https://10.0.0.1/", "https://172.16.5.4/", "https://192.168.1.1/",
    "https://169.254.169.254/latest/", "https://100.64.0.1/", "https://192.0.2.1/",
    "https://198.18.0.1/", "https://224.0.0.1/", "https://240.0.0.1/",
    "https://255.255.255.255/", "https://3232235777/", "https://0300.0250.1.1/",
    "https://[fec0::1]/", "https://[2001:db8::1]/", "https://127.0.0.1.:443/",
]  # fmt: skip


@pytest.mark.parametrize("url", INWARD)
async def test_no_address_inside(url: str) -> None:
    async def dial(address: str, *_: object) -> Streams:
        raise AssertionError(f"connected to {address}")

    with pytest.raises(ImageRefusedError) as refused:
        await fetch_image(url, dial=dial)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://pictures.example/ok.jpg",
        "ftp://pictures.example/ok.jpg",
        "file:///etc/passwd",
        "data:image/png;base64,AAAA",
        "//pictures.example/ok.jpg",
        "pictures.example/ok.jpg",
        "https://",
        "https:///ok.jpg",
        "https://user@pictures.example/ok.jpg",
        "https://user:secret@pictures.example/ok.jpg",
        "https://pictures.example@127.0.0.1/",
        "https://pictures.example:8443/ok.jpg",
        "https://pictures.example:0/ok.jpg",
        "https://pictures.example:99999/ok.jpg",
        "https://pictures.example\\@127.0.0.1/",
        "https://pictures.example/a b.jpg",
        "https://pictures.example/\r\nHost: other",
        "https://bücher.example/ok.jpg",
        "https://pictures%2eexample/ok.jpg",
        "https://[::1",
        "https://\u2460\u2461\u2466.0.0.1/",
        "https://" + "a" * 300 + ".example/",
    ],
)
async def test_what_is_no_address_of_a_picture(web: Network, url: str) -> None:
    with pytest.raises(ImageRefusedError) as refused:
        await fetched(web, url)
    assert "secret" not in str(refused.value)
    if "aaaa" not in url:
        assert web.dialled == []


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], [PUBLIC, "127.0.0.1"], ["::1", PUBLIC], ["::ffff:10.0.0.1"], [], ["nonsense"]],
)
async def test_a_name_that_leads_inside(web: Network, addresses: list[str]) -> None:
    web.names["rebound.example"] = [addresses]
    with pytest.raises(ImageRefusedError, match="is no public address"):
        await fetched(web, "https://rebound.example/ok.jpg")
    assert web.dialled == []


async def test_a_name_that_changes_between_check_and_connection(web: Network) -> None:
    web.names["rebound.example"] = [[PUBLIC], ["127.0.0.1"]]
    assert await fetched(web, "https://rebound.example/ok.jpg") == PICTURE
    assert web.dialled == [PUBLIC], "the address that was checked"
    with pytest.raises(ImageRefusedError):
        await fetched(web, "https://rebound.example/ok.jpg")
    assert web.dialled == [PUBLIC]


async def test_another_address_is_tried(web: Network) -> None:
    async def dial(address: str, host: str, context: ssl.SSLContext) -> Streams:
        if address == "1.1.1.1":
            raise OSError
        return await web.dial(address, host, context)

    web.names["pictures.example"] = [["1.1.1.1", PUBLIC]]
    found = await fetch_image(
        "https://pictures.example/ok.jpg",
        resolve=web.resolve,
        dial=dial,
        context=web.trusted,
    )
    assert found == PICTURE


# -- what it may cost ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/to-loopback", "there is a redirect instead"),
        ("/to-metadata", "there is a redirect instead"),
        ("/to-itself", "there is a redirect instead"),
        ("/huge", "more than 10,000 bytes"),
        ("/never-ends", "more than 10,000 bytes"),
        ("/drips", "takes longer than 0.5 s"),
        ("/says-nothing", "takes longer than 0.5 s"),
        ("/gzip", "the picture is packed"),
        ("/too-short", "cannot be reached"),
        ("/lying-length", "cannot be reached"),
        ("/no-http", "cannot be reached"),
        ("/long-header", "cannot be reached"),
        ("/missing", "there is status 404"),
        ("/partly", "there is status 206"),
    ],
)
async def test_what_is_no_picture(web: Network, path: str, told: str) -> None:
    with pytest.raises(ImageRefusedError, match=told) as refused:
        await fetched(web, f"https://pictures.example{path}?token=secret")
    assert "secret" not in str(refused.value)
    assert len(web.dialled) == 1, "nothing else was connected to"


async def test_a_certificate_of_another_host(web: Network) -> None:
    with pytest.raises(ImageRefusedError, match=r"no certificate|cannot be reached"):
        await fetched(web, "https://stranger.example/ok.jpg")
    with pytest.raises(ImageRefusedError):  # this machine does not trust it
        await fetch_image("https://pictures.example/ok.jpg", resolve=web.resolve, dial=web.dial)
    assert web.requests == []


async def test_no_proxy_of_the_environment(web: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert await fetched(web, "https://pictures.example/ok.jpg") == PICTURE


async def test_cancelled_at_any_moment(web: Network) -> None:
    chance = random.Random(3)
    cut = 0
    for _ in range(30):
        cut += await cancel_sometime(
            fetched(web, "https://pictures.example/ok.jpg"), chance, steps=25
        )
    assert 0 < cut < 30
    assert await fetched(web, "https://pictures.example/ok.jpg") == PICTURE
    for _ in range(6_000):
        if len(asyncio.all_tasks()) == 1:
            break
        await asyncio.sleep(0.01)
    assert len(asyncio.all_tasks()) == 1, "no connection is left"


@pytest.mark.parametrize(
    ("address", "public"),
    [
        (PUBLIC, True), ("2606:2800:21f:cb07:6820:80da:af6b:8b2c", True), ("8.8.8.8", True),
        ("fe80::1%eth0", False), ("", False), ("127.0.0.1.", False), ("01.1.1.1", False),
    ],
)  # fmt: skip
def test_public_addresses(address: str, public: bool) -> None:
    assert is_public(address) is public
