"""Controls of an audit: the same questions with one thing of the debate taken away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mdagents.scoring.fields import object_of, text_of
from mdagents.scoring.items import shared_rows
from mdagents.scoring.pairs import make_pair, shows_difference
from mdagents.scoring.rows import RunOutput
from mdagents.settings import Peers
from mdagents_llm.errors import ConfigError

TAKES_AWAY: dict[str, str] = {
    Peers.NONE: "reconsider, no messages",
    Peers.NOISE: "messages of another question",
    Peers.SHUFFLED: "right messages, wrong senders",
    Peers.DEVIL: "one expert defends a wrong option",
    Peers.BLIND: "no names, no confidence",
    Peers.FRESH: "decision-maker sees first opinions only",
}
"""Control -> what it does."""


@dataclass(frozen=True, slots=True)
class Control:
    """A control beside the run that is audited; differences are control minus run."""

    peers: str
    run: str
    accuracy: float
    difference: float
    low: float
    """Lower end of the 95% interval of the difference, as in a comparison."""
    high: float
    mcnemar_p: float
    mcnemar_p_holm: float
    """Adjusted for the number of controls."""
    questions: int
    """Distinct questions that the run and the control share."""
    questions_better: int
    """Questions that the control got right more often than the run."""
    questions_worse: int
    tokens_per_question: float | None
    also_right: int
    """Answers that the audited run turned to right and the control has right as well."""
    of_to_right: int
    also_wrong: int
    """Answers that the audited run turned to wrong and the control has wrong as well."""
    of_to_wrong: int

    @property
    def is_significant(self) -> bool:
        """Whether the difference is shown by interval and adjusted test."""
        net = self.questions_better - self.questions_worse
        return shows_difference(
            (self.low, self.high), self.mcnemar_p_holm, net=net, questions=self.questions
        )


def peers_of(manifest: Mapping[str, Any]) -> str:
    """Return the control that a run is; `all` for a run that is not a control."""
    return text_of(object_of(manifest, "options"), "peers") or Peers.ALL


def split_controls(runs: Sequence[RunOutput]) -> tuple[list[RunOutput], list[RunOutput]]:
    """Return the runs to audit, and the controls.

    Raises:
        ConfigError: All runs are controls, or there are controls of several runs to audit.
    """
    full = [run for run in runs if peers_of(run.manifest) == Peers.ALL]
    controls = [run for run in runs if peers_of(run.manifest) != Peers.ALL]
    if controls and len(full) != 1:
        named = ", ".join(run.name for run in full)
        raise ConfigError(
            "--audit compares controls (--peers) with one run without --peers, and "
            + (f"{len(full)} are given: {named}" if full else "none is given")
        )
    return full, controls


def other_differences(run: RunOutput, control: RunOutput) -> str:
    """Return a notice on settings besides `peers` in which a control differs; empty without any."""
    of_run, of_control = (object_of(each.manifest, "options") for each in (run, control))
    names = sorted(
        name
        for name in {*of_run, *of_control} - {"peers"}
        if of_run.get(name) != of_control.get(name)
    )
    if not names:
        return ""
    also = ", ".join(names)
    return f"{control.name} also differs in {also}, so that it is no control of peers alone"


def compare_control(
    run: RunOutput,
    control: RunOutput,
    turned: Mapping[tuple[str, int], bool],
    *,
    common: bool = False,
) -> Control:
    """Compare a control with the run that is audited.

    Args:
        run: The run that is audited.
        control: The control, with the same questions.
        turned: (question, epoch) of each turned majority -> whether to right.
        common: Whether runs with different questions are compared on their common ones.

    Raises:
        ConfigError: The runs hold different questions.
    """
    first, second = shared_rows([run, control], common=common)
    pair = make_pair((1, 2), first, second)
    beside = {a.item: b.correct for a, b in zip(first, second, strict=True)}
    right = [beside[item] for item, to_right in turned.items() if to_right and item in beside]
    wrong = [beside[item] for item, to_right in turned.items() if not to_right and item in beside]
    tokens = [row.total_tokens for row in second]
    known = [count for count in tokens if count is not None]
    return Control(
        peers=peers_of(control.manifest),
        run=control.name,
        accuracy=sum(row.correct for row in second) / len(second),
        difference=pair.difference,
        low=pair.difference_low,
        high=pair.difference_high,
        mcnemar_p=pair.mcnemar_p,
        mcnemar_p_holm=pair.mcnemar_p,
        questions=len({row.question_id for row in second}),
        questions_better=len(pair.wrong_to_right),
        questions_worse=len(pair.right_to_wrong),
        tokens_per_question=sum(known) / len(known) if len(known) == len(tokens) else None,
        also_right=sum(right),
        of_to_right=len(right),
        also_wrong=len(wrong) - sum(wrong),
        of_to_wrong=len(wrong),
    )
