"""Comparisons of runs: on the same questions only, and what they say about the router."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdagents.cli.score import main
from mdagents.scoring.comparison import Block, Comparison, compare
from mdagents.scoring.comparison_text import comparison_parts
from mdagents.scoring.formatting import as_text
from mdagents.scoring.routing import RouterReport
from mdagents.scoring.rows import read_output
from mdagents_llm.errors import ConfigError
from mdagents_llm.proportions import Z95, wilson
from tests.mdagents.scoring.result_records import OPTIONS, ours, write


def answers(letters: str, tokens: int = 100, **changes: Any) -> list[dict[str, Any]]:
    """Records of questions 1, 2, … whose gold is A: a letter each, `-` for an error."""
    usage = {"total_tokens": tokens, "cost_usd": tokens / 1e6}
    return [
        ours(str(number), "A", None if letter == "-" else letter, token_usage=usage, **changes)
        for number, letter in enumerate(letters, start=1)
    ]


def comparison_of(*runs: list[dict[str, Any]], common: bool = False) -> Comparison:
    paths = [write(records, f"run{number}.json") for number, records in enumerate(runs, start=1)]
    return compare([read_output(path) for path in paths], common=common)


def compared(*runs: list[dict[str, Any]], common: bool = False) -> Block:
    (block,) = comparison_of(*runs, common=common).blocks
    return block


def evaluate(*arguments: str) -> int:
    return main(arguments, input_filename="", output_filename="")


def test_two_runs(capsys: pytest.CaptureFixture[str]) -> None:
    write(answers("AABB-BBBBB", tokens=100), "one.json")
    write(answers("BAAAACBBBB", tokens=300), "two.json")
    assert evaluate("--compare", "output/one.json", "output/two.json") == 0
    content = json.loads(Path("evaluation/compare_one_vs_two.json").read_text())
    (pair,) = content["pairs"]
    assert pair["difference"] == pytest.approx(0.2)
    assert pair["mcnemar_p"] == 2 * (1 + 4) / 16
    assert pair["mcnemar_p_holm"] is None
    assert pair["extra_correct"] == 2
    assert pair["extra_tokens"] == 2000
    assert pair["tokens_per_extra_correct"] == 1000
    assert pair["cost_per_extra_correct"] == pytest.approx(0.001)
    assert [flip["question_id"] for flip in pair["wrong_to_right"]] == ["3", "4", "5"]
    assert pair["wrong_to_right"][2]["first"] == ["api_error"]
    assert pair["right_to_wrong"] == [
        {"question_id": "1", "gold": "A", "first": ["A"], "second": ["B"]}
    ]
    first = content["runs"][0]
    assert (first["figures"]["n"], first["figures"]["answered"]) == (10, 9)
    assert first["figures"]["chance"] == 0.25
    assert first["status_counts"] == {"answered": 9, "api_error": 1}
    text = capsys.readouterr().out
    assert "two − one, wrong → right: 3, 4, 5\n" in text
    assert "two − one, right → wrong: 1\n" in text
    assert "+20.0" in text
    assert "api_error 1" in text
    assert "written: evaluation/compare_one_vs_two.json" in text


def test_files_of_one_name_in_other_folders_are_another_comparison() -> None:
    for folder in ("a", "b", "c"):
        write(answers("AABB", tokens=100), "run.json")
        Path(folder).mkdir()
        Path("output/run.json").rename(f"{folder}/run.json")
    for second in ("b", "c"):
        assert evaluate("--compare", "a/run.json", f"{second}/run.json") == 0
    assert {path.stem for path in Path("evaluation").glob("*.json")} == {
        "compare_a-run_vs_b-run", "compare_a-run_vs_c-run",
    }  # fmt: skip


def test_a_run_beside_itself() -> None:
    pair = compared(answers("AB-"), answers("AB-")).pairs[0]
    assert pair.difference == 0
    ends = Z95**2 / (3 + Z95**2)  # three questions prove little
    assert (pair.difference_low, pair.difference_high) == pytest.approx((-ends, ends))
    assert pair.mcnemar_p == 1
    assert pair.tokens_per_extra_correct is None
    assert pair.right_to_wrong == pair.wrong_to_right == []


def test_more_than_two_runs_are_compared_in_pairs_with_adjusted_p() -> None:
    comparison = comparison_of(answers("A" * 10), answers("B" * 10), answers("AAAAABBBBB"))
    (block,) = comparison.blocks
    assert [(pair.first, pair.second) for pair in block.pairs] == [(1, 2), (1, 3), (2, 3)]
    assert [pair.mcnemar_p for pair in block.pairs] == [2 / 2**10, 2 / 2**5, 2 / 2**5]
    assert [pair.mcnemar_p_holm for pair in block.pairs] == [6 / 2**10, 4 / 2**5, 4 / 2**5]
    assert "Holm p" in as_text(comparison_parts(comparison))


def test_pareto_marks() -> None:
    comparison = comparison_of(
        answers("ABBB", tokens=100),
        answers("AABB", tokens=200),
        answers("AABB", tokens=300),  # as accurate as the second, but dearer
        answers("AAAB", tokens=400),
        [record | {"token_usage": {}} for record in answers("AAAA")],
    )
    (block,) = comparison.blocks
    assert [run.pareto for run in block.runs] == [True, True, False, True, None]
    assert block.pairs[-1].tokens_per_extra_correct is None
    text = as_text(comparison_parts(comparison))
    assert "wrong → right:" not in text, "ten pairs would flood the screen"


def test_the_better_run_may_be_cheaper() -> None:
    comparison = comparison_of(answers("ABBB" * 5, tokens=300), answers("AAAB" * 5, tokens=100))
    assert comparison.blocks[0].pairs[0].tokens_per_extra_correct == -400
    text = as_text(comparison_parts(comparison))
    assert text.count("is cheaper") == 1, "of the costs, not of the tokens"
    assert "run2 is better than run1 by 50.0 points" in text
    assert "run2 needs fewer tokens" in text


def test_a_worse_run_at_the_same_cost_has_no_negative_price() -> None:
    comparison = comparison_of(answers("A" * 20), answers("B" * 20))
    assert str(comparison.blocks[0].pairs[0].cost_per_extra_correct) == "0.0"


def test_options_may_be_shown_in_another_order() -> None:
    shown = {"A": "Heparin", "B": "Aspirin", "C": "Warfarin", "D": "Watchful waiting"}
    swapped = ours(
        "1",
        "B",
        None,
        status="answered",
        options=shown,
        response="Answer: C",
        permutation={"A": "B", "B": "A", "C": "C", "D": "D"},
    )
    comparison = compared(answers("A"), [swapped])
    (flip,) = comparison.pairs[0].right_to_wrong
    assert (flip.gold, flip.first, flip.second) == ("A", ["A"], ["C"])


@pytest.mark.parametrize(
    "change",
    [
        {"question": "Another one?"},
        {"options": OPTIONS | {"D": "Surgery"}},
        {"label": "B"},
    ],
)
def test_another_question_under_the_same_id_is_refused(
    change: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    write(answers("AAA"), "one.json")
    records = answers("AAA")
    records[1] |= change
    write(records, "two.json")
    assert evaluate("--compare", "output/one.json", "output/two.json") == 2
    error = capsys.readouterr().err
    assert "1 differ in text, options or answer (2)" in error
    assert "--common compares the 2 that all runs hold" in error
    assert not Path("evaluation").exists()


def keyed(labels: str, replies: str, **fields: Any) -> list[dict[str, Any]]:
    """Records without options, and with an id only if `fields` has what it begins with."""
    return [
        {"label": label, "response": f"Answer: {reply}"}
        | {name: f"{value}{number}" for name, value in fields.items()}
        for number, (label, reply) in enumerate(zip(labels, replies, strict=True), start=1)
    ]


@pytest.mark.parametrize(
    "fields", [{}, {"question_id": "q"}, {"question_id": "q", "question": "Which drug? "}]
)
def test_another_answer_key_is_refused_without_options_as_well(fields: dict[str, str]) -> None:
    first = keyed("ABCD" * 3, "ABCD" * 3, **fields)
    assert compared(first, keyed("ABCD" * 3, "A" * 12, **fields)).pairs[0].difference == -0.75
    with pytest.raises(ConfigError, match="12 differ in text, options or answer"):
        compared(first, keyed("BCDA" * 3, "ABCD" * 3, **fields))
    other = keyed("ABCD" * 2 + "ABDD", "ABCD" * 3, **fields)
    with pytest.raises(ConfigError, match=r"1 differ in .*; --common compares the 11 that"):
        compared(first, other)
    assert compared(first, other, common=True).pairs[0].difference == 0


def test_records_that_hold_no_question_are_compared_place_by_place() -> None:
    with pytest.raises(ConfigError, match="3 differ in text, options or answer"):
        compared(keyed("ABC", "ABC"), keyed("CAB", "CAB"))
    runs = keyed("ABC", "ABC"), keyed("CBA", "CBA")
    assert compared(*runs, common=True).pairs[0].difference == 0
    assert compared(*runs, common=True).questions == 1


def test_other_question_sets_are_refused_with_the_difference(
    capsys: pytest.CaptureFixture[str],
) -> None:
    skipped = ours("4", "A", None, status="skipped")
    write(answers("AAAAAAAAAA"), "one.json")
    write([*answers("AAA"), skipped, ours("eleven", "A", "A")], "two.json")
    arguments = ["--compare", "output/one.json", "output/two.json"]
    assert evaluate(*arguments) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "run 1 (one) lacks 1 of 11 (eleven)" in error
    assert "run 2 (two) lacks 7 of 11, 1 of them skipped (4, 5, 6, 7, 8, …)" in error

    assert evaluate(*arguments, "--common") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "compared on the 3 questions that all runs hold" in text
    assert "left out: 7 answers of one, 1 answer of two" in text
    content = json.loads(Path("evaluation/compare_one_vs_two.json").read_text())
    assert content["questions"] == 3
    assert [run["figures"]["n"] for run in content["runs"]] == [3, 3]
    assert [run["left_out"] for run in content["runs"]] == [7, 1]


def test_nothing_in_common_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    write(answers("A"), "one.json")
    write([ours("x", "A", "A")], "two.json")
    assert evaluate("--compare", "output/one.json", "output/two.json", "--common") == 2
    assert "they have none in common" in capsys.readouterr().err


def renamed(records: list[dict[str, Any]], ids: Sequence[str]) -> list[dict[str, Any]]:
    return [record | {"question_id": id_} for record, id_ in zip(records, ids, strict=True)]


def with_texts(letters: str, **changes: Any) -> list[dict[str, Any]]:
    return [
        record | {"question": f"Which drug in case {record['question_id']}?"} | changes
        for record in answers(letters)
    ]


@pytest.mark.parametrize("ids", ["xyz", "312"])
def test_questions_with_other_ids_are_found_by_what_they_ask(ids: str) -> None:
    comparison = compared(with_texts("AAB"), renamed(with_texts("BAB"), ids))
    assert comparison.questions == 3
    assert [flip.question_id for flip in comparison.pairs[0].right_to_wrong] == ["1"]
    assert comparison.notices == [
        "run2: 3 of 3 answers have ids that differ from those in run1; they were matched by "
        "question, options and right option"
    ]


def test_a_question_that_others_lack_does_not_take_the_id_of_one_that_they_hold() -> None:
    other = with_texts("A", question="Which nerve?", question_id="2")
    runs = with_texts("AA"), [*renamed(with_texts("AB"), "57"), *other]
    with pytest.raises(ConfigError, match="--common compares the 2 that all runs hold"):
        compared(*runs)
    assert compared(*runs, common=True).pairs[0].right_to_wrong[0].question_id == "2"


def test_of_a_question_that_a_run_holds_twice_the_ids_tell_which_is_which() -> None:
    twice = with_texts("AB", question="Which drug?")
    assert compared(twice, twice[::-1]).pairs[0].difference == 0
    with pytest.raises(ConfigError, match="none in common"):
        compared(twice, renamed(twice, "xy"))


def test_a_question_with_its_options_at_the_end_is_the_same() -> None:
    listed = " Options: (C) Warfarin (B) Heparin (A) Aspirin (D) Watchful waiting"
    asked = "Which drug? Options: none of them is free of harm."
    run = with_texts("A", question=asked)
    for text in (asked + listed, f"{asked}{listed.replace(' (', chr(10) + '(')}\n"):
        assert compared(run, with_texts("B", question=text)).questions == 1
    for text in (f"{asked} Options: (A) Aspirin (B) Heparin", f"{asked}{listed} Why not?"):
        with pytest.raises(ConfigError, match="1 differ in text"):
            compared(run, with_texts("B", question=text))


def test_epochs_are_compared_question_by_question() -> None:
    def repeated(*letters: str) -> list[dict[str, Any]]:
        return [
            record | {"epoch": epoch}
            for epoch, of_epoch in enumerate(letters, start=1)
            for record in answers(of_epoch)
        ]

    comparison = compared(repeated("AABB", "AABB", "ABBB"), repeated("AAAB", "AAAB", "BAAB"))
    assert (comparison.questions, comparison.answers) == (4, 12)
    (pair,) = comparison.pairs
    assert pair.difference == pytest.approx(3 / 12)
    assert [flip.question_id for flip in pair.wrong_to_right] == ["2", "3"]
    assert [flip.question_id for flip in pair.right_to_wrong] == ["1"]
    assert pair.wrong_to_right[0].first == ["A", "A", "B"]
    assert pair.mcnemar_p == 1  # one question against two: epochs are no further questions
    with pytest.raises(ConfigError, match="lacks 8 of 12"):
        compared(repeated("AAAA", "AAAA", "AAAA"), repeated("AAAA"))


def test_a_pattern_that_matches_no_file_says_what_is_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("medqa_cot.json", "medqa_basic.json"):
        write(answers("A"), name)
    for rest in ([], ["output/medqa_cot.json"]):
        assert evaluate("--compare", "output/medqa_x*", *rest) == 2
        error = capsys.readouterr().err
        assert error.startswith(
            "error: output/medqa_x* cannot be read: No such file or directory; "
        )
        assert "no file matches it (there: " in error
        assert "medqa_cot.json" in error


def test_notices_say_whose_they_are() -> None:
    for name, items in (("one", ["1", "2"]), ("two", ["1"])):
        write(answers("A"), f"{name}.json")
        manifest = {"dataset_notice": "A sample.", "item_ids": items}
        (Path("output") / name).mkdir()
        (Path("output") / name / "run.json").write_text(json.dumps(manifest))
    outputs = [read_output(Path(f"output/{name}.json")) for name in ("one", "two")]
    assert compare(outputs).blocks[0].notices == [
        "A sample.",
        "one: unfinished: 1 of 2 questions have a record",
    ]


def test_a_comparison_of_long_names_still_has_a_file_name() -> None:
    names = [f"{letter * 100}.json" for letter in "xyz"]
    for name in names:
        write(answers("AB"), name)
    assert evaluate("--compare", *(f"output/{name}" for name in names)) == 0
    (file,) = Path("evaluation").iterdir()
    assert file.name.startswith("compare_3runs_")
    assert (
        evaluate("--compare", *(f"output/{name}" for name in names), "--output", "mine.json") == 0
    )
    assert Path("mine.json").exists()


LEVELS = {"b": "basic", "i": "intermediate", "a": "advanced"}


def routed(letters: str, levels: str, **changes: Any) -> list[dict[str, Any]]:
    return [
        record | {"difficulty": LEVELS[level], "routed_by": "router"} | changes
        for record, level in zip(answers(letters, tokens=250), levels, strict=True)
    ]


def forced(letters: str, level: str, tokens: int) -> list[dict[str, Any]]:
    return answers(letters, tokens, difficulty=LEVELS[level], routed_by="forced")


def router_of(*runs: list[dict[str, Any]]) -> RouterReport:
    report = compared(*runs).router
    assert report is not None
    return report


ROUTED = routed("AAAB-B", "bbbiia")
FORCED = [
    forced("AABBAB", "b", 100),
    forced("ABBABB", "i", 300),
    forced("ABABBB", "a", 400),
]


def test_the_router_beside_forced_runs() -> None:
    report = router_of(ROUTED, *FORCED)
    assert report.router == 1
    assert report.forced == {"basic": 2, "intermediate": 3, "advanced": 4}
    policies = {policy.name: policy for policy in report.policies}
    assert {name: policy.figures.correct for name, policy in policies.items()} == {
        "router": 3,
        "router replayed": 3,  # A, A, B of basic, A, B of intermediate, B of advanced
        "always basic": 3,
        "always intermediate": 2,
        "always advanced": 2,
        "oracle": 5,
    }
    assert policies["router"].regret == pytest.approx(2 / 6)
    assert policies["always advanced"].regret == pytest.approx(3 / 6)
    assert (policies["oracle"].regret, policies["oracle"].regret_high) == (0, 0)
    lost = policies["always advanced"]
    assert (lost.regret_low, lost.regret_high) == wilson(3, 6), "three of six"
    # Cheapest of the best: basic for 1, 2, 5 and for 6, where none is right.
    oracle = policies["oracle"].figures
    assert oracle.tokens_per_question == pytest.approx((4 * 100 + 300 + 400) / 6)
    assert policies["router replayed"].figures.tokens_per_question == pytest.approx(1300 / 6)
    assert report.same_models is None
    by_level = {
        level: {name: each.correct for name, each in reached.items()}
        for level, reached in report.by_routed_level.items()
    }
    assert by_level == {
        "basic": {"router": 3, "basic": 2, "intermediate": 1, "advanced": 2},
        "intermediate": {"router": 0, "basic": 1, "intermediate": 1, "advanced": 0},
        "advanced": {"router": 0, "basic": 0, "intermediate": 0, "advanced": 0},
    }


def test_the_router_report_on_screen_and_on_disk(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["adaptive", "basic", "intermediate", "advanced"]
    for name, records in zip(names, [ROUTED, *FORCED], strict=True):
        write(records, f"{name}.json")
    assert evaluate("--compare", *(f"output/{name}.json" for name in names)) == 0
    text = capsys.readouterr().out
    assert "router: adaptive beside basic (basic), intermediate (intermediate), advanced" in text
    assert "oracle" in text
    assert "   2 of 6 |" in text
    (file,) = Path("evaluation").iterdir()
    assert len(json.loads(file.read_text())["router"]["policies"]) == 6


def test_ids_that_clash_between_runs_change_nothing() -> None:
    """In published files, ids are shifted against each other."""
    asked = {str(n + 1): f"Which drug in case {n}?" for n in range(6)}
    runs = [
        [record | {"question": asked[record["question_id"]]} for record in records]
        for records in (ROUTED, *FORCED)
    ]
    shifted = [runs[0], *(renamed(records, "234561") for records in runs[1:])]
    assert router_of(*shifted) == router_of(*runs)
    one_id_each = renamed(with_texts("AB"), "12") + renamed(with_texts("BA", epoch=2), "34")
    twice = with_texts("AB") + with_texts("BB", epoch=2)
    assert compared(twice, one_id_each).pairs[0].difference == pytest.approx(0.25)


def test_a_level_without_a_forced_run_cannot_be_replayed() -> None:
    report = router_of(ROUTED, FORCED[0], FORCED[2])
    assert [policy.name for policy in report.policies] == [
        "router", "always basic", "always advanced", "oracle",
    ]  # fmt: skip
    assert report.policies[-1].figures.correct == 4


def test_with_epochs_the_oracle_chooses_a_level_for_each_question() -> None:
    def twice(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [*first, *(record | {"epoch": 2} for record in second)]

    report = router_of(
        twice(routed("AB", "bi"), routed("AB", "ii")),
        twice(forced("AB", "b", 100), forced("BB", "b", 100)),
        twice(forced("BA", "i", 300), forced("AB", "i", 300)),
    )
    policies = {policy.name: policy.figures for policy in report.policies}
    # Each level is right once in two about question 1; only intermediate about question 2.
    assert policies["oracle"].correct == 2
    assert policies["oracle"].tokens_per_question == 200
    assert policies["router replayed"].correct == 3


def test_what_models_were_asked_is_checked() -> None:
    def report(models: Sequence[dict[str, str]]) -> RouterReport:
        outputs = []
        for number, (records, asked) in enumerate(zip([ROUTED, *FORCED], models, strict=True)):
            path = write(records, f"m{number}.json")
            path.with_suffix("").mkdir(exist_ok=True)
            (path.with_suffix("") / "run.json").write_text(json.dumps({"models": asked}))
            outputs.append(read_output(path))
        comparison = compare(outputs)
        router = comparison.blocks[0].router
        assert router is not None
        text = " ".join(as_text(comparison_parts(comparison)).split())
        assert ("different models" in text) == (router.same_models is False)
        return router

    small = dict.fromkeys(("router", "recruiter", "expert", "decision"), "small")
    assert report([small | {"router": "other"}, small, small, small]).same_models is True
    assert report([small, small, small, small | {"expert": "large"}]).same_models is False


@pytest.mark.parametrize(
    "runs",
    [
        [ROUTED, FORCED[0]],
        [*FORCED],
        [ROUTED, FORCED[0], FORCED[0]],
        [ROUTED, ROUTED, FORCED[0], FORCED[1]],
        [ROUTED, FORCED[0], answers("AABBAB", difficulty=None, routed_by="method")],
        [[*ROUTED[:3], *FORCED[2][3:]], *FORCED],
    ],
    ids=["one level", "no router", "a level twice", "two routers", "a baseline", "routed in turn"],
)
def test_no_router_report_where_it_would_be_ambiguous(runs: list[list[dict[str, Any]]]) -> None:
    assert compared(*runs).router is None


def test_foreign_files_show_by_their_levels_what_they_are() -> None:
    runs = [
        [{k: v for k, v in record.items() if k != "routed_by"} for record in records]
        for records in (ROUTED, *FORCED)
    ]
    assert router_of(*runs).forced == {"basic": 2, "intermediate": 3, "advanced": 4}


outcomes = st.integers(1, 12).flatmap(
    lambda n: st.lists(st.text("AB-", min_size=n, max_size=n), min_size=2, max_size=4)
)


@pytest.mark.sweep
@given(outcomes)
def test_any_comparison_is_consistent(runs: list[str]) -> None:
    comparison = comparison_of(*(answers(letters) for letters in runs))
    json.dumps(comparison.as_dict(), allow_nan=False)
    assert as_text(comparison_parts(comparison))
    (block,) = comparison.blocks
    for pair in block.pairs:
        gain = runs[pair.second - 1].count("A") - runs[pair.first - 1].count("A")
        assert pair.difference == pytest.approx(gain / len(runs[0]))
        assert len(pair.wrong_to_right) - len(pair.right_to_wrong) == gain
        assert -1 <= pair.difference_low <= pair.difference_high <= 1
        assert 0 < pair.mcnemar_p <= (pair.mcnemar_p_holm or 1) <= 1
    assert any(run.pareto for run in block.runs)
