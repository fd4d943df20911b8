"""Print how many of 12 questions that only pixels answer each method gets right, on each wire.

python -m benchmarks.picture_matrix [--wire chat] [--method basic]

The fake provider decodes the pictures that it gets and names the option that they show. All
questions have the same text, so 12 of 12 means that every deciding agent saw its picture. In the
column `swapped` each picture shows a wrong option (chat completions): there, 0 is right.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import tempfile
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from prettytable import PrettyTable

from mdagents.runs import plan
from mdagents.runs.program import main as run
from tests.fake_provider import FakeProvider
from tests.support.pictured import write_coded
from tests.support.sighted import METHODS, WIRES, flags_of, look, settings_of, word_embedding

_QUESTIONS = 12
_SWAPPED = "swapped"


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.picture_matrix", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--wire", action="append", choices=[*WIRES, _SWAPPED], help="only this")
    parser.add_argument("--method", action="append", choices=METHODS, help="only this")
    chosen = parser.parse_args(argv)
    wires = chosen.wire or [*WIRES, _SWAPPED]
    table = PrettyTable(["method", *wires], align="r")
    table.align["method"] = "l"
    plan.__dict__["local_embedding"] = word_embedding
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), FakeProvider() as model:
        os.environ |= settings_of(model)
        look(model)
        questions = {
            is_swapped: write_coded(Path(f"swapped-{is_swapped}/seen"), swapped=is_swapped)
            for is_swapped in (False, True)
        }
        outputs = (Path(f"output-{number}") for number in count())
        for method in chosen.method or METHODS:
            cells = []
            for wire in wires:
                flags = flags_of(method, "chat" if wire == _SWAPPED else wire)
                cells.append(_rights([*questions[wire == _SWAPPED], *flags], next(outputs)))
            table.add_row([method, *cells])
        model.errors.clear()  # a request without its picture is in the table already
    print(table)


def _rights(flags: list[str], output: Path) -> str:
    """Run, and return how many answers are right and which other statuses there are."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = run(
            [*flags, "--output-dir", str(output), "--display", "none"],
            skip=(),
            show_interaction_table=False,
        )
    arrays = list(output.glob("*.json"))
    if not arrays:
        return f"exit {status}"
    records = json.loads(arrays[0].read_text())
    rights = sum(bool(record["correct"]) for record in records)
    others = {record["status"] for record in records} - {"answered"}
    return f"{rights} of {_QUESTIONS}" + "".join(f", {name}" for name in sorted(others))


if __name__ == "__main__":
    main()
