"""A dose that belongs to another drug is flagged, and nothing that the support states."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exaid_core.checks.grounding import unsupported_terms
from exaid_core.schema.agent_summary import SummaryDraft
from tests.exaid_core.models import SHIFT, STABLE, make_exaid, model
from tests.support.virtual_time import virtual_time

SUPPORT = "He takes metoprolol 25 mg and lisinopril 10 mg."


@pytest.mark.parametrize(
    ("summary", "support", "missing"),
    [
        ("metoprolol 10 mg, lisinopril 25 mg", SUPPORT, ("metoprolol 10 mg", "lisinopril 25 mg")),
        ("Metoprolol (10 mg bid)", SUPPORT, ("Metoprolol 10 mg",)),
        ("10 mg of metoprolol", SUPPORT, ("metoprolol 10 mg",)),
        ("10mg metoprolol and 25 mg lisinopril", SUPPORT, ("metoprolol 10mg", "lisinopril 25 mg")),
        ("10 mg IV metoprolol", SUPPORT, ("metoprolol 10 mg",)),
        ("Metoprolol was raised to 10 mg", SUPPORT, ("Metoprolol 10 mg",)),
        ("Lopressor, 10 mg", SUPPORT, ("Lopressor 10 mg",)),
        ("metoprolol 10 mg", "25 mg of metoprolol, 10 mg of lisinopril", ("metoprolol 10 mg",)),
        ("metoprolol 10 mg", "25 mg metoprolol 10 mg lisinopril", ("metoprolol 10 mg",)),
        ("metoprolol 10 mg", "metoprolol 25 mg lisinopril 10 mg", ("metoprolol 10 mg",)),
        ("metoprolol 10 mg", "- metoprolol: 25 mg\n- lisinopril: 10 mg", ("metoprolol 10 mg",)),
        (
            "metoprolol 10 mg",
            "| metoprolol | 25 mg |\n| lisinopril | 10 mg |",
            ("metoprolol 10 mg",),
        ),
        (
            "metoprolol 10 mg",
            "metoprolol and lisinopril, 25 mg and 10 mg respectively",
            ("metoprolol 10 mg",),
        ),
        ("metoprolol 10 mg", "Lopressor 25 mg; Zestril: lisinopril 10 mg", ("metoprolol 10 mg",)),
        (
            "heparin 18 units/kg/h, insulin 80 units/kg",
            "heparin 80 units/kg bolus; insulin 18 units/kg/h",
            ("heparin 18 units/kg/h", "insulin 80 units/kg"),
        ),
        ("morphine 50 mcg", "given 4 mg IV morphine and 50 mcg IV fentanyl", ("morphine 50 mcg",)),
        ("ceftriaxone 500 mg", "cefepime (500 mg) plus ceftriaxone (1 g)", ("ceftriaxone 500 mg",)),
        ("metoprolol ten mg", SUPPORT, ("metoprolol ten mg",)),
        ("metoprolol 10000 mcg", SUPPORT, ("metoprolol 10000 mcg",)),
    ],
)
def test_a_swapped_dose_is_flagged(summary: str, support: str, missing: tuple[str, ...]) -> None:
    assert unsupported_terms([summary], support) == missing


@pytest.mark.parametrize(
    ("summary", "support"),
    [
        ("metoprolol 25 mg, lisinopril 10 mg", SUPPORT),
        ("10 mg lisinopril; 25 mg of Lopressor", SUPPORT),
        ("metoprolol 25 mg", "Start metoprolol. The dose is 25 mg. Give lisinopril 10 mg."),
        ("metoprolol 10 mg", "metoprolol 25 mg. Raise it to 10 mg. Give lisinopril 10 mg."),
        ("metoprolol 10 mg", "metoprolol and lisinopril, 10 mg each; metoprolol was 25 mg"),
        ("metoprolol 10 mg", "metoprolol/lisinopril 10 mg; metoprolol 25 mg"),
        ("metoprolol 50 mg", "metoprolol increased from 25 to 50 mg, lisinopril 10 mg"),
        ("metoprolol 50 mg", "metoprolol 25 mg, then 50 mg; lisinopril 50 mg"),
        ("metoprolol 50 mg", "metoprolol from 25 mg up to 50 mg and lisinopril 50 mg"),
        ("metoprolol 37.5 mg", "metoprolol 25-37.5 mg, lisinopril 37.5 mg"),
        ("metoprolol 25 mg", "metoprolol and lisinopril, 25 mg and 10 mg respectively"),
        ("metoprolol 25 mg", "| drug | metoprolol | lisinopril |\n| dose | 25 mg | 10 mg |"),
        ("metoprolol 10 mg", "lisinopril 10 mg; metoprolol as well"),
        ("metoprolol 10 mg", "metoprolol 25 mg; give 10 mg tomorrow; lisinopril 10 mg"),
        ("metoprolol rather than lisinopril 10 mg", SUPPORT),
        ("metoprolol and lisinopril 10 mg", SUPPORT),
        ("digoxin 2 ng/mL, 25 mg metoprolol", "digoxin 250 ug, metoprolol 25 mg, CRP 2 ng/mL"),
        ("metoprolol 25 mg instead of lisinopril", SUPPORT),
        ("metoprolol 25 mg/day", "metoprolol 25 mg daily, lisinopril 10 mg"),
        ("aspirin 325 mg, clopidogrel 75 mg", "Aspirin (325 mg PO), clopidogrel (75 mg)"),
        ("insulin 25 units", "insulin 10 units at noon; 25 units glargine at night"),
        ("epinephrine 1 mg, amiodarone 150 mg", "epinephrine 1 mg; amiodarone 300 mg, then 150 mg"),
        ("fentanyl 50 mcg", "given 4 mg IV morphine and 50 mcg IV fentanyl"),
        ("阿司匹林100mg", "阿司匹林和氯吡格雷各100mg；阿司匹林75mg"),
        ("folic acid 5 mg", "folic acid 1 mg before; methotrexate 20 mg weekly and FA 5 mg daily"),
        ("metoprolol and lisinopril 25 mg and 10 mg respectively", SUPPORT),
    ],
)
def test_a_dose_that_the_support_gives_is_not_flagged(summary: str, support: str) -> None:
    assert unsupported_terms([summary], support) == ()


@pytest.mark.parametrize(
    ("summary", "support", "missing"),
    [
        ("methotrexate 15 mg daily", "methotrexate 15 mg weekly", ("15 mg",)),
        ("methotrexate 15 mg/day", "methotrexate 15 mg per week", ("15 mg/day",)),
        ("alendronate 70 mg daily", "alendronate 70 mg once weekly", ("70 mg",)),
        ("aspirin 81 mg weekly", "aspirin 81 mg every day", ("81 mg",)),
        ("methotrexate 15 mg weekly", "methotrexate 15 mg a week", ()),
        ("methotrexate 15 mg", "methotrexate 15 mg weekly", ()),
        ("aspirin 81 mg daily", "aspirin 81 mg PO daily", ()),
        ("aspirin 81 mg daily", "aspirin 81 mg", ()),
        ("prednisone 15 mg daily", "methotrexate 15 mg weekly, prednisone 15 mg a day", ()),
    ],
)
def test_a_weekly_dose_is_no_daily_one(
    summary: str, support: str, missing: tuple[str, ...]
) -> None:
    assert unsupported_terms([summary], support) == missing


@pytest.mark.parametrize(
    ("support", "summary"),
    [
        ("methotrexate 15 mg every Monday", "methotrexate 15 mg daily"),
        ("methotrexate 15 mg q week", "methotrexate 15 mg PO qday"),
        ("methotrexate 15 mg every 7 days", "methotrexate 15 mg nightly"),
        ("Weekly methotrexate 15 mg", "methotrexate 15 mg every morning"),
        ("methotrexate weekly 15 mg", "methotrexate 15 mg q.d."),
        ("methotrexate: 15 mg, weekly", "methotrexate 15 mg BID"),
        ("methotrexate 15 mg (6 tablets of 2.5 mg) once a week", "methotrexate 15 mg once a day"),
        ("methotrexate 15 mg weekly (NOT daily)", "methotrexate 15 mg daily"),
        ("methotrexate 15 mg weekly, folic acid daily", "methotrexate 15 mg daily"),
        (
            "methotrexate 15 mg weekly. Folic acid 1 mg daily. Methotrexate 15 mg was continued.",
            "methotrexate 15 mg daily",
        ),
        ("prednisone 15 mg daily and methotrexate 15 mg weekly", "methotrexate 15 mg daily"),
        ("warfarin 5 mg nightly", "warfarin 5 mg twice daily"),
        ("warfarin 5 mg on Mondays and Fridays", "warfarin 5 mg daily"),
        ("warfarin 5 mg Mon/Wed/Fri", "warfarin 5 mg weekly"),
        ("prednisone 40 mg QD", "prednisone 40 mg TID"),
        ("insulin glargine 20 units qHS", "insulin glargine 20 units BID"),
        ("10 units of insulin glargine nightly", "10 units of insulin glargine TID"),
        ("amiodarone 200 mg QOD", "amiodarone 200 mg QD"),
        ("cyanocobalamin 1000 mcg monthly", "cyanocobalamin 1000 mcg daily"),
        ("epoetin 10000 units three times a week", "epoetin 10000 units three times a day"),
        ("adalimumab 40 mg q2 weeks", "adalimumab 40 mg weekly"),
        ("cefepime 2 g q8h, vancomycin 1 g q12h", "cefepime 2 g q12h"),
        ("apixaban 5 mg BID", "apixaban 5 mg daily"),
        ("1 tablet twice a day", "1 tablet daily"),
        ("Take 1 tablet every week", "Take 1 tablet three times a day"),  # metriport/metriport#4906
        ("fremanezumab 225 mg every four weeks", "fremanezumab 225 mg every other week"),
        ("1 tab PO BID x7 days", "1 tab PO daily for 7 days"),  # maziyarpanahi/openmed#879
        # nursingcenter.com/journals-articles/medication-safety, an overdose of this wording
        ("methotrexate 10 mg by mouth 1 day per week", "methotrexate 10 mg by mouth daily"),
        ("methotrexate 15 mg Fri", "methotrexate 15 mg daily"),
        ("methotrexate 15 mg PO, Mon only", "methotrexate 15 mg daily"),
        ("methotrexate 15 mg Mondays", "methotrexate 15 mg daily"),
        ("methotrexate 15 mg (Mondays only)", "methotrexate 15 mg daily"),
        ("warfarin 5 mg MWF", "warfarin 5 mg daily"),
        ("insulin lispro 20 units with meals", "insulin lispro 20 units once daily"),
        ("insulin lispro 20 units w/ meals", "insulin lispro 20 units once daily"),
        ("insulin lispro 20 units with each meal", "insulin lispro 20 units once daily"),
        ("insulin lispro 20 units with meals", "insulin lispro 20 units at bedtime"),
        ("insulin 20 units TIDAC", "insulin 20 units daily"),
        ("aspart 8 units before breakfast, lunch and dinner", "aspart 8 units daily"),
        ("metformin 1000 mg daily with meals", "metformin 1000 mg TID"),
        ("prednisolone 40 mg in the morning", "prednisolone 40 mg at night"),
        ("prednisolone 40 mg daily with breakfast", "prednisolone 40 mg daily at bedtime"),
        ("prednisolone 40 mg mane", "prednisolone 40 mg nocte"),
        ("insulin 30 units AM", "insulin 30 units PM"),
        # abbreviations of Britain and India: ohcnetwork/care_fe#3607, clulab/timenorm#3
        ("Tab Metformin 500mg BD PO, Telmisartan 40mg OD", "metformin 500 mg daily"),
        ("Tab Metformin 500mg BD PO, Telmisartan 40mg OD", "telmisartan 40 mg BID"),
        ("Started ticagrelor 90mg BD", "ticagrelor 90 mg daily"),
        ("Methotrexate 10 mg once weekly", "methotrexate 10 mg OD"),
        ("500 mg metformin b.d.", "500 mg metformin o.d."),
        ("Tab Metformin 500 mg 1-0-1", "metformin 500 mg daily"),
        ("Tab Metformin 500 mg (1-0-0)", "metformin 500 mg at night"),
        ("ramipril 5 mg OM", "ramipril 5 mg BD"),
        ("simvastatin 40 mg ON", "simvastatin 40 mg OM"),
        ("amiodarone 200 mg EOD", "amiodarone 200 mg OD"),
        ("cefuroxime 1.5 g 8-hourly", "cefuroxime 1.5 g daily"),
        ("risperidone 25 mg fortnightly", "risperidone 25 mg weekly"),
        ("denosumab 60 mg 6-monthly", "denosumab 60 mg monthly"),
        ("zoledronic acid 5 mg annually", "zoledronic acid 5 mg monthly"),
    ],
)
def test_a_dose_given_more_often_or_less_often_is_flagged(support: str, summary: str) -> None:
    assert len(unsupported_terms([summary], support)) == 1


@pytest.mark.parametrize(
    ("support", "summary"),
    [
        ("metoprolol 25 mg BID", "metoprolol 25 mg twice daily"),
        ("methotrexate 15 mg every Monday", "methotrexate 15 mg weekly"),
        ("warfarin 5 mg nightly", "warfarin 5 mg daily"),
        ("cefazolin 2 g q8h", "cefazolin 2 g TID"),
        ("vancomycin 1 g q12", "vancomycin 1 g every 12 hours"),
        ("infliximab 300 mg q8 weeks", "infliximab 300 mg every 8 weeks"),
        ("leuprolide 7.5 mg monthly", "leuprolide 7.5 mg every 4 weeks"),
        ("warfarin 5 mg Mon/Wed/Fri", "warfarin 5 mg every Monday, Wednesday and Friday"),
        ("ibuprofen 400 mg every 4 to 6 hours as needed", "ibuprofen 400 mg q6h PRN"),
        ("lasix 40 mg q.d.", "furosemide 40 mg daily"),
        ("lasix 40 mg IV in the ED, then 40 mg daily", "furosemide 40 mg daily"),
        ("metoprolol 25 mg via NG tube BID", "metoprolol 25 mg BID"),
        ("metoprolol 25 mg daily. Increase to BID.", "metoprolol 25 mg BID"),
        ("metformin 500 mg every morning and 500 mg every evening", "metformin 500 mg BID"),
        ("metformin 500 mg BID", "metformin 500 mg qAM and 500 mg qPM"),
        ("insulin 10 units qAM and qHS", "insulin 10 units twice a day"),
        ("insulin glargine 20 units at bedtime", "insulin glargine 20 units qHS"),
        ("aspirin daily, metoprolol 25 mg", "metoprolol 25 mg BID"),
        ("metoprolol 25 mg BID lisinopril 10 mg", "lisinopril 10 mg daily"),
        ("prednisone 40 mg daily", "prednisone 40 mg, weekly CBC"),
        ("started on prednisone 5 mg a week ago", "prednisone 5 mg daily"),
        ("amoxicillin 90 mg/kg/day divided BID", "amoxicillin 90 mg/kg/day"),
        ("methotrexate 10 mg 1 day per week", "methotrexate 10 mg weekly on Mondays"),
        ("methotrexate 15 mg Fri", "methotrexate 15 mg once a week"),
        ("insulin lispro 8 units with meals", "insulin lispro 8 units TID"),
        ("insulin lispro 8 units TIDAC", "insulin lispro 8 units before meals"),
        ("insulin 4 units before meals and at bedtime", "insulin 4 units four times a day"),
        ("metformin 500 mg BID with meals", "metformin 500 mg with meals"),
        ("metformin 1000 mg daily with meals", "metformin 1000 mg with meals"),
        ("metformin 1000 mg with meals once daily", "metformin 1000 mg daily"),
        ("metformin 500 mg with breakfast and dinner", "metformin 500 mg BID"),
        ("prednisolone 40 mg in the morning", "prednisolone 40 mg once daily"),
        ("levothyroxine 100 mcg before breakfast", "levothyroxine 100 mcg every morning"),
        ("simvastatin 40 mg with the evening meal", "simvastatin 40 mg at night"),
        ("furosemide 40 mg in the morning, again in the evening", "furosemide 40 mg BID"),
        ("ceftriaxone 1 g was given; he vomited after dinner", "ceftriaxone 1 g daily"),
        ("ceftriaxone 1 g was given, cultures from Monday", "ceftriaxone 1 g daily"),
        ("2 L, sat 94%", "2 L daily"),
        # one dose at a time of the day or week, and how often the drug is given
        ("He got ceftriaxone 1 g at night. Continue BID", "ceftriaxone 1 g BID"),
        ("prednisone 40 mg Monday, then daily", "prednisone 40 mg daily"),
        ("prednisone 40 mg daily", "prednisone 40 mg Monday"),
        ("ibuprofen 400 mg after dinner; usually takes it TID", "ibuprofen 400 mg TID"),
        ("Once-daily metformin 1000 mg with meals", "metformin 1000 mg daily"),
        ("Weekly alendronate 70 mg before breakfast", "alendronate 70 mg weekly"),
        ("alendronate 70 mg before breakfast once a week", "alendronate 70 mg weekly"),
        ("alendronate 70 mg weekly", "alendronate 70 mg in the morning every Sunday"),
        ("cortisone 10 mg mane, 5 mg midday, 5 mg in the evening", "cortisone 10 mg, 5 mg BID"),
        ("warfarin 5 mg Mon Wed Fri", "warfarin 5 mg MWF"),
        ("ceftriaxone 2 g for 3 days a week ago", "ceftriaxone 2 g daily"),
        ("warfarin 5 mg daily except 7.5 mg on Mondays", "warfarin 5 mg daily, 7.5 mg on Mondays"),
        # abbreviations of Britain and India: ohcnetwork/care_fe#3607, clulab/timenorm#3
        ("metformin 500mg bd with food", "metformin 500 mg twice daily"),
        ("metformin 500 mg OD. Increase to BD.", "metformin 500 mg BID"),
        ("Tab Ramipril 5 mg OD, Tab Metformin 1 g TDS", "ramipril 5 mg once daily"),
        ("gentamicin 5 mg/kg OD", "gentamicin 5 mg/kg every 24 hours"),
        ("Tab Metformin 500 mg 1-0-1", "metformin 500 mg in the morning and at night"),
        ("Tab Paracetamol 650 mg 1 - 1 - 1", "paracetamol 650 mg 8th hourly"),
        ("amitriptyline 10 mg ON", "amitriptyline 10 mg at bedtime"),
        ("cefuroxime 1.5 g 8 hourly", "cefuroxime 1.5 g TDS"),
        ("paracetamol 1 g 4-6 hourly", "paracetamol 1 g every 4 to 6 hours"),
        ("docetaxel 75 mg/m2 every 3 weeks", "docetaxel 75 mg/m2 three-weekly"),
        ("denosumab 60 mg 6-monthly", "denosumab 60 mg every 6 months"),
        ("risperidone 25 mg fortnightly", "risperidone 25 mg every 2 weeks"),
        ("zoledronic acid 5 mg yearly", "zoledronic acid 5 mg every 12 months"),
        ("metformin 500 mg and a yearly eye examination", "metformin 500 mg daily"),
        # the right eye, an overdose, bipolar disorder and a preposition
        ("ranibizumab 0.5 mg OD monthly", "ranibizumab 0.5 mg monthly"),
        ("prednisolone 40 mg weekly; acuity 20/40 OD", "prednisolone 40 mg weekly"),
        ("deliberate paracetamol 10 g OD", "paracetamol 10 g every hour"),
        ("took 10 g, OD of paracetamol", "paracetamol 10 g every hour"),
        ("lithium 400 mg for BD", "lithium 400 mg daily"),
        ("simvastatin 40 mg on Monday", "simvastatin 40 mg BID"),
        ("WARFARIN 5 MG ON HOLD", "warfarin 5 mg BID"),
        ("PREDNISONE 40 MG ON 3/5, STARTED TWICE DAILY", "prednisone 40 mg BID"),
        ("amoxicillin 80 mg/kg OM: BID for 10 days", "amoxicillin 80 mg/kg BID"),
        ("enoxaparin 40 mg BD prefilled syringe daily", "enoxaparin 40 mg daily"),
        # before another schedule
        ("Methotrexate 15 mg OD weekly", "methotrexate 15 mg weekly"),
        ("azithromycin 500 mg OD three times a week", "azithromycin 500 mg three times a week"),
        ("azithromycin 500 mg OD Mon/Wed/Fri", "azithromycin 500 mg Mon/Wed/Fri"),
        ("ramipril 5 mg OD alternate days", "ramipril 5 mg every other day"),
        ("ramipril 5 mg OD for 3 days then BD", "ramipril 5 mg BD"),
        # one way of writing in the text, another in the summary
        ("Aspirin TDS, Inj Pan 40 mg IV stat then BD", "Pan 40 mg BD"),
        ("Aspirin TDS, metformin 1 g for diabetes BD", "metformin 1 g twice daily"),
        ("Aspirin 75 mg TDS, metformin 500 mg after food BD", "metformin 500 mg BD after food"),
        ("Tab Metformin 500 mg 1-0-1", "metformin 1-0-1"),
        ("insulin 1-1-1 units", "insulin 1 unit TID"),
    ],
)
def test_other_words_for_how_often_a_dose_is_given(support: str, summary: str) -> None:
    assert unsupported_terms([summary], support) == ()


def test_two_drugs_with_the_times_of_each_other_are_flagged() -> None:
    support = "Insulin glargine 20 units at bedtime; insulin lispro 8 units with meals."
    summary = "Insulin glargine 20 units with meals; insulin lispro 8 units at bedtime."
    assert unsupported_terms([summary], support) == ("20 units", "8 units")


@pytest.mark.sweep
def test_many_doses_with_a_period_take_no_more_than_linear_time() -> None:
    start = time.process_time()
    unsupported_terms(["15 mg daily " * 4000], "15 mg weekly " * 4000)
    assert time.process_time() - start < 10


@pytest.mark.long
@pytest.mark.parametrize(
    "form",
    [
        "{} aspirin 15 mg ",
        "15 mg ({} ",
        "15 mg every morning and {} ",
        "every 2 or {} 5 mg ",
        "15 mg {} with meals at bedtime ",
    ],
)
def test_many_schedules_take_no_more_than_linear_time(form: str) -> None:
    start = time.process_time()
    unsupported_terms([form.format("daily") * 4000], form.format("every 2 or 3 weeks") * 4000)
    assert time.process_time() - start < 10


_PIECES = st.sampled_from(
    [
        "metoprolol",
        "lisinopril",
        "aspirin",
        "25 mg",
        "10 mg",
        "325 mg",
        "5 mg/kg",
        "2 mg/dL",
        " of ",
    ]
) | st.sampled_from([" and ", ", ", " ", ". ", "; ", "\n", " | ", " (", ") ", " to ", " each "])


@pytest.mark.sweep
@given(st.lists(_PIECES, max_size=20).map("".join))
def test_any_doses_support_themselves(text: str) -> None:
    assert unsupported_terms([text], text) == ()


_DOSES = st.integers(1, 1000)
_FORMS = st.sampled_from(
    ["{0} {1} mg", "{1} mg of {0}", "{0} ({1} mg bid)", "{0}: {1}mg twice daily"]
)
_JOINTS = st.sampled_from([" and ", ", ", "; ", "\n", ". "])


@pytest.mark.sweep
@given(_DOSES, _DOSES, _FORMS, _FORMS, _JOINTS, _JOINTS)
def test_swapped_doses_in_any_form(
    one: int, other: int, form: str, of_summary: str, joint: str, joint_of_summary: str
) -> None:
    support = joint.join([form.format("metoprolol", one), form.format("lisinopril", other)])
    swapped = joint_of_summary.join(
        [of_summary.format("metoprolol", other), of_summary.format("lisinopril", one)]
    )
    expected = () if one == other else ("metoprolol", "lisinopril")
    found = tuple(term.split()[0] for term in unsupported_terms([swapped], support))
    assert found == expected


@virtual_time
async def test_a_dose_is_swapped_with_one_of_the_latest_summary() -> None:
    latest = SummaryDraft(status_action="Metoprolol 25 mg.")
    swapped = SummaryDraft(status_action="Metoprolol 10 mg.")
    exaid = make_exaid(model(SHIFT), model(latest, swapped, swapped, STABLE, swapped))
    for text in ("Metoprolol 25 mg.", "Lisinopril 10 mg.", "Fever.", "Cough.", "Rash."):
        await exaid.received_trace("doctor", text)
    flagged = [summary.unsupported_terms for summary in exaid.summaries]
    pair = ("Metoprolol 10 mg",)
    assert flagged == [(), pair, pair, (), ("Metoprolol", "10 mg")], "no support by repetition"
