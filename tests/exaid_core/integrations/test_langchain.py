"""Who speaks in programs of LangGraph and LangChain, and what listening to them does not change."""

from __future__ import annotations

import asyncio
import logging
import threading
import uuid
from contextlib import suppress
from itertools import pairwise
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.language_models import FakeListLLM
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableParallel
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import NodeTimeoutError
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import InjectedState
from langgraph.types import Command, Send, TimeoutPolicy, interrupt

from exaid_core import EXAID, TraceBus
from exaid_core.integrations.langchain import ExaidCallback
from tests.exaid_core.integrations.langchain_programs import (
    ASKED,
    CASE,
    PIECES,
    QUESTION,
    TEXT,
    Speaker,
    State,
    Talk,
    agent_with_tool,
    asks,
    calls,
    graph_of,
    hear,
    prebuilt,
    says,
    streams,
    troponin,
)
from tests.exaid_core.integrations.overhearing import (
    Ears,
    OpenAIChat,
    listening,
    listening_in_a_thread,
)
from tests.fake_provider import FakeProvider, Fault


async def test_an_agent_is_a_node_and_streams_its_text() -> None:
    ears = await hear(graph_of(a=asks(streams(*PIECES)), b=asks(says(AIMessage("Fever.")))), CASE)
    assert ears.heard == [("a", TEXT), ("b", "Fever.")], "streamed or not, each once"


@pytest.mark.filterwarnings("ignore:.*is in beta")
@pytest.mark.parametrize("way", ["astream", "astream_events", "messages", "v3"])
async def test_every_way_to_run_a_graph(way: str) -> None:
    graph = graph_of(a=asks(streams(*PIECES)), b=asks(says(AIMessage("Fever."))))
    exaid, ears = listening()
    async with exaid:
        config = {"callbacks": [ExaidCallback(exaid)]}
        match way:
            case "astream":
                items: Any = graph.astream(CASE, config=config)
            case "messages":
                items = graph.astream(CASE, config=config, stream_mode="messages")
            case "astream_events":
                items = graph.astream_events(CASE, config=config, version="v2")
            case "v3":
                items = await asks_v3(streams(*PIECES), config)
        async for _ in items:
            pass
    assert ears.text_of("a") == TEXT
    if way != "v3":
        assert ears.text_of("b") == "Fever."


async def asks_v3(model: Any, config: Any) -> Any:
    stream = await model.astream_events("?", config={**config, "run_name": "a"}, version="v3")
    return stream.text


@pytest.mark.filterwarnings("ignore:.*is in beta")
@pytest.mark.parametrize("tells", [False, True])
async def test_text_and_calls_in_the_third_version_of_streams(tells: bool) -> None:
    call: Any = {"name": "Plan", "args": '{"dose": 3}', "id": "1", "index": 1}
    chunks = [
        AIMessageChunk(content=[{"type": "reasoning", "reasoning": "Hm.", "index": 0}]),
        *(AIMessageChunk(content=piece) for piece in PIECES),
        AIMessageChunk(content="", tool_call_chunks=[call]),
    ]
    model = Speaker(says=[chunks], streaming=True, tells=tells)
    exaid, ears = listening()
    async with exaid:
        async for _ in await asks_v3(model, {"callbacks": [ExaidCallback(exaid)]}):
            pass
    assert ears.heard == [("a", f'{TEXT}\nPlan: {{"dose": 3}}')]


@pytest.mark.parametrize("in_thread", [False, True])
def test_a_synchronous_graph(in_thread: bool, provider: FakeProvider) -> None:
    model = OpenAIChat(base_url=provider.openai_base_url)

    def node(state: State) -> State:
        return {"notes": [str(model.invoke(state["case"]).text)]}

    graph = graph_of(a=node, b=lambda state: {"plan": "Give aspirin."})
    if in_thread:
        exaid, ears = listening_in_a_thread()
        with exaid:
            state = graph.invoke(CASE, config={"callbacks": [ExaidCallback(exaid)]})
        assert "EXAID" not in [thread.name for thread in threading.enumerate()]
    else:

        async def run() -> tuple[Any, Ears]:
            other, ears = listening()
            async with other:  # the graph blocks the event loop of EXAID
                return graph.invoke(CASE, config={"callbacks": [ExaidCallback(other)]}), ears

        state, ears = asyncio.run(run())
    assert ears.heard == [("a", state["notes"][0]), ("b", "plan: Give aspirin.")]


