"""Choice of the concept extractor used by metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from evals.concepts import ConceptExtractor, TermExtractor
from evals.stoplists import Stoplists

EXTRACTORS = ("terms", "scispacy")
NO_STOPLISTS = Stoplists()


@dataclass(frozen=True)
class Extractor:
    """A specification from which each process builds its own concept extractor.

    Concept extractors themselves are not sent between processes.
    """

    name: str = "terms"
    """Name of the extractor, from `EXTRACTORS`."""
    negation: bool = False
    """Whether a negated concept differs from the same concept affirmed."""
    stoplists: Stoplists = NO_STOPLISTS
    """Concepts and terms to ignore."""

    def make(self) -> ConceptExtractor:
        """Return the extractor, cached per process.

        Raises:
            ConfigError: The extractor is not installed or does not support an option.
        """
        return _make(self)


@lru_cache(maxsize=1)
def _make(choice: Extractor) -> ConceptExtractor:
    extractor: Callable[..., ConceptExtractor] = TermExtractor
    if choice.name == "scispacy":
        from evals.scispacy_extractor import ScispacyExtractor

        extractor = ScispacyExtractor
    return extractor(
        negation=choice.negation,
        stop_concepts=choice.stoplists.concepts,
        stop_terms=choice.stoplists.terms,
    )
