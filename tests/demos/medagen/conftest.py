"""Assistants over the fake provider."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from demos.medagen.assistant import MedagenAssistant
from demos.medagen.cv_service import CvService
from demos.medagen.guidelines import FOLDER, Guidelines, read_guidelines
from demos.medagen.images import picture_at
from demos.medagen.tools import Services
from demos.medagen.triage_rules import shipped_rules
from demos.toolkit.database import Database
from demos.toolkit.sessions import SessionStore
from mdagents_llm.endpoints import ModelSpec
from mdagents_llm.langchain_model import ChatModelAdapter
from mdagents_llm.llm_registry import ModelRegistry
from tests.conftest import REPOSITORY

Opens = Callable[..., AbstractAsyncContextManager[MedagenAssistant]]


@pytest.fixture
def opens(registry: ModelRegistry, openai_spec: ModelSpec, database: Database) -> Opens:
    """Opens an assistant whose model is the fake provider."""

    @asynccontextmanager
    async def open_one(deadline: float = 30.0, **services: Any) -> AsyncIterator[MedagenAssistant]:
        model = ChatModelAdapter(registry.model(openai_spec))
        async with (
            SessionStore.open(database) as store,
            Guidelines.open(database) as guidelines,
            CvService(None) as cv,
        ):
            await guidelines.seed(read_guidelines(REPOSITORY / FOLDER))
            real: dict[str, Any] = {
                "rules": shipped_rules(),
                "search": guidelines.search,
                "fetch": picture_at,
                "look": cv.look,
            }
            yield MedagenAssistant(store, model, Services(**real | services), deadline=deadline)

    return open_one
