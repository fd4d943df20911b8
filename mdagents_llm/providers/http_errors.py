"""Classification of HTTP errors of model endpoints, for all providers."""

from __future__ import annotations

import re

from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.providers.connection_errors import PROXY_PASSWORD, proxy_error
from mdagents_llm.providers.error_text import PASSING, REFUSING, masked_line, own_words
from mdagents_llm.providers.waits import SHORTEST_OF_QUOTA, TOO_MANY_REQUESTS, seconds_in_words

OTHER_SHAPES = (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError)
"""Exceptions raised while reading a body that is not JSON (a ValueError), has an unexpected shape,
or is nested too deeply."""

_QUOTA = (
    "insufficient_quota",
    "billing_hard_limit",
    "billing_not_active",
    "credit_balance",
    "credit balance",
    "spend_limit",
    "usage_limit",
    "your usage limit",
    "regain access on",
    "session usage limit",  # Ollama
    "monthly limit exhausted",  # Z.ai
    "insufficient_user_quota",  # one-api
    "budget_exceeded",  # LiteLLM
    "budget has been exceeded",
    "exceededbudget",
    "setlimitexceeded",  # Volcengine
    "perday",  # Google's ids of quotas: GenerateRequestsPerDayPerProjectPerModel
    "models-per-day",  # OpenRouter
    "insufficient balance",
    "insufficient_balance",
    "insufficient account balance",
    "balance is insufficient",  # SiliconFlow
    "insufficient credit",
    "insufficient funds",
    "out of credits",
    "used all available credits",  # xAI
    "credits are depleted",  # Gemini
    "credits_required",  # Anthropic
    "exceeded_current_quota",  # Moonshot
    "arrearage",  # Model Studio
    "accountoverdue",  # Volcengine
    "payment required",
    "余额不足",  # Zhipu: insufficient balance
    "使用上限",  # Zhipu: usage limit
)
_OF_TOKENS = "error-code#token-limit"
"""Address by which Model Studio tells a limit of a minute from a spent quota."""
_BUDGET = re.compile(
    r"(?<!token )(?<!thinking )(?<!reasoning )budget limit exceeded|guardrail budget exceeded"
)
"""OpenRouter's wordings of a spent budget of money."""
_LIMIT = (
    "usage limit reached",  # MiniMax
    "api usage limits",  # Anthropic, for a limit that the user set
    "spend limit",
    "spending limit",  # Fireworks
    "spending cap",  # Gemini
    "free allocation",  # Cloudflare
)
"""Wordings of a quota, or of a rate limit if it is over soon."""
_OF_DAYS = re.compile(
    r"\b(hourly|daily|weekly|monthly) (\w+ ){0,2}(limits?|quotas?|allowance|allocation|cap)\b"
    r"|\b(requests?|calls?|tokens?|messages?)( (per|an?|each|every) | ?/ ?)(hour|day|week|month)\b"
    r"|\b[rt]pd\b|[每今当本][日天周月].{0,10}(用完|用尽|耗尽|上限|超出|超过)"
)
"""Wordings of a rate limit that a call does not outlast, unless it asks for a shorter pause."""
_NOTHING_ALLOWED = re.compile(r"_(requests|count), limit: 0(?![\d.])")
"""Google's wording for a model that the plan does not have."""
_ADDRESS = re.compile(r"https?://\S+")
_OF_A_MINUTE = re.compile(
    r"\b(per|this|each|every|one|a|next)[ _-](\d+ )?(minute|second)s?\b|\b[rt]p[ms]\b"
    r"|/ ?(min|sec|second)"
)
_SHORTEST_OF_DAYS = 3600  # seconds; the same as `SHORTEST_OF_QUOTA` for limits that name a period
_TOO_LARGE = "request too large"
"""OpenAI's wording for a request of more tokens than the limit of a minute."""
_OF_QUOTA = (None, 400, 403, 412, 429, 500)
"""HTTP statuses of an exhausted quota besides 402: 400 is Anthropic's, 412 Fireworks's."""
_CONTEXT = (
    "context_length",
    "context length",
    "context window",
    "context size",
    "context_size",
    "input token",  # OpenAI "Input tokens exceed", Gemini "The input token count exceeds"
    "reduce the length of the messages",  # Groq
    "context limit",
    "maximum context",
    "must be at least 1, got -",  # vLLM: the prompt leaves no room for a reply
    "`inputs` tokens",  # TGI
    "`inputs` must have less than",
    "longer than the model",  # SGLang
    "too long for requested model",  # Bedrock
    "range of input length",  # Model Studio
    "too many tokens",
    "maximum prompt length",  # xAI
    "prompt token count",  # Copilot
    "exceeded model token limit",  # Moonshot
)
_TOO_LONG = re.compile(
    r"\b(input|prompt|user message)( length)?( \d+)? (is )?"
    r"(too long|exceeds (the )?max(imum)?( allowed)?( input)? length)\b"
)
"""Wordings of Anthropic, Ollama, Volcengine and others about a prompt."""
_SCHEMA = (
    "response_format",
    "text.format",  # the Responses API
    "json mode",
    "json_schema",
    "json schema",
    "response_schema",
    "grammar",
    "schema",
    "tool_choice",  # Anthropic, where a forced tool carries the schema
    "output_config",
    "structured-output",
    "structured output",
    "structured_output",
)
_NO_EYES = re.compile(
    r"(image|vision|multi-?modal)\w*\b.{0,60}(\bnot|n't|\bonly) (be )?"
    r"(support|enabled|accepted|allowed|available)"  # llama.cpp, Mistral, Gemini, OpenAI
    r"|(not|n't|no) (support|accept|handle|take|process)\w* (the |any )?(image|vision|multi-?modal)"
    r"|support image input"  # OpenRouter: no endpoint does
    r"|not a (multi-?modal|vision)|at most 0 image"  # vLLM
    r"|mmproj|missing data required for image"  # llama.cpp, Ollama
    r"|unknown variant `?(image|input_image)"  # DeepSeek, and before it the next two
    r"|untagged enum chatcompletionrequestcontent|invalid type: sequence, expected a string"
    r"|content must be a string"  # Groq
    r"|unsupported content part type|input should be 'text'"
    r"|'?(image_url|input_image)'?\W.{0,20}supported values",
    re.IGNORECASE,
)
"""Wordings by which endpoints say that a model takes no pictures, if the request had some."""
_BAD_PICTURE = re.compile(
    r"\b(formats?|mime|media[_ ]type|sizes?|dimensions?|resolution|pixels?|base64|decod\w+"
    r"|corrupt\w*|exceeds?|empty|animated"
    r"|(load|process|parse|unsupported|invalid) (the )?(input )?image"
    r"|too (large|big|small|many)|image_parse_error|invalid_image\w*|image_too_\w+)\b",
    re.IGNORECASE,
)
"""Wordings of errors about one picture; another one may be accepted."""
_OF_PICTURES = (None, 400, 404, 405, 415, 422, 500, 501)
_NO_MODEL = (
    "model not exist",  # DeepSeek
    "not a valid model",  # OpenRouter
    "invalid model: ",  # Mistral
    "invalid_model",
    "model_not_found",
    "model_decommissioned",  # Groq
    "model_not_supported",  # Copilot
    "use models api to get a list of supported models",  # Bedrock Access Gateway
    "no models loaded",  # LM Studio
    "failed to load model",
    "model does not exist",  # SiliconFlow
    "模型不存在",  # Zhipu
    "invalid model name",  # LiteLLM
    "provided model identifier is invalid",  # Bedrock
    "on-demand throughput",  # Bedrock, for a model without an inference profile
    "model_not_available",  # Together
    "dedicated_endpoint_not_running",
    "unknown_model",  # GitHub Models
    "unavailable_model",
)
_MISSING_MODEL = re.compile(
    r"(?<!moderation )(?<!guardrail )\bmodel not found\b"
    r"|\bthe model ['\"`][^'\"`\s]{1,100}['\"`] (does not exist|(was |is )?not found)"
)
_NOT_SUPPORTED = re.compile(
    r"(?<!an )(?<!a )\bnot supported model:? (?!\w*(?:parameter|option|input|output|field|setting"
    r"|feature|type|format|argument|config|version|mode\b|kwargs|schema|role)s?)\S"
)
"""Xiaomi's wording about a model, which its name follows."""
_NO_CHANNEL = ("无可用渠道", "no available channel")  # one-api: nobody serves the model
_NOT_ALLOWED = 405
_NO_METHOD = re.compile(
    r"(?i)\b(method|post)\b[^.,;]{0,20}\bnot allowed\b|\b405 not allowed\b"
    r"|\A\W*(not allowed\W*)?\Z"
)
"""Messages with status 405 about the address; a firewall that blocks one request says so."""
_NO_ENDPOINT = re.compile(r"(?i)unexpected endpoint or method")  # LM Studio, with status 200

