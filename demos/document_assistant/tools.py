"""The tools of the agents: search, read and count documents, and calculate."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.v1 import ValidationError as OldValidationError

from demos.document_assistant.calculator import CalculationError, calculated, shown
from demos.document_assistant.library import Document, Library
from demos.document_assistant.pieces import pieces_of
from demos.document_assistant.tool_log import ToolLogger
from demos.toolkit.guard import untrusted, without_instructions
from mdagents_llm.errors import StorageError
from mdagents_llm.terminal.did_you_mean import did_you_mean
from mdagents_llm.text import counted, one_line

PAGE = 4_000
"""Maximum characters of a document that are read at once."""

_FOUND = 5  # documents shown per search
_SNIPPET = 1_000  # characters of a passage that was found; few are longer
_TITLE = 100  # characters of a title
_NEAR = Decimal("0.1")  # relative tolerance of `approximate`
_NUMBER = re.compile(r"-?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,30})(?:\.[0-9]{1,30})?")

Comparison = Literal["over", "under", "between", "exact", "approximate"]


def _as_text(value: object) -> object:
    return "" if value is None else value  # many models send null for an empty argument


def _as_choice(value: object) -> object:
    return (value.strip().casefold() or None) if isinstance(value, str) else value


_Text = Annotated[str, BeforeValidator(_as_text)]


@dataclass(frozen=True, slots=True)
class ToolUse:
    """Record of a tool call, independent of the model's claims about it."""

    name: str
    input: str
    """Arguments as JSON; for the calculator, the expression."""
    documents: tuple[str, ...] = ()
    """Ids of the documents that the output quotes."""
    expression: str = ""
    """Calculated expression; empty for other tools."""
    value: Decimal | None = None
    """Result of the calculator; None for other tools or if the expression had no result."""


class SearchInput(BaseModel):
    """What to look for; give at least one of keyword, kind, comparison and currency."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    keyword: _Text = Field("", description="words to look for, such as: operating expense March")
    kind: _Text = Field("", description="invoice, claim, contract, report, policy, spreadsheet, …")
    comparison: Annotated[Comparison | None, BeforeValidator(_as_choice)] = Field(
        None, description="compares the total of documents; approximate: within a tenth"
    )
    amount: _Text = Field("", description="the number to compare with, such as: 5000")
    upper_amount: _Text = Field("", description="for between: the larger number")
    currency: _Text = Field("", description="only totals in it, such as: EUR; none is converted")


class ReadInput(BaseModel):
    """Which document to read."""

    document_id: str = Field(description="the id of the document, from document_search")
    page: int = Field(1, description="long documents have several pages; the first is 1")


class StatisticsInput(BaseModel):
    """Which documents to count."""

    kind: _Text = Field("", description="only documents of this kind; empty: all")


class CalculatorInput(BaseModel):
    """What to calculate."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    expression: str = Field(description="numbers, + - * / ( ) and %, such as: 4200 - 0.12*4200")


class _UseError(Exception):
    """The arguments make no sense; the message says what to give instead."""


@dataclass(frozen=True, slots=True)
class _Output:
    text: str
    documents: tuple[str, ...] = ()
    expression: str = ""
    value: Decimal | None = None


def tools_of(library: Library, log: ToolLogger, *, scope: str) -> list[BaseTool]:
    """Return the tools of a session; each call returns text for the model and a `ToolUse`.

    Args:
        library: Library of the documents.
        log: Audit log of all calls, including failed ones.
        scope: Session whose uploads the tools can also use.
    """
    made = (
        ("document_search", _search, SearchInput, "Find documents by words, kind or total."),
        ("document_reader", _read, ReadInput, "Read a document by its id."),
        ("document_statistics", _count, StatisticsInput, "Count documents and sum their totals."),
        ("calculator", _calculate, CalculatorInput, "Calculate. Use it for all arithmetic."),
    )
    return [
        StructuredTool.from_function(
            coroutine=_bound(name, function, form, library, log, scope),
            name=name,
            description=description,
            args_schema=form,
            response_format="content_and_artifact",
            handle_validation_error=_refusing(name, form, log, scope),
        )
        for name, function, form, description in made
    ]


