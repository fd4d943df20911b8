"""A run that is stopped at any moment, in any way, gives back all it holds and has right books.

In one process and in virtual time, so that hundreds of moments can be tried; `benchmarks.stops`
does the same over real processes.
"""

from __future__ import annotations

import asyncio
import errno
import json
import random
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness import write_questions
from mdagents.agents.events import Event
from mdagents.live import LiveFeed
from mdagents.records.case_files import read_case
from mdagents.records.line_log import LineLog
from mdagents.records.summaries import ItemKey
from mdagents.runs.engines.cluster import WorkerLost
from mdagents.runs.engines.messages import Orders, Start, packed, unpacked
from mdagents.runs.engines.worker import Worker
from mdagents.runs.models import make_runtime
from mdagents.runs.options import read_config, read_options
from mdagents.runs.plan import make_plan
from mdagents.runs.program import _status
from mdagents.runs.result import RunResult
from mdagents.runs.session import carry_out
from mdagents_llm.chat import ChatModel, ChatReply, ChatRequest, OnText, StopReason, TokenUsage
from mdagents_llm.clock import Clock
from mdagents_llm.config import Environment
from mdagents_llm.endpoints import Endpoints, Runtime
from mdagents_llm.errors import ClusterError, ErrorKind, ProviderError
from mdagents_llm.json_schema import reply_schema
from tests.fake_provider import fill
from tests.support.sweeps import seeds
from tests.support.virtual_time import VirtualTimeLoop

pytestmark = pytest.mark.sweep

QUESTIONS = 30
MOMENTS = 200
CONNECTIONS = 6
_WAYS = ("Ctrl-C", "twice", "SIGTERM", "cancelled", "wrong key", "full disk", "slow questions")
_STATUSES = {
    "Ctrl-C": {130}, "twice": {130}, "SIGTERM": {143}, "wrong key": {1}, "full disk": {1},
    "slow questions": {0, 1},
}  # fmt: skip


