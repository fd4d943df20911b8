"""The settings of `main.py`: flags, environment variables, a configuration file.

The precedence is flag > environment (`MDAGENTS_` and the flag in capitals) > `--run-config` >
default. This module only lists the settings; `config` interprets and validates them.
"""

from __future__ import annotations

import argparse
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import configargparse

import mdagents
from exaid_core.policy import TriggerPolicy
from mdagents.datasets.questions import OptionOrder
from mdagents.display import DISPLAYS
from mdagents.runs.config import EXAID_OFF, MODEL_ROLES, WORD_LIMITS, RunConfig
from mdagents.settings import Difficulty, EngineName, Method, Preset, Router
from mdagents.teams.ladder import AGREEMENT
from mdagents_llm.config import origin_of, read_variables
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.yaml_text import read_yaml
from mdagents_llm.layers.attempt import ATTEMPT_TIMEOUT
from mdagents_llm.layers.cache import CacheMode
from mdagents_llm.model_configs import APIS, EFFORTS
from mdagents_llm.terminal.command_line import Parser, flags_in
from mdagents_llm.terminal.did_you_mean import did_you_mean
from mdagents_llm.terminal.printing import print_line
from mdagents_llm.web.address import add_address_flags

SWITCHES = (*(f"SKIP_{level.upper()}" for level in Difficulty), "SHOW_INTERACTION_TABLE")
"""Variables that `env_flag` reads for the constants of `main.py`."""

EXAID_POLICIES = (*(policy.value for policy in TriggerPolicy), EXAID_OFF)

_PLAIN = (str, int, float, Path)
_ENV_PREFIX = "MDAGENTS_"
_RUN_CONFIG = "MDAGENTS_RUN_CONFIG"
_NOT_FLAGS = ("MDAGENTS_CACHE_DIR", "MDAGENTS_DEBUG", "MDAGENTS_SHARED_DATA")
"""Variables with the same prefix that `mdagents_llm.config`, the tests or the benchmarks read."""
_EPILOG = (
    "Every flag can come from the environment (MDAGENTS_MAX_CONNECTIONS=32) or from --run-config; "
    "flag > environment > file. --num_samples is read like --num-samples."
)


class _Parser(Parser, configargparse.ArgumentParser):  # type: ignore[misc]
    """Parser whose errors also name the variable or the file that holds a wrong value."""

    def place_of(self, flag: str) -> str:
        name = flag.lstrip("-")
        variable = _variable(name)
        for source, settings in self.get_source_to_settings_dict().items():
            if source == "environment_variables" and variable in settings:
                return f"{variable} {origin_of(variable)}"
            if source.startswith("config_file|") and name in settings:
                return f"{flag} in {source.partition('|')[2]}"
        return flag


class _NamedFile(io.StringIO):
    """Stand-in for a file until `_RunConfigFile` reads it, so that errors have the same words."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class _RunConfigFile(configargparse.YAMLConfigFileParser):  # type: ignore[misc]
    """Parser for YAML in which every value is text: `off` is a word, not a boolean."""

    def parse(self, stream: _NamedFile) -> dict[str, str | list[str]]:
        content = read_yaml(Path(stream.name), f"--run-config {stream.name}")
        if not isinstance(content, dict):
            raise ConfigError(
                f"--run-config {stream.name} holds no flags; write one a line, such as "
                "num-samples: 20"
            )
        return {str(name).replace("_", "-"): _text(value) for name, value in content.items()}


def _text(value: object) -> str | list[str]:
    if isinstance(value, dict):
        return [f"{name}={of}" for name, of in value.items()]
    if isinstance(value, list) and any("=" in str(entry) for entry in value):
        return [str(entry) for entry in value]  # of a flag that may be repeated: role=model
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


class _Formatter(argparse.HelpFormatter):
    """Formatter that shows only the defaults of interest, in a narrow left column."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)

    def _get_help_string(self, action: argparse.Action) -> str | None:
        plain = action.help or ""
        if action.default is None or action.default is False or action.default in ("", []):
            return plain
        if action.default is argparse.SUPPRESS:
            return plain
        return f"{plain} [%(default)s]"


_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}


def env_flag(name: str) -> bool:
    """Read a switch such as SKIP_BASIC from the environment or `.env`: 1/true/yes/on in any case.

    For the constants of a program: an invalid value ends the program with a one-line error.
    """
    try:
        value = read_variables().get(name, "").strip().lower()
        if value not in _TRUE | _FALSE:
            raise ConfigError(f"{name} is '{value}' but must be yes or no")
    except ConfigError as error:
        print_line(f"error: {error}")
        raise SystemExit(2) from None
    return value in _TRUE


