"""Gemini through the `google-genai` SDK, with the Gemini API or Vertex AI."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from functools import reduce

import httpx2
from google.auth.exceptions import GoogleAuthError
from google.genai import types
from google.genai.errors import APIError
from google.genai.models import AsyncModels

from mdagents_llm.chat import (
    ChatMessage,
    ChatReply,
    ChatRequest,
    OnText,
    StopReason,
    TokenUsage,
)
from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.json_schema import without_string_lengths
from mdagents_llm.model_configs import ModelInfo
from mdagents_llm.pictures import ImageDetail, Picture
from mdagents_llm.providers.checks import (
    at_its_limit,
    checked_usage,
    completed_usage,
    reported,
    served_model,
)
from mdagents_llm.providers.connection_errors import why_unreachable
from mdagents_llm.providers.error_body import ErrorInReplyError, UnusableReplyError, read_error
from mdagents_llm.providers.error_text import masked_line, without_key
from mdagents_llm.providers.event_stream import Extent, until_end
from mdagents_llm.providers.filters import WithheldError, booking, is_withheld
from mdagents_llm.providers.http_errors import OTHER_SHAPES, status_error
from mdagents_llm.providers.picture_body import any_picture
from mdagents_llm.providers.refusals import SYSTEM
from mdagents_llm.providers.refused import STREAM, Refused
from mdagents_llm.providers.streamed_text import ShownText, joined
from mdagents_llm.providers.waits import retry_after_seconds
from mdagents_llm.reasoning_tags import IN_TAGS, split_leading_reasoning
from mdagents_llm.text import well_formed

_Usage = types.GenerateContentResponseUsageMetadata
_HOST = "Gemini"
_REFUSABLE = ("temperature", "seed")
_THINKING = (
    "thinking", "Thinking", "thinking_config", "thinking_level", "thinking_budget",
    "thinkingConfig", "thinkingLevel", "thinkingBudget",
)  # fmt: skip
"""Names of the reasoning settings in the API's errors."""
_LEVELS = {"none": "MINIMAL", "minimal": "MINIMAL", "low": "LOW", "medium": "MEDIUM"}
_LEAST_BUDGETS = {"pro": 128, "flash-lite": 512}
"""Kind of a 2.5 model -> minimum thinking budget in tokens."""
_MOST_BUDGET = 24_576  # tokens, the maximum of 2.5 Flash
_STOP = frozenset({"STOP", "FINISH_REASON_UNSPECIFIED"})
_LENGTH = frozenset({"MAX_TOKENS", "CONTINUATION"})
_BROKEN_OFF = frozenset(
    [
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "MALFORMED_RESPONSE",
        "OTHER",
    ]
)
"""Finish reasons of a malformed reply, or of none that Google names; a retry may succeed."""
_OF_REQUEST = "MISSING_THOUGHT_SIGNATURE"
"""Finish reason about the signatures in a request, which says nothing about a reply with text."""
_RESOLUTIONS = {
    ImageDetail.LOW: types.MediaResolution.MEDIA_RESOLUTION_LOW,
    ImageDetail.HIGH: types.MediaResolution.MEDIA_RESOLUTION_HIGH,
}
_MAX_OUTPUT = 32_768  # tokens; the API refuses more for a reply that is not streamed


