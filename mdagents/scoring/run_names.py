"""What runs are called where their whole names would repeat what all share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile

_LONG_NAME = 16  # characters
_HASH = re.compile(r"_[0-9a-f]{8}$")  # of a configuration, see docs/files.md


def distinct(names: Sequence[str]) -> list[str]:
    """Return names as they are, or of long ones what tells them apart.

    Words that all begin or end with are not repeated, nor the hash of a configuration where names
    differ without it. Equal names have their number behind them.
    """
    hashless = [_HASH.sub("", name) for name in names]
    if max(map(len, names)) > _LONG_NAME and len(set(hashless)) == len(names):
        names = hashless
    for separator in ("_", "-"):
        if max(map(len, names)) > _LONG_NAME and len(set(names)) == len(names):
            names = _without_shared(names, separator)
    is_double = {name for name, count in Counter(names).items() if count > 1}
    return [
        f"{name} ({number})" if name in is_double else name
        for number, name in enumerate(names, start=1)
    ]


def _without_shared(names: Sequence[str], separator: str) -> list[str]:
    words = [name.split(separator) for name in names]
    shortest = min(map(len, words))
    head = _shared_words(words)
    tail = min(_shared_words([of_one[::-1] for of_one in words]), shortest - head)
    if head + tail == shortest:  # one would have no name at all
        head, tail = (head - 1, tail) if head else (head, tail - 1)
    return [separator.join(of_one[head : len(of_one) - tail]) for of_one in words]


def _shared_words(words: Sequence[Sequence[str]]) -> int:
    """Return with how many words all begin."""
    columns = zip(*words, strict=False)  # as many as the shortest has
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))
