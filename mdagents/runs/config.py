"""The configuration of a run, validated once and immutable from then on."""

from __future__ import annotations

import hashlib
import json
import re
import reprlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from exaid_core.policy import TriggerPolicy
from mdagents.agents.case import expert_number
from mdagents.agents.prompts import prompt_hashes
from mdagents.datasets.dataset import DATA_DIR
from mdagents.datasets.questions import OptionOrder
from mdagents.records.sample import EXAID_ROLES
from mdagents.runs.budget import Limits
from mdagents.settings import (
    IN_ROUNDS,
    LARGEST_COUNT,
    PRESETS,
    SMALLEST_COUNT,
    Difficulty,
    EngineName,
    Method,
    Preset,
    Router,
    TeamRole,
    TeamSettings,
)
from mdagents.teams import own_method
from mdagents.teams.ladder import AGREEMENT
from mdagents_llm.config import check_base_url
from mdagents_llm.errors import ConfigError
from mdagents_llm.layers.attempt import ATTEMPT_TIMEOUT
from mdagents_llm.layers.cache import CacheMode
from mdagents_llm.layers.retry import RetryPolicy
from mdagents_llm.model_configs import APIS, EFFORTS, Thinking
from mdagents_llm.terminal.did_you_mean import did_you_mean

ADAPTIVE: Literal["adaptive"] = "adaptive"
LEVEL_CHOICES = (ADAPTIVE, *(level.value for level in Difficulty))
EXAID_OFF: Literal["off"] = "off"
DEEPEST_IN_BATCHES = 3
"""Maximum number of sequential calls in batches: each waits for a batch, up to a day."""
MODEL_ROLES = (*(role.value for role in TeamRole), "expert-1", "expert-2", *sorted(EXAID_ROLES))
"""Roles for which a model can be chosen; experts are numbered up to `LARGEST_COUNT`."""
_MOST_TOKENS = 1_000_000  # maximum limit of a reply; no model writes that much
WORD_LIMITS = (
    "opinion",
    "debate_opinion",
    "message",
    "delegate",
    "investigate",
    "synthesise",
    "verdict",
    "cot",
)


@dataclass(frozen=True, slots=True)
class Selection:
    """Selection of the questions of a data set, and their order."""

    start: int = 0
    """Index of the first question, counted from 0, after shuffling."""
    stop: int | None = None
    """Index after the last question; None: to the end."""
    ids: tuple[str, ...] = ()
    """Ids of the only questions to answer; empty: all."""
    shuffle_seed: int | None = None
    """Seed for shuffling before `start` and `stop` apply; None: the order of the file."""


AtLeast1 = Annotated[int, Field(ge=1)]
NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=SMALLEST_COUNT, le=LARGEST_COUNT)]
Temperature = Annotated[float, Field(ge=0, le=2)]
LevelChoice = Difficulty | Literal["adaptive"]


