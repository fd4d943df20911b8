"""EXAID for LangChain and LangGraph: a callback handler that forwards what agents say."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from itertools import chain
from typing import Any, ParamSpec, cast
from uuid import UUID
from weakref import ref

from exaid_core.integrations.feed import Feed, Listener, Turn, as_text, is_control_flow
from mdagents_llm.extras import needs_extra
from mdagents_llm.reasoning_tags import without_reasoning

with needs_extra("langchain", "ExaidCallback", ImportError):
    from langchain_core.callbacks import AsyncCallbackHandler
    from langchain_core.messages import BaseMessage, ToolCallChunk
    from langchain_core.outputs import ChatGeneration, LLMResult

    from exaid_core.integrations.langchain_text import Parts, Step, content, data, results, update

__all__ = ["ExaidCallback"]

P = ParamSpec("P")

_BRANCH = "map:key:"  # prefix of LangChain's tag for a branch of a RunnableParallel
_TAGS = (_BRANCH, "graph:step:", "seq:step:", "langsmith:", "branch:")
_UNNAMED = ("Runnable", "LangGraph")
_ERROR_HANDLER = "__error_handler__"  # prefix of LangGraph's name for the error handler of a node
_NODE_TIMEOUT = "NodeTimeoutError"  # in LangGraph; the run of the node itself is only canceled
_PARENT_COMMAND = "ParentCommand"  # in LangGraph; carries what a node returns to the graph around
_MOST_BRANCHES = 10_000  # numbers of branches that are kept for a run that goes on
_OF_AN_AGENT = frozenset(
    {
        # Nodes of the single-agent graphs that `create_agent` and `create_react_agent` build.
        *("agent", "model", "tools", "pre_model_hook", "post_model_hook"),
        "generate_structured_response",
    }
)


class _Nothing:
    """Result of a callback: awaitable, but not a coroutine that needs an event loop."""

    def __await__(self) -> Iterator[None]:
        return iter(())


_NOTHING = _Nothing()


def _at_once(method: Callable[P, None]) -> Callable[P, Coroutine[Any, Any, None]]:
    """Turn a method into a callback that never raises.

    The callback is a plain function: from synchronous code, LangChain runs each callback coroutine
    on an event loop of its own, which costs more than the token that it is called for.
    """

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, None]:
        try:
            method(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - an observer must not disturb the graph
            cast("ExaidCallback", args[0])._feed.failed(error)  # noqa: SLF001
        return cast("Coroutine[Any, Any, None]", _NOTHING)

    return call


@dataclass(slots=True)
class _Run:
    """A run in progress of a chain, a model or a tool."""

    root: UUID
    """Id of the outermost run that contains this one."""
    agent: str
    """Name of the agent that speaks in the run; empty if nothing but the run's class names it."""
    name: str = ""
    """Name that a chain was given."""
    node: str = ""
    """Node of a graph in which the run takes place."""
    place: str = ""
    """Path of `node` and the nodes around it: LangGraph's `langgraph_checkpoint_ns`."""
    steps: tuple[Step, ...] = ()
    """Nodes in which the run takes place, from the outermost graph inward."""
    step: str = ""
    """Path of the node if the run is one; empty otherwise."""
    inputs: object = None
    """Input of a chain, such as a graph; None if the run is a node."""
    failure: BaseException | None = None
    """Exception of a node that is reported, if the run is the outermost; None without one."""
    turn: Turn | None = None
    """Turn in which a model speaks; None if the run is not a model."""
    task: ref[asyncio.Task[Any]] | None = None
    """Task in which a model is asked; None without an event loop."""
    branches: Counter[tuple[str, object]] = field(default_factory=Counter)
    """Number of branches by path of their node and step of the graph, if the run is the outermost.
    """
    tool: str = ""
    """Name of the tool; empty if the run is not a tool."""
    said: list[str] = field(default_factory=list)
    """Pieces of the text of a model so far."""
    parts: Parts = field(default_factory=Parts)
    """Part of the reply that a model is saying."""
    told_by: str = ""
    """Channel of the streamed text, `tokens` or `events`; the other one would repeat it."""
    callbacks: int = 1
    """Number of times that each piece arrives: once per registration of the callback."""
    pieces: int = 0
    """Number of pieces so far, repetitions included."""
    call: int | str | None = None
    """Index of the tool call that is forwarded as it arrives; None before it."""
    last_call: int | str | None = None
    """Index of the tool call of the latest piece, to which a piece without an index belongs."""
    later_calls: dict[int | str, list[ToolCallChunk]] = field(default_factory=dict)
    """Pieces of the other tool calls, by index: their pieces may arrive by turns."""
    named: tuple[int | str | None, str | None, str | None] = (None, None, None)
    """Index, id and name of the latest tool call that is forwarded in pieces."""


