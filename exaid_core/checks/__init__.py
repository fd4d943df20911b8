"""Checks of clinical text by rules, without a model.

from exaid_core.checks import find_alerts
list(find_alerts("SpO2 dropped to 74%."))   # ['SpO2 dropped to 74']

`Check` is the form of a check that EXAID runs on each summary: see `ExaidConfig.checks`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exaid_core.checks.alerts import find_alert, find_alerts
    from exaid_core.checks.check import (
        Check,
        Finding,
        alert_check,
        dissent_check,
        grounding_check,
    )
    from exaid_core.checks.dissent import dissent_missing, stated_answer
    from exaid_core.checks.grounding import unsupported_terms
    from exaid_core.checks.shortening import shorten

__all__ = [
    "Check",
    "Finding",
    "alert_check",
    "dissent_check",
    "dissent_missing",
    "find_alert",
    "find_alerts",
    "grounding_check",
    "shorten",
    "stated_answer",
    "unsupported_terms",
]

_MODULES = {
    "Check": "check",
    "Finding": "check",
    "alert_check": "check",
    "dissent_check": "check",
    "dissent_missing": "dissent",
    "find_alert": "alerts",
    "find_alerts": "alerts",
    "grounding_check": "check",
    "shorten": "shortening",
    "stated_answer": "dissent",
    "unsupported_terms": "grounding",
}


def __getattr__(name: str) -> object:
    """Import a public name on first use, so that a run starts before its checks are compiled."""
    if name not in _MODULES:
        raise AttributeError(f"module 'exaid_core.checks' has no attribute {name!r}")
    return getattr(import_module(f"exaid_core.checks.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """Return the public names, for completion."""
    return sorted({*globals(), *__all__})
