"""What the answer parser reads out of a reply, and above all what it does not.

`tests/corpus/answers.jsonl` holds replies with the letter that a human reader would take from them.
The properties below hold for every reply.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdagents_llm.answers import ParsedAnswer, ParseMethod, parse_answer
from mdagents_llm.answers.text import MAX_CHARS
from tests.conftest import REPOSITORY
from tests.support.sweeps import seeds

CORPUS = REPOSITORY / "tests" / "corpus" / "answers.jsonl"

OPTIONS = {
    "A": "Aspirin",
    "B": "Clopidogrel",
    "C": "Heparin",
    "D": "Aspirin and clopidogrel",
}


@dataclass(frozen=True)
class Reply:
    line: int
    text: str
    options: Mapping[str, str]
    expected: str | None
    reason: str
    kind: str


def _corpus() -> list[Reply]:
    lines = CORPUS.read_text(encoding="utf-8").split("\n")
    return [Reply(line=n, **json.loads(line)) for n, line in enumerate(lines, 1) if line]


REPLIES = _corpus()


def _line_id(reply: Reply) -> str:
    return f"line{reply.line}-{reply.kind}"


@pytest.mark.parametrize("reply", REPLIES, ids=_line_id)
def test_corpus_reply(reply: Reply) -> None:
    assert parse_answer(reply.text, reply.options).letter == reply.expected, reply.reason


def test_corpus_holds_both_directions() -> None:
    assert len(REPLIES) >= 1400
    chosen = sum(reply.expected is not None for reply in REPLIES)
    assert min(chosen, len(REPLIES) - chosen) > len(REPLIES) / 4


def test_corpus_rows_are_well_formed() -> None:
    for reply in REPLIES:
        assert list(reply.options) == list("ABCDEFGHIJ"[: len(reply.options)]), reply.line
        assert 2 <= len(reply.options) <= 10, reply.line
        assert reply.expected is None or reply.expected in reply.options, reply.line
        assert reply.reason, reply.line
        assert reply.kind, reply.line


def test_corpus_rows_are_different() -> None:
    keys = [(reply.text, tuple(reply.options.items())) for reply in REPLIES]
    assert len(set(keys)) == len(keys)


# --- how the answer was found --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ('{"answer": "C"}', ParseMethod.STRUCTURED),
        ('The answer is B. {"answer": "C"}', ParseMethod.STRUCTURED),
        ('{"answer": "B"}\nWait, the answer is C.', ParseMethod.STATEMENT),
        ("Answer: C", ParseMethod.STATEMENT),
        ("A) Aspirin\n\nAnswer: C", ParseMethod.STATEMENT),
        ("Answer: Heparin", ParseMethod.STATEMENT),
        (r"\boxed{C}", ParseMethod.STATEMENT),
        ("C is the correct answer.", ParseMethod.STATEMENT),
        ("C", ParseMethod.LINE),
        ("**C) Heparin**", ParseMethod.LINE),
        ("The clot is venous.\n\nC) Heparin", ParseMethod.LINE),
        ("C) Heparin. The clot is venous.", ParseMethod.LINE),
        ("C) Heparin, since the clot is venous.", ParseMethod.LINE),
        ("The most likely treatment is (C) Heparin.", ParseMethod.STATEMENT),
        ("Heparin", ParseMethod.OPTION_TEXT),
        ("The clot is venous.\n\nHeparin", ParseMethod.OPTION_TEXT),
    ],
)
def test_method_names_the_rule(text: str, method: ParseMethod) -> None:
    assert parse_answer(text, OPTIONS) == ParsedAnswer("C", method)


@pytest.mark.parametrize(
    "text", ["", "The answer is", "Error: Failed to generate", "I cannot answer this question."]
)
def test_no_answer_has_no_method(text: str) -> None:
    assert parse_answer(text, OPTIONS) == ParsedAnswer(None, ParseMethod.NONE)


@pytest.mark.parametrize(
    "text",
    [
        "Answer: A or C",
        "The answer is (A) and (C).",
        "The correct answers are A, C",
        "(AC)",
        "(A), (C)",
        "The correct answers are A; C",
        "ANSWER: A; C; D",
        "Answer: (A); (C)",
        '{"answer": "A; C"}',
    ],
)
def test_several_letters_are_no_answer_and_said_to_be_several(text: str) -> None:
    text = text if text[0] != "(" else f"The answer is {text}"
    assert parse_answer(text, OPTIONS) == ParsedAnswer(None, ParseMethod.SEVERAL)


DRUGS = dict(
    zip("ABCDE", ["Aspirin", "Clopidogrel", "Heparin", "Warfarin", "Apixaban"], strict=True)
)


@pytest.mark.parametrize(
    "text",
    [
        "Answer: Heparin/Warfarin",
        "Answer: Heparin or warfarin",
        "Answer: Heparin, warfarin",
        "Answer: Heparin, warfarin and aspirin",
        "Answer: Heparin、Warfarin",  # the separators of a report on parse_answers_zh of evalscope
        r"\boxed{Heparin, Warfarin}",
        '{"answer": "Heparin, Warfarin"}',
        "Answer: C) Heparin/Warfarin",
        "Answer: B (2 votes), C (2 votes)",
        "Answer: B (2 votes), C (3 votes)",
        "Answer: B: 50%; C: 50%",
        "Answer: B = 2, C = 2",
        "Answer: C–E",
        "Answer: C\nD",
        "Answer: C) Heparin\nD) Warfarin",
        "Answer: C) Heparin\nD) Warfarin\nE) Apixaban",
    ],
)
def test_several_texts_ties_and_lines_are_several(text: str) -> None:
    assert parse_answer(text, DRUGS) == ParsedAnswer(None, ParseMethod.SEVERAL)


@pytest.mark.parametrize(
    "text",
    [
        "Answer: Heparin, aspirin is too weak",
        "Answer: Heparin, not warfarin",
        "Answer: Heparin, since warfarin takes days",
        "Answer: C) Heparin, warfarin takes days",
        "Answer: C (3 votes), B (2 votes)",
        "Answer: C (90%)",
        "Answer: C — Heparin",
        "Answer: C\nC) Heparin",
        "Answer: C\n\nA) Aspirin: too weak\nB) Clopidogrel: platelets only",
        "A ❌ B ❌ Answer: C ✅",
        "Answer: C (1) A 2-year-old child needs it",
        "❌ A is wrong.\nAnswer: C ✅",
    ],
)
def test_one_option_and_a_word_on_another_is_one(text: str) -> None:
    assert parse_answer(text, DRUGS).letter == "C"


@pytest.mark.parametrize("text", ["❌ Answer: C", "Answer C: ❌", "Answer: C ❌", "✗ Answer: C"])
def test_an_answer_that_is_crossed_out_is_none(text: str) -> None:
    assert parse_answer(text, DRUGS).letter is None


def test_a_combination_is_not_its_first_part() -> None:
    both = ["Ceftriaxone", "Azithromycin", "Ceftriaxone and azithromycin", "Vancomycin"]
    options = dict(zip("ABCD", both, strict=True))
    for sign in (" + ", "/", ", ", " & "):
        assert parse_answer(f"Answer: Ceftriaxone{sign}azithromycin", options).letter is None
        assert parse_answer(f"Answer: C) Ceftriaxone{sign}azithromycin", options).letter == "C"
    assert parse_answer("Answer: Ceftriaxone and azithromycin", options).letter == "C"
    for behind in (" or D", " (incorrect)", ", if pregnant", " → D"):
        text = f"Answer: C) Azithromycin and ceftriaxone{behind}"
        assert parse_answer(text, options).letter is None


@pytest.mark.parametrize(
    "value", ["Yes/No/Maybe", "[Yes/No/Maybe]", "yes|no|maybe", "Yes, No, or Maybe"]
)
def test_all_texts_in_a_row_are_a_template(value: str) -> None:
    options = {"A": "yes", "B": "no", "C": "maybe"}
    assert parse_answer(f"Answer: {value}", options).letter is None
    assert parse_answer(f'{{"answer": "{value}"}}', options).letter is None
    assert parse_answer(f"Answer: no\nFormat: Answer: {value}", options).letter == "B"
    assert parse_answer("Answer: Yes, no doubt about it.", options).letter == "A"
    assert parse_answer("Answer: yes/no", options) == ParsedAnswer(None, ParseMethod.SEVERAL)


@pytest.mark.parametrize(
    "text",
    [
        *("C。", "（C）。", "C！", "Ｃ。", "C項", "C项", "C选项", "选项C。", "選択肢C", "선택지 C"),
        *(
            "Cです。",
            "Cだ。",
            "C입니다.",
            "C번",
            "C、肝素",
            "C、肝素。",
            "C 肝素",
            "血栓。\nC 肝素",
        ),
    ],
)
def test_short_replies_without_spaces_are_read(text: str) -> None:
    options = {"A": "阿司匹林", "B": "氯吡格雷", "C": "肝素", "D": "华法林"}
    assert parse_answer(text, options) == ParsedAnswer("C", ParseMethod.LINE)


@pytest.mark.parametrize("text", ["Cではありません。", "Cですか。", "C型", "C 型肝炎", "C不对。"])
def test_short_replies_that_choose_nothing_are_not_read(text: str) -> None:
    options = {"A": "阿司匹林", "B": "氯吡格雷", "C": "肝素", "D": "华法林"}
    assert parse_answer(text, options).letter is None


# --- what is inferred from nothing ---------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "I would choose C.",
        "Therefore, (C).",
        "Option C is the best choice.",
        "The clot is venous, so heparin is needed.",
        "The specimen was labelled **C**.",
        "A and B are wrong, leaving C.",
    ],
)
def test_prose_that_states_no_answer_is_not_read(text: str) -> None:
    assert parse_answer(text, OPTIONS).letter is None


# --- a question of the model's own ---------------------------------------------------------------

STATED = ["The answer is (C).", "Answer: C", "C) Heparin", '{"answer": "C"}']
NEXT = [
    "Question: Which drug?\nOptions:\nA. Digoxin\nB. Sotalol\nAnswer: The answer is (B).",
    "Q: Which drug?\nA: B",
    "Q2. Which drug?\nAnswer: B",
    "### Next question\nThe answer is (B).",
    "Now the others:\nA. Digoxin\nB. Sotalol\nC. Verapamil\nThe answer is (B).",
    "A) Aspirin\nB) Clopidogrel\nC) Heparin\nD) Aspirin and clopidogrel\nThe answer is (B).",
    "User: And then?\nAssistant: Answer: B",
    "问题：哪种药？\n答案：B",
    'Question: Which drug?\n{"answer": "B"}',
    "## Question 2\nWhich drug?\nThe answer is (B).",
    "Options:\nA. Digoxin\nB. Sotalol\nThe answer is (B).",
    "Which drug?\nA. Digoxin is best given\nB. Sotalol, not digoxin\nC. Verapamil\nAnswer: B",
    "<|im_end|>\n<|im_start|>user\nWhich drug?\n<|im_start|>assistant\nAnswer: B",
    "[INST] Which drug? [/INST] The answer is (B).",
    "Which drug is it?\nOption A: Digoxin\nOption B: Sotalol\nAnswer: B",
    "Example 2: Which drug?\nAnswer: B",
    "## Question\nWhich drug?\n## Answer\nB",
    "Pregunta: ¿Cuál?\nRespuesta: B",
]
BEHIND_AN_ANSWER = NEXT[-4:]  # else they may be part of a reply


@pytest.mark.parametrize("stated", STATED)
@pytest.mark.parametrize("following", NEXT)
def test_a_reply_is_read_up_to_a_question_of_its_own(stated: str, following: str) -> None:
    assert parse_answer(f"{stated}\n\n{following}", OPTIONS).letter == "C"
    if "Heparin" not in following and following not in BEHIND_AN_ANSWER:
        assert parse_answer(f"It is a clot.\n\n{following}", OPTIONS).letter is None


def test_this_question_said_back_is_no_question_of_its_own() -> None:
    listed = "\n".join(f"{letter}) {text}" for letter, text in OPTIONS.items())
    for text in (
        f"Question: Which drug?\n{listed}\nAnswer: C",
        f"Here is my answer.\n\nQuestion: Which drug?\nOptions:\n{listed}\nAnswer: C",
        f"{listed}\n\nThe answer is C.",
        "The answer is B.\nA) Aspirin: wrong\nB) Clopidogrel: wrong\nC) Heparin: right\nAnswer: C",
    ):
        assert parse_answer(text, OPTIONS).letter == "C"


REMARKS = "A. Too weak for a clot\nB. Acts on platelets only\nC. Acts at once\nD. Takes days"
VALUES = "A: {}\nB: {}\nC: {}\nD: {}"
OWN_LISTS = [
    f"Checking each option:\n{REMARKS}",
    f"Let's verify.\nI will go through the choices in turn. Re-check:\n{REMARKS}",
    "Votes after discussion:\nA: 0\nB: 1\nC: 4",
    "Vote count:\n" + VALUES.format(1, 0, 4, 0),
    "Confidence of the panel of five experts:\n" + VALUES.format("10%", "5%", "80%", "5%"),
    "My scores for the drugs are:\n- " + VALUES.format("2/10", "1/10", "9/10", "3/10"),
    "The ABCDEs of melanoma:\nA - Asymmetry\nB - Border\nC - Color\nD - Diameter\nE - Evolution",
    "再逐项核对：\nA. 太弱\nB. 只作用于血小板\nC. 立即起效\nD. 需要几天",
    "各選択肢を検討する：\nA. 弱い\nB. 血小板だけ\nC. すぐ効く\nD. 数日かかる",
    "각 선택지를 검토하면:\nA. 약하다\nB. 혈소판만\nC. 즉시\nD. 며칠",
    "Is that right?",
]


@pytest.mark.parametrize("listed", OWN_LISTS)
@pytest.mark.parametrize("first", ["Round 1 answer: B", 'Answer: B\n{"answer": "B"}', "A clot."])
@pytest.mark.parametrize("last", ["Final answer: C", "\\boxed{C}", '{"answer": "C"}'])
def test_a_list_of_its_own_remarks_is_no_other_question(first: str, listed: str, last: str) -> None:
    assert parse_answer(f"{first}\n\n{listed}\n\n{last}", OPTIONS).letter == "C"


def test_a_list_below_an_answer_or_prose_is_no_other_question() -> None:
    for first in (
        "The answer is B.",
        '{\n"answer": "B"\n}',
        "Here is how it works.",
        "Clot\nEffects:",
    ):
        assert parse_answer(f"{first}\n{REMARKS}\n\nFinal answer: C", OPTIONS).letter == "C"


def test_each_option_of_a_worked_question_is_analyzed() -> None:
    # an explanation in a public bank of SAT questions
    options = {
        "A": "x = 3, y = 7",
        "B": "y = 6x + 6, y = 7x + 5",
        "C": "y = 16x + 3, y = 16x + 19",
        "D": "y = 5, y = 5x + 3",
    }
    reply = (
        "Let's analyze each option:\n\n"
        "A. These represent a vertical line and a horizontal line. They intersect at one point.\n\n"
        "B. These lines have different slopes, so they intersect at one point.\n\n"
        "C. Both lines have slope 16 but different y-intercepts (3 and 19), so they are parallel "
        "and never intersect. This system has no solution.\n\n"
        "D. These have different slopes (0 vs non-zero), so they intersect at one point.\n\n"
        "Therefore, the correct option is C."
    )
    assert parse_answer(reply, options).letter == "C"


@pytest.mark.parametrize(
    ("texts", "remarks", "answer"),
    [
        (
            ("阿司匹林", "氯吡格雷", "肝素", "华法林"),
            ("作用太弱。", "只作用于血小板。", "立即起效。", "需要几天。"),
            "因此答案是C。",
        ),
        (
            ("アスピリン", "クロピドグレル", "ヘパリン", "ワルファリン"),
            ("は弱い。", "は血小板だけ。", "はすぐ効く。", "は数日かかる。"),
            "正解はCです。",
        ),
        (
            ("아스피린", "클로피도그렐", "헤파린", "와파린"),
            ("은 약하다.", "은 혈소판만.", "은 즉시.", "은 며칠."),
            "정답은 C입니다.",
        ),
    ],
)
def test_options_are_found_in_remarks_without_spaces(
    texts: tuple[str, ...], remarks: tuple[str, ...], answer: str
) -> None:
    options = dict(zip("ABCD", texts, strict=True))
    listed = "\n".join(
        f"{letter}. {text}{remark}"
        for letter, text, remark in zip("ABCD", texts, remarks, strict=True)
    )
    assert parse_answer(f"A clot of a vein?\n{listed}\n\n{answer}", options).letter == "C"


@pytest.mark.parametrize(
    "stem",
    [
        # the prompts of MMLU
        "Find the degree for the given field extension Q(sqrt(2), sqrt(3), sqrt(18)) over Q.",
        "Treatment of pulmonary embolism in adults includes:",
        "A 30-year-old woman comes for evaluation of a goiter. The most likely cause is",
        "Which option is correct?",
        "Each option below names a nerve. The one to the deltoid is",
        "Comparing both eyes of a patient with ptosis, the smaller pupil is due to:",
        "Now, let's summarize all the answers:",  # a reply published with MMLU-Pro
        # questions of MedMCQA, and the like
        *("Cumulative index is:", "Drug of choice:", "Vector of malaria:", "Select one:"),
        *("Each option below names a drug. Select the best.", "On examining a child:"),
        *("Evaluating chest pain:", "下列选项分析正确的是：", "患者再检查发现", "最可能的诊断是："),
    ],
)
def test_a_list_below_the_text_of_a_question_is_another(stem: str) -> None:
    following = f"{stem}\n{VALUES.format('zero', 'four', 'two', 'six')}\nThe answer is (B)."
    for stated in STATED:
        assert parse_answer(f"{stated}\n\n{following}", OPTIONS).letter == "C"


@pytest.mark.parametrize(
    "stem", ["Concentration of tropicamide:", "Risk of transmission to the child is:"]
)
def test_numbers_below_a_question_are_no_votes(stem: str) -> None:
    following = f"{stem}\n{VALUES.format('10%', '20%', '50%', '90%')}\nThe answer is (B)."
    assert parse_answer(f"The answer is (C).\n\n{following}", OPTIONS).letter == "C"


@pytest.mark.parametrize(
    "stem", ["The palatine processes begin to fuse at", "Which is it?\nOptions:", "Causes include:"]
)
def test_a_question_after_an_unread_answer_is_another(stem: str) -> None:
    following = f"{stem}\n{VALUES.format('zero', 'four', 'two', 'six')}\nThe answer is (B)."
    assert parse_answer(f"It acts at once.\n\n{following}", OPTIONS).letter is None


# --- languages -----------------------------------------------------------------------------------

LANGUAGES = {
    "English": ("Answer: {}", "The correct answer is {}.", "The answer is not {}.", "or"),
    "Chinese": ("答案：{}", "正确答案是{}。", "答案不是{}。", "或"),
    "Spanish": ("Respuesta: {}", "La respuesta correcta es la {}.", "La respuesta no es {}.", "o"),
    "German": ("Antwort: {}", "Die richtige Antwort ist {}.", "Die Antwort ist nicht {}.", "oder"),
    "French": ("Réponse : {}", "La bonne réponse est {}.", "La réponse n'est pas {}.", "ou"),
    "Portuguese": ("Resposta: {}", "A resposta correta é {}.", "A resposta não é {}.", "ou"),
    "Vietnamese": ("Đáp án: {}", "Câu trả lời đúng là {}.", "Đáp án không phải là {}.", "hoặc"),
    "Japanese": ("回答：{}", "正解は{}です。", "正解は{}ではありません。", "または"),
    "Korean": ("답: {}", "정답은 {}입니다.", "정답은 {}가 아닙니다.", "또는"),
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("letter", OPTIONS)
def test_statements_of_each_language(language: str, letter: str) -> None:
    label, sentence, denial, or_ = LANGUAGES[language]
    other = "A" if letter != "A" else "B"
    for form in (label, sentence):
        for value in (letter, f"({letter})", f"{letter}) {OPTIONS[letter]}"):
            assert parse_answer(form.format(value), OPTIONS).letter == letter
        several = form.format(f"{letter} {or_} {other}")
        assert parse_answer(several, OPTIONS) == ParsedAnswer(None, ParseMethod.SEVERAL)
        assert (
            parse_answer(f"{denial.format(other)} {sentence.format(letter)}", OPTIONS).letter
            == letter
        )
    assert parse_answer(denial.format(letter), OPTIONS).letter is None


# Labels and last sentences of the prompts of MMMLU (common.py of openai/simple-evals) and MMLU-ProX
# (lang_libs.py of EleutherAI/lm-evaluation-harness), and Turkish: (label, sentence, denial).
LABELS = {
    "Afrikaans": ("Antwoord: {}", "Die antwoord is ({})", "Verkeerde antwoord: {}"),
    "Arabic": ("الإجابة: {}", "الإجابة هي ({})", "الإجابة ليست {}"),
    "Arabic, other noun": ("الجواب النهائي: {}", "الإجابة الصحيحة هي: {}", "الإجابة الخاطئة: {}"),
    "Bengali": ("উত্তরঃ {}", "উত্তর হল ({})", "ভুল উত্তর: {}"),
    "Chinese": ("答复：{}", "答案是 ({})", "答案不是 ({})"),
    "Czech": ("Odpověď: {}", "Odpověď je ({})", "Odpověď není {}"),
    "Hindi": ("उत्तर: {}", "उत्तर है ({})", "गलत उत्तर: {}"),
    "Hungarian": ("Válasz: {}", "A válasz ({})", "A válasz nem ({})"),
    "Indonesian": ("Jawaban: {}", "Jawabannya adalah ({})", "Jawabannya bukan {}"),
    "Italian": ("Risposta: {}", "La risposta è ({})", "La risposta non è {}"),
    "Japanese": ("答え：{}", "答えは ({}) です", "答えは ({}) ではありません"),
    "Korean": ("답변: {}", "답은 ({})입니다", "답은 ({})가 아닙니다"),
    "Marathi": ("उत्तर: {}", "उत्तर आहे ({})", "उत्तर: {} नाही"),
    "Nepali": ("उत्तर: {}", "उत्तर ({}) हो।", "उत्तर ({}) होइन।"),
    "Russian": ("Правильный ответ: {}", "Ответ - ({})", "Неправильный ответ: {}"),
    "Serbian": ("Odgovor: {}", "Odgovor je ({})", "Odgovor nije {}"),
    "Swahili": ("Jibu: {}", "Jibu ni ({})", "Jibu si {}"),
    "Telugu": ("సమాధానం: {}", "సమాధానం ({})", "సమాధానం ({}) కాదు"),
    "Thai": ("คำตอบ: {}", "คำตอบคือ ({})", "คำตอบไม่ใช่ ({})"),
    "Turkish": ("Doğru cevap: {}", "Cevap: ({})", "Cevap: {} değil"),
    "Ukrainian": ("Правильна відповідь: {}", "Відповідь: ({})", "Відповідь не ({})"),
    "Urdu": ("جواب: {}", "جواب ({}) ہے", "جواب ({}) نہیں ہے"),
    "Vietnamese": ("Trả lời: {}", "Câu trả lời là ({})", "Câu trả lời không phải là ({})"),
    "Wolof": ("Tontu: {}", "Tontu bi mooy ({})", "Tontu bi du ({})"),
    "Yoruba": ("Ìdáhùn: {}", "Ìdáhùn náà ni ({})", "Ìdáhùn náà kì í ṣe ({})"),
    "Zulu": ("Impendulo: {}", "Impendulo ithi ({})", "Impendulo ayithi ({})"),
}


@pytest.mark.parametrize("language", LABELS)
@pytest.mark.parametrize("letter", OPTIONS)
def test_labels_of_the_languages_of_public_benchmarks(language: str, letter: str) -> None:
    label, sentence, denial = LABELS[language]
    for form in (label, sentence):
        assert parse_answer(form.format(letter), OPTIONS).letter == letter
        assert parse_answer(f"**{form.format(letter)}**", OPTIONS).letter == letter
    assert parse_answer(label.format(f"{letter}) {OPTIONS[letter]}"), OPTIONS).letter == letter
    assert parse_answer(denial.format(letter), OPTIONS).letter is None


def test_every_kind_of_phrase_is_used() -> None:
    folder = REPOSITORY / "mdagents_llm" / "answers"
    code = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    for file in (folder / "words").glob("*.txt"):
        for line in file.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                kind = line.partition(": ")[0]
                assert f"'{kind}'" in code or f'"{kind}"' in code, (file.name, kind)


# --- the text next to the letter -----------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Answer: C) Aspirin",
        "C) Aspirin",
        "**Final answer: C. Aspirin**",
        "The answer is C: aspirin and clopidogrel.",
        '{"answer": "C) Aspirin"}',
        "D) Aspirin",
        "Answer: C) Aspirin, because the clot is arterial.",
    ],
)
def test_another_options_text_is_a_mismatch(text: str) -> None:
    answer = parse_answer(text, OPTIONS)
    assert answer.letter in ("C", "D")
    assert answer.text_mismatch


@pytest.mark.parametrize(
    "text",
    [
        "Answer: C",
        "Answer: C) Heparin",
        "Answer: C) heparin.",
        "Answer: C) Low-molecular-weight heparin",
        "Answer: C) Aspirin-free regimen with heparin",
        "Answer: D) Aspirin and clopidogrel",
        "Answer: C because aspirin is too weak",
    ],
)
def test_own_or_free_text_is_no_mismatch(text: str) -> None:
    assert not parse_answer(text, OPTIONS).text_mismatch


def test_a_shared_text_is_no_mismatch() -> None:
    shared = {"A": "Warfarin", "B": "Apixaban", "C": "Warfarin"}
    statement = ParseMethod.STATEMENT
    assert parse_answer("Answer: C) Warfarin", shared) == ParsedAnswer("C", statement)


# --- options -------------------------------------------------------------------------------------


def test_letters_without_texts_are_enough() -> None:
    letters = dict.fromkeys("ABCD", "")
    assert parse_answer("Answer: C", letters).letter == "C"
    assert parse_answer("C) Heparin", letters).letter == "C"


def test_without_options_nothing_is_an_answer() -> None:
    assert parse_answer("Answer: A", {}).letter is None


@pytest.mark.parametrize("count", range(2, 11))
def test_only_the_questions_letters_are_answers(count: int) -> None:
    letters = "ABCDEFGHIJ"
    options = {letter: f"Finding number {letter}{letter}" for letter in letters[:count]}
    for letter in letters:
        expected = letter if letter in options else None
        assert parse_answer(f"Answer: {letter}", options).letter == expected
        assert parse_answer(f"({letter})", options).letter == expected
        assert parse_answer(f'{{"answer": "{letter}"}}', options).letter == expected


NUMBERS: dict[str, dict[str | None, list[str]]] = {
    "0 | 1/4 | 1/2 | 1": {
        "A": ["The answer is 0.", "Answer: 0"],
        "B": ["The answer is 1/4.", "1/4", "Answer: 1 / 4", "Answer: ¼", "¼"],
        "D": ["Answer: 1.", r"\boxed{1}", "Answer: 1, because"],
        None: [
            *("The answer is 0.5.", r"\boxed{0.25}", '{"answer": "0.25"}', '{"answer": 0.5}'),
            *("Answer: 1/8", "Answer: .25", "Answer: -1", "Answer: 1-2", "Answer: 1.4"),
            *("Answer: 1 / 8", "Answer: ⅓"),
        ],
    },
    "0.375 | 0.5 | 2 | 2.5 | 2.67": {
        "C": ["Answer: 2"],
        "D": ["Answer: 2.5", "The final answer is 2,5"],
        "E": ["Answer: 2.67"],
        None: ["Answer: 2.667", "Answer: 2.51"],
    },
    "5 | 7 | 18 | 21": {
        "A": ["Answer: 5", "Answer: 5 because", "Answer: A: 5.5", "Answer: 5.0", r"\boxed{5.00}"],
        None: [
            "Answer: 5.5",
            "Answer: 5/7",
            "Answer: 5 × 10^3",
            "Answer: 5:7",
            "Answer: 5-7",
            "5.0%",
        ],
    },
    "0.05 | 0.5 | 5 | 50": {
        "C": ["Answer: 5"],
        None: ["Answer: .5", "Answer: 5%", "Answer: 5 %", ".5", r"\boxed{.5}"],
    },
    "-2.5 | -1.0 | 0 | 3.1": {
        "A": [
            *("Answer: -2.5", "The answer is -2.5.", "-2.5", "A) -2.5", "Answer: A: -2.5"),
            *("Answer: \u22122.5", "Answer: \u20132.5", '{"answer": -2.5}', r"$\boxed{-2.5}$"),
        ],
        None: ["Answer: 2.5", "The answer is 2.5", "2.5", r"\boxed{2.5}", '{"answer": 2.5}'],
    },
    "-2.5 | 2.5 | -1 | 1": {
        "A": ["Answer: -2.5", "The answer is \u20132.5"],
        "B": ["Answer: 2.5"],
        "C": ["The answer is: -1", "Answer: ≈-1", "C、-1", "答案是C、-1"],
    },
    "10–15 years | 120/80 | ½": {
        "A": ["Answer: 10 -15 years"],
        "B": ["Answer: 120 / 80"],
        "C": ["Answer: 1/2", "Answer: ½"],
    },
    "IL-2 | IL-4 | 2-5 | \u221270 mV": {
        "A": ["Answer: IL-2", "Answer: IL 2"],
        "C": ["Answer: 2-5", "Answer: 2\u20135"],
        "D": ["Answer: -70 mV"],
        None: ["Answer: 70 mV"],
    },
}


@pytest.mark.parametrize("texts", NUMBERS)
def test_a_number_is_an_option_only_if_it_equals_it(texts: str) -> None:
    options = dict(zip("ABCDE", texts.split(" | "), strict=False))
    for letter, replies in NUMBERS[texts].items():
        for reply in replies:
            answer = parse_answer(reply, options)
            assert answer.letter == letter, reply
            assert answer.text_mismatch is False, reply


# --- properties ----------------------------------------------------------------------------------

TEXTS = [
    "Aspirin",
    "Aspirin and clopidogrel",
    "Heparin",
    "Hepatitis B",
    "Vitamin D deficiency",
    "E. coli",
    "A lesion of the optic chiasm",
    "yes",
    "no",
    "0.01",
    "None of the above",
    "↑ calcium, ↓ phosphate",
    "Sjögren's syndrome",
    "B cell lymphoma",
    "A",
    "",
]
FRAGMENTS = [
    *("A", "B", "C", "D", "E", "I", "J", "a", "b", "i", "X", "Ｂ", "𝐁", "1."),
    *(" ", " ", " ", "\n", "\n\n", "\t", "\u200b", "\u2028", ": ", ". ", ", ", "; ", "?", "!", "…"),
    *("(", ")", "[", "]", "{", "}", "<", ">", '"', "'", "“", "`", "```json\n", "```", "【", "（"),
    *(
        "*",
        "**",
        "_",
        "__",
        "$",
        "~~",
        "#",
        "> ",
        "- ",
        "|",
        "✅",
        "❌",
        "\\",
        "\\boxed{",
        "\\text{",
    ),
    *(
        "Answer",
        "answer",
        "Final answer",
        "The answer is",
        "answer to",
        "option ",
        "choice",
        "vote",
    ),
    *(
        "I think ",
        "I would choose ",
        "is correct",
        "is the best answer",
        "is incorrect",
        "so ",
        "If ",
    ),
    *("not ", "n't ", "or ", "and ", "/", "either ", "but ", "because ", "wait, ", "Correction: "),
    *('{"answer": "', '"}', '{"final_answer": ', '["', "null", "true", '"answer": ', "\\n", '\\"'),
    *("<think>", "</think>", "<answer>", "</answer>", "<b>", "&lt;", "<|im_end|>"),
    *("Error: ", "Rate limit exceeded", "I cannot answer", "As an AI", "Expert 1: ", "vitamin "),
    *TEXTS,
]

option_sets = st.lists(st.sampled_from(TEXTS), min_size=2, max_size=10).map(
    lambda texts: dict(zip("ABCDEFGHIJ", texts, strict=False))
)
tricky = st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join)
any_text = st.text(st.characters(exclude_categories=[]), max_size=200)


@pytest.mark.sweep
@settings(max_examples=1000)
@given(text=st.one_of(tricky, any_text, st.text()), options=option_sets)
def test_every_text_gives_an_option_or_none(text: str, options: dict[str, str]) -> None:
    answer = parse_answer(text, options)
    assert answer.letter is None or answer.letter in options
    no_answer = answer.method in (ParseMethod.NONE, ParseMethod.SEVERAL)
    assert (answer.letter is None) == no_answer
    assert answer.letter is not None or not answer.text_mismatch


@pytest.mark.sweep
@given(text=tricky, options=option_sets)
def test_same_reply_same_answer(text: str, options: dict[str, str]) -> None:
    assert parse_answer(text, options) == parse_answer(text, dict(options))


BARE = ["{letter}", "({letter})", "[{letter}]", "{letter})", "{letter}.", "option {letter}"]
WITH_TEXT = [
    "{letter}) {text}",
    "{letter}. {text}",
    "{letter}: {text}",
    "({letter}) {text}",
    "{letter} - {text}",
    "Option {letter}: {text}",
]
WRAPPERS = [
    "{answer}",
    "**{answer}**",
    "__{answer}__",
    "`{answer}`",
    "```\n{answer}\n```",
    "> {answer}",
    "- {answer}",
    "1. {answer}",
    "### {answer}",
    "<answer>{answer}</answer>",
    "<answer>\n{answer}\n</answer>",
    "<p><strong>{answer}</strong></p>",
    "\\boxed{{{answer}}}",
    "$\\boxed{{\\text{{{answer}}}}}$",
    "\\[\n\\boxed{{\\textbf{{{answer}}}}}\n\\]",
    "Answer: {answer}",
    "answer : {answer}",
    "**Answer:** {answer}",
    "**Final Answer: {answer}**",
    "ANSWER - {answer}",
    "The correct answer is {answer}",
    "The final answer is: **{answer}**.",
    "### Answer\n\n{answer}",
    "## Final Answer:\n\n**{answer}**",
    "The most appropriate option is {answer}",
    "<think>Is it A or B? The answer is A.</think>{answer}",
    "<|channel>thought\nThe answer is A.<channel|>{answer}<turn|>",
    "<unused94>thought\nThe answer is A.<unused95>{answer}",
    "[unused16]The answer is A.[unused17]{answer}[unused10]",
    "<|START_THINKING|>The answer is A.<|END_THINKING|><|START_RESPONSE|>{answer}<|END_RESPONSE|>",
    "<|think|>The answer is A.<|end|><|begin|>assistant<|content|>{answer}<|end|>",
    '<details type="reasoning" done="true">\n> The answer is A.\n</details>\n{answer}',
    "Here is my thought process: The answer is A.\n\nHere is my response: {answer}",
    "\ufeff{answer}\u200b",
    "Ａｎｓｗｅｒ：{answer}",
    '{{"answer": "{answer}"}}',
    '```json\n{{"reasoning": "The answer is not clear.", "final_answer": "{answer}"}}\n```',
    '{{"majority_vote": "Answer: {answer}"}}',
    '{{"answer": "{answer}", "reasoning": "This was cut',
    "{{'answer': '{answer}'}}",
]
UNRELATED = [
    "\n\nI hope this helps with your studies.",
    "\nPlease let me know if anything is unclear!",
    "\n\nThe patient should be followed up within a week.",
    "\n\n**Rationale:** this follows from the history and the physical findings.",
    "\n\n---\nConfidence: high",
]


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_wrapping_does_not_change_the_answer(wrapper: str) -> None:
    for letter, form in product(OPTIONS, [*BARE, *WITH_TEXT]):
        answer = wrapper.format(answer=form.format(letter=letter, text=OPTIONS[letter]))
        assert parse_answer(answer, OPTIONS).letter == letter, answer


@given(
    letter=st.sampled_from("ABCDEFGHI"),
    form=st.sampled_from([*BARE, *WITH_TEXT]),
    wrapper=st.sampled_from(WRAPPERS),
    unrelated=st.sampled_from(UNRELATED),
)
def test_an_unrelated_end_does_not_change_a_wrapped_answer(
    letter: str, form: str, wrapper: str, unrelated: str
) -> None:
    options = {name: f"Finding {name.lower() * 3} of the spleen" for name in "ABCDEFGHI"}
    answer = form.format(letter=letter, text=options[letter])
    assert parse_answer(wrapper.format(answer=answer) + unrelated, options).letter == letter


@pytest.mark.parametrize(
    "opening",
    [
        "<think>",
        "<|channel>thought\n",
        "<unused94>",
        "[unused16]",
        "<|START_THINKING|>",
        '<details type="reasoning">',
    ],
)
def test_a_thought_that_is_cut_off_is_no_answer(opening: str) -> None:
    assert parse_answer(f"{opening}So the answer is A", OPTIONS).letter is None
    assert parse_answer(f"The answer is B.\n{opening}So A", OPTIONS).letter == "B"


@pytest.mark.parametrize("tag", ['<details type="reasoning">', "<|think|>", "<|channel>thought"])
def test_a_mention_of_a_tag_of_reasoning_hides_no_answer(tag: str) -> None:
    assert parse_answer(f"I do not write {tag} here.\nThe answer is B", OPTIONS).letter == "B"


# One lower-case letter is an answer only as the whole reply, an option's text as the last line.
@pytest.mark.parametrize(
    "reply",
    [
        reply
        for reply in REPLIES
        if (not reply.text.islower() or len(reply.text) > 1)
        and parse_answer(reply.text, reply.options).method is not ParseMethod.OPTION_TEXT
    ],
    ids=_line_id,
)
def test_an_unrelated_end_does_not_change_a_corpus_reply(reply: Reply) -> None:
    for unrelated in UNRELATED[:3]:
        letter = parse_answer(reply.text + unrelated, reply.options).letter
        assert letter == reply.expected, (unrelated, reply.reason)


CASELESS = [
    "Answer: {letter}",
    "Answer: ({letter})",
    "Answer: {letter})",
    "final answer: **{letter}**",
    '{{"answer": "{letter}"}}',
    "<answer>{letter}</answer>",
    "\\boxed{{{letter}}}",
    "({letter})",
    "The answer is ({letter}).",
]


@pytest.mark.parametrize("form", CASELESS)
@pytest.mark.parametrize("letter", "ABCDEFGHI")
def test_case_does_not_matter_where_a_label_or_brackets_commit(letter: str, form: str) -> None:
    options = {name: f"Finding {name * 3}" for name in "ABCDEFGHI"}
    assert parse_answer(form.format(letter=letter), options).letter == letter
    assert parse_answer(form.format(letter=letter.lower()), options).letter == letter


@pytest.mark.parametrize("word", ["a", "i", "I think", "A patient", "the answer is a", "so I"])
def test_words_are_not_letters(word: str) -> None:
    options = {name: f"Finding {name * 3}" for name in "ABCDEFGHI"}
    assert parse_answer(word, options).letter is None
    assert parse_answer(f"Well, {word} needs a scan.", options).letter is None


@given(
    first=st.sampled_from(list(OPTIONS)),
    second=st.sampled_from(list(OPTIONS)),
    joint=st.sampled_from([" or ", " and ", "/", ", ", " & ", " or possibly ", " vs. "]),
    label=st.sampled_from(["Answer: ", "The answer is ", "Final answer: **", "", "either "]),
)
def test_two_letters_are_no_answer(first: str, second: str, joint: str, label: str) -> None:
    letter = parse_answer(f"{label}{first}{joint}{second}", OPTIONS).letter
    assert letter is None or first == second


@given(first=st.sampled_from(list(OPTIONS)), last=st.sampled_from(list(OPTIONS)))
def test_the_last_statement_wins(first: str, last: str) -> None:
    for text in (
        f"Answer: {first}\n\nOn a closer look it is not.\n\nAnswer: {last}",
        f"Answer: {first} … wait, correction: Answer: {last}",
        f"Initial answer: {first}\nFinal answer: {last}",
        f'{{"answer": "{first}"}}\n\nCorrection: the answer is {last}.',
    ):
        assert parse_answer(text, OPTIONS).letter == last


@given(denied=st.sampled_from(list(OPTIONS)), chosen=st.sampled_from(list(OPTIONS)))
def test_a_denied_letter_is_no_answer(denied: str, chosen: str) -> None:
    for denial in (
        f"The answer is not {denied}.",
        f"Answer: not {denied}",
        f"Option {denied} is incorrect.",
        f"{denied}) {OPTIONS[denied]} is wrong.",
    ):
        assert parse_answer(denial, OPTIONS).letter is None
        if denied != chosen:
            text = f"{denial}\nThe correct answer is {chosen}."
            assert parse_answer(text, OPTIONS).letter == chosen


# --- size ----------------------------------------------------------------------------------------

# Each repeats something that a rule starts from, scans over, or nests.
HOSTILE = [
    "Answer: C ",
    "The answer is (C), ",
    "答案是C，",
    "$\\boxed{C}$ ",
    "option C is the correct answer, ",
    "Answer: ",
    "Answer: A or ",
    "answer ",
    "\\boxed{",
    "I would choose ",
    "therefore ",
    "that A is the ",
    "A) Aspirin\n",
    "选项C是正确答案，",
    "Daher ist die richtige Antwort C, ",
    "Answer: A; B; ",
    "A ",
    "{",
    '{"a":',
    '{"answer": [1, ',
    '{"a": "b"} ',
    '"answer": "',
    "<think>",
    "~~",
    "**A",
    "- ",
    "(",
    "aspirin and ",
    " ",
    "\u200b",
    "ﷺ",
]


@pytest.mark.sweep
@pytest.mark.parametrize("fragment", [HOSTILE[number] for number in seeds(len(HOSTILE))])
def test_a_megabyte_is_read_to_its_last_line(fragment: str) -> None:
    text = fragment * (1_000_000 // len(fragment))
    assert parse_answer(text, OPTIONS).letter in (None, *OPTIONS)
    expected = None if fragment == "<think>" else "C"
    assert parse_answer(text[-MAX_CHARS:] + "\nFinal answer: C", OPTIONS).letter == expected


def _calls(text: str) -> int:
    """Counts the calls, of Python and of C, that reading a text takes."""
    count = 0

    def profile(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        parse_answer(text, OPTIONS)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.sweep
@pytest.mark.parametrize("fragment", HOSTILE)
def test_work_grows_with_the_length_and_not_with_its_square(fragment: str) -> None:
    short = _calls(fragment * (4_000 // len(fragment)))
    long = _calls(fragment * (16_000 // len(fragment)))
    assert long <= 5 * short + 1_000


# Passages that models repeated until their token limit, by public reports, and statements.
LOOPS = [
    "court ",  # anthropics/claude-code issue 82803
    "Other; ",  # google-gemini/cookbook issue 327
    "I am doing well, thank-youso much. How are you?\n",  # mudler/LocalAI issue 969
    "碳酸饮料、",  # chatchat-space/Langchain-Chatchat issue 1612
    "可以吃玉米。",  # deepseek-ai/DeepSeek-V3 issue 1550
    "System: \nWe need to compute a total distance\nUser: \n",  # vllm-project/vllm issue 31856
    "!",  # vllm-project/vllm issue 14126
    "<|reserved_special_token_247|>",  # vllm-project/vllm issue 13035
    "\n- Hi, how are you?",  # epfLLM/meditron issue 13
    "The answer is C. The answer is A. ",
    "The answer is not B, it is C, ",
    "Ответ: C, ",
]


@pytest.mark.sweep
@pytest.mark.parametrize("passage", [*LOOPS, *HOSTILE])
def test_a_reply_in_a_loop_is_read_like_one_that_stops_earlier(passage: str) -> None:
    start = "Heparin is given first. The final answer is (C) because of the clot. "
    for before in ("", start, start.replace("C", "B") + "\n\n"):
        cut_off = passage[: len(passage) // 2]
        stopped = before + passage * (2_000 // len(passage)) + cut_off
        looping = before + passage * (5_000 // len(passage)) + cut_off
        assert parse_answer(looping, OPTIONS).letter == parse_answer(stopped, OPTIONS).letter


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("答案是C，" * 10_001, "C"),  # no space or line break in its last 50,000 characters
        ("答案是C。court_" * 6_000, "C"),
        ("答" * 60_000 + "答案是C", "C"),
        ("Answer: C\n" + "碳酸饮料、" * 12_000, "C"),
        ("The answer is C.\n" + "=" * 60_000, "C"),
        (json.dumps({"reasoning": "a b " * 15_000, "answer": "C"}) + "\n", "C"),
        ("```json\n" + json.dumps({"reasoning": "ab" * 30_000, "answer": "C"}) + "\n```", "C"),
        ("<!DOCTYPE html><html>" + "<br>" * 15_000 + "\nAnswer: C", None),  # an error page
        ("Error: context overflow.\n" + "at line 1\n" * 6_000 + "Answer: C", None),
    ],
)
def test_a_loop_hides_nothing_of_a_reply_of_any_length(text: str, letter: str | None) -> None:
    assert parse_answer(text, OPTIONS).letter == letter


@pytest.mark.parametrize("size", [801, 1_300, 1_999])
@pytest.mark.parametrize("copies", [2, 3, 4])
@pytest.mark.parametrize(
    ("start", "end"),
    [("A: B\n", "\n"), ("<answer>B</answer>\n", "\n"), ("", '{"answer":"B"}')],
)
def test_a_long_passage_that_is_repeated_keeps_its_answer(
    start: str, end: str, copies: int, size: int
) -> None:
    prose = "The history is long and the findings are many. " * 50
    passage = start + prose[: size - len(start) - len(end)] + end
    # In the first example, only a second copy begins a line.
    assert parse_answer("Both were discussed. " + passage * copies, OPTIONS).letter == "B"


@pytest.mark.parametrize("passage", ["答案是C，", "The answer is C, ", *LOOPS])
def test_a_loop_takes_no_more_work_the_longer_it_is(passage: str) -> None:
    short, long = (_calls(passage * (size // len(passage))) for size in (4_000, 40_000))
    assert long <= short + 40_000 // len(passage) + 500  # and one comparison for each copy


@pytest.mark.parametrize(
    "passage", ["答案 C ", "答案是C。", "Answer: C ", "故选C，", r"\boxed{C} "]
)
def test_a_loop_on_one_line_takes_little_work_if_the_reply_goes_on(passage: str) -> None:
    end = "\nThe dose depends on the weight of the patient."
    short, long = (_calls(passage * (size // len(passage)) + end) for size in (1_000, 16_000))
    assert parse_answer(passage * 2_000 + end, OPTIONS).letter == "C"
    assert long <= short + 4 * 16_000 // len(passage)


@pytest.mark.parametrize("passage", ["答案是C,", "选C", "The answer is C ", "C is the answer, "])
def test_a_loop_of_lines_that_are_not_the_same_takes_little_work(passage: str) -> None:
    line = passage * (380 // len(passage))
    short, long = (
        _calls("\n".join(f"{line} {number}" for number in range(count))) for count in (5, 50)
    )
    assert long <= 3 * short


def test_an_answer_before_a_loop_of_statements_without_an_option_counts() -> None:
    loop = "\n".join(f"The answer is in line {number} of the case." for number in range(500))
    assert parse_answer(f"The answer is C.\n{loop}", OPTIONS).letter == "C"
    assert parse_answer(f"{loop}\nThe answer is C.", OPTIONS).letter == "C"


@pytest.mark.parametrize("between", [", ", " ", "\n"])
@pytest.mark.parametrize(
    "said", ["Expert {} says the answer is C", "In case {}, the answer is not C"]
)
def test_a_long_reply_is_shortened_where_a_statement_begins(said: str, between: str) -> None:
    several = ", ".join([said] * 5) + "."
    assert parse_answer(between.join(map(several.format, *[range(60)] * 5)), OPTIONS).letter is None
    assert parse_answer(", ".join(map(said.format, range(300))), OPTIONS).letter is None


def test_an_answer_amid_a_long_discussion_of_answers_counts() -> None:
    discussion = "\n".join(f"Expert {number} discusses the answer." for number in range(60))
    assert parse_answer(f"{discussion}\nThe answer is C.\n{discussion}", OPTIONS).letter == "C"


def test_what_is_nested_deeply_is_read_without_recursion() -> None:
    depth = 5_000
    assert parse_answer('{"answer": ' * depth + '"C"' + "}" * depth, OPTIONS).letter in (None, "C")
    assert parse_answer('{"answer": ' + "[" * 900 + "]" * 900 + "}", OPTIONS).letter is None
    assert parse_answer('{"a": ' * 300 + '{"answer": "C"}' + "}" * 300, OPTIONS).letter in (
        None,
        "C",
    )


def test_only_the_end_of_a_long_reply_counts() -> None:
    filler = "The history is long and the findings are many.\n" * (MAX_CHARS // 40)
    assert parse_answer(f"Answer: B\n{filler}Answer: C", OPTIONS).letter == "C"
    assert parse_answer(f"{filler}vitamin D " + "x" * MAX_CHARS, OPTIONS).letter is None
    reply = json.dumps({"analysis": filler, "final_answer": "C"})
    assert parse_answer(reply, OPTIONS).letter == "C"
