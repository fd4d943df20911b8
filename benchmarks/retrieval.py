"""Measure the document assistant's recall and search time: by words, by meaning, and by both.

    python -m benchmarks.retrieval

Recall is the share of the documents answering a question that are among the first three found,
averaged over 40 questions. The questions were written for the 12 shipped documents, without regard
to any search method. For search time, 2,000 synthetic passages are added and searched with the same
questions, in SQLite and, with `--postgres`, in PostgreSQL.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

from benchmarks.harness import REPOSITORY, make_parser, p95, parse, show_machine, show_table
from demos.document_assistant.library import Library, shipped
from demos.toolkit.database import Database
from demos.toolkit.retrieval import By, HybridRetriever, Passage
from mdagents_llm.embeddings import local_embedder

_QUESTIONS = REPOSITORY / "benchmarks" / "retrieval_questions.jsonl"
_FIRST = 3


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the documents that answer it."""

    question: str
    documents: Sequence[str]


def main(argv: Sequence[str] | None = None) -> int:
    """Print recall and search times; return the exit status."""
    parser = make_parser("retrieval", __doc__)
    parser.add_argument("--passages", type=int, default=2000, help="for the time [%(default)s]")
    parser.add_argument("--postgres", metavar="URL", help="an empty PostgreSQL database")
    options = parse(parser, argv, quick={"passages": 50})
    show_machine("retrieval")
    questions = [Question(**json.loads(line)) for line in _QUESTIONS.read_text().splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        databases: dict[str, str | Path] = {"SQLite": Path(folder) / "found.sqlite"}
        if options.postgres:
            databases["PostgreSQL"] = options.postgres
        for name, address in databases.items():
            asyncio.run(_measure(name, address, questions, options.passages))
    return 0


@asynccontextmanager
async def _retriever(address: str | Path, collection: str) -> AsyncIterator[HybridRetriever]:
    database = Database(address)
    try:
        async with HybridRetriever(database, collection, embedder=local_embedder()) as retriever:
            await Library.open(database, retriever)
            yield retriever
    finally:
        await database.close()


async def _measure(
    name: str, address: str | Path, questions: Sequence[Question], passages: int
) -> None:
    async with _retriever(address, "recall") as retriever:
        recalls: list[dict[str, object]] = []
        for by in retriever.ways:
            found = [(one, await _recall(retriever, one, by)) for one in questions]
            missed = [one.question for one, recall in found if recall < 1]
            share = mean(recall for _, recall in found)
            recalls.append(
                {"by": by.value, f"recall@{_FIRST}": f"{share:.3f}", "missed": len(missed)}
            )
            for question in missed:
                print(f"{name}, {by.value}, not all of it found: {question}")
    show_table(f"{name}: {len(questions)} questions, {len(shipped())} documents", recalls)
    async with _retriever(address, "time") as retriever:
        start = time.perf_counter()
        await retriever.add(_made_up(passages))
        print(f"\n{name}: {passages:,} passages added in {time.perf_counter() - start:.1f} s")
        times: list[dict[str, object]] = []
        for by in retriever.ways:
            taken = [await _timed(retriever, one.question, by) for one in questions]
            times.append(
                {"by": by.value, "median": f"{median(taken):.1f} ms", "p95": f"{p95(taken):.1f} ms"}
            )
    show_table(f"{name}: a search in {passages:,} passages", times)


async def _recall(retriever: HybridRetriever, question: Question, by: By) -> float:
    hits = await retriever.search(question.question, k=4 * _FIRST, by=by)
    first = [*dict.fromkeys(hit.passage.document for hit in hits)][:_FIRST]
    return len(set(first) & set(question.documents)) / len(question.documents)


async def _timed(retriever: HybridRetriever, question: str, by: By) -> float:
    start = time.perf_counter()
    await retriever.search(question, by=by)
    return (time.perf_counter() - start) * 1000


def _made_up(count: int) -> list[Passage]:
    """Return passages made of random words from the shipped documents."""
    chance = random.Random(19)
    words = " ".join(one.text for one in shipped().values()).split()
    return [
        Passage(f"p{number}", f"d{number // 4}", " ".join(chance.choices(words, k=60)), "Made up")
        for number in range(count)
    ]


if __name__ == "__main__":
    sys.exit(main())
