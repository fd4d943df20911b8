"""A table of figures in other forms: for a paper, and in one line."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from mdagents.scoring.formatting import Table

_LONGEST = 90  # characters of a line

_MATHEMATICS = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "varepsilon", "ζ": "zeta",
    "η": "eta", "θ": "theta", "ι": "iota", "κ": "kappa", "λ": "lambda", "μ": "mu", "ν": "nu",
    "ξ": "xi", "π": "pi", "ρ": "rho", "ς": "varsigma", "σ": "sigma", "τ": "tau", "υ": "upsilon",
    "φ": "varphi", "χ": "chi", "ψ": "psi", "ω": "omega", "Γ": "Gamma", "Δ": "Delta", "Θ": "Theta",
    "Λ": "Lambda", "Ξ": "Xi", "Π": "Pi", "Σ": "Sigma", "Υ": "Upsilon", "Φ": "Phi", "Ψ": "Psi",
    "Ω": "Omega", "≤": "leq", "≥": "geq", "≠": "neq", "≈": "approx", "∼": "sim", "≡": "equiv",
    "≪": "ll", "≫": "gg", "∞": "infty", "√": "surd", "∆": "Delta", "∑": "sum", "∈": "in",
    "∅": "emptyset", "⋅": "cdot", "↔": "leftrightarrow", "⇒": "Rightarrow",
    "⇔": "Leftrightarrow",
}  # fmt: skip
"""Character that pdfLaTeX does not know as text -> its command in mathematics."""

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
        "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
        "<": r"$<$", ">": r"$>$", "−": "$-$", "–": "--", "→": r"$\rightarrow$", "…": r"\dots{}",
        "\u2009": r"\,", "\u202f": r"\,",  # thin spaces
        "′": "$'$",
    }
    | {character: f"$\\{name}$" for character, name in _MATHEMATICS.items()}
    | {raised: f"$^{of}$" for raised, of in zip("⁰⁴⁵⁶⁷⁸⁹⁺⁻", "0456789+-", strict=True)}
    | {lowered: f"$_{of}$" for lowered, of in zip("₀₁₂₃₄₅₆₇₈₉₊₋", "0123456789+-", strict=True)}
)  # fmt: skip

_UNKNOWN_TO_PDFLATEX = re.compile(
    "[^\0-\u0125\u0128-\u0137\u0139-\u013e\u0141-\u0148\u014a-\u0165\u0168-\u017e\u0218-\u021b"
    "\u2010-\u2016\u2018-\u201a\u201c-\u201e\u2020-\u2022\u2026\u2030\u2039\u203a\u20ac\u2122]"
)
"""Characters that pdfLaTeX does not typeset with the fonts of T1."""


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
            rf"\caption{{{_in_latex(table.title)}}}",
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


def unknown_to_pdflatex(latex: str) -> str:
    """Return the characters of a text that need XeLaTeX or LuaLaTeX, each once and sorted."""
    return "".join(sorted(set(_UNKNOWN_TO_PDFLATEX.findall(latex))))


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
    row = " & ".join(map(_in_latex, cells)) + r" \\"
    # After the line above, also behind blanks, `[` begins an optional argument and `*` is a part
    # of the command.
    return "{}" + row if row.lstrip().startswith(("[", "*")) else row


def _in_latex(text: str) -> str:
    # pdfLaTeX has letters with accents, but no accents after letters, as in file names of macOS.
    return unicodedata.normalize("NFC", text).translate(_LATEX)


def _markdown_cell(cell: str) -> str:
    return cell.replace("|", "\\|")
