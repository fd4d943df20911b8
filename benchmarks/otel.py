"""Measure what the spans of `--otel` cost a run with many calls in flight.

    python -m benchmarks.otel

The same questions are answered with and without `--otel`, in turn, at an endpoint of fixed latency.
The collector is a process of its own that reads each request and counts nothing. The ratios are
medians over pairs of runs, so that a machine that is busy with other work slows both of a pair. All
replies of a round arrive at once, so that CPU time is not hidden behind the latency; that of the
whole program includes imports, 0.15 s, and the encoding of the spans, which another thread does.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from statistics import median

from benchmarks.harness import (
    BASIC,
    CALLS_OF_BASIC,
    REPOSITORY,
    BenchmarkError,
    Provider,
    Result,
    Workspace,
    interleaved,
    judged,
    make_parser,
    median_ratio,
    parse,
    show_machine,
    show_results,
    show_table,
    workspace,
)
from benchmarks.throughput import Sample

AIM = 1.05
_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


async def collect() -> None:
    """Serve as a collector on a free port of loopback, which is printed, until killed."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await _head(reader):
            lines = head.decode("latin-1").lower().split("\r\n")
            length = next(line for line in lines if line.startswith("content-length:"))
            await reader.readexactly(int(length.partition(":")[2]))
            writer.write(_ANSWER)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _head(reader: asyncio.StreamReader) -> bytes:
    """Return the head of the next request; empty at the end of the connection."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


@contextmanager
def collector() -> Iterator[str]:
    """Start a collector process, and yield its address."""
    command = [sys.executable, "-m", "benchmarks.otel", "--collect"]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            if not port:
                raise BenchmarkError("the collector did not start")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def measure(place: Workspace, latency: float, questions: int, in_flight: int, rounds: int) -> None:
    """Print wall time and CPU time with spans against those without.

    Args:
        place: Workspace of the runs.
        latency: Latency of the endpoint in seconds.
        questions: Number of questions per run.
        in_flight: Maximum number of calls in flight.
        rounds: Number of pairs of runs.
    """
    calls = questions * CALLS_OF_BASIC
    limits = ("--max-connections", str(in_flight), "--max-samples", str(in_flight))
    flags = (*BASIC, *limits, "--num-samples", str(questions))
    with Provider("--latency", str(latency)) as provider, collector() as address:

        def run(name: str) -> Sample:
            state = place.new_state()
            (state / ".env").write_text(f"OTEL_EXPORTER_OTLP_ENDPOINT={address}\n")
            provider.reset()
            otel = () if name == "without" else ("--otel",)
            ended = place.run(provider, state, *flags, *otel)
            return Sample.of(ended, provider.stats(), calls, latency)

        samples = interleaved(run, ("without", "--otel"), rounds)
    rows = [
        {
            "run": name,
            "first request to last reply, s": f"{median(s.answering for s in seen):.2f}",
            "start to end, s": f"{median(s.whole for s in seen):.2f}",
            "CPU, ms/call": f"{median(s.cpu for s in seen) / calls * 1000:.2f}",
            "most in flight": max(s.max_in_flight for s in seen),
        }
        for name, seen in samples.items()
    ]
    show_table(
        f"{questions:,} basic questions = {calls:,} calls, latency {latency * 1000:.0f} ms, "
        f"{in_flight} in flight; medians of {rounds}",
        rows,
    )
    ratio = partial(median_ratio, samples["--otel"], samples["without"])
    show_results(
        "With spans / without",
        [
            judged(f"first request to last reply, median of {rounds} pairs",
                   ratio(lambda run: run.answering), AIM, digits=3),
            Result("start to end", f"{ratio(lambda run: run.whole):.3f}"),
            Result("CPU of the whole program", f"{ratio(lambda run: run.cpu):.3f}"),
        ],
    )  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; return the exit status."""
    parser = make_parser("otel", __doc__)
    add = parser.add_argument
    add("--latency", type=float, default=1.0, help="seconds [%(default)s]")
    add("--questions", type=int, default=600, help="of a run [%(default)s]")
    add("--in-flight", type=int, default=200, help="calls in flight [%(default)s]")
    add("--rounds", type=int, default=3, help="pairs of runs [%(default)s]")
    add("--collect", action="store_true", help="serve as the collector of a measurement")
    quick = {"latency": 0.1, "questions": 60, "in_flight": 30, "rounds": 1}
    options = parse(parser, argv, quick)
    if options.collect:
        asyncio.run(collect())
    show_machine("otel")
    with workspace(options.questions) as place:
        measure(place, options.latency, options.questions, options.in_flight, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
