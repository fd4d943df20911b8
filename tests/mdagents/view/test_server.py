"""The server of the live view, over real HTTP, beside a run that works."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from markupsafe import escape

from mdagents.agents.case import make_case_id
from mdagents.agents.events import DebateMessage, Ended, Member, Recruited, Started, TurnBegan
from mdagents.datasets.questions import Question
from mdagents.live import LIVE_FILE
from mdagents.records.manifest import read_manifest
from mdagents_llm.files.json_text import compact_json
from tests.fake_provider import FakeProvider
from tests.mdagents.view.served import ITEM, feed, serving, write_end
from tests.support.trace_events import says
from tests.support.whole_runs import Run

pytestmark = pytest.mark.process

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
            _, sent = changes(again.iter_lines(), "turn-0-said", "panel")
        assert sent["turn-0-said"] == ["add", "turn-0-said", f" and {HOSTILE}"]
        with httpx2.stream("GET", url, headers={"last-event-id": "1"}, timeout=20) as anew:
            _, sent = changes(anew.iter_lines(), "turn-0", "panel")
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


def test_a_run_that_is_gone_on_with_or_gone_is_opened_anew(unfinished: Path) -> None:
    for finished, words in ((False, ""), (True, "The run is finished")):
        with serving() as address, feed(unfinished) as tell:
            tell(Started(QUESTION))
            with httpx2.stream("GET", f"{address}/runs/{unfinished.name}/events", timeout=20) as it:
                lines = it.iter_lines()
                changes(lines, "head")
                write_end(unfinished, "2026-01-01T00:00:00Z", finished=finished)
                (unfinished / LIVE_FILE).unlink()
                *_, last = (line for line in lines if line.startswith("data: "))
        assert json.loads(last.removeprefix("data: ")) == words


def test_a_run_that_has_written_how_it_ended_is_interrupted_at_once(unfinished: Path) -> None:
    with serving() as address, feed(unfinished) as tell:
        tell(Started(QUESTION))
        run = f"{address}/api/runs/{unfinished.name}"
        assert httpx2.get(run).json()["state"] == "running"
        write_end(unfinished, "2026-01-01T00:00:00Z")
        assert httpx2.get(run).json()["state"] == "interrupted"


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
        kept = [
            json.loads(line) for line in (unfinished / "samples.jsonl").read_text().splitlines()
        ]
        assert (
            [row["item"] for row in run["decided"]] == [[r["question_id"], 1] for r in kept] != []
        )
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


def test_no_word_is_sent_twice_to_a_page_that_was_made_while_another_looked_on(
    unfinished: Path,
) -> None:
    with serving() as address, feed(unfinished) as tell:
        tell(Started(QUESTION), TurnBegan("nurse", "Nurse", "opinion"))
        page = f"{address}/runs/{unfinished.name}/questions/{make_case_id(*ITEM)}"
        url = f"{address}/runs/{unfinished.name}/events?case={make_case_id(*ITEM)}"
        with httpx2.stream("GET", url, timeout=20) as first:
            looks_on = first.iter_lines()  # it ends when nobody holds it
            changes(looks_on, "turn-0")
            for number in range(8):
                tell(says(2 + number, "nurse", 5, f"word{number} ", 1))
                html = httpx2.get(page).text
                tell(says(12 + number, "nurse", 5, f"more{number} ", 1))
                (version,) = re.findall(r'data-after="(\d+)"', html)
                shown = html.partition('id="turn-0-said">')[2].partition("</p>")[0]
                with httpx2.stream("GET", f"{url}&after={version}", timeout=20) as second:
                    ((_, operations),) = events(second.iter_lines(), 1)
                sent = {operation[1]: operation for operation in operations}
                assert shown.endswith(f"word{number} ")
                assert sent["turn-0-said"][2] == f"more{number} "


def test_of_many_decided_questions_some_are_sent_at_a_time(unfinished: Path) -> None:
    samples = unfinished / "samples.jsonl"
    record = json.loads(samples.read_text().splitlines()[0])
    ids = [f"more-{n}" for n in range(300)]
    samples.write_text("".join(json.dumps({**record, "question_id": id_}) + "\n" for id_ in ids))
    manifest = unfinished / "run.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"item_ids": ids}))
    with serving() as address, feed(unfinished) as tell:
        tell(Started(QUESTION))
        page = httpx2.get(f"{address}/runs/{unfinished.name}").text
        (url,) = re.findall(r'data-events="([^"]+)"', page)
        (version,) = re.findall(r'data-after="(\d+)"', page)
        assert page.count("<tr id=") == 50
        rows = httpx2.get(f"{address}/runs/{unfinished.name}/questions?start=280").json()
        assert rows["count"] == 300
        assert rows["rows"].count("<tr id=") == 20
        last = "/questions?sort=question&order=descending&text=more-"
        assert ">more-299<" in httpx2.get(f"{address}/runs/{unfinished.name}{last}").json()["rows"]
        tell(TurnBegan("nurse", "Nurse", "opinion"))  # before the browser has opened the stream
        with httpx2.stream("GET", f"{address}{url}?after={version}", timeout=20) as stream:
            ((_, operations),) = events(stream.iter_lines(), 1)
        sent = {operation[1]: operation for operation in operations}
        assert f"card-{make_case_id(*ITEM)}" in sent
        assert sum(len(html) for operation in operations for html in operation) < 3_000
        with httpx2.stream("GET", f"{address}{url}?after=1", timeout=20) as stream:
            ((_, operations),) = events(stream.iter_lines(), 1)  # of a page of another server
        assert "decided" in [operation[1] for operation in operations]


def test_a_run_that_is_started_anew_is_followed_from_its_first_line(unfinished: Path) -> None:
    with serving() as address:
        with feed(unfinished) as tell:
            tell(Started(QUESTION), *[TurnBegan("nurse", "Nurse", "opinion")] * 9)
        run = f"{address}/api/runs/{unfinished.name}"
        assert len(httpx2.get(run).json()["under_way"]) == 1
        (unfinished / LIVE_FILE).unlink()
        start_again(unfinished)
        assert httpx2.get(run).json()["under_way"] == []
        with feed(unfinished) as tell:
            tell(Started(QUESTION), TurnBegan("dentist", "Dentist", "opinion"))
        (case,) = httpx2.get(run).json()["under_way"]
        assert case["speaking"] == ["Dentist"]


def test_a_page_of_an_interrupted_run_learns_that_it_goes_on(unfinished: Path) -> None:
    with serving() as address:
        with feed(unfinished) as tell:
            tell(Started(QUESTION))
        os.utime(unfinished / LIVE_FILE, (0, 0))
        page = httpx2.get(f"{address}/runs/{unfinished.name}").text
        assert "interrupted" in page
        (events_at,) = re.findall(r'data-events="([^"]+)"', page)
        with httpx2.stream("GET", f"{address}{events_at}", timeout=20) as stream:
            lines = stream.iter_lines()
            changes(lines, "head")
            start_again(unfinished)
            assert "event: end" in list(lines)  # and the browser opens the page anew


@pytest.mark.parametrize("name", ["samples.jsonl", "summaries.jsonl"])
def test_a_line_that_cannot_be_read_costs_no_other(name: str, unfinished: Path) -> None:
    file = unfinished / name
    answers = len((unfinished / "samples.jsonl").read_text().splitlines())
    file.write_bytes(b'{"torn\n' + (file.read_bytes() if file.exists() else b""))
    with serving() as address:
        page = httpx2.get(f"{address}/runs/{unfinished.name}").text
        decided = httpx2.get(f"{address}/api/runs/{unfinished.name}").json()["decided"]
    assert "Not all results can be read" in page
    assert name in page
    assert len(decided) == answers > 0


def test_a_run_that_was_never_started_hides_no_other(unfinished: Path) -> None:
    manifest = read_manifest(unfinished)
    assert manifest is not None
    never = unfinished.with_name("never")
    never.mkdir()
    anew = manifest.model_copy(update={"name": "never", "invocations": []})
    (never / "run.json").write_text(anew.model_dump_json())
    with serving() as address:
        assert unfinished.name in httpx2.get(address).text
        assert httpx2.get(f"{address}/runs/never").status_code == 200


ODD: dict[str, dict[str, Any]] = {
    "epochs in words": {"options": {"epochs": "three"}},
    "epochs without end": {"options": {"epochs": 10**30}},
    "no epochs": {"options": {"epochs": -2, "method": None, "difficulty": ["basic"]}},
    "no time": {"invocations": [{"started_at": "yesterday", "new_records": -7}]},
    "no zone": {"invocations": [{"started_at": "2026-01-01T00:00:00", "new_records": -7}]},
    "the future": {"invocations": [{"started_at": "9999-01-01T00:00:00Z", "new_records": -7}]},
    "a status of later": {"totals": {"questions": 40, "status_counts": {"dreamt": 3}}},
    "more right than asked": {"totals": {"questions": 40, "correct": 99}},
    "less than nothing": {"totals": {"questions": -4, "correct": -2, "total_tokens": -1}},
    "no models": {"models": {}, "item_ids": [], "dataset": ""},
    "finished": {"finished": True, "totals": {"questions": 10**20}},
    "%2e%2e?#": {},
    "a surrogate \udcff": {},
}
"""Name of a run -> what is odd in its `run.json`."""
UNREADABLE = {
    "of later": ("{later}", "invented: Extra inputs are not permitted"),
    "torn": ('{"name": "to', "Invalid JSON: "),
    "no run": ("[]", "Input should be an object"),
    "empty": ("", "Invalid JSON: "),
}
"""Name of a run -> its `run.json`, what is said of it."""


def test_an_odd_run_hurts_no_other(unfinished: Path) -> None:
    manifest = json.loads((unfinished / "run.json").read_text())
    later = json.dumps({**manifest, "invented": 1})
    written = {name: json.dumps({**manifest, **odd}) for name, odd in ODD.items()}
    written |= {name: text.replace("{later}", later) for name, (text, _) in UNREADABLE.items()}
    for name, text in written.items():
        folder = unfinished.with_name(name)
        folder.mkdir()
        (folder / "run.json").write_text(text)
        (folder / LIVE_FILE).touch()
    with serving() as address:
        listed = httpx2.get(f"{address}/api/runs").json()
        page = httpx2.get(address).text
        assert {run["name"] for run in listed["runs"]} == {*ODD, unfinished.name}
        shown = page.count('<tr id="run-') + page.count('<p id="running-')
        assert shown == len(written) + 1
        assert {run["name"] for run in listed["unreadable"]} == UNREADABLE.keys()
        for run in listed["unreadable"]:
            assert "of another version of this program, or damaged (" in run["error"]
            assert UNREADABLE[run["name"]][1] in run["error"]
            assert escape(run["error"]) in page
            for path in ("", "/report", "/events"):
                answer = httpx2.get(f"{address}/runs/{quote(run['name'])}{path}")
                assert (answer.status_code, answer.headers["content-type"][:9]) == (
                    409,
                    "text/html",
                )
                assert escape(run["error"])[1:].rstrip(".") in answer.text  # with a capital
        for link in re.findall(r'<a href="(/runs/[^"]+)"', page):
            assert httpx2.get(f"{address}{link}").status_code == 200, link


def test_a_run_whose_name_is_not_utf8_has_all_its_pages(unfinished: Path) -> None:
    copy = unfinished.with_name(os.fsdecode(b"caf\xe9"))
    shutil.copytree(unfinished, copy)
    with serving() as address:
        board = httpx2.get(address).text
        (run,) = re.findall(r'href="(/runs/caf%E9)"', board)
        page = httpx2.get(f"{address}{run}").text
        links = re.findall(r'href="(/runs/[^"]+/questions/[^"]+)"', page)
        assert links
        compared = f"/compare?run=caf%EF%BF%BD&run={quote(unfinished.name)}"
        for path in (*links, f"{links[0]}/rate", f"/api{run}", f"{run}/report", compared):
            assert httpx2.get(f"{address}{path}", timeout=60).status_code == 200, path
        shutil.copytree(unfinished, unfinished.with_name(os.fsdecode(b"caf\xea")))
        unclear = httpx2.get(f"{address}{run}")
        assert unclear.status_code == 409, "never another run than the one that was asked for"
        assert "everal runs have this name but for bytes" in unclear.text


def test_a_trace_that_cannot_be_read_is_named(unfinished: Path) -> None:
    journal = unfinished / "trace_journal.jsonl"
    line = json.loads(journal.read_bytes().splitlines()[0])
    cut = base64.b64encode(base64.b64decode(line["trace"])[:-9]).decode()
    with journal.open("ab") as file:
        file.write(compact_json(line | {"trace": cut}) + b"\n")
    with serving() as address:
        page = httpx2.get(f"{address}/runs/{unfinished.name}").text
        answers = [
            httpx2.get(f"{address}{link}")
            for link in re.findall(r'href="(/runs/[^"]+/questions/[^"]+)"', page)
        ]
    (broken,) = [answer.text for answer in answers if answer.status_code == 500]
    assert f"{line['case_id']}.trace.jsonl.gz" in broken


def test_a_damaged_ledger_costs_no_question_its_page(unfinished: Path) -> None:
    ledger = unfinished / "calls.jsonl"
    rows = len(ledger.read_bytes().splitlines())
    with serving() as address:
        page = httpx2.get(f"{address}/runs/{unfinished.name}").text
        links = re.findall(r'href="(/runs/[^"]+/questions/[^"]+)"', page)
        whole = [httpx2.get(f"{address}{link}").text for link in links]
        with ledger.open("ab") as file:
            file.write(b"[]\n")
        damaged = [httpx2.get(f"{address}{link}") for link in links]
        rating = httpx2.get(f"{address}{links[0]}/rate")
        told = httpx2.get(f"{address}/api{links[0]}")
    assert links
    assert all("<dt>tokens</dt>" in page and "<dt>USD</dt>" in page for page in whole)
    for answer in damaged:
        assert answer.status_code == 200
        assert "The ledger is damaged: tokens and costs are unknown." in answer.text
        assert f" unknown. calls.jsonl line {rows + 1} is not a row of a ledger" in answer.text
        assert "<dt>seconds</dt>" in answer.text
        assert not re.search(r"<dt>(tokens|calls|USD)</dt>|\d tokens", answer.text)
    assert rating.status_code == 200
    assert (told.status_code, "line" in told.json()["error"]) == (500, True)


def start_again(folder: Path) -> None:
    manifest = read_manifest(folder)
    assert manifest is not None
    latest = manifest.invocations[-1].model_copy(update={"started_at": "2999-01-01T00:00:00Z"})
    anew = manifest.model_copy(update={"invocations": [*manifest.invocations, latest]})
    (folder / "run.json").write_text(anew.model_dump_json())


def test_a_question_of_a_run_that_was_stopped_is_not_under_way(unfinished: Path) -> None:
    why = "interrupted with 3 of 6 questions done"
    case = make_case_id(*ITEM)
    with feed(unfinished) as tell:
        tell(Started(QUESTION), TurnBegan("expert-1", "Cardiologist", "opinion"))
    with serving() as address:
        run = f"{address}/runs/{unfinished.name}"
        pages = [run, f"{run}/questions/{case}"]
        at_work = [httpx2.get(page).text for page in pages]
        write_end(unfinished, "2026-11-23T00:00:00Z", reason=why)
        stopped = [httpx2.get(page).text for page in pages]
    for page in at_work:
        assert "Cardiologist" in page
        assert "data-since" in page or "data-started" in page
        assert "stopped in" not in page
    for page in stopped:
        assert 'class="live"' not in page
        assert "data-since=" not in page
        assert "data-started=" not in page
        assert "stopped in first opinions" in " ".join(page.split())
    assert why[1:] in stopped[0]


def test_a_run_that_reached_its_limit_says_to_raise_it(unfinished: Path) -> None:
    write_end(unfinished, "2026-11-23T00:00:00Z", reason="the run has reached --token-limit 200")
    with serving() as address:
        page = " ".join(httpx2.get(f"{address}/runs/{unfinished.name}").text.split())
    assert "he run has reached --token-limit 200; raise it, and the command resumes" in page


@pytest.fixture
def different_runs(provider: FakeProvider, run: Run) -> list[str]:
    """Names of runs of two questions and of three."""
    for number in ("2", "3"):
        assert run("--num-samples", number, "--difficulty", "basic")[0] == 0
    return [path.parent.name for path in Path("output").glob("*/run.json")]


def test_what_cannot_be_compared_is_said_on_a_page_with_a_way_on(different_runs: list[str]) -> None:
    with serving() as address:
        query = "&".join(f"run={name}" for name in different_runs)
        refused = httpx2.get(f"{address}/compare?{query}")
        assert (refused.status_code, refused.headers["content-type"][:9]) == (400, "text/html")
        assert "different questions" in refused.text
        assert "--common" not in refused.text
        assert str(Path("output").absolute()) not in refused.text
        (way,) = re.findall(r'href="(/compare[^"]+)"', refused.text)
        compared = httpx2.get(address + way.replace("&amp;", "&"), timeout=60)
        assert (compared.status_code, "· 2 questions" in compared.text) == (200, True)
        assert 'href="/"' in refused.text
