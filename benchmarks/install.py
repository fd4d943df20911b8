"""Measure `pip install` of the wheel by extra: packages, megabytes, seconds.

    python -m benchmarks.install [--before REVISION] [--extras core,report,…]

Each selection is installed twice into an empty environment from pip's configured package index. The
second installation needs no download and is the one reported.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
import time
import tomllib
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.harness import (
    REPOSITORY,
    BenchmarkError,
    make_parser,
    parse,
    show_machine,
    show_table,
)

CORE = "core"
"""Name for the wheel without an extra."""


def build(source: Path, folder: Path) -> Path:
    """Build the wheel of a checkout and return its path."""
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(source))
    (wheel,) = folder.glob("*.whl")
    return wheel


def measure(wheel: Path, extra: str, cache: Path) -> dict[str, object]:
    """Install a wheel with an extra and return a table row."""
    seconds = 0.0
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            venv.create(folder)
            python = str(Path(folder, "bin", "python"))
            what = str(wheel) if extra == CORE else f"{wheel}[{extra}]"
            begin = time.perf_counter()
            _pip("--python", python, "--cache-dir", str(cache), "install", what)
            seconds = time.perf_counter() - begin
            libraries = Path(sysconfig.get_path("purelib", vars={"base": folder}))
            count = len(list(libraries.glob("*.dist-info")))
            # Excluding bytecode, which pip writes but other installers do not.
            files = (f for f in libraries.rglob("*") if f.is_file() and f.suffix != ".pyc")
            size = sum(file.stat().st_size for file in files)
    return {"extra": extra, "packages": count, "MB": f"{size / 1e6:.0f}", "s": f"{seconds:.0f}"}


def ratios(rows: Sequence[Mapping[str, object]], whole: Mapping[str, object]) -> None:
    """Print a table with sizes relative to that of `whole`."""
    part = float(str(whole["MB"]))
    shown = [{**row, "MB / before": f"{float(str(row['MB'])) / part:.2f}"} for row in rows]
    show_table("pip install of the wheel in an empty environment, nothing to download", shown)


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise BenchmarkError(f"pip {arguments[0]}: {done.stderr.strip()[-500:]}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; return the exit status."""
    parser = make_parser("install", __doc__)
    add = parser.add_argument
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    names = ",".join([CORE, *extras["optional-dependencies"]])
    add("--before", metavar="REVISION", help="also the wheel of an earlier commit, as a whole")
    add("--extras", default=names, help="what to install, with commas [%(default)s]")
    options = parse(parser, argv, quick={"extras": CORE})
    show_machine("install")
    with tempfile.TemporaryDirectory() as folder:
        cache, rows = Path(folder, "cache"), []
        if options.before:
            old = Path(folder, "before")
            clone = ["git", "clone", "--quiet", str(REPOSITORY), str(old)]
            subprocess.run(clone, check=True)
            subprocess.run(["git", "checkout", "--quiet", options.before], check=True, cwd=old)
            row = measure(build(old, Path(folder, "old")), CORE, cache)
            rows.append({**row, "extra": f"all of {options.before}"})
        wheel = build(REPOSITORY, Path(folder, "new"))
        rows += [measure(wheel, extra, cache) for extra in options.extras.split(",")]
        ratios(rows, rows[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
