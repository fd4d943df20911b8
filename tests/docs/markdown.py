"""The Markdown of the repository as GitHub reads it: its links, headings and blocks of code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from scripts.site_links import github_slug
from tests.conftest import REPOSITORY
from tests.support.own_files import own_files

COMMANDS = ("", "sh", "bash", "shell", "console")
"""Languages of blocks that may hold commands; a block without a language often does."""


@dataclass(frozen=True)
class Block:
    """A block of code on a page."""

    page: str
    """Path of the page in the repository."""
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        """Path and line, for a message."""
        return f"{self.page}:{self.line}"


@cache
def pages() -> tuple[str, ...]:
    """Paths of all pages for readers: README and its like, docs/, data/."""
    names = own_files("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "docs", "data")
    return tuple(name for name in names if name.endswith(".md"))


@cache
def tokens(page: str) -> tuple[Token, ...]:
    """The page as markdown-it parses it."""
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    return tuple(MarkdownIt("commonmark").enable("table").parse(text))


def blocks(page: str) -> Iterator[Block]:
    """Yield the blocks of code of a page, indented ones included, from top to bottom."""
    for token in tokens(page):
        if token.type in ("fence", "code_block"):
            assert token.map is not None
            yield Block(page, token.map[0] + 1, token.info.strip(), token.content)


def inline_code(page: str) -> Iterator[str]:
    """Yield the code within lines of text."""
    for token in tokens(page):
        for child in token.children or ():
            if child.type == "code_inline":
                yield child.content


def targets(page: str) -> Iterator[str]:
    """Yield the targets of links and pictures, in HTML as well."""
    for token in tokens(page):
        for part in (token, *(token.children or ())):
            for attribute in ("href", "src"):
                if value := part.attrs.get(attribute):
                    yield str(value)
            if part.type in ("html_block", "html_inline"):
                yield from re.findall(r"\b(?:href|src)=\"([^\"]+)\"", part.content)


@cache
def anchors(page: str) -> frozenset[str]:
    """The anchors of a page's headings and of its own `<a id=…>`."""
    found: list[str] = []
    parsed = tokens(page)
    for token, following in pairwise(parsed):
        if token.type == "heading_open":
            said = "".join(child.content for child in following.children or ())
            slug = github_slug(said)
            count = found.count(slug)
            found.append(slug)
            if count:
                found.append(f"{slug}-{count}")
        for part in (token, *(token.children or ())):
            if part.type in ("html_block", "html_inline"):
                found += re.findall(r"\bid=\"([^\"]+)\"", part.content)
    return frozenset(found)
