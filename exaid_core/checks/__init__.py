"""Checks of clinical text by rules, without a model.

from exaid_core.checks import find_alerts
list(find_alerts("SpO2 dropped to 74%."))   # ['SpO2 dropped to 74']

`Check` is the form of a check that EXAID runs on each summary: see `ExaidConfig.checks`.
"""

from exaid_core.checks.alerts import find_alert, find_alerts
from exaid_core.checks.check import Check, Finding, alert_check, dissent_check, grounding_check
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
