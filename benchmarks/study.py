"""Run a study whose winner is known by construction: forecast accuracy, resume, verdict, coverage.

    python -m benchmarks.study [--questions 50] [--keep FOLDER]

The study has two data sets, two models at separate endpoints that differ in skill and price, five
methods and two epochs. Each answer of a model is an independent draw, so that a vote of five chains
of thought beats a single call by as much as the binomial distribution predicts; a decision by
one additional call is as good as a single call.

1. A pilot of ten questions, then the forecast of `--dry-run` against the actual cost of the study.
2. The study is killed three times and resumed; its records must equal those of an undisturbed one.
3. The study's verdict on each method, compared with the constructed effects.
4. How often the interval of a difference contains the constructed one, in 100 simulated studies.
"""

from __future__ import annotations

import csv
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import product
from math import factorial, prod
from pathlib import Path
from typing import Any

import yaml

from benchmarks.harness import (
    REPOSITORY,
    Provider,
    judged,
    make_parser,
    parse,
    result_of,
    show_machine,
    show_results,
    show_table,
    write_questions,
)
from mdagents_llm.proportions import difference_interval

FORECAST_AIM = 0.15
KILLS = 3
SKILLS = {"gpt-4o-mini": 0.45, "gpt-4.1-mini": 0.6}
METHODS: tuple[Any, ...] = (
    "zero_shot", "cot", "cot_sc", "basic", {"difficulty": "adaptive", "router": "disagreement"},
)  # fmt: skip
PILOT = 10  # questions
SAMPLES = 5
"""Number of chains of thought that vote in `cot_sc`."""
WINNER = "cot_sc"
_OPTIONS = 4
_LIMIT = 1800  # seconds


