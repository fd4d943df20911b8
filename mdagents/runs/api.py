"""The Python API: one question, one run, and its results, without the command line.

These functions are in `mdagents.__all__`; docs/how-to/python.md shows how to use them.
"""

from __future__ import annotations

import asyncio
import json
import signal
import threading
import warnings
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mdagents.agents.case import Case, make_case_id
from mdagents.datasets.picture_checks import check_picture
from mdagents.datasets.pictures.question_picture import given_pictures
from mdagents.datasets.question_records import parse_question
from mdagents.datasets.questions import LETTERS, OptionOrder, SourceQuestion, present
from mdagents.records.sample import EXAID_ROLES, SampleRecord, make_record
from mdagents.runs.budget import Budget, Limited
from mdagents.runs.config import RunConfig
from mdagents.runs.flags.team_flags import ADAPTIVE
from mdagents.runs.models import (
    check_models,
    check_sight,
    choose_models,
    make_runtime,
    models_of_teams,
)
from mdagents.runs.plan import make_plan
from mdagents.runs.result import RunResult
from mdagents.runs.run_pictures import RunPictures
from mdagents.runs.session import carry_out
from mdagents.runs.solver import Solver
from mdagents.settings import DISPLAYS, MDAGENTS, Difficulty
from mdagents.teams.methods import baseline_names, method_names
from mdagents.teams.own_method import is_own
from mdagents_llm.clock import Clock
from mdagents_llm.config import parse_environment, read_variables
from mdagents_llm.errors import ConfigError
from mdagents_llm.extras import needs_extra
from mdagents_llm.files.json_text import load_json
from mdagents_llm.ledger import Ledger
from mdagents_llm.llm_registry import ModelRegistry

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")


async def answer(
    question: str,
    options: Mapping[str, str] | Sequence[str],
    *,
    team: str | None = None,
    model: str | None = None,
    gold: str = "",
    images: Sequence[Path | str | bytes] = (),
    config: RunConfig | None = None,
) -> SampleRecord:
    """Answer one question with a team. No run is written to disk, and EXAID is off.

    For many questions, use `run`: it shares connections, saves finished questions and resumes after
    a stop.

    Args:
        question: Text of the question.
        options: Letter -> text, with consecutive letters from A; or the texts alone. They are shown
            in this order; an option that is empty or `n/a` is left out, and the letters close up.
        team: `adaptive` (a router decides), a level, or a method such as `cot`; None: the team of
            `config`, by default `adaptive`. `few_shot` needs a data set, and so a run.
        model: Model, as for `--model`; None: the model of `config`, whose default depends on the
            API keys.
        gold: Letter of the right option; empty when it is unknown, and `correct` is None then.
        images: Pictures of the question in the order in which agents see them: paths, data URIs,
            or the contents of files. No copy is kept.
        config: All other settings. Those about data sets, files, `skip` and EXAID are ignored.

    Returns:
        The record, with status, letter, opinions, messages, tokens and cost. An error of the model
        is a status of the record, never a letter.

    Raises:
        ConfigError: The question, a setting or an API key is not valid.
        EndpointDown: The model cannot reply: a wrong key, an unknown name, an unreachable host.
    """
    pictures = given_pictures(images)
    if pictures:
        await asyncio.to_thread(lambda: list(map(check_picture, pictures)))
    source = replace(_source(question, options, gold), pictures=pictures)
    config = _for_one_question(config or RunConfig(), team, model)
    environment = parse_environment(read_variables())
    specs = choose_models(config, environment)
    check_models(config, environment, specs)
    check_sight(config, specs, len(pictures))
    clock, ledger = Clock(), Ledger()
    solver = Solver(config)
    registry = ModelRegistry(make_runtime(config, environment, ledger, clock))

    def spent() -> tuple[int, float | None]:
        used = ledger.book_of(case.id).totals()
        return used.usage.total_tokens, used.cost_usd

    of_run = Budget(
        spent,
        tokens=config.token_limit,
        cost=config.cost_limit,
        reached=("the run has reached --token-limit", "the run has reached --cost-limit"),
    )
    budget = Budget(
        spent,
        tokens=config.sample_token_limit,
        reached=("the question has reached --sample-token-limit", ""),
        within=of_run,
    )
    try:
        case = Case(
            id=make_case_id(source.id),
            question=present(source, OptionOrder.ORIGINAL, config.seed),
            models={
                role: Limited(model, budget)
                for role, model in models_of_teams(registry, specs).items()
            },
            settings=config.team,
            seed=config.seed,
            image_agents=config.image_agents,
        )
        await registry.prepare()
        ledger.open_case(case.id)
        see = RunPictures(config).of
        solved = await solver.solve(case, clock, config.forced_level(0), see)
    finally:
        await registry.aclose()
    return make_record(
        case,
        epoch=1,
        route=solved.route,
        decision=solved.decision,
        error=solved.error,
        book=ledger.book_of(case.id),
        wall_seconds=solved.wall_seconds,
    )


