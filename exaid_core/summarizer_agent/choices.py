"""A summary form for models that are too small to write a summary: they choose sentences.

For each field, the model chooses among the agents' sentences of the field's kind, so that a summary
contains nothing that nobody said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pydantic import Field, JsonValue, create_model

from exaid_core.checks.dissent import stated_answer
from exaid_core.checks.shortening import shorten
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


def form_of_choices(said: Sequence[Said]) -> type[SummaryDraft]:
    """Return a model class for a summary of `said` whose fields are choices among its sentences.

    The choices are listed in its schema but not enforced on a reply, such as one from the cache.
    """
    kinds: dict[str, list[str]] = {name: [] for name in LIMITS}
    for agent, sentence in _sentences(said):
        kind = next((n for n, cue in _CUES.items() if cue.search(sentence)), "status_action")
        kinds[kind].append(sentence)
        kinds["agent_contributions"].append(f"{agent}: {sentence}")
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


def _sentences(said: Sequence[Said]) -> Iterator[tuple[str, str]]:
    """Yield pairs of agent id and sentence, without duplicate sentences."""
    seen: set[str] = set()
    for one in said:
        for line in one.text.split("\n"):
            start = 0
            for end in sentence_ends(line):
                sentence, start = one_line(line[start:end]), end
                if (
                    sentence not in seen
                    and count_words(sentence) >= _FEWEST_WORDS
                    and stated_answer(sentence) is None
                ):
                    seen.add(sentence)
                    yield one.agent_id, sentence
