"""Tells what somebody says that they do not have, or had long ago.

In doubt nothing is denied: to overlook a denial costs a visit, to see one that is none may cost a
life. So a denial ends with its clause, at "but" and at "and", and goes on over a comma only in a
list that ends with "or".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from demos.medagen.lexicon import Found, Lexicon
from demos.medagen.words import Words

_FAR = 4
"""Words between a denial and what it denies."""
_LONGEST_ITEM = 4
"""Words of an item of a list."""

_NOT = "không|ko|kg|hok|hông|hổng|chẳng|chả"
_LEXICON = Lexicon(
    {
        "denied": [
            "no|not|never|without|nor|neither|denies|deny|denied|denying",
            "dont|doesnt|didnt|havent|hasnt|hadnt|isnt|arent|wasnt|aint",
            "free of",
            "negative for",
            f"{_NOT}|chưa|k",
        ],
        # What makes no denial of what comes after it.
        "no denial": [
            "no idea|clue|longer|matter|one|relief|improvement|better|change|wonder|doubt|less",
            "no response|answer|pulse|way|sleep|appetite|energy|good",
            "not only|just|sure|certain|better|improving|stopping|relieved|helping|able|right",
            "not well|good|ok|okay|normal|getting|going|sleeping|eating|drinking|feeling|stop",
            "not know|think|breathing|responding|peeing",
            "dont|doesnt|didnt know|understand|think|want|stop|remember|help|work|improve|let",
            "dont|doesnt|didnt feel|look|seem well|good|right|ok|okay|normal|great",
            "never felt|had|experienced|seen|been",
            "without warning|reason|cause|help|stopping",
            "isnt|arent|wasnt getting|going|stopping|breathing|responding|well|right|normal",
            "havent|hasnt|hadnt slept|eaten|stopped|been|drunk|improved|gone",
            f"{_NOT}|k|chưa biết|hiểu|rõ|chắc|chỉ|những|đỡ|khỏi|giảm|hết|ngừng|dứt|thuyên|cầm",
            f"{_NOT}|k|chưa ngủ|ăn|uống|khỏe|khoẻ|ổn|yên|may|ngờ|tự|nhớ|tin|còn|đủ|bú|chịu",
            f"{_NOT}|k|chưa thể|được|nổi|kịp|tả|nói|đi|đứng|cử|trả|phản|làm|tỉnh|dậy|ngớt",
            "chưa từng|bao|bao giờ",
        ],
        "denied after it": [f"thì {_NOT}|k|chưa", "is|are absent", "none"],
        "turn": [
            "but|however|although|though|yet|except|now|then|because|since|so|just|only|and",
            "nhưng|mà|tuy|song|giờ|chỉ|vì|nên|rồi|và|còn|lại|bây",
        ],
        "or": ["or|nor", "hoặc|hay|lẫn"],
        "story": [
            "on tv|television|netflix|youtube",
            "movie|film|documentary|novel|videogame|sitcom",
            "watching|watched _ show|series",
            "coi|xem|trên|trong phim|tivi|truyện|báo",
        ],
        "not now": [
            "years|yrs ago",
            "last year",
            "as a child|kid|teenager",
            "childhood",
            "when i|he|she was young|little",
            "history of",
            "năm ngoái|trước|xưa",
            "hồi|ngày nhỏ|bé|xưa|trẻ",
            "tiền sử",
            "từng bị|mắc",
            "cách đây _ năm",
            "mất|chết vì|do",
            "died of|from",
        ],
    },
    reads_errors=False,
)


def standing(words: Words, found: Sequence[Found]) -> list[Found]:
    """Return what is found and not denied, and not of long ago or of a film.

    Args:
        words: The message.
        found: What was found in it.
    """
    marks = _marks(words)
    denied = _denied_places(words, marks)
    parts = _parts(words, marks["turn"])
    not_now = {parts[at] for at in marks["not now"]}
    sentences = _parts(words, None)
    stories = {sentences[at] for at in marks["story"]}
    return [
        one
        for one in found
        if one.start not in denied
        and not marks["denied"].intersection(one.between)
        and one.end not in marks["denied after it"]
        and parts[one.start] not in not_now
        and sentences[one.start] not in stories
    ]


def _marks(words: Words) -> dict[str, set[int]]:
    """Return where the words of each kind begin."""
    marks: dict[str, set[int]] = defaultdict(set)
    for one in _LEXICON.find(words):
        marks[one.concept].add(one.start)
    marks["denied"] -= marks["no denial"]
    return marks


def _denied_places(words: Words, marks: dict[str, set[int]]) -> set[int]:
    """Return where a complaint begins that is denied."""
    places: set[int] = set()
    for cue in marks["denied"]:
        items = _items(words, cue + 1, marks)
        places.update(items[0][: _FAR + 1])
        if len(items) > 1 and all(len(item) <= _LONGEST_ITEM for item in items[:-1]):
            for item in items[1:]:
                places.update(item[: _LONGEST_ITEM - 1])
    return places


def _items(words: Words, start: int, marks: dict[str, set[int]]) -> list[list[int]]:
    """Return the items of a list that ends with "or"; else what comes before the first comma."""
    items: list[list[int]] = [[]]
    whole = 1  # items up to the one after the last "or"
    for at in range(start, len(words.words)):
        if words.is_break(at) or at in marks["turn"] or at in marks["denied"]:
            break
        if at in marks["or"]:
            items.append([])
            whole = len(items)
        elif words.words[at] in ",/":
            items.append([])
        else:
            items[-1].append(at)
    return items[:whole]


def _parts(words: Words, turns: set[int] | None) -> list[int]:
    """Return the number of the part of the message that each word stands in.

    Args:
        words: The message.
        turns: Words that begin another part, as commas do; None: only sentences are parts.
    """
    numbers: list[int] = []
    number = 0
    for at in range(len(words.words)):
        ends = words.is_break(at) if turns is None else words.parts_clauses(at) or at in turns
        number += ends
        numbers.append(number)
    return numbers
