"""Detects pictures of a question: in a field of its record, in its text, or only mentioned.

`datasets.picture_fields` reads them. A question whose picture is missing cannot be asked fairly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from functools import lru_cache
from typing import Any

from ahocorasick_rs import AhoCorasick

from mdagents_llm.text import in_lower_case

_FIELD = re.compile(
    r"(?:has|num|question|input|local|relevant|medical|context|main)?"
    r"(?:image|img|picture|pic|photo|photograph|figure|fig|video|media|attachment)s?\d*"
    r"(?:(?:path|file|filename|name|url|uri|link|src|id|byte|data|list|preview|base64|b64)s?\d*)*"
)
"""Pattern for names of picture fields, in lowercase without punctuation: `image`, `image_1`,
`img_path`, `figure`, `image_urls`, `local_image_path`."""
_NOT_SHOWN = re.compile("rationale|expl|answer|solution|source|caption|licen[cs]e|logo|icon")
"""Pattern for names of fields that are not part of the question, whatever their content."""
_NOTHING = frozenset({"", "nan", "null", "none", "n/a", "na", "no", "false", "0", "[]", "{}", "-"})
_PART_TYPES = frozenset({"image", "image_url", "input_image", "image_file", "video", "video_url"})
"""Types of content parts with a picture in the chat APIs of OpenAI and Anthropic."""
_MARKS = re.compile(
    r"<(?:\|)?(?:image|img|picture|figure|video)(?:[ _]?\d+)?(?:\|)?\s*/?>"  # MMMU, LLaVA
    r"|<(?:img|image|picture|figure)\s[^<>]*>"  # HTML
    r"|!\[[^\]\n]*\]\([^)\s]+[^)\n]*\)"  # Markdown
    r"|\[(?:image|img|picture)(?:[ _#]?\d+)?\]"
    r"|\\includegraphics\b"
    r"|data:image/[\w.+-]+;base64,"
    r"|\bhttps?://[^\s<>\"']+\.(?:png|jpe?g|gif|webp|bmp|tiff?|svg)\b",
    re.IGNORECASE,
)
_BEGINNINGS_OF_A_MARK = ("<", "[", "\\", ":image/", "://")
_FILE = re.compile(
    r"\S(?:[^\n]{0,250}\S)?\.(?:png|jpe?g|gif|webp|bmp|tiff?|svg|avif|heic|dcm|dicom)",
    re.IGNORECASE,
)


def picture_in(record: Mapping[str, Any], text: str, options: Mapping[str, str]) -> str:
    """Return the evidence that a question has a picture; empty without one.

    Args:
        record: Record as published.
        text: Text of the question.
        options: Letter -> text.
    """
    for name, value in record.items():
        kind = kind_of_field(name)
        if kind is Field.NOT_SHOWN:
            continue
        if (kind is Field.PICTURE and is_there(value)) or is_file(value):
            return f"field '{name}'"
        if any(map(_is_picture_part, parts_of(value))):
            return f"a part of field '{name}'"
    if mark := mark_in(text):
        return f"'{mark[0][:60]}' in the text"
    for letter, option in options.items():
        if mark_in(option) or is_file(option, with_spaces=True):
            return f"option {letter}"
    return ""


class Field(Enum):
    """Meaning of a field by its name."""

    PICTURE = auto()
    NOT_SHOWN = auto()
    OTHER = auto()


@lru_cache(maxsize=256)  # the records of a file have the same fields
def kind_of_field(name: str) -> Field:
    """Return what a field is, by its name alone."""
    plain = re.sub(r"[\W_]", "", name.lower())
    if _NOT_SHOWN.search(plain):
        return Field.NOT_SHOWN
    return Field.PICTURE if _FIELD.fullmatch(plain) else Field.OTHER


def mark_in(text: str) -> re.Match[str] | None:
    """Return the first mark of a picture in a text."""
    # The prefilter spares most texts the search, which tries every alternative at each character.
    return _MARKS.search(text) if any(map(text.__contains__, _BEGINNINGS_OF_A_MARK)) else None


def source_of_part(part: Mapping[str, Any]) -> object:
    """Return the field of a content part with its picture: an address or an object; else None."""
    if not _is_picture_part(part):
        return None
    names = ("image_url", "image", "source", "url", "path", "file", "data")
    return next((part[name] for name in names if part.get(name)), None)


def text_of_parts(parts: object) -> object:
    """Return the text of a list of content parts; return any other value unchanged."""
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        return parts
    return "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))


def mentioned_picture(text: str) -> str:
    """Return the words by which a text refers to a figure, an image or a table; empty without any.

    The text may describe the picture, so this is a hint, not proof.
    """
    lower = in_lower_case(text)
    # Most texts with such a word have it within another ("stable"), and a pattern takes longer.
    present = {
        _WORDS[index]
        for index, start, _ in _ANY_WORD.find_matches_as_indexes(lower, overlapping=True)
        if not (start and _WORDS[index].isascii() and lower[start - 1].isalnum())
    }
    for pattern, groups in _REFERENCES:
        if any(map(present.isdisjoint, groups)):
            continue
        searched = text if pattern.flags & re.IGNORECASE else lower  # the latter is faster
        if found := pattern.search(searched):
            return " ".join(text[found.start() : found.end()].split())
    return ""


def is_there(value: object) -> bool:
    """Return whether a field's value is a picture or the location of one."""
    if isinstance(value, dict):
        return any(map(is_there, value.values()))
    if isinstance(value, list):
        return any(map(is_there, value))
    if isinstance(value, float) and value != value:  # NaN: an empty cell
        return False
    return str(value).strip().lower() not in _NOTHING


