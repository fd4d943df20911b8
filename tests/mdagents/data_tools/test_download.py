"""`mdagents data download` as a user runs it, against a small Hub on the loopback interface.

The script runs in a process of its own: huggingface_hub reads HF_ENDPOINT when it is imported.
"""

from __future__ import annotations

import hashlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from infra.errors import ConfigError
from mdagents.data_tools.sources import BY_HAND
from mdagents.datasets.dataset import open_dataset
from tests.conftest import REPOSITORY

ROOT = REPOSITORY
REPO = "someone/some-questions"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
MEBIBYTE = 1 << 20

# Runs the script's main() with the catalogue of a test instead of the real one: the real files are
# not ours to ship, and their SHA-256 cannot be met by anything else.
DRIVER = """
import datetime, json, sys
from mdagents.data_tools import conversion as data_conversion
from mdagents.data_tools.sources import About, Host, PinnedFile, Source
from mdagents.data_tools.download import main

def source(about, files, convert, **rest):
    pinned = tuple(PinnedFile(**file | {"host": Host(file["host"])}) for file in files)
    function = convert and getattr(data_conversion, convert)
    return Source(files=pinned, about=About(**about), convert=function, **rest)

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


@pytest.fixture
def hub() -> Iterator[Hub]:
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            hub.asked.set()
            if hub.release is not None:
                hub.release.wait(timeout=30)
            self.answer(body=True)

        def answer(self, *, body: bool) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            hub.requests.append((self.command, self.path, headers))
            match = re.fullmatch(
                r"/(?:datasets/[^/]+/[^/]+/resolve|storage|github/[^/]+/[^/]+)/([^/]+)/(.+)",
                self.path,
            )
            content = hub.files.get(match[2]) if match else None
            if hub.status != 200 or match is None or content is None:
                self.send_response(hub.status if hub.status != 200 else 404)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if hub.large_files and not self.path.startswith("/storage/"):
                self.send_response(302)
                # "localhost" is another host than "127.0.0.1", as the Hub's storage is
                self.send_header(
                    "Location", f"http://localhost:{hub.port}/storage/{match[1]}/{match[2]}"
                )
                self.send_header("Content-Length", "0")
                self.send_header("X-Repo-Commit", match[1])
                self.send_header("X-Linked-ETag", f'"{hashlib.sha256(content).hexdigest()}"')
                self.send_header("X-Linked-Size", str(len(content)))
                self.send_header("X-Xet-Hash", "ab" * 32)
                self.send_header("X-Xet-Refresh-Route", "/api/xet-read-token")
                self.end_headers()
                return
            asked = re.fullmatch(r"bytes=(\d+)-", headers.get("range", ""))
            start = int(asked[1]) if asked else 0
            part = content[start:]
            self.send_response(206 if asked else 200)
            if asked:
                self.send_header(
                    "Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}"
                )
            claimed = None if body else hub.claimed_size
            self.send_header("Content-Length", str(len(part) if claimed is None else claimed))
            if hub.is_a_hub:
                self.send_header("ETag", f'"{hashlib.sha1(content).hexdigest()}"')
                self.send_header("X-Repo-Commit", match[1])
            self.end_headers()
            if body:
                if hub.cut_after is not None:
                    part, hub.cut_after = part[: hub.cut_after], None
                self.wfile.write(part)

        def log_message(self, format: str, *args: Any) -> None:
            pass  # the terminal belongs to pytest

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.port = server.server_port
    thread = threading.Thread(
        target=server.serve_forever, args=(0.01,)
    )  # seconds: how soon it stops
    thread.start()
    yield hub
    if hub.release is not None:
        hub.release.set()
    server.shutdown()
    thread.join()
    server.server_close()


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
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "HF_HOME": str(self.home / "huggingface"),
            "HF_ENDPOINT": self.endpoint,
            "GITHUB_RAW_ENDPOINT": f"{self.endpoint}/github/",
            "HF_TOKEN": "hf_must_stay_at_home",
        }

    def command(self, sources: Sequence[dict[str, object]], *flags: str) -> list[str]:
        driver = [sys.executable, "-W", "error", "-c", DRIVER, json.dumps(sources)]
        return [*driver, "quiz", "--data-dir", str(self.data), *flags]

    def run(
        self, sources: Sequence[dict[str, object]], *flags: str
    ) -> subprocess.CompletedProcess[str]:
        return self.execute(self.command(sources, *flags))

    def run_real(self, name: str, *flags: str) -> subprocess.CompletedProcess[str]:
        script = [sys.executable, "-W", "error", "-m", "mdagents.cli", "data", "download", name]
        return self.execute([*script, "--data-dir", str(self.data), *flags])

    def execute(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def listing(self) -> list[str]:
        """Everything under the data folder, hidden files too."""
        return sorted(str(path.relative_to(self.data)) for path in self.data.rglob("*"))


@pytest.fixture
def workspace(tmp_path: Path, hub: Hub) -> Workspace:
    (tmp_path / "home").mkdir()
    return Workspace(tmp_path, hub.url)


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that a refused command must print."""
    assert done.returncode == 2, done
    assert re.fullmatch(r"error: [^\n]+\n", done.stderr), done.stderr
    return done.stderr


