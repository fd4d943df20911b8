"""Names of the fields of published data sets that ask in other words than this project."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mdagents.datasets.field_names import COLUMN, names_right_option, plain
from mdagents.datasets.own_forms import list_in

_LETTERS_OF_FIVE = "abcde"
_NAMES: tuple[tuple[Mapping[str, str], frozenset[str]], ...] = (
    # CMB: https://github.com/FreedomIntelligence/CMB
    ({"option": "options"}, frozenset({"question", "answer"})),
    # IgakuQA: https://github.com/jungokasai/IgakuQA
    ({"problem_text": "question"}, frozenset({"choices", "answer"})),
    # MedExpQA: https://huggingface.co/datasets/HiTZ/MedExpQA
    ({"full_question": "question"}, frozenset({"options", "correct_option"})),
    # MMLU: https://huggingface.co/datasets/lukaemon/mmlu
    ({"input": "question"}, frozenset({"A", "B", "C", "D", "target"})),
    # HEAD-QA: https://huggingface.co/datasets/dvilares/head_qa
    ({"qtext": "question", "answers": "options", "ra": "answer"}, frozenset()),
    # FrenchMedMCQA: https://github.com/qanastek/DEFT-2023 (objects and tables) and, with numbers
    # from 0, https://huggingface.co/datasets/qanastek/frenchmedmcqa
    ({"answers": "options", "correct_answers": "answer"}, frozenset({"question"})),
    (
        {f"answers.{of}": f"option_{of}" for of in _LETTERS_OF_FIVE}
        | {"correct_answers": "answer"},
        frozenset({"question"}),
    ),
    (
        {f"answer_{of}": f"option_{of}" for of in _LETTERS_OF_FIVE}
        | {"correct_answers": "answer_index"},
        frozenset({"question", "number_correct_answers"}),
    ),
    # MediQAl: https://huggingface.co/datasets/ANR-MALADES/MediQAl
    (
        {f"answer_{of}": f"option_{of}" for of in _LETTERS_OF_FIVE}
        | {"clinical_case": "context", "correct_answers": "answer"},
        frozenset({"question"}),
    ),
    # CareQA, from 1: https://huggingface.co/datasets/HPAI-BSC/CareQA
    ({"cop": "answer_number"}, frozenset({"exam_id", "question", "op1", "op2", "op3", "op4"})),
    # KorMedMCQA, from 1: https://huggingface.co/datasets/sean0042/KorMedMCQA
    ({"answer": "answer_number"}, frozenset({"year", "period", "q_number", "question", *"ABCDE"})),
    # KMMLU, from 1: https://huggingface.co/datasets/HAERAE-HUB/KMMLU
    ({"answer": "answer_number"}, frozenset({"Human Accuracy", "question", *"ABCD"})),
    # MedQA in the form of SWAG: https://huggingface.co/datasets/GBaker/MedQA-USMLE-4-options-hf
    # and, with five options, https://huggingface.co/datasets/lavita/medical-qa-shared-task-v1-half
    (
        {"sent1": "question", "sent2": "question", "label": "answer_index"}
        | {f"ending{place}": f"option_{of}" for place, of in enumerate(_LETTERS_OF_FIVE)},
        frozenset(),
    ),
    # A column for each value: https://huggingface.co/datasets/openlifescienceai/medqa
    (
        {"data.Question": "question", "data.Correct Option": "answer_idx"}
        | {f"data.Options.{of}": f"option_{of.lower()}" for of in "ABCDE"},
        frozenset(),
    ),
)
"""(name as published -> name that is read, other fields that the form has). Texts of the same name
are one text in the order of the names, as the beginning of a sentence in SWAG and its end."""
_OPTIONAL = frozenset({"sent2", "ending4", "data.Options.E"})
_FORMS = tuple((names, (names.keys() | others) - _OPTIONAL) for names, others in _NAMES)

_WITHIN = "data"
"""Field with the record itself, in a table as text:
https://huggingface.co/datasets/openlifescienceai/medqa."""


def in_own_names(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a record with the names of fields that are read; one in another form is unchanged.

    Args:
        record: Record as published.
    """
    inner = record.get(_WITHIN)
    if isinstance(inner, str):
        inner = list_in(inner)
    if isinstance(inner, dict) and {"question", "options"} <= set(map(plain, inner)):
        outer = {name: record[name] for name in record if name != _WITHIN}
        if {"question", "options", "choices"}.isdisjoint(map(plain, outer)):
            return {**inner, **outer}
    names = _form_of(record)
    if not names:
        return record
    named = {names.get(name, name): value for name, value in record.items()}
    for read in named:
        texts = [record[name] or "" for name in names if names[name] == read and name in record]
        if len(texts) > 1:
            named[read] = " ".join(map(str, texts)).strip()
    return named


def _form_of(record: Mapping[str, Any]) -> Mapping[str, str]:
    """Return name as published -> name that is read, of the form of a record; empty without one."""
    for names, fields in _FORMS:
        if record.keys() >= fields and _is_in_form(record, names):
            return names
    return {}


def answer_read_as(record: Mapping[str, Any], named: Mapping[str, Any]) -> str:
    """Return which field of a record is read as its right option, for messages; else empty.

    Args:
        record: Record as published.
        named: The same record from `in_own_names`.
    """
    if named is record or (_WITHIN in record and _WITHIN not in named):
        return ""
    pairs = _form_of(record).items()
    return next(
        (f" ('{name}' is read as '{read}')" for name, read in pairs if names_right_option(read)), ""
    )


def _is_in_form(record: Mapping[str, Any], names: Mapping[str, str]) -> bool:
    """Return whether a record has no options, question or answer besides those of a form."""
    own = {plain(name) for name in record if name not in names}
    options = [record[name] for name, read in names.items() if read == "options"]
    is_listed = all(str(value).lstrip()[:1] in ("{", "[") for value in options)
    gives_options = any(read.startswith("option") for read in names.values())
    has_options = not own.isdisjoint(("options", "choices")) or any(map(COLUMN.fullmatch, own))
    is_asked_already = not own.isdisjoint(map(plain, names.values()))
    is_answered = any(map(names_right_option, own)) and any(map(names_right_option, names.values()))
    is_complete = is_asked_already or is_answered or (gives_options and has_options)
    is_letter = "answer" in names and str(record["answer"]).strip().isalpha()
    return is_listed and not is_complete and not is_letter