def is_file(value: object, *, with_spaces: bool = False) -> bool:
    """Return whether a value is the file name, URL or content of a picture."""
    if not isinstance(value, str):
        return False
    if value.startswith("data:image/"):
        return True
    if "." not in value[-12:].rstrip()[-6:-1]:  # most texts
        return False
    text = value.strip()
    is_name = bool(_FILE.fullmatch(text))
    return is_name and (with_spaces or len(text.split(maxsplit=1)) == 1)


def _is_picture_part(part: Mapping[str, Any]) -> bool:
    kind = part.get("type")
    return isinstance(kind, str) and kind in _PART_TYPES


def parts_of(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield the objects in a list and in their `content`: content parts, also within messages."""
    for inner in value if isinstance(value, list) else ():
        if isinstance(inner, dict):
            yield inner
            yield from parts_of(inner.get("content"))


# Nouns for figures that a question refers to; some count only after a word such as "the".
_PICTURE = (
    r"(?:figure|image|picture|photo(?:graph|micrograph)?|diagram|illustration|drawing|exhibit)s?"
)
_CHART_WORDS = ("graph", "chart", "table", "pedigree", "tracing", "curve", "loop")
_CHART = rf"(?:{'|'.join(_CHART_WORDS)})s?"
_RECORDING_WORDS = (
    "x-ray", "xray", "radiograph", "ecg", "ekg", "electrocardiogram", "ct", "mri", "scan", "smear",
    "biopsy", "biopsies", "slide",
)  # fmt: skip
_RECORDING = rf"(?:{'|'.join(_RECORDING_WORDS)})s?"
_SHOWN_WORDS = ("shown", "depicted", "pictured", "displayed", "illustrated")
_SHOWN = rf"(?:{'|'.join(_SHOWN_WORDS)})"
_PLACE_WORDS = ("above", "below")
_PLACE = rf"(?:{'|'.join(_PLACE_WORDS)})"
_PICTURE_WORDS = (
    "figure", "image", "picture", "photo", "diagram", "illustration", "drawing", "exhibit"
)  # fmt: skip
_FIGURA_WORDS = ("imagen", "figura", "fotografía", "imagem", "immagine")
_FIGURA = rf"(?:{'|'.join(_FIGURA_WORDS)})"
_NOT_OF_A_TEST = r"(?!\sen\s(?:el|un)\s(?:espejo|test)\b)"
_REFERENCES = [
    (re.compile(pattern), groups)
    for pattern, *groups in (
        (
            r"(?i)\b(?:figure|fig\.?|exhibit|table|image)\s+(?-i:\d+|[A-H]|[IVX]+)\b(?![-'’])",
            ("fig", "exhibit", "table", "image"),
        ),
        (
            rf"\b(?:see|in|from|to|on|based on|following|attached|accompanying)\s+"
            rf"(?:(?:the|this|these|an?)\s+)?(?:(?:following|attached|accompanying)\s+)?{_PICTURE}\b",
            _PICTURE_WORDS,
        ),
        (
            rf"\b(?:see|in|from|based on|following|attached|accompanying)\s+(?:(?:the|this)\s+)?"
            rf"(?:(?:following|attached|accompanying)\s+)?{_CHART}\s+(?:above|below|{_SHOWN})\b",
            _SHOWN_WORDS + _PLACE_WORDS,
            _CHART_WORDS,
        ),
        (
            rf"\b(?:{_PICTURE}|{_CHART}|{_RECORDING})\b[^.?!;]{{0,80}}?"
            rf"\b(?:is|are|was|were)\s+{_SHOWN}\b(?!\s+to\b)",
            _SHOWN_WORDS,
        ),
        (
            rf"\b{_SHOWN}\s+(?:in|on|by)\s+(?:the\s+)?(?:{_PICTURE}|{_CHART})\b",
            _SHOWN_WORDS,
        ),
        # Skip it if a list of values follows: nothing is missing then.
        (rf"\b{_SHOWN}\s+(?:here|above|below)\b(?![^?]{{0,40}}:)", _SHOWN_WORDS),
        (rf"\b(?:is|are|was|were)\s+{_SHOWN}\s*[.?]", _SHOWN_WORDS),
        (r"\b(?:by|with|at)\s+(?:(?:the|an|this)\s+)?arrow", ("arrow",)),
        (
            rf"\b(?:{_PICTURE}|{_CHART})\s+(?:above|below)\b",
            _PLACE_WORDS,
            _PICTURE_WORDS + _CHART_WORDS,
        ),
        (
            rf"\b(?:the|this)\s+(?:accompanying\s+|attached\s+|following\s+|given\s+)?{_PICTURE}"
            r"\s+(?:shows?|depicts?|displays?|illustrates?)\b",
            _PICTURE_WORDS,
        ),
        (
            rf"\b(?:(?:of|in|on|see)\s+the\s+following|accompanying|attached)\s+{_RECORDING}"
            r"\s*(?:[-:.?,]|$)",
            ("following", "accompanying", "attached"),
            _RECORDING_WORDS,
        ),
        (
            rf"\b(?:the|this)\s+(?:\w+\s+){{0,2}}(?:{_PICTURE}|{_CHART}|{_RECORDING})"
            r"\s+(?:shown|pictured)\b(?!\s+(?:to|that|by|no)\b)",
            ("shown", "pictured"),
        ),
        (
            rf"\b{_RECORDING}(?:\s+(?:strip|tracing|film|scan|image))?\s+{_PLACE}"
            r"(?:\s*(?:[.,:;?)]|$)|\s+(?:shows?|(?:is|was)\s+(?:from|of|obtained|taken))\b)",
            _PLACE_WORDS,
            _RECORDING_WORDS,
        ),
        (
            rf"\b{_PICTURE}\b[^.?!;]{{0,80}}?\b(?:is|are)\s+(?:provided|attached)\s*(?:[.?,;]|$)",
            ("provided", "attached"),
            _PICTURE_WORDS,
        ),
        # Chinese, also that of a record: "如图所示", but not the ECG (心电图) itself.
        (
            r"(?:如|见|見|根据|參見)[下上右左附]?[图圖](?![谱雷书書形案])"
            r"|(?<![电動动像])[下上右左附][图圖](?![谱书書形像案])|(?<![电動动像影描])[图圖]\s?\d",
            ("图", "圖"),
        ),
        # Japanese and Korean.
        (
            r"別冊|を別に示す|(?<![電像])図\s?\d|[下次右左]の?図|図に示す",
            ("別冊", "別に示す", "図"),
        ),
        (
            r"(?:다음|아래|위|위의)\s(?:그림|사진)|(?:그림|사진)[과와]\s?같|그림\s?\d",
            ("그림", "사진"),
        ),
        # Spanish, Portuguese and Italian.
        (
            rf"\b{_FIGURA}\s(?:(?:n[.ºo°]{{1,2}}\s?)?(?!8\b)\d+[a-c]?\b|adjunt|siguiente|abaixo|acima"
            rf"|anexa|a seguir|seguente|allegata|que se muestra{_NOT_OF_A_TEST})"
            r"|\b(?:ver|véase|vea|observe|vinculada a|na|nella|vedi)\s(?:(?:la|a)\s)?"
            rf"(?:siguiente\s)?{_FIGURA}\b(?!\s(?:corporal|corporea)){_NOT_OF_A_TEST}",
            _FIGURA_WORDS,
        ),
        # French and German.
        (
            r"\b(?:figure|image|photo|photographie|schéma)\s(?:ci-(?:dessous|dessus|joint|contre)"
            r"|suivante?\b)|\bvoir\s(?:la\s|le\s|l['’])(?:figure|image|photo|photographie|schéma)\b",
            ("figure", "image", "photo", "schéma"),
        ),
        (
            r"\b(?:in|auf|siehe)\s(?:der\s|dem\s|den\s)?(?:folgenden\s|nebenstehenden\s|gezeigten\s)?"
            r"(?:abbildung|foto|bild)\b(?!\s(?:erkannte?\b|nicht\s?[.,;]))|\b(?:abbildung|abb\.)\s?\d",
            ("abbildung", "abb", "foto", "bild"),
        ),
        # Vietnamese and Russian.
        (
            r"\b(?:hình|ảnh|hình ảnh|hình vẽ|sơ đồ)\s(?:(?:bên\s)?dưới|sau đây|bên|số\s\d"
            r"|\d+(?:\s?[.,:;?)]|$|\s(?:cho|là|dưới|thể hiện|minh họa)\b))"
            r"|\b(?:xem|theo)\s(?:hình|ảnh)\b",
            ("hình", "ảnh", "sơ đồ"),
        ),
        (
            r"\b(?:на|см\.|по)\s(?:рисунк[еу]|рис\.|рисунок|фото|фотографии|изображении)(?!\w)"
            r"|\bрис(?:унок|\.)\s?\d",
            ("рис", "фото", "изображени"),
        ),
    )
]
"""(pattern, groups of beginnings of words in lower case; a matching text has one of each group)."""
_WORDS = sorted({word for _, groups in _REFERENCES for group in groups for word in group})
_ANY_WORD = AhoCorasick(_WORDS)
