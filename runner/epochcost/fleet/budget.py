"""The money of a launch: what an attempt may cost, what is reserved and what is spent.

Money for the longest paid time of a cell and of its retries is reserved before the cell starts.
Reservations and bills together never exceed the cap. The job's time limit, set on the machine,
keeps an attempt within its reservation.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from types import MappingProxyType

from epochcost.cost import MachineTime, Time, Unpriced
from epochcost.errors import InputError
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Price
from epochcost.specs.target import Target
from epochcost.specs.terms import Start


@dataclass(frozen=True)
class Tariff:
    """The price plan of a target, which bills the time of its machine from start to end."""

    target: Target
    machine: Hardware
    price: Price

    @cached_property
    def _of_whole_time(self) -> Price:
        # The time of starts and interruptions is part of the machine's time.
        return self.price.model_copy(update={"start": Start(), "interruptions": None})

    def cost(self, seconds: float) -> Decimal:
        """The bill of a machine's time; raises InputError if the plan cannot bill it."""
        if seconds <= 0:
            return Decimal(0)
        time = Time.exact(Decimal(repr(float(seconds))))
        used = MachineTime(time, self.machine.vcpus, self.machine.device == "cuda")
        cost = used.cost(self._of_whole_time)
        if isinstance(cost, Unpriced):
            raise InputError(f"target {self.target.id}: price {self.price.id}: {cost.reason}")
        return cost.mean

    @cached_property
    def attempt(self) -> Decimal:
        """The highest bill of an attempt at a cell, on a machine that is not up yet."""
        return self.cost(self.target.attempt_seconds)

    def most(self, retries: int, up_seconds: float = 0) -> Decimal:
        """The highest bill of a cell with its retries, on a machine that is already up."""
        now = self.cost(up_seconds + self.target.attempt_seconds) if up_seconds else self.attempt
        return now + retries * self.attempt


class Budget:
    """Reserved and spent money of a launch under its cap (None: no cap); threads may share it.

    ``spent`` is by target, and ``reserved`` by purpose; both may come from a killed launch.
    """

    def __init__(
        self,
        cap: Decimal | None,
        spent: Mapping[str, Decimal],
        reserved: Mapping[str, Decimal] = MappingProxyType({}),
    ) -> None:
        self.cap = cap
        self.spent = dict(spent)
        self._reserved = dict(reserved)
        self._lock = threading.Lock()

    @property
    def idle(self) -> bool:
        """Whether no money is reserved, so that none will become free."""
        return not self._reserved

    def reserve(self, purpose: str, amount: Decimal) -> bool:
        """Reserve money for a purpose instead of its earlier reservation, unless it is too much."""
        with self._lock:
            others = sum(self._reserved.values()) - self._reserved.get(purpose, Decimal(0))
            if self.cap is not None and sum(self.spent.values()) + others + amount > self.cap:
                return False
            self._reserved[purpose] = amount
            return True

    def settle(self, purpose: str, target: str, bill: Decimal, rest: Decimal = Decimal(0)) -> None:
        """Pay a bill from the reservation of a purpose; ``rest`` stays reserved for it."""
        with self._lock:
            self.spent[target] = self.spent.get(target, Decimal(0)) + bill
            self._reserved.pop(purpose, None)
            if rest:
                self._reserved[purpose] = rest
