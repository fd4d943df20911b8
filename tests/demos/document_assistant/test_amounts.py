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
        ("Total: $500.00\nTotal cholesterol 5.2 mmol/l, INR 2.5, CAD 3 vessels", "500.00", "USD"),
        ("Total bilirubin 1.2 INR 2.50", None, ""),
        ("Total knee arthroplasty | CAD | 3", None, ""),
        ("Total hip replacement 2015, CAD 2019, NOK 1 son", None, ""),
        ("Total: INR 5,000.00", "5000.00", "INR"),
        ("Total net: 100 EUR | VAT: 21 EUR | Total incl. VAT: 121 EUR", "121", "EUR"),
        ("Total excluding VAT: EUR 100, VAT: EUR 21, Total including VAT: EUR 121", "121", "EUR"),
        ("Total excl. VAT 100.00 EUR, incl. VAT 121.00 EUR", "121.00", "EUR"),
        ("Total: €100.00 (excl. VAT), €121.00 (incl. VAT)", "121.00", "€€"),
        ("Total net 100 EUR; incl. VAT 121 EUR", "121", "EUR"),
        ("Total | $100 (net) | $120 (gross)", "120", "USD"),
        ("Total: €121.00, total tax: €21.00", "121.00", "€€"),
        ("Total: $120.00, balance due in 30 days", "120.00", "USD"),
        ("Amount due: $100 (total charges: $500, paid: $400)", "100", "USD"),
        ("Total $100.00 Discount ($10.00) Amount due $90.00", "90.00", "USD"),
        ("Total: $100.00 Paid: ($100.00) Balance due: $0.00", "0.00", "USD"),
        ("Total of room ($50) and labs ($70): $120", "120", "USD"),
        ("Total 2 x EUR 60.00 (adult) EUR 120.00", "120.00", "EUR"),
        ("Total: $500.00 (includes VAT $50.00", "500.00", "USD"),
        ("Bill to: Ann | Total: $120.00; Late fee: $15.00", "120.00", "USD"),
        ("Total: $120.00; Paid: $20.00", "120.00", "USD"),
        ("Total | $120; $15", "120", "USD"),
        ("Total; in 30 days | $120", "120", "USD"),
        (r"Total \| $120.00; Late fee after 30 days \| $15.00", "120.00", "USD"),
        ("Amount due: $120 if paid by June; $130 after", "130", "USD"),
        ("Total Amount$120.00", "120.00", "USD"),
        ("TOTAL DUE$120.00", "120.00", "USD"),
        ("TOTAL DUE ______$120.00", "120.00", "USD"),
        ("Total: _$120_", "120", "USD"),
        ("The grand total (USD 120.00) is due by Friday.", "120.00", "USD"),
        ("Balance due ($350.00)", "350.00", "USD"),
        ("Total | ($350.00) | ", None, ""),
        ("Post-tax total: $120", "120", "USD"),
        ("Including VAT total: $120", "120", "USD"),
        ("Total VAT-inclusive: £120", "120", "GBP"),
        ("Total GST Inc. $110", "110", "USD"),
        ("Total Tax Invoice: $55", "55", "USD"),
        ("Total tax due: $500", "500", "USD"),
        ("Total credit card payment: $120", "120", "USD"),
        ("Total: $120 M. Smith", "120", "USD"),
        ("Total: 120 EUR m. MwSt", "120", "EUR"),
        ("Total: $1 " + "; " * 200_000, "1", "USD"),
        ("Total $1 (" * 50_000, "1", "USD"),
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
