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


@pytest.mark.skipif(not EVAL.exists(), reason="no integrations/verifiers/.venv")
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
    command = [
        str(EVAL), "mdagents-team", "--env.taskset.questions", str(questions), "-n", "1",
        "--model", "policy", "--client.base-url", provider.openai_base_url,
        "--client.api-key-var", "POLICY_KEY", "--env.agent.runtime.type", "subprocess",
        "--env.agent.harness.id", "mdagents-team", "--env.agent.harness.team", "basic",
        "--env.agent.harness.command", str(Path(sys.executable).with_name("mdagents")),
        "--no-push", "--no-rich", "-o", "rollouts", *flags,
    ]  # fmt: skip
    environment = bare_environment(POLICY_KEY="key", HOME=str(Path.cwd()))
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=180, check=False
    )
    (written,) = Path("rollouts").glob("*/traces.jsonl")
    (line,) = written.read_text().splitlines()
    (trace,) = json.loads(line)["traces"]
    assert trace["stop_condition"] == stop, done.stderr
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
