"""Runs whose files were damaged: each program goes on, or says in one line what to do."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mdagents.cli.score import main as score
from mdagents.export.cli import main as export
from mdagents.live import LIVE_FILE
from mdagents.scoring.rows import read_output
from mdagents.view.app import make_app
from tests.fake_provider import FakeProvider
from tests.mdagents.view.served import write_end
from tests.support.whole_runs import Run, program, records

pytestmark = pytest.mark.process

BASIC = ("--num-samples", "3", "--difficulty", "basic")
COMMAND = (*BASIC, "--exaid", "full_exaid")
FILES = ("samples.jsonl", "calls.jsonl", "summaries.jsonl", "run.json", LIVE_FILE, "batches.jsonl")
FOREIGN = (
    b"",
    b" ",
    b"[]",
    b"5",
    b"null",
    b'"text"',
    b"{}",
    b'{"question_id": "sample-001"}',
    b'{"question_id": "sample-001", "epoch": 1}',
    b'{"question_id": "sample-001", "epoch": 1, "attempt": 1}',
    b'{"question_id": ["sample-001"], "epoch": {}, "attempt": []}',
    b'{"question_id": "nobody", "epoch": 1, "attempt": 1, "schema_version": "9.0.0"}',
    b'{"tag": "t", "id": 5}',
    b'{"tag": "t", "model": 1, "submitted_at": null, "keys": 7}',
    b"<<<<<<< HEAD",
    b"=======",
    b">>>>>>> theirs",
    b"\0" * 512,
    b"\xff\xfe\xff",
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"1" * 5_000,
    b"1e999",
    b"NaN",
)
"""Lines that a merge, an editor, a disk or another program leaves."""


def cut(content: bytes, place: int, _: bytes) -> bytes:
    return content[:place]


def flip(content: bytes, place: int, _: bytes) -> bytes:
    return content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :]


def line_at(content: bytes, place: int) -> int:
    return content.rfind(b"\n", 0, place) + 1


def double(content: bytes, place: int, _: bytes) -> bytes:
    start = line_at(content, place)
    line = content[start:].partition(b"\n")[0] + b"\n"
    return content[:start] + line + content[start:]


def insert(content: bytes, place: int, line: bytes) -> bytes:
    start = line_at(content, place)
    return content[:start] + line + b"\n" + content[start:]


def drop(content: bytes, place: int, _: bytes) -> bytes:
    start = line_at(content, place)
    return content[:start] + content[start:].partition(b"\n")[2]


def join(content: bytes, place: int, _: bytes) -> bytes:
    return content[:place] + content[place:].replace(b"\n", b"", 1)


def mark(content: bytes, place: int, _: bytes) -> bytes:
    return b"\xef\xbb\xbf" + content


def windows(content: bytes, place: int, _: bytes) -> bytes:
    return content.replace(b"\n", b"\r\n")


def retype(content: bytes, place: int, _: bytes) -> bytes:
    """Put a value of another type into a field."""
    start = content.find(b": ", place) + 2 or content.find(b":", place) + 1
    end = min((e for e in (content.find(c, start) for c in (b",", b"}")) if e > 0), default=start)
    return (
        content[:start] + (b"5", b'"x"', b"[[1]]", b"null", b"-1", b"{}")[place % 6] + content[end:]
    )


WAYS_ON = ("--fresh", "leave one of them out", "take it out")
"""What an error tells to do."""
DAMAGES: tuple[Callable[[bytes, int, bytes], bytes], ...] = (
    cut, flip, double, insert, drop, join, mark, windows, retype,
)  # fmt: skip


@pytest.fixture
def whole(provider: FakeProvider, run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output folder of a run of three questions that was killed at its end."""
    assert run(*COMMAND)[0] == 0
    (folder,) = (path.parent for path in Path("output").glob("*/run.json"))
    shutil.copyfile(folder.with_name(f"{folder.name}.json"), "array.json")
    (folder / "batches.jsonl").write_text(
        '{"tag": "t", "model": "m", "submitted_at": "2026-01-01T00:00:00Z", "keys": ["k"]}\n'
        '{"tag": "t", "id": "b", "found": false}\n{"tag": "t", "collected": true}\n'
    )
    return Path("output").rename(tmp_path_factory.mktemp("whole") / "output")


