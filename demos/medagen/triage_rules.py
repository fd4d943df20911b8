"""The triage rules: map complaints and measurements to a level and its reasons.

The rules are data in rules.yaml; this module reads and evaluates them. No stated fact lowers the
level of the words alone: of a fact and the words, the more dangerous reading counts. A complaint
that no rule recognizes is routine, also beside a mild one: only clearly mild complaints are
self-care.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from demos.medagen.denial import amendments, back_again, standing
from demos.medagen.lexicon import Found, Lexicon
from demos.medagen.measurements import measured
from demos.medagen.schemas import (
    Fired,
    Language,
    Level,
    RulesResult,
    Severity,
    TriageInput,
    highest,
)
from demos.medagen.tokenizer import Words, split

_FILE = Path(__file__).with_name("rules.yaml")
FOREIGN = "other_language"
"""Id of the rule for messages in a language other than English and Vietnamese."""
_UNLESS = "unless "
_PAST = "past "
_UNITS = {
    "temperature": ("temperature_celsius", "°C"),
    "systolic": ("systolic_bp", "mmHg"),
    "pulse": ("heart_rate", "/min"),
    "breaths": ("respiratory_rate", "/min"),
    "oxygen": ("oxygen_saturation", "%"),
    "glucose": ("glucose_mmol_l", "mmol/L"),
    "ketones": ("ketones_mmol_l", "mmol/L"),
}
_NAMES = {
    "temperature": {"en": "temperature", "vi": "nhiệt độ"},
    "systolic": {"en": "blood pressure", "vi": "huyết áp"},
    "pulse": {"en": "pulse", "vi": "mạch"},
    "breaths": {"en": "breathing", "vi": "nhịp thở"},
    "oxygen": {"en": "oxygen saturation", "vi": "độ bão hòa oxy"},
    "glucose": {"en": "blood sugar", "vi": "đường huyết"},
    "ketones": {"en": "ketones", "vi": "ceton"},
}
_IF = re.compile(
    r"age_(?:below|from|not_below)|pregnant|chronic|days_(?:from|below)|is_foreign|is_unread"
    rf"|(?:{'|'.join(_UNITS)})_(?:from|below)"
)
_NOTHING_KNOWN = {
    "en": "No rule knows what is said; somebody should look at it.",
    "vi": "Không có quy tắc nào nhận ra triệu chứng này; nên đi khám.",
}
_FEVER = 38.0
"""Fever threshold in °C (NHS, NICE NG143)."""
_NO_FEVER = [
    written
    for tenths in (*range(355, 380), *range(960, 1004))  # °C, °F
    for written in (
        f"{tenths / 10:g}",
        f"{tenths / 10:.1f}",
        f"{tenths / 10:.1f}".replace(".", ","),
    )
]
"""Temperatures without a fever, as they are written."""
_MILD = "mild"
"""Id of the rule for mild complaints."""
_LINKS = frozenset([
    "and", "but", "then", "that", "which", "with", "plus", "also", "while", "or",
    "và", "nhưng", "mà", "kèm", "rồi", "với", "còn",
])  # fmt: skip
"""Words that begin a clause, besides punctuation."""
_NOT = frozenset([
    "no", "not", "without", "nor", "never", "denies", "denied", "dont", "doesnt", "didnt", "havent",
    "hasnt", "isnt", "arent", "wasnt", "nothing", "none", "neither",
    "không", "ko", "k", "kg", "hông", "hok", "chẳng", "chả", "chưa", "khong", "chua", "hết", "het",
])  # fmt: skip
"""Words that deny what follows; they are filler only before a complaint that they deny."""
_REMEMBERED = 1_000  # messages whose findings are cached
_EXPLAINED = 3
"""Maximum number of rules that the reasoning explains."""


class _Phrases(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    en: tuple[str, ...] = ()
    vi: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()


class Rule(BaseModel):
    """A rule, as it stands in rules.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    flag: str = ""
    """Name shared by several rules that warn of the same danger; empty: the id of the rule."""
    level: Level
    source: str
    en: tuple[str, ...] = ()
    vi: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    past: tuple[str, ...] = ()
    with_: tuple[str, ...] = Field(default=(), alias="with")
    and_: tuple[str, ...] = Field(default=(), alias="and")
    two_of: tuple[str, ...] = ()
    if_: Mapping[str, Any] = Field(default={}, alias="if")
    says: Mapping[Language, str]
    example: Mapping[Language, str]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    words: Mapping[str, str]
    fillers: _Phrases = _Phrases()
    complaints: Mapping[str, _Phrases]
    conditions: Mapping[str, _Phrases]
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class _Known:
    """Facts about a patient; None if unknown."""

    ages: Sequence[float]
    """Ages in years, stated and in the words; empty if unknown."""
    is_pregnant: bool
    days: float | None
    readings: Mapping[str, Sequence[float]]
    """Vital sign, a field of `VitalSigns` -> its values, stated and in the words."""
    said: Mapping[str, str] = field(default_factory=dict)
    """Rule, complaint or condition mentioned in a message -> the words that mention it."""
    foreign: str = ""
    """First message in a language other than English and Vietnamese; empty if none."""
    unread: str = ""
    """First clause that names no mild complaint and is not only filler; empty if none."""


