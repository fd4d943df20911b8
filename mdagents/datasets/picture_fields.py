"""Reads the pictures of a record and binds each to the question or to an option.

Pictures are in fields (`image`, `image_2`, `images`), in options (`{"text": …, "image": …}`, or the
name of a file as the text), in content parts of the chat APIs, and in texts as Markdown or HTML.
Marks such as `<image 2>` say where a picture belongs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from mdagents.datasets.field_names import is_option_or_answer, plain
from mdagents.datasets.option_letters import letter_marked, letters_in_list
from mdagents.datasets.own_forms import (
    letters_of_numbers,
    letters_of_options,
    list_in,
    text_of_option,
)
from mdagents.datasets.parquet_rows import PLACE
from mdagents.datasets.pictures.detection import (
    Field,
    is_file,
    is_there,
    kind_of_field,
    mark_in,
    parts_of,
    picture_in,
    source_of_part,
)
from mdagents.datasets.pictures.places import NotThereError, find_in_parquet, find_picture
from mdagents.datasets.pictures.question_picture import MOST_PICTURES, QuestionPicture
from mdagents_llm.errors import ConfigError

Record = Mapping[str, Any]

LONGEST_CAPTION = 10_000
"""Maximum number of characters of a caption."""

_SLOT = re.compile(
    r"(?P<prefix>has|num|question|input|local|relevant|medical|context|main)?"
    r"(?P<stem>image|img|picture|pic|photograph|photo|figure|fig|video|media|attachment)s?"
    r"(?P<rest>.*)"
)
_SAME = {"img": "image", "pic": "picture", "fig": "figure", "photograph": "photo"}
_OF_OPTION = re.compile(
    r"(?:option|choice|op)?(?P<before>[a-j])(?:image|img|picture)(?:path|file|url)?"
    r"|(?:image|img|picture)(?:path|file|url)?(?:option|choice|op)?(?P<after>[a-j])"
)
"""Names of fields with the picture of an option: `image_a`, `A_image`, `option_a_image`."""
_OF_NUMBERED_OPTION = re.compile(
    r"(?P<before>(?:option|choice|op)\d{1,2})(?:image|img|picture)(?:path|file|url)?"
    r"|(?:image|img|picture)(?:path|file|url)?(?P<after>(?:option|choice|op)\d{1,2})"
)
_CONTENT = (
    "base64", "b64", "bytes", "data", "path", "file_name", "filename", "file", "src", "url", "uri",
    "image_url", "image", "img", "picture", "image_path", "img_path", "source",
)  # fmt: skip
"""Fields of a picture's object with its content or its place; the first that is found counts."""
_MARK = re.compile(
    r"\x00(?P<own>\d+)\x00"
    r"|<\|?(?:image|img|picture|figure)[ _]?(?P<number>\d{1,2})?\|?\s*/?>"
    r"|\[(?:image|img|picture)[ _#]?(?P<bracketed>\d{1,2})?\]"
    r"|<(?:img|image)\s[^<>]*?src\s*=\s*[\"']?(?P<src>[^\"'\s<>]+)[^<>]*>"
    r"|!\[(?P<alt>[^\]\n]*)\]\((?P<target>[^)\s]+)[^)\n]*\)"
    r"|(?P<uri>data:image/[\w.+-]+;base64,[A-Za-z0-9+/=]+)"
    r"|(?P<address>\bhttps?://[^\s<>\"']+\.(?:png|jpe?g|gif|webp|bmp|tiff?)\b)",
    re.IGNORECASE,
)
_TOO_MANY = f"it has more than {MOST_PICTURES} pictures"
_DEEPEST = 8  # lists and objects within each other around a picture


@dataclass(frozen=True, slots=True)
class FoundPictures:
    """The pictures of a record, and its texts without marks."""

    text: str
    options: Mapping[str, str]
    """Letter -> text."""
    pictures: tuple[QuestionPicture, ...]
    """Pictures of the question, then those of the options."""
    missing: str
    """Evidence of a picture that is not there; empty without one."""


