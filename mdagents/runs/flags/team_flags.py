"""Flags of the teams: the method, the router, the sizes of the teams, and EXAID."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from exaid_core.policy import TriggerPolicy
from mdagents.runs.flags.bounds import Count, Fraction, NotNegative, Temperature
from mdagents.runs.flags.flag import Flag, Flags, StartFlag, text_of_path
from mdagents.runs.flags.lists import parts_of
from mdagents.runs.flags.word_limits import WORD_LIMITS, read_word_limits
from mdagents.settings import (
    AGREEMENT,
    MDAGENTS,
    PRESETS,
    DebatePolicy,
    Difficulty,
    Peers,
    Preset,
    Router,
    TeamSettings,
)
from mdagents.teams.names import baseline_names, is_own, method_names, name_of
from mdagents_llm.errors import ConfigError
from mdagents_llm.terminal.did_you_mean import did_you_mean

ADAPTIVE: Literal["adaptive"] = "adaptive"
EXAID_OFF: Literal["off"] = "off"
LevelChoice = Difficulty | Literal["adaptive"]

_LEVEL_CHOICES = (ADAPTIVE, *(level.value for level in Difficulty))
_EXAID_CHOICES = (*(policy.value for policy in TriggerPolicy), EXAID_OFF)


class TeamFlags(Flags):
    """Who answers a question, and how they work together."""

    difficulty: Annotated[
        LevelChoice | tuple[LevelChoice, ...],
        Flag(
            "adaptive: a router rates each question; basic, intermediate or advanced: that team "
            "answers; several: in turn",
            "LEVEL,…",
            in_name=True,
        ),
    ] = ADAPTIVE
    """Several levels also as one text, `basic,advanced`."""
    method: Annotated[
        str,
        BeforeValidator(text_of_path),
        Flag(
            f"the teams ({MDAGENTS}), or instead of them {', '.join(baseline_names())}; or one of "
            "your own: a file.py or package.module:solve",
            "METHOD",
            in_name=True,
        ),
    ] = MDAGENTS
    router: Annotated[
        Router,
        Flag(
            "how the team is chosen: by a model that rates the question, or by the experts' "
            "agreement"
        ),
    ] = Router.LLM
    agreement: Annotated[
        Fraction | None,
        Flag(
            "mean confidence at which agreeing experts decide, with --router disagreement "
            f"[{AGREEMENT:g}]",
            "X",
        ),
    ] = None
    preset: Annotated[Preset, Flag("sizes of the teams")] = Preset.ULTIMATE
    num_experts: Annotated[
        Count | None,
        Flag(
            "experts in basic and intermediate teams [3; classic: basic 3, intermediate 5; "
            "small 2]",
            sets=("basic_experts", "debate_experts"),
        ),
    ] = None
    num_rounds: Annotated[
        Count | None,
        Flag("number of debate rounds [3; classic 5; small 1]", sets=("rounds", "answer_rounds")),
    ] = None
    num_turns: Annotated[
        Count | None, Flag("turns per round [3; classic 5; small 1]", sets=("turns",))
    ] = None
    num_teams: Annotated[
        Count | None,
        Flag("number of teams at the advanced level [3; classic 2; small 2]", sets=("teams",)),
    ] = None
    team_size: Annotated[
        Count | None, Flag("clinicians per team [3; classic 2; small 2]", sets=("team_size",))
    ] = None
    words: Annotated[
        Mapping[str, int],
        Flag(f"override a word limit; repeatable ({', '.join(WORD_LIMITS)})", "NAME=N"),
    ] = {}
    """Name of a word limit -> words; also as a list of `name=words`."""
    decision_temperature: Annotated[
        Temperature,
        Flag("temperature of router, recruiter, arbitrator, moderator, coordinator", "T"),
    ] = 0.0
    expert_temperature: Annotated[Temperature, Flag("temperature of all other turns", "T")] = 0.7
    peers: Annotated[
        Peers,
        Flag(
            "what experts see of each other after their first opinions; every value except "
            "'all' is a control for an audit (docs/how-to/audit.md)"
        ),
    ] = Peers.ALL
    debate_policy: Annotated[
        DebatePolicy,
        Flag(
            "when the intermediate team debates: always; agreed: unless all first opinions agree; "
            "changing: until a round changes no answer; minority-first: always, dissenting experts "
            "first"
        ),
    ] = DebatePolicy.ALWAYS
    exaid: Annotated[
        TriggerPolicy | Literal["off"] | None,
        Field(validate_default=True),
        Flag(
            f"live summaries: {', '.join(_EXAID_CHOICES)} [full_exaid for the teams, turn_end "
            "with --preset small; off with another --method]",
            "POLICY",
        ),
    ] = None
    """None becomes the usual policy of the method, of the preset, and of `batch`."""
    exaid_wait: Annotated[
        NotNegative, StartFlag("seconds to wait for summaries after the last answer", "S")
    ] = 600.0

    @field_validator("difficulty", mode="before")
    @classmethod
    def _levels_in_turn(cls, value: object) -> object:
        names = [name.lower() for name in parts_of(value)]
        for name in names or [""]:
            if name not in _LEVEL_CHOICES:
                raise ConfigError(
                    f"--difficulty is '{name}' but must be one of {', '.join(_LEVEL_CHOICES)}, or "
                    f"several with commas{did_you_mean(name, _LEVEL_CHOICES)}"
                )
        return tuple(names) if len(names) > 1 else names[0]

    @field_validator("method", mode="before")
    @classmethod
    def _known_method(cls, value: object) -> object:
        name = str(value)
        known = method_names()
        if name not in known and not is_own(name):
            raise ConfigError(
                f"--method is '{name}' but must be one of {', '.join(known)}, a file.py or "
                f"package.module:solve{did_you_mean(name, known)}"
            )
        return value

    @field_validator("words", mode="before")
    @classmethod
    def _word_limits(cls, value: object) -> object:
        return read_word_limits(value)

    @field_validator("exaid", mode="before")
    @classmethod
    def _usual_exaid(cls, value: object, info: ValidationInfo) -> object:
        if str(value).lower() in ("yes", "true", "on", "1"):
            raise ConfigError(
                f"--exaid is {value!r} but must be one of {', '.join(_EXAID_CHOICES)}; "
                f"did you mean '{TriggerPolicy.FULL_EXAID}'?"
            )
        if value is not None:
            return value
        if info.data.get("method") != MDAGENTS or info.data.get("batch"):
            return EXAID_OFF
        if info.data.get("preset") is Preset.SMALL:
            return TriggerPolicy.TURN_END
        return TriggerPolicy.FULL_EXAID

    @property
    def team(self) -> TeamSettings:
        """Numbers of the preset, with the requested changes."""
        changes: dict[str, Any] = {
            count: getattr(self, name)
            for count, name in TEAM_COUNTS.items()
            if getattr(self, name) is not None
        }
        changes |= {f"{name}_words": words for name, words in self.words.items()}
        return replace(
            PRESETS[self.preset],
            decision_temperature=self.decision_temperature,
            expert_temperature=self.expert_temperature,
            peers=self.peers,
            debate_policy=self.debate_policy,
            **changes,
        )

    @property
    def levels(self) -> tuple[LevelChoice, ...]:
        """Levels to which the questions go in turn."""
        return self.difficulty if isinstance(self.difficulty, tuple) else (self.difficulty,)

    def forced_level(self, index: int) -> Difficulty | None:
        """Return the level to which a question goes; None: a router chooses it.

        Args:
            index: Index of the question in the run, from 0.
        """
        level = self.levels[index % len(self.levels)]
        return level if isinstance(level, Difficulty) else None

    @property
    def method_name(self) -> str:
        """Name of the method, for names of runs and for readers."""
        return name_of(self.method) if is_own(self.method) else self.method

    @property
    def least_agreement(self) -> float:
        """Effective value of `agreement`."""
        return AGREEMENT if self.agreement is None else self.agreement

    @property
    def exaid_policy(self) -> TriggerPolicy | None:
        """Trigger policy of EXAID; None: EXAID is off."""
        return self.exaid if isinstance(self.exaid, TriggerPolicy) else None


TEAM_COUNTS = {count: name for name, _, flag in TeamFlags.described() for count in flag.sets}
"""Count in `TeamSettings` -> field of the flag that replaces it."""
