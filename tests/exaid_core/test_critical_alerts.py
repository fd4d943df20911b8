"""Which words are an alert, and which only look like one."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exaid_core.checks.alerts import alerts_of_chunk, find_alert, find_alerts, mentions_alert
from exaid_core.checks.cue_files import normal, read_cues
from exaid_core.checks.cue_finder import CueFinder
from tests.support.medical_prose import SENTENCES


@pytest.mark.parametrize(
    ("text", "alert"),
    [
        # arrest
        ("The patient is in cardiac arrest.", "cardiac arrest"),
        ("CARDIAC ARREST!", "CARDIAC ARREST"),
        ("cardiac\n arrest", "cardiac arrest"),
        ("**Cardiac** arrest", "Cardiac** arrest"),
        ("cardio-respiratory arrest call", "cardio-respiratory arrest"),
        ("Cardiorespiratory arrest", "Cardiorespiratory arrest"),
        ("respiratory arrest at 10:05", "respiratory arrest"),
        ("Team called code blue", "code blue"),
        ("There is no pulse", "no pulse"),
        ("no palpable pulse and not breathing", "no palpable pulse"),
        ("He is not breathing", "not breathing"),
        ("She isn’t breathing", "isn't breathing"),
        ("no longer breathing", "no longer breathing"),
        ("absence of a carotid pulse", "absence of a carotid pulse"),
        ("When they found him unresponsive, CPR was begun", "unresponsive"),
        ("pulseless VT", "pulseless VT"),
        ("found pulseless", "pulseless"),
        ("monitor shows asystole", "asystole"),
        ("rhythm is VF", "VF"),
        ("V-fib on the monitor", "V-fib"),
        ("ventricular fibrillation", "ventricular fibrillation"),
        ("torsades de pointes", "torsades de pointes"),
        ("CPR in progress", "CPR in progress"),
        ("started chest compressions", "started chest compressions"),
        # airway and breathing
        ("apnoea for 30 s", "apnoea"),
        ("He became apneic", "apneic"),
        ("We have lost the airway", "lost the airway"),
        ("loss of airway", "loss of airway"),
        ("upper airway obstruction", "airway obstruction"),
        ("Cannot intubate, cannot oxygenate", "Cannot intubate"),
        ("can’t ventilate", "can't ventilate"),
        ("tension-pneumothorax", "tension-pneumothorax"),
        ("severe hypoxia", "severe hypoxia"),
        ("severe hypoxaemia", "severe hypoxaemia"),
        # circulation
        ("anaphylaxis to ceftriaxone", "anaphylaxis"),
        ("anaphylactic shock", "anaphylactic shock"),
        ("septic shock, lactate 6", "septic shock"),
        ("haemorrhagic shock", "haemorrhagic shock"),
        ("hemorrhagic shock", "hemorrhagic shock"),
        ("massive haemorrhage", "massive haemorrhage"),
        ("massive upper bleeding", "massive upper bleeding"),
        ("the patient is exsanguinating", "exsanguinating"),
        ("cardiac tamponade", "cardiac tamponade"),
        ("anterior STEMI", "STEMI"),
        ("eclampsia", "eclampsia"),
        # brain
        ("status epilepticus", "status epilepticus"),
        ("now unresponsive", "unresponsive"),
        ("unresponsive to pain", "unresponsive"),
        ("uncal herniation", "uncal herniation"),
        ("fixed, pupils fixed and dilated", "pupils fixed and dilated"),
        ("acute ischemic stroke", "acute ischemic stroke"),
        # vital signs
        ("SpO2 78%", "SpO2 78"),
        ("SpO₂ of 78 %", "SpO2 of 78"),
        ("oxygen saturation fell to 72%", "oxygen saturation fell to 72"),
        ("SpO2 fell from 95% to 70%", "SpO2 fell from 95% to 70"),
        ("SpO2 95 → 78", "SpO2 95 → 78"),
        ("sats 70-75% on 15 L", "sats 70-75"),
        ("SpO2 < 80%", "SpO2 < 80"),
        ("SpO2 <85%", "SpO2 <85"),
        ("GCS 3", "GCS 3"),
        ("GCS of 6/15", "GCS of 6"),
        ("GCS 3–8", "GCS 3–8"),
        ("GCS ≤ 8", "GCS ≤ 8"),
        ("GCS < 9", "GCS < 9"),
        ("BP 60/40 mmHg", "BP 60/40"),
        ("blood pressure is 65/30", "blood pressure is 65/30"),
        ("systolic BP < 70", "systolic BP < 70"),
        ("SBP 62 mmHg", "SBP 62"),
        ("BP 65 systolic", "BP 65 systolic"),
        ("K+ 7.1 mmol/L", "K+ 7.1"),
        ("K⁺ ≥ 6.5", "K+ ≥ 6.5"),
        ("potassium of 6.9", "potassium of 6.9"),
        ("potassium rose from 4.1 to 7.0", "potassium rose from 4.1 to 7.0"),
        ("potassium level was found to be 7.4", "potassium level was found to be 7.4"),
        ("sats in the 70s", "sats in the 70"),
        ("arterial pH 6.9", "arterial pH 6.9"),
        ("He is saturating at 74% on 15 L.", "saturating at 74"),
        ("SpO2 dropped to as low as 70%", "SpO2 dropped to as low as 70"),
        ("hypotension (61/40 mmHg)", "hypotension (61/40"),
        ("BP was 80/50", "BP was 80/50"),
        ("respiratory rate of 6/min", "respiratory rate of 6"),
        ("blood pressure was unrecordable", "blood pressure was unrecordable"),
        ("arterial blood gas: pH 6.9", "pH 6.9"),
        # states
        ("He was found unconscious on the floor.", "unconscious"),
        ("She is in a deep coma", "deep coma"),
        ("The patient arrested.", "patient arrested"),
        ("CPR was started", "CPR was started"),
        ("absent respiratory efforts", "absent respiratory efforts"),
        ("A patient went into shock immediately after delivery.", "shock"),
        ("You cannot find a pulse", "cannot find a pulse"),
        ("required emergent intubation", "required emergent intubation"),
        ("The most likely diagnosis is a tension pneumothorax.", "tension pneumothorax"),
        # looks like a denial but is not one
        ("not only anaphylaxis but also asthma", "anaphylaxis"),
        ("There is no doubt: septic shock", "septic shock"),
        ("No response to adrenaline, asystole persists", "asystole"),
        ("Without warning, the patient went into cardiac arrest", "cardiac arrest"),
        ("Tension pneumothorax cannot be ruled out", "Tension pneumothorax"),
        ("We cannot exclude cardiac tamponade", "cardiac tamponade"),
        ("Anaphylaxis is not excluded", "Anaphylaxis"),
        ("Cardiac arrest has not been ruled out yet", "Cardiac arrest"),
        ("No fever. Cardiac arrest at 10:00", "Cardiac arrest"),
        ("No fever; cardiac arrest", "cardiac arrest"),
        ("No fever\ncardiac arrest", "cardiac arrest"),
        ("No fever but septic shock", "septic shock"),
        ("No fever.Cardiac arrest now", "Cardiac arrest"),
        ("No fever; however, septic shock", "septic shock"),
        ("No fever, cardiac arrest occurred", "cardiac arrest"),
        ("No fever, then he developed anaphylaxis", "anaphylaxis"),
        ("He denied pain and is now unresponsive", "unresponsive"),
        ("History of hypertension, presents with septic shock", "septic shock"),
        ("History of presenting complaint: cardiac arrest", "cardiac arrest"),
        ("Previously well, cardiac arrest at home", "cardiac arrest"),
        ("Cardiac arrest 2 hours ago", "Cardiac arrest"),
        ("Suspected anaphylaxis", "anaphylaxis"),
        ("Mother brought him in cardiac arrest", "cardiac arrest"),
        ("Anaphylaxis is not improving", "Anaphylaxis"),
        ("At risk of bleeding and is now in haemorrhagic shock", "haemorrhagic shock"),
        ("Cardiac arrest -- called at 10:00", "Cardiac arrest"),
        ("Asystole - adrenaline given", "Asystole"),
        # words of charts and reports
        ("He coded in the hallway", "He coded"),
        ("The patient codes upon arrival", "patient codes"),
        ("CPR was administered for an hour", "CPR was administered"),
        ("He was defibrillated three times", "defibrillated"),
        ("She is barely responsive.", "barely responsive"),
        ("He responds only to painful stimuli", "responds only to painful"),
        ("She was hypotensive, requiring norepinephrine", "hypotensive, requiring norepinephrine"),
        ("Criteria are consistent with ARDS.", "ARDS"),
        ("She developed multiorgan failure.", "multiorgan failure"),
        ("He is pulseless with cold extremities", "pulseless"),
        ("The mother suffered respiratory arrest", "respiratory arrest"),
        # a condition or denial elsewhere in the sentence
        ("If we do not act within minutes she will die: she is in shock.", "shock"),
        # vital signs of other forms
        ("MAP of 45 mmHg", "MAP of 45"),
        ("mean arterial pressure fell to 40 mmHg", "mean arterial pressure fell to 40"),
        ("heart rate of 22/min", "heart rate of 22"),
        ("GCS E1V1M1", "GCS E1V1M1"),
        ("Glasgow coma scale (GCS) was E1 VT M3", "GCS) was E1 VT M3"),
        ("His blood pressure drops to 80/58, pulse up to 140.", "blood pressure drops to 80/58"),
        ("BP plummeted from 198/100 mmHg to 80/60 mmHg", "BP plummeted from 198/100 mmHg to 80/60"),
        # the first that is affirmed
        ("No cardiac arrest. Anaphylaxis. Septic shock.", "Anaphylaxis"),
        ("Not asystole but VF", "VF"),
        ("SpO2 97%, later SpO2 71%", "SpO2 71"),
        (
            "The fits do not stop with diazepam: status epilepticus.",
            "status epilepticus",
        ),
        ("He did not respond to fluids: septic shock.", "septic shock"),
        ("SpO2 is still only 78 %.", "SpO2 is still only 78"),
        ("Cardiac arrest: non shockable rhythm.", "Cardiac arrest"),
        ("Respiratory arrest - non invasive ventilation started.", "Respiratory arrest"),
    ],
)
def test_an_alert(text: str, alert: str) -> None:
    assert find_alert(text) == alert


@pytest.mark.parametrize(
    "text",
    [
        "",
        # denied
        "no evidence of cardiac arrest",
        "No signs of septic shock, cardiac tamponade or tension pneumothorax",
        "denies chest pain, syncope, cardiac arrest",
        "without anaphylaxis",
        "Cardiac arrest was ruled out",
        "Cardiac arrest has been safely excluded",
        "ruled out: tension pneumothorax",
        "Tension pneumothorax is unlikely",
        "unlikely to be anaphylaxis",
        "This isn't anaphylaxis",
        "The patient is not in cardiac arrest",
        "not yet in septic shock",
        "He never had ventricular fibrillation",
        "neither asystole nor VF",
        "absence of septic shock",
        "Cardiac arrest: none",
        "Anaphylaxis: no",
        "Anaphylaxis (none)",
        "Anaphylaxis did not occur",
        "Anaphylaxis didn't develop",
        "Septic shock is considered less likely",
        "sepsis rather than septic shock",
        "no e.g. cardiac arrest",
        "Anaphylaxis has resolved",
        # feared
        "if cardiac arrest occurs, call",
        "If the patient worsens and develops cardiac arrest, call",
        "should anaphylaxis occur",
        "in case of anaphylaxis give adrenaline",
        "in the event of cardiac arrest",
        "risk of cardiac arrest",
        "at risk for septic shock",
        "to prevent cardiac arrest",
        "to avoid massive haemorrhage",
        "could lead to cardiac arrest",
        "may progress to septic shock",
        "Anaphylaxis may occur",
        "watch for apnoea",
        "monitor for anaphylaxis",
        "anaphylaxis precautions",
        "cardiac arrest protocol",
        "patients with septic shock need fluids",
        "when anaphylaxis occurs",
        "if SpO2 < 80%",
        # past, or another person
        "history of cardiac arrest 3 years ago",
        "cardiac arrest 3 years ago",
        "Cardiac arrest in 2015",
        "cardiac arrest (2 months ago)",
        "family history of cardiac arrest",
        "His father had cardiac arrest at 40",
        "h/o status epilepticus",
        "previous anaphylaxis",
        "Allergies: penicillin (anaphylaxis)",
        "BP was 60/40, now 120/80",
        "her sibling died of cardiac arrest",
        # knowledge, not a patient
        "Alteplase is a thrombolytic agent used in acute ischemic stroke.",
        "The pattern of inheritance for malignant hyperthermia is autosomal dominant.",
        "Uncontrolled hemorrhage is the leading cause of fatality.",
        "In hypovolemic shock, vascular resistance may increase.",
        "Clark et al. describe a type of anaphylactic shock in their patients.",
        "Options: (A) Cardiac tamponade (B) Tension pneumothorax",
        "A patient with anaphylactic shock should receive epinephrine.",
        "In cardiac arrest, the patient should immediately receive epinephrine.",
        "In septic shock, norepinephrine is first line.",
        "Definitive treatment of cardiac tamponade is achieved by drainage.",
        "When a baby experiences apnea, oxygen falls.",
        "For cardiogenic shock, add dobutamine.",
        "You ask yourself whether he is in shock.",
        # other things
        "The left leg is pulseless.",
        "The foot was cold, pale and pulseless.",
        "Fetal heart arrest of descent",
        "hypothermic circulatory arrest",
        "medically induced coma",
        "recovered from septic shock",
        "post-cardiac arrest care",
        "MAP target of 50 mmHg",
        "MAP 70 mmHg",
        "GCS E4V5M6",
        "no pulse in the left arm",
        "non-sustained ventricular tachycardia",
        "converted by a DC shock",
        "unconscious bias",
        "coma scale",
        "uterine tamponade balloon",
        "sleep apnoea",
        "obstructive sleep apnea",
        "apnea-hypopnea index 30",
        "disc herniation",
        "growth arrest",
        "arrest of labour",
        "no pulse deficit",
        "The lesion is unresponsive to antibiotics",
        "NSTEMI",
        "non-STEMI",
        "non-ST-elevation myocardial infarction",
        "pre-eclampsia",
        "preeclampsia",
        "VF defect on perimetry",
        "vf in lower case",
        "reversible airway obstruction",
        "defibrillation pads",
        "atrial fibrillation",
        "cardiac arrests",
        # vital signs that are not dangerous, or no vital signs
        "SpO2 92%",
        "SpO2 target 88-92%",
        "SpO2 > 80%",
        "SpO2 above 80",
        "SpO2 < 90%",
        "SpO2 70-90%",
        "PaO2 60 mmHg",
        "transferrin saturation 20%",
        "central venous oxygen saturation 65%",
        "SpO2 measured 80 mmHg",
        "GCS 15",
        "GCS 3-15",
        "GCS 15/15",
        "GCS > 8",
        "BP 120/60",
        "BP drop of 20/10",
        "SBP decreased by 20",
        "systolic 2/6 murmur",
        "K+ 4.5",
        "K+ < 6.5",
        "K 3.5-7.0",
        "right ventricular systolic pressure of 21 mmHg",
        "pulmonary artery systolic pressure 42",
        "target SpO2 80%",
        "RR 2.3 (95% CI 1.1 to 4.0)",
        "vitamin K 10 mg",
        "vitamin K 7 mg",
        "potassium 40 mEq",
        "potassium chloride 8 mEq",
        "potassium 8 mEq IV",
        "urine pH 6.5",
        "arterial pH 7.35",
        "SpO2 780",
        "PA 45/20 mmHg, wedge 12.",
        "RR 28/12.",
        "HA 25/30 days.",
        "Modified Glasgow score 4 predicts severe pancreatitis.",
        "Glasgow 5-year survival.",
    ],
)
def test_no_alert(text: str) -> None:
    assert find_alert(text) is None


@pytest.mark.parametrize("sentence", SENTENCES)
def test_ordinary_prose_is_no_alert(sentence: str) -> None:
    assert find_alert(sentence) is None


@pytest.mark.sweep
@given(st.text(max_size=200), st.sampled_from([".\n", "; ", "\n\n", "! "]))
def test_nothing_before_a_new_clause_hides_an_alert(text: str, end: str) -> None:
    assert find_alert(f"{text}{end}Patient is in cardiac arrest now") is not None


@given(st.text(st.characters(exclude_characters="\n.;!?"), max_size=60))
def test_any_text_can_be_searched(text: str) -> None:
    alert = find_alert(text)
    assert alert is None or alert == " ".join(alert.split())


def test_all_alerts_come_in_order_and_once() -> None:
    text = (
        "Cardiac arrest at 10:00. No anaphylaxis. SpO2 71%, systolic BP 60/40. "
        "After the CARDIAC  ARREST: septic shock."
    )
    assert list(find_alerts(text)) == [
        "Cardiac arrest",
        "SpO2 71",
        "systolic BP 60",
        "septic shock",
    ]
    assert list(find_alerts("No cardiac arrest")) == []


@pytest.mark.sweep
@given(st.lists(st.sampled_from([*SENTENCES, "Septic shock.", "No asystole.", "GCS 3;"])))
def test_the_first_alert_is_the_first_of_all(sentences: list[str]) -> None:
    text = "\n".join(sentences)
    assert find_alert(text) == next(find_alerts(text), None)


@pytest.mark.parametrize(
    ("summary", "alert"),
    [
        ("Cardiac arrest at 10:00.", "cardiac arrest"),
        ("CPR after the ARREST (cardiac)", "cardiac arrest"),
        ("Airway was lost during induction", "lost the airway"),
        ("Now in septic shock", "cardiac arrest"),  # sends the reader to the trace as well
        ("GCS dropped, now 3 points", "GCS of 3"),
        ("Saturation by SpO₂ 78 after 95", "SpO2 fell from 95% to 78"),
    ],
)
def test_a_summary_that_mentions_an_alert(summary: str, alert: str) -> None:
    assert mentions_alert(summary, alert)


@pytest.mark.parametrize(
    ("summary", "alert"),
    [
        ("", "cardiac arrest"),
        ("None reported.", "cardiac arrest"),
        ("Cardiac until exclud…", "cardiac arrest"),
        ("Cardiac enzymes raised", "cardiac arrest"),
        ("Pulse regular", "no pulse"),
        ("SpO2 98 %", "SpO2 78"),
        ("SpO2 178", "SpO2 78"),
        ("Stable", "…"),
        ("Cardiac arrest was ruled out.", "cardiac arrest"),
        ("Stable; no cardiac arrest.", "cardiac arrest"),
    ],
)
def test_a_summary_that_does_not_mention_an_alert(summary: str, alert: str) -> None:
    assert not mentions_alert(summary, alert)


@given(st.text(max_size=60))
@example("NO:CARDIAC ARREST")
def test_words_mention_themselves_unless_they_deny_an_alert(text: str) -> None:
    summary = f"Seen: {text} (falling)."
    phrases = CueFinder(read_cues("alerts")).find(normal(summary))
    denies = any(found.cue.kind != "none" for found in phrases) and find_alert(summary) is None
    assert mentions_alert(summary, f"falling {text}") is not denies


@pytest.mark.parametrize(
    ("text", "alerts"),
    [
        ("BP dropped from 120/80 to 65/40 mmHg.", ["BP dropped from 120/80 to 65/40"]),
        ("BP 60/palp", ["BP 60/palp"]),
        ("BP 70/p, pulse thready", ["BP 70/p"]),
        ("BP 68/doppler", ["BP 68/doppler"]),
        ("K+ came back at 7.4", ["K+ came back at 7.4"]),
        ("K+ came back at 4.4", []),
        ("There is no question that he is in cardiac arrest.", ["cardiac arrest"]),
        ("BP was 70/40 on arrival; after fluids it is 125/80.", []),
        ("Ankle systolic pressure of 60 mmHg (ABI 0.4)", []),
        ("Option B (septic shock) is wrong because the lactate is normal.", []),
        ("Septic shock is a common cause of death. The patient is in shock.", ["shock"]),
    ],
)
def test_values_that_change_and_sentences_about_options(text: str, alerts: list[str]) -> None:
    assert list(find_alerts(text)) == alerts


@pytest.mark.parametrize(
    "text",
    [
        "No chest pain, SpO2 70%",
        "No fever, cough or rash, SpO2 70% on air.",
        "No known allergies, BP 60/40 mmHg, K 7.1.",
        "No fever, HR 25, BP 60/30, GCS 3.",
        "She has no allergies, her SpO2 is 70%.",
        "Afebrile, no cough, SpO2 72%, HR 130.",
        "no chest pain and SpO2 70%",
        "The abdomen is not distended, GCS 5.",
        "No trauma, in cardiac arrest.",
        "No fever, comatose.",
        "Denies chest pain, unresponsive on arrival.",
        "HR 25 bpm",
        "HR: 22",
        "HR 24/min",
        "Pulse: 20/min",
        "His pulse was 22 beats per minute.",
        "bradycardic at 24",
        "Severe bradycardia, HR 24.",
        "heart rate 25",
    ],
)
def test_a_list_of_denials_ends_at_a_value_or_a_state(text: str) -> None:
    assert find_alert(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "No hypotension, seizures or cardiac arrest.",
        "No fever, cough, chest pain, shock or cardiac arrest.",
        "SpO2 was 70%, later 98%",
        "potassium 7.2 was hemolyzed, repeat 4.1",
        "Pulse pressure 25 mmHg",
        "pulse ox 98%",
        "Pulses 2+ bilaterally",
        "HR 2.5 (95% CI 1.2-4.4)",
        "not comatose, unresponsive or apneic",
        "no loss of consciousness, seizures, shock",
        "HR 72, pulse 88",
        "He denies shortness of breath, syncope, cardiac arrest.",
        "Monitor for bradycardia, HR < 30.",
        "No episodes of SpO2 below 80%.",
        "Without hypotension (BP 60/40 before fluids), comfortable",
        "HR fell by 20",
        "pulse is 120 and 25 years old",
    ],
)
def test_a_denied_later_or_other_value_is_no_alert(text: str) -> None:
    assert find_alert(text) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("BP 70/40, no urine output.", "BP 70/40"),
        ("Septic shock, no urine output for 6 h.", "Septic shock"),
        ("Cardiac arrest, no ROSC after 20 min.", "Cardiac arrest"),
        ("Tension pneumothorax: no breath sounds on the left.", "Tension pneumothorax"),
        ("No pulse, no respirations.", "No pulse"),
        ("| cardiac arrest | no ROSC |", "cardiac arrest"),
        ("Risk of aspiration, GCS 5.", "GCS 5"),
        ("Prepare for intubation, SpO2 68%.", "SpO2 68"),
        ("Avoid morphine because RR 5.", "RR 5"),
        ("I would not call this stable: SpO2 77%.", "SpO2 77"),
        ("Target SBP 90. SBP 62 now.", "SBP 62"),
        ("MAP goal 65, MAP now 48.", "MAP now 48"),
        ("BP 120/70 on arrival, then 68/40.", "BP 120/70 on arrival, then 68/40"),
        ("GCS 14 on arrival, now 6.", "GCS 14 on arrival, now 6"),
        ("SpO2 was 97% and is now 72%.", "SpO2 was 97% and is now 72"),
        ("NIBP 65/35", "NIBP 65/35"),
        ("BP 70s/40s despite pressors", "BP 70s/40"),
        ("MAPs in the 40s", "MAPs in the 40"),
        ("She meets criteria for septic shock.", "septic shock"),
        ("satting 74% on room air", "satting 74"),
        ("SpO2 on 2 L: 74%", "SpO2 on 2 L: 74"),
        ("BP in the right arm 62/34", "BP in the right arm 62/34"),
        ("Silent chest, exhausted.", "Silent chest"),
        ("I cannot get a pulse.", "cannot get a pulse"),
        ("He has been seizing for 25 minutes.", "has been seizing"),
        ("He was intubated for GCS < 8.", "GCS < 8"),
        ("The heart rate was in the 20s and he was grey.", "heart rate was in the 20"),
        ("HR 25 min-1", "HR 25"),
        ("HR 26 secondary to complete heart block", "HR 26"),
        ("Heart rate 25 second degree block", "Heart rate 25"),
        ("GCS 14, dropped to 6 s/p fall", "GCS 14, dropped to 6"),
        ("Cardiac arrest at age 67, today", "Cardiac arrest"),
        ("He was dialyzed for K > 7.0.", "K > 7.0"),
        ("The parameters worsened, SpO2 below 80% now.", "SpO2 below 80"),
        ("A man had cardiac arrest at age 67 this morning.", "cardiac arrest"),
        ("Newborn: anaphylaxis at age 2 days, ongoing.", "anaphylaxis"),
    ],
)
def test_a_danger_beside_a_denial_a_fear_a_target_or_an_earlier_value(
    text: str, found: str
) -> None:
    assert found in find_alerts(text)


@pytest.mark.parametrize(
    "text",
    [
        "Septic shock excluded by echo.",
        "Cardiac arrest: ruled out.",
        "Tamponade was absent.",
        "Without hypotension (BP 60/40 before fluids)",
        "Monitor for bradycardia, HR < 30",
        "Notify physician: MAP < 55.",
        "Hold for SBP < 80.",
        "Call parameters: SpO2 < 85%, RR < 8.",
        "Aim for SBP 80.",
        "Keep MAP 55.",
        "Father: STEMI at age 45",
        "Anaphylaxis at age 5",
        "GCS 14 on arrival, now 15",
        # https://github.com/jenojp/negspacy/issues/44, https://github.com/medspacy/medspacy/pull/49
        "Cardiac arrest: No",
        "septic shock:none",
        "Tamponade: none seen",
        "Tension pneumothorax: no evidence",
        "Tamponade excluded after echo",
        "STEMI ruled out today",
        "Septic shock unlikely with normal lactate",
        "Respiratory failure resolved after BiPAP",
        "| septic shock | no |",
        "BP 120/70, then 118/70",
        "SpO2 88% on 2 L",
        "Intubate for GCS < 8",
        "Intubation for GCS < 8",
        "Triggers for rapid response: SBP < 80",
        "Threshold for intubation is GCS < 8",
        "Brother: cardiac arrest at age 45",
        # The number behind the word is a time, a dose or a length.
        "GCS 15 on arrival, then 6 hours later he seized",
        "HR 88, now 12 weeks pregnant",
        "HR 72, then 15 min later normal",
        "HR 80 then 10 mg metoprolol",
        "Bradycardia on 12-lead ECG.",
        "Fetal bradycardia at 20 weeks.",
        "Bradycardia in 24 hours",
        "Hazard ratio: HR 12 (95% CI 3-40).",
        "pulse 12-week course of steroids",
    ],
)
def test_a_bound_of_an_order_a_target_or_what_is_excluded_is_no_alert(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("BP 118/70 at triage, 68/40 in CT.", "BP 118/70 at triage, 68/40"),
        ("BP 118/70 mmHg at triage; 68/40 mmHg in CT.", "BP 118/70 mmHg at triage; 68/40"),
        ("GCS 15 at scene, 6 on arrival.", "GCS 15 at scene, 6"),
        ("pH 7.30 at 08:00 and 6.92 at 10:00.", "pH 7.30 at 08:00 and 6.92"),
        ("K 5.1 at noon, 7.3 at 16:00.", "K 5.1 at noon, 7.3"),
        ("BP 110/70 -> 90/50 -> 64/38", "BP 110/70 -> 90/50 -> 64/38"),
        ("Systolic pressure went from 130 to 68.", "Systolic pressure went from 130 to 68"),
        ("SpO2 98% in triage; 71% on air in CT", "SpO2 98% in triage; 71"),
        ("HR 88 bpm at noon, 25 at 13:00", "HR 88 bpm at noon, 25"),
        ("SBP 120 at noon and 70 at 13:00", "SBP 120 at noon and 70"),
        # A value of another sign, place or time does not replace a dangerous one.
        ("SpO2 70%, BP now 120/80", "SpO2 70"),
        ("GCS 6 today, 15 at baseline", "GCS 6"),
        ("K 7.1, 4.2 last month", "K 7.1"),
    ],
)
def test_the_last_of_several_values_of_a_sign_counts(text: str, found: str) -> None:
    assert list(find_alerts(text)) == [found]


@pytest.mark.parametrize(
    "text",
    [
        "SpO2 was 72% on scene; 97% on 4 L now.",
        "K+ 6.8 on admission, 4.9 after dialysis.",
        "BP 70/40 on scene, 90/50 in the ambulance, 118/70 in the ward",
        "BP 64/38 -> 90/50 -> 120/70",
        "BP 140/80 in the right arm and 75/50 in the left arm",
        "BP 120/80, 20/40 vision",
        "BP 120/80, 25/30 on a memory test",
        "BP 120/80, 70/30 insulin",
        "GCS 15 on arrival, lactate 4 at 8, 6 at noon",
        "GCS 15, 4 in the family are ill",
        "RR 18, 6 on the pain scale",
        "SpO2 98%, Hb 7 at noon",
    ],
)
def test_a_dangerous_value_that_was_replaced_or_is_of_something_else_is_no_alert(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Blood pressure on admission was 70/40.", "Blood pressure on admission was 70/40"),
        ("Potassium concentration was 7.4 mmol/L.", "Potassium concentration was 7.4"),
        ("Potassium [mmol/L] 7.4", "Potassium [mmol/L] 7.4"),
        ("SpO2 (%): 72", "SpO2 (%): 72"),
        ("GCS (total): 6", "GCS (total): 6"),
        ("GCS before sedation: 5", "GCS before sedation: 5"),
        ("BP (mmHg): 68/42", "BP (mmHg): 68/42"),
        ("BP: ↓ 70/40", "BP: ↓ 70/40"),
        (
            "Oxygen saturation on high-flow nasal cannula was 72%.",
            "Oxygen saturation on high-flow nasal cannula was 72",
        ),
        ("BP after 2 L crystalloid: 64/38", "BP after 2 L crystalloid: 64/38"),
        ("BP after 500 mL bolus was 64/38", "BP after 500 mL bolus was 64/38"),
        ("BP despite 3 L remains 64/38", "BP despite 3 L remains 64/38"),
        ("BP via art line 64/38", "BP via art line 64/38"),
        ("MAP by arterial line 48", "MAP by arterial line 48"),
        ("SpO2 despite 15 L NRB is 72%", "SpO2 despite 15 L NRB is 72"),
        ("SpO2 on 15L via NRB 72%", "SpO2 on 15L via NRB 72"),
        ("SpO2 at triage 72%", "SpO2 at triage 72"),
        ("K+ on VBG 7.8", "K+ on VBG 7.8"),
        ("Potassium on admission 7.8 mmol/L", "Potassium on admission 7.8"),
        ("GCS at scene 5", "GCS at scene 5"),
    ],
)
def test_units_arrows_and_circumstances_before_a_value(text: str, found: str) -> None:
    assert list(find_alerts(text)) == [found]


@pytest.mark.parametrize(
    "text",
    [
        "Potassium (mmol/L): 4.1",
        "Blood pressure on admission was 118/70.",
        "Oxygen saturation in the pulmonary artery was 65%.",
        "Systolic pressure in the right ventricle was 21 mmHg",
        "GCS before heart rate 6",
        "BP after 2 L crystalloid: 110/70",
        "BP after 2 L goal 64/38",
        "SpO2 on 2 L remains 94%",
        "SpO2 with 4 L remains above 90",
        "GCS at scene 5 minutes after the fall was 15",
        "GCS on admission 5 days ago was 15",
        "GCS on admission 3-4 days ago was 15",
        "K on admission 7.8, now 4.1",
        "K on admission 7.8, at discharge 4.1",
        "Potassium on admission 7.8, corrected to 4.1",
        "GCS at presentation 7 yrs old",
        "GCS at triage 07:30 was 15",
        "RR on arrival 07:30 was 18",
        "RR on admission 7/12/2020 was 18",
        "He sat on the scene for 30 minutes",
    ],
)
def test_circumstances_before_a_harmless_or_another_value(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "Term newborn: BP 65/40, HR 145, RR 45.",
        "Preterm newborn, MAP 32 mmHg, appropriate for 28 weeks.",
        "Preterm newborn of 25 weeks: MAP 27 mmHg",
        "A one-day-old boy. His blood pressure is 58/37 mmHg.",
        "A 12-hour-old girl born to a 30-year-old woman. Blood pressure is 60/35.",
        "A 3-week-old girl with BP 65/40",
        "Day of life 3: MAP 33",
    ],
)
def test_a_normal_pressure_of_a_newborn_is_no_alert(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Term newborn: BP 40/20", "BP 40/20"),
        ("Newborn: MAP 29", "MAP 29"),
        ("Preterm newborn of 25 weeks: MAP 24 mmHg", "MAP 24"),
        ("A two-day-old boy, SpO2 70%", "SpO2 70"),
        ("A 29-year-old woman delivered a healthy newborn. BP 70/40.", "BP 70/40"),
        ("The newborn is well. The mother's BP is 70/40.", "BP is 70/40"),
        ("Preterm labor, BP 70/40", "BP 70/40"),
        ("A 5-week-old boy, BP 58/37", "BP 58/37"),
        ("A three-day-old wound, BP 70/40", "BP 70/40"),
    ],
)
def test_a_low_pressure_of_a_newborn_or_of_somebody_older(text: str, found: str) -> None:
    assert list(find_alerts(text)) == [found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Patient with a history of MI in cardiogenic shock.", "cardiogenic shock"),
        ("55M with hx of CHF, now in cardiogenic shock.", "cardiogenic shock"),
        ("A 6-year-old with a history of asthma in respiratory arrest", "respiratory arrest"),
        ("3 days after surgery she went into cardiac arrest.", "cardiac arrest"),
        ("5 days after delivery she became unresponsive.", "unresponsive"),
        ("2 weeks after discharge he presented in septic shock.", "septic shock"),
        ("Two months after surgery he went into cardiac arrest.", "cardiac arrest"),
        ("Avoid fluids: cardiogenic shock.", "cardiogenic shock"),
        ("Do not give beta-blockers: cardiogenic shock.", "cardiogenic shock"),
        ("Without oxygen his SpO2 is 74%.", "SpO2 is 74"),
        ("Without oxygen the SpO2 is 74%.", "SpO2 is 74"),
        ("Avoid intubation if possible, SpO2 72%.", "SpO2 72"),
        ("Given BP 74/40, nitrates should be avoided.", "BP 74/40"),
        ("Given his cardiogenic shock, nitrates should be avoided.", "cardiogenic shock"),
        ("I do not doubt septic shock.", "septic shock"),
        ("Little doubt that this is septic shock.", "septic shock"),
        ("s/p fall, unresponsive", "unresponsive"),
        ("Risk of aspiration, BP 110/70 -> 64/38", "BP 110/70 -> 64/38"),
        ("Acute on chronic hypoxic respiratory failure", "respiratory failure"),
        ("Severe reaction (anaphylaxis) in the ward", "anaphylaxis"),
    ],
)
def test_a_danger_beyond_the_object_of_a_cue(text: str, found: str) -> None:
    assert list(find_alerts(text)) == [found]


@pytest.mark.parametrize(
    "text",
    [
        "A history of STEMI in 2015",
        "Family history of MI in cardiogenic shock",
        "Father died of MI in cardiogenic shock",
        "3 days after the cardiac arrest he walks",
        "Two weeks after his cardiac arrest he walks",
        "2 days after resuscitation from a cardiac arrest he walks",
        "Avoid septic shock.",
        "Avoid the following: septic shock",
        "We do not see: septic shock, tamponade",
        "Avoid SpO2 below 80%",
        "Do not let SpO2 fall below 80%",
        "Do not accept SpO2 80%",
        "Avoid drops in BP to 70/40",
        "Without episodes of SpO2 70%",
        "Epinephrine if needed for anaphylaxis",
        "Low concern for septic shock.",
        "low probability of tension pneumothorax",
        "Doubt tamponade.",
        "Septic shock is less probable.",
        "CAD s/p STEMI",
        "s/p out-of-hospital cardiac arrest",
        "Chronic hypoxic respiratory failure on home O2 2 L.",
        "Chronic hypercapnic respiratory failure",
        "Reaction to penicillin: anaphylaxis.",
        "Penicillin (anaphylaxis), sulfa (rash)",
    ],
)
def test_the_object_of_a_cue_a_doubt_or_a_chronic_state_is_no_alert(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    ("before", "chunk", "alerts"),
    [
        ("", "He is in cardiac arrest.", ["cardiac arrest"]),
        ("The patient goes into cardiac", " arrest now.", ["cardiac arrest"]),
        ("He is in cardiac arrest.", " Chest compressions go on.", []),
        # Beside another alert, in either part.
        ("He is in septic shock. He goes into cardiac", " arrest now.", ["cardiac arrest"]),
        ("He goes into cardiac", " arrest. Septic shock too.", ["Septic shock", "cardiac arrest"]),
        # One that was told before is not told again because it grows.
        ("BP is 60", "/40 now.", ["BP is 60/40"]),
        ("He is in septic shock", " with a lactate of 4.", []),
        ("There is no sign of cardiac", " arrest.", []),
    ],
)
def test_alerts_of_a_chunk_include_one_that_began_before_it(
    before: str, chunk: str, alerts: list[str]
) -> None:
    assert list(alerts_of_chunk(before, chunk)) == alerts
