"""Each team and baseline method as a solver and as an agent of Inspect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from inspect_ai.agent import Agent, AgentState, agent
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolError

from mdagents.datasets.dataset import Dataset
from mdagents.datasets.questions import LETTERS
from mdagents.inspect.names import name_in_registry, told_in_one_line
from mdagents.inspect.questions import dataset_of, question_in, question_said
from mdagents.inspect.settings import OF_EXAMPLES, OF_TASKS, config_of
from mdagents.inspect.solving import output_of, raise_what_ends_the_sample, solve
from mdagents.inspect.team import InspectTeam
from mdagents.runs.config import RunConfig
from mdagents.runs.flags.team_flags import ADAPTIVE
from mdagents.runs.one_question import Answered
from mdagents.settings import MDAGENTS, Difficulty, OptionOrder
from mdagents.teams.names import baseline_names
from mdagents_llm.errors import ConfigError

TEAM_NAMES = (ADAPTIVE, *(level.value for level in Difficulty), *baseline_names())
"""Names of the teams and methods, as solvers and agents are called."""


def team_of(name: str, parameters: Mapping[str, object], order: OptionOrder | None) -> InspectTeam:
    """Return a team.

    Args:
        name: `adaptive`, a level, or a method; empty for the one of `difficulty` or `method`.
        parameters: Parameters of the task, solver or agent.
        order: Order in which options are shown; None: `option_order`.

    Raises:
        PrerequisiteError: A parameter is not valid, or the data set of a method is missing.
    """
    with told_in_one_line():
        config = config_of(name, parameters, of_task=False)
        return InspectTeam(config, _train_of(config), order=order or config.option_order)


def _train_of(config: RunConfig) -> Dataset | None:
    """Return the data set whose train split a method shows; None if it shows none."""
    if config.declared.exemplars is None:
        return None
    return dataset_of(config)


@solver(name="mdagents_team")
def team_solver(team: InspectTeam) -> Solver:
    """Answer samples with a team.

    Args:
        team: Team that answers.
    """

    async def answer(state: TaskState, generate: Generate) -> TaskState:
        def decided(answered: Answered) -> None:
            state.output = output_of(answered.record)
            if (letter := answered.record.source_predicted) is not None:
                for place, choice in enumerate(LETTERS[: len(state.choices)]):
                    state.choices.mark_choice(place, choice == letter)
                state.messages.append(state.output.message)  # may reach a limit of messages

        raise_what_ends_the_sample(await solve(team, question_in(state), state.epoch, decided))
        return state

    return answer


def _solver_of(name: str) -> Callable[..., Solver]:
    """Register a team as a solver, and return the function that makes it."""

    def team(exaid: str | bool = False, **parameters: Any) -> Solver:
        return team_solver(team_of(name, {"exaid": exaid, **parameters}, None))

    team.__doc__ = f"Answer with {name}; parameters are flags of main.py."
    return solver(name=name_in_registry(team, name))(team)


def _agent_of(name: str) -> None:
    """Register a team as an agent."""

    def team(exaid: str | bool = False, **parameters: Any) -> Agent:
        own = team_of(name, {"exaid": exaid, **parameters}, OptionOrder.ORIGINAL)

        async def execute(state: AgentState) -> AgentState:
            """Answer a multiple-choice question, given with its options, by a team of experts."""

            def decided(answered: Answered) -> None:
                state.output = output_of(answered.record)
                if not state.output.empty and state.output.completion:
                    state.messages.append(state.output.message)

            try:
                question = question_said(state.messages)
            except ConfigError as error:  # the model that called this as a tool may correct it
                raise ToolError(str(error)) from error
            raise_what_ends_the_sample(await solve(own, question, 1, decided))
            return state

        return execute

    team.__doc__ = f"Answer with {name}; parameters are flags of main.py."
    agent(name=name_in_registry(team, name))(team)


_SOLVERS = {name: _solver_of(name) for name in TEAM_NAMES}
for _name in TEAM_NAMES:
    _agent_of(_name)


def solver_for(config: RunConfig, parameters: Mapping[str, object]) -> Solver:
    """Return the solver of the team of a configuration, by its registered name if it has one.

    Args:
        config: Configuration that `config_of` made of the parameters.
        parameters: Parameters of the task.
    """
    name = config.levels[0] if config.method == MDAGENTS else config.method
    rest = {key: value for key, value in parameters.items() if key not in ("difficulty", "method")}
    if name in _SOLVERS:
        idle = OF_TASKS if config.declared.exemplars else OF_TASKS | OF_EXAMPLES
        return _SOLVERS[str(name)](**{key: rest[key] for key in rest if key not in idle})
    return team_solver(InspectTeam(config, _train_of(config), order=config.option_order))
