"""A clinical case as clinicians write it: what stays, what is refused, and in which words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from demos.cdss_example.schema.clinical_case import (
    LONGEST_CASE,
    ClinicalCase,
    Measurement,
    NamedMeasurement,
    case_of_json,
    read_case,
)
from mdagents_llm.errors import ConfigError


def test_every_vital_sign_and_unit_is_in_the_text() -> None:
    case = ClinicalCase(
        age=0,
        sex="female",
        vital_signs={
            "heart_rate": Measurement(value=0, unit="/min"),
            "temperature": 36.0,
            "base excess": -4.1,
            "oxygen": "96 %",
            "pacemaker": False,
            "lactate": None,
        },
        lab_results=[
            NamedMeasurement(name="troponin", value=86, unit="ng/L", reference="< 14", flag="H"),
            "urine: nitrite positive",
        ],
    )
    assert case.as_text().splitlines() == [
        "Patient: 0 years, female",
        "Vital signs:",
        "- heart rate 0 /min",
        "- temperature 36.0",
        "- base excess -4.1",
        "- oxygen 96 %",
        "- pacemaker no",
        "- lactate not available",
        "Laboratory results:",
        "- troponin 86 ng/L (reference < 14, H)",
        "- urine: nitrite positive",
    ]


def test_text_or_list() -> None:
    case = read_case(
        {
            "age": "3 weeks",
            "allergies": "none",
            "medications": ["a", "b"],
            "vital_signs": "RR 120/80",
        }
    )
    assert case.as_text() == (
        "Patient: 3 weeks\nMedications:\n- a\n- b\nAllergies: none\nVital signs: RR 120/80"
    )


def test_invisible_characters_neither_split_nor_join() -> None:
    case = read_case(
        {"medications": ["digoxin 1\u200b25 mcg", "anti\u00adcoagulant 5\u20283 days"]}
    )
    assert case.as_text() == "Medications:\n- digoxin 125 mcg\n- anticoagulant 5\n3 days"


@pytest.mark.parametrize("field", sorted(ClinicalCase.model_fields))
def test_a_field_that_is_null_is_not_available(field: str) -> None:
    other = "free_text" if field == "chief_complaint" else "chief_complaint"
    case = read_case({other: "chest pain", field: None})
    shown = "not available" in case.as_text()
    assert shown == (field not in ("patient_id", "age", "sex"))
    with pytest.raises(ConfigError, match="the case says nothing"):
        read_case({field: None})


def test_nulls_within_a_field() -> None:
    case = read_case(
        {
            "medications": ["aspirin", None],
            "vital_signs": [None, {"name": "pulse", "value": 104, "unit": None, "flag": None}],
            "lab_results": {"troponin": None, "lactate": {"value": None, "reference": None}},
        }
    )
    assert case.as_text() == (
        "Medications: aspirin\nVital signs: pulse 104\n"
        "Laboratory results:\n- troponin not available\n- lactate not available"
    )


def test_a_plain_text_is_a_case_and_a_case_is_one() -> None:
    case = read_case("A man of 58 has chest pain.")
    assert case.as_text() == "Notes: A man of 58 has chest pain."
    assert read_case(case) is case


def test_nobody_is_told_who_the_patient_is() -> None:
    case = ClinicalCase(patient_id="PAT-001", chief_complaint="cough")
    assert "PAT-001" not in case.as_text()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"vital_sings": {}}, "the case: a clinical case has no field 'vital_sings'; did you mean"),
        ({}, "the case says nothing: give a chief_complaint"),
        ({"age": 4, "vital_signs": {}, "free_text": " "}, "the case says nothing"),
        ({"age": -1, "free_text": "x"}, "age is -1 but must be from 0 to 130 years, or a text"),
        ({"age": True, "free_text": "x"}, "age must be a number of years, or a text"),
        ({"age": float("nan"), "free_text": "x"}, "age"),
        ({"free_text": 7}, "free_text must be a text"),
        ({"allergies": {"a": 1}}, "allergies must be a text or a list of texts"),
        ({"lab_results": {"x": float("inf")}}, "lab_results must be a text, or names with values"),
        (
            {"lab_results": {"x": {"value": 1, "units": "g"}}},
            "lab_results: a measurement has no 'units' (in 'x'); did you mean 'unit'",
        ),
        (
            {"vital_signs": {"BP": {"systolic": 70, "diastolic": 40}}},
            "vital_signs: a measurement has no 'systolic' (in 'BP')",
        ),
        (
            {"vital_signs": {"BP\n\x07": {"a\nb": 70}}},
            "vital_signs: a measurement has no 'a b' (in 'BP')",
        ),
        (
            {"lab_results": [None, "K 4", {"name": "Na\n", "value": 1, "units": "g"}]},
            "lab_results: a measurement has no 'units' (in 'Na'); did you mean 'unit'",
        ),
        ({"lab_results": [None, {"value": 1, "units": "g"}]}, "has no 'units' (in no. 2)"),
        ({"lab_results": {5: {"value": 1, "units": "g"}}}, "has no 'units' (in '5')"),
        ({"lab_results": {"K": 4, "Na": float("nan")}}, "; the value of 'Na' is not one"),
        ({"lab_results": {"Na\n": [130, 140]}}, "; the value of 'Na' is not one"),
        ({"vital_signs": [None, {"name": "HR", "value": {}}]}, "; the value of 'HR' is not one"),
        ({"lab_results": [["K", 3.1]]}, "; the value of no. 1 is not one"),
        ({"lab_results": {"a": {"unit": "H"}}}, "lab_results: 'a' has no 'value'"),
        ({"lab_results": [{"value": 1}]}, "lab_results: no. 1 has no 'name'"),
        ({"a\nb": 1, "free_text": "x"}, "a clinical case has no field 'a b'"),
        ({"vital_signs": {"heart_rate": 60, "heart rate": 90}}, "'heart rate' appears twice"),
        ({"age": "-5", "free_text": "x"}, "age is -5 but must be from 0 to 130 years, or a text"),
        ({"age": "−5", "free_text": "x"}, "age is -5 but must be from 0"),
        ({"age": "- 5", "free_text": "x"}, "age is -5 but must be from 0"),
        ({"age": "180\u200b", "free_text": "x"}, "age is 180 but must be from 0"),
        ({"age": "99999999999", "free_text": "x"}, "age is 99999999999 but must be from 0"),
        ({"age": "9" * 5000, "free_text": "x"}, "age must be a number of years"),
        ({"age": "180.5", "free_text": "x"}, "age is 180.5 but must be from 0"),
        ({"lab_results": {"Na": 140, "Na ": 118}}, "lab_results: 'Na' appears twice"),
        ({"lab_results": {"K": 4, "K\u200b": 7}}, "'K' appears twice"),
        ({"free_text": "x" * (LONGEST_CASE + 1)}, "characters; the most are 20,000"),
        (["x"], "the case must be a ClinicalCase, a text or an object with the fields of a case"),
        ("", "the case says nothing"),
    ],
)
def test_what_is_no_case_is_refused_in_one_line(data: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_case(data)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("age", "shown"),
    [("45", "45 years"), (" 0.5 ", "0.5 years"), ("3 weeks", "3 weeks"), ("45-50", "45-50")],
)
def test_an_age_that_is_a_text(age: str, shown: str) -> None:
    assert read_case({"age": age, "free_text": "x"}).as_text().startswith(f"Patient: {shown}\n")


def test_the_constructor_says_it_too() -> None:
    with pytest.raises(ValidationError, match="no field 'sexx'; did you mean 'sex'"):
        ClinicalCase(sexx="M")  # type: ignore[call-arg]


def test_a_file() -> None:
    raw = json.dumps({"chief_complaint": "cough"}).encode()
    assert case_of_json(raw, "a.json").chief_complaint == "cough"
    with pytest.raises(ConfigError, match=r"a\.json is not JSON"):
        case_of_json(b"{", "a.json")
    with pytest.raises(ConfigError, match=r"a\.json must be a ClinicalCase"):
        case_of_json(b"[]", "a.json")


NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.sweep
@given(st.dictionaries(st.text("abcdefg", min_size=1), NUMBERS, min_size=1))
def test_no_value_is_lost(values: dict[str, float]) -> None:
    text = read_case({"vital_signs": values}).as_text()
    assert all(f"{name} {value}" in text for name, value in values.items())


@pytest.mark.sweep
@given(st.text())
def test_text_has_no_characters_that_steer_a_screen(text: str) -> None:
    shown = read_case({"chief_complaint": "x", "free_text": text}).as_text()
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    shown.encode()
