"""Downloads pinned files from the Hugging Face Hub and GitHub and verifies their checksums."""

from __future__ import annotations

import hashlib
import os
import re
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

    A file without a published SHA-256 is compared with the checksum that the Hub reports for the
    pinned commit: a SHA-256 for a large file, Git's SHA-1 for a small one.

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
    if file.host is Host.GITHUB:
        path, expected = _from_github(file, folder), file.sha256
    else:
        path, reported = _from_hub(file, folder)
        expected = file.sha256 or reported
    kind = "SHA-256" if len(expected) == _SHA256_DIGITS else "Git checksum"
    got = sha256_of(path) if kind == "SHA-256" else _git_checksum_of(path)
    if got != expected:
        path.unlink()  # or a download that is resumed would find it again
        raise ConfigError(
            f"{kind} of {file.repo_id}/{file.path_in_repo} is wrong: "
            f"expected {expected}, got {got}; nothing was changed"
        )
    return path


_SHA256_DIGITS = 64
_CHECKSUM = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def _git_checksum_of(path: Path) -> str:
    """Return the SHA-1 by which Git names the content of a file."""
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()


def _from_hub(file: PinnedFile, folder: Path) -> tuple[Path, str]:
    """Return the path of a downloaded file, and the checksum that the Hub reports for it."""
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
        about = get_hf_file_metadata(url, token=False)
        _check_room(file, about.size, folder)
        reported = about.etag or ""
        is_pinned = about.commit_hash == file.revision and _CHECKSUM.fullmatch(reported)
        if not file.sha256 and not is_pinned:
            raise ConfigError(
                f"{constants.ENDPOINT} reports no checksum of {file.path_in_repo} at the commit "
                f"{file.revision}: set HF_ENDPOINT to a mirror that does, or {_BY_HAND}"
            )
        path = hf_hub_download(
            file.repo_id,
            file.path_in_repo,
            repo_type="dataset",
            revision=file.revision,
            local_dir=folder,
            cache_dir=folder / ".cache",  # do not touch the user's own cache
            token=False,
        )
        return Path(path), reported
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
