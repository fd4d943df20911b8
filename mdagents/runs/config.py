"""What a run is asked to do, checked once at the border and frozen from then on."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from exaid_core.policy import TriggerPolicy
from infra.config import check_base_url, read_variables
from infra.errors import ConfigError
from infra.layers.attempt_timeout import ATTEMPT_TIMEOUT
from infra.layers.cache import CacheMode
from infra.layers.retry import RetryPolicy
from mdagents.agents.prompts import prompt_hashes
from mdagents.datasets.questions import OptionOrder
from mdagents.runs.limits import Limits
from mdagents.runs.options import ADAPTIVE, DEFAULTS, EXAID_OFF, MODEL_ROLES, WORD_LIMITS
from mdagents.settings import (
    ALONE,
    LARGEST_COUNT,
    PRESETS,
    SMALLEST_COUNT,
    Difficulty,
    Method,
    Preset,
    TeamSettings,
)

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}


def env_flag(name: str) -> bool:
    """A switch such as SKIP_BASIC from the environment or `.env`: 1/true/yes/on in any case.

    For the constants of a program: a value that is neither ends the program with one line.
    """
    try:
        value = read_variables().get(name, "").strip().lower()
        if value not in _TRUE | _FALSE:
            raise ConfigError(f"{name} is '{value}' but must be yes or no")
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    return value in _TRUE


@dataclass(frozen=True, slots=True)
class Selection:
    """Which questions of a data set are answered, and in which order."""

    start: int = 0
    """Index of the first one, counted from 0, after shuffling."""
    stop: int | None = None
    """Index after the last one; None: to the end."""
    ids: tuple[str, ...] = ()
    """Only these; empty: all."""
    shuffle_seed: int | None = None
    """Shuffled before `start` and `stop` are applied; None: in the order of the file."""


@dataclass(frozen=True, slots=True)
class RunConfig:
    """One run. Everything that can change a result is hashed into `identity`."""

    dataset: str
    split: str
    data_dir: Path
    output_dir: Path
    selection: Selection
    option_order: OptionOrder
    seed: int
    model: str
    model_base_url: str
    model_roles: Mapping[str, str]
    difficulty: Difficulty | None
    """None: adaptive."""
    method: Method
    preset: Preset
    team: TeamSettings
    skip: frozenset[Difficulty]
    exaid: TriggerPolicy | None
    """When EXAID summarises; None: never."""
    exaid_wait: float
    """Seconds that EXAID may take after the last answer."""
    epochs: int
    retry: RetryPolicy
    attempt_timeout: float | None
    """Seconds; None: as the endpoint needs it."""
    hedge_after: float | None
    """Seconds; None: no attempt is made twice."""
    max_connections: int | None
    max_samples: int | None
    requests_per_minute: float | None
    tokens_per_minute: float | None
    limits: Limits
    fail_on_error: float | None
    """Stop at more `api_error` than this: a count, or a fraction of the questions below 1."""
    cache: CacheMode
    fresh: bool
    retry_errors: bool
    dry_run: bool
    log_prompts: bool
    display: str
    json: bool
    show_interaction_table: bool
    options: Mapping[str, object]
    """The flags that are not about this machine, by name: what `--resume RUN` reads back."""

    @property
    def level(self) -> str:
        """`adaptive`, or the difficulty that is forced."""
        return self.difficulty.value if self.difficulty else ADAPTIVE

    def changes_from_default(self) -> dict[str, object]:
        """Settings that change results and differ from the default, for banner and run name."""
        usual: dict[str, object] = {
            "difficulty": self.options["difficulty"],
            "exaid": _usual_exaid(self.method),
        }
        changed = {
            name: value
            for name, value in self.options.items()
            if value not in (None, "", [], usual.get(name, DEFAULTS[name]))
            and name not in _IN_THE_NAME
        }
        if self.skip:
            changed["skip"] = ",".join(sorted(self.skip))
        return changed

    @property
    def _permutations(self) -> str:
        """What `option_order` comes to: two runs with one epoch differ in nothing by `same`."""
        if self.option_order is OptionOrder.SHUFFLED and self.epochs > 1:
            return "of each epoch"
        same = OptionOrder.SHUFFLED if self.option_order is OptionOrder.SAME else self.option_order
        return same.value

    def identity(self, models: Mapping[str, str], items_hash: str, exemplars_hash: str = "") -> str:
        """SHA-256 over all that can change a result.

        Args:
            models: Role -> model and endpoint, as they were chosen.
            items_hash: Of the selected questions.
            exemplars_hash: Of the questions that exemplars are taken from; empty for none.
        """
        content = {
            "items": items_hash,
            "exemplars": exemplars_hash,
            "option_order": self._permutations,
            "seed": self.seed,
            "epochs": self.epochs,
            "models": dict(models),
            "level": self.level,
            "method": self.method,
            "team": asdict(self.team),
            "skip": sorted(self.skip),
            "prompts": prompt_hashes(with_exaid=self.exaid is not None),
            "exaid": self.exaid,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def make_config(options: argparse.Namespace, skip: frozenset[Difficulty]) -> RunConfig:
    """Check what the user asked for.

    Args:
        options: From `options.read_options`.
        skip: The SKIP_* constants of `main.py`.

    Raises:
        ConfigError: A value makes no sense, or not together with another.
    """
    skip |= _levels(options.skip)
    _refuse_levels_of_a_baseline(options, skip)
    _check_url(options.model_base_url)
    for name in ("max_connections", "max_samples", "epochs", "token_limit", "sample_token_limit"):
        _at_least(options, name, 1)
    _at_least(options, "max_retries", 0)
    for name in _MORE_THAN_0:
        value = getattr(options, name)
        if value is not None and not value > 0:
            raise ConfigError(f"{_flag(name)} is {value:g} but must be more than 0")
    attempt_timeout = options.attempt_timeout or ATTEMPT_TIMEOUT
    if options.hedge_after is not None and options.hedge_after >= attempt_timeout:
        raise ConfigError(
            f"--hedge-after is {options.hedge_after:g} but must be less than --attempt-timeout "
            f"({attempt_timeout:g}), when an attempt ends anyway"
        )
    if not options.exaid_wait >= 0:
        raise ConfigError(f"--exaid-wait is {options.exaid_wait:g} but must be 0 or more")
    if options.exaid is None:
        options.exaid = _usual_exaid(Method(options.method))
    if options.cache == CacheMode.ONLY and options.retry_errors:
        raise ConfigError("--cache only asks no provider; leave --retry-errors out")
    preset = Preset(options.preset)
    return RunConfig(
        dataset=options.dataset,
        split=options.split,
        data_dir=Path(options.data_dir),
        output_dir=Path(options.output_dir),
        selection=_selection(options),
        option_order=OptionOrder(options.option_order),
        seed=options.seed,
        model=options.model,
        model_base_url=options.model_base_url,
        model_roles=_model_roles(options.model_role),
        difficulty=None if options.difficulty == ADAPTIVE else Difficulty(options.difficulty),
        method=Method(options.method),
        preset=preset,
        team=_team(options, PRESETS[preset]),
        skip=skip,
        exaid=None if options.exaid == EXAID_OFF else TriggerPolicy(options.exaid),
        exaid_wait=options.exaid_wait,
        epochs=options.epochs,
        retry=RetryPolicy(max_retries=options.max_retries, timeout=options.timeout),
        attempt_timeout=options.attempt_timeout,
        hedge_after=options.hedge_after,
        max_connections=options.max_connections,
        max_samples=options.max_samples,
        requests_per_minute=options.rpm,
        tokens_per_minute=options.tpm,
        limits=Limits(
            run_tokens=options.token_limit,
            run_cost=options.cost_limit,
            sample_tokens=options.sample_token_limit,
            sample_seconds=options.sample_time_limit,
        ),
        fail_on_error=options.fail_on_error,
        cache=CacheMode(options.cache),
        fresh=options.fresh,
        retry_errors=options.retry_errors,
        dry_run=options.dry_run,
        log_prompts=options.log_prompts,
        display=options.display,
        json=options.json,
        show_interaction_table=options.show_interaction_table,
        options={name: getattr(options, name) for name in _KEPT},
    )


_MORE_THAN_0 = (
    "timeout",
    "attempt_timeout",
    "hedge_after",
    "rpm",
    "tpm",
    "cost_limit",
    "sample_time_limit",
)

_KEPT = (
    "dataset",
    "split",
    "num_samples",
    "limit",
    "sample_id",
    "sample_shuffle",
    "option_order",
    "seed",
    "epochs",
    "skip",
    "model",
    "model_base_url",
    "model_role",
    "difficulty",
    "method",
    "preset",
    "num_experts",
    "num_rounds",
    "num_turns",
    "num_teams",
    "team_size",
    "words",
    "decision_temperature",
    "expert_temperature",
    "exaid",
)
"""Flags that make a run what it is."""

_IN_THE_NAME = ("dataset", "split", "num_samples", "model", "difficulty", "method")
"""Flags that a run's name shows by itself."""