class RunConfig(BaseModel):
    """One run, specified by the flags of `main.py` (docs/cli.md): a field has its flag's name.

    Flags about one start of the program (`--display`, `--json`, `--dry-run`, `--resume`) are not
    among them. Everything that can change a result is hashed into `identity`.

    Raises:
        ConfigError: A value makes no sense, or not together with another.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __repr_args__(self) -> Iterator[tuple[str, object]]:
        """Yield the flags that were given, without those that have their defaults."""
        yield from ((name, getattr(self, name)) for name in sorted(self.model_fields_set))

    def __init__(self, **flags: Any) -> None:
        """Validate the flags, which are the fields of the model.

        Raises:
            ConfigError: A value is invalid, alone or in combination with another.
        """
        try:
            super().__init__(**flags)
        except ValidationError as error:
            raise ConfigError(_one_line(error)) from None

    dataset: str = "medqa"
    """Folder under `data_dir`, or a `.jsonl`, `.json` or `.csv` file."""
    split: str = "test"
    data_dir: Path = DATA_DIR
    num_samples: AtLeast1 | None = None
    limit: str | None = None
    """`N` or `A-B`, counted from 1, both included."""
    sample_id: tuple[str, ...] = ()
    """Only these questions; also as one text, `12,57`."""
    sample_shuffle: int | None = None
    option_order: OptionOrder = OptionOrder.SHUFFLED
    seed: int = 0
    epochs: AtLeast1 = 1
    skip: tuple[Difficulty, ...] = ()
    """Levels whose questions are skipped; also as one text, `basic,advanced`."""
    skip_pictures: bool = False
    """Whether questions are left out that have a picture, or whose text refers to one."""

    model: str = "auto"
    model_base_url: str = ""
    model_role: Mapping[str, str] = {}
    """Role -> model; also as a list of `role=model`."""
    api: str = ""
    """Which API of OpenAI's wire: one of `APIS` for all, `role=api` for one, with commas between;
    empty: as each model needs."""
    reasoning_effort: str = ""
    """How much to think: one of `EFFORTS` for all, `role=effort` for one, with commas between."""
    reasoning_tokens: str = ""
    """Room for hidden reasoning, in tokens; for all or by role, like `reasoning_effort`."""
    max_tokens: str = ""
    """Maximum tokens of a reply, hidden reasoning included; also by role."""

    difficulty: LevelChoice | tuple[LevelChoice, ...] = ADAPTIVE
    """`adaptive`: a router rates each question. Several, also as one text `basic,advanced`: the
    questions go to these levels in turn."""
    method: Annotated[Method | str, Field(union_mode="left_to_right")] = Method.MDAGENTS
    """Also a method of one's own: `my_team.py` or `package.module:solve`."""
    router: Router = Router.LLM
    agreement: Annotated[float, Field(ge=0, le=1)] | None = None
    """Mean confidence at which unanimous opinions decide, for the router `disagreement`."""
    batch: bool = False
    """Whether requests go in the provider's batches."""
    preset: Preset = Preset.ULTIMATE
    num_experts: Count | None = None
    num_rounds: Count | None = None
    num_turns: Count | None = None
    num_teams: Count | None = None
    team_size: Count | None = None
    words: Mapping[str, int] = {}
    """Name of a word limit -> words; also as a list of `name=words`."""
    decision_temperature: Temperature = 0.0
    expert_temperature: Temperature = 0.7
    exaid: TriggerPolicy | Literal["off"] | None = Field(default=None, validate_default=True)
    """None: off where agents do not communicate, `turn_end` with the preset `small`, else
    `full_exaid`."""
    exaid_wait: NotNegative = 600.0
    """Seconds that EXAID may take after the last answer."""

    max_connections: AtLeast1 | None = None
    max_samples: AtLeast1 | None = None
    max_retries: Annotated[int, Field(ge=0)] = 5
    timeout: Positive = 600.0
    """Seconds of a call after which it is not tried again."""
    attempt_timeout: Positive | None = None
    """Seconds; None: as the endpoint needs."""
    hedge_after: Positive | None = None
    """Seconds; None: no attempt is made twice."""
    rpm: Positive | None = None
    """Requests per minute at an endpoint."""
    tpm: Positive | None = None
    """Tokens per minute at an endpoint."""
    token_limit: AtLeast1 | None = None
    cost_limit: Positive | None = None
    """Maximum cost of the run, in USD."""
    sample_token_limit: AtLeast1 | None = None
    sample_time_limit: Positive | None = None
    """Maximum time for a question, in seconds."""
    fail_on_error: NotNegative | None = None
    """Stop at more `api_error` than this: a count, or a fraction of the questions below 1."""

    engine: EngineName = EngineName.LOCAL
    ray_address: str = ""
    """`HOST:PORT`, or `auto`; empty: workers on this machine alone."""
    ray_workers: AtLeast1 | None = None

    output_dir: Path = Path("output")
    cache: CacheMode = CacheMode.ON
    fresh: bool = False
    retry_errors: bool = False
    log_prompts: bool = False
    keep_reasoning: bool = False
    """Whether hidden reasoning is asked for where an endpoint shows it only then, and kept in the
    ledger."""

    @model_validator(mode="before")
    @classmethod
    def _say_it_one_way(cls, given: Any) -> Any:
        """Treat `--limit 5` and `--num-samples 5` as the same run."""
        if not isinstance(given, Mapping) or given.get("limit") is None:
            return given
        if given.get("num_samples") is not None:
            raise ConfigError("--num-samples and --limit say the same thing; give one of them")
        start, stop = _range(str(given["limit"]))
        return given if start else {**given, "limit": None, "num_samples": stop}

    @field_validator("sample_id", mode="before")
    @classmethod
    def _ids(cls, value: object) -> object:
        if value is None:
            return ()
        ids = _listed(value)
        if isinstance(value, str) and not ids:
            raise ConfigError("--sample-id has no id in it; write --sample-id 12,57")
        return ids

    @field_validator("skip", mode="before")
    @classmethod
    def _levels(cls, value: object) -> object:
        names = [name.lower() for name in _listed(value)]
        for name in names:
            if name not in set(Difficulty):
                raise ConfigError(
                    f"--skip {name}: the levels are {', '.join(Difficulty)}"
                    f"{did_you_mean(name, Difficulty)}"
                )
        return tuple(sorted({Difficulty(name) for name in names}))

    @field_validator("difficulty", mode="before")
    @classmethod
    def _levels_in_turn(cls, value: object) -> object:
        names = [name.lower() for name in _listed(value)]
        for name in names or [""]:
            if name not in LEVEL_CHOICES:
                raise ConfigError(
                    f"--difficulty is '{name}' but must be one of {', '.join(LEVEL_CHOICES)}, or "
                    f"several with commas{did_you_mean(name, LEVEL_CHOICES)}"
                )
        return tuple(names) if len(names) > 1 else names[0]

    @field_validator("method", mode="before")
    @classmethod
    def _known_method(cls, value: object) -> object:
        name = str(value)
        if name not in set(Method) and not own_method.is_own(name):
            raise ConfigError(
                f"--method is '{name}' but must be one of {', '.join(Method)}, a file.py or "
                f"package.module:solve{did_you_mean(name, Method)}"
            )
        return value

    @field_validator("model")
    @classmethod
    def _one_model(cls, name: str) -> str:
        _refuse_several(name, "--model")
        return name

    @field_validator("model_role", mode="before")
    @classmethod
    def _roles(cls, value: object) -> object:
        chosen: dict[str, str] = {}
        for entry, role, model in _pairs(value):
            number = expert_number(role)
            is_expert = number is not None and SMALLEST_COUNT <= number <= LARGEST_COUNT
            if not (role in MODEL_ROLES or is_expert) or not model:
                raise ConfigError(
                    f"--model-role {entry}: write ROLE=MODEL with a role of "
                    f"{', '.join(MODEL_ROLES)}{_meant(role, MODEL_ROLES)}"
                )
            _refuse_several(model, f"--model-role {role}")
            chosen[role] = model
        return chosen

    @field_validator("api", "reasoning_effort", "reasoning_tokens", "max_tokens", mode="before")
    @classmethod
    def _by_role(cls, value: object, info: ValidationInfo) -> object:
        flag = f"--{str(info.field_name).replace('_', '-')}"
        words = {"api": APIS, "reasoning_effort": EFFORTS}.get(str(info.field_name))
        given: dict[str, str] = {}
        for entry in _listed("" if value is None else str(value)):
            role, equals, amount = entry.rpartition("=")
            number = expert_number(role)
            is_expert = number is not None and SMALLEST_COUNT <= number <= LARGEST_COUNT
            if equals and not (role in MODEL_ROLES or is_expert):
                raise ConfigError(
                    f"{flag} {entry}: write ROLE=VALUE with a role of {', '.join(MODEL_ROLES)}"
                    f"{_meant(role, MODEL_ROLES)}"
                )
            amount = amount.lower()
            least = 0 if info.field_name == "reasoning_tokens" else 1
            if words is not None and amount not in words:
                raise ConfigError(
                    f"{flag} is '{amount}' but must be one of {', '.join(words)}"
                    f"{did_you_mean(amount, words)}"
                )
            is_number = amount.isdecimal() and len(amount) <= len(str(_MOST_TOKENS))
            if words is None and not (is_number and least <= int(amount) <= _MOST_TOKENS):
                raise ConfigError(
                    f"{flag} is '{amount}' but must be a whole number from {least} to "
                    f"{_MOST_TOKENS:,}"
                )
            if role in given:
                raise ConfigError(f"{flag} gives {role or 'all roles'} two values; leave one out")
            given[role] = amount if words is not None else str(int(amount))
        return ",".join(f"{role}={of}" if role else of for role, of in sorted(given.items()))

    @field_validator("words", mode="before")
    @classmethod
    def _word_limits(cls, value: object) -> object:
        limits = {}
        for entry, name, words in _pairs(value):
            limit = name.replace("-", "_")
            if limit not in WORD_LIMITS or not words.isdecimal() or not 5 <= int(words) <= 1000:
                raise ConfigError(
                    f"--words {entry}: write NAME=N with a name of {', '.join(WORD_LIMITS)} "
                    f"and 5 to 1000 words{_meant(name, WORD_LIMITS)}"
                )
            limits[limit] = int(words)
        return limits

    @field_validator("exaid", mode="before")
    @classmethod
    def _usual_exaid(cls, value: object, info: ValidationInfo) -> object:
        if str(value).lower() in ("yes", "true", "on", "1"):
            raise ConfigError(
                f"--exaid is {value!r} but must be one of {', '.join(TriggerPolicy)}, {EXAID_OFF}; "
                f"did you mean '{TriggerPolicy.FULL_EXAID}'?"
            )
        if value is not None:
            return value
        if info.data.get("method") is not Method.MDAGENTS or info.data.get("batch"):
            return EXAID_OFF
        if info.data.get("preset") is Preset.SMALL:
            return TriggerPolicy.TURN_END
        return TriggerPolicy.FULL_EXAID

    @field_validator("model_base_url")
    @classmethod
    def _url(cls, url: str) -> str:
        check_base_url(url, "--model-base-url")
        parts = urlsplit(url)
        if parts.query:
            raise ConfigError(
                "--model-base-url must hold no query, since it is written to run.json; put the key "
                "into OPENAI_API_KEY"
            )
        return url

    @model_validator(mode="after")
    def _fits_together(self) -> RunConfig:
        if self.router is not Router.DISAGREEMENT and self.agreement is not None:
            raise ConfigError("--agreement belongs to --router disagreement")
        if self.router is Router.DISAGREEMENT:
            if self.method is not Method.MDAGENTS or ADAPTIVE not in self.levels:
                raise ConfigError(
                    "--router chooses among the teams; leave it out, or leave --method and "
                    "--difficulty out"
                )
            if self.team.basic_experts < 2:
                raise ConfigError("--router disagreement needs --num-experts 2 or more")
        if self.method is not Method.MDAGENTS:
            does_not = f"--method {self.method} does not route its questions"
            if self.difficulty != ADAPTIVE:
                raise ConfigError(f"{does_not}; leave --difficulty {','.join(self.levels)} out")
            if self.skip:
                raise ConfigError(
                    f"{does_not}, so none can be left out by level; leave --skip and SKIP_* out"
                )
        if self.method is Method.RECONCILE and len(self.own_experts) < 2:
            raise ConfigError(
                "--method reconcile is a round table of different models; name them: "
                "--model-role expert-1=MODEL --model-role expert-2=MODEL"
            )
        attempt_timeout = self.attempt_timeout or ATTEMPT_TIMEOUT
        if self.hedge_after is not None and self.hedge_after >= attempt_timeout:
            raise ConfigError(
                f"--hedge-after is {self.hedge_after:g} but must be less than --attempt-timeout "
                f"({attempt_timeout:g}), when an attempt ends anyway"
            )
        if self.cache is CacheMode.ONLY and self.retry_errors:
            raise ConfigError("--cache only asks no provider; leave --retry-errors out")
        return self

    @model_validator(mode="after")
    def _fits_batches(self) -> RunConfig:
        if not self.batch:
            return self
        if self.exaid_policy is not None:
            raise ConfigError("EXAID summarises while agents speak; with --batch leave --exaid out")
        if self.cache is not CacheMode.ON:
            raise ConfigError(
                "--batch keeps the replies of one step until the next; leave --cache out"
                if self.cache is CacheMode.OFF
                else "--cache only makes no call; leave --batch out"
            )
        if self.engine is not EngineName.LOCAL:
            raise ConfigError("--batch asks from one process; leave --engine out")
        for name in ("hedge_after", "rpm", "tpm", "sample_time_limit"):
            if getattr(self, name) is not None:
                flag = f"--{name.replace('_', '-')}"
                raise ConfigError(f"{flag} is for calls that are made at once; leave it out")
        from mdagents.teams.methods import depth_of  # loads all methods, which few starts need

        depth = depth_of(self.method, self.levels, self.team)
        if depth > DEEPEST_IN_BATCHES:
            raise ConfigError(
                f"--batch waits for a whole batch at each step, and {self._whose_steps} takes up "
                f"to {depth} steps one after the other; it is for {DEEPEST_IN_BATCHES} at most"
            )
        return self

    @property
    def _whose_steps(self) -> str:
        if self.method is Method.MDAGENTS:
            return f"--difficulty {','.join(self.levels)}"
        return f"--method {self.method_name}"

    @model_validator(mode="after")
    def _fits_the_engine(self) -> RunConfig:
        if self.engine is EngineName.LOCAL:
            for flag, value in (("address", self.ray_address), ("workers", self.ray_workers)):
                if value:
                    raise ConfigError(f"--ray-{flag} {value} belongs to --engine ray")
        elif self.cache is CacheMode.ONLY:
            raise ConfigError("--cache only makes no call and needs no cluster; leave --engine out")
        elif self.method is Method.MEDPROMPT:
            raise ConfigError(
                "--method medprompt looks for similar questions on one machine; leave --engine out"
            )
        return self

    @property
    def selection(self) -> Selection:
        """Selection of the questions to answer."""
        start, stop = (0, self.num_samples) if self.limit is None else _range(self.limit)
        return Selection(start, stop, self.sample_id, self.sample_shuffle)

    @property
    def team(self) -> TeamSettings:
        """Numbers of the preset, with the requested changes."""
        counts = {
            "basic_experts": self.num_experts,
            "debate_experts": self.num_experts,
            "rounds": self.num_rounds,
            "answer_rounds": self.num_rounds,
            "turns": self.num_turns,
            "teams": self.num_teams,
            "team_size": self.team_size,
        }
        changes: dict[str, Any] = {n: count for n, count in counts.items() if count is not None}
        changes |= {f"{name}_words": words for name, words in self.words.items()}
        return replace(
            PRESETS[self.preset],
            decision_temperature=self.decision_temperature,
            expert_temperature=self.expert_temperature,
            **changes,
        )

    @property
    def limits(self) -> Limits:
        """Limits of the run and of a question."""
        return Limits(
            run_tokens=self.token_limit,
            run_cost=self.cost_limit,
            sample_tokens=self.sample_token_limit,
            sample_seconds=self.sample_time_limit,
        )

    @property
    def retry(self) -> RetryPolicy:
        """Number of retries and total timeout of a call."""
        return RetryPolicy(max_retries=self.max_retries, timeout=self.timeout)

    @property
    def levels(self) -> tuple[LevelChoice, ...]:
        """Levels to which the questions go in turn."""
        return self.difficulty if isinstance(self.difficulty, tuple) else (self.difficulty,)

    def forced_level(self, index: int) -> Difficulty | None:
        """Return the level to which a question goes; None: a router chooses it.

        Args:
            index: Index of the question in the run, from 0.
        """
        level = self.levels[index % len(self.levels)]
        return level if isinstance(level, Difficulty) else None

    @property
    def method_name(self) -> str:
        """Name of the method, for names of runs and for readers."""
        return own_method.name_of(self.method) if own_method.is_own(self.method) else self.method

    @property
    def own_experts(self) -> tuple[str, ...]:
        """Numbered experts for whom a model was chosen, such as `expert-2`, by their number."""
        numbers = sorted(n for n in map(expert_number, self.model_role) if n is not None)
        return tuple(f"{TeamRole.EXPERT}-{number}" for number in numbers)

    def thinking(self, role: str) -> Thinking:
        """Return the reasoning settings for the model of a role."""
        effort, tokens, most = (
            _of_role(text, role)
            for text in (self.reasoning_effort, self.reasoning_tokens, self.max_tokens)
        )
        return Thinking(
            effort,
            int(tokens) if tokens else None,
            int(most) if most else None,
            is_shown=self.keep_reasoning,
        )

    def api_of(self, role: str) -> str:
        """Return the API that the user chose for a role; empty: the one that the model needs."""
        asked = _of_role(self.api, role)
        return "" if asked == "auto" else asked

    @property
    def roles_apart(self) -> frozenset[str]:
        """Roles for which `thinking` or `api_of` is given separately."""
        texts = (self.api, self.reasoning_effort, self.reasoning_tokens, self.max_tokens)
        entries = [entry for text in texts for entry in text.split(",")]
        return frozenset(entry.partition("=")[0] for entry in entries if "=" in entry)

    @property
    def least_agreement(self) -> float:
        """Effective value of `agreement`."""
        return AGREEMENT if self.agreement is None else self.agreement

    @property
    def exaid_policy(self) -> TriggerPolicy | None:
        """Trigger policy of EXAID; None: EXAID is off."""
        return self.exaid if isinstance(self.exaid, TriggerPolicy) else None

    def flags(self) -> dict[str, object]:
        """Return the flags that define a run, by name, for `--resume RUN` to read back."""
        has_comma = any("," in id_ for id_ in self.sample_id)
        return {name: _as_flag(getattr(self, name)) for name in _WHAT_IT_IS} | {
            "sample_id": list(self.sample_id) if has_comma else ",".join(self.sample_id) or None,
            "skip": ",".join(self.skip),
        }

    def changes_from_default(self) -> dict[str, object]:
        """Return result-changing settings that differ from the default, for banner and run name."""
        same = RunConfig(method=self.method, preset=self.preset, model_role=self.model_role)
        usual = same.flags() | {
            "preset": RunConfig.model_fields["preset"].default.value,
            "model_role": [],
        }
        return {
            name: value
            for name, value in self.flags().items()
            if value not in (None, "", [], usual[name]) and name not in _IN_THE_NAME
        }

    @property
    def _permutations(self) -> str:
        """Effective `option_order`: `same` changes nothing in a run with one epoch."""
        if self.option_order is OptionOrder.SHUFFLED and self.epochs > 1:
            return "of each epoch"
        same = OptionOrder.SHUFFLED if self.option_order is OptionOrder.SAME else self.option_order
        return same.value

    def identity(
        self,
        models: Mapping[str, str],
        items_hash: str,
        exemplars_hash: str = "",
        source_hash: str = "",
    ) -> str:
        """Return the SHA-256 over everything that can change a result.

        Args:
            models: Role -> model and endpoint, as chosen.
            items_hash: Hash of the selected questions.
            exemplars_hash: Hash of the questions that exemplars are taken from; empty for none.
            source_hash: Hash of the source of a user-defined method, regardless of its location;
                empty for built-in methods.
        """
        content: dict[str, Any] = {
            "items": items_hash,
            "exemplars": exemplars_hash,
            "option_order": self._permutations,
            "seed": self.seed,
            "epochs": self.epochs,
            "models": dict(models),
            "level": self.difficulty,
            "method": self.method_name,
            "team": asdict(self.team),
            "skip": self.skip,
            "prompts": prompt_hashes(self.method, with_exaid=self.exaid_policy is not None),
            "exaid": self.exaid_policy,
        }
        # Settings that earlier versions lacked are added only where they matter, so that runs of
        # these versions can be resumed.
        if source_hash:
            content["source"] = source_hash
        if self.router is not Router.LLM:
            content |= {"router": self.router, "agreement": self.least_agreement}
        if self.method not in IN_ROUNDS:
            del content["team"]["answer_rounds"]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


