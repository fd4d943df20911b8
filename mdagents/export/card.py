"""Card of a run: what a reviewer asks about it, as one value for Markdown and JSON.

Accuracy is computed from the records, and calls, tokens and cost from the rows of the ledger, so a
card is right also while a run is in progress or after it was killed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mdagents.datasets.sources import about_of, published_size
from mdagents.export.records import RunFiles, find_run
from mdagents.records.calls import read_calls
from mdagents.records.manifest import RunManifest, Spent
from mdagents.scoring.group import Group, make_group
from mdagents.scoring.report import make_report
from mdagents.scoring.run_verdict import run_verdict
from mdagents.settings import MDAGENTS, Status
from mdagents_llm.errors import ConfigError
from mdagents_llm.text import counted, one_line

CARD_VERSION = "1.0.0"
"""Version of the JSON form."""

_ELSEWHERE = {
    "dataset", "model", "model_base_url", "model_role", "method", "sample_id", "exaid", "epochs",
    "data_dir", "output_dir",
}  # fmt: skip
"""Options that the card states in a place of their own."""

_URL = re.compile(r"\b(https?|wss?|postgres(?:ql)?)://(?:[^\s/@?#]*@)?([^\s/?#:'\"]+)[^\s'\")]*")
_PATH = re.compile(r"(?<![\w./~-])(?:~|[A-Za-z]:)?[/\\](?:[^\s/\\'\":,]+[/\\])+([^\s/\\'\":,]*)")


def without_private(text: str) -> str:
    """Return a text on one line, with each URL cut to its host and each path to its file name."""
    return _PATH.sub(r"\1", _URL.sub(r"\1://\2", one_line(text)))


@dataclass(frozen=True, slots=True)
class UsedModel:
    """A model in one role, with the sums of its rows in the ledger."""

    role: str
    provider: str
    host: str
    """Host of the endpoint; empty if it is not recorded."""
    requested: str
    served: list[str]
    """Names that the endpoint reported, in order of appearance."""
    spent: Spent


@dataclass(frozen=True, slots=True)
class CardData:
    """The questions of a run."""

    name: str
    file: str
    """Name of the file."""
    sha256: str
    """SHA-256 of the file."""
    items_hash: str
    """SHA-256 over ids and contents of the selected questions."""
    license: str
    """Terms of the published data set of this name; empty if not known."""
    citation: str
    published: int | None
    """Number of published questions; None if not known."""
    selected: int
    epochs: int
    pictured: int
    pictures_sha256: str
    exemplars_sha256: str
    notice: str


@dataclass(frozen=True, slots=True)
class CardStart:
    """One start of the program on the run."""

    started_at: str
    ended_at: str | None
    """None while it is in progress, or if it was killed."""
    new_records: int
    reason: str
    """Reason of a stop; empty if the run finished, is in progress, or was killed."""


@dataclass(frozen=True, slots=True)
class RunCard:
    """The card of a run."""

    name: str
    title: str
    result: str
    """The result in a sentence."""
    finished: bool
    data: CardData
    planned: int
    """Number of answers that a finished run has: selected questions times epochs."""
    figures: Group
    """Accuracy with its interval, over all answers but the skipped ones."""
    statuses: dict[str, int]
    """Status -> answers."""
    method: str
    settings: dict[str, str]
    method_sha256: str
    models: list[UsedModel]
    spent: Spent
    """Sums over the rows of the ledger."""
    ledger_rows: int | None
    """Number of rows of the ledger; None without a ledger: sums are those of `run.json`."""
    exaid: str
    """Policy of EXAID; `off` without it."""
    exaid_figures: dict[str, int]
    prompt_hashes: dict[str, str]
    starts: list[CardStart]
    version: str
    git_revision: str
    packages: dict[str, str]
    config_hash: str
    limitations: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return the card as JSON types."""
        models = [
            {"role": used.role, "provider": used.provider, "host": used.host,
             "requested": used.requested, "served": used.served, **used.spent.model_dump()}
            for used in self.models
        ]  # fmt: skip
        content = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {
            "schema_version": CARD_VERSION,
            **content,
            "data": asdict(self.data),
            "figures": asdict(self.figures),
            "models": models,
            "spent": self.spent.model_dump(),
            "starts": [asdict(start) for start in self.starts],
        }


def make_card(path: Path) -> RunCard:
    """Make the card of a run.

    Args:
        path: Folder of a run, its `samples.jsonl`, or its JSON array.

    Raises:
        ConfigError: The path is not a run of this program, is damaged, or has no answer yet.
    """
    run = find_run(path)
    manifest = run.manifest
    if manifest is None:
        raise ConfigError(f"{path} has no run.json, so a card would have nothing to state")
    rows = run.output.rows
    spent, models, ledger_rows = _ledger(run, manifest)
    report = make_report(run.output)
    verdict = run_verdict(report, run.output.manifest, rows)
    figures = make_group(rows)
    return RunCard(
        name=manifest.name,
        title=verdict.title,
        result=verdict.sentence,
        finished=manifest.finished,
        data=_data(manifest),
        planned=len(manifest.item_ids) * manifest.epochs,
        figures=figures,
        statuses=dict(Counter(str(row.status) for row in rows).most_common()),
        method=without_private(manifest.method),
        settings=dict(_settings(manifest)),
        method_sha256=manifest.method_sha256,
        models=models,
        spent=spent,
        ledger_rows=ledger_rows,
        exaid=str(manifest.options.get("exaid") or "off"),
        exaid_figures={
            name: count
            for name, count in manifest.totals.exaid.model_dump().items()
            if isinstance(count, int)
        },
        prompt_hashes=manifest.prompt_hashes,
        starts=[
            CardStart(
                start.started_at, start.ended_at, start.new_records, without_private(start.reason)
            )
            for start in manifest.invocations
        ],
        version=", ".join(manifest.versions),
        git_revision=manifest.git_revision or "",
        packages=manifest.package_versions,
        config_hash=manifest.config_hash,
        limitations=list(_limitations(run, manifest, figures, spent, ledger_rows)),
    )


