"""The names of runs beside each other: from `run.json`, else from whole words of the file name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mdagents.cli.score import main
from mdagents.scoring.rows import RunOutput, read_output
from mdagents.scoring.run_names import names_of
from tests.conftest import SHARED
from tests.mdagents.scoring.result_records import ours, write


def named(path: str, manifest: dict[str, Any] | None = None) -> RunOutput:
    return RunOutput(Path(path), (), manifest or {}, {}, ())


def own(model: str, difficulty: str = "adaptive", **options: Any) -> RunOutput:
    """A run of this program; a `name` in the options is that of the run."""
    method = options.pop("method", "mdagents")
    name = options.pop("name", "run")
    dataset = options.pop("dataset", "medqa")
    flags = {"method": method, "difficulty": difficulty, "router": "llm", "seed": 0, "epochs": 1}
    manifest = {
        "models": {"router": "openai/o3", "expert": model, "decision": model},
        "dataset": dataset,
        "options": flags | {"preset": "ultimate", "num_experts": None, "model_role": []} | options,
    }
    return named(f"output/{name}.json", manifest)


MINI = "openai/gpt-4o-mini"

OWN = [
    ([own("openai/gpt-4o"), own(MINI)], ["gpt-4o", "gpt-4o-mini"]),
    ([own("openai/gpt-5"), own("openai/gpt-5-mini")], ["gpt-5", "gpt-5-mini"]),
    ([own("openai/gpt-4o"), own(MINI, method="cot")], ["gpt-4o · adaptive", "gpt-4o-mini · cot"]),
    (
        [own(MINI), own("openrouter/openai/gpt-4o-mini"), own("xai/grok-4.3")],
        ["openai/gpt-4o-mini", "openrouter/openai/gpt-4o-mini", "grok-4.3"],
    ),
    (
        [own("openai/gpt-4o-2024-08-06"), own("openai/gpt-4o-2024-05-13"), own("ollama/llama3:8b")],
        ["gpt-4o-2024-08-06", "gpt-4o-2024-05-13", "llama3:8b"],
    ),
    (
        [own("local/Qwen2.5-7B.Q4_K_M.gguf"), own("local/Qwen2.5-7B.Q8_0.gguf")],
        ["Qwen2.5-7B.Q4_K_M", "Qwen2.5-7B.Q8_0"],
    ),
    ([own(MINI, "basic"), own(MINI, "basic,advanced")], ["basic", "basic-advanced"]),
    ([own(MINI), own(MINI, router="disagreement")], ["adaptive", "adaptive · router disagreement"]),
    ([own(MINI, seed=0), own(MINI, seed=7)], ["adaptive · seed 0", "adaptive · seed 7"]),
    (
        [own(MINI, preset="small", epochs=3), own(MINI)],
        ["adaptive · epochs 3 · preset small", "adaptive · epochs 1 · preset ultimate"],
    ),
    ([own(MINI), own(MINI, num_experts=5)], ["adaptive", "adaptive · num-experts 5"]),
    (
        [own(MINI), own(MINI, model_role=["router=o3"])],
        ["adaptive", "adaptive · model-role router=o3"],
    ),
    ([own(MINI, method="lab/two_opinions.py"), own(MINI)], ["two_opinions", "adaptive"]),
    (
        [own(MINI, name=f"gpt-4o-mini_medqa_adaptive_9samples{old}") for old in ("", "_20261125")],
        ["adaptive", "adaptive · 20261125"],
    ),
    ([own(MINI, dataset="medqa"), own(MINI, dataset="mmlu")], ["medqa", "mmlu"]),
    ([own(MINI)], ["gpt-4o-mini · adaptive"]),
    ([own(MINI, method="zero_shot"), named("gpt-4o-medqa-test-zero_shot.json")],
     ["gpt-4o-mini", "gpt-4o"]),
    ([own(MINI), named("answers.json")], ["gpt-4o-mini · adaptive", "answers"]),
]  # fmt: skip

FILES = {
    ("one", "two"): ["one", "two"],
    ("gpt-4o", "gpt-4o-mini"): ["gpt-4o", "gpt-4o-mini"],
    ("gpt_4o", "gpt_4o_mini"): ["gpt_4o", "gpt_4o_mini"],
    # A hyphen may be inside a model's name, so that nothing is cut there.
    ("experiment-2026-11-temperature-0.0", "experiment-2026-11-temperature-0.7"): [
        "experiment-2026-11-temperature-0.0", "experiment-2026-11-temperature-0.7",
    ],
    ("gpt-4o-mini_medqa_adaptive_500samples", "gpt-4o-mini_medqa_zero_shot_500samples"): [
        "adaptive", "zero_shot",
    ],
    ("gpt-4o-mini_medqa_basic_500samples", "gpt-4o-mini_medqa_basic_500samples_cdf30e3c"): [
        "basic", "basic · cdf30e3c",
    ],
    ("gpt-4o-mini_medqa_cot_30samples_e872c4dd", "gpt-4o-mini_medqa_basic_30samples"): [
        "cot", "basic",
    ],
    ("model_set_plain_9samples", "model_set_team_9samples"): ["plain", "team"],
    ("gpt-4o_medqa_zero_shot", "gpt-4o-mini_medqa_zero_shot"): ["gpt-4o", "gpt-4o-mini"],
    ("Qwen2.5-72B-Instruct_medqa_cot", "Qwen2.5-7B-Instruct_medqa_cot"): [
        "Qwen2.5-72B-Instruct", "Qwen2.5-7B-Instruct",
    ],
    ("o1-medqa-test-cot", "o1-mini-2024-09-12-medqa-test-cot"): ["o1", "o1-mini-2024-09-12"],
    # A model may be called after a data set, a data set after another one.
    ("llama-medqa-7b_medqa_cot", "llama-medqa-70b_medqa_cot"): [
        "llama-medqa-7b", "llama-medqa-70b",
    ],
    ("gpt-4o_mmlu_cot", "gpt-4o_mmlu-pro_cot"): ["mmlu", "mmlu-pro"],
    ("results_gpt-4o_medqa_debate", "results_gpt-4o_medqa_zero-shot"): ["debate", "zero-shot"],
    ("gpt-oss-120b-medqa-high", "gpt-oss-120b-medqa-low"): ["high", "low"],
}  # fmt: skip


def test_names_say_what_differs_and_cut_no_model_in_two() -> None:
    of_files = [([named(f"{n}.json") for n in names], called) for names, called in FILES.items()]
    for runs, called in [*OWN, *of_files]:
        assert names_of(runs) == called
        assert names_of(runs[::-1]) == called[::-1], "whatever the order"


def test_two_files_of_one_name_are_named_by_their_folders(tmp_path: Path) -> None:
    def at(*folders: str) -> list[str]:
        return names_of([named(str(tmp_path / folder / "results.json")) for folder in folders])

    assert at("first", "second") == ["results · first", "results · second"]
    assert at("first/out", "second/out") == ["results · first/out", "results · second/out"]
    assert at("same", "same") == ["results (1)", "results (2)"]


def test_a_name_with_a_point_and_no_ending_is_whole() -> None:
    assert [named(name).name for name in ("Qwen2.5-72B", "gpt-4.1.json", "a.eval")] == [
        "Qwen2.5-72B", "gpt-4.1", "a",
    ]  # fmt: skip
    assert named("out/Qwen2.5-72B").folder == Path("out/Qwen2.5-72B")


@pytest.mark.skipif(not (SHARED / "predictions").is_dir(), reason="no shared data here")
def test_published_files_are_named_by_model_and_method() -> None:
    def of(pattern: str) -> set[str]:
        return set(names_of([named(str(path)) for path in sorted(SHARED.glob(pattern))]))

    methods = {"aflow", "cot", "cot_sc-5", "few_shot", "mdagents", "medagents", "medprompt-3",
               "multipersona-2", "self_refine-3", "zero_shot"}  # fmt: skip
    models = {"DeepSeek-R1", "Llama-3.3-70B-Instruct-Turbo", "gpt-4o"}
    assert of("predictions/*hard*.json") == methods
    assert of("predictions/*test-*.json") == models
    assert of("predictions/*.json") == {f"gpt-4o-mini · {name}" for name in methods} | {
        f"{name} · zero_shot" for name in models
    }
    assert of("mdagents_runs/*.json") == {"adaptive", "cot", "zero_shot"}


@pytest.mark.sweep
def test_a_comparison_says_the_names_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    """Two runs of models of which one's name begins with the other's."""
    for model, right in (("gpt-4o", 15), ("gpt-4o-mini", 5)):
        letters = ("A" * right).ljust(20, "B")
        name = f"{model}_medqa_zero_shot_20samples"
        write([ours(str(n), "A", letter) for n, letter in enumerate(letters)], f"{name}.json")
        folder = Path("output") / name
        folder.mkdir()
        asked = {"decision": f"openai/{model}", "expert": f"openai/{model}"}
        options = {"method": "zero_shot", "difficulty": "adaptive"}
        (folder / "run.json").write_text(json.dumps({"models": asked, "options": options}))
    paths = [str(path) for path in sorted(Path("output").glob("*.json"))]
    assert main(["--html", "--compare", *paths]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "gpt-4o is better than gpt-4o-mini by 50.0 points" in printed
    (page,) = Path("evaluation").glob("*.html")
    assert "gpt-4o is better than gpt-4o-mini by 50.0 points" in page.read_text()
    (figures,) = Path("evaluation").glob("*.json")
    labels = [run["label"] for run in json.loads(figures.read_text())["runs"]]
    assert labels == names_of(list(map(read_output, map(Path, paths)))) == ["gpt-4o-mini", "gpt-4o"]
    assert main(["--what-if", *paths]) == 0
    assert "| gpt-4o-mini |" in capsys.readouterr().out
