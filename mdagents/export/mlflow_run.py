"""Writes runs to an MLflow tracking server: a run for each, below one for all if it is named."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mdagents.export.card import without_private
from mdagents.export.tracked import STATUS, TrackedRun
from mdagents_llm.clock import epoch_ms, ms_of
from mdagents_llm.errors import ConfigError, StorageError, system_reason

if TYPE_CHECKING:
    from mlflow import MlflowClient

_QUIETLY = {
    "MLFLOW_DISABLE_TELEMETRY": "true",  # it would be sent to a host that nobody named
    "MLFLOW_ALLOW_HTTP_REDIRECTS": "false",  # to a host that nobody named
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",  # 7 of MLflow's own take minutes
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "GIT_PYTHON_REFRESH": "quiet",
}
"""Variables for MLflow, where the user has not set them."""
_AT_ONCE = 100
"""Parameters and tags, and metrics, of one request; MLflow takes 100 of the former."""
_DATABRICKS = ("databricks", "databricks-uc")
"""Addresses of MLflow's own without a scheme: the workspace of the user's configuration."""
EXPERIMENT = "mdagents"
_PAGE = 1_000  # runs
_SAFE = re.compile(r"[^'\"\\]*")
"""The start of a value that a filter may hold."""
_LONGEST_ERROR = 300


def write_runs(
    runs: Sequence[TrackedRun], uri: str, experiment: str = EXPERIMENT, parent: str = ""
) -> list[str]:
    """Write runs; one that is there already, by its identity, is brought up to date.

    Args:
        runs: Runs, at least one.
        uri: Address of the tracking server; nothing is sent elsewhere.
        experiment: Name of the experiment, which is made if it does not exist.
        parent: Name of a run below which these are listed, such as a study; empty for none.

    Returns:
        Id of each run in MLflow.

    Raises:
        ConfigError: The address has no scheme.
        StorageError: The server cannot be reached, or refuses.
    """
    if not urlsplit(uri).scheme and uri not in _DATABRICKS:
        raise ConfigError(
            f"--mlflow (or MLFLOW_TRACKING_URI) is {uri!r} but must be the address of a tracking "
            f"server, or {' or '.join(_DATABRICKS)}"
        )
    for name, value in _QUIETLY.items():
        os.environ.setdefault(name, value)
    # Imported here: it takes seconds to load.
    from mlflow.exceptions import MlflowException

    logging.getLogger("mlflow").setLevel(logging.ERROR)
    try:
        return _write(runs, uri, experiment, parent)
    except MlflowException as error:
        host = urlsplit(uri).hostname or "the store"
        if isinstance(error.__cause__ or error.__context__, OSError):  # also those of `requests`
            raise StorageError(
                f"MLflow at {host} cannot be reached: {system_reason(error)}"
            ) from None
        told = without_private(str(error))[:_LONGEST_ERROR]
        raise StorageError(f"MLflow at {host}: {told}") from None


def _write(runs: Sequence[TrackedRun], uri: str, experiment: str, parent: str) -> list[str]:
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    found = client.get_experiment_by_name(experiment)
    if found is not None and found.lifecycle_stage == "deleted":
        raise StorageError(
            f"the experiment {experiment!r} is deleted in MLflow: restore it, or name another with "
            "--experiment"
        )
    at = client.create_experiment(experiment) if found is None else found.experiment_id
    above = {"mlflow.parentRunId": _parent_of(client, at, runs, parent)} if parent else {}
    written = []
    for run in runs:
        id_ = _existing(client, at, "mdagents.identity", run.identity) or str(
            client.create_run(
                at, start_time=_ms(run.started_at), run_name=run.name, tags=dict(run.tags)
            ).info.run_id
        )
        _update(client, id_, run, above)
        written.append(id_)
    return written


def _parent_of(client: MlflowClient, at: str, runs: Sequence[TrackedRun], parent: str) -> str:
    """Return the id of the parent run of that name, which spans all of `runs`."""
    began = min(filter(None, (_ms(run.started_at) for run in runs)), default=None)
    tags = {"mdagents.parent": parent}
    id_ = _existing(client, at, "mdagents.parent", parent) or str(
        client.create_run(at, start_time=began, run_name=parent, tags=tags).info.run_id
    )
    known = client.get_run(id_).info
    ends = filter(None, (_ms(run.ended_at) for run in runs))
    client.set_terminated(id_, "FINISHED", max([*ends, known.end_time or known.start_time]))
    return id_


def _existing(client: MlflowClient, at: str, tag: str, value: str) -> str | None:
    """Return the id of the run of experiment `at` whose tag has that value."""
    # MLflow's filters know no escapes: what begins alike is compared here.
    safe = _SAFE.match(value)
    start = safe[0] if safe else ""
    test, token = f"tags.`{tag}` LIKE '{start}%'", None
    while True:
        page = client.search_runs([at], test, max_results=_PAGE, page_token=token)
        found = next((run for run in page if run.data.tags.get(tag) == value), None)
        if found is not None or not page.token:
            return None if found is None else str(found.info.run_id)
        token = page.token


def _update(client: MlflowClient, id_: str, run: TrackedRun, above: dict[str, str]) -> None:
    """Bring a run of MLflow up to date: parameters cannot change, other values can."""
    from mlflow.entities import Metric, Param, RunTag

    known = client.get_run(id_).data
    now = epoch_ms()  # of several values, MLflow shows the one with the latest time
    params = [Param(k, v) for k, v in run.params.items() if k not in known.params]
    # A status that no question has any more: metrics cannot be deleted.
    gone = {name: 0.0 for name in known.metrics if name.startswith(STATUS)}
    metrics = [
        Metric(name, value, now, 0)
        for name, value in {**gone, **run.metrics}.items()
        if known.metrics.get(name) != value
    ]
    tags = [RunTag(k, v) for k, v in {**run.tags, **above}.items() if known.tags.get(k) != v]
    for start in range(0, max(len(params), len(metrics), len(tags)), _AT_ONCE // 2):
        part = slice(start, start + _AT_ONCE // 2)
        client.log_batch(id_, metrics[part], params[part], tags[part])
    for name, text in run.files.items():
        client.log_text(id_, text, name)
    end = _ms(run.ended_at)
    if run.finished:
        client.set_terminated(id_, "FINISHED", end)
    elif run.stopped:
        client.set_terminated(id_, "KILLED", end)
    else:
        client.update_run(id_, status="RUNNING")


def _ms(timestamp: str) -> int | None:
    """Return a time in ms since 1970 UTC; None if it is not recorded."""
    try:
        return ms_of(timestamp)
    except ValueError:
        return None
