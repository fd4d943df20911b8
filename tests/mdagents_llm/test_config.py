"""Settings from the environment."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mdagents_llm.config import parse_environment

linux = pytest.mark.skipif(sys.platform != "linux", reason="the names of Linux")


def test_the_weights_are_where_the_user_says() -> None:
    assert parse_environment({"MDAGENTS_CACHE_DIR": "/mine"}).cache_dir == Path("/mine")


@linux
@pytest.mark.parametrize(
    ("cache_home", "expected"), [("", "/h/.cache/mdagents"), ("/x", "/x/mdagents")]
)
def test_the_weights_stay_where_earlier_versions_put_them(
    cache_home: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/h")
    monkeypatch.setenv("XDG_CACHE_HOME", cache_home)
    assert parse_environment({}).cache_dir == Path(expected)