_AUTH = (
    "api key",  # Gemini returns 400 for a wrong key
    "api_key",
    "apikey",
    "invalid_authentication",
    "authentication_error",
    "unauthorized",
    "location is not supported",  # Gemini
    "unsupported countries",  # Anthropic
    "unsupported_country",  # OpenAI
    "not allowed to use publisher model",  # Vertex
)
_BARRED = re.compile(
    r"\b(account|organi[sz]ation)( \S+)? (is|was|has been) "
    r"(suspended|deactivated|disabled|restricted|banned|terminated)"
)
"""Wordings about an account that may call no model, of Anthropic, Groq and others."""
_RATE = (
    "rate_limit",
    "rate limit",
    "ratelimit",
    "too many requests",
    "resource_exhausted",
    "throttling",  # Bedrock
    "please wait before",
    "tokens per minute",  # Cerebras
    "requests per minute",
)
_SATURATED = ("负载已饱和",)  # one-api, which calls it a quota
_DEGRADED = "degraded function"  # NVIDIA, with status 400
_BUSY = ("overloaded", "at capacity", "no capacity", "engine_overloaded")


def status_error(
    host: str,
    status: int | None,
    message: str,
    *,
    code: str = "",
    retry_after: float | None = None,
    asked_with_schema: bool = False,
    asked_with_pictures: bool = False,
) -> ProviderError:
    """Return the `ProviderError` for an HTTP status that is not 2xx.

    Args:
        host: Host of the endpoint, for the message.
        status: HTTP status; None for an error in place of a reply, without a status.
        message: The endpoint's error message; keys in it are masked, and it is shortened.
        code: The endpoint's machine-readable code and type; empty if it has none.
        retry_after: Seconds that the endpoint asked to wait; None if it did so at most in words.
        asked_with_schema: Whether the request used native schema support, so that an error
            about a schema means that the endpoint does not support it.
        asked_with_pictures: Whether the request had pictures.
    """
    own = own_words(message)
    if status == PROXY_PASSWORD:
        return proxy_error(host, f"{status} {own}")
    words = f"{code} {own}".lower()
    start = f"{status} from {host}" if status is not None else f"{host} sent an error"
    said = masked_line(own)
    pause = seconds_in_words(own) if retry_after is None else retry_after
    kind = (asked_with_pictures and _kind_of_picture(status, words)) or _kind(
        status, words, pause, asked_with_schema
    )
    if kind is ErrorKind.MODEL_NOT_FOUND and _has_no_route(status, own):
        start = f"{start} (check the base URL)"
    if kind in (ErrorKind.RATE_LIMIT, ErrorKind.OVERLOADED):
        retry_after = pause
    return ProviderError(
        f"{start}: {said}" if said else start, kind=kind, status=status, retry_after=retry_after
    )


