"""Questions, as stored in the data set and as presented to the agents."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from string import ascii_uppercase

from mdagents.datasets.listed_options import lists_by_letter
from mdagents.datasets.option_places import speaking_of_places
from mdagents.datasets.pictures.question_picture import QuestionPicture
from mdagents.settings import OptionOrder

LETTERS = ascii_uppercase[:10]
"""Supported option letters: A to J."""

NOT_SHOWN = "(a picture that is not shown)"
"""Text of an option that is only a picture, in a prompt without pictures."""


@dataclass(frozen=True, slots=True)
class SourceQuestion:
    """A question as stored in the data set."""

    id: str
    """Id from the record (`realidx`, `id`, …), or `sample_N` for line N."""
    text: str
    options: Mapping[str, str]
    """Source letter -> text of the shown options, in the order of the data set."""
    gold: str
    """Source letter of the right option; empty when unknown."""
    hidden: Mapping[str, str] = field(default_factory=dict)
    """Source letter -> text of the hidden options: empty, `n/a` or a trailing `nan`."""
    pictures: tuple[QuestionPicture, ...] = ()
    """Pictures of the question and of its shown options, those of the question first."""
    missing_picture: str = ""
    """Evidence that the question has a picture which the data set does not provide, such as a mark
    in its text; empty without one."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Name -> value of the data set's other short fields, such as a subject; see `kept_fields`."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question as presented to the agents."""

    id: str
    text: str
    options: Mapping[str, str]
    """Presented letter -> option text, letters consecutive from A."""
    gold: str
    """Presented letter of the right option; empty when unknown. Prompts must never contain it."""
    permutation: Mapping[str, str]
    """Presented letter -> source letter."""
    order_kept: bool = False
    """Whether all options are in the data set's order, because some refer to others' places,
    or the question lists them by letter."""
    pictures: tuple[QuestionPicture, ...] = ()
    """Pictures in the order in which prompts show them: the question's, then those of the options
    in their presented order."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Short fields of the data set, such as a subject. Prompts never contain them."""

    @property
    def letters(self) -> str:
        """Presented letters, for example `ABCD`."""
        return "".join(self.options)

    def block(self, *, with_pictures: bool = True) -> str:
        """Return the question and one option per line, the prefix of every prompt of a case.

        Args:
            with_pictures: Whether the prompt has the pictures of the question; otherwise no option
                refers to one.
        """
        options = self._shown_options(with_pictures=with_pictures)
        lines = "\n".join(f"{letter}) {text}" for letter, text in options.items())
        return f"{self.text}\n{lines}"

    def _shown_options(self, *, with_pictures: bool) -> Mapping[str, str]:
        """Return letter -> text of the option, with the labels of its pictures."""
        if not self.pictures:
            return self.options
        shown = dict(self.options)
        for number, picture in enumerate(self.pictures, start=1):
            if picture.option and with_pictures:
                shown[picture.option] = f"{shown[picture.option]} [Picture {number}]".strip()
            elif picture.option:
                shown[picture.option] = shown[picture.option].strip() or NOT_SHOWN
        return shown

    def reordered(self, order: Mapping[str, str]) -> Question:
        """Return the question with its options, and their pictures, in another order.

        Args:
            order: Letter in the new order -> letter in this question.
        """
        return replace(
            self,
            options={letter: self.options[of] for letter, of in order.items()},
            gold=next((letter for letter, of in order.items() if of == self.gold), ""),
            permutation={letter: self.permutation[of] for letter, of in order.items()},
            pictures=_in_order(self.pictures, order),
        )

    def labels(self) -> list[str]:
        """Return the text that precedes each picture in a prompt; empty where none is needed."""
        if len(self.pictures) == 1 and not self.pictures[0].option:
            caption = self.pictures[0].caption
            return [f"Picture: {caption}" if caption else ""]
        return [
            f"Picture {number}: {picture.caption}" if picture.caption else f"Picture {number}"
            for number, picture in enumerate(self.pictures, start=1)
        ]

    def right_letters(self, identities: Sequence[str] = ()) -> list[str]:
        """Return the letters that count as right: the right option, and those that look the same.

        Args:
            identities: Identity of each picture as sent; empty if none was.
        """
        shown = zip(self.pictures, identities or repeat(""), strict=False)
        pictures = [(picture.option, picture.caption, identity) for picture, identity in shown]
        return look_alikes(self.gold, self.options, pictures)


def look_alikes(
    letter: str, options: Mapping[str, str], pictures: Sequence[tuple[str, str, str]]
) -> list[str]:
    """Return the letters of the options that look exactly like one of them, itself included.

    Pictures that nobody saw are never alike.

    Args:
        letter: Letter of the option; nothing looks like an option that does not exist.
        options: Letter -> text.
        pictures: (letter of its option, caption, identity as sent) of each picture.
    """

    def looks(of: str) -> tuple[object, ...]:
        own = [(caption, identity or of) for option, caption, identity in pictures if option == of]
        return options[of].strip(), *own

    return [of for of in options if letter in options and looks(of) == looks(letter)]


def present(source: SourceQuestion, order: OptionOrder, seed: int, epoch: int = 1) -> Question:
    """Return a question with its options in the order for the agents; letters are reassigned.

    The permutation depends only on the seed, the question's id and the epoch, so a question looks
    the same in every run with that seed. If an option refers to the places of others, or the
    question lists them by letter, all options of the question keep their places.

    Args:
        source: Question as stored in the data set.
        order: Option order of the run.
        seed: Seed of the run.
        epoch: Epoch number, from 1.
    """
    letters = list(source.options)
    order_kept = bool(speaking_of_places(source.options)) or lists_by_letter(
        source.text, source.options
    )
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
        pictures=_in_order(source.pictures, permutation),
        fields=dict(source.fields),
    )


def _in_order(
    pictures: tuple[QuestionPicture, ...], permutation: Mapping[str, str]
) -> tuple[QuestionPicture, ...]:
    """Return pictures with presented letters, in the order in which prompts show them."""
    shown = {of: letter for letter, of in permutation.items()}
    moved = (replace(one, option=shown[one.option]) if one.option else one for one in pictures)
    return tuple(sorted(moved, key=lambda picture: picture.option))
