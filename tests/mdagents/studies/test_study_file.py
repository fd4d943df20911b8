"""The file of a study: what it may hold, and what is said of what it may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mdagents.datasets.record_lines import ENDINGS
from mdagents.runs.config import RunConfig
from mdagents.runs.options import make_parser
from mdagents.settings import Difficulty, Router
from mdagents.studies.file import Cell, cells_of, read_study
from mdagents_llm.errors import ConfigError
from tests.mdagents.studies.conftest import FILE, SMALL, Study, write_study


def cells(**changes: Any) -> list[Cell]:
    write_study(**changes)
    return cells_of(read_study(FILE), {}, {})


def test_every_combination_is_a_run() -> None:
    found = cells(datasets=["medqa", "medmcqa"], epochs=2)
    assert len(found) == 2 * 2 * 3
    assert len({str(cell) for cell in found}) == 12
    assert {cell.config.epochs for cell in found} == {2}
    assert str(found[0]) == "medqa, gpt-4o-mini, zero_shot"
    assert found[2].config.difficulty is Difficulty.BASIC


def test_an_entry_with_settings_is_called_by_them_or_by_its_label() -> None:
    methods = [
        {"difficulty": "adaptive", "router": "disagreement"},
        {"router": "disagreement", "agreement": 0.9, "label": "sure"},
        "folder/my_team.py",
        {"method": "debate", "num-rounds": 2, "words": {"opinion": 80}},
    ]
    found = cells(models=[{"model": "m", "model-base-url": "http://127.0.0.1:1/v1"}],
                  methods=methods)  # fmt: skip
    assert [cell.method for cell in found] == [
        "adaptive, router disagreement",
        "sure",
        "my_team",
        "debate, num-rounds 2, words opinion=80",
    ]
    assert found[1].config.router is Router.DISAGREEMENT
    assert found[3].config.words == {"opinion": 80}
    assert found[0].model == "m"


@pytest.mark.parametrize(
    ("dataset", "label"),
    [
        *((f"/home/me/a=b/hard{ending}", "hard") for ending in ENDINGS),
        ({"dataset": "medqa", "sample-id": "@/home/me/hard.txt"}, "medqa, sample-id @hard"),
        (
            {"dataset": "/home/me/hard.csv", "role-model": {"expert": "/home/me/tiny.gguf"}},
            "hard, role-model expert=tiny",
        ),
        ({"dataset": "x", "model-args": "k=v/w.json"}, "x, model-args k=v/w.json"),
        ({"dataset": "x", "context": "https://x.y/z.json"}, "x, context https://x.y/z.json"),
    ],
)
def test_a_label_names_no_folder(dataset: object, label: str) -> None:
    write_study(datasets=[dataset])
    assert read_study(FILE).datasets[0].label == label


@pytest.mark.parametrize(
    ("datasets", "labels"),
    [
        (["a/test.parquet", "b/test.parquet", "c"], ["a/test.parquet", "b/test.parquet", "c"]),
        (
            [{"dataset": "medqa", "sample-id": f"@{folder}/ids.txt"} for folder in "ab"],
            ["medqa, sample-id @a/ids.txt", "medqa, sample-id @b/ids.txt"],
        ),
        (
            [{"dataset": "x", "role-model": {"expert": f"/{folder}/m.gguf"}} for folder in "ab"],
            ["x, role-model expert=/a/m.gguf", "x, role-model expert=/b/m.gguf"],
        ),
        (["a/test.csv", {"dataset": "b/q.csv", "label": "test"}], ["a/test.csv", "test"]),
    ],
)
def test_labels_that_clash_name_the_folders(datasets: list[object], labels: list[str]) -> None:
    write_study(datasets=datasets)
    assert [entry.label for entry in read_study(FILE).datasets] == labels


def test_every_switch_of_a_run_can_be_on_or_off() -> None:
    found = cells(**{"skip-pictures": True, "keep-reasoning": "yes", "log-prompts": False})
    assert {cell.config.skip_pictures for cell in found} == {True}
    assert {cell.config.keep_reasoning for cell in found} == {True}
    assert {cell.config.log_prompts for cell in found} == {False}


def test_the_file_goes_before_the_environment() -> None:
    write_study()
    found = cells_of(read_study(FILE), {}, {"MDAGENTS_MODEL": "o3", "MDAGENTS_SEED": "7"})
    assert {cell.config.model for cell in found} == {"gpt-4o-mini", "gpt-4.1-mini"}
    assert {cell.config.seed for cell in found} == {7}, "of what the file does not say"


@pytest.mark.parametrize("value", ["true", "false"])
def test_a_switch_of_the_file_goes_before_the_environment(value: str) -> None:
    write_study(**{"log-prompts": value})
    for variable in ("true", "false"):
        found = cells_of(read_study(FILE), {}, {"MDAGENTS_LOG_PROMPTS": variable})
        assert {cell.config.log_prompts for cell in found} == {value == "true"}


def test_a_flag_that_is_no_setting_of_a_run_is_refused() -> None:
    options = set(vars(make_parser().parse_args([], env_vars={}))) - set(RunConfig.model_fields)
    for name in options - {"config_file"} | {"run_config"}:
        write_study(**{name: "x"})
        with pytest.raises(ConfigError, match="is not a setting of a study"):
            read_study(FILE)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"methods": None}, "'methods' must be a list, such as [zero_shot"),
        ({"methods": "basic"}, "'methods' must be a list"),
        ({"models": []}, "'models' must be a list"),
        ({"models": [["a"]]}, "'models' holds ['a']"),
        ({"method": "cot"}, "write 'methods', a list, in place of 'method'"),
        ({"cost-limit": 3}, "write 'limits: {cost: 25, tokens: 1000000}', not 'cost-limit'"),
        ({"limits": {"usd": 3}}, "write 'limits' as {cost: 25, tokens: 1000000}"),
        ({"limits": {"cost": "1_0"}}, "'cost' of 'limits' is '1_0' but must be a number above 0"),
        ({"rerun-wrong": "x"}, "'rerun-wrong' is not a setting of a study"),
        ({"batch": "y"}, "gpt-4o-mini, zero_shot): 'batch' is 'y' but must be yes or no"),
        ({"reasoning-effort": []}, "'reasoning-effort' must list different values, such as"),
        ({"reasoning-effort": ["low", "low"]}, "'reasoning-effort' must list different values"),
        ({"limits": {"cost": "free"}}, "'cost' of 'limits' is 'free' but must be a number above 0"),
        ({"limits": {"tokens": 0.5}}, "'tokens' of 'limits' is '0.5' but must be a whole number"),
        ({"baseline": "zero_shots"}, "did you mean 'zero_shot'"),
        ({"name": "a/b"}, "'a/b' cannot be a name of files"),
        ({"output-dir": "x"}, "'output-dir' is not a setting of a study; see python -m mdagents "),
        ({"methods": [{"difficulty": "basic", "rpm": 3}]}, "'rpm' holds for the whole study"),
        ({"methods": ["cot", "cot"]}, "has 'cot' 2 times; give each a 'label' of its own"),
        ({"models": [{"seed": 1}]}, "an entry needs 'model', beside seed"),
        ({"num-samples": "many"}, "--num-samples is 'many' but must be a whole number"),
        ({"methods": ["basics"]}, "did you mean 'basic'"),
        ({"epoch": 3}, "there is no flag --epoch"),
        (
            {"methods": ["basic", {"method": "cot", "num-rounds": 3}]},
            "--method cot has no such number; leave num-rounds out of its entry",
        ),
        ({"seed": None, "temperature": ""}, "'temperature' needs a value"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_line_that_says_what_to_write(
    changes: dict[str, Any], said: str, study: Study
) -> None:
    status, out, err = study(**changes)
    assert (status, out) == (2, "")
    assert said in err
    assert err.startswith("error: teams.yaml")
    assert err.count("\n") == 1
    assert not Path("output").exists()


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file"),
        (b"a: [", "is not YAML"),
        (b"\xff\xfe", "is not UTF-8 text; save it as UTF-8"),
        (b"- a", "is no study: it needs at least 'methods'"),
        (b"", "is no study"),
        (b"[" * 5000, "is nested too deeply"),
    ],
)
def test_a_file_that_is_no_study_is_one_line(content: bytes | None, said: str) -> None:
    if content is not None:
        FILE.write_bytes(content)
    with pytest.raises(ConfigError, match=r"teams\.yaml") as error:
        read_study(FILE)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
KEYS = st.sampled_from([*SMALL, "name", "limits", "baseline", "epochs", "words"]) | st.text()


@pytest.mark.sweep
@given(content=st.dictionaries(KEYS, VALUES, max_size=4))
def test_any_yaml_is_a_study_or_one_line(
    content: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("study") / "study.yaml"
    path.write_text(yaml.safe_dump({"methods": ["cot"], **content}), encoding="utf-8")
    said = refusal(path)
    assert said != "it has no runs"
    assert "\n" not in said


def refusal(path: Path) -> str:
    """What is said of a file that is no study; empty of one that is."""
    try:
        return "" if cells_of(read_study(path), {}, {}) else "it has no runs"
    except ConfigError as error:
        return str(error)


def test_a_list_of_efforts_is_an_axis(tmp_path: Path) -> None:
    file = tmp_path / "efforts.yaml"
    file.write_text("methods: [zero_shot, basic]\nreasoning_effort: [low, high]\n")
    found = cells_of(read_study(file), {}, {})
    assert [(cell.method, cell.config.reasoning_effort) for cell in found] == [
        ("zero_shot, reasoning-effort low", "low"),
        ("zero_shot, reasoning-effort high", "high"),
        ("basic, reasoning-effort low", "low"),
        ("basic, reasoning-effort high", "high"),
    ]


def test_an_effort_of_an_entry_goes_before_the_list(tmp_path: Path) -> None:
    file = tmp_path / "efforts.yaml"
    own = "{method: cot, reasoning-effort: medium}"
    file.write_text(f"methods: [zero_shot, {own}]\nreasoning-effort: [low, high]\n")
    assert [
        (each.label, each.settings["reasoning-effort"]) for each in read_study(file).methods
    ] == [
        ("zero_shot, reasoning-effort low", "low"),
        ("zero_shot, reasoning-effort high", "high"),
        ("cot, reasoning-effort medium", "medium"),
    ]


def test_a_name_in_two_spellings_is_one_line() -> None:
    write_study(**{"num-samples": 10, "num_samples": 12})
    with pytest.raises(ConfigError, match="has 'num-samples' in two spellings"):
        read_study(FILE)


def test_temperatures_without_effect_are_no_comparison() -> None:
    methods = [{"method": "cot", "expert-temperature": heat} for heat in (0, 0.5)]
    with pytest.raises(ConfigError, match="--method cot has no turn at this temperature"):
        cells(methods=methods)
