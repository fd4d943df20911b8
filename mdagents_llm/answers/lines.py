"""Recognizes lines that consist of an option ("C", "(C)", "C) heparin"), and lists of options."""

import re
from itertools import takewhile

from mdagents_llm.answers.phrases import any_of, pattern
from mdagents_llm.answers.text import OptionTexts, words
from mdagents_llm.answers.value import Reading, Sense

# "C", "(C).", "Option C", "C C C", "选项C。"; a lowercase letter only in brackets or as the whole
# reply.
_LONE = re.compile(
    r"[\s(\[{<\"':=]*(?:(?i:option|choice|letter)\s[(\[]?"
    rf"|{any_of('option label')}\s?[(\[]?)?"
    r"(?P<letter>[A-Ja-j])(?:[\s,.]+(?P=letter)\b)*[)\]}>\"']*"
    r"(?:选项|選項|[项項]|です|である|だ|번?입니다|번)?[\s)\]}>\"'.:|。!]*"
)
# "C) text", "Option C: text", "C - text", "C (text)", "C、text"; "c) text", "c. text";
# "选项: A. text"
_LABELLED = re.compile(
    r"[\s(\[{<\"']*(?:(?:(?:[Oo]ption|[Cc]hoice|选项)\s?"
    rf"|(?i:{any_of('option label')})\s?:\s?(?!.*\s[(\[]?[B-J][)\].:]))[(\[]?)?"
    r"(?P<letter>[A-J]|[a-j](?=[)\]]|\.\s))"
    r"(?:\s?[)\]}.:|、]+|\s[-–—=](?=\s)|\s(?=[(⺀-힣]))\s*(?P<text>\S.*)?"
)
_LABEL_INSIDE = re.compile(r"[.;!]\s[(\[]?[A-J][)\].]\s")
_VERDICT = any_of("verdict")
_NO_PARAPHRASE = pattern(rf"{_VERDICT}|\b(?:because|since|would|is|are|was)\b")
_JUDGES = pattern(rf"^\W*{_VERDICT}|\bincorrect\b|\b(?:is|are)\s{_VERDICT}")
_DISMISSED = pattern(rf"\W*{any_of('dismissed')}")
# "Therefore, the best next step is:" announces an answer; "Options:" and "Blood group" do not.
_ANNOUNCES = pattern(rf"{any_of('states')}\W*$")
_SINGLES_OUT = pattern(any_of("best"))
# "First-line in pregnancy:", not "Best next step in management:"
_OTHERWISE = pattern(
    rf"{any_of('otherwise', 'denied', 'general')}"
    rf"|{any_of('of others')}(?! (?:management|treatment)\b)"
)
_TITLE = re.compile(r"\W*\w[\w'-]*(?:[ /]\W?\w[\w'-]*){0,3}\W?(?<![.!?;。])")
# Headings of a list that weighs this question's options: "Checking each option:", "Votes:".
_REVIEWS = pattern(any_of("reviews"))
_WEIGHTS = pattern(any_of("weights"))
# The end of an incomplete sentence, which options complete: "…, the next step is:".
_ASKS_TO_COMPLETE = re.compile(
    r"\b(?:is|are|was|be|by|of|with|for|to|in|on|includes?|except|following|shows?|reveals?)\W*$"
    r"|[是为為有]\W*$"
)
_LONGEST_REVIEW = 80  # characters
# "4", "80%", "2/10", "3 votes"
_VALUE = re.compile(r"\W*\d[\d.,]*\s?(?:%|/\s?\d+|(?:out )?of \d+|votes?|points?|票|표)?\W*")
_LONGEST_OPTION = 25  # words


def option_lines(lines: list[str], options: OptionTexts) -> list[Reading]:
    """Return the readings of the lines that consist of an option, excluding option lists."""
    listed = {index for run in option_lists(lines) for index in run}
    found = [
        reading
        for index, line in enumerate(lines)
        if index not in listed and not is_discussed(lines, index)
        if (reading := _read(line, len(lines) == 1, options))
    ]
    return found or _opening(lines, options)


