"""The sample of questions with pictures stays what `data/vqa-sample/README.md` says it is."""

from __future__ import annotations

import base64
import io
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image

from mdagents.datasets.dataset import is_shipped, open_dataset
from mdagents.datasets.pictures.preparing import PictureSettings, prepare_picture
from mdagents.datasets.questions import Question, SourceQuestion, present
from mdagents.settings import OptionOrder
from mdagents_llm.errors import ConfigError
from mdagents_llm.pictures import Picture
from scripts import make_vqa_sample
from tests.conftest import REPOSITORY

FOLDER = REPOSITORY / "mdagents" / "datasets" / "vqa_sample"
RECORDS = [json.loads(line) for line in (FOLDER / "test.jsonl").read_text("utf-8").splitlines()]


def sources() -> list[SourceQuestion]:
    dataset = open_dataset("vqa-sample", Path("none"))
    return [dataset.load(entry) for entry in dataset.index]


def questions() -> dict[str, Question]:
    return {source.id: present(source, OptionOrder.ORIGINAL, seed=0) for source in sources()}


def prepared(id_: str) -> tuple[Picture, ...]:
    pictures = questions()[id_].pictures
    return tuple(prepare_picture(picture, PictureSettings(), "") for picture in pictures)


def pixels(picture: Picture) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(picture.base64))).convert("RGB")


@pytest.mark.parametrize("data_dir", [REPOSITORY / "data", Path("none")], ids=["clone", "none"])
def test_it_is_everywhere_and_says_what_it_is(data_dir: Path) -> None:
    dataset = open_dataset("VQA-Sample", data_dir)
    assert (dataset.name, len(dataset.index)) == ("vqa-sample", 12)
    assert "not a benchmark" in dataset.notice
    assert is_shipped(dataset) == (data_dir == Path("none"))
    assert not any(entry.missing_picture for entry in dataset.index)
    with pytest.raises(ConfigError, match=r"has no split 'train' in .*\(there: test\)"):
        open_dataset("vqa-sample", data_dir, "train")


def test_every_picture_decodes() -> None:
    counts = Counter[str]()
    for question in questions().values():
        for picture in prepared(question.id):
            assert min(picture.width, picture.height) > 60
            counts[question.id] += 1
    assert counts.total() == sum(len(record["images"]) for record in RECORDS) == 16
    assert counts["vqa-004"] == 2
    assert counts["vqa-010"] == 4


def test_pictures_of_options_move_with_their_options() -> None:
    source = next(one for one in sources() if one.id == "vqa-010")
    for seed in range(5):
        question = present(source, OptionOrder.SHUFFLED, seed)
        shown = [picture.file for picture in question.pictures if picture.option == question.gold]
        assert [file.name for file in shown if file] == ["13.png"]


def test_the_arrow_points_to_the_right_once_it_is_turned() -> None:
    with Image.open(FOLDER / "images" / "06.jpg") as stored:
        assert stored.width < stored.height
        assert stored.getexif()[0x0112] == 6
    (picture,) = prepared("vqa-006")
    shown = pixels(picture)
    assert shown.width > shown.height
    dark = shown.convert("L").point(lambda level: 255 if level < 120 else 0)
    left, right = (dark.crop((x, 0, x + 10, shown.height)).getbbox() for x in (230, 350))
    assert left is not None
    assert right is not None
    assert left[3] - left[1] > 2 * (right[3] - right[1]), "the arrow ends in a point"


def test_letters_are_balanced_and_file_names_tell_nothing() -> None:
    assert Counter(record["answer_idx"] for record in RECORDS) == dict.fromkeys("ABCD", 3)
    names = {name for record in RECORDS for name in record["images"]}
    assert all(re.fullmatch(r"images/\d\d\.(?:jpg|png|gif|tif|dcm)", name) for name in names)
    assert {Path(name).suffix for name in names} == {".jpg", ".png", ".gif", ".tif", ".dcm"}
    assert {f"images/{path.name}" for path in (FOLDER / "images").iterdir()} == names


def test_the_files_are_small_and_those_of_the_script() -> None:
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < 600_000
    assert (FOLDER / "images" / "05.dcm").stat().st_size < 60_000
    assert {path.name for path in (FOLDER / "images").iterdir()} == {*make_vqa_sample.PICTURES}
    made = [(question, letter) for question, _, letter, *_ in make_vqa_sample.QUESTIONS]
    assert made == [(record["question"], record["answer_idx"]) for record in RECORDS]
    source = (FOLDER / "SOURCE.txt").read_text("utf-8")
    assert all(name in source for name in ("01.jpg", "03.jpg", "05.dcm", "CC0", "MIT"))


def test_drawings_are_those_of_the_script(tmp_path: Path) -> None:
    for name in ("07.gif", "09.png", "13.png", "14.png"):
        make_vqa_sample.PICTURES[name](tmp_path / name)
        with Image.open(tmp_path / name) as made, Image.open(FOLDER / "images" / name) as shipped:
            assert made.convert("RGB").tobytes() == shipped.convert("RGB").tobytes(), name


def test_a_package_that_is_missing_leaves_the_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(path: Path) -> None:
        raise SystemExit("skimage is missing")

    images = tmp_path / "images"
    images.mkdir()
    (images / "01.jpg").write_bytes(b"before")
    (images / "old.jpg").write_bytes(b"before")
    drawn = {"07.gif": make_vqa_sample.PICTURES["07.gif"]}
    monkeypatch.setattr(make_vqa_sample, "FOLDER", tmp_path)
    monkeypatch.setattr(make_vqa_sample, "PICTURES", {**drawn, "01.jpg": missing})
    with pytest.raises(SystemExit):
        make_vqa_sample.main()
    assert {path.name for path in images.iterdir()} == {"01.jpg", "old.jpg"}
    monkeypatch.setattr(make_vqa_sample, "PICTURES", drawn)
    make_vqa_sample.main()
    assert [path.name for path in images.iterdir()] == ["07.gif"]
    assert (tmp_path / "test.jsonl").read_text("utf-8").count("\n") == len(RECORDS)
