"""The benchmark of many dialogues at once runs, and finds no dialogue with another's answer."""

from __future__ import annotations

import re

import pytest

from benchmarks import assistant


@pytest.mark.process
def test_dialogues_at_once_beside_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert assistant.main(["--quick", "--dialogues", "3"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"dialogues with another answer \|\s+0 \| <= 0 \| +met", printed)
    assert re.search(r"^\| 3 +\| +9 \|", printed, re.MULTILINE)
