"""Questions of a user's own: read for certain, or refused by the name of their own field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mdagents.data_tools.question_files import make_questions
from mdagents.datasets.conversion import rows_by_hand
from mdagents.datasets.dataset import Dataset, open_dataset
from mdagents.datasets.question_records import parse_question
from mdagents_llm.errors import ConfigError

LISTED = ["Retinol", "Thiamine", "Ascorbic acid", "Calciferol"]
LETTERED = dict(zip("ABCD", LISTED, strict=True))


def gold(**fields: Any) -> str:
    has_options = {"options", "choices", "A", "option0", "option1"} & fields.keys()
    options = {} if has_options else {"options": LISTED}
    return parse_question({"question": "Which?", **options, **fields}, "x.jsonl line 3", 3).gold


@pytest.mark.parametrize(
    "fields",
    [
        {"answer": "C"},
        {"answer": "c"},
        {"answer": " (C) "},
        {"answer": "C."},
        {"answer": "Ascorbic acid"},
        {"answer": "ascorbic  ACID"},
        {"Answer": "C"},
        {"options": LISTED, "A": " Retinol", "B": "Thiamine", "C": None, "answer": "C"},
        {"correct_answer": "Ascorbic acid"},
        {"Correct Option": "C"},
        {"correct": "C"},
        {"label": "C"},
        {"gold": "C"},
        {"answerKey": "C"},
        {"target": "Ascorbic acid"},
        {"answer_idx": "C"},
        {"answer_index": 2},
        {"answerIndex": 2},
        {"answer_index": "2"},
        {"answer_number": 3},
        {"answer_index": 2, "answer": "Ascorbic acid"},
        {"answer_index": 2, "answer": "C", "answer_number": 3.0},
        {"answer_idx": "C", "answer": "ascorbic acid"},
        {"answer_idx": "C", "label": 7},
        {"options": LETTERED, "answer": "C"},
        {"answer": ["c"]},
        {"answer": ["Ascorbic acid"]},
        {"answer": "['C']"},
        {"answer_index": "[2]"},
        {"options": ["[1]", "[1, 2]", "[3]"], "answer": "[3]"},
        {"options": ["[1]", "[3]", "[1, 2]"], "answer": "[1, 2]"},
        {"options": "{1: 'Retinol', 2: 'Thiamine', 3: 'Ascorbic acid'}", "answer": "3"},
        {"answer_idx": ["C"], "answer": ["Ascorbic acid"]},
        {"options": {str(n): text for n, text in enumerate(LISTED)}, "answer": 2},
        {"options": {str(n): text for n, text in enumerate(LISTED, start=1)}, "answer": "3.0"},
        {"options": {str(n): text for n, text in enumerate(LISTED, start=1)}, "answer_index": 2},
        {"options": "A Retinol\nB Thiamine\n\nC Ascorbic acid", "answer": "C"},
        {"options": "A.视黄醇\nB.硫胺素\nC.抗坏血酸", "answer": "C"},
        {"options": "A、视黄醇\nB、硫胺素\nC、抗坏血酸", "answer": "抗坏血酸"},
        {"options": "(A)Retinol\n(B)Thiamine\n(C)Ascorbic acid", "answer": "Ascorbic acid"},
        {"options": ["A. Zinc", "B. Lead", "C. Iron"], "answer": "Iron"},
        {"options": ["A. Zinc", "B. Lead", "C. Iron"], "answer": "C. Iron"},
        {"options": LETTERED, "answer": "Ascorbic acid"},
        {"choices": LISTED, "answer": "C"},
        {"A": "Retinol", "B": "Thiamine", "C": "Ascorbic acid", "answer": "C"},
        {"options": ["1", "2", "3"], "answer_idx": "C"},
        {
            "options": [{"key": letter, "text": text} for letter, text in LETTERED.items()],
            "answer": "C",
        },
        {
            "options": [{"label": letter, "value": text} for letter, text in LETTERED.items()],
            "answer": "C",
        },
        {
            "options": [{"id": letter, "label": text} for letter, text in LETTERED.items()],
            "answer": "C",
        },
        {"options": [{"text": text} for text in LISTED], "answer": "C"},
        {
            "options": [{"label": text, "value": letter} for letter, text in LETTERED.items()],
            "answer": "Ascorbic acid",
        },
        {
            "options": [
                {"option": letter, "description": text} for letter, text in LETTERED.items()
            ],
            "answer": "Ascorbic acid",
        },
        {"choices": {"text": LISTED, "label": [*"ABCD"]}, "answerKey": "C"},  # as in ARC
        {"choices": {"text": LISTED, "label": [*"1234"]}, "answerKey": "3"},
        {
            "choices": "{'text': array(['x', 'y', 'z]'], dtype=object), "
            "'label': array(['A', 'B',\n 'C'], dtype=object)}",
            "answerKey": "C",
        },
        {
            "options": "['Retinol' 'Thiamine'\n 'Ascorbic acid' \"Wilson's\"]",
            "answer": "C",
        },  # numpy
        # one option in each line of a cell
        {"options": "A. Retinol\r\nB. Thiamine\r\nC. Ascorbic acid\r\n", "answer": "C"},
        {"options": "(A) Retinol\n\n(B) Thiamine\n(C) Ascorbic acid", "answer": "Ascorbic acid"},
        *({"answer": name} for name in ("opc", "Opc", "opC", "op_c", "OP C")),
        # zonghui0228/CNMLEQA
        {"opa": "Retinol", "opb": "Thiamine", "opc": "Ascorbic acid", "answer": "opc"},
        {"options": ["ICU", "ward", "OPD", "home"], "answer": "OPD"},
        {"options": ["O", "A", "B", "AB"], "answer": "AB"},
        {"options": ["O", "AB", "B", "A"], "answer_idx": "C", "answer": "B"},
    ],
)
def test_the_right_option_by_letter_by_text_or_by_a_place_that_says_where_it_counts_from(
    fields: dict[str, Any],
) -> None:
    if fields.get("options") == ["O", "A", "B", "AB"]:
        assert gold(**fields) == "D"
    else:
        assert gold(**fields) == "C"


@pytest.mark.parametrize(("answer", "letter"), [("AA", "A"), (" Aa", "B"), ("aa", "C")])
def test_the_text_of_an_option_that_differs_from_others_only_in_case(
    answer: str, letter: str
) -> None:
    assert gold(options=["AA", "Aa", "aa"], answer=answer) == letter
    assert gold(options={"A": "AA", "B": "Aa", "C": "aa"}, answer=answer) == letter


@pytest.mark.parametrize(
    "answer",
    [
        {"answer": "y", "answer_id": "B"},  # MedConceptsQA
        {"answer": "B"},
        {"answer": "option2"},
        {"label": "Option 2"},
        {"answer_id": "B"},
        {"answer_id": "q-4711", "answer": "B"},
    ],
)
def test_columns_of_options_may_be_numbered(answer: dict[str, str]) -> None:
    columns = {"option1": "x", "Option 2": "y", "option_3": "z"}
    assert gold(**columns, **answer) == "B"
    assert gold(**dict(reversed(columns.items())), **answer) == "B"


def test_numbered_columns_may_begin_at_0() -> None:
    assert gold(option0="x", option1="y", option2="z", answer="option1") == "B"


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("value", [1, "1"])
def test_a_number_is_not_guessed_beside_numbered_columns(first: int, value: object) -> None:
    columns = {f"option{number}": text for number, text in enumerate("xyz", first)}
    with pytest.raises(ConfigError, match="the first option may be 0 or 1"):
        gold(**columns, answer=value)


def test_numbered_columns_with_a_gap_or_beside_letters_are_no_options() -> None:
    assert gold(A="x", B="y", option1="y", option2="x", answer="A") == "A"
    assert gold(options=["x", "y"], op1="CABG", op2="PCI", answer="A") == "A"
    with pytest.raises(ConfigError):
        gold(option1="x", option3="y", answer="A")
    with pytest.raises(ConfigError):
        gold(option1="x", option01="z", option2="y", answer="A")


@pytest.mark.parametrize("value", [0, 1, 2, 3, 4, "1", " 2 ", 1.0, "1.0"])
@pytest.mark.parametrize(
    "field", ["answer", "answer_idx", "correct_answer", "correct", "label", "gold", "Answer"]
)
@pytest.mark.parametrize("options", [LISTED, LETTERED, ["1", "2", "3", "4"]])
def test_a_number_alone_is_never_guessed(field: str, value: object, options: object) -> None:
    with pytest.raises(ConfigError) as caught:
        gold(options=options, **{field: value})
    assert str(caught.value) == (
        f"x.jsonl line 3: field '{field}' is {value!r}, and the first option may be 0 or 1: write "
        "the letter, or name the field answer_index (first option 0) or answer_number (first "
        "option 1)"
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"answer_index": 4}, "field 'answer_index' is 4 but must be 0 to 3"),
        ({"answer_index": -1}, "field 'answer_index' is -1 but must be 0 to 3"),
        ({"answer_number": 0}, "field 'answer_number' is 0 but must be 1 to 4"),
        ({"answer_index": "C"}, "field 'answer_index' is 'C' but must be a whole number"),
        ({"answer_index": True}, "field 'answer_index' is True but must be a whole number"),
        ({"answer_index": 1.5}, "field 'answer_index' is 1.5 but must be a whole number"),
        ({"answer": "opj"}, "field 'answer' is 'opj' but must be one of A, B, C, D"),
        (
            {"options": LETTERED, "answer_idx": "C", "answer": "opb"},
            "field 'answer' differs from the text of option C",
        ),
        ({"answer": True}, "field 'answer' is True but must be a letter"),
        ({"answer": []}, "field 'answer' is [] but must be a letter"),
        ({"answer": ["C", "D"]}, "'answer' is ['C', 'D']: more than one option is right, and a"),
        ({"answer": "['c', 'd']"}, "field 'answer' is ['c', 'd']: more than one option is"),
        ({"answer": "ABD"}, "field 'answer' is 'ABD': more than one option is right"),  # CMExam
        ({"correct_answer": "b|c|d"}, "is 'b|c|d': more than one option is right"),
        ({"answer": "A, C"}, "is 'A, C': more than one option is right"),
        ({"answer": "ACE"}, "field 'answer' is 'ACE' but must be one of A, B, C, D, or the"),
        ({"answer": [3]}, "field 'answer' is 3, and the first option may be 0 or 1"),
        ({"options": {"1": "x", "2": "y"}, "answer": 0}, "is 0, and the first option may be"),
        ({"options": {"1": "2", "2": "1"}, "answer": "2"}, "is '2', and the first option may"),
        ({"options": {"1": "x", "3": "y"}, "answer": "x"}, "option letters 1,3 are not"),
        ({"label": "Z"}, "field 'label' is 'Z' but must be one of A, B, C, D, or the text of one"),
        ({"gold": "Ascorbic"}, "field 'gold' is 'Ascorbic' but must be one of A, B, C, D, or"),
        (
            {"options": LETTERED, "answer_idx": "A", "gold": "B"},
            "field 'gold' is option B and the right option is A; one of them is wrong",
        ),
        (
            {"options": LETTERED, "label": "A", "target": "B"},
            "field 'target' is option B and the right option is A; one of them is wrong",
        ),
        (
            {"answer_index": 2, "answer": "B"},
            "field 'answer_index' is option C and field 'answer' is option B; one of them is wrong",
        ),
        (
            {"answer_index": 2, "answer": "Thiamine"},
            "field 'answer' differs from the text of option C",
        ),
        ({"answer_index": 2, "answer": "Zinc"}, "field 'answer' differs from the text of option C"),
        (
            {"options": LETTERED, "answer_idx": "C", "answer_index": 1},
            "field 'answer_idx' is option C and field 'answer_index' is option B; one of them is",
        ),
        ({"choices": LISTED, "answer": 1}, "field 'answer' is 1, and the first option may be 0"),
        ({"answer_index": 1, "answer_number": 1}, "field 'answer_number' is option A; one of"),
        (
            {"options": ["O", "A", "B", "AB"], "answer": "B"},
            "field 'answer' is 'B', which may be B or C: write the letter into answer_idx",
        ),
        ({"options": ["x", "y", "x"], "answer": "x"}, "field 'answer' is 'x', which may be A or C"),
        ({"A": "x", "option_a": "y", "B": "z", "answer": "A"}, "'option_a' is a second one for"),
        (
            {"options": LETTERED, "correct_answer": "B", "correct_option": "C"},
            "field 'correct_answer' is option B and field 'correct_option' is option C; one of",
        ),
        (
            {"options": LETTERED, "gold": "B", "target": "Retinol"},
            "field 'gold' is option B and field 'target' is option A; one of",
        ),
        (
            {"options": ["x", "y", "z"], "A": "x", "B": "q", "C": "z", "answer": "A"},
            "field 'options' differs from the fields A, B, C",
        ),
        (
            {f"option_{letter}": letter * 3 for letter in "abcdefghijklm"} | {"answer": "B"},
            "field 'option_k' is option 11, but a question may have at most 10",
        ),
        ({"options": "A) x B) y", "answer": "A"}, "field 'options' must be an object with letters"),
        ({"options": None, "answer": "A"}, "there are no options: give a field 'options'"),
        (
            {},
            "no field says which option is right, such as answer_idx with its letter; there ",
        ),
    ],
)
def test_what_is_not_certain_is_refused_by_its_own_name(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        gold(**fields)
    assert str(caught.value).startswith("x.jsonl line 3: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("right", "other"),  # Sakshi113/MMAU#12
    [
        ("1.5 mg", "15 mg"),
        ("> 10 mm", "< 10 mm"),
        ("Na+", "Na-"),
        ("-5", "+5"),
        ("−5", "5"),
        ("10%", "1.0%"),
        ("1:2", "12"),
        ("pH ≥ 7.4", "pH ≤ 7.4"),
        ("β+ thalassemia", "β- thalassemia"),
        ("कि", "की"),
    ],
)
def test_an_answer_that_differs_in_a_sign_is_another(right: str, other: str) -> None:
    fields = {"options": {"A": right, "B": other}, "answer_idx": "A"}
    assert gold(**fields, answer=right) == gold(**fields, answer=f"{right} .") == "A"
    for answer in (other, f"{other} ."):
        with pytest.raises(ConfigError, match="'answer' differs from the text of option A"):
            gold(**fields, answer=answer)


@pytest.mark.parametrize(
    ("right", "answer"),
    [
        ("1,000 mg", "1000 mg"),
        ("120/80 mmHg", "120 / 80 mmHg"),
        ("2:1", "2 : 1"),
        ("½ tablet", "1/2 tablet"),
        ("Type 1, 2", "Type 1,2"),
        ("COVID -19", "COVID-19"),
        ("3 -5 days", "3-5 days"),
        ("-5", "- 5"),
        ("−70 mV", "– 70 mV"),
        ("≥ 5", ">=5"),
        ("t(9;22)", "t(9,22)"),
        ("0.5 mg", "0,5 mg"),
        ("Rh-", "Rh −"),
        ("β-thalassemia", "β- thalassemia"),
        ("Pre- and postnatal", "pre and postnatal"),
        ("↑ Ca", "Ca ↑"),
    ],
)
def test_an_answer_in_another_spelling_is_the_right_option(right: str, answer: str) -> None:
    for option, said in ((right, answer), (answer, right)):
        fields = {"options": {"A": "Zinc", "B": option}, "answer_idx": "B", "answer": said}
        assert gold(**fields) == "B"


@pytest.mark.parametrize(
    ("right", "answer", "other"),
    [
        ("1:2", "1 : 2", "12"),
        ("1.5 mg", "1. 5 mg", "15 mg"),
        ("-5", "- 5", "5"),
        ("½", "1 / 2", "12"),
        ("≥ 5", ">=5", "5"),
        ("1,000", "1000", "1.000"),
    ],
)
def test_an_answer_in_another_spelling_is_not_another_option(
    right: str, answer: str, other: str
) -> None:
    for option, said in ((right, answer), (answer, right)):
        fields = {"options": {"A": other, "B": option}, "answer_idx": "B", "answer": said}
        assert gold(**fields) == "B"


def table(text: str, name: str = "mine.csv", encoding: str = "utf-8") -> Dataset:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding=encoding)
    return open_dataset(name, Path("data"))


@pytest.mark.parametrize(
    "header",
    [
        "id,question,A,B,C,answer",
        "ID,Question,Option A,Option B,Option C,Correct Answer",
        "id,question,opa,opb,opc,answer",
        "id,question,option_a,option_b,option_c,label",
    ],
)
def test_a_table_of_questions(header: str) -> None:
    row = '{id},"Which, of\nthese?","Iron, as salt",Zinc,Gold,{answer}\n'
    rows = row.format(id="q1", answer="C") + row.format(id="q2", answer='"Iron, as salt"')
    dataset = table(f"{header}\n{rows}", encoding="utf-8-sig")
    first, second = (dataset.load(entry) for entry in dataset.index)
    assert (dataset.name, first.text, first.gold) == ("mine", "Which, of\nthese?", "C")
    assert first.options == {"A": "Iron, as salt", "B": "Zinc", "C": "Gold"}
    assert second.gold == "A"
    assert [entry.line for entry in dataset.index] == [2, 4]


def test_a_table_with_semicolons_and_an_option_less() -> None:
    dataset = table("question;A;B;C;answer\nWhich?;0,5 mg;1 mg;;0,5 mg\n")
    question = dataset.load(dataset.index[0])
    assert (question.options, question.gold) == ({"A": "0,5 mg", "B": "1 mg"}, "A")


def test_a_table_in_a_folder_is_a_data_set() -> None:
    table("question,A,B,answer\nWhich?,x,y,B\n", "data/mine/test.csv")
    assert open_dataset("mine", Path("data")).path == Path("data/mine/test.csv")


@pytest.mark.parametrize("ending", ["CSV", "Json", "JSONL", "PARQUET"])
def test_endings_may_be_in_upper_case(ending: str) -> None:
    record = {"question": "Which?", "A": "x", "B": "y", "answer": "B"}
    path = Path(f"data/mine/test.{ending}")
    path.parent.mkdir(parents=True)
    match ending.lower():
        case "csv":
            path.write_text("\n".join(map(",".join, (record, record.values()))))
        case "json":
            path.write_text(json.dumps([record], indent=1))
        case "jsonl":
            path.write_text(json.dumps(record))
        case "parquet":
            pq.write_table(pa.Table.from_pylist([record]), path)
    dataset = open_dataset(str(path), Path())
    assert (dataset.name, dataset.load(dataset.index[0]).gold) == ("mine", "B")
    made = make_questions(rows_by_hand([path]), str(path), Path("made.jsonl"))
    assert json.loads(made.path.read_text()) == record
    if ending in ("CSV", "JSONL"):
        assert open_dataset("mine", Path("data")).path == path


def test_a_json_list_is_a_file_of_questions() -> None:
    record = {"question": "Which?", "options": LISTED, "answer_index": 2}
    content = json.dumps([record, record | {"answer_index": 0}], indent=1)
    dataset = table(content, "mine.json")
    assert [dataset.load(entry).gold for entry in dataset.index] == ["C", "A"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.csv", "question,A,B,answer\nWhich?,x,y,1\n", "m.csv line 2: field 'answer' is '1', a"),
        (
            "m.csv",
            "question,A,B,answer\nWhich?,x,y,\n",
            "m.csv line 2: field 'answer' is empty: write the letter of the right option",
        ),
        ("m.csv", "question,A,B\nWhich?,x,y\n", "m.csv line 2: no field says which option"),
        (
            "m.csv",
            "stem,A,B,answer\nW?,x,y,A\n",
            "no field 'question', but 'stem', 'A', 'B', 'answer'",
        ),
        ("m.csv", "question,A,B,answer\nW?,x,y,z,A\n", "m.csv line 2 has more cells than there"),
        ("m.csv", "question,A,A,answer\nW?,x,y,A\n", "m.csv has two columns 'A'"),
        ("m.csv", "", "m.csv has no questions in it"),
        ("m.json", "[]", "m.json has no questions in it"),
        ("m.json", "[1]", "m.json record 1: a question must be a JSON object"),
        ("m.json", "[{]", "m.json is not JSON"),
        (
            "m.jsonl",
            "[\n",
            "m.jsonl begins with '[': a JSON list must be named .json",
        ),
        ("m.jsonl", "question,A,B\n", "at column 1; a table must be named .csv"),
        (
            "m.jsonl",
            "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
            "m.jsonl is a Git LFS pointer; fetch the file with git lfs pull",
        ),
        ("m.json", "version https://git-lfs.github.com/spec/v1\n", "m.json is a Git LFS pointer"),
        ("m.csv", "version https://git-lfs.github.com/spec/v1\n", "m.csv is a Git LFS pointer"),
        ("m.csv", "\n<!DOCTYPE html>\n<html>", "m.csv is a web page; download the file itself"),
        ("m.csv", "PK\x03\x04rest", "m.csv is a ZIP archive or a workbook; unpack it, or save"),
        (
            "m.xlsx",
            "PK",
            "m.xlsx cannot be read: the name of a data set file ends in .jsonl, .json, .csv, "
            ".parquet; save the sheet as CSV in UTF-8",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(name: str, content: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        table(content, name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        ('q2,"Two?,a,b,A\nq3,Three?,a,b,B\nq4,"Four?,a,b,A\n', "3 to 5"),  # csvkit#433
        ('q2,"Two?,a,b,A\nq3,Three?",a,b,B\n', "3 to 4"),
        ('q2,"Two?,a,b,A\nq3,Three?,a,b,B\nq4,Four?",a,b,A\n', "3 to 5"),
        ('q2,"Two?,a,b,A\nq3,Three?,a,b,B\n', "3 to 4"),  # osiegmar/FastCSV#173
        ('\nq2,Two?,a,"b,A\nq3,Three?,a,b,B\n', "4 to 5"),
    ],
)
@pytest.mark.parametrize("separator", ",;\t")
def test_a_stray_quotation_mark_hides_no_rows(rows: str, lines: str, separator: str) -> None:
    content = f"id,question,A,B,answer\nq1,One?,a,b,A\n{rows}".replace(",", separator)
    with pytest.raises(ConfigError, match=f"mine.csv lines {lines} would be one row, as a quot"):
        table(content)


def test_a_cell_with_many_short_lines_is_read() -> None:
    report = "Na 140, K 4\n" * 5_000 + "Now?"
    dataset = table(f'id,question,A,B,answer\nq1,"{report}",a,b,A\n', "mine.csv")
    assert dataset.load(dataset.index[0]).text.endswith("Now?")


def test_quotation_marks_within_a_line_and_line_breaks_within_a_cell_are_read() -> None:
    dataset = table(
        "id,question,A,B,answer\n"
        'q1,"Tele" means far?,5" wide,b,A\n'  # clojure-csv#37
        'q2,"A man, 45, with fever, cough\nand a rash, sees you: what now?",a,b,A\n'
        'q3,"He said ""no, a,b,c""\n, then left",a,b,A\n'
        'q4,"A man.\nWhich, now?" ,a,b,"A" \n'
        'q5,"He said ""no"" , then\nleft"  ,a,b,A\n'
    )
    texts = [dataset.load(entry).text for entry in dataset.index]
    assert texts[0] == "Tele means far?"
    assert texts[1].startswith("A man, 45, with fever, cough\nand a rash")
    assert texts[2] == 'He said "no, a,b,c"\n, then left'
    assert [entry.line for entry in dataset.index] == [2, 3, 5, 7, 9]


def test_a_file_of_another_encoding_is_one_line() -> None:
    with pytest.raises(ConfigError, match=r"mine\.csv is not UTF-8 text; save it as UTF-8"):
        table("question,A,B,answer\nWhich?,é,y,B\n", encoding="latin-1")


def test_letters_may_be_written_in_many_ways() -> None:
    texts = {"a": "Retinol", "b": "Thiamine", "c": "Ascorbic acid", "d": "Calciferol"}
    keys = ("{}", "({})", "{})", "option_{}", "Option {}")
    ways = ("c", "C", "(c)", "C)", "Option C", "option_c", "Ascorbic acid", "C. Ascorbic acid")
    for key in keys:
        options = {key.format(letter): text for letter, text in texts.items()}
        for answer in ways:
            assert gold(options=options, answer=answer) == "C", (key, answer)
            assert gold(options=options, answer_idx=answer) == "C", (key, answer)
        assert gold(options=options, answer_index=2) == "C"
    assert gold(options={k.upper(): t for k, t in texts.items()}, answer_idx="C",
                answer="C) Ascorbic acid") == "C"  # fmt: skip
    with pytest.raises(ConfigError, match=r"'C\. Thiamine' but must be one of"):
        gold(options=texts, answer="C. Thiamine")


TABLES = {
    "Excel": b"sep=;\r\nquestion;A;B;answer\r\nWhich?;x;y;B\r\n;;;\r\n;;;\r\n",
    "Excel, quoted": b'\xef\xbb\xbf"sep=,"\r\nquestion,A,B,answer\r\nWhich?,x,y,(b)\r\n',
    "bars": b"sep=|\nquestion|A|B|answer\nWhich?|x|y|Option B\n",
    "Unicode text": "question\tA\tB\tanswer\r\nWhich?\tx\ty\tb\r\n".encode("utf-16"),
    "big-endian": b"\xfe\xff" + "question,A,B,answer\nWhich?,x,y,y\n".encode("utf-16-be"),
    "blank lines": b"\n \nquestion,A,B,answer\n\nWhich?,x,y,B. y\n,,,\n\n",
    "an empty column": b"question,A,B,answer,,\nWhich?,x,y,B,,\n,,,,,\n",
}


@pytest.mark.parametrize(
    ("listed", "shown"),
    [
        (["(A) Iron", "(B)Zinc"], ["Iron", "Zinc"]),  # AGIEval
        (["A. Iron", "B. Zinc", "C. Lead"], ["Iron", "Zinc", "Lead"]),
        (["A) Iron", "B) Zinc", "D) Lead"], ["A) Iron", "B) Zinc", "D) Lead"]),
        (["A. fumigatus", "B. dermatitidis"], ["A. fumigatus", "B. dermatitidis"]),
        (["A. yes", "B. no"], ["yes", "no"]),
        (["(A)", "(B)", "(C)"], ["(A)", "(B)", "(C)"]),  # parts of a picture
        (["(A) and (B)", "(B) and (C)", "(C) only"], ["(A) and (B)", "(B) and (C)", "(C) only"]),
        (["A. Iron", "B. Zinc", "C. Lead", ""], ["Iron", "Zinc", "Lead"]),
        (["(A) only", "(B) only", "(C) both"], ["(A) only", "(B) only", "(C) both"]),
        (["(A) and B", "(B) + (C)", "(C) only"], ["(A) and B", "(B) + (C)", "(C) only"]),
        (["A. Nor-adrenaline", "B. Zinc", "C. Lead"], ["Nor-adrenaline", "Zinc", "Lead"]),
        (["A. +1.00 D", "B. -2.00 D", "C. 0 D"], ["+1.00 D", "-2.00 D", "0 D"]),
        (["A) Alone", "B) With spouse", "C) At home"], ["Alone", "With spouse", "At home"]),
        (["A. Only 1", "B. Only 2", "C. only"], ["Only 1", "Only 2", "only"]),
        # openmultiplechoice/openmultiplechoice#1152
        (["Option A: Iron", "Option B: Zinc", "Option C: Lead"], ["Iron", "Zinc", "Lead"]),
        (["choice (A) Iron", "choice (B) Zinc"], ["Iron", "Zinc"]),
        (["Option A: Iron", "Option B: Zinc", "Neither"],) * 2,
        (["A. and B.", "B. and C.", "C. Lead"], ["A. and B.", "B. and C.", "C. Lead"]),
        (["(A) /min 12", "(B) and so on"], ["/min 12", "and so on"]),
        (["(A) + C peptide", "(B) Nor a"], ["(A) + C peptide", "(B) Nor a"]),
        (["A. + C peptide", "B. or A fiber", "C. 0"], ["+ C peptide", "or A fiber", "0"]),
    ],
)
def test_options_lose_letters_of_their_own(listed: list[str], shown: list[str]) -> None:
    for options in (listed, dict(zip("ABCD", listed, strict=False))):
        record = {"question": "Which?", "options": options, "answer_idx": "B"}
        question = parse_question(record, "x.jsonl line 3", 3)
        assert [*question.options.values()] == shown
        assert question.gold == "B"


@pytest.mark.parametrize(
    ("listed", "answer"),
    [
        (["(C) Lead", "(A) Iron", "(B) Zinc"], {"answer": "B"}),  # mitmedialab/MDAgents: utils.py
        (["(C) Lead", "(A) Iron", "(B) Zinc"], {"answer": "(B) Zinc"}),
        (["B. Zinc", "A. Iron", "C. Lead"], {"answer_idx": "B", "answer": "Zinc"}),
        (["B: Zinc", "A: Iron", "", "C: Lead"], {"label": "Zinc"}),
        (["Option B: Zinc", "Option A: Iron", "Option C: Lead"], {"answer": "Option B"}),
        (["C) Lead", "B) Zinc", "A) Iron"], {"answer_index": 1}),
        (["(C) both (A) and (B)", "(B) Zinc", "(A) Iron"], {"answer": "B"}),
        (["(c) Lead", "(a) Iron", "(b) Zinc"], {"answer": "b"}),
        (["c) Lead", "a) Iron", "b) Zinc"], {"answer": "b) Zinc"}),
        (["b. Zinc", "a. Iron", "c. Lead"], {"answer_idx": "B", "answer": "Zinc"}),
        (["C、Lead", "A、Iron", "B、Zinc"], {"answer": "B、Zinc"}),  # marks as in CMB and CMExam
        (["Ｃ．Lead", "Ａ．Iron", "Ｂ．Zinc"], {"answer": "Zinc"}),
        (["（C）Lead", "（A）Iron", "（B）Zinc"], {"answer": "B"}),
        (["[C] Lead", "[A] Iron", "[B] Zinc"], {"answer": "[B] Zinc"}),
        (["C - Lead", "A - Iron", "B - Zinc"], {"answer": "B - Zinc"}),
        (["**C** Lead", "**A** Iron", "**B** Zinc"], {"answer": "B"}),
        (["**C.** Lead", "**A.** Iron", "**B.** Zinc"], {"answer": "B"}),
        ([{"text": "B) Zinc"}, {"text": "A) Iron"}, {"text": "C) Lead"}], {"answer": "B"}),
    ],
)
def test_letters_of_a_list_in_another_order_are_those_of_the_options(
    listed: list[object], answer: dict[str, object]
) -> None:
    for options in ({"options": listed}, {"Choices": json.dumps(listed)}):
        question = parse_question({"question": "?", **options, **answer}, "x.jsonl line 3", 3)
        third = "both (A) and (B)" if "both" in str(listed) else "Lead"
        assert question.options == {"A": "Iron", "B": "Zinc", "C": third}
        assert question.gold == "B"


def test_a_sign_after_a_label_is_text() -> None:
    record = {"question": "?", "options": ["(C) +2 D", "(A) +1 D", "(B) +3 D"], "answer": "B"}
    question = parse_question(record, "x.jsonl line 3", 3)
    assert question.options == {"A": "+1 D", "B": "+3 D", "C": "+2 D"}
    assert question.gold == "B"


def test_letters_in_numbered_columns_are_those_of_the_options() -> None:
    columns = {"option1": "(C) Lead", "option2": "(A) Iron", "option3": "(B) Zinc"}
    assert gold(**columns, answer="B") == gold(**columns, answer="option3") == "B"
    assert gold(**columns, answer="Iron") == "A"


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1)])
@pytest.mark.parametrize("answer", [{"answer_number": 1}, {"answer_index": 0}])
def test_a_number_of_columns_with_letters_in_another_order_is_refused(
    order: tuple[int, ...], answer: dict[str, int]
) -> None:
    texts = {1: "(B) Iron", 2: "(A) Zinc", 3: "(C) Tin"}
    columns = {f"option{number}": texts[number] for number in order}
    with pytest.raises(ConfigError, match="the options carry letters in another order"):
        gold(**columns, **answer)
    in_order = {1: "(A) Iron", 2: "(B) Zinc", 3: "(C) Tin"}
    columns = {f"option{number}": in_order[number] for number in order}
    assert gold(**columns, **answer) == "A"


@pytest.mark.parametrize(
    "listed",
    [
        {"A": "(C) Lead", "B": "(A) Iron", "C": "(B) Zinc"},  # keys count
        ["O", "AB", "B", "A"],
        ["C3 deficiency", "A deficiency", "B12 deficiency"],
        ["(B) cells", "(B) cells and (A)", "(C) cells"],
        ["(C) Lead", "A. Iron", "(B) Zinc"],
        ["(C) Lead", "(A) Iron", "(D) Zinc"],
        ["(C) Lead", "(A) Iron", "Zinc"],
        ["(B) only", "(A) only", "(C) neither"],
        ["B. cereus", "A. baumannii"],
        ["(B) and (C)", "(C) and (A)", "(A) and (B)"],
        ["(b) and (c)", "(c) and (a)", "(a) and (b)"],
        ["(b) only", "(a) only", "(c) neither"],
        ["C-peptide", "A-fetoprotein", "B-hCG"],
        ["b.i.d.", "a.c."],
        ["b:a", "a:b"],
        ["B - A - D - C", "A - B - C - D", "C - D - A - B", "D - C - B - A"],
        ["(b)-(a)-(c)", "(a)-(b)-(c)", "(c)-(a)-(b)"],
        ["(b) rises", "(a) rises", "(c) rises"],
        ["[b]pyrene", "[a]pyrene"],
        ["B型", "A型"],
    ],
)
def test_letters_that_are_no_labels_of_all_options_change_no_place(listed: Any) -> None:
    record = {"question": "?", "options": listed, "answer_idx": "B"}
    question = parse_question(record, "x.jsonl line 3", 3)
    second = [*listed.values()][1] if isinstance(listed, dict) else listed[1]
    assert question.gold == "B"
    assert second.endswith(question.options["B"])


@pytest.mark.parametrize(
    ("listed", "answer", "reason"),
    [
        (
            ["C. albicans", "A. fumigatus", "B. dermatitidis"],
            {"answer": "A"},
            "begin with letters in another order, which may be labels or part of names",
        ),
        (
            ["C - peptide", "A - fetoprotein", "B - hCG"],
            {"answer": "A"},
            "labels or part of names: give an object",
        ),
        (["B - positive", "A - negative"], {"answer": "A"}, "labels or part of names"),
        (["c - peptide", "a - fetoprotein", "b - hCG"], {"answer": "A"}, "part of names"),
        (["c. albicans", "a. fumigatus", "b. dermatitidis"], {"answer": "A"}, "part of names"),
        (["(b) → (a)", "(a) → (b)"], {"answer": "A"}, "labels or part of names"),
        (["(b) before (a)", "(a) before (b)"], {"answer": "A"}, "labels or part of names"),
        (["B - A", "A - B"], {"answer": "A"}, "labels or part of names"),
        (["B. Marshall", "A. Fleming"], {"answer": "A"}, "labels or part of names: give an object"),
        (
            ["(C) Lead", "(A) Iron", "(B) Zinc"],
            {"answer_index": 0},
            "field 'answer_index' is 0, and the options carry letters in another order: write the",
        ),
        (
            [{"text": "(B) x", "image": "1.png"}, {"text": "(A) y", "image": "2.png"}],
            {"answer": "A"},
            "option letters B,A are not consecutive",
        ),
    ],
)
def test_letters_in_another_order_that_may_mean_two_things_are_refused(
    listed: list[object], answer: dict[str, object], reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        gold(options=listed, **answer)


@pytest.mark.parametrize("indent", [None, 1])
def test_an_object_may_hold_a_question_for_each_id(indent: int | None) -> None:
    """As PubMedQA's `ori_pqal.json`."""
    record = {"QUESTION": "Is it?", "CONTEXTS": ["We looked."], "final_decision": "no"}
    content = {"12377809": record, "26163474": record | {"final_decision": "yes"}}
    found = table(json.dumps(content, indent=indent), "ori_pqal.json")
    questions = [found.load(entry) for entry in found.index]
    assert [(one.id, one.gold) for one in questions] == [("12377809", "B"), ("26163474", "A")]
    for other in ({"medqa": {"0": record}}, {"data": [record]}):
        with pytest.raises(ConfigError, match=r"no field 'question'|must hold a list of questions"):
            table(json.dumps(other, indent=1), "m.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a":' * 100_000, "m.json is nested too deeply"),
        ('{"question": "?"\n{"question": "?"}', "m.json record 1 is not JSON"),
    ],
)
def test_a_broken_json_file_is_one_line(content: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        table(content, "m.json")


def test_withheld_answers_of_medmcqa_are_named() -> None:
    record = {"question": "?", "opa": "x", "opb": "y", "opc": "z", "opd": "u", "cop": -1}
    with pytest.raises(ConfigError, match="answers of this split are withheld; use validation"):
        table(json.dumps(record) + "\n" + json.dumps(record), "m.jsonl")


def test_a_table_may_come_from_a_spreadsheet() -> None:
    for name, content in TABLES.items():
        Path("m.csv").write_bytes(content)
        dataset = open_dataset("m.csv", Path())
        (entry,) = dataset.index
        question = dataset.load(entry)
        assert (question.text, question.gold) == ("Which?", "B"), name
        assert dict(question.options) == {"A": "x", "B": "y"}, name
    Path("m.csv").write_text("sep=;\n;;\nfrage;antwort a;l\u00f6sung\nWas?;x;A\n")
    with pytest.raises(ConfigError, match="line 3: there is no field 'question'"):
        open_dataset("m.csv", Path())


def test_a_last_option_that_pandas_found_empty_is_not_shown() -> None:
    def written(*options: object, answer: str = "A") -> tuple[list[str], str]:
        record = {"question": "Which?", "options": dict(zip("ABCDE", options, strict=False)),
                  "answer_idx": answer}  # fmt: skip
        Path("m.jsonl").write_text(json.dumps(record) + "\n")
        dataset = open_dataset("m.jsonl", Path())
        return [*dataset.load(dataset.index[0]).options.values()], dataset.notice

    for empty in ("nan", "NaN", "<NA>", float("nan"), None, "", "N/A"):
        shown, notice = written("x", "y", "z", "w", empty)
        assert shown == ["x", "y", "z", "w"], empty
        assert ("m.jsonl has 1 question with an option 'nan'" in notice) == (
            empty in ("nan", "NaN", "<NA>")
        )
    for real in (["Two", "One", "Three", "None"], ["x", "nan", "y", "None of the above"],
                 ["nan", "y"]):  # fmt: skip
        assert written(*real) == (real, "")
    with pytest.raises(ConfigError, match="is 'E', and that option is empty or n/a"):
        written("x", "y", "z", "w", "nan", answer="E")


@pytest.mark.parametrize(
    "options",
    [
        "A. Retinol\nin oil\nB. Thiamine\nC. Niacin",
        "A.Retinol\nin oil\nB.Thiamine\nC.Niacin",
        "(A)Retinol\nin oil\n(B)Thiamine\n(C)Niacin",
        "A．Retinol\nin oil\nB．Thiamine\nC．Niacin",
        "A - Retinol\nin oil\nB - Thiamine\nC - Niacin",
        "1. Retinol\n2. Thiamine\n3. Niacin",
        "- Retinol\n- Thiamine\n- Niacin",
        # DataTalksClub/course-management-platform#3; the second line may belong to the first
        "Retinol\nThiamine\nAscorbic acid\nNiacin",
        "Retinol, thiamine, niacin",
        "A Retinol\nin oil\nB Thiamine\nC Niacin",
        "A fibers\nB fibers\nC fibers",
        "B Thiamine\nA Retinol\nC Niacin",
        "B cells\nA cells\nT cells",
    ],
)
def test_lines_of_a_cell_that_may_be_no_options_are_refused(options: str) -> None:
    with pytest.raises(ConfigError, match="'options' must be an object with letters, or a list"):
        gold(options=options, answer="C")
