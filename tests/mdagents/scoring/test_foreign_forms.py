"""Result files of other programs: what is read from which field."""

from __future__ import annotations

import json
import re
import zipfile
from collections import Counter
from dataclasses import replace
from math import comb
from pathlib import Path
from typing import Any

import pytest

from mdagents.cli.score import main
from mdagents.export import export_run
from mdagents.scoring.report import make_report
from mdagents.scoring.rows import Repeated, RunOutput, read_output
from mdagents.scoring.scored_row import ScoredRow
from mdagents_llm.errors import ConfigError
from tests.conftest import SHARED
from tests.mdagents.scoring.result_records import ours, write
from tests.support.whole_runs import Run

PREDICTIONS = sorted((SHARED / "predictions").glob("*.json"))
OPTIONS = {"A": "Aspirin", "B": "Heparin", "C": "Warfarin", "D": "Dietary changes"}


def read(*records: Any) -> RunOutput:
    Path("results.json").write_text(json.dumps(records))
    return read_output(Path("results.json"))


def only(*records: Any) -> ScoredRow:
    (row,) = read(*records).rows
    return row


def letters(output: RunOutput) -> list[tuple[str, str]]:
    return [(row.label, row.response) for row in output.rows]


# -- MDAgents and what was made from it -----------------------------------------------------------


@pytest.mark.parametrize(
    "response",
    [
        {"0.0": "Answer: C) Warfarin"},
        {"0.3": "Answer: C) Warfarin", "1.2": "Answer: A) Aspirin"},
        {"majority": {"0.0": "Answer: C) Warfarin"}},
        {"overall": {"0.3": "(A)"}, "majority": {"0.3": "(C)"}, "weighted": {"0.3": "(A)"}},
        {"majority_vote": "Answer: C) Warfarin"},
        {"final_answer": "C) Warfarin", "analysis": "Not (A)."},
        "The final answer is (C).",
    ],
)
def test_every_shape_of_an_mdagents_response(response: Any) -> None:
    row = only({"question": "?", "label": "C", "answer": "Warfarin", "options": OPTIONS,
                "response": response, "difficulty": "basic"})  # fmt: skip
    assert (row.response, row.difficulty, row.question_id) == ("C", "basic", "sample_1")


def test_a_record_of_mdagents_without_a_decision_is_no_answer() -> None:
    row = only({"question_id": "sample_1", "label": "C", "answer": None, "options": None,
                "response": "Error: No decision processed", "difficulty": "basic"})  # fmt: skip
    assert row.status == "parse_error"


@pytest.mark.parametrize(
    "response",
    [
        {"group_1": "The answer is A", "group_2": "The answer is B", "final_decision": "(C)"},
        {"Reasoning": "Not (A).", "Final_Answer": "C"},
        {"majority": "", "final": "C"},
        {"answer": None, "choice": "C"},
        {"final": True, "answer": "C"},
        {"final_decision": "Start warfarin", "answer": "C"},
        {"prediction": "C", "text": "The answer is A."},
        {"output": "(C)", "content": "Not (C). The answer is A"},
        {"selected": "C", "choices": ["A", "B", "C"]},
        {"result": "C", "message": "success"},
        {"predicted_answer": "C", "reasoning": "Not (A)."},
        {"role": "assistant", "content": "The answer is C."},
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": "(C)"}}], "id": "1"},
        {"model": "m", "content": [{"type": "thinking", "thinking": "A"},
                                   {"type": "text", "text": "The answer is C."}]},
    ],
)  # fmt: skip
def test_the_field_of_a_response_with_the_answer(response: Any) -> None:
    assert only({"label": "C", "options": OPTIONS, "response": response}).response == "C"


@pytest.mark.parametrize("names", [("round_1", "round_2"), ("agent_1", "moderator")])
def test_a_response_whose_answer_could_be_any_field_is_refused(names: tuple[str, str]) -> None:
    with pytest.raises(ConfigError, match=f"'{names[0]}', '{names[1]}'"):
        only({"label": "C", "options": OPTIONS, "response": dict.fromkeys(names, "(C)")})


def test_a_response_of_empty_fields_is_no_answer() -> None:
    row = only({"label": "C", "options": OPTIONS, "response": {"a": None, "b": ""}})
    assert (row.status, row.response) == ("parse_error", "X")


def test_an_error_in_a_response_is_no_answer() -> None:
    row = only({"label": "A", "options": OPTIONS, "response": {"error": "The answer is A"}})
    assert (row.status, row.response) == ("api_error", "")


@pytest.mark.parametrize(
    "options",
    [
        [{"key": letter, "value": text} for letter, text in OPTIONS.items()],
        [{"label": letter, "text": text} for letter, text in OPTIONS.items()],
        [{letter: text} for letter, text in OPTIONS.items()],
        [[letter, text] for letter, text in OPTIONS.items()],
        {"label": list(OPTIONS), "text": list(OPTIONS.values())},
    ],
)
def test_options_as_objects_with_letter_and_text(options: Any) -> None:
    """The first form is that of bigbio/med_qa."""
    row = only({"label": "Warfarin", "options": options, "response": "Warfarin"})
    assert (row.label, row.response, row.options) == ("C", "C", 4)


def test_an_option_without_a_text_is_none() -> None:
    options = [{"key": letter, "value": text} for letter, text in OPTIONS.items()]
    row = only({"label": "C", "options": [*options[:3], {"key": "D", "value": None}],
                "response": "(C)"})  # fmt: skip
    assert (row.response, row.options) == ("C", 3)


def test_calls_as_a_fork_of_mdagents_counts_them() -> None:
    """The field of results in HoangHa0/mdagents."""
    row = only({"label": "C", "options": OPTIONS, "response": "(C)", "api_calls": 10})
    assert row.calls == 10


def test_an_answer_beside_qid_and_ground_truth() -> None:
    """The fields of results in MiningMyBusiness/accuracy-econ-medical-llms."""
    record = {"qid": "21645374", "question": "?", "ground_truth": "A. yes",
              "options": {"A": "yes", "B": "maybe", "C": "no"}}  # fmt: skip
    row = only(record | {"llm_response": "A. yes", "final_answer": "A. yes"})
    assert (row.response, row.correct) == ("A", True)
    with pytest.raises(ConfigError, match="'response' is missing"):
        only(record)
    assert only(record | {"error": "rate limit"}).status == "api_error"


