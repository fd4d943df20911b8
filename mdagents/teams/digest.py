"""The digest of a debate for the moderator: decisive sentences of the experts, in a word limit.

It gives the changes of an answer, each with the decisive sentence of every expert who had written
to the one who changed in that round; then, where experts disagree to the end, the decisive
sentence of the last message between them. The number of messages is not informative.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

from mdagents.agents.events import DebateMessage
from mdagents.agents.replies import CHARS_PER_WORD
from mdagents.teams.clipping import clip
from mdagents.teams.decision import Stated

DIGEST_WORDS = 200
"""Maximum number of words of messages in the digest, at `CHARS_PER_WORD` characters each."""
SENTENCE_WORDS = 25
"""Maximum number of words of one decisive sentence."""
_LINES = DIGEST_WORDS // SENTENCE_WORDS

_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?])\s+(?=[^a-z\s])")
_WORDS_OF_ENGLISH = "AI"  # letters that are words as well: "A patient", "I think"


def digest(
    options: Mapping[str, str],
    stated: Sequence[Stated],
    messages: Sequence[DebateMessage],
    name: Callable[[str], str],
) -> str:
    """Summarize the debate in at most `DIGEST_WORDS` words of its messages.

    If the limit is too low for all, the latest changes are kept, and changes precede disagreement.

    Args:
        options: Letter -> text.
        stated: All opinions, in the order in which they were stated.
        messages: All delivered messages, in the order of delivery.
        name: `agent_id` -> name of that expert in the panel.
    """
    if not messages:
        return "Nobody asked for a discussion."
    changes = list(_changes(options, stated, messages, name))
    lines = changes[-_LINES:] or ["- Nobody changed the answer."]
    lines += list(_disputes(options, stated, messages, name))[: _LINES - len(changes[-_LINES:])]
    return "\n".join(["The debate:", *lines])


def _changes(
    options: Mapping[str, str],
    stated: Sequence[Stated],
    messages: Sequence[DebateMessage],
    name: Callable[[str], str],
) -> Iterator[str]:
    held: dict[str, str] = {}
    for opinion in stated:
        before = held.get(opinion.agent, opinion.answer)
        held[opinion.agent] = opinion.answer
        if opinion.answer == before:
            continue
        received: dict[str, list[str]] = {}
        for message in messages:
            if (message.recipient, message.round) == (opinion.agent, opinion.round):
                received.setdefault(message.sender, []).append(message.text)
        for sender, texts in received.items():
            sentence = decisive_sentence("\n".join(texts), options, opinion.answer)
            yield (
                f"- {name(opinion.agent)} changed from {before} to {opinion.answer} in round "
                f"{opinion.round} after {name(sender)} wrote: “{sentence}”"
            )


def _disputes(
    options: Mapping[str, str],
    stated: Sequence[Stated],
    messages: Sequence[DebateMessage],
    name: Callable[[str], str],
) -> Iterator[str]:
    final = {opinion.agent: opinion.answer for opinion in stated}
    last: dict[tuple[str, str], DebateMessage] = {}
    for message in reversed(messages):
        last.setdefault((message.sender, message.recipient), message)
    for (sender, recipient), message in last.items():
        if final[sender] != final[recipient]:
            sentence = decisive_sentence(message.text, options, final[sender])
            yield (
                f"- {name(sender)} ({final[sender]}) and {name(recipient)} ({final[recipient]}) "
                f"still disagree; {name(sender)} wrote last: “{sentence}”"
            )


def decisive_sentence(text: str, options: Mapping[str, str], answer: str) -> str:
    """Return the sentence of `text` that decides for an answer, in at most `SENTENCE_WORDS` words.

    The decisive sentence is the last one that names the answer; else the last one that names any
    option; else the last one.

    Args:
        text: One or more messages.
        options: Letter -> text.
        answer: Letter of the answer.
    """
    sentences = [s for s in _BETWEEN_SENTENCES.split(" ".join(text.split())) if s] or [""]
    named = {letter: options[letter] for letter in (answer,) if letter in options}
    for wanted in (named, options):
        for sentence in reversed(sentences):
            if any(names_option(sentence, *option) for option in wanted.items()):
                return _brief(sentence)
    return _brief(sentences[-1])


def names_option(sentence: str, letter: str, text: str) -> bool:
    """Return whether a sentence names an option by its letter or by its text.

    An `A` or `I` before any word except `is` counts as English, not as a letter.

    Args:
        sentence: Any text.
        letter: Letter of the option.
        text: Text of the option.
    """
    by_letter, by_text = _patterns(letter, text.strip(" ."))
    return bool(by_letter.search(sentence) or (by_text is not None and by_text.search(sentence)))


@lru_cache(maxsize=64)
def _patterns(letter: str, text: str) -> tuple[re.Pattern[str], re.Pattern[str] | None]:
    as_word = r"(?! (?!is\b)[a-z])" if letter in _WORDS_OF_ENGLISH else ""
    by_letter = re.compile(rf"(?<![\w'’]){letter}(?![\w'’]){as_word}")
    by_text = rf"(?<!\w){re.escape(text)}(?!\w)"
    return by_letter, re.compile(by_text, re.IGNORECASE) if text else None


def _brief(sentence: str) -> str:
    return clip(sentence, SENTENCE_WORDS * CHARS_PER_WORD)
