"""What the recruiter proposes is put right by rule; case and agent ids are safe."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from exaid_core.trace.events import LONGEST_CASE_ID
from exaid_core.trace.records import logged_case_id
from mdagents.agents.case import Case, make_case_id
from mdagents.agents.events import DebateMessage
from mdagents.agents.prompts import prompt_hashes, render
from mdagents.datasets.questions import present
from mdagents.display.interaction_table import hierarchy_tree, interaction_table
from mdagents.settings import LARGEST_COUNT, OptionOrder, TeamSettings
from mdagents.teams.decision import Panelist
from mdagents.teams.recruitment import (
    Profile,
    TeamMember,
    TeamPlan,
    _unique,
    _with_hierarchy,
    _with_kinds,
)
from tests.mdagents.conftest import SCURVY


def empty_case() -> Case:
    return Case("case-1", present(SCURVY, OptionOrder.ORIGINAL, 0), {}, TeamSettings(), 0)


@given(st.lists(st.text(max_size=8), max_size=10))
def test_names_become_unique_and_keep_their_beginning(names: list[str]) -> None:
    unique = _unique(names)
    assert len({name.lower() for name in unique}) == len(names)
    assert all(
        new.startswith(" ".join(old.split()) or "Clinician")
        for old, new in zip(names, unique, strict=True)
    )


roles = st.sampled_from(["Surgeon", "Nurse", "Pediatrician", "Cardiologist"])
above = st.one_of(st.none(), roles, st.just("Independent"), st.just("Somebody"),
                  st.lists(roles, min_size=2, max_size=3).map(" > ".join))  # fmt: skip


@pytest.mark.sweep
@given(st.lists(st.tuples(roles, above), unique_by=lambda pair: pair[0], min_size=1, max_size=4))
def test_a_hierarchy_has_no_cycle_and_only_known_roles(pairs: list[tuple[str, str | None]]) -> None:
    profiles = _with_hierarchy(empty_case(), [Profile(role, "", parent) for role, parent in pairs])
    parent_of = {profile.role: profile.reports_to for profile in profiles}
    for role in parent_of:
        seen = set()
        current: str | None = role
        while current is not None:
            assert current not in seen, "a cycle"
            seen.add(current)
            current = parent_of[current]


@pytest.mark.parametrize(
    ("reports_to", "expected"),
    [
        ("Cardiologist", "Cardiologist"),
        ("cardiologist", "Cardiologist"),
        ("Cardiologist > Nurse", "Cardiologist"),
        ("Nurse > Cardiologist", None),
        ("Independent", None),
        (None, None),
        ("Astrologer", None),
    ],
)
def test_the_forms_of_a_hierarchy(reports_to: str | None, expected: str | None) -> None:
    profiles = [Profile("Nurse", "", reports_to), Profile("Cardiologist", "")]
    assert _with_hierarchy(empty_case(), profiles)[0].reports_to == expected


kinds = st.lists(st.sampled_from(["initial", "specialist", "final_review"]), min_size=1, max_size=6)


@given(kinds)
def test_there_is_one_initial_team_and_one_review(kinds: list[str]) -> None:
    member = (TeamMember("Surgeon", "", lead=True),)
    plans = [TeamPlan(str(i), "", kind, member) for i, kind in enumerate(kinds)]
    case = empty_case()
    result = [plan.kind for plan in _with_kinds(case, plans)]
    assert result.count("initial") == 1
    assert result.count("final_review") == (len(kinds) > 1)
    changed = sum(before != after for before, after in zip(kinds, result, strict=True))
    assert len(case.repairs) == changed


ids = st.text(min_size=1).filter(str.strip)


@given(ids, ids)
def test_case_ids_are_safe_and_differ(a: str, b: str) -> None:
    assert re.fullmatch(r"case-[A-Za-z0-9-]+", make_case_id(a))
    if a != b:
        assert make_case_id(a) != make_case_id(b)
        assert make_case_id(a, 2) != make_case_id(b)


def test_case_ids_are_readable() -> None:
    assert make_case_id("17") == "case-17"
    assert make_case_id("17", 3) == "case-17-e3"
    assert re.fullmatch(r"case-a-b-[0-9a-f]{6}", make_case_id("a/b"))
    assert make_case_id("17-e3") != make_case_id("17", 3)


def test_case_ids_of_long_ids_are_within_the_limit_and_differ() -> None:
    assert make_case_id("x" * 195) == "case-" + "x" * 195
    pair = ["x" * 190 + "0000002337", "x" * 190 + "0000000467"]  # hashes begin with equal digits
    ids = [*pair, "x" * 196, "x" * 200, "x" * 199 + "y", "a_" * 100, "x" * 199 + "_", "é" * 200]
    made = [make_case_id(id_, epoch) for id_ in ids for epoch in (1, 2, 1000)]
    assert len(set(made)) == len(made)
    for case_id in made:
        assert len(case_id) <= LONGEST_CASE_ID
        assert logged_case_id(case_id) == case_id


def test_a_question_is_never_parsed_as_a_template() -> None:
    text = render("persona", role="$cost {x} $", expertise="$role %s")
    assert "$cost {x} $" in text
    assert "$role %s" in text


def test_every_prompt_has_a_hash() -> None:
    of_teams = prompt_hashes("mdagents", with_exaid=False)
    assert "arbitrate.txt" in of_teams
    assert len(of_teams) >= 15
    of_debate = prompt_hashes("debate", with_exaid=False)
    assert set(of_debate) - set(of_teams) == {"debate/again.txt"}  # its own, and nobody else's
    assert prompt_hashes("my_team.py", with_exaid=False) == of_teams


def test_table_and_tree() -> None:
    panel = [Panelist("a", "Surgeon", "S", None), Panelist("b", "Nurse", "N", "Surgeon")]
    letters = [DebateMessage(1, 1, "a", "b", "x"), DebateMessage(1, 2, "a", "b", "y")]
    table = interaction_table(panel, letters)
    assert "->" in table
    assert "<-" in table
    assert "<->" not in table
    assert "round 1 turn 1: 1, round 1 turn 2: 1" in table
    assert hierarchy_tree(panel).splitlines() == ["S Surgeon", "└─ N Nurse"]
    most = [Panelist(f"a{n}", "Nurse", "\U0001fa7a", None) for n in range(LARGEST_COUNT)]
    assert max(map(cell_len, interaction_table(most, []).splitlines())) <= 80
    assert "<->" in interaction_table(panel, [*letters, DebateMessage(1, 2, "b", "a", "z")])
