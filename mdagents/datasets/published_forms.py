"""Converts the published forms of data sets to the form used in this project: MedQA's.

A form is recognized by its field names, so that a file can be used as its authors publish it. All
other records are read by `own_forms` and validated by `parse_question`.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mdagents.datasets.field_names import names_right_option
from mdagents.datasets.listed_options import LETTER_AND_DOT, option_lists, texts_of
from mdagents.datasets.medmcqa import COLUMNS, WITHHELD, place_of
from mdagents.datasets.option_letters import letter_marked, letters_meant
from mdagents.datasets.own_forms import (
    from_objects,
    has_answer,
    in_own_form,
    lettered,
    list_in,
)
from mdagents.datasets.questions import LETTERS
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.json_text import load_json

Record = Mapping[str, Any]

_MEDQA = frozenset({"options", "answer_idx"})
_MEDMCQA = frozenset({"opa", "cop"})
_YES_NO_MAYBE = ("yes", "no", "maybe")
_WHOLE = re.compile(r"\s*(-?\d{1,9})(?:\.0*)?\s*")
_LISTED_CHOICES = "Answer Choices:"
_MMLU_SUBJECTS = frozenset({
    "abstract_algebra", "anatomy", "astronomy", "business_ethics", "clinical_knowledge",
    "college_biology", "college_chemistry", "college_computer_science", "college_mathematics",
    "college_medicine", "college_physics", "computer_security", "conceptual_physics",
    "econometrics", "electrical_engineering", "elementary_mathematics", "formal_logic",
    "global_facts", "high_school_biology", "high_school_chemistry", "high_school_computer_science",
    "high_school_european_history", "high_school_geography", "high_school_government_and_politics",
    "high_school_macroeconomics", "high_school_mathematics", "high_school_microeconomics",
    "high_school_physics", "high_school_psychology", "high_school_statistics",
    "high_school_us_history", "high_school_world_history", "human_aging", "human_sexuality",
    "international_law", "jurisprudence", "logical_fallacies", "machine_learning", "management",
    "marketing", "medical_genetics", "miscellaneous", "moral_disputes", "moral_scenarios",
    "nutrition", "philosophy", "prehistory", "professional_accounting", "professional_law",
    "professional_medicine", "professional_psychology", "public_relations", "security_studies",
    "sociology", "us_foreign_policy", "virology", "world_religions",
})  # fmt: skip


class OutOfScopeError(ConfigError):
    """A record that is valid as published, but not a text question with one right option.

    Args:
        where: File and line.
        reason: Reason, with the same wording for all records to which it applies.
    """

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(
            f"{where}: {reason}; python -m mdagents data download NAME --from FILE leaves such "
            "records out"
        )
        self.reason = reason


def in_medqa_form(record: dict[str, Any], where: str, cop_from: int | None = None) -> Record:
    """Return the record with `question`, `options` (letter -> text) and `answer_idx` (letter).

    Other fields, including ids, are kept.

    Args:
        record: Record of MedQA, MedMCQA, PubMedQA, MMLU, MMLU-Pro, Medbullets, MedXpertQA,
            AfriMed-QA, HLE, or in a form read by `own_forms`.
        where: File and line, for error messages.
        cop_from: Value of MedMCQA's field `cop` for the first option in this file: 0 or 1.

    Raises:
        OutOfScopeError: The form is known, but the record cannot be asked.
        ConfigError: The answer is withheld or names no option.
    """
    if record.keys() >= _MEDQA and isinstance(record["options"], dict):
        letter = record["answer_idx"]
        is_read = letter is None or (isinstance(letter, str) and letter in record["options"])
        is_read = is_read and set(record["options"]) <= set(LETTERS)
        if is_read and record.keys().isdisjoint(("answer_index", "answer_number")):
            return _agreeing(record, record, where)
    if record.keys() >= _MEDMCQA:
        return _agreeing(record, _medmcqa(record, where, cop_from), where)
    for fields, read in _FORMS:
        if record.keys() >= fields:
            return _agreeing(record, read(record, where), where)
    return {**record, **in_own_form(record, where)}


def _agreeing(record: Record, read: Record, where: str) -> Record:
    """Return the record in MedQA's form, if no field names another option as the right one."""
    options, letter = read.get("options"), read.get("answer_idx")
    letters = options if isinstance(options, dict) and isinstance(letter, str) else {}
    for name, value in record.items():
        names_another = isinstance(value, str) and value != letter and value in letters
        names_another = names_another and value != letters.get(
            letter, value
        )  # blood group B is option C
        if names_another and names_right_option(name):
            raise ConfigError(
                f"{where}: field '{name}' is option {value} and the right option is {letter}; one "
                "of them is wrong"
            )
    return record if read is record else {**record, **read}


