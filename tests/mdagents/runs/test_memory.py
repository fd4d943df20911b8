"""What a question leaves in memory when it is done."""

from __future__ import annotations

import gc
from collections import Counter

import pytest

from tests.support.whole_runs import Run

pytestmark = pytest.mark.process

PACKAGES = ("mdagents", "exaid_core", "mdagents_llm")


def left_to_the_collector(run: Run, *flags: str) -> Counter[str]:
    """Return what a run of this many questions leaves in cycles: class or function -> objects."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        status, _, _ = run(*flags, "--fresh", "--cache", "off")
        assert status == 0
        gc.collect()
        return Counter(
            f"{kind.__module__}.{kind.__qualname__}"
            for kind in (one if callable(one) else type(one) for one in gc.garbage)
            if (getattr(kind, "__module__", None) or "").partition(".")[0] in PACKAGES
        )
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("difficulty", ["basic", "intermediate"])
def test_a_question_leaves_nothing_to_the_garbage_collector(run: Run, difficulty: str) -> None:
    flags = ("--difficulty", difficulty, "--exaid", "full_exaid")
    left_to_the_collector(run, "--num-samples", "1", *flags)  # what is made once, and kept
    few = left_to_the_collector(run, "--num-samples", "2", *flags)
    many = left_to_the_collector(run, "--num-samples", "8", *flags)
    assert many - few == Counter()
