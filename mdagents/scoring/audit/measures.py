"""The measures of an audit: what each counts, and of how many."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Measure(StrEnum):
    """A measure, by its name in JSON."""

    SHARED_ERROR = "shared_error"
    MINORITY_SUPPRESSED = "minority_suppressed"
    MINORITY_PREVAILED = "minority_prevailed"
    CONFORMITY = "conformity"
    CORRECTION = "correction"
    UNPROMPTED = "unprompted"
    LOST_IN_SYNTHESIS = "lost_in_synthesis"
    SAVED_IN_SYNTHESIS = "saved_in_synthesis"
    UNSTATED_AGREEMENT = "unstated_agreement"
    FINDING_DROPPED = "finding_dropped"
    IDLE_ROUND = "idle_round"
    ECHO = "echo"
    REPETITION = "repetition"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a measure counts."""

    group: str
    title: str
    counts: str
    """One sentence."""
    of: str
    """What the rate is a share of, in the plural."""
    needs: str
    """What a record must hold for it; the reason that is given where it does not."""


_FIRST, _CHANGES, _DECISION, _EFFORT = (
    "Who is right first",
    "Changes of experts",
    "Decision",
    "Effort",
)
_OPINIONS = "two first opinions"
_AGAIN = "opinions stated again after reading"
_MESSAGES = "debate messages"

MEANINGS: dict[Measure, Meaning] = {
    Measure.SHARED_ERROR: Meaning(
        _FIRST,
        "Shared error",
        "All first opinions hold the same wrong answer.",
        "questions",
        _OPINIONS,
    ),
    Measure.MINORITY_SUPPRESSED: Meaning(
        _FIRST,
        "Right minority suppressed",
        "A majority was wrong at first, an expert was right, and the decision is wrong.",
        "questions with a right minority",
        _OPINIONS,
    ),
    Measure.MINORITY_PREVAILED: Meaning(
        _FIRST,
        "Right minority prevailed",
        "A majority was wrong at first, an expert was right, and the decision is right.",
        "questions with a right minority",
        _OPINIONS,
    ),
    Measure.CONFORMITY: Meaning(
        _CHANGES,
        "Conformity",
        "An expert left the right answer for a wrong one that a message or the majority held.",
        "right opinions that were reconsidered after reading",
        _AGAIN,
    ),
    Measure.CORRECTION: Meaning(
        _CHANGES,
        "Correction",
        "An expert left a wrong answer for the right one that a message or the majority held.",
        "wrong opinions that were reconsidered after reading",
        _AGAIN,
    ),
    Measure.UNPROMPTED: Meaning(
        _CHANGES,
        "Unprompted change",
        "An expert took an answer for which nothing that it had read argued.",
        "changes of an answer",
        "opinions stated again",
    ),
    Measure.LOST_IN_SYNTHESIS: Meaning(
        _DECISION,
        "Lost in synthesis",
        "The decision leaves a right majority of the last opinions.",
        "questions with a right majority at the end",
        _OPINIONS,
    ),
    Measure.SAVED_IN_SYNTHESIS: Meaning(
        _DECISION,
        "Saved in synthesis",
        "The decision leaves a wrong majority of the last opinions for the right answer.",
        "questions with a wrong majority at the end",
        _OPINIONS,
    ),
    Measure.UNSTATED_AGREEMENT: Meaning(
        _DECISION,
        "Agreement nobody stated",
        "The decision, or a summary by EXAID, claims that all agree, and they do not.",
        "questions",
        "an argument of the decision",
    ),
    Measure.FINDING_DROPPED: Meaning(
        _DECISION,
        "Finding dropped",
        "The decision is wrong, and lacks a finding that only experts with the right answer named.",
        "wrong decisions that leave a right last opinion with such a finding",
        "an argument of the decision",
    ),
    Measure.IDLE_ROUND: Meaning(
        _EFFORT,
        "Idle round",
        "No expert changed the answer, and no message named a new finding.",
        "rounds of debate",
        _MESSAGES,
    ),
    Measure.ECHO: Meaning(
        _EFFORT,
        "Echo",
        "At least half of a message is in the words of another expert.",
        "messages",
        _MESSAGES,
    ),
    Measure.REPETITION: Meaning(
        _EFFORT,
        "Repetition",
        "At least half of a message is in words that its sender has used before.",
        "messages",
        _MESSAGES,
    ),
}
"""Measure -> what it counts, in the order of a report."""


class Influence(StrEnum):
    """What an expert who changed may have followed, beside the argument."""

    LONGEST = "longest"
    FIRST = "first"
    MOST_CONFIDENT = "most_confident"
    LEAD = "lead"


INFLUENCES: dict[Influence, str] = {
    Influence.LONGEST: "Longest of the texts read",
    Influence.FIRST: "First of the texts read",
    Influence.MOST_CONFIDENT: "Most confident sender",
    Influence.LEAD: "Expert it reports to",
}
"""Influence -> its title."""


class Turned(StrEnum):
    """What turned a majority; several may apply."""

    NEW_FINDING = "new_finding"
    MOST_CONFIDENT = "most_confident"
    LONGEST = "longest"
    LEAD = "lead"
    MAJORITY = "majority"
    DECIDER = "decider"


TURNED: dict[Turned, str] = {
    Turned.NEW_FINDING: "A finding not named before",
    Turned.MOST_CONFIDENT: "Most confident sender",
    Turned.LONGEST: "Longest text read",
    Turned.LEAD: "Expert it reports to",
    Turned.MAJORITY: "Majority of the others",
    Turned.DECIDER: "Decision-maker alone",
}
"""What turned a majority -> its title."""
