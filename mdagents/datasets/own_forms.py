"""Reads user-supplied questions: options in a list or columns, the answer by letter or text.

The number of the right option is read only from a field whose name says whether it counts from 0 or
1. Any other number is rejected, even where most authors would count from 0: a wrong gold label is
worse than a rejection.
"""

from __future__ import annotations

import ast
import re
import reprlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from mdagents.datasets.field_names import (
    ANSWERS,
    COLUMN,
    COUNTED,
    NUMBERED,
    OTHER_ANSWERS,
    names_right_option,
    plain,
)
from mdagents.datasets.option_letters import (
    label_of,
    letter_marked,
    letters_in_list,
    letters_meant,
    with_letters,
    without_labels,
)
from mdagents.datasets.questions import LETTERS
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.json_text import load_json

Record = Mapping[str, Any]

_LISTS = ("options", "choices")
"""Fields with all options."""
_ARC = frozenset({"text", "label"})
_HEADQA = frozenset({"aid", "atext"})
_ELEVENTH = re.compile(r"(?:option|choice|op)?k")
_NUMBER = re.compile(r"[-+]?\d+(?:\.0*)?")


def has_answer(record: Record) -> bool:
    """Return whether a record has a field named like one with the right option."""
    return any(map(names_right_option, record))


def empty_answer(record: Record) -> str | None:
    """Return the first empty field that is named like one with the right option; None without."""
    names = filter(names_right_option, record)
    empty = (name for name in names if record[name] is None or not str(record[name]).strip())
    return next(empty, None)


def in_own_form(record: Record, where: str) -> Record:
    """Return `question`, `options` (letter -> text) and `answer_idx` (letter) as far as they exist.

    Args:
        record: Record with field names in any case.
        where: File and line, for error messages.

    Raises:
        ConfigError: The right option is ambiguous or invalid; the message names the field.
    """
    record = _with_letters_for_labels(_with_one_answer(record))
    numbered = letters_of_numbers(record)
    record = _with_letters_for_numbers(record, numbered)
    options, order = _options(record, where)
    if numbered:
        order = list(numbered.values())
    if isinstance(options, dict) and all(isinstance(text, str) for text in options.values()):
        options = without_labels(options)
    read: dict[str, Any] = {"options": options}
    asked = [text for name, text in record.items() if plain(name) == "question"]
    if asked and "question" not in record:
        read["question"] = asked[0]
    if isinstance(options, dict) and len(options) > 1:
        read |= _right(record, options, order, where)
    return read


def _with_one_answer(record: Record) -> Record:
    """Return a record with the only element of a list of right options instead of the list."""
    only: dict[str, Any] = {}
    for name in filter(names_right_option, record):
        answers = record[name]
        if isinstance(answers, str):
            listed = list_in(answers)
            is_list = isinstance(listed, list) and all(isinstance(one, str) for one in listed)
            # In a table, `[1]` may be the text of an option.
            answers = listed if is_list or plain(name) in COUNTED else None
        if isinstance(answers, list) and answers:
            only[name] = answers[0] if len(answers) == 1 else answers
    return {**record, **only} if only else record


def _with_letters_for_labels(record: Record) -> Record:
    """Return a record with letters for the labels of its options, which may be numbers.

    Its options are an object with the lists `text` and `label`, as in ARC, a list of objects with
    `aid` and `atext`, as in HEAD-QA, or an object with consecutive numbers as keys, as in MedExpQA.
    The answer is a label.
    """
    for name, options in record.items():
        if plain(name) not in _LISTS:
            continue
        if isinstance(options, str):
            options = list_in(options)
        labeled = _labels_and_texts(options)
        if labeled is None:
            continue
        labels, texts = labeled
        letters = dict(zip(labels, LETTERS, strict=False))
        if len(letters) == len(labels) == len(texts):
            answers = {
                answer: letters.get(_whole(record[answer]), "")
                for answer in record
                if names_right_option(answer) and plain(answer) not in COUNTED
            }
            by_letter = dict(zip(letters.values(), texts, strict=True))
            named = {answer: letter for answer, letter in answers.items() if letter}
            if not (isinstance(options, dict) and options.keys() == _ARC):
                # A number in a table may be the text of another option.
                named = {
                    of: it for of, it in named.items() if _meant(record[of], by_letter) <= {it}
                }
            return {**record, name: by_letter, **named}
    return record


