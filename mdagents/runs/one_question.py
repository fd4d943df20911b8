"""Answers single questions with a team, without a data set: for `answer` and for `serve`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from exaid_core.trace.bus import TraceBus
from mdagents.agents.case import make_case_id
from mdagents.agents.events import Observer, unobserved
from mdagents.datasets.option_letters import has_doubtful_letters, letters_in_list
from mdagents.datasets.question_records import parse_question
from mdagents.datasets.questions import LETTERS, SourceQuestion
from mdagents.records.manifest import Spent
from mdagents.records.sample import SampleRecord, make_record
from mdagents.runs.budget import Budget
from mdagents.runs.config import RunConfig
from mdagents.runs.flags.team_flags import ADAPTIVE
from mdagents.runs.open_case import open_case
from mdagents.runs.run_pictures import RunPictures
from mdagents.runs.solver import Solver
from mdagents.settings import EXAID_ROLES, MDAGENTS, Difficulty, OptionOrder
from mdagents.teams.names import baseline_names, is_own, method_names
from mdagents_llm.chat import ChatModel
from mdagents_llm.clock import Clock
from mdagents_llm.errors import BenchError, ConfigError
from mdagents_llm.files.json_text import load_json
from mdagents_llm.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Answered:
    """One answered question."""

    record: SampleRecord
    error: BenchError | None
    """Error that ended the question; None if the team decided."""


class Answerer:
    """Answers questions with one team, each as a case of its own in the ledger.

    Args:
        config: Configuration of the team, as `config_of_team` returns it.
        models: Role -> model.
        ledger: Ledger in which the calls are booked.
        clock: Clock for all times.
        within: Budget that all questions share; None: no limit but that of `config`.
        solver: Solver of a method that needs a data set; None: the one of `config`, without a data
            set.
        order: Order in which the options are shown.

    Raises:
        ConfigError: The method needs a data set, or a method of the user's cannot be used.
    """

    def __init__(
        self,
        config: RunConfig,
        models: Mapping[str, ChatModel],
        ledger: Ledger,
        clock: Clock,
        within: Budget | None = None,
        solver: Solver | None = None,
        order: OptionOrder = OptionOrder.ORIGINAL,
    ) -> None:
        self._config = config
        self._order = order
        self._models = models
        self._ledger = ledger
        self._clock = clock
        self._within = within
        self._solver = solver or Solver(config)
        self._pictures = RunPictures(config)

    async def answer(
        self,
        source: SourceQuestion,
        *,
        tell: Observer = unobserved,
        seed: int | None = None,
        case_id: str = "",
        epoch: int = 1,
        bus: TraceBus | None = None,
    ) -> Answered:
        """Answer one question.

        Args:
            source: Question.
            tell: Observer to notify of the events of the question.
            seed: Seed of the models' replies; None: that of the configuration for the epoch.
            case_id: ID of the case, which no other open case has; empty for one made of the
                question's id.
            epoch: Number of the repetition of the question, from 1.
            bus: Bus on which the turns of the agents are published; None: nobody listens.

        Raises:
            EndpointDown: The model cannot reply.
            MethodError: A method of the user's failed.
            StorageError: A ledger row cannot be written.
        """
        config, ledger = self._config, self._ledger
        case_id = case_id or make_case_id(source.id, epoch)

        case = open_case(
            case_id,
            source,
            epoch,
            config=config,
            order=self._order,
            models=self._models,
            ledger=ledger,
            within=self._within,
            bus=TraceBus() if bus is None else bus,
            tell=tell,
            seed=seed,
        )
        try:
            solved = await self._solver.solve(
                case, self._clock, config.forced_level(0), self._pictures.of
            )
            record = make_record(
                case,
                epoch=epoch,
                route=solved.route,
                decision=solved.decision,
                error=solved.error,
                book=ledger.book_of(case_id),
                wall_seconds=solved.wall_seconds,
            )
        finally:
            ledger.close_case(case_id)
        return Answered(record, solved.error)


def shared_budget(config: RunConfig, spent: Spent) -> Budget:
    """Return the budget that all questions of a process share, by the limits of a run.

    Args:
        config: Configuration with the limits.
        spent: Tokens and cost so far, to which the caller adds each row of the ledger.
    """
    return Budget(
        lambda: (spent.total_tokens, spent.cost_usd),
        tokens=config.token_limit,
        cost=config.cost_limit,
        reached=("the run has reached --token-limit", "the run has reached --cost-limit"),
    )


def question_of(
    question: str, options: Mapping[str, str] | Sequence[str], gold: str = ""
) -> SourceQuestion:
    """Check a question as if it were a line of a data set.

    Args:
        question: Text of the question.
        options: Letter -> text, with consecutive letters from A; or the texts alone, whose own
            letters count if they are in another order: `(B) Zinc`, `(A) Iron`.
        gold: Letter of the right option; empty when it is unknown.

    Raises:
        ConfigError: The question is not valid, or has a picture that is not given.
    """
    if isinstance(options, str) or not isinstance(options, Mapping | Sequence):
        raise ConfigError("options must be a list of texts, or letter -> text")
    letters: Mapping[str, object] | None
    if isinstance(options, Mapping):
        letters = options
    else:
        if len(options) > len(LETTERS):
            raise ConfigError(
                f"there are {len(options)} options; at most {len(LETTERS)} are allowed"
            )
        letters = letters_in_list(options)
        if letters is None or has_doubtful_letters(options):
            raise ConfigError(
                "the options begin with letters that may be labels or part of names: leave labels "
                "out, and write names in full"
            )
        letters = dict(sorted(letters.items()))
    if gold and gold not in letters:
        raise ConfigError(f"gold is {gold!r} but must be one of {', '.join(letters)}")
    record = {"question": question, "options": dict(letters)} | (
        {"answer_idx": gold} if gold else {}
    )
    checked = load_json(json.dumps(record).encode(), "the question")
    parsed = parse_question(checked, "the question", 1, needs_gold=False)
    if parsed.missing_picture:
        raise ConfigError(f"the question has a picture that is not given: {parsed.missing_picture}")
    return parsed


def config_of_team(
    config: RunConfig, team: str | Path | None, model: str | None = None, **changes: object
) -> RunConfig:
    """Return the configuration with which a team answers single questions; EXAID is off.

    Args:
        config: All other settings.
        team: `adaptive` (a router decides), a level, a method or its file; None: the team of
            `config`.
        model: Model, as for `--model`; None: the model of `config`.
        changes: Other flags to set.

    Raises:
        ConfigError: There is no such team, or it does not fit the other settings.
    """
    said = config.model_dump(exclude_unset=True)
    team = str(team) if isinstance(team, Path) else team
    if team is not None and not isinstance(team, str):
        raise ConfigError(
            f"team is a {type(team).__name__} but must be a text such as 'cot', 'my_team.py' or "
            "'package.module:solve'; save a function as a file (in a notebook, begin its cell with "
            "%%writefile my_team.py)"
        )
    if team is not None and (team in method_names() or is_own(team)):
        said |= {"method": team, "difficulty": ADAPTIVE}
    elif team is not None:
        if team not in {ADAPTIVE, *Difficulty}:
            known = ", ".join([ADAPTIVE, *Difficulty, *baseline_names()])
            raise ConfigError(f"there is no team '{team}'; there are {known}")
        said |= {"method": MDAGENTS, "difficulty": team}
    if model is not None:
        said["model"] = model
    roles = {role: of for role, of in config.model_role.items() if role not in EXAID_ROLES}
    return RunConfig(**said | {"model_role": roles, "skip": (), "exaid": "off"} | changes)
