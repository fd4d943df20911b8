"""Run the notebooks of docs/notebooks and keep their outputs.

`python -m scripts.run_notebooks [NAME …]` runs all, or those with these names. Without a key the
embedded model answers, which takes some minutes.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "notebooks"


def run(path: Path, folder: Path) -> NotebookNode:
    """Return a notebook with the outputs of a run in a folder.

    Args:
        path: Path of the notebook, which is not changed.
        folder: Working directory of the cells.

    Raises:
        nbclient.exceptions.CellExecutionError: A cell raised an error.
    """
    notebook: NotebookNode = nbformat.read(path, as_version=4)
    own = {name: str(folder / ".jupyter") for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR")}
    client = NotebookClient(
        notebook,
        timeout=1200,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute(env={**os.environ, **own})
    notebook.metadata["language_info"] = {"name": "python"}  # without the version
    return notebook


def main() -> None:
    """Run the notebooks that the command line names, or all."""
    paths = {path.stem: path for path in sorted(FOLDER.glob("*.ipynb"))}
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(paths))
    named = parser.parse_args().names
    if unknown := set(named) - paths.keys():
        parser.error(f"there is no notebook {min(unknown)}")
    for path in paths.values():
        if named and path.stem not in named:
            continue
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(run(path, Path(folder)), path)
        print(f"{path.relative_to(ROOT)} is up to date")


if __name__ == "__main__":
    main()
