"""Measure the wall-time cost of EXAID in a LangGraph program: working, failing, hanging, lying.

    python -m benchmarks.exaid_langgraph

The program is a graph of four nodes, two of them concurrent, on the fake provider with streamed
replies. It runs without a callback and with an `ExaidCallback` whose EXAID works, or whose endpoint
fails every call, hangs or lies. The variants are interleaved, so that a busy machine slows all of
them alike, and each ratio compares two consecutive runs. Closing EXAID after the result is
available is timed separately.
"""

from __future__ import annotations

import asyncio
import logging
import operator
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import Annotated, Any, TypedDict
from unittest.mock import patch

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langgraph.graph import END, START, StateGraph
from openai import AsyncOpenAI

from benchmarks.harness import (
    Provider,
    Result,
    judged,
    make_parser,
    p95,
    parse,
    show_machine,
    show_results,
    show_table,
)
from exaid_core import EXAID
from exaid_core.integrations.langchain import ExaidCallback

RATIO_AIM = 1.02
_MODEL = "gpt-4o-mini"
_CASE = "A man of 58 has had crushing chest pain for two hours, and sweats."
_WITHOUT = "without"
_WAYS: Mapping[str, Sequence[str]] = {
    "at work": ("--latency=0.3",),
    "failing": (f"--fail-model={_MODEL}",),
    "hanging": ("--rate=hang=1", "--hang-seconds=3600"),
    "lying": ("--latency=0.3", f"--lying-model={_MODEL}"),
}
"""Flags of the fake provider that serves EXAID, by name of its behavior."""


class StreamedChat(BaseChatModel):
    """A streaming chat model on an OpenAI-compatible endpoint."""

    client: Any

    @property
    def _llm_type(self) -> str:
        return "streamed-chat"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        raise NotImplementedError("the graph is asynchronous")

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        said = [{"role": "user", "content": str(message.text)} for message in messages]
        pieces = await self.client.chat.completions.create(model=_MODEL, messages=said, stream=True)
        async for piece in pieces:
            text = piece.choices[0].delta.content if piece.choices else ""
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=text or ""))
            if run_manager is not None:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk


class State(TypedDict):
    """The state passed between the nodes of the graph."""

    case: str
    notes: Annotated[list[str], operator.add]


def make_graph(model: BaseChatModel) -> Any:
    """Return a graph of four nodes: one, then two concurrent ones, then one."""

    def asks(task: str) -> Any:
        async def node(state: State) -> dict[str, list[str]]:
            text = ""
            async for chunk in model.astream("\n".join([task, state["case"], *state["notes"]])):
                text += chunk.text
            return {"notes": [text]}

        return node

    graph = StateGraph(State)
    for name in ("triage", "laboratory", "cardiology", "synthesis"):
        graph.add_node(name, asks(f"You speak for {name}. What do you say?"))
    graph.add_edge(START, "triage")
    graph.add_edge("triage", "laboratory")
    graph.add_edge("triage", "cardiology")
    graph.add_edge(["laboratory", "cardiology"], "synthesis")
    graph.add_edge("synthesis", END)
    return graph.compile()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one run of the graph."""

    notes: Sequence[str]
    wall: float
    """Seconds until the graph's result was available."""
    closing: float = 0.0
    """Seconds that closing EXAID took after the result."""
    summaries: int = 0
    health: str = ""


async def run_once(graph: Any, endpoint: str | None, closing: float) -> Outcome:
    """Run the graph once, with EXAID on `endpoint`, or without EXAID if it is None."""
    if endpoint is None:
        started = time.perf_counter()
        state = await graph.ainvoke({"case": _CASE, "notes": []})
        return Outcome(sorted(state["notes"]), time.perf_counter() - started)
    os.environ["OPENAI_BASE_URL"] = endpoint
    exaid = EXAID()
    started = time.perf_counter()
    config = {"callbacks": [ExaidCallback(exaid)]}
    state = await graph.ainvoke({"case": _CASE, "notes": []}, config=config)
    done = time.perf_counter()
    await exaid.close(closing)
    return Outcome(
        sorted(state["notes"]),
        done - started,
        time.perf_counter() - done,
        len(exaid.summaries),
        str(exaid.health.state),
    )


