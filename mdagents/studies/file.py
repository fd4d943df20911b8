"""The study file: which data sets, models and methods are compared, and how."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from mdagents.datasets.record_lines import ENDINGS
from mdagents.runs.config import RunConfig
from mdagents.runs.flags.flag import value_type
from mdagents.runs.flags.team_flags import ADAPTIVE, EXAID_OFF
from mdagents.runs.idle_flags import idle_of_the_method
from mdagents.runs.options import FALSE, TRUE, read_config, read_options, variable_of
from mdagents.settings import Difficulty
from mdagents.teams.names import baseline_names, is_own, method_names
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.yaml_text import read_yaml
from mdagents_llm.terminal.did_you_mean import did_you_mean

Settings = Mapping[str, str | Sequence[str]]
"""Flag without its dashes -> value, or several values for a repeatable flag."""

_AXES = {"datasets": "dataset", "models": "model", "methods": "method"}
_OWN = ("name", "baseline", "limits", *_AXES)
_OF_THE_PROGRAM = (
    "data-dir", "display", "dry-run", "fresh", "json", "no-open", "output-dir", "rerun-wrong",
    "resume", "retry-errors", "run-config", "show-interaction-table", "view", "view-host",
    "view-port",
)  # fmt: skip
_OF_THE_WHOLE = (
    "attempt-timeout", "cache", "max-connections", "max-samples", "processes", "ray-address",
    "rpm", "timeout", "tpm",
)  # fmt: skip
_LIMITS = {"cost": "cost-limit", "tokens": "token-limit"}
_LABEL = "label"
_EFFORT = "reasoning-effort"
"""Flag that becomes a separate axis when given as a list: each method with each effort."""
_LEVELS = (ADAPTIVE, *Difficulty)
_FILES = (*ENDINGS, ".gguf", ".py")
_NOT_IN_A_LABEL = ("batch", "model-base-url")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Entry:
    """A data set, model or method of a study."""

    label: str
    settings: Settings


@dataclass(frozen=True, slots=True)
class StudyFile:
    """The parsed file of a study."""

    path: Path
    name: str
    datasets: tuple[Entry, ...]
    models: tuple[Entry, ...]
    methods: tuple[Entry, ...]
    baseline: str
    """Label of the method that all others are compared with."""
    settings: Settings
    """Settings shared by all runs."""
    cost_limit: float | None
    """Cost limit of the whole study in USD; None means no limit."""
    token_limit: int | None


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of a study."""

    dataset: str
    """Label of the data set; `model` and `method` hold labels as well."""
    model: str
    method: str
    config: RunConfig

    def __str__(self) -> str:
        return f"{self.dataset}, {self.model}, {self.method}"


def read_study(path: Path) -> StudyFile:
    """Read the file of a study.

    Raises:
        ConfigError: The file is missing or has an invalid value; the message names it.
    """
    content = _by_key(_parsed(path), f"{path}")
    for key in content:
        if key in _AXES.values():
            raise ConfigError(f"{path}: write '{key}s', a list, in place of '{key}'")
        if key in _LIMITS.values():
            raise ConfigError(f"{path}: write 'limits: {{cost: 25, tokens: 1000000}}', not '{key}'")
        _refuse(key, path)
    name = _text(content.get("name", path.stem), f"{path}: 'name'")
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{path}: '{name}' cannot be a name of files; use letters, digits, '-', '_' and '.'"
        )
    datasets, models, methods = (
        _entries(content.get(axis, default), axis, path)
        for axis, default in (("datasets", ["medqa"]), ("models", ["auto"]), ("methods", None))
    )
    efforts = content.pop(_EFFORT, None)
    if isinstance(efforts, list) and not any("=" in str(each) for each in efforts):
        listed = [_text(each, f"{path}: '{_EFFORT}'") for each in efforts]
        if not listed or len(set(listed)) < len(listed):
            raise ConfigError(
                f"{path}: '{_EFFORT}' must list different values, such as [low, high]"
            )
        methods = tuple(each for method in methods for each in _with_efforts(method, listed))
    elif efforts is not None:
        content[_EFFORT] = efforts
    labels = [method.label for method in methods]
    baseline = _text(content.get("baseline", labels[0]), f"{path}: 'baseline'")
    if baseline not in labels:
        raise ConfigError(
            f"{path}: the baseline '{baseline}' is none of the methods, which are "
            f"{', '.join(repr(label) for label in labels)}{did_you_mean(baseline, labels)}"
        )
    limits = content.get("limits", {})
    if not isinstance(limits, dict) or not limits.keys() <= _LIMITS.keys():
        raise ConfigError(f"{path}: write 'limits' as {{cost: 25, tokens: 1000000}}")
    return StudyFile(
        path=path,
        name=name,
        datasets=datasets,
        models=models,
        methods=methods,
        baseline=baseline,
        settings={
            key: _value(value, f"{path}: '{key}'")
            for key, value in content.items()
            if key not in _OWN
        },
        cost_limit=_amount(limits.get("cost"), f"{path}: 'cost' of 'limits'"),
        token_limit=_count(limits.get("tokens"), f"{path}: 'tokens' of 'limits'"),
    )