def _labels_and_texts(options: object) -> tuple[list[str], list[object]] | None:
    """Return the labels of options and their texts; None if they have no labels of their own."""
    if isinstance(options, list) and options:
        if not all(isinstance(option, dict) and option.keys() >= _HEADQA for option in options):
            return None
        return [str(option["aid"]) for option in options], [one["atext"] for one in options]
    if not isinstance(options, dict):
        return None
    if options.keys() == _ARC:
        texts, labels = options["text"], options["label"]
        if isinstance(texts, list) and isinstance(labels, list):
            return list(map(str, labels)), texts
    keys = list(map(str, options))  # in a table, Python may write numbers: {1: 'Iron'}
    numbers = sorted(int(key) for key in keys if key.isdecimal() and len(key) < 3)
    if numbers in ([*range(len(options))], [*range(1, len(options) + 1)]):
        by_number = {int(key): text for key, text in options.items()}
        return list(map(str, numbers)), [by_number[number] for number in numbers]
    return None


def _whole(value: object) -> str:
    """Return a value as text, and a whole number as pandas writes it (3.0) without its point."""
    text = str(value).strip()
    return text.partition(".")[0] if _NUMBER.fullmatch(text) else text


def letters_of_numbers(record: Record) -> dict[str, str]:
    """Return column -> letter for the columns `option1`, …, as `plain` spells them.

    The numbers run from 0 or 1 without a gap, beside no other options; else the result is empty.
    """
    numbered = {int(of[1]): of[0] for name in record if (of := NUMBERED.fullmatch(plain(name)))}
    numbers = sorted(numbered)
    has_gap = numbers[:1] not in ([0], [1]) or numbers[-1] - numbers[0] >= len(numbers)
    is_twice = len(numbers) < sum(bool(NUMBERED.fullmatch(plain(name))) for name in record)
    others = (COLUMN.fullmatch(plain(name)) or plain(name) in _LISTS for name in record)
    if has_gap or is_twice or any(others):
        return {}
    in_order = [numbered[number] for number in numbers]
    if len(in_order) > len(LETTERS):
        return {}
    texts = {plain(name): text for name, text in record.items()}
    letters = letters_in_list([texts[name] for name in in_order]) or LETTERS
    return dict(zip(in_order, letters, strict=False))


def _with_letters_for_numbers(record: Record, letters: Mapping[str, str]) -> Record:
    """Return a record with `option_a`, … for its columns `option1`, …, also as an answer.

    A number alone as an answer stays ambiguous.

    Args:
        record: Record with field names in any case.
        letters: Column -> letter, from `letters_of_numbers`.
    """
    read: dict[str, Any] = {}
    for name, value in record.items():
        if letter := letters.get(plain(name)):
            read[f"option_{letter.lower()}"] = value
        elif letters and names_right_option(name) and isinstance(value, str):
            read[name] = letters.get(plain(value), value)
        else:
            read[name] = value
    return read


def lettered(texts: object) -> object:
    """Return letter -> text for a list of texts; return any other value unchanged."""
    if isinstance(texts, list) and len(texts) <= len(LETTERS):
        return dict(zip(LETTERS, texts, strict=False))
    return texts


def list_in(text: str) -> object:
    """Return the list or the object in a cell of a table, as JSON, Python or pandas writes it.

    Returns:
        The list or the object; None if the text is neither.
    """
    if text.strip()[:1] not in ("[", "{"):
        return None
    try:
        return load_json(text, "")
    except ConfigError:
        pass
    if len(text) > _LONGEST_LIST:
        return None
    try:
        text = _END_OF_ARRAY.sub("]", _ARRAY.sub("[", text.strip()))
        tree = ast.parse(text, mode="eval")
        if apart := _texts_apart(tree.body, text):
            return apart
        return ast.literal_eval(tree)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


_LONGEST_LIST = 100_000  # characters of a list as Python writes it
_ARRAY = re.compile(r"\barray\(\[")
_END_OF_ARRAY = re.compile(r"(?<=['\"])\](?:,\s*dtype=\w+)?\)")
_TEXT_OF_NUMPY = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)


def _texts_apart(node: ast.expr, text: str) -> list[str]:
    """Return the texts of an array as numpy prints it, without commas; empty for other lists.

    Python takes texts without a comma between them for one.
    """
    if not (isinstance(node, ast.List) and len(node.elts) == 1):
        return []
    found = _TEXT_OF_NUMPY.findall(text)
    is_all = not _TEXT_OF_NUMPY.sub("", text).strip("[] \n")
    return [ast.literal_eval(one) for one in found] if is_all and len(found) > 1 else []


