"""Parameters of tasks, solvers and agents: the flags of `main.py` that Inspect leaves to a team."""

from __future__ import annotations

from collections.abc import Mapping

from mdagents.runs.config import RunConfig
from mdagents.runs.flags.flag import flag_name
from mdagents.runs.flags.picture_flags import PictureFlags
from mdagents.runs.flags.question_flags import QuestionFlags
from mdagents.runs.flags.team_flags import ADAPTIVE, TeamFlags
from mdagents.runs.idle_flags import idle_of_the_method
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


OF_TASKS = frozenset({"limit", "num_samples", "sample_id", "sample_shuffle", "skip_pictures"})
"""Parameters that select questions, which solvers and agents do not take."""
OF_EXAMPLES = frozenset({"data_dir", "dataset", "split"})
"""Parameters that solvers and agents take if their method shows examples."""


def config_of(team: object, parameters: Mapping[str, object], *, of_task: bool = True) -> RunConfig:
    """Return the configuration of a team in Inspect. EXAID is off unless it is asked for.

    Args:
        team: `adaptive`, a level, or a method; empty for the one of `difficulty` or `method`.
        parameters: Flag of `main.py`, with underscores -> value.
        of_task: Whether they may select questions.

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
    if not isinstance(team, str):
        raise ConfigError(f"team is {_as_flag(team)}; name one")
    if not of_task and (idle := sorted(parameters.keys() & OF_TASKS)):
        raise ConfigError(f"{idle[0]} selects questions, but the task already does; leave it out")
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
    if not of_task and config.declared.exemplars is None:
        for name in sorted(parameters.keys() & OF_EXAMPLES):
            raise ConfigError(f"{config.method_name} shows no examples; leave {name} out")
    for flag, why in idle_of_the_method(config):
        if flag in map(flag_name, given):
            raise ConfigError(f"{why}; leave {flag.strip('-').replace('-', '_')} out")
    return config


def _as_flag(value: object) -> object:
    """Return a parameter as the flag has it: Inspect reads `off` as YAML does, and `a,b` too."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return "off" if value is False else value
