"""Requests of the two APIs, checked and reduced to what a team is asked."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mdagents.datasets.pictures.question_picture import QuestionPicture, given_pictures
from mdagents.datasets.question_prompts import PromptedQuestion, read_prompt, without_instructions
from mdagents.datasets.questions import SourceQuestion
from mdagents.runs.one_question import question_of
from mdagents.serve.answer_form import AnswerForm, form_of
from mdagents.serve.client_tasks import is_client_task
from mdagents.serve.errors import ApiError, invalid
from mdagents.serve.several_answers import asks_for_several
from mdagents.serve.structured import Filling, plan_filling
from mdagents_llm.errors import ConfigError

_IGNORED = frozenset(
    {
        "frequency_penalty", "function_call", "include", "max_completion_tokens",
        "max_output_tokens", "max_tokens", "max_tool_calls", "metadata", "min_p",
        "parallel_tool_calls", "prediction", "presence_penalty", "prompt_cache_key",
        "prompt_cache_retention", "reasoning", "reasoning_effort", "repetition_penalty",
        "safety_identifier", "service_tier", "store", "stream_options", "temperature",
        "tool_choice", "top_k", "top_p", "truncation", "user", "verbosity",
    }
)  # fmt: skip
"""Parameters that change nothing, and are named in the response: a team has its own settings."""
_WHY = {
    "logprobs": "a team has no probabilities of tokens; use a task that generates text",
    "top_logprobs": "a team has no probabilities of tokens; use a task that generates text",
    "logit_bias": "a team has no tokens to bias",
    "tools": "a team calls no tools; for a form of the answer use response_format",
    "functions": "a team calls no tools; for a form of the answer use response_format",
    "background": "responses are not kept, so none can be collected later",
    "previous_response_id": "responses are not kept; send the whole question",
    "conversation": "conversations are not kept; send the whole question",
}
_MOST_TEXT = 1_000_000
"""Maximum number of characters of all messages: ten times those of one question."""
_ASSISTANT = re.compile(r"you are an? [\w ,-]{0,40}assistant\.?", re.IGNORECASE)
"""A system prompt that says nothing about the question."""
_NO_OPTIONS = (
    "the prompt lists no options, and a team decides between options: write each on a line of its "
    "own, as in 'A. Iron' or 'B) Zinc'"
)

Body = TypeVar("Body", bound=BaseModel)
Text = Annotated[str, Field(max_length=_MOST_TEXT)]


@dataclass(frozen=True, slots=True)
class Ask:
    """What a request asks of a team."""

    model: str
    """Name of the team, as the client gave it."""
    question: SourceQuestion
    """Question; its id is not the client's."""
    marks: Mapping[str, str]
    """Letter of an option -> the same as the prompt writes it: `a` for `A`."""
    form: AnswerForm
    filling: Filling | None
    """How the client's schema is filled; None without one."""
    stream: bool
    include_usage: bool
    """Whether the last chunk of a stream has the usage."""
    seed: int | None
    stop: Sequence[str]
    ignored: Sequence[str]
    """Parameters and parts of the prompt that were left out, for the response."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation."""

    role: str
    text: str
    images: Sequence[str] = ()
    """Data URIs."""


class _Body(BaseModel):
    model_config = ConfigDict(extra="allow")

    model: Annotated[str, Field(max_length=200)]
    stream: bool | None = None

    def ignored(self) -> list[str]:
        """Return the parameters that are ignored.

        Raises:
            ApiError: A parameter is not supported.
        """
        found = []
        for name, value in (self.model_extra or {}).items():
            if name in _IGNORED:
                found += [name] if value is not None else []
            elif value not in (None, False, 0, "", [], {}):
                why = _WHY.get(name, "this server does not know it")
                raise invalid(f"{name} is not supported: {why}", name, "unsupported_parameter")
        return sorted(found)


class _Message(BaseModel):
    model_config = ConfigDict(extra="allow")

    role: str
    content: Text | list[dict[str, Any]] | None = None


class _StreamOptions(BaseModel):
    include_usage: bool | None = None


class _ChatBody(_Body):
    messages: Annotated[list[_Message], Field(min_length=1, max_length=500)]
    stream_options: _StreamOptions | None = None
    response_format: dict[str, Any] | None = None
    n: int | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    stop: Text | Annotated[list[Text], Field(max_length=16)] | None = None
    modalities: list[str] | None = None


class _Format(BaseModel):
    model_config = ConfigDict(extra="allow")

    format: dict[str, Any] | None = None


class _ResponsesBody(_Body):
    input: Text | Annotated[list[dict[str, Any]], Field(min_length=1, max_length=500)]
    instructions: Text | None = None
    text: _Format | None = None


