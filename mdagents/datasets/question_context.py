"""Finds the text that a question is about, such as a case or an abstract, in a field of its own."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from functools import lru_cache
from itertools import chain
from typing import Any

from exaid_core.tokenizer import count_words
from mdagents.datasets.field_names import plain
from mdagents.datasets.own_forms import list_in
from mdagents_llm.errors import ConfigError

_NAMES = frozenset({"context", "contexts", "passage", "article"})
"""Names of such fields, as in PubMedQA, MediQ, AGIEval and RACE; normalized by `plain`."""
_LETTER = r"(?:option\W{0,2})?\(?(?P<letter>(?-i:[A-J])|[a-j](?=['’)]))"
_END = (
    r"(?=\s*(?:\Z|\n|[)\]'’:,;(\[。，；：）]|[-–—]\s|\.\s*(?:\Z|(?-i:[^a-z\s])))"
    r"|\s(?:because|since)\b)"
)
"""End of the mention of an option; `C. difficile`, `C-reactive` and `C vitamins` are texts."""
_SENTENCE = r"(?:^|(?<=[.!?]\s))\W{0,3}"
_ANSWER = re.compile(
    rf"{_SENTENCE}(?:ans(?:wer)?(?:\s?[.:=-]|\s(?:is|key)\b|\s?(?=\()){{1,3}}"
    r"|(?:the )?(?:correct|right|best) (?:answer|option|choice)\b(?: is)?"
    r"|(?:respuesta|resposta|réponse|antwort|đáp án|ответ)(?: correct?[ae]| đúng)?"
    rf"(?: là| est| ist| es|\s?[:：.=-])|(?:正确)?答案[是为]?|正解)"
    rf"\W{{0,3}}{_LETTER}(?P<end>{_END})?",
    re.IGNORECASE | re.MULTILINE,
)
_VERDICT = re.compile(
    rf"(?:{_SENTENCE}|\()(?:option|choice|answer) \(?(?P<letter>(?-i:[A-J]))\)? (?:is|was) "
    rf"(?:correct|right|the (?:correct|right|best) (?:answer|option|choice))(?P<end>\b{_END})",
    re.IGNORECASE | re.MULTILINE,
)
"""Statements of the right option, as in an explanation of the answer."""
_ADDRESS = re.compile(r"\s*\w+://\S+\s*")


@lru_cache(maxsize=256)  # the records of a file have the same fields
def is_context(name: str) -> bool:
    """Return whether a field is named like one with the text that a question is about."""
    return plain(name) in _NAMES


def with_context(
    record: Mapping[str, Any], question: str, options: Mapping[str, object], where: str
) -> str:
    """Return a question after the text that it is about, unless it repeats that text.

    Args:
        record: Record as published. The text is a string, a list of strings, or an object with
            such a list as `contexts`, or with strings; in a table, a cell with one of these. A
            number or a single word, such as an id or an address, is no text.
        question: Text of the question.
        options: Letter -> text.
        where: File and line, for error messages.

    Raises:
        ConfigError: The field holds something else, or states the right option.
    """
    found: list[str] = []
    for name in filter(is_context, record):
        texts = _texts(record, name, where)
        if said := next(filter(None, (_said(text, options) for text in texts)), ""):
            raise ConfigError(
                f"{where}: field '{name}' gives the answer away ({reprlib.repr(said)}); "
                "it would stand before the question: give it another name"
            )
        found += texts
    asked = " ".join(question.split())
    return "\n".join([*(text for text in found if " ".join(text.split()) not in asked), question])


def _said(text: str, options: Mapping[str, object]) -> str:
    """Return the words of a text that state the right option; empty without any."""
    for found in chain(_ANSWER.finditer(text), _VERDICT.finditer(text)):
        option = options.get(found["letter"].upper())
        is_stated = found["end"] is not None or (
            option and text[found.end() :].lstrip().casefold().startswith(str(option).casefold())
        )
        if option is not None and is_stated:
            return found[0].strip()
    return ""


def _texts(record: Mapping[str, Any], name: str, where: str) -> list[str]:
    value = record[name]
    if isinstance(value, str):
        listed = list_in(value)
        if listed is None and value.lstrip()[:11].lower() in ("{'contexts'", '{"contexts"'):
            raise _unreadable(name, where)  # as pandas writes an object with arrays
        value = value if listed is None else listed
    if isinstance(value, dict):
        named = [part for name, part in value.items() if plain(name) == "contexts"]
        value = named[0] if named else list(value.values())
    if value is None or isinstance(value, int | float):
        return []
    if isinstance(value, str):
        is_text = count_words(value) > 1 and not _ADDRESS.fullmatch(value)
        return [value] if is_text else []
    texts = [_joined(part) for part in value if part is not None]
    if not all(isinstance(text, str) for text in texts):
        raise _unreadable(name, where)
    return list(filter(str.strip, texts))


def _joined(part: object) -> Any:
    """Return a section as one text, given its heading and its text; anything else unchanged."""
    if isinstance(part, list) and all(isinstance(text, str) for text in part):
        return ": ".join(part)
    return part


def _unreadable(name: str, where: str) -> ConfigError:
    return ConfigError(
        f"{where}: field '{name}' must be a text or a list of texts, which stands before the "
        "question; give it another name if it is not part of the question"
    )
