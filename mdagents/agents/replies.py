"""Replies of the agents: pydantic models with bounds from the question and the settings.

A letter is typed as one of the letters that the question has, so that a structured reply
cannot name an option that does not exist. Word limits reach the model as `maxLength` in the schema
and in words in the prompt; validation does not check them, so a long reply is accepted.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, create_model, field_validator

from mdagents.settings import Difficulty

CHARS_PER_WORD = 7
"""Characters per word in limits; medical English with its spaces has about 6.5."""

ROLE_CHARS = 60
EXPERTISE_WORDS = 10
REASON_WORDS = 30
DISSENT_WORDS = 15

_NUMBER = re.compile(r"\d{1,3}(?:\.\d+)?")


def _bounded(longest: int, shortest: int) -> Any:
    # Without a lower bound a small model may give only the letter as its reasoning.
    return Field(json_schema_extra={"minLength": shortest, "maxLength": longest})


def _prose(words: int, shortest: int = 12) -> Any:
    return _bounded(words * CHARS_PER_WORD, shortest)


def _name() -> Any:
    return _bounded(ROLE_CHARS, 4)


def _list_of(item: type[BaseModel]) -> Any:
    return list[item]  # type: ignore[valid-type]


class Reply(BaseModel):
    """Base of all replies. Fields that were not asked for are ignored."""

    model_config = ConfigDict(
        extra="ignore",
        frozen=True,
        defer_build=True,  # a run needs only some of them
    )


class _WithAnswer(Reply):
    @field_validator("answer", mode="before", check_fields=False)
    @classmethod
    def _read_letter(cls, value: object, info: ValidationInfo) -> object:
        """Read `C) Aspirin` and `c` as the letter `C`, and the text of an option as its letter.

        The texts of the options are the context of the validation, if they are known.
        """
        if not isinstance(value, str):
            return value
        letters = cls.model_fields["answer"].annotation.__args__  # type: ignore[union-attr]
        if value.strip().upper() in letters:
            return value.strip().upper()
        from mdagents_llm.answers import parse_answer  # its many patterns take time to compile

        texts = info.context or {}
        options = {letter: texts.get(letter, "") for letter in letters}
        return parse_answer(json.dumps({"answer": value}), options).letter or value


class Triage(Reply):
    """The router's reply."""

    reasoning: str
    difficulty: Difficulty


class Expert(Reply):
    """A specialist as the recruiter describes it."""

    role: str = _name()
    expertise: str = _prose(EXPERTISE_WORDS)


class RankedExpert(Expert):
    """A specialist with a place in a hierarchy."""

    reports_to: Annotated[str, _name()] | None
    """Role of the expert above, or None. The form `Pediatrician > Cardiologist` occurs too."""


class Recruitment(Reply):
    """The recruiter's reply for a panel of equals."""

    experts: list[Expert]


class RankedRecruitment(Reply):
    """The recruiter's reply for a debate."""

    experts: list[RankedExpert]


class Opinion(_WithAnswer):
    """An expert's opinion."""

    reasoning: str
    answer: str
    confidence: float
    """0 to 1."""

    @field_validator("confidence", mode="before")
    @classmethod
    def _read_percent(cls, value: object) -> object:
        """Read 85, "85" and "85%" as 0.85; up to 10, the scale is in doubt."""
        if isinstance(value, bool):
            raise ValueError("must be a number")
        text = str(value).strip() if isinstance(value, int | float | str) else ""
        number = text.removesuffix("%").rstrip()
        if not _NUMBER.fullmatch(number):
            return value
        is_percent = 10 < float(number) <= 100 or (text != number and float(number) >= 1)
        return float(number) / 100 if is_percent else value


class Message(Reply):
    """A message from one expert to another."""

    to: int
    """Number of the recipient, counted from 1."""
    text: str


class Participation(Reply):
    """Whether an expert wants to write in this turn, and to whom."""

    reason: str
    participate: bool
    messages: list[Message]


class Member(Reply):
    """A clinician of a multidisciplinary team."""

    role: str = _name()
    expertise: str = _prose(EXPERTISE_WORDS)
    lead: bool


class Team(Reply):
    """A multidisciplinary team as the recruiter plans it."""

    name: str = _name()
    purpose: str = _prose(EXPERTISE_WORDS)
    kind: Literal["initial", "specialist", "final_review"]
    members: list[Member]


class Teams(Reply):
    """The recruiter's plan of all teams."""

    teams: list[Team]


class Delegation(Reply):
    """What a lead asks of the assistants."""

    instructions: str


class Investigation(Reply):
    """What an assistant found."""

    findings: str


class TeamReport(_WithAnswer):
    """What a team concludes."""

    findings: str
    answer: str
    dissent: str
    """What a member of the team sees differently, or `none`."""


class Critique(Reply):
    """What a physician finds wrong in their own answer."""

    critique: str
    needs_change: bool


