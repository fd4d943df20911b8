"""A case: the state of one question in progress, and the agents that work on it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TypeVar

from exaid_core.trace.bus import TraceBus
from exaid_core.trace.events import LONGEST_CASE_ID
from mdagents.agents.agent import Agent
from mdagents.agents.events import Observer, unobserved
from mdagents.agents.prompts import render
from mdagents.agents.status import status_of
from mdagents.datasets.questions import Question
from mdagents.settings import ImageAgents, Status, TeamRole, TeamSettings, expert_number
from mdagents_llm.chat import ChatModel
from mdagents_llm.errors import BenchError, ProviderError, StructuredOutputError
from mdagents_llm.pictures import Picture

T = TypeVar("T")

PREPARE = "prepare"
"""Case of calls that prepare several questions, and so belong to none of them."""

ModelError = (ProviderError, StructuredOutputError)
"""Errors of a model call, as opposed to errors of the program."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A failed turn without which the team continued."""

    agent: str
    phase: str
    error: str
    status: Status | None = None
    """How the turn ended; None in records of earlier versions."""

    @classmethod
    def because(cls, agent: str, phase: str, error: BenchError) -> LeftOut:
        """Return a turn that ended in an error."""
        return cls(agent, phase, str(error), status_of(error))


@dataclass(slots=True)
class Case:
    """State of one question in progress. Cases share only model clients and connections."""

    id: str
    question: Question
    models: Mapping[str, ChatModel]
    """Role -> model; `expert-2` besides `expert` if the second expert has its own model."""
    settings: TeamSettings
    seed: int
    pictures: tuple[Picture, ...] = ()
    """Pictures of the question, as they are sent; empty also for `--images drop`."""
    image_agents: ImageAgents = ImageAgents.ALL
    """Which agents see the pictures."""
    were_shown: bool = False
    """Whether an agent of the case was given the pictures."""
    bus: TraceBus = field(default_factory=TraceBus)
    """Bus on which the turns of the case's agents are published."""
    tell: Observer = unobserved
    """Observer to notify of the events of the case; it never raises."""
    repeat: int = 0
    """Index of the repetition (epoch) of the question, from 0."""
    repairs: list[str] = field(default_factory=list)
    """Corrections by rule of valid replies, and replacements by a fallback."""
    left_out: list[LeftOut] = field(default_factory=list)

    def decider(self, agent_id: str, role: str, model_role: TeamRole) -> Agent:
        """Return an agent that routes, recruits or decides, at the temperature of decisions."""
        return self._agent(agent_id, role, model_role, self.settings.decision_temperature)

    def expert(self, prefix: str, role: str, expertise: str) -> Agent:
        """Return a recruited clinician whose id is `prefix` and the role: `iat-1-surgeon`.

        A prefix such as `expert-2` is also the role of the clinician's model, if one was chosen for
        it.
        """
        model_role = prefix if prefix in self.models else TeamRole.EXPERT.value
        temperature = self.settings.expert_temperature
        agent = self._agent(f"{prefix}-{_slug(role)}", role, model_role, temperature)
        agent.persona = render("persona", role=role, expertise=expertise)
        return agent

    @property
    def seats(self) -> list[Agent]:
        """Experts with their own models and without a persona, `expert-1` first."""
        temperature = self.settings.expert_temperature
        numbers = sorted(n for n in map(expert_number, self.models) if n is not None)
        roles = [f"{TeamRole.EXPERT}-{number}" for number in numbers]
        return [self._agent(role, role.capitalize().replace("-", " "), role, temperature)
                for role in roles]  # fmt: skip

    def reorder_options(self, agent: Agent, order: Mapping[str, str]) -> None:
        """Show an agent the options, and their pictures, in another order.

        The agent's events and replies keep the letters of the case.

        Args:
            agent: Agent of this case.
            order: Letter that the agent sees -> letter of the case.
        """
        question = self.question.reordered(order)
        agent.letters = order
        agent.question_block = question.block(with_pictures=bool(agent.pictures))
        agent.options = question.options
        if agent.pictures:
            seen = {of: letter for letter, of in order.items()}
            places = sorted(
                range(len(agent.pictures)),
                key=lambda place: seen.get(self.question.pictures[place].option, ""),
            )
            agent.pictures = tuple(
                replace(agent.pictures[place], label=label)
                for place, label in zip(places, question.labels(), strict=True)
            )

    def _sees(self, model_role: str) -> bool:
        """Return whether the agents of a role see the pictures of the question."""
        return bool(self.pictures) and sees_pictures(model_role, self.image_agents)

    def _agent(self, agent_id: str, role: str, model_role: str, temperature: float) -> Agent:
        sees = self._sees(model_role)
        self.were_shown |= sees
        return Agent(
            id=agent_id,
            role=role,
            model=self.models[model_role],
            model_role=model_role,
            case_id=self.id,
            question_block=self.question.block(with_pictures=sees),
            options=self.question.options,
            temperature=temperature,
            seed=self.seed,
            pictures=self.pictures if sees else (),
            bus=self.bus,
            tell=self.tell,
            repeat=self.repeat,
        )

    def leave_out(self, agent: Agent, phase: str, error: BenchError) -> None:
        """Record that the team continues without this turn."""
        self.left_out.append(LeftOut.because(agent.id, phase, error))

    async def ask_all(
        self,
        agents: Sequence[Agent],
        phase: str,
        ask: Callable[[Agent], Awaitable[T]],
        *,
        required: bool = True,
    ) -> list[tuple[Agent, T]]:
        """Ask several agents at once; those that fail are left out and named in the record.

        Args:
            agents: Agents to ask.
            phase: Step of the protocol, for the record.
            ask: Returns the reply of one agent.
            required: Whether the team needs at least one reply to continue.

        Returns:
            (agent, reply) of those who replied, in the order of `agents`.

        Raises:
            ProviderError, StructuredOutputError: No agent replied although a reply is required; an
                error of the endpoint is raised rather than that of an unusable reply.
        """
        outcomes = await gather(*(_outcome(ask(agent)) for agent in agents))
        replies: list[tuple[Agent, T]] = []
        errors: list[BenchError] = []
        for agent, (reply, error) in zip(agents, outcomes, strict=True):
            if error is None:
                assert reply is not None
                replies.append((agent, reply))
            else:
                errors.append(error)
                self.leave_out(agent, phase, error)
        if required and errors and not replies:
            raise next((e for e in errors if isinstance(e, ProviderError)), errors[0])
        return replies