def test_a_number_as_letter_of_mmlu_pro_counts_from_0() -> None:
    row = only({"question_id": 1, "question": "?", "options": list(OPTIONS.values()),
                "answer": "C", "answer_index": 2, "pred": 2})  # fmt: skip
    assert row.response == "C"


def test_choices_scored_once_more_without_a_context_are_no_options() -> None:
    """The requests of `acc_mutual_info`, EleutherAI/lm-evaluation-harness pull request 3035."""
    asked = [["Q", f" {text}"] for text in OPTIONS.values()]
    alone = [["", text] for text in OPTIONS.values()]
    resps = [[[str(-n), "False"]] for n in (3, 2, 1, 4, 1, 1, 1, 1)]
    row = only({"doc_id": 1, "doc": {"question": "?"}, "target": "2", "arguments": asked + alone,
                "resps": resps})  # fmt: skip
    assert (row.label, row.response, row.options) == ("C", "C", 4)


def test_a_text_as_output_is_read() -> None:
    row = only({"id": 1, "input": "?", "choices": list(OPTIONS.values()), "target": "C",
                "epoch": 1, "output": "The answer is C."})  # fmt: skip
    assert row.response == "C"


@pytest.mark.parametrize("status", ["inferred", "deferred", "no_error", "finished_without_errors"])
def test_a_status_with_letters_of_a_failure_is_none(status: str) -> None:
    assert only(bench("C", status=status)).status == "answered"


@pytest.mark.parametrize(
    "status", ["ErrBadRequest", "errCode=500", "errMsg", "erred", "interrupted", "net_err"]
)
def test_a_status_that_names_an_error_is_a_failure(status: str) -> None:
    assert only(bench("C", status=status)).status == "api_error"


# -- MedAgentsBench -------------------------------------------------------------------------------


def bench(predicted: Any, **changes: Any) -> dict[str, Any]:
    return {"realidx": 7, "question": "?", "options": OPTIONS, "answer": "Warfarin",
            "answer_idx": "C", "predicted_answer": predicted, "time_elapsed": 1.5,
            "token_usage": {"prompt_tokens": 10, "completion_tokens": 3}} | changes  # fmt: skip


@pytest.mark.parametrize(
    ("predicted", "response"),
    [("C", "C"), ("(A) Aspirin", "A"), ("Answer: (D) Dietary changes", "D"), (None, "X"), ("", "X"),
     ("X", "X"), ("Error: rate limit", "X"), (2, "X"), ("I cannot select one.", "X")],
)  # fmt: skip
def test_medagentsbench_predictions(predicted: Any, response: str) -> None:
    row = only(bench(predicted))
    assert (row.question_id, row.label, row.response) == ("7", "C", response)
    assert (row.input_tokens, row.output_tokens, row.total_tokens) == (10, 3, 13)
    assert row.wall_seconds == 1.5


@pytest.mark.parametrize(
    ("fields", "response", "disagrees"),
    [
        ({"pred": "C", "model_outputs": "It thins the blood. The answer is (C)."}, "C", False),
        ({"pred": "A", "response": "The answer is A. Aspirin."}, "A", False),
        ({"pred": "B", "model_outputs": "The answer is (C)."}, "C", True),
        ({"pred": None, "model_outputs": "I cannot tell."}, "X", False),
        ({"pred": "D"}, "D", False),
    ],
)
def test_results_of_mmlu_pro(fields: dict[str, Any], response: str, disagrees: bool) -> None:
    """The fields of `eval_results` in TIGER-AI-Lab/MMLU-Pro."""
    output = read({"question_id": 6001, "question": "?", "options": list(OPTIONS.values()),
                   "answer": "C", "answer_index": 2, "cot_content": "", "category": "health",
                   "src": "ori_mmlu-virology"} | fields)  # fmt: skip
    (row,) = output.rows
    assert (row.question_id, row.label, row.response) == ("6001", "C", response)
    assert row.disagrees == disagrees
    assert output.read_as == {"MMLU-Pro": 1}


@pytest.mark.parametrize(
    "options",
    [["C. albicans", "A. fumigatus", "B. dermatitidis"], ["(C) Gold", "(A) Iron", "(B) Zinc"]],
)
def test_letters_of_mmlu_pro_are_places_whatever_the_options_begin_with(options: list[str]) -> None:
    output = read({"question_id": 1, "question": "?", "options": options, "answer": "A",
                   "answer_index": 0, "pred": "A"})  # fmt: skip
    (row,) = output.rows
    assert (row.label, row.response, row.options, row.correct) == ("A", "A", 3, True)


@pytest.mark.parametrize("status", ["error", "failed", "timeout", "api_error", 500, False])
def test_a_stated_failure_is_no_answer_in_any_form(status: object) -> None:
    board = {"qid": "1", "question": "?", "options": OPTIONS, "ground_truth": "C",
             "predicted_answer": "C"}  # fmt: skip
    harness = {"doc_id": 1, "doc": {"question": "?", "choices": list(OPTIONS.values())},
               "target": "C", "arguments": [["Q"]], "resps": [["The answer is C."]],
               "filtered_resps": ["C"]}  # fmt: skip
    for record in (bench("C"), board, harness):
        assert only(record).status == "answered"
        output = read(record | {"status": status})
        assert [row.status for row in output.rows] == ["api_error"]
        is_ours = status == "api_error"
        assert any("counts as api_error" in notice for notice in output.notices) != is_ours


def test_a_field_of_the_data_set_does_not_hide_a_prediction() -> None:
    assert only(bench("C", label="maybe")).response == "C"


def test_medagentsbench_may_know_the_cost_and_no_tokens() -> None:
    row = only(bench("C", token_usage=None, cost=0.25, realidx=None, id=3))
    assert (row.question_id, row.cost_usd, row.total_tokens) == ("3", 0.25, None)


