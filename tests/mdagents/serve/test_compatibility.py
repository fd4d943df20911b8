"""What clients send to servers with OpenAI's API, and what those are known to get wrong."""

from __future__ import annotations

import gzip
import json
import re
import socket
from typing import Any

import httpx2
import pytest

from mdagents.serve.answer_form import AnswerForm
from mdagents.serve.requests import read_chat
from tests.fake_provider import FakeProvider
from tests.mdagents.serve.served import MODEL, OPTIONS, PROMPT, QUESTION, Served, serving
from tests.mdagents.serve.test_clients import decides

USER = {"role": "user", "content": PROMPT}
JSON = {"content-type": "application/json"}
BODY = json.dumps({"model": MODEL, "messages": [USER]}).encode()
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
STRICT = {
    "type": "json_schema",
    "json_schema": {"name": "x", "strict": True, "schema": SCHEMA},
}

ACCEPTED: list[tuple[dict[str, Any], list[str]]] = [
    # Frameworks send what is unset as null, empty or false.
    (
        {
            "stop": None, "logit_bias": {}, "functions": None, "tools": [], "n": None, "user": "",
            "logprobs": False, "top_logprobs": 0, "response_format": None, "seed": None,
            "stream_options": None, "audio": None, "prediction": None, "stream": None,
        },
        ["user"],
    ),
    ({"max_completion_tokens": 16, "max_tokens": None}, ["max_completion_tokens"]),
    ({"max_tokens": 1, "temperature": 0}, ["max_tokens", "temperature"]),
    ({"parallel_tool_calls": True, "tool_choice": "none"}, ["parallel_tool_calls", "tool_choice"]),
    ({"store": True, "metadata": {"a": "b"}}, ["metadata", "store"]),
    ({"function_call": "auto"}, ["function_call"]),
    ({"prediction": {"type": "content", "content": "C"}}, ["prediction"]),
    ({"seed": -1, "stop": []}, []),
    ({"stream_options": {"include_usage": True}}, []),
    ({"response_format": {"type": "text"}}, []),
    ({"messages": [{"role": "developer", "content": "You are a helpful assistant."}, USER]}, []),
    ({"messages": [{"role": "system", "content": None}, USER | {"name": "ann"}]}, []),
    *(
        ({"messages": [USER, {"role": "assistant", "content": [part]}, USER]}, ["examples"])
        for part in (
            {"type": "text", "text": "Answer: C"},
            {"type": "reasoning", "text": "Scurvy."},  # langchain-ai/langchainjs#11049
            {"type": "thinking", "thinking": "Scurvy.", "signature": "x"},
            {"type": "refusal", "refusal": "I cannot help."},
        )
    ),
    (
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": f"Question: {QUESTION}"},
                        {"type": "text", "text": OPTIONS, "cache_control": {"type": "ephemeral"}},
                        {"type": "text", "text": "Answer:"},
                    ],
                }
            ]
        },
        [],
    ),
]  # fmt: skip


def test_parameters_that_frameworks_send(provider: FakeProvider) -> None:
    decides(provider)
    with serving() as served:
        for sent, ignored in ACCEPTED:
            response = served.ask(**sent) if "messages" not in sent else _posted(served, **sent)
            assert response.status_code == 200, (sent, response.text)
            content = response.json()
            assert content["choices"][0]["message"]["content"] == "C", sent
            assert content["mdagents"]["ignored"] == ignored
        # vllm-project/vllm#49227: a stop ended the object in the middle.
        strict = served.ask(response_format=STRICT, stop=["C", "}"], user="ann").json()
    assert json.loads(strict["choices"][0]["message"]["content"]) == {"answer": "C"}
    assert strict["mdagents"]["ignored"] == ["stop", "user"]


def test_the_form_may_be_asked_for_before_examples() -> None:
    told = "The last line of your response should be 'ANSWER: $LETTER'."
    example = {"role": "user", "content": f"{told}\n\n{PROMPT}"}
    in_turns = [example, {"role": "assistant", "content": "ANSWER: C"}, USER]
    in_text = [{"role": "user", "content": f"{told}\n\n{PROMPT} C\n\n{PROMPT}"}]
    for messages in (in_turns, in_text):
        asked = read_chat({"model": MODEL, "messages": messages})
        assert asked.form == AnswerForm("ANSWER: {}")
        assert asked.ignored == ["examples"]


