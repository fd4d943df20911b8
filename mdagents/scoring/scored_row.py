"""Scores a single record."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol, TypeVar, cast

from mdagents.datasets.empty_options import shown_options
from mdagents.datasets.option_letters import letter_marked
from mdagents.datasets.questions import LETTERS
from mdagents.scoring.exaid_figures import QuestionFigures, question_figures
from mdagents.scoring.fields import (
    amount_of,
    answer_text,
    confidence_of,
    content_digest,
    count_of,
    entries_of,
    epoch_of,
    fields_of,
    gold_of,
    id_of,
    is_listed,
    names_several,
    object_of,
    opinions_of,
    options_of,
    plain,
    text_of,
    tokens_of,
)
from mdagents.settings import Status
from mdagents_llm.errors import ConfigError

T = TypeVar("T", bound=Hashable)


class SeveralRightError(ConfigError):
    """A record in which more than one option is right, which no score here can count."""


class _Sharing(Protocol):
    def __call__(self, value: T, /) -> T: ...


# Interns equal values: the records of a large file have few distinct ones.
_shared = cast("_Sharing", lru_cache(maxsize=4096)(lambda value: value))

Item = tuple[str, int]
"""Key of a question in an epoch: (question id, epoch)."""

_Alike = tuple[tuple[str, ...], ...]

PARSE_ERROR_MARK = "X"
"""Value of the column `response` when a reply holds no answer."""

RECORDED = "recorded"
"""Value of the column `parse_method` when the record states the letter."""

_ANY_LETTER = dict.fromkeys(LETTERS, "")


@dataclass(slots=True)  # not frozen: that makes creation three times slower
class ScoredRow:
    """A scored question; `csv_file.COLUMNS` names the fields that the CSV has."""

    question_id: str
    label: str
    response: str
    """Parsed letter; `X` for a parse error, empty for any other status without an answer."""
    difficulty: str
    input_tokens: int | None
    """Input tokens; like every figure below, None when missing in the file."""
    output_tokens: int | None
    total_tokens: int | None
    correct: bool
    """Whether the answer is right; written as 1 or 0 in the CSV."""
    status: str
    parse_method: str
    exaid_tokens: int | None
    cost_usd: float | None
    wall_seconds: float | None
    calls: int | None
    reasoning_tokens: int | None
    """Hidden reasoning tokens, included in `output_tokens`."""
    pictures: int
    """Number of pictures of the question; 0 also when the file does not state them."""
    pictures_sent: int
    """Number of these pictures that the agents saw."""
    picture_names: str
    """Names of the pictures in the order of the prompts, separated by `; `."""
    epoch: int
    """Epoch number, from 1."""
    content: int
    """Digest of the question, options and right option, independent of option order. Without
    options: of the question, or of its id and right letter if the file has no text."""
    options: int
    """Number of options of the question; 0 when the file does not hold them."""
    order: str
    """Data set letters of the options in presented order, such as `CADB`; empty when unknown."""
    by_text: str
    """Presented letters of the options, sorted by text, such as `CADB`: the same place is the same
    option in all files. Empty when the file does not hold the options."""
    alike: tuple[tuple[str, ...], ...]
    """Presented letters of each group of options that have the same text; nearly always empty.
    Options without a text or a picture are no group: what they show is not known."""
    confidence: float | None
    """Stated confidence in the answer, from 0 to 1."""
    routed_by: str
    """Origin of the level; empty when the file does not state it."""
    first_opinions: tuple[str, ...]
    """Presented letter of each expert before any debate, or of each team's report; of options with
    the same text, that of `one_of`."""
    last_opinions: tuple[str, ...]
    """Presented letter of each expert at the end, or of each team's report; of options with the
    same text, that of `one_of`."""
    disagrees: bool
    """Whether the program that wrote the record parsed another letter."""
    lacks: tuple[str, ...]
    """How turns ended that failed and that the team went on without: each status once, sorted."""
    summarised: QuestionFigures | None
    """EXAID's results; None when EXAID was off or has not finished the question."""
    fields: tuple[tuple[str, str], ...]
    """Name and value of the data set's fields that the record keeps, such as a subject."""
    place: int = field(compare=False)
    """Place of the record, as accepted by `ResultFile.fetch`."""
    attempt: int = field(compare=False)
    """Number of the record among those of its question, from 1, where EXAID's part is stored
    separately; number of the reply where the record has several."""

    @property
    def item(self) -> Item:
        """Question id and epoch of the row."""
        return self.question_id, self.epoch

    @property
    def compared_by(self) -> tuple[int, str]:
        """What rows of several runs must share to be compared.

        It is `content`, and without options the right letter too, which in one run may differ
        between epochs that show the options in another order.
        """
        return self.content, "" if self.options else self.label

    @property
    def source_label(self) -> str:
        """Letter of the right option in the data set; as presented when `order` is unknown."""
        return self._in_source(self.label)

    @property
    def right_letters(self) -> tuple[str, ...]:
        """Presented letters that count as right; several if options have the same text."""
        return next((letters for letters in self.alike if self.label in letters), (self.label,))

    @property
    def chance(self) -> float | None:
        """Probability that a guess is right; None when the file does not hold the options."""
        return len(self.right_letters) / self.options if self.options else None

    @property
    def choice(self) -> str:
        """What was chosen, independent of option order; the same for options with the same text.

        Empty without an answer. Where the file does not hold the options, it is the letter.
        """
        if self.status != Status.ANSWERED or self.correct:
            return "right" if self.correct else ""
        same = next((letters for letters in self.alike if self.response in letters), self.response)
        place = min(map(self.by_text.find, same))
        return str(place) if place >= 0 else self.response

    def one_of(self, letter: str) -> str:
        """Return the letter that stands for all options with the same text as a letter's option.

        It is that of the answer if it has this text, else the first.
        """
        return _one_of(letter, self.alike, self.response)

    def shown_in(self, other: ScoredRow) -> str:
        """Return the letter at which another row of the question presents the answer.

        Empty without an answer. Where a file does not hold the options, it is the letter given.
        """
        if self.status != Status.ANSWERED:
            return ""
        place = self.by_text.find(self.response)
        return other.by_text[place] if 0 <= place < len(other.by_text) else self.response

    def letter_in(self, other: ScoredRow) -> str:
        """Return the letter of the answer in the data set of another row of the question.

        As that row presents it where the order of its data set is unknown; empty without an answer.
        """
        return other._in_source(self.shown_in(other))

    def _in_source(self, letter: str) -> str:
        place = LETTERS.index(letter) if letter else len(self.order)
        return self.order[place : place + 1] or letter


