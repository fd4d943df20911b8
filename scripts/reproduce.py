#!/usr/bin/env python3
"""Score published predictions: ten methods of gpt-4o-mini on the same 100 hard questions of MedQA.

The predictions are those of MedAgentsBench. They are fetched once from their published addresses,
or read from a folder, and compared with the SHA-256 of each. Each method is compared with
zero_shot, as in a study. All files that this writes are the same, byte by byte, every time.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mdagents.data_tools.fetching import fetch
from mdagents.datasets.sources import Host, PinnedFile
from mdagents.pages.report_summary import head_of_comparison
from mdagents.pages.study import write_study_results
from mdagents.records.study import StudyManifest, StudyRun
from mdagents.scoring.comparison import Comparison, compare_study
from mdagents.scoring.comparison_text import comparison_parts
from mdagents.scoring.results import print_parts
from mdagents.scoring.rows import read_output
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.whole_file import replace_file
from mdagents_llm.terminal.printing import fails_in_one_line, print_result

NAME = "published-predictions"
BASELINE = "zero_shot"
_REPOSITORY = "xk-huang/medagents-benchmark"
"""A public copy of gersteinlab/medagents-benchmark, whose history holds these ten files."""
_WIDTH = 760  # pixels of a figure
_ADDED = "e14f2bec7ca845201bf0f3c3dbb754ec843ecdb9"


@dataclass(frozen=True, slots=True)
class Predictions:
    """The predictions of a method."""

    sha256: str
    """SHA-256 of the published file (JSON, indent of 4), computed from a copy of its records."""
    path: str = ""
    """Path in the repository; empty for the usual one."""
    commit: str = _ADDED


PUBLISHED: Mapping[str, Predictions] = MappingProxyType(
    {
        "zero_shot": Predictions(
            "311bdeee2a1dbc78601545d982271d5cb58379a0134f2acabebeb56116b290de"
        ),
        "few_shot": Predictions(
            "1665b420686bb117545a9baa8f141e74552736591c97dff1741e49fb32db6757",
            "baselines/MedPrompt/output/medqa/gpt-4o-mini-medqa-test_hard-few_shot.json",
            "4b4483dfba60da50e1171707a710743a4c9e23b9",
        ),
        "cot": Predictions("53cbe85888bdc6aab47fe1dafd151c368a345aed826e54972f72982353b92ed4"),
        "cot_sc-5": Predictions("d6135d0be69337ef676beff616be1ad06f4d35e3f57810883c1e448a7dbd74b5"),
        "medprompt-3": Predictions(
            "dcb5303dad53e960da914065e9fe126c77c3503bd94f105898de8496d506eaf5"
        ),
        "self_refine-3": Predictions(
            "5131ceb16c89d965090b36b2aa96cd8fa899afe94602598a36741b0cded8dc5d"
        ),
        "multipersona-2": Predictions(
            "f298cce5d648904ab40f66091b478ff72185a68b894965c557b95cf03b1a03e6"
        ),
        "medagents": Predictions(
            "71bd02bf66d9f27df096c1081d39abb8a0a096af40a90b3aa88e29e55fe783cb"
        ),
        "mdagents": Predictions(
            "9b15375a5cb1249ed90fcc11609d72f3e7b010a756ce16dcd10a39b0e9dd5403",
            "baselines/MDAgents/output/medqa/gpt-4o-mini_medqa_test_hard_adaptive.json",
            "4466a9e181527730938d4dbe1bfed418a8a19a19",
        ),
        "aflow": Predictions("a39f9a3f252d5ab089cdb99474c47723eb9d8f2b0f9534dd2cd09a4f6646915e"),
    }
)
"""Method -> its predictions, in the order of the table."""


def file_name(method: str) -> str:
    """Return the name of a method's file, as published."""
    return f"gpt-4o-mini-medqa-test_hard-{method}.json"


