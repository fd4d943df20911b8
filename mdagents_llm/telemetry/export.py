"""Sends spans to a collector, by OTLP over HTTP, in a thread of its own.

The standard variables say where to (`OTEL_EXPORTER_OTLP_ENDPOINT`, `…_HEADERS`, …) and how
(`OTEL_BSP_*`); the SDK of OpenTelemetry reads them. Nothing here raises or waits while answers are
in progress: a full queue drops its oldest spans, and spans that a collector does not take are
counted.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from mdagents_llm.errors import ConfigError, system_reason
from mdagents_llm.extras import needs_extra
from mdagents_llm.telemetry.light_spans import LightTracer
from mdagents_llm.text import one_line

with needs_extra("opentelemetry", "--otel"):
    import requests
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.metrics import NoOpMeterProvider
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
    from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

SCOPE = "mdagents"
"""Name of the instrumentation scope of the spans."""

_LONGEST_QUEUE = 8192  # spans that wait; about 20 MB
_BATCH_WITH_TEXT = 64  # spans of 20 kB each; collectors take 4 to 20 MB at a time
_TO_SEND_THE_REST = 5.0  # seconds at the end of a run, unless the variable gives others
_TIMEOUT = "OTEL_BSP_EXPORT_TIMEOUT"  # ms; the SDK reads it, but does nothing with it
_LONGEST_TIMEOUT = 600_000  # ms
_IF_IN_TROUBLE = 1.0  # the same, once the collector has failed
_STEP = 0.02  # seconds between two looks at the thread
_LONGEST_CAUSE = 150  # characters


class Export:
    """A tracer, and the thread that sends its spans in batches.

    Args:
        variables: Environment variables, with those of `.env`.
        version: Version of this program.
        say: Called in the thread of the event loop with one line when the collector first fails.
        with_text: Whether spans hold text, so that fewer make a batch.
        service: Name of the program, unless a standard variable gives one.

    Raises:
        ConfigError: A standard variable has a value that cannot be used here.
    """

    def __init__(
        self,
        variables: Mapping[str, str],
        version: str,
        say: Callable[[str], None],
        *,
        with_text: bool,
        service: str = SCOPE,
    ) -> None:
        self._say = say
        self._loop = asyncio.get_running_loop()
        self._cause = ""
        self._is_closing = False
        self.tracer: trace.Tracer | LightTracer
        own = _provider_of_the_program()
        self._batches: _Batches | None = None
        self._provider: TracerProvider | None = None
        if not isinstance(
            own, trace.ProxyTracerProvider
        ):  # the caller's program exports its spans already
            self.tracer = own.get_tracer(SCOPE, version)
            return
        variables = _stripped(variables)
        _check(variables)
        self._to_send_the_rest = _seconds_at_the_end(variables)
        _keep_quiet()
        with _in_environment(variables), _one_line_errors():
            self._exporter = _Watched(variables, self._failed)
            self._batches = _Batches(
                self._exporter,
                max_queue_size=_unless_set(variables, "OTEL_BSP_MAX_QUEUE_SIZE", _LONGEST_QUEUE),
                max_export_batch_size=_unless_set(
                    variables, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", _BATCH_WITH_TEXT
                )
                if with_text
                else None,
                meter_provider=NoOpMeterProvider(),
            )
            self._provider = TracerProvider(
                resource=_resource(service, version),
                shutdown_on_exit=False,
                meter_provider=NoOpMeterProvider(),
            )
            self._provider.add_span_processor(self._batches)
        of_sdk = self.tracer = self._provider.get_tracer(SCOPE, version)
        # Texts are subject to limits, which only the SDK's spans know.
        if not with_text and not isinstance(of_sdk, trace.NoOpTracer):
            scope = InstrumentationScope(SCOPE, version)
            self.tracer = LightTracer(self._provider, self._batches, scope)
        self._endpoint = _endpoint(variables)

    async def close(self) -> str:
        """Send the rest, for 5 seconds at most, or 1 if the collector has failed.

        Returns:
            How many spans the collector has not confirmed and why, on one line; empty if it has
            confirmed all, or if the caller's program sends them.
        """
        provider, batches = self._provider, self._batches
        if provider is None or batches is None:
            return ""
        self._is_closing = True
        # A daemon, so that a collector that never answers does not keep the program from ending.
        closing = threading.Thread(target=provider.shutdown, name="mdagents-otel", daemon=True)
        started = time.monotonic()
        closing.start()
        while closing.is_alive():
            limit = _IF_IN_TROUBLE if self._cause else self._to_send_the_rest
            if time.monotonic() - started > limit:
                slow = f"no answer within {limit:g} s; {_TIMEOUT} (ms) gives it more"
                self._cause = self._cause or slow
                self._exporter.shutdown()
                break
            await asyncio.sleep(_STEP)
        unsent = batches.ended - self._exporter.sent
        self._exporter.forget()
        if not unsent:
            return ""
        cause = self._cause or "the queue was full, as the collector is too slow"
        share = f"{unsent:,} of {batches.ended:,} spans"
        return f"--otel: {share} not confirmed by {self._endpoint}: {cause}"

    def _failed(self, cause: str) -> None:
        """Note that the collector has failed; called in the thread that sends."""
        is_first, self._cause = not self._cause, cause
        if is_first and not self._is_closing:
            line = (
                f"--otel: cannot send spans to {self._endpoint}: {cause}; answers are not affected"
            )
            with suppress(RuntimeError):  # the event loop is closed
                self._loop.call_soon_threadsafe(self._say, line)


class _Batches(BatchSpanProcessor):
    """A batch processor that counts the spans that it is given."""

    ended = 0
    """Number of spans so far."""

    def on_end(self, span: ReadableSpan) -> None:
        if span.context is not None and span.context.trace_flags.sampled:
            self.ended += 1
            super().on_end(span)


class _Watched(SpanExporter):
    """Exporter that counts the spans that arrived and reports failures.

    The SDK only logs why an attempt failed, so this listens to its log. It takes any answer with a
    status below 400 for a success, so this reads how many spans of a batch were not taken.

    Args:
        variables: Environment variables.
        failed: Called with the cause of each failure, in the thread that sends.
    """

    def __init__(self, variables: Mapping[str, str], failed: Callable[[str], None]) -> None:
        session: requests.Session | None = None
        if not any(name.endswith("_CREDENTIAL_PROVIDER") for name in variables):
            session = requests.Session()
            session.hooks["response"].append(self._answered)
        self._inner = OTLPSpanExporter(session=session)
        self._in_batch = self._rejected = 0  # spans of the batch in progress
        self._listener = _Listener(failed)
        self._failed = failed
        self._is_shut = False
        self.sent = 0
        """Number of spans that the collector has taken."""
        _exporter_log().addHandler(self._listener)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._listener.thread = threading.get_ident()
        self._in_batch, self._rejected = len(spans), 0
        result = self._inner.export(spans)
        if result is SpanExportResult.SUCCESS:
            self.sent += self._in_batch - self._rejected
        elif not self._listener.has_heard:
            self._failed("the collector refused them")
        return result

    def _answered(self, response: requests.Response, **_: object) -> None:
        """Note how many spans of a batch the collector has not taken."""
        if not response.ok:
            return  # the SDK logs why
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status_code >= 300:
            self._refuse(f"HTTP {response.status_code}, a redirect; give the address it leads to")
        elif kind == "text/html":
            self._refuse("a web page in answer, so this is no collector")
        else:
            spans, reason = _rejected(response.content, kind)
            if spans > 0:
                why = one_line(reason) or "it gives no reason"
                self._refuse(f"rejected by the collector: {why}", spans)

    def _refuse(self, cause: str, spans: int | None = None) -> None:
        """Note that spans of the batch in progress were not taken, by default all of them."""
        self._rejected = self._in_batch if spans is None else min(spans, self._in_batch)
        self._failed(cause[:_LONGEST_CAUSE])

    def shutdown(self) -> None:
        if not self._is_shut:
            self._is_shut = True
            self._inner.shutdown()  # type: ignore[no-untyped-call]

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return self._inner.force_flush(timeout_millis)

    def forget(self) -> None:
        """Stop listening to the log."""
        _exporter_log().removeHandler(self._listener)


class _Listener(logging.Handler):
    """Passes on the causes of failures that one thread logs."""

    def __init__(self, failed: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._failed = failed
        self.thread = 0
        self.has_heard = False

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self.thread:
            cause = _cause(record)
            self.has_heard = True
            if cause:
                self._failed(cause)


def _rejected(answer: bytes, kind: str) -> tuple[int, str]:
    """Return the number of rejected spans and the reason; (0, "") if an answer tells neither."""
    with suppress(Exception):  # a body that is no answer by the protocol rejects nothing
        if kind == "application/json":
            partial = json.loads(answer)["partialSuccess"]
            return int(partial["rejectedSpans"]), str(partial.get("errorMessage") or "")
        told = ExportTraceServiceResponse.FromString(answer).partial_success
        return told.rejected_spans, told.error_message
    return 0, ""


def _cause(record: logging.LogRecord) -> str:
    """Return the cause of a failure without the address, which may hold a token.

    Empty for a message that only says that the attempts are over.
    """
    arguments = record.args if isinstance(record.args, tuple) else ()
    words = one_line(record.getMessage())
    causes = [each for each in arguments if isinstance(each, Exception)]
    if causes:
        return system_reason(causes[0])
    if "batch code:" in words:
        return "HTTP " + words.partition("batch code: ")[2][:_LONGEST_CAUSE].replace(
            ", reason:", ""
        )
    if words.startswith("Transient error"):
        return words.removeprefix("Transient error ").partition(" encountered")[0][:_LONGEST_CAUSE]
    return "" if "due to timeout, max retries" in words else words[:_LONGEST_CAUSE]


def _exporter_log() -> logging.Logger:
    return logging.getLogger("opentelemetry.exporter.otlp.proto.http.trace_exporter")


def _provider_of_the_program() -> trace.TracerProvider:
    """Return the provider of the program that calls this one; a proxy without any.

    Raises:
        ConfigError: A standard variable names a provider that cannot be loaded.
    """
    log, quiet = logging.getLogger("opentelemetry.util"), logging.NullHandler()
    log.addHandler(quiet)
    try:
        return trace.get_tracer_provider()
    except Exception as error:
        raise ConfigError(
            "--otel: OTEL_PYTHON_TRACER_PROVIDER names no provider that is installed; unset it"
        ) from error
    finally:
        log.removeHandler(quiet)


def _keep_quiet() -> None:
    """Keep the SDK's log off standard error where nobody has set up logging."""
    log = logging.getLogger("opentelemetry")
    if not any(isinstance(handler, logging.NullHandler) for handler in log.handlers):
        log.addHandler(logging.NullHandler())


