"""The plan of a run: its questions, its models and its manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mdagents.datasets.dataset import Dataset, open_dataset
from mdagents.records.folder import earlier_run, is_complete
from mdagents.records.manifest import RunManifest
from mdagents.runs.budget import Budget
from mdagents.runs.config import RunConfig
from mdagents.runs.engines.engine import Item, Task
from mdagents.runs.models import check_sight, choose_models, local_embedding
from mdagents.runs.new_manifest import make_manifest
from mdagents.runs.run_pictures import PlannedPictures, plan_pictures
from mdagents.runs.selecting import select
from mdagents.runs.solver import Solver
from mdagents.settings import Status, TeamRole
from mdagents_llm.clock import Clock
from mdagents_llm.config import Environment
from mdagents_llm.endpoints import ModelSpec


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
        if earlier.totals.incomplete and Status.API_ERROR in self.again:
            return None
        folder = self.config.output_dir / earlier.name
        return earlier if is_complete(folder, earlier, self.again) else None

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