def cells_of(
    study: StudyFile, program: Mapping[str, str], variables: Mapping[str, str]
) -> list[Cell]:
    """Return the runs of a study, ordered by data set, then model, then method.

    Args:
        study: The parsed study file.
        program: Flags that the program adds to each run, such as the data and output folders.
        variables: Environment variables; settings in the file take precedence.

    Raises:
        ConfigError: A setting of a run is invalid; the message names the run.
    """
    cells = []
    for dataset, model, method in product(study.datasets, study.models, study.methods):
        # EXAID costs about as much as the teams and changes no answer: off unless requested.
        usual = {} if "MDAGENTS_EXAID" in variables else {"exaid": EXAID_OFF}
        settings = {
            **usual, **study.settings, **dataset.settings, **model.settings, **method.settings,
        }  # fmt: skip
        if "" in settings:  # `--=FILE` would be read as --run-config
            raise ConfigError(f"{study.path}: a setting has no name; write it as NAME: VALUE")
        # A switch that the file turns off has no flag that would go before its variable.
        given = {variable_of(name) for name in settings if _is_switch(name)}
        others = {name: value for name, value in variables.items() if name not in given}
        try:
            argv = [
                word
                for name, value in {**settings, **program}.items()
                for word in _words(name, value)
            ]
            config = read_config(read_options(argv, others, program="python study.py"))
            # A method alone has no idle settings, and its file is loaded later.
            for flag, why in idle_of_the_method(config) if len(method.settings) > 1 else ():
                if (name := flag.removeprefix("--")) in method.settings:
                    raise ConfigError(f"{why}; leave {name} out of its entry")
        except ConfigError as error:
            where = f"{study.path} ({dataset.label}, {model.label}, {method.label})"
            raise ConfigError(" ".join(f"{where}: {error}".split())) from None
        cells.append(Cell(dataset.label, model.label, method.label, config))
    return cells


def _parsed(path: Path) -> dict[object, Any]:
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise ConfigError(f"{path} is no study: it needs at least 'methods', a list")
    return content


def _entries(listed: Any, axis: str, path: Path) -> tuple[Entry, ...]:
    where = f"{path}: '{axis}'"
    if not isinstance(listed, list) or not listed:
        raise ConfigError(f"{where} must be a list, such as [{_EXAMPLES[axis]}]")
    entries = tuple(_entry(each, axis, path) for each in listed)
    shown = Counter(entry.label for entry in entries)
    entries = tuple(
        entry
        if shown[entry.label] == 1 or (isinstance(given, dict) and _LABEL in given)
        else replace(entry, label=_label(entry.settings, _AXES[axis], with_folders=True))
        for entry, given in zip(entries, listed, strict=True)
    )
    label, count = Counter(entry.label for entry in entries).most_common(1)[0]
    if count > 1:
        raise ConfigError(f"{where} has '{label}' {count} times; give each a 'label' of its own")
    return entries


_EXAMPLES = {
    "datasets": "medqa, medmcqa",
    "models": "gpt-4o-mini, gemini-2.5-flash-lite",
    "methods": "zero_shot, cot_sc, basic, adaptive",
}


def _entry(given: Any, axis: str, path: Path) -> Entry:
    main, where = _AXES[axis], f"{path}: '{axis}'"
    if isinstance(given, str):
        given = _text(given, where)
        is_level = axis == "methods" and given.lower() in _LEVELS
        if axis == "methods" and not (is_level or given in method_names() or is_own(given)):
            names = [*_LEVELS, *baseline_names()]
            raise ConfigError(
                f"{where} has '{given}', which is none of {', '.join(names)}, a file.py or "
                f"package.module:solve{did_you_mean(given, names)}"
            )
        return Entry(_called(given), {"difficulty" if is_level else main: given})
    if not isinstance(given, dict) or not given:
        raise ConfigError(f"{where} holds {given!r}; write a name, or flags: {{{main}: NAME}}")
    settings: dict[str, str | Sequence[str]] = {}
    for key, value in _by_key(given, where).items():
        if key in _OF_THE_WHOLE:
            raise ConfigError(
                f"{where}: '{key}' holds for the whole study; write it beside '{axis}'"
            )
        _refuse(key, path)
        settings[key] = _value(value, f"{where}, '{key}'")
    label = settings.pop(_LABEL, "")
    if axis != "methods" and main not in settings:
        raise ConfigError(f"{where}: an entry needs '{main}', beside {', '.join(settings)}")
    return Entry(str(label) or _label(settings, main), settings)


