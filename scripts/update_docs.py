"""Write the generated parts of docs/reference: flags, fields, public names and cards of data sets.

Each part stands below a marker, which names its source. A test fails if a page differs from what
this program writes.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import html
import importlib
import inspect
import itertools
import os
import re
import subprocess
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import BaseModel

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
PAGE = REFERENCE / "cli.md"
PAGES = (PAGE, REFERENCE / "fields.md", REFERENCE / "python-api.md")
"""The pages with generated parts."""

_PART = re.compile(
    r"(?P<marker><!-- (?P<kind>flags|fields|names) of (?P<source>[^:>]+?) -->\n)"
    r".*?(?P<end><!-- end -->)",
    re.DOTALL,
)
_WIDE = 4000
"""Columns at which no line of a help text wraps."""


def updated(page: str) -> str:
    """Return the page with its generated parts as they should be."""
    makers: dict[str, Callable[[str], str]] = {
        "flags": flags_of,
        "fields": fields_of,
        "names": names_of,
    }

    def part(match: re.Match[str]) -> str:
        made = makers[match["kind"]](match["source"]).strip()
        return f"{match['marker']}\n{made}\n\n{match['end']}"

    return _PART.sub(part, page)


def help_of(program: str) -> str:
    """Return the help of `PROGRAM.py` or of `mdagents …`, without wrapped lines."""
    command = program.split()
    if command[0] == "mdagents":
        command = ["-m", "mdagents", *command[1:]]
    done = subprocess.run(
        [sys.executable, *command, "--help"],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": str(_WIDE)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def flags_of(program: str) -> str:
    """Return a program's help: usage, a table for each group of flags, the closing words."""
    usage, *parts = re.split(r"\n\n+", help_of(program))
    usage = textwrap.fill(
        usage.removeprefix("usage: "), 80, subsequent_indent="    ", break_on_hyphens=False
    )
    written = [f"```text\n{usage}\n```"]
    words = ""  # positional arguments share the table of the options
    for part in parts:
        title, colon, body = part.partition(":\n  ")
        if not colon:
            written.append(_text(part))
        elif title == "positional arguments":
            words = f"  {body}\n"
        elif table := _flag_table(f"{words if title == 'options' else ''}  {body}"):
            written += [table] if title == "options" else [f"### {title}", table]
    return "\n\n".join(written)


def _flag_table(body: str) -> str:
    rows = []
    for match in re.finditer(r"^  (\S.*?)(?:  +|\n    +)(\S.*)$", body, re.MULTILINE):
        flag, meaning = match.groups()
        if flag.endswith("--help") or flag == "--version":
            continue
        default = re.search(r" \[([^\[\]]+)\]$", meaning)
        if default:
            meaning = meaning[: default.start()]
        values = re.search(r" \{([^}]*)\}$", flag)
        if values:
            flag = flag[: values.start()]
            listed = ", ".join(f"`{value}`" for value in values[1].split(","))
            meaning = f"{meaning}: {listed}" if ":" not in meaning else f"{meaning} ({listed})"
        rows.append(
            f"| {_code(flag)} | {_text(meaning)} | {_value(default[1]) if default else ''} |"
        )
    return "\n".join(["| flag | meaning | default |", "|---|---|---|", *rows]) if rows else ""


def _code(text: str) -> str:
    if "|" in text:
        return f"<code>{_escaped(text)}</code>"
    return f"`{text}`"


def _value(text: str) -> str:
    """Return a default as Markdown: a value as code, words as words."""
    return f"`{text}`" if re.fullmatch(r"[\w./{}-]+", text) and text not in _WORDS else _text(text)


_WORDS = ("all", "never", "none", "newest")
"""Defaults that say what happens without a value."""


def _text(text: str) -> str:
    """Return words of a help text as Markdown, with its flags and names of files as code."""
    files = r"(?:[\w{}-]+/)*[\w{}-]+\.(?:py|md|jsonl|json|csv|parquet|yaml)"
    text = re.sub(rf"(?<![\w`./-])(--[a-z][a-z-]+|{files})(?![\w`])", r"`\1`", text)
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else _escaped(part) for part in parts)


def _escaped(text: str) -> str:
    return html.escape(text, quote=False).replace("|", "&#124;").replace("*", "\\*")


