"""Draw docs/images/architecture.svg; a test fails if the file differs.

Boxes are placed by hand on a page as wide as GitHub renders a README. The drawing follows the
reader's light or dark color scheme.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "images" / "architecture.svg"

WIDTH, HEIGHT = 900, 566

_TITLE = "Architecture of mdagents-bench"
_DESCRIPTION = (
    "main.py gives each question to the router, which chooses a basic, intermediate or advanced "
    "team. The team's decision becomes a record. What the agents say goes, word by word, to the "
    "TraceBus, from which EXAID makes summaries: token gate, buffer agent, summarizer; they are "
    "shown in the terminal and kept in the log and the run log. Both call models through the same "
    "layers: Structured, Cache, Retry, Gate, Attempt, provider; each attempt is a row of the "
    "ledger. evaluate_text_output.py makes a CSV, statistics and an HTML page of records alone."
)
_STYLE = """
    svg { color-scheme: light dark; font-family: system-ui, "Segoe UI", Helvetica, sans-serif }
    .page { fill: #ffffff } .band { fill: #f3f5f8 } text { fill: #1f2328 }
    .box { fill: #ffffff; stroke: #8c959f } .more, .label { fill: #57606a }
    .main { fill: #ddf4ff; stroke: #0969da } .exaid { fill: #dafbe1; stroke: #1a7f37 }
    .model { fill: #fff8c5; stroke: #9a6700 } .score { fill: #fbefff; stroke: #8250df }
    .arrow { fill: none; stroke: #57606a; stroke-width: 2 } .tip { fill: #57606a }
    .name { font-size: 15px; font-weight: 600 } .more { font-size: 13px }
    .label { font-size: 13.5px } .package { font-size: 15px; font-weight: 600 }
    @media (prefers-color-scheme: dark) {
      .page { fill: #0d1117 } .band { fill: #161b22 } text { fill: #f0f6fc }
      .box { fill: #0d1117; stroke: #6e7681 } .more, .label { fill: #a8b3bf }
      .main { fill: #0c2d4d; stroke: #4493f8 } .exaid { fill: #0f3320; stroke: #3fb950 }
      .model { fill: #3a2d05; stroke: #d29922 } .score { fill: #2c1a4d; stroke: #ab7df8 }
      .arrow { stroke: #a8b3bf } .tip { fill: #a8b3bf }
    }
"""


@dataclass(frozen=True, slots=True)
class Box:
    """A box for one part of the program, with its name, purpose and path."""

    path: str
    """Path relative to the repository root, shown as a tooltip."""
    kind: str
    x: int
    y: int
    width: int
    height: int
    name: str
    more: tuple[str, ...] = ()
    """Lines of text under the name."""


BOXES = (
    Box("main.py", "main", 26, 92, 106, 66, "main.py", ("a question",)),
    Box("mdagents/teams/router.py", "main", 166, 92, 106, 66, "router", ("how hard?",)),
    Box("mdagents/teams/basic.py", "main", 306, 48, 204, 46, "basic", ("3 experts, arbitrator",)),
    Box(
        "mdagents/teams/intermediate.py",
        *("main", 306, 102, 204, 46, "intermediate", ("experts debate, moderator",)),
    ),
    Box(
        "mdagents/teams/advanced.py",
        *("main", 306, 156, 204, 46, "advanced", ("teams review, coordinator",)),
    ),
    Box("mdagents/teams/decision.py", "main", 544, 92, 112, 66, "decision", ("one letter",)),
    Box(
        "mdagents/records", "box", 694, 82, 192, 86, "record", ("on disk before the", "next begins")
    ),
    Box("exaid_core/trace/bus.py", "exaid", 86, 290, 112, 74, "TraceBus", ("every word said",)),
    Box("exaid_core/token_gate", "exaid", 210, 290, 112, 74, "token gate", ("cuts into pieces",)),
    Box("exaid_core/buffer_agent", "exaid", 334, 290, 112, 74, "buffer agent", ("is it new?",)),
    Box(
        "exaid_core/summarizer_agent",
        *("exaid", 458, 290, 112, 74, "summarizer", ("six lines for", "a clinician")),
    ),
    Box("mdagents/display", "box", 590, 276, 70, 30, "", ("terminal",)),
    Box("mdagents/view", "box", 590, 312, 70, 30, "", ("live view",)),
    Box("exaid_core/run_log.py", "box", 590, 348, 70, 30, "", ("run log",)),
    Box(
        "evaluate_text_output.py",
        *("score", 694, 228, 192, 82, "scores", ("evaluate_text_output.py", "needs no model")),
    ),
    Box("mdagents/cli/score.py", "box", 694, 346, 48, 46, "", ("CSV",)),
    Box("mdagents/scoring/statistics.py", "box", 748, 346, 80, 46, "", ("statistics",)),
    Box("mdagents/pages", "box", 834, 346, 52, 46, "", ("HTML",)),
    Box(
        "mdagents_llm/layers/structured.py",
        "model",
        26,
        474,
        100,
        66,
        "Structured",
        ("valid JSON",),
    ),
    Box("mdagents_llm/layers/cache.py", "model", 142, 474, 88, 66, "Cache", ("paid once",)),
    Box("mdagents_llm/layers/retry.py", "model", 246, 474, 88, 66, "Retry", ("waits, tries",)),
    Box("mdagents_llm/layers/gate.py", "model", 350, 474, 88, 66, "Gate", ("pace, limits",)),
    Box("mdagents_llm/layers/attempt.py", "model", 454, 474, 88, 66, "Attempt", ("one call",)),
    Box("mdagents_llm/providers", "model", 558, 474, 100, 66, "provider", ("API or local",)),
    Box("mdagents_llm/ledger.py", "box", 694, 474, 192, 66, "ledger", ("a row for each attempt",)),
)

BANDS = (
    ("mdagents: teams answer", 12, 14, 660, 200),
    ("exaid_core: EXAID summarizes while they talk", 76, 250, 596, 142),
    ("mdagents_llm: the same way to every model", 12, 438, 660, 114),
)

ARROWS = (
    "M132 125 H160",
    "M272 125 H300",
    "M510 125 H538",
    "M656 125 H688",
    "M408 202 V232 H98 V284",
    "M198 327 H204",
    "M322 327 H328",
    "M446 327 H452",
    "M570 327 H584",
    "M790 168 V222",
    "M790 310 V340",
    "M44 214 V432",
    "M374 392 V432",
    "M126 507 H136",
    "M230 507 H240",
    "M334 507 H344",
    "M438 507 H448",
    "M542 507 H552",
    "M658 507 H688",
)

LABELS = (
    ("text as it streams", 420, 232),
    ("prompts and replies", 54, 420),
    ("prompts and replies", 384, 420),
    ("files", 800, 202),
)


def svg() -> str:
    """Return the drawing as SVG."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
            ' aria-labelledby="title description">',
            f'  <title id="title">{_TITLE}</title>',
            f'  <desc id="description">{_DESCRIPTION}</desc>',
            f"  <style>{_STYLE}  </style>",
            '  <marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="4.5"'
            ' markerHeight="4.5" orient="auto"><path class="tip" d="M0 0 8 4 0 8z"/></marker>',
            f'  <rect class="page" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
            *_bands(),
            *(f'  <path class="arrow" d="{path}" marker-end="url(#tip)"/>' for path in ARROWS),
            *(_text("label", x, y, words, "start") for words, x, y in LABELS),
            *(_drawn(box) for box in BOXES),
            "</svg>",
            "",
        ]
    )


def _bands() -> Iterator[str]:
    for words, x, y, width, height in BANDS:
        yield f'  <rect class="band" x="{x}" y="{y}" width="{width}" height="{height}" rx="8"/>'
        yield _text("package", x + 36, y + 24, words, "start")


def _drawn(box: Box) -> str:
    middle = box.x + box.width // 2
    step = 17
    y = box.y + box.height // 2 + 5 - step * (len(box.more) + bool(box.name) - 1) // 2
    lines = []
    if box.name:
        lines.append(_text("name", middle, y, box.name))
        y += step + 1
    for line in box.more:
        lines.append(_text("more", middle, y, line))
        y += step
    return "\n".join(
        [
            f'  <g data-path="{box.path}"><title>{box.path}</title>',
            f'  <rect class="box {box.kind}" x="{box.x}" y="{box.y}" width="{box.width}"'
            f' height="{box.height}" rx="6"/>',
            *lines,
            "  </g>",
        ]
    )


def _text(kind: str, x: int, y: int, words: str, anchor: str = "middle") -> str:
    return f'  <text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'


if __name__ == "__main__":
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    FILE.write_text(svg(), encoding="utf-8")
    print(f"{FILE.relative_to(ROOT)} is up to date")
