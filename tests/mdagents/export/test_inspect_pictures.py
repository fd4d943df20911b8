"""Pictures in the log for Inspect: that its own reader finds them where its viewer looks."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mdagents.export import export_run
from mdagents.export.pictures import PictureReader
from mdagents.records.pictures import PictureRecord
from tests.mdagents.scoring.result_records import OPTIONS, ours, write
from tests.support.run_pictures import named, noise, record_of
from tests.support.whole_runs import Run

pytestmark = pytest.mark.process

DROPPED = PictureRecord(name="unseen.png", caption="What no agent saw")

# Inspect's own reading of a log, of its conversion, and of what its viewer resolves.
READER = """
import json, sys, warnings
from pathlib import Path
warnings.simplefilter("error")
from inspect_ai.log import convert_eval_logs, read_eval_log

def parts(messages):
    return [[p.model_dump(exclude_none=True) for p in m.content] for m in messages]

name = sys.argv[1]
convert_eval_logs(name, "eval", "converted")
read = []
for path in (name, f"converted/{Path(name).stem}.eval"):
    (sample,) = read_eval_log(path, resolve_attachments=True).samples
    prompts = [parts(e.input[1:2]) for e in sample.events if e.event == "model" and e.input]
    (begun,) = [e.sample for e in sample.events if e.event == "sample_init"]
    read.append([parts(sample.input), parts(sample.messages[:1]), parts(begun.input), prompts])
    (plain,) = read_eval_log(path).samples
    read[-1].append(plain.attachments)
print(json.dumps(read))
"""


def read(log: Path) -> list[Any]:
    """What Inspect reads: of the log, and of the log that it converted."""
    done = subprocess.run(
        [sys.executable, "-c", READER, str(log)],
        env={**os.environ, "HOME": str(Path.cwd()), "XDG_DATA_HOME": str(Path.cwd())},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_inspect_reads_the_pictures_of_the_input_and_of_logged_prompts(run: Run) -> None:
    assert run("--num-samples", "1", "--difficulty", "basic", "--log-prompts")[0] == 0
    (folder,) = (path.parent for path in Path("output").glob("*/run.json"))
    scan = record_of(folder, noise(60, 40), caption="Lateral view")
    again = scan.model_copy(update={"option": "A", "caption": ""})
    lines = (folder / "samples.jsonl").read_text().splitlines()
    changed = json.loads(lines[0]) | {"pictures": named(scan, again, DROPPED)}
    (folder / "samples.jsonl").write_text(json.dumps(changed) + "\n")
    log = export_run(folder)
    uri = "data:image/png;base64," + base64.b64encode((folder / scan.file).read_bytes()).decode()
    assert log.read_text().count(uri) == 1  # however many messages show it
    for given, messages, begun, prompts, attachments in read(log):
        for shown in (given, messages, begun, *prompts):
            (parts,) = shown
            assert [(one["type"], one.get("text", one.get("image"))) for one in parts[:-1]] == [
                ("text", "Picture 1: Lateral view"),
                ("image", uri),
                ("text", "Picture 2"),
                ("image", uri),
                (
                    "text",
                    "[Picture 3: What no agent saw (unseen.png): not shown to the agents]",
                ),
            ]
            assert parts[-1]["type"] == "text"
        assert len(prompts) > 2
        assert uri in attachments.values()
    sample = json.loads(log.read_text())["samples"][0]
    assert sample["choices"][0].endswith(" [Picture 2]")


def test_the_same_pictures_give_the_same_bytes() -> None:
    scan = record_of(Path("output/run"), noise(60, 40))
    path = write([ours("1", "A", "A", question="Which?", pictures=named(scan))])
    first = export_run(path, Path("a.json")).read_bytes()
    assert export_run(path, Path("b.json")).read_bytes() == first


def test_pictures_of_a_log_are_bounded_and_what_is_left_out_is_named() -> None:
    folder = Path("run")
    records = [record_of(folder, noise(50, 40, n), f"{n}.png") for n in range(3)]
    room = records[0].bytes + records[1].bytes
    reader = PictureReader(folder, room)
    kinds = [reader.read({"pictures": named(record)}).content for record in records]
    assert [[one.type for one in content] for content in kinds] == [
        ["text", "image"], ["text", "image"], ["text"],
    ]  # fmt: skip
    assert "2.png" in str(kinds[2][0])


@pytest.mark.parametrize("odd", [3, [3], [{"name": "a", "sha256": "../../x"}]])
def test_odd_pictures_and_missing_copies_are_no_obstacle(odd: Any) -> None:
    gone = record_of(Path("output/run"), noise(60, 40))
    (Path("output/run") / gone.file).unlink()
    pictures = [*named(gone), *odd] if isinstance(odd, list) else odd
    path = write([ours("1", "A", "A", question="Which?", options=OPTIONS, pictures=pictures)])
    text = export_run(path, Path("log.json")).read_text()
    assert ("missing from the run's folder" in text) == isinstance(odd, list)
    assert "attachment://" not in text
