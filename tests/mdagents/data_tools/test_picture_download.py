"""`mdagents data pictures`: what questions name by address comes to lie beside them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

from mdagents.cli.commands import main
from mdagents.data_tools.picture_download import Access, fetch_pictures
from mdagents.datasets.dataset import open_dataset
from mdagents_llm.errors import ConfigError
from tests.mdagents.datasets.published_pictures import picture
from tests.support.cancelling import cancel_sometime

ASKED = {"options": {"A": "yes", "B": "no"}, "answer_idx": "A"}


def only_this_server(address: str) -> bool:
    """The test's server counts as public, and nothing else does."""
    return address == "127.0.0.1"


@dataclass
class Site:
    """A web server with pictures, and what it was asked."""

    port: int = 0
    paths: list[str] = field(default_factory=list)
    agents: set[str] = field(default_factory=set)
    contents: dict[str, bytes] = field(default_factory=dict)

    def at(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.paths.append(request.raw_path)
        self.agents.add(request.headers["user-agent"])
        name = request.match_info["name"]
        if name.startswith("to/"):
            raise web.HTTPFound(TARGETS[name[3:]].replace("PORT", str(self.port)))
        if name == "page.png":
            return web.Response(text="<html>", content_type="text/html")
        if name == "huge.png":
            response = web.StreamResponse(headers={"content-type": "image/png"})
            await response.prepare(request)
            await response.write(bytes(150_000))
            return response
        if name == "slow.png":
            await asyncio.sleep(30)
        if name == "packed.png":
            return web.Response(
                body=b"x", headers={"content-encoding": "gzip"}, content_type="image/png"
            )
        if name not in self.contents:
            raise web.HTTPNotFound
        return web.Response(body=self.contents[name], content_type="image/png")


TARGETS = {
    "a.png": "/a.png",
    "rel.png": "../b.png",
    "itself.png": "/to/itself.png",
    "metadata.png": "http://169.254.169.254/latest/meta-data/",
    "other-loopback.png": "http://127.0.0.2:PORT/a.png",
    "number.png": "http://2130706433:PORT/a.png",
    "mapped.png": "http://[::ffff:10.0.0.1]:PORT/a.png",
    "inside.png": "http://inside.example:PORT/a.png",
    "file.png": "file:///etc/passwd",
}


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site(contents={"a.png": picture(1), "b.png": picture(2, form="JPEG")})
    site.contents["broken.png"] = picture(1)[:-30]
    site.contents["text.png"] = b"not found"
    application = web.Application()
    application.router.add_get("/{name:.*}", site.answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    server = web.TCPSite(runner, "127.0.0.1", 0)
    await server.start()
    site.port = runner.addresses[0][1]
    yield site
    await runner.cleanup()


async def inside(host: str, port: int) -> Sequence[str]:
    return ["10.0.0.1", "127.0.0.1"] if host == "inside.example" else ["127.0.0.1"]


ACCESS = Access(only_this_server, inside)


def questions(folder: Path, *records: dict[str, object]) -> Path:
    path = folder / "mine.jsonl"
    lines = [json.dumps({"id": n, "question": "?", **ASKED} | r) for n, r in enumerate(records)]
    path.write_text("\n".join(lines))
    return path


async def test_pictures_are_found_by_a_run(tmp_path: Path, site: Site) -> None:
    signed = site.at("b.png?key=secret")
    parts = [{"type": "text", "text": "Which?"}]
    path = questions(
        tmp_path,
        {"image": site.at("a.png")},
        {"images": [site.at("a.png"), signed]},
        {"question": f"See ![scan]({site.at('to/a.png')}) here"},
        {"question": [*parts, {"type": "image_url", "image_url": {"url": site.at("to/rel.png")}}]},
        {"source_url": site.at("missing.png"), "explanation_image": site.at("missing.png")},
    )
    assert await fetch_pictures(path, ACCESS) == []
    dataset = open_dataset(str(path), tmp_path)
    shown = [[one.read() for one in dataset.load(entry).pictures] for entry in dataset.index]
    first, second = picture(1), picture(2, form="JPEG")
    assert shown[:3] == [[first], [first, second], [first]]
    assert site.paths.count("/a.png") == 2, "once, and once by the redirect"
    assert not any("missing" in path for path in site.paths)
    assert site.agents == {"mdagents"}
    note = (tmp_path / "images" / "ADDRESSES.json").read_text()
    assert "secret" not in note
    name = f"{hashlib.sha256(signed.encode()).hexdigest()[:32]}.jpg"
    origin = json.loads(note)["files"][name]
    assert origin["sha256"] == hashlib.sha256(second).hexdigest()


async def test_what_is_there_is_not_fetched_again_and_what_changed_is(
    tmp_path: Path, site: Site
) -> None:
    path = questions(tmp_path, {"image": site.at("a.png")}, {"image": site.at("b.png")})
    await fetch_pictures(path, ACCESS)
    asked = len(site.paths)
    assert await fetch_pictures(path, ACCESS) == []
    assert len(site.paths) == asked
    kept = next((tmp_path / "images").glob("*.png"))
    kept.write_bytes(b"changed")
    await fetch_pictures(path, ACCESS)
    assert site.paths[asked:] == ["/a.png"]
    assert kept.read_bytes() == picture(1)


REFUSED = {
    "missing.png": "the host answered 404",
    "page.png": "the host sent text/html, not a picture",
    "text.png": "the content is not a picture in a known format",
    "broken.png": "",
    "huge.png": "has more than 100,000 bytes",
    "packed.png": "the host sent the picture packed",
    "to/itself.png": "it redirects more than 5 times",
    "to/metadata.png": "the host is not public",
    "to/other-loopback.png": "the host is not public",
    "to/number.png": "the host is not public",
    "to/mapped.png": "the host is not public",
    "to/inside.png": "the host is not public",
    "to/file.png": "neither http nor https",
}


async def test_each_failure_is_one_line_and_costs_no_other_picture(
    tmp_path: Path, site: Site
) -> None:
    records: list[dict[str, object]] = [{"image": site.at(name)} for name in REFUSED]
    path = questions(tmp_path, *records, {"image": site.at("a.png")})
    access = Access(only_this_server, inside, largest=100_000)
    lines = await fetch_pictures(path, access)
    for number, (name, reason) in enumerate(REFUSED.items(), start=1):
        (line,) = [one for one in lines if f"/{name} (record {number})" in one]
        assert reason in line
        assert "\n" not in line
    assert len(lines) == len(REFUSED)
    assert len(list((tmp_path / "images").glob("*.png"))) == 1


async def test_a_host_that_says_nothing_costs_a_limited_time(tmp_path: Path, site: Site) -> None:
    path = questions(tmp_path, {"image": site.at("slow.png")})
    (line,) = await fetch_pictures(path, Access(only_this_server, inside, seconds=0.2))
    assert "it takes longer than 0.2 s" in line


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:1/a.png",
        "http://localhost:1/a.png",
        "http://10.0.0.1/a.png",
        "http://[::1]/a.png",
        "http://0x7f.1/a.png",
        "http://127.1/a.png",
        "http://2130706433/a.png",
        "http://169.254.169.254/a.png",
        "https://user:word@example.com/a.png",
    ],
)
async def test_nothing_inside_is_asked_unless_the_user_allows_it(
    tmp_path: Path, address: str
) -> None:
    path = questions(tmp_path, {"image": address})
    (line,) = await fetch_pictures(path)
    assert "the host is not public; --allow-private" in line or "user name" in line


