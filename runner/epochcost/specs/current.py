"""Which prices hold: a newer price of the same plan supersedes an older one."""

from __future__ import annotations

from collections.abc import Iterable

from epochcost.specs.price import Price


def current_prices(prices: Iterable[Price]) -> tuple[Price, ...]:
    """Those that no newer price of the same plan supersedes."""
    known = tuple(prices)
    dates: dict[tuple[str, ...], list[Price]] = {}
    for one in known:
        dates.setdefault(_plan(one), []).append(one)
    return tuple(
        one for one in known if not any(supersedes(other, one) for other in dates[_plan(one)])
    )


def _plan(price: Price) -> tuple[str, ...]:
    return price.hardware, price.provider, price.plan, price.currency


def supersedes(newer: Price, older: Price) -> bool:
    """Whether both are dates of one plan; an older price that names no region is of any."""
    return (
        _plan(newer) == _plan(older)
        and newer.as_of > older.as_of
        and older.region in {None, newer.region}
        and older.sku in {None, newer.sku}
    )