Naming = Callable[[str, int], str]
"""Function from (id in the record or empty, digest of the question) to the id of the row."""


def _word(value: object) -> str:
    """Return a value as text, empty for None; cached, since few values differ."""
    return _plain(value) if isinstance(value, str) else _plain(str(value or ""))


_plain = lru_cache(maxsize=4096)(plain)


def make_row(
    record: Mapping[str, Any],
    status: Status,
    naming: Naming,
    *,
    number: int,
    place: int,
    attempt: int,
    where: str,
    gold: str,
    states_letter: bool = False,
) -> ScoredRow:
    """Score a record.

    Args:
        record: Element of our JSON array; those of other programs lack fields. `is_cut_off` marks
            a reply that reached a limit of tokens.
        status: Outcome of the question.
        naming: Function that assigns the id of the row.
        number: Number of the record in its file, from 1: what identifies the question of a record
            that holds neither its text, nor an id, nor options.
        place: Place of the record.
        attempt: Number of the record among those of its question, from 1.
        where: Prefix of messages.
        gold: Name of the field with the right option, for messages.
        states_letter: Whether the letter of an answer is read from `predicted`; otherwise it is
            parsed from the text of the response alone.

    Raises:
        SeveralRightError: More than one option is right.
        ConfigError: A field is wrong or missing; the message names it.
    """
    pictures = entries_of(record, "pictures")
    options, label = _marked(
        record, has_all=bool(pictures) or states_letter, where=where, gold=gold
    )
    letter, method = None, ""
    if status == Status.ANSWERED:
        read_from = _stated if states_letter else _parsed
        letter, method = read_from(record, options, where)
        if letter is None:
            status = Status.TRUNCATED if record.get("is_cut_off") is True else Status.PARSE_ERROR
    texts = {shown: text.strip() for shown, text in options.items()}
    question = text_of(record, "question")
    gold_text = texts[label] if texts else "" if question else label
    alike = _alike(texts, pictures) if len(set(texts.values())) < len(texts) else ()
    right = next((letters for letters in alike if label in letters), (label,))
    stated_id = id_of(record)
    in_source = object_of(record, "permutation")
    letters: Collection[str] = texts
    if pictures:  # equal texts stay in the order of the data set
        letters = sorted(texts, key=lambda shown: str(in_source.get(shown, shown)))
    by_text = "".join(sorted(letters, key=texts.__getitem__))
    content = content_digest(
        question or stated_id or ("" if texts else f"record {number}"),
        [texts[shown] for shown in by_text],
        gold_text,
    )
    first, last = opinions_of(record, options)
    if alike:
        first, last = (
            tuple([_one_of(held, alike, letter) for held in of_all]) for of_all in (first, last)
        )
    usage = object_of(record, "token_usage")
    read, written, both = tokens_of(usage)
    return ScoredRow(
        question_id=naming(stated_id, content),
        label=label,
        response=letter or (PARSE_ERROR_MARK if status == Status.PARSE_ERROR else ""),
        difficulty=_word(record.get("difficulty")),
        input_tokens=read,
        output_tokens=_shared(written),
        total_tokens=both,
        correct=letter in right,
        status=status.value,
        parse_method=method,
        exaid_tokens=count_of(
            object_of(object_of(record, "exaid"), "token_usage").get("total_tokens")
        ),
        cost_usd=amount_of(usage.get("cost_usd")),
        wall_seconds=amount_of(record.get("wall_seconds")),
        calls=count_of(record.get("calls")),
        reasoning_tokens=count_of(usage.get("reasoning_tokens")),
        pictures=len(pictures),
        pictures_sent=sum([bool(one.get("sha256")) for one in pictures]),
        picture_names=plain("; ".join([text_of(one, "name") for one in pictures])),
        epoch=epoch_of(record.get("epoch")),
        content=content,
        options=len(options),
        order=_shared("".join([str(in_source.get(shown, shown)) for shown in options]))
        if in_source and LETTERS.startswith("".join(options))
        else "",
        by_text=_shared(by_text),
        alike=_shared(alike),
        confidence=_shared(confidence_of(record.get("confidence"))),
        routed_by=_word(record.get("routed_by")),
        first_opinions=_shared(first),
        last_opinions=_shared(last),
        disagrees="predicted" in record
        and record["predicted"] != letter
        and _is_another(record["predicted"], letter, options, alike),
        lacks=_shared(_lacks(record)) if states_letter else (),
        summarised=_shared(question_figures(record)),
        fields=_shared(fields_of(record)),
        place=place,
        attempt=attempt,
    )


