"""The models of a server are the fake provider's."""

from __future__ import annotations

import pytest

from tests.fake_provider import FakeProvider


@pytest.fixture(autouse=True)
def _key(provider: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_base_url)
