"""Pictures that an endpoint is known not to take are refused before anything is sent."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from mdagents_llm.chat import ChatMessage, ChatRequest
from mdagents_llm.endpoints import ModelSpec, Runtime
from mdagents_llm.errors import EndpointDown, ErrorKind, ProviderError
from mdagents_llm.layers.sight import Sight
from mdagents_llm.llm_registry import ModelRegistry
from mdagents_llm.model_configs import ModelInfo, PictureLimits, ProviderInfo, load_model_configs
from mdagents_llm.pictures import Picture
from tests.fake_provider import FakeProvider
from tests.support.function_model import FunctionModel, text_reply
from tests.support.pictures import picture_of


def asking(*pictures: Picture, role: Any = "user") -> ChatRequest:
    """Return a request that shows pictures."""
    return ChatRequest((ChatMessage(role, "What is it?", pictures=pictures),), max_tokens=50)


def sized(characters: int, side: int = 10) -> Picture:
    """Return a picture of a size."""
    return Picture("A" * characters, "image/png", side, 5, "0" * 64)


@pytest.mark.parametrize(
    ("limits", "pictures"),
    [
        (PictureLimits(most=2), [sized(4)] * 3),
        (PictureLimits(most_bytes=100), [sized(104)]),
        (PictureLimits(most_bytes_together=100), [sized(52)] * 2),
        (PictureLimits(longest_side=8000), [sized(4, 8001)]),
        (PictureLimits(longest_side=8000), [sized(4, 2001)] * 21),
    ],
)
async def test_a_limit_costs_the_question_alone(
    limits: PictureLimits, pictures: list[Picture]
) -> None:
    """One line says what is too much; one picture less, or a smaller one, is sent."""
    model = FunctionModel(lambda request: text_reply("yes"))
    sight = Sight(model, ModelInfo(), limits)
    with pytest.raises(ProviderError, match=r"not sent: .*takes") as caught:
        await sight.generate(asking(*pictures))
    assert caught.value.kind is ErrorKind.BAD_REQUEST
    assert not caught.value.retryable
    assert (await sight.generate(asking(sized(4)))).text == "yes"


async def test_no_endpoint_takes_a_picture_outside_a_users_message() -> None:
    """Some would drop it in silence."""
    sight = Sight(FunctionModel(lambda request: text_reply("")), ModelInfo(), PictureLimits())
    with pytest.raises(ProviderError, match="outside a user's message"):
        await sight.generate(asking(sized(4), role="system"))


@pytest.mark.parametrize("model", ["groq/openai/gpt-oss-120b", "openai/gpt-3.5-turbo"])
async def test_a_text_only_model_is_not_asked(
    provider: FakeProvider, make_runtime: Callable[..., Runtime], model: str
) -> None:
    """The run ends before a call; without pictures the model answers."""
    name, _, rest = model.partition("/")
    async with aclosing(ModelRegistry(make_runtime())) as registry:
        built = registry.model(ModelSpec(name, rest, provider.openai_base_url))
        assert (await built.generate(asking())).text
        with pytest.raises(EndpointDown, match=r"takes no pictures.*text only.*--images drop"):
            await built.generate(asking(picture_of("amber")))
    assert len(provider.calls) == 1


async def test_a_provider_of_another_package_must_say_that_it_takes_them(
    make_runtime: Callable[..., Runtime],
) -> None:
    """It may be older than pictures, and would ignore them."""

    class Client:
        def __init__(self, endpoint: object) -> None: ...

        def model(self, name: str, info: ModelInfo) -> FunctionModel:
            return FunctionModel(lambda request: text_reply("yes"))

        async def aclose(self) -> None: ...

    infos = {"old": ModelInfo(), "new": ModelInfo(takes_images=True)}
    own = ProviderInfo(wire=Client, base_url="http://127.0.0.1:1", needs_key=False, models=infos)
    configs = load_model_configs()
    runtime = make_runtime(configs=replace(configs, providers={**configs.providers, "own": own}))
    async with aclosing(ModelRegistry(runtime)) as registry:
        request = asking(picture_of("amber"))
        assert (await registry.model(ModelSpec("own", "new")).generate(request)).text == "yes"
        with pytest.raises(EndpointDown, match="takes_images"):
            await registry.model(ModelSpec("own", "old")).generate(request)


def test_the_limits_of_the_file_are_read() -> None:
    """They are the vendors' own numbers."""
    providers = load_model_configs().providers
    assert providers["groq"].pictures.most == 5
    assert providers["anthropic"].pictures.most_bytes == 5 * 2**20
    assert providers["vllm"].pictures == PictureLimits()
