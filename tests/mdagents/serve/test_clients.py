"""A server of teams as the SDKs see it."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any, Literal

import openai
import pytest
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from PIL import Image
from pydantic import BaseModel

from tests.fake_provider import FakeProvider
from tests.mdagents.serve.served import MODEL, OPTIONS, PROMPT, QUESTION, Served, serving

INSPECT = (
    "Answer the following multiple choice question. The entire content of your response should be "
    "of the following format: 'ANSWER: $LETTER' (without quotes) where LETTER is one of A,B,C,D."
    f"\n\n{QUESTION}\n\n{OPTIONS.replace('. ', ') ')}"
)


def decides(provider: FakeProvider) -> None:
    """Let every agent choose C."""
    provider.when(lambda request: request.schema is not None, lambda request: {"answer": "C"})


def usage_of(served: Served) -> tuple[int, int]:
    rows = served.rows()
    return sum(row["input_tokens"] for row in rows), sum(row["output_tokens"] for row in rows)


def test_a_chat_completion_and_its_usage(provider: FakeProvider) -> None:
    decides(provider)
    with serving() as served, served.client() as client:
        made = client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": PROMPT}]
        )
        assert made.usage is not None
        assert (made.usage.prompt_tokens, made.usage.completion_tokens) == usage_of(served)
        assert made.usage.prompt_tokens == provider.totals.input
        assert made.usage.completion_tokens == provider.totals.output
        (record,) = served.records()
    (choice,) = made.choices
    assert (choice.message.content, choice.finish_reason) == ("C", "stop")
    assert "Recruited: " in choice.message.reasoning_content  # type: ignore[attr-defined]
    assert record["predicted"] == "C"
    assert record["question"] == QUESTION


async def test_a_stream_of_an_asynchronous_client(provider: FakeProvider) -> None:
    decides(provider)
    with serving() as served:
        async with AsyncOpenAI(
            base_url=f"{served.url}/v1",
            api_key="any",
            http_client=DefaultAsyncHttpxClient(verify=False),
        ) as client:
            stream = await client.chat.completions.create(
                model=MODEL,
                messages=[{"role": "user", "content": INSPECT}],
                stream=True,
                stream_options={"include_usage": True},
            )
            chunks = [chunk async for chunk in stream]
        said = [chunk.choices[0] for chunk in chunks if chunk.choices]
        *earlier, last = chunks
        assert last.usage is not None
        assert not last.choices
        assert not any(chunk.usage for chunk in earlier)
        assert (last.usage.prompt_tokens, last.usage.completion_tokens) == usage_of(served)
    assert "".join(choice.delta.content or "" for choice in said) == "ANSWER: C"
    thoughts = [getattr(choice.delta, "reasoning_content", None) for choice in said]
    assert any("Recruited: " in line for line in thoughts if line)
    assert [choice.finish_reason for choice in said][-1] == "stop"


def test_a_response_whole_and_streamed(provider: FakeProvider) -> None:
    decides(provider)
    with serving() as served, served.client() as client:
        whole = client.responses.create(model=MODEL, input=PROMPT)
        assert whole.usage is not None
        assert (whole.usage.input_tokens, whole.usage.output_tokens) == usage_of(served)
        with client.responses.stream(model=MODEL, input=PROMPT) as stream:
            events = list(stream)
            final = stream.get_final_response()
    assert whole.output_text == final.output_text == "C"
    assert whole.status == final.status == "completed"
    numbers = [event.sequence_number for event in events if hasattr(event, "sequence_number")]
    assert numbers == list(range(len(numbers)))
    kinds = [event.type for event in events]
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert "response.reasoning_summary_text.delta" in kinds


class Choice(BaseModel):
    reasoning: str
    answer: Literal["A", "B", "C", "D"]


def test_an_answer_in_a_schema_of_the_client(provider: FakeProvider) -> None:
    decides(provider)
    with serving() as served, served.client() as client:
        parsed = client.chat.completions.parse(
            model=MODEL, messages=[{"role": "user", "content": PROMPT}], response_format=Choice
        )
        responded = client.responses.parse(model=MODEL, input=PROMPT, text_format=Choice)
    assert parsed.choices[0].message.parsed is not None
    assert parsed.choices[0].message.parsed.answer == "C"
    assert parsed.choices[0].message.parsed.reasoning
    assert responded.output_parsed is not None
    assert responded.output_parsed.answer == "C"


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "object", "properties": {}}, "no property for the answer"),
        (
            {
                "type": "object",
                "properties": {"answer": {"type": "string"}, "icd10": {"type": "string"}},
                "required": ["answer", "icd10"],
            },
            "cannot fill the required property 'icd10'",
        ),
        (
            {
                "type": "object",
                "properties": {"answer": {"type": "string", "pattern": "^[1-4]$"}},
                "required": ["answer"],
            },
            "cannot fill the required property 'answer'",
        ),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "in a circle"),
        ({"type": "array", "items": {"type": "string"}}, "an object with properties"),
    ],
)
def test_a_schema_that_no_team_can_fill_costs_nothing(
    provider: FakeProvider, schema: dict[str, object], message: str
) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    with serving() as served:
        response = served.ask(response_format=wanted)
    assert response.status_code == 400
    assert message in response.json()["error"]["message"]
    assert not provider.calls


def test_the_models_are_the_teams_and_the_files_that_were_named(provider: FakeProvider) -> None:
    Path("my_team.py").write_text(
        "from mdagents import Decision\n\n"
        "async def solve(case, question, settings):\n"
        "    return Decision(letter='B', analysis='I like B.')\n"
    )
    Path("other.py").write_text("raise SystemExit('imported')\n")
    with serving(["adaptive", "my_team.py"]) as served, served.client() as client:
        names = [model.id for model in client.models.list()]
        own = client.chat.completions.create(
            model="mdagents/my_team.py",
            messages=[{"role": "user", "content": QUESTION + "\n" + OPTIONS}],
        )
        for name in ("mdagents/other.py", "other.py", "../my_team.py", "few_shot", "gpt-4o", ""):
            with pytest.raises(openai.NotFoundError) as caught:
                client.chat.completions.create(
                    model=name, messages=[{"role": "user", "content": PROMPT}]
                )
            assert caught.value.code == "model_not_found"
        assert client.models.retrieve("mdagents/debate").id == "mdagents/debate"
    assert names[:2] == ["mdagents/adaptive", "mdagents/my_team.py"]
    assert {"mdagents/basic", "mdagents/debate"} <= set(names)
    assert own.choices[0].message.content == "I like B.\n\nAnswer: B"
    assert own.usage is not None
    assert own.usage.total_tokens == 0


def test_a_cached_question_is_paid_for_once(provider: FakeProvider) -> None:
    with serving(cache="on") as served:
        first, second = served.ask().json(), served.ask().json()
        other = served.ask(seed=7).json()
        assert served.service.in_progress == 0
    assert first["usage"] == second["usage"]
    calls = len(provider.calls)
    assert calls == first["mdagents"]["calls"] + other["mdagents"]["calls"]
    assert first["mdagents"]["ignored"] == []


def test_the_form_of_the_answer_follows_the_prompt(provider: FakeProvider) -> None:
    decides(provider)
    endings = {
        f"{QUESTION}\n{OPTIONS}\n\nRespond with only the letter.": "C",
        f"{QUESTION}\n{OPTIONS.lower()}\nAnswer:": "c",
        f"{QUESTION}\n{OPTIONS}\n答案：": "C",
        f"{QUESTION}\n{OPTIONS}\nAnswer: (": "C",
        f"{QUESTION}\n{OPTIONS}\n\nPut your final answer within \\boxed{{}}.": "\n\n\\boxed{C}",
        f"{QUESTION}\n{OPTIONS}\nAnswer: Let's think step by step.": "\n\nThe answer is (C).",
        f"{QUESTION}\n{OPTIONS}\nAnswer: Let's think step by step:": "\n\nThe answer is (C).",
        f"{QUESTION}\n{OPTIONS}\nAnswer with explanation:": "\n\nAnswer: C",
        f"{QUESTION}\n{OPTIONS}": "\n\nAnswer: C",
        INSPECT.replace("entire content", "last line"): "\n\nANSWER: C",
        # The prompt of modelscope/evalscope for one answer.
        INSPECT.replace("$LETTER", "[LETTER]").replace(
            "where LETTER", "where [LETTER]"
        ): "ANSWER: C",
        f"Reply ONLY with tags: <answer> A/B/C/D </answer>\n{QUESTION}\n{OPTIONS}": (
            "<answer>C</answer>"
        ),
        f"{QUESTION}\n{OPTIONS}\n\nThink, then give your answer as <answer>X</answer>.": (
            "\n\n<answer>C</answer>"
        ),
        f"{QUESTION}\n{OPTIONS}\n\nPut \\boxed{{X}} inside <answer></answer>.": (
            "\n\n<answer>\\boxed{C}</answer>"
        ),
        # Steven-Yiran/medical-gpt-interpretability
        "Output a single option from the given options as the final answer. You are strongly "
        "required to follow the specified output format; conclude your response with the phrase "
        f'"the answer is ([option_id]) [answer_string]".\n\n{QUESTION}\n{OPTIONS}': (
            "\n\nthe answer is (C) Ascorbic acid"
        ),
        'Conclude your response with the phrase "Answer: ([option_id])".\n\n'
        f"{QUESTION}\n{OPTIONS}": "\n\nAnswer: (C)",
    }
    with serving() as served:
        for prompt, ending in endings.items():
            content = served.ask(prompt).json()["choices"][0]["message"]["content"]
            assert content.endswith(ending), prompt
            assert content == ending or ending.startswith("\n\n")
        stopped = served.ask(f"{QUESTION}\n{OPTIONS}", stop=["\n"]).json()
    assert stopped["choices"][0]["message"]["content"] == "Answer: C"


def test_a_picture_is_seen_and_an_address_is_not_fetched(provider: FakeProvider) -> None:
    file = io.BytesIO()
    Image.new("RGB", (64, 64), "red").save(file, "PNG")
    picture = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"

    def asked(url: str) -> dict[str, Any]:
        parts = [
            {"type": "text", "text": PROMPT},
            {"type": "image_url", "image_url": {"url": url}},
        ]
        return {"model": "mdagents/zero_shot", "messages": [{"role": "user", "content": parts}]}

    def told(url: str) -> dict[str, object]:
        body = asked(url)
        parts = [{"type": "text", "text": "See the slide."}, *body["messages"][0]["content"][1:]]
        plain = {"role": "user", "content": PROMPT}
        return body | {"messages": [{"role": "developer", "content": parts}, plain]}

    with serving() as served:
        seen = served.post(json=asked(picture))
        assert served.post(json=told(picture)).status_code == 200
        refused_there = served.post(json=told("https://x.org/a.png"))
        refused = [served.post(json=asked(url)) for url in ("https://x.org/a.png", "/etc/passwd")]
        broken = served.post(json=asked("data:image/png;base64,AAAA"))
    assert seen.status_code == 200, seen.text
    assert provider.calls[0].pictures
    assert provider.calls[1].pictures == provider.calls[0].pictures
    assert refused_there.status_code == 400
    assert [response.status_code for response in (*refused, broken)] == [400, 400, 400]
    assert {response.json()["error"]["code"] for response in refused} == {"invalid_image_url"}


def test_examples_are_left_out_and_named(provider: FakeProvider) -> None:
    shots = [
        {"role": "user", "content": "Question: Which bone?\nA. Femur\nB. Tibia\nAnswer:"},
        {"role": "assistant", "content": "B"},
        {"role": "user", "content": PROMPT},
    ]
    with serving() as served:
        made = served.post(json={"model": MODEL, "messages": shots, "max_tokens": 5}).json()
        (record,) = served.records()
    assert made["mdagents"]["ignored"] == ["max_tokens", "examples"]
    assert record["question"] == QUESTION
    assert "Femur" not in json.dumps([call.text for call in provider.calls])