async def measure(
    base_url: str, endpoints: Mapping[str, str], rounds: int, closing: float
) -> list[list[Outcome]]:
    """Return outcomes by round, as pairs of a run without and a run with each EXAID endpoint."""
    async with AsyncOpenAI(base_url=base_url, api_key="benchmark", max_retries=0) as client:
        graph = make_graph(StreamedChat(client=client))
        for endpoint in (None, *endpoints.values()):  # warm-up: imports, connections, word lists
            await run_once(graph, endpoint, closing)
        found = []
        for number in range(rounds):
            outcomes = []
            for endpoint in endpoints.values():
                # Alternate the order, so that going first has no effect on the ratio.
                order = (None, endpoint) if number % 2 else (endpoint, None)
                pair = {each: await run_once(graph, each, closing) for each in order}
                outcomes += [pair[None], pair[endpoint]]
            found.append(outcomes)
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; return the exit status."""
    parser = make_parser("exaid_langgraph", __doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=12, help="of each program [%(default)s]")
    add("--latency", type=float, default=0.2, help="of the graph's model, s [%(default)s]")
    add("--latency-spread", type=float, default=0.3, help="up to so many more [%(default)s]")
    add("--closing", type=float, default=5.0, help="most seconds for EXAID to end [%(default)s]")
    quick = {"rounds": 1, "latency": 0.02, "latency_spread": 0.03, "closing": 1.0}
    options = parse(parser, argv, quick)
    show_machine("exaid_langgraph")
    logging.getLogger("exaid_core").addHandler(logging.NullHandler())  # health is in the table
    with patch.dict(os.environ), ExitStack() as stack:
        _choose_models()
        latency = (f"--latency={options.latency}", f"--latency-spread={options.latency_spread}")
        graph = stack.enter_context(Provider(*latency))
        providers = {way: stack.enter_context(Provider(*flags)) for way, flags in _WAYS.items()}
        endpoints = {way: provider.base_url for way, provider in providers.items()}
        found = asyncio.run(measure(graph.base_url, endpoints, options.rounds, options.closing))
    _show(found, tuple(_WAYS))
    return 0


def _choose_models() -> None:
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_LLM_PROVIDER"))]:
        del os.environ[name]
    os.environ["OPENAI_API_KEY"] = "benchmark"
    for role in ("BUFFER_AGENT", "SUMMARIZER"):
        os.environ[f"{role}_LLM_PROVIDER"] = "openai"
        os.environ[f"{role}_LLM_MODEL"] = _MODEL


def _show(found: Sequence[Sequence[Outcome]], ways: Sequence[str]) -> None:
    results: list[Result] = []
    rows = []
    differ = 0
    for index, way in enumerate(ways):
        pairs = [(outcomes[2 * index], outcomes[2 * index + 1]) for outcomes in found]
        ratios = [exaid.wall / without.wall for without, exaid in pairs]
        differ += sum(exaid.notes != without.notes for without, exaid in pairs)
        withs = [exaid for _, exaid in pairs]
        results.append(judged(f"{way}: wall / {_WITHOUT}", median(ratios), RATIO_AIM, digits=3))
        rows.append(
            {
                "EXAID": way,
                "wall, s": f"{median(one.wall for one in withs):.3f}",
                f"{_WITHOUT}, s": f"{median(without.wall for without, _ in pairs):.3f}",
                "ratio, 95%": f"{p95(ratios):.3f}",
                "closing EXAID, s": f"{median(one.closing for one in withs):.2f}",
                "summaries": f"{median(one.summaries for one in withs):g}",
                "health": ", ".join(sorted({one.health for one in withs})),
            }
        )
    show_table(f"{len(found)} runs of each, medians", rows)
    results.append(judged("runs with another result", differ, 0, digits=0))
    show_results("A LangGraph program with EXAID beside it", results)


if __name__ == "__main__":
    sys.exit(main())