def without_option_pictures(record: dict[str, Any]) -> tuple[dict[str, Any], dict[int, list[Any]]]:
    """Return the record with texts for options that are objects with a picture.

    Returns:
        The record, and position of the option -> what its object says of its pictures.
    """
    for name, options in record.items():
        if _holds_options(name):
            if isinstance(options, str):
                options = list_in(options)
            listed = list(options.values()) if isinstance(options, dict) else options
            if not isinstance(listed, list) or not any(map(_has_picture, listed)):
                return record, {}
            field, letters = letters_of_options(listed)
            texts = [text_of_option(option, field) for option in listed]
            pictures = {
                place: [option[one] for one in option if _is_picture_field(one)]
                for place, option in enumerate(listed)
                if _has_picture(option)
            }
            keys = list(options) if isinstance(options, dict) else letters
            labels = list(letters_in_list(texts) or ())
            if not keys and labels != sorted(labels):
                keys = labels  # pictures are found by place, so that this order is refused
            new = dict(zip(keys, texts, strict=True)) if keys else texts
            return {**record, name: new}, pictures
    return record, {}


@lru_cache(maxsize=256)  # the records of a file have the same fields
def _holds_options(name: str) -> bool:
    return plain(name) in ("options", "choices")


def _has_picture(option: object) -> bool:
    return isinstance(option, dict) and any(
        _is_picture_field(name) and is_there(value) for name, value in option.items()
    )


def _is_picture_field(name: str) -> bool:
    return kind_of_field(name) is Field.PICTURE


def read_pictures(
    record: Record,
    question: object,
    text: str,
    options: Mapping[str, str],
    of_options: Mapping[str, list[Any]],
    folder: Path | None,
    where: str,
) -> FoundPictures:
    """Return the pictures of a record, bound to its question and options.

    Args:
        record: Record as published.
        question: Value of the question: a text, or content parts.
        text: Text of the question.
        options: Letter -> text; empty if the option may be only a picture.
        of_options: Letter -> what the option's object says of its pictures.
        folder: Folder of the data set; None: only pictures in the record itself count.
        where: File and line, for error messages.

    Raises:
        ConfigError: A caption is too long, or a picture belongs to an option that does not exist.
    """
    evidence = picture_in(record, text, options)
    if not evidence and not of_options:
        return FoundPictures(text, options, (), "")
    reading = _Reading(folder, where, frozenset(options))
    reading.fields(record)
    reading.parts(record)
    for letter, values in of_options.items():
        for value in values:
            reading.add(value, f"option {letter}", option=letter)
    if isinstance(question, list):
        text = reading.text_with_marks(question)
    return reading.bound(text, options, evidence or "an option")


