"""A whole run through `main`: what is on the screen, on the disk, and in the exit status."""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from dotenv import dotenv_values

from mdagents.display import accuracy_so_far
from mdagents.records.manifest import RunManifest, run_name
from mdagents.records.sample import SampleRecord
from mdagents.runs.program import called_as
from mdagents.scoring.formatting import interval
from mdagents.scoring.report import make_report
from mdagents.scoring.rows import read_output
from mdagents.scoring.run_verdict import run_verdict
from mdagents_llm.config import read_variables
from mdagents_llm.proportions import wilson
from tests.conftest import REPOSITORY
from tests.fake_provider import FakeProvider
from tests.support.environment import bare_environment
from tests.support.whole_runs import SAMPLE, Run, program, records

pytestmark = pytest.mark.process


def test_an_adaptive_run(provider: FakeProvider, run: Run) -> None:
    levels = iter(["basic", "intermediate", "advanced"] * 2)
    provider.when("triage officer", lambda _: {"difficulty": next(levels)})
    status, out, err = run("--num_samples", "6", "--max-samples", "1")
    assert status == 0
    found = records()
    assert [r["difficulty"] for r in found] == ["basic", "intermediate", "advanced"] * 2
    assert all(r["status"] == "answered" for r in found)
    assert all(r["token_usage"]["total_tokens"] > 0 for r in found)
    assert all(r["routed_by"] == "router" for r in found)
    totals = provider.totals
    assert sum(r["token_usage"]["input_tokens"] for r in found) == totals.input
    assert sum(r["token_usage"]["output_tokens"] for r in found) == totals.output
    assert sum(r["calls"] for r in found) == len(provider.calls)
    assert "95% interval" in out
    assert "6/6" in err
    assert "test-key" not in out + err


def test_what_is_on_the_disk(provider: FakeProvider, run: Run) -> None:
    run("--num-samples", "4", "--difficulty", "basic")
    (folder,) = Path("output").glob("gpt-4o-mini_sample_basic_4samples_*/")
    lines = (folder / "samples.jsonl").read_text().splitlines()
    samples = [SampleRecord.model_validate_json(line) for line in lines]
    assert {s.question_id for s in samples} == {r["question_id"] for r in records()}
    order = [s["question_id"] for s in records()]
    assert order == sorted(order), "the array is in the order of the data set"
    manifest = RunManifest.model_validate_json((folder / "run.json").read_text())
    assert manifest.finished
    assert manifest.invocations[0].ended_at
    assert manifest.totals.questions == 4
    assert manifest.totals.calls == len(provider.calls)
    assert manifest.spent.input_tokens == provider.totals.input == manifest.totals.input_tokens
    calls = [json.loads(line) for line in (folder / "calls.jsonl").read_text().splitlines()]
    assert sum(c["input_tokens"] for c in calls) == provider.totals.input
    everything = "".join(file.read_text() for file in folder.glob("*.json*"))
    assert "test-key" not in everything
    assert str(Path.cwd()) not in everything
    assert str(REPOSITORY) not in everything


def test_the_first_fields_of_a_record_are_those_of_the_seed(run: Run) -> None:
    run("--num-samples", "1", "--difficulty", "basic")
    (record,) = records()
    assert list(record)[:8] == [
        "question_id", "question", "label", "answer", "options", "response", "difficulty",
        "token_usage",
    ]  # fmt: skip
    assert list(record["token_usage"])[:3] == ["input_tokens", "output_tokens", "total_tokens"]
    assert record["response"]["final_answer"].startswith(f"{record['predicted']}) ")
    zero = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0, "cost_usd": 0.0}
    assert record["exaid"] == {"summaries": [], "decisions": [], "token_usage": zero}
    assert record["source_label"] == record["permutation"][record["label"]]
    assert record["options"][record["label"]] == record["answer"]


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ("refusal", "refused"),
        ("blocked", "refused"),
        ("cut_off", "truncated"),
        ("invalid_schema", "parse_error"),
        ("context_length", "api_error"),
    ],
)
def test_what_is_not_an_answer_is_never_scored_as_one(
    provider: FakeProvider, run: Run, fault: str, status: str
) -> None:
    provider.fail_next(fault, times=2, match="Your role: arbitrator")
    code, out, _ = run("--num-samples", "1", "--difficulty", "basic")
    (record,) = records()
    assert code == (1 if status == "api_error" else 0), "one of one is more than half"
    assert record["status"] == status
    assert record["predicted"] is None
    assert record["correct"] is None
    assert record["response"] is None
    assert record["error"]
    assert record["token_usage"]["input_tokens"] == provider.totals.input
    assert f"{status} 1" in out


