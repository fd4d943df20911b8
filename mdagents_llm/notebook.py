"""Tables that a notebook shows, in the colors of its theme. All text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from mdagents_llm.text import clean


def html_table(rows: Iterable[Sequence[str]], headings: Sequence[str] = (), title: str = "") -> str:
    """Return an HTML table; the first cell of each row is its name.

    Args:
        rows: Cells of each row, as text.
        headings: Names of the columns; empty for a table of names and values.
        title: Caption; empty for none.
    """
    head = f"<thead><tr>{''.join(_cell('th', name) for name in headings)}</tr></thead>"
    body = "".join(
        f"<tr>{_cell('th', name)}{''.join(_cell('td', cell) for cell in cells)}</tr>"
        for name, *cells in rows
    )
    caption = f'<caption style="text-align: left">{_text(title)}</caption>' if title else ""
    return f"<table>{caption}{head if headings else ''}<tbody>{body}</tbody></table>"


def html_line(text: str) -> str:
    """Return a paragraph of HTML."""
    return f"<p>{_text(text)}</p>"


def _cell(tag: str, text: str) -> str:
    return f'<{tag} style="text-align: left">{_text(text)}</{tag}>'


def _text(text: str) -> str:
    return escape(clean(text))
