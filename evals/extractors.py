"""Which concept extractor metrics are computed with."""

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
    """A concept extractor that is made where it is used: it does not travel between processes."""

    name: str = "terms"
    """One of `EXTRACTORS`."""
    negation: bool = False
    """Whether a concept that its clause denies is another one."""
    stoplists: Stoplists = NO_STOPLISTS
    """What does not count."""

    def make(self) -> ConceptExtractor:
        """Return the extractor, made once in a process.

        Raises:
            ConfigError: It is not installed, or does not support an option.
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
