"""Schemas of the assistant: the intent of a message, drafts, and a response of each kind.

A model writes a draft. Facts that are known without it (sources, time, expression, result) are
never requested from it: the graph adds them and builds the response.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, TypeAdapter

Confidence = Annotated[float, Field(ge=0.0, le=1.0)]
"""Confidence from 0 to 1 as stated by the model; it is not a measurement."""


def _json_number(value: Decimal) -> int | float | str:
    """Return a number that JSON holds without loss, or else the number as text."""
    if value == value.to_integral_value() and abs(value) < 1 << 53:
        return int(value)
    near = float(value)
    return near if Decimal(repr(near)) == value else str(value)


Exact = Annotated[Decimal, PlainSerializer(_json_number, when_used="json")]


class IntentType(StrEnum):
    """Intent of a message."""

    QA = "qa"
    SUMMARIZATION = "summarization"
    CALCULATION = "calculation"
    UNKNOWN = "unknown"


class UserIntent(BaseModel):
    """What the user wants."""

    intent_type: Literal["qa", "summarization", "calculation", "unknown"] = Field(
        description="qa: a question; summarization: a summary is wanted; calculation: a number is "
        "to be worked out; unknown: none of these"
    )
    confidence: float = Field(ge=0.0, le=1.0, description="how sure you are, from 0 to 1")
    reasoning: str = Field(description="why, in one short sentence")


# -- drafts, written by a model -------------------------------------------------------------------


class AnswerDraft(BaseModel):
    """The answer to the user's question. Call this when you are done."""

    answer: str = Field(min_length=1, description="the answer, in one to three sentences")
    confidence: float = Field(ge=0.0, le=1.0, description="how sure you are, from 0 to 1")


class SummaryDraft(BaseModel):
    """The summary that the user wants. Call this when you are done."""

    summary: str = Field(min_length=1, description="the summary, in one to four sentences")
    key_points: list[str] = Field(max_length=8, description="the most important points, each short")
    confidence: float = Field(ge=0.0, le=1.0, description="how sure you are, from 0 to 1")


class CalculationDraft(BaseModel):
    """The end of a calculation. Call this when the calculator has given the result."""

    formula: str = Field(
        min_length=1, description="the formula in words, such as: margin = revenue - cost"
    )
    confidence: float = Field(ge=0.0, le=1.0, description="how sure you are, from 0 to 1")


# -- responses to the user ------------------------------------------------------------------------


class Citation(BaseModel):
    """The line of a document that supports a sentence of an answer."""

    model_config = ConfigDict(frozen=True)

    sentence: str
    document_id: str
    page: int | None
    """Page of a PDF, from 1; None for other documents."""
    line: int
    """Line of the page or document as it was read, from 1."""

    @property
    def place(self) -> str:
        """Document, page and line in words."""
        page = f"page {self.page}, " if self.page else ""
        return f"{self.document_id}, {page}line {self.line}"


class AnswerResponse(BaseModel):
    """The answer to a question."""

    model_config = ConfigDict(frozen=True)

    question: str
    """As the user wrote it."""
    answer: str
    sources: list[str]
    """Ids of the documents that tools gave to the model in this turn."""
    citations: list[Citation] = []
    """Lines of these documents that support sentences of the text, in the order of the text."""
    confidence: Confidence
    timestamp: datetime
    """When the response was made, UTC."""


class SummarizationResponse(BaseModel):
    """A summary of one or more documents."""

    model_config = ConfigDict(frozen=True)

    summary: str
    key_points: list[str]
    sources: list[str]
    """Ids of the documents that tools gave to the model in this turn."""
    citations: list[Citation] = []
    """Lines of these documents that support sentences of the text, in the order of the text."""
    confidence: Confidence
    timestamp: datetime
    """When the response was made, UTC."""


class Calculation(BaseModel):
    """One successful call of the calculator."""

    model_config = ConfigDict(frozen=True)

    expression: str
    result: Exact


class CalculationResponse(BaseModel):
    """The result of a calculation: its numbers went into the calculator, or came out."""

    model_config = ConfigDict(frozen=True)

    formula: str
    """In the model's words; the expression, where those hold a number that is not in it."""
    expression: str
    """What the calculator was given."""
    result: Exact
    """What it gave."""
    steps: list[Calculation]
    """All calculations of the turn, the one above the last of them."""
    sources: list[str]
    """Ids of the documents that tools gave to the model in this turn."""
    citations: list[Citation] = []
    """Lines of these documents that support sentences of the text, in the order of the text."""
    confidence: Confidence
    timestamp: datetime
    """When the response was made, UTC."""


class NoAnswer(BaseModel):
    """The end of a turn without an answer: the model did not give one that can be reported."""

    model_config = ConfigDict(frozen=True)

    reason: str
    """One sentence."""
    sources: list[str]
    """Ids of the documents that tools gave to the model in this turn."""
    confidence: Confidence
    timestamp: datetime
    """When the response was made, UTC."""


Response = AnswerResponse | SummarizationResponse | CalculationResponse | NoAnswer

responses: TypeAdapter[Response] = TypeAdapter(Response)
"""Adapter that parses a response from JSON; its fields determine its class."""


def text_of(response: Response) -> str:
    """Return a response as text of the conversation."""
    match response:
        case AnswerResponse():
            return response.answer
        case SummarizationResponse():
            return "\n".join([response.summary, *(f"- {point}" for point in response.key_points)])
        case CalculationResponse():
            lines = [f"{response.expression} = {response.result:f}"]
            if response.formula != response.expression:
                lines.insert(0, response.formula)
            return "\n".join(lines)
        case NoAnswer():
            return response.reason
