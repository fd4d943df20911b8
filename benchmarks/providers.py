"""Check every wire against the fake provider: contract suite, ledger, batches, refusals.

    python -m benchmarks.providers [--questions 300] [--only contract|ledger|batch|refusals]

1. The contract suites of providers (tests/mdagents_llm/providers) and batches
   (tests/mdagents_llm/layers), as tables of case by wire.
2. A run over each wire with long questions, whose prompts are served from prompt caches: usage in
   the ledger against usage served by the provider, and the price computed from the latter.
3. A run with `--batch` that is killed while polling and then resumed: requests submitted, price and
   records, compared with the same run without `--batch`.
4. The settings each preset sends first, and those it sends after its server has refused schema,
   seed and temperature.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from benchmarks.harness import (
    REPOSITORY,
    judged,
    make_parser,
    parse,
    show_machine,
    show_results,
    show_table,
)
from mdagents_llm.chat import ChatMessage, ChatRequest
from mdagents_llm.config import Environment
from mdagents_llm.endpoints import ModelSpec, Runtime
from mdagents_llm.ledger import Ledger
from mdagents_llm.llm_registry import ModelRegistry
from mdagents_llm.model_configs import load_model_configs
from tests.fake_provider import FakeProvider, Usage
from tests.mdagents_llm.providers.test_provider_contract import WIRES as WIRES_OF_SUITE

MODELS = {
    "openai": "openai/gpt-4o-mini",
    "azure": "azure/our-deployment",
    "gemini": "google/gemini-2.5-flash-lite",
    "anthropic": "anthropic/claude-haiku-4-5",
}
IN_BATCHES = ("openai", "gemini", "anthropic")
_LONG = "The history is long and was taken twice by different people. " * 80  # above 1,024 tokens
_REFUSALS = ("400_schema_unsupported", "400_seed", "400_temperature")


class _Choice(BaseModel):
    answer: Literal["A", "B"]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables; return the exit status."""
    parser = make_parser("providers", __doc__)
    parser.add_argument("--questions", type=int, default=300, help="of the batch [%(default)s]")
    parser.add_argument("--only", choices=["contract", "ledger", "batch", "refusals"])
    options = parse(parser, argv, {"questions": 20, "only": "refusals"})
    show_machine("providers")
    parts: Mapping[str, Callable[[], None]] = {
        "contract": show_contract,
        "ledger": show_ledger,
        "batch": partial(show_batches, options.questions),
        "refusals": lambda: asyncio.run(show_refusals()),
    }
    for name, show in parts.items():
        if options.only in (None, name):
            show()
    return 0


# -- the contract ---------------------------------------------------------------------------------


def show_contract() -> None:
    """Run the suites and print the outcome of each case by wire."""
    _show_suite(
        "1. Contract suite", "mdagents_llm/providers/test_provider_contract.py", WIRES_OF_SUITE
    )
    _show_suite("Batches", "mdagents_llm/layers/test_batch.py", ("openai", "google", "anthropic"))


def _show_suite(title: str, suite: str, wires: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "suite.xml"
        command = [sys.executable, "-m", "pytest", "-q", f"tests/{suite}", f"--junitxml={file}"]
        subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL, check=False)
        cases = ElementTree.parse(file).getroot().iter("testcase")
        table: dict[str, Counter[tuple[str, bool]]] = defaultdict(Counter)
        for case in cases:
            name, _, params = case.attrib["name"].partition("[")
            found = [one for one in wires if re.search(rf"(^|-){one}(-|\]|$)", params)]
            wire = max(found, key=len, default="others")  # one name is a substring of another
            failed = case.find("failure") is not None or case.find("error") is not None
            table[name.removeprefix("test_").replace("_", " ")][wire, failed] += 1
    rows = []
    for name, ended in table.items():
        row: dict[str, object] = {"case": name[:64]}
        for wire in (*wires, "others"):
            well, badly = ended[wire, False], ended[wire, True]
            row[wire] = f"{badly} FAILED" if badly else well or ""
        rows.append(row)
    show_table(f"{title}: passed cases by wire", rows)