def test_without_any_event_loop_the_events_wait_for_the_end() -> None:
    exaid, ears = listening()
    graph_of(a=lambda state: {"plan": "Give aspirin."}).invoke(
        CASE, config={"callbacks": [ExaidCallback(exaid)]}
    )
    asyncio.run(exaid.close())
    assert ears.heard == [("a", "plan: Give aspirin.")]


async def test_an_exaid_in_a_thread_beside_an_asynchronous_graph() -> None:
    exaid, ears = listening_in_a_thread()
    config = {"callbacks": [ExaidCallback(exaid)]}
    await graph_of(a=asks(streams(*PIECES))).ainvoke(CASE, config=config)
    await asyncio.to_thread(exaid.close)
    assert ears.heard == [("a", TEXT)]


async def test_a_synchronous_model_in_a_thread_of_an_asynchronous_graph() -> None:
    def node(state: State) -> State:  # LangGraph runs it in a thread
        return {"notes": [str(FakeListChatModel(responses=[TEXT]).invoke("?").text)]}

    assert (await hear(graph_of(a=node), CASE)).heard == [("a", TEXT)]


async def test_two_that_speak_at_once_under_one_name_are_told_apart() -> None:
    one_word = asyncio.Event()

    async def wait() -> None:
        one_word.set()
        await asyncio.sleep(0)

    async def both(state: State) -> State:
        models = [streams(*"first", pause=wait), streams(*"other", pause=wait)]
        said = await asyncio.gather(*(model.ainvoke("?") for model in models))
        return {"notes": [str(each.text) for each in said]}

    ears = await hear(graph_of(panel=both), CASE)
    assert ears.text_of("panel") == "first"
    assert ears.text_of("panel (2)") == "other"


async def test_a_fan_out_of_one_node() -> None:
    graph: Any = StateGraph(State)
    graph.add_node("expert", asks(streams(*PIECES, pause=lambda: asyncio.sleep(0))))
    sends = [Send("expert", {"case": f"case {number}"}) for number in range(3)]
    graph.add_conditional_edges(START, lambda state: sends, ["expert"])
    ears = await hear(graph.compile(), CASE)
    assert [ears.text_of(f"expert{n}") for n in ("", " (2)", " (3)")] == [TEXT] * 3


@pytest.mark.parametrize("at_once", [1, 5])
@pytest.mark.parametrize("is_inner", [False, True])
async def test_branches_have_the_same_names_in_every_run(at_once: int, is_inner: bool) -> None:
    """A node is started twice by `Send` in each of two rounds (langchain-ai/langgraph#3329)."""

    async def expert(state: State) -> State:
        said = await says(AIMessage(f"Of {state['case']}.")).ainvoke("?")
        return {"notes": [said.text]}

    def fans_out(state: State) -> Any:
        done = len(state.get("notes", []))
        return [Send("expert", {"case": str(done + n)}) for n in range(2)] if done < 4 else END

    class Own(TypedDict):
        notes: list[str]

    graph: Any = StateGraph(State)
    inner: Any = StateGraph(State, output_schema=Own)
    inner.add_node("lab", expert)
    inner.add_edge(START, "lab")
    graph.add_node("expert", inner.compile() if is_inner else expert)
    graph.add_node("again", lambda state: {})
    graph.add_conditional_edges(START, fans_out, ["expert", END])
    graph.add_edge("expert", "again")
    graph.add_conditional_edges("again", fans_out, ["expert", END])
    ears = await hear(graph.compile(), CASE, max_concurrency=at_once)
    name = "lab" if is_inner else "expert"
    assert ears.text_of(name) == "Of 0.Of 2."
    assert ears.text_of(f"{name} (2)") == "Of 1.Of 3."


