"""Detects complaints that users deny or report from long ago.

In doubt, a complaint counts as present: a missed denial costs a visit, a false one may cost a life.
A denial therefore ends with its clause, at "but" and at "and". It continues past a comma only in a
list: one that ends with "or", one that fills the rest of the sentence with three short items or
more, or one after "denies".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from demos.medagen.lexicon import Found, Lexicon
from demos.medagen.tokenizer import Words

_FAR = 4
"""Maximum number of words between a denial and the complaint that it denies."""
_LONGEST_ITEM = 4
"""Maximum number of words of a list item."""

_LONGEST_LISTED = 3
"""Maximum number of words of an item in a list that fills the rest of a sentence."""
_LONGEST_QUESTION = 15
"""Maximum number of words of a question about an illness in general."""
_PAST_YEARS = range(1950, 2026)

_NOT = "không|ko|kg|hok|hông|hổng|chẳng|chả"
_LEXICON = Lexicon(
    {
        "denied": [
            "no|not|never|without|nor|neither|denies|deny|denied|denying",
            "dont|doesnt|didnt|havent|hasnt|hadnt|isnt|arent|wasnt|aint",
            "free of",
            "negative for",
            f"{_NOT}|chưa|k",
            "hết",
            "=đỡ|khỏi",
        ],
        "whole list": ["denies|deny|denied|denying", "negative for"],
        # Cues that cancel a denial, depending on the words that follow.
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
            f"{_NOT}|chưa|mãi|không+thể hết|đỡ|khỏi",
            "hết sức|hơi|thuốc|chịu|cả|cách|nước|muốn|thiết|hồn|nổi",
            "đỡ _ thì|lại|rồi+lại",
            "cannot|cant|couldnt not",
            "why|if|whether _ not",
        ],
        "denied after it": [
            f"thì {_NOT}|k|chưa",
            "is|are absent",
            "none",
            "is|are|has|have|was|were gone now|away|completely",
            "went|gone|goes away",
            "has|have resolved|stopped",
            "đã|cũng|thì hết|khỏi",
            "hết rồi|hẳn",
        ],
        "turn": [
            "but|however|although|though|yet|except|now|then|because|since|so|just|only|and",
            "nhưng|mà|tuy|song|giờ|chỉ|vì|nên|rồi|và|còn|lại|bây",
        ],
        "or": ["or|nor", "hoặc|hay|lẫn"],
        "knowledge": [
            "what is|are|causes|happens",
            "how is|are|do|does|can|should",
            "can|should|do people|children|adults|doctors|women|men",
            "symptoms|signs|causes|types|kinds of",
            "how to|do prevent|recognize|recognise|spot|avoid|treat|know",
            "là gì|bệnh+gì",
            "triệu+chứng|dấu+hiệu|nguyên+nhân _ của|gây",
            "có những loại",
            "cách phòng|phòng+tránh|nhận+biết|xử+trí|sơ+cứu",
        ],
        "person": [
            "i|im|ive|my|me|he|hes|his|him|she|shes|her|we|our|they|their|it|its|this|you",
            "baby|mum|mom|dad|father|mother|son|daughter|wife|husband|friend|kid|child|man|woman",
            "=tôi|mình|em|con|bé|cháu|mẹ|má|bố|ba|cha|ông|bà|chồng|vợ|anh|chị|nó|bạn|tui|tao",
            "toi|minh|em|con|be|chau|me|ma|bo|ba|cha|ong|chong|vo|anh|chi|no|ban|tui",
            "nay|bây+giờ|lúc+nãy|vừa|now|today|yesterday|just|tonight|since",
        ],
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
            "family history",
            "used to",
            "runs in",
            "back in",
            f"in {'|'.join(map(str, _PAST_YEARS))}",
            "out of the hospital",
            "released|discharged from",
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
    """Return the findings that are not denied, not from long ago, and somebody's own.

    A film is nobody's own, and neither is a question about an illness in general.

    Args:
        words: Words of the message.
        found: Complaints found in the message.
    """
    marks = _marks(words)
    denied = _denied_places(words, marks)
    parts = _parts(words, marks["turn"])
    not_now = {parts[at] for at in marks["not now"]}
    is_question = len(words.words) <= _LONGEST_QUESTION and words.words[-1:] == ["?"]
    if is_question and marks["knowledge"] and not marks["person"]:
        return []  # a question about an illness, and nobody who has it
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
    """Return the start positions of each kind of cue."""
    marks: dict[str, set[int]] = defaultdict(set)
    cancelled: set[int] = set()
    for one in _LEXICON.find(words):
        marks[one.concept].add(one.start)
        if one.concept == "no denial":
            cancelled.update(range(one.start, one.end))
    marks["denied"] -= cancelled
    return marks


def _denied_places(words: Words, marks: dict[str, set[int]]) -> set[int]:
    """Return the positions at which a denied complaint begins."""
    places: set[int] = set()
    for cue in marks["denied"]:
        is_whole_list = cue in marks["whole list"]
        items, ends_in_or = _items(words, cue + 1, marks, past_and=is_whole_list)
        places.update(items[0][: _FAR + 1])
        rest = [item for item in items[1:] if item]
        if ends_in_or and all(len(item) <= _LONGEST_ITEM for item in items[:-1]):
            for item in rest:
                places.update(item[: _LONGEST_ITEM - 1])
        elif is_whole_list or (
            len(rest) >= 2 and all(len(item) <= _LONGEST_LISTED for item in items)
        ):
            for item in rest:
                places.update(item)
    return places


def _items(
    words: Words, start: int, marks: dict[str, set[int]], *, past_and: bool
) -> tuple[list[list[int]], bool]:
    """Return the items of a list, and whether "or" connects its last items.

    If "or" connects two items, the words after the last one that it connects are left out. Without
    "or", a list that is cut short by a turn or by another denial has only its first item.
    """
    items: list[list[int]] = [[]]
    connected = 0  # number of items up to the one after the last "or"
    is_whole = True
    for at in range(start, len(words.words)):
        if words.is_break(at):
            break
        if words.words[at] == "and" and past_and:
            items.append([])
        elif at in marks["turn"] or at in marks["denied"]:
            is_whole = False
            break
        elif at in marks["or"]:
            items.append([])
            connected = len(items)
        elif words.words[at] in ",/":
            items.append([])
        else:
            items[-1].append(at)
    if connected:
        return items[:connected], True
    return (items if is_whole else items[:1]), False


def _parts(words: Words, turns: set[int] | None) -> list[int]:
    """Return the number of the message part that each word belongs to.

    Args:
        words: Words of the message.
        turns: Positions of words that begin a new part, as commas do; None splits at sentence ends
            only.
    """
    numbers: list[int] = []
    number = 0
    for at in range(len(words.words)):
        ends = words.is_break(at) if turns is None else words.parts_clauses(at) or at in turns
        number += ends
        numbers.append(number)
    return numbers
