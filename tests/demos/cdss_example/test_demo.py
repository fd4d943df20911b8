"""The program: what it prints, its exit statuses, and signals at any time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import httpx2
import pytest

from demos.cdss_example.demo_cdss import main
from tests.conftest import REPOSITORY
from tests.demos.cdss_example.team import CASE, COORDINATES, JUDGES_HEARTS, RECOMMENDS, script
from tests.fake_provider import FakeProvider
from tests.support.environment import bare_environment


@pytest.fixture(autouse=True)
def _surroundings(provider: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    monkeypatch.setenv("COLUMNS", "90")


@pytest.mark.sweep
def test_both_cases(provider: FakeProvider, capsys: pytest.CaptureFixture[str]) -> None:
    script(provider, ["laboratory", "cardiology", "synthesis"])
    assert main([]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Model: openai/gpt-4o-mini. A demonstration, not a medical device")
    assert "troponin T hs at 1 h 142 ng/L (reference below 14, H)" in out
    assert "temperature 39.4 °C" in out
    assert out.count("Action: ECG now, troponin again.") >= 2
    assert out.count("┌─ Agents: ") >= 2
    assert out.count("Spent: agents 6 calls, ") == 2
    assert out.count("; EXAID ") == 2
    assert max(map(len, out.splitlines())) <= 90


def test_without_exaid(provider: FakeProvider, capsys: pytest.CaptureFixture[str]) -> None:
    script(provider, ["synthesis"])
    assert main(["--case", "fever", "--exaid", "off"]) == 0
    out = capsys.readouterr().out
    assert "┌─" not in out
    tokens = provider.totals.input + provider.totals.output
    assert out.endswith(f"Spent: agents 2 calls, {tokens:,} tokens.\n")


def test_a_file_another_policy_and_a_limit(
    provider: FakeProvider, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(CASE))
    script(provider, ["laboratory"])
    flags = ["--short", "--exaid", "turn_end", "--model", "openai/gpt-4.1"]
    assert main(["--case", str(file), *flags]) == 0
    out = capsys.readouterr().out
    assert "Stopped by the limit of steps: the orchestrator wanted laboratory once more." in out
    assert {call.model for call in provider.calls} == {"gpt-4.1"}


def test_a_specialist_that_fails(
    provider: FakeProvider, capsys: pytest.CaptureFixture[str]
) -> None:
    script(provider, ["cardiology", "synthesis"])
    provider.fail_next("context_length", match=JUDGES_HEARTS)
    assert main(["--case", "chest-pain"]) == 0
    assert "cardiology failed; the case continues without it" in capsys.readouterr().out


def test_a_case_that_fails(provider: FakeProvider, capsys: pytest.CaptureFixture[str]) -> None:
    script(provider, ["cardiology", "synthesis"])
    provider.fail_next("context_length", match=RECOMMENDS)
    assert main([]) == 1
    out, err = capsys.readouterr()
    assert "Acute coronary syndrome is likely" in out, "what was said has been shown"
    assert err.startswith("error: chest-pain: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--case", "fevre"], "--case is 'fevre' but must be one of chest-pain, fever, or a file"),
        (["--case", "none.json"], "none.json cannot be read: No such file"),
        (["--modle", "x"], "there is no flag --modle; did you mean '--model'?"),
        (["--model", "nothing"], "unknown model 'nothing'"),
        (["--exaid", "of"], "--exaid is 'of' but must be one of full_exaid"),
        (["--view", "--view-port", "70000"], "--view-port is 70000 but must be from 0"),
        (["--view-port", "1"], "--view-port belongs to --view"),
    ],
)
def test_wrong_use(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: {said}")
    assert err.count("\n") == 1


@pytest.mark.process
def test_what_cannot_be_printed_ends_it(provider: FakeProvider) -> None:
    script(provider, ["synthesis"])
    with Path("/dev/full").open("w") as full, started("--case", "fever", stdout=full) as process:
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err.count("\n")) == (1, 1)
    assert err.startswith("error: the results could not be printed: No space left")


def test_a_case_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.json"
    file.write_text('{"ages": 4}')
    assert main(["--case", str(file)]) == 2
    assert "a clinical case has no field 'ages'; did you mean 'age'?" in capsys.readouterr().err


@contextmanager
def started(
    *flags: str, stdout: IO[str] | int = subprocess.PIPE
) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "demos.cdss_example.demo_cdss", *flags]
    variables = {name: os.environ[name] for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY")}
    with subprocess.Popen(
        command,
        env=bare_environment(PYTHONPATH=str(REPOSITORY), **variables),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.process
@pytest.mark.parametrize(
    ("numbers", "status"),
    [([signal.SIGINT], 130), ([signal.SIGINT] * 3, 130), ([signal.SIGTERM], 143)],
)
@pytest.mark.parametrize("held", [COORDINATES, "exaid"])
def test_a_signal_ends_it_in_one_line(
    provider: FakeProvider, numbers: list[int], status: int, held: str
) -> None:
    script(provider, ["synthesis"])
    match = held if held == COORDINATES else lambda request: _is_of_exaid(request.text)
    with provider.hold(match) as hold, started("--case", "fever") as process:
        hold.wait()
        for number in numbers:
            process.send_signal(number)
        _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (status, "interrupted; run the same command again\n")


def _is_of_exaid(text: str) -> bool:
    return COORDINATES not in text and RECOMMENDS not in text


@pytest.mark.process
def test_the_page_stays_until_ctrl_c(provider: FakeProvider) -> None:
    script(provider, ["synthesis"])
    with started("--case", "fever", "--view", "--view-port", "0", "--no-open") as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        address = next(line for line in lines if "http://" in line).split()[-1]
        assert next(line for line in lines if "stays" in line) == "The page stays until Ctrl-C.\n"
        page = httpx2.get(address)
        assert page.status_code == 200
        assert "script-src 'self'" in page.headers["content-security-policy"]
        assert httpx2.get(address, headers={"host": "elsewhere.example"}).status_code == 400
        with httpx2.stream("GET", f"{address}events") as events:
            received = events.iter_lines()
            first = next(line for line in received if line.startswith("data:"))
            process.send_signal(signal.SIGINT)
            later = list(received)
        assert "ECG now, troponin again." in first
        assert "event: end" in later
        assert process.wait(60) == 0
