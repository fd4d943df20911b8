"""What the words around a danger deny, plan or fear, and what they only seem to."""

from __future__ import annotations

import time

import pytest

from exaid_core.checks.alerts import find_alert, find_alerts

# Patterns of public reports: openmed#928 and #1182, biomedicus#96 and #100, fenominal#42,
# negspacy#10, #14 and #44, chexpert-labeler#15, medspacy#105, ottehr#6084, nougat#200,
# smart-ccc#67.


@pytest.mark.parametrize(
    "text",
    [
        "She is not cyanotic.",
        "He is no longer cyanotic.",
        "The child was not blue at any time.",
        "CPR was not performed.",
        "Chest compressions were never needed.",
        "Resuscitation was not started because he was awake.",
        "She received no CPR.",
        "He required no intubation.",
        "The intubation went well and nothing failed.",
        "Pupils are equal and not fixed.",
        "pupils equal, reactive, not dilated or fixed",
        "hypotension, not requiring pressors",
        "Hypotension resolved without pressors.",
        "hypotensive overnight, off pressors now",
        "hypotension resolved, weaned off norepinephrine",
        "non-massive PE",
        "sub-massive PE",
    ],
)
def test_a_denial_between_the_words_of_an_alert(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "He was deeply cyanotic.",
        "CPR was immediately started.",
        "Pupils equal but fixed.",
        "Pupils are not equal, left fixed and dilated.",
        "Pupils not reactive, fixed and dilated.",
        "Hypotension not responding to fluids, requiring pressors",
        "Intubation was attempted twice and failed.",
        "Intubation was not possible and failed.",
        "BP not recordable.",
        "no palpable pulse",
        "not breathing",
        "Hypotensive and cannot be taken off pressors.",
        "Hypotensive, unable to wean off pressors",
        "Hypotensive whenever off pressors",
        "Hypotensive with no fever on norepinephrine",
        "Hypotension and no urine output on norepinephrine",
        "Hypotension not corrected by norepinephrine",
        "He presented not requiring pressors, cardiac arrest",
        "Stable, not requiring oxygen and in septic shock",
    ],
)
def test_a_denial_that_is_part_of_the_alert_or_of_something_else(text: str) -> None:
    assert find_alert(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "History could not be obtained as the patient was unresponsive.",
        "ROS could not be obtained due to unresponsiveness.",
        "CT was not done due to hemodynamic instability.",
        "Metoprolol was not given due to cardiogenic shock.",
        "Metoprolol not given 2/2 cardiogenic shock",
        "No beta-blocker because of cardiogenic shock.",
        "She does not follow commands because she is comatose.",
        "Denies pain because she is obtunded.",
        "He cannot be weaned from norepinephrine due to septic shock.",
        "Cannot speak because of severe respiratory distress.",
        "No CT as patient is in hemorrhagic shock",
        "Not intubated given his septic shock",
        "No antibiotics yet despite septic shock",
        "Not a candidate for tPA as the patient is comatose",
        "Not anticoagulated due to massive GI bleed",
        "Not a surgical candidate given septic shock.",
        "No CT given hemodynamic instability.",
        "No thrombolysis given massive GI bleed.",
        "No CT given ongoing hemorrhagic shock.",
        "No beta-blocker in view of cardiogenic shock.",
        "MI unlikely because of tamponade on echo.",
        "Sepsis less likely given hemorrhagic shock.",
        "Sepsis is less likely in this case because she is in cardiogenic shock.",
        "Bleeding not controlled: hemorrhagic shock",
    ],
)
def test_the_reason_of_a_denial_is_not_denied(text: str) -> None:
    assert find_alert(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "The hypotension is not due to septic shock.",
        "This is not because of cardiogenic shock.",
        "Her hypotension is not thought to be due to septic shock.",
        "Not primarily due to anaphylaxis",
        "It is unlikely due to tamponade.",
        "Doubt that this is due to massive PE.",
        "I doubt the hypotension is due to septic shock.",
        "No evidence that her hypotension is due to septic shock.",
        "No signs of hypoperfusion due to septic shock.",
        "He is not in shock given his normal lactate.",
        "She does not have shock because her lactate is normal.",
        "No evidence of septic shock.",
        "No bleeding due to hemorrhagic shock",
        "Denies syncope due to cardiac arrest",
        "No chest pain due to STEMI",
        "No deaths due to cardiac arrest",
        "Never hospitalized because of anaphylaxis",
        "No episodes secondary to respiratory arrest",
        "No hypotension secondary to septic shock",
        "No hemodynamic instability due to septic shock",
        "No complications due to respiratory failure or cardiac arrest",
        "The lactate is unlikely due to septic shock.",
        "Septic shock is unlikely because of normal lactate.",
        "Sepsis is unlikely given the absence of septic shock.",
        "No fluids given for septic shock.",
        "No epinephrine given before cardiac arrest.",
        "No signs of PE given concern for massive PE",
        "No penicillin given anaphylaxis",
    ],
)
def test_a_denied_reason(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "Pulmonary embolism is unlikely, cardiac tamponade most likely.",
        "This is not sepsis, most likely cardiogenic shock.",
        "Sepsis is unlikely and cardiogenic shock is most likely.",
        "Sepsis is unlikely, and cardiogenic shock is favored.",
        "I doubt sepsis and suspect cardiogenic shock.",
        "Septic shock less likely, hemorrhagic shock more likely.",
        "PE is less likely, tamponade is the leading diagnosis.",
        "This is not PE, more consistent with cardiac tamponade.",
        "Rather than sepsis, cardiogenic shock is more likely.",
        "No rash, suspected anaphylaxis.",
        "No trauma, concern for ruptured AAA.",
        "Denies fever, likely septic shock.",
        "At risk of bleeding, likely hemorrhagic shock.",
        "No PE, likely pneumonia with septic shock",
        "Not consistent with sepsis, most likely cardiogenic shock",
        "No bystander CPR, remained in asystole",
    ],
)
def test_a_danger_suspected_beside_what_is_denied(text: str) -> None:
    assert find_alert(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "No signs of septic shock, suspected or otherwise.",
        "No shock, suspected or otherwise.",
        "No fever, rash, or signs consistent with anaphylaxis.",
        "No rash, no concern for anaphylaxis.",
        "No history of, or concern for, anaphylaxis.",
        "No fever, hypotension, suspected infection, or septic shock.",
        "There is no massive PE, likely segmental.",
        "He does not have shock, likely dehydration.",
        "I do not think that sepsis and septic shock are likely.",
        "I do not think sepsis and septic shock are most likely.",
        "No sepsis, PE, or shock suspected.",
        "Sepsis rather than cardiogenic shock is most likely.",
        "Neither sepsis nor cardiogenic shock is most likely.",
        "The absence of fever makes septic shock less likely, hypovolemia more likely.",
        "If hypotension persists, suspect cardiac tamponade.",
        "Without treatment, likely septic shock.",
        "This may cause bleeding and probably hemorrhagic shock.",
        "Allergies: penicillin, suspected anaphylaxis.",
        "Mother had sepsis, suspected septic shock.",
        "Cardiac arrest is more likely with hypothermia.",
        "In anterior MI, cardiogenic shock is more likely.",
        "History of asthma, probable anaphylaxis to shellfish",
        "PMH: CAD, suspected STEMI 2018",
        "Denies chest pain, suspected shock or arrest",
        "No chest pain, concern for tamponade, or shock",
        "No evidence suggestive of PE, consistent with tamponade",
        "Not consistent with sepsis, suspicious for septic shock",
        "No rash, favor viral over anaphylaxis",
        "Denies LOC, likely syncope versus cardiac arrest",
        "PE is unlikely, tamponade most likely excluded.",
        "No JVD, suspicion for tamponade low",
        "Watch for sepsis, probable shock, and arrest.",
        "Return precautions for fever, suspected anaphylaxis",
        "Protocols for sepsis and suspected septic shock",
        "To prevent sepsis, septic shock is most likely",
    ],
)
def test_a_suspicion_that_is_denied_or_conditional_or_of_something_else(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "No PMH, brought in pulseless by EMS.",
        "No known allergies, brought to the ED comatose.",
        "No trauma, BIBEMS unresponsive.",
        "No chest pain, rapidly unresponsive.",
        "No fever, progressively obtunded.",
        "No history available, patient obtunded.",
        "No significant past medical history, brought in cardiac arrest.",
        # openmed#1182
        "No trauma - in cardiac arrest",
        "No chest pain – unresponsive",
        "No chest pain (atypical) - cardiac arrest",
        "No rash - anaphylaxis confirmed by tryptase",
        "no fever / in septic shock",
        "no trauma / unresponsive",
        "No sepsis / in shock",
        "No chest pain / SpO2 70%",
        "denies pain / BP 60/40",
        "No meds | in shock",
        "no pain and unresponsive",
        "Two nurses: no visible trauma - patient pulseless",
        "No allergies | septic shock",
        "Sepsis not resolving, septic shock",
        "No sign of trauma - in cardiac arrest",
        "No fever, unresponsive episodes overnight",
    ],
)
def test_a_state_behind_a_denied_list(text: str) -> None:
    assert find_alert(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "No bystander CPR, asystole on arrival",
        "No bystander CPR, PEA on arrival",
        "No witnesses, cardiac arrest on arrival",
        "No prior seizures, status epilepticus on arrival",
        "denies drug use, status epilepticus on EEG",
        "no family at bedside; patient coding",
        "family at bedside, patient coding",
        "patient is coding",
        "patient coding",
        "Patient is actively coding",
        "pt coding now",
        "He's crashing",
        "No CPR, VF on the monitor",
        "no known history, pulseless electrical activity on EMS arrival",
    ],
)
def test_a_rhythm_found_on_arrival_and_a_patient_who_codes(text: str) -> None:
    assert find_alert(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "no arrest, shock or asystole on arrival",
        "No chest pain, loss of consciousness on scene",
        "no seizures, cardiac arrest or PEA",
        "patient coding and billing",
        "patient coding errors",
        "Inpatient coding",
        "no PEA on arrival",
        # findings of the same test
        "No AF, ventricular tachycardia on telemetry",
        "No ST changes, VF, asystole on ECG",
        "No seizure, status epilepticus on EEG",
        "No syncope, palpitations, cardiac arrest on telemetry",
        "Denies chest pain, palpitations, ventricular tachycardia on monitor overnight",
    ],
)
def test_a_rhythm_of_a_denied_list_and_other_coding(text: str) -> None:
    assert list(find_alerts(text)) == []


