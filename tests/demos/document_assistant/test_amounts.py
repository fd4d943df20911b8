"""Amounts read out of the text of a document."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demos.document_assistant.amounts import amount_of
from demos.document_assistant.library import kind_of


@pytest.mark.parametrize(
    ("text", "amount", "currency"),
    [
        ("Total: 1,250.00 EUR", "1250.00", "EUR"),
        ("Total: $300\nGrand total: $330.50", "330.50", "USD"),
        ("TOTAL 20 items\nAmount due € 99", "99", "€€"),
        ("Total | 12 | 1,000 USD", "1000", "USD"),
        ("Subtotal: 5 EUR", None, ""),
        ("The total will follow.", None, ""),
        ("Gauze 5 EUR\nTape 6 EUR", None, ""),
        ("Total 2025", None, ""),
        ("Total: 1.234,50 EUR", "1234.50", "EUR"),
        ("Total: 1.234 EUR", None, ""),
        ("Total: 1.234,500 EUR", None, ""),
        ("Total: 12,34 EUR", "12.34", "EUR"),
        ("Total: CHF 1'250.00", "1250.00", "CHF"),
        ("Total: CHF 1’250.–", "1250", "CHF"),
        ("Total: 1'234'567,89 EUR", "1234567.89", "EUR"),
        ("Total: 42'987,56 EUR", "42987.56", "EUR"),
        ("Total: 1 250.00 EUR", "1250.00", "EUR"),
        ("Total: 1\u00a0250,00 €", "1250.00", "€€"),
        ("Total: 1\u202f234\u202f567,89 €", "1234567.89", "€€"),
        ("Total: 1\u2009250 EUR", "1250", "EUR"),
        ("Total: 1.250,00 EUR", "1250.00", "EUR"),
        ("Total: 1.250.000 ₫", "1250000", "VND"),
        ("Total 2026 250.00 EUR", "250.00", "EUR"),
        ("Total: -1'250.00 CHF", None, ""),
        ("Total: 1,25,000 USD", None, ""),
        ("Total: -50.00 EUR", None, ""),
        ("Total: -$50", None, ""),
        ("Total: $-50", None, ""),
        ("Total 80 EUR\nTotal due 1.234 EUR", None, ""),
        ("Total due – 99.90 EUR", "99.90", "EUR"),
        ("Total: 80 EUR [struck out: 100 EUR]", "80", "EUR"),
        ("Total: 80 EUR\n[struck out: Total: 100 EUR]", "80", "EUR"),
        ("[struck out: old [see note 2]: total 5 EUR]", None, ""),
        ("Total: CA$ 500.00", None, ""),  # Equibles#3089
        ("Total: HK$100", None, ""),
        ("Total: R$ 1.250,00", None, ""),
        ("Total: US$ 1,250.00", "1250.00", "USD"),
        ("Total: CAD $500.00", "500.00", "CAD"),  # azure-sdk-for-net#42833
        ("Total: $500.00 CAD", "500.00", "CAD"),
        ("Total: AUD 500.00", "500.00", "AUD"),
        ("Total: $500.00 USD", "500.00", "USD"),
        ("Total: €500 CHF", None, ""),
        ("Total: $300\nGrand total: CA$ 500", None, ""),
        ("Total due$500.00", "500.00", "USD"),
        ("Total: 1 250,00 $", "1250.00", "USD"),  # e-arveldaja-mcp#16
        ("Total: 1,250.00 $", "1250.00", "USD"),
        ("Total 12 $1,250.00", "1250.00", "USD"),
        ("Total $10 $20 $30", "30", "USD"),
        ("Total €10 €20 €30", "30", "€€"),
        ("Total: 80 EUR 2026", "80", "EUR"),
        ("Total (USD): 1,250.00", "1250.00", "USD"),
        ("Total amount in USD: 1,250.00", "1250.00", "USD"),
        ("Total | USD | 1,250.00", "1250.00", "USD"),
        ("Total | $ | 1,250.00 |", "1250.00", "USD"),
        ("Total | USD | 12 | 1,250.00", None, ""),
        ("Total USD: (1,250.00)", None, ""),
        ("Total USD: 1,250.00-", None, ""),
        ("Total: ($500.00)", None, ""),  # jetpack#34211
        ("Total: (500.00 EUR)", None, ""),
        ("Total: $(500.00)", None, ""),
        ("Total: $500.00-", None, ""),
        ("Total: $500.00 CR", None, ""),
        ("(Total: $500.00)", "500.00", "USD"),
        ("Total: $500.00 - thank you", "500.00", "USD"),
        ("Total: €1250,-", "1250", "€€"),
        ("Total: $500.00 (includes VAT $50.00)", "500.00", "USD"),  # cubecart/v6#4198
        ("Total: €500.00 of which VAT €80.00", "500.00", "€€"),
        ("Total: $500, incl. $50 tip", "500", "USD"),
        ("Total: EUR 1.250,00 (USD 1,350.00)", "1250.00", "EUR"),
        ("Total incl. VAT: €121.00\nTotal VAT: €21.00", "121.00", "€€"),
        ("Total: $121.00\nTotal tax: $21.00\nTotal savings: $5.00", "121.00", "USD"),
        ("Total: $500.00\nVAT total: $50.00", "500.00", "USD"),
        ("Total: $5.00\nAfter-tax total: $6.00", "6.00", "USD"),
        ("Total tax included: $121.00", "121.00", "USD"),
        ("Total tax: $21.00", None, ""),
        ("Sub-Total: $400.00", None, ""),
        ("Sub Total: $400.00\n", None, ""),
        ("Sub-Total: $400.00 Total: $440.00", "440.00", "USD"),
        ("Total: $1.25 million", None, ""),
        ("Total: $1.2M", None, ""),
        ("Total: 3.5 Mio. EUR", None, ""),
        ("Total: EUR 3 bn", None, ""),
        ("Total: $500 monthly", "500", "USD"),
        ("Sub total " * 50_000, None, ""),
        ("Total " + "USD " * 200_000, None, ""),
        ("Total $1" + " (" * 200_000, "1", "USD"),
        ("[struck out: " * 50_000, None, ""),
        ("Total " + "1," * 400_000, None, ""),
        ("Total EUR " + "1 " * 400_000, "1", "EUR"),
        ("total " * 100_000, None, ""),
    ],
)
def test_the_total_that_a_document_states(text: str, amount: str | None, currency: str) -> None:
    found = amount_of(text)
    expected = "EUR" if currency == "€€" else currency
    assert found == (None if amount is None else Decimal(amount), expected)


@pytest.mark.sweep
@given(st.text(max_size=200))
def test_no_text_breaks_what_is_read_out_of_it(text: str) -> None:
    amount, _ = amount_of(f"{text}\ntotal {text}")
    assert amount is None or amount.is_finite()
    assert kind_of("x.txt", text)
