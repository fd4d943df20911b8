"""Print the request fields that control thinking, by model and effort, without making a call.

python -m benchmarks.thinking
"""

from __future__ import annotations

import json

from anthropic import AsyncAnthropic
from google import genai
from openai import AsyncOpenAI

from mdagents_llm.chat import ChatMessage, ChatRequest
from mdagents_llm.model_configs import EFFORTS, Thinking, load_model_configs
from mdagents_llm.providers.anthropic_messages import AnthropicChat
from mdagents_llm.providers.gemini import GeminiChat
from mdagents_llm.providers.openai_chat import OpenAIChat
from mdagents_llm.providers.openai_responses import OpenAIResponses

MODELS = (
    "openai/gpt-5.6-sol", "openai/gpt-5.5-pro", "groq/openai/gpt-oss-120b", "vllm/any",
    "openrouter/any/model",
    "anthropic/claude-haiku-4-5", "anthropic/claude-opus-4-8", "anthropic/claude-sonnet-5",
    "google/gemini-2.5-flash", "google/gemini-3.5-flash",
)  # fmt: skip
REQUEST = ChatRequest((ChatMessage("user", "?"),), max_tokens=1000)
_FIELDS = (
    "reasoning_effort", "reasoning", "thinking", "output_config", "thinking_config",
    "max_tokens", "max_completion_tokens", "max_output_tokens",
)  # fmt: skip


def fields(model: str, thinking: Thinking) -> dict[str, object]:
    """Return the request fields for thinking and for the reply's token limit."""
    provider, _, name = model.partition("/")
    info = load_model_configs().info(provider, name).asked_to(thinking)
    body: dict[str, object]
    if provider == "anthropic":
        body = AnthropicChat(AsyncAnthropic(api_key="none"), name, info).body(REQUEST)
    elif provider == "google":
        models = genai.Client(api_key="none").aio.models
        _, config = GeminiChat(models, "none", name, info).asked(REQUEST)
        body = config.model_dump(mode="json", exclude_none=True)
    else:
        client = AsyncOpenAI(base_url="http://127.0.0.1/v1", api_key="none")
        chat = OpenAIResponses if info.api == "responses" else OpenAIChat
        body = chat(client, name, info).body(REQUEST)
    return {field: body[field] for field in _FIELDS if field in body}


def main() -> None:
    """Print one line for each model and effort."""
    for model in MODELS:
        for effort in EFFORTS:
            print(f"{model:28} {effort:8} {json.dumps(fields(model, Thinking(effort)))}")


if __name__ == "__main__":
    main()
