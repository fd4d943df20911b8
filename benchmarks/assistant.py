"""Load-test the document assistant: many concurrent dialogues against one, on the fake provider.

    python -m benchmarks.assistant

Each dialogue asks the three questions of the example conversations in its own session, all in one
process over one database. The benchmark times the first sign (the message is being read), the first
step of an agent (its search, after the model has classified the message) and the answer. Each
answer must equal the one that a single dialogue gets, because no state is shared. The fake model
replies after a fixed time, so any extra wait under load is CPU time: all dialogues run in one
process and start at the same moment.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

from benchmarks.harness import (
    Result,
    judged,
    make_parser,
    p95,
    parse,
    show_machine,
    show_results,
    show_table,
)
from demos.document_assistant.assistant import DocumentAssistant
from mdagents_llm.config import Environment
from mdagents_llm.endpoints import ModelSpec, Runtime
from mdagents_llm.langchain_model import ChatModelAdapter
from mdagents_llm.ledger import Ledger
from mdagents_llm.llm_registry import ModelRegistry
from tests.fake_provider import FakeProvider, SeenRequest
from tests.support.document_model import document_model

QUESTIONS = (
    "In the March financial statement, what is the total operating expense for product line A?",
    "Summarize the main risks discussed in the uploaded compliance report.",
    "From the spreadsheet, what's the net margin for product B if revenue is 4,200 and costs equal "
    "fixed 1200 plus 12% of revenue?",
)


@dataclass(frozen=True, slots=True)
class Timed:
    """The reply and timings of one turn."""

    text: str
    first_sign: float
    """Seconds to the notice that the message is being read."""
    first_step: float
    """Seconds to the first tool call."""
    answer: float
    """Seconds to the answer."""


@contextmanager
def provider(latency: float, model: Callable[[SeenRequest], str] = document_model) -> Iterator[str]:
    """Serve a scripted model in a separate process and yield its base URL.

    Args:
        latency: Seconds before each reply.
        model: Function that returns the reply to a request.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there, latency, model), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        here.send(None)
        process.join()


def _serve(connection: Connection, latency: float, model: Callable[[SeenRequest], str]) -> None:
    with FakeProvider(keep_calls=False) as server:
        server.latency = latency
        server.when(None, model)
        connection.send(server.openai_base_url)
        connection.recv()


async def dialogue(assistant: DocumentAssistant, name: str) -> list[Timed]:
    """Run one dialogue in its own session and return its turns."""
    turns = []
    for question in QUESTIONS:
        steps: list[float] = []
        started = time.perf_counter()

        def on_step(_: str, steps: list[float] = steps) -> None:
            steps.append(time.perf_counter())

        reply = await assistant.process_message(question, name, on_step=on_step)
        ended = time.perf_counter()
        turns.append(Timed(reply.text, *(at - started for at in (*steps[:2], ended))))
    return turns


async def measure(folder: Path, base_url: str, sizes: Sequence[int]) -> list[list[list[Timed]]]:
    """Return the dialogues of each size; those of one size run concurrently."""
    environment = Environment({"OPENAI_API_KEY": "benchmark"})
    registry = ModelRegistry(Runtime(environment, Ledger(), max_connections=max(sizes)))
    spec = ModelSpec("openai", "gpt-4o-mini", base_url)
    try:
        model = ChatModelAdapter(registry.model(spec))
        async with DocumentAssistant.open(folder, model=model) as assistant:
            await dialogue(assistant, "warm-up")
            return [
                await asyncio.gather(
                    *(dialogue(assistant, f"d{size}-{number}") for number in range(size))
                )
                for size in sizes
            ]
    finally:
        await registry.aclose()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; return the exit status."""
    parser = make_parser("assistant", __doc__)
    add = parser.add_argument
    add("--dialogues", type=int, default=50, help="at once [%(default)s]")
    add("--rounds", type=int, default=10, help="of the dialogue alone [%(default)s]")
    add("--latency", type=float, default=0.3, help="of the model, s [%(default)s]")
    quick = {"dialogues": 5, "rounds": 1, "latency": 0.02}
    options = parse(parser, argv, quick)
    show_machine("assistant")
    with tempfile.TemporaryDirectory() as folder, provider(options.latency) as base_url:
        sizes = [1] * options.rounds + [options.dialogues]
        found = asyncio.run(measure(Path(folder), base_url, sizes))
    alone = [one for dialogues in found[:-1] for one in dialogues]
    _show(alone, found[-1])
    return 0


def _show(alone: Sequence[Sequence[Timed]], together: Sequence[Sequence[Timed]]) -> None:
    rows = []
    for name, dialogues in (("1", alone), (str(len(together)), together)):
        signs = [turn.first_sign * 1000 for turns in dialogues for turn in turns]
        steps = [turn.first_step for turns in dialogues for turn in turns]
        answers = [turn.answer for turns in dialogues for turn in turns]
        rows.append(
            {
                "dialogues at once": name,
                "turns": len(answers),
                "first sign, ms, median": f"{median(signs):.1f}",
                "p95": f"{p95(signs):.1f}",
                "first step, s, median": f"{median(steps):.2f}",
                "p95 ": f"{p95(steps):.2f}",
                "answer, s, median": f"{median(answers):.2f}",
                "p95  ": f"{p95(answers):.2f}",
            }
        )
    show_table("Time of a turn", rows)
    texts = [turn.text for turn in alone[0]]
    differ = sum([turn.text for turn in turns] != texts for turns in together)

    def ratio(value: str) -> float:
        several, one = (
            p95([getattr(turn, value) for turns in dialogues for turn in turns])
            for dialogues in (together, alone)
        )
        return several / one

    show_results(
        f"{len(together)} dialogues at once beside one",
        [
            Result("first sign: p95 / p95 of one", f"{ratio('first_sign'):.1f}"),
            Result("first step: p95 / p95 of one", f"{ratio('first_step'):.1f}"),
            Result("answer: p95 / p95 of one", f"{ratio('answer'):.1f}"),
            judged("dialogues with another answer", differ, 0, digits=0),
        ],
    )


if __name__ == "__main__":
    sys.exit(main())
