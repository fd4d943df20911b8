"""`mdagents data download`: data sets with pictures."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from mdagents.data_tools.download import main
from mdagents.datasets.dataset import open_dataset
from tests.mdagents.data_tools.hub import Hub, Workspace, pinned, refusal, source
from tests.mdagents.datasets.published_pictures import archive, image, parquet, picture

pytestmark = pytest.mark.process

RECORDS = [
    {"qid": 1, "question": "Is it red?", "answer": "Yes", "q_lang": "en", "img_name": "a/s.png"},
    {"qid": 2, "question": "Is it?", "answer": "no ", "q_lang": "en", "img_name": "b/s.png"},
    {"qid": 3, "question": "Where?", "answer": "Here", "q_lang": "en", "img_name": "b/s.png"},
]


def sources(hub: Hub, tmp_path: Path, *, is_published: bool = False) -> list[dict[str, Any]]:
    """A data set in the form of SLAKE, without published checksums unless asked for."""
    members = {"imgs/a/s.png": picture(1), "imgs/b/s.png": picture(2)}
    questions = hub.serve(json.dumps(RECORDS).encode(), target="test.json")
    pictures = hub.serve(archive(tmp_path / "i.zip", members).read_bytes(), target="imgs.zip")
    other = {} if is_published else {"sha256": ""}
    files = [pinned(questions, "test.json", **other), pinned(pictures, "imgs.zip", **other)]
    return [source(b"", records=3, files=files, pictures="slake")]


@pytest.mark.parametrize("large", [False, True], ids=["git", "lfs"])
def test_questions_and_pictures_are_in_one_folder(
    hub: Hub, workspace: Workspace, tmp_path: Path, large: bool
) -> None:
    hub.large_files = large
    done = workspace.run(sources(hub, tmp_path))
    assert (done.returncode, done.stderr) == (0, ""), done
    names = sorted(hashlib.sha256(picture(n)).hexdigest()[:32] + ".png" for n in (1, 2))
    assert workspace.listing() == [
        "quiz",
        "quiz/SOURCE.json",
        "quiz/images",
        *[f"quiz/images/{name}" for name in names],
        "quiz/test.jsonl",
    ]
    assert "2 records, made from files with the checksums that the Hub reports" in done.stdout
    assert "left out: 1 of" in done.stdout
    note = json.loads((workspace.data / "quiz/SOURCE.json").read_text())["files"]["test.jsonl"]
    assert (note["records"], note["left_out"], note["pictures"]) == (2, 1, 2)
    archived = hashlib.sha256(hub.files["files/imgs.zip"]).hexdigest()
    assert [file["as_reported"] for file in note["upstream"]] == [True, True]
    assert note["upstream"][1]["sha256"] == archived
    dataset = open_dataset("quiz", workspace.data)
    shown = [dataset.load(entry).pictures[0].read() for entry in dataset.index]
    assert shown == [picture(1), picture(2)]

    asked = len(hub.requests)
    again = workspace.run(sources(hub, tmp_path))
    assert "already there, unchanged since" in again.stdout
    assert len(hub.requests) == asked


def test_a_published_checksum_counts_more_than_a_reported_one(
    hub: Hub, workspace: Workspace, tmp_path: Path
) -> None:
    hub.reported = "ab" * 32
    done = workspace.run(sources(hub, tmp_path, is_published=True))
    assert done.returncode == 0, done
    assert "made from files with verified checksums" in done.stdout
    assert "as_reported" not in (workspace.data / "quiz/SOURCE.json").read_text()


@pytest.mark.parametrize("reported", ["0" * 40, "0" * 64, "not a checksum"])
def test_without_the_reported_checksum_nothing_is_made(
    hub: Hub, workspace: Workspace, tmp_path: Path, reported: str
) -> None:
    hub.reported = reported
    line = refusal(workspace.run(sources(hub, tmp_path)))
    assert ("reports no checksum" if " " in reported else " is wrong: expected 0000") in line
    assert not (workspace.data / "quiz/test.jsonl").exists()


def test_a_download_that_failed_is_resumed(hub: Hub, workspace: Workspace, tmp_path: Path) -> None:
    asked = sources(hub, tmp_path)
    hub.only = frozenset({"files/test.json"})
    assert "404" in refusal(workspace.run(asked))
    assert (workspace.data / "quiz/.download").is_dir()
    hub.only = frozenset({"files/imgs.zip", "files/test.json"})
    before = len([1 for method, path, _ in hub.requests if "test.json" in path and method == "GET"])
    assert workspace.run(asked).returncode == 0
    after = len([1 for method, path, _ in hub.requests if "test.json" in path and method == "GET"])
    assert after == before, "its content was there"
    assert not (workspace.data / "quiz/.download").exists()


def test_a_download_without_a_published_file_leaves_nothing(
    hub: Hub, workspace: Workspace, tmp_path: Path
) -> None:
    hub.only = frozenset()
    assert "404" in refusal(workspace.run(sources(hub, tmp_path)))
    assert workspace.listing() == []


def test_pictures_that_were_deleted_are_made_again(
    hub: Hub, workspace: Workspace, tmp_path: Path
) -> None:
    asked = sources(hub, tmp_path)
    workspace.run(asked)
    lost = next((workspace.data / "quiz/images").iterdir())
    content = lost.read_bytes()
    lost.unlink()
    assert workspace.run(asked).returncode == 0
    assert lost.read_bytes() == content


def test_files_that_a_user_has_are_read_in_their_published_form(
    workspace: Workspace, tmp_path: Path
) -> None:
    rows = [{"image": image(picture(3)), "question": "Is it?", "answer": "Yes"}]
    file = parquet(tmp_path / "test.parquet", rows)
    done = workspace.run_real("vqa-rad", "--from", str(file))
    assert done.returncode == 0, done
    assert "1 records, checksum not verified (local file)" in done.stdout
    dataset = open_dataset("vqa-rad", workspace.data)
    assert dataset.load(dataset.index[0]).pictures[0].read() == picture(3)
    assert "451 published" not in done.stdout


@pytest.mark.parametrize(
    ("name", "files", "message"),
    [
        ("slake", ["i.zip"], "--from names 0 files of questions; give one, and one .zip archive"),
        (
            "slake",
            ["i.zip", "a.json", "b.json"],
            "--from names 2 files of questions; give one, and",
        ),
        ("pmc-vqa", ["i.zip"], "--from names 0 files of questions"),  # TsinghuaC3I/MedXpertQA#8
        ("medxpertqa-mm", ["i.zip"], "--from names 0 files of questions"),
        ("slake", ["a.json"], "--from names 0 .zip archives; give one with the pictures"),
        ("omnimedvqa", ["i.zip", "a.json"], "in the .zip archive; leave a.json out of --from"),
        ("slake", ["i.zip", "a.json"], "a.json has no questions in it; 2 of a.json (record 1, 2):"),
        ("medxpertqa-mm", ["i.zip", "c.JSONL"], "1 of c.JSONL (line 3): its picture is missing"),
    ],
)
def test_files_that_are_not_those_of_a_set_are_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    files: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    archive(tmp_path / "i.zip", {"a.txt": b""})
    for file in ("a.json", "b.json"):
        Path(file).write_text(json.dumps([{"q_lang": "zh"}] * 2))
    Path("c.JSONL").write_text('\n\n{"images": []}\n')
    assert main([name, "--from", *files]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(Path().glob("data/*/.download"))
