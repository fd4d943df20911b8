"""The names by which readers know agents."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from exaid_core.channel import shown_id, valid_agent_id


class AgentNames:
    """A registry of agents and their names for readers. Prompts and records keep the ids.

    Args:
        names: Agent id -> name, of agents that are known already.

    Raises:
        ValueError: As `register` does.
    """

    def __init__(self, names: Mapping[str, str] = MappingProxyType({})) -> None:
        self._names: dict[str, str] = {}
        for agent_id, name in names.items():
            self.register(agent_id, name)

    def register(self, agent_id: str, name: str) -> None:
        """Give an agent a name, instead of the one that it has.

        Raises:
            ValueError: The id or the name cannot be shown: see `valid_agent_id`.
        """
        self._names[valid_agent_id(agent_id)] = valid_agent_id(name)

    def name_of(self, agent_id: str) -> str:
        """Return the name of an agent; its id if it has none."""
        shown = shown_id(agent_id)
        return self._names.get(shown, shown)
