"""The documentation says what the code does."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from mdagents.records.manifest import RunManifest
from mdagents.records.sample import SampleRecord
from mdagents.runs.options import make_parser
from mdagents.scoring.csv_file import COLUMNS
from mdagents.settings import Status
from scripts import draw_architecture
from scripts.update_docs import PAGE, updated
from scripts.update_docs import PAGES as GENERATED
from tests.conftest import REPOSITORY
from tests.support.own_files import own_files

CONTAINER = {
    "--add-host",
    "--build-arg",
    "--env-file",
    "--publish",
    "--rm",
    "--tag",
    "--time",
    "--user",
    "--userns",
    "--volume",
}
"""Flags of docker, which docs/how-to/container.md needs."""
CLUSTER = {
    "--address",
    "--block",
    "--cpus-per-task",
    "--exclude",
    "--generate",
    "--head",
    "--nodes",
    "--ntasks",
    "--ntasks-per-node",
    "--port",
    "--runtime-env-json",
    "--working-dir",
}
"""Flags of Ray and Slurm, which docs/how-to/scale.md needs."""
HARNESS = {"--apply-chat-template", "--include-path", "--model-args", "--tasks"}
"""Flags of lm-evaluation-harness, which docs/how-to/serve.md needs."""
INSPECT = {
    "--message-limit", "--scorer", "--solver", "--time-limit", "--turn-limit", "--working-limit",
}  # fmt: skip
"""Flags of Inspect, which docs/how-to/inspect.md needs."""
PACKAGES = ("benchmarks", "demos", "evals", "exaid_core", "mdagents_llm", "mdagents", "scripts")
PAGES = [
    *(
        page
        for page in sorted((REPOSITORY / "docs").rglob("*.md"))
        if "decisions" not in page.parts
    ),
    REPOSITORY / "README.md",
]
"""All pages but those of decisions, which may name flags that were decided against."""


@pytest.mark.process
@pytest.mark.parametrize("page", GENERATED, ids=lambda page: page.name)
def test_the_generated_parts_are_those_of_the_code(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "<!-- end -->" in text
    assert text == updated(text), "run: python scripts/update_docs.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_flag_that_a_page_names_exists(page: Path) -> None:
    known = set(re.findall(r"--[a-z][a-z_-]+", make_parser().format_help()))
    folders = ("benchmarks", "evals/cli", "demos", "scripts")
    programs = [file for name in folders for file in (REPOSITORY / name).rglob("*.py")]
    for program in (PAGE, *programs):
        known |= set(re.findall(r"--[a-z][a-z-]+", program.read_text(encoding="utf-8")))
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z_-]+", page.read_text(encoding="utf-8")))
    if page.name == "container.md":
        known |= CONTAINER
    if page.name == "scale.md":
        known |= CLUSTER
    if page.name == "opentelemetry.md":
        known |= {"--backend-store-uri", "--host"}  # of mlflow server
    if page.name == "serve.md":
        known |= HARNESS
    if page.name == "mcp.md":
        known |= {"--cli", "--env", "--transport", "--url"}  # of assistants and the inspector
    if page.name == "verifiers.md":
        # Of vf-eval and vf-validate.
        known |= {"--client", "--env", "--no-push", "--runtime", "--taskset"}
    if page.name == "inspect.md":
        known |= INSPECT
    assert {flag.replace("_", "-") for flag in named} <= known


@pytest.mark.process
def test_pip_is_given_only_what_it_finds() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    named = re.compile(rf"pip install\s[^`]*?{project['name']}")  # it is on no index
    extra = re.compile(r"(?:PATH_OF_THE_CLONE|pip install ['\"]?\.)\[([\w,]+)\]")
    found = set()
    for name in own_files("README.md", "CONTRIBUTING.md", "docs", "data", *PACKAGES):
        if Path(name).suffix in {".md", ".py", ".txt", ".html"}:
            text = (REPOSITORY / name).read_text(encoding="utf-8")
            assert named.search(text) is None, name
            found |= {one for match in extra.findall(text) for one in match.split(",")}
    assert found <= set(project["optional-dependencies"])
    assert {"langchain", "agents", "inspect", "ray"} <= found


def test_the_fields_on_disk_are_described() -> None:
    reference = REPOSITORY / "docs" / "reference"
    page = "".join((reference / name).read_text("utf-8") for name in ("files.md", "fields.md"))
    words = set(re.findall(r"`([a-z_0-9]+)`", page))
    fields = {*SampleRecord.model_fields, *RunManifest.model_fields, *COLUMNS, *map(str, Status)}
    assert fields <= words, f"docs/reference does not name {sorted(fields - words)}"


def test_the_drawing_is_that_of_its_script() -> None:
    drawing = draw_architecture.FILE.read_text(encoding="utf-8")
    assert drawing == draw_architecture.svg(), "run: python scripts/draw_architecture.py"
    root = ET.fromstring(drawing)
    described = [root.findtext(f"{{*}}{name}") for name in ("title", "desc")]
    assert all(described), "for those who cannot see it"
    paths = [group.attrib["data-path"] for group in root.iterfind("{*}g")]
    assert len(paths) == len(draw_architecture.BOXES)
    missing = [path for path in paths if not (REPOSITORY / path).exists()]
    assert not missing, f"{missing} are in the drawing and not in the repository"


def test_every_box_of_the_drawing_is_on_the_page_and_over_no_other() -> None:
    boxes = draw_architecture.BOXES
    for box in boxes:
        assert 0 <= box.x < box.x + box.width <= draw_architecture.WIDTH
        assert 0 <= box.y < box.y + box.height <= draw_architecture.HEIGHT
        over = [
            other.name
            for other in boxes
            if other is not box
            and abs(2 * (other.x - box.x) + other.width - box.width) < other.width + box.width
            and abs(2 * (other.y - box.y) + other.height - box.height) < other.height + box.height
        ]
        assert not over, box
