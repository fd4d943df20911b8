"""Models for the fake provider: one that works as it is told to, and some that do not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from tests.fake_provider import SeenRequest

_LEVEL = re.compile(r'\\*"triage_level\\*": \\*"(\w+)\\*"')
_MESSAGE = re.compile(r"<document \w+ message>\n(.*?)\n</document", re.DOTALL)


def call(name: str, **arguments: Any) -> str:
    """Return a reply that calls a tool."""
    return json.dumps({"reply": {"tool_calls": [{"name": name, "args": arguments}]}})


def answer(level: str, **parts: Any) -> str:
    """Return a reply that ends the turn."""
    draft = {"triage_level": level, "symptom_summary": "As told.", "recommendation": ""} | parts
    return call("final_answer", **draft)


def message_in(request: SeenRequest) -> str:
    """Return what the user wrote."""
    found = _MESSAGE.search("\n".join(request.messages))
    return found.group(1) if found else ""


def careful(request: SeenRequest) -> str:
    """Look at the picture, apply the rules, look for a guideline, and answer what the rules say."""
    said = "\n".join(request.messages[2:])
    if "There is a picture" in request.messages[1] and "result of derm_cv" not in said:
        return call("derm_cv", thought="There is a picture.")
    if "result of triage_rules" not in said:
        return call("triage_rules", thought="The rules first.", symptoms=[message_in(request)])
    if "result of guideline_retrieval" not in said:
        return call("guideline_retrieval", thought="What to do?", query=message_in(request)[:200])
    levels = _LEVEL.findall(said)
    return answer(
        levels[0] if levels else "urgent",
        suspected_conditions=["possibly something minor"],
        recommendation="Please rest and keep an eye on it.",
    )


def says(level: str, **parts: Any) -> Callable[[SeenRequest], str]:
    """Return a model that answers at once, whatever is told."""
    return lambda _: answer(level, **parts)
