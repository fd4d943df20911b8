"""A Hub on the loopback interface and a folder to download into."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.mdagents.data_tools.hub import Hub, Workspace


@pytest.fixture
def hub() -> Iterator[Hub]:
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            hub.asked.set()
            if hub.release is not None:
                hub.release.wait(timeout=30)
            self.answer(body=True)

        def answer(self, *, body: bool) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            hub.requests.append((self.command, self.path, headers))
            match = re.fullmatch(
                r"/(?:datasets/[^/]+/[^/]+/resolve|storage|github/[^/]+/[^/]+)/([^/]+)/(.+)",
                self.path,
            )
            content = hub.files.get(match[2]) if match else None
            if hub.only is not None and match and match[2] not in hub.only:
                content = None
            if hub.status != 200 or match is None or content is None:
                self.send_response(hub.status if hub.status != 200 else 404)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if hub.large_files and not self.path.startswith("/storage/"):
                self.send_response(302)
                # "localhost" is another host than "127.0.0.1", as the Hub's storage is
                self.send_header(
                    "Location", f"http://localhost:{hub.port}/storage/{match[1]}/{match[2]}"
                )
                self.send_header("Content-Length", "0")
                self.send_header("X-Repo-Commit", match[1])
                reported = hub.reported or hashlib.sha256(content).hexdigest()
                self.send_header("X-Linked-ETag", f'"{reported}"')
                self.send_header("X-Linked-Size", str(len(content)))
                self.send_header("X-Xet-Hash", "ab" * 32)
                self.send_header("X-Xet-Refresh-Route", "/api/xet-read-token")
                self.end_headers()
                return
            asked = re.fullmatch(r"bytes=(\d+)-", headers.get("range", ""))
            start = int(asked[1]) if asked else 0
            part = content[start:]
            self.send_response(206 if asked else 200)
            if asked:
                self.send_header(
                    "Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}"
                )
            claimed = None if body else hub.claimed_size
            self.send_header("Content-Length", str(len(part) if claimed is None else claimed))
            if hub.is_a_hub:
                blob = b"blob %d\0" % len(content) + content
                self.send_header("ETag", f'"{hub.reported or hashlib.sha1(blob).hexdigest()}"')
                self.send_header("X-Repo-Commit", match[1])
            self.end_headers()
            if body:
                if hub.cut_after is not None:
                    part, hub.cut_after = part[: hub.cut_after], None
                self.wfile.write(part)

        def log_message(self, format: str, *args: Any) -> None:
            pass  # the terminal belongs to pytest

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.port = server.server_port
    thread = threading.Thread(
        target=server.serve_forever, args=(0.01,)
    )  # seconds: how soon it stops
    thread.start()
    yield hub
    if hub.release is not None:
        hub.release.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def workspace(tmp_path: Path, hub: Hub) -> Workspace:
    (tmp_path / "home").mkdir()
    return Workspace(tmp_path, hub.url)
