"""The concept extractor's terminology; `vocabulary/sources.tsv` lists its sources."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from exaid_core.trace.records import hash_of
from mdagents_llm.errors import ConfigError

FOLDER = Path(__file__).with_name("vocabulary")
TERMS = FOLDER / "terms.tsv.gz"

_ABBREVIATION_CHARS = 6


@dataclass(frozen=True, slots=True)
class Terminology:
    """Terms and abbreviations, each mapped to the concept that it names."""

    terms: Mapping[str, str]
    """Concept by the normal forms of a term's words, joined with spaces."""
    abbreviations: Mapping[str, str]
    """Concept by abbreviation, case-sensitive."""
    hash: str
    """SHA-256 of the file, prefixed with `sha256:`."""


def is_abbreviation(name: str) -> bool:
    """Return whether a name is matched case-sensitively, such as `MRI`, `HbA1c` or `pCO2`.

    Such a name is one short word with a capital letter; with four or more characters, a capital
    other than the first is required.
    """
    inner = name[1:]
    return (
        2 <= len(name) <= _ABBREVIATION_CHARS
        and name.isalnum()
        and any(char.isupper() for char in name)
        and (any(char.isupper() for char in inner) or len(name) <= 3)
    )


def load_terminology(path: Path = TERMS) -> Terminology:
    """Read a table of concept, term, source and normal form (see scripts/build_terminology.py).

    Raises:
        ConfigError: The file cannot be read or is not a terminology table.
    """
    terms: dict[str, str] = {}
    abbreviations: dict[str, str] = {}
    try:
        packed = path.read_bytes()
        lines = gzip.decompress(packed).decode().splitlines()
        for line in lines[1:]:
            concept, term, _, form = line.split("\t")
            if form:
                terms[form] = concept
            else:
                abbreviations[term] = concept
    except (OSError, EOFError, ValueError) as error:
        raise ConfigError(f"the terminology {path} cannot be read: {error}") from error
    return Terminology(terms, abbreviations, hash_of(packed))
