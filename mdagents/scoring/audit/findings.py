"""Findings of a case that agents name, and words that they repeat, compared by word."""

from __future__ import annotations

from collections.abc import Iterable, Set
from functools import lru_cache

from exaid_core.checks.normal_form import Wording, runs_of

_GENERIC = """
able about above additional admission admitted after again also although among another appears
appropriate around association based because been before being below best between body both brought
care cause caused causes clinic clinical come comes concerning condition currently daily day days
denies department describe described despite developed diagnosis does done due during each
emergency evaluation examination explains exam findings first following follows from further given
greater have having hospital however hour hours include includes including initial into last later
laboratory least left less like likely made make male management mechanism medical medication
medications medicine minutes month months more morning most mother much negative next normal noted
notes obtained often other over past patient patients performed period physical physician positive
present presentation presented presents previous prior procedure questions recent recently regular
remarkable reports result results reveals right several should show shows significant similar since
some start started states step study studies such suggest symptoms taken takes than that their then
therapy there these they this those three through time times today treated treatment under unknown
unremarkable upon used using very visit vital week weeks well were what when which while will with
within without woman work would year years
"""
"""Words of questions of examinations that are no finding of a patient."""

_ECHO = 0.5
"""Minimum share of four-word runs that another has said for a message to be an echo."""
_FEWEST_RUNS = 5
"""Minimum number of four-word runs for a message to be judged an echo: eight words."""


@lru_cache(maxsize=64)
def wording(text: str) -> Wording:
    """Return the words of a text; kept for the texts of the last questions."""
    return Wording(text)


@lru_cache(maxsize=1)
def _generic() -> frozenset[str]:
    return frozenset(Wording(_GENERIC).about)


class Findings:
    """The words of a case by which findings are told: those of the question, not of its options.

    Words are compared by their first five letters; words of three letters are ignored, numbers are
    not. It is a comparison of words, not of meaning: a finding that an agent paraphrases is missed.

    Args:
        question: Text of the question.
        options: Texts of the options.
    """

    def __init__(self, question: str, options: Iterable[str]) -> None:
        self._case = Wording(question).about - Wording("\n".join(options)).about - _generic()

    def named(self, text: Wording) -> set[str]:
        """Return the words of the case that a text names."""
        return text.about & self._case


Runs = Set[tuple[str, ...]]
"""Runs of four words."""


def is_echo(text: Wording, said: Runs, own: Runs = frozenset()) -> bool:
    """Return whether at least half of the four-word runs of a text are in `said`, not in `own`."""
    if len(text.words) < _FEWEST_RUNS + 3:
        return False
    runs = list(runs_of(text.words))
    return sum(run in said and run not in own for run in runs) >= _ECHO * len(runs)
