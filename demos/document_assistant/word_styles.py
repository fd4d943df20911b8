"""The styles of a Word document: what a style extends, and how a run of text is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from demos.document_assistant.marked_text import PLACES, STRUCK, hidden, marked
from demos.document_assistant.symbol_fonts import drawn
from demos.document_assistant.word_forms import is_on
from demos.document_assistant.word_names import W


class Styles:
    """The styles of paragraphs and of runs.

    Args:
        document: Document of python-docx.
    """

    def __init__(self, document: Any) -> None:
        self._styles = {one.get(f"{W}styleId"): one for one in document.styles.element}
        self._formats: dict[tuple[str, str | None], Any] = {}

    def chain(self, link: Any) -> Iterator[Any]:
        """Yield the style that an element names, and those that it extends.

        Args:
            link: Element such as `w:pStyle`; None names no style.
        """
        seen = set[str]()
        while link is not None and (name := link.get(f"{W}val", "")) not in seen:
            seen.add(name)
            style = self._styles.get(name)
            if style is not None:
                yield style
            link = None if style is None else style.find(f"{W}basedOn")

    def shown(self, text: str, run: Any, style: Any) -> str:
        """Return the text of a run, marked if it is raised, lowered, struck out or hidden.

        Args:
            text: Text of the run.
            run: Element `w:r`.
            style: Element `w:pStyle` of its paragraph, or None.
        """
        if not text:
            return ""
        if is_on(self._stated("vanish", run, style)):
            return hidden(text)
        place = self._stated("vertAlign", run, style)
        mark = None if place is None else PLACES.get(place.get(f"{W}val", ""))
        marks = [mark] if mark else []
        if any(is_on(self._stated(name, run, style)) for name in ("strike", "dstrike")):
            marks.append(STRUCK)
        return marked(text, *marks)

    def drawn(self, text: str, element: Any, style: Any) -> str:
        """Return the characters that the font of a text draws.

        Args:
            text: Text of the element.
            element: Element in a run, such as `w:t`.
            style: Element `w:pStyle` of its paragraph, or None.
        """
        run = next(element.iterancestors(f"{W}r"), None)
        if run is None:
            return text

        def part(found: re.Match[str]) -> str:
            name = f"{W}{'ascii' if found[0].isascii() else 'hAnsi'}"
            theme = f"{name}Theme"  # counts more than a name, and is no font of signs
            fonts = self._stated(f"rFonts[@{name}]|rFonts[@{theme}]", run, style)
            is_named = fonts is not None and fonts.get(theme) is None
            return drawn(found[0], fonts.get(name) if is_named else None)

        return re.sub("[\x00-\x7f]+|[^\x00-\x7f]+", part, text)

    def _stated(self, name: str, run: Any, style: Any) -> Any:
        """Return a format of a run, stated in it, in its style or in that of its paragraph.

        Args:
            name: Path of the format; perhaps several, separated by `|`.
            run: Element `w:r`.
            style: Element `w:pStyle` of its paragraph, or None.
        """
        properties = run.find(f"{W}rPr")
        found = _first(run, name)
        if found is None and properties is not None:
            found = self._of_style(name, properties.find(f"{W}rStyle"))
        if found is None:
            found = self._of_style(name, style)
        return found

    def _of_style(self, name: str, link: Any) -> Any:
        if link is None:
            return None
        key = (name, link.get(f"{W}val"))
        if key not in self._formats:
            formats = (_first(style, name) for style in self.chain(link))
            self._formats[key] = next((one for one in formats if one is not None), None)
        return self._formats[key]


def _first(element: Any, name: str) -> Any:
    found = (element.find(f"{W}rPr/{W}{one}") for one in name.split("|"))
    return next((one for one in found if one is not None), None)
