"""Drawing of the agents that answer a question, their reporting lines and their messages.

All lengths are in drawing units, which a page scales to its width.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mdagents.agents.events import Member
from mdagents.live.case import Delivered, LiveCase
from mdagents_llm.text import one_line

Point = tuple[float, float]
"""(x, y), with x to the right and y downward."""

NODE_WIDTH, NODE_HEIGHT = 148, 44
"""Width and height of an agent's node."""

_GAP, _ROW_GAP, _PADDING, _TITLE = 22, 44, 10, 18
_MOST_IN_A_ROW = 5
_NARROWEST = 3  # nodes; a page would enlarge a narrower drawing
_LINE, _LINES = 18, 2  # characters and lines of a role
_BEND = 0.16  # sideways bend of an arrow, as a share of its length
_COLORS = 4  # blue, violet, olive, slate
_MARGIN = 14  # for the letter at the corner of a node, and the head of an arrow


@dataclass(frozen=True, slots=True)
class Node:
    """An agent, as a node of the drawing."""

    agent: str
    """`agent_id` of the agent."""
    role: str
    lines: tuple[str, ...]
    """Role, wrapped to fit into the node."""
    x: float
    """Left edge of the node."""
    y: float
    """Top edge of the node."""
    color: int
    """Index of the agent's color, which also marks its turns."""
    letter: str
    """Letter of the answer that the agent holds or gave; empty without one."""
    speaking: bool
    turn: int | None
    """Index of the agent's latest turn; None before its first."""


@dataclass(frozen=True, slots=True)
class Box:
    """A team, as a box around its members."""

    name: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Arrow:
    """Messages from one agent to another."""

    curve: tuple[Point, Point, Point]
    """Quadratic Bézier curve: start, control point, end."""
    sender: str
    """Role of the sender."""
    recipient: str
    """Role of the recipient."""
    color: int
    """Color index of the sender."""
    texts: tuple[str, ...]
    at: tuple[int, ...]
    """Delivery time of each message, in ms since the question started."""
    turn: int | None
    """Index of the turn in which the last message was written."""

    @property
    def path(self) -> str:
        """SVG path data of the curve."""
        (x1, y1), (x, y), (x2, y2) = self.curve
        return f"M{x1:.0f} {y1:.0f} Q{x:.0f} {y:.0f} {x2:.0f} {y2:.0f}"

    @property
    def middle(self) -> Point:
        """Point of the curve that is farthest from the straight line."""
        (x1, y1), (x, y), (x2, y2) = self.curve
        return (x1 + 2 * x + x2) / 4, (y1 + 2 * y + y2) / 4


@dataclass(frozen=True, slots=True)
class Panel:
    """The drawing of all agents, teams and messages."""

    left: float
    """Left edge of the bounding box, including a margin."""
    top: float
    width: float
    height: float
    nodes: tuple[Node, ...]
    boxes: tuple[Box, ...]
    lines: tuple[tuple[float, float, float, float], ...]
    """Reporting lines (x, y, x, y) from an expert to its superior."""
    arrows: tuple[Arrow, ...]
    node_width: int = NODE_WIDTH
    node_height: int = NODE_HEIGHT


def colors_of(case: LiveCase) -> dict[str, int]:
    """Return `agent_id` -> color index, in the order in which agents appear."""
    members = [member.agent for member in case.members]
    agents = dict.fromkeys([*members, *(turn.agent for turn in case.turns)])
    return {agent: number % _COLORS for number, agent in enumerate(agents)}


def roles_of(case: LiveCase) -> dict[str, str]:
    """Return `agent_id` -> role; agents that share a role are numbered in order of their ids."""
    said = {turn.agent: one_line(turn.role) for turn in case.turns}
    roles = {**said, **{member.agent: one_line(member.role) for member in case.members}}
    shared: dict[str, list[str]] = {}
    for agent in sorted(roles):
        shared.setdefault(roles[agent], []).append(agent)
    for role, agents in shared.items():
        for number, agent in enumerate(agents, start=1):
            roles[agent] = f"{role} {number}" if len(agents) > 1 else role
    return roles


def initials_of(role: str) -> str:
    """Return up to two initials of a role, and its number: `EP` for `Emergency physician`, `N2`."""
    words = role.split()
    number = words.pop() if len(words) > 1 and words[-1].isdecimal() else ""
    letters = [word[0].upper() for word in words if word[0].isalnum()]
    return "".join(letters[: 1 if number else 2]) + number


