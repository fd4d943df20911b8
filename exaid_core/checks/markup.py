"""Reads the LaTeX and HTML in which models write values as it is displayed."""

from __future__ import annotations

import html
import re

_ENTITY = re.compile(r"&(?:[a-zA-Z]{2,8}[0-9]?|#[0-9]{1,6}|#[xX][0-9a-fA-F]{1,5});")
_TAG = re.compile(
    r"</?(?:b|i|u|em|strong|mark|small|span|font|sub|sup)(?:\s[^<>=]{1,40}=[^<>]{1,100})?>",
    re.IGNORECASE,
)
_POWER_IN_HTML = re.compile(r"(?<=10)<sup>(?=-?[0-9])", re.IGNORECASE)

_STYLED = re.compile(
    r"\\(?:text(?:bf|it|sf|tt|rm|normal)?|math(?:rm|bf|it|sf|tt)|mbox|operatorname|emph|underline"
    r"|boxed)\s?\{([^{}]{0,200})\}"
)
_FRACTION = re.compile(r"\\[dt]?frac\s?\{([^{}]{1,60})\}\s?\{([^{}]{1,60})\}")
_DEGREES = re.compile(r"\^\{?\s?\\circ\s?\}?|\\(?:text)?degree(?![a-zA-Z])(?:\{\})?")
_SYMBOLS = {
    "le": "≤", "leq": "≤", "leqslant": "≤", "ge": "≥", "geq": "≥", "geqslant": "≥", "lt": "<",
    "gt": ">", "times": "×", "cdot": "·", "pm": "±", "approx": "≈", "sim": "~", "to": "→",
    "rightarrow": "→", "Rightarrow": "→", "longrightarrow": "→", "mu": "µ", "uparrow": "↑",
    "downarrow": "↓", "quad": " ", "qquad": " ",
}  # fmt: skip
_SYMBOL = re.compile(rf"\\({'|'.join(sorted(_SYMBOLS, key=len, reverse=True))})(?![a-zA-Z]) ?")
_SPACE = re.compile(r"\\[,;: ]|\\!")
_ESCAPED = re.compile(r"\\([%&#_{}])")
# As in Pandoc (tex_math_dollars), the dollars of "$5 and $10" enclose no formula. The brackets of
# `\[12\]` are those of a reference, escaped for Markdown.
_FORMULA = re.compile(
    r"\\\((.{2,300}?)\\\)|\\\[(?![0-9,;\s–-]+\\\])(.{2,300}?)\\\]|\$\$([^$]{2,300})\$\$"
    r"|(?<![\w\\$])\$([^\s$](?:[^$\n]{0,300}[^\s$\\])?)\$(?![\w$])",
    re.DOTALL,
)
_LOW_OR_HIGH = re.compile(r"(?<!\\)_|(?<!10)\^")
_OXYGEN = re.compile(r"(?<=O)_(?:2|\{2\})(?![0-9])")  # also in half a formula, as a chunk may have
_BRACES = re.compile(r"(?<!\\)[{}]")


def displayed(text: str) -> str:
    r"""Return a text with its LaTeX and HTML as they are displayed: `SpO2 74%` for `$SpO_2$ 74\%`.

    Powers of ten keep a `^`; other superscripts and subscripts are like the text before them.
    """
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    if "<" in text:
        text = _TAG.sub("", _POWER_IN_HTML.sub("^", text))
    if "\\" in text:
        text = _SYMBOL.sub(lambda symbol: _SYMBOLS[symbol[1]], text)  # first: `\mu\text{g}`
        text = _STYLED.sub(r"\1", _STYLED.sub(r"\1", text))
        text = _DEGREES.sub("°", _FRACTION.sub(r"\1/\2", text))
        text = _SPACE.sub(lambda space: "" if space[0] == "\\!" else " ", text)
    if "$" in text or "\\" in text:
        text = _ESCAPED.sub(r"\1", _FORMULA.sub(_read_formula, text))
    return _OXYGEN.sub("2", text) if "O_" in text else text


def _read_formula(formula: re.Match[str]) -> str:
    content = next(filter(None, formula.groups()))
    content = content.replace("{,}", ",").replace("~", " ")
    return _BRACES.sub("", _LOW_OR_HIGH.sub("", content))
