"""Questions that only pixels answer: all of them right if every agent sees, none if it does not.

The fake provider decodes the bytes that it gets and names the option that they encode. All
questions have the same text and options, so neither the text nor a wrong cache entry can help.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from pathlib import Path

import pytest

from tests.fake_provider import FakeProvider, Fault, SeenRequest
from tests.mdagents.runs.engines.conftest import ended
from tests.support.environment import bare_environment
from tests.support.pictured import write_coded
from tests.support.sighted import METHODS, WIRES, flags_of, look, settings_of, without_embedder
from tests.support.whole_runs import Run, records

COUNT = 12


@pytest.fixture(autouse=True)
def _everywhere(provider: FakeProvider, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    for name, value in settings_of(provider).items():
        monkeypatch.setenv(name, value)
    without_embedder(monkeypatch.setattr)


def rights(output: str = "output") -> int:
    return sum(bool(record["correct"]) for record in records(Path(output)))


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS)
def test_every_method_sees(method: str, provider: FakeProvider, run: Run) -> None:
    look(provider)
    status, _, err = run(*write_coded(Path("data/seen")), *flags_of(method))
    assert status == 0, err
    assert rights() == COUNT
    asking = [call for call in provider.calls if "Which word do the bands" in call.text]
    assert asking
    assert all(len(call.pictures) == 1 for call in asking)


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS)
def test_swapped_pictures_make_every_answer_wrong(
    method: str, provider: FakeProvider, run: Run
) -> None:
    look(provider)
    assert run(*write_coded(Path("data/seen"), swapped=True), *flags_of(method))[0] == 0
    assert Counter(record["status"] for record in records()) == {"answered": COUNT}
    assert rights() == 0


@pytest.mark.parametrize("wire", WIRES)
def test_every_wire_carries_the_pixels(wire: str, provider: FakeProvider, run: Run) -> None:
    look(provider)
    status, _, err = run(*write_coded(Path("data/seen")), *flags_of("cot", wire))
    assert status == 0, err
    assert rights() == COUNT


def test_replies_are_replayed_for_their_picture_alone(provider: FakeProvider, run: Run) -> None:
    look(provider)
    seen, swapped = write_coded(Path("one/seen")), write_coded(Path("two/seen"), swapped=True)
    assert run(*seen, *flags_of("cot"))[0] == 0
    calls = len(provider.calls)
    assert calls <= COUNT, "questions of one picture and one order share a reply"
    replay = ("--output-dir", "output", "--cache", "only", "--fresh")
    assert run(*seen, *flags_of("cot"), *replay)[0] == 0
    assert len(provider.calls) == calls
    (last,) = Path("output").glob("*samples.json")
    assert sum(bool(record["correct"]) for record in json.loads(last.read_text())) == COUNT
    assert run(*swapped, *flags_of("cot"), "--fresh")[0] == 0
    assert sum(bool(record["correct"]) for record in json.loads(last.read_text())) == 0


@pytest.mark.long
def test_epochs(provider: FakeProvider, run: Run) -> None:
    look(provider)
    flags = ("--epochs", "3", "--cache", "off")
    assert run(*write_coded(Path("data/seen")), *flags_of("cot"), *flags)[0] == 0
    assert rights() == 3 * COUNT


@pytest.mark.long
def test_batches(provider: FakeProvider, run: Run) -> None:
    look(provider)
    assert run(*write_coded(Path("data/seen")), *flags_of("cot"), "--batch")[0] == 0
    assert rights() == COUNT


@pytest.mark.process
def test_two_processes_and_a_kill(provider: FakeProvider, run: Run) -> None:
    import subprocess
    import sys

    from tests.conftest import REPOSITORY

    look(provider)
    provider.latency = 0.1
    flags = [*write_coded(Path("data/seen")), *flags_of("basic"), "--processes", "2"]

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(REPOSITORY / "main.py"), *flags, "--max-samples", "4"],
            env=bare_environment(**settings_of(provider)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    process = start()
    provider.wait_for_calls(25)
    process.kill()
    ended(process)
    status, _, err = ended(start())
    assert status == 0, err
    assert rights() == COUNT


def test_dropped_pictures_help_nobody(provider: FakeProvider, run: Run) -> None:
    look(provider)
    provider.must_see = None
    flags = write_coded(Path("data/seen"), count=40)
    assert run(*flags, *flags_of("cot"), "--images", "drop")[0] == 0
    assert all(not call.pictures for call in provider.calls)
    assert rights() < 20, "about a quarter by chance"
    assert all(record["pictures"] == [
        {**record["pictures"][0], "sha256": "", "bytes": 0}] for record in records())  # fmt: skip


@pytest.mark.parametrize("fault", [Fault.IMAGES_REFUSED, Fault.BAD_IMAGE])
def test_a_refused_picture_is_never_an_answer(
    fault: Fault, provider: FakeProvider, run: Run
) -> None:
    look(provider)
    provider.fail_next(fault, times=1_000)
    run(*write_coded(Path("data/seen")), *flags_of("cot"))
    assert not any(call.pictures and call.status == 200 for call in provider.calls)
    arrays = list(Path("output").glob("*.json"))
    found = [record for array in arrays for record in json.loads(array.read_text())]
    assert all(record["predicted"] is None for record in found)


def test_a_model_that_says_it_sees_nothing_has_not_answered(
    provider: FakeProvider, run: Run
) -> None:
    provider.when(None, "I am sorry, I cannot see any picture.")
    assert run(*write_coded(Path("data/seen")), *flags_of("cot"))[0] in (0, 1)
    assert {record["status"] for record in records()} <= {"parse_error", "refused"}


@pytest.mark.long
@pytest.mark.parametrize("method", ["basic", "intermediate", "advanced", "medagents"])
def test_deciders_may_read_what_experts_saw(method: str, provider: FakeProvider, run: Run) -> None:
    look(provider)
    provider.must_see = None
    flags = [*write_coded(Path("data/seen")), *flags_of(method), "--image-agents", "experts"]
    status, _, err = run(*flags)
    assert status == 0, err
    assert {len(call.pictures) for call in provider.calls} == {0, 1}
    assert {record["status"] for record in records()} == {"answered"}
    assert all(record["pictures"][0]["sha256"] for record in records())


# -- EXAID and the ledger -----------------------------------------------------------------------


def test_exaid_sees_only_what_agents_say(
    provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With and without pictures, agents that say the same are summarized alike."""
    asked = "Which word do the bands"
    made_of = SeenRequest.key
    # What is made up depends on the text alone.
    monkeypatch.setattr(
        SeenRequest, "key", lambda self, seed: made_of(_without_pictures(self), seed)
    )
    provider.when(asked, {"reasoning": "The left band is black.", "answer": "A"})
    flags = [*write_coded(Path("data/seen"), count=2), *flags_of("basic"), "--exaid", "turn_end"]
    prompts, summaries = [], []
    for images in ("send", "drop"):
        provider.reset()
        # One connection: experts end in one order, in which EXAID reads what they say.
        limits = ("--max-samples", "1", "--max-connections", "1")
        cold = ("--images", images, "--output-dir", images, "--cache", "off", *limits)
        assert run(*flags, *cold)[0] == 0
        of_exaid = [call for call in provider.calls if asked not in call.text]
        assert of_exaid
        assert not any(call.pictures for call in of_exaid)
        prompts.append(sorted(call.text for call in of_exaid))
        summaries.append([
            [{k: v for k, v in one.items() if "id" not in k and "time" not in k} for one in
             record["exaid"]["summaries"]] for record in records(Path(images))])  # fmt: skip
    assert prompts[0] == prompts[1]
    assert summaries[0]
    assert len(summaries[0]) == len(summaries[1])


def _without_pictures(request: SeenRequest) -> SeenRequest:
    blind = copy.copy(request)
    object.__setattr__(blind, "pictures", ())
    return blind


def test_logged_prompts_name_their_pictures(provider: FakeProvider, run: Run) -> None:
    look(provider)
    flags = [*write_coded(Path("data/seen"), count=2), *flags_of("cot"), "--log-prompts"]
    assert run(*flags)[0] == 0
    (ledger,) = Path("output").glob("*/calls.jsonl")
    text = ledger.read_text()
    for record in records():
        (picture,) = record["pictures"]
        assert picture["sha256"] in text
        assert f"{picture['bytes']:,} bytes" in text
    assert len(text) < 20_000, "the log holds no picture"
