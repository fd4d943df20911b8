"""Data sets in the forms in which they are published."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdagents.datasets.dataset import open_dataset
from mdagents.datasets.kept_fields import kept_fields
from mdagents.datasets.listed_options import without_options
from mdagents.datasets.published_forms import OutOfScopeError
from mdagents.datasets.question_records import parse_question
from mdagents.datasets.questions import SourceQuestion
from mdagents.scoring.fields import content_digest
from mdagents_llm.errors import ConfigError
from tests.mdagents.datasets.published_records import (
    AFRIMEDQA,
    BIGBIO,
    CAREQA,
    CMB,
    FORMS,
    FRENCHMEDMCQA,
    FRENCHMEDMCQA_HUB,
    HEADQA,
    HLE,
    IGAKUQA,
    KMMLU,
    KORMEDMCQA,
    MEDIQAL,
    MEDMCQA,
    MEDXPERTQA,
    MEDXPERTQA_REPOSITORY,
    MMLU,
    MMLU_PRO,
    MMLU_REDUX,
    OPENLIFESCIENCEAI,
    OPENLIFESCIENCEAI_COLUMNS,
    PUBMEDQA,
    PUBMEDQA_HUB,
    SWAG,
    SWAG_OF_FIVE,
)


def read(record: dict[str, Any]) -> SourceQuestion:
    return parse_question(record, "x.jsonl line 4", 4, cop_from=0)


@pytest.mark.parametrize(("record", "id_", "options", "gold", "answer"), FORMS)
def test_every_published_form_is_read(
    tmp_path: Path, record: dict[str, Any], id_: str, options: int, gold: str, answer: str
) -> None:
    path = tmp_path / "test.jsonl"
    path.write_text("\n\n\n" + json.dumps(record) + "\n")
    if record is MEDMCQA:
        path.write_text(path.read_text() + json.dumps(MEDMCQA | {"id": "other", "cop": 0}) + "\n")
    dataset = open_dataset(str(path), tmp_path)
    question = dataset.load(dataset.index[0])
    assert (question.id, len(question.options)) == (id_, options)
    assert (question.gold, question.options[question.gold]) == (gold, answer)


def test_a_case_stands_before_its_question() -> None:
    assert read(MEDIQAL).text == "A man was poisoned.\nWhich metal?"
    assert read(MEDIQAL | {"clinical_case": None}).text == "Which metal?"


def test_an_abstract_stands_before_its_question() -> None:
    expected = "We looked.\nWe found.\nIs it valuable?"
    assert read(PUBMEDQA).text == read(PUBMEDQA_HUB).text == expected


@pytest.mark.parametrize(
    ("record", "text"),
    [
        # stellalisy/mediQ: all_dev_good.jsonl
        (
            {"question": "Which diagnosis?", "context": ["A girl vomits.", "She is 5 years old."]},
            "A girl vomits.\nShe is 5 years old.\nWhich diagnosis?",
        ),
        # mahdi-shafiei/MedAgents-2: pubmedqa/test_set.jsonl
        ({"question": "Is it?", "context": "We looked."}, "We looked.\nIs it?"),
        # AGIEval, where most records have no passage
        ({"question": "Which?", "passage": None}, "Which?"),
        ({"question": "Which?", "passage": "All cats purr."}, "All cats purr.\nWhich?"),
        ({"question": "Which?", "article": ""}, "Which?"),
        (
            {
                "question": "?",
                "context": "{'contexts': array(['We looked.', 'Found.'], dtype=object)}",
            },
            "We looked.\nFound.\n?",
        ),
        ({"question": "Which?", "article": 29485731, "context": "PMC29485731"}, "Which?"),
        ({"question": "Which?", "context": "nan", "passage": []}, "Which?"),
        ({"question": "Which?", "context": {"contexts": []}}, "Which?"),
        # araag2/lm-evaluation-harness
        ({"question": "?", "Context": [["AIM", "We looked."], None]}, "AIM: We looked.\n?"),
        (
            {"question": "?", "context": {"note_1": "Seen.", "note_2": "Sent home."}},
            "Seen.\nSent home.\n?",
        ),
        ({"question": "We  looked. Is it?", "context": "We looked."}, "We  looked. Is it?"),
        (
            {"question": "Is it?", "Context": "['We looked.' 'We found.']"},
            "We looked.\nWe found.\nIs it?",
        ),
        # Scripts without spaces: ruixiangcui/AGIEval (logiqa-zh), AppFlowy-IO/appflowy-editor#773
        (
            {"question": "?", "context": "患者男性，45岁，突发胸痛。"},
            "患者男性，45岁，突发胸痛。\n?",
        ),
        ({"question": "?", "passage": "甲说：乙没有作案。"}, "甲说：乙没有作案。\n?"),
        ({"question": "?", "article": "45歳男性。胸痛。"}, "45歳男性。胸痛。\n?"),
        ({"question": "?", "context": "ผู้ป่วยชายเจ็บหน้าอก"}, "ผู้ป่วยชายเจ็บหน้าอก\n?"),
        (
            {"question": "?", "context": {"CONTEXTS": ["Seen."], "LONG_ANSWER": "So it is."}},
            "Seen.\n?",
        ),
        (
            {"question": "?", "context": "The patient answered: no. Answer: A large trial."},
            "The patient answered: no. Answer: A large trial.\n?",
        ),
        ({"question": "?", "context": "The best option is a fan."}, "The best option is a fan.\n?"),
        *(
            ({"question": "?", "context": text}, f"{text}\n?")
            for text in (
                "Answer: B. cereus infection is common in hospital.",
                "Correct answer: E. coli is the most common pathogen overall.",
                "Ans: B-cells were elevated in all of them.",
                "Patients answered. Answer - B-type peptide was measured.",
                "The best option B was compared with placebo in the trial.",
                "The treatment option B is the best in this cohort of patients.",
                "Option A was best tolerated. Choice B is the best for the elderly.",
                "Option B was the right ventricle.",
                "The right choice: B vitamins in elderly patients.",
                "Answer: I. He was sad. Answer: I do not know.",
                "Respuesta: B lymphocytes. Respuesta B. Remisión.",
                "Antwort: B-Zellen steigen an. Antwort: B Lymphozyten.",
                "Answer: D. The letter of no option.",
            )
        ),
        ({"question": "?", "context": "https://x.org/患者男性"}, "?"),
        ({"question": "?", "context": "Appendicitis", "passage": "無"}, "?"),
    ],
)
def test_what_a_question_is_about_stands_before_it(record: dict[str, Any], text: str) -> None:
    record = {**record, "options": {"A": "yes", "B": "no"}, "answer_idx": "A"}
    assert read(record).text == text
    assert "context" not in kept_fields(record)


@pytest.mark.parametrize("context", [[{"type": "text"}], {"age": 5}, "{'contexts': [We looked.]}"])
def test_a_context_that_cannot_be_read_is_refused(context: Any) -> None:
    with pytest.raises(ConfigError, match="'context' must be a text or a list of texts"):
        read({"question": "?", "context": context, "A": "x", "B": "y", "answer": "A"})


@pytest.mark.parametrize(
    "context",
    [
        # medmcqa/medmcqa#5, as ThoughtSource writes the record
        "Ans. is b' i.e., Mean-Mode Measures of Skewness",
        "Correct answer: C",
        "Ans: (c) Gold [Ref: Harrison 18/e p 123]",
        "Gold does not rust. The correct option is (C) Gold.",
        "Explanation: Gold (option C) is right.",
        ["Gold does not rust.", "Option C is correct because it does not rust."],
        "Respuesta correcta: C",
        "Đáp án: C",
        "答案：C",
        "答案是C。因为金不生锈。",
        "Answer: A",
        "Answer: C Gold does not rust.",
        "Answer: C - it does not rust.",
        "The correct answer is C because it does not rust.",
        "We saw it.\nOption C is the best answer.",
        "Antwort: C. Gold rostet nicht.",
    ],
)
def test_a_context_with_the_answer_is_refused(context: Any) -> None:
    with pytest.raises(ConfigError, match="line 4: field 'context' gives the answer away"):
        read({"question": "?", "context": context, "A": "x", "B": "y", "C": "gold", "answer": "A"})


FIVE = {"A": "Sacrotuberous ligament", "B": "Iliacus muscle", "C": "Iliacus", "D": "n/a"}


@pytest.mark.parametrize(
    "listed",
    [
        # xk-huang/medagents-benchmark: medxpertqa-r/test_hard.jsonl
        "\nAnswer Choices: (A) Sacrotuberous ligament (B) Iliacus muscle (C) Iliacus (D) n/a",
        " Options: (C) Iliacus (A) Sacrotuberous ligament (B) Iliacus muscle",
        "\nA. Sacrotuberous ligament\nB. Iliacus muscle\nC. Iliacus",
        " (A) Sacrotuberous ligament (B) Iliacus muscle (C) Iliacus.",
        " (B) Iliacus muscle (C) Iliacus (A) Sacrotuberous ligament",  # mitmedialab/MDAgents
        "\nB) Iliacus muscle\nA) Sacrotuberous ligament\nC) Iliacus",
        # EleutherAI/lm-evaluation-harness#587 and medalpaca/medical_meadow_medqa write such lists
        " A. Sacrotuberous ligament B. Iliacus muscle C. Iliacus",
        " A: Sacrotuberous ligament; B: Iliacus muscle; C: Iliacus",
        "\nA.Sacrotuberous ligament\nB.Iliacus muscle\nC.Iliacus\nD.n/a",
        " (A)Sacrotuberous ligament (B)Iliacus muscle (C)Iliacus",
        "\n[A] Sacrotuberous ligament\n[B] Iliacus muscle\n[C] Iliacus",
        "\n**A. Sacrotuberous ligament**\n**B. Iliacus muscle**\n**C. Iliacus**",
        "\nA - Sacrotuberous ligament\nB - Iliacus muscle\nC - Iliacus",
        "\n1. Sacrotuberous ligament\n2. Iliacus muscle\n3. Iliacus",
        "\n| A | Sacrotuberous ligament |\n| B | Iliacus muscle |\n| C | Iliacus |",
        " {'A': 'Sacrotuberous ligament', 'B': 'Iliacus muscle', 'C': 'Iliacus'},",
        " ['Sacrotuberous ligament', 'Iliacus muscle', 'Iliacus']",
        "<br>A. Sacrotuberous ligament<br>B. Iliacus muscle<br>C. Iliacus",
        "\nA. Sacrotuberous ligament\nB. Iliacus muscle\nC. Iliacus\nD.\nAnswer:",
        "\nA. Sacrotuberous\nligament\nB. Iliacus muscle\nC. Iliacus\n\nReply with the letter.",
        "\n选项：A、Sacrotuberous ligament；B、Iliacus muscle；C、Iliacus。",
        "\n（A）Sacrotuberous ligament\n（B）Iliacus muscle\n（C）Iliacus",
        "\nOptions:\n- Sacrotuberous ligament\n- Iliacus muscle\n- Iliacus",
        "\nChoices:\n• Sacrotuberous ligament\n• Iliacus muscle\n• Iliacus",
        "\nOptions:\n+ Iliacus muscle\n+ Sacrotuberous ligament\n+ Iliacus\n+ n/a",
        "\nOptions: ( ) Sacrotuberous ligament ( ) Iliacus muscle ( ) Iliacus",
        "\nOptions: A Sacrotuberous ligament B Iliacus muscle C Iliacus",
        "\nOptions: Sacrotuberous ligament > Iliacus muscle > Iliacus",
        "\n**Options:**\nA. Sacrotuberous ligament\nB. Iliacus muscle\nC. Iliacus",
        "\n__Options:__\n* Sacrotuberous ligament\n* Iliacus muscle\n* Iliacus",
        ":\nA. Sacrotuberous ligament\nB. Iliacus muscle\nC. Iliacus",
        ":-\n- (A) Sacrotuberous ligament\n- (B) Iliacus muscle\n- (C) Iliacus",
        ": (A) Sacrotuberous ligament (B) Iliacus muscle (C) Iliacus",
    ],
)
@pytest.mark.parametrize("stem", ["Which one?", "It inserts at the"])
def test_a_list_of_all_options_is_no_part_of_the_question(stem: str, listed: str) -> None:
    if listed[0] == ":":
        colon = listed[: listed.index("\n" if "\n" in listed else " ")]
        stem, listed = stem + colon, listed.removeprefix(colon)
    record = {"question": f"{stem}{listed}", "options": FIVE, "answer_idx": "B"}
    assert read(record).text == stem
    texts = sorted(FIVE.values())
    digests = {content_digest(text, texts, FIVE["B"]) for text in (stem, stem + listed)}
    assert len(digests) == 1


@pytest.mark.parametrize(
    "question",
    [
        "Which is right?\nA. Iliacus muscle\nB. Iliacus",  # some of them
        "Which one, if the options: Sacrotuberous ligament or Iliacus muscle, fail: Iliacus",
        "A. Sacrotuberous ligament\nB. Iliacus muscle\nC. Iliacus",  # nothing else is asked
        "Which of three options: Sacrotuberous ligament, Iliacus muscle, Iliacus",
        "Which (B) is it? (C) Iliacus (A) Sacrotuberous ligament (B) and Iliacus muscle",
        "Iliacus",
        "Which? A. Iliacus muscle B. Iliacus C. Sacrotuberous ligament with D. tendon",
        "Which? Sacrotuberous ligament (A), Iliacus muscle (B), Iliacus (C)",
        "Which? B. Sacrotuberous ligament C. Iliacus muscle D. Iliacus",
        "Which of [Sacrotuberous ligament, Iliacus muscle, Iliacus]",
        "Statements:\n1. The Sacrotuberous ligament\n2. Iliacus muscle\n3. Iliacus",
        "Which? A. Sacrotuberous ligament B. Iliacus muscle C. Iliacus\nAnswer: B",
        "It hurts at:\n1. Sacrotuberous ligament\n2. Iliacus muscle\n3. Iliacus",
        "Which? Injured: 1. Sacrotuberous ligament 2. Iliacus muscle 3. Iliacus",
        "Which? Injured: A) Sacrotuberous ligament B) Iliacus muscle C) Iliacus",
        "Injured:- 1. Sacrotuberous ligament 2. Iliacus muscle 3. Iliacus",
        "Injured: ['Sacrotuberous ligament', 'Iliacus muscle', 'Iliacus']",
        "Which? Options: Sacrotuberous ligament, Iliacus muscle, Iliacus B",
        "Options: all that hurt.\n- Sacrotuberous ligament\n- Iliacus muscle\n- Iliacus",
    ],
)
def test_other_mentions_of_options_are_part_of_the_question(question: str) -> None:
    assert read({"question": question, "options": FIVE, "answer_idx": "B"}).text == question


def test_a_list_of_letters_that_are_texts_as_well() -> None:
    options = dict(zip("ABCD", "BCDE", strict=True))
    for listed in ("(D) E (C) D (A) B (B) C", "A. B B. C C. D D. E"):
        question = {"question": f"Which point? {listed}", "options": options, "answer_idx": "B"}
        assert read(question).text == "Which point?"


def test_a_long_question_with_its_options_takes_no_time() -> None:
    """With an ambiguous pattern this would take forever."""
    texts = [*FIVE.values()]
    listed = "A. Sacrotuberous ligament B. Iliacus muscle C. Iliacus "
    for filler in ("<br>", "A. ", " ", "Options: ", "['", listed):
        for question in (f"Which? {listed}{filler * 2000}x", f"Which?{filler * 2000}{listed}x"):
            assert without_options(question, texts) == question


def test_options_are_not_shown_a_second_time_in_an_order_of_their_own() -> None:
    assert read(MEDXPERTQA).text == read(MEDXPERTQA_REPOSITORY).text == "Which procedure?"
    assert read(HLE).text == "Which condition do they violate?"
    assert read(HLE).options["B"] == "Priority\n   of a kind"
    other = MEDXPERTQA | {"question": "Which?\nAnswer Choices: none of these matters"}
    assert read(other).text == other["question"]


def test_a_decision_or_a_letter_may_be_written_otherwise() -> None:
    assert read(PUBMEDQA | {"final_decision": "Yes"}).gold == "A"
    assert read(MEDMCQA | {"cop": "Option B"}).gold == read(MEDMCQA | {"cop": "b"}).gold == "B"


def test_the_clean_text_of_a_question_is_asked_where_there_is_one() -> None:
    assert read(AFRIMEDQA).text == "What treatment?"
    assert read(AFRIMEDQA | {"question_clean": ""}).text == AFRIMEDQA["question"].strip()


def hle_with(listed: str) -> dict[str, Any]:
    return HLE | {"question": f"Which?\nAnswer Choices:{listed}"}


def test_an_empty_last_option_is_not_a_part_of_the_one_before() -> None:
    question = read(hle_with("\nA. one\nB. two\nC. three\nD. four\nE."))
    assert question.options["D"] == "four"
    assert [*question.hidden] == ["E"]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (AFRIMEDQA | {"correct_answer": "option1,option2"}, "more than one option is right"),
        (AFRIMEDQA | {"question_type": "saq", "answer_options": ""}, "'question_type' is 'saq'"),
        # EleutherAI/lm-evaluation-harness, pull request 3410
        (MMLU_REDUX | {"error_type": "wrong_groundtruth"}, "field 'error_type' is 'wrong_gr"),
        (HLE | {"answer_type": "exactMatch"}, "field 'answer_type' is 'exactMatch'"),
        (HLE | {"question": "Which?"}, "no options are listed after 'Answer Choices:'"),
        (hle_with("\n(i) one"), "no options are listed"),
        (hle_with("\nB. one\nC. two"), "no options are listed"),
        (hle_with("".join(f"\n{letter}. x" for letter in "ABCDEFGHIJK")), "more than 10 options"),
    ],
)
def test_what_is_no_question_for_us_is_told_from_what_is_broken(
    record: dict[str, Any], reason: str
) -> None:
    with pytest.raises(OutOfScopeError) as caught:
        read(record)
    assert reason in caught.value.reason
    assert str(caught.value).startswith(
        f"x.jsonl line 4: {caught.value.reason}; python -m mdagents data "
    )


def test_the_text_of_the_right_option_may_be_the_letter_of_another() -> None:
    groups = {"A": "O", "B": "A", "C": "B", "D": "AB"}
    record = {"question": "Which group?", "options": groups, "answer": "B", "answer_idx": "C"}
    assert parse_question(record, "line 1", 1).gold == "C"


@pytest.mark.parametrize("place", [2.0, "2.0", "2."])
def test_whole_numbers_may_be_written_as_pandas_does(place: object) -> None:
    """With an empty cell in the column, as in pandas-dev/pandas#48704."""
    assert read(MEDMCQA | {"cop": place}).gold == "C"
    assert read(MMLU | {"answer": float(str(place))}).gold == "C"


