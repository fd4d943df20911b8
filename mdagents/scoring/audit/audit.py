"""The audit of a run: what its teams changed, what turned it, and what changed nothing.

Importing this module loads numpy, which is slow.

Sources: the measures follow the failure modes of MedAgentAudit (Gu et al. 2025, arXiv 2510.10185)
and the decomposition of Bertalanič and Fortuna (2026, arXiv 2605.00914); that debates turn right
answers wrong: Wynn et al. (2025, arXiv 2509.05396).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from mdagents.scoring.audit.controls import (
    Control,
    compare_control,
    other_differences,
    peers_of,
)
from mdagents.scoring.audit.course import course_of
from mdagents.scoring.audit.debate_policies import PolicyEstimate, estimate_policies
from mdagents.scoring.audit.effort import Effort, efforts_of
from mdagents.scoring.audit.measures import INFLUENCES, MEANINGS, Influence, Measure, Turned
from mdagents.scoring.audit.observed import Observed, Side, Sureness, observe
from mdagents.scoring.audit.teaching import Lesson, lessons
from mdagents.scoring.fields import count_of, sum_if_known, text_of
from mdagents.scoring.pairs import shows_difference
from mdagents.scoring.rows import RunOutput
from mdagents.scoring.scored_row import ScoredRow
from mdagents.scoring.statistics import holm, mcnemar_exact, questions_needed
from mdagents.settings import Peers, Status
from mdagents_llm.bootstrap import FEWEST_GROUPS, RESAMPLES, SEED, clustered_bootstrap
from mdagents_llm.proportions import Interval, accuracy_interval, difference_interval

ALL = "all"


@dataclass(frozen=True, slots=True)
class Rate:
    """How often something occurred."""

    found: int
    of: int
    rate: float | None
    """None for `of` = 0."""
    low: float | None
    """Lower end of the 95% interval, which treats the occurrences in one question as one sample;
    None if they are of fewer than ten questions."""
    high: float | None


@dataclass(frozen=True, slots=True)
class Followed:
    """How often a change followed an influence, beside the chance that it did."""

    changes: int
    """Changes where the expert had also read a text that did not argue for its new answer."""
    followed: int
    by_chance: float
    """Expected number if any text that was read was as likely to be followed."""
    excess: float | None
    """Share that followed minus that by chance; None without changes."""
    low: float | None
    """Lower end of the 95% interval of the excess; None if the changes are of fewer than ten
    questions."""
    high: float | None


@dataclass(frozen=True, slots=True)
class Confidence:
    """Mean stated confidence of experts at first and at last."""

    n: int
    first: float | None
    last: float | None


@dataclass(frozen=True, slots=True)
class Idle:
    """Tokens, calls and cost of teams and routers, without EXAID."""

    tokens: int
    tokens_after: int
    """Tokens after the first opinions."""
    idle_tokens: int
    """Tokens after the first opinions, where the decision is the answer of the first majority."""
    idle_calls: int
    cost_usd: float | None
    idle_cost_usd: float | None

    @property
    def idle_share(self) -> float | None:
        """Share of the tokens that changed nothing."""
        return self.idle_tokens / self.tokens if self.tokens else None


@dataclass(frozen=True, slots=True)
class Changes:
    """What teams changed between the majority of first opinions and the decision."""

    n: int
    """Answers with at least two first opinions: questions times epochs."""
    changed: int
    """Majorities that the decision turned to right or to wrong."""
    to_right: int
    to_wrong: int
    wrong_to_wrong: int
    """Wrong majorities for which the decision is another wrong answer."""
    settled: int
    """Questions without a majority at first."""
    settled_right: int
    """Number of `settled` questions where the decision is right."""


@dataclass(frozen=True, slots=True)
class Caused:
    """Turned majorities in which a role's text was followed."""

    to_right: int
    to_wrong: int


@dataclass(frozen=True, slots=True)
class Level:
    """Figures of the questions of a level."""

    changes: Changes
    idle_share: float | None


