"""Claims of a summary without support, and disagreement that it leaves out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exaid_core.checks.grounding import unsupported_terms
from tests.support.medical_prose import SENTENCES


@pytest.mark.parametrize(
    ("summary", "support"),
    [
        ("Give 5 mg", "give 5mg now"),
        ("Give 5mg", "give 5 MG now"),
        ("Give 0.50 mg", "give .5 mg"),
        ("Give 0.5 mg", "give 0,5 mg"),
        ("Give 100 mcg", "give 100 µg"),
        ("Give 100 ug", "give 100 micrograms"),
        ("1,000 mL saline", "1000 ml of saline"),
        ("1000 mL", "1\u2009000 mL"),
        ("1000 mL", "1 000 mL"),
        ("12,500 units", "12500 IU"),
        ("Two lesions for 3 days", "2 lesions for three days"),
        ("every 8 hours", "q8h"),
        ("BP 120/80 mmHg", "BP 120/80"),
        ("BP 120/80", "a blood pressure of 120/80 mm Hg"),
        ("BP 120/80", "120 over 80"),
        ("HR 110 bpm", "heart rate 110/min"),
        ("HR 110 bpm", "pulse 110 beats per minute"),
        ("HR 110 bpm", "heart rate of 110"),
        ("SpO2 92%", "SpO₂ 92 on room air"),
        ("92 percent", "92 %"),
        ("38.5 °C", "38.5℃"),
        ("64-year-old", "aged 64"),
        ("WBC 12 × 10⁹/L", "WBC 12x10^9 /l"),
        ("WBC 12", "WBC 12 × 10^9/L"),
        ("10–20 mg", "10 to 20 mg"),
        ("20 mg", "10-20 mg"),
        ("40 mg/day", "40 mg daily"),
        ("15 mg/kg/day", "15 mg per kg per day"),
        ("eGFR 45 mL/min/1.73 m²", "eGFR 45 ml/min/1.73m2"),
        ("½ tablet", "1/2 tablet"),
        ("5 y/o/kg, 5 per cent/kg", "5y/o per kg, 5 percent/kg"),
        ("aged 5\u00a03 mg", "aged 5, 3 mg"),
        ("Expert 2 favours C; grade 3", "expert-2: grade 3"),
        ("Type 2 diabetes", "T2DM"),
        ("One of the causes", "causes"),
        ("Two experts agree; 2 of 3 experts favour C", "agree"),
        ("HbA1c, SpO2, B12, CD4, COVID-19, SCA3", "no such names"),
        ("2nd line", "second line"),
        ("third-degree block", "3rd degree AV block"),
        ("1 in 4 patients", "25% of patients"),
        ("25%", "one in four"),
        ("a double dose", "twice the dose"),
        ("a dopamine agonist", "pramipexole"),
        ("Start Lasix", "furosemide given"),
        ("Start furosemide", "frusemide given"),
        ("Adrenaline first", "epinephrine"),
        ("piperacillin-tazobactam", "Piperacillin/Tazobactam"),
        ("Folic acid", "folic acid"),
        ("In April a statin, cystatin C, histidine, cholesterol, a virus", "nothing"),
        ("mongrel eosin glucose potassium", "nothing"),
        ("", ""),
    ],
)
def test_what_the_support_says_is_not_flagged(summary: str, support: str) -> None:
    assert unsupported_terms([summary], support) == ()


@pytest.mark.parametrize(
    ("summary", "support", "missing"),
    [
        ("Give 10 mg", "give 5 mg", ("10 mg",)),
        ("Give 5 g", "give 5 mg", ("5 g",)),
        ("Give 5 mg", "give 5 mg/kg", ("5 mg",)),
        ("Give 5 mg/kg", "give 5 mg", ("5 mg/kg",)),
        ("Give 0.5 mg", "give 5 mg", ("0.5 mg",)),
        ("Give 5 mg", "give 0,5 mg", ("5 mg",)),
        ("Give 5 mg", "Expert 5 speaks", ("5 mg",)),
        ("5% mortality", "option 5", ("5%",)),
        ("120/80%", "option 5", ("120/80%",)),
        ("100 mL", "1,000 mL", ("100 mL",)),
        ("1000 g", "see 1000\ng is gravity", ("1000 g",)),
        ("BP 130/80", "BP 120/80 mmHg", ("130/80",)),
        ("BP 80/120", "BP 120/80 mmHg, a systolic murmur", ("80/120",)),
        ("WBC 12 × 10^6/L", "WBC 12 × 10^9/L", ("12 x 10^6/L",)),
        ("10⁹ cells", "109 cells", ("10^9 cells",)),
        ("three days", "two days", ("three days",)),
        ("three lesions", "two lesions", ("three",)),
        ("10-30 mg", "10-20 mg", ("10-30 mg",)),
        ("Grade 4", "grade 3", ("4",)),
        ("Third-degree block", "second-degree block, third heart sound", ("Third-degree",)),
        ("a double dose", "give aspirin", ("double dose",)),
        ("1 in 5 patients", "25% of patients", ("1 in 5",)),
        ("Avoid dopamine", "a dopamine agonist", ("dopamine",)),
        ("K 6.8 mmol/L", "K 6.8 mg/dL", ("6.8 mmol/L",)),
        ("for 7 days", "for 7 weeks", ("7 days",)),
        ("Start Warfarin", "start heparin", ("Warfarin",)),
        ("Give olmesartan and zavegepril", "nothing", ("olmesartan", "zavegepril")),
        ("novelimab", "nothing", ("novelimab",)),
        ("Give valproic acid", "folic acid", ("valproic acid",)),
        (
            "Aspirin 300 mg, then 75 mg; aspirin 300mg again",
            "clopidogrel",
            ("Aspirin", "300 mg", "75 mg"),
        ),
    ],
)
def test_what_the_support_does_not_say_is_flagged(
    summary: str, support: str, missing: tuple[str, ...]
) -> None:
    assert unsupported_terms([summary], support) == missing


def test_terms_of_all_fields_come_in_order_and_once() -> None:
    fields = ["Give 5 mg of warfarin", "Warfarin 5mg, INR 2.5", "INR 2.50"]
    assert unsupported_terms(fields, "nothing") == ("5 mg", "warfarin", "2.5")


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_text_supports_itself(sentence: str) -> None:
    assert unsupported_terms([sentence], sentence) == ()


_CHARACTERS = st.sampled_from("0123456789.,/-^×x %°µgmkLlC \u2009½²⁹:")
_PIECES = st.sampled_from(
    ["5", "0.5", "1,000", "100", "×10^9", "two", " ", "  ", "/", " per ", "-", " to ", ",", "%"]
) | st.sampled_from(
    ["mg", "day", "y/o", "per cent", "beats per min", "mm hg", "1.73 m²", "year-old", "warfarin"]
)
_CLINICAL = st.text(_CHARACTERS | st.characters(codec="utf-8"), max_size=80) | st.lists(
    _PIECES, max_size=12
).map("".join)


@pytest.mark.sweep
@given(_CLINICAL)
def test_any_text_supports_itself(text: str) -> None:
    assert unsupported_terms([text], text) == ()


@pytest.mark.sweep
@given(_CLINICAL, _CLINICAL, _CLINICAL)
def test_more_support_never_flags_more(summary: str, support: str, more: str) -> None:
    alone = unsupported_terms([summary], support)
    assert set(unsupported_terms([summary], f"{support}\n{more}")) <= set(alone)


@given(st.integers(0, 10**6), st.sampled_from(["mg", "mL", "mmol/L", "%", "mcg/kg/min"]))
def test_a_changed_dose_is_flagged(value: int, unit: str) -> None:
    assert unsupported_terms([f"Give {value + 1} {unit}."], f"Give {value} {unit}.") == (
        f"{value + 1} {unit}",
    )


@pytest.mark.parametrize(
    ("summary", "support"),
    [
        ("platelets 12,000", "platelets 12,000, Hb 8"),
        ("heparin 5000 then 1000", "heparin 5,000, then 1,000"),
        ("sodium 118 mmol/L", "Na 118"),
        ("sodium 118 mEq/L", "Na+ 118, K 7.1"),
        ("potassium 7.1 mmol/L", "Na 118, K 7.1"),
        ("hemoglobin 7.2 g/dL", "Hb 7.2"),
        ("hemoglobin 72 g/L", "hemoglobin was 7.2"),
        ("lactate 6.1 mmol/L", "Lactate: 6.1"),
        ("creatinine 3.2 mg/dL", "Cr from 1.1 to 3.2"),
        ("from 4.8 to 1.2 mmol/L", "lactate 4.8 → 1.2"),
        # MIT-LCP/mimic-code#321, HealthRex/CDSS#408
        ("WBC 12.3 K/µL, platelets 145 K/µL", "WBC 12.3, Hgb 8.1, Plt 145"),
        ("WBC 12,300/µL", "WBC 12.3"),
        ("WBC 12.3 x10^9/L", "white count of 12.3"),
        ("WBC 800/µL", "WBC 800"),
        ("platelets 45,000/µL", "platelets 45"),
        ("platelets 45 x10^9/L", "platelets 45000"),
        ("RBC 4.5 million/µL; CD4 45 cells/µL", "RBC 4.5, CD4 45"),
        ("31 kg/m²; 9.1%; 45 mL/min/1.73 m2", "BMI 31, A1c 9.1, eGFR 45"),
        ("AST 1200 U/L, ALT 900 IU/L", "AST 1200, ALT 900"),
        ("magnesium 1.1 mg/dL, bilirubin 12 mg/dL", "Mg 1.1, Tbili 12"),
        ("troponin 4.2 ng/mL, TSH 4.5 mIU/L", "troponin 4.2, TSH 4.5"),
        ("PEEP of 5 cmH2O and FiO2 of 0.6", "PEEP 5, FiO2 60"),
        ("38.6 °C", "T 101.5"),
        ("102.9°F", "febrile to 39.4"),
        ("GCS 6/15, pain 8/10, NIHSS 14/42", "GCS of 6, pain 8, NIHSS: 14"),
        ("33% died, 66.7% recovered", "one third died, 2/3 of them recovered"),
        ("hematocrit 24%, bicarbonate 26 mmol/L", "H/H 8/24, ABG 7.25/60/80/26"),
    ],
)
def test_a_comma_after_thousands_and_customary_units_are_read(summary: str, support: str) -> None:
    assert unsupported_terms([summary], support) == ()


@pytest.mark.parametrize(
    ("summary", "support", "term"),
    [
        ("platelets 12", "platelets 12,000, Hb 8", "12"),
        ("heparin 5", "heparin 5,000, then 1,000", "5"),
        ("1000", "1,2,000, 3", "1000"),
        ("sodium 118 mg/dL", "Na 118", "118 mg/dL"),
        ("creatinine 3.2 mmol/L", "Cr 3.2", "3.2 mmol/L"),
        ("potassium 7.1 mmol/L", "at k 7.1", "7.1 mmol/L"),
        ("WBC 12.3/µL", "WBC 12.3", "12.3/μL"),
        ("platelets 45/µL", "platelets 45", "45/μL"),
        ("platelets 450,000/µL", "platelets 45", "450000/μL"),
        ("troponin 52 ng/mL", "troponin 52", "52 ng/mL"),
        ("creatinine 45 mg/dL", "Cr/BUN 3.2/54", "45 mg/dL"),
        ("creatinine 45 mg/dL", "BUN/Cr 45/3.2", "45 mg/dL"),
        ("AST 140 U/L", "AST/ALT 120/140", "140 U/L"),
        ("ANC 500 x10^9/L", "ANC 500", "500 x10^9/L"),
        ("WBC 150,000/uL", "WBC 150", "150000/uL"),
        ("8 ng/mL", "high sensitivity cardiac troponin 8", "8 ng/mL"),
        ("8 ng/mL", "highly sensitive troponin T 8", "8 ng/mL"),
        ("pain 3/10", "abdominal pain from 3 to 5", "3/10"),
        ("39.6 °C", "T 101.5", "39.6 °C"),
        ("pain 8/10", "pain for 8 days", "8/10"),
        ("67% died", "one third died", "67%"),
    ],
)
def test_a_thousandth_and_an_uncustomary_unit_are_flagged(
    summary: str, support: str, term: str
) -> None:
    assert unsupported_terms([summary], support) == (term,)
