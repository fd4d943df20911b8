"""Command line program that offers teams as models, by the API of OpenAI."""

from __future__ import annotations

import argparse
import asyncio
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mdagents.runs.config import RunConfig
from mdagents.runs.flags.call_flags import CallFlags
from mdagents.runs.flags.flag import Flags
from mdagents.runs.flags.lists import parts_of
from mdagents.runs.flags.model_flags import ModelFlags
from mdagents.runs.flags.output_flags import OutputFlags
from mdagents.runs.flags.picture_flags import PictureFlags
from mdagents.runs.flags.team_flags import ADAPTIVE, TeamFlags
from mdagents.runs.options import FlagFormatter, add_flag
from mdagents.runs.signals import stop_signals
from mdagents.settings import output_dir
from mdagents_llm.clock import Clock
from mdagents_llm.config import parse_environment, read_variables
from mdagents_llm.errors import ConfigError
from mdagents_llm.extras import needs_extra
from mdagents_llm.terminal.command_line import Parser
from mdagents_llm.terminal.printing import fails_in_one_line, print_line, print_result
from mdagents_llm.text import counted
from mdagents_llm.web.address import Place, listen

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette

TOKEN = "MDAGENTS_SERVE_TOKEN"
"""Variable with the token; without it, a server that others can reach makes one."""
PORT = 8080
_QUEUE = 64
_LONGEST_QUEUE = 10_000
_SECONDS = 600.0
"""Time limit of a question where the user sets none: the timeout of OpenAI's SDKs."""
_IDLE = 90
"""Seconds after which an idle connection is closed: longer than clients keep one, which would
otherwise send a question into a connection that is being closed."""
_LEAST_TOKEN = 16  # characters
_LOOK = 0.2  # seconds between two looks at whether the server is to end

_GROUPS: Mapping[str, type[Flags]] = {
    "Models": ModelFlags,
    "Teams": TeamFlags,
    "Calls and limits": CallFlags,
    "Pictures": PictureFlags,
    "Output": OutputFlags,
}
"""Title of a group in the help -> its flags."""
_NOT_SERVED = frozenset(
    {
        "method", "difficulty", "exaid", "exaid_wait", "fail_on_error", "skip_pictures",
        "peers", "processes", "ray_address", "batch", "fresh", "retry_errors", "otel_traces",
    }
)  # fmt: skip
"""Flags of a run that mean nothing for a server."""


@fails_in_one_line
def main(argv: Sequence[str], *, program: str = "mdagents serve") -> int:
    """Serve teams until Ctrl-C.

    Args:
        argv: Command line without the program's name.
        program: Name under which the user called the program.

    Returns:
        Exit status: 0 after Ctrl-C or SIGTERM, 2 for a usage error.
    """
    options = _parser(program).parse_args(argv)
    if not 0 <= options.max_queue <= _LONGEST_QUEUE:
        raise ConfigError(f"--max-queue is {options.max_queue} but must be 0 to {_LONGEST_QUEUE}")
    config, token = config_of(options), own_token()
    with needs_extra("serve", program):  # imported here: help needs no server
        from mdagents.serve.app import make_app
        from mdagents.serve.service import check_names
        from mdagents_llm.web.serve import server_of
    names = tuple(dict.fromkeys(parts_of(options.team or ADAPTIVE)))
    check_names(names)
    place = listen(options.host, options.port, flag="--port")
    if token:
        place = replace(place, token=token)
    with place.socket:
        app = make_app(place.hosts, place.token)
        seconds = config.sample_time_limit or _SECONDS
        server = server_of(app, round(seconds) + 1, "mdagents", keep_alive=_IDLE)
        for number in stop_signals():
            signal.signal(number, server.handle_exit)  # also before the server has started
        with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
            runner.run(_serve(server, app, place, config, names, options.max_queue, bool(token)))
    return 0


def config_of(options: argparse.Namespace) -> RunConfig:
    """Return the configuration of all teams, from the flags of `add_team_flags`.

    Raises:
        ConfigError: A flag is invalid, alone or in combination with another.
    """
    given = {
        name: value
        for name, value in vars(options).items()
        if name in RunConfig.model_fields and value is not None
    }
    config = RunConfig(**{"sample_time_limit": _SECONDS} | given)
    if config.otel_text and not config.otel:
        raise ConfigError("without --otel no spans are made; leave --otel-text out")
    return config


def own_token() -> str:
    """Return the token that the user has set; empty without one.

    Raises:
        ConfigError: It is too short, or has other characters than printable ASCII.
    """
    token = read_variables().get(TOKEN, "")
    if token and (len(token) < _LEAST_TOKEN or not token.isascii() or not token.isprintable()):
        raise ConfigError(f"{TOKEN} must be {_LEAST_TOKEN} or more printable ASCII characters")
    return token


async def _serve(
    server: uvicorn.Server,
    app: Starlette,
    place: Place,
    config: RunConfig,
    names: Sequence[str],
    most_queued: int,
    has_own_token: bool,
) -> None:
    """Open the teams, and serve them until the server is to end and its questions are answered."""
    from mdagents.serve.service import Service, open_service

    environment = parse_environment(read_variables())

    async def announce(service: Service) -> None:
        while not server.should_exit:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(_LOOK)
        if service.in_progress:
            doing = counted(service.in_progress, "question")
            print_line(f"stopping: {doing} in progress may finish; Ctrl-C stops at once")

    opened = open_service(
        config, names, environment, Clock(), most_queued=most_queued, say=print_line
    )
    async with opened as service:
        service.is_draining = lambda: server.should_exit
        app.state.service = service
        model = config.model if config.model != "auto" else str(service.model)
        print_line(f"agents use {model}; ledger in {service.files.folder}")
        key = f"; API key: {place.token}" if place.token and not has_own_token else ""
        offered = f"mdagents/{next(iter(service.teams))}"
        url = f"http://{place.hosts[0]}:{place.port}/v1"
        print_result(f"model {offered} at {url}{key} (Ctrl-C ends it)")
        announcing = asyncio.ensure_future(announce(service))
        try:
            await server.serve(sockets=[place.socket])
        finally:
            announcing.cancel()


def _parser(program: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=program,
        description="Offers teams as models: a server with the API of OpenAI for chat completions "
        "and Responses.",
        epilog=f"A question takes at most {_SECONDS:g} s unless --sample-time-limit is given; "
        f"the limits of a run hold for the server from its start. {TOKEN} sets the API key that "
        "clients give. Exit status: 0 after Ctrl-C or SIGTERM, 2 usage error.",
        formatter_class=FlagFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--team", metavar="TEAM,…",
        help="teams to offer besides the built-in ones, such as a file.py; the first is also the "
        f"model 'mdagents' [{ADAPTIVE}]")  # fmt: skip
    parser.add_argument("--host", metavar="HOST", default="",
        help="address to listen on; any but this machine's own requires a token "
        "[127.0.0.1]")  # fmt: skip
    parser.add_argument("--port", metavar="N", type=int, default=PORT,
        help="port; 0: any free port")  # fmt: skip
    parser.add_argument("--max-queue", metavar="N", type=int, default=_QUEUE,
        help="questions that may wait for a place; more get status 429")  # fmt: skip
    add_team_flags(parser)
    return parser


def add_team_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of models, teams, limits and output that a server of teams has."""
    for title, flags in _GROUPS.items():
        group = parser.add_argument_group(title)
        for name, field, flag in flags.described():
            if name not in _NOT_SERVED:
                add_flag(group, name, field, flag)
    parser.set_defaults(output_dir=output_dir())
