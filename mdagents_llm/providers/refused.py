"""What a model has refused to take, so that it is not sent again."""

from __future__ import annotations

from collections.abc import Iterable

from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.files.printing import print_line
from mdagents_llm.providers.http_errors import is_refused, one_line

STREAM = "stream"
"""The setting that asks for the text as it is written."""


class Refused:
    """The settings that one model takes no longer part in: seed, temperature and the like.

    A model that refuses a setting refuses every call that has it. The calls are made without it
    from then on; each refusal has its row in the ledger, as `setting_refused`.
    """

    def __init__(self) -> None:
        self._names: set[str] = set()

    def __contains__(self, setting: str) -> bool:
        return setting in self._names

    def raise_for(
        self,
        sent: Iterable[str],
        host: str,
        status: int | None,
        message: str,
        about: str = "",
        code: str = "",
    ) -> None:
        """Note what an error refuses of the settings that were sent, and ask for another attempt.

        Args:
            sent: The settings.
            host: Of the endpoint, for the message.
            status: HTTP status; None for an error inside a reply.
            message: The endpoint's words.
            about: See `is_refused`.
            code: See `is_refused`.

        Raises:
            ProviderError: `setting_refused`, or `stream_refused`: the same call can be made
                without the setting.
        """
        for setting in sent:
            if is_refused(setting, status, message, about, code):
                if setting.lower().startswith(("thinking", "reasoning", "effort")) and (
                    setting not in self._names
                ):
                    print_line(f"NOTE: {host} refuses '{setting}' as it was given: it is left out")
                self._names.add(setting)
                said = f"{status or 'error'} from {host}: {one_line(message)}"
                kind = ErrorKind.STREAM_REFUSED if setting == STREAM else ErrorKind.SETTING_REFUSED
                raise ProviderError(said, kind=kind, status=status)
