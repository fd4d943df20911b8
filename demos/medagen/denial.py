"""Detects complaints that nobody has now: denied, long ago, invented, asked about or only feared.

In doubt, a complaint counts as present: a missed denial costs a visit, a false one may cost a life.
A denial therefore covers one complaint, which follows it at once or after words such as "any". It
continues past a comma only in a list, of which it covers one complaint an item: a list that ends
with "or", one that fills the rest of the sentence with three short items or more, or one after
"denies". "Never", "no longer" and "neg for" deny no list without "or" ("I never smoked, chest pain,
…"). In a form, an answer denies its field ("Chest pain: no"). "Actually, yes" takes back the
denials of the last sentence that has one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile

from demos.medagen.denial_cues import (
    AFTER_AGAIN,
    AFTER_PET,
    AFTER_PRESSURE,
    AFTER_WHO,
    AFTER_YES,
    ANSWERED_NO,
    ARE_YOU_SURE,
    ASKS,
    BEFORE_COMPLAINT,
    BEFORE_PET,
    CUES,
    EARS_AND_NOSE,
    NOT_BACK,
    RECURRENCES,
    YES_AFTER_ALL,
)
from demos.medagen.lexicon import Found
from demos.medagen.tokenizer import Words

_FAR = 4
"""Maximum number of words between a denial and the complaint that it denies."""
_LONGEST_FIELD = 6
"""Maximum number of words of a field of a form, such as "shortness of breath"."""
_LONGEST_ITEM = 4
"""Maximum number of words of a list item."""

_LONGEST_LISTED = 3
"""Maximum number of words of an item in a list that fills the rest of a sentence."""
_LONGEST_QUESTION = 15
"""Maximum number of words of a question about an illness in general."""
_NEAR = 12
"""Maximum number of words between a denial and somebody else who has the complaint."""


def standing(words: Words, found: Sequence[Found]) -> list[Found]:
    """Return the findings that are not denied, not from long ago, and somebody's own.

    What a film or a dream tells is nobody's own, and neither is a question about an illness in
    general or about what to do if a complaint ever comes. What is compared with long ago is not
    from then ("pain like last year"). What a pet has is no patient's, and the
    illness of a neighbor is over if the message asks how to prevent it.

    Args:
        words: Words of the message.
        found: Complaints found in the message.
    """
    marks = _marks(words)
    ends: dict[int, int] = defaultdict(int)
    for one in found:
        ends[one.start] = max(ends[one.start], one.end)
    denied = _denied_places(words, marks, ends) | _answered_no(words, marks)
    denied |= marks["named in doubt"]
    parts = _parts(words, marks["turn"])
    sentences = _parts(words, None)
    again = {sentences[at] for at in marks["again"]}
    again |= {sentence - 1 for sentence in again}  # "I used to have it. I have it again now."
    again |= {sentences[at] for at in back_again(words)}
    not_now = {at for at in marks["not now"] if sentences[at] not in again}
    past = _past_places(parts, not_now, marks["past after it"])
    is_question = words.words[-1:] == ["?"] or bool(marks["explained"])
    is_short = len(words.words) <= _LONGEST_QUESTION
    if is_short and is_question and marks["knowledge"] and not marks["person"]:
        return []  # a question about an illness, and nobody who has it
    awake = {sentences[at] for at in marks["awake"]}
    not_real = {sentences[at] for at in marks["dream"]} - awake
    not_real |= {sentences[at] for at in marks["not yet"]}
    elsewhere = _pets(parts, marks)
    if marks["prevention"] and not marks["happening"] | marks["them"]:
        elsewhere |= {parts[at] for at in marks["verb of others"]}
    supposed = _supposed_places(words, marks)
    after_story = _places_after(words, marks["end of a story"], BEFORE_COMPLAINT)
    of_pets = _places_after(words, _pet_subjects(words, parts, marks), BEFORE_COMPLAINT | AFTER_PET)
    return [
        one
        for one in found
        if one.start not in denied
        and not marks["denied"].intersection(one.between)
        and one.end not in marks["denied after it"]
        and one.end <= past.get(parts[one.start], one.end)
        and parts[one.start] not in elsewhere
        and sentences[one.start] not in not_real
        and one.start not in supposed
        and one.start not in of_pets
        and (one.start in after_story or not _is_of_a_story(one, sentences, marks))
    ]


def _is_of_a_story(one: Found, sentences: Sequence[int], marks: dict[str, set[int]]) -> bool:
    """Return whether a finding follows the mention of a story, and nobody real stands before it."""
    before = {
        kind: any(at < one.end and sentences[at] == sentences[one.start] for at in marks[kind])
        for kind in ("story", "self")
    }
    return before["story"] and not before["self"]


def _marks(words: Words) -> dict[str, set[int]]:
    """Return the start positions of each kind of cue."""
    marks: dict[str, set[int]] = defaultdict(set)
    cancelled: set[int] = set()
    over: set[int] = set()  # "no longer have" denies, "no longer breathing" does not
    reasons: set[int] = set()  # "vì" in "mất vì" begins no new part
    for one in CUES.find(words):
        marks[one.concept].add(one.start)
        if _cancels_a_denial(words, one):
            cancelled.update(range(one.start, one.end))
        elif one.concept == "over":
            over.add(one.start + 1)
            marks["one item"].add(one.start + 1)
        elif one.concept == "not now":
            reasons.add(one.end - 1)
        elif one.concept == "never":
            marks["words of never"].update(range(one.start + 1, one.end))
        elif one.concept == "thought not":
            marks["named in doubt"].update(range(one.start, one.end))
        elif one.concept in ("animal", "pet"):
            marks["its words"].update(range(one.start, one.end))
        elif one.concept in ("story", "knowledge", "nobody"):
            marks["told"].update(range(one.start - 1, one.end))
        elif one.concept == "after a story":
            marks["end of a story"].add(one.end)
        elif one.concept == "again at the end" and _ends(words, one.end, AFTER_AGAIN):
            marks["again"].add(one.start)
        elif one.concept in ("supposed", "others"):
            marks[f"verb of {one.concept}"].add(one.end - 1)
        elif one.concept == "compared":
            marks["past after it"].add(one.end)
        elif one.concept == "somebody else" and AFTER_WHO.issuperset(
            words.words[one.end : one.end + 1]
        ):
            cancelled.update(range(one.start - _NEAR, one.start))
    for at in marks["but for"]:
        cancelled.update(_denial_before(words, at, marks))
    marks["taken back"] = _taken_back(words, marks)
    marks["denied"] = (marks["denied"] - cancelled | over) - marks["taken back"]
    marks["denied after it"] -= cancelled | marks["taken back"]
    marks["not now"] = {at for at in marks["not now"] if at - 1 not in marks["denied"]}
    marks["turn"] -= reasons | marks["words of never"]
    marks["person"] -= marks["told"]
    marks["self"] = marks["self"] - marks["told"] | marks["busy"]
    return marks


def _cancels_a_denial(words: Words, one: Found) -> bool:
    """Return whether a cue denies nothing: "never stops", "went away and came back"."""
    if one.concept == "rather pressure":
        near = range(one.end, min(one.end + _NEAR, len(words.words)))
        clause = takewhile(lambda at: not words.parts_clauses(at), near)
        return _ends(words, one.end, AFTER_PRESSURE) and EARS_AND_NOSE.isdisjoint(
            words.words[at] for at in clause
        )
    stayed_away = words.words[one.end - 1] == "back" and words.words[one.end - 3] in NOT_BACK
    return one.concept == "no denial" and not stayed_away


def _ends(words: Words, at: int, goes_on: Container[str]) -> bool:
    """Return whether a clause ends at a position, or goes on with one of some words."""
    return at == len(words.words) or words.parts_clauses(at) or words.words[at] in goes_on


def amendments(words: Words) -> set[int]:
    """Return the start positions of what takes back a denial: "actually, yes"."""
    found = YES_AFTER_ALL.find(words)
    return {one.start for one in found if _ends(words, one.end, AFTER_YES)}


def back_again(words: Words) -> set[int]:
    """Return the positions in sentences that say what is back, and in the sentence before each.

    "I had a stroke last year. This feels the same."
    """
    found = RECURRENCES.find(words)
    other = {at for one in found if one.concept == "other" for at in range(one.start, one.end)}
    sentences = _parts(words, None)
    back = {
        sentences[one.end - 1]
        for one in found
        if one.concept == "back" and other.isdisjoint(range(one.start, one.end))
    }
    return {at for at, number in enumerate(sentences) if number in back or number + 1 in back}


def _taken_back(words: Words, marks: Mapping[str, set[int]]) -> set[int]:
    """Return the positions of denials that are taken back: "no chest pain. Wait, yes, I do"."""
    denials = marks["denied"] | marks["denied after it"]
    denials.update(at for at, word in enumerate(words.words) if word in ANSWERED_NO)
    sentences = _parts(words, None)
    until: dict[int, int] = {}  # sentence -> the last position that takes back what it denies
    for amended in sorted(amendments(words)):
        if _answers_another_question(words, amended, sentences, denials):
            continue
        for at in range(amended - 1, max(-1, amended - 1 - _NEAR), -1):
            if at in denials:
                until[sentences[at]] = amended
                break
    return {at for at in denials if at < until.get(sentences[at], 0)}


def _answers_another_question(
    words: Words, at: int, sentences: Sequence[int], denials: set[int]
) -> bool:
    """Return whether "actually, yes" answers a question that denies nothing: "Do you smoke?"."""
    if at < 2 or not words.is_break(at - 1) or "?" not in words.words[max(0, at - 4) : at]:
        return False
    end = max(each for each in range(at) if words.words[each] == "?")
    if not denials.isdisjoint(range(end, at)):  # "Chest pain? No. Wait, yes"
        return False
    asked = [each for each in range(end) if sentences[each] == sentences[end - 1]]
    return denials.isdisjoint(asked) and ARE_YOU_SURE.isdisjoint(
        map(words.words.__getitem__, asked)
    )


def _denial_before(words: Words, at: int, marks: Mapping[str, set[int]]) -> set[int]:
    """Return the position of the denial that "until" or "except" follows in its clause.

    Only "denies" reaches across commas, apart from one right before "until".
    """
    is_apart = at > 0 and words.words[at - 1] in ",;(–—" and words.words[at] != "before"
    commas = 0
    for place in range(at - 1 - is_apart, max(-1, at - 1 - _NEAR), -1):
        if place in marks["denied"]:
            return {place} if not commas or place in marks["whole list"] else set()
        if words.is_break(place) or place in marks["turn"]:
            break
        commas += words.words[place] == ","
    return set()


def _past_places(parts: Sequence[int], not_now: set[int], compared: set[int]) -> dict[int, int]:
    """Return part -> position from which it is long ago: "chest pain like in 2015" is now."""
    first = {parts[at - 1]: at for at in sorted(compared, reverse=True)}
    places: dict[int, int] = {}
    for at in sorted(not_now, reverse=True):
        begins = first.get(parts[at], 0)
        places[parts[at]] = begins if begins <= at + 1 else 0
    return places


def _pets(parts: Sequence[int], marks: dict[str, set[int]]) -> set[int]:
    """Return the parts about a pet in which nobody else appears."""
    if marks["as the pet"]:
        return set()
    people = {parts[at] for at in marks["hurt by it"] - marks["its words"]}
    return {parts[at] for at in marks["animal"]} - people


def _supposed_places(words: Words, marks: dict[str, set[int]]) -> set[int]:
    """Return the positions at which a complaint begins that is only supposed or feared.

    They reach from the verb of the supposition to the end of its clause, to another person and to
    what is not supposed: a cause, or medicines that somebody took.
    """
    ends = marks["turn"] | marks["person"] | marks["self"] | marks["supposed until"]
    places: set[int] = set()
    if marks["happening"]:
        return places
    for verb in marks["verb of supposed"]:
        places.add(verb)
        for at in range(verb + 1, len(words.words)):
            if words.parts_clauses(at) or at in ends:
                break
            places.add(at)
    return places


def _pet_subjects(
    words: Words, parts: Sequence[int], marks: Mapping[str, set[int]]
) -> Iterator[int]:
    """Yield the positions after pets that begin a clause in which nobody else appears."""
    if marks["as the pet"]:
        return
    people = {parts[at] for at in marks["hurt by it"] - marks["its words"]}
    for start in marks["pet"]:
        begins = start == 0 or words.parts_clauses(start - 1) or start - 1 in marks["turn"]
        if (begins or words.words[start - 1] in BEFORE_PET) and parts[start] not in people:
            end = start
            while end in marks["its words"]:
                end += 1
            yield end


def _places_after(words: Words, ends: Iterable[int], passed_over: Container[str]) -> set[int]:
    """Return the positions of what comes right after a place: "saw a film, then chest pain"."""
    places: set[int] = set()
    for end in ends:
        for place in range(end, min(end + _FAR, len(words.words))):
            places.add(place)
            if words.words[place] not in passed_over:
                break
    return places


def _answered_no(words: Words, marks: dict[str, set[int]]) -> set[int]:
    """Return the positions of the fields of a form that are answered with "no"."""
    places: set[int] = set()
    for at in range(2, len(words.words)):
        if at in marks["taken back"]:
            continue
        if words.words[at] in ANSWERED_NO and words.words[at - 1] in ":–—?(":
            field = _field_before(words, at - 1)
            is_answer = at + 1 == len(words.words) or words.parts_clauses(at + 1)
            is_asked = words.words[at - 1] == "?" and ASKS.issuperset(
                words.words[each] for each in field[:1]
            )
            is_own = marks["person"].intersection(field) and not is_asked
            is_over = not marks["but for"].isdisjoint((at + 1, at + 2))  # "no, until today"
            if (is_answer or _is_field(words, at + 1)) and not (is_own or is_over):
                places.update(field)
    return places


def _field_before(words: Words, end: int) -> range:
    """Return the positions of the field that ends at a position; none if it is too long."""
    start = end
    while start and end - start <= _LONGEST_FIELD:
        if words.parts_clauses(start - 1) or words.words[start - 1] in ANSWERED_NO:
            break
        start -= 1
    return range(start, end) if end - start <= _LONGEST_FIELD else range(0)


def _is_field(words: Words, start: int) -> bool:
    """Return whether a field of a form begins at a position: a few words and a colon."""
    following = words.words[start : start + _LONGEST_FIELD + 1]
    breaks = [at for at in range(start, start + len(following)) if words.parts_clauses(at)]
    return bool(breaks) and words.words[breaks[0]] == ":"


def _denied_places(words: Words, marks: dict[str, set[int]], ends: Mapping[int, int]) -> set[int]:
    """Return the positions at which a denied complaint begins.

    Args:
        words: Words of the message.
        marks: Start positions of each kind of cue.
        ends: Position at which a complaint begins -> the position after its last word.
    """
    places: set[int] = set()
    for cue in marks["denied"]:
        if words.words[cue - 1 : cue] == [":"] and _is_field(words, cue + 1):
            continue  # "Chest pain: no Fainting: yes"
        has_one_item = cue in marks["one item"]
        is_whole_list = cue in marks["whole list"] and not has_one_item
        items, ends_in_or = _items(words, cue + 1, marks, past_and=is_whole_list)
        places.update(_one_complaint(words, items[0], ends))
        rest = [item for item in items[1:] if item]
        is_short = all(len(item) <= _LONGEST_LISTED for item in items)
        if (
            is_whole_list
            or (ends_in_or and all(len(item) <= _LONGEST_ITEM for item in items[:-1]))
            or (not has_one_item and cue not in marks["never"] and len(rest) >= 2 and is_short)
        ):
            for item in rest:
                if not (is_whole_list and item[-1] in marks["present"]):
                    places.update(_one_complaint(words, item, ends))
    return places


def _one_complaint(words: Words, item: Sequence[int], ends: Mapping[int, int]) -> Sequence[int]:
    """Return the positions of a list item up to the end of its first complaint.

    A word that neither names a complaint nor leads to one is what is denied, as in "no allergies".
    """
    for at in item[: _FAR + 1]:
        if words.words[at] not in BEFORE_COMPLAINT:
            return [each for each in item if each <= at or each < ends.get(at, 0)]
    return item[: _FAR + 1]


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
        if at in marks["words of never"]:  # "giờ" in "bao giờ" is no item
            continue
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
        number += ends and not (at and words.is_break(at) and words.is_break(at - 1))  # "..."
        numbers.append(number)
    return numbers
