"""The example of docs/how-to/medagen.md prints what the page says."""

from __future__ import annotations

import pytest

from tests.docs.conftest import Run
from tests.docs.markdown import blocks
from tests.docs.page import Page

PAGE = Page("medagen.md")

pytestmark = pytest.mark.process


def test_rules_without_a_model(run: Run) -> None:
    on_page = list(blocks("docs/how-to/medagen.md"))
    (place,) = [number for number, block in enumerate(on_page) if block.language == "python"]
    assert run(0) == on_page[place + 1].text
