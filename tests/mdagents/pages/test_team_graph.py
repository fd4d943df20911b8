"""The drawing of a panel: all of it is inside its frame."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdagents.agents.events import DebateMessage, Member
from mdagents.live.case import LiveCase, Turn
from mdagents.pages.team_graph import Arrow, Panel, Point, draw_panel


def panel_of(experts: int, letters: set[tuple[int, int]], *, decided: bool, teams: int) -> Panel:
    members = tuple(
        Member(f"e{n}", f"Role {n}", team=f"Team {n % teams}" if teams else "")
        for n in range(experts)
    )
    case = LiveCase(("1", 1), members=members)
    if decided:
        case.turns.append(Turn("moderator", "Moderator", "decide", 0, "So.", None, 0))
    for sender, recipient in letters:
        case.deliver(DebateMessage(1, 1, f"e{sender}", f"e{recipient}", "Why?"), 0)
    return draw_panel(case)


def along(arrow: Arrow) -> list[Point]:
    (x1, y1), (x, y), (x2, y2) = arrow.curve
    ways = [(step / 20, 1 - step / 20) for step in range(21)]
    return [
        (b * b * x1 + 2 * a * b * x + a * a * x2, b * b * y1 + 2 * a * b * y + a * a * y2)
        for a, b in ways
    ]


@pytest.mark.sweep
@given(
    experts=st.integers(2, 10),
    letters=st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20),
    decided=st.booleans(),
    teams=st.sampled_from([0, 0, 1, 3]),
)
def test_nodes_and_arrows_are_inside_the_frame(
    experts: int, letters: set[tuple[int, int]], decided: bool, teams: int
) -> None:
    panel = panel_of(experts, letters, decided=decided, teams=teams)
    points = [point for arrow in panel.arrows for point in along(arrow)]
    points += [(node.x, node.y) for node in panel.nodes]
    points += [(node.x + panel.node_width, node.y + panel.node_height) for node in panel.nodes]
    points += [(box.x + box.width, box.y + box.height) for box in panel.boxes]
    for x, y in points:
        assert panel.left + 5 <= x <= panel.left + panel.width - 5
        assert panel.top + 5 <= y <= panel.top + panel.height - 5


def test_arrows_around_others_widen_the_frame() -> None:
    silent = panel_of(3, set(), decided=False, teams=0)
    both = panel_of(3, {(0, 2), (2, 0)}, decided=False, teams=0)
    assert both.top < silent.top
    assert both.top + both.height > silent.top + silent.height


def test_who_spoke_before_the_panel_is_above_it_and_who_spoke_after_it_below() -> None:
    members = tuple(Member(agent, agent, team="Team") for agent in ("lead", "assistant"))
    case = LiveCase(("1", 1), members=members)
    for agent in ("recruiter", "debater", "lead", "recruiter", "coordinator"):
        case.turns.append(Turn(agent, agent, "", 0, "So.", None, 0))
    height = {node.agent: node.y for node in draw_panel(case).nodes}
    assert height["recruiter"] == height["debater"] < height["lead"] < height["coordinator"]
