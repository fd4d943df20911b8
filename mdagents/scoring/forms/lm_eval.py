"""Samples of lm-evaluation-harness: `samples_{task}_{time}.jsonl` of `--log_samples`.

Source: `lm_eval/evaluator.py` (fields), `lm_eval/loggers/evaluation_tracker.py` (how they are
written) and `lm_eval/api/task.py` (the choice is the one of the largest log-likelihood) of
EleutherAI/lm-evaluation-harness.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from mdagents.datasets.own_forms import list_in
from mdagents.datasets.question_context import with_context
from mdagents.datasets.questions import LETTERS
from mdagents.scoring.fields import number_of, object_of
from mdagents.scoring.forms.form import Form, Record, first_of
from mdagents_llm.errors import ConfigError

_QUESTION = ("question", "Question", "QUESTION", "sent1", "query", "input")
_NUMBERED = (
    tuple(f"ending{n}" for n in range(len(LETTERS))),
    tuple(f"op{letter.lower()}" for letter in LETTERS),
    tuple(f"option_{letter.lower()}" for letter in LETTERS),
    tuple(LETTERS),
)
"""Names of document fields that hold one option each, in order."""


def _elements(record: Record) -> Sequence[Record]:
    document = object_of(record, "doc")
    requests = _requests(record.get("arguments"))
    choices = [request[1].strip() for request in requests if len(request) > 1]
    options = _options(document) or choices
    resps = record.get("resps")
    replies: list[Any] = resps if isinstance(resps, list) else []
    chosen = ""
    likelihoods = _likelihoods(replies)
    if likelihoods is None:
        said = replies[0] if replies and isinstance(replies[0], list) else replies
    else:
        chosen = _most_likely(likelihoods[: len(options)])
        said = [chosen]
    question = first_of(document, *_QUESTION) or (requests[0][0] if requests else None)
    if isinstance(question, str):
        with suppress(ConfigError):  # a field of that name which is no text
            question = with_context(document, question, "")
    element = {
        "question_id": record.get("doc_id"),
        "question": question,
        "label": _label(record, choices, options, chosen),
        "options": options,
    }
    return [
        {**element, "response": reply, "epoch": epoch}
        for epoch, reply in enumerate(said or [""], start=1)
    ]


def _requests(arguments: Any) -> list[list[str]]:
    """Return the texts of each request: the prompt, and the choice to be scored, if any."""
    if isinstance(arguments, dict):
        arguments = list(arguments.values())
    if not isinstance(arguments, list):
        return []
    requests = [list(a.values()) if isinstance(a, dict) else a for a in arguments]
    return [
        [text for text in request if isinstance(text, str)]
        for request in requests
        if isinstance(request, list)
    ]


def _options(document: Mapping[str, Any]) -> list[Any]:
    """Return the options in a document of a data set, None for one that it does not have.

    The list is empty when none are found.
    """
    listed = first_of(document, "choices", "options")
    if isinstance(listed, dict):
        listed = listed["text"] if isinstance(listed.get("text"), list) else list(listed.values())
    if isinstance(listed, list):
        return [text if text is None else str(text) for text in listed][: len(LETTERS) + 1]
    for names in _NUMBERED:
        texts = [str(document[name]) for name in names if document.get(name) is not None]
        if len(texts) > 1:
            return texts
    return []


def _likelihoods(replies: Sequence[Any]) -> list[float] | None:
    """Return the log-likelihood of each choice; None when the replies are texts."""
    if len(replies) < 2:
        return None
    found = []
    for reply in replies:
        pair = reply[0] if isinstance(reply, list) and reply else None
        if not (isinstance(pair, list) and len(pair) == 2):
            return None
        try:
            found.append(float(pair[0]))
        except (TypeError, ValueError):
            return None
    return found


def _most_likely(likelihoods: Sequence[float]) -> str:
    """Return the letter of the first most likely choice; empty when a likelihood is NaN."""
    if any(math.isnan(value) for value in likelihoods) or len(likelihoods) > len(LETTERS):
        return ""
    return LETTERS[likelihoods.index(max(likelihoods))]


def _label(record: Record, choices: Sequence[str], options: Sequence[Any], chosen: str) -> Any:
    """Return the letter of the right option, or a list of letters if several are right.

    The harness writes either the choice or its index, both as text. Where both readings are
    possible (numeric choices), the harness's own score of the answer decides.
    """
    target = str(record.get("target")).strip()
    right = None if target in choices or target in options else list_in(target)
    if isinstance(right, list) and right:
        letters = [_label({"target": one}, choices, options, "") for one in right]
        return letters if len(letters) > 1 else letters[0]
    if bracketed := re.fullmatch(r"\(([A-J])\)\.?", target):
        return bracketed[1]
    possible = [LETTERS[listed.index(target)] for listed in (choices, options) if target in listed]
    if target.isdecimal() and int(target) < len(options):
        possible.insert(bool(choices and target in choices), LETTERS[int(target)])
    accuracy = number_of(record.get("acc"))
    if chosen and accuracy is not None:
        possible = [letter for letter in possible if (letter == chosen) == (accuracy > 0)]
    return next(iter(possible), target)


LM_EVAL = Form(
    "lm-evaluation-harness",
    frozenset({"doc", "target", "resps"}),
    "target",
    _elements,
    reading="filter",
)
