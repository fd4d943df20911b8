"""Where a phrase of a summary comes from: the sentence of a turn that it was made from.

The words of a phrase are looked for in the sentences of the turns; a rare word counts more. A
phrase leads nowhere rather than to a sentence that has little of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from math import log
from types import MappingProxyType
from typing import Protocol

from exaid_core.alerts.critical_alerts import find_alerts
from exaid_core.cues.files import normal
from exaid_core.dissent import named_options, stated_answer
from exaid_core.drugs import drugs
from exaid_core.quantities import plain
from exaid_core.schema.agent_summary import LIMITS, PLACEHOLDER, AgentSummary
from exaid_core.wording import Wording, is_short, without_article
from exaid_core.words import UNSPACED, sentence_ends

_ENOUGH = 0.5
"""Share of the weight of a phrase's words that its sentence must have more than."""
_ENOUGH_OF_NAMED = 0.4
"""The same for the turns of an agent that is named beside the phrase."""
_ENOUGH_EARLIER = 0.7
"""The same for turns that the summary was not made from, which are many."""
_ALIKE = 4
"""Fewest characters by which two words begin alike, if they are not the same."""
_LONG = 7
"""Characters by which they are surely forms of one word: `diagnosis`, `diagnostic`."""
_LONGEST_ENDING = 3
"""Characters by which forms of a short word differ: `test`, `testing`; not `path`, `pathology`."""

_CONTRIBUTIONS = "agent_contributions"
_SPACED = rf"[^\W{UNSPACED}]"  # a letter or digit of a script that puts spaces between words
_WORD = re.compile(r"[^\W_]")
_NUMBER = re.compile(r"\d+")  # of "30yo", "5mg"
_LABEL = re.compile(r"\A\W*\d{1,2}[.)]\s+")  # of an item in a list
_COLON = re.compile(r"\s*[:：]")
_SAYS_SOMETHING = re.compile(rf"[^\W\d_]{{2}}|[{UNSPACED}]")  # more than "3." and "B."
_CLAUSE_END = re.compile(r"[;；؛]\s*|(?<=[\u0e01-\u0e4e\u0e81-\u0edf])[ \t]+")
_LIST_COMMA = re.compile(r",\s+|[，、،]\s*")
_WITHIN_WORD = re.compile(rf"(?<={_SPACED})(?={_SPACED})|(?<=\d)(?=[.,]\d)|(?<=\d[.,])(?=\d)")
_BRACKETS = re.compile(r"[(\[（【][^()\[\]（）【】]*[)\]）】]")


class Turn(Protocol):
    """What is looked at of a turn."""

    @property
    def agent(self) -> str:
        """Its `agent_id`."""

    @property
    def role(self) -> str:
        """The name for readers."""

    @property
    def text(self) -> str:
        """What was said so far."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence or clause of a turn; all of it where an agent is named and no sentence fits."""

    turn: int
    """Index of the turn."""
    start: int
    """Where it begins in the turn's text."""
    end: int
    """Where it ends."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A piece of a field of a summary."""

    text: str
    origin: Quote | None
    """None where no sentence has enough of it."""
    is_alert: bool = False
    """Whether it reports a danger to life."""
    is_unsupported: bool = False
    """Whether it is of a number, dose or drug that nobody said."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence or clause of a text, without white space around it."""

    start: int
    end: int
    initials: str
    """Of its words."""