@pytest.mark.skipif(not PREDICTIONS, reason="the published predictions are not on this machine")
@pytest.mark.parametrize("path", PREDICTIONS, ids=lambda path: path.stem)
def test_published_predictions_score_as_counted_by_hand(path: Path) -> None:
    published = json.loads(path.read_bytes())
    output = read_output(path)
    assert output.read_as == {"MedAgentsBench": len(published)}
    assert output.notices == []
    right = tokens = 0
    for row, each in zip(output.rows, published, strict=True):
        # Three of the 1,600 are sentences: two name a letter in brackets, one names none.
        said = re.fullmatch(r"(?:Answer: )?\(?([A-D])(?:\) .*)?", each["predicted_answer"])
        assert row.question_id == str(each["realidx"])
        assert row.response == (said[1] if said else "X")
        right += said is not None and said[1] == each["answer_idx"]
        tokens += sum(each.get("token_usage", {}).values())
    overall = make_report(output).overall
    assert (overall.n, overall.correct) == (len(published), right)
    known = "token_usage" in published[0]
    assert overall.tokens_per_question == (tokens / len(published) if known else None)


@pytest.mark.skipif(not PREDICTIONS, reason="the published predictions are not on this machine")
def test_published_predictions_compare_as_counted_by_hand() -> None:
    paths = [path for path in PREDICTIONS if path.stem.endswith(("-cot", "-medprompt-3"))]
    assert main(["--compare", *map(str, paths)], input_filename="", output_filename="") == 0
    (written,) = Path("evaluation").glob("compare_*.json")
    (pair,) = json.loads(written.read_text())["pairs"]
    right = [
        {e["realidx"]: e["predicted_answer"] == e["answer_idx"] for e in json.loads(p.read_bytes())}
        for p in paths
    ]
    counted = Counter((right[0][id_], right[1][id_]) for id_ in right[0])
    assert len(pair["wrong_to_right"]) == counted[False, True]
    assert len(pair["right_to_wrong"]) == counted[True, False]
    differing, fewer = (
        counted[True, False] + counted[False, True],
        min(counted[True, False], counted[False, True]),
    )
    tail = sum(comb(differing, k) for k in range(fewer + 1)) / 2**differing
    assert pair["mcnemar_p"] == pytest.approx(min(1, 2 * tail))


# -- MedAgentBoard --------------------------------------------------------------------------------


def board(qid: str, predicted: str | None, **changes: Any) -> dict[str, Any]:
    return {"qid": qid, "timestamp": 1, "question": f"{qid}?", "options": OPTIONS,
            "image_path": None, "ground_truth": "C", "predicted_answer": predicted,
            "case_history": {}} | changes  # fmt: skip


def test_a_folder_of_medagentboard_is_a_run() -> None:
    folder = Path("logs/MedQA/multiple_choice/MDAgents")
    folder.mkdir(parents=True)
    for number in (2, 10, 1):
        record = board(f"medqa_{number}", "C", complexity_level="advanced",
                       processing_time_seconds=2.5)  # fmt: skip
        (folder / f"medqa_{number}-result.json").write_text(json.dumps(record))
    output = read_output(folder)
    assert [row.question_id for row in output.rows] == ["medqa_1", "medqa_2", "medqa_10"]
    assert output.name == "MDAgents"
    assert {(row.response, row.difficulty, row.wall_seconds) for row in output.rows} == {
        ("C", "advanced", 2.5)
    }
    assert [record["question_id"] for _, record in output.records()] == [
        "medqa_1", "medqa_2", "medqa_10"]  # fmt: skip


def test_medagentboards_letter_gives_way_to_the_models_own_words() -> None:
    history = {"raw_responses": ["The answer is C."], "processing_time": 1.0}
    row = only(board("1", "A", case_history=history))
    assert (row.response, row.disagrees, row.wall_seconds) == ("C", True, 1.0)
    votes = {"raw_responses": ["A", "C", "C"]}
    assert only(board("1", "C", case_history=votes)).response == "C"


@pytest.mark.parametrize(
    "stated",
    ["Error", "Could not parse answer.", "", "No structured answer", "Error: No answer found",
     "parse_error", None],
)  # fmt: skip
def test_what_medagentboard_writes_for_a_failure_is_no_answer(stated: str | None) -> None:
    assert only(board("1", stated)).status == "parse_error"
    assert only(board("1", stated, details={"error": "timeout"})).status == "api_error"


def test_the_lines_of_medagentboard() -> None:
    lines = [{"qid": n, "question": f"{n}?", "ground_truth": "B", "model_answer": "B"}
             for n in range(3)]  # fmt: skip
    Path("zero_shot.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    output = read_output(Path("zero_shot.json"))
    assert letters(output) == [("B", "B")] * 3
    assert output.notices == ["records without options, where any letter from A to J was read: 3"]


def test_a_free_form_question_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    record = board("1", "It is C.", options=None, ground_truth="Warfarin, since …")
    Path("free.json").write_text(json.dumps([record]))
    assert main(["--input", "free.json"], input_filename="", output_filename="") == 2
    assert "'ground_truth' is 'Warfarin, since …'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ["(C) Gold", "(A) Iron", "(B) Zinc"],
        "(C) Gold (A) Iron (B) Zinc",
        "Options: (B) Zinc\n(A) Iron\n(C) Gold",
    ],
)
@pytest.mark.parametrize("label", ["B", "Zinc", "(B) Zinc"])
@pytest.mark.parametrize("reply", ["The answer is (B) Zinc", "Answer: Zinc"])
def test_letters_of_options_may_be_in_any_order(options: Any, label: str, reply: str) -> None:
    row = only({"question": "?", "label": label, "options": options, "response": reply})
    assert (row.label, row.response, row.correct, row.options) == ("B", "B", True, 3)


@pytest.mark.parametrize(
    ("options", "label", "gold"),
    [
        ("(A) Iron (B) Zinc (C) (A) and (B) (D) Lead", "Lead", "D"),  # MDAgents on MMLU
        ("(A) (E)-retinol (B) Factor(B) (C) Zinc", "Factor(B)", "B"),
        ({"A": "(C) Gold", "B": "(A) Iron", "C": "(B) Zinc"}, "B", "B"),
        (["B. dermatitidis", "A. fumigatus", "Iron"], "A", "A"),
        (["B. cereus", "A. baumannii"], "B. cereus", "A"),
        ("(A)Iron(B)Zinc(C)Gold", "Zinc", "B"),
        ("(A)Iron(B)Zinc(C)both (A) and (B)", "Zinc", "B"),
        ("(A) 5 mg(B) 6 mg(C) 7 mg", "7 mg", "C"),
        ("(A)-2 (B)-1 (C) 0", "-2", "A"),
        ("(A) x (B) y (C)-z is", "-z is", "C"),
        ("(A) Factor(C) (B) Protein(C)", "Protein(C)", "B"),
        (["A. Nor-adrenaline", "B. Adrenaline", "C. Dopamine"], "Nor-adrenaline", "A"),
    ],
)
def test_letters_inside_options_are_text(options: Any, label: str, gold: str) -> None:
    row = only({"question": "?", "label": label, "options": options, "response": f"({gold})"})
    assert (row.label, row.correct) == (gold, True)


