"""The API and the socket of the chat, over real connections."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from importlib.resources import files
from typing import Any

import httpx2
import pytest
import yaml
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from demos.medagen.limits import Limits, Rates
from demos.medagen.message_texts import load_wording
from tests.demos.medagen.scripted import MANY, ScriptedAssistant, serving

HOSTILE = "<script>document.title=1</script> & \u202e 'x'"


@pytest.fixture
def assistant() -> ScriptedAssistant:
    return ScriptedAssistant()


@pytest.fixture
async def client(assistant: ScriptedAssistant) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of a server without limits of rates."""
    async with serving(assistant) as url, httpx2.AsyncClient(base_url=url) as client:
        yield client


def chat(url: httpx2.URL | str) -> connect:
    address = str(url).rstrip("/").replace("http", "ws", 1)
    return connect(f"{address}/ws/chat", proxy=None)


async def say(socket: ClientConnection, text: str, **more: Any) -> None:
    await socket.send(json.dumps({"text": text, "user_id": "ann"} | more))


async def heard(socket: ClientConnection) -> list[dict[str, Any]]:
    """What comes up to the end of a turn."""
    events: list[dict[str, Any]] = []
    while not events or events[-1]["type"] not in ("final_answer", "error"):
        events.append(json.loads(await asyncio.wait_for(socket.recv(), 30)))
    return events


async def until(holds: Any) -> None:
    """Let the loop run until something holds."""
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - it is told by nobody
            await asyncio.sleep(0)


# -- API ------------------------------------------------------------------------------------------


async def test_a_message_is_answered_and_kept(client: httpx2.AsyncClient) -> None:
    reply = await client.post("/api/health-check", json={"text": "đau ngực", "user_id": "ann"})
    assert reply.status_code == 200
    result = reply.json()
    assert (result["triage_level"], result["language"]) == ("emergency", "vi")
    kept = await client.get(f"/api/conversations/{result['session_id']}?user_id=ann")
    assert [entry["role"] for entry in kept.json()["entries"]] == ["user", "assistant"]
    assert kept.json()["entries"][1]["result"] == result


async def test_rules_alone(client: httpx2.AsyncClient) -> None:
    reply = await client.post("/api/triage/rules?language=en", json={"symptoms": ["chest pain"]})
    assert reply.json()["reasoning"] == "Chest pain."
    assert (await client.get("/healthz")).json() == {"status": "ok"}


async def test_a_monitor_asks_with_head(client: httpx2.AsyncClient) -> None:
    """fastapi/fastapi#1773: FastAPI answers HEAD with 405 unless it is told to."""
    for path in ("/", "/healthz", "/healthz/", "/page/page.css", "/page/words.json"):
        whole, head = await client.get(path), await client.head(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == whole.headers["content-length"]
    refused = await client.put("/healthz")
    assert (refused.status_code, set(refused.headers["allow"].split(", "))) == (
        405,
        {"GET", "HEAD"},
    )


async def test_nothing_tells_another_users_conversation_from_none(
    client: httpx2.AsyncClient,
) -> None:
    reply = await client.post("/api/health-check", json={"text": "a cold", "user_id": "ann"})
    session = reply.json()["session_id"]
    answers = []
    for id_ in (session, "0" * 32, "..%2Fx", "%00"):
        for path in (f"/api/conversations/{id_}", f"/api/reports/{id_}"):
            refused = await client.get(path, params={"user_id": "eve"})
            answers.append((refused.status_code, refused.text))
        body = {"text": "hello", "user_id": "eve", "session_id": session}
        refused = await client.post("/api/health-check", json=body)
        answers.append((refused.status_code, refused.text))
        async with chat(client.base_url) as socket:
            await say(socket, "hello", user_id="eve", session_id=session)
            (event,) = await heard(socket)
        answers.append((404, json.dumps({"error": event["message"]}, separators=(",", ":"))))
    assert set(answers) == {
        (404, '{"error":"there is no such conversation; begin a new one"}'),
        (404, '{"error":"there is no such page"}'),  # a slash is no part of an id
    }
    assert len([text for _, text in answers if "page" in text]) == 2


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"text": "a"}, 422, "user_id: field required"),
        ({"text": "a" * 4_001, "user_id": "a"}, 422,
         "text: string should have at most 4000 characters"),
        ({"text": "a", "user_id": "a", "\u202e": 1}, 422,
         "the request has a field that is not known; leave it out"),
        ({"user_id": "a"}, 422, "the message is empty; say what is wrong"),
        ({"text": "BUSY", "user_id": "a"}, 409,
         "the session is in use elsewhere; wait for its answer"),
        ([], 422, "the request: input should be a valid dictionary or object to extract fields "
         "from"),
    ],
)  # fmt: skip
async def test_a_wrong_request_is_told_in_a_sentence(
    body: Any, status: int, sentence: str, client: httpx2.AsyncClient
) -> None:
    reply = await client.post("/api/health-check", json=body)
    assert (reply.status_code, reply.json()) == (status, {"error": sentence})