def text_of_option(option: object, letter: str = "") -> object:
    """Return the text of an option that may be an object; empty if the object has none.

    Args:
        option: Text, or object.
        letter: Field that holds the letter, and not the text.
    """
    if not isinstance(option, dict):
        return option
    texts = (option[name] for name in _TEXTS if name != letter and option.get(name) is not None)
    return next(texts, "")


def letters_of_options(options: Sequence[object]) -> tuple[str, list[str]]:
    """Return (field, letters) by which options that are objects name themselves; empty without."""
    for name in _LETTERS:
        found = [option.get(name) if isinstance(option, dict) else None for option in options]
        letters = list(map(letter_marked, map(str, found)))
        if all(letters) and len({*letters}) == len(letters):
            return name, letters
    return "", []


def from_objects(options: Sequence[object]) -> dict[str, object] | list[object]:
    """Return letter -> text for options that are objects; a list of texts without letters."""
    field, letters = letters_of_options(options)
    texts = [text_of_option(option, field) for option in options]
    return dict(zip(letters, texts, strict=True)) if letters else texts


def _lines_in(text: str) -> list[str] | dict[str, str]:
    """Return the options of a cell with a lettered option in each line; empty without letters.

    Rarer labels (`A铁` with any mark or a space, as in CMExam) are letters if all are in order.

    Without letters, a line may be the rest of the option above it, and shift those below.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) < 2 or len(lines) > len(LETTERS):
        return []
    if all(map(_LINE_LABEL.match, lines)):
        return lines
    labels = [label_of(line) for line in lines]
    if not all(labels):
        labels = [(line[0], line[2:].strip()) if line[1:2] == " " else None for line in lines]
    texts = dict(filter(None, labels))
    in_order = "".join(texts) == LETTERS[: len(lines)]
    return texts if in_order and len({*texts.values()}) == len(lines) else []


_LINE_LABEL = re.compile(r"\(?[A-Ja-j][).:]\s")
_TEXTS = ("text", "content", "value", "label", "option", "description")  # names of a text
_LETTERS = ("key", "letter", "label", "id", "option", "value")  # names of a letter


def _options(record: Record, where: str) -> tuple[object, Sequence[str]]:
    """Return (letter -> text of the options, their letters in the order of a list or object).

    The letters of columns are in alphabetical order.
    """
    columns = _columns(record, where)
    for name, options in record.items():
        if plain(name) in _LISTS:
            if isinstance(options, str):
                options = list_in(options) or _lines_in(options) or options
            if isinstance(options, list) and all(isinstance(option, dict) for option in options):
                options = from_objects(options)
                if not any(options.values() if isinstance(options, dict) else options):
                    raise ConfigError(
                        f"{where}: field '{name}' holds objects without a text: give each option a "
                        "letter (key) and a text (value)"
                    )
            order: Sequence[str] = ()
            if isinstance(options, dict):
                options = with_letters(options)
                order = list(options)
            elif isinstance(options, list) and len(options) <= len(LETTERS):
                named = letters_in_list(options)
                if named is None:
                    raise ConfigError(
                        f"{where}: the texts of field '{name}' begin with letters in another "
                        "order, which may be labels or part of names: give an object with letters"
                    )
                order = list(named)
                options = dict(sorted(named.items()))
            if isinstance(options, dict):
                both = [letter for letter in columns if columns[letter] and letter in options]
                differ = [_words(columns[letter]) != _words(options[letter]) for letter in both]
                if len(both) > 1 and any(differ):
                    fields = ", ".join(both)
                    raise ConfigError(f"{where}: field '{name}' differs from the fields {fields}")
            return options, order
    return columns or None, list(columns)


def _words(text: object) -> list[str]:
    return str(text).split()


def _columns(record: Record, where: str) -> dict[str, object]:
    """Return letter -> text of the options that have a field each."""
    columns: dict[str, object] = {}
    for name, text in record.items():
        if column := COLUMN.fullmatch(plain(name)):
            letter = column[1].upper()
            if letter in columns:
                raise ConfigError(f"{where}: field '{name}' is a second one for option {letter}")
            columns[letter] = text
    beyond = [name for name in record if _ELEVENTH.fullmatch(plain(name)) and record[name]]
    if beyond and len(columns) == len(LETTERS):
        raise ConfigError(
            f"{where}: field '{beyond[0]}' is option {len(LETTERS) + 1}, but a question may have "
            f"at most {len(LETTERS)}"
        )
    return dict(sorted(columns.items()))


def _right(record: Record, options: Mapping[str, Any], order: Sequence[str], where: str) -> Record:
    given = {
        name: value
        for name, value in record.items()
        if names_right_option(name) and value not in (None, "")
    }
    agreeing = [name for name in given if plain(name) in ANSWERS]
    names = agreeing or sorted(given, key=lambda name: OTHER_ANSWERS.index(plain(name)))[:1]
    firm = [name for name in names if plain(name) != "answer"] or names
    letters = {name: _letter(name, given[name], options, order, where) for name in firm}
    read: dict[str, Any] = {}
    if letters:
        read["answer_idx"] = next(iter(letters.values()))
    for name in names:
        # Next to another field, `answer` is redundant. A text that matches no option is kept, so
        # that the caller can compare it with the right one.
        meant = _meant(given[name], options)
        if name in firm or not meant.isdisjoint(letters.values()):
            read |= {"answer": None} if plain(name) == "answer" else {}
        elif letter_marked(str(given[name])):
            letters[name] = _letter(name, given[name], options, order, where)
    for name in (name for name in given if name not in names):  # it may mean something else
        with suppress(ConfigError):
            letters[name] = _letter(name, given[name], options, order, where)
    if len({*letters.values()}) > 1:
        said = " and ".join(f"field '{name}' is option {of}" for name, of in letters.items())
        raise ConfigError(f"{where}: {said}; one of them is wrong")
    return read


def _letter(
    name: str, value: Any, options: Mapping[str, Any], order: Sequence[str], where: str
) -> str:
    """Return the letter of the option that a field marks as right."""
    field = f"{where}: field '{name}' is {reprlib.repr(value)}"
    text = "" if isinstance(value, bool) else " ".join(str(value).split())
    first = COUNTED.get(plain(name))
    if _NUMBER.fullmatch(text):
        if first is None:
            raise ConfigError(
                f"{field}, and the first option may be 0 or 1: write the letter, or name the field "
                "answer_index (first option 0) or answer_number (first option 1)"
            )
        place = float(text) - first
        if not 0 <= place < len(options):
            raise ConfigError(f"{field} but must be {first} to {len(options) - 1 + first}")
        if order[int(place)] != list(options)[int(place)]:
            raise ConfigError(
                f"{field}, and the options carry letters in another order: write the letter"
            )
        return order[int(place)]
    if isinstance(value, list) and len(value) > 1:
        raise ConfigError(f"{field}: {_SEVERAL}")
    if first is not None or not isinstance(value, str):
        raise ConfigError(
            f"{field} but must be {'a letter' if first is None else 'a whole number'}"
        )
    if plain(name) == "answeridx" and (letter := letter_marked(text)) in options:
        return letter
    meant = _meant(value, options)
    if len(meant) > 1:
        letters = " or ".join(sorted(meant))
        raise ConfigError(f"{field}, which may be {letters}: write the letter into answer_idx")
    if not meant and _names_several(text, options):
        raise ConfigError(f"{field}: {_SEVERAL}")
    if not meant:
        text = "" if plain(name) == "answeridx" else ", or the text of one option"
        raise ConfigError(f"{field} but must be one of {', '.join(options)}{text}")
    return meant.pop()


_SEVERAL = "more than one option is right, and a question may have one: leave such records out"
_LETTERS_APART = re.compile(r"[A-Ja-j](?:(?: ?[,;|/&+、，；] ?| and | )[A-Ja-j])+")


def _names_several(text: str, options: Mapping[str, Any]) -> bool:
    """Return whether a text is the letters of several options: `BCD`, `A, C` or `b|c|d`."""
    are_apart = _LETTERS_APART.fullmatch(text) is not None
    letters = re.findall(r"\b[A-J]\b", text.upper()) if are_apart else sorted({*text})
    return (are_apart or text == "".join(letters)) and len(letters) > 1 and {*letters} <= {*options}


def _meant(value: object, options: Mapping[str, Any]) -> set[str]:
    """Return the letters of the options that a letter or a text may mean."""
    return letters_meant(value, options) if isinstance(value, str) else set()
