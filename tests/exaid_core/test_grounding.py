"""Claims of a summary without support, and disagreement that it leaves out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exaid_core.checks.dissent import dissent_missing, stated_answer
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


# --- disagreement --------------------------------------------------------------------------------

SPLIT = {"expert-1-cardiologist": "C", "expert-2-neurologist": "A"}


@pytest.mark.parametrize(
    "summary",
    [
        "Expert 1 favours C, expert 2 favours A.",
        "C (expert-1) vs A (expert-2)",
        "Answer C or answer A",
        "Options (A) and (C) are both held",
        "Votes: A=1, C=1",
        "**C** against **A**",
        "'A' by the neurologist; 'C' by the cardiologist",
        "A favoured by one, C by the other",
        "C rather than A because of the ECG",
        "The experts disagree.",
        "doctor1 contests dissection.",
        "Opinions clash on thrombolysis.",
        "Disagreement about the diagnosis",
        "One expert dissents",
        "Dissent: neurologist suspects migraine",
        "Experts differ on the next step",
        "Opinions are divided",
        "The panel is split 1:1",
        "Conflicting opinions on imaging",
        "Views contradict each other",
        "Different conclusions were reached",
        "There is a difference of opinion",
        "No consensus yet",
        "Without a consensus on the diagnosis",
        "Lack of agreement on treatment",
        "The panel is not unanimous",
        "They don't agree on the cause",
        "Majority favours PE",
        "2 of 3 experts support PE",
        "Two of the three specialists support PE",
        "PE likely, but others favour migraine",
        "Most experts support PE",
        "Expert-1 supports PE, while expert-2 suspects migraine but recommends CT",
        "Cardiologist prefers angiography; however, neurologist recommends MRI",
        "PE (cardiologist) versus migraine (neurologist)",
        "Expert-2 differs from expert-1",
        "PE likely, whereas expert-2-neurologist argues for migraine",
        "It is not without dissent that PE is favoured",
        "No fever, and experts disagree on PE",
        "Imaging not done; opinions conflict",
    ],
)
def test_a_summary_that_shows_the_disagreement(summary: str) -> None:
    assert not dissent_missing(["Chest pain.", summary], SPLIT)


@pytest.mark.parametrize(
    "summary",
    [
        "",
        "All agree on pulmonary embolism.",
        "Answer C",
        "The differential diagnosis includes PE and MI.",
        "Differentials: PE, MI",
        "Differentiate PE from MI",
        "BP 162/103 mmHg, visual acuity discrepancies",
        "No disagreement among experts",
        "No major disagreement",
        "Without any dissent, C",
        "Experts do not disagree",
        "Experts do not differ",
        "Little dissent",
        "Dissent: none",
        "Disagreement: None reported.",
        "Disagreement (none)",
        "Disagreement was resolved",
        "A biopsy confirms that C is right",
        "I think C",
        "Hepatitis A is excluded, C is right",
        "Vitamin A and option C",
        "Type A dissection; answer C",
        "A. baumannii grew; answer C",
        "A-a gradient raised; answer C",
        "PE vs MI to be separated by CT",
        "Presentation differs from classic PE",
        "15 mg/kg/day divided q8h",
        "given in divided doses",
        "A split S2 is heard",
        "split-thickness graft",
        "No conflict of interest",
        "in contrast-enhanced CT the surgeon recommends care",
        "However, the pain persists",
        "While the cardiologist arranges echo, fluids run",
        "The majority of patients recover",
        "3 of 3 experts chose PE",
        "Different antibiotics were tried",
        "The views of two experts are the same",
        "Some other tests are open",
    ],
)
def test_a_summary_that_hides_the_disagreement(summary: str) -> None:
    assert dissent_missing([summary], SPLIT)


def test_an_agent_is_recognised_by_its_id() -> None:
    summary = ["PE likely, whereas InfectiousAgent7x argues for sepsis"]
    assert not dissent_missing(summary, {"LungAgent": "B", "InfectiousAgent7x": "D"})
    assert dissent_missing(summary, {"LungAgent": "B", "InfectiousAgent8x": "D"})


@pytest.mark.parametrize("answers", [{}, {"e1": "C"}, {"e1": "C", "e2": "C", "e3": "C"}])
def test_without_disagreement_nothing_is_missing(answers: dict[str, str]) -> None:
    assert not dissent_missing(["All agree."], answers)


def test_two_letters_that_nobody_holds_do_not_show_the_disagreement() -> None:
    assert dissent_missing(["B and D were set aside"], SPLIT)


def test_words_of_two_fields_are_not_read_together() -> None:
    assert not dissent_missing(["Fever: no", "disagree on PE"], SPLIT)


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("The ECG shows it.\nAnswer: C", "C"),
        ("Answer: C\nOn reflection:\nAnswer: A\n", "A"),
        ("**Answer:** (C)", "C"),
        ("**Answer: C**", "C"),
        ("Final answer: C) Aspirin", "C"),
        ("ANSWER: C.", "C"),
        ("  - Answer : C – because", "C"),
        ("Answer: J", "J"),
        ("Answer: C because of the ECG", "C"),
        ("Answer: A Aspirin", "A"),
        ("Answer: K", None),
        ("Answer: c", None),
        ("Answer: Aspirin", None),
        ("Answer: A biopsy is needed", None),
        ("Answer: I don't know", None),
        ("Answer: I'm not sure", None),
        ("I read your Answer: C", None),
        ("Answer C", None),
        ("", None),
    ],
)
def test_stated_answer(text: str, letter: str | None) -> None:
    assert stated_answer(text) == letter


@given(st.text(), st.sampled_from("ABCDEFGHIJ"))
def test_the_last_line_states_the_answer(text: str, letter: str) -> None:
    assert stated_answer(f"{text}\nAnswer: {letter}") == letter


@given(st.text(st.sampled_from("AC vs.,;\nnodisagree—(") | st.characters(codec="utf-8")))
def test_dissent_is_read_from_any_text(text: str) -> None:
    assert not dissent_missing([text, "They disagree."], SPLIT)
    assert not dissent_missing([text], {"expert-1": "C"})
