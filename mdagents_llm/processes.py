"""Processes of this program: a parallel map over workers, modules run on their own, their end."""

from __future__ import annotations

import gc
import os
import signal
import sys
import sysconfig
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

from mdagents_llm.errors import BenchError

if TYPE_CHECKING:
    from asyncio.subprocess import Process as AsyncProcess
    from concurrent.futures import Future

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")

_AHEAD = 4  # tasks for each process whose results nobody has taken yet
_SECONDS_TO_READ = 10  # what a killed process has left in its pipes
_MOST = 8  # processes: each loads its own modules into memory


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_module(module: str, *arguments: str) -> tuple[list[str], dict[str, str]]:
    """Return the command that runs a module of this program, and its environment.

    `python -m` alone would import modules from the working directory, where a user may have a
    `random.py`.

    Args:
        module: Name of a module of this program.
        arguments: Arguments of the command line.
    """
    variables = dict(os.environ)
    packages = Path(__file__).resolve().parents[1]
    if packages != Path(sysconfig.get_path("purelib")).resolve():  # a clone
        there = (str(packages), variables.get("PYTHONPATH", ""))
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, there))
    return [sys.executable, "-P", "-m", module, *arguments], variables


async def end_child(child: AsyncProcess) -> None:
    """Kill a process if it is still alive, and wait for its end.

    What it has written is read first, because `wait` may otherwise wait forever
    (https://github.com/python/cpython/issues/119710).
    """
    import asyncio  # slow to import, and most programs end no child

    if child.returncode is not None:
        return
    with suppress(ProcessLookupError):
        child.kill()
    with suppress(TimeoutError):  # a process that it started may hold the pipe
        async with asyncio.timeout(_SECONDS_TO_READ):
            for pipe in filter(None, (child.stdout, child.stderr)):
                await pipe.read()
            await child.wait()


def in_processes(
    function: Callable[[_Task], _Result], tasks: Iterable[_Task], *, processes: int
) -> Iterator[_Result]:
    """Return the results of a function for each task, in task order.

    The processes start at once and work on the first tasks, even before the first result is asked
    for. Tasks are consumed only a few ahead of the results, so that memory does not grow with their
    number.

    Args:
        function: Module-level function; its argument and result are pickled between processes.
        tasks: Arguments of the calls.
        processes: Maximum number of processes; 1 runs everything in this process.

    Raises:
        BenchError: A process was killed from outside.
        Exception: The function raised it.
    """
    if processes <= 1:
        return map(function, tasks)
    results = _results(function, tasks, processes)
    next(results)
    return chain.from_iterable(results)


def _results(
    function: Callable[[_Task], _Result], tasks: Iterable[_Task], processes: int
) -> Iterator[Sequence[_Result]]:
    """Yield nothing once the processes have their first tasks, and then each result."""
    # Slow to import, and most programs use one process.
    import multiprocessing
    from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor

    waiting: deque[Future[_Result]] = deque()
    # Spawned: a forked copy of this process would lack its other threads.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(processes, _MOST), context, _start)
    try:
        remaining = iter(tasks)
        for task in islice(remaining, _AHEAD * processes):
            with _later_interrupts():
                waiting.append(pool.submit(function, task))
        yield ()
        for task in remaining:
            with _later_interrupts():
                waiting.append(pool.submit(function, task))
            yield (waiting.popleft().result(),)
        while waiting:
            yield (waiting.popleft().result(),)
    except BrokenProcessPool as error:
        raise BenchError("a process was ended from outside, perhaps for want of memory") from error
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _later_interrupts() -> Iterator[None]:
    """Defer Ctrl-C; processes started within the block never receive it, only this one does."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start() -> None:
    """Prepare a process: it ends when its parent ends, even by SIGKILL, which sends no signal."""
    gc.set_threshold(50_000, 20, 20)  # what tasks make is rarely garbage
    Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    from multiprocessing import parent_process

    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
