"""A finished question is shown as it was while it was answered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from exaid_core.trace.traces import Trace
from mdagents.agents.events import TurnBegan
from mdagents.live import LIVE_FILE, LiveFeed
from mdagents.live.case import LiveCase
from mdagents.live.lines import FeedLine, Words
from mdagents.live.replay import replayed, role_of
from mdagents.live.run import LiveRun
from mdagents.records.calls import read_calls
from mdagents.records.case_files import read_case
from mdagents.records.sample import SampleRecord
from mdagents.records.summaries import ItemKey
from mdagents.scoring.transcripts import summaries_of
from tests.fake_provider import FakeProvider
from tests.mdagents.teams.debates import chatter
from tests.support.whole_runs import Run, records

pytestmark = pytest.mark.process

LEVELS = "basic,intermediate,advanced"


def replays(folder: Path) -> Iterator[tuple[Trace, list[FeedLine], LiveCase]]:
    """Each question of a run: its trace, its rebuilt feed, and the state after that."""
    calls = [row for _, row in read_calls(folder / "calls.jsonl")]
    for content in records():
        record = SampleRecord.model_validate(content)
        trace = read_case(folder, record.case_id)
        assert trace is not None
        of_case = [row for row in calls if row.case_id == record.case_id]
        again = LiveCase((record.question_id, record.epoch))
        lines = replayed(record, summaries_of(content), trace, of_case)
        for line in lines:
            again.take(line)
        yield trace, lines, again


def run_folder() -> Path:
    (folder,) = (path for path in Path("output").iterdir() if (path / "run.json").is_file())
    return folder


def finished(run: Run, *arguments: str) -> Iterator[tuple[LiveCase, LiveCase]]:
    """Each question of a run: as its feed told of it, and as its files do."""
    assert run(*arguments)[0] == 0
    live = LiveRun(run_folder() / LIVE_FILE)
    live.update()
    for _, _, again in replays(run_folder()):
        yield live.cases[again.item], again


def turns(case: LiveCase) -> list[tuple[object, ...]]:
    return sorted(
        (t.agent, t.phase, t.text, t.failed, t.answer or "", t.tokens) for t in case.turns
    )


def summarised_at() -> set[int]:
    """When EXAID's summarizer had its replies, as the ledger has it."""
    (path,) = Path("output").glob("*/calls.jsonl")
    return {call.ended_ms for _, call in read_calls(path) if call.role == "summarizer"}


@pytest.fixture(autouse=True)
def _kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The feed of a finished run stays."""
    monkeypatch.setattr(LiveFeed, "remove", lambda self: None)


@pytest.mark.parametrize(
    "flags",
    [
        ("--difficulty", LEVELS, "--exaid", "full_exaid"),
        ("--difficulty", LEVELS, "--exaid", "turn_end", "--epochs", "2"),
        ("--method", "cot_sc"),
        ("--exaid", "off"),
    ],
    ids=lambda flags: " ".join(flags),
)
def test_it_is_what_its_feed_told(provider: FakeProvider, run: Run, flags: tuple[str, ...]) -> None:
    chatter(provider)
    for live, again in finished(run, "--num-samples", "3", *flags):
        assert turns(again) == turns(live)
        assert again.question == live.question
        assert again.routed == live.routed
        assert again.votes == live.votes
        assert {m.agent for m in again.members} == {m.agent for m in live.members}
        assert {(f.agent, f.before, f.after) for f in again.flips} == {
            (f.agent, f.before, f.after) for f in live.flips
        }
        assert [d.message for d in again.messages] == [d.message for d in live.messages]
        assert [made.summary for made in again.summaries] == [m.summary for m in live.summaries]
        assert all(made.of_turns for made in again.summaries)
        assert {made.at for made in again.summaries} <= summarised_at()
        assert again.ended == live.ended
        assert (again.tokens, again.exaid_tokens) == (live.tokens, live.exaid_tokens)
        assert live.tokens


def test_lines_are_in_the_order_of_time_and_a_turn_begins_before_its_words(
    provider: FakeProvider, run: Run
) -> None:
    chatter(provider)
    for _, again in finished(run, "--num-samples", "3", "--difficulty", LEVELS):
        assert again.speaking == []
        assert [t.began_at for t in again.turns] == sorted(t.began_at for t in again.turns)
        assert all(t.seqs for t in again.turns if t.text)


def test_a_summary_is_of_the_turns_that_had_spoken_when_it_was_made(
    provider: FakeProvider, run: Run
) -> None:
    chatter(provider)
    assert run("--num-samples", "3", "--difficulty", LEVELS, "--exaid", "full_exaid")[0] == 0
    for trace, lines, again in replays(run_folder()):
        assert [turn.text for turn in again.turns] == [turn.text for turn in trace.turns]
        words = [line for line in lines if isinstance(line.what, Words)]
        assert len(words) <= len(trace.turns) + len(again.summaries) * len(trace.turns)
        assert len(words) < sum(len(turn.deltas) for turn in trace.turns)
        for made in again.summaries:
            by_then = [
                [delta.seq for delta in turn.deltas if delta.t_ms <= made.at]
                for turn in trace.turns
            ]
            assert made.of_turns == tuple(
                index
                for index, (turn, seqs) in enumerate(zip(trace.turns, by_then, strict=True))
                if turn.agent_id in made.summary.agents
                and seqs
                and any(a <= seqs[-1] and seqs[0] <= b for a, b in made.summary.source_seqs)
            )


@pytest.mark.parametrize("exaid", ["off", "turn_end", "full_exaid"])
def test_the_feed_forgets_each_question_when_its_last_call_was_made(
    provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch, exaid: str
) -> None:
    settled = list[ItemKey]()
    settle = LiveFeed.settled

    def noted(self: LiveFeed, item: ItemKey) -> None:
        settled.append(item)
        settle(self, item)

    monkeypatch.setattr(LiveFeed, "settled", noted)
    assert run("--num-samples", "3", "--epochs", "2", "--exaid", exaid)[0] == 0
    assert sorted(settled) == sorted((one["question_id"], one["epoch"]) for one in records())
    live = LiveRun(run_folder() / LIVE_FILE)
    live.update()
    calls = [row for _, row in read_calls(run_folder() / "calls.jsonl") if row.replied]
    told = sum(case.tokens + case.exaid_tokens for case in live.cases.values())
    assert told == sum(row.usage.total_tokens for row in calls)


@pytest.mark.parametrize(
    ("agent", "role"),
    [
        ("iat-1-cardiologist", "Cardiologist"),
        ("mdt12-3-heart-surgeon", "Heart Surgeon"),
        ("expert-2-nurse", "Nurse"),
        ("moderator", "Moderator"),
    ],
)
def test_who_has_no_role_in_the_record_is_called_by_id(agent: str, role: str) -> None:
    assert role_of(agent) == role
    assert TurnBegan(agent, role, "").role == role
