"""Values that may differ by role: `low` for all, `expert=low,decision=high` for some."""

from __future__ import annotations

from collections.abc import Collection

from mdagents.runs.flags.bounds import MOST_TOKENS
from mdagents.runs.flags.lists import meant, parts_of
from mdagents.settings import EXAID_ROLES, LARGEST_COUNT, SMALLEST_COUNT, TeamRole, expert_number
from mdagents_llm.errors import ConfigError
from mdagents_llm.terminal.did_you_mean import did_you_mean

MODEL_ROLES = (*(role.value for role in TeamRole), "expert-1", "expert-2", *sorted(EXAID_ROLES))
"""Roles for which a model can be chosen; experts are numbered up to `LARGEST_COUNT`."""


def is_role(role: str) -> bool:
    """Return whether a model can be chosen for a role."""
    number = expert_number(role)
    is_expert = number is not None and SMALLEST_COUNT <= number <= LARGEST_COUNT
    return is_expert or role in MODEL_ROLES


def form_by_role(form: str, role: str) -> str:
    """Return how to write a value by role, for errors, with a suggestion for an unknown role."""
    return f"write {form} with a role of {', '.join(MODEL_ROLES)}{meant(role, MODEL_ROLES)}"


def in_normal_form(flag: str, text: str, *, words: Collection[str] = (), least: int = 1) -> str:
    """Return the values of a flag by role in normal form: lower case, sorted by role.

    Args:
        flag: Name of the flag, for errors.
        text: Values as the user wrote them.
        words: Allowed values; empty if the values are numbers of tokens.
        least: Smallest number of tokens.

    Raises:
        ConfigError: A role or a value is not allowed, or a role has two values.
    """
    given: dict[str, str] = {}
    for entry in parts_of(text):
        role, equals, value = entry.rpartition("=")
        if equals and not is_role(role):
            raise ConfigError(f"{flag} {entry}: {form_by_role('ROLE=VALUE', role)}")
        value = value.lower()
        checked = _word(flag, value, words) if words else _tokens(flag, value, least)
        if role in given:
            raise ConfigError(f"{flag} gives {role or 'all roles'} two values; leave one out")
        given[role] = checked
    return ",".join(f"{role}={of}" if role else of for role, of in sorted(given.items()))


def _word(flag: str, value: str, words: Collection[str]) -> str:
    if value not in words:
        raise ConfigError(
            f"{flag} is '{value}' but must be one of {', '.join(words)}{did_you_mean(value, words)}"
        )
    return value


def _tokens(flag: str, value: str, least: int) -> str:
    is_number = value.isdecimal() and len(value) <= len(str(MOST_TOKENS))
    if not (is_number and least <= int(value) <= MOST_TOKENS):
        raise ConfigError(
            f"{flag} is '{value}' but must be a whole number from {least} to {MOST_TOKENS:,}"
        )
    return str(int(value))


def of_role(text: str, role: str) -> str:
    """Return the value for a role, for `expert` if the role is a numbered expert, or for all."""
    given = {name: of for name, _, of in (each.rpartition("=") for each in text.split(",") if each)}
    usual = given.get(TeamRole.EXPERT if expert_number(role) else "", given.get("", ""))
    return given.get(role, usual)


def roles_in(text: str) -> frozenset[str]:
    """Return the roles that have a separate value."""
    return frozenset(entry.partition("=")[0] for entry in text.split(",") if "=" in entry)
