"""`mdagents serve`: what it prints, whom it lets in, and how it ends."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from mdagents.serve.cli import main
from tests.fake_provider import FakeProvider
from tests.mdagents.serve.served import MODEL, PROMPT
from tests.support.environment import bare_environment
from tests.support.otlp import Collector

pytestmark = [pytest.mark.process, pytest.mark.skipif(sys.platform == "win32", reason="signals")]

BODY = {"model": MODEL, "messages": [{"role": "user", "content": PROMPT}]}


@contextmanager
def program(
    provider: FakeProvider, *arguments: str, **variables: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The program and the line that it prints when it is ready."""
    command = [sys.executable, "-m", "mdagents", "serve", "--port", "0", *arguments]
    environment = bare_environment(
        OPENAI_API_KEY="test-key", OPENAI_BASE_URL=provider.openai_base_url, **variables
    )
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline()
        finally:
            process.kill()


def url_in(line: str) -> str:
    found = re.search(r"http://\S+/v1", line)
    assert found, line
    return found[0]


def post(
    url: str, *, stream: bool = False, headers: dict[str, str] | None = None
) -> httpx2.Response:
    body = BODY | {"stream": stream}
    with httpx2.Client(verify=False) as client:
        return client.post(f"{url}/chat/completions", json=body, timeout=60, headers=headers)


@pytest.mark.parametrize(
    ("number", "stream"),
    [(signal.SIGINT, False), (signal.SIGINT, True), (signal.SIGHUP, False)],
)
def test_ctrl_c_and_a_closed_terminal_let_questions_finish(
    provider: FakeProvider, number: signal.Signals, stream: bool
) -> None:
    with (
        program(provider, "--model", "gpt-4o-mini") as (process, line),
        ThreadPoolExecutor(1) as threads,
    ):
        assert line.startswith("model mdagents/adaptive at http://127.0.0.1:")
        with provider.hold(lambda request: request.index > 0) as hold:
            asked = threads.submit(post, url_in(line), stream=stream)
            hold.wait(1)
            process.send_signal(number)
            assert process.stderr is not None
            told = process.stderr.readline() + process.stderr.readline()
        assert asked.result().status_code == 200
        assert asked.result().text.endswith("data: [DONE]\n\n") is stream
        assert process.wait(30) == 0
        assert "stopping: 1 question in progress may finish; Ctrl-C stops at once" in told
        with pytest.raises(httpx2.ConnectError):
            post(url_in(line))
    (record,) = (json.loads(line) for line in _file("samples.jsonl").read_text().splitlines())
    assert record["status"] == "answered"


def test_a_second_ctrl_c_stops_at_once(provider: FakeProvider) -> None:
    with program(provider) as (process, line), ThreadPoolExecutor(1) as threads:
        hold = provider.hold(lambda request: request.index > 0)
        asked = threads.submit(post, url_in(line))
        hold.wait(1)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        process.stderr.readline()
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert process.stderr.read() == ""
        hold.release()
        assert (
            isinstance(asked.exception(), httpx2.RemoteProtocolError)
            or not asked.result().is_success
        )
    rows = [json.loads(line) for line in _file("calls.jsonl").read_text().splitlines()]
    assert [row["outcome"] for row in rows if row["outcome"] != "aborted"] == ["ok"]
    assert "aborted" in [row["outcome"] for row in rows]


def test_other_machines_need_the_token(provider: FakeProvider) -> None:
    with program(provider, "--host", "0.0.0.0") as (_, line):
        key = line.partition("API key: ")[2].partition(" ")[0]
        url = re.sub(r"//[^:]+:", "//127.0.0.1:", url_in(line))
        assert len(key) > 30
        assert post(url).status_code == 401
        assert post(url, headers={"authorization": f"Bearer {key}"}).status_code == 200
        named = {"authorization": f"Bearer {key}", "host": "mdagents.internal"}
        assert post(url, headers=named).status_code == 200
    own = "a-token-of-my-own"
    with program(provider, MDAGENTS_SERVE_TOKEN=own) as (_, line):
        assert own not in line
        assert post(url_in(line)).status_code == 401
        assert post(url_in(line), headers={"authorization": f"Bearer {own}"}).status_code == 200


