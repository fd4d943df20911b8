"""Questions are read out of the prompts of evaluation programs as they were put into them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdagents.datasets.question_prompts import read_prompt, without_instructions

LETTERS = "ABCDEFGHIJ"
QUESTION = "A 54-year-old sailor has bleeding gums. Which vitamin is lacking?"
OPTIONS = ["Retinol", "Thiamine", "Ascorbic acid", "Calciferol"]


def listed(options: Sequence[str], mark: str) -> str:
    """The options, one a line; `mark` has `X` for the letter."""
    return "\n".join(
        f"{mark.replace('X', letter)} {text}"
        for letter, text in zip(LETTERS, options, strict=False)
    )


def lm_eval(question: str, options: Sequence[str]) -> str:
    return f"Question: {question}\n{listed(options, 'X.')}\nAnswer:"


def lm_eval_mmlu(question: str, options: Sequence[str]) -> str:
    lead = "The following are multiple choice questions (with answers) about anatomy."
    return f"{lead}\n\n{question}\n{listed(options, 'X.')}\nAnswer:"


def inspect_single(question: str, options: Sequence[str]) -> str:
    """The default template of `multiple_choice`, as of inspect_ai 0.3."""
    letters = ",".join(LETTERS[: len(options)])
    return (
        "Answer the following multiple choice question. The entire content of your response should "
        "be of the following format: 'ANSWER: $LETTER' (without quotes) where LETTER is one of "
        f"{letters}.\n\n{question}\n\n{listed(options, 'X)')}"
    )


def simple_evals(question: str, options: Sequence[str]) -> str:
    letters = LETTERS[: len(options)]
    return (
        "Answer the following multiple choice question. The last line of your response should be "
        "of the following format: 'Answer: $LETTER' (without quotes) where LETTER is one of "
        f"{letters}. "
        f"Think step by step before answering.\n\n{question}\n\n{listed(options, 'X)')}\n"
    )


def helm(question: str, options: Sequence[str]) -> str:
    shot = f"Question: Which bone is long?\n{listed(['Femur', 'Carpal'], 'X.')}\nAnswer: A"
    lead = "Give a letter answer among A, B, C or D."
    return f"{lead}\n\n{shot}\n\nQuestion: {question}\n{listed(options, 'X.')}\nAnswer:"


def mmlu_pro(question: str, options: Sequence[str]) -> str:
    lead = (
        "The following are multiple choice questions (with answers) about health. Think step by "
        'step and then finish your answer with "the answer is (X)" where X is the correct letter '
        "choice."
    )
    shot = (
        f"Question:\nWhich bone is long?\nOptions:\n{listed(['Femur', 'Carpal'], 'X.')}\n"
        "Answer: Let's think step by step. The femur is long. The answer is (A)."
    )
    asked = f"Question:\n{question}\nOptions:\n{listed(options, 'X.')}"
    return f"{lead}\n\n{shot}\n\n{asked}\nAnswer: Let's think step by step."


def gpqa(question: str, options: Sequence[str]) -> str:
    return f"Question: {question}\nChoices:\n{listed(options, '(X)')}\nAnswer:"


FORMS = [lm_eval, lm_eval_mmlu, inspect_single, simple_evals, helm, mmlu_pro, gpqa]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_a_question_is_read_as_it_was_written(form: Callable[..., str]) -> None:
    read = read_prompt(form(QUESTION, OPTIONS))
    assert read is not None
    assert (read.text, [*read.options.values()]) == (QUESTION, OPTIONS)
    assert read.has_examples is (form in (helm, mmlu_pro))


_WORDS = st.lists(
    st.text(st.characters(categories=["Ll", "Nd"], exclude_characters="\n"), min_size=2).filter(
        lambda word: word not in ("answer", "question")
    ),
    min_size=1,
    max_size=6,
).map(" ".join)


@pytest.mark.sweep
@settings(max_examples=40)
@given(st.sampled_from(FORMS), _WORDS, st.lists(_WORDS, min_size=2, max_size=10))
def test_any_question_is_read_as_it_was_written(
    form: Callable[..., str], question: str, options: list[str]
) -> None:
    read = read_prompt(form(f"{question}?", options))
    assert read is not None
    assert (read.text, [*read.options.values()]) == (f"{question}?", options)


@given(st.text())
def test_any_text_is_read_or_has_no_options(text: str) -> None:
    read = read_prompt(text)
    assert read is None or len(read.options) > 1


def test_what_is_no_instruction_stays_in_the_question() -> None:
    told = "He cannot read the letters on the chart. Choose the best answer about glaucoma."
    read = read_prompt(f"{told}\nA. One\nB. Two\n\nNote: he takes warfarin.\nPick one letter.")
    assert read is not None
    assert read.text == f"{told}\n\nNote: he takes warfarin."
    assert read.instructions == "Pick one letter."


def test_statements_in_a_question_are_not_its_options() -> None:
    statements = "Which of these are true?\nA. Gums bleed.\nB. Bones bend.\n\nChoose:"
    read = read_prompt(f"{statements}\nA) A only\nB) B only\nC) Both")
    assert read is not None
    assert read.text == statements
    assert [*read.options.values()] == ["A only", "B only", "Both"]


def test_options_of_several_lines_in_one_line_and_in_lowercase() -> None:
    long = read_prompt("Which?\nA. one\n  and more\nB. two\n  and more\n\nAnswer:")
    assert long is not None
    assert [*long.options.values()] == ["one\n  and more", "two\n  and more"]
    short = read_prompt("Which? (A) Retinol (B) Ascorbic acid")
    assert short is not None
    assert [*short.options.values()] == ["Retinol", "Ascorbic acid"]
    lower = read_prompt("Which?\na) one\nb) two")
    assert lower is not None
    assert lower.is_lowercase
    assert [*lower.options] == ["A", "B"]


@pytest.mark.parametrize(
    "prompt",
    [
        "Which?\n\nA. one\nB. two\nC. \n\n{}",
        "Which?\nA. one\nB. two\nC.\n{}",
        "Which?\n\nA. one\n\nB. two\n\nC.\n\n{}",
        "Which?\nA.\none\nB.\ntwo\nC.\n\n{}",
        "Which?\nA. one\n  \nB. two\nC. \r\n\r\n{}",
        "Which? (A) one (B) two (C)\n{}",
    ],
)
def test_what_follows_an_empty_last_option_is_not_its_text(prompt: str) -> None:
    for told in ("Choose one, and give its letter in \\boxed{}.", "Answer with only the letter."):
        read = read_prompt(prompt.replace("{}", told, 1))
        assert read is not None
        assert (read.text, [*read.options.values()]) == ("Which?", ["one", "two", ""])
        assert read.instructions == told
    read = read_prompt(prompt.replace("{}", "Note: he takes warfarin.\nAnswer:"))
    assert read is not None
    assert read.options["C"] == ""
    assert (read.text, read.ending) == ("Which?\n\nNote: he takes warfarin.", "Answer:")


@pytest.mark.parametrize(
    "prompt",
    [
        "Which?\nA. one\nB. two\nC.\nNone of the above\n\nAnswer:",
        "Which?\nA) one\nB) two\nC)\n   None of the above",
    ],
)
def test_the_last_option_may_begin_below_its_letter(prompt: str) -> None:
    read = read_prompt(prompt)
    assert read is not None
    assert [*read.options.values()] == ["one", "two", "None of the above"]
    assert read.text == "Which?"


def test_a_letter_in_an_instruction_is_no_option() -> None:
    read = read_prompt("Which is it? (A) Iron (B) Water (C) Salt. If none, write (D)")
    assert read is not None
    assert [*read.options] == ["A", "B", "C"]


def test_options_that_are_empty_or_below_their_letters() -> None:
    cut = read_prompt("Which?\nA. one\nB.\nC. three\nD.")
    assert cut is not None
    assert [*cut.options.values()] == ["one", "", "three", ""]
    below = read_prompt("Which?\nA.\none\nB.\ntwo\n\nAnswer:")
    assert below is not None
    assert [*below.options.values()] == ["one", "two"]


def test_a_stray_mark_after_the_options_is_left_out() -> None:
    read = read_prompt(f'{QUESTION}\nA. One\nB. Two\n"\nAnswer:')
    assert read is not None
    assert (read.text, [*read.options.values()]) == (QUESTION, ["One", "Two"])


def test_a_prompt_without_options() -> None:
    for prompt in ("", "What is scurvy?", "A. single option", "1. one\n2. two", "B. two\nC. three"):
        assert read_prompt(prompt) is None


def test_a_context_before_the_question_is_kept() -> None:
    read = read_prompt("Abstract: 12 sailors ate limes.\n\nQuestion: Did it help?\nA. yes\nB. no")
    assert read is not None
    assert read.text == "Abstract: 12 sailors ate limes.\n\nDid it help?"


def test_instructions_alone() -> None:
    told, instructions = without_instructions("Be brief. Reply with only the letter.")
    assert (told, instructions) == ("Be brief.", ["Reply with only the letter."])


@pytest.mark.parametrize(
    "filler",
    [
        "\n", " ", "\t\n", "A. ", "(A) ", "\nA.", "Question:\n", "a.\n", "A) ",
        "A、铁\n", "答案：B\n",
        "Answer: B\n(A) Iron (B) Zinc\n", "the ", "*", "A.Iron B.",
    ],
)  # fmt: skip
def test_a_long_prompt_is_read_in_linear_time(filler: str) -> None:
    assert _seconds(filler, 200_000) < 10 * _seconds(filler, 50_000)


def _seconds(filler: str, length: int) -> float:
    prompt = f"{QUESTION}\n{filler * (length // len(filler))}x\n{listed(OPTIONS, 'X.')}\nAnswer:"
    started = time.process_time()
    read_prompt(prompt)
    return time.process_time() - started


@pytest.mark.parametrize(
    ("prompt", "text", "options"),
    [
        ("Which? (C) Iron (A) Zinc (B) Gold", "Which?", {"A": "Zinc", "B": "Gold", "C": "Iron"}),
        ("Which? (B) Iron (A) Zinc", "Which?", {"A": "Zinc", "B": "Iron"}),
        ("Which?\nb) Iron\na) Zinc\nAnswer:", "Which?", {"A": "Zinc", "B": "Iron"}),
        ("Which?\nB. coli\nA. baumannii", "Which?", {"A": "baumannii", "B": "coli"}),
        ("Vitamin (C) heals? (A) Yes (B) No", "Vitamin (C) heals?", {"A": "Yes", "B": "No"}),
        ("C. coli grows.\nA. Yes\nB. No", "C. coli grows.", {"A": "Yes", "B": "No"}),
    ],
)
def test_letters_in_another_order_stay(prompt: str, text: str, options: dict[str, str]) -> None:
    read = read_prompt(prompt)  # MDAgents shuffles labeled options in its prompts
    assert read is not None
    assert (read.text, list(read.options.items())) == (text, sorted(options.items()))


def solved(options: Sequence[str], answer: str) -> str:
    """An example with its answer."""
    return f"Question: Which cures beriberi?\n{listed(options, 'X.')}\n{answer}\n\n"


@pytest.mark.parametrize("count", [3, 4, 5, 6, 10])  # 3 to 10: TIGER-AI-Lab/MMLU-Pro, issue 24
@pytest.mark.parametrize("last", [OPTIONS[:3], OPTIONS])
def test_an_example_may_have_any_number_of_options(count: int, last: Sequence[str]) -> None:
    shots = solved(
        ["Iron", "Zinc", "Niacin", "Gold", "Tin", "Lead", "Salt", "Coal", "Clay", "Sand"][:count],
        "Answer: B",
    )
    for examples in (shots, solved(["Yes", "No"], "Answer: A") + shots):
        read = read_prompt(examples + lm_eval(QUESTION, last))
        assert read is not None
        assert (read.text, [*read.options.values()]) == (QUESTION, last)
        assert read.has_examples


def test_the_end_of_a_list_does_not_begin_the_next() -> None:
    survey = "A: airway patent\nB: breathing\nC: pulse 120\nD: GCS 14\nE: no other injuries\nNext?"
    read = read_prompt(f"{survey}\n{listed(OPTIONS, 'X.')}\nAnswer:")
    assert read is not None
    assert (read.text, [*read.options.values()]) == (survey, OPTIONS)
    shuffled = "B. Zinc\nD. Tin\nC. Gold\nA. Iron"
    read = read_prompt(f"{solved(OPTIONS[:3], 'Answer: B')}{QUESTION}\n{shuffled}")
    assert read is not None
    assert (read.text, read.options["D"], len(read.options)) == (QUESTION, "Tin", 4)
    read = read_prompt("A. Gums bleed.\nB. Bones bend.\nWhich?\nC. Both\nA. One\nB. Neither")
    assert read is not None
    assert read.options == {"A": "One", "B": "Neither", "C": "Both"}
    assert read.text == "A. Gums bleed.\nB. Bones bend.\nWhich?"


def test_statements_after_an_example_stay_in_the_question() -> None:
    statements = "Which are true?\nA. Gums bleed.\nB. Bones bend.\n\nChoose:"
    read = read_prompt(f"{solved(OPTIONS, 'Answer: B')}{statements}\nA. One\nB. Both\nAnswer:")
    assert read is not None
    assert (read.text, [*read.options.values()]) == (statements, ["One", "Both"])
    assert read.has_examples


def test_an_answer_in_a_question_is_not_that_of_an_example() -> None:
    asked = "He wrote\nAnswer: C\nbelow item 7. What was tested?"
    for examples in (
        solved(OPTIONS, "Answer: B"),
        solved(OPTIONS, "A: Why?\n\nThe answer is (B)."),
    ):
        read = read_prompt(examples * 2 + lm_eval(asked, OPTIONS))
        assert read is not None
        assert read.text == asked
        read = read_prompt(f"{examples * 2}{QUESTION}\n{listed(OPTIONS, 'X.')}")
        assert read is not None
        assert (read.text, read.has_examples) == (QUESTION, True)


BONES = solved(OPTIONS, "Answer: A")
SAILOR = "A 54-year-old sailor has bleeding gums."
ASKED = lm_eval("Which vitamin?", OPTIONS)


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        (f"{SAILOR}\n\n{BONES}{ASKED}", f"{SAILOR}\n\nWhich vitamin?"),
        (f"Think.\n\nCase: {SAILOR}\n\n{BONES * 2}{ASKED}", f"Case: {SAILOR}\n\nWhich vitamin?"),
        # A context in front of each question, as in prompts for PubMedQA.
        (
            f"Abstract: Limes.\n{BONES}Abstract: {SAILOR}\n{ASKED}",
            f"Abstract: {SAILOR}\nWhich vitamin?",
        ),
        (
            f"Context (PubMed): Limes.\n\n{BONES}Context (PubMed): {SAILOR}\n\n{ASKED}",
            f"Context (PubMed): {SAILOR}\n\nWhich vitamin?",
        ),
        (f"You are a 54-year-old doctor. Give reasons.\n\n{BONES}{ASKED}", "Which vitamin?"),
        (f"{SAILOR}\n\nWhich bone?\nA. Rib\nB. Ulna\nAnswer: B\n\n{ASKED}", "Which vitamin?"),
        (f"{SAILOR}\n\n{BONES}A 30-year-old man limps.\n\n{ASKED}", "Which vitamin?"),
        # The context of an example, or of another patient, is not that of the question.
        (f"Example 1:\n\nCase: {SAILOR}\n\n{BONES}{ASKED}", "Which vitamin?"),
        (f"Here are examples.\n\n{SAILOR}\n\n{BONES}{ASKED}", "Which vitamin?"),
        (
            f"{SAILOR}\n\n{BONES}{lm_eval('A 30-year-old man limps. Why?', OPTIONS)}",
            "A 30-year-old man limps. Why?",
        ),
        (f"{BONES.strip()}\n\nThis 60-year-old man is well.\n\n{ASKED}", "Which vitamin?"),
    ],
)
def test_what_a_question_is_about_may_precede_the_examples(prompt: str, text: str) -> None:
    read = read_prompt(prompt)
    assert read is not None
    assert (read.text, read.has_examples) == (text, True)


def test_instructions_may_precede_the_examples() -> None:
    told = "The last line of your response should be 'Answer: $LETTER'."
    # RubinThomas75/epfLLM-eval
    for lead in (f"{told}\n\nExample 1:\n", f"{told}\n\n", f"You are a doctor.\n\n{told}\n\n"):
        for example in (BONES, "Which bone?\nA. Rib\nB. Ulna\nAnswer: B\n\n"):
            read = read_prompt(f"{lead}{example}{ASKED}")
            assert read is not None
            assert read.text == "Which vitamin?"
            assert read.instructions == told
            assert told in read.lead


@pytest.mark.parametrize(
    "answer",
    [
        "答案：B", "答案是B。", "정답: B", "คำตอบ: B", "Respuesta: B", "Resposta: (B)",
        "Réponse : B", "Antwort: B", "Đáp án: B", "उत्तर: B", "回答：まず考えます。答えは(B)です。",
        "The best answer is (B).", "Correct option: B", "Response: B. Thiamine", "Output: B",
        "**Answer:** B", "### Answer\nB", "**Answer**\n\n(B)", "<answer>B</answer>",
        "<answer>\nB\n</answer>", "\\boxed{B}", "So it is $\\boxed{\\text{B}}$.", "ASSISTANT: B",
        # "Answer in JSON format:", from the prompt of Xphi310302/fpt-ai-residency
        'Answer in JSON format:\n```json\n{"answer": "B"}\n```',
    ],
)  # fmt: skip
@pytest.mark.parametrize("blank", ["\n", ""])
def test_an_example_may_give_its_answer_in_any_form(answer: str, blank: str) -> None:
    read = read_prompt(f"{solved(OPTIONS, answer).rstrip()}\n{blank}{lm_eval(QUESTION, OPTIONS)}")
    assert read is not None
    assert (read.text, [*read.options.values()]) == (QUESTION, OPTIONS)
    assert read.has_examples


@pytest.mark.parametrize(
    "line",
    [
        "Response: B cells divide.", "Option B: as said.", "Conclusion: A scan is due.", "B",
        "Result: A > B", "Result: B, p = 0.05", "Result: A, 45%; B, 30%", "Overall: B (20)",
        "Patient choice: A (surgery).", "Best motor response: D.", "Solution: B (0.9% saline)",
    ],
)  # fmt: skip
def test_a_line_between_two_lists_may_belong_to_the_question(line: str) -> None:
    statements = f"Which are true?\nA. Gums bleed.\nB. Bones bend.\n{line}"
    read = read_prompt(f"{statements}\n\nChoose:\n{listed(OPTIONS, 'X.')}")
    assert read is not None
    assert read.text == f"{statements}\n\nChoose:"
    assert not read.has_examples


@pytest.mark.parametrize("ending", ["答案：", "答案是：", "Respuesta:", "**Answer:**", "정답:"])
def test_the_last_line_may_be_in_another_language(ending: str) -> None:
    for between in ("\n", "\n\n"):
        read = read_prompt(f"{QUESTION}\n{listed(OPTIONS, 'X.')}{between}{ending}")
        assert read is not None
        assert (read.text, read.ending) == (QUESTION, ending)


@pytest.mark.parametrize(
    "told",
    [
        "A patient can read only the letter E on the Snellen chart.",
        "You examine a 60-year-old man who sees only the letter E with his right eye.",
        "The therapist asks him to think step by step about the feared situation.",
        "The patient can reason step by step but cannot write the last letter of her name.",
        "The patient can draw, write a single letter, and name a watch.",
        "A student with ADHD cannot finish multiple-choice questions in time.",
        "The therapist says, 'Let's think step by step about your fear.'",
    ],
)
def test_a_clinical_sentence_is_no_instruction(told: str) -> None:
    read = read_prompt(f"{told} What now?\n{listed(OPTIONS, 'X.')}\nAnswer:")
    assert read is not None
    assert (read.text, read.instructions) == (f"{told} What now?", "")
    assert without_instructions(told) == (told, [])


@pytest.mark.parametrize(
    "told",
    [
        # Steven-Yiran/medical-gpt-interpretability
        "The following is a multiple-choice question about medical knowledge.",
        # RubinThomas75/epfLLM-eval
        "Answer the following multiple-choice question.",
        "Think step by step before answering.",
        "Let's think step by step.",
        "Before answering, think step by step.",
        "You are a medical expert tasked with answering multiple-choice questions.",
        "I will give you a multiple choice question about medicine.",
        "Please provide your answer in the format of a single letter (A, B, C, or D).",
        "Provide only the letter (A, B, C or D) of the correct choice.",
        "Directly answer with just the letter.",
        "The response must contain only the letter of the correct option.",
        "Only the letter, no explanation.",
        "Multiple choice question:",
        "Nothing else, only the letter.",
        "On the last line, write only the letter.",
        "Be concise: single letter only.",
        "Analyze the case and think step by step.",
        "You will receive a multiple-choice question.",
        "Your job is to solve a multiple-choice question about medicine.",
        "Each option has a corresponding letter.",
        "Think step by step about the patient.",
        "Given this patient, output only the letter.",
        "The following is a multiple choice question about a 60-year-old man.",
    ],
)
def test_a_sentence_to_whoever_answers_is_an_instruction(told: str) -> None:
    assert without_instructions(f"He is pale. {told}") == ("He is pale.", [told])


@pytest.mark.parametrize(
    ("after", "ending"),
    [
        # Steven-Yiran/medical-gpt-interpretability
        (" Answer: (", "Answer: ("),
        (" ASSISTANT: ", ""),
        (" Answer:", "Answer:"),
        (" **Answer:**", "**Answer:**"),
        (" 答案：", "答案："),
        (" Answer: Let's think step by step.", "Answer: Let's think step by step."),
        ("</question>", ""),
        ("\n</question>", ""),
        ("\n### Response:\n", ""),
        (". Answer with only the letter.", "Answer with only the letter."),
    ],
)
def test_what_follows_in_the_line_of_the_last_option_is_not_its_text(
    after: str, ending: str
) -> None:
    in_line = " ".join(f"({letter}) {text}" for letter, text in zip("ABCD", OPTIONS, strict=True))
    for options in (f" {in_line}", f"\n{listed(OPTIONS, 'X.')}"):
        for start in ("", "<question>"):
            read = read_prompt(f"{start}{QUESTION}{options}{after}")
            assert read is not None
            assert [text.rstrip(".") for text in read.options.values()] == OPTIONS
            assert (read.text, read.ending) == (QUESTION, ending)


def test_a_quotation_mark_belongs_to_what_it_closes() -> None:
    quoted = read_prompt(f'"{QUESTION}\n{listed(OPTIONS, "X.")}"')
    assert quoted is not None
    assert quoted.options["D"] == "Calciferol"
    for options in (['Said "no"', 'Said "yes"'], ['4"', '5"']):
        read = read_prompt(f"{QUESTION}\n{listed(options, 'X.')}")
        assert read is not None
        assert [*read.options.values()] == options


@pytest.mark.parametrize(
    "option",
    [
        "Stop the drug. Give one unit of blood",
        "Ask her: what is your answer?",
        '"I see. Let\'s think step by step about it."',
        "Record the urine output:",
        "K<sup>+</sup>",
        "<b>Potassium</b>",
    ],
)
def test_an_option_keeps_what_looks_like_the_end_of_a_prompt(option: str) -> None:
    for last in ([option, "Iron"], ["Iron", option]):
        read = read_prompt(f"{QUESTION}\n{listed(last, 'X.')}")
        assert read is not None
        assert [*read.options.values()] == last


def test_a_long_last_option_is_read_in_linear_time() -> None:
    long = f"Iron{' ' * 200_000}Zinc"
    started = time.process_time()
    for prompt in (f"{QUESTION}\nA. Tin\nB. {long}", f"{QUESTION}\nA. Tin\nB. Gold\n\n{long}"):
        assert read_prompt(prompt) is not None
    assert time.process_time() - started < 1


WIDE = {ord(letter): ord("Ａ") + place for place, letter in enumerate(LETTERS)}
"""Letters of options -> their full-width forms."""


@pytest.mark.parametrize(
    "mark",
    [
        "X.", "X)", "X、", "X．", "X：", "（X）", "[X] ", "**X** ", "- X.",
        "\u200bX. ", "\u3000X．",
        "Option X: ",
    ],
)  # fmt: skip
@pytest.mark.parametrize("options", [OPTIONS, ["维生素A", "维生素B", "维生素C"], ["yes", "no"]])
def test_options_may_have_rare_marks(mark: str, options: Sequence[str]) -> None:
    lines = "\n".join(
        mark.replace("X", letter) + text for letter, text in zip(LETTERS, options, strict=False)
    )
    for written in (lines, lines.translate(WIDE) if mark[-1] in "、．）" else lines):
        example = f"Question: Which?\n{written}\nAnswer: B\n\n"
        for start in ("", example):
            read = read_prompt(f"{start}Question: {QUESTION}\n{written}\nAnswer:")
            assert read is not None
            assert (read.text, [*read.options.values()]) == (
                QUESTION,
                [text.translate(WIDE) if written != lines else text for text in options],
            )
            assert [*read.options] == [*LETTERS[: len(options)]]
            assert (read.has_examples, read.ending) == (start != "", "Answer:")


def test_options_may_follow_each_other_with_rare_marks() -> None:
    for marks in ("A) Iron B) Zinc C) Gold", "A. Iron B. Zinc C. Gold", "A. Iron B. Zinc\nC. Gold"):
        for between in (" ", "\n"):
            for after in ("", "\nAnswer:", " Answer:"):
                read = read_prompt(f"Which?{between}{marks}{after}")
                assert read is not None
                assert (read.text, [*read.options.values()]) == ("Which?", ["Iron", "Zinc", "Gold"])
    arms = "Arms:\n[A] 10 mg\n[B] 20 mg\nWhich design?"
    read = read_prompt(f"{arms}\nA) Trial B) Cohort C) Series")
    assert read is not None
    assert (read.text, [*read.options.values()]) == (arms, ["Trial", "Cohort", "Series"])
    chinese = read_prompt("缺乏？A.铁 B.锌 C.金")
    assert chinese is None, "no space before the first mark"
    chinese = read_prompt("缺乏？\nA.铁 B.锌 C.金\n答案：")
    assert chinese is not None
    assert [*chinese.options.values()] == ["铁", "锌", "金"]


def test_lines_may_end_in_other_ways() -> None:
    for end in ("\u2028", "\u2029", "\r", "\r\n", "\x85"):
        read = read_prompt(lm_eval(QUESTION, OPTIONS).replace("\n", end))
        assert read is not None
        assert (read.text, [*read.options.values()]) == (QUESTION, OPTIONS)


@pytest.mark.parametrize(
    "text",
    [
        "Cultures grow\nA.baumannii\nB.cereus\nC.difficile\nWhat now?",
        "Cultures grow A. baumannii, B. cereus and C. difficile.",
        "Three were found: A. baumannii, B. cereus, C. difficile.",
        "Is it? A) Yes B) No",
        "Vitamin A) is fat-soluble and B) is not.",
        "Two groups. A: 10 mg B: 20 mg C: placebo. Which is the control?",
        "Which? A. Giardia B. C. difficile C. E. coli",
        "Blood groups. A. B. AB.",
        "A.\n[B] x",
        "His notes:\nA.M. glucose 80\nB.P. 120/80\nC.B.C. normal\nExplain them.",
    ],
)
def test_letters_in_a_text_are_no_rare_marks(text: str) -> None:
    assert read_prompt(text) is None
