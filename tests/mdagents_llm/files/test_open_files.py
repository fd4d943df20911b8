"""The limit of open files, where there is one."""

from __future__ import annotations

import sys

import pytest

from mdagents_llm.files.open_files import most_open_files


def test_windows_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert most_open_files(8) == 8
    monkeypatch.setitem(sys.modules, "resource", None)
    assert most_open_files(1_000_000) == 1_000_000
