"""Downloads pinned files from the Hugging Face Hub and GitHub and verifies their SHA-256."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from mdagents.datasets.sources import Host, PinnedFile
from mdagents_llm.errors import ConfigError
from mdagents_llm.extras import needs_extra

GITHUB_ENDPOINT = "https://raw.githubusercontent.com"
"""Default endpoint for files on GitHub; overridden by `GITHUB_RAW_ENDPOINT`."""

_SILENCE = 30.0  # read timeout in seconds


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(file: PinnedFile, folder: Path) -> Path:
    """Download one file and verify its SHA-256.

    Args:
        file: File to download, from `HF_ENDPOINT` or `GITHUB_RAW_ENDPOINT` if set, else from
            huggingface.co or raw.githubusercontent.com.
        folder: Folder to download to, used for downloads only.

    Returns:
        Path of the file below `folder`.

    Raises:
        ConfigError: The host cannot be reached, refuses the request, or sends an incomplete or
            different file, or the disk is full.
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
    # The library reads these on import. Xet is a separate storage service that HF_ENDPOINT does not
    # redirect. Telemetry would request a file that we do not need. Below level "error", the library
    # reports interruptions from which it resumes; failures are reported here.
    os.environ.setdefault("HF_HUB_DISABLE_XET", "1")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")
    import httpx2

    with needs_extra("data", "a download"):
        from huggingface_hub import constants, get_hf_file_metadata, hf_hub_download, hf_hub_url
        from huggingface_hub.errors import HfHubHTTPError

    url = hf_hub_url(file.repo_id, file.path_in_repo, repo_type="dataset", revision=file.revision)
    try:
        # Metadata first: without a network, hf_hub_download would retry for half a minute.
        # The files are public: send no token, least of all to another HF_ENDPOINT.
        _check_room(file, get_hf_file_metadata(url, token=False).size, folder)
        return Path(
            hf_hub_download(
                file.repo_id,
                file.path_in_repo,
                repo_type="dataset",
                revision=file.revision,
                local_dir=folder,
                cache_dir=folder / ".cache",  # do not touch the user's own cache
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
            raise  # raised by the operating system, not by the library
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
