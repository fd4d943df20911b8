"""What policies would have reached: nothing is claimed that was chosen on what it is scored on."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdagents.cli.score import main
from mdagents.scoring.formatting import as_text
from mdagents.scoring.policies import Answers, families
from mdagents.scoring.rows import RunOutput
from mdagents.scoring.what_if import WhatIf, what_if
from mdagents.scoring.what_if_text import verdicts, what_if_parts, what_if_tables
from mdagents_llm.bootstrap import SEED
from mdagents_llm.errors import ConfigError
from tests.mdagents.scoring.made_up_runs import made_up, row, run_of
from tests.mdagents.scoring.result_records import OPTIONS, ours, write


def said(figures: WhatIf) -> str:
    return " ".join(as_text(what_if_parts(figures)).split())


def confident_where_right(n: int) -> tuple[RunOutput, RunOutput]:
    """A cheap run that is right on four of five, where it is sure; a dear one right elsewhere."""
    is_sure = [place % 5 != 0 for place in range(n)]
    cheap = "".join("A" if sure else "B" for sure in is_sure)
    dear = "".join("B" if sure and place % 2 else "A" for place, sure in enumerate(is_sure))
    return (
        made_up("cheap", cheap, tokens=100, confidence=[0.9 if s else 0.3 for s in is_sure]),
        made_up("dear", dear, tokens=1000),
    )


def test_runs_without_tokens_have_no_share_of_tokens_saved() -> None:
    def run(
        name: str, is_right: Callable[[int], bool], level: str, by: str = "forced"
    ) -> RunOutput:
        rows = [
            replace(row("A" if is_right(n) else "B", id_=f"q{n}", tokens=0), content=n,
                    difficulty=level or ("basic" if n < 20 else "advanced"), routed_by=by)
            for n in range(40)
        ]  # fmt: skip
        return run_of(name, rows)

    routed = run("routed", lambda n: n % 2 == 0, "", "router")
    levels = [run("b", lambda n: n < 20, "basic"), run("a", lambda n: n >= 20, "advanced")]
    text = said(what_if([routed, *levels]))
    assert "«router replayed (routed)» takes fewest tokens: 100.0% at 0. That" in text


def test_the_policy_that_is_best_by_construction_is_found() -> None:
    figures = what_if(confident_where_right(100))
    choice = figures.choice
    assert choice is not None
    assert choice.in_folds == {"cheap, else dear": 10}
    assert choice.in_hindsight == "cheap, else dear, from 0.35"
    assert (choice.reached.correct, choice.reached.tokens_per_question) == (100, 100 + 0.2 * 1000)
    assert figures.best_run == "cheap"
    assert choice.beside_best_run.difference == pytest.approx(0.2)
    assert choice.beside_best_run.mcnemar_p == pytest.approx(2 / 2**20)
    assert choice.beside_best_run.is_shown
    assert (figures.oracle.correct, figures.oracle.tokens_per_question) == (100, 280)
    (curve,) = [outcome.curve for outcome in figures.families if outcome.curve]
    assert curve.accuracy == [0.8] * 7 + [1] * 12 + [0.6] * 2
    assert curve.tokens_per_question[-1] == 1100
    assert curve.band is not None
    assert curve.band[0][0] < 0.8 < curve.band[0][1]
    assert "«cheap, else dear», chosen by cross-validation, is better than always cheap" in said(
        figures
    )


def test_of_equally_accurate_policies_the_cheapest_is_chosen() -> None:
    """Neither the dear run nor agreement gives more right answers."""
    cheap, dear = made_up("cheap", "AB" * 20), made_up("dear", "AB" * 20, tokens=900)
    figures = what_if([dear, cheap])
    choice = figures.choice
    assert choice is not None
    assert (figures.best_run, choice.in_folds) == ("cheap", {"always cheap": 10})
    assert figures.coin == ["cheap"]
    first, saving = verdicts(figures)
    assert first == (
        "No policy is significantly better than always cheap (50.0% at 100 tokens per question): "
        "cross-validation also picks it."
    )
    assert saving == (
        "No policy with at least as many right answers takes fewer tokens than always cheap."
    )


def test_the_cheapest_policy_that_is_no_worse_is_named_and_not_called_equal() -> None:
    """A dear run that is always right, and a cheap one that knows when it is."""
    cheap = made_up("cheap", "AAAB" * 10, confidence=[0.9, 0.9, 0.9, 0.2] * 10)
    figures = what_if([cheap, made_up("dear", "A" * 40, tokens=1000)])
    assert figures.best_run == "dear"
    assert figures.cheapest_as_good == "cheap, else dear"
    text = said(figures)
    assert "«cheap, else dear» takes fewest tokens: 100.0% at 350, 65% fewer" in text
    assert "a difference that is not significant is not equality" in text


def guessing(name: str, n: int, seed: Sequence[int], **how: Any) -> RunOutput:
    """A run that is right at random, as sure as it likes."""
    rng = np.random.default_rng(seed)
    letters = "".join(rng.choice(list(how.pop("letters", "ABCD")), n))
    return made_up(name, letters, confidence=rng.random(n).tolist(), **how)


def claims(figures: WhatIf) -> bool:
    assert figures.choice is not None
    difference = figures.choice.beside_best_run
    is_claimed = difference.is_shown and difference.difference > 0
    assert is_claimed != ("No policy is significantly better" in verdicts(figures)[0])
    return is_claimed


@pytest.mark.sweep
def test_where_agreement_is_noise_nothing_is_claimed() -> None:
    """Three runs, 100 questions: at most one false claim in twenty."""
    false = [
        claims(
            what_if(
                [
                    guessing("cheap", 100, [seed, 1], letters="ABB"),
                    guessing("fair", 100, [seed, 2], letters="AB", tokens=500),
                    guessing("dear", 100, [seed, 3], letters="AB", tokens=3000),
                ]
            )
        )
        for seed in range(100)
    ]
    assert sum(false) <= 5


@pytest.mark.sweep
def test_many_runs_of_pure_chance_on_few_questions_are_no_discovery() -> None:
    """In hindsight the best of hundreds of policies looks far better than the best run."""
    gains = []
    for seed in range(30):
        figures = what_if([guessing(f"run{k}", 40, [seed, k], tokens=100 * 2**k) for k in range(8)])
        assert not claims(figures)
        curves = [max(o.curve.accuracy) for o in figures.families if o.curve]
        gains.append(max(curves) - (figures.runs[figures.best_run].accuracy or 0))
    assert np.mean(gains) > 0.05, "the bait: thresholds picked on what they are scored on"


def test_a_coin_is_between_runs_that_no_other_coin_beats() -> None:
    # Right on 10, 20 and 50 of 100 questions at 100, 200 and 400 tokens: the second lies below
    # the line between the others.
    figures = what_if(
        [
            made_up(name, "A" * right + "B" * (100 - right), tokens=tokens)
            for name, right, tokens in (("fair", 20, 200), ("good", 50, 400), ("poor", 10, 100))
        ]
    )
    assert figures.coin == ["poor", "good"]
    choice = figures.choice
    assert choice is not None
    assert choice.in_folds == {"always good": 10}
    coin = choice.beside_coin
    assert (coin.cheaper, coin.dearer, coin.difference) == ("good", "good", 0)


def test_no_coin_is_dearer_than_the_best_run() -> None:
    choice = what_if([*confident_where_right(100), made_up("worse", "B" * 100, tokens=50)]).choice
    assert choice is not None
    coin = choice.beside_coin
    assert (coin.cheaper, coin.dearer, coin.share_of_dearer) == ("cheap", "cheap", 0)
    assert coin.accuracy == 0.8


def test_a_run_beside_a_policy_of_more_tokens_has_its_own() -> None:
    cheap = made_up("cheap", "A" * 60 + "B" * 40, tokens=900, confidence=[0.9] * 60 + [0.2] * 40)
    figures = what_if([cheap, made_up("dear", "B" * 30 + "A" * 70, tokens=1000)])
    assert figures.choice is not None
    assert figures.choice.reached.tokens_per_question == 1300
    (table,) = (t for t in what_if_tables(figures, 8) if t.title == "Chosen policy and bounds")
    assert table.rows[1] == ["always dear", "70.0%", "1,000"]


def test_between_two_runs_the_coin_mixes_them() -> None:
    cheap, dear = confident_where_right(100)
    better = replace(
        dear, rows=tuple(row("A", id_=of.question_id, tokens=1000) for of in dear.rows)
    )
    figures = what_if([cheap, better])
    choice = figures.choice
    assert choice is not None
    # 300 tokens: 2/9 of the questions go to the run of 1,000 tokens.
    coin = choice.beside_coin
    assert (coin.cheaper, coin.dearer) == ("cheap", "dear")
    assert coin.share_of_dearer == pytest.approx(2 / 9)
    assert coin.accuracy == pytest.approx(0.8 + 0.2 * 2 / 9)
    assert coin.difference == pytest.approx(0.2 * 7 / 9)
    assert coin.low > 0
    assert (
        "At the same tokens a coin that sends 22% of the questions to dear and the others to cheap"
        in said(figures)
    )


LETTERS = st.text("AB-", min_size=24, max_size=24)
SURE = st.lists(st.sampled_from([0.2, 0.5, 0.9]), min_size=24, max_size=24)


def chosen_by_hand(runs: Sequence[RunOutput]) -> tuple[int, float]:
    """Right answers and tokens by ten folds, in plain loops."""
    answers = Answers.of(runs, [run.name for run in runs], [run.rows for run in runs])
    policies = [
        list(zip(family.right[place], family.tokens[place], strict=True))
        for family in families(answers)
        for place in range(len(family.right))
    ]
    ids = [of.question_id for of in answers.rows[0]]
    by_hash = sorted(ids, key=lambda id_: hashlib.sha256(f"{SEED} {id_}".encode()).digest())
    fold = {id_: place % 10 for place, id_ in enumerate(by_hash)}
    right, tokens = 0, 0.0
    for held_out in range(10):
        elsewhere = [place for place, id_ in enumerate(ids) if fold[id_] != held_out]
        best = min(
            policies,
            key=lambda policy: (
                -sum(policy[place][0] for place in elsewhere),
                sum(policy[place][1] for place in elsewhere),
            ),
        )
        for place, id_ in enumerate(ids):
            if fold[id_] == held_out:
                right += int(best[place][0])
                tokens += best[place][1]
    return right, tokens


@pytest.mark.sweep
@settings(max_examples=30)
@given(st.tuples(LETTERS, LETTERS, LETTERS), SURE, st.randoms(use_true_random=False))
def test_cross_validation_as_by_hand_and_in_any_order(
    letters: tuple[str, ...], sure: list[float], random: Any
) -> None:
    runs = [
        made_up(name, of_run, tokens=tokens, confidence=sure)
        for name, of_run, tokens in zip("xyz", letters, (10, 30, 90), strict=True)
    ]
    figures = what_if(runs)
    choice = figures.choice
    assert choice is not None
    right, tokens = chosen_by_hand(runs)
    assert choice.reached.correct == right
    assert choice.reached.tokens_per_question == pytest.approx(tokens / 24)
    # Neither the order of the files nor that of their questions is anything.
    mixed = [replace(run, rows=tuple(random.sample(run.rows, 24))) for run in runs]
    random.shuffle(mixed)
    again = what_if(mixed)
    assert replace(again, runs=figures.runs, left_out=figures.left_out) == figures
    assert again.runs == figures.runs


def test_epochs_of_a_question_stay_together_and_are_no_further_questions() -> None:
    cheap, dear = confident_where_right(40)
    twice = [
        replace(run, rows=(*run.rows, *(replace(of, epoch=2) for of in run.rows)))
        for run in (cheap, dear)
    ]
    once, figures = what_if([cheap, dear]).choice, what_if(twice)
    choice = figures.choice
    assert once is not None
    assert choice is not None
    assert (figures.questions, figures.answers) == (40, 80)
    assert choice.in_folds == once.in_folds
    assert choice.reached.correct == 2 * once.reached.correct
    assert choice.reached.tokens_per_question == once.reached.tokens_per_question
    assert choice.beside_best_run == once.beside_best_run


def test_of_few_questions_nothing_is_chosen() -> None:
    few = what_if(confident_where_right(19))
    assert few.choice is None
    assert few.cheapest_as_good is None
    assert few.outcome("cheap, else dear").reached is None
    assert few.outcome("always dear").reached is not None
    text = said(few)
    assert "too few questions to choose a threshold or a policy (20 needed)" in text
    assert "cheap, else dear" not in text
    assert what_if(confident_where_right(20)).choice is not None
    handful = what_if(confident_where_right(7))
    assert "5 of 7 right" in said(handful), "no percentage of seven"


def test_questions_that_a_run_skipped_are_taken_with_common_only() -> None:
    cheap, dear = confident_where_right(30)
    skipping = replace(dear, rows=(replace(dear.rows[0], status="skipped"), *dear.rows[1:]))
    with pytest.raises(ConfigError, match="--common compares the 29 that all runs hold"):
        what_if([cheap, skipping])
    figures = what_if([cheap, skipping], common=True)
    assert (figures.questions, figures.left_out) == (29, {"cheap": 1, "dear": 0})
    assert "only the 29 questions that all runs hold are taken; left out: 1 of cheap" in said(
        figures
    )


def test_the_router_replayed_is_a_policy() -> None:
    levels = ["basic", "advanced"] * 15

    def leveled(name: str, letters: str, tokens: int, by: str, *of: str) -> RunOutput:
        rows = made_up(name, letters, tokens=tokens).rows
        return run_of(
            name,
            [
                replace(each, difficulty=level, routed_by=by)
                for each, level in zip(rows, of, strict=True)
            ],
        )

    runs = [
        leveled("adaptive", "B" * 30, 150, "router", *levels),
        leveled("basic", "AB" * 15, 100, "forced", *["basic"] * 30),
        leveled("advanced", "BA" * 15, 400, "forced", *["advanced"] * 30),
    ]
    outcome = what_if(runs).outcome("router replayed (adaptive)")
    assert outcome.reached is not None
    assert (outcome.reached.correct, outcome.reached.tokens_per_question) == (30, 250)


def records(letters: str, tokens: int, sure: Sequence[float] | None = None) -> list[dict[str, Any]]:
    return [
        ours(
            str(place), "A", letter, token_usage={"total_tokens": tokens},
            confidence=sure[place] if sure else None,
        )
        for place, letter in enumerate(letters)
    ]  # fmt: skip


@pytest.mark.process
def test_screen_file_and_page(capsys: pytest.CaptureFixture[str]) -> None:
    write(records("AAAB" * 10, 100, [0.9, 0.9, 0.9, 0.2] * 10), "cot.json")
    write(records("ABBA" * 10, 3000), "team.json")
    files = ["output/cot.json", "output/team.json"]
    assert main(["--what-if", *files, "--html"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    sentence = (
        "«cot, else team», chosen by cross-validation, is better than always cot (75.0% at 100"
    )
    assert sentence in text
    assert "scored on the held-out folds" in text
    figures = json.loads(Path("evaluation/what_if_cot_vs_team.json").read_text())
    assert figures["choice"]["reached"]["correct"] == 40
    assert figures["folds"] == 10
    assert "scored on the held-out folds" in figures["how"]
    page = Path("evaluation/what_if_cot_vs_team.html").read_text()
    assert sentence in page
    assert "scored on the held-out folds" in page
    titles = re.findall(r'aria-label="(.*?)"', page)
    assert any(title.startswith("team: 50.0% of 40 right") for title in titles)
    assert any(title.startswith("chosen by cross-validation: 100.0% right") for title in titles)
    hindsight = {title for title in titles if title.startswith("cot, else team, from ")}
    assert len(hindsight) == 3, "equal policies are one mark"
    assert all(", in hindsight: " in title for title in hindsight)


@pytest.mark.sweep
def test_a_small_page_draws_what_needs_no_choice() -> None:
    for n, charts in ((9, 0), (12, 1)):
        write(records("AB" * n, 100, [0.5] * 2 * n)[:n], "cot.json")
        write(records("BA" * n, 3000)[:n], "team.json")
        assert main(["--what-if", "output/cot.json", "output/team.json", "--html"]) == 0
        page = Path("evaluation/what_if_cot_vs_team.html").read_text()
        assert page.count("<figure") == charts
        assert "cot, else team" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


def test_files_of_another_program_agree_by_their_letters() -> None:
    def bench(name: str, letters: str, tokens: int) -> str:
        usage = {"prompt_tokens": tokens, "completion_tokens": 0}
        return str(
            write(
                [
                    {"realidx": n, "question": f"{n}?", "options": OPTIONS, "answer_idx": "A",
                     "predicted_answer": letter, "token_usage": usage}
                    for n, letter in enumerate(letters)
                ],
                f"{name}.json",
            )
        )  # fmt: skip

    files = [
        bench("one", "AABB" * 10, 10),
        bench("two", "AACC" * 10, 20),
        bench("three", "BBAA" * 10, 500),
    ]
    assert main(["--what-if", *files]) == 0
    figures = json.loads(Path("evaluation/what_if_one_vs_two_vs_three.json").read_text())
    assert figures["choice"]["in_folds"] == {"one and two agree, else three": 10}
    assert figures["choice"]["reached"]["tokens_per_question"] == 10 + 20 + 250


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--what-if", "output/a.json"], "--what-if needs two runs or more"),
        (["--what-if", "output/a.json", "output/a.json"], "--what-if names the same run twice"),
        (["--what-if", "output/a.json", "output/b.json", "--input", "x"], "leave --input out"),
        (["--what-if", "output/a.json", "--compare", "output/b.json"], "give one of them"),
        (["--what-if", "output/a.json", "output/none.json"], "none.json does not hold the tokens"),
        (["--common"], "--common belongs to --compare, --what-if or --audit"),
    ],
)
def test_wrong_use_is_said_in_a_line(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "ab":
        write(records("AB", 100), f"{name}.json")
    write([record | {"token_usage": {}} for record in records("AB", 1)], "none.json")
    assert main(arguments) == 2
    (said_,) = capsys.readouterr().err.splitlines()
    assert line in said_