def last_options(lines: list[str], options: OptionTexts) -> list[Reading]:
    """Return the readings of the last lines, as far as each of them is an option and no more."""
    found = (_read_bare(line, options) for line in reversed(lines))
    return [reading for reading in takewhile(bool, found) if reading]


def _read_bare(line: str, options: OptionTexts) -> Reading | None:
    label = _LABELLED.fullmatch(line)  # "A) Aspirin: too weak" explains
    if label and label["text"] and not options.exactly(label["text"]):
        return None
    return _read(line, False, options)


def is_discussed(lines: list[str], index: int) -> bool:
    """Return whether a line belongs to a heading that announces no answer, or is judged below.

    A heading is a line that ends in a colon, or a title of at most four words.
    """
    before = lines[index - 1] if index else ""
    is_heading = before.endswith(":") or _TITLE.fullmatch(before)
    if is_heading and not (_announces(before) or _LONE.fullmatch(before)):
        return not _LABELLED.match(before)
    return index + 1 < len(lines) and _DISMISSED.match(lines[index + 1]) is not None


def _announces(heading: str) -> bool:
    """Return whether a heading says that the line below is the answer."""
    if _ANNOUNCES.search(heading):
        return True
    sentence = heading.rpartition(". ")[2]
    return _SINGLES_OUT.search(sentence) is not None and _OTHERWISE.search(sentence) is None


def _opening(lines: list[str], options: OptionTexts) -> list[Reading]:
    """Read a first sentence that begins with an option: "C) Heparin. It …", "B. No, because …"."""
    labels = [label for line in lines if (label := _LABELLED.match(line))]
    first = _LABELLED.match(lines[0]) if lines else None
    is_cut_off = bool(lines) and lines[-1][-1] not in ".!?)\"'。"
    several = len({_letter(label) for label in labels}) > 1
    if first is None or is_cut_off or several or _LABEL_INSIDE.search(lines[0]):
        return []
    named = options.at_start(first["text"] or "")
    ends = named.letters and re.match(
        r"[.;!](?=\s)|,?\s(?:because|since|as)\b", first["text"][named.end :]
    )
    reading = _chosen(_letter(first), options) if ends else None
    return [reading] if reading and reading.letter in named.letters else []


def option_lists(lines: list[str]) -> list[range]:
    """Return the ranges of lists: consecutive lines with ascending letters, or letters only."""
    runs: list[range] = []
    start, last, was_lone = 0, "", False
    for index, line in enumerate(lines):
        lone = _LONE.fullmatch(line)
        label = lone or _LABELLED.match(line)
        letter = _letter(label) if label else ""
        goes_on = letter != last if lone else letter > last
        if not (letter and last and goes_on and was_lone == bool(lone)):
            runs.append(range(start, index))
            start = index
        last, was_lone = letter, bool(lone)
    runs.append(range(start, len(lines)))
    return [run for run in runs if len(run) > 1]


def is_of_this_question(lines: list[str], run: range, options: OptionTexts) -> bool | None:
    """Return whether a list repeats this question's options; None if it may discuss them."""
    labels = [label for index in run if (label := _LABELLED.match(lines[index]))]
    starts_over = labels and _letter(labels[0]) == "A"
    if starts_over and all(_text_is_exact(label, options) for label in labels):
        return True
    if 2 * sum(_discusses(label, options) for label in labels) >= len(labels):
        return None
    letters = "".join(map(_letter, labels))
    if not "ABCDEFGHIJ".startswith(letters):
        return None  # no list of options starts with "B" or omits one
    before = lines[run.start - 1] if run.start else ""
    return None if _weighs(before, labels) else False


def reviews(line: str) -> bool:
    """Return whether a line says that the reply goes over its answer or this question's options."""
    if len(line) > _LONGEST_REVIEW or line[-1:] not in (":", "?") or _ASKS_TO_COMPLETE.search(line):
        return False
    return _REVIEWS.search(line) is not None


