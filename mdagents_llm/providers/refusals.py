"""Tells by the words of an error which setting an endpoint refuses."""

from __future__ import annotations

import re

from mdagents_llm.providers.error_text import PASSING, REFUSING, own_words

_BROKEN_OFF = re.compile(
    rf"{PASSING.pattern}|\bstream(ing)?(?= (error|failed|ended|closed|disconnected)\b"
    r"(?![^.;\n]{0,40}(not |un)support))"
)
"""Words about a reply that broke off, which name and refuse no setting."""
_NO_ZERO = re.compile(
    r"(?i)(strictly|be) positive|\(0(\.0+)?,|(greater than|>) ?0(\.0+)?(?![\d.]\d)"
    r"|between 0\.0*[1-9]"
)
"""Wordings by which endpoints refuse a setting of 0: their own default is used instead."""
_MAY_BE_ZERO = ("temperature", "top_p", "seed")
_STREAMED_ONLY = re.compile(
    r"(?i)\bonly (supports? (the )?stream|stream(ing)?( mode)? is supported)|non-streaming calls"
    r"|not support (a )?non-?stream|\bnon-?stream(ing)?\b[^.,;]{0,20}\bnot (supported|allowed)"
    r"|[仅只]支持流式|才能进行非流式|不支持非流式"
    r"|\bstream`? ?(=|must be( set to)?) ?`?(true|false)"
)
"""Wordings of Model Studio and ModelScope about a call without a stream, as for QwQ."""
_IS_THINKING = re.compile(r"(?i)reasoning|thinking|effort")
"""Names of reasoning settings, which differ between endpoints."""
_THINKING = re.compile(r"(?i)reasoning|\bthink|\beffort\b|\bbudget\b")
_OF_THINKING = {  # the first two are Anthropic's, which are distinct settings
    "effort": re.compile(r"(?i)\beffort\b"),
    "thinking": re.compile(r"(?i)\bthink|\bbudget\b"),
    "reasoning.summary": re.compile(r"(?i)\bsummar(y|ies)\b"),  # OpenAI, part of `reasoning`
}
_BAD_VALUE = re.compile(r"(?i)must be (one of|greater)|mandatory|invalid|should be|cannot be")
SYSTEM = "system"
"""Name of the setting that is the role of a system prompt."""
_OF_SYSTEM = re.compile(
    r"(?i)\b(system|developer)[ _-]?(role|instruction|message|prompt)s?\b|['\"`]system['\"`]"
)
_NO_SYSTEM = re.compile(
    r"(?i)(?<!message, )conversation roles must alternate"
    r"|\bonly user(, assistant)?,? and \w+ roles are supported"
)
"""Wordings of chat templates without a system role: of Mistral, Mixtral, and later ones."""
_IN_MESSAGES = ("", "role", "messages")
"""Settings that an error about the role of a message may name."""
_CLAUSE = re.compile(r"[.;\n]\s")
_FARTHEST = 80  # maximum characters between a setting's name and the words that refuse it


def is_refused(
    setting: str, status: int | None, message: str, about: str = "", code: str = ""
) -> bool:
    """Return whether an error means that an endpoint refuses a setting, such as `seed`, at all.

    Args:
        setting: Name of the setting as it was sent; `SYSTEM` for the role of a system prompt.
        status: HTTP status; None for an error inside a reply.
        message: The endpoint's error message.
        about: Setting that the error is about; empty if the endpoint does not name it separately.
        code: The endpoint's machine-readable codes.
    """
    is_of_template = setting == SYSTEM and status == 500  # llama.cpp
    is_of_gateway = "does not support parameters" in message  # LiteLLM
    if status not in (None, 400, 422) and not (is_of_template or is_of_gateway):
        return False
    clauses = _CLAUSE.split(_BROKEN_OFF.sub("", own_words(message)))
    is_named = about in ("", setting.rpartition(".")[2])  # for `reasoning.summary`, `summary`
    if _IS_THINKING.match(setting) and (is_named or _THINKING.search(about)):
        # A refused value must not end the run: the model's default is used instead.
        named = _OF_THINKING.get(setting, _THINKING)
        return any(
            named.search(one) and (REFUSING.search(one) or _BAD_VALUE.search(one))
            for one in clauses
        )
    if setting == SYSTEM:
        return about in _IN_MESSAGES and any(
            _NO_SYSTEM.search(one) or (_OF_SYSTEM.search(one) and REFUSING.search(one))
            for one in clauses
        )
    if about not in ("", setting):
        return False
    if about and re.search(r"unsupported_|unknown_parameter", code):
        return True
    name = re.compile(
        rf"\b{re.escape(setting)}{'(ing)?' if setting == 'stream' else ''}\b", re.IGNORECASE
    )
    if setting in _MAY_BE_ZERO and any(
        0 < refused.start() - named.start() <= _FARTHEST
        for clause in clauses
        for named in name.finditer(clause)
        for refused in _NO_ZERO.finditer(clause)
    ):
        return True
    return any(
        abs(named.start() - refused.start()) <= _FARTHEST
        for clause in clauses
        for named in name.finditer(clause)
        for refused in REFUSING.finditer(clause)
    )


def is_streamed_only(status: int | None, message: str) -> bool:
    """Return whether an error means that a model replies in streams alone.

    Args:
        status: HTTP status; None for an error inside a reply.
        message: The endpoint's error message.
    """
    return status in (None, 400, 422) and _STREAMED_ONLY.search(own_words(message)) is not None
