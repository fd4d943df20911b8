"""Questions as samples of Inspect, and samples as questions."""

from __future__ import annotations

import uuid
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, ChatMessageUser, ContentImage, ContentText
from inspect_ai.solver import TaskState

from mdagents.datasets.dataset import Dataset
from mdagents.datasets.pictures.question_picture import QuestionPicture, given_pictures
from mdagents.datasets.question_prompts import read_prompt
from mdagents.datasets.questions import LETTERS, SourceQuestion
from mdagents.runs.config import RunConfig
from mdagents.runs.flags.picture_flags import Images
from mdagents.runs.one_question import question_of
from mdagents.runs.plan import select
from mdagents_llm.errors import ConfigError

_OURS = "mdagents"
"""Key of the metadata of a sample that is made here."""
_KINDS = {b"\x89PNG": "image/png", b"\xff\xd8": "image/jpeg", b"GIF8": "image/gif"}
_OTHER = "application/octet-stream"
"""Media type of the file of a picture that is none of `_KINDS`; a team reads it all the same."""


def samples_of(dataset: Dataset, config: RunConfig) -> MemoryDataset:
    """Return the questions that a configuration selects, with their options in source order.

    A picture is named by its file if it has one of its own, which Inspect reads when its sample
    starts.

    Raises:
        ConfigError: An id does not exist, or no question is left.
    """
    samples = [
        _sample(dataset.load(entry), dataset.name, config) for entry in select(dataset, config)
    ]
    return MemoryDataset(samples, name=dataset.name, location=dataset.path.name)


def _sample(source: SourceQuestion, dataset: str, config: RunConfig) -> Sample:
    pictures = () if config.images is Images.DROP else source.pictures
    places = list(source.options)
    about = [
        {"caption": one.caption, "option": _letter(places.index(one.option)) if one.option else ""}
        for one in pictures
    ]
    given: str | list[ChatMessage] = source.text
    if pictures:
        images = [ContentImage(image=_address(picture)) for picture in pictures]
        given = [ChatMessageUser(content=[*images, ContentText(text=source.text)])]
    return Sample(
        id=source.id,
        input=given,
        choices=list(source.options.values()),
        target=_letter(places.index(source.gold)),
        metadata={**source.fields, _OURS: {"dataset": dataset, "pictures": about}},
    )


def _address(picture: QuestionPicture) -> str:
    if picture.file is not None and not picture.member:
        return str(picture.file.absolute())
    content = picture.read()
    kind = next((kind for start, kind in _KINDS.items() if content.startswith(start)), _OTHER)
    return f"data:{kind};base64,{b64encode(content).decode()}"


def _letter(place: int) -> str:
    return LETTERS[place]


def question_in(state: TaskState) -> SourceQuestion:
    """Return the question of a sample; its letters are those of the choices, from A.

    A sample without choices is read as a prompt that lists its options.

    Raises:
        ConfigError: The sample has no options, too many, or a picture that is not in it.
    """
    id_ = str(state.sample_id)
    texts, images = _parts(state.input_text, state.input)
    if not len(state.choices):
        return replace(_prompted(texts, images), id=id_)
    options = [choice.value for choice in state.choices]
    gold = state.target.text if len(state.target) == 1 else ""
    ours = (state.metadata or {}).get(_OURS)
    if not isinstance(ours, Mapping):
        gold = gold if gold in LETTERS[: len(options)] else ""
        return replace(question_of(texts, options, gold), id=id_, pictures=given_pictures(images))
    letters = dict(zip(LETTERS, options, strict=False))
    pictures = tuple(
        replace(picture, caption=str(about["caption"]), option=str(about["option"]))
        for picture, about in zip(given_pictures(images), ours["pictures"], strict=True)
    )
    return SourceQuestion(id_, texts, letters, gold, pictures=pictures)


def question_said(messages: Sequence[ChatMessage]) -> SourceQuestion:
    """Return the question of a conversation: the last message of the user, with its options.

    Raises:
        ConfigError: There is no such message, or it lists no options.
    """
    said = next((one for one in reversed(messages) if isinstance(one, ChatMessageUser)), None)
    if said is None:
        raise ConfigError("a team answers a message of the user, and there is none")
    return replace(_prompted(*_parts(said.text, [said])), id=uuid.uuid4().hex)


def _prompted(text: str, images: Sequence[str]) -> SourceQuestion:
    prompt = read_prompt(text)
    if prompt is None:
        raise ConfigError(
            "the sample has no choices and its text lists no options, and a team decides between "
            "options: write each on a line of its own, as in 'A. Iron' or 'B) Zinc'"
        )
    return replace(question_of(prompt.text, prompt.options), pictures=given_pictures(images))


def _parts(text: str, given: str | Sequence[ChatMessage]) -> tuple[str, list[str]]:
    """Return (text, addresses of images) of the input of a sample."""
    return text, [] if isinstance(given, str) else list(_images(given))


def _images(messages: Sequence[ChatMessage]) -> Iterator[str]:
    for message in messages:
        parts: Any = message.content
        if not isinstance(parts, str):
            yield from (part.image for part in parts if isinstance(part, ContentImage))