def _check(variables: Mapping[str, str]) -> None:
    name, protocol = _of_traces(variables, "PROTOCOL", "http/protobuf")
    if protocol != "http/protobuf":
        raise ConfigError(
            f"{name} is {one_line(protocol)[:30]}, but --otel sends http/protobuf; unset it, "
            "and give the collector's HTTP address (port 4318)"
        )
    exporter = variables.get("OTEL_TRACES_EXPORTER", "").strip() or "otlp"
    if exporter != "otlp":
        raise ConfigError(
            f"OTEL_TRACES_EXPORTER is {one_line(exporter)[:30]}, but --otel sends otlp; unset it, "
            "or leave --otel out"
        )
    name, endpoint = _of_traces(variables, "ENDPOINT", "http://localhost")
    try:
        parts = urlsplit(endpoint)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one:
        raise ConfigError(f"{name} must begin with http:// or https:// and a host")


def _of_traces(variables: Mapping[str, str], setting: str, usual: str) -> tuple[str, str]:
    """Return the variable that counts for a setting of the exporter, and its value.

    By the specification, the variable for traces overrides the general one.
    """
    of_traces, general = f"OTEL_EXPORTER_OTLP_TRACES_{setting}", f"OTEL_EXPORTER_OTLP_{setting}"
    name = of_traces if variables.get(of_traces, "").strip() else general
    return name, variables.get(name, "").strip() or usual


