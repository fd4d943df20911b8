"""What a log states of the run as a whole, before its samples so that a reader can stop there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from infra.errors import ConfigError
from mdagents.export.ids import JSONObject, stable_id
from mdagents.export.records import RunFiles
from mdagents.export.sample import SCORER
from mdagents.export.usage import Spending
from mdagents.records.manifest import RunManifest
from mdagents.scoring.fields import object_of
from mdagents.scoring.group import by_question, correct_answers, make_group
from mdagents.scoring.scored_row import ScoredRow
from mdagents.settings import Status

FORMAT_VERSION = 2
UNKNOWN_TIME = "1970-01-01T00:00:00Z"
"""Stands for a missing time of a file; the present one would differ at each export."""

_METRICS = ({"name": "accuracy"}, {"name": "stderr"})


@dataclass(frozen=True, slots=True)
class Identity:
    """What names a log."""

    task: str
    model: str
    solver: str
    created: str
    """ISO 8601, UTC."""
    run_id: str
    task_id: str

    @property
    def file_name(self) -> str:
        """The file name in Inspect's form; Inspect lists only JSON files that begin with a time."""
        time = self.created[:19].replace(":", "-")
        task = "".join(c if c.isalnum() or c in ".-" else "-" for c in self.task)
        return f"{time}_{task}_{self.task_id}.json"

    @property
    def created_ms(self) -> int:
        """Creation time, in ms since 1970 UTC."""
        return ms_of(self.created)


def ms_of(time: str) -> int:
    """Return the milliseconds since 1970 UTC of an ISO 8601 time.

    Raises:
        ConfigError: The text is not such a time.
    """
    try:
        return round(datetime.fromisoformat(time).timestamp() * 1000)
    except ValueError as error:
        raise ConfigError(f"run.json: {error}") from error


def identity_of(run: RunFiles, served: str) -> Identity:
    """Return the names of a run.

    Args:
        run: The run.
        served: A model that answered, used without a manifest.
    """
    manifest = run.manifest
    if manifest is None:
        unknown = stable_id(run.name)
        return Identity(run.name, served, "unknown", UNKNOWN_TIME, unknown, unknown)
    created = manifest.invocations[0].started_at if manifest.invocations else UNKNOWN_TIME
    key = (manifest.name, manifest.config_hash, created)
    return Identity(
        task=manifest.dataset,
        model=manifest.models.get("expert", served),
        solver=str(manifest.config.get("method") or "mdagents"),
        created=created,
        run_id=stable_id(*key, "run"),
        task_id=stable_id(*key, "task"),
    )


def make_header(run: RunFiles, identity: Identity, spent: Spending) -> JSONObject:
    """Return all of a log except its samples, in the order that Inspect requires.

    Args:
        run: The run.
        identity: Its names.
        spent: Tokens of the run, kept replies and EXAID's included.
    """
    status, error = _status(run.manifest)
    header: JSONObject = {
        "version": FORMAT_VERSION,
        "status": status,
        "eval": _spec(run, identity),
        "plan": {"name": "plan", "steps": [_solver(run.manifest, identity)], "config": {}},
        "results": _results(run),
        "stats": {**_times(run.manifest), **spent.as_dict()},
    }
    if error:
        header["error"] = {"message": error, "traceback": "", "traceback_ansi": ""}
    return header


def _status(manifest: RunManifest | None) -> tuple[str, str]:
    if manifest is None or manifest.finished:
        return "success", ""
    if manifest.invocations and manifest.invocations[-1].ended_at:
        return "cancelled", ""  # from the outside, or by a limit of the run
    return "error", "the run was killed, or is still under way"


def _times(manifest: RunManifest | None) -> JSONObject:
    if manifest is None or not manifest.invocations:
        return {"started_at": "", "completed_at": ""}
    first, last = manifest.invocations[0], manifest.invocations[-1]
    return {"started_at": first.started_at, "completed_at": last.ended_at or ""}


def _spec(run: RunFiles, identity: Identity) -> JSONObject:
    manifest = run.manifest
    solver = _solver(manifest, identity)
    spec: JSONObject = {
        "eval_id": stable_id(identity.run_id, "eval"),
        "run_id": identity.run_id,
        "created": identity.created,
        "task": identity.task,
        "task_id": identity.task_id,
        "task_args": manifest.options if manifest else {},
        "solver": solver["solver"],
        "solver_args": solver["params"],
        "dataset": _dataset(run),
        "model": identity.model,
        "config": _config(manifest),
        "scorers": [{"name": SCORER, "metrics": list(_METRICS)}],
    }
    if manifest is not None:
        others = {r: {"model": m} for r, m in manifest.models.items() if m != identity.model}
        if others:
            spec["model_roles"] = others
        spec["packages"] = manifest.package_versions
        spec["metadata"] = _metadata(manifest)
        if manifest.git_revision:
            revision = {"type": "git", "origin": "", "commit": manifest.git_revision}
            spec["revision"] = revision
    return spec


