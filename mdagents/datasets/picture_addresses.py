"""Finds the web addresses of pictures in the records of a question file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from mdagents.datasets.pictures.detection import Field, is_file, kind_of_field
from mdagents.datasets.record_lines import place, read_lines
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.json_text import load_json

MOST_ADDRESSES = 100_000
"""Maximum number of addresses in a file."""

_WHOLE = re.compile(r"https?://\S+", re.IGNORECASE)
_IN_TEXT = re.compile(
    r"!\[[^\]\n]*\]\((https?://[^)\s]+)"
    r"|<(?:img|image)\s[^<>]*?src\s*=\s*[\"']?(https?://[^\"'\s<>]+)"
    r"|\b(https?://[^\s<>\"']+\.(?:png|jpe?g|gif|webp|bmp|tiff?)\b)",
    re.IGNORECASE,
)
_DEEPEST = 8  # lists and objects within each other


def addresses_in(path: Path) -> dict[str, int]:
    """Return address -> number of the first record that names it, as written in the records.

    Raises:
        ConfigError: The file cannot be read, or it names too many pictures.
    """
    found: dict[str, int] = {}
    for _, number, line in read_lines(path):
        if not line.strip():
            continue
        record = load_json(line, place(path, number))
        for name, value in record.items() if isinstance(record, dict) else ():
            for address in _in_field(name, value):
                found.setdefault(address, number)
        if len(found) > MOST_ADDRESSES:
            raise ConfigError(f"{path} names more than {MOST_ADDRESSES:,} pictures by address")
    return found


def _in_field(
    name: str, value: object, depth: int = 0, *, is_picture: bool = False
) -> Iterator[str]:
    """Yield the addresses of pictures in a field, in its parts, and in those of its texts."""
    kind = kind_of_field(name)
    if kind is Field.NOT_SHOWN or depth > _DEEPEST:
        return
    is_picture = is_picture or kind is Field.PICTURE
    if isinstance(value, dict):
        for inner, of in value.items():
            yield from _in_field(str(inner), of, depth + 1, is_picture=is_picture)
    elif isinstance(value, list):
        for of in value:
            yield from _in_field(name, of, depth + 1, is_picture=is_picture)
    elif isinstance(value, str) and "://" in value:
        pieces = [piece.strip() for piece in (value, *value.split(";"))]
        whole = [piece for piece in pieces if _WHOLE.fullmatch(piece)]
        if whole and (is_picture or is_file(whole[0])):
            yield from whole[:1] if whole[0] == value.strip() else whole
        else:
            for mark in _IN_TEXT.finditer(value):
                yield mark[1] or mark[2] or mark[3]
