"""A model provider for tests: an HTTP server that speaks as OpenAI, Gemini and Anthropic do.

In a test:

    with FakeProvider(seed=1) as provider:
        provider.when("Moderator", {"answer": "C"})
        provider.fail_next("429", times=2)
        client = AsyncOpenAI(base_url=provider.openai_base_url, api_key="any", max_retries=0)

As a process of its own: `python -m benchmarks.provider --latency 0.2 --rate 429=0.2`.

A reply depends on the server's seed and on the model, the seed and the messages of the request,
never on the clock or on the order of requests. Which request a fault of the plan hits depends on
the server's seed and the request's arrival number.
"""

from tests.fake_provider.call_log import ServedCall, depth, peak_in_flight
from tests.fake_provider.chat_api import CHARACTERS_PER_TOKEN, SeenRequest, Usage
from tests.fake_provider.faults import Fault, FaultPlan
from tests.fake_provider.pixels import answer_from_pixels, letter_from_pixels
from tests.fake_provider.schema_filler import MISSING, FieldPath, fill
from tests.fake_provider.script import Hold
from tests.fake_provider.server import FakeProvider

__all__ = [
    "CHARACTERS_PER_TOKEN",
    "MISSING",
    "FakeProvider",
    "Fault",
    "FaultPlan",
    "FieldPath",
    "Hold",
    "SeenRequest",
    "ServedCall",
    "Usage",
    "answer_from_pixels",
    "depth",
    "fill",
    "letter_from_pixels",
    "peak_in_flight",
]
