"""Attribution of each phrase of a summary to the sentence of a turn that it comes from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import chain, pairwise
from types import MappingProxyType
from typing import Protocol

from exaid_core.checks.alerts import find_alerts
from exaid_core.checks.cue_files import normal
from exaid_core.checks.dissent import named_options, stated_answer
from exaid_core.checks.drugs import drugs
from exaid_core.checks.quantities import plain
from exaid_core.placeholders import PLACEHOLDER
from exaid_core.schema.agent_summary import LIMITS, AgentSummary
from exaid_core.tokenizer import UNSPACED, is_spaced
from mdagents.pages.sentences import Quote, Sources, clauses, spoken, with_words

_ENOUGH = 0.5
"""Share of a phrase that a matching sentence must exceed."""
_ENOUGH_OF_NAMED = 0.4
"""Share that a sentence must exceed if its agent is named beside the phrase."""
_ENOUGH_EARLIER = 0.7
"""Share that a sentence must exceed in the many turns before the summarized ones."""

_CONTRIBUTIONS = "agent_contributions"
_SPACED = rf"[^\W{UNSPACED}]"  # a letter or digit of a script that puts spaces between words
_WORD = re.compile(r"[^\W_]")
_COLON = re.compile(r"\s*[:：]")
_LIST_COMMA = re.compile(r",\s+|[，、،]\s*")
_BRACKETS = re.compile(r"[(\[（【][^()\[\]（）【】]*[)\]）】]")
# A position within a word of a script that separates words, or within a number.
_WITHIN_WORD = re.compile(rf"(?<={_SPACED})(?={_SPACED})|(?<=\d)(?=[.,]\d)|(?<=\d[.,])(?=\d)")


class Turn(Protocol):
    """Attributes of a turn that attribution reads."""

    @property
    def agent(self) -> str:
        """`agent_id` of the speaker."""

    @property
    def role(self) -> str:
        """Display name of the speaker."""

    @property
    def text(self) -> str:
        """Text of the turn so far."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A piece of a field of a summary."""

    text: str
    origin: Quote | None
    """Sentence that the phrase comes from; None if no sentence matches enough of it."""
    is_alert: bool = False
    """Whether the phrase reports a danger to life."""
    is_unsupported: bool = False
    """Whether the phrase belongs to a number, dose or drug that no agent named."""


def phrases(
    summary: AgentSummary,
    turns: Mapping[int, Turn],
    earlier: Mapping[int, Turn] = MappingProxyType({}),
) -> dict[str, tuple[Phrase, ...]]:
    """Return field -> phrases, which join to the text of the field.

    Args:
        summary: The summary.
        turns: Index -> turn, for the summarized turns.
        earlier: Index -> turn, for the turns before them, as a summary repeats earlier summaries.
            A phrase is attributed there only if no summarized turn matches.
    """
    names = _Names({**earlier, **turns})
    own, before = _Led(turns, names, _ENOUGH), _Led(earlier, names, _ENOUGH_EARLIER)
    fields = {name: summary.text_of(name) for name in LIMITS}
    marks = _Marks(summary, fields)
    found: dict[str, tuple[Phrase, ...]] = {}
    for field, text in fields.items():
        if text == PLACEHOLDER:
            found[field] = (Phrase(text, None),)
            continue
        linked: list[Phrase] = []
        for clause, named in _clauses(field, text, names):
            for phrase in own.phrases(field, clause, named):
                linked += [phrase] if phrase.origin else before.phrases(field, phrase.text, named)
        found[field] = tuple(marks.cut(field, linked))
    return found


def _clauses(field: str, text: str, names: _Names) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield each clause of a field with the turns of the agents that it names.

    Contributions have the form "cardiologist: A; B. nurse: C".
    """
    named: tuple[int, ...] = ()
    for start, end in clauses(text, names.contributions(text)):
        clause = text[start:end]
        named = names.turns_in(clause, field) or (named if field == _CONTRIBUTIONS else ())
        yield clause, named


class _Names:
    """Index of turns by the ids and roles of their agents."""

    def __init__(self, turns: Mapping[int, Turn]) -> None:
        self._ids: dict[str, list[int]] = {}
        self._roles: dict[str, list[int]] = {}
        for index, turn in turns.items():
            self._ids.setdefault(turn.agent.casefold(), []).append(index)
            self._roles.setdefault(turn.role.casefold(), []).append(index)
        self._names = frozenset({*self._ids, *self._roles} - {""})

    def turns_in(self, clause: str, field: str) -> tuple[int, ...]:
        """Return the turns of the agents that a clause names, in order.

        A role may mean somebody else ("refer to a cardiologist"), except if the clause reports a
        contribution or names an option.
        """
        found: set[int] = set()
        for name in map(str.casefold, self._in(clause).findall(clause)):
            found.update(self._ids.get(name, []))
            if field == _CONTRIBUTIONS or self.options_in(clause):
                found.update(self._roles.get(name, []))
        return tuple(sorted(found))

    def options_in(self, clause: str) -> set[str]:
        """Return the letters of the options that a clause names."""
        return named_options(normal(self.without(clause)))

    def contributions(self, text: str) -> Iterator[int]:
        """Yield the offset of each agent's contribution, which begins with the agent's name."""
        for name in self._in(text).finditer(text):
            if _COLON.match(text, name.end()) or text[: name.start()].rstrip().endswith("."):
                yield name.start()

    def without(self, text: str) -> str:
        """Return a text without agents' names, which are not about the patient."""
        return self._in(text).sub(" ", text)

    def _in(self, text: str) -> re.Pattern[str]:
        """Return the pattern of those names that a text may have."""
        folded = text.casefold()
        names = frozenset(name for name in self._names if name in folded)
        return _any_of(names, r"\w" if is_spaced(text) else _SPACED)