@dataclass(frozen=True, slots=True)
class Audit(Changes):
    """The content of `audit_….json`."""

    run: str
    questions: int
    """Distinct questions that were audited."""
    left_out: dict[str, int]
    """Reason -> number of answers that were not audited."""
    net_effect: float
    """(`to_right` - `to_wrong`) / `n`."""
    net_low: float | None
    """Lower end of its 95% interval: Tango's; epochs count by their design effect."""
    net_high: float | None
    mcnemar_p: float
    """Two-sided exact p-value of `questions_better` beside `questions_worse`."""
    questions_better: int
    """Questions with more answers turned to right than to wrong, over their epochs."""
    questions_worse: int
    questions_needed: int | None
    """Questions with which McNemar's test would show an effect of this size with 80% power; None
    for no effect at all."""
    right: int
    """Right decisions among the audited answers."""
    possible: int
    """Answers with a right first opinion: what an oracle would decide."""
    flow: dict[str, int]
    """`first>last>decision` -> answers, each `right`, `wrong` or `split`."""
    turned_by: dict[str, Caused]
    """What turned majorities; several may apply to one."""
    measures: dict[str, Rate | None]
    """None for a measure that the records do not tell; see `not_told`."""
    not_told: dict[str, str]
    """Measure -> what the records lack."""
    influences: dict[str, Followed]
    confidence: dict[str, Confidence]
    """Group of experts, by their last answer or its change -> mean confidence."""
    effort: Idle | None
    """None without a ledger."""
    by_level: dict[str, Level]
    by_role: dict[str, Caused]
    by_model: dict[str, Caused]
    """Model of those whose text was followed; empty where all experts have one model."""
    policies: list[PolicyEstimate]
    """The run, and what less debate would have reached; empty without a ledger."""
    controls: list[Control]
    lessons: list[Lesson]
    """Up to ten questions that teach most."""
    notices: list[str]
    seed: int
    bootstrap_resamples: int
    observed: list[Observed]
    """Each audited answer with its instances."""

    @property
    def is_significant(self) -> bool:
        """Whether the net effect differs from 0 by interval and test."""
        low, high = self.net_low, self.net_high
        if low is None or high is None:
            return False
        net = self.questions_better - self.questions_worse
        return shows_difference((low, high), self.mcnemar_p, net=net, questions=self.questions)

    def as_dict(self) -> dict[str, object]:
        """Return the figures as JSON types."""
        content = asdict(self)
        for seen in content["observed"]:
            seen["trials"] = {str(name): count for name, count in seen["trials"].items()}
        return content


def audit(run: RunOutput) -> Audit:
    """Audit a run.

    Args:
        run: The run.

    Raises:
        ConfigError: A file of the run can no longer be read.
    """
    left_out: Counter[str] = Counter()
    seen: list[Observed] = []
    keys: list[tuple[str, int]] = []
    rows: list[ScoredRow] = []
    for row, record in run.records():
        course = course_of(row, record)
        if course is None:
            left_out[_why_not(row.status, row.right_letters, record)] += 1
            continue
        rows.append(row)
        seen.append(observe(course))
        keys.append((text_of(record, "case_id"), count_of(record.get("restart")) or 0))
    efforts = efforts_of(run.folder, frozenset(keys)) if seen else {}
    paid = [efforts.get(key) for key in keys]
    changes = changes_of(seen)
    gains = [one.is_rescued - one.is_overturned for one in seen]
    net_low, net_high = _interval(seen, gains)
    sums, sizes = _by_question(seen, gains)
    better, worse = sum(g > 0 for g in sums), sum(g < 0 for g in sums)
    net = sum(gains) / len(seen) if seen else 0.0
    squares = [(gain / size) ** 2 for gain, size in zip(sums, sizes, strict=True)]
    told = {measure: _rate(seen, measure) for measure in MEANINGS}
    return Audit(
        run=run.name,
        questions=len(sums),
        left_out=dict(left_out.most_common()),
        **{name: getattr(changes, name) for name in Changes.__slots__},
        net_effect=net,
        net_low=net_low,
        net_high=net_high,
        mcnemar_p=mcnemar_exact(worse=worse, better=better),
        questions_better=better,
        questions_worse=worse,
        questions_needed=questions_needed(net, sum(squares) / len(squares)) if squares else None,
        right=sum(one.is_right for one in seen),
        possible=sum(one.possible for one in seen),
        flow=dict(Counter(">".join(one.sides) for one in seen).most_common()),
        turned_by={
            turned: _caused([one for one in seen if turned in one.turned]) for turned in Turned
        },
        measures={measure: rate if rate.of else None for measure, rate in told.items()},
        not_told={
            measure: f"no record holds {MEANINGS[measure].needs}, or none of these occurred"
            for measure, rate in told.items()
            if not rate.of
        },
        influences={
            influence: followed
            for influence in INFLUENCES
            if (followed := _followed(seen, influence)).changes
        },
        confidence=_confidence([sure for one in seen for sure in one.sureness]),
        effort=_idle(seen, paid),
        by_level=_levels(seen, paid),
        by_role={
            role: _caused([one for one in seen if role in one.roles])
            for role in sorted({role for one in seen for role in one.roles})
        },
        by_model=_by_model(seen, paid),
        policies=estimate_policies(run, rows, seen, paid) if seen else [],
        controls=[],
        lessons=lessons(seen, paid),
        notices=list(run.notices),
        seed=SEED,
        bootstrap_resamples=RESAMPLES,
        observed=seen,
    )


