"""Draw docs/images/spans.svg: the spans of one question, as the embedded model answers it now.

    python scripts/draw_spans.py

The drawing follows the reader's light or dark color scheme. Times are those of this machine.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import mdagents

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "images" / "spans.svg"

WIDTH = 900
_ROW, _TOP, _LEFT, _RIGHT = 24, 34, 300, 150  # pixels
_STYLE = """
    svg { color-scheme: light dark; font-family: system-ui, "Segoe UI", Helvetica, sans-serif }
    .page { fill: #ffffff } text { fill: #1f2328; font-size: 13px } .more { fill: #57606a }
    .run { fill: #8c959f } .invoke_workflow { fill: #0969da } .invoke_agent { fill: #54aeff }
    .chat { fill: #bf8700 } .exaid { fill: #2da44e } .line { stroke: #d0d7de }
    @media (prefers-color-scheme: dark) {
      .page { fill: #0d1117 } text { fill: #f0f6fc } .more { fill: #a8b3bf }
      .run { fill: #6e7681 } .invoke_workflow { fill: #1f6feb } .invoke_agent { fill: #388bfd }
      .chat { fill: #d29922 } .exaid { fill: #3fb950 } .line { stroke: #30363d }
    }
"""
_EXAID = frozenset({"buffer_agent", "summarizer"})


def spans_of_one_question() -> list[ReadableSpan]:
    """Answer one question of the shipped sample, and return the spans of the run."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    with tempfile.TemporaryDirectory() as folder:
        config = mdagents.RunConfig(
            num_samples=1, difficulty="basic", preset="small", model="local", exaid="turn_end",
            otel=True, output_dir=Path(folder),
        )  # fmt: skip
        mdagents.run(config)
    return list(exporter.get_finished_spans())


def svg(spans: Sequence[ReadableSpan]) -> str:
    """Return the drawing of the spans of one trace."""
    rows = list(_in_order(spans))
    height = _TOP + _ROW * len(rows) + 14
    began = min(span.start_time or 0 for span in spans)
    took = max(span.end_time or 0 for span in spans) - began
    scale = (WIDTH - _LEFT - _RIGHT) / took
    told = "; ".join(f"{'below it ' * bool(depth)}{span.name}" for depth, span in rows)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" aria-labelledby="title desc">',
        '<title id="title">The spans of one question</title>',
        f'<desc id="desc">{escape(told)}</desc>',
        f"<style>{_STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}"/>',
    ]
    for tenth in range(0, 11, 2):
        x = _LEFT + took * scale * tenth / 10
        lines += [
            f'<line class="line" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 6}" y2="{height - 8}"/>',
            f'<text class="more" x="{x:.1f}" y="{_TOP - 12}" text-anchor="middle">'
            f"{took * tenth / 1e10:.1f} s</text>",
        ]
    for number, (depth, span) in enumerate(rows):
        lines += _row(_TOP + _ROW * number, depth, span, began, scale)
    return "\n".join([*lines, "</svg>", ""])


def _row(y: int, depth: int, span: ReadableSpan, began: int, scale: float) -> list[str]:
    attributes = span.attributes or {}
    start, end = span.start_time or 0, span.end_time or 0
    kind = "exaid" if attributes.get("gen_ai.agent.name") in _EXAID else span.name.split()[0]
    x, width = _LEFT + (start - began) * scale, max(2.0, (end - start) * scale)
    return [
        f'<text x="{8 + 14 * depth}" y="{y + 15}">{escape(span.name)}</text>',
        f'<rect class="{kind}" x="{x:.1f}" y="{y + 4}" width="{width:.1f}" height="14" rx="3"/>',
        f'<text class="more" x="{WIDTH - _RIGHT + 8}" y="{y + 15}">{escape(_more(span))}</text>',
    ]


def _more(span: ReadableSpan) -> str:
    """Return what the attributes of a span add to its name, in a few words."""
    attributes = span.attributes or {}
    if "gen_ai.usage.input_tokens" in attributes:
        given, written = (attributes[f"gen_ai.usage.{of}_tokens"] for of in ("input", "output"))
        return f"{given} + {written} tokens"
    if "exaid.trigger" in attributes:
        return f"EXAID: {attributes['exaid.trigger']!s}"
    words = [str(attributes.get(f"mdagents.{name}", "")) for name in ("phase", "answer")]
    if "mdagents.correct" in attributes:
        words.append("correct" if attributes["mdagents.correct"] else "wrong")
    return ", ".join(filter(None, words))


def _in_order(spans: Sequence[ReadableSpan]) -> Iterator[tuple[int, ReadableSpan]]:
    """Yield (depth, span) from the root on, children by their start."""
    below: defaultdict[int, list[ReadableSpan]] = defaultdict(list)
    for span in sorted(spans, key=lambda span: span.start_time or 0):
        below[span.parent.span_id if span.parent is not None else 0].append(span)

    def walk(parent: int, depth: int) -> Iterator[tuple[int, ReadableSpan]]:
        for span in below[parent]:
            yield depth, span
            yield from walk(span.context.span_id if span.context else -1, depth + 1)

    return walk(0, 0)


if __name__ == "__main__":
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    FILE.write_text(svg(spans_of_one_question()), encoding="utf-8")
    print(f"wrote {FILE.relative_to(ROOT)}")
