"""`run.json`: the identity, provenance and totals of a run."""

from __future__ import annotations

import hashlib
import operator
import re
import unicodedata
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mdagents.agents.case import PREPARE
from mdagents.records.sample import CaseSummaries, ExaidUsage, SampleRecord
from mdagents.settings import EXAID_ROLES, MDAGENTS, Status
from mdagents_llm.errors import ConfigError, ErrorKind
from mdagents_llm.files.regular_file import read_regular
from mdagents_llm.ledger import ABORTED, UNUSABLE, CallRow, add_costs
from mdagents_llm.validation import first_problem

SCHEMA_VERSION = "1.6.0"

WITHOUT_PICTURES = "without pictures"
"""Mark of a run whose questions were asked without their pictures."""


class ExaidTotals(BaseModel):
    """What EXAID did in a run: sums over the complete lines of `summaries.jsonl`."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    questions: int = 0
    """Answers for which it has finished."""
    summarised: int = 0
    """Questions with a non-empty summary made from text."""
    summaries: int = 0
    """Non-empty summaries made from text."""
    alerts: int = 0
    """Segments with a critical alert."""
    missed_alerts: int = 0
    """Critical alerts that no summary covers."""
    flagged_terms: int = 0
    """Numbers, doses and drugs in summaries that occur in no agent's text."""
    emptied_fields: int = 0
    """Fields of summaries that repeated, or that reported nothing an agent had said."""
    left_out: dict[str, int] = {}
    """Why some of a question's text is in no summary -> questions."""

    def add(self, made: CaseSummaries) -> None:
        """Add EXAID's results for one more answer."""
        counting = made.counting
        self.questions += 1
        self.summarised += bool(counting)
        self.summaries += len(counting)
        self.alerts += made.alerts
        self.missed_alerts += made.watched.missed_alerts
        for summary in counting:
            self.flagged_terms += _count(summary.get("unsupported_terms"))
            self.emptied_fields += _count(summary.get("emptied_fields"))
        if made.watched.tail_loss or len(counting) < len(made.exaid.summaries):
            why = made.watched.error or "the summaries say nothing of it"
            self.left_out[why] = self.left_out.get(why, 0) + 1


def _count(listed: object) -> int:
    return len(listed) if isinstance(listed, (list, tuple)) else 0


