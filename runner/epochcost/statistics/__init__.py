"""Statistics of step times, and grouping of items by a key.

The modules have the mean with its interval, median and percentiles. Only NumPy is needed. The
interval allows for bursts of slow steps, slow drift and differences between processes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

ItemT = TypeVar("ItemT")
KeyT = TypeVar("KeyT", bound=Hashable)


def group_by(
    items: Iterable[ItemT], key: Callable[[ItemT], KeyT]
) -> Mapping[KeyT, tuple[ItemT, ...]]:
    """Group items by a key; groups and the items within a group stay in order."""
    groups: defaultdict[KeyT, list[ItemT]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return {name: tuple(group) for name, group in groups.items()}


def first_by(items: Iterable[ItemT], key: Callable[[ItemT], Hashable]) -> tuple[ItemT, ...]:
    """The first item with each key."""
    return tuple(group[0] for group in group_by(items, key).values())
