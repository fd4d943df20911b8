"""Logs that Inspect itself wrote, and hostile ones: how their samples are scored."""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mdagents.cli.score import main
from mdagents.scoring.rows import read_output
from mdagents.scoring.scored_row import ScoredRow
from mdagents.scoring.zip_members import ZipMembers
from mdagents_llm.errors import ConfigError

# Makes logs with Inspect, out of reach of the network: one folder for each task.
MAKER = """
import random, socket, sys

def no_network(self, address):
    raise AssertionError(f"Inspect tried to connect to {address}")

socket.socket.connect = no_network

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, accuracy, choice, mean, scorer
from inspect_ai.solver import generate, multiple_choice, solver

TEXTS = ["Aspirin", "Heparin", "Warfarin", "Watchful waiting\\nand rest"]

def said(text, stop_reason="stop"):
    output = ModelOutput.from_content("mockllm/model", text, stop_reason=stop_reason)
    output.usage = ModelUsage(input_tokens=10, output_tokens=3, total_tokens=17,
                              input_tokens_cache_read=4)
    return output

def questions(*ids):
    return MemoryDataset([Sample(id=i, input=f"Which for {i}?", choices=TEXTS, target="C",
                                 metadata={"status": "answered"}) for i in ids])

def run(name, dataset, outputs, **task):
    options = {n: task.pop(n) for n in ("fail_on_error", "score", "log_format") if n in task}
    model = get_model("mockllm/model", custom_outputs=outputs, memoize=False)
    (log,) = eval(Task(dataset=dataset, **task), model=model, log_dir=name, display="none",
                  max_samples=1, log_level="error", log_realtime=False, **options)
    return log

@solver
def failing():
    async def solve(state, generate):
        if state.sample_id == "broken":
            state.output = said("ANSWER: C")
            raise ValueError("the sandbox is gone")
        return state
    return solve

@scorer(metrics=[mean()])
def option():
    async def score(state, target):
        return Score(value=0.25, answer="whatever", metadata={"status": "answered"})
    return score

long = "Because of the clot. " * 50
replies = [said(long + "ANSWER: C"), said("ANSWER: A"), said("I cannot help with that."),
           said("", "content_filter"), said("ANSWER: C", "content_filter"),
           said("The clot is", "max_tokens"), said("")]
ids = ["right", "wrong", "unreadable", "refused", "also refused", "cut off", "empty", "broken"]
log = run("outcomes", questions(*ids), replies * 2, solver=[failing(), multiple_choice(cot=True)],
          scorer=choice(), epochs=2, fail_on_error=False)
write_eval_log(read_eval_log(log.location), "outcomes/log.json")

run("custom", questions("a", "broken"), [said("ANSWER: C")], fail_on_error=False,
    solver=[failing(), multiple_choice()], scorer=option())
run("unscored", questions("a"), [said("ANSWER: C")], solver=multiple_choice(), score=False)
run("limits", questions("a"), [said("ANSWER: C")], solver=multiple_choice(), scorer=choice(),
    token_limit=5)
run("stopped", questions("a", "broken", "c"), [said("ANSWER: C")] * 3, scorer=choice(),
    solver=[failing(), multiple_choice()])

shuffled = questions(*range(12))
shuffled.shuffle_choices(seed=1)
run("shuffled", shuffled, [said(f"ANSWER: {s.target}") for s in shuffled], scorer=choice(),
    solver=multiple_choice())

def by_text(style):
    def reply(messages, tools, tool_choice, config):
        prompt = messages[-1].text
        letter = next(l for l in "ABCD" if f"\\n{l}) Warfarin" in prompt)
        return said(style.format(letter))
    return reply

for name, style in {"read": "ANSWER: {}", "unread": "The answer is ({})."}.items():
    run(f"solver-{name}", questions(*range(12)), by_text(style), scorer=choice(),
        solver=multiple_choice(shuffle=random.Random(5)))
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the logs, one folder for each task."""
    folder = tmp_path_factory.mktemp("inspect")
    done = subprocess.run(
        [sys.executable, "-c", MAKER],
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def log_of(logs: Path, task: str) -> Path:
    (log,) = (logs / task).glob("*.eval")
    return log


def rows_of(path: Path) -> list[ScoredRow]:
    return list(read_output(path).rows)


def by_item(row: ScoredRow) -> tuple[str, int]:
    return row.item


pytestmark = pytest.mark.process


def test_only_a_letter_in_a_whole_reply_is_an_answer(logs: Path) -> None:
    log = log_of(logs, "outcomes")
    rows = rows_of(log)
    assert sorted(rows_of(log.with_name("log.json")), key=by_item) == sorted(rows, key=by_item)
    expected = {
        "right": "answered",
        "wrong": "answered",
        "unreadable": "parse_error",
        "refused": "refused",
        "also refused": "refused",
        "cut off": "truncated",
        "empty": "parse_error",
        "broken": "api_error",
    }
    assert {row.item: row.status for row in rows} == {
        (name, epoch): status for name, status in expected.items() for epoch in (1, 2)
    }
    assert Counter(row.question_id for row in rows if row.correct) == {"right": 2}
    used = [(row.input_tokens, row.output_tokens, row.total_tokens) for row in rows]
    assert Counter(used) == {(14, 3, 17): 14, (None, None, None): 2}


def test_the_command_names_the_file_alone(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(log_of(logs, "outcomes"))]) == 0
    printed = capsys.readouterr().out
    assert "read as: Inspect 16" in printed
    assert "another letter" not in printed
    assert main(["one.eval", "--input", "other.eval"]) == 2
    assert "put the flag before it" in capsys.readouterr().err