def test_a_router_that_fails_sends_the_question_to_the_middle(
    provider: FakeProvider, run: Run
) -> None:
    provider.fail_next("invalid_schema", times=2, match="triage officer")
    run("--num-samples", "1")
    (record,) = records()
    assert (record["difficulty"], record["routed_by"]) == ("intermediate", "fallback")
    assert "router" in record["repairs"][0]


def test_skipped_levels_cost_the_router_only_and_are_not_scored(
    provider: FakeProvider, run: Run
) -> None:
    levels = iter(["basic", "advanced", "basic"])
    provider.when("triage officer", lambda _: {"difficulty": next(levels)})
    _, out, _ = run("--num-samples", "3", "--max-samples", "1", "--skip", "advanced", basic=True)
    assert [r["status"] for r in records()] == ["skipped"] * 3
    assert len(provider.calls) == 3
    assert all(r["token_usage"]["total_tokens"] > 0 for r in records())
    assert "0 (+3 skipped)" in out


def test_the_same_run_twice_gives_the_same_records(provider: FakeProvider, run: Run) -> None:
    first = run("--num-samples", "3", "--output-dir", "one")
    second = run("--num-samples", "3", "--output-dir", "two")
    assert first[0] == second[0] == 0

    def timeless(folder: str) -> list[dict[str, Any]]:
        return [{k: v for k, v in r.items() if k != "wall_seconds"} for r in records(Path(folder))]

    assert timeless("one") == timeless("two")


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["--num-samples", "2"], "gpt-4o-mini_sample_adaptive_2samples"),
        (["--limit", "2", "--model", "openai/gpt-5.4"], "gpt-5.4_sample_adaptive_2samples"),
        (["--limit", "2-3"], "gpt-4o-mini_sample_adaptive_2samples_"),
        (["--num-samples", "1", "--seed", "5"], "gpt-4o-mini_sample_adaptive_1samples_"),
        (["--num-samples", "1", "--preset", "classic"], "gpt-4o-mini_sample_adaptive_1samples_"),
        (["--sample-id", "sample-004"], "gpt-4o-mini_sample_adaptive_1samples_"),
        (["--num-samples", "1", "--model", "openai/org/a b"], "org-a-b_sample_adaptive_1samples"),
        (["--num-samples", "1", "--model", "vllm/gpt-4o"], "vllm-gpt-4o_sample_adaptive_1samples"),
        (["--limit", "1", "--model", "openai/言語 モデル"], "言語-モデル_sample_adaptive_1samples"),
        (["--limit", "1", "--model", "openai/me\u0301d"], "m\xe9d_sample_adaptive_1samples"),
    ],
)
def test_run_names(run: Run, arguments: list[str], name: str) -> None:
    run(*arguments)
    (folder,) = [file.parent for file in Path("output").glob("*/run.json")]
    assert folder.name.startswith(name)
    assert (len(folder.name) == len(name) + 8) == name.endswith("_")


def test_a_run_name_fits_a_file_name() -> None:
    names = {run_name("心" * 80 + end, "sample", "adaptive", 1, "") for end in ("a", "b")}
    assert len(names) == 2
    assert all(len(f"{name}.json".encode()) < 255 for name in names)


def test_json_is_one_object_on_stdout(run: Run) -> None:
    status, out, _ = run("--num-samples", "2", "--difficulty", "basic", "--json")
    assert status == 0
    assert json.loads(out)["overall"]["n"] == 2


def test_the_interaction_table_is_printed(provider: FakeProvider, run: Run) -> None:
    provider.when(
        "decide whether it helps", {"participate": True, "messages": [{"to": 2, "text": "Hm."}]}
    )
    _, _, err = run(
        "--num-samples", "1", "--difficulty", "intermediate", "--show-interaction-table"
    )
    assert "who reports to whom" in err
    assert "->" in err
    assert "<-" in err


