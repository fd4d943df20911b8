"""Tests of whether agents disagree, and whether a summary reports it."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exaid_core.checks.dissent import dissent_missing, stated_answer

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
        "Doctor1 prefers MI; Doctor0 prefers PE.",
        "Opinions are mixed.",
        "Cardiology leans toward pericarditis, nephrology toward uremia.",
        "The panel is torn between MI and PE.",
        "Discordant opinions.",
        "Neurology suspects stroke while ENT suspects vertigo.",
        "Agents are not aligned on the diagnosis.",
        "Agreement was not reached.",
        "Debate continues between MI and PE.",
        "Doctor1 remains unconvinced.",
        "Dr. Chen wants angiography, Dr. Roy wants CT.",
        "doctor0 argues MI is most likely; doctor1 argues PE is more likely.",
        "MI favored by the cardiologist, PE preferred by the pulmonologist",
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
        "Consider serological testing if symptoms diverge.",
        "Less likely due to lack of syndactyly or differing morphology",
        "The lesion differs in color.",
        "Different diagnoses were considered and PE is favored.",
        "All doctors agree; the rash varies in color.",
        "Patient prefers surgery, family prefers comfort care.",
        "doctor0 favors PE; doctor1 favors PE",
        "Doctor1 prefers MI; Doctor0 prefers MI.",
        "Differential diagnoses differ in their course",
        "The answer is B instead of D.",
    ],
)
def test_a_summary_that_hides_the_disagreement(summary: str) -> None:
    assert dissent_missing([summary], SPLIT)


@pytest.mark.parametrize(
    "line",
    [
        line
        for line in (Path(__file__).with_name("cues") / "dissent.txt")
        .read_text("utf-8")
        .split("\n")
        if line.startswith(("shows: ", "hides: "))
    ],
)
def test_sentences_of_others(line: str) -> None:
    kind, _, sentence = line.partition(": ")
    assert dissent_missing([sentence], SPLIT) is (kind == "hides")


def test_a_summary_that_is_not_english_is_not_judged() -> None:
    assert not dissent_missing(["Fortschreitende Ataxie, die Ärzte sind uneinig."], SPLIT)
    assert dissent_missing(["Sjögren is most likely."], SPLIT)


def test_an_agent_is_recognised_by_its_id() -> None:
    summary = ["PE likely, whereas InfectiousAgent7x argues for sepsis"]
    assert not dissent_missing(summary, {"LungAgent": "B", "InfectiousAgent7x": "D"})
    assert dissent_missing(summary, {"LungAgent": "B", "InfectiousAgent8x": "D"})


@pytest.mark.parametrize("answers", [{}, {"e1": "C"}, {"e1": "C", "e2": "C", "e3": "C"}])
def test_without_disagreement_nothing_is_missing(answers: dict[str, str]) -> None:
    assert not dissent_missing(["All agree."], answers)


def test_two_letters_that_nobody_holds_do_not_show_the_disagreement() -> None:
    assert dissent_missing(["B and D were set aside"], SPLIT)


@pytest.mark.parametrize(
    ("summary", "letter"),
    [
        ("UTI from E coli; all chose D.", "E"),
        ("Fever 102 F; consensus D", "F"),
        ("H pylori positive; experts agree on D", "H"),
        ("G tube placed; answer D", "G"),
        ("Rh E negative; answer D", "E"),
        ("D is the answer. Weber B fracture.", "B"),
        ("D chosen; polymyxin B resistance.", "B"),
        ("Team selected D; serogroup B meningococcus", "B"),
        ("Team selected D. MEN 2 B.", "B"),
        ("Team selected D. BI-RADS density B.", "B"),
        ("Team selected D. HLA-B 5701 and Flu B negative.", "B"),
        ("D chosen, plan B is surgery.", "B"),
    ],
)
def test_a_letter_of_a_name_does_not_show_the_disagreement(summary: str, letter: str) -> None:
    assert dissent_missing([summary], {"doctor0": letter, "doctor1": "D"})


@pytest.mark.parametrize(
    "summary",
    [
        "D chosen over plan B.",
        "doctor0 plan B, doctor1 plan D.",
        "Plan: B is open; D too",
        "Two held plan D and one plan B",
        "Plan B or D",
        "doctor0 recommended plan B while doctor1 recommended D",
    ],
)
def test_a_plan_may_be_an_option(summary: str) -> None:
    held = {"doctor0": "B", "doctor1": "D"}
    assert not dissent_missing([summary], held)


def test_words_of_two_fields_are_not_read_together() -> None:
    assert not dissent_missing(["Fever: no", "disagree on PE"], SPLIT)


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("The ECG shows it.\nAnswer: C", "C"),
        ("Answer: C\nOn reflection:\nAnswer: A\n", "A"),
        ("**Answer:** (C)", "C"),
        ("The answer is (C).", "C"),
        ("Answer: option B", "B"),
        ("Answer - B", "B"),
        ("Answer: J", "J"),
        ("答案：C", "C"),
        ("Respuesta: C", "C"),
        ('{"answer": "C"}', "C"),
        ("Answer: K", None),
        ("Answer: B or C", None),
        ("Answer: Aspirin", None),
        ("Answer: A biopsy is needed", None),
        ("Answer: I don't know", None),
        ("Answer: D-dimer", None),
        ("Answer: B-cell lymphoma", None),
        ("Answer: C. difficile colitis", None),
        ("E. coli", None),
        ("C", None),
        ("", None),
    ],
)
def test_stated_answer(text: str, letter: str | None) -> None:
    assert stated_answer(text) == letter


@pytest.mark.parametrize(
    "summary",
    [
        "Consensus on C, not B.",
        "No one supports B; all C.",
        "B was ruled out; consensus C.",
        "Agents considered B but all chose C.",
        "Answer C chosen; option B, D, and E were excluded by all.",
        "C; neither A nor B.",
        "The CT and MRI disagree on the size of the lesion.",
        "The patient disagrees with the plan.",
        "The family is split on surgery.",
        "Opinions differ in the literature about steroid use.",
        "Doctors initially differed but now concur.",
        "B is incorrect; C is correct.",
        "All agree that B is wrong and C right.",
        "B was initially favored, but everyone now supports C.",
        "They moved from B to C.",
        "Everyone dropped B and settled on C.",
        "C is correct; B and D are both incorrect.",
        "The answer is C, and B is also wrong.",
        "The panel chose C; B incorrect.",
        "The answer is C; B was dropped to avoid bleeding.",
        # a disagreement that is over: Multi-Agent-LLMs/mallm#85
        "After initial disagreement the team settled on C.",
        "Despite initial disagreement, all now support C.",
        "Disagreement ended; consensus C.",
        "Initial dissent withdrawn; C.",
        "Experts initially differed; consensus is C.",
        "Initially B, all switched to C.",
        "Dr. Lee initially chose B but now agrees with C.",
        "Earlier split between B and C has been reconciled to C",
        "Initially experts split between B and C; finally all agreed on C.",
        "Disagreement between B and C was later resolved in favor of C.",
        "Experts differed between B and C but then agreed on C.",
        # letters of germs, temperatures, cells and parts: mkuhn/sider#2
        "C diff positive; all agree on B.",
        "Temp 39.2 C, cultures pending. Consensus B.",
        "B cell lymphoma; all agree on C.",
        "B symptoms present; C chosen.",
        "C spine cleared; answer B.",
        "Influenza B and C negative; all agree on C.",
        "Types A and B influenza; all agree on C.",
        "Plan: A) fluids B) antibiotics C) oxygen. Team chose C.",
        "A: Airway clear. B: Breathing normal. Consensus: C",
    ],
)
def test_a_denied_letter_or_a_dispute_elsewhere_does_not_show_the_disagreement(
    summary: str,
) -> None:
    assert dissent_missing([summary], {"doctor0": "B", "doctor1": "C"})


@pytest.mark.parametrize(
    "summary",
    [
        "Agents have yet to agree.",
        "Agreement could not be reached.",
        "Majority for B; one against.",
        "Far from unanimous.",
        "doctor0 and doctor1 do not see eye to eye.",
        "Hung vote.",
        "doctor0 says B, not C; doctor1 says C, not B.",
        "B was rejected by doctor1, who chose C.",
        "B vs C, D excluded",
        "B is less likely than C for doctor1",
        "Patient's doctors disagree.",
        "It is not clear whether B or C.",
        "B dropped to one vote, C has one vote.",
        "doctor0 thinks C wrong and B right; doctor1 the reverse.",
        "Despite initial disagreement, most now support B.",
        "After initial disagreement all agreed except neurology.",
        "Initial disagreement persists.",
        "Despite disagreement, no consensus was reached.",
        "Disagreement on B vs C was not resolved.",
        "Disagreement about whether the pneumonia was resolved",
        "Majority B (67%)",
        "B by majority vote",
        "Votes: 2 C, 1 B",
        "doctor0: B) influenza; doctor1: C) malaria",
        # lists of answers
        "Treatment: A) rest B) aspirin, chosen by doctor0. C) heparin, chosen by doctor1.",
        "Recommendations: A: rest; B: heparin (doctor0); C: warfarin (doctor1).",
        "Management: A) rest (0 votes) B) surgery (1 vote) C) observation (1 vote)",
        "Differential: A) flu B) PE - doctor0. C) MI - doctor1.",
        "Options: A: airway, B: breathing exercise, C: oxygen",
        # a first agent, and an agreement of others or on something else
        "The first voted B, the others agreed on C.",
        "The first favored B; others agreed on C.",
        "The first chose B, the second chose C and agreed on imaging.",
        "The vote was 1-1: the first for B, the other changed to C.",
        "Doctor0 first chose B, with which doctor3 agreed; doctor1 chose C.",
        "Doctor0 initially chose B and now is less sure; doctor1 C.",
        "Initial disagreement on dose; doctor1 agrees with surgery, doctor0 with observation.",
        "After initial disagreement, doctor0 agreed with surgery, doctor1 kept observation.",
        "After discussion opinions differ, doctor2 agrees with doctor0.",
        "Early disagreement, doctor2 agrees with doctor0, doctor1 holds out.",
        "Prior disagreement continues; doctor2 agrees with doctor0.",
        "Despite disagreement on B versus C, all agree imaging is needed.",
        # something else that was resolved
        "The experts disagree on diagnosis, imaging was resolved earlier.",
        "Doctors disagree about stopping heparin, although the bleeding was resolved.",
        "Opinions differ on the diagnosis of a rash that has resolved.",
        "The agents disagree because symptoms have resolved in one account.",
        "Experts disagree: doctor0 says pain has resolved, doctor1 does not.",
        "Disagreement over the diagnosis remains although the question of imaging was settled.",
        "Disagreement on the diagnosis and the bleeding has resolved.",
        # answers that a noun follows or a name precedes
        "Option B cell lymphoma; C is CLL",
        "doctor0 C, doctor1 B line",
        "C vs. B line of evidence",
        "Stanford B vs C",
    ],
)
def test_other_words_that_show_the_disagreement(summary: str) -> None:
    assert not dissent_missing([summary], {"doctor0": "B", "doctor1": "C"})


@pytest.mark.parametrize(
    "text",
    [
        "A" * 100_000,
        "ﬃ" * 50_000,
        "a-" * 50_000,
        "not " + "a_" * 50_000,
        "difference between " + "a-" * 50_000,
        "".join(f"doctor0 prefers x{number}. " for number in range(5000)),
    ],
    ids=["letters", "ligatures", "hyphens", "underscores", "compound", "views"],
)
def test_a_hostile_text_takes_no_more_than_linear_time(text: str) -> None:
    start = time.process_time()
    dissent_missing([text], {"doctor0": "B", "doctor1": "C"})
    assert time.process_time() - start < 10


@given(st.text(st.sampled_from("AC vs.,;\nnodisagree—(") | st.characters(codec="utf-8")))
def test_dissent_is_read_from_any_text(text: str) -> None:
    assert not dissent_missing([text, "They disagree."], SPLIT)
    assert not dissent_missing([text], {"expert-1": "C"})


def test_large_patterns_do_not_depend_on_the_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compile_ = re.compile

    def noting(pattern: str, flags: int = 0) -> re.Pattern[str]:
        compiled.append(pattern)
        return compile_(pattern, flags)

    def summarize(number: int) -> None:
        answers = {f"expert-{number}-cardiologist": "A", f"expert-{number}-surgeon": "B"}
        assert dissent_missing(["They agree on surgery."], answers)

    summarize(0)
    monkeypatch.setattr(re, "compile", noting)
    for number in range(1, 20):
        summarize(number)
    assert all(len(pattern) < 200 for pattern in compiled)
