"""How one record is scored."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol, TypeVar, cast

from mdagents.answers import parse_answer
from mdagents.datasets.questions import LETTERS
from mdagents.scoring.exaid_figures import Summarised, summarised
from mdagents.scoring.fields import (
    answer_text,
    confidence_of,
    content_digest,
    count_of,
    gold_of,
    id_of,
    number_of,
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


class _Sharing(Protocol):
    def __call__(self, value: T, /) -> T: ...


# Reuses an equal earlier value, as the records of a large file have few different ones.
_shared = cast("_Sharing", lru_cache(maxsize=4096)(lambda value: value))

Item = tuple[str, int]
"""(question id, epoch)"""

PARSE_ERROR_MARK = "X"
"""Stands in the column `response` where a reply holds no answer."""

_ANY_LETTER = dict.fromkeys(LETTERS, "")


@dataclass(slots=True)  # frozen, making one takes three times as long, and there are many
class ScoredRow:
    """One question as it is scored: first the columns of the CSV, in their order."""

    question_id: str
    label: str
    response: str
    """The parsed letter, `X` for a parse error, empty for any other status without an answer."""
    difficulty: str
    input_tokens: int | None
    """None, like every figure below, when the file does not hold it."""
    output_tokens: int | None
    total_tokens: int | None
    correct: bool
    """1 or 0 in the CSV."""
    status: str
    parse_method: str
    exaid_tokens: int | None
    cost_usd: float | None
    wall_seconds: float | None
    calls: int | None
    reasoning_tokens: int | None
    """Those of `output_tokens` that were hidden reasoning."""
    epoch: int
    """From 1. This field and those below are not columns of the CSV."""
    content: int
    """Digest of question (of its id, where the file has no texts), options and right option,
    whatever the order of the options."""
    options: int
    """How many options the question has; 0 when the file does not hold them."""
    order: str
    """Letters in the data set of the options as presented, `CADB`; empty when not known."""
    right_letters: tuple[str, ...]
    """Presented letters that count as right: more than one where options have the same text."""
    source_label: str
    """Letter of the right option in the data set; as presented when `order` is not known."""
    source_response: str
    """Letter of the answer in the data set, likewise; empty without an answer."""
    confidence: float | None
    """Stated confidence in the answer, 0 to 1."""
    routed_by: str
    """Empty when the file does not state it."""
    first_opinions: tuple[str, ...]
    """Presented letter of each expert before any debate, or of each team's report."""
    last_opinions: tuple[str, ...]
    """The same at the end."""
    disagrees: bool
    """Whether the program that wrote the record read another letter."""
    summarised: Summarised | None
    """None when EXAID was off, or is not done with the question."""
    place: int = field(compare=False)
    """Where its record is, as `ResultFile.fetch` takes it."""
    attempt: int = field(compare=False)
    """Number of the record of its question, from 1, where EXAID's part is stored apart."""

    @property
    def item(self) -> Item:
        """The question and epoch of the row."""
        return self.question_id, self.epoch


COLUMNS = ScoredRow.__slots__[: ScoredRow.__slots__.index("epoch")]
"""Columns of the CSV, in order."""

Naming = Callable[[str, int], str]
"""(id that the record states or empty, digest of its question) -> id of the row."""


def _word(value: object) -> str:
    """Return a value as text, cached since few values differ; empty for None."""
    return _plain(value) if isinstance(value, str) else _plain(str(value or ""))


_plain = lru_cache(maxsize=4096)(plain)


def make_row(
    record: Mapping[str, Any],
    status: Status,
    naming: Naming,
    *,
    place: int,
    attempt: int,
    where: str,
    gold: str,
) -> ScoredRow:
    """Score a record.

    Args:
        record: An element of our JSON array; other programs' lack fields.
        status: What became of the question; `answered`: read the answer from the text of the
            response alone.
        naming: Gives the id.
        place: Of the record.
        attempt: Of the record.
        where: How messages begin.
        gold: The name of the field with the right option, for messages.

    Raises:
        ConfigError: A field is wrong or missing; names it.
    """
    options = options_of(record.get("options"))
    if options is None:
        raise ConfigError(
            f"{where}: 'options' must be an object with letters from A to J, or a list of texts"
        )
    label = gold_of(record.get("label"), options)
    if label is None:
        stated = reprlib.repr(record.get("label"))
        raise ConfigError(f"{where}: '{gold}' is {stated} and names none of its options")
    letter, method = None, ""
    if status == Status.ANSWERED:
        if "response" not in record:
            raise ConfigError(f"{where}: 'response' is missing; it must hold the reply")
        parsed = parse_answer(answer_text(record["response"]), options or _ANY_LETTER)
        letter, method = parsed.letter, parsed.method.value
        status = Status.ANSWERED if letter else Status.PARSE_ERROR
    texts = {shown: text.strip() for shown, text in options.items()}
    gold_text = texts.get(label, "")
    right = tuple([shown for shown, text in texts.items() if text == gold_text]) or (label,)
    stated_id = id_of(record)
    content = content_digest(text_of(record, "question") or stated_id, texts.values(), gold_text)
    in_source = object_of(record, "permutation")
    first, last = opinions_of(record, options)
    usage = object_of(record, "token_usage")
    read, written, both = tokens_of(usage)
    return ScoredRow(
        question_id=naming(stated_id, content),
        label=label,
        response=letter or (PARSE_ERROR_MARK if status == Status.PARSE_ERROR else ""),
        difficulty=_word(record.get("difficulty")),
        input_tokens=read,
        output_tokens=written,
        total_tokens=both,
        correct=letter in right,
        status=status.value,
        parse_method=method,
        exaid_tokens=count_of(
            object_of(object_of(record, "exaid"), "token_usage").get("total_tokens")
        ),
        cost_usd=number_of(usage.get("cost_usd")),
        wall_seconds=number_of(record.get("wall_seconds")),
        calls=count_of(record.get("calls")),
        reasoning_tokens=count_of(usage.get("reasoning_tokens")),
        epoch=count_of(record.get("epoch")) or 1,
        content=content,
        options=len(options),
        order=_shared("".join([str(in_source.get(shown, "")) for shown in options])),
        right_letters=_shared(right),
        source_label=_shared(str(in_source.get(label, label))),
        source_response=_shared(str(in_source.get(letter, letter))) if letter else "",
        confidence=confidence_of(record.get("confidence")),
        routed_by=_word(record.get("routed_by")),
        first_opinions=_shared(first),
        last_opinions=_shared(last),
        disagrees="predicted" in record and record["predicted"] != letter,
        summarised=_shared(summarised(record)),
        place=place,
        attempt=attempt,
    )