def fields_of(source: str) -> str:
    """Return a table of the fields of a class, and of the classes in its fields.

    Args:
        source: Module and class: `mdagents.records.sample.SampleRecord`.
    """
    module, _, name = source.rpartition(".")
    waiting, seen, written = [getattr(importlib.import_module(module), name)], set(), []
    while waiting:
        kind = waiting.pop(0)
        if kind in seen:
            continue
        seen.add(kind)
        if kind.__name__ != name:
            written.append(f"**{_words(kind.__name__)}.** {_summary(kind)}")
        rows = ["| field | type | meaning |", "|---|---|---|"]
        documented = _documented(kind)
        for field, annotation in _annotations(kind):
            said = " ".join(documented.get(field, "").split()).replace(" -> ", " → ")
            said = re.sub(r"\bNone\b", "null", said)
            rows.append(f"| `{field}` | {_type(annotation)} | {_text(said)} |")
            waiting += [one for one in _classes(annotation) if one not in seen]
        written.append("\n".join(rows))
    return "\n\n".join(written)


def _annotations(kind: type) -> Iterator[tuple[str, Any]]:
    hints = typing.get_type_hints(kind, include_extras=False)
    if issubclass(kind, BaseModel):
        yield from ((name, hints[name]) for name in kind.model_fields)
    elif dataclasses.is_dataclass(kind):
        yield from ((field.name, hints[field.name]) for field in dataclasses.fields(kind))


def _classes(annotation: Any) -> list[type]:
    """Return the models and dataclasses that a type is made of."""
    if isinstance(annotation, type) and not typing.get_args(annotation):
        is_record = issubclass(annotation, BaseModel) or dataclasses.is_dataclass(annotation)
        return [annotation] if is_record else []
    return [found for part in typing.get_args(annotation) for found in _classes(part)]


_TYPES: dict[Any, str] = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "true or false",
    type(None): "null",
    object: "any",
    Path: "path",
    dict: "object",
    list: "list",
}
"""Type → its name in the words of JSON."""


def _type(annotation: Any) -> str:
    """Return a type in the words of JSON."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation in _TYPES:
        return _TYPES[annotation]
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(_type, parts)))
    if origin is typing.Literal:
        return " or ".join(f"`{part}`" for part in parts)
    if origin is typing.Annotated:
        return _type(parts[0])
    if origin in (list, tuple, set, frozenset) or _is_collection(origin):
        many = [part for part in parts if part is not ...]
        if origin is tuple and ... not in parts:
            return f"list of {len(many)}: {', '.join(map(_type, many))}"
        return f"list of {_type(many[0])}" if many else "list"
    if origin is dict or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return f"object: {_type(parts[0])} → {_type(parts[1])}"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " or ".join(f"`{member.value}`" for member in annotation)
    if isinstance(annotation, type):
        return _words(annotation.__name__)
    return _escaped(str(annotation))


def _is_collection(origin: Any) -> bool:
    if not isinstance(origin, type) or issubclass(origin, Mapping):
        return False
    return issubclass(origin, Collection)


def _words(name: str) -> str:
    """Return the name of a class in words: `token counts` for `TokenCounts`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.removesuffix("Record").lstrip("_")).lower()


def _summary(kind: type) -> str:
    return _text((inspect.getdoc(kind) or "").partition("\n\n")[0].replace("\n", " "))


def _documented(kind: type) -> dict[str, str]:
    """Return the docstrings below the fields of a class and of its bases: field → docstring."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.partition(".")[0] not in ("mdagents", "mdagents_llm", "exaid_core"):
            continue
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        body = getattr(node, "body", [])
        for field, doc in itertools.pairwise(body):
            match field, doc:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(said))),
                ):
                    found[name] = said
    return found


def names_of(package: str) -> str:
    """Return a table of the public names of a package, with the beginnings of their docstrings."""
    module = importlib.import_module(package)
    names = sorted(module.__all__, key=str.lower)
    rows = [f"| `{name}` | {_summary(getattr(module, name))} |" for name in names]
    return "\n".join(["| name | what it is |", "|---|---|", *rows])


def main() -> None:
    """Bring all pages up to date."""
    for page in PAGES:
        page.write_text(updated(page.read_text(encoding="utf-8")), encoding="utf-8")
        print(f"{page.relative_to(ROOT)} is up to date")
    from scripts import data_set_cards

    data_set_cards.write()
    print(f"{data_set_cards.FOLDER.relative_to(ROOT)} is up to date")


if __name__ == "__main__":
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    sys.path.insert(0, str(ROOT))
    main()