_WHAT_IT_IS = (
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
    "skip_pictures",
    "model",
    "model_base_url",
    "model_role",
    "api",
    "reasoning_effort",
    "reasoning_tokens",
    "max_tokens",
    "difficulty",
    "method",
    "router",
    "agreement",
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
    "batch",
)
"""Flags that define a run; the others concern this machine and this start."""

_IN_THE_NAME = ("dataset", "split", "num_samples", "model", "difficulty", "method", "batch")
"""Flags that have their own part in a run's name, or that change no result."""


def _of_role(text: str, role: str) -> str:
    """Return the value for a role, for `expert` if the role is a numbered expert, or for all."""
    given = {name: of for name, _, of in (each.rpartition("=") for each in text.split(",") if each)}
    usual = given.get(TeamRole.EXPERT if expert_number(role) else "", given.get("", ""))
    return given.get(role, usual)


def _range(limit: str) -> tuple[int, int]:
    """Return (index of the first question, index after the last one) for `N` or `A-B`."""
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)", limit.strip())
    start, stop = (int(match[1] or 1) - 1, int(match[2])) if match else (0, 0)
    if start < 0 or stop <= start:
        raise ConfigError(f"--limit is '{limit}' but must be N or A-B, counted from 1")
    return start, stop


def _one_line(error: ValidationError) -> str:
    """Return a one-line message about the first invalid flag."""
    first, *others = error.errors()
    name = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        return (
            f"there is no setting {name}; a RunConfig takes flags of main.py by their names"
            f"{did_you_mean(name, RunConfig.model_fields)}"
        )
    flag = f"--{name.replace('_', '-')}"
    if first["type"] in _OUT_OF_BOUNDS:
        given = first["input"]
        shown = f"{given:g}" if isinstance(given, float) else reprlib.repr(given)
        return f"{flag} is {shown} but must be {_bounds(name)}"
    same = [other for other in others if other["loc"][0] == name]
    if first["type"] in _OF_A_CLOSED_SET:
        listed = " ".join(error["ctx"]["expected"] for error in [first, *same])
        allowed = re.findall(r"'([^']+)'", listed)
        return (
            f"{flag} is {reprlib.repr(first['input'])} but must be one of {', '.join(allowed)}"
            f"{did_you_mean(str(first['input']), allowed)}"
        )
    if kind := _KINDS.get(first["type"].partition("_")[0]):
        return f"{flag} is {reprlib.repr(first['input'])} but must be {kind}"
    wrong = " or ".join(part["msg"].removeprefix("Value error, ") for part in [first, *same])
    return f"{flag} is {reprlib.repr(first['input'])}: {wrong}"


