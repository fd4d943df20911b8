"""What `make run` shows: the router and all three teams at work on the embedded model.

One adaptive run over a few questions, its scores, and one more run for each team that the router
sent nothing to.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEVELS = ("basic", "intermediate", "advanced")


def main() -> int:
    """Run and score; return the exit status of the first step that fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--num-samples", type=int, default=3, help="questions [%(default)s]")
    parser.add_argument("--output-dir", default="output", help="where runs are [%(default)s]")
    options = parser.parse_args()
    common = ["--model", "local", "--output-dir", options.output_dir, "--fresh"]

    status = _python("main.py", *common, "--num-samples", str(options.num_samples))
    if status:
        return status
    run = max((ROOT / options.output_dir).glob("*.json"), key=lambda file: file.stat().st_mtime)
    status = _python("evaluate_text_output.py", "--input", str(run))
    if status:
        return status

    records = json.loads(run.read_text(encoding="utf-8"))
    seen = {record["difficulty"] for record in records if record["difficulty"]}
    missing = [level for level in LEVELS if level not in seen]
    if missing:
        print(
            f"\nThe router of the small model sent every question to {', '.join(sorted(seen))}. "
            f"One question each for the other teams ({', '.join(missing)}) in runs of their own:\n"
        )
    for level in missing:
        status = _python("main.py", *common, "--num-samples", "1", "--difficulty", level)
        if status:
            return status
    return 0


def _python(*arguments: str) -> int:
    print(f"$ python {' '.join(arguments)}", flush=True)
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