async def test_a_node_that_is_sent_for_again_keeps_its_name() -> None:
    graph: Any = StateGraph(State)
    graph.add_node("expert", asks(says(AIMessage("Fever."))))
    graph.add_conditional_edges(
        "expert", lambda s: END if len(s["notes"]) > 2 else [Send("expert", s)], ["expert", END]
    )
    graph.add_edge(START, "expert")
    assert (await hear(graph.compile(), CASE)).heard == [("expert", "Fever." * 3)]


async def test_a_branch_that_goes_on_after_an_interrupt_keeps_its_name() -> None:
    async def expert(state: State) -> State:
        if state["case"] == "1":
            return {"notes": [interrupt("May I?")]}
        return {"notes": [f"Of {state['case']}."]}

    graph: Any = StateGraph(State)
    graph.add_node("expert", expert)
    graph.add_conditional_edges(
        START, lambda _: [Send("expert", {"case": str(n)}) for n in range(2)], ["expert"]
    )
    program = graph.compile(checkpointer=InMemorySaver())
    exaid, ears = listening()
    async with exaid:
        config = {"callbacks": [ExaidCallback(exaid)], "configurable": {"thread_id": "1"}}
        await program.ainvoke(CASE, config=config)
        await program.ainvoke(Command(resume="You may."), config=config)
    assert ears.heard == [("expert", "notes: Of 0."), ("expert (2)", "notes: You may.")]


@pytest.mark.parametrize("way", ["wait_for", "timeout", "cancel"])
async def test_a_model_that_is_canceled_does_not_keep_the_name(way: str) -> None:
    """LangChain reports no end of a canceled call that is not streamed."""

    class Hangs(Speaker):
        async def _agenerate(self, *args: Any, **kwargs: Any) -> Any:
            await asyncio.Event().wait()

    hangs = Hangs(says=[], disable_streaming=True)

    async def node(state: State) -> State:
        with suppress(TimeoutError, asyncio.CancelledError):
            if way == "wait_for":
                await asyncio.wait_for(hangs.ainvoke("?"), 0.01)
            elif way == "timeout":
                async with asyncio.timeout(0.01):
                    await hangs.ainvoke("?")
            else:
                call = asyncio.create_task(hangs.ainvoke("?"))
                await asyncio.sleep(0.01)
                call.cancel()
                await call
        said = await says(AIMessage("Fever.")).ainvoke("?")
        return {"notes": [said.text]}

    assert (await hear(graph_of(cardiology=node), CASE)).heard == [("cardiology", "Fever.")]


async def test_a_model_that_asks_another_is_heard() -> None:
    class Asks(Speaker):
        async def _astream(self, *args: Any, **kwargs: Any) -> Any:
            await streams("Rash.").ainvoke("?")
            async for chunk in super()._astream(*args, **kwargs):
                yield chunk

    model = Asks(says=[[AIMessageChunk(content="Fever.")]], streaming=True)

    async def node(state: State) -> State:
        return {"notes": [piece.text async for piece in model.astream("?")]}

    assert (await hear(graph_of(a=node), CASE)).heard == [("a", "Rash.Fever.")]


async def test_agents_of_a_sub_graph() -> None:
    inner = graph_of(lab=asks(streams(*PIECES)), rules=lambda state: {"plan": "Give aspirin."})

    async def calls_it(state: State) -> State:
        return {"plan": (await inner.ainvoke(state))["plan"]}

    for outer in (inner, calls_it):
        ears = await hear(graph_of(team=outer, end=lambda state: {"notes": ["Done so far."]}), CASE)
        assert ears.heard == [
            ("lab", TEXT),
            ("rules", "plan: Give aspirin."),
            ("end", "notes: Done so far."),
        ], "and the node around it says nothing again"


