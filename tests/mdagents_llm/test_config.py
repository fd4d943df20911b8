"""Settings from the environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import pytest

from mdagents_llm.config import origin_of, parse_environment, read_variables
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.home import of_home
from mdagents_llm.llm_registry import ModelChooser
from mdagents_llm.model_configs import load_model_configs
from tests.conftest import REPOSITORY
from tests.support.environment import WITHOUT_RIGHTS, bare_environment

linux = pytest.mark.skipif(sys.platform != "linux", reason="the names of Linux")


def test_the_weights_are_where_the_user_says() -> None:
    assert parse_environment({"MDAGENTS_CACHE_DIR": "/mine"}).cache_dir == Path("/mine")


@linux
@pytest.mark.parametrize(
    ("cache_home", "expected"), [("", "/h/.cache/mdagents"), ("/x", "/x/mdagents")]
)
def test_the_weights_stay_where_earlier_versions_put_them(
    cache_home: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/h")
    monkeypatch.setenv("XDG_CACHE_HOME", cache_home)
    assert parse_environment({}).cache_dir == Path(expected)


@linux
def test_a_user_without_a_home_needs_none_for_models_behind_an_api(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Other programs did not start in a container with any user id (psf/black issue 2813)."""

    def unknown(uid: int) -> NoReturn:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.setattr("pwd.getpwuid", unknown)
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    environment = parse_environment({})
    with pytest.raises(ConfigError, match="set MDAGENTS_CACHE_DIR to a folder"):
        _ = environment.caches
    with pytest.raises(ConfigError, match="~/x: there is no home folder; write the whole path"):
        of_home("~/x")
    assert parse_environment({"MDAGENTS_CACHE_DIR": "/mine"}).caches == Path("/mine")


@linux
@pytest.mark.process
def test_a_file_of_keys_that_may_not_be_read_says_so(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("OPENAI_API_KEY=x\n")
    file.chmod(0o000)
    reads = "from mdagents_llm.config import read_variables; read_variables()"
    done = subprocess.run(
        [*WITHOUT_RIGHTS, sys.executable, "-c", reads],
        cwd=tmp_path,
        env=bare_environment(PYTHONPATH=str(REPOSITORY)),
        capture_output=True,
        text=True,
        check=False,
    )
    message = done.stderr.splitlines()[-1]
    assert ".env cannot be read: permission denied; run as the user who owns it" in message


def test_a_file_of_keys_that_is_no_text_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(".env").write_bytes(b"OPENAI_API_KEY=\xff\n")
    with pytest.raises(ConfigError, match=r"^\.env is not UTF-8 text; save it as UTF-8$"):
        read_variables()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with a name")
def test_a_file_of_keys_that_is_a_pipe_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 1Password gives a `.env` as a pipe (python-dotenv 586, just 3246).
    monkeypatch.chdir(tmp_path)
    os.mkfifo(".env")
    writer = threading.Thread(target=Path(".env").write_text, args=("OPENAI_API_KEY=piped\n",))
    writer.start()
    read = [read_variables()["OPENAI_API_KEY"] for _ in range(5)]
    writer.join()
    assert read == ["piped"] * 5
    assert origin_of("OPENAI_API_KEY") == "in .env"


def base_url(variables: Mapping[str, str]) -> str:
    return parse_environment(variables).base_url(load_model_configs().providers["openai"])


@pytest.mark.parametrize(
    ("url", "said"),
    [
        # Public reports: openbikesensor/portal 301, favicon-getter 10, and python-genai 578.
        ("http://models..ward.example/v1", "'models..ward.example' is not a valid host name"),
        ("http://.example/v1", "is not a valid host name"),
        (f"http://{'a' * 64}.example/v1", "is not a valid host name"),
        ("http://ward models:8000/v1", "'ward models' is not a valid host name"),
        ("http://ward%20models/v1", "is not a valid host name"),
        ("http://10.0.0.256:8000/v1", "'10.0.0.256' is not a valid host"),
        ("http://ward.example/v1\n", "contains a line break"),
        ("http://ward\tmodels/v1", "contains a line break"),
        (" http://ward.example/v1", "begins or ends with a space"),
        ("http://ward.example/v1 ", "begins or ends with a space"),
        ("http://ward.example/v1?key=pw", "must hold no query"),
        ("http://ward.example/v1#pw", "must hold no query and no fragment"),
        ("http://u:p?w@ward.example/v1", "must hold no query"),
        ("u:pw@ward.example/v1", "***@ward.example/v1 must begin with http"),
    ],
)
def test_a_base_url_without_a_host_is_named_in_one_line(url: str, said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)) as caught:
        base_url({"OPENAI_BASE_URL": url})
    assert str(caught.value).startswith("OPENAI_BASE_URL ")
    assert "\n" not in str(caught.value)
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    "host",
    [
        "model_server",
        "ward.example.",
        "10.0.0.25",
        "[::1]",
        "[fe80::1%eth0]",
        "klinik-münchen.de",
        "מרפאה1.example",  # in IDNA 2008, but not in 2003
    ],
)
def test_a_host_may_have_any_name(host: str) -> None:
    url = f"http://{host}:8000/v1"
    assert base_url({"OPENAI_BASE_URL": url}) == url


def test_a_base_url_of_another_provider_stops_nothing() -> None:
    # AutoGPT#838: OPENAI_API_BASE=your-base-url-for-azure, left from a template, with
    # USE_AZURE=False.
    variables = {
        "AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com/openai?api-version=1",
        "VLLM_BASE_URL": "your-base-url",
        "OPENAI_BASE_URL": "https://ward.example/v1",
        "OPENAI_API_KEY": "k",
    }
    assert base_url(variables) == "https://ward.example/v1"
    configs = load_model_configs()
    chooser = ModelChooser(parse_environment(variables), configs)
    assert chooser.parse("auto").provider == "openai"
    for of in ("azure/gpt", "vllm/m"):
        with pytest.raises(ConfigError, match=r"^(AZURE_OPENAI_ENDPOINT|VLLM_BASE_URL) "):
            chooser.parse(of)


@linux
def test_a_working_directory_that_is_gone_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Public reports: gigantum-cli 39 and pip 4255.
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ConfigError, match=r"^the working directory no longer exists; "):
        read_variables()