@dataclass(slots=True)
class _Reading:
    """The pictures of one record while it is read."""

    folder: Path | None
    where: str
    letters: frozenset[str]
    """Letters of the options."""
    pictures: list[QuestionPicture] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict)
    """Number in marks -> position in `pictures`."""
    missing: list[str] = field(default_factory=list)

    def fields(self, record: Record) -> None:
        """Read the fields of a record; several for one picture (its path, its address) are one."""
        slots: dict[tuple[str, str], list[tuple[str, object]]] = {}
        letters = letters_of_numbers(record)
        for name, value in record.items():
            if isinstance(value, bool | int | float) or is_option_or_answer(name):
                continue
            if not is_there(value):
                continue
            if of_option := _OF_OPTION.fullmatch(plain(name)):
                letter = (of_option["before"] or of_option["after"]).upper()
                self.add(value, f"field '{name}'", option=letter)
            elif (of_number := _OF_NUMBERED_OPTION.fullmatch(plain(name))) and (
                letter := letters.get(of_number["before"] or of_number["after"], "")
            ):
                self.add(value, f"field '{name}'", option=letter)
            elif _is_picture_field(name) or (kind_of_field(name) is Field.OTHER and is_file(value)):
                slots.setdefault(_slot(name), []).append((name, value))
        for slot, named in sorted(slots.items(), key=lambda one: int(one[0][1] or 0)):
            number = int(slot[1]) if slot[1] else None
            readings = [self._read(value, f"field '{name}'") for name, value in named]
            best = min(readings, key=lambda reading: (len(reading.missing), -len(reading.pictures)))
            if not best.pictures and not best.missing:
                continue
            if number is None or len(best.pictures) != 1:
                number = None
            for picture in best.pictures:
                self._add_picture(picture, number)
            self.missing += best.missing

    def parts(self, record: Record) -> None:
        """Read content parts in fields other than the question, whose parts are in its text."""
        for name, value in record.items():
            if name == "question" or kind_of_field(name) is Field.NOT_SHOWN:
                continue
            for part in parts_of(value):
                if (source := source_of_part(part)) is not None:
                    self.add(source, f"a part of field '{name}'")

    def text_with_marks(self, parts: list[Any]) -> str:
        """Return the text of the question's content parts with own marks for its pictures."""
        texts = []
        unnamed = 0
        for part in parts:
            if isinstance(part.get("text"), str):
                texts.append(part["text"])
            elif (source := source_of_part(part)) is not None:
                before = len(self.pictures)
                self.add(source, "a part of field 'question'")
                texts += [f"\x00{place}\x00" for place in range(before, len(self.pictures))]
            elif "image" in str(part.get("type")):  # the picture is in a field of its own
                texts.append("<image>" if unnamed < len(self.pictures) else "")
                unnamed += 1
        return "\n".join(filter(None, texts))

    def add(self, value: object, source: str, option: str = "") -> None:
        """Add the pictures of a value, or what is missing."""
        if option and option not in self.letters:
            self.missing.append(f"{source}: there is no option {option}")
            return
        read = self._read(value, source)
        for picture in read.pictures:
            self._add_picture(replace(picture, option=option or picture.option))
        self.missing += read.missing

    def _read(self, value: object, source: str) -> _Reading:
        read = _Reading(self.folder, self.where, self.letters)
        for item in _items(value):
            if len(read.pictures) + len(read.missing) > MOST_PICTURES:
                read.missing.append(f"{source}: {_TOO_MANY}")
                break
            try:
                read.pictures.append(self._picture(item))
            except NotThereError as error:
                read.missing.append(f"{source}: {error}")
        return read

    def _picture(self, item: object) -> QuestionPicture:
        if isinstance(item, str):
            return find_picture(item, self.folder)
        if not isinstance(item, dict):
            raise NotThereError("it is neither a path nor an object")
        caption = item.get("caption") or ""
        if not isinstance(caption, str) or len(caption) > LONGEST_CAPTION:
            raise ConfigError(
                f"{self.where}: a caption must be a text of at most {LONGEST_CAPTION:,} characters"
            )
        option = item.get("option") or ""
        letter = letter_marked(str(option)) if option else ""
        if option and letter not in self.letters:
            raise ConfigError(
                f"{self.where}: a picture belongs to option {str(option)[:20]!r}, but the options "
                f"are {', '.join(sorted(self.letters))}"
            )
        picture = self._content_of(item, 0)
        return replace(picture, caption=" ".join(caption.split()), option=letter)

    def _content_of(self, item: Mapping[str, Any], depth: int) -> QuestionPicture:
        failed = NotThereError("it has neither a path nor content")
        if isinstance(place := item.get(PLACE), str):
            return find_in_parquet(place, self.folder)
        for name in _CONTENT:
            value = item.get(name)
            try:
                if isinstance(value, str) and value.strip():
                    return find_picture(value, self.folder)
                if isinstance(value, dict) and depth < _DEEPEST:
                    return self._content_of(value, depth + 1)
            except NotThereError as error:
                failed = error
        raise failed

    def _add_picture(self, picture: QuestionPicture, number: int | None = None) -> int:
        if picture in self.pictures:
            place = self.pictures.index(picture)
        else:
            place = len(self.pictures)
            self.pictures.append(picture)
        self.numbers[number or len(self.numbers) + 1] = place
        return place

    def bound(self, text: str, options: Mapping[str, str], evidence: str) -> FoundPictures:
        """Return all pictures, each bound to the question or to an option by its marks."""
        options = {letter: self._file_in(option, letter) for letter, option in options.items()}
        unnamed = iter(range(1, len(self.numbers) + 1))
        text = self._with_own_marks(text, unnamed)
        options = {
            letter: self._with_own_marks(option, unnamed, letter)
            for letter, option in options.items()
        }
        uses = {letter: set(_places(option)) for letter, option in options.items()}
        counted = Counter(place for places in uses.values() for place in places)
        in_text = set(_places(text))
        for letter, places in uses.items():
            for place in places:
                if counted[place] == 1 and place not in in_text:
                    self.pictures[place] = replace(self.pictures[place], option=letter)
        of_question = [place for place, one in enumerate(self.pictures) if not one.option]
        shown = {place: f"[Picture {n}]" for n, place in enumerate(of_question, start=1)}

        def without_marks(marked: str) -> str:
            if not _OWN.search(marked):
                return marked
            return _OWN.sub(lambda mark: shown.get(int(mark[1]), ""), marked).strip()

        marked = [text, *options.values()]
        text = without_marks(text)
        options = {letter: without_marks(option) for letter, option in options.items()}
        pictures = [self.pictures[place] for place in of_question]
        pictures += sorted((p for p in self.pictures if p.option), key=lambda p: p.option)
        missing = ""
        if self.missing:
            missing = evidence if self.folder is None else self.missing[0]
        elif len(pictures) > MOST_PICTURES:
            missing = _TOO_MANY
        elif mark := mark_in(_OWN.sub("", marked[0])):
            missing = f"'{mark[0][:60]}' in the text"
        elif left := [
            letter
            for letter, option in zip(options, marked[1:], strict=True)
            if mark_in(_OWN.sub("", option)) or is_file(options[letter], with_spaces=True)
        ]:
            missing = f"option {left[0]}"
        elif not pictures:
            missing = evidence
        return FoundPictures(text, options, tuple(pictures), missing)

    def _file_in(self, option: str, letter: str) -> str:
        """Return an option's text, or its own mark if the text is the name of a picture's file."""
        if not is_file(option, with_spaces=True):
            return option
        try:
            picture = find_picture(option, self.folder)
        except NotThereError:
            return option
        return f"\x00{self._add_picture(replace(picture, option=letter))}\x00"

    def _with_own_marks(self, text: str, unnamed: Iterator[int], letter: str = "") -> str:
        """Return a text whose marks are replaced by positions in `pictures`."""

        def own(mark: re.Match[str]) -> str:
            if mark["own"]:
                return mark[0]
            if target := mark["src"] or mark["target"] or mark["uri"] or mark["address"]:
                try:
                    picture = find_picture(target, self.folder)
                except NotThereError:
                    return mark[0]
                alt = " ".join((mark["alt"] or "").split())
                known = [replace(one, caption="") for one in self.pictures]
                if not letter and picture in known:
                    return f"\x00{known.index(picture)}\x00"
                place = self._add_picture(replace(picture, caption=alt, option=letter))
                return f"\x00{place}\x00"
            number = mark["number"] or mark["bracketed"]
            place = self.numbers.get(int(number) if number else next(unnamed, 0), -1)
            return mark[0] if place < 0 else f"\x00{place}\x00"

        return _MARK.sub(own, text) if _has_mark(text) else text