def _bound(
    name: str,
    function: Callable[[Any, Library, str], Coroutine[Any, Any, _Output]],
    form: type[BaseModel],
    library: Library,
    log: ToolLogger,
    scope: str,
) -> Callable[..., Coroutine[Any, Any, tuple[str, ToolUse]]]:
    async def call(**arguments: Any) -> tuple[str, ToolUse]:  # LangGraph accepts no `partial`
        return await _logged(name, function, form, library, log, scope, arguments)

    return call


def _refusing(
    name: str, form: type[BaseModel], log: ToolLogger, scope: str
) -> Callable[[ValidationError | OldValidationError], str]:
    """Return a handler that rejects and logs calls with invalid arguments."""

    def refuse(error: ValidationError | OldValidationError) -> str:
        wrong = error.errors()
        said = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in wrong)
        text = f"error: {said}; {name} takes {', '.join(form.model_fields)}"
        given = [one.get("input") for one in wrong]
        log.log(name, json.dumps(given, ensure_ascii=False, default=repr), text, session=scope)
        return text

    return refuse


async def _logged(
    name: str,
    function: Callable[[Any, Library, str], Coroutine[Any, Any, _Output]],
    form: type[BaseModel],
    library: Library,
    log: ToolLogger,
    scope: str,
    arguments: dict[str, Any],
) -> tuple[str, ToolUse]:
    asked = form(**arguments)
    given = asked.model_dump(exclude_defaults=True)
    input_ = given["expression"] if "expression" in given else json.dumps(given, ensure_ascii=False)
    try:
        output = await function(asked, library, scope)
    except _UseError as error:
        output = _Output(f"error: {error}")
    except BaseException as error:  # cancelled, or the database failed
        try:
            log.log(name, input_, f"failed: {type(error).__name__}: {error}", session=scope)
        except StorageError as unlogged:
            error.add_note(str(unlogged))  # the caller handles the original error
        raise
    log.log(name, input_, output.text, session=scope)
    use = ToolUse(name, input_, output.documents, output.expression, output.value)
    return output.text, use


async def _search(asked: SearchInput, library: Library, scope: str) -> _Output:
    fits = _comparison(asked)
    currency = asked.currency.strip().upper()
    if not (asked.keyword.strip() or asked.kind.strip() or asked.comparison or currency):
        raise _UseError("give a keyword, a kind, a comparison or a currency")
    documents = {one.id: one for one in await library.documents(scope)}
    kind = _kind_of(asked.kind, documents.values())
    allowed = {
        id_: one
        for id_, one in documents.items()
        if kind in ("", one.kind) and currency in ("", one.currency) and fits(one)
    }
    if asked.keyword.strip():
        snippets = await library.retrieve(asked.keyword, scope=scope, k=len(documents))
        found = [(one.document_id, one.text) for one in snippets if one.document_id in allowed]
    else:
        found = [(id_, one.text) for id_, one in allowed.items()]
    lines = [
        f"{_head(documents[id_])}\n{untrusted(text, id_, limit=_SNIPPET)}"
        for id_, text in found[:_FOUND]
    ]
    if len(found) > _FOUND:
        lines.append(f"{len(found) - _FOUND} more: {', '.join(id_ for id_, _ in found[_FOUND:])}")
    ids = tuple(id_ for id_, _ in found[:_FOUND])
    return _Output("\n\n".join(lines) or "no document was found", ids)


