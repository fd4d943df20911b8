"""Load-test Medagen: many concurrent chats over WebSockets, on the fake provider.

    python -m benchmarks.medagen

The benchmark starts the real server in a separate process, with the scripted model of the tests,
which calls the rules and a guideline and then answers. Each chat is a user who sends the next
message when the last one is answered, for a minute. The times to the rules' result and to the
answer are measured, first for a single chat, then for all. Finally the model hangs: each answer
must arrive within the deadline and be at least urgent.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from websockets.asyncio.client import connect

from benchmarks.assistant import provider
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
from tests.demos.medagen.triage_models import careful

MESSAGES = (
    ("I have had a runny nose and sneeze since yesterday.", "self_care"),
    ("Tôi đau thắt ngực từ sáng nay.", "emergency"),
    ("My knee has been aching when I climb stairs.", "routine"),
    ("Bé 8 tháng tuổi bị sốt từ hôm qua.", "urgent"),
)
"""Messages, each with the triage level that the rules give it on its own."""

_URL = re.compile(r"http://\S+")


@dataclass(slots=True)
class Chatted:
    """The measured outcomes of chats."""

    signs: list[float] = field(default_factory=list)
    """Seconds from each message to the rules' result."""
    answers: list[float] = field(default_factory=list)
    """Seconds from each message to the answer."""
    errors: list[str] = field(default_factory=list)
    wrong: int = 0
    """Number of answers below the level that the rules give."""
    fallbacks: int = 0
    """Number of answers given without the model."""


@contextmanager
def server(base_url: str, folder: Path, settings: Mapping[str, str]) -> Iterator[str]:
    """Serve Medagen in a separate process and yield its address."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(__file__).resolve().parents[1]),
        "OPENAI_API_KEY": "benchmark",
        "OPENAI_BASE_URL": base_url,
        **settings,
    }
    command = [sys.executable, "-m", "demos.medagen.server", "--no-open", "--view-port", "0"]
    process = subprocess.Popen(
        [*command, "--rate", "1000000", "--turns", "1000"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        found = None
        while found is None:
            line = process.stdout.readline()
            if not line:
                raise RuntimeError("the server did not start")
            found = _URL.search(line)
        yield found.group().rstrip("/.")
    finally:
        process.terminate()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


async def chat(address: str, number: int, until: float, chatted: Chatted) -> None:
    """Run one chat until a deadline, with a new user id for each message; at least one is sent."""
    async with connect(address.replace("http", "ws", 1) + "/ws/chat") as socket:
        is_over = False
        while not is_over:
            text, level = MESSAGES[number % len(MESSAGES)]
            number += 1
            started = time.perf_counter()
            await socket.send(json.dumps({"text": text, "user_id": f"user{number}"}))
            signed = None
            while True:
                event = json.loads(await socket.recv())
                if event["type"] == "observation" and signed is None:
                    signed = time.perf_counter() - started
                if event["type"] == "error":
                    chatted.errors.append(event["message"])
                    break
                if event["type"] == "final_answer":
                    chatted.answers.append(time.perf_counter() - started)
                    chatted.signs.append(signed or 0.0)
                    _check(event["result"], level, chatted)
                    break
            is_over = time.perf_counter() >= until


def _check(result: Mapping[str, object], level: str, chatted: Chatted) -> None:
    order = ["self_care", "routine", "urgent", "emergency"]
    chatted.wrong += order.index(str(result["triage_level"])) < order.index(level)
    chatted.fallbacks += result["fallback"] is not None


async def chats(address: str, at_once: int, seconds: float) -> Chatted:
    """Run concurrent chats for a number of seconds and return their outcomes."""
    chatted = Chatted()
    until = time.perf_counter() + seconds
    found = await asyncio.gather(
        *(chat(address, number, until, chatted) for number in range(at_once)),
        return_exceptions=True,
    )
    chatted.errors += [f"{type(one).__name__}: {one}" for one in found if one is not None]
    return chatted


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; return the exit status."""
    parser = make_parser("medagen", __doc__)
    add = parser.add_argument
    add("--chats", type=int, default=200, help="at once [%(default)s]")
    add("--seconds", type=float, default=60.0, help="that they take [%(default)s]")
    add("--latency", type=float, default=0.3, help="of the model, s [%(default)s]")
    add("--deadline", type=float, default=3.0, help="where the model hangs, s [%(default)s]")
    quick = {"chats": 4, "seconds": 1.0, "latency": 0.02, "deadline": 0.5}
    options = parse(parser, argv, quick)
    show_machine("medagen")
    with tempfile.TemporaryDirectory() as folder:
        with (
            provider(options.latency, careful) as base_url,
            server(base_url, Path(folder), {}) as address,
        ):
            alone = asyncio.run(chats(address, 1, options.seconds / 4))
            together = asyncio.run(chats(address, options.chats, options.seconds))
        settings = {"MEDAGEN_DEADLINE": str(options.deadline)}
        with (
            provider(3600.0, careful) as base_url,
            server(base_url, Path(folder), settings) as address,
        ):
            hanging = asyncio.run(chats(address, max(1, options.chats // 10), options.deadline))
    _show(alone, together, hanging, options.chats, options.deadline)
    return 0


def _show(
    alone: Chatted, together: Chatted, hanging: Chatted, at_once: int, deadline: float
) -> None:
    rows = [
        {
            "chats at once": name,
            "answers": len(one.answers),
            "errors": len(one.errors),
            "rules, s, median": f"{median(one.signs):.2f}",
            "p95": f"{p95(one.signs):.2f}",
            "answer, s, median": f"{median(one.answers):.2f}",
            "p95 ": f"{p95(one.answers):.2f}",
        }
        for name, one in (("1", alone), (str(at_once), together), ("model hangs", hanging))
    ]
    show_table("Time of a turn", rows)
    for error in sorted({*alone.errors, *together.errors, *hanging.errors}):
        print(f"error: {error[:200]}")
    show_results(
        f"{at_once} chats at once",
        [
            judged("errors", len(together.errors), 0, digits=0),
            judged("answers below what the rules say", alone.wrong + together.wrong, 0, digits=0),
            judged("answers without the model", together.fallbacks, 0, digits=0),
            Result("answer: p95 / p95 of one", f"{p95(together.answers) / p95(alone.answers):.1f}"),
            judged(
                "model hangs: slowest answer / deadline",
                max(hanging.answers) / deadline,
                1.2,
            ),
            judged(
                "model hangs: answers below urgent, or the rules",
                hanging.wrong + len(hanging.answers) - hanging.fallbacks,
                0,
                digits=0,
            ),
        ],
    )


if __name__ == "__main__":
    sys.exit(main())