@dataclass(frozen=True, slots=True)
class _Read:
    """What a message says."""

    said: Sequence[tuple[str, str]]
    """Concepts that it mentions, each with its words."""
    unread: str
    """First clause that names no mild complaint and is not only filler; empty if none."""
    is_foreign: bool
    """Whether it, or a clause of it, is in a language other than English and Vietnamese."""
    takes_back: bool
    """Whether it says that what the message before it may deny, or call over, is there."""


class Rules:
    """The rules of a file.

    Args:
        text: YAML in the format of rules.yaml.
    """

    def __init__(self, text: str) -> None:
        read = _File.model_validate(yaml.safe_load(text))
        self.rules = read.rules
        self._conditions = frozenset(read.conditions)
        concepts: dict[str, list[str]] = {}
        for name, phrases in [*read.complaints.items(), *read.conditions.items()]:
            concepts[name] = [*phrases.en, *phrases.vi]
            concepts[_UNLESS + name] = list(phrases.unless)
        for rule in read.rules:
            if rule.en or rule.vi:
                concepts[rule.id] = [*rule.en, *rule.vi]
            if rule.unless:
                concepts[_UNLESS + rule.id] = list(rule.unless)
            if rule.past:
                concepts[_PAST + rule.id] = list(rule.past)
        words = {f"{{{name}}}": alternatives for name, alternatives in read.words.items()}
        words["{normal}"] = "|".join(["normal", "fine", "ok", "okay", *_NO_FEVER])
        self._lexicon = Lexicon(
            {name: [_filled(one, words) for one in all_] for name, all_ in concepts.items()}
        )
        self._fillers = Lexicon(
            # Each is a concept, since of those of a concept only one is found at each word.
            {one: [_filled(one, words)] for one in (*read.fillers.en, *read.fillers.vi)},
            reads_errors=False,
        )
        # Every new message re-evaluates the whole conversation, so cache the findings per message.
        self._read = lru_cache(maxsize=_REMEMBERED)(self._read_anew)
        self._check_names(set(concepts))

    def _check_names(self, names: set[str]) -> None:
        for rule in self.rules:
            unknown = {*rule.with_, *rule.and_, *rule.two_of, *rule.if_.get("chronic", ())} - names
            unknown -= {other.id for other in self.rules}
            unknown |= {name for name in rule.if_ if not _IF.fullmatch(name)}
            if unknown:
                raise ValueError(f"rule {rule.id} names {', '.join(unknown)}, which is not there")

    def evaluate(self, given: TriageInput, language: Language) -> RulesResult:
        """Return the result of the rules for complaints and facts.

        Args:
            given: Complaints, in words of either language, and further facts. A fact never lowers
                the level of the words: of two vital signs or ages, the more dangerous one counts.
            language: Language of the reasoning.
        """
        found = measured(given.symptoms)
        info = given.patient_info
        stated = given.vital_signs.model_dump(exclude_none=True)
        words = _Known(
            ages=_known(found.age),
            is_pregnant=found.is_pregnant,
            days=found.duration_days,
            readings=found.readings,
            said=self._said(given.symptoms, info.chronic_conditions),
            unread=self._unread(given.symptoms),
        )
        with_facts = replace(
            words,
            ages=_known(found.age, info.age),
            is_pregnant=bool(info.pregnant) or found.is_pregnant,
            days=max(_known(found.duration_days, given.duration_days), default=None),
            readings={
                name: (*found.readings.get(name, ()), *_known(stated.get(name)))
                for name in {*found.readings, *stated}
            },
        )
        return self._judged((words, with_facts), given.symptom_severity, language)

    def screen(self, messages: Sequence[str], language: Language) -> RulesResult:
        """Return the result of the rules for everything that a user has written in a conversation.

        Args:
            messages: Messages of the user, in order.
            language: Language of the reasoning.
        """
        found = measured(messages)
        known = _Known(
            _known(found.age),
            found.is_pregnant,
            found.duration_days,
            found.readings,
            self._said(messages, ()),
            next((text for text in messages if self._read(text).is_foreign), ""),
            self._unread(messages),
        )
        return self._judged((known,), None, language)

    def earlier_words(self, messages: Sequence[str], language: Language) -> str:
        """Return the words of earlier messages without which the level would be lower.

        Args:
            messages: Messages of the user, in order.
            language: Language of measurements that are quoted.

        Returns:
            The words or the measurement; empty if the last message alone reaches the level.
        """
        of_all, of_last = (self.screen(each, language) for each in (messages, messages[-1:]))
        if of_last.triage_level.rank >= of_all.triage_level.rank:
            return ""
        return of_all.fired[0].because

    def _said(self, messages: Sequence[str], conditions: Sequence[str]) -> dict[str, str]:
        said: dict[str, str] = {}
        amended = [
            f"{before}\n{text}"
            for before, text in pairwise(messages)
            if self._read(text).takes_back
        ]
        for text in (*messages, *amended):
            for concept, words in self._read(text).said:
                said.setdefault(concept, words)
        for text in conditions:  # a list of known conditions: denials are not expected
            for one in self._lexicon.find(split(text)):
                if one.concept in self._conditions:
                    said.setdefault(one.concept, text)
        return said

    def _unread(self, messages: Sequence[str]) -> str:
        return next(filter(None, (self._read(text).unread for text in messages)), "")

    def _read_anew(self, text: str) -> _Read:
        words = split(text)
        back = back_again(words)
        meant = self._meant(self._lexicon.find(words), back)
        found = standing(words, meant)
        said = [(one.concept, " ".join(words.words[one.start : one.end])) for one in found]
        unread = self._unread_clause(words, meant, found)
        takes_back = bool(amendments(words) or back)
        return _Read(said, unread, words.has_foreign(), takes_back)

    def _unread_clause(self, words: Words, meant: Sequence[Found], found: Sequence[Found]) -> str:
        """Return the first clause that names no mild complaint and is not only filler."""
        mild = _places(one for one in found if one.concept == _MILD)
        filler = set(mild)
        for one in self._fillers.find(words):  # a gap may hold anything: "ăn không được"
            filler |= _places([one]) - set(one.between)
        denied = [one for one in meant if one not in found]
        filler |= _places(denied)
        for one in denied:
            at = one.start - 1
            while at in filler:
                at -= 1
            if at >= 0 and words.words[at] in _NOT:
                filler.add(at)
        for clause in _clauses(words):
            if mild.isdisjoint(clause) and any(
                words.words[at].isalpha() and at not in filler for at in clause
            ):
                return " ".join(words.words[at] for at in clause)
        return ""

    @staticmethod
    def _meant(found: Sequence[Found], back: Container[int]) -> list[Found]:
        """Drop occurrences that are part of a phrase with another meaning, or about what is over.

        Args:
            found: Occurrences of all concepts.
            back: Positions at which what was over is back.
        """
        other: dict[str, list[Found]] = {}
        for one in found:
            if one.concept.startswith(_UNLESS):
                other.setdefault(one.concept.removeprefix(_UNLESS), []).append(one)
            elif one.concept.startswith(_PAST) and one.start not in back:
                other.setdefault(one.concept.removeprefix(_PAST), []).append(one)
        return [
            one
            for one in found
            if not one.concept.startswith((_UNLESS, _PAST))
            and not any(
                one.start < each.end and each.start < one.end for each in other.get(one.concept, ())
            )
        ]

    def _judged(
        self, readings: Sequence[_Known], severity: Severity | None, language: Language
    ) -> RulesResult:
        """Return the result of the rules that hold for at least one reading of the facts."""
        held: dict[str, str] = {}
        for known in readings:
            held = _measured_fever(known, language) | held
            # Repeat, because a rule may depend on another one that is listed after it.
            for _ in range(3):
                for rule in self.rules:
                    if rule.id not in held and (because := _holds(rule, known, held, language)):
                        held[rule.id] = because
        fired = [_fired(rule, held[rule.id]) for rule in self.rules if rule.id in held]
        if severity is Severity.SEVERE and "severe_symptoms" not in held:
            severe = next(rule for rule in self.rules if rule.id == "severe_symptoms")
            fired.append(_fired(severe, severity.value))
        fired.sort(key=lambda one: -one.level.rank)
        level = highest([one.level for one in fired] or [Level.ROUTINE])
        if severity is Severity.MODERATE:
            level = highest([level, Level.ROUTINE])
        flags = [one.flag for one in fired if one.level.rank >= Level.URGENT.rank]
        return RulesResult(
            triage_level=level,
            red_flags=tuple(dict.fromkeys(flags)),
            fired=tuple(fired),
            reasoning=self._reasoning(fired, language),
        )

    def _reasoning(self, fired: Sequence[Fired], language: Language) -> str:
        says = {rule.id: rule.says[language] for rule in self.rules}
        sentences = dict.fromkeys(says[one.rule] for one in fired if one.level is fired[0].level)
        return " ".join(list(sentences)[:_EXPLAINED]) or _NOTHING_KNOWN[language.value]