@pytest.mark.parametrize("subject", ["", " ", None, "Anatomy", "anatomy ", "Clinical Knowledge"])
def test_the_subject_of_mmlu_may_be_empty_or_in_another_spelling(subject: str | None) -> None:
    assert read(MMLU | {"subject": subject, "answer": 2}).gold == "C"


@pytest.mark.parametrize(
    "choices",
    [
        "['facial' 'vagus' \"it's facial\" 'optic']",
        "['facial' 'vagus'\n \"it's facial\" 'optic']",
        "['facial', 'vagus', \"it's facial\", 'optic']",
        '["facial", "vagus", "it\'s facial", "optic"]',
    ],
)
@pytest.mark.parametrize("answer", ["2", " 2", "2.0", "C", 2])
def test_a_table_of_mmlu_is_read_as_its_records(choices: str, answer: object) -> None:
    """As `to_csv` of pandas writes the rows of the published Parquet files."""
    question = read(MMLU | {"choices": choices, "answer": answer})
    assert [*question.options.values()] == ["facial", "vagus", "it's facial", "optic"]
    assert question.gold == "C"


def test_a_number_in_a_table_of_mmlu_that_is_the_text_of_an_option_is_refused() -> None:
    record = MMLU | {"choices": "['1', '2', '3', '4']", "answer": "1"}
    with pytest.raises(ConfigError, match="'answer' is '1', and the first option may be 0 or 1"):
        read(record)
    assert read(record | {"choices": "['0', '1', '2', '3']"}).gold == "B"
    assert read(record | {"answer": 1}).gold == "B"