class Spoken:
    """The sentences and clauses of a text, and which of them have a word.

    Args:
        text: What was said.
    """

    def __init__(self, text: str) -> None:
        self.sentences: list[Sentence] = []
        self._having: dict[str, list[int]] = {}  # word -> places of the sentences that have it
        self._beginning: dict[str, list[str]] = {}  # how words begin -> these
        for start, end in clauses(text):
            if text[start:end].strip():
                piece = text[start:end].strip()
                start = text.index(piece, start)
                self._add(start, start + len(piece), Wording(_LABEL.sub("", piece)))

    def _add(self, start: int, end: int, wording: Wording) -> None:
        place = len(self.sentences)
        self.sentences.append(Sentence(start, end, wording.initials))
        for word in dict.fromkeys(map(_bare, wording.words)):
            if word not in self._having:
                self._beginning.setdefault(word[:_ALIKE], []).append(word)
            self._having.setdefault(word, []).append(place)

    def having(self, word: str, wording: Wording) -> dict[int, float]:
        """Return the places of the sentences that have a word, and how surely, 0 to 1.

        An acronym is what it stands for, if it has more than two letters.

        Args:
            word: A word of a phrase, without article.
            wording: Of the phrase.
        """
        found: dict[int, float] = {}
        for other in self._beginning.get(word[:_ALIKE], []):
            alike = _likeness(word, other)
            for place in self._having[other] if alike else []:
                found[place] = max(found.get(place, 0.0), alike)
        if word in wording.acronyms and len(word) > 2:
            for place, sentence in enumerate(self.sentences):
                if word in sentence.initials:
                    found[place] = 1.0
        return found


spoken = lru_cache(maxsize=128)(Spoken)
"""Return `Spoken` of a text; a page is made again whenever one of many turns has grown."""


def phrases(
    summary: AgentSummary,
    turns: Mapping[int, Turn],
    earlier: Mapping[int, Turn] = MappingProxyType({}),
) -> dict[str, tuple[Phrase, ...]]:
    """Return field -> its phrases; joined, they are the text of the field.

    Args:
        summary: The summary.
        turns: Index -> turn, of those that it was made from.
        earlier: Those before them, of which a summary repeats what earlier ones told. A phrase is
            led there only if it is of no turn that the summary was made from.
    """
    sources, before = Sources(turns, _ENOUGH), Sources(earlier, _ENOUGH_EARLIER)
    fields = {name: str(getattr(summary, name)) for name in LIMITS}
    marks = _Marks(summary, fields)
    found: dict[str, tuple[Phrase, ...]] = {}
    for name, text in fields.items():
        linked: list[Phrase] = []
        for phrase in _linked(name, text, sources):
            linked += [phrase] if phrase.origin else _linked(name, phrase.text, before)
        found[name] = tuple(marks.cut(name, linked))
    return found


def _linked(name: str, text: str, sources: Sources) -> Iterator[Phrase]:
    """Yield the phrases of a field with their origins."""
    if text == PLACEHOLDER:
        yield Phrase(text, None)
        return
    named: tuple[int, ...] = ()
    for start, end in clauses(text, sources.contributions(text)):
        clause = text[start:end]
        # "cardiologist: A; B. nurse: C" says what each contributed.
        of_clause = sources.named_in(clause, name)
        named = of_clause or (named if name == _CONTRIBUTIONS else ())
        yield from _linked_clause(name, clause, named, sources)


def _linked_clause(
    field: str, clause: str, named: tuple[int, ...], sources: Sources
) -> Iterator[Phrase]:
    whole = sources.origin(clause, named)
    parts = [clause[start:end] for start, end in _list_items(clause)]
    origins = [sources.origin(part, named, whole) for part in parts]
    if not any(origins):
        yield Phrase(clause, whole or sources.turn_of(named))
        return
    text = ""
    for index, (part, origin) in enumerate(zip(parts, origins, strict=True)):
        text += part
        if origins[index + 1 : index + 2] != [origin]:
            yield Phrase(text, origin or sources.turn_of(sources.named_in(text, field)))
            text = ""


