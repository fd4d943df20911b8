"""A summary form for models that are too small to write a summary: they choose sentences.

For each field, the model chooses among the agents' sentences of the field's kind, so that a summary
contains nothing that nobody said.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pydantic import Field, JsonValue, create_model

from exaid_core.checks.dissent import stated_answer
from exaid_core.checks.shortening import shorten
from exaid_core.checks.shortening_patterns import GOVERNS, QUALIFIES
from exaid_core.placeholders import PLACEHOLDER
from exaid_core.schema.agent_summary import LIMITS, SummaryDraft
from exaid_core.segments import Said
from exaid_core.tokenizer import count_words, sentence_ends
from mdagents_llm.text import one_line

_FEWEST_WORDS = 4
"""Minimum number of words in a sentence that is meaningful by itself."""
_MOST = 12
"""Maximum number of sentences of a kind, the newest: more would slow down a small model."""

_CUES: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "recommendation_next_step": re.compile(
            r"\b(should|must|needs? to|recommend\w*|start|stop|give|given|add\w*|administer\w*"
            r"|consider\w*|investigate|evaluat\w*|monitor\w*|check|treat|perform|consult\w*)\b",
            re.IGNORECASE,
        ),
        "differential_rationale": re.compile(
            r"\b(because|due to|suggests?|indicates?|diagnos\w*|likely|rather than|caused?|fits?"
            r"|options?|consistent with|points? to|rules? out|explains?)\b",
            re.IGNORECASE,
        ),
        "key_findings": re.compile(
            r"\d|\b(presents?|has|had|shows?|history|blood pressure|pulse|pain|fever|normal)\b",
            re.IGNORECASE,
        ),
    }
)
"""English cues of each field's kind of sentence; the first field that matches wins.

A sentence without cues, or in another language, is about status and action.
"""

_OTHER_HEADING = re.compile(
    r"\b(?:histor(?:y|ies)|family|risks?|differentials?|diagnos[ei]s|options?|choices|alternatives"
    r"|complications?|side effects|causes?|signs|symptoms)\b",
    re.IGNORECASE,
)
"""Headings below which an item without a verb is no statement about the patient now."""
_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|may|might|can|could|will|would|should)\b", re.IGNORECASE
)
_HEADING = re.compile(r".*:[\s*_]*\Z|\s*(?:#{1,6}\s|\*\*.*\*\*\s*\Z|__.*__\s*\Z)")
_BULLET = re.compile(r"\s*(?:(?P<sign>[-*+•●◦▪–])|\(?(?:\d{1,2}|[a-z])[.)])\s+")
# not "A:" of a note or of an assessment by ABCDE, nor "E. coli"
_OPTION = re.compile(r"\W*(?:[Oo]ption [A-J][).:]|[A-J](?:\)|\.(?!\W*[a-z])))\W*\s")
_STRUCK_OUT = re.compile(r"~~[^~]{1,2000}~~")


def form_of_choices(said: Sequence[Said]) -> type[SummaryDraft]:
    """Return a model class for a summary of `said` whose fields are choices among its sentences.

    The choices are listed in its schema but not enforced on a reply, such as one from the cache.
    """
    kinds: dict[str, list[str]] = {name: [] for name in LIMITS}
    for agent, sentence, whole in _sentences(said):
        kind = next((n for n, cue in _CUES.items() if cue.search(sentence)), "status_action")
        kinds[kind].append(whole)
        kinds["agent_contributions"].append(f"{agent}: {whole}")
    answers = {one.agent_id: letter for one in said if (letter := stated_answer(one.text))}
    if answers:
        held = "; ".join(f"{agent} holds {letter}" for agent, letter in answers.items())
        kinds["uncertainty_confidence"].append(held)
    fields: dict[str, Any] = {
        name: (str, Field(PLACEHOLDER, json_schema_extra={"enum": _choices(kinds[name], limit)}))
        for name, limit in LIMITS.items()
    }
    return create_model("SummaryDraft", __base__=SummaryDraft, **fields)


def _choices(texts: Sequence[str], limit: int) -> list[JsonValue]:
    short = [shorten(text, limit) for text in texts[-_MOST:]]
    return list(dict.fromkeys(filter(None, short))) or [PLACEHOLDER]


def _sentences(said: Sequence[Said]) -> Iterator[tuple[str, str, str]]:
    """Yield agent id, sentence, and the sentence with what it depends on; each sentence once.

    An item of a list depends on a heading that may deny or limit it ("Ruled out:", "If the CT is
    clear:"). What is struck out, and an option that is only repeated, are left out.
    """
    seen: set[str] = set()
    headings: defaultdict[str, _Headings] = defaultdict(_Headings)
    for one in said:
        for line in one.text.split("\n"):
            line = _STRUCK_OUT.sub("", line)
            heading, start = headings[one.agent_id].of(line), 0
            if "~~" in line or _is_bare_option(line):
                continue
            for end in sentence_ends(line):
                sentence, start = one_line(line[start:end]), end
                whole = _with_heading(heading, sentence)
                if (
                    whole not in seen
                    and count_words(sentence) >= _FEWEST_WORDS
                    and stated_answer(sentence) is None
                ):
                    seen.add(whole)
                    yield one.agent_id, sentence, whole


def _with_heading(heading: str, sentence: str) -> str:
    is_needed = GOVERNS.search(heading) or (
        _OTHER_HEADING.search(heading) and not _VERB.search(sentence)
    )
    return f"{heading}: {_without_bullet(sentence)}" if is_needed else sentence


def _without_bullet(line: str) -> str:
    bullet = _BULLET.match(line)
    return line[bullet.end() :] if bullet else line


class _Headings:
    """The headings of lists in the texts of an agent, line by line."""

    def __init__(self) -> None:
        self._heading = ""
        self._parent: re.Match[str] | None = None
        self._is_first = False

    def of(self, line: str) -> str:
        """Return the heading of the list that the next line is in, or an empty text.

        A list is made of items, or is the one line right below its heading.
        """
        if not line.strip():
            self._is_first = False
            return ""
        bullet = _BULLET.match(line)
        is_heading = _HEADING.match(line) is not None
        is_inside = bullet or (self._is_first and not is_heading)
        if not is_inside or _is_beside(bullet, self._parent):
            self._heading = ""
        heading, self._is_first = self._heading, is_heading
        if is_heading:
            words = one_line(_without_bullet(line)).strip(" #*_:")
            self._heading = words[[0, 0, *sentence_ends(words)][-2] :].strip()
            self._parent = bullet
        return heading


def _is_beside(bullet: re.Match[str] | None, parent: re.Match[str] | None) -> bool:
    """Return whether an item is in the same list as the item `parent`, not in one below it."""
    if bullet is None or parent is None or bullet["sign"] != parent["sign"]:
        return False
    indents = (len(item[0]) - len(item[0].lstrip()) for item in (bullet, parent))
    return next(indents) <= next(indents)


def _is_bare_option(line: str) -> bool:
    label = _OPTION.match(line)
    return label is not None and not QUALIFIES.search(line, label.end())
