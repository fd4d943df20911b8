"""Worked examples for few-shot prompts, from the train split of a data set."""

from __future__ import annotations

import hashlib
import random
from itertools import islice
from pathlib import Path

from mdagents.datasets.dataset import Dataset, open_dataset
from mdagents.datasets.near_duplicates import fingerprint
from mdagents.datasets.questions import OptionOrder, Question, present
from mdagents_llm.errors import ConfigError

FETCHED_WITH_TRAIN = ("medqa", "medmcqa", "pubmedqa", "mmlu", "mmlu-pro")
"""Data sets whose train split `mdagents data download` fetches."""

SHOTS = 5
"""Exemplars in a prompt, as in Hendrycks et al. 2021, https://arxiv.org/abs/2009.03300."""


def find_train_file(path: Path) -> Path | None:
    """Return the train split that belongs to a data set file; None without a train split.

    Args:
        path: The file; `{stem}_train.jsonl` and `train.jsonl` are looked for beside it.
    """
    names = (f"{path.stem}_train.jsonl", "train.jsonl")
    return next((found for name in names if (found := path.with_name(name)).is_file()), None)


def train_file(path: Path, method: str = "few_shot") -> Path:
    """Return the train split that belongs to a data set file and must exist.

    Args:
        path: The file.
        method: What needs it, for the error.

    Raises:
        ConfigError: The data set has no train split.
    """
    found = find_train_file(path)
    if found is None:
        raise ConfigError(
            f"--method {method} needs {path.with_name('train.jsonl')}, which is not there: write "
            f"solved questions into it in the form of {path.name} (of "
            f"{', '.join(FETCHED_WITH_TRAIN)}, mdagents data download NAME fetches it)"
        )
    return found


def exemplars_hash(path: Path, method: str = "few_shot") -> str:
    """Return the SHA-256 of the train split that belongs to a data set file.

    Args:
        path: The file.
        method: What needs it, for the error.

    Raises:
        ConfigError: The data set has no train split, or it cannot be read.
    """
    found = train_file(path, method)
    try:
        with found.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ConfigError(f"{found} cannot be read: {error.strerror}") from error


class Exemplars:
    """The train questions in a seeded order, of which every prompt takes the first.

    All prompts of a run show the same examples, except for a question that is one of them.

    Args:
        train: The train split.
        order: Of the options, as for the questions themselves.
        seed: Of the choice and of the options.

    Raises:
        ConfigError: It has fewer than `SHOTS` questions.
    """

    def __init__(self, train: Dataset, order: OptionOrder, seed: int) -> None:
        entries = [entry for entry in train.index if not entry.picture]
        if len(entries) < SHOTS:
            raise ConfigError(
                f"--method few_shot shows {SHOTS} questions and {train.path} "
                f"has only {len(entries)}"
            )
        # A string seed makes the choice independent of the shuffle of --sample-shuffle.
        random.Random(f"exemplars/{seed}").shuffle(entries)
        self._first: dict[str, Question] = {}
        for entry in entries:
            if len(self._first) > SHOTS:  # one more, as a question is like one of them at the most
                break
            exemplar = train.load(entry)
            shown = present(exemplar, order, seed)
            self._first.setdefault(fingerprint(exemplar.text), shown)

    def beside(self, question: Question) -> list[Question]:
        """Return `SHOTS` exemplars for a question, none a near-duplicate of it or of another.

        Fewer when the train split has no more.
        """
        own = fingerprint(question.text)
        others = (shown for like, shown in self._first.items() if like != own)
        return list(islice(others, SHOTS))


def open_exemplars(dataset: Dataset, order: OptionOrder, seed: int) -> Exemplars:
    """Open the exemplars of a data set.

    Raises:
        ConfigError: There is no train split, or it cannot be used.
    """
    path = train_file(dataset.path)
    return Exemplars(open_dataset(str(path), path.parent), order, seed)
