"""Messages of a debate and reporting lines of a panel, as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from mdagents.agents.events import DebateMessage
from mdagents.teams.decision import Panelist


def interaction_table(panel: Sequence[Panelist], messages: Sequence[DebateMessage]) -> str:
    """Return a square table of the directions of messages between experts.

    Columns are headed by row numbers, so that ten experts fit into 80 columns.

    `->`: the row's expert wrote to the column's; `<-`: the reverse; `<->`: both.
    """
    from prettytable import PrettyTable  # few runs show it

    wrote = {(message.sender, message.recipient) for message in messages}
    names = [f"Agent {number} ({expert.emoji})" for number, expert in enumerate(panel, start=1)]
    table = PrettyTable(["", *(str(number) for number in range(1, len(names) + 1))])
    for name, row in zip(names, panel, strict=True):
        cells = [
            _arrow((row.agent, c.agent) in wrote, (c.agent, row.agent) in wrote) for c in panel
        ]
        table.add_row([name, *cells])
    rounds = sorted({(message.round, message.turn) for message in messages})
    counts = [
        f"round {r} turn {t}: {sum((m.round, m.turn) == (r, t) for m in messages)}"
        for r, t in rounds
    ]
    return f"{table}\nMessages: {', '.join(counts) or 'none'}"


def _arrow(to: bool, back: bool) -> str:
    return {(True, True): "<->", (True, False): "->", (False, True): "<-"}.get((to, back), "")


def hierarchy_tree(panel: Sequence[Panelist]) -> str:
    """Return the experts as a tree: each below its superior, independent ones leftmost."""
    lines: list[str] = []

    def draw(parent: str | None, depth: int) -> None:
        for expert in panel:
            if expert.reports_to == parent:
                branch = "   " * (depth - 1) + "└─ " if depth else ""
                lines.append(f"{branch}{expert.emoji} {expert.role}")
                draw(expert.role, depth + 1)

    draw(None, 0)
    return "\n".join(lines)
