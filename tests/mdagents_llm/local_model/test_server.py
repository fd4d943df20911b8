"""The child process that serves the embedded model: it starts, answers, and never outlives us."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import httpx2
import jsonschema_rs
import pytest
from openai import AsyncOpenAI, BadRequestError
from pydantic import BaseModel, Field

from mdagents_llm.errors import ConfigError
from mdagents_llm.json_schema import reply_schema
from mdagents_llm.local_model import weights
from mdagents_llm.local_model.server import LlamaServer, ServerSettings, json_schema_grammar
from tests.conftest import CACHE_DIR, REPOSITORY

pytestmark = pytest.mark.embedded


@pytest.fixture(scope="module")
def gguf() -> Path:
    path = weights.find(CACHE_DIR)
    assert path is not None, (
        "make test fetches the model first: python -m mdagents_llm.local_model.weights"
    )
    return path


def start(settings: ServerSettings) -> LlamaServer:
    return asyncio.run(LlamaServer.astart(settings))


@pytest.fixture(scope="module")
def server(gguf: Path) -> Iterator[LlamaServer]:
    with closing(start(ServerSettings(gguf))) as server:
        yield server


def test_only_who_has_the_key_is_answered(server: LlamaServer) -> None:
    url = f"{server.base_url}/chat/completions"
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4}
    assert httpx2.post(url, json=body).status_code == 401
    headers = {"Authorization": f"Bearer {server.api_key}"}
    reply = httpx2.post(url, json=body, headers=headers, timeout=60)
    assert reply.status_code == 200
    assert reply.json()["model"] == server.model_name
    assert server.base_url.startswith("http://127.0.0.1:")


class Reply(BaseModel):
    reasoning: str = Field(json_schema_extra={"minLength": 10, "maxLength": 80})
    experts: list[Literal["surgeon", "nurse"]] = Field(min_length=2, max_length=2)
    answer: Literal["A", "B", "C"]
    confidence: float = Field(ge=0, le=1)


async def test_a_stream_brings_its_usage(server: LlamaServer) -> None:
    async with AsyncOpenAI(base_url=server.base_url, api_key=server.api_key) as client:
        stream = await client.chat.completions.create(
            model=server.model_name,
            messages=[{"role": "user", "content": "Write a long story about a hospital."}],
            max_tokens=8,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
    text = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert len([delta for delta in text if delta]) > 1
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 8


async def test_a_prompt_longer_than_the_context_says_so(server: LlamaServer) -> None:
    async with AsyncOpenAI(base_url=server.base_url, api_key=server.api_key) as client:
        with pytest.raises(BadRequestError) as caught:
            await client.chat.completions.create(
                model=server.model_name, messages=[{"role": "user", "content": "word " * 5000}]
            )
    assert caught.value.type == "exceed_context_size_error"


def test_a_keyword_that_the_server_does_not_know_leaves_the_grammar_in_force(
    server: LlamaServer,
) -> None:
    letters = {"type": "array", "items": {"enum": ["A", "B"]}, "minItems": 2, "maxItems": 2}
    schema = {"oneOf": [{**letters, "uniqueItems": True}, {"type": "null"}]}
    body = {
        "messages": [{"role": "user", "content": "Say hello."}],
        "grammar": json_schema_grammar(schema),
        "max_tokens": 20,
    }
    headers = {"Authorization": f"Bearer {server.api_key}"}
    url = f"{server.base_url}/chat/completions"
    completion = httpx2.post(url, json=body, headers=headers, timeout=60).json()
    value = json.loads(completion["choices"][0]["message"]["content"])
    assert value is None or set(value) <= {"A", "B"}


@pytest.mark.parametrize("seed", range(5))
def test_the_grammar_holds_the_model_to_the_schema(server: LlamaServer, seed: int) -> None:
    body = {
        "messages": [{"role": "user", "content": "Which is best: A, B or C? Reply in JSON."}],
        "grammar": json_schema_grammar(reply_schema(Reply)),
        "temperature": 1.0,
        "seed": seed,
        "max_tokens": 400,
    }
    headers = {"Authorization": f"Bearer {server.api_key}"}
    url = f"{server.base_url}/chat/completions"
    completion = httpx2.post(url, json=body, headers=headers, timeout=60).json()
    text = completion["choices"][0]["message"]["content"]
    reply = Reply.model_validate_json(text)
    assert 10 <= len(reply.reasoning) <= 80
    assert list(json.loads(text)) == ["reasoning", "experts", "answer", "confidence"]
    assert "\n" not in text


def holds(value: str, *, is_small: bool = True, **keywords: object) -> bool:
    """Whether the grammar lets the model write the value."""
    schema = {"type": "string", **keywords}
    grammar = json_schema_grammar(schema, is_small=is_small)
    return jsonschema_rs.is_valid(json.loads(grammar.partition("%json ")[2]), value)


@pytest.mark.parametrize(
    "prose",
    [
        "Glucagon",
        "A 44-year-old man has hives; blood pressure 72/40 mm Hg, and a pulse of 58 beats.",
        "Give adrenaline 0.5 mg into the muscle, then 5 mg of glucagon.",
        "Crohn's disease (in the ileum) fits better than appendicitis.",
        "The CT shows a mass of 2.5 cm, and TSH is 12 mU/L.",
        "Über Nacht fiel das Hämoglobin auf 8.1 g/dL ab.",
        "患者高热，颈项强直，立即使用头孢曲松。",
        "أعطِ الأدرينالين الآن.",
    ],
)
def test_a_small_model_may_write_prose(prose: str) -> None:
    assert holds(prose)
    assert holds(prose, maxLength=200, minLength=3)


@pytest.mark.parametrize(
    "no_prose",
    [
        "reasoning_1234_256_378",
        "1 2 3 4 5 6 7 8",
        '{"answer": "A"}',
        "Give 1,2,3,4,5,6,7,8,9 mg",
        "The name | the value",
        "患者 <b>高热",
        "",
    ],
)
def test_and_neither_names_of_fields_nor_digits_without_end(no_prose: str) -> None:
    assert not holds(no_prose)
    assert holds(no_prose, is_small=False), "a larger model is free"


def test_what_has_a_form_of_its_own_keeps_it() -> None:
    assert holds("a_b", enum=["a_b"])
    assert holds("2026-11-22", pattern="^[0-9-]+$")


def test_it_stops_quickly(gguf: Path) -> None:
    server = start(ServerSettings(gguf))
    child = server.pid
    server.close()
    assert not _is_alive(child)


def test_a_broken_file_is_one_line(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + b"\0" * 100)
    with pytest.raises(ConfigError) as caught:
        start(ServerSettings(broken))
    assert str(caught.value).startswith("broken.gguf cannot be served: ")
    assert "\n" not in str(caught.value)
    assert str(tmp_path) not in str(caught.value)


def test_a_file_of_another_kind_is_named_as_such(tmp_path: Path) -> None:
    other = tmp_path / "other.gguf"
    other.write_text("hello, this is a text")
    with pytest.raises(ConfigError, match=r"^other.gguf cannot be served: .*invalid magic"):
        start(ServerSettings(other))


def _pretend_xllamacpp(
    source: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> ServerSettings:
    """Settings for a server whose child imports `source` instead of llama.cpp."""
    (folder / "xllamacpp.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return ServerSettings(folder / "any.gguf")


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("raise ImportError('libgomp.so.1: cannot open')", "apt-get install libgomp1"),
        ("raise MemoryError('no room')", "MemoryError: no room"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "status -9; is memory short"),
    ],
)
def test_why_the_child_does_not_start_is_one_line(
    source: str, cause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = _pretend_xllamacpp(source, tmp_path, monkeypatch)
    with pytest.raises(ConfigError) as caught:
        start(settings)
    assert cause in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_cancelled_start_leaves_no_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid_file = tmp_path / "pid"
    source = (
        "import os, pathlib, time\n"
        f"new = pathlib.Path({str(pid_file)!r} + '.new')\n"
        "new.write_text(str(os.getpid()))\n"
        f"new.rename({str(pid_file)!r})\n"
        "time.sleep(60)\n"
    )
    settings = _pretend_xllamacpp(source, tmp_path, monkeypatch)
    starting = asyncio.create_task(LlamaServer.astart(settings))
    async with asyncio.timeout(60):
        while not pid_file.exists():  # noqa: ASYNC110 - a file of another process has no event
            await asyncio.sleep(0.01)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not _is_alive(int(pid_file.read_text()))


PARENT = """
import asyncio
import sys
from dataclasses import asdict
from pathlib import Path
from mdagents_llm.local_model.server import LlamaServer, ServerSettings
server = asyncio.run(LlamaServer.astart(ServerSettings(Path(sys.argv[1]))))
print(server.pid, flush=True)
sys.stdin.read()
"""
LOADING_PARENT = """
import sys
from dataclasses import asdict
from pathlib import Path
from mdagents_llm.local_model.server import LlamaServer, ServerSettings
server = LlamaServer(ServerSettings(Path(sys.argv[1])))
print(server.pid, flush=True)
server._wait_until_listening()
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("how", "program"),
    [(signal.SIGKILL, PARENT), (signal.SIGTERM, PARENT), (signal.SIGKILL, LOADING_PARENT)],
    ids=["SIGKILL", "SIGTERM", "SIGKILL while loading"],
)
def test_the_child_ends_when_the_parent_dies(gguf: Path, how: signal.Signals, program: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", program, str(gguf)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert _is_alive(child)
        parent.send_signal(how)
        parent.wait(60)
    assert _ends_within(child, seconds=30), "a hang, not a slow machine"


def test_the_child_ends_when_the_parent_has_died_before_it_listens(gguf: Path) -> None:
    settings = asdict(ServerSettings(gguf)) | {"model_name": "m", "api_key": "k"}
    child = subprocess.Popen(
        [sys.executable, "-P", str(REPOSITORY / "mdagents_llm" / "local_model" / "child.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdout.close()
    child.stdin.write(json.dumps(settings, default=str).encode() + b"\n")
    child.stdin.close()
    try:
        assert child.wait(60) == 0
    finally:
        child.kill()


def test_the_child_does_not_end_by_ctrl_c(gguf: Path) -> None:
    with closing(start(ServerSettings(gguf))) as server:
        os.kill(server.pid, signal.SIGINT)
        headers = {"Authorization": f"Bearer {server.api_key}"}
        assert httpx2.get(f"{server.base_url}/models", headers=headers).status_code == 200


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"  # a zombie of another parent is dead


def _ends_within(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not _is_alive(pid):
            return True
        time.sleep(0.02)  # polling: the end of a process that is not our child is not reported
    return False
