"""How events reach EXAID from any thread, and what a missing package says."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from agents.tool import ToolOutputImage, ToolOutputText

from exaid_core.channel import MAX_AGENT_ID_CHARS
from exaid_core.integrations.feed import LONGEST_DATA, Feed, as_text
from exaid_core.trace.events import TraceEvent
from tests.exaid_core.integrations.overhearing import listening, listening_in_a_thread

LEFT = "[binary data]"


def test_threads_speak_to_one_exaid_in_one_order() -> None:
    exaid, ears = listening_in_a_thread()
    feed = Feed.of(exaid)

    def speak(number: int) -> None:
        turn = feed.start_turn(f"agent-{number}")
        for word in range(40):
            turn.say(f"{number}.{word} ")
        turn.end()

    with exaid, ThreadPoolExecutor(8) as pool:
        list(pool.map(speak, range(8)))
        exaid.finalize()
    for number in range(8):
        said = "".join(f"{number}.{word} " for word in range(40))
        assert ears.text_of(f"agent-{number}") == said
    assert exaid.tail_loss() == 0


async def test_an_event_of_another_thread_wakes_the_loop() -> None:
    exaid, ears = listening()
    async with exaid:
        feed = Feed.of(exaid)
        await asyncio.to_thread(feed.say, "a", "word " * 70)
        await asyncio.sleep(0)  # the loop takes it without any further call
        assert exaid.log.flushes
    assert ears.heard == [("a", "word " * 70)]


async def test_what_comes_from_a_thread_just_before_the_end_is_summarised() -> None:
    exaid, ears = listening()
    async with exaid:
        thread = threading.Thread(target=Feed.of(exaid).say, args=("a", "Fever."))
        thread.start()
        thread.join()
    assert ears.heard == [("a", "Fever.")]
    Feed.of(exaid).say("a", "Too late.")
    assert exaid.tail_loss() == 0


def test_an_exaid_whose_loop_has_ended_says_so(caplog: pytest.LogCaptureFixture) -> None:
    exaid, _ = listening()

    async def begin() -> None:
        await exaid.received_trace("a", "Fever.")

    asyncio.run(begin())
    Feed.of(exaid).say("a", "Cough.")
    assert [record.message for record in caplog.records][-1:] == [
        "EXAID cannot hear all that is said: RuntimeError"
    ]


async def test_what_is_said_while_an_event_is_taken() -> None:
    """As when a stream that nobody reads any more is collected in the middle of it."""
    heard: list[str] = []

    class Collecting:
        def on_event(self, event: TraceEvent) -> None:
            heard.append(event.text)
            if event.text == "Fever.":
                Feed.of(self).say("b", "Cough.")

    listener = Collecting()
    feed = Feed.of(listener)
    feed.say("a", "Fever.")
    feed.say("a", "Rash.")
    assert [text for text in heard if text] == ["Fever.", "Cough.", "Rash."]


@pytest.mark.sweep
async def test_an_exaid_is_not_kept_by_those_who_told_it() -> None:
    exaid, _ = listening()
    async with exaid:
        Feed.of(exaid).say("a", "Fever.")
    gone = weakref.ref(exaid)
    del exaid
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Dr  Chen\n", "Dr Chen"),
        ("", "agent"),
        ("\u200b\u202e", "agent"),
        ("x" * 500, "x" * (MAX_AGENT_ID_CHARS - 10)),
        (7, "7"),
    ],
)
async def test_any_name_can_be_shown(name: Any, shown: str) -> None:
    exaid, ears = listening()
    async with exaid:
        Feed.of(exaid).say(name, "Fever.")
    assert [agent for agent, _ in ears.heard] == [shown]


def test_data_as_text() -> None:
    assert as_text("Größe") == "Größe"
    assert as_text({"größe": [1.5, None]}) == '{"größe": [1.5, null]}'
    assert as_text({1, 2}) == "{1, 2}"
    deep: list[Any] = []
    deep.append(deep)
    assert as_text(deep) == "[[...]]"


@pytest.mark.process
@pytest.mark.parametrize(
    ("module", "package", "name", "extra"),
    [
        ("langchain", "langchain_core", "ExaidCallback", "langchain"),
        ("openai_agents", "agents", "ExaidHooks", "agents"),
        ("opentelemetry", "opentelemetry", "ExaidSpans", "opentelemetry"),
    ],
)
def test_a_missing_package_is_named_with_the_extra_that_brings_it(
    module: str, package: str, name: str, extra: str
) -> None:
    program = f"""
