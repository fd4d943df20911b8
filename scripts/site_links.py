"""Links of the repository's Markdown, as its site needs them.

The pages are written for readers of the repository: they link to files by their paths, also to
files that are not in docs/. In the site a Markdown file from elsewhere is a page under
`repository/`. The site has no other file; a link to one becomes its text and path.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

INDEXES = ("docs/explanation/decisions", "docs/how-to/recipes", "docs/notebooks")
"""Folders that the site has an index page of; in the repository they are linked to as folders."""

_FENCED = re.compile(r"^([ \t]*)(`{3,}|~{3,})[^\n]*\n.*?^[ \t]*\2[ \t]*$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(
    r"(?P<code>(?P<ticks>`+)(?:(?!(?P=ticks)).)+(?P=ticks))"
    r"|(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]\((?P<target>[^)\s]+)\)",
    re.DOTALL,
)


def github_slug(text: str, separator: str = "-") -> str:
    """Return the anchor that GitHub gives to a heading.

    Args:
        text: Text of the heading, without its markup.
        separator: Character that replaces a space.
    """
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", separator)


def site_path(path: str) -> str:
    """Return the path in the site of the page or picture that is at `path` in the repository."""
    if path in INDEXES:
        path = f"{path}/index.md"
    path = re.sub(r"\.ipynb$", ".md", path)
    inside = path.removeprefix("docs/")
    return inside if inside != path else f"repository/{path}"


def is_in_site(path: str) -> bool:
    """Return whether the site has what is at `path` in the repository."""
    return path in INDEXES or path.startswith("docs/") or path.endswith(".md")


def pages_outside(pages: dict[str, str]) -> dict[str, str]:
    """Return the Markdown files outside docs/ that pages link to, directly or by way of another.

    Args:
        pages: Path in the repository → Markdown.

    Returns:
        Path in the repository → Markdown.
    """
    found: dict[str, str] = {}
    waiting = dict(pages)
    while waiting:
        source, markdown = waiting.popitem()
        for target in targets(markdown):
            path = target_path(target, source)
            is_new = path not in pages and path not in found
            if path.endswith(".md") and is_new and (ROOT / path).is_file():
                found[path] = waiting[path] = (ROOT / path).read_text(encoding="utf-8")
    return found


def targets(markdown: str) -> Iterator[str]:
    """Yield the relative targets of links and images outside code."""
    for part in _FENCED.split(markdown)[::3]:
        for match in _LINK.finditer(part):
            target = match["target"]
            if target and not _is_absolute(target) and not target.startswith("#"):
                yield target


def target_path(target: str, source: str) -> str:
    """Return the path in the repository that a relative link means.

    Args:
        target: Target of the link; an anchor is ignored.
        source: Path of the linking file in the repository.
    """
    path = target.partition("#")[0]
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), path))


def for_the_site(markdown: str, source: str, missing: Callable[[str], None]) -> str:
    """Return the Markdown of a file with its links turned into those of the site.

    Args:
        markdown: Content of the file.
        source: Path of the file in the repository.
        missing: Called with each target that does not exist.
    """
    page = posixpath.dirname(site_path(source))

    def rewritten(match: re.Match[str]) -> str:
        target = match["target"]
        if not target or _is_absolute(target) or target.startswith("#"):
            return match[0]
        path = target_path(target, source)
        if not (ROOT / path).exists():
            missing(target)
            return match[0]
        if is_in_site(path):
            anchor = target[len(target.partition("#")[0]) :]
            place = posixpath.relpath(site_path(path), page)
            return f"{match['image']}[{match['text']}]({place}{anchor})"
        is_named = posixpath.basename(path) in match["text"]
        return match["text"] if is_named else f"{match['text']} (`{path}`)"

    parts, end = [], 0
    for fence in _FENCED.finditer(markdown):
        parts += [_LINK.sub(rewritten, markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, _LINK.sub(rewritten, markdown[end:])])


def _is_absolute(target: str) -> bool:
    return re.match(r"[a-z]+:", target) is not None
