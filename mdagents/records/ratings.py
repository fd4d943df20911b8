"""Ratings of answers and summaries by clinicians: `ratings.jsonl` in the folder of a run."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from mdagents.datasets.record_lines import table_rows
from mdagents.records.jsonl import whole_lines
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.json_text import compact_json, parse_json
from mdagents_llm.files.spreadsheet import text_cell, text_in
from mdagents_llm.text import clean, one_line
from mdagents_llm.validation import first_problem

RATINGS = "ratings.jsonl"
ASKED = {
    "faithful": "Is it faithful to what was said?",
    "complete": "Is it complete?",
    "useful": "Is it useful for your decision?",
    "harmful": "Could it harm a patient?",
    "would_act": "Would you act on it?",
}
"""Field of a rating -> question to the rater. 1 means not at all, 5 means fully."""
LONGEST_REMARK = 1000
_LONGEST_NAME = 60
_TEXTS = ("rater", "remark", "case_id")
"""Fields of free text."""


def _not_empty(text: str) -> str:
    if not (text := unicodedata.normalize("NFC", one_line(text))):
        raise ValueError("a rater needs a name or a pseudonym")
    return text


Score = Annotated[int, Field(ge=1, le=5)]


class Rating(BaseModel):
    """One rating of one item by one rater; the latest of a rater and an item counts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal["1.0.0"] = "1.0.0"
    """Version of this form."""
    at: Annotated[str, Field(max_length=40)]
    """Time of the rating, in ISO 8601 UTC."""
    rater: Annotated[str, Field(max_length=_LONGEST_NAME), AfterValidator(_not_empty)]
    """Name or pseudonym of the rater."""
    case_id: Annotated[str, Field(min_length=1, max_length=300)]
    """Case id of the question."""
    item: Annotated[str, Field(pattern=r"^(answer|summary-[1-9][0-9]{0,5})$")]
    """`answer`, or the number of a summary from 1, such as `summary-2`."""
    faithful: Score
    complete: Score
    useful: Score
    harmful: Score
    would_act: Score
    remark: Annotated[str, Field(max_length=LONGEST_REMARK), AfterValidator(clean)] = ""
    """Remark of the rater."""

    @property
    def key(self) -> tuple[str, str, str]:
        """(rater, case id, item), of which only the latest rating counts."""
        return self.rater, self.case_id, self.item

    @property
    def summary(self) -> int:
        """Number of the rated summary, from 1; 0 for an answer."""
        return int(self.item.partition("-")[2] or 0)

    @property
    def time(self) -> datetime | None:
        """`at`, with any UTC offset and UTC without one; None if it cannot be read."""
        try:
            time = datetime.fromisoformat(self.at)
        except ValueError:  # a spreadsheet writes times in other forms
            return None
        return time if time.tzinfo else time.replace(tzinfo=UTC)

    def is_later_than(self, other: Rating) -> bool:
        """Return whether this rating counts beside an earlier line on the same item.

        An unreadable time is no earlier.
        """
        mine, others = self.time, other.time
        return self != other and (mine is None or others is None or mine >= others)


FIELDS = tuple(Rating.model_fields)
_REQUIRED = [name for name, field in Rating.model_fields.items() if field.is_required()]


def add_ratings(folder: Path, ratings: Iterable[Rating]) -> None:
    """Append ratings to those of a run. They survive a kill and a power failure.

    Several processes may do so at once.

    Raises:
        ConfigError: The file cannot be written.
    """
    # Both load asyncio, which reading needs as little as scoring does.
    from filelock import FileLock

    from mdagents.records.line_log import LineLog

    try:
        with FileLock(folder / f".{RATINGS}.lock", timeout=30):
            log = LineLog(folder / RATINGS, syncs=True)
            try:
                for rating in ratings:
                    log.append(compact_json(rating.model_dump()))
            finally:
                log.close()
    except OSError as error:  # a lock that is held for too long is one
        raise ConfigError(
            f"cannot write {folder / RATINGS}: {error.strerror or 'it is locked'}"
        ) from error


def read_ratings(folder: Path) -> list[Rating]:
    """Return the ratings of a run that count, in the order of their first rating.

    Raises:
        ConfigError: The file cannot be read, or a line is damaged.
    """
    path = folder / RATINGS
    latest: dict[tuple[str, str, str], Rating] = {}
    try:
        for number, _, line in whole_lines(path):
            rating = _validated(parse_json(line), f"{path} line {number}")
            known = latest.get(rating.key)
            if known is None or rating.is_later_than(known):
                latest[rating.key] = rating
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    return list(latest.values())


def write_csv(ratings: Sequence[Rating]) -> str:
    """Return ratings as CSV. A quote mark precedes text that a spreadsheet would run."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, FIELDS)
    writer.writeheader()
    for rating in ratings:
        told = rating.model_dump()
        writer.writerow(told | {name: text_cell(told[name]) for name in _TEXTS})
    return file.getvalue()


def read_csv(path: Path) -> list[Rating]:
    """Return the ratings of a CSV file in the form of `write_csv`, as spreadsheets save it.

    Raises:
        ConfigError: The file cannot be read, or a line is no rating.
    """
    found = []
    for number, row in table_rows(path, _REQUIRED):
        if not any(map(str.strip, row.values())):
            continue
        where = f"{path} line {number}"
        rating = _validated({**row, **{n: text_in(row.get(n, "")) for n in _TEXTS}}, where)
        if rating.time is None:
            raise ConfigError(f"{where}: at is {rating.at!r}: write it as 2026-03-01T10:00:00Z")
        found.append(rating)
    return found


def _validated(content: object, where: str) -> Rating:
    try:
        return Rating.model_validate(content)
    except ValidationError as error:
        raise ConfigError(f"{where} is not a valid rating: {first_problem(error)}") from error
