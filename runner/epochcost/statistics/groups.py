"""Group items by a key, in the order of the items."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

ItemT = TypeVar("ItemT")
KeyT = TypeVar("KeyT", bound=Hashable)


def group_by(
    items: Iterable[ItemT], key: Callable[[ItemT], KeyT]
) -> Mapping[KeyT, tuple[ItemT, ...]]:
    """Group items by a key; within a group, items stay in order."""
    groups: defaultdict[KeyT, list[ItemT]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return {name: tuple(group) for name, group in groups.items()}


def first_by(items: Iterable[ItemT], key: Callable[[ItemT], Hashable]) -> tuple[ItemT, ...]:
    """The first item with each key."""
    return tuple(group[0] for group in group_by(items, key).values())
