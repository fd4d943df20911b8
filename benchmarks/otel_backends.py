"""Compare what backends make of the spans of a run with its ledger.

    python -m venv backends
    backends/bin/pip install mlflow arize-phoenix
    python -m benchmarks.otel_backends --mlflow backends/bin/mlflow --phoenix backends/bin/phoenix

Each backend is started on a free port of loopback, gets the spans of a run with faults and EXAID,
and is asked for their tokens and their cost. Tokens must be those of the ledger; a backend computes
the cost from its own prices.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from benchmarks.harness import (
    BASIC,
    BenchmarkError,
    Provider,
    Workspace,
    make_parser,
    parse,
    show_machine,
    show_table,
    workspace,
)

_TO_START, _TO_BOOK = 120.0, 30.0  # seconds
_FAULTS = ("429=0.05", "500=0.05", "refusal=0.03", "invalid_schema=0.05")


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over the spans of a run."""

    tokens: int
    cost: float
    """Cost in USD."""


@dataclass(frozen=True, slots=True)
class Backend:
    """A server that takes spans.

    Args:
        command: Arguments of its program, with `{port}` and `{grpc}`.
        variables: Its environment variables, likewise.
        health: Path that answers once the server is ready.
        ours: Our variables, with `{url}`.
        flags: Our flags.
        ask: Returns the sums of what the server at an address has stored.
    """

    command: Sequence[str]
    variables: Mapping[str, str]
    health: str
    ours: Mapping[str, str]
    flags: Sequence[str]
    ask: Callable[[str], Sums]


def _of_mlflow(url: str) -> Sums:
    body = {
        "locations": [{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "0"}}],
        "max_results": 500,
    }
    found = _asked(f"{url}/api/3.0/mlflow/traces/search", body).get("traces", [])
    tokens, cost = 0, 0.0
    for trace in found:
        facts = trace.get("trace_metadata", {})  # none while it arrives
        tokens += int(json.loads(facts.get("mlflow.trace.tokenUsage", "{}")).get("total_tokens", 0))
        cost += float(json.loads(facts.get("mlflow.trace.cost", "{}")).get("total_cost", 0))
    return Sums(tokens, cost)


def _of_phoenix(url: str) -> Sums:
    fields = "tokenCountTotal costSummary { total { cost } }"
    query = f"{{ projects {{ edges {{ node {{ {fields} }} }} }} }}"
    (edge,) = _asked(f"{url}/graphql", {"query": query})["data"]["projects"]["edges"]
    node = edge["node"]
    cost = node["costSummary"]["total"]["cost"] or 0.0
    return Sums(int(node["tokenCountTotal"] or 0), cost)


BACKENDS = {
    "mlflow": Backend(
        command=("server", "--host", "127.0.0.1", "--port", "{port}",
                 "--backend-store-uri", "sqlite:///mlflow.db", "--workers", "1"),
        variables={"MLFLOW_DISABLE_TELEMETRY": "true"},
        health="/health",
        ours={
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "{url}/v1/traces",
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "x-mlflow-experiment-id=0",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "60",
            "OTEL_BSP_EXPORT_TIMEOUT": "60000",
        },
        flags=("--otel-traces", "question"),
        ask=_of_mlflow,
    ),
    "phoenix": Backend(
        command=("serve",),
        variables={
            "PHOENIX_HOST": "127.0.0.1", "PHOENIX_PORT": "{port}", "PHOENIX_GRPC_PORT": "{grpc}",
            "PHOENIX_WORKING_DIR": "{folder}", "PHOENIX_TELEMETRY_ENABLED": "false",
        },
        health="/healthz",
        ours={"OTEL_EXPORTER_OTLP_ENDPOINT": "{url}"},
        flags=(),
        ask=_of_phoenix,
    ),
}  # fmt: skip


def _asked(url: str, body: object) -> Any:
    request = Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urlopen(request, timeout=60) as response:
        return json.load(response)