@cache
def shipped_rules() -> Rules:
    """Return the rules that ship with Medagen."""
    return Rules(_FILE.read_text(encoding="utf-8"))


def _places(found: Iterable[Found]) -> set[int]:
    """Return the positions of the words of findings."""
    return {at for one in found for at in range(one.start, one.end)}


def _clauses(words: Words) -> Iterator[list[int]]:
    """Yield the positions of the words of each clause."""
    clause: list[int] = []
    for at, word in enumerate(words.words):
        if words.parts_clauses(at) or word in _LINKS:
            yield clause
            clause = []
        else:
            clause.append(at)
    yield clause


def _fired(rule: Rule, because: str) -> Fired:
    return Fired(
        rule=rule.id,
        flag=rule.flag or rule.id,
        level=rule.level,
        because=because,
        source=rule.source,
    )


def _filled(phrase: str, words: Mapping[str, str]) -> str:
    for name, alternatives in words.items():
        phrase = phrase.replace(name, alternatives)
    return phrase


def _known(*values: float | None) -> tuple[float, ...]:
    return tuple(value for value in values if value is not None)


def _holds(rule: Rule, known: _Known, held: Mapping[str, str], language: Language) -> str:
    """Return the reasons why a rule holds; empty if it does not hold."""
    because: list[str] = []
    if rule.en or rule.vi:
        if rule.id not in known.said:
            return ""
        because.append(known.said[rule.id])
    for names in (rule.with_, rule.and_):
        words = next((said for said in _of(names, known, held, rule.id) if said), "")
        if names and not words:
            return ""
        because.append(words)
    if rule.two_of:
        signs = [said for said in _of(rule.two_of, known, held, rule.id) if said]
        if len(signs) < 2:
            return ""
        because += signs
    facts = list(_facts(rule.if_, known, language))
    if "" in facts:
        return ""
    return "; ".join(dict.fromkeys(filter(str.strip, [*because, *facts])))