class Discussion(Reply):
    """What several personas say to each other, in one text."""

    discussion: str


class Consent(Reply):
    """Whether an expert agrees with a report."""

    objection: str
    """What is wrong or missing, or `none`."""
    agrees: bool


class Choice(_WithAnswer):
    """An answer without any reasoning."""

    answer: str


class Verdict(_WithAnswer):
    """The final decision of an arbitrator, a moderator or a coordinator."""

    analysis: str
    answer: str


def _letter(letters: str) -> Any:
    return Literal[tuple(letters)]


@lru_cache(maxsize=64)
def triage(words: int) -> type[Triage]:
    """Return `Triage` with at most `words` words of reasoning."""
    return create_model("Triage", __base__=Triage, reasoning=(str, _prose(words)))


@lru_cache(maxsize=64)
def recruitment(count: int) -> type[Recruitment]:
    """Return `Recruitment` of exactly `count` experts."""
    size = Field(min_length=count, max_length=count)
    return create_model("Recruitment", __base__=Recruitment, experts=(list[Expert], size))


@lru_cache(maxsize=64)
def ranked_recruitment(count: int) -> type[RankedRecruitment]:
    """Return `RankedRecruitment` of exactly `count` experts."""
    size = Field(min_length=count, max_length=count)
    return create_model(
        "RankedRecruitment", __base__=RankedRecruitment, experts=(list[RankedExpert], size)
    )


@lru_cache(maxsize=64)
def opinion(letters: str, words: int) -> type[Opinion]:
    """Return `Opinion` over the options `letters` with at most `words` words of reasoning."""
    return create_model(
        "Opinion",
        __base__=Opinion,
        reasoning=(str, _prose(words)),
        answer=(_letter(letters), ...),
        confidence=(float, Field(ge=0, le=1)),
    )


@lru_cache(maxsize=64)
def participation(experts: int, words: int) -> type[Participation]:
    """Return `Participation` in a panel of `experts`, each message at most `words` words long."""
    message = create_model(
        "Message",
        __base__=Message,
        to=(int, Field(ge=1, le=experts)),
        text=(str, _prose(words)),
    )
    return create_model(
        "Participation",
        __base__=Participation,
        reason=(str, _prose(REASON_WORDS)),
        messages=(_list_of(message), Field(max_length=experts - 1)),
    )


@lru_cache(maxsize=64)
def teams(count: int, size: int) -> type[Teams]:
    """Return `Teams`: exactly `count` teams of exactly `size` members."""
    team = create_model(
        "Team", __base__=Team, members=(list[Member], Field(min_length=size, max_length=size))
    )
    plan = Field(min_length=count, max_length=count)
    return create_model("Teams", __base__=Teams, teams=(_list_of(team), plan))


@lru_cache(maxsize=64)
def delegation(words: int) -> type[Delegation]:
    """Return `Delegation` of at most `words` words."""
    return create_model("Delegation", __base__=Delegation, instructions=(str, _prose(words)))


@lru_cache(maxsize=64)
def investigation(words: int) -> type[Investigation]:
    """Return `Investigation` of at most `words` words."""
    return create_model("Investigation", __base__=Investigation, findings=(str, _prose(words)))


@lru_cache(maxsize=64)
def critique(words: int) -> type[Critique]:
    """Return `Critique` of at most `words` words."""
    return create_model("Critique", __base__=Critique, critique=(str, _prose(words)))


@lru_cache(maxsize=64)
def discussion(words: int) -> type[Discussion]:
    """Return `Discussion` of at most `words` words."""
    return create_model("Discussion", __base__=Discussion, discussion=(str, _prose(words)))


@lru_cache(maxsize=64)
def consent(words: int) -> type[Consent]:
    """Return `Consent` with at most `words` words of objection."""
    return create_model("Consent", __base__=Consent, objection=(str, _prose(words, shortest=4)))


@lru_cache(maxsize=64)
def team_report(letters: str, words: int) -> type[TeamReport]:
    """Return `TeamReport` over the options `letters` with at most `words` words of findings."""
    return create_model(
        "TeamReport",
        __base__=TeamReport,
        findings=(str, _prose(words)),
        answer=(_letter(letters), ...),
        dissent=(str, _prose(DISSENT_WORDS, shortest=4)),
    )


@lru_cache(maxsize=64)
def choice(letters: str) -> type[Choice]:
    """Return `Choice` over the options `letters`."""
    return create_model("Choice", __base__=Choice, answer=(_letter(letters), ...))


@lru_cache(maxsize=64)
def verdict(letters: str, words: int) -> type[Verdict]:
    """Return `Verdict` over the options `letters` with at most `words` words of analysis."""
    return create_model(
        "Verdict",
        __base__=Verdict,
        analysis=(str, _prose(words)),
        answer=(_letter(letters), ...),
    )
