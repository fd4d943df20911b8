"""Every relative link on a page leads to a file of the repository and to a heading of it."""

from __future__ import annotations

import re

from scripts.site_links import for_the_site, github_slug, pages_outside, site_path, target_path
from tests.conftest import REPOSITORY
from tests.docs.markdown import anchors, pages, targets


def test_every_link_leads_somewhere() -> None:
    broken = []
    count = 0
    for page in pages():
        for target in targets(page):
            if re.match(r"[a-z]+:", target):
                continue
            count += 1
            path, _, anchor = target.partition("#")
            file = target_path(target, page) if path else page
            if not (REPOSITORY / file).exists():
                broken.append(f"{page}: {target} (no such file)")
            elif anchor and (not file.endswith(".md") or anchor not in anchors(file)):
                broken.append(f"{page}: {target} (no such heading)")
    assert broken == []
    assert count > 200


def test_anchors_are_those_of_github() -> None:
    assert github_slug("What if (--what-if)") == "what-if---what-if"
    assert github_slug("Half the price: --batch") == "half-the-price---batch"
    assert github_slug("run.json") == "runjson"
    assert github_slug("Names_kept, and 95% intervals") == "names_kept-and-95-intervals"


def test_links_of_the_site() -> None:
    missing: list[str] = []
    page = (
        "See [data](../../data/README.md#licenses), [the image](../../Dockerfile), "
        "[methods](../../mdagents/teams), [decisions](../explanation/decisions), `[x](y.md)`,\n"
        "[scores](../explanation/scoring.md#x), [up](#top), [web](https://example.org) and "
        "[nothing](nothing.md).\n\n```\n[code](../../Dockerfile)\n```\n"
    )
    made = for_the_site(page, "docs/how-to/models.md", missing.append)
    assert made == (
        "See [data](../repository/data/README.md#licenses), the image (`Dockerfile`), "
        "methods (`mdagents/teams`), [decisions](../explanation/decisions/index.md), `[x](y.md)`,\n"
        "[scores](../explanation/scoring.md#x), [up](#top), [web](https://example.org) and "
        "[nothing](nothing.md).\n\n```\n[code](../../Dockerfile)\n```\n"
    )
    assert missing == ["nothing.md"]


def test_pages_outside_docs_come_with_those_that_they_link_to() -> None:
    found = pages_outside({"docs/index.md": "[README](../README.md)"})
    assert {"README.md", "CONTRIBUTING.md", "data/README.md"} <= set(found)
    assert site_path("data/README.md") == "repository/data/README.md"
    assert site_path("docs/notebooks/first.ipynb") == "notebooks/first.md"
