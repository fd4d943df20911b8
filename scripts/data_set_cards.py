"""Write the facts on the cards of docs/reference/data-sets from mdagents/datasets/sources.py.

A test fails if they differ. What is known to be wrong with a data set is written by hand below.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from mdagents.datasets.sources import BY_HAND, SHIPPED, SOURCES, About, Host, PinnedFile, Source

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference" / "data-sets"
GROUPED = "medagentsbench"
"""Name of the card of all data sets `medagentsbench/…`."""

_FACTS = re.compile(
    r"(?P<begin><!-- facts of (?P<name>\S+): [^>]*-->\n).*?(?P<end><!-- end of facts -->)",
    re.DOTALL,
)
_ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")
_SHOWN = 12
"""Digits of a checksum that fit into a table; the rest is in sources.py and in SOURCE.json."""


def names() -> list[str]:
    """Return the names of the cards about data sets, those of downloads first."""
    by_hand = [name for name in BY_HAND if not name.startswith(f"{GROUPED}/")]
    return [*SOURCES, *by_hand, GROUPED, *SHIPPED]


def with_facts(page: str) -> str:
    """Return a page with the facts after its marker."""

    def block(match: re.Match[str]) -> str:
        name = match["name"]
        facts = index() if name == "all" else "\n".join(facts_of(name))
        return f"{match['begin']}\n{facts}\n\n{match['end']}"

    return _FACTS.sub(block, page)


def index() -> str:
    """Return a table of all data sets."""
    rows = ["| name | questions | how to get it | license |", "|---|---|---|---|"]
    rows += [
        f"| [`{name}`]({name}.md) | {_sizes(name)} | {_way(name)} | {_license(name)} |"
        for name in names()
    ]
    return "\n".join(rows)


def facts_of(name: str) -> Iterator[str]:
    """Yield the lines of the facts of a data set."""
    about = _about(name)
    yield from ("| item | value |", "|---|---|")
    yield f"| get it | {_instructions(name)} |"
    if name in SOURCES:
        yield f"| questions | {_sizes(name)} |"
    yield f"| license | {_license(name)} |"
    yield f"| cite | {_ARXIV.sub(_link, about.citation)} |"
    if about.note:
        yield f"| this copy | {about.note} |"
    if name in SOURCES:
        yield from ("", "| file | records | made from | checksum |", "|---|---|---|---|")
        for source in SOURCES[name]:
            for pinned in source.files:
                made = f"{_records(source)} | {_place(pinned)} | {_sum(pinned)}"
                yield f"| `{source.target}` | {made} |"
    if name == GROUPED:
        yield from ("", f"Names: {', '.join(f'`{n}`' for n in _grouped())}.")


def _grouped() -> list[str]:
    return [name for name in BY_HAND if name.startswith(f"{GROUPED}/")]


def _about(name: str) -> About:
    if name in SHIPPED:
        return SHIPPED[name]
    return SOURCES[name][0].about if name in SOURCES else _by_hand(name)


def _by_hand(name: str) -> About:
    return BY_HAND[_grouped()[0] if name == GROUPED else name].about


def _license(name: str) -> str:
    if name == GROUPED:  # the last words of each name its source set
        return _about(name).licence.partition(" of ")[0] + " of their sets"
    return _about(name).licence


def _way(name: str) -> str:
    if name in SHIPPED:
        return "comes with the program"
    return "`python -m mdagents data download`" if name in SOURCES else "by hand"


def _instructions(name: str) -> str:
    if name in SHIPPED:
        return f"comes with the program: `--dataset {name}`"
    if name in SOURCES:
        return f"`python -m mdagents data download {name}`"
    first = _grouped()[0] if name == GROUPED else name
    steps = BY_HAND[first].instructions.replace("{folder}", f"data/{first}")
    steps = steps.replace("{split}", "test")
    return f"by hand: {'for example ' if name == GROUPED else ''}{steps}"


def _sizes(name: str) -> str:
    if name not in SOURCES:
        return "on the card"
    return ", ".join(f"{_split(source)} {_records(source)}" for source in SOURCES[name])


def _split(source: Source) -> str:
    return Path(source.target).stem


def _records(source: Source) -> str:
    return "counted at the download" if source.records is None else f"{source.records:,}"


def _place(pinned: PinnedFile) -> str:
    is_hub = pinned.host is Host.HUGGING_FACE
    site = "https://huggingface.co/datasets" if is_hub else "https://github.com"
    address = f"{site}/{pinned.repo_id}/tree/{pinned.revision}"
    return f"`{pinned.path_in_repo}` of [{pinned.repo_id}@{pinned.revision[:8]}]({address})"


def _sum(pinned: PinnedFile) -> str:
    return f"`{pinned.sha256[:_SHOWN]}…`" if pinned.sha256 else "as the Hub reports it"


def _link(match: re.Match[str]) -> str:
    return f"[{match[0]}](https://arxiv.org/abs/{match[1]})"


def write(pages: Sequence[Path] | None = None) -> list[Path]:
    """Write the facts into the cards; return those that changed."""
    changed = []
    for page in pages or sorted(FOLDER.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if (new := with_facts(text)) != text:
            page.write_text(new, encoding="utf-8")
            changed.append(page)
    return changed


if __name__ == "__main__":
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    for page in write():
        print(f"{page.relative_to(ROOT)} is changed")
