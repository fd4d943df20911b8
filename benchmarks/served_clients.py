"""Ask a served team from real clients, and compare what they say with the ledger and our score.

    python -m benchmarks.served_clients

Each client asks `mdagents serve` the same multiple-choice questions, whose calls go to the fake
provider of the tests. Clients run from environments of their own, which are made from the package
registries when they are missing (promptfoo needs npx). The second table times 200 questions of
`main.py` beside the same through the server.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from openai import AsyncOpenAI

from benchmarks import peers
from benchmarks.harness import (
    BenchmarkError,
    Provider,
    Workspace,
    judged,
    make_parser,
    parse,
    show_machine,
    show_results,
    show_table,
    workspace,
)

PACKAGES = {
    "LangChain": ("langchain-openai==1.7.4",),
    "LiteLLM": ("litellm==1.108.7",),
    **peers.PACKAGES,
}
PROMPTFOO = "promptfoo@0.123.1"
NODE = "node@24"
"""The runtime that promptfoo requires, also from npm."""
WALL_AIM = 1.05
_MODEL = "mdagents/basic"
_SDK = """
import json, sys
from openai import OpenAI
client, tokens, right = OpenAI(), 0, 0
for line in open(sys.argv[1]):
    record = json.loads(line)
    made = client.chat.completions.create(
        model=sys.argv[2], messages=[{"role": "user", "content": record["prompt"]}])
    tokens += made.usage.total_tokens
    right += made.choices[0].message.content.endswith(f"Answer: {record['answer_idx']}")
print(json.dumps({"right": right, "tokens": tokens}))
"""
_LANGCHAIN = """
import json, sys
from langchain_openai import ChatOpenAI
model, tokens, right = ChatOpenAI(model=sys.argv[2]), 0, 0
for line in open(sys.argv[1]):
    record = json.loads(line)
    made = model.invoke(record["prompt"])
    tokens += made.usage_metadata["total_tokens"]
    right += made.content.endswith(f"Answer: {record['answer_idx']}")
print(json.dumps({"right": right, "tokens": tokens}))
"""
_LITELLM = """
import json, sys
import litellm
tokens, right = 0, 0
for line in open(sys.argv[1]):
    record = json.loads(line)
    made = litellm.completion(
        model="openai/" + sys.argv[2], messages=[{"role": "user", "content": record["prompt"]}])
    tokens += made.usage.total_tokens
    right += made.choices[0].message.content.endswith(f"Answer: {record['answer_idx']}")
print(json.dumps({"right": right, "tokens": tokens}))
"""
_LM_TASK = """
task: questions
dataset_path: json
dataset_kwargs: {data_files: {test: QUESTIONS}}
test_split: test
output_type: generate_until
doc_to_text: "{{prompt}}"
doc_to_target: "{{answer_idx}}"
generation_kwargs: {until: [], max_gen_toks: 512, temperature: 0.0}
filter_list:
  - name: answer
    filter:
      - {function: regex, regex_pattern: "Answer: ([A-E])"}
      - {function: take_first}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""


@dataclass(frozen=True, slots=True)
class Told:
    """What a client says of its questions."""

    right: int
    tokens: int | None
    """None for a client that reports none."""


@dataclass(frozen=True, slots=True)
class Asking:
    """The surroundings of a client."""

    state: Path
    """Empty working folder."""
    questions: Path
    """JSON lines with `prompt` and `answer_idx`."""
    url: str
    """Address of the server, with `/v1`."""
    environments: Path

    def run(self, *command: str, **more: str) -> str:
        """Run a client and return what it prints.

        Raises:
            BenchmarkError: It failed.
        """
        environment = {
            "PATH": os.environ.get("PATH", ""), "HOME": str(self.state), "LANG": "C.UTF-8",
            "OPENAI_API_KEY": "any", "OPENAI_BASE_URL": self.url, "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_OFFLINE": "1", **more,
        }  # fmt: skip
        ended = subprocess.run(
            command, cwd=self.state, env=environment, capture_output=True, text=True, check=False
        )
        if ended.returncode:
            raise BenchmarkError(f"{command[0]}: {(ended.stderr or ended.stdout)[-800:]}")
        return ended.stdout

    def python(self, peer: str) -> str:
        """Return the interpreter of a client's environment."""
        return str(peers.python_of(peer, self.environments, PACKAGES))


def ask_by_sdk(asking: Asking) -> Told:
    """Ask by the SDK of OpenAI."""
    printed = asking.run(sys.executable, "-c", _SDK, str(asking.questions), _MODEL)
    return Told(**json.loads(printed))


def ask_by_langchain(asking: Asking) -> Told:
    """Ask by LangChain."""
    python = asking.python("LangChain")
    return Told(**json.loads(asking.run(python, "-c", _LANGCHAIN, str(asking.questions), _MODEL)))


def ask_by_litellm(asking: Asking) -> Told:
    """Ask by LiteLLM, whose table of prices is the one in its package."""
    command = (asking.python("LiteLLM"), "-c", _LITELLM, str(asking.questions), _MODEL)
    return Told(**json.loads(asking.run(*command, LITELLM_LOCAL_MODEL_COST_MAP="True")))


