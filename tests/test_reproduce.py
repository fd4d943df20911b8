"""`make reproduce`: predictions are fetched once, checked, and scored the same each time."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from scripts.reproduce import PUBLISHED, Predictions, file_name, main
from tests.conftest import REPOSITORY, SHARED
from tests.support.environment import bare_environment

pytestmark = pytest.mark.process

PAGE = REPOSITORY / "docs" / "measurements" / "published-predictions.md"
PICTURE = REPOSITORY / "docs" / "images" / "published-predictions.svg"


@pytest.mark.skipif(not (SHARED / "predictions").is_dir(), reason="no shared data here")
def test_the_published_table_is_what_the_command_makes(tmp_path: Path) -> None:
    command = [str(REPOSITORY / "scripts" / "reproduce.py"), "--from", str(SHARED / "predictions")]
    subprocess.run(
        [sys.executable, *command], cwd=tmp_path, env=bare_environment(), check=True, text=True
    )
    made = tmp_path / "evaluation" / "published-predictions.md"
    tables = re.findall(r"^(?:\|.*\n)+", made.read_text(encoding="utf-8"), re.MULTILINE)
    page = PAGE.read_text(encoding="utf-8")
    assert len(tables) == 3
    for table in tables:
        assert table in page, f"copy the tables of {made.name} to {PAGE}:\n{table}"
    drawn = made.with_name("published-predictions-accuracy-against-tokens.svg")
    assert PICTURE.read_bytes() == drawn.read_bytes(), f"copy {drawn.name} to {PICTURE}"


def test_readme_shows_rows_of_the_published_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\S+)` \|(.*)\|(.*)\|(.*)\|$", readme, re.MULTILINE)
    shown = [row for row in rows if row[0] in PUBLISHED]
    assert len(shown) >= 4
    for method, accuracy, difference, tokens in shown:
        figures = f"| {method} |{accuracy}|{tokens}|"
        assert figures in page, figures
        assert f"{method} − zero_shot |{difference}" in page or method == "zero_shot", difference


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Path]:
    """A folder that a local server serves, as GitHub serves files."""
    folder = tmp_path / "served"
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GITHUB_RAW_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
            yield folder
        server.shutdown()
        thread.join()


def _predictions(right: int) -> list[dict[str, object]]:
    """40 predictions, of which the first are right."""
    return [
        {
            "realidx": number,
            "question": f"Question {number}?",
            "answer_idx": "A",
            "options": {"A": "Yes", "B": "No"},
            "predicted_answer": "A" if number < right else "B",
            "token_usage": {"prompt_tokens": 90, "completion_tokens": 10 + right},
        }
        for number in range(40)
    ]


def _serve(folder: Path) -> dict[str, Predictions]:
    published = {}
    for method, right in (("zero_shot", 10), ("cot", 35)):
        content = json.dumps(_predictions(right), indent=4).encode()
        entry = Predictions(hashlib.sha256(content).hexdigest())
        path = folder / "xk-huang" / "medagents-benchmark" / entry.commit / "output" / "medqa"
        path.mkdir(parents=True, exist_ok=True)
        (path / file_name(method)).write_bytes(content)
        published[method] = entry
    return published


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_files_are_fetched_once_and_results_are_equal(
    served: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    published = _serve(served)
    assert main([], published=published) == 0
    out = capsys.readouterr().out
    assert out.count("fetching ") == 2
    assert "cot is better than zero_shot by 62.5 points" in out
    first = _files(Path("evaluation"))
    assert {Path(name).suffix for name in first} == {".html", ".csv", ".md", ".json", ".svg"}
    assert main(["--evaluation-dir", "again"], published=published) == 0
    assert "fetching" not in capsys.readouterr().out
    assert _files(Path("again")) == first


def test_other_files_than_the_published_ones_are_refused(
    served: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    published = _serve(served)
    wrong = {**published, "cot": Predictions("0" * 64)}
    assert main([], published=wrong) == 2
    assert "SHA-256 of xk-huang/medagents-benchmark/output" in capsys.readouterr().err

    kept = Path("data", "published-predictions", file_name("zero_shot"))
    kept.write_text("[]")
    assert main([], published=published) == 2
    assert "holds other predictions than those published" in capsys.readouterr().err


def test_a_copy_may_have_another_indent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published = _serve(tmp_path)
    copy = tmp_path / "copy"
    copy.mkdir()
    assert main(["--from", str(copy)], published=published) == 2
    assert f"there is no file {copy / file_name('zero_shot')}; check FROM=" in (
        capsys.readouterr().err
    )
    for path in tmp_path.rglob("*.json"):
        content = json.loads(path.read_text())
        (copy / path.name).write_text(json.dumps(content, indent=1, ensure_ascii=False))
    assert main(["--from", str(copy)], published=published) == 0
    (copy / file_name("cot")).write_text(json.dumps(_predictions(40)))
    assert main(["--from", str(copy)], published=published) == 2


def test_an_address_out_of_reach_names_the_way_without_network(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_RAW_ENDPOINT", "http://127.0.0.1:9")
    assert main([]) == 2
    assert "FROM=FOLDER" in capsys.readouterr().err
