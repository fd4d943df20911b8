"""Write the `--help` of each program into docs/reference/cli.md; a test fails if they differ."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "cli.md"
_PLACE = re.compile(
    r"<!-- help of (?P<program>[^:]+): [^>]*-->\n(?:\n```text\n.*?\n```\n)?", re.DOTALL
)


def with_help(page: str) -> str:
    """Return the page with each program's help text after its marker."""

    def block(match: re.Match[str]) -> str:
        mark = match[0].partition("\n")[0]
        return f"{mark}\n\n```text\n{help_of(match['program'])}\n```\n"

    return _PLACE.sub(block, page)


def help_of(program: str) -> str:
    """Return the output of `python PROGRAM.py --help` or `mdagents … --help` at 80 columns."""
    command = program.split()
    if command[0] == "mdagents":
        command = ["-m", "mdagents", *command[1:]]
    done = subprocess.run(
        [sys.executable, *command, "--help"],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


if __name__ == "__main__":
    PAGE.write_text(with_help(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} is up to date")