@fails_in_one_line
def main(argv: Sequence[str], *, published: Mapping[str, Predictions] = PUBLISHED) -> int:
    """Bring the predictions to the data folder, compare them and write the results.

    Args:
        argv: Command-line arguments without the program's name.
        published: Method -> its predictions.

    Returns:
        The exit status: 0, 2 (`ConfigError`) or 130.
    """
    parser = argparse.ArgumentParser(
        prog="make reproduce", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--from", dest="folder", type=Path, metavar="FOLDER",
                        help="folder that holds the files, instead of a download")  # fmt: skip
    parser.add_argument("--data-dir", type=Path, default=Path("data"), metavar="DIR")
    parser.add_argument("--evaluation-dir", type=Path, default=Path("evaluation"), metavar="DIR")
    options = parser.parse_args(argv)
    paths = bring(published, options.data_dir / NAME, options.folder)
    study = compare_predictions(paths)
    print_parts(comparison_parts(study))
    written = write_results(study, options.evaluation_dir)
    print_result("\n".join(f"written: {path}" for path in written))
    return 0


def bring(
    published: Mapping[str, Predictions], target: Path, folder: Path | None
) -> dict[str, Path]:
    """Ensure that all predictions are in place, and return method -> path.

    Args:
        published: Method -> its predictions.
        target: Folder of the files.
        folder: Folder to take them from; None to download what is missing.

    Raises:
        ConfigError: A file is missing, cannot be downloaded, or is not the published one.
    """
    paths = {method: target / file_name(method) for method in published}
    for method, path in paths.items():
        expected = published[method]
        if folder is not None:
            content = _from_folder(folder / path.name, expected)
        elif path.exists():
            _checked(path.read_bytes(), expected, path)
            continue
        else:
            content = _from_address(path.name, expected)
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content)
    return paths


def compare_predictions(paths: Mapping[str, Path]) -> Comparison:
    """Compare the methods with zero_shot on the questions that all of them answered."""
    grid = {"dataset": "MedQA test_hard", "model": "gpt-4o-mini"}
    study = StudyManifest(
        name=NAME,
        baseline=BASELINE,
        runs=[StudyRun(**grid, method=method, run=path.stem) for method, path in paths.items()],
    )
    return compare_study(study, {path.stem: read_output(path) for path in paths.values()})


def write_results(study: Comparison, folder: Path) -> list[Path]:
    """Write the page, the tables and the figures; return their paths.

    Raises:
        ConfigError: A file cannot be written.
    """
    paths = write_study_results(study, folder)
    for figure in head_of_comparison(study).figures:
        path = folder / f"{NAME}-{figure.name}.svg"
        drawing = figure.draw(_WIDTH).save("svg")
        # Also for dark pages.
        replace_file(path, drawing.replace(b"fill: none", b"fill: #ffffff", 1))
        paths.append(path)
    return paths


def _from_folder(path: Path, expected: Predictions) -> bytes:
    """Return a published file from a copy, whose indent may be another one."""
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise ConfigError(f"there is no file {path}; check FROM=") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    return _checked(json.dumps(content, indent=4).encode(), expected, path)


def _from_address(name: str, expected: Predictions) -> bytes:
    file = PinnedFile(
        _REPOSITORY,
        expected.commit,
        expected.path or f"output/medqa/{name}",
        expected.sha256,
        Host.GITHUB,
    )
    print_result(f"fetching {file.repo_id}/{file.path_in_repo}")
    with tempfile.TemporaryDirectory() as folder:
        try:
            return fetch(file, Path(folder)).read_bytes()
        except ConfigError as error:
            raise ConfigError(_with_folder(str(error))) from error


def _with_folder(words: str) -> str:
    """Return an error of a download with the advice for this program."""
    return words.replace("give a file that you have with --from FILE", "give a copy: FROM=FOLDER")


def _checked(content: bytes, expected: Predictions, path: Path) -> bytes:
    """Return the content of a file.

    Raises:
        ConfigError: Its SHA-256 is not the published one.
    """
    got = hashlib.sha256(content).hexdigest()
    if got != expected.sha256:
        raise ConfigError(
            f"{path} holds other predictions than those published: SHA-256 {got}, expected "
            f"{expected.sha256}; move it away"
        )
    return content


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
