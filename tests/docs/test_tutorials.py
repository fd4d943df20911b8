"""Every command of docs/tutorials runs in order, and prints what its page shows.

A page is read from top to bottom. A block of a file's kind (`python`, `csv`, …) is saved under the
name that the paragraph before it mentions last. A block `sh` is run line by line in a folder like a
clone. A block `text` is what the block before it printed: numbers may differ, and `…` stands for
anything. A block without a language is neither run nor compared. A comment after a line may say to
press Ctrl-C, which happens after some answers, or name its exit status.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from scripts import first_run
from tests.conftest import CACHE_DIR, REPOSITORY
from tests.docs.stand_in import give_skill, speak_of_chest_pain, write_questions
from tests.fake_provider import FakeProvider
from tests.support.environment import bare_environment

PAGES = sorted((REPOSITORY / "docs" / "tutorials").glob("*.md"))
EMBEDDED = "first-run"
"""The page whose model is the embedded one; its words differ from machine to machine."""
INSTEAD = {
    "git clone URL-OF-THIS-REPOSITORY mdagents-bench": "true",
    "cd mdagents-bench": "true",
    "make run": ".venv/bin/python scripts/first_run.py",
    ".venv/bin/python -m pip install": "true",
    "data download medqa": "data download medqa --from ../medqa.jsonl",
}
"""What is run in place of a text in a command: the clone exists, and nothing is downloaded."""
LINKED = ("main.py", "study.py", "view.py", "evaluate_text_output.py", "scripts", "Makefile")
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"`([\w./-]*\.\w+)`")
_ANSWERS = 3  # after as many a run is interrupted
_SECONDS = 800  # of a command: conftest ends a test after 900


@dataclass
class Step:
    """A block of commands with what the page shows of their output."""

    commands: list[str]
    files: dict[str, str]
    """Name -> content of the files that are saved before."""
    shown: list[str] = field(default_factory=list)


def steps_of(page: Path) -> list[Step]:
    """Return the steps of a page, in order."""
    text = page.read_text(encoding="utf-8")
    steps: list[Step] = []
    files: dict[str, str] = {}
    for block in _BLOCK.finditer(text):
        language, content = block.groups()
        if language == "sh":
            joined = content.replace("\\\n", "")
            steps.append(Step([line for line in joined.splitlines() if line.strip()], files))
            files = {}
        elif language == "text":
            steps[-1].shown.append(content)
        elif language:
            paragraph = text[: block.start()].rstrip().rpartition("\n\n")[2]
            names = _FILE.findall(paragraph)
            assert names, f"{page.name} does not say where this is saved:\n{content}"
            files = {**files, names[-1]: content}
    return steps


def masked(text: str) -> str:
    """Return a text without what differs from run to run: numbers, times, hashes, line breaks."""
    text = re.sub(r"_[0-9a-f]{8}\b", "_HASH", text)
    text = re.sub(r"http://\S+", "URL", text)
    text = re.sub(r"\b[A-Z_]+=\S+ (?=\S)", "", text)  # set for the command, which repeats it
    text = re.sub(r"[-+=]{2,}|[┌─┬┐├┼┤└┴┘]+", " ", text)
    text = re.sub(r"−?\d[\d.,:–-]*\d|\d", "0", text)
    return re.sub(r" ?\| ?", "|", " ".join(text.split()))


def missing(shown: str, printed: str) -> str | None:
    """Return the first part of what is shown that was not printed, if there is one."""
    actual, at = masked(printed), 0
    for part in filter(None, map(masked, shown.split("…"))):
        found = actual.find(part, at)
        if found < 0:
            return part
        at = found + len(part)
    return None


class Clone:
    """A folder like a clone, in which the commands of a page are run."""

    def __init__(self, folder: Path, provider: FakeProvider) -> None:
        self.folder = folder
        folder.mkdir()
        for name in LINKED:
            (folder / name).symlink_to(REPOSITORY / name)
        (folder / ".venv").symlink_to(Path(sys.executable).parent.parent)
        shutil.copytree(REPOSITORY / "data", folder / "data")
        for name in ("MedQA", "medqa"):  # a developer's own downloads
            (folder / "data" / name / "test.jsonl").unlink(missing_ok=True)
        self.variables = bare_environment(
            GOOGLE_API_KEY="test-key",
            GOOGLE_GEMINI_BASE_URL=provider.gemini_base_url,
            HOME=str(folder),
            MDAGENTS_CACHE_DIR=str(CACHE_DIR),
            PYTHONUNBUFFERED="1",
        )

    def run(self, line: str) -> tuple[int, str]:
        """Run a line; return its exit status and all that it printed."""
        command, _, comment = line.partition("  #")
        for written, here in INSTEAD.items():
            command = command.replace(written, here)
        with subprocess.Popen(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            if "Ctrl-C" in comment:
                _wait_for(self._has_answers, process)
                os.killpg(process.pid, signal.SIGINT)
            out, _ = process.communicate(timeout=_SECONDS)
        return process.returncode, out

    def _has_answers(self) -> bool:
        files = self.folder.glob("output/*/samples.jsonl")
        return any(file.read_bytes().count(b"\n") >= _ANSWERS for file in files)


def _status_of(line: str) -> int:
    if "Ctrl-C" in line:
        return 130
    named = re.search(r"# exit status (\d+)", line)
    return int(named[1]) if named else 0


def _wait_for(happened: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + _SECONDS
    while not happened() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)


@pytest.fixture
def clone(tmp_path: Path, provider: FakeProvider) -> Clone:
    """A clone whose key is the fake provider's; its MedQA, not yet downloaded, is made up."""
    write_questions(tmp_path / "medqa.jsonl")
    give_skill(provider, tmp_path / "medqa.jsonl")
    provider.latency = 0.02
    return Clone(tmp_path / "mdagents-bench", provider)


