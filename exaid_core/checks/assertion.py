"""Decides whether a text affirms a finding that it names: present, now, in this patient.

The method is ConText (Harkema et al. 2009, https://doi.org/10.1016/j.jbi.2009.05.002): cues before
or after the finding, each with a scope that ends at the end of the clause or at a new statement.
The heading of a list applies to its items.
The cues are English: `words/en/assertion.txt`.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

from exaid_core.checks.cue_files import LETTER, Cue, any_of, read_cues
from exaid_core.checks.cue_finder import CueFinder
from exaid_core.checks.number_words import NUMERAL
from exaid_core.checks.spoken_values import DECADE

REACH = 160
"""Number of characters before and after a finding that are searched for cues."""

LIST_REACH = 400
"""Number of characters before a list item that are searched for the heading of its list."""

_MOST_WORDS_OF_AN_ITEM = 8
"""Maximum number of words, besides the finding and up to the next comma; more are a sentence."""

_PAST = ("history", "event", "improving", "past")
_AT_ONCE = {"event": ("today", "lately"), "history": ("lately",)}
"""Kind of a cue -> kinds of words right behind a finding that end it."""
_DENYING = ("order", "negation")
_DENIED_OR_FEARED = ("denial", "feared")

ARROW = r"(?:-{1,3}>|={1,2}>|>>|[→⇒»])"
"""Regular expression for an arrow between two values."""

_VALUE = re.compile(rf"{NUMERAL}|{DECADE}", re.IGNORECASE)
_PLAIN_VALUE = re.compile(  # and no threshold
    rf"(?=.*(?:{_VALUE.pattern}))(?:{ARROW}|[^<>≤≥])*", re.DOTALL | re.IGNORECASE
)
_BOUND = re.compile(
    r"(?<![>-])(?<!\d\s=)>(?!>)|[<≤≥]|\b(?:less|under|below|greater|more|over|above)\b",
    re.IGNORECASE,
)
_APART = re.compile(r"[,:]|\s-\s")
_IN_BRACKETS = re.compile(  # "if …, start norad (BP 62/30)"
    r",\s*(?!e\.g|such as)\w[^(]*\(\s*\Z", re.IGNORECASE
)
_BRACKETS_END = re.compile(r"[^)]*\)\W*\Z")
_DASH = re.compile(r"(?<=\S)\s+[|–-]\s")
_STATEMENT = re.compile(  # behind a dash
    r"\s*(?:(?:now|\w+ly)\s+)*(?:in|(?:the\s+)?(?:patient|pt)(?:\s+in)?)\s+", re.IGNORECASE
)
_OR = re.compile(r"\s+or\b", re.IGNORECASE)
_NO_OBJECT = re.compile(  # "not seen - shock"
    r"\W*(?:present|seen|likely|evident|identified|found|noted|detected|suspected|meeting|consistent)\b",
    re.IGNORECASE,
)
_AFTER_OBJECT = re.compile(r"\w,\s\Z")
_OBJECT_AND_IN = re.compile(r"\w,?\s+(?:now )?in\s+\Z", re.IGNORECASE)
_OBJECT_APART = re.compile(r"\w,\s|\w\s+(?:c/b|complicated by|with)\s", re.IGNORECASE)
_ASKED = re.compile(r"\w[\"']? ?[:=?] ?[\"']?\Z")  # "fever: ", `"fever": "`
_END_OF_ANSWER = re.compile(r"[\"']? ?[,}\]|]")
_OBJECT_AND_COLON = re.compile(r"\w(?<!following)\s*:\s", re.IGNORECASE)
_OTHER_OBJECT = re.compile(  # "without oxygen his", but not "without a" or "without signs of"
    r"(?!\s*(?:an?|the|any|his|her)\s+\Z)[^(:]*\b(?!(?:of|in|or|nor|with|to)\b)\w+\s*",
    re.IGNORECASE,
)
_LEADS_TO_STATE = re.compile(  # after "no fever"
    r"(?:(?:,|\s[/|])\s*(?:and\s+)?|(?<=\w)\s+and\s+)(?:(?:the\s+)?(?:patient|pt)\s+)?"
    r"(?:(?:now|\w+ly)\s+)*(?P<in>in\s+)?\Z",
    re.IGNORECASE,
)
_BOX = r"(?:\[[\s_]{0,3}\]|\(\s{1,3}\)|[☐□])"
_TICKED = r"(?:[\[(]\s?x\s?[\])]|[☑☒✓✔✅])"
_IN_AN_EMPTY_BOX = re.compile(rf"{_BOX}\s*(?:\w+\s+)?\Z")
_IN_A_LINE_WITH_A_TICK = re.compile(rf".*{_TICKED}", re.IGNORECASE)
_EMPTY_BOX = re.compile(rf"[ \t]*(?:[-*+]\s)?\s*{_BOX}\s*")
_LINE_END = re.compile(r"[ \t.]*(?:\n|\Z)")
_TICKED_LINE = re.compile(rf"^[ \t]*(?:[-*+]\s)?\s*{_TICKED}", re.IGNORECASE | re.MULTILINE)
_CROSS = "[❌✗✘✖]"
_MINUS = r"[(\[]\s?[-–−]\s?[)\]]"
_PLUS = r"[(\[]\s?\+\s?[)\]]"
_MARKED_ABSENT = re.compile(  # also behind "(+) fever", and not "fever (-)"
    rf"(?:\A|[|;,:•*-])\s*(?:(?:{_TICKED}|{_CROSS}|{_MINUS}|{_PLUS}).*)?(?:{_CROSS}|{_MINUS}|∅)"
    r"[\s*_]*\Z",
    re.IGNORECASE,
)
_AFTER_A_MARK = re.compile(rf"(?:{_TICKED}|{_PLUS})\s*\Z", re.IGNORECASE)
_LEADING_DASH = re.compile(r"\A\s*—\s*")
_DENIED_WITH_MORE = re.compile(  # "no fever on", but not "no longer on"
    r"\W*+(?:(?:longer|yet|currently|now)\s+)?+(?:(?:on|requiring|needing)\s+)?+"
    r".*\b(?:on|off|from|with|and|by|despite|after|while|needing|requiring)\b",
    re.IGNORECASE | re.DOTALL,
)
_ITEM = re.compile(r"[ \t]*(?:[-*+•●◦▪–]|\(?(?:\d{1,2}|[a-z])[.)])\s+(?:\[.?\]\s)?", re.IGNORECASE)
_HEADING = re.compile(r".*:[\s*_]*\Z|\s*(?:#{1,6}\s|\*\*.*\*\*\s*\Z|__.*__\s*\Z)")
_SENTENCE_IN_HEADING = re.compile(r"[.;]\s+|\A(?:[-*+•●◦▪–]|\(?\w{1,2}\))\s+")
_NOT = re.compile(r"\b(?:not|never)\b", re.IGNORECASE)
_NO_BEHIND_QUESTION = re.compile(r"\?\s*no\b", re.IGNORECASE)
_UNTIL = re.compile("until", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?]\s+(?=[A-Z])|\n")


def is_affirmed(text: str, start: int, end: int) -> bool:
    """Return whether the text states that the finding `text[start:end]` is present in this patient.

    A finding is not affirmed if the clause or the heading of its list denies it ("no evidence of",
    "was ruled out"), makes it a condition or a risk ("if … occurs", "to prevent"), or places it in
    the past or in another person ("history of", "three years ago", "his father had"). A suspected
    finding counts as affirmed.

    Args:
        text: English text with ASCII apostrophes.
        start: Start index of the finding.
        end: End index of the finding.
    """
    finding = text[start:end]
    before = _clause_end().split(text[max(start - REACH, 0) : start])[-1]
    rest = _LEADING_DASH.sub(" – ", text[end : end + REACH])
    after = _clause_end().split(rest, maxsplit=1)[0]
    if _is_in_an_empty_box(text, start, end, before) or _is_struck_out(text, start, rest):
        return False
    if _answered_no().match(rest) and not _AFTER_A_MARK.search(before):
        return False
    # A cross beside a measured value marks it as bad.
    if not _PLAIN_VALUE.fullmatch(finding) and (
        _MARKED_ABSENT.search(before)
        or (_marked_absent_after().match(rest) and not _AFTER_A_MARK.search(before))
    ):
        return False
    if _any("as needed").search(before) and not _any("done").search(f"{before} {after}"):
        return False
    if _any("carried").search(before) and not _any("done", "injected").search(f"{before} {rest}"):
        return False
    if _is_denied_behind(finding, after, rest):
        return False
    if _is_in_a_list_of_absent(text, start, finding, rest):
        return False
    if _any("over").match(text, start, end + REACH):
        return False
    return not any(
        _reaches(str(cue.lastgroup), before[cue.end() :], finding, after)
        and not (cue.lastgroup in _DENYING and _is_an_answer(before, cue))
        for cue in _cue_before().finditer(before)
    )


def _is_an_answer(text: str, cue: re.Match[str]) -> bool:
    """Return whether a denial only answers what is before it: "fever: none, septic shock"."""
    asked = _ASKED.search(text, 0, cue.start())
    return asked is not None and _END_OF_ANSWER.match(text, cue.end()) is not None


def _is_denied_behind(finding: str, after: str, rest: str) -> bool:
    """Return whether the clause `after` a finding, which begins the text `rest`, denies it."""
    denial = _cue_after().match(after.replace("n't", " not"))
    if not denial or _NO_BEHIND_QUESTION.match(rest, len(after)):
        return False
    words = denial[0].lower()
    is_state = _any("state").match(finding) or _PLAIN_VALUE.fullmatch(finding)
    if words.endswith("identified") and is_state:
        return False  # rather the patient or the cause
    if words.endswith("resolving") and _any("again").search(after):
        return False
    return not (_NOT.search(words) and _UNTIL.match(rest, len(after)))


def context_before(text: str, start: int) -> str:
    """Return the part of the text before a finding that `is_affirmed` depends on."""
    heading = _list_heading(text, start)
    if heading:
        item = text[text.rindex("\n", 0, start) + 1 : start]
        return f"{heading}\n{item}"
    return text[max(start - REACH, 0) : start]


def _list_heading(text: str, start: int) -> str:
    """Return the line that is the heading of the list around `start`, or an empty string.

    A heading ends with a colon or is marked as one (`## …`, `**…**`). Its list is made of items, or
    is the one line below it.
    """
    *above, item = text[max(start - LIST_REACH, 0) : start].split("\n")
    is_item = _ITEM.match(item)
    below = item
    for line in reversed(above):
        if _HEADING.match(line):
            return line if is_item or below is item else ""
        # A blank line ends the list, except below its heading.
        if not is_item or not below.strip() or (line.strip() and not _ITEM.match(line)):
            return ""
        below = line
    return ""


def _is_in_a_list_of_absent(text: str, start: int, finding: str, rest: str) -> bool:
    """Return whether the heading of a list makes its items denied, past or feared.

    An item that says more ("found unresponsive", a measured value) does not belong to the list.

    Args:
        text: The whole text.
        start: Start index of the finding.
        finding: Words of the finding.
        rest: Text behind the finding.
    """
    heading = _list_heading(text, start)
    if not heading or _PLAIN_VALUE.fullmatch(finding):
        return False
    line = text.rindex("\n", 0, start) + 1
    bullet = _ITEM.match(text, line, start)
    item = text[bullet.end() if bullet else line : start]
    if _clause_end().search(item) or _any("new", "present", "told").search(item):
        return False
    behind = rest.partition("\n")[0]
    around = f"{item.rpartition(',')[2]} {behind.partition(',')[0]}"
    if len(around.split()) > _MOST_WORDS_OF_AN_ITEM:
        return False
    if _any("new", "holds").search(f"{finding}{behind}") or _today().match(behind):
        return False
    kinds = ["heading"]
    if _BOUND.search(finding):
        kinds.append("limits")
    if not _any("state").match(finding):
        kinds.append("past heading")
    title = _SENTENCE_IN_HEADING.split(heading.strip(" \t#*_:"))[-1].lstrip(" *_")
    return _any(*kinds).fullmatch(title) is not None


def _is_in_an_empty_box(text: str, start: int, end: int, before: str) -> bool:
    """Return whether a form leaves the box of a finding empty and ticks another.

    The other box is in its line, or in the next ones if the finding is all that its line says.
    """
    if not _IN_AN_EMPTY_BOX.search(before):
        return False
    line = max(text.rfind("\n", 0, start) + 1, start - REACH)
    if _IN_A_LINE_WITH_A_TICK.match(text, line, start + REACH):
        return True
    is_alone = _EMPTY_BOX.fullmatch(text, line, start) and _LINE_END.match(text, end)
    around = text[max(start - REACH, 0) : end + REACH]
    return is_alone is not None and _TICKED_LINE.search(around) is not None


def _is_struck_out(text: str, start: int, rest: str) -> bool:
    """Return whether a finding is within `~~…~~`."""
    line = max(text.rfind("\n", 0, start) + 1, start - REACH)
    return text.count("~~", line, start) % 2 == 1 and "~~" in rest.partition("\n")[0]


def denies_itself(finding: str, pattern: str) -> bool:
    """Return whether words between those of a finding deny it: "CPR was not performed".

    Words of its pattern ("no pulse") do not, nor does what is denied before a comma or "but", nor
    a denial of something else ("hypotension with no fever on norepinephrine").

    Args:
        finding: Words of the finding.
        pattern: Regular expression that found them.
    """
    own = re.findall(r"[a-z']+", pattern.lower())
    last = _clause_end().split(finding.rpartition(",")[2])[-1]
    return any(
        cue.lastgroup in _DENYING
        and cue[0].lower() not in own
        and not _DENIED_WITH_MORE.match(last[cue.end() :])
        for cue in _cue_before().finditer(last)
    )


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each sentence of a text, in order."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    return list(pairwise([0, *ends, len(text)]))


def is_general(sentence: str) -> bool:
    """Return whether a sentence speaks of no patient in particular.

    Such a sentence states knowledge about diseases and drugs without naming the patient ("Septic
    shock is a common cause of death"), or reports patients of the literature.

    Args:
        sentence: English text with ASCII apostrophes.
    """
    if _finder("literature").occurs(sentence):
        return True
    return not _finder("patient").occurs(sentence) and _finder("general").occurs(sentence)


def _reaches(kind: str, between: str, finding: str, after: str) -> bool:
    """Return whether a cue applies to the finding that follows after the text `between`."""
    if kind == "no_cue" or (kind in _DENYING and _stands_alone(between, finding, after)):
        return False
    if _at_once(*_AT_ONCE.get(kind, ())).match(after):
        return False
    if kind == "improving" and _any("again").search(after):
        return False
    if kind in _DENYING and _stands_behind_dash(between, finding, after):
        return False
    # "Risk of aspiration, GCS 5": a value is measured, whatever is denied or feared before it.
    is_value = kind in (*_DENYING, *_DENIED_OR_FEARED, *_PAST) and _PLAIN_VALUE.fullmatch(finding)
    if is_value and (_APART.search(between) or _any("given").search(between)):
        return False
    if kind in ("condition", "threshold"):
        return _is_conditional(kind, between, finding, after)
    if kind in _PAST and _any("present").search(between):
        return False
    if kind == "history" and (
        _OBJECT_AND_IN.search(between) or (_OBJECT_APART.search(between) and _today().match(after))
    ):
        return False
    if kind in _DENYING and _reason().match(between) and not _effect().fullmatch(between):
        return False
    if kind == "order" and _OBJECT_AND_COLON.search(between):
        return False
    if kind == "order" and is_value and _OTHER_OBJECT.fullmatch(between):
        return _BOUND.search(finding) is not None
    is_behind_colon = kind in _DENIED_OR_FEARED and between.startswith(":")
    if ("," in between or is_behind_colon) and _stated_of_it().match(after):
        return False
    if kind != "condition" and _AFTER_OBJECT.search(between) and _found_on(between, finding, after):
        return False
    return not (_new_statement().search(between) or _is_suspected(kind, between, after))


def _is_conditional(kind: str, between: str, finding: str, after: str) -> bool:
    """Return whether a finding belongs to a condition or threshold before the text `between`.

    The present value behind it does not: "if SBP < 80 (now 62)", "if fluids fail, … (BP 62/30)".
    """
    has_bound = _BOUND.search(finding) is not None
    if has_bound and _bound_and_now().search(finding):
        return False
    if kind == "threshold":
        return has_bound
    if ": " in between or _any("now").search(between):
        return False
    if has_bound or not _PLAIN_VALUE.fullmatch(finding):
        return True
    is_now = _any("now").search(finding) or _any("now").match(after.lstrip())
    is_apart = _APART.search(between) or _DASH.search(between)
    is_in_brackets = _IN_BRACKETS.search(between) and _BRACKETS_END.match(after)
    return not (is_now and is_apart) and not is_in_brackets


def _stands_behind_dash(between: str, finding: str, after: str) -> bool:
    """Return whether a dash or bar ends what is denied before a finding: "no trauma - pulseless".

    In a list of more parts it does not, nor behind "no evidence", nor before "… or fibrillation".
    """
    first, *others = _DASH.split(between)
    if not others or first.lstrip().startswith((":", "|")):
        return False
    if _STATEMENT.fullmatch(others[-1]) or (
        not others[-1].strip() and _any("state").match(finding)
    ):
        return _any("state").search(first) is None
    is_list = len(others) > 1 or _OR.match(after)
    return not is_list and not _NO_OBJECT.match(first) and not _any("sign").search(first)


def _is_suspected(kind: str, between: str, after: str) -> bool:
    """Return whether a finding is suspected, unlike what a cue before it denies."""
    if kind not in ("negation", "denial"):
        return False
    if _suspected().search(between):
        return not (
            _any("unsuspected").match(after.lstrip(" ,"))
            or _any("parallel").match(between.lstrip())
        )
    return _other_denied().search(between) is not None and _likelier().match(after) is not None


def _found_on(between: str, finding: str, after: str) -> bool:
    if not _any("rhythm").fullmatch(finding):
        return False
    place = after.lstrip()
    if _any("shown on").match(place):
        return _any("not shown").search(between) is not None
    return _any("found on").match(place) is not None


def _stands_alone(between: str, finding: str, after: str) -> bool:
    """Return whether a finding after "no fever, " is no part of the denied list.

    A measured value is none ("no chest pain, SpO2 70%", "no pain / BP 60/40"), nor is a state ("no
    trauma, comatose", "no fever / in shock", "no pain and unresponsive").
    """
    if _VALUE.search(finding):
        if "," in between or _any("and").search(between):
            return True
        # "no pain / or BP 60/40" and "no pain / BP 60/40 or below" go on with the list
        is_list = _OR.match(after) or _OR.match(between.rpartition("/")[2])
        return " / " in between and not (is_list or _BOUND.search(finding))
    lead = _LEADS_TO_STATE.search(between)
    if not lead:
        return False
    if lead["in"]:
        return True
    is_state = _any("state").match(finding) is not None
    if is_state and "," not in lead[0] and _any("attributive").match(after.lstrip()):
        return False
    # not "not comatose, unresponsive or …"
    return is_state and _any("state").search(between, 0, lead.start()) is None


def _cues(kind: str) -> list[Cue]:
    return [cue for cue in read_cues("assertion") if cue.kind == kind]


@cache
def _finder(kind: str) -> CueFinder:
    return CueFinder(_cues(kind))


@cache
def _any(*kinds: str) -> re.Pattern[str]:
    return re.compile(any_of(read_cues("assertion"), *kinds), re.IGNORECASE)


@cache
def _cue_before() -> re.Pattern[str]:
    # Of several kinds that match at one position, the first counts. Their common word boundaries
    # are checked once, not once per kind.
    groups = (
        f"(?P<{kind.replace(' ', '_')}>{'|'.join(cue.words() for cue in _cues(kind))})"
        for kind in ("no cue", "condition", "threshold", *_PAST, *_DENYING, *_DENIED_OR_FEARED)
    )
    return re.compile(rf"(?<!{LETTER})(?=\w)(?:{'|'.join(groups)})(?!{LETTER})", re.IGNORECASE)


@cache
def _clause_end() -> re.Pattern[str]:
    return re.compile(
        # A period, but not the one in "e.g." or 0.5.
        r"[;!?\n—]|(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\b[Dd]r)\.(?=\s|(?-i:[A-Z])|$)"
        rf"|{_any('clause end').pattern}",
        re.IGNORECASE,
    )


@cache
def _stated_of_it() -> re.Pattern[str]:
    return re.compile(rf"\s+(?:{_any('and').pattern}\s)?{_any('new').pattern}", re.IGNORECASE)


@cache
def _new_statement() -> re.Pattern[str]:
    """Return a pattern for new statements: "no fever, then he developed …", "…, … occurred"."""
    return re.compile(
        rf"(?:[,:]|{_any('and').pattern})\s*(?:\w+\s+){{0,3}}?{_any('new').pattern}", re.IGNORECASE
    )


@cache
def _bound_and_now() -> re.Pattern[str]:
    """Return a pattern for a bound and the present value: "GCS <8 (currently 6"."""
    return re.compile(
        rf"(?:{_BOUND.pattern}).*{_any('now').pattern}\W{{1,3}}\d", re.IGNORECASE | re.DOTALL
    )


@cache
def _suspected() -> re.Pattern[str]:
    return re.compile(
        rf"(?:[,:]|{_any('and').pattern})\s*{_any('suspected').pattern}[^,]*\Z", re.IGNORECASE
    )


@cache
def _other_denied() -> re.Pattern[str]:
    return re.compile(rf"(?:,|{_any('and').pattern})\s+\Z", re.IGNORECASE)


@cache
def _likelier() -> re.Pattern[str]:
    return re.compile(
        rf"\s+{_any('likelier').pattern}(?!\s+{_any('denied').pattern})", re.IGNORECASE
    )


@cache
def _reason() -> re.Pattern[str]:
    """Return a pattern for a denied object and what it is due to: "no CT because he is …"."""
    of_it = rf"(?:{_any('link').pattern}|{_any('no object').pattern}|\w+ly\b)"
    return re.compile(
        rf"(?!\W*(?:\w+\s+)?{_any('sign').pattern}).*?\b(?!{of_it})[^\W\d]\w*[\s,]+"
        rf"{_any('reason').pattern}",
        re.IGNORECASE | re.DOTALL,
    )


@cache
def _effect() -> re.Pattern[str]:
    """Return a pattern for a denied effect and its cause: "no bleeding due to"."""
    cause = r"(?:due to|secondary to|2/2|because of)"
    return re.compile(
        rf"\s(?:\w+\s){{0,2}}?{_any('effect').pattern}\s{cause}(?:\s[^,.]*)?", re.IGNORECASE
    )


@cache
def _today() -> re.Pattern[str]:
    return re.compile(rf"[^,]{{0,25}}?{_any('today', 'lately').pattern}", re.IGNORECASE)


@cache
def _at_once(*kinds: str) -> re.Pattern[str]:
    return re.compile(rf"\s+(?:early\s+|just\s+)?{_any(*kinds).pattern}", re.IGNORECASE)


@cache
def _ends() -> str:
    # Behind a comma or colon the denial ends its clause: "BP 70/40, no urine output" denies none.
    return rf"(?=\W*\Z|\s*(?:[,)(|–.;\n\]}}]|-(?!\w))|\s+{_any('denied by').pattern})"


@cache
def _answered_no() -> re.Pattern[str]:
    """Return a pattern for answers of forms and records: "…? No", "… (Y/N): N", `"…": false`."""
    return re.compile(
        r"[\"']?\s*(?:\(y/n\)\s*)?"
        rf"(?:[:=?]\s*[\"']?{_any('answer').pattern}[\"']?{_ends()}|neg{_ends()}"
        rf"|[:?]?\s*(?:{_BOX}\s*yes\W{{1,3}}{_TICKED}\s*no\b|{_TICKED}\s*no\b(?!\s+\w)))",
        re.IGNORECASE,
    )


@cache
def _marked_absent_after() -> re.Pattern[str]:
    return re.compile(
        r"[ \t|:=*_>→-]{0,6}"
        rf"(?:{_CROSS}(?=\W*(?:\Z|\n|(?:no|not|absent|none|denied|negative|ruled)\b)|{_ends()})"
        rf"|(?:{_MINUS}|\(neg\)|\(?(?<=[\s(:])-ve\b){_ends()})",
        re.IGNORECASE,
    )


@cache
def _cue_after() -> re.Pattern[str]:
    links = rf"(?:{_any('link').pattern}\s+){{1,5}}"
    denied = _any("denied").pattern
    # "A/B ruled out", "A or B: none"
    other = rf"(?:/{_any('either').pattern}|\sor\s\w+(?:\s\w+)?)?"
    return re.compile(
        rf"[\s*_:=()|–,-]{{0,4}}{_any('after').pattern}"
        rf"|{other}[\s*_:=()|–,-]{{0,6}}(?:{links}{denied}|{denied}{_ends()})"
        rf"|{other}[\s*_]{{0,4}}(?!no\b){denied}"
        rf"|[^,]{{0,25}}{_any('long ago').pattern}",
        re.IGNORECASE,
    )
