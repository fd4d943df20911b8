"""Settings from the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.config import default_cache_dir


@pytest.mark.parametrize(
    ("environ", "platform", "expected"),
    [
        ({"HOME": "/h"}, "linux", "/h/.cache/mdagents"),
        ({"HOME": "/h", "XDG_CACHE_HOME": "/x"}, "linux", "/x/mdagents"),
        ({"HOME": "/h"}, "darwin", "/h/Library/Caches/mdagents"),
        ({"HOME": "/h", "LOCALAPPDATA": "/l"}, "win32", "/l/mdagents"),
        ({"HOME": "/h", "MDAGENTS_CACHE_DIR": "/mine"}, "linux", "/mine"),
    ],
)
def test_the_cache_folder(environ: dict[str, str], platform: str, expected: str) -> None:
    assert default_cache_dir(environ, platform) == Path(expected)