@contextmanager
def running(backend: Backend, program: Path, folder: Path) -> Iterator[str]:
    """Start a backend in a folder, and yield its address when it is ready."""
    with socket.create_server(("127.0.0.1", 0)) as a, socket.create_server(("127.0.0.1", 0)) as b:
        port, grpc = a.getsockname()[1], b.getsockname()[1]
    places = {"port": port, "grpc": grpc, "folder": folder}
    command = [str(program), *(word.format(**places) for word in backend.command)]
    variables = {name: value.format(**places) for name, value in backend.variables.items()}
    with (
        (folder / "server.log").open("wb") as log,
        subprocess.Popen(
            command, cwd=folder, env={**os.environ, **variables}, stdout=log, stderr=log
        ) as server,
    ):
        url = f"http://127.0.0.1:{port}"
        try:
            _wait_for(lambda: _is_ready(f"{url}{backend.health}"), _TO_START, f"{program} to start")
            yield url
        finally:
            server.terminate()


def _is_ready(url: str) -> bool:
    try:
        with urlopen(url, timeout=5):
            return True
    except (URLError, OSError):
        return False


def _wait_for(holds: Callable[[], bool], seconds: float, what: str) -> None:
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            raise BenchmarkError(f"waited {seconds:g} s for {what}")
        time.sleep(0.5)


def compare(place: Workspace, name: str, program: Path, questions: int) -> dict[str, object]:
    """Run questions, and return a row with the sums of the ledger and those of a backend.

    Args:
        place: Workspace of the run.
        name: Name of the backend.
        program: Its program.
        questions: Number of questions.
    """
    backend, state = BACKENDS[name], place.new_state()
    rates = [word for fault in _FAULTS for word in ("--rate", fault)]
    faults = ("--latency", "0.02", "--retry-after", "0", *rates)
    with running(backend, program, place.new_state()) as url, Provider(*faults) as provider:
        ours = "".join(f"{n}={value.format(url=url)}\n" for n, value in backend.ours.items())
        (state / ".env").write_text(ours)
        flags = ("--num-samples", str(questions), "--exaid", "turn_end", "--otel", *backend.flags)
        place.start(provider, state, *BASIC, *flags).wait()
        rows = _rows(state)
        tokens = sum(row["input_tokens"] + row["output_tokens"] for row in rows)
        seen = backend.ask(url)
        until = time.monotonic() + _TO_BOOK
        while seen.tokens != tokens and time.monotonic() < until:
            time.sleep(1)
            seen = backend.ask(url)
    return {
        "backend": name,
        "attempts in the ledger": len(rows),
        "tokens: ledger": f"{tokens:,}",
        "tokens: backend": f"{seen.tokens:,}",
        "USD: ledger": f"{sum(row['cost_usd'] or 0 for row in rows):.5f}",
        "USD: backend": f"{seen.cost:.5f}",
        "": "equal" if seen.tokens == tokens else "DIFFER",
    }


def _rows(state: Path) -> list[dict[str, Any]]:
    (path,) = state.glob("output/*/calls.jsonl")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program and print its table; return 1 if a backend has other tokens, else 0."""
    parser = make_parser("otel_backends", __doc__)
    for name in BACKENDS:
        parser.add_argument(f"--{name}", type=Path, metavar="FILE", help=f"program of {name}")
    parser.add_argument("--questions", type=int, default=100, help="of a run [%(default)s]")
    options = parse(parser, argv, {"questions": 5})
    chosen = _chosen(parser, options)
    show_machine("otel_backends")
    with workspace(options.questions) as place:
        rows = [compare(place, name, program, options.questions) for name, program in chosen]
    show_table(f"{options.questions} basic questions with faults and EXAID", rows)
    return int(any(row[""] != "equal" for row in rows))


def _chosen(parser: argparse.ArgumentParser, options: argparse.Namespace) -> list[tuple[str, Path]]:
    chosen = [(name, getattr(options, name)) for name in BACKENDS if getattr(options, name)]
    if not chosen:
        parser.error(f"give the program of a backend: {', '.join(f'--{n}' for n in BACKENDS)}")
    return [(name, path.absolute()) for name, path in chosen]


if __name__ == "__main__":
    sys.exit(main())
