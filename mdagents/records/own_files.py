"""Refuses to write an output over or into a run, or over the input that it is made from."""

from __future__ import annotations

from pathlib import Path

from mdagents_llm.errors import ConfigError


def refuse_to_replace(path: Path, *inputs: Path) -> None:
    """Refuse an output that is an input, a file of a run, or a run's JSON array.

    Args:
        path: File to write, which may be missing.
        inputs: Files that are read.

    Raises:
        ConfigError: Writing the file would destroy what it is made from, or a run.
    """
    place = path.resolve()  # `new/../file` is there once the folder `new` has been made
    if not place.is_file():
        return
    if any(one.exists() and place.samefile(one) for one in inputs):
        raise ConfigError(f"{path} is the input; name another file for the output")
    folders = place.parents[:2]  # a run's, or one in it, such as its traces
    is_in_run = place.suffix in (".json", ".jsonl", ".gz") and any(map(_is_run, folders))
    if is_in_run or (place.suffix == ".json" and _is_run(place.with_suffix(""))):
        raise ConfigError(f"{path} belongs to a run; name another file for the output")


def refuse_run(flag: str, folder: Path, *inputs: Path) -> None:
    """Refuse a run as the folder to write to, as in `--figures RUN RUN`: it is meant to be read.

    Args:
        flag: Flag that names the folder.
        folder: Folder to write to, which may be missing.
        inputs: Folders of runs that are read, which may hold what is made from them.

    Raises:
        ConfigError: The folder is a run, and none of the inputs.
    """
    place = folder.resolve()
    if _is_run(place) and not any(one.exists() and place.samefile(one) for one in inputs):
        raise ConfigError(
            f"{flag} is '{folder}', which is a run; name the folder to write to, then the runs"
        )


def _is_run(folder: Path) -> bool:
    return all((folder / name).is_file() for name in ("run.json", "samples.jsonl"))
