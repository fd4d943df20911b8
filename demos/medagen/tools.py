"""The tools of the agent, and their findings in a turn."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from demos.medagen.cv_service import CvKind
from demos.medagen.schemas import CvFindings, Language, Level, RulesResult, TriageInput
from demos.medagen.triage_rules import Rules
from demos.toolkit.retrieval import Passage
from mdagents_llm.errors import BenchError
from mdagents_llm.validation import first_problem

TRIAGE_RULES = "triage_rules"
GUIDELINES = "guideline_retrieval"
PICTURES = {"derm_cv": CvKind.DERM, "eye_cv": CvKind.EYE, "wound_cv": CvKind.WOUND}

_LOG = logging.getLogger(__name__)
_MOST_GUIDELINES = 5
_MOST_CITED = 3  # guidelines of a search; later hits are often about something else
_ALARMING = 0.7  # a finding in a picture above this probability is urgent

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Services:
    """Services behind the tools, shared by all turns."""

    rules: Rules
    search: Callable[[str, Language, int], Awaitable[list[Passage]]]
    """Search function: query, language and maximum number -> guidelines, best first."""
    fetch: Callable[[str], Awaitable[bytes]]
    """Function that fetches the picture at a URL; it raises `BenchError` if it is refused."""
    look: Callable[[CvKind, bytes], Awaitable[CvFindings]]


class _Call(BaseModel):
    thought: str = Field(default="", max_length=500, description="why, in one short sentence")


class _PictureCall(_Call):
    """Analyse the picture that the user sent."""


class _RulesCall(_Call, TriageInput):
    """Apply the triage rules to symptoms and facts. Use it before you answer."""


class _GuidelineCall(_Call):
    """Search the guidelines for advice."""

    query: str = Field(max_length=500, description="what to look for, in the user's language")
    top_k: int = Field(default=_MOST_GUIDELINES, ge=1, le=10)


_ABOUT_PICTURES = {
    "derm_cv": "Look at the user's picture for conditions of the skin.",
    "eye_cv": "Look at the user's picture for conditions of the eye.",
    "wound_cv": "Look at the user's picture for wounds.",
}


class Toolbox:
    """The tools of one turn.

    Args:
        services: Services that the tools use.
        language: Language of the user.
        image_url: URL of the message's picture, or None. It is the only picture that can be
            fetched: the model cannot choose a URL.
    """

    def __init__(self, services: Services, language: Language, image_url: str | None) -> None:
        self._services = services
        self._language = language
        self._image_url = image_url
        self._picture: bytes | None = None
        self.findings: dict[str, CvFindings] = {}
        self.guidelines: list[str] = []
        self.rules: list[RulesResult] = []

    @property
    def offered(self) -> list[JSON]:
        """Tool definitions for the model; those for pictures only if the message has one."""
        tools = [
            _tool(TRIAGE_RULES, _RulesCall.__doc__ or "", _RulesCall),
            _tool(GUIDELINES, _GuidelineCall.__doc__ or "", _GuidelineCall),
        ]
        if self._image_url:
            tools += [_tool(name, about, _PictureCall) for name, about in _ABOUT_PICTURES.items()]
        return tools

    @property
    def level(self) -> Level | None:
        """Minimum level required by pictures and by calls of the rules; None if none."""
        levels = [one.triage_level for one in self.rules]
        if any(
            one.probability > _ALARMING
            for found in self.findings.values()
            for one in found.predictions
        ):
            levels.append(Level.URGENT)
        return max(levels, key=lambda level: level.rank, default=None)

    async def call(self, name: str, arguments: JSON) -> JSON:
        """Call a tool. A failure is returned to the model and does not end the turn."""
        try:
            if name in PICTURES:
                return (await self._look(name)).model_dump(mode="json", exclude_none=True)
            if name == TRIAGE_RULES:
                return self._apply_rules(_RulesCall.model_validate(arguments))
            if name == GUIDELINES:
                return await self._search(_GuidelineCall.model_validate(arguments))
        except ValidationError as error:
            return {"error": first_problem(error)}
        except Exception as error:  # noqa: BLE001 - a tool of one turn must not end it
            _LOG.warning("%s failed: %s", name, type(error).__name__)
            return {"error": f"{name} failed"}
        return {"error": f"there is no tool {name}"}

    def _apply_rules(self, call: _RulesCall) -> JSON:
        given = TriageInput.model_validate(call.model_dump(exclude={"thought"}))
        result = self._services.rules.evaluate(given, self._language)
        self.rules.append(result)
        return result.model_dump(mode="json", exclude={"fired"})

    async def _search(self, call: _GuidelineCall) -> JSON:
        found = await self._services.search(call.query, self._language, call.top_k)
        best = [one.id for one in found[:_MOST_CITED]]
        self.guidelines += [id_ for id_ in best if id_ not in self.guidelines]
        return {
            "guidelines": [{"id": one.id, "title": one.title, "text": one.text} for one in found]
        }

    async def _look(self, name: str) -> CvFindings:
        if not self._image_url:
            return CvFindings(error="no picture was sent")
        try:
            if self._picture is None:
                self._picture = await self._services.fetch(self._image_url)
            found = await self._services.look(PICTURES[name], self._picture)
        except BenchError as error:  # the picture is refused
            found = CvFindings(error=str(error))
        self.findings[name] = found
        return found


@cache
def _tool(name: str, about: str, arguments: type[BaseModel]) -> JSON:
    schema = _plain(arguments.model_json_schema())
    schema.pop("description", None)
    return {
        "type": "function",
        "function": {"name": name, "description": about, "parameters": schema},
    }


def _plain(schema: Any) -> Any:
    """Remove titles and defaults from a schema, which cost tokens and do not help the model."""
    if isinstance(schema, dict):
        told = {name: one for name, one in schema.items() if name not in ("title", "default")}
        return {name: _plain(one) for name, one in told.items()}
    return [_plain(one) for one in schema] if isinstance(schema, list) else schema
