"""Options that speak of the places of others, and those that only look like it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdagents.datasets.option_places import naming_letters, speaking_of_places


def speaking(*options: str) -> str:
    return "".join(speaking_of_places(dict(zip("ABCDEFGHIJ", options, strict=False))))


SPEAKING = [
    "All of the above", "all the above", "ALL OF THE ABOVE.", "All of above", "All above",
    "all of the above except c", "All of the above mentioned drugs", "None of the above",
    "none of these", "None of them", "None of the options", "None of the given options",
    "None of the other answers are correct", "Any of the above", "any one of these",
    "Both of the above", "Either of the above", "neither of these", "More than one of the above",
    "Two of the above", "All of these are correct", "All are true", "None is correct",
    "All", "Both", "Either", "e. All of the above", "(e) none of these",
    "Both A and B", "both a & b", "Both (A) & (B)", "A and B", "A, B and D", "a & c", "a+b", "A/B",
    "A or B", "A and B only", "A & B both", "Options A and B", "Option C", "Answers 1 and 2",
    "Neither A nor B", "Either B or C", "Only A", "D only", "All except A", "A but not B",
    "Both A and B are correct", "B is correct",
    "All of A, B and C", "All mentioned above", "All listed above", "Everything above",
    "A and/or B", "All of the below", "The first two", "First and third", "The last three",
    "All, except B",
    "Both A and B, but not C", "A through C", "A-C", "Options A to C", "None above",
    "Cả A và B", "Tất cả các đáp án trên", "Tất cả đều đúng", "Cả ba đáp án trên",
    "Không có đáp án nào đúng", "以上都是", "以上皆是", "以上都不是", "以上均正确", "A和B",
    "Todas las anteriores", "Ninguna de las anteriores", "A y B", "Todas as anteriores", "A e B",
    "Todas as alternativas acima", "Toutes les réponses ci-dessus", "Aucune de ces réponses",
    "A et B", "Alle der oben genannten", "Keine der genannten", "Alle Antworten sind richtig",
    "A und B", "Tutte le precedenti", "Nessuna delle precedenti", "The former two",
    "All apart from B", "Todo lo anterior", "Ninguna es correcta", "A y B son correctas",
    "Keine der Antworten ist richtig", "A、B", "A、B都对", "Cả A và B đều đúng", "A và B đúng",
    "sowohl A als auch B", "tanto A como B",
    # Letters between marks: MedARC-AI/medmarks#63, OriginProtocol/ousd-governance#151
    "(a) and (b)", "A) and B)", "a. and c.", "(a) or (b)", "A. or B.", "(A) only", "(a) alone",
    "[A] and [B]", "(a) but not (b)", "(A) nor (B)", "(a) as well as (b)",
    "(a) and (b) are correct", "(e) a and b", "(A) und (B)", "(a) et (b)", "(a) và (b)",
    "B and C, not A", "A plus B", "A with B", "Combination of A and B", "Not A or B",
    "A is correct, B is wrong", "a, b, & c",
    "None apply", "All of the mentioned", "All of the listed", "None listed", "Other than above",
    "Las respuestas A y B", "Las respuestas A y B son correctas", "As alternativas A e C",
    "Antwort A und C", "Antworten A und B", "Les réponses A et C", "Risposte A e B",
    "Câu A và B đúng", "以上说法均正确", "Ambas A y B",
    "Все вышеперечисленное", "Верно А и В", "А и Б", "Ни один из перечисленных", "Все ответы верны",
    "Wszystkie powyższe", "Żadne z powyższych", "A i B", "위의 모두", "A와 B", "모두 정답",
    "上記すべて", "上記のいずれでもない", "aとb", "AまたはB", "Alle bovenstaande",
    "Geen van bovenstaande", "A en B", "Alla ovanstående", "Inget av ovanstående", "A och B",
    "Yukarıdakilerin hepsi", "A ve B", "A dan B benar", "Semua benar", "Semua jawaban benar",
    "جميع ما سبق", "لا شيء مما سبق", "أ و ب", "उपरोक्त सभी", "इनमें से कोई नहीं", "A और B दोनों",
]  # fmt: skip


@pytest.mark.parametrize("text", SPEAKING)
def test_it_speaks_of_places(text: str) -> None:
    assert speaking("Iron", "Zinc", "Gold", "Lead", text) == "E"


SILENT = [
    "Vitamin A and D", "Hepatitis A and B", "A and B cells", "Blood group A and B", "Type A",
    "Group A and B streptococci", "None", "No treatment", "1 and 3 only", "1 and 2", "1, 2 and 4",
    "Both lungs", "Both eyes", "Both parents", "Either sex", "Neither parent", "All four limbs",
    "All above 50 years", "All patients above 50", "Any fever above 38", "Pain above the knee",
    "Above the above-knee stump", "None of these patients", "All of the patient's family",
    "Both reverse transcriptase and RNA polymerases", "I and D", "D and E", "ABC", "AB", "A",
    "One", "Two", "Once", "Other", "n/a", "", "First", "The first day", "First trimester",
    "First and second molars", "First generation", "The first metatarsal", "Every 4 to 6 hours",
    "A-V", "Keine", "Alle 4 Stunden", "Beide Lungen", "Toutes", "Aucun traitement", "Todas",
    "Todas las mujeres", "Không", "Tất cả", "不对", "都",
    "(E)-stilbene", "(a) Iron and zinc", "a. Iron", "A. fumigatus and B. dermatitidis",
    "None", "Not A cells", "Все больные", "Alla barn", "Semua pasien", "모두 죽는다",
    "上記の患者", "Combination of both drugs", "Plus A", "В крови", "А",
]  # fmt: skip


@pytest.mark.parametrize("text", SILENT)
def test_it_speaks_of_something_else(text: str) -> None:
    assert speaking("Iron", "Zinc", "Gold", "Lead", text) == ""
    assert speaking(text, "Iron", "Zinc", "Gold", "Lead") == ""


def test_letters_of_statements_in_the_question_are_no_places() -> None:
    assert speaking("a and b", "b and c", "a, b and c", "c only") == ""
    assert speaking("A and D", "B and C", "E and K", "B and E") == "", "vitamins"
    assert speaking("A and B", "Iron", "Zinc") == "", "it names itself"
    assert speaking("C and D", "Iron", "Zinc", "Gold") == "", "without a word that says so"
    assert speaking("Both C and D", "Iron", "Zinc", "Gold") == "A"
    assert speaking("Both K and L", "Iron", "Zinc", "Gold") == ""


def test_options_that_bring_their_own_letters() -> None:
    assert speaking("A. Iron", "b. Zinc", "c Gold", "(d) Lead", "e All the above") == "ABCDE"
    assert speaking("A", "B", "C", "D") == "ABCD", "letters in a figure"
    assert speaking("A delta fiber", "C fiber", "Gamma fiber") == ""
    assert speaking("A", "B", "AB", "O") == "", "blood groups"


@pytest.mark.parametrize(
    "labels",  # openmultiplechoice/openmultiplechoice#1152
    [
        "A- ,B- ,C- ,D- ", "A、,B、,C、,D、", "[A] ,[B] ,[C] ,[D] ", "a) ,b) ,c) ,d) ",
        "**A.** ,**B.** ,**C.** ,**D.** ", "Ａ．,Ｂ．,Ｃ．,Ｄ．", "Ａ ,Ｂ ,Ｃ ,Ｄ ",
        "A_ ,B_ ,C_ ,D_ ",
        "Option A - ,Option B - ,Option C - ,Option D - ", "选项A：,选项B：,选项C：,选项D：",
        "Respuesta A: ,Respuesta B: ,Respuesta C: ,Respuesta D: ",
        "1. ,2. ,3. ,4. ", "1),2),3),4)", "(1) ,(2) ,(3) ,(4) ", "①,②,③,④", "1 - ,2 - ,3 - ,4 - ",
        "**1.** ,**2.** ,**3.** ,**4.** ", "1：,2：,3：,4：", "1. 5,2. 6,3. 7,4. 8",
        "i. ,ii. ,iii. ,iv. ", "I) ,II) ,III) ,IV) ", "А) ,Б) ,В) ,Г) ", "Α) ,Β) ,Γ) ,Δ) ",
        "أ) ,ب) ,ج) ,د) ", "ア. ,イ. ,ウ. ,エ. ", "가. ,나. ,다. ,라. ", "ก. ,ข. ,ค. ,ง. ",
    ],
)  # fmt: skip
def test_options_that_bring_labels_keep_their_places(labels: str) -> None:
    texts = [f"{label}Iron" for label in labels.split(",")]
    assert speaking(*texts) == "ABCD"
    assert speaking(*texts[1:], texts[0]) == ""


def test_letters_before_chinese_texts_are_labels() -> None:
    assert speaking("A铁", "B锌", "C金", "D锡") == "ABCD"
    assert speaking("A肝癌", "B肝硬化", "C肝炎", "D型糖尿病") == "ABCD"
    assert speaking("A细胞膜", "B细胞核", "C细胞质") == "ABC"
    assert speaking("A型", "B型", "AB型", "O型") == ""
    assert speaking("A型", "B型", "C型", "D型") == ""
    assert speaking("A群链球菌", "B群链球菌", "C群链球菌") == ""
    assert speaking("A細胞", "B細胞", "C細胞") == ""


@pytest.mark.parametrize(
    "texts",
    [
        "1 day,2 days,3 days", "1.5 mg,2.5 mg,3.5 mg", "1:10,2:10,3:10", "1%,2%,3%", "1.,2.,3.",
        "1-2 days,2-3 days,3-4 days", "1 - 2 days,2 - 3 days,3 - 4 days", "1 : 2,2 : 3,3 : 4",
        "i,ii,iii", "α-blocker,β-blocker,γ-blocker", "1-methyl,2-methyl,3-methyl",
        "α - helix,β - sheet,γ - turn", "I and II,II and III,III", "Option A,Iron,Zinc",
    ],
)  # fmt: skip
def test_texts_that_begin_like_labels_are_shuffled(texts: str) -> None:
    assert speaking(*texts.split(",")) == ""


def test_those_that_name_letters_are_among_those_that_speak_of_places() -> None:
    options = dict(zip("ABCDE", ["Iron", "Zinc", "A or B", "B only", "None of these"], strict=True))
    assert speaking_of_places(options) == ("C", "D", "E")
    assert naming_letters(options) == ("C", "D")


words = st.sampled_from([*"abcABC", "all", "both", "of", "the", "above", "and", ",", "&", " ", "("])


@pytest.mark.sweep
@given(st.lists(st.text() | st.lists(words).map(" ".join), max_size=10))
def test_any_text_can_be_an_option(options: list[str]) -> None:
    lettered = dict(zip("ABCDEFGHIJ", options, strict=False))
    assert set(naming_letters(lettered)) <= set(speaking_of_places(lettered)) <= set(lettered)


def test_a_long_option_takes_no_time() -> None:
    for piece in ("k, ", "all of the ", "(a) and ", "the above ", " "):
        assert speaking("Iron", piece * 30_000) == ""


@pytest.mark.parametrize(
    "part",
    ["all ", "a, ", "A-", "first and ", "both a and ", "以上都", "todas las ", "tất cả các "],
)
def test_long_options_take_no_time(part: str) -> None:
    """With an ambiguous pattern this would take forever."""
    assert speaking("Iron", "Zinc", "Gold", "Lead", part * 2_000 + "?") == ""


def test_what_only_looks_like_a_range_or_a_place() -> None:
    assert speaking("CXC", "XC", "CX3C", "C-C") == ""
    assert speaking("PaO2", "SaO2", "FiO2", "A-a") == ""
    assert speaking("CAB", "ABC", "BAC", "C-A-B") == ""
    assert speaking("H1N1", "A", "B-A", "A to B") == ""
    assert speaking("First", "Second", "Third", "First and second") == ""
    assert speaking("First and second", "Second and third", "Third and fourth") == ""
    assert speaking("First choice", "Second choice", "Third choice", "Last choice") == ""
    assert speaking("First trimester", "First two", "Last three", "All trimesters") == ""
    assert speaking("Đúng", "Không đúng") == ""
    assert speaking("以上", "以下", "等于", "不确定") == ""
