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
]
"""Record, id, options, gold letter and gold text."""
