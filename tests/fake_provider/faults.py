"""What can go wrong at a provider: the kinds of fault, and a plan that deals them out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Fault(StrEnum):
    """A way in which a request is not answered as asked."""

    RATE_LIMIT = "429"
    """Too many requests, with the plan's `retry_after`."""
    QUOTA = "quota"
    """429 that no waiting will cure: the account's quota is used up."""
    UNAUTHORIZED = "401"
    API_KEY_INVALID = "api_key_invalid"
    """What a wrong key gets: Gemini says 400 INVALID_ARGUMENT / API_KEY_INVALID, OpenAI 401."""
    MODEL_NOT_FOUND = "404_model"
    SCHEMA_UNSUPPORTED = "400_schema_unsupported"
    """The endpoint knows no JSON-schema output; only requests that ask for it are hit."""
    SEED_REFUSED = "400_seed"
    """The model takes no seed: requests with one are refused, others are not."""
    TEMPERATURE_REFUSED = "400_temperature"
    IMAGES_REFUSED = "400_images"
    """The model takes no pictures: requests with one are refused, others are not."""
    BAD_IMAGE = "400_bad_image"
    """A picture cannot be read; only requests with one are hit."""
    CONTEXT_LENGTH = "context_length"
    SERVER_ERROR = "500"
    UNAVAILABLE = "503"
    OVERLOADED = "529"
    RESET = "reset"
    """The connection is reset (RST) before a byte of the reply."""
    HANG = "hang"
    """No reply for `hang_seconds`, then the connection is closed."""
    TRUNCATED_BODY = "truncated_body"
    """Status 200, half of the body (or of the stream), then the connection is closed."""
    STALL = "stall"
    """Status 200, half of the body (or of the stream), then silence for `hang_seconds`."""
    STREAM_ERROR = "stream_error"
    """Half of the stream, then an error event; a request that is not streamed gets a 500."""
    MALFORMED_JSON_BODY = "malformed_json_body"
    """Status 200 and a body (or a stream event) that is not JSON."""
    EMPTY = "empty"
    """Status 200 without any choice (candidate)."""
    REFUSAL = "refusal"
    """OpenAI: `message.refusal`, no content. Gemini: finishReason SAFETY, no parts."""
    BLOCKED = "blocked"
    """OpenAI: finish_reason content_filter. Gemini: promptFeedback.blockReason, no candidate."""
    CUT_OFF = "cut_off"
    """The reply stops in the middle as if its token limit had been reached."""
    INVALID_SCHEMA = "invalid_schema"
    """The reply is JSON that does not validate against the schema."""
    FENCED = "fenced"
    """The JSON comes inside a Markdown code fence."""


BILLED_FAULTS = frozenset(
    {Fault.EMPTY, Fault.REFUSAL, Fault.BLOCKED, Fault.CUT_OFF, Fault.INVALID_SCHEMA, Fault.FENCED}
)
"""Faults whose reply arrives whole and tells its usage, so that a client must book it."""

SETTING_FAULTS = {
    Fault.SEED_REFUSED: ("seed", "random_seed"),
    Fault.TEMPERATURE_REFUSED: ("temperature",),
}
"""Faults that hit only requests with a setting -> its names."""

PICTURE_FAULTS = frozenset({Fault.IMAGES_REFUSED, Fault.BAD_IMAGE})
"""Faults that hit only requests with a picture."""

SCHEMA_FAULTS = frozenset({Fault.SCHEMA_UNSUPPORTED, Fault.INVALID_SCHEMA, Fault.FENCED})
"""Faults that mean something only for a request with a schema; others are served as if unhurt."""


@dataclass(frozen=True)
class FaultPlan:
    """How often each fault happens, and how it looks.

    Which request is hit depends on the seed and on the request's arrival number alone.

    Attributes:
        rates: Fault, or its value -> share of all requests (0 to 1); they add up to at most 1.
        retry_after: Seconds that a 429 tells the client to wait; None: it does not say.
        hang_seconds: How long a hang or a stall lasts.

    Raises:
        ValueError: A fault is unknown, a rate is negative, or the rates add up to more than 1.
    """

    rates: Mapping[str, float] = field(default_factory=dict)
    retry_after: float | None = None
    hang_seconds: float = 60.0

    def __post_init__(self) -> None:
        if min(self.rates.values(), default=0) < 0 or sum(self.rates.values()) > 1 + 1e-9:
            raise ValueError(f"fault rates must be >= 0 and add up to at most 1: {self.rates}")
        for name in self.rates:
            Fault(name)

    def draw(self, seed: int, arrival: int) -> Fault | None:
        """Return the fault that hits a request, or None.

        Args:
            seed: The server's seed.
            arrival: How many requests the server had received before this one.
        """
        if not self.rates:
            return None
        digest = hashlib.blake2b(f"{seed}/{arrival}".encode(), digest_size=8).digest()
        left = int.from_bytes(digest, "big") / 2**64
        for name, rate in self.rates.items():
            left -= rate
            if left < 0:
                return Fault(name)
        return None
