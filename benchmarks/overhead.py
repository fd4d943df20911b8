"""Measure the CPU time per model call against the bare `openai` client.

    python -m benchmarks.overhead

Each program is run twice, with few and with many calls, at zero latency; the cost per call is the
difference in CPU seconds (user and system, of the whole process) over the difference in calls.
Startup therefore does not count, and all work for a question counts toward main.py: prompts,
schemas, validation, ledger, records on disk, and the array and report at the end. The bare client
sends bodies recorded from a run of main.py.

The benchmark also measures the cost of reading the text of a streamed reply
(`mdagents/agents/streaming.py`) against receiving it through the `openai` SDK and our provider,
over an in-process transport, so without a network.
"""

from __future__ import annotations

import asyncio
import json
import pstats
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import process_time

import httpx2
from openai import AsyncOpenAI

from benchmarks.bare_client import AIOHTTP, POOL, RAW, TYPED
from benchmarks.harness import (
    BASIC,
    CALLS_OF_BASIC,
    REPOSITORY,
    BenchmarkError,
    Program,
    Provider,
    Workspace,
    interleaved,
    judged,
    make_parser,
    median_ratio,
    parse,
    show_machine,
    show_results,
    show_table,
    workspace,
)
from mdagents.agents.replies import opinion
from mdagents.agents.streaming import ReplyStream
from mdagents_llm.chat import ChatMessage, ChatRequest
from mdagents_llm.model_configs import ModelInfo
from mdagents_llm.providers.openai_chat import OpenAIChat

AIM = 0.3
OURS = "main.py"
_NAMES = {
    OURS: OURS,
    TYPED: "bare openai client, typed create",
    RAW: "bare openai client, post(cast_to=httpx2.Response)",
    TYPED + AIOHTTP: "bare openai client over aiohttp, typed create",
    RAW + AIOHTTP: "bare openai client over aiohttp, post(cast_to=httpx2.Response)",
    POOL: "its URL and headers, over the pool of a run",
}
_IN_FLIGHT = 16  # the default of --max-connections


def cost_of_a_call(run: Callable[[int], float], few: int, many: int) -> float:
    """Return the CPU milliseconds per call.

    Args:
        run: Function that runs a program on a number of questions and returns its CPU seconds.
        few: Number of questions of the small run.
        many: Number of questions of the large run.
    """
    small, large = run(few), run(many)
    return (large - small) / ((many - few) * CALLS_OF_BASIC) * 1000


def measure(place: Workspace, few: int, many: int, rounds: int, ways: Sequence[str]) -> None:
    """Print the CPU time per call of each program.

    Args:
        place: Workspace of the runs.
        few: Number of questions of the small runs.
        many: Number of questions of the large runs.
        rounds: Number of rounds, each running all programs in turn.
        ways: Modes of the bare client (`benchmarks.bare_client`), `typed` first.
    """
    bodies = place.keep_bodies(min(few, 20))
    names = (OURS, *ways)
    loads: dict[str, list[float]] = {name: [] for name in names}
    with Provider() as provider:

        def start(name: str, questions: int) -> Program:
            if name == OURS:
                size = ("--num-samples", str(questions))
                return place.start(provider, place.new_state(), *BASIC, *size)
            calls = questions * CALLS_OF_BASIC
            return place.start_bare(provider, bodies, calls=calls, in_flight=_IN_FLIGHT, way=name)

        def run(name: str, questions: int) -> float:
            provider.reset()
            ended = start(name, questions).finish()
            seen = provider.stats()
            if seen.arrivals != questions * CALLS_OF_BASIC:
                raise BenchmarkError(f"{name} made {seen.arrivals} calls for {questions} questions")
            loads[name].append(seen.cpu_seconds / (seen.last_arrival - seen.first_arrival))
            return ended.cpu_seconds

        costs = interleaved(
            lambda name: cost_of_a_call(partial(run, name), few, many), names, rounds
        )

    ratios = {name: median_ratio(values, costs[TYPED], float) for name, values in costs.items()}
    rows = [
        {
            "program": _NAMES[name],
            "ms/call": f"{median(values):.3f}",
            "range": f"{min(values):.3f} to {max(values):.3f}",
            "x typed create": f"{ratios[name]:.2f}",
            "provider busy": f"{median(loads[name]):.0%}",
        }
        for name, values in costs.items()
    ]
    show_table(f"CPU of a call: {few} against {many} basic questions, medians of {rounds}", rows)
    result = judged("main.py / bare client, typed create", ratios[OURS], AIM)
    show_results("Overhead", [result])


