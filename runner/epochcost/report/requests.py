"""Serving told apart from bulk work: requests are answered as they come, a bulk in full batches.

What a million inferences cost in batches of thousands is no price of a service: a request would
wait until thousands of others have come. Of servers that LoadGen measured the answer is read at
their bound; where there are none, it is that of batches of one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from epochcost.cost import Candidate, Estimate, cheapest, frontier
from epochcost.report.rows import Row
from epochcost.report.serving import ServingRow


@dataclass(frozen=True, slots=True)
class Service:
    """The servers of one model at one bound: the cheapest million, the shortest 99th percentile.

    Where the cheapest has an assumed price, ``listed`` is the cheapest at somebody's price list.
    ``frontier`` are those that no other beats in both, quickest first.
    """

    model: str
    cheapest: ServingRow
    listed: ServingRow | None
    quickest: ServingRow
    frontier: tuple[ServingRow, ...]
    machines: int


def one_by_one(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The rows of inference in which no example waits for another."""
    return tuple(row for row in _inferences(rows) if row.observed.batch_size == 1)


def in_bulk(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The rows of inference in batches of several examples."""
    return tuple(row for row in _inferences(rows) if row.observed.batch_size > 1)


def _inferences(rows: Iterable[Row]) -> Iterable[Row]:
    return (row for row in rows if row.inference is not None)


def service(rows: Iterable[ServingRow]) -> Service | None:
    """The model and bound that most machines serve within; None where no priced server keeps one.

    Different bounds are different jobs and are not compared; of equals the first by name.
    """
    groups: defaultdict[tuple[str, str], list[Candidate[ServingRow]]] = defaultdict(list)
    for row in rows:
        if (found := _candidate(row)) is not None:
            groups[row.model, row.load].append(found)
    if not groups:
        return None
    (model, _), kept = max(sorted(groups.items(), key=_name), key=lambda one: _machines(one[1]))
    return _service(model, kept)


def _candidate(row: ServingRow) -> Candidate[ServingRow] | None:
    """A priced server that kept its bound, its 99th percentile as the time."""
    if row.bound_seconds is None or row.run is None or not isinstance(row.million, Estimate):
        return None
    seconds = Decimal(row.run.latency.p99_nanoseconds) / 10**9
    return Candidate(row, seconds, row.million)


def _service(model: str, candidates: Sequence[Candidate[ServingRow]]) -> Service:
    currency = candidates[0].cost.currency
    same = [one for one in candidates if one.cost.currency == currency]
    best = cheapest(same)
    assert best is not None, "a service has a candidate"
    listed = cheapest(one for one in same if not one.key.assumed)
    between = frontier(same)
    return Service(
        model=model,
        cheapest=best.key,
        listed=listed.key if listed and best.key.assumed else None,
        quickest=between[0].key,
        frontier=tuple(one.key for one in between),
        machines=_machines(same),
    )


def _machines(candidates: Iterable[Candidate[ServingRow]]) -> int:
    return len({one.key.machine for one in candidates})


def _name(group: tuple[tuple[str, str], object]) -> tuple[str, str]:
    return group[0]
