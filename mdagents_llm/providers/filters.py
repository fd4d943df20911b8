"""Detection of replies withheld by an endpoint's content filter, by error or finish reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from mdagents_llm.chat import ChatReply, TokenUsage
from mdagents_llm.errors import ProviderError
from mdagents_llm.providers.error_body import ErrorBody
from mdagents_llm.providers.error_text import own_words

_FINISHES = frozenset(
    [
        "content_filter",
        "content_filtered",
        "refusal",
        "sensitive",
        "guardrail_intervened",
        "guardrails",
        "safety",
        "prohibited_content",
        "blocklist",
        "spii",
        "recitation",
        "image_safety",
        "model_armor",
        "moderation",
        "blocked",
        "flagged",
        "censored",
        "risk",
    ]
)
"""Finish reasons of content filters: OpenAI, Anthropic, Z.ai (`sensitive`), Bedrock, Gemini and
gateways."""
_STATUSES = frozenset({None, 400, 403, 421, 422, 424, 446, 451, 498, 500})
"""HTTP statuses of content filter errors; None for an error inside a reply. 421 is Xiaomi's, 424
Cloudflare's, 446 Portkey's, 498 Cohere's."""
_UNAVAILABLE = 451
_FILTERED = re.compile(
    r"content[ _-]?filter|content management policy|contentpolicyviolation|content[ _]policy"
    r"|responsibleaipolicyviolation|content[ _]moderation|content[ _]safety"
    r"|\binvalid_prompt\b|data_?inspection_?failed|content exists risk|safety_check_type"
    r"|\bmoderation(_blocked)?\b|\bguardrail|prohibited_content|censorship"
    r"|\b(cyber|bio)_policy|_policy_violation"
    r"|\b(prompt|input|output|response|content|text|message)s? "
    r"(was |were |is |has been |have been |may have been )?(flagged|blocked|censored)"
    r"|prompt injection"
    r"|safety (system|filter|policy|policies|guardrail)"
    r"|(inappropriate|unsafe|sensitive|prohibited|harmful) (content|words|information)"
    r"|(considered|deemed) (to be )?high risk|unsafe or sensitive|sensitivecontentdetected"
    r"|new_sensitive|不安全或敏感|敏感内容|敏感词"
    r"|violat\w+ (of )?((our|the|your|\w+'s|usage|content|safety|acceptable|use) )*"
    r"(polic|guideline|terms)",
    re.IGNORECASE,
)
_ACCOUNT = re.compile(
    r"(?i)\b(account|organi[sz]ation|project|access|api key)\b[^.]{0,60}"
    r"\b(deactivated|disabled|terminated|suspended|banned|restricted|blocked|flagged)\b"
)
"""Pattern of messages about a blocked account, which would block every further call."""
_DOWN = re.compile(
    r"(?i)\b(guardrails?|moderation|content[ _-]?(safety|filter(ing)?|moderation))"
    r"(( (ai|api|service|server|endpoint|provider|system|request|call|client))+ "
    r"((has|is|was) )?(failed|error|unavailable|unreachable|down|timed out)"
    r"| ((has|is|was) )?(unavailable|unreachable|down|timed out)\b)"
    r"|(could not|cannot|can't|failed to|unable to) (connect to|reach|call|evaluate|load) "
    r"(the )?(guardrail|moderation|content[ _-]?(safety|filter))"
    r"|content_filter_error|invalid guardrail"
    r"|(AccessDenied|Throttling|ExpiredToken|UnrecognizedClient|ServiceUnavailable)Exception"
    r"|guardrail '?[\w-]{1,60}'? failed to evaluate"
    r"|guardrail budget|budget limit exceeded"
    r"|\b(key|model|provider)s? (is |are )?restricted by (a |the |your )?guardrail\b(?! from\b)"
    r"|(permission|allowed) to (use|modify) (the |this )?guardrail"
)
"""Pattern of messages about a filter that is down or set up wrongly, and blocked nothing."""
_PERHAPS_DOWN = re.compile(
    r"(?i)\bguardrails? (identifier|version|id|config\w*)\b[^.]{0,60}"
    r"(not exist|not found|invalid|missing)"
    r"|\b(guardrails?|moderation|content[ _-]?(safety|filter(ing)?|moderation))"
    r"(( (policy|model|name|rule))?( ['\"`]?[\w./:-]{1,60}['\"`]?)? ((was|is|does|could) )?"
    r"not (be )?(exist|found|configured)\b(?! to\b)"
    r"|( (ai|api|service|server|endpoint|provider))+ returned (an? |http |status |code )*"
    r"(40[1348]|429|5\d\d)\b)"
    r"|max retries exceeded with|(rate limit|quota) exceeded|too many requests"
    r"|connection (attempts? failed|refused|reset|error|aborted|timed out)|\btimed? ?out\b"
    r"|(could not|cannot|can't|failed to|unable to) (connect|reach|resolve|locate credentials)"
    r"|name resolution|name or service not known|server disconnected|service unavailable"
    r"|internal server error|(client|server) error '\d{3}|not authorized to perform"
)
"""Pattern of such messages that may also be about what was blocked."""
_BLOCKED = re.compile(
    r"(?i)\b(blocked|violat\w+|flagged|filtered|censored|withheld|mentions?|contains?|describes?)\b"
)
"""Pattern of messages about a text that was blocked."""
_WRONG_FORM = re.compile(r"(?i)invalid responses api request")
"""Pattern of OpenRouter's message for a malformed request, whose code is also `invalid_prompt`."""


class WithheldError(Exception):
    """Raised when the endpoint's content filter withheld the reply."""

    usage: TokenUsage = TokenUsage()
    """Tokens that the endpoint reports nevertheless."""


@contextmanager
def booking(reply: ChatReply) -> Iterator[None]:
    """Book the tokens of a reply on the error that is raised within the context."""
    try:
        yield
    except ProviderError as failure:
        failure.reply = reply
        raise
    except WithheldError as withheld:
        withheld.usage = reply.usage
        raise


def is_withheld(status: int | None, said: ErrorBody) -> bool:
    """Return whether an error means that a content filter withheld the reply.

    Args:
        status: HTTP status; None for an error inside a reply.
        said: Parsed body of the error.
    """
    if status == _UNAVAILABLE:
        return True
    words = f"{said.code} {own_words(said.words)}"
    is_other = any(other.search(words) for other in (_ACCOUNT, _DOWN, _WRONG_FORM))
    is_other |= bool(_PERHAPS_DOWN.search(words)) and not _BLOCKED.search(words)
    return status in _STATUSES and bool(_FILTERED.search(words)) and not is_other


def is_filters(finish: str) -> bool:
    """Return whether a finish reason is that of a filter, such as `content_filter: SAFETY`."""
    return finish.lower().partition(":")[0].strip().replace("-", "_") in _FINISHES
