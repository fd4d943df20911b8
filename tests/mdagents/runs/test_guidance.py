"""What a near miss is told: the one line that names what was given and what to type instead."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mdagents.teams.names import baseline_names
from tests.conftest import REPOSITORY, SHARED
from tests.fake_provider import FakeProvider
from tests.support.environment import bare_environment
from tests.support.whole_runs import WITH_TRAIN_SPLIT, Run, asked_for

pytestmark = pytest.mark.process

MODELS = {
    "GPT-4o-mini": "openai has no model 'GPT-4o-mini'; did you mean 'gpt-4o-mini'?",
    "gpt 4o mini": "unknown model 'gpt 4o mini'",
    "openai/gpt_4o_mini": "did you mean 'openai/gpt-4o-mini'?",
    "gpt4o-mini": "did you mean 'gpt-4o-mini'?",
    "claude-haiku-4.5": "has no model 'claude-haiku-4.5'; did you mean 'claude-haiku-4-5'?",
    "gemini-2-5-flash-lite": "did you mean 'gemini-2.5-flash-lite'?",
    "GPT-OSS-120b": "did you mean 'gpt-oss-120b'?",
    "gpt-4o-mini,gpt-4o": "--model names 2 models, gpt-4o-mini,gpt-4o; give one, or",
    "openai/gpt-4o-mini, openai/gpt-4o": "--model names 2 models",
    "/models/foo.gguf": "write local/ and its path, local//models/foo.gguf",
    "llama3.gguf": "'llama3.gguf' is a file: write local/ and its path, local/llama3.gguf",
    "models/Foo.GGUF": "local/models/Foo.GGUF",
}  # fmt: skip


def told(run: Run, *arguments: str) -> str:
    """The one line in which a start is refused."""
    status, out, err = run(*arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert not Path("output").exists()
    return err


def test_a_near_miss_of_a_model_is_told(run: Run, provider: FakeProvider) -> None:
    for name, message in MODELS.items():
        assert message in told(run, "--model", name)
    assert run("--model", "openai", "--dry-run")[0] == 0, "the provider's default is no near miss"
    assert "--model-role router names 2 models" in told(run, "--model-role", "router=gpt-4o,o3")
    Path("home").mkdir()
    Path("home/x.gguf").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(Path("home").absolute()))
        file = Path("home/x.gguf").absolute()
        assert f"local/{file}" in told(run, "--model", "~/x.gguf")
        assert f"no GGUF file ~/x.gguf; local/{file}" in told(run, "--model", "local/~/x.gguf")
    assert provider.calls == []


def test_an_endpoint_of_ones_own_may_call_its_models_anything(
    run: Run, provider: FakeProvider
) -> None:
    own = ["--model-base-url", provider.openai_base_url, "--num-samples", "1"]
    assert run("--model", "GPT-4o-mini", "--method", "zero_shot", *own)[0] == 0
    assert {call.model for call in provider.calls} == {"GPT-4o-mini"}


YAML = {
    "model: [a\nb": "line 2, column 2 is not YAML: expected ',' or ']'",
    "model: gpt-4o\nmodel: o3\n": "line 2 has 'model' a second time; leave one of them out",
    "hello": "holds no flags; write one a line, such as num-samples: 20",
    "": "holds no flags",
    "[" * 5000: "is nested too deeply",
    "model: \x00": "is not YAML",
}


def test_a_bad_file_of_flags_is_told_in_the_same_voice(run: Run) -> None:
    assert told(run, "--run-config", "nosuch.yaml") == (
        "error: --run-config nosuch.yaml cannot be read: No such file or directory\n"
    )
    for content, message in YAML.items():
        Path("run.yaml").write_text(content)
        line = told(run, "--run-config", "run.yaml")
        assert line.startswith("error: --run-config run.yaml")
        assert message in line
    Path("run.yaml").write_bytes(b"\xff\xfem\x00")
    assert "run.yaml is not UTF-8 text; save it as UTF-8" in told(run, "--run-config", "run.yaml")


def test_a_switch_by_another_name_is_told(run: Run) -> None:
    for given in ("no", "none", "False", "0"):
        assert "did you mean 'off'?" in told(run, "--exaid", given)
    for given in ("true", "on", "YES"):
        assert "did you mean 'full_exaid'?" in told(run, "--exaid", given)
    assert "did you mean 'off'?" in told(run, "--cache", "no")
    assert "did you mean 'on'?" in told(run, "--cache", "true")


PLACEHOLDERS = (
    "sk-your-key-here", "your-key", "your_api_key", "YOUR_OPENAI_API_KEY", "xxx", "sk-xxxxxxxx",
    "sk-...", "<key>", "<your key>", "{OPENAI_API_KEY}", "changeme", "insert-key-here", "api-key",
)  # fmt: skip


def test_what_stands_for_a_key_is_refused_before_anything_is_sent(
    run: Run, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in PLACEHOLDERS:
        monkeypatch.setenv("OPENAI_API_KEY", key)
        line = told(run, "--num-samples", "1")
        assert f"OPENAI_API_KEY in the environment holds '{key}', which stands for a key" in line
    assert provider.calls == []
    for key in ("test-key", "sk-proj-xY0add", "EMPTY", "yourmoney"):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        assert run("--num-samples", "1", "--method", "zero_shot", "--fresh")[0] == 0


def test_a_missing_key_says_which_file_was_read(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ["--model", "anthropic/claude-haiku-4-5"]
    assert "into .env (there is none here or above)" in told(run, *asked)
    Path(".env").write_text("GROQ_API_KEY=k\n")
    Path("below").mkdir()
    monkeypatch.chdir("below")
    assert "into .env (../.env was read and has none)" in told(run, *asked)


IDLE = {
    "--method cot --difficulty adaptive": "does not route its questions; leave --difficulty out",
    "--method cot --router llm": "does not route its questions; leave --router out",
    "--difficulty basic --router llm": "does not route its questions; leave --router out",
    "--difficulty basic --skip advanced": "sends no question to advanced; leave --skip out",
    "--difficulty basic --num-rounds 3": "--difficulty basic has no such number; leave",
    "--difficulty advanced --num-experts 3": "leave --num-experts out",
    "--difficulty basic,advanced --num-turns 2": "--difficulty basic,advanced has no such number",
    "--method debate --num-turns 2": "--method debate has no such number; leave --num-turns out",
    "--method zero_shot --preset classic": "leave --preset out",
    "--method cot --words opinion=50": "--method cot has no limit 'opinion'; leave --words out",
    "--method cot --model-role recruiter=gpt-4o": "nobody is recruiter; leave --model-role out",
    "--model-role summarizer=gpt-4o": "--exaid off: nobody is summarizer; leave --model-role out",
    "--method cot --show-interaction-table": "nobody writes to anybody",
    "--exaid-wait 5": "EXAID is off; leave --exaid-wait out",
    "--view-port 8000": "without --view there is no live view; leave --view-port out",
    "--view-host=0.0.0.0": "leave --view-host out",
    "--no_open": "leave --no-open out",
    "--split train": "is one file; leave --split out",
    "--fresh --retry-errors": "--fresh answers all questions again; leave --retry-errors out",
    "--dry-run --json": "--dry-run has no results to print; leave --json out",
}  # fmt: skip


def test_a_flag_that_changes_nothing_is_refused(run: Run, provider: FakeProvider) -> None:
    for flags, message in IDLE.items():
        assert message in told(run, *flags.split())
    assert provider.calls == []


def test_what_is_meant_for_several_runs_is_not_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MDAGENTS_NUM_ROUNDS", "2")
    monkeypatch.setenv("MDAGENTS_PRESET", "small")
    Path("run.yaml").write_text("difficulty: adaptive\nview-port: 8000\n")
    files = ["--run-config", "run.yaml", "--num-samples", "1"]
    assert run("--method", "zero_shot", *files)[0] == 0


def test_a_flag_is_idle_exactly_where_it_changes_no_forecast(run: Run) -> None:
    """The list of who uses which number agrees with what is asked."""

    def forecast(*flags: str) -> str:
        status, out, err = run("--dry-run", "--num-samples", "1", *flags)
        assert status == 0, err
        return out

    levels = [["--difficulty", level] for level in ("basic", "intermediate", "advanced")]
    methods = [asked_for(m) for m in baseline_names() if m not in WITH_TRAIN_SPLIT]
    for who in [*levels, *methods]:
        usual = forecast(*who)
        for flag in ("--num-experts", "--num-rounds", "--num-turns", "--num-teams", "--team-size"):
            is_idle = run("--dry-run", *who, flag, "6")[0] == 2
            # The forecast's experts of `reconcile` agree in the first round.
            changes = is_idle or "reconcile" in who or forecast(*who, flag, "6") != usual
            assert changes, (who, flag)
            if is_idle:  # from a variable it is accepted, and changes nothing
                with pytest.MonkeyPatch.context() as patch:
                    patch.setenv(f"MDAGENTS_{flag[2:].replace('-', '_').upper()}", "6")
                    assert forecast(*who) == usual, (who, flag)


def test_prompts_of_kept_replies_are_logged(run: Run) -> None:
    asked = ["--num-samples", "2", "--method", "self_refine"]
    assert run(*asked)[0] == 0
    assert run(*asked, "--log-prompts", "--fresh")[0] == 0
    newest = max(Path("output").glob("*/calls.jsonl"), key=lambda file: file.stat().st_mtime_ns)
    rows = [json.loads(line) for line in newest.read_text().splitlines()]
    assert rows
    for row in rows:
        assert row["cached"]
        assert row["prompt"]
        assert row["reply"]


def test_more_questions_than_there_are_is_a_note(run: Run) -> None:
    note = "NOTE: --num-samples 500 asks for more than there is: sample holds 30 questions"
    assert note in " ".join(run("--num-samples", "500", "--dry-run")[1].split())
    asked = ["--method", "zero_shot", "--num-samples"]
    assert note in " ".join(run(*asked, "500")[2].split())
    assert "asks for more" not in run(*asked, "30", "--fresh")[2]
    _, out, _ = run("--limit", "29-40", "--dry-run")
    assert "--limit 29-40 asks for more than there is" in " ".join(out.split())


def test_a_part_of_a_data_set_does_not_pass_for_the_whole(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path("data/medqa")
    folder.mkdir(parents=True)
    lines = (REPOSITORY / "data" / "medqa" / "sample.jsonl").read_text().splitlines()
    records = [json.loads(line) | {"meta_info": "step1"} for line in lines]
    (folder / "test.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    note = "This file of medqa holds 30 of the 1,273 published questions: scores apply to this"
    asked = ["--data-dir", "data", "--dataset", "medqa", "--method", "zero_shot"]
    status, out, _ = run(*asked)
    assert status == 0
    assert note in " ".join(out.split())
    manifest = json.loads(next(Path("output").glob("*/run.json")).read_text())
    assert manifest["name"] == "gpt-4o-mini_medqa_zero_shot_30samples", "as before"
    assert note in manifest["dataset_notice"]
    assert note in " ".join(run(*asked, "--dry-run")[1].split())
    from mdagents.cli.score import main as score

    assert score(["--html"]) == 0
    (page,) = Path("evaluation").glob("*.html")
    assert "30 of the 1,273 published medqa questions" in page.read_text()
    assert "medqa (30 of 1,273 questions)" in page.read_text()
    capsys.readouterr()


@pytest.mark.skipif(not (SHARED / "medqa").is_dir(), reason="no shared data here")
def test_the_first_questions_of_medqa_are_called_a_part(run: Run) -> None:
    file = str(SHARED / "medqa" / "test.jsonl")
    _, out, _ = run("--dataset", file, "--dry-run", "--num-samples", "500")
    text = " ".join(out.split())
    assert "This file of medqa holds 200 of the 1,273 published questions" in text
    assert "--num-samples 500 asks for more than there is: medqa holds 200 questions" in text


def test_too_few_open_files_are_told_before_anything_is_asked(provider: FakeProvider) -> None:
    """The limit of macOS is 256; one that can be raised is raised in silence."""

    def start(limits: str, *flags: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(REPOSITORY / "main.py"), "--dataset", "medqa-sample",
                   "--num-samples", "2", "--method", "zero_shot", *flags]  # fmt: skip
        return subprocess.run(
            ["sh", "-c", f'{limits} && exec "$@"', "sh", *command],
            env=bare_environment(
                OPENAI_API_KEY="test-key", OPENAI_BASE_URL=provider.openai_base_url
            ),
            capture_output=True,
            text=True,
            check=False,
        )

    refused = start("ulimit -n 200", "--max-connections", "300")
    assert refused.returncode == 2
    assert refused.stderr == (
        "error: --max-connections is 300, which takes 364 open files, and this process may have "
        "200; give --max-connections 136 or fewer, or raise the limit with ulimit -n\n"
    )
    assert provider.calls == []
    assert start("ulimit -Sn 200", "--max-connections", "300").returncode == 0


def test_the_program_is_refused_by_the_flags_of_this_start_alone(run: Run) -> None:
    """A run that is resumed has its settings from run.json, which nobody typed."""
    assert run("--method", "cot", "--num-samples", "2")[0] == 0
    name = next(Path("output").glob("*/run.json")).parent.name
    assert run("--resume", name)[0] == 0
