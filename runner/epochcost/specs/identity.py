"""A frozen spec as a key by what it is, and not by what it says."""

from __future__ import annotations

from typing import Generic, TypeVar

ValueT = TypeVar("ValueT")


class Identity(Generic[ValueT]):
    """A value as the key of what is computed from it once.

    To hash all that is in a spec would take longer than what is kept by it. The key keeps the value
    alive, so that no other takes its identity.
    """

    __slots__ = ("value",)

    def __init__(self, value: ValueT) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.value is other.value
