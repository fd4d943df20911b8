"""A small Hub on the loopback interface, and a folder of its own to download into.

The program runs in a process of its own: huggingface_hub reads HF_ENDPOINT when it is imported.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import REPOSITORY
from tests.support.environment import bare_environment

REPO = "someone/some-questions"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
MEBIBYTE = 1 << 20

# Runs the script's main() with the catalogue of a test instead of the real one: the real files are
# not ours to ship, and their SHA-256 cannot be met by anything else.
DRIVER = """
import datetime, json, sys
from mdagents.datasets import conversion as data_conversion, picture_conversion
from mdagents.datasets.sources import About, Host, PinnedFile, Source
from mdagents.data_tools.download import main

def source(about, files, convert, pictures=None, **rest):
    pinned = tuple(PinnedFile(**file | {"host": Host(file["host"])}) for file in files)
    function = convert and getattr(data_conversion, convert)
    with_pictures = pictures and getattr(picture_conversion, pictures)
    return Source(
        files=pinned, about=About(**about), convert=function, pictures=with_pictures, **rest
    )

catalogue = {"quiz": tuple(source(**fields) for fields in json.loads(sys.argv[1]))}
clock = lambda: datetime.datetime(2026, 11, 21, 8, 30, tzinfo=datetime.UTC)
sys.exit(main(sys.argv[2:], catalogue=catalogue, now=clock))
"""


def jsonl(count: int, *, padding: int = 0) -> bytes:
    """Questions in the upstream form, each longer by `padding` characters."""
    return b"".join(
        json.dumps(
            {
                "question": f"Question {number}?",
                "answer": "No",
                "options": {"A": "Yes", "B": "No"},
                "answer_idx": "B",
            }
            | ({"explanation": "x" * padding} if padding else {})
        ).encode()
        + b"\n"
        for number in range(count)
    )


def pinned(content: bytes, target: str, **other: object) -> dict[str, object]:
    return {
        "repo_id": REPO,
        "revision": COMMIT,
        "path_in_repo": f"files/{target}",
        "sha256": hashlib.sha256(content).hexdigest(),
        "host": "huggingface",
    } | other


ABOUT = {"licence": "CC0", "citation": "Someone, Some Questions.", "note": "made up"}


def source(content: bytes, *, target: str = "test.jsonl", **other: object) -> dict[str, object]:
    """A file that is kept as it is published."""
    return {
        "target": target,
        "records": content.count(b"\n"),
        "files": [pinned(content, target)],
        "about": ABOUT,
        "convert": None,
    } | other


@dataclass
class Hub:
    """What the local Hub serves and how it misbehaves; and what it was asked."""

    files: dict[str, bytes] = field(default_factory=dict)
    """Path inside the repository -> content."""
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    """Method, path and headers (names in lower case) of every request."""
    status: int = 200
    """Answer to every request, if it is an error."""
    cut_after: int | None = None
    """Close the connection after so many bytes of the first GET."""
    claimed_size: int | None = None
    """Content-Length of a HEAD, if it is not the truth."""
    large_files: bool = False
    """Send the client on to a storage host for the content, and offer Xet, as for LFS files."""
    is_a_hub: bool = True
    """Whether answers carry the headers by which the client knows a Hub."""
    reported: str | None = None
    """Checksum in the headers, if it is not that of the content."""
    only: frozenset[str] | None = None
    """Names of the only files that are served; None for all."""
    asked: threading.Event = field(default_factory=threading.Event)
    """Set when a GET has arrived."""
    release: threading.Event | None = None
    """A GET is not answered before this is set."""
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def serve(self, content: bytes, *, target: str = "test.jsonl") -> bytes:
        self.files[f"files/{target}"] = content
        return content

    def ranges(self) -> list[str | None]:
        return [headers.get("range") for method, _, headers in self.requests if method == "GET"]


@dataclass
class Workspace:
    """Starts the script with folders of its own and an environment that has nothing else in it."""

    folder: Path
    endpoint: str

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def environment(self) -> dict[str, str]:
        return bare_environment(
            HOME=str(self.home),
            HF_HOME=str(self.home / "huggingface"),
            HF_ENDPOINT=self.endpoint,
            GITHUB_RAW_ENDPOINT=f"{self.endpoint}/github/",
            HF_TOKEN="hf_must_stay_at_home",
        )

    def command(self, sources: Sequence[dict[str, object]], *flags: str) -> list[str]:
        driver = [sys.executable, "-W", "error", "-c", DRIVER, json.dumps(sources)]
        return [*driver, "quiz", "--data-dir", str(self.data), *flags]

    def run(
        self, sources: Sequence[dict[str, object]], *flags: str
    ) -> subprocess.CompletedProcess[str]:
        return self.execute(self.command(sources, *flags))

    def run_real(self, name: str, *flags: str) -> subprocess.CompletedProcess[str]:
        script = [sys.executable, "-W", "error", "-m", "mdagents", "data", "download", name]
        return self.execute([*script, "--data-dir", str(self.data), *flags])

    def execute(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=REPOSITORY,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def listing(self) -> list[str]:
        """Everything under the data folder, hidden files too."""
        return sorted(str(path.relative_to(self.data)) for path in self.data.rglob("*"))


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that a refused command must print."""
    assert done.returncode == 2, done
    assert re.fullmatch(r"error: [^\n]+\n", done.stderr), done.stderr
    return done.stderr