def test_wrong_use(provider: FakeProvider) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments, message in (
            (["--team", "basik"], "--team is 'basik' but must be one of adaptive, basic"),
            (["--team", "nowhere.py"], "nowhere.py is not there"),
            (["--team", "few_shot"], "few_shot takes its exemplars from a data set"),
            (["--port", "70000"], "--port is 70000 but must be from 0"),
            (["--port", port], f"port {port} is taken by another program; give another --port"),
            (["--max-queue", "-1"], "--max-queue is -1 but must be 0 to"),
            (["--model", "unheard-of"], "unknown model"),
            (["--host", "192.0.2.1"], "cannot listen at 192.0.2.1"),
        ):
            done = _run(provider, *arguments)
            assert (done.returncode, done.stdout) == (2, ""), arguments
            assert message in done.stderr
            assert done.stderr.count("\n") == 1
    short = _run(provider, MDAGENTS_SERVE_TOKEN="short")
    assert "MDAGENTS_SERVE_TOKEN must be 16 or more" in short.stderr
    assert not list(Path().glob("output/served-*"))


def _run(
    provider: FakeProvider, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mdagents", "serve", "--port", "0", *arguments],
        env=bare_environment(
            OPENAI_API_KEY="test-key", OPENAI_BASE_URL=provider.openai_base_url, **variables
        ),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _file(name: str) -> Path:
    (found,) = Path("output").glob(f"served-*/{name}")
    assert found.stat().st_mode & 0o077 == 0
    return found


def test_inspect_asks_a_team(provider: FakeProvider) -> None:
    """As docs/how-to/serve.md shows it, with the default template of `multiple_choice`."""
    Path("vitamins.py").write_text(
        """
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import choice
from inspect_ai.solver import multiple_choice

OPTIONS = ["Retinol", "Thiamine", "Ascorbic acid"]

@task
def vitamins():
    asked = [("scurvy", "C"), ("beriberi", "B")]
    samples = [
        Sample(input=f"Which vitamin is lacking in {what}?", choices=OPTIONS, target=right)
        for what, right in asked
    ]
    return Task(dataset=MemoryDataset(samples), solver=multiple_choice(), scorer=choice())
"""
    )
    provider.when(lambda request: request.schema is not None, lambda request: {"answer": "C"})
    with program(provider) as (_, line):
        done = subprocess.run(
            [
                sys.executable, "-m", "inspect_ai", "eval", "vitamins.py", "--model",
                "openai-api/team/mdagents/basic", "--display", "none", "--log-format", "json",
                "--log-dir", "logs",
            ],
            env=bare_environment(
                TEAM_BASE_URL=url_in(line), TEAM_API_KEY="any", HOME=str(Path.cwd())
            ),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (log,) = (json.loads(path.read_text()) for path in Path("logs").glob("*.json"))
    assert log["results"]["scores"][0]["metrics"]["accuracy"]["value"] == 0.5
    (usage,) = log["stats"]["model_usage"].values()
    assert usage["input_tokens"] + usage.get("input_tokens_cache_read", 0) == provider.totals.input
    assert usage["output_tokens"] == provider.totals.output


def test_spans_are_sent_until_the_end(provider: FakeProvider) -> None:
    with (
        Collector() as collector,
        program(
            provider, "--model", "gpt-4o-mini", "--otel", OTEL_EXPORTER_OTLP_ENDPOINT=collector.url
        ) as (process, line),
    ):
        parent = f"00-{'ab' * 16}-{'cd' * 8}-01"
        assert post(url_in(line), headers={"traceparent": parent}).status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    (question,) = collector.questions
    assert (question.trace.hex(), question.parent.hex()) == ("ab" * 16, "cd" * 8)
    assert len(collector.calls) == len(_file("calls.jsonl").read_text().splitlines())


def test_flags_of_spans_that_have_no_effect_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--otel-text"]) == 2
    assert "without --otel no spans are made; leave --otel-text out" in capsys.readouterr().err
    assert main(["--otel-traces", "question"]) == 2
    assert "there is no flag --otel-traces" in capsys.readouterr().err