def audit_with_controls(
    run: RunOutput, controls: Sequence[RunOutput], *, common: bool = False
) -> Audit:
    """Audit a run and compare its controls with it.

    Args:
        run: The run.
        controls: Runs of the same questions with `--peers`.
        common: Whether runs with different questions are compared on their common ones.

    Raises:
        ConfigError: The runs hold different questions, or a file can no longer be read.
    """
    alone = audit(run)
    if not controls:
        return alone
    turned = {
        (one.question_id, one.epoch): one.is_rescued
        for one in alone.observed
        if one.is_rescued or one.is_overturned
    }
    order = list(Peers)
    controls = sorted(controls, key=lambda each: order.index(Peers(peers_of(each.manifest))))
    compared = [compare_control(run, each, turned, common=common) for each in controls]
    notices = [*alone.notices, *filter(None, (other_differences(run, each) for each in controls))]
    return replace(alone, controls=_adjusted(compared), notices=notices)


def changes_of(seen: Sequence[Observed]) -> Changes:
    """Count what teams changed."""
    to_right = sum(one.is_rescued for one in seen)
    to_wrong = sum(one.is_overturned for one in seen)
    split = [one for one in seen if one.sides[0] is Side.SPLIT]
    return Changes(
        n=len(seen),
        changed=to_right + to_wrong,
        to_right=to_right,
        to_wrong=to_wrong,
        wrong_to_wrong=sum(
            one.sides[0] is Side.WRONG and not one.is_right and not one.keeps_first for one in seen
        ),
        settled=len(split),
        settled_right=sum(one.is_right for one in split),
    )


def _why_not(status: str, right: Sequence[str], record: Mapping[str, object]) -> str:
    if status != Status.ANSWERED:
        return f"no answer: {status}"
    if not right:
        return "the right option is not known"
    if not (record.get("opinions") or record.get("teams")):
        return "the record holds no opinions"
    return "fewer than two first opinions"


def _by_question(
    seen: Sequence[Observed], values: Iterable[float]
) -> tuple[list[float], list[int]]:
    """Return the sum of the values of each question, and the number of its answers."""
    sums: dict[str, float] = {}
    sizes: Counter[str] = Counter()
    for one, value in zip(seen, values, strict=True):
        sums[one.question_id] = sums.get(one.question_id, 0) + value
        sizes[one.question_id] += 1
    return list(sums.values()), [sizes[id_] for id_ in sums]


def _interval(seen: Sequence[Observed], values: Sequence[float]) -> Interval | tuple[None, None]:
    return difference_interval(*_by_question(seen, values)) if seen else (None, None)


