"""What stands in the terminal: lines of its width, boxes between them, nothing that steers it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demos.cdss_example.console import Console
from demos.cdss_example.events import (
    CaseBegan,
    CaseEnded,
    NodeBegan,
    NodeEnded,
    Recommended,
    Said,
    Summarised,
)
from exaid_core import AgentSummary

SUMMARY = AgentSummary(
    status_action="Initial hypothesis \x1b[31m" + "and more words " * 7,
    key_findings="Elevated troponin",
    agents=("orchestrator", "cardiology"),
)


def said(pieces: list[str], columns: int = 40) -> list[str]:
    lines: list[str] = []
    console = Console(lines.append, columns)
    for piece in pieces:
        console.show(Said(2, "cardiology", piece))
    console.show(NodeEnded(2, "cardiology"))
    return lines


def test_a_case() -> None:
    lines: list[str] = []
    console = Console(lines.append, 60)
    console.show(CaseBegan("case-1", "Patient: 58 years\nVital signs:\n- heart rate 104 /min"))
    console.show(NodeBegan(1, "cardiology"))
    console.show(Said(1, "cardiology", "An ECG "))
    console.show(Summarised(SUMMARY))
    console.show(Said(1, "cardiology", "decides."))
    console.show(NodeEnded(1, "cardiology", "500"))
    console.show(NodeBegan(2, "synthesis"))
    console.show(Said(2, "synthesis", "Action: ECG"))
    console.show(NodeEnded(2, "synthesis"))
    console.show(Recommended("Action: ECG", {"action": "ECG"}, "laboratory"))
    console.show(CaseEnded(exaid="degraded: 500"))
    text = "\n".join(lines)
    assert "   - heart rate 104 /min" in text
    assert "─ 1 CardiologyAgent ───" in text
    assert "   An ECG decides.\n" in text, "the box is not in the middle of the sentence"
    assert text.index("An ECG decides.") < text.index("┌─") < text.index("─ 2 SynthesisAgent")
    assert "cardiology failed; the case continues without it: 500" in text
    assert text.count("Action: ECG") == 1, "what is in fields is printed once"
    assert "Stopped by the limit of steps: the orchestrator wanted" in text
    assert "EXAID: degraded: 500" in text
    assert "\x1b" not in text
    box = [line for line in lines if line[:1] in {"┌", "├", "│", "└"}]
    assert [line.split(":")[0] for line in box if line[0] != "│"] == [
        *("┌─ Agents", "├─ Action", "├─ Reasoning", "├─ Findings", "├─ Uncertainty"),
        "└─ Next Steps",
    ]
    assert box[0] == "┌─ Agents: Orchestrator, CardiologyAgent"
    assert max(len(line) for part in lines for line in part.split("\n")) < 60


def test_a_box_that_comes_when_nobody_speaks_or_at_the_end() -> None:
    lines: list[str] = []
    console = Console(lines.append, 60)
    console.show(Summarised(SUMMARY))
    assert sum(line.startswith("┌") for line in lines) == 1
    console.show(NodeBegan(1, "cardiology"))
    console.show(Summarised(SUMMARY))
    console.show(CaseEnded(failure="gone"))
    assert sum(line.startswith("┌") for line in lines) == 2


def test_a_failure() -> None:
    lines: list[str] = []
    Console(lines.append, 80).show(CaseEnded(failure="no\x1b[2J reply"))
    assert lines == ["   failed: no [2J reply"]


@pytest.mark.parametrize("columns", [0, 1, 29, 5000])
def test_any_width(columns: int) -> None:
    lines = said(["word " * 200], columns)
    assert 25 <= max(map(len, lines)) <= 100


WORDS = st.lists(st.text("abc-é \n\t\x1b\u202e", max_size=30), max_size=20)


@pytest.mark.sweep
@given(WORDS, st.integers(0, 120))
def test_no_word_is_lost_however_the_pieces_are(pieces: list[str], columns: int) -> None:
    lines = said(pieces, columns)
    wanted = re.sub(r"[\s\x1b\u202e]", "", "".join(pieces))
    assert re.sub(r"\s", "", "".join(lines)) == wanted
    assert not re.search("[\x1b\u202e]", "".join(lines))


@given(st.lists(st.sampled_from(["An ", "ECG", " decides", " it", "self. "]), max_size=40))
def test_words_are_neither_joined_nor_torn(pieces: list[str]) -> None:
    assert " ".join(said(pieces)).split() == "".join(pieces).split()
