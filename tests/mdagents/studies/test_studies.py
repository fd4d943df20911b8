"""Whole studies: what they leave, what they share, and that nothing is lost however they end."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import random
import re
import shutil
import signal
from collections import Counter
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from rich.live import Live

from mdagents.display.screen import Screen
from mdagents.live.runs import ListedRun, Runs
from mdagents.pages.study_matrix import study_parts
from mdagents.records.manifest import RunManifest
from mdagents.records.study import read_studies
from mdagents.runs.program import main as run_program
from mdagents.runs.signals import Stops
from mdagents.studies.display import StudyMatrix
from mdagents.studies.file import cells_of, read_study
from mdagents.studies.session import CellRun, State, StudySession
from mdagents_llm.clock import Clock
from mdagents_llm.config import parse_environment, read_variables
from tests.fake_provider import FakeProvider
from tests.mdagents.studies.conftest import (
    FILE,
    SMALL,
    Study,
    program,
    records_of_runs,
    write_study,
)
from tests.support.otlp import Collector
from tests.support.sweeps import seeds
from tests.support.whole_runs import SAMPLE

RUNS = 6


def manifests() -> list[RunManifest]:
    return [
        RunManifest.model_validate_json(file.read_bytes())
        for file in Path("output").glob("*/run.json")
    ]


@pytest.mark.process
def test_a_study_is_runs_like_any_other_and_its_results(study: Study) -> None:
    status, out, err = study()
    assert status == 0
    assert len(manifests()) == RUNS
    assert all(manifest.finished for manifest in manifests())
    for run in ("zero_shot", "cot_sc", "basic"):
        assert f"gpt-4o-mini, {run}: finished" in err
    assert "written: evaluation/teams.html" in out
    rows = list(csv.DictReader(Path("evaluation/teams.csv").read_text().splitlines()))
    assert [(row["model"], row["method"]) for row in rows] == [
        (model, method) for model in SMALL["models"] for method in SMALL["methods"]
    ]
    assert {row["run"] for row in rows} == records_of_runs().keys()
    assert "| zero_shot |" in Path("evaluation/teams.md").read_text()
    page = Path("evaluation/teams.html").read_text()
    assert '<h1 class="title">teams</h1>' in page
    assert "Too few questions to tell." in page


@pytest.mark.process
def test_another_study_of_the_same_name_is_kept_and_a_grown_one_replaced(study: Study) -> None:
    one = {"models": ["gpt-4o-mini"], "methods": ["zero_shot"], "num-samples": 1}
    grown = one | {"methods": ["zero_shot", "basic"]}
    for changes in (one, one, grown):
        status, _, err = study(**changes)
        assert (status, err.count("was kept as")) == (0, 0)
    results = {path.suffix: path.read_text() for path in Path("evaluation").glob("teams.*")}
    assert len(results) == 4
    listed = read_studies(Path("output"))
    status, _, err = study(**grown | {"num-samples": 2})
    assert status == 0
    first, last = re.findall(
        r"^NOTE: an earlier .* other runs, was kept as (\S+)$", err, re.MULTILINE
    )
    assert last == f"evaluation/{first}.*"
    kept = {path.suffix: path.read_text() for path in Path("evaluation").glob("teams.2*")}
    assert kept == results
    studies = read_studies(Path("output"))
    assert [each.runs for each in studies if each.name != "teams"] == [listed[0].runs]
    assert len({each.name for each in studies}) == 2
    assert Path("evaluation/teams.json").read_text() != results[".json"]
    # However often both are run by turns, each is kept once.
    for changes in (grown, grown | {"num-samples": 2}, grown):
        assert study(**changes)[0] == 0
    assert len(read_studies(Path("output"))) == len(list(Path("evaluation").glob("*.html"))) == 3


@pytest.mark.process
def test_studies_of_one_name_in_two_output_folders_keep_their_results(study: Study) -> None:
    one = {"models": ["gpt-4o-mini"], "methods": ["zero_shot"], "num-samples": 1}
    assert study("--output-dir", "one", **one)[0] == 0
    status, _, err = study("--output-dir", "two", **one | {"methods": ["basic"]})
    assert (status, err.count("was kept as evaluation/teams.2")) == (0, 1)
    Path("evaluation/teams.json").write_text("[]")
    Path("two/studies/teams.json").write_text("")
    assert study("--output-dir", "one", **one)[2].count("was kept as") == 1
    assert study("--output-dir", "two", **one)[2].count("was kept as") == 1
    assert len(list(Path("evaluation").glob("*.json"))) == 3
    assert len(list(Path("two/studies").glob("*.json"))) == 2


@pytest.mark.process
def test_a_study_without_an_answer_is_replaced(study: Study, provider: FakeProvider) -> None:
    provider.fail_next("401", times=9)
    one = {"models": ["gpt-4o-mini"], "methods": ["zero_shot"], "num-samples": 1}
    assert study(**one)[0] == 1
    assert "was kept as" not in study(**one | {"methods": ["basic"]})[2]


@pytest.mark.process
def test_runs_that_share_no_question_are_named(study: Study) -> None:
    kind = {"models": ["gpt-4o-mini"], "methods": ["zero_shot", "cot"], "num-samples": 2}
    assert study(**kind)[0] == 0
    for place, file in enumerate(sorted(Path("output").glob("*/samples.jsonl"))):
        records = sorted(map(json.loads, file.read_text().splitlines()), key=itemgetter("question"))
        records[place]["status"] = "skipped"
        file.write_text("".join(json.dumps(record) + "\n" for record in records))
    status, out, err = study(**kind)
    assert (status, err) == (0, "")
    assert "its runs share no question): sample, gpt-4o-mini" in " ".join(out.split())


@pytest.mark.process
def test_a_study_in_batches_has_the_same_results_for_half_the_price(
    study: Study, provider: FakeProvider
) -> None:
    changes = {"models": ["gpt-4o-mini"], "methods": ["zero_shot", "basic"]}
    assert study(**changes)[0] == 0
    at_once, whole = records_of_runs(), study_cost()
    for folder in ("output", "evaluation"):
        shutil.rmtree(folder)
    provider.reset()
    status, out, _ = study(batch=True, **changes)
    assert status == 0
    assert all(call.batch for call in provider.calls)
    assert "NOTE: all calls came in batches, which cost less than calls made at once" in out
    assert without_cost(records_of_runs()) == without_cost(at_once)
    assert study_cost() == pytest.approx(whole / 2, rel=1e-3)


def study_cost() -> float:
    return sum(manifest.spent.cost_usd or 0.0 for manifest in manifests())


def without_cost(runs: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    for record in chain(*runs.values()):
        del record["token_usage"]["cost_usd"]
    return runs


@pytest.mark.process
def test_its_runs_are_those_of_the_benchmark_program(
    study: Study, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study(cache="off")
    flags = ["--dataset", str(SAMPLE), "--num-samples", "3", "--exaid", "off", "--cache", "off"]
    for model in SMALL["models"]:
        for how in (["--method", "zero_shot"], ["--method", "cot_sc"], ["--difficulty", "basic"]):
            run = [*flags, "--model", model, *how, "--output-dir", "alone"]
            assert run_program(run, skip=[], show_interaction_table=False) == 0
    assert records_of_runs() == records_of_runs(Path("alone"))


@pytest.mark.process
def test_a_prompt_that_runs_share_is_asked_once(provider: FakeProvider, study: Study) -> None:
    provider.latency = 0.01  # so that both are under way at once
    status, _, _ = study(models=["gpt-4o-mini"], methods=["basic", "majority_vote"])
    assert status == 0
    asked = Counter(json.dumps(call.body, sort_keys=True) for call in provider.calls)
    assert set(asked.values()) == {1}
    assert len(asked) == 3 * 5, "the recruiter and the experts of a vote are those of the team"
    spent = [manifest.spent for manifest in manifests()]
    assert sum(each.calls for each in spent) == 3 * 5
    assert sum(each.cached_calls for each in spent) == 3 * 4


@pytest.mark.process
def test_the_endpoint_never_has_more_calls_under_way_than_asked_for(
    provider: FakeProvider, study: Study
) -> None:
    provider.latency = 0.02
    status, _, _ = study(models=["gpt-4o-mini"], **{"max-connections": 2, "num-samples": 4})
    assert status == 0
    assert provider.max_in_flight == 2


@pytest.mark.process
def test_a_finished_study_makes_no_call(provider: FakeProvider, study: Study) -> None:
    _, first, _ = study()
    calls = len(provider.calls)
    status, second, err = study()
    assert (status, second, err) == (0, first, "")
    assert len(provider.calls) == calls


@pytest.mark.sweep
def test_dry_run_forecasts_all_runs_and_calls_nothing(provider: FakeProvider, study: Study) -> None:
    status, out, _ = study("--dry-run", datasets=[{"dataset": str(SAMPLE), "label": "sample"}])
    assert status == 0
    assert out.count("sample, gpt-4o-mini") == 3
    assert re.search(rf"\| *all *\| *{2 * 3 * (1 + 5 + 5)} *\|", out)
    assert provider.calls == []
    assert not Path("output").exists()


@pytest.mark.process
def test_after_a_pilot_the_forecast_is_that_of_its_questions(
    provider: FakeProvider, study: Study
) -> None:
    kind = {"models": ["gpt-4o-mini"], "methods": ["cot", "basic"]}
    study(**kind, **{"num-samples": 18})
    _, out, _ = study("--dry-run", **kind, **{"num-samples": 20, "cache": "off"})
    assert "with the same settings: 2 of 2 runs" in " ".join(out.split())
    (ends,) = re.findall(r"\| ?all .*?\| *([\d,]+)–([\d,]+)", out)
    low, high = (float(end.replace(",", "")) for end in ends)
    study(**kind, **{"num-samples": 20, "cache": "off"})
    took = sum(
        manifest.spent.total_tokens for manifest in manifests() if len(manifest.item_ids) == 20
    )
    assert 0.9 * low <= took <= 1.1 * high
    assert high / low < 1.35


@pytest.mark.process
def test_a_model_out_of_reach_is_left_and_named_and_the_others_go_on(
    provider: FakeProvider, study: Study
) -> None:
    provider.fail_next("401", times=100, match=lambda seen: seen.model == "gpt-4.1-mini")
    status, out, err = study()
    assert status == 1
    last, way_on = err.splitlines()[-2:]
    assert re.fullmatch(
        r"not finished: (sample, gpt-4.1-mini, \w+[:;] ){3}openai.*out of reach.*", last
    )
    assert way_on == "stopped: 3 of 6 runs are finished; to resume: python study.py teams.yaml"
    assert "NOTE: missing (" in out
    assert len([call for call in provider.calls if call.outcome == "401"]) <= 32, "not each run"
    provider.forget_faults()
    status, _, err = study()
    assert status == 0
    assert all(manifest.finished for manifest in manifests())


@pytest.mark.process
def test_a_model_without_a_key_is_left_and_named(study: Study) -> None:
    status, _, err = study(models=["gpt-4o-mini", "gemini-2.5-flash-lite"])
    assert status == 1
    (line,) = (line for line in err.splitlines() if line.startswith("not finished: "))
    assert re.match(r"not finished: (sample, gemini\S+ \w+[:;] ){3}no key for google", line)
    assert "3 of 6 runs are finished" in err


@pytest.mark.process
@pytest.mark.parametrize("limits", [{"tokens": 2000}, {"cost": 0.0005}])
def test_a_limit_is_that_of_the_whole_study(
    provider: FakeProvider, study: Study, limits: dict[str, float]
) -> None:
    settings = {"models": ["gpt-4o-mini"], "max-connections": 1, "max-samples": 1}
    status, _, err = study(**settings, limits=limits)
    assert status == 1
    assert "stopped at a limit" in err
    assert "raise 'limits' in " in err
    spent = [manifest.spent for manifest in manifests()]
    calls = len(provider.calls)
    if "tokens" in limits:
        assert 2000 <= sum(each.total_tokens for each in spent) < 2000 + 2500
    else:
        assert 0.0005 <= sum(each.cost_usd or 0 for each in spent) < 0.0015
    status, _, err = study(**settings, limits=limits)
    assert status == 1, "also in the next process"
    assert "raise 'limits' in " in err
    assert len(provider.calls) == calls
    assert study(**settings, limits={"tokens": 10**9})[0] == 0


@pytest.mark.process
def test_errors_are_answered_again_on_request_only(provider: FakeProvider, study: Study) -> None:
    kind = {"models": ["gpt-4o-mini"], "methods": ["zero_shot", "cot"]}
    provider.fail_next("context_length", match=lambda seen: seen.index == 4)
    assert study(**kind)[0] == 0
    calls = len(provider.calls)
    assert study(**kind)[0] == 0
    assert len(provider.calls) == calls
    assert study("--retry-errors", **kind)[0] == 0
    assert len(provider.calls) == calls + 1
    assert {r["status"] for run in records_of_runs().values() for r in run} == {"answered"}


@pytest.mark.process
def test_a_limit_of_cost_needs_prices(study: Study) -> None:
    model = {"model": "mine", "model-base-url": "http://127.0.0.1:9/v1"}
    status, _, err = study(models=[model], limits={"cost": 1})
    assert status == 2
    assert "a limit of cost needs the price of openai/mine, which is not known" in err


@pytest.mark.process
def test_models_whose_names_are_one_as_names_of_files_share_a_study(
    study: Study, provider: FakeProvider
) -> None:
    def of_model(model: str) -> list[str]:
        return [each.name for each in manifests() if each.models["decision"] == model]

    both = {"models": ["openai/a-b", "openai/a/b"], "methods": ["zero_shot", "cot"]}
    assert study(**both, limits={"tokens": 1})[0] == 1
    status, _, err = study(**both)
    assert (status, "was kept as" in err) == (0, False)
    calls = len(provider.calls)
    assert len(manifests()) == 4
    assert all(each.finished for each in manifests())
    assert all(name.endswith("_3samples") for name in of_model("openai/a-b"))
    assert all("_3samples_" in name for name in of_model("openai/a/b"))
    both["models"].reverse()
    assert study(**both)[0] == 0
    assert (len(manifests()), len(provider.calls)) == (4, calls)


@pytest.mark.process
def test_a_run_beside_one_of_a_model_of_the_same_name(
    provider: FakeProvider, study: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--dataset", str(SAMPLE), "--num-samples", "1", "--method", "zero_shot"]
    for model in ("openai/a/b", "openai/a-b", "openai/a-b"):
        assert run_program([*flags, "--exaid", "off", "--model", model], skip=(),
                           show_interaction_table=False) == 0  # fmt: skip
    assert "already finished" in capsys.readouterr().err
    assert len(manifests()) == 2


@pytest.mark.process
def test_two_data_sets_of_one_name_are_told_what_to_change(study: Study) -> None:
    Path("sample.jsonl").write_bytes(SAMPLE.read_bytes().partition(b"\n")[2])
    status, _, err = study(datasets=[str(SAMPLE), {"dataset": "sample.jsonl", "label": "other"}])
    assert status == 2
    assert "_3samples; give the files of the data sets other names" in err


@pytest.mark.process
def test_a_data_set_that_changed_is_told_with_a_flag_of_the_study(study: Study) -> None:
    lines = SAMPLE.read_text().splitlines(keepends=True)
    settings = {"datasets": ["mine.jsonl"], "models": ["gpt-4o-mini"], "methods": ["zero_shot"]}
    Path("mine.jsonl").write_text("".join(lines[:3]))
    assert study(**settings)[0] == 0
    Path("mine.jsonl").write_text("".join(lines[1:4]))
    status, _, err = study(**settings)
    assert status == 2
    assert "holds a run that differs in items_hash; choose another --output-dir" in err
    assert study("--output-dir", "other", **settings)[0] == 0


@pytest.mark.process
def test_two_runs_that_are_the_same_are_refused(study: Study) -> None:
    methods = ["basic", {"difficulty": "basic", "max-retries": 3}]
    status, _, err = study(models=["gpt-4o-mini"], methods=methods)
    assert status == 2
    assert "are the same run; leave one out" in err


@pytest.mark.process
def test_killed_at_random_moments_it_ends_like_an_undisturbed_study(
    provider: FakeProvider,
) -> None:
    write_study(**{"max-connections": 4})
    process = program(provider, "--output-dir", "whole")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    expected, needed = records_of_runs(Path("whole")), len(provider.calls)
    provider.latency = 0.01
    rng = random.Random(7)
    provider.reset()
    for _ in range(3):
        process = program(provider)
        provider.wait_for_calls(len(provider.calls) + rng.randrange(1, needed // 4))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    process = program(provider)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert records_of_runs() == expected
    assert "Traceback" not in out + err


@pytest.mark.process
@pytest.mark.parametrize("times", [1, 2])
def test_a_signal_is_one_line_with_the_command_that_goes_on(
    provider: FakeProvider, times: int
) -> None:
    write_study(**{"max-connections": 2})
    hold = provider.hold(lambda seen: seen.index > 6)
    process = program(provider)
    hold.wait(1)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    lines: list[str] = []
    for line in process.stderr:
        lines.append(line)
        if line.startswith("stopping: "):
            break
    if times == 2:
        process.send_signal(signal.SIGINT)
    else:
        hold.release()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1].endswith("to resume: python study.py teams.yaml")
    assert "Traceback" not in err
    hold.release()
    process = program(provider)
    process.communicate(timeout=120)
    assert process.returncode == 0


@pytest.mark.process
def test_the_live_view_shows_a_matrix_with_links_to_the_runs(
    provider: FakeProvider, study: Study
) -> None:
    provider.fail_next("401", times=100, match=lambda seen: seen.model == "gpt-4.1-mini")
    study()
    listed = [run for run in Runs(Path("output")).list() if isinstance(run, ListedRun)]
    (part,) = study_parts(read_studies(Path("output")), listed)
    html = part.html()
    assert "3 of 6 runs finished" in html
    assert html.count('href="/runs/gpt-4o-mini_') == 3
    assert len(re.findall(r'<span class="soft" title="[^"]*out of reach[^"]*">stopped', html)) == 3


@pytest.mark.process
def test_the_terminal_shows_a_matrix_that_fills(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_base_url)
    write_study()
    clock, environment = Clock(), parse_environment(read_variables())
    cells = cells_of(read_study(FILE), {}, {})
    runs = [CellRun.planned(cell, environment, clock) for cell in cells]
    screen = io.StringIO()
    console = Screen(file=screen, force_terminal=True, width=100, highlight=False, markup=False)
    with StudyMatrix(runs, 0.0, Live(console=console, auto_refresh=False)) as shown:
        shown.refresh(1.0)
        assert "sample, gpt-4.1-mini" in screen.getvalue()
        assert "0 of 18 answers, 0 of 6 runs finished" in screen.getvalue()
        session = StudySession(
            read_study(FILE), runs, environment, clock, Stops(shown.say), shown.changed
        )
        asyncio.run(session.run())
        shown.refresh(2.0)
    assert "18 of 18 answers, 6 of 6 runs finished" in screen.getvalue()
    assert re.search(r"basic.*\d of 3 right.*\d of 3 right", screen.getvalue())


class _Gone(io.StringIO):
    """A terminal that is closed."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(text)


