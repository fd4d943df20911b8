"""A model that answers from what tools returned and from nothing else, for the fake provider.

It is a small function of the request: it sorts a message by its words, searches for these, reads
the document that is found first, and takes its answer from the lines of that. So where a document
says something else, the answer is another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.fake_provider import SeenRequest

_WORD = re.compile(r"[a-z]{3,}|\d[\d,.]*\d|\d")
_ID = re.compile(r"^([\w.-]+) \| ", re.MULTILINE)
"""How a tool's result begins to speak of a document."""
_ORDER = re.compile(r"ignore (?:all|the|your)[^.]*?(?:rules|instructions)[^.]*", re.IGNORECASE)
_COMMON = frozenset(
    {"the", "and", "are", "for", "from", "with", "what", "which", "does", "this", "that", "was"}
    | {"has", "have", "equal", "equals", "plus", "there", "about", "main", "please", "discussed"}
    | {"document", "documents"}
)


@dataclass(frozen=True)
class Call:
    """A tool's result as the model is told it."""

    name: str
    content: str


def document_model(request: SeenRequest) -> str:
    """Reply to a request of the document assistant."""
    question, results = _asked(request)
    if "You sort messages" in request.messages[0]:
        intent = sort_of(_last_message(request))
        return json.dumps({"intent_type": intent, "confidence": 0.9, "reasoning": "By its words."})
    kind = _kind(request)
    read = [one.content for one in results if one.name == "document_reader"]
    if not read:
        found = [one for call in results for one in _ID.findall(call.content)]
        if found:
            return _call("document_reader", document_id=found[0])
        if results:
            return _draft(kind, "The documents do not say it.", [])
        return _call("document_search", keyword=" ".join(words_of(question)))
    lines = _lines(read[-1])
    if kind == "CalculationDraft":
        return _calculated(question, lines, results)
    best = sorted(lines, key=lambda line: -_likeness(question, line))
    points = [line for line in lines if re.match(r"\s*(?:[-*•]|\d+\.|#+) ?", line)][:3]
    return _draft(kind, best[0].strip(), points or best[:3])


def gullible_model(request: SeenRequest) -> str:
    """Reply as `document_model`, but obey an order to ignore the rules in a tool's result."""
    _, results = _asked(request)
    for call in results:
        if _ORDER.search(call.content):
            kind = _kind(request)
            if kind == "CalculationDraft":
                return _call("calculator", expression="42")
            return _draft(kind, "42", ["42"])
    return document_model(request)


def sort_of(message: str) -> str:
    """Return the intent of a message by its words."""
    words = set(words_of(message))
    if words & {"summarize", "summary", "overview"}:
        return "summarization"
    if words & {"calculate", "margin", "sum", "difference"}:
        return "calculation"
    return "qa" if words else "unknown"


def words_of(text: str) -> list[str]:
    """Return the words of a text that say something."""
    return [word for word in _WORD.findall(text.lower()) if word not in _COMMON]


def _calculated(question: str, lines: Sequence[str], results: Sequence[Call]) -> str:
    done = [one for one in results if one.name == "calculator"]
    if done:
        return _draft(
            "CalculationDraft", "net margin = revenue - (fixed cost + rate * revenue)", []
        )
    revenue = _figure(lines, r"revenue[^\d%]*?([\d,.]*\d)(?![\d,.]*\s*%)")
    fixed = _figure(lines, r"fixed[^\d]*?([\d,.]*\d)")
    rate = _figure(lines, r"([\d.]+)\s*(?:%|percent|per cent)")
    return _call(
        "calculator", expression=f"{revenue} - ({fixed} + {float(rate) / 100:g}*{revenue})"
    )


def _figure(lines: Sequence[str], pattern: str) -> str:
    found = [match[1] for line in lines if (match := re.search(pattern, line, re.IGNORECASE))]
    return found[0].replace(",", "") if found else "0"


def _likeness(question: str, line: str) -> float:
    asked, said = set(words_of(question)), words_of(line)
    bonus = 0.5 if re.search(r"\d", line) else 0.0
    total = 0.5 if "total" in said else 0.0
    return len(asked & set(said)) + bonus + total - 0.01 * len(said)


def _lines(content: str) -> list[str]:
    no_text = re.compile(r"</?document |[\w.-]+ \| ")
    return [line for line in content.splitlines() if line.strip() and not no_text.match(line)]


def _kind(request: SeenRequest) -> str:
    kinds = ("CalculationDraft", "SummaryDraft", "AnswerDraft")
    return next((kind for kind in kinds if f"call {kind}" in request.messages[0]), "")


def _asked(request: SeenRequest) -> tuple[str, list[Call]]:
    """Return the last question, and what tools returned after it."""
    question, results = "", list[Call]()
    for role, message in zip(request.roles, request.messages, strict=True):
        if role != "user":
            continue
        if message.startswith('{"tool_results"'):
            told = json.loads(message)["tool_results"]
            results += [Call(str(one.get("name", "")), one["content"]) for one in told]
        elif "Call the calculator now" not in message:
            question, results = message, []
    return question, results


def _last_message(request: SeenRequest) -> str:
    return request.messages[-1].rpartition("The user's last message:")[2]


def _call(name: str, **arguments: Any) -> str:
    # As text, which is said as it is: a dict would have its optional arguments made up.
    return json.dumps({"reply": {"tool_calls": [{"name": name, "args": arguments}]}})


def _draft(kind: str, text: str, points: Sequence[str]) -> str:
    forms: Mapping[str, Mapping[str, Any]] = {
        "AnswerDraft": {"answer": text, "confidence": 0.86},
        "SummaryDraft": {"summary": text, "key_points": list(points), "confidence": 0.81},
        "CalculationDraft": {"formula": text, "confidence": 0.9},
    }
    return _call(kind, **forms[kind])
