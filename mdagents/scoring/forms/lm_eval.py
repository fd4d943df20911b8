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
from itertools import chain
from typing import Any

from mdagents.datasets.option_letters import letter_marked, letters_in_list, with_letters
from mdagents.datasets.own_forms import list_in
from mdagents.datasets.question_context import with_context
from mdagents.datasets.questions import LETTERS
from mdagents.scoring.fields import gold_of, number_of, object_of, options_of
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
_SCORES = ("acc", "exact_match")
"""Fields with the harness's own score of an answer."""


def _elements(record: Record) -> Sequence[Record]:
    document = object_of(record, "doc")
    requests = _requests(record.get("arguments"))
    scored = [request for request in requests if len(request) > 1]
    # For `acc_mutual_info`, each choice is scored once more, without a context.
    scored = [request for request in scored if request[0].strip()] or scored
    choices = [request[1].strip() for request in scored]
    keyed = _keyed(document, choices)
    options = list(keyed.values()) or _options(document) or choices
    is_list = [*keyed] == list(LETTERS[: len(keyed)])  # also of an object with its keys in order
    letters = list(letters_in_list(options) or LETTERS) if is_list else list(keyed)
    given = options if is_list else keyed
    resps = record.get("resps")
    replies: list[Any] = resps if isinstance(resps, list) else []
    likelihoods = _likelihoods(replies)
    if likelihoods is None:
        said = replies[0] if replies and isinstance(replies[0], list) else replies
        chosen = gold_of(_compared(record), options_of(given) or {}) or ""
    else:
        chosen = _most_likely(likelihoods[: len(options)], letters)
        said = [chosen]
    question = first_of(document, *_QUESTION) or next(iter(chain(*requests)), None)
    if isinstance(question, str):
        with suppress(ConfigError):  # a field of that name which is no text
            question = with_context(
                document, question, dict(zip(letters, options, strict=False)), ""
            )
    meant = _meant(record, choices, options, letters, chosen)
    element = {
        "question_id": record.get("doc_id"),
        "question": question,
        "label": meant[0],
        "options": given,
        "is_ambiguous": len(meant) > 1 and (not chosen or chosen in meant),
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


def _keyed(document: Mapping[str, Any], choices: Sequence[str]) -> dict[str, Any]:
    """Return letter -> option for an object with letters as keys; empty for any other document.

    They are in the order of the choices that were scored, texts or letters, or in that of letters.
    """
    listed = first_of(document, "choices", "options")
    named = with_letters(listed) if isinstance(listed, dict) else {}
    if not named.keys() <= set(LETTERS):
        return {}
    present = {letter: str(text) for letter, text in named.items() if text is not None}
    if [text.strip() for text in present.values()] == choices:
        return present
    order = [*(letter for letter in choices if letter in named), *sorted(named)]
    return {letter: present.get(letter) for letter in order}


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


def _most_likely(likelihoods: Sequence[float], letters: Sequence[str]) -> str:
    """Return the letter of the first most likely choice.

    It is empty when a likelihood is NaN, or all are 0 or minus infinity, as by a model that failed.
    """
    if any(math.isnan(value) for value in likelihoods) or not 0 < len(likelihoods) <= len(letters):
        return ""
    if set(likelihoods) in ({0.0}, {-math.inf}):
        return ""
    return letters[likelihoods.index(max(likelihoods))]


def _compared(record: Record) -> str:
    """Return the part of a generated reply that the harness compared with the target."""
    compared: Any = first_of(record, "filtered_resps", "resps")
    while isinstance(compared, list) and compared:
        compared = compared[0]
    return compared if isinstance(compared, str) else ""


def _meant(
    record: Record,
    choices: Sequence[str],
    options: Sequence[Any],
    letters: Sequence[str],
    chosen: str,
) -> list[Any]:
    """Return the letters that the target may mean, of which the first one counts.

    Several right options are a list of letters. The harness writes a choice or its index, both as
    text, and a letter for generated replies. Where several readings are possible (options that are
    numbers or letters), letters in the replies or the harness's own score of the answer decide.
    """
    target = str(record.get("target")).strip()
    right = None if target in choices or target in options else list_in(target)
    if isinstance(right, list) and right:
        several = [_meant({"target": one}, choices, options, letters, "")[0] for one in right]
        return [several] if len(several) > 1 else several
    if bracketed := re.fullmatch(r"\(([A-J])\)\.?", target):
        return [bracketed[1]]
    places = [listed.index(target) for listed in (choices, options) if target in listed]
    if target in map(str, range(len(options))):
        places.insert(bool(choices and target in choices), int(target))
    shown = letters[: len(options)]
    if not choices and target in shown:
        if letter_marked(_compared(record)) in shown:
            return [target]
        places.insert(0, shown.index(target))
    possible = [letters[place] for place in dict.fromkeys(places) if place < len(letters)]
    scores = (number_of(record.get(name)) for name in _SCORES)
    score = next((score for score in scores if score is not None), None)
    if chosen and score is not None and (choices or len(possible) > 1):
        possible = [letter for letter in possible if (letter == chosen) == (score > 0)]
    return possible or [target]


LM_EVAL = Form(
    "lm-evaluation-harness",
    frozenset({"doc", "target", "resps"}),
    "target",
    _elements,
    reading="filter",
    question=("doc_id", "doc"),
)
