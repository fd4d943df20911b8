"""Medprompt: similar questions that the model has solved, shuffled options, and a vote.

It makes 5 calls at once, after at most 4 steps that solve train questions which no earlier question
needed.

Source: Nori et al. 2023, https://arxiv.org/abs/2311.16452: dynamic few-shot selection, chains of
thought written by the model itself, choice-shuffling ensemble.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import TYPE_CHECKING

from mdagents.agents import replies
from mdagents.agents.agent import Agent
from mdagents.agents.case import PREPARE, Case, LeftOut, ModelError, gather
from mdagents.agents.prompts import render
from mdagents.agents.replies import Opinion
from mdagents.datasets.dataset import open_dataset
from mdagents.datasets.exemplars import SHOTS, train_file
from mdagents.datasets.questions import Question
from mdagents.settings import TeamRole, TeamSettings
from mdagents.teams.baselines import cot
from mdagents.teams.baselines.cot_sc import SAMPLES, sample
from mdagents.teams.decision import Decision, Stated
from mdagents.teams.declaration import Method
from mdagents.teams.train_split import TrainSplit
from mdagents.teams.voting import by_majority

if TYPE_CHECKING:
    from mdagents.datasets.neighbours import Neighbours  # loads numpy, which a worker may lack

TRIED = 20
"""Number of nearest train questions to try as examples; only those solved correctly are shown."""


@Method(
    roles=(TeamRole.DECISION,),
    depth=5,
    reads=("cot_words",),
    communicates=False,
    one_process=True,
    exemplars=lambda train: open_library(train),
)
async def solve(
    case: Case, question: Question, settings: TeamSettings, *, exemplars: Library
) -> Decision:
    """Show solved neighbors, then the question with its options in a separate order per sample.

    Opinions and votes are in the letters of the case. A tie goes to the answer with the higher mean
    stated confidence, then to the one sampled first. A sample that fails is left out and named.

    Raises:
        ProviderError, StructuredOutputError: Every sample failed.
    """
    solved = await exemplars.beside(case)
    orders = _orders(question, case.seed)
    samples = [_sample(case, number, order, solved) for number, order in enumerate(orders)]
    prompt = "medprompt/sample" if solved else "cot"
    task = render(prompt, words=settings.cot_words, letters=question.letters)
    reply = replies.opinion(question.letters, settings.cot_words)

    async def think(agent: Agent) -> Opinion:
        return await agent.ask(task, reply, phase="sample")

    heard = await case.ask_all(samples, "sample", think)
    return by_majority([Stated.by(agent, opinion) for agent, opinion in heard])


@dataclass(frozen=True, slots=True)
class Solved:
    """A train question and the chain of thought by which the model found its right answer."""

    question: Question
    reasoning: str

    def block(self) -> str:
        """Return the text of the example for a prompt."""
        return f"{self.question.block()}\nReasoning: {self.reasoning}\nAnswer: {self.question.gold}"


class Library:
    """Train questions that the model has solved, each on demand and at most once in a run.

    The paper solves the whole train split in advance. Here a question tries its neighbors, nearest
    first, until 5 are solved correctly: the examples are the same, for a fraction of the calls.
    These calls are recorded under the case `prepare`, with the seed of the run whichever question
    needs them, so that the reply cache answers them in all later runs.

    Args:
        neighbours: Neighbors in the train split.
        seed: Seed of the run.
    """

    def __init__(self, neighbours: Neighbours, seed: int) -> None:
        self._neighbours = neighbours
        self._seed = seed
        self._tried: dict[str, Solved | None] = {}
        self._trying: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def prepare(self) -> None:
        """Embed the train split unless that is done already: 45 min for 10,000 long questions.

        Raises:
            ConfigError: The cache folder cannot be written, or the train split was changed.
        """
        await self._neighbours.prepare()

    async def beside(self, case: Case) -> list[Solved]:
        """Return `SHOTS` solved neighbors of a case's question, the nearest first.

        If fewer of the `TRIED` nearest were solved correctly, the list is shorter and the case
        notes it.

        Raises:
            LimitExceeded: The case may make no further call.
        """
        near = await self._neighbours.near(case.question, TRIED)
        solved: list[Solved] = []
        for first in range(0, len(near), SHOTS):
            batch = near[first : first + SHOTS]
            solved += filter(None, await gather(*(self._solved(one, case) for one in batch)))
            if len(solved) >= SHOTS:
                return solved[:SHOTS]
        case.repairs.append(f"only {len(solved)} of {len(near)} similar questions became examples")
        return solved

    async def _solved(self, question: Question, case: Case) -> Solved | None:
        """Return a train question with its solution; None if it was solved wrongly or not at all.

        Cases that need it at the same time wait for the first. If the first is cancelled, may make
        no call or meets an error, the next makes the call itself.
        """
        async with self._trying[question.id]:
            if question.id not in self._tried:
                own = Case(PREPARE, question, case.models, case.settings, self._seed)
                try:
                    decision = await cot.solve(own, question, case.settings)
                except ModelError as error:
                    case.left_out.append(LeftOut.because(PREPARE, question.id, error))
                    return None
                is_right = decision.letter in question.right_letters()
                self._tried[question.id] = Solved(question, decision.analysis) if is_right else None
            return self._tried[question.id]


def open_library(train: TrainSplit) -> Library:
    """Open the train split of a data set.

    Raises:
        ConfigError: There is no train split or no embedder, or the split cannot be read.
    """
    from mdagents.datasets.neighbours import Neighbours

    path, by = train_file(train.dataset.path, "medprompt"), train.embedding()
    neighbours = Neighbours(
        open_dataset(str(path), path.parent),
        train.order,
        train.seed,
        embedder=by.embedder,
        cache_dir=by.cache_dir,
        say=by.say,
    )
    return Library(neighbours, train.seed)


def _orders(question: Question, seed: int) -> list[dict[str, str]]:
    """Return for each sample a mapping from the letter that it sees to the letter of the case.

    All orders differ as far as there are enough. Options that refer to positions stay in place.
    """
    letters = list(question.options)
    orders = {"".join(letters): letters} if question.order_kept else {}
    if not question.order_kept:
        random_order = random.Random(f"medprompt/{seed}/{question.id}")
        while len(orders) < min(SAMPLES, math.factorial(len(letters))):
            order = random_order.sample(letters, len(letters))
            orders.setdefault("".join(order), order)
    return [
        dict(zip(letters, order, strict=True)) for order in islice(cycle(orders.values()), SAMPLES)
    ]


def _sample(case: Case, number: int, order: dict[str, str], solved: Sequence[Solved]) -> Agent:
    agent = sample(case, number)
    case.reorder_options(agent, order)
    if solved:
        agent.exemplars = "\n\n".join(["Examples:", *(example.block() for example in solved)])
    return agent