def _seconds_at_the_end(variables: Mapping[str, str]) -> float:
    text = variables.get(_TIMEOUT, "").strip()
    if not text:
        return _TO_SEND_THE_REST
    if not (text.isdecimal() and 0 < int(text) <= _LONGEST_TIMEOUT):
        raise ConfigError(f"{_TIMEOUT} must be 1 to {_LONGEST_TIMEOUT} ms")
    return int(text) / 1000


def _endpoint(variables: Mapping[str, str]) -> str:
    """Return the collector's address for messages: scheme, host, port and path alone."""
    base = variables.get("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318")
    own = variables.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    parts = urlsplit(own or base)
    port = f":{parts.port}" if parts.port else ""
    path = parts.path if own else f"{parts.path.rstrip('/')}/v1/traces"
    return f"{parts.scheme}://{parts.hostname}{port}{path}"


def _resource(service: str, version: str) -> Resource:
    """Return what is known of this program; the standard variables come first."""
    stated = {SERVICE_VERSION: version} if version else {}
    attributes = {**stated, **Resource.create().attributes}
    if str(attributes[SERVICE_NAME]).startswith("unknown_service"):
        attributes[SERVICE_NAME] = service
    return Resource(attributes)


def _unless_set(variables: Mapping[str, str], name: str, usual: int) -> int | None:
    return None if name in variables else usual


@contextmanager
def _in_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Let the SDK, which reads the environment of the process alone, see these variables."""
    before = {name: os.environ.get(name) for name in variables if name.startswith("OTEL_")}
    blank = {n: v for n, v in os.environ.items() if n.startswith("OTEL_") and not v.strip()}
    os.environ.update({name: variables[name] for name in before})
    for name in blank.keys() - before.keys():
        del os.environ[name]
    try:
        yield
    finally:
        for name, value in (before | blank).items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _stripped(variables: Mapping[str, str]) -> dict[str, str]:
    """Return variables without blanks around their values, and without blank ones."""
    return {name: value.strip() for name, value in variables.items() if value.strip()}


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Turn the SDK's errors about values of variables, and certificates, into `ConfigError`.

    Raises:
        ConfigError: The SDK refused a value.
    """
    try:
        yield
    except (ValueError, OSError) as error:
        raise ConfigError(
            f"--otel: a variable OTEL_* cannot be used: {one_line(str(error))[:_LONGEST_CAUSE]}"
        ) from error
