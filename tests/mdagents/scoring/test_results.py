"""Results on a terminal, and the plain text of the same parts everywhere else."""

from __future__ import annotations

import os
import pty
import re

import pytest

from mdagents.scoring.formatting import Headline, Part, Table, as_text
from mdagents.scoring.results import draw, shown

TABLE = Table(
    ["", "accuracy (95% interval)", "tokens"],
    [["basic", "59.5% (43.5–73.7)", "3,022"], ["all", "61.0% (51.2–70.0)", "8,869"]],
    has_total=True,
    title="by level",
)
PARTS: list[Part] = [
    Headline("a is better than b"),
    TABLE,
    TABLE,
    "status: answered 100",
    "NOTE: [bold]x[/]",
]


@pytest.fixture(autouse=True)
def colors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


def bare(text: str) -> str:
    return re.sub("\x1b\\[[0-9;]*m", "", text)


def test_the_width_is_used_and_kept() -> None:
    for width in (20, 40, 80, 120, 200):
        lines = bare(draw(PARTS, width)).splitlines()
        assert max(map(len, lines)) <= width
        titles = [line.count("by level") for line in lines if "by level" in line]
        assert titles == ([2] if width >= 80 else [1, 1])


def test_accuracy_verdict_and_total_are_bold_and_markup_is_text() -> None:
    text = draw(PARTS, 80)
    assert "\x1b[1m59.5%\x1b[0m (43.5–73.7)" in text
    assert "\x1b[1ma is better than b\x1b[0m" in text
    assert "[bold]x[/]" in bare(text)
    assert draw(["a\x1b[31mb"], 80) == "a[31mb", "a text has no control characters"


def test_without_a_terminal_it_is_plain(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(PARTS) == as_text(PARTS)
    assert "| basic |" in shown(PARTS)


def test_a_terminal_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    person, screen = pty.openpty()
    try:
        for term, encoding, is_drawn in (
            ("xterm", "utf-8", True), ("dumb", "utf-8", False), ("xterm", "ascii", False),
        ):  # fmt: skip
            with os.fdopen(os.dup(screen), "w", encoding=encoding) as stream:
                monkeypatch.setattr("sys.stdout", stream)
                monkeypatch.setenv("TERM", term)
                assert ("───" in shown(PARTS)) == is_drawn
    finally:
        os.close(person)
        os.close(screen)