async def test_each_prebuilt_agent_has_its_own_name() -> None:
    heart = prebuilt("heart", calls("troponin", patient="Doe"), AIMessage("Infarction."))
    lungs = prebuilt(None, AIMessage("Clear."))

    @tool
    async def ask_kidneys(question: str) -> str:
        """Ask the nephrologist."""
        asked = await prebuilt("kidneys", AIMessage("Fine.")).ainvoke(ASKED)
        return str(asked["messages"][-1].text)

    chief = prebuilt("chief", calls("ask_kidneys", question="?"), AIMessage("Stent."),
                     tools=[ask_kidneys])  # fmt: skip
    graph: Any = StateGraph(Talk)
    for name, node in {"heart": heart, "lungs": lungs, "end": chief}.items():
        graph.add_node(name, node)
    for before, after in pairwise([START, "heart", "lungs", "end"]):
        graph.add_edge(before, after)
    assert (await hear(graph.compile(), ASKED)).heard == [
        ("heart", f'troponin: {{"patient": "Doe"}}troponin → {TEXT} (Doe)Infarction.'),
        ("lungs", "Clear."),
        ("end", 'ask_kidneys: {"question": "?"}'),
        ("kidneys", "Fine."),
        ("end", "ask_kidneys → Fine.Stent."),
    ]
    assert (await hear(prebuilt("solo", AIMessage("Alone.")), ASKED)).heard == [("solo", "Alone.")]
    assert (await hear(prebuilt(None, AIMessage("Alone.")), ASKED)).heard == [("agent", "Alone.")]


async def test_a_tool_that_hands_over_does_not_say_again_what_was_said() -> None:
    @tool
    def hand_over(
        state: Annotated[Any, InjectedState], call_id: Annotated[str, InjectedToolCallId]
    ) -> Any:
        """Hand over to the lungs."""
        told = ToolMessage("Over to you.", tool_call_id=call_id)
        update = {"messages": [*state["messages"], told], "plan": "Look at the lungs."}
        return Command(goto="lungs", graph=Command.PARENT, update=update)

    class Planned(Talk):
        plan: str

    graph: Any = StateGraph(Planned)
    graph.add_node("heart", prebuilt("heart", calls("hand_over"), tools=[hand_over]))
    graph.add_node("lungs", prebuilt("lungs", AIMessage("Clear.")))
    graph.add_edge(START, "heart")
    assert (await hear(graph.compile(), ASKED)).heard == [
        ("heart", "hand_over: {}hand_over → Over to you.\nplan: Look at the lungs."),
        ("lungs", "Clear."),
    ]


async def test_tools_that_work_at_the_same_time() -> None:
    both = asyncio.Barrier(2)

    @tool
    async def ecg(patient: str) -> str:
        """Return the latest ECG."""
        await both.wait()
        return f"ECG of {patient}. "

    asked = [calls("ecg", patient=name).tool_calls[0] | {"id": name} for name in ("A", "B")]
    model = says(AIMessage("", tool_calls=asked), AIMessage("Infarction."))
    ears = await hear(agent_with_tool(model, ecg), ASKED)
    assert {agent for agent, _ in ears.heard} == {"doctor", "tools"}
    assert sorted(ears.text_of("tools").split("ecg → ")) == ["", "ECG of A. ", "ECG of B. "]


async def test_tasks_of_a_function_that_is_a_graph() -> None:
    model = streams(*PIECES)

    @task
    async def doctor(question: str) -> str:
        return str((await model.ainvoke(question)).text)

    @task
    async def rules(question: str) -> str:
        return "Give aspirin."

    @task
    async def nurse(question: str) -> list[dict[str, str]]:
        return [{"role": "assistant", "content": "He is pale."}]

    @entrypoint()
    async def flow(question: str) -> list[Any]:
        return [await each(question) for each in (doctor, rules, nurse)]

    assert (await hear(flow, "?")).heard == [
        ("doctor", TEXT),
        ("rules", "Give aspirin."),
        ("nurse", "He is pale."),
    ]


