"""The settings of `main.py`: flags, environment variables, a configuration file.

The precedence is flag > environment (`MDAGENTS_` and the flag in capitals) > `--run-config` >
default. This module only reads texts; `flags` describes and validates each flag, and `config`
validates them together.
"""

from __future__ import annotations

import argparse
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import configargparse
from pydantic.fields import FieldInfo

import mdagents
from mdagents.runs.config import RunConfig
from mdagents.runs.flags.call_flags import CallFlags
from mdagents.runs.flags.flag import Flag, Flags, flag_name, value_type
from mdagents.runs.flags.lists import parts_of
from mdagents.runs.flags.model_flags import ModelFlags
from mdagents.runs.flags.output_flags import OutputFlags
from mdagents.runs.flags.picture_flags import PictureFlags
from mdagents.runs.flags.question_flags import QuestionFlags
from mdagents.runs.flags.team_flags import TeamFlags
from mdagents.settings import DISPLAYS, Difficulty
from mdagents_llm.config import origin_of, read_variables
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.yaml_text import read_yaml
from mdagents_llm.terminal.command_line import Parser, flags_in
from mdagents_llm.terminal.did_you_mean import did_you_mean, is_one_slip
from mdagents_llm.terminal.printing import print_line
from mdagents_llm.web.address import add_address_flags

SWITCHES = (*(f"SKIP_{level.upper()}" for level in Difficulty), "SHOW_INTERACTION_TABLE")
"""Variables that `env_flag` reads for the constants of `main.py`."""

_ENV_PREFIX = "MDAGENTS_"
_RUN_CONFIG = "MDAGENTS_RUN_CONFIG"
_CACHE_DIR = "MDAGENTS_CACHE_DIR"
_NOT_FLAGS = (
    _CACHE_DIR,
    "MDAGENTS_DEBUG",
    "MDAGENTS_SERVE_TOKEN",
    "MDAGENTS_SHARED_DATA",
)
"""Variables with the same prefix that `mdagents_llm.config`, the tests, the benchmarks or
`mdagents serve` read."""
_EPILOG = (
    "Every flag can come from the environment (MDAGENTS_MAX_CONNECTIONS=32) or from --run-config; "
    "flag > environment > file. --num_samples is read like --num-samples."
)


_GROUPS: Mapping[str, type[Flags]] = {
    "Questions": QuestionFlags,
    "Pictures": PictureFlags,
    "Models": ModelFlags,
    "Teams": TeamFlags,
    "Calls and limits": CallFlags,
    "Run and output": OutputFlags,
}
"""Title of a group in the help -> its flags."""


class _Parser(Parser, configargparse.ArgumentParser):  # type: ignore[misc]
    """Parser whose errors also name the variable or the file that holds a wrong value."""

    def place_of(self, flag: str) -> str:
        name = flag.lstrip("-")
        variable = variable_of(name)
        for source, settings in self.get_source_to_settings_dict().items():
            if source == "environment_variables" and variable in settings:
                return f"{variable} {origin_of(variable)}"
            if source.startswith("config_file|") and name in settings:
                return f"{flag} in {source.partition('|')[2]}"
        return flag

    def is_empty(self, destination: str, given: str) -> bool:
        # `--sample-id ,` has an error of its own.
        return super().is_empty(destination, given) and (
            destination != "sample_id" or not given.strip()
        )


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
        flags: dict[str, str | list[str]] = {}
        for name, value in content.items():
            flag = str(name).replace("_", "-")
            if flag in flags:
                raise ConfigError(f"--run-config {stream.name} has '{flag}' in two spellings")
            if flag == "run-config":
                raise ConfigError(f"--run-config {stream.name} cannot name another such file")
            if flag != "skip" or value:  # `skip: []` skips nothing
                flags[flag] = _text(value)
        return flags


def _text(value: object) -> str | list[str]:
    if isinstance(value, dict):
        return [f"{name}={of}" for name, of in value.items()]
    if isinstance(value, list) and any("=" in str(entry) for entry in value):
        return [str(entry) for entry in value]  # of a flag that may be repeated: role=model
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


