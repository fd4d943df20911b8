"""Checks across the records of a file: order, indices, ids, references, hashes, totals.

Memory does not grow with the file: of a trace, only one hash for each open turn is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from evals.manifest import case_list_hash, trace_dataset_hash
from exaid_core.trace.run_records import decision_id, event_id
from infra.files.text import well_formed

Content = Mapping[str, Any]


class Checks(Protocol):
    """Checks the records of one file in their order; yields (field, what) for each problem."""

    def record(self, content: Content) -> Iterator[tuple[str, str]]:
        """Check the next record, which fits its schema."""
        ...

    def unreadable(self) -> None:
        """Note a record that does not fit its schema, so that others are not blamed for it."""

    def end(self) -> Iterator[tuple[str, str]]:
        """Check the totals after the last record."""
        ...


class NoChecks:
    """For files that are checked by their schema alone."""

    def record(self, content: Content) -> Iterator[tuple[str, str]]:
        """See `Checks.record`."""
        return iter(())

    def unreadable(self) -> None:
        """See `Checks.unreadable`."""

    def end(self) -> Iterator[tuple[str, str]]:
        """See `Checks.end`."""
        return iter(())


@dataclass(slots=True)
class _OpenTurn:
    agent_id: str
    digest: Any = field(default_factory=hashlib.sha256)
    ended: bool = False


class _TraceChecks:
    """Order, time, turns and hashes of a trace."""

    def __init__(self) -> None:
        self._meta: Content | None = None
        self._last_seq: int | None = None
        self._turns: dict[int, _OpenTurn] = {}
        self._deltas = 0
        self._is_whole = True

    def unreadable(self) -> None:
        self._is_whole = False
        self._last_seq = None

    def record(self, content: Content) -> Iterator[tuple[str, str]]:
        kind = content["record_type"]
        if self._meta is None:
            self._meta = content
            if kind != "trace_meta":
                yield "record_type", "a trace begins with a trace_meta record"
            return
        if kind == "trace_meta":
            yield "record_type", "a second trace_meta record"
            return
        if content["case_id"] != self._meta["case_id"]:
            yield "case_id", f"{content['case_id']} in a trace of {self._meta['case_id']}"
        yield from self._order(content["seq"])
        at = content["t_emitted_ms"] if kind == "stream_delta" else content["t_ms"]
        if content["t_rel_ms"] != at - self._meta["t0_emitted_ms"]:
            yield "t_rel_ms", f"{content['t_rel_ms']} is not the record's time less t0_emitted_ms"
        yield from self._turn(kind, content)

    def _order(self, seq: int) -> Iterator[tuple[str, str]]:
        last = self._last_seq
        self._last_seq = seq if last is None else max(seq, last)
        if last is None:
            return
        if seq == last:
            yield "seq", f"{seq} comes twice"
        elif seq < last:
            yield "seq", f"{seq} comes after {last}"
        elif seq > last + 1:
            yield "seq", f"{seq} follows {last}: a gap of {seq - last - 1}"

    def _turn(self, kind: str, content: Content) -> Iterator[tuple[str, str]]:
        number, agent_id = content["turn_id"], content["agent_id"]
        turn = self._turns.get(number)
        if kind == "turn_boundary" and content["boundary"] == "start":
            if turn is not None:
                yield "turn_id", f"turn {number} starts twice"
            self._turns[number] = _OpenTurn(agent_id)
            return
        if turn is None:
            yield "turn_id", f"turn {number} has not started"
            turn = self._turns[number] = _OpenTurn(agent_id)
        if turn.ended:
            yield "turn_id", f"turn {number} has ended already"
        if agent_id != turn.agent_id:
            yield "agent_id", f"{agent_id} speaks in turn {number} of {turn.agent_id}"
        if kind == "stream_delta":
            self._deltas += 1
            turn.digest.update(well_formed(content["delta_text"]).encode())
            return
        turn.ended = True
        told = content.get("content_hash")
        if self._is_whole and told is not None and told != f"sha256:{turn.digest.hexdigest()}":
            yield "content_hash", f"it is not that of the deltas of turn {number}"

    def end(self) -> Iterator[tuple[str, str]]:
        if not self._is_whole:
            return
        meta = self._meta or {}
        for number, turn in self._turns.items():
            if not turn.ended:
                yield "turn_id", f"turn {number} does not end"
        counted = {"total_turns": len(self._turns), "total_deltas": self._deltas}
        for name, there in counted.items():
            if meta.get(name) not in (None, there):
                yield name, f"trace_meta says {meta[name]}, the file holds {there}"


class _RunChecks:
    """Order, indices, ids and references of a run log."""

    _KINDS = ("run_meta", "tokengate_flush", "buffer_decision", "summary_event")
    _INDEX = {  # noqa: RUF012 - a constant
        "tokengate_flush": "flush_index",
        "buffer_decision": "decision_index",
        "summary_event": "event_index",
    }

    def __init__(self) -> None:
        self._meta: Content | None = None
        self._kind = "run_meta"
        self._last = dict.fromkeys(self._INDEX, -1)
        self._events: set[str] = set()
        self._is_whole = True

    def unreadable(self) -> None:
        self._is_whole = False

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
        if self._KINDS.index(kind) < self._KINDS.index(self._kind):
            yield "record_type", f"{kind} after {self._kind}"
        self._kind = kind
        for name in ("case_id", "variant_id"):
            if content[name] != self._meta[name]:
                yield name, f"{content[name]} in a run log of {self._meta[name]}"
        if (content.get("end_seq") or 0) < (content.get("start_seq") or 0):
            yield "end_seq", f"{content['end_seq']} is before start_seq {content['start_seq']}"
        yield from self._index(kind, content)
        if kind == "buffer_decision":
            yield from self._decision(content)
        elif kind == "summary_event":
            yield from self._event(content)

    def _index(self, kind: str, content: Content) -> Iterator[tuple[str, str]]:
        name = self._INDEX[kind]
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

    def end(self) -> Iterator[tuple[str, str]]:
        return iter(())


class _ManifestChecks:
    """Order, totals and hashes of a manifest."""

    _KINDS = ("manifest_meta", "provenance", "trace_entry", "summary")

    def __init__(self) -> None:
        self._kind = ""
        self._meta: Content = {}
        self._provenance: Content = {}
        self._summary: Content = {}
        self._entries: list[tuple[str, str, int, int]] = []
        self._is_whole = True

    def unreadable(self) -> None:
        self._is_whole = False

    def record(self, content: Content) -> Iterator[tuple[str, str]]:
        kind = content["record_type"]
        if not self._kind and kind != "manifest_meta":
            yield "record_type", "a manifest begins with a manifest_meta record"
        elif self._kind and self._KINDS.index(kind) < self._KINDS.index(self._kind):
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

    def end(self) -> Iterator[tuple[str, str]]:
        if not self._is_whole:
            return
        counted = {
            "total_cases": len(self._entries),
            "total_deltas": sum(entry[2] for entry in self._entries),
            "total_turns": sum(entry[3] for entry in self._entries),
        }
        if not self._provenance:
            yield "record_type", "there is no provenance record"
        if not self._summary:
            yield "record_type", "there is no summary record"
        for name, there in counted.items():
            if self._summary and self._summary.get(name) != there:
                yield name, f"the summary says {self._summary.get(name)}, the entries {there}"
        # Published manifests hash another list of cases, as their `case_list_hash_input` says.
        told = self._provenance.get("trace_dataset_hash")
        cases_hash = self._provenance.get("case_list_hash", "")
        if told is None or cases_hash != case_list_hash([entry[0] for entry in self._entries]):
            return
        traces = [(entry[0], entry[1]) for entry in self._entries]
        if told != trace_dataset_hash(self._meta.get("mas_run_id", ""), cases_hash, traces):
            yield "trace_dataset_hash", "it is not that of the entries"


CHECKS: Mapping[str, type[Checks]] = MappingProxyType(
    {
        "exaid.trace": _TraceChecks,
        "exaid.run": _RunChecks,
        "exaid.manifest": _ManifestChecks,
    }
)
"""Name of a format -> its checks."""
