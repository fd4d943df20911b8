"""Display names of agents."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from exaid_core.channel import shown_id, valid_agent_id


class AgentNames:
    """A registry of display names of agents. Prompts and records keep the ids.

    Args:
        names: Initial display names by agent id.

    Raises:
        ValueError: An id or a name cannot be displayed: see `valid_agent_id`.
    """

    def __init__(self, names: Mapping[str, str] = MappingProxyType({})) -> None:
        self._names: dict[str, str] = {}
        for agent_id, name in names.items():
            self.register(agent_id, name)

    def register(self, agent_id: str, name: str) -> None:
        """Set the display name of an agent, replacing any earlier one.

        Raises:
            ValueError: The id or the name cannot be displayed: see `valid_agent_id`.
        """
        self._names[valid_agent_id(agent_id)] = valid_agent_id(name)

    def name_of(self, agent_id: str) -> str:
        """Return the display name of an agent, or its id if it has no name."""
        shown = shown_id(agent_id)
        return self._names.get(shown, shown)