@pytest.mark.parametrize(
    ("told", "last_line"),
    [
        ("Do not answer with only the letter.", "Answer: {}"),
        ("Don't just give the letter; explain.", "Answer: {}"),
        ("Write the letter and its text, not only the letter.", "Answer: {}"),
        ("Never reply with the letter alone.", "Answer: {}"),
        ("Antworte nicht nur mit dem Buchstaben.", "Answer: {}"),
        ("Ne répondez pas uniquement par la lettre.", "Answer: {}"),
        ("不要只回答字母。", "Answer: {}"),
        ("Do not explain, give only the letter.", "{}"),
        ("Do not answer with anything but a single letter.", "{}"),
        ("Never give more than one letter.", "{}"),
        ("Do not answer with only the letter at first. End with only the letter.", "{}"),
    ],
)
def test_more_than_the_letter_may_be_asked_for(told: str, last_line: str) -> None:
    for prompt in (f"{told}\n\n{PROMPT}", f"{QUESTION}\n{OPTIONS}\n\n{told}\nAnswer:"):
        asked = read_chat({"model": MODEL, "messages": [{"role": "user", "content": prompt}]})
        assert asked.form == AnswerForm(last_line, is_alone=last_line == "{}")


def test_an_empty_last_option_is_not_shown(provider: FakeProvider) -> None:
    decides(provider)
    told = "Choose the best option, and give its letter in \\boxed{}."
    with serving() as served:
        for last in ("E. ", "E.", "E. n/a"):
            response = served.ask(f"{QUESTION}\n\n{OPTIONS}\n{last}\n\n{told}")
            content = response.json()["choices"][0]["message"]["content"]
            assert content.endswith("\\boxed{C}"), last
        assert all([*record["options"]] == [*"ABCD"] for record in served.records())


def test_a_response_may_be_part_of_the_next_input(provider: FakeProvider) -> None:
    """`input += response.output`, whose first item is the team's reasoning (litellm#13420)."""
    with serving() as served:
        asked: list[dict[str, Any]] = [{"role": "user", "content": PROMPT}]
        for _ in range(2):
            response = served.post("/v1/responses", json={"model": MODEL, "input": asked})
            assert response.status_code == 200, response.text
            output = response.json()["output"]
            assert [item["type"] for item in output] == ["reasoning", "message"]
            asked = [*asked, *output, {"role": "user", "content": PROMPT}]


def test_what_changes_nothing_in_a_response(provider: FakeProvider) -> None:
    refusal = {"role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot."}]}
    sent: list[tuple[dict[str, Any], list[str]]] = [
        # ogx-ai/ogx#4706
        ({"stream_options": {"include_obfuscation": False}}, ["stream_options"]),
        ({"max_tool_calls": 1, "tool_choice": "auto"}, ["max_tool_calls", "tool_choice"]),
        ({"input": [USER, refusal, USER]}, ["examples"]),
    ]
    with serving() as served:
        for more, ignored in sent:
            asked = {"model": MODEL, "input": PROMPT} | more
            response = served.post("/v1/responses", json=asked)
            assert response.status_code == 200, response.text
            assert response.json()["mdagents"]["ignored"] == ignored


def _posted(served: Served, **sent: Any) -> httpx2.Response:
    return served.post(json={"model": MODEL, **sent})


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"n": 0}, "n must be 1"),
    ({"seed": 2**63}, "seed: "),  # more than the 64 bits that endpoints take
    ({"logit_bias": {"50256": -100}}, "no tokens to bias"),
    ({"top_logprobs": 5}, "no probabilities of tokens"),
    ({"chat_template_kwargs": {"enable_thinking": False}}, "chat_template_kwargs is not supported"),
    ({"guided_choice": ["A", "B"]}, "guided_choice is not supported"),
    ({"messages": [USER, {"role": "assistant", "content": ""}]}, "last message must be the user"),
    ({"messages": [{"role": "user", "content": "What causes scurvy?"}]}, "lists no options"),
    ({"messages": [{"role": "user", "content": None}]}, "lists no options"),
    ({"messages": "x"}, "messages: "),
    ({"model": None}, "model: "),
]