def ask_by_harness(asking: Asking) -> Told:
    """Ask by lm-evaluation-harness, which reports no tokens."""
    task = _LM_TASK.replace("QUESTIONS", str(asking.questions))
    (asking.state / "questions.yaml").write_text(task, encoding="utf-8")
    url = f"{asking.url}/chat/completions"
    asking.run(
        *(asking.python("lm-evaluation-harness"), "-m", "lm_eval", "--output_path", "output"),
        *("--model", "local-chat-completions", "--tasks", "questions", "--include_path", "."),
        *("--model_args", f"model={_MODEL},base_url={url},num_concurrent=4,"
          "tokenized_requests=False", "--apply_chat_template"),
    )  # fmt: skip
    (results,) = (asking.state / "output").rglob("results_*.json")
    content = json.loads(results.read_text(encoding="utf-8"))
    share = content["results"]["questions"]["exact_match,answer"]
    return Told(round(share * content["n-samples"]["questions"]["effective"]), None)


def ask_by_inspect(asking: Asking) -> Told:
    """Ask by Inspect's multiple-choice solver, whose prompt differs from the others'."""
    task = peers.INSPECT_TASK.replace("QUESTIONS", str(asking.questions))
    (asking.state / "questions.py").write_text(task, encoding="utf-8")
    asking.run(
        *(asking.python("Inspect"), "-m", "inspect_ai", "eval", "questions.py", "--display"),
        *("none", "--model", f"openai-api/team/{_MODEL}", "--log-format", "json"),
        *("--log-dir", "logs"),
        TEAM_API_KEY="any",
        TEAM_BASE_URL=asking.url,
    )
    (log,) = (asking.state / "logs").glob("*.json")
    content = json.loads(log.read_text(encoding="utf-8"))
    (score,) = content["results"]["scores"]
    share = score["metrics"]["accuracy"]["value"]
    (usage,) = content["stats"]["model_usage"].values()
    return Told(round(share * content["results"]["completed_samples"]), usage["total_tokens"])


def ask_by_promptfoo(asking: Asking) -> Told:
    """Ask by promptfoo."""
    lines = asking.questions.read_text(encoding="utf-8").splitlines()
    tests = [
        {
            "vars": {"prompt": record["prompt"]},
            "assert": [{"type": "regex", "value": f"Answer: {record['answer_idx']}$"}],
        }
        for record in map(json.loads, lines)
    ]
    config = {
        "prompts": ["{{prompt}}"],
        "providers": [{"id": f"openai:chat:{_MODEL}", "config": {"apiBaseUrl": asking.url}}],
        "tests": tests,
    }
    (asking.state / "promptfooconfig.json").write_text(json.dumps(config), encoding="utf-8")
    npx = shutil.which("npx")
    assert npx is not None, "checked before"
    command = (
        *(npx, "--yes", "--package", NODE, "--package", PROMPTFOO, "promptfoo", "eval"),
        *("--config", "promptfooconfig.json", "--no-cache"),
        *("--output", "out.json", "--no-progress-bar", "--no-table", "--no-write"),
    )
    quiet = {
        "PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1",
        "PROMPTFOO_PASS_RATE_THRESHOLD": "0", "PROMPTFOO_FAILED_TEST_EXIT_CODE": "0",
        "npm_config_cache": str(asking.environments / "npm"),
    }  # fmt: skip
    asking.run(*command, **quiet)
    content = json.loads((asking.state / "out.json").read_text(encoding="utf-8"))
    stats = content["results"]["stats"]
    return Told(stats["successes"], stats["tokenUsage"]["total"])


CLIENTS: Mapping[str, Callable[[Asking], Told]] = {
    "openai": ask_by_sdk,
    "LangChain": ask_by_langchain,
    "LiteLLM": ask_by_litellm,
    "lm-evaluation-harness": ask_by_harness,
    "Inspect": ask_by_inspect,
    "promptfoo": ask_by_promptfoo,
}


def compare(place: Workspace, environments: Path) -> bool:
    """Print what each client says beside our records and ledger; return whether all agree."""
    questions = place.folder / "prompts.jsonl"
    golds: dict[str, str] = {}
    with questions.open("w", encoding="utf-8") as file:
        for line in place.dataset.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            golds[" ".join(record["question"].split())] = record["options"][record["answer_idx"]]
            options = "\n".join(f"{letter}. {text}" for letter, text in record["options"].items())
            prompt = f"{record['question']}\n{options}"
            file.write(json.dumps(record | {"prompt": prompt}) + "\n")
    rows, agree = [], True
    with Provider() as provider, _Server(place, provider) as server:
        for name, ask in CLIENTS.items():
            if ask is ask_by_promptfoo and shutil.which("npx") is None:
                print("promptfoo is left out: there is no npx")
                continue
            before = server.counts(golds)
            state = place.new_state()
            told = ask(Asking(state, questions, server.url, environments))
            after = server.counts(golds)
            asked, right, tokens = (b - a for a, b in zip(before, after, strict=True))
            equal = told.right == right and told.tokens in (None, tokens)
            agree &= equal
            rows.append(
                {
                    "client": name,
                    "questions": asked,
                    "right: client": told.right,
                    "right: records": right,
                    "tokens: client": "-" if told.tokens is None else f"{told.tokens:,}",
                    "tokens: ledger": f"{tokens:,}",
                    "": "equal" if equal else "DIFFERENT",
                }
            )
    show_table("What clients say of a served basic team", rows)
    return agree


