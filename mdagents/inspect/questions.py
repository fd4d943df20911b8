"""Questions as samples of Inspect, and samples as questions."""

from __future__ import annotations

import uuid
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, ChatMessageUser, ContentImage, ContentText
from inspect_ai.scorer import Target
from inspect_ai.solver import TaskState

from mdagents.datasets.dataset import SAMPLE_NAME, Dataset, open_dataset
from mdagents.datasets.pictures.question_picture import QuestionPicture, given_pictures
from mdagents.datasets.question_prompts import read_prompt
from mdagents.datasets.questions import LETTERS, SourceQuestion
from mdagents.datasets.sources import KNOWN
from mdagents.inspect.names import PACKAGE
from mdagents.runs.config import RunConfig
from mdagents.runs.flags.picture_flags import Images
from mdagents.runs.one_question import question_of
from mdagents.runs.selecting import select
from mdagents.scoring.fields import gold_of
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


def dataset_of(config: RunConfig) -> Dataset:
    """Return the data set of a configuration, never a sample in place of one that is not there.

    Raises:
        ConfigError: The data set does not exist, or was not downloaded.
    """
    dataset = open_dataset(config.dataset, config.data_dir, config.split)
    if config.dataset.lower() in KNOWN and dataset.name.startswith(SAMPLE_NAME):
        raise ConfigError(
            f"{config.dataset} is not there: python -m mdagents data download {config.dataset} "
            f"fetches it, or use the task {PACKAGE}/{dataset.name}"
        )
    return dataset


def _sample(source: SourceQuestion, dataset: str, config: RunConfig) -> Sample:
    pictures = () if config.images is Images.DROP else source.pictures
    places = list(source.options)
    about = [
        {"caption": one.caption, "option": LETTERS[places.index(one.option)] if one.option else ""}
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
        target=LETTERS[places.index(source.gold)],
        metadata={**source.fields, _OURS: {"dataset": dataset, "pictures": about}},
    )


def _address(picture: QuestionPicture) -> str:
    if picture.file is not None and not picture.member:
        return str(picture.file.absolute())
    content = picture.read()
    kind = next((kind for start, kind in _KINDS.items() if content.startswith(start)), _OTHER)
    return f"data:{kind};base64,{b64encode(content).decode()}"


def question_in(state: TaskState) -> SourceQuestion:
    """Return the question of a sample; its letters are those of the choices, from A.

    The question is the whole conversation so far, with what earlier solvers have added. A sample
    without choices is read as a prompt that lists its options.

    Raises:
        ConfigError: The sample has no options, too many, an empty one, or a picture that is not in
            it.
    """
    id_, images = str(state.sample_id), list(_images(state.messages))
    text = _conversation(state.messages)
    if not len(state.choices):
        prompted = _prompted(text, images)
        gold = _gold(state.target, prompted.options)
        return replace(prompted, id=id_, gold=gold)
    options = [choice.value for choice in state.choices]
    letters = dict(zip(LETTERS, options, strict=False))
    gold = _gold(state.target, letters)
    ours = _pictures_of((state.metadata or {}).get(_OURS))
    if ours is not None and len(ours) == len(images):
        pictures = tuple(
            replace(picture, caption=caption, option=option)
            for picture, (caption, option) in zip(given_pictures(images), ours, strict=True)
        )
        return SourceQuestion(id_, text, letters, gold, pictures=pictures)
    prompt = read_prompt(text)
    if prompt is not None and sorted(prompt.options.values()) == sorted(map(str.strip, options)):
        text = prompt.text  # it lists the choices, which would be shown a second time
    is_all = len(letters) == len(options)
    question = question_of(text, letters if is_all else options, gold)
    if empty := [letter for letter in question.hidden if letter < max(question.options)]:
        raise ConfigError(f"choice {empty[0]} is empty or n/a; leave it out")
    return replace(question, id=id_, pictures=given_pictures(images))


def _gold(target: Target, options: Mapping[str, str]) -> str:
    """Return the letter of a target, in any of the forms in which files have it; else empty."""
    return (gold_of(target.text, options) or "") if len(target) == 1 else ""


def _pictures_of(ours: Any) -> list[tuple[str, str]] | None:
    """Return (caption, option) of the pictures of a sample that was made here; None of others."""
    about = ours.get("pictures") if isinstance(ours, Mapping) else None
    if not isinstance(about, list) or not all(isinstance(one, Mapping) for one in about):
        return None
    return [(str(one.get("caption", "")), str(one.get("option", ""))) for one in about]


def question_said(messages: Sequence[ChatMessage]) -> SourceQuestion:
    """Return the question of a conversation: the last message of the user that lists options.

    Inspect itself adds messages of the user, such as the report of an agent that has ended.

    Raises:
        ConfigError: There is no such message.
    """
    said = [one for one in reversed(messages) if isinstance(one, ChatMessageUser)]
    if not said:
        raise ConfigError("there is no user message for the team to answer")
    with_options = next((one for one in said if read_prompt(one.text) is not None), said[0])
    question = _prompted(with_options.text, list(_images([with_options])))
    return replace(question, id=uuid.uuid4().hex)


def _prompted(text: str, images: Sequence[str]) -> SourceQuestion:
    prompt = read_prompt(text)
    if prompt is None:
        raise ConfigError(
            "the sample has no choices and its text lists no options, and a team decides between "
            "options: write each on a line of its own, as in 'A. Iron' or 'B) Zinc'"
        )
    return replace(question_of(prompt.text, prompt.options), pictures=given_pictures(images))


def _conversation(messages: Sequence[ChatMessage]) -> str:
    """Return the text of a conversation, with speakers where the model has spoken as well."""
    said = [one for one in messages if one.role != "tool" and one.text.strip()]
    named = any(one.role == "assistant" for one in said)
    return "\n\n".join(f"{one.role}: {one.text}" if named else one.text for one in said)


def _images(messages: Sequence[ChatMessage]) -> Iterator[str]:
    for message in messages:
        parts: Any = message.content
        if not isinstance(parts, str):
            yield from (part.image for part in parts if isinstance(part, ContentImage))
