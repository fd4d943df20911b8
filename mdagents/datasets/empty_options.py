"""Recognizes texts in the place of an option that does not exist."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

_NOT_APPLICABLE = re.compile(r"#?n\s*[/\\.:]\s*a\.?", re.IGNORECASE)
_INVISIBLE = re.compile(
    r"[\u00ad\u034f\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff]|&nbsp;"
)
"""Characters without a shape, such as the zero-width space, and the space of HTML."""
_MISSING = ("nan", "NaN", "<NA>")
"""Texts that pandas writes for an empty cell. In a table of questions with different numbers of
options, these are the last options; before other options, such a text may be a real option, as
`None` is anywhere."""


def is_empty(text: str) -> bool:
    """Return whether the text of an option says that there is none: blank, `n/a` or `#N/A`."""
    text = _INVISIBLE.sub("", text).strip()
    return not text or bool(_NOT_APPLICABLE.fullmatch(text))


def is_missing(text: str) -> bool:
    """Return whether the text of an option is pandas's text for an empty cell."""
    return text.strip() in _MISSING


def shown_options(options: Mapping[str, str], pictured: Collection[str] = ()) -> dict[str, str]:
    """Return the options that exist.

    Args:
        options: Letter -> text.
        pictured: Letters of options that have a picture, so that they need no text.
    """
    shown = {
        letter: text for letter, text in options.items() if letter in pictured or not is_empty(text)
    }
    while len(shown) > 2 and (last := max(shown)) not in pictured and is_missing(shown[last]):
        del shown[last]
    return shown
