"""Texts of fields without content."""

from __future__ import annotations

PLACEHOLDER = "None reported."
"""Text of a field without content."""
TOO_LONG = "Too long to cut: see the full text."
"""Text of a field that no cut leaves its meaning."""