class RunTotals(BaseModel):
    """Sums over the records of a run."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    questions: int = 0
    """Records, one for each question and epoch."""
    status_counts: dict[str, int] = {}
    """Status -> records."""
    incomplete: int = 0
    """Answers without a turn that ended in `api_error`."""
    correct: int = 0
    """Right answers."""
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cost_usd: float | None = 0.0
    """None when the price of a model that was used is not known."""
    epochs: int = 1
    """The highest epoch of a record."""
    right: dict[str, int] = {}
    """Number of right answers of those to a question, such as `1/2` -> questions; of a run with
    several epochs, counted when it ends."""
    exaid_tokens: int = 0
    exaid_cost_usd: float | None = 0.0
    """None when the price of a model that EXAID used is not known."""
    exaid: ExaidTotals = Field(default_factory=ExaidTotals)
    _scored_in_first_epoch: int = 0
    """Known of the records that were added, and not of totals that were read."""

    def add_summaries(self, made: CaseSummaries) -> None:
        """Add EXAID's results for one more answer."""
        if made.is_complete:
            self.exaid.add(made)
        self._add_exaid(made.exaid.token_usage)

    def _add_exaid(self, usage: ExaidUsage) -> None:
        self.exaid_tokens += usage.total_tokens
        if usage.total_tokens:
            self.exaid_cost_usd = add_costs(self.exaid_cost_usd, usage.cost_usd)

    def add(self, record: SampleRecord) -> None:
        """Count one more record."""
        usage = record.token_usage
        self.questions += 1
        self.epochs = max(self.epochs, record.epoch)
        self._scored_in_first_epoch += record.epoch == 1 and record.status != Status.SKIPPED
        self.status_counts[record.status] = self.status_counts.get(record.status, 0) + 1
        self.incomplete += record.is_incomplete
        self.correct += bool(record.correct)
        self.calls += record.calls
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        self.total_tokens += usage.total_tokens
        self.cost_usd = add_costs(self.cost_usd, usage.cost_usd)
        self._add_exaid(record.exaid.token_usage)

    def by_question(self) -> list[tuple[int, int]] | None:
        """Return (right answers, answers) of each scored question; None if unknown.

        Raises:
            ValueError: `right` is malformed.
        """
        if not 0 < sum(self.right.values()) <= self.scored:
            return None
        pairs = [
            (int(right), int(answers))
            for share, questions in self.right.items()
            for right, answers in [share.split("/")] * questions
        ]
        return pairs if sum(answers for _, answers in pairs) == self.scored else None

    @property
    def asked(self) -> float:
        """Number of distinct questions that are scored, about that where it is unknown.

        It never falls while records are added: epochs are asked one after the other.
        """
        if (pairs := self.by_question()) is not None:
            return len(pairs)
        return self._scored_in_first_epoch or self.scored / self.epochs

    @property
    def scored(self) -> int:
        """Number of questions in the denominator of accuracy: all but the skipped ones."""
        return self.questions - self.status_counts.get(Status.SKIPPED, 0)

    @property
    def done(self) -> int:
        """Number of questions that ended in neither an API error nor a limit."""
        counts = self.status_counts
        return self.questions - counts.get(Status.API_ERROR, 0) - counts.get(Status.LIMIT, 0)

    @property
    def could_not_work(self) -> bool:
        """Whether no reply came and nothing was answered, or most questions ended in `api_error`.

        Such a run measures an endpoint, not a model, and does not count as finished.
        """
        errors = self.status_counts.get(Status.API_ERROR, 0)
        answered = self.status_counts.get(Status.ANSWERED, 0)  # a method may need no calls
        is_dead = self.calls == 0 and not answered
        return self.scored > 0 and (is_dead or 2 * errors > self.scored)


class Spent(BaseModel):
    """Calls, tokens and cost over all invocations: the sum of the rows of `calls.jsonl`."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    calls: int = 0
    """Replies received from providers."""
    cached_calls: int = 0
    """Replies kept from earlier calls; they cost nothing."""
    batched_calls: int = 0
    """Replies of both kinds that came in a provider's batch, at its lower price."""
    estimated_calls: int = 0
    """Replies of both kinds whose endpoint reported no valid usage: their tokens were estimated."""
    settings_refused: int = 0
    """Attempts in which a model refused a setting, such as a temperature, that it was then spared;
    a part of the failed ones."""
    failed_attempts: int = 0
    """Attempts without a usable reply, but for those that were given up when the run was stopped;
    an unusable reply that reported its tokens is also one of `calls`."""
    input_tokens: int = 0
    output_tokens: int = 0
    prepared_tokens: int = 0
    """Tokens of these calls that prepared several questions: see `PREPARE`."""
    cost_usd: float | None = 0.0
    """None when the price of a model that was used is not known."""
    exaid_calls: int = 0
    """Calls of EXAID among `calls`."""
    exaid_tokens: int = 0
    """Input plus output of EXAID's calls; a part of the tokens above."""
    exaid_cost_usd: float | None = 0.0
    """Cost of EXAID's calls; a part of `cost_usd`."""

    @property
    def total_tokens(self) -> int:
        """Input plus output tokens."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Spent) -> Spent:
        sums = Spent()
        for name in Spent.model_fields:
            mine, others = getattr(self, name), getattr(other, name)
            add = add_costs if name.endswith("cost_usd") else operator.add
            setattr(sums, name, add(mine, others))
        return sums

    def add(self, row: CallRow) -> None:
        """Count one more row of the ledger."""
        if row.replied and row.batched:
            self.batched_calls += 1
        if row.replied and row.usage_estimated:
            self.estimated_calls += 1
        if row.cached:
            self.cached_calls += 1
        elif row.outcome == ABORTED:
            return
        elif not row.replied:
            self.failed_attempts += 1
            self.settings_refused += row.outcome in (
                ErrorKind.SETTING_REFUSED,
                ErrorKind.STREAM_REFUSED,
            )
        else:
            self.calls += 1
            self.failed_attempts += row.outcome == UNUSABLE
            self.input_tokens += row.usage.input_tokens
            self.output_tokens += row.usage.output_tokens
            if row.case_id == PREPARE:
                self.prepared_tokens += row.usage.total_tokens
            self.cost_usd = add_costs(self.cost_usd, row.cost_usd)
            if row.role in EXAID_ROLES:
                self.exaid_calls += 1
                self.exaid_tokens += row.usage.total_tokens
                self.exaid_cost_usd = add_costs(self.exaid_cost_usd, row.cost_usd)


class Invocation(BaseModel):
    """One start of the program on this run."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    started_at: str
    ended_at: str | None = None
    """When the run ended; None while it is running, or if it was killed."""
    new_records: int = 0
    reason: str = ""
    """Why the run stopped; empty if it finished, is running, or was killed."""
    version: str = ""
    """Version of the program; empty if it is that of the whole run, as in runs up to 1.5.0."""

    @property
    def seconds(self) -> float:
        """Seconds from start to end; 0 when the end is not known."""
        try:
            began, ended = map(datetime.fromisoformat, (self.started_at, self.ended_at or ""))
            return max(0.0, (ended - began).total_seconds())
        except (TypeError, ValueError):  # TypeError: only one of them has a time zone
            return 0.0