def _ledger(run: RunFiles, manifest: RunManifest) -> tuple[Spent, list[UsedModel], int | None]:
    """Return the sums of the ledger, by model and role as well, and its number of rows."""
    path = run.folder / "calls.jsonl"
    if not path.is_file():
        models = [
            UsedModel(role, "", manifest.hosts.get(role, ""), model, [], Spent())
            for role, model in manifest.models.items()
        ]
        return manifest.spent, models, None
    total, count = Spent(), 0
    used: dict[tuple[str, str, str], UsedModel] = {}
    for _, row in read_calls(path):
        count += 1
        total.add(row)
        key = row.role, row.provider, row.model_requested
        if key not in used:
            requested = Path(row.model_requested).name if row.provider == "local" else key[2]
            host = manifest.hosts.get(row.role, "")
            used[key] = UsedModel(row.role, row.provider, host, requested, [], Spent())
        used[key].spent.add(row)
        if row.model and row.model not in used[key].served:
            used[key].served.append(row.model)
    return total, list(used.values()), count


def _data(manifest: RunManifest) -> CardData:
    about = about_of(manifest.dataset)
    return CardData(
        name=manifest.dataset,
        file=re.split(r"[/\\]", manifest.dataset_path)[-1],
        sha256=manifest.dataset_sha256,
        items_hash=manifest.items_hash,
        license=about.licence if about else "",
        citation=about.citation if about else "",
        published=published_size(manifest.dataset),
        selected=len(manifest.item_ids),
        epochs=manifest.epochs,
        pictured=manifest.pictured,
        pictures_sha256=manifest.pictures_sha256,
        exemplars_sha256=manifest.exemplars_sha256,
        notice=without_private(manifest.dataset_notice),
    )


def _settings(manifest: RunManifest) -> Iterator[tuple[str, str]]:
    """Yield (name, value) of the options that are set, then team numbers and limits."""
    options, config = manifest.options, manifest.config
    for name, value in options.items():
        if name.startswith("image") and not manifest.pictured:
            continue
        if name not in _ELSEWHERE and (text := _value(value)):
            yield name, text
    if ids := options.get("sample_id"):
        yield "sample_id", counted(len(ids), "id") if isinstance(ids, list) else "by id"
    team, limits = config.get("team"), config.get("limits")
    if isinstance(team, Mapping) and options.get("method", MDAGENTS) == MDAGENTS:
        yield "team numbers", ", ".join(f"{name} {value}" for name, value in team.items())
    if isinstance(limits, Mapping) and (set_ := {k: v for k, v in limits.items() if v is not None}):
        yield "limits", ", ".join(f"{name} {value}" for name, value in set_.items())
    for name in ("max_retries", "timeout", "attempt_timeout", "hedge_after", "cache"):
        if text := _value(config.get(name)):
            yield name, text


def _value(value: object) -> str:
    """Return a setting as text; empty if it is not set."""
    if value is None or value is False:
        return ""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_value, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_value(each)}" for name, each in value.items())
    return without_private(str(value))


def _limitations(
    run: RunFiles,
    manifest: RunManifest,
    figures: Group,
    spent: Spent,
    ledger_rows: int | None,
) -> Iterator[str]:
    yield from map(without_private, run.output.notices)
    if not manifest.finished and manifest.invocations and not manifest.invocations[-1].ended_at:
        yield "the run is in progress or was killed: its numbers may still change"
    if failed := figures.n - figures.answered:
        yield f"{counted(failed, 'answer')} without a letter count as wrong, not as excluded"
    if figures.skipped:
        levels = f"{counted(figures.skipped, 'answer')} of excluded levels"
        yield f"{levels} are in no denominator: accuracy is of the other levels only"
    if spent.cost_usd is None:
        yield "the price of a model is not known, so the cost is not known"
    if spent.cached_calls:
        replies = counted(spent.cached_calls, "reply", "replies")
        yield f"{replies} from the cache, paid for before: not in calls, tokens and cost"
    if ledger_rows is None:
        yield "calls.jsonl is missing: calls, tokens and cost are those that run.json states"
    elif manifest.finished and spent.total_tokens != manifest.spent.total_tokens:
        yield (
            f"run.json states {manifest.spent.total_tokens:,} tokens, and the rows of calls.jsonl "
            f"add up to {spent.total_tokens:,}"
        )
    if manifest.epochs == 1:
        yield (
            "each question was asked once: the interval covers which questions were drawn, not "
            "how much the answers of the model vary"
        )
    if about_of(manifest.dataset):
        yield "license and citation are those of the published data set of this name"
    yield "a run cannot tell whether a model saw these questions in its training"
    yield "names of served models are as the endpoints reported them"
    if manifest.git_revision:
        yield "the Git commit does not show whether files of the program were changed after it"


def excluded(statuses: Mapping[str, int]) -> dict[str, int]:
    """Return status -> answers that are in no denominator."""
    return {name: count for name, count in statuses.items() if name == Status.SKIPPED}