def _of(names: Iterable[str], known: _Known, held: Mapping[str, str], own: str) -> Iterator[str]:
    for name in names:
        # Another name counts if it holds or is mentioned; the rule's own name only if mentioned.
        yield (
            known.said.get(name, "") if name == own else held.get(name) or known.said.get(name, "")
        )


def _measured_fever(known: _Known, language: Language) -> dict[str, str]:
    """Return the measured fever, if there is one, as a rule that holds."""
    measured_one = _measurement("temperature_from", _FEVER, known.readings, language)
    return {"fever": measured_one} if measured_one else {}


def _facts(asked: Mapping[str, Any], known: _Known, language: Language) -> Iterator[str]:
    """Yield a fact for each condition of a rule; the fact is empty if the condition is not met."""
    youngest, oldest = min(known.ages, default=None), max(known.ages, default=None)
    for name, value in asked.items():
        if name == "age_below":
            yield _years(youngest, language) if youngest is not None and youngest < value else ""
        elif name == "age_from":
            yield _years(oldest, language) if oldest is not None and oldest >= value else ""
        elif name == "age_not_below":
            yield " " if oldest is None else _years(oldest, language) if oldest >= value else ""
        elif name == "pregnant":
            word = "mang thai" if language is Language.VIETNAMESE else "pregnant"
            yield word if known.is_pregnant else ""
        elif name == "chronic":
            yield next((known.said[each] for each in value if each in known.said), "")
        elif name == "days_from":
            days = known.days
            unit = "ngày" if language is Language.VIETNAMESE else "days"
            yield f"{days:.0f} {unit}" if days is not None and days >= value else ""
        elif name == "days_below":
            yield " " if known.days is None or known.days < value else ""
        elif name == "is_foreign":
            yield known.foreign
        elif name == "is_unread":
            yield known.unread
        else:
            yield _measurement(name, value, known.readings, language)


def _years(age: float, language: Language) -> str:
    return f"{age:.2g} {'tuổi' if language is Language.VIETNAMESE else 'years'}"


def _measurement(
    name: str, limit: float, readings: Mapping[str, Sequence[float]], language: Language
) -> str:
    """Return the most dangerous value beyond a limit, with its name; empty if there is none."""
    kind, _, side = name.partition("_")
    attribute, unit = _UNITS[kind]
    is_upper = side == "from"
    values = [value for value in readings.get(attribute, ()) if (value >= limit) is is_upper]
    if not values:
        return ""
    value = max(values) if is_upper else min(values)
    return f"{_NAMES[kind][language.value]} {value:g} {unit}"
