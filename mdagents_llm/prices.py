"""Prices of models from the data of the package `genai-prices`, without network access."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING

from mdagents_llm.ledger import Price

if TYPE_CHECKING:
    from decimal import Decimal

    from genai_prices.types import ModelInfo, ModelPrice, TieredPrices

PACKAGE = "genai-prices"
"""Package of the price data; its version is recorded with every cost."""


@cache
def known_price(vendor: str, model: str, *, in_batches: bool = False) -> Price | None:
    """Return the current price of a model; None if it is unknown or depends on the time of day.

    It includes the prices of its service tiers.

    Args:
        vendor: ID of the provider in `genai-prices`.
        model: Name of the model at the provider.
        in_batches: Whether to return the price in batches; None if it is not listed by itself.
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
    now = datetime.now(UTC)
    if in_batches:
        return _variants(found, "processing", now).get("batch")
    price = _price(found.get_prices(now))
    tiers = tuple(_variants(found, "service_tier", now).items())
    return price and replace(price, tiers=tiers)


def _variants(model: ModelInfo, name: str, now: datetime) -> dict[str, Price]:
    """Return value of the condition `name` -> price of a model under it, as far as listed."""
    values = {
        variant.when[name]
        for variant in model.price_variants or ()
        if variant.when.keys() == {name}
        and (variant.constraint is None or variant.constraint.active(now))
    }
    prices = {value: _price(model.get_prices(now, {name: value})) for value in sorted(values)}
    return {value: price for value, price in prices.items() if price is not None}


def _price(of: ModelPrice) -> Price | None:
    """Return a price with its tiers by number of input tokens, built from the highest tier down."""
    kinds = (of.input_mtok, of.output_mtok, of.cache_read_mtok, of.cache_write_mtok)
    steps = sorted({start for kind in kinds for start in _starts(kind)}, reverse=True)
    price: Price | None = None
    above: tuple[int, Price] | None = None
    for start in (*steps, 0):
        fresh, output, cached, write = (_at(kind, start) for kind in kinds)
        if fresh is None or output is None:
            return None
        price = Price(fresh, output, cached, write, above, is_listed=True)
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
