"""Samples of an Inspect log, in `.json` or `.eval` format.

Source: `EvalSample` in https://inspect.aisi.org.uk/reference/inspect_ai.log.html, its migrations of
older logs, and logs written by inspect_ai 0.3.285.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mdagents.datasets.questions import LETTERS
from mdagents.scoring.fields import (
    Tokens,
    amount_of,
    count_of,
    entries_of,
    gold_of,
    object_of,
    options_of,
    sum_if_known,
)
from mdagents.scoring.forms.form import Form, Record
from mdagents.settings import Status

_REFUSED = "content_filter"
_CUT_OFF = ("max_tokens", "model_length", "length")
"""Values of `stop_reason` for a reply that reached a limit of tokens; `length` in old logs."""
_OF_THE_CACHE = ("input_tokens_cache_read", "input_tokens_cache_write")
_STATUSES = frozenset(status.value for status in Status)
_MARKS = {letter: re.compile(rf"^[ \t]*\(?{letter}[).:][ \t]+", re.MULTILINE) for letter in LETTERS}
"""Letter -> what is before the text of its option in a prompt."""
_MOST_PROMPTS = 20  # last messages of the user that are searched for the options
_INVALID = "invalidated in Inspect"


def _elements(record: Record) -> Sequence[Record]:
    metadata = object_of(record, "metadata")
    target, choices = record.get("target"), record.get("choices")
    if isinstance(choices, list) and len(choices) <= len(LETTERS):
        choices = dict(zip(LETTERS, choices, strict=False))  # by place, whatever they begin with
    status = _status(record, metadata)
    element: dict[str, Any] = {
        "question_id": record.get("id"),
        "epoch": record.get("epoch"),
        "question": _text(record.get("input")),
        "label": target[0] if isinstance(target, list) and len(target) == 1 else target,
        "options": choices,
        "response": _reply(object_of(record, "output")) or _text(record.get("output")),
        "difficulty": _level(record, metadata),
        **_spent(record, metadata),
        "status": status,
        "is_cut_off": _stop_reason(record) in _CUT_OFF,
        "error": _INVALID if record.get("invalidation") else _message(record.get("error")),
        "wall_seconds": record.get("total_time"),
    }
    read = _score(record, "choice").get("answer")
    if status is None and isinstance(read, str) and read in tuple(LETTERS):
        element["predicted"] = read  # by Inspect; a report counts where another letter is read here
    return (_in_order_shown(element, record),)


def _order_shown(record: Record, options: Mapping[str, str]) -> Mapping[str, str]:
    """Return letter in the prompt -> letter in the sample; empty where they are the same.

    Inspect's `multiple_choice(shuffle=True)` keeps the order of the sample in `choices` and
    `target`. It rewrites prompt and reply to that order if it could read the reply, so that the
    letters of any other reply are those of the prompt. A prompt that does not list exactly the
    options of the sample says nothing.
    """
    own = {text: letter for letter, text in options.items()}
    if len(own) < max(2, len(options)):
        return {}
    longest_first = sorted(own, key=len, reverse=True)
    messages = [m for m in entries_of(record, "messages") if m.get("role") == "user"]
    for message in reversed(messages[-_MOST_PROMPTS:]):
        prompt = _text(message.get("content"))
        shown: dict[str, str] = {}
        for letter in options:
            ends = [match.end() for match in _MARKS[letter].finditer(prompt)]
            text = next((t for t in longest_first if ends and prompt.startswith(t, ends[-1])), None)
            if text is not None:
                shown[letter] = own[text]
        if len(set(shown.values())) == len(options):
            return {} if all(letter == of for letter, of in shown.items()) else shown
    return {}


def _in_order_shown(element: Record, record: Record) -> Record:
    """Return an element with the letters of the prompt; see `_order_shown`."""
    options = options_of(element["options"]) or {}
    options = {letter: text.strip() for letter, text in options.items()}
    gold = gold_of(element["label"], options)
    shown = _order_shown(record, options) if gold else {}
    if not shown:
        return element
    letter_of = {of: letter for letter, of in shown.items()}
    changed: dict[str, Any] = {
        "options": {letter: options[of] for letter, of in shown.items()},
        "label": letter_of[str(gold)],
        "permutation": shown,
    }
    if "predicted" in element:
        changed["predicted"] = letter_of.get(element["predicted"])
    return {**element, **changed}


def _text(content: Any) -> str:
    """Return the text of one or more messages or message parts, without hidden reasoning."""
    if isinstance(content, list):
        return "\n".join(filter(None, map(_text, content)))
    if isinstance(content, dict) and content.get("type") != "reasoning":
        return _text(content.get("text", content.get("content")))
    return content if isinstance(content, str) else ""


def _reply(output: Mapping[str, Any]) -> str:
    """Return the model's last reply.

    `completion` is what Inspect scores: an agent appends its submitted answer to it.
    """
    completion = _text(output.get("completion"))
    choices = entries_of(output, "choices")
    if completion.strip() or not choices:
        return completion
    return _text(object_of(choices[0], "message").get("content"))


def _about(record: Record) -> Mapping[str, Any]:
    """Return what this program's score says of a sample; empty in another program's log."""
    return object_of(_score(record, "option"), "metadata")


def _level(record: Record, metadata: Mapping[str, Any]) -> Any:
    """Return the level of the team.

    In a log of Inspect's own, `difficulty` may be a field of the data set.
    """
    about = _about(record)
    is_exported = isinstance(metadata.get("case_id"), str)
    if "level" in about or not is_exported:
        return about.get("level")
    return metadata.get("difficulty")


def _spent(record: Record, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tokens of the team and, apart from them, of EXAID, if the log tells them apart."""
    noted = object_of(object_of(record, "store"), "TeamOutcome:tokens")
    if noted:
        return {"token_usage": noted.get("team"), "exaid": {"token_usage": noted.get("exaid")}}
    if isinstance(metadata.get("case_id"), str) and metadata.get("token_usage"):
        return {name: metadata.get(name) for name in ("token_usage", "exaid", "calls")}
    return {"token_usage": _usage(object_of(record, "model_usage"))}