def test_a_score_of_another_scorer_is_not_read(logs: Path) -> None:
    assert [(row.status, row.correct) for row in rows_of(log_of(logs, "custom"))] == [
        ("answered", True),
        ("api_error", False),
    ]
    (unscored,) = rows_of(log_of(logs, "unscored"))
    assert (unscored.status, unscored.correct) == ("answered", True)


def test_a_sample_that_a_limit_ended_is_no_answer(logs: Path) -> None:
    (row,) = rows_of(log_of(logs, "limits"))
    assert (row.status, row.correct) == ("limit", False)


def test_a_run_that_an_error_stopped_says_so(logs: Path) -> None:
    output = read_output(log_of(logs, "stopped"))
    statuses = {row.question_id: row.status for row in output.rows}
    assert (statuses["a"], statuses["broken"]) == ("answered", "api_error")
    assert statuses.get("c") in (None, "api_error")  # it may have begun
    assert output.notices[0] == "by its log, the run of Inspect ended as 'error'"


def test_choices_that_the_data_set_shuffled(logs: Path) -> None:
    rows = rows_of(log_of(logs, "shuffled"))
    assert {row.label for row in rows} > {"A", "B"}
    assert all(row.correct for row in rows)


@pytest.mark.parametrize("task", ["solver-read", "solver-unread"])
def test_choices_that_the_solver_shuffled(logs: Path, task: str) -> None:
    """Inspect counts every reply of the second log as wrong: it reads none of them."""
    rows = rows_of(log_of(logs, task))
    assert all(row.correct for row in rows)
    assert {row.source_label for row in rows} == {"C"}
    assert len({row.label for row in rows}) == (1 if task == "solver-read" else 4)
    assert len({row.content for row in rows}) == len(rows)


def repacked(log: Path, changed: Mapping[str, bytes | None], name: str = "again.eval") -> Path:
    """The log with other or without some members, packed by Deflate."""
    import zipfile_zstd  # type: ignore[import-untyped]  # noqa: F401

    with zipfile.ZipFile(log) as packed, zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as again:
        for member in packed.namelist():
            content = changed.get(member, packed.read(member))
            if content is not None:
                again.writestr(member, content)
        for member, content in changed.items():
            if member not in packed.namelist() and content is not None:
                again.writestr(member, content)
    return Path(name)


def test_a_log_without_its_end(logs: Path) -> None:
    output = read_output(repacked(log_of(logs, "unscored"), {"header.json": None}))
    assert len(output.rows) == 1
    assert output.notices == [
        "the log has no end: the run of Inspect was killed, or is still in progress"
    ]


def test_a_log_with_fewer_samples_than_planned(logs: Path) -> None:
    path = repacked(log_of(logs, "shuffled"), {"samples/3_epoch_1.json": None})
    assert read_output(path).notices == ["unfinished: the log holds 11 of 12 samples"]


