"""A chat over a WebSocket: one turn at a time, reported step by step."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from fastapi import WebSocket, WebSocketDisconnect
from pydantic import BaseModel, ValidationError

from demos.medagen.conversation import Conversation
from demos.medagen.limits import Admission, LimitError
from demos.medagen.schemas import (
    Event,
    FinalAnswer,
    Language,
    Refused,
    RulesResult,
    TriageInput,
    TriageRequest,
    TriageResult,
)
from demos.toolkit.sessions import UnknownSessionError
from mdagents_llm.errors import BenchError, ConfigError

NO_CONVERSATION = "there is no such conversation; begin a new one"
"""Message for another user's conversation and for an unknown one, which look the same."""
FAILED = "something went wrong here; try again"
"""Message that hides an internal error from the client."""

_MOST_STEPS = 64
"""Maximum number of steps queued for a slow client; further steps are dropped."""


class Assistant(Protocol):
    """Interface of the assistant behind the chat.

    A `user_id` is not a login: whoever knows it acts as that user. It separates users only if it
    cannot be guessed, like the random id that the page generates.
    """

    async def triage(
        self, request: TriageRequest, on_event: Callable[[Event], None] = ...
    ) -> TriageResult:
        """Answer a message; if the model fails, answer by the rules.

        Raises:
            UnknownSessionError: The session does not exist or belongs to another user.
            SessionBusyError: A turn of the session is in progress.
            ConfigError: The message is empty.
        """
        ...

    def rules(self, given: TriageInput, language: Language) -> RulesResult:
        """Return the result of the rules. It may be called from several threads."""
        ...

    async def conversation(self, session_id: str, user_id: str) -> Conversation:
        """Return a conversation.

        Raises:
            UnknownSessionError: The conversation does not exist or belongs to another user.
        """
        ...


class Chat:
    """One chat over a WebSocket.

    Only one turn is in progress at a time; a message that arrives meanwhile is refused. A client
    that disconnects cancels its turn.

    Args:
        socket: WebSocket that has already been accepted.
        assistant: Assistant that answers.
        admission: Rate and concurrency limits.
        host: Address of the client.
    """

    def __init__(
        self, socket: WebSocket, assistant: Assistant, admission: Admission, host: str
    ) -> None:
        self._socket = socket
        self._assistant = assistant
        self._admission = admission
        self._host = host
        self._is_busy = False

    async def run(self) -> None:
        """Answer messages until the client disconnects."""
        turn: asyncio.Task[None] | None = None
        async with asyncio.TaskGroup() as turns:
            # Receive even during a turn: this is how a disconnect is noticed.
            while (text := await self._received()) is not None:
                if self._is_busy:
                    await self._send(Refused(message="wait for the answer, then write again"))
                else:
                    self._is_busy = True
                    turn = turns.create_task(self._turn(text))
            if turn is not None:
                turn.cancel()

    async def _received(self) -> str | bytes | None:
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            return None
        return message.get("text") or message.get("bytes") or ""

    async def _turn(self, text: str | bytes) -> None:
        steps: asyncio.Queue[Event] = asyncio.Queue(_MOST_STEPS)

        def show(step: Event) -> None:
            if not isinstance(step, FinalAnswer) and not steps.full():
                steps.put_nowait(step)

        async with asyncio.TaskGroup() as group:
            sending = group.create_task(self._send_steps(steps))
            end = await self._answer(text, show)
            await steps.join()
            sending.cancel()
        await self._send(end)
        self._is_busy = False  # no await since the send: whoever has read the answer may continue

    async def _send_steps(self, steps: asyncio.Queue[Event]) -> None:
        while True:
            await self._send(await steps.get())
            steps.task_done()

    async def _answer(self, text: str | bytes, show: Callable[[Event], None]) -> Event:
        try:
            self._admission.check_client(self._host)
            request = TriageRequest.model_validate_json(text)
            self._admission.check_user(request.user_id)
            with self._admission.turn():
                return FinalAnswer(result=await self._assistant.triage(request, show))
        except ValidationError as error:
            return Refused(message=sentence_of(error.errors(include_input=False)))
        except UnknownSessionError:
            return Refused(message=NO_CONVERSATION)
        except (LimitError, ConfigError) as error:
            return Refused(message=str(error))
        except BenchError:
            return Refused(message=FAILED)

    async def _send(self, event: BaseModel) -> None:
        # Send ASCII: a lone surrogate in a model's text could not be encoded otherwise.
        text = json.dumps(event.model_dump(mode="json"))
        # The socket may have been closed by either side: `run` notices it and ends the turn.
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):
            await self._socket.send_text(text)


def sentence_of(errors: Sequence[Any]) -> str:
    """Return the first problem of a request, quoting nothing of it but field names.

    Args:
        errors: Errors as pydantic lists them.
    """
    kind, place, problem = errors[0]["type"], errors[0]["loc"], str(errors[0]["msg"])
    if kind == "json_invalid":
        return "the request is no JSON; send one object"
    names = [str(part) for part in place if part not in ("body", "query")]
    if kind == "extra_forbidden":
        where = ".".join(names[:-1]) or "the request"  # the last name was invented by the client
        return f"{where} has a field that is not known; leave it out"
    return f"{'.'.join(names) or 'the request'}: {problem[:1].lower()}{problem[1:]}"
