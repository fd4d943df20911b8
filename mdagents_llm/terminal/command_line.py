"""The command-line parser of every program: one-line errors that say what to type instead."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from mdagents_llm.errors import ConfigError, StorageError
from mdagents_llm.files.home import of_home
from mdagents_llm.terminal.did_you_mean import did_you_mean
from mdagents_llm.terminal.printing import STOPPED, print_line, print_result

_NO_VALUE = re.compile(r"^argument (\S+): expected .* argument$")
_BLANK = " \t\r\n,"
"""Characters of a value that says nothing; lists have commas between their entries."""
_KINDS = {int: "a whole number", float: "a number"}


def flags_in(argv: Iterable[str]) -> frozenset[str]:
    """Return the flags of a command line, without their values."""
    return frozenset(word.partition("=")[0] for word in argv if word.startswith("--"))


class Parser(argparse.ArgumentParser):
    """Argument parser that raises a ConfigError where argparse would print its usage and exit."""

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None, **more: Any
    ) -> argparse.Namespace:
        """Parse a command line, and refuse unknown flags and extra words.

        Raises:
            ConfigError: The command line is not valid.
        """
        options, unknown = self.parse_known_args(args, namespace, **more)
        if unknown:
            name = unknown[0].partition("=")[0]
            if not name.startswith("-"):
                self.error(f"'{name}' is not the value of a flag; put the flag before it")
            meant = did_you_mean(name, self._option_string_actions)
            self.error(f"there is no flag {self.place_of(name)}{meant}")
        return options  # type: ignore[no-any-return]

    def error(self, message: str) -> NoReturn:
        """Refuse the command line.

        Raises:
            ConfigError: Always.
        """
        message = _NO_VALUE.sub(r"\1 needs a value", " ".join(message.split()))
        raise ConfigError(f"{message} (see {self.prog} --help)")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help or version; argparse would ignore a failure to write it."""
        try:
            print_result(message.rstrip("\n"))
        except StorageError as error:
            print_line(f"error: {error}")
            sys.exit(STOPPED)

    def place_of(self, flag: str) -> str:
        """Return the name of a flag for error messages."""
        return flag

    def _name_of(self, action: argparse.Action) -> str:
        if action.option_strings:
            return self.place_of(action.option_strings[-1])
        return str(action.metavar or action.dest)

    def is_empty(self, destination: str, given: str) -> bool:
        """Return whether a value of a flag says nothing."""
        return not given.strip(_BLANK)

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        # "$URL" of a variable that is not set would otherwise count as a flag that is not given.
        if any(self.is_empty(action.dest, given) for given in arg_strings):
            self.error(f"{self._name_of(action)} has an empty value; give one, or leave it out")
        return super()._get_values(action, arg_strings)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            if action.type in _KINDS and "_" in arg_string:  # Python reads 1_0 as 10
                raise argparse.ArgumentError(action, arg_string)
            return super()._get_value(action, of_home(arg_string))
        except argparse.ArgumentError:
            if action.type not in _KINDS:
                raise
            raise ConfigError(
                f"{self._name_of(action)} is '{arg_string}' but must be {_KINDS[action.type]}"
            ) from None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            allowed = [str(choice) for choice in action.choices]
            raise ConfigError(
                f"{self._name_of(action)} is '{value}' but must be one of {', '.join(allowed)}"
                f"{did_you_mean(str(value), allowed)}"
            )