def test_a_sample_that_was_answered_again_counts_once(logs: Path) -> None:
    log = repacked(log_of(logs, "unscored"), {})
    name = "samples/a_epoch_1.json"
    with zipfile.ZipFile(log, "a") as archive:
        sample = json.loads(archive.read(name))
        sample["output"]["completion"] = "ANSWER: A"
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr(name, json.dumps(sample))
    (row,) = rows_of(log)
    assert row.response == "A"


AS_IN_2024: dict[str, Any] = {
    "output": {
        "model": "llama3.1",
        "choices": [
            {
                "message": {"content": "ANSWER: C", "source": "generate", "role": "assistant"},
                "stop_reason": "stop",
            }
        ],
    },
    "scores": None,
    "score": {"value": "I", "answer": "A"},
    "events": None,
    "transcript": {"events": [], "content": {}},
    "model_usage": None,
    "uuid": None,
}
"""Fields of a sample of format version 1 and early version 2: `completion` was not written."""


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        (AS_IN_2024, "answered"),
        ({"error": "a text, as no version writes it"}, "api_error"),
        ({"error": {"message": ["no", "text"]}}, "api_error"),
        ({"limit": "token"}, "limit"),
        ({"invalidation": {"timestamp": "2026-01-01T00:00:00Z", "author": "me"}}, "api_error"),
        ({"output": None}, "parse_error"),
        ({"output": {"completion": 7, "choices": "none"}}, "parse_error"),
        ({"output": {"completion": "", "choices": [{"stop_reason": "length"}]}}, "truncated"),
        ({"messages": [{"role": "user", "content": {"text": {"text": []}}}, 5]}, "answered"),
        ({"scores": [], "model_usage": [1], "metadata": "none", "total_time": "long"}, "answered"),
        ({"scores": {"choice": {"answer": ["C"]}}, "store": None}, "answered"),
        ({"scores": {"option": {"metadata": {"status": "refused"}}}}, "refused"),
        ({"scores": {"option": {"metadata": {"status": ["refused"]}}}}, "answered"),
        ({"scores": {"option": {"metadata": {"status": "answered"}}}, "error": {}}, "answered"),
        ({"scores": {"option": {"metadata": {"status": "answered"}}}, "error": "x"}, "api_error"),
        ({"scores": {"option": {"metadata": {"status": "answered"}}}, "limit": {"a": 1}}, "limit"),
    ],
)
def test_fields_of_any_type(logs: Path, changes: dict[str, Any], status: str) -> None:
    name = "samples/a_epoch_1.json"
    log = repacked(log_of(logs, "unscored"), {})
    with zipfile.ZipFile(log) as archive:
        sample = json.loads(archive.read(name)) | changes
    (row,) = rows_of(repacked(log, {name: json.dumps(sample).encode()}, "changed.eval"))
    assert row.status == status


@pytest.mark.parametrize("target", ["AC", "", [], None, 3, "Z", "Rest"])
def test_a_target_that_is_not_one_option_is_refused(logs: Path, target: object) -> None:
    name = "samples/a_epoch_1.json"
    log = repacked(log_of(logs, "unscored"), {})
    with zipfile.ZipFile(log) as archive:
        sample = json.loads(archive.read(name)) | {"target": target}
    with pytest.raises(ConfigError, match="names none of its options"):
        read_output(repacked(log, {name: json.dumps(sample).encode()}, "changed.eval"))


def test_several_targets_are_left_out(logs: Path) -> None:
    name = "samples/a_epoch_1.json"
    log = repacked(log_of(logs, "unscored"), {})
    with zipfile.ZipFile(log) as archive:
        sample = json.loads(archive.read(name)) | {"target": ["A", "C"]}
    with pytest.raises(ConfigError, match="several options are right in each record"):
        read_output(repacked(log, {name: json.dumps(sample).encode()}, "changed.eval"))


WITHOUT_ZSTANDARD = """
import sys
sys.modules["inspect_ai"] = sys.modules["zstandard"] = None
from mdagents.cli.commands import main
sys.exit(main(sys.argv[1:]))
"""


