"""A function mapped over many items in several processes: order, bounds, errors and its end."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing import active_children
from pathlib import Path

import pytest

from mdagents_llm.errors import BenchError
from mdagents_llm.processes import end_child, in_processes

pytestmark = pytest.mark.process

_ROOT = Path(__file__).parents[2]
# Says who works on it, a line in one write, since two of them share the pipe (`print` may write
# its end apart); all of it takes longer than any test.
_PROGRAM = """
import os, sys, time
from mdagents_llm.terminal.printing import fails_in_one_line
from mdagents_llm.processes import in_processes

def work(number):
    os.write(1, f"{os.getpid()}\\n".encode())
    time.sleep(float(sys.argv[1]))

@fails_in_one_line
def main():
    for _ in in_processes(work, range(100_000), processes=2):
        pass
    return 0

if __name__ == "__main__":
    sys.exit(main())
"""


def squared(number: int) -> tuple[int, int]:
    """Return the square and who has worked it out."""
    return number * number, os.getpid()


def failing(number: int) -> int:
    """Fail at the third one."""
    if number == 3:
        raise ValueError("not this one")
    return number


def dying(number: int) -> int:
    """Be ended from outside."""
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_results_come_in_the_order_of_tasks_from_several_processes() -> None:
    results = list(in_processes(squared, range(100), processes=2))
    assert [square for square, _ in results] == [number * number for number in range(100)]
    assert os.getpid() not in {who for _, who in results}


def test_one_process_is_this_one() -> None:
    assert list(in_processes(squared, [3], processes=1)) == [(9, os.getpid())]


@pytest.mark.parametrize("processes", [1, 2])
def test_tasks_are_taken_only_a_few_ahead(processes: int) -> None:
    taken = []

    def tasks() -> Iterator[int]:
        for task in range(1000):
            taken.append(task)
            yield task

    results = in_processes(squared, tasks(), processes=processes)
    next(results)
    assert len(taken) <= 10


def test_processes_work_before_a_result_is_asked_for_and_end_with_the_results() -> None:
    tasks = iter(range(1000))
    results = in_processes(squared, tasks, processes=2)
    started = next(tasks)
    assert 1 < started <= 10
    assert len(active_children()) == 2
    del results
    assert not active_children()


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_is_that_of_the_function_after_the_results_before_it(processes: int) -> None:
    results = in_processes(failing, range(50), processes=processes)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="not this one"):
        next(results)


def test_a_process_that_is_ended_from_outside_is_said() -> None:
    with pytest.raises(BenchError, match="ended from outside"):
        list(in_processes(dying, range(4), processes=2))


@pytest.mark.parametrize(
    ("number", "status", "seconds"),
    [(signal.SIGINT, 130, "0.01"), (signal.SIGKILL, -signal.SIGKILL, "600")],
)
def test_they_end_with_the_program(
    tmp_path: Path, number: signal.Signals, status: int, seconds: str
) -> None:
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM, encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, str(program), seconds],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        text=True,
        start_new_session=True,
    ) as started:
        assert started.stdout is not None
        assert started.stderr is not None
        workers = {int(started.stdout.readline())}
        while len(workers) < 2:
            workers.add(int(started.stdout.readline()))
        if number == signal.SIGINT:  # as a terminal sends it
            os.killpg(started.pid, number)
            said = started.communicate(timeout=30)[1]
            assert "Traceback" not in said
            assert "interrupted" in said
        else:
            started.kill()
        assert started.wait(30) == status
    until = time.monotonic() + 30
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < until, "they are still there"
        time.sleep(0.01)


async def test_a_child_that_writes_without_end_is_ended() -> None:
    for _ in range(5):
        child = await asyncio.create_subprocess_exec("yes", stdout=subprocess.PIPE)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await child.communicate()
        async with asyncio.timeout(30):
            await end_child(child)
        assert child.returncode == -signal.SIGKILL
