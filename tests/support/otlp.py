"""A collector for tests: takes spans by OTLP over HTTP on loopback."""

from __future__ import annotations

import gzip
import json
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue


@dataclass(frozen=True)
class Event:
    """An event of a span."""

    name: str
    attributes: dict[str, Any]
    at: int
    """Time in ns since 1970 UTC."""


@dataclass(frozen=True)
class Span:
    """A span as it arrived."""

    name: str
    trace: bytes
    id: bytes
    parent: bytes
    """Id of the parent; empty for a root."""
    start: int
    end: int
    is_error: bool
    kind: int
    attributes: dict[str, Any]
    events: list[Event]
    links: list[bytes]
    """Traces that it links to."""
    description: str = ""
    state: str = ""
    """Trace state, as other programs have written it."""


@dataclass
class Collector:
    """A server that takes spans; `with` starts and stops it.

    Attributes:
        status: HTTP status of its answers.
        on_batch: Called with each batch before it is answered.
        bodies: Each request's body, as it came.
    """

    status: int = 200
    on_batch: Callable[[list[Span]], None] = lambda spans: None
    spans: list[Span] = field(default_factory=list)
    resources: list[dict[str, Any]] = field(default_factory=list)
    rejects: int = 0
    """Number of spans of each batch that it claims to reject."""
    reason: str = ""
    """Reason of its rejections."""
    content_type: str = "application/x-protobuf"
    """Content type of its answers; for `application/json`, they are JSON. Empty for none."""
    retry_after: str = ""
    """Header of answers that are not 200; empty for none."""
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.paths.append(self.path)
                collector.headers.append({k.lower(): v for k, v in self.headers.items()})
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                collector.take(body)
                answer = collector.answer()
                self.send_response(collector.status)
                if collector.content_type:
                    self.send_header("content-type", collector.content_type)
                self.send_header("content-length", str(len(answer)))
                if collector.status != 200 and collector.retry_after:
                    self.send_header("retry-after", collector.retry_after)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, body: bytes) -> None:
        self.bodies.append(body)
        request = ExportTraceServiceRequest.FromString(body)
        batch = list(_spans(request))
        self.resources += [_attributes(r.resource.attributes) for r in request.resource_spans]
        self.on_batch(batch)
        if self.status == 200:
            self.spans += batch

    def answer(self) -> bytes:
        response = ExportTraceServiceResponse()
        if self.rejects:
            response.partial_success.rejected_spans = self.rejects
            response.partial_success.error_message = self.reason
        if self.content_type == "application/json":
            partial = {"rejectedSpans": str(self.rejects), "errorMessage": self.reason or None}
            return json.dumps({"partialSuccess": partial}).encode()
        return bytes(response.SerializeToString())

    # What tests ask of the spans.

    def named(self, beginning: str) -> list[Span]:
        return [span for span in self.spans if span.name.startswith(beginning)]

    @property
    def calls(self) -> list[Span]:
        return self.named("chat ")

    @property
    def questions(self) -> list[Span]:
        return self.named("invoke_workflow ")

    def parent_of(self, span: Span) -> Span | None:
        return next((other for other in self.spans if other.id == span.parent), None)

    def sum(self, attribute: str) -> float:
        return math.fsum(span.attributes.get(attribute, 0) for span in self.spans)


def _spans(request: ExportTraceServiceRequest) -> Iterator[Span]:
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Span(
                    name=span.name,
                    trace=span.trace_id,
                    id=span.span_id,
                    parent=span.parent_span_id,
                    start=span.start_time_unix_nano,
                    end=span.end_time_unix_nano,
                    is_error=span.status.code == 2,
                    kind=span.kind,
                    attributes=_attributes(span.attributes),
                    events=[
                        Event(e.name, _attributes(e.attributes), e.time_unix_nano)
                        for e in span.events
                    ],
                    links=[link.trace_id for link in span.links],
                    description=span.status.message,
                    state=span.trace_state,
                )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs if isinstance(pair, KeyValue)}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(entry) for entry in value.array_value.values]
    return getattr(value, str(kind))
