"""Parts of a page that can change while it is open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mdagents.pages.layout import templates


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a page that is updated separately."""

    id: str
    """Id of the part's HTML element."""
    into: str
    """Id of the element that a new part is appended to."""
    key: object
    """Value that changes whenever the part changes."""
    html: Callable[[], str]
    grows: str | None = None
    """Append-only text of the element `{id}-said`; None for a part without one.

    `html` includes this text, but `key` does not.
    """


def made_by(template: str, macro: str, *values: object) -> Callable[[], str]:
    """Return a function that renders the HTML of a part with a macro.

    Args:
        template: Name of the template that holds the macro.
        macro: Name of the macro.
        values: Arguments of the macro; functions are called when the HTML is rendered.
    """

    def html() -> str:
        made = [value() if callable(value) else value for value in values]
        return str(getattr(templates().get_template(template).module, macro)(*made))

    return html
