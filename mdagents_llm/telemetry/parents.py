"""Parents of spans in other programs, by the W3C's Trace Context.

A client states its span in the header `traceparent`, a program that starts another one in the
variable `TRACEPARENT`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mdagents_llm.extras import needs_extra

with needs_extra("opentelemetry", "--otel"):
    from opentelemetry.context import Context, get_current
    from opentelemetry.trace import get_current_span
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

HEADERS = ("traceparent", "tracestate")
"""Headers of the Trace Context, in lower case."""

_PROPAGATORS = "OTEL_PROPAGATORS"
_TRACE_CONTEXT = "tracecontext"
_NONE = "none"  # switches all propagators off, as in the SDK
_LONGEST = 512  # characters of a header; the W3C asks to pass on that many


def of_headers(headers: Mapping[str, str], variables: Mapping[str, str]) -> Context:
    """Return the context of a client's span; an empty one, for a trace of its own, without any.

    As the W3C demands, a header that cannot be read counts as none.

    Args:
        headers: The headers of `HEADERS` that the client has sent.
        variables: Environment variables; `OTEL_PROPAGATORS` may switch the headers off.
    """
    if not _reads_headers(variables):
        return Context()
    short = {name: value for name, value in headers.items() if len(value) <= _LONGEST}
    return TraceContextTextMapPropagator().extract(short, Context())


def of_process(variables: Mapping[str, str], say: Callable[[str], None]) -> Context:
    """Return the context in which the first span of this process begins.

    That is the current span of a program that calls this one as a library; without one, the span
    that the program which has started this one states in `TRACEPARENT`.

    Args:
        variables: Environment variables.
        say: Displays a line, if `TRACEPARENT` cannot be read.
    """
    given = {name: variables.get(name.upper(), "") for name in HEADERS}
    if get_current_span().get_span_context().is_valid or not given["traceparent"]:
        return get_current()
    context = of_headers(given, variables)
    is_read = get_current_span(context).get_span_context().is_valid
    if _reads_headers(variables) and not is_read:
        say("--otel: TRACEPARENT is in no form of the W3C's; the trace begins here")
    return context


def _reads_headers(variables: Mapping[str, str]) -> bool:
    listed = variables.get(_PROPAGATORS, "").strip() or _TRACE_CONTEXT
    names = [each.strip() for each in listed.split(",")]
    return _TRACE_CONTEXT in names and _NONE not in map(str.lower, names)