class RunManifest(BaseModel):
    """Contents of `run.json`: configuration, environment and results of a run."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    schema_version: str = SCHEMA_VERSION
    """Version of this format."""
    version: str = ""
    """Version of this program at its last start; empty before 0.2.0."""
    name: str
    """Name of the run."""
    config_hash: str
    """SHA-256 over everything that can change a result."""
    config: dict[str, object]
    """Effective configuration of the run."""
    models: dict[str, str]
    """Role -> model that was asked for."""
    hosts: dict[str, str] = {}
    """Role -> host of its endpoint; empty for a model in this process and for the address that the
    provider's SDK chooses. No role in runs up to 1.4.0."""
    models_served: list[str] = []
    """Model names as the endpoints returned them."""
    dataset: str
    dataset_path: str
    """Relative to the working directory if it lies below it, else the file's name."""
    dataset_sha256: str
    """SHA-256 of the file of questions."""
    dataset_notice: str
    """Caveat about the data set that a reader of the score needs; empty without one."""
    model_notice: str
    """Caveat about the models; empty without one."""
    item_ids: list[str]
    """Ids of the selected questions, in order."""
    items_hash: str
    """SHA-256 over ids and contents of the selected questions."""
    pictured: int = 0
    """Number of selected questions with pictures."""
    pictures_sha256: str = ""
    """SHA-256 over the pictures of the selected questions; empty if none are shown."""
    exemplars_sha256: str = ""
    """SHA-256 of the file with the few-shot exemplars; empty for other methods."""
    method_sha256: str = ""
    """SHA-256 of the source of a user-defined method; empty for built-in methods."""
    method_modules: dict[str, str] = {}
    """Module of the user's own that a user-defined method imports -> SHA-256; none in runs up to
    1.5.0."""
    prompt_hashes: dict[str, str]
    """Prompt -> SHA-256."""
    git_revision: str | None
    """None outside a git checkout: the program was installed, not cloned."""
    package_versions: dict[str, str]
    """Package -> version."""
    options: dict[str, object]
    """What `--resume` needs to resume: the flags that do not depend on this machine."""
    invocations: list[Invocation] = []
    """Each start of the program."""
    finished: bool = False
    """Whether every question has a record, EXAID has finished, and the run could work."""
    totals: RunTotals = Field(default_factory=RunTotals)
    """Sums over the records."""
    spent: Spent = Field(default_factory=Spent)
    """Sums over all invocations."""

    @property
    def versions(self) -> list[str]:
        """Versions of this program that made the records; of the last start if there are none.

        How many records a start made is not known if it was killed.
        """
        made = {start.version or self.version: None for start in self.invocations
                if start.new_records or start.ended_at is None}  # fmt: skip
        return list(made) or [self.version]

    @property
    def seconds(self) -> float:
        """Seconds that all starts of the program took together, as far as they are known."""
        return sum(each.seconds for each in self.invocations)

    @property
    def models_asked(self) -> str:
        """Requested models of all roles, comma-separated."""
        return ", ".join(dict.fromkeys(self.models.values()))

    @property
    def method(self) -> str:
        """Name of the method, or of the team levels: `adaptive`, `basic, advanced`, `cot`.

        It says so if questions were asked without their pictures.
        """
        method = str(self.options.get("method", ""))
        levels = str(self.options.get("difficulty", "")).replace(",", ", ")
        name = levels if method in ("", MDAGENTS) else method
        return f"{name}, {WITHOUT_PICTURES}" if self.is_without_pictures else name

    @property
    def is_without_pictures(self) -> bool:
        """Whether questions with pictures were asked without them."""
        return without_pictures(self.pictured, self.options)

    @property
    def epochs(self) -> int:
        """Number of times each question is asked."""
        epochs = self.options.get("epochs")
        return epochs if type(epochs) is int else 1


