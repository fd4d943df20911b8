"""What the fake model says: scripted replies first, then made-up ones, spoiled by faults."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from mdagents_llm.json_schema import JsonSchema
from tests.fake_provider.chat_api import (
    CHARACTERS_PER_TOKEN,
    Answer,
    Finish,
    SeenRequest,
    Usage,
    tokens_in,
)
from tests.fake_provider.faults import (
    PICTURE_FAULTS,
    SCHEMA_FAULTS,
    SETTING_FAULTS,
    Fault,
    FaultPlan,
)
from tests.fake_provider.schema_filler import MISSING, USUAL_WORDS, FieldPath, fill
from tests.fake_provider.script import Match, Predicate, Reply, Rule, predicate_of
from tests.support.medical_prose import prose

RequestFieldPolicy = Callable[[SeenRequest, FieldPath], Any]
"""Returns the value of a field of a structured reply, or `MISSING` to have one made up."""

_CACHE_BLOCK = 128  # tokens
SHORTEST_MARKED = 1024
"""Tokens of the shortest prompt that is kept where a mark asks for it."""
_FINISH_OF = {
    Fault.EMPTY: Finish.EMPTY,
    Fault.REFUSAL: Finish.REFUSAL,
    Fault.BLOCKED: Finish.BLOCKED,
}


class FakeModel:
    """Decides how each request is answered; knows nothing of HTTP.

    Settings may be changed at any time and hold for the requests that arrive afterwards.

    Attributes:
        seed: Decides all that is made up.
        words_by_field: Words for fields of certain names (see `fill`).
        reasoning_tokens: Tokens of reasoning that every reply pretends to have used.
        prompt_cache: True: input that starts like an earlier prompt counts as cached. Where an API
            lets requests mark what is kept, that alone counts, whatever this says.
        faults: What goes wrong how often.
        field_policy: Asked for each field of structured replies that no rule gives.
        rules: Scripted replies; the first that matches wins.
        must_see: Which requests must have a picture; one without is a failure of the test, which
            leaving the server's `with` block raises.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.words_by_field: Mapping[str, int] = {}
        self.reasoning_tokens = 0
        self.prompt_cache = False
        self.faults = FaultPlan()
        self.field_policy: RequestFieldPolicy | None = None
        self.rules: list[Rule[Reply]] = []
        self.must_see: Predicate | None = None
        self._scripted_faults: list[Rule[Fault]] = []
        self._cached: set[bytes] = set()

    # -- script ---------------------------------------------------------------------------------

    def when(self, match: Match, reply: Reply, times: int | None = None) -> None:
        """Answer requests that match with `reply`.

        Args:
            match: Which requests.
            reply: A text, which is said as it is; a dict, whose missing fields are made up to
                satisfy the request's schema; or a function that returns one of these.
            times: For how many requests; None: for all.
        """
        self.rules.append(Rule(predicate_of(match), reply, times))

    def fail_next(self, kind: Fault | str, times: int = 1, match: Match = None) -> None:
        """Let a fault hit the next requests, before the fault plan and the rules are asked.

        Args:
            kind: The fault or its value, such as `"429"`.
            times: How many requests it hits. Faults scripted earlier come first.
            match: Which requests it may hit.
        """
        self._scripted_faults.append(Rule(predicate_of(match), Fault(kind), times))

    def forget_faults(self) -> None:
        """Let no scripted fault hit any more; those of the plan stay."""
        self._scripted_faults.clear()

    def forget_prompts(self) -> None:
        """Empty the prompt cache."""
        self._cached.clear()

    # -- decisions ------------------------------------------------------------------------------

    def fault_for(self, request: SeenRequest) -> Fault | None:
        """Return what goes wrong with a request, if anything does. Ask once per request."""
        for scripted in self._scripted_faults:
            if _concerns(scripted.effect, request) and scripted.strikes(request):
                return scripted.effect
        fault = self.faults.draw(self.seed, request.index)
        return fault if fault and _concerns(fault, request) else None

    def answer(self, request: SeenRequest, fault: Fault | None, refusal_text: str) -> Answer:
        """Return the reply to a request.

        Args:
            request: What is asked.
            fault: What `fault_for` said.
            refusal_text: What a refusal says.

        Raises:
            UnsupportedSchemaError: The schema is beyond the filler.
            AssertionError: The request must have a picture and has none.
        """
        if self.must_see is not None and not request.pictures and self.must_see(request):
            raise AssertionError(f"a request without its picture: …{request.text[-200:]}")
        finish = _FINISH_OF.get(fault, Finish.STOP) if fault else Finish.STOP
        text, reasoning = "", 0
        if finish is Finish.REFUSAL:
            text = refusal_text
        elif finish is Finish.STOP:
            reasoning = self.reasoning_tokens
            text = _spoiled(self._text(request), fault, request.schema)
            if fault is Fault.CUT_OFF:
                finish = Finish.LENGTH
            limit = request.max_tokens
            if limit is not None and reasoning + tokens_in(len(text)) > limit:
                finish = Finish.LENGTH
                reasoning = min(reasoning, limit)
                text = text[: (limit - reasoning) * CHARACTERS_PER_TOKEN]
        read = written = 0
        if request.cache_marks is not None:
            read, written = self._marked_tokens(request, request.cache_marks)
        elif self.prompt_cache:
            read = self._cached_tokens(request)
        usage = Usage(
            input=request.input_tokens,
            output=tokens_in(len(text)) + reasoning,
            cached_input=read,
            reasoning=reasoning,
            cache_write=written,
        )
        return Answer(text, finish, usage, request.model)

    def _text(self, request: SeenRequest) -> str:
        rule = next((rule for rule in self.rules if rule.strikes(request)), None)
        given: Any = rule.effect if rule else MISSING
        if callable(given):
            given = given(request)
        if isinstance(given, str):
            return given
        key = request.key(self.seed)
        if request.schema is not None:
            policy = partial(self.field_policy, request) if self.field_policy else None
            given = fill(
                request.schema, key, words_by_field=self.words_by_field, given=given, policy=policy
            )
        elif given is MISSING:
            return prose(USUAL_WORDS, int.from_bytes(key[:8], "big"))
        return json.dumps(given, ensure_ascii=False)

    def _cached_tokens(self, request: SeenRequest) -> int:
        """Return how many of the prompt's tokens are cached; from now on all of them are.

        Counts in whole blocks, as the real caches do.
        """
        size = _CACHE_BLOCK * CHARACTERS_PER_TOKEN
        prompt = "".join(request.messages)
        hashed = hashlib.blake2b(request.model.encode(), digest_size=16)
        known = 0
        for number, start in enumerate(range(0, len(prompt) - size + 1, size)):
            hashed.update(prompt[start : start + size].encode())
            prefix = hashed.digest()
            known += prefix in self._cached and known == number
            self._cached.add(prefix)
        return known * _CACHE_BLOCK

    def _marked_tokens(self, request: SeenRequest, marks: tuple[int, ...]) -> tuple[int, int]:
        """Return how many tokens are (read from the cache, written to it)."""
        prompt = "".join(request.messages)
        read = longest = 0
        for end in marks:
            tokens = tokens_in(end)
            if tokens < SHORTEST_MARKED:
                continue
            hashed = hashlib.blake2b(f"{request.model}\n{prompt[:end]}".encode(), digest_size=16)
            prefix = hashed.digest()
            longest = max(longest, tokens)
            read = max(read, tokens) if prefix in self._cached else read
            self._cached.add(prefix)
        return read, longest - read


def _concerns(fault: Fault, request: SeenRequest) -> bool:
    if fault is Fault.SCHEMA_UNSUPPORTED:
        return request.native_schema
    if fault in SETTING_FAULTS:
        settings = request.body.get("generationConfig") or request.body
        return any(name in settings for name in SETTING_FAULTS[fault])
    if fault in PICTURE_FAULTS:
        return bool(request.pictures)
    return fault not in SCHEMA_FAULTS or request.schema is not None


def _spoiled(text: str, fault: Fault | None, schema: JsonSchema | None) -> str:
    if fault is Fault.CUT_OFF:
        return text[: len(text) // 2]
    if fault is Fault.FENCED:
        return f"```json\n{text}\n```"
    if fault is Fault.INVALID_SCHEMA and schema is not None:
        # No field is an object; text that is not JSON, which only a script can say, is wrong as is.
        with contextlib.suppress(json.JSONDecodeError):
            wrong = {next(iter(schema["properties"])): {"unexpected": True}}
            return json.dumps(json.loads(text) | wrong, ensure_ascii=False)
    return text
