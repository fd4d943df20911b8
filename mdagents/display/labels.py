"""Wording of phases, results and summaries for users."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from exaid_core.placeholders import PLACEHOLDER
from exaid_core.schema.agent_summary import AgentSummary
from exaid_core.templates import render_summary
from mdagents.agents.events import Member, Routed
from mdagents.records.sample import SampleRecord
from mdagents.records.summaries import ItemKey
from mdagents.settings import RoutedBy, Status
from mdagents_llm.text import one_line

STATUSES: Mapping[Status, str] = {
    Status.ANSWERED: "answered",
    Status.PARSE_ERROR: "unreadable reply",
    Status.REFUSED: "refused",
    Status.TRUNCATED: "cut-off reply",
    Status.API_ERROR: "API error",
    Status.LIMIT: "stopped at a limit",
    Status.SKIPPED: "level left out",
}

PHASES: Mapping[str, str] = {
    "route": "routing",
    "recruit": "recruiting",
    "opinion": "first opinions",
    "arbitrate": "deciding",
    "moderate": "deciding",
    "coordinate": "deciding",
    "decide": "deciding",
    "critique": "criticizing",
    "revise": "revising",
    "discuss": "discussing",
    "report": "writing the report",
    "consult": "consulting the experts",
    "answer": "answering",
    "sample": "chains of thought",
    "delegate": "the lead delegates",
    "investigate": "investigating",
    "synthesise": "the lead concludes",
}
"""Step of the protocol -> description."""

_BY_WORTH = (
    "status_action",
    "recommendation_next_step",
    "key_findings",
    "uncertainty_confidence",
    "differential_rationale",
    "agent_contributions",
)

_OF_A_ROUND = re.compile(r"round-(\d+)-(?:turn-(\d+)|update)")
_OF_A_TEAM = re.compile(r"(iat|frdt|mdt(\d+))-(\w+)")
_NUMBERED = re.compile(r"([a-z]+)-(\d+)")
_TEAMS = {"iat": "initial team", "frdt": "review team"}


@lru_cache(maxsize=1024)  # called for each turn of a page, several times a second
def phase_in_words(phase: str) -> str:
    """Return the step of a protocol in words: `debate, round 2, turn 1`."""
    if of_round := _OF_A_ROUND.fullmatch(phase):
        number, turn = of_round.groups()
        return f"debate, round {number}, " + (f"turn {turn}" if turn else "opinions after it")
    if of_team := _OF_A_TEAM.fullmatch(phase):
        prefix, number, step = of_team.groups()
        return f"{_TEAMS.get(prefix, f'team {number}')}: {PHASES.get(step, step)}"
    if numbered := _NUMBERED.fullmatch(phase):
        return f"{PHASES.get(numbered[1], numbered[1])}, round {numbered[2]}"
    return PHASES.get(phase, phase)


def label_of(item: ItemKey) -> str:
    """Return the user's own id of a question, followed by the epoch if it is not the first.

    An id that is only a number has the word before it: `question 12`.
    """
    question_id, epoch = item
    word = "question " if question_id.isdigit() else ""
    return word + one_line(question_id) + (f" (epoch {epoch})" if epoch > 1 else "")


def routed_in_words(routed: Routed) -> str:
    """Return the routing decision and its source; empty for a method without levels."""
    match routed.by:
        case RoutedBy.ROUTER:
            return f"routed to {routed.level} by the router: {one_line(routed.reason)}"
        case RoutedBy.FORCED:
            return f"goes to {routed.level}, as --difficulty says"
        case RoutedBy.FALLBACK:
            return f"goes to {routed.level}: the router's reply could not be used"
        case RoutedBy.DISAGREEMENT:
            return f"goes to {routed.level}: {one_line(routed.reason)}"
        case RoutedBy.METHOD:
            return ""


def people_in_words(members: Iterable[Member]) -> str:
    """Return the roles of recruited members, of one panel or by team."""
    teams: dict[str, list[str]] = {}
    for member in members:
        above = f" (reports to {member.reports_to})" if member.reports_to else ""
        teams.setdefault(member.team, []).append(f"{member.role}{above}")
    parts = [f"{team}: {', '.join(roles)}" if team else ", ".join(roles)
             for team, roles in teams.items()]  # fmt: skip
    return one_line("; ".join(parts))


def result_in_words(record: SampleRecord) -> str:
    """Return the result of a question: `C right`, `C wrong, gold A`, `API error`."""
    if record.status is not Status.ANSWERED:
        return STATUSES[record.status]
    if not record.label:
        return f"{record.predicted}, right option unknown"
    return f"{record.predicted} right" if record.correct else (
        f"{record.predicted} wrong, gold {record.label}"
    )  # fmt: skip


def by_role(text: str, roles: Mapping[str, str]) -> str:
    """Return a text with the roles of agents in place of their ids and numbers.

    Args:
        text: Text by agents or by EXAID, which refers to agents by their ids.
        roles: Id or name of an agent -> role.
    """
    if not roles:
        return text
    ids = "|".join(re.escape(agent) for agent in sorted(roles, key=len, reverse=True))
    return re.sub(rf"(?<![\w-])(?:{ids})(?![\w-])", lambda found: roles[found[0]], text)


def by_worth(summary: AgentSummary) -> list[str]:
    """Return the fields of a summary by priority for display; placeholder fields come last."""
    return sorted(_BY_WORTH, key=lambda name: getattr(summary, name) == PLACEHOLDER)


def summary_block(
    label: str, number: int, summary: AgentSummary, roles: Mapping[str, str]
) -> list[str]:
    """Return the lines of a summary, indented below a line with the question's label."""
    lines = by_role(render_summary(summary), roles).split("\n")
    return [f"{label} EXAID summary {number}", *(f"   {line}" for line in lines)]
