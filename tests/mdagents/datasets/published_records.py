"""A record of each form in which data sets are published."""

from __future__ import annotations

from typing import Any

MEDMCQA = {
    "id": "b64a9cd7",
    "question": "Concentration of tropicamide:",
    "opa": "0.01",
    "opb": "0.02",
    "opc": "0.03",
    "opd": "0.04",
    "cop": 2,
    "choice_type": "single",
    "exp": "Because.",
    "subject_name": "Pharmacology",
    "topic_name": None,
}
"""Counted from 0, as on the Hub."""
PUBMEDQA_HUB = {
    "pubid": 12377809,
    "question": "Is it valuable?",
    "context": {"contexts": ["We looked.", "We found."], "labels": ["METHODS", "RESULTS"]},
    "long_answer": "It is.",
    "final_decision": "maybe",
}
PUBMEDQA = {
    "pubid": "12377809",
    "QUESTION": "Is it valuable?",
    "CONTEXTS": ["We looked.", "We found."],
    "LABELS": ["METHODS", "RESULTS"],
    "final_decision": "maybe",
    "LONG_ANSWER": "It is.",
}
MMLU = {
    "question": "Which nerve?",
    "subject": "anatomy",
    "choices": ["facial", "vagus", "facial", "optic"],
    "answer": 3,
}
MMLU_PRO = {
    "question_id": 6001,
    "question": "Which one?",
    "options": [f"option {n}" for n in range(9)],
    "answer": "I",
    "answer_index": 8,
    "cot_content": "",
    "category": "health",
    "src": "ori_mmlu-virology",
}
FIVE = {"A": "one", "B": "two", "C": "three", "D": "four", "E": "five"}
BIGBIO = {
    "meta_info": "step1",
    "question": "Which one?",
    "answer_idx": "E",
    "answer": "five",
    "options": [{"key": letter, "value": word} for letter, word in FIVE.items()],
}
MEDBULLETS = {
    "link": "https://step2.medbullets.com/testview?qid=1",
    "question": "What next?",
    "opa": "Wait",
    "opb": "Operate",
    "opc": "Image",
    "opd": "Treat",
    "ope": "",
    "answer_idx": "B",
    "answer": "Operate",
    "explanation": "Because.",
}
MEDBULLETS_HUB = {
    "idx": "op4-7",
    "question": "What next?",
    "options": {"A": "Wait", "B": "Operate", "C": "Image", "D": "Treat", "E": None},
    "answer": "B",
}
TEN = {letter: f"Procedure {letter}" for letter in "ABCDEFGHIJ"}
MEDXPERTQA = {
    "id": "Text-0",
    "question": "Which procedure?\nAnswer Choices: "
    + " ".join(f"({letter}) {text}" for letter, text in TEN.items()),
    "options": TEN,
    "label": "H",
    "medical_task": "Treatment",
    "body_system": "Skeletal",
    "question_type": "Understanding",
}

MEDXPERTQA_REPOSITORY = MEDXPERTQA | {
    "options": [{"letter": letter, "content": text} for letter, text in TEN.items()],
    "label": ["H"],
}
AFRIMEDQA = {
    "sample_id": "cbf7fa22",
    "split": "test",
    "question_type": "mcq",
    "prompt": "",
    "question": "What treatment? \n \n",
    "question_clean": "What treatment?\n",
    "answer_options": '{"option1": "analgesia", "option2": "IV antibiotics", "option3": "Calcium", '
    '"option4": "Vitamin C", "option5": "n/a"}',
    "correct_answer": "option2",
    "answer_rationale": "",
    "tier": "expert",
}
HLE = {
    "id": "6687ffb1",
    "question": "Which condition do they violate?\n\nAnswer Choices:\nA. Dominance\n"
    "B. Priority\n   of a kind\nC. Elitism\nD. Sadism",
    "image": "",
    "image_preview": None,
    "answer": "D",
    "answer_type": "multipleChoice",
    "rationale": "Because.",
    "raw_subject": "Philosophy",
    "category": "Humanities/Social Science",
}

