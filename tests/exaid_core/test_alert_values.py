"""Vital signs and laboratory values as charts, monitors and nurses write them."""

from __future__ import annotations

import pytest

from exaid_core.checks.alerts import find_alert, find_alerts, mentions_alert

# Forms of public reports: openmed#656, mimic-code#749, #765 and #2168,
# human-phenotype-ontology#8155.


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("K 4.1 --> 7.2", "K 4.1 --> 7.2"),
        ("K 4.1 >> 7.2", "K 4.1 >> 7.2"),
        ("SpO2 97% => 72%", "SpO2 97% => 72"),
        ("GCS 15 --> 6", "GCS 15 --> 6"),
        ("pH 7.30 --> 6.90", "pH 7.30 --> 6.90"),
        ("MAP 70 => 48", "MAP 70 => 48"),
        ("BP 118/70 --> 70/40", "BP 118/70 --> 70/40"),
        ("SpO2 -> 72%", "SpO2 -> 72"),
        ("No chest pain, K 4.1 => 7.2", "K 4.1 => 7.2"),
        ("Blood Pressure: (!) 70/40", "Blood Pressure: (!) 70/40"),
        ("SpO2: (!) 78 %", "SpO2: (!) 78"),
        ("Heart Rate: (!) 24", "Heart Rate: (!) 24"),
        ("Resp: (!) 4", "Resp: (!) 4"),
        ("Resp rate 4", "Resp rate 4"),
        ("B/P 70/40", "B/P 70/40"),
        ("b.p. 70/40", "b.p. 70/40"),
        ("Sp02 72%", "Sp02 72"),
        ("pH, Ven 6.9", "pH, Ven 6.9"),
        ("pH Art 6.90", "pH Art 6.90"),
        ("Potassium, serum 7.2 mmol/L", "Potassium, serum 7.2"),
        ("Potassium level critical at 7.2.", "Potassium level critical at 7.2"),
        ("K elevated at 7.4", "K elevated at 7.4"),
        ("Hyperkalemia (7.1 mmol/L)", "Hyperkalemia (7.1"),
        ("BP then 60/30.", "BP then 60/30"),
        ("BP at 0400: 62/30", "BP at 0400: 62/30"),
        ("BP 0400 62/30", "BP 0400 62/30"),
        ("SpO2 at 04:00 72%", "SpO2 at 04:00 72"),
        ("SpO2 on 15L NRB 72%", "SpO2 on 15L NRB 72"),
        ("SpO2 on 100% FiO2 72%", "SpO2 on 100% FiO2 72"),
        ("SpO2 72% on 100% FiO2", "SpO2 72"),
        ("sats dropping to 60's", "sats dropping to 60"),
        ("SpO2 dropped into the 60s", "SpO2 dropped into the 60"),
        ("desat to low 70s", "desat to low 70"),
        ("hypoxic in the 60s on RA", "hypoxic in the 60"),
        ("MAP's 40s", "MAP's 40"),
        ("brady to the 20s", "brady to the 20"),
        ("brady'd to 20s, atropine given", "brady'd to 20"),
        ("Glasgow 4", "Glasgow 4"),
        ("GCS eye 1 verbal 2 motor 1", "GCS eye 1 verbal 2 motor 1"),
        ("BP: 72/40(50) {68/38(48) - 120/70(86)} mmHg", "BP: 72/40"),
        ("RR: 6 (6 - 24) insp/min", "RR: 6"),
        ("SpO2 60% → 2 puffs given", "SpO2 60"),
        ("SpO2 60% -> 2 nebs", "SpO2 60"),
        ("GCS 6 → 2 amps D50", "GCS 6"),
        ("SpO2 60% → 10 puffs", "SpO2 60"),
        ("SpO2 92% → 72% nebs given", "SpO2 92% → 72"),
        ("SpO2 92 → 72 nebs given", "SpO2 92 → 72"),
        ("SpO2 92 → 72 drops further", "SpO2 92 → 72"),
        ("pH 7.4 → 6.9 amp of bicarbonate given", "pH 7.4 → 6.9"),
        ("Lactic acid high. Desaturated to 60%", "Desaturated to 60"),
        ("After tranexamic acid desaturated to 60%", "desaturated to 60"),
    ],
)
def test_arrows_marks_names_times_and_oxygen(text: str, found: str) -> None:
    assert list(find_alerts(text)) == [found]


