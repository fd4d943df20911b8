"""Asks a team one question: starts `mdagents serve`, sends the request, and prints the answer.

It runs where the team runs, which may be a container, with nothing but Python's own library.
"""

import json
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable
from typing import Any

NO_LETTER = frozenset({"refused", "truncated", "no_answer"})
"""Codes of errors that end a question without a letter after the model has replied."""
_TO_END = 10  # seconds that the server gets to end
_LONGEST_ERROR = 1_000  # characters


def main(path: str) -> int:
    """Print the answer to a request as a line of JSON.

    Args:
        path: File with `command`, the words that start the server, and `request`, the body for its
            API of chat completions.

    Returns:
        Exit status: 0 if the team worked on the question to its end, 1 otherwise.
    """
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - pathlib is slower to import
        job = json.load(file)
    try:
        server = subprocess.Popen(job["command"], stdout=subprocess.PIPE, text=True)
    except OSError as error:
        return _failed(f"{job['command'][0]} cannot be started: {error.strerror}")
    with server:
        try:
            assert server.stdout is not None
            url = _url_in(server.stdout)
            if not url:
                return _failed(f"{job['command'][0]} did not start; its message is above")
            # What a team prints is read, so that it never waits for a full pipe.
            threading.Thread(target=server.stdout.read, daemon=True).start()
            return _asked(f"{url}/chat/completions", job["request"])
        finally:
            server.terminate()
            try:
                server.wait(_TO_END)
            except subprocess.TimeoutExpired:
                server.kill()


def _url_in(lines: Iterable[str]) -> str:
    """Return the address of the API from the first line with one; empty without any."""
    return next((found[0] for line in lines if (found := re.search(r"http://\S+/v1", line))), "")


def _asked(url: str, request: dict[str, Any]) -> int:
    """Send the request, without a time limit: the rollout has one."""
    headers = {"content-type": "application/json"}
    asked = urllib.request.Request(url, json.dumps(request).encode(), headers)
    # The server is on this machine: no proxy of the environment leads to it.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(asked) as response:
            body = json.load(response)
    except urllib.error.HTTPError as error:
        body = _object(error.read())
        told = body.get("error", {})
        if told.get("code") in NO_LETTER:
            return _answered("", body)
        return _failed(f"{told.get('message', error)} ({told.get('code', error.code)})")
    except OSError as error:
        return _failed(f"the server ended: {error}")
    return _answered(body["choices"][0]["message"]["content"], body)


def _object(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _answered(reply: str, body: dict[str, Any]) -> int:
    print(json.dumps({"reply": reply, "mdagents": body.get("mdagents", {})}))
    return 0


def _failed(message: str) -> int:
    print(message[:_LONGEST_ERROR], file=sys.stderr)
    return 1


def _end(*_: object) -> None:
    raise SystemExit(1)  # past the blocks that end the server


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)
    sys.exit(main(sys.argv[1]))