METALS = {"A": "Iron", "B": "Zinc", "C": "Gold", "D": "Lead", "E": "Tin"}
CMB = {
    "exam_type": "医师考试",
    "exam_class": "执业医师",
    "exam_subject": "口腔执业医师",
    "question": "Which metal?",
    "answer": "D",
    "question_type": "单项选择题",
    "option": METALS | {"E": ""},
}
"""FreedomIntelligence/CMB#13."""
CMEXAM = {
    "Question": "Which metal?",
    "Options": "\n".join(f"{letter} {text}" for letter, text in METALS.items()),
    "Answer": "D",
    "Explanation": "Because.",
}
"""A row of the table that williamliujl/CMExam reads in src/preprocess/generate_prompt.py."""
IGAKUQA = {
    "problem_id": "112A1",
    "problem_text": "Which metal?",
    "choices": list(METALS.values()),
    "text_only": True,
    "answer": ["d"],
    "points": "1",
}
"""jungokasai/IgakuQA, data/2018/112-A.jsonl."""
BIGBIO_QA = {
    "id": "5",
    "question_id": "5",
    "document_id": "5",
    "question": "Which metal?",
    "type": "multiple_choice",
    "choices": list(METALS.values()),
    "context": "",
    "answer": ["Lead"],
}
"""bigscience-workshop/biomedical, hub_repos/med_qa/med_qa.py."""
HEADQA = {
    "name": "Cuaderno_2013_1_B",
    "year": "2013",
    "category": "biology",
    "qid": 1,
    "qtext": "Which metal?",
    "ra": 4,
    "image": None,
    "answers": [{"aid": n, "atext": text} for n, text in enumerate(METALS.values(), start=1)],
}
"""https://www.tensorflow.org/datasets/community_catalog/huggingface/head_qa."""
FRENCHMEDMCQA = {
    "id": "5987fa6b",
    "question": "Which metal?",
    "answers": {letter.lower(): text for letter, text in METALS.items()},
    "correct_answers": ["d"],
    "subject_name": "pharmacie",
    "type": "single",
    "nbr_correct_answers": 1,
}
"""qanastek/DEFT-2023, README."""
FRENCHMEDMCQA_TABLE = {
    "id": "5987fa6b",
    "question": "Which metal?",
    **{f"answers.{letter.lower()}": text for letter, text in METALS.items()},
    "correct_answers": "d",
    "nbr_correct_answers": "1",
}
FRENCHMEDMCQA_HUB = {
    "id": "5987fa6b",
    "question": "Which metal?",
    **{f"answer_{letter.lower()}": text for letter, text in METALS.items()},
    "correct_answers": [3],
    "number_correct_answers": 0,
    "type": "single",
    "subject_name": "pharmacie",
}
"""DrBenchmark/DrBenchmark, data_loaders_hf/FrenchMedMCQA.py: class labels, from 0."""
MEDEXPQA = {
    "id": 77,
    "full_question": "Which metal?",
    "options": {str(n): text for n, text in enumerate(METALS.values(), start=1)} | {"5": None},
    "correct_option": 4,
    "full_answer": "Because.",
    "lang": "en",
}
"""The fields that lighteval reads of HiTZ/MedExpQA."""
OPENLIFESCIENCEAI = {
    "id": "e2f1",
    "data": {
        "Question": "Which metal?",
        "Options": {letter: text for letter, text in METALS.items() if letter != "E"},
        "Correct Option": "D",
        "Correct Answer": "Lead",
    },
    "subject_name": None,
}
"""The fields that programs read of openlifescienceai/medqa."""
MMLU_TARGET = {
    "input": "Which metal?",
    **{letter: METALS[letter] for letter in "ABCD"},
    "target": "D",
}
"""The fields that open-compass/opencompass reads of lukaemon/mmlu."""
MEDIQAL = {
    "id": "q7",
    "clinical_case": "A man was poisoned.",
    "question": "Which metal?",
    **{f"answer_{letter.lower()}": text for letter, text in METALS.items()},
    "correct_answers": "D",
}
"""The fields that programs read of ANR-MALADES/MediQAl."""
CAREQA = {
    "exam_id": 42,
    "question": "Which metal?",
    **{f"op{n}": text for n, text in enumerate(["Iron", "Zinc", "Gold", "Lead"], start=1)},
    "cop": 4,
    "year": 2020,
    "category": "Medicine",
}
"""The fields that programs read of HPAI-BSC/CareQA, which counts from 1."""
SWAG = {
    "id": "test-00001",
    "sent1": "Which metal?",
    "sent2": "",
    **{f"ending{place}": text for place, text in enumerate(["Iron", "Zinc", "Gold", "Lead"])},
    "label": 3,
}
"""The fields that programs read of GBaker/MedQA-USMLE-4-options-hf."""
SWAG_OF_FIVE = {
    "id": 7,
    **{f"ending{place}": text for place, text in enumerate(METALS.values())},
    "label": 3,
    "sent1": "A man was poisoned.",
    "sent2": "It was by",
    "startphrase": "A man was poisoned. It was by",
}
"""The fields of lavita/medical-qa-shared-task-v1-half; texts as in allenai/swag."""
KORMEDMCQA = {
    "subject": "doctor",
    "year": 2022,
    "period": 1,
    "q_number": 3,
    "question": "Which metal?",
    **METALS,
    "answer": 4,
    "cot": "",
}
"""The fields of sean0042/KorMedMCQA, whose card says that 1 denotes A."""
KMMLU = {
    "question": "Which metal?",
    "answer": 4,
    **{letter: METALS[letter] for letter in "ABCD"},
    "Category": "Health",
    "Human Accuracy": 0.5,
}
"""HAERAE-HUB/KMMLU, of which lm-evaluation-harness counts the answer from 1."""
MMLU_REDUX = {
    "question": "Which metal?",
    "choices": ["Iron", "Zinc", "Gold", "Lead"],
    "answer": 3,
    "error_type": "ok",
    "source": None,
    "correct_answer": None,
    "potential_reason": None,
}
"""The fields of edinburgh-dawg/mmlu-redux-2.0."""
OPENLIFESCIENCEAI_TABLE = OPENLIFESCIENCEAI | {"data": str(OPENLIFESCIENCEAI["data"])}
"""The fields of openlifescienceai/medqa as pandas writes them into a table."""
OPENLIFESCIENCEAI_COLUMNS = {
    "id": "e2f1",
    "data.Correct Answer": "Lead",
    "data.Correct Option": "D",
    **{f"data.Options.{letter}": METALS[letter] for letter in "ABCD"},
    "data.Question": "Which metal?",
    "subject_name": None,
}