@dataclass
class Endpoint:
    """A model in this process that takes its time, and knows what it has served."""

    served: TokenUsage = field(default_factory=TokenUsage)
    in_flight: int = 0
    most_in_flight: int = 0
    is_locked: bool = False
    is_down: bool = False
    opened: list[Endpoints] = field(default_factory=list)

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        key = sha256("".join(m.content for m in request.messages).encode()).digest()
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(0.3 + key[0] / 200)
            if self.is_down:
                raise ProviderError("refused", kind=ErrorKind.UNREACHABLE)
            if self.is_locked:
                raise ProviderError("401 from here", kind=ErrorKind.AUTH, status=401)
            text = self._text(request, key)
            for start in range(0, len(text), 200):
                if on_text is not None:
                    on_text(text[start : start + 200])
                    await asyncio.sleep(0.02)
            usage = TokenUsage(sum(len(m.content) for m in request.messages) // 4, len(text) // 4)
            self.served += usage
            return ChatReply(text, usage, StopReason.STOP, "in-process")
        finally:
            self.in_flight -= 1

    @staticmethod
    def _text(request: ChatRequest, key: bytes) -> str:
        assert request.schema is not None
        return json.dumps(fill(reply_schema(request.schema), key, words=30))


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    """Stands for every endpoint. Traces are read without a thread, which has no virtual time."""
    endpoint = Endpoint()

    def provider(endpoints: Endpoints, *spec: object) -> tuple[ChatModel, str, int]:
        endpoint.opened.append(endpoints)
        return endpoint, "in-process", 16

    async def at_once(function: Any, *arguments: Any) -> Any:
        return function(*arguments)

    monkeypatch.setattr(Endpoints, "_provider", provider)
    monkeypatch.setattr("mdagents.runs.engines.observers.asyncio.to_thread", at_once)
    return endpoint


class _InProcess:
    """A worker in the loop of its driver, which may die at any moment."""

    def __init__(self, start: bytes) -> None:
        self._worker = Worker(start)
        self.is_closed = False
        self._death: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def die(self) -> None:
        if not self._death.done():
            self._death.set_result(None)

    async def greet(self) -> bytes:
        return await self._worker.greet()

    def hears(self, orders: Orders) -> None:
        """Is told what it is to do."""

    async def exchange(self, message: bytes) -> bytes:
        self.hears(unpacked(message))
        exchanging = asyncio.ensure_future(self._worker.exchange(message))
        try:
            either: set[asyncio.Future[Any]] = {exchanging, self._death}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if self._death.done():
                raise WorkerLost("it was killed", by_itself=True)
            return exchanging.result()
        finally:
            exchanging.cancel()
            await asyncio.wait([exchanging])

    async def close(self) -> None:
        await self._worker.close()
        self.is_closed = True


@pytest.fixture
def posts(monkeypatch: pytest.MonkeyPatch) -> list[_InProcess]:
    """Stands for processes: the workers that were hired."""
    hired: list[_InProcess] = []

    async def hire(environment: Environment) -> _InProcess:
        hired.append(_InProcess(packed(Start(environment))))
        return hired[-1]

    monkeypatch.setattr("mdagents.runs.engines.process_workers.start_process", hire)
    return hired


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where there is such a place: thousands of records are flushed to the disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        write_questions(Path(name) / "questions.jsonl", QUESTIONS)
        yield Path(name)


@dataclass
class Ended:
    """How a run ended."""

    result: RunResult | None
    """None: it was cancelled from outside."""
    seconds: float
    """Seconds of virtual time that the run took."""
    unhandled: list[dict[str, Any]]
    """What asyncio would have printed."""


def go(folder: Path, output: str, *flags: str, disturb: Any = None) -> Ended:
    """Run in virtual time; `disturb` is called in the loop with the task of the run."""
    arguments = [
        "--dataset", str(folder / "questions.jsonl"), "--output-dir", str(folder / output),
        "--model", "openai/gpt-4o-mini", "--difficulty", "basic", "--display", "none",
        "--max-connections", str(CONNECTIONS), *flags,
    ]  # fmt: skip
    config = read_config(read_options(arguments, {}))
    environment = Environment({"OPENAI_API_KEY": "key"})
    unhandled: list[dict[str, Any]] = []

    async def main() -> tuple[RunResult | None, float]:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: unhandled.append(context))
        clock = Clock(lambda: round(loop.time() * 1e9), loop.time)
        task = asyncio.ensure_future(
            carry_out(
                make_plan(config, environment, clock),
                environment,
                clock,
                stops_on_signals=True,
            )
        )
        if disturb is not None:
            disturb(task)
        await asyncio.wait([task])
        seconds = loop.time()
        for _ in range(5):
            await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task_left in left:
            task_left.cancel()
        unhandled.extend({"message": "a task was left behind", "task": t} for t in left)
        return (None if task.cancelled() else task.result()), seconds

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        result, seconds = runner.run(main())
    return Ended(result, seconds, unhandled)


def lines(folder: Path, output: str, name: str) -> list[dict[str, Any]]:
    found = list((folder / output).glob(f"*/{name}"))
    return [json.loads(line) for file in found for line in file.read_text().splitlines()]


def of_the_team(folder: Path, output: str) -> list[dict[str, Any]]:
    (array,) = (folder / output).glob("*.json")
    not_compared = ("exaid", "watched", "wall_seconds", "restart")
    return [
        {name: value for name, value in record.items() if name not in not_compared}
        for record in json.loads(array.read_text())
    ]


def raise_later(seconds: float, *numbers: signal.Signals) -> Any:
    def disturb(task: asyncio.Task[RunResult]) -> None:
        loop = asyncio.get_running_loop()
        for place, number in enumerate(numbers):
            loop.call_later(seconds + 0.4 * place, signal.raise_signal, number)

    return disturb


@dataclass(frozen=True)
class Moment:
    """When and how a run is stopped."""

    number: int
    way: str
    at: float
    """Seconds of virtual time."""
    flags: tuple[str, ...]

    @property
    def output(self) -> str:
        return f"run-{self.number}"

    @property
    def with_exaid(self) -> bool:
        return "full_exaid" in self.flags