WRONG_USE = [
    (["--num-samples", "0"], "--num-samples is 0 but must be at least 1"),
    (["--num-samples", "x"], "--num-samples is 'x' but must be a whole number"),
    (["--reasoning-tokens", "-5"], "'-5' but must be a whole number from 0 to 1,000,000"),
    (["--reasoning-tokens", "9" * 5_000], "but must be a whole number from 0 to 1,000,000"),
    (["--max-tokens", "expert=0"], "'0' but must be a whole number from 1 to 1,000,000"),
    (["--limit", "5-2"], "--limit is '5-2'"),
    (["--limit", "40-50"], "has only 30 questions"),
    (["--limit", "2", "--num-samples", "2"], "cannot be combined; give one of them"),
    (["--sample-id", "nope"], "has no question with id nope"),
    (["--dataset", "nope"], "there is no data set 'nope'"),
    (["--dataset", "nope.jsonl"], "there is no data set file nope.jsonl"),
    (["--model", "mystery"], "unknown model 'mystery'"),
    (["--model", "gemini-2.5-flash"], "no key for google"),
    (["--model", "local/none.gguf"], "no GGUF file none.gguf"),
    (["--model-role", "experts=gpt-4o"], "write ROLE=MODEL with a role of router"),
    (["--model-base-url", ""], "--model-base-url has an empty value"),
    (["--resume", ""], "--resume has an empty value"),
    (["--max-tokens", ","], "--max-tokens has an empty value"),
    (["--difficulty", "hard"], "--difficulty is 'hard' but must be one of adaptive, basic"),
    (["--num-experts", "11"], "--num-experts is 11 but must be 1 to 10"),
    (["--num-rounds", "0"], "--num-rounds is 0 but must be 1 to 10"),
    (["--max-connections", "0"], "--max-connections is 0"),
    (["--attempt-timeout", "0"], "--attempt-timeout is 0 but must be more than 0"),
    (["--expert-temperature", "3"], "--expert-temperature is 3 but must be 0 to 2"),
    (["--words", "opinion=none"], "write NAME=N"),
    (["--skip", "easy"], "--skip easy"),
    (["--method", "cot", "--difficulty", "basic"], "does not route its questions; leave --diff"),
    (["--method", "cot", "--skip", "basic"], "so none can be left out by level"),
    (["--token-limit", "0"], "--token-limit is 0 but must be at least 1"),
    (["--rpm", "-1"], "--rpm is -1 but must be more than 0"),
    (["--cost-limit", "1", "--model", "openai/new"], "--cost-limit needs the price of openai/new"),
    (["--cache", "only", "--retry-errors"], "--cache only asks no provider"),
    (["--resume", "nope"], "there is no run nope in output"),
    (["--resume"], "there is no unfinished run in output"),
    (["--model-base-url", "not-a-url"], "must begin with http:// or https://"),
    (["--model-base-url", "http://u:pw@h/v1"], "http://***@h/v1 must not contain a password"),
    (["--model-base-url", "ftp://u:pw@h/v1"], "ftp://***@h/v1 must begin with http"),
    (["--model-base-url", "http://h/v1?key=pw"], "must hold no query"),
    (["--bogus"], "there is no flag --bogus"),
    (["--run-config", "none.yaml"], "none.yaml"),
    (["--dificulty", "basic"], "there is no flag --dificulty; did you mean '--difficulty'?"),
    (["--exaid", "of"], "--exaid is 'of' but must be one of full_exaid, "),
    (["--exaid", "of"], "; did you mean 'off'?"),
    (["--skip", "basci"], "; did you mean 'basic'?"),
    (["--words", "opinon=50"], "; did you mean 'opinion'?"),
    (["--model-role", "exprt=gpt-4o"], "; did you mean 'expert'?"),
    (["--model", "gtp-4o-mini"], "; did you mean 'gpt-4o-mini'?"),
    (["--model", "opnai/gpt-4o"], "; did you mean 'openai/gpt-4o'?"),
    (["--model", "openai/"], "the model 'openai/' has no name after its provider"),
    (["--dataset", "medaq"], "; did you mean 'medqa'?"),
    (["--dataset", "medqa", "--split", "tset"], "no split 'tset' in "),
    (["--sample-id", "sample-01"], "no question with id sample-01; did you mean 'sample-001'?"),
    (["--fresh", "--resume"], "--resume continues a run and --fresh starts it over; use only one"),
    (["--fresh", "--resume", "x"], "--resume continues a run and --fresh starts it over"),
    (["--model-base-url", "http://h/v1/chat/completions"], "must not end in /chat/completions"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG_USE)
def test_wrong_use_is_one_line_and_writes_nothing(
    provider: FakeProvider, run: Run, arguments: list[str], message: str
) -> None:
    status, out, err = run(*arguments)
    assert status == 2
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err
    assert not Path("output").exists()
    assert provider.calls == []


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "MDAGENTS_NUM_SAMPELS",
            "3",
            "MDAGENTS_NUM_SAMPELS {place} is not a setting of this program; "
            "did you mean 'MDAGENTS_NUM_SAMPLES'?",
        ),
        ("MDAGENTS_ZZZ", "3", "MDAGENTS_ZZZ {place} is not a setting of this program; unset it"),
        (
            "MDAGENTS_DIFFICULTY",
            "advnced",
            "MDAGENTS_DIFFICULTY {place} is 'advnced' but must be one of adaptive, basic, "
            "intermediate, advanced, or several with commas; did you mean 'advanced'?",
        ),
        (
            "MDAGENTS_NUM_SAMPLES",
            "x",
            "MDAGENTS_NUM_SAMPLES {place} is 'x' but must be a whole number",
        ),
        ("MDAGENTS_EPOCHS", "0", "MDAGENTS_EPOCHS {place} is 0 but must be at least 1"),
        (
            "MDAGENTS_SAMPLE_ID",
            ",",
            "MDAGENTS_SAMPLE_ID {place} has no id in it; write --sample-id 12,57",
        ),
        (
            "SKIP_BASICS",
            "1",
            "SKIP_BASICS {place} is not a setting of this program; did you mean 'SKIP_BASIC'?",
        ),
        (
            "SKIP_ADVACNED",
            "1",
            "SKIP_ADVACNED {place} is not a setting of this program; did you mean 'SKIP_ADVANCED'?",
        ),
    ],
)
@pytest.mark.parametrize("place", ["in the environment", "in .env"])
def test_a_wrong_variable_is_named_with_its_place(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str, place: str
) -> None:
    if place == "in .env":
        Path(".env").write_text(f"{name}={value}\n")
    else:
        monkeypatch.setenv(name, value)
    assert run() == (2, "", f"error: {message.format(place=place)}\n")
    assert not Path("output").exists()