def read_chat(body: Mapping[str, Any]) -> Ask:
    """Return what a body of `/v1/chat/completions` asks.

    Raises:
        ApiError: The body is not valid, or asks for something that a team cannot do.
    """
    read = _validated(_ChatBody, body)
    ignored = read.ignored()
    if read.n not in (None, 1):
        raise invalid("n must be 1: a team gives one answer", "n")
    if read.modalities not in (None, ["text"]):
        raise invalid("modalities must be ['text']", "modalities", "unsupported_parameter")
    turns = [_turn(message) for message in read.messages]
    wrapped = read.response_format or {}
    named = wrapped.get("json_schema")
    schema = named.get("schema") if isinstance(named, dict) else None
    stop = [one for one in ([read.stop] if isinstance(read.stop, str) else read.stop or []) if one]
    has_schema = _kind_of(wrapped, schema, "response_format")
    if has_schema and stop:  # an object that is cut off is none
        ignored = sorted([*ignored, "stop"])
    ask = _asked(read, turns, ignored, has_schema, schema)
    cuts = (one for one in stop if ask.form.is_cut_by(one, ask.marks.values()))
    if ask.filling is None and (cut := next(cuts, None)):
        raise invalid(f"stop {cut!r:.40} would cut the letter off the answer", "stop")
    usage = bool(read.stream_options and read.stream_options.include_usage)
    return replace(ask, include_usage=usage, seed=read.seed, stop=stop)


def read_responses(body: Mapping[str, Any]) -> Ask:
    """Return what a body of `/v1/responses` asks.

    Raises:
        ApiError: The body is not valid, or asks for something that a team cannot do.
    """
    read = _validated(_ResponsesBody, body)
    ignored = read.ignored()
    turns = (
        [Turn("user", read.input)]
        if isinstance(read.input, str)
        else [turn for place, item in enumerate(read.input) for turn in _turns_of(item, place)]
    )
    if read.instructions:
        turns.insert(0, Turn("system", read.instructions))
    wrapped = (read.text.format if read.text else None) or {}
    schema = wrapped.get("schema")
    return _asked(read, turns, ignored, _kind_of(wrapped, schema, "text.format"), schema)


def _validated(kind: type[Body], body: Mapping[str, Any], within: str = "") -> Body:
    try:
        return kind.model_validate(body)
    except ValidationError as error:
        # Of a value that may have several types, the error that lies deepest is of the type it has.
        errors = error.errors(include_url=False, include_input=False)
        first = max(errors, key=lambda one: (len(one["loc"]), one["type"] != "string_type"))
        places = [str(part) for part in first["loc"] if not _IS_TYPE.search(str(part))]
        param = ".".join([within, *places] if within else places)
        may_be_text = any(one["type"] == "string_type" for one in errors)
        is_neither = first["type"] == "list_type" and may_be_text
        what = "Input should be a text or a list" if is_neither else first["msg"]
        raise invalid(f"{param}: {what}", param) from None


_IS_TYPE = re.compile(r"\[|-str\Z")  # in the place of an error: `list[dict[str,any]]`


def _turns_of(item: Mapping[str, Any], place: int) -> list[Turn]:
    """Return the turn of an item of `input`; none for reasoning, which the server itself sends."""
    kind = item.get("type", "message")
    if kind == "reasoning":
        return []
    if kind != "message":
        raise invalid(f"an item of input is of type {kind!r:.40}; a team reads messages", "input")
    return [_turn(_validated(_Message, item, f"input.{place}"))]


def _kind_of(wrapped: Mapping[str, Any], schema: object, name: str) -> bool:
    """Return whether an answer in the form of a schema is asked for.

    Raises:
        ApiError: Another form is asked for, or the schema is missing.
    """
    match wrapped.get("type", "text"):
        case "text":
            return False
        case "json_schema" if isinstance(schema, dict):
            return True
        case "json_schema":
            raise invalid(f"{name} has no schema", name)
        case "json_object":
            raise invalid(f"{name} json_object names no fields; give a json_schema", name)
        case other:
            raise invalid(f"{name} is {other!r:.40} but must be text or json_schema", name)


def _turn(message: _Message) -> Turn:
    if isinstance(message.content, str):
        return Turn(message.role, message.content)
    if message.role == "assistant":  # is left out, whatever its parts are
        return Turn(message.role, "")
    texts, images = [], []
    for part in message.content or []:
        match part:
            case {"type": "text" | "input_text" | "output_text", "text": str(text)}:
                texts.append(text)
            case {"type": "image_url", "image_url": {"url": str(uri)}}:
                images.append(uri)
            case {"type": "image_url" | "input_image", "image_url": str(uri)}:
                images.append(uri)
            case {"type": "text" | "input_text" | "output_text" | "image_url" | "input_image"}:
                what = "url" if "image" in part["type"] else "text"
                raise invalid(f"a content part of type {part['type']} has no {what}", "messages")
            case _:
                kind = str(part.get("type"))[:40]
                raise invalid(
                    f"a content part is of type {kind!r}; a team reads text and image_url "
                    "with a data URI",
                    "messages",
                )
    return Turn(message.role, "\n".join(texts), images)