def without_pictures(pictured: object, options: Mapping[str, object]) -> bool:
    """Return whether a run asked questions with pictures without them.

    Args:
        pictured: Number of its questions with pictures, from `run.json`.
        options: Its options, from `run.json`.
    """
    return bool(pictured) and options.get("images") == "drop"


_LONGEST_NAME = 200  # bytes; a file name may have 255, with its ending


def run_name(
    model: str,
    dataset: str,
    how: str,
    samples: int,
    changes_hash: str,
    *,
    is_without_pictures: bool = False,
) -> str:
    """Return `{model}_{dataset}_{how}_{n}samples`, with letters of any script.

    Args:
        model: Label of the run's models.
        dataset: Name of the data set.
        how: `adaptive`, the forced difficulty, or the method.
        samples: Number of questions.
        changes_hash: Hash of the non-default settings, used as a suffix; empty when all settings
            are the defaults.
        is_without_pictures: Whether questions with pictures are asked without them.
    """
    mark = WITHOUT_PICTURES if is_without_pictures else ""
    parts = (model, dataset, how, f"{samples}samples", mark, changes_hash)
    name = "_".join(part for part in parts if part)
    name = re.sub(r"[^\w.-]+", "-", unicodedata.normalize("NFC", name)).strip("-.")
    encoded = name.encode()
    if len(encoded) <= _LONGEST_NAME:
        return name
    begin = encoded[:_LONGEST_NAME].decode(errors="ignore")
    return f"{begin}-{hashlib.sha256(encoded).hexdigest()[:8]}"


def read_manifest(folder: Path) -> RunManifest | None:
    """Return the manifest in `run.json`; None when there is no run in the folder.

    Raises:
        ConfigError: The file exists and cannot be read.
    """
    path = folder / "run.json"
    try:
        manifest = RunManifest.model_validate_json(read_regular(path).removeprefix(b"\xef\xbb\xbf"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValidationError) as error:
        raise ConfigError(
            f"{path} cannot be read as a run of this version ({problem_of(error)}); "
            "a start with --fresh keeps it under another name"
        ) from error
    if manifest.schema_version.partition(".")[0] != SCHEMA_VERSION.partition(".")[0]:
        raise ConfigError(
            f"{path} is of version {manifest.schema_version}, and this program reads "
            f"{SCHEMA_VERSION}; a start with --fresh keeps it under another name"
        )
    if manifest.item_ids and manifest.totals.questions > len(manifest.item_ids):
        # Earlier versions did not record multiple epochs.
        manifest.totals.epochs = max(2, manifest.totals.epochs)
    return manifest


def problem_of(error: BaseException | None) -> str:
    """Return a short reason why a file of a run cannot be read."""
    if isinstance(error, ValidationError):
        return first_problem(error)
    if error is None:
        return "its version"
    return getattr(error, "strerror", None) or type(error).__name__
