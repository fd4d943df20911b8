"""Each data set has a card, whose facts are those of sources.py."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mdagents.datasets.dataset import SAMPLE_NAME, TRIAGE_NAME, VQA_SAMPLE_NAME
from mdagents.datasets.sources import KNOWN, SHIPPED, about_of
from scripts.data_set_cards import FOLDER, GROUPED, names, with_facts

CARDS = sorted(FOLDER.glob("*.md"))


def test_each_data_set_has_a_card() -> None:
    assert {*names(), "README", "embedded-model"} == {card.stem for card in CARDS}
    assert {SAMPLE_NAME, TRIAGE_NAME, VQA_SAMPLE_NAME} == {*SHIPPED}
    of_others = {name for name in KNOWN if not name.startswith(f"{GROUPED}/")}
    assert {*SHIPPED, *of_others, GROUPED} == {*names()}


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.stem)
def test_the_facts_are_those_of_the_sources(card: Path) -> None:
    page = card.read_text(encoding="utf-8")
    assert page == with_facts(page), "run: python -m scripts.data_set_cards"


def test_a_card_says_what_is_known_to_be_wrong() -> None:
    for name in names():
        page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
        assert f"<!-- facts of {name}: " in page
        known = re.search(
            r"^## Known problems\n\n(.+?)\n\n## Fields$", page, re.DOTALL | re.MULTILINE
        )
        assert known, name
        assert known[1].startswith("- "), name


def test_terms_of_a_data_set_are_found_by_the_name_of_a_run() -> None:
    for name in (*KNOWN, *SHIPPED):
        about = about_of(name)
        assert about is not None
        assert about.licence
    assert about_of("medqa-train") == about_of("medqa")
    assert about_of("mine") is None
