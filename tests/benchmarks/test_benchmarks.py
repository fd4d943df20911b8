"""Every benchmark runs and prints its table. No test asserts a speed."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx2
import pytest

from benchmarks import (
    alerts,
    exaid,
    exaid_langgraph,
    faults,
    harness,
    intervals,
    medagen,
    memory,
    overhead,
    providers,
    retrieval,
    scoring,
    startup,
    study,
    teams,
    texts,
    throughput,
    view,
)
from benchmarks.harness import (
    BASIC,
    SAMPLE,
    BenchmarkError,
    Program,
    Provider,
    judged,
    lines_of,
    parse,
    records,
    workspace,
    write_questions,
)
from mdagents.agents.replies import recruitment
from mdagents.datasets.dataset import open_dataset
from mdagents_llm.json_schema import reply_schema
from tests.conftest import REPOSITORY
from tests.fake_provider import FakeProvider

Main = Callable[[Sequence[str]], int]

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="a child's memory and CPU time are read the Linux way"
)


@pytest.mark.process
@pytest.mark.parametrize(
    ("main", "arguments", "lines"),
    [
        pytest.param(
            retrieval.main,
            "--passages 4",
            ["SQLite: 40 questions, 12 documents", "SQLite: a search in 4 passages"],
            id="retrieval",
        ),
        pytest.param(
            alerts.main,
            "",
            ["development", "held-out 1", "held-out 2", "held-out 3", "held-out 4"],
            id="alerts",
        ),
        pytest.param(
            medagen.main,
            "--chats 2 --seconds 0.8 --latency 0.01 --deadline 1",
            ["2 chats at once", "errors", "model hangs: answers below urgent"],
            id="medagen",
        ),
        pytest.param(
            throughput.main,
            "--latency 0.01 --single 1 --questions 4 --in-flight 4 --rounds 1",
            [
                "basic: wall / (3 x latency)",
                "advanced: wall / (8 x latency)",
                "start to end / ideal",
                "first request to last reply / bare client's",
            ],
            id="throughput",
        ),
        pytest.param(
            view.main,
            "--questions 2 --in-flight 2 --rounds 1 --readers 2",
            [
                "wall time of a run / without a view",
                "CPU of a run / of all but its feed",
                "server: most memory",
                "from a word said until it is in a reader's event, median",
            ],
            id="view",
        ),
        pytest.param(
            teams.main,
            "--questions 1 --message-words 100",
            ["advanced, 3 teams of 3", "few_shot", "everybody against half, messages of 100 words"],
            id="teams",
        ),
        pytest.param(
            providers.main,
            "--only batch --questions 4",
            ["anthropic", "requests submitted twice", "price in a batch / at once"],
            id="providers",
        ),
        pytest.param(
            providers.main,
            "--only refusals",
            ["preset", "tool_choice, temperature", "the schema stands in the prompt"],
            id="refusals",
        ),
        pytest.param(
            overhead.main,
            "--few 1 --many 4 --rounds 1 --replies 1 --no-aiohttp --profile",
            [
                "The text of a reply that is streamed in 400 deltas",
                "main.py / bare client, typed create",
                "mdagents_llm: layers",
                "post(cast_to=",
            ],
            id="overhead",
        ),
        pytest.param(
            memory.main,
            "--few 4 --many 12",
            ["growth per 1,000 questions, EXAID full_exaid", "highest peak"],
            id="memory",
        ),
        pytest.param(
            startup.main,
            "--questions 40 --finished 2 --rounds 1 --imports",
            ["fresh start to first request", "later than a fresh one", "openai"],
            id="startup",
        ),
        pytest.param(
            scoring.main,
            "--records 300 --rounds 1",
            ["json.loads of each line", "scoring the lines: wall", "scoring the array: peak"],
            id="scoring",
        ),
        pytest.param(
            intervals.main,
            "--simulations 4",
            ["Accuracies", "Differences", "effective answers", "below 93%"],
            id="intervals",
        ),
        pytest.param(
            texts.main,
            "--length 200 --rounds 1",
            ["terms", "grounding, of the support", "'no cardiac arrest '", "worst ratio"],
            id="texts",
        ),
        pytest.param(
            exaid_langgraph.main,
            "--rounds 1 --latency 0.01 --latency-spread 0.01 --closing 0.2",
            ["at work: wall / without", "hanging: wall / without", "runs with another result"],
            id="exaid_langgraph",
        ),
        pytest.param(
            faults.main,
            "--questions 4 --latency 0.01 --rounds 1",
            ["questions lost", "calls / good calls", "wall / fault-free wall"],
            id="faults",
        ),
        pytest.param(
            faults.main,
            "--kill --kills 1 --kill-questions 6 --cache off",
            ["calls redone beyond the calls of open questions", "same records"],
            id="faults-kill",
        ),
        pytest.param(
            exaid.main,
            "--questions 1 --latency 0.01 --retries 0 --rounds 1 --default-questions 1 "
            "--default-connections 16 --kills 1 --kill-questions 2 --sum-questions 8",
            [
                "full_exaid: EXAID tokens / team tokens",
                "newest word to summary",
                "10 times slower than the team: wall time / off",
                "failing always: questions answered otherwise",
                "lying: questions answered otherwise",
            ],
            id="exaid",
        ),
    ],
)
def test_a_benchmark_prints_its_table(
    main: Main, arguments: str, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments.split()) == 0
    printed = capsys.readouterr().out
    assert "cores" in printed.splitlines()[0]
    assert "load average" in printed.splitlines()[0]
    for line in lines:
        assert line in printed


@pytest.mark.parametrize("load", [0.2, 1.7])
def test_a_busy_machine_is_told(
    load: float, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (load, load, load))
    harness.show_machine("test")
    assert ("WARNING" in capsys.readouterr().out) is (load > 1)


def test_quick_changes_the_defaults_only() -> None:
    def parser() -> argparse.ArgumentParser:
        made = argparse.ArgumentParser()
        made.add_argument("--questions", type=int, default=1000)
        return made

    assert parse(parser(), [], {"questions": 10}).questions == 1000
    assert parse(parser(), ["--quick"], {"questions": 10}).questions == 10
    assert parse(parser(), ["-q", "--questions", "3"], {"questions": 10}).questions == 3


def test_verdicts() -> None:
    assert judged("x", 1.304, 1.3).verdict == "met"
    assert judged("x", 1.306, 1.3).verdict == "MISSED"
    assert judged("x", 0, 0, digits=0).verdict == "met"
    assert judged("x", 1, 0, digits=0).verdict == "MISSED"


def test_the_questions_are_real_and_different(tmp_path: Path) -> None:
    write_questions(tmp_path / "many.jsonl", 70)
    many = open_dataset(str(tmp_path / "many.jsonl"), tmp_path)
    texts = {many.load(entry).text for entry in many.index}
    assert len(texts) == 70
    sample = open_dataset(str(SAMPLE), tmp_path)
    first = sample.load(sample.index[0])
    assert first.text in many.load(many.index[30]).text
    assert many.load(many.index[30]).options == first.options


def test_a_resumed_question_differs_by_its_answer_alone(tmp_path: Path) -> None:
    whole = {"question_id": "1", "predicted": "A", "restart": 0, "wall_seconds": 1.0}
    for output, record in (
        ("whole", whole),
        ("resumed", {**whole, "restart": 1, "wall_seconds": 2.0}),
        ("other", {**whole, "predicted": "B"}),
    ):
        (tmp_path / output).mkdir()
        (tmp_path / output / "run.json").write_text(json.dumps([record]), encoding="utf-8")
    records_of = study.Study(tmp_path, {}, []).records
    assert records_of("whole") == records_of("resumed") != records_of("other")


@pytest.mark.process
def test_what_the_provider_counts() -> None:
    with workspace(3) as place, Provider("--count-prompts") as provider:
        state = place.new_state()
        ended = place.run(provider, state, *BASIC, "--num-samples", "2")
        stats = provider.stats()
        assert (ended.status, len(records(state))) == (0, 2)
        assert lines_of(state, "samples.jsonl") == 2
        assert stats.arrivals == stats.prompts == stats.outcomes["ok"] == 10
        assert 0 < stats.first_arrival <= stats.last_arrival
        assert ended.wall_seconds >= stats.last_arrival - stats.first_arrival
        assert ended.cpu_seconds > 0
        provider.reset()
        assert provider.stats().arrivals == 0
    assert not place.folder.exists()


@pytest.mark.process
@pytest.mark.parametrize("stdin", ["</dev/null", "<&-"])
def test_a_provider_without_an_input_serves_until_a_signal(stdin: str) -> None:
    command = f'exec "$0" -m benchmarks.provider {stdin}'
    with subprocess.Popen(
        ["sh", "-c", command, sys.executable],
        cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["openai_base_url"]
        assert httpx2.get(f"{url.removesuffix('/v1')}/__stats__").status_code == 200
        process.terminate()
        assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == 0


@pytest.mark.process
def test_a_provider_ends_with_its_input() -> None:
    command = [sys.executable, "-m", "benchmarks.provider"]
    done = subprocess.run(
        command, cwd=REPOSITORY, input="", capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.process
def test_replies_are_the_same_in_every_process(provider: FakeProvider) -> None:
    """Hash randomisation differs between processes; replies must not."""
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "Which?"}],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "x", "schema": reply_schema(recruitment(3))},
        },
    }
    with Provider() as process:
        bases = (provider.openai_base_url, process.base_url)
        here, there = (httpx2.post(f"{base}/chat/completions", json=body) for base in bases)
    assert here.status_code == 200
    assert here.json() == there.json()


@pytest.mark.process
def test_a_program_that_fails_says_why() -> None:
    with workspace(1) as place, Provider() as provider:
        program = place.start(provider, place.new_state(), "--no-such-flag")
        with pytest.raises(BenchmarkError, match="no-such-flag"):
            program.finish()
        with pytest.raises(BenchmarkError, match="ended without a call"):
            provider.wait_for_arrival(program)


@pytest.mark.process
def test_a_killed_program_has_a_status_and_no_memory(tmp_path: Path) -> None:
    program = Program(
        [sys.executable, "-c", "import signal; signal.pause()"], tmp_path, {"PATH": ""}
    )
    program.kill()
    assert program.wait().status == -9
    assert program.memory() == 0


def test_error_texts_are_told_from_what_the_model_says() -> None:
    said = "The electrocardiogram shows sinus tachycardia without ischaemic changes."
    record = {"response": {"analysis": said}, "opinions": [{"reasoning": said}]}
    assert faults.error_texts([record]) == 0
    record["opinions"] = [{"reasoning": "Error code: 429 - Rate limit reached"}]
    assert faults.error_texts([record]) == 1


def test_layers_of_a_profile() -> None:
    ours = str(REPOSITORY / "mdagents_llm" / "layers" / "retry.py")
    assert overhead.layer_of(ours, "generate") == "mdagents_llm: layers, ledger"
    theirs = "/x/lib/python3.11/site-packages/openai/_base_client.py"
    assert overhead.layer_of(theirs, "request") == "openai"
    assert overhead.layer_of("~", "<built-in method posix.fsync>") == "fsync"
    assert overhead.layer_of("~", "<built-in method builtins.len>") == "other built-in functions"