# -- the text of a streamed reply -----------------------------------------------------------------

_SIZES = (500, 2_000, 8_000)  # characters
_DELTAS = 400


def measure_streaming(rounds: int) -> None:
    """Print the cost of receiving a streamed delta and of reading its text.

    Args:
        rounds: Number of replies of each size; medians are shown.
    """
    reply = opinion("ABCD", 40)
    rows = []
    for size in _SIZES:
        prose = ("The gums bleed, and vitamin C is what is missing. " * size)[: size - 50]
        text = json.dumps({"reasoning": prose, "answer": "C", "confidence": 0.9})
        cuts = [len(text) * index // _DELTAS for index in range(_DELTAS + 1)]
        deltas = [text[a:b] for a, b in pairwise(cuts)]
        reading, receiving = [], []
        for _ in range(rounds):
            stream = ReplyStream(reply, lambda _: None)
            started = process_time()
            for delta in deltas:
                stream.feed(delta)
            reading.append(process_time() - started)
            receiving.append(asyncio.run(_seconds_to_receive(deltas)))
        own, theirs = median(reading), median(receiving)
        rows.append(
            {
                "characters": f"{size:,}",
                "receiving, us/delta": f"{theirs / _DELTAS * 1e6:.1f}",
                "reading, us/delta": f"{own / _DELTAS * 1e6:.1f}",
                "ms/reply": f"{own * 1000:.2f}",
                "share": f"{own / theirs:.0%}",
            }
        )
    show_table(f"The text of a reply that is streamed in {_DELTAS} deltas", rows)


async def _seconds_to_receive(deltas: Sequence[str]) -> float:
    """Return the CPU seconds that the provider takes to receive a reply."""
    choices: list[dict[str, object]] = [
        {"index": 0, "delta": {"content": delta}, "finish_reason": None} for delta in deltas
    ]
    choices[-1]["finish_reason"] = "stop"
    usage = {"prompt_tokens": 1, "completion_tokens": 1}
    chunks: list[dict[str, object]] = [{"model": "m", "choices": [choice]} for choice in choices]
    chunks.append({"model": "m", "choices": [], "usage": usage})
    body = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks]

    async def events() -> AsyncIterator[bytes]:
        for event in (*body, b"data: [DONE]\n\n"):
            yield event

    def respond(request: httpx2.Request) -> httpx2.Response:
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, content=events())

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(respond))
    async with AsyncOpenAI(base_url="http://m/v1", api_key="k", http_client=http) as client:
        model = OpenAIChat(client, "m", ModelInfo())
        request = ChatRequest(messages=(ChatMessage("user", "Why?"),), max_tokens=1)
        started = process_time()
        await model.generate(request, lambda _: None)
        return process_time() - started


# -- where the time goes --------------------------------------------------------------------------

_LAYERS = (
    ("/mdagents_llm/answers/", "mdagents: answer parser"),
    ("/mdagents/scoring/", "mdagents: report at the end"),
    ("/mdagents/records/store", "mdagents: run on disk"),
    ("/mdagents/records/line_log", "mdagents: run on disk"),
    ("/mdagents/", "mdagents: teams, prompts, records"),
    ("/mdagents_llm/providers/", "mdagents_llm: provider"),
    ("/mdagents_llm/layers/cache", "cache"),
    ("sqlite3", "cache"),
    ("/mdagents_llm/", "mdagents_llm: layers, ledger"),
    ("/openai/", "openai"),
    ("/httpx2/", "httpx2"),
    ("/httpcore2/", "httpcore2, h11, anyio"),
    ("/h11/", "httpcore2, h11, anyio"),
    ("/anyio/", "httpcore2, h11, anyio"),
    ("/sniffio/", "httpcore2, h11, anyio"),
    ("/pydantic/", "pydantic"),
    ("pydantic_core", "pydantic"),
    ("/asyncio/", "asyncio"),
    ("select.epoll", "waiting for replies"),
    ("_socket", "sockets"),
    ("socket.py", "sockets"),
    ("/json/", "json"),
    ("_json", "json"),
    ("fsync", "fsync"),
)
_DEAREST = 25


