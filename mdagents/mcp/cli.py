"""Command line program that offers teams and scores by the Model Context Protocol."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mdagents.mcp.folders import Folders
from mdagents.runs.config import RunConfig
from mdagents.runs.flags.lists import parts_of
from mdagents.runs.flags.team_flags import ADAPTIVE
from mdagents.runs.options import FlagFormatter
from mdagents.runs.signals import stop_signals
from mdagents.serve.cli import TOKEN, add_team_flags, config_of, own_token
from mdagents.settings import DATA_DIR, data_dir
from mdagents_llm.clock import Clock
from mdagents_llm.config import parse_environment, read_variables
from mdagents_llm.errors import ConfigError
from mdagents_llm.extras import needs_extra
from mdagents_llm.terminal.command_line import Parser
from mdagents_llm.terminal.printing import fails_in_one_line, print_line
from mdagents_llm.web.address import Place, listen

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

PORT = 8090
PATH = "/mcp"
_QUEUE = 16
_PIECE = 2**16  # bytes
_TO_END = 10  # seconds that responses in progress get at the end


@fails_in_one_line
def main(argv: Sequence[str], *, program: str = "mdagents mcp") -> int:
    """Serve the tools until the client leaves, or Ctrl-C.

    Args:
        argv: Command line without the program's name.
        program: Name under which the user called the program.

    Returns:
        Exit status: 0 at the end, 2 for a usage error.
    """
    options = _parser(program).parse_args(argv)
    if options.http is None and (options.host or options.port is not None):
        raise ConfigError("--host and --port belong to --http")
    config = config_of(options)
    names = tuple(dict.fromkeys(parts_of(options.team or ADAPTIVE)))
    usual = (str(config.output_dir), data_dir())
    folders = Folders.of(options.allow or usual, needed=bool(options.allow))
    with needs_extra("mcp", program):  # imported here: help needs no server
        import mdagents.mcp.server  # noqa: F401
        from mdagents.serve.service import check_names
    check_names(names)
    if options.http:
        port = PORT if options.port is None else options.port
        place = listen(options.host, port, flag="--port")
        if token := own_token():
            place = replace(place, token=token)
        with place.socket, contextlib.suppress(KeyboardInterrupt):
            asyncio.run(_serve_http(config, names, folders, place))
        return 0
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve_stdio(config, names, folders))
    return 0


@asynccontextmanager
async def _opened(
    config: RunConfig, names: Sequence[str], folders: Folders
) -> AsyncIterator[MCPServer[Any]]:
    from mdagents.mcp.server import make_server
    from mdagents.serve.service import open_service

    environment = parse_environment(read_variables())
    opened = open_service(config, names, environment, Clock(), most_queued=_QUEUE, say=print_line)
    async with opened as service:
        print_line(f"teams: {', '.join(service.names)}; ledger in {service.files.folder}")
        yield make_server(service, folders)


async def _serve_stdio(config: RunConfig, names: Sequence[str], folders: Folders) -> None:
    """Serve the client that started the program, until it closes standard input, or a signal."""
    serving = asyncio.current_task()
    assert serving is not None
    end_of_input = _input_that_ends()

    def end() -> None:
        serving.cancel()
        end_of_input()

    for number in stop_signals():
        asyncio.get_running_loop().add_signal_handler(number, end)
    with contextlib.suppress(asyncio.CancelledError):
        async with _opened(config, names, folders) as server:
            try:
                await server.run_stdio_async()
            except* BrokenPipeError:
                pass  # the client ended without a word, while it was told something


def _input_that_ends() -> Callable[[], None]:
    """Put a pipe in the place of standard input, and return a function that ends it.

    The SDK reads standard input in a thread that nothing can cancel: without this, the program
    would wait for the client to write a line or to leave.
    """
    from mdagents.mcp.frames import answerable

    source = os.dup(0)
    read, write = os.pipe()
    os.dup2(read, 0)
    os.close(read)
    nowhere = os.open(os.devnull, os.O_WRONLY)

    def end() -> None:
        # Not closed: the thread below may be about to write, and the number would be used again.
        os.dup2(nowhere, write)

    def copy() -> None:
        begun = bytearray()  # a line whose end has not come
        with contextlib.suppress(OSError):  # ended
            while piece := os.read(source, _PIECE):
                begun += piece
                if b"\n" in piece:
                    *lines, rest = begun.split(b"\n")
                    begun = bytearray(rest)
                    for line in lines:
                        send(answerable(bytes(line)) + b"\n")
            send(answerable(bytes(begun)))
        end()

    def send(content: bytes) -> None:
        while content:
            content = content[os.write(write, content) :]

    threading.Thread(target=copy, daemon=True).start()
    return end


async def _serve_http(
    config: RunConfig, names: Sequence[str], folders: Folders, place: Place
) -> None:
    """Serve clients of streamable HTTP until Ctrl-C or SIGTERM."""
    from mcp.server.transport_security import TransportSecuritySettings
    from starlette.middleware import Middleware

    from mdagents.serve.app import Access
    from mdagents_llm.web.guard import guards
    from mdagents_llm.web.serve import is_of_no_leaver, server_of

    async with _opened(config, names, folders) as server:
        app = server.streamable_http_app(
            streamable_http_path=PATH,
            # The guards below check hosts and origins, as for every server of this program.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        hosts = ["*"] if place.token else list(place.hosts)
        checks = guards(hosts, "", flag="--host")
        for guard in (Middleware(Access, token=place.token), *reversed(checks)):
            app.add_middleware(guard.cls, *guard.args, **guard.kwargs)
        logging.getLogger("mcp.server.streamable_http").addFilter(is_of_no_leaver)
        web = server_of(app, _TO_END, "mdagents")
        for number in stop_signals():
            signal.signal(number, web.handle_exit)
        key = f" (bearer token in {TOKEN})" if own_token() else ""
        key = key or (f" with bearer token {place.token}" if place.token else "")
        print_line(f"tools at http://{place.hosts[0]}:{place.port}{PATH}{key}; Ctrl-C ends it")
        async with server.session_manager.run():
            await web.serve(sockets=[place.socket])


def _parser(program: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=program,
        description="Offers teams and scores as tools of an assistant: a server of the Model "
        "Context Protocol over stdin and stdout, or over HTTP.",
        epilog="Tools: answer_question, compare_runs, score_file. Only files in the folders of "
        f"--allow are read. {TOKEN} sets the bearer token of --http. Exit status: 0 at the end, "
        "2 usage error.",
        formatter_class=FlagFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--team", metavar="TEAM,…",
        help="teams to offer besides the built-in ones, such as a file.py; the first answers "
        f"unless a call names another [{ADAPTIVE}]")  # fmt: skip
    parser.add_argument("--allow", metavar="DIR", nargs="+",
        help=f"folders that may be read [--output-dir, {DATA_DIR}]")  # fmt: skip
    parser.add_argument("--http", action="store_true", default=None,
        help="streamable HTTP instead of stdin and stdout")  # fmt: skip
    parser.add_argument("--host", metavar="HOST", default="",
        help="with --http: address to listen on; any but this machine's own requires a token "
        "[127.0.0.1]")  # fmt: skip
    parser.add_argument("--port", metavar="N", type=int,
        help=f"with --http: port; 0: any free port [{PORT}]")  # fmt: skip
    add_team_flags(parser)
    return parser
