"""Separates hidden reasoning that a model writes into its text, in tags such as `<think>`.

A server without a reasoning parser returns the tags as part of the reply.
"""

from __future__ import annotations

import json
import re
from functools import cache

_NAMES = (
    "think", "thinking", "thought", "seed:think", "longcat_think", "redacted_thinking",
    "reasoning_scratchpad", "think_fast", "think_faster",  # K2-Think and, below, K2-Horizon
    "ifm|think", "ifm|think_fast", "ifm|think_faster",
)  # fmt: skip
_FINAL = "<|channel|>final"  # gpt-oss
_DETAILS, _DETAILS_END = '<details type="reasoning"', "</details>"  # Open WebUI
_SOLAR, _GEMMA = "<|think|>", "<|channel>thought"
_TAGS = {
    **{f"<{name}>": (f"</{name}>",) for name in _NAMES},
    "<mm:think>": ("</mm:think>", "</think>"),  # MiniMax-M3
    "[think]": ("[/think]",),  # Magistral
    "◁think▷": ("◁/think▷",),  # Kimi-VL
    "<|channel|>analysis": ("<|end|>", _FINAL),
    _SOLAR: ("<|end|>", "<|content|>", "<|/think|>"),  # Solar Open
    _GEMMA: ("<channel|>",),  # Gemma 4
    "<|channel>\n": ("<channel|>",),
    "<unused94>": ("<unused95>",),  # MedGemma
    "[unused16]": ("[unused17]",),  # openPangu
    "<|start_thinking|>": ("<|end_thinking|>", "<|start_response|>", "<|start_text|>"),  # Cohere
    "<|begin_of_thought|>": ("<|end_of_thought|>", "<|begin_of_solution|>"),  # OpenThinker, Sky-T1
    "<|inner_prefix|>": ("<|inner_suffix|>",),  # Apertus
    "<｜begin▁of▁thinking｜>": ("<｜end▁of▁thinking｜>",),  # DeepSeek
    _DETAILS: (_DETAILS_END,),
}
"""Opening tag -> closing tags, in lower case."""
_MARKS = (
    "<|start|>assistant", "<|channel|>commentary", "<|constrain|>json", "<|message|>", "<|end|>",
    "<|return|>", "<|begin|>assistant", "<|end_response|>", "<|end_text|>", "<|end_of_solution|>",
    "[unused10]",
)  # fmt: skip
"""Other tags, which are dropped: of gpt-oss
(https://cookbook.openai.com/articles/openai-harmony), Solar Open, Cohere, OpenThinker, openPangu.
"""
_CLOSING = tuple(
    dict.fromkeys(
        end for ends in _TAGS.values() for end in ends if end not in (*_MARKS, _DETAILS_END)
    )
)
_AT_START = frozenset([_DETAILS, _SOLAR, _GEMMA])
"""Opening tags that begin a line or follow another tag; elsewhere, a text mentions them."""
_START = r"(?:^|(?<=>)|(?<=<\|begin\|>assistant))[ \t]*"
OPENING = re.compile(
    "|".join((_START if tag in _AT_START else "") + re.escape(tag) for tag in _TAGS),
    re.IGNORECASE | re.MULTILINE,
)
"""Pattern of an opening tag, with the space before it."""
CLOSING = re.compile("|".join(map(re.escape, _CLOSING)), re.IGNORECASE)
"""Pattern of a closing tag, before which text may be reasoning whose opening tag is missing."""
_MENTIONED = re.compile(rf"[ `'\"](?:{CLOSING.pattern})[ `'\".,]", re.IGNORECASE)
_MARK = re.compile("|".join(map(re.escape, _MARKS)), re.IGNORECASE)
_HEADER = re.compile(r"<\|channel\|>[^<]{0,60}(?:<\|constrain\|>[^<]{0,20})?<\|message\|>")
_FINAL_HEADER = re.compile(_HEADER.pattern.replace("[^<]{0,60}", "final[^<]{0,60}", 1))
_NO_MENTION = r"(?:(?<![ '\"`])assistant{0}|assistant{0}(?![ '\"`.,]))(?![_)]|i[sz])"
_IN_WORDS = re.compile(
    r"\s*(?:here(?:['’]s| is) my thought process:(.*?)here(?:['’]s| is) my response:"
    r"|#+ thinking[ \t]*\n(.*?)\n#+ final response\b:?"
    rf"|(?-i:analysis(?![ \t:.,;/_()|-])(?:(.*){_NO_MENTION.format('final')}"
    rf"|(.*?){_NO_MENTION.format('commentary')})))\s*",
    re.IGNORECASE | re.DOTALL,
)
"""Reasoning that Granite 3 and HuatuoGPT-o1 begin a text with, and gpt-oss behind a server that
drops special tokens; words without the second ones are a text."""
_TO = r"(?:<\|start\|>assistant)?[ \t]?to="
_FIRST_TO = re.compile(rf"\s*+{_TO}[^\s<]{{1,40}}<\|message\|>")
_TO_ITSELF = re.compile(
    rf"{_TO}self<\|message\|>(.*?)(?:<\|eo[mt]\|>|(?=<\|start\|>)|\Z)", re.DOTALL
)
_TO_OTHERS = re.compile(rf"{_TO}[^\s<]{{1,40}}(?=<\|message\|>)|{_HEADER.pattern}|<\|eo[mt]\|>")
"""Messages of Muse Glimmer to itself, which are reasoning, and what is around the others."""
_DETAILS_TAG = re.compile(
    rf"(?P<reasoning>{_START}{_DETAILS})|(?P<end>{_DETAILS_END})|<details\b",
    re.IGNORECASE | re.MULTILINE,
)
IN_TAGS = "its text was in reasoning tags"
"""Note about a reply without visible text (`ChatReply.note`)."""
_BEGINNING = re.compile("[<\\[◁]")  # first characters of tags
_LIKELY = re.compile(r"[<\[◁][/|｜a-z]", re.IGNORECASE)  # first two, rare in other texts
EVERY_TAG = (*_TAGS, *_CLOSING, *_MARKS)
"""Every tag of reasoning and around it, in lower case."""
_ANY = re.compile("|".join(map(re.escape, EVERY_TAG)), re.IGNORECASE)
_LONGEST = max(map(len, EVERY_TAG)) - 1  # maximum characters of an incomplete tag


