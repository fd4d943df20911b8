"""The phrases of a summary, and the sentences that they lead to."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exaid_core.placeholders import PLACEHOLDER
from exaid_core.schema.agent_summary import LIMITS, AgentSummary
from mdagents.live.case import Turn
from mdagents.pages import sentences
from mdagents.pages.phrase_links import Phrase, phrases

CARDIOLOGIST = (
    "Troponin is 480 ng/L and rising. Give aspirin 300 mg now; then angiography.\n"
    "The patient had a cardiac arrest with BP 60/40.\nAnswer: B"
)
SURGEON = "Tender in the right iliac fossa: appendicitis. Troponin rises in sepsis too.\nAnswer: C"


def said(*texts: str) -> dict[int, Turn]:
    """Turns of a cardiologist and a surgeon in turn, the first one has index 3."""
    agents = [("expert-1-cardiologist", "Cardiologist"), ("expert-2-surgeon", "Surgeon")] * 9
    pairs = zip(agents, texts, strict=False)
    return {
        index: Turn(agent, role, "opinion", 0, text)
        for index, ((agent, role), text) in enumerate(pairs, start=3)
    }


TURNS = said(CARDIOLOGIST, SURGEON)


def led(
    field: str, text: str, turns: Mapping[int, Turn] = TURNS, earlier: Mapping[int, Turn] = {}
) -> list[tuple[str, str | None]]:
    """Return each phrase of a field with the sentence that it leads to."""
    found = phrases(AgentSummary.model_validate({field: text}), turns, earlier)[field]
    every = {**earlier, **turns}
    return [(phrase.text, quoted(phrase, every)) for phrase in found]


def quoted(phrase: Phrase, turns: Mapping[int, Turn]) -> str | None:
    origin = phrase.origin
    return turns[origin.turn].text[origin.start : origin.end] if origin else None


def marked(summary: AgentSummary, field: str) -> list[tuple[str, bool, bool]]:
    found = phrases(summary, TURNS)[field]
    return [
        (phrase.text, phrase.is_alert, phrase.is_unsupported)
        for phrase in found
        if phrase.is_alert or phrase.is_unsupported
    ]


def test_a_sentence_a_clause_and_an_item_of_a_list_lead_to_what_was_said() -> None:
    assert led(
        "key_findings", "Rising troponin (480 ng/L), tender right iliac fossa; angiography. None."
    ) == [
        ("Rising troponin (480 ng/L), ", "Troponin is 480 ng/L and rising."),
        ("tender right iliac fossa; ", "Tender in the right iliac fossa: appendicitis."),
        ("angiography. ", "then angiography."),
        ("None.", None),
    ]


def test_a_comma_between_words_of_one_sentence_separates_no_phrases() -> None:
    text = "Troponin 480 ng/L, rising."
    assert led("key_findings", text) == [(text, "Troponin is 480 ng/L and rising.")]
    text = "1,480 ng/L (troponin, rising, high)"
    assert [phrase for phrase, _ in led("key_findings", text)] == [text]


def test_what_nobody_said_leads_nowhere() -> None:
    assert led("key_findings", "Bloody sputum, a widened mediastinum; fever.") == [
        ("Bloody sputum, a widened mediastinum; ", None),
        ("fever.", None),
    ]
    turns = said("Tender abdominal mass.")
    assert led("key_findings", "cystic mass", turns) == [("cystic mass", None)], "half of it"
    turns = said("A gradually progressive course. Ataxia. More ataxia. Ataxia again. And ataxia.")
    assert led("key_findings", "progressive ataxia", turns) == [("progressive ataxia", None)]
    assert led("key_findings", PLACEHOLDER, said("None was reported.")) == [(PLACEHOLDER, None)]


@pytest.mark.parametrize(
    ("phrase", "sentence"),
    [
        ("hypotensive", "There is hypotension."),
        ("Neuropsych tests", "Neuropsychological testing helps."),
        ("diet", "A dietary history is due."),
        ("hyperkalemia", None),
        ("metabolic pathology", None),
        ("B12 low", "1. B12 is low."),
        ("54yo", "2. He is 54 years old."),
        ("2yo", None),
        ("LVH", "It is left ventricular hypertrophy."),
        ("STEMI", None),
    ],
)
def test_forms_of_a_word_are_the_same_and_words_that_begin_alike_are_not(
    phrase: str, sentence: str | None
) -> None:
    turns = said(
        "There is hypotension. Neuropsychological testing helps. A dietary history is due. "
        "Hypernatremia was seen. We share a path. It is left ventricular hypertrophy. "
        "1. B12 is low. 2. He is 54 years old."
    )
    assert led("key_findings", phrase, turns) == [(phrase, sentence)]


def test_of_sentences_alike_it_is_the_latest() -> None:
    found = phrases(
        AgentSummary(key_findings="Troponin rises"),
        said("Troponin rises. Yes.", "Troponin rises. Troponin rises."),
    )
    origin = found["key_findings"][0].origin
    assert origin is not None
    assert (origin.turn, origin.start, origin.end) == (4, 16, 31)


def test_what_a_summary_repeats_leads_to_earlier_turns_but_only_then() -> None:
    earlier = {0: Turn("nurse", "Nurse", "opinion", 0, "A fever of two weeks. Troponin rising.")}
    assert led("key_findings", "Fever of two weeks; troponin rising.", TURNS, earlier) == [
        ("Fever of two weeks; ", "A fever of two weeks."),
        ("troponin rising.", "Troponin is 480 ng/L and rising."),
    ]
    assert led("key_findings", "fever, weeks, rash", earlier, {}) == [
        ("fever, weeks, ", "A fever of two weeks."),
        ("rash", None),
    ]
    text = "weeks of fever and rash"  # two of three words are less than it takes
    assert led("key_findings", text, TURNS, earlier) == [(text, None)]
    assert led("key_findings", text, earlier) == [(text, "A fever of two weeks.")]


@pytest.mark.parametrize(
    ("field", "text", "expected"),
    [
        ("uncertainty_confidence", "Cardiologist holds B,", "Answer: B"),
        ("uncertainty_confidence", "Surgeon holds C,", "Answer: C"),
        ("uncertainty_confidence", "Surgeon held B,", SURGEON),
        ("agent_contributions", "expert-1-cardiologist: aspirin.", "Give aspirin 300 mg now;"),
        ("agent_contributions", "Surgeon: troponin.", "Troponin rises in sepsis too."),
        ("agent_contributions", "Surgeon: gave his view.", SURGEON),
        ("status_action", "expert-2-surgeon gave his view.", SURGEON),
        ("recommendation_next_step", "Ask a cardiologist.", None),
    ],
)
def test_a_named_agent_leads_to_its_own_turn(field: str, text: str, expected: str | None) -> None:
    assert led(field, text) == [(text, expected)]


def test_each_contribution_is_of_the_agent_before_it() -> None:
    text = "Cardiologist: troponin; troponin level. surgeon: troponin. Nurse: troponin"
    assert led("agent_contributions", text) == [
        ("Cardiologist: troponin; ", "Troponin is 480 ng/L and rising."),
        ("troponin level. ", "Troponin is 480 ng/L and rising."),
        ("surgeon: troponin. ", "Troponin rises in sepsis too."),
        ("Nurse: troponin", "Troponin rises in sepsis too."),
    ]


def test_a_contribution_is_never_of_another_agent() -> None:
    earlier = {0: Turn("nurse", "Nurse", "opinion", 0, "The fever is new. Her troponin is low.")}
    text = "Nurse: troponin, fever, aspirin. Surgeon: aspirin"
    assert led("agent_contributions", text, TURNS, earlier) == [
        ("Nurse: troponin, ", "Her troponin is low."),
        ("fever, ", "The fever is new."),
        ("aspirin. ", None),
        ("Surgeon: aspirin", SURGEON),
    ]


def test_a_part_of_a_contribution_that_was_not_said_leads_to_no_other_turn() -> None:
    earlier = {0: Turn("nurse", "Surgeon", "opinion", 0, "I have nothing to say.")}
    text = "Surgeon: gave his view, troponin"
    assert led("agent_contributions", text) == [
        ("Surgeon: gave his view, ", SURGEON),
        ("troponin", "Troponin rises in sepsis too."),
    ]
    text = "Surgeon: troponin, aspirin"
    assert led("agent_contributions", text, TURNS, earlier) == [
        ("Surgeon: troponin, ", "Troponin rises in sepsis too."),
        ("aspirin", None),
    ]


def test_unsupported_terms_and_alerts_are_phrases_of_their_own_wherever_they_stand() -> None:
    summary = AgentSummary(
        status_action="CARDIAC  arrest, cardiac arrest; BP 60/40 mmHg.",
        key_findings="1,000mg Paracetamol, then 1000 mg, not 11000 mg or paracetamols.",
        alerts=("cardiac arrest", "BP 60/40"),
        unsupported_terms=("60/40 mmHg", "1000 mg", "paracetamol"),
    )
    status = marked(summary, "status_action")
    assert status == [
        ("CARDIAC arrest", True, False),
        ("cardiac arrest", True, False),
        ("BP ", True, False),
        ("60/40", True, True),
        (" mmHg", False, True),
    ]
    assert [text for text, *_ in marked(summary, "key_findings")] == [
        "1,000mg",
        "Paracetamol",
        "1000 mg",
    ]
    red = phrases(summary, TURNS)["status_action"][0]
    assert quoted(red, TURNS) == "The patient had a cardiac arrest with BP 60/40."
    assert not any(p.origin for p in phrases(summary, TURNS)["key_findings"] if p.is_unsupported)


def test_a_swapped_dose_is_found_where_its_words_stand_apart() -> None:
    summary = AgentSummary(
        status_action="Metoprolol was raised to 10 mg; aspirin 300 mg.",
        key_findings="Metoprolol is tolerated.",
        unsupported_terms=("metoprolol 10 mg",),
    )
    assert [text for text, *_ in marked(summary, "status_action")] == ["Metoprolol", "10 mg"]
    assert marked(summary, "key_findings") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "患者出现胸痛，血压下降。心电图显示ST段抬高。",
            [
                ("胸痛，血压下降；", "患者出现胸痛，血压下降。"),
                ("ST段抬高", "心电图显示ST段抬高。"),
            ],
        ),
        (
            "يعاني المريض من ألم في الصدر. ضغط الدم منخفض جدا.",
            [("ألم الصدر، ", "يعاني المريض من ألم في الصدر."), ("ضغط الدم", "ضغط الدم منخفض جدا.")],
        ),
        (
            "ผู้ป่วยมีอาการเจ็บหน้าอก ความดันโลหิตต่ำ",
            [("เจ็บหน้าอก ", "ผู้ป่วยมีอาการเจ็บหน้าอก"), ("ความดันโลหิตต่ำ", "ความดันโลหิตต่ำ")],
        ),
    ],
)
def test_other_scripts_are_led_as_well(text: str, expected: list[tuple[str, str]]) -> None:
    assert led("key_findings", "".join(phrase for phrase, _ in expected), said(text)) == expected


MARKS = ["Cardiologist: ", "holds B", "; ", ", ", ". ", "BP 60/40", "cardiac arrest", "1,000 mg"]
SCRIPTS = ["胸痛，", "ปวด ", "ألم، ", "\ud83d", "İ", "ß", "½", "(", "troponin ", "\n", "e\u0301"]
PIECES = st.one_of(
    st.text(st.characters(categories=["L", "M", "N", "P", "S", "Z", "C"]), max_size=12),
    st.sampled_from([*MARKS, *SCRIPTS]),
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)


@pytest.mark.sweep
@given(fields=st.lists(TEXTS, min_size=6, max_size=6), said_=st.lists(TEXTS, max_size=4))
def test_phrases_joined_are_the_field_and_quotes_lie_in_their_turn(
    fields: list[str], said_: list[str]
) -> None:
    summary = AgentSummary(
        alerts=("cardiac arrest", "", *fields[:1]),
        unsupported_terms=("1000 mg", "metoprolol 10 mg", *fields[1:2]),
    ).model_copy(update=dict(zip(LIMITS, fields, strict=True)))  # as they are, not on one line
    turns = said(*said_[:2])
    earlier = {index - 3: turn for index, turn in said(*said_[2:]).items()}
    found = phrases(summary, turns, earlier)
    assert {name: "".join(p.text for p in of_field) for name, of_field in found.items()} == dict(
        zip(LIMITS, fields, strict=True)
    )
    for phrase in (phrase for of_field in found.values() for phrase in of_field):
        if phrase.origin is not None:
            assert (quoted(phrase, {**earlier, **turns}) or "").strip()


def test_empty_lines_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counting:
        searched = 0

        def search(self, text: str, start: int, end: int) -> re.Match[str] | None:
            self.searched += end - start
            return two_letters.search(text, start, end)

    two_letters, counting = re.compile("[A-Za-z]{2}"), Counting()
    monkeypatch.setattr(sentences, "_SAYS_SOMETHING", counting)
    text = "\n" * 1_000 + "Give aspirin.\n" + "3. " * 1_000 + "Give statins."
    found = [text[start:end].strip() for start, end in sentences.clauses(text)]
    assert [one.removeprefix("3. " * 1_000) for one in found] == ["Give aspirin.", "Give statins."]
    assert counting.searched <= 2 * len(text)
