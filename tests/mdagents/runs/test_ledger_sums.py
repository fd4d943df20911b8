"""Every figure of tokens and cost is a sum over the rows of the ledger, whatever befell the run."""

from __future__ import annotations

import contextlib
import json
import math
import random
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mdagents.scoring.rows import read_output
from mdagents.settings import EXAID_ROLES
from tests.conftest import REPOSITORY
from tests.fake_provider import FakeProvider
from tests.support.environment import bare_environment
from tests.support.whole_runs import SAMPLE

pytestmark = pytest.mark.process

QUESTIONS = 10
FEW_IN_MEMORY = """
import runpy, sys
from mdagents.runs.engines import exaid_queue
exaid_queue.MOST_IN_MEMORY = 2
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Calls the program so that EXAID falls behind with three decided questions."""

Row = Mapping[str, Any]


def tokens(rows: Iterable[Row]) -> int:
    return sum(row["input_tokens"] + row["output_tokens"] for row in rows)


def cost(rows: Iterable[Row]) -> float:
    return math.fsum(row["cost_usd"] for row in rows)


def of_exaid(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row["role"] in EXAID_ROLES]


def of_teams(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row["role"] not in EXAID_ROLES]


def rows_of(record: Row, ledger: Iterable[Row]) -> list[Row]:
    key = record["case_id"], record["restart"]
    return [row for row in ledger if (row["case_id"], row["restart"]) == key]


def served_tokens(provider: FakeProvider) -> int:
    return provider.totals.input + provider.totals.output


def check_sums(printed: Row) -> list[Row]:
    """Compare all places that state tokens or cost of the only run; return its ledger."""
    (folder,) = (path.parent for path in Path("output").glob("*/run.json"))
    ledger = [json.loads(line) for line in (folder / "calls.jsonl").read_text().splitlines()]
    run_json = json.loads((folder / "run.json").read_text())
    totals, spent = run_json["totals"], run_json["spent"]
    records = json.loads(folder.with_name(f"{folder.name}.json").read_text())

    counted: list[Row] = []
    for record in records:
        rows = rows_of(record, ledger)
        counted += rows
        of_team, of_observer = record["token_usage"], record["exaid"]["token_usage"]
        assert of_team["total_tokens"] == tokens(of_teams(rows)), record["question_id"]
        assert of_observer["total_tokens"] == tokens(of_exaid(rows)), record["question_id"]
        assert of_team["cost_usd"] == pytest.approx(cost(of_teams(rows)), abs=1e-7)
        assert of_observer["cost_usd"] == pytest.approx(cost(of_exaid(rows)), abs=1e-7)
    assert totals["total_tokens"] == tokens(of_teams(counted))
    assert totals["exaid_tokens"] == tokens(of_exaid(counted))
    assert totals["cost_usd"] == pytest.approx(cost(of_teams(counted)), abs=1e-6)
    assert totals["exaid_cost_usd"] == pytest.approx(cost(of_exaid(counted)), abs=1e-6)

    paid = [row for row in ledger if not row["cached"]]
    assert spent["input_tokens"] + spent["output_tokens"] == tokens(paid)
    assert spent["exaid_tokens"] == tokens(of_exaid(paid))
    assert spent["cost_usd"] == pytest.approx(cost(paid))
    assert spent["exaid_cost_usd"] == pytest.approx(cost(of_exaid(paid)))

    assert printed["totals"] == {k: v for k, v in totals.items() if k != "exaid"}
    assert printed["spent"] == spent
    scored = read_output(folder).rows
    assert sum(row.exaid_tokens or 0 for row in scored) == totals["exaid_tokens"]
    return ledger


@pytest.mark.parametrize("seed", range(4))
def test_all_figures_are_sums_of_rows_after_stops_kills_and_limits(
    provider: FakeProvider, seed: int
) -> None:
    rng = random.Random(seed)
    provider.latency = 0.05
    environment = bare_environment(
        PYTHONPATH=str(REPOSITORY),
        OPENAI_API_KEY="test-key",
        OPENAI_BASE_URL=provider.openai_base_url,
    )

    def start(*flags: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [
                *(sys.executable, "-c", FEW_IN_MEMORY, str(REPOSITORY / "main.py")),
                *("--dataset", str(SAMPLE), "--num-samples", str(QUESTIONS), "--json"),
                *("--max-connections", "4", "--display", "none", "--cache", cache, *flags),
            ],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    cache = rng.choice(("on", "off"))
    for _ in range(3):
        how = rng.choice(("kill", "interrupt", "limit"))
        served = len(provider.calls)
        if how == "limit":
            limit = served_tokens(provider) + rng.randrange(5_000, 90_000)
            start("--token-limit", str(limit)).communicate()
            continue
        stopped = start()
        with contextlib.suppress(TimeoutError):  # so many were not needed
            provider.wait_for_calls(served + rng.randrange(5, 80), timeout=8)
        stopped.send_signal(signal.SIGKILL if how == "kill" else signal.SIGINT)
        if how == "interrupt":
            stopped.send_signal(signal.SIGINT)
        stopped.communicate()
    whole = start()
    printed, errors = whole.communicate()
    assert whole.returncode == 0, errors
    ledger = check_sums(json.loads(printed))
    assert tokens(row for row in ledger if not row["cached"]) <= served_tokens(provider)
