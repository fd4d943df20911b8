"""Card of a run as Markdown. Names from outside are escaped, so that they stay text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mdagents.export.card import RunCard, excluded, make_card
from mdagents.records.manifest import Spent
from mdagents.scoring.formatting import UNKNOWN, interval, number, percent, usd
from mdagents.scoring.rows import run_folder
from mdagents.scoring.statistics import SMALLEST_FOR_RATES
from mdagents_llm.files.whole_file import replace_file, writing
from mdagents_llm.text import counted, one_line

_MARKUP = re.compile(r"[\\`*{}\[\]<>&|~$#^!]|(?<!\w)_|_(?!\w)")  # snake_case needs no escape
_AUTOLINK = re.compile(
    r"((?:(?<!\w)\w+://|www\.)[^\s`|]+|(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+)", re.IGNORECASE
)
"""What GitHub turns into a link, however it is escaped: an address or an e-mail address."""
_COUNTS_AS = {"answered": "right or wrong", "skipped": "excluded"}


def write_card(path: Path, output: Path | None = None, *, as_json: bool = False) -> Path:
    """Write the card of a run; the same run gives the same bytes.

    Args:
        path: Folder of a run, its `samples.jsonl`, or its JSON array.
        output: File of the card; None: `card.md` or `card.json` in the run's folder.
        as_json: Whether to write JSON instead of Markdown.

    Returns:
        Path of the card.

    Raises:
        ConfigError: The path is not a run of this program, is damaged, or has no answer yet.
        StorageError: The card cannot be written.
    """
    card = make_card(path)
    output = output or run_folder(path) / ("card.json" if as_json else "card.md")
    text = card_json(card) if as_json else card_text(card)
    with writing(output):
        replace_file(output, text.encode())
    return output


def card_json(card: RunCard) -> str:
    """Return a card as JSON."""
    return json.dumps(card.as_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def card_text(card: RunCard) -> str:
    """Return a card as Markdown."""
    sections = {
        "Result": _result(card),
        "Models": _models(card),
        "Questions": _questions(card),
        "Settings": _settings(card),
        "Calls, tokens and cost": _spending(card),
        "Dates and software": _software(card),
        "Prompts": _prompts(card),
        "Known limitations": "\n".join(f"- {_sentence(text)}" for text in card.limitations),
    }
    parts = [f"# Run card: {_text(card.name)}", f"{_text(card.title)}. {_text(card.result)}"]
    parts += [f"## {heading}\n\n{text}" for heading, text in sections.items()]
    return "\n\n".join(parts) + "\n"


def _result(card: RunCard) -> str:
    of = card.figures
    method = "Wilson" if of.n == of.questions else "Wilson, epochs by their design effect"
    out = excluded(card.statuses)
    right = f"{of.correct:,} of {of.n:,}"
    accuracy = {
        "accuracy": f"{percent(of.accuracy)} ({right})",
        "95% interval": f"{interval(of.accuracy_low, of.accuracy_high)}% ({method})",
    }
    lines = {
        **(accuracy if of.questions >= SMALLEST_FOR_RATES else {"right": right}),
        "chance": percent(of.chance),
        "questions": f"{of.questions:,}",
        "epochs": f"{card.data.epochs:,}",
        "answers": f"{sum(card.statuses.values()):,} of {card.planned:,} planned",
        "excluded": ", ".join(f"{n:,} {name}" for name, n in out.items()) or "none",
        "run finished": "yes" if card.finished else "no",
    }
    statuses = [
        [name, f"{count:,}", _COUNTS_AS.get(name, "wrong")] for name, count in card.statuses.items()
    ]
    return f"{_pairs(lines)}\n\n{_table(['status', 'answers', 'counts as'], statuses)}"


def _models(card: RunCard) -> str:
    rows = [
        [
            used.role,
            used.provider or UNKNOWN,
            used.host or ("this machine" if used.provider == "local" else UNKNOWN),
            used.requested,
            ", ".join(used.served) or UNKNOWN,
            f"{used.spent.calls:,}",
            f"{used.spent.total_tokens:,}",
            usd(used.spent.cost_usd),
        ]
        for used in card.models
    ]
    heads = ["role", "provider", "host", "requested", "served", "calls", "tokens", "USD"]
    return _table(heads, rows)


def _questions(card: RunCard) -> str:
    data = card.data
    of_all = "" if data.published is None else f" of {data.published:,} published"
    lines = {
        "data set": data.name,
        "file": data.file,
        "SHA-256 of the file": data.sha256,
        "selected": f"{data.selected:,}{of_all}",
        "SHA-256 of the selection": data.items_hash,
        "license": data.license or "not known: a file of the user",
        "cite": data.citation,
        "with pictures": f"{data.pictured:,}" if data.pictured else "",
        "SHA-256 of the pictures": data.pictures_sha256,
        "SHA-256 of the exemplars": data.exemplars_sha256,
    }
    return _pairs(lines)


def _settings(card: RunCard) -> str:
    figures = ", ".join(f"{name} {n:,}" for name, n in card.exaid_figures.items())
    lines = {
        "method": card.method,
        "SHA-256 of the method": card.method_sha256,
        "EXAID": card.exaid,
        "EXAID did": "" if card.exaid == "off" else figures.replace("_", " "),
        **card.settings,
    }
    return _pairs(lines)


def _spending(card: RunCard) -> str:
    spent = card.spent
    per = sum(card.statuses.values()) or 1
    lines = {
        "calls": f"{spent.calls:,}",
        "replies from the cache": _count(spent.cached_calls),
        "calls in batches": _count(spent.batched_calls),
        "calls with estimated tokens": _count(spent.estimated_calls),
        "failed attempts": f"{spent.failed_attempts:,}",
        "input tokens": f"{spent.input_tokens:,}",
        "output tokens": f"{spent.output_tokens:,}",
        "tokens": f"{spent.total_tokens:,} ({spent.total_tokens / per:,.0f} per answer)",
        "cost": _cost(spent),
        "EXAID's part": f"{spent.exaid_calls:,} calls, {spent.exaid_tokens:,} tokens"
        if spent.exaid_calls
        else "",
    }
    rows = card.ledger_rows
    source = "As `run.json` states them" if rows is None else f"Sums of {counted(rows, 'row')}"
    of = "" if rows is None else " of `calls.jsonl`, over all starts and attempts"
    return f"{source}{of}:\n\n{_pairs(lines)}"


def _cost(spent: Spent) -> str:
    return "not known" if spent.cost_usd is None else f"{number(spent.cost_usd, ',.6f')} USD"


def _count(count: int) -> str:
    return f"{count:,}" if count else ""


def _software(card: RunCard) -> str:
    starts = [
        [
            start.started_at,
            start.ended_at or "not ended",
            f"{start.new_records:,}",
            start.reason or ("" if start.ended_at else "in progress, or killed"),
        ]
        for start in card.starts
    ]
    lines = {
        "mdagents": card.version or "before 0.2.0",
        "Git commit": card.git_revision or "not known (an installed package)",
        **card.packages,
        "SHA-256 of the configuration": card.config_hash,
    }
    heads = ["started", "ended", "new answers", "reason of a stop"]
    return f"{_table(heads, starts)}\n\n{_pairs(lines)}"


def _prompts(card: RunCard) -> str:
    if not card.prompt_hashes:
        return "No hash is recorded."
    rows = [[name, digest] for name, digest in sorted(card.prompt_hashes.items())]
    return "First 16 digits of the SHA-256 of each file.\n\n" + _table(["prompt", "SHA-256"], rows)


def _pairs(lines: Mapping[str, str]) -> str:
    """Return name -> value as a table; empty values are left out."""
    return _table(["item", "value"], [[name, value] for name, value in lines.items() if value])


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(_lines(headings, rows))


def _lines(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(headings)} |"
    yield f"|{'---|' * len(headings)}"
    for row in rows:
        yield f"| {' | '.join(map(_text, row))} |"


def _text(text: str) -> str:
    """Return text on one line, escaped so that Markdown shows it literally, addresses as code."""
    parts = _AUTOLINK.split(one_line(text))  # every second part is an address
    parts[::2] = [_MARKUP.sub(r"\\\g<0>", part) for part in parts[::2]]
    parts[1::2] = [f"`{address}`" for address in parts[1::2]]
    return "".join(parts)


def _sentence(text: str) -> str:
    """Return a remark as a sentence."""
    begins_with_word = re.match(r"[a-z]+\b(?![.:_/-])", text) is not None
    shown = _text(text.strip().rstrip("."))
    return f"{shown[:1].upper() if begins_with_word else shown[:1]}{shown[1:]}."
