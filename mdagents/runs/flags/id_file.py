"""Files of question ids, for `--sample-id @FILE`: one id per line."""

from __future__ import annotations

from pathlib import Path

from mdagents_llm.errors import ConfigError
from mdagents_llm.files.regular_file import read_regular


def ids_in_file(path: Path) -> dict[str, str]:
    """Return the ids of a file, each with its place for error messages: `ids.txt line 3`.

    Empty lines and lines that begin with `#` are skipped; an id given twice counts once.

    Raises:
        ConfigError: The file cannot be read as text, or holds no id, or a line is not an id.
    """
    from mdagents.datasets.question_records import LONGEST_ID  # not needed for the help

    try:
        lines = read_regular(path).decode("utf-8-sig").splitlines()
    except OSError as error:
        raise ConfigError(f"--sample-id @{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"--sample-id @{path} is not text in UTF-8") from None
    except ValueError as error:  # a NUL in the path
        raise ConfigError(f"--sample-id names no file: {error}") from None
    places: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        id_, place = line.strip(), f"{path} line {number}"
        if not id_ or id_.startswith("#"):
            continue
        if len(id_) > LONGEST_ID or not id_.isprintable():
            raise ConfigError(
                f"--sample-id: {place} must be one id of at most {LONGEST_ID} printable characters"
            )
        places.setdefault(id_, place)
    if not places:
        raise ConfigError(f"--sample-id @{path} holds no id; write one per line")
    return places
