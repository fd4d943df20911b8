"""Each data set that `--dataset` knows as a task of Inspect."""

from __future__ import annotations

from typing import Any

from inspect_ai import Task, task

import mdagents
from mdagents.datasets.sources import KNOWN, SHIPPED
from mdagents.inspect.names import PACKAGE, name_in_registry, told_in_one_line
from mdagents.inspect.questions import dataset_of, samples_of
from mdagents.inspect.scorers import option, team
from mdagents.inspect.settings import config_of
from mdagents.inspect.solvers import solver_for
from mdagents.runs.flags.team_flags import ADAPTIVE
from mdagents.settings import MDAGENTS, Difficulty
from mdagents_llm.errors import ConfigError

DATASET_NAMES = {name.replace("/", "_"): name for name in (*SHIPPED, *KNOWN)}
"""Name of a task -> name of its data set."""


def team_task(team_name: str, parameters: dict[str, Any]) -> Task:
    """Return the task of a data set.

    An error of an endpoint does not end the evaluation: its question has no answer and counts as
    wrong, as in a run.

    Args:
        team_name: `adaptive`, a level, or a method; empty for `difficulty` or `method`.
        parameters: Flag of `main.py`, with underscores -> value.

    Raises:
        PrerequisiteError: A parameter is not valid, or the data set is not there.
    """
    with told_in_one_line():
        config = config_of(team_name, parameters)
        dataset = dataset_of(config)
        samples = samples_of(dataset, config)
        solver = solver_for(config, parameters)
    is_routed = config.method == MDAGENTS and config.levels == (ADAPTIVE,)
    levels = [level.value for level in Difficulty] if is_routed else []
    return Task(
        dataset=samples,
        solver=solver,
        scorer=[option(), team(levels=levels)],
        fail_on_error=False,
        score_on_error=True,
        version=mdagents.__version__,
        metadata={
            "dataset_sha256": dataset.sha256,
            **({"dataset_notice": dataset.notice} if dataset.notice else {}),
        },
    )


def _task_of(name: str, dataset_name: str) -> None:
    """Register the task of a data set."""

    def of_dataset(team: str = "", exaid: str | bool = False, **parameters: Any) -> Task:
        with told_in_one_line():
            if "dataset" in parameters:
                questions = f"{PACKAGE}/questions"
                raise ConfigError(f"this task asks {dataset_name}; {questions} takes a dataset")
        return team_task(team, {"dataset": dataset_name, "exaid": exaid, **parameters})

    of_dataset.__doc__ = f"The questions of {dataset_name}; parameters are flags of main.py."
    task(name=name_in_registry(of_dataset, name))(of_dataset)


def questions(
    dataset: str = "", team: str = "", exaid: str | bool = False, **parameters: Any
) -> Task:
    """Ask the questions of a file or folder of one's own.

    Args:
        dataset: Name or path, as for `--dataset`.
        team: `adaptive`, a level, or a method.
        exaid: Trigger policy of EXAID; off by default.
        parameters: Further flags of `main.py`, with underscores.
    """
    with told_in_one_line():
        if not dataset:
            raise ConfigError("name the questions: -T dataset=FILE, or a folder of data/")
    return team_task(team, {"dataset": dataset, "exaid": exaid, **parameters})


questions = task(name=name_in_registry(questions, "questions"))(questions)
for _name, _dataset in DATASET_NAMES.items():
    _task_of(_name, _dataset)
