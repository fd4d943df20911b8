"""What an audit observes in one question, with the places where it was said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import fmean

from exaid_core.checks.normal_form import runs_of
from mdagents.agents.replies import CHARS_PER_WORD
from mdagents.scoring.audit.changes import Novelty, Read, Restated, restated
from mdagents.scoring.audit.claims import claims_agreement, is_unstated
from mdagents.scoring.audit.course import Course, Held, Message, majority_of
from mdagents.scoring.audit.findings import Findings, is_echo, wording
from mdagents.scoring.audit.measures import Influence, Measure, Turned
from mdagents.teams.clipping import clip
from mdagents.teams.digest import SENTENCE_WORDS, decisive_sentence


class Side(StrEnum):
    """Whether a majority or a decision is right."""

    RIGHT = "right"
    WRONG = "wrong"
    SPLIT = "split"
    """No letter is held by more than half."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was said."""

    kind: str
    """`opinion`, `team`, `message`, `summary` (of EXAID) or `decision`."""
    number: int
    """Position in the record's `opinions`, `teams`, `interactions` or `exaid.summaries`; 0 for the
    decision."""
    agent: str
    """Agent who said it; empty for the decision."""
    role: str
    """Its role."""
    said: str
    """The decisive sentence."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One occurrence of a measure."""

    measure: Measure
    agent: str
    """Expert whom it concerns; empty: the team."""
    round: int
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Sureness:
    """Stated confidence of an expert, first and last, and whether its last answer is right."""

    first: float
    last: float
    was_right: bool
    is_right: bool


@dataclass(slots=True)
class Observed:
    """What was observed in one question."""

    question_id: str
    epoch: int
    level: str
    first: dict[str, int]
    """Letter -> number of first opinions."""
    last: dict[str, int]
    decision: str
    is_right: bool
    right: tuple[str, ...]
    """Letters that count as right."""
    vote: str
    """Letter that a vote on the first opinions would choose: of tied ones the most confident, then
    the one named first."""
    vote_confidence: float | None
    """Mean stated confidence of those who hold it at first; None where it is not known."""
    agreed: bool
    """Whether all first opinions agree."""
    sides: tuple[Side, Side, Side]
    """Sides of the first majority, the last majority and the decision."""
    keeps_first: bool
    """Whether the decision is the answer of the first majority."""
    possible: bool
    """Whether a first opinion was right."""
    turned: tuple[Turned, ...]
    """What turned the majority; empty unless the decision changed whether it is right."""
    by: tuple[Place, ...]
    """The texts that turned it."""
    roles: tuple[str, ...]
    """Roles of those who turned it."""
    trials: Counter[Measure] = field(default_factory=Counter)
    """Measure -> what it is a share of."""
    instances: list[Instance] = field(default_factory=list)
    influences: dict[Influence, tuple[int, int, float]] = field(default_factory=dict)
    """Influence -> changes for which it had a choice, changes that followed it, and how many
    would have by chance."""
    sureness: list[Sureness] = field(default_factory=list)
    restated: int = 0
    """Opinions that were stated again."""
    changes: int = 0
    """Number of `restated` opinions with another answer."""

    @property
    def is_rescued(self) -> bool:
        """Whether the first majority was wrong and the decision is right."""
        return self.sides[0] is Side.WRONG and self.is_right

    @property
    def is_overturned(self) -> bool:
        """Whether the first majority was right and the decision is wrong."""
        return self.sides[0] is Side.RIGHT and not self.is_right

    def count(self, measure: Measure) -> int:
        """Return how often a measure occurred."""
        return sum(instance.measure is measure for instance in self.instances)


def observe(course: Course) -> Observed:
    """Audit one question.

    Args:
        course: What its team did.
    """
    return _Audit(course).observed


