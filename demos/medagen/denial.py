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
_NEAR = 12
"""Maximum number of words between a denial and somebody else who has the complaint."""
_PAST_YEARS = range(1950, 2026)
_YOUNG = range(2, 26)
"""Ages, in years, that lie in the past where a message says "when I was 12"."""

_NOT = "không|ko|kg|hok|chẳng"
_BACK = "came+back|comes+back|come+back|is+back|its+back|back+again|returned|returns"
_BACK_VI = "đau+lại|bị+lại|lại+đau|tái+phát|quay+lại|trở+lại"
_KIN = "bà|ông|bố|ba|mẹ|má|cha|cụ|chú|bác|cô|dì|cậu|anh|chị"
_OWN = "em|tôi|mình|con|cháu|tui"
_AFTER_WHO = frozenset(
    [",", ".", "!", ";", "right", "now", "too", "and", "but", "though", "since", "today", "nữa"]
)
"""Words that may follow "my dad does", where no other verb does."""
_LEXICON = Lexicon(
    {
        "denied": [
            "no|not|never|without|nor|neither|denies|deny|denied|denying",
            "dont|doesnt|didnt|havent|hasnt|hadnt|isnt|arent|wasnt|aint",
            "free of",
            "negative for",
            f"{_NOT}|chưa|k",
            "=hông|hổng|chả",  # "hong" is also the throat, and "cha" the father
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
            # It went away, and came back.
            f"went|gone|goes away _ {_BACK}",
            f"went|gone|goes away , _ {_BACK}",
            f"is|are|has|have|was|were|had gone|resolved|stopped _ {_BACK}",
            f"is|are|has|have|was|were|had gone|resolved|stopped _ , _ {_BACK}",
            f"hết rồi|hẳn _ {_BACK_VI}",
            f"hết rồi|hẳn , _ {_BACK_VI}",
            f"đã|cũng|thì hết|khỏi _ {_BACK_VI}",
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
        "somebody else": [
            "my|our dad|father|mum|mom|mother|husband|wife|son|daughter|baby|child does|has+it",
            "my|our brother|sister|friend|partner|grandma|grandpa|uncle|aunt does|has+it",
            "he|she does|has+it",
            f"{_KIN} {_OWN} thì|mới có|bị",
        ],
        "animal": [
            "my|our dog|dogs|cat|puppy|kitten|hamster|rabbit|pony had|has|is|was|keeps|started",
            "chó|mèo|cún nhà|của em|mình|tôi|con bị|co|nôn",
        ],
        "hurt by it": [
            "i|im|ive|me|my|he|hes|him|his|she|shes|her|we|us|our|they|them|baby|child|kid|son",
            "daughter|mum|mom|dad|husband|wife|bit|bite|bitten|biting|scratched|attacked|mauled",
            "grandma|grandpa|girl|boy|man|woman|someone|people|friend|neighbour|neighbor|knocked",
            "cắn|cào|tay|chân|mặt|tôi|em|mình",
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
            "is|are|can|could _ a|the side effect|effects",
            "can|could|does|do|will _ cause|causes|trigger|lead+to",
            "là gì|bệnh+gì",
            "triệu+chứng|dấu+hiệu|nguyên+nhân _ của|gây|gồm|nào",
            "có những loại",
            "cách|sao phòng|phòng+tránh|nhận+biết|xử+trí|sơ+cứu",
        ],
        "person": [
            "i|im|ive|my|me|he|hes|his|him|she|shes|her|we|our|they|their|it|its|this|you",
            "baby|mum|mom|dad|father|mother|son|daughter|wife|husband|friend|kid|child|man|woman",
            "=tôi|mình|em|con|bé|cháu|mẹ|má|bố|ba|cha|ông|bà|chồng|vợ|anh|chị|nó|bạn|tui|tao",
            "toi|minh|em|con|be|chau|me|ma|bo|ba|cha|ong|chong|vo|anh|chi|no|ban|tui",
            "nay|bây+giờ|lúc+nãy|vừa|now|today|yesterday|just|tonight|since",
        ],
        "story": [
            "on tv|television|telly|netflix|youtube",
            "movie|film|documentary|novel|videogame|sitcom",
            "watching|watched _ show|series",
            "news|article|radio|podcast said|says|about|that",
            "in|on the news|paper|papers|radio",
            "character _ novel|book|game|story",
            "coi|xem|trên|trong phim|tivi|truyện|báo",
            "nghe|đọc|xem _ đài|báo|tin|clip|video",
        ],
        "not yet": [
            "if i|you|he|she|they|we|someone|anyone ever get|have|feel|notice|see|experience|start",
            "can|could|does|do|will|would _ make|give you|someone|people|somebody",
            "in case i|you|he|she|they|we|someone|anyone ever",
            "lỡ|nếu sau+này|mai+mốt|có+ngày _ bị|gặp",
        ],
        "not now": [
            "years|yrs ago",
            "last year|summer|winter|spring|autumn|christmas",
            "as a child|kid|teenager|toddler|baby",
            "childhood",
            "when i|he|she was young|little",
            f"when i|he|she was {'|'.join(map(str, _YOUNG))}",
            "in my|his|her teens|twenties|thirties|youth",
            "history of",
            "family history",
            "used to",
            "runs in",
            "back in",
            f"in {'|'.join(map(str, _PAST_YEARS))}",
            "out of the hospital",
            "released|discharged from",
            "năm ngoái|trước|xưa",
            f"năm {'|'.join(map(str, _PAST_YEARS))}",
            "hồi|ngày nhỏ|bé|xưa|trẻ",
            "tiền sử",
            "từng bị|mắc",
            "cách đây _ năm",
            "qua đời vì|do",
            *(
                phrase
                for who in (_KIN, f"{_KIN} {_OWN}", f"{_KIN} nội|ngoại {_OWN}", f"{_KIN} {_OWN} đã")
                for phrase in (f"{who} mất vì", f"={who} mất do")  # "mat do" is also a red eye
            ),
            "died of|from",
        ],
    },
    reads_errors=False,
)


def standing(words: Words, found: Sequence[Found]) -> list[Found]:
    """Return the findings that are not denied, not from long ago, and somebody's own.

    A film is nobody's own, and neither is a question about an illness in general or about what to
    do if a complaint ever comes. What a pet has is no patient's.

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
    pets = _pets(parts, marks)
    stories = {sentences[at] for at in marks["story"] | marks["not yet"]}
    return [
        one
        for one in found
        if one.start not in denied
        and not marks["denied"].intersection(one.between)
        and one.end not in marks["denied after it"]
        and parts[one.start] not in not_now
        and parts[one.start] not in pets
        and sentences[one.start] not in stories
    ]


def _marks(words: Words) -> dict[str, set[int]]:
    """Return the start positions of each kind of cue."""
    marks: dict[str, set[int]] = defaultdict(set)
    cancelled: set[int] = set()
    reasons: set[int] = set()  # "vì" in "mất vì" begins no new part
    for one in _LEXICON.find(words):
        marks[one.concept].add(one.start)
        if one.concept == "no denial":
            cancelled.update(range(one.start, one.end))
        elif one.concept == "not now":
            reasons.add(one.end - 1)
        elif one.concept == "animal":
            marks["its words"].update(range(one.start, one.end))
        elif one.concept == "somebody else" and _AFTER_WHO.issuperset(
            words.words[one.end : one.end + 1]
        ):
            cancelled.update(range(one.start - _NEAR, one.start))
    marks["denied"] -= cancelled
    marks["denied after it"] -= cancelled
    marks["not now"] = {at for at in marks["not now"] if at - 1 not in marks["denied"]}
    marks["turn"] -= reasons
    return marks


def _pets(parts: Sequence[int], marks: dict[str, set[int]]) -> set[int]:
    """Return the parts about a pet in which nobody else appears."""
    people = {parts[at] for at in marks["hurt by it"] - marks["its words"]}
    return {parts[at] for at in marks["animal"]} - people


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