FORMS: list[tuple[dict[str, Any], str, int, str, str]] = [
    (MEDMCQA, "b64a9cd7", 4, "C", "0.03"),
    (PUBMEDQA, "12377809", 3, "C", "maybe"),
    (PUBMEDQA_HUB, "12377809", 3, "C", "maybe"),
    (MMLU, "sample_4", 4, "D", "optic"),
    (MMLU_PRO, "6001", 9, "I", "option 8"),
    (BIGBIO, "sample_4", 5, "E", "five"),
    (MEDBULLETS, "sample_4", 4, "B", "Operate"),
    (MEDBULLETS_HUB, "op4-7", 4, "B", "Operate"),
    (MEDXPERTQA, "Text-0", 10, "H", "Procedure H"),
    (MEDXPERTQA_REPOSITORY, "Text-0", 10, "H", "Procedure H"),
    (AFRIMEDQA, "cbf7fa22", 4, "B", "IV antibiotics"),
    (HLE, "6687ffb1", 4, "D", "Sadism"),
    (CMB, "sample_4", 4, "D", "Lead"),
    (CMEXAM, "sample_4", 5, "D", "Lead"),
    (IGAKUQA, "sample_4", 5, "D", "Lead"),
    (BIGBIO_QA, "5", 5, "D", "Lead"),
    (HEADQA, "sample_4", 5, "D", "Lead"),
    (FRENCHMEDMCQA, "5987fa6b", 5, "D", "Lead"),
    (FRENCHMEDMCQA_TABLE, "5987fa6b", 5, "D", "Lead"),
    (FRENCHMEDMCQA_HUB, "5987fa6b", 5, "D", "Lead"),
    (MEDEXPQA, "77", 4, "D", "Lead"),
    (OPENLIFESCIENCEAI, "e2f1", 4, "D", "Lead"),
    (MMLU_TARGET, "sample_4", 4, "D", "Lead"),
    (MEDIQAL, "q7", 5, "D", "Lead"),
    (CAREQA, "sample_4", 4, "D", "Lead"),
    (SWAG, "test-00001", 4, "D", "Lead"),
    (SWAG_OF_FIVE, "7", 5, "D", "Lead"),
    (KORMEDMCQA, "sample_4", 5, "D", "Lead"),
    (KMMLU, "sample_4", 4, "D", "Lead"),
    (MMLU_REDUX, "sample_4", 4, "D", "Lead"),
    (OPENLIFESCIENCEAI_TABLE, "e2f1", 4, "D", "Lead"),
    (OPENLIFESCIENCEAI_COLUMNS, "e2f1", 4, "D", "Lead"),
]
"""Record, id, options, gold letter and gold text."""
