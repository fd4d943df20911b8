"""What EXAID says it lost is what evals find in its run log, on the same trace."""

from __future__ import annotations

import math
from itertools import count
from pathlib import Path

import pytest

from evals.concepts import TermExtractor
from evals.metrics import measure
from evals.metrics_records import PerCaseMetrics
from evals.run_logs import read_run_log
from evals.trace_text import TraceText, content_events
from evals.variants import VARIANT_IDS, load_variant
from exaid_core.exaid import EXAID
from exaid_core.trace.files import write_gz
from exaid_core.trace.traces import Trace, read_trace
from mdagents_llm.chat import ChatReply, ChatRequest
from tests.conftest import REAL_TRACES
from tests.evals.conftest import SENTENCE, write_trace
from tests.exaid_core.models import DOWN, SHIFT, STABLE, model, reply
from tests.support.function_model import FunctionModel

pytestmark = pytest.mark.sweep

EXTRACTOR = TermExtractor()


async def replayed(
    trace: Trace, variant: str, fails_from: int, path: Path
) -> tuple[EXAID, PerCaseMetrics]:
    """A closed EXAID and the metrics of its run log, where writing fails from then on."""
    calls = count()

    def write(request: ChatRequest) -> ChatReply:
        if next(calls) >= fails_from:
            raise DOWN
        return reply(STABLE)

    now_ms = trace.meta.t0_emitted_ms
    exaid = EXAID(
        buffer_llm=model(SHIFT),
        summarizer_llm=FunctionModel(write),
        config=load_variant(variant).exaid_config(),
        case_id=trace.meta.case_id,
        now_ms=lambda: now_ms,
        monotonic=lambda: 0.0,
    )
    for event in content_events(trace):
        now_ms = event.t_ms
        exaid.advance(now_ms)
        exaid.on_event(event)
    await exaid.close(math.inf)
    lines = exaid.log.lines(
        created_at=trace.meta.created_at, mas_run_id="mas_1", eval_run_id="eval-1"
    )
    write_gz(path, lines)
    return exaid, measure(read_run_log(path), TraceText.of(trace), EXTRACTOR).record


async def losses(trace: Trace, variant: str, fails_from: int, path: Path) -> tuple[float, float]:
    """The tail loss as EXAID says it, and as evals compute it."""
    exaid, record = await replayed(trace, variant, fails_from, path)
    assert record.tail_loss is not None
    return exaid.tail_loss(), record.tail_loss


@pytest.mark.parametrize("variant", VARIANT_IDS)
@pytest.mark.parametrize("fails_from", [0, 1, 99])
async def test_exaid_and_evals_agree(tmp_path: Path, variant: str, fails_from: int) -> None:
    trace = read_trace(write_trace(tmp_path, more=SENTENCE * 3))
    of_exaid, of_evals = await losses(trace, variant, fails_from, tmp_path / "log.jsonl.gz")
    assert of_exaid == of_evals
    assert {0: of_exaid == 1, 1: 0 < of_exaid < 1, 99: of_exaid == 0}[fails_from]


@pytest.mark.parametrize("variant", VARIANT_IDS)
@pytest.mark.parametrize("path", REAL_TRACES[:2], ids=lambda path: path.name)
async def test_they_agree_on_a_real_trace(tmp_path: Path, variant: str, path: Path) -> None:
    of_exaid, of_evals = await losses(read_trace(path), variant, 3, tmp_path / "log.jsonl.gz")
    assert of_exaid == of_evals
    assert 0 < of_exaid < 1


@pytest.mark.parametrize("variant", VARIANT_IDS)
async def test_they_agree_on_missed_alerts(tmp_path: Path, variant: str) -> None:
    # V3 cuts at 500 characters, within the alert for some of these numbers of words.
    for words in (50, *range(86, 101)):
        said = "word " * words + "he is now in cardiac arrest and "
        trace = read_trace(write_trace(tmp_path, more=said))
        for fails_from in (0, 1, 99):
            exaid, record = await replayed(trace, variant, fails_from, tmp_path / "log.jsonl.gz")
            assert exaid.alerts == 1
            assert record.suppression_rate == exaid.missed_alerts(), (words, fails_from)
