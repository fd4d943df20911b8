"""Compare the speed of a run with those of lm-evaluation-harness and Inspect.

    python -m benchmarks.peers

Each program asks the same multiple-choice questions one time, with as many calls in flight, at the
same fake provider with a fixed latency. lm-evaluation-harness and Inspect run from environments of
their own, which are made from the package registry when they are missing. Caches are off in all of
them; each writes its usual log. Rounds are interleaved.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.bare_client import AIOHTTP, TYPED
from benchmarks.harness import (
    BenchmarkError,
    Program,
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

PACKAGES = {"lm-evaluation-harness": ("lm-eval[api]==0.4.13",),
            "Inspect": ("inspect-ai==0.3.285", "openai>=2,<4")}  # fmt: skip
"""Program -> its packages."""
OURS, BARE = "main.py", "bare openai client"
MORE_THAN_HARNESS = 0.05
"""How much further from the ideal than lm-evaluation-harness a run may be."""
ENVIRONMENTS = Path.home() / ".cache" / "mdagents-benchmarks"
_MODEL = "gpt-4o-mini"
_TASK = "questions"

_LM_TASK = f"""
task: {_TASK}
dataset_path: json
dataset_kwargs: {{data_files: {{test: QUESTIONS}}}}
test_split: test
output_type: generate_until
doc_to_text: "Question:\\n{{{{prompt}}}}"
doc_to_target: "{{{{answer_idx}}}}"
generation_kwargs: {{until: [], max_gen_toks: 64, temperature: 0.0}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
"""
INSPECT_TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample, json_dataset
from inspect_ai.scorer import choice
from inspect_ai.solver import multiple_choice

def sample(record):
    return Sample(record["question"], list(record["options"].values()), record["answer_idx"])

@task
def questions():
    return Task(json_dataset("QUESTIONS", sample), solver=multiple_choice(), scorer=choice())
"""


def python_of(
    peer: str, environments: Path, packages: Mapping[str, Sequence[str]] = PACKAGES
) -> Path:
    """Return the interpreter of a peer's environment, which is made if it is missing.

    Args:
        peer: Key of `packages`.
        environments: Folder of the environments.
        packages: Program -> its packages.

    Raises:
        BenchmarkError: The packages cannot be installed.
    """
    folder = environments / peer
    python = folder / "bin" / "python"
    if (folder / "complete").exists():
        return python
    uv = str(Path(sys.executable).with_name("uv"))
    print(f"installing {peer} in {folder}", flush=True)
    for command in (
        [uv, "venv", "--quiet", "--clear", str(folder)],
        [uv, "pip", "install", "--quiet", "--python", str(python), *packages[peer]],
    ):
        if subprocess.run(command, check=False).returncode:
            raise BenchmarkError(f"{peer} cannot be installed: {' '.join(command)}")
    (folder / "complete").touch()
    return python


def measure(
    place: Workspace, environments: Path, calls: int, in_flight: int, latency: float, rounds: int
) -> None:
    """Print how close each program comes to the ideal, and what a call costs.

    Args:
        place: Workspace with a data set of `calls` questions.
        environments: Folder of the peers' environments.
        calls: Number of questions, each of which is one call.
        in_flight: Maximum number of calls at a time.
        latency: Latency of the endpoint in seconds.
        rounds: Number of runs of each program, in turn.
    """
    bodies = place.keep_bodies(20)
    pythons = {peer: python_of(peer, environments) for peer in PACKAGES}
    starts: dict[str, Callable[[Provider], Program]] = {
        OURS: lambda provider: place.start(
            provider,
            place.new_state(),
            *("--method", "zero_shot", "--cache", "off"),
            *("--num-samples", str(calls), "--max-connections", str(in_flight)),
        ),
        "lm-evaluation-harness": lambda provider: _start_harness(
            place, pythons["lm-evaluation-harness"], provider, in_flight
        ),
        "Inspect": lambda provider: _start_inspect(place, pythons["Inspect"], provider, in_flight),
        BARE: lambda provider: place.start_bare(
            provider, bodies, calls=calls, in_flight=in_flight, way=TYPED + AIOHTTP
        ),
    }
    ideal = calls * latency / in_flight
    ratios: dict[str, list[float]] = {name: [] for name in starts}
    wholes: dict[str, list[float]] = {name: [] for name in starts}
    costs: dict[str, list[float]] = {name: [] for name in starts}
    with Provider("--latency", str(latency)) as provider:
        for _ in range(rounds):
            for name, start in starts.items():
                provider.reset()
                ended = start(provider).finish()
                seen = provider.stats()
                if seen.outcomes.get("ok") != calls:
                    raise BenchmarkError(f"{name} got {seen.outcomes} replies, not {calls}")
                ratios[name].append((seen.last_arrival - seen.first_arrival + latency) / ideal)
                wholes[name].append(ended.wall_seconds)
                costs[name].append(1000 * ended.cpu_seconds / calls)
    rows = [
        {
            "program": name,
            "first request to last reply / ideal": f"{median(ratios[name]):.2f}",
            "range": f"{min(ratios[name]):.2f} to {max(ratios[name]):.2f}",
            "whole command, s": f"{median(wholes[name]):.1f}",
            "CPU / call, ms, start included": f"{median(costs[name]):.2f}",
        }
        for name in starts
    ]
    show_table(
        f"{calls:,} calls, {in_flight} in flight, {latency * 1000:g} ms, medians of {rounds}", rows
    )
    harness = median(ratios["lm-evaluation-harness"])
    aim = round(harness + MORE_THAN_HARNESS, 2)
    show_results("Throughput", [judged("main.py / ideal", median(ratios[OURS]), aim)])


def _start_harness(place: Workspace, python: Path, provider: Provider, in_flight: int) -> Program:
    state = place.new_state()
    questions = state / "questions.jsonl"
    with questions.open("w", encoding="utf-8") as file:
        for record in _records(place):
            options = "\n".join(f"{letter}) {text}" for letter, text in record["options"].items())
            prompt = f"{record['question']}\n{options}\nAnswer with one letter."
            line = {"prompt": prompt, "answer_idx": record["answer_idx"]}
            file.write(json.dumps(line) + "\n")
    task = state / "questions.yaml"
    task.write_text(_LM_TASK.replace("QUESTIONS", str(questions)), encoding="utf-8")
    url = f"{provider.base_url}/chat/completions"
    arguments = f"model={_MODEL},base_url={url},num_concurrent={in_flight},tokenized_requests=False"
    return Program(
        [
            *(str(python), "-m", "lm_eval", "--model", "local-chat-completions"),
            *("--model_args", arguments, "--tasks", _TASK, "--include_path", str(state)),
            *("--apply_chat_template", "--log_samples", "--output_path", str(state / "output")),
        ],
        state,
        {**_environment(place, provider, state), "HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1"},
    )


def _start_inspect(place: Workspace, python: Path, provider: Provider, in_flight: int) -> Program:
    state = place.new_state()
    task = state / "questions.py"
    task.write_text(INSPECT_TASK.replace("QUESTIONS", str(place.dataset)), encoding="utf-8")
    size = ("--max-connections", str(in_flight), "--max-samples", str(in_flight))
    return Program(
        [
            *(str(python), "-m", "inspect_ai", "eval", task.name, "--model", f"openai/{_MODEL}"),
            *(*size, "--display", "none", "--log-dir", str(state / "logs"), "--no-fail-on-error"),
        ],
        state,
        _environment(place, provider, state),
    )


def _records(place: Workspace) -> list[dict[str, Any]]:
    lines = place.dataset.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _environment(place: Workspace, provider: Provider, state: Path) -> dict[str, str]:
    return place.environment(provider, state)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; return the exit status."""
    parser = make_parser("peers", __doc__)
    add = parser.add_argument
    add("--calls", type=int, default=3_000, help="questions of each run [%(default)s]")
    add("--in-flight", type=int, default=200, help="calls at a time [%(default)s]")
    add("--latency", type=float, default=0.2, help="seconds [%(default)s]")
    add("--rounds", type=int, default=3, help="runs of each program [%(default)s]")
    add("--environments", type=Path, default=ENVIRONMENTS, metavar="DIR",
        help="where the peers are installed [%(default)s]")  # fmt: skip
    quick = {"calls": 40, "in_flight": 10, "rounds": 1}
    options = parse(parser, argv, quick=quick)
    show_machine("peers")
    with workspace(options.calls) as place:
        measure(
            place,
            options.environments,
            options.calls,
            options.in_flight,
            options.latency,
            options.rounds,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
