"""No output replaces a run, or what it is made from."""

from __future__ import annotations

from pathlib import Path

import pytest

from mdagents.records.own_files import refuse_run, refuse_to_replace
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.whole_file import replace_file


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("run.json", "samples.jsonl", "notes.csv"):
        (folder / name).touch()
    (folder / "traces").mkdir()
    (folder / "traces" / "q.jsonl.gz").touch()
    (tmp_path / "run.json").touch()
    (tmp_path / "other.json").touch()
    return folder


@pytest.mark.parametrize(
    "name", ["run/run.json", "run/samples.jsonl", "run.json", "run/traces/q.jsonl.gz"]
)
def test_a_file_of_a_run_is_not_replaced(run: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="belongs to a run; name another file"):
        refuse_to_replace(run.parent / name)


def test_an_input_is_not_replaced(run: Path) -> None:
    other = run.parent / "other.json"
    refuse_to_replace(other)
    refuse_to_replace(run / "notes.csv")
    refuse_to_replace(run / "new.json")
    with pytest.raises(ConfigError, match="is the input"):
        refuse_to_replace(other, run / "missing", run / ".." / "other.json")


def test_a_path_through_a_folder_that_is_yet_to_be_made_is_the_file_itself(run: Path) -> None:
    new = run.parent / "new" / ".."
    with pytest.raises(ConfigError, match="is the input"):
        refuse_to_replace(new / "other.json", run.parent / "other.json")
    with pytest.raises(ConfigError, match="belongs to a run"):
        refuse_to_replace(new / "run/samples.jsonl")
    with pytest.raises(ConfigError, match="which is a run"):
        refuse_run("--figures", new / "run")


@pytest.mark.parametrize("name", [".", "/"])
def test_a_folder_without_a_name_is_no_file(name: str) -> None:
    with pytest.raises(IsADirectoryError):
        replace_file(Path(name), b"")


def test_nothing_is_written_into_a_run_that_is_meant_to_be_read(run: Path) -> None:
    with pytest.raises(ConfigError, match=r"--figures is '.*run', which is a run; name the folder"):
        refuse_run("--figures", run, run.parent / "other.json")
    refuse_run("--figures", run, run)
    refuse_run("--figures", run.parent)
    refuse_run("--figures", run.parent / "new")
