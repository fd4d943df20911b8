"""The hooks by which MkDocs builds the site from the repository as it is (mkdocs.yml).

The navigation follows the folders of docs/. Added to its pages are the Markdown files elsewhere
that they link to, the notebooks, an index of each folder that is linked to, and the full Python
API. Each page is also written as Markdown, with `llms.txt` as their index.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import markdown as python_markdown
import nbconvert
from markdown.blockprocessors import ListIndentProcessor, OListProcessor
from markdown.extensions import Extension
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from scripts import site_links

ROOT = site_links.ROOT
DOCS = ROOT / "docs"
SUMMARY = "A benchmark runner for multi-agent medical question answering."
SECTIONS = {
    "Tutorials": (
        "tutorials",
        ("first-run", "your-model", "is-a-team-worth-it", "own-data", "own-method"),
    ),
    "How-to guides": ("how-to", ("models", "compare", "studies", "scale", "live-view", "python")),
    "Reference": ("reference", ("cli", "files", "fields", "python-api")),
    "Explanation": ("explanation", ("teams", "answers", "scoring", "exaid")),
    "Measurements": ("measurements", ("index", "published-predictions")),
    "Notebooks": ("notebooks", ()),
}
"""Title → (folder of docs/, pages that come first); the others follow by the names of files."""
SUBSECTIONS = {
    "data-sets": "Data sets",
    "decisions": "Decisions",
    "recipes": "EXAID in other frameworks",
}
"""Folder in a section → title."""
PROJECT = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
PACKAGES = ("mdagents", "mdagents_llm", "exaid_core")

_log = get_plugin_logger("site")
_texts: dict[str, tuple[str, str]] = {}
"""Path of a page in the site → its title and Markdown."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set what follows from the repository: navigation, version, anchors and lists as on GitHub."""
    version = importlib.import_module("mdagents").__version__
    config.copyright = (
        f"{config.site_name} {version} · MIT license · for research; not a medical device"
    )
    config.site_name = f"{config.site_name} {version}"
    config.nav = [{"Home": "index.md"}]
    for title, (folder, first) in SECTIONS.items():
        if pages := _section(DOCS / folder, first):
            config.nav.append({title: pages})
    config.nav.append({"Project": [site_links.site_path(path) for path in PROJECT]})
    config.mdx_configs.setdefault("toc", {})["slugify"] = site_links.github_slug
    extensions: list[str | Extension] = config.markdown_extensions  # type: ignore[assignment]
    extensions.append(_ListsAsOnGitHub())
    config.watch.extend(str(ROOT / path) for path in ("README.md", *PROJECT, *PACKAGES))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not Markdown files of docs/."""
    _texts.clear()
    sources = {f"docs/{file.src_uri}": file.content_string for file in files.documentation_pages()}
    added = {
        site_links.site_path(path): text
        for path, text in site_links.pages_outside(dict.fromkeys(PROJECT, "") | sources).items()
    }
    for path in PROJECT:
        added[site_links.site_path(path)] = (ROOT / path).read_text(encoding="utf-8")
    for folder in site_links.INDEXES:
        if (ROOT / folder).is_dir() and not (ROOT / folder / "index.md").exists():
            added[site_links.site_path(folder)] = _index(ROOT / folder)
    for package in PACKAGES:
        added[f"reference/api/{package}.md"] = _api(package)
    for path, text in added.items():
        files.append(File.generated(config, path, content=text))
    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            for page in _notebook(file, config):
                files.append(page)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn the links of a page into those of the site, and keep its Markdown."""
    uri = page.file.src_uri
    source = uri.removeprefix("repository/") if uri.startswith("repository/") else f"docs/{uri}"
    if page.file.abs_src_path is not None or uri.startswith("repository/"):
        markdown = _linked(markdown, source)
    # Python-Markdown needs the empty line that ends a table on GitHub without being there.
    markdown = re.sub(r"^( *\|.*\|)\n(?! *\||\n)", r"\1\n\n", markdown, flags=re.MULTILINE)
    _texts[uri] = (_title(markdown), markdown)
    if uri == "reference/python-api.md":
        markdown = re.sub(
            r"^(## `(\w+)`)$",
            r"\1\n\n[Everything in full](api/\2.md)",
            markdown,
            flags=re.MULTILINE,
        )
    return markdown


