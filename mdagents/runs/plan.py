"""What a run is: its questions, its models, its name, and everything that identifies it."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from exaid_core.config import JUDGED
from exaid_core.policy import TriggerPolicy
from infra.clock import Clock
from infra.config import Environment, LLMRole, Provider
from infra.errors import ConfigError
from infra.llm_registry import AUTO, ModelChooser, ModelSpec
from infra.model_configs import load_model_configs
from mdagents.agents.prompts import prompt_hashes
from mdagents.datasets.dataset import Dataset, IndexEntry
from mdagents.datasets.exemplars import exemplars_hash
from mdagents.records.manifest import Invocation, RunManifest, run_name
from mdagents.runs.config import RunConfig
from mdagents.settings import Method, TeamRole

EMBEDDED_NOTICE = (
    "the embedded model (SmolLM2, 135 million parameters) answers near chance: its score shows "
    "that the program works, nothing else."
)


def select(dataset: Dataset, config: RunConfig) -> list[IndexEntry]:
    """The questions that the configuration asks for, in their order.

    Raises:
        ConfigError: An id is not there, or nothing is left.
    """
    selection = config.selection
    entries = list(dataset.index)
    if selection.ids:
        by_id = {entry.id: entry for entry in entries}
        missing = [id_ for id_ in selection.ids if id_ not in by_id]
        if missing:
            raise ConfigError(f"{dataset.path} has no question with id {', '.join(missing)}")
        entries = [by_id[id_] for id_ in dict.fromkeys(selection.ids)]
    if selection.shuffle_seed is not None:
        random.Random(selection.shuffle_seed).shuffle(entries)
    chosen = entries[selection.start : selection.stop]
    if not chosen:
        raise ConfigError(f"{dataset.path} has only {len(entries)} questions; check --limit")
    return chosen


def choose_models(config: RunConfig, environment: Environment) -> dict[str, ModelSpec]:
    """Role -> model, by the order of precedence in docs/models.md.

    Raises:
        ConfigError: A model is not known.
    """
    configs = load_model_configs()
    team = ModelChooser(environment, configs, config.model_base_url).parse(config.model)
    specs = {role.value: team for role in TeamRole}
    for role, model in config.model_roles.items():
        # A role's model names its own provider; only a name that does not is on the team's server.
        has_provider = model.partition("/")[0] in set(Provider) or configs.provider_of(model)
        url = "" if has_provider else config.model_base_url
        specs[role] = ModelChooser(environment, configs, url).parse(model)
    for role in exaid_roles(config.exaid):
        if role.value not in specs:
            chooser = ModelChooser(environment, configs, config.model_base_url)
            specs[role.value] = chooser.for_role(role, team, chosen=config.model != AUTO)
    return specs


def exaid_roles(policy: TriggerPolicy | None) -> tuple[LLMRole, ...]:
    """The roles for which a policy of EXAID needs a model."""
    if policy is None:
        return ()
    if policy in JUDGED:
        return LLMRole.SUMMARIZER, LLMRole.BUFFER_AGENT
    return (LLMRole.SUMMARIZER,)


def make_manifest(
    config: RunConfig,
    dataset: Dataset,
    entries: Sequence[IndexEntry],
    specs: Mapping[str, ModelSpec],
    clock: Clock,
) -> RunManifest:
    """The manifest of a run that starts now."""
    models = {role: _without_folder(str(spec)) for role, spec in specs.items()}
    items_hash = dataset.items_hash(entries)
    endpoints = {role: f"{spec} {spec.base_url} {_file_size(spec)}" for role, spec in specs.items()}
    exemplars = exemplars_hash(dataset.path) if config.method is Method.FEW_SHOT else ""
    config_hash = config.identity(endpoints, items_hash, exemplars)
    team = specs[TeamRole.DECISION.value]
    return RunManifest(
        name=run_name(
            Path(team.name).stem if team.provider is Provider.LOCAL else team.name,
            dataset.name,
            config.level,
            "" if config.method is Method.MDAGENTS else config.method.value,
            len(entries),
            config_hash[:8] if config.changes_from_default() else "",
        ),
        config_hash=config_hash,
        config=_effective(config),
        options=dict(config.options)
        | {
            "dataset": _without_machine_path(Path(config.dataset)),
            "model": _without_folder(config.model),
        },
        models=models,
        dataset=dataset.name,
        dataset_path=_without_machine_path(dataset.path),
        dataset_sha256=dataset.sha256,
        dataset_notice=dataset.notice,
        model_notice=EMBEDDED_NOTICE if _is_embedded(specs) else "",
        item_ids=[entry.id for entry in entries],
        items_hash=items_hash,
        exemplars_sha256=exemplars,
        prompt_hashes=prompt_hashes(with_exaid=config.exaid is not None),
        git_revision=_git_revision(),
        package_versions=_versions("openai", "google-genai", "pydantic", "xllamacpp"),
        invocations=[Invocation(started_at=clock.timestamp())],
    )


def _effective(config: RunConfig) -> dict[str, object]:
    """The configuration as JSON types, without paths of this machine."""
    content = asdict(config)
    for name in ("options", "data_dir", "output_dir"):
        del content[name]
    content["skip"] = sorted(config.skip)
    content["dataset"] = _without_machine_path(Path(config.dataset))
    content["model"] = _without_folder(config.model)
    content["model_roles"] = {r: _without_folder(m) for r, m in config.model_roles.items()}
    loaded: dict[str, object] = json.loads(json.dumps(content))
    return loaded


def _without_machine_path(path: Path) -> str:
    if not path.is_absolute():
        return str(path)
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return path.name


def _without_folder(model: str) -> str:
    """The name of a model; of a GGUF file only the file's name, not where this machine keeps it."""
    provider, _, path = model.partition("/")
    return f"{provider}/{Path(path).name}" if path.endswith(".gguf") else model


def _file_size(spec: ModelSpec) -> int | None:
    """Bytes of a GGUF file: tells two files of one name apart. None for other models."""
    path = Path(spec.name)
    return path.stat().st_size if spec.provider is Provider.LOCAL and path.is_file() else None


def _is_embedded(specs: Mapping[str, ModelSpec]) -> bool:
    default = load_model_configs().providers[Provider.LOCAL].default_model
    return any(spec.provider is Provider.LOCAL and spec.name == default for spec in specs.values())


def _git_revision() -> str | None:
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _versions(*packages: str) -> dict[str, str]:
    versions = {"python": sys.version.split()[0]}
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:  # an optional one
            continue
    return versions