def test_parameters_that_would_change_the_answer(provider: FakeProvider) -> None:
    with serving() as served:
        for sent, message in REFUSED:
            response = _posted(served, **{"messages": [USER]} | sent)
            assert response.status_code == 400, sent
            error = response.json()["error"]
            assert message in error["message"]
            assert error["type"] == "invalid_request_error"
            assert error["param"] == next(iter(sent))
        for raw in (b"[" * 100_000, BODY.replace(b"sailor", rb"\ud800")):
            assert served.post(content=raw, headers=JSON).status_code == 400
        assert served.records() == []
    assert not provider.calls


def test_an_open_question_is_refused_by_both_apis_and_in_streams(provider: FakeProvider) -> None:
    asked = "Which vitamin is lacking in scurvy?"
    chat = {"model": MODEL, "messages": [{"role": "user", "content": asked}]}
    with serving() as served:
        refused = [
            served.post(json=chat),
            served.post(json=chat | {"stream": True}),
            served.post("/v1/responses", json={"model": MODEL, "input": asked}),
        ]
    for response in refused:
        assert response.status_code == 400
        assert response.headers["content-type"] == "application/json"
        error = response.json()["error"]
        assert error["code"] == "no_options"
        assert "as in 'A. Iron' or 'B) Zinc'" in error["message"]
    assert not provider.calls


def test_addresses(provider: FakeProvider) -> None:
    with serving() as served, httpx2.Client(verify=False) as client:

        def sent(method: str, path: str, **more: Any) -> httpx2.Response:
            return client.request(method, f"{served.url}{path}", timeout=30, **more)

        whole = sent("GET", "/v1/models")
        head = sent("HEAD", "/v1/models")
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == whole.headers["content-length"]
        # A redirect would name http:// behind a proxy with TLS, and some clients follow none.
        assert sent("GET", "/v1/models/").json() == whole.json()
        assert sent("POST", "/v1/chat/completions/", content=BODY, headers=JSON).status_code == 200
        named = [sent("GET", f"/v1/models/{name}") for name in ("mdagents%2Fbasic", MODEL)]
        assert [one.json()["id"] for one in named] == [MODEL, MODEL]
        for path in ("/chat/completions", "/v1/v1/chat/completions", "/v1/completions", "/a%0Ab"):
            response = sent("POST", path, content=BODY, headers=JSON)
            error = response.json()["error"]
            assert (response.status_code, error["code"]) == (404, "not_found")
            assert "end the base URL in /v1" in error["message"]
            assert "\n" not in error["message"]
        wrong = sent("GET", "/v1/chat/completions")
        assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
        assert wrong.json()["error"]["code"] == "method_not_allowed"


def test_a_browsers_preflight_is_refused(provider: FakeProvider) -> None:
    asks = {
        "origin": "http://localhost:5173",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type",
    }
    with serving() as served, httpx2.Client(verify=False) as client:
        response = client.options(f"{served.url}/v1/chat/completions", headers=asks)
    assert (response.status_code, response.json()["error"]["code"]) == (403, "forbidden_origin")
    assert not any(name.startswith("access-control-") for name in response.headers)


def test_bodies(provider: FakeProvider) -> None:
    with serving() as served:
        compressed = JSON | {"content-encoding": "gzip"}
        packed = served.post(content=gzip.compress(BODY), headers=compressed)
        assert (packed.status_code, packed.json()["error"]["code"]) == (415, "unsupported_encoding")
        assert packed.headers["accept-encoding"] == "identity"
        assert not provider.calls
        read = [
            served.post(content=iter([BODY[:9], BODY[9:]]), headers=JSON),  # chunked
            served.post(content=b"\xef\xbb\xbf" + BODY, headers=JSON),
            served.post(content=BODY, headers={"content-type": "Application/JSON; charset=utf-8"}),
            served.post(content=BODY, headers=JSON | {"content-encoding": "identity"}),
        ]
        assert {response.status_code for response in read} == {200}
        assert _status(served, BODY, b"expect: 100-continue\r\n") == [100, 200]
        too_long = b"expect: 100-continue\r\ncontent-length: 99999999999\r\n"
        assert _status(served, b"", too_long) == [413]