class Sources:
    """The sentences that phrases may be made from.

    Args:
        turns: Index -> turn.
        enough: Share of the weight of a phrase's words, 0 to 1, that a sentence must have more
            than.
    """

    def __init__(self, turns: Mapping[int, Turn], enough: float) -> None:
        self._turns = {index: turn for index, turn in sorted(turns.items()) if turn.text.strip()}
        self._enough = enough
        self._spoken = {index: spoken(turn.text) for index, turn in self._turns.items()}
        self._count = sum(len(said.sentences) for said in self._spoken.values())
        self._ids: dict[str, list[int]] = {}
        self._roles: dict[str, list[int]] = {}
        for index, turn in self._turns.items():
            self._ids.setdefault(turn.agent.casefold(), []).append(index)
            self._roles.setdefault(turn.role.casefold(), []).append(index)
        names = sorted({*self._ids, *self._roles} - {""}, key=len, reverse=True)
        self._name = re.compile(
            rf"(?<!{_SPACED})(?:{'|'.join(map(re.escape, names)) or '(?!)'})(?!{_SPACED})",
            re.IGNORECASE,
        )

    def named_in(self, clause: str, field: str) -> tuple[int, ...]:
        """Return the turns of the agents that a clause names.

        A role may be that of somebody else ("refer to a cardiologist"), but not where the clause
        tells of a contribution or of an option.
        """
        found: set[int] = set()
        for name in map(str.casefold, self._name.findall(clause)):
            found.update(self._ids.get(name, []))
            if field == _CONTRIBUTIONS or named_options(normal(self._name.sub(" ", clause))):
                found.update(self._roles.get(name, []))
        return tuple(sorted(found))

    def contributions(self, text: str) -> Iterator[int]:
        """Yield where the contribution of an agent begins: with its name, after another's."""
        for name in self._name.finditer(text):
            if _COLON.match(text, name.end()) or text[: name.start()].rstrip().endswith("."):
                yield name.start()

    def origin(
        self, text: str, named: tuple[int, ...] = (), otherwise: Quote | None = None
    ) -> Quote | None:
        """Return the sentence that has most of a text; of those alike `otherwise`, or the latest.

        Where a named agent's answer is in the text, it is the line in which the agent states it.

        Args:
            text: A phrase.
            named: The turns that it may be of; empty for all.
            otherwise: The sentence of the clause that it is a part of.
        """
        rest = self._name.sub(" ", text)
        letters = named_options(normal(rest)) if named else set()
        for index in reversed(named):
            for one in self._spoken[index].sentences[-1:]:
                if stated_answer(self._turns[index].text[one.start : one.end]) in letters:
                    return Quote(index, one.start, one.end)
        told, total = self._told(Wording(rest))
        least = (min(self._enough, _ENOUGH_OF_NAMED) if named else self._enough) * total
        best: Quote | None = None
        most = 0.0
        for (index, place), has in sorted(told.items()):
            if has <= least or has < most or (named and index not in named):
                continue
            one = self._spoken[index].sentences[place]
            if has > most or best != otherwise:
                best, most = Quote(index, one.start, one.end), has
        return best

    def _told(self, wording: Wording) -> tuple[dict[tuple[int, int], float], float]:
        """Return how much of a phrase sentences have, by turn and place, and how much it has."""
        words = dict.fromkeys(  # in order, so that sums are the same in every process
            _bare(word)
            for word in wording.words
            if not is_short(word) or word in wording.acronyms or not word.isalpha()
        )
        told: dict[tuple[int, int], float] = {}
        total = 0.0
        for word in words:
            having = {
                (index, place): alike
                for index, said in self._spoken.items()
                for place, alike in said.having(word, wording).items()
            }
            weight = log(1 + self._count / max(sum(having.values()), 1))
            total += weight
            for of_sentence, alike in having.items():
                told[of_sentence] = told.get(of_sentence, 0.0) + weight * alike
        return told, total

    def turn_of(self, named: tuple[int, ...]) -> Quote | None:
        """Return the latest of the turns of agents that are named."""
        return Quote(named[-1], 0, len(self._turns[named[-1]].text)) if named else None


def _bare(word: str) -> str:
    """Return a word without Arabic article, or a number without what is written as one with it."""
    number = _NUMBER.match(word)
    return number[0] if number else without_article(word)


def _likeness(word: str, other: str) -> float:
    """Return 1 for two forms of a word, less for words that only begin alike, and 0 for others."""
    if word == other:
        return 1.0
    shorter = min(len(word), len(other))
    common = next((n for n in range(shorter) if word[n] != other[n]), shorter)
    if common < _ALIKE or word.isdecimal():
        return 0.0
    is_form = common >= shorter - 1 and max(len(word), len(other)) - common <= _LONGEST_ENDING
    return 1.0 if is_form or common >= _LONG else (common - 2) / 8


