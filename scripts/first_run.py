"""What `make run` shows: one question for each team on the embedded model, and what comes next."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUN = (
    *("main.py", "--model", "local", "--preset", "small", "--dataset", "medqa-sample"),
    # The router is shown on the first question, which it sends to the basic team.
    *("--num-samples", "3", "--difficulty", "adaptive,intermediate,advanced", "--fresh"),
)
NEXT_MODEL, QUESTIONS = "gemini-2.5-flash-lite", 100


def main() -> int:
    """Run, score and say what comes next; return the exit status of the first step that fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output-dir", default="output", help="where the run goes [%(default)s]")
    parser.add_argument(
        "--evaluation-dir", default="evaluation", help="where the page goes [%(default)s]"
    )
    options = parser.parse_args()
    run = [*RUN, "--output-dir", options.output_dir]
    print(f"$ python {' '.join(run)}", flush=True)
    status = subprocess.run([sys.executable, *run], cwd=ROOT, check=False).returncode
    if status:
        return status
    # Its table is that of the run once more.
    score = ["evaluate_text_output.py", "--html", "--output-dir", options.output_dir]
    score += ["--evaluation-dir", options.evaluation_dir]
    scored = subprocess.run(
        [sys.executable, *score], cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True
    )
    if scored.returncode:
        return scored.returncode
    print(f"\n$ python {' '.join(score)}")
    print("\n".join(line for line in scored.stdout.split("\n") if line.startswith("written: ")))
    print(_what_next(), flush=True)
    return 0


def _what_next() -> str:
    """Return the commands for a model worth measuring, with what they cost."""
    sys.path.insert(0, str(ROOT))
    from infra.config import parse_environment
    from mdagents.runs.config import RunConfig
    from mdagents.runs.forecast import forecast

    config = RunConfig(dataset="medqa-sample", model=NEXT_MODEL, num_samples=6)
    cost = forecast(config, parse_environment({})).cost_of(QUESTIONS)
    return f"""
Open the page above in a browser: each question, who said what, and EXAID's summaries.

Next, with a model whose score means something (a key in .env, see .env.example):
  .venv/bin/mdagents data download medqa
  .venv/bin/python main.py --model {NEXT_MODEL} --num-samples {QUESTIONS}
  .venv/bin/python evaluate_text_output.py --html
{QUESTIONS} questions cost about {cost}, depending on how much the experts debate."""


if __name__ == "__main__":
    sys.exit(main())