@pytest.mark.parametrize(
    "text",
    [
        "K+ 7.2 --> 4.8",
        "SpO2 98% → 4 puffs given",
        "The fatty acids desaturated to 60%",
        "Fatty acids were desaturated to 60%",
        "SpO2 72% => 97%",
        "GCS 6 --> 15",
        "HR 28 --> 72",
        "pH 6.9 --> 7.35",
        "BP 70/40 -> 110/70",
        "SpO2 > 80",
        "MAP >= 55",
        "SpO2 88% on 2 L",
        "GCS 15 at 6 am",
        "RR 18 on 4 L",
        "BP 118/70 at 0400",
        "BP at 0400: 118/70",
        "SpO2 on 100% FiO2 97%",
        "Resp: 16",
        "resp_1",
        "hypoxia for 24 hours",
        "Hyperkalemia: 10 units insulin",
        "treated hyperkalemia with 10 mL calcium gluconate",
        "mean pressure gradient 45 mmHg",
        "University of Glasgow 8",
        "BP: 120/70(86) {68/38(48) - 120/70(86)} mmHg",
        "K LESS THAN 10 mEq/L",
    ],
)
def test_harmless_values_in_these_forms(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "MAP consistently >65 mmHg (currently 48 mmHg)",
        "MAP goal >65 mmHg (currently 48 mmHg)",
        "goal MAP 65, currently 48",
        "MAP goal 65; actual 48",
        "target SpO2 92%, now 74%",
        "SpO2 goal 92%. Currently 74%.",
        "SpO2 target 88-92%, currently 74%",
        "SBP goal > 90; currently 62",
        "Keep SpO2 >92%; currently 70%",
        "goal SBP <140, currently 70",
        "MAP 48 (goal >65)",
        "Goal: Maintain MAP >65 mmHg. MAP now 48.",
        "SpO2 >92%; currently 70%",
        "BP goal <140/90, now only 70/40",
        "Titrate to MAP of 65, currently at 48",
        "MAP >65 until noon, now 48",
        "SpO2 (goal 92-96%): 74%",
        "SpO2 (goal >92%, currently 74%)",
        "MAP below goal at 48",
        "MAP not at goal: 48",
        "Unable to maintain SpO2, 74%",
        "Maintaining SpO2 of 74%",
        "SpO2 maintained at 74%",
        "Failed to maintain MAP, now 48",
        "SpO2 goal >92%, currently 78% FiO2 100%",
    ],
)
def test_the_present_value_beside_a_goal(text: str) -> None:
    assert find_alert(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "goal MAP 65",
        "goal MAP 50",
        "MAP goal >65 mmHg (currently 72 mmHg)",
        "goal MAP 65, currently on 12 mcg/min",
        "SpO2 goal 92%. Currently 94%.",
        "SpO2 goal 92%, currently on 4 L",
        "goal SpO2 88%, HR currently 70",
        "K goal < 5, now 4.2",
        "SBP goal <140. Currently 45 years old",
        "MAP goal 65, now heart rate 45",
        "SpO2 (goal 92-96%): 94%",
        "MAP at goal of 50",
        "maintain SBP 80",
        # oxygen or a dose
        "SpO2 goal >92%, currently 40% FiO2",
        "SpO2 goal 88-92%, currently 28% Venturi",
        "SpO2 target 92%, now 40% HFNC",
        "goal SpO2 92-96%, now on 50% venti mask",
        "MAP >65, now 40 mL/h",
        "Target SBP (before bleeding control): 70-80",
    ],
)
def test_a_goal_beside_a_harmless_or_another_value(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Intubate if GCS <8 (currently 6)", "GCS <8 (currently 6"),
        ("Intubate if GCS falls below 8 (currently 6)", "GCS falls below 8 (currently 6"),
        ("Escalate for MAP <55 (now 48)", "MAP <55 (now 48"),
        ("Notify physician for MAP < 55, currently 48", "MAP < 55, currently 48"),
        ("Call rapid response if SBP <80 - SBP 62 now", "SBP 62"),
        ("Start norad if MAP < 65 - MAP now 48", "MAP now 48"),
        ("If no response to fluids, start norad (BP 62/30)", "BP 62/30"),
        ("If SpO2 < 80, intubate (GCS 6 now)", "GCS 6"),
    ],
)
def test_the_present_value_behind_a_condition_or_threshold(text: str, found: str) -> None:
    assert list(find_alerts(text)) == [found]


@pytest.mark.parametrize(
    "text",
    [
        "Intubate if GCS <8 (currently 13)",
        "Intubate if GCS <8 now",
        "If SBP <80 now, start norepinephrine",
        "Start pressors if MAP <55 - MAP now 75",
        "if GCS is currently 8, consider intubation",
        "Call if SpO2 < 80 (was 95)",
        "If BP 70/40, call rapid response",
        "If hypotensive (BP 70/40), call rapid response",
        "If hypotensive, start norad (MAP < 55)",
        "If BP <80, call (HR <30)",
        "If severe, (GCS 3-8), intubate",
        "If hypotensive, such as (BP 70/40), give fluids",
        "If fluid refractory, start epinephrine (SBP 70), as per protocol",
    ],
)
def test_a_condition_or_threshold_without_a_dangerous_present_value(text: str) -> None:
    assert list(find_alerts(text)) == []