@pytest.mark.parametrize(
    "raw", ["{", "", "[" * 20_000, '{"user_id":"a","text":"\\ud800"}', '{"\\ud800":1}', "NaN"]
)
async def test_what_is_no_request(raw: str, client: httpx2.AsyncClient) -> None:
    headers = {"content-type": "application/json"}
    reply = await client.post("/api/health-check", content=raw.encode(), headers=headers)
    assert reply.status_code in (400, 422)
    assert list(reply.json()) == ["error"]
    async with chat(client.base_url) as socket:
        await socket.send(raw)
        assert [event["type"] for event in await heard(socket)] == ["error"]
        await say(socket, "a cold")
        assert (await heard(socket))[-1]["type"] == "final_answer"


async def test_what_is_not_there(client: httpx2.AsyncClient) -> None:
    for path in ("/x", "/docs", "/redoc", "/page/report.html", "/page/..%2Fapp.py"):
        assert (await client.get(path)).json() == {"error": "there is no such page"}
    assert (await client.put("/api/health-check")).status_code == 405


async def test_a_page_of_another_site_is_refused(client: httpx2.AsyncClient) -> None:
    own = {"origin": str(client.base_url).rstrip("/")}
    asked = {"symptoms": ["chest pain"]}
    for origin in ("http://evil.example", "null"):
        for answer in (
            await client.post("/api/triage/rules", json=asked, headers={"origin": origin}),
            await client.get("/api/conversations/x?user_id=u", headers={"origin": origin}),
        ):
            assert answer.status_code == 403
            assert answer.json() == {"error": "a page of another site may not ask"}
    answer = await client.post("/api/triage/rules", json=asked, headers=own)
    assert answer.status_code == 200


