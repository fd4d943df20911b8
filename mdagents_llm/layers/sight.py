"""Refuses pictures that a model cannot take, before anything is sent."""

from __future__ import annotations

from mdagents_llm.chat import ChatModel, ChatReply, ChatRequest, OnText
from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.model_configs import ModelInfo, PictureLimits
from mdagents_llm.pictures import Picture

_MANY, _SIDE_OF_MANY = 20, 2_000
"""Number of pictures above which Anthropic lowers its limit of pixels, to this one."""


class Sight:
    """Layer that checks the pictures of a request against the limits of its endpoint.

    A model without eyes ends the run (`IMAGES_REFUSED`); too many or too large pictures cost their
    question (`BAD_REQUEST`). No picture is left out.

    Args:
        inner: Model to call.
        info: Properties of the model.
        limits: Limits of its endpoint.
        must_know: Whether the model must be known to take pictures, since its provider is of
            another package and may ignore them.
    """

    def __init__(
        self, inner: ChatModel, info: ModelInfo, limits: PictureLimits, *, must_know: bool = False
    ) -> None:
        self._inner = inner
        self._takes_images = info.takes_images
        self._limits = limits
        self._must_know = must_know

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer one request.

        Raises:
            ProviderError: The model cannot take its pictures.
        """
        pictures = [one for message in request.messages for one in message.pictures]
        if pictures:
            self._check_model()
            if any(one.pictures and one.role != "user" for one in request.messages):
                raise _too_much("a picture outside a user's message")
            _check(pictures, self._limits)
        return await self._inner.generate(request, on_text)

    def _check_model(self) -> None:
        if self._takes_images is False:
            raise _blind("it is listed as a model for text only")
        if self._must_know and not self._takes_images:
            raise _blind("its package does not say that it does (ModelInfo.takes_images)")


def _check(pictures: list[Picture], limits: PictureLimits) -> None:
    if limits.most is not None and len(pictures) > limits.most:
        raise _too_much(f"{len(pictures)} pictures; the endpoint takes {limits.most} in a request")
    sizes = [len(picture.base64) for picture in pictures]
    if limits.most_bytes is not None and max(sizes) > limits.most_bytes:
        raise _too_much(f"a picture of {max(sizes):,} bytes in Base64; the endpoint takes "
                        f"{limits.most_bytes:,}; lower --image-max-pixels")  # fmt: skip
    together = limits.most_bytes_together
    if together is not None and sum(sizes) > together:
        raise _too_much(f"pictures of {sum(sizes):,} bytes in Base64; the endpoint takes "
                        f"{together:,} in a request; lower --image-max-pixels")  # fmt: skip
    side = max(max(picture.width, picture.height) for picture in pictures)
    longest = limits.longest_side
    if longest is not None and len(pictures) > _MANY:
        longest = min(longest, _SIDE_OF_MANY)
    if longest is not None and side > longest:
        raise _too_much(f"a picture of {side:,} pixels a side; the endpoint takes {longest:,}; "
                        "lower --image-max-pixels")  # fmt: skip


def _blind(why: str) -> ProviderError:
    return ProviderError(why, kind=ErrorKind.IMAGES_REFUSED)


def _too_much(what: str) -> ProviderError:
    return ProviderError(f"not sent: {what}", kind=ErrorKind.BAD_REQUEST)
