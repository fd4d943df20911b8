"""Gemini over the `google-genai` SDK, by the Gemini API or by Vertex AI."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import httpx2
from google.auth.exceptions import GoogleAuthError
from google.genai import types
from google.genai.errors import APIError
from google.genai.models import AsyncModels

from infra.chat import ChatReply, ChatRequest, OnText, StopReason, TokenUsage
from infra.errors import ErrorKind, ProviderError
from infra.files.text import well_formed
from infra.json_schema import without_string_lengths
from infra.model_configs import ModelInfo
from infra.providers.http_errors import (
    one_line,
    retry_after_seconds,
    seconds_of_duration,
    status_error,
    without_key,
)
from infra.providers.refused import Refused

_HOST = "Gemini"
_REFUSABLE = ("temperature", "seed")
_THINKING = (
    "thinking", "Thinking", "thinking_config", "thinking_level", "thinking_budget",
    "thinkingConfig", "thinkingLevel", "thinkingBudget",
)  # fmt: skip
"""How the API calls what says how much to think."""
_LEVELS = {"none": "MINIMAL", "minimal": "MINIMAL", "low": "LOW", "medium": "MEDIUM"}
_MOST_BUDGET = 24_576  # tokens, of 2.5 Flash
_STOP = frozenset({"STOP", "FINISH_REASON_UNSPECIFIED"})
_LENGTH = frozenset({"MAX_TOKENS", "CONTINUATION"})
_MAX_OUTPUT = 32_768  # tokens; the API refuses more for a reply that is not streamed


class GeminiChat:
    """One Gemini model.

    Args:
        models: The SDK's, shared by all models.
        api_key: The key, which no message may show.
        model: Google's name for it.
        info: Properties of the model.
    """

    def __init__(self, models: AsyncModels, api_key: str, model: str, info: ModelInfo) -> None:
        self._models = models
        self._api_key = api_key
        self._model = model
        self._info = info
        self._refused = Refused()

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """See `ChatModel.generate`; streams when `on_text` is given."""
        contents, config = self.asked(request)
        models = self._models
        with self.errors(config):
            if on_text is None:
                reply = await models.generate_content(
                    model=self._model, contents=contents, config=config
                )
                return self.reply(reply)
            stream = await models.generate_content_stream(
                model=self._model, contents=contents, config=config
            )
            return await self._read_stream(stream, on_text)

    @contextmanager
    def errors(self, config: types.GenerateContentConfig | None = None) -> Iterator[None]:
        """Turn what the SDK raises within the context into `ProviderError`.

        Args:
            config: What was sent; None: no request for a reply.
        """
        try:
            yield
        except APIError as error:
            raise self.failure(error, config) from None
        except GoogleAuthError as error:
            said = without_key(one_line(str(error)), self._api_key)
            kind = ErrorKind.CONNECTION if error.retryable else ErrorKind.AUTH
            raise ProviderError(f"Google's credentials: {said}", kind=kind) from None
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            message = f"Gemini cannot be reached: {one_line(str(error)) or type(error).__name__}"
            raise ProviderError(message, kind=ErrorKind.UNREACHABLE) from None
        except httpx2.TimeoutException:
            raise ProviderError("Gemini did not answer in time", kind=ErrorKind.TIMEOUT) from None
        except httpx2.HTTPError as error:
            message = f"connection to Gemini failed: {one_line(str(error)) or type(error).__name__}"
            raise ProviderError(message, kind=ErrorKind.CONNECTION) from None
        except ValueError as error:  # not JSON, or a body of another shape
            message = f"Gemini sent a body that is not a reply ({type(error).__name__})"
            raise ProviderError(message, kind=ErrorKind.BAD_BODY) from None

    def failure(
        self, error: APIError, config: types.GenerateContentConfig | None = None
    ) -> ProviderError:
        """Return what an error of the endpoint means; see `errors`.

        Raises:
            ProviderError: `setting_refused`, see `Refused`.
        """
        said = without_key(error.message or "", self._api_key)
        if config is not None:
            sent = [name for name in _REFUSABLE if getattr(config, name) is not None]
            sent += _THINKING if config.thinking_config is not None else ()
            self._refused.raise_for(sent, _HOST, error.code, said)
        with_schema = config is not None and config.response_json_schema is not None
        return _provider_error(error, said, asked_with_schema=with_schema)

    def asked(
        self, request: ChatRequest, *, whole: bool = False
    ) -> tuple[list[types.Content], types.GenerateContentConfig]:
        """Return a request as the SDK takes it: (turns, settings).

        Args:
            request: What is asked.
            whole: With what the model has refused, too: an earlier batch may have sent it.
        """
        contents = [
            types.Content(
                role="model" if message.role == "assistant" else "user",
                parts=[types.Part(text=message.content)],
            )
            for message in request.messages
            if message.role != "system"
        ]
        return contents, self._config(request, Refused() if whole else self._refused)

    def _config(self, request: ChatRequest, refused: Refused) -> types.GenerateContentConfig:
        system = "\n\n".join(m.content for m in request.messages if m.role == "system")
        schema = request.schema
        refused_thinking = any(name in refused for name in _THINKING)
        return types.GenerateContentConfig(
            system_instruction=system or None,
            temperature=request.temperature if self._takes("temperature", refused) else None,
            max_output_tokens=min(self._info.limit(request), _MAX_OUTPUT),
            seed=request.seed if self._takes("seed", refused) else None,
            response_mime_type="application/json" if schema else None,
            # Unchanged, and in its order: `response_schema` would rewrite it into Google's dialect.
            response_json_schema=without_string_lengths(schema) if schema else None,
            thinking_config=None if refused_thinking else _thinking(self._model, self._info),
            automatic_continuation=False,  # it would send, and bill, calls that are not booked
        )

    def _takes(self, setting: str, refused: Refused) -> bool:
        return setting not in refused and bool(getattr(self._info, f"takes_{setting}"))

    async def _read_stream(
        self, stream: AsyncIterator[types.GenerateContentResponse], on_text: OnText
    ) -> ChatReply:
        texts: list[str] = []
        last: types.GenerateContentResponse | None = None
        async for chunk in stream:
            if text := _text_of(chunk):
                texts.append(text)
                on_text(text)
            last = chunk
        if last is None:
            raise ValueError("an empty stream")
        return self.reply(last, "".join(texts))

    def reply(self, last: types.GenerateContentResponse, text: str | None = None) -> ChatReply:
        """Return a reply.

        Args:
            last: The body, or the chunk that ends it.
            text: Of all chunks; None: that of the body.

        Raises:
            ValueError: It is none.
        """
        text = _text_of(last) if text is None else text
        return ChatReply(
            text=well_formed(text),
            usage=_usage(last.usage_metadata),
            stop_reason=_stop_reason(last),
            model=last.model_version or self._model,
        )


def _thinking(model: str, info: ModelInfo) -> types.ThinkingConfig | None:
    """Return how much to think: a budget up to 2.5, a level from 3 on, None for the default.

    https://ai.google.dev/gemini-api/docs/thinking
    """
    effort, budget = info.thinking.effort, info.thinking.budget
    if "gemini-2" in model:
        if budget is None:
            return None
        return types.ThinkingConfig(thinking_budget=min(budget, _MOST_BUDGET))
    if not effort:
        return None
    return types.ThinkingConfig(thinking_level=types.ThinkingLevel(_LEVELS.get(effort, "HIGH")))


def _text_of(reply: types.GenerateContentResponse) -> str:
    """Return the visible text; `reply.text` would warn about parts that are not text."""
    content = reply.candidates[0].content if reply.candidates else None
    parts = (content.parts if content else None) or []
    return "".join(part.text for part in parts if part.text and not part.thought)


def _stop_reason(reply: types.GenerateContentResponse) -> StopReason:
    if not reply.candidates:
        # Without a reason it is an empty reply, booked since its tokens were used.
        feedback = reply.prompt_feedback
        return StopReason.REFUSAL if feedback and feedback.block_reason else StopReason.STOP
    finish = reply.candidates[0].finish_reason
    if finish is None:
        raise ValueError("the reply ends without a finish reason")
    name = finish.value
    if name in _LENGTH:
        return StopReason.LENGTH
    # With all others Google withheld the reply: safety, recitation, a blocklist, …
    return StopReason.STOP if name in _STOP else StopReason.REFUSAL


def _usage(usage: types.GenerateContentResponseUsageMetadata | None) -> TokenUsage:
    if usage is None:
        raise ValueError("the reply has no token usage")
    thoughts = usage.thoughts_token_count or 0
    return TokenUsage(
        input_tokens=(usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0),
        output_tokens=(usage.candidates_token_count or 0) + thoughts,
        cached_input_tokens=usage.cached_content_token_count or 0,
        reasoning_tokens=thoughts,
    )


def _provider_error(error: APIError, said: str, *, asked_with_schema: bool) -> ProviderError:
    body = error.details if isinstance(error.details, dict) else {}
    inner = body.get("error")
    details = inner.get("details") if isinstance(inner, dict) else None
    entries = [entry for entry in details or [] if isinstance(entry, dict)]
    delays = [
        seconds_of_duration(entry.get("retryDelay"))
        for entry in entries
        if str(entry.get("@type", "")).endswith("google.rpc.RetryInfo")
    ]
    per_day = any("PerDay" in str(entry.get("violations")) for entry in entries)
    headers = getattr(error.response, "headers", None) or {}
    return status_error(
        _HOST,
        error.code,
        said,
        code=f"{error.status or ''} {'insufficient_quota' if per_day else ''}",
        retry_after=delays[0] if delays else retry_after_seconds(headers),
        asked_with_schema=asked_with_schema,
    )
