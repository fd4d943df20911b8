"""The server of the live view, over real HTTP, beside a run that works."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn

from mdagents.agents.feed import DebateMessage, Ended, Started, TurnBegan
from mdagents.datasets.questions import Question
from mdagents.live import LIVE_FILE, LiveFeed
from mdagents.view.app import make_app
from tests.fake_provider import FakeProvider
from tests.support.whole_runs import Run

HOSTILE = "</script><script>alert(1)</script>\u202e"
ITEM = ("12", 1)
QUESTION = Question("12", HOSTILE, {"A": "One", "B": "Two"}, "A", {"A": "B", "B": "A"})


@contextmanager
def serving(**more: Any) -> Iterator[str]:
    """The address of a server of `output`."""
    config = uvicorn.Config(make_app(Path("output"), **more), port=0, log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            thread.join(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = server.force_exit = True
        thread.join()


@pytest.fixture
def unfinished(provider: FakeProvider, run: Run) -> Path:
    """The folder of a run that was stopped; its feed has no lines of it."""
    assert run("--num-samples", "6", "--difficulty", "basic", "--token-limit", "5000")[0] == 1
    (folder,) = (path for path in Path("output").iterdir() if (path / "run.json").is_file())
    (folder / LIVE_FILE).unlink()
    return folder


@contextmanager
def feed(folder: Path) -> Iterator[Callable[..., None]]:
    with LiveFeed(folder / LIVE_FILE, lambda: 1_763_840_000_000) as written:

        def tell(*events: Any) -> None:
            for event in events:
                written.happened(ITEM, event)
            written.write()

        yield tell


def events(lines: Iterator[str], many: int) -> list[tuple[str, dict[str, Any]]]:
    """(id, data) of the next events of a stream."""
    found, number = [], ""
    for line in lines:
        if line.startswith("id: "):
            number = line.removeprefix("id: ")
        elif line.startswith("data: "):
            found.append((number, json.loads(line.removeprefix("data: "))))
        if len(found) == many:
            return found
    return found


def test_what_happens_is_sent_and_a_page_that_was_away_goes_on(unfinished: Path) -> None:
    with serving() as address, feed(unfinished) as tell:
        tell(Started(QUESTION))
        url = f"{address}/runs/{unfinished.name}/events"
        with httpx2.stream("GET", url, timeout=20) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            lines = response.iter_lines()
            assert [n for n, _ in events(lines, 1)] == ["1"]
            tell(TurnBegan("nurse", "Nurse", "opinion"))
            (second,) = events(lines, 1)
            assert second[1]["what"]["role"] == "Nurse"
        tell(DebateMessage(1, 1, "nurse", "dentist", HOSTILE))
        with httpx2.stream("GET", url, headers={"last-event-id": second[0]}, timeout=20) as again:
            (third,) = events(again.iter_lines(), 1)
        assert third[0] == "3"
        assert third[1]["what"]["text"] == HOSTILE


def test_the_end_of_a_run_ends_its_stream(unfinished: Path) -> None:
    with serving() as address, feed(unfinished) as tell:
        tell(Started(QUESTION), Ended("A", None))
        with httpx2.stream("GET", f"{address}/runs/{unfinished.name}/events", timeout=20) as stream:
            lines = stream.iter_lines()
            assert len(events(lines, 2)) == 2
            (unfinished / LIVE_FILE).unlink()
            rest = list(lines)
    assert "event: end" in rest


def test_runs_and_questions_are_told_as_they_stand(unfinished: Path) -> None:
    with serving() as address, feed(unfinished) as tell:
        tell(Started(QUESTION), TurnBegan("nurse", "Nurse", "opinion"))
        listed = httpx2.get(f"{address}/api/runs").json()
        assert listed["schema_version"] == "1.0.0"
        assert [(run["name"], run["state"]) for run in listed["runs"]] == [
            (unfinished.name, "running")
        ]
        run = httpx2.get(f"{address}/api/runs/{unfinished.name}").json()
        (case,) = run["under_way"]
        assert case["speaking"] == ["Nurse"]
        question = httpx2.get(f"{address}/api/runs/{unfinished.name}/questions/{case['case']}")
        assert question.json()["question"]["text"] == HOSTILE
        assert question.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "path",
    ["/api/runs/..", "/api/runs/%2e%2e%2f%2e%2e", "/api/runs/nope", "/runs/nope/events",
     "/api/runs/nope/questions/../../x", "/etc/passwd"],
)  # fmt: skip
def test_what_is_not_in_the_listing_is_not_there(unfinished: Path, path: str) -> None:
    with serving() as address:
        assert httpx2.get(address + path).status_code == 404
        name = unfinished.name
        assert httpx2.get(f"{address}/api/runs/{name}/questions/case-none").status_code == 404
        bad = httpx2.get(f"{address}/runs/{name}/events", headers={"last-event-id": "x"})
        assert bad.status_code == 400


def test_only_this_host_is_answered_and_only_with_the_token(unfinished: Path) -> None:
    with serving(token="s3cret") as address:
        url = f"{address}/api/runs"
        assert httpx2.get(url, headers={"host": "evil.example"}).status_code == 400
        assert httpx2.get(url).status_code == 401
        assert httpx2.get(f"{url}?token=s3cres").status_code == 401
        answer = httpx2.get(f"{url}?token=s3cret")
        assert answer.status_code == 200
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert (
            httpx2.get(url, cookies={f"token-{address.rpartition(':')[2]}": "s3cret"}).status_code
            == 200
        )
        assert httpx2.post(f"{url}?token=s3cret").status_code == 405
