"""The plan of a run: its questions, its models, and everything that identifies it."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from urllib.parse import urlsplit

import mdagents
from mdagents.agents.prompts import prompt_hashes
from mdagents.datasets.dataset import Dataset, IndexEntry, no_question, open_dataset, part_note
from mdagents.datasets.record_lines import place
from mdagents.records.folder import earlier_run, is_complete, name_beside, name_to_use
from mdagents.records.manifest import (
    Invocation,
    RunManifest,
    read_manifest,
    run_name,
    without_pictures,
)
from mdagents.runs.budget import Budget
from mdagents.runs.config import RunConfig
from mdagents.runs.engines.engine import Item, Task
from mdagents.runs.flags.team_flags import ADAPTIVE
from mdagents.runs.identity import identity
from mdagents.runs.models import check_sight, choose_models, local_embedding
from mdagents.runs.run_pictures import NO_PICTURES, PlannedPictures, plan_pictures
from mdagents.runs.solver import Solver
from mdagents.settings import MDAGENTS, Difficulty, Status, TeamRole
from mdagents.teams.methods import OpenMethod
from mdagents_llm.clock import Clock
from mdagents_llm.config import Environment
from mdagents_llm.endpoints import ModelSpec, is_embedded
from mdagents_llm.errors import ConfigError
from mdagents_llm.model_configs import OPENAI, load_model_configs
from mdagents_llm.prices import PACKAGE as PRICES
from mdagents_llm.text import counted, well_formed

EMBEDDED_NOTICE = (
    "the embedded model (SmolLM2, 135 million parameters) answers near chance: its score shows "
    "that the program works, nothing else."
)


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan of a run."""

    config: RunConfig
    dataset: Dataset
    solver: Solver
    items: list[Item]
    """All items of the run, including those that an earlier process has finished."""
    specs: Mapping[str, ModelSpec]
    """Role -> model."""
    manifest: RunManifest
    earlier: RunManifest | None
    """Manifest of the same run if an earlier process started it; None otherwise."""
    again: frozenset[Status]
    """Statuses of questions that are answered again; with `api_error`, also of incomplete answers,
    which lack a turn that ended so."""
    pictures: PlannedPictures
    """Pictures of the selected questions."""
    study_budget: Budget | None = None
    """Budget of the study that the run is part of; None: the run stands alone."""

    @property
    def endpoint(self) -> str:
        """Endpoint of most calls of the run: that of the experts, or its batches."""
        spec = self.specs[TeamRole.EXPERT.value]
        endpoint = spec.base_url or (str(spec) if spec.is_local else spec.provider)
        return f"{endpoint} in batches" if self.config.batch else endpoint

    @property
    def finished(self) -> RunManifest | None:
        """Manifest of the run if an earlier process has left nothing to do; None otherwise."""
        earlier = self.earlier
        if earlier is None or not earlier.finished:
            return None
        totals = earlier.totals
        if self.again & totals.status_counts.keys():
            return None
        if totals.incomplete and Status.API_ERROR in self.again:
            return None
        folder = self.config.output_dir / earlier.name
        return earlier if is_complete(folder, earlier) else None

    @property
    def most_errors(self) -> float | None:
        """Maximum number of questions that may end in `api_error`; None: all."""
        allowed = self.config.fail_on_error
        if allowed is None or allowed >= 1:
            return allowed
        return allowed * len(self.items)

    def task(self) -> Task:
        """Return the task that an engine carries out."""
        manifest = self.manifest
        return Task(
            config=self.config,
            specs=self.specs,
            solver=self.solver,
            name=manifest.name,
            model=manifest.models[TeamRole.EXPERT.value],
            revision=manifest.git_revision,
            load=lambda item: self.dataset.load(item.entry),
            budget=self.budget,
            has_pictures=bool(self.pictures.contents),
        )

    @property
    def budget(self) -> Budget:
        """Budget of the run over all its processes, within that of the study."""

        def spent() -> tuple[int, float | None]:
            return self.manifest.spent.total_tokens, self.manifest.spent.cost_usd

        return Budget(
            spent,
            tokens=self.config.token_limit,
            cost=self.config.cost_limit,
            reached=("the run has reached --token-limit", "the run has reached --cost-limit"),
            within=self.study_budget,
        )


def make_plan(config: RunConfig, environment: Environment, clock: Clock) -> Plan:
    """Make the plan of a configuration. Nothing is written.

    Raises:
        ConfigError: A setting, an API key or a file is not valid.
    """
    dataset = open_dataset(config.dataset, config.data_dir, config.split)
    entries = select(dataset, config)
    specs = choose_models(config, environment)
    pictured = sum(entry.pictures > 0 for entry in entries)
    check_sight(config, specs, pictured)
    pictures = plan_pictures(dataset, entries, config)
    solver = Solver(config, dataset, lambda: local_embedding(environment))
    manifest = make_manifest(config, dataset, entries, specs, solver.method, clock, pictures)
    earlier = None if config.fresh else earlier_run(config.output_dir, manifest)
    again = {Status.LIMIT}
    if config.retry_errors or (earlier is not None and earlier.totals.could_not_work):
        again.add(Status.API_ERROR)
    return Plan(
        config,
        dataset,
        solver,
        [
            Item(entry, epoch, config.forced_level(index))
            for epoch in range(1, config.epochs + 1)
            for index, entry in enumerate(entries)
        ],
        specs,
        manifest,
        earlier,
        frozenset(again),
        pictures,
    )


