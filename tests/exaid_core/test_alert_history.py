"""Dangers of the past, of somebody else, or over by now, and today's beside them."""

from __future__ import annotations

import pytest

from exaid_core.checks.alerts import find_alert, find_alerts

# Patterns of public reports: openmed#306, #368, #2190 and #2466, medspacy#26 and #230, edsnlp#323.


@pytest.mark.parametrize(
    "text",
    [
        "65M h/o COPD p/w respiratory failure.",
        "65M with h/o COPD here with respiratory failure.",
        "65 yo M with PMH of CAD c/b VF arrest this morning",
        "PMH of CAD with cardiac arrest this morning",
        "Pt with history of CHF comes in with respiratory failure.",
        "Pt with h/o asthma, intubated for respiratory failure overnight.",
        "A man with a history of hypertension, cardiac arrest at home today.",
        "72M hx AAA, ruptured AAA on CT",
        "Pt is a 60 yo M w h/o EtOH abuse BIBA after being found down, unresponsive",
        "58F hx breast ca, tamponade on echo today",
        "history of atrial fibrillation transferred with massive PE",
        "Pt brought with h/o unresponsiveness since morning",
        "h/o consumption of poison, unconscious since 2 hours",
        "h/o massive hematemesis 2 hours back",
        "History of cardiac arrest 2 hours ago.",
        "Hx of asthma, apneic since morning",
        "s/p cardiac arrest since morning",
    ],
)
def test_an_event_of_today_behind_the_history(text: str) -> None:
    assert find_alert(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "A history of STEMI in 2015.",
        "history of septic shock and cardiac arrest.",
        "h/o cardiac arrest, STEMI and CHF",
        "PMH: COPD with respiratory failure in 2019",
        "history of cardiac arrest, admitted today with pneumonia",
        "PMHx: cardiac arrest (2018)",
        "PMHx significant for STEMI",
        "STEMI (PMH)",
        "STEMI 3/2015 s/p DES to LAD",
        "Cardiac arrest in March 2015",
        "Cardiac arrest 2 wks ago",
        "cardiac arrest 10 yrs ago",
        "Cardiac arrest (10y ago)",
        "resolved septic shock",
        "h/o unresponsiveness since childhood",
        "h/o apnea since 3 years",
        "h/o tamponade on echo",
        "VF arrest 2017 s/p ICD",
        "Old anterior STEMI",
    ],
)
def test_a_danger_of_the_past(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "Cardiac arrest 2 hrs ago",
        "Cardiac arrest 10 minutes ago",
        "Cardiac arrest at 3:15",
        "Cardiac arrest at 2015, ROSC 2022",  # times of the day
        "Cardiac arrest (10 min)",
        "Cardiac arrest on 3/4/2015 at 10:00",
        "STEMI on 11/29/2026 today",
        "Cardiac arrest in a boy 3 weeks old",
        "Cardiac arrest (2015), ROSC (2022)",
        "Cardiac arrest in a man in his 40s",
        "Patient admitted in shock in his 60s",
        "Septic shock 11/2026, now on norepinephrine",
        "Septic shock in November 2026",
        "PMHx HTN, septic shock",
        "Cardiac arrest at 2017 s/p ICD shock",
        "VF arrest 2017 s/p PCI",
        "85 year old anterior STEMI",
    ],
)
def test_a_danger_of_the_last_hours_or_days(text: str) -> None:
    assert find_alert(text) is not None