@pytest.mark.parametrize(
    "options",
    [
        "(A) T cells (B) (B) cells (C) NK cells",
        "(B) x (A) y (B) z",
        "(A) Iron (B) Zinc (D) Lead",
        "(A)Iron(B)Zinc(B) cells(C)Lead",
        "Iron, Zinc",
        ["C. albicans", "A. fumigatus", "B. dermatitidis"],
        "(A)(B)" * 2000,
    ],
)
def test_letters_that_can_be_read_in_several_ways_are_refused(options: Any) -> None:
    with pytest.raises(ConfigError, match="can be read in several ways: give an object with let"):
        only({"question": "?", "label": "A", "options": options, "response": "(A)"})


@pytest.mark.parametrize("label", ["B", "Zinc", "B: Zinc"])
@pytest.mark.parametrize("mark", ["", " {}:"])
def test_options_of_mdagents_on_pmc_vqa(label: str, mark: str) -> None:
    texts = zip("ABCD", ["Iron", "Zinc", "Gold", "Lead"], strict=True)
    columns = {f"op{letter.lower()}": mark.format(letter) + text for letter, text in texts}
    question = "Which? Options: (A) Iron (B) Zinc (C) Gold (D) Lead"
    record = {"no": 0, "question": question, "label": label, "img_path": "x.jpg"}
    replies = ("The answer is Zinc.", "(B) Zinc")
    for response in replies:
        row = only(record | columns | {"response": {"0.3": response, "1.2": "(A)"}})
        assert (row.label, row.response, row.options) == ("B", "B", 4)
    assert only(record | columns | {"opd": None, "response": "B"}).options == 3


def test_runs_of_mdagents_on_path_vqa_have_the_same_questions() -> None:
    record = {"response": "(A) yes", "label": "yes", "options": "(A) yes (B) no"}
    shuffled = [f"Is 1 shown? {listed}" for listed in ("(B) no (A) yes", "(A) yes (B) no")]
    first, second = (only(record | {"question": question}).content for question in shuffled)
    assert first == second


# -- lm-evaluation-harness ------------------------------------------------------------------------


def likely(*values: float | str, target: Any = 1, **changes: Any) -> dict[str, Any]:
    """A sample of a multiple-choice task whose requests are the letters."""
    names = "ABCD"[: len(values)]
    arguments = {f"gen_args_{n}": {"arg_0": "Question: ?\nAnswer:", "arg_1": f" {name}"}
                 for n, name in enumerate(names)}  # fmt: skip
    return {"doc_id": 0, "target": str(target), "arguments": arguments,
            "doc": {"question": "?", "choices": list(OPTIONS.values())[: len(values)]},
            "resps": [[[str(value), "False"]] for value in values],
            "filtered_resps": [[str(value), "False"] for value in values],
            "filter": "none"} | changes  # fmt: skip


def test_the_most_likely_choice_is_the_answer() -> None:
    row = only(likely(-3.5, -1.25, -2, -9))
    assert (row.question_id, row.label, row.response, row.options) == ("0", "B", "B", 4)
    assert row.correct
    assert only(likely(-1, -1)).response == "A"  # of equals the first, as numpy's argmax
    assert only(likely("nan", -1)).response == "X"


@pytest.mark.parametrize("value", [0.0, "-inf"])  # lingua#28, among others
def test_likelihoods_of_a_model_that_failed_are_no_answer(value: float | str) -> None:
    assert only(likely(value, value, value, value)).response == "X"
    assert only(likely(-2, value, -3, -4)).response == ("B" if value == 0 else "A")


@pytest.mark.parametrize("target", [2, "2", "C", " C", "Warfarin"])
def test_the_gold_of_a_task_is_an_index_a_letter_or_a_text(target: Any) -> None:
    assert only(likely(-1, -2, -3, -4, target=target)).label == "C"


@pytest.mark.parametrize(("accuracy", "label"), [(1.0, "B"), (0.0, "C")])
def test_choices_that_are_numbers(accuracy: float, label: str) -> None:
    """The target "2" is the text of B and the index of C: the metric tells."""
    choices = ["1", "2", "3", "4"]
    record = likely(-2, -1, -3, -4, target="2", acc=accuracy, doc={"question": "?"})
    for n, choice in enumerate(choices):
        record["arguments"][f"gen_args_{n}"]["arg_1"] = f" {choice}"
    row = only(record)
    assert (row.label, row.response, row.correct) == (label, "B", accuracy == 1)


@pytest.mark.parametrize(
    "document",
    [
        {"sent1": "?", "ending0": "Aspirin", "ending1": "Heparin"},
        {"question": "?", "opa": "Aspirin", "opb": "Heparin"},
        {"question": "?", "choices": {"text": ["Aspirin", "Heparin"], "label": ["A", "B"]}},
        {"question": "?", "options": {"A": "Aspirin", "B": "Heparin"}},
        {"QUESTION": "?"},
    ],
)
def test_options_are_found_in_the_document(document: Any) -> None:
    output = read(likely(-2, -1, target=1, doc=document))
    assert letters(output) == [("B", "B")]
    ((_, element),) = output.records()
    assert element["question"] == "?"
    assert list(element["options"]) == (
        ["A", "B"] if "QUESTION" in document else ["Aspirin", "Heparin"]
    )


def test_an_option_that_is_empty_is_none() -> None:
    four = {"A": "Aspirin", "B": "Heparin", "C": "Warfarin", "D": "None"}
    for fifth in (None, "", "n/a"):  # mkieffer/Medbullets; xk-huang/medagents-benchmark: afrimedqa
        row = only(
            generated(0, "None") | {"doc": {"question": "?", "options": {**four, "E": fifth}}}
        )
        assert (row.options, row.response) == (4, "D")


