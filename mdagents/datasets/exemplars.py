"""Worked examples for few-shot prompts, from the train split of a data set."""

from __future__ import annotations

import hashlib
import random
from itertools import islice
from pathlib import Path

from mdagents.datasets.dataset import Dataset, open_dataset
from mdagents.datasets.near_duplicates import fingerprint
from mdagents.datasets.questions import Question, present
from mdagents.datasets.sources import FETCHED_WITH_TRAIN
from mdagents.settings import OptionOrder
from mdagents_llm.errors import ConfigError

SHOTS = 5
"""Number of exemplars in a prompt, as in Hendrycks et al. 2021,
https://arxiv.org/abs/2009.03300."""


def find_train_file(path: Path) -> Path | None:
    """Return the train split that belongs to a data set file; None without a train split.

    Args:
        path: Path of the file; `{stem}_train.jsonl` and `train.jsonl` are searched next to it.
    """
    names = (f"{path.stem}_train.jsonl", "train.jsonl")
    return next((found for name in names if (found := path.with_name(name)).is_file()), None)


def train_file(path: Path, method: str = "few_shot") -> Path:
    """Return the train split that belongs to a data set file, which must exist.

    Args:
        path: Path of the data set file.
        method: Method that needs the train split, for the error message.

    Raises:
        ConfigError: The data set has no train split.
    """
    found = find_train_file(path)
    if found is None:
        raise ConfigError(
            f"--method {method} needs {path.with_name('train.jsonl')}, which is not there: write "
            f"solved questions into it in the form of {path.name} (of "
            f"{', '.join(FETCHED_WITH_TRAIN)}, python -m mdagents data download NAME fetches it)"
        )
    return found


def exemplars_hash(path: Path, method: str = "few_shot") -> str:
    """Return the SHA-256 of the train split that belongs to a data set file.

    Args:
        path: Path of the data set file.
        method: Method that needs the train split, for the error message.

    Raises:
        ConfigError: The data set has no train split, or the split cannot be read.
    """
    found = train_file(path, method)
    try:
        with found.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ConfigError(f"{found} cannot be read: {error.strerror}") from error


class Exemplars:
    """Train questions in a seeded order; every prompt uses the first ones.

    All prompts of a run show the same exemplars, except for a question that is one of them.

    Args:
        train: Train split.
        order: Order of the options, as for the questions themselves.
        seed: Seed for the choice of exemplars and the order of their options.

    Raises:
        ConfigError: The train split has fewer than `SHOTS` questions.
    """

    def __init__(self, train: Dataset, order: OptionOrder, seed: int) -> None:
        entries = [
            entry for entry in train.index if not entry.pictures and not entry.missing_picture
        ]
        if len(entries) < SHOTS:
            raise ConfigError(
                f"a prompt shows {SHOTS} questions and {train.path} has only {len(entries)}; "
                "add more"
            )
        # A string seed makes the choice independent of the shuffle of --sample-shuffle.
        random.Random(f"exemplars/{seed}").shuffle(entries)
        self._first: dict[str, Question] = {}
        for entry in entries:
            if len(self._first) > SHOTS:  # one spare: a question duplicates at most one of them
                break
            exemplar = train.load(entry)
            shown = present(exemplar, order, seed)
            self._first.setdefault(fingerprint(exemplar.text), shown)

    async def prepare(self) -> None:
        """Do nothing: the exemplars were read when they were opened."""

    def beside(self, question: Question) -> list[Question]:
        """Return `SHOTS` exemplars for a question, without near-duplicates of it or each other.

        Return fewer when the train split has no more.
        """
        own = fingerprint(question.text)
        others = (shown for like, shown in self._first.items() if like != own)
        return list(islice(others, SHOTS))


def open_exemplars(dataset: Dataset, order: OptionOrder, seed: int) -> Exemplars:
    """Open the exemplars of a data set.

    Raises:
        ConfigError: The train split is missing or cannot be used.
    """
    path = train_file(dataset.path)
    return Exemplars(open_dataset(str(path), path.parent), order, seed)
