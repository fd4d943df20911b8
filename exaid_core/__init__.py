"""EXAID: short clinician-facing summaries of agent discussions, written as the agents speak."""

from importlib import import_module
from typing import TYPE_CHECKING

import mdagents_llm  # noqa: F401 - says so if this Python is too old

if TYPE_CHECKING:
    from exaid_core.agent_names import AgentNames
    from exaid_core.config import ExaidConfig
    from exaid_core.exaid import EXAID
    from exaid_core.export import ExportFormat, export_summaries
    from exaid_core.health import Failure, Health, HealthState
    from exaid_core.policy import TriggerPolicy
    from exaid_core.schema.agent_summary import AgentSummary
    from exaid_core.sync import SyncExaid
    from exaid_core.templates import render_summary
    from exaid_core.token_gate.token_gate import GateProfile, TokenGate
    from exaid_core.trace.bus import TraceBus
    from exaid_core.trace.traces import read_trace
    from exaid_core.webhook import Webhook

__all__ = [
    "EXAID",
    "AgentNames",
    "AgentSummary",
    "ExaidConfig",
    "ExportFormat",
    "Failure",
    "GateProfile",
    "Health",
    "HealthState",
    "SyncExaid",
    "TokenGate",
    "TraceBus",
    "TriggerPolicy",
    "Webhook",
    "export_summaries",
    "read_trace",
    "render_summary",
]

_MODULES = {
    "EXAID": "exaid",
    "AgentNames": "agent_names",
    "AgentSummary": "schema.agent_summary",
    "ExaidConfig": "config",
    "ExportFormat": "export",
    "Failure": "health",
    "GateProfile": "token_gate.token_gate",
    "Health": "health",
    "HealthState": "health",
    "SyncExaid": "sync",
    "TokenGate": "token_gate.token_gate",
    "TraceBus": "trace.bus",
    "TriggerPolicy": "policy",
    "Webhook": "webhook",
    "export_summaries": "export",
    "read_trace": "trace.traces",
    "render_summary": "templates",
}


def __getattr__(name: str) -> object:
    """Import a public name on first use, so that a program loads only the parts it uses."""
    if name not in _MODULES:
        raise AttributeError(f"module 'exaid_core' has no attribute {name!r}")
    return getattr(import_module(f"exaid_core.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """Return the public names, for tab completion."""
    return sorted({*globals(), *__all__})
