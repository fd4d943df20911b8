"""Writes runs in the offline form of Weights & Biases, which `wandb sync` uploads.

Nothing is sent: wandb works in its offline mode, without metadata of the machine, its packages,
code or Git. It keeps the paths of files that it is to upload, so that it is given none.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mdagents.export.tracked import TrackedRun
from mdagents_llm.errors import StorageError

PROJECT = "mdagents"
_ID = 16  # characters of the identity of a run; the same run has the same id


def write_offline(
    runs: Sequence[TrackedRun], folder: Path, project: str = PROJECT, group: str = ""
) -> list[Path]:
    """Write runs, each into a folder `wandb/offline-run-…`.

    Args:
        runs: Runs, at least one.
        folder: Folder in which `wandb` is made.
        project: Name of the project.
        group: Name of the group of the runs, such as a study; empty for none.

    Returns:
        Folder of each run.

    Raises:
        StorageError: A file cannot be written.
    """
    import wandb  # imported here: it takes seconds to load

    try:
        # Where it cannot be made, the package would write to /tmp.
        (folder / "wandb").mkdir(parents=True, exist_ok=True)
        return [_write(run, folder, project, group) for run in runs]
    except (OSError, wandb.Error) as error:
        raise StorageError(f"wandb cannot write to {folder}: {error}") from None


def _write(run: TrackedRun, folder: Path, project: str, group: str) -> Path:
    import wandb

    settings = wandb.Settings(
        silent=True,
        console="off",
        disable_code=True,
        disable_git=True,
        save_code=False,
        host="mdagents",
        x_disable_machine_info=True,
        x_disable_meta=True,
        x_disable_stats=True,
        x_save_requirements=False,
    )
    made = wandb.init(
        project=project,
        id=run.identity[:_ID],
        name=run.name,
        group=group or None,
        config=dict(run.params) | dict(run.tags),
        dir=str(folder),
        mode="offline",
        resume="allow",
        settings=settings,
    )
    try:
        made.summary.update(dict(run.metrics))
        return Path(made.dir).parent
    finally:
        made.finish()
        wandb.teardown()
