"""A question with a picture is recognized, refused by a run, and left out on request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import mdagents
from mdagents.data_tools.check import Kind, check
from mdagents.datasets.pictures.detection import mentioned_picture
from mdagents.datasets.question_records import parse_question
from mdagents_llm.errors import ConfigError
from tests.conftest import SHARED
from tests.fake_provider import FakeProvider
from tests.mdagents.datasets.published_records import FORMS, HLE, MEDXPERTQA
from tests.support.whole_runs import Run, records

PLAIN: dict[str, Any] = {"question": "Which?", "options": ["yes", "no"], "answer_idx": "A"}
PICTURED: list[tuple[dict[str, Any], str]] = [
    # Forms as published: cais/hle, TsinghuaC3I/MedXpertQA, MMMU/MMMU, UQ4VLM/MMMU_preprocessed,
    # xmcmic/PMC-VQA, BoKelvin/SLAKE, chaoyi-wu/GPT-4V_Medical_Evaluation.
    (HLE | {"image": "data:image/png;hex,89504e47"}, "field 'image'"),
    (HLE | {"image_preview": {"bytes": "831 bytes", "path": None}}, "field 'image_preview'"),
    (MEDXPERTQA | {"images": ["MM-0-a.jpeg"]}, "field 'images'"),
    (PLAIN | {"image_1": {"bytes": None, "path": "1.png"}}, "field 'image_1'"),
    (PLAIN | {"question": "<image 1> Which?"}, "'<image 1>' in the text"),
    (PLAIN | {"local_image_path": "x/1"}, "field 'local_image_path'"),
    (PLAIN | {"Figure_path": "PMC1064097_F1.jpg"}, "field 'Figure_path'"),
    (PLAIN | {"img_name": "xmlab102/source.jpg", "img_id": 102}, "field 'img_name'"),
    (PLAIN | {"images": ["a.jpg"], "question": "<image> Which?"}, "field 'images'"),
    (PLAIN | {"img_path": "1.png"}, "field 'img_path'"),
    (PLAIN | {"figure": 3}, "field 'figure'"),
    (PLAIN | {"image_url": "https://x.example/1"}, "field 'image_url'"),
    (PLAIN | {"pictures": [{"url": "1"}]}, "field 'pictures'"),
    (PLAIN | {"has_image": True}, "field 'has_image'"),
    (PLAIN | {"num_images": 2}, "field 'num_images'"),
    (PLAIN | {"stimulus": "https://x.example/ecg/12.PNG"}, "field 'stimulus'"),
    (PLAIN | {"question": [{"type": "text", "text": "Which?"},
                           {"type": "image_url", "image_url": {"url": "data:"}}]},
     "a part of field 'question'"),
    (PLAIN | {"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]},
     "a part of field 'messages'"),
    (PLAIN | {"question": "![ECG](ecg.png)\nWhich?"}, "'![ECG](ecg.png)' in the text"),
    (PLAIN | {"question": 'Which?<img src="1.png"/>'}, "'<img src=\"1.png\"/>' in the text"),
    (PLAIN | {"question": "[image] Which?"}, "'[image]' in the text"),
    (PLAIN | {"question": "Which? https://x.example/1.jpg"},
     "'https://x.example/1.jpg' in the text"),
    (PLAIN | {"options": ["1.png", "2.png"]}, "option A"),
    (PLAIN | {"options": ["none", "<image 2>"]}, "option B"),
]  # fmt: skip
"""Record, and what shows its picture."""
UNPICTURED: list[dict[str, Any]] = [
    PLAIN | {"image": None, "images": [], "image_path": "", "img_path": "nan", "figure": "N/A"},
    PLAIN | {"image": float("nan"), "pictures": [None, ""], "image_1": {"bytes": None, "path": ""}},
    PLAIN | {"has_image": False, "num_images": 0, "image_count": 0},
    # What stands beside a question and is not shown with it.
    HLE | {"rationale_image": {"path": "r.png"}, "image": "", "image_preview": None},
    PLAIN
    | {"image_caption": "A chest X-ray", "image_type": "X-ray", "source": "https://a.b/c.png"},
    PLAIN | {"imagination": "vivid", "configuration": "x", "topic": "imaging"},
    PLAIN | {"question": "p < 0.05 <img and [imaging] of the image (T1) file.png.zip. Which?"},
    *(form[0] for form in FORMS if "cop" not in form[0]),
]

MENTIONING = [
    # https://github.com/medmcqa/medmcqa/issues/8
    "Choose the site in the following radiograph of the wrist and hand (see Figure below).",
    "Diagnosis of the following ECG-",
    "Name the structure marked with arrow",
    # MedQA
    "A photograph of the nails is shown. Which of the following is most likely?",
    "His chest X-ray is normal and ECG is shown in the picture. Which is optimal?",
    "A frontal X-ray is obtained (shown in the image). What next?",
    "The picture shows a slide obtained from the resected portion.",
    "A rash is seen, as shown in the accompanying photograph.",
    "IN THE GRAPH BELOW, WHICH CURVE IS THE PATIENT'S?",
    "Which of the following CT scans, as in Figure A, fits?",
    "The values are in Table 2. Which is optimal?",
    "Which structure is indicated by the arrow in the accompanying x-ray?",
]
DESCRIBING = [
    # MedQA: findings in words
    "An ECG shows ST-segment depressions in leads II, III, and aVF. Which?",
    "A chest X-ray shows patchy infiltrates in both lungs. Which?",
    "On the chest radiograph, interstitial fibrosis is seen. Which?",
    "Which of the following ECG findings are most likely in this patient?",
    "What is a chest X-ray likely to show?",
    "Initial laboratory values are shown below.\n\nSerum:\nNa+: 139 mEq/L. Which?",
    "Cells that are shown by flow cytometry to be positive for CD8. Which?",
    "He is stable 2 hours later, with an unstable pelvis. Which of the following is next?",
    "The photographer has a configured 3 D implant. Which of the following is next?",
]


@pytest.mark.parametrize(("record", "shown"), PICTURED)
def test_a_picture_is_recognized(record: dict[str, Any], shown: str) -> None:
    question = parse_question(record, "x.jsonl line 1", 1)
    assert question.missing_picture == shown
    assert question.text


@pytest.mark.parametrize("record", UNPICTURED)
def test_no_picture_is_seen_where_none_is(record: dict[str, Any]) -> None:
    assert parse_question(record, "x.jsonl line 1", 1, needs_gold=False).missing_picture == ""


def test_words_that_point_to_a_picture() -> None:
    assert [text for text in MENTIONING if not mentioned_picture(text)] == []
    assert [text for text in DESCRIBING if mentioned_picture(text)] == []


@pytest.mark.parametrize(
    "recording", ["X-ray", "xrays", "radiograph", "EKG", "CT", "MRI", "scan", "biopsies", "slides"]
)
def test_every_recording_may_be_missing(recording: str) -> None:
    assert mentioned_picture(f"What is seen in the following {recording}?")


@pytest.mark.skipif(not (SHARED / "medqa").is_dir(), reason="no shared data here")
def test_real_data_sets_have_no_pictures_and_few_mentions() -> None:
    """The 16 mentions in MedQA were read one by one: each means a picture that is missing."""
    mentions = {}
    for name in ("medqa", "medmcqa", "pubmedqa", "mmlu", "mmlu-pro"):
        found = check(SHARED / name / "test.jsonl").findings
        assert not [f for f in found if f.kind is Kind.PICTURE]
        mentions[name] = sum(f.kind is Kind.MISSING_FIGURE for f in found)
    assert mentions == {"medqa": 16, "medmcqa": 2, "pubmedqa": 0, "mmlu": 0, "mmlu-pro": 0}


def a_file() -> str:
    """Write two plain questions, one with a picture and one whose text points to one."""
    questions = [
        PLAIN | {"id": "a"},
        PLAIN | {"id": "b", "image": "b.png"},
        PLAIN | {"id": "c", "question": "A photograph of the rash is shown. Which?"},
        PLAIN | {"id": "d"},
    ]
    Path("mine.jsonl").write_text("".join(json.dumps(q) + "\n" for q in questions))
    return "mine.jsonl"


@pytest.mark.process
def test_a_run_with_a_picture_is_refused_before_anything_is_asked(
    provider: FakeProvider, run: Run
) -> None:
    asked = ["--dataset", a_file(), "--method", "zero_shot"]
    line = (
        "error: 1 of the 4 questions have a picture that is not there (first: mine.jsonl line 2, "
        "id b, field 'image': 'b.png' is not there); --skip-pictures leaves out every question "
        "that has or mentions a picture"
    )
    for more in ([], ["--dry-run"], ["--sample-id", "b,c"]):
        status, _, err = run(*asked, *more)
        assert status == 2
        assert line.replace("4", "2" if "--sample-id" in more else "4") in err
    assert not provider.calls
    assert run(*asked, "--limit", "3-4")[0] == 0, "the picture is not among these"


@pytest.mark.process
def test_questions_with_pictures_are_left_out_on_request(run: Run) -> None:
    status, out, _ = run("--dataset", a_file(), "--method", "zero_shot", "--skip-pictures")
    assert status == 0
    assert [record["question_id"] for record in records()] == ["a", "d"]
    note = "--skip-pictures leaves out 2 of the 4 questions: those with a picture, or that refer"
    assert note in " ".join(out.split())
    name = next(Path("output").glob("*/run.json")).parent.name
    assert run("--dataset", a_file(), "--resume", name)[0] == 0


@pytest.mark.process
def test_a_selection_without_questions_is_refused(run: Run) -> None:
    asked = ["--dataset", a_file(), "--method", "zero_shot", "--sample-id", "b,c"]
    status, _, err = run(*asked, "--skip-pictures")
    assert status == 2
    assert err == (
        "error: every selected question of mine.jsonl has or mentions a picture, so "
        "--skip-pictures leaves none\n"
    )


@pytest.mark.process
def test_a_text_that_points_to_a_picture_is_named_in_a_notice(run: Run) -> None:
    status, out, _ = run("--dataset", a_file(), "--method", "zero_shot", "--sample-id", "a,c")
    assert status == 0
    note = "1 of the 2 questions refers to a figure, an image or a table that may be missing"
    assert f"{note} (first: c)" in " ".join(out.split())


def test_the_check_lists_both() -> None:
    found = [(f.id, f.kind, f.detail) for f in check(Path(a_file())).findings]
    assert (found[0][0], found[0][1]) == ("b", Kind.PICTURE)
    assert ("c", Kind.MISSING_FIGURE, "'photograph of the rash is shown'") in found


async def test_a_single_question_with_a_picture_is_refused() -> None:
    with pytest.raises(ConfigError, match="the question has a picture"):
        await mdagents.answer("![ECG](ecg.png) Which?", ["yes", "no"])
