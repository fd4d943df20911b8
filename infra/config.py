"""The settings that infra takes from the environment: keys, endpoints, and the model of each role.

This is the one module of infra that knows names of environment variables. `.env` is looked for
upwards from the working directory; a variable of the process wins over the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from io import StringIO
from pathlib import Path
from urllib.parse import urlsplit

from dotenv import dotenv_values, find_dotenv
from dotenv.parser import parse_stream
from platformdirs import user_cache_path

from infra.errors import ConfigError


class Provider(StrEnum):
    """Where models come from."""

    OPENAI = "openai"
    """OpenAI, or any OpenAI-compatible endpoint by a base URL."""
    GOOGLE = "google"
    GROQ = "groq"
    LOCAL = "local"
    """The embedded model, or any GGUF file."""


class LLMRole(StrEnum):
    """The roles of models; each can have its own provider and model."""

    MAS = "mas"
    SUMMARIZER = "summarizer"
    BUFFER_AGENT = "buffer_agent"


KEY_NAMES: Mapping[Provider, tuple[str, ...]] = {
    Provider.OPENAI: ("OPENAI_API_KEY", "openai_api_key"),
    Provider.GOOGLE: ("GOOGLE_API_KEY", "GEMINI_API_KEY", "genai_api_key"),
    Provider.GROQ: ("GROQ_API_KEY",),
}
"""Variables that may hold a key; the first that is set is taken."""

_MODEL_NAMES = {
    Provider.OPENAI: "OPENAI_MODEL",
    Provider.GOOGLE: "GOOGLE_MODEL_NAME",
    Provider.GROQ: "GROQ_MODEL",
}
_BASE_URL_NAMES = {
    Provider.OPENAI: "OPENAI_BASE_URL",
    Provider.GOOGLE: "GOOGLE_GEMINI_BASE_URL",
    Provider.GROQ: "GROQ_BASE_URL",
}

CHOICES = (
    *(f"{role.name}_LLM_{what}" for role in LLMRole for what in ("PROVIDER", "MODEL")),
    *_MODEL_NAMES.values(),
    *_BASE_URL_NAMES.values(),
)
"""Variables that choose models and endpoints; none holds a key."""


@dataclass(frozen=True, slots=True)
class RoleChoice:
    """The choice for one role in the environment; a field that is not set is empty."""

    provider: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class Environment:
    """Keys, endpoints and choices. Never printed, never written to a file."""

    keys: Mapping[Provider, str] = field(default_factory=dict, repr=False)
    key_names: Mapping[Provider, str] = field(default_factory=dict)
    """The variable that holds each key."""
    base_urls: Mapping[Provider, str] = field(default_factory=dict)
    models: Mapping[Provider, str] = field(default_factory=dict)
    roles: Mapping[LLMRole, RoleChoice] = field(default_factory=dict)
    cache_dir: Path = Path()
    """Folder of the embedded model's weights."""


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
    path = "" if os.environ.get(name) else find_dotenv(usecwd=True)
    return f"in {os.path.relpath(path)}" if path else "in the environment"


def check_base_url(url: str, name: str) -> None:
    """Refuse an address that is not the base URL of an endpoint.

    Args:
        url: Of an endpoint; empty if none is set.
        name: The variable or flag that set it, for the message.

    Raises:
        ConfigError: The URL has no scheme or no host, or goes on beyond the base.
    """
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname)
        is_one = is_one and parts.port != 0  # the port is read, and checked, only here
    except ValueError:
        is_one = False
    if url and not is_one:
        raise ConfigError(f"{name} {url} must begin with http:// or https:// and a host")
    if urlsplit(url).path.rstrip("/").endswith("/chat/completions"):
        raise ConfigError(f"{name} {url} must end before /chat/completions, mostly in /v1")


def parse_environment(variables: Mapping[str, str]) -> Environment:
    """Read the settings of infra from `variables`.

    Raises:
        ConfigError: The address of an endpoint is not a URL.
    """
    for name in _BASE_URL_NAMES.values():
        check_base_url(variables.get(name, ""), name)
    found = {
        provider: next((name for name in names if variables.get(name, "").strip()), "")
        for provider, names in KEY_NAMES.items()
    }
    key_names = {provider: name for provider, name in found.items() if name}
    return Environment(
        keys={provider: variables[name].strip() for provider, name in key_names.items()},
        key_names=key_names,
        base_urls=_present(_BASE_URL_NAMES, variables),
        models=_present(_MODEL_NAMES, variables),
        roles={
            role: RoleChoice(
                variables.get(f"{role.name}_LLM_PROVIDER", ""),
                variables.get(f"{role.name}_LLM_MODEL", ""),
            )
            for role in LLMRole
        },
        cache_dir=Path(
            variables.get("MDAGENTS_CACHE_DIR")
            or user_cache_path("mdagents", appauthor=False, opinion=False)
        ),
    )


def _present(names: Mapping[Provider, str], variables: Mapping[str, str]) -> dict[Provider, str]:
    return {provider: variables[name] for provider, name in names.items() if variables.get(name)}
