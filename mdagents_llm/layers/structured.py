"""Parses a reply's text into the requested pydantic model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace

from pydantic import BaseModel, ValidationError

from mdagents_llm.chat import ChatMessage, ChatModel, ChatReply, ChatRequest, OnText, StopReason
from mdagents_llm.errors import ErrorKind, ProviderError, StructuredOutputError
from mdagents_llm.json_schema import reply_schema
from mdagents_llm.latex import with_escaped_latex
from mdagents_llm.layers.room import is_out_of_room
from mdagents_llm.reasoning_tags import without_reasoning
from mdagents_llm.text import spelled_as, utf8
from mdagents_llm.validation import first_problem

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_WHOLE_VALUE = re.compile(
    r"\s*:\s*(?:true|false|null|-?\d[\d.eE+-]*(?=[\s,}])|\[.*\]|\{.*\})", re.DOTALL
)
"""A value without quotes that cannot be cut off; a number may go on until something follows."""
_SHOWN_OF_A_BAD_REPLY = 2_000  # characters; a runaway reply must not double the prompt


class Structured:
    """Layer for structured output: it validates a reply, repairs it locally, and re-asks once.

    A truncated or refused reply is never repaired: half a reply can validate by accident.

    Args:
        inner: Model to call.
        native: Whether to try the endpoint's own schema support first. Once the endpoint refuses
            it, the schema goes into the prompt from then on.
        is_local: Whether the model runs on this machine, so that it gets the time it needs.
        is_small: Whether the model is too small to write unaided (`ModelInfo.is_small`).
        name: Model as `provider/name`, for display.
        identity: Model, endpoint and settings that determine a reply; empty if they are not known.
    """

    def __init__(
        self,
        inner: ChatModel,
        *,
        native: bool = True,
        is_local: bool = False,
        is_small: bool = False,
        name: str = "",
        identity: str = "",
    ) -> None:
        self._inner = inner
        self._native = native
        self.name = name
        self.identity = identity
        self.is_local = is_local
        self.is_small = is_small

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer one request; with a schema the reply has `parsed` set.

        The usage includes the re-ask, if there was one.

        Raises:
            StructuredOutputError: Neither the reply nor the re-ask validates.
        """
        if request.schema is None:
            return await self._inner.generate(request, on_text)
        reply = await self._ask(request, request.schema, on_text)
        parsed, problem = _read(reply, request.schema, request.options)
        if parsed is not None:
            return replace(reply, parsed=parsed)
        if reply.stop_reason is not StopReason.REFUSAL and not is_out_of_room(reply):
            first = reply
            if on_text is not None:
                on_text(None)
            reply = await self._ask(_re_ask(request, first, problem), request.schema, on_text)
            reply = replace(
                reply,
                usage=first.usage + reply.usage,
                attempts=first.attempts + reply.attempts,
                latency=first.latency + reply.latency,
            )
            parsed, problem = _read(reply, request.schema, request.options)
            if parsed is not None:
                return replace(reply, parsed=parsed)
        raise StructuredOutputError(
            problem, text=reply.text, usage=reply.usage, stop_reason=reply.stop_reason
        )

    async def _ask(
        self, request: ChatRequest, schema: type[BaseModel], on_text: OnText | None
    ) -> ChatReply:
        if self._native:
            try:
                return await self._inner.generate(request, on_text)
            except ProviderError as error:
                if error.kind is ErrorKind.SCHEMA_UNSUPPORTED:
                    self._native = False
                elif error.kind is not ErrorKind.CACHE_MISS:
                    raise
                # Cache miss: the recorded run may have had the schema in the prompt.
        return await self._inner.generate(_with_schema_in_prompt(request, schema), on_text)


def _with_schema_in_prompt(request: ChatRequest, schema: type[BaseModel]) -> ChatRequest:
    instruction = (
        "Reply with one JSON object and nothing else. It must validate against this JSON schema:\n"
        + json.dumps(reply_schema(schema), separators=(",", ":"))
    )
    *earlier, last = request.messages
    with_schema = replace(last, content=f"{last.content}\n\n{instruction}")
    return replace(request, messages=(*earlier, with_schema), schema=None)


def _re_ask(request: ChatRequest, reply: ChatReply, problem: str) -> ChatRequest:
    shown = reply.text[:_SHOWN_OF_A_BAD_REPLY] or "(empty)"
    return replace(
        request,
        messages=(
            *request.messages,
            ChatMessage("assistant", shown),
            ChatMessage(
                "user",
                f"That reply cannot be used: {problem}. "
                "Give the same reply again as one complete JSON object in the form asked for.",
            ),
        ),
    )


