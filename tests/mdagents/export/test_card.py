"""Cards of runs: their numbers are those of the run, and nothing private is on them."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

import mdagents
from mdagents.export.card import make_card, without_private
from mdagents.export.card_text import card_text, write_card
from mdagents.export.cli import main
from mdagents.pages.run_card import shared_settings
from mdagents.records.manifest import RunManifest, read_manifest
from mdagents.scoring.rows import read_output
from mdagents_llm.errors import ConfigError
from tests.conftest import REPOSITORY
from tests.fake_provider import FakeProvider
from tests.support.whole_runs import Run

BASIC = ("--num-samples", "6", "--difficulty", "basic")
(EXAMPLE,) = (REPOSITORY / "mdagents" / "examples").glob("*/")


def folder(output: str = "output") -> Path:
    (found,) = Path(output).glob("*/run.json")
    return found.parent


def manifest_of(run: Path) -> RunManifest:
    manifest = read_manifest(run)
    assert manifest is not None
    return manifest


def has_the_numbers_of(run: Path) -> dict[str, Any]:
    """Check a card against `run.json`, and return it as JSON."""
    manifest = manifest_of(run)
    totals = manifest.totals
    card: dict[str, Any] = json.loads(write_card(run, as_json=True).read_text())
    assert card["figures"]["correct"] == totals.correct
    assert card["figures"]["n"] == totals.scored
    assert card["statuses"] == totals.status_counts
    assert card["finished"] == manifest.finished
    for name, value in manifest.spent.model_dump().items():
        assert card["spent"][name] == (
            pytest.approx(value) if isinstance(value, float) else value
        ), name
    sums = {name: sum(used[name] for used in card["models"]) for name in ("calls", "input_tokens")}
    assert sums == {name: card["spent"][name] for name in sums}
    text = write_card(run).read_text()
    assert f"{totals.correct:,} of {totals.scored:,}" in text
    assert f"| tokens | {manifest.spent.total_tokens:,} " in text
    return card


@pytest.mark.process
def test_a_finished_run(provider: FakeProvider, run: Run) -> None:
    run("--dataset", "medqa-sample", *BASIC)
    card = has_the_numbers_of(folder())
    assert card["finished"]
    assert card["planned"] == card["figures"]["n"] == 6
    assert card["exaid"] == "off"
    assert card["data"]["license"] == "MIT, like the project"
    assert {used["host"] for used in card["models"]} == {"127.0.0.1"}
    assert {served for used in card["models"] for served in used["served"]} == {"gpt-4o-mini"}
    manifest = manifest_of(folder())
    assert card["prompt_hashes"] == manifest.prompt_hashes
    assert card["data"]["sha256"] == manifest.dataset_sha256
    text = card_text(make_card(folder()))
    for name, digest in manifest.prompt_hashes.items():
        assert f"| {name} | {digest} |" in text
    assert f"| right | {card['figures']['correct']} of 6 |" in text
    assert "% (" not in text, "six questions are too few for a percentage"


@pytest.mark.process
def test_an_unfinished_run_and_its_resumption(run: Run) -> None:
    run(*BASIC, "--max-samples", "1", "--token-limit", "2000")
    card = has_the_numbers_of(folder())
    assert not card["finished"]
    assert 0 < sum(card["statuses"].values()) < 6 == card["planned"]
    assert any(limit.startswith("unfinished: ") for limit in card["limitations"])
    assert card["starts"][0]["reason"]
    run(*BASIC, "--max-samples", "1")
    card = has_the_numbers_of(folder())
    assert card["finished"]
    assert len(card["starts"]) == 2
    assert sum(start["new_records"] for start in card["starts"]) >= 6


@pytest.mark.process
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_run_of_two_versions_says_which_start_was_of_which(run: Run, is_killed: bool) -> None:
    run(*BASIC, "--max-samples", "1", "--token-limit", "2000")
    path = folder() / "run.json"
    content = json.loads(path.read_text()) | {"version": "0.2.0"}
    for start in content["invocations"]:
        del start["version"]  # as 0.2.0 wrote it
        if is_killed:
            start |= {"ended_at": None, "new_records": 0}
    path.write_text(json.dumps(content))
    assert make_card(folder()).version == "0.2.0"
    _, _, err = run(*BASIC, "--max-samples", "1")
    note = "NOTE: earlier answers are of version 0.2.0, new ones of "
    assert f"{note}{mdagents.__version__}" in " ".join(err.split())
    manifest = manifest_of(folder())
    assert [start.version for start in manifest.invocations] == ["0.2.0", mdagents.__version__]
    assert manifest.version == mdagents.__version__
    both = f"0.2.0, {mdagents.__version__}"
    assert f"| mdagents | {both} |" in card_text(make_card(folder()))
    shared, _ = shared_settings([read_output(folder())], ["this run"])
    assert f"version {both}" in shared


@pytest.mark.process
def test_a_killed_run_has_the_sums_of_its_ledger(run: Run) -> None:
    run(*BASIC)
    manifest = manifest_of(folder())
    spent = manifest.spent.model_copy()
    manifest.invocations[0].ended_at = None
    manifest.finished, manifest.spent.input_tokens = False, 1  # as a kill leaves it
    (folder() / "run.json").write_text(manifest.model_dump_json())
    card = make_card(folder())
    assert card.spent.total_tokens == spent.total_tokens
    assert "the run is in progress or was killed: its numbers may still change" in card.limitations
    assert "in progress, or killed" in card_text(card)
    (folder() / "calls.jsonl").unlink()
    without = make_card(folder())
    assert without.ledger_rows is None
    assert any(text.startswith("calls.jsonl is missing") for text in without.limitations)


@pytest.mark.process
def test_a_run_with_errors(provider: FakeProvider, run: Run) -> None:
    provider.fail_next("context_length", times=1)
    run(*BASIC, "--max-samples", "1", "--max-retries", "0", "--exaid", "full_exaid")
    card = has_the_numbers_of(folder())
    assert card["statuses"].keys() == {"answered", "api_error"}
    assert card["exaid"] == "full_exaid"
    assert card["spent"]["exaid_calls"] > 0
    failed = "1 answer without a letter count as wrong, not as excluded"
    assert failed in card["limitations"]
    assert "| api_error | 1 | wrong |" in card_text(make_card(folder()))


@pytest.mark.process
def test_skipped_questions_are_excluded(provider: FakeProvider, run: Run) -> None:
    levels = iter(["basic", "intermediate", "basic"])
    provider.when("triage officer", lambda _: {"difficulty": next(levels)})
    run("--num-samples", "3", "--max-samples", "1", intermediate=True)
    card = has_the_numbers_of(folder())
    assert card["statuses"]["skipped"] == 1
    assert card["figures"]["n"] == 2
    assert "| excluded | 1 skipped |" in card_text(make_card(folder()))


# -- a run that is shipped: without a provider ------------------------------------------------


def a_copy() -> Path:
    """The shipped run, in the working directory of the test."""
    return Path(shutil.copytree(EXAMPLE, EXAMPLE.name))


def test_the_card_of_the_shipped_run() -> None:
    run = a_copy()
    card = has_the_numbers_of(run)
    assert card["spent"]["cost_usd"] is None
    assert "| cost | not known |" in (run / "card.md").read_text()
    assert (run / "card.md").read_bytes() == write_card(run / "samples.jsonl").read_bytes()


def test_the_command_writes_a_card(capsys: pytest.CaptureFixture[str]) -> None:
    run = a_copy()
    assert main(["--card", str(run)]) == 0
    assert capsys.readouterr().out == f"{run / 'card.md'}\n"
    assert main(["--card", "--json", str(run), "--output", "mine.json"]) == 0
    assert json.loads(Path("mine.json").read_text())["name"] == run.name
    for wrong in (
        ["--json"],
        ["--card", "--output", "x.json"],
        ["--card", "--json", "--output", "x.md"],
    ):
        assert main([*wrong, str(run)]) == 2
        assert "error: --" in capsys.readouterr().err


def test_nothing_private_is_on_a_card() -> None:
    run = a_copy()
    manifest = manifest_of(run)
    manifest.options |= {
        "model_base_url": "https://me:secret@corp.example/v1?api-key=secret",
        "model_role": ["expert=/home/secret/x.gguf"],
        "dataset": "/home/secret/questions.jsonl",
        "data_dir": "/home/secret",
    }
    manifest.dataset_path = "../secret/questions.jsonl"
    manifest.dataset_notice = "see /home/secret/notes.txt"
    manifest.invocations[
        0
    ].reason = (
        "stopped: https://me:secret@corp.example/v1?api-key=secret gave 500; /home/secret/y is full"
    )
    (run / "run.json").write_text(manifest.model_dump_json())
    text = write_card(run).read_text() + write_card(run, as_json=True).read_text()
    assert "secret" not in text
    assert "corp.example gave 500" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cannot write /home/joe/x/run.json: No space", "cannot write run.json: No space"),
        ("https://me:pw@host.corp:80/v1?key=abc failed", "https://host.corp failed"),
        (r"C:\Users\me\x.gguf", "x.gguf"),
        ("~/models/b.gguf", "b.gguf"),
        ("and/or 5/10, openai/gpt-4o-mini", "and/or 5/10, openai/gpt-4o-mini"),
    ],
)
def test_private_parts_of_a_text(text: str, shown: str) -> None:
    assert without_private(text) == shown


def test_names_from_outside_stay_text() -> None:
    run = a_copy()
    hostile = (
        "x|y](https://evil.example)<script>`\n# Heading\n| a | b | www.evil.example"
        " `www.evil.example (WWW.evil.example) m@evil.example <xmpp:m.n+o@evil.example> ftp://evil.example"
    )
    manifest = manifest_of(run)
    manifest.dataset = hostile
    manifest.options["difficulty"] = hostile
    (run / "run.json").write_text(manifest.model_dump_json())
    text = write_card(run).read_text()
    reader = MarkdownIt("commonmark", {"linkify": True}).enable(["table", "linkify"])
    tokens = reader.parse(text)
    assert [token.tag for token in tokens if token.type == "heading_open"].count("h1") == 1
    inner = [child for token in tokens for child in token.children or ()]
    assert not {child.type for child in inner} & {"link_open", "html_inline", "image"}
    assert not any(token.type == "html_block" for token in tokens)
    rows = [line for line in text.splitlines() if line.startswith("| difficulty |")]
    assert len(rows) == 1
    # GitHub looks for addresses in text without its escapes, but not in code.
    plain = "".join(child.content for child in inner if child.type == "text")
    assert not re.search(r"www\.|@|://", plain, re.IGNORECASE)
    assert "`m.n+o@evil.example`" in text


def test_a_long_name_takes_no_long_time() -> None:
    card = make_card(a_copy())
    for name in ("a." * 50_000, "w" * 100_000, "a@" * 50_000, "a@b" * 30_000):
        assert name in card_text(replace(card, name=name))


def test_a_file_of_another_program_has_no_card() -> None:
    Path("other.json").write_text((EXAMPLE.parent / f"{EXAMPLE.name}.json").read_text())
    with pytest.raises(ConfigError, match=r"no run\.json"):
        make_card(Path("other.json"))
