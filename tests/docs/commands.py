"""The commands on pages, and whether the programs that they name accept them."""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import runpy
import shlex
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn
from unittest import mock

from mdagents.cli.commands import PROGRAMS
from mdagents.runs.options import read_config, read_options
from mdagents_llm.terminal.command_line import Parser
from tests.conftest import REPOSITORY

IN_A_CLONE = {
    "main.py": "run",
    "study.py": "study",
    "view.py": "view",
    "evaluate_text_output.py": "score",
    "extract_by_question_id.py": "data extract",
    "split_test_data.py": "data split",
}
"""Program in the clone → the installed one."""
_OTHERS = """
cd claude codex cp curl docker echo export git head inspect jupyter kill less lm_eval ls mkdir
mlflow npx nvidia-smi ollama phoenix pip podman psql ray sbatch scontrol scout sleep srun tail
vf-eval vf-validate wait
"""
OTHERS = frozenset(_OTHERS.split())
"""Programs that are not ours, and words of the shell."""
_PYTHONS = ("python", "python3", ".venv/bin/python")


@dataclass(frozen=True)
class Command:
    """A command of a line of shell."""

    variables: Mapping[str, str]
    words: tuple[str, ...]


class _Parsed(BaseException):
    """Raised instead of going on with a command line that was accepted."""


def commands_in(text: str) -> Iterator[Command]:
    """Yield the commands of lines of shell, without those of others.

    Raises:
        ValueError: A line is no shell.
    """
    text = re.sub(r"\\\n\s*", " ", text)
    for line in text.splitlines():
        lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars="|&;<>()")
        lexer.whitespace_split = True
        lexer.commenters = "#"
        words: list[str] = []
        for word in [*lexer, ";"]:
            if word and set(word) <= set("|&;()"):
                if words:
                    yield _command(words)
                words = []
            elif set(word) <= set("<>"):
                words.append(">")
            elif words and words[-1] == ">":
                words.pop()
            else:
                words.append(word)


def _command(words: list[str]) -> Command:
    variables = {}
    while words and (found := re.fullmatch(r"([A-Z][A-Z0-9_]*)=(.*)", words[0])):
        variables[found[1]] = found[2]
        words = words[1:]
    return Command(variables, tuple(word for word in words if word != "…"))


def holds_commands(text: str) -> bool:
    """Whether a block of code without a language is lines of shell: one begins with a program."""
    known = {*OTHERS, *_PYTHONS, "make", "mdagents", ".venv/bin/mdagents"}
    return any(
        re.sub(r"^(\$ )?(\w+=\S* )*", "", line).partition(" ")[0] in known
        for line in text.splitlines()
    )


def is_of_the_wheel(command: Command) -> bool:
    """Whether a command calls what the wheel holds; the others take seconds to import."""
    words = command.words[1:] if command.words[:1] and command.words[0] in _PYTHONS else ()
    is_module = words[:1] == ("-m",) and words[1:2] not in (("mdagents",), ("pip",))
    return not is_module and not (words and words[0].startswith(("scripts/", "benchmarks/")))


def is_command(text: str) -> bool:
    """Whether code within a line of text is a command with arguments to check."""
    program = r"(python3? (-m [\w.]+|[\w/]+\.py)|mdagents [a-z]+)"
    return re.match(rf"(\w+=\S+ )*(\.venv/bin/)?{program} -", text) is not None


def refusal(command: Command, saved: Collection[str] = ()) -> str:
    """Return why a command is not accepted; empty if it is, or if its program is not ours.

    Args:
        command: The command.
        saved: Files that the page tells its reader to save.
    """
    name, *arguments = command.words or ("cd",)
    if name.rpartition("/")[2] in OTHERS:
        return ""
    if name == "make":
        targets = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
        asked = [word for word in arguments if "=" not in word]
        return "" if set(asked) <= set(targets) else f"the Makefile does not make {asked}"
    if name in _PYTHONS and arguments[:1] == ["-m"]:
        name, *arguments = arguments[1:]
        if name == "pip":
            return ""
        if name != "mdagents":
            return _outcome(lambda: _run_module(name, arguments))
    elif name in _PYTHONS:
        name, *arguments = arguments
        if name in IN_A_CLONE:
            arguments = [*IN_A_CLONE[name].split(), *arguments]
        elif (REPOSITORY / name).is_file():
            return _outcome(lambda: _run_path(name, arguments))
        else:
            return "" if name in saved else f"there is no {name}"
    elif name.startswith("scripts/"):
        return "" if (REPOSITORY / name).is_file() else f"there is no {name}"
    elif name not in ("mdagents", ".venv/bin/mdagents"):
        return f"{name} is no program of ours; tests/docs/commands.py names those of others"
    return _outcome(lambda: _run_ours(arguments, command.variables))


def _run_ours(arguments: list[str], variables: Mapping[str, str]) -> None:
    if arguments[:1] == ["--version"]:
        return
    for count in (2, 1):
        program, rest = " ".join(arguments[:count]), arguments[count:]
        if program == "run":
            options = read_options(rest, variables)
            if options.resume is None:
                read_config(options)
            return
        if program in PROGRAMS:
            _until_parsed(partial(PROGRAMS[program][0], rest, program))
            return
    raise ValueError(f"there is no mdagents {' '.join(arguments[:2])}")


def _run_module(name: str, arguments: list[str]) -> None:
    with mock.patch.object(sys, "argv", [name, *arguments]), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # runpy's: its package is imported already
        _until_parsed(lambda: runpy.run_module(name, run_name="__main__", alter_sys=False))


def _run_path(name: str, arguments: list[str]) -> None:
    with mock.patch.object(sys, "argv", [name, *arguments]):
        _until_parsed(lambda: runpy.run_path(str(REPOSITORY / name), run_name="__main__"))


def _until_parsed(main: Callable[[], object]) -> None:
    """Call a program until it has parsed its command line."""
    with (
        mock.patch.object(Parser, "parse_args", _stopping(Parser.parse_args)),
        mock.patch.object(
            argparse.ArgumentParser, "parse_args", _stopping(argparse.ArgumentParser.parse_args)
        ),
    ):
        try:
            main()
        except _Parsed:
            return
    raise ValueError("it does not parse its command line")


def _stopping(parse: Callable[..., object]) -> Callable[..., NoReturn]:
    def parse_and_stop(*arguments: Any, **named: Any) -> NoReturn:
        parse(*arguments, **named)
        raise _Parsed

    return parse_and_stop


def _outcome(run: Callable[[], None]) -> str:
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            run()
        except SystemExit as ended:  # --help and --version end with 0
            return "" if ended.code == 0 else said.getvalue()
        except Exception as error:  # noqa: BLE001 - whatever a program refuses with
            return said.getvalue() or f"{type(error).__name__}: {error}"
    return ""
