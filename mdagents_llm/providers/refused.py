"""Settings that a model has refused, so that they are not sent again."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import NoReturn

from mdagents_llm.chat import ChatMessage
from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.providers.error_text import masked_line
from mdagents_llm.providers.refusals import SYSTEM, is_refused, is_streamed_only
from mdagents_llm.terminal.printing import print_line

STREAM = "stream"
"""Name of the setting that requests streaming."""
WHOLE = "whole"
"""Name for a reply that is not streamed, which some models refuse."""


class Refused:
    """The settings that one model has refused, such as seed or temperature.

    A model that refuses a setting refuses every call with it. From then on calls are made without
    it; each refusal has its ledger row, as `setting_refused`. One that refuses whole replies has
    refused no stream, whatever an error seemed to say before.
    """

    def __init__(self) -> None:
        self._names: set[str] = set()

    def __contains__(self, setting: str) -> bool:
        return setting in self._names

    def taken(self, messages: tuple[ChatMessage, ...]) -> tuple[ChatMessage, ...]:
        """Return a prompt as the model takes it: a refused system prompt begins the first turn."""
        if SYSTEM not in self._names:
            return messages
        system = "".join(f"{one.content}\n\n" for one in messages if one.role == "system")
        if not system:
            return messages
        turns = tuple(one for one in messages if one.role != "system")
        if not turns or turns[0].role != "user":
            turns = (ChatMessage("user", ""), *turns)
        first, size = turns[0], len(system)
        merged = replace(
            first,
            content=system + first.content,
            shared=tuple(size + length for length in first.shared),
            pictures_at=size + first.pictures_at,
        )
        return (merged, *turns[1:])

    def raise_for(
        self,
        sent: Collection[str],
        host: str,
        status: int | None,
        message: str,
        about: str = "",
        code: str = "",
    ) -> None:
        """Record the setting that an error refuses, if any, and raise for another attempt.

        Args:
            sent: Names of the settings that were sent.
            host: Host of the endpoint, for the message.
            status: HTTP status; None for an error inside a reply.
            message: The endpoint's error message.
            about: Setting that the error is about; empty if the endpoint does not name it
                separately.
            code: The endpoint's machine-readable codes.

        Raises:
            ProviderError: A setting was refused (`setting_refused` or `stream_refused`): the same
                call can be made without it.
        """
        if STREAM not in sent and is_streamed_only(status, message):
            self._names.discard(STREAM)
            self._refuse(WHOLE, host, status, message)
        for setting in sent:
            if setting == STREAM and WHOLE in self._names:
                continue
            if is_refused(setting, status, message, about, code):
                if setting.lower().startswith(("thinking", "reasoning", "effort")) and (
                    setting not in self._names
                ):
                    print_line(f"NOTE: {host} refuses '{setting}' as it was given: it is left out")
                self._refuse(setting, host, status, message)

    def _refuse(self, setting: str, host: str, status: int | None, message: str) -> NoReturn:
        self._names.add(setting)
        said = f"{status or 'error'} from {host}: {masked_line(message)}"
        kind = ErrorKind.STREAM_REFUSED if setting == STREAM else ErrorKind.SETTING_REFUSED
        raise ProviderError(said, kind=kind, status=status)