def moments(seconds: float) -> Iterator[tuple[Moment, random.Random]]:
    rng = random.Random(11)
    for number in range(MOMENTS):
        flags = ["--exaid", "off" if number % 3 == 0 else "full_exaid"]
        flags += ["--cache", "off" if number % 2 else "on"]
        flags += ["--hedge-after", "0.8"] if number % 5 == 0 else []
        way = _WAYS[number % len(_WAYS)]
        yield Moment(number, way, rng.uniform(0.01, 0.95 * seconds), tuple(flags)), rng


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="signals are handled the POSIX way")
def test_a_run_that_is_stopped_at_any_moment(
    endpoint: Endpoint, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = go(folder, "whole", "--exaid", "off")
    assert whole.result is not None
    assert _status(whole.result) == 0
    assert endpoint.most_in_flight == CONNECTIONS, "calls are queued"
    expected = of_the_team(folder, "whole")
    assert len(expected) == QUESTIONS
    for moment, rng in moments(whole.seconds):
        endpoint.served, endpoint.is_locked = TokenUsage(), False
        with monkeypatch.context() as patch:
            ended = stopped(moment, rng, endpoint, folder, patch)
        assert_it_ended_well(moment, ended, endpoint)
        assert_the_files_are_right(moment, endpoint, folder)
        if moment.number % 9 == 0:
            endpoint.is_locked = False
            assert_it_goes_on(moment, folder, expected)


def stopped(
    moment: Moment,
    rng: random.Random,
    endpoint: Endpoint,
    folder: Path,
    patch: pytest.MonkeyPatch,
) -> Ended:
    def cancel(task: asyncio.Task[RunResult]) -> None:
        asyncio.get_running_loop().call_later(moment.at, task.cancel)

    def lock(task: asyncio.Task[RunResult]) -> None:
        asyncio.get_running_loop().call_later(moment.at, setattr, endpoint, "is_locked", True)

    disturb: Any = None
    limit: tuple[str, ...] = ()
    match moment.way:
        case "Ctrl-C":
            disturb = raise_later(moment.at, signal.SIGINT)
        case "twice":
            disturb = raise_later(moment.at, signal.SIGINT, signal.SIGINT)
        case "SIGTERM":
            disturb = raise_later(moment.at, signal.SIGTERM)
        case "cancelled":
            disturb = cancel
        case "wrong key":
            disturb = lock
        case "full disk":
            fill_the_disk(patch, after=rng.randrange(1, 300))
        case "slow questions":
            limit = ("--sample-time-limit", f"{rng.uniform(1.0, 8.0)}")
    return go(folder, moment.output, *moment.flags, *limit, disturb=disturb)


def assert_it_ended_well(moment: Moment, ended: Ended, endpoint: Endpoint) -> None:
    assert ended.unhandled == [], moment
    assert endpoint.in_flight == 0, moment
    for endpoints in endpoint.opened:
        for connections in endpoints.connections.values():
            assert (connections.in_flight, connections.waiting) == (0, 0), moment
    endpoint.opened.clear()
    if moment.way == "cancelled":
        assert ended.result is None or ended.seconds < moment.at, moment
    else:
        assert ended.result is not None, moment
        assert _status(ended.result) in _STATUSES[moment.way] | {0}, moment


def assert_the_files_are_right(moment: Moment, endpoint: Endpoint, folder: Path) -> None:
    rows = [row for row in lines(folder, moment.output, "calls.jsonl") if not row["cached"]]
    booked = sum(row["input_tokens"] + row["output_tokens"] for row in rows)
    if moment.way == "full disk":
        assert booked <= endpoint.served.total_tokens, moment
    else:
        assert booked == endpoint.served.total_tokens, moment
    kept = lines(folder, moment.output, "samples.jsonl")
    assert len({record["question_id"] for record in kept}) == len(kept), moment
    for record in kept:
        (run,) = (path.parent for path in (folder / moment.output).glob("*/run.json"))
        assert read_case(run, record["case_id"]) is not None, moment


def assert_it_goes_on(moment: Moment, folder: Path, expected: list[dict[str, Any]]) -> None:
    again = go(folder, moment.output, *moment.flags)
    assert again.result is not None
    assert _status(again.result) == 0, moment
    assert of_the_team(folder, moment.output) == expected, moment
    if moment.with_exaid:
        done = lines(folder, moment.output, "summaries.jsonl")
        assert len({line["question_id"] for line in done}) == QUESTIONS, moment


def fill_the_disk(patch: pytest.MonkeyPatch, after: int) -> None:
    """Let every line fail that is written after so many."""
    append, left = LineLog.append, iter(range(after))

    def full(log: LineLog, line: bytes) -> None:
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, "No space left on device")
        append(log, line)

    patch.setattr(LineLog, "append", full)


