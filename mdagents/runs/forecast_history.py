"""History from earlier runs for a forecast: reply lengths, latency, routing, whole questions."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from mdagents.agents.prompts import prompt_hashes
from mdagents.records.calls import read_calls
from mdagents.records.jsonl import MALFORMED, whole_lines
from mdagents.runs.config import RunConfig
from mdagents.settings import EXAID_ROLES, RoutedBy, Status, TeamSettings
from mdagents_llm.chat import TokenUsage
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.matching import matching
from mdagents_llm.files.regular_file import read_regular
from mdagents_llm.ledger import CallRow, add_costs
from mdagents_llm.model_configs import load_model_configs
from mdagents_llm.proportions import Z95

_ENOUGH = 10  # minimum number of questions of like runs to base a forecast on them
_ENOUGH_ROWS = 20_000  # rows of ledgers after which no older run is read
_DECIDED = (Status.ANSWERED, Status.PARSE_ERROR, Status.REFUSED, Status.TRUNCATED)
"""Statuses of questions that replies decided; an error or a limit stopped the others early."""
_OF_THE_TEAM = ("method", "difficulty", "router", "agreement", "team", "exaid")
"""Settings that determine the cost of a question, besides models and prompts."""


@dataclass(slots=True)
class Estimate:
    """Calls, tokens and cost, as means over the sketched questions or as sums."""

    calls: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    cost: float | None = 0.0
    """USD, also in the two parts below; None when a price is unknown."""
    team_cost: float | None = 0.0
    exaid_cost: float | None = 0.0
    exaid_tokens: float = 0.0
    """EXAID's part of all tokens."""

    @classmethod
    def of_call(cls, usage: TokenUsage, cost: float | None, *, of_exaid: bool) -> Estimate:
        """Return the estimate of one call."""
        return cls(
            calls=1,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cost=cost,
            team_cost=0.0 if of_exaid else cost,
            exaid_cost=cost if of_exaid else 0.0,
            exaid_tokens=usage.total_tokens if of_exaid else 0,
        )

    def __add__(self, other: Estimate) -> Estimate:
        return self.plus(other)

    def plus(self, other: Estimate, weight: float = 1.0) -> Estimate:
        """Return the sum of this estimate and `weight` times another."""
        sums = Estimate()
        for field in fields(Estimate):
            mine, others = getattr(self, field.name), getattr(other, field.name)
            more = None if others is None else weight * others
            setattr(sums, field.name, add_costs(mine, more))
        return sums

    @classmethod
    def bound(
        cls, estimates: Iterable[Estimate], choose: Callable[[list[float]], float]
    ) -> Estimate:
        """Return the minimum or maximum of several estimates, separately for each figure.

        Args:
            estimates: At least one estimate.
            choose: `min` or `max`.
        """
        found, ends = list(estimates), cls()
        for field in fields(cls):
            values = [getattr(estimate, field.name) for estimate in found]
            setattr(ends, field.name, None if None in values else choose(values))
        return ends


@dataclass(frozen=True, slots=True)
class History:
    """Results of earlier runs of the same models."""

    output_tokens: Mapping[str, float]
    """Role -> mean number of tokens in a reply."""
    latency: float | None
    """Mean latency of a call in seconds; None without an earlier run."""
    routing: Mapping[str, int]
    """Level -> number of questions that a router sent there."""
    runs: int
    questions: Sequence[Estimate] = ()
    """Estimate for each decided question of runs that differ from this one in their questions
    alone, with all paid replies: the mean of its answers, which resemble each other.

    Empty if they are too few. They predict better than reply lengths do."""
    epochs: int = 1
    """Number of times that the coming run answers each question."""

    def of_questions(self, count: int) -> tuple[Estimate, Estimate] | None:
        """Return the estimate for a number of further answers, from the questions of like runs.

        Returns:
            The ends of a 95% prediction interval of the sum; None without such questions.
        """
        if not self.questions:
            return None
        least, most = Estimate(), Estimate()
        for field in fields(Estimate):
            values = [getattr(question, field.name) for question in self.questions]
            ends = (None, None) if None in values else _bounds(values, count, self.epochs)
            setattr(least, field.name, ends[0])
            setattr(most, field.name, ends[1])
        return least, most