def test_files_are_put_in_place_with_a_note_of_their_origin(hub: Hub, workspace: Workspace) -> None:
    test = hub.serve(jsonl(3))
    train = hub.serve(jsonl(5), target="train.jsonl")

    done = workspace.run([source(test), source(train, target="train.jsonl")])

    assert done.returncode == 0, done
    assert done.stderr == "", "no progress bar without a terminal"
    assert workspace.listing() == [
        "quiz",
        "quiz/SOURCE.json",
        "quiz/test.jsonl",
        "quiz/train.jsonl",
    ]
    assert (workspace.data / "quiz/test.jsonl").read_bytes() == test
    assert (workspace.data / "quiz/train.jsonl").read_bytes() == train
    note = json.loads((workspace.data / "quiz/SOURCE.json").read_text())
    assert note["schema_version"] == 3
    assert note["dataset"] == "quiz"
    assert note["files"]["test.jsonl"] == {
        "sha256": hashlib.sha256(test).hexdigest(),
        "bytes": len(test),
        "records": 3,
        "left_out": 0,
        "upstream": [
            {
                "host": "huggingface",
                "repo": REPO,
                "revision": COMMIT,
                "path": "files/test.jsonl",
                "sha256": hashlib.sha256(test).hexdigest(),
            }
        ],
        "verified_at": "2026-11-21T08:30:00Z",
        "licence": "CC0",
        "citation": "Someone, Some Questions.",
        "cop_from": None,
    }
    assert note["files"]["train.jsonl"]["records"] == 5
    assert done.stdout.splitlines()[-3:] == [
        "Licence: CC0",
        "Citation: Someone, Some Questions.",
        "Note: made up",
    ]


def test_only_the_pinned_files_are_asked_for_and_no_token_is_sent(
    hub: Hub, workspace: Workspace
) -> None:
    workspace.run([source(hub.serve(jsonl(3)))])

    assert hub.requests
    for _, path, headers in hub.requests:
        assert path == f"/datasets/{REPO}/resolve/{COMMIT}/files/test.jsonl"
        assert "authorization" not in headers
        assert "hf_must_stay_at_home" not in repr(headers)
    assert list(workspace.home.iterdir()) == []


def test_a_large_file_comes_from_the_storage_that_the_hub_names(
    hub: Hub, workspace: Workspace
) -> None:
    hub.large_files = True
    content = hub.serve(jsonl(3))

    done = workspace.run([source(content)])

    assert done.returncode == 0, done
    assert done.stderr == ""
    assert (workspace.data / "quiz/test.jsonl").read_bytes() == content
    paths = {path for _, path, _ in hub.requests}
    assert f"/storage/{COMMIT}/files/test.jsonl" in paths
    assert not any("xet" in path for path in paths)
    assert not any("authorization" in headers for _, _, headers in hub.requests)


def test_a_second_run_makes_no_request_and_changes_nothing(hub: Hub, workspace: Workspace) -> None:
    sources = [source(hub.serve(jsonl(3)))]
    workspace.run(sources)
    asked = len(hub.requests)
    before = {path: path.stat().st_mtime_ns for path in (workspace.data / "quiz").iterdir()}

    done = workspace.run(sources)

    assert done.returncode == 0, done
    assert "already there" in done.stdout
    assert "Licence: CC0" in done.stdout
    assert len(hub.requests) == asked > 0
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_file_that_was_copied_there_is_verified_and_noted(hub: Hub, workspace: Workspace) -> None:
    content = jsonl(3)
    (workspace.data / "quiz").mkdir(parents=True)
    (workspace.data / "quiz/test.jsonl").write_bytes(content)

    done = workspace.run([source(content)])

    assert done.returncode == 0, done
    assert hub.requests == []
    note = json.loads((workspace.data / "quiz/SOURCE.json").read_text())
    assert note["files"]["test.jsonl"]["upstream"][0]["revision"] == COMMIT