def _solver(manifest: RunManifest | None, identity: Identity) -> JSONObject:
    config = manifest.config if manifest else {}
    named = ("preset", "team", "skip", "exaid", "option_order", "seed")
    params = {name: config[name] for name in named if name in config}
    if manifest is not None:
        params = {"difficulty": config.get("difficulty") or "adaptive", **params}
    return {"solver": identity.solver, "params": params}


def _dataset(run: RunFiles) -> JSONObject:
    manifest = run.manifest
    if manifest is None:
        ids = list(dict.fromkeys(row.question_id for row in run.output.rows))
        return {"name": run.name, "samples": len(ids), "sample_ids": ids}
    return {
        "name": manifest.dataset,
        "location": manifest.dataset_path,
        "samples": len(manifest.item_ids),
        "sample_ids": manifest.item_ids,
        "shuffled": object_of(manifest.config, "selection").get("shuffle_seed") is not None,
    }


def _config(manifest: RunManifest | None) -> JSONObject:
    """Return the part of the configuration for which Inspect has a name."""
    config: Mapping[str, Any] = manifest.config if manifest else {}
    limits = object_of(config, "limits")
    selection = object_of(config, "selection")
    seconds, stop, start = (
        limits.get("sample_seconds"),
        selection.get("stop"),
        selection.get("start"),
    )
    errors = config.get("fail_on_error")
    named: JSONObject = {
        "limit": None if stop is None else [start, stop] if start else stop,
        "sample_id": selection.get("ids") or None,
        "sample_shuffle": selection.get("shuffle_seed"),
        "epochs": config.get("epochs"),
        "fail_on_error": {None: False, 0: True}.get(errors, errors),
        "score_on_error": True,
        "token_limit": limits.get("sample_tokens"),
        "time_limit": None if seconds is None else math.ceil(seconds),
        "max_samples": config.get("max_samples"),
    }
    return {name: value for name, value in named.items() if value is not None}


def _metadata(manifest: RunManifest) -> JSONObject:
    named = (
        "name", "config_hash", "dataset_sha256", "dataset_notice", "model_notice", "items_hash",
        "exemplars_sha256", "prompt_hashes", "models_served",
    )  # fmt: skip
    whole = manifest.model_dump(mode="json")
    return {**{name: whole[name] for name in named}, "spent": whole["spent"]}


def _results(run: RunFiles) -> JSONObject:
    rows, counted = run.output.rows, run.scored
    planned = len(rows)
    if run.manifest is not None:
        epochs = run.manifest.config.get("epochs")
        planned = len(run.manifest.item_ids) * (epochs if isinstance(epochs, int) else 1)
    results: JSONObject = {
        "total_samples": planned,
        "completed_samples": sum(row.status != Status.API_ERROR for row in rows),
        "scores": [_score(rows, counted)],
    }
    if len(rows) < planned:
        results["logged_samples"] = len(rows)
    return results


def _score(rows: Sequence[ScoredRow], counted: Sequence[ScoredRow]) -> JSONObject:
    figures = {"accuracy": make_group(rows).accuracy or 0.0, "stderr": standard_error(counted)}
    score: JSONObject = {
        "name": SCORER,
        "scorer": SCORER,
        "scored_samples": len(counted),
        "unscored_samples": len(rows) - len(counted),
        "params": {},
        "metrics": {name: {"name": name, "value": v} for name, v in figures.items()},
    }
    if any(row.epoch > 1 for row in rows):
        score["reducer"] = "mean"
    return score


def standard_error(rows: Sequence[ScoredRow]) -> float:
    """Return Inspect's standard error of accuracy, over questions; 0 for fewer than two.

    A question with several epochs counts once, with its share of right answers.
    """
    shares = [correct_answers(answers) / len(answers) for answers in by_question(rows)]
    if len(shares) < 2:
        return 0.0
    mean = sum(shares) / len(shares)
    variance = sum((share - mean) ** 2 for share in shares) / (len(shares) - 1)
    return math.sqrt(variance / len(shares))
