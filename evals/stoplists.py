"""Find, write and read stoplists: concepts and terms in nearly every trace, hence uninformative.

Stoplists are three files: `stop_entities.txt`, `stop_cuis.txt`, and `stoplist_df_report.json` with
the document frequencies from which both were made.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from evals.concepts import TermExtractor
from evals.files import write_whole
from exaid_core.trace.records import hash_of
from exaid_core.trace.run_records import StoplistsProvenance
from mdagents_llm.errors import ConfigError

THRESHOLD = 0.9
"""Share of documents at or above which a concept is put on the stoplist."""

_ENTITIES, _CUIS, _REPORT = "stop_entities.txt", "stop_cuis.txt", "stoplist_df_report.json"


@dataclass(frozen=True, slots=True)
class Stoplists:
    """The concepts and terms that metrics ignore."""

    terms: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    provenance: StoplistsProvenance = field(default_factory=StoplistsProvenance)


def write_stoplists(
    folder: Path,
    documents: Iterable[str],
    extractor: TermExtractor,
    *,
    generated_at: str,
    threshold: float = THRESHOLD,
) -> Stoplists:
    """Find the concepts in at least `threshold` of the documents, and write the three files.

    Args:
        folder: Folder of the files.
        documents: Texts of traces.
        extractor: Extractor without stoplists.
        generated_at: ISO 8601 time for the report.
        threshold: Minimum share of the documents.
    """
    concepts: Counter[str] = Counter()
    terms: Counter[str] = Counter()
    count = 0
    for text in documents:
        count += 1
        mentions = list(extractor.mentions(text))
        concepts.update({mention.concept.id for mention in mentions})
        terms.update({text[mention.start : mention.end].lower() for mention in mentions})
    report = {
        "documents": count,
        "threshold": threshold,
        "generated_at": generated_at,
        "concepts": _frequencies(concepts, count),
        "entities": _frequencies(terms, count),
    }
    stop_concepts = _frequent(concepts, count, threshold)
    stop_terms = _frequent(terms, count, threshold)
    write_whole(folder / _CUIS, "".join(f"{line}\n" for line in stop_concepts).encode())
    write_whole(folder / _ENTITIES, "".join(f"{line}\n" for line in stop_terms).encode())
    text = json.dumps(report, indent=1, sort_keys=True, ensure_ascii=False)
    write_whole(folder / _REPORT, f"{text}\n".encode())
    return load_stoplists(folder)


def load_stoplists(folder: Path) -> Stoplists:
    """Read the files of `write_stoplists`.

    Raises:
        ConfigError: A file is missing or cannot be read.
    """
    try:
        contents = {name: (folder / name).read_bytes() for name in (_ENTITIES, _CUIS, _REPORT)}
        terms, concepts = (contents[name].decode().splitlines() for name in (_ENTITIES, _CUIS))
        hashes = {name: hash_of(content) for name, content in contents.items()}
        provenance = StoplistsProvenance(
            stop_entities_hash=hashes[_ENTITIES],
            stop_cuis_hash=hashes[_CUIS],
            stoplist_df_report_hash=hashes[_REPORT],
            stoplists_generated_at=json.loads(contents[_REPORT])["generated_at"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        what = " ".join(str(error).split())
        raise ConfigError(f"the stoplists in {folder} cannot be read: {what}") from error
    return Stoplists(tuple(terms), tuple(concepts), provenance)


def _frequencies(counts: Counter[str], documents: int) -> dict[str, float]:
    return {name: round(n / documents, 4) for name, n in sorted(counts.items())}


def _frequent(counts: Counter[str], documents: int, threshold: float) -> list[str]:
    return sorted(name for name, n in counts.items() if n >= threshold * documents)