def test_the_real_medqa_is_pinned_and_another_file_is_refused(
    hub: Hub, workspace: Workspace
) -> None:
    content = jsonl(1273)
    hub.files["phrases_no_exclude_test.jsonl"] = content

    line = refusal(workspace.run_real("medqa"))

    assert re.search(r"expected [0-9a-f]{64}, got " + hashlib.sha256(content).hexdigest(), line)
    revision = r"/datasets/GBaker/MedQA-USMLE-4-options/resolve/[0-9a-f]{40}/.*_test\.jsonl"
    assert all(re.fullmatch(revision, path) for _, path, _ in hub.requests)
    assert workspace.listing() == []


def test_a_wrong_hash_keeps_the_file_that_is_there(hub: Hub, workspace: Workspace) -> None:
    hub.serve(jsonl(3))
    (workspace.data / "quiz").mkdir(parents=True)
    mine = workspace.data / "quiz/test.jsonl"
    mine.write_bytes(b"mine\n")

    line = refusal(workspace.run([source(jsonl(4))], "--force"))

    assert hashlib.sha256(jsonl(3)).hexdigest() in line
    assert hashlib.sha256(jsonl(4)).hexdigest() in line
    assert mine.read_bytes() == b"mine\n"
    assert workspace.listing() == ["quiz", "quiz/test.jsonl"]


def test_another_file_in_its_place_is_replaced_only_by_force(
    hub: Hub, workspace: Workspace
) -> None:
    content = hub.serve(jsonl(3))
    (workspace.data / "quiz").mkdir(parents=True)
    place = workspace.data / "quiz/test.jsonl"
    place.write_bytes(b"mine\n")

    line = refusal(workspace.run([source(content)]))

    assert "--force" in line
    assert hashlib.sha256(b"mine\n").hexdigest() in line
    assert hub.requests == []
    assert place.read_bytes() == b"mine\n"
    assert workspace.run([source(content)], "--force").returncode == 0
    assert place.read_bytes() == content


def test_a_cut_connection_is_resumed_where_it_was_cut(hub: Hub, workspace: Workspace) -> None:
    content = hub.serve(jsonl(12, padding=MEBIBYTE))
    hub.cut_after = 11 * MEBIBYTE

    done = workspace.run([source(content)])

    assert done.returncode == 0, done
    assert done.stderr == ""
    # The client writes in blocks of 10 MiB; what it had of the second block is asked for again.
    assert hub.ranges() == [None, f"bytes={10 * MEBIBYTE}-"]
    assert (workspace.data / "quiz/test.jsonl").read_bytes() == content


def test_a_cut_in_a_small_file_starts_it_again(hub: Hub, workspace: Workspace) -> None:
    content = hub.serve(jsonl(100))
    hub.cut_after = 1000

    done = workspace.run([source(content)])

    assert done.returncode == 0, done
    assert (workspace.data / "quiz/test.jsonl").read_bytes() == content


def test_files_that_were_completed_survive_a_later_failure(hub: Hub, workspace: Workspace) -> None:
    sources = [source(hub.serve(jsonl(3))), source(jsonl(5), target="train.jsonl")]

    line = refusal(workspace.run(sources))

    assert "answered 404" in line
    assert workspace.listing() == ["quiz", "quiz/SOURCE.json", "quiz/test.jsonl"]
    asked = len(hub.requests)
    hub.serve(jsonl(5), target="train.jsonl")
    assert workspace.run(sources).returncode == 0
    assert all("train" in path for _, path, _ in hub.requests[asked:])


@pytest.mark.parametrize("status", [401, 404, 500])
def test_a_refusal_by_the_hub_is_one_line(hub: Hub, workspace: Workspace, status: int) -> None:
    hub.status = status

    line = refusal(workspace.run([source(jsonl(3))]))

    assert f"{hub.url} answered {status}" in line
    assert workspace.listing() == []