# -- the ledger -----------------------------------------------------------------------------------


def show_ledger() -> None:
    """Print the usage in the ledger next to the usage served, by wire."""
    rows: list[Mapping[str, object]] = []
    for wire, model in MODELS.items():
        with tempfile.TemporaryDirectory() as folder, FakeProvider(seed=1) as provider:
            provider.reasoning_tokens, provider.prompt_cache = 20, True
            _write_questions(Path(folder) / "questions.jsonl", 20, _LONG)
            _finish(_start(folder, provider, model, "--difficulty", "basic", "--exaid", "off"))
            booked, cost = _booked(Path(folder))
            served = provider.totals
            rows.append(_row(f"{wire}: booked", booked, cost))
            rows.append(_row("  served", served, _price_of(model, served)))
    show_table("2. Tokens and USD of 20 questions, basic team, long questions", rows)


def _row(what: str, usage: Usage, cost: float | None) -> dict[str, object]:
    return {
        "wire": what,
        "input": usage.input,
        "cache write": usage.cache_write,
        "cache read": usage.cached_input,
        "output": usage.output,
        "reasoning": usage.reasoning,
        "USD": "not known" if cost is None else f"{cost:.6f}",
    }


def _booked(folder: Path) -> tuple[Usage, float | None]:
    (file,) = folder.glob("output/*/calls.jsonl")
    rows = [json.loads(line) for line in file.read_text().split("\n") if line]
    total = Usage()
    for row in rows:
        if not row["cached"]:
            total += Usage(
                row["input_tokens"], row["output_tokens"], row["cached_input_tokens"],
                row["reasoning_tokens"], row["cache_write_tokens"],
            )  # fmt: skip
    costs = [row["cost_usd"] for row in rows if not row["cached"]]
    return total, None if None in costs else sum(costs)


def _price_of(model: str, usage: Usage) -> float | None:
    """Return the USD price of the served usage from the price file; None if unknown."""
    price = load_model_configs().price(*model.split("/", 1))
    if price is None:
        return None
    parts = (
        (usage.input - usage.cached_input - usage.cache_write, price.input),
        (usage.cached_input, price.cached_input),
        (usage.cache_write, price.cache_write),
        (usage.output, price.output),
    )
    return sum(tokens * (each or 0.0) for tokens, each in parts) / 1e6


# -- batches --------------------------------------------------------------------------------------


def show_batches(questions: int) -> None:
    """Kill a `--batch` run while it polls, resume it, and compare it with a normal run."""
    rows = []
    results = []
    for wire in IN_BATCHES:
        with tempfile.TemporaryDirectory() as folder, FakeProvider(seed=1) as provider:
            _write_questions(Path(folder) / "questions.jsonl", questions)
            _finish(_start(folder, provider, MODELS[wire], "--method", "cot"))
            at_once, cost = _records(Path(folder)), _booked(Path(folder))[1] or 0.0
            (Path(folder) / "output").rename(Path(folder) / "at-once")
            provider.batches.held = True
            flags = ("--method", "cot", "--batch")
            process = _start(folder, provider, MODELS[wire], *flags)
            while not any(batch.polls > 1 for batch in provider.batches.all):
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            provider.batches.held = False
            _finish(_start(folder, provider, MODELS[wire], *flags))
            in_batches, half = _records(Path(folder)), _booked(Path(folder))[1] or 0.0
            keys = Counter(key for batch in provider.batches.all for key in batch.keys)
            same = sum(a == b for a, b in zip(at_once, in_batches, strict=True))
            rows.append(
                {
                    "wire": wire,
                    "batches": len(provider.batches.all),
                    "requests submitted": keys.total(),
                    "records": len(in_batches),
                    "equal": same,
                    "USD at once": f"{cost:.6f}",
                    "in a batch": f"{half:.6f}",
                }
            )
            results += [
                judged(f"{wire}: requests submitted twice", max(keys.values()) - 1, 0, digits=0),
                judged(f"{wire}: records that differ", len(at_once) - same, 0, digits=0),
                judged(f"{wire}: price in a batch / at once", half / cost, 0.5, digits=3),
            ]
    show_table(f"3. {questions} questions, killed while polling and continued", rows)
    show_results("What must hold", results)


