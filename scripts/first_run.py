"""Run the `make run` demo: the router, each team on the embedded model, and the next steps."""

from __future__ import annotations

import argparse
import io
import shlex
import signal
import sys
from contextlib import ExitStack, redirect_stdout
from pathlib import Path

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback on Ctrl-C while modules load
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mdagents.cli.score import main as score
from mdagents.runs.config import RunConfig
from mdagents.runs.forecast import forecast
from mdagents.runs.program import Called
from mdagents.runs.program import main as run
from mdagents.scoring.formatting import wrapped
from mdagents_llm.config import parse_environment
from mdagents_llm.terminal.printing import fails_in_one_line, print_result

# Not `python`: the system's Python lacks the packages.
CALLED = Called(
    "python main.py",
    ".venv/bin/python main.py",
    ".venv/bin/python evaluate_text_output.py",
    ".venv/bin/python view.py",
)
RUN = (
    *("--model", "local", "--preset", "small", "--dataset", "medqa-sample", "--fresh"),
    # The small model is too weak as a router to reach every team by itself.
    *("--num-samples", "4", "--difficulty", "adaptive,basic,intermediate,advanced", "--view"),
)
NEXT_MODEL, QUESTIONS = "gemini-2.5-flash-lite", 100


@fails_in_one_line
def main() -> int:
    """Run, score and print the next steps; return the exit status of the first failing step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output-dir", help="where the run goes [output]")
    parser.add_argument("--evaluation-dir", help="where the page goes [evaluation]")
    options = parser.parse_args()
    with ExitStack() as until:  # keeps the view open until the user has read all of this
        return _show(options, until)


def _show(options: argparse.Namespace, until: ExitStack) -> int:
    output = ["--output-dir", options.output_dir] if options.output_dir else []
    evaluation = ["--evaluation-dir", options.evaluation_dir] if options.evaluation_dir else []

    flags = [*RUN, *output]
    print_result(f"$ {CALLED.run} {shlex.join(flags)}")
    status = run(flags, skip=(), show_interaction_table=False, called=CALLED, until=until)
    if status:
        return status

    flags = ["--html", *output, *evaluation]
    print_result(f"\n$ {CALLED.score} {shlex.join(flags)}")
    scores = io.StringIO()
    with redirect_stdout(scores):
        status = score(flags)
    if status:
        return status
    # The score tables repeat those of the run.
    written = [line for line in scores.getvalue().split("\n") if line.startswith("written: ")]
    print_result("\n".join([*written, what_next()]))
    return 0


def what_next() -> str:
    """Return the commands for a model worth measuring, with their estimated cost."""
    config = RunConfig(dataset="medqa-sample", model=NEXT_MODEL)
    price = forecast(config, parse_environment({})).price_of(QUESTIONS)
    return f"""
Open the page above in a browser: each question, who said what, and EXAID's
summaries.

Next, with a model whose score means something (its key in .env: .env.example):
  .venv/bin/mdagents data download medqa
  .venv/bin/python main.py --model {NEXT_MODEL} --num-samples {QUESTIONS}
  .venv/bin/python evaluate_text_output.py --html
{wrapped(f"{QUESTIONS} questions cost about {price}, depending on how much the experts debate.")}"""


if __name__ == "__main__":
    sys.exit(main())
