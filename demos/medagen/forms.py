"""Reads the boxes and answers of forms: an empty box denies what stands at it.

Where no box of its kind is ticked in a message, it is a bullet or a blank, and denies nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_EMPTY = r"\[ ?\]|\( \)|[☐□⬜◻❌✗✘✖]|\(\s?[-–−]\s?\)"
_TICKED = r"\[ ?[x✓✔*v] ?\]|\([x✓✔]\)|[☑☒✅✔✓■]|\(\s?\+\s?\)"
_YES = r"yes|y|có|co"
_NO = r"no|n|không|khong"
_BOX = re.compile(rf"(?:(?P<empty>{_EMPTY})|(?P<ticked>{_TICKED}))\ufe0f?")
_END = r"(?=\s{0,3}(?:$|[^\w\s]))"
_CHOICE_LEFT = re.compile(rf"(?:{_EMPTY}) ?(?:{_YES}|{_NO})\b{_END}", re.MULTILINE)
"""An answer whose box is empty."""
_CHOICE = re.compile(
    rf"(?P<mark>[:?]?)\s{{0,3}}(?:{_TICKED}) ?(?P<answer>{_YES}|{_NO})\b{_END}", re.MULTILINE
)
_SEGMENT = re.compile(r"[^\n.;!?]+")
_LABEL = re.compile(r"(?:[^:]{0,60}:)?[\s\-–•*\d)]*")
"""What may stand before the first box of a line: "Symptoms:"."""
_OPTIONS = re.compile(rf"\((?:{_YES}) ?[/|] ?(?:{_NO})\)")
_ANSWER = re.compile(
    r"(?:\b(?:không|khong|ko)\s?)?\?\s*"
    r"(?:a|ans|answer|patient|pt|bn|đáp|trả lời|tra loi) ?: ?(?=\w)"
)
"""The end of a question and the label of its answer."""
_NEGATIVE = re.compile(
    rf"\s?(?:[:=]|[-=–]>|→)\s{{0,3}}"
    rf"(?:not (?:present|reported|noted|felt)|0 ?/ ?10|false|never|none|nil|{_NO})"
    r"(?=\s{0,3}(?:$|[;.\n]|,(?! ?(?:but|now|then|until|till|except|only|today)\b)))"
)
"""An answer that denies its field: ": not present", "-> no"."""
_NOTHING_OF = re.compile(
    r"\bnone of (?:the following|these|those)(?: symptoms| signs)?\s?:"
    r"|\b(?:symptoms?|signs?) (?:that |which )?i (?:do not|dont) (?:currently )?have\s?:"
    r"|\bi (?:do not|dont) have (?:any of )?the following(?: symptoms| signs)?\s?:"
    r"|\b(?:không|khong) (?:có|co|bị|bi) (?:các |cac |những |nhung )?"
    r"(?:triệu chứng|trieu chung|dấu hiệu|dau hieu)(?: sau| sau đây| sau day)?\s?:"
)
"""A heading of what nobody has."""
_DENIED, _LISTED, _ANSWERED_NO = "\nwithout ", "\n", ": no ."


def read_form(text: str) -> str:
    """Return a message with its boxes and answers as sentences.

    Boxes before their items ("[ ] chest pain [x] cough") become "without chest pain" and "cough";
    behind them ("chest pain [ ], cough [x]"), "chest pain: no" and "cough". Where the boxes of a
    line may be either, or no box of the kind is ticked in the message, none counts.

    Args:
        text: Message in lower case.
    """
    text = _ANSWER.sub("? ", _OPTIONS.sub("", text))
    text = _NEGATIVE.sub(": no", _NOTHING_OF.sub("denies ", text))
    if not _BOX.search(text):
        return text
    ticked = {_kind(box.group()) for box in _BOX.finditer(text) if box["ticked"]}
    text = _CHOICE_LEFT.sub("", text)
    text = _BOX.sub(
        lambda box: box.group() if box["ticked"] or _kind(box.group()) in ticked else " ", text
    )
    text = _CHOICE.sub(lambda ticked: f"{ticked['mark'] or ':'} {ticked['answer']} . ", text)
    return _SEGMENT.sub(lambda segment: _in_words(segment.group()), text)


def _kind(box: str) -> str:
    """Return the kind of a box: "+" for signs, a bracket, or nothing for a symbol."""
    if any(sign in box for sign in "+-–−"):
        return "+"
    return box[0] if box[0] in "[(" else ""


def _in_words(line: str) -> str:
    boxes = list(_BOX.finditer(line))
    if not boxes:
        return line
    is_first = _LABEL.fullmatch(line, 0, boxes[0].start()) is not None
    is_last = not line[boxes[-1].end() :].strip(" ,")
    if is_first == is_last:
        return _BOX.sub(" ", line)
    empty, ticked = (_DENIED, _LISTED) if is_first else (_ANSWERED_NO, " .")
    return _filled(line, boxes, empty, ticked)


def _filled(line: str, boxes: Sequence[re.Match[str]], empty: str, ticked: str) -> str:
    parts: list[str] = []
    done = 0
    for box in boxes:
        parts += [line[done : box.start()], empty if box["empty"] else ticked]
        done = box.end()
    return "".join([*parts, line[done:]])
