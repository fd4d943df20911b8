"""Short, distinct names of runs for comparisons, what-if tables, pages and charts.

The name of one of our runs derives from its `run.json`; that of another program's file, from whole
words of the file name. Model names are never shortened.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mdagents.datasets.dataset import SAMPLE_NAME, TRIAGE_NAME, VQA_SAMPLE_NAME
from mdagents.datasets.sources import KNOWN
from mdagents.records.manifest import WITHOUT_PICTURES, without_pictures
from mdagents.scoring.fields import object_of, text_of
from mdagents.scoring.rows import RunOutput
from mdagents.settings import MDAGENTS, Difficulty, Router, TeamRole
from mdagents.teams.names import is_own, method_names, name_of
from mdagents_llm.model_configs import load_model_configs
from mdagents_llm.text import counted

_BETWEEN = " · "
_IN_THE_NAME = ("dataset", "split", "model", "difficulty", "method", "router", "batch", "images")
"""Options omitted from the settings: the name shows them anyway, or they change no result."""

_FAMILIES = ("deepseek", "gemma", "mistral", "mixtral", "phi", "medgemma", "meditron")
"""Prefixes of model names, in addition to those in `model_configs.yaml`."""


@dataclass(frozen=True, slots=True)
class _Traits:
    """Parts from which the name of a run is built; unknown parts are empty."""

    model: str
    """Model, with its provider if known."""
    method: str
    """Method, or the levels of the teams plus the router if it is not the default one."""
    dataset: str
    settings: tuple[str, ...] | None
    """Options with their values, such as `seed 7`; None when unknown."""
    others: tuple[str, ...]
    """Other words of the file name."""
    folders: tuple[str, ...]
    """Folders that hold the run, the nearest last."""
    name: str
    """Name of the run or file."""

    @property
    def bare_model(self) -> str:
        """Model name without provider and organization."""
        return self.model.rpartition("/")[2]


def names_of(runs: Sequence[RunOutput]) -> list[str]:
    """Return a short, distinct name for each run, independent of the order of the runs.

    A name includes model, method, router and data set where these differ between the runs, and
    other settings, words of the file name and folders where names would otherwise be the same.

    Args:
        runs: Runs, at least one.
    """
    traits = [_traits(run) for run in runs]
    shown = _shown_models(traits)
    columns = [
        [shown[each.model] for each in traits],
        [each.method for each in traits],
        [each.dataset for each in traits] if len({t.dataset for t in traits} - {""}) > 1 else [],
    ]
    if len(runs) == 1:
        parts: Iterable[Sequence[str]] = zip(*columns[:2], strict=True)
    else:
        differing = [column for column in columns if len(set(column)) > 1]
        parts = zip(*differing, strict=True) if differing else [()] * len(runs)
    names = [
        _BETWEEN.join(filter(None, of_run)) or each.method or shown[each.model] or each.name
        for of_run, each in zip(parts, traits, strict=True)
    ]
    names = _extended(names, [each.settings for each in traits])
    names = _extended(names, [each.others for each in traits])
    for depth in range(max(len(each.folders) for each in traits)):
        names = _extended(names, [("/".join(each.folders[-depth - 1 :]),) for each in traits])
    is_double = {name for name, count in Counter(names).items() if count > 1}
    return [
        f"{name} ({number})" if name in is_double else name
        for number, name in enumerate(names, start=1)
    ]


def title_of(manifest: Mapping[str, Any], name: str, questions: int) -> str:
    """Return the title of a run alone: `gpt-4o-mini · medqa · adaptive · 100 questions`.

    Args:
        manifest: `run.json`, or its `models`, `dataset`, `options` and `pictured`.
        name: Name of the run, for what the manifest does not say.
        questions: Number of questions of the run.
    """
    known = described(manifest, name)
    return _BETWEEN.join([*known, counted(questions, "question")]) if known else name


def described(manifest: Mapping[str, Any], name: str = "") -> list[str]:
    """Return the model, data set and method of a run, as far as they are known.

    Args:
        manifest: As for `title_of`; may be empty.
        name: As for `title_of`.
    """
    words = _of_name(name)
    parts = [
        (_model(manifest) or words.model).rpartition("/")[2],
        text_of(manifest, "dataset") or words.dataset,
        method_of(manifest) or words.method,
    ]
    return list(filter(None, parts))


def _shown_models(traits: Sequence[_Traits]) -> dict[str, str]:
    """Return model -> display name, with the provider only if two share the same bare name."""
    models = {each.model: each.bare_model for each in traits}
    full = Counter(bare for model, bare in models.items() if model != bare)
    return {model: model if full[bare] > 1 else bare for model, bare in models.items()}


def _extended(names: Sequence[str], more: Sequence[Sequence[str] | None]) -> list[str]:
    """Return the names, with duplicates extended by the texts that not all their runs share.

    Args:
        names: Names of the runs.
        more: Texts of each run that may distinguish it; None when unknown.
    """
    extended = list(names)
    for name in [name for name, count in Counter(names).items() if count > 1]:
        texts = {
            place: texts
            for place, texts in enumerate(more)
            if names[place] == name and texts is not None
        }
        having = Counter(text for of_run in texts.values() for text in set(of_run))
        for place, of_run in texts.items():
            own = [text for text in of_run if having[text] < len(texts)]
            extended[place] = _BETWEEN.join([name, *own])
    return extended


def _traits(run: RunOutput) -> _Traits:
    words = _of_name(run.name)
    options = object_of(run.manifest, "options")
    return _Traits(
        model=_model(run.manifest) or words.model,
        method=method_of(run.manifest) or words.method,
        dataset=text_of(run.manifest, "dataset") or words.dataset,
        settings=tuple(_settings(run.manifest)) if options else None,
        others=words.others,
        folders=run.folder.resolve().parts[1:-1],
        name=run.name,
    )


def _model(manifest: Mapping[str, Any]) -> str:
    """Return the model that decides; for a GGUF file, its name without the extension."""
    models = object_of(manifest, "models")
    roles = (TeamRole.DECISION, TeamRole.EXPERT)
    name = next((text_of(models, role) for role in roles if role in models), "")
    return name.removesuffix(".gguf")


def _method(options: Mapping[str, Any]) -> str:
    method = text_of(options, "method")
    if method == MDAGENTS:
        levels, router = text_of(options, "difficulty"), text_of(options, "router")
        routed = [f"router {router}"] if router not in ("", Router.LLM) else []
        return _BETWEEN.join([levels.replace(",", "-"), *routed])
    return name_of(method) if is_own(method) else method


def method_of(manifest: Mapping[str, Any]) -> str:
    """Return the method of a run, its router if not the default, and whether it left pictures out.

    Args:
        manifest: As for `title_of`.
    """
    options = object_of(manifest, "options")
    method = _method(options)
    if without_pictures(manifest.get("pictured"), options):
        return f"{method}{_BETWEEN}{WITHOUT_PICTURES}"
    return method


def _settings(manifest: Mapping[str, Any]) -> Iterable[str]:
    shows_pictures = bool(manifest.get("pictured"))
    for name, value in object_of(manifest, "options").items():
        if name.startswith("image_") and not shows_pictures:
            continue  # it changes nothing, and earlier versions did not have it
        if name not in _IN_THE_NAME and value not in (None, "", []):
            text = ", ".join(map(str, value)) if isinstance(value, list) else value
            yield f"{name.replace('_', '-')} {text}"


@dataclass(frozen=True, slots=True)
class _Words:
    """Parts recognized in a file name; unrecognized parts are empty."""

    model: str = ""
    method: str = ""
    dataset: str = ""
    others: tuple[str, ...] = ()


def _phrases(names: Iterable[str], ending: str = "") -> re.Pattern[str]:
    """Return a whole-word pattern in which `zero_shot`, `zero-shot` and `zeroshot` are equal."""
    longest_first = sorted(names, key=len, reverse=True)
    alternatives = (re.sub(r"[_/-]", "[_-]?", name) for name in longest_first)
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(alternatives)}){ending}(?![^\W_])", re.IGNORECASE)


_METHODS = _phrases([*method_names(), *Difficulty, "adaptive"], r"(?:-\d{1,2})?")
_DATASETS = _phrases([*KNOWN, SAMPLE_NAME, TRIAGE_NAME, VQA_SAMPLE_NAME])
_SPLITS = _phrases(["test", "test_hard", "dev", "val", "validation", "train"])
_SAMPLES = re.compile(r"(?<![^\W_])\d+samples?(?![^\W_])")


def _of_name(name: str) -> _Words:
    """Parse the name of a file, such as `gpt-4o-mini-medqa-test_hard-cot_sc-5`."""
    dataset, samples = _found(_DATASETS, name), _found(_SAMPLES, name)
    method = _found(_METHODS, name, beside=dataset)
    if dataset is None and method is None and samples is None:
        return _Words()
    split = _found(_SPLITS, name, beside=dataset)
    known = sorted((m for m in (dataset, method, split, samples) if m), key=lambda m: m.start())
    ends = [0, *(m.end() for m in known)]
    starts = [*(m.start() for m in known), len(name)]
    between = [name[end:start].strip("-_ ") for end, start in zip(ends, starts, strict=True)]
    chunks = list(filter(None, between))
    model = next((c for c in chunks if _family_at(c) is not None), chunks[0] if chunks else "")
    others = [word for c in chunks if c != model for word in c.split("_")]
    model = model[_family_at(model) or 0 :]
    read = [m[0] if m else "" for m in (method, dataset)]
    # Naming scheme of this program: {model}_{dataset}_{method}_{n}samples.
    for place in (0, 1) if samples else ():
        if not read[place] and "_" in model:
            model, _, read[place] = model.rpartition("_")
    if not read[0] and len(chunks) > 1 and others:  # {model}-{dataset}-{method}
        read[0] = others.pop()
    others += [split[0]] if split else []
    return _Words(model, read[0], read[1], (*others, *([samples[0]] if samples else [])))


def _found(
    pattern: re.Pattern[str], name: str, beside: re.Match[str] | None = None
) -> re.Match[str] | None:
    """Return the last match of a pattern, preferably one between underscores.

    A model may be named after a data set, as in `llama-medqa-7b_medqa_cot`.
    """
    found = [
        m
        for m in pattern.finditer(name)
        if beside is None or m.end() <= beside.start() or m.start() >= beside.end()
    ]
    alone = [m for m in found if name[: m.start()][-1:] in ("", "_") and
             name[m.end() :][:1] in ("", "_")]  # fmt: skip
    candidates = alone or found
    return candidates[-1] if candidates else None


def _family_at(chunk: str) -> int | None:
    """Return the offset of a known model's name in a part of a name; None without one."""
    starts = (*load_model_configs().patterns, *_FAMILIES)
    at = 0
    for word in chunk.split("_"):
        if word.lower().startswith(starts):
            return at
        at += len(word) + 1
    return None
