"""Check files of records: each record against its schema, and records against each other.

Memory does not grow with the file: for a trace, only one hash per open turn is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import jsonschema_rs

from evals.consistency import CHECKS, KINDS, Checks, Content
from evals.run_logs import is_single_record, parse_version, read_run_log
from evals.schema_files import SCHEMAS, load_schema
from exaid_core.trace.files import RecordError, read_records
from mdagents_llm.errors import ConfigError
from mdagents_llm.text import printable

_CHARS_OF_A_PROBLEM = 200
_FORMAT_OF_KIND = {kind: format_ for format_, kinds in KINDS.items() for kind in kinds}


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in a file."""

    path: Path
    line: int
    """Line number, starting at 1."""
    field: str
    """Path of the field, such as `llm_usage.model_id`; empty for the record as a whole."""
    what: str
    is_note: bool = False
    """Whether readers accept the problem, so that the file still counts as valid."""

    def __str__(self) -> str:
        place = f"{self.path}: note: " if self.is_note else f"{self.path} line {self.line}: "
        text = f"{self.field}: {self.what}" if self.field else self.what
        return printable(place + text)


def validate_file(path: Path, schema: str = "") -> Iterator[Problem]:
    """Yield the problems of a file in the order in which they are found.

    Args:
        path: `.jsonl` or `.jsonl.gz` file, or a `.json` file with a single record.
        schema: Name or path of the record schema; if empty, the one that the first record names.

    Raises:
        ConfigError: The schema does not exist or is invalid.
    """
    validator = _validator(schema) if schema else None
    try:
        records = read_records(path)
        line, first = next(records, (1, None))
        if first is None:
            yield Problem(path, line, "", "the file holds no record")
            return
        if is_single_record(first):
            read_run_log(path)
            return
        format_, problem = _format(first)
        if validator is None:
            if problem:
                yield Problem(path, line, *problem)
                return
            if not _is_older(format_, first):
                validator = _validator(format_)
        is_readable = validator is None or validator.is_valid(first)
        checks = CHECKS.get(format_, Checks)() if is_readable else Checks()
        for number, content in chain([(line, first)], records):
            checks.line = number
            found = list(_schema_problems(validator, content))
            if found:
                checks.unreadable()
            else:
                found = _checked(checks, content)
            yield from (Problem(path, number, *problem) for problem in found)
        yield from (Problem(path, *problem) for problem in checks.end())
        yield from (Problem(path, checks.line, "", note, is_note=True) for note in checks.notes())
    except RecordError as error:
        yield Problem(path, error.line, "", error.what)


def _checked(checks: Checks, content: Content) -> list[tuple[str, str]]:
    try:
        return list(checks.record(content))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        # Only reached if no schema rejected the record: an older run log, or a user's own schema.
        return [("", f"a field is missing or of another type ({type(error).__name__}: {error})")]


def _validator(schema: str) -> jsonschema_rs.Validator:
    try:
        return jsonschema_rs.validator_for(load_schema(schema))
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        what = str(error).partition("\n")[0]
        raise ConfigError(f"{schema} is not a JSON schema: {what}") from error


def _format(content: Content) -> tuple[str, tuple[str, str] | None]:
    """Return the format that a first record names, and any problem with the format or version."""
    kind = content.get("record_type")
    name = _FORMAT_OF_KIND.get(kind) if isinstance(kind, str) else None
    if name is None and content.get("schema_name") == "exaid.metrics":
        name = "exaid.metrics"
    if name is None:
        return "", ("record_type", f"{kind!r} begins none of {', '.join(SCHEMAS)}")
    version = content.get("schema_version", SCHEMAS[name][0])
    if version != SCHEMAS[name][0] and not _is_older(name, content):
        what = f"{name} {version!r} is not known, only {SCHEMAS[name][0]}"
        return name, ("schema_version", what)
    return name, None


def _is_older(name: str, content: Content) -> bool:
    """Return whether a record is from exaid.run 1.3 or 1.4, which lacks some current fields."""
    version = parse_version(content.get("schema_version", ""))
    return name == "exaid.run" and (1, 3) <= version < (1, 5)


def _schema_problems(
    validator: jsonschema_rs.Validator | None, content: Content
) -> Iterator[tuple[str, str]]:
    if validator is None or validator.is_valid(content):
        return
    for error in validator.iter_errors(content):
        yield from _told(error)


def _told(error: jsonschema_rs.ValidationError) -> Iterator[tuple[str, str]]:
    """Yield the errors of the record's own branch rather than of the whole union."""
    branches = getattr(error.kind, "context", None)
    if branches:
        meant = [branch for branch in branches if not any(map(_is_of_another_kind, branch))]
        for branch in meant[:1]:
            for inner in branch:
                yield from _told(inner)
        if meant:
            return
        yield _path(error), "record_type is none of this format"
        return
    instance = json.dumps(error.instance, ensure_ascii=False)
    message = (
        error.message.replace(instance, _short(instance)) if len(instance) > 60 else error.message
    )
    yield _path(error), message[:_CHARS_OF_A_PROBLEM]


def _is_of_another_kind(error: jsonschema_rs.ValidationError) -> bool:
    """Return whether an error only says that the record kind differs or a value is not null."""
    place, keyword = list(error.instance_path), list(error.schema_path)[-1]
    if keyword == "const":
        return place in (["record_type"], ["metrics_type"])
    if keyword == "required":
        return not place and '"record_type"' in error.message
    return keyword == "type" and error.message.endswith('"null"')


def _path(error: jsonschema_rs.ValidationError) -> str:
    return ".".join(map(str, error.instance_path))


def _short(text: str) -> str:
    return text[:40] + "…"
