"""The questions of an audit that teach most: one of each kind, then the next of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mdagents.scoring.audit.effort import Effort
from mdagents.scoring.audit.measures import Measure, Turned
from mdagents.scoring.audit.observed import Observed, Place, Side

COUNT = 10
"""Number of questions."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """A question that teaches something."""

    question_id: str
    epoch: int
    kind: str
    """`overturned`, `rescued`, `suppressed`, `lost in synthesis`, `shared error`, …"""
    first: dict[str, int]
    """Letter -> number of first opinions."""
    decision: str
    is_right: bool
    right: tuple[str, ...]
    """Letters that count as right."""
    role: str
    """Who said the sentence; empty: the decision-maker."""
    said: str
    why: str
    """What is noteworthy, in a sentence."""


def lessons(seen: Sequence[Observed], paid: Sequence[Effort | None]) -> list[Lesson]:
    """Return up to `COUNT` questions, the kinds in turn, the most expensive first in each kind."""
    tokens = [effort.tokens_after if effort else 0 for effort in paid]
    order = sorted(range(len(seen)), key=lambda place: (-tokens[place], place))
    found: dict[tuple[str, int], Lesson] = {}
    queues = [
        (name, [seen[place] for place in order if applies(seen[place])], tell)
        for name, applies, tell in _KINDS
    ]
    while len(found) < COUNT and any(queue for _, queue, _ in queues):
        for name, queue, tell in queues:
            while queue and (queue[0].question_id, queue[0].epoch) in found:
                queue.pop(0)
            if queue and len(found) < COUNT:
                one = queue.pop(0)
                place, why = tell(one)
                found[one.question_id, one.epoch] = Lesson(
                    one.question_id,
                    one.epoch,
                    name,
                    one.first,
                    one.decision,
                    one.is_right,
                    one.right,
                    place.role if place else "",
                    place.said if place else "",
                    why,
                )
    return list(found.values())


_Told = tuple[Place | None, str]

_BECAUSE = {
    Turned.NEW_FINDING: "it names a finding nobody had named",
    Turned.MOST_CONFIDENT: "its sender is the most confident",
    Turned.LONGEST: "it is the longest text read",
    Turned.LEAD: "its sender is above the expert who changed",
    Turned.MAJORITY: "the majority of the others held the answer",
    Turned.DECIDER: "the decision-maker left the last majority",
}


def _turned(one: Observed) -> _Told:
    why = "; ".join(_BECAUSE[turned] for turned in one.turned)
    place = one.by[0] if one.by else _place_in(one, Measure.LOST_IN_SYNTHESIS)
    return place, f"{why[:1].upper()}{why[1:]}." if why else "Nothing that was read argued for it."


def _place_in(one: Observed, measure: Measure) -> Place | None:
    for instance in one.instances:
        if instance.measure is measure and instance.places:
            return instance.places[-1]
    return None


def _of(measure: Measure) -> Callable[[Observed], bool]:
    return lambda one: one.count(measure) > 0


def _said(measure: Measure, why: str) -> Callable[[Observed], _Told]:
    return lambda one: (_place_in(one, measure), why)


_KINDS: tuple[tuple[str, Callable[[Observed], bool], Callable[[Observed], _Told]], ...] = (
    ("overturned", lambda one: one.is_overturned, _turned),
    ("rescued", lambda one: one.is_rescued, _turned),
    (
        "suppressed",
        _of(Measure.MINORITY_SUPPRESSED),
        _said(Measure.MINORITY_SUPPRESSED, "The right minority of the first opinions lost."),
    ),
    (
        "lost in synthesis",
        _of(Measure.LOST_IN_SYNTHESIS),
        _said(Measure.LOST_IN_SYNTHESIS, "The decision-maker left a right majority."),
    ),
    (
        "agreement nobody stated",
        _of(Measure.UNSTATED_AGREEMENT),
        _said(Measure.UNSTATED_AGREEMENT, "The last opinions do not agree."),
    ),
    (
        "shared error",
        _of(Measure.SHARED_ERROR),
        _said(Measure.SHARED_ERROR, "All experts were wrong alike at first."),
    ),
    (
        "finding dropped",
        _of(Measure.FINDING_DROPPED),
        _said(Measure.FINDING_DROPPED, "The decision lacks what only the right experts named."),
    ),
    (
        "split, right",
        lambda one: one.sides[0] is Side.SPLIT and one.is_right,
        lambda one: (one.by[0] if one.by else None, "No majority at first; the decision is right."),
    ),
    (
        "idle",
        _of(Measure.IDLE_ROUND),
        _said(Measure.IDLE_ROUND, "A round without a change and without a new finding."),
    ),
)