def draw_panel(case: LiveCase, *, is_at_work: bool = True) -> Panel:
    """Lay out the drawing of a question from the agents that are known so far.

    Args:
        case: The question.
        is_at_work: Whether unfinished turns are in progress; False if the run was stopped.
    """
    places, boxes = _placed(case)
    roles, colors, letters = roles_of(case), colors_of(case), _letters(case)
    speaking = {turn.agent for turn in case.speaking if is_at_work}
    latest = {turn.agent: index for index, turn in enumerate(case.turns)}
    nodes = tuple(
        Node(
            agent,
            roles[agent],
            _in_lines(roles[agent]),
            x,
            y,
            colors[agent],
            letters.get(agent, ""),
            agent in speaking,
            latest.get(agent),
        )
        for agent, (x, y) in places.items()
    )
    arrows = tuple(_arrows(case, places, roles, colors))
    corners = [
        *places.values(),
        *((x + NODE_WIDTH, y + NODE_HEIGHT) for x, y in places.values()),
        *((box.x, box.y) for box in boxes),
        *((box.x + box.width, box.y + box.height) for box in boxes),
        *(arrow.middle for arrow in arrows),
    ]
    xs, ys = zip(*corners, strict=True) if corners else ((0.0,), (0.0,))
    width = max(max(xs) - min(xs), _length(_NARROWEST)) + 2 * _MARGIN
    top = min(ys) - _MARGIN
    return Panel(
        (min(xs) + max(xs) - width) / 2,
        top,
        width,
        max(ys) + _MARGIN - top,
        nodes,
        tuple(boxes),
        tuple(_lines(case.members, places)),
        arrows,
    )


def _placed(case: LiveCase) -> tuple[dict[str, Point], list[Box]]:
    """Return the places of all agents and the team boxes.

    Agents that spoke before the panel are above it, agents that spoke after it below.
    """
    members = {member.agent for member in case.members}
    speakers = list(dict.fromkeys(turn.agent for turn in case.turns))
    first = next((n for n, agent in enumerate(speakers) if agent in members), len(speakers))
    above = speakers[:first]
    below = [agent for agent in speakers[first:] if agent not in members]
    teams: dict[str, list[str]] = {}
    for member in case.members:
        teams.setdefault(member.team, []).append(member.agent)
    levels = [] if any(teams) else _levels(case.members)
    width = _width_of([above, below, *levels], teams)
    places: dict[str, Point] = {}
    boxes: list[Box] = []
    y = 0.0

    def add_rows(agents: Sequence[str]) -> None:
        nonlocal y
        for start in range(0, len(agents), _MOST_IN_A_ROW):
            row = agents[start : start + _MOST_IN_A_ROW]
            x = (width - _length(len(row))) / 2
            for number, agent in enumerate(row):
                places[agent] = (x + number * (NODE_WIDTH + _GAP), y)
            y += NODE_HEIGHT + _ROW_GAP

    add_rows(above)
    for level in levels:
        add_rows(level)
    if any(teams):
        y = _add_teams(list(teams.items()), width, y, places, boxes)
    add_rows(below)
    return places, boxes


def _add_teams(
    teams: Sequence[tuple[str, Sequence[str]]],
    width: float,
    y: float,
    places: dict[str, Point],
    boxes: list[Box],
) -> float:
    """Place teams side by side, members one below the other; return the y below the teams."""
    for start in range(0, len(teams), _MOST_IN_A_ROW):
        row = teams[start : start + _MOST_IN_A_ROW]
        each = NODE_WIDTH + 2 * _PADDING
        x = (width - len(row) * each - (len(row) - 1) * _GAP) / 2
        most = max(len(agents) for _, agents in row)
        for name, agents in row:
            tall = _TITLE + len(agents) * (NODE_HEIGHT + _PADDING) + _PADDING
            boxes.append(Box(one_line(name), x, y, each, tall))
            for number, agent in enumerate(agents):
                at = y + _TITLE + _PADDING + number * (NODE_HEIGHT + _PADDING)
                places[agent] = (x + _PADDING, at)
            x += each + _GAP
        y += _TITLE + most * (NODE_HEIGHT + _PADDING) + _PADDING + _ROW_GAP
    return y


