"""Templates, styles, scripts and content security policies that all pages share."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from mdagents.pages.glossary import GLOSSARY
from mdagents.scoring.fields import plain
from mdagents.scoring.table_formats import as_latex, as_markdown, in_a_line

STYLES = ("base.css", "figures.css", "question.css", "pictures.css", "live.css", "rate.css")


_GZIP_LEVEL = 6


@cache
def templates() -> Environment:
    """Return the template environment, which escapes values that are not marked as HTML."""
    environment = Environment(
        loader=PackageLoader("mdagents.pages"),
        autoescape=True,
        auto_reload=False,  # reloading would stat the file before each of many small parts
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["GLOSSARY"] = GLOSSARY
    environment.filters.update(
        latex=as_latex, markdown=as_markdown, in_a_line=in_a_line, packed=packed
    )
    return environment


def style() -> Markup:
    """Return the style sheet of all pages."""
    return Markup("").join(map(_source, STYLES))


def script(names: Sequence[str]) -> Markup:
    """Return some of the scripts as one, for embedding into a page."""
    return Markup("").join(map(_source, names))


def hash_of(script_: str) -> str:
    """Return the hash that lets a content security policy allow this source alone."""
    return f"sha256-{base64.b64encode(sha256(script_.encode()).digest()).decode()}"


def packed(content: str | bytes) -> str:
    """Return a text or file as gzip in base64, which the page unpacks on demand."""
    raw = plain(content).encode() if isinstance(content, str) else content
    return base64.b64encode(gzip.compress(raw, _GZIP_LEVEL, mtime=0)).decode()


def _source(name: str) -> Markup:
    return Markup(files("mdagents.pages").joinpath("templates", name).read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class Frame:
    """Styles and scripts around a page; nothing else may run, whatever a model wrote."""

    style: Markup
    theme: Markup
    """Script that runs before anything is shown."""
    script: Markup

    @property
    def policy(self) -> Markup:
        """Content security policy of a live page, which may also read this server."""
        return Markup(
            "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
            "connect-src 'self'; img-src 'self'; "
            f"style-src '{hash_of(self.style)}'; {self._scripts}"
        )

    @property
    def policy_of_a_file(self) -> Markup:
        """Content security policy of a report, whose charts use inline styles and become images."""
        return Markup(
            "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; "
            f"img-src data:; {self._scripts}"
        )

    @property
    def _scripts(self) -> str:
        return f"script-src '{hash_of(self.theme)}' '{hash_of(self.script)}'"


@cache
def make_frame(*scripts: str) -> Frame:
    """Return the frame of pages with these scripts."""
    return Frame(style(), script(["theme.js"]), script(["parts.js", *scripts]))