_SKIPPING_PICTURES = "--skip-pictures leaves out every question that has or mentions a picture"


def select(dataset: Dataset, config: RunConfig) -> list[IndexEntry]:
    """Return the questions that the configuration selects, in their order.

    Raises:
        ConfigError: An id does not exist, or no question is left.
    """
    selection = config.selection
    entries = list(dataset.index)
    if selection.ids:
        by_id = {entry.id: entry for entry in entries}
        missing = [id_ for id_ in selection.ids if id_ not in by_id]
        if missing:
            where = config.place_of_id(missing[0])
            message = no_question(dataset, missing)
            raise ConfigError(f"{where}: {message}" if where else message)
        entries = [by_id[id_] for id_ in dict.fromkeys(selection.ids)]
    if selection.shuffle_seed is not None:
        random.Random(selection.shuffle_seed).shuffle(entries)
    if config.skip_pictures:
        entries = [entry for entry in entries if not _refers_to_picture(entry)]
    chosen = entries[selection.start : selection.stop]
    if not chosen:
        if config.skip_pictures and not entries:
            raise ConfigError(
                f"every selected question of {dataset.path} has or mentions a picture, so "
                "--skip-pictures leaves none"
            )
        without = " without a picture" if config.skip_pictures else ""
        raise ConfigError(
            f"{dataset.path} has only {counted(len(entries), 'question')}{without}; check --limit"
        )
    if pictured := [entry for entry in chosen if entry.missing_picture]:
        first = pictured[0]
        raise ConfigError(
            f"{len(pictured)} of the {len(chosen)} questions have a picture that is not there "
            f"(first: {place(dataset.path, first.line)}, id {first.id}, {first.missing_picture}); "
            f"{_SKIPPING_PICTURES}"
        )
    return chosen


def _refers_to_picture(entry: IndexEntry) -> bool:
    return bool(entry.pictures or entry.missing_picture or entry.mentions_picture)


def dropping_note(config: RunConfig, entries: Sequence[IndexEntry]) -> str:
    """Return a note that questions are asked without their pictures; empty if they are not."""
    pictured = sum(entry.pictures > 0 for entry in entries)
    if not without_pictures(pictured, {"images": config.images}):
        return ""
    return (
        f"asked without pictures (--images drop): {pictured} of the {len(entries)} questions have "
        "pictures that no agent saw."
    )


def picture_note(dataset: Dataset, config: RunConfig, entries: Sequence[IndexEntry]) -> str:
    """Return a note on the questions that need a picture or were left out for it; empty for none.

    Args:
        dataset: Data set of the run.
        config: Configuration of the run.
        entries: Selected questions.
    """
    if config.skip_pictures:
        out = [entry for entry in dataset.index if _refers_to_picture(entry)]
        what = f"{len(out)} of the {len(dataset.index)} questions"
        whose = "those with a picture, or that refer to one."
        return f"--skip-pictures leaves out {what}: {whose}" if out else ""
    mentioning = [e for e in entries if e.mentions_picture and not e.pictures]
    if not mentioning:
        return ""
    refer = "refers" if len(mentioning) == 1 else "refer"
    return (
        f"{len(mentioning)} of the {len(entries)} questions {refer} to a figure, an image or a "
        f"table that may be missing (first: {mentioning[0].id}); python -m mdagents data "
        f"check lists them; {_SKIPPING_PICTURES}."
    )


def selection_note(dataset: Dataset, config: RunConfig) -> str:
    """Return a note if fewer questions are answered than requested; empty otherwise."""
    possible = set(Difficulty) if ADAPTIVE in config.levels else {*config.levels}
    if possible <= {*config.skip}:
        return "--skip and SKIP_* leave out every level: no question will be answered"
    selection = config.selection
    held = len(set(selection.ids)) or len(dataset.index)
    if selection.stop is None or selection.stop <= held:
        return ""
    flag = f"--limit {config.limit}" if config.limit else f"--num-samples {config.num_samples}"
    there = "--sample-id names" if selection.ids else f"{dataset.name} holds"
    return f"{flag} asks for more than there is: {there} {held:,} questions"


def make_manifest(
    config: RunConfig,
    dataset: Dataset,
    entries: Sequence[IndexEntry],
    specs: Mapping[str, ModelSpec],
    method: OpenMethod | None,
    clock: Clock,
    pictures: PlannedPictures = NO_PICTURES,
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
        name, earlier_name = (
            run_name(
                _called(team),
                dataset.name,
                how,
                len(entries),
                config_hash[:8] if source or changes else "",
                is_without_pictures=without_pictures(pictures.questions, {"images": config.images}),
            )
            for how in _how_answered(config)
        )
        output_dir, fresh = config.output_dir, config.fresh
        name = name_to_use(output_dir, name, earlier_name, config_hash, fresh=fresh)
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
        model_notice=EMBEDDED_NOTICE if has_embedded else "",
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
        invocations=[Invocation(started_at=clock.timestamp())],
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
