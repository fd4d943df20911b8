"""The train split of a data set, from which methods take exemplars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mdagents.datasets.dataset import Dataset
from mdagents.settings import OptionOrder
from mdagents_llm.terminal.printing import print_line

if TYPE_CHECKING:
    from mdagents_llm.embeddings import Embedder  # loads numpy, which few methods need


@dataclass(frozen=True, slots=True)
class Embedding:
    """Resources for finding train questions that are similar to a question."""

    embedder: Embedder | None
    """Embedder of this machine; None without one."""
    cache_dir: Path
    """The user's cache folder, which holds the vectors."""
    say: Callable[[str], None] = print_line
    """Shows a line to the user before a long wait begins."""


def no_embedding() -> Embedding:
    """Return an Embedding without an embedder."""
    return Embedding(None, Path())


@dataclass(frozen=True, slots=True)
class TrainSplit:
    """A train split and the settings of a run that decide what is shown of it."""

    dataset: Dataset
    """Data set of the run, whose train split is the file next to it."""
    order: OptionOrder
    """Order of the options of exemplars."""
    seed: int
    """Seed for the choice of exemplars."""
    embedding: Callable[[], Embedding]
    """Returns the embedding; an embedder is slow to load, so only methods that need one call it."""


class OpenExemplars(Protocol):
    """Exemplars of a run, which its method takes from the train split."""

    async def prepare(self) -> None:
        """Do slow work that is needed once, before the first question."""
        ...
