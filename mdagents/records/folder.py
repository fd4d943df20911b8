"""Locates runs on disk, and the case files in the folder of a run."""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection
from operator import itemgetter
from pathlib import Path

from exaid_core.trace.names import TRACE_SUFFIX
from mdagents.records.jsonl import MALFORMED, whole_lines
from mdagents.records.manifest import RunManifest, read_manifest
from mdagents.settings import Status, TeamRole
from mdagents_llm.errors import ConfigError


def case_files(folder: Path, case_id: str) -> tuple[Path, Path]:
    """Return the paths (trace, EXAID run log) of a case in the folder of a run."""
    return (
        folder / "traces" / f"{case_id}{TRACE_SUFFIX}",
        folder / "exaid" / f"{case_id}.jsonl.gz",
    )


def holds_nothing(folder: Path) -> bool:
    """Return whether the run in a folder has no records."""
    samples = folder / "samples.jsonl"
    return not samples.is_file() or samples.stat().st_size == 0


def is_complete(folder: Path, manifest: RunManifest, again: Collection[Status]) -> bool:
    """Return whether the files of a finished run still hold a record of each of its questions.

    Args:
        folder: Folder of the run.
        manifest: Manifest of the run.
        again: Statuses of records that do not count.
    """
    if not folder.with_name(f"{folder.name}.json").is_file():
        return False
    counts: dict[tuple[str, int], bool] = {}
    try:
        for _, _, line in whole_lines(folder / "samples.jsonl"):
            record = json.loads(line)
            item = itemgetter("question_id", "epoch")(record)
            counts[item] = record.get("status") not in again
    except (OSError, *MALFORMED):
        return False  # resuming the run reports the error
    items = itertools.product(manifest.item_ids, range(1, manifest.epochs + 1))
    return all(counts.get(item) for item in items)


def name_to_use(
    output_dir: Path, name: str, earlier_name: str, config_hash: str, *, fresh: bool
) -> str:
    """Return the name of a run: its legacy name if the run exists only under that one.

    Args:
        output_dir: Folder of all runs.
        name: Name under the current naming scheme.
        earlier_name: Name under the scheme of earlier versions.
        config_hash: Configuration hash of the run.
        fresh: Whether the run starts over; a run of other settings under the legacy name is then
            ignored.
    """
    if (output_dir / name).exists() or not (output_dir / earlier_name).exists():
        return name
    if not fresh:
        return earlier_name  # `earlier_run` raises if it is another run
    return earlier_name if is_run_of(output_dir / earlier_name, config_hash) else name


def is_run_of(folder: Path, config_hash: str) -> bool:
    """Return whether a folder holds a run with these settings."""
    try:
        manifest = read_manifest(folder)
    except ConfigError:
        return False
    return manifest is not None and manifest.config_hash == config_hash


def with_hash(name: str, config_hash: str) -> str:
    """Return the name of a run that another run's name would otherwise equal."""
    return f"{name}_{config_hash[:8]}"


def name_beside(output_dir: Path, name: str, config_hash: str, model: str) -> str:
    """Return the name of a run: with its hash if the name is that of another model's run.

    Names of models lose some characters in names of runs: `a/b` and `a-b` are both `a-b`.

    Args:
        output_dir: Folder of all runs.
        name: Name of the run without its hash.
        config_hash: Configuration hash of the run.
        model: Model that the name begins with, as the manifest names it.
    """
    hashed = with_hash(name, config_hash)
    if (output_dir / hashed).exists():
        return hashed
    try:
        other = read_manifest(output_dir / name)
    except ConfigError:  # `earlier_run` raises it again
        return name
    if other is None or other.config_hash == config_hash:
        return name
    return name if other.models.get(TeamRole.DECISION, model) == model else hashed


def earlier_run(output_dir: Path, manifest: RunManifest) -> RunManifest | None:
    """Return the existing run of the same name if it can be resumed.

    Raises:
        ConfigError: The existing run was made with other settings.
    """
    earlier = read_manifest(output_dir / manifest.name)
    if earlier is None or earlier.config_hash == manifest.config_hash:
        return earlier
    if holds_nothing(output_dir / manifest.name):
        return None  # for example after a mistyped URL; the run is kept under a dated name
    raise ConfigError(
        f"{output_dir / manifest.name} holds a run that differs in "
        f"{differences(earlier, manifest)}; choose another --output-dir, or start with --fresh to "
        "keep it under a dated name"
    )


def differences(earlier: RunManifest, manifest: RunManifest) -> str:
    """Return the fields in which two runs with different settings differ, joined by commas."""
    names = (
        "items_hash", "pictures_sha256", "exemplars_sha256", "method_sha256", "method_modules",
        "models", "prompt_hashes", "options",
    )  # fmt: skip
    differs = [name for name in names if getattr(earlier, name) != getattr(manifest, name)]
    if not differs and earlier.config_hash == manifest.config_hash:
        return "name"
    return ", ".join(differs) or "endpoint"


def recorded_run(output_dir: Path, manifest: RunManifest) -> Path | None:
    """Return the folder of another run with the same settings and EXAID on; None without one.

    Finished runs take precedence over unfinished ones, and later runs over earlier ones.
    """
    candidates = []
    for path in output_dir.glob("*/exaid"):
        try:
            earlier = read_manifest(path.parent)
        except ConfigError:
            continue  # written by another version, so not a candidate
        if (
            earlier is not None
            and earlier.invocations
            and path.parent.name != manifest.name
            and earlier.config_hash == manifest.config_hash
        ):
            last = earlier.invocations[-1].started_at
            candidates.append((earlier.finished, last, path.parent))
    return max(candidates)[2] if candidates else None
