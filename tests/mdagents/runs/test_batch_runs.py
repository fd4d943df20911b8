"""Runs with `--batch`: the same records for half the price, whatever stops them on the way."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mdagents.records.batches import BATCHES_FILE, read_batches
from mdagents.runs.config import RunConfig
from mdagents.runs.forecast import forecast
from mdagents.scoring.formatting import as_text
from mdagents_llm.chat import TokenUsage
from mdagents_llm.config import parse_environment
from tests.conftest import REPOSITORY
from tests.fake_provider import FakeProvider
from tests.fake_provider.batches import BatchStatus
from tests.mdagents_llm.providers.test_provider_contract import served_by
from tests.support.environment import bare_environment
from tests.support.whole_runs import Run, records

pytestmark = pytest.mark.process

WIRES = {
    "openai": "openai/gpt-4o-mini",
    "responses": "openai/gpt-5.5-pro",
    "google": "google/gemini-2.5-flash-lite",
    "anthropic": "anthropic/claude-haiku-4-5",
}
COT = ("--method", "cot")
_OF_TIME = ("wall_seconds", "restart")


def write_questions(count: int) -> Path:
    path = Path("questions.jsonl")
    lines = (
        json.dumps(
            {
                "id": f"q{number}",
                "question": f"A patient of {number} years has bleeding gums. What is lacking?",
                "options": {"A": "Retinol", "B": "Thiamine", "C": "Ascorbic acid", "D": "Biotin"},
                "answer_idx": "C",
            }
        )
        for number in range(count)
    )
    path.write_text("\n".join(lines) + "\n")
    return path


def start(
    provider: FakeProvider, output: str, *flags: str, model: str = WIRES["openai"]
) -> subprocess.Popen[str]:
    """Start a run in a process of its own."""
    arguments = ("--dataset", "questions.jsonl", "--output-dir", output, "--model", model, *flags)
    return subprocess.Popen(
        [sys.executable, str(REPOSITORY / "main.py"), *arguments, "--display", "plain"],
        env=bare_environment(
            OPENAI_API_KEY="test-key",
            OPENAI_BASE_URL=provider.openai_base_url,
            GOOGLE_API_KEY="test-key",
            GOOGLE_GEMINI_BASE_URL=provider.gemini_base_url,
            ANTHROPIC_API_KEY="test-key",
            ANTHROPIC_BASE_URL=provider.anthropic_base_url,
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], status: int = 0) -> str:
    """Wait for a run and return what it said."""
    _, said = process.communicate(timeout=120)
    assert process.returncode == status, said
    return said


def until(happened: Callable[[], bool]) -> None:
    """Wait until something has happened at the provider."""
    for _ in range(12_000):
        if happened():
            return
        time.sleep(0.005)
    raise AssertionError("it never happened")


def has_submitted(provider: FakeProvider, steps: int, process: subprocess.Popen[str]) -> bool:
    return len(provider.batches.all) >= steps or process.poll() is not None


def statuses(provider: FakeProvider) -> list[BatchStatus]:
    return [batch.status for batch in provider.batches.all]


def submitted(provider: FakeProvider) -> Counter[str]:
    return Counter(key for batch in provider.batches.all for key in batch.keys)


def without_cost(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    same = [{k: v for k, v in record.items() if k not in _OF_TIME} for record in found]
    for record in same:
        record["token_usage"] = {**record["token_usage"], "cost_usd": None}
    return same


def costs(found: list[dict[str, Any]]) -> list[float]:
    return [record["token_usage"]["cost_usd"] for record in found]


def booked(output: str) -> tuple[TokenUsage, Counter[bool]]:
    """Return what the ledger of a run says was sent: (tokens, whether in batches)."""
    (file,) = Path(output).glob("*/calls.jsonl")
    rows = [json.loads(line) for line in file.read_text().split("\n") if line]
    fresh = [row for row in rows if not row["cached"]]
    tokens = (TokenUsage(**{n: row[n] for n in TokenUsage.__slots__}) for row in fresh)
    return sum(tokens, TokenUsage()), Counter(row["batched"] for row in fresh)


@pytest.mark.parametrize("wire", WIRES)
def test_300_questions_killed_while_polling_and_continued(
    provider: FakeProvider, wire: str
) -> None:
    write_questions(300)
    finish(start(provider, "at-once", *COT, model=WIRES[wire]))
    provider.reset()
    provider.batches.held = True
    process = start(provider, "batch", *COT, "--batch", model=WIRES[wire])
    until(lambda: any(batch.polls > 1 for batch in provider.batches.all))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    provider.batches.held = False
    said = finish(start(provider, "batch", *COT, "--batch", model=WIRES[wire]))
    assert f"batch of 300 calls at {WIRES[wire]}: ended, 300 answered" in said
    assert "batches    a step takes minutes to a day" in said
    assert "left at the provider" not in said
    (batch,) = provider.batches.all
    assert len(batch.keys) == 300
    assert len(provider.calls) == 300, "nothing was asked beside the batch"
    in_batches, at_once = records(Path("batch")), records(Path("at-once"))
    assert without_cost(in_batches) == without_cost(at_once)
    assert costs(in_batches) == pytest.approx([cost / 2 for cost in costs(at_once)], abs=1e-8)
    tokens, batched = booked("batch")
    assert tokens == served_by(provider)
    assert batched == {True: 300}


@pytest.mark.parametrize("seed", range(4))
def test_steps_killed_at_random_moments_end_like_an_uninterrupted_run(
    provider: FakeProvider, seed: int
) -> None:
    basic = ("--difficulty", "basic", "--exaid", "off")
    write_questions(8)
    finish(start(provider, "at-once", *basic))
    provider.reset()
    rng = random.Random(seed)
    for steps in range(1, 4):
        process = start(provider, "batch", *basic, "--batch")
        until(partial(has_submitted, provider, steps, process))
        time.sleep(rng.uniform(0.0, 1.5))
        process.send_signal(rng.choice((signal.SIGKILL, signal.SIGTERM)))
        process.communicate(timeout=30)
        if process.returncode == 0:
            break
    said = finish(start(provider, "batch", *basic, "--batch"))
    assert "left at the provider" not in said, "all was collected"
    assert max(submitted(provider).values()) == 1
    assert without_cost(records(Path("batch"))) == without_cost(records(Path("at-once")))
    assert costs(records(Path("batch"))) == pytest.approx(
        [cost / 2 for cost in costs(records(Path("at-once")))], abs=1e-8
    )


def test_the_second_ctrl_c_cancels_and_the_first_does_not(provider: FakeProvider) -> None:
    write_questions(5)
    provider.batches.held = True
    process = start(provider, "output", *COT, "--batch")
    until(lambda: any(batch.polls for batch in provider.batches.all))
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    while "again to cancel them" not in (line := process.stderr.readline()):
        assert line, "it ended"
    assert statuses(provider) == [BatchStatus.AT_WORK]
    process.send_signal(signal.SIGINT)
    said = finish(process, 128 + signal.SIGINT)
    assert "cancelled at the provider: batch_0000" in said
    assert said.count("\n") <= 3, "no traceback"
    assert statuses(provider) == [BatchStatus.CANCELLED]
    provider.batches.held = False
    finish(start(provider, "output", *COT, "--batch"))
    assert [record["status"] for record in records()] == ["answered"] * 5


def test_resume_goes_on_with_batches_and_a_run_without_them_says_what_it_leaves(
    provider: FakeProvider,
) -> None:
    write_questions(5)
    provider.batches.held = True
    process = start(provider, "output", *COT, "--batch")
    until(lambda: any(batch.polls for batch in provider.batches.all))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    said = " ".join(finish(start(provider, "output", *COT)).split())
    assert "what was asked in batches is asked again; only --batch collects batch_0000" in said
    assert len(provider.batches.all) == 1
    (folder,) = (path for path in Path("output").iterdir() if path.is_dir() and path.name[0] != ".")
    assert json.loads((folder / "run.json").read_text())["options"]["batch"] is False
    process = start(provider, "other", *COT, "--batch")
    until(lambda: len(provider.batches.all) > 1 and provider.batches.all[1].polls > 0)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    provider.batches.held = False
    finish(start(provider, "other", "--resume"))
    assert len(provider.batches.all) == 2, "--resume waits for what was submitted"
    assert len(records(Path("other"))) == 5


def test_a_fresh_start_names_the_batches_that_it_leaves(provider: FakeProvider) -> None:
    write_questions(5)
    provider.batches.held = True
    process = start(provider, "output", *COT, "--batch")
    until(lambda: any(batch.polls for batch in provider.batches.all))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    provider.batches.held = False
    said = " ".join(finish(start(provider, "output", *COT, "--batch", "--fresh")).split())
    assert "its batches continue at the provider, and nothing collects them: batch_0000" in said
    assert len(records()) == 5


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--method", "medagents"), "--method medagents can take 10 steps"),
        ((), "--difficulty adaptive can take 15 steps one after the other; it is for 3 at most"),
        ((*COT, "--exaid", "turn_end"), "EXAID summarizes while agents speak"),
        ((*COT, "--rpm", "5"), "--rpm is for calls that are made at once"),
        ((*COT, "--sample-time-limit", "5"), "--sample-time-limit is for calls"),
        ((*COT, "--cache", "off"), "--batch keeps the replies of one step"),
        ((*COT, "--cache", "only"), "--cache only makes no call; leave --batch out"),
        ((*COT, "--processes", "2"), "--batch runs in one process; leave --processes out"),
        ((*COT, "--model", "groq"), "groq takes no batches; leave --batch out"),
    ],
)
def test_what_batches_are_not_for_is_refused_in_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], message: str
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "test-key")
    status, _, err = run(*flags, "--batch", "--num-samples", "2")
    assert status == 2
    assert message in err
    assert err.count("\n") == 1
    dry = run(*flags, "--batch", "--num-samples", "2", "--dry-run")
    assert (dry[0], dry[2]) == (2, err), "a forecast promises nothing else"


def test_limits_are_said_to_hold_between_batches(provider: FakeProvider, run: Run) -> None:
    _, _, err = run(*COT, "--batch", "--num-samples", "2", "--cost-limit", "1", "--display", "log")
    assert "NOTE: limits are checked before a batch is submitted" in err


def test_the_forecast_knows_the_price_of_a_batch() -> None:
    write_questions(5)
    config = RunConfig(dataset="questions.jsonl", model="gpt-4o-mini", method="cot")
    environment = parse_environment({"OPENAI_API_KEY": "k"})
    at_once, in_batches = (
        forecast(config.model_copy(update={"batch": batch}), environment) for batch in (False, True)
    )
    for half, whole in zip(in_batches.whole(), at_once.whole(), strict=True):
        assert half.cost is not None
        assert whole.cost is not None
        assert half.cost == pytest.approx(whole.cost / 2)
    assert "each step waits for a batch" in as_text(in_batches.parts())


def test_a_damaged_journal_is_named(provider: FakeProvider, run: Run) -> None:
    assert run(*COT, "--batch", "--num-samples", "2")[0] == 0
    (file,) = Path("output").glob(f"*/{BATCHES_FILE}")
    assert [batch.is_collected for batch in read_batches(file)] == [True]
    file.write_text("nothing\n")
    manifest = file.with_name("run.json")
    content = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(content | {"finished": False}))
    file.with_name("samples.jsonl").write_text("")
    status, _, err = run(*COT, "--num-samples", "2")
    assert status == 2
    assert f"{BATCHES_FILE} line 1 says nothing about a batch" in err
