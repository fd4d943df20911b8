"""A check of a text against what supports it: its form, our own checks in it, and how they run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from exaid_core.checks.alerts import find_alerts
from exaid_core.checks.dissent import dissent_missing
from exaid_core.checks.grounding import unsupported_terms
from mdagents_llm.text import one_line

MAX_FINDINGS = 20
"""Maximum number of findings kept per check, which may be an endless generator."""

MAX_REMARK_CHARS = 200


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a check found in a text."""

    kind: str
    """What is the matter, in words for a reader."""
    text: str = ""
    """The words that the finding is about; empty if it is about something that is not there."""
    start: int = 0
    """Offset of the first character of these words in the checked text."""
    end: int = 0
    """Offset behind their last character."""


class Check(Protocol):
    """A function that checks a text.

    EXAID calls the checks of `ExaidConfig.checks` with the fields of a summary, one line each and
    in the order of `LIMITS`, and with the text that the summary was made from.
    """

    def __call__(self, text: str, support: str, /) -> Iterable[Finding]:
        """Return what is wrong with `text`, given all that `support` says."""


def alert_check(text: str, support: str, /) -> Iterator[Finding]:
    """Find the critical alerts that a text reports: see `find_alerts`. Support plays no role."""
    return (_finding("alert", alert, text) for alert in find_alerts(text))


def grounding_check(text: str, support: str, /) -> Iterator[Finding]:
    """Find the numbers, doses and drugs without support: see `unsupported_terms`."""
    return (_finding("unsupported", term, text) for term in unsupported_terms([text], support))


def dissent_check(answers: Mapping[str, str]) -> Check:
    """Return a check of whether a text reports that agents disagree: see `dissent_missing`.

    Args:
        answers: Latest answer letter of each agent, by agent id.
    """

    def check(text: str, support: str, /) -> Iterator[Finding]:
        if dissent_missing(text.splitlines(), answers):
            yield Finding("the agents disagree, and this does not say so")

    return check


def _finding(kind: str, words: str, text: str) -> Finding:
    """Return a finding with its place: a dose and its drug may have other words between them."""
    found = re.search(r".*?".join(map(re.escape, words.split())), text, re.DOTALL)
    start, end = found.span() if found else (0, 0)
    return Finding(kind, words, start, end)


def remarks_of(
    checks: Sequence[Check], text: str, support: str, on_error: Callable[[Exception], None]
) -> tuple[str, ...]:
    """Return the findings of checks, as `kind: text` on one line each and without duplicates.

    Args:
        checks: Checks, called in this order.
        text: Text to check.
        support: Text that it was made from.
        on_error: Callback for an exception of a check, whose findings are then dropped; the other
            checks still run.
    """
    remarks: dict[str, None] = {}
    for check in checks:
        try:
            found = list(islice(check(text, support), MAX_FINDINGS))
            remarks |= dict.fromkeys(map(_remark, found))
        except Exception as error:  # noqa: BLE001 - a check is foreign code
            on_error(error)
    return tuple(filter(None, remarks))


def _remark(finding: Finding) -> str:
    line = one_line(f"{finding.kind}: {finding.text}" if finding.text else finding.kind)
    return line if len(line) <= MAX_REMARK_CHARS else line[: MAX_REMARK_CHARS - 1] + "…"
