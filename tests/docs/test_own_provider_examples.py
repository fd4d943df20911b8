"""The provider of docs/how-to/own-provider.md is installed and asked as it stands there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.conftest import REPOSITORY
from tests.docs.page import Page
from tests.fake_provider import FakeProvider

pytestmark = pytest.mark.process

PAGE = Page("own-provider.md")


@pytest.fixture
def gateway(provider: FakeProvider) -> Iterator[str]:
    """The page's gateway; what it says comes from the fake provider."""

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, reply = (200, _say(provider, asked)) if self._may_ask() else (401, {})
            body = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _may_ask(self) -> bool:
            return self.path == "/answer" and self.headers["x-gateway-key"] == "ward"

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def _say(provider: FakeProvider, asked: dict[str, Any]) -> dict[str, Any]:
    messages = [{"role": said["role"], "content": said["text"]} for said in asked["messages"]]
    body = {"model": asked["model"], "messages": messages, "max_tokens": asked["longest"]}
    url = f"{provider.openai_base_url}/chat/completions"
    request = Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urlopen(request) as response:
        reply = json.load(response)
    choice, usage = reply["choices"][0], reply["usage"]
    return {
        "text": choice["message"]["content"],
        "cut": choice["finish_reason"] == "length",
        "tokens_in": usage["prompt_tokens"],
        "tokens_out": usage["completion_tokens"],
    }


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The page's package, as pip would have installed it."""
    (module,) = PAGE.examples
    (project,) = re.findall(r"^```toml\n(.*?)^```$", PAGE.text, re.DOTALL | re.MULTILINE)
    declared = tomllib.loads(project)["project"]
    site = tmp_path / "site"
    info = site / "our_gateway-1.dist-info"
    info.mkdir(parents=True)
    (site / "our_gateway.py").write_text(module)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: our-gateway\nVersion: 1\n")
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in points.items())
        for group, points in declared["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("".join(lines))
    return site


def run(site: Path, flags: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(REPOSITORY / "main.py"), *flags.split(), "--display", "none"],
        env={**os.environ, "PYTHONPATH": str(site), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_page(installed: Path, gateway: str, provider: FakeProvider) -> None:
    (module,) = PAGE.examples
    code = [
        line
        for line in module.splitlines()
        if line and not line.startswith(('"""', "from", "import"))
    ]
    assert len(code) <= 42, "about 40 lines, as promised"
    (flags,) = re.findall(r"^GATEWAY_API_KEY=… python main.py (.*)$", PAGE.text, re.MULTILINE)
    flags = f"{flags.replace('20', '2')} --data-dir {REPOSITORY / 'data'} --method cot"
    done = run(installed, flags, GATEWAY_API_KEY="ward", GATEWAY_BASE_URL=gateway)
    assert done.returncode == 0, done.stderr
    (file,) = Path("output").glob("*.json")
    records = json.loads(file.read_text())
    assert [record["status"] for record in records] == ["answered"] * 2
    for what in ("input", "output"):
        booked = sum(record["token_usage"][f"{what}_tokens"] for record in records)
        assert booked == getattr(provider.totals, what)
    cost = (provider.totals.input * 0.2 + provider.totals.output * 0.4) / 1e6
    assert sum(r["token_usage"]["cost_usd"] for r in records) == pytest.approx(cost)


def test_a_wrong_key_and_a_missing_one(installed: Path, gateway: str) -> None:
    flags = f"--model gateway --num-samples 2 --method cot --data-dir {REPOSITORY / 'data'}"
    done = run(installed, flags, GATEWAY_BASE_URL=gateway)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "no key for gateway: put GATEWAY_API_KEY=… into .env" in done.stderr
    done = run(installed, flags, GATEWAY_API_KEY="other", GATEWAY_BASE_URL=gateway)
    assert done.returncode == 1
    assert "gateway/ward-7b is out of reach: 401 from our gateway" in done.stderr


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("1 / 0", "cannot be loaded: ZeroDivisionError: division by zero"),
        ("provider = 'http://127.0.0.1'", "is a str, not an mdagents_llm.ProviderInfo"),
        ("import nothing_like_it", "cannot be loaded: ModuleNotFoundError: No module named"),
    ],
)
def test_a_package_that_is_broken_is_named_where_it_is_asked_for(
    installed: Path, module: str, message: str
) -> None:
    (installed / "our_gateway.py").write_text(module)
    flags = f"--dry-run --num-samples 2 --data-dir {REPOSITORY / 'data'}"
    done = run(installed, f"{flags} --model gateway/ward-7b")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert (
        f"the provider gateway (mdagents.providers: our_gateway:provider) {message}" in done.stderr
    )
    assert run(installed, f"{flags} --model local").returncode == 0