# Tables and records of public reports: care_fe#12433, blue-button#86.


@pytest.mark.parametrize(
    "text",
    [
        "| SpO2 | BP | HR |\n|---|---|---|\n| 74% | 70/40 | 140 |",
        "| Time | SpO2 | BP |\n|---|---|---|\n| 08:00 | 97% | 120/80 |\n| 09:00 | 74% | 68/40 |",
        "BP\tHR\tRR\tSpO2\n68/40\t140\t38\t74%",
        "BP\tHR\tRR\tSpO2\n120/80\t80\t18\t74%\n",
        '{"SpO2": "74%", "BP": "68/40"}',
        '"spo2": 74, "sbp": 120',
        '"spo2": 97, "sbp": 68',
        "Vital: SpO2; Value: 74%",
        "| SpO2 | 74% |",
        "spo2=74",
        "SpO₂: **74%**",
        "ABG: 6.85 / 90 / 50",
        "VBG 6.9/80",
        "SaO2 0.74",
        '{"heart_rate": 22}',
        '{"vitals": {"spo2": 74}}',
        "Vitals:\n\nSpO2 | BP\n--- | ---\n97% | 120/80\n96% | **68/40**\n\nPlan: fluids",
        "| Sign | Value |\n|---|---|\n| SpO2 | 74% |\n| BP | 120/80 |",
        # a row for each sign, without a header
        "pH | 6.95\npCO2 | 85\npO2 | 48",
        "BP 70/40 | HR 140\nBP 120/80 | HR 90",
        "| SpO2 | 74% |\n| FiO2 | 0.5 |",
        "| GCS | 6 |\n|---|---|\n| NIHSS4 | 20 |",
        "Obs:\nSpO2 | 72%\nO2 | 15 L\nRR | 36",
        "K\t7.9\nCO2\t12\nBUN\t90",
        # the latest row first, or one for each patient, or a goal as the last
        "| Time | BP |\n|---|---|\n| 1200 | 70/40 |\n| 1100 | 130/80 |\n| 1000 | 128/80 |",
        "| Time | BP |\n|---|---|\n| 23:30 | 120/80 |\n| 00:30 | 70/40 |",
        "| Bed | SpO2 | BP |\n|---|---|---|\n| 1 | 72% | 70/40 |\n| 2 | 97% | 120/80 |",
        "| | SpO2 | MAP |\n|---|---|---|\n| Now | 72 | 48 |\n| Goal | 94 | 65 |",
        "|Parameter|SpO2|MAP|\n|---|---|---|\n|Patient|74%|48|\n|Normal|95-100%|70-100|",
        "| MAP | Goal |\n|---|---|\n| 45 | 65 |",
        "| BP |\n|---|\n| 120/80 on arrival, now 70/40 |",
        "| HR | SpO2 |\n|---|---|\n| 130 | 97% |\n| 120 | 72% |",
        # keys of public records on GitHub
        '{"spo2_percent": 74, "heart_rate_bpm": 120}',
        '{"heart_rate_bpm": 22}',
        '{"gcs_total": 7, "mechanism": "rta"}',
        '{"gcs_score": 5}',
        '{"systolic_bp_mmhg": 70}',
        '{"bp_systolic": 70, "bp_diastolic": 40}',
        '{"blood_pressure_systolic": 70}',
        '{"potassium_mmol_l": 7.2}',
        "GCS total 5",
    ],
)
def test_a_dangerous_value_in_a_table_or_a_record(text: str) -> None:
    assert find_alert(text) is not None


def test_the_cells_of_a_table_with_a_column_for_each_sign() -> None:
    text = "| Time | SpO2 | BP |\n|---|---|---|\n| 08:00 | 97% | 120/80 |\n| 09:00 | 74% | 68/40 |"
    assert list(find_alerts(text)) == ["SpO2 74", "BP 68/40"]


