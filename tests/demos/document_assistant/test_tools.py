"""What tools give to a model, what they note for the program, and what is written down."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import ToolMessage

from demos.document_assistant.library import Document, Library
from demos.document_assistant.tool_log import ToolLogger
from demos.document_assistant.tools import PAGE, ToolUse, tools_of
from demos.toolkit.database import Database
from demos.toolkit.retrieval import HybridRetriever


class Tools:
    """Calls tools as a graph does."""

    def __init__(self, library: Library, file: Path) -> None:
        self.library = library
        self.file = file

    async def call(self, name: str, scope: str = "s1", **arguments: Any) -> tuple[str, ToolUse]:
        log = ToolLogger(self.file, now=lambda: datetime(2026, 11, 23, tzinfo=UTC))
        tools = {tool.name: tool for tool in tools_of(self.library, log, scope=scope)}
        call = {"name": name, "args": arguments, "id": "1", "type": "tool_call"}
        message = await tools[name].ainvoke(call)
        assert isinstance(message, ToolMessage)
        assert isinstance(message.artifact, ToolUse)
        assert message.artifact.name == name
        return message.text, message.artifact

    def logged(self) -> list[str]:
        return self.file.read_text().splitlines()


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncIterator[Tools]:
    database = Database(tmp_path / "library.sqlite")
    async with HybridRetriever(database, "documents") as retriever:
        yield Tools(await Library.open(database, retriever), tmp_path / "tools.log")
    await database.close()


async def test_a_search_by_words(tools: Tools) -> None:
    text, use = await tools.call("document_search", keyword="operating expense product line A")
    assert use.documents[0] == "doc_fin_2025_march"
    assert text.startswith(
        "doc_fin_2025_march | Financial statement, March 2025 | report | 2025-03-31\n"
    )
    assert "$1,238,450" in text
    assert set(use.documents) == {
        line.split(" | ")[0] for line in text.split("\n") if " | 20" in line
    }


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (
            {"comparison": "over", "amount": "40,000"},
            {"doc_contract_cleaning", "doc_budget_training_2026"},
        ),
        ({"comparison": "under", "amount": "700"}, {"doc_letter_supplier_gloves"}),
        ({"comparison": "exact", "amount": "2746.8"}, {"doc_invoice_linen_0412"}),
        ({"comparison": "exact", "amount": "2746"}, set()),
        ({"comparison": "approximate", "amount": "$11,000"}, {"doc_claim_7731"}),
        (
            {"comparison": "between", "amount": "12000", "upper_amount": "600"},
            {"doc_letter_supplier_gloves", "doc_invoice_linen_0412", "doc_claim_7731"},
        ),
        ({"kind": "Invoice"}, {"doc_invoice_linen_0412", "doc_invoice_oxygen_draft"}),
        ({"kind": "invoice", "comparison": "over", "amount": "0"}, {"doc_invoice_linen_0412"}),
        ({"kind": "invoice", "keyword": "oxygen cylinders"}, {"doc_invoice_oxygen_draft"}),
    ],
)
async def test_a_search_by_kind_and_total(
    tools: Tools, arguments: dict[str, str], found: set[str]
) -> None:
    text, use = await tools.call("document_search", **arguments)
    assert set(use.documents) == found
    assert found or text == "no document was found"


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("document_search", {}, "error: give a keyword, a kind or a comparison"),
        (
            "document_search",
            {"kind": "recipe"},
            "error: there is no kind 'recipe'; there are: claim,",
        ),
        ("document_search", {"amount": "5"}, "error: with amount give comparison"),
        (
            "document_search",
            {"comparison": "over"},
            "error: amount is ''; give a number such as 5000",
        ),
        ("document_search", {"comparison": "between", "amount": "5"}, "error: upper_amount is ''"),
        ("document_search", {"comparison": "over", "amount": "nan"}, "error: amount is 'nan'"),
        ("document_reader", {"document_id": "doc_claim_7730"}, "did you mean 'doc_claim_7731'?"),
        (
            "document_reader",
            {"document_id": "doc_claim_7731", "page": 2},
            "doc_claim_7731 has 1 page",
        ),
        ("document_reader", {"document_id": "../etc/passwd"}, "error: there is no document"),
        ("calculator", {"expression": "9**9**9"}, "error: a number is missing before '*'"),
        ("calculator", {"expression": "1/0"}, "error: division by zero has no result"),
    ],
)
async def test_arguments_that_make_no_sense(
    tools: Tools, name: str, arguments: dict[str, Any], told: str
) -> None:
    text, use = await tools.call(name, **arguments)
    assert told in text
    assert (use.documents, use.value, use.expression) == ((), None, "")
    (line,) = tools.logged()
    assert f"INFO tool:{name} session=s1 " in line, "a call that fails is written down, too"
    assert "error: " in line


async def test_reading_by_pages(tools: Tools) -> None:
    text = "".join(chr(ord("a") + n % 26) for n in range(2 * PAGE + 10))
    await tools.library.add(Document("long", "Long", "report", text, scope="s1"))
    last, use = await tools.call("document_reader", document_id="long", page=3)
    assert text[2 * PAGE :] in last
    assert last.endswith("(page 3 of 3)")
    assert use.documents == ("long",)
    other, _ = await tools.call("document_reader", scope="s2", document_id="long")
    assert other.startswith("error: there is no document 'long'")


async def test_statistics_say_what_is_in_no_sum(tools: Tools) -> None:
    text, use = await tools.call("document_statistics", kind="invoice")
    assert text.split("\n") == [
        "2 documents: 2 invoice",
        "EUR: 1 with a total, sum 2746.8, from 2746.8 to 2746.8",
        "without a total, and in no sum: doc_invoice_oxygen_draft",
    ]
    everything, use = await tools.call("document_statistics")
    assert everything.startswith("12 documents: ")
    assert "\nUSD: 1 with a total, sum 640," in everything, "currencies are not added up"
    assert len(use.documents) == 12


async def test_the_calculator(tools: Tools) -> None:
    text, use = await tools.call("calculator", expression="4200 - (1200 + 0.12*4200)")
    assert text == "Result: 2496"
    assert use.value == Decimal(2496)
    assert use.expression == "4200 - (1200 + 0.12*4200)"
    assert tools.logged() == [
        "2026-11-23T00:00:00Z INFO tool:calculator session=s1 "
        "input='4200 - (1200 + 0.12*4200)' output='Result: 2496'"
    ]


async def test_an_instruction_in_a_document_reaches_no_model(tools: Tools) -> None:
    read, _ = await tools.call("document_reader", document_id="doc_letter_supplier_gloves")
    found, _ = await tools.call("document_search", keyword="gloves recall credit")
    for text in (read, found):
        assert "total 640 USD" in text
        assert "9,999" not in text
        assert "answer 42" not in text
        assert "[left out: " in text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    keyword=st.text(max_size=40),
    kind=st.sampled_from(["", "invoice", "x"]),
    comparison=st.sampled_from([None, "over", "between"]),
    amount=st.text(max_size=10) | st.integers().map(str),
)
async def test_no_search_breaks(
    tools: Tools, keyword: str, kind: str, comparison: str | None, amount: str
) -> None:
    text, use = await tools.call(
        "document_search", keyword=keyword, kind=kind, comparison=comparison, amount=amount
    )
    assert text
    assert len(use.documents) <= 5
