"""The questions of `--rerun-wrong RUN`: those that an earlier run got wrong or failed."""

from __future__ import annotations

from pathlib import Path

from mdagents.datasets.dataset import find_dataset
from mdagents.scoring.breakdown import wrong_questions
from mdagents.scoring.fields import text_of
from mdagents.scoring.rows import read_output
from mdagents_llm.errors import ConfigError


def ids_to_rerun(run: str, output_dir: Path, dataset: str, data_dir: Path, split: str) -> list[str]:
    """Return the ids of the questions that a run did not get right, in its order.

    Args:
        run: File or folder of the run, or its name below `output_dir`.
        output_dir: Folder of the runs.
        dataset: Data set of the new run, with `data_dir` and `split` as in `open_dataset`.
        data_dir: Folder of the data sets.
        split: Name of the file in the data set's folder.

    Raises:
        ConfigError: The run cannot be read, is of another data set, or has no wrong question.
    """
    path = Path(run) if Path(run).exists() else output_dir / run
    output = read_output(path)
    name, answered = find_dataset(dataset, data_dir, split)[0], text_of(output.manifest, "dataset")
    if answered and str(Path(answered)) != name:  # earlier versions wrote `name/` as it was typed
        raise ConfigError(
            f"--rerun-wrong {run} has questions of {answered}, not of {name}; see --dataset and "
            "--split"
        )
    if ids := wrong_questions(output.rows):
        return ids
    raise ConfigError(f"--rerun-wrong {run} has no question that is wrong or failed")
