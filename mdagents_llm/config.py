"""Settings that the model layer reads from the environment: API keys, endpoints, models by role.

`model_configs.yaml` defines the variables. `.env` is searched for upward from the working
directory; process environment variables take precedence over the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from io import StringIO
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from urllib.parse import urlsplit

from dotenv import find_dotenv
from dotenv.parser import parse_stream
from dotenv.variables import Variable, parse_variables
from platformdirs import user_cache_path

from mdagents_llm.errors import NOWHERE, ConfigError
from mdagents_llm.files.home import of_home
from mdagents_llm.model_configs import ProviderInfo, load_model_configs
from mdagents_llm.terminal.did_you_mean import is_one_slip

TYPED_CALLS = "LLM_TYPED_CALLS"
"""Variable that routes calls through the typed methods of the SDKs, for tools that wrap these
methods; it applies to all providers whose SDK has them."""
_ADDRESSES = {"API_BASE", "API_BASE_URL", "API_URL", "BASE_URL"}
"""Endings of the variables that other programs read for a base URL: `OPENAI_API_BASE` of older
SDKs and LiteLLM, `ANTHROPIC_API_URL` of LangChain."""
_BUILT_IN = {"gemini": "https://generativelanguage.googleapis.com"}
"""Wire protocol -> address that its SDK calls by default, where no base URL is listed."""
_OFF = ("", "0", "false", "no", "off")
_LIKE_IPV4 = re.compile(r"\d+(\.\d+){3}")
_LONGEST_LABEL = 63  # characters
_USER = re.compile(r"(//|^)[^/]*@")  # user name and password in a URL


class LLMRole(StrEnum):
    """Role of a model; each role can have its own provider and model."""

    MAS = "mas"
    SUMMARIZER = "summarizer"
    BUFFER_AGENT = "buffer_agent"


@dataclass(frozen=True, slots=True)
class RoleChoice:
    """Provider and model that the environment sets for one role; empty fields are unset."""

    provider: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class Environment:
    """API keys, endpoints and model choices. Never printed, never written to a file."""

    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Name -> value of the variables that are set."""
    cache_dir: Path | None = Path()
    """Folder of the embedded model's weights; None: the user has neither set one nor a home."""

    @property
    def caches(self) -> Path:
        """Folder of the embedded model's weights, for a caller that needs it.

        Raises:
            ConfigError: There is none.
        """
        if self.cache_dir is None:
            raise ConfigError(
                "this user has no home folder for the embedded model; set MDAGENTS_CACHE_DIR to a "
                "folder"
            )
        return self.cache_dir

    def key_name(self, provider: ProviderInfo) -> str:
        """Return the variable that holds the key for a provider; empty if none is set."""
        return next((n for n in provider.keys if self.variables.get(n, "").strip()), "")

    def key(self, provider: ProviderInfo) -> str | None:
        """Return the API key for a provider; None if none is set."""
        name = self.key_name(provider)
        return self.variables[name].strip() if name else None

    def may_call(self, provider: ProviderInfo) -> bool:
        """Return whether a provider has an API key or an alternative to it."""
        instead = [self.variables.get(name, "") for name in provider.instead_of_key]
        return bool(self.key_name(provider)) or (
            bool(instead) and all(is_on(value) for value in instead)
        )

    def base_url(self, provider: ProviderInfo) -> str:
        """Return the base URL that the user set for a provider; empty for the default one.

        Raises:
            ConfigError: It is not valid.
        """
        url = self.variables.get(provider.base_url_variable, "")
        check_base_url(url, provider.base_url_variable)
        return url

    def unread_base_url(self, provider: ProviderInfo) -> str:
        """Return the variable by which the user has named another endpoint in vain; empty if none.

        It is a variable of another program (`OPENAI_API_BASE`) or misspelled (`OPENAI_BASE_URl`).
        No question leaves the user's servers by mistake where a provider needs no key or has no
        address by default.
        """
        read = provider.base_url_variable
        own = _place_of(provider.base_url or _BUILT_IN.get(str(provider.wire), ""))
        if not (read and own and provider.needs_key) or self.base_url(provider):
            return ""
        starts = {key.upper().removesuffix("API_KEY") for key in provider.keys}
        for name, url in self.variables.items():
            given = name.upper()
            rests = {given.removeprefix(start) for start in starts if given.startswith(start)}
            is_meant = rests & _ADDRESSES or given == read or is_one_slip(given, read)
            if rests and is_meant and _place_of(url) != own:
                return name
        return ""

    def model(self, provider: ProviderInfo) -> str:
        """Return the default model of a provider; empty if it has none."""
        return self.variables.get(provider.model_variable, "") or provider.default_model

    def settings(self, provider: ProviderInfo) -> dict[str, str]:
        """Return the additional variables that a provider reads and that are set."""
        names = (*provider.variables, TYPED_CALLS)
        return {n: self.variables[n] for n in names if self.variables.get(n)}

    def role(self, role: LLMRole) -> RoleChoice:
        """Return the provider and model that the environment sets for a role."""
        names = (f"{role.name}_LLM_PROVIDER", f"{role.name}_LLM_MODEL")
        return RoleChoice(*(self.variables.get(name, "") for name in names))


