"""An audit as a sentence, tables and lines of text."""

from __future__ import annotations

from collections.abc import Sequence

from mdagents.scoring.audit.audit import Audit, Followed, Rate
from mdagents.scoring.audit.controls import TAKES_AWAY, Control
from mdagents.scoring.audit.measures import INFLUENCES, MEANINGS, TURNED, Influence, Turned
from mdagents.scoring.formatting import (
    UNKNOWN,
    Headline,
    Part,
    Table,
    interval,
    number,
    p_equation,
    p_value,
    percent,
    points,
    share,
    usd,
)
from mdagents.scoring.statistics import SMALLEST_FOR_RATES
from mdagents.settings import Peers
from mdagents_llm.text import counted

HOW_COUNTED = (
    "Rates count occurrences; intervals are 95% and treat all answers to a question as one sample. "
    "Findings are compared by the words of the question, so that paraphrases are missed."
)


def verdict_of(audit: Audit) -> str:
    """Return the result of an audit in a sentence or two."""
    if not audit.n:
        return "No question has two first opinions and an answer, so that nothing can be audited."
    if not audit.changed:
        return f"The teams changed no majority of {counted(audit.n, 'answer')}."
    turned = f"{audit.to_right:,} from wrong to right, {audit.to_wrong:,} from right to wrong"
    noun = "majority" if audit.changed == 1 else "majorities"
    changed = f"The teams changed {audit.changed:,} {noun}: {turned}"
    if audit.questions < SMALLEST_FOR_RATES:
        return f"{changed}. Too few questions for a rate."
    effect = f"{points(audit.net_effect, '+.1f')} points, {net_interval(audit)}"
    return f"{changed} ({effect}). {_effect(audit)}"


def net_interval(audit: Audit) -> str:
    """Return the 95% interval of the net effect in points."""
    return interval(audit.net_low, audit.net_high, "+.1f")


def _effect(audit: Audit) -> str:
    if audit.is_significant:
        return f"Significant {'benefit' if audit.net_effect > 0 else 'harm'}."
    return "No significant benefit." if audit.net_effect >= 0 else "No harm is shown."


def limits_of(audit: Audit) -> list[str]:
    """Return what the sentence leaves open: causes, controls, ties and the questions needed."""
    lines = []
    longest = audit.turned_by[Turned.LONGEST].to_wrong
    if audit.to_wrong and longest:
        lines.append(f"{_of_those(longest, audit.to_wrong, 'wrong')} followed the longest text.")
    lines += [
        _beside(control)
        for control in audit.controls
        if control.peers == Peers.NONE and control.of_to_right
    ]
    if audit.settled:
        ties = "tie" if audit.settled == 1 else "ties"
        lines.append(
            f"The teams also settled {audit.settled:,} {ties}, {audit.settled_right:,} correctly."
        )
    if audit.changed and not audit.is_significant and audit.questions_needed:
        lines.append(
            f"A difference of {points(abs(audit.net_effect))} points needs about "
            f"{audit.questions_needed:,} questions (80% power)."
        )
    return [*lines, *filter(None, [significance_of(audit.controls)])]


def _of_those(some: int, all_: int, side: str) -> str:
    """Return which of the turned majorities are meant: `Of the 8 that turned wrong, 5`."""
    is_one = some == all_ == 1
    return (
        f"The one that turned {side}" if is_one else f"Of the {all_:,} that turned {side}, {some:,}"
    )


def _beside(control: Control) -> str:
    return (
        f"{_of_those(control.also_right, control.of_to_right, 'right')} would have been right "
        "without peers as well."
    )


def audit_parts(audit: Audit) -> list[Part]:
    """Return an audit for a terminal: the sentence first, then tables, then caveats."""
    parts: list[Part] = [Headline(verdict_of(audit)), *limits_of(audit)]
    if audit.n:
        parts += audit_tables(audit)
        parts += [HOW_COUNTED]
    notices = [*left_out_lines(audit), *audit.notices]
    return [*parts, *(f"NOTE: {notice}" for notice in notices)]


def left_out_lines(audit: Audit) -> list[str]:
    """Return how many answers were not audited, and why."""
    return [
        f"not audited: {counted(count, 'answer')} ({reason})"
        for reason, count in audit.left_out.items()
    ]


def audit_tables(audit: Audit) -> list[Table]:
    """Return the tables of an audit."""
    return [
        _of_measures(audit),
        *_of_turns(audit),
        *_of_influences(audit),
        *_of_controls(audit),
        *_of_policies(audit),
        *_of_levels(audit),
        *_of_roles(audit),
        *_of_effort(audit),
        *_of_confidence(audit),
    ]


def _of_measures(audit: Audit) -> Table:
    rows = [
        [meaning.title, f"{rate.found:,} of {rate.of:,}", *_rate_cells(rate)]
        for measure, meaning in MEANINGS.items()
        if (rate := audit.measures[measure]) is not None
    ]
    gap = audit.possible - audit.right
    rows.append(
        [
            "Oracle gap",
            f"{audit.possible:,} possible, {audit.right:,} right",
            share(abs(gap), audit.n) if gap >= 0 else f"−{share(-gap, audit.n)}",
            UNKNOWN,
        ]
    )
    return Table(["", "found", "rate", "95% interval"], rows, title="What happened")