def _marked(
    record: Mapping[str, Any], *, has_all: bool, where: str, gold: str
) -> tuple[Mapping[str, str], str]:
    """Return the options of a record, and the letter of the right one.

    Args:
        record: Element of our JSON array.
        has_all: Whether options without a text are options too: those of a run, or of pictures.
        where: Prefix of messages.
        gold: Name of the field with the right option, for messages.

    Raises:
        SeveralRightError: More than one option is right.
        ConfigError: A field is wrong or missing; the message names it.
    """
    options = options_of(record.get("options"))
    if options is None and is_listed(record.get("options")):
        raise ConfigError(
            f"{where}: the letters of 'options' are not A, B, …, or can be read in several ways: "
            "give an object with letters"
        )
    if options is None:
        raise ConfigError(
            f"{where}: 'options' must be an object with letters from A to J, or a list of at most "
            f"{len(LETTERS)} texts"
        )
    label = gold_of(record.get("label"), options)
    if not has_all:
        shown = shown_options(options)
        options = shown if len(shown) > 1 and label in shown else options
    if label is None and names_several(record.get("label"), options):
        raise SeveralRightError(f"{where}: '{gold}' names several of its options")
    if label is None:
        stated = reprlib.repr(record.get("label"))
        raise ConfigError(f"{where}: '{gold}' is {stated} and names none of its options")
    return options, label


def _stated(record: Mapping[str, Any], options: Mapping[str, str], where: str) -> tuple[str, str]:
    """Return the letter that a record states, and how it was read.

    Raises:
        ConfigError: It names no option.
    """
    letter = record["predicted"]
    if not isinstance(letter, str) or letter not in options:
        raise ConfigError(
            f"{where}: 'predicted' is {reprlib.repr(letter)} and names none of its options"
        )
    return letter, RECORDED


def _parsed(
    record: Mapping[str, Any], options: Mapping[str, str], where: str
) -> tuple[str | None, str]:
    """Return the letter that is parsed from a record's reply, and how; None if it holds none.

    Raises:
        ConfigError: There is no reply.
    """
    if "response" not in record:
        raise ConfigError(f"{where}: 'response' is missing; it must hold the reply")
    from mdagents_llm.answers import parse_answer  # its many patterns take time to compile

    text = answer_text(record["response"])
    if text is None:
        response = record["response"]
        names = f" ({reprlib.repr(list(response))[1:-1]})" if isinstance(response, dict) else ""
        raise ConfigError(
            f"{where}: it is not clear which field of 'response' holds the answer{names}; call it "
            "'final_answer'"
        )
    parsed = parse_answer(text, options or _ANY_LETTER)
    return parsed.letter, parsed.method.value


def _lacks(record: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(sorted({text_of(turn, "status") for turn in entries_of(record, "left_out")}))


def _is_another(stated: Any, letter: str | None, options: Mapping[str, str], alike: _Alike) -> bool:
    """Return whether a field states a letter, in one of many forms, and another one."""
    if not isinstance(stated, str):
        return False
    named = gold_of(stated, options) or letter_marked(stated)
    return bool(named) and _one_of(named, alike, letter) != letter


def _alike(texts: Mapping[str, str], pictures: Sequence[Mapping[str, Any]]) -> _Alike:
    """Return the letters of each group of options that have the same text and pictures, if any."""
    groups: dict[object, list[str]] = {}
    for letter, text in texts.items():  # options of pictures alone have the same text
        shown = _pictures_of(letter, pictures)
        if text or shown:
            groups.setdefault((text, *shown), []).append(letter)
    return tuple([tuple(letters) for letters in groups.values() if len(letters) > 1])


def _one_of(letter: str, alike: _Alike, answer: str | None) -> str:
    for letters in alike:
        if letter in letters:
            return answer if answer in letters else letters[0]
    return letter


def _pictures_of(letter: str, pictures: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return what distinguishes the pictures of an option: (name, identity) of each."""
    return [
        (text_of(one, "name"), text_of(one, "sha256"))
        for one in pictures
        if one.get("option") == letter
    ]