class FlagFormatter(argparse.HelpFormatter):
    """Formatter that shows only the defaults of interest, in a narrow left column."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)

    def _get_help_string(self, action: argparse.Action) -> str | None:
        plain = action.help or ""
        if action.default is None or action.default is False or action.default in ("", (), []):
            return plain
        if action.default is argparse.SUPPRESS:
            return plain
        return f"{plain} [%(default)s]"


TRUE = frozenset({"1", "true", "yes", "on"})
"""Values that turn a switch on, in any case."""
FALSE = frozenset({"0", "false", "no", "off", ""})


def env_flag(name: str) -> bool:
    """Read a switch such as SKIP_BASIC from the environment or `.env`: 1/true/yes/on in any case.

    For the constants of a program: an invalid value ends the program with a one-line error.
    """
    try:
        value = read_variables().get(name, "").strip().lower()
        if value not in TRUE | FALSE:
            raise ConfigError(f"{name} is '{value}' but must be yes or no")
    except ConfigError as error:
        print_line(f"error: {error}")
        raise SystemExit(2) from None
    return value in TRUE


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
    options.places = {flag: parser.place_of(flag) for flag in map(flag_name, vars(options))}
    options.typed = flags_in(map(_with_dashes, argv))
    return options


def _check_names(variables: Mapping[str, str], options: argparse.Namespace) -> None:
    """Refuse a mistyped variable, which would otherwise be ignored silently."""
    flags = {_RUN_CONFIG, *map(variable_of, vars(options))}
    for name in variables:
        if name.startswith(_ENV_PREFIX) and name not in {*_NOT_FLAGS, *flags}:
            bare, *known = (n.removeprefix(_ENV_PREFIX) for n in (name, *sorted(flags)))
            meant = did_you_mean(bare, known).replace("'", f"'{_ENV_PREFIX}", 1) or "; unset it"
            raise ConfigError(f"{name} {origin_of(name)} is not a setting of this program{meant}")
        if meant := next((switch for switch in SWITCHES if is_one_slip(name, switch)), ""):
            raise ConfigError(
                f"{name} {origin_of(name)} is not a setting of this program; did you mean "
                f"'{meant}'?"
            )


def variables_to_resume() -> list[str]:
    """Return the variables with this program's prefix that a resumed run needs again.

    They set flags, except that `--fresh` would start it over, and the folder of weights.
    """
    flags = vars(make_parser().parse_args([], env_vars={}))
    names = {_CACHE_DIR, _RUN_CONFIG, *map(variable_of, flags)}
    return sorted(names - {variable_of("fresh")})


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
    said["skip"] = ",".join([*parts_of(options.skip), *skip])
    try:
        return RunConfig(**said)
    except ConfigError as error:
        places = dict(options.places)
        message = re.sub(r"--[a-z-]+", lambda flag: places.pop(flag[0], flag[0]), str(error))
        raise ConfigError(message) from None


def variable_of(flag: str) -> str:
    """Return the variable that sets a flag: `MDAGENTS_NUM_ROUNDS` for `num-rounds`."""
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
        formatter_class=FlagFormatter,
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
    for title, flags in _GROUPS.items():
        group = parser.add_argument_group(title)
        for name, field, flag in flags.described():
            add_flag(group, name, field, flag)
            _add_start_flags(group, after=name)
    group = parser.add_argument_group("Live view")
    group.add_argument(
        "--view", action="store_true", help="open a live view of the run in a browser"
    )
    add_address_flags(group)
    return parser


def _add_start_flags(group: Any, after: str) -> None:
    """Add the flags of one start, no settings of a run, that the help shows after a field's."""
    add = group.add_argument
    match after:
        case "sample_id":
            add("--rerun-wrong", metavar="RUN",
                help="only the questions that this run got wrong or that failed in it")  # fmt: skip
        case "exaid_wait":
            add("--show-interaction-table", action="store_true", help="print who wrote to whom")
        case "cache":
            add("--resume", metavar="RUN", nargs="?", const="",
                help="resume this run, or the newest unfinished one")  # fmt: skip
        case "retry_errors":
            add("--dry-run", action="store_true",
                help="forecast calls, tokens and cost; call no model")  # fmt: skip
            add("--display", choices=DISPLAYS, default="full",
                help="progress on stderr; without a terminal, every setting but none prints "
                "lines")  # fmt: skip
            add("--json", action="store_true", help="print only the results, as one JSON object")


def add_flag(group: Any, name: str, field: FieldInfo, flag: Flag) -> None:
    """Add the flag of a field of `RunConfig` to a parser.

    Args:
        group: An `argparse` parser or argument group.
        name: Name of the field.
        field: The field.
        flag: Description of the flag.
    """
    group.add_argument(flag_name(name), help=flag.help, **_arguments(field, flag))


def _arguments(field: FieldInfo, flag: Flag) -> dict[str, Any]:
    """Return the arguments of `add_argument` for a flag, besides its help."""
    kind = value_type(field)
    if kind is bool:
        return {"action": "store_true"}
    if kind is Mapping:
        return {"metavar": flag.metavar, "action": "append", "default": []}
    if issubclass(kind, StrEnum):
        return {"choices": [member.value for member in kind], "default": field.default}
    return {
        "metavar": flag.metavar,
        "type": kind if kind in (int, float) else None,
        "default": str(field.default) if kind is Path else field.default,
    }
