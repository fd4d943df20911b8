"""Reads the text of endpoints' errors, and masks keys and pictures in it."""

from __future__ import annotations

import re

_PICTURE = re.compile(r"(data:image/[a-z+.-]+;base64,)?[A-Za-z0-9+/=]{64,}")
"""Pattern of a picture that an error message echoes, perhaps of a patient."""
REFUSING = re.compile(
    r"(?i)unsupported|not? (longer )?support|not (permitted|allowed|accepted|available)|deprecated"
    r"|not (yet )?implemented|unimplemented|not enabled|only enabled|not configurable"
    r"|unknown|unrecogni[sz]ed|unexpected|extra (inputs|fields)|cannot be (set|used|specified)"
    r"|only (the default|\S{1,20} (is|are) (allowed|supported|accepted))"
    r"|(must|(may|can) only) be (set to )?(false|disabled|1\b)|must be verified"
)
"""Wordings by which endpoints refuse a setting as such, as opposed to its value."""
PASSING = re.compile(
    r"(?i)\b(unknown|unexpected)(ly\b|[ _](error|exception|eof|end|response)\b"
    r"|(?= \w+ (while|during) (the )?stream(ing)?\b))"
)
"""Words about an error that may pass, which refuse nothing."""
_ECHO = re.compile(
    r"""['"](?:input|messages|contents?|body|request)['"]\s*:|\binput_value="""
    r"|(?<=input at pos )\d"  # llama.cpp, before the reply
)
"""Pattern at which an error message begins to echo the request or the reply."""
_KEY = re.compile(
    r"(?i)\b(sk-|gsk_|hf_|AIza|key[-_=]|api_?key=|bearer "
    # Their beginnings are also those of words and models: `dapivirine`, `pplx-70b-online`.
    r"|(?:nvapi-|xai-(?!grok)|fw_|tgp_v1_|pplx-(?!\d+b\b)|csk-|r8_|dapi|AKIA)(?=[-_A-Za-z]*\d)"
    r")[-_A-Za-z0-9*.]{6,}"
)
_SHORTEST_KEY = 8  # characters; shorter keys are not masked
_LONGEST_MESSAGE = 200  # characters


def own_words(message: str) -> str:
    """Return an endpoint's own message, without the echo of the request."""
    return _ECHO.split(message, maxsplit=1)[0]


def masked_line(message: str) -> str:
    """Return an endpoint's message on one line, shortened, with anything like a key masked."""
    masked = _KEY.sub(r"\1***", _PICTURE.sub("[picture]", " ".join(message.split())))
    return masked if len(masked) <= _LONGEST_MESSAGE else masked[: _LONGEST_MESSAGE - 1] + "…"


def without_key(message: str, key: str) -> str:
    """Return an endpoint's message with the API key masked."""
    # The key for a local server (`x`, `none`) is not secret, but often a common word.
    return message if len(key) < _SHORTEST_KEY else message.replace(key, "***")
