"""Finds runs on disk, and the files of a case in the folder of a run."""

from __future__ import annotations

import json
from operator import itemgetter
from pathlib import Path

from mdagents.records.jsonl import MALFORMED, whole_lines
from mdagents.records.manifest import RunManifest, read_manifest
from mdagents_llm.errors import ConfigError


def case_files(folder: Path, case_id: str) -> tuple[Path, Path]:
    """Return (trace, run log of EXAID) of a case in the folder of a run."""
    return (
        folder / "traces" / f"{case_id}.trace.jsonl.gz",
        folder / "exaid" / f"{case_id}.jsonl.gz",
    )


def holds_nothing(folder: Path) -> bool:
    """Return whether the run in a folder has no record."""
    samples = folder / "samples.jsonl"
    return not samples.is_file() or samples.stat().st_size == 0


def is_complete(folder: Path, manifest: RunManifest) -> bool:
    """Return whether the files of a finished run still hold a record of each of its questions."""
    if not folder.with_name(f"{folder.name}.json").is_file():
        return False
    left = {(id_, epoch) for id_ in manifest.item_ids for epoch in range(1, manifest.epochs + 1)}
    try:
        for _, _, line in whole_lines(folder / "samples.jsonl"):
            left.discard(itemgetter("question_id", "epoch")(json.loads(line)))
    except (OSError, *MALFORMED):
        return False  # whoever goes on with the run says what is wrong
    return not left


def name_to_use(
    output_dir: Path, name: str, earlier_name: str, config_hash: str, *, fresh: bool
) -> str:
    """Return the name of a run: that of an earlier version, if the run is there under that.

    Args:
        output_dir: Where runs are.
        name: As a run is called today.
        earlier_name: As earlier versions called it.
        config_hash: Of the run.
        fresh: Whether it starts anew; what another run is called does not matter then.
    """
    if (output_dir / name).exists() or not (output_dir / earlier_name).exists():
        return name
    if not fresh:
        return earlier_name  # and `earlier_run` says if it is another run
    try:
        earlier = read_manifest(output_dir / earlier_name)
    except ConfigError:
        return name
    return earlier_name if earlier and earlier.config_hash == config_hash else name


def earlier_run(output_dir: Path, manifest: RunManifest) -> RunManifest | None:
    """Return the existing run of the same name, if it may be continued.

    Raises:
        ConfigError: It was made with other settings.
    """
    earlier = read_manifest(output_dir / manifest.name)
    if earlier is None or earlier.config_hash == manifest.config_hash:
        return earlier
    if holds_nothing(output_dir / manifest.name):
        return None  # a mistyped address, say; it is kept under a dated name
    differs = [
        name
        for name in ("items_hash", "exemplars_sha256", "models", "prompt_hashes", "options")
        if getattr(earlier, name) != getattr(manifest, name)
    ]
    raise ConfigError(
        f"{output_dir / manifest.name} holds a run that differs in "
        f"{', '.join(differs) or 'endpoint'}; start with --fresh to keep it under a dated name"
    )


def recorded_run(output_dir: Path, manifest: RunManifest) -> Path | None:
    """Return the folder of another run with the same settings and EXAID on; None without one.

    A finished one goes before an unfinished one, a later one before an earlier one.
    """
    candidates = []
    for path in output_dir.glob("*/exaid"):
        try:
            earlier = read_manifest(path.parent)
        except ConfigError:
            continue  # of another version, and so not a candidate
        if (
            earlier is not None
            and earlier.invocations
            and path.parent.name != manifest.name
            and earlier.config_hash == manifest.config_hash
        ):
            last = earlier.invocations[-1].started_at
            candidates.append((earlier.finished, last, path.parent))
    return max(candidates)[2] if candidates else None
