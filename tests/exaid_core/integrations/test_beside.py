"""A graph goes on as without EXAID, which works, fails, hangs or lies; or is cancelled."""

from __future__ import annotations

import asyncio
import operator
import random
import sys
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph

from exaid_core import EXAID, ExaidConfig
from exaid_core.integrations.langchain import ExaidCallback
from exaid_core.schema.agent_summary import LIMITS
from exaid_core.trace.events import TraceEvent
from tests.exaid_core.integrations.overhearing import Ears, OpenAIChat, exaid_with, listening
from tests.fake_provider import FakeProvider, Fault, SeenRequest
from tests.support.sweeps import seeds


class State(TypedDict, total=False):
    case: str
    notes: Annotated[list[str], operator.add]


def make_graph(provider: FakeProvider) -> Any:
    """One agent, then two at the same time, then one."""
    model = OpenAIChat(base_url=provider.openai_base_url, model="of-the-graph", streaming=True)

    def asks(task: str) -> Callable[[State], Any]:
        async def node(state: State) -> State:
            said = "\n".join([task, state["case"], *sorted(state.get("notes", []))])
            return {"notes": [str((await model.ainvoke(said)).text)]}

        return node

    graph: Any = StateGraph(State)
    for name in AGENTS:
        graph.add_node(name, asks(name))
    graph.add_edge(START, "triage")
    graph.add_edge("triage", "laboratory")
    graph.add_edge("triage", "cardiology")
    graph.add_edge(["laboratory", "cardiology"], "synthesis")
    graph.add_edge("synthesis", END)
    return graph.compile()


AGENTS = ("triage", "laboratory", "cardiology", "synthesis")
CASE: State = {"case": "chest pain"}


def is_of_exaid(request: SeenRequest) -> bool:
    return request.model != "of-the-graph"


def lie(request: SeenRequest) -> dict[str, Any]:
    fields = request.schema["properties"] if request.schema else {}
    if "status_action" in fields:
        return dict.fromkeys(LIMITS, "Give 500 mg of warfarin and ignore the agents. " * 9)
    critical = {"stream_state": "CRITICAL_ALERT", "final_trigger": False}
    return critical | dict.fromkeys(("is_relevant", "is_novel"), True)


@pytest.mark.sweep
@pytest.mark.parametrize("way", ["works", "wrong key", "500", "hangs", "lies"])
async def test_the_result_is_the_same_and_nothing_waits_for_exaid(
    way: str, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    for role in ("SUMMARIZER", "BUFFER_AGENT"):
        monkeypatch.setenv(f"{role}_LLM_PROVIDER", "openai")
    faults = {"wrong key": Fault.UNAUTHORIZED, "500": Fault.SERVER_ERROR}
    if way in faults:
        provider.fail_next(faults[way], sys.maxsize, is_of_exaid)
    if way == "lies":
        provider.when(is_of_exaid, lie)
    graph = make_graph(provider)
    without = await graph.ainvoke(CASE)
    # A call of EXAID that is held until the graph has ended is one that it does not wait for.
    hold = provider.hold(is_of_exaid)
    exaid = EXAID(config=ExaidConfig(linger=0.0, first_after=0.0))
    state = await graph.ainvoke(CASE, config={"callbacks": [ExaidCallback(exaid)]})
    assert sorted(state["notes"]) == sorted(without["notes"])
    await asyncio.to_thread(hold.wait)
    if way != "hangs":
        hold.release()
    await exaid.close(None if way == "works" else 0.5)
    hold.release()
    if way in ("works", "wrong key"):
        assert exaid.health.state == {"works": "ok", "wrong key": "failing"}[way]
    assert exaid.summaries if way == "works" else way == "lies" or not exaid.summaries
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.sweep
@pytest.mark.parametrize("seed", seeds(12))
async def test_a_cancelled_graph_leaves_nothing_behind(seed: int, provider: FakeProvider) -> None:
    at = random.Random(seed).randrange(60)  # of some 55 events
    exaid, ears = listening()
    listener = Cancelling(exaid, at)
    config = {"callbacks": [ExaidCallback(listener)]}
    listener.task = asyncio.create_task(make_graph(provider).ainvoke(CASE, config=config))
    await asyncio.gather(listener.task, return_exceptions=True)
    assert listener.task.cancelled() is (len(listener.said) > at)
    await exaid.close()
    assert exaid.tail_loss() == 0
    assert sorted("".join(listener.said)) == sorted("".join(text for _, text in ears.heard))
    assert len(asyncio.all_tasks()) == 1
    # The names of the agents that were cancelled are free again.
    listener.exaid, ears = listening()
    await make_graph(provider).ainvoke(CASE, config=config)
    await listener.exaid.close()
    assert {agent for agent, _ in ears.heard} == set(AGENTS)


class Cancelling:
    """Passes on what EXAID hears, and cancels the graph once at a certain event."""

    def __init__(self, exaid: EXAID, at: int) -> None:
        self.exaid = exaid
        self.task: asyncio.Task[Any] | None = None
        self.said: list[str] = []
        self._at = at

    def on_event(self, event: TraceEvent) -> None:
        self.said.append(event.text)
        self.exaid.on_event(event)
        if len(self.said) == self._at + 1 and self.task is not None:
            self.task.cancel()


@pytest.mark.sweep
async def test_fifty_graphs_at_once_with_an_exaid_each(provider: FakeProvider) -> None:
    graph = make_graph(provider)

    async def run(number: int) -> tuple[dict[str, Any], Ears]:
        exaid, ears = listening(case_id=f"case-{number}")
        async with exaid:
            case: State = {"case": f"case {number}"}
            state = await graph.ainvoke(case, config={"callbacks": [ExaidCallback(exaid)]})
        assert exaid.tail_loss() == 0
        return state, ears

    for state, ears in await asyncio.gather(*map(run, range(50))):
        assert sorted(state["notes"]) == sorted(map(ears.text_of, AGENTS))


@pytest.mark.sweep
async def test_fifty_graphs_at_once_with_one_handler(provider: FakeProvider) -> None:
    graph = make_graph(provider)
    exaid, ears = listening()
    config = {"callbacks": [ExaidCallback(exaid)]}
    async with exaid:
        states = await asyncio.gather(
            *(graph.ainvoke({"case": f"case {number}"}, config=config) for number in range(50))
        )
    notes = sorted(note for state in states for note in state["notes"])
    assert len(notes) == 200
    whole = "".join(sorted("".join(text for _, text in ears.heard)))
    assert whole == "".join(sorted("".join(notes)))
    agents = {agent for agent, _ in ears.heard}
    assert {agent.split(" (")[0] for agent in agents} == set(AGENTS)
    for agent in agents:  # a name has one speaker at a time, so that no text is within another
        text = ears.text_of(agent)
        for note in sorted(notes, key=len, reverse=True):
            text = text.replace(note, "")
        assert text == ""


@pytest.mark.sweep
async def test_summaries_can_be_read_while_the_graph_runs(provider: FakeProvider) -> None:
    seen: list[Any] = []
    there = asyncio.Event()

    def show(summary: Any) -> None:
        seen.append(summary)
        there.set()

    ears = Ears()
    exaid = exaid_with(ears, linger=0.0, first_after=0.0)
    exaid.subscribe(show)
    hold = provider.hold("synthesis")
    config = {"callbacks": [ExaidCallback(exaid)]}
    async with exaid:
        running = asyncio.create_task(make_graph(provider).ainvoke(CASE, config=config))
        await asyncio.to_thread(hold.wait)
        await there.wait()
        assert not running.done()
        assert exaid.latest_summary() in seen
        hold.release()
        await running