def read_options(
    argv: Sequence[str],
    variables: Mapping[str, str],
    *,
    program: str = "python main.py",
    kept: Mapping[str, object] | None = None,
) -> argparse.Namespace:
    """Parse the command line over the environment over the configuration file.

    Args:
        argv: Command line without the program's name.
        variables: Environment variables.
        program: Name under which the user called the program.
        kept: Flag -> value with which the run was started, from its `run.json`, for `--resume RUN`;
            they replace the defaults.

    Raises:
        ConfigError: A flag, a variable or an entry of the file is unknown or not valid.
    """
    parser = make_parser(program)
    parser.set_defaults(**(kept or {}))
    arguments = [_with_dashes(argument) for argument in argv]
    file = variables.get(_RUN_CONFIG)
    if file and not any(argument.startswith("--run-config") for argument in arguments):
        arguments = ["--run-config", file, *arguments]
    options = parser.parse_args(arguments, env_vars=dict(variables))
    _check_names(variables, options)
    flags = [f"--{name.replace('_', '-')}" for name in vars(options)]
    options.typed = flags_in(map(_with_dashes, argv))
    options.places = {flag: parser.place_of(flag) for flag in flags}
    return options


def _check_names(variables: Mapping[str, str], options: argparse.Namespace) -> None:
    """Refuse a mistyped variable, which would otherwise be ignored silently."""
    flags = {_RUN_CONFIG, *map(_variable, vars(options))}
    for name in variables:
        if name.startswith(_ENV_PREFIX) and name not in {*_NOT_FLAGS, *flags}:
            bare, *known = (n.removeprefix(_ENV_PREFIX) for n in (name, *sorted(flags)))
            meant = did_you_mean(bare, known).replace("'", f"'{_ENV_PREFIX}", 1) or "; unset it"
            raise ConfigError(f"{name} {origin_of(name)} is no setting of this program{meant}")
        if meant := next((switch for switch in SWITCHES if _is_one_slip(name, switch)), ""):
            raise ConfigError(
                f"{name} {origin_of(name)} is no setting of this program; did you mean '{meant}'?"
            )


def _is_one_slip(given: str, meant: str) -> bool:
    """Return whether a name has one letter missing, added, replaced or swapped with the next.

    Variables without this program's prefix must be that similar to count as a mistake.
    """
    while given and given[0] == meant[:1]:
        given, meant = given[1:], meant[1:]
    return given != meant and (
        given[1:] in (meant, meant[1:])
        or given == meant[1:]
        or (given[:2] == meant[1::-1] and given[2:] == meant[2:])
    )


def read_config(options: argparse.Namespace, skip: Iterable[str] = ()) -> RunConfig:
    """Return the configuration of a command line.

    Args:
        options: Result of `read_options`.
        skip: Levels that the constants of `main.py` leave out in addition.

    Raises:
        ConfigError: A value is invalid, alone or in combination. A flag that was not set on the
            command line is named with its source where it first appears.
    """
    said = {name: getattr(options, name) for name in RunConfig.model_fields}
    said["skip"] = ",".join([options.skip, *skip])
    try:
        return RunConfig(**said)
    except ConfigError as error:
        places = dict(options.places)
        message = re.sub(r"--[a-z-]+", lambda flag: places.pop(flag[0], flag[0]), str(error))
        raise ConfigError(message) from None


def _variable(flag: str) -> str:
    return f"{_ENV_PREFIX}{flag.replace('-', '_').upper()}"


def _with_dashes(argument: str) -> str:
    if not argument.startswith("--"):
        return argument
    name, equals, value = argument.partition("=")
    return name.replace("_", "-") + equals + value


