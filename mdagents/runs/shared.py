"""Resources that the runs of one process share: endpoints, cache, workers, places and stops."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mdagents.runs.budget import Budget
from mdagents.runs.engines.engine import Places
from mdagents.runs.signals import Stops
from mdagents_llm.endpoints import Endpoints
from mdagents_llm.layers.cache import ReplyStore

if TYPE_CHECKING:
    from mdagents.runs.engines.cluster import Cluster


@dataclass(slots=True)
class Shared:
    """Resources that concurrent runs share."""

    endpoints: Endpoints
    replies: ReplyStore | None
    """Reply cache; None: no cache."""
    cluster: Cluster | None
    """Cluster that answers the questions; None: this process does."""
    budget: Budget
    """Budget of all runs together."""
    stops: Stops
    _places: dict[str, Places] = field(default_factory=dict)

    def places(self, endpoint: str, count: int) -> Places:
        """Return the places of an endpoint.

        Args:
            endpoint: Name of the endpoint.
            count: Number of places, used at the first call for the endpoint.
        """
        return self._places.setdefault(endpoint, Places(count))