def _rate_cells(rate: Rate) -> list[str]:
    if rate.of < SMALLEST_FOR_RATES:
        return [UNKNOWN, UNKNOWN]
    return [percent(rate.rate), interval(rate.low, rate.high)]


def _of_turns(audit: Audit) -> list[Table]:
    rows = [
        [TURNED[turned], str(caused.to_wrong), str(caused.to_right)]
        for turned, caused in ((t, audit.turned_by[t]) for t in Turned)
        if caused.to_right or caused.to_wrong
    ]
    title = "What turned the majorities (several may apply)"
    return [Table(["", "to wrong", "to right"], rows, title=title)] if rows else []


def _of_influences(audit: Audit) -> list[Table]:
    rows = []
    for influence in Influence:
        if influence in audit.influences:
            of = audit.influences[influence]
            rows.append(
                [
                    INFLUENCES[influence],
                    f"{of.followed} of {of.changes}",
                    number(of.by_chance, ".1f"),
                    *_excess_cells(of),
                ]
            )
    headings = ["", "followed", "by chance", "points", "95% interval"]
    title = "What experts with a choice followed"
    return [Table(headings, rows, title=title)] if rows else []


def _excess_cells(of: Followed) -> list[str]:
    if of.changes < SMALLEST_FOR_RATES:
        return [UNKNOWN, UNKNOWN]
    return [points(of.excess, "+.1f"), interval(of.low, of.high, "+.1f")]


def _of_controls(audit: Audit) -> list[Table]:
    rows = [
        [
            f"{control.peers}: {TAKES_AWAY.get(control.peers, '')}".rstrip(": "),
            percent(control.accuracy),
            points(control.difference, "+.1f"),
            interval(control.low, control.high, "+.1f"),
            p_value(control.mcnemar_p_holm),
            number(control.tokens_per_question, ",.0f"),
        ]
        for control in audit.controls
    ]
    headings = ["", "right", "points", "95% interval", "p (Holm)", "tokens/question"]
    return [Table(headings, rows, title="Controls against this run")] if rows else []


def _of_policies(audit: Audit) -> list[Table]:
    rows = []
    for policy in audit.policies:
        name = policy.name
        if policy.threshold is not None:
            name += f", from {policy.threshold:.2f} (10-fold)"
        rows.append(
            [
                name,
                percent(policy.accuracy),
                interval(policy.accuracy_low, policy.accuracy_high),
                number(policy.tokens_per_question, ",.0f"),
                percent(policy.token_share),
            ]
        )
    headings = ["", "right", "95% interval", "tokens/answer", "of the run"]
    return [Table(headings, rows, title="Less debate, estimated from the records")] if rows else []


def _of_levels(audit: Audit) -> list[Table]:
    if len(audit.by_level) < 2:
        return []
    rows = [
        [
            name,
            str(level.changes.n),
            str(level.changes.changed),
            str(level.changes.to_right),
            str(level.changes.to_wrong),
            percent(level.idle_share),
        ]
        for name, level in audit.by_level.items()
    ]
    headings = ["", "answers", "changed", "to right", "to wrong", "idle tokens"]
    return [Table(headings, rows, title="By level")]


def _of_roles(audit: Audit) -> list[Table]:
    rows = [[role, str(of.to_wrong), str(of.to_right)] for role, of in audit.by_role.items()]
    title = "Whose text turned majorities"
    tables = [Table(["", "to wrong", "to right"], rows, title=title)] if rows else []
    models = [[name, str(of.to_wrong), str(of.to_right)] for name, of in audit.by_model.items()]
    if models:
        title = "The models whose text turned majorities"
        tables.append(Table(["", "to wrong", "to right"], models, title=title))
    return tables


def _of_effort(audit: Audit) -> list[Table]:
    if (effort := audit.effort) is None:
        return []
    rows = [
        ["all", f"{effort.tokens:,}", "100.0%", usd(effort.cost_usd)],
        [
            "after the first opinions",
            f"{effort.tokens_after:,}",
            _part(effort.tokens_after, effort.tokens),
            UNKNOWN,
        ],
        [
            "of these, that changed nothing",
            f"{effort.idle_tokens:,}",
            _part(effort.idle_tokens, effort.tokens),
            usd(effort.idle_cost_usd),
        ],
    ]
    title = "Tokens of teams and router"
    return [Table(["", "tokens", "share", "USD"], rows, title=title)]


def _part(part: int, whole: int) -> str:
    return percent(part / whole) if whole else UNKNOWN


def _of_confidence(audit: Audit) -> list[Table]:
    rows = [
        [name, f"{of.n:,}", number(of.first, ".2f"), number(of.last, ".2f")]
        for name, of in audit.confidence.items()
    ]
    title = "Stated confidence of experts"
    return [Table(["", "experts", "first", "last"], rows, title=title)] if rows else []


def significance_of(controls: Sequence[Control]) -> str:
    """Return which controls differ from the run, in a sentence; empty without controls."""
    if not controls:
        return ""
    shown = [control for control in controls if control.is_significant]
    if not shown:
        return "No control differs significantly from the run."
    told = [
        f"{control.peers} {points(control.difference, '+.1f')} points "
        f"({p_equation(control.mcnemar_p_holm)})"
        for control in shown
    ]
    return f"Significant, after Holm: {', '.join(told)}."