async def _outcome(call: Awaitable[T]) -> tuple[T | None, BenchError | None]:
    try:
        return await call, None
    except ModelError as error:
        return None, error


async def gather(*calls: Awaitable[T]) -> list[T]:
    """Run independent calls together; the first error cancels the rest and is raised unwrapped."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_await(call)) for call in calls]
    except BaseExceptionGroup as errors:
        raise first_of(errors) from None
    return [task.result() for task in tasks]


async def _await(call: Awaitable[T]) -> T:
    return await call


def first_of(error: BaseException) -> BaseException:
    """Return the first error of a group; bugs of the program precede expected errors."""
    while isinstance(error, BaseExceptionGroup):
        bugs = [e for e in error.exceptions if not isinstance(e, BenchError)]
        error = (bugs or error.exceptions)[0]
    return error


def is_stray_cancellation(error: BaseException) -> bool:
    """Return whether an error is a cancellation that nobody has asked for in the current task.

    Awaiting a task that was cancelled raises it. A task group would drop it in silence.
    """
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and not task.cancelling()


def sees_pictures(model_role: str, image_agents: ImageAgents) -> bool:
    """Return whether the agents of a role see the pictures of questions."""
    if image_agents is ImageAgents.ALL:
        return True
    is_expert = model_role == TeamRole.EXPERT or expert_number(model_role) is not None
    return is_expert or model_role == TeamRole.ROUTER


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-") or "clinician"


def make_case_id(question_id: str, epoch: int = 1) -> str:
    """Return the question's id made safe for file names, with `-eN` from epoch 2 on.

    An id that changes when it is made safe gets 6 characters of its hash, and one that is cut to
    `LONGEST_CASE_ID` gets 32, so that two ids that become equal remain distinct.
    """
    safe = re.sub(r"[^A-Za-z0-9]+", "-", question_id).strip("-")
    looks_like_an_epoch = re.search(r"-e\d+$", safe)
    is_exact = safe == question_id and not looks_like_an_epoch
    hashed = sha256(question_id.encode()).hexdigest()
    digest = "" if is_exact else hashed[:6]
    suffix = f"-e{epoch}" if epoch > 1 else ""
    case_id = "-".join(filter(None, ("case", safe, digest))) + suffix
    if len(case_id) <= LONGEST_CASE_ID:
        return case_id
    room = LONGEST_CASE_ID - len(f"case--{hashed[:32]}{suffix}")
    return f"case-{safe[:room].strip('-')}-{hashed[:32]}{suffix}"
