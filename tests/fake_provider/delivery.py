"""How one reply travels to its client: whole, as a stream, or broken on the way."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import socket
import struct
import time
from dataclasses import dataclass

from aiohttp import web

from tests.fake_provider.call_log import CLIENT_GONE, OK, CallLog, ServedCall
from tests.fake_provider.chat_api import Answer, ChatApi, ErrorReply, SeenRequest, Usage, event
from tests.fake_provider.faults import BILLED_FAULTS, Fault, FaultPlan

_BROKEN_BODY = b'{"choices": [{"index": 0, "message": <html>502 Bad Gateway</html>'
_BROKEN_EVENT = b'data: {"choices": [{"index": 0, "delta": {"content": \n\n'
_CHARACTERS_OF_A_DELTA = 24
_FEWEST_PIECES_TO_BREAK = 6
_NO_LINGER = struct.pack("ii", 1, 0)
_NO_USAGE = Usage()


@dataclass
class Exchange:
    """One request for a reply, from its arrival to its entry in the log.

    The entry is made before the last byte is written, so that a client with the reply finds it, and
    the request no longer in flight.

    Attributes:
        log: Where the entry goes.
        api: The API that the request came through.
        http: The request as HTTP.
        request: What was asked.
        started: When it arrived, monotonic seconds.
        pace: Seconds between two pieces of a stream.
    """

    log: CallLog
    api: ChatApi
    http: web.Request
    request: SeenRequest
    started: float
    pace: float = 0.0

    def __post_init__(self) -> None:
        self._logged = False
        self._in_flight = True

    def error(self, error: ErrorReply, outcome: str) -> web.Response:
        """Answer with an error."""
        self._end(error.status, outcome)
        return json_response(error)

    def client_gone(self) -> None:
        """Note that the client hung up, unless the reply had been sent by then."""
        if not self._logged:
            self._end(0, CLIENT_GONE)

    def leave(self) -> None:
        """Count the request as no longer in flight, once."""
        if self._in_flight:
            self._in_flight = False
            self.log.leave()

    async def deliver(
        self, answer: Answer, fault: Fault | None, plan: FaultPlan
    ) -> web.StreamResponse:
        """Send an answer, or what a fault makes of it.

        Args:
            answer: What the model says.
            fault: What goes wrong.
            plan: How the fault looks.
        """
        streamed_error = fault is Fault.STREAM_ERROR and self.request.streamed
        error = self.api.error(fault, plan, self.request) if fault else None
        if error and fault and not streamed_error:
            return self.error(error, fault)
        if fault is Fault.RESET or fault is Fault.HANG:
            self._end(0, fault)
            return await self._break_off(fault, plan)
        if self.request.streamed:
            return await self._stream(answer, fault, plan)
        return await self._whole(answer, fault, plan)

    async def _whole(
        self, answer: Answer, fault: Fault | None, plan: FaultPlan
    ) -> web.StreamResponse:
        body = json.dumps(self.api.reply(self.request, answer), ensure_ascii=False).encode()
        if fault is Fault.TRUNCATED_BODY or fault is Fault.STALL:
            self._end(200, fault)
            response = web.StreamResponse()
            response.content_length = len(body)
            await response.prepare(self.http)
            await response.write(body[: len(body) // 2])
            return await self._break_off(fault, plan)
        if fault is Fault.MALFORMED_JSON_BODY:
            self._end(200, fault)
            body = _BROKEN_BODY
        else:
            self._end(200, fault or OK, answer.text, answer.usage)
        return web.Response(body=body, content_type="application/json")

    async def _stream(
        self, answer: Answer, fault: Fault | None, plan: FaultPlan
    ) -> web.StreamResponse:
        broken = fault is not None and fault not in BILLED_FAULTS
        size = _CHARACTERS_OF_A_DELTA
        if broken:
            size = max(1, min(size, len(answer.text) // _FEWEST_PIECES_TO_BREAK))
        pieces = [answer.text[at : at + size] for at in range(0, len(answer.text), size)]
        events = list(self.api.events(self.request, answer, pieces))
        if broken:
            events = events[: max(1, len(events) // 2)]
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(self.http)
        said = "".join(text for _, text in events)
        self._end(200, fault or OK, said, _NO_USAGE if broken else answer.usage)
        for data, text in events:
            await response.write(data)
            if text and self.pace:
                await asyncio.sleep(self.pace)
        if fault is Fault.TRUNCATED_BODY or fault is Fault.STALL:
            return await self._break_off(fault, plan)
        if fault is Fault.MALFORMED_JSON_BODY:
            name = b"event: content_block_delta\n" if self.api.names_events else b""
            await response.write(name + _BROKEN_EVENT)
        elif fault is Fault.STREAM_ERROR:
            error = self.api.error(fault, plan, self.request)
            assert error is not None
            await response.write(event(error.body, "error" if self.api.names_events else ""))
        await response.write_eof()
        return response

    async def _break_off(self, fault: Fault, plan: FaultPlan) -> web.StreamResponse:
        """Close the connection; what is returned cannot be sent any more."""
        if fault is Fault.HANG or fault is Fault.STALL:
            await asyncio.sleep(plan.hang_seconds)
        transport = self.http.transport
        if transport is not None and fault is Fault.RESET:
            # Lingering for no time makes the kernel send RST instead of FIN.
            peer = transport.get_extra_info("socket")
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            transport.abort()
        elif transport is not None:
            transport.close()
        return web.Response()

    def _end(self, status: int, outcome: str, reply: str = "", usage: Usage = _NO_USAGE) -> None:
        self._logged = True
        # What hangs stays in flight for as long as it hangs.
        if outcome not in (Fault.HANG, Fault.STALL):
            self.leave()
        asked = {f.name: getattr(self.request, f.name) for f in dataclasses.fields(self.request)}
        call = ServedCall(
            **asked,
            status=status,
            outcome=str(outcome),
            reply=reply,
            usage=usage,
            started=self.started,
            ended=time.monotonic(),
        )
        self.log.add(call.outcome, call)


def json_response(error: ErrorReply) -> web.Response:
    """Return an error as HTTP."""
    headers = {} if error.retry_after is None else {"retry-after": f"{error.retry_after:g}"}
    return web.json_response(error.body, status=error.status, headers=headers)
