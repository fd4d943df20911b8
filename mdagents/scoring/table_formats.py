"""A table of figures in other forms: for a paper, and in one line."""

from __future__ import annotations

from collections.abc import Sequence

from mdagents.scoring.formatting import Table

_LONGEST = 90  # characters of a line

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
        "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
        "<": r"$<$", ">": r"$>$", "−": "$-$", "–": "--", "→": r"$\rightarrow$", "…": r"\dots{}",
    }
)  # fmt: skip


def as_latex(table: Table) -> str:
    """Return a table as LaTeX of the package booktabs, with its title as the caption.

    `table*` spans both columns of a page with two, and is like `table` on other pages.
    """
    rows = [_latex_row(row) for row in table.rows]
    if table.has_total and len(rows) > 1:
        rows.insert(-1, r"\midrule")
    return "\n".join(
        [
            r"\begin{table*}",
            r"\centering\small",
            rf"\caption{{{table.title.translate(_LATEX)}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(table.headings) - 1)}}}",
            r"\toprule",
            _latex_row(table.headings),
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table*}",
        ]
    )


def as_markdown(table: Table) -> str:
    """Return a table as Markdown, without its title; columns of figures are right-aligned."""
    rule = ["---", *["---:"] * (len(table.headings) - 1)]
    lines = [table.headings, rule, *table.rows]
    return "\n".join(f"| {' | '.join(map(_markdown_cell, line))} |" for line in lines)


def in_a_line(table: Table) -> str:
    """Return the figures of the total or only row, else the names of the rows if they are few."""
    if not table.rows:
        return ""
    if table.has_total or len(table.rows) == 1:
        cells = zip(table.headings[1:], table.rows[-1][1:], strict=True)
        return " · ".join(f"{heading}: {cell}" for heading, cell in cells)
    names = ", ".join(row[0] for row in table.rows)
    return names if len(names) <= _LONGEST else f"{len(table.rows)} rows"


def _latex_row(cells: Sequence[str]) -> str:
    row = " & ".join(cell.translate(_LATEX) for cell in cells) + r" \\"
    # After the line above, also behind blanks, `[` begins an optional argument and `*` is a part
    # of the command.
    return "{}" + row if row.lstrip().startswith(("[", "*")) else row


def _markdown_cell(cell: str) -> str:
    return cell.replace("|", "\\|")
