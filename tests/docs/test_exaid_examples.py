"""The examples of docs/how-to/exaid.md run as they are printed there."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from tests.docs.conftest import Run
from tests.docs.page import Page
from tests.fake_provider import FakeProvider, SeenRequest

pytestmark = pytest.mark.process

PAGE = Page("how-to/exaid.md")

SUMMARY = {
    "status_action": "Work-up under way.",
    "key_findings": "Chest pain, hypertension.",
    "differential_rationale": "Cardiac cause until excluded.",
    "uncertainty_confidence": "Low confidence so far.",
    "recommendation_next_step": "ECG and troponin.",
    "agent_contributions": "Each agent did its step.",
}
TO_BE_SUMMARISED = {
    "reasoning": "A step is done.",
    "stream_state": "TOPIC_SHIFT",
    "is_relevant": True,
    "is_novel": True,
    "final_trigger": True,
}
TO_BE_KEPT = TO_BE_SUMMARISED | {"stream_state": "SAME_TOPIC_CONTINUING", "final_trigger": False}


@pytest.fixture(autouse=True)
def _roles(monkeypatch: pytest.MonkeyPatch) -> None:
    for role in ("SUMMARIZER", "BUFFER_AGENT"):
        monkeypatch.setenv(f"{role}_LLM_PROVIDER", "openai")


def _is_for(field: str, request: SeenRequest) -> bool:
    return request.schema is not None and field in request.schema["properties"]


def script(provider: FakeProvider, *, due_at: str) -> None:
    """Let the text `due_at` make a summary due."""

    def judge(request: SeenRequest) -> dict[str, Any]:
        return TO_BE_SUMMARISED if due_at in request.text.rpartition("New:")[2] else TO_BE_KEPT

    provider.when(partial(_is_for, "stream_state"), judge)
    provider.when(partial(_is_for, "status_action"), SUMMARY)


def test_all_examples_of_the_page_are_tested() -> None:
    assert len(PAGE.examples) == 8


def test_alerts_are_found_without_a_model(run: Run) -> None:
    assert run(7).splitlines() == ["['SpO2 dropped to as low as 74']", "[]"]


def test_a_single_agent(provider: FakeProvider, run: Run) -> None:
    script(provider, due_at="Lab results received")
    assert run(0).splitlines() == [
        "Status/Action: Work-up under way.",
        "Key Findings: Chest pain, hypertension.",
        "Differential/Rationale: Cardiac cause until excluded.",
    ]
    assert len(provider.calls) == 4, "three judgements and a summary"
    for trace in ("Reviewing patient symptoms", "Ordering lab tests", "Lab results received"):
        assert trace in provider.calls[-1].text


def test_several_agents(provider: FakeProvider, run: Run) -> None:
    script(provider, due_at="Case analysis complete")
    assert run(1).splitlines() == [
        "Agent Contributions: Each agent did its step.",
        "Status/Action: Work-up under way.",
        "Recommendation/Next Step: ECG and troponin.",
    ]
    for agent in ("Orchestrator", "DiagnosticAgent", "TreatmentAgent"):
        assert agent in provider.calls[-1].text


def test_the_end_summarises_what_was_not_due(provider: FakeProvider, run: Run) -> None:
    script(provider, due_at="what nobody says")
    assert run(0).splitlines()[0] == run(1).splitlines()[1] == "Status/Action: Work-up under way."
    assert len(provider.calls) == 3 + 1 + 4 + 1


def test_streamed_tokens(provider: FakeProvider, run: Run) -> None:
    script(provider, due_at="what nobody says")
    assert run(2).splitlines() == [
        "Before the end: No summaries yet.",
        "Key Findings: Chest pain, hypertension.",
    ]
    (call,) = provider.calls
    assert "Patient presents with chest pain. History of hypertension." in call.text


def test_what_can_be_asked_for(provider: FakeProvider, run: Run) -> None:
    script(provider, due_at="Trace 2")
    assert run(3).splitlines() == [
        "Total summaries: 1",
        "Agent1 summaries: 1",
        "Agent1 trace count: 2",
    ]


def test_templates_names_checks_and_an_export(provider: FakeProvider, run: Run) -> None:
    provider.when(partial(_is_for, "stream_state"), TO_BE_KEPT)
    no_step = SUMMARY | {"recommendation_next_step": "None reported."}
    provider.when(partial(_is_for, "status_action"), no_step)
    lines = run(4).splitlines()
    assert lines[:2] == [
        "┌─ Agents: Dr Chen, LaboratoryAgent",
        "├─ Action: Work-up under way.",
    ]
    assert "├─ Flags: no next step" in lines
    assert "## Summary 1, of Dr Chen, LaboratoryAgent" in lines
    assert "- **Flag:** no next step" in lines


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Receiver]]:
    """Takes the posts of the examples."""
    Receiver.posts, Receiver.status = [], 204
    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("SUMMARIES_URL", f"http://127.0.0.1:{server.server_port}/")
        monkeypatch.setenv("SUMMARIES_SECRET", "between us")
        yield Receiver
        server.shutdown()
        thread.join()


class Receiver(BaseHTTPRequestHandler):
    """Keeps each post: its body and its signature."""

    posts: list[tuple[bytes, str]]
    status: int

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.posts.append((body, self.headers["X-EXAID-Signature"]))
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *words: object) -> None:
        pass


def test_a_webhook_and_its_receiver(
    provider: FakeProvider, run: Run, receiver: type[Receiver]
) -> None:
    script(provider, due_at="what nobody says")
    assert run(5).splitlines() == ["EXAID is ok, tail loss 0%"]
    ((body, signature),) = receiver.posts
    post = json.loads(body)
    assert (post["case_id"], post["status_action"]) == ("case-7", SUMMARY["status_action"])
    names: dict[str, Any] = {}
    exec(PAGE.examples[6], names)
    assert names["is_ours"](body, signature, "between us")
    assert not names["is_ours"](body + b" ", signature, "between us")
    assert not names["is_ours"](body, signature, "another")


def test_a_webhook_that_fails_is_told_of(
    provider: FakeProvider, run: Run, receiver: type[Receiver]
) -> None:
    script(provider, due_at="what nobody says")
    receiver.status = 404
    told, state = run(5).splitlines()
    assert told.startswith("subscriber: WebhookError: 127.0.0.1:")
    assert state == "EXAID is ok, tail loss 0%"
