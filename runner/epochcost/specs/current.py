"""Which prices hold: a newer price of the same plan supersedes an older one."""

from __future__ import annotations

from collections.abc import Iterable

from epochcost.specs.price import Price


def current_prices(prices: Iterable[Price]) -> tuple[Price, ...]:
    """Those that no newer price of the same plan supersedes."""
    known = tuple(prices)
    return tuple(one for one in known if not any(supersedes(other, one) for other in known))


def supersedes(newer: Price, older: Price) -> bool:
    """Whether both are dates of one plan; an older price that names no region is of any."""
    same = (newer.hardware, newer.provider, newer.plan, newer.currency) == (
        older.hardware,
        older.provider,
        older.plan,
        older.currency,
    )
    return (
        same
        and newer.as_of > older.as_of
        and older.region in {None, newer.region}
        and older.sku in {None, newer.sku}
    )
