"""Who writes in a debate, scripted."""

from __future__ import annotations

import re
from typing import Any

from tests.fake_provider import FakeProvider, SeenRequest

SILENT: dict[str, Any] = {"participate": False, "messages": []}
TASK_OF_A_TURN = "decide whether it helps the panel that you write"


def silence(provider: FakeProvider) -> None:
    """Nobody ever writes to anybody."""
    provider.when(TASK_OF_A_TURN, SILENT)


def chatter(provider: FakeProvider, text: str = "I disagree, think of the gums.") -> None:
    """Everybody always writes to the next expert."""

    def speak(request: SeenRequest) -> dict[str, Any]:
        place = re.search(r"You are expert (\d+) of (\d+)", request.text)
        assert place is not None
        number, count = int(place[1]), int(place[2])
        recipient = number % count + 1
        return {"participate": True, "messages": [{"to": recipient, "text": f"{text} #{number}"}]}

    provider.when(TASK_OF_A_TURN, speak)
