"""Where records keep the pictures of questions, and what they belong to."""

from __future__ import annotations

import base64
import csv
import os
import textwrap
import unicodedata
import zipfile
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from mdagents.datasets.dataset import open_dataset
from mdagents.datasets.pictures.places import copy_of
from mdagents.datasets.pictures.question_picture import MOST_PICTURES, given_pictures
from mdagents.datasets.question_records import parse_question
from mdagents.datasets.questions import SourceQuestion, present
from mdagents.settings import OptionOrder
from mdagents_llm.errors import ConfigError
from tests.mdagents.datasets.made_pictures import BLUE, GREEN, RED, encoded, png

PLAIN: dict[str, Any] = {"question": "Which?", "options": ["yes", "no"], "answer_idx": "A"}
A, B, C = png(RED), png(GREEN), png(BLUE)
URI = "data:image/png;base64," + base64.b64encode(A).decode()
ADDRESS = "https://x.example/ecg/12?size=full"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a.png and b.png, and images/c.png."""
    (tmp_path / "images").mkdir()
    for name, content in (("a.png", A), ("b.png", B), ("images/c.png", C)):
        (tmp_path / name).write_bytes(content)
    return tmp_path


def parsed(record: dict[str, Any], folder: Path | None) -> SourceQuestion:
    whole = {name: value for name, value in (PLAIN | record).items() if name != "options" or value}
    return parse_question(whole, "x.jsonl line 1", 1, folder=folder)


def test_names_that_differ_in_case_alone_are_not_mixed_up(folder: Path) -> None:
    (folder / "A.png").write_bytes(B)
    assert [one.read() for one in parsed({"images": ["a.png", "A.png"]}, folder).pictures] == [A, B]
    assert (
        parsed({"image": "a.PNG"}, folder).missing_picture == "field 'image': 'a.PNG' is not there"
    )


FORMS: list[tuple[dict[str, Any], list[bytes]]] = [
    ({"images": ["a.png", "b.png"]}, [A, B]),
    ({"images": "a.png"}, [A]),
    ({"Image Path": "a.png"}, [A]),
    ({"image_2": "b.png", "image_1": "a.png", "image_3": None}, [A, B]),
    ({"img": {"bytes": base64.b64encode(A).decode(), "path": "elsewhere.png"}}, [A]),
    ({"image": {"bytes": None, "path": "a.png"}}, [A]),
    ({"image": URI}, [A]),
    ({"image": "\n".join(textwrap.wrap(URI, 76))}, [A]),  # Base64 in lines, as of MIME
    ({"image": base64.b64encode(A).decode()}, [A]),  # VLMEvalKit's tables
    ({"images": "a.png; b.png"}, [A, B]),
    ({"images": '["a.png", "b.png"]'}, [A, B]),
    ({"images": "['a.png', 'b.png']"}, [A, B]),  # a list as pandas writes it into a table
    ({"image": "c.png"}, [C]),  # MedXpertQA names files without their folder
    ({"image": "./images/c.png"}, [C]),
    ({"image": "images\\c.png"}, [C]),
    ({"image": "A.PNG"}, [A]),  # from Windows, where case does not matter
    ({"image": "C.Png"}, [C]),
    ({"stimulus": "a.png"}, [A]),
    ({"image": "a.png", "image_url": ADDRESS, "image_id": 7, "has_image": True}, [A]),
    ({"image": "a.png", "image_preview": {"bytes": "831 bytes", "path": None}}, [A]),  # HLE
    ({"image": "a.png", "img_path": "a.png"}, [A]),
    ({"question": [{"type": "text", "text": "Which?"},
                   {"type": "image_url", "image_url": {"url": URI}}]}, [A]),
    ({"messages": [{"role": "user", "content": [{"type": "image", "source": {
        "type": "base64", "media_type": "image/png", "data": base64.b64encode(A).decode()}}]}]},
     [A]),
    ({"messages": [{"role": "user", "content": [{"type": "input_image", "image_url": URI}]}]}, [A]),
    ({"question": "![ECG](a.png) Which?"}, [A]),
    ({"question": '<img alt="x" src="a.png"> Which?'}, [A]),
    ({"question": f"Look: {URI} Which?"}, [A]),
]  # fmt: skip


@pytest.mark.parametrize(("record", "contents"), FORMS)
def test_forms_of_pictures(record: dict[str, Any], contents: list[bytes], folder: Path) -> None:
    question = parsed(record, folder)
    assert [picture.read() for picture in question.pictures] == contents
    assert question.missing_picture == ""
    assert "base64" not in question.text
    assert question.text.endswith("Which?") or "[Picture 1]" in question.text


def test_marks_bind_pictures_by_their_number(folder: Path) -> None:
    """MMMU numbers its marks, and refers to them in any order; some belong to options."""
    question = parsed(
        {
            "question": "Compare <image 3> with <image 1>.",
            "image_1": "a.png",
            "image_2": "b.png",
            "image_3": "images/c.png",
            "options": ["<image 2>", "neither, see <image 1>"],
        },
        folder,
    )
    assert question.text == "Compare [Picture 2] with [Picture 1]."
    assert [(p.read(), p.option) for p in question.pictures] == [(A, ""), (C, ""), (B, "A")]
    assert question.options == {"A": "", "B": "neither, see [Picture 1]"}
    shown = present(question, OptionOrder.ORIGINAL, 0)
    assert "A) [Picture 3]" in shown.block()


def test_marks_without_a_number_are_counted(folder: Path) -> None:
    question = parsed({"question": "<image>\n<image>\nSame?", "images": ["a.png", "b.png"]}, folder)
    assert question.text == "[Picture 1]\n[Picture 2]\nSame?"
    fewer = parsed({"question": "<image> <image>", "images": ["a.png"]}, folder)
    assert fewer.missing_picture == "'<image>' in the text"
    assert parsed({"question": "<image 3>", "image_1": "a.png"}, folder).missing_picture


def test_parts_keep_the_place_of_a_picture(folder: Path) -> None:
    parts = [
        {"type": "text", "text": "Before:"},
        {"type": "image", "image": "a.png"},
        {"type": "text", "text": "After:"},
        {"type": "image"},
    ]
    question = parsed({"question": parts, "images": ["b.png"]}, folder)
    assert [p.read() for p in question.pictures] == [B, A]
    assert question.text == "Before:\n[Picture 2]\nAfter:\n[Picture 1]"


OPTIONS: list[dict[str, Any]] = [
    {"options": [{"text": "yes"}, {"text": "", "image": "b.png"}]},
    {"options": {"A": "yes", "B": {"image": {"path": "b.png"}}}},
    {"options": [{"key": "A", "value": "yes"}, {"key": "B", "value": "", "image": "b.png"}]},
    {"options": ["yes", "b.png"]},
    {"options": ["yes", "![](b.png)"]},
    {"options": ["yes", ""], "images": [{"path": "b.png", "option": "b"}]},
    {"options": ["yes", None], "image_b": "b.png"},
    {"options": "['yes', 'b.png']"},
    {"option1": "yes", "option2": "", "option2_image": "b.png", "options": None},
    {"option0": "yes", "option1": "", "image_option_1": "b.png", "options": None},
]


@pytest.mark.parametrize("record", OPTIONS)
def test_pictures_of_options(record: dict[str, Any], folder: Path) -> None:
    question = parsed(record, folder)
    assert [(p.read(), p.option) for p in question.pictures] == [(B, "B")]
    assert question.options == {"A": "yes", "B": ""}
    assert (question.hidden, question.missing_picture) == ({}, "")


def test_the_answer_may_be_the_file_of_an_option(folder: Path) -> None:
    record = {"question": "Which?", "options": ["a.png", "b.png"], "answer": "b.png"}
    assert parse_question(record, "x", 1, folder=folder).gold == "B"
    spaced = folder / "chest x ray.png"
    spaced.write_bytes(C)
    assert parsed({"options": ["chest x ray.png", "none"]}, folder).pictures[0].option == "A"


def test_captions(folder: Path) -> None:
    (picture,) = parsed(
        {"images": [{"path": "a.png", "caption": " lateral\nview "}]}, folder
    ).pictures
    assert picture.caption == "lateral view"
    # A column beside the picture may say what it shows, which is the answer.
    (picture,) = parsed({"image": "a.png", "caption": "scurvy"}, folder).pictures
    assert picture.caption == ""


MISSING: list[tuple[dict[str, Any], str]] = [
    ({"image": "z.png"}, "field 'image': 'z.png' is not there"),
    ({"images": ["a.png", "z.png"]}, "field 'images': 'z.png' is not there"),
    ({"image": "../a.png"}, "field 'image': '../a.png' leads out of the folder of the data set"),
    ({"image": "images/../../x.png"}, "leads out of the folder"),
    ({"image": "/etc/passwd"}, "field 'image': '/etc/passwd' is outside the folder"),
    ({"image": "file:///etc/passwd"}, "is neither a path nor a web address"),
    ({"image": "s3://bucket/a.png"}, "is neither a path nor a web address"),
    ({"image": ADDRESS}, "is an address and is not downloaded"),
    ({"image": "data:image/png;base64,%%%"}, "is not valid Base64"),
    ({"image": "images"}, "'images' is not there"),
    ({"image": "pipe.png"}, "'pipe.png' is not there"),
    ({"image": "x" * 300 + ".png"}, "is not there"),
    ({"image": "out.png"}, "'out.png' is a link out of the folder of the data set"),
    ({"image_1": "a.png", "image_2": ADDRESS}, "is an address and is not downloaded"),
    ({"has_image": True}, "field 'has_image'"),
    ({"question": "<image 1> Which?"}, "'<image 1>' in the text"),
    ({"options": ["yes", "z.png"]}, "option B"),
    ({"image_c": "a.png"}, "there is no option C"),
    ({"images": ["a.png", {"caption": "x"}]}, "neither a path nor content"),
    ({"images": [[[[[[[[[["a.png"]]]]]]]]]]}, "neither a path nor an object"),
    ({"images": [f"{n}.png" for n in range(100)]}, "is not there"),
]  # fmt: skip


@pytest.mark.parametrize(("record", "evidence"), MISSING)
def test_pictures_that_cannot_be_used(record: dict[str, Any], evidence: str, folder: Path) -> None:
    os.mkfifo(folder / "pipe.png")
    (folder.parent / "secret.png").write_bytes(A)
    (folder / "out.png").symlink_to(folder.parent / "secret.png")
    missing = parsed(record, folder).missing_picture
    assert evidence in missing
    assert "\n" not in missing


def test_too_many_pictures(folder: Path) -> None:
    assert parsed({"images": ["a.png"] * (MOST_PICTURES + 1)}, folder).missing_picture == ""
    for number in range(MOST_PICTURES + 1):
        (folder / f"{number}.png").write_bytes(png(side=20 + number))
    named = [f"{number}.png" for number in range(MOST_PICTURES + 1)]
    assert "more than 16 pictures" in parsed({"images": named}, folder).missing_picture
    assert len(parsed({"images": named[:-1]}, folder).pictures) == MOST_PICTURES


def test_a_wrong_option_or_caption_is_named(folder: Path) -> None:
    with pytest.raises(ConfigError, match="belongs to option 'F', but the options are A, B"):
        parsed({"images": [{"path": "a.png", "option": "F"}]}, folder)
    with pytest.raises(ConfigError, match="a caption must be a text of at most 10,000"):
        parsed({"images": [{"path": "a.png", "caption": "x" * 10_001}]}, folder)


def test_copies_of_addresses_and_absolute_paths(folder: Path) -> None:
    (folder / f"{copy_of(ADDRESS)}.jpeg").write_bytes(B)
    assert parsed({"image": ADDRESS}, folder).pictures[0].read() == B
    assert parsed({"image": str(folder / "a.png")}, folder).pictures[0].read() == A


def test_names_in_another_normal_form(folder: Path) -> None:
    (folder / unicodedata.normalize("NFD", "Röntgen.png")).write_bytes(A)
    named = unicodedata.normalize("NFC", "Röntgen.png")
    assert parsed({"image": named}, folder).pictures[0].read() == A


def test_pictures_in_an_archive(folder: Path) -> None:
    with zipfile.ZipFile(folder / "scans.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("d.png", B)
        archive.writestr("scans/e.png", C)
        archive.writestr("../../evil.png", A)
        archive.writestr("bomb.png", bytes(65 * 2**20))
    for named, content in (("d.png", B), ("scans/d.png", B), ("e.png", C), ("scans.zip/d.png", B)):
        assert parsed({"image": named}, folder).pictures[0].read() == content
    assert parsed({"image": "../../evil.png"}, folder).missing_picture
    with pytest.raises(ConfigError, match=r"bomb\.png is larger than 64 MB"):
        parsed({"image": "bomb.png"}, folder).pictures[0].read()


def test_damaged_archives(folder: Path) -> None:
    (folder / "broken.zip").write_bytes(b"PK\x03\x04 no archive")
    assert parsed({"image": "d.png"}, folder).missing_picture
    with zipfile.ZipFile(folder / "damaged.zip", "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("d.png", A)
    raw = bytearray((folder / "damaged.zip").read_bytes())
    raw[60] ^= 255
    (folder / "damaged.zip").write_bytes(raw)
    with pytest.raises(ConfigError, match=r"the picture .*d\.png cannot be read") as error:
        parsed({"image": "d.png"}, folder).pictures[0].read()
    assert "\n" not in str(error.value)


def test_a_table_with_pictures(folder: Path) -> None:
    large = encoded(Image.effect_noise((500, 500), 90))
    uri = "data:image/png;base64," + base64.b64encode(large).decode()
    assert len(uri) > 131_072, "the limit of Python's csv"
    with (folder / "mine.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [["question", "A", "B", "answer", "images"],
             ["One?", "yes", "no", "A", "a.png;b.png"],
             ["Two?", "a.png", "b.png", "B", ""],
             ["Three?", "yes", "no", "A", uri],
             ["Four?", "yes", "no", "A", "z.png"]]
        )  # fmt: skip
    dataset = open_dataset(str(folder / "mine.csv"), folder)
    assert [entry.pictures for entry in dataset.index] == [2, 2, 1, 0]
    assert dataset.index[3].missing_picture == "field 'images': 'z.png' is not there"
    assert dataset.load(dataset.index[2]).pictures[0].read() == large


def test_given_pictures(folder: Path) -> None:
    given = given_pictures([folder / "a.png", str(folder / "b.png"), C, URI])
    assert [picture.read() for picture in given] == [A, B, C, A]
    for images, message in (
        (["https://x.example/a.png"], "not fetched from addresses"),
        ([3], "a picture is int"),
        (["data:text/html,x"], "data URI that is not"),
        ("a.png", "images must be a list"),
        ([C] * 17, "has 17 pictures, at most 16"),
    ):
        with pytest.raises(ConfigError, match=message):
            given_pictures(images)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"cannot be read: No such file"):
        given_pictures([folder / "z.png"])[0].read()
    with pytest.raises(ConfigError, match="is empty"):
        given_pictures([b""])[0].read()