def _is_refused(record: Record) -> bool:
    """Return whether the model refused in a field of its own, without a stop reason for it."""
    choices = entries_of(object_of(record, "output"), "choices")
    message = object_of(choices[0], "message") if choices else {}
    return any(part.get("refusal") is True for part in entries_of(message, "content"))


def _usage(by_model: Mapping[str, Any]) -> dict[str, Any]:
    """Sum the tokens and the cost of all models; a part that a model does not state is unknown.

    Input includes prompt-cache reads and writes, output includes hidden reasoning.
    """
    used = {model: usage for model, usage in by_model.items() if isinstance(usage, dict)}
    if not used:
        return {}
    tokens = zip(*(_tokens(model, usage) for model, usage in used.items()), strict=True)
    read, written, both = map(sum_if_known, tokens)
    counts = [count_of(usage.get("reasoning_tokens")) for usage in used.values()]
    reasoning = [count for count in counts if count is not None]
    return {
        "input_tokens": read,
        "output_tokens": written,
        "total_tokens": both,
        # Inspect leaves it out for a model that does not reason.
        "reasoning_tokens": sum_if_known(reasoning) if reasoning else None,
        "cost_usd": sum_if_known(amount_of(usage.get("total_cost")) for usage in used.values()),
    }


def _tokens(model: str, usage: Mapping[str, Any]) -> Tokens:
    """Return the input, output and total tokens of a model.

    Logs of versions before 2026-02-26 have the tokens of the prompt cache among `input_tokens`
    already, and those of Grok have hidden reasoning beside `output_tokens`; the total tells.
    """
    read, written, both = (
        count_of(usage.get(name)) for name in ("input_tokens", "output_tokens", "total_tokens")
    )
    if read is None or written is None:
        return read, written, both or None
    cached = sum(count_of(usage.get(name)) or 0 for name in _OF_THE_CACHE)
    apart = count_of(usage.get("reasoning_tokens")) or 0
    if not read and not written and (both or 0) > cached + apart:
        return None, None, both  # Inspect writes 0 for a part that it does not know
    if model.startswith("anthropic/"):  # some versions added reasoning twice to the total
        both = min(both or 0, read + cached + written)
    ways = [(read + more, written + hidden) for hidden in (0, apart) for more in (0, cached)]
    read, written = next((way for way in ways if sum(way) == both), (read + cached, written))
    return read, written, max(read + written, both or 0)


def _status(record: Record, metadata: Mapping[str, Any]) -> str | None:
    """Return why a sample is no answer, or the status that this program stored; else None.

    None means that the reply decides. The value of a score is not read.
    """
    if record.get("invalidation"):
        return None  # its error decides, so that a notice counts these samples
    if record.get("error"):
        return Status.API_ERROR.value
    noted = object_of(record, "store").get("TeamOutcome:status")
    if record.get("limit") and noted != Status.ANSWERED:  # else it cut off EXAID alone
        return Status.LIMIT.value
    stated = _about(record).get("status")
    if isinstance(stated, str) and stated in _STATUSES:
        return stated
    if _stop_reason(record) == _REFUSED or _is_refused(record):
        return Status.REFUSED.value
    return Status.SKIPPED.value if metadata.get("status") == Status.SKIPPED else None


def _score(record: Record, scorer: str) -> Mapping[str, Any]:
    """Return the score of a sample by a scorer; empty without one."""
    return object_of(object_of(record, "scores"), scorer)


def _message(error: Any) -> Any:
    return error.get("message") if isinstance(error, dict) else error


def _stop_reason(record: Record) -> Any:
    """Return why the model stopped its last reply; None if the log does not say."""
    choices = entries_of(object_of(record, "output"), "choices")
    return choices[0].get("stop_reason") if choices else None


INSPECT = Form("Inspect", frozenset({"target", "output", "epoch"}), "target", _elements)
