"""A question: as the data set holds it, and as it is presented to the agents."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from string import ascii_uppercase

from mdagents.datasets.option_places import speaking_of_places

LETTERS = ascii_uppercase[:10]
"""Option letters that the project knows: A to J."""


class OptionOrder(StrEnum):
    """In which order the options of a question are presented."""

    SHUFFLED = "shuffled"
    """A permutation of its own for each question and epoch, drawn from the run's seed."""
    SAME = "same"
    """A permutation of its own for each question, the same in all epochs."""
    ORIGINAL = "original"


@dataclass(frozen=True, slots=True)
class SourceQuestion:
    """A question as the data set holds it."""

    id: str
    """`realidx`, `id`, or `sample_N` for the N-th line."""
    text: str
    options: Mapping[str, str]
    """Source letter -> text of the options that are shown, in the order of the data set."""
    gold: str
    """Source letter of the right option; empty when it is not known."""
    hidden: Mapping[str, str] = field(default_factory=dict)
    """Source letter -> text of those that are not shown, being empty, `n/a` or a last `nan`."""
    picture: str = ""
    """What shows that a picture belongs to the question, such as a field; empty without one."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question as it is presented."""

    id: str
    text: str
    options: Mapping[str, str]
    """Presented letter -> option text, letters consecutive from A."""
    gold: str
    """Presented letter of the right option, empty when it is not known. No prompt may hold it."""
    permutation: Mapping[str, str]
    """Presented letter -> source letter."""
    order_kept: bool = False
    """Whether options refer to the places of others, so that all are in the data set's order."""

    @property
    def letters(self) -> str:
        """The presented letters, for example `ABCD`."""
        return "".join(self.options)

    def block(self) -> str:
        """Return the question and one option per line: the prefix of every prompt of a case."""
        options = "\n".join(f"{letter}) {text}" for letter, text in self.options.items())
        return f"{self.text}\n{options}"

    def is_right(self, letter: str) -> bool:
        """Return whether `letter` is the right option, or one with exactly the same text."""
        return self.options[letter].strip() == self.options[self.gold].strip()


def present(source: SourceQuestion, order: OptionOrder, seed: int, epoch: int = 1) -> Question:
    """Put the options into the order that the agents see; letters are assigned afterwards.

    The permutation depends on the seed, the question's id and the epoch alone, so that a question
    looks the same in every run with that seed, whatever else is in the run. Options that refer to
    the places of others keep all options of their question where they are.

    Args:
        source: The question.
        order: What the run asks for.
        seed: Of the run.
        epoch: Repetition of the question, from 1.
    """
    letters = list(source.options)
    order_kept = bool(speaking_of_places(source.options))
    if order is not OptionOrder.ORIGINAL and not order_kept:
        again = f"/{epoch}" if epoch > 1 and order is OptionOrder.SHUFFLED else ""
        # A string seed is hashed by `random` itself and does not depend on PYTHONHASHSEED.
        random.Random(f"{seed}/{source.id}{again}").shuffle(letters)
    permutation = dict(zip(LETTERS, letters, strict=False))
    return Question(
        id=source.id,
        text=source.text,
        options={shown: source.options[original] for shown, original in permutation.items()},
        gold=next((shown for shown, of in permutation.items() if of == source.gold), ""),
        permutation=permutation,
        order_kept=order_kept,
    )
