"""Questions chosen by a file of ids, and by what an earlier run got wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from mdagents.records.manifest import RunManifest
from mdagents.runs.config import RunConfig
from mdagents_llm.errors import ConfigError
from tests.fake_provider import FakeProvider
from tests.support.whole_runs import Run, records

BASIC = ("--difficulty", "basic")


def ids(text: str | bytes) -> str:
    content = text if isinstance(text, bytes) else text.encode()
    Path("ids.txt").write_bytes(content)
    return "@ids.txt"


def test_a_file_has_an_id_a_line(run: Run) -> None:
    config = RunConfig(sample_id=ids("\ufeff# the hard ones\n sample-004 \n\na,b\nsample-004\n"))
    assert config.sample_id == ("sample-004", "a,b")
    assert config.place_of_id("a,b") == "ids.txt line 4"
    assert RunConfig(**config.flags()).sample_id == config.sample_id, "--resume needs no file"
    assert run(*BASIC, "--sample-id", ids("sample-004\nsample-002\n"))[0] == 0
    assert [record["question_id"] for record in records()] == ["sample-004", "sample-002"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("# none\n", "--sample-id @ids.txt holds no id"),
        (b"\xff\xfe", "--sample-id @ids.txt is not text in UTF-8"),
        ("ok\n" + "x" * 201, "ids.txt line 2 must be one id of at most 200"),
        ("ok\nb\x07d", "ids.txt line 2 must be one id"),
    ],
)
def test_errors_name_file_and_line(content: str | bytes, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        RunConfig(sample_id=ids(content))


def test_an_unknown_id_is_named_with_its_line(run: Run) -> None:
    status, _, err = run("--sample-id", ids("sample-004\nsample-04\n"))
    assert status == 2
    assert "ids.txt line 2: " in err
    assert "no question with id sample-04; did you mean 'sample-004'?" in err
    with pytest.raises(ConfigError, match=r"--sample-id names no file: .*embedded null"):
        RunConfig(sample_id="@a\0b")
    status, _, err = run("--sample-id", "@nowhere.txt")
    assert status == 2
    assert "--sample-id @nowhere.txt cannot be read: No such file" in err


def test_only_what_was_wrong_is_answered_again(provider: FakeProvider, run: Run) -> None:
    assert run("--method", "zero_shot", "--num-samples", "8")[0] == 0
    first = records()
    wrong = [record["question_id"] for record in first if not record["correct"]]
    assert 0 < len(wrong) < 8
    (earlier,) = Path("output").glob("*.json")
    again = ("--method", "cot", "--rerun-wrong", earlier.stem)
    assert run(*again)[0] == 0
    (manifest,) = (
        RunManifest.model_validate_json(path.read_text())
        for path in Path("output").glob("*_cot_*/run.json")
    )
    assert manifest.item_ids == wrong
    assert manifest.options["sample_id"] == ",".join(wrong)
    calls = len(provider.calls)
    status, _, err = run(*again)
    assert status == 0
    assert "already finished" in err
    assert run("--resume", manifest.name)[0] == 0
    assert len(provider.calls) == calls, "the ids are part of the run"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sample-id", "sample-001"], "--rerun-wrong and --sample-id both select questions"),
        (["--resume"], "leave --rerun-wrong out"),
        (["--dataset", "triage_vignettes"], "not of triage_vignettes; see --dataset"),
    ],
)
def test_wrong_use(arguments: list[str], message: str, run: Run) -> None:
    assert run("--method", "zero_shot", "--num-samples", "2")[0] == 0
    (earlier,) = Path("output").glob("*.json")
    status, _, err = run("--rerun-wrong", str(earlier), *arguments)
    assert status == 2
    assert message in err


def test_a_run_that_is_not_there(run: Run) -> None:
    status, _, err = run("--rerun-wrong", "nowhere")
    assert status == 2
    assert "nowhere" in err