def test_the_program_says_what_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = questions(tmp_path, {"image": "http://127.0.0.1:1/a.png?key=secret"})
    assert main(["data", "pictures", str(path), "--allow-private"]) == 1
    out = capsys.readouterr().out
    assert "not fetched: http://127.0.0.1:1/a.png (record 1): the host cannot be reached" in out
    assert "secret" not in out
    assert main(["data", "pictures", str(tmp_path / "none.jsonl")]) == 2
    assert main(["data", "pictures", str(questions(tmp_path, {}))]) == 0
    assert "0 addresses" in capsys.readouterr().out


async def test_a_folder_that_cannot_be_written_ends_it(tmp_path: Path, site: Site) -> None:
    path = questions(tmp_path, {"image": site.at("a.png")})
    (tmp_path / "images").write_bytes(b"a file")
    with pytest.raises(ExceptionGroup) as caught:
        await fetch_pictures(path, ACCESS)
    assert isinstance(caught.value.exceptions[0], ConfigError)


async def test_cancelled_at_any_moment_leaves_whole_pictures(tmp_path: Path, site: Site) -> None:
    records: list[dict[str, object]] = [{"image": site.at(f"a.png?{n}")} for n in range(6)]
    path = questions(tmp_path, *records)
    chance = random.Random(7)
    for _ in range(15):
        await cancel_sometime(fetch_pictures(path, ACCESS), chance, steps=60)
        for file in (tmp_path / "images").glob("*.png"):
            assert file.read_bytes() == picture(1)
    assert await fetch_pictures(path, ACCESS) == []
    assert len(list((tmp_path / "images").glob("*.png"))) == 6
