"""Figures of computed metrics and of a calibration."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evals.calibration import Outcome
from evals.metrics import BUDGETS
from evals.metrics_records import AggregateMetrics, PerCaseMetrics
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.whole_file import writing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")

# Okabe and Ito's palette, which color-blind readers can distinguish.
_COLORS: Mapping[str, str] = {
    "V0": "#0072B2",
    "V1": "#E69F00",
    "V2": "#009E73",
    "V3": "#CC79A7",
    "V4": "#D55E00",
}
_ABLATION = (
    ("m4_trace_coverage", "M4 coverage\n(higher is better)"),
    ("m6a", "M6a unsupported\n(lower is better)"),
    ("m6b", "M6b unsupported\n(lower is better)"),
)


def draw_metrics(
    folder: Path,
    metrics: AggregateMetrics,
    per_case: Sequence[PerCaseMetrics],
    format_: str = "png",
) -> list[Path]:
    """Draw coverage against budget, cost against coverage, latency, and the ablation.

    Raises:
        ConfigError: The metrics hold no variant.
        StorageError: A figure cannot be written.
    """
    if not metrics.variants:
        raise ConfigError("the metrics hold no variant")
    return [
        _save(folder / f"coverage_against_budget.{format_}", _budget(metrics)),
        _save(folder / f"cost_against_coverage.{format_}", _cost(metrics)),
        _save(folder / f"latency.{format_}", _latency(metrics, per_case)),
        _save(folder / f"ablation.{format_}", _ablation(metrics)),
    ]


def draw_calibration(path: Path, outcomes: Sequence[Outcome]) -> Path:
    """Draw the number and size of chunks under each TokenGate setting.

    Raises:
        StorageError: The figure cannot be written.
    """
    figure, (axes,) = _axes(1)
    for outcome in outcomes:
        if outcome.median_ctu is None:
            continue
        axes.scatter(outcome.flushes_per_case, outcome.median_ctu, color=_COLORS["V0"])
        label = f"{outcome.profile.min_words}/{outcome.profile.max_words}"
        axes.annotate(label, (outcome.flushes_per_case, outcome.median_ctu), fontsize=7)
    _label(axes, "chunks per case", "median chunk, CTU", "TokenGate settings: min/max words")
    return _save(path, figure)


def _budget(metrics: AggregateMetrics) -> Figure:
    figure, (axes,) = _axes(1)
    for name, variant in metrics.variants.items():
        coverage = [
            _or_nan(getattr(variant.m7b_coverage_by_budget_mean, f"ctu_{b}")) for b in BUDGETS
        ]
        axes.plot(BUDGETS, coverage, marker="o", color=_COLORS[name], label=name)
    axes.set_xscale("log", base=2)
    axes.set_xticks(BUDGETS, [str(budget) for budget in BUDGETS])
    axes.legend()
    _label(axes, "budget of summary text, CTU", "M7b coverage", "Coverage within a budget")
    return figure


def _cost(metrics: AggregateMetrics) -> Figure:
    figure, (axes,) = _axes(1)
    for name, variant in metrics.variants.items():
        cost, coverage = variant.m9_usage_ctu_mean.total, variant.m4_trace_coverage
        if coverage.mean is None:
            continue
        reach = None
        if coverage.ci_low is not None and coverage.ci_high is not None:
            low, high = coverage.mean - coverage.ci_low, coverage.ci_high - coverage.mean
            reach = [[max(0.0, low)], [max(0.0, high)]]
        axes.errorbar([cost], [coverage.mean], yerr=reach, fmt="o", capsize=3, color=_COLORS[name])
        axes.annotate(name, (cost, coverage.mean), xytext=(6, 6), textcoords="offset points")
    _label(axes, "M9 cost per case, CTU", "M4 coverage, 95% interval", "Cost against coverage")
    return figure


def _latency(metrics: AggregateMetrics, per_case: Sequence[PerCaseMetrics]) -> Figure:
    figure, (by_step, expected) = _axes(2)
    names = list(metrics.variants)
    means = [variant.m8_latency_ms_mean for variant in metrics.variants.values()]
    places = range(len(names))
    summaries = [_or_nan(m.summary) for m in means]
    decisions = [_or_nan(m.buffer_decision) for m in means]
    by_step.bar([p - 0.2 for p in places], summaries, 0.4, label="summary")
    by_step.bar([p + 0.2 for p in places], decisions, 0.4, label="decision")
    by_step.set_xticks(places, names)
    by_step.legend()
    _label(by_step, "", "M8 mean latency, ms", "One call")
    waits = [[r.expected_latency_ms for r in per_case if r.variant_id == name] for name in names]
    expected.boxplot(
        [[ms / 1000 for ms in of_variant if ms is not None] for of_variant in waits],
        tick_labels=names,
    )
    _label(expected, "", "s from a delta to its first summary", "Expected latency by case")
    return figure


def _ablation(metrics: AggregateMetrics) -> Figure:
    figure, all_axes = _axes(len(_ABLATION))
    names = list(metrics.variants)
    for axes, (field, title) in zip(all_axes, _ABLATION, strict=True):
        for place, (name, variant) in enumerate(metrics.variants.items()):
            interval = getattr(variant, field)
            if interval.mean is None:
                continue
            axes.bar(place, interval.mean, color=_COLORS[name])
            if interval.ci_low is not None:
                axes.vlines(place, interval.ci_low, interval.ci_high, color="black")
        axes.set_xticks(range(len(names)), names)
        axes.set_ylim(0, 1)
        _label(axes, "", "", title)
    return figure


def _or_nan(value: float | None) -> float:
    """Return the value, or NaN, which is not drawn, for None."""
    return math.nan if value is None else value


def _axes(count: int) -> tuple[Figure, list[Axes]]:
    # Imported lazily: the import takes a second and is only needed for drawing.
    import matplotlib as mpl

    mpl.rcParams["svg.hashsalt"] = "evals"  # equal metrics give equal files
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.5 + 4.5 * count, 4), layout="constrained")
    return figure, [figure.add_subplot(1, count, index + 1) for index in range(count)]


def _label(axes: Axes, x: str, y: str, title: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, fontsize=10)
    axes.grid(visible=True, alpha=0.3)


def _save(path: Path, figure: Figure) -> Path:
    # Dates would make equal figures differ as files.
    undated = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150, metadata=undated.get(path.suffix[1:], {}))
    return path