def follow(page: Path, clone: Clone) -> None:
    """Run a page; fail where it shows what is not printed.

    MedQA is there unless the page downloads it.
    """
    if "data download medqa" not in page.read_text(encoding="utf-8"):
        shutil.copy(clone.folder.parent / "medqa.jsonl", clone.folder / "data/medqa/test.jsonl")
    transcript = clone.folder / "transcript.txt"
    for step in steps_of(page):
        for name, content in step.files.items():
            (clone.folder / name).write_text(content, encoding="utf-8")
        printed = ""
        for line in step.commands:
            status, out = clone.run(line)
            printed += out
            with transcript.open("a", encoding="utf-8") as file:
                file.write(f"$ {line}\n{out}[{status}]\n")
            assert status == _status_of(line), f"{line}\n{out}"
        for shown in step.shown:
            if page.stem == EMBEDDED:
                shown = re.sub(r"^(sample-|\|| {3}).*$", "…", shown, flags=re.MULTILINE)
            lacking = missing(shown, printed)
            assert lacking is None, f"{page.name} shows what was not printed:\n{lacking}\n{printed}"


def test_each_tutorial_is_there_and_as_long_as_a_lesson() -> None:
    assert [page.stem for page in PAGES] == [
        "exaid-in-langgraph", "first-run", "is-a-team-worth-it", "own-data", "own-method",
        "your-model",
    ]  # fmt: skip
    for page in PAGES:
        prose = _BLOCK.sub("", page.read_text(encoding="utf-8"))
        assert 300 <= len(prose.split()) <= 700, page.name
        assert "## Next" in prose, page.name


def test_what_is_shown_may_differ_in_numbers_only() -> None:
    printed = "| all | 75.0% | 1,930 |\nwritten: evaluation/a_0123abcd.html\n"
    assert missing("| all | 71.5% | 22 |\n…\nwritten: evaluation/a_ffffffff.html", printed) is None
    assert missing("|none | 75.0% |1,930|", printed) == "|none|0%|0|"
    assert missing("written: …\n| all", printed) == "|all"


@pytest.mark.long
@pytest.mark.embedded
@pytest.mark.process
def test_the_first_run(clone: Clone) -> None:
    """It shows the router, each team, summaries with content, and where the page is.

    What the model replied to `make run` in this clone is not generated again.
    """
    if (replies := REPOSITORY / "output" / ".cache").exists():
        shutil.copytree(replies, clone.folder / "output" / ".cache")
    follow(REPOSITORY / "docs" / "tutorials" / f"{EMBEDDED}.md", clone)
    out = (clone.folder / "transcript.txt").read_text(encoding="utf-8")
    assert re.search(r"^sample-001 routed to \w+ by the router: \w", out, re.MULTILINE)
    for number, level in enumerate(("basic", "intermediate", "advanced"), start=2):
        assert f"sample-00{number} goes to {level}, as --difficulty says" in out
    assert "status: answered 4" in out
    blocks = re.findall(r"^sample-\d+ EXAID summary \d+\n((?:   .+\n)+)", out, re.MULTILINE)
    assert len(blocks) >= 4
    for block in blocks:
        lines = [line.strip() for line in block.rstrip().split("\n")]
        assert len(lines) >= 6
        assert not all(line.endswith(": None reported.") for line in lines), block
    assert "too few questions to show: percentages" in out
    assert len(re.findall("These questions were written for this project", out)) == 1
    paths = re.findall(r"^written: (\S+)$", out, re.MULTILINE)
    assert [Path(path).suffix for path in paths] == [".csv", ".json", ".html"]
    assert all((clone.folder / path).stat().st_size > 0 for path in paths)
    assert out.rstrip().removesuffix("[0]").rstrip().endswith(first_run.what_next().rstrip())


@pytest.mark.long
@pytest.mark.process
@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.stem != EMBEDDED], ids=lambda page: page.stem
)
def test_a_tutorial(page: Path, clone: Clone, provider: FakeProvider) -> None:
    if page.stem == "exaid-in-langgraph":
        speak_of_chest_pain(provider)
    follow(page, clone)
