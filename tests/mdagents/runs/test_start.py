"""What a start loads before it prints the help, and before its first request."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fake_provider import FakeProvider

MAIN = Path(__file__).resolve().parents[3] / "main.py"

NEVER = [
    "genai_prices",
    "rich",
    "tqdm",
    "pandas",
    "numpy",
    "prettytable",
    "concurrent.futures.process",
    "mdagents.runs.forecast",
    "mdagents.scoring.report",
    "mdagents.scoring.rows",
]
"""Modules that neither the help nor the questions of a run without a display need."""

NOT_FOR_A_REQUEST = [
    "openai.types.responses.response",
    "openai.types.batch",
    "openai.types.image",
    "httpcore2",
    "exaid_core.exaid",
    "exaid_core.checks.shortening",
    "mdagents_llm.answers",
]
"""Modules that a request does not need: of the SDK and its HTTP client, which our own pool goes
around; rules for replies and summaries."""

NOT_FOR_HELP = [
    "openai",
    "httpx2",
    "aiohttp",
    "yaml",
    "filelock",
    "exaid_core.tokenizer",
    "mdagents.agents.case",
    "mdagents.datasets.dataset",
    "mdagents.datasets.question_records",
    "mdagents.records.sample",
    "mdagents.records.store",
    "mdagents.teams.methods",
    "mdagents.runs.session",
    "mdagents.runs.plan",
    "mdagents.display.display",
    "importlib.metadata",
]

AT_THE_FIRST_REQUEST = """
import gc, os, sys
from mdagents_llm.providers.pool import Pool
from mdagents.runs.program import main

async def post(*_):
    print(gc.isenabled(), gc.get_freeze_count() > 0, *sys.modules, flush=True)
    os._exit(0)

Pool.post = post
gc.disable()  # as main.py does
main(sys.argv[1:], skip=[], show_interaction_table=False)
"""

AFTER_THE_HELP = """
import runpy, sys
try:
    runpy.run_path(sys.argv.pop(1), run_name="__main__")
finally:
    print(*sys.modules, file=sys.stderr)
"""


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)


@pytest.mark.process
def test_the_help_loads_nothing_that_only_a_run_needs() -> None:
    done = run_python(AFTER_THE_HELP, str(MAIN), "--help")
    assert "--dataset" in done.stdout
    assert not {*done.stderr.split()} & {*NEVER, *NOT_FOR_HELP}


@pytest.mark.process
def test_a_run_loads_prices_and_reports_after_its_first_request(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_base_url)
    run = ("--dataset", "medqa-sample", "--model", "gpt-4o-mini", "--exaid", "off")
    done = run_python(
        AT_THE_FIRST_REQUEST, *run, "--display", "none", "--output-dir", str(tmp_path)
    )
    collects, has_frozen, *modules = done.stdout.split()
    assert (collects, has_frozen) == ("True", "True")
    assert not {*modules} & {*NEVER, *NOT_FOR_A_REQUEST}
    assert "openai" in modules