def _read(
    reply: ChatReply, schema: type[BaseModel], options: Mapping[str, str]
) -> tuple[BaseModel | None, str]:
    """Return (validated reply, "") or (None, problem); validators have `options` as context."""
    if reply.stop_reason is StopReason.REFUSAL:
        return None, "the model refused to reply"
    if is_out_of_room(reply):
        return None, (
            "the reply ended at its token limit before any text (see --reasoning-tokens and "
            "--max-tokens)"
        )
    if reply.stop_reason is StopReason.LENGTH:
        return None, "the reply was cut off at the token limit"
    if not reply.text.strip():
        return None, "the reply has no text" + (f": {reply.note}" if reply.note else "")
    said = with_escaped_latex(reply.text)
    try:
        return schema.model_validate_json(said, context=options), ""
    except ValidationError as error:
        problem = first_problem(error)
    try:
        # Through JSON text, so that pydantic is as strict as with the reply itself; half an emoji
        # is no JSON to it.
        text = utf8(json.dumps(_repaired(said, schema), ensure_ascii=False))
        parsed = schema.model_validate_json(text, context=options)
    except (ValueError, RecursionError):  # not valid, or nested too deeply to repair
        return None, problem
    if _is_corrected(said, parsed, options):
        return None, "the text after the JSON object changes its answer"
    return parsed, ""


def _is_corrected(text: str, parsed: BaseModel, options: Mapping[str, str]) -> bool:
    """Return whether text after an object withdraws or replaces the option in its answer field."""
    answer = getattr(parsed, "answer", None)
    if not isinstance(answer, str) or answer not in options:
        return False
    _, closed, behind = text.rpartition("}")
    if not (closed and re.search(r"\w", behind)):
        return False
    from mdagents_llm.answers import parse_answer  # its many patterns take time to compile

    return parse_answer(json.dumps({"answer": answer}) + behind, options).letter != answer


def _repaired(text: str, schema: type[BaseModel]) -> object:
    """Repair JSON in code fences or prose, trailing commas, quotes, keys; None if ambiguous.

    An unclosed object, which some endpoints do not report as truncated, must have all its fields,
    and the last one must be whole.
    """
    # Imported here: it is slow to import and most runs never need it.
    import json_repair

    text = without_reasoning(text)
    start = text.find("{")
    if start < 0:
        return None
    try:
        value, end = json.JSONDecoder().raw_decode(text, start)
    except ValueError:
        value = _unwrapped(json_repair.loads(text[start:]), schema)
        is_whole = isinstance(value, dict) and value.keys() >= schema.model_fields.keys()
        if _is_open(text[start:]) and not (is_whole and _ends_whole(text[start:])):
            return None
        return value
    return None if _has_another(text[end:], value) else _unwrapped(value, schema)


def _unwrapped(value: object, schema: type[BaseModel]) -> object:
    """Return an object with its keys spelled as the fields of a schema.

    The object may be below the schema's name, or in the schema's own `properties`, where it has the
    values of the fields (https://github.com/dotnet/extensions/issues/5927).
    """
    fields = schema.model_fields
    value = spelled_as(value, [schema.__name__, *fields])
    if isinstance(value, dict) and value.keys().isdisjoint(fields):
        named = value.get(schema.__name__, value) if len(value) == 1 else value
        return spelled_as(value.get("properties", named), fields)
    return value


def _has_another(text: str, value: object) -> bool:
    """Return whether a text has an object other than `value`, so that choosing would be a guess."""
    while (start := text.find("{")) >= 0:
        try:
            found, end = json.JSONDecoder().raw_decode(text, start)
        except ValueError:
            return True
        if found != value:
            return True
        text = text[end:]
    return False


def _is_open(text: str) -> bool:
    """Return whether a text has an unclosed object."""
    outside_strings = _STRING.sub("", text)
    return outside_strings.count("{") > outside_strings.count("}")


def _ends_whole(text: str) -> bool:
    """Return whether an unclosed object has only its last brace missing, not a part of a value."""
    outside = _STRING.sub('""', text)
    after_last = outside.rpartition('""')[2]
    return (
        '""' in outside
        and outside.count('"') % 2 == 0
        and outside.count("{") - outside.count("}") == 1
        and outside.count("[") == outside.count("]")
        and (not after_last.lstrip().startswith(":") or bool(_WHOLE_VALUE.match(after_last)))
    )
