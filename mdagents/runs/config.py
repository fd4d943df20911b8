"""The configuration of a run: all its flags, valid together, and immutable."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import PrivateAttr, ValidationError, model_validator

from mdagents.runs.flags.by_role import of_role
from mdagents.runs.flags.call_flags import CallFlags
from mdagents.runs.flags.error_sentences import first_in_words
from mdagents.runs.flags.flag import flag_name
from mdagents.runs.flags.id_file import ids_in_file
from mdagents.runs.flags.lists import as_flag
from mdagents.runs.flags.model_flags import ModelFlags
from mdagents.runs.flags.output_flags import OutputFlags
from mdagents.runs.flags.picture_flags import PictureFlags
from mdagents.runs.flags.question_flags import QuestionFlags
from mdagents.runs.flags.team_flags import ADAPTIVE, TeamFlags
from mdagents.settings import MDAGENTS, DebatePolicy, Peers, Router
from mdagents_llm.errors import ConfigError
from mdagents_llm.layers.attempt import ATTEMPT_TIMEOUT
from mdagents_llm.layers.cache import CacheMode
from mdagents_llm.model_configs import Thinking
from mdagents_llm.processes import cores

if TYPE_CHECKING:
    from mdagents.teams.declaration import Method

DEEPEST_IN_BATCHES = 3
"""Maximum number of sequential calls in batches: each waits for a batch, up to a day."""
_PROCESSES_PER_CORE = 4  # more gain nothing and, at 130 MB each, can exhaust the memory
_LEAST_PROCESSES = 16
"""Number of processes that any machine may have."""


# Pydantic takes the fields of the last base first. The usual value of `exaid` in TeamFlags depends
# on `batch` in OutputFlags, which therefore comes after TeamFlags in this list.
class RunConfig(CallFlags, PictureFlags, TeamFlags, OutputFlags, ModelFlags, QuestionFlags):
    """A run, given by the flags of `main.py` (docs/reference/cli.md): a field has its flag's name.

    Flags about one start of the program (`--display`, `--json`, `--dry-run`, `--resume`) are not
    among them. Everything that can change a result is hashed by `runs.identity`.

    Raises:
        ConfigError: A value makes no sense, or not together with another.
    """

    _id_places: dict[str, str] = PrivateAttr(default_factory=dict)

    def __repr_args__(self) -> Iterator[tuple[str, object]]:
        """Yield the flags that were given, without those that have their defaults."""
        yield from ((name, getattr(self, name)) for name in sorted(self.model_fields_set))

    def __init__(self, **flags: Any) -> None:
        """Validate the flags, which are the fields of the model.

        Raises:
            ConfigError: A value is invalid, alone or in combination with another.
        """
        ids, places = flags.get("sample_id"), {}
        if isinstance(ids, str) and ids.startswith("@"):
            places = ids_in_file(Path(ids.removeprefix("@")))
            flags["sample_id"] = list(places)
        try:
            super().__init__(**flags)
        except ValidationError as error:
            raise ConfigError(first_in_words(error, RunConfig)) from None
        self._id_places = places

    def place_of_id(self, id_: str) -> str:
        """Return file and line of an id of `--sample-id @FILE`; empty for other ids."""
        return self._id_places.get(id_, "")

    @model_validator(mode="after")
    def _fits_together(self) -> RunConfig:
        if self.router is not Router.DISAGREEMENT and self.agreement is not None:
            raise ConfigError("--agreement belongs to --router disagreement")
        if self.router is Router.DISAGREEMENT:
            if self.method != MDAGENTS or ADAPTIVE not in self.levels:
                raise ConfigError(
                    "--router chooses among the teams; leave it out, or leave --method and "
                    "--difficulty out"
                )
            if self.team.basic_experts < 2:
                raise ConfigError("--router disagreement needs --num-experts 2 or more")
        if self.method != MDAGENTS:
            does_not = f"--method {self.method} does not route its questions"
            if self.difficulty != ADAPTIVE:
                raise ConfigError(f"{does_not}; leave --difficulty {','.join(self.levels)} out")
            if self.skip:
                raise ConfigError(
                    f"{does_not}, so none can be left out by level; leave --skip and SKIP_* out"
                )
        if self.peers is not Peers.ALL and not self.declared.controls:
            raise ConfigError(
                f"--peers {self.peers} changes what experts read of each other, and "
                f"{self._whose_steps} has no such step; it is for intermediate, advanced, debate "
                "and reconcile"
            )
        policy = self.debate_policy
        if policy is not DebatePolicy.ALWAYS and "turns" not in self.declared.reads:
            raise ConfigError(
                f"--debate-policy {policy} belongs to the intermediate team, and "
                f"{self._whose_steps} has no debate in turns"
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
            raise ConfigError("EXAID summarizes while agents speak; with --batch leave --exaid out")
        if self.cache is not CacheMode.ON:
            raise ConfigError(
                "--batch keeps the replies of one step until the next; leave --cache out"
                if self.cache is CacheMode.OFF
                else "--cache only makes no call; leave --batch out"
            )
        if self.is_distributed:
            raise ConfigError(f"--batch runs in one process; leave {self._elsewhere} out")
        for name in ("hedge_after", "rpm", "tpm", "sample_time_limit"):
            if getattr(self, name) is not None:
                raise ConfigError(
                    f"{flag_name(name)} is for calls that are made at once; leave it out"
                )
        depth = self.declared.steps(self.team)
        if depth > DEEPEST_IN_BATCHES:
            raise ConfigError(
                f"--batch waits for a whole batch at each step, and {self._whose_steps} can "
                f"take {depth} steps one after the other; it is for {DEEPEST_IN_BATCHES} at most"
            )
        return self

    @property
    def _whose_steps(self) -> str:
        if self.method == MDAGENTS:
            return f"--difficulty {','.join(self.levels)}"
        return f"--method {self.method_name}"

    @model_validator(mode="after")
    def _fits_workers(self) -> RunConfig:
        if self.is_distributed and self.cache is CacheMode.ONLY:
            raise ConfigError(
                f"--cache only makes no call and needs no workers; leave {self._elsewhere} out"
            )
        most = max(_LEAST_PROCESSES, _PROCESSES_PER_CORE * cores())
        if not self.ray_address and self.local_processes > most:
            raise ConfigError(
                f"--processes is {self.processes:,}, but this machine has {cores()} cores; give it "
                f"{most} at most, or auto"
            )
        if self.is_distributed and self.declared.one_process:
            raise ConfigError(
                f"--method {self.method_name} answers in one process; leave {self._elsewhere} out"
            )
        return self

    @property
    def _elsewhere(self) -> str:
        return "--ray-address" if self.ray_address else "--processes"

    @property
    def declared(self) -> Method:
        """Properties of the method, or of the teams of the levels together.

        Raises:
            ConfigError: A user-defined method cannot be loaded.
        """
        # The help needs no teams, and importing them takes a fifth of its time.
        from mdagents.teams.methods import declared

        return declared(self.method, self.levels)

    def thinking(self, role: str) -> Thinking:
        """Return the reasoning settings for the model of a role."""
        effort, tokens, most = (
            of_role(text, role)
            for text in (self.reasoning_effort, self.reasoning_tokens, self.max_tokens)
        )
        return Thinking(
            effort,
            int(tokens) if tokens else None,
            int(most) if most else None,
            is_shown=self.keep_reasoning,
        )

    def flags(self) -> dict[str, object]:
        """Return the flags that define a run, by name, for `--resume RUN` to read back."""
        flags = {
            name: as_flag(getattr(self, name))
            for name, _, flag in self.described()
            if flag.defines_run
        }
        ids = self.sample_id
        is_list = any("," in id_ or id_.startswith("@") for id_ in ids)
        flags["sample_id"] = list(ids) if is_list else flags["sample_id"] or None
        return flags

    def changes_from_default(self, *, shows_pictures: bool = True) -> dict[str, object]:
        """Return result-changing settings that differ from the default, for banner and run name.

        Args:
            shows_pictures: Whether agents see pictures; otherwise settings of pictures change none.
        """
        same = RunConfig(method=self.method, preset=self.preset, model_role=self.model_role)
        usual = same.flags() | {
            "preset": TeamFlags.model_fields["preset"].default.value,
            "model_role": [],
        }
        described = {name: flag for name, _, flag in self.described()}
        idle = set() if shows_pictures else PictureFlags.model_fields.keys()
        return {
            name: value
            for name, value in self.flags().items()
            if value not in (None, "", [], usual[name])
            and not described[name].in_name
            and name not in idle
        }
