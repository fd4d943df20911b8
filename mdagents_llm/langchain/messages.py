"""Converts LangChain messages to `mdagents_llm` prompts with system, user and assistant roles.

Content without a matching role becomes JSON, never prose, so that a tool result cannot pass for
anything else: a tool call goes into the assistant's message in the form in which the model would
make it, with its ID, and its result into a user message under the same ID. The IDs are random, so
that no text can guess one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Literal

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages import (
    ChatMessage as MessageOfRole,
)

from mdagents_llm.chat import ChatMessage
from mdagents_llm.errors import ConfigError
from mdagents_llm.langchain.pictures import IMAGES, picture_of
from mdagents_llm.pictures import Picture
from mdagents_llm.text import between, well_formed

_ROLES: dict[str, Literal["system", "user", "assistant"]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
}
_TEXTS = {
    "text": "text",
    "text-plain": "text",
    "input_text": "text",
    "output_text": "text",
    "refusal": "refusal",
}
"""Type of a text content block -> field that holds the text."""
_NOT_TOLD_AGAIN = frozenset(
    {
        # These are also in the message's `tool_calls` and `invalid_tool_calls`.
        *("tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call", "function_call"),
        *("input_json_delta",),
        # Reasoning stays with the model that wrote it; no endpoint accepts another model's.
        *("reasoning", "reasoning_content", "thinking", "redacted_thinking"),
        # Tools of an endpoint itself, in the history of another provider's model; their results are
        # in the reply text (https://github.com/langchain-ai/langchain-aws/issues/1206).
        *("web_search_call", "file_search_call", "code_interpreter_call", "mcp_call"),
        *("server_tool_use", "web_search_tool_result", "server_tool_call", "server_tool_result"),
        *("executable_code", "code_execution_result", "custom_tool_call", "compaction"),
    }
)
"""Types of content blocks in an assistant's message that are not part of its reply text."""


def prompt_of(messages: Sequence[BaseMessage], instructions: str = "") -> tuple[ChatMessage, ...]:
    """Return the prompt for a conversation.

    Args:
        messages: The conversation.
        instructions: Text to add to the first system message; empty for none.

    Raises:
        ConfigError: There are no messages, or one holds content other than text, pictures of a
            user, and tool calls.
    """
    prompt = [replace(one, content=well_formed(one.content)) for one in _told(messages)]
    if not prompt:
        raise ConfigError("there is no message to reply to")
    if instructions:
        first = prompt[0].content if prompt[0].role == "system" else ""
        prompt[: bool(first)] = [ChatMessage("system", f"{first}\n\n{instructions}".strip())]
    return tuple(prompt)


def json_line(value: object) -> str:
    """Return a value as JSON on one line, with non-ASCII characters unescaped."""
    return json.dumps(value, ensure_ascii=False, default=str)


def _told(messages: Sequence[BaseMessage]) -> Iterator[ChatMessage]:
    # A single assistant needs no name, and would start to repeat it; several need theirs.
    assistants = {message.name for message in messages if isinstance(message, AIMessage)}
    for is_results, group in groupby(messages, lambda one: isinstance(one, ToolMessage)):
        if is_results:
            results = [_result(one) for one in group if isinstance(one, ToolMessage)]
            yield ChatMessage("user", json_line({"tool_results": results}))
            continue
        for message in group:
            role = _role(message)
            text = _text(message)
            if isinstance(message, AIMessage):
                calls = [*map(_call, message.tool_calls), *map(_call, message.invalid_tool_calls)]
                if calls:
                    text = f"{text}\n{json_line({'reply': {'tool_calls': calls}})}".lstrip()
            if message.name and (role == "user" or len(assistants) > 1):
                text = f"{json_line({'name': message.name})}\n{text}"
            yield ChatMessage(role, text, pictures=_pictures(message))


def _role(message: BaseMessage) -> Literal["system", "user", "assistant"]:
    match message:
        case SystemMessage():
            return "system"
        case HumanMessage():
            return "user"
        case AIMessage():
            return "assistant"
        case MessageOfRole(role=role) if role in _ROLES:
            return _ROLES[role]
    kind = getattr(message, "role", message.type)
    raise ConfigError(
        f"a message of the kind '{kind}' cannot be told to a model; use SystemMessage, "
        "HumanMessage, AIMessage or ToolMessage"
    )


def _call(call: Any) -> dict[str, object]:
    told = {"id": call["id"], "name": call["name"], "args": call["args"]}
    return {**told, "error": call["error"]} if call.get("error") else told


def _result(message: ToolMessage) -> dict[str, object]:
    told: dict[str, object] = {"id": message.tool_call_id}
    if message.name:
        told["name"] = message.name
    if message.status != "success":
        told["status"] = message.status
    return {**told, "content": _text(message)}


def _text(message: BaseMessage) -> str:
    """Return the text of a message.

    Raises:
        ConfigError: A content block is neither text nor a user's picture.
    """
    content = message.content
    if isinstance(content, str):
        return content
    texts = [text for block in content if (text := _text_of_block(block, message))]
    if not isinstance(message, AIMessage):
        return "\n".join(texts)
    said = ""
    for text in texts:  # a model's reply has a block for each sentence or piece with a citation
        said += between(said, text) + text
    return said


def _pictures(message: BaseMessage) -> tuple[Picture, ...]:
    """Return the pictures of a user's message, which precede its text; others are refused."""
    if isinstance(message.content, str) or not isinstance(message, HumanMessage):
        return ()
    blocks = [block for block in message.content if isinstance(block, dict)]
    return tuple(picture_of(block) for block in blocks if block.get("type") in IMAGES)


def _text_of_block(block: str | dict[Any, Any], message: BaseMessage) -> str:
    if isinstance(block, str):
        return block
    kind = block.get("type")
    text = block.get(_TEXTS.get(str(kind), ""))
    if isinstance(text, str):
        return text
    if isinstance(message, AIMessage) and kind in _NOT_TOLD_AGAIN:
        return ""
    if block.keys() == {"cachePoint"}:  # a mark for the cache of Bedrock
        return ""
    if isinstance(message, HumanMessage) and kind in IMAGES:
        return ""
    if isinstance(message, ToolMessage) and kind in (None, "json"):
        return json_line(block.get("json", block))
    raise ConfigError(
        f"a message of type '{message.type}' holds a content block of type '{kind}', but the model "
        "is given text only, and the pictures of a user; put what it should know into text"
    )