@pytest.mark.parametrize(
    "text",
    [
        "| RR | SpO2 |\n|--|--|\n| 24 | 97 |",
        "| SpO2 | BP |\n|---|---|\n| 74% | 70/40 |\n| 97% | 120/80 |",
        "| Time | SpO2 | BP |\n|---|---|---|\n| 08:00 | 97% | 120/80 |",
        "ABG: 7.25/60/80",
        "SpO2 0.98",
        '"spo2": 98, "sbp": 128',
        "VBG at 6.30 am",
        "| HR | RR |\n|---|---|\n| 80 | 16 |\n| 82 | 14 |",
        '{"rr": 24, "spo2": 92}',
        '{"spo2_percent": 98, "gcs_total": 15, "bp_systolic": 120, "heart_rate_bpm": 80}',
        '{"spo2_percent_target": 84, "gcs_total_threshold": 8, "gcs_motor": 5}',
        # points of an early warning score, a percentage of the maximum, and a sum
        '{"respiratory_rate_score": 3, "systolic_bp_score": 3, "heart_rate_total": 25}',
        '{"heart_rate_percent": 25, "oxygen_saturation_percent": 97}',
        "MAP total 4, heart rate total 20 beats, K total 8.1",
        "SpO2; 74 year old",
        # grades, scores and limits
        "| Severity | GCS |\n|---|---|\n| Mild | 13-15 |\n| Moderate | 9-12 |\n| Severe | 3-8 |",
        "| GCS | Injury |\n|---|---|\n| 13-15 | mild |\n| 9-12 | moderate |\n| 3-8 | severe |",
        "| NEWS2 | RR | SpO2 |\n|---|---|---|\n| 0 | 12-20 | 96 |\n| 3 | ≤8 | ≤83 |",
        "| Trigger | RR | SpO2 | SBP |\n|---|---|---|---|\n| Call MET | <6 | <84% | <80 |",
        "| Class | SBP | RR |\n|---|---|---|\n| I | 120 | 14-20 |\n| IV | 60-70 | >35 |",
        "| Potassium | Treatment |\n|---|---|\n| 5.5-7 | insulin |\n| >7 | dialysis |",
        "| Sign | SpO2 |\n|---|---|\n| Alarm low | 80% |",
        "| Goal | MAP |\n|---|---|\n| permissive | 50 |",
        "| Time | Target MAP |\n|---|---|\n| 10:00 | 50 |",
        "| BP |\n|---|\n| 70/40, now 120/80 |",
        "| Time | BP |\n|---|---|\n| 12:00 | 130/80 |\n| 11:00 | 70/40 |",
    ],
)
def test_a_harmless_value_in_a_table_or_a_record(text: str) -> None:
    assert list(find_alerts(text)) == []


# Dictated values: typewhisper-mac#110 and #645.


