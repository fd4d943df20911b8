"""What a study shows: each method against the baseline, and nothing that is not there."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mdagents.pages.study import keep_other_results
from mdagents.records.study import StudyManifest, StudyRun
from mdagents.scoring.comparison import Comparison, compare, compare_study
from mdagents.scoring.comparison_tables import overview_tables, write_study_csv
from mdagents.scoring.comparison_text import (
    as_markdown,
    comparison_notices,
    comparison_parts,
    headline,
    verdicts,
)
from mdagents.scoring.formatting import as_text
from mdagents.scoring.rows import RunOutput
from mdagents.settings import Status
from tests.mdagents.scoring.made_up_runs import made_up, row

Letters = Mapping[tuple[str, str], str]
"""(model, method) -> a letter for each answer; A is right, `-` an error."""


def figures(letters: Letters, *, epochs: int = 1, without: str = "") -> Comparison:
    runs: dict[str, RunOutput] = {}
    listed = []
    for (model, method), of_run in letters.items():
        name = f"{model}-{method}"
        listed.append(StudyRun(dataset="set", model=model, method=method, run=name))
        if of_run and name != without:
            tokens = 500 if method == "team" else 100
            runs[name] = made_up(name, of_run, epochs=epochs, tokens=tokens)
    manifest = StudyManifest(name="made-up", baseline="single", runs=listed)
    return compare_study(manifest, runs)


def answers(skill: float, questions: int, rng: random.Random) -> str:
    return "".join("A" if rng.random() < skill else "B" for _ in range(questions))


def test_the_winner_by_construction_is_found_and_no_other() -> None:
    rng = random.Random(1)
    letters = {
        (model, method): answers(skill, 120, rng)
        for model in ("m1", "m2")
        for method, skill in (("single", 0.5), ("other", 0.5), ("team", 0.8))
    }
    study = figures(letters)
    assert headline(study) == "team is better than single (in 2 of 4 comparisons)"
    (overview,) = overview_tables(study)
    assert overview.headings == ["", "set, m1", "set, m2"]
    assert [row[0] for row in overview.rows] == ["single", "other", "team"]
    assert all(cell.endswith("% better") for cell in overview.rows[2][1:])
    assert all(cell.endswith("%") for row in overview.rows[:2] for cell in row[1:])
    assert overview.title in as_markdown(study)
    for line in verdicts(study):
        assert line.partition(": ")[2].startswith("team is better than single by ")
        assert line.endswith("; no significant difference in 1 of 2 pairs: other − single")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[]",
        pytest.param(b"[" * 100_000, id="deep"),
        b'{"blocks": 5}',
        b'{"blocks": [{"runs": [{"name": {}}]}]}',
    ],
)
def test_what_another_program_wrote_under_the_name_is_kept(content: bytes, tmp_path: Path) -> None:
    study = figures({("m", "single"): "AB", ("m", "team"): "AA"})
    (tmp_path / "made-up.json").write_bytes(content)
    (tmp_path / "made-up.notes.json").write_bytes(content)
    kept_as = keep_other_results(study, tmp_path, datetime(2026, 1, 2, tzinfo=UTC))
    assert kept_as == "made-up.20260102T000000.000000"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"{kept_as}.json", "made-up.notes.json",
    ]  # fmt: skip
    assert (tmp_path / f"{kept_as}.json").read_bytes() == content


@pytest.mark.sweep
def test_intervals_cover_the_constructed_effect_in_90_of_100_seeds() -> None:
    covered = 0
    for seed in range(100):
        rng = random.Random(seed)
        skills = {"single": 0.45, "team": 0.6}
        study = figures(
            {("m", method): answers(skill, 100, rng) for method, skill in skills.items()}, epochs=2
        )
        (pair,) = study.blocks[0].pairs
        covered += pair.difference_low <= 0.15 <= pair.difference_high
    assert covered >= 90


def test_holm_is_over_all_comparisons_of_the_study() -> None:
    letters = {("m1", "single"): "B" * 20, ("m1", "team"): "A" * 6 + "B" * 14}
    (alone,) = figures(letters).blocks[0].pairs
    both = figures({**letters, ("m2", "single"): "B" * 20, ("m2", "team"): "B" * 20})
    of_both = both.blocks[0].pairs[0]
    assert alone.p == alone.mcnemar_p
    assert of_both.p == pytest.approx(2 * alone.p)
    assert both.comparisons == 2
    assert headline(figures(letters)) == "team is better than single"
    assert headline(both) == "no significant difference from single"


def test_a_worse_method_is_said_to_be_worse() -> None:
    study = figures({("m", "single"): "A" * 30, ("m", "team"): "A" * 10 + "B" * 20})
    assert headline(study) == "single is better than team"
    assert verdicts(study)[0].startswith("single is better than team by 66.7 points (95% interval ")
    single, team = study.blocks[0].runs
    assert (single.pareto, team.pareto) == (True, False)


def test_what_nobody_got_right_and_what_nobody_answered() -> None:
    study = figures({("m", "single"): "AB-AB", ("m", "team"): "BB-BA"}, epochs=1)
    assert study.blocks[0].nobody_right == ["q1", "q2"]
    assert study.blocks[0].nobody_answered == ["q2"]
    assert "right in no run: 2 of 5 questions (q1, q2)" in as_text(comparison_parts(study))


def test_epochs_have_a_deviation_and_are_no_further_questions() -> None:
    study = figures({("m", "single"): "AABB" * 3 + "AAAA" * 3, ("m", "team"): "A" * 24}, epochs=2)
    block = study.blocks[0]
    assert (block.questions, block.answers) == (12, 24)
    assert block.runs[0].repeats is not None
    assert block.runs[0].repeats.between_epochs == pytest.approx(0.5 / 2**0.5)
    assert "over 2 epochs" in as_markdown(study)


def test_the_table_of_epochs_is_of_questions_with_all_epochs() -> None:
    """Twelve questions are right once and wrong once; two more have one answer, which is right."""
    both = made_up("single", "A" * 12 + "B" * 12, epochs=2)
    more = [row("A", id_=f"more{n}") for n in range(2)]
    runs = [replace(both, rows=(*both.rows, *more)), replace(both, rows=(*both.rows, *more))]
    tables = [
        part for part in comparison_parts(compare(runs, common=False)) if part.title == "Epochs"
    ]
    assert [line[1] for line in tables[0].rows] == ["50.0%", "50.0%"]


def test_the_value_of_the_router_is_reported_as_for_compared_runs() -> None:
    levels = ("basic", "intermediate", "advanced")
    methods = ("adaptive", *levels)
    runs = {}
    for method in methods:
        made = made_up(method, "AABB" * 6)
        rows = [
            replace(
                row,
                difficulty=levels[place % 3] if method == "adaptive" else method,
                routed_by="router" if method == "adaptive" else "forced",
            )
            for place, row in enumerate(made.rows)
        ]
        runs[method] = replace(made, rows=tuple(rows))
    listed = [StudyRun(dataset="set", model="m", method=name, run=name) for name in methods]
    manifest = StudyManifest(name="made-up", baseline="basic", runs=listed)
    study = compare_study(manifest, runs)
    assert [(pair.first, pair.second) for pair in study.blocks[0].pairs] == [(2, 1), (2, 3), (2, 4)]
    assert "router: adaptive beside basic (basic)" in as_text(comparison_parts(study))
    assert "upper bound" in as_markdown(study)


@pytest.mark.parametrize("missing", ["single", "team"])
def test_a_run_without_an_answer_is_missing_and_named(missing: str) -> None:
    letters = {("m", "single"): "A" * 12, ("m", "other"): "B" * 12, ("m", "team"): "A" * 12}
    study = figures(letters, without=f"m-{missing}")
    assert study.missing == {f"set, m, {missing}": "no question is answered yet"}
    assert study.comparisons == (0 if missing == "single" else 1)
    assert f"set, m, {missing}" in comparison_notices(study)[0]
    assert as_text(comparison_parts(study))
    assert as_markdown(study)


def test_of_unfinished_runs_what_all_have_is_compared() -> None:
    study = figures({("m", "single"): "A" * 20, ("m", "team"): "A" * 12})
    assert study.blocks[0].questions == 12
    assert "left out: 8 answers of single" in comparison_notices(study)[0]


@pytest.mark.parametrize("stopped", [8, 12])
def test_what_a_limit_stopped_is_not_answered_yet(stopped: int) -> None:
    whole, team = made_up("m-single", "A" * 12), made_up("m-team", "A" * 12)
    rows = [replace(row, status=Status.LIMIT.value, correct=False) for row in team.rows[:stopped]]
    team = replace(team, rows=(*rows, *team.rows[stopped:]), manifest={"finished": False})
    listed = [
        StudyRun(dataset="set", model="m", method=name, run=f"m-{name}", reason="at a limit")
        for name in ("single", "team")
    ]
    manifest = StudyManifest(name="made-up", baseline="single", runs=listed)
    study = compare_study(manifest, {"m-single": whole, "m-team": team})
    if stopped == 12:
        assert study.missing == {"set, m, team": "at a limit"}
    else:
        assert [run.figures.correct for run in study.blocks[0].runs] == [4, 4]


def test_a_block_whose_runs_share_no_question_is_missing_and_the_others_are_reported() -> None:
    letters = {(model, method): "A" * 12 for model in ("m1", "m2") for method in ("single", "team")}
    made = {f"{model}-{method}": made_up("", of) for (model, method), of in letters.items()}
    for place, name in enumerate(("m2-single", "m2-team")):
        rows = [
            replace(row, status=Status.SKIPPED.value) if number % 2 == place else row
            for number, row in enumerate(made[name].rows)
        ]
        made[name] = replace(made[name], rows=tuple(rows))
    listed = [
        StudyRun(dataset="set", model=model, method=method, run=f"{model}-{method}")
        for model, method in letters
    ]
    study = compare_study(StudyManifest(name="made-up", baseline="single", runs=listed), made)
    assert [block.name for block in study.blocks] == ["set, m1"]
    assert study.missing == {"set, m2": "nothing to compare yet: its runs share no question"}
    assert "missing (nothing to compare yet: its runs share no question): set, m2" in as_text(
        comparison_parts(study)
    )


def test_a_run_that_only_skipped_questions_is_missing() -> None:
    made = {f"m-{name}": made_up(name, "A" * 12) for name in ("single", "other", "team")}
    rows = [replace(row, status=Status.SKIPPED.value) for row in made["m-team"].rows]
    made["m-team"] = replace(made["m-team"], rows=tuple(rows))
    listed = [
        StudyRun(dataset="set", model="m", method=name, run=f"m-{name}")
        for name in ("single", "other", "team")
    ]
    study = compare_study(StudyManifest(name="made-up", baseline="single", runs=listed), made)
    assert [run.label for run in study.blocks[0].runs] == ["single", "other"]
    assert study.missing == {"set, m, team": "no question is answered yet"}


def test_few_questions_give_no_verdict() -> None:
    study = figures({("m", "single"): "BBBB", ("m", "team"): "AAAA"})
    assert headline(study) == "too few questions to tell"
    assert verdicts(study) == ["too few questions to tell: team − single is +4 of 4"]
    assert "%" not in headline(study) + " ".join(verdicts(study))


def test_the_table_for_a_spreadsheet_has_a_line_for_each_run() -> None:
    file = io.StringIO()
    write_study_csv(
        file, figures({("m", "single"): "AABB" * 5, ("m", "=team|"): "AAAB" * 5}, epochs=2)
    )
    single, team = csv.DictReader(io.StringIO(file.getvalue()))
    assert (single["correct"], team["correct"]) == ("10", "15")
    assert (single["difference"], team["difference"]) == ("", "0.25")
    assert team["method"] != "=team|", "no formula"
    assert float(team["pass_at_k"]) >= float(team["accuracy"]) >= float(team["all_k_right"])