def _kind(
    status: int | None, words: str, pause: float | None, asked_with_schema: bool
) -> ErrorKind:
    by_status = {
        401: ErrorKind.AUTH,
        403: ErrorKind.AUTH,
        404: ErrorKind.MODEL_NOT_FOUND,
        408: ErrorKind.TIMEOUT,
        409: ErrorKind.SERVER,
        410: ErrorKind.MODEL_NOT_FOUND,
        413: ErrorKind.CONTEXT_LENGTH,
        424: ErrorKind.SERVER,  # TGI: the generation failed
        425: ErrorKind.SERVER,
        498: ErrorKind.OVERLOADED,
        499: ErrorKind.CONNECTION,  # nginx: the connection to the server behind it was closed
        503: ErrorKind.OVERLOADED,
        529: ErrorKind.OVERLOADED,
    }
    if _has(words, _SATURATED):
        return ErrorKind.OVERLOADED
    is_spent = _OF_TOKENS not in words and (_has(words, _QUOTA) or _BUDGET.search(words))
    if status == 402 or (status in _OF_QUOTA and is_spent):
        return ErrorKind.QUOTA
    if status in _OF_QUOTA and _has(words, _LIMIT):
        return ErrorKind.RATE_LIMIT if _is_over_soon(words) else ErrorKind.QUOTA
    if status == TOO_MANY_REQUESTS or (status in (None, 400, 403, 500) and _has(words, _RATE)):
        if _TOO_LARGE in words:
            return ErrorKind.CONTEXT_LENGTH
        return ErrorKind.QUOTA if _outlasts_a_call(words, pause) else ErrorKind.RATE_LIMIT
    if _has(words, _NO_CHANNEL) or _has_no_route(status, words):
        return ErrorKind.MODEL_NOT_FOUND
    if asked_with_schema and status in (404, 500, 501) and _is_about_a_schema(words):
        return ErrorKind.SCHEMA_UNSUPPORTED
    if status in by_status:
        return by_status[status]
    if status == 500 and _is_too_long(words):  # llama.cpp's server
        return ErrorKind.CONTEXT_LENGTH
    if status is not None and status >= 500:
        return ErrorKind.SERVER
    return _kind_of_words(words, asked_with_schema) or (
        ErrorKind.SERVER if status is None else ErrorKind.BAD_REQUEST
    )