import sys
sys.modules[{package!r}] = None
import exaid_core.integrations, exaid_core.integrations.autogen
import exaid_core.integrations.{module}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: {name} needs {package}: ")
    assert last.endswith(f"{sys.executable} -m pip install 'mdagents-bench[{extra}]'")


@pytest.mark.process
def test_exaid_alone_imports_none_of_the_packages() -> None:
    program = """
import sys
import exaid_core, exaid_core.integrations.feed, exaid_core.integrations.autogen
exaid_core.EXAID, exaid_core.SyncExaid
names = "langchain_core langgraph agents autogen_core autogen_agentchat opentelemetry"
print([name for name in names.split() if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "Guideline: K 7.2 is critical. The tag </think> ends reasoning. Give calcium.",
        '["K 7.2 is critical", "the tag </think> ends reasoning"]',
    ],
)
def test_data_that_mentions_a_tag_is_left_whole(text: str) -> None:
    assert as_text(text) == text


@pytest.mark.parametrize(
    "make",
    [
        lambda: "<p>Potassium 7.2</p>\n" * 1_000_000,
        lambda: [{"id": 7, "name": "x"}] * 1_000_000,
        lambda: {"page": "<p>Potassium 7.2</p>\n" * 1_000_000},
    ],
)
def test_of_large_data_only_the_beginning_is_read(make: Callable[[], object]) -> None:
    """A result of 10 MB stops the event loop in https://github.com/xorbitsai/xagent/pull/2391."""
    value = make()
    began = time.process_time()
    text = as_text(value)
    assert time.process_time() - began < 0.5
    whole = value if isinstance(value, str) else json.dumps(value)
    assert text == f"{whole[:LONGEST_DATA]} [… more]"


@pytest.mark.parametrize("size", [300, 3_000_000])
def test_pictures_leave_room_for_the_text_beside_them(size: int) -> None:
    """Tools return pictures in https://github.com/VectifyAI/OpenKB/issues/242."""
    picture, finding = "iVBO" * (size // 4), "K 6.9 mmol/L: CRITICAL"
    url = f"data:image/png;base64,{picture}=="
    for shown in (picture, url):
        text = as_text([{"image_url": shown}, shown, {"text": finding}])
        assert text == f'[{{"image_url": "{LEFT}"}}, "{LEFT}", {{"text": "{finding}"}}]'
    parts = [ToolOutputImage(image_url=url), ToolOutputText(text=finding)]
    text = as_text(parts)
    assert finding in text
    assert "iVBO" not in text
    assert as_text(f"![scan]({url}) {finding}") == f"![scan]({LEFT}) {finding}"


@pytest.mark.parametrize("spell", [lambda value: value, json.dumps])
@pytest.mark.parametrize(
    "value", [{"log": "K 7.2</think>Now. " * 10_000}, ["K 7.2</think>Now. "] * 10_000]
)
def test_large_json_that_mentions_a_tag_is_left_whole(
    value: object, spell: Callable[[object], object]
) -> None:
    assert as_text(spell(value)) == f"{json.dumps(value)[:LONGEST_DATA]} [… more]"


def test_large_text_with_tagged_reasoning_is_read_without_it() -> None:
    for opening, closing in (("<think>", "</think>"), ("[THINK]", "[/THINK]")):
        text = as_text(f"{opening}Hm.{closing}" + "K 7.2. " * 20_000)
        assert text.startswith("K 7.2. K 7.2.")


def test_a_result_that_changes_while_it_is_read_is_text() -> None:
    class Changing(dict[str, int]):
        def items(self) -> Any:
            for item in super().items():
                self["b"] = 2
                yield item

    assert as_text(Changing(a=1)) == "{'a': 1, 'b': 2}"