def make_parser(program: str = "python main.py") -> _Parser:
    """Return the parser of `main.py`, which `mdagents run` shares."""
    parser = _Parser(  # type: ignore[call-arg]  # those of configargparse, which has no types
        prog=program,
        description="Answers multiple-choice medical questions with teams of LLM agents.",
        epilog=_EPILOG,
        formatter_class=_Formatter,
        allow_abbrev=False,
        add_config_file_help=False,
        add_env_var_help=False,
        auto_env_var_prefix=_ENV_PREFIX,
        config_file_parser_class=_RunConfigFile,
        config_file_open_func=_NamedFile,
        args_for_setting_config_path=["--run-config"],
        config_arg_help_message="YAML file with any of these flags (num-samples: 20)",
        usage="%(prog)s [--dataset NAME] [--model NAME] [flags]",
    )
    parser.add_argument("--version", action="version", version=f"mdagents {mdagents.__version__}")
    _add_data_flags(parser.add_argument_group("Questions"))
    _add_model_flags(parser.add_argument_group("Models"))
    _add_team_flags(parser.add_argument_group("Teams"))
    _add_endpoint_flags(parser.add_argument_group("Calls and limits"))
    _add_run_flags(parser.add_argument_group("Run and output"))
    _add_view_flags(parser.add_argument_group("Live view"))
    fields = RunConfig.model_fields.items()
    defaults = {n: field.default for n, field in fields if isinstance(field.default, _PLAIN)}
    parser.set_defaults(**{n: str(d) if isinstance(d, Path) else d for n, d in defaults.items()})
    return parser


def _values(closed_set: type[StrEnum]) -> list[str]:
    return [member.value for member in closed_set]


def _add_data_flags(group: Any) -> None:
    add, count = group.add_argument, partial(group.add_argument, metavar="N", type=int)
    add(
        "--dataset", metavar="NAME", help="folder under --data-dir, or a .jsonl, .json or .csv file"
    )
    add("--split", metavar="NAME", help="file in that folder, without extension")
    add("--data-dir", metavar="DIR", help="folder of the data sets")
    count("--num-samples", help="answer the first N questions [all]")
    add("--limit", metavar="N|A-B", help="the first N, or the A-th to the B-th question [all]")
    add("--sample-id", metavar="ID,…", help="only the questions with these ids")
    add("--sample-shuffle", metavar="SEED", type=int, help="shuffle the questions before the limit")
    add("--option-order", choices=_values(OptionOrder),
        help="order of the options: a new one in each epoch, one for all epochs, or the data "
        "set's")  # fmt: skip
    count("--seed", help="seed for the option order and for every call")
    count("--epochs", help="answer each question N times")
    add("--skip", metavar="LEVEL,…", default="", help="skip questions routed to these levels")
    add("--skip-pictures", action="store_true",
        help="skip questions with a picture, or whose text refers to one")  # fmt: skip


def _add_model_flags(group: Any) -> None:
    add = group.add_argument
    add("--model", metavar="NAME",
        help="provider/name or a known name; auto: by key, else the embedded model")  # fmt: skip
    add("--model-base-url", metavar="URL", help="any OpenAI-compatible endpoint")
    add("--model-role", metavar="ROLE=MODEL", action="append", default=[],
        help=f"a different model for one role; repeatable ({', '.join(MODEL_ROLES)})")  # fmt: skip
    add("--api", metavar="API",
        help=f"which API of an OpenAI-compatible endpoint: {', '.join(APIS)}; by role: "
        "expert=responses [auto: responses for models that have no other]")  # fmt: skip
    add("--reasoning-effort", metavar="EFFORT",
        help=f"reasoning effort: {', '.join(EFFORTS)}; by role: expert=low,decision=high "
        "[the endpoint's default]")  # fmt: skip
    add("--reasoning-tokens", metavar="N",
        help="tokens for hidden reasoning; also by role [8192, and more when they are used "
        "up; 0 for models that do not think]")  # fmt: skip
    add("--max-tokens", metavar="N",
        help="maximum tokens of a reply, hidden reasoning included; also by role [as each reply "
        "needs]")  # fmt: skip


