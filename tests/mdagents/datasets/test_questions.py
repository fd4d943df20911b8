"""The order in which options are presented, and that it is known afterwards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdagents.datasets.option_places import speaking_of_places
from mdagents.datasets.pictures.question_picture import QuestionPicture
from mdagents.datasets.questions import LETTERS, Question, SourceQuestion, present
from mdagents.runs.identity import identity
from mdagents.runs.options import read_config, read_options
from mdagents.settings import OptionOrder


def a_source(*options: str, id_: str = "q", gold: str = "A") -> SourceQuestion:
    return SourceQuestion(id_, "Which?", dict(zip(LETTERS, options, strict=False)), gold)


def order(question: Question) -> str:
    return "".join(question.permutation.values())


texts = st.text(min_size=1).filter(str.strip)


@pytest.mark.sweep
@given(
    st.lists(texts, min_size=2, max_size=10),
    st.data(),
    st.integers(),
    st.sampled_from(OptionOrder),
    st.integers(1, 5),
)
def test_presenting_permutes_options_and_keeps_track(
    options: list[str], data: st.DataObject, seed: int, how: OptionOrder, epoch: int
) -> None:
    source = a_source(*options, gold=data.draw(st.sampled_from(LETTERS[: len(options)])))
    question = present(source, how, seed, epoch)
    assert list(question.options) == list(source.options)
    assert sorted(question.permutation.values()) == sorted(source.options)
    assert all(question.options[s] == source.options[o] for s, o in question.permutation.items())
    assert question.permutation[question.gold] == source.gold
    assert question == present(source, how, seed, epoch)
    if how is OptionOrder.ORIGINAL or speaking_of_places(source.options):
        assert order(question) == "".join(source.options)


def test_the_gold_letter_moves_over_questions() -> None:
    sources = [a_source("one", "two", "three", id_=str(i)) for i in range(50)]
    assert {present(s, OptionOrder.SHUFFLED, 0).gold for s in sources} == {"A", "B", "C"}


def test_the_first_epoch_is_what_it_always_was() -> None:
    source = a_source("one", "two", "three", "four", "five", id_="sample-001")
    for how in (OptionOrder.SHUFFLED, OptionOrder.SAME):
        assert order(present(source, how, 0)) == "DCEAB"
        assert order(present(source, how, 0, epoch=1)) == "DCEAB"


def test_each_epoch_has_a_permutation_of_its_own_unless_one_is_asked_for() -> None:
    source = a_source(*"stuvwxyz")
    epochs = range(1, 21)
    shuffled = {order(present(source, OptionOrder.SHUFFLED, 0, epoch)) for epoch in epochs}
    assert len(shuffled) == 20
    assert len({order(present(source, OptionOrder.SAME, 0, epoch)) for epoch in epochs}) == 1
    golds = {present(source, OptionOrder.SHUFFLED, 0, epoch).gold for epoch in range(1, 101)}
    assert golds == set("ABCDEFGH"), "over many epochs the right option is everywhere"


def test_options_that_speak_of_places_are_not_moved() -> None:
    source = a_source("Iron", "Zinc", "Gold", "Both A and C")
    for epoch in range(1, 10):
        question = present(source, OptionOrder.SHUFFLED, epoch, epoch)
        assert (order(question), question.order_kept) == ("ABCD", True)
    assert not present(a_source("Iron", "Zinc"), OptionOrder.ORIGINAL, 0).order_kept


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ("Which? A. Iron B. Zinc\nGive the reason.", True),
        ("Iron (A) or (B) Zinc? (A) Iron", True),
        ("Does **a)** Iron or **b)** Zinc rust?", True),
        ("Which? 1. Iron 2. Zinc Why?", False),
        ("Which? B. Iron A. Zinc Why?", False),
        ("Is it Iron, A. Zinc or B. Gold?", False),
    ],
)
def test_options_that_the_question_lists_by_letter_are_not_moved(text: str, is_kept: bool) -> None:
    source = replace(a_source("Iron", "Zinc"), text=text)
    assert present(source, OptionOrder.SHUFFLED, 0).order_kept is is_kept


def test_identical_option_texts_count_as_right() -> None:
    question = present(a_source("same", "other", "same "), OptionOrder.ORIGINAL, 0)
    assert question.right_letters() == ["A", "C"]
    assert replace(question, gold="").right_letters() == []


def test_options_that_show_the_same_picture_count_as_right() -> None:
    source = a_source("the knee", "the knee", "the knee", "the knee")
    of = [("A", "one.png", ""), ("B", "copy.png", ""), ("C", "one.png", "left")]
    pictures = tuple(
        QuestionPicture(Path(name), option=letter, caption=caption) for letter, name, caption in of
    )
    question = present(replace(source, pictures=pictures), OptionOrder.ORIGINAL, 0)
    assert question.right_letters(["same", "same", "same"]) == ["A", "B"], "C has a caption"
    assert question.right_letters(["one", "two", "one"]) == ["A"]
    assert question.right_letters() == ["A"], "nobody saw what A shows"


def identity_of(*flags: str) -> str:
    return identity(read_config(read_options(flags, {})), {}, "items")


def test_runs_that_show_the_same_are_the_same_run() -> None:
    assert (
        identity_of()
        == identity_of("--option-order", "same")
        != identity_of("--option-order=original")
    )
    several, same, original = (
        identity_of("--epochs", "2", "--option-order", order) for order in OptionOrder
    )
    assert len({several, same, original}) == 3