# Clinical-Insight-Engine#1662, iknow#33
@pytest.mark.parametrize(
    "text",
    [
        "Tension pneumothorax was not identified.",
        "Tamponade not detected",
        "Tension pneumothorax is not visualized.",
        "Cardiac tamponade was not demonstrated on echo.",
        "Airway obstruction not noted.",
        "Brain herniation not appreciated on CT.",
        "shock not apparent",
        "cardiac tamponade not visible",
        "brain herniation not shown",
        "septic shock is not supported",
        "Septic shock not favored",
        "Massive PE not supported by CT",
        "Septic shock would not explain this",
        "Shock is not a feature here",
        "Septic shock/tamponade ruled out",
        "shock/coma: none",
        "apnea or cyanosis absent",
        "tension PTX is not a concern",
        "septic shock or tamponade was excluded",
        "Shock was never documented",
        "Anaphylaxis has not been established",
        "Cardiac tamponade: not identified",
    ],
)
def test_a_denial_behind_the_danger(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "Septic shock was not identified until day 3.",
        "Tamponade was not detected initially.",
        "Tension pneumothorax was not recognized early.",
        "Septic shock was not appreciated at first.",
        "Cardiac arrest was not witnessed.",
        "Cardiac arrest / PE ruled out",
        "Septic shock, MI ruled out",
        "Septic shock. Tamponade ruled out.",
        "Shock is not improving",
        "Septic shock, source not identified",
        "Septic shock with source not identified",
        "Septic shock or anaphylaxis",
        "The shock is not resolved.",
        "Tension pneumothorax not noted for several hours",
        "Septic shock, organism not identified",
        "Tamponade was not seen until echo",
        "Septic shock not supported by pressors",
        "Cardiac arrest/asystole, CPR started, PE ruled out",
        "Septic shock/ARDS, no PE",
        "shock or sepsis, none improving",
        "Coma not explained by CT",
        # something else is ruled out, not supported or not known
        "Septic shock/PE ruled out by CT",
        "Hemorrhagic shock/PE excluded on CTPA",
        "Septic shock/DIC resolved? No",
        "Cardiogenic shock, not supported by mechanical circulatory support",
        "Cardiogenic shock not yet supported, awaiting Impella",
        "Respiratory failure not supported by NIV, needs intubation",
        "Septic shock not established on pressors yet",
        "Found down, unresponsive, not yet identified",
        "Septic shock never established source",
        "pH 6.9, not identified",
        # found later
        "Septic shock was not diagnosed on arrival and antibiotics were delayed",
        "Tension pneumothorax was not appreciated on CXR, found on CT",
        "Tension pneumothorax not visible on supine film but seen on US",
        "Tension pneumothorax not identified on the initial film, chest tube placed",
        "Cardiac arrest not noted by staff for 10 minutes",
        "Anaphylaxis was not identified as such in triage",
    ],
)
def test_a_denial_until_later_or_of_something_else(text: str) -> None:
    assert find_alert(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "[ ] unresponsive [x] alert",
        "☐ Anaphylaxis ☑ Rash",
        "( ) STEMI (x) NSTEMI",
        "Anaphylaxis: [ ] Yes [x] No",
        "Anaphylaxis: ☐ Yes ☑ No",
        "Anaphylaxis: [x] No [ ] Yes",
        "Asystole? No, a loose lead.",
        "Septic shock? No",
        "Septic shock (Y/N): N",
        "Shock: denies",
        "Tamponade: neg",
        "STEMI (-)",
        "w/o tamponade",
        "Neg tamponade",
        "STEMI neg",
        "STEMI was r/o",
        "STEMI r/o'd",
        "low c/f septic shock",
        "r/o tamponade",
        "no shock / coma",
        "no hypoxia / SpO2 < 85%",
        "no hypotension / or SBP 60",
        "no hypotension / BP 80/50 or below",
        "no tachycardia / BP below 80/50",
        "no shock and no coma",
        "denies chest pain and loss of consciousness",
        "not comatose and unresponsive",
        "no post-arrest shock",
        # lists parted by bars or dashes, and no object before the dash
        "Denies: chest pain | palpitations | loss of consciousness",
        "| Denies | fever | anaphylaxis |",
        "Denies chest pain - dyspnea - syncope - cardiac arrest",
        "negative for MI - PE - tension pneumothorax",
        "Not seen - tension pneumothorax",
        "No evidence – septic shock",
        "No signs of infection – septic shock",
        "No arrhythmia – ventricular tachycardia or fibrillation",
        "no cyanosis and apneic episodes",
        "Denies seizures and unconscious spells",
        # records, such as the arguments of a tool for the GRACE score
        '{"cardiac_arrest": false, "st_deviation": true}',
        "{'killip_class': 1, 'cardiac_arrest': False}",
        '{"septic_shock": "none", "gcs": 15}',
        '{"cardiac_arrest_suspected": false}',
        '{"shock": null}',
        "calculate(cardiac_arrest=False)",
        "cardiac_arrest: false",
        "Fever: no, septic shock: no",
        "Symptoms: no fever, septic shock",
        '{"fever": "no", "septic_shock": "no"}',
    ],
)
def test_an_empty_box_an_answer_of_no_and_short_denials(text: str) -> None:
    assert list(find_alerts(text)) == []