def test_the_labels_of_arc_with_a_subject_of_mmlu_are_no_places() -> None:
    choices = {"text": ["one", "two", "three"], "label": ["1", "2", "3"]}
    for subject in ("anatomy", ""):
        assert read(MMLU | {"subject": subject, "choices": choices, "answer": "1"}).gold == "A"
        assert read(MMLU | {"subject": subject, "choices": choices, "answer": "3"}).gold == "C"


@pytest.mark.parametrize("kind", ["MCQ", "CLOSED", "exactMatch"])  # pengfeiliHEU/M2I2#14
def test_a_record_with_options_of_its_own_is_not_one_of_hle(kind: str) -> None:
    record = {"question": "Which?", "answer": "B", "answer_type": kind}
    assert read(record | {"options": {"A": "x", "B": "y"}}).gold == "B"
    assert read(record | {"A": "x", "B": "y"}).gold == "B"


def test_a_field_of_another_published_form_changes_no_record_that_is_read() -> None:
    for other in (CMB, HEADQA, FRENCHMEDMCQA, SWAG, OPENLIFESCIENCEAI):
        question = read({**other, **BIGBIO, "label": "E"})
        assert (question.text, question.gold) == ("Which one?", "E")
        assert [*question.options.values()] == ["one", "two", "three", "four", "five"]