@pytest.mark.parametrize(
    "text",
    [
        "Patient is hypotensive after induction, blood pressure seventy over forty.",
        "BP seventy over forty",
        "oxygen saturation of seventy percent",
        "sats in the low seventies",
        "SBP in the seventies",
        "GCS three",
        "GCS is six",
        "resp rate four",
        "Sats are seventy-four on room air",
        "potassium is six point nine",
        "pH of six point eight",
        "Respirations are six per minute",
        "No fever, blood pressure sixty over thirty",
        "SpO2 seventy four percent, heart rate one thirty",
        "BP one ten over seventy on arrival, now sixty over thirty",
        "Heart rate is twenty-eight",
        "GCS six, then twenty minutes later three",
    ],
)
def test_a_dangerous_value_in_words(text: str) -> None:
    assert find_alert(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "blood pressure one twenty over eighty",
        "The GCS has three components",
        "Respiratory rate is one of the vital signs",
        "sats in the nineties",
        "SpO2 ninety-four percent on two liters",
        "GCS fifteen",
        "potassium four point two",
        "pH seven point three",
        "respirations sixteen",
        "GCS three hours later was not recorded",
        "hypotension in two patients",
        "heart rate seventy-two",
        "BP was seventy over forty, now one twenty over eighty",
        "goal MAP fifty",
        "GCS was twice recorded, four nurses were present",
        "The respiratory rate was counted two times",
        "sats thirty to forty minutes after: 97",
        "respirations two to three minutes apart",
        "sats at thirty, then sixty minutes: 98 and 99",
        "pulse ox twenty to thirty feet away",
        "potassium nine, no wait, three point nine",
    ],
)
def test_a_harmless_value_in_words(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "SBP falls 25 mmHg with inspiration",
        "systolic BP decreased 25 mmHg from supine to standing",
        "HR rose 25 bpm on standing",
        "heart rate increased 25 beats per minute on standing",
        "GCS decreased 4 points",
        "Mean arterial pressure fell 30%",
        "SpO2 dropped 20%",
        "MAP 20% above baseline",
        "HR 20 points above baseline",
    ],
)
def test_an_amount_of_change_is_no_value(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "oxygen saturation fell to 72%",
        "SpO2 fell from 95% to 70%",
        "SpO2 dropped 72%",
        "GCS dropped to 6",
        "BP dropped 70/40 mmHg",
        "SBP 62",
        "MAP fell 45",
    ],
)
def test_the_value_after_a_change(text: str) -> None:
    assert find_alert(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "CSF pH 6.9",
        "Pleural fluid: pH 6.9, glucose 20",
        "pH 6.8 pleural fluid",
        "synovial pH 6.9",
        "Urine: color yellow, pH 6.8",
        "UA: SG 1.020, pH 6.8",
        "SVC saturation 70%",
        "cerebral saturation 60%",
        "ScvO2 saturation 65%",
        "Patient sat up 45 degrees",
        "She sat in 30 degree position",
        "Sat 22 Nov",
        "Sat 22:15",
        "O2 sat 71% mixed venous",
        "SpO2 71% (mixed venous)",
    ],
)
def test_another_specimen_site_or_meaning(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "venous pH 6.9",
        "Pleural fluid: pH 7.1. ABG pH 6.9",
        "ABG: pH 6.9, urine: pH 6",
        "cord pH 6.9",
        "sat 70 on RA",
        "sat down to 72%",
        "He sat with SpO2 70%",
        "sats 70s",
        "Urine: scant, BP 60/40",
        "Urine: scant, K 7.9",
        "CSF: pending, GCS 4",
        "Urine: clear, BP 60/40",
        "Urine: scant, pH 6.9",
        "Urine: clear, arterial pH 6.9",
        "Stool: bloody, BP 70/40",
        "Pleural effusion SpO2 70%",
        "Flat IVC with BP 60/40",
        "Peritoneal signs BP 70/40",
        "Regional hospital SpO2 70%",
        "Norepinephrine titrated to max dose BP 60/40",
        "pH 6.9 urine output nil",
        "sat in the 60s",
        "Sat on RA 70%",
        "sat with NRB 70%",
        "O2 sat 71% central venous line placed",
        "O2 sat 71% on room air, mixed venous pending",
    ],
)
def test_a_value_of_the_blood(text: str) -> None:
    assert find_alert(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "Potassium 7.2 (specimen hemolyzed)",
        "K 7.2 was hemolyzed",
        "K 7.3 (clotted sample)",
        "K 7.2, pseudohyperkalemia",
        "K 6.9 (hemolyzed), repeat K 4.4",
        "SpO2 60% (artifact)",
    ],
)
def test_a_value_that_was_not_measured_right(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "K 7.2 (not hemolyzed)",
        "K 7.2, non-hemolyzed",
        "K 7.0, mildly hemolyzed",
        "K 7.2 on repeat, first sample hemolyzed",
        "K 6.9, grossly hemolyzed, repeat 6.8",
        "K 7.2. The wound is contaminated.",
        "K 7.9, clotted AV fistula",
        "K 7.9, hemolyzed, peaked T waves",
        "SpO2 70%, poor waveform, cyanotic",
        "BP 60/40, massive hemolysis",
        "BP 60/40, artifact on ECG",
        "SpO2 68%, artifact excluded",
        "K 7.9, hemolysis index negative",
        "GCS 5, probably spurious",
        "BP 70/40 with wrong cuff size, manual 68/40",
    ],
)
def test_a_value_that_was_measured_right(text: str) -> None:
    assert find_alert(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "tension pneumo",
        "Resp arrest",
        "status epi",
        "massive UGIB, hgb 4.1",
        "Pt seizing x 30 min",
        "decerebrate",
        "No response to sternal rub",
        "no palpable radial or femoral pulses",
        "absent femoral and carotid pulses",
        "nitro in RV infarct dropped preload; pt arrested",
        "Pt coded in CT.",
        "Pt collapsed in triage.",
        "MTP activated at 0230",
        "Major trauma - MTP activated.",
        "Massive transfusion protocol (MTP) was activated.",
        "BP: not recordable",
        "Pulse: not palpable",
        "Carotid pulse: absent",
        "Pupils dilated & fixed.",
        "both pupils are dilated and not reacting to light",
    ],
)
def test_short_forms_of_a_danger(text: str) -> None:
    assert find_alert(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "absent pulses in the left foot",
        "no palpable pedal pulses",
        "seizing for 1 min",
        "pt arrested by police",
        "PT codes for billing",
        "MTP not activated",
        "DP pulse: not palpable",
        "BP: not recordable in left arm",
        "Left carotid pulse absent",
        "Carotid pulses: present",
        "Pupils not fixed & dilated",
        "Pupils dilated, reactive",
    ],
)
def test_what_looks_like_these_forms(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "non-palpable pulses",
        "nonpalpable carotid pulse",
        "impalpable pulse",
        "high risk of imminent respiratory arrest",
        "risk of imminent cardiac arrest",
        "at risk for impending respiratory failure",
        "+LOC",
        "positive LOC",
        "Head injury, +LOC, GCS 13",
        "(+) LOC",
        "pulse not palpable",
    ],
)
def test_signs_of_a_danger_and_what_is_about_to_happen(text: str) -> None:
    assert find_alert(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "nonpalpable pedal pulses",
        "non-palpable pulses in the left foot",
        "nonpalpable pulses LLE",
        "risk of respiratory arrest",
        "-LOC",
        "(-) LOC",
        "no LOC",
        "brief LOC",
        "EOC+LOC",
        # level of consciousness, or a brief loss
        "neuro checks + LOC q2h",
        "A&Ox3, + LOC normal, follows commands",
        "Vitals + LOC q4h",
        "+LOC (brief), amnestic",
        "Mild TBI, + LOC < 1 min",
        "(+) LOC for a few seconds, CT normal",
        "+LOC at scene yesterday, now GCS 15",
        "risk of cardiac arrest",
    ],
)
def test_what_looks_like_these_signs(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    ("summary", "alert"),
    [
        ("Hyperkalemia (7.1 mmol/L) with ECG changes", "K 7.1"),
        ("Hypoxic at 72%", "SpO2 72"),
        ("mean pressure 45 mmHg", "MAP 45"),
        ("Glasgow 5", "GCS 5"),
        ("arrested, ROSC after 10 min", "cardiac arrest"),
    ],
)
def test_a_summary_that_names_the_sign_in_other_words(summary: str, alert: str) -> None:
    assert mentions_alert(summary, alert)