def is_of_another_question(lines: list[str], run: range, options: OptionTexts) -> bool:
    """Return whether a list that does not discuss this question's options can be no discussion.

    It completes a sentence, has an option that this question lacks, or is said to be of "the
    others:" and has fewer.
    """
    before = lines[run.start - 1]
    if _ASKS_TO_COMPLETE.search(before) or (before[-1].isalnum() and not _TITLE.fullmatch(before)):
        return True
    last = _LABELLED.match(lines[run[-1]])
    letter = _letter(last) if last else ""
    is_shorter = letter < max(options.letters)
    return letter > max(options.letters) or (is_shorter and before.endswith(":"))


def _weighs(before: str, labels: list[re.Match[str]]) -> bool:
    """Return whether the heading of a list, or its values, say that it weighs the options."""
    if before.endswith("?"):
        return False
    if reviews(before):
        return True
    if not before.endswith(":"):
        return False
    texts: list[str] = [label["text"] or "" for label in labels]
    values = sum(_VALUE.fullmatch(text) is not None for text in texts)
    if 2 * values > len(labels):
        return _WEIGHTS.search(before) is not None  # else "Concentration of the drops:"
    if _ASKS_TO_COMPLETE.search(before):
        return False
    # "The ABCDEs of melanoma: A - Asymmetry"
    initials = sum(text[:1] == _letter(label) for label, text in zip(labels, texts, strict=True))
    return 2 * initials > len(labels)


def _discusses(label: re.Match[str], options: OptionTexts) -> bool:
    """Return whether a line repeats or judges this question's option."""
    text = label["text"] or ""
    own = set(options.words_of(_letter(label)))
    repeats = bool(own) and 2 * len(own & set(words(text))) > len(own)
    return bool(
        repeats
        or options.at_start(text).letters
        or options.has_unspaced(_letter(label), text)
        or _JUDGES.search(text)
        or text.endswith(":")
    )


def _text_is_exact(label: re.Match[str], options: OptionTexts) -> bool:
    return _letter(label) in options.exactly(label["text"] or "")


def _read(text: str, only_line: bool, options: OptionTexts) -> Reading | None:
    if lone := _LONE.fullmatch(text):
        letter = lone["letter"]
        if text.endswith(":") and not only_line:
            return None  # the value was cut off
        # Alone in lowercase, "a" and "i" are words, and other letters may be remnants.
        bracketed = text.strip(" .\"'")[-1:] in (")", "]", "}", ">")
        if letter.islower() and not bracketed and not (only_line and letter not in "ai"):
            return None
        return _chosen(letter.upper(), options)
    label = _LABELLED.fullmatch(text)
    if label is None or not label["text"]:
        return None
    letter = _letter(label)
    named = options.at_start(label["text"])
    whole = options.at_start(text)
    if whole.word_count > 1 and letter not in whole.letters | named.letters:
        return None  # "C. difficile colitis" is the text of another option
    if named.letters and not re.search(r"\w", label["text"][named.end :]):
        mismatch = letter not in named.letters
        # "A:" may stand for "Answer:"
        if mismatch and re.match(r"\W*A\s?:", text):
            return None
        return _chosen(letter, options, mismatch=mismatch)
    dotted = text[label.start("letter") : label.end("letter") + 1] == f"{letter.lower()}."
    if dotted or not _is_nearly(label, options):
        return None
    return _chosen(letter, options)


def _is_nearly(label: re.Match[str], options: OptionTexts) -> bool:
    """Return whether a label's text paraphrases its option: at least half of the words match."""
    own = options.words_of(_letter(label))
    said = words(label["text"])
    if not said or _NO_PARAPHRASE.search(label["text"]):
        return False
    if not own:
        return len(said) <= _LONGEST_OPTION
    return 2 * len(set(own) & set(said)) >= max(len(set(said)), len(set(own)))


def _letter(label: re.Match[str]) -> str:
    return label["letter"].upper()


def _chosen(letter: str, options: OptionTexts, *, mismatch: bool = False) -> Reading | None:
    return Reading(Sense.CHOSEN, letter, mismatch) if letter in options.letters else None
