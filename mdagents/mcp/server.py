"""The tools of the server, by the SDK of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any

from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import INVALID_REQUEST, CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import Field, ValidationError

from mdagents import __version__
from mdagents.datasets.questions import LETTERS
from mdagents.mcp.folders import Folders
from mdagents.mcp.frames import INVALID
from mdagents.mcp.reader import Job, Kind
from mdagents.mcp.reading import ReaderPool
from mdagents.mcp.results import (
    FileScored,
    RunsCompared,
    TeamAnswer,
    has_ended_without_letter,
    spent_on,
    team_answer,
)
from mdagents.runs.one_question import question_of
from mdagents.scoring.rows import Repeated
from mdagents.serve.answer_form import AnswerForm
from mdagents.serve.errors import ApiError
from mdagents.serve.progress import Line, Progress
from mdagents.serve.requests import Ask, all_shown, check_is_for_one
from mdagents.serve.service import DEFAULT, Service
from mdagents_llm.errors import BenchError

MOST_OPTIONS, MOST_RUNS = len(LETTERS), 20
PING_SECONDS = 15.0
"""Time after which a team that says nothing is reported to be at work: a client may wait for at
most 60 s from one progress notification to the next."""
_TO_REPORT = 1.0  # seconds that a client gets to take the last lines before the answer

_INSTRUCTIONS = (
    "Answers medical multiple-choice questions with a team of language model agents, and scores "
    "recorded runs. For research on such teams; not for decisions about a patient."
)
_OPTIONS = (
    "Texts without letters; A is the first. Texts with the letters of all places in another order "
    "keep them: '(B) Zinc', '(A) Iron'"
)
_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_ASKS = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True
)


async def _refuse_invalid(
    ctx: ServerRequestContext[Any, Any], call_next: CallNext
) -> HandlerResult:
    if ctx.method == INVALID:
        raise MCPError(
            INVALID_REQUEST,
            'Invalid Request: each line must be one object with "jsonrpc": "2.0", an id, a method '
            "and, optionally, params, an object",
        )
    return await call_next(ctx)


class Tools(MCPServer[Any]):
    """A server that refuses arguments which its tools do not have, instead of ignoring them.

    Null stands for the default of an argument: several clients send all arguments of a tool.
    """

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool.

        Raises:
            ToolError: It is unknown or fails, or an argument is unknown or invalid.
        """
        for tool in await self.list_tools():
            known = tool.input_schema.get("properties", {})
            if tool.name == name and (unknown := sorted(arguments.keys() - known.keys())):
                first = unknown[0][:100]
                raise ToolError(f"{name} has no argument {first!r}; it has {', '.join(known)}")
        given = {name: value for name, value in arguments.items() if value is not None}
        try:
            return await super().call_tool(name, given, context)
        except ToolError as error:
            invalid = error.__cause__
            if not isinstance(invalid, ValidationError):
                raise
            first = invalid.errors()[0]
            argument = ".".join(map(str, first["loc"]))
            raise ToolError(f"{name}: argument {argument!r}: {first['msg']}") from None


def make_server(
    service: Service,
    folders: Folders,
    reading: ReaderPool | None = None,
    ping: float = PING_SECONDS,
) -> MCPServer[Any]:
    """Return the server with its three tools.

    Args:
        service: Teams that answer.
        folders: Folders whose files may be read.
        reading: Reads the files; None: with the usual limits.
        ping: Seconds of silence after which a team is reported to be at work.
    """
    reading = reading or ReaderPool()
    server = Tools(
        "mdagents", instructions=_INSTRUCTIONS, version=__version__, log_level="WARNING",
        middleware=[_refuse_invalid],
    )  # fmt: skip
    teams = ", ".join(service.names)

    @server.tool(
        description="Let a team of agents answer a medical multiple-choice question. It takes from "
        "seconds to minutes and costs tokens. letter is null where the team came to no answer. "
        f"Teams: {teams}.",
        title="Ask a team",
        annotations=_ASKS,
    )
    async def answer_question(
        question: Annotated[str, Field(min_length=1, max_length=100_000)],
        options: Annotated[
            list[Annotated[str, Field(min_length=1, max_length=10_000)]],
            Field(min_length=2, max_length=MOST_OPTIONS, description=_OPTIONS),
        ],
        ctx: Context,
        team: Annotated[str, Field(max_length=200, description="Name of a team")] = DEFAULT,
        seed: Annotated[int | None, Field(ge=0, lt=2**31)] = None,
    ) -> TeamAnswer:
        with _told():
            check_is_for_one(question, options, "question")
            source = all_shown(question_of(question, options), "options")
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
            return await _answered(service, asked, ctx, ping)

    @server.tool(
        description="Compare two or more recorded runs on the same questions: accuracies, paired "
        "differences with 95% interval and p-value, and a verdict.",
        title="Compare runs",
        annotations=_READS,
    )
    async def compare_runs(
        runs: Annotated[list[str], Field(min_length=2, max_length=MOST_RUNS,
                        description="Folders or result files of runs")],
        common: Annotated[bool, Field(description="Take the questions that all hold")] = False,
    ) -> RunsCompared:  # fmt: skip
        with _told():
            paths = tuple(map(folders.resolve, runs))
            job = Job(kind=Kind.COMPARE, paths=paths, folders=folders.folders, common=common)
            compared = (await reading.outcome_of(job)).compared
            assert compared is not None, "an error is raised"
            return compared

    @server.tool(
        description="Score a recorded run, or another program's file of predictions. Errors, "
        "refusals and replies without an answer count as wrong.",
        title="Score a file",
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
            paths = (folders.resolve(path),)
            job = Job(kind=Kind.SCORE, paths=paths, folders=folders.folders, repeated=repeated_ids)
            scored = (await reading.outcome_of(job)).scored
            assert scored is not None, "an error is raised"
            return scored

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
        spent = f" ({spent_on(error.spent)})" if error.spent else ""
        raise ToolError(f"{error.message}{spent}") from error
    except BenchError as error:
        raise ToolError(str(error)) from error


async def _answered(service: Service, asked: Ask, ctx: Context, ping: float) -> TeamAnswer:
    """Return the answer of a team; each line of its debate is a progress notification.

    A call that the client cancels stops the team; what it spent stays in the ledger.

    Raises:
        ApiError: The question could not be worked on to its end.
    """
    lines: asyncio.Queue[Line | None] = asyncio.Queue()
    progress = Progress(lines.put_nowait)
    task = service.start(asked, progress.tell)
    reporting = asyncio.ensure_future(_report(lines, ctx, ping))
    try:
        record, why = await task, ""
    except ApiError as error:
        if error.record is None or not has_ended_without_letter(error.record):
            raise
        record, why = error.record, error.message
    finally:
        task.cancel()
        lines.put_nowait(None)
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.wait({reporting}), _TO_REPORT)
        reporting.cancel()
        await asyncio.gather(task, reporting, return_exceptions=True)
    return team_answer(record, progress.lines, why)


async def _report(lines: asyncio.Queue[Line | None], ctx: Context, ping: float) -> None:
    """Send each line to the client until None; one that does not take them delays nobody else."""
    number, started = 0, asyncio.get_running_loop().time()
    while True:
        try:
            line = await asyncio.wait_for(lines.get(), ping)
        except TimeoutError:
            seconds = asyncio.get_running_loop().time() - started
            text = f"at work for {seconds:.0f} s"
        else:
            if line is None:
                return
            text = line.text
        number += 1
        await ctx.report_progress(number, message=text)
