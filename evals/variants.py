"""The five EXAID variants under evaluation, defined in `configs/variants`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evals.files import write_whole
from exaid_core.config import VARIANTS, ExaidConfig
from exaid_core.policy import TriggerPolicy
from exaid_core.token_gate.token_gate import GateProfile
from mdagents_llm.errors import ConfigError
from mdagents_llm.validation import first_problem

FOLDER = Path(__file__).parent / "configs" / "variants"
VARIANT_IDS = tuple(sorted(VARIANTS.values()))


class _Gate(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    min_words: int
    max_words: int
    silence_timer: Annotated[float, Field(gt=0)]
    max_wait_timeout: Annotated[float, Field(gt=0)]


class Variant(BaseModel):
    """The settings of a variant.

    In all variants, each segment is judged on its own, without waiting for others.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    variant_id: Annotated[str, Field(pattern=r"^V[0-4]$")]
    """Id of the variant, V0 to V4."""
    description: str
    """Short description of the variant."""
    trigger_policy: TriggerPolicy
    """Policy that triggers a summary."""
    token_gate: _Gate
    """TokenGate thresholds and timers, for policies that use a TokenGate."""
    chunk_ctu: Annotated[int, Field(ge=1)] = 125
    """CTU of a chunk, for `no_tokengate`; `run_all` replaces it with its calibrated value."""
    history_k: Annotated[int, Field(ge=0)] = 3
    """Number of earlier summaries in a prompt, besides the latest."""

    def exaid_config(self) -> ExaidConfig:
        """Return the EXAID configuration of the variant."""
        return ExaidConfig(
            policy=self.trigger_policy,
            gate=GateProfile(**self.token_gate.model_dump()),
            chunk_ctu=self.chunk_ctu,
            history_k=self.history_k,
            coalesce=False,
            linger=0.0,
            first_after=None,
            behind_after=None,
            call_timeout=None,
        )

    def identity(self) -> dict[str, Any]:
        """Return all settings that can affect a result."""
        settings = asdict(self.exaid_config())
        for live_only in ("first_after", "behind_after", "attempt_timeout", "call_timeout"):
            del settings[live_only]
        return {**settings, "policy": self.trigger_policy.value}


def load_variant(variant_id: str, folder: Path = FOLDER) -> Variant:
    """Read a variant's file.

    Raises:
        ConfigError: The file is missing or unreadable, or a setting is invalid.
    """
    path = folder / f"{variant_id}.yaml"
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        variant = Variant.model_validate(content)
        variant.exaid_config()
    except FileNotFoundError as error:
        known = ", ".join(VARIANT_IDS)
        raise ConfigError(
            f"there is no variant {variant_id} ({path}); known are {known}"
        ) from error
    except ValidationError as error:
        raise ConfigError(f"{path}: {first_problem(error)}") from error
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: {' '.join(str(error).split())}") from error
    if VARIANTS[variant.trigger_policy] != variant.variant_id or variant.variant_id != variant_id:
        raise ConfigError(
            f"{path}: {variant.trigger_policy} is the policy of {VARIANTS[variant.trigger_policy]}"
        )
    return variant


def write_variant(folder: Path, variant: Variant) -> None:
    """Write a variant's file in the form that `load_variant` reads.

    Raises:
        StorageError: The file cannot be written.
    """
    text = yaml.safe_dump(variant.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    write_whole(folder / f"{variant.variant_id}.yaml", text.encode())
