"""Figures and tables as files for a paper."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader

from mdagents.cli.score import main
from mdagents.scoring.formatting import Table
from mdagents.scoring.table_formats import as_latex, as_markdown, in_a_line
from tests.mdagents.scoring.result_records import ours, write


def test_figures_and_tables_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    write([ours(str(n), "A", "AAB"[n % 3]) for n in range(30)])
    assert main(["--figures", "paper", "--latex", "paper/tables.tex"]) == 0
    printed = capsys.readouterr().out
    files = {path.name for path in Path("paper").iterdir()}
    assert {f"run-accuracy-by-level.{form}" for form in ("svg", "pdf", "png")} <= files
    assert f"written: {len(files) - 1} files in paper" in printed
    assert r"\toprule" in Path("paper/tables.tex").read_text(encoding="utf-8")
    assert not list(Path("evaluation").glob("*.html"))


def test_figures_of_runs_with_like_names_are_different_files(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Names in other scripts: https://github.com/zosmaai/pi-llm-wiki/issues/245."""
    names = ["gpt-4o_T=0.7", "gpt-4o_T_0,7", "gpt-4o+T 0.7", "Nhóm_điều_trị"]
    records = [ours(str(n), "A", "AAB"[n % 3]) for n in range(30)]
    paths = [str(write(records, f"{name}.json")) for name in names]
    assert main(["--compare", *paths, "--figures", "paper"]) == 0
    files = list(Path("paper").iterdir())
    assert f"written: {len(files)} files in paper" in capsys.readouterr().out
    assert any("điều-trị" in path.name for path in files)


@pytest.mark.skipif(sys.platform != "linux", reason="file names of bytes")
def test_a_file_whose_name_is_not_utf8_is_scored() -> None:
    path = write([ours(str(n), "A", "AAB"[n % 3]) for n in range(30)], os.fsdecode(b"caf\xe9.json"))
    assert main(["--input", str(path), "--latex", "tables.tex"]) == 0
    (summary,) = Path("evaluation").glob("*.summary.json")
    for written in (summary, Path("tables.tex")):
        assert "caf\ufffd" in written.read_text(encoding="utf-8")


def test_a_pdf_is_as_wide_as_a_column_and_embeds_its_fonts() -> None:
    write([ours(str(n), "A", "AAB"[n % 3]) for n in range(30)])
    assert main(["--figures", "paper"]) == 0
    for path in Path("paper").glob("*.pdf"):
        page = PdfReader(path).pages[0]
        assert float(page.mediabox.width) / 72 == pytest.approx(3.3, abs=0.01)
        resources: Any = page["/Resources"]
        fonts = [font.get_object() for font in resources["/Font"].values()]
        assert fonts
        for font in fonts:
            (descendant,) = font["/DescendantFonts"]
            assert "/FontFile2" in descendant.get_object()["/FontDescriptor"].get_object()


@pytest.mark.parametrize(
    ("name", "package", "unknown"),
    [("Größe", "[T1]{fontenc}", []), ("模型", "{fontspec}", ["型模"])],
)
def test_latex_begins_with_what_it_needs(name: str, package: str, unknown: list[str]) -> None:
    path = write([ours(str(n), "A", "AAB"[n % 3]) for n in range(10)], f"{name}.json")
    assert main(["--input", str(path), "--latex", "t.tex"]) == 0
    lines = Path("t.tex").read_text(encoding="utf-8").splitlines()
    comments = [line for line in lines if line.startswith("%")]
    assert comments[:2] == [r"% \usepackage{booktabs}", rf"% \usepackage{package}"]
    assert [line.partition(": ")[2] for line in comments[2:]] == unknown


def test_each_latex_table_of_a_run_in_epochs_has_a_caption() -> None:
    write([ours(str(n), "A", "AAB"[n % 3], epoch=epoch) for n in range(10) for epoch in (1, 2)])
    assert main(["--latex", "t.tex"]) == 0
    tables = Path("t.tex").read_text(encoding="utf-8")
    assert r"\caption{Accuracy by epoch}" in tables
    assert r"\caption{}" not in tables


def test_latex_names_one_file(capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(write([ours("1", "A", "A")], f"{name}.json")) for name in "ab"]
    assert main(["--input", *paths, "--latex", "t.tex"]) == 2
    assert "--latex names one file" in capsys.readouterr().err


def test_a_table_in_other_forms() -> None:
    table = Table(["", "a_b", "50%"], [["x & y", "−1.5", "|"], ["all", "1", "2"]], True, "T_1")
    assert as_latex(table).splitlines()[2:11] == [
        r"\caption{T\_1}", r"\begin{tabular}{lrr}", r"\toprule", r" & a\_b & 50\% \\", r"\midrule",
        r"x \& y & $-$1.5 & | \\", r"\midrule", r"all & 1 & 2 \\", r"\bottomrule",
    ]  # fmt: skip
    assert as_markdown(table).splitlines()[:3] == [
        "|  | a_b | 50% |", "| --- | ---: | ---: |", r"| x & y | −1.5 | \| |",
    ]  # fmt: skip
    assert in_a_line(table) == "a_b: 1 · 50%: 2"