@pytest.mark.parametrize(
    ("program", "config", "agent"),
    [
        (says(AIMessage(TEXT)), {}, "Speaker"),
        (says(AIMessage(TEXT)), {"run_name": "doctor"}, "doctor"),
        (says(AIMessage(TEXT)), {"tags": ["nurse"]}, "nurse"),
        (ChatPromptTemplate.from_template("{case}") | says(AIMessage(TEXT)), {}, "Speaker"),
        (QUESTION | says(AIMessage(TEXT)), {"run_name": "chief"}, "chief"),
        (RunnableParallel(heart=QUESTION | says(AIMessage(TEXT))), {}, "heart"),
        (RunnableParallel(heart=QUESTION | FakeListLLM(responses=[TEXT])),
         {"run_name": "all"}, "heart"),
    ],
)  # fmt: skip
async def test_an_agent_without_a_graph(
    program: Runnable[Any, Any], config: dict[str, Any], agent: str
) -> None:
    state: Any = CASE if not isinstance(program, Speaker) else "?"
    assert (await hear(program, state, **config)).heard == [(agent, TEXT)]


async def test_an_interrupt_is_no_failure() -> None:
    def asks_a_human(state: State) -> State:
        return {"plan": interrupt("May I?")}

    graph: Any = StateGraph(State)
    graph.add_node("a", asks_a_human)
    graph.add_edge(START, "a")
    program = graph.compile(checkpointer=InMemorySaver())
    exaid, ears = listening()
    async with exaid:
        config = {"callbacks": [ExaidCallback(exaid)], "configurable": {"thread_id": "1"}}
        await program.ainvoke(CASE, config=config)
        await program.ainvoke(Command(resume="You may go on."), config=config)
    assert ears.heard == [("a", "plan: You may go on.")]


# What it does not do


async def test_callbacks_raise_nothing_and_say_so_once(caplog: pytest.LogCaptureFixture) -> None:
    exaid, ears = listening()
    callback = ExaidCallback(exaid)
    async with exaid:
        with caplog.at_level(logging.WARNING, "exaid_core"):
            for _ in range(3):
                run = uuid.uuid4()
                await callback.on_chat_model_start({}, [], run_id=run)
                await callback.on_llm_end(object(), run_id=run)  # type: ignore[arg-type]
                await callback.on_llm_new_token("late", run_id=run)
                await callback.on_tool_end("of nobody", run_id=uuid.uuid4())
    assert [record.message for record in caplog.records] == [
        "EXAID cannot hear all that is said: AttributeError"
    ]
    assert ears.heard == []
    assert isinstance(callback, AsyncCallbackHandler)


async def test_a_closed_exaid_and_a_broken_one_change_nothing() -> None:
    graph = graph_of(a=asks(streams(*PIECES)))
    exaid, _ = listening()
    await exaid.close()
    broken = TraceBus()
    broken.on_event = lambda event: 1 / 0  # type: ignore[attr-defined]
    for listener in (exaid, broken):
        config = {"callbacks": [ExaidCallback(listener)]}  # type: ignore[arg-type]
        assert (await graph.ainvoke(CASE, config=config))["notes"] == [TEXT]


@pytest.mark.parametrize("wrong", [None, "exaid", ExaidCallback, object()])
def test_what_is_no_exaid_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="exaid must be an EXAID or a SyncExaid"):
        ExaidCallback(wrong)


async def test_a_callback_for_each_run_of_one_exaid() -> None:
    exaid, ears = listening()
    graphs = [graph_of(a=asks(streams(f"Run {n}. ", "Fever."))) for n in range(3)]
    async with exaid:
        await exaid.received_trace("user", "How is he?")
        for graph in graphs:
            await graph.ainvoke(CASE, config={"callbacks": [ExaidCallback(exaid)]})
    said = "".join(f"Run {n}. Fever." for n in range(3))
    assert ears.heard == [("user", "How is he?"), ("a", said)]
    seqs = [seq for flush in exaid.log.flushes for seq in (flush.start_seq, flush.end_seq)]
    assert seqs == sorted(seqs), "and no two texts have one number"
    assert len(set(seqs[::2])) == len(exaid.log.flushes)


async def test_callbacks_of_runs_at_the_same_time_tell_their_speakers_apart() -> None:
    graph = graph_of(a=asks(streams(*"Fever.", pause=lambda: asyncio.sleep(0))))
    exaid, ears = listening()
    async with exaid:
        configs: Any = [{"callbacks": [ExaidCallback(exaid)]} for _ in range(3)]
        await asyncio.gather(*(graph.ainvoke(CASE, config=config) for config in configs))
    assert [ears.text_of(f"a{n}") for n in ("", " (2)", " (3)")] == ["Fever."] * 3


