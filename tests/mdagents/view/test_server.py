"""The server of the live view, over real HTTP, beside a run that works."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from mdagents.agents.case import make_case_id
from mdagents.agents.feed import DebateMessage, Ended, Member, Recruited, Started, TurnBegan
from mdagents.datasets.questions import Question
from mdagents.live import LIVE_FILE
from tests.mdagents.view.served import ITEM, feed, serving
from tests.support.trace_events import says

HOSTILE = "</script><script>alert(1)</script>\u202e"
QUESTION = Question("12", HOSTILE, {"A": "One", "B": "Two"}, "A", {"A": "B", "B": "A"})


def events(lines: Iterator[str], many: int) -> list[tuple[str, list[list[str]]]]:
    """(id, operations) of the next events of a stream."""
    found, number = [], ""
    for line in lines:
        if line.startswith("id: "):
            number = line.removeprefix("id: ")
        elif line.startswith("data: [") and number:
            found.append((number, json.loads(line.removeprefix("data: "))))
        if len(found) == many:
            return found
    return found


def changes(lines: Iterator[str], *ids: str) -> tuple[str, dict[str, list[str]]]:
    """Read on until something was sent of all these parts: (id of the event, part -> its last)."""
    sent: dict[str, list[str]] = {}
    while not set(ids) <= sent.keys():
        ((number, operations),) = events(lines, 1)
        sent |= {operation[1]: operation for operation in operations}
    return number, sent


def test_what_happens_is_sent_and_a_page_that_was_away_goes_on(unfinished: Path) -> None:
    with serving() as address, feed(unfinished) as tell:
        tell(Started(QUESTION), Recruited((Member("nurse", "Nurse"), Member("dentist", "Dentist"))))
        url = f"{address}/runs/{unfinished.name}/events?case={make_case_id(*ITEM)}"
        with httpx2.stream("GET", url, timeout=20) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            lines = response.iter_lines()
            _, first = changes(lines, "options", "panel")
            assert "<script>" not in first["options"][3]
            tell(TurnBegan("nurse", "Nurse", "opinion"))
            _, sent = changes(lines, "turn-0", "section-0")
            assert "Nurse" in sent["turn-0"][3]
            tell(says(2, "nurse", 5, "Fever", 1))
            number, sent = changes(lines, "turn-0-said")
            assert sent["turn-0-said"] == ["add", "turn-0-said", "Fever"]
        tell(says(2, "nurse", 6, f" and {HOSTILE}", 1))
        tell(DebateMessage(1, 1, "nurse", "dentist", HOSTILE))
        with httpx2.stream("GET", url, headers={"last-event-id": number}, timeout=20) as again:
            _, sent = changes(again.iter_lines(), "turn-0", "panel")
        assert "Fever and &lt;/script&gt;" in sent["turn-0"][3]
        assert "<script>" not in sent["panel"][3]


def test_the_end_of_a_run_ends_its_streams(unfinished: Path) -> None:
    with serving() as address, feed(unfinished) as tell:
        tell(Started(QUESTION), Ended("A", None))
        url = f"{address}/runs/{unfinished.name}/events"
        with httpx2.stream("GET", url, timeout=20) as stream:
            lines = stream.iter_lines()
            changes(lines, "head")
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