def _asked(
    body: _Body, turns: Sequence[Turn], ignored: list[str], has_schema: bool, schema: object
) -> Ask:
    if (length := sum(len(turn.text) for turn in turns)) > _MOST_TEXT:
        raise invalid(
            f"the messages have {length:,} characters, at most {_MOST_TEXT:,} may be", "messages"
        )
    system, asked, told = _conversation(turns)
    if is_client_task(system, asked.text):
        raise invalid(
            "the prompt is about a chat (a title, tags, further questions), which a team does not "
            "write: switch such tasks off in the client",
            "messages",
        )
    prompt = read_prompt(asked.text)
    if prompt is None:
        raise invalid(_NO_OPTIONS, "messages", "no_options")
    question = _question(prompt, system, asked.images)
    # After that for its length; what an example asks is not asked of the team.
    parts = "\n".join([prompt.lead, prompt.text, prompt.instructions, prompt.ending])
    check_is_for_one(parts, prompt.options.values(), "messages", system)
    if told is not None or prompt.has_examples:
        ignored = [*ignored, "examples"]
    return Ask(
        model=body.model,
        question=question,
        marks={
            letter: letter.lower() if prompt.is_lowercase else letter for letter in prompt.options
        },
        form=form_of(f"{system}\n{told or ''}\n{prompt.instructions}", prompt.ending, prompt.text),
        filling=plan_filling(schema, question.options) if has_schema else None,
        stream=bool(body.stream),
        include_usage=False,
        seed=None,
        stop=(),
        ignored=ignored,
    )


def _conversation(turns: Sequence[Turn]) -> tuple[str, Turn, str | None]:
    """Return (system text, turn that asks, instructions of the first solved example or None).

    The pictures of the turn that asks begin with those of the system.
    """
    system, rest = [], []
    images: list[str] = []
    for turn in turns:
        if turn.role in ("system", "developer"):
            system.append(turn.text.strip())
            images += turn.images
        elif turn.role in ("user", "assistant"):
            rest.append(turn)
        else:
            raise invalid(f"a message has the role {turn.role!r:.40}", "messages")
    if not rest or rest[-1].role != "user":
        raise invalid("the last message must be the user's", "messages")
    answered = max((n for n, turn in enumerate(rest) if turn.role == "assistant"), default=-1)
    told = None if answered < 0 else ""
    for turn in rest[:answered]:
        if turn.role != "user":
            continue
        example = read_prompt(turn.text)
        if example is None:
            raise invalid(
                "a team answers one question and holds no conversation: send all of it in one "
                "message of the user",
                "messages",
            )
        told = told or example.instructions
    last = rest[answered + 1 :]
    asked = Turn(
        "user",
        "\n\n".join(turn.text for turn in last),
        [*images, *(image for turn in last for image in turn.images)],
    )
    return "\n\n".join(filter(None, system)), asked, told


def _question(prompt: PromptedQuestion, system: str, images: Sequence[str]) -> SourceQuestion:
    if any(not image.lower().startswith("data:") for image in images):
        raise invalid(
            "pictures are not fetched from addresses; send data:image/…;base64,…",
            "messages",
            "invalid_image_url",
        )
    told = "" if _ASSISTANT.fullmatch(system) else without_instructions(system)[0]
    try:
        pictures: tuple[QuestionPicture, ...] = given_pictures(images)
        question = question_of("\n\n".join(filter(None, [told, prompt.text])), prompt.options)
    except ConfigError as error:
        raise invalid(str(error), "messages", "invalid_question") from None
    return replace(all_shown(question, "messages"), pictures=pictures)


def check_is_for_one(text: str, options: Collection[str], param: str, system: str = "") -> None:
    """Check that a question asks for one option.

    Args:
        text: Text of the question and of its instructions.
        options: Texts of the options.
        param: Parameter of the request that holds the question.
        system: Text of the system prompt.

    Raises:
        ApiError: It asks for several options.
    """
    if asks_for_several(text, options, system):
        raise invalid("the prompt asks for several letters; a team decides for one", param)


def all_shown(question: SourceQuestion, param: str) -> SourceQuestion:
    """Return a question whose letters are those of the client: none of its options is left out.

    Args:
        question: Question.
        param: Parameter of the request that holds the options.

    Raises:
        ApiError: An option is empty or n/a, so that later ones have other letters.
    """
    if hidden := [letter for letter in question.hidden if letter < max(question.options)]:
        raise invalid(f"option {hidden[0]} is empty or n/a; leave it out", param)
    return question


def team_of(model: str) -> str:
    """Return the name of a team without `mdagents/`, which some clients leave out."""
    return model.removeprefix("mdagents/")


def no_model(model: str, teams: Sequence[str], why: str = "") -> ApiError:
    """Return the error for a model that is not served."""
    reason = f": {why}" if why else f"; there are {', '.join(f'mdagents/{t}' for t in teams)}"
    return ApiError(404, f"there is no model '{model}'{reason}", "model_not_found", "model")
