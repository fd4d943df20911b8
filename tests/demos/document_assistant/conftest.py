"""Assistants over the fake provider, and what they are asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from demos.document_assistant.assistant import DocumentAssistant
from demos.document_assistant.library import Document
from demos.document_assistant.uploads import Limits, read_upload
from mdagents_llm.endpoints import ModelSpec
from mdagents_llm.langchain_model import ChatModelAdapter
from mdagents_llm.llm_registry import ModelRegistry

Opens = Callable[..., AbstractAsyncContextManager[DocumentAssistant]]


def read_now(path: Path, *, limits: Limits | None = None, scope: str) -> Document:
    """The document of a file, in a test without an event loop."""
    return asyncio.run(read_upload(path, limits=limits, scope=scope))


@pytest.fixture
def opens(registry: ModelRegistry, openai_spec: ModelSpec, tmp_path: Path) -> Opens:
    """Opens an assistant whose model is the fake provider."""

    def open_assistant(**settings: Any) -> AbstractAsyncContextManager[DocumentAssistant]:
        model = ChatModelAdapter(registry.model(openai_spec))
        return DocumentAssistant.open(**{"folder": tmp_path, "model": model} | settings)

    return open_assistant