def _rate(seen: Sequence[Observed], measure: Measure) -> Rate:
    of_question: dict[str, list[int]] = {}
    for one in seen:
        if trials := one.trials[measure]:
            sums = of_question.setdefault(one.question_id, [0, 0])
            sums[0] += one.count(measure)
            sums[1] += trials
    found = [sums[0] for sums in of_question.values()]
    of = [sums[1] for sums in of_question.values()]
    low, high = accuracy_interval(found, of) if len(of) >= FEWEST_GROUPS else (None, None)
    total = sum(of)
    return Rate(sum(found), total, sum(found) / total if total else None, low, high)


def _caused(turned: Sequence[Observed]) -> Caused:
    return Caused(sum(one.is_rescued for one in turned), sum(one.is_overturned for one in turned))


def _by_model(seen: Sequence[Observed], paid: Sequence[Effort | None]) -> dict[str, Caused]:
    turned: dict[str, list[Observed]] = {}
    for one, effort in zip(seen, paid, strict=True):
        models = {effort.models.get(place.agent, "") for place in one.by} if effort else set()
        for model in models - {""}:
            turned.setdefault(model, []).append(one)
    return {model: _caused(turned[model]) for model in sorted(turned)} if len(turned) > 1 else {}


def _followed(seen: Sequence[Observed], influence: Influence) -> Followed:
    sums: dict[str, list[float]] = {}
    for one in seen:
        if influence in one.influences:
            n, followed, chance = one.influences[influence]
            of_question = sums.setdefault(one.question_id, [0, 0, 0.0])
            of_question[0] += n
            of_question[1] += followed
            of_question[2] += chance
    totals = list(sums.values())
    n = int(sum(each[0] for each in totals))
    followed = int(sum(each[1] for each in totals))
    chance = sum(each[2] for each in totals)
    low, high = None, None
    if len(totals) >= FEWEST_GROUPS:
        low, high = clustered_bootstrap(
            [each[1] - each[2] for each in totals], [int(each[0]) for each in totals]
        ) or (None, None)
    return Followed(n, followed, chance, (followed - chance) / n if n else None, low, high)


def _confidence(sure: Sequence[Sureness]) -> dict[str, Confidence]:
    groups = {
        ALL: list(sure),
        "right at last": [each for each in sure if each.is_right],
        "wrong at last": [each for each in sure if not each.is_right],
        "left a right answer": [each for each in sure if each.was_right and not each.is_right],
        "came to a right answer": [each for each in sure if each.is_right and not each.was_right],
    }
    return {
        name: Confidence(
            len(group),
            sum(each.first for each in group) / len(group),
            sum(each.last for each in group) / len(group),
        )
        for name, group in groups.items()
        if group
    }


def _idle(seen: Sequence[Observed], paid: Sequence[Effort | None]) -> Idle | None:
    known = [(one, effort) for one, effort in zip(seen, paid, strict=True) if effort is not None]
    if not known or len(known) < len(seen):
        return None
    idle = [effort for one, effort in known if one.keeps_first]
    return Idle(
        tokens=sum(effort.tokens for _, effort in known),
        tokens_after=sum(effort.tokens_after for _, effort in known),
        idle_tokens=sum(effort.tokens_after for effort in idle),
        idle_calls=sum(effort.calls_after for effort in idle),
        cost_usd=sum_if_known(effort.cost for _, effort in known),
        idle_cost_usd=sum_if_known(effort.cost_after for effort in idle),
    )


def _levels(seen: Sequence[Observed], paid: Sequence[Effort | None]) -> dict[str, Level]:
    levels: dict[str, Level] = {}
    for level in dict.fromkeys(one.level for one in seen):
        pairs = [(o, e) for o, e in zip(seen, paid, strict=True) if o.level == level]
        idle = _idle([one for one, _ in pairs], [effort for _, effort in pairs])
        changes = changes_of([one for one, _ in pairs])
        levels[level or ALL] = Level(changes, idle.idle_share if idle else None)
    return levels


def _adjusted(controls: Sequence[Control]) -> list[Control]:
    """Return the controls with p-values adjusted by Holm for their number."""
    adjusted = holm([control.mcnemar_p for control in controls])
    return [
        replace(control, mcnemar_p_holm=p) for control, p in zip(controls, adjusted, strict=True)
    ]