@lru_cache(maxsize=1024)  # a pattern takes 100 times as long to compile as to apply
def _any_of(names: frozenset[str], letter: str) -> re.Pattern[str]:
    """Return the pattern of a name between characters that do not match `letter`.

    `_SPACED` takes 20 times as long to compile as the equivalent class of a text without letters
    of scripts without spaces.
    """
    longest_first = sorted(names, key=lambda name: (-len(name), name))
    return re.compile(
        rf"(?<!{letter})(?i:{'|'.join(map(re.escape, longest_first)) or '(?!)'})(?!{letter})"
    )


class _Led:
    """Attribution of phrases to some of the turns."""

    def __init__(self, turns: Mapping[int, Turn], names: _Names, enough: float) -> None:
        self._texts = {index: turn.text for index, turn in turns.items() if turn.text.strip()}
        self._names = names
        self._enough = enough

    @cached_property
    def _sources(self) -> Sources:
        """Index of the turns, made on first use: most phrases are from the summarized turns."""
        return Sources(self._texts)

    def phrases(self, field: str, clause: str, named: tuple[int, ...]) -> Iterator[Phrase]:
        """Yield the phrases of a clause; adjacent list items from one sentence are one phrase.

        Args:
            field: Field that holds the clause.
            clause: Text of the clause.
            named: Indices of the named agents' turns, to search only these; empty searches all.
        """
        whole = self._origin(clause, named)
        items = [clause[start:end] for start, end in _list_items(clause)]
        origins = [whole]
        if items != [clause]:
            origins = [self._origin(item, named, whole) for item in items]
        if not any(origins):
            yield Phrase(clause, whole or self._turn_of(field, clause))
            return
        text = ""
        for index, (item, origin) in enumerate(zip(items, origins, strict=True)):
            text += item
            if origins[index + 1 : index + 2] != [origin]:
                yield Phrase(text, origin or self._turn_of(field, text))
                text = ""

    def _origin(
        self, text: str, named: tuple[int, ...], otherwise: Quote | None = None
    ) -> Quote | None:
        """Return the line in which a named agent states a text's answer, else the best match."""
        letters = self._names.options_in(text) if named else set()
        for index in reversed([index for index in named if index in self._texts]):
            for one in spoken(self._texts[index]).sentences[-1:]:
                if stated_answer(self._texts[index][one.start : one.end]) in letters:
                    return Quote(index, one.start, one.end)
        enough = min(self._enough, _ENOUGH_OF_NAMED) if named else self._enough
        return self._sources.best(self._names.without(text), enough, named, otherwise)

    def _turn_of(self, field: str, text: str) -> Quote | None:
        """Return the latest turn of the agents that a text names."""
        named = self._names.turns_in(text, field)
        latest = max((index for index in named if index in self._texts), default=None)
        return None if latest is None else Quote(latest, 0, len(self._texts[latest]))


def _list_items(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the items of a comma-separated list, without splitting brackets."""
    outside = _BRACKETS.sub(lambda inside: "_" * len(inside[0]), text)
    yield from with_words(text, {len(text), *(c.end() for c in _LIST_COMMA.finditer(outside))})


class _Marks:
    """Places of the alerts and the unsupported terms in the fields of a summary."""

    def __init__(self, summary: AgentSummary, fields: Mapping[str, str]) -> None:
        texts = (text for text in fields.values() if text != PLACEHOLDER)
        alerts = {*summary.alerts, *chain.from_iterable(map(find_alerts, texts))}
        self._alerts = _places(alerts, fields, normal)
        self._unsupported = _places(summary.unsupported_terms, fields, plain)

    def cut(self, name: str, linked: Iterable[Phrase]) -> Iterator[Phrase]:
        """Yield the phrases of a field, cut wherever a mark begins or ends."""
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
    """Return field -> (start, end) of the terms in it, ignoring case and spaces.

    Args:
        terms: Terms as spelled by `form`. The words of a swapped dose ("metoprolol 10 mg") may
            be apart.
        fields: Name -> text.
        form: Function that normalizes a text to the spelling of the terms.
    """
    places: dict[str, list[tuple[int, int]]] = {name: [] for name in fields}

    @cache
    def folded(text: str) -> str:
        return "".join(form(text).split()).casefold()

    for term in terms:
        found = {name: list(_occurrences(term, text, folded)) for name, text in fields.items()}
        if not any(found.values()):
            parts = [term[:end] for _, end, _ in drugs(term)][:1]
            parts += [term[len(part) :] for part in parts]
            for name, text in fields.items():
                apart = [list(_occurrences(part, text, folded)) for part in parts]
                found[name] = list(chain.from_iterable(apart)) if all(apart) else []
        for name, spans in found.items():
            places[name] += spans
    return places


def _occurrences(term: str, text: str, folded: Callable[[str], str]) -> Iterator[tuple[int, int]]:
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
    """Return whether a place is not within a word or number."""
    return not _WITHIN_WORD.match(text, place)
