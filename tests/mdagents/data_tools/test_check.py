"""`mdagents data check`: one line for each finding, and a status that a script can use."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from mdagents.cli.dataset_parts import extract
from mdagents.data_tools.check import Kind, check, main
from mdagents.datasets.dataset import open_dataset
from mdagents.datasets.picture_checks import check_pictures
from mdagents.runs.config import RunConfig
from mdagents.runs.run_pictures import plan_pictures
from tests.conftest import REPOSITORY, SHARED
from tests.mdagents.datasets.made_pictures import dicom


def a_question(text: str, *options: str, gold: str = "A", **fields: Any) -> dict[str, Any]:
    lettered = dict(zip("ABCDEFGHIJ", options or ("yes", "no"), strict=False))
    return {"question": text, "options": lettered, "answer_idx": gold} | fields


def write(name: str, *records: dict[str, Any] | str) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
    path.write_text("\n".join(lines) + "\n")
    return path


def findings(*records: dict[str, Any] | str) -> list[tuple[int, Kind, str]]:
    checked = check(write("data/mine/test.jsonl", *records))
    return [(finding.line, finding.kind, finding.detail) for finding in checked.findings]


def test_json_stays_json_where_stdout_is_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    write("data/mine/test.jsonl", a_question("One?", "“x” é", "“x” é"))
    screen = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", screen)
    assert main(["mine", "--json"]) == 1
    (finding,) = json.loads(screen.buffer.getvalue())["findings"]
    assert "“x” é" in finding["detail"]


def test_a_clean_file_has_no_findings(capsys: pytest.CaptureFixture[str]) -> None:
    write("data/mine/test.jsonl", a_question("One?"), a_question("Two?"))
    assert main(["mine"]) == 0
    assert capsys.readouterr().out == "data/mine/test.jsonl: 2 questions, found nothing\n"


def test_a_finding_is_a_line_with_file_line_and_id(capsys: pytest.CaptureFixture[str]) -> None:
    write("data/mine/test.jsonl", a_question("One?", "x", "x", id="q-1"), "", a_question("two ?"),
          a_question("TWO?", gold="B", realidx=9))  # fmt: skip
    assert main(["mine"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "data/mine/test.jsonl:1 q-1 identical options: A and B are 'x', the right one among them",
        "data/mine/test.jsonl:4 9 duplicate: question and options, not answer, of line 3",
        "data/mine/test.jsonl: 3 questions, found 1 identical options (1 right), 1 duplicate",
    ]
    assert main(["mine", "--warn-only"]) == 0


def test_duplicates_are_told_apart() -> None:
    assert findings(
        a_question("Which one?", "one", "two", id=1),
        a_question("which  one", "Two", "one.", gold="B", id=2),
        a_question("Which one?", "one", "two", gold="B", id=3),
        a_question("Which one?", "one", "three", id=4),
        a_question("Another one?", id=4),
    ) == [
        (2, Kind.DUPLICATE, "question and options of line 1"),
        (3, Kind.DUPLICATE, "question and options, not answer, of line 1"),
        (4, Kind.DUPLICATE, "the question, with other options, of line 1"),
        (5, Kind.DUPLICATE, "the id of line 4 again"),
    ]
    assert not findings(
        a_question("Which is seen with a Na+ of > 10?", id=1),
        a_question("Which is seen with a Na- of < 10?", id=2),
    )


def test_options_that_say_nothing_or_the_same() -> None:
    options = ("N/A", "Na", "aa", "AA", "a  a", "a a", "n. a.", "—", "none", "")
    assert findings(a_question("Which?", *options, gold="H")) == [
        (1, Kind.NOT_AVAILABLE, "option H is '—', which is the right one"),
        (1, Kind.NOT_AVAILABLE, "option A is 'N/A', which is not shown"),
        (1, Kind.NOT_AVAILABLE, "option G is 'n. a.', which is not shown"),
        (1, Kind.NOT_AVAILABLE, "option J is '', which is not shown"),
        (1, Kind.IDENTICAL_OPTIONS, "E and F are 'a a'"),
    ]


def test_an_error_of_excel_is_no_option() -> None:
    assert findings(a_question("Which?", "#NAME?", "#DIV/0!", "#1", "name?")) == [
        (1, Kind.NOT_AVAILABLE, "option A is '#NAME?', which is the right one"),
        (1, Kind.NOT_AVAILABLE, "option B is '#DIV/0!'"),
    ]


def test_options_that_speak_of_places(capsys: pytest.CaptureFixture[str]) -> None:
    two = ["Iron", "Both A and C", "Zinc", "None of the above"]
    assert findings(a_question("One?", *two), a_question("Two?", *two, gold="D")) == [
        (1, Kind.PLACES, "option B 'Both A and C' and D 'None of the above'; their order is kept"),
        (2, Kind.PLACES, "option B 'Both A and C' and D 'None of the above', the right one among "
                         "them; their order is kept"),
    ]  # fmt: skip
    assert main(["mine"]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "data/mine/test.jsonl: 2 questions, found 2 reference to places (1 right)"


def test_a_question_that_lists_its_options_by_letter() -> None:
    assert findings(a_question("Which? A. Iron B. Zinc Why?", "Iron", "Zinc")) == [
        (1, Kind.PLACES, "the question lists the options by letter; their order is kept"),
    ]


def test_how_a_file_of_medmcqa_counts_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    columns = {"opa": "w", "opb": "x", "opc": "y", "opd": "z"}
    write("data/mine/test.jsonl", {"question": "One?", "cop": 4} | columns)
    assert main(["mine"]) == 0
    assert capsys.readouterr().out == (
        "data/mine/test.jsonl: 1 question, found nothing; "
        "field 'cop' counts the options from 1 (by a 4 on line 1)\n"
    )
    write("data/mine/test.jsonl", {"question": "One?", "cop": 3} | columns)
    assert main(["mine"]) == 2
    assert "field 'cop' may count from 0 or from 1" in capsys.readouterr().err


REFERRING = [
    "A photograph of the rash is shown. Which is it?",
    "The ECG is shown in the picture. What next?",
    "His urinalysis is shown in Figure 1. What next?",
    "An erythema is seen, as shown in the accompanying photograph. Which is it?",
    "He has erythroderma (see image). Which is it?",
    "The findings are shown. Which is it?",
    "A CT scan of the head is shown below. Which is it?",
    "Name the structure marked with an arrow.",
    "Which of the following is true of the graph below?",
    "According to Table 2, which drug is best?",
    "On the basis of the attached image, which is it?",
    "The pressure-volume loop (gray) is shown with a normal loop (black). Which is it?",
    "Based on the CT scan shown, which is it?",
    "The graph shown was drawn for one drug. Which?",
    "Which arrhythmia is in the ECG strip below?",
    "A photograph of the lesion is provided. Which is it?",
    "如图所示，该患者最可能的诊断是？",
    "根据下图判断，病变是？",
    "结果见图1，诊断是？",
    "Pregunta vinculada a la imagen nº 1. ¿Cuál es?",
    "Ver la figura adjunta. ¿Cuál es?",
    "Was ist wie in der Abbildung gezeigt verändert?",
    "Voir la figure ci-dessous. Laquelle ?",
    "Hình ảnh dưới đây cho thấy gì?",
    "胸部エックス線写真（別冊No.12）を別に示す。診断はどれか。",
    "心電図を次の図に示す。診断はどれか。",
    "다음 그림과 같이 보인다. 진단은?",
    "На рисунке показано что?",
    "如下图像所示，诊断是？",
    "La figura 12b muestra la lesión. ¿Cuál es?",
    "Hình 2 cho thấy gì?",
    "Bệnh nhân có tổn thương (hình số 1). Chẩn đoán?",
    "The ECG below is from this patient. Which is it?",
]
COMPLETE = [
    "His laboratory values are shown below: Na+: 139 mEq/L, K+: 4.3 mEq/L. Which is it?",
    "The spleen is palpated 6 cm below the costal margin. Which is it?",
    "The drug has been shown to be effective. Which is true?",
    "Cells are shown by flow cytometry to be positive. Which are they?",
    "All ultrasound images were reviewed by one radiologist. Is it valuable?",
    "She sees two images on top of each other. Which nerve is it?",
    "The clinical picture is that of scurvy. Which vitamin is it?",
    "He lies on the table a few minutes. What next?",
    "An x-ray of the chest shows an infiltrate. Which is it?",
    "A figure-of-8 bandage is applied. Why?",
    "Imaging shows a mass. Which is it?",
    "She has a poor body image. Which disorder is it?",
    "The CT shown to be normal was repeated. Why?",
    "An x-ray below the knee shows a fracture. Which is it?",
    "Images are provided by the hospital to all. Why?",
    "心电图示ST段抬高。诊断是？",
    "心电图2次正常。诊断是？",
    "皮下表浅肿物。诊断是？",
    "心電図でST上昇。診断はどれか。",
    "Trastorno de la imagen corporal. ¿Cuál es?",
    "Das klinische Bild und das Blutbild sind typisch. Was ist es?",
    "Hồng cầu hình liềm. Chẩn đoán là gì?",
    "На рентгенограмме затемнение. Что это?",
    "L'image est normale. Laquelle ?",
    "Siêu âm thấy hình ảnh 1 khối u gan 3 cm. Chẩn đoán?",
    "X quang hình ảnh 2 bên phổi mờ. Chẩn đoán?",
    "Химиотерапия по схеме ABVD. Что далее?",
    "患者血常规如下表所示。诊断是？",
    "患者坐下图书馆里晕倒。诊断是？",
    "MRI上图像正常，根据图形判断？",
    "血管造影图1次正常。诊断是？",
    "Patient erkennt seine Frau auf dem Foto nicht. Welche Störung?",
    "Sutura en figura 8. ¿Cuál es?",
    "Al ver la imagen en el espejo se asusta. ¿Cuál es?",
    "El paciente no reconoce la figura que se muestra en el test. ¿Cuál es?",
    "The drawing shown by the child was a clock. What test?",
    "The ECG shown no ST changes. What next?",
    "The scan below is normal. What next?",
]


@pytest.mark.parametrize("text", REFERRING)
def test_a_figure_that_is_referred_to(text: str) -> None:
    ((_, kind, detail),) = findings(a_question(text))
    assert kind is Kind.MISSING_FIGURE
    assert detail.strip("'") in text


@pytest.mark.parametrize("text", COMPLETE)
def test_words_that_need_no_figure(text: str) -> None:
    assert findings(a_question(text)) == []


def test_what_is_in_the_train_split_too() -> None:
    write("data/mine/train.jsonl", "{broken", a_question("Other?"), a_question("One, please?"))
    assert findings(a_question("one please"), a_question("Two?")) == [
        (1, Kind.OVERLAP, "the question of data/mine/train.jsonl:3"),
    ]
    other = write("elsewhere.jsonl", a_question("Two?"))
    (finding,) = check(Path("data/mine/test.jsonl"), other).findings
    assert (finding.line, finding.detail) == (2, "the question of elsewhere.jsonl:1")
    assert check(Path("data/mine/train.jsonl")).questions == 2, "not compared with itself"


def test_what_no_run_can_read() -> None:
    assert findings("1", a_question("One?", "only"), a_question("Two?", gold="C")) == [
        (1, Kind.UNUSABLE, "a question must be a JSON object"),
        (2, Kind.UNUSABLE, "field 'options' must have 2 to 10 that are not empty"),
        (3, Kind.UNUSABLE, "field 'answer_idx' is 'C' but must be one of A, B"),
    ]  # fmt: skip


def test_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    write("data/mine/test.jsonl", a_question("One?", "nan", "no", id="q"))
    write("b.jsonl", a_question("Two?"))
    assert main(["mine", "b.jsonl", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "files": [{"path": "data/mine/test.jsonl", "questions": 1, "cop_from": None},
                  {"path": "b.jsonl", "questions": 1, "cop_from": None}],
        "counts": {"n/a option": 1},
        "findings": [{"file": "data/mine/test.jsonl", "line": 1, "id": "q", "kind": "n/a option",
                      "detail": "option A is 'nan', which is the right one",
                      "about_right": True}],
    }  # fmt: skip


def test_wrong_use_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nothing"]) == 2
    assert capsys.readouterr().err.startswith("error: there is no data set 'nothing' in data")
    assert main(["no.csv"]) == 2
    assert capsys.readouterr().err == "error: there is no data set file no.csv; check its path\n"


@pytest.mark.process
@pytest.mark.parametrize("content", ["", "question,A,B,answer\n"])
def test_a_file_without_questions_is_refused(
    content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("empty.csv").write_text(content)
    assert main(["empty.csv"]) == 2
    assert capsys.readouterr().err == "error: empty.csv has no questions in it\n"


def test_the_program_checks_the_shipped_sample() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mdagents", "data", "check", "data/medqa/sample.jsonl"],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "data/medqa/sample.jsonl: 30 questions, found nothing\n"


def test_the_shared_data(capsys: pytest.CaptureFixture[str]) -> None:
    if not SHARED.is_dir():
        pytest.skip("the shared data is not here")
    names = ["medqa", "medqa_5options", "medmcqa", "pubmedqa", "mmlu", "mmlu-pro"]
    assert main([*names, "--data-dir", str(SHARED), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["counts"]["missing figure"] >= 15
    assert {f["id"] for f in found["findings"] if f["kind"] == "duplicate"} == {"6037", "6039"}
    assert not {"unusable", "overlap"} & set(found["counts"])


PICTURE = {"question": "Which?", "options": ["scurvy", "beriberi"], "answer_idx": "A"}


def test_pictures_are_decoded_and_compared(tmp_path: Path) -> None:
    for name, color in (("a.png", "red"), ("b.png", "blue")):
        Image.new("RGB", (40, 40), color).save(tmp_path / name)
    whole = (tmp_path / "a.png").read_bytes()
    (tmp_path / "same.png").write_bytes(whole)
    (tmp_path / "half.png").write_bytes(whole[: len(whole) // 2 + 10])
    path = tmp_path / "x.jsonl"
    records: list[dict[str, object]] = [
        {"id": "fine", "image": "a.png"},
        {"id": "also", "image": "b.png", "question": "What does the image above show?"},
        {"id": "twice", "images": ["a.png", "same.png"], "question": "Why?"},
        {"id": "half", "image": "half.png", "question": "Who?"},
        {"id": "gone", "image": "z.png", "question": "When?"},
        {"id": "leak", "images": [{"path": "b.png", "caption": "Scurvy, bleeding gums"}],
         "question": "Where?"},
        {"id": "both", "images": [{"path": "b.png", "caption": "Scurvy or beriberi"}],
         "question": "How?"},
        {"id": "options", "options": [{"image": "a.png"}, {"image": "b.png"}], "question": "Is?"},
        {"id": "none", "question": "What is shown in the image?"},
    ]  # fmt: skip
    path.write_text("".join(json.dumps(PICTURE | record) + "\n" for record in records))
    checked = check(path)
    assert [(f.id, f.kind) for f in checked.findings] == [
        ("twice", Kind.SAME_PICTURE),
        ("half", Kind.PICTURE),
        ("gone", Kind.PICTURE),
        ("leak", Kind.LEAK),
        ("none", Kind.MISSING_FIGURE),
    ]
    assert "9 questions with 3 pictures (2 in several questions), found" in checked.summary()
    assert "half.png cannot be decoded" in checked.findings[1].detail


def test_an_annotation_that_is_part_of_the_picture_is_named(tmp_path: Path) -> None:
    pixels = np.zeros((32, 32), np.uint8)
    (tmp_path / "a.dcm").write_bytes(dicom(pixels, BurnedInAnnotation="YES"))
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(PICTURE | {"image": "a.dcm"}) + "\n")
    assert [f.kind for f in check(path).findings] == [Kind.ANNOTATION]
    dataset = open_dataset(str(path), tmp_path)
    (note,) = check_pictures(dataset, dataset.index).notes
    assert note.startswith("1 of the 1 questions have a DICOM picture with burnt-in annotations")


def test_parts_of_a_data_set_keep_their_pictures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "images").mkdir()
    Image.new("RGB", (40, 40), "red").save(tmp_path / "images" / "a.png")
    with zipfile.ZipFile(tmp_path / "more.zip", "w") as archive:
        archive.write(tmp_path / "images" / "a.png", "b.png")
    path = tmp_path / "x.jsonl"
    records = [PICTURE | {"id": "p", "image": "a.png"}, PICTURE | {"id": "q", "image": "b.png"}]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    out = tmp_path / "part" / "y.jsonl"
    assert extract(["--dataset", str(path), "p", "q", "--output", str(out)]) == 0
    assert "2 questions, with 2 files of pictures" in capsys.readouterr().out
    part = open_dataset(str(out), tmp_path)
    whole = open_dataset(str(path), tmp_path)
    planned = [plan_pictures(one, one.index, RunConfig()).sha256 for one in (part, whole)]
    assert planned[0] == planned[1] != ""
    assert extract(["--dataset", str(path), "p"]) == 0
    assert f"paths of pictures are relative to {tmp_path}" in capsys.readouterr().err
    (out.parent / "images" / "a.png").write_bytes(b"another")
    assert extract(["--dataset", str(path), "p", "--output", str(out)]) == 2
    assert "another picture is at" in capsys.readouterr().err