def on_post_build(config: MkDocsConfig) -> None:
    """Write the Markdown of each page, `llms.txt` as their index, and all of them in one file."""
    site = Path(config.site_dir)
    by_section: dict[str, list[str]] = {}
    for uri, (title, markdown) in _texts.items():
        (site / uri).parent.mkdir(parents=True, exist_ok=True)
        (site / uri).write_text(markdown, encoding="utf-8")
        folder = uri.partition("/")[0] if "/" in uri else ""
        by_section.setdefault(folder, []).append(f"- [{title}]({uri}){_first_sentence(markdown)}")
    titles = {folder: title for title, (folder, _) in SECTIONS.items()}
    lines = [f"# {config.site_name}", "", f"> {SUMMARY}", "", *by_section.pop("", [])]
    for folder, title in {**titles, "repository": "Optional"}.items():
        if folder in by_section:
            lines += ["", f"## {title}", "", *by_section[folder]]
    (site / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    full = [f"<!-- {uri} -->\n\n{markdown.strip()}\n" for uri, (_, markdown) in _texts.items()]
    (site / "llms-full.txt").write_text("\n".join(full), encoding="utf-8")


def _linked(markdown: str, source: str, made: Collection[str] = ()) -> str:
    """Return the Markdown of a file with the links of the site; `made` are no files of its own."""

    def missing(target: str) -> None:
        if target not in made:
            _log.warning("%s links to %s: no such file", source, target)

    return site_links.for_the_site(markdown, source, missing)


class _ListsAsOnGitHub(Extension):
    """Lists nest by two spaces, and begin right below a paragraph, as in CommonMark."""

    def extendMarkdown(self, md: python_markdown.Markdown) -> None:  # noqa: N802 - theirs
        tab_length, md.tab_length = md.tab_length, 2
        for processor in md.parser.blockprocessors:
            if isinstance(processor, ListIndentProcessor | OListProcessor):  # and UListProcessor
                processor.__init__(md.parser)  # type: ignore[misc]  # its patterns have the length
        md.tab_length = tab_length


def _section(folder: Path, first: tuple[str, ...]) -> list[Any]:
    """Return the entries of a section of the navigation."""
    if not folder.is_dir():
        return []
    names = {
        path.stem: path for path in sorted(folder.iterdir()) if path.suffix in {".md", ".ipynb"}
    }
    ordered = [*filter(names.__contains__, first), *(name for name in names if name not in first)]
    uri = folder.relative_to(DOCS).as_posix()
    entries: list[Any] = [f"{uri}/{name}.md" for name in ordered]
    if f"docs/{uri}" in site_links.INDEXES and "index" not in names:
        entries.insert(0, f"{uri}/index.md")
    if folder.name == "reference":
        entries += [{"Python API in full": [f"reference/api/{package}.md" for package in PACKAGES]}]
        entries += [{"Data": ["repository/data/README.md"]}]
    for name, title in SUBSECTIONS.items():
        if (folder / name).is_dir():
            entries.append({title: _section(folder / name, ("index",))})
    return entries


def _index(folder: Path) -> str:
    """Return a page that lists the pages of a folder by their titles."""
    title = SUBSECTIONS.get(folder.name) or folder.name.capitalize()
    lines = [f"# {title}", ""]
    for path in sorted(folder.iterdir()):
        if path.suffix in {".md", ".ipynb"}:
            name = _title(_markdown_of(path)[0])
            lines.append(f"- [{name}]({path.stem}.md)")
    return "\n".join(lines) + "\n"


def _api(package: str) -> str:
    """Return a page of the public names of a package."""
    names = importlib.import_module(package).__all__
    after = "---\nsearch:\n  boost: 0.5\n---\n"  # pages that explain are found first
    return f"{after}# {package}\n\n" + "\n".join(f"::: {package}.{name}\n" for name in names)


def _notebook(file: File, config: MkDocsConfig) -> list[File]:
    """Return the page of a notebook, with a link to the notebook, and its pictures."""
    assert file.abs_src_path is not None
    text, pictures = _markdown_of(Path(file.abs_src_path))
    uri = file.src_uri.removesuffix(".ipynb")
    folder = uri.rpartition("/")[0]
    text = _linked(text, f"docs/{file.src_uri}", set(pictures))
    text = re.sub(r"\]\((output_\d+_\d+\.\w+)\)", rf"]({Path(uri).name}-\1)", text)
    note = f"\n\n[This page as a notebook]({Path(file.src_uri).name})\n"
    head, line, rest = text.partition("\n")
    pages = [File.generated(config, f"{uri}.md", content=f"{head}{note}{line}{rest}")]
    for name, content in pictures.items():
        pages.append(File.generated(config, f"{folder}/{Path(uri).name}-{name}", content=content))
    return pages


def _markdown_of(path: Path) -> tuple[str, dict[str, bytes]]:
    """Return a page as Markdown, and the pictures that a notebook holds: name → content."""
    if path.suffix != ".ipynb":
        return path.read_text(encoding="utf-8"), {}
    exporter = nbconvert.MarkdownExporter()  # type: ignore[no-untyped-call]
    text, resources = exporter.from_filename(str(path))
    return text.strip() + "\n", resources["outputs"]


def _title(markdown: str) -> str:
    found = re.search(r"^# (.+)$", markdown, re.MULTILINE)
    return found[1].replace("`", "") if found else "Untitled"


def _first_sentence(markdown: str) -> str:
    """Return `: ` and the first sentence below the title; empty if that is no paragraph."""
    after = markdown.partition("\n")[2].strip().partition("\n\n")[0]
    if not re.match(r"[A-Z`*]", after):
        return ""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(after.split()))
    found = re.match(r".+?[.!?](?=\s|$)", text)
    return f": {found[0]}" if found else ""