def test_an_endpoint_that_is_no_hub_is_named(hub: Hub, workspace: Workspace) -> None:
    hub.serve(jsonl(3))
    hub.is_a_hub = False

    line = refusal(workspace.run([source(jsonl(3))]))

    assert hub.url in line
    assert "HF_ENDPOINT" in line
    assert workspace.listing() == []


def test_without_a_network_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    workspace = Workspace(tmp_path, "http://127.0.0.1:1")  # tcpmux: nothing listens there

    line = refusal(workspace.run_real("medqa"))

    assert "cannot download from http://127.0.0.1:1" in line
    assert "HF_ENDPOINT" in line
    assert workspace.listing() == []


def test_an_unknown_data_set_lists_the_known_ones(hub: Hub, workspace: Workspace) -> None:
    line = refusal(workspace.run_real("medqaa"))

    assert "unknown data set 'medqaa'; known: afrimedqa, hle, medagentsbench/afrimedqa_" in line
    assert hub.requests == []
    assert not workspace.data.exists()


def test_a_file_where_the_folder_should_be(hub: Hub, workspace: Workspace) -> None:
    content = hub.serve(jsonl(3))
    workspace.data.write_text("not a folder")

    line = refusal(workspace.run([source(content)]))

    assert str(workspace.data) in line
    assert "--data-dir" in line
    assert workspace.data.read_text() == "not a folder"


def test_a_folder_without_write_permission(hub: Hub, workspace: Workspace) -> None:
    content = hub.serve(jsonl(3))
    workspace.data.mkdir()
    workspace.data.chmod(0o500)
    if os.access(workspace.data, os.W_OK):
        pytest.skip("root may write anywhere")

    line = refusal(workspace.run([source(content)]))

    assert "Permission denied" in line
    assert "--data-dir" in line


def test_a_disk_without_room_is_found_before_the_download(hub: Hub, workspace: Workspace) -> None:
    content = hub.serve(jsonl(3))
    hub.claimed_size = 10**18

    line = refusal(workspace.run([source(content)]))

    assert "disk full" in line
    assert hub.ranges() == []
    assert workspace.listing() == []


def test_a_disk_that_fills_up_during_the_download(hub: Hub, workspace: Workspace) -> None:
    content = hub.serve(jsonl(3, padding=MEBIBYTE))
    limited = ["sh", "-c", 'ulimit -f 1024; exec "$@"', "sh"]  # blocks of 512 or 1024 bytes

    line = refusal(workspace.execute([*limited, *workspace.command([source(content)])]))

    assert f"{workspace.data}/quiz: File too large" in line
    assert workspace.listing() == []


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"{", "line 2 is not JSON: "),
        (b"[1]", "line 2: a question must be a JSON object"),
        (b"\xff", "line 2 is not UTF-8 text"),
        (b'{"options": {"A": "a", "B": "b"}, "answer_idx": "A"}', "line 2: field 'question' must"),
        (
            b'{"question": "?", "options": ["a", "b"], "answer_idx": "C"}',
            "line 2: field 'answer_idx'",
        ),
        (
            b'{"question": "?", "options": {"A": "a"}, "answer_idx": "A"}',
            "line 2: field 'options' must",
        ),
        (
            b'{"question": "?", "options": {"A": "a", "B": 2}, "answer_idx": "A"}',
            "line 2: option B must be a text",
        ),
        (
            b'{"question": "?", "options": {"A": "a", "B": "b"}, "answer_idx": "C"}',
            "line 2: field 'answer_idx' is 'C' but must be one of A, B",
        ),
    ],
)
def test_a_line_that_is_no_question_is_refused(
    hub: Hub, workspace: Workspace, line: bytes, complaint: str
) -> None:
    content = hub.serve(jsonl(1) + line + b"\n" + jsonl(1))

    assert f"{REPO}/files/test.jsonl {complaint}" in refusal(workspace.run([source(content)]))
    assert workspace.listing() == []


def test_a_wrong_number_of_records_is_refused(hub: Hub, workspace: Workspace) -> None:
    content = hub.serve(jsonl(3))

    line = refusal(workspace.run([source(content, records=4)]))

    assert "has 3 records, expected 4" in line
    assert workspace.listing() == []


