"""Formatting of figures for terminals and HTML pages; unknown values are shown as `-`."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mdagents.scoring.statistics import SMALLEST_FOR_COEFFICIENTS, SMALLEST_FOR_RATES
from mdagents_llm.text import well_formed

if TYPE_CHECKING:
    from prettytable import PrettyTable

SCREEN_WIDTH = 80
"""Width in columns of the narrowest supported terminal."""

_NARROWEST_NAME = 6
_LONG = 100  # entries of a list in JSON


@dataclass(frozen=True, slots=True)
class Table:
    """A table of figures; each row starts with a name, which is left-aligned."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    has_total: bool = False
    """Whether the last row is a total, separated from the rows above."""
    title: str = ""

    def as_text(self) -> str:
        """Return the table for a terminal; if too wide, padding is removed, then names wrap."""
        from prettytable import PrettyTable  # not needed before the end of a run

        table = PrettyTable(list(self.headings), align="r")
        table.align[self.headings[0]] = "l"
        last = len(self.rows) - 1
        for place, row in enumerate(self.rows):
            table.add_row(list(row), divider=self.has_total and place == last - 1)
        if _excess(table) > 0:
            table.padding_width = 0
        if (excess := _excess(table)) > 0:
            longest = max(len(row[0]) for row in self.rows)
            table.max_width[self.headings[0]] = max(longest - excess, _NARROWEST_NAME)
        return "\n".join(filter(None, [wrapped(self.title), table.get_string()]))


def _excess(table: PrettyTable) -> int:
    """Return by how many columns a table exceeds the terminal width."""
    return len(table.get_string().partition("\n")[0]) - SCREEN_WIDTH


class Headline(str):
    """A line that answers the question of a result; bold on a terminal."""

    __slots__ = ()


Part = Table | str
"""Part of a result: a table or a line of text, which a narrow screen wraps."""


def as_text(parts: Iterable[Part]) -> str:
    """Return a result as plain text, the same in a pipe, a file and a narrow terminal."""
    return "\n".join(part.as_text() if isinstance(part, Table) else wrapped(part) for part in parts)


def wrapped(line: str) -> str:
    """Return a line wrapped for a terminal; long words, such as paths, stay whole."""
    return textwrap.fill(
        line, SCREEN_WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


UNKNOWN = "-"
"""Placeholder for an unknown figure."""


def number(value: float | None, form: str) -> str:
    """Return a number formatted by a `format()` spec, with a true minus; `UNKNOWN` for None."""
    return UNKNOWN if value is None else format(value, form).replace("-", "−")


def percent(value: float | None) -> str:
    """Format 0.615 as `61.5%`."""
    return number(value, ".1%")


def chance_in_words(chance: float) -> str:
    """Format 0.25 as `chance 25%`, and 1 / 12 as `chance 8.3%`."""
    return f"chance {percent(chance).replace('.0%', '%')}"


def share(part: int, whole: int) -> str:
    """Format a rate as `61.5%`, or as `3 of 7` below `SMALLEST_FOR_RATES`."""
    if not whole:
        return UNKNOWN
    return f"{part} of {whole}" if whole < SMALLEST_FOR_RATES else percent(part / whole)


def coefficient(value: float | None, n: int) -> str:
    """Return a coefficient with three decimals; `UNKNOWN` for too few questions."""
    return number(value if n >= SMALLEST_FOR_COEFFICIENTS else None, ".3f")


def usd(amount: float | None) -> str:
    """Format an amount with two decimals, or with two significant digits if it is small."""
    if amount is None:
        return UNKNOWN
    digits = 2 if amount == 0 else max(2, 1 - math.floor(math.log10(abs(amount))))
    return number(amount, f",.{digits}f")


def points(value: float | None, form: str = ".1f") -> str:
    """Return a difference of two rates in percentage points, without a unit."""
    sign = "+" if form.startswith("+") else ""
    # The option z turns the −0.0 of a tiny negative value into 0.0.
    return number(
        None if value is None else round(value * 100, 9), f"{sign}z{form.removeprefix('+')}"
    )


def interval(low: float | None, high: float | None, form: str = ".1f") -> str:
    """Return an interval of percentage points: `69.1–80.9`, with signs `−3.5 to +4.5`."""
    if low is None or high is None:
        return UNKNOWN
    between = " to " if low < 0 or "+" in form else "–"
    return f"{points(low, form)}{between}{points(high, form)}"


def counts(of: Mapping[str, int]) -> str:
    """Format counts by name: `basic 4, advanced 1`."""
    return ", ".join(f"{name} {count}" for name, count in of.items()) or "-"


def json_chunks(figures: Mapping[str, object]) -> Iterator[str]:
    """Yield figures as the text of a JSON file, in pieces; NaN is rejected.

    A long list of objects has one line for each, which is quick to write and to search.
    """
    for number, (name, value) in enumerate(figures.items()):
        yield f"{',' if number else '{'}\n  {_json(name)}: "
        if isinstance(value, list) and len(value) > _LONG:
            for place, entry in enumerate(value):
                yield f"{',' if place else '['}\n    {_json(entry)}"
            yield "\n  ]"
        else:
            yield _json(value, indent=2).replace("\n", "\n  ")
    yield "\n}" if figures else "{}"


def _json(value: object, indent: int | None = None) -> str:
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    return well_formed(text)  # the name of a folder may not be UTF-8


def json_text(figures: Mapping[str, object]) -> str:
    """Return figures as the text of a JSON file."""
    return "".join(json_chunks(figures)) + "\n"


def p_value(p: float | None) -> str:
    """Return a p-value with four decimals; values below 0.0001 as `<0.0001`."""
    return "<0.0001" if p is not None and p < 1e-4 else number(p, ".4f")


def p_equation(p: float) -> str:
    """Return a p-value as written in a sentence: `p = 0.0156`, `p < 0.0001`."""
    written = p_value(p)
    return f"p < {written[1:]}" if written.startswith("<") else f"p = {written}"
