"""What endpoints say of pictures: a model without eyes, a bad picture, or something else."""

from __future__ import annotations

import pytest

from mdagents_llm.errors import ErrorKind
from mdagents_llm.providers.error_text import masked_line
from mdagents_llm.providers.http_errors import status_error

BLIND = [
    (404, "No endpoints found that support image input"),
    (500, "image input is not supported - hint: if this is unexpected, you may need to provide the "
     "mmproj"),
    (500, "image input is not supported by this server"),
    (500, 'Failed to parse messages: Unsupported content part type: "image_url"; messages = [\n'
     '  {\n    "role": "user",\n    "content": [\n      {'),
    (400, "ward-7b is not a multimodal model None"),
    (400, "At most 0 image(s) may be provided in one request."),
    (400, "Failed to deserialize the JSON body into the target type: messages[7]: unknown variant "
     "`image_url`, expected `text` at line 1 column 114708"),
    (422, "Failed to deserialize the JSON body into the target type: messages[2]: invalid type: "
     "sequence, expected a string at line 1 column 2901"),
    (400, "Failed to deserialize the JSON body into the target type: messages[1]: data did not "
     "match any variant of untagged enum ChatCompletionRequestContent at line 1 column 20447"),
    (400, "this model does not support image input (ref: b8bd630e)"),
    (500, "this model is missing data required for image input"),
    (400, "Model does not support images. Please use a model that does."),
    (400, "Invalid content type. image_url is only supported by certain models."),
    (400, "Invalid value: 'input_image'. Supported values are: 'input_text'."),
    (400, "messages[0].content must be a string"),
    (400, "Image input is not enabled for this model"),
    (400, "Image input modality is not enabled for models/gemini-old"),
    (422, "Input should be 'text'"),
    (None, "This model doesn't support the image content block that you provided."),
    (400, "Vision is not supported by this deployment"),
]  # fmt: skip
"""Refusals of models that take no pictures, in the shapes of public reports."""
BAD = [
    (400, "messages.2.content.0.image.source.base64: image exceeds 5 MB maximum: 8259148 bytes > "
     "5242880 bytes"),
    (400, "messages.7.content.2.image.source.base64.data: At least one of the image dimensions "
     "exceed max allowed size: 8000 pixels"),
    (400, "messages.19.content.27.image.source.base64.data: At least one of the image dimensions "
     "exceed max allowed size for many-image requests: 2000 pixels"),
    (400, "messages.118.content.4.image.source.base64: image cannot be empty"),
    (400, "messages.6.content.5.image.source.base64.data: Image does not match the provided media "
     "type image/png"),
    (400, "Could not process image"),
    (400, "You uploaded an unsupported image. Please make sure your image has of one the following "
     "formats: ['png', 'jpeg', 'gif', 'webp']."),
    (400, "You uploaded an unsupported image. Please make sure your image is valid."),
    (400, "Unable to process input image. Please retry or report in a guide"),
    (400, "Provided image is not valid"),
    (400, "At most 5 image(s) may be provided in one request."),
    (500, "Failed to load image or audio file"),
    (400, "image format is not supported: image/bmp"),
    (500, "cannot decode image"),
]  # fmt: skip
"""Refusals of one picture."""
OTHER = [
    (400, "missing required Copilot-Vision-Request header for vision requests",
     ErrorKind.BAD_REQUEST),
    (400, "Invalid API parameter, please check the documentation.", ErrorKind.BAD_REQUEST),
    (429, "Rate limit reached for images per minute", ErrorKind.RATE_LIMIT),
    (401, "Incorrect API key provided; vision is not enabled", ErrorKind.AUTH),
    (404, "The model `ward-7b` does not exist", ErrorKind.MODEL_NOT_FOUND),
    (404, "No endpoints found for ward/ward-7b", ErrorKind.MODEL_NOT_FOUND),
    (500, "Internal server error", ErrorKind.SERVER),
    (503, "image service unavailable", ErrorKind.OVERLOADED),
    (400, "This model's maximum context length is 8192 tokens, however your messages with images "
     "resulted in 9000 tokens", ErrorKind.CONTEXT_LENGTH),
]  # fmt: skip
"""Errors of requests with pictures that are about something else."""


def test_a_refusal_of_all_pictures_is_told_from_that_of_one() -> None:
    """The first ends the run, the second costs its question and is never retried."""
    for status, said in BLIND:
        error = status_error("a host", status, said, asked_with_pictures=True)
        assert error.kind is ErrorKind.IMAGES_REFUSED, said
    for status, said in BAD:
        error = status_error("a host", status, said, asked_with_pictures=True)
        assert error.kind is ErrorKind.BAD_REQUEST, said
    for status, said, kind in OTHER:
        assert status_error("a host", status, said, asked_with_pictures=True).kind is kind, said


def test_without_pictures_the_words_mean_nothing() -> None:
    """A text-only request is classified as it always was."""
    kinds = {status_error("a host", status, said).kind for status, said in BLIND + BAD}
    assert ErrorKind.IMAGES_REFUSED not in kinds


@pytest.mark.parametrize("before", ["", "data:image/png;base64,"])
def test_an_echo_of_a_picture_is_not_logged(before: str) -> None:
    """An error that repeats the picture would put a patient's image into the ledger."""
    content = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB" * 20
    said = f'Base64 decoding failed for "{before}{content}"'
    assert masked_line(said) == 'Base64 decoding failed for "[picture]"'
    assert content[:16] not in str(status_error("a host", 400, said, asked_with_pictures=True))
