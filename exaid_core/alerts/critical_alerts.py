"""Finds words that report an immediate danger to life, without asking a model.

A safety net under the buffer agent: a segment that says "the patient is in cardiac arrest" must be
summarised even if the model that judges segments fails.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

from exaid_core.alerts.assertion import is_affirmed
from exaid_core.alerts.vital_signs import dangerous_readings
from exaid_core.channel import clean
from exaid_core.term_list import read_terms, with_gaps

_ALERTS_FILE = Path(__file__).with_name("critical_alerts.txt")


def find_alert(text: str) -> str | None:
    """Return the first critical alert that a text affirms, in the text's own words.

    An alert is a phrase of `critical_alerts.txt` or a vital sign beyond its threshold. An alert
    that is denied, feared or long past does not count (see `is_affirmed`); a suspected one does.
    Time is linear in the length of the text.

    Args:
        text: A segment of a trace, as its tokens came.

    Returns:
        The words of the alert with single spaces, or None.
    """
    text = unicodedata.normalize("NFKC", clean(text)).replace("’", "'")
    for start, end in sorted(chain(_phrases(text), dangerous_readings(text))):
        if is_affirmed(text, start, end):
            return " ".join(text[start:end].split())
    return None


def _phrases(text: str) -> Iterator[tuple[int, int]]:
    return (match.span() for match in _phrase_pattern().finditer(text))


@cache
def _phrase_pattern() -> re.Pattern[str]:
    alternatives = "|".join(map(with_gaps, read_terms(_ALERTS_FILE)))
    return re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)", re.IGNORECASE)