def layer_of(file: str, function: str) -> str:
    """Return the layer that a profiled function belongs to.

    Args:
        file: File of the function; `~` for a C function.
        function: Name of the function; a description for a C function.
    """
    path = file.removeprefix(str(REPOSITORY.parent)) if "site-packages" not in file else file
    path = path.rpartition("site-packages")[2]
    where = function if file == "~" else path
    known = next((layer for mark, layer in _LAYERS if mark in where), None)
    if known:
        return known
    return "other built-in functions" if file == "~" else "other Python"


def profile(place: Workspace, few: int, many: int) -> None:
    """Print where main.py spends its time by layer, excluding startup.

    cProfile overstates the cost of small functions, so shares are only a hint.
    """
    small, large = (_profile_of(place, questions) for questions in (few, many))
    calls = (many - few) * CALLS_OF_BASIC
    by_layer: Counter[str] = Counter()
    by_function: Counter[str] = Counter()
    for key, seconds in large.items():
        file, line, function = key
        own = (seconds - small.get(key, 0.0)) / calls * 1e6
        by_layer[layer_of(file, function)] += own  # type: ignore[assignment]
        where = function if file == "~" else f"{'/'.join(Path(file).parts[-2:])}:{line} {function}"
        by_function[where] += own  # type: ignore[assignment]
    whole = sum(by_layer.values())
    layers = [
        {"layer": layer, "us/call": f"{own:.0f}", "share": f"{own / whole:.0%}"}
        for layer, own in by_layer.most_common()
    ]
    show_table("Where the time goes, under cProfile", layers)
    dearest = [
        {"function": name, "us/call": f"{own:.1f}"}
        for name, own in by_function.most_common(_DEAREST)
    ]
    show_table("The dearest functions, time of their own", dearest)


def _profile_of(place: Workspace, questions: int) -> dict[tuple[str, int, str], float]:
    """Return each function's own seconds in a run, by (file, line, function)."""
    state = place.new_state()
    file = state / "profile"
    size = ("--num-samples", str(questions))
    with Provider() as provider:
        python = ("-m", "cProfile", "-o", str(file))
        place.start(provider, state, *BASIC, *size, python=python).finish()
    entries = pstats.Stats(str(file)).stats  # type: ignore[attr-defined]
    return {key: entry[2] for key, entry in entries.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; return the exit status."""
    parser = make_parser("overhead", __doc__)
    add = parser.add_argument
    add("--few", type=int, default=30, help="questions of the small runs [%(default)s]")
    add("--many", type=int, default=330, help="questions of the large runs [%(default)s]")
    add("--rounds", type=int, default=5, help="runs of each program [%(default)s]")
    add("--replies", type=int, default=50, help="streamed replies of a size [%(default)s]")
    add("--no-aiohttp", action="store_true", help="leave the SDK's aiohttp transport out")
    add("-p", "--profile", action="store_true", help="show where the time of main.py goes as well")
    options = parse(parser, argv, quick={"few": 5, "many": 45, "rounds": 1, "replies": 5})
    show_machine("overhead")
    measure_streaming(options.replies)
    ways = [TYPED, RAW, POOL, TYPED + AIOHTTP, RAW + AIOHTTP]
    with workspace(options.many) as place:
        measure(
            place,
            options.few,
            options.many,
            options.rounds,
            ways[:3] if options.no_aiohttp else ways,
        )
        if options.profile:
            profile(place, options.few, options.many)
    return 0


if __name__ == "__main__":
    sys.exit(main())
