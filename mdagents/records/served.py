"""Folders in which a server of teams keeps its ledger and its answers."""

from __future__ import annotations

from pathlib import Path

SERVED = "served-"
"""Start of the name of such a folder."""


def is_served(folder: Path) -> bool:
    """Return whether a folder is a server's: it has answers, but no data set and no gold."""
    return folder.resolve().name.startswith(SERVED) and not (folder / "run.json").exists()


def refusal_of_served(folder: Path) -> str:
    """Return why a server's folder is neither scored nor shown, as a message for the user."""
    return (
        f"{folder} was written by mdagents serve: clients' questions have no gold answers, so "
        "there is nothing to score or to show as a run; the debates are in its samples.jsonl"
    )