def is_on(value: str) -> bool:
    """Return whether a switch with this value is on; an empty value means unset."""
    return value.strip().lower() not in _OFF


def choices() -> tuple[str, ...]:
    """Return the names of the variables that choose models and endpoints; none holds a key."""
    providers = load_model_configs().providers.values()
    return (
        *(f"{role.name}_LLM_{what}" for role in LLMRole for what in ("PROVIDER", "MODEL")),
        *(info.model_variable for info in providers),
        *(info.base_url_variable for info in providers),
        *(name for info in providers for name in info.variables),
        TYPED_CALLS,
    )


def read_variables() -> dict[str, str]:
    """Return the nearest `.env` overlaid by the process environment; empty values are unset.

    A `.env` that is a pipe, as of a password manager, is read once.

    Raises:
        ConfigError: `.env` cannot be read, is not UTF-8 text, has a line that is not NAME=VALUE, or
            sets a variable of this program to a value that refers to an undefined one.
    """
    path = _env_path()
    try:
        text = _text_of(path) if path else ""
    except PermissionError as error:
        raise ConfigError(
            f"{os.path.relpath(path)} cannot be read: permission denied; run as the user who owns "
            "it (in a container: --user), or let this user read it"
        ) from error
    except OSError as error:
        raise ConfigError(f"{os.path.relpath(path)} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{os.path.relpath(path)} is not UTF-8 text; save it as UTF-8") from error
    values: dict[str, str] = {}
    undefined: dict[str, tuple[int, str]] = {}
    """Variable -> line in which it refers to another that is not set, and the name of that."""
    for entry in parse_stream(StringIO(text)):
        line = entry.original.line
        if entry.error:
            raise ConfigError(
                f"{os.path.relpath(path)} line {line} is not NAME=VALUE; correct it or begin it "
                "with #"
            )
        if entry.key is None:  # a comment
            continue
        known, parts = {**os.environ, **values}, list(parse_variables(entry.value or ""))
        values[entry.key] = "".join(part.resolve(known) for part in parts)
        undefined.pop(entry.key, None)
        for part in parts:
            if isinstance(part, Variable) and part.default is None and not known.get(part.name):
                undefined[entry.key] = line, part.name
    for name, (line, lacking) in undefined.items():
        if name not in os.environ and _is_ours(name):
            raise ConfigError(
                f"{os.path.relpath(path)} line {line}: {name} refers to ${{{lacking}}}, which is "
                f"not set; set it, or write ${{{lacking}:-}} for no text"
            )
    merged = {**values, **os.environ}
    return {name: value for name, value in merged.items() if value}


def _env_path() -> str:
    """Return the path of the nearest `.env`; empty if there is none."""
    try:
        return find_dotenv(usecwd=True)
    except FileNotFoundError:
        raise ConfigError(NOWHERE) from None