_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "yes or no",
    "string": "a text",
    "path": "a path",
}
"""Prefix of the name of pydantic's error -> expected value."""
_OF_A_CLOSED_SET = ("enum", "literal_error")
_OUT_OF_BOUNDS = ("greater_than", "greater_than_equal", "less_than_equal")


def _bounds(name: str) -> str:
    """Return the bounds of a flag's number, in words."""
    schema = RunConfig.model_json_schema()["properties"][name]
    match schema.get("anyOf", [schema])[0]:
        case {"minimum": low, "maximum": high}:
            return f"{low:g} to {high:g}"
        case {"minimum": 0}:
            return "0 or more"
        case {"minimum": low}:
            return f"at least {low:g}"
        case {"exclusiveMinimum": low}:
            return f"more than {low:g}"
    raise AssertionError("only these bounds are used")


def _refuse_several(model: str, flag: str) -> None:
    """Refuse several names separated by commas; the name of a file may contain a comma."""
    names = [name for name in model.split(",") if name.strip()]
    if len(names) > 1 and not Path(model.removeprefix("local/")).is_file():
        raise ConfigError(
            f"{flag} names {len(names)} models, {model}; give one, or compare several in a study "
            "(docs/studies.md)"
        )


def _meant(name: str, known: Collection[str]) -> str:
    return "" if name in known else did_you_mean(name, known)


def _listed(value: object) -> tuple[str, ...]:
    """Return the parts of a comma-separated text, or of a list."""
    if not isinstance(value, Iterable):
        raise ValueError("give a text with commas, or a list of texts")
    parts = value.split(",") if isinstance(value, str) else value
    return tuple(part.strip() for part in map(str, parts) if part.strip())


def _pairs(value: object) -> list[tuple[str, str, str]]:
    """Return (entry, name, value) for each item of a mapping or of a list of `name=value`."""
    if isinstance(value, Mapping):
        pairs = {str(name): "" if of is None else str(of) for name, of in value.items()}
        return [(f"{name}={of}", name, of) for name, of in pairs.items()]
    if not isinstance(value, Iterable):
        raise ValueError("give NAME -> value, or a list of NAME=VALUE")
    entries = [value] if isinstance(value, str) else [str(entry) for entry in value]
    return [(entry, *entry.partition("=")[::2]) for entry in entries]


def _as_flag(value: object) -> object:
    if isinstance(value, Mapping):
        return [f"{name}={of}" for name, of in value.items()]
    if isinstance(value, tuple):
        return ",".join(value)
    return value.value if isinstance(value, StrEnum) else value
