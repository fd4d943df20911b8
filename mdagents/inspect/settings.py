"""Parameters of tasks, solvers and agents: the flags of `main.py` that Inspect leaves to a team."""

from __future__ import annotations

from collections.abc import Mapping

from mdagents.runs.config import RunConfig
from mdagents.runs.flags.flag import flag_name
from mdagents.runs.flags.picture_flags import PictureFlags
from mdagents.runs.flags.question_flags import QuestionFlags
from mdagents.runs.flags.team_flags import ADAPTIVE, TeamFlags
from mdagents.runs.one_question import config_of_team
from mdagents_llm.errors import ConfigError
from mdagents_llm.terminal.did_you_mean import did_you_mean

_OF_INSPECT = {
    "api": "-M responses_api=true",
    "attempt_timeout": "--attempt-timeout",
    "cache": "--cache",
    "cost_limit": "--cost-limit, per question",
    "epochs": "--epochs",
    "fail_on_error": "--fail-on-error",
    "max_connections": "--max-connections",
    "max_retries": "--max-retries",
    "max_samples": "--max-samples",
    "model": "--model",
    "model_base_url": "--model-base-url",
    "model_role": "--model-role",
    "output_dir": "--log-dir",
    "sample_time_limit": "--time-limit",
    "sample_token_limit": "--token-limit",
    "timeout": "--timeout",
    "token_limit": "--token-limit, per question",
}
"""Flag of `main.py` -> what Inspect has in its place."""
_PARAMETERS = (
    TeamFlags.model_fields.keys() | PictureFlags.model_fields.keys()
    | QuestionFlags.model_fields.keys() | {"reasoning_effort", "reasoning_tokens", "max_tokens"}
) - {"epochs", "skip"}  # fmt: skip


def config_of(team: str, parameters: Mapping[str, object]) -> RunConfig:
    """Return the configuration of a team in Inspect. EXAID is off unless it is asked for.

    Args:
        team: `adaptive`, a level, or a method; empty for the one of `difficulty` or `method`.
        parameters: Flag of `main.py`, with underscores -> value.

    Raises:
        ConfigError: A parameter does not exist, belongs to Inspect, or has an invalid value.
    """
    for name in parameters.keys() - _PARAMETERS:
        if name in _OF_INSPECT:
            raise ConfigError(
                f"{name} is not a parameter of a team; Inspect has {_OF_INSPECT[name]}"
            )
        known = ", ".join(sorted(_PARAMETERS))
        meant = did_you_mean(name, [*_PARAMETERS, *_OF_INSPECT])
        raise ConfigError(f"there is no parameter '{name}'{meant}; there are {known}")
    given = {name: _as_flag(value) for name, value in parameters.items() if value is not None}
    exaid = given.pop("exaid", "off")
    chosen = given.keys() & {"difficulty", "method"}
    if team and chosen:
        raise ConfigError(f"team is '{team}'; leave {' and '.join(sorted(chosen))} out")
    if not chosen:
        team = team or ADAPTIVE
    config = config_of_team(RunConfig(**given, exaid="off"), team or None, exaid=exaid)
    if len(config.levels) > 1:
        raise ConfigError(f"{flag_name('difficulty')} names several levels; give one")
    return config


def _as_flag(value: object) -> object:
    """Return a parameter as the flag has it: Inspect reads `off` as YAML does."""
    return "off" if value is False else value
