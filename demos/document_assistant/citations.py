"""Finds the lines of documents that support the sentences of an answer, without a model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from demos.document_assistant.figures import figures
from demos.document_assistant.library import Document
from demos.document_assistant.schemas import Citation
from exaid_core.tokenizer import sentence_ends, word_spans

_LEAST = 1 / 3
"""Share of a sentence, by weight, that must be in a line and its context for the line to count."""
_FIGURE = 2.0
"""Weight of a number relative to a word that is as rare."""
_CONTEXT = 0.5
"""Weight of a word that is not in the line itself, but next to it, in its heading or in the title.

A row of a table says what it is about only together with them.
"""

_MARKS = ".,;:!?()[]{}\"'*#|-–—“”‘’„«»。、，．；：！？（）「」"
"""Marks that are part of no word."""

_Features = frozenset[str | Decimal]


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a document."""

    document_id: str
    page: int | None
    number: int
    features: _Features
    context: _Features
    """Features of the line's neighbors, of its heading and of the document's title."""


def cited(text: str, documents: Sequence[Document]) -> list[Citation]:
    """Return the best line for each sentence of a text that a line supports.

    Words and numbers count by their rarity in the documents, so `the` counts little and a name
    much. A paraphrase in other words has no line; a line that shares the words of a false sentence
    is found for it. The reader has to compare the two.

    Args:
        text: Answer of a model.
        documents: Documents that were given to the model.
    """
    lines = [line for document in documents for line in _lines(document)]
    counts = Counter(feature for line in lines for feature in line.features)
    weights = {feature: math.log(1 + len(lines) / count) for feature, count in counts.items()}
    unknown = math.log(2 + len(lines))

    def weight(features: _Features) -> float:
        return sum(
            weights.get(one, unknown) * (_FIGURE if isinstance(one, Decimal) else 1)
            for one in features
        )

    def score(line: _Line) -> float:
        own = wanted & line.features
        return weight(own) + _CONTEXT * weight(wanted & line.context - own)

    found = []
    for sentence in _sentences(text):
        wanted = _features(sentence)
        best = max(lines, key=score, default=None)
        if best and best.features & wanted and score(best) >= _LEAST * weight(wanted):
            found.append(
                Citation(
                    sentence=sentence,
                    document_id=best.document_id,
                    page=best.page,
                    line=best.number,
                )
            )
    return found


def with_places(text: str, citations: Sequence[Citation]) -> str:
    """Return a text with the place of its citation after each sentence."""
    places = {one.sentence: one.place for one in citations}
    lines = []
    for line in text.split("\n"):
        sentences = (f"{one} [{places[one]}]" if one in places else one for one in _sentences(line))
        lines.append(" ".join(sentences))
    return "\n".join(lines)


def _sentences(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        start = 0
        for end in sentence_ends(line):
            if sentence := line[start:end].strip():
                yield sentence
            start = end


def _lines(document: Document) -> Iterator[_Line]:
    pages = document.text.split("\f")
    for page, text in enumerate(pages, start=1):
        lines = text.split("\n")
        features = [_features(line) for line in lines]
        heading: _Features = frozenset()
        for at, line in enumerate(lines):
            if line.startswith("#"):
                heading = features[at]
            near = features[max(0, at - 1) : at + 2]
            context = _features(document.title).union(heading, *near)
            number = page if len(pages) > 1 else None
            yield _Line(document.id, number, at + 1, features[at], context)


def _features(text: str) -> _Features:
    """Return the words of a text in lower case, and its numbers by their value."""
    folded = text.casefold()
    words = (folded[start:end].strip(_MARKS) for start, end in word_spans(folded))
    return frozenset(word for word in words if word and not word[0].isdigit()) | figures(text)