def _comparison(asked: SearchInput) -> Callable[[Document], bool]:
    """Return a predicate for the total of a document; it is false for one without a total."""
    if asked.comparison is None:
        if asked.amount or asked.upper_amount:
            raise _UseError("with amount give comparison: over, under, between, exact, approximate")
        return lambda one: True
    low = _number("amount", asked.amount)
    high = _number("upper_amount", asked.upper_amount) if asked.comparison == "between" else low
    if high < low:
        low, high = high, low
    fits: dict[str, Callable[[Decimal], bool]] = {
        "over": lambda total: total > low,
        "under": lambda total: total < low,
        "between": lambda total: low <= total <= high,
        "exact": lambda total: total == low,
        "approximate": lambda total: abs(total - low) <= _NEAR * abs(low),
    }
    compare = fits[asked.comparison]
    return lambda one: one.amount is not None and compare(one.amount)


def _number(name: str, text: str) -> Decimal:
    number = text.strip().lstrip("$€£").strip()
    if not _NUMBER.fullmatch(number):
        raise _UseError(f"{name} is {text[:40]!r}; give a number such as 5000")
    return Decimal(number.replace(",", ""))


async def _read(asked: ReadInput, library: Library, scope: str) -> _Output:
    document = await library.document(asked.document_id.strip(), scope)
    if document is None:
        ids = [one.id for one in await library.documents(scope)]
        guess = did_you_mean(asked.document_id, ids)
        raise _UseError(f"there is no document {asked.document_id[:80]!r}{guess}; search first")
    pages = [*pieces_of(document.text, PAGE)]
    if not 1 <= asked.page <= len(pages):
        raise _UseError(f"{document.id} has {counted(len(pages), 'page')}")
    # Notes may be longer than the sentences they replace: a high limit keeps the whole page.
    text = untrusted(pages[asked.page - 1], document.id, limit=10 * PAGE)
    more = f"\n(page {asked.page} of {len(pages)})" if len(pages) > 1 else ""
    said = f"{_head(document)}\n{text}{more}"
    return _Output(said, (document.id,))


async def _count(asked: StatisticsInput, library: Library, scope: str) -> _Output:
    documents = await library.documents(scope)
    kind = _kind_of(asked.kind, documents)
    chosen = [one for one in documents if kind in ("", one.kind)]
    kinds = Counter(one.kind for one in chosen)
    lines = [f"{len(chosen)} documents: {', '.join(f'{n} {kind}' for kind, n in kinds.items())}"]
    totals: dict[str, list[Decimal]] = defaultdict(list)
    for one in chosen:
        if one.amount is not None:
            totals[one.currency or "no currency"].append(one.amount)
    for currency, amounts in sorted(totals.items()):
        lines.append(
            f"{currency}: {len(amounts)} with a total, sum {shown(sum(amounts, Decimal()))}, "
            f"from {shown(min(amounts))} to {shown(max(amounts))}"
        )
    without = [one.id for one in chosen if one.amount is None]
    if without:
        lines.append(f"without a total, and in no sum: {', '.join(without)}")
    return _Output("\n".join(lines), tuple(one.id for one in chosen))


async def _calculate(asked: CalculatorInput, library: Library, scope: str) -> _Output:
    try:
        value, is_rounded = calculated(asked.expression)
    except CalculationError as error:
        raise _UseError(str(error)) from error
    text = f"Result: {shown(value)}{' (rounded)' if is_rounded else ''}"
    return _Output(text, expression=asked.expression.strip(), value=value)


def _kind_of(text: str, documents: Iterable[Document]) -> str:
    """Return the known kind that a text means, such as `invoice` for `Invoices`; empty if empty."""
    kinds = sorted({one.kind for one in documents})
    kind = text.strip().casefold()
    for meant in (kind, kind.removesuffix("s"), f"{kind.removesuffix('ies')}y"):
        if meant in ("", *kinds):
            return meant
    raise _UseError(f"there is no kind {text[:40]!r}; there are: {', '.join(kinds)}")


def _head(document: Document) -> str:
    # The title of an upload is its file name, so it is untrusted as well.
    title, _ = without_instructions(one_line(document.title)[:_TITLE])
    parts = [document.id, title, document.kind, str(document.date or "no date")]
    if document.amount is not None:
        parts.append(f"total {shown(document.amount)} {document.currency}".rstrip())
    return " | ".join(parts)