# symptom-assist#107, github-profile-achievements#266
@pytest.mark.parametrize(
    "text",
    [
        "- Shock: ❌",
        "| Shock | ❌ |",
        "❌ Shock",
        "Shock (–)",
        "(−) loss of consciousness",
        "[-] loss of consciousness",
        "loss of consciousness -ve",
        "-ve for shock",
        "Ø shock",
        "w/out shock",
        "~~Cardiac tamponade~~",
        "- [ ] Shock\n- [x] Dehydration",
        "- [x] Dehydration\n- [ ] Shock",
        "**A. Septic shock** – Incorrect. BP is normal.",
        "Cardiac tamponade — unlikely, no JVD",
        "- septic shock ✗",
        "✅ Fever ❌ Shock",
        "✅ Fever, ❌ Septic shock",
        "Options: ~~septic shock~~, cardiogenic edema",
        "(-) unresponsive",
        "Shock: No",
        "| Shock | absent |",
        "STEMI (-)",
        "- ❌ Septic shock",
        "Shock: -ve",
        "ROS: (-) loss of consciousness, (-) apnea, (+) rhinorrhea",
        "ROS: (+) cough (-) loss of consciousness",
    ],
)
def test_a_sign_that_denies(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "✅ Shock ❌ Fever",
        '{"cardiac_arrest": true, "shock": false}',
        '{"fever": false, "septic_shock": "yes"}',
        "Shock: no false alarm",
        "✅ Septic shock",
        "- Septic shock ✅",
        "Septic shock\n❌ Fever",
        "- [ ] Treat septic shock\n- [x] Call ICU",
        "- [x] Septic shock\n- [ ] Dehydration",
        "~~pneumonia~~ septic shock",
        "Septic shock — no response to fluids",
        "Cardiac arrest — no pulse",
        "- [ ] Septic shock: start norepinephrine\n- [x] Cultures",
        "+ve for septic shock",
        "Fever ❌, septic shock ✅",
        "They've septic shock",
        "[ ] Shock",
        "Cardiac arrest — absent pulses, CPR started",
        "(+) septic shock (-) fever",
        "Septic shock\n(-) fever",
        "fever (-) septic shock (+)",
        "NSTEMI of high risk: septic shock",
        "High risk: septic shock",
        # a bad value
        "BP 70/40 ❌",
        "| BP | 68/40 | ❌ |",
        "MAP 52 ❌ target 65",
        "- ❌ SpO2 72%",
        "✅ HR 88\n❌ BP 68/40\n❌ SpO2 79%",
        # a sign of the next word
        "Septic shock ❌ Fever ✅",
        "Septic shock -ve blood cultures, on norepinephrine",
        "Unresponsive [-] gag",
        "Unresponsive (-) gag reflex",
        "BP 72/40 -ve fluid balance",
        "PEA arrest -ve for PE",
    ],
)
def test_a_sign_that_affirms_or_is_of_something_else(text: str) -> None:
    assert find_alert(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "[x] unresponsive [ ] alert",
        "☑ Septic shock ☐ Sepsis",
        "Anaphylaxis: [x] Yes [ ] No",
        "- [ ] Give antibiotics for the septic shock",
        "Patient [ ] found unresponsive",
        "[ ] unresponsive",
        "Septic shock [x] No response to fluids",
        "Cardiac arrest: N. Smith called at 10:00",
        "Cardiac arrest: no-flow time 5 min",
        "FAST: neg hemorrhagic shock on arrival",
        "Septic shock? Yes.",
        "Septic shock? No improvement after fluids.",
        "Septic shock (Y/N): Y",
        "FAST neg, in hemorrhagic shock",
        "Trop neg, STEMI on EKG",
        "Shock r/o sepsis",
        "c/f septic shock",
        "w/o response to fluids, septic shock",
        "Cannot r/o tension pneumothorax",
        "Can't r/o tamponade",
        "STEMI protocol activated.",
        "Anaphylaxis protocol initiated, epinephrine given.",
        "Malignant hyperthermia protocol was activated.",
        "Massive hemorrhage protocol activated.",
        "Fever: none, septic shock",
        "Chest pain: no, found unresponsive",
        '{"fever": "no", "diagnosis": "septic shock"}',
        '{"rash": "none", "state": "in cardiac arrest"}',
    ],
)
def test_what_only_looks_like_a_denial(text: str) -> None:
    assert find_alert(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "Epinephrine 0.3 mg IM PRN anaphylaxis",
        "Lorazepam PRN status epilepticus",
        "Glucagon PRN severe hypoglycemia",
        "Naloxone 0.4 mg IV PRN for RR <8 or unresponsive",
        "Return to ED for loss of consciousness, confusion, or vomiting",
        "Call 911 for unresponsiveness",
        "Go to the ER for: unresponsiveness, apnea, blue lips",
        "Discussed risks including bleeding, infection, cardiac arrest and death",
        "Patient was educated about anaphylaxis",
        "EpiPen prescribed for anaphylaxis",
        "Alarm limits: HR <30, SpO2 <80",
        "Titrate to MAP of 55",
        "STEMI protocol not activated.",
        "The anaphylaxis protocol is posted in the hall.",
    ],
)
def test_an_order_for_later_advice_a_consent_or_a_target(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "Lorazepam 2 mg IV PRN given for status epilepticus",
        "Morphine PRN, now in septic shock.",
        "Called 911 for unresponsiveness at 14:00",
        "Returned to ED for septic shock",
        "Escalated to ICU for septic shock",
        "Epinephrine given for anaphylaxis",
        "EpiPen given for anaphylaxis",
        "He was intubated for GCS < 8.",
        "Alarm: HR 22",
        "Norepinephrine titrated, MAP 45",
        "PRN lorazepam for status epilepticus given",
        "Received PRN naloxone for unresponsiveness",
        "On PRN albuterol in respiratory failure",
        "On oxycodone prn found unresponsive",
        "Received haloperidol prn then unresponsive",
        "Epinephrine prn for anaphylaxis: patient in anaphylaxis now",
        "Referred to hospital, go to ED with STEMI.",
        "Unable to speak, go to ED for STEMI",
        "Call 911 for this patient in septic shock",
        "Discussed risks including bleeding, patient in cardiac arrest",
    ],
)
def test_what_was_done_for_a_danger(text: str) -> None:
    assert find_alert(text) is not None


