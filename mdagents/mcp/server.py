"""The tools of the server, by the SDK of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from mdagents import __version__
from mdagents.mcp.folders import Folders
from mdagents.mcp.results import (
    FileScored,
    RunsCompared,
    TeamAnswer,
    file_scored,
    runs_compared,
    team_answer,
)
from mdagents.records.sample import SampleRecord
from mdagents.runs.one_question import question_of
from mdagents.scoring.comparison import compare
from mdagents.scoring.report import make_report
from mdagents.scoring.rows import Repeated, RunOutput, read_output
from mdagents.serve.answer_form import AnswerForm
from mdagents.serve.errors import ApiError
from mdagents.serve.progress import Line, Progress
from mdagents.serve.requests import Ask
from mdagents.serve.service import DEFAULT, Service
from mdagents_llm.errors import BenchError

T = TypeVar("T")

READING_SECONDS = 120.0
"""Time that reading and scoring of files may take."""
MOST_OPTIONS, MOST_RUNS = 16, 20

_INSTRUCTIONS = (
    "Answers medical multiple-choice questions with a team of language model agents, and scores "
    "recorded runs. For research on such teams; not for decisions about a patient."
)
_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_ASKS = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True
)


def make_server(service: Service, folders: Folders) -> MCPServer[Any]:
    """Return the server with its three tools.

    Args:
        service: Teams that answer.
        folders: Folders whose files may be read.
    """
    server: MCPServer[Any] = MCPServer(
        "mdagents", instructions=_INSTRUCTIONS, version=__version__, log_level="WARNING"
    )
    teams = ", ".join(service.names)

    @server.tool(
        description="Let a team of agents answer a medical multiple-choice question. It takes from "
        f"seconds to minutes and costs tokens. Teams: {teams}.",
        annotations=_ASKS,
    )
    async def answer_question(
        question: Annotated[str, Field(min_length=1, max_length=100_000)],
        options: Annotated[
            list[Annotated[str, Field(min_length=1, max_length=10_000)]],
            Field(min_length=2, max_length=MOST_OPTIONS, description="Texts; A is the first"),
        ],
        ctx: Context,
        team: Annotated[str, Field(max_length=200, description="Name of a team")] = DEFAULT,
        seed: Annotated[int | None, Field(ge=0, lt=2**31)] = None,
    ) -> TeamAnswer:
        with _told():
            source = question_of(question, options)
            asked = Ask(
                model=team,
                question=source,
                marks={letter: letter for letter in source.options},
                form=AnswerForm("{}"),
                filling=None,
                stream=False,
                include_usage=False,
                seed=seed,
                stop=(),
                ignored=(),
            )
            return await _answered(service, asked, ctx)

    @server.tool(
        description="Compare two or more recorded runs on the same questions: accuracies, paired "
        "differences with 95% interval and p-value, and a verdict.",
        annotations=_READS,
    )
    async def compare_runs(
        runs: Annotated[list[str], Field(min_length=2, max_length=MOST_RUNS,
                        description="Folders or result files of runs")],
        common: Annotated[bool, Field(description="Take the questions that all hold")] = False,
    ) -> RunsCompared:  # fmt: skip
        with _told():
            paths = list(map(folders.resolve, runs))
            return await _within(lambda: _compared(paths, common=common))

    @server.tool(
        description="Score a recorded run, or another program's file of predictions. Errors, "
        "refusals and replies without an answer count as wrong.",
        annotations=_READS,
    )
    async def score_file(
        path: Annotated[str, Field(description="Folder or result file")],
        repeated_ids: Annotated[
            Repeated | None,
            Field(
                description="Where a question occurs more than once: the first record, or epochs"
            ),
        ] = None,
    ) -> FileScored:
        with _told():
            found = folders.resolve(path)
            return await _within(lambda: _scored(found, repeated_ids))

    return server


@contextmanager
def _told() -> Iterator[None]:
    """Turn an expected failure into an error that the client's model reads.

    Raises:
        ToolError: What to change, in a line.
    """
    try:
        yield
    except ApiError as error:
        raise ToolError(error.message) from error
    except BenchError as error:
        raise ToolError(str(error)) from error


async def _answered(service: Service, asked: Ask, ctx: Context) -> TeamAnswer:
    """Return the answer of a team; each line of its debate is a progress notification.

    A call that the client cancels stops the team; what it spent stays in the ledger.

    Raises:
        ApiError: The question is not answered.
    """
    lines: asyncio.Queue[Line] = asyncio.Queue()
    progress = Progress(lines.put_nowait)
    task = service.start(asked, progress.tell)
    reporting = asyncio.ensure_future(_report(lines, ctx))
    try:
        record: SampleRecord = await task
    finally:
        task.cancel()
        reporting.cancel()
        await asyncio.gather(task, reporting, return_exceptions=True)
    return team_answer(record, progress.lines)


async def _report(lines: asyncio.Queue[Line], ctx: Context) -> None:
    """Send each line to the client; one that does not take them delays nobody else."""
    number = 0
    while True:
        line = await lines.get()
        number += 1
        await ctx.report_progress(number, message=line.text)


async def _within(read: Callable[[], T]) -> T:
    """Run a function in a thread, for `READING_SECONDS` at most.

    Raises:
        ToolError: It takes longer.
    """
    try:
        async with asyncio.timeout(READING_SECONDS):
            return await asyncio.to_thread(read)
    except TimeoutError:
        raise ToolError(f"reading took longer than {READING_SECONDS:g} s") from None


def _compared(paths: Sequence[Path], *, common: bool) -> RunsCompared:
    return runs_compared(compare([_read(path) for path in paths], common=common))


def _scored(path: Path, repeated: Repeated | None) -> FileScored:
    run = _read(path, repeated)
    return file_scored(run.name, make_report(run, []), dict(run.read_as))


def _read(path: Path, repeated: Repeated | None = None) -> RunOutput:
    run = read_output(path, repeated)
    if not run.rows:
        raise ToolError(f"{run.name} holds no finished question")
    return run