async def pages_of(output: Path, name: str) -> None:
    """Look at all pages of a folder; what cannot be shown is said on the page."""
    transport = httpx2.ASGITransport(make_app(output))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        for address in ("/", "/api/runs"):
            assert (await client.get(address)).status_code == 200
        run = f"runs/{name}"
        case = f"{run}/questions/case-sample-001"
        for address in (f"/{run}", f"/{case}", f"/{run}/report", f"/api/{run}", f"/api/{case}"):
            shown = await client.get(address)
            assert shown.status_code in (200, 400, 404, 409, 500)
            assert "Traceback" not in shown.text


@settings(
    max_examples=20,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # to shrink one would take minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.sampled_from(FILES),
    st.sampled_from(DAMAGES),
    st.floats(0, 1, exclude_max=True),
    st.sampled_from(FOREIGN),
    st.booleans(),
)
def test_no_damage_ends_in_a_traceback_or_a_wrong_count(
    whole: Path,
    run: Run,
    capsys: pytest.CaptureFixture[str],
    name: str,
    damage: Callable[[bytes, int, bytes], bytes],
    where: float,
    line: bytes,
    is_finished: bool,
) -> None:
    shutil.rmtree("output", ignore_errors=True)
    shutil.copytree(whole, "output")
    (folder,) = (path.parent for path in Path("output").glob("*/run.json"))
    if not is_finished:
        write_end(folder, None)
    path = folder / name
    content = path.read_bytes() if path.exists() else b""
    if content:
        path.write_bytes(damage(content, int(where * len(content)), line))
    else:
        path.write_bytes(line)

    asyncio.run(pages_of(Path("output"), folder.name))
    for reads, arguments in (
        (score, ["--input", str(folder), "--html"]),
        (export, [str(folder)]),
    ):
        status = reads(arguments)
        _, err = capsys.readouterr()
        assert status in (0, 1, 2)
        assert status == 0 or (err.startswith("error: ") and err.count("\n") == 1), err
    assert run("--dry-run", *COMMAND)[0] == 0
    status, _, err = run(*COMMAND)
    assert status in (0, 1, 2)
    if status == 0:
        rows = read_output(folder).rows
        assert len(rows) == 3
        assert len({row.item for row in rows}) == 3
        assert len(json.loads(folder.with_name(f"{folder.name}.json").read_bytes())) == 3
    else:
        last = err.splitlines()[-1]
        assert last.startswith("error: "), err
        assert any(way in last for way in WAYS_ON), last
        assert str(folder) in last
    status, _, err = run(*COMMAND, "--fresh")
    assert status == 0, err


def test_a_record_of_another_run_is_not_counted(provider: FakeProvider, run: Run) -> None:
    run(*BASIC)
    (samples,) = Path("output").glob("*/samples.jsonl")
    record = json.loads(samples.read_bytes().splitlines()[0])
    others = [record | {"epoch": 2}, record | {"epoch": 0}, record | {"question_id": "nobody"}]
    samples.write_bytes(samples.read_bytes() + b"".join(map(line_of, others)))
    write_end(samples.parent, None)
    calls = len(provider.calls)
    status, out, _ = run(*BASIC)
    assert status == 0
    assert len(provider.calls) == calls
    assert "records of a question or an epoch that this run does not have, left out: 3" in " ".join(
        out.split()
    )
    assert len(read_output(samples.parent).rows) == len(records()) == 3


def test_a_gap_among_the_records_is_filled_whatever_their_number(
    provider: FakeProvider, run: Run
) -> None:
    """A resume by the number of lines would miss the gap (OpenTSLM issue 52)."""
    run(*BASIC, "--cache", "off")
    (samples,) = Path("output").glob("*/samples.jsonl")
    first, missing, last = samples.read_bytes().splitlines(keepends=True)
    samples.write_bytes(first + last + last)
    write_end(samples.parent, None)
    before = len(provider.calls)
    assert run(*BASIC, "--cache", "off")[0] == 0
    assert len(provider.calls) - before == 5
    assert {json.loads(line)["question_id"] for line in (first, missing, last)} == {
        record["question_id"] for record in records()
    }
    assert len(records()) == 3


def test_a_last_line_without_a_line_break_is_not_paid_for_again(
    provider: FakeProvider, run: Run
) -> None:
    """Many editors and tools leave it out; JSON Lines allow that (jsonlines.org)."""
    run(*BASIC, "--cache", "off")
    (samples,) = Path("output").glob("*/samples.jsonl")
    ledger = samples.with_name("calls.jsonl")
    before = ledger.read_bytes()
    for path in (samples, ledger):
        path.write_bytes(path.read_bytes().rstrip())
    write_end(samples.parent, None)
    calls = len(provider.calls)
    assert run(*BASIC, "--cache", "off")[0] == 0
    assert len(provider.calls) == calls
    assert ledger.read_bytes() == before
    assert len(records()) == 3


