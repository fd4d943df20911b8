"""A run on the fake provider, followed from its feed while it works."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from exaid_core.schema.agent_summary import AgentSummary, SummaryDraft
from mdagents.agents.events import Ended, Started, Summarised
from mdagents.datasets.questions import Question
from mdagents.live import LIVE_FILE, LiveFeed
from mdagents.live.run import LiveRun
from tests.fake_provider import FakeProvider
from tests.mdagents.records.test_calls import ROW
from tests.support.whole_runs import Run, records

pytestmark = pytest.mark.process

ARGUMENTS = ("--num-samples", "4", "--difficulty", "basic,intermediate", "--exaid", "full_exaid")


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The feed of a finished run stays."""
    monkeypatch.setattr(LiveFeed, "remove", lambda self: None)


def feed_of() -> Path:
    (folder,) = (path for path in Path("output").iterdir() if (path / "run.json").is_file())
    return folder / LIVE_FILE


@pytest.mark.usefixtures("kept")
def test_a_run_that_is_followed_is_the_run_on_the_disk(provider: FakeProvider, run: Run) -> None:
    provider.when('"participate"', {"participate": True})
    assert run(*ARGUMENTS)[0] == 0
    live = LiveRun(feed_of())
    live.update()
    assert live.under_way == []
    assert live.snapshot is not None
    found = records()
    assert len(live.cases) == len(found)
    for record in found:
        case = live.cases[record["question_id"], record["epoch"]]
        assert case.ended is not None
        assert case.question is not None
        assert case.question.text == record["question"]
        assert case.ended.answer == (record["predicted"] or None)
        last = {o["agent"]: o["answer"] for o in record["opinions"] if o["answer"]}
        assert case.votes == last
        messages = [(m["sender"], m["recipient"], m["text"]) for m in record["interactions"]]
        assert [(d.message.sender, d.message.recipient, d.message.text) for d in case.messages] == (
            messages
        )
        assert len(case.summaries) == len(record["exaid"]["summaries"])
        assert all(made.of_turns for made in case.summaries)
        assert all(turn.text and turn.ended_at for turn in case.turns)


def test_a_finished_run_leaves_no_feed_and_an_unfinished_one_goes_on_with_it(
    provider: FakeProvider, run: Run
) -> None:
    assert run("--num-samples", "6", "--difficulty", "basic", "--token-limit", "5000")[0] == 1
    first = LiveRun(feed_of())
    first.update()
    assert first.cases
    assert run("--resume")[0] == 0
    assert not feed_of().exists()


@pytest.mark.parametrize("largest", [20_000, 20_000_000])
def test_exaids_work_on_a_question_decided_long_ago_does_not_reopen_it(
    largest: int, tmp_path: Path
) -> None:
    path = tmp_path / LIVE_FILE
    question = Question("1", "Which?", {"A": "One", "B": "Two"}, "A", {"A": "A", "B": "B"})
    summary = AgentSummary.from_draft(SummaryDraft(key_findings="Fever."))
    following = LiveRun(path)
    with LiveFeed(path, count().__next__, print, largest=largest) as feed:
        for number in range(300):
            feed.happened((str(number), 1), Started(question))
            feed.happened((str(number), 1), Ended("A", None))
            feed.write()
        following.update()
        for number in range(300):
            feed.booked(replace(ROW, case_id=f"case-{number}"))
            feed.happened((str(number), 1), Summarised(1, summary))
            feed.write()
    following.update()
    late = LiveRun(path)
    late.update()
    assert following.under_way == late.under_way == []
    assert len(late.cases) <= len(following.cases) <= 200


def test_what_is_said_is_read_while_it_is_said(provider: FakeProvider, run: Run) -> None:
    provider.latency = 0.8  # long enough to be seen on a busy machine
    seen: list[str] = []
    over = threading.Event()

    def follow() -> None:
        live = None
        while not over.is_set():
            if live is None and list(Path("output").glob(f"*/{LIVE_FILE}")):
                live = LiveRun(feed_of())
            if live is not None:
                live.update()
                seen.extend(t.role for case in live.under_way for t in case.speaking)
            time.sleep(0.02)

    follower = threading.Thread(target=follow)
    follower.start()
    try:
        assert run("--num-samples", "2", "--difficulty", "basic")[0] == 0
    finally:
        over.set()
        follower.join()
    assert "Arbitrator" in seen