@pytest.mark.parametrize("cop", [0, 1, 3])
def test_a_number_beside_another_answer_is_not_that_of_careqa(cop: int) -> None:
    question = read(CAREQA | {"cop": cop, "answer_idx": "C"})
    assert question.gold == "C"
    record = {name: value for name, value in CAREQA.items() if name != "exam_id"}
    with pytest.raises(ConfigError, match="no field says which option is right"):
        read(record)


@pytest.mark.parametrize("form", [KORMEDMCQA, KMMLU])
def test_a_letter_in_place_of_the_number_of_a_form_is_read(form: dict[str, Any]) -> None:
    assert read(form | {"answer": "4"}).gold == "D"
    assert read(form | {"answer": "C"}).gold == "C"
    with pytest.raises(ConfigError, match=r"'answer' is read as 'answer_number'\): .* 1 to"):
        read(form | {"answer": 0})


def test_a_number_beside_one_field_name_of_a_form_may_count_from_0_or_1() -> None:
    own = {name: KORMEDMCQA[name] for name in KORMEDMCQA if name not in ("year", "period")}
    with pytest.raises(ConfigError, match="the first option may be 0 or 1"):
        read(own)


def test_a_column_of_a_fifth_option_is_read() -> None:
    record = OPENLIFESCIENCEAI_COLUMNS | {"data.Options.E": "Tin"}
    assert [*read(record).options.values()][-1] == "Tin"