def test_an_epoch_that_another_program_wrote_as_a_float_counts(
    provider: FakeProvider, run: Run
) -> None:
    run(*BASIC)
    (samples,) = Path("output").glob("*/samples.jsonl")
    rewritten = [json.loads(line) | {"epoch": 1.0} for line in samples.read_bytes().splitlines()]
    samples.write_bytes(b"".join(map(line_of, rewritten)))
    write_end(samples.parent, None)
    calls = len(provider.calls)
    assert run(*BASIC)[0] == 0
    assert len(provider.calls) == calls
    assert len(records()) == 3


def line_of(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode() + b"\n"


def test_a_finished_run_whose_records_are_cut_off_answers_what_is_missing(
    provider: FakeProvider, run: Run
) -> None:
    run(*BASIC)
    (samples,) = Path("output").glob("*/samples.jsonl")
    samples.write_bytes(samples.read_bytes()[:-100])
    calls = len(provider.calls)
    status, _, err = run(*BASIC)
    assert status == 0
    assert "resumed    2 questions already finished" in err
    assert len(provider.calls) == calls, "the reply comes from the cache"
    assert len(records()) == 3
    samples.with_name("run.json").parent.with_name(f"{samples.parent.name}.json").unlink()
    assert run(*BASIC)[0] == 0
    assert len(records()) == 3, "the array is written once more"


def test_a_fresh_run_takes_over_no_record_of_a_folder_without_its_manifest(
    provider: FakeProvider, run: Run
) -> None:
    run(*BASIC)
    for file in (*Path("output").glob("*/run.json"), *Path("output").glob("*.json")):
        file.unlink()
    _, _, err = run(*BASIC, "--fresh")
    assert "resumed  " not in err
    assert "the earlier run of this name was kept as" in err


@pytest.mark.parametrize("moved", [True, False])
def test_a_folder_that_is_moved_or_removed_under_its_run(
    provider: FakeProvider, moved: bool
) -> None:
    hold = provider.hold("Your role: arbitrator")
    process = program(provider, *BASIC, "--max-samples", "1", "--display", "none")
    hold.wait(1)
    (folder,) = (path.parent for path in Path("output").glob("*/run.json"))
    if moved:
        folder.rename("elsewhere")
    else:
        shutil.rmtree(folder)
    hold.release()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    (line,) = err.splitlines()
    assert line.startswith(f"stopped: {folder} was moved or removed during the run; ")
    assert not folder.exists(), "no empty twin is made"
    if moved:
        assert len(Path("elsewhere/samples.jsonl").read_bytes().splitlines()) == 1
        Path("elsewhere").rename(folder)
        again = program(provider, *BASIC, "--display", "none")
        again.communicate(timeout=60)
        assert again.returncode == 0
        assert len(records()) == 3


def test_what_is_no_file_is_never_waited_for(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run(*BASIC)
    (folder,) = (path.parent for path in Path("output").glob("*/run.json"))
    for make in (os.mkfifo, Path.mkdir):
        for name in ("run.json", "samples.jsonl", "calls.jsonl", LIVE_FILE):
            other = Path("output") / f"other-{make.__name__}-{name}"
            shutil.copytree(folder, other)
            write_end(other, None)
            (other / name).unlink(missing_ok=True)
            make(other / name)
            asyncio.run(pages_of(Path("output"), other.name))
            assert score(["--input", str(other), "--html"]) in (0, 2)
            assert export([str(other)]) in (0, 2)
            assert "Traceback" not in capsys.readouterr().err
            shutil.rmtree(other)
            (folder / name).rename("kept") if (folder / name).exists() else None
            make(folder / name)
            status, _, err = run(*BASIC)
            assert (status, name) in ((0, LIVE_FILE), (0, "calls.jsonl"), (2, name))
            assert status == 0 or str(folder / name) in err.splitlines()[-1]
            (folder / name).unlink() if make is os.mkfifo else (folder / name).rmdir()
            Path("kept").rename(folder / name) if Path("kept").exists() else None
    os.mkfifo("pipe.json")
    assert score(["--input", "pipe.json"]) == 2
    assert capsys.readouterr().err == "error: pipe.json cannot be read: not a regular file\n"


@pytest.mark.parametrize("flag", ["--dataset", "--output-dir", "--rerun-wrong"])
def test_a_path_that_no_system_takes_is_named(
    flag: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MDAGENTS_DEBUG")  # which shows the traceback instead
    path = f"{'x' * 300}{'.jsonl' if flag == '--dataset' else ''}"
    status, _, err = run(*BASIC, flag, path)
    assert status == 2
    assert "x" * 300 in err
    assert err.endswith(" cannot be used: File name too long\n")


def test_a_damaged_run_does_not_keep_others_from_a_forecast(run: Run) -> None:
    run(*BASIC)
    (manifest,) = Path("output").glob("*/run.json")
    whole = manifest.read_bytes()
    for content in (
        b"",
        b"[]",
        b"{",
        b"[" * 100_000,
        whole.replace(b'"options": {', b'"options": 1, "o": {'),
    ):
        manifest.write_bytes(content)
        assert run("--dry-run", *BASIC)[0] == 0


def test_only_its_owner_can_read_a_run_with_prompts_and_the_kept_replies(run: Run) -> None:
    before = os.umask(0o022)
    try:
        run(*BASIC)
        (folder,) = (path.parent for path in Path("output").glob("*/run.json"))
        assert mode_of(folder) == 0o755, "a benchmark's results may be shared"
        for file in Path("output/.cache").iterdir():
            assert mode_of(file) == 0o600
        run(*BASIC, "--log-prompts", "--fresh")
        array = folder.with_name(f"{folder.name}.json")
        private = (folder, array, folder / "samples.jsonl", folder / "calls.jsonl")
        assert [mode_of(path) for path in private] == [0o700, 0o600, 0o600, 0o600]
        folder.chmod(0o755)
        array.unlink()
        run(*BASIC, "--log-prompts")
        assert mode_of(folder) == 0o700, "a run is closed when it is gone on with"
    finally:
        os.umask(before)


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_damage_that_other_programs_met(provider: FakeProvider, run: Run) -> None:
    """Each as it was reported somewhere: what is whole is used, what is not is named."""
    run(*BASIC)
    (samples,) = Path("output").glob("*/samples.jsonl")
    whole = samples.read_bytes()
    one, two, three = whole.splitlines(keepends=True)
    ledger = samples.with_name("calls.jsonl").read_text()
    nels = json.dumps(
        json.loads(one) | {"routing_reason": "a\x85b\u2028c\x0bd"}, ensure_ascii=False
    )
    calls = len(provider.calls)
    for name, content, named in (
        ("samples.jsonl", nels.encode() + b"\n" + two + three, ""),  # line ends of Unicode
        ("samples.jsonl", one + b"\n\r\n" + two + three, ""),  # blank lines of an editor
        ("samples.jsonl", b"\xef\xbb\xbf" + whole.replace(b"\n", b"\r\n"), ""),  # Notepad
        ("samples.jsonl", one + two + b"\xef\xbb\xbf" + three, ""),  # files that were joined
        ("samples.jsonl", one + two + b"\0" * 4096, ""),  # a power cut
        ("samples.jsonl", b"", ""),  # a full disk, or a tool that writes in place
        ("samples.jsonl", one.rstrip() + two + three, "line 1 is not a record"),  # no line end
        ("samples.jsonl", one + two[:500] + b"\n" + three, "line 2 is not a record"),
        ("samples.jsonl", one + b"\0" * 4096 + two + three, "line 2 is not a record"),
        ("calls.jsonl", ledger.encode("utf-16"), "line 1 is not a row of a ledger"),  # PowerShell
        ("run.json", b"<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> b\n", "cannot be read as a run"),
        ("run.json", b"", "cannot be read as a run"),
    ):  # fmt: skip
        kept = {path: path.read_bytes() for path in samples.parent.glob("*.json*")}
        if name != "run.json":
            write_end(samples.parent, None)
        samples.with_name(name).write_bytes(content)
        status, _, err = run(*BASIC)
        if named:
            assert status == 2
            last = err.splitlines()[-1]
            assert f"{samples.with_name(name)} {named}" in last
            assert "--fresh" in last
        else:
            assert status == 0, content[:80]
            assert len(records()) == 3
        for path, before in kept.items():
            path.write_bytes(before)
    assert len(provider.calls) == calls, "what was lost came from the cache"
