"""Measure runs on questions with pictures: tokens and bytes per question, and peak memory.

    python -m benchmarks.pictures

Each question has a picture of its own, about 2 MB as sent, which all its agents see. The fake
provider decodes what it receives.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.harness import (
    BASIC,
    REPOSITORY,
    BenchmarkError,
    Program,
    Provider,
    Workspace,
    judged,
    ledger,
    make_parser,
    parse,
    show_machine,
    show_results,
    show_table,
    workspace,
)
from tests.support.pictures import WORDS, coded_picture

PEAK_AIM = 400.0  # MiB
_SIDE = 870  # pixels of the least width and height; a pixel takes some 2.5 bytes
_WIRES: Mapping[str, tuple[str, str, str]] = {
    "openai/gpt-4o-mini": ("OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1"),
    "anthropic/claude-haiku-4-5": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", ""),
    "google/gemini-2.5-flash-lite": ("GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", ""),
}
"""Model -> variables of its key and address, and the end of the address."""


def add_pictures(dataset: Path) -> int:
    """Give each question of a data set a picture; return the largest size in bytes."""
    size = 0
    records = [json.loads(line) for line in dataset.read_text(encoding="utf-8").splitlines()]
    for number, record in enumerate(records):
        name = f"picture-{number:05d}.png"
        sides = (_SIDE + number // 50, _SIDE + number % 50)  # so that no two are the same
        content = coded_picture(WORDS[number % len(WORDS)], sides, grain=True)
        size = max(size, len(content))
        dataset.with_name(name).write_bytes(content)
        record["images"] = [name]
    lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    dataset.write_text("".join(lines), encoding="utf-8")
    return size


def measure(
    place: Workspace, model: str, latency: float, connections: int, size: int
) -> dict[str, object]:
    """Return a row of the table: a run of a model over its wire."""
    key, variable, end = _WIRES[model]
    state = place.new_state()
    with Provider("--latency", str(latency)) as provider:
        root = provider.base_url.removesuffix("/v1")
        environment = place.environment(provider, state)
        environment |= {key: "benchmark", variable: f"{root}{end}"}
        flags = ("--dataset", str(place.dataset), "--model", model, *BASIC, "--exaid", "off")
        limits = ("--display", "none", "--json", "--max-connections", str(connections))
        command = [sys.executable, str(REPOSITORY / "main.py"), *flags, *limits]
        peak = Program(command, state, environment).peak()
    rows = ledger(state)
    questions = len({row.case_id for row in rows})
    if not all(row.replied for row in rows):
        raise BenchmarkError("a call failed")
    encoded = len(base64.b64encode(bytes(size)))
    tokens = sum(row.usage.input_tokens for row in rows)
    return {
        "model": model,
        "calls a question": f"{len(rows) / questions:.1f}",
        "input tokens a question": f"{tokens / questions:,.0f}",
        "MB sent a question": f"{len(rows) * encoded / questions / 1e6:.1f}",
        "peak MiB": f"{peak:.0f}",
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; return the exit status."""
    parser = make_parser("pictures", __doc__)
    add = parser.add_argument
    add("--questions", type=int, default=200, help="questions [%(default)s]")
    add("--latency", type=float, default=0.2, help="seconds [%(default)s]")
    add("--connections", type=int, default=64, help="--max-connections of main.py [%(default)s]")
    add("--wire", choices=list(_WIRES), action="append", help="only these models [all]")
    options = parse(parser, argv, quick={"questions": 8})
    show_machine("pictures")
    with workspace(options.questions) as place:
        size = add_pictures(place.dataset)
        measured = [
            measure(place, model, options.latency, options.connections, size)
            for model in options.wire or _WIRES
        ]
    title = f"{options.questions} questions with a picture of {size / 1e6:.1f} MB, basic team"
    show_table(f"{title}, {options.connections} connections", measured)
    results = [
        judged(f"peak of {row['model']}", float(str(row["peak MiB"])), PEAK_AIM, " MiB", 0)
        for row in measured
    ]
    show_results("From the start of the process to its end", results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
