"""The parts of a page that can change while somebody looks at it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mdagents.pages.layout import templates


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a page."""

    id: str
    """Of its element."""
    into: str
    """Id of the element that a new one is appended to."""
    key: object
    """Differs when the part differs."""
    html: Callable[[], str]
    grows: str | None = None
    """The text of its element `{id}-said`, which only gets longer; None for a part without one.
    It is a part of `html`, too, but not of `key`."""


def made_by(template: str, macro: str, *values: object) -> Callable[[], str]:
    """Return what makes the HTML of a part with a macro.

    Args:
        template: Name of the template that holds the macro.
        macro: Its name.
        values: What it is given; functions are called when the HTML is made.
    """

    def html() -> str:
        made = [value() if callable(value) else value for value in values]
        return str(getattr(templates().get_template(template).module, macro)(*made))

    return html