def test_a_terminal_that_is_gone_changes_nothing() -> None:
    console = Screen(file=_Gone(), force_terminal=True)
    with StudyMatrix([], 0.0, Live(console=console, auto_refresh=False)) as shown:
        shown.refresh(1.0)


@pytest.mark.process
@pytest.mark.parametrize("seed", seeds(6))
def test_a_study_that_is_cancelled_at_any_moment_leaves_nothing_behind(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_base_url)
    write_study(**{"max-connections": 3})
    environment = parse_environment(read_variables())
    provider.latency = 0.005
    rng = random.Random(seed)

    async def carry_out(after: float | None) -> list[CellRun]:
        runs = [
            CellRun.planned(c, environment, Clock()) for c in cells_of(read_study(FILE), {}, {})
        ]
        session = StudySession(
            read_study(FILE), runs, environment, Clock(), Stops(lambda _: None), lambda _: None
        )
        work = asyncio.ensure_future(session.run())
        if after is not None:
            asyncio.get_running_loop().call_later(after, work.cancel)
        await asyncio.gather(work, return_exceptions=True)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return runs

    for _ in range(2):
        asyncio.run(carry_out(rng.uniform(0.0, 0.3)))
    runs = asyncio.run(carry_out(None))
    assert {run.state for run in runs} == {State.FINISHED}
    assert all(manifest.finished for manifest in manifests())


def test_spans_of_a_study(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        status, _, err = study("--otel", models=["gpt-4o-mini"], methods=["zero_shot", "basic"])
    assert status == 0, err
    roots = collector.named("run ")
    assert {root.attributes["mdagents.method"] for root in roots} == {"zero_shot", "mdagents"}
    assert len(collector.questions) == 6
    ledgers = [path.read_bytes() for path in Path("output").glob("*/calls.jsonl")]
    assert len(collector.calls) == sum(ledger.count(b"\n") for ledger in ledgers)