class _Hearing(Feed):
    """The feed that all callbacks of an EXAID share, since they may report the same run."""

    def __init__(self, exaid: Listener) -> None:
        super().__init__(exaid)
        self.runs: dict[UUID, _Run] = {}
        self.steps: dict[str, Step] = {}
        self.branches: dict[str, int] = {}
        """Numbers of the latest branches by place: the branches that `Send` starts of one node."""


class ExaidCallback(AsyncCallbackHandler):
    """Sends the text of the agents in a LangGraph or LangChain program to EXAID.

        async with EXAID() as exaid:
            await graph.ainvoke(state, config={"callbacks": [ExaidCallback(exaid)]})

    An agent is a node of the graph, or a graph made of a single agent (by `create_agent`, for
    example). Without a graph, an agent is named after its run or a run around it, else after the
    run's first tag, else after the class of the model. Text is taken token by token if the model
    streams, else whole. Tool calls, their results and failures are turns as well, and so is what a
    node returns: messages of agents and texts that were not in its input and that no model in it
    has said. Reasoning is left out, and data is cut to `LONGEST_DATA`.

    The handler does not affect the program: it waits for nothing and raises nothing. One handler
    can serve several concurrent runs, synchronous methods and any thread; several handlers of one
    EXAID work like one.

    Args:
        exaid: An `EXAID` or a `SyncExaid`; its owner closes it after the program.

    Raises:
        TypeError: `exaid` is neither an `EXAID` nor a `SyncExaid`.
    """

    run_inline = True

    def __init__(self, exaid: Listener) -> None:
        self._feed = _Hearing.of(exaid)
        self._runs, self._steps = self._feed.runs, self._feed.steps

    @property
    def ignore_retriever(self) -> bool:
        """True, because documents are not said by an agent."""
        return True

    @property
    def ignore_retry(self) -> bool:
        """True, because each attempt is a run of its own."""
        return True

    @property
    def ignore_custom_event(self) -> bool:
        """True, because custom events may contain anything."""
        return True

    # Models

    @_at_once
    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Start a turn."""
        self._begin(run_id, parent_run_id, tags, metadata, kwargs.get("name"), _kind(serialized))

    @_at_once
    def on_llm_start(
        self,
        serialized: dict[str, Any],
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Start a turn."""
        self._begin(run_id, parent_run_id, tags, metadata, kwargs.get("name"), _kind(serialized))

    @_at_once
    def on_llm_new_token(
        self,
        token: str | list[str | dict[str, Any]],
        *,
        chunk: Any = None,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        """Forward a piece of a model's text or tool call."""
        if not self._is_told_by(run_id, "tokens"):
            return
        message = getattr(chunk, "message", None)
        if isinstance(message, BaseMessage):
            for text, is_new_part in self._runs[run_id].parts.of(message):
                self._say(run_id, text, is_new_part=is_new_part)
            for part in getattr(message, "tool_call_chunks", ()):
                self._take_call(run_id, part)
        elif isinstance(token, str):
            self._say(run_id, token)

    @_at_once
    def on_stream_event(
        self,
        event: Any,
        *,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        """Forward a piece of text or a tool call from version 3 of LangChain's streams."""
        if not self._is_told_by(run_id, "events"):
            return
        match event:
            case {"event": "content-block-delta", "delta": {"type": "text-delta", "text": text}}:
                is_new_part = self._runs[run_id].parts.begins(event.get("index"))
                self._say(run_id, text, is_new_part=is_new_part)
            case {"event": "content-block-finish", "content": {"type": "tool_call", **call}}:
                self._say_call(run_id, str(call.get("name")), as_text(call.get("args")))

    @_at_once
    def on_llm_end(
        self,
        response: LLMResult,
        *,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        """End a turn; if nothing was streamed, forward the whole text first."""
        run = self._runs.get(run_id)
        try:
            if run and run.turn:
                run.turn.flush()
            is_silent = run and run.turn and not run.turn.has_spoken and not run.later_calls
            for generations in response.generations[:1]:
                if is_silent:
                    self._say_whole(run_id, generations[0])
                if run and run.steps and isinstance(generations[0], ChatGeneration):
                    texts = tuple(data(generations[0].message))
                    for step in run.steps:
                        step.hear(*texts)
        finally:
            self._end(run_id)

    @_at_once
    def on_llm_error(
        self,
        error: BaseException,
        *,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        """End a turn that has failed."""
        self._end(run_id, error)

    # Tools

    @_at_once
    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        inputs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Record who calls a tool, and forward the call if no model made it."""
        if run_id in self._runs:
            return
        name = str((serialized or {}).get("name") or kwargs.get("name") or "tool")
        run = self._add(run_id, parent_run_id, tags, metadata, "", "tool")
        run.tool = name
        if not kwargs.get("tool_call_id"):
            arguments = as_text(inputs if inputs is not None else input_str)
            self._feed.say(run.agent, f"{name}: {arguments}\n")

    @_at_once
    def on_tool_end(
        self,
        output: Any,
        *,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        """Forward the result of a tool."""
        run = self._runs.pop(run_id, None)
        if run is not None:
            texts = results(output)
            for step in run.steps:
                step.results.update(texts)
            said = "\n".join(texts)
            self._feed.say(run.agent, f"{run.tool} → {said}")

    @_at_once
    def on_tool_error(
        self,
        error: BaseException,
        *,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        """End the turn of a tool that has failed."""
        self._end(run_id, error)

    # Nodes, and chains around models

    @_at_once
    def on_chain_start(
        self,
        serialized: dict[str, Any],
        inputs: dict[str, Any],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Record who speaks in a run."""
        if run_id in self._runs:
            return
        name = str(kwargs.get("name") or "").removeprefix(_ERROR_HANDLER)
        node, place = _where(metadata)
        step = ""
        # The outermost run of a node or task has its name; runs inside may have the same name.
        if place and name == node and place not in self._steps:
            step = place
            self._steps[step] = Step(inputs)
        own = "" if name.startswith(_UNNAMED) or name == _kind(serialized) else name
        run = self._add(run_id, parent_run_id, tags, metadata, own)
        run.step = step
        graph = self._runs.get(parent_run_id) if parent_run_id else None
        for outer in run.steps[:-1] if step else ():
            outer.contain(run.steps[-1], graph.inputs if graph else None)
        run.inputs = None if step else inputs

    @_at_once
    def on_chain_end(
        self,
        outputs: dict[str, Any],
        *,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        """Forward what a node returns and no model in it has said."""
        self._say_update(*self._end_chain(run_id), outputs)

    @_at_once
    def on_chain_error(
        self,
        error: BaseException,
        *,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        """Report that a node failed, unless a model or tool in it already reported the failure."""
        run, step = self._end_chain(run_id)
        if type(error).__name__ == _PARENT_COMMAND:
            self._say_update(run, step, error.args[0])
        if run is None or is_control_flow(error):
            return
        outermost = self._runs.get(run.root, run)
        if step is not None:
            agent, known = run.agent, step.error
        elif type(error).__name__ == _NODE_TIMEOUT:
            node = str(getattr(error, "node", ""))
            agent, known = _agent(run, node, run.place, None, ""), outermost.failure
            self._end_canceled(run.root, f"{run.place}|")
        else:
            return
        if known is error:
            return
        outermost.failure = error
        for each in run.steps:
            each.error = error
        self._feed.start_turn(agent).end(error)

    # All runs

    def _begin(
        self,
        run_id: UUID,
        parent_run_id: UUID | None,
        tags: Sequence[str] | None,
        metadata: Mapping[str, Any] | None,
        name: object,
        kind: str,
    ) -> None:
        if run_id in self._runs:
            self._runs[run_id].callbacks += 1
            return
        own = str(name) if name and name != kind else ""
        run = self._add(run_id, parent_run_id, tags, metadata, own, kind)
        run.task = _current_task()
        self._free_names(run)
        run.turn = self._feed.start_turn(run.agent)

    def _free_names(self, run: _Run) -> None:
        """End the turns of models that have said nothing and that nobody asks any more.

        A model that is not streamed reports no end if it is canceled. One that is asked in the same
        task may still answer, if it asks the other one.
        """
        for other_id, other in tuple(self._runs.items()):
            if other.turn is None or other.task is None or other.pieces:
                continue
            task = other.task()
            if task is None or task.done():
                self._end(other_id)
            elif other.agent == run.agent and other.task == run.task:
                other.turn.end()

    def _add(
        self,
        run_id: UUID,
        parent_run_id: UUID | None,
        tags: Sequence[str] | None,
        metadata: Mapping[str, Any] | None,
        name: str,
        kind: str = "",
    ) -> _Run:
        around = self._runs.get(parent_run_id) if parent_run_id else None
        node, place = _where(metadata)
        root = around.root if around else run_id
        if root in self._runs:
            self._count_branch(self._runs[root], metadata or {}, node, place)
        agent = _agent(around, node, place, tags, name)
        if agent == node and node not in _OF_AN_AGENT:
            agent += self._number_of(place)
        if not agent and kind:
            agent = next((tag for tag in tags or () if not tag.startswith(_TAGS)), kind)
        run = _Run(root, agent, name, node, place, self._steps_around(place, around))
        self._runs[run_id] = run
        return run

    def _count_branch(
        self, outermost: _Run, metadata: Mapping[str, Any], node: str, place: str
    ) -> None:
        """Give a branch that `Send` starts its number among those of its node in a step of a graph.

        A branch that goes on after an interrupt has its place again, and keeps its number.
        """
        match metadata.get("langgraph_path"):
            case ["__pregel_push", int(), *_] if place not in self._feed.branches:
                key = place.rpartition(":")[0], metadata.get("langgraph_step")
                outermost.branches[key] += 1
                self._feed.branches[place] = outermost.branches[key]
                if len(self._feed.branches) > _MOST_BRANCHES:
                    del self._feed.branches[next(iter(self._feed.branches))]

    def _number_of(self, place: str) -> str:
        """Return the suffix for the name of an agent at a place; empty in the first branch."""
        known = self._feed.branches
        numbers = [known[each] for each in _places(place) if each in known]
        return f" ({'.'.join(map(str, numbers))})" if any(each > 1 for each in numbers) else ""

    def _end_chain(self, run_id: UUID) -> tuple[_Run | None, Step | None]:
        run = self._runs.pop(run_id, None)
        if run is None:
            return None, None
        if run.root == run_id:
            self._end_canceled(run_id)
        return run, self._steps.pop(run.step, None)

    def _say_update(self, run: _Run | None, step: Step | None, outputs: object) -> None:
        if run is None or step is None:
            return
        if texts := update(outputs, step, run.agent):
            self._feed.say(run.agent, "\n".join(texts))
        for each in run.steps:
            each.said |= step.said

    def _end_canceled(self, root: UUID, place: str = "") -> None:
        """End the runs at a place, since canceled runs report their end late or never."""
        for run_id, run in tuple(self._runs.items()):
            if run.root == root and run.place.startswith(place):
                self._steps.pop(run.step, None)
                self._end(run_id)

    def _end(self, run_id: UUID, error: BaseException | None = None) -> None:
        self._say_later_calls(run_id)
        run = self._runs.pop(run_id, None)
        if run is None:
            return
        if error is not None:
            for step in run.steps:
                step.error = error
        if run.turn is not None:
            (run.turn if error is None else self._again(run)).end(error)
        elif run.tool and error is not None:
            self._feed.start_turn(run.agent).end(error, run.tool)

    def _is_told_by(self, run_id: UUID, way: str) -> bool:
        run = self._runs.get(run_id)
        if run is None:
            return False
        run.told_by = run.told_by or way
        if run.told_by != way:
            return False
        run.pieces += 1
        return run.pieces % run.callbacks == 0

    def _say(self, run_id: UUID, text: str, *, is_new_part: bool = False) -> None:
        run = self._runs.get(run_id)
        if run is not None and run.turn is not None and text:
            self._again(run).say(text, is_new_part=is_new_part)
            for step in () if run.said else run.steps:
                step.replies.append(run.said)
            run.said.append(text)

    def _again(self, run: _Run) -> Turn:
        """Return the turn of a model, a new one if it was taken for gone."""
        if run.turn is None or run.turn.is_over:
            run.turn = self._feed.start_turn(run.agent)
        return run.turn

    def _say_call(self, run_id: UUID, name: str | None, arguments: str | None) -> None:
        run = self._runs.get(run_id)
        if name:
            is_later = run is not None and run.turn is not None and run.turn.has_spoken
            arguments = f"\n{name}: {arguments or ''}" if is_later else f"{name}: {arguments or ''}"
        if run is not None and run.turn is not None and arguments:
            self._again(run).say_call(arguments)
            run.parts.has_other = True

    def _take_call(self, run_id: UUID, part: ToolCallChunk) -> None:
        run = self._runs.get(run_id)
        if run is None:
            return
        own: int | str | None = part.get("index")
        run.last_call = index = run.last_call if own is None else own
        run.call = index if run.call is None else run.call
        if index is not None and index != run.call:
            run.later_calls.setdefault(index, []).append(part)
            return
        self._say_part(run_id, run, part)

    def _say_part(self, run_id: UUID, run: _Run, part: ToolCallChunk) -> None:
        """Forward a piece of a tool call, whose name some endpoints repeat in each piece."""
        index, call_id, name = run.named
        own_index, own_id, own = part.get("index"), part.get("id") or None, part.get("name")
        is_same = index is not None and index == own_index and own_id in (None, call_id)
        if is_same and own == name:
            own = None
        elif own:
            run.named = own_index, own_id, own
        self._say_call(run_id, own, part.get("args"))

    def _say_later_calls(self, run_id: UUID) -> None:
        run = self._runs.get(run_id)
        if run is None:
            return
        for part in chain.from_iterable(run.later_calls.values()):
            self._say_part(run_id, run, part)

    def _say_whole(self, run_id: UUID, generation: object) -> None:
        if not isinstance(generation, ChatGeneration):
            self._say(run_id, without_reasoning(str(getattr(generation, "text", ""))))
            return
        self._say(run_id, content(generation.message))
        for call in getattr(generation.message, "tool_calls", ()):
            self._say_call(run_id, call["name"], as_text(call["args"]))
        for wrong in getattr(generation.message, "invalid_tool_calls", ()):
            self._say_call(run_id, wrong["name"], wrong["args"])

    def _steps_around(self, place: str, around: _Run | None) -> tuple[Step, ...]:
        """Return the steps at a place; a graph with a thread of its own has a place of its own."""
        steps = [self._steps[each] for each in _places(place) if each in self._steps]
        known = set(map(id, steps))
        return (
            *(each for each in (around.steps if around else ()) if id(each) not in known),
            *steps,
        )


def _where(metadata: Mapping[str, Any] | None) -> tuple[str, str]:
    """Return the graph node in which a run takes place, and the path of the node."""
    known = metadata or {}
    node, place = known.get("langgraph_node"), known.get("langgraph_checkpoint_ns")
    return str(node or "").removeprefix(_ERROR_HANDLER), str(place or "")


def _places(place: str) -> Iterator[str]:
    """Yield a place and those around it, from the outermost graph inward."""
    parts = place.split("|")
    return ("|".join(parts[: count + 1]) for count in range(len(parts)))


def _current_task() -> ref[asyncio.Task[Any]] | None:
    with suppress(RuntimeError):  # no event loop runs in this thread
        task = asyncio.current_task()
        return None if task is None else ref(task)
    return None


def _agent(
    around: _Run | None, node: str, place: str, tags: Sequence[str] | None, name: str
) -> str:
    """Return the name of the agent that speaks in a run; empty if nothing names it."""
    if node in _OF_AN_AGENT and around:
        is_tool_of_another = around.place != place and around.node in _OF_AN_AGENT
        return (around.name if is_tool_of_another else "") or around.agent or node
    if node:
        return node
    branch = next((t.removeprefix(_BRANCH) for t in tags or () if t.startswith(_BRANCH)), "")
    return name or branch or (around.agent if around else "")


def _kind(serialized: Mapping[str, Any] | None) -> str:
    """Return the name of the class that runs."""
    known = serialized or {}
    return str(known.get("name") or (known.get("id") or ["model"])[-1])