def test_an_option_that_is_right_counts_whatever_it_says() -> None:
    options = {"A": "Yes", "B": "No", "C": "N/A"}
    row = only(generated(0, "C") | {"doc": {"question": "?", "options": options}})
    assert (row.label, row.response, row.options) == ("C", "C", 3)
    bracketed = {"A": "[2]", "B": "[0]", "C": "[1]"}
    sample = generated(0, "B") | {"target": "[0]", "doc": {"question": "?", "options": bracketed}}
    assert only(sample).label == "B"


def test_two_options_with_letters_of_their_own() -> None:
    sample = generated(0, "A") | {"doc": {"question": "?", "options": ["A. yes", "B. no"]}}
    assert only(sample | {"target": "yes"}).label == "A"


@pytest.mark.parametrize(
    ("target", "reply"), [("B", "(B)"), ("2", "(B)"), ("(B) no", "no"), ("(B) no", "(B)")]
)
def test_options_of_a_task_with_letters_in_another_order(target: str, reply: str) -> None:
    document = {"question": "?", "options": ["(C) maybe", "(A) yes", "(B) no"]}
    row = only(generated(0, reply) | {"target": target, "doc": document})
    assert (row.label, row.response) == ("B", "B")
    row = only(likely(-3, -1, -2, target=1, doc=document))
    assert (row.label, row.response) == ("A", "A")


@pytest.mark.parametrize(
    ("options", "label"),
    [
        ({"B": "Zinc", "A": "Iron", "C": "Gold"}, "A"),
        ({"b": "Zinc", "c": "Gold", "a": "Iron"}, "A"),
        ({"D": "Zinc", "B": "Iron", "C": "Gold"}, "B"),
        ({"C": "Zinc", "A": None, "B": "Iron", "D": "Gold"}, "B"),
    ],
)
def test_the_letters_of_an_object_are_its_keys_in_any_order(
    options: dict[str, str | None], label: str
) -> None:
    document = {"question": "?", "options": options}
    letter_of = {text: letter.upper() for letter, text in options.items() if text}
    for target in (label, "Iron"):
        row = only(generated(0, "The answer is (C).") | {"target": target, "doc": document})
        assert (row.label, row.response, row.options) == (label, "C", 3)
    shown = sorted(letter_of.values())
    for choices in ([*letter_of], shown, shown[::-1], sorted(map(str.upper, options))):
        for place, choice in enumerate(choices):
            if choice not in {*letter_of, *shown}:
                continue  # an option that is null
            values = [-1 if n == place else -5 for n in range(len(choices))]
            right = choices.index("Iron" if "Iron" in choices else label)
            record = likely(*values, doc=document, target=right)
            for n, text in enumerate(choices):
                record["arguments"][f"gen_args_{n}"]["arg_1"] = f" {text}"
            row = only(record)
            assert (row.label, row.response) == (label, letter_of.get(choice, choice)), choices


def test_letters_in_the_texts_of_an_object_count_as_in_a_list() -> None:
    options = {"A": "(C) Gold", "B": "(A) Iron", "C": "(B) Zinc"}
    for listed in (options, list(options.values())):
        record = likely(-1, -5, -6, doc={"question": "?", "options": listed}, target=0)
        row = only(record)
        assert (row.label, row.response, row.by_text) == ("C", "C", "CAB")
        row = only(
            generated(0, "The answer is (C).") | {"doc": record["doc"], "target": "(C) Gold"}
        )
        assert (row.label, row.response) == ("C", "C")


def test_the_abstract_of_pubmedqa_is_part_of_its_question() -> None:
    document = {"QUESTION": "Is it?", "CONTEXTS": ["We looked."], "final_decision": "yes"}
    ((_, element),) = read(likely(-1, -2, -3, doc=document, target="A")).records()
    assert element["question"] == "We looked.\nIs it?"


def test_questions_with_several_right_options_are_left_out() -> None:
    """AfriMed-QA: any of them counts there, which no other score here does."""
    targets = ("C", "A, C, D", "[0, 2]", "[2]")
    samples = [generated(n, "C") | {"target": target} for n, target in enumerate(targets)]
    output = read(*samples)
    assert letters(output) == [("C", "C"), ("C", "C")]
    assert output.notices == ["records in which several options are right, left out: 2"]
    with pytest.raises(ConfigError, match="several options are right in each record"):
        read(generated(1, "C") | {"target": "A, C, D"})


def generated(doc_id: int, *replies: str, filter_: str = "custom-extract") -> dict[str, Any]:
    return {"doc_id": doc_id, "target": "C", "filter": filter_, "filtered_resps": ["[invalid]"],
            "doc": {"question": f"{doc_id}?", "options": list(OPTIONS.values())},
            "arguments": {"gen_args_0": {"arg_0": "…", "arg_1": {"until": ["</s>"]}}},
            "resps": [list(replies)]}  # fmt: skip


def test_generated_text_is_read_again() -> None:
    Path("samples_x.jsonl").write_text(
        json.dumps(generated(0, "So the answer is (C)."))
        + "\n"
        + json.dumps(generated(1, "[invalid]"))
        + "\n"
    )
    assert letters(read_output(Path("samples_x.jsonl"))) == [("C", "C"), ("C", "X")]


def test_repeats_are_epochs() -> None:
    output = read(generated(0, "The answer is C.", "The answer is A."))
    assert [(row.item, row.response) for row in output.rows] == [(("0", 1), "C"), (("0", 2), "A")]
    assert [element["response"] for _, element in output.records()] == [
        "The answer is C.", "The answer is A."]  # fmt: skip