async def test_a_fault_of_ours_is_not_explained(
    client: httpx2.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    reply = await client.post("/api/health-check", json={"text": "BUG", "user_id": "a"})
    assert (reply.status_code, reply.json()["error"]) == (
        500, "something went wrong here; try again"
    )  # fmt: skip
    async with chat(client.base_url) as socket:
        await say(socket, "BUG")
        with pytest.raises(ConnectionClosed):
            await heard(socket)
    caplog.clear()


async def test_every_answer_says_what_a_browser_may_do_with_it(client: httpx2.AsyncClient) -> None:
    page = await client.get("/")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert page.headers["cache-control"] == "no-store"
    script = await client.get("/page/page.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert "default-src 'none'" in script.headers["content-security-policy"]


# -- reports --------------------------------------------------------------------------------------


async def test_a_report_is_the_course_of_a_conversation(client: httpx2.AsyncClient) -> None:
    first = {"text": f"a cold {HOSTILE}", "user_id": "ann"}
    session = (await client.post("/api/health-check", json=first)).json()["session_id"]
    more = first | {"text": "now my chest hurts FAIL", "session_id": session}
    await client.post("/api/health-check", json=more)
    reply = await client.get(f"/api/reports/{session}?user_id=ann")
    assert reply.headers["content-type"].startswith("text/html")
    html = reply.text
    assert "<script" not in html
    assert "&lt;script&gt;document.title=1&lt;/script&gt; &amp; \u202e &#39;x&#39;" in html
    assert 'lang="en"' in html
    assert html.index(">Self-care<") < html.rindex(">Emergency<")
    for part in (
        "Pain or pressure in the chest can come from the heart.",
        '<li>chest pain <span class="soft">(you wrote: <bdi>“đau ngực”</bdi>)</span></li>',
        "Call 115 now.", "fever-home-01", "not a medical device", "2026-03-01 09:30",
        "rests on fixed rules alone",
    ):  # fmt: skip
        assert part in html, part
    assert "@media print" in (await client.get("/page/report.css")).text


@pytest.mark.sweep
def test_all_is_said_in_both_languages() -> None:
    texts = load_wording().texts
    raw = files("demos.medagen").joinpath("rules.yaml").read_text("utf-8")
    rules = yaml.safe_load(raw)["rules"]
    assert {f"flag.{rule.get('flag', rule['id'])}" for rule in rules} <= set(texts)
    for key, text in texts.items():
        assert set(text) == {"vi", "en"}, key
        assert all(text.values()), key


# -- limits ---------------------------------------------------------------------------------------


@pytest.mark.sweep
async def test_who_asks_too_often_waits(assistant: ScriptedAssistant) -> None:
    now = [0.0]
    limits = Limits(per_minute=30, burst=2)
    async with (
        serving(assistant, limits=limits, monotonic=lambda: now[0]) as url,
        httpx2.AsyncClient(base_url=url) as client,
    ):
        body = {"text": "a cold", "user_id": "ann"}
        answers = [await client.post("/api/health-check", json=body) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert answers[2].headers["retry-after"] == "2"
        assert answers[2].json() == {"error": "too many requests; try again in 2 seconds"}
        assert (await client.get("/")).status_code == 200
        async with chat(url) as socket:
            await say(socket, "a cold")
            (event,) = await heard(socket)
            assert event["message"] == "too many requests; try again in 2 seconds"
            now[0] = 2.0
            await say(socket, "a cold")
            assert (await heard(socket))[-1]["type"] == "final_answer"


def test_rates_come_back_and_their_memory_is_bounded() -> None:
    now = [0.0]
    rates = Rates(60, 3, lambda: now[0], most=100)
    assert [rates.take("a") for _ in range(4)] == [0, 0, 0, 1]
    now[0] = 0.5
    assert rates.take("a") == 0.5
    now[0] = 3_600.0
    assert [rates.take("a") for _ in range(4)] == [0, 0, 0, 1], "no more than a burst is saved"
    for number in range(1_000):
        rates.take(f"user-{number}")
    assert len(rates) == 100


@pytest.mark.sweep
async def test_one_turn_too_many_is_refused(assistant: ScriptedAssistant) -> None:
    limits = Limits(per_minute=1_000, burst=1_000, turns=2, sockets=3)
    async with serving(assistant, limits=limits) as url, chat(url) as one, chat(url) as two:
        await say(one, "WAIT")
        await say(two, "WAIT")
        await until(lambda: assistant.under_way == 2)
        async with httpx2.AsyncClient(base_url=url) as client:
            body = {"text": "a cold", "user_id": "bob"}
            refused = await client.post("/api/health-check", json=body)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
            async with chat(url):
                with pytest.raises(InvalidStatus) as full:
                    async with chat(url):
                        pass
                assert full.value.response.status_code == 503
            assistant.go.set()
            assert (await heard(one))[-1]["type"] == (await heard(two))[-1]["type"]
            assert (await client.post("/api/health-check", json=body)).status_code == 200


@pytest.mark.parametrize(
    ("header", "body"),
    [
        ("Content-Length: 50000000", b"{"),
        ("Transfer-Encoding: chunked", b"2710\r\n%s\r\n" % (b" " * 10_000) * 7),
    ],
    ids=["announced", "not announced"],
)
async def test_a_body_that_is_too_long_is_refused_before_all_of_it_came(
    header: str, body: bytes, client: httpx2.AsyncClient
) -> None:
    port = client.base_url.port
    assert port is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        f"POST /api/health-check HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        f"Content-Type: application/json\r\n{header}\r\n\r\n".encode()
    )
    writer.write(body)
    reply = await asyncio.wait_for(reader.read(), 30)  # to the end of the connection
    assert reply.startswith(b"HTTP/1.1 413")
    assert reply.endswith(b'{"error":"the request is too long; send at most 65,536 bytes"}')
    writer.close()


# -- chat -----------------------------------------------------------------------------------------


@pytest.mark.sweep
async def test_steps_come_while_a_turn_is_under_way_and_turns_follow_each_other(
    client: httpx2.AsyncClient, assistant: ScriptedAssistant
) -> None:
    async with chat(client.base_url) as socket:
        await say(socket, "đau ngực WAIT")
        assert json.loads(await socket.recv())["type"] == "action_start"
        observed = json.loads(await socket.recv())
        assert (observed["tool"], observed["output"]["triage_level"]) == (
            "triage_rules", "emergency"
        )  # fmt: skip
        await say(socket, "hello?")
        (refused,) = await heard(socket)
        assert refused["message"] == "wait for the answer, then write again"
        assistant.go.set()
        events = await heard(socket)
        assert [event["type"] for event in events] == ["thought", "final_answer"]
        session = events[-1]["result"]["session_id"]
        for _ in range(20):
            await say(socket, "a cold", session_id=session)
            assert (await heard(socket))[-1]["type"] == "final_answer"
    kept = await client.get(f"/api/conversations/{session}?user_id=ann")
    assert len(kept.json()["entries"]) == 42


async def test_a_client_that_goes_away_leaves_nothing(
    client: httpx2.AsyncClient, assistant: ScriptedAssistant
) -> None:
    before = len(asyncio.all_tasks())
    for abruptly in (False, True):
        assistant.seen.clear()
        async with chat(client.base_url) as socket:
            await say(socket, "WAIT")
            await until(lambda: assistant.under_way == 1)
            if abruptly:
                socket.transport.abort()
        await until(lambda: assistant.seen["cancelled"] == 1)
    await until(lambda: len(asyncio.all_tasks()) <= before)


@pytest.mark.sweep
async def test_a_client_that_does_not_read_is_sent_no_more_than_it_takes(
    assistant: ScriptedAssistant,
) -> None:
    async with serving(assistant) as url, chat(url) as socket:
        await say(socket, "STEPS" + "x" * 3_000)
        events = await heard(socket)
        assert events[-1]["type"] == "final_answer"
        assert 3 <= len(events) <= 70, "of ten thousand"


@pytest.mark.sweep
async def test_two_hundred_chats_at_once(assistant: ScriptedAssistant) -> None:
    async with serving(assistant, limits=MANY) as url:

        async def talk(number: int) -> str:
            async with chat(url) as socket:
                await say(socket, "WAIT đau ngực", user_id=f"user-{number}")
                if number == 0:
                    await until(lambda: assistant.under_way == 200)
                    assistant.go.set()
                return str((await heard(socket))[-1]["type"])

        answers = await asyncio.gather(*(talk(number) for number in range(200)))
    assert set(answers) == {"final_answer"}
    assert assistant.most_under_way == 200