def _usual_exaid(method: Method) -> str:
    """The policy when nobody names one: off where there is nobody to overhear."""
    return EXAID_OFF if method in ALONE else TriggerPolicy.FULL_EXAID.value


def _refuse_levels_of_a_baseline(options: argparse.Namespace, skip: frozenset[Difficulty]) -> None:
    if options.method == Method.MDAGENTS:
        return
    does_not = f"--method {options.method} does not route its questions"
    if options.difficulty != ADAPTIVE:
        raise ConfigError(f"{does_not}; leave --difficulty {options.difficulty} out")
    if skip:
        raise ConfigError(
            f"{does_not}, so none can be left out by level; leave --skip and SKIP_* out"
        )


def _check_url(url: str) -> None:
    check_base_url(url, "--model-base-url")
    parts = urlsplit(url)
    if parts.username or parts.password or parts.query:
        raise ConfigError(
            "--model-base-url must hold no password and no query, since it is written to run.json; "
            "put the key into OPENAI_API_KEY"
        )


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _at_least(options: argparse.Namespace, name: str, smallest: int) -> None:
    value = getattr(options, name)
    if value is not None and value < smallest:
        raise ConfigError(f"{_flag(name)} is {value} but must be at least {smallest}")


def _selection(options: argparse.Namespace) -> Selection:
    if options.num_samples is not None and options.limit is not None:
        raise ConfigError("--num-samples and --limit say the same thing; give one of them")
    start, stop = 0, None
    if options.num_samples is not None:
        _at_least(options, "num_samples", 1)
        stop = options.num_samples
    if options.limit is not None:
        match = re.fullmatch(r"(?:(\d+)-)?(\d+)", options.limit.strip())
        start, stop = (int(match[1] or 1) - 1, int(match[2])) if match else (0, 0)
        if start < 0 or stop <= start:
            raise ConfigError(f"--limit is '{options.limit}' but must be N or A-B, counted from 1")
        if start == 0:  # said like --num-samples it is one and the same run
            options.num_samples, options.limit = stop, None
    ids = tuple(part.strip() for part in (options.sample_id or "").split(",") if part.strip())
    if options.sample_id is not None and not ids:
        raise ConfigError("--sample-id has no id in it; write --sample-id 12,57")
    return Selection(start, stop, ids, options.sample_shuffle)


