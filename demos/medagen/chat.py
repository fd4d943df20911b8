"""A chat over a socket: turns one after the other, each shown step by step."""

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
"""What is said of another user's conversation, and of one that never was: the same."""
FAILED = "something went wrong here; try again"
"""What is said where the reason is nobody's business."""

_MOST_STEPS = 64
"""Steps that wait for a client that reads slowly; what comes then it is not told."""


class Assistant(Protocol):
    """What answers.

    A `user_id` is no login: whoever knows it is that user. It keeps those apart who do not know
    each other's, so it has to be one that nobody guesses, as the page's is.
    """

    async def triage(
        self, request: TriageRequest, on_event: Callable[[Event], None] = ...
    ) -> TriageResult:
        """Answer a message; where the model fails, by the rules.

        Raises:
            UnknownSessionError: The session is another user's, or not there.
            SessionBusyError: A turn of it is under way.
            ConfigError: The message is empty.
        """
        ...

    def rules(self, given: TriageInput, language: Language) -> RulesResult:
        """Return what the rules say; called from several threads."""
        ...

    async def conversation(self, session_id: str, user_id: str) -> Conversation:
        """Return a conversation.

        Raises:
            UnknownSessionError: It is another user's, or not there.
        """
        ...


class Chat:
    """One socket.

    One turn is under way at a time; a message that comes meanwhile is refused. A client that goes
    away cancels its turn.

    Args:
        socket: Accepted already.
        assistant: What answers.
        admission: What lets messages in.
        host: The address of the client.
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
        """Answer until the client goes away."""
        turn: asyncio.Task[None] | None = None
        async with asyncio.TaskGroup() as turns:
            # Always awaited, also in a turn: that is how one notices that the client is gone.
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
        self._is_busy = False  # in the same breath: who has read the answer may go on

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
        # In ASCII: half a surrogate pair of a model's cannot be sent otherwise.
        text = json.dumps(event.model_dump(mode="json"))
        # Closed meanwhile, by either side: `run` is told so, too, and ends the turn.
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):
            await self._socket.send_text(text)


def sentence_of(errors: Sequence[Any]) -> str:
    """Return what is wrong with a request, of which no more is repeated than names of fields.

    Args:
        errors: As pydantic lists them.
    """
    kind, place, problem = errors[0]["type"], errors[0]["loc"], str(errors[0]["msg"])
    if kind == "json_invalid":
        return "the request is no JSON; send one object"
    names = [str(part) for part in place if part not in ("body", "query")]
    if kind == "extra_forbidden":
        where = ".".join(names[:-1]) or "the request"  # the last is a name that the client made up
        return f"{where} has a field that is not known; leave it out"
    return f"{'.'.join(names) or 'the request'}: {problem[:1].lower()}{problem[1:]}"