def _medmcqa(record: dict[str, Any], where: str, cop_from: int | None) -> Record:
    """Read MedMCQA: options `opa` to `opd`, and `cop`, the number of the right option."""
    place = place_of(record)
    options = _columns(record)
    if place == WITHHELD:
        raise ConfigError(
            f"{where}: field 'cop' is {WITHHELD}: the answers of this split are withheld; use "
            "validation"
        )
    if isinstance(place, str) and (letter := letter_marked(place)) in options:
        return {"options": options, "answer_idx": letter}
    if not isinstance(place, int):
        raise ConfigError(
            f"{where}: field 'cop' is {reprlib.repr(place)} but must be the number of an option, "
            "or its letter"
        )
    if cop_from is None:
        raise ConfigError(f"{where}: field 'cop' counts from 0 or from 1, which the file decides")
    if not 0 <= place - cop_from < len(options):
        raise ConfigError(
            f"{where}: field 'cop' is {reprlib.repr(place)} but must be {cop_from} to "
            f"{cop_from + len(options) - 1}, as this file counts from {cop_from}"
        )
    letter = LETTERS[place - cop_from]
    if record.get("answer_idx") not in (None, "", letter):
        raise ConfigError(
            f"{where}: field 'cop' is option {letter} and field 'answer_idx' is "
            f"{reprlib.repr(record['answer_idx'])}; one of them is wrong"
        )
    return {"options": options, "answer_idx": letter}


def _withheld(record: Record, where: str) -> Record:
    """Reject a record of MedMCQA's test split, which has neither `cop` nor another answer field."""
    if has_answer(record):
        return in_own_form(record, where)
    raise ConfigError(
        f"{where}: there is no field 'cop': the answers of this split are withheld; use validation"
    )


def _medbullets(record: Record, where: str) -> Record:
    """Read Medbullets: options `opa` to `ope`, the last one empty if there are four, and a letter.

    Source: https://github.com/HanjieChen/ChallengeClinicalQA
    """
    return {"options": _columns(record)}


def _pubmedqa(record: Record, where: str) -> Record:
    """Read PubMedQA: a yes/no/maybe question about an abstract, which `question_context` reads.

    Source: https://github.com/pubmedqa/pubmedqa (capitals),
    https://huggingface.co/datasets/qiaojin/PubMedQA.
    """
    options = dict(zip(LETTERS, _YES_NO_MAYBE, strict=False))
    decision = record["final_decision"]
    meant = decision.strip().lower() if isinstance(decision, str) else decision
    letter = next((letter for letter, text in options.items() if text == meant), None)
    if letter is None and meant not in (None, ""):
        raise ConfigError(
            f"{where}: field 'final_decision' is {reprlib.repr(decision)} but must be "
            f"{', '.join(_YES_NO_MAYBE)}"
        )
    read: dict[str, Any] = {"options": options, "answer_idx": letter}
    if "question" not in record and "QUESTION" in record:
        read["question"] = record["QUESTION"]
    return read


def _choices(record: Record, where: str) -> Record:
    """Read MMLU: one of its subjects, a list of options, and the index of the right one, from 0.

    The subject may be empty. Files of other subjects may count from 1. In a table, the list is text
    as pandas, numpy or Python writes it.

    Source: https://huggingface.co/datasets/cais/mmlu
    """
    place, choices = record["answer"], record["choices"]
    listed = list_in(choices) if isinstance(choices, str) else choices
    options = lettered(listed)
    # Beside an empty cell, pandas writes 2.0; a table has texts. An object may have such labels.
    may_be_number = isinstance(place, float) or (
        isinstance(place, str) and isinstance(listed, list)
    )
    if may_be_number and (found := _WHOLE.fullmatch(str(place))):
        place = int(found[1])
    is_text = isinstance(place, str | list | dict) or (isinstance(choices, str) and options is None)
    if isinstance(record["answer"], str) and isinstance(options, dict):
        # The number may be the text of another option.
        is_text |= not letters_meant(record["answer"], options) <= {_letter_at(place, options)}
    if is_text or not _is_of_mmlu(record["subject"]):
        return in_own_form(record, where)
    if isinstance(options, dict) and type(place) is int and not 0 <= place < len(options):
        raise ConfigError(
            f"{where}: field 'answer' is {place} but must be 0 to {len(options) - 1}, as MMLU "
            f"counts from 0 (its subject '{record['subject']}')"
        )
    return {"options": options, "answer_idx": _letter_at(place, options), "answer": None}


def _mmlu_redux(record: Record, where: str) -> Record:
    """Read MMLU-Redux: MMLU without its subject, and what is wrong with a question, such as `ok`.

    Other answers are wrong or disputed: EleutherAI/lm-evaluation-harness, pull request 3410.

    Source: https://huggingface.co/datasets/edinburgh-dawg/mmlu-redux-2.0
    """
    if record["error_type"] != "ok":
        kind = reprlib.repr(record["error_type"])
        raise OutOfScopeError(where, f"field 'error_type' is {kind}, not 'ok'")
    return _choices({**record, "subject": None}, where)