_OWN = re.compile(r"\x00(\d+)\x00")
_BEGINNINGS = ("\x00", "<", "[", "data:", "://")


def _has_mark(text: str) -> bool:
    return any(map(text.__contains__, _BEGINNINGS))


def _places(text: str) -> Iterator[int]:
    return (int(mark[1]) for mark in _OWN.finditer(text))


def _slot(name: str) -> tuple[str, str]:
    """Return (kind of picture, its number) for the name of a field."""
    found = _SLOT.fullmatch(plain(name))
    if found is None:
        return name, ""
    prefix = "" if found["prefix"] in (None, "has", "num", "local", "input") else found["prefix"]
    number = re.search(r"\d{1,2}", found["rest"])
    stem = _SAME.get(found["stem"], found["stem"])
    return prefix + stem, number[0] if number else ""


def _items(value: object, depth: int = 0) -> Iterator[object]:
    """Yield what a field says of each picture: texts and objects."""
    if isinstance(value, list) and depth < _DEEPEST:
        for inner in value:
            if is_there(inner):
                yield from _items(inner, depth + 1)
    elif not isinstance(value, str):
        yield value
    elif (listed := list_in(value)) is not None:
        yield from _items(listed, depth + 1)
    elif ";" in value and not value.lstrip().lower().startswith("data:"):
        yield from (one for one in value.split(";") if one.strip())
    else:
        yield value
