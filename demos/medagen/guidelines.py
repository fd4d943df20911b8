"""The guidelines: short texts in both languages that answers cite."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from demos.medagen.dictionary import fold
from demos.medagen.schemas import Language
from demos.toolkit.database import Database
from demos.toolkit.retrieval import HybridRetriever, Passage
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.matching import matching

FOLDER = Path("data/guidelines")
"""Folder of the guidelines in a clone of the repository."""

_NAME = re.compile(r"([a-z0-9]+(?:-[a-z0-9]+)*)\.(en|vi)")
_FORM = re.compile(
    r"# (?P<title>[^\n]+)\n\n(?P<text>.+?)\n\n(?:Words: (?P<words>[^\n]+)\n\n)?"
    r"Source: (?P<source>[^\n]+)\n*",
    re.DOTALL,
)
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_KINDS = {Language.ENGLISH: "english", Language.VIETNAMESE: "simple"}
"""Language of a guideline -> language setting of its retriever."""
_UNSEEN = "\n\n~ "
"""Separator before the hidden part of a text, which is searched but not shown: alternative words
and, in Vietnamese, the text without diacritics."""
_LONGEST_QUERY = 500
# Unaccented words that may have another meaning are left out: `da` is skin, `khi` a monkey.
_ENGLISH_LITTLE = """
a an and any are as at be been but by can can't cannot cant did do does for from had has have he her
him his i i'm i've if im in is it its ive me more my not of on or our she so that the their them
there they this to very was we were what when who will with would you your
"""
_VIETNAMESE_LITTLE = """
tôi mình em anh chị ông bà cháu của và là thì mà có bị được không ko rồi nữa đang đã rất này
nào với nên làm sao cần ở một các những từ như nhiều toi thi dang nay voi nhung nhu khong
"""
_SAYS_LITTLE = {
    Language.ENGLISH: frozenset(_ENGLISH_LITTLE.split()),
    Language.VIETNAMESE: frozenset(_VIETNAMESE_LITTLE.split()),
}
"""Language -> stop words, which say little about the subject of a query."""


@dataclass(frozen=True, slots=True)
class Guideline:
    """A guideline in one language."""

    id: str
    language: Language
    title: str
    text: str
    source: str
    """Public guidance that the text follows."""
    words: str = ""
    """Alternative words that users use; they are searched but not shown."""


def read_guidelines(folder: Path) -> list[Guideline]:
    """Read all guidelines of a folder: files `<id>.en.md` and `<id>.vi.md`.

    Raises:
        ConfigError: The folder has no guidelines, a file cannot be read or is malformed, or a
            guideline exists in only one language.
    """
    found: list[Guideline] = []
    for file in matching(folder, "*.md"):
        if file.name == "README.md":
            continue
        name = _NAME.fullmatch(file.name.removesuffix(".md"))
        if name is None:
            raise ConfigError(f"{file}: the name must be like chest-pain.en.md")
        try:
            form = _FORM.fullmatch(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeError) as error:
            raise ConfigError(f"{file} cannot be read: {type(error).__name__}") from None
        if form is None:
            raise ConfigError(f"{file}: it must be '# Title', the text, 'Source: …'")
        found.append(Guideline(name[1], Language(name[2]), **form.groupdict(default="")))
    if not found:
        raise ConfigError(f"there are no guidelines in {folder}; name their folder by --folder")
    for one in found:
        other = {each.id for each in found if each.language is not one.language}
        if one.id not in other:
            raise ConfigError(f"{folder}: {one.id} is there in one language only")
    return found


@dataclass(frozen=True, slots=True)
class Seeded:
    """Numbers of added and removed texts, counted over both languages."""

    added: int
    removed: int


class Guidelines:
    """The guidelines in a database, searched by words.

    Create it with `open`. Embeddings are not used: the available embedder only knows English and
    takes CPU time from other chats.
    """

    def __init__(self, retrievers: Mapping[Language, HybridRetriever]) -> None:
        self._retrievers = retrievers

    @classmethod
    @asynccontextmanager
    async def open(cls, database: Database) -> AsyncIterator[Guidelines]:
        """Open the guidelines of a database. The caller closes the database.

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

    async def seed(self, guidelines: Sequence[Guideline]) -> Seeded:
        """Replace the stored guidelines by the given ones.

        Unchanged guidelines are skipped at no cost.
        """
        added = removed = 0
        for language, retriever in self._retrievers.items():
            wanted = {one.id: _passage(one) for one in guidelines if one.language is language}
            there = set(await retriever.documents())
            for gone in there - set(wanted):
                await retriever.remove(gone)
            await retriever.add([*wanted.values()])
            added += len(set(wanted) - there)
            removed += len(there - set(wanted))
        return Seeded(added, removed)

    async def search(self, query: str, language: Language, k: int = 5) -> list[Passage]:
        """Return the guidelines that match a query, best first.

        Args:
            query: Any text, with or without diacritics.
            language: Language of the guidelines.
            k: Maximum number of guidelines.
        """
        said = unicodedata.normalize("NFC", query[:_LONGEST_QUERY].lower())
        words = _WORD.findall(said.replace("’", "'"))
        little = _SAYS_LITTLE[language]
        asked = " ".join([word for word in words if word not in little] or words)
        if language is Language.VIETNAMESE:
            asked = f"{asked} {_folded(asked)}"
        return [
            replace(hit.passage, text=hit.passage.text.partition(_UNSEEN)[0])
            for hit in await self._retrievers[language].search(asked, k=k)
        ]


def _passage(one: Guideline) -> Passage:
    text = f"{one.text}\n\nSource: {one.source}"
    unseen = one.words
    if one.language is Language.VIETNAMESE:
        unseen = f"{unseen} {_folded(f'{one.title} {one.text} {one.words}'.lower())}"
    return Passage(one.id, one.id, f"{text}{_UNSEEN}{unseen}" if unseen else text, one.title)


def _folded(text: str) -> str:
    return " ".join(fold(word) for word in text.split())