@cache
def _any_of(closing: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of these closing tags; of every tag without one."""
    return re.compile("|".join(map(re.escape, closing)), re.IGNORECASE) if closing else _ANY


class ThinkTags:
    """Splits a streamed text into its visible part and its hidden reasoning.

    Reasoning that is never closed is hidden to the end. A closing tag without an opening one is
    dropped; the text before it has already been passed on (see `without_reasoning`).
    """

    def __init__(self) -> None:
        self._pending = ""  # possible beginning of a tag
        self._closing: tuple[str, ...] = ()  # closing tags to look for while inside reasoning
        self._visible = False  # whether any visible text other than whitespace was seen
        self._is_at_start = True  # whether a tag of `_AT_START` may follow
        self._hidden: list[str] = []

    @property
    def hidden(self) -> str:
        """Hidden reasoning so far, without its tags."""
        return _MARK.sub("", "".join(self._hidden))

    def feed(self, delta: str) -> str:
        """Return the visible text that a piece completes, which may be empty."""
        visible: list[str] = []
        if not self._pending and not self._closing and not _BEGINNING.search(delta):
            self._put(delta, visible)  # fast path for nearly every piece
            return visible[0]
        text, self._pending = self._pending + delta, ""
        while text:
            end, start = self._next_tag(text)
            self._put(text[:end], visible)
            if start is None:
                self._pending = text[end:]
                break
            tag, text = text[end:start], text[start:]
            if tag.lower() in _AT_START and not self._closing and not self._is_at_start:
                self._put(tag, visible)
                continue
            self._closing = () if self._closing else _TAGS.get(tag.lower(), ())
            self._is_at_start = True
        return "".join(visible)

    def end(self) -> str:
        """Return the remaining visible text, held back because it might have begun a tag."""
        visible: list[str] = []
        self._put(self._pending, visible)
        self._pending = ""
        return "".join(visible)

    def _next_tag(self, text: str) -> tuple[int, int | None]:
        """Return the start and end of the next tag; the end is None if the tag is incomplete."""
        if found := _any_of(self._closing).search(text):
            return found.span()
        tags = self._closing or EVERY_TAG
        for begin in _BEGINNING.finditer(text, max(0, len(text) - _LONGEST)):
            tail = text[begin.start() :].lower()
            if any(tag.startswith(tail) for tag in tags):
                return begin.start(), None
        return len(text), None

    def _put(self, text: str, visible: list[str]) -> None:
        if self._closing:
            self._hidden.append(text)
            return
        if not self._visible and self._hidden:
            text = text.lstrip()  # blank lines between the reasoning and the reply
        if before := text.rstrip(" \t"):
            self._is_at_start = before.endswith(("\n", ">"))
        self._visible = self._visible or bool(text.strip())
        visible.append(text)


def split_reasoning(text: str) -> tuple[str, str]:
    """Return the visible part and the reasoning of a complete text.

    Text before a closing tag without an opening one also counts as reasoning: the chat templates of
    DeepSeek-R1 and QwQ open the tag in the prompt.
    """
    if in_words := _split_in_words(text):
        return in_words
    if not _LIKELY.search(text):  # fast path for nearly every text
        return text, ""
    if finals := list(_FINAL_HEADER.finditer(text)):  # a header before it may be malformed
        before, text = text[: finals[-1].start()], text[finals[-1].end() :]
        return _MARK.sub("", text), _MARK.sub("", _HEADER.sub("", before))
    closed, opened = CLOSING.search(text), OPENING.search(text)
    if closed is None and opened is None and _MARK.search(text) is None:
        return text, ""
    if _is_json(text):  # whose values may mention tags
        return text, ""
    before = ""
    if closed and not (opened and opened.start() < closed.start()):
        before, text = text[: closed.start()], text[closed.end() :].lstrip()
    tags = ThinkTags()
    visible = tags.feed(text) + tags.end()
    return visible, _MARK.sub("", before) + tags.hidden


def _split_in_words(text: str) -> tuple[str, str] | None:
    """Return the visible part and the reasoning of a text that begins with words for reasoning."""
    if found := _IN_WORDS.match(text):
        return text[found.end() :], "".join(part or "" for part in found.groups())
    if not _FIRST_TO.match(text):
        return None
    visible = _MARK.sub("", _TO_OTHERS.sub("", _TO_ITSELF.sub("", text.lstrip())))
    return visible, "".join(_TO_ITSELF.findall(text))


def split_leading_reasoning(text: str) -> tuple[str, str]:
    """Return the visible part and the reasoning of a text on a wire with a field for reasoning.

    There, an opening tag within the text is a mention, as is a closing tag within a sentence.
    """
    if not _LIKELY.search(text):
        return text, ""
    opened = OPENING.search(text)
    before = text[: opened.start()] if opened else text
    is_opened = opened is not None and not before.strip()
    return split_reasoning(text) if is_opened or _is_closed(before) else (text, "")


def _is_closed(text: str) -> bool:
    """Return whether a text has a closing tag that is not a mention within a sentence."""
    return any(not _MENTIONED.match(text, tag.start() - 1) for tag in CLOSING.finditer(text))


def _is_json(text: str) -> bool:
    """Return whether a text is a JSON object or array."""
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False


def without_reasoning(text: str) -> str:
    """Return the visible part of a complete text, as `split_reasoning` determines it."""
    return split_reasoning(text)[0]


def without_reasoning_of_data(text: str) -> str:
    """Return the visible part of a text that may be of a program, such as a tool's result.

    Without an opening tag, a closing tag within a sentence is a mention.
    """
    is_mention = CLOSING.search(text) and not OPENING.search(text) and not _is_closed(text)
    return text if is_mention else without_reasoning(text)


def without_blocks(text: str) -> str:
    """Return a text without reasoning whose end is no tag of reasoning elsewhere.

    These are `</details>` of Open WebUI, and the words of Granite and others. Reasoning
    in `<details>` may contain other `<details>`; if it is never closed, it is left out to the end.
    """
    if in_words := _split_in_words(text):
        text = in_words[0]
    said: list[str] = []
    rest = depth = 0  # start of the text that follows; number of open tags
    for tag in _DETAILS_TAG.finditer(text):
        if depth == 0 and tag["reasoning"]:
            said.append(text[rest : tag.start()])
            rest, depth = len(text), 1
        elif depth and tag["end"]:
            rest, depth = tag.end(), depth - 1
        elif depth:
            depth += 1
    return "".join([*said, text[rest:]])
