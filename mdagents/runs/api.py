"""The library: one question, one run, and its results, without the command line.

These functions are in `mdagents.__all__`; docs/python.md shows how to use them.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from infra.clock import Clock
from infra.config import parse_environment, read_variables
from infra.errors import ConfigError
from infra.ledger import Ledger
from infra.llm_registry import ModelRegistry
from mdagents.agents.case import Case, make_case_id
from mdagents.datasets.question_records import parse_question
from mdagents.datasets.questions import LETTERS, OptionOrder, present
from mdagents.records.sample import SampleRecord, make_record
from mdagents.runs.config import ADAPTIVE, RunConfig
from mdagents.runs.limits import Limited
from mdagents.runs.models import check_models, choose_models, make_runtime
from mdagents.runs.runner import Outcome
from mdagents.runs.session import RunResult
from mdagents.runs.session import run as run_session
from mdagents.runs.solver import Solver
from mdagents.settings import Difficulty, Method, TeamRole

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
    config: RunConfig | None = None,
) -> SampleRecord:
    """Answer one question with a team. Nothing is written to disk, and EXAID is off.

    For many questions `run` is the better way: it shares connections, keeps what is finished, and
    goes on after a stop.

    Args:
        question: Its text.
        options: Letter -> text, letters consecutive from A; or the texts alone. They are shown in
            this order.
        team: `adaptive` (a router decides), a level, or a baseline such as `cot`; None: as `config`
            says, which is `adaptive`.
        model: As for `--model`; None: as in `config`, which by default depends on the keys.
        gold: Letter of the right option; empty when it is not known, and `correct` is None then.
        config: All other settings. Those about data sets, files and EXAID are ignored.

    Returns:
        The record, with status, letter, opinions, messages, tokens and cost. An error of the model
        is a status of the record, never a letter.

    Raises:
        ConfigError: The question, a setting or a key is not valid.
        EndpointDown: The model cannot reply: a wrong key, an unknown name, an unreachable host.
    """
    if not isinstance(options, Mapping):
        options = dict(zip(LETTERS, options, strict=False))
    # The first letter stands in for an unknown one, so that all else is checked.
    stated = {"question": question, "options": dict(options), "answer_idx": gold or "A"}
    source = replace(parse_question(stated, "question", 1), gold=gold)
    config = _for_one_question(config or RunConfig(), team, model)
    environment = parse_environment(read_variables())
    specs = choose_models(config, environment)
    check_models(config, environment, specs)
    clock, ledger = Clock(), Ledger()
    solver = Solver(config)
    registry = ModelRegistry(make_runtime(config, environment, ledger, clock))

    def check() -> None:
        used = ledger.book_of(case.id).totals()
        config.limits.check_run(used.usage.total_tokens, used.cost_usd)
        config.limits.check_sample(used.usage.total_tokens)

    try:
        case = Case(
            id=make_case_id(source.id),
            question=present(source, OptionOrder.ORIGINAL, config.seed),
            models={role: Limited(registry.model(specs[role]), check) for role in TeamRole},
            settings=config.team,
            seed=config.seed,
        )
        await registry.prepare()
        ledger.open_case(case.id)
        solved = await solver.solve(case, clock)
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


def _for_one_question(config: RunConfig, team: str | None, model: str | None) -> RunConfig:
    said = config.model_dump(exclude_unset=True)
    if team is not None and team in set(Method):
        said |= {"method": team, "difficulty": ADAPTIVE}
    elif team is not None:
        if team not in {ADAPTIVE, *Difficulty}:
            known = ", ".join([ADAPTIVE, *Difficulty, *(m for m in Method if m != Method.MDAGENTS)])
            raise ConfigError(f"there is no team '{team}'; there are {known}")
        said |= {"method": Method.MDAGENTS, "difficulty": team}
    if model is not None:
        said["model"] = model
    return RunConfig(**said | {"exaid": "off", "cache": "off"})


def run(config: RunConfig, *, display: str = "none") -> RunResult:
    """Answer the questions of a data set, or go on where an earlier process stopped.

    The same as `main.py`, with the same files. In a notebook it blocks its cell, like any function.

    Args:
        config: What to run.
        display: Progress on stderr: `none`, `log`, `plain` or `full`.

    Returns:
        Where the run is, and how it ended: `outcome` is `finished`, or gives the reason.

    Raises:
        ConfigError: A setting, a key or a file is not valid; nothing was written.
        BenchError: Something ended the run early; what is finished is kept, and the same call goes
            on.
        KeyboardInterrupt: Ctrl-C; what is finished is kept, and the same call goes on.
    """
    environment = parse_environment(read_variables())
    result = _complete(run_session(config, environment, Clock(), display=display))
    if result.error is not None:
        raise result.error
    if result.outcome is Outcome.INTERRUPTED:
        raise KeyboardInterrupt
    return result


def _complete(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, even inside the event loop of a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    loop = asyncio.new_event_loop()
    task = loop.create_task(work)

    def complete() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(_outcome(task))

    thread = threading.Thread(target=complete, name="mdagents-run")
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise
    return task.result()


async def _outcome(task: asyncio.Task[Any]) -> None:
    await asyncio.wait([task])


def load(run: RunResult | Path | str) -> pd.DataFrame:
    """Return the results of a run, as `evaluate_text_output.py` scores it.

    Args:
        run: From `run`; or the folder of a run, its JSON array, or the file of another program
            (docs/scoring.md).

    Returns:
        One row a question and epoch, with the columns of the CSV (docs/files.md) and `epoch`;
        `correct` is a truth value.

    Raises:
        ConfigError: There is no such run, or it cannot be read.
    """
    import pandas as pd

    from mdagents.scoring.rows import read_output
    from mdagents.scoring.scored_row import COLUMNS

    path = run.folder if isinstance(run, RunResult) else Path(run)
    columns = [*COLUMNS, "epoch"]
    rows = read_output(path).rows
    return pd.DataFrame({name: [getattr(row, name) for row in rows] for name in columns})
