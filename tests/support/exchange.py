"""How one reply travels to its client: whole, as a stream, or broken on the way."""

import asyncio
import json
import time
from dataclasses import dataclass

from tests.support.call_log import CLIENT_GONE, OK, CallLog, ServedCall
from tests.support.faults import BILLED_FAULTS, ERROR_FAULTS, Fault, FaultPlan
from tests.support.http_server import HttpConnection
from tests.support.wire import Answer, ChatWire, JsonReply, SeenRequest, Usage, pieces_of

_BROKEN_BODY = b'{"choices": [{"index": 0, "message": <html>502 Bad Gateway</html>'
_BROKEN_EVENT = b'data: {"choices": [{"index": 0, "delta": {"content": \n\n'
_FEWEST_PIECES_TO_BREAK = 6
_NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class Pace:
    """How a stream is cut up.

    Attributes:
        seconds: Time over which its events are spread.
        piece: Characters in each delta.
    """

    seconds: float
    piece: int


@dataclass
class Exchange:
    """One request for a reply, from its arrival to its entry in the log.

    The entry is made before the last byte is written, so that a client with the reply finds it, and
    the request no longer in flight.

    Attributes:
        log: Where the entry goes.
        wire: The API that the request came through.
        connection: Where the reply goes.
        request: What was asked.
        started: When it arrived, monotonic seconds.
    """

    log: CallLog
    wire: ChatWire
    connection: HttpConnection
    request: SeenRequest
    started: float

    def __post_init__(self) -> None:
        self._logged = False
        self._in_flight = True
        self._status = 0
        self._said = ""

    def send_error(self, error: JsonReply, outcome: str) -> None:
        """Answer with an error."""
        self._end(error.status, outcome)
        send_json(self.connection, error)

    def client_gone(self) -> None:
        """Note that the client hung up, unless the reply had been sent by then."""
        if not self._logged:
            self._end(self._status, CLIENT_GONE, self._said)

    def leave(self) -> None:
        """Count the request as no longer in flight, once."""
        if self._in_flight:
            self._in_flight = False
            self.log.leave()

    async def deliver(
        self, answer: Answer, fault: Fault | None, plan: FaultPlan, pace: Pace
    ) -> None:
        """Send an answer, or what a fault makes of it.

        Args:
            answer: What the model says.
            fault: What goes wrong.
            plan: How the fault looks.
            pace: How a stream is cut up.
        """
        if fault in ERROR_FAULTS or (fault is Fault.STREAM_ERROR and not self.request.streamed):
            self.send_error(self.wire.error(fault, plan, self.request), fault)
        elif fault is Fault.RESET:
            self._end(0, fault)
            self.connection.reset()
        elif fault is Fault.HANG:
            self._end(0, fault)
            await asyncio.sleep(plan.hang_seconds)
            self.connection.close()
        elif self.request.streamed:
            await self._stream(answer, fault, plan, pace)
        else:
            await self._send_whole(answer, fault, plan)

    async def _send_whole(self, answer: Answer, fault: Fault | None, plan: FaultPlan) -> None:
        if fault is Fault.MALFORMED_JSON_BODY:
            self._end(200, fault)
            self.connection.reply(200, _BROKEN_BODY)
            return
        body = json.dumps(self.wire.reply(self.request, answer), ensure_ascii=False).encode()
        if fault in (Fault.TRUNCATED_BODY, Fault.STALL):
            self._end(200, fault)
            self.connection.reply(200, body, sent=len(body) // 2)
            await self._break_off(fault, plan)
            return
        self._end(200, fault or OK, answer.text, answer.usage)
        self.connection.reply(200, body)

    async def _stream(
        self, answer: Answer, fault: Fault | None, plan: FaultPlan, pace: Pace
    ) -> None:
        broken = fault is not None and fault not in BILLED_FAULTS
        piece = pace.piece
        if broken:
            piece = max(1, min(piece, len(answer.text) // _FEWEST_PIECES_TO_BREAK))
        events = list(self.wire.events(self.request, answer, pieces_of(answer.text, piece)))
        if broken:
            events = events[: max(1, len(events) // 2)]
        self.connection.begin_stream()
        self._status = 200
        if pace.seconds:
            pause = pace.seconds / len(events)
            for event, text in events[:-1]:
                self.connection.send_events([event])
                self._said += text
                await asyncio.sleep(pause)
            events = events[-1:]
        self._said += "".join(text for _, text in events)
        self._end(200, fault or OK, self._said, _NO_USAGE if broken else answer.usage)
        self.connection.send_events(event for event, _ in events)
        if fault in (Fault.TRUNCATED_BODY, Fault.STALL):
            await self._break_off(fault, plan)
            return
        if fault is Fault.MALFORMED_JSON_BODY:
            self.connection.send_events([_BROKEN_EVENT])
        elif fault is Fault.STREAM_ERROR:
            self.connection.send_events([self.wire.error_event()])
        self.connection.end_stream()

    async def _break_off(self, fault: Fault, plan: FaultPlan) -> None:
        if fault is Fault.STALL:
            await asyncio.sleep(plan.hang_seconds)
        self.connection.close()

    def _end(self, status: int, outcome: str, reply: str = "", usage: Usage = _NO_USAGE) -> None:
        self._logged = True
        # What hangs stays in flight for as long as it hangs.
        if outcome not in (Fault.HANG, Fault.STALL):
            self.leave()
        self.log.add(
            ServedCall(
                index=self.request.index,
                api=self.request.api,
                model=self.request.model,
                roles=self.request.roles,
                messages=self.request.messages,
                body=self.request.body,
                status=status,
                outcome=str(outcome),
                reply=reply,
                usage=usage,
                streamed=self.request.streamed,
                started=self.started,
                ended=time.monotonic(),
            )
        )


def send_json(connection: HttpConnection, reply: JsonReply) -> None:
    """Send a reply that is ready-made."""
    connection.reply(reply.status, json.dumps(reply.body).encode(), headers=reply.headers)