def test_without_inspect_one_line_says_how_to_get_it(logs: Path) -> None:
    program = [sys.executable, "-c", WITHOUT_ZSTANDARD, "score"]
    log = log_of(logs, "outcomes")
    done = subprocess.run([*program, str(log)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {log}, packed with Zstandard, needs zstandard: ")
    assert line.endswith(f"{sys.executable} -m pip install 'mdagents-bench[inspect]'")
    unpacked = str(log.with_name("log.json"))
    subprocess.run([*program, unpacked], capture_output=True, check=True)


# -- hostile archives -----------------------------------------------------------------------------


def refused(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        read_output(path)
    (line,) = str(caught.value).splitlines()
    return line


def test_a_member_that_is_too_large_is_not_unpacked() -> None:
    with (
        zipfile.ZipFile("bomb.eval", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("samples/1_epoch_1.json", "w") as member,
    ):
        for _ in range(129):
            member.write(bytes(1 << 20))
    assert "has more than 134,217,728 bytes" in refused(Path("bomb.eval"))


def test_members_that_are_too_large_together_are_not_unpacked() -> None:
    with zipfile.ZipFile("bomb.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/0_epoch_1.json", bytes(100 << 20))
        (info,) = archive.filelist
        for number in range(1, 20):  # all of them at the same place
            again = zipfile.ZipInfo(f"samples/{number}_epoch_1.json")
            for name in ("header_offset", "compress_type", "compress_size", "file_size", "CRC"):
                setattr(again, name, getattr(info, name))
            archive.filelist.append(again)
    assert "would unpack from" in refused(Path("bomb.eval"))


def test_a_size_that_is_not_true_unpacks_no_more_than_it_says() -> None:
    with zipfile.ZipFile("bomb.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/1_epoch_1.json", bytes(10 << 20))
        archive.filelist[0].file_size = 10
    assert refused(Path("bomb.eval")).endswith("is damaged")


def test_a_member_packed_in_another_way_or_encrypted() -> None:
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with zipfile.ZipFile("log.eval", "w", method) as archive:
            archive.writestr("samples/1_epoch_1.json", "{}")
        assert f"uses compression method {method}" in refused(Path("log.eval"))
    with zipfile.ZipFile("log.eval", "w") as archive:
        archive.writestr("samples/1_epoch_1.json", "{}")
        archive.filelist[0].flag_bits |= 1
    assert refused(Path("log.eval")).endswith("is encrypted")


def test_a_sample_of_any_name_is_read() -> None:
    sample = {"id": "x", "epoch": 1, "input": "?", "target": "A", "output": {"completion": "A"}}
    names = ["two\nlines", "9" * 5000, "../../up", "a/b"]
    with zipfile.ZipFile("log.eval", "w") as archive:
        for name in names:
            archive.writestr(f"samples/{name}_epoch_1.json", json.dumps({**sample, "id": name}))
    assert sorted(row.question_id for row in rows_of(Path("log.eval"))) == sorted(names)


def test_damaged_bytes_raise_nothing_else(logs: Path) -> None:
    whole = log_of(logs, "unscored").read_bytes()
    chance = random.Random(7)
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            at = chance.choice([chance.randrange(len(whole)), -chance.randrange(1, 900)])
            damaged[at] = chance.randrange(256)
        if chance.random() < 0.3:
            del damaged[chance.randrange(4, len(damaged)) :]
        Path("damaged.eval").write_bytes(damaged)
        with suppress(ConfigError):  # where the damage is in a part that is not read, there is none
            read_output(Path("damaged.eval"))


def test_a_directory_that_points_outside_the_file() -> None:
    with zipfile.ZipFile("log.eval", "w") as archive:
        archive.writestr("samples/1_epoch_1.json", "{}")
    content = bytearray(Path("log.eval").read_bytes())
    at = content.rindex(b"PK\x01\x02")
    struct.pack_into("<L", content, at + 42, 1 << 31)
    Path("log.eval").write_bytes(content)
    assert "log.eval" in refused(Path("log.eval"))


@pytest.mark.parametrize("offset", [2**63 + 5, 2**40])
def test_a_member_beyond_the_end_of_the_file_is_damaged(
    logs: Path, monkeypatch: pytest.MonkeyPatch, offset: int
) -> None:
    def infolist(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
        for info in archive.filelist:
            info.header_offset = offset  # as an extra field of ZIP64 may say
        return archive.filelist

    monkeypatch.setattr(zipfile.ZipFile, "infolist", infolist)
    with pytest.raises(ConfigError, match="is damaged"):
        ZipMembers(log_of(logs, "unscored")).read("header.json")
