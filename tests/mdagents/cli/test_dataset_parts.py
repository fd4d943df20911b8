"""Parts of a data set by routed level and by id."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mdagents.cli.dataset_parts import extract, split
from mdagents.cli.score import main as score
from mdagents.data_tools.check import main as check
from mdagents.datasets.dataset import open_dataset
from mdagents.studies.program import make_parser as study_parser
from tests.mdagents.datasets.made_pictures import RED, png

LINE = {"question": "?", "options": {"A": "x", "B": "y"}, "answer_idx": "A"}


@pytest.fixture(autouse=True)
def _dataset() -> None:
    folder = Path("data/mine")
    folder.mkdir(parents=True)
    lines = [LINE | {"id": "one"}, LINE, LINE | {"id": "three"}]
    (folder / "test.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")


def write_run(levels: dict[str, str], **changes: str) -> None:
    records = [
        {"question_id": id_, "label": "A", "options": LINE["options"], "response": "A"}
        | {"difficulty": level}
        | changes
        for id_, level in levels.items()
    ]
    Path("output").mkdir()
    Path("output/run.json").write_text(json.dumps(records))


def test_split_by_routed_level_keeps_the_ids(capsys: pytest.CaptureFixture[str]) -> None:
    write_run({"one": "basic", "sample_2": "advanced", "three": "basic"})
    assert split(["--dataset", "mine"]) == 0
    assert "test_basic.jsonl: 2 questions" in capsys.readouterr().out
    basic = open_dataset("mine", Path("data"), "test_basic")
    advanced = open_dataset("mine", Path("data"), "test_advanced")
    assert [entry.id for entry in basic.index] == ["one", "three"]
    assert [entry.id for entry in advanced.index] == ["sample_2"]


@pytest.mark.parametrize("source", ["environment", ".env"])
def test_folders_of_the_environment_hold_as_for_a_run(
    monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    folders = {"MDAGENTS_OUTPUT_DIR": "mine/runs", "MDAGENTS_DATA_DIR": "mine/data"}
    if source == ".env":
        Path(".env").write_text("".join(f"{name}={folder}\n" for name, folder in folders.items()))
    else:
        for name, folder in folders.items():
            monkeypatch.setenv(name, folder)
    write_run({"one": "basic", "sample_2": "basic", "three": "basic"})
    Path("data").rename("mine-data")
    Path("mine").mkdir()
    Path("mine-data").rename("mine/data")
    Path("output").rename("mine/runs")
    assert split(["--dataset", "mine"]) == 0
    assert len(open_dataset("mine", Path("mine/data"), "test_basic").index) == 3
    assert extract(["one", "--dataset", "mine", "--output", "one.jsonl"]) == 0
    assert score([]) == 0
    assert Path("evaluation/run.csv").is_file()
    assert check(["mine", "--warn-only"]) == 0
    study = study_parser("study.py").parse_args(["mine.yaml"])
    assert (study.output_dir, study.data_dir) == ("mine/runs", "mine/data")


def test_the_home_folder_in_an_output(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A public report of another program: a folder named ~ (airtasker/spot issue 97)."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert extract(["one", "--dataset", "mine", "--output", "~/one.jsonl"]) == 0
    assert (tmp_path / "home/one.jsonl").is_file()


def test_split_replaces_no_file_that_holds_other_questions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_run({"one": "basic", "sample_2": "advanced"})
    other = Path("data/mine/test_basic.jsonl")
    other.write_text("mine\n")
    assert split(["--dataset", "mine"]) == 2
    assert capsys.readouterr().err == (
        f"error: {other} is there with other questions: move it away, name another folder with "
        "--to, or replace it with --force\n"
    )
    assert other.read_text() == "mine\n"
    assert not Path("data/mine/test_advanced.jsonl").exists()
    for flags in (["--force"], [], ["--to", "parts"], ["--to", "parts"]):
        assert split(["--dataset", "mine", *flags]) == 0, flags
    assert [entry.id for entry in open_dataset("mine", Path("data"), "test_basic").index] == ["one"]


def test_a_refused_split_writes_no_pictures() -> None:
    pictures = [{"bytes": png(RED), "path": None}] * 2
    columns = {"id": ["one", "two"], "question": ["?", "?"], "options": [["x", "y"]] * 2}
    table = pa.table({**columns, "answer": ["A", "B"], "image": pictures})
    pq.write_table(table, "data/q.parquet")
    write_run({"one": "basic", "two": "advanced"})
    other = Path("parts/q_basic.jsonl")
    other.parent.mkdir()
    other.write_text("mine\n")
    arguments = ["--dataset", "data/q.parquet", "--to", "parts"]
    assert split(arguments) == 2
    assert list(Path("parts").iterdir()) == [other]
    assert split([*arguments, "--force"]) == split(arguments) == 0
    assert len(list(Path("parts/images").iterdir())) == 1


def test_parts_go_through_links_and_into_pipes() -> None:
    write_run({"one": "basic"})
    link, target = Path("data/mine/test_basic.jsonl"), Path("data/real.jsonl")
    link.symlink_to(target.absolute())
    extracted = ["--dataset", "mine", "three", "--output", str(link)]
    for program, arguments, id_ in (
        (split, ["--dataset", "mine"], "one"),
        (extract, extracted, "three"),
    ):
        assert program(arguments) == 0
        assert link.is_symlink()
        assert json.loads(target.read_text())["id"] == id_
    reader, writer = os.pipe()
    with os.fdopen(reader) as pipe:
        assert extract(["--dataset", "mine", "one", "--output", f"/dev/fd/{writer}"]) == 0
        os.close(writer)
        assert json.loads(pipe.read())["id"] == "one"


def test_split_takes_the_most_frequent_level_of_the_epochs_and_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    of_epochs = {
        "one": ["basic", "advanced", "basic"],
        "sample_2": ["advanced", "basic", "intermediate"],
        "three": ["basic", "basic", "basic"],
    }
    Path("output").mkdir()
    records = [
        {"question_id": id_, "epoch": epoch, "difficulty": level, "response": "A"}
        | {"label": "A", "options": LINE["options"]}
        for id_, levels in of_epochs.items()
        for epoch, level in enumerate(levels, start=1)
    ]
    Path("output/run.json").write_text(json.dumps(records))
    assert split(["--dataset", "mine"]) == 0
    captured = capsys.readouterr()
    assert "level differs between epochs for 2 of 3 questions" in captured.out + captured.err
    assert [entry.id for entry in open_dataset("mine", Path("data"), "test_basic").index] == [
        "one",
        "three",
    ]
    advanced = open_dataset("mine", Path("data"), "test_advanced")
    assert [entry.id for entry in advanced.index] == ["sample_2"]


def test_a_part_of_an_earlier_split_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    write_run({"one": "basic", "three": "basic"})
    earlier = Path("data/mine/test_advanced.jsonl")
    earlier.write_text("mine\n")
    assert split(["--dataset", "mine"]) == 0
    assert (
        f"{earlier}: left as it was; output/run.json routed no question to advanced"
        in capsys.readouterr().out
    )
    assert earlier.read_text() == "mine\n"


def test_split_leaves_out_what_no_router_rated(capsys: pytest.CaptureFixture[str]) -> None:
    write_run({"one": "basic", "sample_2": "basic"}, routed_by="forced")
    assert split(["--dataset", "mine"]) == 2
    assert "no router rated a question of output/run.json" in capsys.readouterr().err
    records = json.loads(Path("output/run.json").read_text())
    Path("output/run.json").write_text(
        json.dumps([records[0] | {"routed_by": "router"}, records[1]])
    )
    assert split(["--dataset", "mine"]) == 0
    assert [entry.id for entry in open_dataset("mine", Path("data"), "test_basic").index] == ["one"]


def test_a_run_without_levels_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    write_run({"one": "", "sample_2": ""}, routed_by="method")
    assert split(["--dataset", "mine", "--to", "parts"]) == 2
    assert capsys.readouterr().err == (
        "error: no question of output/run.json has a level; give an adaptive run\n"
    )
    assert not Path("parts").exists()
    assert split(["--input", "output/run.json", "--output-dir", "parts"]) == 2
    assert "(--to says where the parts go)" in capsys.readouterr().err


def test_a_run_of_another_data_set_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    write_run({"elsewhere": "basic"})
    assert split(["--dataset", "mine"]) == 2
    assert "the first: elsewhere" in capsys.readouterr().err
    assert not list(Path("data/mine").glob("test_*"))


def test_extract_prints_or_writes(capsys: pytest.CaptureFixture[str]) -> None:
    assert extract(["--dataset", "mine", "three", "one"]) == 0
    printed = [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()]
    assert printed == ["three", "one"]
    assert extract(["--dataset", "mine", "sample_2", "--output", "part/x.jsonl"]) == 0
    assert open_dataset("part/x.jsonl", Path()).index[0].id == "sample_2"


def test_a_part_still_tells_how_its_options_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    columns: dict[str, object] = {"opa": "w", "opb": "x", "opc": "y", "opd": "z"}
    lines = [columns | {"id": f"q{cop}", "question": "?", "cop": cop} for cop in (2, 4)]
    Path("data/mine/test.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    assert extract(["--dataset", "mine", "q2", "--output", "part/x.jsonl"]) == 0
    part = open_dataset("part/x.jsonl", Path())
    assert part.load(part.index[0]).options[part.load(part.index[0]).gold] == "x"


def test_extract_names_missing_ids(capsys: pytest.CaptureFixture[str]) -> None:
    assert extract(["--dataset", "mine", "one", "nope"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.rstrip().endswith("no question with id nope")


def test_the_parts_of_the_shipped_sample_do_not_go_into_the_package(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_run({"sample-001": "basic", "sample-002": "advanced"})
    assert split([]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "data/medqa/sample_advanced.jsonl: 1 question",
        "data/medqa/sample_basic.jsonl: 1 question",
    ]
    assert len(open_dataset("medqa", Path("data"), "basic").index) == 1


def test_questions_that_cannot_be_printed_are_not_lost_in_silence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr("sys.stdout", full)
        assert extract(["--dataset", "mine", "one"]) == 1
    assert "could not be printed: No space left on device" in capsys.readouterr().err