# Headings of public reports: openmed#1813, edsnlp#219, mimic-code#729, smartChart#12.


@pytest.mark.parametrize(
    "text",
    [
        "Past Medical History:\n1. Cardiac arrest\n2. Hypertension\n3. Status epilepticus",
        "**PMH**\n* Cardiac arrest\n* DM2",
        "Family history: \n* sudden cardiac arrest (father)",
        "ALLERGIES:\n1. Shellfish - anaphylaxis",
        "**Potential complications:**\n- Cardiac arrest\n- Respiratory failure\n- Septic shock",
        "Risks of the procedure:\n- Respiratory failure\n- Cardiac arrest\n- Death",
        "Return precautions:\n- Loss of consciousness\n- Shock",
        "Call 911 if:\n• loss of consciousness\n• unresponsive",
        "Watch for:\n1. Anaphylaxis\n2. Shock",
        "Escalation criteria:\n- SpO2 < 80%\n- SBP < 80",
        "Notify MD for:\n- SBP < 80\n- SpO2 < 85",
        "Denies:\n- loss of consciousness\n- apnea",
        "No signs of:\n- shock\n- respiratory failure",
        "**Ruled out:**\n- Tension pneumothorax",
        "Less likely diagnoses:\n- tension pneumothorax",
        "Resolved Problems:\n* Septic shock",
        "## Past Medical History\n\n- Cardiac arrest",
        "Past Medical History:\n  * HTN\n  * DM\n  * septic shock",
        "Past Medical History:\nCardiac arrest, HTN",
        "Drug allergies:\n- Penicillin (anaphylaxis)",
        "The patient denies any of the following:\n- apnea\n- loss of consciousness",
        "Seek immediate medical care if you have any of the following:\n- loss of consciousness",
        "Negative for:\n- shock",
        "Not present:\n- shock",
        "Risks include:\n- cardiac arrest",
        "Possible complications of the procedure include:\n- cardiac arrest",
        "Monitor closely for signs of:\n- septic shock",
        "- PMH:\n  - cardiac arrest",
        "Risks and benefits of lumbar puncture were discussed:\n- brain herniation",
        "## Family History\n- Father: cardiac arrest at 45\n- Mother: stroke",
        "3. **Past Medical History:**\n   - Cardiac arrest",
        "When to call 911:\n- loss of consciousness",
        "Patient denies:\n1) loss of consciousness\n2) apnea",
        "Call parameters:\n- SBP < 80 or > 180\n- SpO2 < 80%",
        "2) Past medical history:\n- cardiac arrest",
        "Patient does not have:\n- loss of consciousness",
        "Return immediately for:\n- loss of consciousness",
        "Surgical risks:\n- cardiac arrest",
        "Complications to watch for:\n1. Septic shock\n2. Respiratory failure",
        "Diagnoses considered and excluded:\n- septic shock",
    ],
)
def test_a_list_under_a_heading_that_denies_it(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "Active problems:\n1. Septic shock",
        "Assessment:\n1. Cardiogenic shock",
        "Past Medical History:\n1. COPD\nHPI: found unresponsive, GCS 3",
        "Past Medical History:\n1. COPD\n\nFound unresponsive",
        "Past Medical History:\n- COPD\n- found unresponsive today",
        "Denies:\n- SpO2 70%",
        "Past Medical History:\n1. COPD\n## Assessment\n1. Septic shock",
        "Past Medical History:\n- COPD\n- Active problems:\n  - septic shock",
        "History of present illness:\n- cardiac arrest",
        "High-risk patient presenting with:\n- septic shock",
        "Reason tPA was not given:\n- coma",
        "Patient with a history of COPD presents with:\n- cardiac arrest",
        "Called 911 for:\n- unresponsiveness",
        "Patient admitted because of possible sepsis:\n- septic shock",
        "Problems:\n- septic shock",
        "Complications:\n- cardiac arrest",
        "Red flags:\n- hemodynamic instability",
        "Criteria met:\n- septic shock",
        "Medical problems:\n- septic shock",
        "Denies pain.\n- Cardiac arrest at 10:00",
        "No bystander CPR:\n- asystole",
        "Call 911. Patient:\n- in cardiac arrest",
        "PMH:\n- COPD. Now in cardiac arrest",
        "Reasons for the call:\n- septic shock",
        "Vitals if available:\n- septic shock",
        "Risk factors:\n- septic shock",
        "Findings not explained by sepsis:\n- septic shock",
        "No improvement despite:\n- septic shock",
        "Immediate life threats:\n- Tension pneumothorax",
        "Triggers:\n- septic shock",
        # an answer at the end of a heading
        "**Hemodynamically stable: No**\n- Septic shock on 3 pressors",
        "### Is the patient stable? No\n- Septic shock",
        "**Response to fluids: absent**\n- refractory septic shock",
        "## Stable: not at this time\n1. Cardiogenic shock",
        "**Does the patient need ICU? Not excluded**\n- septic shock",
        "Stable for transfer?\n**No**\n- septic shock",
        "Diagnoses not excluded:\n- septic shock",
        # orders and handovers
        "Seek cardiology for:\n- cardiogenic shock",
        "Return to OR for:\n- Hemorrhagic shock from anastomotic bleed",
        "Notify attending for:\n1. Septic shock\n2. Respiratory failure",
        "Go to cath lab for:\n- cardiogenic shock",
        "Prepare the trauma bay for:\n- 25M, GSW chest, PEA arrest",
        "Evaluate for:\n- 45F septic shock in bed 3",
        # no history to be had
        "Past Medical History:\nUnable to obtain due to unresponsiveness",
        "Allergies:\n- Unknown (patient unresponsive)",
        "## Family history\nNot obtainable, patient unresponsive",
        "## Past medical history\nUnknown, unresponsive at presentation",
        # another list, or a statement about the present
        "Past Medical History:\n- HTN\n- DM\n\n1. Septic shock - start norepinephrine\n2. AKI",
        "PMH:\n- COPD\n\n- Septic shock from pneumonia",
        "Past medical history:\n- Hypertension\n- Septic shock, currently on norepinephrine",
        "Previous issues:\n- Septic shock, ongoing",
        "Past and active problems:\n- septic shock",
        "## Potential complications\nSeptic shock has occurred.",
        "Immediate risk:\n- tension pneumothorax",
        "Patients at highest risk:\n- Bed 3 septic shock",
        "Family history:\nFather died. Patient in septic shock",
        "Past medical history:\nHer symptoms improved with treatment of her septic shock.",
        "PMH:\n- Myocardial infarction in shock; activate the catheter laboratory.",
        "Risks:\n- With the vital signs fluctuating severely, CPR was intermittently continued",
        "Potential complications:\nEvaluation of the emerging shock revealed heart failure",
        "Biggest risk:\n- airway loss: stridor, respiratory arrest",
        "Risks: septic shock has developed",
    ],
)
def test_a_list_under_another_heading_or_beyond_its_end(text: str) -> None:
    assert find_alert(text) is not None


@pytest.mark.sweep
@pytest.mark.parametrize(
    "piece",
    [
        "no CT because ",
        "[ ] shock ",
        "prn for shock, ",
        "shock? ",
        "pupils not ",
        "no K 7 => ",
        "\n- shock",
        "~~shock ❌ ",
        "Denies:\n- shock\n",
        "BP (goal ",
        "K 7 -> ",
        "bp 110 -> 9 ",
        "a/a K ",
        "K /" + "a+" * 25_000,
        "BP seventy over ",
        "SpO2|",
        "SpO2|\n7|\n",
        "BP|" * 3_000 + "\n" + "|\n" * 5_000,
    ],
)
def test_a_long_text_takes_no_more_than_linear_time(piece: str) -> None:
    text = piece * max(20_000 // len(piece), 1)
    start = time.process_time()
    find_alert(text)
    assert time.process_time() - start < 5
