"""What every page has in common: its templates, its styles, its scripts and their policy."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

STYLES = ("base.css", "figures.css", "question.css")


@cache
def templates() -> Environment:
    """Return the templates; what is put into them is text, unless it is marked as HTML."""
    return Environment(
        loader=PackageLoader("mdagents.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def style() -> Markup:
    """Return the style sheet of all pages."""
    return Markup("").join(map(_source, STYLES))


def script(names: Sequence[str]) -> Markup:
    """Return some of the scripts as one, as it is put into a page."""
    return Markup("").join(map(_source, names))


def hash_of(script_: str) -> str:
    """Return what a content security policy calls a script: no other one may run then."""
    return f"sha256-{base64.b64encode(sha256(script_.encode()).digest()).decode()}"


def _source(name: str) -> Markup:
    return Markup(files("mdagents.pages").joinpath("templates", name).read_text("utf-8"))
