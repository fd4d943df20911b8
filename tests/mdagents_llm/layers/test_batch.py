"""Requests that go in batches: over each wire, with everything that can happen to a batch."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from mdagents_llm.chat import CallLabels, ChatMessage, ChatModel, ChatReply, ChatRequest
from mdagents_llm.clock import epoch_ns
from mdagents_llm.endpoints import ModelSpec, Runtime
from mdagents_llm.errors import ConfigError, EndpointDown, ErrorKind, ProviderError, StorageError
from mdagents_llm.layers.batch import Batching
from mdagents_llm.layers.batch_journal import Batch
from mdagents_llm.layers.retry import RetryPolicy
from mdagents_llm.ledger import CallRow, Ledger
from mdagents_llm.llm_registry import ModelRegistry
from mdagents_llm.providers.anthropic_batches import AnthropicBatches
from mdagents_llm.providers.gemini_batches import GeminiBatches
from mdagents_llm.providers.openai_batches import OpenAIBatches
from tests.fake_provider import FakeProvider, letter_from_pixels
from tests.fake_provider.batches import BatchStatus
from tests.mdagents_llm.providers.test_provider_contract import Choice, served_by, the_sum_of
from tests.support.pictures import picture_of
from tests.support.sweeps import seeds

MODELS = {
    "openai": "gpt-4o-mini",
    "google": "gemini-2.5-flash-lite",
    "anthropic": "claude-haiku-4-5",
}


class MemoryJournal:
    """A journal that outlives registries, as the file of a run outlives processes."""

    def __init__(self) -> None:
        self.kept: dict[str, Batch] = {}

    def batches(self) -> Iterable[Batch]:
        return deepcopy(list(self.kept.values()))

    def begin(self, batch: Batch) -> None:
        self.kept[batch.tag] = deepcopy(batch)

    def submitted(self, batch: Batch) -> None:
        self.kept[batch.tag].id, self.kept[batch.tag].is_found = batch.id, batch.is_found

    def spend(self, batch: Batch, key: str) -> None:
        self.kept[batch.tag].spent.add(key)

    def book(self, batch: Batch, key: str) -> None:
        self.kept[batch.tag].booked.add(key)

    def collected(self, batch: Batch) -> None:
        self.kept[batch.tag].is_collected = True

    def end(self, batch: Batch) -> None:
        self.kept[batch.tag].is_over = True


class Bench:
    """A wire, and processes that use it one after the other."""

    def __init__(
        self, name: str, provider: FakeProvider, make_runtime: Callable[..., Runtime]
    ) -> None:
        self.journal = MemoryJournal()
        self.said: list[str] = []
        urls = {
            "openai": provider.openai_base_url,
            "google": provider.gemini_base_url,
            "anthropic": provider.anthropic_base_url,
        }
        self.spec = ModelSpec(name, MODELS[name], urls[name])
        self._make_runtime = make_runtime

    @asynccontextmanager
    async def process(self, **settings: Any) -> AsyncIterator[ModelRegistry]:
        """Have a registry for as long as a process would."""
        batching = Batching(self.journal, self.said.append, linger=0.04)
        usual = {"batching": batching, "sleep": briefly, "retry": RetryPolicy(max_retries=3)}
        registry = ModelRegistry(self._make_runtime(**usual | settings))
        try:
            yield registry
        finally:
            await registry.aclose()

    async def ask(self, requests: Iterable[ChatRequest], **settings: Any) -> list[ChatReply]:
        """Ask all at once, in a process of its own."""
        async with self.process(**settings) as registry:
            return await all_of(registry.model(self.spec), requests)


async def briefly(seconds: float) -> None:
    await asyncio.sleep(min(seconds, 0.01))


async def until(happened: Callable[[], bool]) -> None:
    while not happened():  # noqa: ASYNC110 - in the provider, which has a thread of its own
        await asyncio.sleep(0.005)


async def all_of(model: ChatModel, requests: Iterable[ChatRequest]) -> list[ChatReply]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(model.generate(request)) for request in requests]
    return [task.result() for task in tasks]


def questions(count: int, **changes: Any) -> list[ChatRequest]:
    return [
        replace(
            ChatRequest(
                messages=(ChatMessage("user", f"Question {number}: which vitamin is lacking?"),),
                max_tokens=200,
                temperature=0.7,
                seed=1,
                labels=CallLabels(f"case-{number}", "opinion", "expert-1", "expert"),
            ),
            **changes,
        )
        for number in range(count)
    ]


@pytest.fixture(params=MODELS)
def bench(
    request: pytest.FixtureRequest, provider: FakeProvider, make_runtime: Callable[..., Runtime]
) -> Bench:
    """Each wire that takes batches in turn."""
    return Bench(request.param, provider, make_runtime)


def submitted(provider: FakeProvider) -> Counter[str]:
    """Return how often each request was submitted, in batches that were taken."""
    taken = (one for one in provider.batches.all if one.status is not BatchStatus.REFUSED)
    return Counter(key for batch in taken for key in batch.keys)


@pytest.mark.sweep
async def test_what_is_asked_at_once_goes_in_one_batch_at_its_price(
    provider: FakeProvider, bench: Bench, make_runtime: Callable[..., Runtime], rows: list[CallRow]
) -> None:
    replies = await bench.ask(questions(30, schema=Choice))
    assert all(isinstance(reply.parsed, Choice) and reply.batched for reply in replies)
    (batch,) = provider.batches.all
    assert len(batch.keys) == 30
    assert the_sum_of(rows) == served_by(provider)
    assert {row.case_id for row in rows} == {f"case-{number}" for number in range(30)}
    at_once = ModelRegistry(make_runtime())
    same = await all_of(at_once.model(bench.spec), questions(30, schema=Choice))
    await at_once.aclose()
    assert [reply.text for reply in same] == [reply.text for reply in replies]
    assert [row.batched for row in rows] == [True] * 30 + [False] * 30
    costs = [sum(row.cost_usd or 0 for row in rows if row.batched is way) for way in (True, False)]
    assert costs[0] == pytest.approx(costs[1] / 2)
    assert (
        bench.said[0]
        == f"batch of 30 calls at {bench.spec}: submitted as {told_id(batch.id, bench)}"
    )
    assert bench.said[-1] == f"batch of 30 calls at {bench.spec}: ended, 30 answered"


def told_id(name: str, bench: Bench) -> str:
    return f"batches/{name}" if bench.spec.provider == "google" else name


@pytest.mark.sweep
@pytest.mark.parametrize("fault", ["500", "400_temperature", "400_schema_unsupported", "429"])
async def test_a_line_that_failed_is_asked_again_in_another_batch(
    provider: FakeProvider, bench: Bench, rows: list[CallRow], fault: str
) -> None:
    provider.fail_next(fault, times=2)
    replies = await bench.ask(questions(10, schema=Choice))
    assert all(isinstance(reply.parsed, Choice) for reply in replies)
    assert [len(batch.keys) for batch in provider.batches.all] == [10, 2]
    assert Counter(row.outcome for row in rows)["ok"] == 10
    assert len(rows) == 12
    assert the_sum_of(rows) == served_by(provider)


async def test_a_line_at_a_limit_is_not_asked_again_in_batch_after_batch(
    provider: FakeProvider, bench: Bench, rows: list[CallRow]
) -> None:
    provider.fail_next("429", times=100)
    with pytest.raises(ExceptionGroup):
        await bench.ask(questions(1), retry=RetryPolicy(max_retries=2))
    assert [row.outcome for row in rows] == ["rate_limit"] * 3


async def test_a_line_that_can_only_fail_is_an_error_of_its_call(
    provider: FakeProvider, bench: Bench, rows: list[CallRow]
) -> None:
    provider.fail_next("context_length")
    with pytest.raises(ExceptionGroup) as caught:
        await bench.ask(questions(1))
    (error,) = caught.value.exceptions
    assert isinstance(error, ProviderError)
    assert error.kind is ErrorKind.CONTEXT_LENGTH
    assert [row.outcome for row in rows] == ["context_length"]


@pytest.mark.sweep
async def test_lines_of_a_batch_that_expired_are_asked_again(
    provider: FakeProvider, bench: Bench, rows: list[CallRow]
) -> None:
    provider.batches.expiring = 4
    replies = await bench.ask(questions(10))
    assert len(replies) == 10
    # Of Gemini's no reply can be had once it has expired.
    left = 10 if bench.spec.provider == "google" else 4
    assert [len(batch.keys) for batch in provider.batches.all] == [10, left]
    assert Counter(row.outcome for row in rows) == {"ok": 10, "unanswered": left}
    assert any(f"ended, {10 - left} answered" in line for line in bench.said)


@pytest.mark.parametrize("bench", ["openai", "anthropic"], indirect=True)
@pytest.mark.parametrize(
    "damaged", ["[]", "null", '{"id": "batch_req_1", "response"', '{"custom_id": null}', ""]
)
async def test_a_damaged_line_of_results_costs_only_its_own_request(
    provider: FakeProvider, bench: Bench, rows: list[CallRow], damaged: str
) -> None:
    provider.batches.rewrite = lambda lines: [damaged, *lines[1:]] if len(lines) > 1 else lines
    policy = RetryPolicy(max_retries=3, timeout=2.0)
    assert len(await bench.ask(questions(5), retry=policy)) == 5
    assert [len(batch.keys) for batch in provider.batches.all] == [5, 1]
    assert Counter(row.outcome for row in rows) == {"ok": 5, "unanswered": 1}


@pytest.mark.parametrize("bench", ["openai", "anthropic"], indirect=True)
async def test_an_error_in_a_repeated_line_does_not_replace_a_reply(
    provider: FakeProvider, bench: Bench, rows: list[CallRow]
) -> None:
    def repeated(lines: list[str]) -> list[str]:
        failed = {"response": None, "error": {"code": "x"}, "result": {"type": "expired"}}
        again = [json.dumps(json.loads(line) | failed) for line in lines]
        return [*again[:2], *lines, *again[2:]]

    provider.batches.rewrite = repeated
    assert len(await bench.ask(questions(5))) == 5
    assert set(submitted(provider).values()) == {1}
    assert {row.outcome for row in rows} == {"ok"}


@pytest.mark.parametrize("bench", ["openai"], indirect=True)
@pytest.mark.parametrize(
    "failed",
    [
        {"response": {"status_code": 0, "request_id": "", "body": {}}, "error": None},
        {"response": None, "error": {"code": "server_error", "message": "It failed."}},
        {"response": None, "error": "It failed."},
        {"response": None, "error": {"code": ["x"]}},
        {"response": None, "error": None},
    ],
)
async def test_a_request_that_the_provider_could_not_make_is_sent_again(
    provider: FakeProvider, bench: Bench, rows: list[CallRow], failed: dict[str, Any]
) -> None:
    def failing(lines: list[str]) -> list[str]:
        first = json.dumps(json.loads(lines[0]) | failed)
        return [first, *lines[1:]] if len(lines) > 1 else lines

    provider.batches.rewrite = failing
    policy = RetryPolicy(max_retries=3, timeout=2.0)
    assert len(await bench.ask(questions(5), retry=policy)) == 5
    assert [len(batch.keys) for batch in provider.batches.all] == [5, 1]


@pytest.mark.parametrize("bench", ["openai"], indirect=True)
async def test_replies_that_are_not_there_yet_are_waited_for(
    provider: FakeProvider, bench: Bench, rows: list[CallRow]
) -> None:
    provider.batches.late = 4
    assert len(await bench.ask(questions(5))) == 5
    assert set(submitted(provider).values()) == {1}
    assert {row.outcome for row in rows} == {"ok"}


@pytest.mark.parametrize("bench", ["openai", "google"], indirect=True)
async def test_a_batch_that_is_refused_as_a_whole_says_why(
    provider: FakeProvider, bench: Bench, rows: list[CallRow]
) -> None:
    # Anthropic refuses a batch at once, or not at all.
    provider.batches.refusing = "invalid_json_line"
    if bench.spec.provider == "google":  # whose reason may be a passing one
        assert len(await bench.ask(questions(5))) == 5
        assert len(provider.batches.all) == 2
        return
    with pytest.raises(ExceptionGroup) as caught:
        await bench.ask(questions(5))
    assert "the batch was refused: invalid_json_line" in str(caught.value.exceptions[0])
    assert {row.outcome for row in rows} == {"bad_request"}


@pytest.mark.sweep
async def test_a_process_that_ended_while_a_batch_was_at_work_finds_it_again(
    provider: FakeProvider, bench: Bench, rows: list[CallRow]
) -> None:
    provider.batches.held = True
    await end_after(bench, lambda: bool(provider.batches.all) and provider.batches.all[0].polls > 0)
    assert rows == []
    provider.batches.held = False
    assert len(await bench.ask(questions(20))) == 20
    assert set(submitted(provider).values()) == {1}
    assert len(provider.batches.all) == 1


async def end_after(bench: Bench, happened: Callable[[], bool]) -> None:
    """Ask, and end the process when something has happened."""
    async with bench.process() as registry:
        asking = asyncio.ensure_future(all_of(registry.model(bench.spec), questions(20)))
        await until(happened)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


@pytest.mark.sweep
async def test_a_kill_between_submission_and_note_submits_nothing_twice(
    provider: FakeProvider, bench: Bench
) -> None:
    provider.batches.held = True
    await end_after(bench, lambda: bool(provider.batches.all))
    for batch in bench.journal.kept.values():
        batch.id = ""
    provider.batches.held = False
    assert len(await bench.ask(questions(20))) == 20
    assert set(submitted(provider).values()) == {1}


@pytest.mark.sweep
async def test_a_kill_before_the_submission_submits_once(
    provider: FakeProvider, bench: Bench
) -> None:
    async with bench.process() as registry:
        registry.model(bench.spec)
        identity = f"{bench.spec} {bench.spec.base_url}"
        lost = Batch("lost", identity, "2026-11-24T00:00:00.000Z", ("a", "b"))
        bench.journal.begin(lost)
    assert len(await bench.ask(questions(3))) == 3
    assert len(provider.batches.all) == 1


async def test_a_submission_whose_reply_was_lost_is_found(
    provider: FakeProvider, bench: Bench
) -> None:
    provider.batches.failing = [0]
    assert len(await bench.ask(questions(5))) == 5
    assert set(submitted(provider).values()) == {1}


async def test_it_is_found_also_after_the_clock_of_the_system_was_turned_back(
    provider: FakeProvider, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(epoch_ns, "_start_ns", vars(epoch_ns)["_start_ns"] + 3600 * 10**9)
    provider.batches.failing = [0]
    assert len(await bench.ask(questions(5))) == 5
    assert set(submitted(provider).values()) == {1}


async def test_it_is_looked_for_until_the_endpoint_says_whether_it_is_there(
    provider: FakeProvider, bench: Bench
) -> None:
    provider.batches.failing = [0, 503, 500]
    assert len(await bench.ask(questions(5))) == 5
    assert set(submitted(provider).values()) == {1}


@pytest.mark.sweep
async def test_anothers_batch_of_the_same_size_is_not_taken_for_ours(
    provider: FakeProvider, bench: Bench, rows: list[CallRow]
) -> None:
    await bench.ask(questions(3))
    asked = questions(3, temperature=0.1)
    await bench.ask(asked)
    first, second = bench.journal.kept.values()
    bench.journal.kept.pop(first.tag)
    second.id, provider.batches.all[1:] = "", []
    assert len(await bench.ask(asked)) == 3
    assert len(provider.batches.all) == 2
    assert {row.outcome for row in rows} == {"ok"}


@pytest.mark.sweep
@pytest.mark.parametrize(("room", "says_when"), [(1, False), (3, True), (8, False)])
async def test_where_the_queue_of_the_provider_is_full_smaller_batches_follow_each_other(
    provider: FakeProvider, bench: Bench, rows: list[CallRow], room: int, says_when: bool
) -> None:
    provider.batches.room, provider.batches.seconds = room, 0.01
    provider.batches.says_when = says_when
    assert len(await bench.ask(questions(20))) == 20
    assert len(submitted(provider)) == 20
    assert set(submitted(provider).values()) == {1}
    assert Counter(row.outcome for row in rows) == {"ok": 20}
    assert any("not taken, next with 10 (" in line for line in bench.said)


@pytest.mark.sweep
async def test_what_finds_no_room_behind_batches_of_ours_waits_for_their_end(
    provider: FakeProvider, bench: Bench
) -> None:
    provider.batches.room, provider.batches.held = 12, True
    async with bench.process() as registry:
        model = registry.model(bench.spec)
        first = asyncio.ensure_future(all_of(model, questions(10)))
        await until(lambda: any(one.under_way() for one in registry.batched))
        second = asyncio.ensure_future(all_of(model, questions(10, temperature=0.1)))
        await until(lambda: any("before others have ended" in line for line in bench.said))
        provider.batches.held = False
        assert len(await first + await second) == 20
    taken = [one for one in provider.batches.all if one.status is not BatchStatus.REFUSED]
    assert [len(one.keys) for one in taken] == [10, 10]


@pytest.mark.sweep
async def test_a_queue_that_stays_full_ends_it(provider: FakeProvider, bench: Bench) -> None:
    provider.batches.room = 0
    with pytest.raises(ExceptionGroup) as caught:
        await bench.ask(questions(4), retry=RetryPolicy(timeout=0.1))
    error = caught.value.exceptions[0]
    assert isinstance(error, EndpointDown)
    assert "has no room for a batch: " in str(error)
    assert submitted(provider) == {}


@pytest.mark.parametrize("bench", ["openai"], indirect=True)
async def test_a_model_that_takes_no_batches_ends_it(provider: FakeProvider, bench: Bench) -> None:
    # The others say so with status 404: see above.
    provider.batches.refusing = "model_not_found"
    with pytest.raises(ExceptionGroup) as caught:
        await bench.ask(questions(3))
    error = caught.value.exceptions[0]
    assert isinstance(error, EndpointDown)
    assert "the batch was refused: model_not_found" in str(error)


@pytest.mark.sweep
@pytest.mark.parametrize("bench", ["google"], indirect=True)
async def test_the_hours_in_a_batch_that_failed_are_no_reason_to_give_up(
    provider: FakeProvider, bench: Bench
) -> None:
    # Only Gemini ends batches for reasons that pass.
    provider.batches.refusing, provider.batches.seconds = "internal", 0.5
    assert len(await bench.ask(questions(3), retry=RetryPolicy(timeout=0.4, base=0.01))) == 3
    assert len(provider.batches.all) == 2


@pytest.mark.sweep
async def test_an_endpoint_that_is_away_for_a_while_costs_nothing(
    provider: FakeProvider, bench: Bench
) -> None:
    provider.batches.failing = [503]
    provider.batches.seconds = 0.05
    async with bench.process() as registry:
        asking = asyncio.ensure_future(all_of(registry.model(bench.spec), questions(5)))
        await until(lambda: bool(provider.batches.all))
        provider.batches.failing = [503, 529, 500, 429]
        assert len(await asking) == 5
    assert set(submitted(provider).values()) == {1}


async def test_a_pause_of_nothing_between_calls_about_a_batch_is_lengthened(
    provider: FakeProvider, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    # CLIProxyAPI#5265: of less than a second, and a new attempt followed at once.
    monkeypatch.setattr("mdagents_llm.providers.sdk_chat.retry_after_seconds", lambda *_: 0.0)
    monkeypatch.setattr("mdagents_llm.providers.gemini.retry_after_seconds", lambda *_: 0.0)
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await briefly(seconds)

    provider.batches.held = True
    async with bench.process(sleep=sleep) as registry:
        asking = asyncio.ensure_future(all_of(registry.model(bench.spec), questions(2)))
        await until(lambda: bool(provider.batches.all))
        provider.batches.failing = [429] * 9
        await until(lambda: not provider.batches.failing)
        provider.batches.held = False
        assert len(await asking) == 2
    assert 0.0 not in pauses
    assert max(pauses) == 60.0


@pytest.mark.parametrize(("status", "says"), [(401, "is out of reach: 401"), (404, "404")])
async def test_a_wrong_key_and_an_endpoint_without_batches_end_it(
    provider: FakeProvider, bench: Bench, status: int, says: str
) -> None:
    provider.batches.failing = [status] * 10
    with pytest.raises(ExceptionGroup) as caught:
        await bench.ask(questions(3))
    error = caught.value.exceptions[0]
    assert isinstance(error, EndpointDown)
    assert says in str(error)
    assert "\n" not in str(error)
    if (bench.spec.provider, status) == ("openai", 404):
        assert "the endpoint takes no batches; leave --batch out" in str(error)


@pytest.mark.sweep
async def test_cancelled_batches_are_cancelled_at_the_provider_and_asked_again(
    provider: FakeProvider, bench: Bench, rows: list[CallRow]
) -> None:
    provider.batches.held = True
    async with bench.process() as registry:
        asking = asyncio.ensure_future(all_of(registry.model(bench.spec), questions(6)))
        await until(lambda: any(one.under_way() for one in registry.batched))
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        (ended,) = [await one.cancel() for one in registry.batched]
        assert [len(ids) for ids in ended] == [1, 0]
    assert [batch.status for batch in provider.batches.all] == [BatchStatus.CANCELLED]
    provider.batches.held = False
    assert len(await bench.ask(questions(6))) == 6
    assert Counter(row.outcome for row in rows) == {"unanswered": 6, "ok": 6}


@pytest.mark.sweep
@pytest.mark.parametrize("seed", seeds(6))
@pytest.mark.parametrize("room", [None, 5])
async def test_stopped_at_any_moment_nothing_is_submitted_twice_and_nothing_is_lost(
    provider: FakeProvider, bench: Bench, rows: list[CallRow], room: int | None, seed: int
) -> None:
    rng = random.Random(seed)
    provider.batches.seconds, provider.batches.room = 0.08, room
    kept: dict[int, ChatReply] = {}  # as the cache would keep them

    async def answer(model: ChatModel, number: int, request: ChatRequest) -> None:
        if number not in kept:
            kept[number] = await model.generate(request)

    async def process(seconds: float | None) -> None:
        async with bench.process() as registry:
            model = registry.model(bench.spec)
            working = asyncio.gather(
                *(answer(model, number, one) for number, one in enumerate(questions(12)))
            )
            with suppress(TimeoutError):
                await asyncio.wait_for(working, seconds)

    for _ in range(8):
        await process(rng.uniform(0.0, 0.12))
    await process(None)
    assert sorted(kept) == list(range(12))
    assert max(submitted(provider).values()) == 1
    assert Counter(row.case_id for row in rows) == {f"case-{number}": 1 for number in range(12)}
    assert the_sum_of(rows) == served_by(provider)


@pytest.mark.sweep
async def test_a_truncated_reply_is_read_again_by_a_later_process_and_booked_once(
    provider: FakeProvider, bench: Bench, rows: list[CallRow]
) -> None:
    provider.fail_next("cut_off")
    (first,) = await bench.ask(questions(1))
    (again,) = await bench.ask(questions(1))
    assert (first.text, first.stop_reason) == (again.text, again.stop_reason)
    assert first.stop_reason == "length"
    assert [row.cached for row in rows] == [False, True]
    assert set(submitted(provider).values()) == {1}


@pytest.mark.sweep
@pytest.mark.parametrize("fault", ["cut_off", "400_schema_unsupported", "400_temperature"])
async def test_what_was_asked_in_another_way_is_found_by_a_later_process(
    provider: FakeProvider, bench: Bench, rows: list[CallRow], fault: str
) -> None:
    provider.fail_next(fault, times=12)
    asked = questions(12, schema=Choice)
    async with bench.process() as registry:
        asking = asyncio.ensure_future(all_of(registry.model(bench.spec), asked))
        await until(lambda: bool(provider.batches.all))
        provider.batches.seconds = 0.1
        await until(lambda: len(provider.batches.all) == 2)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    assert all(isinstance(reply.parsed, Choice) for reply in await bench.ask(asked))
    assert [len(batch.keys) for batch in provider.batches.all] == [12, 12]
    assert the_sum_of([row for row in rows if not row.cached]) == served_by(provider)
    kept = Counter(row.outcome for row in rows if row.cached)
    assert kept == ({"truncated": 12} if fault == "cut_off" else {})


async def test_a_batch_that_is_not_known_for_a_moment_is_waited_for(
    provider: FakeProvider, bench: Bench
) -> None:
    provider.batches.held = True  # the faults are for its polls, not its creation or results
    async with bench.process() as registry:
        asking = asyncio.ensure_future(all_of(registry.model(bench.spec), questions(5)))
        await until(lambda: bool(provider.batches.all) and provider.batches.all[0].polls > 0)
        provider.batches.failing = [404, 404]
        await until(lambda: not provider.batches.failing)
        provider.batches.held = False
        assert len(await asking) == 5
    assert len(provider.batches.all) == 1


@pytest.mark.sweep
@pytest.mark.parametrize("days", [0, 30])
async def test_a_batch_that_is_gone_is_submitted_anew_if_it_is_old(
    provider: FakeProvider, bench: Bench, days: int
) -> None:
    provider.batches.held = True
    await end_after(bench, lambda: bool(provider.batches.all) and provider.batches.all[0].polls > 0)
    provider.batches.all.clear()
    provider.batches.held = False
    (batch,) = bench.journal.kept.values()
    batch.submitted_at = (datetime.now(UTC) - timedelta(days=days)).isoformat()
    if days:
        assert len(await bench.ask(questions(20))) == 20
        assert any("no longer there, submitted again" in line for line in bench.said)
        return
    with pytest.raises(ExceptionGroup) as caught:
        await bench.ask(questions(20))
    error = caught.value.exceptions[0]
    assert isinstance(error, EndpointDown)
    assert f"knows no batch {batch.id}" in str(error)
    assert "leave --batch out" not in str(error)
    assert not provider.batches.all


class FullDisk(MemoryJournal):
    """A journal that takes no end of a batch."""

    def end(self, batch: Batch) -> None:
        raise StorageError("cannot write: No space left on device")


@pytest.mark.sweep
@pytest.mark.parametrize("way", ["old", "full"])
async def test_a_full_disk_ends_requests_with_its_error(
    provider: FakeProvider, bench: Bench, way: str
) -> None:
    bench.journal = FullDisk()
    if way == "full":
        provider.batches.room = 0
    else:
        await end_after(bench, lambda: bool(provider.batches.all))
        provider.batches.all.clear()
        for batch in bench.journal.kept.values():
            batch.id, batch.submitted_at = "", "2026-01-01T00:00:00.000Z"
    with pytest.raises(ExceptionGroup) as caught:
        await asyncio.wait_for(bench.ask(questions(20)), 20)
    assert all(isinstance(error, StorageError) for error in caught.value.exceptions)


@pytest.mark.sweep
@pytest.mark.parametrize("bench", ["anthropic"], indirect=True)
async def test_without_names_ours_is_found_behind_anothers_and_anothers_is_never_cancelled(
    provider: FakeProvider, bench: Bench
) -> None:
    provider.batches.held = True
    await end_after(bench, lambda: bool(provider.batches.all))
    (ours,) = provider.batches.all
    body = [{"custom_id": str(n), "params": one} for n, one in enumerate(ours.bodies)]
    async with httpx2.AsyncClient(base_url=provider.anthropic_base_url) as client:
        await client.post("/v1/messages/batches", json={"requests": body})
    provider.batches.all.reverse()  # now another's came first
    for batch in bench.journal.kept.values():
        batch.id = ""
    async with bench.process() as registry:
        asking = asyncio.ensure_future(all_of(registry.model(bench.spec), questions(20)))
        await until(lambda: any(one.under_way() for one in registry.batched))
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        (ended,) = [await one.cancel() for one in registry.batched]
        assert [len(ids) for ids in ended] == [0, 1]
    assert [batch.status for batch in provider.batches.all] == [BatchStatus.AT_WORK] * 2
    provider.batches.held = False
    assert len(await bench.ask(questions(20))) == 20
    assert len(provider.batches.all) == 2


async def test_what_is_being_submitted_is_cancelled_too(
    provider: FakeProvider, bench: Bench
) -> None:
    provider.batches.held, provider.batches.delay = True, 0.5
    async with bench.process() as registry:
        asking = asyncio.ensure_future(all_of(registry.model(bench.spec), questions(6)))
        await until(lambda: bool(provider.batches.all))
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        (ended,) = [await one.cancel() for one in registry.batched]
    status = BatchStatus.CANCELLED
    if bench.spec.provider == "anthropic":  # it may be another's
        status = BatchStatus.AT_WORK
        ended = ended[::-1]
    assert [len(ids) for ids in ended] == [1, 0]
    assert [batch.status for batch in provider.batches.all] == [status]


@pytest.mark.sweep
async def test_what_an_earlier_process_had_cancelled_is_no_failed_attempt(
    provider: FakeProvider, bench: Bench
) -> None:
    provider.batches.held = True
    await end_after(bench, lambda: bool(provider.batches.all) and provider.batches.all[0].polls > 0)
    provider.batches.cancel(provider.batches.all[0])
    provider.batches.held = False
    assert len(await bench.ask(questions(20), retry=RetryPolicy(max_retries=0))) == 20


def test_a_provider_without_batches_says_so(make_runtime: Callable[..., Runtime]) -> None:
    settings = {"batching": Batching(MemoryJournal())}
    registry = ModelRegistry(make_runtime(**settings))
    with pytest.raises(ConfigError, match="local takes no batches; leave --batch out"):
        registry.model(ModelSpec("local", "smollm2-135m-instruct"))


def test_vertex_ai_takes_them_elsewhere(make_runtime: Callable[..., Runtime]) -> None:
    runtime = make_runtime(batching=Batching(MemoryJournal()), ledger=Ledger())
    variables = {**runtime.environment.variables, "GOOGLE_GENAI_USE_VERTEXAI": "true"}
    environment = replace(runtime.environment, variables=variables)
    registry = ModelRegistry(replace(runtime, environment=environment))
    with pytest.raises(ConfigError, match="Vertex AI takes batches only from Cloud Storage"):
        registry.model(ModelSpec("google", "gemini-2.5-flash-lite"))


async def test_pictures_go_in_batches(provider: FakeProvider, bench: Bench) -> None:
    """Their bytes count toward the size of a batch, and the journal holds none of them."""
    provider.must_see = lambda request: True
    provider.when(None, letter_from_pixels)
    options = "A) cedar\nB) amber"
    requests = [
        replace(one, messages=(ChatMessage("user", options, pictures=(picture_of(word),)),))
        for one, word in zip(questions(2), ("amber", "cedar"), strict=True)
    ]
    replies = await bench.ask(requests)
    assert [reply.text for reply in replies] == ["B", "A"]
    assert all(reply.batched for reply in replies)
    assert picture_of("amber").base64[:60] not in str(bench.journal.kept)


async def test_a_refused_picture_of_a_batch_ends_the_run(
    provider: FakeProvider, bench: Bench
) -> None:
    """As if it had been asked at once."""
    provider.fail_next("400_images")
    pictures = (picture_of("amber"),)
    request = replace(questions(1)[0], messages=(ChatMessage("user", "?", pictures=pictures),))
    with pytest.raises(ExceptionGroup) as caught:
        await bench.ask([request])
    assert "takes no pictures" in str(caught.value.exceptions[0])


async def test_a_batch_is_no_larger_than_its_provider_takes(
    provider: FakeProvider, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pictures that do not fit into one batch go in several."""
    picture = picture_of("amber", (400, 300), grain=True)
    for batches in (AnthropicBatches, GeminiBatches, OpenAIBatches):
        monkeypatch.setattr(batches, "most_bytes", 3 * len(picture.base64))
    message = ChatMessage("user", "A) cedar\nB) amber", pictures=(picture,))
    requests = [replace(one, messages=(message,), seed=n) for n, one in enumerate(questions(5))]
    await bench.ask([replace(one, temperature=n / 10) for n, one in enumerate(requests)])
    assert sorted(len(batch.keys) for batch in provider.batches.all) == [1, 2, 2]
