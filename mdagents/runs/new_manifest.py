"""The manifest of a run that starts now: everything that identifies it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from urllib.parse import urlsplit

import mdagents
from mdagents.agents.prompts import prompt_hashes
from mdagents.datasets.dataset import Dataset, IndexEntry, earlier_labels, part_note
from mdagents.records.folder import is_run_of, name_beside, name_to_use
from mdagents.records.manifest import (
    Invocation,
    RunManifest,
    read_manifest,
    run_name,
    without_pictures,
)
from mdagents.runs.config import RunConfig
from mdagents.runs.flags.team_flags import ADAPTIVE
from mdagents.runs.identity import identity
from mdagents.runs.run_pictures import PlannedPictures
from mdagents.runs.selecting import dropping_note, picture_note
from mdagents.settings import MDAGENTS, TeamRole
from mdagents.teams.methods import OpenMethod
from mdagents_llm.clock import Clock
from mdagents_llm.endpoints import ModelSpec, is_embedded
from mdagents_llm.errors import ConfigError
from mdagents_llm.model_configs import OPENAI, load_model_configs
from mdagents_llm.prices import PACKAGE as PRICES
from mdagents_llm.text import well_formed

_EMBEDDED_NOTICE = (
    "the embedded model (SmolLM2, 135 million parameters) answers near chance: its score shows "
    "that the program works, nothing else."
)


def make_manifest(
    config: RunConfig,
    dataset: Dataset,
    entries: Sequence[IndexEntry],
    specs: Mapping[str, ModelSpec],
    method: OpenMethod | None,
    clock: Clock,
    pictures: PlannedPictures,
) -> RunManifest:
    """Return the manifest of a run that starts now."""
    models = {role: _without_folder(str(spec)) for role, spec in specs.items()}
    items_hash = dataset.items_hash(entries)
    endpoints = {
        role: f"{spec} {spec.base_url} {_file_size(spec)} {spec.settings}".rstrip()
        for role, spec in specs.items()
    }
    exemplars, source, modules = "", "", dict[str, str]()
    if method is not None:
        exemplars, source = method.exemplars_sha256, method.source_sha256
        modules = dict(method.modules)
    changes = config.changes_from_default(shows_pictures=bool(pictures.sha256))
    team = specs[TeamRole.DECISION.value]
    configs = load_model_configs()
    has_embedded = any(is_embedded(spec, configs) for spec in specs.values())

    def identified(modules: Mapping[str, str]) -> tuple[str, str]:
        """Return the hash and the name of the run with these modules of its method."""
        config_hash = identity(
            config, endpoints, items_hash, exemplars, source, pictures, modules=modules
        )

        def named(label: str, how: str) -> str:
            return run_name(
                _called(team),
                label,
                how,
                len(entries),
                config_hash[:8] if source or changes else "",
                is_without_pictures=without_pictures(pictures.questions, {"images": config.images}),
            )

        how, earlier_how = _how_answered(config)
        output_dir, fresh = config.output_dir, config.fresh
        name, earlier_name = named(dataset.name, how), named(dataset.name, earlier_how)
        name = name_to_use(output_dir, name, earlier_name, config_hash, fresh=fresh)
        if not (fresh or (output_dir / name).exists()):
            before = (named(label, how) for label in earlier_labels(dataset.name, config.split))
            same = (each for each in before if is_run_of(output_dir / each, config_hash))
            name = next(same, name)
        model = models[TeamRole.DECISION]
        return config_hash, name_beside(output_dir, name, config_hash, model)

    config_hash, name = identified(modules)
    if modules and not config.fresh and not (config.output_dir / name).exists():
        # Earlier versions ignored the modules. Their run is resumed, and lists them from then on.
        before, name_before = identified({})
        earlier = read_manifest(config.output_dir / name_before)
        if earlier and earlier.config_hash == before and earlier.method_modules in ({}, modules):
            config_hash, name = before, name_before
    return RunManifest(
        version=mdagents.__version__,
        name=name,
        config_hash=config_hash,
        config=_effective(config),
        options=config.flags()
        | {
            "dataset": _without_machine_path(Path(config.dataset)),
            "model": _without_folder(config.model),
            "method": _without_machine_path(Path(config.method)),
        },
        models=models,
        hosts={role: _host(spec) for role, spec in specs.items()},
        dataset=dataset.name,
        dataset_path=_without_machine_path(dataset.path),
        dataset_sha256=dataset.sha256,
        dataset_notice=" ".join(
            filter(
                None,
                [
                    dropping_note(config, entries),
                    dataset.notice,
                    part_note(dataset),
                    picture_note(dataset, config, entries),
                    *pictures.notes,
                ],
            )
        ),
        model_notice=_EMBEDDED_NOTICE if has_embedded else "",
        item_ids=[entry.id for entry in entries],
        items_hash=items_hash,
        pictured=pictures.questions,
        pictures_sha256=pictures.sha256,
        exemplars_sha256=exemplars,
        method_sha256=source,
        method_modules=modules,
        prompt_hashes=prompt_hashes(config.method, with_exaid=config.exaid_policy is not None),
        git_revision=_git_revision(),
        package_versions=_versions("openai", "google-genai", "pydantic", "xllamacpp", PRICES),
        invocations=[Invocation(started_at=clock.timestamp(), version=mdagents.__version__)],
    )


def _how_answered(config: RunConfig) -> tuple[str, str]:
    """Return (the method's part of a run's name, the same part in earlier versions)."""
    if config.method == MDAGENTS:
        return ("-".join(config.levels),) * 2
    return config.method_name, f"{ADAPTIVE}_{config.method_name}"


def _effective(config: RunConfig) -> dict[str, object]:
    """Return the configuration as JSON types, without paths of this machine."""
    return config.model_dump(mode="json", exclude={"data_dir", "output_dir"}) | {
        "selection": asdict(config.selection),
        "team": asdict(config.team),
        "limits": asdict(config.limits),
        "dataset": _without_machine_path(Path(config.dataset)),
        "model": _without_folder(config.model),
        "method": _without_machine_path(Path(config.method)),
        "model_role": {r: _without_folder(m) for r, m in config.model_role.items()},
    }


def _without_machine_path(path: Path) -> str:
    name = str(path)
    if path.is_absolute():
        here = Path.cwd()
        name = str(path.relative_to(here)) if path.is_relative_to(here) else path.name
    if (shown := well_formed(name)) != name:
        try:
            right = os.fsencode(name).decode()
        except UnicodeDecodeError:
            raise ConfigError(
                f"the name {shown} is not valid UTF-8, which run.json requires; rename it"
            ) from None
        raise ConfigError(f"the locale has no letters for {right}; set PYTHONUTF8=1")
    return name


def _without_folder(model: str) -> str:
    """Return the name of a model; for a GGUF file, the file's name without its folder."""
    provider, _, path = model.partition("/")
    return f"{provider}/{Path(path).name}" if path.endswith(".gguf") else model


