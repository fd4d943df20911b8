"""Writes the equations of a Word document in one line, such as `sqrt((a)/(b))`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from demos.document_assistant.word_names import M, W, local_name

UNREAD = "(an equation, which is not read)"

_WRAPPERS = ("ins", "moveTo", "smartTag", "sdt", "sdtContent", "customXml", "hyperlink")
_DRAWN = ("sym", "drawing", "object", "pict")
_OPERATIONS = "+-−±=≠<>≤≥≈×·⋅∙*,;→"
"""Characters beside which a fraction needs no parentheses."""
_SIMPLE = re.compile(r"\w|[-+−]?[0-9]+(?:\.[0-9]+)?")
_PRIMES = re.compile("[∘°′″‴'*∗†]+")
_MIXED = re.compile(r"(?<![\w.,)])[0-9]+")
_WHOLE_FRACTION = re.compile(r"\(([0-9]+)\)/\(([0-9]+)\)")
_POWERS = ("f", "sSup", "sSubSup", "nary", "func")
_ACCENTS = {"\u0302": "hat", "\u0303": "tilde", "\u0304": "bar", "\u0305": "bar", "\xaf": "bar",
            "\u0307": "dot", "\u0308": "ddot", "\u20d7": "vec"}  # fmt: skip
_BRACES = ("⏞", "⏟", "⏜", "⏝", "⎴", "⎵")
_INVISIBLE = {0x2061: None, 0x2062: "·", 0x2063: ",", 0x2064: " "}
"""Invisible characters of equations; that of a product stands between two numbers."""


class _UnknownFormError(Exception):
    """The equation has a form that a line cannot express."""


def linear_form(equation: Any) -> str:
    """Return an equation in one line, or a note if part of it has a form that is not known.

    Args:
        equation: Element `m:oMath` of Office Math Markup.
    """
    try:
        return _line(equation)
    except _UnknownFormError:
        return UNREAD


def _line(element: Any) -> str:
    parts = [(local_name(one), text) for one in _shown(element) if (text := _part(one))]
    line, before = "", ""
    followers = [*(text for _, text in parts[1:]), ""]
    for (tag, text), after in zip(parts, followers, strict=False):
        if tag == "f" and before == "r" and (mixed := _mixed_number(line, text)):
            line = mixed
        else:
            before_it = line[-9:].rstrip()[-1:]
            if tag == "f" and (_binds(before_it, "([{|") or _binds(after.lstrip()[:1])):
                text = f"({text})"
            is_apart = line and tag + before != "rr" and re.match(r"\w\w", line[-1] + text)
            line += f" {text}" if is_apart else text
        before = tag
    return line


def _binds(neighbor: str, no_operation: str = ")]}|/÷:") -> bool:
    """Return whether a fraction beside this character is read correctly only in parentheses."""
    return neighbor not in f"{_OPERATIONS}{no_operation}"


def _mixed_number(line: str, fraction: str) -> str:
    """Return a line that ends with a mixed number such as 5 1/2; empty if it is none."""
    found = _WHOLE_FRACTION.fullmatch(fraction)
    is_whole = _MIXED.search(line[-30:].rpartition(" ")[2])
    return f"{line} {found[1]}/{found[2]}" if found and is_whole and line[-1].isdigit() else ""


def _part(element: Any) -> str:
    tag = local_name(element)
    if tag not in _FORMS or element.find(f"{M}{tag}Pr/{M}ctrlPr/{W}del") is not None:
        raise _UnknownFormError(tag)
    return _FORMS[tag](element)


def _shown(element: Any) -> Iterator[Any]:
    """Yield the parts of an equation, also those in elements of Word; none that is deleted."""
    for child in element:
        tag = local_name(child)
        if str(child.tag).startswith(W) and tag != "r":
            if tag in _WRAPPERS:
                yield from _shown(child)
        elif not tag.endswith("Pr") and isinstance(child.tag, str):
            yield child


def _run(element: Any) -> str:
    text = ""
    for child in element:
        tag = local_name(child)
        if tag in _DRAWN:
            raise _UnknownFormError(tag)
        if tag == "del":
            return ""
        text += " " if tag in ("tab", "br") else child.text or "" if tag == "t" else ""
    return text.translate(_INVISIBLE)


def _fraction(element: Any) -> str:
    if _property(element, "type") == "noBar":
        raise _UnknownFormError
    return f"({_filled(element, 'num')})/({_filled(element, 'den')})"


def _root(element: Any) -> str:
    degree = "" if _is_on(element, "degHide") else _argument(element, "deg")
    what = _filled(element, "e")
    return f"sqrt({what})" if degree in ("", "2") else f"(({what})^(1/({degree})))"


def _scripts(element: Any) -> str:
    parts = [*_shown(_child(element, "e"))]
    base = _filled(element, "e")
    if local_name(parts[-1]) in _POWERS:
        base = f"({base})"
    low = _script("_", _filled(element, "sub")) if local_name(element) != "sSup" else ""
    return (
        base
        + low
        + (_script("^", _filled(element, "sup")) if local_name(element) != "sSub" else "")
    )


def _script(mark: str, text: str) -> str:
    if mark == "^" and _PRIMES.fullmatch(text):
        return text
    is_word = mark == "_" and text.isalnum()
    return f"{mark}{text}" if is_word or _SIMPLE.fullmatch(text) else f"{mark}({text})"


def _sum(element: Any) -> str:
    sign = _property(element, "chr", "∫")
    if not sign:
        raise _UnknownFormError
    for mark, name in (("_", "sub"), ("^", "sup")):
        limit = "" if _is_on(element, f"{name}Hide") else _argument(element, name)
        sign += _script(mark, limit) if limit else ""
    what = _argument(element, "e")
    return f"{sign} ({what})" if what else sign


def _function(element: Any) -> str:
    argument = [*_shown(_child(element, "e"))]
    what = _filled(element, "e")
    is_closed = len(argument) == 1 and local_name(argument[0]) == "d" and what.startswith("(")
    return _filled(element, "fName") + (what if is_closed else f"({what})")


def _delimiters(element: Any) -> str:
    start, end = _property(element, "begChr", "("), _property(element, "endChr", ")")
    inner = [*element.iterchildren(f"{M}e")]
    if len(inner) == 1 and start == "(" and (pair := _binomial(inner[0])):
        return pair
    return start + _property(element, "sepChr", "|").join(map(_line, inner)) + end


def _binomial(element: Any) -> str:
    parts = [*_shown(element)]
    if len(parts) != 1 or local_name(parts[0]) != "f" or _property(parts[0], "type") != "noBar":
        return ""
    return f"binom({_filled(parts[0], 'num')}, {_filled(parts[0], 'den')})"


def _limit(element: Any) -> str:
    base = [*_shown(_child(element, "e"))]
    if local_name(element) == "limUpp" and [local_name(one) for one in base] != ["groupChr"]:
        raise _UnknownFormError
    return _filled(element, "e") + _script("_", _filled(element, "lim"))


def _braced(element: Any) -> str:
    """Return what a brace groups; another character, such as an arrow, has a meaning of its own."""
    if _property(element, "chr", "⏟") not in _BRACES:
        raise _UnknownFormError
    what = _filled(element, "e")
    return what if _SIMPLE.fullmatch(what) else f"({what})"


def _matrix(element: Any) -> str:
    rows = (
        ", ".join(map(_line, row.iterchildren(f"{M}e"))) for row in element.iterchildren(f"{M}mr")
    )
    return f"[{'; '.join(rows)}]"


def _rows(element: Any) -> str:
    rows = map(_line, element.iterchildren(f"{M}e"))
    return "; ".join(row.replace("&", "") for row in rows)  # & aligns the rows


def _accent(element: Any) -> str:
    name = _ACCENTS.get(_property(element, "chr", "\u0302"))
    if name is None:
        raise _UnknownFormError
    return f"{name}({_filled(element, 'e')})"


def _bar(element: Any) -> str:
    if _property(element, "pos") != "top":
        raise _UnknownFormError
    return f"bar({_filled(element, 'e')})"


def _box(element: Any) -> str:
    strikes = ("strikeH", "strikeV", "strikeBLTR", "strikeTLBR")
    if any(_is_on(element, strike) for strike in strikes):
        raise _UnknownFormError
    return _argument(element, "e")


def _phantom(element: Any) -> str:
    is_shown = _property(element, "show", "1") in ("", "1", "on", "true")
    return _argument(element, "e") if is_shown else ""


def _child(element: Any, name: str) -> Any:
    child = element.find(f"{M}{name}")
    return () if child is None else child


def _argument(element: Any, name: str) -> str:
    return _line(_child(element, name)).strip()


def _filled(element: Any, name: str) -> str:
    """Return an argument that must not be empty."""
    text = _argument(element, name)
    if not text:
        raise _UnknownFormError
    return text


def _property(element: Any, name: str, default: str = "") -> str:
    """Return the value of a property; `default` if the equation does not state it."""
    found = element.find(f"{M}{local_name(element)}Pr/{M}{name}")
    return default if found is None else str(found.get(f"{M}val", ""))


def _is_on(element: Any, name: str) -> bool:
    return _property(element, name, "0") in ("", "1", "on", "true")


_FORMS: dict[str, Callable[[Any], str]] = {
    "r": _run,
    "f": _fraction,
    "rad": _root,
    "sSup": _scripts,
    "sSub": _scripts,
    "sSubSup": _scripts,
    "nary": _sum,
    "func": _function,
    "d": _delimiters,
    "limLow": _limit,
    "limUpp": _limit,
    "groupChr": _braced,
    "m": _matrix,
    "eqArr": _rows,
    "acc": _accent,
    "bar": _bar,
    "box": _box,
    "borderBox": _box,
    "phant": _phantom,
    "oMath": _line,
}