def test_an_empty_line_is_no_record(hub: Hub, workspace: Workspace) -> None:
    content = hub.serve(jsonl(1) + b"\n" + jsonl(1))

    assert "has 2 records, expected 3" in refusal(workspace.run([source(content)]))
    assert workspace.run([source(content, records=2)]).returncode == 0


LABELLED = {
    str(pubid): {"QUESTION": f"Is it {pubid}?", "CONTEXTS": ["One."], "final_decision": "no"}
    for pubid in range(5)
}


def converted(hub: Hub) -> list[dict[str, object]]:
    """Two splits that are made of the same two files on GitHub."""
    labelled = hub.serve(json.dumps(LABELLED).encode(), target="labelled.json")
    truth = hub.serve(json.dumps({"3": "no", "1": "no"}).encode(), target="truth.json")
    files = [
        pinned(labelled, "labelled.json", host="github"),
        pinned(truth, "truth.json", host="github"),
    ]
    return [
        source(b"", target="test.jsonl", records=2, files=files, convert="pubmedqa_test"),
        source(b"", target="train.jsonl", records=3, files=files, convert="pubmedqa_train"),
    ]


def test_files_in_another_form_become_questions(hub: Hub, workspace: Workspace) -> None:
    done = workspace.run(converted(hub))

    assert (done.returncode, done.stderr) == (0, ""), done
    assert workspace.listing() == [
        "quiz",
        "quiz/SOURCE.json",
        "quiz/test.jsonl",
        "quiz/train.jsonl",
    ]
    test = [
        json.loads(line) for line in (workspace.data / "quiz/test.jsonl").read_text().splitlines()
    ]
    assert [record["pubid"] for record in test] == ["1", "3"]
    note = json.loads((workspace.data / "quiz/SOURCE.json").read_text())["files"]["train.jsonl"]
    content = (workspace.data / "quiz/train.jsonl").read_bytes()
    assert (note["records"], note["sha256"]) == (3, hashlib.sha256(content).hexdigest())
    assert [file["host"] for file in note["upstream"]] == ["github", "github"]
    paths = [path for _, path, _ in hub.requests]
    assert paths == [
        f"/github/{REPO}/{COMMIT}/files/labelled.json",
        f"/github/{REPO}/{COMMIT}/files/truth.json",
    ], "each once"


def test_a_second_run_knows_what_it_made(hub: Hub, workspace: Workspace) -> None:
    sources = converted(hub)
    workspace.run(sources)
    asked = len(hub.requests)

    done = workspace.run(sources)

    assert done.returncode == 0, done
    same = "already there, unchanged since; made from files whose SHA-256 was verified"
    assert done.stdout.count(same) == 2
    assert len(hub.requests) == asked


def test_what_was_made_and_changed_since_is_not_overwritten(hub: Hub, workspace: Workspace) -> None:
    sources = converted(hub)
    workspace.run(sources)
    place = workspace.data / "quiz/test.jsonl"
    made = place.read_bytes()
    place.write_bytes(b"mine\n")

    assert "--force" in refusal(workspace.run(sources))
    assert place.read_bytes() == b"mine\n"
    assert workspace.run(sources, "--force").returncode == 0
    assert place.read_bytes() == made


def test_a_file_that_this_command_did_not_make_is_not_taken_for_its_own(
    hub: Hub, workspace: Workspace
) -> None:
    (workspace.data / "quiz").mkdir(parents=True)
    (workspace.data / "quiz/test.jsonl").write_bytes(jsonl(2))

    assert "and not made by this command" in refusal(workspace.run(converted(hub)))
    assert hub.requests == []


def test_records_that_cannot_be_used_are_named_and_counted(hub: Hub, workspace: Workspace) -> None:
    rows = [f'"Question {n}?",Yes,No,{"C" if n == 7 else "A"}\n' for n in range(200)]
    table = hub.serve(
        ("question,opa,opb,answer_idx\n" + "".join(rows)).encode(), target="questions.csv"
    )
    files = [pinned(table, "questions.csv")]

    done = workspace.run([source(b"", records=200, files=files, convert="csv_rows")])

    assert done.returncode == 0, done
    assert f"left out: {REPO}/files/questions.csv line 8: field 'answer_idx' is 'C'" in done.stdout
    assert "199 records" in done.stdout
    note = json.loads((workspace.data / "quiz/SOURCE.json").read_text())["files"]["test.jsonl"]
    assert (note["records"], note["left_out"]) == (199, 1)