def _levels(members: Sequence[Member]) -> list[list[str]]:
    """Return the `agent_id`s of the experts by depth in the reporting hierarchy, top first."""
    by_role = {member.role: member for member in members}
    levels: dict[int, list[str]] = {}
    for member in members:
        depth, seen, above = 0, {member.role}, by_role.get(member.reports_to or "")
        while above is not None and above.role not in seen:
            depth += 1
            seen.add(above.role)
            above = by_role.get(above.reports_to or "")
        levels.setdefault(depth, []).append(member.agent)
    return [levels[depth] for depth in sorted(levels)]


def _width_of(rows: Iterable[Sequence[str]], teams: Mapping[str, object]) -> float:
    longest = max((min(len(row), _MOST_IN_A_ROW) for row in rows), default=0)
    of_teams = 0
    if any(teams):
        count = min(len(teams), _MOST_IN_A_ROW)
        of_teams = count * (NODE_WIDTH + 2 * _PADDING) + (count - 1) * _GAP
    return max(_length(longest), of_teams, _length(1))


def _length(nodes: int) -> float:
    return nodes * NODE_WIDTH + max(nodes - 1, 0) * _GAP


def _letters(case: LiveCase) -> dict[str, str]:
    given = {turn.agent: turn.answer for turn in case.turns if turn.answer is not None}
    return {**given, **case.votes}


def _in_lines(role: str) -> tuple[str, ...]:
    lines = textwrap.wrap(role, _LINE, max_lines=_LINES, placeholder="…")
    return tuple(lines) or ("",)


def _lines(
    members: Sequence[Member], places: Mapping[str, Point]
) -> Iterable[tuple[float, float, float, float]]:
    agents = {member.role: member.agent for member in members if not member.team}
    for member in members:
        above = agents.get(member.reports_to or "")
        if above is not None and above != member.agent:
            (x, y), (to_x, to_y) = places[member.agent], places[above]
            yield x + NODE_WIDTH / 2, y, to_x + NODE_WIDTH / 2, to_y + NODE_HEIGHT


def _arrows(
    case: LiveCase,
    places: Mapping[str, Point],
    roles: Mapping[str, str],
    colors: Mapping[str, int],
) -> Iterable[Arrow]:
    pairs: dict[tuple[str, str], list[Delivered]] = {}
    for sent in case.messages:
        pair = sent.message.sender, sent.message.recipient
        if pair[0] in places and pair[1] in places and pair[0] != pair[1]:
            pairs.setdefault(pair, []).append(sent)
    for (sender, recipient), delivered in pairs.items():
        yield Arrow(
            _curve(places[sender], places[recipient]),
            roles[sender],
            roles[recipient],
            colors[sender],
            tuple(one_line(sent.message.text) for sent in delivered),
            tuple(since_start(case, sent.at) for sent in delivered),
            delivered[-1].said_in,
        )


def since_start(case: LiveCase, at: int | None) -> int:
    """Return ms from the start of the question to a time; 0 if either is unknown."""
    started = case.started_at
    if started is None and case.turns:
        started = case.turns[0].began_at
    return max(0, at - started) if at is not None and started is not None else 0


def _curve(sender: Point, recipient: Point) -> tuple[Point, Point, Point]:
    """Return a curve from the border of one node to the border of another.

    The curve bends to the left of its direction, so that a reply gets a separate curve.
    """
    (x1, y1), (x2, y2) = ((x + NODE_WIDTH / 2, y + NODE_HEIGHT / 2) for x, y in (sender, recipient))
    across, down = x2 - x1, y2 - y1
    flat = abs(down) < NODE_HEIGHT  # side by side: bend around the nodes between
    bend = _BEND + (0.1 if flat else 0.0)
    via = ((x1 + x2) / 2 + bend * down, (y1 + y2) / 2 - bend * across)
    return _border((x1, y1), via), via, _border((x2, y2), via)


def _border(centre: Point, toward: Point) -> Point:
    across, down = toward[0] - centre[0], toward[1] - centre[1]
    scale = min(
        NODE_WIDTH / 2 / abs(across) if across else math.inf,
        NODE_HEIGHT / 2 / abs(down) if down else math.inf,
        1.0,
    )
    return centre[0] + across * scale, centre[1] + down * scale
