"""The models of a server are the fake provider's."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _models(fake_models: None) -> None:
    """Every test of a server has the fake provider's models."""
