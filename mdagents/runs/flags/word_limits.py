"""The word limits that `--words` changes; `TeamSettings` and the presets have their defaults."""

from __future__ import annotations

from dataclasses import fields

from mdagents.runs.flags.lists import meant, pairs_of
from mdagents.settings import TeamSettings
from mdagents_llm.errors import ConfigError

WORD_LIMITS = tuple(
    field.name.removesuffix("_words")
    for field in fields(TeamSettings)
    if field.name.endswith("_words") and field.name != "triage_words"
)
"""Names of the word limits: the fields `*_words` of `TeamSettings`, without the router's."""
_FEWEST, _MOST = 5, 1000


def read_word_limits(value: object) -> dict[str, int]:
    """Return name -> words.

    Args:
        value: Name -> words, or a list of `name=words`.

    Raises:
        ConfigError: There is no limit of that name, or the number of words is out of bounds.
    """
    limits = {}
    for entry, name, words in pairs_of(value):
        limit = name.replace("-", "_")
        is_known = limit in WORD_LIMITS and words.isdecimal()
        if not (is_known and _FEWEST <= int(words) <= _MOST):
            raise ConfigError(
                f"--words {entry}: write NAME=N with a name of {', '.join(WORD_LIMITS)} "
                f"and {_FEWEST} to {_MOST} words{meant(name, WORD_LIMITS)}"
            )
        limits[limit] = int(words)
    return limits