def clauses(text: str, starts: Iterable[int] = ()) -> Iterator[tuple[int, int]]:
    """Yield where the clauses of a text begin and end; a number alone is of the next one.

    Args:
        text: Any text.
        starts: Where else a clause begins.
    """
    ends = {*sentence_ends(text), *(end.end() for end in _CLAUSE_END.finditer(text)), *starts}
    yield from _with_words(text, ends)


def _list_items(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the items of a list with commas begin and end, brackets whole."""
    outside = _BRACKETS.sub(lambda inside: "_" * len(inside[0]), text)
    yield from _with_words(text, {len(text), *(c.end() for c in _LIST_COMMA.finditer(outside))})


def _with_words(text: str, ends: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield pieces of a text that end at these places and have words, but for its last."""
    start = 0
    for end in sorted(ends):
        if end == len(text) or _SAYS_SOMETHING.search(text, start, end):
            if end > start:
                yield start, end
            start = end


class _Marks:
    """The alerts and the unsupported terms in the fields of a summary."""

    def __init__(self, summary: AgentSummary, fields: Mapping[str, str]) -> None:
        alerts = {*summary.alerts, *chain.from_iterable(map(find_alerts, fields.values()))}
        self._alerts = _places(alerts, fields, normal)
        self._unsupported = _places(summary.unsupported_terms, fields, plain)

    def cut(self, name: str, linked: Iterable[Phrase]) -> Iterator[Phrase]:
        """Yield the phrases of a field, in pieces where a mark begins or ends."""
        alerts, unsupported = self._alerts[name], self._unsupported[name]
        ends = sorted(set(chain.from_iterable(alerts + unsupported)))
        start = 0
        for phrase in linked:
            end = start + len(phrase.text)
            inner = [place for place in ends if start < place < end]
            for first, last in pairwise([start, *inner, end]):
                text = phrase.text[first - start : last - start]
                is_unsupported = _covers(unsupported, first)
                says_something = _WORD.search(text) and not is_unsupported
                origin = phrase.origin if says_something else None
                yield Phrase(text, origin, _covers(alerts, first), is_unsupported)
            start = end


def _covers(spans: Iterable[tuple[int, int]], place: int) -> bool:
    return any(start <= place < end for start, end in spans)


def _places(
    terms: Iterable[str], fields: Mapping[str, str], form: Callable[[str], str]
) -> dict[str, list[tuple[int, int]]]:
    """Return field -> where terms are in it, whatever their case and spaces.

    Args:
        terms: As `form` gives them. The words of a dose that was swapped ("metoprolol 10 mg") may
            stand apart.
        fields: Name -> text.
        form: Gives a text the spelling that the terms have.
    """
    places: dict[str, list[tuple[int, int]]] = {name: [] for name in fields}
    for term in terms:
        found = {name: list(_occurrences(term, text, form)) for name, text in fields.items()}
        if not any(found.values()):
            parts = [term[:end] for _, end, _ in drugs(term)][:1]
            parts += [term[len(part) :] for part in parts]
            for name, text in fields.items():
                apart = [list(_occurrences(part, text, form)) for part in parts]
                found[name] = list(chain.from_iterable(apart)) if all(apart) else []
        for name, spans in found.items():
            places[name] += spans
    return places


def _occurrences(term: str, text: str, form: Callable[[str], str]) -> Iterator[tuple[int, int]]:
    def folded(piece: str) -> str:
        return "".join(form(piece).split()).casefold()

    wanted = folded(term)
    if not wanted or wanted not in folded(text):
        return
    covered = 0
    for start in range(len(text)):
        if start < covered or not _is_bound(text, start) or not text[start].strip():
            continue
        if folded(text[start])[:1] not in (wanted[0], ""):
            continue
        longest = min(start + 2 * len(term) + 8, len(text))
        for end in range(longest, start, -1):
            if _is_bound(text, end) and text[end - 1].strip() and folded(text[start:end]) == wanted:
                yield start, end
                covered = end
                break


def _is_bound(text: str, place: int) -> bool:
    """Return whether no word or number goes on at a place."""
    return not _WITHIN_WORD.match(text, place)