@pytest.mark.parametrize("change", ["status", "content"])
def test_github_refuses_or_sends_something_else(
    hub: Hub, workspace: Workspace, change: str
) -> None:
    sources = converted(hub)
    if change == "status":
        hub.status = 429
    else:
        hub.files["files/truth.json"] = b"{}"

    line = refusal(workspace.run(sources))

    expected = {"status": "/github answered 429", "content": "SHA-256 of someone/some-questions"}
    assert expected[change] in line
    assert workspace.listing() == []


def test_without_a_network_github_is_out_of_reach(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    workspace = Workspace(tmp_path, "http://127.0.0.1:1")

    line = refusal(workspace.run(converted(hub)))

    assert "cannot download from http://127.0.0.1:1/github" in line
    assert "GITHUB_RAW_ENDPOINT" in line
    assert workspace.listing() == []


@pytest.mark.parametrize("name", BY_HAND)
def test_what_is_not_pinned_says_how_to_place_it(hub: Hub, workspace: Workspace, name: str) -> None:
    line = refusal(workspace.run_real(name))

    assert f"{name} is not fetched" in line
    assert "https://" in line
    assert hub.requests == []
    assert not workspace.data.exists()


def test_a_table_that_a_user_has(hub: Hub, workspace: Workspace) -> None:
    table = workspace.folder / "medbullets_op4.csv"
    header = "link,question,opa,opb,opc,opd,answer_idx,answer,explanation\n"
    table.write_text(f'{header}http://x,"What, next?",Wait,Cut,See,Treat,C,See,Long\n')

    done = workspace.run_real("medbullets", "--from", str(table))

    assert done.returncode == 0, done
    record = json.loads((workspace.data / "medbullets/test.jsonl").read_text())
    assert (record["question"], record["opc"]) == ("What, next?", "See")
    note = json.loads((workspace.data / "medbullets/SOURCE.json").read_text())
    (upstream,) = note["files"]["test.jsonl"]["upstream"]
    assert (upstream["host"], upstream["path"]) == ("by hand", "medbullets_op4.csv")
    assert str(workspace.folder) not in json.dumps(note)
    assert note["files"]["test.jsonl"]["verified_at"] is None
    assert "1 records, its SHA-256 was compared to nothing" in done.stdout
    assert "verified" not in done.stdout
    assert workspace.run_real("medbullets", "--from", str(table)).returncode == 0


def test_json_lines_that_a_user_has(hub: Hub, workspace: Workspace) -> None:
    mine = workspace.folder / "dev.jsonl"
    mine.write_bytes(jsonl(3))

    done = workspace.run_real("medxpertqa", "--from", str(mine), "--split", "train")

    assert done.returncode == 0, done
    assert (workspace.data / "medxpertqa/train.jsonl").read_bytes() == mine.read_bytes()
    assert mine.exists()
    assert "there is no file" in refusal(workspace.run_real("medxpertqa", "--from", "none.jsonl"))
    assert "--cop-from is about the file that --from names" in refusal(
        workspace.run_real("medmcqa", "--cop-from", "1")
    )


def medmcqa(*places: int) -> bytes:
    """Records of MedMCQA; the option that `cop` names when it counts from 1 is `right`."""
    columns = ("opa", "opb", "opc", "opd")
    return b"".join(
        json.dumps(
            {"id": f"q{n}", "question": f"Which, {n}?", "cop": place}
            | {c: "right" if i == place - 1 else f"wrong {c}" for i, c in enumerate(columns)}
        ).encode()
        + b"\n"
        for n, place in enumerate(places)
    )


def test_how_a_file_of_medmcqa_counts_is_asked_when_it_does_not_tell(
    hub: Hub, workspace: Workspace
) -> None:
    mine = workspace.folder / "dev.json"
    mine.write_bytes(medmcqa(1, 2, 3))

    line = refusal(workspace.run_real("medmcqa", "--from", str(mine)))
    assert f"error: {mine}: field 'cop' may count from 0 or from 1" in line
    assert f"mdagents data download medmcqa --from {mine} --cop-from 1" in line

    done = workspace.run_real("medmcqa", "--from", str(mine), "--cop-from", "1")
    assert done.returncode == 0, done
    assert "field 'cop' counts the options from 1 (as --cop-from says)" in done.stdout
    dataset = open_dataset("medmcqa", workspace.data)
    questions = [dataset.load(entry) for entry in dataset.index]
    assert [q.options[q.gold] for q in questions] == ["right"] * 3
    assert "counts the options from 1 (as SOURCE.json beside it says)" in dataset.notice

    again = workspace.run_real("medmcqa", "--from", str(mine), "--cop-from", "1")
    assert "already there, unchanged since; its SHA-256 was compared to nothing" in again.stdout
    other = ["medmcqa", "--from", str(mine), "--cop-from", "0"]
    assert "--force" in refusal(workspace.run_real(*other))
    assert workspace.run_real(*other, "--force").returncode == 0
    assert open_dataset("medmcqa", workspace.data).load(dataset.index[0]).gold == "B"


def test_a_file_that_contradicts_what_the_user_says_is_refused(
    hub: Hub, workspace: Workspace
) -> None:
    mine = workspace.folder / "dev.json"
    mine.write_bytes(medmcqa(1, 4))

    line = refusal(workspace.run_real("medmcqa", "--from", str(mine), "--cop-from", "0"))

    assert "field 'cop' is 4 but must be 0 to 3, as this file counts from 0" in line
    assert workspace.listing() == []


AFRIMEDQA = (
    "sample_id,split,question_type,question,question_clean,answer_options,correct_answer,tier\n"
    's1,test,mcq,"Which?\n","Which one?\n","{""option1"": ""Salt"", ""option2"": ""n/a""'
    ', ""option3"": ""Iron""}",option3,expert\n'
    's2,test,mcq,Which?,Which?,"{""option1"": ""A"", ""option2"": ""B""}","option1,option2",x\n'
    "s3,test,saq,Why?,Why?,,,expert\n"
    's4,train,mcq,Who?,Who?,"{""option1"": ""I"", ""option2"": ""You""}",option1,expert\n'
)


def test_what_is_no_question_is_left_out_by_reason(hub: Hub, workspace: Workspace) -> None:
    table = workspace.folder / "afri.csv"
    table.write_text(AFRIMEDQA)

    done = workspace.run_real("afrimedqa", "--from", str(table))

    assert done.returncode == 0, done
    assert [line for line in done.stdout.splitlines() if line.startswith("left out")] == [
        f"left out: 1 of {table} (line 2): more than one option is right",
        f"left out: 1 of {table} (line 3): field 'question_type' is 'saq', not 'mcq'",
        f"left out: 1 of {table} (line 4): field 'split' is 'train', not 'test'",
    ]
    dataset = open_dataset("afrimedqa", workspace.data)
    (question,) = [dataset.load(entry) for entry in dataset.index]
    assert (question.id, question.text, question.gold) == ("s1", "Which one?", "C")
    assert question.options == {"A": "Salt", "C": "Iron"}
    note = json.loads((workspace.data / "afrimedqa/SOURCE.json").read_text())
    assert note["files"]["test.jsonl"]["left_out"] == 3
    assert workspace.run_real("afrimedqa", "--from", str(table), "--split", "train").returncode == 0
    assert open_dataset("afrimedqa", workspace.data, "train").index[0].id == "s4"


def test_tables_of_medexqa(hub: Hub, workspace: Workspace) -> None:
    files = [workspace.folder / f"{name}_test.tsv" for name in ("psychologist", "engineer")]
    for file in files:
        file.write_text('Which "one"?\tSalt\tIron\tZinc\tGold\tBecause.\tFor.\tD\n')

    done = workspace.run_real("medexqa", "--from", *map(str, files))

    assert done.returncode == 0, done
    dataset = open_dataset("medexqa", workspace.data)
    assert [entry.id for entry in dataset.index] == ["psychologist_test-0", "engineer_test-0"]
    question = dataset.load(dataset.index[0])
    assert (question.text, question.options[question.gold]) == ('Which "one"?', "Gold")
    files[0].write_text("a\tb\n")
    assert f"{files[0]} line 1 has 2 columns, expected 8" in refusal(
        workspace.run_real("medexqa", "--from", *map(str, files), "--force")
    )


def test_a_hard_set_has_a_name_of_two_parts(hub: Hub, workspace: Workspace) -> None:
    import pandas as pd

    table = workspace.folder / "test_hard-00000-of-00001.parquet"
    options = {"A": "Salt", "B": "Iron", "C": "n/a", "D": None}
    row = {"realidx": "7", "question": "Which?", "options": options, "answer_idx": "B"}
    pd.DataFrame([row]).to_parquet(table)

    done = workspace.run_real("medagentsbench/medqa_hard", "--from", str(table))

    assert done.returncode == 0, done
    dataset = open_dataset("medagentsbench/medqa_hard", workspace.data)
    assert dataset.load(dataset.index[0]).options == {"A": "Salt", "B": "Iron"}
    with pytest.raises(ConfigError, match=r"\(there: medagentsbench/medqa_hard\)"):
        open_dataset("medqa_hard", workspace.data)


def test_the_part_of_hle_that_can_be_asked(hub: Hub, workspace: Workspace) -> None:
    import pandas as pd

    listed = "Which?\n\nAnswer Choices:\nA. Salt\nB. Iron"
    row = {"id": "h1", "question": listed, "answer": "B", "answer_type": "multipleChoice",
           "image": "", "image_preview": None, "category": "Biology/Medicine"}  # fmt: skip
    rows = [
        row,
        row | {"id": "h2", "image": "data:image/png;base64,AA", "image_preview": {"bytes": b"\1"}},
        row | {"id": "h3", "answer_type": "exactMatch"},
        row | {"id": "h4", "category": "Math"},
    ]
    table = workspace.folder / "test-00000-of-00001.parquet"
    pd.DataFrame(rows).to_parquet(table)

    done = workspace.run_real("hle", "--from", str(table))

    assert done.returncode == 0, done
    assert "(line 2): it is about an image" in done.stdout
    assert "(line 3): field 'answer_type' is 'exactMatch', not 'multipleChoice'" in done.stdout
    assert "(line 4): field 'category' is 'Math', not 'Biology/Medicine'" in done.stdout
    assert [entry.id for entry in open_dataset("hle", workspace.data).index] == ["h1"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", "question,opa\nWhich?,Salt".encode("utf-16"), "is not UTF-8 text; save it as"),
        ("x.csv", b"question\n" + b"x" * 200_000, "cannot be read as a table: field larger than"),
        ("x.csv", b"question,opa,opb,answer_idx\n" + b"x" * 110_000 + b",y,n,A\n",
         "line 1: field 'question' has 110,000 characters, at most 100,000 may be"),
        ("x.parquet", b"no table", "cannot be read as Parquet"),
        ("x.xlsx", b"", "ends in .xlsx; --from takes .jsonl"),
        ("x.jsonl", b"[" * 10_000 + b"\n", "line 1 is nested too deeply"),
        ("x.jsonl", b'{"question": "cut\\u0000off"}\n', "field 'question' holds a NUL character"),
        ("x.jsonl", b"\n\n", "has no questions in it"),
    ],
)  # fmt: skip
def test_an_odd_file_is_one_line(
    hub: Hub, workspace: Workspace, name: str, content: bytes, message: str
) -> None:
    file = workspace.folder / name
    file.write_bytes(content)

    line = refusal(workspace.run_real("medbullets", "--from", str(file)))

    assert str(file) in line
    assert message in line
    assert workspace.listing() == []


def test_interrupted_it_leaves_nothing_behind(hub: Hub, workspace: Workspace) -> None:
    hub.release = threading.Event()
    content = hub.serve(jsonl(3))
    with subprocess.Popen(
        workspace.command([source(content)]),
        cwd=ROOT,
        env=workspace.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert hub.asked.wait(timeout=30)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)

    assert process.returncode == 130
    assert re.fullmatch(r"interrupted[^\n]*\n", errors), errors
    assert workspace.listing() == []


def test_on_a_terminal_there_is_a_progress_bar(hub: Hub, workspace: Workspace) -> None:
    content = hub.serve(jsonl(3))
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    try:
        done = subprocess.run(
            workspace.command([source(content)]),
            cwd=ROOT,
            env=workspace.environment,
            stdout=subprocess.PIPE,
            stderr=theirs,
            timeout=60,
            check=False,
        )
        shown = os.read(ours, 65536)
    finally:
        os.close(ours)
        os.close(theirs)

    assert done.returncode == 0
    assert b"100%" in shown