def test_variables_that_others_read_are_no_mistake(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MDAGENTS_CACHE_DIR", "cache")
    monkeypatch.setenv("MDAGENTS_SHARED_DATA", "data")
    monkeypatch.setenv("SKIP_BASELINE", "1")  # of another program: more than one slip away
    assert run("--num-samples", "1", "--difficulty", "basic")[0] == 0


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text there")
def test_a_file_whose_name_is_not_utf_8_is_one_line(run: Run) -> None:
    """As in sosreport#2790, among others: `run.json` could not hold it."""
    path = Path(os.fsdecode(b"t\xe9st.jsonl"))
    path.write_text(SAMPLE.read_text())
    assert run("--dataset", str(path)) == (
        2, "",
        "error: the name t\ufffdst.jsonl is not valid UTF-8, which run.json requires; rename it\n",
    )  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="paths are decoded in UTF-8 there")
def test_a_clone_in_a_folder_that_the_locale_cannot_spell(
    provider: FakeProvider, tmp_path: Path
) -> None:
    """As in openai/codex-security#192: Git's paths are in UTF-8, whatever the locale says."""
    clone = tmp_path / "Jörg"
    for package in ("mdagents", "mdagents_llm", "exaid_core"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REPOSITORY / package, clone / package, ignore=ignored)
    surroundings = bare_environment(  # a Git hook sets GIT_DIR
        OPENAI_API_KEY="k",
        OPENAI_BASE_URL=provider.openai_base_url,
        LC_ALL="C",
        PYTHONUTF8="0",
        PYTHONCOERCECLOCALE="0",
        PYTHONPATH=str(clone),
        MDAGENTS_DEBUG="1",
        GIT_CONFIG_GLOBAL=os.devnull,
    )

    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=x", "-c", "user.email=x", *arguments]
        return subprocess.check_output(command, cwd=clone, env=surroundings, text=True).strip()

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "x")
    revision = git("rev-parse", "HEAD")
    (clone / "Frågor 日本.jsonl").write_text(SAMPLE.read_text())
    command = [sys.executable, "-m", "mdagents", "run", "--num-samples", "1"]
    done = subprocess.run(command, cwd=clone, env=surroundings, capture_output=True, text=True)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    (file,) = clone.glob("output/*/run.json")
    assert json.loads(file.read_text())["git_revision"] == revision
    command += ["--dataset", "Frågor 日本.jsonl"]
    done = subprocess.run(command, cwd=clone, env=surroundings, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("; set PYTHONUTF8=1\n")


def test_a_flag_in_two_spellings_is_refused(run: Run) -> None:
    Path("run.yaml").write_text("num-samples: 5\nnum_samples: 7\n")
    assert run("--run-config", "run.yaml")[::2] == (
        2, "error: --run-config run.yaml has 'num-samples' in two spellings\n"
    )  # fmt: skip


@pytest.mark.parametrize("nothing", ["[]", "''", ""])
def test_a_file_of_flags_can_skip_nothing(run: Run, nothing: str) -> None:
    Path("run.yaml").write_text(f"skip: {nothing}\n")
    assert run("--run-config", "run.yaml", "--num-samples", "1", "--dry-run")[0] == 0


def test_a_file_of_flags_names_no_other_one(run: Run) -> None:
    Path("run.yaml").write_text("run-config: other.yaml\n")
    said = "error: --run-config run.yaml cannot name another such file\n"
    assert run("--run-config", "run.yaml")[::2] == (2, said)


def test_a_mistyped_name_in_a_file_is_named_with_the_file(run: Run) -> None:
    Path("run.yaml").write_text("num-sampels: 3\n")
    _, _, err = run("--run-config", "run.yaml")
    assert "no flag --num-sampels in run.yaml; did you mean '--num-samples'?" in err
    Path("run.yaml").write_text("expert-temperature: 3\n")
    assert run("--run-config", "run.yaml")[2] == (
        "error: --expert-temperature in run.yaml is 3 but must be 0 to 2\n"
    )
    Path("run.yaml").write_text("difficulty: hard\n")
    _, _, err = run("--run-config", "run.yaml")
    assert "--difficulty in run.yaml is 'hard' but must be one of adaptive, basic" in err


def test_a_line_of_env_that_is_none_is_named(run: Run) -> None:
    Path(".env").write_text("# keys\nGOOGLE_API_KEY=k\nOPENAI_API_KEY k\n")
    assert run() == (
        2, "", "error: .env line 3 is not NAME=VALUE; correct it or begin it with #\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("written", "lacking"),
    [
        ('OTHER=${GONE}\nGOOGLE_API_KEY="a${MY_KEY}"', "MY_KEY"),
        ("OTHER=${GONE}\nGOOGLE_API_KEY=${OTHER}", "OTHER"),
        ("MY_KEY=\nGOOGLE_API_KEY=${MY_KEY}", "MY_KEY"),
        ("MY_KEY\nGOOGLE_API_KEY='${MY_KEY}'", "MY_KEY"),
        ("# keys\nGOOGLE_API_KEY=${MY_KEY}\nMY_KEY=k", "MY_KEY"),
    ],
)
def test_a_value_of_env_that_refers_to_nothing_is_named(
    written: str, lacking: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(".env").write_text(f"{written}\n")
    assert run() == (
        2, "", f"error: .env line 2: GOOGLE_API_KEY refers to ${{{lacking}}}, which is not set; "
        f"set it, or write ${{{lacking}:-}} for no text\n",
    )  # fmt: skip
    monkeypatch.setenv("GOOGLE_API_KEY", "k")
    assert run("--num-samples", "1", "--difficulty", "basic", "--dry-run")[0] == 0


@pytest.mark.parametrize(
    "written",
    [
        "MY_KEY=k\nGOOGLE_API_KEY=${MY_KEY}${GONE:-}",
        "GOOGLE_API_KEY=${GONE}\nexport GOOGLE_API_KEY='k'",
        "PATH=${PATH}:/x\nGOOGLE_API_KEY=$k",
        "# ${GONE}\nOTHER=${GONE}\nGOOGLE_API_KEY=${OTHER:-}k",
        "GOOGLE_API_KEY=${FROM_OUTSIDE}",
    ],
)
def test_other_values_of_env_are_read_as_python_dotenv_reads_them(
    written: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FROM_OUTSIDE", "k")
    monkeypatch.setenv("ALSO_OUTSIDE", "from outside")
    Path(".env").write_text(f"{written}\nALSO_OUTSIDE=k\n")
    assert run("--num-samples", "1", "--difficulty", "basic", "--dry-run")[0] == 0
    filled = {name: value for name, value in dotenv_values(".env").items() if value}
    assert read_variables() == {**filled, **os.environ}


KEY = "sk-secretsecretsecret"


@pytest.mark.parametrize("place", ["in the environment", "in .env", "in ../.env"])
def test_a_wrong_key_says_where_it_came_from(
    provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    if place == "in the environment":
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
    else:
        monkeypatch.delenv("OPENAI_API_KEY")
        Path(".env").write_text(f"OPENAI_API_KEY={KEY}\n")
    if place == "in ../.env":
        Path("below").mkdir()
        monkeypatch.chdir("below")
    provider.fail_next("401", times=9)
    status, _, err = run("--num-samples", "1")
    last = err.splitlines()[-1]
    assert status == 1
    assert f"(the key is OPENAI_API_KEY {place}); to resume: " in last
    assert KEY not in err


def test_a_server_that_wants_a_key_says_that_none_was_sent(
    provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    provider.fail_next("401", times=9)
    status, _, err = run("--num-samples", "1", "--model", "gpt-4o-mini")
    assert (status, "(no key was sent: OPENAI_API_KEY is not set)" in err) == (1, True)


@pytest.mark.parametrize("key", ["sk-a\nsk-b", "sk-a sk-b", "“sk-abcdefgh”"])
def test_a_key_that_can_be_none_is_not_sent(
    provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    status, _, err = run("--num-samples", "1")
    assert status == 2
    assert err.startswith("error: OPENAI_API_KEY in the environment holds a character that no key")
    assert "sk-" not in err
    assert provider.calls == []


def test_a_base_url_without_v1_says_so(
    provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = provider.openai_base_url.removesuffix("/v1")
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    status, _, err = run("--num-samples", "1")
    assert status == 1
    assert f"(the base URL {url} has no /v1 at its end; most servers need it)" in err


def test_a_model_that_the_endpoint_does_not_know_is_compared_with_known_ones(
    provider: FakeProvider, run: Run
) -> None:
    provider.fail_next("404_model", times=9)
    status, _, err = run("--num-samples", "1", "--model", "gpt-4o-mimi")
    assert (status, "(did you mean 'openai/gpt-4o-mini'?)" in err) == (1, True)


@pytest.mark.parametrize("levels", ["basic", "adaptive"])
def test_a_run_whose_levels_are_all_left_out_says_so(run: Run, levels: str) -> None:
    left_out = ("--skip", "basic,intermediate,advanced")
    _, out, _ = run("--num-samples", "1", "--difficulty", levels, *left_out, "--dry-run")
    assert "NOTE: --skip and SKIP_* leave out every level: no question will be answered" in out


def test_the_command_that_scores_a_run_quotes_its_path(run: Run) -> None:
    _, out, _ = run("--num-samples", "1", "--output-dir", "two words")
    command = next(line for line in out.splitlines() if line.startswith("CSV:"))
    assert Path(shlex.split(command)[-1]).is_file()


def test_the_command_that_goes_on_sets_the_same_variables(
    provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKIP_ADVANCED", "1")
    monkeypatch.setenv("MDAGENTS_FRESH", "1")
    monkeypatch.setenv("MDAGENTS_NUM_SAMPLES", "2")
    monkeypatch.setenv("MDAGENTS_SERVE_TOKEN", "test-key-of-a-server")
    Path(".env").write_text("MDAGENTS_SEED=4\n")
    provider.fail_next("401", times=9)
    _, _, err = run("--preset", "classic")
    went = err.splitlines()[-1].partition("to resume: ")[2]
    assert went.startswith(
        "SKIP_ADVANCED=1 MDAGENTS_EXAID=off MDAGENTS_NUM_SAMPLES=2 "
        f"OPENAI_BASE_URL={provider.openai_base_url} python main.py "
    )
    assert went.endswith("--preset classic")
    assert "test-key" not in err


def test_from_another_folder_and_where_python_is_another_one_the_command_that_goes_on_works(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.defpath)
    provider.fail_next("401", times=9)
    _, err = program(provider, "--num-samples", "1").communicate(timeout=30)
    went = err.partition("to resume: ")[2]
    assert f" {sys.executable} {REPOSITORY}/main.py --dataset" in went


def test_commands_for_the_module_are_of_the_module_and_those_for_the_program_of_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert called_as("mdagents").view == "mdagents view"
    monkeypatch.setenv("PATH", os.defpath)
    called = called_as("python -m mdagents")
    assert called.name == "python -m mdagents run"
    assert called.run == f"{sys.executable} -m mdagents run", "python is another one here"


def test_an_output_folder_that_cannot_be_written(provider: FakeProvider, run: Run) -> None:
    Path("output").write_text("a file, not a folder")
    status, _, err = run("--num-samples", "1")
    assert status == 2
    assert err.splitlines()[-1].startswith("error: cannot write to output")
    assert provider.calls == []


@pytest.mark.parametrize(
    ("number", "said"),
    [
        # Lustre, NFS and others: filelock 67, 289 and 480.
        (errno.ENOSYS, ""),
        (errno.EINVAL, "cannot write to output: Invalid argument; choose another --output-dir"),
        (errno.ENOLCK, "cannot write to output: No locks available; choose another --output-dir"),
    ],
)
def test_a_file_system_without_locks(
    number: int, said: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")

    def flock(file: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        status, _, err = run("--num-samples", "1")
    assert (status, said in err) == (2 if said else 0, True), err


def test_flag_over_environment_over_file(
    run: Run, monkeypatch: pytest.MonkeyPatch, provider: FakeProvider
) -> None:
    Path("run.yaml").write_text("num-samples: 4\ndifficulty: basic\nmax-samples: 1\n")
    monkeypatch.setenv("MDAGENTS_NUM_SAMPLES", "3")
    run("--run-config", "run.yaml", "--difficulty", "advanced")
    found = records()
    assert len(found) == 3
    assert {r["difficulty"] for r in found} == {"advanced"}
    assert provider.max_in_flight <= 6


def test_yaml_words_are_words_and_lists_are_lists(run: Run) -> None:
    Path("run.yaml").write_text(
        "num_samples: 2\ncache: off\nexaid: off\nskip: [basic, advanced]\n"
        "model-role: [expert=gpt-5-mini]\njson: true\n"
    )
    status, out, _ = run("--run-config", "run.yaml")
    assert status == 0
    assert json.loads(out)["overall"]["n"] + json.loads(out)["overall"]["skipped"] == 2
    assert not Path("output/.cache").exists()


@pytest.mark.parametrize("content", ["a: [", "- just\n- a list\n"])
def test_a_run_config_that_is_none_is_one_line(run: Run, content: str) -> None:
    Path("run.yaml").write_text(content)
    status, _, err = run("--run-config", "run.yaml")
    assert status == 2
    assert err.count("\n") == 1


def test_a_run_config_from_the_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("run.yaml").write_text("num-samples: 1\ndifficulty: basic\n")
    monkeypatch.setenv("MDAGENTS_RUN_CONFIG", "run.yaml")
    run()
    assert len(records()) == 1


def test_the_sample_is_announced_however_it_is_named(run: Run) -> None:
    _, out, err = run("--num-samples", "1", "--difficulty", "basic")
    assert "NOTE: These questions were written for this project" in err
    assert "NOTE: These questions were written for this project" in out


def test_machine_paths_are_not_written_down(
    provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("elsewhere").mkdir()
    copy = Path("elsewhere/mine.jsonl").absolute()
    copy.write_text(SAMPLE.read_text())
    monkeypatch.chdir(copy.parent)
    run(
        "--num-samples",
        "1",
        "--difficulty",
        "basic",
        "--dataset",
        str(copy),
        "--output-dir",
        "../o",
    )
    written = "".join(file.read_text() for file in Path("../o").glob("*/*.json*"))
    assert str(copy.parent) not in written
    assert "mine.jsonl" in written


def test_another_endpoint_is_another_run(
    provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = ("--num-samples", "1", "--difficulty", "basic", "--exaid", "full_exaid")
    run(*usual)
    with FakeProvider(seed=7) as other:
        monkeypatch.setenv("OPENAI_BASE_URL", other.openai_base_url)
        status, _, err = run(*usual)
    assert status == 2
    assert "holds a run that differs in endpoint" in err


def test_a_screen_that_is_gone_stops_nothing(provider: FakeProvider) -> None:
    process = program(provider, "--num-samples", "5", "--difficulty", "basic")
    assert process.stderr is not None
    process.stderr.close()
    assert process.stdout is not None
    process.stdout.read()
    process.stdout.close()
    process.wait(30)
    assert len(records()) == 5


def test_models_by_role(provider: FakeProvider, run: Run) -> None:
    run("--num-samples", "1", "--difficulty", "basic", "--model-role", "expert=gpt-5-mini")
    models = [call.model for call in provider.calls]
    assert models == ["gpt-4o-mini", "gpt-5-mini", "gpt-5-mini", "gpt-5-mini", "gpt-4o-mini"]
    (record,) = records()
    assert record["model"] == "gpt-4o-mini, gpt-5-mini"


def test_ctrl_c_finishes_what_is_under_way(provider: FakeProvider) -> None:
    hold = provider.hold("Your role: arbitrator")
    process = program(provider, "--num-samples", "9", "--difficulty", "basic", "--max-samples", "2")
    hold.wait(2)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    for line in process.stderr:
        if "stopping" in line:
            break
    hold.release()
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    found = records()
    assert [r["status"] for r in found] == ["answered"] * 2
    manifest = json.loads(next(Path("output").glob("*/run.json")).read_text())
    assert manifest["finished"] is False
    assert manifest["totals"]["questions"] == 2
    assert "accuracy" in out


def test_a_second_ctrl_c_stops_at_once(provider: FakeProvider) -> None:
    hold = provider.hold("Your role: arbitrator")
    process = program(provider, "--num-samples", "9", "--difficulty", "basic")
    hold.wait(2)
    assert process.stderr is not None
    process.send_signal(signal.SIGINT)
    for line in process.stderr:
        if "stopping" in line:
            break
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=8)
    assert process.returncode == 130
    assert records() == []
    hold.release()


def test_a_kill_loses_at_most_what_is_under_way(provider: FakeProvider) -> None:
    hold = provider.hold(lambda r: "Your role: arbitrator" in r.text and r.index > 12)
    process = program(provider, "--num-samples", "9", "--difficulty", "basic", "--max-samples", "1")
    hold.wait(1)
    process.kill()
    process.communicate(timeout=30)
    (samples,) = Path("output").glob("*/samples.jsonl")
    kept = [json.loads(line) for line in samples.read_text().splitlines()]
    assert [r["status"] for r in kept] == ["answered"] * 2
    hold.release()


@pytest.mark.parametrize(("value", "status"), [("maybe", 2), ("YES", 0)])
def test_switches_of_the_seed_come_from_the_environment(
    provider: FakeProvider, value: str, status: int
) -> None:
    process = subprocess.run(
        [sys.executable, str(REPOSITORY / "main.py"), "--dataset", str(SAMPLE),
         "--num-samples", "1", "--difficulty", "basic"],
        env={
            "PATH": os.environ["PATH"],
            "MDAGENTS_EXAID": "off",
            "OPENAI_API_KEY": "k",
            "OPENAI_BASE_URL": provider.openai_base_url,
            "SKIP_BASIC": value,
        },
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == status
    if status:
        assert process.stderr == "error: SKIP_BASIC is 'maybe' but must be yes or no\n"
    else:
        assert records()[0]["status"] == "skipped"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("redirection", "status"),
    [(">&-", 0), ("2>&-", 0), ("2>&1 | true", 0), (">/dev/full", 1), ("2>/dev/full", 0)],
)
def test_whoever_reads_the_output_or_not_the_run_takes_place(
    provider: FakeProvider, redirection: str, status: int
) -> None:
    command = [sys.executable, str(REPOSITORY / "main.py"), "--dataset", str(SAMPLE)]
    command += ["--num-samples", "2", "--difficulty", "basic"]
    done = subprocess.run(
        ["bash", "-c", f'set -o pipefail; "$@" {redirection}', "-", *command],
        env={
            "PATH": os.environ["PATH"],
            "MDAGENTS_EXAID": "off",
            "OPENAI_API_KEY": "k",
            "OPENAI_BASE_URL": provider.openai_base_url,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert [r["status"] for r in records()] == ["answered", "answered"]


def test_a_word_that_is_no_key_is_not_masked(
    provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    provider.fail_next("401", times=9)
    _, _, err = run("--num-samples", "1")
    assert "API key" in err.splitlines()[-1]


def test_a_run_of_which_nothing_was_answered_says_that_and_no_accuracy(run: Run) -> None:
    status, out, err = run("--num-samples", "3", "--token-limit", "1")
    assert (status, "stopped at a limit of the run; raise it" in err) == (1, True)
    assert "a limit stopped 3 of 3 questions, and the same command answers them again" in " ".join(
        out.split()
    )
    (folder,) = (path.parent for path in Path("output").glob("*/run.json"))
    manifest = RunManifest.model_validate_json((folder / "run.json").read_bytes())
    assert [one.reason for one in manifest.invocations] == ["stopped at a limit of the run"]
    made = read_output(folder)
    sentence = run_verdict(make_report(made), made.manifest).sentence
    assert sentence == "None of the 3 questions was answered."


def test_calls_that_were_given_up_are_no_failed_attempts(provider: FakeProvider, run: Run) -> None:
    provider.fail_next("401", times=9)
    _, _, err = run("--num-samples", "4", "--max-connections", "4")
    (folder,) = (path.parent for path in Path("output").glob("*/run.json"))
    manifest = RunManifest.model_validate_json((folder / "run.json").read_bytes())
    rows = [json.loads(line) for line in (folder / "calls.jsonl").read_text().split("\n") if line]
    outcomes = [row["outcome"] for row in rows]
    assert manifest.spent.failed_attempts == len(outcomes) - outcomes.count("aborted") > 0
    assert manifest.invocations[-1].reason in err
    assert "401" in manifest.invocations[-1].reason


def test_the_interval_of_several_epochs_is_the_same_everywhere(run: Run) -> None:
    status, out, err = run(
        "--method", "zero_shot", "--num-samples", "12", "--epochs", "3", "--json"
    )
    assert status == 0, err
    overall = json.loads(out)["overall"]
    (path,) = Path("output").glob("*/run.json")
    totals = RunManifest.model_validate_json(path.read_bytes()).totals
    ends = interval(overall["accuracy_low"], overall["accuracy_high"])
    assert accuracy_so_far(totals) == f"accuracy {overall['accuracy']:.1%} ({ends})"
    assert wilson(overall["correct"], overall["n"]) != (
        overall["accuracy_low"],
        overall["accuracy_high"],
    ), "answers to one question are not independent"
