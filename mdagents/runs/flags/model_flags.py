"""Flags of the models: which model has which role, and how much it thinks and writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import ValidationInfo, field_validator

from mdagents.runs.flags.by_role import (
    MODEL_ROLES,
    form_by_role,
    in_normal_form,
    is_role,
    of_role,
    roles_in,
)
from mdagents.runs.flags.flag import Flag, Flags, flag_name
from mdagents.runs.flags.lists import pairs_of
from mdagents.settings import TeamRole, expert_number
from mdagents_llm.config import check_base_url
from mdagents_llm.errors import ConfigError
from mdagents_llm.model_configs import APIS, EFFORTS


class ModelFlags(Flags):
    """Which models answer, and with which settings."""

    model: Annotated[
        str,
        Flag(
            "provider/name or a known name; auto: by key, else the embedded model",
            "NAME",
            in_name=True,
        ),
    ] = "auto"
    model_base_url: Annotated[str, Flag("any OpenAI-compatible endpoint", "URL")] = ""
    model_role: Annotated[
        Mapping[str, str],
        Flag(
            f"a different model for one role; repeatable ({', '.join(MODEL_ROLES)})", "ROLE=MODEL"
        ),
    ] = {}
    """Role -> model; also as a list of `role=model`."""
    api: Annotated[
        str,
        Flag(
            f"which API of an OpenAI-compatible endpoint: {', '.join(APIS)}; by role: "
            "expert=responses [auto: responses for models that have no other]",
            "API",
        ),
    ] = ""
    """One of `APIS` for all, `role=api` for one, with commas between."""
    reasoning_effort: Annotated[
        str,
        Flag(
            f"reasoning effort: {', '.join(EFFORTS)}; by role: expert=low,decision=high "
            "[the endpoint's default]",
            "EFFORT",
        ),
    ] = ""
    """One of `EFFORTS` for all, `role=effort` for one, with commas between."""
    reasoning_tokens: Annotated[
        str,
        Flag(
            "tokens allowed for hidden reasoning; by role: expert=4096 [8192, and more when they "
            "are used up; 0 for models that do not think]"
        ),
    ] = ""
    max_tokens: Annotated[
        str,
        Flag(
            "maximum tokens of a reply, hidden reasoning included; also by role [as each reply "
            "needs]"
        ),
    ] = ""

    @field_validator("model")
    @classmethod
    def _one_model(cls, name: str) -> str:
        _refuse_several(name, "--model")
        return name

    @field_validator("model_base_url")
    @classmethod
    def _url(cls, url: str) -> str:
        check_base_url(url, "--model-base-url")
        return url

    @field_validator("model_role", mode="before")
    @classmethod
    def _roles(cls, value: object) -> object:
        chosen: dict[str, str] = {}
        for entry, role, model in pairs_of(value):
            if not is_role(role) or not model:
                raise ConfigError(f"--model-role {entry}: {form_by_role('ROLE=MODEL', role)}")
            _refuse_several(model, f"--model-role {role}")
            chosen[role] = model
        return chosen

    @field_validator("api", "reasoning_effort", "reasoning_tokens", "max_tokens", mode="before")
    @classmethod
    def _by_role(cls, value: object, info: ValidationInfo) -> object:
        name = str(info.field_name)
        return in_normal_form(
            flag_name(name),
            "" if value is None else str(value),
            words={"api": APIS, "reasoning_effort": EFFORTS}.get(name, ()),
            least=0 if name == "reasoning_tokens" else 1,
        )

    @property
    def own_experts(self) -> tuple[str, ...]:
        """Numbered experts for whom a model was chosen, such as `expert-2`, by their number."""
        numbers = sorted(n for n in map(expert_number, self.model_role) if n is not None)
        return tuple(f"{TeamRole.EXPERT}-{number}" for number in numbers)

    def api_of(self, role: str) -> str:
        """Return the API that the user chose for a role; empty: the one that the model needs."""
        asked = of_role(self.api, role)
        return "" if asked == "auto" else asked

    @property
    def roles_apart(self) -> frozenset[str]:
        """Roles for which `thinking` or `api_of` is given separately."""
        texts = (self.api, self.reasoning_effort, self.reasoning_tokens, self.max_tokens)
        return frozenset().union(*map(roles_in, texts))


def _refuse_several(model: str, flag: str) -> None:
    """Refuse several names separated by commas; the name of a file may contain a comma."""
    names = [name for name in model.split(",") if name.strip()]
    if len(names) > 1 and not Path(model.removeprefix("local/")).is_file():
        raise ConfigError(
            f"{flag} names {len(names)} models, {model}; give one, or compare several in a study "
            "(docs/how-to/studies.md)"
        )