@pytest.mark.parametrize("is_one", [True, False])
async def test_a_run_that_several_callbacks_are_told_of_is_heard_once(is_one: bool) -> None:
    exaid, ears = listening()
    first = ExaidCallback(exaid)

    def callbacks() -> Any:
        return [first if is_one else ExaidCallback(exaid)]

    model = streams(*PIECES, callbacks=callbacks())
    spoken = model.with_config(callbacks=callbacks())

    async def within(state: State) -> State:
        said = await spoken.ainvoke("?", config={"callbacks": callbacks()})
        await troponin.ainvoke({"patient": "Doe"}, config={"callbacks": callbacks() + callbacks()})
        return {"notes": [str(said.text)]}

    graph = graph_of(a=within, b=lambda state: {"plan": "Give aspirin."})
    async with exaid:
        config: Any = {"callbacks": callbacks() + callbacks()}
        await graph.with_config(callbacks=callbacks()).ainvoke(CASE, config=config)
    told = f'troponin: {{"patient": "Doe"}}\ntroponin → {TEXT} (Doe)'
    assert ears.heard == [("a", TEXT + told), ("b", "plan: Give aspirin.")]


async def test_a_model_of_exaid_that_is_made_with_langchain_is_not_overheard() -> None:
    """The tasks of EXAID begin within a run of the graph, whose callbacks are inherited."""
    within: list[str] = []

    class Within(Ears):
        async def generate(self, request: Any, on_text: Any = None) -> Any:
            answer = await FakeListChatModel(responses=["EXAID thinks."]).ainvoke("?")
            within.append(str(answer.text))
            return await super().generate(request, on_text)

    ears = Within()
    async with EXAID(buffer_llm=ears, summarizer_llm=ears) as exaid:
        config = {"callbacks": [ExaidCallback(exaid)]}
        await graph_of(a=asks(streams("word " * 70))).ainvoke(CASE, config=config)
    assert within, "and it was asked"
    assert ears.heard == [("a", "word " * 70)]


async def test_a_model_that_fails_over_http(provider: FakeProvider) -> None:
    provider.fail_next(Fault.SERVER_ERROR)
    exaid, ears = listening()
    async with exaid:
        program = graph_of(a=asks(OpenAIChat(base_url=provider.openai_base_url)))
        with pytest.raises(Exception, match="server had an error"):
            await program.ainvoke(CASE, config={"callbacks": [ExaidCallback(exaid)]})
    assert ears.heard == [("a", "[failed: InternalServerError]")]


@pytest.mark.parametrize("is_nested", [False, True])
@pytest.mark.parametrize("pieces", [[], ["Give", " 5 mg."]])
async def test_a_node_that_its_time_limit_ends_has_failed(
    is_nested: bool, pieces: list[str]
) -> None:
    """The error is the graph's, not the node's (langchain-ai/langgraph#7631)."""

    async def slow(state: State) -> State:
        if pieces:
            await streams(*pieces, pause=asyncio.Event().wait).ainvoke("?")
        await asyncio.Event().wait()
        return {}

    graph: Any = StateGraph(State)
    graph.add_node("slow", slow, timeout=TimeoutPolicy(run_timeout=0.05))
    graph.add_edge(START, "slow")
    program = graph_of(team=graph.compile()) if is_nested else graph.compile()
    exaid, ears = listening()
    async with exaid:
        with pytest.raises(NodeTimeoutError):
            await program.ainvoke(CASE, config={"callbacks": [ExaidCallback(exaid)]})
    assert ears.heard == [("slow", f"{''.join(pieces[:1])}[failed: NodeTimeoutError]")]


async def test_an_error_handler_speaks_as_its_node() -> None:
    def fails(state: State) -> State:
        raise ValueError

    graph: Any = StateGraph(State)
    graph.add_node("a", fails, error_handler=lambda state: {"plan": "Rest."})
    graph.add_edge(START, "a")
    assert (await hear(graph.compile(), CASE)).heard == [("a", "[failed: ValueError]plan: Rest.")]