def _add_team_flags(group: Any) -> None:
    add, count = group.add_argument, partial(group.add_argument, metavar="N", type=int)
    temperature = partial(group.add_argument, metavar="T", type=float)
    add("--difficulty", metavar="LEVEL,…",
        help="adaptive: a router rates each question; basic, intermediate or advanced: that team "
        "answers; several: in turn")  # fmt: skip
    add("--method", metavar="METHOD",
        help=f"the teams ({Method.MDAGENTS}), or instead of them "
        f"{', '.join(m for m in Method if m is not Method.MDAGENTS)}; or one of your own: "
        "a file.py or package.module:solve")  # fmt: skip
    add("--router", choices=_values(Router),
        help="what chooses the team: a model, or whether the experts of a team "
        "agree")  # fmt: skip
    add("--agreement", metavar="X", type=float,
        help="mean confidence at which agreeing experts decide, with --router disagreement "
        f"[{AGREEMENT:g}]")  # fmt: skip
    add("--preset", choices=_values(Preset), help="sizes of the teams")
    count(
        "--num-experts",
        help="number of experts of basic and intermediate [3; classic 3, 5; small 2]",
    )
    count("--num-rounds", help="number of debate rounds [3; classic 5; small 1]")
    count("--num-turns", help="turns per round [3; classic 5; small 1]")
    count("--num-teams", help="number of teams of advanced [3; classic 2; small 2]")
    count("--team-size", help="clinicians per team [3; classic 2; small 2]")
    add("--words", metavar="NAME=N", action="append", default=[],
        help=f"a different word limit; repeatable ({', '.join(WORD_LIMITS)})")  # fmt: skip
    temperature(
        "--decision-temperature",
        help="temperature of router, recruiter, arbitrator, moderator, coordinator",
    )
    temperature("--expert-temperature", help="temperature of all other turns")
    add("--exaid", metavar="POLICY",
        help=f"live summaries: {', '.join(EXAID_POLICIES)} [full_exaid for "
        "the teams, turn_end with --preset small; off with another --method]")  # fmt: skip
    add("--exaid-wait", metavar="S", type=float,
        help="seconds to wait for summaries after the last answer")  # fmt: skip
    add("--show-interaction-table", action="store_true", help="print who wrote to whom")


def _add_endpoint_flags(group: Any) -> None:
    count = partial(group.add_argument, metavar="N", type=int)
    rate = partial(group.add_argument, metavar="N", type=float)
    seconds = partial(group.add_argument, metavar="S", type=float)
    count("--max-connections", help="concurrent calls to an endpoint [16; local 2]")
    count("--max-samples",
        help="concurrent questions [twice --max-connections; local as many; batch "
        "500]")  # fmt: skip
    count("--max-retries", help="retries of a failed call")
    seconds("--timeout", help="stop retrying a call after S seconds")
    seconds("--attempt-timeout",
        help="timeout of one attempt, in seconds "
        f"[{ATTEMPT_TIMEOUT:g}; local: as --timeout]")  # fmt: skip
    seconds("--hedge-after", help="send a second request after S silent seconds [never]")
    rate("--rpm", help="requests per minute at an endpoint [no limit]")
    rate("--tpm", help="tokens per minute at an endpoint [no limit]")
    count("--token-limit", help="maximum tokens of the run [none]")
    group.add_argument(
        "--cost-limit", metavar="USD", type=float, help="maximum cost of the run [none]"
    )
    count("--sample-token-limit", help="maximum tokens of a question [none]")
    seconds("--sample-time-limit", help="maximum seconds of a question [none]")
    group.add_argument("--fail-on-error", metavar="X", type=float,
        help="stop after more than X api errors (a count, or a fraction below 1) "
        "[never]")  # fmt: skip


def _add_run_flags(group: Any) -> None:
    add, switch = group.add_argument, partial(group.add_argument, action="store_true")
    add("--output-dir", metavar="DIR", help="folder for runs")
    add("--engine", choices=_values(EngineName), help="where questions are answered")
    add("--ray-address", metavar="HOST:PORT",
        help="head of a Ray cluster, or auto [a cluster on this machine]")  # fmt: skip
    add("--ray-workers", metavar="N", type=int,
        help="worker processes [one per CPU of the cluster; this machine 2]")  # fmt: skip
    add("--cache", choices=_values(CacheMode),
        help="cache replies and reuse them; only: replay without network")  # fmt: skip
    add("--resume", metavar="RUN", nargs="?", const="",
        help="resume this run, or the newest unfinished one")  # fmt: skip
    switch("--batch",
        help="use the provider's batch API (half price, up to 24 h)")  # fmt: skip
    switch("--fresh", help="start over and keep the old run under a dated name")
    switch("--retry-errors", help="answer questions that ended in api_error again")
    switch("--dry-run", help="forecast calls, tokens and cost; call no model")
    add("--display", choices=DISPLAYS, default="full",
        help="progress on stderr; without a terminal all but none print lines")  # fmt: skip
    switch("--json", help="print only the results, as one JSON object")
    switch("--log-prompts", help="write prompts and replies into calls.jsonl")
    switch("--keep-reasoning",
        help="keep the hidden reasoning that endpoints return, in calls.jsonl and on "
        "pages")  # fmt: skip


def _add_view_flags(group: Any) -> None:
    add = group.add_argument
    add("--view", action="store_true", help="open a live view of the run in a browser")
    add_address_flags(group)
