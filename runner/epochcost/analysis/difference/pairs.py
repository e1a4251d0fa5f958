"""Two versions of a spec, and two measurements of one piece of work, compared with each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from epochcost.results.records import Result
from epochcost.results.rounds import round_count, summary_of
from epochcost.specs.base import Identity
from epochcost.specs.wording import describe
from epochcost.statistics import Bounded
from epochcost.statistics.interval import TimeChange, time_change
from epochcost.units import plain

_MOST_KEYS = 3
# Keys by which a spec describes itself; they change no cost.
_DESCRIPTIVE = frozenset({"id", "name", "notes", "source", "unconfirmed", "as_of", "valid_until"})


def step_change(before: Result, after: Result) -> TimeChange:
    """Change of the step between two measurements, and whether it is significant."""
    rounds = min(round_count(result.measurement) for result in (before, after))
    return time_change(_step(before), _step(after), rounds=rounds)


def _step(result: Result) -> Bounded:
    summary = summary_of(result.measurement)
    return Bounded(summary.interval.low, summary.mean, summary.interval.high)


def changed_keys(before: BaseModel, after: BaseModel, within: tuple[str, ...] = ("",)) -> str:
    """Keys that differ as ``amount 0.9 → 0.8``, names and sources left out; empty if none does.

    ``within``: prefixes of the keys to compare.
    """
    if before == after:
        return ""
    old, new = _leaves_of(Identity(before)), _leaves_of(Identity(after))
    changes = [
        f"{key} {_value(old.get(key))} → {_value(new.get(key))}"
        for key in {**old, **new}
        if old.get(key) != new.get(key) and key.startswith(within)
    ]
    more = len(changes) - _MOST_KEYS
    return ", ".join(changes[:_MOST_KEYS]) + (f" and {more} more" if more > 0 else "")


# One spec is behind many costs.
@lru_cache(maxsize=64)
def _leaves_of(spec: Identity[BaseModel]) -> Mapping[str, Any]:
    return dict(_leaves(spec.value.model_dump()))


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value that holds no other, by its dotted key; empty tables and arrays have none."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if path or key not in _DESCRIPTIVE:
                yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, tuple | list):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    else:
        yield path, value


def _value(value: Any) -> str:
    if value is None:
        return "—"
    return plain(value) if isinstance(value, Decimal) and value.is_finite() else describe(value)