IN_WORKERS = ("--processes", "3")


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="signals are handled the POSIX way")
@pytest.mark.usefixtures("posts")
def test_a_run_in_workers_that_is_stopped_at_any_moment(
    endpoint: Endpoint, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = of_the_team(folder, _whole(folder))
    endpoint.most_in_flight = 0
    whole = go(folder, "distributed", "--exaid", "full_exaid", *IN_WORKERS)
    assert whole.result is not None
    assert _status(whole.result) == 0
    assert of_the_team(folder, "distributed") == expected
    assert endpoint.most_in_flight == CONNECTIONS, "all are used, and no more"
    for moment, rng in moments(whole.seconds):
        if moment.way == "cancelled":  # nobody is left who could take down what workers tell
            continue
        endpoint.served, endpoint.is_locked = TokenUsage(), False
        # What EXAID has not finished with goes on in this process: one run, two engines.
        moment = replace(moment, flags=(*moment.flags, *IN_WORKERS))
        with monkeypatch.context() as patch:
            ended = stopped(moment, rng, endpoint, folder, patch)
        assert_it_ended_well(moment, ended, endpoint)
        assert_the_files_are_right(moment, endpoint, folder)
        if moment.number % 9 == 0:
            endpoint.is_locked = False
            assert_it_goes_on(
                replace(moment, flags=moment.flags[: -len(IN_WORKERS)]), folder, expected
            )


@pytest.mark.parametrize("seed", seeds(6))
def test_workers_that_die_at_any_moment(
    seed: int, endpoint: Endpoint, folder: Path, posts: list[_InProcess]
) -> None:
    expected = of_the_team(folder, _whole(folder))
    chance = random.Random(seed)
    endpoint.served, endpoint.most_in_flight = TokenUsage(), 0

    def disturb(task: asyncio.Task[RunResult]) -> None:
        loop = asyncio.get_running_loop()

        def kill() -> None:
            chance.choice(posts).die()
            if loop.time() < 20:
                loop.call_later(chance.uniform(0.1, 3.0), kill)

        loop.call_later(chance.uniform(0.1, 2.0), kill)

    flags = ("--exaid", "full_exaid" if seed % 2 else "off", "--cache", "on" if seed % 3 else "off")
    ended = go(folder, "killed", *flags, *IN_WORKERS, disturb=disturb)
    assert ended.result is not None
    assert _status(ended.result) == 0
    assert ended.unhandled == []
    assert of_the_team(folder, "killed") == expected
    assert endpoint.most_in_flight <= CONNECTIONS
    assert len(posts) > 5, "some died"
    assert all(post.is_closed for post in posts)
    if seed % 2:
        done = lines(folder, "killed", "summaries.jsonl")
        assert len({line["question_id"] for line in done}) == QUESTIONS


def test_a_question_that_kills_workers_is_given_up_and_no_other(
    endpoint: Endpoint, folder: Path, posts: list[_InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = of_the_team(folder, _whole(folder))
    deadly = str(expected[20]["question"])

    def dies(post: _InProcess, orders: Orders) -> None:
        leases = [lease.source for of_run in orders.runs.values() for lease in of_run.leases]
        if any(source.text == deadly for source in leases):
            asyncio.get_running_loop().call_later(0.5, post.die)

    monkeypatch.setattr(_InProcess, "hears", dies)
    ended = go(folder, "deadly", "--exaid", "full_exaid", *IN_WORKERS)
    assert ended.result is not None
    assert (_status(ended.result), ended.unhandled) == (0, [])
    records = of_the_team(folder, "deadly")
    (given_up,) = [record for record in records if record["question"] == deadly]
    assert given_up["status"] == "api_error"
    assert given_up["error"] == "3 workers died while they answered this question"
    others = [record for record in expected if record["question"] != deadly]
    assert [record for record in records if record is not given_up] == others
    assert len(posts) == 3 + 3, "three and their successors"
    done = lines(folder, "deadly", "summaries.jsonl")
    assert len({line["question_id"] for line in done}) == QUESTIONS


def test_an_outage_is_waited_for_by_a_worker_to_which_nothing_has_replied(
    endpoint: Endpoint, folder: Path, posts: list[_InProcess]
) -> None:
    expected = of_the_team(folder, _whole(folder))

    def disturb(task: asyncio.Task[RunResult]) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(3.0, setattr, endpoint, "is_down", True)
        loop.call_later(3.1, lambda: posts[0].die())
        loop.call_later(180.0, setattr, endpoint, "is_down", False)

    ended = go(folder, "outage", "--exaid", "off", *IN_WORKERS, disturb=disturb)
    assert ended.result is not None
    assert (_status(ended.result), ended.unhandled) == (0, [])
    assert of_the_team(folder, "outage") == expected
    assert len(posts) == 3 + 1
    assert ended.seconds > 180


def test_a_worker_that_hangs_is_given_up(
    endpoint: Endpoint, folder: Path, posts: list[_InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = of_the_team(folder, _whole(folder))
    exchange, exchanges = _InProcess.exchange, iter(range(20))

    async def hangs(self: _InProcess, message: bytes) -> bytes:
        if next(exchanges, None) == 19:
            await asyncio.Event().wait()
        return await exchange(self, message)

    monkeypatch.setattr(_InProcess, "exchange", hangs)
    ended = go(folder, "silent", "--exaid", "off", *IN_WORKERS)
    assert ended.result is not None
    assert (_status(ended.result), ended.unhandled) == (0, [])
    assert of_the_team(folder, "silent") == expected
    assert len(posts) == 3 + 1
    assert ended.seconds > 300


@pytest.mark.usefixtures("posts")
def test_an_observer_that_fails_is_named_and_changes_no_answer(
    endpoint: Endpoint, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = of_the_team(folder, _whole(folder))

    def fails(feed: LiveFeed, item: ItemKey, event: Event) -> None:
        raise ValueError("no room\nin the feed")

    monkeypatch.setattr(LiveFeed, "happened", fails)
    ended = go(folder, "unseen", "--exaid", "off", *IN_WORKERS)
    assert ended.result is not None
    assert (_status(ended.result), ended.unhandled) == (0, [])
    assert of_the_team(folder, "unseen") == expected
    said = [record["watched"]["error"] for record in lines(folder, "unseen", "samples.jsonl")]
    assert [error for error in said if error] == ["no room in the feed"]


@pytest.mark.usefixtures("posts")
def test_workers_with_another_program_are_refused(
    endpoint: Endpoint, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mdagents.runs.engines.worker.code_digest", lambda: "another")
    with pytest.raises(ClusterError, match=r"\Athe program that workers find on [^\n]*another one"):
        go(folder, "other", "--exaid", "off", *IN_WORKERS)
    assert endpoint.served == TokenUsage()
    assert not list(folder.glob("other/*.json"))


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.usefixtures("posts")
def test_fewer_questions_than_workers_are_under_way(
    most: int, endpoint: Endpoint, folder: Path
) -> None:
    flags = ("--exaid", "off", "--max-samples", str(most), "--num-experts", "1")
    ended = go(folder, "few", *flags, *IN_WORKERS)
    assert ended.result is not None
    assert _status(ended.result) == 0
    assert endpoint.most_in_flight == most


@pytest.mark.parametrize(
    ("flags", "is_limited"),
    [((), False), (("--token-limit", "100000000"), True), (("--cost-limit", "1e6"), True)],
)
@pytest.mark.usefixtures("posts", "endpoint")
def test_workers_ask_for_a_limit_only_if_there_is_one(
    flags: tuple[str, ...], is_limited: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without one, a reply returns its connection before it is booked."""
    checks: list[object] = []

    def make(*arguments: Any, **more: Any) -> Runtime:
        if "may_send" in more:  # not of the endpoints, which belong to no run
            checks.append(more["may_send"])
        return make_runtime(*arguments, **more)

    monkeypatch.setattr("mdagents.runs.engines.worker.make_runtime", make)
    ended = go(folder, "limits", "--exaid", "off", "--num-samples", "4", *flags, *IN_WORKERS)
    assert ended.result is not None
    assert checks
    assert all((check is not None) is is_limited for check in checks)


def _whole(folder: Path) -> str:
    assert go(folder, "whole", "--exaid", "off").result is not None
    return "whole"
