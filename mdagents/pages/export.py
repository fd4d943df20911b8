"""Writes the figures and tables of a page as files for a paper."""

from __future__ import annotations

from pathlib import Path

from mdagents.pages.canvas import PHONE
from mdagents.pages.fonts import without_font
from mdagents.pages.report_summary import Head
from mdagents.scoring.fields import plain
from mdagents.scoring.table_formats import as_latex, unknown_to_pdflatex
from mdagents_llm.files.whole_file import replace_file

FORMS = ("svg", "pdf", "png")


def write_figures(folder: Path, stem: str, head: Head) -> int:
    """Write each figure as SVG, PDF and PNG, in the width of a column of a two-column paper.

    Args:
        folder: Folder of the files; it is made if it is missing.
        stem: Start of the files' names.
        head: Head of the page.

    Returns:
        Number of files.

    Raises:
        OSError: A file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    figures = [*head.figures, *head.details]
    taken: set[str] = set()
    for figure in figures:
        name = figure.name
        while name in taken:  # names of runs may differ only in punctuation
            name += "-again"
        taken.add(name)
        for form in FORMS:
            replace_file(folder / f"{stem}-{name}.{form}", figure.export(form))
    return len(figures) * len(FORMS)


def text_without_font(head: Head) -> str:
    """Return the characters in exported figures of a page that no font of this machine has."""
    drawn = [figure.draw(PHONE) for figure in [*head.figures, *head.details]]
    return without_font("".join(text for canvas in drawn for text in canvas.texts))


def write_latex(path: Path, head: Head) -> None:
    """Write the tables of a page as LaTeX of the package booktabs, headed by what it needs.

    Raises:
        OSError: The file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    tables = "\n\n".join(map(as_latex, [*head.table_first, *head.tables]))
    packages = "% \\usepackage{booktabs}\n"
    if unknown := unknown_to_pdflatex(tables):
        # With the fonts of T1, XeLaTeX has no character beyond 256.
        packages += "% \\usepackage{fontspec}\n"
        packages += f"% XeLaTeX or LuaLaTeX, with a font that has these characters: {unknown}\n"
    else:
        packages += "% \\usepackage[T1]{fontenc}\n"
    replace_file(path, plain(f"{packages}{tables}\n").encode())
