"""Serves a GGUF file with llama.cpp in a child process: an OpenAI-compatible endpoint on loopback.

The child is `mdagents_llm/local_model/child.py`. It imports nothing from this project, so that it
listens about 0.4 s after it is spawned, and it never outlives the process that started it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from mdagents_llm.errors import ConfigError

_CHILD = Path(__file__).with_name("child.py")
_LLAMA_ERROR = re.compile(r"[\d.]+ E +(?P<cause>.+)")  # 0.00.026.901 E gguf_init: failed to …


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The settings of a llama.cpp server."""

    gguf: Path
    """Path of the model weights."""
    slots: int = 2
    """Number of requests served concurrently; further ones wait in the server's queue."""
    context: int = 4096
    """Context size of one slot in tokens, prompt and reply together."""
    generation_threads: int = 1
    """Number of threads that generate tokens. More than 1 makes OpenMP spin against other work."""
    batch_threads: int = 2
    """Number of threads that process prompts."""


class LlamaServer:
    """A running llama.cpp server, created with `astart`.

    If the process that started it dies, in whatever way, the child ends by itself.

    Attributes:
        settings: Settings of the server.
        model_name: The server's name for its model: the file name without `.gguf`.
        api_key: Random key that every request needs (`Authorization: Bearer …`).
        base_url: Base URL for an OpenAI client, such as `http://127.0.0.1:41221/v1`.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.model_name = settings.gguf.stem
        self.api_key = secrets.token_urlsafe(24)
        self.base_url = ""
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the server
        self._child = subprocess.Popen(
            # -P keeps the script's folder off the path, where it would shadow other modules.
            [sys.executable, "-P", str(_CHILD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            start_new_session=True,
        )

    @classmethod
    async def astart(cls, settings: ServerSettings) -> Self:
        """Start a server and wait until it listens; a cancelled start leaves no child.

        Raises:
            ConfigError: The file is not a GGUF file, a library is missing, or memory is too low.
        """
        server = cls(settings)
        try:
            await asyncio.to_thread(server._wait_until_listening)
        except BaseException:
            server.close()
            raise
        return server

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._child.pid

    @property
    def has_ended(self) -> bool:
        """Whether the child has died."""
        return self._child.poll() is not None

    def close(self) -> None:
        """Stop the server at once and abort replies in progress. Close the clients first."""
        self._child.kill()
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout, self._stderr):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def _wait_until_listening(self) -> None:
        stdin, stdout = self._child.stdin, self._child.stdout
        if stdin is None or stdout is None:
            raise AssertionError("both are pipes")
        # Settings go through a pipe: other users can read a process's arguments.
        content = asdict(self.settings) | {"model_name": self.model_name, "api_key": self.api_key}
        with contextlib.suppress(BrokenPipeError):  # the error of a dead child is read below
            stdin.write(json.dumps(content, default=str).encode() + b"\n")
            stdin.flush()
        line = stdout.readline()
        if not line:
            self._child.wait()
            raise ConfigError(f"{self.settings.gguf.name} cannot be served: {self._cause()}")
        self.base_url = json.loads(line)["url"] + "/v1"

    def _cause(self) -> str:
        """Return the most informative line of the child's stderr."""
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").split("\n")
        lines = [line.strip() for line in lines if line.strip()]
        if any("libgomp" in line for line in lines):
            return "the system's libgomp is missing (Debian: apt-get install libgomp1)"
        # llama.cpp logs the cause first and its consequences later; a traceback ends with it.
        errors = [match["cause"] for line in lines if (match := _LLAMA_ERROR.match(line))]
        unsaid = f"the server ended with status {self._child.returncode}; is memory short?"
        cause = (errors or lines[-1:] or [unsaid])[0]
        return cause.replace(str(self.settings.gguf), self.settings.gguf.name)[:200]


_LOWER = "[a-zß-öø-ɏḀ-ỿµ°]"
_TERM = rf"([A-Z]{{2,5}}|[A-ZÀ-ÖØ-Þ]?{_LOWER}{{2,20}})"  # a word or an acronym
_WORD = rf"({_TERM}([-'’/]{_LOWER}{{1,20}}){{0,2}}|[aA-J])"
_NUMBER = r"\p{Nd}{1,4}([.,/–-]\p{Nd}{1,3})?( ?%)?"
_MEASURED = rf"{_NUMBER}[ -](mm Hg|[mkµn]?[gLU]/[a-zA-Z]{{1,3}}|[mkµ]?[gLm]|{_WORD})"
_CAPITAL = rf"([A-ZÀ-ÖØ-Þ]{_LOWER}{{1,20}}([-'’/]{_LOWER}{{1,20}}){{0,2}}|[AI])"
_NEXT = rf"[,;:.]? ([<>≤≥] ?)?({_MEASURED}[,;]? )?\(?{_WORD}\)?"
_OTHER_SCRIPT = r"[^\P{L}\p{Latin}][^_{}\[\]<>|\"\\]*"
PROSE = rf"^({_CAPITAL}({_NEXT})*( {_MEASURED})?[.]?|{_OTHER_SCRIPT})$"
"""Pattern of sentences made of words, and of numbers that precede words. It prevents a model from
repeating field names (`reasoning_1_2_3`), writing endless digits, and switching scripts."""


def json_schema_grammar(schema: Mapping[str, Any], *, is_small: bool = False) -> str:
    """Return a grammar (llguidance) that constrains a model to `schema`, in its property order.

    It allows no whitespace, and a bounded number becomes a choice of 21 steps: a small model would
    otherwise write blanks or digits until its limit.

    The server silently answers without a grammar if it does not know a keyword. Therefore such a
    keyword (`uniqueItems`, `not`, a custom `format`) is ignored, and `oneOf` is read as `anyOf`.

    Args:
        schema: JSON schema with keywords that llguidance knows.
        is_small: Whether free text must match `PROSE`.
    """
    # Imported here: it loads llama.cpp, which only a process with a local model needs.
    import xllamacpp

    guidance = {"whitespace_flexible": False, "coerce_one_of": True, "lenient": True}
    narrowed = {**_narrowed(schema, is_small), "x-guidance": guidance}
    grammar: str = xllamacpp.json_schema_to_grammar(narrowed)
    return grammar


def _narrowed(node: Any, is_small: bool) -> Any:
    if isinstance(node, list):
        return [_narrowed(item, is_small) for item in node]
    if not isinstance(node, Mapping):
        return node
    if node.get("type") == "number" and {"minimum", "maximum"} <= node.keys():
        low, high = node["minimum"], node["maximum"]
        return {"enum": [round(low + (high - low) * step / 20, 6) for step in range(21)]}
    if is_small and node.get("type") == "string" and node.keys().isdisjoint(_HOLDS_A_TEXT):
        return {**node, "pattern": PROSE}
    return {key: _narrowed(value, is_small) for key, value in node.items()}


_HOLDS_A_TEXT = frozenset({"enum", "const", "pattern", "format"})