class Study:
    """The study, in its own folder.

    Args:
        folder: Folder of the study's files and output.
        providers: Endpoint by model.
        datasets: Data set files.
    """

    def __init__(
        self, folder: Path, providers: Mapping[str, Provider], datasets: Sequence[Path]
    ) -> None:
        self.folder = folder
        self._providers = providers
        self._datasets = datasets

    def write(self, name: str, questions: int) -> Path:
        """Write a study file that covers the first `questions` questions of each data set."""
        path = self.folder / f"{name}.yaml"
        models = [
            {"model": model, "model-base-url": provider.base_url}
            for model, provider in self._providers.items()
        ]
        content = {
            "datasets": [path.name for path in self._datasets],
            "models": models,
            "methods": list(METHODS),
            "baseline": "zero_shot",
            "num-samples": questions,
            "epochs": 2,
            "exaid": "off",
            "max-connections": 32,
        }
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
        return path

    def start(self, file: Path, output: str, *flags: str) -> subprocess.Popen[str]:
        """Start `study.py` on a study file, with an output folder."""
        return subprocess.Popen(
            [
                sys.executable, str(REPOSITORY / "study.py"), str(file), "--display", "none",
                "--output-dir", output, "--evaluation-dir", f"{output}-evaluation", *flags,
            ],
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "OPENAI_API_KEY": "k"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip

    def run(self, file: Path, output: str, *flags: str) -> str:
        """Run `study.py` to its end and return its standard output."""
        process = self.start(file, output, *flags)
        out, err = process.communicate(timeout=_LIMIT)
        if process.returncode:
            raise SystemExit(f"study.py ended with {process.returncode}: {err[-2000:]}")
        return out

    def records(self, output: str) -> dict[str, list[dict[str, Any]]]:
        """Return the records by run, without the fields that may differ between runs."""
        return {
            file.stem: list(map(result_of, json.loads(file.read_bytes())))
            for file in (self.folder / output).glob("*.json")
        }

    def spent(self, output: str, questions: int) -> dict[str, float]:
        """Return calls, tokens and USD of the answers, over all runs of `questions` questions."""
        totals = [
            run["totals"]
            for file in (self.folder / output).glob("*/run.json")
            if len((run := json.loads(file.read_bytes()))["item_ids"]) == questions
        ]
        return {
            "calls": sum(each["calls"] for each in totals),
            "tokens": sum(each["total_tokens"] for each in totals),
            "USD": sum(each["cost_usd"] for each in totals),
        }


def forecast_of(printed: str) -> dict[str, float]:
    """Return the midpoint of the forecast for the whole study: calls, tokens, USD."""
    (line,) = re.findall(r"^\|\s*all\s*\|(.*)\|$", printed, re.MULTILINE)
    figures = {}
    for name, cell in zip(("calls", "tokens", "USD"), line.split("|"), strict=True):
        ends = [float(end.replace(",", "")) for end in re.findall(r"[\d.,]+", cell)]
        figures[name] = sum(ends) / len(ends)
    return figures


def votes(skill: float, samples: int) -> float:
    """Return the probability that a plurality vote is right, with ties broken at random.

    Args:
        skill: Probability that a sample is right; the other options are equally likely.
        samples: Number of voting samples.
    """
    shares = [skill, *[(1 - skill) / (_OPTIONS - 1)] * (_OPTIONS - 1)]
    right = 0.0
    for counts in product(range(samples + 1), repeat=_OPTIONS):
        if sum(counts) == samples and counts[0] == max(counts):
            ways = factorial(samples) / prod(map(factorial, counts))
            chance = ways * prod(p**n for p, n in zip(shares, counts, strict=True))
            right += chance / counts.count(max(counts))
    return right


def measure_forecast(study: Study, questions: int) -> None:
    """Run the pilot and the study, and print the forecast against the actual cost (part 1)."""
    study.run(study.write("pilot", PILOT), "output")
    file = study.write("study", questions)
    forecast = forecast_of(study.run(file, "output", "--dry-run"))
    started = time.monotonic()
    study.run(file, "output")
    seconds = time.monotonic() - started
    took = study.spent("output", questions)
    rows = [
        {"": name, "forecast": f"{forecast[name]:,.6g}", "it took": f"{took[name]:,.6g}"}
        for name in took
    ]
    show_table(f"Forecast after a pilot of {PILOT} questions; the study took {seconds:.0f} s", rows)
    show_results(
        "|forecast / what it took - 1|",
        [judged(name, abs(forecast[name] / took[name] - 1), FORECAST_AIM) for name in took],
    )


def measure_kills(study: Study, questions: int) -> None:
    """Kill and resume the study, and print how many records differ (part 2)."""
    file = study.write("study", questions)
    study.run(study.write("pilot", PILOT), "killed")
    rng = random.Random(0)
    for _ in range(KILLS):
        process = study.start(file, "killed")
        time.sleep(rng.uniform(2.0, 6.0))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    study.run(file, "killed")
    undisturbed, killed = study.records("output"), study.records("killed")
    differ = sum(
        one != other
        for run, records in undisturbed.items()
        for one, other in zip(records, killed.get(run, [{}] * len(records)), strict=True)
    )
    of = sum(map(len, undisturbed.values()))
    show_results(
        f"Killed {KILLS} times", [judged(f"records that differ, of {of}", differ, 0, digits=0)]
    )


def measure_verdict(study: Study) -> None:
    """Print the study's verdict against the constructed effects (part 3)."""
    rows: list[dict[str, str]] = []
    best: dict[tuple[str, str], tuple[float, str]] = {}
    false_claims = covered = 0
    with (study.folder / "output-evaluation" / "study.csv").open(encoding="utf-8") as file:
        found = [row for row in csv.DictReader(file) if "router" not in row["method"]]
    for row in found:
        skill = SKILLS[row["model"]]
        effect = (votes(skill, SAMPLES) - skill) * (row["method"] == WINNER)
        block, accuracy = (row["dataset"], row["model"]), float(row["accuracy"])
        best[block] = max(best.get(block, (0.0, "")), (accuracy, row["method"]))
        shown = {"data set, model, method": ", ".join([*block, row["method"]])}
        shown |= {"constructed": f"{skill + effect:.1%}", "accuracy": f"{accuracy:.1%}"}
        if row["difference"]:
            low, high = float(row["difference_low"]), float(row["difference_high"])
            covered += low <= effect <= high
            false_claims += (low > 0 or high < 0) and float(row["holm_p"]) < 0.05 and not effect
            shown["difference (95% interval), points"] = (
                f"{100 * float(row['difference']):+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"
            )
            shown["Holm p"] = f"{float(row['holm_p']):.4f}"
        else:
            shown |= {"difference (95% interval), points": "-", "Holm p": "-"}
        rows.append(shown)
    show_table("What was constructed, and what the study shows", rows)
    others = sum(method != WINNER for _, method in best.values())
    alike, compared = len(rows) - 2 * len(best), len(rows) - len(best)
    results = [
        judged(f"another than {WINNER} is best, blocks of {len(best)}", others, 0, digits=0),
        judged(f"differences claimed where there is none, of {alike}", false_claims, 0, digits=0),
    ]
    title = f"The verdict; {covered} of {compared} intervals hold the constructed effect"
    show_results(title, results)


def measure_coverage(questions: int) -> None:
    """Print interval coverage for simulated single calls and votes, in two epochs (part 4)."""
    missed = 0
    skill, seeds = SKILLS["gpt-4o-mini"], 100
    effect = votes(skill, SAMPLES) - skill
    for seed in range(seeds):
        rng = random.Random(seed)
        single, vote = (
            [sum(rng.random() < share for _ in range(2)) for _ in range(questions)]
            for share in (skill, skill + effect)
        )
        gains = [after - before for before, after in zip(single, vote, strict=True)]
        low, high = difference_interval(gains, [2] * questions)
        missed += not low <= effect <= high
    what = f"seeds, of {seeds}, whose interval leaves out the constructed effect"
    show_results(f"{questions} questions, 2 epochs", [judged(what, missed, seeds // 10, digits=0)])


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; return the exit status."""
    parser = make_parser("study", __doc__)
    add = parser.add_argument
    add("--questions", type=int, default=50, help="of a data set [%(default)s]")
    add("--keep", type=Path, metavar="FOLDER", help="where the study is kept [nowhere]")
    options = parse(parser, argv, quick={"questions": 12})
    show_machine("study")
    with tempfile.TemporaryDirectory(prefix="mdagents-benchmark-") as name, ExitStack() as running:
        folder = Path(name)
        datasets = [folder / "one.jsonl", folder / "two.jsonl"]
        for number, path in enumerate(datasets):
            write_questions(path, options.questions, first=number * options.questions)
        flags = [flag for path in datasets for flag in ("--gold", str(path))]
        providers = {}
        for seed, (model, skill) in enumerate(SKILLS.items()):
            flags += ["--latency", "0.05", "--latency-spread", "0.1", "--seed", str(seed)]
            provider = Provider("--skill", f"{model}={skill}", *flags)
            providers[model] = running.enter_context(provider)
        study = Study(folder, providers, datasets)
        measure_forecast(study, options.questions)
        measure_kills(study, options.questions)
        measure_verdict(study)
        measure_coverage(options.questions)
        if options.keep:
            shutil.copytree(folder, options.keep, dirs_exist_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
