"""Data sets with pictures become questions; what cannot be asked is left out and counted."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mdagents.data_tools.question_files import Made, make_questions
from mdagents.datasets import picture_conversion
from mdagents.datasets.dataset import open_dataset
from mdagents.datasets.picture_conversion import Convert
from mdagents.datasets.pictures.files import NoPictureError, PictureArchive, PictureFolder
from mdagents.datasets.questions import SourceQuestion
from mdagents_llm.errors import ConfigError
from tests.mdagents.datasets.published_pictures import (
    archive,
    image,
    listed,
    parquet,
    picture,
    table,
)


def made(
    convert: Convert, files: Sequence[Path], folder: Path
) -> tuple[list[SourceQuestion], Made]:
    """The questions that a run reads, and what was said of those left out."""
    folder.mkdir(exist_ok=True)
    records = convert(files, PictureFolder(folder))
    done = make_questions(records, "someone/pictures", folder / "test.jsonl", folder=folder)
    dataset = open_dataset(str(folder / "test.jsonl"), folder)
    return [dataset.load(entry) for entry in dataset.index], done


def stored(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "images").iterdir())


def name_of(content: bytes, ending: str) -> str:
    return f"{hashlib.sha256(content).hexdigest()[:32]}.{ending}"


def test_yes_and_no_in_any_writing_are_options_and_other_answers_are_left_out(
    tmp_path: Path,
) -> None:
    asked = [
        ("Is it red?", "yes", picture(1)),
        ("Is it blue ?", " No", picture(1)),  # the same picture again
        ("is it gray?", "YES.", picture(2, form="JPEG", mode="L")),
        ("Is it printed?", "no ", picture(3, form="JPEG", mode="CMYK")),
        ("Where is it?", "left lung", picture(4)),
        ("Which?", "", picture(4)),
        ("Is it lost?", "yes", None),
        ("Is it empty?", "no", b""),
        ("Is it text?", "no", b"<html>not found</html>"),
    ]
    rows: list[dict[str, object]] = [
        {"image": image(content, "x.jpg"), "question": question, "answer": answer}
        for question, answer, content in asked
    ]
    rows[6]["image"] = None
    file = parquet(tmp_path / "test.parquet", rows)
    questions, done = made(picture_conversion.yes_no_rows, [file], tmp_path / "set")
    assert [(one.text, one.options[one.gold]) for one in questions] == [
        ("Is it red?", "yes"),
        ("Is it blue ?", "no"),
        ("is it gray?", "yes"),
        ("Is it printed?", "no"),
    ]
    assert all(dict(one.options) == {"A": "yes", "B": "no"} for one in questions)
    assert (done.records, done.published) == (4, 9)
    assert done.left_out == (
        "2 of someone/pictures (line 5, 6): the answer is open: there are no options",
        "2 of someone/pictures (line 7, 8): its picture is missing",
        "1 of someone/pictures (line 9): its picture is in no known format",
    )
    assert stored(tmp_path / "set") == sorted(
        [
            name_of(picture(1), "png"),
            name_of(picture(2, form="JPEG", mode="L"), "jpg"),
            name_of(picture(3, form="JPEG", mode="CMYK"), "jpg"),
        ]
    ), "each once, none of a question that is left out"
    (shown,) = questions[1].pictures
    assert shown.read() == picture(1)


def test_rows_of_several_files_are_numbered_on(tmp_path: Path) -> None:
    row = {"image": image(picture()), "question": "Is it?", "answer": "yes"}
    files = [parquet(tmp_path / f"{n}.parquet", [row] * 3) for n in range(2)]
    questions, _ = made(picture_conversion.yes_no_rows, files, tmp_path / "set")
    assert [one.id for one in questions] == [f"row-{n}" for n in range(6)]


def test_texts_without_a_type_are_texts(tmp_path: Path) -> None:
    row = {"image": image(picture()), "question": b"Is it?", "answer": b"yes"}
    file = parquet(tmp_path / "test.parquet", [row])
    ((question,), _) = made(picture_conversion.yes_no_rows, [file], tmp_path / "set")
    assert (question.text, question.gold) == ("Is it?", "A")
    assert question.pictures[0].read() == picture()


def slake_record(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "img_id": 1,
        "img_name": "xmlab1/source.jpg",
        "question": "Does it contain the lung?",
        "answer": "Yes",
        "q_lang": "en",
        "location": "Lung",
        "modality": "X-Ray",
        "answer_type": "CLOSED",
        "qid": number,
    } | changes


def test_slake_is_read_from_its_list_and_its_archive(tmp_path: Path) -> None:
    pictures = archive(
        tmp_path / "imgs.zip",
        {
            "imgs/": b"",
            "imgs/xmlab1/source.jpg": picture(1, form="JPEG"),
            "imgs/xmlab2/source.jpg": picture(2, form="JPEG"),
            "__MACOSX/imgs/xmlab1/source.jpg": b"\x00\x05\x16\x07",
        },
    )
    records = [
        slake_record(1),
        slake_record(2, img_name="xmlab2/source.jpg", answer="No"),
        slake_record(3, q_lang="zh", question="?", answer="是"),
        slake_record(4, answer="Left"),  # closed, and neither yes nor no
        slake_record(5, img_name="xmlab3/source.jpg"),
        slake_record(6, img_name="source.jpg"),  # of which there are two
    ]
    file = listed(tmp_path / "test.json", records)
    questions, done = made(picture_conversion.slake, [file, pictures], tmp_path / "set")
    assert [(one.id, one.gold) for one in questions] == [("1", "A"), ("2", "B")]
    assert questions[0].pictures[0].read() == picture(1, form="JPEG")
    reasons = [line.partition("): ")[2] for line in done.left_out]
    assert reasons == [
        "it is not in English",
        "the answer is open: there are no options",
        "its picture is not in the archive, or under two names",
    ]


@pytest.mark.parametrize("label", ["Answer_label", "Answer"])
def test_the_letters_before_options_are_removed(tmp_path: Path, label: str) -> None:
    row = {
        "Figure_path": "PMC1_F1.jpg",
        " Question ": " What is shown?",
        "Choice A": " A:A cell",
        "Choice B": "B: B cell",
        "Choice C": "C:",
        "Choice D": " Vitamin D: a lack",
        label: "B",
    }
    file = table(tmp_path / "test.csv", [row, row | {"Figure_path": "pmc2_f1.JPG"}])
    members = {"figures/PMC1_F1.jpg": picture(1), "figures/PMC2_F1.jpg": picture(2)}
    pictures = archive(tmp_path / "images.zip", members)
    questions, _ = made(picture_conversion.pmc_vqa, [file, pictures], tmp_path / "set")
    assert len(questions) == 2, "names match in any case"
    assert questions[0].options == {"A": "A cell", "B": "B cell", "D": "Vitamin D: a lack"}
    assert questions[0].gold == "B"
    assert questions[0].pictures[0].read() == picture(1), "a PNG that calls itself JPEG"


def test_medxpertqa_has_several_pictures(tmp_path: Path) -> None:
    record = {
        "id": "MM-0",
        "question": "Which one? Answer Choices: (A) one (B) two",
        "options": {"A": "one", "B": "two"},
        "label": "B",
        "images": ["MM-0-a.jpeg", "MM-0-b.png"],
    }
    file = tmp_path / "test.jsonl"
    lost = record | {"id": "MM-1", "images": ["MM-9-a.jpeg"]}
    lines = [record, lost, record | {"id": "MM-2", "images": []}]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    members = {"images/MM-0-a.jpeg": picture(1, form="JPEG"), "images/MM-0-b.png": picture(2)}
    pictures = archive(tmp_path / "images.zip", members)
    ((question,), done) = made(picture_conversion.medxpertqa_mm, [file, pictures], tmp_path / "set")
    assert (question.id, question.text, question.gold) == ("MM-0", "Which one?", "B")
    assert [one.read() for one in question.pictures] == [picture(1, form="JPEG"), picture(2)]
    assert done.not_used == 2


def omni_record(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "dataset": "ACRIMA",
        "question_id": f"acrima_{number}",
        "question": "What is the modality?",
        "gt_answer": "Fundus photography",
        "image_path": f"Images/ACRIMA/{number}.png",
        "option_A": "X-ray",
        "option_B": "Fundus photography",
        "modality_type": "Fundus",
    } | changes


def test_omnimedvqa_is_read_from_its_one_archive_and_only_its_open_part(tmp_path: Path) -> None:
    open_part = [
        omni_record(1),
        omni_record(2, option_C="", option_D=None),
        omni_record(2, image_path="Images/ACRIMA/1.png"),  # an id for the second time
        omni_record(4),  # a picture that is not there
        omni_record(5, option_A=None),
    ]
    members = {
        "OmniMedVQA/QA_information/Open-access/ACRIMA.json": json.dumps(open_part).encode(),
        "OmniMedVQA/QA_information/Restricted-access/X.json": json.dumps([omni_record(9)]).encode(),
        "OmniMedVQA/Images/ACRIMA/1.png": picture(1),
        "OmniMedVQA/Images/ACRIMA/2.png": picture(2),
        "OmniMedVQA/Images/Other/1.png": picture(3),
    }
    file = archive(tmp_path / "OmniMedVQA.zip", members)
    questions, done = made(picture_conversion.omnimedvqa, [file], tmp_path / "set")
    assert [(one.id, one.gold, len(one.options)) for one in questions] == [
        ("acrima_1", "B", 2),
        ("acrima_2", "B", 2),
        ("ACRIMA-2", "B", 2),
    ]
    assert [one.pictures[0].read() for one in questions] == [picture(1), picture(2), picture(1)]
    assert done.published == 5


def mmmu_row(number: int, pictures: Mapping[int, bytes], **changes: Any) -> dict[str, Any]:
    images = {
        f"image_{place}": image(pictures[place], "x.png") if place in pictures else None
        for place in range(1, 8)
    }
    row = {
        "id": f"validation_Pharmacy_{number}",
        "question": "What does <image 1> show?",
        "options": "['one', \"the other's\"]",
        "answer": "B",
        "question_type": "multiple-choice",
        "subfield": "Pharmacology",
    }
    return {**row, **images, **changes}


def test_marks_of_mmmu_are_numbered_like_the_pictures_that_there_are(tmp_path: Path) -> None:
    rows = [
        mmmu_row(1, {1: picture(1), 2: picture(9)}),  # the second is of the explanation
        mmmu_row(
            2,
            {2: picture(2), 4: picture(4)},
            question="Compare <image 2> with",
            options="['<image 4>', 'none']",
            answer="A",
        ),
        mmmu_row(3, {1: picture(1)}, question_type="open", options="[]"),
        mmmu_row(4, {1: picture(1)}, answer="?"),
        mmmu_row(5, {1: picture(1)}, question="See <image 1> and <image 2>."),
        mmmu_row(6, {1: picture(1)}, options="['a', 'b'"),
        mmmu_row(7, {1: picture(1)}, options=str([*"abcdefghijk"])),
    ]
    file = parquet(tmp_path / "validation.parquet", rows)
    questions, done = made(picture_conversion.mmmu, [file], tmp_path / "set")
    assert [one.id for one in questions] == ["validation_Pharmacy_1", "validation_Pharmacy_2"]
    assert questions[0].options == {"A": "one", "B": "the other's"}
    assert [one.read() for one in questions[0].pictures] == [picture(1)]
    second = json.loads((tmp_path / "set" / "test.jsonl").read_text().splitlines()[1])
    assert second["question"] == "Compare <image 1> with"
    assert second["options"]["A"] == "<image 2>"
    assert second["images"] == [
        f"images/{name_of(picture(2), 'png')}",
        f"images/{name_of(picture(4), 'png')}",
    ]
    assert done.not_used == 5


def test_an_archive_is_read_by_content_and_never_unpacked_by_name(tmp_path: Path) -> None:
    path = archive(
        tmp_path / "images.zip",
        {
            "../../outside.png": picture(1),
            "C:\\pictures\\windows.png": picture(2),
            "bomb.png": bytes(70 * 2**20),
            "twice/a.png": picture(3),
            "again/a.png": picture(4),
        },
    )
    opened = PictureArchive(path)
    folder = PictureFolder(tmp_path / "set")
    folder.keep(opened.read("outside.png"))
    folder.keep(opened.read("pictures/windows.png"))
    assert stored(tmp_path / "set") == sorted(name_of(picture(n), "png") for n in (1, 2))
    assert sorted(tmp_path.iterdir()) == [path, tmp_path / "set"]
    assert opened.read("again/a.png") == picture(4)
    for name in ("bomb.png", "a.png", "", None, "missing.png"):
        with pytest.raises(NoPictureError):
            opened.read(name)


def test_a_broken_member_costs_its_question_and_a_broken_archive_the_download(
    tmp_path: Path,
) -> None:
    path = tmp_path / "imgs.zip"
    with zipfile.ZipFile(path, "w") as target:
        target.writestr("a.png", picture(1))
        target.writestr("b.png", picture(2))
    content = path.read_bytes()
    path.write_bytes(content.replace(picture(1), picture(1)[:-8] + b"XXXXXXXX"))
    opened = PictureArchive(path)
    with pytest.raises(NoPictureError, match="broken"):
        opened.read("a.png")
    assert opened.read("b.png") == picture(2)
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ConfigError, match="cannot be read as a zip archive"):
        PictureArchive(path)
    with pytest.raises(ConfigError, match=r"names 0 \.zip archives; give one"):
        list(picture_conversion.slake([tmp_path / "a.json"], PictureFolder(tmp_path)))


def test_names_that_do_not_say_that_they_are_utf8_are_found(tmp_path: Path) -> None:
    path = archive(tmp_path / "old.zip", {"bild/r__ntgen.png": picture(1)})
    path.write_bytes(path.read_bytes().replace(b"r__ntgen", "röntgen".encode()))
    assert PictureArchive(path).read("röntgen.png") == picture(1)


def test_a_picture_that_is_there_is_not_written_again(tmp_path: Path) -> None:
    folder = PictureFolder(tmp_path)
    name = folder.keep(picture(1))
    before = (tmp_path / name).stat().st_mtime_ns
    assert folder.keep(picture(1)) == name
    assert (tmp_path / name).stat().st_mtime_ns == before
    assert [path.name for path in (tmp_path / "images").iterdir()] == [Path(name).name]
