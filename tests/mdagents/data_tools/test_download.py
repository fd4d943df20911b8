"""`mdagents data download` as a user runs it: what is fetched, kept, resumed and refused."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import re
import signal
import subprocess
import termios
import threading
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.mdagents.data_tools.hub import (
    COMMIT,
    MEBIBYTE,
    REPO,
    Hub,
    Workspace,
    jsonl,
    refusal,
    source,
)

pytestmark = pytest.mark.process


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
        "License: CC0",
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
    assert "License: CC0" in done.stdout
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
    assert "or give a file that you have with --from FILE" in line
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
        (
            b'{"options": {"A": "a", "B": "b"}, "answer_idx": "A"}',
            "line 2: there is no field 'question'",
        ),
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


def test_interrupted_it_leaves_nothing_behind(hub: Hub, workspace: Workspace) -> None:
    hub.release = threading.Event()
    content = hub.serve(jsonl(3))
    with subprocess.Popen(
        workspace.command([source(content)]),
        cwd=REPOSITORY,
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
            cwd=REPOSITORY,
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