def _records(folder: Path) -> list[dict[str, Any]]:
    (file,) = folder.glob("output/*.json")
    found = json.loads(file.read_text())
    for record in found:
        del record["wall_seconds"], record["token_usage"]["cost_usd"]
    return list(found)


def _write_questions(path: Path, count: int, beginning: str = "") -> None:
    options = {"A": "Retinol", "B": "Thiamine", "C": "Ascorbic acid", "D": "Biotin"}
    lines = (
        {
            "id": f"q{number}",
            "question": f"Patient {number}. {beginning}The gums bleed. What is lacking?",
            "options": options,
            "answer_idx": "C",
        }
        for number in range(count)
    )
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def _start(folder: str, provider: FakeProvider, model: str, *flags: str) -> subprocess.Popen[str]:
    arguments = ("--dataset", "questions.jsonl", "--model", model, *flags, "--display", "none")
    variables = {
        "OPENAI_API_KEY": "k",
        "OPENAI_BASE_URL": provider.openai_base_url,
        "AZURE_OPENAI_API_KEY": "k",
        "AZURE_OPENAI_ENDPOINT": f"http://127.0.0.1:{provider.port}",
        "GOOGLE_API_KEY": "k",
        "GOOGLE_GEMINI_BASE_URL": provider.gemini_base_url,
        "ANTHROPIC_API_KEY": "k",
        "ANTHROPIC_BASE_URL": provider.anthropic_base_url,
    }
    return subprocess.Popen(
        [sys.executable, str(REPOSITORY / "main.py"), *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": folder, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _finish(process: subprocess.Popen[str]) -> None:
    _, said = process.communicate()
    if process.returncode:
        raise RuntimeError(said)


# -- refusals -------------------------------------------------------------------------------------


async def show_refusals() -> None:
    """Print what each preset sends to a server that refuses schema, seed and temperature."""
    configs, rows = load_model_configs(), []
    for name, info in configs.providers.items():
        if name in ("local", "inspect"):  # the wires of others
            continue
        with FakeProvider(seed=1) as provider:
            for refusal in _REFUSALS:
                provider.fail_next(refusal)
            urls = {
                "azure": f"http://127.0.0.1:{provider.port}",
                "gemini": provider.gemini_base_url,
                "anthropic": provider.anthropic_base_url,
            }
            url = urls.get(str(info.wire), provider.openai_base_url)
            environment = Environment({key: "k" for key in info.keys})
            registry = ModelRegistry(Runtime(environment, Ledger(), sleep=_at_once))
            async with aclosing(registry):
                model = registry.model(ModelSpec(name, info.default_model or "a-model", url))
                for _ in range(2):
                    await model.generate(
                        ChatRequest((ChatMessage("user", "A or B?"),), 50, 0.7, 1, _Choice)
                    )
            calls = provider.calls
        rows.append(
            {
                "preset": name,
                "sends first": _settings(calls[0].body),
                "refused": sum(call.outcome != "ok" for call in calls),
                "sends from then on": _settings(calls[-1].body),
            }
        )
    show_table("4. A server that refuses schema, seed and temperature", rows)


async def _at_once(seconds: float) -> None:
    await asyncio.sleep(0)


def _settings(body: Mapping[str, Any]) -> str:
    inner = body.get("generationConfig") or body
    known = (
        "response_format", "responseJsonSchema", "tool_choice", "output_config", "seed",
        "random_seed", "temperature",
    )  # fmt: skip
    sent = [name for name in known if name in inner]
    return ", ".join(sent) or "none of them: the schema stands in the prompt"


if __name__ == "__main__":
    sys.exit(main())