# openmed#368 and #2714
@pytest.mark.parametrize(
    "text",
    [
        "s/p VF arrest 20 min ago",
        "status post PEA arrest today",
        "s/p cardiac arrest this admission",
        "POD 1, s/p cardiac arrest this morning",
        "s/p witnessed cardiac arrest at 0600, intubated",
        "anoxic brain injury s/p cardiac arrest this admission",
        "s/p cardiac arrest 2 hours ago",
        "cardiac arrest 20 min ago",
        "s/p cardiac arrest at 06:00",
        "post cardiac arrest 30 minutes ago",
        "s/p out of hospital cardiac arrest overnight",
    ],
)
def test_an_event_of_today_behind_status_post(text: str) -> None:
    assert find_alert(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "s/p cardiac arrest 2012",
        "s/p cardiac arrest",
        "s/p cardiac arrest in 2015",
        "s/p VF arrest 3 years ago",
        "post-arrest care",
        "s/p cardiac arrest 2 months ago, here today for follow-up",
        "s/p cardiac arrest, admitted this morning for pneumonia",
        "His father had a cardiac arrest this morning",
        "survived cardiac arrest, here today",
        "Post-cardiac arrest patient extubated today",
        "s/p PEA arrest extubated overnight",
        "Status post cardiac arrest with ICD placement today",
        "Post-anaphylaxis teaching done today.",
    ],
)
def test_an_event_of_another_day_behind_status_post(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "The other driver was unresponsive at the scene",
        "Witnessed his friend's cardiac arrest",
        "Paternal uncle - cardiac arrest at 40",
        "Maternal grandmother: eclampsia",
    ],
)
def test_a_danger_of_somebody_else(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "Daughter found him unresponsive.",
        "Wife says her husband has been unresponsive",
        "A woman brings her husband, who is unresponsive.",
        "Son reports patient is unresponsive",
        "Mother is in hemorrhagic shock after delivery.",
        "Struck by the other driver and unresponsive at scene",
        "The other driver had minor injuries, patient in cardiac arrest.",
        "The other driver died, in cardiac arrest",
        "Other passengers were fine and patient in cardiac arrest",
        "Mother - in hemorrhagic shock",
    ],
)
def test_a_danger_that_somebody_else_reports(text: str) -> None:
    assert find_alert(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "CLINICAL STATUS: IMPROVING - SEPTIC SHOCK RESOLVING",
        "indicating shock resolution",
        "weaned off pressors, shock resolving",
        "resolving septic shock",
        "[RESOLVED] Septic shock",
        "Her twin is in septic shock",
        "wife was unresponsive at home",
        "sister (cardiac arrest at 30)",
        "FmHx cardiac arrest",
        "Cardiac arrest (1995)",
        "VF arrest (2010) s/p ICD",
        "organ donor with brain death",
        "EpiPen for anaphylaxis",
        "Educated on signs of shock",
        "ICD shock x1",
        "visual fields (VF) full",
        "tension PTX is not a concern",
        "Risk: respiratory failure",
        "His brother was comatose last week",
        "Counseled on signs of anaphylaxis",
        "Allergies: PCN -> anaphylaxis",
        "ADR: Trimethoprim -> anaphylaxis",
        "Adverse reactions: ceftriaxone (anaphylactic shock, 2015)",
        "Less concerning for STEMI",
        "Code stroke cancelled",
        "Consent: risks - bleeding, perforation, cardiac arrest",
    ],
)
def test_a_danger_that_resolves_is_of_others_or_feared(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "septic shock not resolving",
        "Shock is not yet resolving.",
        "unresolving septic shock",
        "My husband is unresponsive",
        "Found by his wife was unresponsive",
        "Per wife was unresponsive at home",
        "His wife was present when he became unresponsive",
        "Her husband was told that she is in cardiac arrest",
        "Son was unresponsive",
        "Mother is in hemorrhagic shock after delivery.",
        "Cardiac arrest (2015), ROSC (2022)",
        "ceftriaxone 2 g given -> anaphylaxis",
        "Penicillin given, anaphylaxis",
        "Given ceftriaxone – anaphylaxis",
        "EpiPen x2 for anaphylaxis",
        "VF",
        "risk high: septic shock",
        "Patient educated, in septic shock",
        "Patient with brain death",
        "Reaction: anaphylaxis",
        "Sepsis resolving, cardiac arrest at 10:00",
        "Pneumonia resolving with septic shock",
        "Failure of shock resolution",
        "Failure of septic shock resolution prompted escalation",
        # a year, or a time of the day
        "Cardiac arrest (2015)",
        "Found pulseless (2010). CPR started (2012).",
        "Cardiac arrest (1945). ROSC after 10 min.",
        "Went into VF (2014)",
        # it recurs, or does not resolve
        "Anaphylaxis resolving, then recurred with stridor and hypotension",
        "Septic shock resolving? No, worse, on 3 pressors",
        "Septic shock (resolving): pressors rising again",
        "resolving septic shock now recurrent",
        "not only resolving shock",
        "Poor shock resolution, lactate rising",
        "Delay in shock resolution, on 3 pressors",
        "Shock index 1.4, shock resolution delayed",
        # it was injected
        "EMS: EpiPen for anaphylaxis, O2, IV fluids",
        "EpiPen for anaphylaxis then transported by EMS",
        "EpiPen for anaphylaxis. Still stridor.",
        "Self-injected his EpiPen for anaphylaxis",
        "Epi pen for anaphylaxis by mother",
        "EpiPen for anaphylaxis 10 min ago",
        "VF arrest (2010), s/p amiodarone",
        "Counseling about smoking deferred as in septic shock",
        "Wife is unresponsive on the floor",
        "ADR: ceftriaxone -> anaphylaxis, now on epinephrine",
        "ADR: anaphylaxis",
        "Adverse reaction: patient developed anaphylaxis after ceftriaxone",
        "Less concerning for PE than for STEMI",
        "Less concerning for sepsis as he is in cardiogenic shock",
        "Less suspicious of PE, tamponade on echo",
        "Code stroke cancelled, then called again",
        "Code blue called off after 45 minutes",
        "CT with IV contrast: anaphylactic shock",
        "More or less suggestive of tamponade",
        "Code stroke called at 10:00",
        "risk - cardiac arrest imminent",
    ],
)
def test_a_danger_that_only_looks_resolved_feared_or_of_others(text: str) -> None:
    assert find_alert(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "Initially unresponsive, now alert and oriented.",
        "Unresponsive on arrival but now awake.",
        "He was obtunded on arrival and is now awake and talking.",
        "VF converted to sinus rhythm after one shock.",
        "VF terminated, now sinus",
        "Pulseless VT, cardioverted, now in sinus rhythm with BP 120/80.",
        "Was in septic shock on admission, now off pressors, shock resolved",
        "In septic shock, now off pressors, shock has resolved.",
    ],
)
def test_a_state_that_is_over(text: str) -> None:
    assert list(find_alerts(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "Initially alert, now unresponsive.",
        "unresponsive, now intubated",
        "unresponsive, now alert to pain only",
        "He became unresponsive, rhythm now sinus tachycardia.",
        "VF arrest, now sinus rhythm",
        "Cardiac arrest, ROSC after 10 min",
        "One shock of 200 J is given.",
        "Cardiac arrest terminated after 40 min of CPR, patient died.",
        "Ventricular tachycardia, now in sinus arrest.",
        "V fib on the monitor, now sinus rhythm with no pulse.",
        "VF terminated, patient died",
        "VF, shocked, now sinus then asystole",
        "Cardiac arrest: terminated after 30 minutes without ROSC.",
        "VF converted to sinus arrest",
        "Apneic, mother now awake at bedside.",
        "Unresponsive, now talking to family about withdrawal",
        "Unresponsive, now awake only to pain",
        "Unresponsive then briefly back, now alert only to voice",
        "Obtunded, now oriented x0",
        "In septic shock, shock not resolved",
        "In septic shock, cardiogenic shock resolved",
        "In septic shock on pressors, shock resolved then recurred",
    ],
)
def test_a_state_that_is_not_over(text: str) -> None:
    assert find_alert(text) is not None
