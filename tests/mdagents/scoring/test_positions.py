"""Position bias over the orders of epochs: its figures, and when a spread is more than chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, permutations, product

import numpy as np
import pytest

from mdagents.scoring.formatting import as_text
from mdagents.scoring.positions import PositionBias, position_bias
from mdagents.scoring.repeats import repeats
from mdagents.scoring.report import make_report
from mdagents.scoring.report_text import report_parts
from mdagents.scoring.scored_row import ScoredRow
from tests.mdagents.scoring.made_up_runs import row, run_of

Answering = Callable[[str], str]
"""Order of the options -> the presented letter that is answered, or `-`."""


def shown(id_: str, epoch: int, order: str, letter: str, gold: str = "A") -> ScoredRow:
    """An answer in presented letters; the right option is A of the data set."""
    source = order["ABCD".index(letter)] if letter != "-" else "-"
    return replace(
        row(source, id_=id_, epoch=epoch),
        response="" if letter == "-" else letter,
        order=order,
        by_text="".join(sorted("ABCD", key=lambda shown: order["ABCD".index(shown)])),
        options=len(order),
        label="ABCD"[order.index(gold)],
        correct=source == gold,
    )


def questions_of(n: int, epochs: int, answering: Answering, seed: int = 0) -> list[list[ScoredRow]]:
    rng = np.random.default_rng(seed)
    orders = [["".join(rng.permutation(list("ABCD"))) for _ in range(epochs)] for _ in range(n)]
    return [
        [shown(f"q{n}", e, order, answering(order)) for e, order in enumerate(of, start=1)]
        for n, of in enumerate(orders)
    ]


def bias_of(questions: Sequence[Sequence[ScoredRow]]) -> PositionBias:
    bias = position_bias(questions)
    assert bias is not None
    return bias


def test_figures_by_hand() -> None:
    # Two questions, two epochs: the right option stands at A, D and at B, A.
    bias = bias_of(
        [
            [shown("q0", 1, "ABCD", "A"), shown("q0", 2, "DBCA", "A")],
            [shown("q1", 1, "BACD", "B"), shown("q1", 2, "ACBD", "-")],
        ]
    )
    places = bias.places
    assert {letter: (of.n, of.accuracy) for letter, of in places.items()} == {
        "A": (2, 0.5),  # right in epoch 1, not in epoch 2
        "B": (1, 1.0),
        "C": (0, None),
        "D": (1, 0.0),
    }
    # Epoch 1: one A and one B; epoch 2: the only answer is A.
    assert [of.answers for of in places.values()] == [0.75, 0.25, 0, 0]
    assert [of.answers_without_bias for of in places.values()] == [0.25] * 4
    assert bias.accuracy_without_bias == 0.5


def test_who_always_takes_the_first_option_is_biased() -> None:
    bias = bias_of(questions_of(60, 4, lambda order: "A"))
    assert bias.places["A"].answers == 1
    assert bias.places["A"].accuracy == 1
    assert bias.places["B"].accuracy == 0
    assert bias.answers_p < 0.001
    assert bias.accuracy_p < 0.001


def test_who_knows_the_answer_wherever_it_stands_is_not() -> None:
    bias = bias_of(questions_of(60, 4, lambda order: "ABCD"[order.index("A")]))
    assert (bias.accuracy_p, bias.answers_p) == (1, 1)


def _letter_of(source: Iterator[str], order: str) -> str:
    return "ABCD"[order.index(next(source))]


@pytest.mark.sweep
def test_without_bias_a_small_p_is_as_rare_as_it_says() -> None:
    """Who guesses an option, not a place: p below 5 % in at most some of 60 sets."""
    found = []
    for seed in range(60):
        source = iter(np.random.default_rng([seed, 1]).choice(list("ABC"), 60))
        bias = bias_of(questions_of(20, 3, partial(_letter_of, source), seed))
        found += [bias.accuracy_p < 0.05, bias.answers_p < 0.05]
    assert sum(found) <= 14, "expected are 6 of 120"


def test_the_p_value_is_that_of_all_shuffles() -> None:
    """Held against each of the 6^3 shuffles of three questions in three epochs."""
    questions = questions_of(3, 3, lambda order: "A" if order[0] != "D" else "B", seed=5)
    bias = bias_of(questions)

    def spread(given: Sequence[Sequence[ScoredRow]]) -> tuple[float, float]:
        places, golds = [], []
        right = [of.correct for rows in given for of in rows]
        for rows, answers in zip(questions, given, strict=True):
            for of_order, answer in zip(rows, answers, strict=True):
                places.append(of_order.order.index(answer.letter_in(answer)))
                golds.append(of_order.order.index(of_order.source_label))
        mean = sum(right) / 9
        accuracy = answered = 0.0
        for place in range(4):
            here = [r for r, gold in zip(right, golds, strict=True) if gold == place]
            if here:
                accuracy += len(here) * (sum(here) / len(here) - mean) ** 2
            answered += (places.count(place) - 9 / 4) ** 2 / (9 / 4)
        return accuracy, answered

    observed = spread(questions)
    shuffled = [spread(of) for of in product(*(list(permutations(rows)) for rows in questions))]
    for place, p in enumerate((bias.accuracy_p, bias.answers_p)):
        exact = np.mean([of[place] >= observed[place] - 1e-9 for of in shuffled])
        assert p == pytest.approx(exact, abs=0.04)


def test_the_order_of_the_records_makes_no_difference() -> None:
    rows = list(chain.from_iterable(questions_of(40, 3, lambda order: order[-1])))
    figures = repeats(rows)
    np.random.default_rng(1).shuffle(rows)
    assert repeats(rows) == figures


def test_of_one_order_nothing_is_known() -> None:
    same = [[shown("q0", 1, "ABCD", "A"), shown("q0", 2, "ABCD", "B")]]
    assert position_bias(same) is None
    assert position_bias([[replace(of, by_text="") for of in same[0]]]) is None


@pytest.mark.parametrize(("n", "is_told"), [(29, False), (30, True)])
def test_the_report_says_whether_places_matter(n: int, is_told: bool) -> None:
    questions = questions_of(n, 3, lambda order: "A")
    report = make_report(run_of("run", [of for rows in questions for of in rows]))
    text = " ".join(as_text(report_parts(report)).split())
    sentence = "by the place of the option: accuracy differs more than by chance (p = 0.0005)"
    assert (sentence in text) == is_told
    assert ("averaged over the epochs' orders" in text) == is_told
    assert ("places (30 needed)" in text) != is_told
    assert report.repeats is not None
    assert report.repeats.position_bias is not None
