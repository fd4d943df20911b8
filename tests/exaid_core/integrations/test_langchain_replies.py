"""What EXAID hears of the replies of models and of tools in programs of LangChain."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from langchain_core.language_models import FakeListLLM
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import StructuredTool, ToolException, tool

from exaid_core.integrations.feed import LONGEST_DATA
from exaid_core.integrations.langchain import ExaidCallback
from tests.exaid_core.integrations.langchain_programs import (
    ASKED,
    CASE,
    TEXT,
    Speaker,
    State,
    agent_with_tool,
    asks,
    calls,
    graph_of,
    hear,
    says,
    streams,
    troponin,
)
from tests.exaid_core.integrations.overhearing import listening


async def test_reasoning_is_left_out_of_content_blocks() -> None:
    thinks = [{"type": "reasoning", "reasoning": "Hm."}, {"type": "thinking", "thinking": "Hm."}]
    speaks = [{"type": "text", "text": "Fever."}]
    for model in (streams(thinks, speaks), says(AIMessage([*thinks, *speaks]))):
        assert (await hear(graph_of(a=asks(model)), CASE)).heard == [("a", "Fever.")]


def blocks(*texts: str, between: Any = ()) -> list[Any]:
    """Text blocks with an index each, and others between them."""
    said: list[Any] = []
    for text in texts:
        said += [*(between if said else ()), {"type": "text", "text": text}]
    return [{**block, "index": index} for index, block in enumerate(said)]


SEARCH = {"type": "server_tool_use", "id": "1", "name": "web_search", "input": {}}
PARTS: list[Any] = [
    # Parts without space between them (microsoft/vscode#312173, langchain4j/langchain4j#6403,
    # vellum-ai/vellum-assistant#10805).
    (
        blocks("Current systolic BP is 7", "0 mL urine since 8:00."),
        "Current systolic BP is 7\n0 mL urine since 8:00.",
    ),
    (blocks("He is in shock", "No change."), "He is in shock\nNo change."),
    (blocks("He is in shock", "No change.", between=[SEARCH]), "He is in shock\nNo change."),
    (
        blocks("Look.", "Fever.", between=[{"type": "reasoning", "reasoning": "Hm."}]),
        "Look.\nFever.",
    ),
    # Pieces of a sentence of Claude's, some of which have citations.
    (blocks("By the notes, ", "BP is 70", ", and (", "CRP", ") is 3", "."),
     "By the notes, BP is 70, and (CRP) is 3."),
]  # fmt: skip


@pytest.mark.parametrize(("content", "said"), PARTS)
async def test_parts_of_a_reply_are_told_apart(content: list[Any], said: str) -> None:
    halves: list[Any] = []
    for block in content:
        text = block.get("text", "")
        halves += (
            [[{**block, "text": text[:3]}], [{**block, "text": text[3:]}]] if text else [[block]]
        )
    plain: list[Any] = [
        {name: each for name, each in block.items() if name != "index"} for block in content
    ]

    async def node(state: State) -> Any:
        return {"notes": [AIMessage(plain)]}

    for program in (
        *(asks(says(AIMessage(content=each))) for each in [content, plain]),
        *(asks(streams(*each)) for each in (halves, [content], [plain])),
        node,
    ):
        assert (await hear(graph_of(a=program), CASE)).heard == [("a", said)]


async def test_text_after_a_call_is_told_apart() -> None:
    chunks = [
        AIMessageChunk(content="Look."),
        call_piece(0, "ecg", "{}"),
        AIMessageChunk(content="So."),
    ]
    ears = await hear(graph_of(a=asks(Speaker(says=[chunks], streaming=True))), CASE)
    assert ears.heard == [("a", "Look.\necg: {}\nSo.")]


REFUSALS: list[Any] = [
    # BerriAI/litellm#39721
    {"type": "refusal", "refusal": "I can't help."},
    # langchain-ai/langchain#34619
    {"type": "non_standard", "value": {"type": "refusal", "refusal": "I can't help."}},
]


@pytest.mark.parametrize("block", REFUSALS)
async def test_a_refusal_in_a_content_block_is_told(block: Any) -> None:
    beside = {"refusal": "I can't help."}
    for model in (
        streams([block]),
        says(AIMessage([block])),
        says(AIMessage([block], additional_kwargs=beside)),
    ):
        assert (await hear(graph_of(a=asks(model)), CASE)).heard == [("a", "I can't help.")]


THINKS = [
    # ollama's deepseek-r1 (langchain-ai/langchain#29689), vLLM without --reasoning-parser
    ("<think>Hm. Sepsis?</think>\n\nFever.", "Fever."),
    # Magistral and Kimi-VL, by their model cards
    ("[THINK]Hm.[/THINK]Fever.", "Fever."),
    ("◁think▷Hm.◁/think▷Fever.", "Fever."),
    # Qwen3 with thinking off (QwenLM/Qwen3#1323)
    ("<think>\n\n</think>\n\nFever.", "Fever."),
    # cut at the token limit (open-webui#8706)
    ("<think>Hm. Sepsis", ""),
    ("SpO2 <90 % and p <", "SpO2 <90 % and p <"),
]


@pytest.mark.sweep
@pytest.mark.parametrize(("text", "said"), THINKS)
async def test_reasoning_in_tags_is_left_out(text: str, said: str) -> None:
    heard = [("a", said)] if said else []
    for size in (1, 3, 8, len(text)):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert (await hear(graph_of(a=asks(streams(*pieces))), CASE)).heard == heard
    assert (await hear(graph_of(a=asks(says(AIMessage(text)))), CASE)).heard == heard
    completes = FakeListLLM(responses=[text])
    if said:
        assert (await hear(completes, "?", run_name="a")).heard == heard
    # A node without a model: a text, a message, a message as data.
    for value in (text, AIMessage(text), {"role": "assistant", "content": text}):

        async def node(state: State, value: Any = value) -> Any:
            return {"notes": [value]}

        ears = await hear(graph_of(a=node), CASE)
        assert ears.text_of("a").removeprefix("notes: ") == said


async def test_reasoning_before_its_first_tag_is_left_out_of_a_whole_text() -> None:
    """The chat templates of QwQ and DeepSeek-R1 open the tag (vllm-project/vllm#13125)."""
    model = says(AIMessage("Hm. Sepsis?\n</think>\n\nFever."))
    assert (await hear(graph_of(a=asks(model)), CASE)).heard == [("a", "Fever.")]


async def test_reasoning_beside_the_content_is_left_out() -> None:
    """`ChatDeepSeek`, `ChatOllama(reasoning=True)` and xAI put it into `additional_kwargs`."""
    beside = {"reasoning_content": "Hm. Sepsis?"}
    chunks = [
        AIMessageChunk(content="", additional_kwargs=beside),
        AIMessageChunk(content="Fever."),
    ]
    whole = AIMessage("Fever.", additional_kwargs=beside)
    for model in (Speaker(says=[chunks], streaming=True), says(whole)):
        assert (await hear(graph_of(a=asks(model)), CASE)).heard == [("a", "Fever.")]


async def test_a_call_is_told_though_the_reasoning_before_it_is_not_closed() -> None:
    call: Any = {"name": "Plan", "args": '{"tag": "<think>"}', "id": "1", "index": 0}
    chunks = [
        AIMessageChunk(content="<think>Hm."),
        AIMessageChunk(content="", tool_call_chunks=[call]),
    ]
    ears = await hear(graph_of(a=asks(Speaker(says=[chunks], streaming=True))), CASE)
    assert ears.heard == [("a", 'Plan: {"tag": "<think>"}')]


async def test_a_tool_that_is_an_agent_tells_no_reasoning() -> None:
    @tool
    def consult(question: str) -> str:
        """Ask a colleague."""
        return "<think>Hm.</think>Operate."

    exaid, ears = listening()
    async with exaid:
        await consult.ainvoke(
            {"question": "?"}, config={"callbacks": [ExaidCallback(exaid)], "tags": ["a"]}
        )
    assert "consult → Operate." in ears.text_of(ears.heard[0][0])
    assert "Hm." not in str(ears.heard)


async def test_a_structured_output_is_its_arguments() -> None:
    pieces: list[Any] = [
        {"name": "Plan", "args": '{"dose": ', "id": "1", "index": 0, "type": "tool_call_chunk"},
        {"name": None, "args": '"300 mg"}', "id": None, "index": 0, "type": "tool_call_chunk"},
    ]
    chunks = [AIMessageChunk(content="", tool_call_chunks=[piece]) for piece in pieces]
    for model in (Speaker(says=[chunks], streaming=True), says(calls("Plan", dose="300 mg"))):
        ears = await hear(graph_of(a=asks(model)), CASE)
        assert ears.heard == [("a", 'Plan: {"dose": "300 mg"}')]


def call_piece(
    index: int | None, name: str | None, arguments: str, call_id: str | None = None
) -> AIMessageChunk:
    piece: Any = {"name": name, "args": arguments, "id": call_id, "index": index}
    return AIMessageChunk(content="", tool_call_chunks=[piece])


@pytest.mark.parametrize("ends_with", [AIMessageChunk(content=""), ConnectionError("gone")])
async def test_calls_that_arrive_at_the_same_time_are_told_apart(ends_with: Any) -> None:
    """Some endpoints send their pieces by turns (QwenLM/Qwen-Agent 943, maximhq/bifrost 1829)."""
    chunks = [
        AIMessageChunk(content="Both."),
        call_piece(0, "ecg", '{"lead": '),
        call_piece(1, "lab", '{"test": '),
        call_piece(0, None, '"V1"}'),
        call_piece(1, None, '"troponin"}'),
        ends_with,
    ]
    exaid, ears = listening()
    async with exaid:
        config: Any = {"callbacks": [ExaidCallback(exaid)]}
        with suppress(ConnectionError):
            await graph_of(a=asks(Speaker(says=[chunks], streaming=True))).ainvoke(CASE, config)
    said = 'Both.\necg: {"lead": "V1"}\nlab: {"test": "troponin"}'
    assert ears.text_of("a").removesuffix("\n[failed: ConnectionError]") == said


async def test_a_piece_without_an_index_belongs_to_the_last_call() -> None:
    pieces = ((0, "ecg", '{"a":'), (None, None, "1}"), (1, "lab", "{"), (None, None, "}"))
    speaker = Speaker(says=[[call_piece(*each) for each in pieces]], streaming=True)
    ears = await hear(graph_of(a=asks(speaker)), CASE)
    assert ears.text_of("a") == 'ecg: {"a":1}\nlab: {}'


async def test_a_name_in_every_piece_of_a_call_is_told_once() -> None:
    """llama.cpp repeated the name in each piece (#13774); another id is another call."""
    pieces = (
        *((0, "ecg", '{"lead"', "1"), (0, "ecg", ': "V1"', "1"), (0, "ecg", "}", None)),
        # Calls of the same index (InternLM/lmdeploy#3412).
        *((0, "ecg", '{"lead"', "2"), (0, None, ": ", ""), (0, "ecg", '"V2"}', "2")),
        *((1, "lab", "{", "3"), (1, "lab", "}", "3")),
    )
    speaker = Speaker(says=[[call_piece(*each) for each in pieces]], streaming=True)
    ears = await hear(graph_of(a=asks(speaker)), CASE)
    assert ears.text_of("a") == 'ecg: {"lead": "V1"}\necg: {"lead": "V2"}\nlab: {}'


async def test_a_tool_is_called_and_answers_once() -> None:
    model = says(calls("troponin", patient="Doe"), AIMessage("Infarction."))
    assert (await hear(agent_with_tool(model), ASKED)).heard == [
        ("doctor", 'troponin: {"patient": "Doe"}'),
        ("tools", f"troponin → {TEXT} (Doe)"),
        ("doctor", "Infarction."),
    ]


async def test_a_tool_that_fails_and_one_that_says_too_much() -> None:
    model = says(calls("troponin", patient="nobody"), AIMessage("Unknown."))
    heard = (await hear(agent_with_tool(model), ASKED)).heard
    assert heard[1] == ("tools", "troponin [failed: ValueError]")
    model = says(calls("troponin", patient="long"), AIMessage("Long."))
    text = (await hear(agent_with_tool(model), ASKED)).text_of("tools")
    assert text == f"troponin → {'x' * LONGEST_DATA} [… {LONGEST_DATA} more characters]"


async def test_a_tool_that_says_itself_that_it_has_failed() -> None:
    def fails(patient: str) -> str:
        raise ToolException(f"no sample of {patient}")

    asked = StructuredTool.from_function(
        fails, name="troponin", description="Fails.", handle_tool_error=True
    )
    model = says(calls("troponin", patient="Doe"), AIMessage("Unknown."))
    heard = (await hear(agent_with_tool(model, asked), ASKED)).heard
    assert heard[1] == ("tools", "troponin → failed: no sample of Doe")


async def test_contents_of_a_tool_are_told_apart() -> None:
    @tool
    def lab() -> list[dict[str, str]]:
        """Values of the laboratory, as a tool of MCP returns them (grll/mcpadapt#84)."""
        return [{"type": "text", "text": "INR 6.2"}, {"type": "text", "text": "K 7.1"}]

    async def node(state: State) -> State:
        await lab.ainvoke({"type": "tool_call", "id": "1", "name": "lab", "args": {}})
        return {}

    assert (await hear(graph_of(a=node), CASE)).heard == [("a", "lab → INR 6.2\nK 7.1")]


async def test_a_tool_that_a_node_calls() -> None:
    async def node(state: State) -> State:
        result = await troponin.ainvoke({"patient": "Doe"})
        return {"plan": result, "notes": ["He needs a stent."]}

    assert (await hear(graph_of(lab=node), CASE)).heard == [
        ("lab", f'troponin: {{"patient": "Doe"}}\ntroponin → {TEXT} (Doe)notes: He needs a stent.'),
    ], "the result is not said again"
    ears = await hear(RunnableLambda(lambda x: troponin.invoke({"patient": "Doe"})), "?")
    assert [agent for agent, _ in ears.heard] == ["tool"]


async def test_failures_retries_and_fallbacks() -> None:
    class BrokenError(Exception):
        pass

    model = Speaker(
        says=[
            [AIMessageChunk(content="Fe"), BrokenError("key sk-1")],
            [AIMessageChunk(content="Ok.")],
        ],
        streaming=True,
    )
    retried = model.with_retry(
        retry_if_exception_type=(BrokenError,), wait_exponential_jitter=False
    )
    ears = await hear(graph_of(a=asks(retried)), CASE)
    assert ears.text_of("a") == "Fe\n[failed: BrokenError]Ok."
    model = Speaker(says=[[BrokenError("key sk-1")]], streaming=True)
    ears = await hear(graph_of(a=asks(model.with_fallbacks([streams("Ok.")]))), CASE)
    assert ears.text_of("a") == "[failed: BrokenError]Ok."


async def test_a_node_that_fails_is_told_once() -> None:
    def fails(state: State) -> State:
        raise KeyError("patient Doe")

    inner = graph_of(deep=fails)
    model = Speaker(says=[[RuntimeError("x")]], streaming=True)
    for graph, heard in (
        (graph_of(a=fails), [("a", "[failed: KeyError]")]),
        (graph_of(a=inner), [("deep", "[failed: KeyError]")]),
        (graph_of(a=asks(model)), [("a", "[failed: RuntimeError]")]),
    ):
        exaid, ears = listening()
        async with exaid:
            with pytest.raises((KeyError, RuntimeError)):
                await graph.ainvoke(CASE, config={"callbacks": [ExaidCallback(exaid)]})
        assert ears.heard == heard
