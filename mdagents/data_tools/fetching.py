"""Fetches pinned files from the Hugging Face Hub and GitHub and checks their SHA-256."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from mdagents.data_tools.sources import Host, PinnedFile
from mdagents_llm.errors import ConfigError
from mdagents_llm.extras import needs_extra

GITHUB_ENDPOINT = "https://raw.githubusercontent.com"
"""Where files of repositories on GitHub are, unless `GITHUB_RAW_ENDPOINT` is set."""

_SILENCE = 30.0  # seconds without a byte after which a download has failed


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(file: PinnedFile, folder: Path) -> Path:
    """Download one file and check it.

    Args:
        file: What to download: from `HF_ENDPOINT` or `GITHUB_RAW_ENDPOINT` if these are set, else
            from huggingface.co and raw.githubusercontent.com.
        folder: A folder to download into, which holds only downloads.

    Returns:
        Path of the file below `folder`.

    Raises:
        ConfigError: The host cannot be reached, refuses, or sends an incomplete or another file, or
            the disk has no room for it.
        OSError: The file cannot be written.
    """
    from_host = _from_github if file.host is Host.GITHUB else _from_hub
    path = from_host(file, folder)
    got = sha256_of(path)
    if got != file.sha256:
        raise ConfigError(
            f"SHA-256 of {file.repo_id}/{file.path_in_repo} is wrong: "
            f"expected {file.sha256}, got {got}; nothing was changed"
        )
    return path


def _from_hub(file: PinnedFile, folder: Path) -> Path:
    # The library reads these when it is imported. Xet is a storage service of its own, which
    # HF_ENDPOINT does not redirect; telemetry would ask the endpoint for a file that we don't need;
    # below "error" it reports a cut that it resumes from, and failures are reported here.
    os.environ.setdefault("HF_HUB_DISABLE_XET", "1")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")
    import httpx2

    with needs_extra("data", "a download"):
        from huggingface_hub import constants, get_hf_file_metadata, hf_hub_download, hf_hub_url
        from huggingface_hub.errors import HfHubHTTPError

    url = hf_hub_url(file.repo_id, file.path_in_repo, repo_type="dataset", revision=file.revision)
    try:
        # Asked for first because hf_hub_download tries for half a minute when there is no network.
        # The files are public: no token is sent, least of all to another HF_ENDPOINT.
        _check_room(file, get_hf_file_metadata(url, token=False).size, folder)
        return Path(
            hf_hub_download(
                file.repo_id,
                file.path_in_repo,
                repo_type="dataset",
                revision=file.revision,
                local_dir=folder,
                cache_dir=folder / ".cache",  # neither read nor fill the user's own cache
                token=False,
            )
        )
    except HfHubHTTPError as error:
        raise _refusal(
            constants.ENDPOINT, error.response.status_code, url, "HF_ENDPOINT"
        ) from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise _out_of_reach(constants.ENDPOINT, error, "HF_ENDPOINT") from error
    except OSError as error:
        if error.errno is not None:
            raise  # the disk's, not the library's
        raise ConfigError(
            f"cannot download {file.path_in_repo} from {constants.ENDPOINT}: {_one_line(error)}"
        ) from error


def _from_github(file: PinnedFile, folder: Path) -> Path:
    import httpx2

    endpoint = os.environ.get("GITHUB_RAW_ENDPOINT", GITHUB_ENDPOINT).rstrip("/")
    url = f"{endpoint}/{file.repo_id}/{file.revision}/{file.path_in_repo}"
    path = folder / file.path_in_repo
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with httpx2.stream("GET", url, follow_redirects=True, timeout=_SILENCE) as response:
            if response.status_code != httpx2.codes.OK:
                raise _refusal(endpoint, response.status_code, url, "GITHUB_RAW_ENDPOINT")
            size = response.headers.get("Content-Length")
            _check_room(file, int(size) if size else None, folder)
            with path.open("wb") as content:
                for chunk in response.iter_bytes():
                    content.write(chunk)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise _out_of_reach(endpoint, error, "GITHUB_RAW_ENDPOINT") from error
    return path


def _check_room(file: PinnedFile, size: int | None, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if size is not None and size > free:
        raise ConfigError(
            f"disk full: {Path(file.path_in_repo).name} needs {size / 1e6:.1f} MB and "
            f"{folder.parent} has {free / 1e6:.1f} MB free"
        )


_BY_HAND = "give a file that you have with --from FILE"


def _refusal(endpoint: str, status: int, url: str, variable: str) -> ConfigError:
    return ConfigError(
        f"{endpoint} answered {status} for {url}: try again later, check {variable}, or {_BY_HAND}"
    )


def _out_of_reach(endpoint: str, error: Exception, variable: str) -> ConfigError:
    return ConfigError(
        f"cannot download from {endpoint} ({_one_line(error)}): check the network, set {variable} "
        f"to a mirror that you can reach, or {_BY_HAND}"
    )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