def test_replies_of_several_records_are_epochs_and_each_row_has_its_own() -> None:
    said = ("The answer is A.", "The answer is B.", "The answer is C.")
    records = [generated(0, *said[:2]), generated(0, *said)]
    Path("samples_x.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    output = read_output(Path("samples_x.jsonl"), Repeated.EPOCHS)
    assert [(row.epoch, row.response) for row in output.rows] == list(enumerate("ABABC", 1))
    for rows in (output.rows, output.rows[3:], output.rows[::-1]):
        found = replace(output, rows=rows).records()
        assert [element["response"] for _, element in found] == [
            f"The answer is {row.response}." for row in rows
        ]


def test_of_several_records_the_first_counts_with_its_replies_alone() -> None:
    replies = ("The answer is A.", "The answer is B.", "The answer is C.")
    records = [generated(0, *replies[:2]), generated(0, *replies)]
    Path("samples_x.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    output = read_output(Path("samples_x.jsonl"), Repeated.FIRST)
    assert [(row.epoch, row.response) for row in output.rows] == [(1, "A"), (2, "B")]
    assert output.notices == ["records of a question that an earlier one answers, left out: 1"]


def test_each_reply_counts_once_however_many_filters_read_it() -> None:
    samples = [generated(n, "The answer is C.", filter_=name)
               for name in ("strict-match", "flexible-extract") for n in range(3)]  # fmt: skip
    output = read(*samples)
    assert len(output.rows) == 3
    assert output.notices == [
        "other readings of the same replies, left out (strict-match counts): 3"
    ]


def test_tasks_in_one_file_may_have_filters_of_their_own() -> None:
    """Samples of several tasks that were joined, as in lm-evaluation-harness#1393."""
    of_medqa = [generated(n, "The answer is C.", filter_=name)
                for name in ("strict-match", "flexible-extract") for n in range(2)]  # fmt: skip
    of_mmlu = [generated(n, "The answer is C.") | {"doc": {"question": f"{n} of MMLU?"}}
               for n in range(2)]  # fmt: skip
    output = read(*of_medqa, *of_mmlu)
    assert [row.question_id for row in output.rows] == ["0", "1", "0#2", "1#2"]
    assert any("left out (strict-match, custom-extract count): 2" in x for x in output.notices)


@pytest.mark.parametrize("filter_", [["a"], {}, None, 1])
def test_a_filter_that_is_no_text(filter_: Any) -> None:
    samples = [generated(0, "The answer is C.") | {"filter": one} for one in (filter_, "b")]
    assert len(read(*samples).rows) == 1


@pytest.mark.parametrize(
    ("options", "target", "reply", "score", "label"),
    [
        ("O A AB B", "B", "B", 1, "B"),  # letters, as in MMLU-Pro
        ("O A AB B", "B", "(B)", 0, "B"),  # the filter kept a mark
        ("C D A E", "A", "C", 0, "A"),  # a letter that is also the text of A
        ("O A AB B", "A", "O", 0, "B"),  # the text of A was wrong, so texts are compared
        ("1 2 3 4", "2", "2", 1, "B"),
        ("1 2 3 4", "2", "C", 1, "C"),
        ("1 2 3 4", "2", "3", 0, "B"),
    ],
)
def test_a_target_that_is_a_letter_or_number_and_a_text(
    options: str, target: str, reply: str, score: float, label: str
) -> None:
    record = generated(0, f"The answer is {reply}") | {
        "target": target, "filtered_resps": [reply], "exact_match": score,
        "doc": {"question": "?", "options": options.split()}}  # fmt: skip
    output = read(record)
    (row,) = output.rows
    assert row.label == label
    assert row.correct == (score == 1 or reply == "(B)")
    assert output.notices == []


def test_a_target_of_which_nothing_tells_the_meaning_has_a_notice() -> None:
    document = {"question": "?", "options": ["O", "A", "AB", "B"]}
    record = generated(0, "The answer is (B)") | {"target": "B", "doc": document, "exact_match": 0}
    output = read(record)
    assert letters(output) == [("B", "B")]
    assert output.notices == [
        "answers whose target is the letter or number of an option and the text of another one, "
        "read as the former: 1"
    ]


@pytest.mark.parametrize("target", ["10", "o10", "K", "3", "9" * 5000], ids=lambda t: t[:3])
def test_more_options_than_letters_are_refused_in_a_line(
    target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    document = {"question": "?", "options": [f"o{number}" for number in range(12)]}
    Path("many.json").write_text(
        json.dumps([generated(0, "K") | {"target": target, "doc": document}])
    )
    assert main(["many.json"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        "error: many.json record 1: 'options' must be an object with letters from A to J, or a "
        "list of at most 10 texts"
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"target": "9" * 5000},
        {"target": "7", "arguments": {}, "doc": {}},
        {"target": "K", "arguments": {"gen_args_0": {"arg_0": ["?"], "arg_1": {}}}, "doc": {}},
    ],
    ids=["long number", "no choices", "no prompt"],
)
def test_a_sample_without_a_right_option_is_refused_in_a_line(
    changes: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("odd.json").write_text(json.dumps([likely(-1, -2, -3, -4) | changes]))
    assert main(["odd.json"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: odd.json record 1: 'target' is '")


# -- Inspect --------------------------------------------------------------------------------------


def sample(id_: Any, said: Any, **changes: Any) -> dict[str, Any]:
    return {
        "id": id_, "epoch": 1, "input": f"{id_}?", "choices": list(OPTIONS.values()), "target": "C",
        "output": {"model": "m", "choices": [{"message": {"role": "assistant", "content": said}}],
                   "completion": said if isinstance(said, str) else ""},
        "scores": {"choice": {"value": "I", "answer": "A"}}, "metadata": {}, "total_time": 2.0,
        "model_usage": {"m": {"input_tokens": 5, "output_tokens": 2, "input_tokens_cache_read": 4},
                        "n": {"input_tokens": 1, "output_tokens": 1}},
    } | changes  # fmt: skip


def inspect_log(*samples: Any, **changes: Any) -> dict[str, Any]:
    return {"version": 2, "status": "success", "eval": {}, "samples": list(samples)} | changes


@pytest.mark.parametrize(
    ("total", "read"), [(15, 10), (22, 17), (None, 17)], ids=["before", "since", "not stated"]
)
def test_input_of_inspect_with_the_prompt_cache(total: int | None, read: int) -> None:
    """In logs from before 2026-02-26 the input has the tokens of the cache (inspect_ai 3341)."""
    usage = {"input_tokens": 10, "output_tokens": 5, "input_tokens_cache_read": 7}
    log = inspect_log(sample(1, "ANSWER: C", model_usage={"m": usage | {"total_tokens": total}}))
    Path("log.json").write_text(json.dumps(log))
    (row,) = read_output(Path("log.json")).rows
    assert (row.input_tokens, row.total_tokens) == (read, read + 5)


@pytest.mark.parametrize(
    ("usage", "tokens", "reasoning", "cost"),
    [
        pytest.param(
            {"grok/grok-3-mini": {"input_tokens": 12, "output_tokens": 1, "total_tokens": 399,
                                  "reasoning_tokens": 386, "total_cost": 0.0002}},
            (12, 387, 399), 386, 0.0002, id="reasoning beside output",
        ),
        pytest.param(
            {"grok/grok-3-mini": {"input_tokens": 4, "output_tokens": 1, "total_tokens": 399,
                                  "reasoning_tokens": 386, "input_tokens_cache_read": 8}},
            (12, 387, 399), 386, None, id="and a prompt from the cache",
        ),
        pytest.param(
            {"openai/o3": {"input_tokens": 12, "output_tokens": 387, "total_tokens": 399,
                           "reasoning_tokens": 386}},
            (12, 387, 399), 386, None, id="reasoning in output",
        ),
        pytest.param(
            {"anthropic/c": {"input_tokens": 12, "output_tokens": 387, "total_tokens": 785,
                             "reasoning_tokens": 386}},
            (12, 387, 399), 386, None, id="reasoning twice in the total",
        ),
        pytest.param({"m": {"total_tokens": 1210}}, (None, None, 1210), None, None, id="total"),
        pytest.param(
            {"m": {"input_tokens": 0, "output_tokens": 0, "total_tokens": 1210}},
            (None, None, 1210), None, None, id="total and zeros",
        ),
        pytest.param(
            {"m": {"input_tokens": 0, "output_tokens": 0, "total_tokens": 1050,
                   "input_tokens_cache_read": 1000, "reasoning_tokens": 50}},
            (1000, 50, 1050), 50, None, id="zeros that the other parts explain",
        ),
        pytest.param(
            {"m": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 40}},
            (10, 5, 40), None, None, id="more in total",
        ),
        pytest.param({"m": {"output_tokens": 5}}, (None, 5, None), None, None, id="output"),
        pytest.param(
            {"m": {"input_tokens": 1, "output_tokens": 2, "reasoning_tokens": 2, "total_cost": 1},
             "n": {"input_tokens": 3, "output_tokens": 4}},
            (4, 6, 10), 2, None, id="a model without a price",
        ),
    ],
)  # fmt: skip
def test_tokens_and_cost_of_inspect(
    usage: dict[str, Any],
    tokens: tuple[int | None, ...],
    reasoning: int | None,
    cost: float | None,
) -> None:
    """Counts of vercel/ai 12425; Grok's reasoning is beside its output in UKGovernmentBEIS/
    inspect_ai 5528, and that of Claude was twice in the total before its 1648.
    """
    Path("log.json").write_text(json.dumps(inspect_log(sample(1, "ANSWER: C", model_usage=usage))))
    (row,) = read_output(Path("log.json")).rows
    assert (row.input_tokens, row.output_tokens, row.total_tokens) == tokens
    assert (row.reasoning_tokens, row.cost_usd) == (reasoning, cost)


def test_letters_of_inspect_are_places_whatever_the_choices_begin_with() -> None:
    choices = ["(C) Gold", "(A) Iron", "(B) Zinc"]
    log = inspect_log(sample(1, "ANSWER: A", choices=choices, target="A"))
    Path("log.json").write_text(json.dumps(log))
    output = read_output(Path("log.json"))
    ((row, element),) = output.records()
    assert (row.label, row.correct, element["options"]["A"]) == ("A", True, "(C) Gold")


def test_a_log_of_inspect() -> None:
    parts = [{"type": "reasoning", "reasoning": "ANSWER: A"}, {"type": "text", "text": "ANSWER: C"}]
    log = inspect_log(
        sample(1, "ANSWER: C"),
        sample(1, parts, epoch=2),
        sample(2, "ANSWER: C", error={"message": "lost"}),
        sample(3, "ANSWER: C", limit={"type": "token", "limit": 5}),
        sample(4, "no idea", input=[{"role": "user", "content": "4?"}], target=["C"]),
    )
    Path("log.json").write_text(json.dumps(log))
    output = read_output(Path("log.json"))
    assert [(row.item, row.status) for row in output.rows] == [
        (("1", 1), "answered"),
        (("1", 2), "answered"),
        (("2", 1), "api_error"),
        (("3", 1), "limit"),
        (("4", 1), "parse_error"),
    ]
    first = output.rows[0]
    assert (first.input_tokens, first.output_tokens, first.total_tokens) == (10, 3, 13)
    assert (first.correct, first.wall_seconds) == (True, 2.0)
    assert output.notices == []
    assert [element["question"] for _, element in output.records()][-1] == "4?"


@pytest.mark.parametrize(
    ("said", "stop_reason", "status"),
    [
        ("The patient should", "max_tokens", "truncated"),
        ("The patient should", "model_length", "truncated"),
        ("ANSWER: C\n\nThe clot is", "max_tokens", "answered"),
        ("", "content_filter", "refused"),
        ("ANSWER: C", "content_filter", "refused"),
        ("no idea", "stop", "parse_error"),
        ("no idea", 7, "parse_error"),
    ],
)
def test_a_stop_reason_of_inspect_gives_the_status(
    said: str, stop_reason: object, status: str
) -> None:
    record = sample(1, said)
    record["output"]["choices"][0]["stop_reason"] = stop_reason
    Path("log.json").write_text(json.dumps(inspect_log(record)))
    (row,) = read_output(Path("log.json")).rows
    assert row.status == status


def test_a_log_that_broke_off_says_so() -> None:
    Path("log.json").write_text(json.dumps(inspect_log(sample(1, "ANSWER: C"), status="cancelled")))
    notice = "by its log, the run of Inspect ended as 'cancelled'"
    assert read_output(Path("log.json")).notices == [notice]


def write_archive(path: Path, members: dict[str, Any]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, json.dumps(content))


def test_an_archive_of_inspect() -> None:
    members = {f"samples/{n}_epoch_1.json": sample(n, "ANSWER: C") for n in (10, 2)}
    members["header.json"] = inspect_log(status="error")
    write_archive(Path("log.eval"), members)
    output = read_output(Path("log.eval"))
    assert [(row.question_id, row.response) for row in output.rows] == [("2", "C"), ("10", "C")]
    assert output.read_as == {"Inspect": 2}
    assert output.notices == ["by its log, the run of Inspect ended as 'error'"]
    assert len(list(output.records())) == 2


def test_an_archive_without_samples_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    write_archive(Path("other.zip"), {"a.json": []})
    assert main(["--input", "other.zip"], input_filename="", output_filename="") == 2
    assert "no log of Inspect with samples" in capsys.readouterr().err


def test_an_archive_that_inspect_itself_wrote_says_how_to_convert_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Inspect packs with Zstandard, which the standard library undoes from Python 3.14 on."""
    from inspect_ai.log import read_eval_log, write_eval_log

    log = export_run(write([ours("1", "A", "A"), ours("2", "A", "B")]), Path("log.json"))
    write_eval_log(read_eval_log(str(log)), "log.eval")
    status = main(["--input", "log.eval"], input_filename="", output_filename="")
    printed = capsys.readouterr()
    if status == 0:
        assert "read as: Inspect 2" in printed.out
    else:
        assert "convert it: inspect log convert" in printed.err


@pytest.mark.process
@pytest.mark.parametrize("level", ["basic", "intermediate"])
def test_a_run_that_was_exported_scores_as_the_run_itself(run: Run, level: str) -> None:
    run("--num-samples", "4", "--difficulty", level, "--epochs", "2")
    (samples,) = Path("output").glob("*/samples.jsonl")
    folder = samples.parent
    again = read_output(export_run(folder, Path("exported.json")))
    kept = ("question_id", "label", "response", "correct", "status", "difficulty", "content")

    def compared(output: RunOutput) -> list[tuple[Any, ...]]:
        return sorted((row.epoch, *(getattr(row, name) for name in kept)) for row in output.rows)

    assert compared(again) == compared(read_output(folder))


def test_every_status_survives_the_export() -> None:
    records = [
        ours(status, "A", "A" if status == "answered" else None, status=status)
        for status in ("answered", "parse_error", "refused", "truncated", "api_error", "limit",
                       "skipped")
    ]  # fmt: skip
    path = write(records)
    exported = read_output(export_run(path, Path("exported.json")))
    of_run = {row.question_id: row.status for row in read_output(path).rows}
    assert {row.question_id: row.status for row in exported.rows} == of_run


# -- all forms ------------------------------------------------------------------------------------


OF_ANTHROPIC = {"input_tokens": 10, "cache_read_input_tokens": 1000,
                "cache_creation_input_tokens": 200, "output_tokens": 5}  # fmt: skip


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 500, "completion_tokens": 120, "total_tokens": 0}, (500, 120, 620)),
        # A total below its parts: langgenius/dify#19175.
        ({"prompt_tokens": 375, "completion_tokens": 90, "total_tokens": 91}, (375, 90, 465)),
        # Hidden reasoning in the total alone: Clarifai/clarifai-python#978.
        ({"prompt_tokens": 20, "completion_tokens": 424, "total_tokens": 1016}, (20, 424, 1016)),
        ({"total_tokens": 51293}, (None, None, 51293)),
        ({"input_tokens": 0, "output_tokens": 0, "total_tokens": 51293}, (0, 0, 51293)),
        # Cached tokens beside the input: KryptSec/oasis#44, strands-agents/harness-sdk#4219.
        (OF_ANTHROPIC, (1210, 5, 1215)),
        (OF_ANTHROPIC | {"total_tokens": 15}, (1210, 5, 1215)),
        (OF_ANTHROPIC | {"total_tokens": 1215}, (1210, 5, 1215)),
        # Among the input, which the total says.
        (OF_ANTHROPIC | {"input_tokens": 1210, "total_tokens": 1215}, (1210, 5, 1215)),
        ({"input_tokens": 1210, "cache_read_input_tokens": 1000, "total_tokens": 1215},
         (1210, None, 1215)),
        ({"input_tokens": 1210, "cache_read_input_tokens": 1000, "output_tokens": 5,
          "total_tokens": 1500}, (1210, 5, 1500)),
        ({"prompt_tokens": 1210, "cache_read_input_tokens": 1000, "completion_tokens": 5},
         (1210, 5, 1215)),
    ],
)  # fmt: skip
def test_tokens_of_other_programs(
    usage: dict[str, int], tokens: tuple[int | None, int | None, int]
) -> None:
    row = only(bench("C", token_usage=usage))
    assert (row.input_tokens, row.output_tokens, row.total_tokens) == tokens


def test_unknown_amounts_hide_nothing_and_negative_ones_are_unknown() -> None:
    usage = {"input_tokens": None, "prompt_tokens": 12, "output_tokens": "?",
             "completion_tokens": 3, "cost_usd": None}  # fmt: skip
    row = only(bench("C", token_usage=usage, cost=0.25))
    assert (row.input_tokens, row.output_tokens, row.total_tokens) == (12, 3, 15)
    assert row.cost_usd == 0.25
    usage = {"input_tokens": -5, "output_tokens": 3, "reasoning_tokens": -1}
    output = read(bench("C", token_usage=usage, cost=-0.1, time_elapsed=-1.5))
    (row,) = output.rows
    assert (row.input_tokens, row.output_tokens, row.total_tokens) == (None, 3, None)
    assert (row.reasoning_tokens, row.cost_usd, row.wall_seconds) == (None, None, None)
    assert make_report(output).overall.tokens_per_question is None


# -- several programs -----------------------------------------------------------------------------


def test_records_of_several_programs_are_named() -> None:
    mdagents = {"question_id": "1", "label": "A", "options": OPTIONS, "response": "(A)"}
    output = read(mdagents, bench("C"))
    assert output.read_as == {"MDAgents": 1, "MedAgentsBench": 1}
    assert output.notices == ["records of several programs: MDAgents 1, MedAgentsBench 1"]


def test_what_the_records_were_read_as_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    Path("results.json").write_text(json.dumps([bench("C")]))
    assert main(["--input", "results.json", "--html"], input_filename="", output_filename="") == 0
    assert "read as: MedAgentsBench 1" in capsys.readouterr().out
    summary = json.loads(Path("evaluation/results.summary.json").read_text())
    assert summary["read_as"] == {"MedAgentsBench": 1}
