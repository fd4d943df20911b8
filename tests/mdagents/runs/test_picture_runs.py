"""Runs with pictures: what is refused before a call, kept in the folder, and part of a run."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from mdagents import RunConfig, answer
from mdagents.datasets.dataset import IndexEntry, open_dataset
from mdagents.datasets.pictures import preparing
from mdagents.records.manifest import RunManifest
from mdagents.records.pictures import PictureRecord
from mdagents.runs import run_pictures
from mdagents.runs.run_pictures import plan_pictures
from mdagents_llm.errors import ConfigError
from tests.fake_provider import FakeProvider, SeenRequest
from tests.support.pictured import png, write_pictured
from tests.support.pictures import coded_picture
from tests.support.whole_runs import SAMPLE, Run, records

RED, GREEN, BLUE = (200, 0, 0), (0, 200, 0), (0, 0, 200)
COT = ("--method", "cot")


@pytest.fixture
def three() -> list[str]:
    """Flags of three questions with one picture each; the first and the last show the same."""
    return write_pictured([png(RED), png(GREEN), png(RED)], "ABC")


def manifest(output: str = "output") -> RunManifest:
    (file,) = Path(output).glob("*/run.json")
    return RunManifest.model_validate_json(file.read_bytes())


def pictures_of(record: dict[str, Any]) -> list[PictureRecord]:
    return [PictureRecord.model_validate(one) for one in record["pictures"]]


# -- records and copies -----------------------------------------------------------------------


def test_records_name_what_was_sent_and_the_folder_keeps_each_once(
    run: Run, three: list[str]
) -> None:
    assert run(*three, *COT)[0] == 0
    (folder,) = (path.parent for path in Path("output").glob("*/run.json"))
    sent = [one for record in records() for one in pictures_of(record)]
    assert [one.name for one in sent] == ["picture-1.png", "picture-2.png", "picture-3.png"]
    assert all(one.was_sent for one in sent)
    assert sent[0].sha256 == sent[2].sha256 != sent[1].sha256
    copies = sorted(folder.glob("pictures/*"))
    assert len(copies) == 2, "one copy for two questions, and nothing half-written"
    for one in sent:
        assert (folder / one.file).stat().st_size == one.bytes
    assert manifest().pictured == 3
    text = (folder / "samples.jsonl").read_text() + (folder / "run.json").read_text()
    assert str(Path.cwd()) not in text


def test_a_copy_is_there_before_its_question_is_asked(
    provider: FakeProvider, run: Run, three: list[str]
) -> None:
    copies = []

    def counting(request: SeenRequest) -> dict[str, Any]:
        copies.append(len(list(Path("output").glob("*/pictures/*.png"))))
        return {}

    provider.when("think step by step", counting)
    assert run(*three, *COT, "--max-samples", "1")[0] == 0
    assert copies == [1, 2, 2]


def test_copies_of_a_private_run_are_private(run: Run, three: list[str]) -> None:
    assert run(*three, *COT, "--log-prompts")[0] == 0
    for path in Path("output").glob("*/pictures/*"):
        assert path.stat().st_mode & 0o077 == 0


def test_a_copy_that_cannot_be_written_ends_the_run(
    provider: FakeProvider, run: Run, three: list[str]
) -> None:
    def blocked(request: SeenRequest) -> dict[str, Any]:
        (folder,) = Path("output").glob("*/pictures")
        folder.rename(folder.with_name("moved"))
        folder.write_text("not a folder")
        return {}

    provider.when("think step by step", blocked, times=1)
    status, _, err = run(*three, *COT, "--max-samples", "1")
    assert status == 1
    assert "stopped: cannot write to output/" in err
    assert len(records()) == 1, "what is finished is kept"


# -- what is refused before the first call ----------------------------------------------------


def refused(provider: FakeProvider, run: Run, *arguments: str) -> str:
    status, _, err = run(*arguments)
    assert status == 2, err
    assert not provider.calls
    assert not Path("output").exists()
    assert err.count("\n") == 1
    return err


def test_a_missing_picture(provider: FakeProvider, run: Run, three: list[str]) -> None:
    Path("seen/picture-2.png").unlink()
    err = refused(provider, run, *three, *COT)
    assert "1 of the 3 questions have a picture that is not there" in err
    assert "q-2" in err
    assert "--skip-pictures" in err


def test_a_picture_that_is_none(provider: FakeProvider, run: Run, three: list[str]) -> None:
    Path("seen/picture-2.png").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    err = refused(provider, run, *three, *COT)
    assert "1 of the 3 questions have a picture that cannot be sent" in err
    assert "q-2" in err
    assert "--images drop asks them without it" in err
    assert run(*three, *COT, "--images", "drop")[0] == 0


def test_a_flag_of_pictures_where_there_are_none(provider: FakeProvider, run: Run) -> None:
    for flag in ("--images=drop", "--image-agents=experts", "--image-detail=low"):
        err = refused(provider, run, "--num-samples", "2", flag)
        assert f"none of the selected questions has a picture; leave {flag.split('=')[0]}" in err
        assert run("--num-samples", "2", flag, "--dry-run")[0] == 2


def test_a_flag_of_pictures_that_are_not_shown(
    provider: FakeProvider, run: Run, three: list[str]
) -> None:
    err = refused(provider, run, *three, "--images", "drop", "--image-max-pixels", "10000")
    assert "--images drop shows no pictures; leave --image-max-pixels out" in err


def test_a_limit_that_would_leave_nothing_to_see_is_refused(
    provider: FakeProvider, run: Run, three: list[str]
) -> None:
    err = refused(provider, run, *three, "--image-max-pixels", "9999")
    assert "--image-max-pixels is 9999 but must be at least 10000" in err


def test_experts_alone_see_where_there_are_none(
    provider: FakeProvider, run: Run, three: list[str]
) -> None:
    err = refused(provider, run, *three, *COT, "--image-agents", "experts")
    assert "--method cot has no experts" in err


# -- without pictures -------------------------------------------------------------------------


def test_dropped_pictures_are_named_wherever_a_result_is(
    provider: FakeProvider, run: Run, three: list[str]
) -> None:
    status, out, err = run(*three, *COT, "--images", "drop")
    assert status == 0, err
    assert "_without-pictures" in manifest().name
    assert manifest().method == "cot, without pictures"
    assert "3 of them without pictures that they have" in err
    assert "NOTE: asked without pictures (--images drop): 3 of the 3 questions" in out + err
    for record in records():
        (picture,) = pictures_of(record)
        assert not picture.was_sent
        assert picture.name
    assert not list(Path("output").glob("*/pictures"))


def test_runs_with_and_without_pictures_are_two_runs_that_a_comparison_tells_apart(
    run: Run, three: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    from mdagents.cli.score import main as score

    assert run(*three, *COT)[0] == 0
    assert run(*three, *COT, "--images", "drop")[0] == 0
    arrays = sorted(map(str, Path("output").glob("*.json")))
    assert len(arrays) == 2
    assert score(["--compare", *arrays]) == 0
    shown = capsys.readouterr()
    assert "without pictures: asked without pictures (--images drop)" in " ".join(
        (shown.out + shown.err).split()
    )


# -- identity ---------------------------------------------------------------------------------


def test_text_runs_are_what_they_were_whatever_the_flags_of_pictures_say(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("--num-samples", "2", *COT)[0] == 0
    before = manifest()
    monkeypatch.setenv("MDAGENTS_IMAGES", "drop")
    monkeypatch.setenv("MDAGENTS_IMAGE_DETAIL", "high")
    monkeypatch.setenv("MDAGENTS_IMAGE_AGENTS", "experts")
    _, _, err = run("--num-samples", "2", *COT)
    assert "already finished" in err
    assert manifest().config_hash == before.config_hash


@pytest.mark.parametrize("flag", ["--image-detail=high", "--image-max-pixels=10000"])
def test_another_way_of_showing_is_another_run(run: Run, three: list[str], flag: str) -> None:
    assert run(*three, *COT)[0] == 0
    assert run(*three, *COT, flag)[0] == 0
    assert len(list(Path("output").glob("*.json"))) == 2


def test_a_picture_replaced_between_two_starts_is_another_run(run: Run, three: list[str]) -> None:
    assert run(*three, *COT)[0] == 0
    Path("seen/picture-2.png").write_bytes(png(BLUE))
    status, _, err = run(*three, *COT)
    assert status == 2
    assert "holds a run that differs in pictures_sha256" in err


def test_pictures_of_one_name_in_two_folders_are_two_pictures(
    provider: FakeProvider, run: Run
) -> None:
    one = write_pictured([png(RED)], "A", Path("one/test.jsonl"))
    two = write_pictured([png(GREEN)], "A", Path("two/test.jsonl"))
    for flags in (one, two):
        assert run(*flags, *COT)[0] == 0
    files = sorted(Path("output").glob("*/run.json"))
    first, second = (RunManifest.model_validate_json(file.read_bytes()) for file in files)
    assert first.config_hash != second.config_hash
    assert len(provider.calls) == 2, "the reply about one is not replayed for the other"


# -- errors cost one question -----------------------------------------------------------------


def test_a_picture_changed_during_the_run_costs_its_question(
    provider: FakeProvider, run: Run, three: list[str]
) -> None:
    def replacing(request: SeenRequest) -> dict[str, Any]:
        Path("seen/picture-3.png").write_bytes(png(BLUE))
        return {}

    provider.when("think step by step", replacing, times=1)
    assert run(*three, *COT, "--max-samples", "1")[0] == 0
    assert [record["status"] for record in records()] == ["answered", "answered", "api_error"]
    assert records()[2]["error"] == "the picture picture-3.png was changed while it was in use"
    assert len(provider.calls) == 2


def test_a_file_that_ends_early_costs_its_question(provider: FakeProvider, run: Run) -> None:
    whole = coded_picture("amber", grain=True)
    flags = write_pictured([png(RED), whole[: len(whole) // 2], png(GREEN)], "ABC")
    assert run(*flags, *COT)[0] == 0
    assert [record["status"] for record in records()] == ["answered", "api_error", "answered"]
    error = records()[1]["error"]
    assert "picture-2.png" in error
    assert "\n" not in error
    assert str(Path.cwd()) not in error
    Path("seen/picture-2.png").write_bytes(whole)
    status, _, err = run(*flags, *COT, "--retry-errors")
    assert status == 2, "other contents are another run"
    assert "pictures_sha256" in err


def test_whatever_a_decoder_raises_costs_the_question(
    provider: FakeProvider, run: Run, three: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MDAGENTS_DEBUG")
    prepare = preparing.prepare_picture

    def raising(picture: Any, settings: Any, label: str) -> Any:
        if picture.content == png(GREEN):
            raise MemoryError(f"cannot hold {Path.cwd()}")
        return prepare(picture, settings, label)

    monkeypatch.setattr(run_pictures, "prepare_picture", raising)
    assert run(*three, *COT)[0] == 0
    bad = records()[1]
    assert bad["status"] == "api_error"
    assert bad["error"] == "the picture picture-2.png cannot be shown: unexpected MemoryError"
    assert not pictures_of(bad)[0].was_sent
    assert bad["calls"] == 0
    monkeypatch.undo()


def test_a_picture_that_is_never_read_costs_its_question_in_time(
    run: Run, three: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()
    prepare = preparing.prepare_picture

    def slow(picture: Any, settings: Any, label: str) -> Any:
        if picture.content == png(GREEN):
            released.wait(30)
        return prepare(picture, settings, label)

    monkeypatch.setattr(run_pictures, "prepare_picture", slow)
    monkeypatch.setattr(run_pictures, "_PATIENCE", 0.2)
    threading.Timer(1.0, released.set).start()
    assert run(*three, *COT)[0] == 0
    assert [record["status"] for record in records()] == ["answered", "api_error", "answered"]
    assert "not read within 0.2 s" in records()[1]["error"]


def test_few_are_prepared_at_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = write_pictured([png((n, n, n)) for n in range(12)], "ABCD" * 3)
    prepare, lock, now, most = preparing.prepare_picture, threading.Lock(), 0, 0

    def counting(*args: Any) -> Any:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        made = prepare(*args)
        with lock:
            now -= 1
        return made

    monkeypatch.setattr(run_pictures, "prepare_picture", counting)
    assert run(*flags, *COT)[0] == 0
    assert 1 <= most <= 4


# -- questions with pictures beside others ------------------------------------------------------


def test_questions_without_pictures_are_asked_beside_those_with(
    provider: FakeProvider, run: Run, three: list[str]
) -> None:
    file = Path("seen/test.jsonl")
    plain = [json.loads(line) for line in file.read_text().splitlines()]
    for number, record in enumerate(plain):
        record |= {"id": f"plain-{number}", "question": f"Which vitamin is lacking, {number}?"}
        del record["images"]
    file.write_text(file.read_text() + "".join(json.dumps(one) + "\n" for one in plain))
    status, _, err = run(*three, *COT)
    assert status == 0
    assert "6 questions, 3 of them with pictures" in err
    assert [len(record["pictures"]) for record in records()] == [1, 1, 1, 0, 0, 0]
    status, out, _ = run(*three, *COT, "--dry-run", "--fresh")
    assert "6 questions to answer" in out
    assert run(*three, *COT, "--skip-pictures")[0] == 0


def test_the_identity_of_pictures_is_that_of_their_contents(tmp_path: Path) -> None:
    """It holds wherever the files are and in whatever order."""
    for name, color in (("a.png", RED), ("b.png", GREEN)):
        (tmp_path / name).write_bytes(png(color))
    plain = {"question": "?", "options": ["y", "n"], "answer_idx": "A"}
    rows = [
        plain | {"id": "p", "image": "a.png"},
        plain | {"id": "q", "images": ["a.png", "b.png"]},
        plain | {"id": "r"},
    ]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    dataset = open_dataset(str(tmp_path / "x.jsonl"), tmp_path)
    entries = dataset.index

    def identity(entries: Sequence[IndexEntry]) -> str:
        return plan_pictures(dataset, entries, RunConfig()).sha256

    before = identity(entries)
    assert identity(entries[2:]) == ""
    assert identity(entries[::-1]) == before != identity(entries[:1])
    (tmp_path / "images").mkdir()
    (tmp_path / "a.png").rename(tmp_path / "images" / "a.png")
    assert identity(entries) == before
    (tmp_path / "b.png").write_bytes(png(BLUE))
    assert identity(entries) != before


# -- forecast ---------------------------------------------------------------------------------


def test_a_forecast_says_how_large_pictures_are(run: Run, three: list[str]) -> None:
    status, out, _ = run(*three, *COT, "--dry-run")
    assert status == 0
    assert "3 questions have pictures; those of a question take about" in " ".join(out.split())


def test_a_forecast_takes_pictures_of_the_mean_size(run: Run, three: list[str]) -> None:
    """Texts of one length do not hide that one picture is 30 times as large as the others."""
    file = Path("seen/test.jsonl")
    plain = [json.loads(line) for line in file.read_text().splitlines()]
    Image.new("L", (56, 56)).save("seen/small.png")
    Image.new("L", (1024, 1024)).save("seen/large.png")
    Image.new("L", (720, 720)).save("seen/middle.png")
    for names in (["small", "large", "middle"], ["large", "middle", "small"]):
        for record, name in zip(plain, names, strict=True):
            record["images"] = [f"{name}.png"]
        file.write_text("".join(json.dumps(record) + "\n" for record in plain))
        status, out, _ = run(*three, *COT, "--model", "claude-haiku-4-5", "--dry-run")
        assert status == 0
        tokens = int(re.findall(r"calls, ([\d,]+) tokens in", out)[0].replace(",", ""))
        mean = (4 + 37**2 + 26**2) / 3
        assert mean - 100 < tokens / 3 < mean + 400


# -- from Python ------------------------------------------------------------------------------


async def _asked(pictures: Any, **settings: Any) -> Any:
    config = RunConfig(method="cot", **settings)
    options = ["left", "right"]
    return await answer("Which side?", options, model="openai/gpt-4o-mini", images=pictures,
                        config=config)  # fmt: skip


def test_a_question_from_python_has_pictures(
    provider: FakeProvider, run: Run, three: list[str]
) -> None:
    record = asyncio.run(_asked([Path("seen/picture-1.png"), png(GREEN)]))
    assert record.status == "answered"
    assert [one.was_sent for one in record.pictures] == [True, True]
    assert record.pictures[0].name == "picture-1.png"
    record = asyncio.run(_asked([png(RED)], images="drop"))
    assert [one.was_sent for one in record.pictures] == [False]


@pytest.mark.parametrize(
    "images",
    ["seen/picture-1.png", ["https://example.org/x.png"], [3], [png(RED)] * 17, [b"text"], ["no"]],
)
def test_what_is_no_picture_is_refused(run: Run, three: list[str], images: Any) -> None:
    with pytest.raises(ConfigError):
        asyncio.run(_asked(images))


# -- what a text run costs --------------------------------------------------------------------


@pytest.mark.process
def test_a_text_run_loads_no_imaging(provider: FakeProvider) -> None:
    import subprocess
    import sys

    from tests.support.environment import bare_environment

    code = (
        "import sys; from mdagents.runs.program import main; "
        f"s = main(['--dataset', {str(SAMPLE)!r}, '--num-samples', '1', '--method', 'cot'], "
        "skip=(), show_interaction_table=False); "
        "print(s, sorted(m for m in sys.modules if m.partition('.')[0] in ('PIL', 'pydicom')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=bare_environment(
            MDAGENTS_EXAID="off", OPENAI_API_KEY="k", OPENAI_BASE_URL=provider.openai_base_url
        ),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "0 []"


# -- models without eyes ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flags",
    [
        (*COT, "--model", "local"),
        ("--method", "reconcile", "--model-role", "expert-1=gpt-4o-mini",
         "--model-role", "expert-2=local"),
    ],
)  # fmt: skip
def test_a_model_known_to_be_blind_is_not_asked(
    provider: FakeProvider, run: Run, three: list[str], flags: tuple[str, ...]
) -> None:
    err = refused(provider, run, *three, *flags)
    assert "3 of the questions have pictures, and local/" in err
    assert "takes none; choose another model, ask with --images drop" in err


def test_a_model_of_which_nothing_is_known_is_asked(
    provider: FakeProvider, run: Run, three: list[str]
) -> None:
    assert run(*three, *COT, "--model", "openai/new-model-of-tomorrow")[0] == 0
    assert all(call.pictures for call in provider.calls)