class _Server:
    """`mdagents serve` as a program."""

    def __init__(self, place: Workspace, provider: Provider, *flags: str) -> None:
        self._state = place.new_state()
        command = [sys.executable, "-m", "mdagents", "serve", "--port", "0", "--team", "basic"]
        self._process = subprocess.Popen(
            [*command, "--cache", "off", *flags],
            cwd=self._state,
            env=place.environment(provider, self._state),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        found = re.search(r"http://\S+/v1", self._process.stdout.readline())
        if found is None:
            raise BenchmarkError("mdagents serve did not start")
        self.url = found[0]

    def __enter__(self) -> _Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()

    def counts(self, golds: Mapping[str, str]) -> tuple[int, int, int]:
        """Return the numbers of questions, of right answers, and of tokens so far."""
        records, calls = self._lines("samples.jsonl"), self._lines("calls.jsonl")
        right = sum(
            record["options"].get(record["predicted"])
            == golds[" ".join(record["question"].split())]
            for record in records
        )
        return len(records), right, sum(c["input_tokens"] + c["output_tokens"] for c in calls)

    def _lines(self, name: str) -> list[dict[str, Any]]:
        files = list((self._state / "output").glob(f"served-*/{name}"))
        text = files[0].read_text(encoding="utf-8") if files else ""
        return [json.loads(line) for line in text.splitlines()]


def wall(place: Workspace, questions: int, at_once: int, latency: float, rounds: int) -> None:
    """Print the time of questions by `main.py` and through the server.

    Args:
        place: Workspace with a data set of `questions` questions.
        questions: Number of questions.
        at_once: Questions in progress at a time.
        latency: Latency of the endpoint in seconds.
        rounds: Number of runs of each, in turn.
    """
    lines = [json.loads(line) for line in place.dataset.read_text().splitlines()]
    prompts = [
        f"{r['question']}\n" + "\n".join(f"{k}. {v}" for k, v in r["options"].items())
        for r in lines
    ]
    direct: list[float] = []
    served: list[float] = []
    flags = ("--max-samples", str(at_once), "--max-connections", str(3 * at_once))
    with Provider("--latency", str(latency)) as provider:
        for _ in range(rounds):
            provider.reset()
            state = place.new_state()
            place.run(
                provider, state, "--difficulty", "basic", "--cache", "off",
                "--num-samples", str(questions), *flags,
            )  # fmt: skip
            seen = provider.stats()
            direct.append(seen.last_arrival - seen.first_arrival + latency)
            with _Server(place, provider, *flags) as server:
                provider.reset()
                asyncio.run(_ask_all(server.url, prompts, at_once))
                seen = provider.stats()
                served.append(seen.last_arrival - seen.first_arrival + latency)
    ratios = [b / a for a, b in zip(direct, served, strict=True)]
    rows = [
        {"questions": name, "first request to last reply, s": f"{median(times):.2f}"}
        for name, times in (("by main.py", direct), ("through mdagents serve", served))
    ]
    show_table(f"{questions} questions, {at_once} at a time, {latency * 1000:g} ms a call", rows)
    show_results("Served", [judged("served / direct", median(ratios), WALL_AIM)])


async def _ask_all(url: str, prompts: Sequence[str], at_once: int) -> None:
    places = asyncio.Semaphore(at_once)
    async with AsyncOpenAI(base_url=url, api_key="any", max_retries=0) as client:

        async def ask(prompt: str) -> None:
            async with places:
                await client.chat.completions.create(
                    model=_MODEL, messages=[{"role": "user", "content": prompt}]
                )

        await asyncio.gather(*map(ask, prompts))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; return 1 if a client and the ledger differ."""
    parser = make_parser("served_clients", __doc__)
    add = parser.add_argument
    add("--questions", type=int, default=30, help="of each client [%(default)s]")
    add("--timed", type=int, default=200, help="questions that are timed; 0: none [%(default)s]")
    add("--at-once", type=int, default=20, help="timed questions at a time [%(default)s]")
    add("--latency", type=float, default=0.2, help="seconds [%(default)s]")
    add("--rounds", type=int, default=5, help="timed runs of each [%(default)s]")
    add("--environments", type=Path, default=peers.ENVIRONMENTS, metavar="DIR",
        help="where the clients are installed [%(default)s]")  # fmt: skip
    quick = {"questions": 4, "timed": 20, "at_once": 5, "rounds": 1}
    options = parse(parser, argv, quick=quick)
    show_machine("served_clients")
    started = time.monotonic()
    with workspace(options.questions) as place:
        agree = compare(place, options.environments)
    if options.timed:
        with workspace(options.timed) as place:
            wall(place, options.timed, options.at_once, options.latency, options.rounds)
    print(f"took {time.monotonic() - started:.0f} s")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
