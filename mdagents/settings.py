"""Closed sets: levels, methods, statuses and roles; and the numbers that define the teams."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Difficulty(StrEnum):
    """How hard a question is, and so which team answers it."""

    BASIC = "basic"
    INTERMEDIATE = "intermediate"
    ADVANCED = "advanced"


class Method(StrEnum):
    """How a question is answered."""

    MDAGENTS = "mdagents"
    """By the team that its difficulty calls for; the others do not route."""
    ZERO_SHOT = "zero_shot"
    FEW_SHOT = "few_shot"
    COT = "cot"
    COT_SC = "cot_sc"
    MEDPROMPT = "medprompt"
    SELF_REFINE = "self_refine"
    MULTI_PERSONA = "multi_persona"
    MAJORITY_VOTE = "majority_vote"
    DEBATE = "debate"
    RECONCILE = "reconcile"
    MEDAGENTS = "medagents"


ALONE = frozenset({Method.ZERO_SHOT, Method.FEW_SHOT, Method.COT, Method.COT_SC, Method.MEDPROMPT})
"""Methods in which agents do not communicate: one turn, or a vote over several such."""

IN_ROUNDS = frozenset({Method.DEBATE, Method.RECONCILE})
"""Methods in which all answer in rounds, each in view of the last one's answers."""


class Router(StrEnum):
    """How it is found out which team a question needs."""

    LLM = "llm"
    """A model rates the question."""
    DISAGREEMENT = "disagreement"
    """Nobody rates it: it climbs to the next team when the experts of one do not agree."""


class EngineName(StrEnum):
    """Where questions are answered."""

    LOCAL = "local"
    """In this process."""
    RAY = "ray"
    """By workers on a Ray cluster."""


class Preset(StrEnum):
    """Sets of team numbers (docs/teams.md)."""

    ULTIMATE = "ultimate"
    CLASSIC = "classic"
    """Larger debates, smaller teams."""
    SMALL = "small"
    """The smallest teams that still are teams: for the embedded model."""


class TeamRole(StrEnum):
    """The roles of a team for which a model can be chosen."""

    ROUTER = "router"
    RECRUITER = "recruiter"
    EXPERT = "expert"
    DECISION = "decision"


class Status(StrEnum):
    """What became of a question."""

    ANSWERED = "answered"
    PARSE_ERROR = "parse_error"
    """The model replied, but not in a form that holds an answer."""
    REFUSED = "refused"
    TRUNCATED = "truncated"
    API_ERROR = "api_error"
    LIMIT = "limit"
    """A token, cost or time limit stopped it."""
    SKIPPED = "skipped"
    """Routed to a level that is left out; not in the denominator of accuracy."""


class RoutedBy(StrEnum):
    """Who chose the team of a question."""

    ROUTER = "router"
    FALLBACK = "fallback"
    """The router's reply could not be used."""
    DISAGREEMENT = "disagreement"
    """Experts who did not agree, or did: `--router disagreement`."""
    FORCED = "forced"
    """`--difficulty`"""
    METHOD = "method"
    """`--method`, which has no levels."""


@dataclass(frozen=True, slots=True)
class TeamSettings:
    """Numbers that define a team. All counts are 1 to 10."""

    basic_experts: int = 3
    debate_experts: int = 3
    rounds: int = 3
    """Most rounds of a debate."""
    turns: int = 3
    """Most turns of a round."""
    answer_rounds: int = 3
    """Rounds in which all answer, the first of them alone: `debate` and `reconcile`."""
    teams: int = 3
    """Multidisciplinary teams, IAT and FRDT included."""
    team_size: int = 3
    """Clinicians in a team, its lead included."""
    delegate_words: int = 50
    investigate_words: int = 100
    synthesise_words: int = 100
    opinion_words: int = 300
    """Reasoning of an expert of the basic team."""
    debate_opinion_words: int = 50
    message_words: int = 200
    verdict_words: int = 300
    cot_words: int = 600
    """Steps of a chain of thought: `cot` and each sample of `cot_sc`."""
    triage_words: int = 40
    decision_temperature: float = 0.0
    """Router, recruiter, arbitrator, moderator, coordinator."""
    expert_temperature: float = 0.7


PRESETS = {
    Preset.ULTIMATE: TeamSettings(),
    Preset.CLASSIC: TeamSettings(
        debate_experts=5,
        rounds=5,
        turns=5,
        teams=2,
        team_size=2,
        delegate_words=30,
        investigate_words=50,
    ),
    Preset.SMALL: TeamSettings(
        basic_experts=2,
        debate_experts=2,
        rounds=1,
        turns=1,
        answer_rounds=2,
        teams=2,
        team_size=2,
        delegate_words=20,
        investigate_words=30,
        synthesise_words=40,
        opinion_words=40,
        debate_opinion_words=30,
        message_words=30,
        verdict_words=40,
        cot_words=60,
        triage_words=20,
    ),
}

SMALLEST_COUNT, LARGEST_COUNT = 1, 10
"""Bounds of every count that a user can set."""
