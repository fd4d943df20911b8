"""Concept extraction by scispaCy and its UMLS linker, configured as in the published evaluation.

Requires `PACKAGES`, `MODEL` and the linker's files, about 1 GB, from scispaCy's site:
https://github.com/allenai/scispacy#installation. A missing part raises an error immediately: an
extractor that found nothing because its model is missing would make every metric look like a
result.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from evals.concepts import Concept
from exaid_core.trace.run_records import ConceptExtractorInfo
from mdagents_llm.errors import ConfigError

PACKAGES = ("scispacy==0.5.4", "spacy==3.7.4")
"""Package versions of the published evaluation; its numbers depend on them."""
MODEL = "en_core_sci_sm"
LINKER = "umls"
KB_VERSION = "2023AB"
MAX_ENTITIES_PER_MENTION = 10
THRESHOLD = 0.7
MAX_K = 10
MIN_ENTITY_LEN = 3


class ScispacyExtractor:
    """Finds UMLS concepts.

    Args:
        negation: Unsupported; True raises ConfigError.
        stop_concepts: CUIs to ignore.
        stop_terms: Surface forms to ignore.

    Raises:
        ConfigError: scispaCy, its model or the linker's files are missing, or `negation` is True.
    """

    def __init__(
        self,
        *,
        negation: bool = False,
        stop_concepts: Iterable[str] = (),
        stop_terms: Iterable[str] = (),
    ) -> None:
        if negation:
            raise ConfigError("--negation works with --extractor terms only")
        self._stop_concepts = frozenset(stop_concepts)
        self._stop_terms = frozenset(term.lower() for term in stop_terms)
        try:
            spacy = import_module("spacy")
            import_module("scispacy.abbreviation")
            import_module("scispacy.linking")
            self._versions = version("spacy"), version("scispacy")
        except (ImportError, PackageNotFoundError) as error:
            from mdagents_llm.interpreter import install

            raise ConfigError(
                f"scispaCy is not installed ({error}): {install(*PACKAGES)}"
            ) from error
        try:
            self._pipeline: Any = spacy.load(MODEL)
            self._pipeline.add_pipe("abbreviation_detector")
            self._pipeline.add_pipe(
                "scispacy_linker",
                config={
                    "resolve_abbreviations": True,
                    "linker_name": LINKER,
                    "max_entities_per_mention": MAX_ENTITIES_PER_MENTION,
                    "threshold": THRESHOLD,
                    "k": MAX_K,
                },
            )
        except Exception as error:
            what = " ".join(str(error).split())[:200]
            raise ConfigError(
                f"scispaCy's {MODEL} or {LINKER} linker is not there: {what}"
            ) from error

    @property
    def info(self) -> ConceptExtractorInfo:
        """Identity of the extractor, for a run log."""
        spacy_version, scispacy_version = self._versions
        return ConceptExtractorInfo(
            name="scispacy",
            version="1",
            terminology_hash=None,
            spacy_version=spacy_version,
            scispacy_version=scispacy_version,
            scispacy_model=MODEL,
            linker_name=LINKER,
            linker_kb_version=KB_VERSION,
            linker_resolve_abbreviations=True,
            linker_max_entities_per_mention=MAX_ENTITIES_PER_MENTION,
            linker_threshold=THRESHOLD,
            cui_score_threshold=THRESHOLD,
            max_k=MAX_K,
            min_entity_len=MIN_ENTITY_LEN,
            concept_representation="cui",
            cui_normalization="uppercase",
        )

    def extract(self, text: str) -> frozenset[Concept]:
        """Return the best-ranked concept of each mention in `text`."""
        found = set()
        for entity in self._pipeline(text).ents:
            surface = entity.text.strip().lower()
            if len(surface) < MIN_ENTITY_LEN or surface in self._stop_terms:
                continue
            ranked = [(cui.upper(), score) for cui, score in entity._.kb_ents if score >= THRESHOLD]
            if ranked and ranked[0][0] not in self._stop_concepts:
                found.add(Concept(ranked[0][0]))
        return frozenset(found)
