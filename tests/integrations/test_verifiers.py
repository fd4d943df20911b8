"""The team as a harness of verifiers: its program, and whole rollouts where verifiers is there.

verifiers needs an environment of its own (docs/how-to/verifiers.md); without
`integrations/verifiers/.venv`, the rollouts are skipped.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.fake_provider import FakeProvider
from tests.mdagents.serve.served import PROMPT
from tests.support.environment import bare_environment

pytestmark = pytest.mark.process

FOLDER = REPOSITORY / "integrations" / "verifiers"
EVAL = FOLDER / ".venv" / "bin" / "vf-eval"
TEAM = (
    "--env.agent.harness.id", "mdagents-team", "--env.agent.harness.team", "basic",
    "--env.agent.harness.command", str(Path(sys.executable).with_name("mdagents")),
)  # fmt: skip
needs_verifiers = pytest.mark.skipif(not EVAL.exists(), reason="no integrations/verifiers/.venv")
ASKED = [{"role": "user", "content": f"{PROMPT}\n\nGive its letter in \\boxed{{}}."}]


def run_program(provider: FakeProvider, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mdagents", "serve", "--port", "0", "--model", "policy",
               "--model-base-url", provider.openai_base_url, "--team", "basic", "--cache", "off",
               "--max-retries", "0", *flags]  # fmt: skip
    job = {"command": command, "request": {"model": "mdagents", "messages": ASKED, "seed": 7}}
    Path("job.json").write_text(json.dumps(job))
    program = [sys.executable, str(FOLDER / "mdagents_team" / "program.py"), "job.json"]
    environment = bare_environment(OPENAI_API_KEY="secret")
    return subprocess.run(
        program, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_program_prints_the_answer_of_the_team(provider: FakeProvider) -> None:
    done = run_program(provider)
    assert done.returncode == 0, done.stderr + done.stdout
    answer = json.loads(done.stdout)
    assert answer["reply"].splitlines()[-1].startswith("\\boxed{")
    assert answer["mdagents"]["calls"] == len(provider.calls) == 5


def test_a_refusal_is_an_empty_reply_and_a_failure_is_none(provider: FakeProvider) -> None:
    provider.fail_next("refusal", times=99)
    refused = run_program(provider)
    assert json.loads(refused.stdout)["reply"] == ""
    assert json.loads(refused.stdout)["mdagents"]["status"] == "refused"
    failed = run_program(provider, "--team", "surgeons")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "--team is 'surgeons'" in failed.stderr


def rollout(provider: FakeProvider, questions: Path, *flags: str) -> dict[str, Any]:
    """The trace of a rollout of the first question."""
    command = [
        str(EVAL), "mdagents-team", "--env.taskset.questions", str(questions), "-n", "1",
        "--model", "policy", "--client.base-url", provider.openai_base_url,
        "--client.api-key-var", "POLICY_KEY", "--env.agent.runtime.type", "subprocess",
        "--no-push", "--no-rich", "-o", "rollouts", *flags,
    ]  # fmt: skip
    environment = bare_environment(POLICY_KEY="key", HOME=str(Path.cwd()))
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=180, check=False
    )
    written = list(Path("rollouts").glob("*/traces.jsonl"))
    assert len(written) == 1, done.stderr
    (line,) = written[0].read_text().splitlines()
    traces: list[dict[str, Any]] = json.loads(line)["traces"]
    (trace,) = traces
    return trace


@needs_verifiers
@pytest.mark.parametrize(
    ("faults", "flags", "stop", "reply"),
    [
        ((), (), "agent_completed", "\\boxed{"),
        (("refusal",), (), "agent_completed", ""),
        (("401",), (), "provider_error", None),
        ((), ("--env.agent.max-turns", "2"), "max_turns", ""),
    ],
)
def test_rollouts(
    provider: FakeProvider,
    faults: tuple[str, ...],
    flags: tuple[str, ...],
    stop: str,
    reply: str | None,
) -> None:
    for fault in faults:
        provider.fail_next(fault, times=99)
    questions = REPOSITORY / "data" / "medqa" / "sample.jsonl"
    trace = rollout(provider, questions, *TEAM, *flags)
    assert trace["stop_condition"] == stop, trace["errors"]
    _is_as_told(trace, reply, len(provider.calls))


def _is_as_told(trace: dict[str, Any], reply: str | None, calls: int) -> None:
    """Check the reply of a trace, and that a rollout without an answer is scored as wrong."""
    if reply is None:
        assert not trace["ok"]
        assert trace["rewards"] == {}
        return
    assert trace["ok"]
    assert len(trace["calls"]) == calls
    assert reply in trace["root_reply"]
    assert trace["metrics"] == {"answered": float(bool(reply))}
    if not reply:
        assert trace["root_reply"] == ""
        assert trace["rewards"]["correct"]["score"] == 0.0


@needs_verifiers
def test_a_question_with_an_empty_option_is_answered(provider: FakeProvider) -> None:
    provider.when(lambda request: request.schema is not None, lambda request: {"answer": "C"})
    options = {"A": "Zinc", "B": "Tin", "C": "Iron", "D": "Lead", "E": ""}
    record = {"question": "Which metal is in hemoglobin?", "options": options, "answer_idx": "C"}
    questions = Path("questions.jsonl")
    questions.write_text(json.dumps(record))
    trace = rollout(provider, questions, *TEAM, "--env.agent.harness.flags.rpm", "600")
    assert trace["root_reply"].endswith("\\boxed{C}")
    assert trace["rewards"]["correct"]["score"] == 1.0


@needs_verifiers
def test_a_file_that_is_no_file_of_questions_is_named_in_one_line() -> None:
    Path("questions.jsonl").write_text('{"question": "Which?", "options": ["a", "b"]}\n')
    command = [str(EVAL.with_name("vf-validate")), "mdagents-team", "--runtime.type", "subprocess",
               "--taskset.questions", "questions.jsonl", "--no-rich"]  # fmt: skip
    environment = bare_environment(HOME=str(Path.cwd()))
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "questions.jsonl line 1: no field says which option is right" in done.stderr
