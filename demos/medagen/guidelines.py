"""The guidelines: short texts in both languages that answers cite."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from demos.medagen.schemas import Language
from demos.medagen.words import fold
from demos.toolkit.database import Database
from demos.toolkit.retrieval import HybridRetriever, Passage
from infra.errors import ConfigError

FOLDER = Path("data/guidelines")
"""In a clone."""

_NAME = re.compile(r"([a-z0-9]+(?:-[a-z0-9]+)*)\.(en|vi)")
_FORM = re.compile(
    r"# (?P<title>[^\n]+)\n\n(?P<text>.+)\n\nSource: (?P<source>[^\n]+)\n*", re.DOTALL
)
_KINDS = {Language.ENGLISH: "english", Language.VIETNAMESE: "simple"}
"""What the retriever knows of a language."""
_FOLDED = "\n\n~ "
"""Before the text without its diacritics, by which it is found when they are left out."""
_LONGEST_QUERY = 500


@dataclass(frozen=True, slots=True)
class Guideline:
    """A text."""

    id: str
    language: Language
    title: str
    text: str
    source: str
    """The public guidance that it follows."""


def read_guidelines(folder: Path) -> list[Guideline]:
    """Read all guidelines of a folder: files `<id>.en.md` and `<id>.vi.md`.

    Raises:
        ConfigError: There is none, one cannot be read or is in no form, or lacks a language.
    """
    found: list[Guideline] = []
    for file in sorted(folder.glob("*.*.md")):
        name = _NAME.fullmatch(file.name.removesuffix(".md"))
        if name is None:
            raise ConfigError(f"{file}: the name must be like chest-pain.en.md")
        try:
            form = _FORM.fullmatch(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeError) as error:
            raise ConfigError(f"{file} cannot be read: {type(error).__name__}") from None
        if form is None:
            raise ConfigError(f"{file}: it must be '# Title', the text, 'Source: …'")
        found.append(Guideline(name[1], Language(name[2]), **form.groupdict()))
    if not found:
        raise ConfigError(f"there are no guidelines in {folder}; name their folder by --folder")
    for one in found:
        other = {each.id for each in found if each.language is not one.language}
        if one.id not in other:
            raise ConfigError(f"{folder}: {one.id} is there in one language only")
    return found


class Guidelines:
    """The guidelines in a database, found by their words.

    Made by `open`. By words and not by meaning: the embedder at hand knows English, and takes
    the processor's time from other chats.
    """

    def __init__(self, retrievers: Mapping[Language, HybridRetriever]) -> None:
        self._retrievers = retrievers

    @classmethod
    @asynccontextmanager
    async def open(cls, database: Database) -> AsyncIterator[Guidelines]:
        """Open those of a database, which the caller closes.

        Raises:
            ConfigError: The database cannot be used.
        """
        async with AsyncExitStack() as stack:
            yield cls(
                {
                    language: await stack.enter_async_context(
                        HybridRetriever(database, f"guidelines_{language}", language=kind)
                    )
                    for language, kind in _KINDS.items()
                }
            )

    async def seed(self, guidelines: Sequence[Guideline]) -> None:
        """Put guidelines in the place of those that are there.

        Those that have not changed cost nothing.
        """
        for language, retriever in self._retrievers.items():
            wanted = {one.id: _passage(one) for one in guidelines if one.language is language}
            for gone in set(await retriever.documents()) - set(wanted):
                await retriever.remove(gone)
            await retriever.add([*wanted.values()])

    async def search(self, query: str, language: Language, k: int = 5) -> list[Passage]:
        """Return the guidelines that a query is about, the best first.

        Args:
            query: Any text, with or without diacritics.
            language: Of the guidelines.
            k: How many at most.
        """
        query = query[:_LONGEST_QUERY]
        if language is Language.VIETNAMESE:
            query = f"{query} {fold(query.lower())}"
        return [
            replace(hit.passage, text=hit.passage.text.partition(_FOLDED)[0])
            for hit in await self._retrievers[language].search(query, k=k)
        ]


def _passage(one: Guideline) -> Passage:
    text = f"{one.text}\n\nSource: {one.source}"
    if one.language is Language.VIETNAMESE:
        text = f"{text}{_FOLDED}{fold(f'{one.title} {one.text}'.lower())}"
    return Passage(one.id, one.id, text, one.title)
