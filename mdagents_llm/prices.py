"""Prices of models, as the package `genai-prices` knows them: all of its data, and no network."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING

from mdagents_llm.ledger import Price

if TYPE_CHECKING:
    from decimal import Decimal

    from genai_prices.types import ModelPrice, TieredPrices

PACKAGE = "genai-prices"
"""Its version belongs to every cost."""


@cache
def known_price(vendor: str, model: str) -> Price | None:
    """Return what a model costs today; None when that is not known, or depends on the hour.

    Args:
        vendor: The provider's id in `genai-prices`.
        model: The provider's name for the model.
    """
    # Imported here: it takes 0.15 s, and the embedded model costs nothing.
    from genai_prices.data_snapshot import get_snapshot
    from genai_prices.types import TimeOfDateConstraint

    try:
        _, found = get_snapshot().find_provider_model(model, None, vendor, None)
    except LookupError:
        return None
    listed = found.prices if isinstance(found.prices, list) else []
    if any(isinstance(each.constraint, TimeOfDateConstraint) for each in listed):
        return None
    return _price(found.get_prices(datetime.now(UTC)))


def _price(of: ModelPrice) -> Price | None:
    """Return prices by the number of input tokens, the highest step first to be made."""
    kinds = (of.input_mtok, of.output_mtok, of.cache_read_mtok, of.cache_write_mtok)
    steps = sorted({start for kind in kinds for start in _starts(kind)}, reverse=True)
    price: Price | None = None
    above: tuple[int, Price] | None = None
    for start in (*steps, 0):
        fresh, output, cached, write = (_at(kind, start) for kind in kinds)
        if fresh is None or output is None:
            return None
        price = Price(fresh, output, cached, write, above)
        above = (start, price)
    return price


def _starts(kind: Decimal | TieredPrices | None) -> list[int]:
    return [tier.start for tier in getattr(kind, "tiers", ())]


def _at(kind: Decimal | TieredPrices | None, start: int) -> float | None:
    """Return the price of one kind of token in calls of more than `start` input tokens."""
    if kind is None:
        return None
    base = getattr(kind, "base", kind)
    reached = [tier.price for tier in getattr(kind, "tiers", ()) if tier.start <= start]
    return float([base, *reached][-1])
