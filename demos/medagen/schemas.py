"""Data models of the triage: levels, measurements, requests, results."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

_ID = "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"


class Level(StrEnum):
    """How soon somebody needs care, the least urgent first."""

    SELF_CARE = "self_care"
    """Can be cared for at home, with monitoring."""
    ROUTINE = "routine"
    """Needs to be seen within a few days."""
    URGENT = "urgent"
    """Needs to be seen within 24 hours."""
    EMERGENCY = "emergency"
    """Needs care immediately."""

    @property
    def rank(self) -> int:
        """Urgency from 0 (self-care) to 3 (emergency)."""
        return list(Level).index(self)


def highest(levels: Iterable[Level]) -> Level:
    """Return the most urgent of one or more levels."""
    return max(levels, key=lambda level: level.rank)


class Language(StrEnum):
    """Language of a user's messages."""

    VIETNAMESE = "vi"
    ENGLISH = "en"


class Severity(StrEnum):
    """How bad somebody says that it is."""

    MILD = "mild"
    MODERATE = "moderate"
    SEVERE = "severe"


class VitalSigns(BaseModel):
    """Measurements; None: not taken. The more dangerous of these and those in words counts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    temperature_celsius: float | None = Field(default=None, ge=20, le=46)
    """°C."""
    heart_rate: float | None = Field(default=None, ge=0, le=350)
    """Beats a minute."""
    respiratory_rate: float | None = Field(default=None, ge=0, le=150)
    """Breaths a minute."""
    oxygen_saturation: float | None = Field(default=None, ge=0, le=100)
    """Per cent."""
    systolic_bp: float | None = Field(default=None, ge=0, le=350)
    """mmHg."""
    diastolic_bp: float | None = Field(default=None, ge=0, le=250)
    """mmHg."""
    glucose_mmol_l: float | None = Field(default=None, ge=0, le=100)
    """mmol/L."""
    ketones_mmol_l: float | None = Field(default=None, ge=0, le=30)
    """mmol/L, in blood."""


class PatientInfo(BaseModel):
    """Who it is about; None: not said."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    age: float | None = Field(default=None, ge=0, le=130)
    """Years; 0.25 for a baby of three months. An age in words counts as well."""
    pregnant: bool | None = None
    chronic_conditions: tuple[str, ...] = ()
    """In words, of either language."""


class TriageInput(BaseModel):
    """What the rules look at. No field lowers the level that the symptoms alone have."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    symptoms: tuple[Annotated[str, Field(max_length=4_000)], ...] = Field(default=(), max_length=50)
    """Complaints in words of either language, or ids of flags such as `chest_pain`."""
    symptom_severity: Severity | None = None
    duration_days: float | None = Field(default=None, ge=0, le=40_000)
    vital_signs: VitalSigns = VitalSigns()
    patient_info: PatientInfo = PatientInfo()


class Fired(BaseModel):
    """A rule that holds."""

    model_config = ConfigDict(frozen=True)

    rule: str
    """Its id."""
    flag: str
    """The red flag that it raises."""
    level: Level
    because: str
    """The words or the measurement that it fired for."""
    source: str
    """Where the rule is from."""


class RulesResult(BaseModel):
    """What the rules say."""

    model_config = ConfigDict(frozen=True)

    triage_level: Level
    red_flags: tuple[str, ...]
    """Ids of flags, the most urgent first."""
    fired: tuple[Fired, ...]
    """The most urgent first."""
    reasoning: str
    """Why, in the language that was asked in."""


class Prediction(BaseModel):
    """What a picture may show."""

    model_config = ConfigDict(frozen=True)

    label: str = Field(max_length=200)
    probability: float = Field(ge=0.0, le=1.0, allow_inf_nan=False)


class CvFindings(BaseModel):
    """What a service for pictures found in one."""

    model_config = ConfigDict(frozen=True)

    predictions: tuple[Prediction, ...] = Field(default=(), max_length=20)
    """The most probable first."""
    error: str | None = None
    """Why there are none."""


class TriageRequest(BaseModel):
    """A message of a user's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str = Field(default="", max_length=4_000)
    image_url: str | None = Field(default=None, max_length=2_000)
    """`https://…`"""
    user_id: str = Field(pattern=_ID)
    session_id: str | None = Field(default=None, pattern=_ID)
    """None: a new conversation."""


class TriageResult(BaseModel):
    """What a user is told."""

    model_config = ConfigDict(frozen=True)

    triage_level: Level
    """The most urgent of what the rules, the pictures and the model say."""
    symptom_summary: str
    red_flags: tuple[str, ...]
    """Ids of the flags that the user's own words raise, the most urgent first."""
    model_flags: tuple[str, ...] = ()
    """What the model calls red flags, in its text or by its calls of the rules; not checked."""
    suspected_conditions: tuple[str, ...]
    """Possibilities that the model names, never a diagnosis."""
    cv_findings: dict[str, CvFindings] | None
    """Tool -> what it found; None: no picture was looked at."""
    recommendation: str
    """Fixed text for the level; nothing in it is from the model."""
    model_advice: str = ""
    """What the model advises; empty if it was meant for a lower level."""
    earlier_words: str = ""
    """Words of an earlier message on which the level rests; empty if the last message alone reaches
    the level of the rules."""
    language: Language
    """What the texts are in."""
    session_id: str
    """Empty: the conversation could not be kept."""
    rules: tuple[Fired, ...]
    """Why the level is at least what it is."""
    guidelines: tuple[str, ...]
    """Ids of the guidelines that were found."""
    model_level: Level | None = None
    """What the model alone would say; None: it has no part in this."""
    fallback: str | None
    """Why the model has no part in this; None: it has one."""


class Thought(BaseModel):
    """What the model says before it acts."""

    type: Literal["thought"] = "thought"
    text: str


class ActionStart(BaseModel):
    """A tool is called."""

    type: Literal["action_start"] = "action_start"
    tool: str
    input: dict[str, object]


class Observation(BaseModel):
    """What a tool returned."""

    type: Literal["observation"] = "observation"
    tool: str
    output: dict[str, object]
    """For `triage_rules`, which always comes first: a `RulesResult`."""
    session_id: str = ""
    """For the rules' first result: the conversation in which the message is now stored."""


class FinalAnswer(BaseModel):
    """The end of a turn."""

    type: Literal["final_answer"] = "final_answer"
    result: TriageResult


class Refused(BaseModel):
    """The request could not be taken."""

    type: Literal["error"] = "error"
    message: str
    """One sentence that says what to change."""


Event = Annotated[
    Thought | ActionStart | Observation | FinalAnswer | Refused, Field(discriminator="type")
]
"""A step of a turn, as sent to the chat page."""