class _Audit:
    """The audit of one question.

    Args:
        course: What its team did.
    """

    def __init__(self, course: Course) -> None:
        self._course = course
        self._findings = Findings(course.question, course.options.values())
        novelty = Novelty(course, self._findings)
        self._restated = restated(course, novelty)
        first = [each.letter for each in course.first.values()]
        last = [each.letter for each in course.last.values()]
        self._majorities = majority_of(first), majority_of(last)
        at_first, at_last = map(self._side, self._majorities)
        decided = Side.RIGHT if course.is_right else Side.WRONG
        has_turned = at_first is not Side.SPLIT and at_first is not decided
        turned, by = self._turned() if has_turned else ((), ())
        self.observed = Observed(
            question_id=course.question_id,
            epoch=course.epoch,
            level=course.level,
            first=dict(Counter(first).most_common()),
            last=dict(Counter(last).most_common()),
            decision=course.decision,
            is_right=course.is_right,
            right=tuple(sorted(course.right)),
            vote=(vote := _vote(list(course.first.values())))[0],
            vote_confidence=vote[1],
            agreed=len(set(first)) == 1,
            sides=(at_first, at_last, decided),
            keeps_first=self._majorities[0] == course.decision,
            possible=any(letter in course.right for letter in first),
            turned=turned,
            by=tuple(self._place_of(read, course.decision) for read in by),
            roles=tuple(sorted({self._role(read.sender_id) for read in by})),
            restated=len(self._restated),
            changes=sum(again.is_change for again in self._restated),
        )
        self._first_opinions(first)
        self._changes()
        self._decision(at_last)
        self._effort(novelty)
        self._influences()
        self._sureness()

    def _side(self, letter: str | None) -> Side:
        if letter is None:
            return Side.SPLIT
        return Side.RIGHT if letter in self._course.right else Side.WRONG

    def _role(self, agent: str) -> str:
        held = self._course.last.get(agent)
        return held.role if held else agent

    def _add(self, measure: Measure, agent: str = "", round_: int = 0, *places: Place) -> None:
        self.observed.instances.append(Instance(measure, agent, round_, places))

    def _first_opinions(self, first: Sequence[str]) -> None:
        course, trials = self._course, self.observed.trials
        side, _, decided = self.observed.sides
        held = list(course.first.values())
        trials[Measure.SHARED_ERROR] = 1
        if side is Side.WRONG and len(set(first)) == 1:
            self._add(Measure.SHARED_ERROR, "", 0, *map(self._place, held))
        if side is Side.WRONG and self.observed.possible:
            trials[Measure.MINORITY_SUPPRESSED] = trials[Measure.MINORITY_PREVAILED] = 1
            measure = (
                Measure.MINORITY_PREVAILED if decided is Side.RIGHT else Measure.MINORITY_SUPPRESSED
            )
            right = [each for each in held if each.letter in course.right]
            self._add(measure, "", 0, *map(self._place, right), *self._decision_place())

    def _changes(self) -> None:
        right, trials = self._course.right, self.observed.trials
        for again in self._restated:
            before, after = again.before.letter in right, again.after.letter in right
            prompted = bool(again.causes) or (bool(again.read) and again.followed_majority)
            agent, round_ = again.after.agent, again.after.round
            if again.read:
                trials[Measure.CONFORMITY if before else Measure.CORRECTION] += 1
            if not again.is_change:
                continue
            trials[Measure.UNPROMPTED] += 1
            places = [self._place_of(cause, again.after.letter) for cause in again.causes]
            places.append(self._place(again.after))
            if not prompted:
                self._add(Measure.UNPROMPTED, agent, round_, *places)
            elif before != after:
                measure = Measure.CONFORMITY if before else Measure.CORRECTION
                self._add(measure, agent, round_, *places)

    def _decision(self, at_last: Side) -> None:
        course, trials = self._course, self.observed.trials
        last = [each.letter for each in course.last.values()]
        if at_last is Side.RIGHT:
            trials[Measure.LOST_IN_SYNTHESIS] = 1
            if not course.is_right:
                self._add(Measure.LOST_IN_SYNTHESIS, "", 0, *self._decision_place())
        if at_last is Side.WRONG:
            trials[Measure.SAVED_IN_SYNTHESIS] = 1
            if course.is_right:
                self._add(Measure.SAVED_IN_SYNTHESIS, "", 0, *self._decision_place())
        if course.analysis or course.summaries:
            trials[Measure.UNSTATED_AGREEMENT] = 1
            places = list(self._false_claims(last))
            if places:
                self._add(Measure.UNSTATED_AGREEMENT, "", 0, *places)
        if not course.analysis:
            return
        if not course.is_right:
            self._dropped()

    def _false_claims(self, last: Sequence[str]) -> Iterator[Place]:
        """Yield where the decision or a summary claims an agreement that nobody stated."""
        course = self._course
        claim = claims_agreement(course.analysis, course.options)
        if is_unstated(claim, course.decision, last):
            yield Place("decision", 0, "", "", claim)
        first = {each.letter for each in course.first.values()}
        if len(first) > 1 and len(set(last)) > 1:  # at no time did all agree
            for number, text in enumerate(course.summaries):
                if claim := claims_agreement(text, course.options):
                    yield Place("summary", number, "", "EXAID", claim)

    def _dropped(self) -> None:
        """Note whether a wrong decision lacks what only the experts with the right answer named."""
        course, named = self._course, self._findings.named
        of_right, of_wrong = set[str](), set[str]()
        bearers: list[tuple[set[str], Held]] = []
        for held in course.last.values():
            words = named(wording(held.text))
            if held.letter in course.right:
                of_right |= words
                bearers.append((words, held))
            else:
                of_wrong |= words
        for message in course.messages:
            sender = course.last.get(message.sender)
            if sender is not None and sender.letter not in course.right:
                of_wrong |= named(wording(message.text))
        alone = of_right - of_wrong
        if not alone:
            return
        self.observed.trials[Measure.FINDING_DROPPED] = 1
        if not alone & named(wording(course.analysis)):
            places = [self._place(held) for words, held in bearers if words & alone]
            self._add(Measure.FINDING_DROPPED, "", 0, *places, *self._decision_place())

    def _effort(self, novelty: Novelty) -> None:
        course, trials = self._course, self.observed.trials
        changed = {again.after.round for again in self._restated if again.is_change}
        for round_ in sorted({message.round for message in course.messages}):
            trials[Measure.IDLE_ROUND] += 1
            of_round = [message for message in course.messages if message.round == round_]
            is_new = any(novelty.of_message[message.place] for message in of_round)
            if round_ not in changed and not is_new:
                places = map(self._place_of_message, of_round)
                self._add(Measure.IDLE_ROUND, "", round_, *places)
        said_by: dict[str, set[tuple[str, ...]]] = {}
        said: set[tuple[str, ...]] = set()
        for held in course.first.values():
            runs = set(runs_of(wording(held.text).words))
            said_by.setdefault(held.agent, set()).update(runs)
            said |= runs
        for message in course.messages:
            text = wording(message.text)
            trials[Measure.ECHO] += 1
            trials[Measure.REPETITION] += 1
            own = said_by.setdefault(message.sender, set())
            place = self._place_of_message(message)
            if is_echo(text, own):
                self._add(Measure.REPETITION, message.sender, message.round, place)
            elif is_echo(text, said, own):
                self._add(Measure.ECHO, message.sender, message.round, place)
            runs = set(runs_of(text.words))
            own |= runs
            said |= runs

    def _influences(self) -> None:
        totals: dict[Influence, tuple[int, int, float]] = {}
        for again in self._restated:
            if not again.causes:
                continue
            if len(again.causes) == len(again.read):
                continue  # all that it read argued for the new answer
            for influence, favored, choices in self._favored(again):
                n, followed, chance = totals.get(influence, (0, 0, 0.0))
                causes = {cause.place for cause in again.causes}
                totals[influence] = (
                    n + 1,
                    followed + bool(causes & favored),
                    chance + _chance(len(causes), len(favored), choices),
                )
        self.observed.influences = totals

    def _favored(self, again: Restated) -> Iterator[tuple[Influence, set[int], int]]:
        """Yield each influence that had a choice, the places it favors, and the number of texts."""
        choices = len(again.read)
        for influence, read in (
            (Influence.LONGEST, again.longest()),
            (Influence.FIRST, again.first()),
            (Influence.MOST_CONFIDENT, again.most_confident()),
        ):
            if read is not None:
                yield influence, {read.place}, choices
        lead = self._course.above.get(again.after.agent)
        of_lead = {read.place for read in again.read if read.sender_id == lead}
        if of_lead and len(of_lead) < choices:
            yield Influence.LEAD, of_lead, choices

    def _turned(self) -> tuple[tuple[Turned, ...], tuple[Read, ...]]:
        """Return what turned the majority to the decision, and the texts that did."""
        course, found, by = self._course, set[Turned](), list[Read]()
        if self._majorities[1] != course.decision:
            found.add(Turned.DECIDER)
        for again in self._restated:
            if not again.is_change or again.after.letter != course.decision:
                continue
            causes = {(cause.is_message, cause.place) for cause in again.causes}
            by += again.causes
            if again.read and again.followed_majority:
                found.add(Turned.MAJORITY)
            if any(cause.new_findings for cause in again.causes):
                found.add(Turned.NEW_FINDING)
            lead = course.above.get(again.after.agent)
            if any(cause.sender_id == lead for cause in again.causes):
                found.add(Turned.LEAD)
            for turned, read in (
                (Turned.LONGEST, again.longest()),
                (Turned.MOST_CONFIDENT, again.most_confident()),
            ):
                if read is not None and (read.is_message, read.place) in causes:
                    found.add(turned)
        distinct = {(read.is_message, read.place): read for read in by}
        return tuple(one for one in Turned if one in found), tuple(distinct.values())

    def _sureness(self) -> None:
        right = self._course.right
        for agent, first in self._course.first.items():
            last = self._course.last[agent]
            if first.confidence is not None and last.confidence is not None:
                self.observed.sureness.append(
                    Sureness(
                        first.confidence,
                        last.confidence,
                        first.letter in right,
                        last.letter in right,
                    )
                )

    def _place(self, held: Held) -> Place:
        kind = "team" if self._course.is_teams else "opinion"
        said = self._sentence(held.text, held.letter)
        return Place(kind, held.place, held.agent, held.role, said)

    def _place_of(self, read: Read, letter: str) -> Place:
        kind = "message" if read.is_message else "opinion"
        role, said = self._role(read.sender_id), self._sentence(read.text, letter)
        return Place(kind, read.place, read.sender_id, role, said)

    def _place_of_message(self, message: Message) -> Place:
        said = clip(" ".join(message.text.split()), SENTENCE_WORDS * CHARS_PER_WORD)
        role = self._role(message.sender)
        return Place("message", message.place, message.sender, role, said)

    def _decision_place(self) -> list[Place]:
        course = self._course
        said = self._sentence(course.analysis, course.decision)
        return [Place("decision", 0, "", "", said)] if course.analysis else []

    def _sentence(self, text: str, letter: str) -> str:
        return decisive_sentence(text, self._course.options, letter)


def _vote(first: Sequence[Held]) -> tuple[str, float | None]:
    """Return the letter with the most votes, and the mean confidence of those who hold it."""
    sure = {each.letter: list[float]() for each in first}
    votes = Counter(each.letter for each in first)
    for each in first:
        if each.confidence is not None:
            sure[each.letter].append(each.confidence)
    mean = {letter: fmean(of) if of else 0.0 for letter, of in sure.items()}
    letter = max(sure, key=lambda letter: (votes[letter], round(mean[letter], 9)))
    return letter, mean[letter] if sure[letter] else None


def _chance(causes: int, favored: int, choices: int) -> float:
    """Return the chance that `causes` of `choices` texts, drawn at random, hold a favored one."""
    missed = 1.0
    for drawn in range(causes):
        missed *= max(choices - favored - drawn, 0) / (choices - drawn)
    return 1 - missed
