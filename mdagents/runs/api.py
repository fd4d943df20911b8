"""The Python API: one question, one run, and its results, without the command line.

These functions are in `mdagents.__all__`; docs/how-to/python.md shows how to use them.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import warnings
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mdagents.datasets.picture_checks import check_picture
from mdagents.datasets.pictures.question_picture import given_pictures
from mdagents.records.manifest import Spent
from mdagents.records.sample import SampleRecord
from mdagents.runs.config import RunConfig
from mdagents.runs.models import (
    check_models,
    check_sight,
    choose_models,
    make_runtime,
    models_of_teams,
)
from mdagents.runs.one_question import Answerer, config_of_team, question_of, shared_budget
from mdagents.runs.plan import make_plan
from mdagents.runs.result import RunResult
from mdagents.runs.session import carry_out
from mdagents.runs.spans import observed, spans_of_questions
from mdagents.settings import DISPLAYS
from mdagents_llm.clock import Clock
from mdagents_llm.config import parse_environment, read_variables
from mdagents_llm.errors import ConfigError
from mdagents_llm.extras import needs_extra
from mdagents_llm.ledger import Ledger
from mdagents_llm.llm_registry import ModelRegistry
from mdagents_llm.terminal.printing import print_line

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")


async def answer(
    question: str,
    options: Mapping[str, str] | Sequence[str],
    *,
    team: str | Path | None = None,
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
        team: `adaptive` (a router decides), a level, a method such as `cot`, or the file of your
            own; None: the team of `config`, by default `adaptive`. `few_shot` and `medprompt` need
            a data set, and so a run.
        model: Model, as for `--model`; None: the model of `config`, whose default depends on the
            API keys.
        gold: Letter of the right option; empty when it is unknown, and `correct` is None then.
        images: Pictures of the question in the order in which agents see them: paths, data URIs,
            or the contents of files. No copy is kept.
        config: All other settings. Those about data sets, files, `skip` and EXAID are ignored.
            With `otel` the call sends its spans, for up to 5 s after the answer.

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
    source = replace(question_of(question, options, gold), pictures=pictures)
    config = config_of_team(config or RunConfig(), team, model, cache="off")
    environment = parse_environment(read_variables())
    specs = choose_models(config, environment)
    check_models(config, environment, specs)
    check_sight(config, specs, len(pictures))
    clock, ledger = Clock(), Ledger()
    registry = ModelRegistry(make_runtime(config, environment, ledger, clock))
    spent = Spent()
    try:
        models = models_of_teams(registry, specs)
        answerer = Answerer(config, models, ledger, clock, shared_budget(config, spent))
        await registry.prepare()
        with ledger.subscribed(spent.add):
            async with spans_of_questions(
                config, environment.variables, ledger, print_line
            ) as spans:
                with observed(spans, source.id, config.method_name) as tell:
                    answered = await answerer.answer(source, tell=tell)
                    if spans is not None:
                        spans.decided(answered.record)
    finally:
        await registry.aclose()
    return answered.record


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
    started: Future[asyncio.Task[T]] = Future()
    done: Future[T] = Future()

    async def cancellable() -> T:
        task: Any = asyncio.current_task()
        started.set_result(task)
        return await work

    def complete() -> None:
        try:
            done.set_result(asyncio.run(cancellable()))
        except BaseException as error:  # noqa: BLE001 - raised by `done.result()`
            done.set_exception(error)

    with _interruptible():
        within = copy_context()  # the caller's span is the parent of the run's
        threading.Thread(target=within.run, args=(complete,), name="mdagents-run").start()
        try:
            return done.result()
        except KeyboardInterrupt:
            either: list[Future[Any]] = [started, done]
            wait(either, return_when=FIRST_COMPLETED)
            if started.done():
                # Not every task: https://github.com/python/cpython/issues/125502.
                task = started.result()
                with suppress(RuntimeError):  # the loop has ended meanwhile
                    task.get_loop().call_soon_threadsafe(task.cancel)
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


def load(run: RunResult | Path | str) -> pd.DataFrame:
    """Return the results of a run, as `evaluate_text_output.py` scores it.

    Args:
        run: Result of `run`; or the folder of a run, its JSON array, or the file of another program
            (docs/how-to/other-results.md).

    Returns:
        One row per question and epoch, in the order of the CSV and with its columns
        (docs/reference/files.md) and `epoch`; `correct` is a boolean. Anomalies in the file are
        issued as warnings.

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