# Forms of public notes: a bronchoscopy that was aborted, discharge summaries in lower case, reports
# of sleep studies, lists of allergies.


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Patient desatted to 78%. Aborted procedure, suctioned fluid.", "desatted to 78"),
        ("He desaturated to 62%", "desaturated to 62"),
        ("He desaturated from 95% to 70%", "desaturated from 95% to 70"),
        ("a desaturation to 58%", "desaturation to 58"),
        ("two desaturations to 60%", "desaturations to 60"),
        ("desaturating to 65%", "desaturating to 65"),
        ("desaturates to the 70s", "desaturates to the 70"),
        ("desat'd to 70s", "desat'd to 70"),
        ("SpO2 95% → 72% NRB", "SpO2 95% → 72"),
        ("SpO2 95% → 72% face mask", "SpO2 95% → 72"),
        ("SpO2 goal 94%, currently 72% NRB", "SpO2 goal 94%, currently 72"),
        ("O2 satting 72% on RA", "satting 72"),
        ("oxygen saturating at 70%", "saturating at 70"),
    ],
)
def test_a_verb_before_a_saturation(text: str, found: str) -> None:
    assert list(find_alerts(text)) == [found]


@pytest.mark.parametrize(
    "text",
    [
        "desaturated to 88%",
        "No desaturations below 80%",
        "desaturated within 30 seconds",
        "4% desaturations 25 per hour",
        "nocturnal desaturation to 80%",
        "desaturated on 50% FiO2",
        "desaturated to 70% but recovered to 95%",
    ],
)
def test_a_harmless_or_another_value_after_these_verbs(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("potassium 7.2 mEq per liter", "potassium 7.2"),
        ("potassium of 8 mEq per L", "potassium of 8"),
        ("potassium 7 mEq per litre", "potassium 7"),
        ("potassium was 7.9 mEq on arrival", "potassium was 7.9"),
        ("serum K 8 meq", "K 8"),
        ("Potassium level of 7 mEq", "Potassium level of 7"),
        ("serum potassium concentration 8 mEq", "potassium concentration 8"),
        ("hyperkalemia (7 mEq)", "hyperkalemia (7"),
        ("K 7.2 mEq", "K 7.2"),
        ("K 7.1, then 10 mEq calcium", "K 7.1"),
    ],
)
def test_an_amount_of_potassium_that_was_measured(text: str, found: str) -> None:
    assert list(find_alerts(text)) == [found]


@pytest.mark.parametrize(
    "text",
    [
        "potassium 10 mEq",
        "She is on potassium 10 mEq daily",
        "was given potassium 8 mEq",
        "Potassium 7.5 mEq IV",
        "potassium 8 mEq/hr",
        "potassium 8 mEq/kg",
        "potassium 10 mEq per hour",
        "K 10 mEq per liter of fluid",
        "K 3.1, then 10 mEq KCl",
        "Her home potassium was 10 mEq daily",
        "potassium was increased to 10 mEq",
        "potassium 7.5 mEq tablets",
        "hyperkalemia, 10 mEq bicarb given",
    ],
)
def test_a_dose_of_potassium(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("GCS 15 -> 12 -> 6", "GCS 15 -> 12 -> 6"),
        ("GCS 15/15 → 12/15 → 6/15", "GCS 15/15 → 12/15 → 6"),
        ("K 5.1→6.4→7.2", "K 5.1→6.4→7.2"),
        ("K 5.1, 6.4, then 7.2", "K 5.1, 6.4, then 7.2"),
        ("SpO2 98%→88%→71%", "SpO2 98%→88%→71"),
        ("SpO2 98 % → 88 % → 71 % on 15 L", "SpO2 98 % → 88 % → 71"),
        ("MAP 70->60->45", "MAP 70->60->45"),
        ("HR 80 -> 50 -> 25", "HR 80 -> 50 -> 25"),
        ("RR 30 → 20 → 10 → 6", "RR 30 → 20 → 10 → 6"),
        ("pH 7.30 -> 7.1 -> 6.85", "pH 7.30 -> 7.1 -> 6.85"),
        ("GCS dropped from 15 to 12 to 6", "GCS dropped from 15 to 12 to 6"),
        ("SpO2 98% RA → 71% RA", "SpO2 98% RA → 71"),
        ("K 4.4 (0800) → 6.0 (1000) → 7.2 (1200)", "K 4.4 (0800) → 6.0 (1000) → 7.2"),
        # what was given for the danger
        ("SpO2 72% → 100% NRB", "SpO2 72"),
        ("GCS 5 → 20 mg etomidate", "GCS 5"),
        ("RR 6 → 100% O2", "RR 6"),
        ("HR 25 → 100 mcg epinephrine", "HR 25"),
    ],
)
def test_a_chain_of_values_that_ends_in_danger(text: str, found: str) -> None:
    assert list(find_alerts(text)) == [found]


