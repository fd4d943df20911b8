"""`mdagents data download --from`: files that a user has."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mdagents.data_tools.download import download
from mdagents.datasets.dataset import open_dataset
from mdagents.datasets.sources import BY_HAND
from tests.conftest import REPOSITORY
from tests.mdagents.data_tools.hub import Hub, Workspace, jsonl, refusal

pytestmark = pytest.mark.process


@pytest.mark.parametrize("name", BY_HAND)
def test_what_is_not_pinned_says_how_to_place_it(hub: Hub, workspace: Workspace, name: str) -> None:
    line = refusal(workspace.run_real(name))

    assert f"{name} cannot be downloaded automatically" in line
    assert "https://" in line
    assert hub.requests == []
    assert not workspace.data.exists()


def test_a_table_that_a_user_has(hub: Hub, workspace: Workspace) -> None:
    table = workspace.folder / "medbullets_op4.csv"
    header = "link,question,opa,opb,opc,opd,answer_idx,answer,explanation\n"
    table.write_text(f'{header}http://x,"What, next?",Wait,Cut,See,Treat,C,See,Long\n')

    done = workspace.run_real("medbullets", "--from", str(table))

    assert done.returncode == 0, done
    record = json.loads((workspace.data / "medbullets/test.jsonl").read_text())
    assert (record["question"], record["opc"]) == ("What, next?", "See")
    note = json.loads((workspace.data / "medbullets/SOURCE.json").read_text())
    (upstream,) = note["files"]["test.jsonl"]["upstream"]
    assert (upstream["host"], upstream["path"]) == ("by hand", "medbullets_op4.csv")
    assert str(workspace.folder) not in json.dumps(note)
    assert note["files"]["test.jsonl"]["verified_at"] is None
    assert "1 records, checksum not verified (local file)" in done.stdout
    assert "checksum verified" not in done.stdout
    assert workspace.run_real("medbullets", "--from", str(table)).returncode == 0


def test_json_lines_that_a_user_has(hub: Hub, workspace: Workspace) -> None:
    mine = workspace.folder / "dev.jsonl"
    mine.write_bytes(jsonl(3))

    done = workspace.run_real("medxpertqa", "--from", str(mine), "--split", "train")

    assert done.returncode == 0, done
    assert (workspace.data / "medxpertqa/train.jsonl").read_bytes() == mine.read_bytes()
    assert mine.exists()
    assert "there is no file" in refusal(workspace.run_real("medxpertqa", "--from", "none.jsonl"))
    assert "--cop-from is about the file that --from names" in refusal(
        workspace.run_real("medmcqa", "--cop-from", "1")
    )


def medmcqa(*places: int) -> bytes:
    """Records of MedMCQA; the option that `cop` names when it counts from 1 is `right`."""
    columns = ("opa", "opb", "opc", "opd")
    return b"".join(
        json.dumps(
            {"id": f"q{n}", "question": f"Which, {n}?", "cop": place}
            | {c: "right" if i == place - 1 else f"wrong {c}" for i, c in enumerate(columns)}
        ).encode()
        + b"\n"
        for n, place in enumerate(places)
    )


def test_how_a_file_of_medmcqa_counts_is_asked_when_it_does_not_tell(
    hub: Hub, workspace: Workspace
) -> None:
    mine = workspace.folder / "dev.json"
    mine.write_bytes(medmcqa(1, 2, 3))

    line = refusal(workspace.run_real("medmcqa", "--from", str(mine)))
    assert f"error: {mine}: field 'cop' may count from 0 or from 1" in line
    assert f"python -m mdagents data download medmcqa --from {mine} --cop-from 1" in line

    done = workspace.run_real("medmcqa", "--from", str(mine), "--cop-from", "1")
    assert done.returncode == 0, done
    assert "field 'cop' counts the options from 1 (as --cop-from says)" in done.stdout
    dataset = open_dataset("medmcqa", workspace.data)
    questions = [dataset.load(entry) for entry in dataset.index]
    assert [q.options[q.gold] for q in questions] == ["right"] * 3
    assert "counts the options from 1 (as SOURCE.json beside it says)" in dataset.notice

    again = workspace.run_real("medmcqa", "--from", str(mine), "--cop-from", "1")
    assert "already there, unchanged since; checksum not verified (local file)" in again.stdout
    other = ["medmcqa", "--from", str(mine), "--cop-from", "0"]
    assert "--force" in refusal(workspace.run_real(*other))
    assert workspace.run_real(*other, "--force").returncode == 0
    assert open_dataset("medmcqa", workspace.data).load(dataset.index[0]).gold == "B"


def test_a_file_that_contradicts_what_the_user_says_is_refused(
    hub: Hub, workspace: Workspace
) -> None:
    mine = workspace.folder / "dev.json"
    mine.write_bytes(medmcqa(1, 4))

    line = refusal(workspace.run_real("medmcqa", "--from", str(mine), "--cop-from", "0"))

    assert "field 'cop' is 4 but must be 0 to 3, as this file counts from 0" in line
    assert workspace.listing() == []


def test_an_interrupted_command_is_finished_by_the_same_command(workspace: Workspace) -> None:
    """A kill between two writes, as in UKGovernmentBEIS/inspect_ai#913."""
    mine = workspace.folder / "dev.json"
    mine.write_bytes(medmcqa(1, 4))
    script = [sys.executable, "-u", "-m", "mdagents", "data", "download", "medmcqa"]
    command = [*script, "--data-dir", str(workspace.data), "--from", str(mine)]
    with subprocess.Popen(
        command, cwd=REPOSITORY, env=workspace.environment, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()

    again = workspace.execute(command)

    assert again.returncode == 0, again
    assert "test.jsonl: already there, unchanged since" in again.stdout
    (workspace.data / "medmcqa/test.jsonl").unlink()
    assert workspace.execute(command).returncode == 0
    assert workspace.listing() == ["medmcqa", "medmcqa/SOURCE.json", "medmcqa/test.jsonl"]


def test_the_origin_of_a_file_is_noted_before_the_file_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, data = tmp_path / "dev.json", tmp_path / "data"
    mine.write_bytes(medmcqa(1, 4))
    replace = Path.replace

    def interrupted(path: Path, target: Path) -> Path:
        if target.name == "test.jsonl":
            raise KeyboardInterrupt
        return replace(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            download("medmcqa", data, by_hand=[mine])
    assert [path.name for path in (data / "medmcqa").iterdir()] == ["SOURCE.json"]
    download("medmcqa", data, by_hand=[mine])
    assert len(open_dataset("medmcqa", data).index) == 2


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", "question,opa\nWhich?,Säure".encode("latin-1"), "is not UTF-8 text; save it as"),
        ("x.csv", b"question\n" + b"x" * 200_000, "record 1: there are no options"),
        ("x.csv", b"question,opa,opb,answer_idx\n" + b"x" * 110_000 + b",y,n,A\n",
         "record 1: field 'question' has 110,000 characters, at most 100,000 may be"),
        ("x.parquet", b"no table", "cannot be read as Parquet"),
        ("x.xlsx", b"", "ends in .xlsx; --from takes .jsonl"),
        ("x.jsonl", b'{"a":' * 10_000 + b"\n", "line 1 is nested too deeply"),
        ("x.jsonl", b'{"question": "cut\\u0000off"}\n', "field 'question' holds a NUL character"),
        ("x.jsonl", b"\n\n", "has no questions in it"),
    ],
)  # fmt: skip
def test_an_odd_file_is_one_line(
    hub: Hub, workspace: Workspace, name: str, content: bytes, message: str
) -> None:
    file = workspace.folder / name
    file.write_bytes(content)

    line = refusal(workspace.run_real("medbullets", "--from", str(file)))

    assert str(file) in line
    assert message in line
    assert workspace.listing() == []