def _bounds(values: Sequence[float], count: int, epochs: int) -> tuple[float, float]:
    """Return the 95% prediction interval of the sum of `count` further answers.

    Costs are skewed, so that it is symmetric in their logarithm. Its variance is that of Cox's
    interval of a lognormal mean (Zhou and Gao, 1997, Statistics in Medicine 16:783), with the
    relative variance of the values instead of the variance of their logarithms. Its second term
    grows no faster than that: where most values are 0, it would exceed any real cost.

    Args:
        values: Mean of the answers to each earlier question.
        count: Number of answers.
        epochs: Number of answers to each question.
    """
    each = fmean(values)
    relative = (stdev(values) / each) ** 2 if each else 0.0
    known, coming = len(values), count / epochs
    variance = relative * (1 / known + 1 / coming)
    variance += min(relative**2 / 2, relative) / (known - 1)
    factor = math.exp(t_quantile(known - 1) * math.sqrt(variance))
    return count * each / factor, count * each * factor


def t_quantile(degrees: int) -> float:
    """Return the 97.5% quantile of Student's t distribution, to 0.001 from 8 degrees of freedom.

    Source: Abramowitz and Stegun (1964), Handbook of Mathematical Functions, 26.7.5.
    """
    z = Z95
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return float(sum(term / degrees**power for power, term in enumerate(terms)))


def read_history(config: RunConfig, dataset: str, models: Mapping[str, str]) -> History:
    """Read the history of earlier runs.

    Args:
        config: Configuration of the coming run; its method and its output folder count.
        dataset: Name of the data set of the coming run.
        models: Role -> model of the coming run.
    """
    tokens: dict[str, list[int]] = defaultdict(list)
    latencies: list[float] = []
    routing: Counter[str] = Counter()
    questions: dict[str, list[Estimate]] = defaultdict(list)
    runs = 0
    read = 0
    for file in sorted(matching(config.output_dir, "*/run.json"), key=_changed_at, reverse=True):
        if read >= _ENOUGH_ROWS:
            break
        with suppress(OSError, ConfigError, *MALFORMED):  # a damaged run counts up to the damage
            run = json.loads(read_regular(file))
            method = run.get("options", {}).get("method")
            if run.get("models") != models or method != config.method:
                continue
            cases: dict[tuple[str, int], Estimate] = defaultdict(Estimate)
            for _, row in read_calls(file.with_name("calls.jsonl")):
                read += 1
                if row.replied:
                    cases[row.case_id, row.restart] += _of_call(row, in_batches=config.batch)
                if row.outcome == "ok" and not row.cached:
                    tokens[row.role].append(row.usage.output_tokens)
                    if not row.batched:
                        latencies.append(row.latency)
            decided: dict[tuple[str, int], str] = {}  # case, restart -> question
            for _, _, line in whole_lines(file.with_name("samples.jsonl")):
                record = json.loads(line)
                if record["status"] in _DECIDED:
                    case = (record.get("case_id"), record.get("restart", 0))
                    decided[case] = record["question_id"]
                if record["routed_by"] in (RoutedBy.ROUTER, RoutedBy.DISAGREEMENT):
                    routing[record["difficulty"]] += 1
            runs += 1
            if run.get("dataset") == dataset and _is_alike(run, config):
                for case in decided.keys() & cases.keys():
                    questions[decided[case]].append(cases[case])
    is_enough = len(questions) >= _ENOUGH
    return History(
        output_tokens={role: sum(counts) / len(counts) for role, counts in tokens.items()},
        latency=sum(latencies) / len(latencies) if latencies else None,
        routing=routing,
        runs=runs,
        questions=[_mean(answers) for answers in questions.values()] if is_enough else (),
        epochs=config.epochs,
    )


def _changed_at(file: Path) -> float:
    with suppress(OSError):  # the file was renamed in the meantime
        return file.lstat().st_mtime
    return 0.0


def _mean(estimates: Sequence[Estimate]) -> Estimate:
    return Estimate().plus(sum(estimates, Estimate()), 1 / len(estimates))


def _of_call(row: CallRow, *, in_batches: bool) -> Estimate:
    usage, cost = row.usage, row.cost_usd
    if row.batched is not in_batches:
        price = load_model_configs().price(row.provider, row.model_requested, in_batches=in_batches)
        cost = None if price is None else price.of(usage)
    return Estimate.of_call(usage, cost, of_exaid=row.role in EXAID_ROLES)


def _is_alike(run: Mapping[str, Any], config: RunConfig) -> bool:
    """Return whether a run differs from a configuration in its questions alone."""
    settings = config.model_dump(mode="json", include={*_OF_THE_TEAM})
    settings["team"] = asdict(config.team)
    prompts = prompt_hashes(config.method, with_exaid=config.exaid_policy is not None)
    recorded = dict(run["config"])
    usual = TeamSettings()  # what records of earlier versions lack
    later = {"peers": usual.peers, "debate_policy": usual.debate_policy}
    recorded["team"] = later | recorded["team"]
    return run.get("prompt_hashes") == prompts and all(
        recorded.get(name) == value for name, value in settings.items()
    )