@pytest.mark.parametrize(
    "text",
    [
        "GCS 3→8→15",
        "GCS 3 → 8 → 15 by day 3",
        "GCS 3/15 → 8/15 → 15/15",
        "SpO2 70%→80%→96%",
        "SpO2 72% → 15L NRB → 88%",
        "K 7.2→6.8→4.4",
        "K rose from 3.1 to 3.9 to 4.4",
        "GCS rose from 3 to 8 to 15",
        "K 7.2 (0800) → 6.8 (1000) → 4.4 (1200)",
        "K 7.2 → 6.8 → 4.4 with insulin",
        "K 6.9 → 5.2 → 4.8 (after dialysis)",
        "K 5.0 → 6.9 → 7.2 (hemolyzed)",
        "pH 6.8 -> 7.1 -> 7.3",
        "MAP 60 → 45 → 75 on norepinephrine",
        "RR 4 -> naloxone -> 16",
    ],
)
def test_a_chain_of_values_that_ends_well(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the baby is blue", "is blue"),
        ("Her lips were blue", "were blue"),
        ("Her lips, tongue and fingers were blue", "lips, tongue and fingers were blue"),
        ("he turned blue in the face", "turned blue"),
        ("She's turning blue!", "turning blue"),
        ("He was found limp, cold and blue", "was found limp, cold and blue"),
        ("He choked and turned blue", "turned blue"),
        ("My son is turning blue", "is turning blue"),
        ("A 3-month-old turned blue", "turned blue"),
        ("turned blue - CPR started", "turned blue"),
        ("he turned blue before he fell", "turned blue"),
        ("his color was blue", "was blue"),
        ("She called 911 when he turned blue", "turned blue"),
        ("We intubated when she was blue", "was blue"),
        ("witnessed apneas with cyanosis", "apneas"),
        ("observed apneas, needed stimulation", "apneas"),
        ("snoring with apneas after fentanyl", "apneas"),
        ("penicillin - anaphylaxis, adrenaline given", "anaphylaxis"),
        ("first dose of ceftriaxone - anaphylaxis", "anaphylaxis"),
        ("bee sting: anaphylaxis", "anaphylaxis"),
        ("There is blue-grey discoloration of the lips", "blue-grey discoloration of the lips"),
        ("The toes were cyanotic", "were cyanotic"),
        ("recurrent apneas with bradycardia", "apneas"),
        ("recurrent apneas on CPAP", "apneas"),
        ("apnea / hr 40", "apnea"),
        ("snoring respirations, then apnea", "apnea"),
        ("Gave penicillin - anaphylaxis", "anaphylaxis"),
        ("Peanuts - anaphylaxis, epi given", "anaphylaxis"),
        ("penicillin anaphylaxis", "anaphylaxis"),
    ],
)
def test_a_blue_patient_apnea_and_anaphylaxis(text: str, found: str) -> None:
    assert list(find_alerts(text)) == [found]


@pytest.mark.parametrize(
    "text",
    [
        "His sclerae were blue.",
        "Her fingers turned blue in the cold",
        "The urine turned blue after methylene blue",
        "his tympanic membrane is blue",
        "The nevus is deep blue",
        "The bruise was blue",
        "She was wearing a blue dress",
        "She is blue-eyed",
        "He was started on toluidine blue.",
        "Patient is assigned to team blue.",
        "The solution turned green and then turned blue.",
        "The girl is afraid of blue.",
        "Peanuts: anaphylaxis, has an EpiPen",
        "He was feeling blue.",
        "The bed partner reports loud snoring, witnessed apneas, and morning headaches.",
        "Patient reports loud snoring, witnessed apneas, ESS score 14, BMI 32, hypertension",
        "Polysomnography: 45 apneas and 30 hypopneas per hour.",
        "OSA: apneas reduced on CPAP",
        "AHI 32 apneas per hour",
        "snoring, gasping and apneas at night",
        "45 apneas/hr",
        "Allergies on file: PENICILLIN - anaphylaxis, documented 2019, confirmed by allergist.",
        "Patient allergy recorded as 'penicillin - anaphylaxis'.",
        "Penicillin – anaphylaxis",
        "Penicillin = anaphylaxis",
        "Penicillins | Anaphylaxis | High",
        "ALLERGIES: 1. Penicillin - anaphylaxis. 2. Sulfa - rash.",
        "Penicillin - rash, Peanuts - anaphylaxis",
    ],
)
def test_something_blue_sleep_apnea_and_an_allergy(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("initial blood gas had a ph of 6.91 , a c02 of 100 ,", "ph of 6.91"),
        ("received 4 amps of bicarb for a ph of 6.7 .", "ph of 6.7"),
        ("abg : ph : 6.85", "ph : 6.85"),
        ("vf arrest", "vf arrest"),
        ("vtach arrest", "vtach arrest"),
        ("v-fib arrest", "v-fib arrest"),
        ("went into vf", "went into vf"),
        ("k 7.2 on bmp", "k 7.2"),
        ("na 128 , k+ : 7.2 , cl 100", "k+ : 7.2"),
    ],
)
def test_a_danger_in_lower_case(text: str, found: str) -> None:
    assert list(find_alerts(text)) == [found]