def _model_roles(entries: Sequence[str]) -> dict[str, str]:
    chosen = {}
    for entry in entries:
        role, _, model = entry.partition("=")
        if role not in MODEL_ROLES or not model:
            raise ConfigError(
                f"--model-role {entry}: write ROLE=MODEL with a role of {', '.join(MODEL_ROLES)}"
            )
        chosen[role] = model
    return chosen


def _team(options: argparse.Namespace, usual: TeamSettings) -> TeamSettings:
    counts = {
        "num_experts": ("basic_experts", "debate_experts"),
        "num_rounds": ("rounds",),
        "num_turns": ("turns",),
        "num_teams": ("teams",),
        "team_size": ("team_size",),
    }
    changes: dict[str, object] = {
        "decision_temperature": options.decision_temperature,
        "expert_temperature": options.expert_temperature,
    }
    for name, settings in counts.items():
        value = getattr(options, name)
        if value is None:
            continue
        if not SMALLEST_COUNT <= value <= LARGEST_COUNT:
            raise ConfigError(
                f"{_flag(name)} is {value} but must be {SMALLEST_COUNT} to {LARGEST_COUNT}"
            )
        changes |= dict.fromkeys(settings, value)
    for name in ("decision_temperature", "expert_temperature"):
        if not 0 <= getattr(options, name) <= 2:
            raise ConfigError(f"{_flag(name)} must be 0 to 2")
    return replace(usual, **changes, **_words(options.words))  # type: ignore[arg-type]


def _words(entries: Sequence[str]) -> dict[str, int]:
    limits = {}
    for entry in entries:
        name, _, words = entry.partition("=")
        name = name.replace("-", "_")
        if name not in WORD_LIMITS or not words.isdecimal() or not 5 <= int(words) <= 1000:
            raise ConfigError(
                f"--words {entry}: write NAME=N with a name of {', '.join(WORD_LIMITS)} "
                "and 5 to 1000 words"
            )
        limits[f"{name}_words"] = int(words)
    return limits


def _levels(text: str) -> frozenset[Difficulty]:
    names = [part.strip().lower() for part in text.split(",") if part.strip()]
    for name in names:
        if name not in set(Difficulty):
            raise ConfigError(f"--skip {name}: there are only {', '.join(Difficulty)}")
    return frozenset(Difficulty(name) for name in names)