def _is_of_mmlu(subject: object) -> bool:
    """Return whether a value is empty or a subject of MMLU, in any case and with spaces."""
    if subject is None:
        return True
    if not isinstance(subject, str):
        return False
    name = subject.strip().casefold().replace(" ", "_")
    return not name or name in _MMLU_SUBJECTS


def _medxpertqa(record: Record, where: str) -> Record:
    """Read MedXpertQA: options by letter, and a label.

    The evaluation data in the repository has options as a list of `{letter, content}`, and the
    label in a list.

    Source: https://huggingface.co/datasets/TsinghuaC3I/MedXpertQA,
    https://github.com/TsinghuaC3I/MedXpertQA
    """
    label, options = record["label"], record["options"]
    if isinstance(label, list) and len(label) == 1:
        (label,) = label
    if isinstance(options, list) and all(isinstance(option, dict) for option in options):
        options = from_objects(options)
    if not isinstance(label, str) or not isinstance(options, dict) or label not in options:
        return in_own_form({**record, "options": options}, where)
    return {"options": options, "answer_idx": label}


def _afrimedqa(record: Record, where: str) -> Record:
    """Read AfriMed-QA: options as JSON text with keys `option1` to `option5`, answers by key.

    The table also has questions without options, and questions with several right options.

    Source: https://github.com/intron-innovation/AfriMed-QA
    """
    kind = record.get("question_type", "mcq")
    if kind != "mcq":
        raise OutOfScopeError(where, f"field 'question_type' is {reprlib.repr(kind)}, not 'mcq'")
    options = record["answer_options"]
    if isinstance(options, str):
        options = load_json(options, f"{where}: field 'answer_options'")
    right = record["correct_answer"]
    names = {name.strip() for name in right.split(",")} if isinstance(right, str) else set()
    if len(names) > 1:
        raise OutOfScopeError(where, "more than one option is right")
    if not isinstance(options, dict) or not names <= options.keys():
        known = ", ".join(options) if isinstance(options, dict) else "its options"
        raise ConfigError(
            f"{where}: field 'correct_answer' is {reprlib.repr(right)} but must be one of {known}"
        )
    place = next((list(options).index(name) for name in names), None)
    by_letter = lettered(list(options.values()))
    read: dict[str, Any] = {"options": by_letter, "answer_idx": _letter_at(place, by_letter)}
    if clean := record.get("question_clean"):
        read["question"] = clean
    return read


def _hle(record: Record, where: str) -> Record:
    """Read HLE: options as lines at the end of the question, and in no field of their own.

    Source: https://huggingface.co/datasets/cais/hle
    """
    own = in_own_form(record, where)
    if own["options"]:
        return own
    if record["answer_type"] != "multipleChoice":
        kind = reprlib.repr(record["answer_type"])
        raise OutOfScopeError(where, f"field 'answer_type' is {kind}, not 'multipleChoice'")
    question = record["question"]
    stem, _, listed = (
        question.rpartition(_LISTED_CHOICES) if isinstance(question, str) else [""] * 3
    )
    options = _listed(listed)
    if len(options) < 2:
        raise OutOfScopeError(where, f"no options are listed after '{_LISTED_CHOICES}'")
    if len(options) > len(LETTERS):
        raise OutOfScopeError(where, f"it has more than {len(LETTERS)} options")
    return {
        "question": stem,
        "options": dict(zip(LETTERS, options, strict=False)),
        "answer_idx": record["answer"],
        "answer": None,
    }


_FORMS: Sequence[tuple[frozenset[str], Callable[[Record, str], Record]]] = (
    (frozenset({"opa", "answer_idx"}), _medbullets),
    (frozenset(COLUMNS), _withheld),
    (frozenset({"final_decision"}), _pubmedqa),
    (frozenset({"choices", "answer", "subject"}), _choices),
    (frozenset({"choices", "answer", "error_type", "potential_reason"}), _mmlu_redux),
    (frozenset({"question", "options", "label"}), _medxpertqa),
    (frozenset({"answer_options", "correct_answer"}), _afrimedqa),
    (frozenset({"question", "answer", "answer_type"}), _hle),
)


def _columns(record: Record) -> Mapping[str, object]:
    columns = {letter: f"op{letter.lower()}" for letter in LETTERS}
    return {letter: record[column] for letter, column in columns.items() if column in record}


def _letter_at(place: object, options: object) -> object:
    if not isinstance(place, int) or isinstance(place, bool) or not isinstance(options, dict):
        return place
    return LETTERS[place] if 0 <= place < len(options) else place


def _listed(text: str) -> list[str]:
    """Return the options of a list `A. …`, each on one or more lines; empty unless A is first."""
    lists = option_lists(text, LETTER_AND_DOT, only_one=True)
    if not lists or text[: lists[0][0].start].strip():
        return []
    return texts_of(text, lists[0])