def test_the_beginning_of_a_sentence_that_options_complete_is_asked() -> None:
    """As in allenai/swag; GBaker/MedQA-USMLE-4-options-hf leaves `sent2` empty."""
    assert read(SWAG_OF_FIVE).text == "A man was poisoned. It was by"
    reverse = dict(reversed(SWAG_OF_FIVE.items()))
    assert read(reverse).text == "A man was poisoned. It was by"
    assert read(SWAG | {"sent2": None}).text == "Which metal?"
    assert read({name: SWAG[name] for name in SWAG if name != "sent2"}).text == "Which metal?"


def test_a_table_of_mmlu_redux_is_read_as_its_records() -> None:
    table = {name: str(value or "") for name, value in MMLU_REDUX.items()}
    assert read(table).gold == "D"
    assert read(table | {"choices": "['Iron' 'Zinc'\n 'Gold' 'Lead']"}).gold == "D"


def test_options_that_repeat_are_kept() -> None:
    assert [*read(MMLU).options.values()] == ["facial", "vagus", "facial", "optic"]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (MEDMCQA | {"cop": -1}, "line 4: field 'cop' is -1: the answers of this split"),
        (MEDMCQA | {"cop": 4}, "line 4: field 'cop' is 4 but must be 0 to 3, as this file counts"),
        (MEDMCQA | {"cop": None}, "line 4: field 'cop' is None but must be the number"),
        (MEDMCQA | {"cop": True}, "line 4: field 'cop' is None but must be the number"),
        (MEDMCQA | {"cop": "F"}, "line 4: field 'cop' is 'F' but must be the number of an"),
        (MEDMCQA | {"answer_idx": "B"}, "field 'cop' is option C and field 'answer_idx' is 'B'"),
        (MEDMCQA | {"answer": "0.02"}, "field 'answer' differs from the text of option C"),
        (MEDMCQA | {"opc": " "}, "line 4: field 'answer_idx' is 'C', and that option is empty"),
        ({k: v for k, v in MEDMCQA.items() if k != "cop"}, "there is no field 'cop': the answers"),
        (AFRIMEDQA | {"correct_answer": ""}, "field 'correct_answer' is '' but must be one of op"),
        (AFRIMEDQA | {"correct_answer": "option6"}, "'correct_answer' is 'option6' but must be"),
        (AFRIMEDQA | {"correct_answer": "option5"}, "is 'E', and that option is empty or n/a"),
        (AFRIMEDQA | {"answer_options": "{"}, "line 4: field 'answer_options' is not JSON"),
        (AFRIMEDQA | {"answer_options": "[]"}, "but must be one of its options"),
        (MEDXPERTQA | {"label": ["A", "B"]}, "line 4: field 'label' is ['A', 'B']"),
        (HLE | {"answer": "E"}, "line 4: field 'answer_idx' is 'E' but must be one of A, B, C, D"),
        (PUBMEDQA | {"final_decision": "perhaps"}, "'final_decision' is 'perhaps' but must be yes"),
        (
            PUBMEDQA | {"CONTEXTS": [5]},
            "line 4: field 'CONTEXTS' must be a text or a list of texts",
        ),
        (MMLU | {"answer": 4}, "line 4: field 'answer' is 4 but must be 0 to 3, as MMLU counts"),
        (MMLU | {"answer": True}, "line 4: field 'answer_idx' is True"),
        (MMLU | {"answer": [1]}, "line 4: field 'answer' is 1, and the first option may be 0 or"),
        (HLE | {"answer": ["A", "B"]}, "line 4: field 'answer_idx' is ['A', 'B']"),
        (IGAKUQA | {"answer": ["d", "e"]}, "field 'answer' is ['d', 'e']: more than one option is"),
        (CMB | {"answer": "ABD"}, "field 'answer' is 'ABD': more than one option is right"),
        (CMB | {"option": "x"}, "line 4: there are no options"),
        (FRENCHMEDMCQA | {"correct_answers": ["a", "b"]}, "is ['a', 'b']: more than one option is"),
        (FRENCHMEDMCQA_HUB | {"correct_answers": [0, 3]}, "is [0, 3]: more than one option is"),
        (MEDIQAL | {"correct_answers": "A,D"}, "'answer' is 'A,D': more than one option is right"),
        (
            CAREQA | {"cop": 0},
            "line 4 ('cop' is read as 'answer_number'): field 'answer_number' is 0 but must",
        ),
        (
            HEADQA | {"ra": 0},
            "line 4 ('ra' is read as 'answer'): field 'answer' is 0, and the first option",
        ),
        (MMLU | {"choices": ["one"] * 11}, "line 4: field 'options' must be an object"),
        (
            MMLU | {"choices": ["one", "", "n/a"], "answer": 0},
            "line 4: field 'options' must have 2 to 10",
        ),
        (MMLU | {"subject": "Dietetics"}, "and the first option may be 0 or 1: write the letter"),
        (MMLU | {"subject": ["anatomy"]}, "and the first option may be 0 or 1: write the letter"),
        (MMLU_PRO | {"answer": "J"}, "line 4: field 'answer' is 'J'"),
        (MMLU_PRO | {"options": "A, B"}, "line 4: field 'options' must be an object"),
        (BIGBIO | {"answer": "one"}, "line 4: field 'answer' differs from the text of option E"),
        (MEDXPERTQA | {"label": "K"}, "line 4: field 'label' is 'K'"),
    ],
)
def test_what_is_wrong_is_named(record: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(record)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


names = st.sampled_from(sorted({name for form in FORMS for name in form[0]}))
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 12) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@pytest.mark.sweep
@given(st.sampled_from(FORMS), st.dictionaries(names, anything, max_size=4), st.sets(names))
def test_no_record_is_more_than_a_config_error(
    form: tuple[dict[str, Any], str, int, str, str], changes: dict[str, Any], without: set[str]
) -> None:
    record = {k: v for k, v in (form[0] | changes).items() if k not in without}
    with contextlib.suppress(ConfigError):
        question = read(record)
        assert question.gold in question.options
        assert 2 <= len(question.options) <= 10
