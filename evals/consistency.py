"""Checks across the records of a file: order, indices, ids, references, hashes, totals.

Memory does not grow with the file: for a trace, only one hash per open turn is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from evals.manifest import case_list_hash, trace_dataset_hash
from evals.run_logs import INDEX_FIELDS
from exaid_core.trace.events import EventKind, TraceEvent
from exaid_core.trace.rules import TraceRules, late_note
from exaid_core.trace.run_records import decision_id, event_id

Content = Mapping[str, Any]

_RUN_KINDS = ("run_meta", "tokengate_flush", "buffer_decision", "summary_event")
_MANIFEST_KINDS = ("manifest_meta", "provenance", "trace_entry", "summary")
KINDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "exaid.trace": ("trace_meta", "stream_delta", "turn_boundary"),
        "exaid.run": _RUN_KINDS,
        "exaid.manifest": _MANIFEST_KINDS,
    }
)
"""Record kinds by format name."""


class Checks:
    """Checks the records of one file in order, yielding (field, description) for each problem.

    This base class is for files that are checked by their schema alone.
    """

    def __init__(self) -> None:
        self._is_whole = True
        self.line = 0
        """Line number of the current record; set by the caller."""

    def unreadable(self) -> None:
        """Note a record that violates its schema, so that later records are not blamed for it."""
        self._is_whole = False

    def record(self, content: Content) -> Iterator[tuple[str, str]]:
        """Check the next record, which conforms to its schema."""
        return iter(())

    def end(self) -> Iterator[tuple[int, str, str]]:
        """Yield the problems found only at the end of the file: (line, field, description)."""
        return iter(())

    def notes(self) -> Iterator[str]:
        """Yield notes on deviations that readers accept but writers should avoid."""
        return iter(())


class _TraceChecks(Checks):
    """The rules that readers enforce (`TraceRules`), and checks that the trace is complete."""

    def __init__(self) -> None:
        super().__init__()
        self._meta: Content = {}
        self._rules: TraceRules | None = None

    def unreadable(self) -> None:
        super().unreadable()
        if self._rules is not None:
            self._rules.unreadable()

    def record(self, content: Content) -> Iterator[tuple[str, str]]:
        kind = content["record_type"]
        if self._rules is None:
            self._rules = TraceRules(content["case_id"], content.get("t0_emitted_ms"))
            if kind == "trace_meta":
                self._meta = content
                return
            yield "record_type", "a trace begins with a trace_meta record"
        elif kind == "trace_meta":
            yield "record_type", "a second trace_meta record"
            return
        event, last = _event(kind, content), self._rules.last_seq
        if last is not None and event.seq > last + 1:
            yield "seq", f"{event.seq} follows {last}: a gap of {event.seq - last - 1}"
        told = content.get("content_hash")
        for problem in self._rules.check(
            event, content["case_id"], content["t_rel_ms"], told, self.line
        ):
            yield problem.field, problem.what

    def end(self) -> Iterator[tuple[int, str, str]]:
        if self._rules is None:
            return
        for problem in self._rules.wrong_hashes():
            yield problem.line, problem.field, problem.what
        if not self._is_whole:
            return
        for number in self._rules.unended():
            yield self.line, "turn_id", f"turn {number} does not end"
        told = (self._meta.get(name) for name in ("total_turns", "total_deltas"))
        for problem in self._rules.totals(*told):
            yield self.line, problem.field, problem.what

    def notes(self) -> Iterator[str]:
        if self._rules is not None and self._rules.late:
            yield late_note(self._rules.late)


def _event(kind: str, content: Content) -> TraceEvent:
    is_delta = kind == "stream_delta"
    return TraceEvent(
        content["seq"],
        content["t_emitted_ms" if is_delta else "t_ms"],
        content["turn_id"],
        content["agent_id"],
        EventKind.DELTA if is_delta else EventKind(content["boundary"]),
        content["delta_text"] if is_delta else "",
    )


class _RunChecks(Checks):
    """Checks of the order, indices, ids and references of a run log."""

    def __init__(self) -> None:
        super().__init__()
        self._meta: Content | None = None
        self._kind = "run_meta"
        self._last = dict.fromkeys(INDEX_FIELDS, -1)
        self._events: set[str] = set()

    def record(self, content: Content) -> Iterator[tuple[str, str]]:
        kind = content["record_type"]
        if self._meta is None:
            self._meta = content
            if kind != "run_meta":
                yield "record_type", "a run log begins with a run_meta record"
            else:
                return
        if kind == "run_meta":
            yield "record_type", "a second run_meta record"
            return
        if _RUN_KINDS.index(kind) < _RUN_KINDS.index(self._kind):
            yield "record_type", f"{kind} after {self._kind}"
        self._kind = kind
        for name in ("case_id", "variant_id"):
            if content[name] != self._meta[name]:
                yield name, f"{content[name]} in a run log of {self._meta[name]}"
        start, end = content.get("start_seq"), content.get("end_seq")
        if start is not None and end is not None and end < start:
            yield "end_seq", f"{end} is before start_seq {start}"
        yield from self._index(kind, content)
        if kind == "buffer_decision":
            yield from self._decision(content)
        elif kind == "summary_event":
            yield from self._event(content)

    def _index(self, kind: str, content: Content) -> Iterator[tuple[str, str]]:
        name = INDEX_FIELDS[kind]
        index, last = content[name], self._last[kind]
        self._last[kind] = index
        if index <= last:
            yield name, f"{index} comes after {last}"
        elif index != last + 1 and self._is_whole:
            yield name, f"{index} follows {last}" if last >= 0 else f"{index} comes first, not 0"

    def _decision(self, content: Content) -> Iterator[tuple[str, str]]:
        expected = decision_id(content["case_id"], content["variant_id"], content["decision_index"])
        if content["decision_id"] != expected:
            yield "decision_id", f"{content['decision_id']} should be {expected}"
        missing = [i for i in content.get("covered") or () if i > self._last["tokengate_flush"]]
        if missing and self._is_whole:
            yield "covered", f"there is no tokengate_flush {missing[0]}"

    def _event(self, content: Content) -> Iterator[tuple[str, str]]:
        expected = event_id(content["case_id"], content["variant_id"], content["event_index"])
        if content["event_id"] != expected:
            yield "event_id", f"{content['event_id']} should be {expected}"
        if content["event_id"] in self._events:
            yield "event_id", f"{content['event_id']} comes twice"
        latest = content.get("latest_summary_event_id")
        named = [("latest_summary_event_id", latest)] if latest is not None else []
        history = content.get("summary_history_event_ids") or ()
        named += [("summary_history_event_ids", id_) for id_ in history]
        for name, id_ in named:
            if id_ not in self._events and self._is_whole:
                yield name, f"there is no summary {id_} before this one"
        self._events.add(content["event_id"])


class _ManifestChecks(Checks):
    """Checks of the order, totals and hashes of a manifest."""

    def __init__(self) -> None:
        super().__init__()
        self._kind = ""
        self._meta: Content = {}
        self._provenance: Content = {}
        self._summary: Content = {}
        self._entries: list[tuple[str, str, int, int]] = []

    def record(self, content: Content) -> Iterator[tuple[str, str]]:
        kind = content["record_type"]
        if not self._kind and kind != "manifest_meta":
            yield "record_type", "a manifest begins with a manifest_meta record"
        elif self._kind and _MANIFEST_KINDS.index(kind) < _MANIFEST_KINDS.index(self._kind):
            yield "record_type", f"{kind} after {self._kind}"
        elif kind == self._kind != "trace_entry":
            yield "record_type", f"a second {kind} record"
        self._kind = kind
        match kind:
            case "manifest_meta":
                self._meta = content
            case "provenance":
                self._provenance = content
            case "summary":
                self._summary = content
            case "trace_entry":
                case_id = content["case_id"]
                if any(case_id == entry[0] for entry in self._entries):
                    yield "case_id", f"{case_id} comes twice"
                counts = content["delta_count"], content["turn_count"]
                self._entries.append((case_id, content["sha256"], *counts))

    def end(self) -> Iterator[tuple[int, str, str]]:
        if not self._is_whole:
            return
        counted = {
            "total_cases": len(self._entries),
            "total_deltas": sum(entry[2] for entry in self._entries),
            "total_turns": sum(entry[3] for entry in self._entries),
        }
        if not self._provenance:
            yield self.line, "record_type", "there is no provenance record"
        if not self._summary:
            yield self.line, "record_type", "there is no summary record"
        for name, there in counted.items():
            if self._summary and self._summary.get(name) != there:
                yield (
                    self.line,
                    name,
                    f"the summary says {self._summary.get(name)}, the entries {there}",
                )
        # Published manifests hash a different list of cases; see their `case_list_hash_input`.
        told = self._provenance.get("trace_dataset_hash")
        cases_hash = self._provenance.get("case_list_hash", "")
        if told is None or cases_hash != case_list_hash([entry[0] for entry in self._entries]):
            return
        traces = [(entry[0], entry[1]) for entry in self._entries]
        if told != trace_dataset_hash(self._meta.get("mas_run_id", ""), cases_hash, traces):
            yield self.line, "trace_dataset_hash", "it is not that of the entries"


CHECKS: Mapping[str, type[Checks]] = MappingProxyType(
    {
        "exaid.trace": _TraceChecks,
        "exaid.run": _RunChecks,
        "exaid.manifest": _ManifestChecks,
    }
)
"""Checks by format name."""