class GeminiChat:
    """One Gemini model.

    Args:
        models: SDK object for model calls, shared by all models.
        api_key: API key, which no message may show.
        model: Google's name for the model.
        info: Properties of the model.
    """

    def __init__(self, models: AsyncModels, api_key: str, model: str, info: ModelInfo) -> None:
        self._models = models
        self._api_key = api_key
        self._model = model
        self._info = info
        self._refused = Refused()

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer one request; the reply is streamed when `on_text` is given."""
        contents, config = self.asked(request)
        models = self._models
        try:
            with self.errors(config, any_picture(request.messages) is not None):
                if on_text is not None and STREAM not in self._refused:
                    stream = await models.generate_content_stream(
                        model=self._model, contents=contents, config=config
                    )
                    return await self._read_stream(stream, request, on_text)
                answered = await models.generate_content(
                    model=self._model, contents=contents, config=config
                )
                reply = self.reply([answered], request)
        except WithheldError as withheld:
            return self.refusal(withheld.usage)
        if on_text is not None and reply.text:
            on_text(reply.text)
        return reply

    @contextmanager
    def errors(
        self, config: types.GenerateContentConfig | None = None, has_pictures: bool = False
    ) -> Iterator[None]:
        """Convert exceptions of the SDK within the context to `ProviderError` or `WithheldError`.

        Args:
            config: Settings that were sent; None for calls that request no reply.
            has_pictures: Whether the request has pictures.
        """
        try:
            yield
        except APIError as error:
            raise self.failure(error, config, has_pictures) from None
        except ErrorInReplyError as error:
            status = read_error(error.body).status or httpx2.codes.OK
            raise self.failure(APIError(status, error.body), config, has_pictures) from None
        except UnusableReplyError as unusable:
            cause = unusable.__cause__ or unusable
            with booking(unusable.reply), self.errors(config, has_pictures):
                raise cause from cause.__cause__
        except GoogleAuthError as error:
            said = without_key(masked_line(str(error)), self._api_key)
            kind = ErrorKind.CONNECTION if error.retryable else ErrorKind.AUTH
            raise ProviderError(f"Google's credentials: {said}", kind=kind) from None
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            message = f"Gemini cannot be reached: {why_unreachable(error)}"
            raise ProviderError(message, kind=ErrorKind.UNREACHABLE) from None
        except httpx2.TimeoutException:
            raise ProviderError("Gemini did not answer in time", kind=ErrorKind.TIMEOUT) from None
        except httpx2.HTTPError as error:
            message = (
                f"connection to Gemini failed: {masked_line(str(error)) or type(error).__name__}"
            )
            raise ProviderError(message, kind=ErrorKind.CONNECTION) from None
        except OTHER_SHAPES as error:
            message = f"Gemini sent a body that is not a reply ({type(error).__name__})"
            raise ProviderError(message, kind=ErrorKind.BAD_BODY) from None

    def failure(
        self,
        error: APIError,
        config: types.GenerateContentConfig | None = None,
        has_pictures: bool = False,
    ) -> Exception:
        """Return the exception for an error of the endpoint: `ProviderError` or `WithheldError`.

        Raises:
            ProviderError: The endpoint refused a setting (`setting_refused`, `stream_refused`).
        """
        said = read_error(error.details)
        status = None if error.code == httpx2.codes.OK else error.code  # None: inside a reply
        if is_withheld(status, said):
            return WithheldError()
        words = without_key(said.words or said.code, self._api_key)
        if config is not None:
            sent = [name for name in _REFUSABLE if getattr(config, name) is not None]
            sent += _THINKING if config.thinking_config is not None else ()
            sent += [SYSTEM] if config.system_instruction else ()
            refusable = (*sent, STREAM)
            self._refused.raise_for(refusable, _HOST, status, words, said.param, said.code)
        headers = getattr(error.response, "headers", None) or {}
        wait = said.retry_after
        if wait is None:
            wait = retry_after_seconds(headers, status)
        return status_error(
            _HOST,
            status,
            words,
            code=said.code,
            retry_after=wait,
            asked_with_schema=config is not None and config.response_json_schema is not None,
            asked_with_pictures=has_pictures,
        )

    def asked(
        self, request: ChatRequest, *, whole: bool = False
    ) -> tuple[list[types.Content], types.GenerateContentConfig]:
        """Return a request as (turns, settings) for the SDK.

        Args:
            request: Request to convert.
            whole: Whether to include settings that the model has refused, since an earlier batch
                may have sent them.
        """
        refused = Refused() if whole else self._refused
        messages = refused.taken(request.messages)
        contents = [
            types.Content(
                role="model" if message.role == "assistant" else "user",
                parts=[*map(_part, message.parts())],
            )
            for message in messages
            if message.role != "system"
        ]
        return contents, self._config(request, messages, refused)

    def _config(
        self, request: ChatRequest, messages: Iterable[ChatMessage], refused: Refused
    ) -> types.GenerateContentConfig:
        system = "\n\n".join(m.content for m in messages if m.role == "system")
        schema = request.schema
        refused_thinking = any(name in refused for name in _THINKING)
        return types.GenerateContentConfig(
            system_instruction=system or None,
            temperature=request.temperature if self._takes("temperature", refused) else None,
            max_output_tokens=self._limit(request),
            seed=request.seed if self._takes("seed", refused) else None,
            media_resolution=_resolution(request),
            response_mime_type="application/json" if schema else None,
            # Sent unchanged and in order: `response_schema` would rewrite it to Google's dialect.
            response_json_schema=without_string_lengths(schema) if schema else None,
            thinking_config=None if refused_thinking else _thinking(self._model, self._info),
            automatic_continuation=False,  # it would send, and bill, calls missing from the ledger
        )

    def _limit(self, request: ChatRequest) -> int:
        return min(self._info.limit(request), _MAX_OUTPUT)

    def _takes(self, setting: str, refused: Refused) -> bool:
        return setting not in refused and bool(getattr(self._info, f"takes_{setting}"))

    async def _read_stream(
        self,
        stream: AsyncIterator[types.GenerateContentResponse],
        request: ChatRequest,
        on_text: OnText,
    ) -> ChatReply:
        chunks: list[types.GenerateContentResponse] = []
        shown, extent = ShownText(on_text), Extent()
        try:
            async for chunk in until_end(stream, extent, (httpx2.HTTPError,)):
                chunks.append(chunk)
                shown.add(text := _text_of(chunk))
                extent.pieces += bool(text)
                extent.note(chunk.candidates and chunk.candidates[0].finish_reason)
        except Exception as error:  # `errors` names it
            usage = _reported(chunks)
            if usage.total_tokens == 0:
                raise
            unusable = ChatReply("", usage, StopReason.STOP, self._model)
            raise UnusableReplyError(unusable) from error
        if not chunks:
            raise ValueError("an empty stream")
        reply = self.reply(chunks, request)
        shown.end(reply.text)
        return reply

    def reply(
        self, chunks: Iterable[types.GenerateContentResponse], request: ChatRequest
    ) -> ChatReply:
        """Return a response of the SDK as a reply.

        Args:
            chunks: Whole response, or chunks of a stream: any chunk may have the usage or the
                finish reason.
            request: Request that was sent.

        Raises:
            ValueError: The chunks hold no reply.
            ProviderError: The reply is not complete.
        """
        chunks = tuple(chunks)
        written = joined(map(_text_of, chunks))
        text, hidden = split_leading_reasoning(written)
        reasoning = hidden + joined(_text_of(chunk, thoughts=True) for chunk in chunks)
        names = [chunk.model_version for chunk in chunks if chunk.model_version]
        usage = _reported(chunks)
        is_counted = usage.total_tokens > 0
        if not is_counted and not (written or any(chunk.prompt_feedback for chunk in chunks)):
            raise ValueError("neither text nor token usage")
        try:
            stop_reason = _stop_reason(chunks)
        except ProviderError as error:
            if is_counted:
                error.reply = ChatReply("", usage, StopReason.STOP, self._model)
            raise
        usage, is_estimated = completed_usage(usage, request, written, self._model)
        reply = ChatReply(
            text=well_formed(text),
            usage=usage,
            stop_reason=stop_reason,
            model=served_model(names[-1] if names else None, self._model),
            usage_estimated=is_estimated,
            reasoning=well_formed(reasoning),
            note=IN_TAGS if hidden and not text else "",
        )
        return at_its_limit(reply, self._limit(request))

    def refusal(self, usage: TokenUsage = TokenUsage()) -> ChatReply:
        """Return the reply for an error of a content filter: a refusal without text."""
        return ChatReply("", usage, StopReason.REFUSAL, self._model)


def _part(part: str | Picture) -> types.Part:
    if isinstance(part, str):
        return types.Part(text=part)
    data = b64decode(part.base64)
    return types.Part(inline_data=types.Blob(data=data, mime_type=part.media_type))


def _resolution(request: ChatRequest) -> types.MediaResolution | None:
    """Return the resolution of all pictures of a request; None if the endpoint chooses.

    https://ai.google.dev/gemini-api/docs/media-resolution
    """
    picture = any_picture(request.messages)
    return None if picture is None else _RESOLUTIONS.get(picture.detail)


def _thinking(model: str, info: ModelInfo) -> types.ThinkingConfig | None:
    """Return the thinking settings: a budget up to 2.5, a level from 3 on, None for the default.

    https://ai.google.dev/gemini-api/docs/thinking
    """
    effort, budget = info.thinking.effort, info.thinking.budget
    is_shown = info.thinking.is_shown or None
    usual = types.ThinkingConfig(include_thoughts=True) if is_shown else None
    if "gemini-2" in model:
        if budget is None:
            return usual
        least = _LEAST_BUDGETS.get(model.partition("gemini-")[2].partition("-")[2], 0)
        is_off = budget == 0 and "pro" not in model  # thinking cannot be turned off for Pro
        return types.ThinkingConfig(
            thinking_budget=0 if is_off else max(least, min(budget, _MOST_BUDGET)),
            include_thoughts=None if is_off else is_shown,
        )
    if not effort:
        return usual
    return types.ThinkingConfig(
        thinking_level=types.ThinkingLevel(_LEVELS.get(effort, "HIGH")), include_thoughts=is_shown
    )


def _text_of(reply: types.GenerateContentResponse, *, thoughts: bool = False) -> str:
    """Return the visible text or the thoughts; `reply.text` would warn about other parts."""
    content = reply.candidates[0].content if reply.candidates else None
    parts = (content.parts if content else None) or []
    return "".join(part.text for part in parts if part.text and bool(part.thought) == thoughts)


def _stop_reason(chunks: Iterable[types.GenerateContentResponse]) -> StopReason:
    chunks = tuple(chunks)
    if any(chunk.prompt_feedback and chunk.prompt_feedback.block_reason for chunk in chunks):
        return StopReason.REFUSAL
    candidates = [chunk.candidates[0] for chunk in chunks if chunk.candidates]
    if not candidates:
        return StopReason.STOP  # an empty reply, recorded since its tokens were used
    names = [one.finish_reason.value for one in candidates if one.finish_reason is not None]
    if not names:
        message = "Gemini's reply ends without a finish reason"
        raise ProviderError(message, kind=ErrorKind.BAD_BODY)
    name = names[-1]
    if name == _OF_REQUEST and any(map(_text_of, chunks)):
        return StopReason.STOP
    if name in _BROKEN_OFF or name == _OF_REQUEST:
        message = f"Gemini broke the reply off (finish reason {name})"
        raise ProviderError(message, kind=ErrorKind.SERVER)
    if name in _LENGTH:
        return StopReason.LENGTH
    # All other reasons mean that Google withheld the reply: safety, recitation, a blocklist, …
    return StopReason.STOP if name in _STOP else StopReason.REFUSAL


def _reported(chunks: Iterable[types.GenerateContentResponse]) -> TokenUsage:
    """Return the token usage that the chunks report; zero if there is none."""
    usages = (chunk.usage_metadata for chunk in chunks if chunk.usage_metadata)
    return reported(_usage, reduce(_merged, usages, None))


def _merged(usage: _Usage | None, later: _Usage) -> _Usage:
    """Return the usage of a stream after a later report of it, whose zeros replace no count."""
    if usage is None:
        return later
    return usage.model_copy(update={name: value for name, value in later if value})


def _usage(usage: _Usage) -> TokenUsage:
    prompt = (usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0)
    thoughts = usage.thoughts_token_count or 0
    output = usage.candidates_token_count or 0
    total = usage.total_token_count or 0
    if prompt == 0:
        prompt = max(0, total - output - thoughts)  # some gateways count it only in the total
    if not (total == prompt + output and thoughts <= output):
        output += thoughts  # else some gateways count thoughts among the candidates
    if total > prompt + output:  # some gateways count thoughts only in the total
        thoughts += total - prompt - output
        output = total - prompt
    return checked_usage(prompt, output, usage.cached_content_token_count or 0, thoughts)