def _source(question: str, options: Mapping[str, str] | Sequence[str], gold: str) -> SourceQuestion:
    """Check a question as if it were a line of a data set."""
    if isinstance(options, str) or not isinstance(options, Mapping | Sequence):
        raise ConfigError("options must be a list of texts, or letter -> text")
    if not isinstance(options, Mapping):
        if len(options) > len(LETTERS):
            raise ConfigError(f"there are {len(options)} options; at most {len(LETTERS)} may be")
        options = dict(zip(LETTERS, options, strict=False))
    if gold and gold not in options:
        raise ConfigError(f"gold is {gold!r} but must be one of {', '.join(options)}")
    record = {"question": question, "options": dict(options)} | (
        {"answer_idx": gold} if gold else {}
    )
    checked = load_json(json.dumps(record).encode(), "the question")
    parsed = parse_question(checked, "the question", 1, needs_gold=False)
    if parsed.missing_picture:
        raise ConfigError(f"the question has a picture that is not given: {parsed.missing_picture}")
    return parsed


def _for_one_question(config: RunConfig, team: str | None, model: str | None) -> RunConfig:
    said = config.model_dump(exclude_unset=True)
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
    return RunConfig(**said | {"model_role": roles, "skip": (), "exaid": "off", "cache": "off"})


def run(config: RunConfig, *, display: str = "none") -> RunResult:
    """Answer the questions of a data set, or resume a run that an earlier process started.

    A run is the same as with `main.py`, and has the same files. In a notebook the call blocks its
    cell, like any function. Facts that a reader must know before a score, such as that the
    questions are only a sample, are issued as warnings.

    Args:
        config: Configuration of the run.
        display: Progress on stderr: `none`, `log`, `plain` or `full`.

    Returns:
        The folder of the run and how the run ended: `outcome` is `finished`, or gives the reason.

    Raises:
        ConfigError: A setting, an API key or a file is not valid; nothing was written.
        BenchError: An error ended the run early; finished questions are saved, and the same call
            resumes the run.
        KeyboardInterrupt: Ctrl-C stopped the run at once; finished questions are saved, and the
            same call resumes the run.
    """
    if display not in DISPLAYS:
        raise ConfigError(f"there is no display '{display}'; there are {', '.join(DISPLAYS)}")
    environment = parse_environment(read_variables())
    clock = Clock()
    plan = make_plan(config, environment, clock)
    result = _complete(carry_out(plan, environment, clock, display=display))
    for notice in filter(None, (result.manifest.dataset_notice, result.manifest.model_notice)):
        warnings.warn(notice, stacklevel=2)
    if result.error is not None:
        raise result.error
    return result


def _complete(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, in a thread of its own if a notebook's event loop is running."""
    if not _is_in_a_loop():
        return asyncio.run(work)
    loop: Future[asyncio.AbstractEventLoop] = Future()
    done: Future[T] = Future()

    async def cancellable() -> T:
        loop.set_result(asyncio.get_running_loop())
        return await work

    def complete() -> None:
        try:
            done.set_result(asyncio.run(cancellable()))
        except BaseException as error:  # noqa: BLE001 - raised by `done.result()`
            done.set_exception(error)

    with _interruptible():
        threading.Thread(target=complete, name="mdagents-run").start()
        try:
            return done.result()
        except KeyboardInterrupt:
            either: list[Future[Any]] = [loop, done]
            wait(either, return_when=FIRST_COMPLETED)
            if loop.done():
                loop.result().call_soon_threadsafe(_cancel_all, loop.result())
            wait([done])  # finished questions are then written, and the run's lock is released
            raise


def _is_in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C interrupt a wait; `asyncio.run` would only notify its own, idle loop."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()


def load(run: RunResult | Path | str) -> pd.DataFrame:
    """Return the results of a run, as `evaluate_text_output.py` scores it.

    Args:
        run: Result of `run`; or the folder of a run, its JSON array, or the file of another program
            (docs/how-to/other-results.md).

    Returns:
        One row per question and epoch, with the columns of the CSV (docs/reference/files.md) and
        `epoch`; `correct` is a boolean. Anomalies in the file are issued as warnings.

    Raises:
        ConfigError: The run does not exist or cannot be read.
    """
    with needs_extra("data", "mdagents.load"):
        import pandas as pd

    from mdagents.scoring.csv_file import COLUMNS
    from mdagents.scoring.rows import read_output

    output = read_output(run.folder if isinstance(run, RunResult) else Path(run))
    for notice in output.notices:
        warnings.warn(notice, stacklevel=2)
    columns = [*COLUMNS, "epoch"]
    return pd.DataFrame({name: [getattr(row, name) for row in output.rows] for name in columns})
