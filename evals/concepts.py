"""Extraction of the clinical concepts that a text names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple, Protocol

from ahocorasick_rs import AhoCorasick, Implementation, MatchKind

from evals.abbreviations import explained_abbreviations
from evals.normal_form import BREAK, Piece, normal_term, pieces, wrapped
from evals.terminology import TERMS, Terminology, load_terminology
from exaid_core.checks.assertion import REACH, context_before, is_affirmed
from exaid_core.trace.run_records import ConceptExtractorInfo

_NON = "non"  # negates the word behind it: "non-traumatic"


class Concept(NamedTuple):
    """A clinical concept in the form that metrics compare."""

    id: str
    """UMLS CUI if the vocabulary gives one, else `HP:…`, `DOID:…`, `MESH:…` or `local:…`."""
    negated: bool = False
    """Whether the clause negates the concept; False unless the extractor has `negation`."""


class Mention(NamedTuple):
    """A span of text that names a concept."""

    concept: Concept
    start: int
    end: int


class ConceptExtractor(Protocol):
    """Finds concepts in text; equal texts give equal sets in every process."""

    @property
    def info(self) -> ConceptExtractorInfo:
        """Identity of the extractor, for a run log."""
        ...

    def extract(self, text: str) -> frozenset[Concept]:
        """Return the concepts that `text` names."""
        ...


class TermExtractor:
    """Finds the terms of a table by leftmost-longest matching on whole words.

    Case, plural, British spelling, hyphens and Markdown emphasis are ignored, and no term spans
    punctuation. Abbreviations are case-sensitive; one that the text defines,
    `long form (SHORT)`, has the meaning given there.

    Args:
        path: Table of terms.
        negation: Whether concepts that their clause negates, makes conditional or puts in the
            past (`exaid_core.checks.assertion`) differ from the same concepts affirmed.
        stop_concepts: Concept ids to ignore.
        stop_terms: Surface forms to ignore.

    Raises:
        ConfigError: The table cannot be read.
    """

    def __init__(
        self,
        path: Path = TERMS,
        *,
        negation: bool = False,
        stop_concepts: Iterable[str] = (),
        stop_terms: Iterable[str] = (),
    ) -> None:
        self._terminology = load_terminology(path)
        self._negation = negation
        self._stop_concepts = frozenset(stop_concepts)
        self._stop_terms = frozenset(map(normal_term, stop_terms))

    @property
    def info(self) -> ConceptExtractorInfo:
        """Identity of the extractor, for a run log."""
        return extractor_info(self._terminology, negation=self._negation)

    def extract(self, text: str) -> frozenset[Concept]:
        """Return the concepts that `text` names."""
        return frozenset(mention.concept for mention in self.mentions(text))

    def mentions(self, text: str) -> Iterator[Mention]:
        """Yield the mentions of concepts in `text`, in text order."""
        text = text.replace("’", "'")  # as the negation rules expect
        words = list(pieces(text))
        explained = self._explained(text)
        after = 0
        for first, last, id_ in self._terms(words):
            yield from self._single(text, words[after:first], explained)
            yield from self._mention(text, words[first : last + 1], id_)
            after = last + 1
        yield from self._single(text, words[after:], explained)

    def _terms(self, words: list[Piece]) -> Iterator[tuple[int, int, str]]:
        """Yield (first word, last word, concept) of each term.

        Of a term behind `non`, only what its other words name: "non-traumatic brain hemorrhage" is
        a brain hemorrhage.
        """
        wraps = [wrapped((word.form,)) for word in words]
        ends = list(accumulate(map(len, wraps)))
        place_of_start = {
            end - len(wrap): i for i, (end, wrap) in enumerate(zip(ends, wraps, strict=True))
        }
        place_of_end = {end: i for i, end in enumerate(ends)}
        automaton, concepts = self._automaton
        for pattern, start, end in automaton.find_matches_as_indexes("".join(wraps)):
            first, last = place_of_start[start], place_of_end[end]
            if first and words[first - 1].form == _NON:
                inner = self._terms(words[first + 1 : last + 1])
                yield from ((first + 1 + i, first + 1 + j, id_) for i, j, id_ in inner)
            else:
                yield first, last, concepts[pattern]

    def _single(
        self, text: str, words: list[Piece], explained: dict[str, str]
    ) -> Iterator[Mention]:
        """Yield mentions of abbreviations among words that are not part of a term."""
        for at, word in enumerate(words):
            if word.form == BREAK or (at and words[at - 1].form == _NON):
                continue
            for raw in (word.raw, word.raw.removesuffix("s")):
                id_ = explained.get(raw)
                if id_ is None:
                    id_ = self._terminology.abbreviations.get(raw)
                if id_:
                    yield from self._mention(text, [word], id_)
                    break

    def _mention(self, text: str, words: list[Piece], id_: str) -> Iterator[Mention]:
        forms = tuple(word.form for word in words)
        if id_ in self._stop_concepts or forms in self._stop_terms:
            return
        start, end = words[0].start, words[-1].end
        negated = self._negation and not _is_affirmed(
            context_before(text, start), text[end : end + REACH]
        )
        yield Mention(Concept(id_, negated), start, end)

    def _explained(self, text: str) -> dict[str, str]:
        """Return the concept at the end of the long form, by abbreviation; empty if unknown."""
        if "(" not in text:
            return {}
        found: dict[str, str] = {}
        for short, long in explained_abbreviations(text):
            words = list(pieces(long))
            terms = list(self._terms(words))
            known = terms and terms[-1][1] == len(words) - 1
            found.setdefault(short, terms[-1][2] if known else "")
        return found

    @cached_property
    def _automaton(self) -> tuple[AhoCorasick, list[str]]:
        terms = self._terminology.terms
        automaton = AhoCorasick(
            (wrapped(form.split(" ")) for form in terms),
            matchkind=MatchKind.LeftmostLongest,
            implementation=Implementation.ContiguousNFA,
        )
        return automaton, list(terms.values())


@lru_cache(maxsize=100_000)
def _is_affirmed(before: str, after: str) -> bool:
    """Return `is_affirmed`, cached because metric windows repeat the same words many times."""
    return is_affirmed(before + after, len(before), len(before))


def extractor_info(terminology: Terminology, *, negation: bool = False) -> ConceptExtractorInfo:
    """Return the identity of a `TermExtractor`."""
    return ConceptExtractorInfo(
        name="terms+negation" if negation else "terms",
        version="1",
        terminology_hash=terminology.hash,
        linker_resolve_abbreviations=True,
        min_entity_len=3,
        concept_representation="cui",
        cui_normalization="uppercase",
    )
