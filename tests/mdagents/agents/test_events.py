"""What observers are told of a question, by every team, and that they change and end nothing."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from exaid_core.trace.events import EventKind, TraceEvent
from mdagents.agents.case import Case
from mdagents.agents.events import (
    DebateMessage,
    Ended,
    Event,
    Recruited,
    Routed,
    Started,
    Summarised,
    TurnBegan,
    TurnEnded,
)
from mdagents.display import LogLines
from mdagents.display.failsafe import Failsafe
from mdagents.display.labels import phase_in_words
from mdagents.records.summaries import ItemKey
from mdagents.runs.config import RunConfig
from mdagents.runs.solver import Solver
from mdagents.settings import Difficulty, RoutedBy, Router
from mdagents.teams.names import baseline_names
from mdagents_llm.clock import Clock
from tests.fake_provider import FakeProvider
from tests.mdagents.teams.debates import chatter
from tests.support.whole_runs import WITH_TRAIN_SPLIT, Run, records

_ELSEWHERE = (*WITH_TRAIN_SPLIT, "reconcile")
"""The teams, and methods that a question alone is not enough for."""
WAYS: list[dict[str, Any]] = [
    *({"difficulty": level} for level in Difficulty),
    *({"method": method} for method in baseline_names() if method not in _ELSEWHERE),
    {"router": Router.DISAGREEMENT},
]


async def told(case: Case, **config: Any) -> list[Event]:
    """All events of a question, those of the bus at their place among them."""
    events: list[Event] = []
    case.tell = events.append
    case.bus.subscribe(events.append)
    settings = RunConfig(model="gpt-4o-mini", **config)
    await Solver(settings).solve(case, Clock(), settings.forced_level(0))
    return events


@pytest.mark.parametrize("way", WAYS, ids=str)
async def test_every_turn_is_told_from_its_beginning_to_its_end(
    provider: FakeProvider, case: Case, way: dict[str, Any]
) -> None:
    chatter(provider)
    events = await told(case, **way)

    assert events[0] == Started(case.question)
    assert isinstance(events[1], Routed)
    assert isinstance(events[-1], Ended)
    assert events[-1].answer in set(case.question.letters)
    began = [event for event in events if isinstance(event, TurnBegan)]
    ended = [event for event in events if isinstance(event, TurnEnded)]
    assert len(began) == len(provider.calls)
    assert Counter((e.agent, e.phase) for e in began) == Counter((e.agent, e.phase) for e in ended)
    assert not any(event.failed for event in ended)
    for turn in began:  # neither an id nor a label of the protocol is a word for a reader
        assert not re.search("[-_]", phase_in_words(turn.phase)), turn.phase
        assert turn.role != turn.agent
    for place, event in enumerate(events):
        if isinstance(event, TraceEvent) and event.kind is EventKind.DELTA:
            now = Counter(e.agent for e in events[:place] if isinstance(e, TurnBegan))
            now.subtract(e.agent for e in events[:place] if isinstance(e, TurnEnded))
            assert now[event.agent_id] == 1, "words come within a turn"
    assert {event.answer for event in ended} - {None}, "somebody answers"


async def test_a_panel_is_told_in_the_order_of_its_numbers(
    provider: FakeProvider, case: Case
) -> None:
    chatter(provider)
    events = await told(case, difficulty=Difficulty.INTERMEDIATE)
    (recruited,) = [event for event in events if isinstance(event, Recruited)]
    panel = [member.agent for member in recruited.members]
    sent = [event for event in events if isinstance(event, DebateMessage)][:3]
    assert [(message.sender, message.recipient) for message in sent] == [
        (panel[0], panel[1]),
        (panel[1], panel[2]),
        (panel[2], panel[0]),
    ]
    assert {message.text for message in sent} == {
        f"I disagree, think of the gums. #{number}" for number in (1, 2, 3)
    }


async def test_all_teams_are_told_at_once_with_their_leads_first(
    provider: FakeProvider, case: Case
) -> None:
    events = await told(case, difficulty=Difficulty.ADVANCED)
    (recruited,) = [event for event in events if isinstance(event, Recruited)]
    teams = list(dict.fromkeys(member.team for member in recruited.members))
    assert len(teams) == case.settings.teams
    leads = {e.agent for e in events if isinstance(e, TurnBegan) and e.phase.endswith("delegate")}
    firsts = {next(m.agent for m in recruited.members if m.team == team) for team in teams}
    assert firsts == leads


async def test_a_turn_that_fails_is_told(provider: FakeProvider, case: Case) -> None:
    provider.when("difficulty", "no JSON at all")
    events = await told(case)
    assert TurnEnded("router", "route", failed=True) in events
    routed = next(event for event in events if isinstance(event, Routed))
    assert (routed.level, routed.by) == (Difficulty.INTERMEDIATE, RoutedBy.FALLBACK)


class Recorder:
    """What a display was told in whole runs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.events: dict[ItemKey, list[Event]] = {}
        monkeypatch.setattr(LogLines, "happened", self._take)

    def _take(self, item: ItemKey, event: Event) -> None:
        self.events.setdefault(item, []).append(event)


def of_the_team(provider: FakeProvider) -> int:
    """Number of calls, without those of EXAID, whose prompts depend on who was faster."""
    return sum("physician in charge" not in call.text for call in provider.calls)


@pytest.mark.process
@pytest.mark.parametrize("exaid", ["off", "full_exaid"])
def test_replies_from_the_cache_are_told_alike(
    exaid: str, provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tell(*flags: str) -> dict[ItemKey, list[tuple[str, ...]]]:
        recorder = Recorder(monkeypatch)
        run("--num-samples", "2", "--difficulty", "basic", "--exaid", exaid, *flags)
        return {
            item: sorted(
                (type(event).__name__, getattr(event, "agent", ""), getattr(event, "phase", ""))
                for event in events
                if not isinstance(event, TraceEvent | Summarised)
            )
            for item, events in recorder.events.items()
        }

    fresh = tell()
    sent = of_the_team(provider)
    assert tell("--fresh") == fresh
    assert of_the_team(provider) == sent, "all replies were cached"
    assert len(fresh) == 2
    assert all(("Ended", "", "") in events for events in fresh.values())


@pytest.mark.process
def test_a_display_alone_does_not_stream(provider: FakeProvider, run: Run) -> None:
    run("--num-samples", "1", "--exaid", "off", "--display", "log")
    assert not any(call.body.get("stream") for call in provider.calls)
    run("--num-samples", "1", "--exaid", "full_exaid", "--fresh", "--cache", "off")
    assert any(call.body.get("stream") for call in provider.calls)


@pytest.mark.process
def test_an_observer_that_fails_changes_no_answer_and_is_noted(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("--num-samples", "3", "--exaid", "off", "--cache", "off")
    run(*arguments, "--output-dir", "before")
    before = records(Path("before"))
    asked = []

    def fail(self: Failsafe, item: ItemKey, event: Event) -> None:
        asked.append(item)
        raise ValueError("a fault\nof two lines")

    monkeypatch.setattr(Failsafe, "happened", fail)
    status, _, err = run(*arguments, "--output-dir", "after")
    assert (status, "Traceback" in err) == (0, False)
    after = [record for record in records(Path("after")) if record["watched"].pop("error")]
    assert len(after) == len(before) == len(asked), "it is not asked again for a question"
    for record in before:
        record["watched"].pop("error")
    for record in (*before, *after):
        record.pop("wall_seconds")
    assert after == before
