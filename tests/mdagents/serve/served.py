"""A server of teams in a thread, its clients, and what it has written."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from openai import DefaultHttpxClient, OpenAI

from mdagents.runs.config import RunConfig
from mdagents.serve.app import Timing, make_app
from mdagents.serve.service import Service, open_service
from mdagents_llm.clock import Clock
from mdagents_llm.config import parse_environment, read_variables
from mdagents_llm.web.address import LOOPBACK, listen
from mdagents_llm.web.serve import server_of

QUESTION = "A 54-year-old sailor has bleeding gums. Which vitamin is lacking?"
OPTIONS = "A. Retinol\nB. Thiamine\nC. Ascorbic acid\nD. Calciferol"
PROMPT = f"Question: {QUESTION}\n{OPTIONS}\nAnswer:"
MODEL = "mdagents/basic"


@dataclass(frozen=True)
class Served:
    """A running server."""

    url: str
    service: Service
    folder: Path
    token: str
    said: list[str]
    """What the user of the server was told."""

    def client(self, **options: Any) -> OpenAI:
        """The SDK of OpenAI; it retries nothing unless told to."""
        return OpenAI(
            base_url=f"{self.url}/v1",
            api_key=self.token or "any",
            http_client=DefaultHttpxClient(verify=False),
            **{"max_retries": 0} | options,
        )

    def post(self, path: str = "/v1/chat/completions", **options: Any) -> httpx2.Response:
        with httpx2.Client(verify=False) as client:
            return client.post(f"{self.url}{path}", timeout=60, **options)

    def get(self, path: str, **options: Any) -> httpx2.Response:
        with httpx2.Client(verify=False) as client:
            return client.get(f"{self.url}{path}", timeout=60, **options)

    def ask(self, prompt: str = PROMPT, **more: Any) -> httpx2.Response:
        """Ask for a chat completion."""
        messages = [{"role": "user", "content": prompt}]
        return self.post(json={"model": MODEL, "messages": messages, **more})

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the ledger."""
        return _lines(self.folder / "calls.jsonl")

    def records(self) -> list[dict[str, Any]]:
        """The records of answered and failed questions."""
        return _lines(self.folder / "samples.jsonl")

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        headers = {"authorization": f"Bearer {self.token}"} if self.token else {}
        text = self.get("/metrics", headers=headers).text
        lines = [line for line in text.splitlines() if line.startswith((f"{name} ", f"{name}{{"))]
        return sum(float(line.rpartition(" ")[2]) for line in lines)


def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds.

    Raises:
        TimeoutError: It does not within 30 s.
    """
    for _ in range(6_000):
        if holds():
            return
        time.sleep(0.005)
    raise TimeoutError


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@contextmanager
def serving(
    names: Sequence[str] = ("adaptive",),
    *,
    token: str = "",
    queue: int = 64,
    timing: Timing | None = None,
    **flags: Any,
) -> Iterator[Served]:
    """A server in a thread, at any free port; `flags` are those of a run."""
    config = RunConfig(**{"model": "gpt-4o-mini", "cache": "off", "max_retries": 0} | flags)
    place = listen("", 0)
    app = make_app(LOOPBACK, token, timing)
    server = server_of(app, 5, "mdagents")
    ready = threading.Event()
    opened: list[Service] = []
    said: list[str] = []
    raised: list[BaseException] = []

    async def serve() -> None:
        environment = parse_environment(read_variables())
        async with open_service(
            config, names, environment, Clock(), most_queued=queue, say=said.append
        ) as service:
            service.is_draining = lambda: server.should_exit
            app.state.service = service
            opened.append(service)
            ready.set()
            await server.serve(sockets=[place.socket])

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001 - raised in the thread of the test
            raised.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run)
    with place.socket:
        thread.start()
        ready.wait()
        try:
            if raised:
                raise raised[0]
            yield Served(place.url(), opened[0], opened[0].files.folder, token, said)
        finally:
            server.should_exit = server.force_exit = True
            thread.join()
            if raised and not isinstance(raised[0], Exception):
                raise raised[0]