def _host(spec: ModelSpec) -> str:
    """Return the host of a model's endpoint; empty if it has none, or its SDK chooses it."""
    if spec.is_local:
        return ""
    provider = load_model_configs().provider(spec.provider)
    return urlsplit(spec.base_url or (provider.base_url if provider else "")).hostname or ""


def _file_size(spec: ModelSpec) -> int | None:
    """Return the size of a GGUF file in bytes, to tell files of one name apart; None for others."""
    path = Path(spec.name)
    return path.stat().st_size if spec.is_local and path.is_file() else None


def _called(team: ModelSpec) -> str:
    """Return the name of a model as it appears in the name of a run.

    The provider is put before it where the name alone would mean another provider's model.
    """
    if team.is_local:
        return Path(team.name).stem
    usual = load_model_configs().provider_of(team.name)
    if usual in (None, team.provider) or team.provider == OPENAI:
        return team.name
    return f"{team.provider}-{team.name}"


def _git_revision() -> str | None:
    """Return the Git revision of this module's clone; None for an installed package."""
    root = Path(mdagents.__file__).parents[1]
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--show-toplevel", "HEAD"],
            cwd=root,
            capture_output=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    # Git writes the bytes of the path, which the locale's encoding need not have.
    top, _, revision = os.fsdecode(done.stdout).rstrip().rpartition("\n")
    # A virtual environment may be inside an unrelated repository.
    return revision if Path(top) == root.resolve() else None


def _versions(*packages: str) -> dict[str, str]:
    versions = {"python": sys.version.split()[0]}
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:  # an optional package
            continue
    return versions
