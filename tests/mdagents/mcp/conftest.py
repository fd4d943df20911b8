"""The models of a server are the fake provider's."""

from __future__ import annotations

from tests.mdagents.serve.conftest import _models

__all__ = ["_models"]