def _with_efforts(method: Entry, efforts: Sequence[str]) -> Sequence[Entry]:
    """Return a method with each of the efforts, or alone if its entry has its own."""
    if _EFFORT in method.settings:
        return [method]
    return [
        Entry(f"{method.label}, {_EFFORT} {effort}", {**method.settings, _EFFORT: effort})
        for effort in efforts
    ]


def _label(settings: Settings, main: str, *, with_folders: bool = False) -> str:
    """Return the label of an entry, from its settings.

    Args:
        settings: Flag -> value.
        main: Flag that names the entry.
        with_folders: Whether files are called by their paths, which tells two entries apart.
    """
    first = [main, "difficulty"] if main == "method" else [main]
    names = [str(settings[name]) for name in first if name in settings] or [ADAPTIVE]
    if not with_folders:
        names = list(map(_called, names))
    others = []
    for name, value in settings.items():
        if name not in (*first, *_NOT_IN_A_LABEL):
            values = [value] if isinstance(value, str) else value
            if not with_folders:
                values = [_called_setting(name, one) for one in values]
            others.append(f"{name} {' '.join(values)}")
    return ", ".join([*names, *others])


def _by_key(given: Mapping[Any, Any], where: str) -> dict[str, Any]:
    """Return settings by the names of their flags.

    Raises:
        ConfigError: A name stands there twice, with `-` and with `_`.
    """
    settings: dict[str, Any] = {}
    for name, value in given.items():
        key = _key(name)
        if key in settings:
            raise ConfigError(f"{where} has '{key}' in two spellings")
        settings[key] = value
    return settings


def _key(name: object) -> str:
    """Return a flag's name without its dashes, as a single line."""
    return " ".join(str(name).split()).replace("_", "-")


def _called(value: str) -> str:
    """Return the label of a value; for a file, its name without folder and extension."""
    path = Path(value)
    return path.stem if path.suffix.lower() in _FILES else value


def _called_setting(name: str, value: str) -> str:
    """Return the label of the value of a flag: `@FILE`, `ROLE=FILE` of `role-model`, or any."""
    if value.startswith("@"):
        return f"@{Path(value[1:]).stem}"
    role, mark, file = value.partition("=")
    if mark and name == "role-model":
        return f"{role}={_called(file)}"
    return value


def _refuse(key: str, path: Path) -> None:
    if key in _OF_THE_PROGRAM:
        raise ConfigError(
            f"{path}: '{key}' is not a setting of a study; see python -m mdagents study --help"
        )


def _value(value: Any, where: str) -> str | list[str]:
    """Return the value of a flag; objects and lists of `key=value` become a list of strings."""
    if isinstance(value, dict):
        return [f"{name}={_text(of, where)}" for name, of in value.items()]
    if isinstance(value, list):
        texts = [_text(each, where) for each in value]
        return texts if any("=" in text for text in texts) else ",".join(texts)
    return _text(value, where)


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value or len(value.splitlines()) > 1:
        raise ConfigError(f"{where} needs a value, a word or a number")
    return value.strip()


def _amount(value: Any, where: str) -> float | None:
    if value is None:
        return None
    text = _text(value, where)
    try:
        amount = float(text)
    except ValueError:
        amount = 0.0
    if "_" in text or not 0 < amount < float("inf"):  # Python reads 1_0 as 10
        raise ConfigError(f"{where} is '{value}' but must be a number above 0")
    return amount


def _count(value: Any, where: str) -> int | None:
    if value is None:
        return None
    if not _text(value, where).isdecimal() or int(value) < 1:
        raise ConfigError(f"{where} is '{value}' but must be a whole number above 0")
    return int(value)


def _words(name: str, value: str | Sequence[str]) -> list[str]:
    """Return a setting as command-line arguments."""
    if _is_switch(name):
        if str(value).lower() not in TRUE | FALSE:
            raise ConfigError(f"'{name}' is '{value}' but must be yes or no")
        return [f"--{name}"] if str(value).lower() in TRUE else []
    values = [value] if isinstance(value, str) else value
    return [f"--{name}={each}" for each in values]


def _is_switch(name: str) -> bool:
    field = RunConfig.model_fields.get(name.replace("-", "_"))
    return field is not None and value_type(field) is bool