@pytest.mark.parametrize(
    "text",
    [
        "ph 7.32",
        "urine : color yellow , ph 6.8",
        "the ph of 6.8 in urine",
        "skin ph 6.8",
        "k 4.2",
        "k7.2",
        "5 k 7.2 miles",
        "k 7.8 mm",
        "buffer at ph 6.8",
        "ph 6.8 phosphate buffer",
        "sg 1.010 ph 6.6",
        "vf intact",
        "runs of vtach",
        "history of vf arrest",
        "k 7.2 hemolyzed",
    ],
)
def test_lower_case_of_another_meaning_or_a_harmless_value(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("BP crashed to 50/20", "BP crashed to 50/20"),
        ("BP's 60s/30s", "BP's 60s/30"),
        ("SpO2's in the 70s", "SpO2's in the 70"),
        ("her BP bottomed out at 58/30", "BP bottomed out at 58/30"),
        ("BP trending down 110 -> 95 -> 72", "BP trending down 110 -> 95 -> 72"),
        ("BP 110 → 72", "BP 110 → 72"),
        ("BP fell from 118 to 95 to 72", "BP fell from 118 to 95 to 72"),
        ("BP from 120/80 to 90/50 to 60/30", "BP from 120/80 to 90/50 to 60/30"),
        ("mean BP 90 -> 50", "mean BP 90 -> 50"),
        ("hypotensive to the 60s", "hypotensive to the 60"),
        ("hypotensive to 70s/40s", "hypotensive to 70s/40"),
        ("she dropped her pressure to 60/30", "her pressure to 60/30"),
        ("heart rate slowed to 20", "heart rate slowed to 20"),
        ("pulse oximeter showed 60%", "pulse oximeter showed 60"),
        ("SatO2 70%", "SatO2 70"),
        ("Sat O2 72%", "Sat O2 72"),
        ("Blood pressure 60 mmHg palpable", "Blood pressure 60 mmHg palpable"),
        ("BP 70 by doppler", "BP 70 by doppler"),
        ("K 6.8 / Na 128", "K 6.8"),
        ("Na 128 / K 6.8", "K 6.8"),
        ("K/Na 6.8/128", "K 6.8"),
        ("Na+ / K+ : 128 / 7.1", "K+ 7.1"),
        ("pH/pCO2/pO2 6.9/80/60", "pH 6.9"),
        ("SpO2/HR 72%/110", "SpO2 72"),
        ("MAP/CVP 45/8", "MAP 45"),
    ],
)
def test_more_words_around_a_value_and_pairs_of_signs(text: str, found: str) -> None:
    assert list(find_alerts(text)) == [found]


@pytest.mark.parametrize(
    "text",
    [
        "BP crashed to 90/60",
        "BP 110 -> 95/60",
        "BP 110 → 72 → 118",
        "BP 160 -> 75 diastolic",
        "diastolic BP fell from 90 to 70",
        "BP (diastolic) 90 -> 70",
        "BP fell from 118 to 112",
        "Blood pressure fell from 20 to 40 weeks",
        "BP dropped from 20 to 30 points",
        "every 24 HRs 20 minutes",
        "RRs ranged from 2 to 5",
        "heart rate slowed 20 bpm",
        "mean BP 90 -> 70",
        "BP rose from 70 to 110",
        "BP 90 -> 60, now 120/80",
        "hypotensive to the 90s",
        "her pressures were 21/22",
        "her PA pressure dropped to 60/30",
        "heart rate slowed by 20",
        "BP 120 palpable",
        "K 3.8 / Na 128",
        "K 4.1 / Hgb 7.2",
        "Na/K 138/4.1",
        "pH/K 7.3/4.1",
        "GCS/HR 15/80",
        "RR/HR 18/80",
    ],
)
def test_harmless_values_in_these_words_and_pairs(text: str) -> None:
    assert list(find_alerts(text)) == []
