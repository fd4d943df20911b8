"""Finds reports of an immediate danger to life, without a model.

This is a safety net under the buffer agent: a segment that says "the patient is in cardiac arrest"
must be summarized even if the model that judges segments fails. The rules are English; text in
other languages is left to the model. docs/measurements/exaid.md gives their measured precision and
recall.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from itertools import chain
from operator import itemgetter

from exaid_core.checks.assertion import (
    LIST_REACH,
    denies_itself,
    is_affirmed,
    is_general,
    sentence_spans,
)
from exaid_core.checks.cue_files import normal, read_cues
from exaid_core.checks.cue_finder import CueFinder, Found
from exaid_core.checks.markup import displayed
from exaid_core.checks.term_list import phrases
from exaid_core.checks.vital_signs import dangerous_readings

CONTEXT = LIST_REACH
"""Number of characters before a chunk of a text that are read together with it."""

_FUNCTION_WORDS = phrases(
    "a, an, the, of, in, into, at, on, to, from, by, with, is, was, has, had, been, are, were"
)


def find_alert(text: str) -> str | None:
    """Return the first critical alert that a text affirms, in the text's own words.

    Args:
        text: Raw text of a trace segment.

    Returns:
        The words of the alert with single spaces, or None.
    """
    return next(find_alerts(text), None)


def find_alerts(text: str) -> Iterator[str]:
    """Yield the critical alerts that a text affirms, in order, each once and in its own words.

    An alert is a phrase from `exaid_core/checks/words/en/alerts.txt` or a vital sign beyond its
    threshold. An alert that is denied, feared or long past does not count (see `is_affirmed`), nor
    does general knowledge (see `is_general`); a suspected one does. Time is linear in the length of
    the text.

    Args:
        text: Raw text of a trace segment.

    Yields:
        The words of an alert with single spaces; before the value in a table's column, the name of
        the sign above it.
    """
    return (alert for _, alert in _affirmed(_read(text)))


def alerts_of_chunk(before: str, chunk: str) -> tuple[str, ...]:
    """Return the critical alerts of a chunk of a text, including one that began before the chunk.

    The text before the chunk tells what the chunk denies ("no evidence of" at its end). Its own
    alerts are not returned: they belong to an earlier chunk.

    Args:
        before: Text before the chunk; the last `CONTEXT` characters are used.
        chunk: Text of the chunk.
    """
    before = _read(before[-CONTEXT:])
    told = {start for start, _ in _affirmed(before)}
    joined = _affirmed(before + _read(chunk), len(before))
    new = [(start < len(before), alert) for start, alert in joined if start not in told]
    new.sort(key=itemgetter(0))  # those of the chunk alone come first
    return tuple(dict.fromkeys(alert for _, alert in new))


def mentions_alert(summary_text: str, alert: str) -> bool:
    """Return whether a reader of a summary learns of an alert.

    This holds if the summary affirms any critical alert, which sends the reader to the trace, or if
    it contains all words of this alert except articles, prepositions and auxiliary verbs, and does
    not deny it. Case, punctuation and word order are ignored.

    Args:
        summary_text: Text of all fields of the summary.
        alert: Alert that `find_alerts` found in the text that the summary covers.
    """
    if find_alert(summary_text):
        return True
    if any(_phrases(_read(summary_text))):  # every alert phrase in it is denied
        return False
    wanted = _words(alert)
    return bool(wanted) and wanted <= _words(summary_text)


def _read(text: str) -> str:
    return normal(displayed(text))


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", _read(text).lower())) - _FUNCTION_WORDS


def _affirmed(text: str, chunk: int = 0) -> Iterator[tuple[int, str]]:
    """Yield the start and the words of the alerts that a text affirms, in order, each once.

    Args:
        text: Text normalized by `exaid_core.checks.cue_files.normal`.
        chunk: Index from which alerts are yielded even if they were found before it.
    """
    seen = set()
    last_end = 0
    is_general_at = cache(lambda span: is_general(text[slice(*span)]))
    sentences: list[tuple[int, int]] = []  # split on first use: most texts have no alert
    stated = (
        (phrase.start, phrase.end, "")
        for phrase in _phrases(text)
        if not denies_itself(text[phrase.start : phrase.end], phrase.cue.expression)
    )
    for start, end, name in sorted(chain(stated, dangerous_readings(text))):
        alert = " ".join([*name.split(), *text[start:end].split()])
        key = (start >= chunk, alert.casefold())
        # "systolic BP 60/40" matches as a reading of two vital signs.
        if start < last_end or key in seen or not is_affirmed(text, start, end):
            continue
        sentences = sentences or sentence_spans(text)
        if is_general_at(sentences[bisect_right(sentences, (start, len(text))) - 1]):
            continue
        last_end = end
        seen.add(key)
        yield start, alert


def _phrases(text: str) -> Iterator[Found]:
    return (found for found in _phrase_finder().find(text) if found.cue.kind != "none")


@cache
def _phrase_finder() -> CueFinder:
    return CueFinder(read_cues("alerts"))
