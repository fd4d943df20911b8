"""The clinical decision support system: turns a case into a recommendation, observed by EXAID."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import aclosing
from itertools import count
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, cast

from langchain_core.runnables import RunnableConfig

from demos.cdss_example.config import EXAID_WAIT, SHORT, USUAL, Limits
from demos.cdss_example.events import (
    CaseBegan,
    CaseEnded,
    Event,
    NodeBegan,
    NodeEnded,
    OnEvent,
    Recommended,
    Said,
    Summarised,
)
from demos.cdss_example.graph.cdss_graph import build_cdss_graph
from demos.cdss_example.graph.nodes import ORCHESTRATOR, SYNTHESIS
from demos.cdss_example.graph.state import CdssState, asked_at_the_limit, new_state
from demos.cdss_example.schema.clinical_case import ClinicalCase, read_case
from demos.toolkit.tracing import observe, workflow
from exaid_core import EXAID, AgentSummary, ExaidConfig, HealthState
from exaid_core.integrations.langchain import ExaidCallback
from mdagents_llm.chat import ChatModel
from mdagents_llm.config import LLMRole
from mdagents_llm.errors import BenchError
from mdagents_llm.llm_registry import get_llm

if TYPE_CHECKING:
    from demos.toolkit.program_spans import ProgramSpans

__all__ = ["CDSS", "CaseResult"]

_Result = TypeVar("_Result")


class CaseResult(TypedDict):
    """Result of `CDSS.process_case`."""

    patient_id: str
    """Patient id as given in the case; it is never sent to a model."""
    case_summary: str
    """The case as the agents read it."""
    final_synthesis: str
    """Recommendation as one text: all fields of `final_recommendation`, one per line."""
    final_recommendation: dict[str, str]
    """Field -> text: `urgency`, `assessment`, `action`, `evidence`, `uncertainty`, `safety_net`."""
    running_summary: str
    """Last running summary of the orchestrator."""
    specialists_called: list[str]
    """Specialists that were asked, each once, in order, including those that failed."""
    agents_called: list[str]
    """Node of each run, in order."""
    iteration_count: int
    """Number of node runs, at most 6."""
    specialists_failed: dict[str, str]
    """Specialist -> reason of its last failure."""
    stopped_by_limit: bool
    """Whether the orchestrator wanted another opinion when no node run was left."""
    agent_summaries: list[AgentSummary]
    """Summaries by EXAID, for display only."""
    exaid: str
    """`ok`, `off`, or the problem with the summaries."""


class CDSS:
    """Orchestrator, laboratory, cardiology and synthesis on LangGraph, observed by EXAID.

    EXAID never influences a case: without it, the recommendation is the same and arrives just as
    soon. One object can process several cases concurrently; they share nothing but the models.

    Args:
        model: Chat model of all agents; None uses `get_llm(LLMRole.MAS)`.
        exaid: Whether EXAID writes summaries.
        buffer_llm: EXAID's model that decides when to summarize; None uses `model` if that is
            given, else the model of its role.
        summarizer_llm: EXAID's model that writes the summaries; None uses `model` if that is given,
            else the model of its role.
        exaid_config: Settings of EXAID; None uses the defaults.
        exaid_wait: Seconds to wait for the last summaries at the end of a case.
        limits: Length limits of the agents' texts; None chooses them by the size of the model.
        on_event: Callback for the events of all cases.
        spans: Spans of the program for OpenTelemetry; None makes none.

    Raises:
        ConfigError: The environment selects a model without a key.
        ValueError: `exaid_wait` is negative.
    """

    def __init__(
        self,
        model: ChatModel | None = None,
        *,
        exaid: bool = True,
        buffer_llm: ChatModel | None = None,
        summarizer_llm: ChatModel | None = None,
        exaid_config: ExaidConfig | None = None,
        exaid_wait: float = EXAID_WAIT,
        limits: Limits | None = None,
        on_event: OnEvent = lambda event: None,
        spans: ProgramSpans | None = None,
    ) -> None:
        if not exaid_wait >= 0:
            raise ValueError(f"exaid_wait is {exaid_wait} but must be at least 0 seconds")
        shared: dict[str, ChatModel] = {}
        team = model or _of_role(LLMRole.MAS, shared)
        self._models = None
        if exaid:
            self._models = (
                buffer_llm or model or _of_role(LLMRole.BUFFER_AGENT, shared),
                summarizer_llm or model or _of_role(LLMRole.SUMMARIZER, shared),
            )
        self._exaid_config = exaid_config
        self._exaid_wait = exaid_wait
        if limits is None:
            limits = SHORT if getattr(team, "is_small", False) else USUAL
        self.graph = build_cdss_graph(team, limits)
        """Compiled LangGraph graph."""
        self.exaid: EXAID | None = None
        """EXAID of the case that began last; None before the first case, and without EXAID."""
        self._tell = on_event
        self._spans = spans
        self._numbers = count(1)
        self._summaries: list[AgentSummary] = []

    async def process_case(
        self, case: ClinicalCase | Mapping[str, object] | str, use_streaming: bool = True
    ) -> CaseResult:
        """Process a case and return its recommendation.

        Args:
            case: A `ClinicalCase`, its fields by name, or its text.
            use_streaming: Whether to emit the specialists' texts while they are written. The result
                is the same.

        Raises:
            ConfigError: The case is not valid, or a model cannot be used.
            EndpointDown: Every call to a model would fail.
            ProviderError: The orchestrator or the synthesis got no reply. A failed specialist is
                listed in `specialists_failed` instead, and the case continues.
            StructuredOutputError: The orchestrator or the synthesis got no reply of the required
                form. For a failed specialist, the case continues.
        """
        known, case_id = read_case(case), f"case-{next(self._numbers)}"
        with workflow(self._spans, "cdss", case_id):
            return await _cancelled_once(self._work_on(known, case_id, use_streaming=use_streaming))

    async def _work_on(
        self, known: ClinicalCase, case_id: str, *, use_streaming: bool
    ) -> CaseResult:
        text = known.as_text()
        self._tell(CaseBegan(case_id, text))
        summaries: list[AgentSummary] = []
        exaid = self.exaid = self._listener(case_id, summaries)
        try:
            state = await self._run(text, case_id, exaid, use_streaming=use_streaming)
            recommendation = state["recommendation"]
            assert recommendation is not None, "the graph ends with the synthesis"
            at_the_limit = asked_at_the_limit(state)
            self._tell(
                Recommended(recommendation.as_text(), recommendation.by_field(), at_the_limit)
            )
            trouble = "off" if exaid is None else await self._finish(exaid)
        except BenchError as error:
            self._tell(CaseEnded(failure=str(error)))
            raise
        finally:
            if exaid is not None:
                await exaid.stop()
        self._tell(CaseEnded(exaid=trouble))
        decision = state["decision"]
        assert decision is not None, "the orchestrator is the first to run"
        path = state["path"]
        asked = [node for node in path if node not in (ORCHESTRATOR, SYNTHESIS)]
        return CaseResult(
            patient_id=known.patient_id,
            case_summary=text,
            final_synthesis=recommendation.as_text(),
            final_recommendation=recommendation.by_field(),
            running_summary=decision.running_summary,
            specialists_called=list(dict.fromkeys(asked)),
            agents_called=list(path),
            iteration_count=len(path),
            specialists_failed={o.node: o.failure for o in state["opinions"] if o.failure},
            stopped_by_limit=bool(at_the_limit),
            agent_summaries=summaries,
            exaid=trouble or "ok",
        )

    def get_all_summaries(self) -> list[AgentSummary]:
        """Return the summaries of all cases since the last `reset`, oldest first."""
        return list(self._summaries)

    def get_summaries_by_agent(self, agent_id: str) -> list[AgentSummary]:
        """Return the summaries that cover one agent.

        Args:
            agent_id: Name of the agent's node, such as `cardiology`.
        """
        return [summary for summary in self._summaries if agent_id in summary.agents]

    def reset(self) -> None:
        """Forget all summaries. The result of a case in progress keeps its own."""
        self._summaries = []
        self.exaid = None

    def _listener(self, case_id: str, summaries: list[AgentSummary]) -> EXAID | None:
        """Return a separate EXAID for one case, so that no prompt ever mixes two patients."""
        if self._models is None:
            return None
        buffer_llm, summarizer_llm = self._models
        kept = self._summaries

        def take(summary: AgentSummary) -> None:
            summaries.append(summary)
            kept.append(summary)
            self._tell(Summarised(summary))

        exaid = EXAID(
            buffer_llm=buffer_llm,
            summarizer_llm=summarizer_llm,
            config=self._exaid_config,
            case_id=case_id,
            on_summary=take,
        )
        observe(exaid)
        return exaid

    async def _run(
        self, text: str, case_id: str, exaid: EXAID | None, *, use_streaming: bool
    ) -> CdssState:
        """Run the graph, emit its events, and return the final state."""
        config = RunnableConfig(
            callbacks=[] if exaid is None else [ExaidCallback(exaid)],
            metadata={"case_id": case_id, "role": LLMRole.MAS.value},
        )
        state = new_state(text, use_streaming=use_streaming)
        modes = ["custom", "values"]
        async with aclosing(self.graph.astream(state, config, stream_mode=modes)) as stream:  # type: ignore[type-var, arg-type] # it is a generator
            async for mode, news in stream:
                if mode == "values":
                    state = cast(CdssState, news)
                else:
                    assert isinstance(news, NodeBegan | Said | NodeEnded), "the nodes write these"
                    event: Event = news
                    self._tell(event)
        return state

    async def _finish(self, exaid: EXAID) -> str:
        """Wait briefly for the last summaries and return the problem with them; empty if none."""
        try:
            await exaid.close(self._exaid_wait)
        except Exception as error:  # noqa: BLE001 - an observer takes no recommendation away
            return f"EXAID itself failed: {type(error).__name__}"
        health = exaid.health
        if health.state is not HealthState.OK and health.last_failure is not None:
            failure = health.last_failure
            # The message of a foreign error may quote what was said: report its type only.
            is_ours = failure.error is None or isinstance(failure.error, BenchError)
            what = failure.message if is_ours else type(failure.error).__name__
            return f"{health.state}: {what}"
        left = exaid.tail_loss()
        return f"{left:.0%} of what was said has no summary" if left else ""


def _of_role(role: LLMRole, shared: dict[str, ChatModel]) -> ChatModel:
    """Return the model of a role; roles with the same model share it and its local server."""
    model = get_llm(role)
    return shared.setdefault(str(getattr(model, "name", role)), model)


async def _cancelled_once(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Await work, cancel it at most once, and return only after it has ended.

    A task that is cancelled again while it waits for its cancelled children abandons them. This
    happens to LangGraph with its nodes and to EXAID with its calls.
    """
    task = asyncio.create_task(work)
    is_cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            if not is_cancelled:
                task.cancel()
            is_cancelled = True
    if is_cancelled:
        if not task.cancelled():
            task.exception()  # marks the exception as retrieved: nobody is left to handle it
        raise asyncio.CancelledError
    return task.result()