def _status(served: Served, body: bytes, headers: bytes) -> list[int]:
    """Send a request, its body once the server asks for it; return the statuses."""
    host, port = served.url.removeprefix("http://").split(":")
    length = b"" if b"content-length" in headers else b"content-length: %d\r\n" % len(body)
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
            b"content-type: application/json\r\n" + length + headers + b"\r\n"
        )
        got = connection.recv(4096)
        if got.startswith(b"HTTP/1.1 100 "):
            connection.sendall(body)
        while more := connection.recv(65536):
            got += more
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+) ", got)]


def test_a_connection_is_used_again_after_an_error_and_after_a_stream(
    provider: FakeProvider,
) -> None:
    with serving() as served:
        host, port = served.url.removeprefix("http://").split(":")
        stream = json.dumps(json.loads(BODY) | {"stream": True}).encode()
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            file = connection.makefile("rb")
            for body, status in ((b"{", b"400"), (stream, b"200"), (BODY, b"200"), (BODY, b"200")):
                connection.sendall(
                    b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: "
                    b"application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
                )
                assert file.readline().split()[1] == status
                _skip_response(file)


def _skip_response(file: Any) -> None:
    """Read the rest of a response, which states its length or is chunked."""
    headers = {}
    while line := file.readline().strip():
        name, _, value = line.partition(b":")
        headers[name.lower()] = value.strip()
    if length := int(headers.get(b"content-length", 0)):
        assert len(file.read(length)) == length
        return
    while size := int(file.readline(), 16):
        file.read(size + 2)
    file.readline()


CHOICES = OPTIONS.replace(". ", ") ")
READERS: list[tuple[str, dict[str, Any], str]] = [
    # simple-evals: prompt and pattern of its multiple-choice evaluations.
    (
        "Answer the following multiple choice question. The last line of your response should be "
        "of the following format: 'Answer: $LETTER' (without quotes) where LETTER is one of ABCD. "
        f"Think step by step before answering.\n\n{QUESTION}\n\n{CHOICES}",
        {"temperature": 0.5, "max_tokens": 2048},
        r"(?i)Answer[ \t]*:[ \t]*\$?([A-D])\$?",
    ),
    # HELM: a completion of one token up to the end of the line.
    (
        "The following are multiple choice questions (with answers) about medicine.\n\n"
        f"Question: {QUESTION}\n{OPTIONS}\nAnswer:",
        {"temperature": 0, "max_tokens": 1, "stop": ["\n"], "n": 1, "top_p": 1},
        r"\A\s*([A-D])\s*\Z",
    ),
    # MMLU-Pro: its prompt for models that reason, and the first of its patterns.
    (
        f"Question: {QUESTION}\nOptions: \n{OPTIONS}\nAnswer: Let's think step by step.",
        {"stop": ["Question:"], "max_tokens": 2048},
        r"answer is \(?([A-J])\)?",
    ),
]


@pytest.mark.parametrize(("prompt", "more", "pattern"), READERS, ids=["simple", "helm", "pro"])
def test_what_other_harnesses_read_is_the_teams_decision(
    provider: FakeProvider, prompt: str, more: dict[str, Any], pattern: str
) -> None:
    with serving() as served:
        response = served.ask(prompt, **more)
        (record,) = served.records()
        spent = sum(row["input_tokens"] + row["output_tokens"] for row in served.rows())
    found = re.search(pattern, response.json()["choices"][0]["message"]["content"])
    assert found is not None
    assert found[1] == record["predicted"]
    assert response.json()["usage"]["total_tokens"] == spent
