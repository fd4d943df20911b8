"""Settings that the model layer takes from the environment: keys, endpoints, models by role.

Which variables those are, `model_configs.yaml` says. `.env` is looked for upwards from the working
directory; a variable of the process wins over the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from io import StringIO
from pathlib import Path
from urllib.parse import urlsplit

from dotenv import dotenv_values, find_dotenv
from dotenv.parser import parse_stream
from platformdirs import user_cache_path

from mdagents_llm.errors import ConfigError
from mdagents_llm.model_configs import ProviderInfo, load_model_configs

TYPED_CALLS = "LLM_TYPED_CALLS"
"""Whether calls go through the typed methods of the SDKs, for what wraps these; for all providers
whose SDK has such methods."""
_OFF = ("", "0", "false", "no", "off")
_USER = re.compile(r"//[^/?#]*@")  # and the password in an address


class LLMRole(StrEnum):
    """The roles of models; each can have its own provider and model."""

    MAS = "mas"
    SUMMARIZER = "summarizer"
    BUFFER_AGENT = "buffer_agent"


@dataclass(frozen=True, slots=True)
class RoleChoice:
    """The choice for one role in the environment; a field that is not set is empty."""

    provider: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class Environment:
    """Keys, endpoints and choices. Never printed, never written to a file."""

    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Name -> value, of those that are set."""
    cache_dir: Path = Path()
    """Folder of the embedded model's weights."""

    def key_name(self, provider: ProviderInfo) -> str:
        """Return the variable that holds the key for a provider; empty without one."""
        return next((n for n in provider.keys if self.variables.get(n, "").strip()), "")

    def key(self, provider: ProviderInfo) -> str | None:
        """Return the key for a provider."""
        name = self.key_name(provider)
        return self.variables[name].strip() if name else None

    def may_call(self, provider: ProviderInfo) -> bool:
        """Return whether there is a key for a provider, or what stands in for it."""
        instead = [self.variables.get(name, "") for name in provider.instead_of_key]
        return bool(self.key_name(provider)) or (
            bool(instead) and all(is_on(value) for value in instead)
        )

    def base_url(self, provider: ProviderInfo) -> str:
        """Return the address that the user set for a provider; empty for its own."""
        return self.variables.get(provider.base_url_variable, "")

    def model(self, provider: ProviderInfo) -> str:
        """Return the model of a provider that is meant when none is named; empty without one."""
        return self.variables.get(provider.model_variable, "") or provider.default_model

    def settings(self, provider: ProviderInfo) -> dict[str, str]:
        """Return the further variables that a provider reads and that are set."""
        names = (*provider.variables, TYPED_CALLS)
        return {n: self.variables[n] for n in names if self.variables.get(n)}

    def role(self, role: LLMRole) -> RoleChoice:
        """Return the choice for a role."""
        names = (f"{role.name}_LLM_PROVIDER", f"{role.name}_LLM_MODEL")
        return RoleChoice(*(self.variables.get(name, "") for name in names))


def is_on(value: str) -> bool:
    """Return whether a switch with this value is on; empty if it is not set."""
    return value.strip().lower() not in _OFF


def choices() -> tuple[str, ...]:
    """Return the variables that choose models and endpoints; none holds a key."""
    providers = load_model_configs().providers.values()
    return (
        *(f"{role.name}_LLM_{what}" for role in LLMRole for what in ("PROVIDER", "MODEL")),
        *(info.model_variable for info in providers),
        *(info.base_url_variable for info in providers),
        *(name for info in providers for name in info.variables),
        TYPED_CALLS,
    )


def read_variables() -> dict[str, str]:
    """Return the process environment over the nearest `.env`; empty values count as not set.

    Raises:
        ConfigError: `.env` cannot be read as UTF-8 text, or a line of it is no setting.
    """
    path = find_dotenv(usecwd=True)
    try:
        text = Path(path).read_text(encoding="utf-8-sig") if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f".env cannot be read as UTF-8 text ({type(error).__name__})") from error
    for entry in parse_stream(StringIO(text)):
        if entry.error:
            raise ConfigError(
                f"{os.path.relpath(path)} line {entry.original.line} is not NAME=VALUE; correct it "
                "or begin it with #"
            )
    merged = {**dotenv_values(stream=StringIO(text)), **os.environ}
    return {name: value for name, value in merged.items() if value}


def set_by_process(names: Iterable[str]) -> dict[str, str]:
    """Return those variables that the process sets, and not `.env`; no address with a password."""
    values = {name: os.environ.get(name, "") for name in names}
    return {name: value for name, value in values.items() if value and "@" not in value}


def origin_of(name: str) -> str:
    """Return where a variable is set, for a message: "in the environment", or in which file."""
    path = "" if os.environ.get(name) else env_file()
    return f"in {path}" if path else "in the environment"


def env_file() -> str:
    """Return the path of the `.env` that is read, from here; empty without one."""
    path = find_dotenv(usecwd=True)
    return os.path.relpath(path) if path else ""


def check_base_url(url: str, name: str) -> None:
    """Refuse an address that is not the base URL of an endpoint.

    Args:
        url: Of an endpoint; empty if none is set.
        name: The variable or flag that set it, for the message.

    Raises:
        ConfigError: The URL has no scheme or no host, holds a password, or goes on beyond the base.
    """
    shown = _USER.sub("//***@", url)
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname)
        is_one = is_one and parts.port != 0  # the port is read, and checked, only here
    except ValueError:
        is_one = False
    if url and not is_one:
        raise ConfigError(f"{name} {shown} must begin with http:// or https:// and a host")
    if shown != url:
        raise ConfigError(f"{name} {shown} must hold no password; a key goes into its own variable")
    if urlsplit(url).path.rstrip("/").endswith("/chat/completions"):
        raise ConfigError(f"{name} {url} must end before /chat/completions, mostly in /v1")


def parse_environment(variables: Mapping[str, str]) -> Environment:
    """Read the settings of mdagents_llm from `variables`.

    Raises:
        ConfigError: The address of an endpoint is not a URL.
    """
    for info in load_model_configs().providers.values():
        check_base_url(variables.get(info.base_url_variable, ""), info.base_url_variable)
    return Environment(
        variables=variables,
        cache_dir=Path(
            variables.get("MDAGENTS_CACHE_DIR")
            or user_cache_path("mdagents", appauthor=False, opinion=False)
        ),
    )
