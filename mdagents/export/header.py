"""Header of a log: the data of the whole run, before the samples so that readers can stop there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import stdev
from typing import Any

from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalError,
    EvalLog,
    EvalMetric,
    EvalPlan,
    EvalPlanStep,
    EvalResults,
    EvalRevision,
    EvalScore,
    EvalSpec,
    EvalStats,
    EvalStatus,
)
from inspect_ai.model import ModelConfig

from mdagents.export import LogFormat
from mdagents.export.ledger import Spending, usages
from mdagents.export.records import RunFiles
from mdagents.export.sample import SCORER
from mdagents.export.spans import stable_id
from mdagents.records.manifest import RunManifest
from mdagents.scoring.fields import object_of
from mdagents.scoring.group import by_question, correct_answers, make_group, scored
from mdagents.scoring.scored_row import ScoredRow
from mdagents.settings import Status

UNKNOWN_TIME = "1970-01-01T00:00:00Z"
"""Placeholder of a missing time; the current time would differ at each export."""

_NOT_ENDED = "the run was killed or is still running"
_PARAMETERS = ("preset", "team", "skip", "exaid", "option_order", "seed")
_METADATA = {
    "name", "config_hash", "dataset_sha256", "dataset_notice", "model_notice", "items_hash",
    "exemplars_sha256", "prompt_hashes", "models_served", "spent",
}  # fmt: skip
# Inspect does not export the type of these entries.
_SCORERS: Any = [{"name": SCORER, "metrics": [{"name": "accuracy"}, {"name": "stderr"}]}]


def file_name(spec: EvalSpec, log_format: LogFormat) -> str:
    """Return the file name in Inspect's form, which begins with a time so that Inspect lists it."""
    time = spec.created[:19].replace(":", "-")
    task = "".join(c if c.isalnum() or c in ".-" else "-" for c in spec.task)
    return f"{time}_{task}_{spec.task_id}.{log_format}"


def make_header(run: RunFiles, served: str, spent: Spending) -> EvalLog:
    """Return a log without its samples.

    Args:
        run: The run.
        served: Model that answered, for a run without a manifest.
        spent: Tokens of the run, including cached replies and EXAID.
    """
    invocations = run.manifest.invocations if run.manifest else []
    spec = _spec(run, served)
    log = EvalLog(
        status=_status(run.manifest),
        eval=spec,
        plan=EvalPlan(
            steps=[EvalPlanStep(solver=spec.solver or "", params=spec.solver_args or {})]
        ),
        results=_results(run),
        stats=EvalStats(
            started_at=invocations[0].started_at if invocations else "",
            completed_at=(invocations[-1].ended_at or "") if invocations else "",
            model_usage=usages(spent.by_model),
            role_usage=usages(spent.by_role),
        ),
    )
    if log.status == "error":
        log.error = EvalError(message=_NOT_ENDED, traceback="", traceback_ansi="")
    return log


def _status(manifest: RunManifest | None) -> EvalStatus:
    if manifest is None or manifest.finished:
        return "success"
    if manifest.invocations and manifest.invocations[-1].ended_at:
        return "cancelled"  # by the user or a limit of the run
    return "error"


def _spec(run: RunFiles, served: str) -> EvalSpec:
    manifest = run.manifest
    if manifest is None:
        id_ = stable_id(run.name)
        ids = list(dict.fromkeys(row.question_id for row in run.output.rows))
        return EvalSpec(
            eval_id=stable_id(id_, "eval"),
            run_id=id_,
            task_id=id_,
            created=UNKNOWN_TIME,
            task=run.name,
            solver="unknown",
            solver_args={},
            dataset=EvalDataset(name=run.name, samples=len(ids), sample_ids=[*ids]),
            model=served,
            config=_config({}),
            scorers=_SCORERS,
        )
    config = manifest.config
    created = manifest.invocations[0].started_at if manifest.invocations else UNKNOWN_TIME
    key = (manifest.name, manifest.config_hash, created)
    run_id = stable_id(*key, "run")
    model = manifest.models.get("expert", served)
    others = {role: ModelConfig(model=m) for role, m in manifest.models.items() if m != model}
    parameters = {name: config[name] for name in _PARAMETERS if name in config}
    commit = manifest.git_revision
    return EvalSpec(
        eval_id=stable_id(run_id, "eval"),
        run_id=run_id,
        task_id=stable_id(*key, "task"),
        created=created,
        task=manifest.dataset,
        task_args=manifest.options,
        solver=str(config.get("method") or "mdagents"),
        solver_args={"difficulty": config.get("difficulty") or "adaptive", **parameters},
        dataset=EvalDataset(
            name=manifest.dataset,
            location=manifest.dataset_path,
            samples=len(manifest.item_ids),
            sample_ids=[*manifest.item_ids],
            shuffled=object_of(config, "selection").get("shuffle_seed") is not None,
        ),
        model=model,
        model_roles={**others} or None,
        config=_config(config),
        revision=EvalRevision(type="git", origin="", commit=commit) if commit else None,
        packages=manifest.package_versions,
        metadata=manifest.model_dump(mode="json", include=_METADATA),
        scorers=_SCORERS,
    )


def _config(config: Mapping[str, Any]) -> EvalConfig:
    """Return the settings that Inspect has fields for."""
    limits, selection = object_of(config, "limits"), object_of(config, "selection")
    start, stop = selection.get("start"), selection.get("stop")
    seconds, errors = limits.get("sample_seconds"), config.get("fail_on_error")
    return EvalConfig(
        limit=(start, stop) if start and stop is not None else stop,
        sample_id=selection.get("ids") or None,
        sample_shuffle=selection.get("shuffle_seed"),
        epochs=config.get("epochs"),
        fail_on_error={None: False, 0: True}.get(errors, errors),
        score_on_error=True,
        token_limit=limits.get("sample_tokens"),
        time_limit=None if seconds is None else math.ceil(seconds),
        max_samples=config.get("max_samples"),
    )


def _results(run: RunFiles) -> EvalResults:
    rows, counted = run.output.rows, scored(run.output.rows)
    figures = ("accuracy", make_group(rows).accuracy or 0.0), ("stderr", _standard_error(counted))
    planned = len(rows)
    if run.manifest is not None:
        epochs = run.manifest.config.get("epochs")
        planned = len(run.manifest.item_ids) * (epochs if isinstance(epochs, int) else 1)
    return EvalResults(
        total_samples=planned,
        completed_samples=sum(row.status != Status.API_ERROR for row in rows),
        logged_samples=len(rows) if len(rows) < planned else None,
        scores=[
            EvalScore(
                name=SCORER,
                scorer=SCORER,
                reducer="mean" if any(row.epoch > 1 for row in rows) else None,
                scored_samples=len(counted),
                unscored_samples=len(rows) - len(counted),
                metrics={name: EvalMetric(name=name, value=value) for name, value in figures},
            )
        ],
    )


def _standard_error(rows: Sequence[ScoredRow]) -> float:
    """Return Inspect's standard error over questions; epochs of a question are averaged first."""
    shares = [correct_answers(answers) / len(answers) for answers in by_question(rows)]
    return stdev(shares) / math.sqrt(len(shares)) if len(shares) > 1 else 0.0
