"""Enums of levels, statuses and roles, the numbers that define the teams, and display names."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from mdagents_llm.config import LLMRole, read_variables
from mdagents_llm.files.home import of_home

DATA_DIR, OUTPUT_DIR = Path("data"), Path("output")
"""Default folders of the data sets and of the runs."""


def data_dir() -> str:
    """Return the folder of the data sets: by the environment or `.env`, else the default one.

    Raises:
        ConfigError: `.env` cannot be read, or there is no home folder for a `~`.
    """
    return of_home(read_variables().get("MDAGENTS_DATA_DIR", str(DATA_DIR)))


def output_dir() -> str:
    """Return the folder of the runs: by the environment or `.env`, else the default one.

    Raises:
        ConfigError: `.env` cannot be read, or there is no home folder for a `~`.
    """
    return of_home(read_variables().get("MDAGENTS_OUTPUT_DIR", str(OUTPUT_DIR)))


class Difficulty(StrEnum):
    """Difficulty of a question, which determines the team that answers it."""

    BASIC = "basic"
    INTERMEDIATE = "intermediate"
    ADVANCED = "advanced"


MDAGENTS = "mdagents"
"""Method in which the team for the difficulty of a question answers it; the others do not route."""


class OptionOrder(StrEnum):
    """The order in which the options of a question are presented."""

    SHUFFLED = "shuffled"
    """Separate permutation for each question and epoch, derived from the run's seed."""
    SAME = "same"
    """Separate permutation for each question, the same in all epochs."""
    ORIGINAL = "original"


class Router(StrEnum):
    """Way to find the team that a question needs."""

    LLM = "llm"
    """A model rates the question."""
    DISAGREEMENT = "disagreement"
    """No model rates the question; it climbs to the next team when the experts do not agree."""


AGREEMENT = 0.8
"""Minimum mean stated confidence at which unanimous first opinions decide."""


class Preset(StrEnum):
    """Presets of team numbers (docs/explanation/teams.md)."""

    ULTIMATE = "ultimate"
    CLASSIC = "classic"
    """Preset with larger debates and smaller teams."""
    SMALL = "small"
    """Preset with the smallest possible teams, for the embedded model."""


class TeamRole(StrEnum):
    """Roles of a team for which a model can be chosen."""

    ROUTER = "router"
    RECRUITER = "recruiter"
    EXPERT = "expert"
    DECISION = "decision"


EXAID_ROLES = frozenset({LLMRole.SUMMARIZER.value, LLMRole.BUFFER_AGENT.value})
"""Roles of EXAID, whose calls do not count toward the team."""


def expert_number(model_role: str) -> int | None:
    """Return the number of a numbered expert: 2 for `expert-2`; None for other roles."""
    name, _, number = model_role.partition("-")
    return int(number) if name == TeamRole.EXPERT and number.isdecimal() else None


class Peers(StrEnum):
    """What experts see of each other after their first opinions; all but `all` are controls."""

    ALL = "all"
    NONE = "none"
    """Nothing: they reconsider alone."""
    NOISE = "noise"
    """Messages and reasons from debates about other questions, as long as the real ones."""
    SHUFFLED = "shuffled"
    """All, under the names of other experts."""
    DEVIL = "devil"
    """All, and one expert is told to defend a wrong option."""
    BLIND = "blind"
    """All, without names, roles and confidence."""
    FRESH = "fresh"
    """All, but the decision-maker sees first opinions only."""


class DebatePolicy(StrEnum):
    """When the debate of the intermediate team is held, and who speaks first in it."""

    ALWAYS = "always"
    """All experts speak at once, until nobody writes, all agree, or the rounds are over."""
    AGREED = "agreed"
    """No debate and no moderator where all first opinions agree."""
    CHANGING = "changing"
    """No further round after one in which nobody changed the answer."""
    MINORITY_FIRST = "minority-first"
    """In the first turn only experts outside the majority of first opinions speak."""


class ImageAgents(StrEnum):
    """Agents that see the pictures of a question."""

    ALL = "all"
    EXPERTS = "experts"
    """The router and the experts; recruiter, arbitrator, moderator and coordinator read only what
    the experts say about a picture."""


class Outcome(StrEnum):
    """Outcome of a run."""

    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    LIMIT = "limit"
    """A limit of the run was reached."""
    TOO_MANY_ERRORS = "too_many_errors"
    COULD_NOT_WORK = "could_not_work"
    """No reply came, or more than half of the questions ended in `api_error`."""


class Status(StrEnum):
    """Final status of a question."""

    ANSWERED = "answered"
    PARSE_ERROR = "parse_error"
    """The model replied, but in no form that holds an answer."""
    REFUSED = "refused"
    TRUNCATED = "truncated"
    API_ERROR = "api_error"
    LIMIT = "limit"
    """A token, cost or time limit stopped the question."""
    SKIPPED = "skipped"
    """The route leads to a level that is left out; not in the denominator of accuracy."""


class RoutedBy(StrEnum):
    """Source of the choice of a question's team."""

    ROUTER = "router"
    FALLBACK = "fallback"
    """The router's reply could not be used."""
    DISAGREEMENT = "disagreement"
    """The agreement of the experts decided: `--router disagreement`."""
    FORCED = "forced"
    """The flag `--difficulty` set the level."""
    METHOD = "method"
    """The flag `--method` chose a method, which has no levels."""


@dataclass(frozen=True, slots=True)
class TeamSettings:
    """Numbers that define a team, and what its experts see. All counts are 1 to 10."""

    basic_experts: int = 3
    debate_experts: int = 3
    rounds: int = 3
    """Maximum number of rounds of a debate."""
    turns: int = 3
    """Maximum number of turns in a round."""
    answer_rounds: int = 3
    """Maximum number of rounds of `debate` and `reconcile`; in the first, all answer alone."""
    teams: int = 3
    """Number of multidisciplinary teams, IAT and FRDT included."""
    team_size: int = 3
    """Number of clinicians in a team, its lead included."""
    opinion_words: int = 300
    """Maximum number of words of reasoning of an expert of the basic team."""
    debate_opinion_words: int = 50
    message_words: int = 200
    delegate_words: int = 50
    investigate_words: int = 100
    synthesise_words: int = 100
    verdict_words: int = 300
    cot_words: int = 600
    """Maximum number of words of a chain of thought: `cot` and each sample of `cot_sc`."""
    triage_words: int = 40
    decision_temperature: float = 0.0
    """Temperature of the router, recruiter, arbitrator, moderator and coordinator."""
    expert_temperature: float = 0.7
    peers: Peers = Peers.ALL
    debate_policy: DebatePolicy = DebatePolicy.ALWAYS


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

DISPLAYS = ("full", "plain", "log", "none")
"""Values of `--display`."""