def _text_of(path: str) -> str:
    return _text_of_pipe(path) if Path(path).is_fifo() else Path(path).read_text("utf-8-sig")


@cache
def _text_of_pipe(path: str) -> str:
    """Return what a pipe holds; a second reader would wait forever, or find nothing."""
    return Path(path).read_text("utf-8-sig")


def _is_ours(name: str) -> bool:
    """Return whether a variable sets a key, a model, an endpoint or a flag."""
    return name.startswith("MDAGENTS_") or name in {*choices(), *load_model_configs().key_names()}


def set_by_process(names: Iterable[str]) -> dict[str, str]:
    """Return the variables set by the process, not by `.env`; URLs with a password are left out."""
    values = {name: os.environ.get(name, "") for name in names}
    return {name: value for name, value in values.items() if value and "@" not in value}


def origin_of(name: str) -> str:
    """Return where a variable is set, for a message: "in the environment" or "in FILE"."""
    path = "" if os.environ.get(name) else env_file()
    return f"in {path}" if path else "in the environment"


def env_file() -> str:
    """Return the relative path of the `.env` file in use; empty if there is no such file."""
    path = _env_path()
    return os.path.relpath(path) if path else ""


def check_base_url(url: str, name: str) -> None:
    """Check that a URL is the base URL of an endpoint.

    Args:
        url: URL of the endpoint; empty if not set.
        name: Variable or flag that set it, for the message.

    Raises:
        ConfigError: The URL has no scheme or no host, contains a password, a query or a line
            break, begins or ends with a space, or extends beyond the base.
    """
    if not url.isprintable() or url != url.strip():
        raise ConfigError(
            f"{name} contains a line break or an invisible character, or begins or ends with a "
            "space; type it again"
        )
    if set(url) & set("?#"):  # not shown: it may hold a key
        raise ConfigError(
            f"{name} must hold no query and no fragment (? or #); leave it out, and put a key into "
            "its own variable"
        )
    shown = _USER.sub(r"\1***@", url)
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname)
        is_one = is_one and parts.port != 0  # reading the port also validates it
    except ValueError:
        is_one = False
    if url and not is_one:
        raise ConfigError(f"{name} {shown} must begin with http:// or https:// and a host")
    if url and not _is_host(parts.hostname or ""):
        raise ConfigError(
            f"{name} {shown}: '{parts.hostname}' is not a valid host name or IP address"
        )
    if shown != url:
        raise ConfigError(
            f"{name} {shown} must not contain a password; put the key into its own variable"
        )
    if urlsplit(url).path.rstrip("/").endswith("/chat/completions"):
        raise ConfigError(f"{name} {url} must not end in /chat/completions; it usually ends in /v1")


def _is_host(host: str) -> bool:
    """Return whether a text can be the name or the address of a host."""
    try:
        if ":" in host:
            IPv6Address(host)
        elif _LIKE_IPV4.fullmatch(host):
            IPv4Address(host)
        else:
            labels = host.removesuffix(".").split(".")
            return all(0 < len(label) <= _LONGEST_LABEL for label in labels) and not (
                set(host) & set(" %")
            )
    except ValueError:
        return False
    return True


def _place_of(url: str) -> str:
    """Return the host and port of a URL as written, without the port of https."""
    place = (url.partition("//")[2] or url).partition("/")[0]
    return place.lower().removesuffix(":443")


def parse_environment(variables: Mapping[str, str]) -> Environment:
    """Read the settings of mdagents_llm from `variables`.

    Raises:
        ConfigError: There is no home folder for a `~`.
    """
    return Environment(variables, _cache_dir(variables.get("MDAGENTS_CACHE_DIR", "")))


def _cache_dir(said: str) -> Path | None:
    if said:
        return Path(of_home(said))
    try:
        return user_cache_path("mdagents", appauthor=False, opinion=False)
    except RuntimeError:  # no HOME, and no entry of the user in the password file
        return None
