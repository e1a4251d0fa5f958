"""Which machine is cheapest, how sure that is, and which trade time for money well."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Generic, TypeVar

from epochcost.cost.estimate import Estimate
from epochcost.errors import InputError

KeyT = TypeVar("KeyT")


@dataclass(frozen=True, slots=True)
class Candidate(Generic[KeyT]):
    """A way to do a job: how long it takes at the mean, and what it costs."""

    key: KeyT
    seconds: Decimal
    cost: Estimate


def cheapest(candidates: Iterable[Candidate[KeyT]]) -> Candidate[KeyT] | None:
    """Choose the lowest mean cost; of equals the fastest, then the first; None of none.

    Raises InputError where currencies are mixed.
    """
    return min(_comparable(candidates), key=_by_cost, default=None)


def rivals(
    best: Candidate[KeyT], candidates: Iterable[Candidate[KeyT]]
) -> tuple[Candidate[KeyT], ...]:
    """List the others that may be as cheap: their cost's interval reaches into the best's.

    Cheapest first. Raises InputError where currencies are mixed.
    """
    others = [one for one in candidates if one.key != best.key]
    near = [one for one in _comparable([best, *others])[1:] if one.cost.low <= best.cost.high]
    return tuple(sorted(near, key=_by_cost))


def frontier(candidates: Iterable[Candidate[KeyT]]) -> tuple[Candidate[KeyT], ...]:
    """Those that no other beats in mean time or mean cost without losing in the other.

    Fastest first; of candidates equal in both, all stay. Raises InputError where currencies are
    mixed.
    """
    kept: list[Candidate[KeyT]] = []
    for one in sorted(_comparable(candidates), key=_by_time):
        if not kept or one.cost.mean < kept[-1].cost.mean or _by_time(one) == _by_time(kept[-1]):
            kept.append(one)
    return tuple(kept)


def _by_cost(candidate: Candidate[KeyT]) -> tuple[Decimal, Decimal]:
    return candidate.cost.mean, candidate.seconds


def _by_time(candidate: Candidate[KeyT]) -> tuple[Decimal, Decimal]:
    return candidate.seconds, candidate.cost.mean


def _comparable(candidates: Iterable[Candidate[KeyT]]) -> list[Candidate[KeyT]]:
    listed = list(candidates)
    currencies = sorted({one.cost.currency for one in listed})
    if len(currencies) > 1:
        raise InputError(f"comparison: demanded costs in one currency; got {', '.join(currencies)}")
    return listed