def _kind_of_picture(status: int | None, words: str) -> ErrorKind | None:
    """Return the kind of an error about pictures; None if it is about something else."""
    if status not in _OF_PICTURES or ("image" not in words and not _NO_EYES.search(words)):
        return None
    if _BAD_PICTURE.search(words):
        return ErrorKind.BAD_REQUEST
    return ErrorKind.IMAGES_REFUSED if _NO_EYES.search(words) else None


def _kind_of_words(words: str, asked_with_schema: bool) -> ErrorKind | None:
    """Return the kind of a 400 error by its message; None if the message is inconclusive."""
    if _is_too_long(words):
        return ErrorKind.CONTEXT_LENGTH
    if any((_has(words, _NO_MODEL), _NOT_SUPPORTED.search(words), _MISSING_MODEL.search(words))):
        return ErrorKind.MODEL_NOT_FOUND
    if _has(words, _AUTH) or _BARRED.search(words):
        return ErrorKind.AUTH
    if "json_validate_failed" in words:  # Groq: this sample missed the schema, another may fit
        return ErrorKind.BAD_BODY
    if asked_with_schema and _has(words, _SCHEMA):
        return ErrorKind.SCHEMA_UNSUPPORTED
    is_passing = "stream" in words and PASSING.search(words)  # behind a gateway
    if is_passing or _DEGRADED in words:
        return ErrorKind.SERVER
    return ErrorKind.OVERLOADED if _has(words, _BUSY) else None


def _is_over_soon(words: str) -> bool:
    """Return whether a limit is that of a minute, or asks for a short pause."""
    pause = seconds_in_words(words)
    is_short = pause is not None and pause < SHORTEST_OF_QUOTA
    return is_short or _OF_A_MINUTE.search(words) is not None


def _outlasts_a_call(words: str, pause: float | None) -> bool:
    """Return whether a rate limit is that of an hour or more, or allows nothing at all.

    Args:
        words: Codes and message in lower case.
        pause: Seconds that the endpoint asked to wait; None if it did not.
    """
    if _NOTHING_ALLOWED.search(words):
        return True
    told = _ADDRESS.sub(" ", words)
    is_long = _OF_DAYS.search(told) and not _OF_A_MINUTE.search(told)
    return bool(is_long) and (pause is None or pause >= _SHORTEST_OF_DAYS)


def _is_too_long(words: str) -> bool:
    return _has(words, _CONTEXT) or _TOO_LONG.search(words) is not None


def _has_no_route(status: int | None, words: str) -> bool:
    """Return whether an error means that an address takes no requests for replies."""
    if _NO_ENDPOINT.search(words):
        return True
    return status == _NOT_ALLOWED and _NO_METHOD.search(words) is not None


def _has(words: str, some: tuple[str, ...]) -> bool:
    return any(word in words for word in some)


def _is_about_a_schema(words: str) -> bool:
    """Return whether an error other than a 400 means that schemas are not supported."""
    return _has(words, _SCHEMA) and REFUSING.search(words) is not None
